//! The parameters of a stack by name: one list, from which stacks are read, overridden and written.

use crate::error::{ExperimentError, Location, join};
use crate::reader::{Parameter, Reader, Written, unless, word};
use farpath_tcp::config::{
    AckClock, AvoidanceGrowth, BackoffReset, Config, CongestionControlKind, CubicRules, EcnMode, EndGrowth,
    FullAckWindow, HyStart, PartialAckTimer, QuickAckAccounting, RackRules, RateKind, RateReduction,
    RecoveryAlgorithm, RtoFloor, RttMeasure, RttSampling, SlowStartGrowth, SsthreshFrom, SynLoss, TsRecent,
};
use farpath_tcp::{MAX_MSS, TIMESTAMPS};
use farpath_units::{Bytes, Duration, Rate};
use toml::{Table, Value};

/// A parameter of a stack file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StackParameter {
    /// Its section and name, `rto.min`; the name alone where it stands in no section.
    pub key: String,
    /// What its value is.
    pub kind: ValueKind,
    /// The word for its absence, where it can be absent.
    pub absent: Option<&'static str>,
}

/// What the value of a parameter is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueKind {
    /// `true` or `false`.
    Switch,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A whole number up to this one.
    Count(u64),
    /// A time, such as `200 ms`.
    Duration,
    /// A size, such as `64 kB`.
    Bytes,
    /// A rate, such as `8 Mbit/s`.
    Rate,
    /// A rate of a whole number of bytes per second.
    ByteRate,
}

/// Every parameter of a stack, in the order in which [`to_toml`] writes them.
pub fn stack_parameters() -> Vec<StackParameter> {
    let mut list = List { section: "", parameters: Vec::new() };
    visit(&mut Config::default(), &mut list).expect("listing does not fail");
    list.parameters
}

/// A value whose kind is known.
trait StackValue: Written {
    const KIND: ValueKind;
}

macro_rules! kinds {
    ($($type:ty = $kind:expr;)*) => {$(
        impl StackValue for $type {
            const KIND: ValueKind = $kind;
        }
    )*};
}

kinds! {
    bool = ValueKind::Switch;
    u8 = ValueKind::Count(u8::MAX as u64);
    u32 = ValueKind::Count(u32::MAX as u64);
    Duration = ValueKind::Duration;
    Bytes = ValueKind::Bytes;
    Rate = ValueKind::Rate;
    BytesPerSecond = ValueKind::ByteRate;
    HyStart = ValueKind::Word(&HYSTART_NAMES);
    CongestionControlKind = ValueKind::Word(&CONTROLLER_NAMES);
}

