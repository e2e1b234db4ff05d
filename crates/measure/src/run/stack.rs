//! What a stack asks of sockets and kernels on both hosts, and what of it they do not do.

use crate::protocol::SocketAsked;
use crate::said::Said;
use farpath_emu::KernelProfile;
use farpath_experiment::{FlowSpec, Scenario, Stack};
use farpath_path::Direction;
use farpath_traffic::Role;
use farpath_units::{Bytes, Duration};
use std::collections::BTreeMap;

/// What TCP_MAXSEG takes.
const MSS: std::ops::RangeInclusive<u64> = 88..=32_767;
/// TCP_RTO_MIN_US only lowers this.
const RTO_MIN: Duration = Duration::from_millis(200);
/// What TCP_RTO_MAX_MS takes, the kernel's own value being the largest.
const RTO_MAX: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(120));
/// TCP_INIT_CWND.
const INITIAL_WINDOW: u32 = 10;

/// Both ends of the flows, each with its stack.
pub struct Ends {
    place: Direction,
    sender: End,
    receiver: End,
    /// What this host does in the flows: send, receive, or both.
    local: Vec<Role>,
}

struct End {
    name: String,
    profile: KernelProfile,
    asked: SocketRequest,
    unmatched: Vec<String>,
    /// Sysctls that a socket option stands for.
    covered: Vec<&'static str>,
}

/// What is asked of one end.
#[derive(Debug, Clone)]
pub struct SocketRequest {
    pub options: SocketAsked,
    pub read_rate: Option<u64>,
    pub low_water: Option<u64>,
}

impl Ends {
    pub fn from_scenario(scenario: &Scenario, place: Direction) -> Ends {
        let (sender, receiver) = (&scenario.sender, &scenario.receiver);
        let mut ends = Ends {
            place,
            sender: End::from_stacks(sender, receiver),
            receiver: End::from_stacks(receiver, sender),
            local: Vec::new(),
        };
        for spec in &scenario.flows {
            let role = ends.role(spec);
            if !ends.local.contains(&role) {
                ends.local.push(role);
            }
        }
        ends
    }

    /// What this host does in a flow.
    pub fn role(&self, spec: &FlowSpec) -> Role {
        if spec.direction == self.place { Role::Sender } else { Role::Receiver }
    }

    fn end(&self, role: Role) -> &End {
        match role {
            Role::Sender => &self.sender,
            Role::Receiver => &self.receiver,
        }
    }

    /// What is asked of the end with that role.
    pub fn socket(&self, role: Role) -> SocketRequest {
        self.end(role).asked.clone()
    }

    /// The stack of this host, or of the peer.
    pub fn name(&self, local: bool) -> &str {
        let role = self.local[0];
        &self.end(if local { role } else { super::other(role) }).name
    }

