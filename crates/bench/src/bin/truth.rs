//! `make truth`: the simulator against Linux kernels in virtual time, resumed where it was stopped, and the table that
//! docs/validation.md has of it.
//!
//! Each part is three sweeps (`farpath sweep`): the kernel's, whose finished runs are kept, and those of simulations and predictions, which
//! are made anew each time: they are what changes, and are quick. As soon as a part is there its rows are printed, and with the seed 1
//! written into the tables of the page.

use farpath_report::agreement::{Agreement, Quantity, agreements};
use farpath_run::{Engine, Run};
use farpath_sweep::{Folder, Plan};
use std::error::Error;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::atomic::AtomicBool;
use std::{env, fs};

/// One variant of TCP over the points of one experiment.
struct Part {
    /// Of its folder.
    name: &'static str,
    /// In the table.
    title: &'static str,
    experiment: &'static str,
    set: &'static [&'static str],
}

const GRID: &str = "experiments/truth.toml";
const DEFAULT: &str = "experiments/truth-default.toml";
const DRAWN: &str = "experiments/truth-drawn.toml";

const PARTS: [Part; 9] = [
    Part { name: "default", title: "hosts by default: CUBIC", experiment: DEFAULT, set: &[] },
    Part {
        name: "default-bbr",
        title: "hosts by default: BBR",
        experiment: DEFAULT,
        set: &["sender.congestion.control=bbr"],
    },
    Part { name: "drawn", title: "drawn points: CUBIC", experiment: DRAWN, set: &[] },
    Part {
        name: "drawn-bbr",
        title: "drawn points: BBR",
        experiment: DRAWN,
        set: &["sender.congestion.control=bbr"],
    },
    Part {
        name: "lost-acks",
        title: "one small segment, ACKs lost",
        experiment: "experiments/truth-lost-acks.toml",
        set: &[],
    },
    Part {
        name: "cubic",
        title: "grid: CUBIC (`linux-6`)",
        experiment: GRID,
        set: &["sender.stack=linux-6", "receiver.stack=linux-6"],
    },
    Part {
        name: "bbr",
        title: "grid: BBR (`linux-6` with `bbr`)",
        experiment: GRID,
        set: &["sender.stack=linux-6", "receiver.stack=linux-6", "sender.congestion.control=bbr"],
    },
    Part { name: "reno-sack", title: "grid: SACK (`reno-sack`)", experiment: GRID, set: &[] },
    Part {
        name: "reno",
        title: "grid: Reno (`reno-1990`)",
        experiment: GRID,
        set: &["sender.stack=reno-1990"],
    },
];

/// The page with both tables.
const PAGE: &str = "docs/validation.md";

/// A table of the page.
struct Table {
    /// The lines between which it stands.
    begin: &'static str,
    end: &'static str,
    head: &'static str,
    row: fn(&str, &[Agreement], &str) -> String,
}

const TABLES: [Table; 2] = [
    Table {
        begin: "<!-- made by `make truth`: from here -->\n",
        end: "<!-- made by `make truth`: to here -->\n",
        head: "\
| | points | transfer time: median | 90th percentile | worst | beyond 15 % | and beyond chance | retransmissions, where there are ten: points \
| median | 90th percentile | worst | made at |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
",
        row: simulated,
    },
    Table {
        begin: "<!-- predictions, made by `make truth`: from here -->\n",
        end: "<!-- predictions, made by `make truth`: to here -->\n",
        head: "\
| | points | of them predicted | transfer time: median | 90th percentile | worst | beyond 50 % | and beyond chance | made at |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |
",
        row: predicted,
    },
];

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [command, out, seed, names @ ..] = &arguments[..] else {
        eprintln!("usage: truth COMMAND FOLDER SEED [PART ...]");
        return ExitCode::from(2);
    };
    match run(Path::new(command), Path::new(out), seed, names) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("truth: {error}");
            ExitCode::from(2)
        }
    }
}

