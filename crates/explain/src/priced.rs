//! Remedies that no setting of the experiment stands for: what they would save is measured, or reckoned from what was.

use crate::bounds::Bound;
use crate::measure::{Bench, Observed};
use crate::path_summary::PathSummary;
use crate::remedies::Place;
use crate::{BoundId, ExplainError};
use farpath_elements::ElementKind;
use serde::Serialize;

/// Something that would help, and what it would save at the most.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Priced {
    /// Which.
    pub id: &'static str,
    /// What it is.
    pub title: &'static str,
    /// Who can do it.
    pub place: Place,
    /// Seconds that it saves, at the most.
    pub saves_s: f64,
    /// How that was found.
    pub how: String,
    /// What is typed in, or what a program does.
    pub commands: Vec<&'static str>,
    /// What speaks against it.
    pub risk: &'static str,
}

/// Those that save this share of the time at the least.
const WORTH: f64 = 0.02;

pub(crate) fn priced(
    summary: &PathSummary<'_>,
    base: &Observed,
    bounds: &[Bound],
    bench: &mut Bench<'_>,
) -> Result<Vec<Priced>, ExplainError> {
    let Some(time) = base.transfer_time_s.filter(|_| base.completed == 1.0 && base.lateness_s.is_none())
    else {
        return Ok(Vec::new());
    };
    let mut all = Vec::new();
    if let Some(connect) = base.connect_time_s {
        all.push(Priced {
            id: "keep-open",
            title: "a connection that stays open between transfers",
            place: Place::BothHosts,
            saves_s: connect,
            how: "the connect time as it was simulated; slow start is saved too where the window is kept".to_owned(),
            commands: vec![
                "sysctl -w net.ipv4.tcp_slow_start_after_idle=0",
                "curl --keepalive-time 60 URL URL   # several URLs over one connection",
            ],
            risk: "a window that is kept over a pause leaves as one burst; middleboxes forget idle connections",
        });
        let round = summary.view.handshake_rtt.as_secs_f64();
        all.push(Priced {
            id: "fast-open",
            title: "TCP Fast Open (RFC 7413), or TLS 1.3 and QUIC with 0-RTT",
            place: Place::BothHosts,
            saves_s: round.min(connect),
            how: "one round trip, from the second connection on".to_owned(),
            commands: vec![
                "sysctl -w net.ipv4.tcp_fastopen=3   # undo: sysctl -w net.ipv4.tcp_fastopen=1",
                "curl --tcp-fastopen URL",
            ],
            risk: "data in a SYN may arrive twice: for requests that may be repeated; some middleboxes drop such SYNs",
        });
    }
    // Each leg of a proxy in the middle has half of the delay; all of the loss is taken to be on it, at the worst.
    let mut leg = summary.scenario.clone();
    let mut halved = false;
    for element in &mut leg.path {
        if let ElementKind::Delay(delay) = &mut element.kind {
            delay.delay.forward = delay.delay.forward / 2;
            delay.delay.reverse = delay.delay.reverse / 2;
            halved = true;
        }
    }
    if halved && summary.scenario.flows.len() == 1 {
        let leg = bench.measure_one(leg)?;
        if let Some(leg) = leg.transfer_time_s.filter(|_| leg.completed == 1.0) {
            all.push(Priced {
                id: "split-proxy",
                title: "a proxy in the middle of the path that ends the connection and opens another (RFC 3135)",
                place: Place::Path,
                saves_s: time.mean - leg.mean - summary.rtt.as_secs_f64() / 4.0,
                how: "one leg simulated: half of the delay, all of the loss, and a quarter of a round trip for the other one".to_owned(),
                commands: Vec::new(),
                risk: "it has to see TCP: IPsec, WireGuard and QUIC encrypt the transport headers and defeat it; what it has \
                       acknowledged may be lost with it",
            });
        }
    }
    let loss = bounds.iter().find(|bound| bound.id == BoundId::Loss).and_then(|bound| bound.lost_s);
    if let Some(loss) = loss.filter(|loss| loss.is_certain()) {
        all.push(Priced {
            id: "fec",
            title: "forward error correction, or retransmission on the link, below TCP",
            place: Place::Path,
            saves_s: loss.mean,
            how: "the same without any loss: what its redundancy takes of the rate is not counted".to_owned(),
            commands: Vec::new(),
            risk: "it takes rate always and delay where it retransmits; what comes out of order has to be put in order",
        });
    }
    all.retain(|remedy| remedy.saves_s >= WORTH * time.mean);
    all.sort_by(|a, b| b.saves_s.total_cmp(&a.saves_s));
    Ok(all)
}
