use super::*;

fn ms(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

fn rates(text: &str) -> Trace {
    Trace::parse(text).expect("a trace")
}

#[test]
fn a_packet_goes_on_at_the_rate_that_comes() {
    // 1 ms at 8 Mbit/s are 1000 B, the other 500 B take 0.5 ms at 8 Mbit/s or 4 ms at 1 Mbit/s.
    let mut sending = Sending::new(rates("0,8000000\n0.001,1000000\n0.1,0\n0.2,8 Mbit/s\n"));
    assert_eq!(sending.send(Instant::ZERO, Bytes(1500)), Some(ms(5)));
    // An outage: 125 B before it, the rest behind it.
    assert_eq!(sending.send(ms(99), Bytes(1125)), Some(ms(201)));
    assert_eq!(sending.send(ms(201), Bytes(1000)), Some(ms(202)));
}

#[test]
fn rates_are_added_up_without_rounding() {
    // 78 B at 100 Gbit/s are 6.24 ns: 25 of them 156.
    let mut sending = Sending::new(rates("0,100000000000\n"));
    let last = (0..25).map(|_| sending.send(Instant::ZERO, Bytes(78))).last();
    assert_eq!(last, Some(Some(Instant::from_nanos(156))));
}

#[test]
fn rates_repeat_and_long_waits_are_skipped() {
    // 125 B a second.
    let mut sending = Sending::new(rates("# repeat 1\n0,1000000\n0.001,0\n"));
    assert_eq!(sending.send(Instant::ZERO, Bytes(125)), Some(ms(1)));
    assert_eq!(sending.send(Instant::ZERO, Bytes(125 * 3)), Some(ms(3001)));
    // A week later, and a packet that takes more than ten thousand years.
    let week = Instant::ZERO + Duration::from_secs(7 * 86_400);
    assert_eq!(sending.send(week, Bytes(125)), Some(week + Duration::from_millis(1)));
    let mut slow = Sending::new(rates("# repeat 1\n0,1\n0.000001,0\n"));
    assert!(slow.send(Instant::ZERO, Bytes(65_535)).is_none_or(|sent| sent > week));
}

#[test]
fn a_last_rate_of_zero_ends_it() {
    let mut sending = Sending::new(rates("0,8000000\n0.001,0\n"));
    assert_eq!(sending.send(Instant::ZERO, Bytes(1000)), Some(ms(1)));
    assert_eq!(sending.send(ms(1), Bytes(1)), None);
}

/// mahimahi's rules: 1504 B an opportunity, shared by packets in the queue; what no packet waits for is lost; the file begins again at its last line.
#[test]
fn opportunities_are_those_of_mahimahi() {
    let mut sending = Sending::new(rates("2\n2\n5\n"));
    // Three of 1000 B: the first in the first of 2 ms, the second in both of them, the third with what is left.
    assert_eq!(sending.send(ms(0), Bytes(1000)), Some(ms(2)));
    assert_eq!(sending.send(ms(1), Bytes(1000)), Some(ms(2)));
    assert_eq!(sending.send(ms(1), Bytes(1000)), Some(ms(2)));
    assert_eq!(sending.send(ms(1), Bytes(1000)), Some(ms(5)));
    // The 504 B that were left at 5 ms were for nobody; the next are at 5 + 2.
    assert_eq!(sending.send(ms(5), Bytes(100)), Some(ms(7)));
    // One that comes with an opportunity is too late for it, and the file has been through twice.
    assert_eq!(sending.send(ms(12), Bytes(1504)), Some(ms(15)));
    // More than an opportunity: the two at 17 ms.
    assert_eq!(sending.send(ms(15), Bytes(1505)), Some(ms(17)));
}

#[test]
fn texts_that_are_none_are_refused_by_their_line() {
    for (text, expected) in [
        ("", "line 0: expected a millisecond, or `seconds,bit/s`, a line, found nothing"),
        ("# nothing\n", "line 0: expected a millisecond, or `seconds,bit/s`, a line, found nothing"),
        ("0\n0\n", "line 0: expected an opportunity after 0 ms: the last one is the period, found none"),
        ("5\n4\n", "line 2: expected 5 or later: time does not go back, found 4"),
        ("5\n-4\n", "line 2: expected a whole number of milliseconds, found `-4`"),
        ("1\n\n# three\nthree\n", "line 4: expected a whole number of milliseconds, found `three`"),
        ("1,5\n", "line 1: expected a first value at 0 s, found 1 s"),
        ("time_s,rate\n0,5\n0,6\n", "line 3: expected a time after 0 s, found 0 s"),
        ("0,5\n1,-6\n", "line 2: expected a rate from 0 on, in bit/s or such as `8 Mbit/s`, found `-6`"),
        ("0,5\nnan,6\n", "line 2: expected seconds since the start such as `2.5`, found `nan`"),
        ("0,0\n1,0\n", "line 0: expected a rate above zero, found none"),
        ("0,5\n# repeat 0\n", "line 2: expected a time after 0 s, where the last value begins, found 0 s"),
    ] {
        assert_eq!(Trace::parse(text).expect_err(text).to_string(), expected, "{text:?}");
    }
}

#[test]
fn figures_are_those_of_the_span() {
    let figures = rates("# repeat 4\n0,8000000\n1,0\n1.5,0\n2,8000000\n3,4000000\n").figures();
    assert_eq!((figures.span, figures.outages), (Duration::from_secs(4), 1));
    assert_eq!(figures.longest_outage, Duration::from_secs(1));
    assert!((figures.mean_bit_per_s - 5e6).abs() < 1.0, "{figures:?}");
    // Of 8, 0, 8, 4: the variance is 11.
    assert!((figures.variation - 11f64.sqrt() / 5.0).abs() < 1e-9, "{figures:?}");
    let figures = rates("500\n1000\n1500\n3000\n").figures();
    assert_eq!((figures.span, figures.outages), (Duration::from_secs(3), 4));
    assert_eq!(figures.longest_outage, Duration::from_millis(1500));
    assert!((figures.mean_bit_per_s - 4.0 * 1504.0 * 8.0 / 3.0).abs() < 1e-6, "{figures:?}");
}

#[test]
fn models_repeat_by_their_seed_and_read_back() {
    let (rate, span) = ("10 Mbit/s".parse().expect("a rate"), Duration::from_secs(600));
    for (name, model) in Model::ALL {
        let trace = model.make(rate, span, 1).expect("a span");
        assert_eq!(model.make(rate, span, 1).expect("a span"), trace, "{name}");
        assert_ne!(model.make(rate, span, 2).expect("a span"), trace, "{name}");
        assert_eq!(Trace::parse(&trace.to_text()).expect("a trace"), trace, "{name}");
        let figures = trace.figures();
        assert!((3e6..15e6).contains(&figures.mean_bit_per_s), "{name}: {figures:?}");
        assert_eq!(figures.span, span, "{name}");
        assert!(model.make(rate, Duration::from_millis(999), 1).is_err());
        assert!(model.make(rate, Duration::from_millis(86_400_001), 1).is_err(), "{name}");
    }
}

/// The means of many hours are what the models say of themselves.
#[test]
fn models_have_the_shares_that_they_name() {
    let (rate, day) = ("10 Mbit/s".parse().expect("a rate"), Duration::from_secs(86_400));
    let mean = |model: Model| {
        let means = (1..5).map(|seed| model.make(rate, day, seed).expect("a span").figures().mean_bit_per_s);
        means.sum::<f64>() / 4.0 / 1e7
    };
    // 8 of 10 s; some 8600 visits a day.
    assert!((mean(Model::OnOff) - 0.8).abs() < 0.02, "{}", mean(Model::OnOff));
    // 27 s whole, 9 s a twentieth.
    assert!((mean(Model::Shadowing) - (27.0 + 9.0 / 20.0) / 36.0).abs() < 0.03, "{}", mean(Model::Shadowing));
    // The mean of a lognormal of deviation 0.5.
    assert!((mean(Model::Cellular) - 0.125f64.exp()).abs() < 0.03, "{}", mean(Model::Cellular));
    assert!((mean(Model::Slots) - 1.0).abs() < 0.03, "{}", mean(Model::Slots));
}

/// Whatever the parts are, they carry what the trace does.
#[test]
fn a_trace_over_time_has_its_mean() {
    let opportunities: String = (1..=997).filter(|ms| ms % 3 > 0).map(|ms| format!("{ms}\n")).collect();
    for text in
        ["0,8000000\n0.5,0\n0.7,1000000\n2,3000000\n", "# repeat 7\n0,5\n6.9,1000000000\n", &opportunities]
    {
        let trace = rates(text);
        let mean = trace.figures().mean_bit_per_s;
        for parts in [1, 2, 7, 100, 1000] {
            let over_time = trace.over_time(parts);
            let of_parts = over_time.iter().sum::<f64>() / parts as f64;
            assert!((of_parts / mean - 1.0).abs() < 1e-9, "{parts}: {of_parts} {mean}");
        }
    }
    let steps = rates("# repeat 4\n0,8000000\n1,0\n2,4000000\n").over_time(4);
    assert_eq!(steps, [8e6, 0.0, 4e6, 4e6]);
}
