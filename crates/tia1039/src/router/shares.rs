//! Weighted max-min shares of a capacity, kept up to date flow by flow.

use crate::{RateWord, Rounding};

/// Words with `nz` = 1, each of them a bucket.
const BUCKETS: usize = 1 << 14;

/// What the flows of one bucket want together.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    demand: u64,
    weight: u64,
}

/// Demands sorted by `demand / weight`, from which the water level of max-min fairness is found without going through
/// the flows: the level at which all that want less are satisfied, and the rest have the same rate by weight.
///
/// The buckets are the words of the rate code. A flow of weight 1 wants the rate of a word, so that its bucket holds that
/// demand and no other, and the level is exact; of other weights a bucket is 1/512 wide, and the level is on the safe
/// side by no more than that. A change costs 14 steps in a Fenwick tree (Fenwick 1994), and so does finding the level.
#[derive(Debug, Clone)]
pub(super) struct Shares {
    /// Partial sums, from 1 on.
    tree: Box<[Sum]>,
    total: Sum,
}

/// The water level: units of rate for each unit of weight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    /// Everybody can have what they want.
    Unlimited,
    /// `units / weight`.
    Ratio { units: u64, weight: u64 },
}

impl Level {
    /// The share of a flow that wants `demand`, in units.
    pub fn share(self, demand: u64, weight: u8) -> u64 {
        match self {
            Level::Unlimited => demand,
            Level::Ratio { units, weight: all } => {
                let share = u128::from(units) * u128::from(weight) / u128::from(all);
                u64::try_from(share).map_or(demand, |share| share.min(demand))
            }
        }
    }

    /// Whether it is above `other`.
    fn above(self, other: Level) -> bool {
        match (self, other) {
            (_, Level::Unlimited) => false,
            (Level::Unlimited, _) => true,
            (Level::Ratio { units: a, weight: b }, Level::Ratio { units: c, weight: d }) => {
                u128::from(a) * u128::from(d) > u128::from(c) * u128::from(b)
            }
        }
    }
}

/// The bucket of a demand, from 0.
fn bucket(demand: u64, weight: u8) -> usize {
    let ratio = (demand / u64::from(weight)).max(1);
    usize::from(RateWord::from_units(ratio, Rounding::Down).bits()) & (BUCKETS - 1)
}

/// The lowest ratio of a bucket.
fn floor(bucket: usize) -> u64 {
    RateWord::from_bits(1 << 14 | bucket as u16).units()
}

impl Shares {
    pub fn new() -> Shares {
        Shares { tree: vec![Sum::default(); BUCKETS + 1].into_boxed_slice(), total: Sum::default() }
    }

    /// One more flow that wants `demand` units. One that wants none does not count.
    pub fn add(&mut self, demand: u64, weight: u8) {
        self.change(demand, weight, u64::wrapping_add);
    }

    /// One such flow less.
    pub fn remove(&mut self, demand: u64, weight: u8) {
        self.change(demand, weight, u64::wrapping_sub);
    }

    fn change(&mut self, demand: u64, weight: u8, by: fn(u64, u64) -> u64) {
        if demand == 0 {
            return;
        }
        let mut at = bucket(demand, weight) + 1;
        while at <= BUCKETS {
            let sum = &mut self.tree[at];
            *sum = Sum { demand: by(sum.demand, demand), weight: by(sum.weight, u64::from(weight)) };
            at += at & at.wrapping_neg();
        }
        let total = &mut self.total;
        *total = Sum { demand: by(total.demand, demand), weight: by(total.weight, u64::from(weight)) };
    }

    /// Memory that is allocated.
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.tree)
    }

    /// What all flows want together.
    pub fn demand(&self) -> u64 {
        self.total.demand
    }

    /// The level at which the shares make up `capacity` units, or hardly less, and never more.
    pub fn level(&self, capacity: u64) -> Level {
        if self.total.demand <= capacity {
            return Level::Unlimited;
        }
        // The last bucket whose lowest ratio, as a level, uses no more than the capacity. Below it are the satisfied.
        let (mut last, mut below) = (0, Sum::default());
        let mut step = BUCKETS / 2;
        while step > 0 {
            let sum = &self.tree[last + step];
            let tried = Sum { demand: below.demand + sum.demand, weight: below.weight + sum.weight };
            let used = u128::from(floor(last + step)) * u128::from(self.total.weight - tried.weight);
            if u128::from(tried.demand) + used <= u128::from(capacity) {
                (last, below) = (last + step, tried);
            }
            step /= 2;
        }
        // Flows of that bucket want its lowest ratio or a little more. Two levels are both safe: one takes them all as
        // not satisfied, the other all as satisfied.
        let one = self.ratio(capacity, below);
        let through = self.prefix(last + 1);
        let other = if through.demand <= capacity { self.ratio(capacity, through) } else { one };
        if other.above(one) { other } else { one }
    }

    /// The sum of the first `buckets`.
    fn prefix(&self, buckets: usize) -> Sum {
        let (mut at, mut sum) = (buckets, Sum::default());
        while at > 0 {
            sum =
                Sum { demand: sum.demand + self.tree[at].demand, weight: sum.weight + self.tree[at].weight };
            at &= at - 1;
        }
        sum
    }

    fn ratio(&self, capacity: u64, satisfied: Sum) -> Level {
        let weight = self.total.weight - satisfied.weight;
        let units = capacity.saturating_sub(satisfied.demand);
        if weight == 0 { Level::Unlimited } else { Level::Ratio { units, weight } }
    }
}

