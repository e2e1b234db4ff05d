//! Opening a connection, and sending a segment, over a way that loses packets.
//!
//! Source: the further work of the protocol-radius paper; derived here. Every way in which the SYNs can be lost is
//! followed, and for each the listener's SYN/ACKs, of which the first that comes opens the connection.

use super::listening::HalfOpen;
use super::{Listening, NS, Opening, Timer};
use crate::{Estimate, InputError};
use farpath_units::Probability;

const SOURCE: &str =
    "every pattern of lost SYNs, its SYN/ACKs and their ACKs (derived); RFC 6298 section 5.5";

/// SYNs whose loss or arrival is followed: of more there are too many patterns.
pub const MOST_SYNS_FOLLOWED: usize = 12;

/// SYN/ACKs, or copies of a segment, after which no more are followed where nothing ends them.
const MOST_REPEATS: usize = 64;

/// What is less likely is not followed.
const NEGLIGIBLE: f64 = 1e-10;

/// A way that loses each packet independently of the others; `forward` is from the opener to the listener.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LossyWay {
    /// One-way delay of a packet without data, in s.
    pub forward_delay: f64,
    /// The same back.
    pub reverse_delay: f64,
    /// Loss rate of packets without data.
    pub forward_loss: Probability,
    /// The same back.
    pub reverse_loss: Probability,
    /// Loss rate forward of packets that carry a full segment.
    pub data_loss: Probability,
}

/// What an opener sends as soon as it takes the connection as open, and again until that is acknowledged.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FirstData {
    /// The SYN/ACK has an ACK of its own, before any data.
    pub ack_alone: bool,
    /// Segments at once; zero where it has none to send.
    pub segments: u32,
    /// Timer of the first of them.
    pub timer: Timer,
    /// A tail loss probe comes after so long, in s, or with the timer if that is first; the timer is started anew then.
    pub probe: Option<f64>,
    /// Expirations of the timer, of which the next one ends the connection; `None` never does.
    pub retries: Option<u32>,
}

/// How an opener came to take the connection as open.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Opened {
    /// In s from its first SYN.
    pub after: f64,
    /// SYNs that had left.
    pub syns: usize,
    /// When the SYN left that was answered first, in s from the first SYN: what a timestamp echoes.
    pub echoed: f64,
}

/// An opener and a listener over such a way.
pub struct LossyOpening<'a> {
    /// The end that opens.
    pub opening: &'a Opening,
    /// The end that answers.
    pub listening: &'a Listening,
    /// What is between.
    pub way: LossyWay,
    /// What the clocks of opener and listener show when the first SYN leaves, in s.
    pub clocks: [f64; 2],
    /// What the opener sends when it is open.
    pub first_data: &'a dyn Fn(Opened) -> FirstData,
}

/// What becomes of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Connects {
    /// Probability that the opener takes it as open.
    pub opened: f64,
    /// Probability that the listener does too. The rest of `opened` is half-open.
    pub usable: f64,
    /// Probability that the first segment arrives, where the opener has one only.
    pub delivered: f64,
    /// Mean time until the opener takes it as open, where it does, in s.
    pub time_to_open: Option<f64>,
    /// Mean time until the listener does, where it does, in s.
    pub time_to_use: Option<f64>,
    /// Mean time until a lone first segment arrives, where it does, in s.
    pub time_to_deliver: Option<f64>,
    /// The probability that has not been followed; the others are too small by this at the most.
    pub left_out: f64,
}

/// What becomes of a segment whose copies nothing helps but the timer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LoneSegment {
    /// Probability that it arrives before the sender gives up.
    pub delivered: f64,
    /// Probability that an answer to it does.
    pub answered: f64,
}

impl LossyWay {
    fn check(&self) -> Result<(), InputError> {
        for (quantity, delay) in
            [("the forward delay", self.forward_delay), ("the reverse delay", self.reverse_delay)]
        {
            if delay.is_nan() || delay < 0.0 || delay == f64::INFINITY {
                return Err(InputError::Negative { quantity });
            }
        }
        Ok(())
    }

