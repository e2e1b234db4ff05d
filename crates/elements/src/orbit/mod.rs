//! Satellites: the delay over them, and when there is contact. Worked out for a stretch of time when the file is read, so that a packet looks it up.

mod geometry;
mod tle;

use crate::contacts::{Contact, ContactPlan, Contacts, Gaps, Outside};
use crate::delay::VaryingDelay;
use crate::draw::Draws;
use crate::element::{Built, Declared, DelayPart, Element, Fault, Inflow};
use crate::keys::{self, Keys, ReadValue, Source};
use crate::over_time::{Between, Offset, OverTime, Setting};
use crate::{ElementKind, ExplicitRatePacket, QueueLimit};
use farpath_path::{Direction, Fate, PacketView, PerDirection, Transit};
use farpath_units::{Angle, Bytes, Duration, Instant, LIGHT_KM_PER_S, Length, Probability};
use geometry::{Circle, Motion, Station, degrees, dot, sine};
use sgp4::chrono::{NaiveDateTime, TimeDelta};

pub use geometry::{Body, Place};
pub use tle::{Tle, parse_tle};

/// The path over a satellite, as it is described.
#[derive(Debug, Clone)]
pub struct Orbit {
    /// Where the satellite is.
    pub satellite: Satellite,
    /// One: the satellite is the other end, or is the first of several. Two: it is a bent pipe from the first to the second.
    pub stations: Vec<Place>,
    /// There is contact from this elevation on, at each station.
    pub minimum_elevation: Angle,
    /// From the satellite on to another, this often; that one is as far from the other end as this one is from the station.
    pub hops: u64,
    /// Length of each.
    pub hop: Length,
    /// For how long it is worked out; there is no contact after it.
    pub span: Duration,
}

/// Where a satellite is.
#[derive(Debug, Clone)]
pub enum Satellite {
    /// On a circle.
    Circle {
        /// Around what.
        body: Body,
        /// Above the mean radius.
        altitude: Length,
        /// Of the circle's plane to that of the equator.
        inclination: Angle,
        /// A point that it passes over on its way north.
        over: Place,
        /// When it does, since the start of the run.
        at: Duration,
    },
    /// By SGP4.
    Elements {
        /// Its elements.
        tle: Box<Tle>,
        /// When the run starts; the epoch of the elements where it is not said.
        start: Option<NaiveDateTime>,
    },
}

/// How far from their epoch elements are used: SGP4 is off by some km a day, of some thousands.
const MAX_AGE: TimeDelta = TimeDelta::days(14);
/// The longest time that is worked out.
const MAX_SPAN: Duration = Duration::from_secs(31 * 86_400);
const DAY: Duration = Duration::from_secs(86_400);
/// A contact is looked for this often in a revolution, and its delay taken this often: straight lines between are off by less than 0.1 us in a low orbit.
const LOOKS: f64 = 600.0;
const POINTS: f64 = 6000.0;
/// Lower, the air ends every orbit; higher, it is another body's.
const ALTITUDES: core::ops::RangeInclusive<Length> = Length(10_000)..=Length(2_000_000_000);
const MOST_HOPS: u64 = 1000;

/// Contacts over a satellite, and the delay in them.
#[derive(Debug, Clone, PartialEq)]
pub struct Passes {
    /// When there is contact, and what becomes of packets between.
    pub contacts: Contacts,
    /// The delay of packets that pass.
    pub delay: VaryingDelay,
    /// What it was made of, in words.
    pub orbit: String,
    /// For how long it is worked out.
    pub span: Duration,
}

