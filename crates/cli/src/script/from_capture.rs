//! `farpath script --from`: a script out of a capture, or out of a run that is made again.

use super::from_run;
use crate::args::{ScriptArgs, ScriptEnd};
use crate::diagnose::compressed::decompressed;
use crate::error::CliError;
use crate::{Ending, output, progress};
use farpath_diagnose::{Frame, Link, TcpPacket, ip_packet, parse, read};
use farpath_script::syntax::Way;
use farpath_script::{Packet, Seen, bytes, record};
use farpath_units::Duration;
use std::fs::File;
use std::net::SocketAddr;
use std::path::Path;

/// Places that a packet may be heard at.
const PLACES: usize = 4;
/// Most connections that are counted.
const MAX_FLOWS: usize = 100_000;

/// A packet of the connection.
struct Heard {
    interface: u32,
    time_ns: u64,
    /// Whether it is of the end that sent the first one.
    of_first: bool,
    packet: Packet,
}

/// The connection that is looked for, and how many there were.
struct Search {
    flow: usize,
    most: usize,
    ends: Vec<(SocketAddr, SocketAddr)>,
    packets: Vec<Heard>,
}

impl Search {
    fn frame(&mut self, frame: Frame<'_>) {
        let Some(link) = Link::from_type(frame.link_type) else { return };
        let Some(tcp) = parse(link, frame.data, frame.length) else { return };
        if !tcp.source.is_ipv4() {
            return;
        }
        let TcpPacket { source, destination, .. } = tcp;
        let opens = tcp.syn && tcp.ack.is_none();
        let place = self
            .ends
            .iter()
            .rposition(|&ends| ends == (source, destination) || ends == (destination, source));
        // A SYN of ports that were used before opens another connection, unless it is the first one again.
        let again = opens && place.is_some_and(|place| place + 1 == self.flow && self.packets.len() > 2);
        let place = match place.filter(|_| !again) {
            Some(place) => place,
            None if self.ends.len() < MAX_FLOWS => {
                self.ends.push((source, destination));
                self.ends.len() - 1
            }
            None => return,
        };
        if place + 1 != self.flow || self.packets.len() == self.most {
            return;
        }
        let Some(kept) = ip_packet(link, frame.data) else { return };
        // What the capture has not kept is payload, of which nothing is looked at.
        let Some(length) = kept.get(2..4) else { return };
        let mut whole = kept.to_vec();
        whole.resize(kept.len().max(usize::from(u16::from_be_bytes([length[0], length[1]]))), 0);
        if let Some(packet) = bytes::decode(&whole) {
            let of_first = source == self.ends[place].0;
            self.packets.push(Heard { interface: frame.interface, time_ns: frame.time_ns, of_first, packet });
        }
    }
}

/// Writes the script of a connection to stdout.
pub fn write(args: &ScriptArgs, from: &Path) -> Result<Ending, CliError> {
    let mut search = Search {
        flow: args.flow as usize,
        most: PLACES * args.packets as usize,
        ends: Vec::new(),
        packets: Vec::new(),
    };
    let heading = match from.is_dir() {
        true => match from_run::read_packets(args, from, |frame| search.frame(frame))? {
            Some(heading) => format!("// {heading}\n"),
            None => return Ok(Ending::Interrupted),
        },
        false => {
            read_capture(from, &mut search)?;
            String::new()
        }
    };
    let data = |first: bool| -> u64 {
        let of_it = search.packets.iter().filter(|heard| heard.of_first == first);
        of_it.map(|heard| u64::from(heard.packet.len)).sum()
    };
    let first_is_sender = data(true) >= data(false);
    let first_is_it = first_is_sender == (args.end == ScriptEnd::Sender);
    // Of several places that were listened at, the end's own is where its packets come by first.
    let own =
        search.packets.iter().filter(|heard| heard.of_first == first_is_it).min_by_key(|heard| heard.time_ns);
    let Some(interface) = own.or(search.packets.first()).map(|heard| heard.interface) else {
        let (file, flow, found) = (from.to_owned(), args.flow, search.ends.len());
        return Err(CliError::NoFlow { file, flow, found });
    };
    let mut began = None;
    let seen: Vec<Seen> = search
        .packets
        .into_iter()
        .filter(|heard| heard.interface == interface)
        .take(args.packets as usize)
        .map(|heard| Seen {
            at: Duration::from_nanos(heard.time_ns.saturating_sub(*began.get_or_insert(heard.time_ns))),
            way: if heard.of_first == first_is_it { Way::Out } else { Way::In },
            packet: heard.packet,
        })
        .collect();
    let failed = |source| CliError::Record { file: from.to_owned(), flow: args.flow, source };
    let text = record(&seen).map_err(failed)?;
    output::print(&format!("{heading}{}", text.trim_end()))?;
    Ok(Ending::Done)
}

fn read_capture(file: &Path, search: &mut Search) -> Result<(), CliError> {
    let source = File::open(file)
        .and_then(decompressed)
        .map_err(|source| CliError::ReadCapture { file: file.to_owned(), source })?;
    let ended = progress::during("reading the capture", || read(source, |frame| search.frame(frame)));
    match ended {
        // What came before a cut or damage is of use.
        Err(source) if search.packets.is_empty() => Err(CliError::Capture { file: file.to_owned(), source }),
        _ => Ok(()),
    }
}
