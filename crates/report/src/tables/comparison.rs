//! What was published, predicted, simulated, emulated and measured, side by side.

use super::agreement::agreement_notes;
use super::grade::grade_notes;
use super::numbers::Scale;
use crate::table::{Column, Table};
use farpath_run::{Engine, ExperimentSummary, Outcome, PointSummary, Run, Share, Statistic};
use std::collections::{BTreeMap, BTreeSet};

/// What a paper printed for one point.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Published {
    /// In s.
    pub transfer_time_s: Option<f64>,
    /// In bit/s.
    pub goodput_bit_per_s: Option<f64>,
    /// Segments sent again.
    pub retransmissions: Option<f64>,
    /// Expirations of the retransmission timer.
    pub timeouts: Option<f64>,
}

/// What a reader must know before trusting the numbers in a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caveat {
    /// Whose numbers; `None` where it is about the experiment, whoever answers.
    pub engine: Option<Engine>,
    /// What.
    pub text: String,
}

/// One point.
#[derive(Debug, Clone, PartialEq)]
pub struct ComparisonRow {
    /// The values of the swept keys, as the experiment has them.
    pub swept: Vec<String>,
    /// What a paper printed for it.
    pub published: Published,
    /// What each engine says, at most one summary per engine.
    pub summaries: Vec<PointSummary>,
    /// What to know of it.
    pub caveats: Vec<Caveat>,
}

/// A table with a row per point of a sweep and the engines side by side.
///
/// It compares transfer times, or goodputs where no transfer of any engine completed.
#[derive(Debug, Clone, PartialEq)]
pub struct ComparisonTable {
    /// Stands above it.
    pub title: String,
    /// The keys that differ between the points.
    pub swept_keys: Vec<String>,
    /// The points.
    pub rows: Vec<ComparisonRow>,
    /// How far engines agree, a sentence an entry.
    pub agreement: Vec<String>,
    /// How well runs in real time were done, a sentence an entry.
    pub remarks: Vec<String>,
}

/// Order of the columns.
pub(crate) const ENGINES: [Engine; 4] = [Engine::Predict, Engine::Simulate, Engine::Emulate, Engine::Measure];

/// How a column of an engine is headed.
pub(crate) const fn participle(engine: Engine) -> &'static str {
    match engine {
        Engine::Predict => "predicted",
        Engine::Simulate => "simulated",
        Engine::Emulate => "emulated",
        Engine::Measure => "measured",
    }
}

/// What engines are compared by in figures, and what it is called there.
#[derive(Clone, Copy)]
pub(crate) struct Compared {
    pub statistic: fn(&PointSummary) -> Option<Statistic>,
    pub published: fn(&Published) -> Option<f64>,
    /// Above a figure.
    pub title: &'static str,
    /// Below it.
    pub caption: &'static str,
    /// At its axis, in a sentence, and of many.
    pub axis: &'static str,
    pub name: &'static str,
    pub names: &'static str,
}

const BY_TIME: Compared = Compared {
    statistic: TRANSFER_TIME.statistic,
    published: TRANSFER_TIME.published,
    title: "Response time",
    caption: "Transfer time of completed transfers",
    axis: "Transfer time",
    name: "transfer time",
    names: "transfer times",
};

/// A stream ends when its last message is read: how long that takes says nothing of it.
const BY_LATENESS: Compared = Compared {
    statistic: MAX_LATENESS.statistic,
    published: MAX_LATENESS.published,
    title: "Lateness",
    caption: "From when a message was due until it had been read, at the most",
    axis: "Late at the most",
    name: "greatest lateness",
    names: "the greatest lateness",
};

/// A quantity of a summary, and of a paper.
struct Quantity {
    /// Lines of the header; `{unit}` is filled in.
    name: &'static str,
    published: fn(&Published) -> Option<f64>,
    statistic: fn(&PointSummary) -> Option<Statistic>,
    scale: fn(&[f64]) -> Scale,
}