/// Makes the parts of these names, or all; `seed` is 1 for the runs that the page is about.
fn run(command: &Path, out: &Path, seed: &str, names: &[String]) -> Result<(), Box<dyn Error>> {
    let seed: u32 = seed.parse().map_err(|_| format!("expected a seed such as 7, found `{seed}`"))?;
    if let Some(name) = names.iter().find(|name| PARTS.iter().all(|part| part.name != **name)) {
        let known: Vec<_> = PARTS.iter().map(|part| part.name).collect();
        return Err(format!("there is no part `{name}`; known: {}", known.join(", ")).into());
    }
    let wanted: Vec<&Part> =
        PARTS.iter().filter(|part| names.is_empty() || names.iter().any(|name| name == part.name)).collect();
    let out = out.join(format!("seed-{seed}"));
    fs::create_dir_all(&out)?;
    let commit = commit()?;
    let mut made: [Vec<String>; TABLES.len()] = Default::default();
    for (number, part) in (1..).zip(&wanted) {
        eprintln!("truth: {number} of {}: {}", wanted.len(), part.title);
        let all = agreements(&part.runs(command, &out, seed)?);
        for (table, rows) in TABLES.iter().zip(&mut made) {
            let row = (table.row)(part.title, &all, &commit);
            println!("{row}");
            rows.push(row);
            if seed == 1 {
                let page = fs::read_to_string(PAGE)?;
                let page = table.with_rows(&page, rows).ok_or(format!("{PAGE} has no `{}`", table.begin))?;
                fs::write(PAGE, page)?;
            }
        }
    }
    Ok(())
}