    /// The sysctls that either stack asks for.
    pub fn sysctls(&self) -> Vec<String> {
        let both = self.sender.profile.sysctls.iter().chain(&self.receiver.profile.sysctls);
        let mut names: Vec<String> = both.map(|sysctl| sysctl.name.clone()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// What this host's kernel, whose sysctls have these values, does otherwise.
    pub fn local(&self, values: &[(String, Option<Said>)]) -> Vec<String> {
        self.local.iter().flat_map(|role| self.end(*role).unmatched(values)).collect()
    }

    /// The same of the peer's.
    pub fn peer(&self, values: &[(String, Option<Said>)]) -> Vec<String> {
        self.local.iter().flat_map(|role| self.end(super::other(*role)).unmatched(values)).collect()
    }
}

impl End {
    fn from_stacks(stack: &Stack, other: &Stack) -> End {
        let (config, profile) = (&stack.config, KernelProfile::of_stack(stack, other));
        let mut unmatched = profile.unmatched.clone();
        let mut covered = Vec::new();
        let growing = stack.linux.autotuning;
        let ns = |time: Duration| time.as_nanos();
        let options = SocketAsked {
            congestion_control: profile.congestion_control.clone(),
            receive_buffer: (!growing).then_some(config.receive.buffer.0),
            send_buffer: config.send.buffer.filter(|_| !growing).map(|buffer| buffer.0),
            nodelay: profile.nodelay,
            mss: Some(profile.mss.0).filter(|mss| MSS.contains(mss)),
            rto_min_ns: Some(config.rto.min).filter(|min| *min < RTO_MIN).map(ns),
            rto_max_ns: Some(config.rto.max).filter(|max| *max >= RTO_MAX.0 && *max < RTO_MAX.1).map(ns),
            delack_max_ns: profile.delayed_ack_max.map(ns),
        };
        if options.receive_buffer.is_some() {
            // SO_RCVBUF ends autotuning.
            covered.extend(["net.ipv4.tcp_rmem", "net.ipv4.tcp_moderate_rcvbuf"]);
            if profile.window_clamp.is_some() {
                unmatched.push(format!(
                    "receive.buffer: SO_RCVBUF of {} stands for it: the kernel announces about as much, not just that",
                    config.receive.buffer
                ));
            }
        }
        if options.send_buffer.is_some() {
            covered.push("net.ipv4.tcp_wmem");
        }
        if options.rto_max_ns.is_some() {
            covered.push("net.ipv4.tcp_rto_max_ms");
        }
        let route = &profile.route;
        if let Some(segments) = route.initcwnd.filter(|segments| *segments != INITIAL_WINDOW) {
            unmatched.push(format!(
                "congestion.initial_window: {segments} is a route's to say (ip route ... initcwnd {segments})"
            ));
        }
        let floor = route.rto_min_ms.map(u64::from).map(Duration::from_millis);
        if let Some(floor) = floor.filter(|floor| *floor > RTO_MIN) {
            unmatched.push(format!("rto.min: {floor} is a route's to say (ip route ... rto_min {floor})"));
        }
        if route.quickack {
            unmatched.push("receive.ack_every: 1 is a route's to say (ip route ... quickack 1)".to_owned());
        }
        if options.mss.is_none() {
            unmatched.push(format!("mss: the kernel's TCP_MAXSEG does not take {}", Bytes(profile.mss.0)));
        }
        if config.explicit_rate.wanted.is_some() {
            unmatched.push(
                "explicit_rate.wanted: a measurement asks nobody; `farpath explicit-rate driver attach --cgroup DIR` on both hosts does"
                    .to_owned(),
            );
        }
        let read_rate = profile.read_rate;
        let low_water = profile.receive_low_water.map(|bytes| bytes.0);
        let asked = SocketRequest { options, read_rate, low_water };
        End { name: stack.name.clone(), profile, asked, unmatched, covered }
    }

    fn unmatched(&self, values: &[(String, Option<Said>)]) -> Vec<String> {
        let values: BTreeMap<&str, Option<&Said>> =
            values.iter().map(|(name, value)| (name.as_str(), value.as_ref())).collect();
        let mut unmatched = self.unmatched.clone();
        for sysctl in &self.profile.sysctls {
            let name = sysctl.name.as_str();
            if self.covered.contains(&name) {
                continue;
            }
            match values.get(name).copied().flatten() {
                Some(value) if value.as_str() == sysctl.value => {}
                Some(value) => unmatched
                    .push(format!("{}: {name} is {value} there, and would be {}", sysctl.why, sysctl.value)),
                None => match sysctl.missing() {
                    Ok(()) => {}
                    Err(instead) => {
                        unmatched.push(instead.unwrap_or_else(|| format!("{}: it has no {name}", sysctl.why)))
                    }
                },
            }
        }
        unmatched
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farpath_experiment::Experiment;

    fn ends(stack: &str, more: &str) -> Ends {
        let text = format!(
            "title = \"t\"\npath = \"noisy-channel\"\n[sender]\nstack = \"{stack}\"\n{more}\n[transfer]\nsize = \"1 MB\"\n"
        );
        let experiment = Experiment::parse(&text, "t", &[]).expect("good");
        Ends::from_scenario(&experiment.point(0).scenario, Direction::Forward)
    }

    #[test]
    fn a_stack_that_sets_its_buffers_sets_them_on_the_socket() {
        let old = ends("reno-1990", "");
        let asked = old.socket(Role::Receiver).options;
        assert_eq!(asked.congestion_control.as_deref(), Some("reno"));
        assert!(asked.receive_buffer.is_some() && asked.mss.is_some());
        let today = ends("linux-6", "").socket(Role::Receiver).options;
        assert_eq!((today.receive_buffer, today.send_buffer), (None, None), "they grow");
        assert_eq!(today.congestion_control.as_deref(), Some("cubic"));
    }

    #[test]
    fn what_a_socket_cannot_be_told_is_listed_and_what_is_so_already_is_not() {
        let ends = ends("linux-6", "congestion.initial_window = 3");
        let sysctls = ends.sender.profile.sysctls.iter();
        let all_as_asked: Vec<(String, Option<Said>)> =
            sysctls.map(|one| (one.name.clone(), Some(one.value.as_str().into()))).collect();
        let unmatched = ends.local(&all_as_asked);
        assert!(
            unmatched.iter().any(|text| text.starts_with("congestion.initial_window: 3")),
            "{unmatched:?}"
        );
        assert!(!unmatched.iter().any(|text| text.contains("is 1 there")), "{unmatched:?}");
        let mut other = all_as_asked.clone();
        for (name, value) in &mut other {
            if name == "net.ipv4.tcp_sack" {
                *value = Some("0".into());
            }
        }
        let more = ends.local(&other);
        assert_eq!(more.len(), unmatched.len() + 1);
        assert!(more.iter().any(|text| text.contains("tcp_sack is 0 there, and would be 1")), "{more:?}");
    }
}
