//! What one isolated drop costs Reno.
//!
//! Source: the high-BER paper (Sarkar, Ammann, Zabir, Electronics 2022, 11, 2254), section on the testbed's recovery:
//! Eq. 17 (RFC 5681 section 3.1, `cwnd += mss^2 / cwnd`), Table 9 and the arithmetic after it.

use crate::estimate::above_zero;
use crate::{Estimate, InputError};
use farpath_units::{Bytes, Duration};

const SOURCE: &str = "Sarkar, Ammann, Zabir, Electronics 2022, 11, 2254, Eq. 17 and Table 9; RFC 5681";

/// Windows above this are counted by the limit form: the steps grow as the square of the window.
const LARGEST_STEPPED: u64 = 4096;

/// Table 9: `steps` applications of `cwnd += mss^2 / cwnd` (Eq. 17), the start included, in bytes.
///
/// The paper prints whole bytes, rounded. Its value after six steps, 7762, is a slip for 6762. At most 10^6 steps.
pub fn table(mss: Bytes, start: Bytes, steps: u64) -> Result<Estimate<Vec<f64>>, InputError> {
    above_zero("the segment size", mss.0)?;
    above_zero("the starting window", start.0)?;
    if steps > 1_000_000 {
        return Err(InputError::Above { quantity: "the number of steps", limit: 1_000_000 });
    }
    let mss = mss.0 as f64;
    let mut cwnd = start.0 as f64;
    let mut rows = vec![cwnd];
    for _ in 0..steps {
        cwnd += mss * mss / cwnd;
        rows.push(cwnd);
    }
    Ok(Estimate::new(rows, SOURCE))
}

/// Rounds in which less than the window was sent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Phase {
    /// Round trips.
    pub rounds: f64,
    /// Segments sent in each.
    pub segments: f64,
}

/// The paper's own recovery: 3 rounds of 4 segments, 15 of 3, 9 of 4.5.
pub const PUBLISHED_RECOVERY: [Phase; 3] = [
    Phase { rounds: 3.0, segments: 4.0 },
    Phase { rounds: 15.0, segments: 3.0 },
    Phase { rounds: 9.0, segments: 4.5 },
];

/// What a recovery costs against a full window in every round.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cost {
    /// Rounds until the window is full again.
    pub rounds: f64,
    /// Segments sent in them.
    pub sent: f64,
    /// Segments that full windows would have sent on top of that.
    pub missing: f64,
    /// The same as rounds of full windows.
    pub rounds_lost: f64,
    /// The same as time.
    pub time: Duration,
}

/// Cost of a recovery given by its phases, against `window` segments in every `round`.
///
/// As in the paper a part of a segment counts as sent: 97.5 are 98, so 64 of 162 are missing, 10.67 rounds.
pub fn cost_of_phases(window: u64, round: Duration, phases: &[Phase]) -> Result<Estimate<Cost>, InputError> {
    above_zero("the window", window)?;
    let window = window as f64;
    let rounds: f64 = phases.iter().map(|phase| phase.rounds).sum();
    let sent: f64 = phases.iter().map(|phase| phase.rounds * phase.segments).sum();
    let missing = (rounds * window - libm::ceil(sent)).max(0.0);
    let rounds_lost = missing / window;
    let time = Duration::from_secs_f64(rounds_lost * round.as_secs_f64());
    Ok(Estimate::new(Cost { rounds, sent, missing, rounds_lost, time }, SOURCE))
}

/// What clocks the growth of the window after the recovery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Growth {
    /// So many steps of Eq. 17 per round, whatever the window: the paper's reading is one.
    PerRound(u64),
    /// One step per ACK (RFC 5681), an ACK for every so many segments; what is no full group waits at the receiver.
    PerAck(u64),
}

/// One drop in a flow that fills its receive window, repaired by fast retransmit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IsolatedDrop {
    /// Receive window, in segments.
    pub window: u64,
    /// Length of a round: the cycle with serialization and delayed ACK, not propagation alone.
    pub round: Duration,
    /// Growth after it.
    pub growth: Growth,
}

impl IsolatedDrop {
    /// Cost of the drop.
    ///
    /// Fast retransmit and recovery take three rounds and send two windows (12 of 18 segments at six); then the
    /// window grows from half of itself by `1 / cwnd` segments per step, and each round sends what fits.
    ///
    /// Domain: Reno or later, one drop, no other until the window is full, at least five segments. Checked with
    /// packet simulations: at 6 segments 5.33 rounds for 4.9 to 5.7 (by which segment of the window was hit), at 8
    /// to 32 within 1.1 rounds. Windows above 4096 segments use the limits `1 + b W / 8` and `1 + W^2 / (12 g)`.
    pub fn cost(&self) -> Result<Estimate<Cost>, InputError> {
        above_zero("the window", self.window)?;
        let (Growth::PerRound(each) | Growth::PerAck(each)) = self.growth;
        above_zero("the growth", each)?;
        let window = self.window as f64;
        let (rounds, missing) =
            if self.window > LARGEST_STEPPED { self.in_the_limit(each as f64) } else { self.stepped() };
        let (rounds, missing) = (rounds + 3.0, missing + window);
        let rounds_lost = missing / window;
        let cost = Cost {
            rounds,
            sent: rounds * window - missing,
            missing,
            rounds_lost,
            time: Duration::from_secs_f64(rounds_lost * self.round.as_secs_f64()),
        };
        Ok(Estimate::new(cost, SOURCE).caveat_if(self.window < 5, || {
            format!(
                "{} segments: three duplicate ACKs may not come, and the drop costs a timeout",
                self.window
            )
        }))
    }

