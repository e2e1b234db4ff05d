//! Properties: whatever the path or the peer does, what must hold holds.

use crate::pipe::{Dice, Hostility, ISNS, Pipe, Program};
use crate::time;
use farpath_tcp::config::*;
use farpath_tcp::{
    CloseReason, Config, Connection, Ecn, Endpoint, Flags, SackBlock, SackBlocks, Segment, Seq, State,
    Timestamps,
};
use farpath_units::{Bytes, Duration, Instant};
use proptest::prelude::*;

fn ms(range: std::ops::Range<u64>) -> impl Strategy<Value = Duration> {
    range.prop_map(Duration::from_millis)
}

fn receive() -> impl Strategy<Value = ReceiveConfig> {
    (1u64..40_000, 1u32..4, ms(0..500), prop::option::of(ms(0..500)), any::<[bool; 2]>(), 0u32..4).prop_map(
        |(buffer, ack_every, ack_delay, ack_delay_max, [host, linux], quick_acks)| ReceiveConfig {
            quick_acks_after_gap: quick_acks,
            quick_ack_accounting: if linux {
                QuickAckAccounting::Linux
            } else {
                QuickAckAccounting::PerSegment
            },
            autotuning: host,
            ack_pushed: host,
            compressed_acks: if host { 44 } else { 0 },
            buffer: Bytes(buffer),
            read_rate: None,
            ack_every,
            ack_delay,
            ack_delay_max,
            ack_clock: if host { AckClock::Host } else { AckClock::Segment },
            quick_acks,
        },
    )
}

fn congestion() -> impl Strategy<Value = CongestionConfig> {
    let growth = (
        prop_oneof![
            Just(SlowStartGrowth::PerAck),
            Just(SlowStartGrowth::PerByte),
            Just(SlowStartGrowth::TwoSegments),
            Just(SlowStartGrowth::AllAcked)
        ],
        prop_oneof![
            Just(AvoidanceGrowth::PerAck),
            Just(AvoidanceGrowth::PerByte),
            Just(AvoidanceGrowth::PerAckRounded),
            Just(AvoidanceGrowth::AllAcked)
        ],
        prop_oneof![
            Just(SsthreshFrom::FlightSize),
            Just(SsthreshFrom::WindowSegments),
            Just(SsthreshFrom::Cwnd),
            Just(SsthreshFrom::CwndSegments),
            Just(SsthreshFrom::Pipe)
        ],
    );
    let limits = (1u32..12, proptest::option::of(0u64..20_000), proptest::option::of(0u64..20_000));
    (growth, limits, any::<[bool; 11]>()).prop_map(
        |((slow_start, avoidance, ssthresh_from), (initial_window, ssthresh, clamp), switches)| {
            let [a, b, c, d, e, cubic, bbr, hystart, fast_convergence, credit, delivery] = switches;
            CongestionConfig {
                control: match (cubic, bbr) {
                    (false, true) => CongestionControlKind::Bbr,
                    (true, true) => CongestionControlKind::Bbr3,
                    (true, false) => CongestionControlKind::Cubic,
                    (false, false) => CongestionControlKind::Reno,
                },
                initial_window,
                one_segment_after_syn_loss: if d { SynLoss::First } else { SynLoss::Second },
                initial_ssthresh: ssthresh.map(Bytes),
                cwnd_clamp: clamp.map(Bytes),
                slow_start,
                hystart: match (hystart, a) {
                    (false, _) => HyStart::Off,
                    (true, false) => HyStart::Rfc9406,
                    (true, true) => HyStart::Linux,
                },
                avoidance,
                credit_survives_loss: credit,
                growth_by_delivery: delivery,
                fast_convergence,
                friendly_alpha_one: credit,
                cwnd_validation: a,
                avoidance_validation: e,
                validation_by_window: c,
                restart_after_idle: b,
                ssthresh_from,
                ssthresh_on_repeated_timeout: c,
                ssthresh_on_timeout_in_recovery: credit,
            }
        },
    )
}

