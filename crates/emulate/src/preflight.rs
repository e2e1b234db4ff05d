//! What a scenario says of an emulation before it begins: nothing is made, run or written for one that cannot be.

mod every_point;
mod memory;

pub use every_point::can_all_be_emulated;

use crate::{EmulateError, MAX_EMULATED_FLOWS};
use farpath_experiment::{EmulationClock, FlowSpec, IpVersion, NoControl, Point, Scenario, Stack, Transport};
use farpath_path::{Direction, PerDirection};
use farpath_tcp::config::RateKind;
use farpath_units::Bytes;
#[cfg(target_os = "linux")]
use farpath_units::DATAGRAM_HEADERS;

/// Emulated datagrams hold their number.
pub(crate) const LEAST_MESSAGE: Bytes = Bytes(4);

/// Whether [`emulate`](crate::emulate()) has an answer for this point at all, on a machine that emulates.
///
/// # Errors
/// Datagrams without room for a number, too many flows, flows with hosts of their own, hosts that would need two stacks, a
/// congestion controller that the kernel lacks or does not take, or more under way than `emulate.memory` allows.
pub fn can_be_emulated(point: &Point) -> Result<(), EmulateError> {
    let scenario = &point.scenario;
    scenario.needs_no_foreign_host("emulate")?;
    if let Some(size) = shortest(scenario).filter(|&size| size < LEAST_MESSAGE) {
        return Err(EmulateError::ShortDatagram(size));
    }
    scenario.sends_all_messages()?;
    if scenario.flows.len() > MAX_EMULATED_FLOWS {
        return Err(EmulateError::TooManyFlows(scenario.flows.len()));
    }
    if let Some(flow) = scenario.flows.iter().position(|flow| !is_between_the_hosts(scenario, flow)) {
        return Err(EmulateError::OwnEnds(flow));
    }
    explicit_rate(scenario)?;
    stacks(scenario)?;
    bpf(scenario)?;
    controls(scenario)?;
    Ok(memory::check(scenario)?)
}

/// Length of the shortest datagram; `None` where there is TCP.
pub(crate) fn shortest(scenario: &Scenario) -> Option<Bytes> {
    sizes(scenario).min()
}

/// Length of the longest packet; zero where there is TCP.
#[cfg(target_os = "linux")]
pub(crate) fn longest(scenario: &Scenario) -> u32 {
    let headers = match scenario.emulate.ip {
        IpVersion::V4 => DATAGRAM_HEADERS,
        IpVersion::V6 => DATAGRAM_HEADERS + Bytes(20),
    };
    sizes(scenario).max().map_or(0, |size| (size + headers).0.min(65_535) as u32)
}

fn sizes(scenario: &Scenario) -> impl Iterator<Item = Bytes> {
    let streams = scenario.flows.iter().filter_map(|flow| flow.stream);
    let streams = streams.filter(|_| scenario.transport == Transport::Udp);
    streams.flat_map(|stream| [Some(stream.messages.size), stream.reply]).flatten()
}

/// Whether the kernel has the congestion controllers that its sockets are told, and those behind a grant.
fn controls(scenario: &Scenario) -> Result<(), EmulateError> {
    if scenario.transport != Transport::Tcp {
        return Ok(());
    }
    for flow in &scenario.flows {
        for (end, stack) in ["sender", "receiver"].into_iter().zip(<[&Stack; 2]>::from(scenario.ends(flow))) {
            let explicit = &stack.config.explicit_rate;
            if explicit.wanted.is_some() {
                let key = format!("{end}.explicit_rate.fallback");
                must_have(scenario, &key, explicit.fallback.name(), explicit.fallback.linux_name())?;
            }
            if has_bpf(scenario, flow, end) {
                continue;
            }
            let (kind, name) = (stack.config.congestion.control, control_of(flow, stack));
            match name.filter(|name| kind.linux_name() != Some(name)) {
                Some(name) => {
                    must_have(scenario, &format!("{end}.linux.congestion_control"), name, Some(name))?
                }
                None => must_have(scenario, &format!("{end}.congestion.control"), kind.name(), name)?,
            }
        }
    }
    Ok(())
}

/// Whether what is loaded into a kernel for an end can be.
pub(crate) fn bpf(scenario: &Scenario) -> Result<(), EmulateError> {
    let Some((key, object)) = scenario.bpf().next() else { return Ok(()) };
    let file = object.file.clone();
    if scenario.emulate.clock != EmulationClock::Real {
        return Err(EmulateError::NoBpfInGuest { key, file });
    }
    if asks(scenario) {
        return Err(EmulateError::BpfAndRate { key, file });
    }
    if cfg!(feature = "driver") { Ok(()) } else { Err(EmulateError::BpfWithoutDriver { key }) }
}

