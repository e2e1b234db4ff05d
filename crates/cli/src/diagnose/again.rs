//! A second look at one connection of a capture, whose place is known by then: for a report, and for comments on its frames.

use super::opened;
use crate::error::CliError;
use crate::progress;
use farpath_diagnose::both::{BothSides, Side, both_sides};
use farpath_diagnose::sequence::SequenceGraph;
use farpath_diagnose::{
    ConnectionReport, Diagnosis, Frame, Interval, Link, Report, ScaleToldBy, TcpPacket, parse, read,
};
use farpath_files::Replacement;
use farpath_files::pcapng::{Interface, Record, Section, Way, Writer};
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::io::{self, BufWriter};
use std::path::Path;

/// Waits that are worth a comment, the longest.
const COMMENTS: usize = 1000;

/// Interfaces that are told apart, as in what is read.
const MOST_INTERFACES: u32 = 4096;

/// A connection with what takes more memory than all of a capture may.
pub(super) struct Closer {
    pub connection: ConnectionReport,
    pub graph: SequenceGraph,
}

/// The TCP packet of a frame, where it is one of the connection.
fn of_connection(connection: &ConnectionReport, frame: &Frame<'_>) -> Option<TcpPacket> {
    let (first, last) = connection.frames;
    if frame.interface != connection.interface || !(first..=last).contains(&frame.number) {
        return None;
    }
    let packet = parse(Link::from_type(frame.link_type)?, frame.data, frame.length)?;
    let ends = [connection.sender, connection.receiver];
    (ends == [packet.source, packet.destination] || ends == [packet.destination, packet.source])
        .then_some(packet)
}

/// Where the two sides of a connection were captured.
pub(super) struct Sides<'f, 'r> {
    pub sender: (&'f Path, &'r ConnectionReport),
    pub receiver: (&'f Path, &'r ConnectionReport),
}

