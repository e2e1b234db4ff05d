//! A path that was found, as an experiment file that every engine takes.

use super::{PathEstimate, Queue, Way, share};
use farpath_experiment::QUICK_PATH_STACK;
use farpath_units::{Bytes, Probability, Rate};

/// What a queue is at the least: ten full packets, as hosts send that many at once.
const LEAST_QUEUE: Bytes = Bytes(15_000);
/// Of a way of which nothing is known.
const NO_RATE: u64 = 1_000_000_000;

impl PathEstimate {
    /// The file: what was found, and beside it how and how sure it is. `size` is the transfer's, which goes to the
    /// peer.
    pub fn to_toml(&self, size: Bytes) -> String {
        let [local, peer] = &self.hosts;
        let [local_kernel, peer_kernel] = &self.kernels;
        let (forward, reverse) = (&self.ways.forward, &self.ways.reverse);
        let trips = self.echoes.round_trips();
        let median = trips.get(trips.len() / 2).copied().unwrap_or_default();
        let delay = self.delay().unwrap_or_default();
        let losses = forward.lost.0 + reverse.lost.0;
        let seeds = match losses {
            0 => "1                    # nothing was lost by chance",
            _ => "20",
        };
        format!(
            r#"# The path from {local} ({local_kernel}) to {peer} ({peer_kernel}), as `farpath measure` of farpath {version}
# found it. `forward` goes to {peer}. Of what lies between the ends it knows what one link, one queue and a delay do.
title = "Measured: {local} to {peer}"
seeds = {seeds}

[[path]]
element = "link"
# Bits of IP packets, from datagrams that arrived one behind the other.
# forward: {rate_forward}
# reverse: {rate_reverse}
rate = {{ forward = "{forward_rate}", reverse = "{reverse_rate}" }}
# From how long datagrams of a burst waited, at that rate; drop-tail, a packet more or less.
# forward: {queue_forward}
# reverse: {queue_reverse}
queue = {{ forward = "{forward_queue}", reverse = "{reverse_queue}" }}

[[path]]
element = "loss"
# Of datagrams of {packet}, as independent losses; 95 % confidence (Wilson). Losses that come together are not told apart.
# forward: {loss_forward}
# reverse: {loss_reverse}
rate = {{ forward = "{forward_loss}", reverse = "{reverse_loss}" }}

[[path]]
element = "delay"
# Half of the shortest of {count} round trips, less the sending of a datagram: shortest {shortest:.4}, median {median:.4}.
# Which way takes longer is not known; the longest was {longest:.4}.
delay = "{delay:.4}"

[sender]
stack = "{QUICK_PATH_STACK}"

[receiver]
stack = "{QUICK_PATH_STACK}"

[transfer]
size = "{size}"
opener = "sender"
"#,
            version = env!("CARGO_PKG_VERSION"),
            packet = self.echoes.packet,
            count = trips.len(),
            shortest = trips.first().copied().unwrap_or_default(),
            longest = trips.last().copied().unwrap_or_default(),
            rate_forward = rate_note(forward),
            rate_reverse = rate_note(reverse),
            forward_rate = rate(forward),
            reverse_rate = rate(reverse),
            queue_forward = queue_note(forward),
            queue_reverse = queue_note(reverse),
            forward_queue = queue(forward),
            reverse_queue = queue(reverse),
            loss_forward = loss_note(forward),
            loss_reverse = loss_note(reverse),
            forward_loss = loss(forward),
            reverse_loss = loss(reverse),
        )
    }
}

fn rate(way: &Way) -> Rate {
    way.rate.unwrap_or_else(|| Rate::from_bit_per_s(NO_RATE).expect("not zero"))
}

fn rate_note(way: &Way) -> String {
    let Some([low, high]) = way.between.filter(|_| way.rate.is_some()) else {
        return format!("NOT KNOWN: {} of {} datagrams arrived", way.burst.1, way.burst.0);
    };
    let least = if way.rate_at_least { "; AT LEAST: the sending host was no faster" } else { "" };
    format!("{} datagrams of {}, fifths of which say {low} to {high}{least}", way.burst.1, way.packet)
}

fn queue(way: &Way) -> Bytes {
    match way.queue {
        Queue::Holds(bytes) => bytes.max(way.packet),
        Queue::AtLeast(bytes) => bytes.max(LEAST_QUEUE),
    }
}

fn queue_note(way: &Way) -> String {
    let (sent, arrived) = way.burst;
    let there = match way.dropped_there {
        0 => String::new(),
        some => format!("; {some} WERE LOST IN THE HOST, NOT ON THE PATH"),
    };
    match way.queue {
        Queue::Holds(_) => format!("a burst of {sent} filled it, {arrived} came through{there}"),
        Queue::AtLeast(bytes) => {
            format!(
                "AT LEAST: a burst of {sent} did not fill it, {bytes} waited, {arrived} came through{there}"
            )
        }
    }
}

