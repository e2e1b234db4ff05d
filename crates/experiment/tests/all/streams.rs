//! Streams of messages: how they are said, and what is refused.

use farpath_experiment::{Experiment, FlowSpec, MAX_MESSAGES};
use farpath_units::{Bytes, Duration, Late, Messages, Pace, Playout, Rate};

const PATH: &str = r#"
title = "e-VLBI"
[[path]]
element = "link"
rate = "1 Gbit/s"
[[path]]
element = "delay"
delay = "7.5 ms"
"#;

fn parse(rest: &str) -> Result<Vec<FlowSpec>, String> {
    let experiment = Experiment::parse(&format!("{PATH}{rest}"), "vlbi.toml", &[]);
    experiment.map(|read| read.point(0).scenario.flows.clone()).map_err(|error| error.to_string())
}

/// The one flow of a `[transfer]` with these lines.
fn flow(transfer: &str) -> FlowSpec {
    let flows = parse(&format!("[transfer]\n{transfer}")).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(flows.len(), 1);
    flows[0].clone()
}

#[track_caller]
fn refused(transfer: &str, expected: &str) {
    assert_eq!(
        parse(&format!("[transfer]\n{transfer}")).expect_err(transfer),
        format!("vlbi.toml: {expected}")
    );
}

#[test]
fn rate_and_duration_say_the_same_as_interval_and_count() {
    let rate = Rate::from_bit_per_s(512_000_000).expect("not zero");
    let by_rate = flow("message = '8 kB'\nrate = '512 Mbit/s'\nduration = '60 s'");
    let messages = Messages { size: Bytes(8000), pace: Pace::At(rate), count: 480_000 };
    assert_eq!(by_rate.stream.expect("a stream").messages, messages);
    assert_eq!(by_rate.size, Bytes(3_840_000_000));
    let by_interval = flow("message = '8 kB'\ninterval = '125 us'\ncount = 480000");
    assert_eq!(by_interval.size, by_rate.size);
    let paced = by_interval.stream.expect("a stream").messages;
    assert_eq!(paced, Messages { pace: Pace::Every(Duration::from_micros(125)), ..messages });
    // What is begun within the duration is sent: the last of three at 25 ms.
    let three = flow("message = '1 kB'\ninterval = '10 ms'\nduration = '25 ms'");
    assert_eq!(three.stream.expect("a stream").messages.count, 3);
}

#[test]
fn a_player_waits_a_round_trip_where_the_file_does_not_say() {
    let stream = "message = '8 kB'\nrate = '512 Mbit/s'\nduration = '1 s'\n";
    let playout = |more: &str| flow(&format!("{stream}{more}")).stream.expect("a stream").playout;
    let default = playout("");
    // 15 ms, and a segment of 1500 B and its ACK of 40 B at 1 Gbit/s.
    assert_eq!(default, Playout { buffer: Duration::from_nanos(15_012_320), late: Late::Stall });
    assert_eq!(playout("playout = 'auto'"), default);
    let given = playout("playout = '2.5 s'\nlate = 'discard'");
    assert_eq!(given, Playout { buffer: Duration::from_millis(2500), late: Late::Discard });
}

#[test]
fn a_group_with_a_size_of_its_own_is_a_file_beside_the_stream() {
    let text =
        "[transfer]\nmessage = '8 kB'\nrate = '8 Mbit/s'\ncount = 100\n[[flow]]\n[[flow]]\nsize = '1 MB'\n";
    let flows = parse(text).expect("a stream and a file");
    assert_eq!(flows[0].size, Bytes(800_000));
    assert!(flows[0].stream.is_some());
    assert_eq!((flows[1].size, flows[1].stream), (Bytes(1_000_000), None));
}

#[test]
fn contradictions_are_named_with_the_way_out() {
    refused(
        "size = '1 MB'\nmessage = '8 kB'",
        "transfer.size: `size` makes the transfer a file, and `message` a stream: give one of them",
    );
    let paced = "message = '8 kB'\nrate = '8 Mbit/s'\n";
    refused(
        &format!("{paced}interval = '1 ms'\ncount = 3"),
        "transfer.interval: `rate` says how fast the messages come already: give one of them",
    );
    refused(
        &format!("{paced}duration = '1 s'\ncount = 3"),
        "transfer.count: `duration` says how many messages there are already: give one of them",
    );
}

