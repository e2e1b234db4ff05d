use super::*;
use proptest::prelude::*;

fn args(given: &[(&str, f64)]) -> Args {
    given.iter().map(|&(name, value)| (name.to_owned(), value)).collect()
}

fn value(formula: &str, given: &[(&str, f64)]) -> Vec<f64> {
    evaluate(formula, &args(given)).unwrap_or_else(|error| panic!("{formula}: {error}"))
}

#[track_caller]
fn close(formula: &str, given: &[(&str, f64)], want: f64, tolerance: f64) {
    let got = value(formula, given)[0];
    assert!((got - want).abs() <= tolerance, "{formula}: {got}, not {want}");
}

#[test]
fn the_high_ber_paper_by_name() {
    let n = value("packets-of-file", &[("size", 1e7)]);
    assert_eq!(n[1], 6850.0);
    close("packets-of-file", &[("size", 1e7)], 6849.32, 0.005);
    close("sum", &[("a", 6850.0), ("b", 4.0)], 6854.0, 0.0);
    close("per-linear", &[("ber", 1e-4), ("size", 1500.0)], 1.2, 1e-12);
    close("per-exact", &[("ber", 1e-4), ("size", 1500.0)], 0.699, 5e-4);
    close("packets-surviving", &[("ber", 1e-4), ("size", 1500.0)], 0.301, 5e-4);
    close("ber-of-per", &[("per", 0.1), ("size", 1250.0)], 1.05e-5, 5e-8);
    close("ber-of-per-linear", &[("per", 0.1), ("size", 1250.0)], 1e-5, 1e-18);
    close("ber", &[("errors", 3.0), ("bits", 1e9)], 3e-9, 1e-20);
    close("percent-change", &[("from", 60.21), ("to", 76.83)], 27.60, 0.005);
    close("difference", &[("a", 1953.61), ("b", 60.21)], 1893.40, 0.005);
    close("ratio", &[("a", 1953.61), ("b", 60.21)], 32.4, 0.05);
    close("expected-drops", &[("packets", n[0]), ("p", 0.1)], 684.93, 0.005);
    close("expected-retransmissions", &[("packets", n[0]), ("p", 0.1)], 761.04, 0.005);
    let bounds = value("retransmissions-both-ways", &[("packets", n[0]), ("p", 0.1), ("p_reverse", 0.1)]);
    assert!(bounds[0] < 1092.0 && bounds[1] > 1092.0);
    close("ethernet-overhead", &[], 78.0, 0.0);
    close("maximum-throughput", &[("rate", 1e7)], 1_186_605.98, 0.005);
    close("window-limit-throughput", &[("rwnd", 8760.0), ("rtt", 0.04)], 219_000.0, 1e-6);
    close("window-limit-time", &[("size", 1e7), ("rwnd", 8760.0), ("rtt", 0.04)], 45.66, 0.005);
    close("packet-rate", &[("packets", 6854.0), ("time", 60.24)], 113.778, 5e-4);
    close("retransmission-time", &[("packets", 6854.0), ("time", 60.24), ("drops", 68.54)], 0.602, 5e-4);
    close("product", &[("a", 68.0), ("b", 0.4268)], 29.02, 0.005);
    close("recovery-lost-time", &[], 0.4268, 2e-4);
    let table = value("recovery-table", &[]);
    assert_eq!((table.len(), libm::round(table[5])), (15, 6431.0));
    assert_eq!(libm::round(table[6]), 6762.0);
}

#[test]
fn streams_by_name() {
    let vlbi = [("rate", 512e6), ("rtt", 0.015)];
    close("stream-loss", &vlbi, 9.944, 1e-3);
    let results = value("stream-loss", &vlbi);
    assert!((results[2] / 159.1e6 - 1.0).abs() < 1e-3 && (results[6] - 960e3).abs() < 1.0, "{results:?}");
    close("stream-loss", &[&vlbi[..], &[("ack_factor", 1.0)]].concat(), 4.972, 1e-3);
    close("stream-loss", &[&vlbi[..], &[("ack_factor", 0.0)]].concat(), 5.635, 1e-3);
    let held = value("stream-loss", &[&vlbi[..], &[("limit", 960e3)]].concat());
    assert_eq!(held[3], f64::INFINITY);
}

#[test]
fn blocks_and_telescopes_by_name() {
    let block = [("size", 1.4e6), ("rate", 1e6), ("rtt", 20.0)];
    close("ltp-block", &block, 21.52, 1e-9);
    let lossy = value("ltp-block", &[&block[..], &[("p", 0.01)]].concat());
    assert!(lossy[1] > 2.0 && lossy[2] > 1.44e6, "{lossy:?}");
    // Of 28 pairs of eight telescopes seven have the late one.
    close("late-telescopes", &[("telescopes", 8.0), ("share", 0.2)], 0.05, 1e-12);
    let two = value("late-telescopes", &[("telescopes", 2.0), ("late", 2.0), ("share", 0.5)]);
    assert_eq!(two, [0.75, 0.5]);
    assert!(evaluate("late-telescopes", &args(&[("telescopes", 1.0), ("share", 0.5)])).is_err());
    assert!(
        evaluate("late-telescopes", &args(&[("telescopes", 2.0), ("late", 3.0), ("share", 0.5)])).is_err()
    );
}

