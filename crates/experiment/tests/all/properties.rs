//! Whatever the text: no panic, and an error that names the file. Every stack reads back as written.

use farpath_experiment::{Experiment, Stack, shipped_experiments, to_toml};
use farpath_strategies::{Values, stacks};
use proptest::prelude::*;
use proptest::sample::select;

fn check(text: &str) {
    if let Err(error) = Experiment::parse(text, "some.toml", &[]) {
        let message = error.to_string();
        assert!(message.starts_with("some.toml: "), "{message}");
    }
}

/// One change to a text: what becomes of the character or line at `place`.
#[derive(Debug, Clone)]
enum Edit {
    DropChar,
    PutChar(char),
    SwapChar(char),
    DropLine,
    RepeatLine,
    SwapLine(String),
}

fn edit() -> impl Strategy<Value = Edit> {
    let telling = select("\"[]{}=.,#-_%/ 09eE\n\\'xµ".chars().collect::<Vec<_>>());
    let lines = select(vec![
        "[sweep]",
        "[[path]]",
        "[[flow]]",
        "[sender]",
        "size = 1",
        "path = 1",
        "count = 0",
        "= =",
    ]);
    prop_oneof![
        Just(Edit::DropChar),
        telling.clone().prop_map(Edit::PutChar),
        telling.prop_map(Edit::SwapChar),
        any::<char>().prop_map(Edit::SwapChar),
        Just(Edit::DropLine),
        Just(Edit::RepeatLine),
        lines.prop_map(|line| Edit::SwapLine(line.to_owned())),
    ]
}

fn apply(text: &str, edit: &Edit, place: prop::sample::Index) -> String {
    let mut chars: Vec<char> = text.chars().collect();
    let mut lines: Vec<&str> = text.lines().collect();
    let (c, l) = (place.index(chars.len().max(1)), place.index(lines.len().max(1)));
    match edit {
        _ if text.is_empty() => return text.to_owned(),
        Edit::DropChar => drop(chars.remove(c)),
        Edit::PutChar(new) => chars.insert(c, *new),
        Edit::SwapChar(new) => chars[c] = *new,
        Edit::DropLine => drop(lines.remove(l)),
        Edit::RepeatLine => lines.insert(l, lines[l]),
        Edit::SwapLine(new) => lines[l] = new,
    }
    match edit {
        Edit::DropChar | Edit::PutChar(_) | Edit::SwapChar(_) => chars.into_iter().collect(),
        Edit::DropLine | Edit::RepeatLine | Edit::SwapLine(_) => lines.join("\n"),
    }
}

proptest! {
    #[test]
    fn a_stack_reads_back_as_written(stack in stacks(Values::Any)) {
        let text = format!("title = \"T\"\n{}", to_toml(&stack));
        let read = Stack::parse(&text, "t.toml").map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert_eq!(read.config, stack.config);
    }

    #[test]
    fn any_text_is_read_or_refused(text in any::<String>()) {
        check(&text);
    }

    #[test]
    fn text_that_looks_like_toml_is_read_or_refused(text in "([a-z.\"\\[\\]{}=, 0-9%]{0,12}\n){0,12}") {
        check(&text);
    }

    #[test]
    fn a_spoilt_experiment_is_read_or_refused(
        file in 0..shipped_experiments().len(),
        edits in prop::collection::vec((edit(), any::<prop::sample::Index>()), 1..4),
    ) {
        let mut text = shipped_experiments()[file].text.to_owned();
        for (edit, place) in &edits {
            text = apply(&text, edit, *place);
        }
        check(&text);
    }

    #[test]
    fn any_override_is_taken_or_refused(
        key in "(path|path.loss|path.loss.rate|sender|sender.rto|flow.0|sweep|sweep.seed|seed)(.[a-z]{1,4}){0,2}",
        value in "([0-9a-z%\\[\\]{}=, \"]{1,8})",
    ) {
        let text = shipped_experiments()[1].text;
        if let Ok(change) = format!("{key}={value}").parse()
            && let Err(error) = Experiment::parse(text, "some.toml", &[change])
        {
            prop_assert!(error.to_string().starts_with("some.toml: "), "{}", error);
        }
    }
}
