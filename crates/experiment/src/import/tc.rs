//! `tc` of Linux: `netem`, token buckets, and the limits of plain queues. tc(8), tc-netem(8), tc-tbf(8).

use super::{
    Entry, ImportError, Imported, Way, Words, bytes, duration, each_way, number, percent, quoted, rate, split,
};
use farpath_path::Direction;
use farpath_units::{Bytes, Duration, Rate};

/// What is read of `tc`.
const KNOWN: &str = "`netem`, `tbf`, `pfifo`, `bfifo` or `police`, which are what this reads of tc";
/// Standard deviations below the mean of a normal delay that are drawn: one packet in 30 000 would be further away.
const NORMAL_BELOW: u64 = 4;
/// A line that limits nothing: what a command that limits one way leaves the other.
const NO_LIMIT: &str = "\"100 Gbit/s\"";

/// Which packets the commands are about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ways {
    /// Nobody says: those of a single device are about forward packets.
    Unsaid,
    /// All of them, whatever the device.
    All(Way),
    /// Those of each device, by its name.
    Devices(Vec<(String, Way)>),
}

impl Ways {
    fn of_device(&self, device: &str, devices: &[String]) -> Result<Way, ImportError> {
        match self {
            Ways::All(way) => Ok(*way),
            Ways::Unsaid if devices.len() == 1 => Ok(Some(Direction::Forward)),
            Ways::Unsaid => Err(ImportError::new(
                format!("dev {}", devices.join(", dev ")),
                "one device, or which way packets leave through each: `--direction eth0=forward,eth1=reverse`",
            )),
            Ways::Devices(ways) => {
                let of = ways.iter().find(|(name, _)| name == device);
                let missing = || {
                    let expected = format!("`--direction` to say its way too: `{device}=forward`");
                    ImportError::new(format!("dev {device}"), expected)
                };
                of.map(|(_, way)| *way).ok_or_else(missing)
            }
        }
    }
}

/// Elements for `tc qdisc` and `tc filter ... police` commands, one after the other in `text`. What a device has at its root is
/// what the last command for it says, as in tc.
///
/// # Errors
/// A word that is not read, or that no element stands for; devices of which nobody says which way packets pass them.
pub fn tc(text: &str, ways: &Ways) -> Result<Imported, ImportError> {
    let mut words = split(&text.replace(['\n', ';'], " "))?;
    words.retain(|word| word != "sudo");
    let commands: Vec<&[String]> =
        words.split(|word| word == "tc").filter(|command| !command.is_empty()).collect();
    if commands.is_empty() {
        return Err(ImportError::new(text.trim(), KNOWN));
    }
    let device_of = |command: &[String]| {
        let dev = command.iter().position(|word| word == "dev");
        dev.and_then(|dev| command.get(dev + 1)).cloned().unwrap_or_default()
    };
    // In the order in which they are named first.
    let mut devices: Vec<String> = Vec::new();
    for command in &commands {
        let device = device_of(command);
        if !devices.contains(&device) {
            devices.push(device);
        }
    }
    let mut of_devices = vec![Imported::default(); devices.len()];
    for command in commands {
        let device = device_of(command);
        let imported = &mut of_devices[devices.iter().position(|known| *known == device).unwrap_or_default()];
        let is = |word: &str| command.iter().any(|other| other == word);
        if is("root") && ["add", "replace", "change", "del", "delete"].into_iter().any(is) {
            *imported = Imported::default();
        }
        if is("del") || is("delete") {
            continue;
        }
        one(&mut Words::new(command.to_vec())?, ways.of_device(&device, &devices)?, imported)?;
    }
    let mut imported = Imported::default();
    for of in of_devices {
        imported.elements.extend(of.elements);
        of.notes.into_iter().for_each(|note| imported.note(note));
    }
    if imported.elements.is_empty() {
        // Nothing is done to packets: a path has an element all the same.
        imported.elements.push(Entry::new("delay").with("delay", quoted("0 s")));
    }
    Ok(imported.named())
}

