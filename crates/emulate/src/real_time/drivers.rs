//! Explicit rate between the hosts: the driver, on the device of each whose ends ask.

use super::Granted;
use super::hosts::Hosts;
use crate::EmulateError;
use farpath_driver::{Device, Driver, DriverError, Flow, Missing, Settings};
use farpath_emu::DEVICE;
use farpath_experiment::{NoControl, Scenario, Stack};
use farpath_observe::explicit_rate::outcome_in_words;
use farpath_path::{Direction, PerDirection};
use farpath_sim::{DriverSettings, Plain, RateOutcome, Trip};
use farpath_tcp::Config;
use farpath_tcp::config::CongestionControlKind;
use farpath_traffic::SocketOptions;
use farpath_units::Rate;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// What the machine or the user lacks for it. Asked for each run of a sweep; megabytes are read for it.
static MISSING: LazyLock<Vec<Missing>> = LazyLock::new(farpath_driver::missing);

/// The driver of each host that asks, gone with the run.
pub(super) struct Drivers(PerDirection<Option<HostDriver>>);

struct HostDriver {
    driver: Driver,
    /// What sockets that ask set `TCP_CONGESTION` to.
    control: String,
    /// The most that a socket of this host asks for.
    wanted: Rate,
}

impl Drivers {
    /// Attaches it to the device of each host whose flows' ends ask.
    ///
    /// # Errors
    /// One asks, and the machine or the user lacks something for it.
    pub fn attach(scenario: &Scenario, hosts: &Hosts) -> Result<Drivers, EmulateError> {
        let of = |host: Direction| -> Result<Option<HostDriver>, EmulateError> {
            let ends = scenario.flows.iter().map(|flow| end_at(scenario, flow.direction == host, flow));
            let asking =
                ends.filter_map(|end| Some((DriverSettings::from_config(&end.config.explicit_rate)?, end)));
            let Some((asked, stack)) = asking.max_by_key(|(asked, _)| asked.wanted) else { return Ok(None) };
            let wanted = asked.wanted;
            if !MISSING.is_empty() {
                return Err(DriverError::Missing(MISSING.clone()).into());
            }
            let mut peers = scenario.flows.iter().map(|flow| end_at(scenario, flow.direction != host, flow));
            let settings = Settings {
                // It is the peer that is told, and this host that tells it.
                early_window: peers.any(|peer| peer.config.explicit_rate.early_window),
                ..settings(asked, &stack.config, hosts.profile[host].congestion_control.as_deref())?
            };
            let (mut driver, control) = loaded(&settings)?;
            hosts.of[host].namespace().run(|| driver.attach(&Device::named(DEVICE)?, wanted))??;
            Ok(Some(HostDriver { driver, control, wanted }))
        };
        Ok(Drivers(PerDirection { forward: of(Direction::Forward)?, reverse: of(Direction::Reverse)? }))
    }

    /// Has a socket of this host ask, if its end does.
    pub fn ask(&self, host: Direction, end: &Config, socket: &mut SocketOptions) {
        let (Some(wanted), Some(driver)) = (end.explicit_rate.wanted, &self.0[host]) else { return };
        socket.congestion_control = Some(driver.control.clone());
        socket.max_pacing_rate = (wanted < driver.wanted).then_some(wanted);
    }

    /// What came of asking for each flow, at its data sender.
    pub fn granted(&self, scenario: &Scenario, hosts: &Hosts) -> Result<Vec<Granted>, EmulateError> {
        let mut seen = PerDirection::<Vec<Flow>>::default();
        for host in Direction::BOTH {
            if let Some(HostDriver { driver, .. }) = &self.0[host] {
                seen[host] = driver.past_flows()?;
                // The address of one that is still there may have been another's before.
                seen[host].extend(driver.flows()?);
            }
        }
        let of = |(number, flow): (u16, &farpath_experiment::FlowSpec)| {
            let local = hosts.address(flow.direction, number);
            let found = seen[flow.direction].iter().rev().find(|flow| flow.local == local);
            found.map_or((None, None), |flow| {
                let rate = flow.rate().map(|rate| rate.bit_per_s() as f64);
                (Some(outcome(flow.outcome).map_or("detached", outcome_in_words).into()), rate)
            })
        };
        Ok((0..).zip(&scenario.flows).map(of).collect())
    }
}

/// The end of a flow at its data sender's host, or at the other.
fn end_at<'a>(scenario: &'a Scenario, sends: bool, flow: &'a farpath_experiment::FlowSpec) -> &'a Stack {
    let (sender, receiver) = scenario.ends(flow);
    if sends { sender } else { receiver }
}

/// Linux's name of a controller; the preflight checks that it has one.
fn control(kind: CongestionControlKind) -> Result<&'static str, NoControl> {
    kind.linux_name().ok_or_else(|| NoControl {
        key: "congestion.control".to_owned(),
        asked: kind.name().to_owned(),
        kernel: "Linux".to_owned(),
    })
}

/// Sockets that do not ask have the controller `plain`, or the stack's own.
fn settings(asked: DriverSettings, config: &Config, plain: Option<&str>) -> Result<Settings, EmulateError> {
    let plain = plain.map_or_else(|| control(config.congestion.control), Ok)?;
    Ok(Settings {
        request: asked.request,
        fallback: control(config.explicit_rate.fallback)?.to_owned(),
        ..Settings::new(plain)
    })
}

/// Under a name that nobody has: it can be registered once only on a machine, whatever the namespaces.
fn loaded(settings: &Settings) -> Result<(Driver, String), DriverError> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    loop {
        let number = NEXT.fetch_add(1, Ordering::Relaxed) & 0xf_ffff;
        let control = format!("fp{:x}_{number:x}", std::process::id());
        match Driver::load_as(&control, settings) {
            Err(DriverError::NameTaken(_)) => {}
            loaded => return Ok((loaded?, control)),
        }
    }
}

/// As a simulation has it; `None` where the driver was gone before the flow.
fn outcome(outcome: farpath_driver::Outcome) -> Option<RateOutcome> {
    use farpath_driver::Outcome;
    Some(match outcome {
        Outcome::Waiting => RateOutcome::Waiting,
        Outcome::Granted => RateOutcome::Granted,
        Outcome::PeerIncapable => RateOutcome::Plain(Plain::PeerIncapable),
        Outcome::NoRouter => RateOutcome::Plain(Plain::NoRouter),
        Outcome::Refused => RateOutcome::Plain(Plain::Refused),
        Outcome::Withdrawn => RateOutcome::Plain(Plain::Withdrawn),
        Outcome::Loss => RateOutcome::GivenUp(Trip::Loss),
        Outcome::Queue => RateOutcome::GivenUp(Trip::Queue),
        Outcome::Mark => RateOutcome::GivenUp(Trip::Mark),
        Outcome::Detached => return None,
    })
}
