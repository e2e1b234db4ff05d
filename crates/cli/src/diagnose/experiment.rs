//! `farpath diagnose --as-experiment FILE`: a path and two stacks that behave as what was captured, and how near they come.

use crate::error::CliError;
use crate::{output, source};
use farpath_diagnose::{ConnectionReport, Limit, Vantage};
use farpath_engine::{provenance, simulate};
use farpath_experiment::Experiment;
use farpath_report::Table;
use farpath_run::{FlowRow, Outcome};
use std::fmt::Write as _;
use std::path::Path;

/// Headers of a segment with timestamps, over IPv4.
const HEADERS: f64 = 52.0;
/// Simulations with random losses: of as many, and one more that is drawn alike, the capture is the shortest or the longest in a tenth of all cases.
const SEEDS: u64 = 19;
/// A time that differs by no more is near.
const NEAR: f64 = 0.1;
/// A queue of ten packets at the least.
const LEAST_QUEUE: f64 = 15_000.0;

/// What a capture told, in the terms of an experiment.
#[derive(Debug, Clone, PartialEq)]
struct Fit {
    rate_bit_per_s: f64,
    /// Whether the rate was seen, or is what was delivered, twice.
    rate_seen: bool,
    /// Each way.
    delay_s: f64,
    queue_bytes: f64,
    /// Whether what stood in it was seen.
    queue_seen: bool,
    loss: f64,
    /// Packets that were sent again, and not for a full queue.
    lost_packets: u64,
    /// Of the receiving program, bytes per second, where it held its window shut.
    read_rate: Option<f64>,
}

impl Fit {
    /// What cannot be fitted without it is named.
    fn new(report: &ConnectionReport) -> Result<Fit, &'static str> {
        let rtt = report.min_rtt_s.ok_or(
            "its round trip is not known: the capture has no handshake and no acknowledgment of data",
        )?;
        let delivered = report
            .delivered_bit_per_s
            .ok_or("it is shorter than a round trip, so that nothing tells the rate of its path")?;
        let share = |limit: Limit| {
            let time =
                report.limits.iter().find(|share| share.limit == limit).map_or(0.0, |share| share.time_s);
            time / report.duration_s.max(1e-9)
        };
        // Payload becomes IP packets.
        let payload = (f64::from(report.mss) - 12.0).max(1.0);
        let packets = |rate: f64| rate * (payload + HEADERS) / payload;
        let seen = report.path_rate_bit_per_s.map(|rate| rate.max(delivered));
        let rate = packets(seen.unwrap_or(2.0 * delivered)).ceil();
        // The shortest one is that of the handshake, whose packets take no time to send.
        let handshake = report.vantage != Vantage::Unknown;
        let serialization = if handshake { 0.0 } else { (payload + HEADERS) * 8.0 / rate };
        let standing = report.rtt_s.map_or(0.0, |[_, _, most]| (most - rtt).max(0.0));
        let full = share(Limit::PathRate) > 0.2;
        // What stood before a loss is all that a queue holds.
        let standing = report.queue_s.unwrap_or(standing);
        let queue_seen = (full || report.queue_s.is_some()) && standing * rate / 8.0 > LEAST_QUEUE;
        let queue = if queue_seen { standing } else { rtt } * rate / 8.0;
        // Where the path was full its queue loses what is lost.
        let lost_packets = match full {
            true => 0,
            false => report.retransmissions - report.retransmissions_at_queue,
        };
        let loss = lost_packets as f64 / report.data_packets.max(1) as f64;
        let slow = share(Limit::ZeroWindow) > 0.2;
        Ok(Fit {
            rate_bit_per_s: rate,
            rate_seen: seen.is_some(),
            delay_s: ((rtt - serialization) / 2.0).max(0.0),
            queue_bytes: queue.max(LEAST_QUEUE).ceil(),
            queue_seen,
            loss: loss.min(0.5),
            lost_packets,
            read_rate: slow.then(|| (report.bytes as f64 / report.duration_s.max(1e-9)).ceil().max(1.0)),
        })
    }

    fn to_toml(&self, report: &ConnectionReport) -> String {
        let rate_from = if self.rate_seen { "seen" } else { "not seen: twice of what was delivered" };
        let queue_from =
            if self.queue_seen { "what stood in it" } else { "not seen: one bandwidth-delay product" };
        let mut text = format!(
            "title = \"{} from {} to {}, fitted to a capture\"\nhorizon = \"30 d\"\nseeds = {}\n\n\
             [[path]]\nelement = \"link\"\nrate = \"{:.0} bit/s\"     # {rate_from}\nqueue = \"{:.0} B\"     # {queue_from}\n\n\
             [[path]]\nelement = \"delay\"\ndelay = \"{:.0} us\"     # half of the shortest round trip\n",
            output::size(report.bytes as f64),
            report.sender,
            report.receiver,
            if self.loss > 0.0 { SEEDS } else { 1 },
            self.rate_bit_per_s,
            self.queue_bytes,
            self.delay_s * 1e6,
        );
        if self.loss > 0.0 {
            let _ = write!(
                text,
                "\n[[path]]\nelement = \"loss\"\nrate = {{ forward = \"{:.4} %\" }}     # {} of {} packets were sent again, and no queue stood\n",
                100.0 * self.loss,
                self.lost_packets,
                report.data_packets
            );
        }
        let mss = if (536..1460).contains(&report.mss) {
            format!("mss = \"{} B\"\n", report.mss)
        } else {
            String::new()
        };
        let _ = write!(
            text,
            "\n[sender]     # a capture does not tell the stack: Linux, as it is by default\nstack = \"linux-6\"\n{mss}\n[receiver]\nstack = \"linux-6\"\n{mss}"
        );
        if let Some(window) = report.window {
            let _ = write!(
                text,
                "receive.autotuning = false\nreceive.buffer = \"{window} B\"     # the longest window that it announced\n"
            );
        }
        if let Some(rate) = self.read_rate {
            let _ = writeln!(
                text,
                "receive.read_rate = \"{:.0} bit/s\"     # its window was shut: as fast as it was read",
                rate * 8.0
            );
        }
        let opener = match report.sender_opened {
            Some(true) | None => "sender",
            Some(false) => "receiver",
        };
        let _ = write!(text, "\n[transfer]\nopener = \"{opener}\"\nsize = \"{} B\"\n", report.bytes);
        text
    }
}

