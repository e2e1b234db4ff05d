//! `farpath formula`: closed forms by name.

use crate::args::FormulaArgs;
use crate::error::CliError;
use crate::{Ending, output};
use farpath_report::formulas::{Formulas, list};

/// `farpath formula`
pub fn formula(args: &FormulaArgs) -> Result<Ending, CliError> {
    let Some(names) = &args.names else {
        output::print_table(&list(), args.format)?;
        return Ok(Ending::Done);
    };
    let formulas = Formulas::named(names.split(','))?;
    if args.given.is_empty() && !formulas.needs_nothing() && !args.json {
        output::print(&formulas.describe())?;
        return Ok(Ending::Done);
    }
    let evaluated = formulas.evaluate(&args.given)?;
    if args.json {
        for row in evaluated.json() {
            output::print(&row.to_string())?;
        }
    } else {
        output::print_table(&evaluated.table(), args.format)?;
    }
    Ok(Ending::Done)
}