    /// One way and back, in whole ns.
    fn delays(&self) -> [f64; 2] {
        [self.forward_delay, self.reverse_delay].map(|delay| libm::round(delay * NS))
    }

    /// A segment that is sent when the opener's clock shows `clock` s, and again by its timer until an ACK of it comes.
    pub fn lone_segment(&self, data: &FirstData, clock: f64) -> Result<Estimate<LoneSegment>, InputError> {
        self.check()?;
        data.timer.check()?;
        let [forward, reverse] = self.delays();
        let copies = data.copies(libm::round(clock * NS));
        let in_time = |way: f64| copies.sent.iter().filter(|&&at| at + way <= copies.given_up).count();
        let answers = (1.0 - self.data_loss.fraction()) * (1.0 - self.reverse_loss.fraction());
        let lone = LoneSegment {
            delivered: 1.0 - power(self.data_loss.fraction(), in_time(forward)),
            answered: 1.0 - power(1.0 - answers, in_time(forward + reverse)),
        };
        Ok(Estimate::new(lone, SOURCE))
    }
}

/// When a segment leaves, in ns after its first copy.
struct Copies {
    sent: Vec<f64>,
    /// When the sender gives up.
    given_up: f64,
}

impl FirstData {
    /// Copies of the first segment, which leaves when the clock shows `start` ns.
    fn copies(&self, start: f64) -> Copies {
        let mut sent = vec![0.0];
        let mut due = self.timer.deadline(start, 0);
        if let Some(probe) = self.probe {
            // Only a wheel makes a finer timer as coarse.
            let wait = Timer { initial: probe, max: f64::INFINITY, ..self.timer };
            let probed = if wait.wheel { wait.deadline(start, 0) } else { start + libm::round(probe * NS) };
            let at = probed.min(due);
            sent.push(at - start);
            due = self.timer.deadline(at, 0);
        }
        for number in 1.. {
            if self.retries.is_some_and(|most| number > most) {
                return Copies { sent, given_up: due - start };
            }
            if sent.len() == MOST_REPEATS || due == f64::INFINITY {
                break;
            }
            sent.push(due - start);
            due = self.timer.deadline(due, number);
        }
        Copies { sent, given_up: f64::INFINITY }
    }
}

/// A SYN/ACK.
#[derive(Clone, Copy)]
struct Answer {
    /// When it leaves, in ns after the first SYN.
    at: f64,
    /// Of which half-open connection, from zero: what was forgotten a later SYN begins anew.
    connection: usize,
}

/// A listener, and what it has done.
#[derive(Clone, Default)]
struct Listener {
    half_open: Option<HalfOpen>,
    answers: Vec<Answer>,
    /// When each half-open connection was forgotten, in ns after the first SYN.
    forgotten: Vec<f64>,
}

/// The followed patterns, and what has come of them.
struct Patterns<'a> {
    /// When each SYN leaves, and when the attempt is over or the next SYN is no longer followed, in ns after the first.
    syns: &'a [f64],
    end: f64,
    sum: Connects,
    /// Seconds until the connection is open to the opener, to the listener, and the lone segment has arrived, times the
    /// probabilities of these.
    times: [f64; 3],
}

