//! One point of an experiment: a path, two stacks and the flows between them.

use crate::element::{path_list, read_path};
use crate::emulate::{EmulateOptions, read_emulate};
use crate::error::ExperimentError;
use crate::reader::{Parameter, Reader, as_list, as_table, word};
use crate::stack::{Stack, StackCache, read_end};
use crate::warnings::{self, Warning};
use farpath_path::{Direction, ElementSpec};
use farpath_units::{Bytes, Duration};
use toml::{Table, Value};

/// The most flows that one scenario may have.
pub const MAX_FLOWS: usize = 10_000;

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
    /// At least one.
    pub flows: Vec<FlowSpec>,
    /// What is recorded beside the flows.
    pub output: Output,
    /// How it is run on the running kernel.
    pub emulate: EmulateOptions,
    /// What is allowed and probably not meant.
    pub warnings: Vec<String>,
}

/// One transfer over one connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowSpec {
    /// When its opener sends the first SYN.
    pub start: Duration,
    /// Which way the data go. In `Reverse` the two stacks have changed places on the path.
    pub direction: Direction,
    /// Application bytes to transfer.
    pub size: Bytes,
    /// Who sends the SYN.
    pub opener: Opener,
    /// What the receiver sends first, where it is the opener; data follow when all of it has arrived.
    pub request: Bytes,
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
pub(crate) fn read_scenario(
    origin: &str,
    table: &Table,
    stacks: &StackCache,
) -> Result<Scenario, ExperimentError> {
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
            Some(value) => path_list(value, &at)?,
            None => {
                return Err(reader.missing("path", "a list of elements, or the name of a ready-made path"));
            }
        };
        let path = read_path(&elements, &at)?;
        let sender = reader.section("sender", |end| read_end(end, DEFAULT_STACK, stacks))?;
        let receiver = reader.section("receiver", |end| read_end(end, &sender.name, stacks))?;
        let flows = read_flows(reader)?;
        let output = reader.section("output", |output| {
            Ok(Output { series: output.or("series", false)?, segments: output.or("segments", false)? })
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

fn read_flows(reader: &mut Reader<'_>) -> Result<Vec<FlowSpec>, ExperimentError> {
    let size_at = reader.at("transfer.size");
    let groups = match reader.value("flow") {
        Some(groups) => as_list(groups, &reader.at("flow"))?,
        None => &[],
    };
    if groups.is_empty() && reader.has("flow") {
        return Err(reader.at("flow").refuse("an empty list: there would be nothing to transfer"));
    }
    let at = reader.at("flow");
    reader.section("transfer", |transfer| {
        let size = size_of(transfer)?;
        let opener = transfer.or("opener", Opener::Receiver)?;
        let request = transfer.or("request", Bytes::ZERO)?;
        if opener == Opener::Sender && request != Bytes::ZERO {
            let reason = "only a receiver that opens sends a request; here the sender opens";
            return Err(transfer.at("request").refuse(reason));
        }
        let common = FlowSpec {
            start: Duration::ZERO,
            direction: Direction::Forward,
            size: size.unwrap_or_default(),
            opener,
            request,
        };
        if groups.is_empty() {
            return match size {
                Some(_) => Ok(vec![common]),
                None => Err(transfer.missing("size", Bytes::EXPECTED)),
            };
        }
        let mut flows = Vec::new();
        for (index, group) in groups.iter().enumerate() {
            let at = at.entry(index);
            let table = as_table(group, &at)?;
            Reader::table(&at.origin, &at.key, table, |group| {
                let size = size_of(group)?.or(size).ok_or_else(|| ExperimentError::Missing {
                    at: size_at.clone(),
                    expected: format!("{}, as `{}` has none of its own", Bytes::EXPECTED, at.key),
                })?;
                add_group(group, FlowSpec { size, ..common.clone() }, &mut flows)
            })?;
        }
        Ok(flows)
    })
}

fn size_of(reader: &mut Reader<'_>) -> Result<Option<Bytes>, ExperimentError> {
    match reader.optional("size")? {
        Some(Bytes::ZERO) => Err(reader.at("size").refuse("there would be nothing to transfer")),
        size => Ok(size),
    }
}

/// Adds the flows of one `[[flow]]`.
fn add_group(
    reader: &mut Reader<'_>,
    common: FlowSpec,
    flows: &mut Vec<FlowSpec>,
) -> Result<(), ExperimentError> {
    let count: u32 = reader.or("count", 1)?;
    let start = reader.or("start", Duration::ZERO)?;
    let spacing = reader.or("spacing", Duration::ZERO)?;
    let direction = reader.or("direction", Direction::Forward)?;
    if count == 0 {
        return Err(reader.at("count").refuse("a group has at least one flow"));
    }
    if flows.len() + count as usize > MAX_FLOWS {
        return Err(reader.at("count").refuse(format!("more than {MAX_FLOWS} flows in all")));
    }
    let flow = |number| FlowSpec { start: start + spacing * number, direction, ..common.clone() };
    flows.extend((0..u64::from(count)).map(flow));
    Ok(())
}
