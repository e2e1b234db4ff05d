//! An exchange as a diagram: two ends, and every segment between them.

use super::metric::Recovery;
use crate::html::{Columns, Figure};
use crate::sequence_diagram::SequenceDiagram;
use farpath_run::{Metric, Run, SegmentEvent, SegmentRow};
use farpath_units::Instant;
use serde::Deserialize;

/// Bits of the TCP header's flags.
const FIN: u8 = 0x01;
const SYN: u8 = 0x02;

/// The part of a run that is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Exchange {
    /// From the first SYN until the first data arrive.
    Opening,
    /// From the start of the window with the first lost segment until the ACK that ends its recovery.
    Recovery,
    /// From the first SYN until the first data arrive, past each router: what explicit rate says.
    Signalling,
}

/// Where the ends stand.
const SENDER: f64 = 0.0;
const RECEIVER: f64 = 1.0;

/// One segment on its way.
struct Way {
    sent: SegmentRow,
    /// Where it came to: received, or dropped.
    end: SegmentRow,
    kind: &'static str,
    text: String,
    /// What the sender's variables are then, where that is the point.
    state: Option<String>,
}

/// Draws a part of a run, a row for each event.
pub(super) fn figure(
    part: Exchange,
    title: &str,
    caption: &str,
    run: &Run,
    lanes: &[String],
) -> Result<Figure, String> {
    let ways = match part {
        Exchange::Signalling => return Ok(SequenceDiagram::opening(run, lanes)?.figure(title, caption)),
        Exchange::Opening => opening(run)?,
        Exchange::Recovery => recovery(run)?,
    };
    // A row for each event, in the order of time; what is sent together is sent one below the other.
    let mut events: Vec<(Instant, usize, bool)> = Vec::new();
    for (number, way) in ways.iter().enumerate() {
        events.push((way.sent.time, number, false));
        events.push((way.end.time, number, true));
    }
    events.sort();
    let row = |number: usize, arrives: bool| {
        events
            .iter()
            .position(|event| (event.1, event.2) == (number, arrives))
            .expect("every event has a row") as f64
    };
    let start = events.first().ok_or("nothing was sent")?.0;
    let arrives = |way: &Way| way.end.event == SegmentEvent::Received;
    let side = |way: &Way| if way.sent.direction == "forward" { SENDER } else { RECEIVER };
    let to_side = |way: &Way| match (arrives(way), side(way) == SENDER) {
        (false, _) => 0.5,
        (true, sender) => {
            if sender {
                RECEIVER
            } else {
                SENDER
            }
        }
    };
    let numbered = || ways.iter().enumerate();
    let segments = Columns::default()
        .numbers("side", ways.iter().map(side))
        .numbers("row", numbered().map(|(number, _)| row(number, false)))
        .numbers("to_side", ways.iter().map(to_side))
        .numbers("to_row", numbered().map(|(number, _)| row(number, true)))
        .texts("kind", ways.iter().map(|way| way.kind));
    let lost = || numbered().filter(|(_, way)| !arrives(way));
    let lost_marks = Columns::default()
        .numbers("side", lost().map(|_| 0.5))
        .numbers("row", lost().map(|(number, _)| row(number, true)))
        .texts("kind", lost().map(|_| "lost"));
    let long = events.last().is_some_and(|last| (last.0 - start).as_secs_f64() >= 10.0);
    let after = |time: Instant| match (time - start).as_secs_f64() {
        seconds if long => format!("{seconds:.1} s"),
        seconds => format!("{:.1} ms", seconds * 1e3),
    };
    // At the sender every event is named, at the receiver what it sends.
    let labels: Vec<(f64, f64, String, &str)> = numbered()
        .flat_map(|(number, way)| {
            let sent =
                (side(way), row(number, false), format!("{}  {}", after(way.sent.time), way.text), way.kind);
            let at_sender = arrives(way) && to_side(way) == SENDER;
            let text = || format!("{}  {}", after(way.end.time), way.text);
            let received = at_sender.then(|| (SENDER, row(number, true), text(), way.kind));
            let event = row(number, at_sender);
            let state = way.state.clone().map(|state| (RECEIVER, event, state, way.kind));
            [Some(sent), received, state].into_iter().flatten()
        })
        .collect();
    let labels = Columns::default()
        .numbers("side", labels.iter().map(|label| label.0))
        .numbers("row", labels.iter().map(|label| label.1))
        .texts("text", labels.iter().map(|label| &label.2))
        .texts("kind", labels.iter().map(|label| label.3));
    Ok(Figure {
        plot: "exchange",
        title: title.to_owned(),
        caption: caption.to_owned(),
        set: if lost_marks.is_empty() { vec![("/layer/2", serde_json::Value::Null)] } else { Vec::new() },
        data: vec![("segments", segments), ("lost", lost_marks), ("labels", labels)],
    })
}