impl LossyOpening<'_> {
    /// How likely it opens, to both ends, and when.
    ///
    /// Domain: packets are lost independently of each other, and nothing else delays them. The first [`MOST_SYNS_FOLLOWED`] SYNs
    /// are followed. Where SYN and timer meet at one instant, the SYN is first.
    pub fn connects(&self) -> Result<Estimate<Connects>, InputError> {
        self.opening.check()?;
        self.listening.timer.check()?;
        self.way.check()?;
        if self.listening.attempts == Some(0) {
            return Err(InputError::Zero { quantity: "the number of SYN/ACKs" });
        }
        let start = libm::round(self.clocks[0] * NS);
        let mut syns: Vec<f64> = self.opening.syns_from(start).take(MOST_SYNS_FOLLOWED + 1).collect();
        let more = syns.len() > MOST_SYNS_FOLLOWED;
        let end = if more { syns.remove(MOST_SYNS_FOLLOWED) } else { self.opening.over_from(start) };
        let mut patterns = Patterns { syns: &syns, end, sum: Connects::default(), times: [0.0; 3] };
        let lost = self.way.forward_loss.fraction();
        let mut listener = Listener::default();
        self.follow(&mut patterns, 1, &listener, lost);
        self.take_syn(&mut listener, self.way.delays()[0]);
        self.follow(&mut patterns, 1, &listener, 1.0 - lost);
        let Patterns { mut sum, times, .. } = patterns;
        if more {
            sum.left_out += 1.0 - sum.opened;
        }
        let [opened, used, delivered] = times;
        let mean = |time: f64, share: f64| (share > 0.0).then(|| time / share);
        sum.time_to_open = mean(opened, sum.opened);
        sum.time_to_use = mean(used, sum.usable);
        sum.time_to_deliver = mean(delivered, sum.delivered);
        let left_out = sum.left_out;
        Ok(Estimate::new(sum, SOURCE).caveat_if(left_out > 1e-6, || {
            format!(
                "the first {MOST_SYNS_FOLLOWED} SYNs are followed: {left_out:.1e} of the probability is left out"
            )
        }))
    }

    /// Adds what comes of it when `count` SYNs have left, of which `listener` has taken what arrived, and of all that can
    /// come after. So likely it came to this.
    fn follow(&self, patterns: &mut Patterns<'_>, count: usize, listener: &Listener, likely: f64) {
        let [forward, reverse] = self.way.delays();
        let answer_lost = self.way.reverse_loss.fraction();
        let next = patterns.syns.get(count).copied();
        // The opener opens after the last SYN that has left and before the next, or it does not yet.
        let (from, to) = (patterns.syns[count - 1], next.unwrap_or(patterns.end));
        let mut silence = listener.clone();
        self.run(&mut silence, f64::INFINITY);
        let mut still = likely;
        for (number, answer) in silence.answers.iter().enumerate() {
            let at = answer.at + reverse;
            if at > to || still < NEGLIGIBLE {
                break;
            }
            if at > from || count == 1 {
                let share = still * (1.0 - answer_lost);
                let Behind { usable, to_use, delivered, to_deliver } =
                    self.behind(&silence, number, at, count);
                patterns.sum.opened += share;
                patterns.sum.usable += share * usable;
                patterns.sum.delivered += share * delivered;
                for (sum, time) in patterns.times.iter_mut().zip([at / NS, to_use, to_deliver]) {
                    *sum += share * time;
                }
            }
            still *= answer_lost;
        }
        if still < NEGLIGIBLE {
            patterns.sum.left_out += still;
            return;
        }
        let Some(next) = next else { return };
        let lost = self.way.forward_loss.fraction();
        self.follow(patterns, count + 1, listener, likely * lost);
        let mut listener = listener.clone();
        self.run(&mut listener, next + forward);
        self.take_syn(&mut listener, next + forward);
        self.follow(patterns, count + 1, &listener, likely * (1.0 - lost));
    }

    /// The listener's timer, as long as it expires before `until`, in ns after the first SYN.
    fn run(&self, listener: &mut Listener, until: f64) {
        let clock = libm::round(self.clocks[1] * NS);
        let most = self.listening.attempts.unwrap_or(u32::MAX);
        while let Some(one) = listener.half_open
            && one.due < clock + until
            && listener.answers.len() < MOST_REPEATS
        {
            let connection = listener.forgotten.len() - 1;
            listener.half_open = self.listening.timed_out(one, most);
            match listener.half_open {
                Some(_) => listener.answers.push(Answer { at: one.due - clock, connection }),
                None => listener.forgotten[connection] = one.due - clock,
            }
        }
    }

    /// A SYN arrives, so many ns after the first has left.
    fn take_syn(&self, listener: &mut Listener, at: f64) {
        let clock = libm::round(self.clocks[1] * NS);
        let most = self.listening.attempts.unwrap_or(u32::MAX);
        let taken = match listener.half_open {
            Some(one) if self.listening.is_silent(one, most) => return,
            Some(one) => self.listening.answered(one, most, clock + at),
            None => {
                listener.forgotten.push(f64::INFINITY);
                HalfOpen { sent: 1, doublings: 0, due: self.listening.timer.deadline(clock + at, 0) }
            }
        };
        listener.half_open = Some(taken);
        listener.answers.push(Answer { at, connection: listener.forgotten.len() - 1 });
    }

    /// What comes of it where SYN/ACK `number` is the first that comes, `opened` ns after the first of so many SYNs.
    fn behind(&self, listener: &Listener, number: usize, opened: f64, syns: usize) -> Behind {
        let [forward, reverse] = self.way.delays();
        let LossyWay { forward_loss, reverse_loss, data_loss, .. } = self.way;
        let (lost, data_lost) = (forward_loss.fraction(), data_loss.fraction());
        let connection = listener.answers[number].connection;
        let forgotten = listener.forgotten[connection];
        let begun = listener.answers.iter().find(|answer| answer.connection == connection);
        let echoed = begun.map_or(0.0, |answer| answer.at - forward);
        let data = (self.first_data)(Opened { after: opened / NS, syns, echoed: echoed / NS });
        // What can open it to the listener until it is forgotten: when it arrives, and the probability that it does not.
        // Each SYN/ACK that comes later is answered by an ACK too.
        let alone = (data.ack_alone || data.segments == 0).then_some((opened + forward, lost));
        let later = listener.answers[number + 1..].iter().filter(|answer| answer.connection == connection);
        let not_acked = 1.0 - (1.0 - lost) * (1.0 - reverse_loss.fraction());
        let acks = alone.into_iter().chain(later.map(|one| (one.at + reverse + forward, not_acked)));
        let acks = acks.take_while(|(at, _)| *at <= forgotten);
        let no_ack: f64 = acks.clone().map(|(_, fails)| fails).product();
        let (mut copies, mut delivered, mut to_deliver) = (Vec::new(), 0.0, 0.0);
        if data.segments > 0 {
            let Copies { sent, given_up } = data.copies(libm::round(self.clocks[0] * NS) + opened);
            copies = sent;
            copies.retain(|at| at + forward <= given_up);
            let early = copies.partition_point(|at| opened + at + forward <= forgotten);
            let mut none = 1.0;
            for (number, at) in copies.iter().enumerate() {
                // What comes later finds the connection where an ACK has opened it before.
                let taken = none * (1.0 - data_lost) * if number < early { 1.0 } else { 1.0 - no_ack };
                delivered += taken;
                to_deliver += taken * (opened + at + forward) / NS;
                none *= data_lost;
            }
            copies.truncate(early);
        }
        let mut copies = copies.into_iter().map(|at| (opened + at + forward, data_lost)).peekable();
        // The other segments of the first flight leave with the first of them.
        let mut beside = power(data_lost, data.segments.saturating_sub(1) as usize);
        let mut acks = acks.peekable();
        let (mut usable, mut to_use, mut none) = (0.0, 0.0, 1.0);
        while none > NEGLIGIBLE {
            let ack_first = |ack: &(f64, f64)| copies.peek().is_none_or(|copy| ack.0 <= copy.0);
            let Some((at, fails)) = acks.next_if(ack_first).or_else(|| {
                let (at, fails) = copies.next()?;
                Some((at, fails * core::mem::replace(&mut beside, 1.0)))
            }) else {
                break;
            };
            usable += none * (1.0 - fails);
            to_use += none * (1.0 - fails) * at / NS;
            none *= fails;
        }
        Behind { usable, to_use, delivered, to_deliver }
    }
}

/// What comes of a connection that its opener takes as open.
struct Behind {
    /// Probability that the listener does too.
    usable: f64,
    /// When it does, in s after the first SYN, times that.
    to_use: f64,
    /// Probability that a lone first segment arrives.
    delivered: f64,
    /// The same of its time.
    to_deliver: f64,
}

fn power(base: f64, exponent: usize) -> f64 {
    core::iter::repeat_n(base, exponent).product()
}