    /// Rounds of linear growth, and segments missing in them.
    fn stepped(&self) -> (f64, f64) {
        let mut cwnd = (self.window as f64 / 2.0).max(2.0);
        let (mut rounds, mut missing) = (0_u64, 0_u64);
        while cwnd < self.window as f64 {
            let fits = cwnd as u64;
            let (sends, steps) = match self.growth {
                Growth::PerRound(steps) => (fits, steps),
                Growth::PerAck(every) if fits < every => (fits, 1),
                Growth::PerAck(every) => (fits - fits % every, fits / every),
            };
            rounds += 1;
            missing += self.window - sends;
            for _ in 0..steps {
                cwnd += 1.0 / cwnd;
                if cwnd >= self.window as f64 {
                    break;
                }
            }
        }
        (rounds as f64, missing as f64)
    }

    /// The same for a large window: `cwnd^2` grows by 2 per step, from a quarter of the window's square.
    fn in_the_limit(&self, each: f64) -> (f64, f64) {
        let window = self.window as f64;
        match self.growth {
            Growth::PerAck(_) => (each * window / 2.0, each * window * window / 8.0),
            Growth::PerRound(_) => {
                let rounds = (3.0 * window * window / (8.0 * each)).max(1.0);
                (rounds, (window * window * window / (12.0 * each)).min(rounds * window))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn high_ber_paper_table_9_with_row_6_corrected() {
        let rows = table(Bytes(1460), Bytes(4380), 14).unwrap().value;
        let rounded: Vec<u64> = rows.iter().map(|cwnd| libm::round(*cwnd) as u64).collect();
        let published =
            [4380, 4867, 5305, 5707, 6080, 6431, 6762, 7077, 7379, 7667, 7945, 8214, 8473, 8725, 8969];
        assert_eq!(rounded, published);
        assert!(table(Bytes(1460), Bytes(4380), u64::MAX).is_err());
    }

    #[test]
    fn high_ber_paper_loses_10_67_round_trips_per_drop() {
        let cost = cost_of_phases(6, Duration::from_millis(40), &PUBLISHED_RECOVERY).unwrap().value;
        assert_eq!((cost.rounds, cost.sent, cost.missing), (27.0, 97.5, 64.0));
        assert!((cost.rounds_lost - 10.67).abs() < 0.005);
        // Published 0.4268 from the rounded 10.67.
        assert!((cost.time.as_secs_f64() - 0.4268).abs() < 2e-4);
    }

    #[test]
    fn six_segments_lose_5_33_rounds_by_either_clock() {
        let drop =
            IsolatedDrop { window: 6, round: Duration::from_nanos(43_825_600), growth: Growth::PerAck(2) };
        let cost = drop.cost().unwrap().value;
        assert_eq!(cost.missing, 32.0);
        // A packet simulation of twelve drops, one per position: 0.2142 to 0.2511 s, mean 0.2208 s.
        assert!((cost.time.as_secs_f64() - 0.2337).abs() < 1e-4);
        let by_round = IsolatedDrop { growth: Growth::PerRound(1), ..drop }.cost().unwrap().value;
        assert_eq!(by_round.missing, 32.0);
    }

    /// Lost rounds of a packet simulation at 100 ms and 1 Gbit/s, least and most over six positions.
    #[test]
    fn larger_windows_agree_with_a_packet_simulation() {
        for (window, least, most) in
            [(8, 5.0, 6.0), (12, 5.0, 6.0), (16, 6.0, 6.0), (24, 8.0, 8.0), (32, 10.0, 11.0)]
        {
            let drop = IsolatedDrop { window, round: Duration::from_millis(100), growth: Growth::PerAck(2) };
            let lost = drop.cost().unwrap().value.rounds_lost;
            assert!(lost > least - 1.1 && lost < most + 1.1, "{window}: {lost}");
        }
    }

    #[test]
    fn the_limit_meets_the_steps() {
        for growth in [Growth::PerAck(2), Growth::PerAck(1), Growth::PerRound(3)] {
            let drop = |window| IsolatedDrop { window, round: Duration::from_secs(1), growth };
            let per = |window: u64| drop(window).cost().unwrap().value.rounds_lost;
            let power = if matches!(growth, Growth::PerRound(_)) { 2.0 } else { 1.0 };
            let ratio = per(4097) / per(4096) / libm::pow(4097.0 / 4096.0, power);
            assert!((ratio - 1.0).abs() < 0.01, "{growth:?} {ratio}");
        }
    }

    #[test]
    fn ten_gigabit_at_600_ms_loses_21_hours_per_drop() {
        let drop =
            IsolatedDrop { window: 513_699, round: Duration::from_millis(600), growth: Growth::PerAck(2) };
        let time = drop.cost().unwrap().value.time.as_secs_f64();
        assert!((time / (0.6 * 513_699.0 / 4.0) - 1.0).abs() < 1e-4, "{time}");
        let endless = IsolatedDrop { window: u64::MAX, ..drop };
        assert!(endless.cost().unwrap().value.time > Duration::from_secs(1 << 33));
    }

    #[test]
    fn small_windows_are_flagged() {
        let drop = IsolatedDrop { window: 4, round: Duration::from_millis(40), growth: Growth::PerAck(2) };
        assert_eq!(drop.cost().unwrap().caveats.len(), 1);
    }
}
