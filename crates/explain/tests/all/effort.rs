//! How much is simulated for an answer, whatever the experiment does.

use crate::common::{ONE, explained, plain};
use farpath_experiment::Experiment;
use farpath_explain::Effort;

/// A SYN each microsecond, over a path of a day: it is stuck as it is, and whatever is changed.
const STUCK: &str = r#"
title = "No end"
horizon = "1000000 s"
[[path]]
element = "link"
rate = "10 Mbit/s"
queue = "64 kB"
[[path]]
element = "delay"
delay = "100000 s"
[sender]
stack = "rfc-5681"
[receiver]
stack = "rfc-5681"
handshake.syn_attempts = "unlimited"
rto.min = "1 us"
rto.initial = "1 us"
rto.max = "1 us"
[transfer]
size = "1 MB"
"#;

#[test]
fn what_never_ends_is_explained_within_the_events_that_there_are() {
    let events = 20_000_000;
    let experiment = Experiment::parse(STUCK, "stuck.toml", &[]).expect("it is one");
    let explanation = explained(&experiment, Effort { events, ..ONE });
    assert_eq!(explanation.observed.outcomes.get("stuck"), Some(&1));
    // The run as it is has a variant's budget; of the others there are fewer than a hundred.
    assert!(explanation.events > 20_000_000, "{}", explanation.events);
    assert!(explanation.events < 20_000_000 + 200 * 110_000, "{}", explanation.events);
    let caveat = explanation.caveats.iter().find(|caveat| caveat.contains("counts as stuck"));
    assert!(
        caveat.is_some_and(|caveat| caveat.starts_with("as it is, it is stuck")),
        "{:?}",
        explanation.caveats
    );
}

/// A program that takes a byte each 8 s, by windows of one byte: hundreds of events for each segment.
#[test]
fn where_segments_take_more_events_than_elsewhere_less_of_the_file_is_simulated() {
    let slow = plain(&[
        "receiver.receive.read_rate='8 kbit/s'",
        "receiver.receive.buffer='3 kB'",
        "horizon='1000000 s'",
    ]);
    let all = explained(&slow, ONE);
    assert_eq!(all.simulated_size, None);
    let events = all.events / 10;
    let part = explained(&slow, Effort { events, ..ONE });
    assert!(part.simulated_size.is_some_and(|size| size < 5_000_000), "{:?}", part.simulated_size);
    assert!(part.events < 2 * events, "{} of {events}", part.events);
}