/// What is done with each parameter.
trait Visitor: Sized {
    fn field<T: StackValue>(&mut self, key: &'static str, value: &mut T) -> Result<(), ExperimentError>;
    /// A parameter that can be absent, which the file calls `none`.
    fn option<T: StackValue>(
        &mut self,
        key: &'static str,
        none: &'static str,
        value: &mut Option<T>,
    ) -> Result<(), ExperimentError>;
    fn section(
        &mut self,
        key: &'static str,
        visit: impl FnOnce(&mut Self) -> Result<(), ExperimentError>,
    ) -> Result<(), ExperimentError>;
}

fn visit(config: &mut Config, v: &mut impl Visitor) -> Result<(), ExperimentError> {
    let Config { mss, receive, congestion, recovery, rto, handshake, send, explicit_rate } = config;
    v.field("mss", mss)?;
    v.section("receive", |v| {
        v.field("buffer", &mut receive.buffer)?;
        let mut read_rate = receive.read_rate.map(BytesPerSecond);
        v.option("read_rate", "unlimited", &mut read_rate)?;
        receive.read_rate = read_rate.map(|rate| rate.0);
        v.field("ack_every", &mut receive.ack_every)?;
        v.field("ack_delay", &mut receive.ack_delay)?;
        v.option("ack_delay_max", "none", &mut receive.ack_delay_max)?;
        v.field("ack_clock", &mut receive.ack_clock)?;
        v.field("quick_acks", &mut receive.quick_acks)?;
        v.field("quick_acks_after_gap", &mut receive.quick_acks_after_gap)?;
        v.field("quick_ack_accounting", &mut receive.quick_ack_accounting)?;
        v.field("autotuning", &mut receive.autotuning)?;
        v.field("ack_pushed", &mut receive.ack_pushed)?;
        v.field("compressed_acks", &mut receive.compressed_acks)?;
        v.field("ts_recent", &mut receive.ts_recent)
    })?;
    v.section("congestion", |v| {
        v.field("control", &mut congestion.control)?;
        v.field("initial_window", &mut congestion.initial_window)?;
        v.field("one_segment_after_syn_loss", &mut congestion.one_segment_after_syn_loss)?;
        v.option("initial_ssthresh", "unlimited", &mut congestion.initial_ssthresh)?;
        v.option("cwnd_clamp", "none", &mut congestion.cwnd_clamp)?;
        v.field("slow_start", &mut congestion.slow_start)?;
        v.field("hystart", &mut congestion.hystart)?;
        v.field("avoidance", &mut congestion.avoidance)?;
        v.field("credit_survives_loss", &mut congestion.credit_survives_loss)?;
        v.field("growth_by_delivery", &mut congestion.growth_by_delivery)?;
        v.field("cubic", &mut congestion.cubic)?;
        v.field("fast_convergence", &mut congestion.fast_convergence)?;
        v.field("friendly_alpha_one", &mut congestion.friendly_alpha_one)?;
        v.field("cwnd_validation", &mut congestion.cwnd_validation)?;
        v.field("avoidance_validation", &mut congestion.avoidance_validation)?;
        v.field("validation_by_window", &mut congestion.validation_by_window)?;
        v.field("restart_after_idle", &mut congestion.restart_after_idle)?;
        v.field("ssthresh_from", &mut congestion.ssthresh_from)?;
        v.field("ssthresh_on_repeated_timeout", &mut congestion.ssthresh_on_repeated_timeout)?;
        v.field("ssthresh_on_timeout_in_recovery", &mut congestion.ssthresh_on_timeout_in_recovery)
    })?;
    v.section("recovery", |v| {
        v.field("algorithm", &mut recovery.algorithm)?;
        v.field("dup_ack_threshold", &mut recovery.dup_ack_threshold)?;
        v.field("limited_transmit", &mut recovery.limited_transmit)?;
        v.field("sack", &mut recovery.sack)?;
        v.field("recover_guard", &mut recovery.recover_guard)?;
        v.field("guard_stops_limited_transmit", &mut recovery.guard_stops_limited_transmit)?;
        v.field("partial_ack_timer", &mut recovery.partial_ack_timer)?;
        v.field("full_ack_window", &mut recovery.full_ack_window)?;
        v.field("rescue_retransmission", &mut recovery.rescue_retransmission)?;
        v.field("rate_reduction", &mut recovery.rate_reduction)?;
        v.field("rate_reduction_without_sack", &mut recovery.rate_reduction_without_sack)?;
        v.field("rack", &mut recovery.rack)?;
        v.field("rack_rules", &mut recovery.rack_rules)?;
        v.field("timer_slack", &mut recovery.timer_slack)?;
        v.field("tail_loss_probe", &mut recovery.tail_loss_probe)?;
        v.field("probe_ack_delay", &mut recovery.probe_ack_delay)?;
        v.field("frto", &mut recovery.frto)?;
        v.field("eifel", &mut recovery.eifel)?;
        v.field("dsack", &mut recovery.dsack)?;
        v.field("undo_by_dsack", &mut recovery.undo_by_dsack)?;
        v.field("fast_retransmit_timer", &mut recovery.fast_retransmit_timer)?;
        v.field("timer_follows_repair", &mut recovery.timer_follows_repair)?;
        v.field("end_growth", &mut recovery.end_growth)?;
        v.field("unreported_before_window", &mut recovery.unreported_before_window)?;
        v.field("sacking_ack_is_duplicate", &mut recovery.sacking_ack_is_duplicate)?;
        v.field("deflate_below_ssthresh", &mut recovery.deflate_below_ssthresh)?;
        v.field("dup_acks_after_timeout", &mut recovery.dup_acks_after_timeout)
    })?;
    v.section("rto", |v| {
        v.field("initial", &mut rto.initial)?;
        v.field("min", &mut rto.min)?;
        v.field("max", &mut rto.max)?;
        v.field("tick", &mut rto.tick)?;
        v.field("timer_wheel", &mut rto.timer_wheel)?;
        v.field("srtt_divisor", &mut rto.srtt_divisor)?;
        v.field("rttvar_divisor", &mut rto.rttvar_divisor)?;
        v.field("rttvar_factor", &mut rto.rttvar_factor)?;
        v.field("floor", &mut rto.floor)?;
        v.field("sampling", &mut rto.sampling)?;
        v.field("measure", &mut rto.measure)?;
        v.field("backoff_reset", &mut rto.backoff_reset)?;
        v.field("max_backoff_exponent", &mut rto.max_backoff_exponent)?;
        v.field("karn_on_syn", &mut rto.karn_on_syn)?;
        v.option("after_syn_timeout", "none", &mut rto.after_syn_timeout)
    })?;
    v.section("handshake", |v| {
        v.option("syn_attempts", "unlimited", &mut handshake.syn_attempts)?;
        v.field("syn_linear_timeouts", &mut handshake.syn_linear_timeouts)?;
        v.option("connect_timeout", "none", &mut handshake.connect_timeout)?;
        v.option("synack_attempts", "unlimited", &mut handshake.synack_attempts)?;
        v.field("synack_shared_budget", &mut handshake.synack_shared_budget)?;
        v.option("data_retries", "unlimited", &mut handshake.data_retries)?;
        v.field("reset_when_closed", &mut handshake.reset_when_closed)?;
        v.field("time_wait", &mut handshake.time_wait)?;
        v.field("mss_option", &mut handshake.mss_option)?;
        v.field("ack_alone", &mut handshake.ack_alone)
    })?;
    v.section("send", |v| {
        v.option("buffer", "unlimited", &mut send.buffer)?;
        v.field("nagle", &mut send.nagle)?;
        v.field("minshall", &mut send.minshall)?;
        v.field("window_scaling", &mut send.window_scaling)?;
        v.field("timestamps", &mut send.timestamps)?;
        v.field("ecn", &mut send.ecn)?;
        v.field("pacing", &mut send.pacing)?;
        v.field("super_packets", &mut send.super_packets)?;
        v.field("tso_win_divisor", &mut send.tso_win_divisor)?;
        v.field("persist_min", &mut send.persist_min)?;
        v.field("persist_max", &mut send.persist_max)?;
        v.field("ttl", &mut send.ttl)
    })?;
    v.section("explicit_rate", |v| {
        v.option("wanted", "none", &mut explicit_rate.wanted)?;
        v.field("type", &mut explicit_rate.kind)?;
        v.option("guaranteed", "none", &mut explicit_rate.guaranteed)?;
        v.field("preemption", &mut explicit_rate.preemption)?;
        v.field("delay", &mut explicit_rate.delay)?;
        v.field("loss_limit_per_mille", &mut explicit_rate.loss_limit_per_mille)?;
        v.field("fallback", &mut explicit_rate.fallback)?;
        v.field("size_buffers", &mut explicit_rate.size_buffers)?;
        v.field("early_window", &mut explicit_rate.early_window)
    })
}

/// Puts what `reader` says in place of what `config` has.
pub(crate) fn override_by(config: &mut Config, reader: &mut Reader<'_>) -> Result<(), ExperimentError> {
    visit(config, reader)?;
    check(config, &reader.here())
}

impl Visitor for Reader<'_> {
    fn field<T: StackValue>(&mut self, key: &'static str, value: &mut T) -> Result<(), ExperimentError> {
        if let Some(given) = self.optional(key)? {
            *value = given;
        }
        Ok(())
    }

