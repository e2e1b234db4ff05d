//! `[transfer]` and `[[flow]]`: what is transferred, by how many, and when.

use crate::error::ExperimentError;
use crate::reader::{Parameter, Reader, as_list, as_table};
use crate::scenario::{FlowSpec, Opener};
use crate::stream::{Stream, WrittenStream};
use farpath_path::Direction;
use farpath_units::{Bytes, Duration};

/// The most flows that one scenario may have.
pub const MAX_FLOWS: usize = 10_000;

/// Reads `[transfer]` and `[[flow]]`. `base_rtt` is that of a flow whose data go this way.
pub(crate) fn read_flows(
    reader: &mut Reader<'_>,
    base_rtt: impl Fn(Direction) -> Duration,
) -> Result<Vec<FlowSpec>, ExperimentError> {
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
        let stream = WrittenStream::read(transfer)?;
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
            stream: None,
            opener,
            request,
        };
        if groups.is_empty() {
            return match (size, stream) {
                (None, None) => {
                    Err(transfer.missing("size", "a size such as `64 kB`, or a stream: `message`"))
                }
                (Some(_), _) => Ok(vec![common]),
                (None, Some(stream)) => Ok(vec![common.streaming(stream.over(base_rtt(Direction::Forward)))]),
            };
        }
        let mut flows = Vec::new();
        for (index, group) in groups.iter().enumerate() {
            let at = at.entry(index);
            let table = as_table(group, &at)?;
            Reader::table(&at.origin, &at.key, table, |group| {
                let direction = group.or("direction", Direction::Forward)?;
                let common = FlowSpec { direction, ..common.clone() };
                let common = match (size_of(group)?.or(size), stream) {
                    (Some(size), _) => FlowSpec { size, ..common },
                    (None, Some(stream)) => common.streaming(stream.over(base_rtt(direction))),
                    (None, None) => {
                        let expected = format!("{}, as `{}` has none of its own", Bytes::EXPECTED, at.key);
                        return Err(ExperimentError::Missing { at: size_at.clone(), expected });
                    }
                };
                add_group(group, common, &mut flows)
            })?;
        }
        Ok(flows)
    })
}

impl FlowSpec {
    fn streaming(self, stream: Stream) -> FlowSpec {
        FlowSpec { size: stream.messages.total(), stream: Some(stream), ..self }
    }
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
    if count == 0 {
        return Err(reader.at("count").refuse("a group has at least one flow"));
    }
    if flows.len() + count as usize > MAX_FLOWS {
        return Err(reader.at("count").refuse(format!("more than {MAX_FLOWS} flows in all")));
    }
    let flow = |number| FlowSpec { start: start + spacing * number, ..common.clone() };
    flows.extend((0..u64::from(count)).map(flow));
    Ok(())
}