const TRANSFER_TIME: Quantity = Quantity {
    name: "transfer\ntime, {unit}",
    published: |published| published.transfer_time_s,
    statistic: |summary| summary.statistics.transfer_time_s,
    scale: Scale::of_seconds,
};
const GOODPUT: Quantity = Quantity {
    name: "goodput,\n{unit}",
    published: |published| published.goodput_bit_per_s,
    statistic: |summary| summary.statistics.goodput_bit_per_s,
    scale: Scale::of_bit_per_s,
};
const MAX_LATENESS: Quantity = Quantity {
    name: "late at the\nmost, {unit}",
    published: |_| None,
    statistic: |summary| summary.statistics.max_lateness_s,
    scale: Scale::of_seconds,
};
/// What else is said of streams.
const OF_STREAMS: [Quantity; 7] = [
    Quantity {
        name: "late at the\nend, {unit}",
        published: |_| None,
        statistic: |summary| summary.statistics.final_lateness_s,
        scale: Scale::of_seconds,
    },
    Quantity {
        name: "answer,\nmedian, {unit}",
        published: |_| None,
        statistic: |summary| summary.statistics.median_response_s,
        scale: Scale::of_seconds,
    },
    Quantity {
        name: "answer, the\nlatest, {unit}",
        published: |_| None,
        statistic: |summary| summary.statistics.max_response_s,
        scale: Scale::of_seconds,
    },
    Quantity {
        name: "timely again\nafter, {unit}",
        published: |_| None,
        statistic: |summary| summary.statistics.time_to_timely_s,
        scale: Scale::of_seconds,
    },
    Quantity {
        name: "behind at the\nmost, {unit}",
        published: |_| None,
        statistic: |summary| summary.statistics.delayed_bytes,
        scale: Scale::of_bytes,
    },
    Quantity {
        name: "sender held\nup, {unit}",
        published: |_| None,
        statistic: |summary| summary.statistics.max_write_lag_s,
        scale: Scale::of_seconds,
    },
    Quantity {
        name: "messages\nleft out",
        published: |_| None,
        statistic: |summary| summary.statistics.expired_messages,
        scale: Scale::of_counts,
    },
];
const DROPS: Quantity = Quantity {
    name: "dropped",
    published: |_| None,
    statistic: |summary| summary.statistics.drops,
    scale: Scale::of_counts,
};
const RETRANSMISSIONS: Quantity = Quantity {
    name: "retrans-\nmissions",
    published: |published| published.retransmissions,
    statistic: |summary| summary.statistics.retransmissions,
    scale: Scale::of_counts,
};
/// What is said where flows share a path.
const OF_SHARES: [Quantity; 2] = [
    Quantity {
        name: "all flows'\ngoodput, {unit}",
        published: |_| None,
        // Of one flow it is the goodput.
        statistic: |summary| {
            summary.statistics.jain_index.and(summary.statistics.aggregate_goodput_bit_per_s)
        },
        scale: Scale::of_bit_per_s,
    },
    Quantity {
        name: "Jain's\nindex",
        published: |_| None,
        statistic: |summary| summary.statistics.jain_index,
        scale: Scale::of_shares,
    },
];
/// What is said where packets wait in long queues: what else shares the path feels it.
const OF_DELAYS: [Quantity; 2] = [
    Quantity {
        name: "RTT, 95th\npercentile, {unit}",
        published: |_| None,
        statistic: |summary| summary.statistics.p95_rtt_s,
        scale: Scale::of_seconds,
    },
    Quantity {
        name: "queueing, 95th\npercentile, {unit}",
        published: |_| None,
        statistic: |summary| summary.statistics.p95_queueing_delay_s,
        scale: Scale::of_seconds,
    },
];
/// They are where queues take this share of the RTT, of both the 95th percentile: longer than the path itself.
const NOTABLE_QUEUEING: f64 = 0.5;
const TIMEOUTS: Quantity = Quantity {
    name: "timeouts",
    published: |published| published.timeouts,
    statistic: |summary| summary.statistics.timeouts,
    scale: Scale::of_counts,
};

