//! `farpath script`: packet scripts, played against stacks.

mod from_capture;
mod from_run;

use crate::args::{ScriptArgs, ScriptEngine};
use crate::error::CliError;
use crate::{Ending, interrupt, output};
use farpath_experiment::Stack;
use farpath_report::Table;
use farpath_script::syntax::{Script, Way};
use farpath_script::{
    Comparison, Fault, MAX_SCRIPT, Outcome, ParseError, Simulated, Verdict, parse, play, seconds, update,
};
use farpath_units::Bytes;
use rayon::prelude::*;
use serde_json::json;
use std::fmt::Write as _;
use std::io;
use std::iter;
use std::path::{Path, PathBuf};

/// Folders within each other that are looked into.
pub const MAX_FOLDERS: u32 = 16;
/// Scripts of one command, and what they have in all: each is held until all are told.
pub const MAX_SCRIPTS: usize = 100_000;
pub const MAX_SCRIPT_BYTES: Bytes = Bytes(64_000_000);

/// A script as it was read, or why it is none.
struct Played {
    file: PathBuf,
    /// As it is shown: without the folder that was named.
    name: String,
    text: String,
    read: Result<Script, ParseError>,
    /// By stack. A kernel is the last one, and has none where the command was interrupted before.
    answers: Vec<Answer>,
}

/// What came of a script with a stack.
struct Answer {
    /// Of the repetition that did not pass, else of the last one.
    verdict: Verdict,
    /// How often it passed.
    passed: u32,
}

impl Answer {
    fn new(verdict: Verdict) -> Answer {
        Answer { passed: u32::from(verdict.outcome == Outcome::Passed), verdict }
    }

    /// Takes what came of another repetition.
    #[cfg(target_os = "linux")]
    fn add(&mut self, other: Answer) {
        self.passed += other.passed;
        if self.verdict.outcome == Outcome::Passed {
            self.verdict = other.verdict;
        }
    }
}

/// A word for a script that a kernel had not begun when the command was interrupted.
const NOT_PLAYED: &str = "not played";

/// A word for what came of a script.
fn word(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Passed => "ok",
        Outcome::Failed(_) => "fails",
        Outcome::CannotRun(_) => "cannot run",
    }
}

/// `farpath script`
pub fn script(args: &ScriptArgs) -> Result<Ending, CliError> {
    if let Some(from) = &args.from {
        return from_capture::write(args, from);
    }
    let mut named = match args.engine {
        _ if args.tun.is_some() => Vec::new(),
        ScriptEngine::Simulate | ScriptEngine::Both => args.stack.clone(),
        ScriptEngine::Emulate => Vec::new(),
    };
    let stacks: Vec<Stack> = named.iter().map(|name| Stack::load(name)).collect::<Result<_, _>>()?;
    let comparison = Comparison { tolerance: args.tolerance };
    let files = find(&args.files)?;
    if files.is_empty() {
        return Err(CliError::NoScript { file: args.files[0].clone() });
    }
    let mut played: Vec<Played> = files
        .into_par_iter()
        .map(|(file, name)| {
            let text = read(&file)?;
            let read = parse(&text);
            let answers = match &read {
                Ok(script) => stacks
                    .iter()
                    .map(|stack| play(script, &mut Simulated::new(&stack.config), &comparison))
                    .map(Answer::new)
                    .collect(),
                Err(_) => Vec::new(),
            };
            Ok(Played { file, name, text, read, answers })
        })
        .collect::<Result<_, CliError>>()?;
    // What was played before something broke is told too.
    let mut whole = Ok(());
    if let Some(device) = &args.tun {
        named.push(behind_device(args, device, &comparison, &mut played)?);
    } else if args.engine != ScriptEngine::Simulate {
        let (name, ended) = on_kernel(args, &comparison, &mut played)?;
        named.push(name);
        whole = ended;
    }
    let args = &ScriptArgs { stack: named, ..args.clone() };
    for bad in played.iter().filter(|played| played.read.is_err()) {
        if let Err(error) = &bad.read {
            output::tell(&format!("{}:{error}", bad.file.display()));
        }
    }
    if args.json {
        print_json(&played, args)?;
    } else if args.tap {
        print_tap(&played, args)?;
    } else {
        print_text(&played, args)?;
    }
    if let Some(file) = &args.junit {
        let text = junit(&played, args);
        replace(file, &text)?;
    }
    if args.update {
        for played in &played {
            write_update(played)?;
        }
    }
    whole?;
    if interrupt::happened() {
        return Ok(Ending::Interrupted);
    }
    let all = || played.iter().flat_map(|played| &played.answers).map(|answer| &answer.verdict);
    // A file that is no script is an error; a script that asks for more than there is has no answer.
    if played.iter().any(|played| played.read.is_err()) {
        return Ok(Ending::Refused);
    }
    if all().any(|verdict| matches!(verdict.outcome, Outcome::Failed(_))) {
        return Ok(Ending::Failed);
    }
    if all().any(|verdict| matches!(verdict.outcome, Outcome::CannotRun(_))) {
        return Ok(Ending::Refused);
    }
    Ok(Ending::Done)
}

