//! Signals, FINs and resets that somebody has made up, with the right addresses.

use super::{Packet, build, data, lines, router, signal, through, word};
use crate::common::at_ms;
use farpath_elements::{FlowRouter, QueueLimit};
use farpath_path::{Direction, PathElement, Verdict};
use farpath_tia1039::router::{Ending, FlowKey, NUMBER_WINDOW, Numbers};
use farpath_tia1039::{Message, Priority, QosMark, RateType, Structure, Structures};
use farpath_units::{Bytes, Instant};

use Direction::{Forward, Reverse};

/// Behind the SYN and behind the SYN/ACK.
const SENT: u32 = 4_294_000_000;
const ANSWERED: u32 = 77;

/// Numbers of a packet that goes forward, so far on; and of one that comes back.
pub(super) fn forward(seq: u32, acknowledged: u32) -> Numbers {
    Numbers {
        next_seq: Some(SENT.wrapping_add(seq)),
        acknowledged: Some(ANSWERED.wrapping_add(acknowledged)),
    }
}

pub(super) fn reverse(seq: u32, acknowledged: u32) -> Numbers {
    let Numbers { next_seq, acknowledged } = forward(acknowledged, seq);
    Numbers { next_seq: acknowledged, acknowledged: next_seq }
}

/// Of somebody who guesses.
const GUESSED: Numbers = Numbers { next_seq: Some(1_000_000_000), acknowledged: Some(2_000_000_000) };

pub(super) struct Bench {
    pub(super) router: FlowRouter<Packet>,
    pub(super) now: Instant,
}

impl Bench {
    /// A router with one flow that asks both ways, and what it shows in its handshake and its first data.
    pub(super) fn new() -> Bench {
        let router = FlowRouter::new("router".to_owned(), &lines(100, QueueLimit::Unlimited), 1);
        let mut bench = Bench { router, now: at_ms(0) };
        let asked = Structure::request(word(80));
        let syn = Numbers { acknowledged: None, ..forward(0, 0) };
        let told = bench.says(Forward, syn, asked);
        let answer = Structure { message: Message::Response, ..told };
        bench.says(Reverse, reverse(0, 0), answer);
        let told = bench.says(Reverse, reverse(0, 0), asked);
        bench.says(Forward, forward(0, 0), Structure { message: Message::Response, ..told });
        for seq in [0, 100_000, 900_000] {
            bench.sends(Forward, forward(seq, 0));
            bench.sends(Reverse, reverse(0, seq / 2));
        }
        bench
    }

    /// What comes out for it.
    pub(super) fn all(&mut self, direction: Direction, packet: Packet) -> Vec<Packet> {
        let _ = self.router.offer(self.now, direction, packet);
        let mut out = Vec::new();
        while let Some(due) = self.router.next_departure() {
            out.extend(self.router.take(due).map(|departure| departure.packet));
            self.now = self.now.max(due);
        }
        out
    }

    pub(super) fn takes(&mut self, direction: Direction, packet: Packet) -> Packet {
        self.all(direction, packet).swap_remove(0)
    }

    fn says(&mut self, direction: Direction, numbers: Numbers, structure: Structure) -> Structure {
        self.says_as(1, direction, numbers, structure)
    }

    pub(super) fn says_as(
        &mut self,
        flow: u32,
        direction: Direction,
        numbers: Numbers,
        structure: Structure,
    ) -> Structure {
        let packet = Packet { numbers, ..signal(flow, Structures::one(structure)) };
        self.takes(direction, packet).carried.expect("structures").first
    }

    fn sends(&mut self, direction: Direction, numbers: Numbers) {
        self.sends_as(1, direction, numbers);
    }

    pub(super) fn sends_as(&mut self, flow: u32, direction: Direction, numbers: Numbers) {
        self.takes(direction, Packet { numbers, ..data(1, flow, QosMark::Flow) });
    }

    fn ends(&mut self, direction: Direction, numbers: Numbers, ending: Ending) {
        self.takes(direction, Packet { numbers, ending, ..data(1, 1, QosMark::None) });
    }