#[test]
fn paths_by_name() {
    let lan = [("rwnd", 8760.0), ("rate", 1e7), ("links", 2.0), ("owd", 0.02)];
    close("delayed-ack-cycle", &lan, 0.043_825_6, 1e-12);
    let with_size = [&lan[..], &[("size", 1e7)]].concat();
    close("delayed-ack-time", &with_size, 50.03, 0.005);
    close("lossless-transfer", &with_size, 50.154_590, 1e-6);
    let ns3 = [("link_overhead", 2.0), ("min_payload", 0.0)];
    let wan = [&[("size", 1e7), ("rwnd", 8760.0), ("rate", 1e9), ("owd", 0.02)], &ns3[..]].concat();
    close("lossless-transfer", &wan, 45.807_846, 2e-5);
    close("isolated-drop", &[("window", 6.0), ("rtt", 0.043_825_6)], 0.2337, 1e-4);
    close("isolated-drop-per-round", &[("window", 6.0), ("rtt", 0.043_825_6)], 0.2337, 1e-4);
}

#[test]
fn errors_name_what_is_known() {
    let error = evaluate("maximum-thruput", &Args::new()).unwrap_err().to_string();
    assert!(
        error.contains("no formula `maximum-thruput`") && error.contains("maximum-throughput"),
        "{error}"
    );
    let error = evaluate("ratio", &args(&[("x", 1.0)])).unwrap_err().to_string();
    assert_eq!(error, "`ratio` takes no `x`; it takes a, b");
    let error = evaluate("window-limit-throughput", &args(&[("rwnd", 1.0)])).unwrap_err().to_string();
    assert_eq!(error, "`window-limit-throughput` needs `rtt` (s)");
    let error = evaluate("window-limit-throughput", &args(&[("rwnd", 1.5), ("rtt", 1.0)])).unwrap_err();
    assert_eq!(
        error.to_string(),
        "`window-limit-throughput`: rwnd must be a whole number, zero or more, not 1.5"
    );
    let error = evaluate("window-limit-throughput", &args(&[("rwnd", 1.0), ("rtt", 0.0)])).unwrap_err();
    assert_eq!(error.to_string(), "`window-limit-throughput`: the round-trip time must be above zero");
    let error = evaluate("ratio", &args(&[("a", 0.0), ("b", 0.0)])).unwrap_err().to_string();
    assert_eq!(error, "`ratio` is undefined for these arguments");
}

#[test]
fn the_list_is_in_order() {
    let mut names: Vec<_> = formulas().iter().map(|formula| formula.name).collect();
    assert!(
        names
            .iter()
            .all(|name| name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'))
    );
    let listed = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), listed);
    for formula in formulas() {
        assert!(!formula.summary.is_empty() && !formula.source.is_empty() && !formula.results.is_empty());
    }
}

/// Any order of magnitude that an argument can have, and the ends.
fn wide() -> impl Strategy<Value = f64> {
    prop_oneof![
        Just(0.0),
        Just(1.0),
        Just(f64::INFINITY),
        Just(1e-17),
        Just(u64::MAX as f64),
        (0_u32..5000).prop_map(f64::from),
        (-18.0..18.0_f64).prop_map(|exponent| libm::pow(10.0, exponent)),
        (0.0..18.0_f64).prop_map(|exponent| libm::floor(libm::pow(10.0, exponent))),
        0.0..1.0_f64,
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_formula_panics_or_gives_nan(index in 0..formulas().len(), values in prop::collection::vec(wide(), 16)) {
        let formula = &formulas()[index];
        // Most of these walks are long: they have the test below.
        prop_assume!(formula.name != "lossless-transfer");
        let args = formula.arguments.iter().zip(values).map(|(argument, value)| (argument.name.to_owned(), value));
        if let Ok(results) = evaluate(formula.name, &args.collect()) {
            for result in results {
                prop_assert!(!result.is_nan());
                prop_assert!(result >= 0.0 || matches!(formula.name, "difference" | "percent-change"), "{result}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_walk_ends_whatever_it_is_given(values in prop::collection::vec(wide(), 16), links in 1_u32..4, handshake in 0_usize..3) {
        let formula = formulas().iter().find(|formula| formula.name == "lossless-transfer").expect("it is listed");
        let args = formula.arguments.iter().zip(values);
        let whole = |value: f64| if value > 1.0 { libm::floor(value) } else { 1.0 };
        let mut args: Args = args.map(|(argument, value)| (argument.name.to_owned(), whole(value))).collect();
        args.insert("links".to_owned(), f64::from(links));
        args.insert("handshake".to_owned(), [0.0, 1.0, 1.5][handshake]);
        for result in evaluate(formula.name, &args).expect("every value is in range") {
            prop_assert!(result >= 0.0);
        }
    }
}
