//! Constant-rate streams: when each message is due, written, sent and read.

use crate::common::{
    assert_close, bottleneck, delay, drops, duration, link, run, run_one, setup, time, upload,
};
use farpath_elements::QueueLimit;
use farpath_sim::{FlowEnd, FlowResult, FlowSetup, MessageStamps, Opener};
use farpath_tcp::Config;
use farpath_units::{Bytes, Duration, Instant, Messages, Pace};

/// An initial window that holds up none of what is under way here, and an ACK for each segment.
fn wide() -> Config {
    let mut stack = Config::default();
    stack.congestion.initial_window = 10;
    stack.receive.ack_every = 1;
    stack
}

/// A stream of messages at this distance.
fn stream(stack: &Config, size: u64, interval: &str, count: u64) -> FlowSetup {
    let messages = Messages { size: Bytes(size), pace: Pace::Every(duration(interval)), count };
    FlowSetup { messages: Some(messages), ..upload(stack, size * count) }
}

fn stamps(result: &FlowResult) -> &MessageStamps {
    result.messages.as_ref().expect("it is a stream")
}

/// From when each message was due until it was read.
fn lateness(result: &FlowResult) -> Vec<Duration> {
    let stamps = stamps(result);
    (0..stamps.arrived.len() as u64).map(|number| stamps.lateness(number).expect("it arrived")).collect()
}

#[test]
fn messages_of_a_clear_path_are_read_one_way_after_they_were_due() {
    let result = run_one(vec![delay("20 ms")], stream(&wide(), 1460, "10 ms", 100));
    assert_eq!(result.end, FlowEnd::Completed);
    let stamps = stamps(&result);
    // The first is due when the handshake is over.
    assert_eq!(stamps.began, Some(time("40 ms")));
    assert_eq!([stamps.written.len(), stamps.sent.len(), stamps.arrived.len()], [100; 3]);
    assert_eq!(stamps.due(99), Some(time("1.03 s")));
    assert_eq!((&stamps.written, &stamps.sent), (&stamps.sent, &stamps.written), "nothing holds them up");
    assert!(lateness(&result).iter().all(|&late| late == duration("20 ms")));
    assert_eq!(result.ended_at, time("1.05 s"));
}

#[test]
fn who_answers_a_request_begins_when_it_has_come() {
    let flow = FlowSetup {
        opener: Opener::Receiver,
        request: Bytes(100),
        ..stream(&Config::default(), 1000, "10 ms", 3)
    };
    let result = run_one(vec![delay("20 ms")], flow);
    // SYN, SYN/ACK, ACK and request.
    assert_eq!(stamps(&result).began, Some(time("60 ms")));
    assert_eq!(result.bytes_read, Bytes(3000));
}

/// 1000 B every 10 ms over 50 kB/s: half of what comes finds room.
#[test]
fn a_full_send_buffer_holds_writing_up_and_says_so() {
    let mut stack = Config::default();
    stack.send.buffer = Some(Bytes(20_000));
    stack.send.nagle = false;
    let flow = stream(&stack, 1000, "10 ms", 200);
    let result =
        run_one(vec![bottleneck("400 kbit/s", 0, QueueLimit::Unlimited), delay("1 ms")], flow.clone());
    let blocked = stamps(&result);
    let lag = |stamps: &MessageStamps| stamps.written[199].saturating_since(stamps.due(199).expect("due"));
    // 200 kB take 4 s with 4 % of headers; the last message is due after 1.99 s and written 20 kB before the end.
    assert_close(lag(blocked).as_secs_f64(), 4.16 - 1.99 - 0.4, 0.05);
    // With room for all of it the program is never held up, and the messages come as late.
    let mut free = flow;
    free.sender.send.buffer = None;
    let free = run_one(vec![bottleneck("400 kbit/s", 0, QueueLimit::Unlimited), delay("1 ms")], free);
    assert_eq!(lag(stamps(&free)), Duration::ZERO);
    assert_close(lateness(&free)[199].as_secs_f64(), lateness(&result)[199].as_secs_f64(), 0.02);
}

/// The same with messages that are worth sending for 200 ms: twice as many are made as find room, so that half are left out,
/// and none is begun later than that.
#[test]
fn a_message_that_is_too_old_is_left_out_and_the_stream_stays_timely() {
    let mut stack = Config::default();
    stack.send.buffer = Some(Bytes(20_000));
    stack.send.nagle = false;
    let flow = FlowSetup { lifetime: Some(duration("200 ms")), ..stream(&stack, 1000, "10 ms", 1000) };
    let path = || vec![bottleneck("400 kbit/s", 0, QueueLimit::Unlimited), delay("1 ms")];
    let result = run_one(path(), flow.clone());
    assert_eq!(result.end, FlowEnd::Completed);
    let found = stamps(&result);
    // 10 s at 48 kB/s of payload, less what the first 20 kB of buffer and 200 ms took in.
    assert_close(found.expired.len() as f64, 500.0, 40.0);
    assert_eq!(result.bytes_read, Bytes(1000 * (1000 - found.expired.len() as u64)));
    assert_eq!(found.arrived.len() + found.expired.len(), 1000);
    assert!(found.expired.is_sorted_by(|a, b| a < b));
    // Begun within 200 ms, written within 1000 B more of room, read when 20 kB and itself have left.
    let late = lateness(&result);
    assert!(late.iter().all(|&late| late < duration("670 ms")), "{:?}", late.iter().max());
    let never = FlowSetup { lifetime: None, ..flow.clone() };
    assert!(lateness(&run_one(path(), never)).last() > Some(&duration("9 s")));
    // Where all find room, none is too old.
    let mut free = flow;
    free.sender.send.buffer = None;
    let all = run_one(path(), free);
    assert_eq!((stamps(&all).expired.len(), all.bytes_read), (0, Bytes(1_000_000)));
}

