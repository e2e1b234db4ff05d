//! `make diagnose-matrix`: what `farpath diagnose` says of simulated transfers, beside why their senders did not send.
//!
//! Each transfer is simulated once. An observer notes what limited the sender at each instant; its capture is read as it was made at the sender, at
//! the receiver and between, whole and with defects. Both are compared by time, and each connection counts alike, however long it took.
//!
//! With the name of a limit as an argument, the cases where most of it is said otherwise are listed.

use farpath_bench::transfers::{SCENARIOS, Seen, Transfer, transfer};
use farpath_diagnose::{Diagnosis, Limit};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::{env, fs};

const CONTROLS: [&str; 5] = ["reno", "cubic", "bbr", "bbr3", "explicit rate"];
/// Round trips, ms.
const DELAYS: [u64; 9] = [2, 7, 10, 50, 110, 300, 1300, 2500, 45_000];
/// Thresholds may be set by these controllers and delays; what is reported is of those that have neither.
const KNOWN_CONTROLS: [&str; 2] = ["reno", "bbr"];
const KNOWN_DELAYS: [u64; 6] = [2, 10, 50, 300, 1300, 45_000];
/// Known by its kind, and held out by its delays alone.
const KNOWN_KIND: &str = "explicit rate";

/// Whether thresholds may be set by it.
fn may_be_looked_at(control: &str, delay: u64) -> bool {
    (KNOWN_CONTROLS.contains(&control) || control == KNOWN_KIND) && KNOWN_DELAYS.contains(&delay)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Sender,
    Receiver,
    Middle,
}

const PLACES: [(Place, &str); 3] =
    [(Place::Sender, "sender"), (Place::Receiver, "receiver"), (Place::Middle, "middle")];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Defect {
    Clean,
    Offload,
    Snaplen96,
    Dropped,
    NoSyn,
}

const DEFECTS: [(Defect, &str); 5] = [
    (Defect::Clean, "clean"),
    (Defect::Offload, "offload"),
    (Defect::Snaplen96, "96 B of each packet"),
    (Defect::Dropped, "1 % not captured"),
    (Defect::NoSyn, "no handshake"),
];

/// What passes at a place, and how much later it is there than at the sender.
fn placed(transfer: &Transfer, place: Place, snaplen: usize) -> (Vec<Seen>, u64) {
    let [sender, receiver] = &transfer.seen[snaplen];
    let way = transfer.rtt_ms * 500_000;
    match place {
        Place::Sender => (sender.clone(), 0),
        Place::Receiver => (receiver.clone(), way),
        // Behind the bottleneck: half of the way to the receiver.
        Place::Middle => {
            let shift = |seen: &Seen| {
                let data = seen.packet.source == transfer.data_end;
                Seen { at: if data { seen.at - way / 2 } else { seen.at + way / 2 }, ..*seen }
            };
            let mut seen: Vec<Seen> = receiver.iter().map(shift).collect();
            seen.sort_by_key(|seen| seen.at);
            (seen, way / 2)
        }
    }
}

