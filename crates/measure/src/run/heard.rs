//! What a peer says of a run, without the run: for fuzzers.

use super::ends::{LocalEnd, PeerEnd, hear};
use super::stack::Ends;
use super::{place, row, stream};
use crate::end::EndFacts;
use crate::peer::{News, Offsets};
use crate::protocol::FromResponder;
use crate::said::Said;
use farpath_experiment::{FlowSpec, Scenario};
use farpath_observe::series::Series;
use farpath_run::StreamFigures;
use farpath_traffic::Role;
use farpath_units::Instant;
use std::sync::atomic::AtomicBool;

/// What has been said of the flows of a run.
pub struct Heard {
    specs: Vec<FlowSpec>,
    stacks: Ends,
    ids: Vec<u32>,
    ends: Vec<PeerEnd>,
    over: Vec<AtomicBool>,
}

impl Heard {
    /// Nothing yet.
    pub fn nothing_yet(scenario: &Scenario) -> Heard {
        let specs = scenario.flows.clone();
        Heard {
            stacks: Ends::from_scenario(scenario, place(scenario)),
            ids: (0..specs.len() as u32).collect(),
            ends: specs.iter().map(PeerEnd::silent).collect(),
            over: specs.iter().map(|_| AtomicBool::new(false)).collect(),
            specs,
        }
    }

    /// Takes note of it.
    pub fn hear(&mut self, said: FromResponder) -> Result<bool, &'static str> {
        let news = match said {
            FromResponder::Rows(rows) => News::Rows(rows),
            FromResponder::Messages(seen) => News::Messages(seen),
            FromResponder::Ended(ended) => News::Ended(ended),
            FromResponder::Refused(refused) => News::Failed(refused.flow, refused.message),
            _ => return Ok(false),
        };
        hear(&self.ids, &mut self.ends, &self.over, news)
    }

    /// What its kernel is set to.
    pub fn kernel(&self, values: &[(String, Option<Said>)]) {
        let _ = self.stacks.peer(values);
    }

    /// The rows of all flows, in which this host had that role.
    pub fn rows(&self, role: Role, local: &EndFacts, offsets: &Offsets) {
        let zero = Instant::from_nanos(1_000_000);
        for ((number, spec), peer) in (0..).zip(&self.specs).zip(&self.ends) {
            let flow = (number, role, spec.clone());
            let row = row::row(&flow, local, peer.facts.as_ref(), peer.failed.clone(), offsets, zero);
            assert!(!row.detail.contains(char::is_control), "{row:?}");
            let Some(of) = spec.stream else { continue };
            let local = LocalEnd {
                facts: local.clone(),
                series: Series::new(number),
                cut: false,
                messages: (0..20).map(|n| Instant::from_nanos(n * 1_000_000)).collect(),
            };
            let rows = stream::rows((number, role), &of.messages, &local, peer, offsets, zero);
            let _ = StreamFigures::from_rows(&rows, &of.messages, of.playout);
        }
    }
}
