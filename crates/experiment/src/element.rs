//! The elements of a path.

use crate::error::{ExperimentError, Location, Suggestion, parse_toml};
use crate::flow_router::read_flow_router;
use crate::library::Files;
use crate::places::{Distance, medium_of};
use crate::radio::read_radio;
use crate::reader::{Parameter, Reader, as_list, as_table, unless, word, wrong_type};
use farpath_elements::{ElementKind, ElementSpec, MarkThreshold, PacketCount, QueueLimit, WaitKind};
use farpath_path::PerDirection;
use farpath_units::{Ber, Bytes, Duration, Probability};
use std::borrow::Cow;
use toml::{Table, Value};

/// What an element is called in a file, and the parameter that its name alone stands for.
const KINDS: &[(&str, Option<&str>)] = &[
    ("link", Some("rate")),
    ("delay", Some("delay")),
    ("medium-access", Some("delay")),
    ("processing", Some("delay")),
    ("codec", Some("delay")),
    ("hops", Some("routers")),
    ("loss", Some("rate")),
    ("evenly-spaced-loss", Some("every")),
    ("listed-loss", Some("packets")),
    ("gilbert-elliott", None),
    ("bit-errors", Some("ber")),
    ("reorder", Some("share")),
    ("duplicate", Some("share")),
    ("flow-router", Some("rate")),
    ("radio", Some("rate")),
];

/// The most elements that a path may have: each is asked for every packet, and has a generator of its own.
pub const MAX_ELEMENTS: usize = 1000;

/// What the elements of a path are called in a file.
pub fn element_kinds() -> impl Iterator<Item = &'static str> {
    KINDS.iter().map(|(name, _)| *name)
}

/// The parameter that is meant by the name of this element alone, if there is one.
pub(crate) fn principal_parameter(element: &Table) -> Option<&'static str> {
    let kind = element.get("element")?.as_str()?;
    KINDS.iter().find(|(name, _)| *name == kind).and_then(|(_, parameter)| *parameter)
}

/// The name of an element: its own, or that of its kind.
pub(crate) fn element_name(element: &Table) -> Option<&str> {
    element.get("name").or_else(|| element.get("element")).and_then(Value::as_str)
}

/// The elements of `path`, unread: those of the list, or of the ready-made path of that name.
pub(crate) fn path_list<'a>(
    value: &'a Value,
    at: &Location,
    files: &Files,
) -> Result<Cow<'a, [Value]>, ExperimentError> {
    match value {
        Value::Array(elements) => Ok(Cow::Borrowed(elements)),
        Value::String(name) => files.path(name, at).map(Cow::Owned),
        _ => Err(wrong_type(value, at, "the name of a ready-made path, or a list of elements")),
    }
}

/// The elements of a path file, which are checked here so that errors name that file.
pub(crate) fn ready_made(text: &str, origin: &str) -> Result<Vec<Value>, ExperimentError> {
    let table = parse_toml(origin, text)?;
    Reader::table(origin, "", &table, |reader| {
        // For the reader of the file.
        reader.required::<String>("title")?;
        reader.optional::<String>("source")?;
        let value = reader.value("path").ok_or_else(|| reader.missing("path", "a list of elements"))?;
        let elements = as_list(value, &reader.at("path"))?;
        read_path(elements, &reader.at("path"), &Files::default())?;
        Ok(elements.to_vec())
    })
}

/// Reads the elements of a path.
pub(crate) fn read_path(
    elements: &[Value],
    at: &Location,
    files: &Files,
) -> Result<Vec<ElementSpec>, ExperimentError> {
    if elements.is_empty() {
        return Err(at.refuse("a path has at least one element"));
    }
    if elements.len() > MAX_ELEMENTS {
        let found = elements.len();
        return Err(at.refuse(format!("expected {MAX_ELEMENTS} elements at the most, found {found}")));
    }
    let mut specs: Vec<ElementSpec> = Vec::with_capacity(elements.len());
    for (index, element) in elements.iter().enumerate() {
        let at = at.entry(index);
        let table = as_table(element, &at)?;
        let read = || Reader::table(&at.origin, &at.key, table, read_element);
        let spec = files.element(index, table, read)?;
        if specs.iter().any(|other| other.name == spec.name) {
            return Err(at.child("name").refuse(format!("two elements are called `{}`", spec.name)));
        }
        specs.push(spec);
    }
    Ok(specs)
}

