//! The time-sequence graph of a flow, as its sender sees it, with what was dropped on the way.

use super::super::data::{Columns, Figure, seconds};
use super::super::decimate::{Sample, decimate, spread};
use super::{INTERVALS, TIME};
use farpath_engine::ResendCause;
use farpath_run::{FlowRow, SegmentEvent, SegmentRow};
use farpath_units::Duration;

/// The most marks of one kind that are drawn.
const MARKS: usize = 1000;

/// Why something is sent again: the retransmission timer expired; fast retransmit began; a tail loss probe; or it is part
/// of such a repair.
const TIMEOUT: &str = "timeout";
const FAST: &str = "fast retransmit";
const PROBE: &str = "tail loss probe";
const AGAIN: &str = "retransmission";

/// The same where the sender did not say: it was not answering an ACK. That may have been the retransmission timer, a tail
/// loss probe, RACK's reordering timer, or pacing.
const TIMER: &str = "retransmission by a timer";

/// All of them.
const RESENT: [&str; 5] = [TIMEOUT, FAST, PROBE, TIMER, AGAIN];

/// Congestion experienced, of the ECN field (RFC 3168 §5).
const CE: u8 = 3;

/// Control bits.
const FIN: u8 = 1;
const SYN: u8 = 2;
const ACK: u8 = 16;

/// What goes beyond data sent and acknowledged.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Mark {
    pub time: u64,
    pub position: u64,
    pub event: &'static str,
    pub cause: String,
}

/// A flow's segments as positions in its stream.
#[derive(Debug, Default)]
pub(super) struct Sequence {
    pub sent: Vec<Sample<u64>>,
    pub acked: Vec<Sample<u64>>,
    pub marks: Vec<Mark>,
}

/// Sequence numbers wrap, positions do not: the one that is nearest to the last.
struct Positions {
    first: Option<u32>,
    last: u64,
}

impl Positions {
    /// The position of a sequence number; 0 is the first byte of data, and what comes before it.
    fn position_of(&mut self, seq: u32) -> u64 {
        let Some(first) = self.first else { return 0 };
        let ahead = seq.wrapping_sub(first).wrapping_sub(self.last as u32) as i32;
        let position = self.last.saturating_add_signed(ahead.into());
        self.last = self.last.max(position);
        position
    }
}

impl Sequence {
    pub fn of_flow(flow: &FlowRow, segments: &[SegmentRow]) -> Sequence {
        let mut sequence = Sequence::default();
        let mine = || segments.iter().filter(|row| row.flow == flow.flow);
        // The SYN takes the number before the first byte.
        let syn = mine().find(|row| row.direction == flow.direction && row.flags & SYN != 0);
        let first = syn.map(|row| row.seq.wrapping_add(1));
        let mut positions = Positions { first, last: 0 };
        let mut sender = Sender::default();
        for row in mine() {
            let time = row.time.as_nanos();
            let to_sender = row.direction != flow.direction;
            let mut mark = |position, event| {
                // What is sent again says why by its event.
                let cause = row.cause.as_deref().filter(|_| row.event == SegmentEvent::Dropped);
                let cause = cause.unwrap_or_default().to_owned();
                sequence.marks.push(Mark { time, position, event, cause });
            };
            match row.event {
                SegmentEvent::Dropped if row.flags & SYN != 0 => mark(0, "SYN dropped"),
                SegmentEvent::Dropped if to_sender => mark(positions.position_of(row.ack), "ACK dropped"),
                // The sender's own, of the handshake for instance.
                SegmentEvent::Dropped if row.len == 0 && row.flags & FIN == 0 => {
                    mark(positions.position_of(row.seq), "ACK dropped");
                }
                SegmentEvent::Dropped => mark(positions.position_of(row.seq), "data dropped"),
                SegmentEvent::Sent if !to_sender && row.len > 0 => {
                    let position = positions.position_of(row.seq);
                    sender.sent = sender.sent.max(position + u64::from(row.len));
                    match row.retransmission {
                        true => mark(position, sender.why_again(row)),
                        false => sequence.sent.push((time, position)),
                    }
                }
                SegmentEvent::Received if !to_sender && row.ecn == Some(CE) => {
                    mark(positions.position_of(row.seq), "marked (CE)");
                }
                SegmentEvent::Received if to_sender && row.flags & (ACK | SYN) == ACK => {
                    let position = positions.position_of(row.ack);
                    let is_duplicate = sender.is_duplicate(row, position);
                    if is_duplicate {
                        mark(position, "duplicate ACK");
                    }
                    sender.heard = Some((time, is_duplicate));
                    if position > sender.acked {
                        sender.acked = position;
                        sequence.acked.push((time, position));
                    }
                    sender.window = Some(row.window);
                    sender.sack.clone_from(&row.sack);
                }
                _ => {}
            }
        }
        sequence
    }
}

