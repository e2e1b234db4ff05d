//! Whatever the text: no panic, and an error that names the file. Every stack reads back as written.

use farpath_experiment::{Experiment, Stack, shipped_experiments, to_toml};
use farpath_tcp::config::{
    AckClock, AvoidanceGrowth, BackoffReset, Config, CongestionControlKind, EcnMode, FullAckWindow, HyStart,
    PartialAckTimer, QuickAckAccounting, RecoveryAlgorithm, RtoFloor, RttMeasure, RttSampling,
    SlowStartGrowth, SsthreshFrom, SynLoss,
};
use farpath_units::{Bytes, Duration};
use proptest::prelude::*;
use proptest::sample::select;

fn check(text: &str) {
    if let Err(error) = Experiment::parse(text, "some.toml", &[]) {
        let message = error.to_string();
        assert!(message.starts_with("some.toml: "), "{message}");
    }
}

/// One change to a text: what becomes of the character or line at `place`.
#[derive(Debug, Clone)]
enum Edit {
    DropChar,
    PutChar(char),
    SwapChar(char),
    DropLine,
    RepeatLine,
    SwapLine(String),
}

fn edit() -> impl Strategy<Value = Edit> {
    let telling = select("\"[]{}=.,#-_%/ 09eE\n\\'xµ".chars().collect::<Vec<_>>());
    let lines = select(vec![
        "[sweep]",
        "[[path]]",
        "[[flow]]",
        "[sender]",
        "size = 1",
        "path = 1",
        "count = 0",
        "= =",
    ]);
    prop_oneof![
        Just(Edit::DropChar),
        telling.clone().prop_map(Edit::PutChar),
        telling.prop_map(Edit::SwapChar),
        any::<char>().prop_map(Edit::SwapChar),
        Just(Edit::DropLine),
        Just(Edit::RepeatLine),
        lines.prop_map(|line| Edit::SwapLine(line.to_owned())),
    ]
}

fn apply(text: &str, edit: &Edit, place: prop::sample::Index) -> String {
    let mut chars: Vec<char> = text.chars().collect();
    let mut lines: Vec<&str> = text.lines().collect();
    let (c, l) = (place.index(chars.len().max(1)), place.index(lines.len().max(1)));
    match edit {
        _ if text.is_empty() => return text.to_owned(),
        Edit::DropChar => drop(chars.remove(c)),
        Edit::PutChar(new) => chars.insert(c, *new),
        Edit::SwapChar(new) => chars[c] = *new,
        Edit::DropLine => drop(lines.remove(l)),
        Edit::RepeatLine => lines.insert(l, lines[l]),
        Edit::SwapLine(new) => lines[l] = new,
    }
    match edit {
        Edit::DropChar | Edit::PutChar(_) | Edit::SwapChar(_) => chars.into_iter().collect(),
        Edit::DropLine | Edit::RepeatLine | Edit::SwapLine(_) => lines.join("\n"),
    }
}

/// Draws each parameter from a list of numbers, within what is accepted.
struct Draw<'a>(std::slice::Iter<'a, u64>);

