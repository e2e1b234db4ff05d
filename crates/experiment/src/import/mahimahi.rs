//! mahimahi's shells: `mm-delay`, `mm-loss`, `mm-link`, one in the other (Netravali et al., USENIX ATC 2015; their manual pages).

use super::{Entry, ImportError, Imported, Words, duration, each_way, number, percent, quoted, split};
use farpath_path::Direction;
use farpath_units::Duration;

/// Elements for a chain of shells such as `mm-delay 20 mm-link up down`. Forward is their uplink: packets of the program go into the
/// innermost shell first.
///
/// # Errors
/// A word that is not read, or that no element stands for.
pub fn mahimahi(text: &str) -> Result<Imported, ImportError> {
    let mut words = Words::new(split(text)?)?;
    let mut imported = Imported::default();
    while let Some(word) = words.next() {
        match word.as_str() {
            "mm-delay" => {
                let delay = words.value("a number of milliseconds, each way", milliseconds)?;
                imported.elements.push(Entry::new("delay").with("delay", duration(delay)));
            }
            "mm-loss" => {
                let way = words.value("`uplink` or `downlink`", way)?;
                let lost = words.value("a loss rate from 0 to 1", |word| {
                    number(word).filter(|(rate, rest)| *rate <= 1.0 && rest.is_empty()).map(|(rate, _)| rate)
                })?;
                let rate = each_way(Some(way), &percent(lost * 100.0), &percent(0.0));
                imported.elements.push(Entry::new("loss").with("rate", rate));
            }
            "mm-link" => imported.elements.push(link(&mut words, &mut imported.notes)?),
            "mm-onoff" | "mm-webreplay" | "mm-webrecord" | "mm-meter" => {
                let expected = match word.as_str() {
                    "mm-onoff" => {
                        "`mm-delay`, `mm-loss` or `mm-link`; a link that comes and goes is `trace-link` with `farpath trace make on-off`"
                    }
                    _ => "`mm-delay`, `mm-loss` or `mm-link`, which are what this reads of mahimahi",
                };
                return Err(ImportError::new(word, expected));
            }
            "--" => break,
            other if other.starts_with("mm-") || imported.elements.is_empty() => {
                return Err(ImportError::new(
                    word,
                    "`mm-delay`, `mm-loss` or `mm-link`, which are what this reads of mahimahi",
                ));
            }
            program => {
                imported.note(format!(
                    "`{program}` and what follows is the program: `farpath shell FILE -- {program} ...`"
                ));
                break;
            }
        }
    }
    if imported.elements.is_empty() {
        return Err(ImportError::new(text.trim(), "`mm-delay`, `mm-loss` or `mm-link`"));
    }
    // The outermost shell is written first, and is the last that a packet of the program passes.
    imported.elements.reverse();
    Ok(imported.named())
}