/// Whether a flow's `sender` or `receiver` has the controller that was loaded for its host: unless the flow asks for another.
pub(crate) fn has_bpf(scenario: &Scenario, flow: &FlowSpec, end: &str) -> bool {
    let (own, common) = match end {
        "sender" => (&flow.sender, &scenario.sender),
        _ => (&flow.receiver, &scenario.receiver),
    };
    let control = |stack: &Stack| stack.config.congestion.control;
    common.linux.bpf.is_some() && own.as_deref().is_none_or(|own| control(own) == control(common))
}

/// Linux's name of the controller that a flow's end has: what its stack says of the kernel counts before its parameters, but
/// where the flow has parameters of its own.
pub(crate) fn control_of<'a>(flow: &FlowSpec, stack: &'a Stack) -> Option<&'a str> {
    let (own, named) =
        (stack.config.congestion.control.linux_name(), stack.linux.congestion_control.as_deref());
    if flow.is_special() { own.or(named) } else { named.or(own) }
}

/// Whether the kernel that is asked has a controller: `asked` in the experiment, `name` in Linux.
fn must_have(scenario: &Scenario, key: &str, asked: &str, name: Option<&str>) -> Result<(), EmulateError> {
    // What a kernel in virtual time was made with is seen when it runs.
    let real = scenario.emulate.clock == EmulationClock::Real;
    if name.is_some_and(|name| !real || runs_here(name)) {
        return Ok(());
    }
    let kernel = if real { running_kernel() } else { "Linux".to_owned() };
    Err(NoControl { key: key.to_owned(), asked: asked.to_owned(), kernel }.into())
}

#[cfg(target_os = "linux")]
fn runs_here(name: &str) -> bool {
    farpath_emu::has_control(name)
}

/// Nothing is emulated here, and that is said before anything runs.
#[cfg(not(target_os = "linux"))]
fn runs_here(_: &str) -> bool {
    true
}

/// The running kernel, and the controllers that it has.
#[cfg(target_os = "linux")]
fn running_kernel() -> String {
    let available = farpath_emu::available_controls().join(", ");
    format!(
        "{}, which has {available} (net.ipv4.tcp_available_congestion_control)",
        crate::real_time::kernel_release()
    )
}

#[cfg(not(target_os = "linux"))]
fn running_kernel() -> String {
    crate::real_time::kernel_release()
}

/// Whether a flow's own ends, if it has any, differ in what sockets are told by themselves alone.
fn is_between_the_hosts(scenario: &Scenario, flow: &FlowSpec) -> bool {
    let fits = |own: &Option<Box<Stack>>, common: &Stack| {
        own.as_deref().is_none_or(|own| {
            let mut told = common.clone();
            told.name.clone_from(&own.name);
            told.config.congestion.control = own.config.congestion.control;
            match scenario.transport {
                // Programs that send datagrams ask by themselves, each for its own.
                Transport::Udp => {
                    told.config.explicit_rate = own.config.explicit_rate.clone();
                }
                Transport::Tcp => {
                    told.config.explicit_rate.wanted = own.config.explicit_rate.wanted;
                }
            }
            told == *own
        })
    };
    flow.access.is_zero() && fits(&flow.sender, &scenario.sender) && fits(&flow.receiver, &scenario.receiver)
}

/// Whether the driver knows what the ends want.
fn explicit_rate(scenario: &Scenario) -> Result<(), EmulateError> {
    if !asks(scenario) {
        return Ok(());
    }
    if scenario.transport != Transport::Tcp {
        // The programs that send them ask: structures are payload, in IPv4.
        return match scenario.emulate.ip {
            IpVersion::V4 => Ok(()),
            IpVersion::V6 => Err(EmulateError::DatagramsAskInV4),
        };
    }
    if ends(scenario).any(|end| end.config.explicit_rate.kind == RateKind::Composite) {
        return Err(EmulateError::NoComposite);
    }
    match scenario.emulate.clock {
        EmulationClock::Real => Ok(()),
        EmulationClock::Virtual(_) => Err(EmulateError::NoDriverInGuest),
    }
}

