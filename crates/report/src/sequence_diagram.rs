//! Sequence diagram of the signalling of explicit rate: the ends and what stands between them side by side, time downwards.

use crate::html::{Columns, Figure};
use crate::signals::{Signal, signals};
use farpath_elements::ElementSpec;
use farpath_experiment::Scenario;
use farpath_path::Direction;
use farpath_run::{Run, SegmentEvent};
use farpath_tia1039::{QosMark, RateUnit, Structure};
use farpath_units::Instant;

/// An exchange between the two ends of a flow, with what each flow router made of it.
#[derive(Debug, Clone, PartialEq)]
pub struct SequenceDiagram {
    /// The data sender, what passes packets on, the data receiver.
    lanes: Vec<String>,
    messages: Vec<Message>,
}

/// A packet on its way.
#[derive(Debug, Clone, PartialEq)]
struct Message {
    name: String,
    /// Where it set out, and when, since the first of them.
    from: (usize, f64),
    /// Where it came to, and when.
    to: (usize, f64),
    /// What it says between two lanes, by the number of the left one: a line for each structure.
    says: Vec<(usize, Vec<String>)>,
    lost: bool,
    kind: &'static str,
}

/// Of what packets are passed on by: whatever has a line.
pub fn lanes(scenario: &Scenario) -> Vec<String> {
    let has_line =
        |element: &&ElementSpec| element.spec().line(Direction::Forward).is_some_and(|line| !line.is_shared);
    let lines = scenario.path.iter().filter(has_line);
    lines.map(|element| element.name.clone()).collect()
}

impl SequenceDiagram {
    /// The opening of the first flow of a run, until its first data arrive, past `lanes`. A run without recorded
    /// segments, or without signals, has none.
    pub fn opening(run: &Run, lanes: &[String]) -> Result<SequenceDiagram, String> {
        let all = signals(run, 0)?;
        let start = all
            .first()
            .ok_or("nobody asks for a rate, or no segments were recorded: `output.segments = true`")?;
        let start = start.hops[0].time;
        let is_data = |row: &farpath_run::SegmentRow| row.flow == 0 && row.len > 0;
        let rows = || run.segments.iter().filter(is_data);
        let arrives = rows().find(|row| row.event == SegmentEvent::Received).ok_or("no data arrived")?;
        let first = rows().find(|row| row.event == SegmentEvent::Sent && row.seq == arrives.seq);
        let first = first.ok_or("no data was sent")?;
        let names = core::iter::once("sender").chain(lanes.iter().map(String::as_str)).chain(["receiver"]);
        let lanes: Vec<String> = names.map(str::to_owned).collect();
        let mut messages: Vec<Message> = all
            .iter()
            .filter(|signal| signal.hops[0].time <= first.time)
            .map(|signal| Message::from_signal(signal, &lanes, start))
            .collect();
        let last = lanes.len() - 1;
        let data = first.direction == "forward";
        let (from, to) = if data { (0, last) } else { (last, 0) };
        let granted = first.dscp == QosMark::Flow.dscp();
        messages.push(Message {
            name: "data".to_owned(),
            from: (from, seconds(first.time, start)),
            to: (to, seconds(arrives.time, start)),
            says: vec![(
                from.min(last - 1),
                vec![if granted { "by a grant" } else { "without a grant" }.to_owned()],
            )],
            lost: false,
            kind: "data",
        });
        Ok(SequenceDiagram { lanes, messages })
    }

