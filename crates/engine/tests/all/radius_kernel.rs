//! Radii of the running kernel, of a Linux that gives up within seconds: the same code takes minutes for its defaults.
#![cfg(target_os = "linux")]

use farpath_emulate::may_emulate;
use farpath_engine::{
    Counts, KernelRadii, Measurement, Radius, RadiusKind, Reach, Span, measure_radii, radii,
};
use farpath_experiment::Stack;
use farpath_testing::{Need, skip};
use farpath_units::Duration;
use std::sync::atomic::{AtomicBool, Ordering};

/// What a busy machine may make of a time, in s: its timers run late, and are seen late.
const BUSY: f64 = 0.25;

/// How often a machine is asked again that was in time over no way.
const ATTEMPTS: usize = 3;

/// SYNs at 0, 1 and 2 s, the second by a linear timeout; given up after 4 s. One SYN/ACK: forgotten 1 s after the last
/// SYN that came before its timer.
fn hasty() -> Stack {
    let mut stack = Stack::load("linux-6").expect("it ships");
    let handshake = &mut stack.config.handshake;
    (handshake.syn_attempts, handshake.syn_linear_timeouts, handshake.synack_attempts) =
        (Some(3), 1, Some(1));
    stack
}

fn rtt(radii: &[Radius], kind: RadiusKind) -> Span {
    radii.iter().find(|radius| radius.kind == kind).expect("every stack has it").rtt
}

fn assert_within(measured: Span, radius: Span, what: &str) {
    let Span { least, most } = radius;
    // The best of all connections: late is what a machine can be, early not.
    assert!(
        measured.most > least - BUSY && measured.least < most + BUSY,
        "{what}: {measured:?}, not {radius:?}"
    );
}

#[test]
fn the_kernel_opens_and_gives_up_where_the_closed_form_says() {
    if let Err(error) = may_emulate() {
        return skip(Need::Root, format!("radii of the running kernel: {error}"));
    }
    let stack = hasty();
    let radii = radii(&stack.config, None).expect("a schedule");
    let what = Measurement::planned(&stack, &radii, 12).expect("it ends");
    let stop = AtomicBool::new(false);
    let in_time = |found: &KernelRadii| found.ways.iter().any(|way| way.kernel.is_some());
    let measured = || measure_radii(&what, &stop, |_| {}).expect("hosts");
    let mut found = measured();
    for _ in 1..ATTEMPTS {
        if in_time(&found) {
            break;
        }
        found = measured();
    }
    assert!(found.complete, "nobody stops it");
    if !in_time(&found) {
        skip(Need::Time, format!("connections of the running kernel: late in all of {ATTEMPTS} attempts"));
    }
    let KernelRadii { silence, ways, .. } = &found;

    assert_eq!(silence.syns.len(), 2, "{silence:?}");
    for (number, measured) in (1..).zip(&silence.syns) {
        assert_within(*measured, rtt(&radii, RadiusKind::SynAgain(number)), "SYN");
    }
    assert_within(silence.abandoned.expect("it gives up"), rtt(&radii, RadiusKind::Abandoned), "abandoned");
    assert_eq!(silence.synacks, [], "tcp_synack_retries 0");
    assert_within(
        silence.forgotten.expect("it forgets"),
        rtt(&radii, RadiusKind::SynAgain(1)),
        "a lone SYN, one timeout",
    );

    let reaches = |reach| ways.iter().filter(move |way| way.predicted == reach);
    assert!(
        [Reach::Usable, Reach::Some, Reach::HalfOpen, Reach::Nothing].iter().all(|&r| reaches(r).count() > 0)
    );
    for way in ways {
        // The machine was not in time.
        let Some(Counts { connections, opened, usable }) = way.kernel else { continue };
        match way.predicted {
            Reach::Usable => assert_eq!((opened, usable), (connections, connections), "{way:?}"),
            Reach::Some => assert_eq!(opened, connections, "{way:?}"),
            Reach::HalfOpen => assert_eq!((opened, usable), (connections, 0), "{way:?}"),
            Reach::SomeHalfOpen => assert_eq!(usable, 0, "{way:?}"),
            Reach::Nothing => assert_eq!((opened, usable), (0, 0), "{way:?}"),
        }
    }
}

#[test]
fn what_was_seen_before_it_was_stopped_is_there() {
    if let Err(error) = may_emulate() {
        return skip(Need::Root, format!("an interrupted measurement of the kernel's radii: {error}"));
    }
    let stack = hasty();
    let radii = radii(&stack.config, None).expect("a schedule");
    let what = Measurement::planned(&stack, &radii, 4).expect("it ends");
    let stop = AtomicBool::new(false);
    // Connections begin over two seconds: by then the first ones have sent a SYN again, and none has given up.
    let stopping = |elapsed| stop.store(elapsed > Duration::from_millis(2_600), Ordering::Relaxed);
    let found = measure_radii(&what, &stop, stopping).expect("hosts");
    assert!(!found.complete);
    assert_eq!(found.silence.abandoned, None);
    assert_eq!((found.measured(RadiusKind::LastSyn), found.measured(RadiusKind::Abandoned)), (None, None));
    assert_within(
        found.measured(RadiusKind::SynAgain(1)).expect("a SYN left again"),
        rtt(&radii, RadiusKind::SynAgain(1)),
        "SYN",
    );
}

#[test]
fn what_never_ends_is_not_measured() {
    let ns = Stack::load("ns-2.30").expect("it ships");
    let radii = radii(&ns.config, None).expect("a schedule");
    assert_eq!(Measurement::planned(&ns, &radii, 1), None);
}
