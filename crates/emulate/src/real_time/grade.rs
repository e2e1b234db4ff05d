//! How well a run was done, and whether it counts.

use super::dropped_outside;
use crate::EmulateError;
use farpath_emu::{Host, LoopReport};
use farpath_experiment::{Scenario, lateness_budget};
use farpath_path::{Direction, DropCause, ElementCounters, PerDirection};
use farpath_run::{FlowRow, Grade, Lateness};
use farpath_traffic::counters::{Counters, ProcessorTimes};
use farpath_units::Duration;

/// What is counted from here on.
pub(super) struct Before {
    device_drops: u64,
    counters: PerDirection<Counters>,
    processors: Option<ProcessorTimes>,
}

impl Before {
    /// The counters as they are before the run.
    pub fn count_from_here(hosts: &PerDirection<Host>) -> Result<Before, EmulateError> {
        Ok(Before {
            device_drops: dropped_outside(hosts)?,
            counters: counters(hosts)?,
            processors: ProcessorTimes::read().ok(),
        })
    }

    /// What the kernels have counted since then.
    pub fn counted(&self, hosts: &PerDirection<Host>) -> Result<Counted, EmulateError> {
        let now = counters(hosts)?;
        Ok(Counted(PerDirection::from_fn(|way| now[way].since(&self.counters[way]))))
    }

    /// The grade of the run that has just ended.
    pub fn grade(
        &self,
        hosts: &PerDirection<Host>,
        report: &LoopReport,
        counted: &Counted,
        processor_wait: Option<f64>,
        scenario: &Scenario,
    ) -> Result<Grade, EmulateError> {
        let [near, far] = Direction::BOTH.map(|direction| &report.lateness[direction]);
        let all = near.merged(far);
        let lateness = Lateness {
            p50_ns: all.percentile(50).as_nanos(),
            p99_ns: all.percentile(99).as_nanos(),
            max_ns: all.max().as_nanos(),
        };
        let both = |of: fn(&farpath_emu::PacketCounts) -> u64| {
            of(&report.packets.forward) + of(&report.packets.reverse)
        };
        let dropped = |cause: DropCause| -> u64 {
            report.elements.iter().map(|element: &ElementCounters| element.dropped.count_of(cause)).sum()
        };
        let mut grade = Grade {
            void: None,
            attempts: 1,
            lateness,
            realtime: report.realtime == farpath_emu::RealtimeGrant::Granted,
            device_drops: dropped_outside(hosts)? - self.device_drops,
            refused: both(|counts| counts.refused),
            malformed: report.malformed.forward.total() + report.malformed.reverse.total(),
            offered: both(|counts| counts.offered),
            lost: LOST.into_iter().map(dropped).sum(),
            overflowed: dropped(DropCause::QueueOverflow),
            kernel_retransmissions: counted.retransmissions(),
            steal: self.steal().unwrap_or(0.0),
            processor_wait,
        };
        grade.void = why_void(&grade, scenario);
        Ok(grade)
    }

    fn steal(&self) -> Option<f64> {
        ProcessorTimes::read().ok()?.steal_share_since(self.processors.as_ref()?)
    }
}

/// What the kernel of each host has counted of all its connections during a run.
pub(super) struct Counted(PerDirection<Counters>);

impl Counted {
    /// Enters what the data sender's has counted into the row of the only flow.
    pub fn enter(&self, data: Direction, row: &mut FlowRow) {
        let sum = |names: &[&str]| {
            let values: Vec<i64> = names.iter().filter_map(|name| self.0[data].get(name)).collect();
            (!values.is_empty()).then(|| values.iter().sum::<i64>() as f64)
        };
        row.fast_retransmits = sum(&["TcpExtTCPSackRecovery", "TcpExtTCPRenoRecovery"]);
        row.loss_probes = sum(&["TcpExtTCPLossProbes"]);
        row.undos =
            sum(&["TcpExtTCPFullUndo", "TcpExtTCPPartialUndo", "TcpExtTCPDSACKUndo", "TcpExtTCPLossUndo"]);
    }

    /// Segments, SYNs included, that both have sent again.
    fn retransmissions(&self) -> u64 {
        let of = |way: Direction| self.0[way].get("TcpRetransSegs").unwrap_or(0).max(0) as u64;
        Direction::BOTH.into_iter().map(of).sum()
    }
}

/// Drops that no queue's length is the reason of.
const LOST: [DropCause; 5] =
    [DropCause::Loss, DropCause::BitErrors, DropCause::LinkRetries, DropCause::Mtu, DropCause::Stalled];

fn counters(hosts: &PerDirection<Host>) -> Result<PerDirection<Counters>, EmulateError> {
    let of = |way: Direction| -> Result<Counters, EmulateError> {
        hosts[way].namespace().run(Counters::read)?.map_err(EmulateError::Counters)
    };
    Ok(PerDirection { forward: of(Direction::Forward)?, reverse: of(Direction::Reverse)? })
}

/// Why a run does not count; `None` where it does.
fn why_void(grade: &Grade, scenario: &Scenario) -> Option<String> {
    let budget = lateness_budget(scenario);
    let p99 = Duration::from_nanos(grade.lateness.p99_ns);
    if grade.device_drops > 0 {
        // What the path does not know of is a loss that nobody asked for.
        return Some(format!("devices dropped {} packets outside of the path", grade.device_drops));
    }
    if grade.refused > 0 {
        return Some(format!("a host refused {} packets", grade.refused));
    }
    if p99 > budget {
        // To the microsecond: a clock does not tell more.
        let late = Duration::from_micros(p99.as_nanos() / 1000);
        let mut why = format!(
            "one packet in a hundred was late by more than {late}, and {budget} is allowed (`emulate.lateness`)"
        );
        if !grade.realtime {
            why += "; whatever else ran went first, as there was no real-time priority: see `farpath doctor`";
        }
        if grade.steal >= 0.01 {
            why += &format!("; {:.0} % of the processors' time went to other machines", grade.steal * 100.0);
        }
        return Some(why);
    }
    let most = scenario.emulate.processor_wait;
    if let Some(wait) = grade.processor_wait.filter(|wait| *wait > most.fraction()) {
        // The path was in time; what it was given to carry was not.
        return Some(format!(
            "a program waited {:.0} % of its time for a processor, and {most} is allowed (`emulate.processor_wait`)",
            wait * 100.0
        ));
    }
    None
}
