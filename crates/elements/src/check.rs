//! From a specification to an element: what is refused, what is worth a warning.

use crate::delay::Delay;
use crate::duplicate::Duplicate;
use crate::hops::Hops;
use crate::link::Link;
use crate::loss::{Bernoulli, BitErrors, EvenlySpaced, GilbertElliott, Listed};
use crate::reorder::Reorder;
use crate::{ElementKind, ElementSpec, MarkThreshold, QueueLimit, RadioFault, RateChange};
use farpath_path::{BoxedTransit, Direction, Generator};
use farpath_units::{Ber, Bytes, Instant, Probability};

/// A full packet on most paths, for warnings.
const FULL_PACKET: Bytes = Bytes(1500);

/// Why no path is built from a specification.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SpecError {
    /// Two elements have one name, and would draw the same random numbers.
    #[error("{element}: two elements have this name")]
    DuplicateName {
        /// The name.
        element: String,
    },
    /// One drop in zero packets.
    #[error("{element}: {direction}.every: expected 1 or more, found 0")]
    EveryIsZero {
        /// Of the element.
        element: String,
        /// Where.
        direction: Direction,
    },
    /// A list of packet numbers that does not rise from 1 on.
    #[error(
        "{element}: {direction}.packets: expected rising numbers from 1 on, found {found} after {previous}"
    )]
    ListDoesNotRise {
        /// Of the element.
        element: String,
        /// Where.
        direction: Direction,
        /// The number that is out of place.
        found: u64,
        /// The one before it; 0 where it is the first.
        previous: u64,
    },
    /// Rates of a line that do not come one after the other.
    #[error("{element}: {direction}.changes: expected rising times, found {found} after {previous}")]
    ChangesDoNotRise {
        /// Of the element.
        element: String,
        /// Where.
        direction: Direction,
        /// The time that is out of place.
        found: Instant,
        /// The one before it.
        previous: Instant,
    },
    /// Radios that could never send a packet, or never stop trying.
    #[error("{element}: {}: {fault}", fault.key())]
    Radio {
        /// Of the element.
        element: String,
        /// What is wrong.
        fault: RadioFault,
    },
    /// It holds packets, and is no run of arithmetic.
    #[error("{element}: it holds packets, and is built into a path, not alone")]
    HoldsPackets {
        /// Of the element.
        element: String,
    },
}

impl ElementSpec {
    /// Refuses what the types cannot.
    ///
    /// # Errors
    /// One drop in zero packets; a list of packet numbers that does not rise from 1 on.
    pub fn validate(&self) -> Result<(), SpecError> {
        Direction::BOTH.into_iter().try_for_each(|direction| match &self.kind {
            ElementKind::EvenlySpaced { every, .. } if every[direction] == Some(0) => {
                Err(SpecError::EveryIsZero { element: self.name.clone(), direction })
            }
            ElementKind::Listed { packets, .. } => self.check_list(direction, &packets[direction]),
            ElementKind::FlowRouter(lines) => self.check_changes(direction, &lines.changes[direction]),
            ElementKind::Radio(radio) => {
                radio.validate().map_err(|fault| SpecError::Radio { element: self.name.clone(), fault })
            }
            _ => Ok(()),
        })
    }

    fn check_changes(&self, direction: Direction, changes: &[RateChange]) -> Result<(), SpecError> {
        let falls = changes.windows(2).find(|pair| pair[1].at <= pair[0].at);
        falls.map_or(Ok(()), |pair| {
            let (found, previous) = (pair[1].at, pair[0].at);
            Err(SpecError::ChangesDoNotRise { element: self.name.clone(), direction, found, previous })
        })
    }

    fn check_list(&self, direction: Direction, packets: &[u64]) -> Result<(), SpecError> {
        let mut previous = 0;
        for &found in packets {
            if found <= previous {
                let element = self.name.clone();
                return Err(SpecError::ListDoesNotRise { element, direction, found, previous });
            }
            previous = found;
        }
        Ok(())
    }

