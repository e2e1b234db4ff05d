//! `farpath diagnose`: what held the connections of a capture, when.

mod again;
pub(crate) mod compressed;
mod experiment;
#[cfg(target_os = "linux")]
mod live;

use crate::args::DiagnoseArgs;
use crate::error::CliError;
use crate::source::may_write_new;
use crate::{Ending, output, progress};
use farpath_diagnose::{ConnectionReport, Diagnosis, Report, read};
use farpath_report::html::{ReportFile, diagnosis_page};
use farpath_report::tables::{connection_facts, limits_table, waits_table};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Connections that get a line each beside those that are told more of.
const LISTED: usize = 10;

/// `farpath diagnose`
pub fn diagnose(args: &DiagnoseArgs) -> Result<Ending, CliError> {
    match &args.file {
        Some(file) => diagnose_capture(args, file),
        #[cfg(target_os = "linux")]
        None => live::watch(args),
        #[cfg(not(target_os = "linux"))]
        None => Err(CliError::NotLinux("diagnose --pid and --dst")),
    }
}

fn diagnose_capture(args: &DiagnoseArgs, file: &Path) -> Result<Ending, CliError> {
    let report_file = args.report.as_ref().map(ReportFile::create).transpose()?;
    if let Some(annotated) = &args.annotate {
        may_write_new("--annotate", annotated)?;
    }
    let is_stdin = file.as_os_str() == "-";
    if let (true, Some(flag)) = (is_stdin, args.reads_again()) {
        return Err(CliError::StdinTwice { flag });
    }
    if let Some(experiment) = &args.as_experiment {
        may_write_new("--as-experiment", experiment)?;
    }
    let mut diagnosis = Diagnosis::default();
    let source = match is_stdin {
        true => compressed::decompressed(io::stdin())
            .map_err(|source| CliError::ReadCapture { file: file.to_owned(), source })?,
        false => opened(file)?,
    };
    let ended = progress::during("reading the capture", || {
        read(source, |frame| {
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
    if report.connections.is_empty() {
        return Err(CliError::NoTcp {
            file: file.to_owned(),
            frames: report.frames,
            unknown: report.unknown_link,
        });
    }
    if args.json {
        print_json(&report.connections, args.connections)?;
    } else {
        print(&report, args.connections)?;
    }
    if report_file.is_some() || args.annotate.is_some() {
        let closer = again::looked_at(file, &report.connections[0])?;
        if let Some(page) = report_file {
            page.finish(&diagnosis_page(&closer.connection, &closer.graph).render())?;
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

/// A capture, decompressed.
fn opened(file: &Path) -> Result<Box<dyn Read + Send>, CliError> {
    File::open(file)
        .and_then(compressed::decompressed)
        .map_err(|source| CliError::ReadCapture { file: file.to_owned(), source })
}

fn print_json(connections: &[ConnectionReport], told: usize) -> io::Result<()> {
    for connection in connections.iter().take(told) {
        output::print(&serde_json::to_string(connection).expect("plain data"))?;
    }
    Ok(())
}

fn print(report: &Report, told: usize) -> io::Result<()> {
    for connection in report.connections.iter().take(told) {
        output::print(&tell(connection))?;
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
    text.push('\n');
    for (term, said) in connection_facts(connection) {
        text.push_str(&format!("{term:<14}{said}\n"));
    }
    text
}
