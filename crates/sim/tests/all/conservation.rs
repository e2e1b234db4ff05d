//! Packets and bytes are conserved, and every flow ends by name.

use farpath_elements::{Delay, ElementKind, Wait};
use farpath_sim::FlowEnd;
use farpath_strategies::{check_conservation, scenarios};
use farpath_units::Duration;
use proptest::prelude::*;

/// After about so many events a scenario is ended.
const EVENTS: u64 = 300_000;

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn packets_and_bytes_are_conserved_and_every_flow_ends(scenario in scenarios()) {
        check_conservation(&scenario.setup(), EVENTS);
    }

    /// On a path that keeps everything nothing fails, whatever the stacks; SYNs are sent as often as patience has it.
    #[test]
    fn without_loss_every_flow_completes(mut scenario in scenarios()) {
        scenario.path.retain(|element| {
            matches!(element.kind, ElementKind::Delay(Delay { .. }) | ElementKind::Wait(Wait { .. }))
        });
        let mut setup = scenario.setup();
        for flow in &mut setup.flows {
            for stack in [&mut flow.sender, &mut flow.receiver] {
                stack.handshake.syn_attempts = None;
                stack.handshake.synack_attempts = None;
                stack.handshake.data_retries = None;
                stack.handshake.connect_timeout = None;
            }
        }
        // Round trips of 2000 s, each of them with its timeouts where `rto.max` is below.
        setup.horizon = Duration::from_secs(1_000_000_000);
        let (results, is_over) = check_conservation(&setup, EVENTS);
        for (flow, result) in setup.flows.iter().zip(&results).filter(|_| is_over) {
            prop_assert_eq!(result.end, FlowEnd::Completed, "{} of {} B", result.bytes_read, flow.size);
        }
    }
}
