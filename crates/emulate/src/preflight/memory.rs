//! Whether what the path may come to hold fits into the memory that an emulation may take, before anything runs.

use farpath_emu::{Load, needed_memory};
use farpath_experiment::{OverMemory, Scenario, Transport};
use farpath_path::PerDirection;
use farpath_tcp::{HEADERS, TIMESTAMPS};
use farpath_units::Bytes;

/// Refuses a scenario whose path could hold more than `emulate.memory`.
pub(super) fn check(scenario: &Scenario) -> Result<(), OverMemory> {
    // The windows bound every element, whatever its rate.
    let needed = needed_memory(&scenario.path, &load(scenario)).unwrap_or(Bytes::MAX);
    let memory = scenario.emulate.memory;
    if needed > memory { Err(OverMemory { needed, memory }) } else { Ok(()) }
}

/// What the flows can have under way: of each its receiver's window, or the file where it is smaller, and an ACK for
/// every segment of it the other way.
fn load(scenario: &Scenario) -> Load {
    let mut window = PerDirection::both(Bytes::ZERO);
    let headers = HEADERS.0 + TIMESTAMPS.0;
    let mss = scenario.sender.config.mss.min(scenario.receiver.config.mss).0.max(1);
    for flow in &scenario.flows {
        // Nothing but the stream itself bounds what datagrams have under way.
        let room = match scenario.transport {
            Transport::Tcp => scenario.receiver.config.receive.buffer,
            Transport::Udp => Bytes::MAX,
        };
        let data = room.min(flow.size);
        let request = scenario.sender.config.receive.buffer.min(flow.request);
        // One more each: handshake and FIN.
        let segments = Bytes(data.0.div_ceil(mss).saturating_add(1).saturating_mul(headers));
        let requests = Bytes(request.0.div_ceil(mss).saturating_add(1).saturating_mul(headers));
        let both = segments + requests;
        window[flow.direction] += data + both;
        window[flow.direction.opposite()] += request + both;
    }
    Load { window: window.map(Some), ..Load::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farpath_experiment::Experiment;

    /// A light-minute, and a window that fills it.
    fn scenario(rate: &str, memory: &str) -> Scenario {
        let text = format!(
            r#"
title = "far"
horizon = "10 h"
[[path]]
element = "link"
rate = "{rate}"
queue = "1 MB"
[[path]]
element = "delay"
delay = "60 s"
[sender]
stack = "rfc-5681"
send.window_scaling = true
[receiver]
stack = "rfc-5681"
receive.buffer = "1 GB"
send.window_scaling = true
[transfer]
size = "10 GB"
[emulate]
memory = "{memory}"
"#
        );
        let experiment = Experiment::parse(&text, "test.toml", &[]).expect("a sound experiment");
        experiment.point(0).scenario.clone()
    }

    #[test]
    fn what_a_slow_link_lets_through_fits() {
        // 60 s at 10 Mbit/s are 75 MB each way, with a queue of 1 MB and the bookkeeping.
        assert!(check(&scenario("10 Mbit/s", "200 MB")).is_ok());
        let error = check(&scenario("10 Mbit/s", "100 MB")).expect_err("75 MB each way");
        assert!(error.to_string().contains("emulate.memory"), "{error}");
    }

    #[test]
    fn a_fast_link_holds_no_more_than_the_window() {
        // 60 s at 10 Gbit/s would be 75 GB.
        assert!(check(&scenario("10 Gbit/s", "1.5 GB")).is_ok());
        let Err(OverMemory { needed, memory }) = check(&scenario("10 Gbit/s", "1 GB")) else {
            panic!("a window of 1 GB does not fit with its headers");
        };
        assert!(needed > memory && needed < Bytes(1_500_000_000), "{needed}");
    }
}