fn one(words: &mut Words, way: Way, imported: &mut Imported) -> Result<(), ImportError> {
    while let Some(word) = words.next() {
        match word.as_str() {
            "netem" => return netem(words, way, imported),
            "tbf" => return token_bucket(words, "tbf", way, imported),
            "police" => return token_bucket(words, "police", way, imported),
            "pfifo" | "bfifo" => return fifo(words, &word, way, imported),
            "qdisc" | "filter" | "add" | "replace" | "change" | "root" | "ingress" | "egress" | "action"
            | "matchall" | "u32" | "match" | "ip" | "ipv6" | "protocol" | "all" | "clsact" | "mq" | "-s" => {}
            // With a word behind them.
            "dev" | "parent" | "handle" | "prio" | "pref" | "flowid" | "classid" => {
                words.value("a word", |word| Some(word.to_owned()))?;
            }
            // Numbers of a filter's match, handles.
            other if other.starts_with(|c: char| c.is_ascii_digit()) => {}
            _ => return Err(ImportError::new(word, KNOWN)),
        }
    }
    Ok(())
}

fn netem(words: &mut Words, way: Way, imported: &mut Imported) -> Result<(), ImportError> {
    let mut delay = Duration::ZERO;
    let mut jitter = Duration::ZERO;
    let mut correlation = 0.0;
    let mut distribution = "uniform".to_owned();
    let (mut loss, mut corrupt, mut duplicate, mut line) = (None, None, None, None);
    let mut reorder = None;
    let mut limit: u64 = 1000;
    while let Some(word) = words.next() {
        match word.as_str() {
            "limit" => limit = words.value("a number of packets", |word| word.parse().ok())?,
            "delay" | "latency" => {
                delay = words.value("a time such as `100ms`", time)?;
                jitter = words.optional(time).unwrap_or_default();
                if !jitter.is_zero() {
                    correlation = words.optional(share).unwrap_or_default();
                }
            }
            "distribution" => {
                let names = "`uniform`, `normal` or `pareto`: of netem's tables `paretonormal` and those in files have no counterpart";
                distribution = words.value(names, |word| {
                    ["uniform", "normal", "pareto"].contains(&word).then(|| word.to_owned())
                })?;
            }
            "loss" | "drop" => loss = Some(losses(words, way)?),
            "corrupt" => {
                corrupt = Some(words.value("a share such as `0.1%`", share)?);
                no_correlation(words, "corrupt")?;
                imported.note("netem's `corrupt` flips one bit of a packet, whose checksum TCP then refuses: it is loss here");
            }
            "duplicate" => {
                duplicate = Some(words.value("a share such as `1%`", share)?);
                no_correlation(words, "duplicate")?;
            }
            "reorder" => {
                reorder = Some(words.value("a share such as `25%`", share)?);
                if words.optional(share).is_some() {
                    imported.note("the correlation of netem's `reorder` is left out");
                }
            }
            "gap" => {
                words.value("`1`: netem's other gaps have no counterpart", |word| {
                    (word == "1").then_some(())
                })?;
            }
            "rate" => {
                let rate = words.value("a rate such as `10mbit`", bit_rate)?;
                let overhead = words.optional(|word| word.parse::<u64>().ok()).unwrap_or_default();
                if words.optional(|word| word.parse::<u64>().ok()).is_some_and(|cell| cell > 0) {
                    return Err(ImportError::new("rate", "no cells: those of ATM have no counterpart"));
                }
                line = Some((rate, Bytes(overhead)));
            }
            "seed" => {
                words.value("a number", |word| word.parse::<u64>().ok())?;
                imported.note("netem's `seed` is left out: say `seed` in the experiment, or `--seed`");
            }
            "ecn" => {
                let expected =
                    "no `ecn`: a loss that marks has no counterpart; queues mark (`mark` of a link)";
                return Err(ImportError::new(word, expected));
            }
            _ => {
                let expected = "`limit`, `delay`, `distribution`, `loss`, `corrupt`, `duplicate`, `reorder` or `rate`, which are what this reads of netem";
                return Err(ImportError::new(format!("netem {word}"), expected));
            }
        }
    }
    let loss_rate_is_said = loss.is_some() || corrupt.is_some();
    imported.elements.extend(loss.flatten());
    if let Some(share) = corrupt.filter(|share| *share > 0.0) {
        let rate = each_way(way, &percent(share), &percent(0.0));
        imported.elements.push(Entry::new("loss").with("rate", rate));
    }
    if let Some(share) = duplicate.filter(|share| *share > 0.0) {
        imported
            .elements
            .push(Entry::new("duplicate").with("share", each_way(way, &percent(share), &percent(0.0))));
    }
    if let Some((bits, overhead)) = line {
        let mut link = Entry::new("link")
            .with("rate", each_way(way, &rate(bits), NO_LIMIT))
            .with("queue", each_way(way, &quoted(&format!("{limit} packets")), &quoted("unlimited")));
        if overhead > Bytes::ZERO {
            link = link.with("overhead", bytes(overhead));
        }
        imported.elements.push(link);
        imported.note(
            "netem's `limit` counts packets that are on their way too; here those that wait for the link",
        );
        if way.is_none() && loss_rate_is_said {
            imported.note("packets of the way back meet the link before the loss; with netem it is the other way round at both ends");
        }
    } else if limit != 1000 || delay > Duration::from_millis(10) {
        imported.note(format!(
            "netem holds at most {limit} packets, those on their way included, and drops the rest: without `rate` nothing stands for that here"
        ));
    }
    delays(imported, way, delay, jitter, correlation, &distribution, reorder, line.is_none())
}

