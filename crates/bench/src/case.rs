//! A transfer that both simulators can be asked for.

use farpath_experiment::{Experiment, ExperimentError};
use farpath_run::{Outcome, Provenance, Run};
use farpath_units::{Bytes, Duration, Probability, Rate};
use toml::{Table, Value};

/// Framing of ns-3's point-to-point link: the protocol field of PPP.
const FRAMING: &str = "2 B";

/// Of SYNs, SYN/ACKs and of one segment, in both.
const RETRIES: i64 = 30;

/// A TCP by its names: ns-3's, and ours as changes to the stack `ns-3.44`.
#[derive(Debug, Clone, PartialEq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// What it is.
    pub about: String,
    /// Congestion control, `TcpNewReno`.
    pub control: String,
    /// Recovery with its namespace: `ns3::TcpClassicRecovery`, or one of our program's.
    pub recovery: String,
    /// Selective acknowledgments.
    pub sack: bool,
    /// Changes to our stack, by key.
    #[serde(default)]
    pub ours: Table,
}

/// One point of the grid.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// What it is called in tables.
    pub label: String,
    /// Which TCP.
    pub variant: Variant,
    /// Of the link, in the data direction.
    pub rate: Rate,
    /// In the ACKs' direction.
    pub reverse_rate: Rate,
    /// One way.
    pub delay: Duration,
    /// Packets that wait at most, in the data direction; `None` is without limit.
    pub queue: Option<u64>,
    /// Payload of a full segment.
    pub segment: u64,
    /// Receive buffer.
    pub window: Bytes,
    /// Bytes of the file.
    pub size: Bytes,
    /// Independent loss in the data direction, SYN included.
    pub loss: Probability,
    /// Numbers of the packets that are dropped, from 1, by direction.
    pub drops: [Vec<u64>; 2],
    /// Minimum RTO.
    pub min_rto: Duration,
    /// Longest that an ACK is withheld.
    pub ack_delay: Duration,
    /// In segments.
    pub initial_window: u32,
    /// At least so often the segment is sent that is sent most often: whether the losses are where they are meant to be.
    pub copies: Option<usize>,
}

impl Case {
    /// Arguments of ns-3's program, for `seeds` runs.
    pub fn arguments(&self, seeds: u64, trace: bool) -> Vec<String> {
        let mut arguments = vec![
            format!("--control=ns3::{}", self.variant.control),
            format!("--recovery={}", self.variant.recovery),
            format!("--sack={}", self.variant.sack),
            format!("--rate={}", self.rate.bit_per_s()),
            format!("--reverse-rate={}", self.reverse_rate.bit_per_s()),
            // HyStart's form in ns-3 is another one than HyStart++.
            "--hystart=false".to_owned(),
            format!("--delay={}", self.delay.as_nanos()),
            format!("--queue={}", self.queue.unwrap_or(0)),
            format!("--segment={}", self.segment),
            format!("--window={}", self.window.0),
            format!("--window-scaling={}", self.scales_windows()),
            format!("--size={}", self.size.0),
            format!("--loss={}", self.loss.fraction()),
            format!("--min-rto={}", self.min_rto.as_nanos()),
            format!("--ack-delay={}", self.ack_delay.as_nanos()),
            format!("--initial-window={}", self.initial_window),
            format!("--seeds={seeds}"),
            format!("--trace={trace}"),
        ];
        for (way, numbers) in ["forward", "reverse"].into_iter().zip(&self.drops) {
            if !numbers.is_empty() {
                let list = numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(",");
                arguments.push(format!("--drop-{way}={list}"));
            }
        }
        arguments
    }

    fn scales_windows(&self) -> bool {
        self.window.0 > u64::from(u16::MAX)
    }

