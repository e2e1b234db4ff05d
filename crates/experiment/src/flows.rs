//! `[transfer]` and `[[flow]]`: what is transferred, by how many, and when.

use crate::error::{ExperimentError, Location};
use crate::library::Files;
use crate::reader::{Parameter, Reader, as_list, as_table, unless, word};
use crate::stack::{Stack, read_end_over};
use crate::stream::{Stream, WrittenStream};
use farpath_path::Direction;
use farpath_units::{Bytes, Duration, Writing};
use toml::Value;

/// The most flows that one scenario may have.
pub const MAX_FLOWS: usize = 10_000;

/// What carries the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Transport {
    /// A connection for each flow.
    #[default]
    Tcp,
    /// Each message of a stream is a datagram, sent once; so is its answer.
    Udp,
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
    /// How the sending program writes a file.
    pub writing: Writing,
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

/// The stacks that flows have, unless they have their own.
#[derive(Clone, Copy)]
pub(crate) struct Ends<'a> {
    pub sender: &'a Stack,
    pub receiver: &'a Stack,
    pub files: &'a Files,
}

/// Reads `[transfer]` and `[[flow]]`. `base_rtt` is that of a flow whose data go this way.
pub(crate) fn read_flows(
    reader: &mut Reader<'_>,
    ends: Ends<'_>,
    base_rtt: impl Fn(Direction) -> Duration,
) -> Result<(Transport, Vec<FlowSpec>), ExperimentError> {
    let size_at = reader.location_of("transfer.size");
    let groups = match reader.value("flow") {
        Some(groups) => as_list(groups, &reader.location_of("flow"))?,
        None => &[],
    };
    if groups.is_empty() && reader.has("flow") {
        return Err(reader.location_of("flow").refuse("an empty list: there would be nothing to transfer"));
    }
    let at = reader.location_of("flow");
    reader.section("transfer", |transfer| {
        let transport = read_transport(transfer)?;
        let stream = WrittenStream::read(transfer)?;
        let size = size_of(transfer)?;
        let opener = transfer.or("opener", Opener::Receiver)?;
        let request = transfer.or("request", Bytes::ZERO)?;
        if opener == Opener::Sender && request != Bytes::ZERO {
            let reason = "only a receiver that opens sends a request; here the sender opens";
            return Err(transfer.location_of("request").refuse(reason));
        }
        let common = FlowSpec {
            start: Duration::ZERO,
            direction: Direction::Forward,
            size: size.unwrap_or_default(),
            stream: None,
            writing: read_writing(
                transfer,
                Writing::default(),
                transport == Transport::Tcp && stream.is_none(),
            )?,
            opener,
            request,
            access: Duration::ZERO,
            sender: None,
            receiver: None,
        };
        if groups.is_empty() {
            return match (size, stream) {
                (None, None) => {
                    Err(transfer.missing("size", "a size such as `64 kB`, or a stream: `message`"))
                }
                (Some(_), _) => Ok((transport, vec![common])),
                (None, Some(stream)) => {
                    Ok((transport, vec![common.streaming(stream.over(base_rtt(Direction::Forward)))]))
                }
            };
        }
        let mut flows = Vec::new();
        for (index, group) in groups.iter().enumerate() {
            let at = at.entry(index);
            let table = as_table(group, &at)?;
            Reader::table(&at.origin, &at.key, table, |group| {
                let direction = group.or("direction", Direction::Forward)?;
                if transport != Transport::Tcp && group.has("size") {
                    return Err(group
                        .location_of("size")
                        .refuse("UDP carries the messages of `transfer`, and no files"));
                }
                if transport != Transport::Tcp && group.has("access") {
                    return Err(group
                        .location_of("access")
                        .refuse("flows of UDP are all between the same two hosts"));
                }
                let own = own_stream(group, transport)?;
                // A stream of its own is none of the transfer's size.
                let size = if own.is_some() { None } else { size_of(group)?.or(size) };
                let stream = own.or(stream);
                let is_file = transport == Transport::Tcp && (stream.is_none() || group.has("size"));
                let common = FlowSpec {
                    direction,
                    writing: read_writing(group, common.writing, is_file)?,
                    access: group.or("access", Duration::ZERO)?,
                    sender: own_end(group, "sender", ends.sender, ends.files)?,
                    receiver: own_end(group, "receiver", ends.receiver, ends.files)?,
                    ..common.clone()
                };
                let common = match (size, stream) {
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
        Ok((transport, flows))
    })
}

/// The stream that a group has for itself.
fn own_stream(
    group: &mut Reader<'_>,
    transport: Transport,
) -> Result<Option<WrittenStream>, ExperimentError> {
    if !group.has("stream") {
        return Ok(None);
    }
    if group.has("size") {
        let reason = "`size` makes the flow a file, and `stream` a stream: give one of them";
        return Err(group.location_of("size").refuse(reason));
    }
    group.section("stream", |own| {
        if transport != Transport::Tcp {
            messages_fit(own)?;
        }
        match WrittenStream::read(own)? {
            Some(stream) => Ok(Some(stream)),
            None => Err(own.missing("message", Bytes::EXPECTED)),
        }
    })
}

/// How the program writes; what is not said here is as `common` has it.
fn read_writing(reader: &mut Reader<'_>, common: Writing, is_file: bool) -> Result<Writing, ExperimentError> {
    let keys = ["window", "update_every", "write_size", "think_time"];
    if let Some(key) = keys.into_iter().find(|key| !is_file && reader.has(key)) {
        let reason = "it is of a file over TCP; messages are written when they are due";
        return Err(reader.location_of(key).refuse(reason));
    }
    let mut bytes = |key, common: Option<Bytes>| match reader.value(key) {
        Some(value) => match unless(value, &reader.location_of(key), "none")? {
            Some(Bytes::ZERO) => Err(reader.location_of(key).refuse("nothing could ever be written")),
            bytes => Ok(bytes),
        },
        None => Ok(common),
    };
    let (window, write_size) = (bytes("window", common.window)?, bytes("write_size", common.write_size)?);
    let update_every = bytes("update_every", common.update_every)?;
    match (update_every, window) {
        (Some(_), None) if !reader.has("window") => {
            return Err(reader.location_of("update_every").refuse("it is of a `window`, and there is none"));
        }
        (Some(step), Some(window)) if step > window => {
            let reason = format!("{step}, and the window is {window}: so much would never be read");
            return Err(reader.location_of("update_every").refuse(reason));
        }
        _ => {}
    }
    let update_every = update_every.filter(|_| window.is_some());
    let think_time = reader.or("think_time", common.think_time)?;
    if write_size.is_none() && !think_time.is_zero() {
        let reason = "the file is written at once, and there is nothing to think about: give `write_size`";
        return Err(reader.location_of("think_time").refuse(reason));
    }
    Ok(Writing { window, update_every, write_size, think_time })
}

/// `protocol`, and what only one of the two has.
fn read_transport(transfer: &mut Reader<'_>) -> Result<Transport, ExperimentError> {
    let transport = transfer.or("protocol", Transport::Tcp)?;
    if transport == Transport::Tcp {
        return Ok(transport);
    }
    for key in ["size", "opener", "request"] {
        if transfer.has(key) {
            let reason =
                "UDP carries the messages of a stream, and opens no connection: give `message` and how fast";
            return Err(transfer.location_of(key).refuse(reason));
        }
    }
    messages_fit(transfer)?;
    has_no_lifetime(transfer)?;
    Ok(transport)
}

/// Whether a message and its answer, as far as they are here, are datagrams.
fn messages_fit(reader: &mut Reader<'_>) -> Result<(), ExperimentError> {
    ["message", "reply"].into_iter().try_for_each(|key| fits_a_datagram(reader, key))
}

/// A datagram leaves when it is due.
fn has_no_lifetime(reader: &mut Reader<'_>) -> Result<(), ExperimentError> {
    match reader.has("lifetime") {
        true => Err(reader
            .location_of("lifetime")
            .refuse("datagrams wait for nothing: `lifetime` is for streams over TCP")),
        false => Ok(()),
    }
}

/// Whether the size by this key, if there is one, is that of a datagram.
fn fits_a_datagram(reader: &mut Reader<'_>, key: &'static str) -> Result<(), ExperimentError> {
    match reader.optional::<Bytes>(key)? {
        Some(size) if size > MAX_DATAGRAM => {
            Err(reader.location_of(key).refuse(format!("{size} in a datagram; the most is {MAX_DATAGRAM}")))
        }
        _ => Ok(()),
    }
}

/// RFC 768 in an IPv4 packet of 65 535 B.
const MAX_DATAGRAM: Bytes = Bytes(65_507);

impl Parameter for Transport {
    const EXPECTED: &'static str = "`tcp` or `udp`";
    fn read(value: &Value, at: &Location) -> Result<Transport, ExperimentError> {
        word(value, at, &[("tcp", Transport::Tcp), ("udp", Transport::Udp)])
    }
}

/// An end that a group has for itself: what it says, on top of what all have.
fn own_end(
    group: &mut Reader<'_>,
    key: &'static str,
    common: &Stack,
    files: &Files,
) -> Result<Option<Box<Stack>>, ExperimentError> {
    if !group.has(key) {
        return Ok(None);
    }
    group.section(key, |end| read_end_over(end, common.clone(), files)).map(|stack| Some(Box::new(stack)))
}

impl FlowSpec {
    /// How long the answer to each message is; zero where there are none.
    pub fn reply(&self) -> Bytes {
        self.stream.and_then(|stream| stream.reply).unwrap_or_default()
    }

    /// How long its messages are worth sending, where that ends.
    pub fn lifetime(&self) -> Option<Duration> {
        self.stream.and_then(|stream| stream.lifetime)
    }

    /// What stands in for the transfer of an experiment that has programs in place of one: a byte.
    pub(crate) fn beside_programs() -> FlowSpec {
        FlowSpec {
            start: Duration::ZERO,
            direction: Direction::Forward,
            size: Bytes(1),
            stream: None,
            writing: Writing::default(),
            opener: Opener::Receiver,
            request: Bytes::ZERO,
            access: Duration::ZERO,
            sender: None,
            receiver: None,
        }
    }

    /// Whether it is not between the two hosts that all flows have in common.
    pub fn is_special(&self) -> bool {
        !self.access.is_zero() || self.sender.is_some() || self.receiver.is_some()
    }

    fn streaming(self, stream: Stream) -> FlowSpec {
        FlowSpec { size: stream.messages.total(), stream: Some(stream), ..self }
    }
}

fn size_of(reader: &mut Reader<'_>) -> Result<Option<Bytes>, ExperimentError> {
    match reader.optional("size")? {
        Some(Bytes::ZERO) => Err(reader.location_of("size").refuse("there would be nothing to transfer")),
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
        return Err(reader.location_of("count").refuse("a group has at least one flow"));
    }
    if flows.len() + count as usize > MAX_FLOWS {
        return Err(reader.location_of("count").refuse(format!("more than {MAX_FLOWS} flows in all")));
    }
    let flow = |number| FlowSpec { start: start + spacing * number, ..common.clone() };
    flows.extend((0..u64::from(count)).map(flow));
    Ok(())
}
