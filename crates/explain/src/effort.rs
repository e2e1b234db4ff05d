//! How much is simulated for one explanation.

use crate::measure::Bench;
use crate::path_summary::PathSummary;
use crate::remedies::SEARCH_SEEDS;
use crate::sensitivity::Known;
use farpath_experiment::Scenario;
use farpath_sim::EVENTS_PER_SEGMENT;
use farpath_units::Bytes;

/// Variants that are simulated for one explanation, about.
const VARIANTS: u64 = 50;
/// Sets of remedies that are tried beside them, about, by [`SEARCH_SEEDS`] at the most.
const SETS: u64 = 80;
const SEEDS: u64 = 20;
const FEWEST_SEEDS: u64 = 3;
/// Below it, an interval is wide.
pub(crate) const FEW_SEEDS: u64 = 10;

/// Events of one variant, beside those of what it carries: a few seconds of one core.
pub const VARIANT_EVENTS: u64 = 20_000_000;
/// Packets on the path of one variant at once: variants run on all cores.
pub const VARIANT_PACKETS: u64 = 1 << 20;
/// The same where it is stuck as it is.
const STUCK_PACKETS: u64 = 1 << 16;
/// Events of all variants.
pub const EXPLAIN_EVENTS: u64 = 500_000_000;
/// What a run has at the least, also when all variants have had theirs: it can carry its segments.
const LEAST_EVENTS: u64 = 100_000;
const LEAST_EVENTS_PER_SEGMENT: u64 = EVENTS_PER_SEGMENT / 10;

/// How much is simulated for one explanation, and how well the path is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Effort {
    /// Which group of flows is explained, from 0; `None` is the first.
    pub group: Option<usize>,
    /// Runs of each variant; `None` is twenty where anything is drawn, and one where nothing is.
    pub seeds: Option<u64>,
    /// Data segments over all variants and runs, about. What needs more gets fewer seeds, then a smaller file.
    pub segments: u64,
    /// Events of the simulator over all variants and runs. What needs more, as it is, gets fewer seeds and a smaller file; when they are
    /// used up, each run that is left has twice as many as the longest had as it is.
    pub events: u64,
    /// How well the path is known.
    pub known: Known,
}

impl Default for Effort {
    /// About ten seconds of one core in a release build, less where little is lost, and some minutes at the most.
    fn default() -> Effort {
        let (segments, events) = (40_000_000, EXPLAIN_EVENTS);
        Effort { group: None, seeds: None, segments, events, known: Known::default() }
    }
}

/// How often each variant is simulated, and how much of the largest flow, where the effort does not allow for all.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Plan {
    pub seeds: u64,
    pub size: Option<Bytes>,
}

impl Plan {
    pub fn new(scenario: &Scenario, random: bool, effort: Effort) -> Plan {
        let segment = PathSummary::new(scenario).segment().0;
        let work = segments(scenario, None);
        let each = (effort.segments / VARIANTS).max(1);
        let seeds = match effort.seeds {
            Some(seeds) => seeds.max(1),
            None if random => (each / work).clamp(FEWEST_SEEDS, SEEDS),
            None => 1,
        };
        let affordable = each / seeds.max(1);
        if work <= affordable {
            return Plan { seeds, size: None };
        }
        let largest = scenario.flows.iter().map(|flow| flow.size.0).max().unwrap_or(0);
        let whole = u128::from(largest.div_ceil(segment));
        let segments = (whole * u128::from(affordable) / u128::from(work)) as u64;
        Plan { seeds, size: Some(Bytes(segments.max(1) * segment)) }
    }

    /// A smaller one, where as many variants as `bench` has had runs of the scenario as it is would take more events than there are. What is stuck takes as
    /// many in a smaller file.
    pub fn after(self, scenario: &Scenario, random: bool, effort: Effort, bench: &Bench<'_>) -> Option<Plan> {
        let needed = (bench.spent() / self.seeds).saturating_mul(runs(self.seeds));
        if needed <= effort.events || bench.is_stuck() {
            return None;
        }
        let had = u128::from(segments(scenario, self.size)) * u128::from(self.seeds * VARIANTS);
        let segments = (had * u128::from(effort.events) / u128::from(needed)) as u64;
        let smaller = Plan::new(scenario, random, Effort { segments, ..effort });
        (smaller != self).then_some(smaller)
    }
}

/// Runs of an explanation, about.
fn runs(seeds: u64) -> u64 {
    VARIANTS * seeds + SETS * seeds.min(SEARCH_SEEDS as u64)
}

/// Data segments of all flows, of this size at the most.
fn segments(scenario: &Scenario, size: Option<Bytes>) -> u64 {
    let segment = PathSummary::new(scenario).segment().0;
    let of =
        |flow: &farpath_experiment::FlowSpec| flow.size.min(size.unwrap_or(flow.size)).0.div_ceil(segment);
    scenario.flows.iter().map(of).fold(0, u64::saturating_add).max(1)
}

