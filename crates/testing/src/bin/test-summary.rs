//! `make test` ends with this: what ran, and what was skipped and why.
//!
//! `test-summary FOLDER`: the folder has `stages`, a line of status and name for each stage that ended, `skips`
//! ([`farpath_testing::SKIPS`]), and JUnit's XML of the test runners by the names of their stages, `NAME.xml`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let Some(folder) = std::env::args_os().nth(1) else {
        eprintln!("test-summary: expected the folder with what the stages left");
        return ExitCode::from(2);
    };
    let folder = Path::new(&folder);
    let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap_or_default();
    let summary = Summary::new(&read("stages"), &read("skips"), |stage| read(&format!("{stage}.xml")));
    print!("{}", summary.text());
    if summary.failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// What is said at the end.
struct Summary {
    /// Name, what came out.
    stages: Vec<(String, String)>,
    /// Need, reason; the tests that it stopped.
    skips: BTreeMap<(String, String), Vec<String>>,
    passed: u64,
    failures: u64,
    failed: bool,
}

impl Summary {
    fn new(stages: &str, skips: &str, junit: impl Fn(&str) -> String) -> Summary {
        let mut summary = Summary {
            stages: Vec::new(),
            skips: BTreeMap::new(),
            passed: 0,
            failures: 0,
            failed: false,
        };
        for line in stages.lines() {
            let (status, name) = line.split_once(' ').unwrap_or(("?", line));
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
            summary.stages.push((name.to_owned(), outcome));
        }
        for line in skips.lines() {
            let mut parts = line.splitn(3, '\t').map(str::to_owned);
            let (Some(need), Some(test), Some(why)) = (parts.next(), parts.next(), parts.next()) else { continue };
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
        let widest = self.stages.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        for (name, outcome) in &self.stages {
            text += &format!("  {name:widest$}  {outcome}\n");
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
        (!suites.is_empty()).then(|| Counts { tests: sum("tests"), failures, skipped: sum("skipped") + sum("disabled") })
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
        let summary = Summary::new("0 lint\n1 unit\n", skips, |stage| match stage {
            "unit" => JUNIT.to_owned(),
            _ => String::new(),
        });
        assert!(summary.failed);
        let expected = "
What ran
  lint  passed
  unit  3 passed, 1 failed, 1 skipped

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
        let summary = Summary::new("0 unit\n", "", |_| String::new());
        assert!(!summary.failed);
        assert!(summary.text().contains("and why\n  nothing\n\n0 passed, 0 failed, 0 skipped\n"));
    }
}
