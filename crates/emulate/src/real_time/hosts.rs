//! Two hosts configured like their stacks.

use super::bpf::{self, Controls};
use crate::EmulateError;
use crate::preflight::{self, longest, stacks};
use farpath_emu::{Backend, Host, HostSettings, KernelProfile, Sysctl};
use farpath_experiment::{FlowSpec, IpVersion, Scenario, Stack, Transport, host_name};
use farpath_observe::capture::FIRST_PORT;
use farpath_observe::passive::FlowPorts;
use farpath_path::{Direction, PerDirection};
use farpath_run::Provenance;
use farpath_units::Bytes;
use std::net::{IpAddr, SocketAddr};

/// The hosts at the ends of the path, by the direction of what they send: `forward` is the near one's.
pub(super) struct Hosts {
    pub of: PerDirection<Host>,
    pub profile: PerDirection<KernelProfile>,
    addresses: PerDirection<IpAddr>,
    /// Whose TCP it is.
    pub kernel: String,
    /// What they were told.
    pub settings: Vec<String>,
    /// What they cannot be told.
    pub caveats: Vec<String>,
    /// What was loaded for them.
    controls: Controls,
}

/// Two hosts, what their segments may announce, and what was loaded for them.
type ProgramHosts = (PerDirection<Host>, PerDirection<Option<Bytes>>, Controls);

impl Hosts {
    pub fn configured(scenario: &Scenario) -> Result<Hosts, EmulateError> {
        Hosts::configured_from(scenario, HostSettings::near(), false)
    }

    /// Programs of the user choose no controller: for these the `route` says it.
    fn configured_from(scenario: &Scenario, near: HostSettings, route: bool) -> Result<Hosts, EmulateError> {
        let stacks = sized(scenario)?;
        let controls = Controls::load(scenario, PerDirection::from_fn(|host| &stacks[host]))?;
        let mut profile = PerDirection {
            forward: KernelProfile::of_stack(&stacks.forward, &stacks.reverse),
            reverse: KernelProfile::of_stack(&stacks.reverse, &stacks.forward),
        };
        for host in Direction::BOTH {
            if let Some(name) = controls.name(host) {
                profile[host].congestion_control = Some(name.to_owned());
            }
        }
        let options = &scenario.emulate;
        let backend = match options.backend {
            farpath_experiment::Backend::Auto => Backend::Auto,
            farpath_experiment::Backend::Tun => Backend::Tun,
            farpath_experiment::Backend::Packet => Backend::Packet,
        };
        let host = |plain: HostSettings, profile: &KernelProfile| {
            // A datagram leaves in one piece: fragments are the radio's.
            let mtu = profile.mtu(options.ip).max(longest(scenario));
            let congestion_control = profile.congestion_control.clone().filter(|_| route);
            Host::new(&HostSettings { mtu, metrics: profile.route, congestion_control, backend, ..plain })
        };
        let of = PerDirection {
            forward: host(near, &profile.forward)?,
            reverse: host(HostSettings::far(), &profile.reverse)?,
        };
        let address = |settings: HostSettings| match options.ip {
            IpVersion::V4 => IpAddr::V4(settings.address.0),
            IpVersion::V6 => IpAddr::V6(settings.address.1),
        };
        let addresses =
            PerDirection { forward: address(HostSettings::near()), reverse: address(HostSettings::far()) };
        let mut hosts = Hosts {
            of,
            profile,
            addresses,
            kernel: kernel(),
            settings: Vec::new(),
            caveats: Vec::new(),
            controls,
        };
        for host in Direction::BOTH {
            if let Some(object) =
                stacks[host].linux.bpf.as_ref().filter(|_| hosts.controls.name(host).is_some())
            {
                let (place, object) = (host_name(host), bpf::described(object));
                hosts.settings.push(format!("{place}: BPF congestion control {object}"));
            }
        }
        hosts.put_on(stacks.map(|stack| stack.name), scenario.transport)?;
        Ok(hosts)
    }

