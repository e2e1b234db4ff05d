//! Where a satellite is, seen from the ground: distances and elevations.
//!
//! Everything is in kilometres, in axes that turn with the body.

use core::f64::consts::{PI, TAU};
use farpath_units::{Angle, Duration, Length};
use sgp4::chrono::NaiveDateTime;

pub(crate) type Vector = [f64; 3];

/// What a satellite goes around.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Body {
    /// Mean radius 6371.0 km.
    Earth,
    /// Mean radius 1737.4 km.
    Moon,
    /// Mean radius 3389.5 km.
    Mars,
}

impl Body {
    pub(super) const WORDS: [(&'static str, Body); 3] =
        [("earth", Body::Earth), ("moon", Body::Moon), ("mars", Body::Mars)];

    /// As files spell it.
    pub fn name(self) -> &'static str {
        Body::WORDS.iter().find(|(_, body)| *body == self).map_or("", |(name, _)| name)
    }

    /// Mean radius: IAU working group on cartographic coordinates, 2015.
    pub(crate) fn radius_km(self) -> f64 {
        match self {
            Body::Earth => 6371.0,
            Body::Moon => 1737.4,
            Body::Mars => 3389.5,
        }
    }

    /// Gravitational parameter: IAU 2009, and JPL's DE440 for the Moon and Mars.
    pub(super) fn gravity_km3_per_s2(self) -> f64 {
        match self {
            Body::Earth => 398_600.441_8,
            Body::Moon => 4_902.800_1,
            Body::Mars => 42_828.375_2,
        }
    }

    /// How long it takes to turn once under the stars.
    pub(super) fn day_s(self) -> f64 {
        match self {
            Body::Earth => 86_164.090_5,
            Body::Moon => 27.321_661 * 86_400.0,
            Body::Mars => 88_642.663,
        }
    }
}

/// A point on the ground.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Positive to the north, up to 90 degrees.
    pub latitude: Angle,
    /// Positive to the east, from -180 to 360 degrees.
    pub longitude: Angle,
}

/// A station: where it stands, and which way is up there.
#[derive(Debug, Clone, Copy)]
pub(super) struct Station {
    position: Vector,
    up: Vector,
}

impl Station {
    /// On a sphere.
    pub fn on_sphere(place: Place, radius_km: f64) -> Station {
        let up = direction(place.latitude.as_radians_f64(), place.longitude.as_radians_f64());
        Station { position: up.map(|part| part * radius_km), up }
    }

    /// On the ellipsoid of WGS84, at height zero.
    pub fn on_earth(place: Place) -> Station {
        const EQUATOR_KM: f64 = 6378.137;
        const FLATTENING: f64 = 1.0 / 298.257_223_563;
        let (latitude, longitude) = (place.latitude.as_radians_f64(), place.longitude.as_radians_f64());
        let squared = FLATTENING * (2.0 - FLATTENING);
        let sine = libm::sin(latitude);
        let normal = EQUATOR_KM / libm::sqrt(1.0 - squared * sine * sine);
        let up = direction(latitude, longitude);
        Station { position: [normal * up[0], normal * up[1], normal * (1.0 - squared) * up[2]], up }
    }

    /// How far `satellite` is, and the sine of its elevation.
    pub fn sees(&self, satellite: Vector) -> (f64, f64) {
        let way = [0, 1, 2].map(|axis| satellite[axis] - self.position[axis]);
        let range = libm::sqrt(dot(way, way));
        (range, dot(way, self.up) / range)
    }
}

fn direction(latitude: f64, longitude: f64) -> Vector {
    let across = libm::cos(latitude);
    [across * libm::cos(longitude), across * libm::sin(longitude), libm::sin(latitude)]
}

pub(super) fn dot(a: Vector, b: Vector) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

/// How a satellite moves.
#[derive(Debug, Clone)]
pub(super) enum Motion {
    Circle(Circle),
    Elements {
        constants: Box<sgp4::Constants>,
        epoch: NaiveDateTime,
        start: NaiveDateTime,
        revolution_s: f64,
    },
}

