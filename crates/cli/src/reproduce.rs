//! `farpath reproduce`: published beside reproduced.

use crate::args::ReproduceArgs;
use crate::error::CliError;
use crate::{Ending, interrupt, output, progress, run};
use farpath_report::html::ReportFile;
use farpath_report::papers::{self, Checked, Counts, Paper, Runs, check_paper};
use std::io::Write;

/// Checks the papers asked for and prints their claims; [`Ending::Failed`] where one does not come
/// out as its claim file says, or a run is void.
pub fn reproduce(args: &ReproduceArgs) -> Result<Ending, CliError> {
    if args.emulate {
        farpath_emulate::may_emulate().map_err(CliError::Emulation)?;
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
    let mut counts = Counts::default();
    for paper in &papers {
        let mut runs = Runs::default();
        runs.emulate = args.emulate;
        let checked = check(paper, &mut runs)?;
        counts.add(&Counts::of_checked(&checked));
        if args.json {
            let mut out = output::stdout();
            for one in &checked {
                writeln!(out, "{}", one.to_json())?;
            }
        } else {
            output::print(&format!("{}\n{}. {}.\n", paper.title, paper.authors, paper.published_in))?;
            output::print(&papers::render(&checked, output::width()))?;
        }
        if let Some(report) = report.take() {
            let figures = progress::during("drawing the figures", || {
                papers::figures(paper, &mut runs, interrupt::flag())
            });
            // What was interrupted has no figures, and is no fault.
            let figures = if interrupt::happened() { figures.unwrap_or_default() } else { figures? };
            report.finish(&papers::page(paper, &checked, figures, !interrupt::happened()).render())?;
        }
        if ending_of(&paper.id, &checked, runs.void()) == Ending::Failed {
            ending = Ending::Failed;
        }
        if interrupt::happened() {
            return Ok(Ending::Interrupted);
        }
    }
    if papers.len() > 1 && !args.json {
        output::print(&format!("{} papers: {counts}\n", papers.len()))?;
    }
    Ok(ending)
}

/// A difference that the claim file knows of is no failure; one that it does not, or an end of one, is. So is a run that is
/// void: so many, of so many.
fn ending_of(paper: &str, checked: &[Checked], (void, of): (usize, usize)) -> Ending {
    let mut ending = Ending::Done;
    for one in checked.iter().filter(|one| !one.is_as_recorded()) {
        let what = if one.what.is_empty() { &one.statement } else { &one.what };
        let Checked { claim, engine, verdict, recorded, .. } = one;
        eprintln!(
            "farpath: {paper}: {claim}, {}, {what}: recorded as `{recorded}`, now `{verdict}`",
            engine.name()
        );
        ending = Ending::Failed;
    }
    if void > 0 {
        run::say_void(void, of);
        ending = Ending::Failed;
    }
    ending
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
    drop(bar);
    result?;
    Ok(checked)
}

#[cfg(test)]
mod tests {
    use super::*;
    use farpath_report::papers::Verdict;
    use std::sync::atomic::AtomicBool;

    /// One check, 1/2 beside what is `published`, with these lines.
    fn checked(published: f64, lines: &str) -> Vec<Checked> {
        let text = format!(
            "title = 't'\nauthors = 'a'\npublished_in = 'p'\n[[claim]]\nid = 'R-01'\nstatement = 's'\n[[claim.check]]\n\
             engine = 'predict'\nformula = 'ratio'\nargs = {{ a = 1, b = 2 }}\npublished = {published}\n\
             rule = {{ decimals = 1 }}\n{lines}"
        );
        let paper = Paper::parse("some-paper", &text).expect("it is one");
        let mut checked = Vec::new();
        let all = check_paper(&paper, &mut Runs::default(), &AtomicBool::new(false), |one| checked.push(one));
        assert!(all.expect("it can be made"));
        checked
    }

    #[test]
    fn a_known_difference_is_no_failure_and_a_new_one_or_a_void_run_is() {
        let sum = "verdict = 'arithmetic'";
        let known = "verdict = 'differs'\nreason = 'its figure was drawn by hand'";
        for (published, lines, verdict, ending) in [
            (0.5, sum, Verdict::Arithmetic, Ending::Done),
            (0.7, sum, Verdict::Differs, Ending::Failed),
            (0.7, known, Verdict::Differs, Ending::Done),
            (0.5, known, Verdict::Reproduced, Ending::Failed),
        ] {
            let checked = checked(published, lines);
            assert_eq!(checked[0].verdict, verdict);
            assert_eq!(ending_of("some-paper", &checked, (0, 3)), ending, "{published} {lines}");
            assert_eq!(ending_of("some-paper", &checked, (1, 3)), Ending::Failed);
        }
    }
}
