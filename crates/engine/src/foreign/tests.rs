use super::*;
use farpath_experiment::Experiment;

fn point(path: &str, rest: &str, changes: &[&str]) -> Point {
    let text = format!("title = \"T\"\npath = [{path}]\n{rest}\n");
    let changes: Vec<_> = changes.iter().map(|change| change.parse().expect("a change")).collect();
    Experiment::parse(&text, "t.toml", &changes).expect("sound").point(0).into_owned()
}

const FAR: &str = "{ element = \"link\", rate = \"10 Mbit/s\", queue = \"50 kB\" }, { element = \"delay\", delay = \"100 ms\" }";
const LOSSY: &str = ", { element = \"loss\", rate = \"1 %\" }";
const UPLOAD: &str = "[transfer]\nsize = \"300 kB\"\nopener = \"sender\"";

fn run(point: &Point) -> FlowRow {
    simulate(point, 1, Provenance::default(), None).expect("it runs").flows.remove(0)
}

/// Our own endpoint at both ends, by its packets: what the event loop of the simulator says of it, from within. Both loops, both ways of a
/// segment and the counts by packets are then the same.
#[test]
fn our_own_ends_are_as_in_the_simulator() {
    for stack in ["rfc-5681", "linux-6", "bsd-1996"] {
        for path in [FAR.to_owned(), format!("{FAR}{LOSSY}")] {
            for opener in ["sender", "receiver"] {
                let changes = [format!("sender.stack={stack}"), format!("transfer.opener={opener}")];
                let changes: Vec<_> = changes.iter().map(String::as_str).collect();
                let point = point(&path, UPLOAD, &changes);
                let by_packets = run(&point);
                let inside =
                    crate::simulate(&point, 1, Provenance::default()).expect("it runs").flows.remove(0);
                let told = |row: &FlowRow| {
                    (
                        (row.outcome, row.connect_time, row.transfer_time, row.bytes_read),
                        (row.data_segments, row.retransmissions, row.drops_data_direction),
                    )
                };
                assert_eq!(told(&by_packets), told(&inside), "{stack} over {path}, opened by the {opener}");
            }
        }
    }
}

/// The handshake takes one round trip, and a segment half of one: nothing else takes time on a path of delay alone.
#[test]
fn a_segment_of_smoltcp_takes_the_time_of_the_path() {
    let delay = "{ element = \"delay\", delay = \"45 s\" }";
    for (opener, half_trips) in [("sender", 3), ("receiver", 4)] {
        for end in ["sender", "receiver"] {
            let changes = [
                format!("{end}.implementation=smoltcp"),
                format!("transfer.opener={opener}"),
                "transfer.size=1 kB".to_owned(),
                "sender.rto.initial=200 s".to_owned(),
                "sender.rto.max=300 s".to_owned(),
            ];
            let point = point(delay, UPLOAD, &changes.iter().map(String::as_str).collect::<Vec<_>>());
            let row = run(&point);
            let expected = farpath_units::Duration::from_secs(45 * half_trips);
            assert_eq!(
                row.transfer_time,
                Some(expected),
                "smoltcp as {end}, opened by the {opener}: {row:?}"
            );
        }
    }
}

#[test]
fn smoltcp_repeats_byte_by_byte() {
    let point = point(&format!("{FAR}{LOSSY}"), UPLOAD, &["sender.implementation=smoltcp"]);
    let captured = |seed| {
        let mut bytes = Vec::new();
        let run = simulate(&point, seed, Provenance::default(), Some((2000, &mut bytes))).expect("it runs");
        assert_eq!(run.flows[0].outcome, Outcome::Completed);
        assert!(run.flows[0].retransmissions.is_some_and(|count| count > 0.0));
        bytes
    };
    assert_eq!(captured(1), captured(1));
    assert_ne!(captured(1), captured(2));
}

#[test]
fn what_nobody_shows_is_null_and_who_stood_there_is_said() {
    let point = point(FAR, UPLOAD, &["sender.implementation=smoltcp", "sender.rto.min=1 s"]);
    let run = simulate(&point, 1, Provenance::default(), None).expect("it runs");
    let row = &run.flows[0];
    assert_eq!((row.timeouts, row.final_cwnd, row.srtt), (None, None, None));
    assert!(row.retransmissions.is_some() && row.delays.mean_rtt.is_some());
    let told =
        |said: &String| said.starts_with("sender: smoltcp") && said.contains("alone, and not rto.min;");
    assert!(run.provenance.caveats.iter().any(told), "{:?}", run.provenance);
}

#[test]
fn several_flows_share_a_path() {
    let flows = "[transfer]\nsize = \"100 kB\"\n[[flow]]\ncount = 2\n[[flow]]\ndirection = \"reverse\"\n[[flow]]\nsender.implementation = \"farpath\"";
    let point = point(FAR, flows, &["sender.implementation=smoltcp"]);
    let run = simulate(&point, 1, Provenance::default(), None).expect("it runs");
    assert_eq!(run.flows.len(), 4);
    for row in &run.flows {
        assert_eq!((row.outcome, row.bytes_read), (Outcome::Completed, Bytes(100_000)), "{row:?}");
    }
}

#[test]
fn a_run_that_makes_no_progress_is_stuck() {
    let point = point(FAR, UPLOAD, &["sender.implementation=smoltcp", "budget.events=50"]);
    let row = run(&point);
    assert_eq!((row.outcome, row.detail.as_str()), (Outcome::Stuck, "50 events without an end"));
}

#[test]
fn a_run_over_more_memory_than_is_allowed_is_refused() {
    let point = point(FAR, UPLOAD, &["sender.implementation=smoltcp", "emulate.memory=5 kB"]);
    let refused = simulate(&point, 1, Provenance::default(), None).expect_err("a window is more");
    assert!(matches!(refused, SimulateError::Memory(_)), "{refused}");
}

#[test]
fn kernels_and_closed_forms_leave_it_out() {
    let point = point(FAR, UPLOAD, &["sender.implementation=smoltcp"]);
    let refused = farpath_emulate::can_be_emulated(&point).expect_err("no kernel has it").to_string();
    assert!(refused.contains("found `smoltcp` under `emulate`"), "{refused}");
    let predicted = farpath_predict::predict(&point, Provenance::default()).expect("it says why not");
    assert_eq!(predicted.flows[0].outcome, Outcome::Unknown);
    assert_eq!(not_emulated(&point, 1, Provenance::default()).flows[0].outcome, Outcome::Unknown);
    let unknown = point_with_program();
    let refused = are_there(&unknown.scenario).expect_err("there is none of this name").to_string();
    assert!(
        refused.contains("sender.implementation: expected `farpath`, `smoltcp` or a program in"),
        "{refused}"
    );
}

fn point_with_program() -> Point {
    point(FAR, UPLOAD, &["sender.implementation=none-such-here"])
}