fn recovery() -> impl Strategy<Value = RecoveryConfig> {
    let algorithm = prop_oneof![
        Just(RecoveryAlgorithm::TimeoutOnly),
        Just(RecoveryAlgorithm::Tahoe),
        Just(RecoveryAlgorithm::Reno),
        Just(RecoveryAlgorithm::NewReno)
    ];
    let reduction = prop_oneof![
        Just(RateReduction::AtOnce),
        Just(RateReduction::Conservative),
        Just(RateReduction::SlowStart),
        Just(RateReduction::SafeAck)
    ];
    let partial_ack_timer = prop_oneof![
        Just(PartialAckTimer::Impatient),
        Just(PartialAckTimer::SlowButSteady),
        Just(PartialAckTimer::ImpatientWithSack)
    ];
    let choices = (algorithm, partial_ack_timer, reduction);
    let switches = (any::<[bool; 4]>(), any::<[bool; 8]>(), any::<[bool; 6]>());
    (choices, 1u32..5, switches, ms(0..300)).prop_map(
        |(choices, dup_ack_threshold, (older, newer, ns3), probe_ack_delay)| {
            let (algorithm, partial_ack_timer, rate_reduction) = choices;
            let [limited_transmit, sack, recover_guard, burst] = older;
            let [rescue_retransmission, rack, tail_loss_probe, frto, eifel, dsack, undo_by_dsack, plain] =
                newer;
            RecoveryConfig {
                algorithm,
                dup_ack_threshold,
                limited_transmit,
                sack,
                recover_guard,
                guard_stops_limited_transmit: plain,
                full_ack_window: if burst { FullAckWindow::Ssthresh } else { FullAckWindow::FlightSize },
                partial_ack_timer,
                fast_retransmit_timer: ns3[0],
                timer_follows_repair: ns3[1],
                end_growth: match (ns3[1], plain) {
                    (true, _) => EndGrowth::AfterFastRecovery,
                    (false, false) => EndGrowth::AfterTimeout,
                    (false, true) => EndGrowth::AfterBoth,
                },
                unreported_before_window: ns3[2],
                sacking_ack_is_duplicate: ns3[3],
                deflate_below_ssthresh: ns3[4],
                dup_acks_after_timeout: ns3[5],
                rescue_retransmission,
                rate_reduction,
                rate_reduction_without_sack: plain,
                rack,
                rack_blocks_first: plain,
                timer_slack: Duration::from_millis(u64::from(plain)),
                tail_loss_probe,
                probe_ack_delay,
                frto,
                eifel,
                dsack,
                undo_by_dsack,
            }
        },
    )
}

fn rto() -> impl Strategy<Value = RtoConfig> {
    let times = (ms(10..3000), ms(0..1000), ms(1000..64_000), prop_oneof![Just(0u64), 1..600u64]);
    (times, any::<[bool; 7]>()).prop_map(|((initial, min, max, tick), switches)| {
        let [floor, sampling, measure, backoff, karn_on_syn, after, timer_wheel] = switches;
        RtoConfig {
            initial,
            min,
            max,
            tick: Duration::from_millis(tick),
            timer_wheel,
            floor: if floor { RtoFloor::Rto } else { RtoFloor::Variance },
            sampling: if sampling { RttSampling::EveryAck } else { RttSampling::OneAtATime },
            measure: if measure { RttMeasure::Exact } else { RttMeasure::Ticks },
            backoff_reset: if backoff { BackoffReset::AnyAck } else { BackoffReset::ValidSample },
            karn_on_syn,
            after_syn_timeout: after.then_some(Duration::from_secs(3)),
            ..Config::default().rto
        }
    })
}