/// Plays them on a kernel. Gives its name, and whether it came to its end.
#[cfg(target_os = "linux")]
fn on_kernel(
    args: &ScriptArgs,
    comparison: &Comparison,
    played: &mut [Played],
) -> Result<(String, Result<(), CliError>), CliError> {
    use crate::args::ClockName;
    use crate::progress;
    use farpath_emulate::{Playing, play_in_virtual_time, play_on_kernel};
    use farpath_kernel::Catalog;

    let good: Vec<(&Script, &str)> =
        played.iter().filter_map(|played| Some((played.read.as_ref().ok()?, played.text.as_str()))).collect();
    let repetitions = u64::from(args.repeat);
    let bar = progress::bar(good.len() as u64 * repetitions, "plays of scripts");
    let mut answers: Vec<Option<Answer>> = good.iter().map(|_| None).collect();
    let note = |number: usize, verdict: Verdict| {
        let answer = Answer::new(verdict);
        let over = answer.passed == 0;
        match &mut answers[number] {
            Some(known) => known.add(answer),
            none => *none = Some(answer),
        }
        let passed = answers[number].as_ref().map_or(0, |answer| u64::from(answer.passed));
        bar.inc(if over { repetitions - passed } else { 1 });
    };
    let playing = Playing { comparison: *comparison, repetitions: args.repeat, stop: interrupt::flag() };
    let (name, ended) = match args.clock {
        ClockName::Real => {
            let scripts: Vec<&Script> = good.iter().map(|&(script, _)| script).collect();
            ("this kernel".to_owned(), play_on_kernel(&scripts, playing, note))
        }
        ClockName::Virtual => {
            let kernel = Catalog::of_user()
                .find(args.kernel.as_deref())
                .map_err(|error| CliError::Emulation(error.into()))?;
            let texts: Vec<&str> = good.iter().map(|&(_, text)| text).collect();
            let give_up_after = std::time::Duration::from_nanos(args.give_up_after.as_nanos());
            let ended = play_in_virtual_time(&texts, playing, &kernel, give_up_after, note);
            (format!("Linux {}", kernel.about.name), ended)
        }
    };
    drop(bar);
    for (played, answer) in played.iter_mut().filter(|played| played.read.is_ok()).zip(answers) {
        played.answers.extend(answer);
    }
    Ok((name, ended.map_err(CliError::Emulation)))
}

/// Plays them against the stack behind a device, one after the other; gives a name for it.
#[cfg(target_os = "linux")]
fn behind_device(
    args: &ScriptArgs,
    device: &str,
    comparison: &Comparison,
    played: &mut [Played],
) -> Result<String, CliError> {
    for played in played {
        if let Ok(script) = &played.read {
            let connect = args.connect.as_deref();
            let verdict = farpath_emulate::play_behind_device(script, comparison, device, connect);
            played.answers.push(Answer::new(verdict.map_err(CliError::Emulation)?));
        }
    }
    Ok(format!("the stack behind {device}"))
}