    fn option<T: StackValue>(
        &mut self,
        key: &'static str,
        none: &'static str,
        value: &mut Option<T>,
    ) -> Result<(), ExperimentError> {
        if let Some(given) = self.value(key) {
            *value = unless(given, &self.at(key), none)?;
        }
        Ok(())
    }

    fn section(
        &mut self,
        key: &'static str,
        visit: impl FnOnce(&mut Self) -> Result<(), ExperimentError>,
    ) -> Result<(), ExperimentError> {
        Reader::section(self, key, visit)
    }
}

/// The whole parameter set as TOML, which reads back to the same one.
pub fn to_toml(config: &Config) -> String {
    let mut table = Table::new();
    visit(&mut config.clone(), &mut table).expect("writing into a table does not fail");
    table.to_string()
}

impl Visitor for Table {
    fn field<T: StackValue>(&mut self, key: &'static str, value: &mut T) -> Result<(), ExperimentError> {
        self.insert(key.to_owned(), value.write());
        Ok(())
    }

    fn option<T: StackValue>(
        &mut self,
        key: &'static str,
        none: &'static str,
        value: &mut Option<T>,
    ) -> Result<(), ExperimentError> {
        let written = value.as_ref().map_or_else(|| Value::String(none.to_owned()), Written::write);
        self.insert(key.to_owned(), written);
        Ok(())
    }

