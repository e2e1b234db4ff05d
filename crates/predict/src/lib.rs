//! The `predict` engine: which model says how long a transfer takes, and how far it can be trusted.
//!
//! A scenario in, a [`Run`] of expectations out, by arithmetic alone: the models of `farpath-model` are asked what the scenario's
//! stacks and path make of a transfer.

mod domain;
mod granted;
mod handshake;
mod loss;
mod path_view;
mod stream;
mod transient;

pub use handshake::{
    FIRST_PROBE, connects, data_retries, file_arrives, listening, opening, syn_doublings, timer, unanswered,
    unsampled,
};
pub use path_view::{PathView, loss};
pub use stream::stream_loss;

use farpath_experiment::{FlowSpec, KernelOnly, Opener, Point, Scenario, Transport, base_rtt};
use farpath_model::lossless::{self, LosslessTimes, LosslessTransfer};
use farpath_model::radius::{Connects, LossyWay};
use farpath_model::window_limit::{DelayedAckCycle, SteadyCycle};
use farpath_model::{Estimate, InputError};
use farpath_run::{Engine, FlowRow, Outcome, Provenance, Run, RunKey, StreamFigures};
use farpath_tcp::Config;
use farpath_tcp::config::{EcnMode, RttMeasure};
use farpath_units::{Bytes, Duration, Instant};

/// Of timeouts that are shorter than a round trip.
const SPURIOUS: &str =
    "a round trip takes longer than a timeout: what is sent again without a loss is left out";

/// Flows that differ and whose predictions are kept for those that are the same.
const KNOWN_FLOWS: usize = 16;

