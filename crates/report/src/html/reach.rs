//! How far stacks reach, as a picture: a sector each, and the bodies around the Earth.

use super::data::{Columns, Figure};
use super::page::{Block, Page, Section};
use crate::tables::RadiusRow;
use crate::tables::radius::radius_table;
use core::f64::consts::{PI, TAU};
use farpath_experiment::Body;

/// The least and the largest distance that is drawn, in km: the centre, and the edge.
const NEAREST: f64 = 1e4;
const FARTHEST: f64 = 1e10;

/// From the centre to the edge, in pixels.
const EDGE: f64 = 290.0;

/// Left free above the centre, for the names of bodies, in rad to either side.
const FREE: f64 = 0.28;

/// Between sectors, in rad.
const GAP: f64 = 0.02;

/// The bodies of the picture and what they are called there: landmarks that are far enough from each other to be read.
const LANDMARKS: [(&str, &str); 8] = [
    ("geo", "GEO"),
    ("moon", "Moon"),
    ("sun-earth-l2", "Sun-Earth L2"),
    ("mars-nearest", "Mars, nearest"),
    ("sun", "Sun"),
    ("mars-farthest", "Mars, farthest"),
    ("saturn-nearest", "Saturn"),
    ("neptune-nearest", "Neptune"),
];

/// The zones of a sector, from the centre on.
const ZONES: [&str; 3] =
    ["works as meant", "works, with spurious retransmissions", "seems connected, and exchanges nothing"];

/// How far one stack reaches, in km; infinite where it never gives up.
#[derive(Debug, Clone, PartialEq)]
pub struct Reach {
    /// The stack.
    pub stack: String,
    /// Until where each zone of the picture goes: nothing is retransmitted needlessly, data can be exchanged, and the
    /// opener takes its connection as open.
    pub km: [f64; 3],
}

/// The picture of some stacks, and a table of all their radii, with bodies around them.
///
/// Where it is asked of a place, `relays` shows where a relay on the way there may be.
pub fn reach_page(
    reaches: &[Reach],
    relays: Option<Figure>,
    bodies: &[Body],
    medium: &str,
    rows: &[RadiusRow],
) -> Page {
    let table = radius_table(rows);
    let figures = [Some(figure(reaches, bodies, medium)), relays];
    let kind = format!("Farpath {} · radius", env!("CARGO_PKG_VERSION"));
    let sections = vec![
        Section { title: String::new(), blocks: figures.into_iter().flatten().map(Block::Figure).collect() },
        Section { title: "Radii".to_owned(), blocks: vec![Block::Table(table)] },
    ];
    Page { title: "How far TCP reaches".to_owned(), kind, sections }
}

fn figure(reaches: &[Reach], bodies: &[Body], medium: &str) -> Figure {
    let width = (TAU - 2.0 * FREE) / reaches.len().max(1) as f64;
    let sector = |index: usize| FREE + width * index as f64;
    let mut zones: Vec<(usize, usize, f64, f64)> = Vec::new();
    for (index, reach) in reaches.iter().enumerate() {
        let mut inner = 0.0;
        for (zone, &km) in reach.km.iter().enumerate() {
            if pixels(km) > inner {
                zones.push((index, zone, inner, pixels(km)));
                inner = pixels(km);
            }
        }
    }
    let zones = Columns::default()
        .numbers("from", zones.iter().map(|zone| sector(zone.0) + GAP / 2.0))
        .numbers("to", zones.iter().map(|zone| sector(zone.0) + width - GAP / 2.0))
        .numbers("inner", zones.iter().map(|zone| zone.2))
        .numbers("outer", zones.iter().map(|zone| zone.3))
        .texts("zone", zones.iter().map(|zone| ZONES[zone.1]))
        .texts("stack", zones.iter().map(|zone| &reaches[zone.0].stack))
        .texts("until", zones.iter().map(|zone| distance(reaches[zone.0].km[zone.1])));
    let rings: Vec<(f64, &str)> = landmarks(bodies).map(|(km, text)| (pixels(km), text)).collect();
    let rings = Columns::default()
        .numbers("inner", rings.iter().map(|ring| ring.0 - 0.35))
        .numbers("outer", rings.iter().map(|ring| ring.0 + 0.35))
        .texts("text", rings.iter().map(|ring| ring.1));
    let middle = |index: usize| sector(index) + width / 2.0;
    let numbered = || 0..reaches.len();
    let names = Columns::default()
        .numbers("angle", numbered().map(middle))
        .numbers("radius", numbered().map(|_| EDGE + 8.0))
        .texts("text", reaches.iter().map(|reach| &reach.stack))
        .texts("side", numbered().map(|index| if middle(index) < PI { "right" } else { "left" }));
    Figure {
        plot: "reach",
        title: format!("The Earth in the centre, distance logarithmic up to {}", distance(FARTHEST)),
        caption: format!(
            "Each stack talks to itself through {medium}, and no segment is lost. A sector that reaches the edge has no end."
        ),
        set: vec![("/layer/0/encoding/color/scale/domain", ZONES.to_vec().into())],
        data: vec![("zones", zones), ("rings", rings), ("names", names)],
    }
}

