//! `farpath diagnose`: what held the connections of a capture, when.

mod again;
pub(crate) mod compressed;
mod experiment;
#[cfg(target_os = "linux")]
mod live;
mod live_capture;
mod tables;

use crate::args::DiagnoseArgs;
use crate::error::CliError;
use crate::source::may_write_new;
use crate::{Ending, interrupt, output, progress};
use farpath_diagnose::both::BothSides;
use farpath_diagnose::kernel::{self, KernelCounters};
use farpath_diagnose::{ConnectionReport, Diagnosis, Report, read};
use farpath_report::html::{ReportFile, diagnosis_page};
use farpath_report::tables::{both_sides_facts, connection_facts, limits_table, waits_table};
use farpath_run::DiagnosisTables;
use live_capture::LiveCapture;
use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::{self, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Connections that get a line each beside those that are told more of.
const LISTED: usize = 10;

/// `farpath diagnose`
pub fn diagnose(args: &DiagnoseArgs) -> Result<Ending, CliError> {
    match args.files.as_slice() {
        #[cfg(target_os = "linux")]
        [] => live::watch(args),
        #[cfg(not(target_os = "linux"))]
        [] => Err(CliError::NotLinux("diagnose --pid and --dst")),
        files => diagnose_captures(args, files),
    }
}

fn diagnose_captures(args: &DiagnoseArgs, files: &[PathBuf]) -> Result<Ending, CliError> {
    let page = args.report.as_ref().map(ReportFile::create).transpose()?;
    if let Some(annotated) = &args.annotate {
        may_write_new("--annotate", annotated)?;
    }
    if let Some(experiment) = &args.as_experiment {
        may_write_new("--as-experiment", experiment)?;
    }
    if let Some(folder) = &args.out {
        DiagnosisTables::may_write(folder)?;
    }
    let is_stdin = |file: &PathBuf| file.as_os_str() == "-";
    let read_twice = args.reads_again().or((files.len() > 1).then_some("a second capture"));
    if let Some(flag) = read_twice.filter(|_| files.iter().any(is_stdin)) {
        return Err(CliError::StdinTwice { flag });
    }
    let mut reports = Vec::new();
    for file in files {
        reports.push((file.as_path(), read_capture(args, file)?));
    }
    // What is not read again is not put together: of stdin there is one place.
    let sides = if files.iter().any(is_stdin) { None } else { again::sides(&reports) };
    let both = sides.as_ref().map(again::Sides::together).transpose()?.flatten();
    if files.len() > 1 && sides.is_none() {
        return Err(CliError::NotInBoth { files: files.to_vec() });
    }
    if let Some(sides) = sides {
        let (file, connection) = sides.sender;
        let (ends, place) =
            ((connection.sender, connection.receiver), (connection.interface, connection.frames));
        reports.retain(|(other, _)| *other == file);
        // Whoever names two captures asks for what is in both; in one, the longest of all may be another connection.
        let connections = &mut reports[0].1.connections;
        if files.len() > 1 || ends == (connections[0].sender, connections[0].receiver) {
            connections.sort_by_key(|connection| (connection.interface, connection.frames) != place);
        }
    }
    let counted_ends = |counted: &KernelCounters| (counted.local, counted.peer);
    if let Some(printed) = &args.ss {
        let read = |text: &str| Ok(kernel::parse_ss(text));
        overrule(
            &mut reports,
            ("--ss", printed),
            read,
            counted_ends,
            kernel::overrule,
            "what `ss -tin` prints on the sending host while the connection is open",
        )?;
    }
    if let Some(kept) = &args.ndt {
        let read = |text: &str| kernel::parse_ndt(text).map_err(io::Error::other);
        overrule(
            &mut reports,
            ("--ndt", kept),
            read,
            counted_ends,
            kernel::overrule,
            "what an ndt7 server keeps of a download, or measurements of one that its client printed",
        )?;
    }
    if let Some(printed) = &args.iperf3 {
        overrule(
            &mut reports,
            ("--iperf3", printed),
            |text| kernel::parse_iperf3(text).map_err(io::Error::other),
            |told| (told.local, told.peer),
            kernel::overrule_by_iperf3,
            "what `iperf3 --json` prints on the sending host",
        )?;
    }
    let (file, report) = &reports[0];
    if args.json {
        print_json(&report.connections, args.connections, both.as_ref())?;
    } else {
        print(report, args.connections, both.as_ref())?;
    }
    if args.reads_again().is_some() {
        let mut closer = again::looked_at(file, &report.connections[0])?;
        closer.connection.limits.clone_from(&report.connections[0].limits);
        closer.connection.summary.clone_from(&report.connections[0].summary);
        if let Some(folder) = &args.out {
            tables::tables(&report.connections, &closer.connection.intervals).write(folder)?;
        }
        if let Some(page) = page {
            page.finish(&diagnosis_page(&closer.connection, &closer.graph, both.as_ref()).render())?;
        }
        if let Some(annotated) = &args.annotate {
            again::annotate(file, &closer.connection, annotated)?;
        }
    }
    if let Some(experiment) = &args.as_experiment {
        experiment::write(&report.connections[0], experiment)?;
    }
    Ok(Ending::Done)
}

/// Takes what the senders' kernels told for what it is, for each connection that `file` knows; it may be compressed.
fn overrule<T>(
    reports: &mut [(&Path, Report)],
    (option, file): (&'static str, &Path),
    parse: impl FnOnce(&str) -> io::Result<Vec<T>>,
    ends: impl Fn(&T) -> (SocketAddr, SocketAddr),
    take: impl Fn(&mut ConnectionReport, &T),
    expected: &'static str,
) -> Result<(), CliError> {
    let text = compressed::text_of(file).map_err(|source| CliError::ReadCounted {
        option,
        file: file.to_owned(),
        source,
    })?;
    let told = parse(&text).map_err(|source| CliError::NotPrinted {
        option,
        expected,
        file: file.to_owned(),
        source,
    })?;
    // Of several of the same ends the first is taken.
    let by_ends: HashMap<_, _> = told.iter().rev().map(|told| (ends(told), told)).collect();
    let mut known = false;
    for connection in reports.iter_mut().flat_map(|(_, report)| &mut report.connections) {
        if let Some(told) = by_ends.get(&(connection.sender, connection.receiver)) {
            take(connection, told);
            known = true;
        }
    }
    match known {
        true => Ok(()),
        false => {
            let (file, connections) = (file.to_owned(), told.len());
            Err(CliError::NotCounted { option, expected, file, connections })
        }
    }
}

/// What is to be said of a capture; at least one connection.
fn read_capture(args: &DiagnoseArgs, file: &Path) -> Result<Report, CliError> {
    let mut diagnosis = Diagnosis::default();
    let mut interfaces = BTreeSet::new();
    let source = match file.as_os_str() == "-" {
        true => {
            compressed::decompressed(LiveCapture::from_source(io::stdin(), interrupt::flag_of_a_reader()))
                .map_err(|source| CliError::ReadCapture { file: file.to_owned(), source })?
        }
        false => opened(file)?,
    };
    let ended = progress::during("reading the capture", || {
        read(source, |frame| {
            interfaces.insert(frame.interface);
            if args.interface.is_none_or(|interface| interface == frame.interface) {
                diagnosis.frame(frame);
            }
        })
    });
    let report = diagnosis.finish();
    if let Err(source) = ended {
        // What came before a cut or damage is worth telling.
        if report.tcp_packets == 0 {
            return Err(CliError::Capture { file: file.to_owned(), source });
        }
        output::tell(&format!("{}: {source}; this is of what came before", file.display()));
    }
    let missing = args.interface.filter(|interface| !interfaces.contains(interface));
    if let Some(interface) = missing.filter(|_| !interfaces.is_empty()) {
        return Err(CliError::NoInterface { file: file.to_owned(), interface, interfaces });
    }
    if report.connections.is_empty() {
        return Err(CliError::NoTcp { file: file.to_owned(), frames: report.frames, others: report.others });
    }
    Ok(report)
}

/// A capture, decompressed.
fn opened(file: &Path) -> Result<Box<dyn Read + Send>, CliError> {
    File::open(file)
        .and_then(|open| match open.metadata()?.is_dir() {
            true => Err(io::Error::new(io::ErrorKind::IsADirectory, "expected a capture, found a directory")),
            false => compressed::decompressed(open),
        })
        .map_err(|source| CliError::ReadCapture { file: file.to_owned(), source })
}

/// An object for each connection; what both sides tell together is of the first.
fn print_json(connections: &[ConnectionReport], told: usize, both: Option<&BothSides>) -> io::Result<()> {
    for (place, connection) in connections.iter().take(told).enumerate() {
        let mut object = serde_json::to_value(connection).expect("plain data");
        if let (0, Some(both)) = (place, both) {
            object["both_sides"] = serde_json::to_value(both).expect("plain data");
        }
        output::print(&object.to_string())?;
    }
    Ok(())
}

fn print(report: &Report, told: usize, both: Option<&BothSides>) -> io::Result<()> {
    for (place, connection) in report.connections.iter().take(told).enumerate() {
        output::print(&tell(connection))?;
        if let (0, Some(both)) = (place, both) {
            output::print(&format!("\n{}", facts(both_sides_facts(both))))?;
        }
        output::print("")?;
    }
    let rest = &report.connections[told.min(report.connections.len())..];
    for connection in rest.iter().take(LISTED) {
        let ConnectionReport { sender, receiver, interface, bytes, summary, .. } = connection;
        output::print(&format!("{sender} to {receiver} (interface {interface}), {bytes} B: {summary}"))?;
    }
    let more = rest.len().saturating_sub(LISTED);
    if more > 0 {
        let bytes: u64 = rest.iter().skip(LISTED).map(|connection| connection.bytes).sum();
        output::print(&format!("{more} more connections with {bytes} B"))?;
    }
    if report.packets_not_followed > 0 {
        output::print(&format!(
            "{} packets are of connections beyond those that are followed",
            report.packets_not_followed
        ))?;
    }
    Ok(())
}

/// The sentence, the table of limits, the longest waits, the path.
fn tell(connection: &ConnectionReport) -> String {
    let ConnectionReport { sender, receiver, interface, frames, duration_s, summary, moments, .. } =
        connection;
    let width = output::width();
    // Connections that were watched have no frames.
    let mut text = match frames {
        (_, 0) => format!("{sender} to {receiver}, watched for {duration_s:.1} s"),
        (first, last) => format!("{sender} to {receiver}, frames {first} to {last}, interface {interface}"),
    };
    text.push_str(&format!("\n\n{summary}\n\n{}\n", limits_table(connection).to_text(width)));
    if !moments.is_empty() {
        text.push_str(&format!("{}\n", waits_table(connection).to_text(width)));
    }
    format!("{text}\n{}", facts(connection_facts(connection)))
}

fn facts(facts: Vec<(&'static str, String)>) -> String {
    facts.iter().map(|(term, said)| format!("{term:<14}{said}\n")).collect()
}