impl Orbit {
    /// Contacts and delays over the span.
    ///
    /// # Errors
    /// The key of what cannot be, and why.
    pub fn passes(&self, outside: Outside, queue: PerDirection<QueueLimit>) -> Result<Passes, Fault> {
        let refuse = |key: &str, reason: String| Fault { key: key.to_owned(), reason };
        self.check()?;
        let (motion, stations) = (self.motion()?, self.places());
        let key = self.satellite.key();
        let seen = |seconds: f64| -> Result<(f64, f64), Fault> {
            let position = motion.position(seconds).map_err(|reason| refuse(key, reason))?;
            if dot(position, position) < self.ground_km() * self.ground_km() {
                return Err(refuse(
                    key,
                    format!("the satellite is below the ground {seconds:.0} s into the run"),
                ));
            }
            let sights = stations.iter().map(|station| station.sees(position));
            Ok(sights
                .fold((0.0, f64::INFINITY), |(range, lowest), sight| (range + sight.0, lowest.min(sight.1))))
        };
        let lowest = sine(self.minimum_elevation);
        let end = self.span.as_secs_f64();
        let step = (motion.revolution_s() / LOOKS).min(end);
        // Between a moment with contact and one without: to a tenth of a millisecond.
        let edge = |mut with: f64, mut without: f64| -> Result<f64, Fault> {
            while (with - without).abs() > 1e-4 {
                let middle = (with + without) / 2.0;
                if seen(middle)?.1 >= lowest { with = middle } else { without = middle }
            }
            Ok(with)
        };
        let (mut contacts, mut points) = (Vec::new(), Vec::new());
        let (mut before, mut rose, mut highest) = (None, None, (f64::NEG_INFINITY, 0.0));
        let mut look = 0_u64;
        loop {
            let now = (look as f64 * step).min(end);
            let sight = seen(now)?.1;
            if sight > highest.0 {
                highest = (sight, now);
            }
            match (rose, sight >= lowest) {
                (None, true) => rose = Some(before.map_or(Ok(now), |before| edge(now, before))?),
                (Some(from), false) => {
                    contacts.push((from, edge(before.unwrap_or(now), now)?));
                    rose = None;
                }
                _ => {}
            }
            before = Some(now);
            look += 1;
            if now >= end {
                break;
            }
        }
        contacts.extend(rose.map(|from| (from, end)));
        // In whole milliseconds, as tables show them.
        let mut contacts: Vec<(f64, f64)> =
            contacts.iter().map(|(from, to)| ((from * 1e3).ceil() / 1e3, (to * 1e3).floor() / 1e3)).collect();
        contacts.retain(|(from, to)| from < to);
        if contacts.is_empty() {
            let (sight, at) = highest;
            return Err(refuse(
                "minimum_elevation",
                format!(
                    "expected a contact within {}, found none: the satellite stands at {:.1} deg at the highest, {at:.0} s into the run",
                    self.span,
                    degrees(sight)
                ),
            ));
        }
        let legs = if self.hops > 0 { 2.0 } else { 1.0 };
        let between_satellites = self.hops as f64 * self.hop.as_km_f64();
        let delay = |seconds: f64| -> Result<Duration, Fault> {
            Ok(Duration::from_secs_f64((legs * seen(seconds)?.0 + between_satellites) / LIGHT_KM_PER_S))
        };
        let step = motion.revolution_s() / POINTS;
        for &(from, to) in &contacts {
            let parts = ((to - from) / step).ceil().max(1.0) as u64;
            for part in 0..=parts {
                let at = from + (to - from) * (part as f64 / parts as f64);
                points.push((Duration::from_secs_f64(at), delay(at)?));
            }
        }
        if let Some(&(first, delay)) = points.first()
            && !first.is_zero()
        {
            points.insert(0, (Duration::ZERO, delay));
        }
        points.dedup_by_key(|point| point.0);
        let over = OverTime::new(points, Between::Lines, None, Offset::At(Duration::ZERO))?;
        let listed = contacts.iter().map(|&(from, to)| Contact {
            from: Duration::from_secs_f64(from),
            to: Duration::from_secs_f64(to),
        });
        let plan = ContactPlan::Listed(PerDirection::both(listed.collect()));
        Ok(Passes {
            contacts: Contacts { plan, outside, queue },
            delay: VaryingDelay { delay: PerDirection::both(Setting::Changing(over)), reorder: false },
            orbit: self.describe(),
            span: self.span,
        })
    }

    fn check(&self) -> Result<(), Fault> {
        let refuse = |key: &str, reason: String| Err(Fault { key: key.to_owned(), reason });
        let stations = self.stations.len();
        if !(1..=2).contains(&stations) {
            return refuse(
                "stations",
                format!("expected one station, or two for a bent pipe, found {stations}"),
            );
        }
        if self.hops > 0 && stations == 2 {
            let reason = "expected one station beside `hops`: where the last satellite stands is not worked out, \
                          it is taken to be as far from the other end as the first is from this station";
            return refuse("stations", reason.to_owned());
        }
        if self.hops > MOST_HOPS {
            return refuse("hops", format!("expected at most {MOST_HOPS}, found {}", self.hops));
        }
        if self.hops > 0 && (self.hop == Length(0) || self.hop > *ALTITUDES.end()) {
            return refuse(
                "hop",
                format!("expected more than 0 m and at most {}, found {}", ALTITUDES.end(), self.hop),
            );
        }
        if !(-90_000_000..=90_000_000).contains(&self.minimum_elevation.0) {
            return refuse(
                "minimum_elevation",
                format!("expected -90 deg to 90 deg, found {}", self.minimum_elevation),
            );
        }
        if self.span < Duration::from_secs(1) || self.span > MAX_SPAN {
            return refuse("span", format!("expected 1 s to {MAX_SPAN}, found {}", self.span));
        }
        Ok(())
    }

