//! One point of an experiment: a path, two stacks and the flows between them.

use crate::element::{path_list, read_path};
use crate::emulate::{EmulateOptions, read_emulate};
use crate::error::ExperimentError;
use crate::flows::{Ends, read_flows};
use crate::library::Files;
use crate::reader::{Parameter, Reader, word};
use crate::stack::{Stack, read_end};
use crate::stream::Stream;
use crate::warnings::{self, Warning};
use farpath_path::{Direction, ElementKind, ElementSpec, PerDirection};
use farpath_units::{Bytes, Duration};
use std::borrow::Cow;
use toml::{Table, Value};

/// Everything that an engine needs to run one point, except which of its seeds.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// What it is.
    pub title: String,
    /// Seed of the first run.
    pub seed: u64,
    /// Number of runs, with the seeds `seed`, `seed + 1` ...
    pub seeds: u64,
    /// A run that is not over by then ends.
    pub horizon: Duration,
    /// From the data sender to the data receiver of a forward flow.
    pub path: Vec<ElementSpec>,
    /// The end that sends the data. Of a reverse flow it sits at the path's far end.
    pub sender: Stack,
    /// The other end.
    pub receiver: Stack,
    /// What the flows are carried by.
    pub transport: Transport,
    /// At least one.
    pub flows: Vec<FlowSpec>,
    /// What is recorded beside the flows.
    pub output: Output,
    /// How it is run on the running kernel.
    pub emulate: EmulateOptions,
    /// What is allowed and probably not meant.
    pub warnings: Vec<String>,
}

/// What carries the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Transport {
    /// A connection for each flow.
    #[default]
    Tcp,
    /// Each message of a stream is a datagram, sent once.
    Udp {
        /// How long the answer is that each one gets; `None` where nobody answers.
        reply: Option<Bytes>,
    },
}

impl Scenario {
    /// The stacks of a flow's sender and receiver.
    pub fn ends<'a>(&'a self, flow: &'a FlowSpec) -> (&'a Stack, &'a Stack) {
        (flow.sender.as_deref().unwrap_or(&self.sender), flow.receiver.as_deref().unwrap_or(&self.receiver))
    }

    /// The path as a flow sees it, its own access before what all share.
    pub fn path_of(&self, flow: &FlowSpec) -> Cow<'_, [ElementSpec]> {
        if flow.access.is_zero() {
            return Cow::Borrowed(&self.path);
        }
        let kind = ElementKind::Delay { delay: PerDirection::both(flow.access) };
        let access = ElementSpec { name: "access".to_owned(), kind };
        Cow::Owned(core::iter::once(access).chain(self.path.iter().cloned()).collect())
    }
}

/// One transfer over one connection.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowSpec {
    /// When its opener sends the first SYN.
    pub start: Duration,
    /// Which way the data go. In `Reverse` the two stacks have changed places on the path.
    pub direction: Direction,
    /// Application bytes to transfer.
    pub size: Bytes,
    /// The messages that they are, where they come as a stream.
    pub stream: Option<Stream>,
    /// Who sends the SYN.
    pub opener: Opener,
    /// What the receiver sends first, where it is the opener; data follow when all of it has arrived.
    pub request: Bytes,
    /// Propagation each way between the flow's host at the beginning of the path and the path: of this flow alone.
    pub access: Duration,
    /// The stack of its sender, where that is not the scenario's.
    pub sender: Option<Box<Stack>>,
    /// The same of its receiver.
    pub receiver: Option<Box<Stack>>,
}

/// Which end opens the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opener {
    /// The end that sends the data: an upload.
    Sender,
    /// The end that receives them: a download.
    Receiver,
}

/// What is recorded beside the flows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Output {
    /// cwnd, srtt ... over time.
    pub series: bool,
    /// Every segment at both ends, and every drop.
    pub segments: bool,
    /// Every message of a stream.
    pub messages: bool,
}

impl Parameter for Opener {
    const EXPECTED: &'static str = "`sender` or `receiver`";
    fn read(value: &Value, at: &crate::Location) -> Result<Opener, ExperimentError> {
        word(value, at, &[("sender", Opener::Sender), ("receiver", Opener::Receiver)])
    }
}

impl Parameter for Direction {
    const EXPECTED: &'static str = "`forward` or `reverse`";
    fn read(value: &Value, at: &crate::Location) -> Result<Direction, ExperimentError> {
        word(value, at, &[("forward", Direction::Forward), ("reverse", Direction::Reverse)])
    }
}

/// Reads a document without its sweep.
pub(crate) fn read_scenario(origin: &str, table: &Table, files: &Files) -> Result<Scenario, ExperimentError> {
    Reader::table(origin, "", table, |reader| {
        let title = reader.required("title")?;
        let seed: u64 = reader.or("seed", 1)?;
        let seeds: u64 = reader.or("seeds", 1)?;
        if seeds == 0 {
            return Err(reader.at("seeds").refuse("at least one run is needed"));
        }
        // Tables keep a seed as a signed number.
        if i64::try_from(u128::from(seed) + u128::from(seeds)).is_err() {
            return Err(reader.at("seeds").refuse("the last seed is out of range"));
        }
        let horizon = reader.or("horizon", Duration::from_secs(3600))?;
        if horizon.is_zero() {
            return Err(reader.at("horizon").refuse("no time to run"));
        }
        let at = reader.at("path");
        let elements = match reader.value("path") {
            Some(value) => path_list(value, &at, files)?,
            None => {
                return Err(reader.missing("path", "a list of elements, or the name of a ready-made path"));
            }
        };
        let path = read_path(&elements, &at)?;
        let sender = reader.section("sender", |end| read_end(end, DEFAULT_STACK, files))?;
        let receiver = reader.section("receiver", |end| read_end(end, &sender.name, files))?;
        let mss = sender.config.mss.min(receiver.config.mss);
        let round = |direction| warnings::base_rtt_over(&path, mss, direction);
        if Direction::BOTH.into_iter().any(|direction| round(direction) + horizon == Duration::MAX) {
            return Err(at.refuse("a round trip and the horizon go beyond all time, which is 584 years here"));
        }
        let ends = Ends { sender: &sender, receiver: &receiver, files };
        let (transport, flows) = read_flows(reader, ends, round)?;
        let output = reader.section("output", |output| {
            Ok(Output {
                series: output.or("series", false)?,
                segments: output.or("segments", false)?,
                messages: output.or("messages", false)?,
            })
        })?;
        let emulate = reader.section("emulate", read_emulate)?;
        let mut scenario = Scenario {
            title,
            seed,
            seeds,
            horizon,
            path,
            sender,
            receiver,
            transport,
            flows,
            output,
            emulate,
            warnings: Vec::new(),
        };
        scenario.warnings = warnings::warnings(&scenario).iter().map(Warning::to_string).collect();
        Ok(scenario)
    })
}

/// The stack of a sender that names none.
const DEFAULT_STACK: &str = "rfc-5681";
