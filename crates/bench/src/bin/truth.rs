//! `make truth`: the simulator against Linux kernels in virtual time, resumed where it was stopped, and the table that
//! docs/validation.md has of it.
//!
//! Each part is a sweep (`farpath sweep`), whose finished runs are kept. As soon as a part is there its row is printed, and with the
//! seed 1 written into the table of the page.

use farpath_report::agreement::{Agreement, Quantity, agreements};
use farpath_run::Run;
use farpath_sweep::{Folder, Plan};
use std::error::Error;
use std::fmt::Write as _;
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

/// The page, and the lines between which its table stands.
const PAGE: &str = "docs/validation.md";
const BEGIN: &str = "<!-- made by `make truth`: from here -->\n";
const END: &str = "<!-- made by `make truth`: to here -->\n";

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
    let mut rows = Vec::new();
    for (number, part) in (1..).zip(&wanted) {
        eprintln!("truth: {number} of {}: {}", wanted.len(), part.title);
        let folder = out.join(part.name);
        part.sweep(command, &folder, seed)?;
        let row = row(part.title, &agreements(&runs(&folder)?), &commit);
        println!("{row}");
        rows.push(row);
        if seed == 1 {
            let page = fs::read_to_string(PAGE)?;
            fs::write(PAGE, with_rows(&page, &rows).ok_or(format!("{PAGE} has no marks for the table"))?)?;
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
    /// Makes what is missing of it; another seed draws other runs, and other points where these are drawn.
    fn sweep(&self, command: &Path, folder: &Path, seed: u32) -> Result<(), Box<dyn Error>> {
        let mut sets: Vec<String> = self.set.iter().map(|change| change.to_string()).collect();
        sets.push(format!("seed={seed}"));
        if self.experiment == DRAWN {
            sets.push(format!("sweep.latin.seed={seed}"));
        }
        let status = Command::new(command)
            .args(["sweep", self.experiment, "--engine", "simulate,emulate", "--out"])
            .arg(folder)
            .args(sets.iter().flat_map(|change| ["--set", change]))
            .stdout(std::process::Stdio::null())
            .status()?;
        if status.success() { Ok(()) } else { Err(format!("{}: farpath sweep: {status}", self.name).into()) }
    }
}

/// Every finished run of a sweep.
fn runs(folder: &Path) -> Result<Vec<Run>, Box<dyn Error>> {
    let (folder, experiment, engines) = Folder::open(folder)?;
    let plan = Plan::new(&experiment, &engines)?;
    let mut runs = Vec::new();
    folder.groups(&plan, &AtomicBool::new(false), |wanted, group| {
        // Runs know the first of the points that are alike.
        runs.extend(group.iter().map(|run| Run { point: wanted.point as u64, ..run.clone() }));
    })?;
    Ok(runs)
}

/// Errors beyond this are counted.
const FAR: f64 = 0.15;

fn row(title: &str, agreements: &[Agreement], commit: &str) -> String {
    let of = |quantity| agreements.iter().find(|agreement| agreement.quantity == quantity);
    let percent = |share: f64| format!("{:.1}", share * 100.0);
    let figures = |agreement: &Agreement| {
        let worst = agreement.worst().error * 100.0;
        format!("{} | {} | {worst:+.1}", percent(agreement.median), percent(agreement.p90))
    };
    let mut row = format!("| {title} |");
    match of(Quantity::TransferTime) {
        Some(times) => {
            let far = times.points.iter().filter(|point| point.error.abs() > FAR);
            let beyond = far.clone().filter(|point| !point.within_noise()).count();
            let (points, far) = (times.points.len(), far.count());
            let _ = write!(row, " {points} | {} | {far} | {beyond} |", figures(times));
        }
        None => row += " 0 | – | – | – | – | – |",
    }
    match of(Quantity::Retransmissions) {
        Some(resent) => {
            let _ = write!(row, " {} | {} |", resent.points.len(), figures(resent));
        }
        None => row += " 0 | – | – | – |",
    }
    format!("{row} {commit} |")
}

const HEAD: &str = "\
| | points | transfer time: median | 90th percentile | worst | beyond 15 % | and beyond chance | retransmissions, where there are ten: points \
| median | 90th percentile | worst | made at |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
";

/// The page with these rows in its table; rows of other parts stay. `None` where it has no marks for it.
fn with_rows(page: &str, rows: &[String]) -> Option<String> {
    let (before, rest) = page.split_once(BEGIN)?;
    let (there, after) = rest.split_once(END)?;
    let row_of = |part: &Part| {
        let begins = format!("| {} |", part.title);
        let made = rows.iter().map(String::as_str).find(|row| row.starts_with(&begins));
        made.or_else(|| there.lines().find(|line| line.starts_with(&begins)))
    };
    let table: String = PARTS.iter().filter_map(row_of).map(|row| format!("{row}\n")).collect();
    Some(format!("{before}{BEGIN}\n{HEAD}{table}\n{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_the_marks_and_other_parts_keep_their_rows() {
        let page =
            fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(PAGE)).unwrap();
        assert_eq!(with_rows(&page, &[]), Some(page.clone()), "it is as it is written");
        let title = PARTS[5].title;
        let row = format!("| {title} | 56 | new |");
        let written = with_rows(&page, std::slice::from_ref(&row)).expect("it has them");
        // Other tables of the page may name the same part.
        let table = &written[written.find(BEGIN).expect("it begins")..written.find(END).expect("it ends")];
        assert_eq!(table.matches(&format!("| {title} |")).count(), 1);
        assert!(written.contains(&row));
        let others =
            |page: &str| page.lines().filter(|line| !line.starts_with(&format!("| {title} |"))).count();
        assert_eq!(others(&written), others(&page));
        assert_eq!(with_rows("no marks", &[row]), None);
    }
}
