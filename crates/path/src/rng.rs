//! Random draws that belong to one element and one direction.
//!
//! A generator is a pure function of (run seed, element name, direction), and every loss process
//! draws a fixed number of times per counted packet. So packet n meets the same fate whatever its
//! neighbours on the path do, and on every machine: a draw compares integers.

use crate::{Direction, PerDirection};
use core::hash::Hasher;
use farpath_units::{Duration, Probability};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use siphasher::sip128::{Hasher128, SipHasher24};

/// Draws are 53 bits wide, as many as the significand of an `f64` holds.
const DRAW_BITS: u32 = 53;

/// A probability as it is compared with a draw: a whole number of 2^-53 (1.1e-16).
///
/// Never and always are exact. A probability below 2^-54 rounds to never.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chance(u64);

impl From<Probability> for Chance {
    fn from(probability: Probability) -> Chance {
        Chance(libm::round(probability.fraction() * (1u64 << DRAW_BITS) as f64) as u64)
    }
}

/// The random numbers of one element in one direction: xoshiro256++ (Blackman and Vigna 2021),
/// seeded by SipHash-2-4 with 128 bits of output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Generator(Xoshiro256PlusPlus);

impl Generator {
    /// The generator of the element with this name, in this direction, in the run with this seed.
    pub fn new(run_seed: u64, element: &str, direction: Direction) -> Generator {
        let mut seed = [0; 32];
        // Two keys, because xoshiro256++ wants twice the bits that one hash gives.
        for (half, key) in seed.chunks_exact_mut(16).zip(0..) {
            let mut hasher = SipHasher24::new_with_keys(run_seed, key);
            hasher.write(element.as_bytes());
            hasher.write(&[direction as u8]);
            half.copy_from_slice(&hasher.finish128().as_bytes());
        }
        Generator(Xoshiro256PlusPlus::from_seed(seed))
    }

    /// One for each direction.
    pub fn per_direction(run_seed: u64, element: &str) -> PerDirection<Generator> {
        PerDirection::from_fn(|direction| Generator::new(run_seed, element, direction))
    }

    /// Draws once: whether an event of this chance happens.
    pub fn happens(&mut self, chance: Chance) -> bool {
        self.0.next_u64() >> (u64::BITS - DRAW_BITS) < chance.0
    }

    /// Draws once: a whole number in `[0, bound)`, zero where `bound` is. Uneven by less than `bound` / 2^64.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.0.next_u64()) * u128::from(bound)) >> u64::BITS) as u64
    }

    /// Draws once: a number in (0, 1], so that its logarithm is finite.
    pub fn fraction(&mut self) -> f64 {
        ((self.0.next_u64() >> (u64::BITS - DRAW_BITS)) + 1) as f64 / (1u64 << DRAW_BITS) as f64
    }

    /// Draws twice: a number of the standard normal distribution (Box and Muller 1958).
    pub fn normal(&mut self) -> f64 {
        let radius = libm::sqrt(-2.0 * libm::log(self.fraction()));
        radius * libm::cos(2.0 * core::f64::consts::PI * self.fraction())
    }

    /// Draws once: a time of the exponential distribution with this mean, in whole nanoseconds.
    pub fn exponential(&mut self, mean: Duration) -> Duration {
        Duration::from_nanos(libm::round(-libm::log(self.fraction()) * mean.as_nanos() as f64) as u64)
    }

    /// Draws once: a time of the Lomax distribution (Pareto II) with shape 3/2 and this mean, in whole nanoseconds. Half of them
    /// are below 0.3 means, a hundredth above 10, a thousandth above 50; what would be above 1000 is 1000 means.
    pub fn heavy_tailed(&mut self, mean: Duration) -> Duration {
        let root = libm::cbrt(self.fraction());
        let means = ((1.0 / (root * root) - 1.0) / 2.0).min(1000.0);
        Duration::from_nanos(libm::round(means * mean.as_nanos() as f64) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chance(fraction: f64) -> Chance {
        Chance::from(Probability::new(fraction).expect("a fraction within 0 and 1"))
    }

    #[test]
    fn never_and_always_are_exact() {
        assert_eq!(chance(0.0), Chance(0));
        assert_eq!(chance(1.0), Chance(1 << 53));
        let mut generator = Generator::new(1, "x", Direction::Forward);
        assert!((0..10_000).all(|_| generator.happens(chance(1.0)) && !generator.happens(chance(0.0))));
    }

    #[test]
    fn chance_is_the_nearest_multiple_of_2_to_the_minus_53() {
        assert_eq!(chance(0.5), Chance(1 << 52));
        assert_eq!(chance(0.5f64.powi(53)), Chance(1));
        // BER 1e-17 at 1500 B: PER 1.2e-13 keeps three digits.
        assert_eq!(chance(1.2e-13), Chance(1081));
        assert_eq!(chance(1e-17), Chance(0));
    }

    // Computed apart from this crate, from the definitions of SipHash-2-4-128 and xoshiro256++: a published
    // run must repeat after a change of a dependency, too.
    #[test]
    fn the_first_draws_of_a_seed_never_change() {
        let mut forward = Generator::new(7, "noise", Direction::Forward);
        let draws: Vec<u64> = (0..4).map(|_| forward.0.next_u64()).collect();
        assert_eq!(
            draws,
            [3889422745525044251, 15565265515407969304, 8900490288395494538, 5998900983337908198]
        );
        let mut reverse = Generator::new(7, "noise", Direction::Reverse);
        assert_eq!(reverse.0.next_u64(), 4496152402285972076);
    }

    #[test]
    fn seed_name_and_direction_each_give_other_numbers() {
        let base = Generator::new(7, "noise", Direction::Forward);
        assert_eq!(base, Generator::new(7, "noise", Direction::Forward));
        assert_ne!(base, Generator::new(8, "noise", Direction::Forward));
        assert_ne!(base, Generator::new(7, "noise2", Direction::Forward));
        assert_ne!(base, Generator::new(7, "noise", Direction::Reverse));
    }

    #[test]
    fn heavy_tailed_times_have_their_quantiles() {
        let mut generator = Generator::new(7, "noise", Direction::Forward);
        let mean = Duration::from_micros(10);
        let mut times: Vec<u64> = (0..100_000).map(|_| generator.heavy_tailed(mean).as_nanos()).collect();
        times.sort_unstable();
        // By the distribution function, 1 - (1 + x / 5 us)^-1.5; the bounds are five standard errors of each quantile.
        for (rank, expected, error) in
            [(50_000, 2_937.0, 0.03), (90_000, 18_208.0, 0.05), (99_000, 102_722.0, 0.12)]
        {
            let found = times[rank] as f64;
            assert!((found / expected - 1.0).abs() < error, "of {rank}: {found} ns, expected {expected}");
        }
        assert_eq!(generator.heavy_tailed(Duration::ZERO), Duration::ZERO);
    }

    #[test]
    fn a_number_below_a_bound_reaches_all_of_it() {
        let mut generator = Generator::new(7, "noise", Direction::Forward);
        let mut seen = [0u32; 5];
        (0..1000).for_each(|_| seen[generator.below(5) as usize] += 1);
        assert!(seen.iter().all(|&n| n > 140), "{seen:?}");
        assert_eq!(generator.below(0), 0);
    }
}
