//! `element = "radio"`: the keys of packet radios.

use crate::error::{ExperimentError, Location};
use crate::reader::{Parameter, Reader, as_table, unless, word};
use farpath_elements::{Backoff, Duplex, ElementKind, Oversize, RadioPower, RadioSpec, Turnaround};
use farpath_units::{Ber, Bytes, Duration};
use toml::Value;

/// Reads a row of packet radios.
pub(crate) fn read_radio(reader: &mut Reader<'_>) -> Result<ElementKind, ExperimentError> {
    let spec = RadioSpec {
        hops: reader.or("hops", 1)?,
        rate: reader.required("rate")?,
        duplex: reader.or("duplex", Duplex::Half)?,
        turnaround: read_turnaround(reader)?,
        poll: or_none(reader, "poll", "none")?,
        header: reader.or("header", Bytes::ZERO)?,
        link_ack: or_none(reader, "link_ack", "none")?,
        burst: reader.or("burst", 1)?,
        gap: reader.or("gap", Duration::ZERO)?,
        backoff: Backoff {
            base: reader.required("backoff")?,
            max_exponent: reader.or("backoff_doublings", 6)?,
        },
        queue: reader.required("queue")?,
        flow_control: reader.or("flow_control", true)?,
        ber: reader.or("ber", Ber::ZERO)?,
        attempts: or_none(reader, "attempts", "unlimited")?,
        processing: reader.or("processing", Duration::ZERO)?,
        mtu: reader.required("mtu")?,
        oversize: reader.or("oversize", Oversize::Fragment)?,
        patience: reader.or("patience", Duration::from_secs(300))?,
        power: read_power(reader)?,
    };
    spec.validate().map_err(|fault| reader.at(fault.key()).refuse(fault.to_string()))?;
    Ok(ElementKind::Radio(Box::new(spec)))
}

/// A value, or nothing where the file says `none` or nothing.
fn or_none<T: Parameter>(
    reader: &mut Reader<'_>,
    key: &'static str,
    none: &str,
) -> Result<Option<T>, ExperimentError> {
    let at = reader.at(key);
    reader.value(key).map_or(Ok(None), |value| unless(value, &at, none))
}

/// What a transceiver draws, where the file says it.
fn read_power(reader: &mut Reader<'_>) -> Result<Option<RadioPower>, ExperimentError> {
    if !reader.has("power") {
        return Ok(None);
    }
    reader.section("power", |power| {
        Ok(Some(RadioPower { send: power.required("send")?, listen: power.required("listen")? }))
    })
}

/// One time for both ways of turning around, or a table; without a retune it takes none.
fn read_turnaround(reader: &mut Reader<'_>) -> Result<Turnaround, ExperimentError> {
    let retune = reader.or("retune", Duration::ZERO)?;
    let at = reader.at("turnaround");
    Ok(match reader.value("turnaround") {
        None => Turnaround { retune, ..Turnaround::default() },
        Some(value @ Value::Table(_)) => Reader::table(&at.origin, &at.key, as_table(value, &at)?, |turn| {
            Ok(Turnaround {
                rx_to_tx: turn.required("rx_to_tx")?,
                tx_to_rx: turn.required("tx_to_rx")?,
                retune,
            })
        })?,
        Some(value) => {
            let both = Duration::read(value, &at)?;
            Turnaround { rx_to_tx: both, tx_to_rx: both, retune }
        }
    })
}

impl Parameter for Duplex {
    const EXPECTED: &'static str = "`half` or `full`";
    fn read(value: &Value, at: &Location) -> Result<Duplex, ExperimentError> {
        word(value, at, &[("half", Duplex::Half), ("full", Duplex::Full)])
    }
}

impl Parameter for Oversize {
    const EXPECTED: &'static str = "`fragment`, `refuse` or `icmp`";
    fn read(value: &Value, at: &Location) -> Result<Oversize, ExperimentError> {
        let words =
            [("fragment", Oversize::Fragment), ("refuse", Oversize::Refuse), ("icmp", Oversize::Icmp)];
        word(value, at, &words)
    }
}