#[cfg(test)]
mod tests {
    use super::{Level, Shares};
    use crate::{RateWord, Rounding};
    use proptest::prelude::*;

    /// Water-filling as it is taught: satisfy the smallest by weight, share the rest, again and again.
    fn naive(flows: &[(u64, u8)], capacity: u64) -> Vec<f64> {
        let mut order: Vec<usize> = (0..flows.len()).collect();
        let ratio = |&at: &usize| flows[at].0 as f64 / f64::from(flows[at].1);
        order.sort_by(|a, b| ratio(a).total_cmp(&ratio(b)));
        let (mut left, mut weight) =
            (capacity as f64, flows.iter().map(|flow| f64::from(flow.1)).sum::<f64>());
        let mut shares = vec![0.0; flows.len()];
        for at in order {
            let (demand, own) = flows[at];
            shares[at] = (left * f64::from(own) / weight).min(demand as f64);
            left -= shares[at];
            weight -= f64::from(own);
        }
        shares
    }

    fn words(max: u16) -> impl Strategy<Value = u64> {
        (0x4000..max).prop_map(|bits| RateWord::from_bits(bits).units())
    }

    proptest! {
        #[test]
        fn equal_weights_get_what_water_filling_gives(
            demands in prop::collection::vec(words(0x6800), 1..40),
            capacity in 1..3_000_000_u64,
        ) {
            let flows: Vec<_> = demands.into_iter().map(|demand| (demand, 1)).collect();
            let mut shares = Shares::new();
            flows.iter().for_each(|&(demand, weight)| shares.add(demand, weight));
            let level = shares.level(capacity);
            let exact = naive(&flows, capacity);
            let ours: Vec<u64> = flows.iter().map(|&(demand, weight)| level.share(demand, weight)).collect();
            for (ours, exact) in ours.iter().zip(&exact) {
                prop_assert!((*ours as f64 - exact).abs() <= 1.0 + 1e-9 * exact, "{ours} {exact}");
            }
            prop_assert!(ours.iter().sum::<u64>() <= capacity);
        }

        #[test]
        fn weights_cost_no_more_than_a_step_of_the_code(
            flows in prop::collection::vec((words(0x6800), 1..=255_u8), 1..40),
            gone in prop::collection::vec((words(0x6800), 1..=255_u8), 0..10),
            capacity in 1_000..3_000_000_u64,
        ) {
            let mut shares = Shares::new();
            gone.iter().chain(&flows).for_each(|&(demand, weight)| shares.add(demand, weight));
            gone.iter().for_each(|&(demand, weight)| shares.remove(demand, weight));
            let level = shares.level(capacity);
            let ours: Vec<u64> = flows.iter().map(|&(demand, weight)| level.share(demand, weight)).collect();
            let total: u64 = ours.iter().sum();
            prop_assert!(total <= capacity, "{total} of {capacity}");
            let exact = naive(&flows, capacity);
            for ((ours, exact), flow) in ours.iter().zip(&exact).zip(&flows) {
                prop_assert!(*ours as f64 <= exact * (1.0 + 1.0 / 256.0) + 256.0, "{flow:?}: {ours} {exact}");
            }
            // What is left over is of the one bucket that the level lies in, and of cut fractions.
            let wanted: u64 = flows.iter().map(|flow| flow.0).sum();
            let slack = capacity.min(wanted) - total;
            prop_assert!(slack <= capacity / 256 + 256 * flows.len() as u64, "{slack} of {capacity}");
        }
    }

    #[test]
    fn flows_that_want_about_the_level_are_taken_as_satisfied_where_that_gives_more() {
        // Demands by weight, the capacity, and the shares. The rates of words are 16 units apart here.
        let table = [
            // The first wants 10 000: the others share the rest, 10 005 each, and not a third of all, 10 003.
            ([(10_000, 1), (100_000, 1), (100_000, 1)], 30_010, [10_000, 10_005, 10_005]),
            // It wants 10 015 by weight: a fifth of all is 10 001, and half the rest would be 9980.
            ([(30_045, 3), (100_000, 1), (100_000, 1)], 50_005, [30_003, 10_001, 10_001]),
        ];
        for (flows, capacity, expected) in table {
            let mut shares = Shares::new();
            flows.iter().for_each(|&(demand, weight)| shares.add(demand, weight));
            let level = shares.level(capacity);
            assert_eq!(flows.map(|(demand, weight)| level.share(demand, weight)), expected, "{capacity}");
        }
    }

    #[test]
    fn a_capacity_that_is_enough_has_no_level() {
        let mut shares = Shares::new();
        assert_eq!(shares.level(0), Level::Unlimited);
        let demand = RateWord::from_units(30_000, Rounding::Up).units();
        shares.add(demand, 1);
        assert_eq!(shares.level(demand), Level::Unlimited);
        assert_eq!(shares.level(demand - 1).share(demand, 1), demand - 1);
    }
}