/// Why there is no prediction for a scenario that the experiment's checks let through.
#[derive(Debug, thiserror::Error)]
pub enum PredictError {
    /// A model has no answer for these inputs: a defect, since an experiment is checked before it is predicted.
    #[error("no closed form applies: {0}")]
    Model(#[from] InputError),
    /// An end has what only a kernel runs.
    #[error(transparent)]
    KernelOnly(#[from] KernelOnly),
}

/// Predicts one point. A prediction has no seed: it is an expectation.
///
/// # Errors
/// Inputs that no model takes; an end that has what only a kernel runs.
pub fn predict(point: &Point, provenance: Provenance) -> Result<Run, PredictError> {
    let scenario = &point.scenario;
    scenario.needs_no_kernel("predict")?;
    let key = RunKey { point: point.index as u64, engine: Engine::Predict, seed: None };
    let mut run = Run::new(key, provenance);
    let foreign = scenario.foreign_hosts().next();
    let why = match (scenario.transport, foreign) {
        (Transport::Udp, _) => Some("there is no model of streams over UDP".to_owned()),
        (_, Some((key, implementation))) => {
            Some(format!("{key}: there is no model of `{implementation}`, which is not ours"))
        }
        _ => None,
    };
    if let Some(why) = why {
        let why = why.as_str();
        let nothing = |(number, flow): (u32, &FlowSpec)| {
            let row = FlowRow::new(number, flow.direction.name(), Outcome::Unknown, flow.size);
            domain::unknown(&FlowRow { start: Instant::ZERO + flow.start, ..row }, why)
        };
        run.flows = (0..).zip(&scenario.flows).map(nothing).collect();
        run.provenance.caveats.push(format!("no prediction: {why}"));
        return Ok(run);
    }
    // Flows that are the same are predicted once: thousands of them are written as one, with a count.
    let mut known: Vec<(&FlowSpec, Prediction)> = Vec::new();
    let mut rates = Vec::with_capacity(scenario.flows.len());
    for (number, flow) in (0..).zip(&scenario.flows) {
        if !known.last().is_some_and(|(last, _)| *last == flow) {
            match known.iter().position(|(other, _)| *other == flow) {
                Some(place) => known[place..].rotate_left(1),
                None => {
                    let prediction = Flow::new(scenario, flow).predict(scenario)?;
                    for caveat in &prediction.caveats {
                        if !run.provenance.caveats.contains(caveat) {
                            run.provenance.caveats.push(caveat.clone());
                        }
                    }
                    if known.len() == KNOWN_FLOWS {
                        known.remove(0);
                    }
                    known.push((flow, prediction));
                }
            }
        }
        if let Some((_, prediction)) = known.last() {
            run.flows.push(row(number, scenario, flow, prediction));
            rates.push((flow.direction, prediction.wire_rate));
        }
    }
    if let Some(why) = domain::shared(scenario, &mut run.flows, &rates) {
        run.provenance.caveats.push(format!("no prediction: {why}"));
    } else if scenario.flows.len() > 1 {
        run.provenance.caveats.push("predicted as if each flow had the path to itself".to_owned());
    }
    Ok(run)
}

/// What the models say of one flow.
struct Prediction {
    /// How likely a connection opens, and when.
    connects: Connects,
    /// How likely the transfer completes.
    completes: f64,
    established: Duration,
    transfer_time: Duration,
    /// First transmissions of data.
    segments: f64,
    retransmissions: Option<f64>,
    timeouts: Option<f64>,
    fast_retransmits: Option<f64>,
    /// The model that decided.
    by: &'static str,
    /// What it says of a stream.
    stream: StreamFigures,
    caveats: Vec<String>,
    /// Why nothing is predicted.
    unknown: Option<String>,
    /// What it takes of a link, in bit/s.
    wire_rate: f64,
}

/// A flow, and what the models need to know of it.
struct Flow<'a> {
    view: PathView,
    spec: &'a FlowSpec,
    sender: &'a Config,
    receiver: &'a Config,
    /// The most that may be unacknowledged.
    window: Bytes,
}

/// Whether both ends take selective acknowledgments.
fn sack(flow: &Flow) -> bool {
    flow.sender.recovery.sack && flow.receiver.recovery.sack
}

/// Whether losses are found by time (RFC 8985).
fn rack(flow: &Flow) -> bool {
    flow.sender.recovery.rack && sack(flow)
}

/// Whether the ends agree on ECN: the opener asks, the other accepts.
fn uses_ecn(spec: &FlowSpec, sender: &Config, receiver: &Config) -> bool {
    let (opener, other) = match spec.opener {
        Opener::Sender => (sender, receiver),
        Opener::Receiver => (receiver, sender),
    };
    opener.send.ecn == EcnMode::Request && other.send.ecn != EcnMode::Off
}

impl<'a> Flow<'a> {
    fn new(scenario: &'a Scenario, spec: &'a FlowSpec) -> Flow<'a> {
        let (sender, receiver) = scenario.ends(spec);
        let (sender, receiver) = (&sender.config, &receiver.config);
        let view = PathView::new(&scenario.path_of(spec), spec.direction, sender, receiver);
        Flow { view, spec, sender, receiver, window: effective_window(sender, receiver) }
    }

