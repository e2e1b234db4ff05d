//! Where a user's kernels and hosts are kept.

use std::env;
use std::path::{self, PathBuf};

/// The folder that `variable` names, else `farpath/NAME` in the user's cache (`XDG_CACHE_HOME`, else `~/.cache`). A relative path is seen from
/// the current folder.
pub fn user_cache(variable: &str, name: &str) -> PathBuf {
    let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let folder = set(variable).unwrap_or_else(|| {
        let cache = set("XDG_CACHE_HOME")
            .or_else(|| set("HOME").map(|home| home.join(".cache")))
            .unwrap_or_else(env::temp_dir);
        cache.join("farpath").join(name)
    });
    // It fails for an empty path only, which counts as not set.
    path::absolute(&folder).unwrap_or(folder)
}
