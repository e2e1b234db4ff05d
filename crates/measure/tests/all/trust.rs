//! Peer hosts that lie: nothing of what they say is obeyed, kept or waited for without end.

use crate::common;

use common::relay::{Says, relayed, unchanged};
use common::{NEVER, experiment, peer, run, served, v4, with};
use farpath_experiment::Experiment;
use farpath_measure::serve::Limits;
use farpath_measure::{Exchanges, Family, MeasureError, Peer, burst, echo, exchange};
use farpath_run::{Outcome, Provenance};
use farpath_traffic::datagram::Echo;
use farpath_units::{Bytes, Duration};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};

const ESCAPES: &str = "\u{1b}]0;a\u{7}\u{1b}[2J\nseeds = 7\n\u{202e}";

/// How long is waited here for what does not come.
const GIVE_UP_AFTER: Duration = Duration::from_secs(2);

fn is_printable(text: &str) {
    assert!(text.chars().all(|c| !c.is_control() && c != '\u{202e}'), "{text:?}");
}

/// Measures with a peer of whose lines some are changed.
fn changed<T>(change: impl FnMut(Value) -> Says + Send, work: impl FnOnce(SocketAddr) -> T) -> T {
    let server = served(v4(), None, Limits::default());
    with(&server, |address| relayed(address, change, work)).0
}

#[test]
fn what_a_terminal_would_obey_is_written_in_escapes() {
    let change = |mut line: Value| {
        for (message, field) in
            [("greeting", "kernel"), ("greeting", "version"), ("welcome", "seen_as"), ("refused", "message")]
        {
            if line[message].is_object() {
                line[message][field] = ESCAPES.into();
            }
        }
        if line["ready"].is_object() {
            line["ready"]["unmatched"] = json!([ESCAPES]);
        }
        if let Some(values) = line.get_mut("kernel").and_then(Value::as_array_mut) {
            values.iter_mut().for_each(|value| value[1] = ESCAPES.into());
        }
        if line["ended"].is_object() {
            line["ended"]["end"]["outcome"] = "aborted".into();
            line["ended"]["end"]["detail"] = ESCAPES.into();
        }
        unchanged(line)
    };
    changed(change, |address| {
        let mut peer = peer(address);
        assert_eq!(peer.kernel().as_str(), ESCAPES);
        for said in [peer.kernel(), peer.version(), peer.seen_as()] {
            is_printable(&said.to_string());
        }
        let asked = experiment("transfer = { size = \"10 kB\", opener = \"sender\" }");
        let run = run(&mut peer, &asked).expect("measured");
        let provenance = &run.provenance;
        provenance.caveats.iter().chain(&provenance.settings).for_each(|line| is_printable(line));
        assert!(provenance.caveats.iter().any(|line| line.contains("\\u{1b}]0;a")), "{provenance:?}");
        assert_eq!(run.flows[0].outcome, Outcome::Aborted);
        is_printable(&run.flows[0].detail);
        // More than it has left: it refuses in its own words.
        let asked = experiment("transfer = { size = \"30 GB\", opener = \"sender\" }");
        let error = common::run(&mut peer, &asked).expect_err("too much");
        assert!(matches!(error, MeasureError::Denied { .. }), "{error}");
        is_printable(&error.to_string());
    });
    let change = |mut line: Value| {
        (line["greeting"]["farpath"], line["greeting"]["version"]) = (99.into(), ESCAPES.into());
        unchanged(line)
    };
    changed(change, |address| {
        let error = Peer::connect(&address.to_string(), Family::Any, None, &NEVER).expect_err("another one");
        assert!(matches!(error, MeasureError::Version { .. }), "{error}");
        is_printable(&error.to_string());
    });
    // A word of it is in the error.
    changed(
        |_| unchanged(json!({ ESCAPES: 1 })),
        |address| {
            let error =
                Peer::connect(&address.to_string(), Family::Any, None, &NEVER).expect_err("no greeting");
            is_printable(&error.to_string());
        },
    );
}

/// `more: true` for ever took 1.2 GB in 18 s.
#[test]
fn reports_of_datagrams_have_an_end() {
    for arrivals in [vec![json!([1, 2, 3]); 1000], vec![]] {
        let change = |line: Value| match line["datagrams"]["flow"].as_u64() {
            Some(flow) => {
                let more = json!({ "flow": flow, "count": 1, "arrivals": arrivals, "more": true });
                Says::Forever(json!({ "datagrams": more }))
            }
            None => unchanged(line),
        };
        changed(change, |address| {
            let error = burst(&mut peer(address), true, 5000, Duration::ZERO, &NEVER).expect_err("too many");
            assert!(error.to_string().contains("more datagrams than were sent"), "{error}");
        });
    }
}

