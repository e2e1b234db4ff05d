//! The packets of a run as a pcapng file, for Wireshark and all that reads its format.
//!
//! Three interfaces: `sender` and `receiver` see what the two ends of each flow send and receive, `path` sees what is
//! dropped. Everything is written as it happens; what is held is one packet, and the drops that have been decided
//! and are still to come. A simulated packet is encoded for it, a real one is written as it is.

use farpath_experiment::Point;
use farpath_files::pcapng::{Interface, LINKTYPE_RAW, Record, Section, Way, Writer};
use farpath_path::{Direction, DropCause};
use farpath_run::Provenance;
use farpath_sim::{End, Observer, Packet, PacketEvent};
use farpath_tcp::wire::{self, EncodeError, IpFields};
use farpath_tcp::{Flags, Seq};
use farpath_tia1039::insert_v4;
use farpath_units::Instant;
use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

/// Bytes of a packet that are kept where nothing else is asked for: all headers (20 of IPv4, at most 60 of TCP) and
/// some payload, which is a pattern and tells nothing.
pub const DEFAULT_SNAPLEN: u32 = 128;

/// The most runs that are captured at once.
pub const MAX_CAPTURES: usize = 1000;

/// The ends of the path: where forward data comes from, and where it goes.
const NEAR: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const FAR: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

/// Flow 0 has this port at both ends, flow 1 the next ... From the dynamic ports (RFC 6335), where no dissector
/// takes the payload for something else.
pub const FIRST_PORT: u16 = 50_000;

/// Interfaces, in the order of their blocks.
const SENDER: u32 = 0;
const RECEIVER: u32 = 1;
const PATH: u32 = 2;