fn read_element(reader: &mut Reader<'_>) -> Result<ElementSpec, ExperimentError> {
    let kind: String = reader.required("element")?;
    let name = reader.or("name", kind.clone())?;
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name.is_empty() || !name.chars().all(plain) {
        let reason = format!("`{name}` cannot be part of a key: use letters, digits, `-` and `_`");
        return Err(reader.at("name").refuse(reason));
    }
    Ok(ElementSpec { kind: read_kind(&kind, reader)?, name })
}

fn read_kind(kind: &str, reader: &mut Reader<'_>) -> Result<ElementKind, ExperimentError> {
    let none = Probability::ZERO;
    Ok(match kind {
        "delay" => ElementKind::Delay { delay: propagation(reader)? },
        "medium-access" => wait(WaitKind::MediumAccess, reader)?,
        "processing" => wait(WaitKind::Processing, reader)?,
        "codec" => wait(WaitKind::Codec, reader)?,
        "hops" => ElementKind::Hops { routers: reader.each_way("routers", Some(0))? },
        "link" => ElementKind::Link {
            rate: reader.each_way("rate", None)?,
            queue: if reader.has("queue") {
                reader.each_way("queue", Some(QueueLimit::Unlimited))?
            } else {
                PerDirection::both(QueueLimit::Unlimited)
            },
            mark: if reader.has("mark") {
                reader.each_way("mark", Some(MarkThreshold::Never))?
            } else {
                PerDirection::both(MarkThreshold::Never)
            },
            overhead: reader.or("overhead", Bytes::ZERO)?,
            min_packet: reader.or("min_packet", Bytes::ZERO)?,
        },
        "loss" => ElementKind::Bernoulli {
            loss_rate: reader.each_way("rate", Some(none))?,
            count: reader.or("count", PacketCount::All)?,
        },
        "evenly-spaced-loss" => ElementKind::EvenlySpaced {
            every: reader.each_way("every", Some(Every(None)))?.map(|every| every.0),
            phase: reader.optional("phase")?,
            count: reader.or("count", PacketCount::All)?,
        },
        "listed-loss" => ElementKind::Listed {
            packets: reader.each_way("packets", Some(PacketNumbers(Vec::new())))?.map(|list| list.0),
            count: reader.or("count", PacketCount::All)?,
        },
        "gilbert-elliott" => ElementKind::GilbertElliott {
            good_to_bad: reader.required("good_to_bad")?,
            bad_to_good: reader.required("bad_to_good")?,
            loss_good: reader.or("loss_good", none)?,
            loss_bad: reader.required("loss_bad")?,
            active: if reader.has("active") {
                reader.each_way("active", Some(false))?
            } else {
                PerDirection::both(true)
            },
        },
        "bit-errors" => ElementKind::BitErrors {
            ber: reader.each_way("ber", Some(Ber::ZERO))?,
            overhead: reader.or("overhead", Bytes::ZERO)?,
            linear: reader.or("linear", false)?,
        },
        "reorder" => ElementKind::Reorder {
            share: reader.each_way("share", Some(none))?,
            extra_delay: reader.required("extra_delay")?,
        },
        "duplicate" => ElementKind::Duplicate { share: reader.each_way("share", Some(none))? },
        "flow-router" => read_flow_router(reader)?,
        "radio" => read_radio(reader)?,
        _ => {
            return Err(ExperimentError::UnknownName {
                at: reader.at("element"),
                what: "element",
                name: kind.to_owned(),
                suggestion: Suggestion::among(kind, KINDS.iter().map(|(name, _)| name)),
            });
        }
    })
}

fn wait(what: WaitKind, reader: &mut Reader<'_>) -> Result<ElementKind, ExperimentError> {
    Ok(ElementKind::Wait { what, delay: reader.each_way("delay", None)? })
}

/// A delay, or what light takes over a distance in a medium.
fn propagation(reader: &mut Reader<'_>) -> Result<PerDirection<Duration>, ExperimentError> {
    let (at, medium_at) = (reader.at("distance"), reader.at("medium"));
    let medium: Option<String> = reader.optional("medium")?;
    if reader.has("distance") {
        if reader.has("delay") {
            return Err(at.refuse("`delay` is there too: a delay is given, or follows from a distance"));
        }
        let distance = reader.each_way::<Distance>("distance", None)?;
        let medium = medium_of(medium.as_deref().unwrap_or("vacuum"), &medium_at)?;
        let delay = |way: &Distance| way.delay(medium).map_err(|reason| at.refuse(reason));
        return Ok(PerDirection { forward: delay(&distance.forward)?, reverse: delay(&distance.reverse)? });
    }
    if medium.is_some() {
        return Err(medium_at.refuse("a medium makes a delay of a `distance`, and there is none"));
    }
    if !reader.has("delay") {
        let expected = format!("{}, or a `distance` such as `384400 km` or `moon`", Duration::EXPECTED);
        return Err(reader.missing("delay", &expected));
    }
    reader.each_way("delay", None)
}

