//! Our TCP endpoint against the running kernel's, over the loop and path elements of an emulation: two implementations
//! that were written apart agree on every byte, or a test says where they do not.

mod capture;
mod kernel;

use capture::Capture;
use farpath_elements::{
    Bernoulli, Duplicate, ElementKind, ElementSpec, Link, MarkThreshold, QueueLimit, Reorder,
};
use farpath_emu::{Application, CloseWhen};
use farpath_path::{Direction, PerDirection};
use farpath_tcp::config::EcnMode;
use farpath_tcp::{CloseReason, Ecn, Flags, State};
use farpath_units::{Bytes, Duration, Instant, Probability, Rate};
use kernel::{Close, Opener, Program, Setup, delay, losing};
use std::io::ErrorKind;
use std::time;

fn writing(ours: u64, kernel: u64) -> Setup {
    Setup {
        application: Application { write: Bytes(ours), ..Application::default() },
        program: Program { write: kernel, ..Program::default() },
        ..Setup::default()
    }
}

fn element(name: &str, kind: ElementKind) -> ElementSpec {
    ElementSpec { name: name.to_owned(), kind }
}

/// A kernel's options, by sysctl.
fn options(sack: bool, timestamps: bool, scaling: bool) -> Vec<(&'static str, &'static str)> {
    let value = |on| if on { "1" } else { "0" };
    vec![
        ("net.ipv4.tcp_sack", value(sack)),
        ("net.ipv4.tcp_timestamps", value(timestamps)),
        ("net.ipv4.tcp_window_scaling", value(scaling)),
    ]
}

#[test]
fn bulk_both_ways_with_every_set_of_options() {
    let sets = [0u8, 1, 2, 3, 4, 5, 6, 7].map(|bits| [bits & 1 != 0, bits & 2 != 0, bits & 4 != 0]);
    let all = [true; 3];
    // The same at both ends; and all at one end against each set at the other, where the smaller set is agreed on.
    let pairs =
        sets.iter().map(|&set| (set, set)).chain(sets.iter().flat_map(|&set| [(set, all), (all, set)]));
    let mut captures = Capture::default();
    for (number, (ours, theirs)) in pairs.enumerate() {
        let mut setup = writing(600_000, 600_000);
        let [sack, timestamps, scaling] = ours;
        setup.config.recovery.sack = sack;
        setup.config.send.timestamps = timestamps;
        setup.config.send.window_scaling = scaling;
        setup.sysctls = options(theirs[0], theirs[1], theirs[2]);
        setup.v6 = number % 2 == 1;
        let Some(outcome) = setup.run() else { return };
        outcome.assert_delivered(&setup);
        outcome.assert_undisturbed();
        outcome.assert_nothing_refused();
        let (state, reason) = (outcome.ours.state(), outcome.close_reason());
        assert!(state == State::TimeWait || reason == Some(CloseReason::Finished), "{state:?}, {reason:?}");

        let agreed = [sack && theirs[0], timestamps && theirs[1], scaling && theirs[2]];
        for direction in Direction::BOTH {
            let segments = outcome.capture.segments(direction);
            let data = segments.iter().find(|segment| segment.len > 0).expect("both ends write");
            assert_eq!(data.timestamps.is_some(), agreed[1], "{direction}: {ours:?} and {theirs:?}");
        }
        captures.append(outcome.capture);
    }
    captures.assert_sound("options");
}

#[test]
fn the_kernel_opens() {
    for v6 in [false, true] {
        let mut setup = writing(1_000_000, 1_000_000);
        (setup.opener, setup.v6) = (Opener::Kernel, v6);
        let Some(outcome) = setup.run() else { return };
        outcome.assert_delivered(&setup);
        outcome.assert_undisturbed();
        outcome.assert_sound(&format!("kernel-opens-{v6}"));
    }
}

#[test]
fn super_packets_go_both_ways() {
    let mut setup = writing(5_000_000, 5_000_000);
    setup.settings.coalesce = true;
    let Some(outcome) = setup.run() else { return };
    outcome.assert_delivered(&setup);
    outcome.assert_sound("coalesced");
    let reverse = outcome.report.packets.reverse;
    assert!(reverse.taken < reverse.offered, "the kernel hands over super-packets: {reverse:?}");
}