/// The data segments sent from the start of the window until the recovery is over, and the ACKs of that time.
fn recovery(run: &Run) -> Result<Vec<Way>, String> {
    let recovery = Recovery::from_run(run)?;
    let (start, end) = (recovery.window_start, recovery.recovered);
    let series = run.series.to_vec();
    let state = |metric: Metric, at: Instant| {
        let mut rows = series.iter().filter(|row| row.metric == metric && row.time <= at);
        rows.next_back().map(|row| format!("{} {} B", metric.name(), row.value))
    };
    let (first, journeys) = journeys(run);
    let mut ways = Vec::new();
    let mut acked = None;
    for (sent, arrived) in journeys {
        let data = sent.direction == "forward";
        let inside =
            if data { (start..=end).contains(&sent.time) } else { sent.time >= start && arrived.time <= end };
        let before = acked;
        if !data {
            acked = Some(sent.ack);
        }
        if !inside || sent.len == 0 && data {
            continue;
        }
        let (kind, text, state) = match (data, sent.retransmission) {
            (true, false) => ("data", format!("data {}", sent.seq.wrapping_sub(first)), None),
            (true, true) => {
                let text = format!("again {}", sent.seq.wrapping_sub(first));
                ("retransmission", text, state(Metric::Ssthresh, sent.time))
            }
            (false, _) => {
                let kind = if before == Some(sent.ack) { "duplicate ACK" } else { "ACK" };
                let over = arrived.time == end;
                let text = format!("ACK {}", sent.ack.wrapping_sub(first));
                (kind, text, state(Metric::Cwnd, end).filter(|_| over))
            }
        };
        ways.push(Way { sent, end: arrived, kind, text, state });
    }
    Ok(ways)
}

/// Every segment until the first data have arrived.
fn opening(run: &Run) -> Result<Vec<Way>, String> {
    let (first, journeys) = journeys(run);
    let data = journeys.iter().find(|(sent, end)| sent.len > 0 && end.event == SegmentEvent::Received);
    let over = data.ok_or("no data arrived, or no segments were recorded: `output.segments = true`")?.1.time;
    let mut seen: Vec<(&str, u8)> = Vec::new();
    let mut ways = Vec::new();
    for (sent, end) in journeys.into_iter().filter(|(sent, _)| sent.time <= over) {
        let is_syn = sent.flags & SYN != 0;
        let again = seen.contains(&(sent.direction, sent.flags)) && is_syn || sent.retransmission;
        seen.push((sent.direction, sent.flags));
        let what = match (is_syn, sent.flags & 0x10 != 0, sent.len) {
            (true, false, _) => "SYN".to_owned(),
            (true, true, _) => "SYN/ACK".to_owned(),
            (false, _, 0) if sent.flags & FIN != 0 => "FIN".to_owned(),
            (false, _, 0) => "ACK".to_owned(),
            (false, ..) if sent.direction == "forward" => format!("data {}", sent.seq.wrapping_sub(first)),
            (false, ..) => "request".to_owned(),
        };
        let kind = match (again, sent.len > 0 || is_syn) {
            (true, _) => "retransmission",
            (false, true) => "data",
            (false, false) => "ACK",
        };
        let text = if again { format!("{what} again") } else { what };
        ways.push(Way { sent, end, kind, text, state: None });
    }
    Ok(ways)
}

/// The sequence number of the first data, and every segment with where it came to.
fn journeys(run: &Run) -> (u32, Vec<(SegmentRow, SegmentRow)>) {
    let segments = run.segments.to_vec();
    let syn = segments.iter().find(|row| row.direction == "forward" && row.flags & SYN != 0);
    let first = syn.map_or(0, |row| row.seq.wrapping_add(1));
    let at_ends = segments.into_iter().filter(|row| row.event != SegmentEvent::Passed);
    let (sent, mut ended): (Vec<SegmentRow>, Vec<SegmentRow>) =
        at_ends.partition(|row| row.event == SegmentEvent::Sent);
    let journey = |sent: SegmentRow| {
        let same = |row: &SegmentRow| {
            row.time >= sent.time
                && (row.direction, row.seq, row.ack, row.len)
                    == (sent.direction, sent.seq, sent.ack, sent.len)
        };
        // Of equal segments, such as duplicate ACKs, the first that was sent came first.
        let end = ended.remove(ended.iter().position(same)?);
        Some((sent, end))
    };
    (first, sent.into_iter().filter_map(journey).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use farpath_engine::{provenance, simulate};
    use farpath_experiment::{Experiment, shipped_experiments};

    #[test]
    fn one_drop_takes_three_duplicate_acks_and_one_fast_retransmit() {
        let shipped = shipped_experiments();
        let file = shipped.iter().find(|file| file.name == "single-drop").expect("it ships");
        let experiment = Experiment::parse(file.text, file.name, &[]).expect("good");
        let run = simulate(&experiment.point(0), 1, provenance(&experiment, &experiment.point(0)));
        let run = run.expect("simulated");
        let ways = recovery(&run).expect("there is a loss");
        let first_window: Vec<SegmentEvent> = ways.iter().take(6).map(|way| way.end.event).collect();
        let [received, dropped] = [SegmentEvent::Received, SegmentEvent::Dropped];
        assert_eq!(first_window, [received, received, received, received, dropped, received]);
        let again = ways.iter().find(|way| way.kind == "retransmission").expect("it is repaired");
        assert_eq!(again.state.as_deref(), Some("ssthresh 4380 B"));
        let duplicates = ways.iter().filter(|way| way.kind == "duplicate ACK");
        assert_eq!(duplicates.filter(|way| way.end.time <= again.sent.time).count(), 3);
        let recovered = ways.iter().find(|way| way.state.as_deref() == Some("cwnd 4380 B"));
        assert!(recovered.is_some_and(|way| way.kind == "ACK"));
        assert_eq!(
            ways.iter().filter(|way| way.kind == "data").count(),
            6 + 4 + 3,
            "three more when it is over"
        );
    }
}