/// Writes the experiment that was fitted to a connection, simulates it, and says how near it comes.
pub fn write(report: &ConnectionReport, file: &Path) -> Result<(), CliError> {
    const FLAG: &str = "--as-experiment";
    let fit = Fit::new(report).map_err(|why| CliError::NotFitted { flag: FLAG, why })?;
    let text = fit.to_toml(report);
    let experiment = Experiment::parse(&text, &file.display().to_string(), &[])?;
    source::write_new(FLAG, file, &text)?;
    let point = &experiment.point(0);
    let mut flows: Vec<FlowRow> = Vec::new();
    for seed in 1..=point.scenario.seeds {
        let run = simulate(point, seed, provenance(&experiment, point))
            .map_err(|source| CliError::Engine { file: file.to_owned(), source: source.into() })?;
        flows.extend(run.flows.into_iter().take(1));
    }
    output::print(&compared(report, &flows))?;
    eprintln!(
        "farpath: `farpath explain {}` says what bounds it, and what would make it faster",
        file.display()
    );
    Ok(())
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
    (count > 0.0).then(|| sum / count)
}

/// The table of what was captured and what is simulated, and how near the one is to the other.
fn compared(report: &ConnectionReport, flows: &[FlowRow]) -> String {
    if let Some(flow) = flows.iter().find(|flow| flow.outcome != Outcome::Completed) {
        return format!(
            "simulated: {} {}: this experiment is not what was captured",
            flow.outcome, flow.detail
        );
    }
    let time = mean(flows.iter().filter_map(|flow| flow.transfer_time).map(|time| time.as_secs_f64()));
    let least = mean(flows.iter().filter_map(|flow| flow.min_rtt).map(|rtt| rtt.as_secs_f64()));
    let again = mean(flows.iter().filter_map(|flow| flow.retransmissions));
    let row = |what: &str, captured: Option<f64>, simulated: Option<f64>, digits: usize| {
        let number = |value: Option<f64>| {
            value.map_or_else(|| "unknown".to_owned(), |value| format!("{value:.digits$}"))
        };
        let percent = captured.zip(simulated).filter(|(captured, _)| *captured > 0.0);
        let percent = percent.map_or_else(
            || "–".to_owned(),
            |(captured, simulated)| format!("{:+.1}", 100.0 * (simulated / captured - 1.0)),
        );
        [what.to_owned(), number(captured), number(simulated), percent]
    };
    let rows = [
        row("time, s", Some(report.duration_s), time, 3),
        row("sent again, packets", Some(report.retransmissions as f64), again, 1),
        row("shortest round trip, ms", report.min_rtt_s.map(|rtt| rtt * 1e3), least.map(|rtt| rtt * 1e3), 2),
    ];
    let table = Table::from_rows(["fitted", "captured", "simulated", "difference, %"], &rows)
        .to_text(output::width());
    let differs = time.map_or(f64::INFINITY, |time| time / report.duration_s.max(1e-9) - 1.0);
    let times = flows.iter().filter_map(|flow| flow.transfer_time).map(|time| time.as_secs_f64());
    let (shortest, longest) = times.fold((f64::MAX, 0.0_f64), |(least, most), s| (least.min(s), most.max(s)));
    // Losses that fall otherwise make another time of it, and the capture is one of them.
    let among = flows.len() > 1 && (shortest..=longest).contains(&report.duration_s);
    let waits =
        report.limits.first().is_some_and(|first| matches!(first.limit, Limit::Application | Limit::Nagle));
    let verdict = if differs.abs() <= NEAR {
        "The experiment takes as long as the capture, within 10 %.".to_owned()
    } else if among {
        format!(
            "The capture is one of what the experiment may take: {shortest:.3} s to {longest:.3} s, by where losses fall ({} simulations).",
            flows.len()
        )
    } else if waits {
        "The experiment is not near: the pauses of the sending program are not in it.".to_owned()
    } else {
        "The experiment is not near: what it says of remedies is not said of this connection.".to_owned()
    };
    format!("{table}\n{verdict}")
}
