//! What users write, what they read, and what is refused.

use farpath_units::{Ber, Bytes, Duration, Instant, Probability, Rate};
use proptest::prelude::*;

#[test]
fn durations_reach_from_nanoseconds_to_light_hours() {
    let ns = |text: &str| text.parse::<Duration>().unwrap().as_nanos();
    assert_eq!(ns("1 ns"), 1);
    assert_eq!(ns("20 ms"), 20_000_000);
    assert_eq!(ns("20ms"), 20_000_000);
    assert_eq!(ns("43.83 ms"), 43_830_000);
    assert_eq!(ns("1.5 light-seconds"), 1_500_000_000);
    assert_eq!(ns("1e3 s"), 1_000_000_000_000);
    assert_eq!(ns("2 h"), 7_200_000_000_000);
    assert_eq!(ns("0 s"), 0);
    assert_eq!(ns("0.4 ns"), 0, "below half a nanosecond rounds down");
    assert_eq!(ns("0.1 s"), 100_000_000, "decimal, not through a float");
}

#[test]
fn what_is_refused_names_what_was_expected_and_found() {
    let cases: [(&str, String); 6] = [
        ("20", "20".parse::<Duration>().unwrap_err().to_string()),
        ("-1 ms", "-1 ms".parse::<Duration>().unwrap_err().to_string()),
        ("600 y", "600 y".parse::<Duration>().unwrap_err().to_string()),
        ("1e30 s", "1e30 s".parse::<Duration>().unwrap_err().to_string()),
        ("8 MBps", "8 MBps".parse::<Rate>().unwrap_err().to_string()),
        ("64 kb", "64 kb".parse::<Bytes>().unwrap_err().to_string()),
    ];
    for (given, message) in &cases {
        assert!(message.contains(&format!("found `{given}`")), "{message}");
    }
    assert_eq!(cases[0].1, "expected a duration such as `20 ms`, found `20`: it has no unit");
    assert!(cases[1].1.ends_with("it is negative"), "{}", cases[1].1);
    assert!(cases[2].1.contains("`y` is not a unit"), "{}", cases[2].1);
    assert!(cases[3].1.ends_with("it is out of range"), "{}", cases[3].1);
    assert!(cases[4].1.contains("`8 Mbit/s` or `8 MB/s`"), "{}", cases[4].1);
    assert!(cases[5].1.contains("not in bits"), "{}", cases[5].1);
    for bad in ["0 bit/s", "0 Mbps", "", "fast", "8 mbps", "1e30 Gbps"] {
        assert!(bad.parse::<Rate>().is_err(), "{bad}");
    }
    for bad in ["101 %", "-1 %", "1.5", "nan", "1 %%"] {
        assert!(bad.parse::<Probability>().is_err(), "{bad}");
    }
    assert!("2".parse::<Ber>().is_err());
    assert!("1.5 B".parse::<Bytes>().is_err());
    assert_eq!("1.5 kB".parse(), Ok(Bytes(1500)));
}

/// Rates as other programs spell them; a bare `10M` is bits to one and bytes to the next.
#[test]
fn other_spellings_of_rates_are_read_and_written_in_bit_per_s() {
    for (text, same) in [
        ("10Mbps", "10 Mbit/s"),
        ("1.5 Gbps", "1.5 Gbit/s"),
        ("64 kbps", "64 kbit/s"),
        ("9600 bps", "9600 bit/s"),
        ("1 MB/s", "8 Mbit/s"),
        ("1.25 kB/s", "10 kbit/s"),
    ] {
        assert_eq!(text.parse::<Rate>(), same.parse(), "{text}");
        assert!(text.parse::<Rate>().expect("a rate").to_string().ends_with("bit/s"));
    }
    for bare in ["10M", "10 M", "10m", "10MBps"] {
        let message = bare.parse::<Rate>().unwrap_err().to_string();
        assert!(message.contains("`10 Mbit/s` or `10 MB/s`"), "{message}");
    }
    assert!("10k".parse::<Rate>().unwrap_err().to_string().contains("`10 kbit/s` or `10 kB/s`"));
}

#[test]
fn a_unit_that_is_nearly_one_is_refused_with_what_it_could_be() {
    let rate = |text: &str| text.parse::<Rate>().expect_err(text).to_string();
    assert!(rate("10 mbit/s").ends_with("`mbit/s` is not a unit of it; did you mean `Mbit/s`?"));
    assert!(rate("10Mbit").ends_with("`Mbit` is not a unit of it; did you mean `Mbit/s`?"));
    assert!(rate("10Mb/s").ends_with("it could be `10 Mbit/s` or `10 MB/s`: write one of them"));
    let size = |text: &str| text.parse::<Bytes>().expect_err(text).to_string();
    assert!(size("10M").ends_with("it could be `10 MB` or `10 MiB`: write one of them"));
    assert!(size("64k").ends_with("it could be `64 kB` or `64 KiB`: write one of them"));
}

#[test]
fn kilo_is_a_thousand_and_kibi_is_1024() {
    assert_eq!("64 kB".parse(), Ok(Bytes(64_000)));
    assert_eq!("64 KiB".parse(), Ok(Bytes(65_536)));
    assert!("64 KB".parse::<Bytes>().unwrap_err().to_string().contains("`KiB` for 1024"));
}

