//! Changes that could help, from what the scenario has and what was seen of it.

use super::Remedy;
use crate::ExplainError;
use crate::bounds::short;
use crate::measure::Observed;
use crate::path_summary::{PathSummary, UNSCALED_WINDOW, rounded_up};
use crate::traps::{Trap, managed_queue_of, mark_of, queue_of, receive_buffer, scale};
use farpath_elements::{ElementKind, Link};
use farpath_experiment::{Override, Transport};
use farpath_path::PerDirection;
use farpath_predict::stream_loss;
use farpath_tcp::config::{CongestionControlKind, HyStart, RateReduction, RecoveryAlgorithm};
use farpath_units::Bytes;

/// Something to try.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Candidate {
    pub id: String,
    pub title: String,
    pub why: String,
    pub changes: Vec<Override>,
    /// Another system, not a setting: no part of `all`.
    pub apart: bool,
    /// The file is divided between several connections: what counts is when the last is done.
    pub together: bool,
    /// Others of this family differ in a number alone, with which the name ends; the smallest that is nearly the best is kept.
    pub family: Option<&'static str>,
    /// What it may do to others.
    pub risk: Option<String>,
}

/// A list of candidates being made.
struct List {
    candidates: Vec<Candidate>,
    error: Option<farpath_experiment::ParseOverrideError>,
}

impl List {
    fn add(&mut self, id: &str, title: &str, why: String, set: Vec<String>) {
        self.add_one(id, title, why, set, false);
    }

    /// One strength of a family.
    fn add_strength(
        &mut self,
        family: &'static str,
        number: u64,
        texts: (String, String, String),
        set: Vec<String>,
    ) {
        let (title, why, risk) = texts;
        if let Some(added) = self.add_one(&format!("{family}-{number}"), &title, why, set, false) {
            added.family = Some(family);
            added.risk = Some(risk).filter(|risk| !risk.is_empty());
            added.together = family == CONNECTIONS;
        }
    }

    /// Gives what was added: nothing of what is there.
    fn add_one(
        &mut self,
        id: &str,
        title: &str,
        why: String,
        set: Vec<String>,
        apart: bool,
    ) -> Option<&mut Candidate> {
        if set.is_empty() || self.candidates.iter().any(|known| known.id == id) {
            return None;
        }
        match set.iter().map(|text| text.parse()).collect::<Result<Vec<Override>, _>>() {
            // The same changes under another name would be the same remedy twice.
            Ok(changes) if self.candidates.iter().any(|known| known.changes == changes) => None,
            Ok(changes) => {
                let (id, title) = (id.to_owned(), title.to_owned());
                let (together, family, risk) = (false, None, None);
                self.candidates.push(Candidate { id, title, why, changes, apart, together, family, risk });
                self.candidates.last_mut()
            }
            Err(error) => {
                self.error = Some(error);
                None
            }
        }
    }
}

/// What to try, in no order.
pub(crate) fn candidates(
    summary: &PathSummary<'_>,
    traps: &[Trap],
    base: &Observed,
) -> Result<Vec<Candidate>, ExplainError> {
    let mut list = List { candidates: Vec::new(), error: None };
    windows(summary, base, &mut list);
    catch_up(summary, base, &mut list);
    queue(summary, base, &mut list);
    congestion(summary, base, &mut list);
    explicit_rate(summary, &mut list);
    recovery(summary, base, &mut list);
    timers(summary, base, &mut list);
    acks(summary, &mut list);
    packet_size(summary, base, &mut list);
    programs(summary, &mut list);
    connections(summary, base, &mut list);
    for trap in traps {
        list.add(trap.id, &format!("out of the trap `{}`", trap.id), trap.text.clone(), trap.set.clone());
    }
    match list.error {
        None => Ok(list.candidates),
        Some(error) => Err(ExplainError::Change(error)),
    }
}