/// The two sides of the connection with the most data, where it was captured at more than one place. Data are acknowledged the later, the
/// nearer to their sender one looks.
pub(super) fn sides<'f, 'r>(reports: &'r [(&'f Path, Report)]) -> Option<Sides<'f, 'r>> {
    let ends = |found: &ConnectionReport| (found.sender, found.receiver);
    let in_each: Vec<HashSet<_>> =
        reports.iter().map(|(_, report)| report.connections.iter().map(ends).collect()).collect();
    let is_in_all = |found: &ConnectionReport| in_each.iter().all(|known| known.contains(&ends(found)));
    let all =
        reports.iter().flat_map(|(file, report)| report.connections.iter().map(move |found| (*file, found)));
    let most = all.clone().filter(|(_, found)| is_in_all(found)).max_by_key(|(_, found)| found.bytes)?.1;
    // Interfaces that saw only some of it, as one for drops, are none of its sides.
    let places = all.filter_map(|(file, found)| {
        let same = ends(found) == ends(most) && found.bytes >= most.bytes / 2;
        // What is known of the way to the sender is in the whole of a round trip, and not beyond the capture: clocks that run apart could hide it else.
        Some(((file, found), found.min_rtt_s.filter(|_| same)? - found.sender_rtt_s.unwrap_or(0.0)))
    });
    let by_rtt = |one: &(_, f64), other: &(_, f64)| one.1.total_cmp(&other.1);
    let (sender, round_trip) = places.clone().max_by(by_rtt)?;
    // A later connection of the same ports, at the same place, is no other side.
    let place = |(file, found): (&'f Path, &ConnectionReport)| (file, found.interface);
    let (receiver, shortest) = places.filter(|(other, _)| place(*other) != place(sender)).min_by(by_rtt)?;
    (shortest < round_trip).then_some(Sides { sender, receiver })
}

impl Sides<'_, '_> {
    /// What both tell together.
    pub(super) fn together(&self) -> Result<Option<BothSides>, CliError> {
        let mut seen = [self.sender, self.receiver]
            .map(|(file, connection)| (file, connection, Side::new(connection.sender)));
        for (file, connection, side) in &mut seen {
            let source = opened(file)?;
            // Where it is damaged, the first look has said so.
            let _ = progress::during("putting both sides together", || {
                read(source, |frame| {
                    if let Some(packet) = of_connection(connection, &frame) {
                        side.packet(frame.time_ns, &packet);
                    }
                })
            });
        }
        let [(.., sender), (.., receiver)] = &seen;
        Ok(both_sides(sender, receiver))
    }
}

/// Reads the capture again, for one connection alone. Where it is damaged, the first look has said so.
pub(super) fn looked_at(file: &Path, connection: &ConnectionReport) -> Result<Closer, CliError> {
    let mut diagnosis = Diagnosis::with_intervals(1);
    let mut graph = SequenceGraph::new(connection.sender);
    // Of a window that is longer than is known there is no line.
    let told = connection.inferred.filter(|inferred| inferred.scale_by != ScaleToldBy::AtLeast);
    if let Some(inferred) = told {
        graph = graph.scaled_by(inferred.window_scale);
    }
    let source = opened(file)?;
    let _ = progress::during("reading the capture again", || {
        read(source, |frame| {
            if let Some(packet) = of_connection(connection, &frame) {
                diagnosis.packet(frame.number, frame.interface, frame.time_ns, &packet);
                graph.packet(frame.time_ns, &packet);
            }
        })
    });
    let connection = diagnosis.finish().connections.into_iter().next();
    Ok(Closer {
        connection: connection.ok_or_else(|| CliError::ChangedCapture { file: file.to_owned() })?,
        graph,
    })
}

/// Writes the capture with comments: on each frame with new data what that data waited for. Comments that the capture had are left out.
pub(super) fn annotate(file: &Path, connection: &ConnectionReport, out: &Path) -> Result<(), CliError> {
    let failed = |source| CliError::Write { flag: "--annotate", file: out.to_owned(), source };
    let replacement = Replacement::create(out).map_err(failed)?;
    let mut writer = Writer::new(BufWriter::new(replacement.file()));
    let section = Section {
        hardware: "",
        os: "",
        application: concat!("Farpath ", env!("CARGO_PKG_VERSION")),
        comment: &format!("{} to {}: {}", connection.sender, connection.receiver, connection.summary),
    };
    let mut waits = longest(&connection.intervals);
    let begin = connection.intervals.first().map_or(0, |interval| interval.from_ns);
    let mut interfaces = Interfaces::default();
    let mut written = writer.section(&section);
    let source = opened(file)?;
    let ended = progress::during("writing the capture with comments", || {
        read(source, |frame| {
            if written.is_err() {
                return;
            }
            let mut comment = None;
            if let Some(packet) = of_connection(connection, &frame)
                && (frame.number == connection.frames.1
                    || (packet.source == connection.sender && packet.payload > 0))
            {
                comment = said(&mut waits, frame.time_ns, begin);
            }
            written = interfaces.number(&mut writer, &frame).and_then(|interface| {
                writer.packet(&Record {
                    interface,
                    time_ns: frame.time_ns,
                    kept: frame.data,
                    original_len: frame.length,
                    way: Way::Unknown,
                    comment: comment.as_deref(),
                })
            });
        })
    });
    written.and_then(|()| writer.flush()).map_err(failed)?;
    drop(writer);
    // What came before a cut or damage is there, as it was in the first look.
    drop(ended);
    replacement.commit().map_err(failed)
}

/// The longest intervals, the last first.
fn longest(intervals: &[Interval]) -> Vec<Interval> {
    let mut longest = intervals.to_vec();
    longest.sort_by_key(|interval| core::cmp::Reverse(interval.to_ns - interval.from_ns));
    longest.truncate(COMMENTS);
    longest.sort_by_key(|interval| core::cmp::Reverse(interval.to_ns));
    longest
}

/// What is said of a frame that passed at `time_ns`: of the waits that have ended by then.
fn said(waits: &mut Vec<Interval>, time_ns: u64, begin: u64) -> Option<String> {
    let mut text = String::new();
    while let Some(wait) = waits.pop_if(|wait| wait.to_ns <= time_ns) {
        let (time, from) = ((wait.to_ns - wait.from_ns) as f64 / 1e9, (wait.from_ns - begin) as f64 / 1e9);
        let separator = if text.is_empty() { "Farpath: " } else { "; " };
        let _ = write!(text, "{separator}{time:.4} s of {} from {from:.4} s on", wait.limit.name());
    }
    // An option of a block holds 64 KiB.
    text.truncate(usize::from(u16::MAX));
    (!text.is_empty()).then_some(text)
}

/// The interfaces of the file that is written. They have the numbers that they had, unless it had several sections.
#[derive(Default)]
struct Interfaces {
    /// By number and link type in the file that is read.
    known: HashMap<(u32, i32), u32>,
    written: u32,
}

impl Interfaces {
    fn number<W: io::Write>(&mut self, writer: &mut Writer<W>, frame: &Frame<'_>) -> io::Result<u32> {
        let asked = (frame.interface, frame.link_type);
        if let Some(known) = self.known.get(&asked) {
            return Ok(*known);
        }
        // Those before it may have frames later, which are taken to be of the same link type.
        while self.written < frame.interface.min(MOST_INTERFACES) {
            self.write(writer, (self.written, frame.link_type))?;
        }
        self.write(writer, asked)
    }

    fn write<W: io::Write>(&mut self, writer: &mut Writer<W>, interface: (u32, i32)) -> io::Result<u32> {
        let description = format!("interface {} of the capture", interface.0);
        let link_type = u16::try_from(interface.1).unwrap_or(u16::MAX);
        writer.interface(&Interface {
            link_type,
            name: "",
            description: &description,
            os: None,
            snaplen: 0,
        })?;
        self.known.insert(interface, self.written);
        self.written += 1;
        Ok(self.written - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farpath_diagnose::Limit;
    use farpath_diagnose::live::{Look, Watched};

    #[test]
    fn two_sides_are_two_places_and_not_two_connections_of_the_same_ports() {
        let [sender, receiver] = ["192.0.2.1:1", "192.0.2.2:2"].map(|end| end.parse().expect("an address"));
        let seen = |interface: u32, min_rtt_s: f64| {
            let mut connection = Watched::new(sender, receiver, Look::default()).report();
            (connection.interface, connection.min_rtt_s) = (interface, Some(min_rtt_s));
            connection
        };
        let found = |connections: Vec<ConnectionReport>| {
            let report = Report {
                frames: 1,
                tcp_packets: 1,
                unknown_link: 0,
                connections,
                packets_not_followed: 0,
                others: Vec::new(),
            };
            let reports = [(Path::new("one"), report)];
            sides(&reports).map(|sides| (sides.sender.1.interface, sides.receiver.1.interface))
        };
        assert_eq!(found(vec![seen(0, 0.1), seen(0, 0.05)]), None);
        assert_eq!(found(vec![seen(0, 0.001), seen(1, 0.1), seen(1, 0.0)]), Some((1, 0)));
    }

    #[test]
    fn the_longest_waits_have_comments_in_the_order_of_their_ends() {
        // Each lasts one ns longer than the one before.
        let interval = |place: u64| Interval {
            limit: Limit::Loss,
            from_ns: place * 1_000_000,
            to_ns: place * 1_000_000 + place,
        };
        let all: Vec<Interval> = (0..2 * COMMENTS as u64).map(interval).collect();
        let mut waits = longest(&all);
        assert_eq!(waits.len(), COMMENTS);
        assert_eq!(waits.last(), Some(&interval(COMMENTS as u64)));
        assert_eq!(said(&mut waits, 0, 0), None);
        let said = said(&mut waits, interval(COMMENTS as u64 + 1).to_ns, 0).expect("two have ended");
        assert_eq!(said, "Farpath: 0.0000 s of loss from 1.0000 s on; 0.0000 s of loss from 1.0010 s on");
    }
}
