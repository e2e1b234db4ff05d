//! What a router has counted, as Prometheus reads it (text exposition format 0.0.4).

use farpath_elements::FlowRouter;
use farpath_emu::{LoopReport, WirePacket};
use farpath_path::{Direction, DropCause, ElementCounters};
use farpath_tia1039::router::{Port, RouterCounters};
use std::fmt::Write;

type OfPort = (&'static str, &'static str, fn(&Port) -> u64);
const GAUGES: [OfPort; 3] = [
    ("flows", "Flows whose state is kept.", |port| port.flows() as u64),
    ("committed_bits_per_second", "What all flows together may send now.", Port::committed),
    ("capacity_bits_per_second", "What may be granted at most.", Port::capacity),
];

type OfDecisions = (&'static str, fn(&RouterCounters) -> u64);
const DECISIONS: [OfDecisions; 15] = [
    ("requests", |decided| decided.requests),
    ("lowered", |decided| decided.lowered),
    ("admitted", |decided| decided.admitted),
    ("refused", |decided| decided.refused),
    ("preempted", |decided| decided.preempted),
    ("responses", |decided| decided.responses),
    ("above_grant", |decided| decided.above_grant),
    ("unknown", |decided| decided.unknown),
    ("pushed", |decided| decided.pushed),
    ("missed", |decided| decided.missed),
    ("closed", |decided| decided.closed),
    ("expired", |decided| decided.expired),
    ("moved", |decided| decided.moved),
    ("policed", |decided| decided.policed),
    ("full", |decided| decided.full),
];

type OfElement = (&'static str, &'static str, &'static str, fn(&ElementCounters) -> u64);
const COUNTED: [OfElement; 4] = [
    ("packets_offered_total", "counter", "Packets that came in.", |one| one.offered),
    ("packets_sent_total", "counter", "Packets that went on, those of the router's own included.", |one| {
        one.delivered
    }),
    ("bytes_sent_total", "counter", "Bytes of these, framing included.", |one| {
        one.link.map_or(0, |link| link.bytes_sent.0)
    }),
    ("backlog_max_bytes", "gauge", "The most that ever waited.", |one| {
        one.link.map_or(0, |link| link.max_backlog.0)
    }),
];

/// The page.
pub fn text(report: &LoopReport, router: &FlowRouter<WirePacket>) -> String {
    let mut text = String::new();
    for (name, help, value) in GAUGES {
        head(&mut text, name, "gauge", help);
        for direction in Direction::BOTH {
            line(&mut text, name, direction, None, value(router.port(direction)));
        }
    }
    let name = "decisions_total";
    head(&mut text, name, "counter", "What was decided, by kind.");
    for direction in Direction::BOTH {
        let decided = router.port(direction).counters();
        for (kind, value) in DECISIONS {
            line(&mut text, name, direction, Some(("kind", kind)), value(&decided));
        }
    }
    let of = |direction: Direction| report.elements.iter().filter(move |one| one.direction == direction);
    for (name, kind, help, value) in COUNTED {
        head(&mut text, name, kind, help);
        for direction in Direction::BOTH {
            of(direction).for_each(|one| line(&mut text, name, direction, None, value(one)));
        }
    }
    let name = "packets_dropped_total";
    head(&mut text, name, "counter", "Packets that ended here, by cause.");
    for direction in Direction::BOTH {
        for one in of(direction) {
            for cause in [DropCause::QueueOverflow, DropCause::Policing] {
                line(&mut text, name, direction, Some(("cause", cause.name())), one.dropped.count_of(cause));
            }
        }
    }
    let name = "packets_refused_total";
    head(&mut text, name, "counter", "Packets that the device they were to leave by did not take.");
    for direction in Direction::BOTH {
        line(&mut text, name, direction, None, report.packets[direction].refused);
    }
    text
}

fn head(text: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(text, "# HELP farpath_router_{name} {help}\n# TYPE farpath_router_{name} {kind}");
}

fn line(text: &mut String, name: &str, direction: Direction, label: Option<(&str, &str)>, value: u64) {
    let direction = direction.name();
    let label = label.map_or_else(String::new, |(key, value)| format!(",{key}=\"{value}\""));
    let _ = writeln!(text, "farpath_router_{name}{{direction=\"{direction}\"{label}}} {value}");
}