fn link(words: &mut Words, notes: &mut Vec<String>) -> Result<Entry, ImportError> {
    let mut files = Vec::new();
    let mut queues = [None, None];
    let mut kinds = ["infinite".to_owned(), "infinite".to_owned()];
    while files.len() < 2 || words.peek().is_some_and(|word| word.starts_with("--") && word != "--") {
        let option = "the trace of the uplink and that of the downlink";
        let word = words.value(option, |word| (word != "--").then(|| word.to_owned()))?;
        let Some(option) = word.strip_prefix("--") else {
            let plain = |c: char| !c.is_control() && c != '"' && c != '\\';
            if word.starts_with("mm-") || !word.chars().all(plain) {
                return Err(ImportError::new(format!("mm-link {word}"), option));
            }
            files.push(word);
            continue;
        };
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        let value = match value {
            "" if name.ends_with("-queue") || name.ends_with("-queue-args") => {
                words.value("a value", |word| Some(word.to_owned()))?
            }
            value => value.to_owned(),
        };
        let value = value.trim_matches('"').to_owned();
        let side = usize::from(name.starts_with("downlink"));
        match name {
            "uplink-queue" | "downlink-queue" if ["infinite", "droptail"].contains(&value.as_str()) => {
                kinds[side] = value
            }
            "uplink-queue" | "downlink-queue" => {
                let expected = "`infinite` or `droptail`: mahimahi's other queues have no counterpart here";
                return Err(ImportError::new(format!("--{name}={value}"), expected));
            }
            "uplink-queue-args" | "downlink-queue-args" => queues[side] = Some(queue(name, &value)?),
            "once" => {
                let expected = "no `--once`: a trace begins again behind its last line, as it does in mahimahi without it";
                return Err(ImportError::new("--once", expected));
            }
            _ if name.starts_with("meter-") || name.ends_with("-log") => {
                notes.push(format!(
                    "`--{name}` is left out: `--out DIR` writes tables, `farpath report` draws them"
                ));
            }
            _ => {
                let expected = "`--uplink-queue`, `--uplink-queue-args` and their like for the downlink";
                return Err(ImportError::new(format!("--{name}"), expected));
            }
        }
    }
    let mut limits = [quoted("unlimited"), quoted("unlimited")];
    for side in 0..2 {
        match (kinds[side].as_str(), queues[side].take()) {
            ("droptail", Some(limit)) => limits[side] = limit,
            ("droptail", None) => {
                return Err(ImportError::new("droptail", "its `-queue-args` such as `packets=100`"));
            }
            _ => {}
        }
    }
    let (up, down) = (&files[0], &files[1]);
    Ok(Entry::new("trace-link")
        .with("trace", format!("{{ forward = {}, reverse = {} }}", quoted(up), quoted(down)))
        .with("queue", format!("{{ forward = {}, reverse = {} }}", limits[0], limits[1])))
}

/// `packets=100` or `bytes=64000`.
fn queue(name: &str, value: &str) -> Result<String, ImportError> {
    let expected = "`packets=N` or `bytes=N`";
    let refused = || ImportError::new(format!("--{name}={value}"), expected);
    let (what, number) = value.split_once('=').ok_or_else(refused)?;
    let number: u64 = number.trim().parse().map_err(|_| refused())?;
    match what.trim() {
        "packets" => Ok(quoted(&format!("{number} packets"))),
        "bytes" => Ok(quoted(&format!("{number} B"))),
        _ => Err(refused()),
    }
}

fn milliseconds(text: &str) -> Option<Duration> {
    text.parse().ok().filter(|ms| *ms <= 1_000_000_000_u64).map(Duration::from_millis)
}

fn way(text: &str) -> Option<Direction> {
    match text {
        "uplink" => Some(Direction::Forward),
        "downlink" => Some(Direction::Reverse),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_shell_is_met_first() {
        let found = mahimahi(
            "mm-delay 20 mm-loss uplink 0.01 mm-link up.trace down.trace --uplink-queue=droptail --uplink-queue-args=\"packets=100\" -- curl x",
        )
        .expect("it is read");
        assert_eq!(
            found.to_toml(),
            "[[path]]\nelement = \"trace-link\"\ntrace = { forward = \"up.trace\", reverse = \"down.trace\" }\n\
             queue = { forward = \"100 packets\", reverse = \"unlimited\" }\n\n\
             [[path]]\nelement = \"loss\"\nrate = { forward = \"1 %\", reverse = \"0 %\" }\n\n\
             [[path]]\nelement = \"delay\"\ndelay = \"20 ms\"\n\n"
        );
    }

    #[test]
    fn what_has_no_counterpart_is_refused_by_its_word() {
        for (text, word) in [
            ("mm-onoff uplink 1 1", "`mm-onoff`"),
            ("mm-link up", "`up`: expected the trace"),
            ("mm-link up down --uplink-queue=codel", "`--uplink-queue=codel`"),
            ("mm-loss up 0.1", "`mm-loss up`"),
            ("mm-delay soon", "`mm-delay soon`"),
            ("curl x", "`curl`"),
        ] {
            let error = mahimahi(text).expect_err(text).to_string();
            assert!(error.starts_with(word), "{text}: {error}");
        }
    }
}