    /// The same as one of our experiments, with `changes` to both stacks on top of the variant's.
    ///
    /// # Errors
    /// A variant or a change names a key that does not exist, or a value that is refused.
    pub fn experiment(&self, changes: &Table, segments: bool) -> Result<Experiment, ExperimentError> {
        let mut end = Table::new();
        set(&mut end, "stack", "ns-3.44".into());
        set(&mut end, "mss", text(Bytes(self.segment)));
        set(&mut end, "receive.buffer", text(self.window));
        set(&mut end, "receive.ack_delay", text(self.ack_delay));
        set(&mut end, "rto.min", text(self.min_rto));
        set(&mut end, "congestion.initial_window", i64::from(self.initial_window).into());
        set(&mut end, "send.window_scaling", self.scales_windows().into());
        set(&mut end, "recovery.sack", self.variant.sack.into());
        // What the program sets too: nothing gives up.
        for key in ["syn_attempts", "synack_attempts", "data_retries"] {
            set(&mut end, &format!("handshake.{key}"), RETRIES.into());
        }
        for (key, value) in self.variant.ours.iter().chain(changes) {
            set(&mut end, key, value.clone());
        }
        let mut document = Table::new();
        set(&mut document, "title", self.label.as_str().into());
        // Livelocks last long, and are to be seen.
        set(&mut document, "horizon", "30 h".into());
        set(&mut document, "transfer.size", text(self.size));
        set(&mut document, "transfer.opener", "sender".into());
        set(&mut document, "output.segments", segments.into());
        set(&mut document, "sender", end.clone().into());
        set(&mut document, "receiver", end.into());
        set(&mut document, "path", self.path().into());
        Experiment::parse(&document.to_string(), &self.label, &[])
    }

    /// Where ns-3 has them: losses at the receiving device, behind link and propagation.
    fn path(&self) -> Vec<Value> {
        let mut path = Vec::new();
        let numbers = |numbers: &[u64]| -> Value {
            numbers.iter().map(|&number| Value::from(number as i64)).collect::<Vec<_>>().into()
        };
        let [forward, reverse] = &self.drops;
        if !reverse.is_empty() {
            let drops = Table::from_iter([("reverse".to_owned(), numbers(reverse))]);
            path.push(element("listed-loss", "acks", [("packets", drops.into())]));
        }
        let queue = match self.queue {
            Some(packets) => {
                Table::from_iter([("forward".to_owned(), format!("{packets} packets").into())]).into()
            }
            None => "unlimited".into(),
        };
        let rates = [("forward", self.rate), ("reverse", self.reverse_rate)]
            .map(|(way, rate)| (way.to_owned(), text(rate)));
        let rate = Table::from_iter(rates);
        path.push(element(
            "link",
            "link",
            [("rate", rate.into()), ("overhead", FRAMING.into()), ("queue", queue)],
        ));
        path.push(element("delay", "delay", [("delay", text(self.delay))]));
        if !forward.is_empty() {
            let drops = Table::from_iter([("forward".to_owned(), numbers(forward))]);
            path.push(element("listed-loss", "data", [("packets", drops.into())]));
        }
        if self.loss != Probability::ZERO {
            let rate = self.loss.fraction().to_string().into();
            let loss = Table::from_iter([("forward".to_owned(), rate)]);
            path.push(element("loss", "loss", [("rate", loss.into())]));
        }
        path
    }
}

/// Simulates one seed of an experiment of one point.
///
/// # Errors
/// As [`farpath_engine::simulate`].
pub fn simulate(experiment: &Experiment, seed: u64) -> Result<Run, farpath_engine::SimulateError> {
    farpath_engine::simulate(&experiment.point(0), seed, Provenance::default())
}

/// When the transfer of the run's only flow was complete, ns.
pub fn ended_at(run: &Run) -> Option<u64> {
    let flow = run.flows.first()?;
    flow.ended_at.filter(|_| flow.outcome == Outcome::Completed).map(|at| at.as_nanos())
}

fn text(quantity: impl ToString) -> Value {
    quantity.to_string().into()
}

fn element<const N: usize>(kind: &str, name: &str, parameters: [(&str, Value); N]) -> Value {
    let mut table = Table::new();
    set(&mut table, "element", kind.into());
    set(&mut table, "name", name.into());
    for (key, value) in parameters {
        set(&mut table, key, value);
    }
    table.into()
}

/// Puts `value` at a dotted key.
fn set(table: &mut Table, key: &str, value: Value) {
    match key.split_once('.') {
        None => {
            table.insert(key.to_owned(), value);
        }
        Some((section, rest)) => {
            let inner = table.entry(section).or_insert_with(|| Table::new().into());
            if let Value::Table(inner) = inner {
                set(inner, rest, value);
            }
        }
    }
}
