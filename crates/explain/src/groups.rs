//! Groups of flows that differ in nothing but when they start: never is a mean taken of unlike ones.

use farpath_experiment::{FlowSpec, Scenario};
use farpath_tcp::Config;
use farpath_units::{Bytes, Duration};

/// As many are told apart; flows of further kinds are one group.
const MOST: usize = 16;

/// Which flow of a scenario is in which group, the explained one being group 0.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Groups {
    /// The group of each flow.
    pub of: Vec<usize>,
    /// How many there are.
    pub count: usize,
}

impl Groups {
    pub fn new(scenario: &Scenario) -> Groups {
        let mut kinds: Vec<FlowSpec> = Vec::new();
        let of = scenario
            .flows
            .iter()
            .map(|flow| {
                let kind = FlowSpec { start: Duration::ZERO, ..flow.clone() };
                if let Some(known) = kinds.iter().position(|known| *known == kind) {
                    return known;
                }
                if kinds.len() < MOST {
                    kinds.push(kind);
                }
                kinds.len() - 1
            })
            .collect();
        Groups { of, count: kinds.len() }
    }

    /// The first flow of each, in their order.
    pub fn firsts(&self) -> Vec<usize> {
        (0..self.count).filter_map(|group| self.of.iter().position(|of| *of == group)).collect()
    }

    pub fn size(&self, group: usize) -> usize {
        self.of.iter().filter(|of| **of == group).count()
    }
}

/// `scenario` with the flows of this group in front of the others, as what an explanation is about stands first.
pub(crate) fn in_front(scenario: &Scenario, group: usize) -> Scenario {
    let groups = Groups::new(scenario);
    let mut moved = scenario.clone();
    if group == 0 {
        return moved;
    }
    let pick = |wanted: bool| {
        let all = scenario.flows.iter().zip(&groups.of);
        all.filter(move |(_, of)| (**of == group) == wanted).map(|(flow, _)| flow.clone())
    };
    moved.flows = pick(true).chain(pick(false)).collect();
    moved
}

/// The flows of the other groups, and the pace that each of them had: it keeps that where a bound of the path is lifted, so
/// that what is seen is what the bound costs the explained group, and not what a rival does with the room.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rivals {
    /// Of each flow, in bytes per second; `None` of those that are explained.
    pub paces: Vec<Option<u64>>,
}

impl Rivals {
    pub fn new(groups: &Groups, rates_bit_per_s: &[f64]) -> Rivals {
        let pace =
            |group: &usize| (*group > 0).then(|| ((rates_bit_per_s[*group] / 8.0).ceil() as u64).max(1));
        Rivals { paces: groups.of.iter().map(pace).collect() }
    }

    pub fn any(&self) -> bool {
        self.paces.iter().any(Option::is_some)
    }

    /// The flows that are not among them.
    pub fn explained<'a>(&'a self, scenario: &'a mut Scenario) -> impl Iterator<Item = &'a mut FlowSpec> {
        let rival = |number: usize| self.paces.get(number).is_some_and(Option::is_some);
        scenario.flows.iter_mut().enumerate().filter(move |(number, _)| !rival(*number)).map(|(_, flow)| flow)
    }

    /// Holds each of them to the pace that it had.
    pub fn hold(&self, scenario: &mut Scenario) {
        let common = scenario.receiver.clone();
        for (flow, pace) in scenario.flows.iter_mut().zip(&self.paces) {
            let Some(pace) = pace else { continue };
            let receiver = flow.receiver.get_or_insert_with(|| Box::new(common.clone()));
            let read_rate = &mut receiver.config.receive.read_rate;
            *read_rate = Some(read_rate.map_or(*pace, |was| was.min(*pace)));
        }
    }

    /// Puts these parameters on the flows that are explained, and on no others.
    pub fn give(&self, scenario: &mut Scenario, sender: &Config, receiver: &Config) {
        let (common_sender, common_receiver) = (scenario.sender.clone(), scenario.receiver.clone());
        for (flow, pace) in scenario.flows.iter_mut().zip(&self.paces) {
            if pace.is_none() {
                flow.sender.get_or_insert_with(|| Box::new(common_sender.clone())).config = sender.clone();
                flow.receiver.get_or_insert_with(|| Box::new(common_receiver.clone())).config =
                    receiver.clone();
            }
        }
    }
}

/// What a group is, for a row of a table.
pub(crate) fn label(flow: &FlowSpec, count: usize, size: Bytes) -> String {
    let way = match flow.direction {
        farpath_path::Direction::Forward => "forward",
        farpath_path::Direction::Reverse => "reverse",
    };
    format!("{count} × {size} {way}")
}
