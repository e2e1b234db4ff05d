//! Properties: whatever the path or the peer does, what must hold holds.

use crate::pipe::{Dice, Hostility, ISNS, Pipe, Program};
use crate::time;
use farpath_strategies::{DrawnStack, Values, all_stacks, stacks};
use farpath_tcp::{
    CloseReason, Config, Connection, Ecn, Endpoint, Flags, SackBlock, SackBlocks, Segment, Seq, State,
    Timestamps,
};
use farpath_units::{Bytes, Duration, Instant};
use proptest::prelude::*;

/// A stack whose connection neither gives up nor reads slowly: what is lost often enough is still delivered.
fn patient_stacks() -> impl Strategy<Value = DrawnStack> {
    stacks(Values::Workable).prop_map(|mut stack| {
        let handshake = &mut stack.config.handshake;
        handshake.syn_attempts = None;
        handshake.connect_timeout = None;
        handshake.synack_attempts = None;
        // Not for ever, or a last FIN to a peer that is gone and sends no reset would be.
        handshake.data_retries = Some(60);
        stack.config.receive.read_rate = None;
        stack
    })
}

fn programs() -> impl Strategy<Value = Program> {
    let reads = prop::option::weighted(0.4, (1u64..100_000, (1u64..400).prop_map(Duration::from_millis)));
    (prop_oneof![1 => Just(0u64), 2 => 0..400_000u64], reads)
        .prop_map(|(writes, reads)| Program { writes, reads })
}

fn hostilities() -> impl Strategy<Value = Hostility> {
    (0u8..30, 0u8..20, 0u8..30, 0u8..=100, any::<u64>()).prop_map(
        |(loss, duplication, reordering, marks, seed)| Hostility {
            loss,
            duplication,
            reordering,
            marks,
            seed,
        },
    )
}

proptest! {
    /// Every byte arrives, in order, once; both ends learn of it and end.
    #[test]
    fn every_byte_arrives_whatever_the_path_does(
        stacks in (patient_stacks(), patient_stacks()),
        mut programs in (programs(), programs()),
        hostility in hostilities(),
        delay in (0u64..400).prop_map(Duration::from_millis),
    ) {
        // Of segments of a few bytes, and of windows and buffers of a few, less is sent, and it is read in fewer pieces. Where
        // ACKs are lost, a stack that takes each lost one for a longer round trip waits for `rto.max` each time.
        let window = |stack: &DrawnStack| stack.receive.buffer.min(stack.send.buffer.unwrap_or(Bytes::MAX)).0;
        let smss = stacks.0.mss.0.min(stacks.1.mss.0).max(14) - 13;
        let most = smss.min(window(&stacks.0)).min(window(&stacks.1)) * 40;
        for program in [&mut programs.0, &mut programs.1] {
            program.writes = program.writes.min(most);
            program.reads = program.reads.map(|(bytes, pause)| (bytes.max(most / 200), pause));
        }
        let mut pipe =
            Pipe::new([&stacks.0, &stacks.1], [programs.0, programs.1], delay).hostile(&hostility);
        pipe.run(time("10000000 s"));
        prop_assert!(pipe.delivered(), "{:?} of {programs:?} at {}", pipe.read, pipe.now);
        for (end, peer) in [(0, programs.1), (1, programs.0)] {
            prop_assert_eq!(pipe.ends[end].receiver().next(), peer.writes + 2, "SYN, bytes, FIN");
        }
        // The end that does not wait may have to ask again after the one that does is gone.
        for end in &pipe.ends {
            prop_assert!(end.closed().is_some(), "{:?} at {}", end.state(), pipe.now);
        }
    }
}

