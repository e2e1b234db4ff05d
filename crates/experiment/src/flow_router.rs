//! `element = "flow-router"`: the keys of an explicit-rate router.

use crate::error::{ExperimentError, Location, parse_toml};
use crate::reader::{Parameter, Reader, as_list, as_table, word, wrong_type};
use farpath_elements::{ElementKind, MarkThreshold, QueueLimit, RateChange, RouterLines};
use farpath_path::PerDirection;
use farpath_tia1039::router::RouterSettings;
use farpath_tia1039::{Priority, RateUnit};
use farpath_units::{Bytes, Duration, Instant, Probability, Rate};
use std::net::SocketAddr;
use toml::Value;

/// What `farpath explicit-rate router` is told.
#[derive(Debug, Clone, PartialEq)]
pub struct RouterConfig {
    /// The interface that packets come in by which go forward.
    pub inside: String,
    /// The one by which they leave.
    pub outside: String,
    /// Where statistics are served.
    pub statistics: Option<SocketAddr>,
    /// What it grants, and its lines.
    pub lines: RouterLines,
}

impl RouterConfig {
    /// Reads the text of a configuration file: interfaces, and the keys of a `flow-router`.
    ///
    /// # Errors
    /// Text that is not TOML, keys that do not exist or are missing, values that are refused.
    pub fn parse(text: &str, origin: &str) -> Result<RouterConfig, ExperimentError> {
        let table = parse_toml(origin, text)?;
        Reader::table(origin, "", &table, |reader| {
            let inside: String = reader.required("inside")?;
            let outside: String = reader.required("outside")?;
            if inside == outside {
                return Err(reader
                    .at("outside")
                    .refuse(format!("expected another interface than `inside`, {inside}")));
            }
            let statistics: Option<String> = reader.optional("statistics")?;
            let statistics = statistics.map(|text| {
                let expected =
                    format!("expected an address and a port such as `127.0.0.1:9439`, found `{text}`");
                text.parse().map_err(|_| reader.at("statistics").refuse(expected))
            });
            let statistics = statistics.transpose()?;
            for key in ["blind", "changes"] {
                if reader.has(key) {
                    return Err(reader.at(key).refuse("it is for experiments; a router is told with SIGHUP"));
                }
            }
            if !reader.has("queue") {
                return Err(reader
                    .at("queue")
                    .refuse("expected how much may wait for each line, such as `1000 packets`"));
            }
            match read_flow_router(reader)? {
                ElementKind::FlowRouter(lines) => {
                    Ok(RouterConfig { inside, outside, statistics, lines: *lines })
                }
                _ => unreachable!("only a blind one is anything else"),
            }
        })
    }
}

/// Reads a flow router. One that is blind is a link: it does not know the protocol, and its signals pass unread.
pub(crate) fn read_flow_router(reader: &mut Reader<'_>) -> Result<ElementKind, ExperimentError> {
    let rate: PerDirection<Rate> = reader.each_way("rate", None)?;
    let queue = if reader.has("queue") {
        reader.each_way("queue", Some(QueueLimit::Unlimited))?
    } else {
        PerDirection::both(QueueLimit::Unlimited)
    };
    let overhead = reader.or("overhead", Bytes::ZERO)?;
    let min_packet = reader.or("min_packet", Bytes::ZERO)?;
    let changes = if reader.has("changes") {
        reader.each_way("changes", Some(Changes(Vec::new())))?.map(|changes| changes.0)
    } else {
        PerDirection::default()
    };
    let settings = read_settings(reader)?;
    if reader.or("blind", false)? {
        if !changes.forward.is_empty() || !changes.reverse.is_empty() {
            return Err(reader
                .at("blind")
                .refuse("a blind router is a plain link, whose rate does not change"));
        }
        let mark = PerDirection::both(MarkThreshold::Never);
        return Ok(ElementKind::Link { rate, queue, mark, overhead, min_packet });
    }
    Ok(ElementKind::FlowRouter(Box::new(RouterLines {
        rate,
        changes,
        queue,
        overhead,
        min_packet,
        settings,
    })))
}

