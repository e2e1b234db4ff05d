//! The two ends of a flow: this host's, which runs here, and what the peer says of its own.

use crate::end::{EndFacts, OF_SAMPLE, Outcome, Watched};
use crate::limits;
use crate::peer::{MeasureError, News};
use crate::said::Said;
use farpath_emu::{Clock, RealTime};
use farpath_experiment::FlowSpec;
use farpath_observe::series::Series;
use farpath_run::{Metric, SeriesRow};
use farpath_traffic::{BulkEnd, EndReport, Prepared, Role};
use farpath_units::{Bytes, Duration, Instant};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Rows of this host's end of one flow that are kept.
const MOST_ROWS: usize = 5_000_000;

/// One flow, as this host has a part in it.
pub struct Local {
    pub spec: FlowSpec,
    pub number: u32,
    /// As the control connection knows it.
    pub id: u32,
    pub role: Role,
    pub prepared: Prepared,
    pub size: Bytes,
}

/// One end of a flow that is over.
pub struct LocalEnd {
    pub facts: EndFacts,
    pub series: Series,
    pub cut: bool,
    /// Of a stream, when each message was whole.
    pub messages: Vec<Instant>,
}

/// What the peer has said of a flow.
#[derive(Default)]
pub struct PeerEnd {
    pub facts: Option<EndFacts>,
    pub rows: Vec<SeriesRow>,
    /// Rows that it has told, those that were left out here among them.
    told: usize,
    pub cut: bool,
    /// Of a stream, when each message was whole; by the peer's clock.
    pub messages: Vec<Instant>,
    /// Of a stream, how many there are.
    of_messages: usize,
    pub failed: Option<Said>,
}

impl PeerEnd {
    /// Of which nothing has been said.
    pub fn silent(spec: &FlowSpec) -> PeerEnd {
        let of_messages = spec.stream.map_or(0, |stream| stream.messages.count as usize);
        PeerEnd { of_messages, ..PeerEnd::default() }
    }
}

/// Takes note of what the peer says, and gives whether it was anything new. A flow that has failed there is over here.
///
/// # Errors
/// It says more than there can be.
pub fn hear(
    ids: &[u32],
    ends: &mut [PeerEnd],
    over: &[AtomicBool],
    news: News,
) -> Result<bool, &'static str> {
    let flow = match &news {
        News::Rows(rows) => Some(rows.flow),
        News::Messages(seen) => Some(seen.flow),
        News::Ended(ended) => Some(ended.flow),
        News::Failed(flow, _) => *flow,
        News::Datagrams(_) => None,
    };
    let Some(place) = flow.and_then(|flow| ids.iter().position(|id| *id == flow)) else { return Ok(false) };
    let room = limits::ROWS_FROM_FAR.saturating_sub(ends.iter().map(|end| end.rows.len()).sum());
    let end = &mut ends[place];
    match news {
        News::Rows(rows) => {
            end.told += rows.rows.len();
            // A responder of an earlier version tells a sample more.
            if end.told > limits::ROWS + OF_SAMPLE {
                return Err("it has more rows to tell than are kept there");
            }
            end.cut |= rows.rows.len() > room;
            let told = !rows.rows.is_empty();
            for (ns, metric, value) in rows.rows.into_iter().take(room) {
                // One that this version does not know of is not for it.
                let Some(metric) = Metric::from_name(&metric) else { continue };
                let time = Instant::from_nanos(ns);
                end.rows.push(SeriesRow { time, flow: place as u32, metric, value });
            }
            return Ok(told);
        }
        News::Messages(seen) => {
            if end.messages.len() + seen.at_ns.len() > end.of_messages {
                return Err("it has more messages to tell than the stream has");
            }
            end.messages.extend(seen.at_ns.iter().copied().map(Instant::from_nanos));
            return Ok(!seen.at_ns.is_empty());
        }
        News::Ended(ended) => {
            if ended.end.outcome != Outcome::Completed {
                over[place].store(true, Ordering::Relaxed);
            }
            end.cut |= ended.rows_cut;
            end.facts = Some(ended.end);
        }
        News::Failed(_, why) => {
            over[place].store(true, Ordering::Relaxed);
            end.failed = Some(why);
        }
        News::Datagrams(_) => {}
    }
    Ok(false)
}

/// A flow whose end at the peer waits.
pub struct Waiting {
    pub spec: FlowSpec,
    pub number: u32,
    pub id: u32,
    pub role: Role,
    pub end: BulkEnd,
    pub horizon: Duration,
}

impl Waiting {
    /// Its local end, for a run that begins at `zero`.
    pub fn starting(self, zero: Instant) -> Result<Local, MeasureError> {
        let Waiting { spec, number, id, role, mut end, horizon } = self;
        (end.start, end.deadline) = (zero + spec.start, zero + horizon);
        let prepared = Prepared::new(end).map_err(|error| MeasureError::Here(error.to_string()))?;
        Ok(Local { size: spec.size, spec, number, id, role, prepared })
    }
}

impl Local {
    /// Runs it on the calling thread.
    pub fn run(self, clock: Clock, over: &AtomicBool, moved: &AtomicU64) -> LocalEnd {
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
        LocalEnd { facts, series, cut, messages }
    }
}
