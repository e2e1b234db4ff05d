//! The claims of papers, as data, beside what Farpath makes of them.
//!
//! A paper is a folder of `papers/` with a `claims.toml` and the experiments that it names. A check
//! takes one number, or a list, from a closed form or from runs, and holds it against a rule. What is
//! reproduced is always computed; a claim file holds only what was printed and how close is close.

mod check;
mod metric;
mod number;
mod rule;

pub use check::{Checked, Runs, Verdict, check_paper};
pub use rule::Rule;

use include_dir::{Dir, include_dir};
use number::Numbers;
use serde::Deserialize;
use std::collections::BTreeMap;

static PAPERS: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/../../papers");

/// A paper and its claims.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paper {
    /// Name of its folder; what the command line calls it.
    #[serde(skip)]
    pub id: String,
    /// Title, as printed.
    pub title: String,
    /// Who wrote it.
    pub authors: String,
    /// Where and when it appeared.
    pub published_in: String,
    /// What it says.
    #[serde(rename = "claim")]
    pub claims: Vec<Claim>,
}

/// One thing that a paper says.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// Stable identifier.
    pub id: String,
    /// In the paper's words, shortened.
    pub statement: String,
    /// What a reader of the verdict should know.
    #[serde(default)]
    pub reason: String,
    /// What is wrong in the paper. With it, the checks hold what is right.
    pub erratum: Option<String>,
    /// How it is checked; one line of the answer each.
    #[serde(rename = "check")]
    pub checks: Vec<Check>,
}

/// Who answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CheckEngine {
    /// A closed form.
    Predict,
    /// Simulated runs.
    Simulate,
    /// The Linux kernel over an emulated path.
    Emulate,
    /// The Linux kernel over a real path.
    Measure,
    /// A codec.
    Codec,
}

impl CheckEngine {
    /// As files and tables spell it.
    pub const fn name(self) -> &'static str {
        match self {
            CheckEngine::Predict => "predict",
            CheckEngine::Simulate => "simulate",
            CheckEngine::Emulate => "emulate",
            CheckEngine::Measure => "measure",
            CheckEngine::Codec => "codec",
        }
    }
}

/// How a claim is checked: where the number comes from, and when it is near enough.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// Who answers.
    pub engine: CheckEngine,
    /// What the number is, where the statement leaves that open.
    #[serde(default)]
    pub what: String,
    /// A closed form by its name in the registry of formulas ...
    pub formula: Option<String>,
    /// ... and its arguments, in SI units.
    #[serde(default)]
    pub args: BTreeMap<String, f64>,
    /// An experiment: a file of the paper's folder, or a shipped one by name ...
    pub experiment: Option<String>,
    /// ... with these changes ...
    #[serde(default)]
    pub set: BTreeMap<String, toml::Value>,
    /// ... and what is taken from each of its points.
    pub metric: Option<String>,
    /// What is taken over the seeds of a point.
    #[serde(default)]
    pub over_seeds: OverSeeds,
    /// What is taken over the points.
    #[serde(default)]
    pub over_points: OverPoints,
    /// The moment or span that the metric is about.
    pub time: Option<String>,
    /// What was printed.
    pub published: Option<Numbers>,
    /// What should have been printed, where the paper is wrong; the rule is held against this.
    pub correct: Option<Numbers>,
    /// When it is near enough.
    #[serde(default)]
    pub rule: Rule,
    /// Why it is not run, where this version cannot.
    pub not_run: Option<String>,
}

/// How the seeds of one point become one number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OverSeeds {
    /// Their mean.
    #[default]
    Mean,
    /// The smallest.
    Min,
    /// The largest.
    Max,
    /// The largest less the smallest.
    Spread,
}

/// How the points of a sweep become the answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OverPoints {
    /// One number a point.
    #[default]
    Each,
    /// The last point less the first.
    Difference,
    /// The last point over the first.
    Ratio,
    /// The largest less the smallest.
    Spread,
}

/// Why a paper cannot be checked: a fault of its claim file, or of an experiment that it names.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PaperError {
    /// No such paper.
    #[error("no paper is called `{name}`; there are: {known}")]
    Unknown {
        /// As asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// A claim file that is not as it should be.
    #[error("papers/{paper}/claims.toml: {source}")]
    Claims {
        /// The paper.
        paper: String,
        /// What is wrong.
        source: Box<toml::de::Error>,
    },
    /// A check that cannot be made as it is written.
    #[error("papers/{paper}/claims.toml: {claim}: {problem}")]
    Check {
        /// The paper.
        paper: String,
        /// The claim.
        claim: String,
        /// What is wrong.
        problem: String,
    },
}

/// The papers that ship, by name.
pub fn papers() -> Result<Vec<Paper>, PaperError> {
    let mut papers = Vec::new();
    for folder in PAPERS.dirs() {
        let id = folder.path().display().to_string();
        let Some(text) = folder.get_file(folder.path().join("claims.toml")).and_then(|f| f.contents_utf8())
        else {
            continue;
        };
        let mut paper: Paper = toml::from_str(text)
            .map_err(|source| PaperError::Claims { paper: id.clone(), source: Box::new(source) })?;
        paper.id = id;
        papers.push(paper);
    }
    papers.sort_by(|a, b| a.id.cmp(&b.id));
    Ok(papers)
}

/// The paper of this name.
pub fn paper(name: &str) -> Result<Paper, PaperError> {
    let papers = papers()?;
    let known = papers.iter().map(|paper| paper.id.as_str()).collect::<Vec<_>>().join(", ");
    papers
        .into_iter()
        .find(|paper| paper.id == name)
        .ok_or_else(|| PaperError::Unknown { name: name.to_owned(), known })
}

/// The text of a file of a paper's folder.
fn file_of(paper: &str, name: &str) -> Option<&'static str> {
    PAPERS.get_file(format!("{paper}/{name}.toml"))?.contents_utf8()
}
