//! What stands between `%{` and `}%`: assertions, in the subset of Python that they are written in.

mod lexer;
mod tree;
mod value;

pub use value::Value;

use tree::{Evaluation, Statement};

/// What became of a block of code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CodeOutcome {
    /// Every assertion holds. What it printed.
    Holds(String),
    /// An assertion does not.
    Fails {
        /// Line within the block, from 0.
        line: u32,
        /// The assertion as it is written.
        assertion: String,
        /// Its message, if it has one.
        message: Option<String>,
    },
    /// It is beyond the subset, or does not go.
    Beyond {
        /// Line within the block, from 0.
        line: u32,
        /// What was expected and found.
        problem: String,
    },
}

/// Runs a block; `lookup` knows the values of names.
pub fn run(text: &str, lookup: &dyn Fn(&str) -> Option<Value>) -> CodeOutcome {
    let beyond = |(line, problem)| CodeOutcome::Beyond { line, problem };
    let statements = match tree::parse(text) {
        Ok(statements) => statements,
        Err(error) => return beyond(error),
    };
    let mut evaluation = Evaluation::new(lookup);
    let mut printed = String::new();
    for (line, statement) in statements {
        let ended = match statement {
            Statement::Assert { condition, message, text } => match evaluation.value(&condition) {
                Ok(value) if value.is_true() => Ok(()),
                Ok(_) => {
                    return match message.map(|message| evaluation.value(&message)).transpose() {
                        Ok(message) => {
                            let message = message.map(|message| message.to_string());
                            CodeOutcome::Fails { line, assertion: text, message }
                        }
                        Err(problem) => CodeOutcome::Beyond { line, problem },
                    };
                }
                Err(problem) => Err(problem),
            },
            Statement::Assign(name, expression) => {
                evaluation.value(&expression).and_then(|value| evaluation.set(name, value))
            }
            Statement::Expression(expression) => evaluation.value(&expression).map(|_| ()),
            Statement::Print(parts) => parts
                .iter()
                .map(|part| evaluation.value(part).map(|value| value.to_string()))
                .collect::<Result<Vec<_>, _>>()
                .map(|words| {
                    printed.push_str(&words.join(" "));
                    printed.push('\n');
                }),
        };
        if let Err(problem) = ended {
            return CodeOutcome::Beyond { line, problem };
        }
    }
    CodeOutcome::Holds(printed)
}

/// Whether a block is within the subset; else the line in it, from 0, and what is not.
pub fn check(text: &str) -> Result<(), (u32, String)> {
    tree::parse(text).map(|_| ())
}