    fn motion(&self) -> Result<Motion, Fault> {
        let refuse = |key: &str, reason: String| Fault { key: key.to_owned(), reason };
        match &self.satellite {
            Satellite::Circle { body, altitude, inclination, over, at } => {
                if !ALTITUDES.contains(altitude) {
                    let (least, most) = (ALTITUDES.start(), ALTITUDES.end());
                    return Err(refuse(
                        "altitude",
                        format!("expected {least} to {most} above the ground, found {altitude}"),
                    ));
                }
                if !(0..=180_000_000).contains(&inclination.0) {
                    return Err(refuse(
                        "inclination",
                        format!("expected 0 deg to 180 deg, found {inclination}"),
                    ));
                }
                let circle = Circle::new(*body, *altitude, *inclination, *over, *at).ok_or_else(|| {
                    let found = over.latitude;
                    refuse(
                        "over",
                        format!(
                            "expected a place that an orbit of inclination {inclination} passes over, found one at latitude {found} \
                             (that of the first station where `over` is not said)"
                        ),
                    )
                })?;
                Ok(Motion::Circle(circle))
            }
            Satellite::Elements { tle, start } => {
                let elements = &tle.elements;
                let epoch = elements.datetime;
                let start = start.unwrap_or(epoch);
                let end =
                    start + TimeDelta::nanoseconds(i64::try_from(self.span.as_nanos()).unwrap_or(i64::MAX));
                if (start - epoch).abs() > MAX_AGE || (end - epoch).abs() > MAX_AGE + TimeDelta::days(17) {
                    return Err(refuse(
                        "start",
                        format!(
                            "expected a time within 14 days of the elements' epoch, {}Z, found {}Z",
                            shown(epoch),
                            shown(start)
                        ),
                    ));
                }
                let constants = sgp4::Constants::from_elements(elements)
                    .map_err(|error| refuse("tle", error.to_string()))?;
                Ok(Motion::Elements {
                    constants: Box::new(constants),
                    epoch,
                    start,
                    revolution_s: 86_400.0 / elements.mean_motion,
                })
            }
        }
    }

    fn places(&self) -> Vec<Station> {
        let station = |&place: &Place| match &self.satellite {
            Satellite::Circle { body, .. } => Station::on_sphere(place, body.radius_km()),
            Satellite::Elements { .. } => Station::on_earth(place),
        };
        self.stations.iter().map(station).collect()
    }

    /// Nothing goes around closer to the centre.
    fn ground_km(&self) -> f64 {
        match &self.satellite {
            Satellite::Circle { body, .. } => body.radius_km(),
            Satellite::Elements { .. } => Body::Earth.radius_km(),
        }
    }

    fn describe(&self) -> String {
        let satellite = match &self.satellite {
            Satellite::Circle { body, altitude, inclination, .. } => {
                let around =
                    if *body == Body::Earth { String::new() } else { format!(" of the {}", body.name()) };
                format!("a circular orbit{around} at {altitude}, inclined by {inclination}")
            }
            Satellite::Elements { tle, .. } => match &tle.elements.object_name {
                Some(name) => format!("the orbit of {name} by SGP4"),
                None => format!("the orbit of satellite {} by SGP4", tle.elements.norad_id),
            },
        };
        match self.hops {
            0 => satellite,
            1 => format!("{satellite}, and 1 hop of {}", self.hop),
            hops => format!("{satellite}, and {hops} hops of {}", self.hop),
        }
    }
}

fn shown(time: NaiveDateTime) -> String {
    // To the second.
    format!("{time:?}").chars().take(19).collect()
}

impl Satellite {
    /// The key that a fault of its motion is told at.
    fn key(&self) -> &'static str {
        match self {
            Satellite::Circle { .. } => "altitude",
            Satellite::Elements { .. } => "tle",
        }
    }
}

impl Element for Passes {
    fn describe(&self) -> String {
        format!("{}: {}; {}", self.orbit, self.delay.describe(), self.contacts.describe())
    }

    fn is_random(&self) -> bool {
        false
    }

    fn entries(&self) -> usize {
        self.contacts.entries() + self.delay.entries()
    }

    fn left_out(&self, data: Direction) -> Option<String> {
        self.delay.left_out(data)
    }

    fn no_model(&self, data: Direction) -> Option<String> {
        self.contacts.no_model(data)
    }