/// What netem's `delay`, `distribution` and `reorder` are together.
#[expect(clippy::too_many_arguments, reason = "the words of one command")]
fn delays(
    imported: &mut Imported,
    way: Way,
    delay: Duration,
    jitter: Duration,
    correlation: f64,
    distribution: &str,
    reorder: Option<f64>,
    overtakes: bool,
) -> Result<(), ImportError> {
    if let Some(share) = reorder {
        if !jitter.is_zero() {
            return Err(ImportError::new(
                "reorder",
                "no jitter beside it: the two together have no counterpart",
            ));
        }
        if delay.is_zero() {
            return Err(ImportError::new("reorder", "a `delay` beside it, as netem does"));
        }
        // Those that go at once overtake: the others are held back.
        let held = each_way(way, &percent(100.0 - share), &percent(0.0));
        imported
            .elements
            .push(Entry::new("reorder").with("share", held).with("extra_delay", duration(delay)));
        return Ok(());
    }
    let (fixed, mean) = match distribution {
        _ if jitter.is_zero() => (delay, Duration::ZERO),
        // What all packets wait is no jitter: by it the round trip of the path is known.
        "normal" => {
            let mean = (jitter * NORMAL_BELOW).min(delay);
            (delay.saturating_sub(mean), mean)
        }
        "pareto" => {
            imported.note("netem's table for `pareto` has another shape than the Lomax distribution here: the mean of the delay is kept");
            (delay.saturating_sub(jitter), jitter.min(delay))
        }
        _ => {
            if jitter > delay {
                imported.note("netem's jitter is longer than its delay, and cut at zero there: here the delay is at least zero and at most twice its mean");
            }
            (delay.saturating_sub(jitter), jitter.min(delay))
        }
    };
    if !fixed.is_zero() {
        imported
            .elements
            .push(Entry::new("delay").with("delay", each_way(way, &duration(fixed), &quoted("0 s"))));
    }
    if !mean.is_zero() {
        let mut entry = Entry::new("jitter").with("mean", each_way(way, &duration(mean), &quoted("0 s")));
        if distribution != "uniform" {
            entry = entry.with("distribution", quoted(distribution));
        }
        if distribution == "normal" {
            entry = entry.with("deviation", duration(jitter));
        }
        if correlation > 0.0 {
            if correlation >= 100.0 {
                return Err(ImportError::new(
                    format!("delay ... {correlation}%"),
                    "a correlation below 100%",
                ));
            }
            entry = entry.with("correlation", percent(correlation));
            imported.note("netem's correlation adds up neighbouring delays, which makes them vary less; here a packet has the delay of the one before");
        }
        // Behind a rate netem keeps packets in order.
        imported.elements.push(if overtakes { entry.with("reorder", "true") } else { entry });
    }
    Ok(())
}