fn windows(summary: &PathSummary<'_>, base: &Observed, list: &mut List) {
    let (sender, receiver) = (summary.sender(), summary.receiver());
    let needed = summary.window_needed();
    let scaled = sender.scales_with(receiver);
    let buffer = receiver.receive.buffer;
    let fills = format!("{} fill path and queue", short(needed));
    if buffer < needed {
        list.add("receive-window", "a larger receive window", fills.clone(), receive_buffer(needed));
    } else if buffer > UNSCALED_WINDOW && !scaled && needed > UNSCALED_WINDOW {
        let why = format!("{fills}, and {UNSCALED_WINDOW} are announced at most without it");
        list.add("window-scaling", "window scaling at both ends", why, scale());
    }
    if sender.send.buffer.is_some_and(|buffer| buffer < needed) {
        let set = vec![format!("sender.send.buffer={needed}")];
        list.add("send-buffer", "a larger send buffer", fills.clone(), set);
    }
    if sender.congestion.cwnd_clamp.is_some_and(|clamp| clamp < needed) {
        list.add(
            "cwnd-clamp",
            "no clamp on cwnd",
            fills,
            vec!["sender.congestion.cwnd_clamp=none".to_owned()],
        );
    }
    // A window that fits never overflows the queue.
    if let Some(capacity) = summary.capacity()
        && base.overflow_drops > 0.0
        && summary.window > capacity
    {
        let segment = summary.segment().0;
        let fits = Bytes((capacity.0 / segment).max(2) * segment);
        let why =
            format!("path and queue hold {}: a window that is no larger does not overflow", short(fits));
        let set = vec![format!("receiver.receive.buffer={fits}")];
        list.add("fit-window", "a receive window that path and queue hold", why, set);
    }
}

/// Ten full packets: a queue below that drops the bursts of any sender.
const TEN_PACKETS: u64 = 15_000;

/// A stream sends faster than its rate for a while, from what its application could write meanwhile.
fn catch_up(summary: &PathSummary<'_>, base: &Observed, list: &mut List) {
    let cost = stream_loss(summary.scenario).filter(|cost| cost.timely_again.is_finite());
    let Some(cost) = cost.filter(|_| base.retransmissions > 0.0) else { return };
    let backlog = Bytes(cost.send_buffer.ceil() as u64);
    let window = Bytes((cost.peak_rate * summary.rtt.as_secs_f64() / 8.0).ceil() as u64);
    let mut set = Vec::new();
    if summary.sender().send.buffer.is_some_and(|buffer| buffer < backlog) {
        set.push(format!("sender.send.buffer={backlog}"));
    }
    if summary.receiver().receive.buffer < window {
        set.extend(receive_buffer(window));
    }
    let why = format!(
        "{} are written before a loss is repaired, and leave faster than the stream's rate by a window of {}",
        short(backlog),
        short(window)
    );
    list.add("catch-up", "buffers that let the stream catch up", why, set);
}

