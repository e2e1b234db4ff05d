use super::*;
use farpath_units::Rate;

fn rate(bit_per_s: u64) -> Rate {
    Rate::from_bit_per_s(bit_per_s).expect("not zero")
}

/// Two 10 Mbit/s Ethernet links, 10 ms each.
fn two_ethernets() -> Path {
    Path::symmetric(vec![Hop::ethernet(rate(10_000_000), Duration::from_millis(10)); 2])
}

/// One point-to-point link at 1 Gbit/s with 2 B of overhead.
fn gigabit(propagation: Duration) -> Path {
    let hop = Hop { rate: rate(1_000_000_000), propagation, overhead: Bytes(2), min_payload: Bytes(0) };
    Path::symmetric(vec![hop])
}

fn transfer(path: &Path, size: u64, rwnd: u64) -> LosslessTransfer<'_> {
    LosslessTransfer {
        path,
        size: Bytes(size),
        mss: Bytes(1460),
        rwnd: Bytes(rwnd),
        initial_window: 2,
        initial_ssthresh: Bytes::MAX,
        ack_every: 2,
        delayed_ack_timeout: Duration::from_millis(200),
        opener: Opener::Sender,
    }
}

fn check(transfer: LosslessTransfer<'_>, received: f64, acknowledged: f64) {
    let estimate = transfer.times().unwrap();
    assert!(estimate.caveats.is_empty(), "{:?}", estimate.caveats);
    let got = estimate.value;
    let close = |got: Duration, want: f64| (got.as_secs_f64() - want).abs() < 1e-6;
    assert!(close(got.last_byte_received, received), "{received}: {got:?}");
    assert!(close(got.last_byte_acknowledged, acknowledged), "{acknowledged}: {got:?}");
}

/// Times of an independent packet-level discrete-event simulation of the same transfers, to the microsecond.
#[test]
fn agrees_with_a_packet_simulation() {
    let lan = two_ethernets();
    check(transfer(&lan, 10_000_000, 8760), 50.154_590, 50.174_725);
    check(transfer(&lan, 10_000_000, 65_535), 8.736_190, 8.756_325);
    // Five segments: the delayed ACK always holds one back.
    check(transfer(&lan, 10_000_000, 7300), 73.030_398, 73.050_533);
    // One segment: every one waits for the 200 ms timer; the last one's timer is not waited for.
    check(transfer(&lan, 20_000, 1460), 3.215_763, 3.435_898);
    let wan = gigabit(Duration::from_millis(20));
    check(transfer(&wan, 10_000_000, 8760), 45.807_857, 45.827_858);
    check(transfer(&wan, 10_000_000, 65_535), 6.504_348, 6.524_349);
    check(transfer(&gigabit(Duration::from_millis(270)), 1_000_000, 65_535), 12.010_619, 12.480_620);
    check(transfer(&gigabit(Duration::from_secs(1)), 1_000_000, 65_535), 43.600_559, 44.800_560);
}

#[test]
fn agrees_with_ns3_at_no_loss() {
    let wan = gigabit(Duration::from_millis(20));
    let received = transfer(&wan, 10_000_000, 8760).times().unwrap().value.last_byte_received;
    // ns-3.44, 45.807846 s.
    assert!((received.as_secs_f64() - 45.807_846).abs() < 2e-5, "{received}");
}

/// The same walk with the repetition never used.
fn walked_to_the_end(transfer: LosslessTransfer<'_>) -> Ps {
    let mut walk = Walk::new(&transfer, 0);
    walk.repeat.found = true;
    assert!(walk.run());
    walk.received
}

