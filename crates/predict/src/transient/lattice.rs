//! Where losses fall: every length of the way to the next loss, once for each share of probability.

use farpath_units::Probability;

/// The distances between the losses of one replica, of so many that share them out evenly.
///
/// Distances are geometric. The n-th distance of all replicas together is a sample of the distribution at evenly spaced
/// quantiles, in an order of its own for each n: a rank-1 lattice (Sloan, Joe 1994) with odd multipliers, which are drawn
/// once and for all. So a mean over few replicas is nearer to the expectation than that of as many independent runs, and is the
/// same every time.
#[derive(Debug, Clone)]
pub(super) struct Losses {
    /// `ln(1 - p)`; zero where nothing is lost.
    log_survival: f64,
    replica: u64,
    replicas: u64,
    dimension: u64,
    /// Packets that get through before the next that does not.
    gap: u64,
}

impl Losses {
    /// Of a power of two replicas.
    pub fn new(loss: Probability, replica: u64, replicas: u64) -> Losses {
        let log_survival = libm::log1p(-loss.fraction());
        let mut losses = Losses { log_survival, replica, replicas, dimension: 0, gap: 0 };
        losses.draw();
        losses
    }

    /// So many packets are sent. The place of the first that is lost among them, if one is; those behind it are not yet sent.
    pub fn first_of(&mut self, packets: u64) -> Option<u64> {
        if self.gap >= packets {
            self.gap -= packets;
            return None;
        }
        let place = self.gap;
        self.draw();
        Some(place)
    }

    /// How many of so many packets are lost.
    pub fn count_of(&mut self, packets: u64) -> u64 {
        let (mut left, mut lost) = (packets, 0);
        while let Some(place) = self.first_of(left) {
            lost += 1;
            left -= place + 1;
        }
        lost
    }

    /// How many packets are lost in a row in the mean, whatever was lost before them: `p / (1 - p)`.
    pub fn mean_run(&self) -> f64 {
        libm::expm1(-self.log_survival)
    }

    fn draw(&mut self) {
        self.gap = if self.log_survival == 0.0 {
            u64::MAX
        } else {
            (libm::log(self.quantile()) / self.log_survival) as u64
        };
    }

    /// The next number in (0, 1).
    fn quantile(&mut self) -> f64 {
        let (multiplier, shift) = (mix(2 * self.dimension) | 1, mix(2 * self.dimension + 1));
        // Within its share: the shortest distances are the ones that meet in one window.
        let within = mix(shift ^ self.replica) >> 11;
        self.dimension += 1;
        let place = self.replica.wrapping_mul(multiplier).wrapping_add(shift) & (self.replicas - 1);
        (place as f64 + (within as f64 + 0.5) / (1_u64 << 53) as f64) / self.replicas as f64
    }
}

/// The finalizer of `SplitMix64` (Steele, Lea, Flood 2014): it spreads neighbouring numbers.
fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_distance_is_shared_out_evenly_over_the_replicas() {
        let loss = Probability::new(0.01).expect("a probability");
        for skipped in 0..40 {
            let mean = (0..64)
                .map(|replica| {
                    let mut losses = Losses::new(loss, replica, 64);
                    (0..skipped).for_each(|_| losses.draw());
                    losses.gap as f64
                })
                .sum::<f64>()
                / 64.0;
            // A mean of 99. Of 64 independent ones the standard error would be 12.5 %; within its 64th the longest varies by
            // 1 to 2 % of the mean.
            assert!((mean / 99.0 - 1.0).abs() < 0.07, "{mean} for distance {skipped}");
        }
    }

    #[test]
    fn what_is_counted_is_what_is_met_one_by_one() {
        let loss = Probability::new(0.1).expect("a probability");
        let (mut counted, mut met) = (Losses::new(loss, 3, 16), Losses::new(loss, 3, 16));
        let one_by_one = (0..1000).filter(|_| met.first_of(1).is_some()).count() as u64;
        assert_eq!(counted.count_of(1000), one_by_one);
        assert!((60..140).contains(&one_by_one), "{one_by_one}");
        assert_eq!(Losses::new(Probability::ZERO, 0, 1).count_of(u64::MAX - 1), 0);
    }
}