impl ComparisonTable {
    /// Engines side by side, a row for each point that has runs. These come point by point.
    pub fn from_runs(asked: &ExperimentSummary, runs: &[Run]) -> ComparisonTable {
        let mut of_engine: BTreeMap<(u64, Engine), Vec<String>> = BTreeMap::new();
        for run in runs {
            of_engine.entry((run.point, run.engine)).or_default().extend_from_slice(&run.provenance.caveats);
        }
        let summaries = PointSummary::of_runs(runs).into_iter().map(|summary| {
            let caveats = of_engine.remove(&(summary.point, summary.engine)).unwrap_or_default();
            (summary, caveats)
        });
        ComparisonTable {
            agreement: agreement_notes(asked, runs),
            remarks: grade_notes(runs),
            ..ComparisonTable::from_summaries(asked, summaries)
        }
    }

    /// The same of summaries alone, each with its caveats, in the order of points: a sweep's runs are more than fit into
    /// memory. It says nothing of how far engines agree.
    pub fn from_summaries(
        asked: &ExperimentSummary,
        summaries: impl IntoIterator<Item = (PointSummary, Vec<String>)>,
    ) -> ComparisonTable {
        let mut summaries = summaries.into_iter().peekable();
        let mut rows = Vec::new();
        for (number, point) in (0..).zip(&asked.points) {
            let mut of_point = Vec::new();
            let mut caveats: Vec<Caveat> =
                point.warnings.iter().map(|text| Caveat { engine: None, text: text.clone() }).collect();
            while let Some((summary, texts)) = summaries.next_if(|(summary, _)| summary.point == number) {
                let mut seen: BTreeSet<&str> = point.warnings.iter().map(String::as_str).collect();
                for text in texts.iter().filter(|text| seen.insert(text.as_str())) {
                    caveats.push(Caveat { engine: Some(summary.engine), text: text.clone() });
                }
                of_point.push(summary);
            }
            if of_point.is_empty() {
                continue;
            }
            rows.push(ComparisonRow {
                swept: point.swept.iter().map(|(_, value)| value.clone()).collect(),
                published: Published {
                    transfer_time_s: point.published.get("transfer_time").copied(),
                    goodput_bit_per_s: point.published.get("goodput").copied(),
                    retransmissions: point.published.get("retransmissions").copied(),
                    timeouts: point.published.get("timeouts").copied(),
                },
                summaries: of_point,
                caveats,
            });
        }
        let first = asked.points.first().map_or(&[] as &[_], |point| &point.swept);
        let swept_keys = first.iter().map(|(key, _)| key.clone()).collect();
        ComparisonTable {
            title: asked.title.clone(),
            swept_keys,
            rows,
            agreement: Vec::new(),
            remarks: Vec::new(),
        }
    }