/// What a sender knows of what it has sent.
#[derive(Debug, Default)]
struct Sender {
    sent: u64,
    acked: u64,
    window: Option<u16>,
    sack: Vec<(u32, u32)>,
    /// When the last ACK came, and whether it was a duplicate.
    heard: Option<(u64, bool)>,
    /// Until where the last fast retransmit repairs.
    recovery_point: u64,
}

/// What a sender sends so soon after an ACK, that one has made it send.
const AT_ONCE: u64 = 1_000_000;

impl Sender {
    /// What made it send something again.
    fn why_again(&mut self, row: &SegmentRow) -> &'static str {
        match row.cause.as_deref().and_then(ResendCause::from_name) {
            Some(ResendCause::Timeout) => TIMEOUT,
            Some(ResendCause::FastRetransmit) => FAST,
            Some(ResendCause::LossProbe) => PROBE,
            Some(ResendCause::Repair) => AGAIN,
            None => self.seems_sent_again_by(row.time.as_nanos()),
        }
    }

    /// The same where only its packets are known.
    fn seems_sent_again_by(&mut self, now: u64) -> &'static str {
        match self.heard.filter(|heard| now.saturating_sub(heard.0) <= AT_ONCE) {
            None => TIMER,
            Some((_, true)) if self.acked >= self.recovery_point => {
                self.recovery_point = self.sent;
                FAST
            }
            Some(_) => AGAIN,
        }
    }

    /// RFC 5681 §2: data are outstanding, the ACK carries none, no SYN or FIN, acknowledges what is acknowledged, and
    /// announces the window that is known. With SACK it is one that reports what was not known (RFC 6675 §2).
    fn is_duplicate(&self, row: &SegmentRow, position: u64) -> bool {
        let says_it = match row.sack.is_empty() {
            true => self.window == Some(row.window),
            false => self.sack != row.sack,
        };
        self.sent > self.acked
            && row.len == 0
            && row.flags & (SYN | FIN) == 0
            && position == self.acked
            && says_it
    }
}

/// The whole of it, and what happened around the first loss.
pub(super) fn figures(flow: &FlowRow, segments: &[SegmentRow], usual: Option<Duration>) -> Vec<Figure> {
    let sequence = Sequence::of_flow(flow, segments);
    if sequence.sent.is_empty() && sequence.marks.is_empty() {
        return Vec::new();
    }
    let about = "Blue: where each segment of new data begins, when the sender sends it. Green: what has been \
                 acknowledged. Drag to move, Shift and wheel to zoom, double-click to come back; the pointer over a mark says what it is.";
    let silences = sequence.silences(usual.or_else(|| usual_silence(flow)));
    let about = format!("{about}{}", sequence.sums(flow, &silences));
    let mut figures = vec![figure("Time-sequence graph", about, &sequence, &silences.parts)];
    let rtt = flow.min_rtt.map_or(0, |rtt| rtt.as_nanos());
    if let Some((start, end)) = sequence.around_first_loss(rtt) {
        let about = format!(
            "The same from {:.3} to {:.3} s: the first loss, and what it took to repair it.",
            seconds(start),
            seconds(end)
        );
        let mut close = figure("The first loss", about, &sequence.between(start, end), &[]);
        close.set.push(("/layer/1/mark/size", 24.into()));
        close.set.push((TIME, vec![seconds(start), seconds(end)].into()));
        figures.push(close);
    }
    figures
}

