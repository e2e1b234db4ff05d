//! How well a run was done, and whether it counts.

use super::hosts::Hosts;
use crate::EngineError;
use farpath_emu::LoopReport;
use farpath_path::{Direction, DropCause, ElementCounters};
use farpath_run::{Grade, Lateness};
use farpath_traffic::counters::{Counters, ProcessorTimes};
use farpath_units::Duration;

/// What is counted from here on.
pub(super) struct Before {
    device_drops: u64,
    retransmissions: u64,
    processors: Option<ProcessorTimes>,
}

impl Before {
    /// The counters as they are before the run.
    pub fn of(hosts: &Hosts) -> Result<Before, EngineError> {
        Ok(Before {
            device_drops: device_drops(hosts)?,
            retransmissions: retransmissions(hosts)?,
            processors: ProcessorTimes::read().ok(),
        })
    }

    /// The grade of the run that has just ended.
    pub fn grade(self, hosts: &Hosts, report: &LoopReport, budget: Duration) -> Result<Grade, EngineError> {
        let [near, far] = Direction::BOTH.map(|direction| &report.lateness[direction]);
        let all = near.merged(far);
        let lateness = Lateness {
            p50_ns: all.percentile(50.0).as_nanos(),
            p99_ns: all.percentile(99.0).as_nanos(),
            max_ns: all.max().as_nanos(),
        };
        let both = |of: fn(&farpath_emu::PacketCounts) -> u64| {
            of(&report.packets.forward) + of(&report.packets.reverse)
        };
        let dropped = |cause: DropCause| -> u64 {
            report.elements.iter().map(|element: &ElementCounters| element.dropped.of(cause)).sum()
        };
        let mut grade = Grade {
            void: None,
            attempts: 1,
            lateness,
            realtime: report.realtime == farpath_emu::RealtimeGrant::Granted,
            device_drops: device_drops(hosts)? - self.device_drops,
            refused: both(|counts| counts.refused),
            malformed: report.malformed.forward.total() + report.malformed.reverse.total(),
            offered: both(|counts| counts.offered),
            lost: dropped(DropCause::Loss) + dropped(DropCause::BitErrors),
            overflowed: dropped(DropCause::QueueOverflow),
            kernel_retransmissions: retransmissions(hosts)? - self.retransmissions,
            steal: self.steal().unwrap_or(0.0),
        };
        grade.void = why_void(&grade, budget);
        Ok(grade)
    }

    fn steal(&self) -> Option<f64> {
        ProcessorTimes::read().ok()?.steal_share_since(self.processors.as_ref()?)
    }
}

/// Why a run does not count; `None` where it does.
fn why_void(grade: &Grade, budget: Duration) -> Option<String> {
    let p99 = Duration::from_nanos(grade.lateness.p99_ns);
    if grade.device_drops > 0 {
        // What the path does not know of is a loss that nobody asked for.
        return Some(format!("devices dropped {} packets outside of the path", grade.device_drops));
    }
    if grade.refused > 0 {
        return Some(format!("a host refused {} packets", grade.refused));
    }
    (p99 > budget).then(|| {
        format!(
            "one packet in a hundred was late by more than {p99}, and {budget} is allowed (`emulate.lateness`); \
             {:.0} % of the processors' time went to other machines",
            grade.steal * 100.0
        )
    })
}

fn device_drops(hosts: &Hosts) -> Result<u64, EngineError> {
    let mut drops = 0;
    for direction in Direction::BOTH {
        drops += hosts.of[direction].dropped()?.total();
    }
    Ok(drops)
}

/// Segments, SYNs included, that the kernels of both hosts have sent again.
fn retransmissions(hosts: &Hosts) -> Result<u64, EngineError> {
    let mut segments = 0;
    for direction in Direction::BOTH {
        let counters = hosts.of[direction].namespace().run(Counters::read)?.map_err(EngineError::Counters)?;
        segments += counters.get("TcpRetransSegs").unwrap_or(0).max(0) as u64;
    }
    Ok(segments)
}