    /// As a table, with its title.
    pub fn table(&self) -> Table {
        let heads: Vec<Column> =
            self.swept_keys.iter().enumerate().map(|(i, key)| self.swept(i, key)).collect();
        let streams = self.is_of_streams();
        let main = match streams {
            true if self.is_of_datagrams() => GOODPUT,
            true => MAX_LATENESS,
            false if self.values(&TRANSFER_TIME).is_empty() => GOODPUT,
            false => TRANSFER_TIME,
        };
        let mut compared = self.columns(&main, true);
        let differences = self.differences(&main);
        compared.extend(differences.iter().map(|(_, column)| column.clone()));
        let all_completed = self.all_completed();
        let mut groups = vec![compared];
        if self.is_of_datagrams() {
            groups.extend([DROPS, MAX_LATENESS].map(|quantity| self.columns(&quantity, false)));
        }
        if streams {
            groups.extend(OF_STREAMS.iter().map(|quantity| self.columns(quantity, false)));
        }
        groups.extend(OF_SHARES.iter().map(|quantity| self.columns(quantity, false)));
        groups.extend([self.columns(&RETRANSMISSIONS, false), self.columns(&TIMEOUTS, false)]);
        if self.has_notable_queueing() {
            groups.extend(OF_DELAYS.iter().map(|quantity| self.columns(quantity, false)));
        }
        groups.extend([
            self.shares("opened, %", |summary| summary.opened),
            self.shares("completed, %", |summary| summary.completed),
            if all_completed.is_some() { Vec::new() } else { self.outcomes() },
        ]);
        let mut notes: Vec<String> = differences.into_iter().map(|(note, _)| note).collect();
        notes.extend(all_completed);
        if main.name == TRANSFER_TIME.name && self.rows.iter().any(ComparisonRow::has_unfinished) {
            notes.push("Transfer times are of completed transfers only.".to_owned());
        }
        notes.extend(self.agreement.iter().chain(&self.remarks).cloned());
        Table { title: self.title.clone(), heads, groups, notes, caveats: self.caveats() }
    }

    fn is_of_streams(&self) -> bool {
        !self.values(&MAX_LATENESS).is_empty()
    }

    fn has_notable_queueing(&self) -> bool {
        self.rows.iter().flat_map(|row| &row.summaries).any(|summary| {
            let both = summary.statistics.p95_rtt_s.zip(summary.statistics.p95_queueing_delay_s);
            both.is_some_and(|(rtt, queueing)| queueing.mean >= NOTABLE_QUEUEING * rtt.mean)
        })
    }

    /// Whether its streams are of datagrams, of which nobody sends any again.
    fn is_of_datagrams(&self) -> bool {
        let asked = self.rows.iter().flat_map(|row| &row.summaries);
        let mut known = asked.filter(|summary| summary.engine != Engine::Predict).peekable();
        self.is_of_streams()
            && known.peek().is_some()
            && known.all(|summary| summary.statistics.retransmissions.is_none())
    }

    /// What its engines are compared by in figures.
    pub(crate) fn compared(&self) -> Compared {
        if self.is_of_streams() { BY_LATENESS } else { BY_TIME }
    }

    fn swept(&self, i: usize, key: &str) -> Column {
        Column::right(key, self.rows.iter().map(|row| row.swept.get(i).cloned()).collect())
    }

    /// Whether anything was published for any of the rows.
    pub(crate) fn has_published(&self) -> bool {
        self.rows.iter().any(|row| row.published != Published::default())
    }

    /// Every value of a quantity that is known, of engines and papers.
    fn values(&self, quantity: &Quantity) -> Vec<f64> {
        let of_row = |row: &ComparisonRow| {
            let means: Vec<f64> =
                row.summaries.iter().filter_map(quantity.statistic).map(|statistic| statistic.mean).collect();
            (quantity.published)(&row.published).into_iter().chain(means).collect::<Vec<_>>()
        };
        self.rows.iter().flat_map(of_row).collect()
    }

    /// Published, then one column per engine that knows the quantity, with its interval if it is asked for.
    fn columns(&self, quantity: &Quantity, with_interval: bool) -> Vec<Column> {
        let scale = (quantity.scale)(&self.values(quantity));
        let name = quantity.name.replace("{unit}", scale.unit);
        let published = self.rows.iter().map(|row| (quantity.published)(&row.published));
        // A paper prints whole counts: a simulated mean in tenths does not give it decimals.
        let printed = (quantity.scale)(&published.clone().flatten().collect::<Vec<_>>());
        let printed = if scale.unit.is_empty() { printed } else { scale };
        let mut columns = vec![Column::right(
            format!("{name}\npublished"),
            published.map(|value| value.map(|value| printed.text(value))).collect(),
        )];
        for engine in ENGINES {
            let statistics = self.rows.iter().map(|row| row.statistic(engine, quantity));
            let means = statistics.clone().map(|statistic| Some(scale.text(statistic?.mean))).collect();
            columns.push(Column::right(format!("{name}\n{}", participle(engine)), means));
            if with_interval {
                let intervals = statistics.map(|statistic| Some(scale.text(statistic?.ci95()?))).collect();
                columns.push(Column::right("± 95 %", intervals));
            }
        }
        columns.retain(Column::is_known);
        columns
    }