impl Mark {
    fn is_again(&self) -> bool {
        RESENT.contains(&self.event)
    }
}

/// Times in which a sender sent nothing for longer than it usually waits for an answer, without that wait.
struct Silences {
    usual: Duration,
    /// From and until.
    parts: Vec<(u64, u64)>,
}

/// An answer takes a round trip, and a receiver that waits for more data somewhat longer.
fn usual_silence(flow: &FlowRow) -> Option<Duration> {
    flow.min_rtt.map(|rtt| rtt + rtt / 2)
}

impl Sequence {
    fn silences(&self, usual: Option<Duration>) -> Silences {
        let Some(usual) = usual.filter(|usual| !usual.is_zero()) else {
            return Silences { usual: Duration::ZERO, parts: Vec::new() };
        };
        let again = self.marks.iter().filter(|mark| mark.is_again()).map(|mark| mark.time);
        let mut sent: Vec<u64> = self.sent.iter().map(|sample| sample.0).chain(again).collect();
        sent.sort_unstable();
        let parts = sent.windows(2).map(|pair| (pair[0].saturating_add(usual.as_nanos()), pair[1]));
        Silences { usual, parts: parts.filter(|(from, until)| from < until).collect() }
    }

    /// What was lost, what repaired it, and how long nothing was sent, in a sentence or two.
    fn sums(&self, flow: &FlowRow, silences: &Silences) -> String {
        let count = |event: &str| self.marks.iter().filter(|mark| mark.event == event).count();
        let (dropped, resent) = (count("data dropped"), RESENT.map(count));
        let [timeouts, fast, probes, timers, repairs] = resent;
        let resent: usize = resent.iter().sum();
        let mut text = String::new();
        if dropped + resent > 0 {
            text += &format!(" Data packets dropped: {dropped}; sent again: {resent}");
            let by = [
                (timeouts, "by timeouts"),
                (fast, "by fast retransmits"),
                (probes, "as tail loss probes"),
                (timers, "by a timer"),
                (repairs, "in the same repairs"),
            ];
            let by = by.iter().filter(|(count, _)| *count > 0).map(|(count, by)| format!("{count} {by}"));
            let by: Vec<String> = by.collect();
            if !by.is_empty() {
                text += &format!(" ({})", by.join(", "));
            }
            text += ".";
        }
        if timers > 0 {
            text += " Of a kernel only packets are seen: a timer is its retransmission timer, a tail loss probe, RACK's \
                     reordering timer, or pacing";
            if let Some(timeouts) = flow.timeouts {
                text += &format!("; it has counted {timeouts} timeouts");
            }
            text += ".";
        }
        if let (false, Some(whole)) = (silences.parts.is_empty(), flow.transfer_time) {
            let silent: u64 = silences.parts.iter().map(|(from, until)| until - from).sum();
            text += &format!(
                " Grey: the sender was silent, beyond {} each time: {} times, {:.2} s in all, {:.1} % of the transfer.",
                silences.usual,
                silences.parts.len(),
                seconds(silent),
                silent as f64 / whole.as_nanos().max(1) as f64 * 100.0
            );
        }
        text
    }

