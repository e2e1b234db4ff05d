//! What is allowed and probably not meant: a warning means "look before you trust this".

use crate::{FlowSpec, Scenario, Transport};
use core::fmt;
use farpath_elements::{ElementSpec, Oversize, base_delay, routers};
use farpath_path::Direction;
use farpath_tcp::HEADERS;
use farpath_units::{Bytes, Duration, Rate};

/// Something that is allowed and probably not meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// What it is, in one word for programs: `rto-floor`, `rto-max`, `window-scaling`, `window-field`,
    /// `window-below-segment`, `path-ends`, `late-flows`, `copies`, `asks-too-little`, `path`, `ttl`, `mtu`.
    pub id: &'static str,
    /// The key that it is about.
    pub key: String,
    /// What is the matter.
    pub text: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.key, self.text)
    }
}

impl Warning {
    fn new(id: &'static str, key: &str, text: String) -> Warning {
        Warning { id, key: key.to_owned(), text }
    }
}

/// An element that nothing passes any more while the run still goes on.
fn ends(scenario: &Scenario, warnings: &mut Vec<Warning>) {
    for element in &scenario.path {
        let ends = Direction::BOTH.into_iter().filter_map(|way| element.spec().ends(way)).min();
        let Some(end) = ends.filter(|end| *end < scenario.horizon) else { continue };
        let text = format!(
            "nothing passes after {end}: what is not through by then never is, and a sender that does not give up goes on \
             until the horizon of {}",
            scenario.horizon
        );
        warnings.push(Warning::new("path-ends", &format!("path.{}", element.name), text));
    }
}

/// A packet that arrives more often than this is hardly meant to.
const MANY_COPIES: f64 = 16.0;

/// Largest window without scaling (RFC 9293 §3.1), and with it (RFC 7323 §2.3).
const UNSCALED_WINDOW: Bytes = Bytes(65_535);
const SCALED_WINDOW: Bytes = Bytes(65_535 << 14);

/// Time from sending a full segment on an empty path to its ACK: propagation and serialization.
pub fn base_rtt(scenario: &Scenario, data: Direction) -> Duration {
    base_rtt_over(&scenario.path, scenario.sender.config.mss.min(scenario.receiver.config.mss), data)
}

/// The same over the path as one flow sees it, between its own ends.
pub fn base_rtt_of(scenario: &Scenario, flow: &FlowSpec) -> Duration {
    let (sender, receiver) = scenario.ends(flow);
    base_rtt_over(&scenario.path_of(flow), sender.config.mss.min(receiver.config.mss), flow.direction)
}

pub(crate) fn base_rtt_over(path: &[ElementSpec], mss: Bytes, data: Direction) -> Duration {
    base_delay(path, data, mss + HEADERS) + base_delay(path, data.opposite(), HEADERS)
}

/// By how much the 99th percentile of the packets of a run on the running kernel may be late before the run is void.
///
/// Where the file does not say: 1 % of the shortest round trip among its flows. What is measured of a transfer goes with
/// the round-trip time, so that this keeps an emulator's own error below 1 % of it. At least 200 us: an unloaded machine's
/// own scheduling comes to half of that, and paths of a few milliseconds could not be run anywhere.
pub fn lateness_budget(scenario: &Scenario) -> Duration {
    let shortest = || scenario.flows.iter().map(|flow| base_rtt(scenario, flow.direction)).min();
    let derived = || (shortest().unwrap_or(Duration::ZERO) / 100).max(Duration::from_micros(200));
    scenario.emulate.lateness.unwrap_or_else(derived)
}

/// Everything in `scenario` that is worth a warning.
pub fn warnings(scenario: &Scenario) -> Vec<Warning> {
    let mut warnings: Vec<Warning> = Vec::new();
    for text in scenario.path.iter().flat_map(|element| element.warnings()) {
        let (name, text) = text.split_once(": ").unwrap_or(("", &text));
        warnings.push(Warning::new("path", &format!("path.{name}"), text.to_owned()));
    }
    ends(scenario, &mut warnings);
    copies(scenario, &mut warnings);
    asks_too_little(scenario, &mut warnings);
    if scenario.transport == Transport::Tcp {
        long_packets(scenario, &mut warnings);
        // What somebody else's TCP does about its TTL, timers and windows no parameter says.
        if scenario.foreign_hosts().next().is_none() {
            hops(scenario, &mut warnings);
            timers(scenario, &mut warnings);
            windows(scenario, &mut warnings);
        }
    }
    let late = scenario.flows.iter().filter(|flow| flow.start >= scenario.horizon).count();
    if late > 0 {
        let all = scenario.flows.len();
        let text = format!("{late} of {all} flows start only at {} or later", scenario.horizon);
        warnings.push(Warning::new("late-flows", "horizon", text));
    }
    warnings
}

/// Streams of datagrams that ask for less than they send: what is over waits at the sender, longer and longer.
fn asks_too_little(scenario: &Scenario, warnings: &mut Vec<Warning>) {
    for (number, flow) in scenario.flows.iter().enumerate() {
        let Some(stream) = flow.stream.filter(|_| scenario.transport != Transport::Tcp) else { continue };
        let asked = &scenario.ends(flow).0.config.explicit_rate;
        let Some(wanted) = asked.wanted else { continue };
        let wanted = wanted.bit_per_s() + asked.guaranteed.map_or(0, Rate::bit_per_s);
        let needed = stream.messages.datagrams_bit_per_s();
        // The code of a rate is rounded up by less than a 512th.
        if needed.is_finite() && needed > wanted as f64 * (1.0 + 1.0 / 512.0) {
            let text = format!(
                "flow {number} asks for {:.3} Mbit/s, and its datagrams with their headers need {:.3}: they wait longer and longer",
                wanted as f64 / 1e6,
                needed / 1e6
            );
            warnings.push(Warning::new("asks-too-little", "explicit_rate.wanted", text));
            return;
        }
    }
}

