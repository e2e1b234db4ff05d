//! Text of another host.

use serde::{Deserialize, Serialize};
use std::fmt::{self, Display, Write};

/// Text of another host, which may be anything. Written by `Display`, for a terminal, a log or a comment, it is one line
/// of [`Said::MOST`] characters at most: what a terminal would obey, a line's end among it, is escaped. In JSON it is as it
/// was said.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Said(String);

impl Said {
    /// Characters of it that are written.
    pub const MOST: usize = 400;

    /// As it was said, to be compared; not to be written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<String> for Said {
    fn from(text: String) -> Said {
        Said(text)
    }
}

impl From<&str> for Said {
    fn from(text: &str) -> Said {
        Said(text.to_owned())
    }
}

impl Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut all = self.0.chars();
        for c in all.by_ref().take(Said::MOST) {
            match c {
                '"' | '\'' | '\\' => f.write_char(c)?,
                // Control characters, line ends, and what turns the direction of a line.
                _ => write!(f, "{}", c.escape_debug())?,
            }
        }
        if all.next().is_some() { f.write_str(" ...") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_a_terminal_obeys_is_escaped_and_the_rest_is_written_as_it_is() {
        for (said, written) in [
            (
                "Linux 6.18 (\"a\\b\", it's fine), größer, 漢字",
                "Linux 6.18 (\"a\\b\", it's fine), größer, 漢字",
            ),
            ("a\u{1b}[2Jb\u{9b}1mc\u{7f}", "a\\u{1b}[2Jb\\u{9b}1mc\\u{7f}"),
            ("one\ntwo\r\tthree\u{2028}", "one\\ntwo\\r\\tthree\\u{2028}"),
            ("txt\u{202e}exe\u{2066}", "txt\\u{202e}exe\\u{2066}"),
        ] {
            assert_eq!(Said::from(said).to_string(), written);
            assert_eq!(Said::from(said).as_str(), said);
        }
        let long = Said::from("x".repeat(100_000)).to_string();
        assert_eq!(long.len(), Said::MOST + 4);
    }

    proptest! {
        #[test]
        fn whatever_is_said_is_written_as_one_line(said in any::<String>()) {
            let written = Said::from(said).to_string();
            prop_assert!(written.chars().all(|c| !c.is_control()), "{written:?}");
            prop_assert_eq!(written.lines().count(), usize::from(!written.is_empty()));
        }
    }
}