impl Parameter for Distance {
    const EXPECTED: &'static str = "a distance such as `384400 km`, `1.5 light-seconds` or `moon`";
    fn read(value: &Value, at: &Location) -> Result<Distance, ExperimentError> {
        let text = value.as_str().ok_or_else(|| wrong_type(value, at, Self::EXPECTED))?;
        Distance::parse(text, at)
    }
}

impl Parameter for PacketCount {
    const EXPECTED: &'static str = "`all` or `data`";
    fn read(value: &Value, at: &Location) -> Result<PacketCount, ExperimentError> {
        word(value, at, &[("all", PacketCount::All), ("data", PacketCount::Data)])
    }
}

impl Parameter for QueueLimit {
    const EXPECTED: &'static str = "a size such as `64 kB`, a number such as `100 packets`, or `unlimited`";
    fn read(value: &Value, at: &Location) -> Result<QueueLimit, ExperimentError> {
        let text = value.as_str().unwrap_or_default().trim();
        if let Some(number) = text.strip_suffix("packets").or_else(|| text.strip_suffix("packet")) {
            let packets = number.trim().parse().map(QueueLimit::Packets);
            return packets.map_err(|_| wrong_type(value, at, Self::EXPECTED));
        }
        match unless::<Bytes>(value, at, "unlimited") {
            Ok(limit) => Ok(limit.map_or(QueueLimit::Unlimited, QueueLimit::Bytes)),
            Err(ExperimentError::Type { at, found, .. }) => {
                Err(ExperimentError::Type { at, expected: Self::EXPECTED.to_owned(), found })
            }
            Err(other) => Err(other),
        }
    }
}

impl Parameter for MarkThreshold {
    const EXPECTED: &'static str =
        "a size such as `64 kB`, a number such as `20 packets`, a time such as `5 ms`, or `never`";
    fn read(value: &Value, at: &Location) -> Result<MarkThreshold, ExperimentError> {
        let text = value.as_str().unwrap_or_default().trim();
        let packets = text.strip_suffix("packets").or_else(|| text.strip_suffix("packet"));
        let threshold = if text == "never" {
            Some(MarkThreshold::Never)
        } else if let Some(number) = packets {
            number.trim().parse().ok().map(MarkThreshold::Packets)
        } else {
            let time = text.parse().ok().map(MarkThreshold::Delay);
            time.or_else(|| text.parse().ok().map(MarkThreshold::Bytes))
        };
        threshold.ok_or_else(|| wrong_type(value, at, Self::EXPECTED))
    }
}

/// How far apart evenly spaced losses are; nothing where there are none.
#[derive(Clone)]
struct Every(Option<u64>);

impl Parameter for Every {
    const EXPECTED: &'static str = "a number of packets, or `none`";
    fn read(value: &Value, at: &Location) -> Result<Every, ExperimentError> {
        match unless::<u64>(value, at, "none")? {
            Some(0) => Err(at.refuse("one loss in zero packets is none in any; for no loss say `none`")),
            every => Ok(Every(every)),
        }
    }
}

/// Numbers of packets, counted from 1, in rising order.
#[derive(Clone)]
struct PacketNumbers(Vec<u64>);

impl Parameter for PacketNumbers {
    const EXPECTED: &'static str = "a list of packet numbers such as `[40, 41]`";
    fn read(value: &Value, at: &Location) -> Result<PacketNumbers, ExperimentError> {
        let list = value.as_array().ok_or_else(|| wrong_type(value, at, Self::EXPECTED))?;
        let mut numbers: Vec<u64> = Vec::with_capacity(list.len());
        for (index, value) in list.iter().enumerate() {
            let at = at.entry(index);
            let number = u64::read(value, &at)?;
            let last = numbers.last().copied().unwrap_or(0);
            if number <= last {
                return Err(at.refuse(if number == 0 {
                    "packets are counted from 1".to_owned()
                } else {
                    format!("{number} comes after {last}; packets are listed in rising order, each once")
                }));
            }
            numbers.push(number);
        }
        Ok(PacketNumbers(numbers))
    }
}
