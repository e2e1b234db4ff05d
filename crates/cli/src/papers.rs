//! `farpath papers`: published beside reproduced.

use crate::args::PapersArgs;
use crate::error::CliError;
use crate::{Ending, interrupt, output, progress};
use farpath_report::html::ReportFile;
use farpath_report::papers::{self, Checked, Paper, Runs, Verdict, check_paper};
use std::io::Write;

/// Checks the papers asked for and prints their claims; [`Ending::Failed`] where one differs.
pub fn papers(args: &PapersArgs) -> Result<Ending, CliError> {
    if args.emulate {
        farpath_engine::may_emulate().map_err(CliError::Emulation)?;
    }
    let papers: Vec<Paper> = match args.ids.as_slice() {
        [] => papers::papers()?,
        ids => ids.iter().map(|id| papers::paper(id)).collect::<Result<_, _>>()?,
    };
    if args.list {
        for paper in &papers {
            output::print(&format!(
                "{}  {}. {}. {}",
                paper.id, paper.authors, paper.title, paper.published_in
            ))?;
        }
        return Ok(Ending::Done);
    }
    let mut report = match (&args.report, papers.as_slice()) {
        (Some(path), [_]) => Some(ReportFile::create(path)?),
        (Some(_), _) => return Err(CliError::OnePaper(papers.len())),
        (None, _) => None,
    };
    let mut ending = Ending::Done;
    for paper in &papers {
        let mut runs = Runs::default();
        runs.emulate = args.emulate;
        let checked = check(paper, &mut runs)?;
        if let Some(report) = report.take() {
            let figures = papers::figures(paper, &mut runs, interrupt::flag());
            // What was interrupted has no figures, and is no fault.
            let figures = if interrupt::happened() { figures.unwrap_or_default() } else { figures? };
            report.finish(&papers::page(paper, &checked, figures, !interrupt::happened()).render())?;
        }
        if args.json {
            let mut out = output::stdout();
            for one in &checked {
                writeln!(out, "{}", one.to_json())?;
            }
        } else {
            output::print(&format!("{}\n{}. {}.\n", paper.title, paper.authors, paper.published_in))?;
            output::print(&papers::render(&checked, output::width()))?;
        }
        if checked.iter().any(|one| one.verdict == Verdict::Differs) {
            ending = Ending::Failed;
        }
        if interrupt::happened() {
            return Ok(Ending::Interrupted);
        }
    }
    Ok(ending)
}

/// As many checks as could be made before Ctrl-C.
fn check(paper: &Paper, runs: &mut Runs) -> Result<Vec<Checked>, CliError> {
    let total = paper.claims.iter().map(|claim| claim.checks.len() as u64).sum();
    let bar = progress::bar(total, "checks");
    let mut checked = Vec::new();
    let result = check_paper(paper, runs, interrupt::flag(), |one| {
        bar.inc(1);
        checked.push(one);
    });
    bar.finish_and_clear();
    result?;
    Ok(checked)
}