    /// As text: a line for what is said, one for the arrow.
    pub fn text(&self) -> String {
        let said = self.messages.iter().flat_map(|message| &message.says).flat_map(|(_, lines)| lines);
        let names = self.messages.iter().map(|message| &message.name).chain(&self.lanes);
        let widest = said.chain(names).map(|text| text.chars().count()).max().unwrap_or(0);
        let (gap, margin) = (widest + 2, 11);
        let column = |lane: usize| margin + lane * (gap + 1);
        let width = column(self.lanes.len() - 1) + 1 + margin;
        let blank = || vec![' '; width];
        let lines = || {
            let mut line = blank();
            (0..self.lanes.len()).for_each(|lane| line[column(lane)] = '|');
            line
        };
        let mut head = blank();
        for (lane, name) in self.lanes.iter().enumerate() {
            let half = name.chars().count() / 2;
            put(&mut head, column(lane).saturating_sub(half), name);
        }
        let mut out = vec![head, lines()];
        for message in &self.messages {
            let deep = message.says.iter().map(|(_, lines)| lines.len()).max().unwrap_or(0);
            let mut name = lines();
            let first_gap = if message.from.0 < message.to.0 { message.from.0 } else { message.from.0 - 1 };
            put(&mut name, column(first_gap) + 2, &message.name);
            out.push(name);
            for depth in 0..deep {
                let mut line = lines();
                for (gap, said) in &message.says {
                    said.get(depth).into_iter().for_each(|text| put(&mut line, column(*gap) + 2, text));
                }
                out.push(line);
            }
            let mut arrow = lines();
            let (left, right) = (message.from.0.min(message.to.0), message.from.0.max(message.to.0));
            for lane in left..right {
                arrow[column(lane) + 1..column(lane + 1)].fill('-');
                let head = if message.to.0 == right { column(lane + 1) - 1 } else { column(lane) + 1 };
                arrow[head] = if message.to.0 == right { '>' } else { '<' };
            }
            if message.lost {
                arrow[(column(left) + column(right)) / 2] = 'x';
            }
            for (lane, time) in [message.from, message.to] {
                let text = format!("{:.1} ms", time * 1e3);
                if lane == 0 {
                    put(&mut arrow, margin - 1 - text.chars().count().min(margin - 1), &text);
                } else if lane == self.lanes.len() - 1 {
                    put(&mut arrow, column(lane) + 2, &text);
                }
            }
            out.extend([arrow, lines()]);
        }
        out.pop();
        let text = |line: Vec<char>| line.into_iter().collect::<String>().trim_end().to_owned();
        let mut text: Vec<String> = out.into_iter().map(text).collect();
        text.push(String::new());
        text.push("Rates in Mbit/s of IP packets; * marked by a router (M = 1).".to_owned());
        text.join("\n")
    }