fn no_correlation(words: &mut Words, of: &str) -> Result<(), ImportError> {
    match words.optional(share) {
        Some(share) if share > 0.0 => {
            let expected =
                "no correlation: netem's changes the share itself; runs of losses are `loss gemodel`";
            Err(ImportError::new(format!("{of} ... {share}%"), expected))
        }
        _ => Ok(()),
    }
}

/// `loss`: at random, or by two states. `None` where nothing is lost.
fn losses(words: &mut Words, way: Way) -> Result<Option<Entry>, ImportError> {
    let states = |good_to_bad: f64, bad_to_good: f64, bad: f64, good: f64| {
        let entry = Entry::new("gilbert-elliott")
            .with("good_to_bad", percent(good_to_bad))
            .with("bad_to_good", percent(bad_to_good))
            .with("loss_bad", percent(bad))
            .with("loss_good", percent(good));
        Some(match way {
            None => entry,
            Some(_) => entry.with("active", each_way(way, "true", "false")),
        })
    };
    match words.peek() {
        Some("gemodel") => {
            words.next();
            let p = words.value("a share such as `1%`", share)?;
            let r = words.optional(share).unwrap_or(100.0 - p);
            let bad = words.optional(share).unwrap_or(100.0);
            let good = words.optional(share).unwrap_or(0.0);
            Ok(states(p, r, bad, good))
        }
        Some("state") => {
            words.next();
            let p13 = words.value("a share such as `1%`", share)?;
            let p31 = words.optional(share).unwrap_or(100.0 - p13);
            if words.optional(share).is_some() {
                let expected =
                    "two states, `loss state P13 P31`: the four of netem's model have no counterpart";
                return Err(ImportError::new("loss state", expected));
            }
            Ok(states(p13, p31, 100.0, 0.0))
        }
        _ => {
            if words.peek() == Some("random") {
                words.next();
            }
            let lost = words.value("a share such as `1%`", share)?;
            no_correlation(words, "loss")?;
            let rate = each_way(way, &percent(lost), &percent(0.0));
            Ok((lost > 0.0).then(|| Entry::new("loss").with("rate", rate)))
        }
    }
}