/// Elements that duplicate, one behind the other: each doubles what the one before it has made.
fn copies(scenario: &Scenario, warnings: &mut Vec<Warning>) {
    for direction in Direction::BOTH {
        let share = |element: &ElementSpec| element.spec().copies(direction).fraction();
        let copies: f64 = scenario.path.iter().map(|element| 1.0 + share(element)).product();
        if copies > MANY_COPIES {
            let text = format!(
                "{direction}: a packet arrives {copies:.0} times in the mean: a run takes as much longer"
            );
            warnings.push(Warning::new("copies", "path", text));
        }
    }
}

fn hops(scenario: &Scenario, warnings: &mut Vec<Warning>) {
    for flow in Direction::BOTH {
        if scenario.flows.iter().all(|spec| spec.direction != flow) {
            continue;
        }
        let ends = [("sender", &scenario.sender, flow), ("receiver", &scenario.receiver, flow.opposite())];
        for (end, stack, way) in ends {
            let (routers, ttl) = (routers(&scenario.path, way), stack.config.send.ttl);
            if routers >= u32::from(ttl) {
                let text =
                    format!("{ttl} is not above the {routers} routers {way}: every packet dies on its way");
                warnings.push(Warning::new("ttl", &format!("{end}.send.ttl"), text));
            }
        }
    }
}

fn long_packets(scenario: &Scenario, warnings: &mut Vec<Warning>) {
    let longest = scenario.sender.config.mss.min(scenario.receiver.config.mss) + HEADERS;
    for element in &scenario.path {
        let Some((mtu, oversize)) = element.spec().mtu() else { continue };
        let lost = match oversize {
            Oversize::Fragment => continue,
            Oversize::Refuse => "every full segment is dropped without a word",
            Oversize::Icmp => {
                "every full segment is dropped; an emulated sender is told, the simulated one knows no path MTU discovery"
            }
        };
        if longest > mtu {
            let text = format!("packets of {longest} are over the MTU of {mtu}: {lost}");
            warnings.push(Warning::new("mtu", &format!("path.{}.oversize", element.name), text));
        }
    }
}

fn timers(scenario: &Scenario, warnings: &mut Vec<Warning>) {
    let (rto, receive) = (&scenario.sender.config.rto, &scenario.receiver.config.receive);
    // One flow of each direction is as good as all of them.
    let flows = |&way: &Direction| scenario.flows.iter().any(|flow| flow.direction == way);
    let ways: Vec<Direction> = Direction::BOTH.into_iter().filter(flows).collect();
    let delay = if receive.ack_every > 1 { receive.ack_delay } else { Duration::ZERO };
    for &way in &ways {
        // After the SYN's sample R the timeout is R + 4 R/2 (RFC 6298 section 2.2), whatever the floor: from a round trip of
        // half the ACK delay on it outlasts the delay by itself, and the samples that follow have the delay in them.
        let syn =
            base_delay(&scenario.path, way, HEADERS) + base_delay(&scenario.path, way.opposite(), HEADERS);
        let (timeout, answer) = (rto.timeout(syn, syn / 2), base_rtt(scenario, way) + delay);
        // At the ceiling it is the ceiling that is too low.
        if timeout <= answer && timeout < rto.max {
            let text = format!(
                "{} lets a lone segment time out before its ACK, which can come {answer:.3} after it, {delay} of that \
                 withheld: after the SYN's round trip of {syn:.3} the timeout is {timeout:.3}",
                rto.min
            );
            warnings.push(Warning::new("rto-floor", "sender.rto.min", text));
            break;
        }
    }
    for direction in ways {
        let rtt = base_rtt(scenario, direction);
        if rtt > rto.max {
            let text = format!(
                "{} is below the round-trip time of {rtt:.3}: every segment times out before its ACK can come",
                rto.max
            );
            warnings.push(Warning::new("rto-max", "sender.rto.max", text));
            break;
        }
    }
}

fn windows(scenario: &Scenario, warnings: &mut Vec<Warning>) {
    let (sender, receiver) = (&scenario.sender.config, &scenario.receiver.config);
    let buffer = receiver.receive.buffer;
    let scaling = sender.scales_with(receiver);
    let mut warn = |id, text| warnings.push(Warning::new(id, "receiver.receive.buffer", text));
    if buffer > UNSCALED_WINDOW && !scaling {
        let text = format!(
            "without window scaling at both ends the window stops at {UNSCALED_WINDOW}; the other {} are never \
             announced",
            buffer - UNSCALED_WINDOW
        );
        warn("window-scaling", text);
    } else if buffer > SCALED_WINDOW {
        warn("window-field", format!("the window stops at {SCALED_WINDOW}"));
    }
    let segment = sender.mss.min(receiver.mss);
    if buffer < segment {
        let text = format!(
            "{buffer} is below one segment of {segment}: every segment waits for the ACK of the one before it"
        );
        warn("window-below-segment", text);
    }
}