/// A segment that may mean anything, mostly near where it would matter; a `tame` one is an ACK where it belongs.
fn forge(dice: &mut Dice, end: &Connection, now: Instant, tame: bool) -> Segment {
    let [isn, peer_isn] = ISNS;
    let near = |dice: &mut Dice, isn: Seq, position: u64| match if tame { 7 } else { dice.below(8) } {
        0 => Seq(dice.next() as u32),
        1 | 2 => isn.advanced_by(position.wrapping_add(dice.below(5000)).wrapping_sub(2500)),
        3 => isn.advanced_by(position.wrapping_add(dice.below(3)).wrapping_sub(1)),
        _ => isn.advanced_by(position),
    };
    let sender = end.sender();
    let (una, flight) = (1 + sender.acked(), sender.flight_size());
    let flags = match if tame { 7 } else { dice.below(12) } {
        0 => Flags(dice.next() as u8),
        1 => Flags::SYN,
        2 => Flags::SYN | Flags::ACK,
        3 if dice.per_cent(25) => Flags::RST | Flags::ACK,
        4 if dice.per_cent(25) => Flags::FIN | Flags::ACK,
        _ => Flags::ACK,
    };
    let ack = match dice.below(3) {
        0 => una,
        1 => una + dice.below(flight + 2),
        _ => una + (sender.smss() * dice.below(4)).min(flight),
    };
    let ahead = if dice.per_cent(25) { sender.smss() * dice.below(5) } else { 0 };
    let seq = near(dice, peer_isn, end.receiver().next() + ahead);
    let mut segment = Segment::new(flags, seq, near(dice, isn, ack));
    segment.ecn = Ecn::from_bits(dice.next() as u8);
    if !tame && dice.per_cent(25) {
        segment.flags |= [Flags::ECE, Flags::CWR, Flags::ECE | Flags::CWR][dice.below(3) as usize];
    }
    segment.len = [0, 0, 0, 1, 100, 1000, 1448, 1460, u16::MAX][dice.below(9) as usize];
    segment.window = [0, 1, 100, 5000, u16::MAX, u16::MAX, u16::MAX][dice.below(7) as usize];
    if dice.per_cent(25) {
        segment.mss = Some([0, 1, 536, 1460, u16::MAX][dice.below(5) as usize]);
        segment.window_scale = Some(dice.next() as u8);
        segment.sack_permitted = true;
    }
    if dice.per_cent(50) {
        let ms = (now.as_nanos() / 1_000_000) as u32;
        let value = if dice.per_cent(25) { dice.next() as u32 } else { ms.wrapping_add(1000) };
        let recent = ms.wrapping_sub(dice.below(500) as u32);
        let echo = if dice.per_cent(25) { dice.next() as u32 } else { recent };
        segment.timestamps = Some(Timestamps { value, echo });
    }
    segment.sack = SackBlocks::EMPTY;
    if dice.per_cent(50) {
        for _ in 0..dice.below(5) {
            let place = una + dice.below(flight + 1);
            let start = near(dice, isn, place);
            let len = if dice.per_cent(50) { sender.smss() * dice.below(6) } else { dice.below(3000) };
            segment.sack.push(SackBlock { start, end: start.advanced_by(len) });
        }
    }
    segment
}

/// An endpoint under fire, and what is known of it from outside.
struct Target<'a> {
    config: &'a Config,
    end: Connection,
    now: Instant,
    /// Sequence numbers that were sent to it.
    received: u64,
    written: u64,
    read: u64,
    acked: u64,
    /// As far as its peer has let it send.
    edge: u64,
    /// Shift of the windows that it announces, where its connection was opened by a handshake that is known.
    scale: Option<u8>,
    /// As far as it has let its peer send.
    right_edge: u64,
}

