//! The closed forms of the radii against the simulator, for every stack that ships.

use farpath_engine::{Radius, RadiusKind, Span, check_radius, gaps, longest_gap, radii};
use farpath_experiment::{Stack, shipped_stacks};
use farpath_units::Duration;

fn rtt(stack: &str, kind: RadiusKind) -> Span {
    radius(stack, kind).rtt
}

fn radius(stack: &str, kind: RadiusKind) -> Radius {
    let config = Stack::load(stack).expect("it ships").config;
    let radii = radii(&config, None).expect("a schedule");
    radii.into_iter().find(|radius| radius.kind == kind).expect("every stack has it")
}

#[test]
fn closed_form_and_simulation_agree_for_every_stack_that_ships() {
    let mut wrong = Vec::new();
    for file in shipped_stacks() {
        let config = Stack::load(file.name).expect("it ships").config;
        for radius in radii(&config, None).expect("a schedule") {
            let checked = check_radius(&config, &radius).expect("the path is sound");
            let Some(error) = checked.error() else { continue };
            let tolerance = checked.tolerance();
            if error.abs() > tolerance {
                wrong.push(format!("{}: {checked:?}: {error} s, allowed are {tolerance} s", file.name));
            }
        }
    }
    assert_eq!(wrong, [""; 0]);
}

#[test]
fn both_rules_of_the_protocol_radius_as_the_paper_has_them() {
    assert_eq!(rtt("opnet-11.5", RadiusKind::Abandoned).least, 45.0);
    assert_eq!(rtt("windows-2003", RadiusKind::LastSyn), Span::exactly(9.0));
    assert_eq!(rtt("windows-2003", RadiusKind::Abandoned), Span::exactly(21.0));
    assert_eq!(rtt("ns-2.30", RadiusKind::Abandoned).least, f64::INFINITY);
    assert_eq!(rtt("ns-2.30", RadiusKind::SynAgain(1)).least, 3.0);
    assert_eq!(rtt("ns-2.29", RadiusKind::SynAgain(1)).least, 6.0);
}

#[test]
fn times_beside_counts_end_the_opening_of_bsd_and_windows() {
    assert_eq!(rtt("freebsd", RadiusKind::Abandoned), Span::exactly(75.0));
    assert_eq!(rtt("windows-modern", RadiusKind::Abandoned), Span::exactly(21.0));
    assert_eq!(rtt("windows-modern", RadiusKind::LastSyn), Span::exactly(15.0));
}

#[test]
fn what_takes_longer_than_the_simulators_time_is_not_simulated() {
    // 1.7e77 s: TcpMaxConnectRetransmissions of 255, without a ceiling.
    let mut config = Stack::load("windows-2003").expect("it ships").config;
    (config.handshake.syn_attempts, config.rto.max) = (Some(256), Duration::MAX);
    config.rto.max_backoff_exponent = u32::MAX;
    let radii = radii(&config, None).expect("a schedule");
    let abandoned = radii.iter().find(|radius| radius.kind == RadiusKind::Abandoned).expect("it is there");
    assert!((abandoned.rtt.least / 3.474e77 - 1.0).abs() < 1e-3, "{abandoned:?}");
    assert_eq!(check_radius(&config, abandoned).expect("the path is sound").simulated, None);
}

#[test]
fn a_linux_client_is_connected_to_a_server_that_has_given_up() {
    // Linux 6.18 was measured: usable up to 100 s and not at 105 s, half-open to 133 s and not at 140 s.
    let Radius { rtt: usable, race, .. } = radius("linux-6", RadiusKind::Usable);
    let early = race.and_then(|race| race.early_share).expect("a race on a clock");
    assert!(early > 0.05 && early < 0.2, "few connections lose it: {early}");
    assert!(usable.least < 70.0 && (100.0..105.0).contains(&usable.most), "{usable:?}");
    let abandoned = rtt("linux-6", RadiusKind::Abandoned);
    assert!(abandoned.least > 133.0 && abandoned.most < 140.0, "{abandoned:?}");
}

#[test]
fn the_longest_gap_is_what_the_timers_say_for_every_stack_that_ships() {
    let rtt = Duration::from_millis(100);
    let mut wrong = Vec::new();
    for file in shipped_stacks() {
        let config = Stack::load(file.name).expect("it ships").config;
        for gap in gaps(&config, rtt).expect("a schedule") {
            let simulated = longest_gap(&config, gap.kind, gap.outside, rtt).expect("the path is sound");
            let found = simulated.unwrap_or(f64::INFINITY);
            if !gap.agrees(&config, rtt, found) {
                wrong.push(format!("{}: {gap:?}: {found}", file.name));
            }
        }
    }
    assert_eq!(wrong, [""; 0]);
}
