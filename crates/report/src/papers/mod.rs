//! The claims of papers, as data, beside what Farpath makes of them.
//!
//! A paper is a folder of `papers/` with a `claims.toml` and the experiments that it names. A check
//! takes one number, or a list, from a closed form, from runs or from a stack, and holds it against a
//! rule. What is reproduced is always computed; a claim file holds only what was printed, what is right
//! where that is wrong, and how close is close.

mod check;
mod claim;
mod closed_forms;
mod codec;
mod exchange;
mod figures;
mod granted;
mod metric;
mod number;
mod page;
mod render;
mod reproduce;
mod rule;
mod timing;
mod verdict;

pub use check::{Checked, check_paper};
pub use claim::{Check, CheckEngine, Claim, OverPoints, OverSeeds, Paper};
pub use figures::figures;
pub use number::Numbers;
pub(crate) use number::readable;
pub use page::page;
pub use render::render;
pub use reproduce::Runs;
pub use rule::Rule;
pub use verdict::{Counts, Verdict};

use include_dir::{Dir, include_dir};

static PAPERS: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/../../papers");

/// Why a paper cannot be checked: a fault of its claim file, or of an experiment that it names.
#[derive(Debug, thiserror::Error)]
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
    /// A figure that cannot be drawn.
    #[error("papers/{paper}/figures.toml: {problem}")]
    Figures {
        /// The paper.
        paper: String,
        /// What is wrong.
        problem: String,
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
        if let Some(text) = file_of(&id, "claims") {
            papers.push(Paper::parse(&id, text)?);
        }
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