impl<'a> Target<'a> {
    fn new(config: &'a Config, connects: bool) -> Target<'a> {
        let [isn, _] = ISNS;
        let end = if connects { Connection::connect(config, isn) } else { Connection::listen(config, isn) };
        Target {
            config,
            end,
            now: Instant::ZERO,
            received: 0,
            written: 0,
            read: 0,
            acked: 0,
            edge: 0,
            scale: None,
            right_edge: 0,
        }
    }

    /// Opens the connection as it ought to be opened.
    fn shake_hands(&mut self, dice: &mut Dice, connects: bool) {
        let [isn, peer_isn] = ISNS;
        let mut opening = if connects {
            Segment::new(Flags::SYN | Flags::ACK, peer_isn, isn.advanced_by(1))
        } else {
            Segment::new(Flags::SYN, peer_isn, Seq(0))
        };
        opening.window = u16::MAX;
        opening.mss = Some(1460);
        opening.window_scale = dice.per_cent(80).then_some(7);
        opening.sack_permitted = dice.per_cent(80);
        opening.timestamps = dice.per_cent(80).then_some(Timestamps { value: 1, echo: 0 });
        let mut own = if connects { self.end.poll_segment(self.now) } else { None };
        self.now += Duration::from_millis(50);
        self.arrives(&opening);
        if !connects {
            own = self.end.poll_segment(self.now);
            self.now += Duration::from_millis(50);
            let mut last = Segment::new(Flags::ACK, peer_isn.advanced_by(1), isn.advanced_by(1));
            last.window = u16::MAX;
            last.timestamps = Some(Timestamps { value: 2, echo: 0 });
            self.arrives(&last);
        }
        assert_eq!(self.end.state(), State::Established);
        let own = own.expect("a SYN, or a SYN/ACK").window_scale;
        self.scale = Some(own.filter(|_| opening.window_scale.is_some()).unwrap_or(0));
    }

    fn arrives(&mut self, segment: &Segment) {
        let (state, next) = (self.end.state(), self.end.receiver().next());
        self.received += segment.seq_len();
        self.end.on_segment(self.now, segment);
        let now = self.end.state();
        // RFC 5961 §3.2: a reset that is believed lies exactly at RCV.NXT.
        if self.scale.is_some()
            && state != State::Closed
            && now == State::Closed
            && segment.flags.contains(Flags::RST)
        {
            assert_eq!(segment.seq, ISNS[1].advanced_by(next), "a reset in {state:?}");
        }
        if now == State::Listen || now == State::SynReceived && self.end.sender().acked() < self.acked {
            // Begun anew.
            (self.acked, self.edge, self.scale) = (0, 0, None);
        }
    }

    /// One thing that a program, the clock or the network does.
    fn step(&mut self, dice: &mut Dice, tameness: u8) {
        match dice.below(10) {
            0 => self.written += self.end.write(dice.below(60_000)),
            1 => {
                let most = if dice.per_cent(50) { u64::MAX } else { dice.below(5000) };
                self.read += self.end.read(most);
            }
            2 => {
                self.now += Duration::from_nanos(1 << dice.below(32));
                self.end.on_timer(self.now);
            }
            3 if dice.per_cent(2) => self.end.close(),
            4 => {
                if let Some(due) = self.next_due().filter(|&due| due > self.now) {
                    self.now = due;
                    self.end.on_timer(due);
                }
            }
            5 if dice.per_cent(20) => {
                let beyond = self.end.receiver().next() + 1 + dice.below(3000);
                self.arrives(&Segment::new(Flags::RST, ISNS[1].advanced_by(beyond), Seq(0)));
            }
            _ => {
                let tame = dice.per_cent(tameness);
                self.arrives(&forge(dice, &self.end, self.now, tame));
            }
        }
        self.check();
        self.poll();
        self.run_timers();
    }

    /// Runs what is due now, and takes what it sends.
    fn run_timers(&mut self) {
        for again in 0.. {
            if self.end.next_due().is_none_or(|due| due > self.now) {
                break;
            }
            assert!(again < 20, "due again at once in {:?}", self.end.state());
            self.end.on_timer(self.now);
            self.poll();
        }
    }

    fn check(&mut self) {
        let (sender, receiver) = (self.end.sender(), self.end.receiver());
        assert!(receiver.next() <= self.received, "it acknowledges what never came");
        assert!(sender.acked() >= self.acked, "snd_una never goes back");
        self.acked = sender.acked();
        assert!(self.acked <= self.written + 2, "{} acknowledged of {}", self.acked, self.written);
        assert!(self.read + self.end.readable() <= receiver.next(), "it reads what never came");
        self.edge = self.edge.max(1 + self.acked + sender.rwnd());
        if let State::Closed = self.end.state() {
            assert!(self.end.closed().is_some());
        } else if self.end.established_at().is_some() {
            assert!(sender.window().cwnd > 0);
        }
    }

    /// Takes all that it sends now.
    fn poll(&mut self) {
        for polled in 0.. {
            // A segment is an octet at the least, and a window can be open for all of them at once.
            assert!(polled < 2000 + self.written, "an endpoint that never stops in {:?}", self.end.state());
            let Some(segment) = self.end.poll_segment(self.now) else { break };
            let sender = self.end.sender();
            let sent_up_to = 1 + sender.acked() + sender.flight_size();
            assert!(sent_up_to <= self.edge + 2, "{sent_up_to} is beyond {}, an octet and a FIN", self.edge);
            assert!(u64::from(segment.len) <= sender.smss());
            let answers =
                segment.flags.contains(Flags::ACK) && !segment.flags.intersects(Flags::RST | Flags::SYN);
            if let Some(scale) = self.scale.filter(|_| answers) {
                let next = self.end.receiver().next();
                assert_eq!(segment.ack, ISNS[1].advanced_by(next));
                let window = u64::from(segment.window) << scale;
                // A window that grows ends with the buffer rounded up to what the field can say, as in `__tcp_select_window()`.
                let receive = &self.config.receive;
                let unit = if receive.autotuning { 1 << scale } else { 1 };
                // Not the buffer rounded up: it may be all the memory that there is.
                let beyond = window.saturating_sub(receive.buffer.0);
                assert!(beyond < unit, "{window} B of {}", receive.buffer);
                // RFC 9293 §3.8.6: a window does not shrink, but for what a shift cannot say (RFC 7323 §2.4).
                let right_edge = next + window;
                assert!(
                    right_edge + (1 << scale) > self.right_edge,
                    "{right_edge} is before {}",
                    self.right_edge
                );
                self.right_edge = self.right_edge.max(right_edge);
            }
        }
    }

    /// When it is due, if that is within some centuries: timers stand still at the end of time.
    fn next_due(&self) -> Option<Instant> {
        self.end.next_due().filter(|&due| due < Instant::ZERO + Duration::from_secs(1 << 33))
    }

    /// Left alone, it goes on in time.
    fn rest(&mut self) {
        for _ in 0..3000 {
            let Some(due) = self.next_due() else { break };
            assert!(due > self.now, "due at {due}, which is not after {}", self.now);
            self.now = due;
            self.run_timers();
        }
    }
}

/// Each step draws from a seed of its own, so that a failure keeps the steps that matter.
fn bombard(config: &Config, connects: bool, shakes: bool, tameness: u8, steps: &[u64]) {
    let mut target = Target::new(config, connects);
    if shakes {
        target.shake_hands(&mut Dice::new(steps.first().copied().unwrap_or(0)), connects);
        target.check();
    }
    for &seed in steps {
        target.step(&mut Dice::new(seed), tameness);
    }
    target.rest();
}

proptest! {
    #[test]
    fn no_segment_whatever_it_says_upsets_an_endpoint(
        stack in all_stacks(),
        (connects, shakes) in (any::<bool>(), prop::bool::weighted(0.85)),
        tameness in prop::sample::select(vec![0, 50, 90, 98, 100]),
        steps in prop::collection::vec(any::<u64>().no_shrink(), 0..400),
    ) {
        bombard(&stack, connects, shakes, tameness, &steps);
    }
}

#[test]
fn a_connection_with_retries_ends_by_them_when_the_path_is_cut() {
    let config = crate::script::config(|c| c.handshake.data_retries = Some(5));
    let all = Hostility { loss: 100, ..Hostility::default() };
    let programs = [Program { writes: 10_000, reads: None }, Program::default()];
    let mut pipe = Pipe::new([&config, &config], programs, Duration::from_millis(10));
    pipe.run(time("0.02 s"));
    pipe = pipe.hostile(&all);
    pipe.run(time("1000 s"));
    assert_eq!(pipe.ends[0].closed().map(|(reason, _)| reason), Some(CloseReason::RetriesExhausted));
}
