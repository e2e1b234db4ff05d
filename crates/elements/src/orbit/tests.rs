//! The geometry: closed forms of a circle seen from the ground, and the elements of real satellites.

use super::*;
use proptest::prelude::*;

fn place(latitude: f64, longitude: f64) -> Place {
    let angle = |degrees: f64| Angle((degrees * 1e6).round() as i64);
    Place { latitude: angle(latitude), longitude: angle(longitude) }
}

fn circle(body: Body, altitude_km: u64, inclination: f64, over: Place, at_s: u64) -> Satellite {
    Satellite::Circle {
        body,
        altitude: Length(altitude_km * 1000),
        inclination: Angle((inclination * 1e6) as i64),
        over,
        at: Duration::from_secs(at_s),
    }
}

fn orbit(satellite: Satellite, stations: Vec<Place>) -> Orbit {
    Orbit {
        satellite,
        stations,
        minimum_elevation: Angle(10_000_000),
        hops: 0,
        hop: Length(0),
        span: Duration::from_secs(1800),
    }
}

fn passes(orbit: &Orbit) -> Passes {
    orbit.passes(Outside::Hold, PerDirection::both(QueueLimit::Unlimited)).expect("it is sound")
}

/// Seconds, of a packet that goes off so long after the start.
fn delay_at(passes: &Passes, seconds: f64) -> f64 {
    let now = Instant::ZERO + Duration::from_secs_f64(seconds);
    match passes.delay.lanes("orbit", 1).transit(
        now,
        Direction::Forward,
        PacketView { size: Bytes(100), carries_data: true },
    ) {
        Fate::Depart(due) => (due - now).as_secs_f64(),
        other => panic!("{other:?}"),
    }
}