/// A circle at a steady speed over a sphere that turns: Kepler's, without the flattening of the body, other bodies and drag.
#[derive(Debug, Clone, Copy)]
pub(super) struct Circle {
    radius: f64,
    inclination: f64,
    /// rad/s.
    motion: f64,
    turning: f64,
    /// At zero: of the satellite from its ascending node on, and the longitude of that.
    argument: f64,
    node: f64,
}

impl Circle {
    /// On its way north above `over` at the time `at`; `None` where it never is.
    pub fn new(
        body: Body,
        altitude: Length,
        inclination: Angle,
        over: Place,
        at: Duration,
    ) -> Option<Circle> {
        let radius = body.radius_km() + altitude.as_km_f64();
        let inclination = inclination.as_radians_f64();
        let motion = libm::sqrt(body.gravity_km3_per_s2() / (radius * radius * radius));
        let turning = TAU / body.day_s();
        let north = libm::sin(over.latitude.as_radians_f64());
        let most = libm::sin(inclination).abs();
        // Over the equator all along, any point of it is as good; a rounding error beyond the highest latitude is none.
        let sine = if most < 1e-12 { 0.0 } else { north / most };
        if sine.abs() > 1.0 + 1e-9 || (most < 1e-12 && north.abs() > 1e-9) {
            return None;
        }
        let above = libm::asin(sine.clamp(-1.0, 1.0));
        let east = libm::atan2(libm::sin(above) * libm::cos(inclination), libm::cos(above));
        let at = at.as_secs_f64();
        Some(Circle {
            radius,
            inclination,
            motion,
            turning,
            argument: above - motion * at,
            node: over.longitude.as_radians_f64() - east + turning * at,
        })
    }

    fn position(&self, seconds: f64) -> Vector {
        let argument = self.argument + self.motion * seconds;
        let node = self.node - self.turning * seconds;
        let (along, across) = (libm::cos(argument), libm::sin(argument));
        let (node_cos, node_sin) = (libm::cos(node), libm::sin(node));
        let tilt = libm::cos(self.inclination);
        [
            self.radius * (node_cos * along - node_sin * across * tilt),
            self.radius * (node_sin * along + node_cos * across * tilt),
            self.radius * across * libm::sin(self.inclination),
        ]
    }
}

impl Motion {
    /// Where the satellite is so long after the start of the run; why not, where SGP4 does not say.
    pub fn position(&self, seconds: f64) -> Result<Vector, String> {
        match self {
            Motion::Circle(circle) => Ok(circle.position(seconds)),
            Motion::Elements { constants, epoch, start, .. } => {
                let minutes = ((*start - *epoch).num_milliseconds() as f64 / 1e3 + seconds) / 60.0;
                let found = constants.propagate(sgp4::MinutesSinceEpoch(minutes));
                let [x, y, z] = found.map_err(|error| error.to_string())?.position;
                if !(x.is_finite() && y.is_finite() && z.is_finite()) {
                    return Err("its position is no number".to_owned());
                }
                // TEME to axes that turn with the Earth: by sidereal time, without polar motion (15 m) and UT1 - UTC (up to 400 m).
                let years = sgp4::julian_years_since_j2000(start) + seconds / (365.25 * 86_400.0);
                let angle = sgp4::iau_epoch_to_sidereal_time(years);
                let (cos, sin) = (libm::cos(angle), libm::sin(angle));
                Ok([cos * x + sin * y, cos * y - sin * x, z])
            }
        }
    }

    /// How long it takes to go around once.
    pub fn revolution_s(&self) -> f64 {
        match self {
            Motion::Circle(circle) => TAU / circle.motion,
            Motion::Elements { revolution_s, .. } => *revolution_s,
        }
    }
}

/// The sine of an elevation.
pub(super) fn sine(elevation: Angle) -> f64 {
    libm::sin(elevation.as_radians_f64())
}

pub(super) fn degrees(sine: f64) -> f64 {
    libm::asin(sine.clamp(-1.0, 1.0)) * 180.0 / PI
}