    /// The end whose SYN opens the connection.
    fn opener(&self) -> &'a Config {
        match self.spec.opener {
            Opener::Sender => self.sender,
            Opener::Receiver => self.receiver,
        }
    }

    fn ack_every(&self) -> u64 {
        if self.receiver.receive.ack_delay.is_zero() { 1 } else { self.receiver.receive.ack_every.into() }
    }

    fn segments(&self) -> f64 {
        self.spec.size.0.div_ceil(self.view.mss.0) as f64
    }

    /// The first `size` bytes without any loss.
    fn lossless(&self, size: Bytes) -> Result<Estimate<LosslessTimes>, InputError> {
        let congestion = &self.sender.congestion;
        LosslessTransfer {
            path: &self.view.path,
            size,
            mss: self.view.mss,
            rwnd: self.window,
            initial_window: u64::from(congestion.initial_window),
            initial_ssthresh: congestion.initial_ssthresh.unwrap_or(Bytes::MAX),
            ack_every: self.ack_every(),
            delayed_ack_timeout: self.receiver.receive.ack_delay,
            opener: match self.spec.opener {
                Opener::Sender => lossless::Opener::Sender,
                Opener::Receiver => lossless::Opener::Receiver,
            },
        }
        .times()
    }

    /// A round of a window of so many segments.
    fn cycle(&self, window: Bytes) -> Result<Estimate<SteadyCycle>, InputError> {
        DelayedAckCycle {
            path: &self.view.path,
            mss: self.view.mss,
            rwnd: window,
            ack_every: self.ack_every(),
            delayed_ack_timeout: self.receiver.receive.ack_delay,
        }
        .steady()
    }

    /// A round that leaves the links idle: of as many segments as one ACK takes.
    fn round(&self) -> Result<Duration, InputError> {
        Ok(self.cycle(Bytes(self.view.mss.0.saturating_mul(self.ack_every())))?.value.time)
    }

    /// The retransmission timeout once `rtt` has been measured as always the same, without the wait for a tick.
    fn timeout(&self, rtt: Duration, variation: Duration) -> Duration {
        let rto = &self.sender.rto;
        let rtt = if rto.measure == RttMeasure::Ticks { rtt.max(rto.tick) } else { rtt };
        rto.timeout(rtt, variation)
    }

    /// Whether the handshake, or the first data after it, takes longer than its timeout.
    fn spurious_timeout(&self) -> Result<Option<String>, InputError> {
        let handshake = self.view.handshake_rtt;
        let first_window =
            Bytes(self.view.mss.0.saturating_mul(self.sender.congestion.initial_window.into()));
        let data = self.cycle(first_window.min(self.window))?.value.time;
        let measured = self.timeout(handshake, handshake / 2);
        let late =
            [(handshake, self.opener().rto.initial), (data, measured)].iter().any(|(rtt, rto)| rtt > rto);
        Ok(late.then(|| SPURIOUS.to_owned()))
    }

    fn predict(&self, scenario: &Scenario) -> Result<Prediction, InputError> {
        if let Some(stream) = &self.spec.stream {
            return stream::predict(self, stream, &scenario.path, base_rtt(scenario, self.spec.direction));
        }
        let mut prediction = self.predict_file(self.spec.size)?;
        if !granted::add(self, &scenario.path, &mut prediction)? {
            match domain::outside(self, &scenario.path_of(self.spec)) {
                Some(why) => prediction.withdraw(why),
                None => loss::add(self, &mut prediction)?,
            }
        }
        prediction.wire_rate = domain::on_the_wire(self, &prediction);
        Ok(prediction)
    }

    /// How likely a connection opens, and the transfer completes.
    fn connection(&self) -> Result<(Estimate<Connects>, f64), InputError> {
        // The hosts of a simulation and of an emulation have one clock.
        let clocks = [self.spec.start.as_secs_f64(); 2];
        let way = self.view.lossy_way();
        let segments = self.spec.size.0.div_ceil(self.view.mss.0).max(1);
        let file = file_arrives(self.sender, &way, segments)?.value;
        match self.spec.opener {
            Opener::Sender => {
                let connects = connects(self.sender, self.receiver, way, clocks, segments)?;
                let Connects { usable, delivered, .. } = connects.value;
                Ok((connects, if segments == 1 { delivered } else { usable * file }))
            }
            Opener::Receiver => {
                let back = LossyWay {
                    forward_delay: way.reverse_delay,
                    reverse_delay: way.forward_delay,
                    forward_loss: way.reverse_loss,
                    reverse_loss: way.forward_loss,
                    data_loss: way.reverse_loss,
                };
                let requests = self.spec.request.0.div_ceil(self.view.mss.0);
                let connects = connects(self.receiver, self.sender, back, clocks, requests)?;
                let Connects { usable, delivered, .. } = connects.value;
                Ok((connects, file * if requests == 1 { delivered } else { usable }))
            }
        }
    }

    /// The first `size` bytes, without any loss.
    fn predict_file(&self, size: Bytes) -> Result<Prediction, InputError> {
        let lossless = self.lossless(size)?;
        let mut caveats = self.view.caveats.clone();
        caveats.extend(lossless.caveats);
        let (connects, completes) = self.connection()?;
        let Connects { opened, usable, .. } = connects.value;
        if opened < 0.99 {
            caveats.push("some connections do not open: times are of those that do".to_owned());
        }
        if opened - usable > 0.01 {
            caveats.push("some connections open to one end only: the other has given up by then".to_owned());
        }
        if self.spec.size > self.view.mss && completes < 0.99 * usable {
            let caveat = "more transfers may complete: they are counted as if each segment had only the timer to repair it";
            caveats.push(caveat.to_owned());
        }
        caveats.extend(connects.caveats);
        if self.spec.opener == Opener::Receiver && self.spec.request > self.view.mss {
            caveats.push("the request takes more than one segment; its time is left out".to_owned());
        }
        if self.receiver.receive.read_rate.is_some() {
            caveats.push("the receiving application is taken to read at once".to_owned());
        }
        caveats.extend(self.spurious_timeout()?);
        let times = lossless.value;
        Ok(Prediction {
            connects: connects.value,
            completes,
            established: times.established,
            transfer_time: times.last_byte_received,
            segments: self.segments(),
            retransmissions: Some(0.0),
            timeouts: Some(0.0),
            fast_retransmits: Some(0.0),
            by: lossless.source,
            stream: StreamFigures::default(),
            caveats,
            unknown: None,
            wire_rate: 0.0,
        })
    }
}