    /// What is allowed and probably not meant.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        let named = |direction| move |warning: String| format!("{}: {direction}: {warning}", self.name);
        for direction in Direction::BOTH {
            let warning = match &self.kind {
                ElementKind::BitErrors { ber, overhead, linear: true } => {
                    linear_form_warning(ber[direction], *overhead)
                }
                ElementKind::Link { queue, mark, .. } => {
                    warnings.extend(mark_warning(mark[direction], queue[direction]).map(named(direction)));
                    queue_warning(queue[direction])
                }
                ElementKind::FlowRouter(lines) => queue_warning(lines.queue[direction]),
                ElementKind::Reorder { share, extra_delay } => (share[direction] > Probability::ZERO
                    && extra_delay.is_zero())
                .then(|| "an extra delay of zero reorders nothing".to_owned()),
                _ => None,
            };
            warnings.extend(warning.map(named(direction)));
        }
        warnings
    }

    /// The element, with the random numbers that belong to its name in the run of this seed.
    ///
    /// # Errors
    /// Those of [`ElementSpec::validate`], and a kind that holds packets.
    pub fn transit(&self, seed: u64) -> Result<BoxedTransit, SpecError> {
        self.validate()?;
        let draws = Generator::per_direction(seed, &self.name);
        Ok(match self.kind.clone() {
            ElementKind::Delay { delay } | ElementKind::Wait { delay, .. } => Box::new(Delay::new(delay)),
            ElementKind::Hops { routers } => Box::new(Hops::new(routers)),
            ElementKind::Link { rate, queue, mark, overhead, min_packet } => {
                Box::new(Link::new(rate, queue, mark, overhead, min_packet))
            }
            ElementKind::Bernoulli { loss_rate, count } => Box::new(Bernoulli::new(loss_rate, count, draws)),
            ElementKind::EvenlySpaced { every, phase, count } => {
                Box::new(EvenlySpaced::new(every, phase, count, draws))
            }
            ElementKind::Listed { packets, count } => Box::new(Listed::new(packets, count)),
            ElementKind::GilbertElliott { good_to_bad, bad_to_good, loss_good, loss_bad, active } => {
                Box::new(GilbertElliott::new(good_to_bad, bad_to_good, loss_good, loss_bad, active, draws))
            }
            ElementKind::BitErrors { ber, overhead, linear } => {
                Box::new(BitErrors::new(ber, overhead, linear, draws))
            }
            ElementKind::Reorder { share, extra_delay } => Box::new(Reorder::new(share, extra_delay, draws)),
            ElementKind::Duplicate { share } => Box::new(Duplicate::new(share, draws)),
            ElementKind::FlowRouter(_) | ElementKind::Radio(_) => {
                return Err(SpecError::HoldsPackets { element: self.name.clone() });
            }
        })
    }
}

fn linear_form_warning(ber: Ber, overhead: Bytes) -> Option<String> {
    let exposed = FULL_PACKET + overhead;
    let (linear, exact) = (ber.to_per_linear(exposed), ber.to_per(exposed).fraction());
    (linear > 1.0).then(|| {
        format!(
            "the linear form gives a packet error rate of {linear:.3} at {FULL_PACKET} and drops every such \
             packet; the exact one is {exact:.6}"
        )
    })
}

fn queue_warning(queue: QueueLimit) -> Option<String> {
    let limit = match queue {
        QueueLimit::Bytes(limit) if limit < FULL_PACKET => limit.to_string(),
        QueueLimit::Packets(0) => "0 packets".to_owned(),
        QueueLimit::Unlimited | QueueLimit::Bytes(_) | QueueLimit::Packets(_) => return None,
    };
    Some(format!(
        "a queue of {limit} never holds a packet of {FULL_PACKET}: one that arrives while another is being sent is dropped"
    ))
}

fn mark_warning(mark: MarkThreshold, queue: QueueLimit) -> Option<String> {
    let (mark, limit) = match (mark, queue) {
        (MarkThreshold::Bytes(mark), QueueLimit::Bytes(limit)) if mark >= limit => {
            (mark.to_string(), limit.to_string())
        }
        (MarkThreshold::Packets(mark), QueueLimit::Packets(limit)) if mark >= limit => {
            (format!("{mark} packets"), format!("{limit} packets"))
        }
        _ => return None,
    };
    Some(format!("a mark above {mark} is never set in a queue of at most {limit}"))
}
