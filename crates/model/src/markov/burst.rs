//! What can happen to one window of segments, and to the ACKs that it brings.

use super::{Recovery, RenoChain};

/// Further losses in a window that are told apart; more count as this many.
pub(super) const HOLES: usize = 4;

/// One round of a flow with a window of `w` segments.
pub(super) struct Burst {
    /// New segments that leave per round: a segment short of a full group waits at the receiver.
    pub sends: f64,
    /// ACKs that come back, on the condition that one does.
    pub acks: f64,
    /// Length of a round, in seconds.
    pub rtt: f64,
    /// Length of a round without data loss, in seconds, what lost ACKs hold back included.
    pub seconds: f64,
    /// Nothing lost but perhaps some ACKs.
    pub fine: f64,
    /// Every segment arrives, and no ACK comes back.
    pub stalled: f64,
    /// The first loss is the burst's first segment.
    pub first: Loss,
    /// The first loss is a later one.
    pub rest: Loss,
    /// A loss brings enough duplicate ACKs, and so many further segments of its window are lost.
    pub fast: [f64; HOLES + 1],
    /// It does not; both sum to one.
    pub slow: [f64; HOLES + 1],
}

/// Where in the burst the first loss is.
pub(super) struct Loss {
    pub probability: f64,
    /// Segments of the burst before it, mean.
    pub before: f64,
    /// Duplicate ACKs enough come with the next burst only.
    pub late: f64,
    /// Seconds from the start of the round until the last ACK of new data, which starts the timer.
    pub timer_after: f64,
}

impl Burst {
    pub fn new(flow: &RenoChain, w: u64) -> Burst {
        let (p, r) = (flow.data_loss.fraction(), flow.ack_loss.fraction());
        let every = flow.ack_every;
        let rtt = flow.round.as_secs_f64().max(w as f64 * flow.spacing.as_secs_f64());
        let withheld = flow.delayed_ack_timeout.as_secs_f64();

        // Without data loss.
        let held = w % every;
        let sends = if w < every { w } else { w - held };
        let full_groups = w / every;
        let acks = full_groups as f64;
        let none_of_the_full = libm::pow(r, acks);
        // What is left of a group is acknowledged by the timer, and then stands in for lost ACKs.
        let none = if held > 0 { none_of_the_full * r } else { none_of_the_full };
        let some = 1.0 - none;
        let trailing = (1..full_groups.max(1)).map(|lost| libm::pow(r, lost as f64) - none_of_the_full);
        let held_back = trailing.sum::<f64>() * every as f64 / w as f64;
        let by_timer = withheld * (none_of_the_full - none);
        let seconds = if some > 0.0 { rtt + (held_back * rtt + by_timer) / some } else { rtt };
        let all_arrive = libm::exp(sends as f64 * libm::log1p(-p));

        // With a loss, `w - 1` segments follow it before the window is used up.
        let survives = (1.0 - p) * (1.0 - r);
        // The segment before it is not acknowledged yet: the next ACK is no duplicate.
        let uncovered = {
            let withheld_share = (every - 1) as f64 / every as f64;
            withheld_share + (1.0 - withheld_share) * r
        };
        let extra = if flow.repair.limited_transmit { 2.min(flow.window - w) } else { 0 };
        let threshold = match flow.repair.recovery {
            Recovery::TimeoutOnly => u64::MAX - 1,
            _ => flow.repair.dup_ack_threshold,
        };
        let enough = |segments: u64, arrives: f64| {
            (1.0 - uncovered) * at_least(threshold, segments, arrives)
                + uncovered * at_least(threshold + 1, segments, arrives)
        };
        let follow = w - 1 + extra;
        let (mut fast, mut slow) = ([0.0; HOLES + 1], [0.0; HOLES + 1]);
        let mut rest_of_sum = 1.0;
        let mut exactly = libm::pow(1.0 - p, follow as f64);
        for holes in 0..=HOLES.min(follow as usize) {
            let probability = if holes == HOLES.min(follow as usize) { rest_of_sum } else { exactly };
            let dup_acks = enough(follow - holes as u64, 1.0 - r);
            fast[holes] = probability * dup_acks;
            slow[holes] = probability * (1.0 - dup_acks);
            rest_of_sum = (rest_of_sum - probability).max(0.0);
            exactly *=
                (follow - holes as u64) as f64 / (holes + 1) as f64 * p / (1.0 - p).max(f64::MIN_POSITIVE);
        }

        let total = enough(follow, survives).max(f64::MIN_POSITIVE);
        let late = |position: u64| 1.0 - (enough(w.saturating_sub(position), survives) / total).min(1.0);
        let first = Loss {
            probability: p,
            before: 0.0,
            late: late(1),
            timer_after: uncovered * survives * rtt * if w > 1 { 1.0 } else { 0.0 },
        };
        let mut rest = Loss { probability: 0.0, before: 0.0, late: 0.0, timer_after: 0.0 };
        let mut weight = p;
        for position in 2..=sends {
            weight *= 1.0 - p;
            rest.probability += weight;
            rest.before += weight * (position - 1) as f64;
            rest.late += weight * late(position);
            // No full group before it and none behind it: what came before is acknowledged by the timer.
            let lone = position == w && w <= every;
            rest.timer_after += weight * (rtt + if lone { withheld } else { 0.0 });
        }
        if rest.probability > 0.0 {
            rest.before /= rest.probability;
            rest.late /= rest.probability;
            rest.timer_after /= rest.probability;
        }
        Burst {
            sends: sends as f64,
            acks: if some > 0.0 {
                (acks + if full_groups == 0 { 1.0 } else { 0.0 }) * (1.0 - r) / some
            } else {
                0.0
            },
            rtt,
            seconds,
            fine: all_arrive * some,
            stalled: all_arrive * none,
            first,
            rest,
            fast,
            slow,
        }
    }

    /// Probability that the round is not fine.
    pub fn trouble(&self) -> f64 {
        self.stalled + self.first.probability + self.rest.probability
    }
}

/// Probability that at least `k` of `n` arrive, each with probability `a`.
pub(super) fn at_least(k: u64, n: u64, a: f64) -> f64 {
    if k > n {
        return 0.0;
    }
    if a >= 1.0 {
        return 1.0;
    }
    let mut exactly = libm::pow(1.0 - a, n as f64);
    let mut fewer = 0.0;
    for j in 0..k {
        fewer += exactly;
        exactly *= (n - j) as f64 / (j + 1) as f64 * a / (1.0 - a);
    }
    (1.0 - fewer).clamp(0.0, 1.0)
}
