use super::*;
use crate::end::{EndFacts, KernelFacts, Outcome};
use proptest::prelude::*;

fn name() -> impl Strategy<Value = String> {
    "[ -~]{0,20}"
}

fn facts() -> impl Strategy<Value = EndFacts> {
    (any::<[u64; 4]>(), any::<[Option<u64>; 6]>(), name(), 0usize..Outcome::ALL.len()).prop_map(
        |(all, some, detail, outcome)| EndFacts {
            outcome: Outcome::ALL[outcome],
            detail: detail.into(),
            ended_at_ns: all[0],
            connected_at_ns: some[0],
            finished_at_ns: some[1],
            bytes: all[1],
            stream_began_ns: some[1],
            processor_wait_permille: some[2],
            mean_cwnd: some[2],
            exchanges_ns: vec![(all[2], all[3])],
            kernel: some[3].map(|value| KernelFacts {
                final_cwnd: value,
                rto_ns: all[2],
                srtt_ns: some[4],
                min_rtt_ns: some[5],
                ..KernelFacts::default()
            }),
        },
    )
}

fn from_far() -> impl Strategy<Value = FromFar> {
    prop_oneof![
        (any::<u32>(), name(), any::<[u8; 32]>(), any::<bool>()).prop_map(
            |(farpath, version, bytes, key)| {
                FromFar::Greeting(Greeting {
                    farpath,
                    kernel: version.clone().into(),
                    version: version.into(),
                    challenge: Challenge(bytes),
                    key,
                    proof: key.then_some(Proof(bytes)),
                })
            }
        ),
        (any::<[u64; 2]>(), any::<Option<u64>>(), name()).prop_map(|(most, max_rate, seen_as)| {
            FromFar::Welcome(Welcome {
                proof: None,
                seen_as: seen_as.into(),
                max_rate,
                max_bytes: most[0],
                max_time_ns: most[1],
            })
        }),
        (name(), any::<Option<u32>>()).prop_map(|(message, flow)| FromFar::Refused(Refused {
            why: Why::Limit,
            message: message.into(),
            flow
        })),
        (any::<u32>(), any::<[u64; 2]>())
            .prop_map(|(number, at)| { FromFar::Pong(Pong { number, received_ns: at[0], sent_ns: at[1] }) }),
        (any::<u32>(), prop::collection::vec((any::<u64>(), name(), any::<u64>()), 0..9))
            .prop_map(|(flow, rows)| FromFar::Rows(Rows { flow, rows })),
        (any::<u32>(), prop::collection::vec(any::<u64>(), 0..9))
            .prop_map(|(flow, at_ns)| FromFar::Messages(MessagesSeen { flow, at_ns })),
        (any::<u32>(), facts(), any::<bool>())
            .prop_map(|(flow, end, rows_cut)| FromFar::Ended(Box::new(Ended { flow, end, rows_cut }))),
    ]
}

proptest! {
    #[test]
    fn what_is_said_is_what_is_heard_however_it_is_cut(
        said in prop::collection::vec(from_far(), 1..6),
        cuts in prop::collection::vec(1usize..60, 1..20),
    ) {
        let stream: Vec<u8> = said.iter().flat_map(line).collect();
        let (mut lines, mut heard, mut at) = (Lines::default(), Vec::new(), 0);
        for cut in cuts.iter().cycle() {
            let end = (at + cut).min(stream.len());
            lines.push(&stream[at..end]);
            while let Some(message) = lines.next::<FromFar>().expect("all are ours") {
                heard.push(message);
            }
            at = end;
            if at == stream.len() {
                break;
            }
        }
        prop_assert_eq!(heard, said);
        prop_assert_eq!(lines.held(), 0);
    }

    #[test]
    fn any_bytes_are_understood_or_refused(
        chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..20),
    ) {
        let mut lines = Lines::default();
        for chunk in &chunks {
            lines.push(chunk);
            // Each line is an error or a message; none of them ends the program.
            while !matches!(lines.next::<FromNear>(), Ok(None)) {}
        }
        prop_assert!(lines.held() <= chunks.iter().map(Vec::len).sum());
    }

    /// Messages with some bytes changed: nearly right is harder to refuse than garbage.
    #[test]
    fn a_message_with_a_changed_byte_is_understood_or_refused(
        said in from_far(),
        at: prop::sample::Index,
        byte: u8,
    ) {
        let mut bytes = line(&said);
        let at = at.index(bytes.len());
        bytes[at] = byte;
        let mut lines = Lines::default();
        lines.push(&bytes);
        lines.push(b"\n");
        let _ = lines.next::<FromFar>();
        let _ = lines.next::<FromNear>();
    }
}

#[test]
fn a_line_without_an_end_is_refused_before_it_fills_the_memory() {
    let mut lines = Lines::default();
    for _ in 0..LINE / 1024 - 1 {
        lines.push(&[b'x'; 1024]);
        assert!(matches!(lines.next::<FromNear>(), Ok(None)));
    }
    lines.push(&[b'x'; 1024]);
    assert!(matches!(lines.next::<FromNear>(), Err(FrameError::TooLong)));
}

#[test]
fn a_line_is_what_one_reads_with_a_terminal() {
    let said = FromFar::Pong(Pong { number: 3, received_ns: 5, sent_ns: 7 });
    assert_eq!(line(&said), b"{\"pong\":{\"number\":3,\"received_ns\":5,\"sent_ns\":7}}\n");
    let mut deep = vec![b'['; 100_000];
    deep.push(b'\n');
    let mut lines = Lines::default();
    lines.push(&deep);
    assert!(matches!(lines.next::<FromNear>(), Err(FrameError::Syntax(_))), "not the stack's end");
}

#[test]
fn messages_are_those_of_the_stream_or_none() {
    let every = Messages { size: Bytes(1000), pace: Pace::Every(Duration::from_micros(7)), count: 30 };
    let rate = Rate::from_bit_per_s(3_000_000).expect("not zero");
    for messages in [every, Messages { pace: Pace::At(rate), ..every }] {
        let asked = MessagesAsked::from(messages);
        assert_eq!(asked.of(30_000), Some(messages));
        assert_eq!(asked.of(30_001), None);
        assert_eq!(MessagesAsked { size: 0, ..asked }.of(0), None);
        assert_eq!(MessagesAsked { count: 0, ..asked }.of(0), None);
        assert_eq!(MessagesAsked { size: u64::MAX, count: 2, ..asked }.of(u64::MAX - 1), None);
        assert_eq!(MessagesAsked { pace: PaceAsked::BitPerS(0), ..asked }.of(30_000), None);
    }
}