#[test]
fn listed_losses_are_repaired_with_and_without_sack() {
    // Of ours: the SYN; the first data; two in a row; scattered; of the kernel's likewise, its SYN/ACK the first.
    let patterns: [&[u64]; 5] = [&[1], &[3], &[20, 21], &[15, 25, 26, 40, 80, 81, 82], &[300, 301, 302, 303]];
    let mut captures = Capture::default();
    for lost in patterns {
        for sack in [true, false] {
            for (forward, reverse) in [(lost, &[][..]), (&[][..], lost), (lost, lost)] {
                let mut setup = writing(600_000, 600_000);
                setup.config.recovery.sack = sack;
                setup.sysctls = options(sack, true, true);
                setup.path.push(losing(forward, reverse));
                let Some(outcome) = setup.run() else { return };
                outcome.assert_delivered(&setup);
                outcome.assert_nothing_refused();
                let dropped = outcome.report.packets;
                assert_eq!(
                    (dropped.forward.dropped, dropped.reverse.dropped),
                    (forward.len() as u64, reverse.len() as u64)
                );
                captures.append(outcome.capture);
            }
        }
    }
    captures.assert_sound("losses");
}

#[test]
fn a_lost_fin_is_sent_again() {
    // Ours: SYN, ACK, FIN. The kernel's: SYN/ACK, FIN, both with nothing else to say.
    for (forward, reverse) in [(&[3][..], &[][..]), (&[][..], &[2][..]), (&[3, 4][..], &[2, 3][..])] {
        let mut setup = writing(0, 0);
        setup.path.push(losing(forward, reverse));
        let Some(outcome) = setup.run() else { return };
        outcome.assert_delivered(&setup);
        outcome.assert_sound("lost-fin");
    }
}

#[test]
fn reordering_duplication_and_loss_change_no_byte() {
    let share = |percent: f64| PerDirection::both(Probability::new(percent / 100.0).expect("a share"));
    for (sack, v6) in [(true, false), (false, false), (true, true)] {
        let mut setup = writing(3_000_000, 3_000_000);
        setup.config.recovery.sack = sack;
        setup.sysctls = options(sack, true, true);
        setup.v6 = v6;
        let loss = ElementKind::Bernoulli(Bernoulli {
            loss_rate: share(0.5),
            count: farpath_elements::PacketCount::All,
        });
        let extra_delay = Duration::from_millis(1);
        setup.path.push(element("loss", loss));
        setup.path.push(element("reorder", ElementKind::Reorder(Reorder { share: share(2.0), extra_delay })));
        setup.path.push(element("twice", ElementKind::Duplicate(Duplicate { share: share(2.0) })));
        let Some(outcome) = setup.run() else { return };
        outcome.assert_delivered(&setup);
        outcome.assert_sound(&format!("rough-{sack}-{v6}"));
        assert!(outcome.ours.connection().sender().stats().retransmissions > 0);
        assert!(outcome.counter("Tcp.RetransSegs") > 0);
    }
}

#[test]
fn a_kernel_that_does_not_read_closes_its_window_and_opens_it_again() {
    let mut setup = writing(1_000_000, 0);
    setup.program.read_after = time::Duration::from_millis(700);
    setup.program.receive_buffer = Some(20_000);
    setup.config.send.persist_min = Duration::from_millis(100);
    let Some(outcome) = setup.run() else { return };
    outcome.assert_delivered(&setup);
    outcome.assert_sound("kernel-window");
    let closed = |segment: &farpath_tcp::Segment| segment.window == 0 && !segment.flags.contains(Flags::RST);
    assert!(outcome.capture.segments(Direction::Reverse).iter().any(closed));
    assert!(outcome.ours.connection().sender().stats().probes > 0);
}

#[test]
fn a_reader_of_ours_that_is_slow_holds_the_kernel_back() {
    let mut setup = writing(0, 1_000_000);
    setup.config.receive.buffer = Bytes(30_000);
    setup.application.read_from = Instant::from_nanos(700_000_000);
    setup.application.read_rate = Rate::from_bit_per_s(16_000_000);
    let Some(outcome) = setup.run() else { return };
    outcome.assert_delivered(&setup);
    outcome.assert_sound("our-window");
    assert!(outcome.capture.segments(Direction::Forward).iter().any(|segment| segment.window == 0));
    assert!(outcome.counter("TcpExt.TCPToZeroWindowAdv") + outcome.counter("TcpExt.TCPWinProbe") > 0);
}

