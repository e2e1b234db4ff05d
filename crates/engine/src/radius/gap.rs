//! The longest time without contact that a connection survives: by its timers, and by simulation.

use crate::SimulateError;
use farpath_elements::{
    Contact, ContactPlan, Contacts, Delay, ElementKind, ElementSpec, Outside, QueueLimit,
};
use farpath_model::InputError;
use farpath_model::radius::{Opening, Span};
use farpath_path::PerDirection;
use farpath_predict::{opening, unanswered};
use farpath_sim::{FlowEnd, FlowSetup, Setup, Silent};
use farpath_tcp::Config;
use farpath_units::{Bytes, Duration};

/// What a gap finds a connection at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GapKind {
    /// Its first SYN leaves as the gap begins.
    Opening,
    /// It is sending: a window of data leaves as the gap begins.
    Sending,
}

/// What becomes of the packets that leave during a gap.
const FATES: [Outside; 2] = [Outside::Hold, Outside::Drop];

/// The longest gap that a connection survives.
#[derive(Debug, Clone, PartialEq)]
pub struct Gap {
    /// What it finds.
    pub kind: GapKind,
    /// What becomes of packets.
    pub outside: Outside,
    /// In s: shorter ones are always survived, longer ones never, and between by how the gap falls on the clocks; infinite where every one is.
    pub longest: Span,
    /// The parameter that sets it.
    pub timer: &'static str,
}

impl Gap {
    /// Whether a simulation says the same: a gap begins anywhere in a round trip, and on a clock that ticks.
    pub fn agrees(&self, stack: &Config, rtt: Duration, simulated: f64) -> bool {
        let slack = (rtt * 2 + stack.rto.tick + stack.receive.ack_delay).as_secs_f64();
        (self.longest.least - slack..=self.longest.most + slack).contains(&simulated)
    }
}

impl GapKind {
    /// What a table calls it.
    pub const fn name(self) -> &'static str {
        match self {
            GapKind::Opening => "opening",
            GapKind::Sending => "sending",
        }
    }
}

/// The longest gaps that connections of `stack` survive over a path of this round trip.
///
/// Where packets are held, the answer to what is sent first comes a round trip after the gap, and has to find the sender waiting. Where they are lost,
/// the last retransmission has to leave after it.
///
/// # Errors
/// Parameters that are no schedule, such as no SYN at all.
pub fn gaps(stack: &Config, rtt: Duration) -> Result<Vec<Gap>, InputError> {
    let syns = opening(stack);
    syns.check()?;
    let by_time = syns.abandoned().value.least == syns.within;
    let opener = if by_time { "handshake.connect_timeout" } else { "handshake.syn_attempts" };
    let timeout = stack.rto.timeout(rtt, Duration::ZERO);
    let data = unanswered(stack, timeout);
    // A probe leaves after two round trips and starts the timer anew (RFC 8985 section 7.2).
    let probe = if stack.recovery.tail_loss_probe { (rtt * 2).min(timeout) } else { Duration::ZERO };
    let of = |kind, schedule: &Opening, before: Duration, timer| {
        let (before, rtt) = (before.as_secs_f64(), rtt.as_secs_f64());
        let (ends, last) = (schedule.abandoned().value, schedule.last_syn().value);
        FATES.map(|outside| {
            let longest = match outside {
                Outside::Hold => shifted(ends, before - rtt),
                Outside::Drop | Outside::Refuse => shifted(last, before).min(shifted(ends, before - rtt)),
            };
            let timer = if longest.least == f64::INFINITY { "none" } else { timer };
            Gap { kind, outside, longest, timer }
        })
    };
    let mut all = of(GapKind::Opening, &syns, Duration::ZERO, opener).to_vec();
    all.extend(of(GapKind::Sending, &data, probe, "handshake.data_retries"));
    Ok(all)
}

fn shifted(span: Span, by: f64) -> Span {
    Span { least: (span.least + by).max(0.0), most: (span.most + by).max(0.0) }
}

/// Where the search for a gap that ends a connection is given up.
const LONGEST: Duration = Duration::from_secs(40 * 86_400);
const RESOLUTION: Duration = Duration::from_millis(1);
/// A window that fits into a field without scaling, so that there are no bursts to speak of.
const WINDOW: Bytes = Bytes(32_768);

/// The longest gap that is survived in simulation, in s, by bisection; `None` where one of 40 days is.
///
/// # Errors
/// The path cannot be built: a defect.
pub fn longest_gap(
    stack: &Config,
    kind: GapKind,
    outside: Outside,
    rtt: Duration,
) -> Result<Option<f64>, SimulateError> {
    let survives = |gap| survives(stack, kind, outside, rtt, gap);
    let (mut good, mut bad) = (Duration::ZERO, Duration::from_secs(1));
    while survives(bad)? {
        if bad > LONGEST {
            return Ok(None);
        }
        (good, bad) = (bad, bad * 2);
    }
    while bad - good > RESOLUTION {
        let middle = good + (bad - good) / 2;
        *(if survives(middle)? { &mut good } else { &mut bad }) = middle;
    }
    Ok(Some(good.as_secs_f64()))
}

/// Whether a connection over a path with a gap of this length completes.
fn survives(
    stack: &Config,
    kind: GapKind,
    outside: Outside,
    rtt: Duration,
    gap: Duration,
) -> Result<bool, SimulateError> {
    const AFTER: Duration = Duration::from_secs(400 * 86_400);
    // After as many rounds as open a window and bring the timeout down. What arrives just then is still there.
    let from = rtt * 40 + Duration::from_secs(4);
    let contacts = |arrives: u64| {
        let (begins, ends) = (from + Duration::from_nanos(arrives), from + gap);
        match kind {
            GapKind::Opening => vec![Contact { from: gap, to: AFTER }],
            GapKind::Sending if ends <= begins => vec![Contact { from: Duration::ZERO, to: AFTER }],
            GapKind::Sending => {
                vec![Contact { from: Duration::ZERO, to: begins }, Contact { from: ends, to: AFTER }]
            }
        }
    };
    let plan = ContactPlan::Listed(PerDirection { forward: contacts(0), reverse: contacts(1) });
    let contacts = Contacts { plan, outside, queue: PerDirection::both(QueueLimit::Unlimited) };
    let delay = Delay { delay: PerDirection::both(rtt / 2) };
    let named = |name: &str, kind| ElementSpec { name: name.to_owned(), kind };
    let mut ends = stack.clone();
    ends.receive.buffer = ends.receive.buffer.min(WINDOW);
    let size = match kind {
        GapKind::Opening => Bytes(1),
        // It goes on until the gap begins, and for a while after it.
        GapKind::Sending => Bytes(WINDOW.0 * (from.as_nanos() / rtt.as_nanos().max(1) + 20)),
    };
    let setup = Setup {
        path: vec![
            named("contacts", ElementKind::Contacts(contacts)),
            named("delay", ElementKind::Delay(delay)),
        ],
        flows: vec![FlowSetup::upload(&ends, size)],
        seed: 1,
        horizon: AFTER,
    };
    let flow = farpath_sim::simulate(&setup, &mut Silent)?.remove(0);
    Ok(flow.end == FlowEnd::Completed)
}