    fn delays(&self, direction: Direction, size: Bytes) -> Vec<DelayPart> {
        let mut parts = self.contacts.delays(direction, size);
        parts.extend(self.delay.delays(direction, size));
        parts
    }

    fn validate(&self) -> Result<(), Fault> {
        self.contacts.validate()
    }

    fn lone_delay(&self, direction: Direction, size: Bytes) -> Duration {
        self.delay.lone_delay(direction, size)
    }

    fn as_hop(&self, direction: Direction, bare: Bytes) -> (Duration, Option<crate::Line>) {
        self.delay.as_hop(direction, bare)
    }

    fn held(&self, direction: Direction, inflow: &mut Inflow) -> Option<Bytes> {
        Some(self.contacts.held(direction, inflow)? + self.delay.held(direction, inflow)?)
    }

    fn reordering(&self, direction: Direction) -> Option<(Probability, Duration)> {
        self.delay.reordering(direction)
    }

    fn gaps(&self, direction: Direction) -> Option<Gaps> {
        self.contacts.gaps(direction)
    }

    fn ends(&self, _direction: Direction) -> Option<Duration> {
        Some(self.span)
    }

    fn remove_gaps(&mut self) {
        self.contacts.remove_gaps();
    }

    fn remove_queue_limit(&mut self) {
        self.contacts.remove_queue_limit();
    }

    fn make_room(&mut self, direction: Direction, packets: u64, bytes: Bytes, at_most: Duration) {
        self.contacts.make_room(direction, packets, bytes, at_most);
    }
}

impl Declared for Passes {
    /// It is what a delay becomes whose value is an orbit.
    const NAMES: &'static [&'static str] = &[];
    const PRINCIPAL: Option<&'static str> = None;
    const DOCS: &'static str = "";

    fn read<K: Keys>(name: &str, keys: &mut K) -> Result<ElementKind, K::Error> {
        crate::Delay::read(name, keys)
    }

    fn draw(draws: &mut Draws) -> Passes {
        let inclination = Angle(draws.below(180_000_001) as i64);
        let most = inclination.0.min(180_000_000 - inclination.0);
        let mut place = |latitude: i64| Place {
            latitude: Angle(latitude),
            longitude: Angle(draws.below(360_000_001) as i64 - 180_000_000),
        };
        // It passes over the first station, so that there is a contact.
        let over = place(most / 2);
        let altitude = Length(draws.between(200_000..=40_000_000));
        let at = draws.microseconds(0..=600_000_000);
        let body = draws.one_of(&[Body::Earth, Body::Moon, Body::Mars]);
        let hops = if draws.chance(30) { draws.between(1..=8) } else { 0 };
        let orbit = Orbit {
            satellite: Satellite::Circle { body, altitude, inclination, over, at },
            stations: vec![over; if hops == 0 && draws.chance(50) { 2 } else { 1 }],
            minimum_elevation: Angle(draws.below(60_000_000) as i64),
            hops,
            hop: Length(draws.between(100_000..=5_000_000)),
            span: at + draws.microseconds(10_000_000..=3_600_000_000),
        };
        let (outside, queue) = Outside::draw(draws);
        orbit.passes(outside, queue).expect("it passes over the station")
    }

    fn build<P: ExplicitRatePacket + Clone + Send + 'static>(&self, name: &str, seed: u64) -> Built<P> {
        Built::Transit(Box::new(Passing { gate: self.contacts.gate(), delay: self.delay.lanes(name, seed) }))
    }
}

/// A packet waits for contact where it is, and has the delay of the moment at which it goes off.
struct Passing {
    gate: crate::contacts::Gate,
    delay: crate::delay::Lanes,
}

impl Transit for Passing {
    fn transit(&mut self, now: Instant, direction: Direction, packet: PacketView) -> Fate {
        let (left, waited) = match self.gate.transit(now, direction, packet) {
            Fate::Depart(left) => (left, Duration::ZERO),
            Fate::Queue(left, waited) => (left, waited),
            other => return other,
        };
        match self.delay.transit(left, direction, packet) {
            Fate::Depart(due) if !waited.is_zero() => Fate::Queue(due, waited),
            other => other,
        }
    }

    fn backlog(&self, direction: Direction) -> Option<Bytes> {
        self.gate.backlog(direction)
    }
}

/// What stands as the `orbit` of a delay.
pub(crate) struct Read(pub Passes);

impl ReadValue for Read {
    const EXPECTED: &'static str = "a table such as `{ altitude = \"550 km\", inclination = \"53 deg\", stations = [{ latitude = \"51.5 deg\", longitude = \"-0.1 deg\" }] }`";
    const IS_TABLE: bool = true;