fn read_settings(reader: &mut Reader<'_>) -> Result<PerDirection<RouterSettings>, ExperimentError> {
    let rest = RouterSettings::default();
    let guaranteed = match reader.has("guaranteed") {
        true => reader.each_way("guaranteed", Some(rest.guaranteed))?,
        false => PerDirection::both(rest.guaranteed),
    };
    let preemption = match reader.has("preemption") {
        true => reader.each_way("preemption", Some(rest.preemption))?,
        false => PerDirection::both(rest.preemption),
    };
    let settings = RouterSettings {
        utilization: reader.or("utilization", rest.utilization)?,
        newcomers: reader.or("newcomers", rest.newcomers)?,
        guaranteed: rest.guaranteed,
        preemption: rest.preemption,
        unit: reader.or("unit", rest.unit)?,
        weights: read_classes(reader)?,
        police: reader.or("police", rest.police)?,
        hold: reader.or("hold", rest.hold)?,
        push_interval: reader.or("push_interval", rest.push_interval)?,
        available_timeout: reader.or("available_timeout", rest.available_timeout)?,
        maximum_timeout: reader.or("maximum_timeout", rest.maximum_timeout)?,
        guaranteed_timeout: reader.or("guaranteed_timeout", rest.guaranteed_timeout)?,
        flows: reader.or("flows", rest.flows)?,
        starts: reader.or("starts", rest.starts)?,
        packet: rest.packet,
    };
    if settings.utilization == Probability::ZERO {
        return Err(reader.at("utilization").refuse("none of the line leaves nothing to grant"));
    }
    if settings.newcomers == Probability::ONE {
        return Err(reader
            .at("newcomers")
            .refuse("all of the line for newcomers leaves nothing to grant to others"));
    }
    let utilization = settings.utilization;
    if let Some(guaranteed) = [guaranteed.forward, guaranteed.reverse]
        .into_iter()
        .find(|share| share.fraction() > utilization.fraction())
    {
        return Err(reader.at("guaranteed").refuse(format!(
            "{guaranteed} of the line for guarantees is more than `utilization`, {utilization}, allows for all grants"
        )));
    }
    for (key, time) in [("hold", settings.hold), ("push_interval", settings.push_interval)] {
        if time.is_zero() {
            return Err(reader.at(key).refuse("expected more than no time at all"));
        }
    }
    Ok(PerDirection::from_fn(|way| RouterSettings {
        guaranteed: guaranteed[way],
        preemption: preemption[way],
        ..settings.clone()
    }))
}

/// `classes`: from which preemption priority on which weight holds.
fn read_classes(reader: &mut Reader<'_>) -> Result<[u8; 64], ExperimentError> {
    let mut weights = RouterSettings::default().weights;
    let at = reader.at("classes");
    let Some(value) = reader.value("classes") else { return Ok(weights) };
    let mut last = None;
    for (index, class) in as_list(value, &at)?.iter().enumerate() {
        let at = at.entry(index);
        let (from, weight) = Reader::table(&at.origin, &at.key, as_table(class, &at)?, |reader| {
            Ok((in_range(reader, "from", 0, 63)?, in_range(reader, "weight", 1, 255)?))
        })?;
        if last.is_some_and(|last| from <= last) {
            return Err(at.child("from").refuse("classes are listed in rising order of priority"));
        }
        last = Some(from);
        weights[from as usize..].fill(u8::try_from(weight).expect("at most 255"));
    }
    Ok(weights)
}

fn in_range(
    reader: &mut Reader<'_>,
    key: &'static str,
    least: u32,
    most: u32,
) -> Result<u32, ExperimentError> {
    let number: u32 = reader.required(key)?;
    if (least..=most).contains(&number) {
        return Ok(number);
    }
    Err(reader.at(key).refuse(format!("expected a whole number from {least} to {most}, found {number}")))
}

/// Rates from later moments on.
#[derive(Clone)]
struct Changes(Vec<RateChange>);

impl Parameter for Changes {
    const EXPECTED: &'static str = "a list such as `[{ at = \"5 s\", rate = \"10 Mbit/s\" }]`";
    fn read(value: &Value, at: &Location) -> Result<Changes, ExperimentError> {
        let list = value.as_array().ok_or_else(|| wrong_type(value, at, Self::EXPECTED))?;
        let mut changes: Vec<RateChange> = Vec::with_capacity(list.len());
        for (index, change) in list.iter().enumerate() {
            let at = at.entry(index);
            let (when, rate) = Reader::table(&at.origin, &at.key, as_table(change, &at)?, |reader| {
                Ok((reader.required::<Duration>("at")?, reader.required::<Rate>("rate")?))
            })?;
            let change = RateChange { at: Instant::ZERO + when, rate };
            if changes.last().is_some_and(|last| change.at <= last.at) {
                return Err(at.child("at").refuse("changes are listed in rising order of time"));
            }
            changes.push(change);
        }
        Ok(Changes(changes))
    }
}

impl Parameter for Priority {
    const EXPECTED: &'static str = "a priority from 0 to 63";
    fn read(value: &Value, at: &Location) -> Result<Priority, ExperimentError> {
        let level = value.as_integer().ok_or_else(|| wrong_type(value, at, Self::EXPECTED))?;
        u8::try_from(level)
            .ok()
            .and_then(Priority::new)
            .ok_or_else(|| at.refuse(format!("expected {}, found {level}", Self::EXPECTED)))
    }
}

impl Parameter for RateUnit {
    const EXPECTED: &'static str = "one of `kbit/s`, `bit/s`, `cells/s`";
    fn read(value: &Value, at: &Location) -> Result<RateUnit, ExperimentError> {
        word(value, at, &RateUnit::ALL.map(|unit| (unit.name(), unit)))
    }
}
