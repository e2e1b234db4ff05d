//! How elements say what they are.

use core::fmt::Display;
use farpath_path::PerDirection;

/// One value for both directions, or one for each.
pub(crate) fn each_way<T: Display + PartialEq>(value: &PerDirection<T>) -> String {
    match value.forward == value.reverse {
        true => format!("{} each way", value.forward),
        false => format!("{} forward and {} reverse", value.forward, value.reverse),
    }
}
