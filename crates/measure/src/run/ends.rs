//! The two ends of a flow: this host's, which runs here, and what the far host says of its own.

use crate::end::{EndFacts, Outcome, Watched};
use crate::far::{MeasureError, News};
use farpath_emu::{Clock, RealTime};
use farpath_engine::Series;
use farpath_experiment::FlowSpec;
use farpath_run::{Metric, SeriesRow};
use farpath_traffic::{BulkEnd, EndReport, Prepared, Role};
use farpath_units::{Bytes, Duration, Instant};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Rows of one flow that are kept.
const MOST_ROWS: usize = 5_000_000;
/// Messages of one flow that are kept: as many as an experiment's stream may have.
const MOST_MESSAGES: usize = 10_000_000;

/// One flow, as this host has a part in it.
pub struct Near {
    pub spec: FlowSpec,
    pub number: u32,
    /// As the control connection knows it.
    pub id: u32,
    pub role: Role,
    pub prepared: Prepared,
    pub size: Bytes,
}

/// One end of a flow that is over.
pub struct NearEnd {
    pub facts: EndFacts,
    pub series: Series,
    pub cut: bool,
    /// Of a stream, when each message was whole.
    pub messages: Vec<Instant>,
}

/// What the far host has said of a flow.
#[derive(Default)]
pub struct FarEnd {
    pub facts: Option<EndFacts>,
    pub rows: Vec<SeriesRow>,
    pub cut: bool,
    /// Of a stream, when each message was whole; by the far host's clock.
    pub messages: Vec<Instant>,
    pub failed: Option<String>,
}

/// Takes note of what the far host says. A flow that has failed there is over here.
pub fn hear(ids: &[u32], ends: &mut [FarEnd], over: &[AtomicBool], news: News) {
    let place = |flow: u32| ids.iter().position(|id| *id == flow);
    match news {
        News::Rows(rows) => {
            let Some(place) = place(rows.flow) else { return };
            let end = &mut ends[place];
            for (ns, metric, value) in rows.rows {
                // One that this version does not know of is not for it.
                let Some(metric) = Metric::from_name(&metric) else { continue };
                if end.rows.len() < MOST_ROWS {
                    let time = Instant::from_nanos(ns);
                    end.rows.push(SeriesRow { time, flow: place as u32, metric, value });
                }
            }
        }
        News::Messages(seen) => {
            let Some(place) = place(seen.flow) else { return };
            let messages = &mut ends[place].messages;
            let room = MOST_MESSAGES.saturating_sub(messages.len());
            messages.extend(seen.at_ns.into_iter().take(room).map(Instant::from_nanos));
        }
        News::Ended(ended) => {
            let Some(place) = place(ended.flow) else { return };
            if ended.end.outcome != Outcome::Completed {
                over[place].store(true, Ordering::Relaxed);
            }
            (ends[place].cut, ends[place].facts) = (ended.rows_cut, Some(ended.end));
        }
        News::Failed(Some(flow), why) => {
            let Some(place) = place(flow) else { return };
            over[place].store(true, Ordering::Relaxed);
            ends[place].failed = Some(why);
        }
        News::Failed(None, _) | News::Datagrams(_) => {}
    }
}

/// A flow whose far end waits.
pub struct Waiting {
    pub spec: FlowSpec,
    pub number: u32,
    pub id: u32,
    pub role: Role,
    pub end: BulkEnd,
    pub horizon: Duration,
}

impl Waiting {
    /// Its near end, for a run that begins at `zero`.
    pub fn starting(self, zero: Instant) -> Result<Near, MeasureError> {
        let Waiting { spec, number, id, role, mut end, horizon } = self;
        (end.start, end.deadline) = (zero + spec.start, zero + horizon);
        let prepared = Prepared::new(end).map_err(|error| MeasureError::Here(error.to_string()))?;
        Ok(Near { size: spec.size, spec, number, id, role, prepared })
    }
}

impl Near {
    /// Runs it on the calling thread.
    pub fn run(self, clock: Clock, over: &AtomicBool, moved: &AtomicU64) -> NearEnd {
        // Messages are written when they are due, whatever else runs. Not granted, they are as late as other programs
        // make them.
        let _ahead = self.spec.stream.map(|_| RealTime::of_program());
        let mut watched = Watched::new(self.number, self.role, self.size, true, true, MOST_ROWS);
        let mut before = 0;
        let report: EndReport = self.prepared.run(clock.epoch(), over, &mut |sample| {
            moved.fetch_add(
                sample.bytes.0 - std::mem::replace(&mut before, sample.bytes.0),
                Ordering::Relaxed,
            );
            watched.note(sample);
        });
        let cut = watched.cut;
        let (facts, series) = watched.finish(&report);
        let messages = report.messages.map(|stamps| stamps.at).unwrap_or_default();
        NearEnd { facts, series, cut, messages }
    }
}