/// `tbf` waits for tokens, `police` drops for want of them.
fn token_bucket(words: &mut Words, of: &str, way: Way, imported: &mut Imported) -> Result<(), ImportError> {
    let police = of == "police";
    let (mut bits, mut burst, mut waits, mut latency) = (None, None, None, None);
    while let Some(word) = words.next() {
        match word.as_str() {
            "rate" => bits = Some(words.value("a rate such as `10mbit`", bit_rate)?),
            "burst" | "buffer" | "maxburst" => {
                burst = Some(words.value("a size such as `32kb`", |word| size(word.split('/').next()?))?);
            }
            "limit" if !police => waits = Some(words.value("a size such as `64kb`", size)?),
            "latency" if !police => latency = Some(words.value("a time such as `50ms`", time)?),
            "mtu" | "mpu" | "overhead" | "linklayer" => {
                words.value("a word", |word| Some(word.to_owned()))?;
                imported.note(format!("`{word}` of tc's {of} is left out"));
            }
            "conform-exceed" | "drop" | "continue" | "flowid" if police => {}
            _ if police && (word.starts_with(':') || word == "drop/ok" || word == "drop/pass") => {}
            _ => {
                let expected =
                    "`rate`, `burst`, `limit` or `latency`, which are what this reads of a token bucket";
                return Err(ImportError::new(format!("{of} {word}"), expected));
            }
        }
    }
    let bits = bits.ok_or_else(|| ImportError::new(of, "a `rate` behind it"))?;
    let burst: Bytes = burst.ok_or_else(|| ImportError::new(of, "a `burst` behind it"))?;
    let no_burst = Bytes(1 << 20);
    let mut entry = Entry::new("token-bucket")
        .with("rate", each_way(way, &rate(bits), NO_LIMIT))
        .with("burst", each_way(way, &bytes(burst), &bytes(no_burst.max(burst))));
    entry = if police {
        entry.with("excess", quoted("drop"))
    } else {
        // tc makes a limit in bytes of a latency: what the bucket holds, and what its rate sends in that time.
        let held = |latency: Duration| {
            let sent = u128::from(bits.bit_per_s()) * u128::from(latency.as_nanos()) / 8_000_000_000;
            Bytes(u64::try_from(sent).unwrap_or(u64::MAX).saturating_add(burst.0))
        };
        let queue: Option<Bytes> = waits.or(latency.map(held));
        let queue =
            queue.ok_or_else(|| ImportError::new(of, "a `limit` or a `latency` behind it, as tc does"))?;
        entry.with("excess", quoted("wait")).with("queue", each_way(way, &bytes(queue), &quoted("unlimited")))
    };
    imported.elements.push(entry);
    Ok(())
}

/// The limit of the queue before the line of the command before.
fn fifo(words: &mut Words, of: &str, way: Way, imported: &mut Imported) -> Result<(), ImportError> {
    let mut limit = None;
    while let Some(word) = words.next() {
        match word.as_str() {
            "limit" if of == "pfifo" => {
                let packets: u64 = words.value("a number of packets", |word| word.parse().ok())?;
                limit = Some(quoted(&format!("{packets} packets")));
            }
            "limit" => limit = Some(bytes(words.value("a size such as `64kb`", size)?)),
            _ => return Err(ImportError::new(format!("{of} {word}"), "`limit`")),
        }
    }
    let line = imported
        .elements
        .iter_mut()
        .rev()
        .find(|entry| entry.element != "delay" && entry.element != "jitter");
    match (line, limit) {
        (Some(line), Some(limit)) if line.keys.iter().any(|(key, _)| *key == "queue") => {
            line.set("queue", each_way(way, &limit, &quoted("unlimited")));
        }
        (_, None) => imported.note(format!("`{of}` without a limit has the length of the device's queue, which is not known here")),
        (_, Some(_)) => imported.note(format!("`{of}` without a rate before it limits what waits for the device's own line, which is not known here")),
    }
    Ok(())
}

/// A time as tc reads it: microseconds where no unit is said.
fn time(text: &str) -> Option<Duration> {
    let (number, unit) = number(text)?;
    let ns = match unit {
        "s" | "sec" | "secs" => 1e9,
        "ms" | "msec" | "msecs" => 1e6,
        "" | "us" | "usec" | "usecs" => 1e3,
        "ns" | "nsec" | "nsecs" => 1.0,
        _ => return None,
    };
    let ns = (number * ns).round();
    (ns <= 1e15).then(|| Duration::from_nanos(ns as u64))
}

/// A rate as tc reads it: bit/s where no unit is said; what ends in `bps` counts bytes.
fn bit_rate(text: &str) -> Option<Rate> {
    let (number, unit) = number(text)?;
    let unit = unit.to_ascii_lowercase();
    let (prefix, bits) = match (unit.strip_suffix("bit"), unit.strip_suffix("bps")) {
        (Some(prefix), _) => (prefix, 1.0),
        (_, Some(prefix)) => (prefix, 8.0),
        (None, None) if unit.is_empty() => ("", 1.0),
        (None, None) => return None,
    };
    let factor = match prefix {
        "" => 1.0,
        "k" => 1e3,
        "m" => 1e6,
        "g" => 1e9,
        "t" => 1e12,
        "ki" => 1024.0,
        "mi" => 1024.0 * 1024.0,
        "gi" => 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    };
    let rate = (number * factor * bits).round();
    (1.0..=1e15).contains(&rate).then(|| Rate::from_bit_per_s(rate as u64)).flatten()
}