/// Whether an end asks for a rate.
pub(crate) fn asks(scenario: &Scenario) -> bool {
    ends(scenario).any(|end| end.config.explicit_rate.wanted.is_some())
}

fn ends(scenario: &Scenario) -> impl Iterator<Item = &Stack> {
    scenario.flows.iter().flat_map(|flow| <[&Stack; 2]>::from(scenario.ends(flow)))
}

/// The stack of each host. A host has one: data both ways needs the same at both ends.
pub(crate) fn stacks(scenario: &Scenario) -> Result<PerDirection<&Stack>, EmulateError> {
    let (sender, receiver) = (&scenario.sender, &scenario.receiver);
    let first = scenario.flows[0].direction;
    let one_way = scenario.flows.iter().all(|flow| flow.direction == first);
    if !one_way && (&sender.config, &sender.linux) != (&receiver.config, &receiver.linux) {
        return Err(EmulateError::TwoStacks);
    }
    Ok(match first {
        Direction::Forward => PerDirection { forward: sender, reverse: receiver },
        Direction::Reverse => PerDirection { forward: receiver, reverse: sender },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use farpath_experiment::Experiment;

    #[test]
    fn hosts_that_only_one_flow_has_are_not_emulated() {
        let text = r#"
            title = "T"
            path = [{ element = "delay", delay = "1 ms" }]
            [transfer]
            size = "1 kB"
            [[flow]]
            [[flow]]
        "#;
        let emulated = |own: &str| {
            let experiment = Experiment::parse(&format!("{text}{own}"), "t.toml", &[]).expect("sound");
            can_be_emulated(&experiment.point(0))
        };
        for own in ["access = \"1 ms\"", "sender.mss = \"536 B\""] {
            let refused = emulated(own).expect_err("flow 1 is special");
            assert!(matches!(refused, EmulateError::OwnEnds(1)), "{own}: {refused}");
        }
        emulated("sender.congestion.control = \"reno\"").expect("each socket has its own");
    }

    #[test]
    fn more_flows_than_an_emulation_has_are_refused() {
        let text = "title = \"T\"\npath = [{ element = \"delay\", delay = \"1 ms\" }]\n[transfer]\nsize = \"1 kB\"\n";
        let experiment =
            Experiment::parse(&format!("{text}[[flow]]\ncount = 501\n"), "t.toml", &[]).expect("sound");
        let refused = can_be_emulated(&experiment.point(0)).expect_err("500 at the most");
        assert!(matches!(refused, EmulateError::TooManyFlows(501)), "{refused}");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_controller_that_the_kernel_lacks_is_refused_with_those_that_it_has() {
        let text = "title = \"T\"\npath = [{ element = \"delay\", delay = \"1 ms\" }]\n[transfer]\nsize = \"1 kB\"\n";
        let experiment = |changes: &[&str]| {
            let changes: Vec<_> = changes.iter().map(|change| change.parse().expect("a change")).collect();
            Experiment::parse(text, "t.toml", &changes).expect("sound")
        };
        let emulated = |changes: &[&str]| {
            can_be_emulated(&experiment(changes).point(0)).map_err(|error| error.to_string())
        };
        let own = "flow=[{}, {sender={congestion={control=\"bbr3\"}}}]";
        let behind = ["sender.explicit_rate.wanted=1 Mbit/s", "sender.explicit_rate.fallback=bbr3"];
        for (changes, key, asked) in [
            (&["sender.congestion.control=bbr3"][..], "sender.congestion.control", "bbr3"),
            (&["receiver.congestion.control=bbr3"], "receiver.congestion.control", "bbr3"),
            (&[own], "sender.congestion.control", "bbr3"),
            (&behind, "sender.explicit_rate.fallback", "bbr3"),
            (&["sender.linux.congestion_control=none-such"], "sender.linux.congestion_control", "none-such"),
        ] {
            let refused = emulated(changes).expect_err(asked);
            assert!(refused.starts_with(&format!("{key}: expected")), "{refused}");
            for word in [&format!("found `{asked}`"), "tcp_available_congestion_control", "reno"] {
                assert!(refused.contains(word), "`{word}` is not in: {refused}");
            }
        }
        emulated(&["sender.congestion.control=bbr3", "sender.linux.congestion_control=reno"])
            .expect("the stack names another for the kernel");
        let virtual_time = ["sender.congestion.control=bbr3", "emulate.clock=virtual"];
        assert!(emulated(&virtual_time).expect_err("no Linux has it").contains("found `bbr3`"));
    }
}