    fn section(
        &mut self,
        key: &'static str,
        visit: impl FnOnce(&mut Self) -> Result<(), ExperimentError>,
    ) -> Result<(), ExperimentError> {
        let mut table = Table::new();
        visit(&mut table)?;
        self.insert(key.to_owned(), Value::Table(table));
        Ok(())
    }
}

/// The parameters that were visited, in the section that is being visited.
struct List {
    section: &'static str,
    parameters: Vec<StackParameter>,
}

impl List {
    fn add<T: StackValue>(&mut self, key: &str, absent: Option<&'static str>) {
        self.parameters.push(StackParameter { key: join(self.section, key), kind: T::KIND, absent });
    }
}

impl Visitor for List {
    fn field<T: StackValue>(&mut self, key: &'static str, _: &mut T) -> Result<(), ExperimentError> {
        self.add::<T>(key, None);
        Ok(())
    }

    fn option<T: StackValue>(
        &mut self,
        key: &'static str,
        none: &'static str,
        _: &mut Option<T>,
    ) -> Result<(), ExperimentError> {
        self.add::<T>(key, Some(none));
        Ok(())
    }

    fn section(
        &mut self,
        key: &'static str,
        visit: impl FnOnce(&mut Self) -> Result<(), ExperimentError>,
    ) -> Result<(), ExperimentError> {
        self.section = key;
        visit(self)?;
        self.section = "";
        Ok(())
    }
}

/// A rate of reading. Files say it in bit/s, as every rate; a stack counts it in whole bytes.
struct BytesPerSecond(u64);

impl Parameter for BytesPerSecond {
    const EXPECTED: &'static str = Rate::EXPECTED;
    fn read(value: &Value, at: &Location) -> Result<BytesPerSecond, ExperimentError> {
        let rate = Rate::read(value, at)?.bit_per_s();
        if rate.is_multiple_of(8) {
            Ok(BytesPerSecond(rate / 8))
        } else {
            Err(at.refuse(format!("{rate} bit/s is not a whole number of bytes per second")))
        }
    }
}

impl Written for BytesPerSecond {
    fn write(&self) -> Value {
        Value::String(format!("{} bit/s", u128::from(self.0) * 8))
    }
}

/// The name of each item of a constant array, as a constant array.
macro_rules! names {
    ($items:expr, |$item:ident| $name:expr) => {{
        let items = $items;
        let mut names = [""; $items.len()];
        let mut place = 0;
        while place < names.len() {
            let $item = items[place];
            names[place] = $name;
            place += 1;
        }
        names
    }};
}

/// `true` and `false` are what was said before there were two of it.
impl Parameter for HyStart {
    const EXPECTED: &'static str = "a word";
    fn read(value: &Value, at: &Location) -> Result<HyStart, ExperimentError> {
        match value.as_bool() {
            Some(true) => Ok(HyStart::Rfc9406),
            Some(false) => Ok(HyStart::Off),
            None => word(value, at, &HYSTARTS),
        }
    }
}

const HYSTARTS: [(&str, HyStart); 3] =
    [("off", HyStart::Off), ("rfc-9406", HyStart::Rfc9406), ("linux", HyStart::Linux)];

const HYSTART_NAMES: [&str; HYSTARTS.len()] = names!(HYSTARTS, |entry| entry.0);