fn queue(summary: &PathSummary<'_>, base: &Observed, list: &mut List) {
    let is_long = base.rtt_s.is_some_and(|rtt| rtt.p95 > 1.5 * summary.rtt.as_secs_f64());
    if (base.overflow_drops > 0.0 || is_long)
        && let Some(set) = mark_of(summary)
    {
        let why = "the queue marks from half of its limit on, and the sender slows down before it overflows (RFC 3168)";
        list.add("ecn", "ECN, and a queue that marks", why.to_owned(), set);
    }
    if (base.overflow_drops > 0.0 || is_long)
        && let Some(change) = managed_queue_of(summary)
    {
        let why = "each flow has a queue of its own, and CoDel drops from one that stays above 5 ms (RFC 8289, RFC 8290)";
        list.add("aqm", "a managed queue: FQ-CoDel", why.to_owned(), vec![change]);
    }
    if base.overflow_drops > 0.0 && !summary.sender().send.pacing {
        let why = "segments leave spread over the round trip, and no burst meets the queue (tc-fq(8))";
        list.add("pacing", "pacing (fq)", why.to_owned(), vec!["sender.send.pacing=true".to_owned()]);
    }
    // A queue that holds more than the path does delays whoever shares it.
    if let (Some(queue), Some(bdp)) = (summary.view.queue, summary.bdp_packets)
        && queue.0 > bdp.0.max(TEN_PACKETS).saturating_mul(2)
        && base.rtt_s.is_some_and(|rtt| rtt.p95 > 1.5 * summary.rtt.as_secs_f64())
        && let Some(change) = queue_of(summary, Bytes(bdp.0.max(TEN_PACKETS)))
    {
        let why = format!(
            "the queue holds {:.1} bandwidth-delay products, and is full of this transfer",
            queue.0 as f64 / bdp.0 as f64
        );
        list.add("short-queue", "a queue of one bandwidth-delay product", why, vec![change]);
    }
    if let Some(bdp) = summary.bdp_packets
        && summary.queue_is_short()
        && let Some(change) = queue_of(summary, bdp)
    {
        let why = format!(
            "one bandwidth-delay product is {}: a halved window then keeps the link busy",
            short(bdp)
        );
        list.add("queue", "a queue of one bandwidth-delay product", why, vec![change]);
    }
}

fn congestion(summary: &PathSummary<'_>, base: &Observed, list: &mut List) {
    let congestion = &summary.sender().congestion;
    let lossy = base.retransmissions > 0.0;
    initial_window(summary, list);
    // A file that slow start carries in a round or two never meets what a controller does differently.
    if summary.size().0 <= FEW_SEGMENTS * summary.segment().0 {
        return;
    }
    if congestion.control == CongestionControlKind::Reno && lossy {
        let why = "0.7 of the window is left after a loss, and growth does not hang on the RTT (RFC 9438)";
        let set = vec!["sender.congestion.control=cubic".to_owned()];
        list.add("cubic", "CUBIC", why.to_owned(), set);
    }
    let window_rules = !congestion.control.owns_cwnd();
    let queues = base.rtt_s.is_some_and(|rtt| rtt.p95 > 1.5 * summary.rtt.as_secs_f64());
    if window_rules && (lossy || queues) && summary.bdp.is_some() {
        let why = "the rate is that of what arrives, and no loss below a fifth lowers it (BBR version 1)";
        let set = with_sack(summary, &["sender.congestion.control=bbr"]);
        list.add("bbr", "BBR, with SACK", why.to_owned(), set);
    }
    if base.overflow_drops > 0.0 {
        if congestion.hystart == HyStart::Off {
            let why = "leaves slow start when the delay grows, before the queue overflows (RFC 9406)";
            let set = vec!["sender.congestion.hystart=rfc-9406".to_owned()];
            list.add("hystart", "HyStart++", why.to_owned(), set);
        }
        if let Some(bdp) = summary.bdp.filter(|_| congestion.initial_ssthresh.is_none()) {
            let whole = Bytes((bdp.0 / summary.segment().0).max(2) * summary.segment().0);
            let why = format!("slow start ends at the bandwidth-delay product of {}", short(bdp));
            let set = vec![format!("sender.congestion.initial_ssthresh={whole}")];
            list.add("initial-ssthresh", "slow start that knows the path", why, set);
        }
    }
}

/// Two initial windows of RFC 6928.
const FEW_SEGMENTS: u64 = 20;