#[test]
fn percent_and_fraction_are_the_same_loss() {
    assert_eq!("1 %".parse::<Probability>(), "0.01".parse());
    assert_eq!("0.01%".parse::<Probability>(), "1e-4".parse());
    assert_eq!("10 %".parse::<Probability>().unwrap().to_string(), "10 %");
    for exact in ["0.0001 %", "0.07 %", "3 %", "0.000000001 %", "100 %", "0 %"] {
        assert_eq!(exact.parse::<Probability>().unwrap().to_string(), exact);
    }
}

#[test]
fn quantities_print_with_their_unit() {
    assert_eq!(Duration::from_micros(43_830).to_string(), "43.83 ms");
    assert_eq!(Duration::ZERO.to_string(), "0 s");
    assert_eq!(Bytes(8760).to_string(), "8.76 kB");
    assert_eq!(Rate::from_bit_per_s(10_000_000).unwrap().to_string(), "10 Mbit/s");
    assert_eq!(format!("{:.2}", Duration::from_nanos(45_807_846_123)), "45.81 s");
    assert_eq!(format!("{:>9}|", Bytes(10)), "     10 B|");
}

#[test]
fn tiny_bit_error_rates_keep_their_digits() {
    let ber = Ber::new(1e-17).unwrap();
    let per = ber.to_per(Bytes(1500)).fraction();
    assert!((per / 1.2e-13 - 1.0).abs() < 1e-9, "{per}");
    assert!((per / ber.to_per_linear(Bytes(1500)) - 1.0).abs() < 1e-9);
}

#[test]
fn the_linear_form_passes_one_where_the_exact_one_cannot() {
    let ber = Ber::new(1e-4).unwrap();
    assert!((ber.to_per_linear(Bytes(1500)) - 1.2).abs() < 1e-12);
    assert!((ber.to_per(Bytes(1500)).fraction() - 0.6988).abs() < 1e-4);
}

#[test]
fn a_link_never_beats_its_own_rate() {
    let rate = Rate::from_bit_per_s(3).unwrap();
    assert_eq!(rate.time_to_send(Bytes(1)).as_nanos(), 2_666_666_667);
    let fat = Rate::from_bit_per_s(10_000_000_000).unwrap();
    assert_eq!(fat.time_to_send(Bytes(750_000_000)), Duration::from_millis(600));
    assert_eq!(fat.time_to_send(Bytes(u64::MAX / 8)).as_nanos(), 1_844_674_407_370_955_161);
}

#[test]
fn ticks_round_up_to_the_next_multiple() {
    let at = |ms: u64| Instant::ZERO + Duration::from_millis(ms);
    let tick = Duration::from_millis(500);
    assert_eq!(at(1).next_multiple_of(tick), at(500));
    assert_eq!(at(500).next_multiple_of(tick), at(500));
    assert_eq!(at(501).next_multiple_of(Duration::ZERO), at(501));
}

#[test]
fn many_digits_and_a_negative_exponent_do_not_overflow() {
    let size = "290000000000000000000000000e-38 TiB".parse::<Bytes>();
    assert!(size.unwrap_err().to_string().contains("not a whole number"), "2.9 TiB / 10^12");
    assert_eq!("29e-1 ns".parse(), Ok(Duration::from_nanos(3)), "a part of a nanosecond is rounded");
}

#[test]
fn doubling_saturates() {
    assert_eq!(Duration::from_secs(3).doubled(4), Duration::from_secs(48));
    assert_eq!(Duration::from_secs(3).doubled(255), Duration::MAX);
    assert_eq!(Duration::ZERO.doubled(255), Duration::ZERO);
}

proptest! {
    #[test]
    fn every_duration_reads_back(ns: u64) {
        let duration = Duration::from_nanos(ns);
        prop_assert_eq!(duration.to_string().parse(), Ok(duration));
    }

    #[test]
    fn every_size_and_rate_reads_back(n in 1..=u64::MAX) {
        prop_assert_eq!(Bytes(n).to_string().parse(), Ok(Bytes(n)));
        let rate = Rate::from_bit_per_s(n).unwrap();
        prop_assert_eq!(rate.to_string().parse(), Ok(rate));
    }

    #[test]
    fn every_probability_reads_back(p in 0.0..=1.0f64) {
        let p = Probability::new(p).unwrap();
        prop_assert_eq!(p.to_string().parse(), Ok(p));
        let ber = Ber::new(p.fraction()).unwrap();
        prop_assert_eq!(ber.to_string().parse(), Ok(ber));
    }

    #[test]
    fn per_and_ber_invert(exponent in -17.0..-4.0f64, size in 40u64..9000) {
        let ber = Ber::new(10f64.powf(exponent)).unwrap();
        let per = ber.to_per(Bytes(size));
        if per.fraction() < 0.999 {
            let back = per.to_ber(Bytes(size)).errors_per_bit();
            prop_assert!((back / ber.errors_per_bit() - 1.0).abs() < 1e-9);
        }
    }

    #[test]
    fn no_text_makes_a_parser_panic(text in "\\PC{0,24}") {
        let _ = text.parse::<Duration>();
        let _ = text.parse::<Bytes>();
        let _ = text.parse::<Rate>();
        let _ = text.parse::<Probability>();
        let _ = text.parse::<Ber>();
    }

    #[test]
    fn numbers_in_odd_clothes_do_not_panic(text in "[-+0-9._eE]{0,12} ?(ms|s|kB|Mbit/s|%)?") {
        let _ = text.parse::<Duration>();
        let _ = text.parse::<Bytes>();
        let _ = text.parse::<Rate>();
        let _ = text.parse::<Probability>();
    }
}
