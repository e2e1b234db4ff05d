//! A paper as a page: its claims, and its figures.

use super::check::Checked;
use super::claim::Paper;
use super::number::Numbers;
use super::render::{reasons, verdict_text};
use super::verdict::{Counts, Verdict};
use crate::html::{Block, Figure, Page, Section};
use crate::table::Table;

/// The page of a paper: what was checked, and the figures drawn from simulation. `complete` says whether that is all.
pub fn page(paper: &Paper, checked: &[Checked], figures: Vec<Figure>, complete: bool) -> Page {
    let mut first = Vec::new();
    if !complete {
        let line = "Interrupted: not all of its claims were checked, and figures may be missing.".to_owned();
        first.push(Block::Notice("Not the whole paper".to_owned(), vec![line]));
    }
    first.push(Block::Short(vec![
        format!("{}. {}.", paper.authors, paper.published_in),
        format!("{}.", Counts::of_checked(checked)),
    ]));
    let numbers = |numbers: &Option<Numbers>| numbers.as_ref().map(Numbers::to_string);
    let column = |of: &dyn Fn(&Checked) -> Option<String>| checked.iter().map(of).collect::<Vec<_>>();
    let what = |check: &Checked| {
        Some(if check.what.is_empty() { check.statement.clone() } else { check.what.clone() })
    };
    let claims = Table::from_texts([
        ("claim", column(&|check| Some(check.claim.clone()))),
        ("what", column(&what)),
        ("by", column(&|check| Some(check.engine.name().to_owned()))),
        ("published", column(&|check| numbers(&check.published))),
        ("reproduced", column(&|check| numbers(&check.reproduced))),
        ("rule", column(&|check| Some(check.rule.clone()))),
        ("verdict", column(&|check| Some(verdict_text(check)))),
    ]);
    let reasons: Vec<(String, Vec<String>)> = reasons(checked)
        .into_iter()
        .map(|(claim, verdict, reason)| (format!("{claim}, {verdict}"), vec![reason.to_owned()]))
        .collect();
    let meanings =
        Verdict::ALL.iter().filter(|verdict| checked.iter().any(|check| check.verdict == **verdict));
    let meanings = meanings.map(|verdict| (verdict.name().to_owned(), vec![verdict.meaning().to_owned()]));
    let mut sections = vec![Section { title: String::new(), blocks: first }];
    if !figures.is_empty() {
        let blocks = figures.into_iter().map(Block::Figure).collect();
        sections.push(Section { title: "Figures".to_owned(), blocks });
    }
    sections.push(Section { title: "Claims".to_owned(), blocks: vec![Block::Table(claims)] });
    sections.push(Section { title: "Verdicts".to_owned(), blocks: vec![Block::Facts(meanings.collect())] });
    if !reasons.is_empty() {
        sections.push(Section {
            title: "Errata, what was fitted, and what differs".to_owned(),
            blocks: vec![Block::Facts(reasons)],
        });
    }
    let kind = format!("Farpath {} · paper", env!("CARGO_PKG_VERSION"));
    Page { title: paper.title.clone(), kind, sections }
}