impl Written for HyStart {
    fn write(&self) -> Value {
        let (name, _) = HYSTARTS.iter().find(|(_, rule)| rule == self).expect("each has a name");
        Value::String((*name).to_owned())
    }
}

impl Parameter for CongestionControlKind {
    const EXPECTED: &'static str = "a word";
    fn read(value: &Value, at: &Location) -> Result<CongestionControlKind, ExperimentError> {
        word(value, at, &CongestionControlKind::ALL.map(|kind| (kind.name(), kind)))
    }
}

const CONTROLLER_NAMES: [&str; CongestionControlKind::ALL.len()] =
    names!(CongestionControlKind::ALL, |kind| kind.name());

impl Written for CongestionControlKind {
    fn write(&self) -> Value {
        Value::String(self.name().to_owned())
    }
}

macro_rules! words {
    ($($type:ident { $($variant:ident = $name:literal),+ })*) => {$(
        impl Parameter for $type {
            const EXPECTED: &'static str = "a word";
            fn read(value: &Value, at: &Location) -> Result<$type, ExperimentError> {
                word(value, at, &[$(($name, $type::$variant)),+])
            }
        }
        impl StackValue for $type {
            const KIND: ValueKind = ValueKind::Word(&[$($name),+]);
        }
        impl Written for $type {
            fn write(&self) -> Value {
                Value::String(match self {
                    $($type::$variant => $name,)+
                }.to_owned())
            }
        }
    )*};
}

words! {
    AckClock { Segment = "segment", Host = "host" }
    TsRecent {
        Rfc7323 = "rfc-7323", Linux = "linux", FreeBsd = "freebsd", Rfc1323 = "rfc-1323", InOrder = "in-order"
    }
    QuickAckAccounting { PerSegment = "per-segment", Linux = "linux" }
    SlowStartGrowth { PerAck = "per-ack", PerByte = "per-byte", TwoSegments = "two-segments", AllAcked = "all-acked" }
    AvoidanceGrowth {
        PerAck = "per-ack", PerByte = "per-byte", PerAckRounded = "per-ack-rounded", AllAcked = "all-acked"
    }
    SynLoss { Never = "never", First = "first", Second = "second" }
    SsthreshFrom {
        FlightSize = "flight-size", WindowSegments = "window-segments", Cwnd = "cwnd",
        CwndSegments = "cwnd-segments", Pipe = "pipe"
    }
    EndGrowth { AfterTimeout = "after-timeout", AfterFastRecovery = "after-fast-recovery", AfterBoth = "after-both" }
    RecoveryAlgorithm {
        TimeoutOnly = "timeout-only", Tahoe = "tahoe", Reno = "reno", NewReno = "new-reno"
    }
    CubicRules { Rfc9438 = "rfc-9438", Linux = "linux" }
    RackRules { Rfc8985 = "rfc-8985", Linux = "linux" }
    FullAckWindow { FlightSize = "flight-size", Ssthresh = "ssthresh" }
    RateReduction {
        AtOnce = "at-once", Conservative = "conservative", SlowStart = "slow-start", SafeAck = "safe-ack"
    }
    PartialAckTimer {
        Impatient = "impatient", SlowButSteady = "slow-but-steady", ImpatientWithSack = "impatient-with-sack"
    }
    RateKind {
        Available = "available", Composite = "composite", Maximum = "maximum", Guaranteed = "guaranteed"
    }
    EcnMode { Off = "off", Accept = "accept", Request = "request" }
    RtoFloor { Rto = "rto", Variance = "variance" }
    RttSampling { OneAtATime = "one-at-a-time", EveryAck = "every-ack" }
    RttMeasure { Exact = "exact", Ticks = "ticks" }
    BackoffReset { ValidSample = "valid-sample", AnyAck = "any-ack" }
}