    fn read<S: Source>(source: &S) -> Result<Read, S::Error> {
        let read = source.table(|keys| {
            let stations = keys.required::<Places>("stations")?.0;
            let satellite = satellite(keys, stations.first().copied())?;
            let hops = keys.or("hops", 0)?;
            let hop = if hops > 0 { keys.required("hop")? } else { keys.or("hop", Length(0))? };
            let orbit = Orbit {
                satellite,
                stations,
                minimum_elevation: keys.or("minimum_elevation", Angle(10_000_000))?,
                hops,
                hop,
                span: keys.or("span", DAY)?,
            };
            let outside = keys.or("outside", Outside::Hold)?;
            let queue = keys.each_way_or("queue", QueueLimit::Unlimited, QueueLimit::Unlimited)?;
            let passes = orbit.passes(outside, queue);
            passes.map(Read).map_err(|fault| keys.refuse(&fault.key, fault.reason))
        });
        read.unwrap_or_else(|| Err(source.wrong_type(Self::EXPECTED)))
    }
}

fn satellite<K: Keys>(keys: &mut K, first: Option<Place>) -> Result<Satellite, K::Error> {
    let start = keys.optional::<Time>("start")?.map(|time| time.0);
    if let Some(InFile(tle)) = keys.optional("tle")? {
        for key in ["altitude", "inclination", "body", "over", "at"] {
            if keys.has(key) {
                return Err(
                    keys.refuse(key, "`tle` is there too, and says where the satellite is".to_owned())
                );
            }
        }
        return Ok(Satellite::Elements { tle: Box::new(tle), start });
    }
    if start.is_some() {
        return Err(keys.refuse(
            "start",
            "expected a `tle` beside it: a circle is where `over` and `at` say".to_owned(),
        ));
    }
    let over = keys.optional("over")?.or(first);
    Ok(Satellite::Circle {
        altitude: keys.required("altitude")?,
        inclination: keys.required("inclination")?,
        body: keys.or("body", Body::Earth)?,
        over: over.map_or_else(|| keys.required("over"), Ok)?,
        at: keys.or("at", Duration::ZERO)?,
    })
}

impl ReadValue for Body {
    const EXPECTED: &'static str = "`earth`, `moon` or `mars`";
    fn read<S: Source>(source: &S) -> Result<Body, S::Error> {
        keys::word(source, &Body::WORDS)
    }
}

impl ReadValue for Place {
    const EXPECTED: &'static str = "a place such as `{ latitude = \"51.5 deg\", longitude = \"-0.1 deg\" }`";
    const IS_TABLE: bool = true;
    fn read<S: Source>(source: &S) -> Result<Place, S::Error> {
        let place = source.table(|keys| {
            let place =
                Place { latitude: keys.required("latitude")?, longitude: keys.required("longitude")? };
            if place.latitude.0.abs() > 90_000_000 {
                return Err(
                    keys.refuse("latitude", format!("expected -90 deg to 90 deg, found {}", place.latitude))
                );
            }
            if !(-180_000_000..=360_000_000).contains(&place.longitude.0) {
                return Err(keys.refuse(
                    "longitude",
                    format!("expected -180 deg to 360 deg, found {}", place.longitude),
                ));
            }
            Ok(place)
        });
        place.unwrap_or_else(|| Err(source.wrong_type(Self::EXPECTED)))
    }
}

struct Places(Vec<Place>);

impl ReadValue for Places {
    const EXPECTED: &'static str =
        "a list of places such as `[{ latitude = \"51.5 deg\", longitude = \"-0.1 deg\" }]`";
    fn read<S: Source>(source: &S) -> Result<Places, S::Error> {
        source.list(Place::read).unwrap_or_else(|| Err(source.wrong_type(Self::EXPECTED))).map(Places)
    }
}

struct InFile(Tle);

impl ReadValue for InFile {
    const EXPECTED: &'static str = "the name of a file with a two-line element set";
    fn read<S: Source>(source: &S) -> Result<InFile, S::Error> {
        keys::by_file(source, parse_tle).unwrap_or_else(|| Err(source.wrong_type(Self::EXPECTED))).map(InFile)
    }
}

struct Time(NaiveDateTime);

impl ReadValue for Time {
    const EXPECTED: &'static str = "a time such as `2026-11-27T12:00:00Z`";
    fn read<S: Source>(source: &S) -> Result<Time, S::Error> {
        let time = source.text().and_then(tle::time);
        time.map(Time).ok_or_else(|| source.wrong_type(Self::EXPECTED))
    }
}

#[cfg(test)]
mod tests;