    /// Each engine against the next one that is there, with the note, by its number, on what is compared with what.
    fn differences(&self, quantity: &Quantity) -> Vec<(String, Column)> {
        let knows = |engine: &Engine| self.rows.iter().any(|row| row.statistic(*engine, quantity).is_some());
        let engines: Vec<Engine> = ENGINES.into_iter().filter(knows).collect();
        let column = |(i, pair): (usize, &[Engine])| {
            let difference = |row: &ComparisonRow| {
                let (a, b) = (row.statistic(pair[0], quantity)?.mean, row.statistic(pair[1], quantity)?.mean);
                // Adding zero turns what rounds to -0.0 into +0.0.
                (b != 0.0).then(|| format!("{:+.1}", ((a - b) / b * 1000.0).round() / 10.0 + 0.0))
            };
            let note = format!(
                "Difference: relative error of {} against {}.",
                participle(pair[0]),
                participle(pair[1])
            );
            (
                note,
                Column::right(
                    format!("differ-\nence, %\n[{}]", i + 1),
                    self.rows.iter().map(difference).collect(),
                ),
            )
        };
        engines.windows(2).enumerate().map(column).filter(|(_, column)| column.is_known()).collect()
    }

    /// Whose flows tell how they ended. A prediction's do only where no other engine's do.
    fn tellers(&self) -> Vec<Engine> {
        let has = |engine: Engine| self.rows.iter().any(|row| row.summary(engine).is_some());
        let others = ENGINES.into_iter().filter(|&engine| engine != Engine::Predict && has(engine));
        let engines: Vec<Engine> = others.collect();
        if engines.is_empty() { vec![Engine::Predict] } else { engines }
    }

    /// A note in place of a column that would say the same in every row: everything completed.
    fn all_completed(&self) -> Option<String> {
        let tellers = self.tellers();
        let summaries: Vec<&PointSummary> = self
            .rows
            .iter()
            .flat_map(|row| tellers.iter().filter_map(|&engine| row.summary(engine)))
            .collect();
        let completed = summaries.iter().all(|summary| summary.outcomes.keys().eq([&Outcome::Completed]));
        let flows: u64 = summaries.iter().map(|summary| summary.flows()).sum();
        let who = tellers.into_iter().map(participle).collect::<Vec<_>>().join(" and ");
        (completed && self.rows.len() > 1).then(|| format!("Outcome: all {flows} {who} transfers completed."))
    }

    /// How many came so far, in percent, with the 95 % confidence interval, one column per engine; none where all did, in
    /// a sweep at least: of a single point the outcomes say it.
    fn shares(&self, name: &str, of: fn(&PointSummary) -> Option<Share>) -> Vec<Column> {
        let known = |engine: Engine| self.rows.iter().map(move |row| of(row.summary(engine)?));
        let all = ENGINES.into_iter().flat_map(known).flatten().all(|share| share.share > 0.999);
        if all || self.rows.len() < 2 {
            return Vec::new();
        }
        let column = |engine| {
            let cells = known(engine).map(|share| share.map(share_text)).collect();
            Column::right(format!("{name}\n{}", participle(engine)), cells)
        };
        ENGINES.into_iter().map(column).filter(Column::is_known).collect()
    }