fn contacts(passes: &Passes) -> Vec<Contact> {
    match &passes.contacts.plan {
        ContactPlan::Listed(listed) => listed.forward.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn at_the_zenith_the_way_is_the_altitude() {
    for (body, altitude) in [(Body::Earth, 550), (Body::Earth, 35_786), (Body::Moon, 100), (Body::Mars, 400)]
    {
        let here = place(40.0, 20.0);
        let passes = passes(&orbit(circle(body, altitude, 53.0, here, 300), vec![here]));
        let expected = altitude as f64 / LIGHT_KM_PER_S;
        assert!((delay_at(&passes, 300.0) - expected).abs() < 2e-7, "{body:?} {altitude}");
    }
}

#[test]
fn a_geostationary_satellite_stands_still() {
    let here = place(0.0, 10.0);
    let mut orbit =
        orbit(circle(Body::Earth, 35_793, 0.0, place(0.0, 10.0), 0), vec![here, place(50.0, 10.0)]);
    orbit.span = Duration::from_secs(86_400);
    let passes = passes(&orbit);
    assert_eq!(contacts(&passes), [Contact { from: Duration::ZERO, to: orbit.span }]);
    let radius = 6371.0_f64 + 35_793.0;
    let other =
        (radius.powi(2) + 6371.0_f64.powi(2) - 2.0 * radius * 6371.0 * 50.0_f64.to_radians().cos()).sqrt();
    let expected = (35_793.0 + other) / LIGHT_KM_PER_S;
    for hour in 0..24 {
        let found = delay_at(&passes, f64::from(hour) * 3600.0);
        assert!((found - expected).abs() < 1e-5, "{found} and {expected}");
    }
    assert_eq!(passes.no_model(Direction::Forward), None);
}

#[test]
fn hops_add_their_lengths_and_the_way_down() {
    let here = place(40.0, 20.0);
    let mut over = orbit(circle(Body::Earth, 550, 53.0, here, 300), vec![here]);
    let alone = delay_at(&passes(&over), 290.0);
    (over.hops, over.hop) = (3, Length(1_500_000));
    let found = delay_at(&passes(&over), 290.0);
    assert!((found - (2.0 * alone + 4500.0 / LIGHT_KM_PER_S)).abs() < 5e-9, "{found} and {alone}");
}

#[test]
fn a_packet_waits_for_the_satellite_to_rise_and_has_its_delay_then() {
    let here = place(40.0, 20.0);
    let passes = passes(&orbit(circle(Body::Earth, 550, 53.0, here, 600), vec![here]));
    let Built::<crate::spec::NoPacket>::Transit(mut path) = passes.build("orbit", 1) else {
        panic!("it holds packets")
    };
    let packet = PacketView { size: Bytes(1000), carries_data: true };
    let from = Instant::ZERO + contacts(&passes)[0].from;
    let Fate::Queue(due, waited) = path.transit(Instant::ZERO, Direction::Forward, packet) else {
        panic!("no wait")
    };
    assert_eq!(waited, from - Instant::ZERO);
    assert_eq!(path.backlog(Direction::Forward), Some(Bytes(1000)));
    // At 10 degrees of elevation: d = sqrt((R sin e)^2 + 2 R h + h^2) - R sin e.
    let rise = 6371.0 * 10.0_f64.to_radians().sin();
    let way = (rise * rise + 2.0 * 6371.0 * 550.0 + 550.0 * 550.0).sqrt() - rise;
    assert!(((due - from).as_secs_f64() - way / LIGHT_KM_PER_S).abs() < 1e-6, "{}", due - from);
}

proptest! {
    /// Never shorter than straight up, never longer than to the horizon of the minimum elevation; and where neither turns, the same before and after
    /// culmination.
    #[test]
    fn delays_are_within_what_the_sphere_allows(
        altitude in 200_u64..40_000, inclination in 0_u32..=180, share in -1.0..1.0_f64, elevation in 0_u32..60,
    ) {
        let inclination = f64::from(inclination);
        let here = place(share * inclination.min(180.0 - inclination), 0.0);
        let mut over = orbit(circle(Body::Earth, altitude, inclination, here, 900), vec![here]);
        over.minimum_elevation = Angle(i64::from(elevation) * 1_000_000);
        let found = passes(&over);
        let (least, greatest) = found.delay.delay.forward.range();
        let altitude = altitude as f64;
        prop_assert!(least.as_secs_f64() >= altitude / LIGHT_KM_PER_S - 2e-9, "{least}");
        let rise = 6371.0 * f64::from(elevation).to_radians().sin();
        let most = (rise * rise + 2.0 * 6371.0 * altitude + altitude * altitude).sqrt() - rise;
        prop_assert!(greatest.as_secs_f64() <= most / LIGHT_KM_PER_S + 1e-6, "{greatest}");
    }

    /// Over a pole the ground does not move, so that a polar orbit is the same before and after culmination: to 0.1 us, which lines between points are off.
    #[test]
    fn a_pass_over_the_pole_is_symmetric(altitude in 300_u64..2000, before in 1.0..200.0_f64) {
        let pole = place(90.0, 0.0);
        let found = passes(&orbit(circle(Body::Earth, altitude, 90.0, pole, 900), vec![pole]));
        prop_assert!((delay_at(&found, 900.0 - before) - delay_at(&found, 900.0 + before)).abs() < 1e-7);
    }
}

/// The International Space Station, from the documentation of the format.
const ISS: &str = "ISS (ZARYA)\n\
    1 25544U 98067A   08264.51782528 -.00002182  00000-0 -11606-4 0  2927\n\
    2 25544  51.6416 247.4627 0006703 130.5360 325.0288 15.72125391563537\n";

#[test]
fn elements_give_a_satellite_at_its_altitude() {
    let tle = parse_tle(ISS).expect("it is sound");
    let mut over = orbit(Satellite::Elements { tle: Box::new(tle), start: None }, vec![place(51.5, -0.1)]);
    over.span = Duration::from_secs(86_400);
    let found = passes(&over);
    assert!(found.orbit.contains("ISS (ZARYA)"), "{}", found.orbit);
    // It flew at 340 to 360 km in 2008, and London sees four to six passes a day of up to seven minutes above 10 degrees.
    let (least, greatest) = found.delay.delay.forward.range();
    let km = |delay: Duration| delay.as_secs_f64() * LIGHT_KM_PER_S;
    assert!(
        km(least) > 335.0 && km(least) < 900.0 && km(greatest) < 1400.0,
        "{} to {}",
        km(least),
        km(greatest)
    );
    let contacts = contacts(&found);
    assert!((4..=7).contains(&contacts.len()), "{contacts:?}");
    assert!(
        contacts.iter().all(|contact| (contact.to - contact.from) < Duration::from_secs(430)),
        "{contacts:?}"
    );
}

#[test]
fn what_is_no_element_set_is_refused_by_its_line() {
    let refused = |text: &str| parse_tle(text).expect_err("refused");
    assert_eq!(refused(""), "expected two lines of elements, found nothing");
    assert_eq!(refused("ISS\n"), "line 1: expected two lines of elements, found `ISS` alone");
    assert!(refused(&ISS.replace("563537", "563538")).starts_with("line 3: Bad line checksum"));
    assert!(refused(&ISS.replace("  2927", "  292-")).starts_with("line 2: expected 69 characters"));
    assert!(refused(&format!("{ISS}more\n")).starts_with("line 4: expected the end"));
    assert!(refused(&ISS.replace("51.6416", "5x.6416")).starts_with("line 3: Bad line checksum"));
}

#[test]
fn what_cannot_be_is_refused_by_its_key() {
    let here = place(40.0, 20.0);
    let sound = orbit(circle(Body::Earth, 550, 53.0, here, 300), vec![here]);
    type Change<'a> = &'a dyn Fn(&mut Orbit);
    let refused = |change: Change<'_>| {
        let mut orbit = sound.clone();
        change(&mut orbit);
        let fault =
            orbit.passes(Outside::Drop, PerDirection::both(QueueLimit::Unlimited)).expect_err("refused");
        format!("{}: {}", fault.key, fault.reason)
    };
    let cases: [(Change<'_>, &str); 7] = [
        (&|orbit| orbit.satellite = circle(Body::Earth, 0, 53.0, here, 300), "altitude: expected 10 km to"),
        (&|orbit| orbit.satellite = circle(Body::Earth, 550, 30.0, here, 300), "over: expected a place"),
        (
            &|orbit| orbit.satellite = circle(Body::Earth, 550, 181.0, here, 300),
            "inclination: expected 0 deg",
        ),
        (&|orbit| orbit.stations = vec![here; 3], "stations: expected one station"),
        (&|orbit| orbit.stations = vec![place(-40.0, 200.0)], "minimum_elevation: expected a contact within"),
        (&|orbit| orbit.span = Duration::ZERO, "span: expected 1 s"),
        (&|orbit| orbit.hops = 2, "hop: expected more than 0 m"),
    ];
    for (change, part) in cases {
        let found = refused(change);
        assert!(found.starts_with(part), "{found}");
    }
    let far = |orbit: &mut Orbit| {
        let start = tle::time("2008-10-20T00:00:00Z");
        orbit.satellite = Satellite::Elements { tle: Box::new(parse_tle(ISS).expect("sound")), start };
    };
    let found = refused(&far);
    assert!(
        found.starts_with(
            "start: expected a time within 14 days of the elements' epoch, 2008-09-20T12:25:40Z"
        ),
        "{found}"
    );
}

proptest! {
    /// Elements with characters changed, and checksums that are right all the same: refused, or a satellite somewhere.
    #[test]
    fn changed_elements_are_refused_or_give_contacts(
        changes in prop::collection::vec((0_usize..2, 0_usize..68, prop::char::range(' ', '~')), 1..6),
    ) {
        let mut lines: Vec<String> = ISS.lines().skip(1).map(|line| line[..68].to_owned()).collect();
        for (line, column, character) in changes {
            lines[line].replace_range(column..=column, &character.to_string());
        }
        let with_sum = |line: &String| {
            let digits = line.chars().map(|c| if c == '-' { 1 } else { c.to_digit(10).unwrap_or(0) });
            format!("{line}{}", digits.sum::<u32>() % 10)
        };
        let text = lines.iter().map(with_sum).collect::<Vec<_>>().join("\n");
        if let Ok(tle) = parse_tle(&text) {
            let satellite = Satellite::Elements { tle: Box::new(tle), start: None };
            let mut over = orbit(satellite, vec![place(51.5, -0.1)]);
            over.span = Duration::from_secs(7200);
            let passes = over.passes(Outside::Drop, PerDirection::both(QueueLimit::Unlimited));
            prop_assert!(passes.is_err() || !contacts(&passes.expect("it is none")).is_empty());
        }
    }
}
