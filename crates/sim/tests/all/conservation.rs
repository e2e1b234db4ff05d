//! Whatever the path and the stacks do: packets are neither made nor lost unaccounted, the reader gets the file and
//! nothing else, and every flow ends by name.

use crate::common::{self, element, probability};
use farpath_path::{
    Direction, DropCause, ElementKind, ElementSpec, MarkThreshold, PacketCount, PathElement, PerDirection,
    QueueLimit,
};
use farpath_sim::{FlowEnd, FlowSetup, FlowView, Observer, Opener, Packet, PacketEvent, Setup, Simulation};
use farpath_tcp::Config;
use farpath_tcp::config::*;
use farpath_units::{Bytes, Duration, Instant, Rate};
use proptest::prelude::*;

/// Counts packets, and holds what must never happen.
#[derive(Debug, Default)]
struct Accounts {
    now: Instant,
    sent: u64,
    received: u64,
    dropped: u64,
    read: Vec<u64>,
    sizes: Vec<u64>,
}

impl Observer for Accounts {
    fn packet(&mut self, now: Instant, event: PacketEvent, _: Direction, _: &Packet) {
        assert!(now >= self.now, "{event:?} at {now} after {}", self.now);
        match event {
            PacketEvent::Sent => (self.now, self.sent) = (now, self.sent + 1),
            PacketEvent::Received => (self.now, self.received) = (now, self.received + 1),
            // It may lie ahead: known already, not yet there.
            PacketEvent::Dropped(_) => self.dropped += 1,
        }
    }

    fn state(&mut self, now: Instant, flow: FlowView<'_>) {
        assert!(now >= self.now, "state at {now} after {}", self.now);
        self.now = now;
        let (number, read) = (flow.number as usize, flow.bytes_read);
        assert!(
            read >= self.read[number] && read <= self.sizes[number],
            "{read} B of {}",
            self.sizes[number]
        );
        self.read[number] = read;
    }
}

prop_compose! {
    fn receive()(
        buffer in 1_000..200_000u64,
        read_rate in prop::option::weighted(0.3, 2_000..1_000_000u64),
        ack_every in 1..4u32,
        ack_delay in prop::sample::select(vec![0, 40, 200, 500]),
        ack_delay_max in prop::option::of((40..201u64).prop_map(Duration::from_millis)),
        host_clock in any::<bool>(),
        quick_acks in 0..4u32,
        (quick_acks_after_gap, autotuning, ack_pushed) in (0..4u32, any::<bool>(), any::<bool>()),
        compressed_acks in prop::sample::select(vec![0, 1, 44]),
        quick_ack_accounting in prop::sample::select(vec![QuickAckAccounting::PerSegment, QuickAckAccounting::Linux]),
    ) -> ReceiveConfig {
        let ack_clock = if host_clock { AckClock::Host } else { AckClock::Segment };
        let ack_delay = Duration::from_millis(ack_delay);
        ReceiveConfig {
            buffer: Bytes(buffer),
            read_rate,
            ack_every,
            ack_delay,
            ack_delay_max,
            ack_clock,
            quick_acks,
            quick_acks_after_gap,
            quick_ack_accounting,
            autotuning,
            ack_pushed,
            compressed_acks,
        }
    }
}

prop_compose! {
    fn congestion()(
        initial_window in 1..11u32,
        initial_ssthresh in prop::option::of((2_000..100_000u64).prop_map(Bytes)),
        cwnd_clamp in prop::option::weighted(0.2, (1_000..100_000u64).prop_map(Bytes)),
        slow_start in prop::sample::select(vec![SlowStartGrowth::PerAck, SlowStartGrowth::PerByte, SlowStartGrowth::TwoSegments]),
        avoidance in prop::sample::select(vec![AvoidanceGrowth::PerAck, AvoidanceGrowth::PerByte]),
        ssthresh_from in prop::sample::select(vec![SsthreshFrom::FlightSize, SsthreshFrom::WindowSegments, SsthreshFrom::Cwnd, SsthreshFrom::CwndSegments]),
        one_segment_after_syn_loss in prop::sample::select(vec![SynLoss::Never, SynLoss::First, SynLoss::Second]),
        (cwnd_validation, restart_after_idle, ssthresh_on_repeated_timeout) in any::<(bool, bool, bool)>(),
        (control, hystart) in (prop::sample::select(vec![CongestionControlKind::Reno, CongestionControlKind::Cubic, CongestionControlKind::Bbr, CongestionControlKind::Bbr3]), prop::sample::select(vec![HyStart::Off, HyStart::Rfc9406, HyStart::Linux])),
    ) -> CongestionConfig {
        CongestionConfig {
            initial_window, initial_ssthresh, cwnd_clamp, slow_start, avoidance, cwnd_validation,
            restart_after_idle, ssthresh_from, ssthresh_on_repeated_timeout, one_segment_after_syn_loss, control, hystart,
            ..Config::default().congestion
        }
    }
}

