//! Figures of closed forms: what is drawn without a run.

use super::figures::{WithUnit, label};
use crate::html::{Columns, Figure, Limit, relays_figure};
use farpath_engine::{LIGHT_KM_PER_S, RadiusKind, radii};
use farpath_experiment::{Distance, Location, Stack, bodies};
use farpath_model::stream::{Cost, IsolatedLoss, Window};
use farpath_units::{Bytes, Duration, Rate};
use serde::Deserialize;

/// What is drawn, and of what numbers.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum ClosedForm {
    /// The rate of a constant bit-rate stream after one loss, and what it delays.
    OneLoss(OneLoss),
    /// Where a relay between the Earth and a place may stand, for each stack.
    Relays(Relays),
}

/// A stream over Reno whose window was what its rate takes.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OneLoss {
    rate: WithUnit<Rate>,
    rtt: WithUnit<Duration>,
    mss: WithUnit<Bytes>,
    /// Segments for a step of the window: 2 where each ACK is one, and acknowledges two.
    ack_factor: f64,
}

/// Stacks, and how far the other end is.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Relays {
    stacks: Vec<String>,
    to: String,
}

impl ClosedForm {
    pub(super) fn figure(&self, title: &str, caption: &str) -> Result<Figure, String> {
        match self {
            ClosedForm::OneLoss(loss) => loss.figure(title, caption),
            ClosedForm::Relays(relays) => relays.figure(title, caption),
        }
    }
}

impl OneLoss {
    fn cost(&self, limit: Bytes) -> Result<Cost, String> {
        let window = Window::Reno { ack_factor: self.ack_factor };
        let loss = IsolatedLoss { rate: self.rate.0, rtt: self.rtt.0, mss: self.mss.0, window, limit };
        loss.cost().map(|estimate| estimate.value).map_err(|error| error.to_string())
    }

    /// Reno halves the rate at the loss, at 0 s; with each round trip it grows by as much, until the window is at its limit
    /// or nothing waits any more.
    fn figure(&self, title: &str, caption: &str) -> Result<Figure, String> {
        let stream = self.rate.0.bit_per_s() as f64;
        let free = self.cost(Bytes::MAX)?;
        let held = self.cost(Bytes(free.bdp as u64))?;
        let end = 1.2 * free.timely_again;
        let begin = [(-0.1 * end, stream), (0.0, stream), (0.0, stream / 2.0), (held.recovery, stream)];
        let caught_up = [(free.timely_again, free.peak_rate), (free.timely_again, stream), (end, stream)];
        let lines = [("window of one BDP", vec![(end, stream)]), ("window free to grow", caught_up.to_vec())];
        let rows: Vec<(f64, f64, &str)> = lines
            .iter()
            .flat_map(|(name, rest)| begin.iter().chain(rest).map(|&(time, rate)| (time, rate, *name)))
            .collect();
        let levels = Columns::default().numbers("bytes", [stream]).texts("text", ["the stream"]);
        let lines = Columns::default()
            .numbers("time_s", rows.iter().map(|row| row.0))
            .numbers("bytes", rows.iter().map(|row| row.1))
            .texts("point", rows.iter().map(|row| row.2));
        let caption = format!(
            "{caption} {} over {}: the window is back after {:.2} s, {:.1} MB behind, the triangle below the stream; timely \
             again after {:.2} s, the triangle above it.",
            self.rate.0,
            self.rtt.0,
            held.recovery,
            held.delayed / 1e6,
            free.timely_again
        );
        Ok(Figure {
            plot: "by-point",
            title: title.to_owned(),
            caption,
            set: vec![
                ("/encoding/y/axis/title", "Sent, per second".into()),
                ("/encoding/y/axis/labelExpr", label("bit/s").into()),
                ("/layer/2/mark/interpolate", "linear".into()),
                ("/layer/2/encoding/x/axis/title", "Time since the loss, s".into()),
            ],
            data: vec![("levels", levels), ("lines", lines)],
        })
    }
}

impl Relays {
    fn figure(&self, title: &str, caption: &str) -> Result<Figure, String> {
        let to = Distance::parse(&self.to, &Location::option("to")).map_err(|error| error.to_string())?;
        let mut limits = Vec::new();
        for name in &self.stacks {
            let stack = Stack::load(name).map_err(|error| error.to_string())?;
            let radii = radii(&stack.config, None).map_err(|error| error.to_string())?;
            let usable = radii.iter().find(|radius| radius.kind == RadiusKind::Usable);
            let usable = usable.ok_or_else(|| format!("`{name}` has no usable radius"))?;
            limits.push(Limit { what: name.clone(), km: usable.rtt.least / 2.0 * LIGHT_KM_PER_S });
        }
        let figure = relays_figure(&limits, &to, bodies()).ok_or("none of the stacks reaches there")?;
        Ok(Figure { title: title.to_owned(), caption: format!("{caption} {}", figure.caption), ..figure })
    }
}