    /// Flows that are known forward and back.
    pub(super) fn flows(&self) -> [usize; 2] {
        Direction::BOTH.map(|way| self.router.port(way).flows())
    }

    fn unheard(&self) -> u64 {
        Direction::BOTH.into_iter().map(|way| self.router.port(way).counters().unknown).sum()
    }
}

#[test]
fn a_close_counts_with_the_numbers_of_its_connection() {
    let close = Structure { message: Message::Close, ..Structure::request(word(1)) };
    for (numbers, left) in [
        (GUESSED, [1, 1]),
        (forward(900_000, 0), [0, 1]),
        // A signal says what its peer has acknowledged, a flight ago, and acknowledges what has come.
        (Numbers { next_seq: GUESSED.next_seq, ..forward(0, 10) }, [0, 1]),
        (Numbers { acknowledged: None, ..forward(900_000 + NUMBER_WINDOW, 0) }, [0, 1]),
        (Numbers { acknowledged: None, ..forward(900_001 + NUMBER_WINDOW, 0) }, [1, 1]),
        // What the other end has acknowledged is half of that.
        (Numbers { acknowledged: None, ..forward(450_000_u32.wrapping_sub(NUMBER_WINDOW), 0) }, [0, 1]),
        (Numbers { acknowledged: None, ..forward(449_999_u32.wrapping_sub(NUMBER_WINDOW), 0) }, [1, 1]),
        (Numbers::default(), [1, 1]),
    ] {
        let mut bench = Bench::new();
        assert_eq!((bench.flows(), bench.unheard()), ([1, 1], 0));
        bench.says(Forward, numbers, close);
        assert_eq!(bench.flows(), left, "{numbers:?}");
        assert_eq!(bench.unheard(), u64::from(left == [1, 1]), "{numbers:?}");
    }
}

#[test]
fn a_reset_counts_by_its_sequence_number() {
    for (way, numbers, left) in [
        (Forward, GUESSED, [1, 1]),
        (Forward, Numbers { next_seq: GUESSED.next_seq, ..forward(900_000, 0) }, [1, 1]),
        (Forward, forward(902_000, 0), [0, 0]),
        (Reverse, GUESSED, [1, 1]),
        (Reverse, Numbers { next_seq: GUESSED.next_seq, ..reverse(0, 900_000) }, [1, 1]),
        // Of a host that knows nothing of the connection any more: what it is told to have been acknowledged.
        (Reverse, Numbers { acknowledged: None, ..reverse(0, 0) }, [0, 0]),
        (Forward, Numbers { acknowledged: None, ..forward(450_000, 0) }, [0, 0]),
    ] {
        let mut bench = Bench::new();
        bench.ends(way, numbers, Ending::Reset);
        assert_eq!(bench.flows(), left, "{way:?} {numbers:?}");
    }
}

#[test]
fn a_reset_that_answers_a_syn_ends_its_flow() {
    for (acknowledged, left) in [(SENT, 0), (GUESSED.next_seq.expect("a number"), 1)] {
        let router = FlowRouter::new("router".to_owned(), &lines(100, QueueLimit::Unlimited), 1);
        let mut bench = Bench { router, now: at_ms(0) };
        let syn = Numbers { acknowledged: None, ..forward(0, 0) };
        bench.says(Forward, syn, Structure::request(word(80)));
        bench.ends(Reverse, Numbers { next_seq: Some(0), acknowledged: Some(acknowledged) }, Ending::Reset);
        assert_eq!(bench.flows(), [left, 0]);
    }
}

#[test]
fn both_fins_count_with_the_numbers_of_their_connection() {
    for (numbers, left) in [(GUESSED, [1, 1]), (forward(901_500, 0), [0, 0])] {
        let mut bench = Bench::new();
        bench.ends(Forward, numbers, Ending::Fin);
        bench.ends(Reverse, reverse(0, 901_500), Ending::Fin);
        assert_eq!(bench.flows(), left);
    }
}