/// The most that may be unacknowledged: the receiver's window as far as it can be announced, and the sender's limits.
pub fn effective_window(sender: &Config, receiver: &Config) -> Bytes {
    let scaled = sender.scales_with(receiver);
    // RFC 7323 §2.3: the largest shift is 14.
    let most = Bytes(if scaled { 65_535 << 14 } else { 65_535 });
    let announced = receiver.receive.buffer.min(most);
    let limits = [sender.congestion.cwnd_clamp, sender.send.buffer];
    limits.into_iter().flatten().fold(announced, Bytes::min)
}

fn row(number: u32, scenario: &Scenario, flow: &FlowSpec, prediction: &Prediction) -> FlowRow {
    let start = Instant::ZERO + flow.start;
    let Prediction { connects: Connects { opened, .. }, completes, .. } = *prediction;
    let connect_time = (opened > 0.0).then_some(prediction.established);
    if let Some(why) = &prediction.unknown {
        let row = FlowRow::new(number, flow.direction.name(), Outcome::Unknown, flow.size);
        let known = FlowRow { start, opened: Some(opened), completed: Some(completes), connect_time, ..row };
        return domain::unknown(&known, why);
    }
    let in_time = completes > 0.0 && start + prediction.transfer_time <= Instant::ZERO + scenario.horizon;
    let seconds = prediction.transfer_time.as_secs_f64();
    let goodput = (in_time && seconds > 0.0).then(|| flow.size.0 as f64 * 8.0 / seconds);
    // The counts are those of a whole transfer: of one cut short the models say nothing.
    let whole = in_time.then_some(prediction);
    let data_segments = whole.and_then(|whole| Some(whole.segments + whole.retransmissions?));
    let share_new = data_segments.map(|sent| prediction.segments / sent);
    let outcome = match in_time {
        true => Outcome::Completed,
        false if opened == 0.0 => Outcome::ConnectTimedOut,
        false if completes == 0.0 => Outcome::Aborted,
        false => Outcome::Horizon,
    };
    FlowRow {
        ended_at: in_time.then(|| start + prediction.transfer_time),
        detail: prediction.by.to_owned(),
        start,
        opened: Some(opened),
        completed: (in_time || completes == 0.0).then_some(completes),
        connect_time,
        transfer_time: in_time.then_some(prediction.transfer_time),
        bytes_read: if in_time { flow.size } else { Bytes::ZERO },
        goodput_bit_per_s: goodput,
        throughput_bit_per_s: goodput.zip(share_new).map(|(goodput, share)| goodput / share),
        efficiency: share_new,
        data_segments,
        retransmissions: whole.and_then(|whole| whole.retransmissions),
        timeouts: whole.and_then(|whole| whole.timeouts),
        fast_retransmits: whole.and_then(|whole| whole.fast_retransmits),
        stream: whole.map(|whole| whole.stream).unwrap_or_default(),
        ..FlowRow::new(number, flow.direction.name(), outcome, flow.size)
    }
}