/// How far the landmarks are, in km, and what they are called.
pub(super) fn landmarks(bodies: &[Body]) -> impl Iterator<Item = (f64, &'static str)> {
    let known =
        |&(name, text): &(&str, &'static str)| Some((bodies.iter().find(|body| body.name == name)?.km, text));
    LANDMARKS.iter().filter_map(known)
}

/// From the centre to a distance.
fn pixels(km: f64) -> f64 {
    ((km / NEAREST).log10() / (FARTHEST / NEAREST).log10()).clamp(0.0, 1.0) * EDGE
}

fn distance(km: f64) -> String {
    if km == f64::INFINITY {
        return "no end".to_owned();
    }
    let units = [(1e9, "billion km"), (1e6, "million km"), (1.0, "km")];
    let (scale, unit) = units.into_iter().find(|unit| km >= unit.0).unwrap_or((1.0, "km"));
    format!("{:.3} {unit}", km / scale).replace(".000 ", " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use farpath_experiment::bodies;

    fn column(figure: &Figure, table: usize, name: &str) -> serde_json::Value {
        figure.data[table].1.to_json()[name].clone()
    }

    #[test]
    fn zones_are_stacked_and_what_has_no_end_reaches_the_edge() {
        let reaches = [
            Reach { stack: "far".to_owned(), km: [1e5, f64::INFINITY, f64::INFINITY] },
            Reach { stack: "near".to_owned(), km: [1e5, 1e6, 1e7] },
        ];
        let figure = figure(&reaches, bodies(), "vacuum");
        let decade = EDGE / 6.0;
        let outer: Vec<f64> = serde_json::from_value(column(&figure, 0, "outer")).expect("numbers");
        let expected = [decade, EDGE, decade, 2.0 * decade, 3.0 * decade];
        assert!(outer.iter().zip(expected).all(|(found, wanted)| (found - wanted).abs() < 1e-6), "{outer:?}");
        assert_eq!(outer.len(), expected.len());
    }

    #[test]
    fn every_landmark_is_a_body_that_ships_and_can_be_read() {
        let figure = figure(&[], bodies(), "vacuum");
        let outer: Vec<f64> = serde_json::from_value(column(&figure, 1, "outer")).expect("numbers");
        assert_eq!(outer.len(), LANDMARKS.len());
        assert!(outer.windows(2).all(|pair| pair[1] - pair[0] > 9.0), "{outer:?}");
    }

    #[test]
    fn distances_are_said_in_their_size() {
        assert_eq!(
            [384_400.0, 54.6e6, 1e10, f64::INFINITY].map(distance),
            ["384400 km", "54.600 million km", "10 billion km", "no end"]
        );
    }
}
