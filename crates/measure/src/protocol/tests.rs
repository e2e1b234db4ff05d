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

/// What a peer may say.
pub fn from_responder() -> impl Strategy<Value = FromResponder> {
    let flow = || prop_oneof![3 => 0_u32..3, 1 => any::<u32>()];
    let metric = prop_oneof![Just("cwnd".to_owned()), Just("delivered".to_owned()), name()];
    prop_oneof![
        (
            flow(),
            any::<[u32; 2]>(),
            any::<u64>(),
            any::<bool>(),
            prop::collection::vec(any::<(u32, u64, u64)>(), 0..40)
        )
            .prop_map(|(flow, [count, dropped_here], within_ns, more, arrivals)| {
                FromResponder::Datagrams(Datagrams { flow, count, within_ns, arrivals, dropped_here, more })
            }),
        prop::collection::vec(
            (prop_oneof![Just("net.ipv4.tcp_sack".to_owned()), name()], any::<Option<u8>>()),
            0..9
        )
        .prop_map(|values| {
            let value = |value: u8| Said::from(value.to_string());
            FromResponder::Kernel(values.into_iter().map(|(name, one)| (name, one.map(value))).collect())
        }),
        (flow(), any::<u16>(), name(), prop::collection::vec(name(), 0..3)).prop_map(
            |(flow, port, token, unmatched)| {
                let unmatched = unmatched.into_iter().map(Said::from).collect();
                FromResponder::Ready(Ready { flow, port, token, unmatched })
            }
        ),
        (any::<u32>(), name(), any::<[u8; 32]>(), any::<bool>()).prop_map(
            |(farpath, version, bytes, key)| {
                FromResponder::Greeting(Greeting {
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
            FromResponder::Welcome(Welcome {
                proof: None,
                seen_as: seen_as.into(),
                max_rate,
                max_bytes: most[0],
                max_time_ns: most[1],
            })
        }),
        (name(), any::<Option<u32>>()).prop_map(|(message, flow)| FromResponder::Refused(Refused {
            why: Why::Limit,
            message: message.into(),
            flow
        })),
        (any::<u32>(), any::<[u64; 2]>()).prop_map(|(number, at)| {
            FromResponder::Pong(Pong { number, received_ns: at[0], sent_ns: at[1] })
        }),
        (flow(), prop::collection::vec((any::<u64>(), metric, any::<u64>()), 0..9))
            .prop_map(|(flow, rows)| FromResponder::Rows(Rows { flow, rows })),
        (flow(), prop::collection::vec(any::<u64>(), 0..9))
            .prop_map(|(flow, at_ns)| FromResponder::Messages(MessagesSeen { flow, at_ns })),
        (flow(), facts(), any::<bool>())
            .prop_map(|(flow, end, rows_cut)| FromResponder::Ended(Box::new(Ended { flow, end, rows_cut }))),
    ]
}

/// What a local host may say.
pub fn from_client() -> impl Strategy<Value = FromClient> {
    let few = || prop_oneof![Just(0_u64), Just(1), 0_u64..1000, any::<u64>()];
    let count = || prop_oneof![0_u32..5, Just(100_000), any::<u32>()];
    let messages = (few(), few(), any::<bool>(), any::<u64>()).prop_map(|(size, count, every, pace)| {
        let pace = if every { PaceAsked::EveryNs(pace) } else { PaceAsked::BitPerS(pace) };
        MessagesAsked { size, count, pace }
    });
    let transfer = (
        any::<(u32, bool)>(),
        [few(), few(), few()],
        count(),
        prop::option::of(messages),
        any::<[Option<u64>; 6]>(),
    )
        .prop_map(|((flow, sends), [size, request, within_ns], exchanges, messages, some)| Transfer {
            flow,
            sends,
            size,
            messages,
            writing: WritingAsked {
                window: some[4],
                update_every: some[3],
                write_size: some[5],
                think_time_ns: within_ns,
            },
            request,
            exchanges,
            within_ns,
            sample_every_ns: some[0],
            read_rate: some[1],
            low_water: some[2],
            socket: SocketAsked {
                receive_buffer: some[3],
                mss: some[4],
                rto_min_ns: some[5],
                congestion_control: some[3].map(|value| value.to_string()),
                ..SocketAsked::default()
            },
        });
    let datagrams = || (any::<u32>(), count(), prop_oneof![44_u32..1473, any::<u32>()], few());
    prop_oneof![
        transfer.prop_map(FromClient::Transfer),
        datagrams().prop_map(|(flow, count, size, within_ns)| {
            FromClient::Echo(EchoAsked { flow, count, size, within_ns })
        }),
        (datagrams(), any::<bool>(), few()).prop_map(|((flow, count, size, within_ns), sends, quiet_ns)| {
            FromClient::Burst(BurstAsked { flow, sends, count, size, quiet_ns, within_ns })
        }),
        any::<u32>().prop_map(|number| FromClient::Ping(Ping { number })),
        any::<u32>().prop_map(|flow| FromClient::Done(FlowNumber { flow })),
        any::<u32>().prop_map(|flow| FromClient::Stop(FlowNumber { flow })),
        prop::collection::vec(name(), 0..5).prop_map(FromClient::Kernel),
    ]
}

proptest! {
    #[test]
    fn what_is_said_is_what_is_heard_however_it_is_cut(
        said in prop::collection::vec(from_responder(), 1..6),
        cuts in prop::collection::vec(1usize..60, 1..20),
    ) {
        let stream: Vec<u8> = said.iter().flat_map(line).collect();
        let (mut lines, mut heard, mut at) = (Lines::default(), Vec::new(), 0);
        for cut in cuts.iter().cycle() {
            let end = (at + cut).min(stream.len());
            lines.push(&stream[at..end]);
            while let Some(message) = lines.next::<FromResponder>().expect("all are ours") {
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
            while !matches!(lines.next::<FromClient>(), Ok(None)) {}
        }
        prop_assert!(lines.held() <= chunks.iter().map(Vec::len).sum());
    }

    /// Messages with some bytes changed: nearly right is harder to refuse than garbage.
    #[test]
    fn a_message_with_a_changed_byte_is_understood_or_refused(
        said in from_responder(),
        at: prop::sample::Index,
        byte: u8,
    ) {
        let mut bytes = line(&said);
        let at = at.index(bytes.len());
        bytes[at] = byte;
        let mut lines = Lines::default();
        lines.push(&bytes);
        lines.push(b"\n");
        let _ = lines.next::<FromResponder>();
        let _ = lines.next::<FromClient>();
    }
}

#[test]
fn a_line_without_an_end_is_refused_before_it_fills_the_memory() {
    let mut lines = Lines::default();
    for _ in 0..LINE / 1024 - 1 {
        lines.push(&[b'x'; 1024]);
        assert!(matches!(lines.next::<FromClient>(), Ok(None)));
    }
    lines.push(&[b'x'; 1024]);
    assert!(matches!(lines.next::<FromClient>(), Err(FrameError::TooLong)));
}

#[test]
fn a_line_is_what_one_reads_with_a_terminal() {
    let said = FromResponder::Pong(Pong { number: 3, received_ns: 5, sent_ns: 7 });
    assert_eq!(line(&said), b"{\"pong\":{\"number\":3,\"received_ns\":5,\"sent_ns\":7}}\n");
    let mut deep = vec![b'['; 100_000];
    deep.push(b'\n');
    let mut lines = Lines::default();
    lines.push(&deep);
    assert!(matches!(lines.next::<FromClient>(), Err(FrameError::Syntax(_))), "not the stack's end");
}

#[test]
fn messages_are_those_of_the_stream_or_none() {
    let every = Messages { size: Bytes(1000), pace: Pace::Every(Duration::from_micros(7)), count: 30 };
    let rate = Rate::from_bit_per_s(3_000_000).expect("not zero");
    for messages in [every, Messages { pace: Pace::At(rate), ..every }] {
        let asked = MessagesAsked::from(messages);
        assert_eq!(asked.messages(30_000), Some(messages));
        assert_eq!(asked.messages(30_001), None);
        assert_eq!(MessagesAsked { size: 0, ..asked }.messages(0), None);
        assert_eq!(MessagesAsked { count: 0, ..asked }.messages(0), None);
        assert_eq!(MessagesAsked { size: u64::MAX, count: 2, ..asked }.messages(u64::MAX - 1), None);
        assert_eq!(MessagesAsked { pace: PaceAsked::BitPerS(0), ..asked }.messages(30_000), None);
    }
}