    /// Tells each host what its profile says, and notes what was told and what cannot be.
    fn put_on(&mut self, stacks: PerDirection<String>, transport: Transport) -> Result<(), EmulateError> {
        for direction in Direction::BOTH {
            let (host, profile) = (&self.of[direction], &self.profile[direction]);
            let place = host_name(direction);
            let missing = profile.tell(host)?;
            let told = profile.sysctls.iter().filter(|sysctl| !missing.contains(sysctl));
            self.settings.extend(told.map(|Sysctl { name, value, .. }| format!("{place}: {name} = {value}")));
            let mut unmatched = profile.unmatched.clone();
            for sysctl in missing {
                if let Err(instead) = sysctl.missing() {
                    let lacks = || format!("this kernel does not have {}", sysctl.name);
                    unmatched.push(instead.unwrap_or_else(lacks));
                }
            }
            let control = profile.congestion_control.iter();
            self.settings.extend(control.map(|name| format!("{place}: TCP_CONGESTION {name}")));
            self.settings.push(format!("{place}: route{}", profile.route));
            if let Some(clamp) = profile.window_clamp {
                self.settings.push(format!("{place}: announced windows brought down to {clamp} on the path"));
            }
            if let Some(why) = host.instead_of_tun() {
                self.caveats.push(format!("packet sockets in place of TUN: {why}"));
            }
            if !unmatched.is_empty() && transport == Transport::Tcp {
                let stack = &stacks[direction];
                let caveat = format!(
                    "this kernel does some things otherwise than {stack}: `farpath stacks {stack} --linux` lists them"
                );
                // Both ends usually have the same stack.
                if !self.caveats.contains(&caveat) {
                    self.caveats.push(caveat);
                }
                self.settings
                    .extend(unmatched.into_iter().map(|text| format!("{place}: not matched: {text}")));
            }
        }
        Ok(())
    }

    /// Says whose TCP it is, what it was told, and what it cannot be.
    pub fn enter(&self, provenance: &mut Provenance) {
        provenance.kernel.clone_from(&self.kernel);
        provenance.settings.clone_from(&self.settings);
        provenance.caveats.extend(self.caveats.iter().cloned());
    }

    /// Two hosts for programs of the user: configured like the scenario's stacks, or as this kernel makes them. With the largest receive
    /// windows that segments of each direction may announce, and with what was loaded for them. `provenance` says what they are.
    pub fn for_programs(
        scenario: &Scenario,
        near: HostSettings,
        like_stacks: bool,
        provenance: &mut Provenance,
    ) -> Result<ProgramHosts, EmulateError> {
        if like_stacks {
            let configured = Hosts::configured_from(scenario, near, true)?;
            configured.enter(provenance);
            let clamp = configured.clamp();
            return Ok((configured.of, clamp, configured.controls));
        }
        provenance.kernel = kernel();
        let of = PerDirection { forward: Host::new(&near)?, reverse: Host::new(&HostSettings::far())? };
        Ok((of, PerDirection::default(), Controls::default()))
    }

    /// Largest receive windows that segments of each direction may announce.
    pub fn clamp(&self) -> PerDirection<Option<Bytes>> {
        PerDirection::from_fn(|direction| self.profile[direction].window_clamp)
    }

    /// How the flows are known by their packets.
    pub fn ports(&self, flows: &[FlowSpec]) -> Vec<FlowPorts> {
        let of = |(port, flow): (u16, &FlowSpec)| FlowPorts {
            direction: flow.direction,
            sender: port,
            receiver: port,
        };
        (FIRST_PORT..).zip(flows).map(of).collect()
    }

    /// The address of a flow at the host that sends this way.
    pub fn address(&self, host: Direction, flow: u16) -> SocketAddr {
        SocketAddr::new(self.addresses[host], FIRST_PORT + flow)
    }
}

/// Whether programs of the user have what the stacks have of BPF: it is loaded, and gone again.
///
/// # Errors
/// They are not to have it, or it cannot be loaded.
pub fn can_run_programs(scenario: &Scenario, like_stacks: bool) -> Result<(), EmulateError> {
    let Some((key, object)) = scenario.bpf().next() else { return Ok(()) };
    if !like_stacks {
        return Err(EmulateError::BpfUnlikeStacks { key, file: object.file.clone() });
    }
    preflight::bpf(scenario)?;
    Controls::load(scenario, stacks(scenario)?).map(drop)
}

/// The stack of each host, with the buffers that what its flows ask for takes.
fn sized(scenario: &Scenario) -> Result<PerDirection<Stack>, EmulateError> {
    let mut stacks = stacks(scenario)?.map(Stack::clone);
    for flow in &scenario.flows {
        let (sender, receiver) = scenario.sized_configs(flow);
        let send = &mut stacks[flow.direction].config.send;
        send.buffer = send.buffer.zip(sender.send.buffer).map(|(one, other)| one.max(other));
        let receive = &mut stacks[flow.direction.opposite()].config.receive;
        receive.buffer = receive.buffer.max(receiver.receive.buffer);
    }
    Ok(stacks)
}

/// Name and release of the running kernel.
pub fn kernel() -> String {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("Linux {}", release.trim())
}