#[test]
fn a_lifetime_is_for_streams_over_tcp_without_answers() {
    let paced = "message = '8 kB'\nrate = '8 Mbit/s'\ncount = 3\n";
    let lifetime =
        |keys: &str| parse(&format!("[transfer]\n{paced}{keys}\n")).expect("a stream")[0].lifetime();
    assert_eq!(lifetime("lifetime = '200 ms'"), Some(Duration::from_millis(200)));
    assert_eq!([lifetime(""), lifetime("lifetime = 'none'")], [None; 2]);
    refused(
        &format!("{paced}lifetime = '200 ms'\nreply = '1 B'"),
        "transfer.lifetime: messages that are left out get no answer: streams with `reply` have all of theirs",
    );
    refused(
        &format!("{paced}lifetime = '200 ms'\nprotocol = 'udp'"),
        "transfer.lifetime: datagrams wait for nothing: `lifetime` is for streams over TCP",
    );
}

#[test]
fn what_a_stream_cannot_do_without_is_asked_for() {
    refused("rate = '8 Mbit/s'\ncount = 3", "transfer.message: missing; expected a size such as `64 kB`");
    refused(
        "message = '8 kB'\ncount = 3",
        "transfer.rate: missing; expected a rate such as `8 Mbit/s`, or `interval`",
    );
    refused(
        "message = '8 kB'\nrate = '8 Mbit/s'",
        "transfer.duration: missing; expected a duration such as `20 ms`, or `count`",
    );
    refused("playout = '1 s'", "transfer.message: missing; expected a size such as `64 kB`");
    refused(
        "mesage = '8 kB'\nrate = '8 Mbit/s'\ncount = 3",
        "transfer.mesage: unknown key; did you mean `message`?",
    );
}

#[test]
fn streams_of_nothing_and_of_too_much_are_refused() {
    refused(
        "message = '0 B'\nrate = '8 Mbit/s'\ncount = 3",
        "transfer.message: there would be nothing to transfer",
    );
    refused(
        "message = '8 kB'\nrate = '8 Mbit/s'\ncount = 0",
        "transfer.count: there would be nothing to transfer",
    );
    refused(
        "message = '8 kB'\ninterval = '0 s'\ncount = 3",
        "transfer.interval: all messages would be due at once: that is a file",
    );
    let refusal = format!("transfer.duration: 86400000000 messages; the most is {MAX_MESSAGES}");
    refused("message = '1 B'\ninterval = '1 us'\nduration = '1 d'", &refusal);
    refused(
        "message = '8 kB'\nrate = '8 Mbit/s'\ncount = 3\nlate = 'skip'",
        "transfer.late: expected one of `stall`, `discard`, found `skip`",
    );
}

#[test]
fn messages_have_answers_and_a_group_has_its_own_stream_beside_files() {
    let stream = "message = '24 B'\ninterval = '2 s'\ncount = 30";
    assert_eq!(flow(stream).reply(), Bytes::ZERO);
    assert_eq!(flow(&format!("{stream}\nreply = '1 kB'")).reply(), Bytes(1000));
    refused(
        "size = '1 kB'\nreply = '1 kB'",
        "transfer.size: `size` makes the transfer a file, and `reply` a stream: give one of them",
    );
    // The file's length is none of a stream's.
    let flows = parse(
        "[transfer]\nsize = '1 MB'\n[[flow]]\nstream = {message = '24 B', reply = '9 B', interval = '2 s', count = 30}\n[[flow]]\nstart = '2 s'",
    )
    .expect("two flows");
    let of = |flow: &FlowSpec| (flow.stream.is_some(), flow.size, flow.reply());
    assert_eq!(
        [of(&flows[0]), of(&flows[1])],
        [(true, Bytes(720), Bytes(9)), (false, Bytes(1_000_000), Bytes::ZERO)]
    );
}