/// What is left of the events of an explanation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Allowance {
    all: u64,
    pub spent: u64,
    /// Of the longest run as it is, and whether all of these were stuck; nothing before them.
    longest: Option<u64>,
    pub stuck: bool,
    /// Runs of a variant, at least one.
    seeds: u64,
    /// Whether a run had less.
    pub cut_short: bool,
}

impl Allowance {
    pub fn new(all: u64, spent: u64, seeds: u64) -> Allowance {
        Allowance { all, spent, longest: None, stuck: false, seeds: seeds.max(1), cut_short: false }
    }

    /// The runs as it is are over.
    pub fn begin(&mut self, longest: u64, stuck: bool) {
        (self.longest, self.stuck) = (Some(longest), stuck);
    }

    /// What a run has less than [`VARIANT_EVENTS`], beside what it carries.
    pub fn short(&self) -> Option<u64> {
        match self.longest {
            Some(_) if self.stuck => Some(self.all / runs(self.seeds)),
            Some(longest) if self.spent > self.all => Some(longest.saturating_mul(2)),
            _ => None,
        }
    }

    /// The scenario with a budget for one of many variants, where it has none of its own: a simulation alone may take ten times as
    /// much.
    pub fn bound(&self, scenario: &Scenario) -> Scenario {
        let mut scenario = scenario.clone();
        let mss = scenario.sender.config.mss.min(scenario.receiver.config.mss).0.max(1);
        let segments = scenario.flows.iter().map(|flow| flow.size.0 / mss).fold(0, u64::saturating_add);
        let with = |events: u64, each: u64| events.saturating_add(segments.saturating_mul(each));
        let most = with(VARIANT_EVENTS, EVENTS_PER_SEGMENT);
        let least = with(LEAST_EVENTS, LEAST_EVENTS_PER_SEGMENT);
        let events = self.short().map_or(most, |short| short.clamp(least, most));
        scenario.budget.events.get_or_insert(events);
        scenario.budget.packets.get_or_insert(if self.stuck { STUCK_PACKETS } else { VARIANT_PACKETS });
        scenario
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scenario(budget: &str) -> Scenario {
        let file = format!(
            "title = \"T\"\n[[path]]\nelement = \"duplicate\"\nshare = \"50 %\"\n[sender]\nstack = \"rfc-5681\"\n\
             [receiver]\nstack = \"rfc-5681\"\n[transfer]\nsize = \"14600 B\"\n{budget}"
        );
        let experiment = farpath_experiment::Experiment::parse(&file, "t.toml", &[]).expect("it is one");
        experiment.point(0).scenario.clone()
    }

    fn budget(allowance: &Allowance, file: &str) -> (Option<u64>, Option<u64>) {
        let budget = allowance.bound(&scenario(file)).budget;
        (budget.events, budget.packets)
    }

    #[test]
    fn a_variant_has_a_budget_of_its_own_unless_the_experiment_has_one() {
        let fresh = Allowance::new(EXPLAIN_EVENTS, 0, 20);
        let most = VARIANT_EVENTS + 10 * EVENTS_PER_SEGMENT;
        assert_eq!(budget(&fresh, ""), (Some(most), Some(VARIANT_PACKETS)));
        assert_eq!(budget(&fresh, "[budget]\nevents = 10\npackets = 20\n"), (Some(10), Some(20)));
    }

    #[test]
    fn when_all_events_are_spent_a_run_has_twice_what_it_takes_as_it_is() {
        let mut allowance = Allowance::new(1000, 0, 1);
        allowance.begin(300_000, false);
        let most = VARIANT_EVENTS + 10 * EVENTS_PER_SEGMENT;
        assert_eq!((allowance.short(), budget(&allowance, "").0), (None, Some(most)));
        allowance.spent = 1001;
        assert_eq!((allowance.short(), budget(&allowance, "").0), (Some(600_000), Some(600_000)));
        // Never less than its segments need.
        allowance.begin(10, false);
        assert_eq!(budget(&allowance, "").0, Some(LEAST_EVENTS + 10 * LEAST_EVENTS_PER_SEGMENT));
    }

    #[test]
    fn where_it_is_stuck_as_it_is_each_variant_has_its_share_from_the_first() {
        let mut allowance = Allowance::new(EXPLAIN_EVENTS, 0, 4);
        allowance.begin(VARIANT_EVENTS, true);
        assert_eq!(budget(&allowance, ""), (Some(EXPLAIN_EVENTS / (50 * 4 + 80 * 3)), Some(STUCK_PACKETS)));
    }
}
