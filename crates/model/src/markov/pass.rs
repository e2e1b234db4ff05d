//! One pass of the probability from loss to loss, and what it costs.

use super::burst::{HOLES, Loss, at_least};
use super::chain::{Chain, Half, Mass};
use super::{PerSegment, Recovery};

/// Probability below which a branch is given up.
const NEGLIGIBLE: f64 = 1e-12;

/// What was spent, and how many new segments were sent for it.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Spent {
    pub seconds: f64,
    pub segments: f64,
    pub timeouts: f64,
    pub retransmissions: f64,
    pub fast_retransmits: f64,
}

impl Spent {
    pub fn per_segment(&self) -> PerSegment {
        PerSegment {
            seconds: self.seconds / self.segments,
            timeouts: self.timeouts / self.segments,
            retransmissions: self.retransmissions / self.segments,
            fast_retransmits: self.fast_retransmits / self.segments,
        }
    }
}

pub(super) struct Pass<'a> {
    chain: &'a Chain<'a>,
    now: Mass,
    pub next: Mass,
    /// Bursts with a loss, by window and age: at their first segment, at a later one.
    lost: Vec<Vec<[f64; 2]>>,
    pub spent: Spent,
}

/// A loss that duplicate ACKs have shown.
struct Shown {
    mass: f64,
    window: usize,
    /// Further losses in its window.
    holes: usize,
    age: usize,
}

