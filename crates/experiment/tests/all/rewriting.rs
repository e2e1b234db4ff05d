//! A file with changes written into it: what stays, what is marked, and that it reads back to the same experiment.

use farpath_experiment::{Experiment, Override, shipped_experiments};

const FILE: &str = r#"# Our link, measured in May.
title = "A relay"
seeds = 5                      # enough

[[path]]
element = "link"
rate = "2 Mbit/s"              # contract
queue = "64 kB"

[[path]]
element = "loss"
rate = "1 %"

[sender]
stack = "rfc-5681"
send.window_scaling = true     # for later

[transfer]
size = "1 MB"

# What if.
[sweep]
"path.link" = ["1 Mbit/s", "2 Mbit/s"]
[published]
source = "nobody"
transfer_time = ["1 s", "2 s"]
"#;

fn overrides(texts: &[&str]) -> Vec<Override> {
    texts.iter().map(|text| text.parse().expect("a change")).collect()
}

fn rewritten(text: &str, point: usize, changes: &[&str]) -> String {
    let experiment = Experiment::parse(text, "relay.toml", &[]).expect("the file is sound");
    let changes = overrides(changes);
    let text = experiment.rewritten(point, &changes, &["By hand.".to_owned()]).expect("the changes fit");
    let read = Experiment::parse(&text, "relay.toml", &[]).expect("what is written can be read");
    let only = experiment.only(point, &changes).expect("the changes fit");
    assert_eq!(read.point(0).scenario, only.point(0).scenario, "{text}");
    assert_eq!(read.points().len(), 1, "{text}");
    text
}

#[test]
fn comments_and_order_stay_and_changes_are_marked() {
    let text = rewritten(
        FILE,
        0,
        &[
            "path.link.queue=140 kB",
            "sender.recovery.sack=true",
            "receiver.recovery.sack=true",
            "sender.send.window_scaling=false",
        ],
    );
    let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
    assert_eq!(
        lines,
        [
            "# By hand.",
            "# Our link, measured in May.",
            "title = \"A relay\"",
            "seeds = 5                      # enough",
            "[[path]]",
            "element = \"link\"",
            "# changed; was 2 Mbit/s",
            "rate = \"1 Mbit/s\"              # contract",
            "# changed; was 64 kB",
            "queue = \"140 kB\"",
            "[[path]]",
            "element = \"loss\"",
            "rate = \"1 %\"",
            "[sender]",
            "stack = \"rfc-5681\"",
            "# changed; was true",
            "send.window_scaling = false     # for later",
            "# changed; was not given",
            "recovery.sack = true",
            "[transfer]",
            "size = \"1 MB\"",
            "[receiver]",
            "# changed; was not given",
            "recovery.sack = true",
        ],
        "{text}"
    );
}

#[test]
fn a_value_for_both_directions_becomes_one_for_each() {
    let text = rewritten(FILE, 1, &["path.loss.rate.forward=2 %"]);
    assert!(text.contains("rate = { forward = \"2 %\", reverse = \"1 %\" }"), "{text}");
    // The second point is what the file says already: nothing to mark there.
    assert_eq!(text.matches("# changed").count(), 0, "{text}");
}

#[test]
fn inline_elements_and_flows_are_changed_in_place() {
    let file = r#"title = "Two"
path = [{ element = "link", rate = "1 Mbit/s" }, { element = "delay", delay = "10 ms" }]
[transfer]
size = "1 MB"
[[flow]]
count = 2
"#;
    let text = rewritten(file, 0, &["path.delay=20 ms", "flow.0.count=3", "path.link.queue=5 packets"]);
    assert!(text.contains("delay = \"20 ms\"") && text.contains("queue = \"5 packets\""), "{text}");
    assert!(text.contains("# changed; was 2\ncount = 3"), "{text}");
}

#[test]
fn every_shipped_experiment_can_be_rewritten_at_its_last_point() {
    for file in shipped_experiments() {
        let experiment = Experiment::parse(file.text, file.name, &[]).expect("shipped");
        let last = experiment.points().len() - 1;
        // An element of a ready-made path is changed too, where the path is one: its elements take its place.
        for element in &experiment.point(last).scenario.path {
            let changes = overrides(&["sender.rto.initial=2 s", "horizon=3 h"]);
            let name = format!("path.{}.name={}", element.name, element.name);
            let changes = [changes, overrides(&[&name])].concat();
            let text = experiment.rewritten(last, &changes, &[]).unwrap_or_else(|error| {
                panic!("{}: {error}", file.name);
            });
            assert!(text.contains("[[path]]"), "{text}");
        }
    }
}

#[test]
fn changes_that_do_not_fit_are_refused() {
    let experiment = Experiment::parse(FILE, "relay.toml", &[]).expect("sound");
    let error = experiment.rewritten(0, &overrides(&["path.lnk.queue=1 kB"]), &[]).unwrap_err();
    assert!(error.to_string().contains("lnk"), "{error}");
    let error = experiment.only(2, &[]).unwrap_err();
    assert_eq!(error.to_string(), "relay.toml: sweep: there is no point 2; they are 0 to 1");
}
