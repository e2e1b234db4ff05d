//! Where a relay between two ends may stand, as a picture: a section through an ellipsoid with the ends as foci.

use super::data::{Columns, Figure};
use super::reach::landmarks;
use core::f64::consts::TAU;
use farpath_experiment::{Body, Distance};
use farpath_model::relay::{RelayRegion, relay_region};

/// Points of a line around.
const POINTS: usize = 180;

/// The most regions of a picture.
const MOST: usize = 6;

/// What reaches so many times farther than the widest region would make a dot of it, and is not drawn.
const WIDEST: f64 = 12.0;

/// How far some stacks reach, one way, in km.
#[derive(Debug, Clone, PartialEq)]
pub struct Limit {
    /// Which stacks, or which rule.
    pub what: String,
    /// How far; infinite where there is no end.
    pub km: f64,
}

/// For each limit where a relay between the Earth and `to` may be, to scale; the narrowest first. None where none of the
/// limits that have an end reaches there.
pub fn relays_figure(limits: &[Limit], to: &Distance, bodies: &[Body]) -> Option<Figure> {
    let mut regions: Vec<(String, RelayRegion)> = Vec::new();
    let mut limits: Vec<&Limit> = limits.iter().filter(|limit| limit.km.is_finite()).collect();
    limits.sort_by(|one, other| one.km.total_cmp(&other.km));
    let (mut beyond, mut drawn) = (0_usize, Vec::new());
    for same in limits.chunk_by(|one, other| (one.km / other.km - 1.0).abs() < 1e-6) {
        let Some(region) = relay_region(same[0].km, to.km).ok()?.value else { continue };
        let far = regions.first().is_some_and(|(_, first)| region.semi_major > WIDEST * first.semi_major);
        if far || regions.len() == MOST {
            beyond += same.len();
            continue;
        }
        let name = match same.len() {
            1 => same[0].what.clone(),
            many => format!("{} and {} more", same[0].what, many - 1),
        };
        drawn.push(format!(
            "{name}: {:.3e} km beyond an end, {:.3e} km aside of the middle",
            region.beyond, region.semi_minor
        ));
        regions.push((name, region));
    }
    let widest = regions.last()?.1.semi_major;
    // The Earth and the other end are half of their distance from the middle, which is 0.
    let half = to.km / 2.0;
    let around = |x: f64, long: f64, wide: f64| {
        (0..=POINTS).map(move |point| {
            let angle = point as f64 / POINTS as f64 * TAU;
            (x + long * angle.cos(), wide * angle.sin())
        })
    };
    let mut edges: Vec<(&str, usize, f64, f64)> = Vec::new();
    for (name, region) in &regions {
        let edge = around(0.0, region.semi_major, region.semi_minor).enumerate();
        edges.extend(edge.map(|(order, (x, y))| (name.as_str(), order, x, y)));
    }
    // Bodies at their distance around the Earth, where they can be told from it and from the other end.
    let in_sight =
        |(km, _): &(f64, &str)| *km < widest + half && *km > 0.08 * widest && (km / to.km - 1.0).abs() > 0.02;
    let near: Vec<(f64, &str)> = landmarks(bodies).filter(in_sight).collect();
    let mut rings: Vec<(&str, usize, f64, f64)> = Vec::new();
    for &(km, text) in &near {
        rings.extend(around(-half, km, km).enumerate().map(|(order, (x, y))| (text, order, x, y)));
    }
    let columns = |rows: &[(&str, usize, f64, f64)]| {
        Columns::default()
            .texts("what", rows.iter().map(|row| row.0))
            .numbers("order", rows.iter().map(|row| row.1 as f64))
            .numbers("x_km", rows.iter().map(|row| row.2))
            .numbers("y_km", rows.iter().map(|row| row.3))
    };
    let landmark = landmarks(bodies).find(|body| body.0 == to.km);
    let there = landmark.map_or_else(|| to.title.split(',').next().unwrap_or_default(), |body| body.1);
    let ends = Columns::default()
        .texts("what", ["Earth", there])
        .numbers("x_km", [-half, half])
        .numbers("y_km", [0.0, 0.0]);
    let names = Columns::default()
        .texts("what", near.iter().map(|body| body.1))
        .numbers("x_km", near.iter().map(|_| -half))
        .numbers("y_km", near.iter().map(|body| body.0));
    let far = match beyond {
        0 => String::new(),
        many => format!(" {many} reach farther than the picture."),
    };
    let side = 1.05 * widest;
    let domain: Vec<f64> = vec![-side, side];
    Some(Figure {
        plot: "relays",
        title: format!("Where a relay between the Earth and {} may stand", to.title),
        caption: format!(
            "A section through an ellipsoid with the ends as its foci: over its edge the way by the relay is as long as the \
             stack reaches. To scale; dotted, bodies at their distance from the Earth. {}.{far}",
            drawn.join("; ")
        ),
        set: vec![
            ("/layer/0/encoding/x/scale/domain", domain.clone().into()),
            ("/layer/0/encoding/y/scale/domain", domain.into()),
        ],
        data: vec![("edges", columns(&edges)), ("rings", columns(&rings)), ("names", names), ("ends", ends)],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use farpath_experiment::{Location, bodies};

    fn limit(what: &str, km: f64) -> Limit {
        Limit { what: what.to_owned(), km }
    }

    fn to(text: &str) -> Distance {
        Distance::parse(text, &Location::option("--to")).expect("a body")
    }

    fn numbers(figure: &Figure, table: usize, column: &str) -> Vec<f64> {
        serde_json::from_value(figure.data[table].1.to_json()[column].clone()).expect("numbers")
    }

    #[test]
    fn the_way_over_each_point_of_an_edge_is_as_long_as_the_stack_reaches() {
        let (reach, moon) = (1e6, to("moon"));
        let figure = relays_figure(&[limit("near", reach)], &moon, bodies()).expect("it reaches the Moon");
        let half = moon.km / 2.0;
        let edge = numbers(&figure, 0, "x_km").into_iter().zip(numbers(&figure, 0, "y_km"));
        let ways: Vec<f64> = edge.map(|(x, y)| (x + half).hypot(y) + (x - half).hypot(y)).collect();
        assert_eq!(ways.len(), POINTS + 1);
        assert!(ways.iter().all(|way| (way / reach - 1.0).abs() < 1e-9), "{ways:?}");
    }

    #[test]
    fn limits_are_drawn_once_each_and_those_too_wide_are_counted() {
        let limits = [
            limit("a", 1e6),
            limit("b", 1e6),
            limit("short", 1e5),
            limit("wide", 1e9),
            limit("none", f64::INFINITY),
        ];
        let figure = relays_figure(&limits, &to("moon"), bodies()).expect("two reach the Moon");
        let texts = &figure.data[0].1.to_json()["what"]["texts"];
        assert_eq!(texts, &serde_json::json!(["a and 1 more"]));
        assert!(figure.caption.ends_with("1 reach farther than the picture."), "{}", figure.caption);
        assert_eq!(relays_figure(&limits[2..3], &to("moon"), bodies()), None);
    }
}
