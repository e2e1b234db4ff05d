//! How well a run in real time was done: what a reader must know before its numbers are compared with others.

use farpath_units::Duration;
use serde::{Deserialize, Serialize};

/// How well a run in real time was done.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Grade {
    /// Why the numbers are not to be trusted, and are therefore not given; `None` where they are.
    pub void: Option<String>,
    /// How often it was done until it was as it should be, or until that was given up.
    pub attempts: u32,
    /// How much later than they were due packets were handed over, of both directions.
    pub lateness: Lateness,
    /// Whether the loop that does it went before every other program (SCHED_FIFO).
    pub realtime: bool,
    /// Packets that devices dropped outside of the path.
    pub device_drops: u64,
    /// Packets that a host refused when they were handed to it.
    pub refused: u64,
    /// What was no IP packet that could be understood.
    pub malformed: u64,
    /// Packets that were offered to the path, both directions.
    pub offered: u64,
    /// Of these, how many its loss processes dropped.
    pub lost: u64,
    /// Of these, how many its queues dropped.
    pub overflowed: u64,
    /// Segments that the kernels say to have sent again.
    pub kernel_retransmissions: u64,
    /// Share of the machine's time that was given to other machines, 0 to 1.
    pub steal: f64,
    /// Share of its time in which a program that sends or receives was ready and waited for a processor, 0 to 1: of the
    /// one that waited most. `None` where the kernel does not say.
    pub processor_wait: Option<f64>,
}

/// Percentiles of how late packets were, in ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Lateness {
    /// Median.
    pub p50_ns: u64,
    /// All but one in a hundred were not later.
    pub p99_ns: u64,
    /// The latest.
    pub max_ns: u64,
}

impl Grade {
    /// Share of the offered packets that loss processes dropped.
    pub fn loss_rate(&self) -> Option<f64> {
        (self.offered > 0).then(|| self.lost as f64 / self.offered as f64)
    }

    /// The interval that the share of losses was drawn from with 95 % confidence (Wilson 1927): it holds also where
    /// nothing was lost.
    pub fn loss_interval(&self) -> Option<[f64; 2]> {
        const Z: f64 = 1.959_964;
        let share = self.loss_rate()?;
        let n = self.offered as f64;
        let middle = share + Z * Z / (2.0 * n);
        let half = Z * (share * (1.0 - share) / n + Z * Z / (4.0 * n * n)).sqrt();
        let of = |value: f64| (value / (1.0 + Z * Z / n)).clamp(0.0, 1.0);
        Some([of(middle - half), of(middle + half)])
    }

    /// Of several runs together: of those that count, with the reason of one that does not, if there is any. Of those
    /// that do not count only where none does.
    pub fn of_all<'a>(grades: impl IntoIterator<Item = &'a Grade>) -> Option<Grade> {
        let (void, sound): (Vec<&Grade>, Vec<&Grade>) =
            grades.into_iter().partition(|grade| grade.void.is_some());
        let reason = void.first().and_then(|grade| grade.void.clone());
        let counting = if sound.is_empty() { void } else { sound };
        let together = counting.into_iter().cloned().reduce(|a, b| a.and(&b))?;
        Some(Grade { void: reason, ..together })
    }

    /// The worse of the two in everything, and the sums of what is counted: the grade of several runs together.
    pub fn and(&self, other: &Grade) -> Grade {
        Grade {
            void: self.void.clone().or_else(|| other.void.clone()),
            attempts: self.attempts.max(other.attempts),
            lateness: Lateness {
                p50_ns: self.lateness.p50_ns.max(other.lateness.p50_ns),
                p99_ns: self.lateness.p99_ns.max(other.lateness.p99_ns),
                max_ns: self.lateness.max_ns.max(other.lateness.max_ns),
            },
            realtime: self.realtime && other.realtime,
            device_drops: self.device_drops + other.device_drops,
            refused: self.refused + other.refused,
            malformed: self.malformed + other.malformed,
            offered: self.offered + other.offered,
            lost: self.lost + other.lost,
            overflowed: self.overflowed + other.overflowed,
            kernel_retransmissions: self.kernel_retransmissions + other.kernel_retransmissions,
            steal: self.steal.max(other.steal),
            processor_wait: self.processor_wait.into_iter().chain(other.processor_wait).reduce(f64::max),
        }
    }
}

impl Lateness {
    /// The three as durations: median, 99th percentile, worst.
    pub fn durations(&self) -> [Duration; 3] {
        [self.p50_ns, self.p99_ns, self.max_ns].map(Duration::from_nanos)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_count_is_in_no_figure_but_is_said() {
        let grade = |p99_ns, offered, void: Option<&str>| Grade {
            void: void.map(str::to_owned),
            lateness: Lateness { p99_ns, ..Lateness::default() },
            offered,
            ..Grade::default()
        };
        let (a, b, late) = (grade(10, 5, None), grade(20, 7, None), grade(900, 50, Some("late")));
        assert_eq!(Grade::of_all([&a, &late, &b]), Some(grade(20, 12, Some("late"))));
        assert_eq!(Grade::of_all([&late]), Some(late));
        assert_eq!(Grade::of_all([]), None);
    }

    #[test]
    fn the_interval_holds_the_share_and_is_not_empty_without_losses() {
        let grade = Grade { offered: 7000, lost: 70, ..Grade::default() };
        let [low, high] = grade.loss_interval().expect("packets were offered");
        // Wilson's interval for 70 of 7000, by hand: 0.79 % to 1.26 %.
        assert!((low - 0.0079).abs() < 1e-4 && (high - 0.0126).abs() < 1e-4, "{low} {high}");
        let none = Grade { offered: 100, ..Grade::default() };
        let [low, high] = none.loss_interval().expect("packets were offered");
        assert!(low == 0.0 && (0.03..0.04).contains(&high), "{low} {high}");
        assert_eq!(Grade::default().loss_interval(), None);
    }
}