#[test]
fn a_half_closed_connection_carries_the_other_half() {
    let mut setup = writing(200_000, 400_000);
    setup.program.close = Close::PeerClosed;
    let Some(outcome) = setup.run() else { return };
    outcome.assert_delivered(&setup);
    outcome.assert_undisturbed();
    outcome.assert_sound("half-close-ours");
    assert_eq!(outcome.ours.state(), State::TimeWait, "who closes first waits");

    let mut setup = writing(400_000, 200_000);
    setup.application.close = CloseWhen::PeerClosed;
    let Some(outcome) = setup.run() else { return };
    outcome.assert_delivered(&setup);
    outcome.assert_undisturbed();
    outcome.assert_sound("half-close-kernel");
    assert_eq!(outcome.close_reason(), Some(CloseReason::Finished));
}

#[test]
fn a_reset_from_either_end_is_believed_by_the_other() {
    let mut setup = writing(0, 1_000_000);
    setup.application.abort_after = Some(Bytes(100_000));
    setup.application.close = CloseWhen::Never;
    let Some(outcome) = setup.run() else { return };
    assert_eq!(outcome.close_reason(), Some(CloseReason::Aborted));
    let error = outcome.kernel.error.expect("the kernel is told");
    assert!(matches!(error, ErrorKind::ConnectionReset | ErrorKind::BrokenPipe), "{error:?}");

    let mut setup = writing(1_000_000, 0);
    setup.program.close = Close::Reset(100_000);
    let Some(outcome) = setup.run() else { return };
    assert_eq!(outcome.close_reason(), Some(CloseReason::Reset));
    assert_eq!((outcome.kernel.error, outcome.kernel.mismatch), (None, None));
}

#[test]
fn both_open_at_once() {
    let mut setup = writing(300_000, 300_000);
    setup.opener = Opener::Both;
    // The kernel's program starts some milliseconds after ours: both SYNs are under way by then.
    setup.path = vec![delay(300)];
    let Some(outcome) = setup.run() else { return };
    outcome.assert_delivered(&setup);
    outcome.assert_sound("simultaneous-open");
    for direction in Direction::BOTH {
        let first = outcome.capture.segments(direction)[0];
        assert_eq!(first.flags.0 & (Flags::SYN | Flags::ACK).0, Flags::SYN.0, "{direction}: a SYN alone");
    }
}

#[test]
fn a_port_that_nobody_listens_at_refuses() {
    let mut setup = writing(0, 0);
    // Bound, not listening: the kernel opens as well, but only when its SYN has long been answered by a reset.
    setup.opener = Opener::Kernel;
    setup.application.abort_after = Some(Bytes::ZERO);
    let Some(outcome) = setup.run() else { return };
    assert_eq!(outcome.kernel.error, Some(ErrorKind::ConnectionRefused));
}

#[test]
fn marks_of_congestion_are_echoed_and_answered_by_both() {
    let link = ElementKind::Link(Link {
        rate: PerDirection::both(Rate::from_bit_per_s(50_000_000).expect("not zero")),
        queue: PerDirection::both(QueueLimit::Unlimited),
        mark: PerDirection::both(MarkThreshold::Packets(10)),
        aqm: PerDirection::default(),
        overhead: Bytes::ZERO,
        min_packet: Bytes::ZERO,
    });
    for opener in [Opener::Ours, Opener::Kernel] {
        let mut setup = writing(2_000_000, 2_000_000);
        setup.opener = opener;
        setup.config.send.ecn = EcnMode::Request;
        setup.sysctls.push(("net.ipv4.tcp_ecn", "1"));
        setup.path.push(element("bottleneck", link.clone()));
        let Some(outcome) = setup.run() else { return };
        outcome.assert_delivered(&setup);
        outcome.assert_sound(&format!("ecn-{opener:?}"));
        let forward = outcome.capture.segments(Direction::Forward);
        let reverse = outcome.capture.segments(Direction::Reverse);
        let any = |segments: &[farpath_tcp::Segment], flag| {
            segments.iter().any(|segment| segment.flags.contains(flag) && !segment.flags.contains(Flags::SYN))
        };
        // The kernel saw our marks, echoed them, and we said that we had answered; and the other way round.
        assert!(forward.iter().any(|segment| segment.ecn == Ecn::Ce));
        assert!(any(&reverse, Flags::ECE) && any(&forward, Flags::CWR));
        assert!(outcome.ours.connection().sender().stats().ecn_responses > 0);
        assert!(any(&forward, Flags::ECE) && any(&reverse, Flags::CWR));
        // What is marked is not dropped, so that nothing is retransmitted.
        outcome.assert_undisturbed();
    }
}
