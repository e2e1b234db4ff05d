//! How far a path over a relay reaches: an ellipsoid with two foci.
//!
//! Source: Wood, Peoples, Parr, Scotney, Moore, *TCP's protocol radius*, IWSSC 2007, for the idea; the geometry is
//! Apollonius'. A timer bounds the way of a signal. Without a relay the far end lies in a sphere around the near one.
//! With one, the way from an end to the relay and on to the other end is bounded: the relay lies in an ellipsoid of which
//! the two ends are the foci, and for a relay that stands still the far end lies in a smaller sphere, around the relay.

use crate::{Estimate, InputError};

const SOURCE: &str =
    "Wood, Peoples, Parr, Scotney, Moore 2007: the two ways of a relay add up; ellipsoid with two foci";

/// Where a relay between two ends may be, in the unit of what it was made from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RelayRegion {
    /// Half of its long axis, along the line through the two ends.
    pub semi_major: f64,
    /// Half of its width: farthest aside, in the middle between the ends.
    pub semi_minor: f64,
    /// Farthest beyond an end, on the line through both.
    pub beyond: f64,
    /// Farthest aside of an end.
    pub aside: f64,
}

/// Where a relay may be between ends `apart`, where the whole way may be `reach`; `None` where the ends are farther apart
/// than that. Of any unit.
pub fn relay_region(reach: f64, apart: f64) -> Result<Estimate<Option<RelayRegion>>, InputError> {
    check(reach, apart)?;
    if apart > reach {
        return Ok(Estimate::new(None, SOURCE));
    }
    // a = s/2, f = D/2, b² = a² - f²; (s - D)(s + D) so that ends almost as far apart as the reach lose no digits.
    let (semi_major, half) = (reach / 2.0, apart / 2.0);
    let semi_minor = libm::sqrt((semi_major - half) * (semi_major + half));
    let aside = if semi_major > 0.0 { semi_minor * (semi_minor / semi_major) } else { 0.0 };
    let region = RelayRegion { semi_major, semi_minor, beyond: semi_major - half, aside };
    Ok(Estimate::new(Some(region), SOURCE))
}

/// How far from a relay the far end may be, where the near end is `to_relay` from it and the whole way may be `reach`;
/// `None` where the relay itself is beyond. Of any unit.
pub fn beyond_relay(reach: f64, to_relay: f64) -> Result<Estimate<Option<f64>>, InputError> {
    check(reach, to_relay)?;
    Ok(Estimate::new((to_relay <= reach).then_some(reach - to_relay), SOURCE))
}

fn check(reach: f64, distance: f64) -> Result<(), InputError> {
    for (quantity, value) in [("the reach", reach), ("the distance", distance)] {
        if value.is_nan() || value < 0.0 || (quantity == "the distance" && value == f64::INFINITY) {
            return Err(InputError::Negative { quantity });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn region(reach: f64, apart: f64) -> Option<RelayRegion> {
        relay_region(reach, apart).expect("in range").value
    }

    #[test]
    fn every_way_over_the_edge_is_as_long_as_the_reach() {
        let region = region(10.0, 6.0).expect("they reach each other");
        assert_eq!((region.semi_major, region.semi_minor, region.beyond, region.aside), (5.0, 4.0, 2.0, 3.2));
        let way = |x: f64, y: f64| libm::hypot(x + 3.0, y) + libm::hypot(x - 3.0, y);
        for step in 0..1000 {
            let angle = f64::from(step) * 0.006_283;
            let (x, y) = (region.semi_major * libm::cos(angle), region.semi_minor * libm::sin(angle));
            assert!((way(x, y) - 10.0).abs() < 1e-12);
            assert!(way(x * 1.001, y * 1.001) > 10.0);
        }
        assert!((way(3.0, region.aside) - 10.0).abs() < 1e-12);
        assert!((way(3.0 + region.beyond, 0.0) - 10.0).abs() < 1e-12);
    }

    #[test]
    fn without_a_distance_it_is_a_sphere_and_beyond_the_reach_there_is_none() {
        let sphere = region(8.0, 0.0).expect("there");
        assert_eq!((sphere.semi_major, sphere.semi_minor, sphere.beyond, sphere.aside), (4.0, 4.0, 4.0, 4.0));
        let line = region(8.0, 8.0).expect("just there");
        assert_eq!((line.semi_minor, line.beyond, line.aside), (0.0, 0.0, 0.0));
        assert_eq!(region(8.0, 8.1), None);
        assert_eq!(region(0.0, 0.0).map(|region| region.semi_minor), Some(0.0));
    }

    #[test]
    fn what_the_relay_leaves_is_a_sphere_around_it() {
        let left = |reach, to_relay| beyond_relay(reach, to_relay).expect("in range").value;
        assert_eq!(left(10.0, 4.0), Some(6.0));
        assert_eq!(left(10.0, 10.1), None);
        assert_eq!(left(f64::INFINITY, 4.0), Some(f64::INFINITY));
        assert!(beyond_relay(10.0, -1.0).is_err() && relay_region(f64::NAN, 1.0).is_err());
    }
}