fn with_defect(seen: Vec<Seen>, defect: Defect) -> Vec<Seen> {
    match defect {
        Defect::Clean | Defect::Snaplen96 => seen,
        Defect::NoSyn => seen.into_iter().filter(|seen| !seen.packet.syn).collect(),
        Defect::Dropped => {
            // SplitMix64's finalizer (Steele, Lea, Flood 2014), by the number of the frame.
            let drawn = |number: u64| {
                let mut mixed = (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                mixed ^ (mixed >> 29)
            };
            (0..)
                .zip(seen)
                .filter(|(number, _)| !drawn(*number).is_multiple_of(100))
                .map(|(_, seen)| seen)
                .collect()
        }
        Defect::Offload => {
            // What follows within 100 us, up to 64 kB, is one packet, as a device cuts it or puts it together.
            let mut merged: Vec<Seen> = Vec::new();
            for seen in seen {
                let fits = |last: &Seen| {
                    last.packet.payload > 0
                        && seen.packet.payload > 0
                        && last.packet.source == seen.packet.source
                        && last.packet.seq.wrapping_add(last.packet.payload) == seen.packet.seq
                        && !last.packet.fin
                        && last.packet.payload + seen.packet.payload < 65_000
                        && seen.at - last.at <= 100_000
                };
                match merged.last_mut().filter(|last| fits(last)) {
                    Some(last) => {
                        last.packet.payload += seen.packet.payload;
                        last.packet.fin |= seen.packet.fin;
                        last.packet.push |= seen.packet.push;
                        last.packet.ack = seen.packet.ack;
                    }
                    None => merged.push(seen),
                }
            }
            merged
        }
    }
}

type Cells = BTreeMap<(Limit, Limit), f64>;

/// Stretches of the connection's time: from, to, what was true and what was said.
fn beside(transfer: &Transfer, place: Place, defect: Defect) -> Vec<(u64, u64, Limit, Limit)> {
    let (seen, later) = placed(transfer, place, usize::from(defect == Defect::Snaplen96));
    let mut diagnosis = Diagnosis::with_intervals(1);
    // Any time but 1970.
    let base = 1_000_000_000_000_000_000;
    for (number, seen) in (1..).zip(with_defect(seen, defect)) {
        diagnosis.packet(number, 0, base + seen.at, &seen.packet);
    }
    let report = diagnosis.finish();
    let said = &report.connections.first().expect("a connection").intervals;
    let mut stretches = Vec::new();
    let mut next = said.iter().peekable();
    for truth in &transfer.truth {
        let (from, to) = (truth.from_ns + base + later, truth.to_ns + base + later);
        while next.peek().is_some_and(|said| said.to_ns <= from) {
            next.next();
        }
        for said in next.clone().take_while(|said| said.from_ns < to) {
            let (from, to) = (said.from_ns.max(from), said.to_ns.min(to));
            if to > from {
                stretches.push((from - base, to - base, truth.limit, said.limit));
            }
        }
    }
    stretches
}

/// Shares of the connection's time, by what was true and what was said.
fn compare(transfer: &Transfer, place: Place, defect: Defect) -> Cells {
    let mut cells = Cells::new();
    let mut total = 0.0;
    for (from, to, truth, said) in beside(transfer, place, defect) {
        *cells.entry((truth, said)).or_default() += (to - from) as f64;
        total += (to - from) as f64;
    }
    for share in cells.values_mut() {
        *share /= total;
    }
    cells
}

/// How much is right of what is said, and how much is not said.
fn score(cells: &Cells) -> (f64, f64) {
    let sum = |keep: &dyn Fn(&(Limit, Limit)) -> bool| -> f64 {
        cells.iter().filter(|(key, _)| keep(key)).map(|(_, share)| share).fold(0.0, |sum, share| sum + share)
    };
    let all = sum(&|_| true);
    let unclear = sum(&|(_, said)| *said == Limit::Unclear);
    (sum(&|(truth, said)| truth == said) / (all - unclear), unclear / all)
}

fn add(cells: &mut Cells, more: &Cells) {
    for (key, share) in more {
        *cells.entry(*key).or_default() += share;
    }
}

const PAGE: &str = "docs/validation.md";
const BEGIN: &str = "<!-- made by `make diagnose-matrix`: from here -->\n";
const END: &str = "<!-- made by `make diagnose-matrix`: to here -->\n";

/// Prints a transfer of the known half as it is told, and its packets between two times, s.
fn show(arguments: &[String]) {
    let [scenario, control, delay, place, rest @ ..] = arguments else {
        panic!("expected SCENARIO CONTROL DELAY_MS PLACE [FROM_S TO_S]")
    };
    let scenario = SCENARIOS.iter().find(|name| *name == scenario).expect("a scenario");
    let control = CONTROLS.iter().find(|name| *name == control).expect("a controller");
    let delay =
        *KNOWN_DELAYS.iter().find(|known| known.to_string() == *delay).expect("a delay of the known half");
    assert!(may_be_looked_at(control, delay), "a controller of the known half");
    let (place, _) = *PLACES.iter().find(|(_, name)| name == place).expect("a place");
    let transfer = transfer(scenario, control, delay);
    let seconds = |ns: u64| ns as f64 / 1e9;
    let mut lines: Vec<(u64, String)> = Vec::new();
    let mut last = None;
    for (from, _, truth, said) in beside(&transfer, place, Defect::Clean) {
        if last != Some((truth, said)) {
            let mark = if truth == said { "" } else { "   <" };
            lines.push((from, format!("{} | {}{mark}", truth.name(), said.name())));
            last = Some((truth, said));
        }
    }
    let window: Vec<f64> = rest.iter().map(|number| number.parse().expect("seconds")).collect();
    if let [from, to] = window[..] {
        let (seen, _) = placed(&transfer, place, 0);
        for Seen { at, packet } in seen {
            let way = if packet.source == transfer.data_end { ">" } else { "        <" };
            lines.push((
                at,
                format!(
                    "    {way} {} +{} ack {} window {}{}{}",
                    packet.seq,
                    packet.payload,
                    packet.ack.unwrap_or(0),
                    packet.window,
                    if packet.push { " push" } else { "" },
                    if packet.sacked_to.is_some() { " sack" } else { "" }
                ),
            ));
        }
        lines.retain(|(at, _)| (from..to).contains(&seconds(*at)));
    }
    lines.sort_by_key(|(at, _)| *at);
    for (at, line) in lines {
        println!("{:12.6} {line}", seconds(at));
    }
}

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    if let Some(("show", rest)) = arguments.split_first().map(|(first, rest)| (first.as_str(), rest)) {
        return show(rest);
    }
    let asked = arguments.first().cloned();
    let is_asked = asked.is_some();
    let cases: Vec<_> = SCENARIOS
        .iter()
        .flat_map(|scenario| {
            CONTROLS.iter().flat_map(move |control| DELAYS.map(|delay| (*scenario, *control, delay)))
        })
        .filter(|(_, control, delay)| {
            // Who sets thresholds sees the known half alone.
            asked.is_none() || may_be_looked_at(control, *delay)
        })
        .collect();
    let results: Vec<_> = cases
        .par_iter()
        .map(|&(scenario, control, delay)| {
            let transfer = transfer(scenario, control, delay);
            let compared: Vec<_> = PLACES
                .iter()
                .flat_map(|(place, _)| DEFECTS.iter().map(|(defect, _)| compare(&transfer, *place, *defect)))
                .collect();
            (transfer.scenario, transfer.control, transfer.rtt_ms, compared)
        })
        .collect();
    let known =
        |control: &str, delay: u64| (KNOWN_CONTROLS.contains(&control), KNOWN_DELAYS.contains(&delay));
    let gather = |half: (bool, bool), index: usize| {
        let mut cells = Cells::new();
        for (_, control, delay, compared) in &results {
            // What is looked at has the controllers that are known by their kind, too.
            if known(control, *delay) == half || is_asked {
                add(&mut cells, &compared[index]);
            }
        }
        cells
    };
    if let Some(asked) = asked {
        // Development looks at the known half alone.
        let defect = arguments.get(1).map_or("clean", String::as_str);
        let shown = DEFECTS.iter().position(|(_, name)| *name == defect).expect("a defect");
        for (scenario, control, delay, compared) in &results {
            for (index, cells) in
                compared.iter().enumerate().filter(|(index, _)| index % DEFECTS.len() == shown)
            {
                let mut wrong: Vec<_> = cells
                    .iter()
                    .filter(|((truth, said), _)| {
                        truth != said && (truth.name() == asked || said.name() == asked || asked == "all")
                    })
                    .collect();
                wrong.sort_by(|one, other| other.1.total_cmp(one.1));
                for ((truth, said), share) in wrong.into_iter().take(3).filter(|(_, share)| **share > 0.02) {
                    println!(
                        "{:5.1} %  {scenario}, {control}, {delay} ms, {}: {} is called {}",
                        100.0 * share,
                        PLACES[index / DEFECTS.len()].1,
                        truth.name(),
                        said.name()
                    );
                }
            }
        }
        for (index, (_, place)) in PLACES.iter().enumerate() {
            for (row, (_, defect)) in DEFECTS.iter().enumerate().filter(|(row, _)| [0, 1, 4].contains(row)) {
                let cells = gather((true, true), index * DEFECTS.len() + row);
                let all: f64 = cells.values().sum();
                let mut wrong: Vec<_> = cells.iter().filter(|((truth, said), _)| truth != said).collect();
                wrong.sort_by(|one, other| other.1.total_cmp(one.1));
                for ((truth, said), share) in wrong.into_iter().take(10) {
                    println!(
                        "{:5.1} %  at the {place}, {defect}, {} is called {}",
                        100.0 * share / all,
                        truth.name(),
                        said.name()
                    );
                }
            }
            for (row, (_, defect)) in DEFECTS.iter().enumerate() {
                let (right, unclear) = score(&gather((true, true), index * DEFECTS.len() + row));
                println!("{place}, {defect}: {:.1} % right, {:.1} % unclear", 100.0 * right, 100.0 * unclear);
            }
        }
        return;
    }
    let mut text = String::from(BEGIN);
    for (title, half) in [
        ("Controllers and delays that no threshold was chosen by", (false, false)),
        ("Those by which they may be chosen", (true, true)),
    ] {
        let _ = writeln!(
            text,
            "\n{title}: right, of the time of which something is said; and unclear, in % of the time.\n"
        );
        let _ = write!(text, "| capture |");
        PLACES.iter().for_each(|(_, place)| {
            let _ = write!(text, " {place}: right | unclear |");
        });
        let _ = write!(text, "\n| --- |{}\n", " --- |".repeat(2 * PLACES.len()));
        for (row, (_, defect)) in DEFECTS.iter().enumerate() {
            let _ = write!(text, "| {defect} |");
            for column in 0..PLACES.len() {
                let (right, unclear) = score(&gather(half, column * DEFECTS.len() + row));
                let _ = write!(text, " {:.1} | {:.1} |", 100.0 * right, 100.0 * unclear);
            }
            text.push('\n');
        }
    }
    for (index, (_, place)) in PLACES.iter().enumerate() {
        let cells = gather((false, false), index * DEFECTS.len());
        let mut limits: Vec<Limit> = cells.keys().flat_map(|(truth, said)| [*truth, *said]).collect();
        limits.sort_unstable();
        limits.dedup();
        let _ = writeln!(
            text,
            "\nAt the {place}, clean, the half that no threshold was chosen by: rows are true, columns said, in % of the true time.\n"
        );
        let names: Vec<_> = limits.iter().map(|limit| limit.name()).collect();
        let _ = write!(
            text,
            "| true | share, % | {} | recall, % | precision, % |\n| --- |{}\n",
            names.join(" | "),
            " --- |".repeat(names.len() + 3)
        );
        let all: f64 = cells.values().sum();
        for truth in &limits {
            let row: Vec<f64> =
                limits.iter().map(|said| cells.get(&(*truth, *said)).copied().unwrap_or(0.0)).collect();
            let sum: f64 = row.iter().sum();
            if sum == 0.0 {
                continue;
            }
            let own = cells.get(&(*truth, *truth)).copied().unwrap_or(0.0);
            let said: f64 = cells.iter().filter(|((_, said), _)| said == truth).map(|(_, share)| share).sum();
            let shares: Vec<_> = row.iter().map(|share| format!("{:.1}", 100.0 * share / sum)).collect();
            let precision = if said > 0.0 { format!("{:.1}", 100.0 * own / said) } else { "–".to_owned() };
            let _ = writeln!(
                text,
                "| {} | {:.1} | {} | {:.1} | {precision} |",
                truth.name(),
                100.0 * sum / all,
                shares.join(" | "),
                100.0 * own / sum
            );
        }
    }
    text.push_str(END);
    print!("{text}");
    let page = fs::read_to_string(PAGE).expect("run it in the root of the repository");
    let (before, rest) = page.split_once(BEGIN).expect("the page has a place for it");
    let (_, after) = rest.split_once(END).expect("the page has a place for it");
    fs::write(PAGE, format!("{before}{text}{after}")).expect("the page is written");
}
