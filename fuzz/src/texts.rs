//! Texts as users write them: experiments, stacks, configurations of a router, and changes beside a file.

use farpath_elements::{
    ElementKind, ElementSpec, Orbit, Outside, Place, QueueLimit, Satellite, Trace, TraceLink, parse_plan,
    parse_tle,
};
use farpath_experiment::{Experiment, Override, RouterConfig, Stack, import};
use farpath_path::{Direction, Fate, PacketView, PerDirection};
use farpath_units::{Angle, Bytes, Duration, Instant, Length};

/// The first byte says what the rest is.
pub fn texts(data: &[u8]) {
    let Some((&kind, text)) = data.split_first() else { return };
    let Ok(text) = str::from_utf8(text) else { return };
    match kind {
        4 => return trace(text),
        5 => return drop(parse_plan(text)),
        6 => return imported(text),
        7 => return elements(text),
        _ => {}
    }
    // Ten million points take their time, and are allowed; so are files beside this one.
    let long = [" by ", " times ", "points", "/", ".toml"];
    if kind % 4 != 1 && long.iter().any(|word| text.contains(word)) {
        return;
    }
    let origin = "some.toml";
    let error = match kind % 4 {
        0 => Experiment::parse(text, origin, &[]).map(|experiment| again(&experiment)).err(),
        1 => Stack::parse(text, origin).map(|stack| resolved(&stack)).err(),
        2 => RouterConfig::parse(text, origin).err(),
        _ => {
            let (change, text) = text.split_once('\n').unwrap_or((text, ""));
            let Ok(change) = change.parse::<Override>() else { return };
            Experiment::parse(text, origin, &[change]).err()
        }
    };
    if let Some(error) = error {
        let message = error.to_string();
        assert!(message.starts_with("some.toml: "), "{message}");
    }
}

/// What is made of a command line of `tc` is a path; of `mahimahi` it names files that are not there.
fn imported(text: &str) {
    let _ = import::mahimahi(text);
    let all = [None, Some(Direction::Forward), Some(Direction::Reverse)].map(import::Ways::All);
    for ways in all.iter().chain([&import::Ways::Unsaid]) {
        let Ok(imported) = import::tc(text, ways) else { continue };
        let text = format!("title = \"T\"\n{}[transfer]\nsize = \"1 kB\"\n", imported.to_toml());
        if let Err(error) = Experiment::parse(&text, "imported.toml", &[]) {
            panic!("{error}\n{text}");
        }
    }
}

/// A trace that is read is written so that it reads back, has figures, and sends a packet or says that it never will.
fn trace(text: &str) {
    let Ok(trace) = Trace::parse(text) else { return };
    assert_eq!(Trace::parse(&trace.to_text()).expect("what we write, we read"), trace);
    let over_time = trace.over_time(80);
    assert!(over_time.iter().all(|rate| rate.is_finite() && *rate >= 0.0), "{over_time:?}");
    let figures = trace.figures();
    assert!(figures.mean_bit_per_s > 0.0 && figures.variation >= 0.0, "{figures:?}");
    let both = PerDirection::both(trace);
    let kind = TraceLink {
        trace: both,
        queue: PerDirection::both(QueueLimit::Unlimited),
        aqm: PerDirection::default(),
        overhead: Bytes::ZERO,
    };
    let spec = ElementSpec { name: "link".to_owned(), kind: ElementKind::TraceLink(kind) };
    let mut link = spec.transit(1).expect("it is sound");
    let mut last = Instant::ZERO;
    for number in 0..20 {
        let now = Instant::ZERO + Duration::from_millis(number * number * 100);
        let packet = PacketView { size: Bytes(1 + number * 3000), carries_data: true };
        if let Fate::Queue(at, _) = link.transit(now, Direction::Forward, packet) {
            assert!(at >= now && at >= last, "{at} after {last}, sent at {now}");
            last = at;
        }
    }
}

/// Elements that are read say where the satellite is for a day, or that they do not.
fn elements(text: &str) {
    let Ok(tle) = parse_tle(text) else { return };
    let orbit = Orbit {
        satellite: Satellite::Elements { tle: Box::new(tle), start: None },
        stations: vec![Place { latitude: Angle(51_500_000), longitude: Angle(0) }],
        minimum_elevation: Angle(10_000_000),
        hops: 0,
        hop: Length(0),
        span: Duration::from_secs(86_400),
    };
    let Ok(passes) = orbit.passes(Outside::Hold, PerDirection::both(QueueLimit::Unlimited)) else { return };
    let contacts = passes.contacts.plan.listed(Direction::Forward);
    assert!(
        contacts.iter().all(|contact| contact.from < contact.to && contact.to <= orbit.span),
        "{contacts:?}"
    );
}

/// What is read once is read again, at each point.
fn again(experiment: &Experiment) {
    for point in experiment.points().take(3) {
        let only = experiment.only(point.index, &[]).expect("a point of it is an experiment");
        assert_eq!(only.point(0).scenario, point.scenario, "point {}", point.index);
    }
}

/// A stack that is written out reads back.
fn resolved(stack: &Stack) {
    let text = format!("title = \"T\"\n{}", stack.to_toml());
    let read = Stack::parse(&text, "resolved.toml").expect("what we write, we read");
    assert_eq!((read.config, read.linux), (stack.config.clone(), stack.linux.clone()));
}