fn configs() -> impl Strategy<Value = Config> {
    let ecn = prop_oneof![Just(EcnMode::Off), Just(EcnMode::Accept), Just(EcnMode::Request)];
    let send = (proptest::option::of(1u64..20_000), any::<[bool; 5]>(), ecn, ms(100..2000));
    let handshake = (any::<[bool; 4]>(), 0u32..4);
    (1u64..1500, receive(), congestion(), recovery(), rto(), send, handshake).prop_map(
        |(
            mss,
            receive,
            congestion,
            recovery,
            rto,
            (buffer, [nagle, minshall, scaling, stamps, pacing], ecn, persist),
            (hs, linear),
        )| {
            Config {
                explicit_rate: Config::default().explicit_rate,
                mss: Bytes(mss),
                receive,
                congestion,
                recovery,
                rto,
                handshake: HandshakeConfig {
                    // Nobody gives up: what is lost often enough is still delivered.
                    syn_attempts: None,
                    syn_linear_timeouts: linear,
                    connect_timeout: None,
                    synack_attempts: None,
                    synack_shared_budget: hs[0],
                    // Only not for ever, or a last FIN to a peer that is gone and sends no reset would be.
                    data_retries: Some(60),
                    reset_when_closed: hs[1],
                    time_wait: Duration::from_secs(240),
                    mss_option: hs[2],
                    ack_alone: hs[3],
                },
                send: SendConfig {
                    buffer: buffer.map(Bytes),
                    nagle,
                    minshall,
                    window_scaling: scaling,
                    timestamps: stamps,
                    ecn,
                    pacing,
                    super_packets: hs[0],
                    tso_win_divisor: if hs[1] { 3 } else { 0 },
                    persist_min: persist,
                    persist_max: Duration::from_secs(20),
                    ttl: 64,
                },
            }
        },
    )
}

fn programs() -> impl Strategy<Value = Program> {
    let reads = proptest::option::of((1u64..3000, ms(1..400)));
    (prop_oneof![Just(0u64), 0..20_000u64], reads).prop_map(|(writes, reads)| Program { writes, reads })
}