prop_compose! {
    fn recovery()(
        algorithm in prop::sample::select(vec![
            RecoveryAlgorithm::TimeoutOnly, RecoveryAlgorithm::Tahoe, RecoveryAlgorithm::Reno, RecoveryAlgorithm::NewReno,
        ]),
        dup_ack_threshold in 1..5u32,
        (limited_transmit, sack, recover_guard, slow, burst) in any::<(bool, bool, bool, bool, bool)>(),
        rate_reduction in prop::sample::select(vec![
            RateReduction::AtOnce, RateReduction::Conservative, RateReduction::SlowStart, RateReduction::SafeAck,
        ]),
        [rescue_retransmission, rack, tail_loss_probe, frto, eifel, dsack, undo_by_dsack] in any::<[bool; 7]>(),
        rate_reduction_without_sack in any::<bool>(),
    ) -> RecoveryConfig {
        let partial_ack_timer = if slow { PartialAckTimer::SlowButSteady } else { PartialAckTimer::Impatient };
        let full_ack_window = if burst { FullAckWindow::Ssthresh } else { FullAckWindow::FlightSize };
        RecoveryConfig {
            algorithm, dup_ack_threshold, limited_transmit, sack, recover_guard, partial_ack_timer, full_ack_window,
            rescue_retransmission, rate_reduction, rack, tail_loss_probe, frto, eifel, dsack, undo_by_dsack,
            rate_reduction_without_sack,
            ..Config::default().recovery
        }
    }
}

prop_compose! {
    fn rto()(
        initial in prop::sample::select(vec![200, 1000, 3000]),
        min in prop::sample::select(vec![10, 200, 1000]),
        tick in prop::sample::select(vec![0, 100, 500]),
        (linux_floor, every_ack, in_ticks, any_ack, karn_on_syn, after_syn) in any::<(bool, bool, bool, bool, bool, bool)>(),
        timer_wheel in any::<bool>(),
    ) -> RtoConfig {
        RtoConfig {
            initial: Duration::from_millis(initial),
            min: Duration::from_millis(min),
            tick: Duration::from_millis(tick),
            timer_wheel,
            floor: if linux_floor { RtoFloor::Variance } else { RtoFloor::Rto },
            sampling: if every_ack { RttSampling::EveryAck } else { RttSampling::OneAtATime },
            measure: if in_ticks { RttMeasure::Ticks } else { RttMeasure::Exact },
            backoff_reset: if any_ack { BackoffReset::AnyAck } else { BackoffReset::ValidSample },
            karn_on_syn,
            after_syn_timeout: after_syn.then_some(Duration::from_secs(3)),
            ..Config::default().rto
        }
    }
}

prop_compose! {
    fn stack()(
        mss in 100..9_000u64,
        receive in receive(),
        congestion in congestion(),
        recovery in recovery(),
        rto in rto(),
        attempts in prop::option::weighted(0.9, 1..8u32),
        data_retries in prop::option::weighted(0.9, 1..10u32),
        send_buffer in prop::option::weighted(0.3, 500..50_000u64),
        (synack_shared_budget, reset_when_closed, nagle, minshall, window_scaling, timestamps) in any::<(bool, bool, bool, bool, bool, bool)>(),
        (super_packets, tso_win_divisor, pacing) in (any::<bool>(), prop::sample::select(vec![0, 1, 3, 255]), any::<bool>()),
    ) -> Config {
        let mut c = Config { mss: Bytes(mss), receive, congestion, recovery, rto, ..Config::default() };
        c.handshake.syn_attempts = attempts;
        c.handshake.synack_attempts = attempts;
        c.handshake.data_retries = data_retries;
        c.handshake.synack_shared_budget = synack_shared_budget;
        c.handshake.reset_when_closed = reset_when_closed;
        c.send.buffer = send_buffer.map(Bytes);
        c.send.nagle = nagle;
        (c.send.super_packets, c.send.tso_win_divisor) = (super_packets, tso_win_divisor);
        c.send.pacing = pacing;
        c.send.minshall = minshall;
        c.send.window_scaling = window_scaling;
        c.send.timestamps = timestamps;
        c
    }
}

prop_compose! {
    fn flow()(
        start in 0..3_000u64,
        (backwards, download) in any::<(bool, bool)>(),
        size in 0..100_000u64,
        request in 0..5_000u64,
        access in prop_oneof![Just(0), 0..50u64],
        sender in stack(),
        receiver in stack(),
    ) -> FlowSetup {
        FlowSetup {
            start: Instant::ZERO + Duration::from_millis(start),
            direction: if backwards { Direction::Reverse } else { Direction::Forward },
            opener: if download { Opener::Receiver } else { Opener::Sender },
            size: Bytes(size),
            messages: None,
            request: Bytes(request),
            sender,
            receiver,
            access: Duration::from_millis(access),
        }
    }
}

fn each_way<T: std::fmt::Debug>(
    value: impl Strategy<Value = T> + Clone,
) -> impl Strategy<Value = PerDirection<T>> {
    (value.clone(), value).prop_map(|(forward, reverse)| PerDirection { forward, reverse })
}

