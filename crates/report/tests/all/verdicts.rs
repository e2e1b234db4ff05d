//! Verdicts: one list, and how many of each there are, on the page that says what they mean.
//!
//! With `FARPATH_BLESS=1` its tables are written anew.

use farpath_report::papers::{Counts, Verdict, papers};
use std::{env, fs};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/papers/verdicts.md");

fn meanings() -> Vec<String> {
    let row = |verdict: &Verdict| format!("| `{verdict}` | {} |", verdict.meaning().trim());
    let head = ["| verdict | meaning |", "| --- | --- |"].map(str::to_owned);
    head.into_iter().chain(Verdict::ALL.iter().map(row)).collect()
}

/// As the claim files record them: the tests of each paper hold that this is what comes out.
fn counts() -> Vec<String> {
    let names: Vec<String> = Verdict::ALL.iter().map(|verdict| verdict.to_string()).collect();
    let row = |paper: &str, claims: usize, counts: &Counts| {
        let of = Verdict::ALL.iter().map(|verdict| counts.with(*verdict).to_string());
        format!(
            "| {paper} | {claims} | {} | {} | {} |",
            counts.checks(),
            of.collect::<Vec<_>>().join(" | "),
            counts.published()
        )
    };
    let mut lines = vec![
        format!("| paper | claims | checks | {} | with a published number |", names.join(" | ")),
        format!("| --- {}|", "| --- ".repeat(names.len() + 3)),
    ];
    let (mut claims, mut all) = (0, Counts::default());
    for paper in papers().expect("they ship") {
        let counts = Counts::recorded(&paper);
        assert_eq!(counts.checks(), paper.claims.iter().map(|claim| claim.checks.len()).sum::<usize>());
        lines.push(row(&format!("[{0}]({0}.md)", paper.id), paper.claims.len(), &counts));
        claims += paper.claims.len();
        all.add(&counts);
    }
    lines.push(row("all", claims, &all));
    lines
}

#[test]
fn the_page_has_every_verdict_and_how_many_there_are() {
    let page = fs::read_to_string(PAGE).expect("the page is there");
    let mut renewed: Vec<String> = page.lines().map(str::to_owned).collect();
    for (name, table) in [("verdicts", meanings()), ("counts", counts())] {
        let mark = format!("<!-- generated: {name} -->");
        let start = renewed.iter().position(|line| *line == mark).unwrap_or_else(|| panic!("no {mark}")) + 1;
        let length = renewed[start..].iter().take_while(|line| line.starts_with('|')).count();
        renewed.splice(start..start + length, table);
    }
    let renewed = renewed.join("\n") + "\n";
    if env::var_os("FARPATH_BLESS").is_some() {
        fs::write(PAGE, renewed).expect("the page can be written");
    } else {
        assert_eq!(page, renewed, "FARPATH_BLESS=1 writes it anew");
    }
}