/// Refuses values with which a stack cannot work.
fn check(config: &Config, at: &Location) -> Result<(), ExperimentError> {
    let Config { mss, receive, congestion, recovery, rto, handshake, send, explicit_rate } = config;
    // Of a sweep this is asked at every point, and nearly everywhere in vain: reasons are put into words where they are needed.
    let rule = |holds: bool, key: &str, reason: &dyn Fn() -> String| {
        if holds { Ok(()) } else { Err(at.child(key).refuse(reason())) }
    };
    let positive =
        |holds: bool, key: &str, what: &str| rule(holds, key, &|| format!("{what} cannot be zero"));

    positive(*mss > Bytes::ZERO, "mss", "a segment's length")?;
    rule(*mss <= MAX_MSS, "mss", &|| format!("{mss} does not fit into an IP packet; the most is {MAX_MSS}"))?;
    let room = !send.timestamps || *mss > TIMESTAMPS;
    rule(room, "mss", &|| format!("{mss} leaves no room for data beside the {TIMESTAMPS} of timestamps"))?;

    positive(receive.buffer > Bytes::ZERO, "receive.buffer", "a window")?;
    positive(receive.ack_every > 0, "receive.ack_every", "the number of segments to acknowledge")?;

    positive(congestion.initial_window > 0, "congestion.initial_window", "a window")?;
    let key = "congestion.initial_ssthresh";
    positive(congestion.initial_ssthresh != Some(Bytes::ZERO), key, "ssthresh")?;
    let clamp = congestion.cwnd_clamp.unwrap_or(Bytes::MAX);
    let reason = || format!("{clamp} is below the segment's length of {mss}: nothing could be sent");
    rule(clamp >= *mss, "congestion.cwnd_clamp", &reason)?;

    positive(recovery.dup_ack_threshold > 0, "recovery.dup_ack_threshold", "a threshold")?;

    positive(!rto.initial.is_zero(), "rto.initial", "a timeout")?;
    positive(!rto.min.is_zero(), "rto.min", "a timeout")?;
    rule(rto.min <= rto.max, "rto.min", &|| format!("{} is above `rto.max`, {}", rto.min, rto.max))?;
    let reason = || format!("{} is above `rto.max`, {}", rto.initial, rto.max);
    rule(rto.initial <= rto.max, "rto.initial", &reason)?;
    positive(rto.srtt_divisor > 0, "rto.srtt_divisor", "a divisor")?;
    positive(rto.rttvar_divisor > 0, "rto.rttvar_divisor", "a divisor")?;
    positive(rto.rttvar_factor > 0, "rto.rttvar_factor", "a factor")?;
    let restart = rto.after_syn_timeout.is_none_or(|timeout| !timeout.is_zero());
    positive(restart, "rto.after_syn_timeout", "a timeout")?;

    positive(handshake.syn_attempts != Some(0), "handshake.syn_attempts", "the number of SYNs")?;
    let within = handshake.connect_timeout.is_none_or(|timeout| !timeout.is_zero());
    positive(within, "handshake.connect_timeout", "a time")?;
    positive(handshake.synack_attempts != Some(0), "handshake.synack_attempts", "the number of SYN/ACKs")?;

    positive(send.buffer != Some(Bytes::ZERO), "send.buffer", "a buffer")?;
    positive(!send.persist_min.is_zero(), "send.persist_min", "an interval")?;
    let reason = || format!("{} is above `send.persist_max`, {}", send.persist_min, send.persist_max);
    rule(send.persist_min <= send.persist_max, "send.persist_min", &reason)?;
    rule(send.ttl > 0, "send.ttl", &|| "a packet with a TTL of zero never leaves its host".to_owned())?;

    let limit = explicit_rate.loss_limit_per_mille;
    let reason = || format!("{limit} packets of a thousand are more than all of them");
    rule(limit <= 1000, "explicit_rate.loss_limit_per_mille", &reason)?;
    for (level, key) in
        [(explicit_rate.preemption, "explicit_rate.preemption"), (explicit_rate.delay, "explicit_rate.delay")]
    {
        rule(level < 64, key, &|| format!("a priority is 0 to 63, not {level}"))?;
    }
    let composite = explicit_rate.kind == RateKind::Composite;
    let reason = match composite {
        true => "a composite rate has a guaranteed one beside the one that is wanted",
        false => "only a composite rate has it beside the one that is wanted",
    };
    rule(composite == explicit_rate.guaranteed.is_some(), "explicit_rate.guaranteed", &|| reason.to_owned())
}