fn loss(way: &Way) -> Probability {
    let (lost, of) = way.lost;
    share(lost, of).and_then(|(share, _)| Probability::new(share)).unwrap_or(Probability::ZERO)
}

fn loss_note(way: &Way) -> String {
    let (lost, of) = way.lost;
    let percent = |share: f64| format!("{:.3} %", share * 100.0);
    match share(lost, of) {
        Some((_, [low, high])) => format!("{lost} of {of} lost: {} to {}", percent(low), percent(high)),
        None => "NOT KNOWN: nothing came back".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use crate::datagrams::Echoes;
    use crate::estimate::{PathEstimate, Queue, Way};
    use farpath_elements::{Bernoulli, Delay, ElementKind, Link};
    use farpath_experiment::Experiment;
    use farpath_path::PerDirection;
    use farpath_traffic::datagram::{Answered, Echoed};
    use farpath_units::{Bytes, Duration, Instant, Rate};

    fn estimate(rate: Option<Rate>, lost: u32) -> PathEstimate {
        let way = Way {
            rate,
            between: rate.map(|rate| [rate, rate]),
            rate_at_least: false,
            queue: Queue::Holds(Bytes(50_000)),
            lost: (lost, 1000),
            burst: (64, 40),
            packet: Bytes(1500),
            dropped_there: 0,
        };
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        let one = Answered { number: 0, sent_at: at(0), arrived_at: at(500), back_at: at(40) };
        let echoed = Echoed { sent: 1000, answered: vec![one], arrived: 999, ..Echoed::default() };
        PathEstimate {
            hosts: ["10.0.0.1".to_owned(), "10.0.0.2".to_owned()],
            kernels: ["Linux 6".into(), "Linux 5".into()],
            echoes: Echoes { echoed, arrived: 999, packet: Bytes(92) },
            ways: PerDirection {
                forward: way.clone(),
                reverse: Way { queue: Queue::AtLeast(Bytes(9)), ..way },
            },
        }
    }

    #[test]
    fn the_file_is_an_experiment_with_what_was_found() {
        let rate = Rate::from_bit_per_s(9_876_543);
        let text = estimate(rate, 13).to_toml(Bytes(1_000_000));
        let experiment =
            Experiment::parse(&text, "path", &[]).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let point = experiment.point(0);
        let scenario = &point.scenario;
        assert_eq!((scenario.seeds, scenario.warnings.as_slice()), (20, &[][..]));
        let kinds: Vec<&ElementKind> = scenario.path.iter().map(|element| &element.kind).collect();
        let ElementKind::Link(Link { rate: found, .. }) = kinds[0] else { panic!("{kinds:?}") };
        assert!(found.forward.bit_per_s().abs_diff(9_876_543) < 10_000);
        let ElementKind::Bernoulli(Bernoulli { loss_rate, .. }) = kinds[1] else { panic!("{kinds:?}") };
        assert!((loss_rate.forward.fraction() - 0.013).abs() < 1e-6);
        // 40 ms less 92 B at 10 Mbit/s, twice; half of it.
        let ElementKind::Delay(Delay { delay }) = kinds[2] else { panic!("{kinds:?}") };
        assert!(delay.forward.abs_diff(Duration::from_micros(19_925)) < Duration::from_micros(20));
    }

    /// A line's end in it put keys of the peer's own into the file.
    #[test]
    fn a_kernel_with_a_line_s_end_in_its_name_stays_in_its_comment() {
        let mut found = estimate(Rate::from_bit_per_s(9_876_543), 13);
        found.kernels[1] = "Linux 6)\nseeds = 7\n[output]\nsegments = true\n#\u{1b}[2J".into();
        let text = found.to_toml(Bytes(1_000_000));
        assert!(
            !text.lines().any(|line| line.starts_with("seeds = 7") || line.starts_with("[output]")),
            "{text}"
        );
        assert!(text.contains(r"Linux 6)\nseeds = 7\n") && !text.contains('\u{1b}'), "{text}");
        let experiment =
            Experiment::parse(&text, "path", &[]).unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!(experiment.point(0).scenario.seeds, 20);
    }

    #[test]
    fn what_is_not_known_is_said_in_capitals() {
        let text = estimate(None, 0).to_toml(Bytes(1_000_000));
        assert!(text.contains("NOT KNOWN: 40 of 64") && text.contains("AT LEAST: a burst of 64"), "{text}");
        Experiment::parse(&text, "path", &[]).unwrap_or_else(|error| panic!("{error}\n{text}"));
    }
}
