//! What `make test` asks beside its test runners.
//!
//! `farpath-testing summary FOLDER` ends it: what ran, and what was skipped and why. The folder has `stages`, a line of status,
//! seconds and name for each stage that ended, `skips` ([`farpath_testing::SKIPS`]), and JUnit's XML of the test runners by
//! the names of their stages, `NAME.xml`. It ends with 1 where a stage failed.
//!
//! `farpath-testing skip NEED STAGE WHY` skips a stage as a test is skipped ([`farpath_testing::skip`]).

use farpath_testing::Need;
use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["summary", folder] => summarize(Path::new(folder)),
        ["skip", need, stage, why] => skip(need, stage, why),
        _ => {
            eprintln!("farpath-testing: expected `summary FOLDER` or `skip NEED STAGE WHY`");
            ExitCode::from(2)
        }
    }
}

fn summarize(folder: &Path) -> ExitCode {
    let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap_or_default();
    let summary = Summary::new(&read("stages"), &read("skips"), |stage| read(&format!("{stage}.xml")));
    print!("{}", summary.text());
    if summary.failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn skip(need: &str, stage: &str, why: &str) -> ExitCode {
    let Some(need) = Need::ALL.iter().find(|known| known.name() == need) else {
        eprintln!("farpath-testing: skip: `{need}` is no need of a test");
        return ExitCode::from(2);
    };
    farpath_testing::skip_as(*need, stage, why);
    ExitCode::SUCCESS
}

/// What is said at the end.
struct Summary {
    /// Name, seconds, what came out.
    stages: Vec<(String, String, String)>,
    /// Need, reason; the tests that it stopped.
    skips: BTreeMap<(String, String), Vec<String>>,
    passed: u64,
    failures: u64,
    failed: bool,
}

impl Summary {
    fn new(stages: &str, skips: &str, junit: impl Fn(&str) -> String) -> Summary {
        let mut summary =
            Summary { stages: Vec::new(), skips: BTreeMap::new(), passed: 0, failures: 0, failed: false };
        for line in stages.lines() {
            let mut words = line.split(' ');
            let (Some(status), Some(seconds), Some(name)) = (words.next(), words.next(), words.next()) else {
                continue;
            };
            let done = status == "0";
            let mut outcome = if done { "passed" } else { "FAILED" }.to_owned();
            if let Some(Counts { tests, failures, skipped }) = Counts::read(&junit(name)) {
                let passed = tests.saturating_sub(failures + skipped);
                outcome = format!("{passed} passed, {failures} failed");
                if skipped > 0 {
                    outcome += &format!(", {skipped} skipped");
                }
                if !done && failures == 0 {
                    outcome += ", but the stage FAILED";
                }
                summary.passed += passed;
                summary.failures += failures;
            }
            summary.failed |= !done;
            summary.stages.push((name.to_owned(), seconds.to_owned(), outcome));
        }
        for line in skips.lines() {
            let mut parts = line.splitn(3, '\t').map(str::to_owned);
            let (Some(need), Some(test), Some(why)) = (parts.next(), parts.next(), parts.next()) else {
                continue;
            };
            let tests = summary.skips.entry((need, why)).or_default();
            if !tests.contains(&test) {
                tests.push(test);
            }
        }
        summary
    }

    fn skipped(&self) -> usize {
        self.skips.values().map(Vec::len).sum()
    }

    fn text(&self) -> String {
        let mut text = "\nWhat ran\n".to_owned();
        let widest = self.stages.iter().map(|(name, ..)| name.len()).max().unwrap_or(0);
        for (name, seconds, outcome) in &self.stages {
            text += &format!("  {name:widest$}  {seconds:>4} s  {outcome}\n");
        }
        text += "\nWhat was skipped, in whole or in part, and why\n";
        if self.skips.is_empty() {
            text += "  nothing\n";
        }
        for ((need, why), tests) in &self.skips {
            text += &format!("  {need:8}  {why}\n");
            for test in tests {
                text += &format!("  {:8}    {test}\n", "");
            }
        }
        text + &format!("\n{} passed, {} failed, {} skipped\n", self.passed, self.failures, self.skipped())
    }
}

/// What a test runner counted.
#[derive(Debug, PartialEq, Eq)]
struct Counts {
    tests: u64,
    failures: u64,
    skipped: u64,
}

impl Counts {
    /// Sums over the suites of a report; `None` where there is none.
    fn read(junit: &str) -> Option<Counts> {
        let suites: Vec<&str> =
            junit.split("<testsuite ").skip(1).filter_map(|rest| rest.split('>').next()).collect();
        let count = |suite: &str, name: &str| -> u64 {
            let value = suite.split_once(&format!("{name}=\"")).and_then(|(_, rest)| rest.split('"').next());
            value.and_then(|value| value.parse().ok()).unwrap_or(0)
        };
        let sum = |name: &str| suites.iter().map(|suite| count(suite, name)).sum::<u64>();
        let failures = sum("failures") + sum("errors");
        (!suites.is_empty()).then(|| Counts {
            tests: sum("tests"),
            failures,
            skipped: sum("skipped") + sum("disabled"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const JUNIT: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="nextest-run" tests="5" failures="1" errors="0">
    <testsuite name="farpath-tcp" tests="2" disabled="0" errors="0" failures="0">
        <testcase name="a" classname="farpath-tcp"/>
    </testsuite>
    <testsuite name="farpath-emu::kernel" tests="3" disabled="1" errors="0" failures="1">
    </testsuite>
</testsuites>"#;

    #[test]
    fn counts_are_summed_over_suites() {
        assert_eq!(Counts::read(JUNIT), Some(Counts { tests: 5, failures: 1, skipped: 1 }));
        assert_eq!(Counts::read(""), None);
    }

    #[test]
    fn the_table_has_stages_and_skips_by_reason() {
        let skips = "tshark\tcapture::one\tno tshark\ntshark\tcapture::two\tno tshark\ntshark\tcapture::two\tno tshark\n\
                     time\tkernel\tlate\n";
        let summary = Summary::new("0 41 lint\n1 120 unit\n", skips, |stage| match stage {
            "unit" => JUNIT.to_owned(),
            _ => String::new(),
        });
        assert!(summary.failed);
        let expected = "
What ran
  lint    41 s  passed
  unit   120 s  3 passed, 1 failed, 1 skipped

What was skipped, in whole or in part, and why
  time      late
              kernel
  tshark    no tshark
              capture::one
              capture::two

3 passed, 1 failed, 3 skipped
";
        assert_eq!(summary.text(), expected);
    }

    #[test]
    fn without_skips_it_says_so() {
        let summary = Summary::new("0 7 unit\n", "", |_| String::new());
        assert!(!summary.failed);
        assert!(summary.text().contains("and why\n  nothing\n\n0 passed, 0 failed, 0 skipped\n"));
    }
}