    /// As a figure.
    pub fn figure(&self, title: &str, caption: &str) -> Figure {
        // A packet takes a row, and one more for each line that it says.
        let (mut rows, mut row) = (Vec::new(), 0.5);
        for message in &self.messages {
            let deep = message.says.iter().map(|(_, lines)| lines.len()).max().unwrap_or(0) as f64;
            row += 1.0 + deep;
            rows.push(row);
            row += 0.8;
        }
        let bottom = row + 0.4;
        let (mut arrows, mut labels) = (Vec::new(), Vec::new());
        for (message, &row) in self.messages.iter().zip(&rows) {
            let (from, to) = (message.from.0, message.to.0);
            let steps = from.abs_diff(to);
            let lane = |step: usize| if from < to { from + step } else { from - step };
            // Each lane is a little lower than the one before: time goes on.
            let slope = 0.6 / steps.max(1) as f64;
            for step in 0..steps {
                let y = |step: usize| row + step as f64 * slope;
                arrows.push((lane(step) as f64, y(step), lane(step + 1) as f64, y(step + 1), message));
            }
            for (gap, said) in &message.says {
                let step = if from < to { gap - from } else { from - 1 - gap };
                for (depth, text) in said.iter().rev().enumerate() {
                    let y = row + step as f64 * slope - 0.35 - depth as f64 * 0.85;
                    labels.push((*gap as f64 + 0.5, y, text.clone(), "middle", message));
                }
            }
            let side = |lane: usize| if lane == 0 { "right" } else { "left" };
            let ends = [
                (from, message.from.1, row, format!("{}  ", message.name)),
                (to, message.to.1, row + 0.6, String::new()),
            ];
            for (lane, time, y, name) in ends {
                if lane == 0 || lane == self.lanes.len() - 1 {
                    labels.push((lane as f64, y, format!("{name}{:.1} ms", time * 1e3), side(lane), message));
                }
            }
        }
        let kind = |message: &&Message| if message.lost { "lost" } else { message.kind };
        let lane_columns = Columns::default()
            .numbers("lane", (0..self.lanes.len()).map(|lane| lane as f64))
            .numbers("top", self.lanes.iter().map(|_| 0.0))
            .numbers("bottom", self.lanes.iter().map(|_| bottom))
            .texts("name", &self.lanes);
        let arrow_columns = Columns::default()
            .numbers("lane", arrows.iter().map(|arrow| arrow.0))
            .numbers("row", arrows.iter().map(|arrow| arrow.1))
            .numbers("to_lane", arrows.iter().map(|arrow| arrow.2))
            .numbers("to_row", arrows.iter().map(|arrow| arrow.3))
            // Degrees to the right of upwards: where a triangle points.
            .numbers("turn", arrows.iter().map(|arrow| if arrow.2 > arrow.0 { 90.0 } else { -90.0 }))
            .texts("kind", arrows.iter().map(|arrow| kind(&arrow.4)));
        let label_columns = Columns::default()
            .numbers("lane", labels.iter().map(|label| label.0))
            .numbers("row", labels.iter().map(|label| label.1))
            .texts("text", labels.iter().map(|label| &label.2))
            .texts("place", labels.iter().map(|label| label.3))
            .texts("kind", labels.iter().map(|label| kind(&label.4)));
        let last = self.lanes.len() as f64 - 1.0;
        Figure {
            plot: "sequence-diagram",
            title: title.to_owned(),
            caption: format!(
                "{caption} Rates in Mbit/s of IP packets; * marked by a router (M = 1). Not to the scale of time."
            ),
            set: vec![
                ("/height", (bottom * 24.0).into()),
                ("/encoding/x/scale/domain", vec![-0.7, last + 0.7].into()),
                ("/encoding/y/scale/domain", vec![-0.9, bottom].into()),
            ],
            data: vec![("lanes", lane_columns), ("arrows", arrow_columns), ("labels", label_columns)],
        }
    }
}

impl Message {
    fn from_signal(signal: &Signal, lanes: &[String], start: Instant) -> Message {
        let last = lanes.len() - 1;
        let forward = signal.is_forward();
        let step = |lane: usize| if forward { lane + 1 } else { lane.saturating_sub(1) };
        let (mut lane, end) = if forward { (0, last) } else { (last, 0) };
        let (first, done) = (&signal.hops[0], signal.hops.last().expect("it was seen"));
        if let Some(place) = lanes.iter().position(|lane| Some(lane) == first.element.as_ref()) {
            lane = place;
        }
        let from = (lane, seconds(first.time, start));
        let mut says: Vec<(usize, Vec<String>)> = Vec::new();
        let mut now = &first.structures;
        // What one that does not know the protocol passes on is what came to it.
        while lane != end {
            let here = signal.hops.iter().find(|hop| hop.element.as_deref() == Some(&lanes[lane]));
            now = here.map_or(now, |hop| &hop.structures);
            says.push((lane.min(step(lane)), now.iter().map(said).collect()));
            lane = step(lane);
        }
        let lost = done.event == SegmentEvent::Dropped;
        let to = (end, seconds(done.time, start));
        Message { name: signal.name().to_owned(), from, to, says, lost, kind: "signal" }
    }
}

/// `request 34.944 *`
fn said(structure: &Structure) -> String {
    let rate = |word| RateUnit::default().decode(word) as f64 / 1e6;
    let mark = if structure.mark > 0 { " *" } else { "" };
    let mut text = structure.message.name().to_owned();
    if structure.rate_type.has_guaranteed() {
        text += &format!(" GR {:.3}", rate(structure.guaranteed));
    }
    if structure.rate_type.has_available() {
        text += &format!(" {:.3}", rate(structure.available));
    }
    text + mark
}

fn seconds(time: Instant, start: Instant) -> f64 {
    (time - start).as_secs_f64()
}

fn put(line: &mut [char], at: usize, text: &str) {
    for (place, letter) in line.iter_mut().skip(at).zip(text.chars()) {
        *place = letter;
    }
}