/// Larger first windows, as long as the path or the file fills them.
fn initial_window(summary: &PathSummary<'_>, list: &mut List) {
    let now = u64::from(summary.sender().congestion.initial_window);
    let file = summary.size().0.div_ceil(summary.segment().0);
    let fills = summary.bdp.map_or(file, |bdp| (bdp.0 / summary.segment().0).min(file));
    for segments in INITIAL_WINDOWS.into_iter().filter(|segments| *segments > now) {
        // RFC 6928 is for everybody; what is beyond the first that fills path or file adds nothing.
        if segments > 10 && segments / 2 >= fills {
            break;
        }
        let why = "fewer rounds of slow start (RFC 6928 section 2 has ten)".to_owned();
        // Ten are what RFC 6928 found to be harmless nearly everywhere.
        let risk = if segments > 10 { format!("{segments} segments leave at once") } else { String::new() };
        let texts = (format!("an initial window of {segments} segments"), why, risk);
        list.add_strength(
            INITIAL_WINDOW,
            segments,
            texts,
            vec![format!("sender.congestion.initial_window={segments}")],
        );
    }
}

/// The family of initial windows, and its strengths.
const INITIAL_WINDOW: &str = "initial-window";
const INITIAL_WINDOWS: [u64; 6] = [10, 20, 40, 80, 160, 320];

/// Of such a remedy its window, and a queue of a quarter of it.
pub(crate) fn initial_window_of(remedy: &Remedy, summary: &PathSummary<'_>) -> Option<(u64, Override)> {
    let segments: u64 = remedy.id.strip_prefix(INITIAL_WINDOW)?.strip_prefix('-')?.parse().ok()?;
    remedy.risk.as_ref()?;
    let packet = (summary.segment() + summary.view.path.headers).0;
    let queue = Bytes((segments / 4).max(2) * packet);
    let is_shorter = summary.view.queue.is_none_or(|now| queue < now);
    let change = queue_of(summary, queue).filter(|_| is_shorter)?;
    Some((segments, change.parse().ok()?))
}

/// Shorter packets where bits are wrong; longer ones on links of a research network.
fn packet_size(summary: &PathSummary<'_>, base: &Observed, list: &mut List) {
    if base.retransmissions == 0.0 {
        return;
    }
    let segment = summary.segment();
    let of_bits = summary.loss_of(Bytes(segment.0 / 2)) < SHORTER_PAYS * summary.loss_of(segment);
    let mss = summary.sender().mss.min(summary.receiver().mss);
    for divisor in [2, 4, 8] {
        let shorter = Bytes(mss.0 / divisor);
        if !of_bits || shorter < SHORTEST_MSS {
            break;
        }
        let why = "fewer bits in a packet, and fewer packets with a wrong one; headers take a larger share";
        let title = format!("segments of {shorter}");
        let set = vec![format!("receiver.mss={shorter}")];
        list.add_strength(MSS, shorter.0, (title, why.to_owned(), String::new()), set);
    }
    if summary.rate_of_link().is_some_and(|rate| rate >= JUMBO_RATE) && mss < JUMBO_MSS && !of_bits {
        let why = "a window of as many segments is six times as large: slow start, and what a loss costs, go by segments";
        let set = ["sender", "receiver"].map(|end| format!("{end}.mss={JUMBO_MSS}"));
        let title = "packets of 9000 B on every link";
        if let Some(jumbo) = list.add_one("jumbo-frames", title, why.to_owned(), set.to_vec(), true) {
            jumbo.risk = Some("a link or a host that does not carry them drops them".to_owned());
        }
    }
}

/// A packet of half the size is lost at most so often where it is bits that are wrong; where packets are lost, as often.
const SHORTER_PAYS: f64 = 0.75;

/// The family of shorter segments, and the shortest that is tried.
const MSS: &str = "mss";
const SHORTEST_MSS: Bytes = Bytes(128);

/// Jumbo frames are those of Ethernet: 9000 B, 20 B of IPv4 and 20 B of TCP in them, on links of 1 Gbit/s and more.
const JUMBO_MSS: Bytes = Bytes(8960);
const JUMBO_RATE: f64 = 0.9e9;

