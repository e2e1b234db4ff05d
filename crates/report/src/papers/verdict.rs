//! The kinds of verdict: one list for claim files, tables, pages, JSON and the guide.

use super::check::Checked;
use super::claim::Paper;
use core::fmt;
use serde::Deserialize;

macro_rules! verdicts {
    ($($(#[doc = $doc:literal])+ $kind:ident = $name:literal, $one:literal, $many:literal;)+) => {
        /// What a check says of its claim.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
        pub enum Verdict {
            $($(#[doc = $doc])+ #[serde(rename = $name)] $kind,)+
        }

        impl Verdict {
            /// All of them, in the order in which they are counted.
            pub const ALL: &'static [Verdict] = &[$(Verdict::$kind),+];

            /// As files, tables and JSON spell it.
            pub const fn name(self) -> &'static str {
                match self { $(Verdict::$kind => $name,)+ }
            }

            /// As it is counted: one of them, or more.
            pub const fn counted(self, count: usize) -> &'static str {
                match self { $(Verdict::$kind => if count == 1 { $one } else { $many },)+ }
            }

            /// What it means, in one line.
            pub const fn meaning(self) -> &'static str {
                match self { $(Verdict::$kind => concat!($($doc),+),)+ }
            }
        }
    };
}

verdicts! {
    /// The rule holds.
    Reproduced = "reproduced", "reproduced", "reproduced";
    /// The rule holds, and a free parameter was chosen so that it does.
    Fitted = "fitted", "fitted", "fitted";
    /// The rule holds, and what it holds is no more than a sum, difference, product or quotient of printed numbers.
    Arithmetic = "arithmetic", "arithmetic", "arithmetic";
    /// The paper is shown wrong: what is right was found, and it is not what is printed.
    Erratum = "erratum", "erratum", "errata";
    /// What is printed does not come out by one reading and can be meant by another; the paper does not say which.
    Unclear = "unclear in the paper", "unclear in the paper", "unclear in the paper";
    /// The rule holds for some of its numbers and not for all.
    InPart = "in part", "in part", "in part";
    /// The rule does not hold.
    Differs = "differs", "differs", "differ";
    /// It was not run: this version cannot, or was not asked to.
    NotRun = "not run", "not run", "not run";
}

impl Verdict {
    /// Whether the rule holds for every number that is compared: nothing of the claim is in doubt.
    pub const fn holds(self) -> bool {
        matches!(self, Verdict::Reproduced | Verdict::Fitted | Verdict::Arithmetic)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// So many checks of each verdict, and how many have a published number.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    of: [usize; Verdict::ALL.len()],
    published: usize,
    unrecorded: usize,
}

impl Counts {
    /// Of checks that were made. What is not as its claim file says is counted apart, under no verdict.
    pub fn of_checked(checked: &[Checked]) -> Counts {
        let mut counts = Counts::default();
        for check in checked {
            counts.published += usize::from(check.published.is_some());
            match check.is_as_recorded() {
                true => counts.of[check.verdict as usize] += 1,
                false => counts.unrecorded += 1,
            }
        }
        counts
    }

    /// Of the checks of a paper as its claim file records them, the running kernel's among them.
    pub fn recorded(paper: &Paper) -> Counts {
        let mut counts = Counts::default();
        for check in paper.claims.iter().flat_map(|claim| &claim.checks) {
            counts.published += usize::from(check.printed().is_some());
            counts.of[check.recorded() as usize] += 1;
        }
        counts
    }

    /// These and those together.
    pub fn add(&mut self, other: &Counts) {
        for (own, other) in self.of.iter_mut().zip(other.of) {
            *own += other;
        }
        self.published += other.published;
        self.unrecorded += other.unrecorded;
    }

    /// How many of this verdict.
    pub fn with(&self, verdict: Verdict) -> usize {
        self.of[verdict as usize]
    }

    /// How many in all.
    pub fn checks(&self) -> usize {
        self.of.iter().sum::<usize>() + self.unrecorded
    }

    /// How many have a number that the paper prints.
    pub fn published(&self) -> usize {
        self.published
    }
}

/// `61 reproduced, 14 errata, 1 differs, 2 not run; 60 of 78 have a published number`; what there is none of is
/// not named.
impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counted = |(verdict, count): (&Verdict, &usize)| format!("{count} {}", verdict.counted(*count));
        let mut parts: Vec<String> =
            Verdict::ALL.iter().zip(&self.of).filter(|(_, count)| **count > 0).map(counted).collect();
        if self.unrecorded > 0 {
            parts.push(format!("{} not as recorded", self.unrecorded));
        }
        let checks = self.checks();
        let plural = if checks == 1 { "has" } else { "have" };
        parts.push(format!("{} of {checks} {plural} a published number", self.published));
        let last = parts.pop().unwrap_or_default();
        match parts.is_empty() {
            true => f.pad(&last),
            false => f.pad(&format!("{}; {last}", parts.join(", "))),
        }
    }
}
