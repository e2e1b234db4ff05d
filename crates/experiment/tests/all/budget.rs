//! `[budget]`: what a computed run may use up.

use farpath_experiment::{Experiment, RunBudget};

const FILE: &str = "title = \"T\"\npath = \"geo\"\ntransfer.size = \"1 MB\"\n";

fn budget(changes: &[&str]) -> Result<RunBudget, String> {
    let changes: Vec<_> = changes.iter().map(|text| text.parse().expect("key=value")).collect();
    let experiment = Experiment::parse(FILE, "e.toml", &changes);
    experiment.map(|experiment| experiment.point(0).scenario.budget).map_err(|error| error.to_string())
}

#[test]
fn a_budget_is_left_to_the_engine_or_said() {
    assert_eq!(budget(&[]), Ok(RunBudget::default()));
    assert_eq!(budget(&["budget.events=auto"]), Ok(RunBudget::default()));
    let said =
        RunBudget { events: Some(5_000), events_at_one_instant: Some(70), packets: Some(9), rows: Some(8) };
    let changes =
        ["budget.events=5000", "budget.events_at_one_instant=70", "budget.packets=9", "budget.rows=8"];
    assert_eq!(budget(&changes), Ok(said));
}

#[test]
fn a_budget_of_nothing_is_refused() {
    for key in ["events", "events_at_one_instant", "packets", "rows"] {
        let why = budget(&[&format!("budget.{key}=0")]).expect_err("nothing runs");
        assert!(why.starts_with(&format!("e.toml: budget.{key} (--set): expected at least 1")), "{why}");
    }
    let why = budget(&["budget.event=5"]).expect_err("no such key");
    assert!(why.contains("budget.event") && why.contains("`events`"), "{why}");
}