/// There is none.
#[cfg(not(target_os = "linux"))]
fn behind_device(_: &ScriptArgs, _: &str, _: &Comparison, _: &mut [Played]) -> Result<String, CliError> {
    Err(CliError::Emulation(farpath_emu::HostError::NotLinux.into()))
}

/// There is none.
#[cfg(not(target_os = "linux"))]
fn on_kernel(
    _: &ScriptArgs,
    _: &Comparison,
    _: &mut [Played],
) -> Result<(String, Result<(), CliError>), CliError> {
    Err(CliError::Emulation(farpath_emu::HostError::NotLinux.into()))
}

fn read(file: &Path) -> Result<String, CliError> {
    let failed = |source| CliError::ReadScript { file: file.to_owned(), source };
    let bytes = farpath_files::read_at_most(file, Bytes(MAX_SCRIPT as u64)).map_err(failed)?;
    String::from_utf8(bytes)
        .map_err(|_| failed(io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8")))
}

/// The scripts of what was named, those of a folder in their order by name.
fn find(given: &[PathBuf]) -> Result<Vec<(PathBuf, String)>, CliError> {
    let mut found = Vec::new();
    let mut bytes = 0;
    for given in given {
        let mut add = |file: PathBuf| {
            let name = file.strip_prefix(given).ok().filter(|name| *name != Path::new(""));
            let name = name.unwrap_or(&file).display().to_string();
            // One that cannot be asked is not read either, and that is told with its name.
            bytes += file.metadata().map_or(0, |about| about.len());
            found.push((file, name));
            if found.len() > MAX_SCRIPTS || bytes > MAX_SCRIPT_BYTES.0 {
                return Err(CliError::TooManyScripts { file: given.clone() });
            }
            Ok(())
        };
        match given.is_dir() {
            true => walk(given, 0, &mut add)?,
            false => add(given.clone())?,
        }
    }
    Ok(found)
}

/// Gives the scripts of a folder to `add`. A link to a folder is not followed: it may lead back.
fn walk(
    folder: &Path,
    depth: u32,
    add: &mut dyn FnMut(PathBuf) -> Result<(), CliError>,
) -> Result<(), CliError> {
    let failed = |source| CliError::ReadScript { file: folder.to_owned(), source };
    let entries = std::fs::read_dir(folder).map_err(failed)?;
    let mut entries: Vec<std::fs::DirEntry> = entries.collect::<Result<_, _>>().map_err(failed)?;
    entries.sort_by_key(std::fs::DirEntry::path);
    for entry in entries {
        let path = entry.path();
        if entry.file_type().map_err(failed)?.is_dir() {
            if depth == MAX_FOLDERS {
                return Err(CliError::DeepScripts { file: path });
            }
            walk(&path, depth + 1, add)?;
        } else if path.extension().is_some_and(|extension| extension == "pkt") && !path.is_dir() {
            add(path)?;
        }
    }
    Ok(())
}

fn replace(file: &Path, text: &str) -> Result<(), CliError> {
    use std::io::Write as _;
    let write = || {
        let replacement = farpath_files::Replacement::create(file)?;
        let mut target = replacement.file();
        target.write_all(text.as_bytes())?;
        replacement.commit()
    };
    write().map_err(|source| CliError::WriteScript { file: file.to_owned(), source })
}

// ---- Output ----

/// The fault of a verdict.
fn fault(verdict: &Verdict) -> Option<&Fault> {
    match &verdict.outcome {
        Outcome::Passed => None,
        Outcome::Failed(fault) | Outcome::CannotRun(fault) => Some(fault),
    }
}

/// A fault in one line.
fn short(fault: &Fault) -> String {
    let Fault { place, expected, found } = fault;
    format!("line {}: expected {expected}, found {found}", place.line)
}

/// How many scripts passed, failed and could not run on the stack of this number.
fn counts<'a>(played: impl IntoIterator<Item = &'a Played>, stack: usize) -> [usize; 3] {
    let mut counts = [0; 3];
    for answer in played.into_iter().filter_map(|played| played.answers.get(stack)) {
        counts[match answer.verdict.outcome {
            Outcome::Passed => 0,
            Outcome::Failed(_) => 1,
            Outcome::CannotRun(_) => 2,
        }] += 1;
    }
    counts
}

/// The line, what was expected and what came, and the last segments.
fn explain(played: &Played, stack: &str, verdict: &Verdict) -> String {
    let Some(fault) = fault(verdict) else { return String::new() };
    let mut text = format!(
        "{}:{}: {} with {stack}\n  expected {}\n  found    {}\n",
        played.file.display(),
        fault.place,
        word(&verdict.outcome),
        fault.expected,
        fault.found
    );
    if matches!(verdict.outcome, Outcome::CannotRun(_)) || verdict.segments.is_empty() {
        return text;
    }
    let _ = writeln!(text, "  {:>12}  {:<8}", "time", "stack");
    for shown in &verdict.segments {
        let arrow = if shown.way == Way::In { "<---" } else { "--->" };
        let mark = if shown.fault { "   <== here" } else { "" };
        let _ = writeln!(text, "  {:>12}  {arrow}  {}{mark}", seconds(shown.at), shown.text);
    }
    text
}

fn print_text(played: &[Played], args: &ScriptArgs) -> io::Result<()> {
    let good: Vec<&Played> = played.iter().filter(|played| played.read.is_ok()).collect();
    for played in &good {
        for (stack, Answer { verdict, .. }) in args.stack.iter().zip(&played.answers) {
            if verdict.outcome != Outcome::Passed {
                output::print(&explain(played, stack, verdict))?;
                output::print("")?;
            }
        }
    }
    if good.is_empty() {
        return Ok(());
    }
    output::print(&table(&good, args))?;
    for (index, stack) in args.stack.iter().enumerate() {
        let [ok, fails, cannot] = counts(good.iter().copied(), index);
        let missing = match good.len() - ok - fails - cannot {
            0 => String::new(),
            missing => format!(", {missing} {NOT_PLAYED}"),
        };
        output::print(&format!("{stack}: {ok} ok, {fails} fail, {cannot} cannot run{missing}"))?;
    }
    Ok(())
}

/// A line for each script, a column for each stack; where scripts are repeated, with how often each passed.
fn table(played: &[&Played], args: &ScriptArgs) -> String {
    let names = played.iter().map(|played| Some(played.name.clone())).collect();
    let cell = |answer: &Answer| match (word(&answer.verdict.outcome), answer.passed) {
        (word, _) if args.repeat == 1 => word.to_owned(),
        ("ok", passed) => format!("ok, {passed} times"),
        (word, 0) => word.to_owned(),
        (word, passed) => format!("{word} after {passed}"),
    };
    let cells = |index: usize| {
        let cell = |played: &&Played| played.answers.get(index).map_or_else(|| NOT_PLAYED.to_owned(), cell);
        played.iter().map(|played| Some(cell(played))).collect()
    };
    let stacks = args.stack.iter().enumerate().map(|(index, stack)| (stack.as_str(), cells(index)));
    Table::from_texts(iter::once(("script", names)).chain(stacks)).to_text(output::width())
}

fn print_json(played: &[Played], args: &ScriptArgs) -> io::Result<()> {
    for played in played.iter().filter(|played| played.read.is_ok()) {
        for (stack, Answer { verdict, passed }) in args.stack.iter().zip(&played.answers) {
            let segments: Vec<_> = verdict
                .segments
                .iter()
                .map(|shown| {
                    let way = if shown.way == Way::In { "in" } else { "out" };
                    json!({ "at_s": shown.at.as_secs_f64(), "way": way, "segment": shown.text, "fault": shown.fault })
                })
                .collect();
            let fault = fault(verdict);
            let object = json!({
                "script": played.file.display().to_string(),
                "stack": stack,
                "outcome": word(&verdict.outcome),
                "passed": passed,
                "line": fault.map(|fault| fault.place.line),
                "column": fault.map(|fault| fault.place.column),
                "expected": fault.map(|fault| &fault.expected),
                "found": fault.map(|fault| &fault.found),
                "segments": segments,
                "printed": verdict.printed,
                "duration_s": verdict.duration.as_secs_f64(),
            });
            output::print(&object.to_string())?;
        }
    }
    Ok(())
}

fn print_tap(played: &[Played], args: &ScriptArgs) -> io::Result<()> {
    output::print("TAP version 13")?;
    output::print(&format!("1..{}", played.len() * args.stack.len()))?;
    let mut number = 0;
    for played in played {
        for (index, stack) in args.stack.iter().enumerate() {
            number += 1;
            let name = format!("{} {stack}", played.name.replace('\n', " "));
            let verdict = match (&played.read, played.answers.get(index)) {
                (Ok(_), Some(answer)) => &answer.verdict,
                (Err(error), _) => {
                    output::print(&format!("not ok {number} {name}\n# {error}"))?;
                    continue;
                }
                (Ok(_), None) => {
                    output::print(&format!("ok {number} {name} # SKIP {NOT_PLAYED}"))?;
                    continue;
                }
            };
            match &verdict.outcome {
                Outcome::Passed => output::print(&format!("ok {number} {name}"))?,
                Outcome::CannotRun(fault) => {
                    output::print(&format!("ok {number} {name} # SKIP {}", short(fault).replace('\n', " ")))?;
                }
                Outcome::Failed(_) => {
                    output::print(&format!("not ok {number} {name}"))?;
                    for line in explain(played, stack, verdict).lines() {
                        output::print(&format!("# {line}"))?;
                    }
                }
            }
        }
    }
    Ok(())
}

/// A text within XML; what XML cannot hold is left out.
fn escaped(text: &str) -> String {
    text.chars().fold(String::new(), |mut escaped, c| {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            c if c.is_control() && !matches!(c, '\n' | '\t') => {}
            c => escaped.push(c),
        }
        escaped
    })
}