/// What the programs could do otherwise.
fn programs(summary: &PathSummary<'_>, list: &mut List) {
    let writing = summary.scenario.flows[0].writing;
    if let (Some(window), Some(bdp)) = (writing.window, summary.bdp)
        // What has been read is allowed anew a round trip later: the rest has to fill the path meanwhile.
        && let needed = Bytes(writing.update_every.map_or(bdp.0, |step| step.0).saturating_add(bdp.0))
        && window < needed
    {
        let why = format!("{} fill the path while the program that reads says what it has read", short(bdp));
        let set = vec![format!("transfer.window={needed}")];
        list.add("application-window", "a larger window in the programs' own protocol", why, set);
    }
    let Some(piece) = writing.write_size else { return };
    if !writing.think_time.is_zero() {
        let why = "the next piece is there when the last one has been taken".to_owned();
        let set = vec!["transfer.think_time=0 s".to_owned()];
        list.add("no-pauses", "no pauses between writes", why, set);
    }
    if piece < LARGE_WRITE && piece < summary.size() {
        let why = "fewer pauses, and full segments".to_owned();
        let set = vec![format!("transfer.write_size={LARGE_WRITE}")];
        list.add("larger-writes", "more bytes in each write", why, set);
    }
}

/// What a program may well write at once: the largest super-segments that Linux makes are of 64 kB, and a copy of so much takes no time.
const LARGE_WRITE: Bytes = Bytes(1_000_000);

/// The family of several connections.
const CONNECTIONS: &str = "connections";
/// Segments that each of several connections has to carry at the least.
const EACH: u64 = 20;

/// One file over several connections.
fn connections(summary: &PathSummary<'_>, base: &Observed, list: &mut List) {
    let [flow] = summary.scenario.flows.as_slice() else { return };
    let plain = flow.stream.is_none() && flow.start.is_zero() && !flow.is_special();
    let is_tcp = summary.scenario.transport == Transport::Tcp;
    if !plain || !is_tcp || base.completed < 1.0 {
        return;
    }
    for count in [2_u64, 4, 8, 16] {
        let size = Bytes(summary.size().0.div_ceil(count));
        if size.0 < EACH * summary.segment().0 {
            break;
        }
        let direction = flow.direction.name();
        let why = "each has a window of its own, and a loss halves that of one".to_owned();
        let risk = format!("{count} connections take {count} shares of a link that others use too");
        let set =
            vec![format!("flow=[{{ count = {count}, size = \"{size}\", direction = \"{direction}\" }}]")];
        let texts = (format!("{count} connections at once"), why, risk);
        list.add_strength(CONNECTIONS, count, texts, set);
    }
}

/// A flow router in place of the slowest link, and ends that ask it.
fn explicit_rate(summary: &PathSummary<'_>, list: &mut List) {
    let slowest =
        summary.scenario.path.iter().find(|element| Some(&element.name) == summary.bottleneck.as_ref());
    let Some((name, rate)) = slowest.and_then(|element| match &element.kind {
        // What a managed queue is told is no key of a flow router.
        ElementKind::Link(Link { rate, aqm, .. }) if *aqm == PerDirection::default() => {
            Some((&element.name, rate[summary.data]))
        }
        _ => None,
    }) else {
        return;
    };
    if summary.sender().explicit_rate.wanted.is_some() {
        return;
    }
    let why = "a flow router on the slowest link says the rate, and both ends' drivers ask it: no slow start, and a \
               loss is repaired, not taken for congestion (docs/explicit-rate.md)";
    let mut set = vec![format!("path.{name}.element=flow-router")];
    set.extend(["sender", "receiver"].map(|end| format!("{end}.explicit_rate.wanted={rate}")));
    // What goes on at a rate while losses are repaired takes SACK and a window of more than 64 kB.
    set.extend(scale());
    set.extend(with_sack(summary, &["sender.recovery.rack=true", "sender.recovery.tail_loss_probe=true"]));
    list.add_one(
        "explicit-rate",
        "explicit rate (TIA-1039), with SACK, RACK and TLP",
        why.to_owned(),
        set,
        true,
    );
}