/// The commit that is checked out, for the table.
fn commit() -> Result<String, Box<dyn Error>> {
    let output = Command::new("git").args(["rev-parse", "--short", "HEAD"]).output()?;
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

impl Part {
    /// All of its runs: what is missing of the kernel's is made. Another seed draws other runs, and other points where these are drawn.
    fn runs(&self, command: &Path, out: &Path, seed: u32) -> Result<Vec<Run>, Box<dyn Error>> {
        let mut runs = Vec::new();
        for engine in [Engine::Emulate, Engine::Simulate, Engine::Predict] {
            let folder = out.join(format!("{}-{}", self.name, engine.name()));
            if engine != Engine::Emulate && folder.exists() {
                fs::remove_dir_all(&folder)?;
            }
            self.sweep(command, engine.name(), &folder, seed)?;
            read(&folder, &mut runs)?;
        }
        Ok(runs)
    }

    fn sweep(&self, command: &Path, engine: &str, folder: &Path, seed: u32) -> Result<(), Box<dyn Error>> {
        let mut sets: Vec<String> = self.set.iter().map(|change| change.to_string()).collect();
        sets.push(format!("seed={seed}"));
        if self.experiment == DRAWN {
            sets.push(format!("sweep.latin.seed={seed}"));
        }
        let status = Command::new(command)
            .args(["sweep", self.experiment, "--engine", engine, "--out"])
            .arg(folder)
            .args(sets.iter().flat_map(|change| ["--set", change]))
            .stdout(std::process::Stdio::null())
            .status()?;
        if status.success() { Ok(()) } else { Err(format!("{}: farpath sweep: {status}", self.name).into()) }
    }
}

/// Every finished run of a sweep.
fn read(folder: &Path, runs: &mut Vec<Run>) -> Result<(), Box<dyn Error>> {
    let (folder, experiment, engines) = Folder::open(folder)?;
    let plan = Plan::new(&experiment, &engines)?;
    folder.groups(&plan, &AtomicBool::new(false), |wanted, group| {
        // Runs know the first of the points that are alike.
        runs.extend(group.iter().map(|run| Run { point: wanted.point as u64, ..run.clone() }));
    })?;
    Ok(())
}

/// How far an engine agrees with the kernel.
fn beside_the_kernel(all: &[Agreement], of: Engine, quantity: Quantity) -> Option<&Agreement> {
    let asked = |one: &&Agreement| (one.of, one.against, one.quantity) == (of, Engine::Emulate, quantity);
    all.iter().find(asked)
}

/// Median, 90th percentile and worst error, in %.
fn errors(agreement: &Agreement) -> String {
    let percent = |share: f64| format!("{:.1}", share * 100.0);
    let worst = agreement.worst().error * 100.0;
    format!("{} | {} | {worst:+.1}", percent(agreement.median), percent(agreement.p90))
}

/// How many points err by more than `limit`, and how many of these beyond chance.
fn beyond(agreement: &Agreement, limit: f64) -> String {
    let far = agreement.points.iter().filter(|point| point.error.abs() > limit);
    format!("{} | {}", far.clone().count(), far.filter(|point| !point.within_noise()).count())
}

/// A row of the first table.
fn simulated(title: &str, all: &[Agreement], commit: &str) -> String {
    let of = |quantity| beside_the_kernel(all, Engine::Simulate, quantity);
    let mut row = format!("| {title} |");
    row += &match of(Quantity::TransferTime) {
        Some(times) => format!(" {} | {} | {} |", times.points.len(), errors(times), beyond(times, 0.15)),
        None => " 0 | – | – | – | – | – |".to_owned(),
    };
    row += &match of(Quantity::Retransmissions) {
        Some(resent) => format!(" {} | {} |", resent.points.len(), errors(resent)),
        None => " 0 | – | – | – |".to_owned(),
    };
    format!("{row} {commit} |")
}

/// A row of the second.
fn predicted(title: &str, all: &[Agreement], commit: &str) -> String {
    let completed = beside_the_kernel(all, Engine::Simulate, Quantity::TransferTime);
    let points = completed.map_or(0, |times| times.points.len());
    let row = match beside_the_kernel(all, Engine::Predict, Quantity::TransferTime) {
        Some(times) => format!("{} | {} | {}", times.points.len(), errors(times), beyond(times, 0.5)),
        None => "0 | – | – | – | – | –".to_owned(),
    };
    format!("| {title} | {points} | {row} | {commit} |")
}

impl Table {
    /// The page with these rows in the table; rows of other parts stay. `None` where it has no marks for it.
    fn with_rows(&self, page: &str, rows: &[String]) -> Option<String> {
        let (before, rest) = page.split_once(self.begin)?;
        let (there, after) = rest.split_once(self.end)?;
        let row_of = |part: &Part| {
            let begins = format!("| {} |", part.title);
            let made = rows.iter().map(String::as_str).find(|row| row.starts_with(&begins));
            made.or_else(|| there.lines().find(|line| line.starts_with(&begins)))
        };
        let table: String = PARTS.iter().filter_map(row_of).map(|row| format!("{row}\n")).collect();
        Some(format!("{before}{}\n{}{table}\n{}{after}", self.begin, self.head, self.end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_the_marks_and_other_parts_keep_their_rows() {
        let page =
            fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(PAGE)).unwrap();
        for table in TABLES {
            assert_eq!(table.with_rows(&page, &[]), Some(page.clone()), "it is as it is written");
            let title = PARTS[5].title;
            let row = format!("| {title} | 56 | new |");
            let written = table.with_rows(&page, std::slice::from_ref(&row)).expect("it has them");
            // Other tables of the page may name the same part.
            let begin = written.find(table.begin).expect("it begins");
            let there = &written[begin..written.find(table.end).expect("it ends")];
            assert_eq!(there.matches(&format!("| {title} |")).count(), 1);
            assert!(written.contains(&row));
            let others =
                |page: &str| page.lines().filter(|line| !line.starts_with(&format!("| {title} |"))).count();
            assert_eq!(others(&written), others(&page));
            assert_eq!(table.with_rows("no marks", &[row]), None);
        }
    }
}
