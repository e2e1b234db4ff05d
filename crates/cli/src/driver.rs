//! `farpath explicit-rate driver`: explicit rate for this host's TCP.

use crate::Ending;
use crate::args::DriverArgs;
use crate::error::CliError;

/// `farpath explicit-rate driver`
#[cfg(all(target_os = "linux", feature = "driver"))]
pub fn driver(args: &DriverArgs) -> Result<Ending, CliError> {
    here::driver(args)
}

/// It cannot.
#[cfg(all(target_os = "linux", not(feature = "driver")))]
pub fn driver(_: &DriverArgs) -> Result<Ending, CliError> {
    Err(CliError::WithoutDriver)
}

/// It cannot.
#[cfg(not(target_os = "linux"))]
pub fn driver(_: &DriverArgs) -> Result<Ending, CliError> {
    Err(CliError::NotLinux("explicit-rate driver"))
}

/// Whether it could be attached, as a finding of `farpath doctor`.
pub fn finding() -> farpath_emu::doctor::Finding {
    use farpath_emu::doctor::{Finding, State};
    let (state, found, remedy) = possible();
    let meaning = "without it TCP of this host asks no router for a rate: neither by `farpath explicit-rate driver`, nor in an emulation with `explicit_rate`";
    let state = if state { State::Ok } else { State::Limited };
    Finding { name: "explicit rate", state, found, meaning: meaning.to_owned(), remedy }
}

#[cfg(all(target_os = "linux", feature = "driver"))]
fn possible() -> (bool, String, Option<String>) {
    let missing = farpath_driver::missing();
    if missing.is_empty() {
        return (true, "could be attached".to_owned(), None);
    }
    let text = missing.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
    (false, text, Some("see docs/driver.md for what it needs".to_owned()))
}

#[cfg(not(all(target_os = "linux", feature = "driver")))]
fn possible() -> (bool, String, Option<String>) {
    (false, "left out of this build".to_owned(), Some(CliError::WithoutDriver.to_string()))
}

#[cfg(all(target_os = "linux", feature = "driver"))]
mod here {
    use super::{CliError, DriverArgs, Ending};
    use crate::args::{AttachArgs, DriverCommand, DriverRateType};
    use crate::output;
    use farpath_driver::{Buffers, Device, DriverError, Flow, Limit, Limits, Pinned, Settings, Status};
    use farpath_tia1039::{Priority, QosVersion, RateType, RateUnit};
    use farpath_units::Rate;
    use serde_json::{Value, json};
    use std::fmt::Write;
    use std::fs;

    pub fn driver(args: &DriverArgs) -> Result<Ending, CliError> {
        let pinned = Pinned::default();
        match &args.command {
            DriverCommand::Attach(args) => attach(&pinned, args)?,
            DriverCommand::Detach => {
                let detached = pinned.detach()?;
                output::print(&if detached.interrupted {
                    "Removed what an `attach` that was killed had left.".to_owned()
                } else {
                    format!(
                        "Detached from {}; {} went on with plain TCP.",
                        count(detached.devices, "device"),
                        count(detached.flows, "connection with a grant"),
                    )
                })?;
            }
            DriverCommand::Status(args) => {
                let status = pinned.status()?;
                let text = if args.json { status_json(&status).to_string() } else { status_text(&status) };
                output::print(&text)?;
            }
        }
        Ok(Ending::Done)
    }

    fn attach(pinned: &Pinned, args: &AttachArgs) -> Result<(), CliError> {
        let devices = args.devices.iter().map(|name| {
            let device = Device::named(name)?;
            let rate = args.rate.or_else(|| device.speed());
            let rate = rate.ok_or_else(|| DriverError::NoRate { device: name.clone() })?;
            Ok((device, rate))
        });
        let devices = devices.collect::<Result<Vec<_>, DriverError>>()?;
        let (settings, given) = settings(args);
        let attached = pinned.attach(&devices, &args.cgroup, &settings, given)?;
        let mut text = String::new();
        if let Some(path) = &attached.mounted {
            let _ = writeln!(text, "Mounted a BPF file system at {}, until it is detached.", path.display());
        }
        for (device, rate) in &attached.devices {
            let _ = writeln!(text, "Attached to {device}: sockets ask for up to {rate}.");
        }
        for group in &attached.groups {
            let _ = writeln!(text, "Programs in {} ask without knowing.", group.display());
        }
        if attached.groups.is_empty() {
            let _ = writeln!(text, "A socket asks that sets TCP_CONGESTION to {}.", farpath_driver::CONTROL);
        }
        let Limits { send, receive } = Limits::now();
        let [send, receive] = [send, receive].map(|Limit { most, by_itself }| most.max(by_itself));
        let _ = writeln!(
            text,
            "Buffers: up to {send} to send from (net.core.wmem_max, net.ipv4.tcp_wmem), {receive} to receive into (rmem)."
        );
        Ok(output::print(&text)?)
    }