impl Draw<'_> {
    fn number(&mut self) -> u64 {
        *self.0.next().expect("as many numbers as parameters")
    }

    fn count(&mut self) -> u32 {
        (self.number() as u32).max(1)
    }

    fn switch(&mut self) -> bool {
        self.number().is_multiple_of(2)
    }

    fn time(&mut self) -> Duration {
        Duration::from_nanos((self.number() / 4).max(1))
    }

    fn size(&mut self) -> Bytes {
        Bytes(self.number().max(65_495))
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.number() as usize % of.len()]
    }

    fn maybe<T>(&mut self, value: impl FnOnce(&mut Self) -> T) -> Option<T> {
        let there = self.switch();
        let value = value(self);
        there.then_some(value)
    }

    fn config(mut self) -> Config {
        let mut config = Config { mss: Bytes(13 + self.number() % 65_483), ..Config::default() };
        let receive = &mut config.receive;
        receive.buffer = self.size();
        receive.read_rate = self.maybe(|d| (d.number() / 8).max(1));
        receive.ack_every = self.count();
        receive.ack_delay = self.time();
        receive.ack_delay_max = self.maybe(|d| d.time());
        receive.ack_clock = self.one(&[AckClock::Segment, AckClock::Host]);
        receive.quick_acks = self.count();
        receive.quick_ack_accounting = self.one(&[QuickAckAccounting::PerSegment, QuickAckAccounting::Linux]);
        receive.autotuning = self.switch();
        let congestion = &mut config.congestion;
        congestion.control = self.one(&[
            CongestionControlKind::Reno,
            CongestionControlKind::Cubic,
            CongestionControlKind::Bbr,
            CongestionControlKind::Bbr3,
        ]);
        congestion.initial_window = self.count();
        congestion.initial_ssthresh = self.maybe(Draw::size);
        congestion.cwnd_clamp = self.maybe(Draw::size);
        congestion.slow_start =
            self.one(&[SlowStartGrowth::PerAck, SlowStartGrowth::PerByte, SlowStartGrowth::TwoSegments]);
        congestion.avoidance = self.one(&[AvoidanceGrowth::PerAck, AvoidanceGrowth::PerByte]);
        congestion.hystart = self.one(&[HyStart::Off, HyStart::Rfc9406, HyStart::Linux]);
        congestion.fast_convergence = self.switch();
        congestion.cwnd_validation = self.switch();
        congestion.restart_after_idle = self.switch();
        congestion.ssthresh_from =
            self.one(&[SsthreshFrom::FlightSize, SsthreshFrom::WindowSegments, SsthreshFrom::Cwnd]);
        congestion.ssthresh_on_repeated_timeout = self.switch();
        congestion.one_segment_after_syn_loss = self.one(&[SynLoss::Never, SynLoss::First, SynLoss::Second]);
        let recovery = &mut config.recovery;
        recovery.algorithm = self.one(&[
            RecoveryAlgorithm::TimeoutOnly,
            RecoveryAlgorithm::Tahoe,
            RecoveryAlgorithm::Reno,
            RecoveryAlgorithm::NewReno,
        ]);
        recovery.dup_ack_threshold = self.count();
        recovery.limited_transmit = self.switch();
        recovery.sack = self.switch();
        recovery.recover_guard = self.switch();
        recovery.full_ack_window = self.one(&[FullAckWindow::FlightSize, FullAckWindow::Ssthresh]);
        recovery.partial_ack_timer = self.one(&[PartialAckTimer::Impatient, PartialAckTimer::SlowButSteady]);
        let rto = &mut config.rto;
        (rto.initial, rto.min, rto.tick) = (self.time(), self.time(), self.time());
        rto.max = rto.initial.max(rto.min) + self.time();
        rto.srtt_divisor = self.count();
        rto.rttvar_divisor = self.count();
        rto.rttvar_factor = self.count();
        rto.floor = self.one(&[RtoFloor::Rto, RtoFloor::Variance]);
        rto.sampling = self.one(&[RttSampling::OneAtATime, RttSampling::EveryAck]);
        rto.measure = self.one(&[RttMeasure::Exact, RttMeasure::Ticks]);
        rto.backoff_reset = self.one(&[BackoffReset::ValidSample, BackoffReset::AnyAck]);
        rto.max_backoff_exponent = self.count();
        rto.karn_on_syn = self.switch();
        rto.after_syn_timeout = self.maybe(Draw::time);
        let handshake = &mut config.handshake;
        handshake.syn_attempts = self.maybe(Draw::count);
        handshake.syn_linear_timeouts = self.count();
        handshake.synack_attempts = self.maybe(Draw::count);
        handshake.synack_shared_budget = self.switch();
        handshake.data_retries = self.maybe(Draw::count);
        handshake.reset_when_closed = self.switch();
        handshake.time_wait = self.time();
        let send = &mut config.send;
        send.buffer = self.maybe(Draw::size);
        send.nagle = self.switch();
        send.window_scaling = self.switch();
        send.timestamps = self.switch();
        send.ecn = self.one(&[EcnMode::Off, EcnMode::Accept, EcnMode::Request]);
        send.persist_min = self.time();
        send.persist_max = send.persist_min + self.time();
        config
    }
}

proptest! {
    #[test]
    fn a_stack_reads_back_as_written(numbers in prop::collection::vec(any::<u64>(), 80)) {
        let config = Draw(numbers.iter()).config();
        let text = format!("title = \"T\"\n{}", to_toml(&config));
        let stack = Stack::parse(&text, "t.toml").map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert_eq!(stack.config, config);
    }

    #[test]
    fn any_text_is_read_or_refused(text in any::<String>()) {
        check(&text);
    }

    #[test]
    fn text_that_looks_like_toml_is_read_or_refused(text in "([a-z.\"\\[\\]{}=, 0-9%]{0,12}\n){0,12}") {
        check(&text);
    }

    #[test]
    fn a_spoilt_experiment_is_read_or_refused(
        file in 0..shipped_experiments().len(),
        edits in prop::collection::vec((edit(), any::<prop::sample::Index>()), 1..4),
    ) {
        let mut text = shipped_experiments()[file].text.to_owned();
        for (edit, place) in &edits {
            text = apply(&text, edit, *place);
        }
        check(&text);
    }

    #[test]
    fn any_override_is_taken_or_refused(
        key in "(path|path.loss|path.loss.rate|sender|sender.rto|flow.0|sweep|sweep.seed|seed)(.[a-z]{1,4}){0,2}",
        value in "([0-9a-z%\\[\\]{}=, \"]{1,8})",
    ) {
        let text = shipped_experiments()[1].text;
        if let Ok(change) = format!("{key}={value}").parse()
            && let Err(error) = Experiment::parse(text, "some.toml", &[change])
        {
            prop_assert!(error.to_string().starts_with("some.toml: "), "{}", error);
        }
    }
}
