//! Which run it is: what made it, and not where it stood.

use farpath_emulate::{EmulateError, emulating_kernel};
use farpath_experiment::{EmulateOptions, Point, Scenario, Stack};
use farpath_run::Engine;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::cell::RefCell;
use std::fmt::{self, Write};

/// The program: its version, and a digest of the sources that make the numbers.
pub const fn program() -> &'static str {
    concat!(env!("CARGO_PKG_VERSION"), "+", env!("FARPATH_SOURCES"))
}

/// What a point and its program are, in 128 bits. Points of one key give the same runs, whatever experiment they are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PointKey(u128);

impl fmt::Display for PointKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl From<PointKey> for String {
    fn from(key: PointKey) -> String {
        key.to_string()
    }
}

impl TryFrom<String> for PointKey {
    type Error = String;

    fn try_from(text: String) -> Result<PointKey, String> {
        PointKey::parse(&text).ok_or_else(|| format!("`{text}` is not the key of a point"))
    }
}

impl PointKey {
    /// The point emulated on a kernel: another kernel makes other runs of it.
    fn on_kernel(self, kernel: &str) -> PointKey {
        PointKey(first_128_bits(Sha256::new_with_prefix(format!("{self} {kernel}"))))
    }

    /// The key that is shown like this.
    pub fn parse(text: &str) -> Option<PointKey> {
        (text.len() == 32).then(|| u128::from_str_radix(text, 16).ok().map(PointKey))?
    }
}

/// The key of a point: of everything that an engine is told of it, files that it names included. Left out is what makes
/// no other run: its title, which seeds are wanted, and what is recorded beside the flows.
pub fn point_key(point: &Point) -> PointKey {
    let Scenario {
        horizon,
        budget,
        path,
        sender,
        receiver,
        transport,
        flows,
        emulate,
        warnings,
        title: _,
        seed: _,
        seeds: _,
        output: _,
        programs: _,
        only_programs: _,
    } = &point.scenario;
    let emulate = EmulateOptions { seeds: 0, ..emulate.clone() };
    let ends = [sender, receiver].map(end_digest);
    let rest = (horizon, budget, path, transport, flows, emulate, warnings);
    PointKey(debug_digest(&(program(), ends, rest)))
}

thread_local! {
    /// The ends of the point before, most of which the next one has too: of what a point is they are nearly all.
    static ENDS: RefCell<Vec<(Stack, u128)>> = const { RefCell::new(Vec::new()) };
}

fn end_digest(end: &Stack) -> u128 {
    ENDS.with_borrow_mut(|known| {
        if let Some((_, digest)) = known.iter().find(|(other, _)| other == end) {
            return *digest;
        }
        let digest = debug_digest(end);
        known.truncate(1);
        known.insert(0, (end.clone(), digest));
        digest
    })
}

/// Debug shows every field, and floats so that they can be read back; it changes only with the program.
fn debug_digest(what: &impl fmt::Debug) -> u128 {
    let mut digest = Hasher(Sha256::new());
    write!(digest, "{what:?}").expect("a digest takes everything");
    first_128_bits(digest.0)
}

/// The key of a point's runs by this engine: of emulated ones also of the kernel that makes them.
///
/// # Errors
/// There is no such kernel.
pub(crate) fn run_key(point: &Point, engine: Engine) -> Result<PointKey, EmulateError> {
    let key = point_key(point);
    if engine == Engine::Emulate { emulated_key(key, point) } else { Ok(key) }
}

/// The key of a point's emulated runs, from that of its others.
///
/// # Errors
/// There is no such kernel.
pub(crate) fn emulated_key(key: PointKey, point: &Point) -> Result<PointKey, EmulateError> {
    Ok(key.on_kernel(&emulating_kernel(&point.scenario)?))
}

pub(crate) fn first_128_bits(digest: Sha256) -> u128 {
    let digest = digest.finalize();
    u128::from_be_bytes(digest[..16].try_into().expect("a SHA-256 digest has 32 bytes"))
}

struct Hasher(Sha256);

impl Write for Hasher {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.update(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farpath_experiment::Experiment;

    fn keys(changes: &[&str]) -> Vec<PointKey> {
        let text = "title = 'One'\npath = 'noisy-channel'\n[transfer]\nsize = '1 MB'\n[sweep]\n'path.loss' = ['0 %', '1 %']";
        let changes: Vec<_> = changes.iter().map(|text| text.parse().expect("a change")).collect();
        Experiment::parse(text, "here", &changes).expect("good").map_points(point_key)
    }

    #[test]
    fn a_point_is_the_same_wherever_it_stands() {
        let plain = keys(&[]);
        assert_ne!(plain[0], plain[1]);
        let more = keys(&["sweep.path.loss=['5 %', '1 %', '0 %']"]);
        assert_eq!([more[2], more[1]], plain[..]);
    }

    #[test]
    fn seeds_titles_and_traces_make_no_other_point_and_all_else_does() {
        let plain = keys(&[]);
        assert_eq!(keys(&["seed=9", "seeds=50", "title=another", "output.series=true"]), plain);
        for change in
            ["transfer.size=1000001 B", "path.delay=99 ms", "sender.rto.min=201 ms", "receiver.stack=linux-6"]
        {
            assert!(keys(&[change]).iter().all(|key| !plain.contains(key)), "{change}");
        }
    }

    #[test]
    fn a_bpf_object_is_what_is_in_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("mine.bpf.o");
        let change = format!("sender.linux.bpf={}", file.display());
        let keys_of = |bytes: &[u8]| {
            std::fs::write(&file, bytes).expect("written");
            keys(&[&change])
        };
        let first = keys_of(b"one");
        assert_eq!(keys_of(b"one"), first);
        assert!(keys_of(b"two").iter().all(|key| !first.contains(key)));
    }

    #[test]
    fn a_key_is_read_as_it_is_written() {
        let key = keys(&[])[0];
        assert_eq!(PointKey::parse(&key.to_string()), Some(key));
        assert_eq!(PointKey::parse("12"), None);
    }
}