#[test]
fn what_asks_or_answers_in_the_name_of_a_proven_flow_fits_its_numbers() {
    let asked = Structure {
        message: Message::Renegotiate,
        rate_type: RateType::Guaranteed,
        guaranteed: word(85),
        preemption: Priority::HIGHEST,
        ..Structure::request(word(1))
    };
    let lower = Structure { message: Message::Response, ..Structure::request(word(1)) };
    let found = |numbers: [Numbers; 2]| {
        let mut bench = Bench::new();
        let told = bench.says(Forward, numbers[0], asked);
        bench.says(Reverse, numbers[1], lower);
        bench.says(Forward, numbers[0], Structure { message: Message::Confirmation, ..lower });
        let flow = bench.router.port(Forward).flow(&FlowKey::from(1)).expect("it is known");
        (told.mark, flow.guaranteed, bench.unheard())
    };
    assert_eq!(found([GUESSED, GUESSED]), (0, 0, 3), "they go on as they came");
    // What is asked for is kept, and the confirmation, of no guarantee, takes it back.
    assert_eq!(found([forward(900_000, 0), reverse(0, 450_000)]), (1, 0, 0));
}

#[test]
fn numbers_are_followed_step_by_step_and_by_either_of_the_two() {
    let close = Structure { message: Message::Close, ..Structure::request(word(1)) };
    let mut bench = Bench::new();
    // A gap of many megabytes, with the same acknowledgement; a jump of that, with the next sequence number; and something made up.
    bench.sends(Forward, forward(30_000_000, 0));
    bench.sends(Forward, forward(30_001_000, 20_000_000));
    bench.sends(Forward, GUESSED);
    // A retransmission brings nothing back.
    bench.sends(Forward, forward(10_000_000, 20_000_000));
    bench.says(Forward, Numbers { acknowledged: None, ..GUESSED }, close);
    assert_eq!(bench.flows(), [1, 1]);
    bench.says(Forward, Numbers { acknowledged: None, ..forward(30_000_500, 0) }, close);
    assert_eq!(bench.flows(), [0, 1]);
}

#[test]
fn start_packets_of_any_number_of_flows_wait_in_one_queue() {
    let limit = 15_000;
    let mut router = FlowRouter::new("router".to_owned(), &lines(1, QueueLimit::Bytes(Bytes(limit))), 1);
    let mut offer = |flow, packet: fn(u32) -> Packet| {
        let verdict = router.offer(at_ms(1), Forward, Packet { flow, ..packet(flow) });
        (verdict == Verdict::Accepted, router.backlog(Forward).expect("it has queues"))
    };
    let start = |_| signal(0, Structures::one(Structure::request(word(80))));
    let ack = |id| Packet { carried: None, empty: true, ..data(id, 0, QosMark::Flow) };
    for flow in 2..10_000 {
        assert!(offer(flow, start).1 <= Bytes(limit), "{flow}");
        assert!(offer(flow, ack).1 <= Bytes(limit), "{flow}");
    }
    assert_eq!(router.port(Forward).flows(), 9_998, "it is memory of packets that is short");
}

#[test]
fn a_start_packet_in_the_name_of_a_flow_takes_nothing_from_it() {
    let mut bench = Bench::new();
    let before = bench.router.port(Forward).flow(&FlowKey::from(1));
    let syn = Numbers { next_seq: GUESSED.next_seq, acknowledged: None };
    assert_eq!(bench.says(Forward, syn, Structure::request(word(1))).mark, 0, "it goes on as it came");
    assert_eq!(bench.router.port(Forward).flow(&FlowKey::from(1)), before);
    // Of a flow that is still in its handshake the last one counts, and its own answer.
    let mut path = build(&[router("router", lines(100, QueueLimit::Unlimited))]);
    for seq in [GUESSED.next_seq.expect("a number"), SENT] {
        let numbers = Numbers { next_seq: Some(seq), acknowledged: None };
        let syn = Packet { numbers, ..signal(1, Structures::one(Structure::request(word(80)))) };
        let told = through(&mut path, at_ms(0), Forward, syn)[0].carried.expect("structures").first;
        assert_eq!(told.mark, 1);
    }
}