fn hostilities() -> impl Strategy<Value = Hostility> {
    (0u8..30, 0u8..20, 0u8..30, 0u8..=100, any::<u64>()).prop_map(
        |(loss, duplication, reordering, marks, seed)| Hostility {
            loss,
            duplication,
            reordering,
            marks,
            seed,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    /// Every byte arrives, in order, once; both ends learn of it and end.
    #[test]
    fn every_byte_arrives_whatever_the_path_does(
        configs in (configs(), configs()),
        mut programs in (programs(), programs()),
        hostility in hostilities(),
        delay in ms(0..400),
    ) {
        // Segments of a few bytes: fewer of them.
        let smss = configs.0.mss.0.min(configs.1.mss.0).max(14) - 13;
        let most = smss.min(configs.0.receive.buffer.0).min(configs.1.receive.buffer.0) * 40;
        programs.0.writes = programs.0.writes.min(most);
        programs.1.writes = programs.1.writes.min(most);
        let mut pipe =
            Pipe::new([&configs.0, &configs.1], [programs.0, programs.1], delay).hostile(&hostility);
        pipe.run(time("10000000 s"));
        prop_assert!(pipe.delivered(), "{:?} of {programs:?} at {}", pipe.read, pipe.now);
        for (end, peer) in [(0, programs.1), (1, programs.0)] {
            prop_assert_eq!(pipe.ends[end].receiver().next(), peer.writes + 2, "SYN, bytes, FIN");
        }
        // The end that does not wait may have to ask again after the one that does is gone.
        for end in &pipe.ends {
            prop_assert!(end.closed().is_some(), "{:?} at {}", end.state(), pipe.now);
        }
    }
}

/// A segment that may mean anything, mostly near where it would matter.
fn forge(dice: &mut Dice, end: &Connection, isn: Seq, peer_isn: Seq) -> Segment {
    let near = |dice: &mut Dice, isn: Seq, position: u64| match dice.next() % 8 {
        0 => Seq(dice.next() as u32),
        1 | 2 => isn.at(position.wrapping_add(dice.next() % 5000).wrapping_sub(2500)),
        3 => isn.at(position.wrapping_add(dice.next() % 3).wrapping_sub(1)),
        _ => isn.at(position),
    };
    let sender = end.sender();
    let (una, flight) = (1 + sender.acked(), sender.flight_size());
    let flags = match dice.next() % 8 {
        0 => Flags(dice.next() as u8),
        1 => Flags::SYN,
        2 => Flags::SYN | Flags::ACK,
        3 if dice.next().is_multiple_of(4) => Flags::RST | Flags::ACK,
        4 => Flags::FIN | Flags::ACK,
        _ => Flags::ACK,
    };
    let ack_at = una + dice.next() % (flight + 2);
    let mut segment =
        Segment::new(flags, near(dice, peer_isn, end.receiver().next()), near(dice, isn, ack_at));
    segment.ecn = Ecn::from_bits(dice.next() as u8);
    if dice.next().is_multiple_of(4) {
        segment.flags |= [Flags::ECE, Flags::CWR, Flags::ECE | Flags::CWR][(dice.next() % 3) as usize];
    }
    segment.len = [0, 0, 0, 1, 100, 1000, u16::MAX][(dice.next() % 7) as usize];
    segment.window = [0, 1, 100, 5000, u16::MAX][(dice.next() % 5) as usize];
    if dice.next().is_multiple_of(4) {
        segment.mss = Some([0, 1, 536, u16::MAX][(dice.next() % 4) as usize]);
        segment.window_scale = Some(dice.next() as u8);
        segment.sack_permitted = true;
    }
    if dice.next().is_multiple_of(2) {
        let value = dice.next() as u32 % 5000;
        segment.timestamps = Some(Timestamps { value, echo: dice.next() as u32 });
    }
    segment.sack = SackBlocks::EMPTY;
    for _ in 0..dice.next() % 4 {
        let place = una + dice.next() % (flight + 1);
        let start = near(dice, isn, place);
        segment.sack.push(SackBlock { start, end: start.at(dice.next() % 3000) });
    }
    segment
}

fn bombard(config: &Config, seed: u64, connects: bool, steps: u32) {
    let mut dice = Dice::new(seed);
    let [isn, peer_isn] = ISNS;
    let mut end = if connects { Connection::connect(config, isn) } else { Connection::listen(config, isn) };
    let mut now = Instant::ZERO;
    let (mut received, mut written) = (0, 0);
    let (mut acked, mut edge) = (0, 0);
    for _ in 0..steps {
        match dice.next() % 8 {
            0 => written += end.write(dice.next() % 5000),
            1 => drop(end.read(dice.next() % 5000)),
            2 => {
                now += Duration::from_nanos(dice.next() % 3_000_000_000);
                end.on_timer(now);
            }
            3 if dice.next().is_multiple_of(16) => end.close(),
            _ => {
                let segment = forge(&mut dice, &end, isn, peer_isn);
                received += segment.seq_len();
                end.on_segment(now, &segment);
                let listens = end.state() == State::Listen;
                if listens || end.sender().acked() < acked && end.state() == State::SynReceived {
                    (acked, edge) = (0, 0); // begun anew
                }
            }
        }
        assert!(end.receiver().next() <= received, "it acknowledges what never came");
        assert!(end.sender().acked() >= acked, "snd_una never goes back");
        acked = end.sender().acked();
        edge = edge.max(1 + acked + end.sender().rwnd());
        for polled in 0.. {
            // A segment is an octet at the least, and CUBIC's window can be open for all of them at once.
            assert!(polled < 1000 + written, "an endpoint that never stops");
            let Some(segment) = end.poll_segment(now) else { break };
            let sent_up_to = 1 + end.sender().acked() + end.sender().flight_size();
            assert!(sent_up_to <= edge + 2, "{sent_up_to} is beyond {edge}, an octet and a FIN");
            assert!(u64::from(segment.len) <= end.sender().smss());
        }
        assert!(end.next_due().is_none_or(|due| due > now || !matches!(end.state(), State::Closed)));
        if end.next_due().is_some_and(|due| due <= now) {
            end.on_timer(now);
        }
        if let State::Closed = end.state() {
            assert!(end.closed().is_some());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn no_segment_whatever_it_says_upsets_an_endpoint(
        config in configs(),
        seed in any::<u64>(),
        connects in any::<bool>(),
    ) {
        bombard(&config, seed, connects, 300);
    }
}

#[test]
fn a_connection_with_retries_ends_by_them_when_the_path_is_cut() {
    let config = crate::script::config(|c| c.handshake.data_retries = Some(5));
    let all = Hostility { loss: 100, ..Hostility::default() };
    let programs = [Program { writes: 10_000, reads: None }, Program::default()];
    let mut pipe = Pipe::new([&config, &config], programs, Duration::from_millis(10));
    pipe.run(time("0.02 s"));
    pipe = pipe.hostile(&all);
    pipe.run(time("1000 s"));
    assert_eq!(pipe.ends[0].closed().map(|(reason, _)| reason), Some(CloseReason::RetriesExhausted));
}
