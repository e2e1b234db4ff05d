//! Gaps between contacts, and the timers that end in them.

use super::Trap;
use crate::path_summary::PathSummary;
use farpath_elements::{Gaps, Outside};
use farpath_engine::{GapKind, gaps};
use farpath_path::Direction;
use farpath_tcp::Config;
use farpath_units::Duration;

/// An element that nothing passes for a time, and what the ends have against that.
#[derive(Debug, Clone)]
pub(crate) struct Outage {
    pub element: String,
    pub gaps: Gaps,
    /// The longest gap that a transfer under way survives; [`Duration::MAX`] for every one.
    pub sending: Duration,
    /// The same of a connection that opens.
    pub opening: Duration,
}

/// The most retransmissions and SYNs that are recommended.
const MOST: u32 = 10_000;

/// The element of the path with the longest gap.
pub(crate) fn outage(summary: &PathSummary<'_>) -> Option<Outage> {
    let elements = summary.scenario.path.iter();
    let gaps = elements.flat_map(|element| {
        Direction::BOTH.into_iter().filter_map(|way| Some((&element.name, element.spec().gaps(way)?)))
    });
    let (element, gaps) = gaps.max_by_key(|(_, gaps)| gaps.longest.max(gaps.first))?;
    let outside = gaps.outside;
    Some(Outage {
        element: element.clone(),
        gaps,
        sending: survived(summary.sender(), GapKind::Sending, outside, summary.rtt)?,
        opening: survived(summary.opener().1, GapKind::Opening, outside, summary.rtt)?,
    })
}

fn survived(stack: &Config, kind: GapKind, outside: Outside, rtt: Duration) -> Option<Duration> {
    let found = gaps(stack, rtt).ok()?.into_iter().find(|gap| gap.kind == kind && gap.outside == outside)?;
    let least = found.longest.least;
    Some(if least.is_finite() { Duration::from_secs_f64(least) } else { Duration::MAX })
}

impl Outage {
    /// Whether a transfer that is not over before it is ended by it.
    pub fn ends_transfers(&self) -> bool {
        self.gaps.longest > self.sending
    }

    /// Whether no connection opens through what is before the first contact.
    pub fn ends_opening(&self) -> bool {
        self.gaps.first > self.opening
    }

    /// What a transfer needs to survive it.
    pub fn retries(&self, summary: &PathSummary<'_>) -> String {
        let enough = least(|retries| {
            let mut stack = summary.sender().clone();
            stack.handshake.data_retries = Some(retries);
            survived(&stack, GapKind::Sending, self.gaps.outside, summary.rtt) > Some(self.gaps.longest)
        });
        let enough = enough.map_or_else(|| "unlimited".to_owned(), |retries| retries.to_string());
        format!("sender.handshake.data_retries={enough}")
    }

    /// What opening needs to survive it.
    pub fn syns(&self, summary: &PathSummary<'_>) -> Vec<String> {
        let (end, opener) = summary.opener();
        let mut stack = opener.clone();
        stack.handshake.connect_timeout = None;
        let enough = least(|syns| {
            let mut stack = stack.clone();
            stack.handshake.syn_attempts = Some(syns);
            survived(&stack, GapKind::Opening, self.gaps.outside, summary.rtt) > Some(self.gaps.first)
        });
        let enough = enough.map_or_else(|| "unlimited".to_owned(), |syns| syns.to_string());
        let mut changes = vec![format!("{end}.handshake.syn_attempts={enough}")];
        if opener.handshake.connect_timeout.is_some() {
            changes.push(format!("{end}.handshake.connect_timeout=none"));
        }
        changes
    }

    /// In words, with the numbers.
    pub fn of_sending(&self) -> String {
        let Gaps { longest, outside, .. } = self.gaps;
        let until = match outside {
            Outside::Hold => "gives up waiting for an answer",
            Outside::Drop | Outside::Refuse => "has sent its last retransmission",
        };
        format!(
            "`{}` has no contact for up to {longest:.3}, and the sender {until} {:.3} after the last contact",
            self.element, self.sending
        )
    }

    fn of_opening(&self) -> String {
        let until = match self.gaps.outside {
            Outside::Hold => "gives up waiting for an answer to its SYN",
            Outside::Drop | Outside::Refuse => "has sent its last SYN",
        };
        let (name, first) = (&self.element, self.gaps.first);
        format!(
            "`{name}` has its first contact after {first:.3}, and the opener {until} after {:.3}",
            self.opening
        )
    }
}

/// The least number from 1 on that is enough; `None` where none is.
fn least(enough: impl Fn(u32) -> bool) -> Option<u32> {
    let (mut few, mut most) = (0, MOST);
    if !enough(most) {
        return None;
    }
    while most - few > 1 {
        let middle = few + (most - few) / 2;
        *(if enough(middle) { &mut most } else { &mut few }) = middle;
    }
    Some(most)
}

/// `contact-gap`, `contact-opening`: a gap between contacts, or before the first, is longer than the timer that has to outlast it.
pub(super) fn gaps_of(summary: &PathSummary<'_>) -> Vec<Trap> {
    const SOURCE: &str = "RFC 9293 section 3.8.3 (R2); docs/radius.md, gaps";
    let Some(outage) = outage(summary) else { return Vec::new() };
    let key = format!("path.{}", outage.element);
    let sending = outage.ends_transfers().then(|| {
        let text = format!("{}: a transfer that is not over by then is given up", outage.of_sending());
        Trap::new("contact-gap", key.clone(), text, SOURCE).set([outage.retries(summary)])
    });
    let opening = outage.ends_opening().then(|| {
        let text = format!("{}: no connection opens", outage.of_opening());
        Trap::new("contact-opening", key, text, SOURCE).set(outage.syns(summary))
    });
    sending.into_iter().chain(opening).collect()
}