    /// How the flows ended.
    fn outcomes(&self) -> Vec<Column> {
        let engines = self.tellers();
        let column = |&engine: &Engine| {
            let cells = self.rows.iter().map(|row| row.summary(engine).map(outcome_text)).collect();
            Column::left(format!("outcome\n{}", participle(engine)), cells)
        };
        engines.iter().map(column).filter(Column::is_known).collect()
    }

    /// Every caveat once, with the points that it is about, unless these are all.
    fn caveats(&self) -> Vec<String> {
        let mut caveats: Vec<(&Caveat, Vec<usize>)> = Vec::new();
        for (i, row) in self.rows.iter().enumerate() {
            for caveat in &row.caveats {
                match caveats.iter_mut().find(|(known, _)| *known == caveat) {
                    Some((_, rows)) if rows.last() == Some(&i) => {}
                    Some((_, rows)) => rows.push(i),
                    None => caveats.push((caveat, vec![i])),
                }
            }
        }
        let text = |(caveat, rows): (&Caveat, Vec<usize>)| {
            let who = caveat.engine.map_or("", participle);
            let at = if rows.len() == self.rows.len() { String::new() } else { self.points(&rows) };
            let about = format!("{who}{at}");
            match about.trim_start().split_at_checked(1) {
                Some((first, rest)) => format!("{}{rest}: {}", first.to_uppercase(), caveat.text),
                None => caveat.text.clone(),
            }
        };
        caveats.into_iter().map(text).collect()
    }

    /// Some rows by their swept values: ` at path.loss 1 %, 5 % to 20 %`; of more than a few, how many.
    fn points(&self, rows: &[usize]) -> String {
        const NAMED: usize = 3;
        if rows.chunk_by(|a, b| a + 1 == *b).count() * self.swept_keys.len() > NAMED {
            return format!(" at {} of {} points", rows.len(), self.rows.len());
        }
        let name = |i: usize| self.rows[i].swept.join(", ");
        let separator = if self.swept_keys.len() > 1 { "; " } else { ", " };
        let ranges: Vec<String> = rows
            .chunk_by(|a, b| a + 1 == *b)
            .map(|range| match range {
                [one] => name(*one),
                [first, .., last] => format!("{} to {}", name(*first), name(*last)),
                [] => unreachable!("chunks are not empty"),
            })
            .collect();
        format!(" at {} {}", self.swept_keys.join(", "), ranges.join(separator))
    }
}

impl ComparisonRow {
    fn summary(&self, engine: Engine) -> Option<&PointSummary> {
        self.summaries.iter().find(|summary| summary.engine == engine)
    }

    /// Whether flows that did not complete stand beside some that did.
    fn has_unfinished(&self) -> bool {
        let mixed = |s: &PointSummary| s.statistics.transfer_time_s.is_some() && s.outcomes.len() > 1;
        self.summaries.iter().any(mixed)
    }

    fn statistic(&self, engine: Engine, quantity: &Quantity) -> Option<Statistic> {
        self.summary(engine).and_then(quantity.statistic)
    }
}

/// A share in percent, and its 95 % confidence interval.
pub(crate) fn share_text(share: Share) -> String {
    match share.interval() {
        Some((low, high)) => format!("{} ({}–{})", percent(share.share), percent(low), percent(high)),
        None => percent(share.share),
    }
}

/// A share in percent, with tenths where they say something.
pub(crate) fn percent(share: f64) -> String {
    let text = format!("{:.1}", share * 100.0);
    text.strip_suffix(".0").unwrap_or(&text).to_owned()
}

/// `completed 20/20`, or `completed 18, horizon 2`; of one flow, `completed`.
fn outcome_text(summary: &PointSummary) -> String {
    let only = summary.outcomes.len() == 1;
    let part = |(outcome, n): (&Outcome, &u64)| match n {
        1 if only => outcome.to_string(),
        n if only => format!("{outcome} {n}/{n}"),
        n => format!("{outcome} {n}"),
    };
    summary.outcomes.iter().map(part).collect::<Vec<_>>().join(", ")
}