fn junit(played: &[Played], args: &ScriptArgs) -> String {
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n");
    for (index, stack) in args.stack.iter().enumerate() {
        let [ok, failures, _] = counts(played, index);
        let errors = played.iter().filter(|played| played.read.is_err()).count();
        let skipped = played.len() - errors - ok - failures;
        let _ = writeln!(
            text,
            "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{failures}\" errors=\"{errors}\" skipped=\"{skipped}\">",
            escaped(stack),
            played.len()
        );
        for played in played {
            let _ = write!(text, "    <testcase name=\"{}\"", escaped(&played.name));
            let inside = match (&played.read, played.answers.get(index)) {
                (Err(error), _) => format!("<error message=\"{}\"/>", escaped(&error.to_string())),
                (Ok(_), Some(Answer { verdict, .. })) => {
                    let _ = write!(text, " time=\"{}\"", verdict.duration.as_secs_f64());
                    match &verdict.outcome {
                        Outcome::Passed => String::new(),
                        Outcome::Failed(_) => {
                            format!("<failure>{}</failure>", escaped(&explain(played, stack, verdict)))
                        }
                        Outcome::CannotRun(fault) => {
                            format!("<skipped message=\"{}\"/>", escaped(&short(fault)))
                        }
                    }
                }
                (Ok(_), None) => format!("<skipped message=\"{NOT_PLAYED}\"/>"),
            };
            let _ = writeln!(text, ">{inside}</testcase>");
        }
        text.push_str("  </testsuite>\n");
    }
    text.push_str("</testsuites>\n");
    text
}

/// `--update`: the script with what came, where that is a packet and not another one.
fn write_update(played: &Played) -> Result<(), CliError> {
    let (Ok(script), Some(Answer { verdict, .. })) = (&played.read, played.answers.first()) else {
        return Ok(());
    };
    if !matches!(verdict.outcome, Outcome::Failed(_)) {
        return Ok(());
    }
    match update(&played.text, script, verdict) {
        Some(text) => {
            replace(&played.file, &text)?;
            output::tell(&format!(
                "{}: written with what came; look at the difference",
                played.file.display()
            ));
        }
        None => output::tell(&format!(
            "{}: not written: what differs is no packet that is expected",
            played.file.display()
        )),
    }
    Ok(())
}