    /// What is asked for, and whether anything but a default is.
    fn settings(args: &AttachArgs) -> (Settings, bool) {
        let AttachArgs {
            devices: _,
            rate: _,
            cgroup: _,
            fallback,
            loss_limit,
            queue_limit,
            buffer,
            early_window,
            rate_type,
            preemption,
            delay,
            routers,
        } = args;
        let given = rate_type.is_some()
            || preemption.is_some()
            || delay.is_some()
            || routers.is_some()
            || fallback.is_some()
            || loss_limit.is_some()
            || queue_limit.is_some()
            || buffer.is_some()
            || *early_window;
        let read = |name: &str| fs::read_to_string(format!("/proc/sys/net/ipv4/{name}")).unwrap_or_default();
        let mut settings = Settings::new(read("tcp_congestion_control").trim());
        let bbr = || read("tcp_available_congestion_control").split_whitespace().any(|name| name == "bbr");
        match fallback {
            Some(name) => settings.fallback.clone_from(name),
            None if bbr() => settings.fallback = "bbr".to_owned(),
            None => {}
        }
        if let Some(limit) = loss_limit {
            settings.request.loss_per_mille = (limit.fraction() * 1000.0).round() as u32;
        }
        if let Some(limit) = queue_limit {
            settings.request.queue_delay = *limit;
        }
        settings.buffers = buffer.map_or(Buffers::Sized, Buffers::Fixed);
        settings.early_window = *early_window;
        let level = |level: u8| Priority::new(level).unwrap_or(Priority::HIGHEST);
        let request = &mut settings.request;
        request.preemption = preemption.map_or(request.preemption, level);
        request.delay = delay.map_or(request.delay, level);
        request.min_routers = routers.unwrap_or(request.min_routers);
        request.version = QosVersion::telling(request.min_routers);
        request.rate_type = match rate_type {
            None | Some(DriverRateType::Available) => RateType::Available,
            Some(DriverRateType::Maximum) => RateType::Maximum,
            Some(DriverRateType::Guaranteed) => RateType::Guaranteed,
        };
        (settings, given)
    }

    fn count(number: usize, what: &str) -> String {
        match number {
            1 => format!("1 {what}"),
            _ => match what.split_once(' ') {
                Some((head, rest)) => format!("{number} {head}s {rest}"),
                None => format!("{number} {what}s"),
            },
        }
    }

    fn status_text(status: &Status) -> String {
        let mut text = match status.devices.as_slice() {
            [] => "Attached to no device\n".to_owned(),
            devices => format!("Attached to {}\n", devices.join(", ")),
        };
        if status.groups > 0 {
            let _ = writeln!(text, "Opted in: {}", count(status.groups, "control group"));
        }
        let rows: Vec<[String; 8]> = status.flows.iter().map(row).collect();
        if !rows.is_empty() {
            let head = ["local", "remote", "state", "asked", "granted", "requests", "cuts", "lost"]
                .map(str::to_owned);
            let mut widths = [0; 8];
            for row in std::iter::once(&head).chain(&rows) {
                for (width, cell) in widths.iter_mut().zip(row) {
                    *width = (*width).max(cell.chars().count());
                }
            }
            text.push('\n');
            for row in std::iter::once(&head).chain(&rows) {
                let cells: Vec<_> =
                    row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}")).collect();
                let _ = writeln!(text, "{}", cells.join("  ").trim_end());
            }
        }
        let counted: Vec<_> = status.counters.iter().filter(|(_, number)| *number > 0).collect();
        if !counted.is_empty() {
            text.push('\n');
            for (counter, number) in counted {
                let _ = writeln!(text, "{:28}{number}", counter.name().replace('_', " "));
            }
        }
        text
    }

    fn row(flow: &Flow) -> [String; 8] {
        let shown = |rate: Option<Rate>| rate.map_or_else(|| "none".to_owned(), |rate| rate.to_string());
        [
            flow.local.to_string(),
            flow.remote.to_string(),
            flow.outcome.name().to_owned(),
            shown(Rate::from_bit_per_s(RateUnit::default().decode(flow.asked))),
            shown(flow.rate()),
            flow.requests.to_string(),
            flow.cuts.to_string(),
            flow.lost.to_string(),
        ]
    }

    fn status_json(status: &Status) -> Value {
        let unit = RateUnit::default();
        let flows: Vec<_> = status
            .flows
            .iter()
            .map(|flow| {
                json!({
                    "local": flow.local.to_string(),
                    "remote": flow.remote.to_string(),
                    "state": flow.outcome.name(),
                    "asked_bit_per_s": unit.decode(flow.asked),
                    "granted_bit_per_s": flow.rate().map_or(0, Rate::bit_per_s),
                    "requests": flow.requests,
                    "responses": flow.responses,
                    "cuts": flow.cuts,
                    "raises": flow.raises,
                    "lost_packets": flow.lost,
                    "delivered_packets": flow.delivered,
                })
            })
            .collect();
        let counters: serde_json::Map<_, _> =
            status.counters.iter().map(|(counter, number)| (counter.name(), json!(number))).collect();
        json!({
            "devices": status.devices,
            "control_groups": status.groups,
            "flows": flows,
            "counters": counters,
        })
    }
}