#[test]
fn repetition_changes_nothing() {
    let lan = two_ethernets();
    let wan = gigabit(Duration::from_millis(20));
    let mut slow_return = gigabit(Duration::from_millis(5));
    slow_return.reverse[0].rate = rate(1_000_000);
    for path in [&lan, &wan, &slow_return] {
        for rwnd in [1460, 2920, 7300, 8760, 10_000, 65_535, 131_072, 3_000_000] {
            for ack_every in [1, 2, 3] {
                for size in [1, 1461, 100_000, 10_000_001] {
                    let transfer = LosslessTransfer {
                        ack_every,
                        opener: Opener::Established,
                        ..transfer(path, size, rwnd)
                    };
                    let mut walk = Walk::new(&transfer, 0);
                    assert!(walk.run());
                    let case = format!("{rwnd} {ack_every} {size}");
                    assert_eq!(walk.received, walked_to_the_end(transfer), "{case}");
                }
            }
        }
    }
}

#[test]
fn openers_cost_no_one_or_one_and_a_half_round_trips() {
    let path = gigabit(Duration::from_millis(100));
    let of = |opener| {
        let times = LosslessTransfer { opener, ..transfer(&path, 100_000, 8760) }.times().unwrap().value;
        (times.established.as_nanos() / 1_000_000, times.last_byte_received - times.established)
    };
    assert_eq!(of(Opener::Established).0, 0);
    assert_eq!(of(Opener::Sender).0, 200);
    assert_eq!(of(Opener::Receiver).0, 300);
    assert_eq!(of(Opener::Sender).1, of(Opener::Receiver).1);
}

#[test]
fn a_long_fat_path_fills_and_a_terabyte_is_one_multiplication() {
    let hop = Hop::ethernet(rate(10_000_000_000), Duration::from_millis(300));
    let path = Path::symmetric(vec![hop]);
    let full = LosslessTransfer { rwnd: Bytes(1 << 31), ..transfer(&path, 1_000_000_000_000, 0) };
    let estimate = full.times().unwrap();
    assert!(estimate.caveats.is_empty(), "{:?}", estimate.caveats);
    let seconds = estimate.value.last_byte_received.as_secs_f64();
    let wire = 1e12 / 1460.0 * 1538.0 * 8.0 / 1e10;
    assert!(seconds > wire && seconds < wire + 0.6 * 34.0, "{seconds} {wire}");
    // A window of 64 kB uses a ten-thousandth of it: 44 segments per 600 ms and a little.
    let small = transfer(&path, 1_000_000_000_000, 65_535).times().unwrap().value;
    let rounds = 1e12 / (44.0 * 1460.0);
    let seconds = small.last_byte_received.as_secs_f64();
    assert!((seconds / (rounds * 0.600_003_8) - 1.0).abs() < 1e-5, "{seconds}");
}

#[test]
fn what_does_not_repeat_in_time_is_estimated_by_rounds() {
    // Linear growth from 64 kB would need 10^11 segments to fill 10 Gbit/s x 600 ms.
    let hop = Hop::ethernet(rate(10_000_000_000), Duration::from_millis(300));
    let path = Path::symmetric(vec![hop]);
    let linear =
        LosslessTransfer { initial_ssthresh: Bytes(65_536), ..transfer(&path, 20_000_000_000, 1 << 40) };
    let estimate = linear.times().unwrap();
    assert_eq!(estimate.caveats.len(), 1);
    let rounded = estimate.value.last_byte_received.as_secs_f64();
    let exact = walked_to_the_end_without_limit(&linear);
    assert!((rounded / exact - 1.0).abs() < 0.01, "{rounded} {exact}");
    // Absurd inputs end, too.
    let absurd = LosslessTransfer { initial_window: u64::MAX, ..transfer(&path, u64::MAX, u64::MAX) };
    assert!(absurd.times().unwrap().value.last_byte_received > Duration::from_secs(1_000_000));
}

/// Rounds of one window each, grown by half a segment per round: the sum that the estimate closes.
fn walked_to_the_end_without_limit(transfer: &LosslessTransfer<'_>) -> f64 {
    let (mut window, mut left, mut time) = (2.0_f64, transfer.size.0 as f64 / 1460.0, 0.600_003_8);
    while left > 0.0 {
        left -= libm::floor(window);
        time += 0.600_003_8;
        window += if window < 44.0 { window / 2.0 } else { 0.5 };
    }
    time
}
