//! `farpath diagnose`: what held the connections of a capture, when.

pub(crate) mod compressed;
mod experiment;
#[cfg(target_os = "linux")]
mod live;

use crate::args::DiagnoseArgs;
use crate::error::CliError;
use crate::source::may_write_new;
use crate::{Ending, output, progress};
use farpath_diagnose::{ConnectionReport, Diagnosis, Report, Vantage, read};
use farpath_report::Table;
use std::fs::File;
use std::io;
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
    let failed = |source| CliError::ReadCapture { file: file.to_owned(), source };
    let source = match file.as_os_str() == "-" {
        true => compressed::decompressed(io::stdin()),
        false => File::open(file).and_then(compressed::decompressed),
    }
    .map_err(failed)?;
    if let Some(experiment) = &args.as_experiment {
        may_write_new("--as-experiment", experiment)?;
    }
    let mut diagnosis = Diagnosis::default();
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
    if let Some(experiment) = &args.as_experiment {
        experiment::write(&report.connections[0], experiment)?;
    }
    Ok(Ending::Done)
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
    let ConnectionReport {
        sender,
        receiver,
        interface,
        vantage,
        frames,
        duration_s,
        bytes,
        bytes_back,
        data_packets,
        retransmissions,
        bytes_not_captured,
        mss,
        window,
        min_rtt_s,
        rtt_s,
        delivered_bit_per_s,
        path_rate_bit_per_s: _,
        sender_opened: _,
        limits,
        moments,
        summary,
        intervals: _,
    } = connection;
    let width = output::width();
    // Connections that were watched have no frames.
    let is_capture = frames.1 > 0;
    let mut text = match is_capture {
        true => format!("{sender} to {receiver}, frames {} to {}, interface {interface}", frames.0, frames.1),
        false => format!("{sender} to {receiver}, watched for {duration_s:.1} s"),
    };
    text.push_str(&format!("\n\n{summary}\n\n"));
    let rows: Vec<_> = limits
        .iter()
        .map(|share| {
            let percent = if *duration_s > 0.0 { 100.0 * share.time_s / duration_s } else { 0.0 };
            let time = format!("{:.3}", share.time_s);
            [share.limit.name().to_owned(), time, format!("{percent:.1}"), share.bytes.to_string()]
        })
        .collect();
    let table = match is_capture {
        true => Table::from_rows(["limit", "time, s", "share, %", "bytes"], &rows),
        // What was sent behind each limit is in captures alone.
        false => {
            let rows: Vec<_> = rows.into_iter().map(|[limit, time, share, _]| [limit, time, share]).collect();
            Table::from_rows(["limit", "time, s", "share, %"], &rows)
        }
    };
    text.push_str(&table.to_text(width));
    let rows: Vec<_> = moments
        .iter()
        .map(|moment| {
            let (at, time) = (format!("{:.3}", moment.at_s), format!("{:.3}", moment.time_s));
            [moment.limit.name().to_owned(), at, time, moment.frame.to_string()]
        })
        .collect();
    if is_capture {
        text.push('\n');
        let headers = ["longest waits", "at, s", "for, s", "until frame"];
        text.push_str(&Table::from_rows(headers, &rows).to_text(width));
    }
    let place = match vantage {
        Vantage::NearSender => "near the sender",
        Vantage::NearReceiver => "near the receiver",
        Vantage::Middle => "between the ends",
        Vantage::Unknown => "unknown: the handshake is not in the capture",
    };
    let ms = |seconds: f64| format!("{:.1} ms", seconds * 1e3);
    let least = min_rtt_s.map_or_else(|| "unknown".to_owned(), ms);
    let percentiles = rtt_s.map(|[median, most, all]| {
        format!("; {} (median), {} (95 %), {} (99 %)", ms(median), ms(most), ms(all))
    });
    let rate = delivered_bit_per_s.map_or_else(|| "unknown".to_owned(), output::rate);
    let lost = if *bytes_not_captured > 0 {
        format!("; {bytes_not_captured} B are not in the capture")
    } else {
        String::new()
    };
    let window = window.map_or_else(|| "unknown".to_owned(), |window| format!("{window} B at the most"));
    text.push_str(&format!(
        "\n\nsent          {bytes} B in {data_packets} packets, {retransmissions} of them again; {bytes_back} B back{lost}\n\
         segment       {mss} B\n\
         window        {window}\n\
         round trip    {least} (least){}\n\
         delivered     {rate} at the most within a round trip",
        percentiles.unwrap_or_default(),
    ));
    if is_capture {
        text.push_str(&format!(
            "\n\
         capture       {place}\n\
         Wireshark     {}",
            filter(connection)
        ));
    }
    text
}

/// A display filter of Wireshark's for the connection.
fn filter(connection: &ConnectionReport) -> String {
    let (one, other) = (connection.sender, connection.receiver);
    let family = if one.is_ipv4() { "ip" } else { "ipv6" };
    format!(
        "{family}.addr == {} && tcp.port == {} && {family}.addr == {} && tcp.port == {}",
        one.ip(),
        one.port(),
        other.ip(),
        other.port()
    )
}