fn share(most: f64) -> impl Strategy<Value = PerDirection<farpath_units::Probability>> {
    each_way((0.0..most).prop_map(probability).boxed())
}

/// Up to seven elements in any order.
fn path() -> impl Strategy<Value = Vec<ElementSpec>> {
    let link = (each_way(50_000..100_000_000u64), each_way(1..40u64), 0..40u64).prop_map(
        |(rate, queue, overhead)| ElementKind::Link {
            rate: rate.map(|rate| Rate::from_bit_per_s(rate).expect("not zero")),
            queue: queue.map(QueueLimit::Packets),
            mark: queue.map(|limit| MarkThreshold::Packets(limit / 2)),
            overhead: Bytes(overhead),
            min_packet: Bytes(46),
        },
    );
    let ms = |most: u64| (0..most).prop_map(Duration::from_millis).boxed();
    let delay = each_way(ms(400)).prop_map(|delay| ElementKind::Delay { delay });
    let loss = share(0.2).prop_map(|loss_rate| ElementKind::Bernoulli { loss_rate, count: PacketCount::All });
    let reorder =
        (share(0.2), ms(100)).prop_map(|(share, extra_delay)| ElementKind::Reorder { share, extra_delay });
    let copies = share(0.2).prop_map(|share| ElementKind::Duplicate { share });
    let one = prop_oneof![link, delay, loss, reorder, copies];
    prop::collection::vec(one, 0..7).prop_map(|kinds| {
        let name = |(number, kind): (usize, ElementKind)| element(&format!("element {number}"), kind);
        kinds.into_iter().enumerate().map(name).collect()
    })
}

prop_compose! {
    fn scenario()(path in path(), flows in prop::collection::vec(flow(), 1..4), seed in any::<u64>()) -> Setup {
        Setup { path, flows, seed, horizon: Duration::from_secs(600) }
    }
}

/// More events than any scenario here needs: a run that spins at one instant fails instead of hanging.
const MOST_STEPS: u32 = 3_000_000;

fn check(setup: &Setup) {
    let sizes: Vec<u64> = setup.flows.iter().map(|flow| flow.size.0).collect();
    let mut accounts = Accounts { read: vec![0; sizes.len()], sizes, ..Accounts::default() };
    let mut simulation = Simulation::new(setup, &mut accounts).expect("the path is well formed");
    let mut steps = 0;
    while simulation.step() {
        steps += 1;
        assert!(steps < MOST_STEPS, "it does not come to an end");
    }
    let under_way = simulation.under_way() as u64;
    let duplicated: u64 = simulation.path().counters().iter().map(|counter| counter.duplicated).sum();
    let results = simulation.finish();
    assert_eq!(accounts.sent + duplicated, accounts.received + accounts.dropped + under_way);
    let of = |count: fn(&farpath_path::DropCounts) -> u64| -> u64 {
        results.iter().map(|flow| count(&flow.drops.forward) + count(&flow.drops.reverse)).sum()
    };
    assert_eq!(of(|drops| drops.total()), accounts.dropped);
    assert_eq!(of(|drops| drops.of(DropCause::BitErrors)), 0);
    for ((flow, result), read) in setup.flows.iter().zip(&results).zip(&accounts.read) {
        assert_eq!(result.bytes_read.0, *read);
        let horizon = Instant::ZERO + setup.horizon;
        match result.end {
            FlowEnd::Completed => {
                assert_eq!(result.bytes_read, flow.size);
                assert!(result.ended_at >= flow.start && result.ended_at <= horizon);
                assert_eq!(result.transfer_time(flow.start), Some(result.ended_at - flow.start));
            }
            FlowEnd::Failed(_) => assert!(result.ended_at >= flow.start && result.ended_at <= horizon),
            FlowEnd::Horizon => assert_eq!(result.ended_at, horizon),
        }
        let sent = result.sender.sender().stats();
        assert!(sent.retransmissions <= sent.data_segments);
        assert!(result.spurious_retransmissions <= sent.retransmissions, "{result:?}");
        assert!(result.mean_cwnd >= 0.0 && result.mean_cwnd.is_finite());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1000) })]

    #[test]
    fn packets_and_bytes_are_conserved_and_every_flow_ends(setup in scenario()) {
        check(&setup);
    }

    /// On a path that keeps everything nothing fails, whatever the stacks; SYNs are sent as often as patience has it.
    #[test]
    fn without_loss_every_flow_completes(mut setup in scenario()) {
        setup.path.retain(|element| matches!(element.kind, ElementKind::Delay { .. }));
        for flow in &mut setup.flows {
            for stack in [&mut flow.sender, &mut flow.receiver] {
                stack.handshake.syn_attempts = None;
                stack.handshake.synack_attempts = None;
                stack.handshake.data_retries = None;
            }
        }
        setup.horizon = Duration::from_secs(1_000_000);
        check(&setup);
        for (flow, result) in setup.flows.iter().zip(common::run(&setup)) {
            prop_assert_eq!(result.end, FlowEnd::Completed, "{:?} {:?}", flow, result);
        }
    }
}