impl<'a> Pass<'a> {
    pub fn new(chain: &'a Chain<'a>, now: Mass) -> Pass<'a> {
        let lost = vec![vec![[0.0; 2]; chain.timer.old + 1]; chain.window + 1];
        Pass { chain, now, next: chain.nothing(), lost, spent: Spent::default() }
    }

    /// All that waits takes its way to its next loss.
    pub fn run(&mut self) {
        self.run_stuck();
        self.run_restarted();
        self.run_slow_start();
        self.run_avoidance();
        // A repair may run into a loss of what it sent meanwhile; the window is smaller then.
        for window in (1..=self.chain.window).rev() {
            for age in 0..=self.chain.timer.old {
                let [first, rest] = self.lost[window][age];
                let burst = &self.chain.bursts[window];
                self.lose(window, &burst.first, first, age, 0);
                self.lose(window, &burst.rest, rest, age, 0);
            }
        }
    }

    fn older(&self, age: usize, rounds: usize) -> usize {
        (age + rounds).min(self.chain.timer.old)
    }

    // ---- Rounds ----

    /// A round of `cwnd`; gives how much of the probability meets no trouble.
    fn round(&mut self, cwnd: f64, mass: f64, age: usize, exponent: usize) -> f64 {
        let window = self.chain.whole(cwnd);
        let burst = &self.chain.bursts[window];
        let fine = mass * burst.fine;
        self.spent.seconds += fine * burst.seconds;
        self.spent.segments += (fine + mass * burst.stalled) * burst.sends;
        self.time_out(window, Half::OfFlight, 0, exponent, mass * burst.stalled, age);
        let (first, rest) = (mass * burst.first.probability, mass * burst.rest.probability);
        if exponent == 0 {
            self.lost[window][age][0] += first;
        } else {
            // The segment that is timed is lost: no sample ends the back-off.
            self.lose(window, &burst.first, first, age, exponent);
        }
        self.lost[window][age][1] += rest;
        fine
    }

    fn run_slow_start(&mut self) {
        for halves in 0..self.chain.paths.len() {
            for step in 0..self.chain.paths[halves].len() {
                let cwnd = self.chain.paths[halves][step];
                for (old, mass) in self.now.slow_start[halves][step].into_iter().enumerate() {
                    if mass > NEGLIGIBLE {
                        let age = if old == 1 { self.chain.timer.old } else { self.older(step, 1) };
                        let fine = self.round(cwnd, mass, age, 0);
                        grow(self.chain, &mut self.now, halves, step + 1, age, fine);
                    }
                }
            }
        }
    }

    fn run_avoidance(&mut self) {
        let old = self.chain.timer.old;
        for cell in 0..self.now.avoidance.len() {
            let cwnd = self.chain.cwnd(cell);
            let (lower, share) = self.chain.split(self.chain.avoid(cwnd));
            let burst = self.chain.burst(cwnd);
            let (fine, trouble) = (burst.fine, burst.trouble());
            for age in 0..=old {
                let mut mass = self.now.avoidance[cell][age];
                if mass <= NEGLIGIBLE * trouble {
                    continue;
                }
                let stays = if lower == cell && age == old { 1.0 - share } else { 0.0 };
                mass /= trouble + fine * (1.0 - stays);
                let fine = self.round(cwnd, mass, age, 0);
                let age = self.older(age, 1);
                if stays == 0.0 {
                    self.now.avoidance[lower][age] += fine * (1.0 - share);
                }
                if share > 0.0 {
                    self.now.avoidance[lower + 1][age] += fine * share;
                }
            }
        }
    }

    // ---- Losses ----

    /// A loss in a burst of `window`: shown by duplicate ACKs, or not.
    fn lose(&mut self, window: usize, loss: &Loss, mass: f64, age: usize, exponent: usize) {
        if mass <= NEGLIGIBLE {
            return;
        }
        let burst = &self.chain.bursts[window];
        self.spent.segments += mass * (window as f64 + loss.before);
        let timer_age = self.older(age, usize::from(loss.before > 0.0));
        for holes in 0..=HOLES {
            let slow = mass * burst.slow[holes];
            self.spent.seconds += slow * loss.timer_after;
            self.time_out(window, Half::OfFlight, holes, exponent, slow, timer_age);
            let fast = mass * burst.fast[holes];
            if fast > 0.0 {
                let rounds = 1.0 + loss.late;
                self.spent.seconds += fast * rounds * burst.rtt;
                let age = self.older(age, libm::round(rounds) as usize);
                self.fast_retransmit(&Shown { mass: fast, window, holes, age });
            }
        }
    }

    fn fast_retransmit(&mut self, shown: &Shown) {
        let &Shown { mass, window, holes, age } = shown;
        let chain = self.chain;
        self.spent.fast_retransmits += mass;
        self.spent.retransmissions += mass;
        let rtt = chain.bursts[window].rtt;
        let halves = chain.half(2 * window);
        if chain.flow.repair.recovery == Recovery::Tahoe {
            let arrives = mass * chain.survives;
            self.spent.seconds += arrives * rtt;
            self.next.restarted[window][holes.min(window - 1)] += arrives;
            return self.time_out(window, self.after_small_window(), holes, 0, mass - arrives, age);
        }
        // Duplicate ACKs inflate the window: what fits is new.
        let inflated = (halves / 2) as f64 + (window - 1).saturating_sub(holes) as f64 * (1.0 - chain.r);
        let new = chain.whole(inflated).saturating_sub(window);
        self.spent.segments += mass * new as f64;
        let acknowledged = 1.0 - chain.r * libm::pow(1.0 - chain.survives, new as f64);
        let ok = (1.0 - chain.p) * acknowledged;
        match chain.flow.repair.recovery {
            Recovery::Reno { guarded } if holes > 0 => {
                self.partial_ack(shown, new, ok, guarded);
            }
            Recovery::NewReno if holes > 0 => self.hole_by_hole(shown, new, ok),
            _ => {
                // With SACK all holes are filled at once, and each retransmission has to arrive.
                let ok = ok * libm::pow(1.0 - chain.p, holes as f64);
                self.spent.retransmissions += mass * holes as f64;
                self.spent.seconds += mass * ok * rtt;
                self.recovered(halves, new, self.older(age, 1), mass * ok);
                self.time_out(window, Half::OfFlight, 0, 0, mass * (1.0 - ok), age);
            }
        }
    }

    /// Reno leaves recovery with the first partial ACK; only what was sent meanwhile can show the next hole.
    fn partial_ack(&mut self, shown: &Shown, new: usize, ok: f64, guarded: bool) {
        let &Shown { mass, window, holes, age } = shown;
        let chain = self.chain;
        let rtt = chain.bursts[window].rtt;
        self.time_out(window, Half::OfFlight, holes, 0, mass * (1.0 - ok), age);
        let mass = mass * ok;
        self.spent.seconds += mass * rtt;
        let age = self.older(age, 1);
        let halves = chain.half(2 * window);
        let (mut again, mut more) = (0.0, 0.0);
        if holes == 1 && !guarded {
            for behind in 1..window {
                let room = (halves / 2).saturating_sub(window + new - behind);
                more += room as f64;
                again += at_least(chain.flow.repair.dup_ack_threshold, (new + room) as u64, chain.survives);
            }
            again /= (window - 1) as f64;
            more /= (window - 1) as f64;
        }
        self.spent.segments += mass * more;
        let (second, stuck) = (mass * again, mass * (1.0 - again));
        // Half of the window is still out behind a hole that lies anywhere.
        let flight = window.div_ceil(2);
        self.time_out(flight, Half::OfFlight, holes - 1, 0, stuck, age);
        self.spent.fast_retransmits += second;
        self.spent.retransmissions += second;
        self.spent.seconds += second * (1.0 + ok) * rtt;
        self.recovered(chain.half(halves), 0, self.older(age, 2), second * ok);
        self.time_out(flight, Half::OfFlight, 0, 0, second * (1.0 - ok), self.older(age, 1));
    }

    /// NewReno: each partial ACK shows the next hole, a round each.
    fn hole_by_hole(&mut self, shown: &Shown, new: usize, ok: f64) {
        let &Shown { mut mass, window, holes, mut age } = shown;
        let chain = self.chain;
        let rtt = chain.bursts[window].rtt;
        for hole in 0..=holes {
            if hole > 0 {
                self.spent.retransmissions += mass;
            }
            let left = holes - hole;
            let flight = (window * (left + 1)).div_ceil(holes + 1);
            // The first partial ACK started the timer for the last time.
            let in_time = hole < 2 || (hole - 1) as f64 * rtt < chain.timer.wait(0, chain.timer.old);
            let ok = if in_time { ok } else { 0.0 };
            self.time_out(flight, Half::OfFlight, left, 0, mass * (1.0 - ok), age);
            mass *= ok;
            self.spent.seconds += mass * rtt;
            age = self.older(age, 1);
        }
        self.recovered(chain.half(2 * window), new, age, mass);
    }

    /// Recovery is over; `new` segments were sent during it, and may have met a loss themselves.
    fn recovered(&mut self, halves: usize, new: usize, age: usize, mass: f64) {
        let chain = self.chain;
        let intact = libm::pow(1.0 - chain.p, new as f64);
        let window = chain.whole(halves as f64 / 2.0);
        self.lost[window][age][1] += mass * (1.0 - intact);
        let mass = mass * intact;
        let deflated = (new.max(1) + 1) as f64;
        let no_burst = chain.flow.repair.recovery == Recovery::NewReno && deflated < halves as f64 / 2.0;
        let step = if no_burst {
            chain.paths[halves].iter().take_while(|&&cwnd| cwnd <= deflated).count().saturating_sub(1)
        } else {
            chain.paths[halves].len()
        };
        if no_burst {
            self.next.slow_start[halves][step][1] += mass;
        } else {
            add(chain, &mut self.next, halves as f64 / 2.0, age, mass);
        }
    }

    // ---- Timeouts ----

    /// What a timeout in the slow start after another leaves as `ssthresh`.
    fn after_small_window(&self) -> Half {
        if self.chain.flow.congestion.whole_segments { Half::Least } else { Half::OfFlight }
    }

    /// The timer, started `age` rounds after a tick, runs out.
    fn time_out(&mut self, flight: usize, half: Half, holes: usize, exponent: usize, mass: f64, age: usize) {
        if mass > 0.0 {
            let flight = flight.clamp(1, self.chain.window);
            self.spent.seconds += mass * self.chain.timer.wait(exponent, age);
            self.next.stuck[exponent][flight][half as usize][holes.min(flight - 1)] += mass;
        }
    }

    /// The first segment is sent again, and again, the timeout doubling.
    fn run_stuck(&mut self) {
        let chain = self.chain;
        let top = chain.timer.top;
        let rtt = chain.bursts[1].rtt;
        let withheld = chain.flow.delayed_ack_timeout.as_secs_f64();
        for exponent in 0..=top {
            for flight in 1..=chain.window {
                for half in [Half::OfFlight, Half::Least] {
                    for holes in 0..=HOLES {
                        let mass = self.now.stuck[exponent][flight][half as usize][holes];
                        if mass <= NEGLIGIBLE {
                            continue;
                        }
                        let fails = 1.0 - chain.survives;
                        let longer = (exponent + 1).min(top);
                        // At the longest timeout it goes on until it works.
                        let tries = if exponent == top { 1.0 / chain.survives } else { 1.0 };
                        let repeated = if exponent == top { tries - 1.0 } else { fails };
                        self.spent.timeouts += mass * tries;
                        self.spent.retransmissions += mass * tries;
                        self.spent.seconds += mass * repeated * chain.timer.wait(longer, 0);
                        let arrives = if exponent == top { mass } else { mass * chain.survives };
                        if exponent < top {
                            let lower = chain.flow.congestion.lower_on_repeat;
                            let half = if lower { self.after_small_window() } else { half };
                            self.now.stuck[longer][flight][half as usize][holes] += mass * fails;
                        }
                        // In order, and nothing beyond it has arrived: no reason to acknowledge at once.
                        let alone = holes + 1 == flight && chain.flow.ack_every > 1;
                        self.spent.seconds += arrives * (rtt + if alone { withheld } else { 0.0 });
                        let kept = if chain.flow.timer.kept_until_sample { longer } else { 0 };
                        self.go_back(flight, chain.ssthresh(flight, half), holes, 0, kept, arrives);
                    }
                }
            }
        }
    }

    /// Tahoe repairs as after a timeout, without one.
    fn run_restarted(&mut self) {
        for flight in 1..=self.chain.window {
            for holes in 0..=HOLES {
                let mass = self.now.restarted[flight][holes];
                self.go_back(flight, self.chain.half(2 * flight), holes, 0, 0, mass);
            }
        }
    }

    /// Go-back-N after the first ACK, `holes` still to fill among `flight` segments.
    fn go_back(
        &mut self,
        flight: usize,
        halves: usize,
        holes: usize,
        step: usize,
        exponent: usize,
        mass: f64,
    ) {
        if mass <= NEGLIGIBLE {
            return;
        }
        let chain = self.chain;
        let path = &chain.paths[halves];
        let cwnd = path[step.min(path.len() - 1)];
        let age = self.older(step, 1);
        if holes == 0 || step + 1 >= path.len() {
            let mut mass = mass;
            let mut step = step;
            let mut age = age;
            if exponent > 0 {
                mass = self.round(cwnd, mass, age, exponent);
                step += 1;
                age = self.older(age, 1);
            }
            return grow(chain, &mut self.now, halves, step, age, mass);
        }
        let rtt = chain.burst(cwnd).rtt;
        let sends = chain.whole(cwnd);
        // Holes lie anywhere: so much is left from the next one on.
        let left = (flight * holes).div_ceil(holes + 1).max(holes);
        let again = sends.min(left);
        let new = sends - again;
        self.spent.retransmissions += mass * again as f64;
        self.spent.segments += mass * new as f64;
        let acks = (again - 1) as f64 + (new as f64 / chain.flow.ack_every as f64);
        let ok = (1.0 - chain.p) * (1.0 - chain.r * libm::pow(1.0 - chain.survives, acks));
        self.spent.seconds += mass * ok * rtt;
        let within = if left > 1 { (again - 1) as f64 / (left - 1) as f64 } else { 0.0 };
        let filled = within * (1.0 - chain.p);
        let intact = libm::pow(1.0 - chain.p, new as f64);
        let kept = if new > 0 { 0 } else { exponent };
        let others = holes - 1;
        let mut exactly = libm::pow(1.0 - filled, others as f64);
        for done in 0..=others {
            for (unfilled, share) in [(others - done, intact), (others - done + 1, 1.0 - intact)] {
                let share = mass * exactly * share;
                self.go_back(left, halves, unfilled, step + 1, kept, share * ok);
                let half = self.after_small_window();
                self.time_out(left + new, half, unfilled, exponent, share * (1.0 - ok), age);
            }
            let odds = filled / (1.0 - filled).max(f64::MIN_POSITIVE);
            exactly *= (others - done) as f64 / (done + 1) as f64 * odds;
        }
    }
}

/// Puts probability where its window is: still in slow start, or in congestion avoidance.
fn grow(chain: &Chain, into: &mut Mass, halves: usize, step: usize, age: usize, mass: f64) {
    let path = &chain.paths[halves];
    match path.get(step) {
        Some(&cwnd) if cwnd < halves as f64 / 2.0 && step + 1 < path.len() => {
            into.slow_start[halves][step][usize::from(age == chain.timer.old)] += mass;
        }
        cwnd => add(chain, into, cwnd.copied().unwrap_or(path[path.len() - 1]), age, mass),
    }
}

/// Splits probability between the two cells around a window, so that the mean is kept.
fn add(chain: &Chain, into: &mut Mass, cwnd: f64, age: usize, mass: f64) {
    let (lower, share) = chain.split(cwnd);
    into.avoidance[lower][age] += mass * (1.0 - share);
    if share > 0.0 {
        into.avoidance[lower + 1][age] += mass * share;
    }
}