/// Why a capture cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// No run has packets.
    #[error("nothing to capture: no run is simulated or emulated")]
    NoRuns,
    /// More files than anyone opens.
    #[error("{0} runs to capture, a file each; the most is {MAX_CAPTURES}: take fewer seeds or points")]
    TooMany(usize),
    /// The folder cannot be made, or takes no files.
    #[error("{}: cannot write captures there: {source}", path.display())]
    NotWritable {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The folder holds something that these runs do not replace.
    #[error(
        "{}: the folder holds `{found}`, which is no capture of these runs; name an empty or a new one",
        path.display()
    )]
    Occupied {
        /// The folder.
        path: PathBuf,
        /// One of the files.
        found: String,
    },
    /// A file cannot be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// What was given to write to takes no more.
    #[error("cannot write the capture: {0}")]
    Output(#[from] io::Error),
    /// A segment is no packet.
    #[error("cannot capture a segment: {0}")]
    Segment(#[from] EncodeError),
}

/// A packet that is to be dropped: as much of it as is kept, and its length.
struct Drop {
    cause: DropCause,
    kept: Vec<u8>,
    original_len: usize,
}

/// Writes what an observer is told as a capture.
pub struct Capture<W> {
    out: Writer<W>,
    snaplen: u32,
    /// Initial sequence number and highest position sent, by flow and direction of the stream.
    streams: HashMap<(u32, bool), (Seq, u64)>,
    /// Drops that are known before their time, by it and in the order in which they were told.
    drops: BTreeMap<(Instant, u64), Drop>,
    drops_told: u64,
    bytes: Vec<u8>,
    /// The first; nothing is written after it.
    failed: Option<CaptureError>,
}

impl<W: Write> Capture<W> {
    /// Begins a file with what is known before the run.
    pub fn new(
        out: W,
        snaplen: u32,
        point: &Point,
        seed: u64,
        provenance: &Provenance,
    ) -> Result<Capture<W>, CaptureError> {
        let scenario = &point.scenario;
        let kernel = &provenance.kernel;
        let simulated = kernel.is_empty();
        let mut out = Writer::new(out);
        out.section(&Section {
            hardware: if simulated { "none: simulated" } else { "none: an emulated path" },
            os: if simulated { "none: simulated" } else { kernel },
            application: &format!("farpath {}", provenance.version),
            comment: &comment(&scenario.title, point.index, seed, &provenance.changes),
        })?;
        let host = |stack: &str| if simulated { stack.to_owned() } else { format!("{kernel}, as {stack}") };
        let ends = [
            ("sender", "the data sender of each flow", Some(host(&scenario.sender.label()))),
            ("receiver", "the data receiver of each flow", Some(host(&scenario.receiver.label()))),
            ("path", "packets that the path drops, at the time of the drop", None),
        ];
        for (name, description, os) in ends {
            let os = os.as_deref();
            out.interface(&Interface { link_type: LINKTYPE_RAW, name, description, os, snaplen })?;
        }
        Ok(Capture {
            out,
            snaplen,
            streams: HashMap::new(),
            drops: BTreeMap::new(),
            drops_told: 0,
            bytes: Vec::new(),
            failed: None,
        })
    }

    /// Takes note of a real packet, which the end `from` sends.
    pub fn real(&mut self, now: Instant, event: PacketEvent, from: End, bytes: &[u8]) {
        if self.failed.is_none() {
            self.failed = self.note_bytes(now, event, from, bytes).err();
        }
    }

    /// Writes what is left, and says what went wrong on the way.
    pub fn finish(mut self) -> Result<(), CaptureError> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        self.write_drops_until(None)?;
        Ok(self.out.flush()?)
    }

    /// Notes a simulated packet.
    fn note(
        &mut self,
        now: Instant,
        event: PacketEvent,
        direction: Direction,
        packet: &Packet,
    ) -> Result<(), CaptureError> {
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.clear();
        self.encode(direction, packet, &mut bytes)?;
        self.note_bytes(now, event, packet.from, &bytes)?;
        self.bytes = bytes;
        Ok(())
    }

    /// Notes a packet of these bytes, which the end `from` sends.
    fn note_bytes(
        &mut self,
        now: Instant,
        event: PacketEvent,
        from: End,
        bytes: &[u8],
    ) -> Result<(), CaptureError> {
        let kept = &bytes[..bytes.len().min(self.snaplen as usize)];
        let original_len = bytes.len();
        let at_sender = match event {
            PacketEvent::Dropped(cause) => {
                self.drops_told += 1;
                let drop = Drop { cause, kept: kept.to_vec(), original_len };
                self.drops.insert((now, self.drops_told), drop);
                return Ok(());
            }
            PacketEvent::Sent => from == End::Sender,
            PacketEvent::Received => from == End::Receiver,
        };
        self.write_drops_until(Some(now))?;
        let interface = if at_sender { SENDER } else { RECEIVER };
        let way = if event == PacketEvent::Sent { Way::Outbound } else { Way::Inbound };
        Ok(self.out.packet(&Record {
            interface,
            time_ns: now.as_nanos(),
            kept,
            original_len: original_len as u32,
            way,
            comment: None,
        })?)
    }

    /// Writes the drops that happen by `now`, or all.
    fn write_drops_until(&mut self, now: Option<Instant>) -> Result<(), CaptureError> {
        while let Some(drop) = self.drops.first_entry()
            && now.is_none_or(|now| drop.key().0 <= now)
        {
            let ((at, _), drop) = drop.remove_entry();
            self.out.packet(&Record {
                interface: PATH,
                time_ns: at.as_nanos(),
                kept: &drop.kept,
                original_len: drop.original_len as u32,
                way: Way::Unknown,
                comment: Some(&format!("dropped: {}", drop.cause.name())),
            })?;
        }
        Ok(())
    }

    /// The bytes of a simulated packet.
    fn encode(
        &mut self,
        direction: Direction,
        packet: &Packet,
        bytes: &mut Vec<u8>,
    ) -> Result<(), CaptureError> {
        let (source, destination) = match direction {
            Direction::Forward => (NEAR, FAR),
            Direction::Reverse => (FAR, NEAR),
        };
        // There are at most 10,000 flows.
        let port = FIRST_PORT.wrapping_add(packet.flow as u16);
        let offset = self.offset(packet);
        // The same at both ends, for whoever looks for a packet on the other side.
        let dscp = packet.qos.mark.dscp().unwrap_or(0);
        let ip = IpFields { id: packet.number as u16, ttl: packet.ttl, dscp };
        wire::encode(
            SocketAddr::new(source.into(), port),
            SocketAddr::new(destination.into(), port),
            &ip,
            &packet.segment,
            offset,
            bytes,
        )?;
        if let Some(structures) = &packet.qos.structures {
            insert_v4(bytes, structures).expect("it was encoded as a TCP packet of IPv4");
        }
        Ok(())
    }

    /// Where in its stream a segment's payload begins: the byte after the SYN is byte 0.
    fn offset(&mut self, packet: &Packet) -> u64 {
        let segment = &packet.segment;
        let stream = (packet.flow, packet.from == End::Sender);
        if segment.flags.contains(Flags::SYN) {
            self.streams.entry(stream).or_insert((segment.seq, 0));
            return 0;
        }
        // A reset in answer to a stray has no stream, and no payload either.
        let Some((isn, highest)) = self.streams.get_mut(&stream) else { return 0 };
        let position = segment.seq.position(*isn, *highest).unwrap_or(0);
        *highest = position.max(*highest);
        position.saturating_sub(1)
    }
}

impl<W: Write> Observer for Capture<W> {
    fn packet(&mut self, now: Instant, event: PacketEvent, direction: Direction, packet: &Packet) {
        if self.failed.is_none() {
            self.failed = self.note(now, event, direction, packet).err();
        }
    }
}

/// The section's comment, cut to what an option can hold.
fn comment(title: &str, point: usize, seed: u64, changes: &[String]) -> String {
    let mut text = format!("{title}\npoint {point}, seed {seed}");
    if !changes.is_empty() {
        text.push_str("\nchanges: ");
        text.push_str(&changes.join(", "));
    }
    let mut end = text.len().min(usize::from(u16::MAX));
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    text
}
