//! The stacks of the published and measured numbers.

use farpath_tcp::Config;
use farpath_tcp::config::*;
use farpath_units::{Bytes, Duration};

/// Riverbed Modeler as the high-BER paper sets it up (Sarkar, Ammann, Zabir: Electronics 2022, 11, 2254, Table 2).
pub fn riverbed() -> Config {
    let mut c = Config::default();
    c.receive.buffer = Bytes(8760);
    c.congestion.initial_window = 2;
    c.congestion.initial_ssthresh = Some(Bytes(65_535));
    c.congestion.slow_start = SlowStartGrowth::PerAck;
    c.congestion.avoidance = AvoidanceGrowth::PerAck;
    c.congestion.restart_after_idle = false;
    c.congestion.ssthresh_from = SsthreshFrom::WindowSegments;
    c.congestion.ssthresh_on_timeout = SsthreshOnTimeout::Every;
    c.recovery.algorithm = RecoveryAlgorithm::Reno;
    c.recovery.limited_transmit = false;
    c.recovery.recover_guard = RecoverGuard::Off;
    c.rto.initial = Duration::from_secs(3);
    c.rto.max = Duration::from_secs(64);
    c.rto.tick = Duration::from_millis(500);
    c.rto.after_syn_timeout = None;
    c.handshake.syn_attempts = None;
    c.handshake.synack_attempts = None;
    c.handshake.data_retries = None;
    c.send.nagle = false;
    c
}

/// ns-3.44's `TcpNewReno` with the attributes of the measured runs: a 6-segment buffer, retries raised so that
/// nothing gives up. The rest is the shipped stack `ns-3.44`, which `make oracle` compares segment by segment.
pub fn ns3_newreno() -> Config {
    let mut c = Config::default();
    c.receive.buffer = Bytes(8760);
    c.receive.quick_acks = 1;
    c.receive.ts_recent = TsRecent::InOrder;
    c.congestion.initial_window = 2;
    c.congestion.one_segment_after_syn_loss = SynLoss::Never;
    c.congestion.slow_start = SlowStartGrowth::PerAck;
    c.congestion.avoidance = AvoidanceGrowth::PerAckRounded;
    c.congestion.restart_after_idle = false;
    c.congestion.ssthresh_from = SsthreshFrom::Pipe;
    c.congestion.ssthresh_on_timeout = SsthreshOnTimeout::Every;
    c.recovery.recover_guard = RecoverGuard::Off;
    c.recovery.partial_ack_timer = PartialAckTimer::ImpatientWithSack;
    c.recovery.full_ack_window = FullAckWindow::Ssthresh;
    c.recovery.repair_timer = RepairTimer::None;
    c.recovery.end_growth = EndGrowth::AfterFastRecovery;
    c.recovery.sack_rules = SackRules::Ns3;
    c.recovery.window_without_sack = WindowWithoutSack::AboveSsthresh;
    c.recovery.dup_acks_after_timeout = false;
    c.rto.initial = Duration::from_secs(3);
    c.rto.tick = Duration::ZERO;
    c.rto.sampling = RttSampling::EveryAck;
    c.rto.backoff_reset = BackoffReset::AnyAck;
    c.rto.retransmitted_syn = RetransmittedSyn::MeasuredFromFirst;
    c.rto.after_syn_timeout = None;
    c.handshake.syn_attempts = Some(30);
    c.handshake.synack_attempts = Some(30);
    c.handshake.data_retries = Some(30);
    c.handshake.rules = HandshakeRules::Ns3;
    c.handshake.ack_alone = true;
    c.send.nagle = false;
    c
}

/// ns-3.44's `TcpLinuxReno`: growth by all that an ACK acknowledges, used or not, and half of `cwnd` after a loss.
pub fn ns3_linux_reno() -> Config {
    let mut c = ns3_newreno();
    c.congestion.slow_start = SlowStartGrowth::AllAcked;
    c.congestion.avoidance = AvoidanceGrowth::Ns3LinuxReno;
    c.congestion.ssthresh_from = SsthreshFrom::Cwnd;
    c.congestion.cwnd_validation = CwndValidation::Avoidance;
    c
}

/// The defaults of the RFCs with a 65 535 B window and an initial RTO of 3 s, as everybody had it before 2011.
pub fn initial_rto_3s() -> Config {
    let mut c = Config::default();
    c.congestion.initial_window = 2;
    c.rto.initial = Duration::from_secs(3);
    c.send.nagle = false;
    c
}

/// A stack for long fat paths: SACK, window scaling, timestamps.
pub fn long_fat(buffer: u64) -> Config {
    let mut c = Config::default();
    c.receive.buffer = Bytes(buffer);
    c.recovery.sack = true;
    c.send.window_scaling = true;
    c.send.timestamps = true;
    c
}

/// The shipped stack `linux-6` with buffers of so many bytes, as far as transfers in bulk meet it.
pub fn linux(buffer: u64) -> Config {
    let mut c = Config::default();
    c.receive.buffer = Bytes(buffer);
    c.receive.ack_delay = Duration::from_millis(40);
    c.receive.quick_acks = 16;
    c.congestion.control = CongestionControlKind::Cubic;
    c.congestion.initial_window = 10;
    c.congestion.one_segment_after_syn_loss = SynLoss::Second;
    c.congestion.slow_start = SlowStartGrowth::AllAcked;
    c.congestion.hystart = HyStart::Rfc9406;
    c.congestion.growth_by_delivery = true;
    c.congestion.cwnd_validation = CwndValidation::ByWindow;
    c.congestion.ssthresh_from = SsthreshFrom::CwndSegments;
    c.congestion.ssthresh_on_timeout = SsthreshOnTimeout::FirstOutsideRecovery;
    c.recovery.sack = true;
    c.recovery.rate_reduction = RateReduction::SafeAck;
    c.recovery.rack = true;
    c.recovery.rack_rules = RackRules::Linux;
    c.recovery.timer_slack = Duration::from_millis(2);
    c.recovery.tail_loss_probe = true;
    c.recovery.repair_timer = RepairTimer::FirstSegment;
    c.recovery.frto = true;
    c.recovery.eifel = true;
    c.recovery.dsack = true;
    c.recovery.undo_by_dsack = true;
    c.rto.min = Duration::from_millis(200);
    c.rto.max = Duration::from_secs(120);
    c.rto.floor = RtoFloor::Variance;
    c.rto.sampling = RttSampling::EveryAck;
    c.handshake.syn_linear_timeouts = 4;
    c.handshake.ack_alone = true;
    c.send.minshall = true;
    c.send.buffer = Some(Bytes(buffer));
    c.send.window_scaling = true;
    c.send.timestamps = true;
    c
}