    /// From shortly before the first drop until shortly after its repair; not where that is nearly everything.
    fn around_first_loss(&self, rtt: u64) -> Option<(u64, u64)> {
        let last = self.acked.last()?.0;
        let loss = self.marks.iter().find(|mark| mark.event == "data dropped" || mark.is_again())?.time;
        let repair = self.marks.iter().find(|mark| mark.is_again() && mark.time >= loss);
        let repaired = repair.map_or(loss, |mark| mark.time).saturating_add(rtt.saturating_mul(2));
        let start = loss.saturating_sub(rtt.saturating_mul(2));
        let end = repaired.saturating_add((repaired - start) / 3).min(last);
        (start < end && end - start < last / 3).then_some((start, end))
    }

    /// What is within two moments, and the acknowledgment that holds at the first.
    fn between(&self, start: u64, end: u64) -> Sequence {
        let within = |time: u64| (start..=end).contains(&time);
        let inside = |samples: &[Sample<u64>]| -> Vec<Sample<u64>> {
            samples.iter().filter(|sample| within(sample.0)).copied().collect()
        };
        let before = self.acked.iter().rfind(|sample| sample.0 < start).map(|sample| (start, sample.1));
        Sequence {
            sent: inside(&self.sent),
            acked: before.into_iter().chain(inside(&self.acked)).collect(),
            marks: self.marks.iter().filter(|mark| within(mark.time)).cloned().collect(),
        }
    }
}

fn figure(title: &str, mut caption: String, sequence: &Sequence, silences: &[(u64, u64)]) -> Figure {
    let Sequence { sent, acked, marks } = sequence;
    let mut drawn: Vec<Mark> = Vec::new();
    let mut events: Vec<&str> = vec!["data sent", "acknowledged"];
    let others = ["duplicate ACK", "data dropped", "ACK dropped", "SYN dropped", "marked (CE)"];
    for event in RESENT.into_iter().chain(others) {
        let all: Vec<&Mark> = marks.iter().filter(|mark| mark.event == event).collect();
        if all.is_empty() {
            continue;
        }
        events.push(event);
        if all.len() > MARKS {
            caption += &format!(" {MARKS} of {} marks `{event}` are drawn, evenly chosen.", all.len());
        }
        drawn.extend(spread(&all, MARKS).into_iter().cloned());
    }
    let points = |samples: &[Sample<u64>]| {
        Columns::default()
            .numbers("time_s", samples.iter().map(|sample| seconds(sample.0)))
            .numbers("bytes", samples.iter().map(|sample| sample.1 as f64))
    };
    let recorded = sent.len() + acked.len();
    let (sent, acked) = (decimate(sent, INTERVALS), decimate(acked, INTERVALS));
    caption += &super::decimated(sent.len() + acked.len(), recorded);
    let events_table = Columns::default()
        .numbers("time_s", drawn.iter().map(|mark| seconds(mark.time)))
        .numbers("bytes", drawn.iter().map(|mark| mark.position as f64))
        .texts("event", drawn.iter().map(|mark| mark.event))
        .texts("cause", drawn.iter().map(|mark| mark.cause.as_str()));
    let legends = ["/layer/2/encoding/color/legend/values", "/layer/2/encoding/shape/legend/values"];
    let mut set = legends.map(|pointer| (pointer, events.clone().into())).to_vec();
    let silences = spread(silences, MARKS);
    let empty = [
        ("/layer/0", acked.is_empty()),
        ("/layer/1", sent.is_empty()),
        ("/layer/2", drawn.is_empty()),
        ("/layer/3", silences.is_empty()),
    ];
    set.extend(
        empty.into_iter().filter(|(_, empty)| *empty).map(|(layer, _)| (layer, serde_json::Value::Null)),
    );
    Figure {
        plot: "time-sequence",
        title: title.to_owned(),
        caption,
        set,
        data: vec![
            ("sent", points(&sent)),
            ("acked", points(&acked)),
            ("events", events_table),
            (
                "silences",
                Columns::default()
                    .numbers("from_s", silences.iter().map(|silence| seconds(silence.0)))
                    .numbers("until_s", silences.iter().map(|silence| seconds(silence.1))),
            ),
        ],
    }
}
