//! The parameters of a stack that the kernel cannot be made to follow.
//!
//! What the kernel does in any case is said by each parameter's row in [`farpath_tcp::config`]. Here is what follows from
//! several parameters together, or from how the host is used. It is of Linux 6.18, from its sources and by packet traces of it.

use super::sysctls::MOST_SYNS;
use super::{Buffers, UNSCALED};
use farpath_tcp::config::{Config, ImmediateAcks, parameters};
use farpath_units::Bytes;
use std::fmt::Display;

/// One line for each parameter that is not followed.
struct Notes(Vec<String>);

impl Notes {
    /// The kernel does something else where `holds` is not so.
    fn unless(&mut self, holds: bool, key: &str, value: impl Display, kernel: &str) {
        if !holds {
            self.0.push(format!("{key} {value}: {kernel}"));
        }
    }
}

pub(super) fn unmatched_by_kernel(config: &Config, other_end: &Config, buffers: Buffers) -> Vec<String> {
    let mut notes = Notes(Vec::new());
    for parameter in parameters() {
        for rule in parameter.fixed {
            let value = parameter.show(parameter.get(config));
            notes.unless((rule.agrees)(config, other_end), &parameter.key(), value, rule.does);
        }
    }
    of_window(config, other_end, &mut notes);
    of_sending(config, other_end, buffers, &mut notes);
    notes.0
}

/// What two ends make of each other's windows.
fn of_window(config: &Config, other_end: &Config, notes: &mut Notes) {
    let window = other_end.receive.buffer;
    // tcp_bound_to_half_wnd(): beyond a window of TCP_MSS_DEFAULT.
    let longest = if window > Bytes(536) { Bytes(window.0 / 2) } else { window };
    let mss = config.mss.min(other_end.mss);
    let kernel = format!("in a window of {window} the kernel sends segments of {longest}, half of it");
    notes.unless(mss <= longest, "mss", mss, &kernel);
    let buffer = config.receive.buffer;
    if config.scales_with(other_end) && buffer > UNSCALED {
        // The scale is what the kernel chooses by the largest buffer that the machine allows; 7 at 4 MiB.
        let whole = buffer.0.is_multiple_of(128);
        let kernel = "announced in whole steps of the window's scale, 128 B or more";
        notes.unless(whole, "receive.buffer", buffer, kernel);
    }
    let rate = &config.explicit_rate;
    let early = rate.wanted.is_some() && rate.early_window;
    let kernel = "a buffer that grows has 64 kB when a connection begins, and no more is announced";
    let given = other_end.explicit_rate.size_buffers;
    notes.unless(!early || given, "explicit_rate.early_window", true, kernel);
}

fn of_sending(config: &Config, other_end: &Config, buffers: Buffers, notes: &mut Notes) {
    let Config { receive, congestion, recovery, rto, handshake, send, .. } = config;
    let reads_late = receive.immediate_acks == ImmediateAcks::Linux && buffers == Buffers::Given;
    let withheld = receive.ack_every != 1 && !receive.ack_delay.is_zero();
    let kernel = "the program reads by 32 KiB here, and the kernel waits for that";
    notes.unless(!(reads_late && withheld), "receive.immediate_acks", receive.immediate_acks.name(), kernel);

    let known = congestion.control.linux_name().is_some();
    let kernel =
        "no Linux has it; emulation takes what `linux.congestion_control` names, and refuses without";
    notes.unless(known, "congestion.control", congestion.control.name(), kernel);

    let probes = recovery.sack
        && other_end.recovery.sack
        && recovery.tail_loss_probe
        && recovery.probe_ack_delay != rto.min;
    let kernel = format!("the kernel takes the floor of its RTO for it, {}", rto.min);
    notes.unless(!probes, "recovery.probe_ack_delay", recovery.probe_ack_delay, &kernel);

    let linear = handshake.syn_linear_timeouts.min(MOST_SYNS);
    let (least, most) = (linear + 2, linear + 1 + MOST_SYNS);
    let kernel = format!("the kernel sends {least} to {most} SYNs");
    let attempts = handshake.syn_attempts;
    let possible = attempts.is_some_and(|attempts| (least..=most).contains(&attempts));
    let shown = attempts.map_or_else(|| "unlimited".to_owned(), |attempts| attempts.to_string());
    notes.unless(possible, "handshake.syn_attempts", shown, &kernel);

    if let Some(buffer) = send.buffer {
        let kernel = "the kernel's counts its overhead too, some half of it";
        notes.unless(buffers == Buffers::Growing, "send.buffer", buffer, kernel);
    }
}