#[test]
fn rows_messages_and_news_have_an_end() {
    let rows = json!({ "rows": { "flow": 0, "rows": vec![json!([1, "cwnd", 5]); 1000] } });
    let messages = json!({ "messages": { "flow": 0, "at_ns": vec![7; 1000] } });
    let nobodys = json!({ "rows": { "flow": 77, "rows": [[1, "cwnd", 5]] } });
    let failed = json!({ "refused": { "why": "cannot", "message": "no", "flow": 77 } });
    for (at, forever, said) in [
        ("ended", rows.clone(), "more rows to tell"),
        ("ended", messages, "more messages to tell"),
        ("ended", nobodys, "it does not say how its end"),
        ("ready", rows, "nothing of what it was asked for"),
        ("ready", failed, "nothing of what it was asked for"),
    ] {
        let change = |line: Value| match line[at].is_object() {
            true => Says::Forever(forever.clone()),
            false => unchanged(line),
        };
        changed(change, |address| {
            let mut peer = peer(address).waiting(GIVE_UP_AFTER);
            let asked = experiment("transfer = { size = \"10 kB\", opener = \"sender\" }");
            let error = run(&mut peer, &asked).map(drop).expect_err("there is no end to it");
            assert!(error.to_string().contains(said), "{at}: {error}");
        });
    }
}

#[test]
fn a_rate_at_which_echoes_take_days_is_said_to() {
    let change = |mut line: Value| {
        if line["welcome"].is_object() {
            line["welcome"]["max_rate"] = 1.into();
        }
        unchanged(line)
    };
    changed(change, |address| {
        let asked =
            Echo { count: 1000, size: 64, interval: Duration::from_millis(1), linger: Duration::ZERO };
        let error = echo(&mut peer(address), asked, &NEVER).expect_err("8 days");
        assert!(error.to_string().contains("(--echoes)"), "{error}");
    });
}

/// Values that nobody expects.
fn odd() -> impl Strategy<Value = Value> {
    prop_oneof![
        prop::sample::select(vec![0, 1, 1 << 31, u64::from(u32::MAX), 1 << 53, 1 << 63, u64::MAX])
            .prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        prop::sample::select(vec![
            json!(null),
            json!([]),
            json!({}),
            json!(true),
            json!(1e308),
            json!(ESCAPES)
        ]),
    ]
}

/// One line of the peer's, and what becomes of it: a place in it, and what is put there.
#[derive(Debug, Clone)]
struct Lie {
    line: usize,
    place: prop::sample::Index,
    value: Value,
    again: bool,
}

fn lies() -> impl Strategy<Value = Vec<Lie>> {
    let one = (0_usize..60, any::<prop::sample::Index>(), odd(), any::<bool>())
        .prop_map(|(line, place, value, again)| Lie { line, place, value, again });
    prop::collection::vec(one, 1..8)
}

/// The places of all values in a value, those of lists and objects among them.
fn places(value: &Value, at: &str, all: &mut Vec<String>) {
    let mut one = |key: &str, value: &Value| {
        let at = format!("{at}/{key}");
        places(value, &at, all);
        all.push(at);
    };
    match value {
        Value::Object(fields) => fields.iter().for_each(|(key, value)| one(key, value)),
        // Of a long list the beginning says as much.
        Value::Array(values) => {
            (0..).zip(values.iter().take(20)).for_each(|(at, value): (usize, _)| one(&at.to_string(), value))
        }
        _ => {}
    }
}

fn lied(mut line: Value, number: usize, lies: &[Lie]) -> Vec<Value> {
    let mut said = Vec::new();
    for lie in lies.iter().filter(|lie| lie.line == number) {
        let mut all = Vec::new();
        places(&line, "", &mut all);
        if !all.is_empty()
            && let Some(place) = line.pointer_mut(&all[lie.place.index(all.len())])
        {
            *place = lie.value.clone();
        }
        if lie.again {
            said.push(line.clone());
        }
    }
    said.push(line);
    said
}

fn cases() -> ProptestConfig {
    // Each case is a measurement, of a tenth of a second at the least: fewer than of what computes.
    ProptestConfig { cases: ProptestConfig::default().cases / 32, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(cases())]

    /// Whatever of it is changed, the local host ends: with a run, or with an error that a terminal may show.
    #[test]
    fn a_far_host_that_lies_is_believed_or_left(lies in lies()) {
        let number = AtomicU64::new(0);
        let change = |line: Value| {
            let number = number.fetch_add(1, Ordering::Relaxed) as usize;
            Says::Lines(lied(line, number, &lies))
        };
        changed(change, |address| {
            let shown = |error: MeasureError| is_printable(&error.to_string());
            let mut peer = match Peer::connect(&address.to_string(), Family::Any, None, &NEVER) {
                Ok(peer) => peer.waiting(Duration::from_millis(500)),
                Err(error) => return shown(error),
            };
            let asked = experiment(
                "output = { series = true, messages = true }\n\
                 transfer = { message = \"1 kB\", interval = \"1 ms\", count = 20, opener = \"sender\" }",
            );
            let soon = ["horizon=1 s".parse().expect("a change")];
            let asked = Experiment::parse(&asked.text, "t", &soon).expect("good");
            if let Err(error) = run(&mut peer, &asked) {
                return shown(error);
            }
            let one = experiment("transfer = { size = \"1 kB\", opener = \"receiver\" }");
            let exchanges = Exchanges { count: 3, request: Bytes(20), answer: Bytes(50) };
            let done = exchange(&mut peer, &one.point(0), exchanges, Provenance::default(), &NEVER, &mut |_| {});
            if let Err(error) = done {
                return shown(error);
            }
            if let Err(error) = burst(&mut peer, true, 20, Duration::from_millis(10), &NEVER) {
                return shown(error);
            }
            let asked = Echo { count: 5, size: 64, interval: Duration::from_millis(1), linger: Duration::ZERO };
            if let Err(error) = echo(&mut peer, asked, &NEVER) {
                shown(error);
            }
        });
    }
}