/// A size as tc reads it: bytes where no unit is said, with prefixes of 1024.
fn size(text: &str) -> Option<Bytes> {
    let (number, unit) = number(text)?;
    let factor = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "k" | "kb" => 1024.0,
        "m" | "mb" => 1024.0 * 1024.0,
        "g" | "gb" => 1024.0 * 1024.0 * 1024.0,
        "kbit" => 1024.0 / 8.0,
        "mbit" => 1024.0 * 1024.0 / 8.0,
        _ => return None,
    };
    let bytes = (number * factor).round();
    (bytes <= 1e15).then_some(Bytes(bytes as u64))
}

/// A share in per cent, with or without its sign.
fn share(text: &str) -> Option<f64> {
    let (number, unit) = number(text)?;
    (matches!(unit, "" | "%") && number <= 100.0).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn imported(text: &str) -> Imported {
        tc(text, &Ways::Unsaid).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn a_command_line_has_so_many_words_and_no_more() {
        let error =
            tc(&format!("netem {}", "delay 1ms ".repeat(500)), &Ways::All(None)).expect_err("1001 words");
        let said = error.to_string();
        assert!(said.contains("1000 at the most") && said.contains("1001 words"), "{said}");
    }

    #[test]
    fn units_are_those_of_tc() {
        let us = |text| time(text).map(|time| time.as_nanos() as f64 / 1e3);
        assert_eq!(
            [us("100"), us("1.5ms"), us("2s"), us("1h")],
            [Some(100.0), Some(1500.0), Some(2e6), None]
        );
        let bits = |text| bit_rate(text).map(Rate::bit_per_s);
        assert_eq!(
            [bits("10mbit"), bits("1kbps"), bits("64"), bits("1mb")],
            [Some(10_000_000), Some(8000), Some(64), None]
        );
        assert_eq!(
            [size("10kb"), size("3000"), size("8kbit")].map(|size| size.map(|size| size.0)),
            [Some(10_240), Some(3000), Some(1024)]
        );
    }

    #[test]
    fn netem_with_a_rate_is_a_link_and_a_delay_of_one_direction() {
        let found = imported("tc qdisc add dev eth0 root netem delay 100ms rate 10mbit limit 50 loss 0.5%");
        assert_eq!(
            found.to_toml(),
            "[[path]]\nelement = \"loss\"\nrate = { forward = \"0.5 %\", reverse = \"0 %\" }\n\n\
             [[path]]\nelement = \"link\"\nrate = { forward = \"10 Mbit/s\", reverse = \"100 Gbit/s\" }\n\
             queue = { forward = \"50 packets\", reverse = \"unlimited\" }\n\n\
             [[path]]\nelement = \"delay\"\ndelay = { forward = \"100 ms\", reverse = \"0 s\" }\n\n"
        );
    }

    #[test]
    fn a_queue_below_a_token_bucket_is_its_queue() {
        let found = imported(
            "tc qdisc add dev eth0 root handle 1: tbf rate 1mbit burst 10kb latency 50ms; tc qdisc add dev eth0 parent 1:1 pfifo limit 20",
        );
        let text = found.to_toml();
        assert!(text.contains("queue = { forward = \"20 packets\", reverse = \"unlimited\" }"), "{text}");
        // What tc makes of the latency: 6250 B at 1 Mbit/s, and the bucket.
        let text = imported("tc qdisc add dev eth0 root tbf rate 1mbit burst 10kb latency 50ms").to_toml();
        assert!(text.contains("queue = { forward = \"16490 B\""), "{text}");
    }

    #[test]
    fn what_all_packets_wait_is_a_delay_whatever_the_distribution() {
        for (distribution, delay, mean) in [
            ("", "90 ms", "10 ms"),
            (" distribution normal", "60 ms", "40 ms"),
            (" distribution pareto", "90 ms", "10 ms"),
        ] {
            let text =
                imported(&format!("tc qdisc add dev a root netem delay 100ms 10ms{distribution}")).to_toml();
            assert!(text.contains(&format!("delay = {{ forward = \"{delay}\"")), "{text}");
            assert!(text.contains(&format!("mean = {{ forward = \"{mean}\"")), "{text}");
        }
        let text = imported("tc qdisc add dev a root netem delay 20ms 10ms distribution normal").to_toml();
        assert!(
            !text.contains("element = \"delay\"") && text.contains("mean = { forward = \"20 ms\""),
            "{text}"
        );
    }

    #[test]
    fn the_last_command_for_a_root_is_what_it_has_and_two_devices_are_two_ways() {
        let commands = "sudo tc qdisc add dev eth0 root netem delay 20ms; sudo tc qdisc add dev eth1 root netem delay 20ms
                        sudo tc qdisc replace dev eth1 root netem delay 20ms loss 1%";
        let devices = [("eth0", Direction::Reverse), ("eth1", Direction::Forward)];
        let ways = Ways::Devices(devices.map(|(name, way)| (name.to_owned(), Some(way))).to_vec());
        let found = tc(commands, &ways).expect("it is read");
        assert_eq!(
            found.to_toml(),
            "[[path]]\nelement = \"delay\"\ndelay = { forward = \"0 s\", reverse = \"20 ms\" }\n\n\
             [[path]]\nelement = \"loss\"\nrate = { forward = \"1 %\", reverse = \"0 %\" }\n\n\
             [[path]]\nelement = \"delay\"\nname = \"delay-2\"\ndelay = { forward = \"20 ms\", reverse = \"0 s\" }\n\n"
        );
        let unsaid = tc(commands, &Ways::Unsaid).expect_err("two devices").to_string();
        assert!(unsaid.starts_with("`dev eth0, dev eth1`: expected one device, or"), "{unsaid}");
        let missing =
            tc(commands, &Ways::Devices(vec![("eth1".to_owned(), None)])).expect_err("of one").to_string();
        assert!(missing.contains("dev eth0") && missing.contains("eth0=forward"), "{missing}");
        let deleted = imported("tc qdisc add dev a root netem loss 1%; tc qdisc del dev a root").to_toml();
        assert_eq!(deleted, "[[path]]\nelement = \"delay\"\ndelay = \"0 s\"\n\n");
    }

    #[test]
    fn two_of_a_kind_have_names_of_their_own() {
        let commands = "tc qdisc add dev a root netem delay 1ms loss 1% corrupt 1%\ntc qdisc add dev b root netem delay 2ms";
        let text = tc(commands, &Ways::All(None)).expect("it is read").to_toml();
        assert!(text.contains("name = \"loss-2\"") && text.contains("name = \"delay-2\""), "{text}");
    }

    #[test]
    fn what_has_no_counterpart_is_refused_by_its_word() {
        for (text, word) in [
            ("tc qdisc add dev eth0 root sfq", "`sfq`"),
            ("tc qdisc add dev eth0 root netem slot 1ms", "`netem slot`"),
            ("tc qdisc add dev eth0 root netem delay", "`delay`: expected a time"),
            ("tc qdisc add dev eth0 root netem loss 10% 25%", "`loss ... 25%`"),
            ("tc qdisc add dev eth0 root netem loss 110%", "`loss 110%`"),
            ("tc qdisc add dev eth0 root tbf rate 1mbit", "`tbf`: expected a `burst`"),
            ("ls", "`ls`"),
            ("", "``: expected a command line"),
        ] {
            let error = tc(text, &Ways::All(None)).expect_err(text).to_string();
            assert!(error.starts_with(word), "{text}: {error}");
        }
    }
}
