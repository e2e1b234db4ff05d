//! Texts as users write them: experiments, stacks, configurations of a router, and changes beside a file.

use farpath_experiment::{Experiment, Override, RouterConfig, Stack};

/// The first byte says what the rest is.
pub fn texts(data: &[u8]) {
    let Some((&kind, text)) = data.split_first() else { return };
    let Ok(text) = str::from_utf8(text) else { return };
    // Ten million points take their time, and are allowed; so are files beside this one.
    let long = [" by ", " times ", "points", "/", ".toml"];
    if kind % 4 != 1 && long.iter().any(|word| text.contains(word)) {
        return;
    }
    let origin = "some.toml";
    let error = match kind % 4 {
        0 => Experiment::parse(text, origin, &[]).map(|experiment| again(&experiment)).err(),
        1 => Stack::parse(text, origin).map(|stack| resolved(&stack)).err(),
        2 => RouterConfig::parse(text, origin).err(),
        _ => {
            let (change, text) = text.split_once('\n').unwrap_or((text, ""));
            let Ok(change) = change.parse::<Override>() else { return };
            Experiment::parse(text, origin, &[change]).err()
        }
    };
    if let Some(error) = error {
        let message = error.to_string();
        assert!(message.starts_with("some.toml: "), "{message}");
    }
}

/// What is read once is read again, at each point.
fn again(experiment: &Experiment) {
    for point in experiment.points().take(3) {
        let only = experiment.only(point.index, &[]).expect("a point of it is an experiment");
        assert_eq!(only.point(0).scenario, point.scenario, "point {}", point.index);
    }
}

/// A stack that is written out reads back.
fn resolved(stack: &Stack) {
    let text = format!("title = \"T\"\n{}", stack.to_toml());
    let read = Stack::parse(&text, "resolved.toml").expect("what we write, we read");
    assert_eq!((read.config, read.linux), (stack.config.clone(), stack.linux.clone()));
}