/// A message is sent when its first byte leaves TCP, once: a retransmission does not move the stamp.
#[test]
fn a_retransmission_is_no_second_sending() {
    let flow = stream(&wide(), 1460, "10 ms", 50);
    let clear = run_one(vec![delay("20 ms")], flow.clone());
    // The SYN is the first, and the ACK of the handshake goes with the first message: this is the eleventh.
    let lossy = run_one(vec![delay("20 ms"), drops(&[12], &[])], flow);
    assert_eq!(lossy.sender.sender().stats().retransmissions, 1);
    assert_eq!(stamps(&lossy).sent[..11], stamps(&clear).sent[..11]);
    // It and those behind it are read together, when it has come again: after the third duplicate ACK.
    let late = lateness(&lossy);
    assert!(late[10] > late[11] && late[11] > late[12], "{late:?}");
    assert_eq!(late[10], duration("20 ms") + duration("30 ms") + duration("40 ms"));
    assert_eq!(late[9], duration("20 ms"));
}

#[test]
fn what_is_not_over_at_the_horizon_has_the_stamps_that_it_got_to() {
    let mut setup = setup(vec![delay("20 ms")], vec![stream(&wide(), 1460, "10 ms", 1000)], 1);
    setup.horizon = duration("1 s");
    let result = run(&setup).remove(0);
    assert_eq!(result.end, FlowEnd::Horizon);
    let stamps = stamps(&result);
    // From 40 ms to 1 s inclusive; what was sent in the last 20 ms has not come.
    assert_eq!(stamps.due_by(time("1 s")), 97);
    assert_eq!((stamps.sent.len(), stamps.arrived.len()), (97, 95));
}

#[test]
fn a_stream_that_never_opens_has_no_messages() {
    let all: Vec<u64> = (1..100).collect();
    let flow = stream(&Config::default(), 1000, "10 ms", 10);
    let result = run_one(vec![delay("20 ms"), drops(&all, &[])], flow);
    assert!(matches!(result.end, FlowEnd::Failed(_)));
    assert_eq!((stamps(&result).began, stamps(&result).due_by(time("1 h"))), (None, 0));
}

/// A stream beside a file: each has its own.
#[test]
fn streams_and_files_share_a_path() {
    let stack = Config::default();
    let flows = vec![stream(&stack, 1000, "5 ms", 200), upload(&stack, 500_000)];
    let results = run(&setup(vec![link("10 Mbit/s", 0), delay("5 ms")], flows, 1));
    assert!(results.iter().all(|result| result.end == FlowEnd::Completed));
    assert!(results[0].messages.is_some() && results[1].messages.is_none());
}

#[test]
fn an_answer_is_back_a_round_trip_after_its_message_was_due() {
    let answered = |reply| {
        let flow = FlowSetup { reply: Bytes(reply), ..stream(&wide(), 64, "500 ms", 5) };
        run_one(vec![delay("20 ms")], flow)
    };
    let responses = |result: &FlowResult| -> Vec<Duration> {
        let stamps = stamps(result);
        let of = |(number, at): (u64, &Instant)| at.saturating_since(stamps.due(number).expect("begun"));
        (0..).zip(&stamps.answered).map(of).collect()
    };
    assert_eq!(responses(&answered(1000)), [duration("40 ms"); 5]);
    // The short end of an answer waits by Nagle's rule until what is before it is acknowledged; that of the last one has the FIN.
    let result = answered(3000);
    let [short, nagle] = [duration("40 ms"), duration("80 ms")];
    assert_eq!(responses(&result), [nagle, nagle, nagle, nagle, short]);
    // It has completed when the last message was read; the last answer comes after that.
    assert_eq!((result.end, result.ended_at), (FlowEnd::Completed, time("2.06 s")));
    assert_eq!(result.receiver.sender().acked(), 15_000);
    assert!(result.sender.is_over() && result.receiver.is_over(), "both have closed");
}

/// An answer may be longer than the windows are, and come while more messages are on their way.
#[test]
fn answers_that_take_longer_than_the_next_message_all_come() {
    let mut stack = Config::default();
    stack.receive.buffer = Bytes(8760);
    let flow = FlowSetup { reply: Bytes(100_000), ..stream(&stack, 100, "10 ms", 20) };
    let result =
        run_one(vec![bottleneck("1 Mbit/s", 0, QueueLimit::Bytes(Bytes(5000))), delay("20 ms")], flow);
    let stamps = stamps(&result);
    assert_eq!((result.end, stamps.answered.len()), (FlowEnd::Completed, 20));
    assert!(stamps.answered.is_sorted() && stamps.answered[19] > time("16 s"), "{:?}", stamps.answered);
}