fn recovery(summary: &PathSummary<'_>, base: &Observed, list: &mut List) {
    let sender = &summary.sender().recovery;
    // What repairs losses has nothing to do where there are none, and a file of one window has next to none to repair.
    if base.retransmissions == 0.0 {
        return;
    }
    if sender.algorithm != RecoveryAlgorithm::NewReno {
        let why = "partial ACKs keep recovery going (RFC 6582): no timeout for the second loss of a window";
        list.add("new-reno", "NewReno", why.to_owned(), vec![NEW_RENO.to_owned()]);
    }
    let why = "several losses of a window are repaired in one round trip (RFC 2018, RFC 6675)";
    list.add("sack", "selective acknowledgments", why.to_owned(), with_sack(summary, &[]));
    if !sender.rack || !sender.tail_loss_probe {
        let why =
            "losses are found by time, lost retransmissions too, and a lost tail before the timer (RFC 8985)";
        let set = with_sack(summary, &["sender.recovery.rack=true", "sender.recovery.tail_loss_probe=true"]);
        list.add("rack-tlp", "RACK and TLP, with SACK", why.to_owned(), set);
    }
    if sender.rate_reduction == RateReduction::AtOnce {
        let why = "recovery brings the window down without falling silent (RFC 6937, RFC 9937)";
        let set = with_sack(summary, &["sender.recovery.rate_reduction=safe-ack"]);
        list.add("prr", "proportional rate reduction, with SACK", why.to_owned(), set);
    }
    if !sender.limited_transmit {
        let why = "new data on the first duplicate ACKs brings the third one in small windows (RFC 3042)";
        let set = vec!["sender.recovery.limited_transmit=true".to_owned()];
        list.add("limited-transmit", "limited transmit", why.to_owned(), set);
    }
    if base.timeouts > 0.0 && !sender.frto {
        let why = "a spurious timeout is detected, and what it cost is undone (RFC 5682)";
        list.add("frto", "F-RTO", why.to_owned(), vec!["sender.recovery.frto=true".to_owned()]);
    }
}

/// What SACK recovery stands on (RFC 6675).
const NEW_RENO: &str = "sender.recovery.algorithm=new-reno";

/// `changes`, after those that give both ends SACK where they have not.
fn with_sack(summary: &PathSummary<'_>, changes: &[&str]) -> Vec<String> {
    let sack = if summary.sender().recovery.sack && summary.receiver().recovery.sack {
        &[][..]
    } else {
        &["sender.recovery.sack=true", "receiver.recovery.sack=true", NEW_RENO]
    };
    sack.iter().chain(changes).map(|change| (*change).to_owned()).collect()
}

fn timers(summary: &PathSummary<'_>, base: &Observed, list: &mut List) {
    let rto = &summary.sender().rto;
    // A lone segment's withheld ACK still comes in time.
    let fitting = rounded_up(summary.fitting_rto());
    if base.timeouts > 0.0 && fitting < rto.min {
        let why = format!("the path asks for {fitting}: RTT, ACK delay and an eighth");
        list.add("rto-min", "a lower floor of the timeout", why, vec![format!("sender.rto.min={fitting}")]);
    }
    if base.timeouts > 0.0 && !rto.tick.is_zero() {
        let why = format!("no wait for the next tick of {}", rto.tick);
        list.add("rto-tick", "timers without ticks", why, vec!["sender.rto.tick=0 s".to_owned()]);
    }
}

fn acks(summary: &PathSummary<'_>, list: &mut List) {
    if summary.ack_every() > 1 {
        let why = "slow start doubles, no segment waits; twice the ACKs".to_owned();
        let set = vec!["receiver.receive.ack_every=1".to_owned()];
        list.add("ack-every-segment", "an ACK for every segment", why, set);
    }
}
