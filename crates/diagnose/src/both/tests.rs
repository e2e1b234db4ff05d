use super::*;
use crate::packet::bare;

const MS: u64 = 1_000_000;
/// The receiver's clock is this much ahead.
const AHEAD: u64 = 7000 * MS;

fn ends() -> [SocketAddr; 2] {
    ["192.0.2.1:1", "192.0.2.2:2"].map(|text| text.parse().expect("one"))
}

fn data(seq: u32, payload: u32) -> TcpPacket {
    let [source, destination] = ends();
    TcpPacket { seq, ack: Some(1), payload, ..bare(source, destination) }
}

fn ack(ack: u32) -> TcpPacket {
    let [destination, source] = ends();
    TcpPacket { seq: 1, ack: Some(ack), ..bare(source, destination) }
}

/// Packets that left one side and when they came to the other, if they did; in ms of the sender's clock.
fn sides(packets: &[(TcpPacket, u64, Option<u64>)]) -> [Side; 2] {
    let mut seen: [Vec<(u64, TcpPacket)>; 2] = [Vec::new(), Vec::new()];
    for (packet, left, came) in packets {
        let from = usize::from(packet.source != ends()[0]);
        let ahead = |side: usize| if side == 0 { 0 } else { AHEAD };
        seen[from].push((left * MS + ahead(from), *packet));
        if let Some(came) = came {
            seen[1 - from].push((came * MS + ahead(1 - from), *packet));
        }
    }
    seen.map(|mut packets| {
        packets.sort_by_key(|packet| packet.0);
        let mut side = Side::new(ends()[0]);
        packets.iter().for_each(|(time, packet)| side.packet(*time, packet));
        side
    })
}

#[test]
fn losses_delays_and_needless_retransmissions_are_found_with_clocks_apart() {
    let [sender, receiver] = sides(&[
        (data(1, 1000), 0, Some(50)),
        (data(1001, 1000), 1, None),
        (data(2001, 1000), 2, Some(62)),
        (ack(1001), 50, Some(90)),
        (ack(1001), 62, None),
        // Sent again and needed; then sent again for nothing.
        (data(1001, 1000), 100, Some(150)),
        (data(2001, 1000), 101, Some(155)),
        (ack(3001), 150, Some(190)),
        (ack(3001), 155, Some(200)),
    ]);
    let found = both_sides(&sender, &receiver).expect("both have packets");
    // 50 ms forward and 40 back; the clocks are told to within half of the difference.
    assert!((found.receiver_ahead_s - 7.005).abs() < 1e-9, "{found:?}");
    assert!((found.forward.least_s - 0.045).abs() < 1e-9 && (found.back.least_s - 0.045).abs() < 1e-9);
    assert_eq!((found.forward.packets, found.forward.lost, found.forward.bytes_lost), (5, 1, 1000));
    assert_eq!((found.back.packets, found.back.lost), (4, 1));
    assert_eq!((found.sent_again, found.needless, found.forward.reordered), (2, 1, 0));
    assert!((found.forward.above_s[2] - 0.010).abs() < 2e-4, "{found:?}");
}

#[test]
fn what_a_card_cut_or_joined_is_the_same_data() {
    let [mut sender, mut receiver] = sides(&[(ack(1), 0, Some(40))]);
    // One segment of 3000 B left and came as three, of which the second was lost; two came as one.
    sender.packet(100 * MS, &data(1, 3000));
    for (seq, at) in [(1, 150), (2001, 151)] {
        receiver.packet(at * MS + AHEAD, &data(seq, 1000));
    }
    sender.packet(200 * MS, &data(3001, 1000));
    sender.packet(200 * MS, &data(4001, 1000));
    receiver.packet(250 * MS + AHEAD, &data(3001, 2000));
    let found = both_sides(&sender, &receiver).expect("both have packets");
    assert_eq!((found.forward.packets, found.forward.lost, found.forward.bytes_lost), (3, 1, 1000));
}

#[test]
fn what_arrives_behind_later_data_is_reordered_and_sides_without_each_other_are_none() {
    let [sender, receiver] = sides(&[
        (ack(1), 0, Some(40)),
        (data(1, 1000), 1, Some(60)),
        (data(1001, 1000), 2, Some(52)),
        (data(2001, 1000), 20, Some(70)),
    ]);
    let found = both_sides(&sender, &receiver).expect("both have packets");
    assert_eq!((found.forward.lost, found.forward.reordered), (0, 1));
    let empty = Side::new(ends()[0]);
    assert!(both_sides(&sender, &empty).is_none() && both_sides(&empty, &receiver).is_none());
}

#[test]
fn packets_beyond_the_bound_are_not_looked_at() {
    let [mut sender, receiver] = sides(&[(data(1, 1000), 0, Some(50)), (ack(1001), 50, Some(100))]);
    for _ in 0..MAX_PACKETS {
        sender.packet(200 * MS, &data(1001, 10));
    }
    assert_eq!(sender.data.len() + sender.acks.len(), MAX_PACKETS);
    assert!(both_sides(&sender, &receiver).expect("both have packets").is_cut);
}

/// 60 s of packets, each way with some delay above the shortest, by a receiver's clock that runs by these millionths faster.
fn drifting(ppm: i64, delay_of: impl Fn(u64, u64) -> u64) -> [Side; 2] {
    let [mut sender, mut receiver] = ends().map(|_| Side::new(ends()[0]));
    let theirs = |at: u64| at.saturating_add_signed(at.cast_signed() * ppm / 1_000_000) + AHEAD;
    let mut seen: Vec<(u64, bool, TcpPacket)> = Vec::new();
    for number in 0..6000_u64 {
        let seq = 1 + 1000 * number as u32;
        let left = number * 10 * MS;
        let came = left + 50 * MS + delay_of(0, number);
        seen.extend([(left, true, data(seq, 1000)), (theirs(came), false, data(seq, 1000))]);
        let acked = came + 50 * MS + delay_of(1, number);
        seen.extend([(theirs(came), false, ack(seq + 1000)), (acked, true, ack(seq + 1000))]);
    }
    seen.sort_by_key(|(at, ..)| *at);
    for (at, is_sender, packet) in seen {
        if is_sender { &mut sender } else { &mut receiver }.packet(at, &packet);
    }
    [sender, receiver]
}

/// A queue that is drawn, and empty now and then.
fn jitter(way: u64, number: u64) -> u64 {
    let drawn = (number + 7 * way + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    drawn % 2000 * 1000
}

#[test]
fn a_clock_that_runs_faster_is_told_and_taken_out_of_the_delays() {
    let [sender, receiver] = drifting(0, jitter);
    let steady = both_sides(&sender, &receiver).expect("both have packets");
    assert_eq!(steady.receiver_fast_ppm, None);
    for ppm in [50, -50, 200] {
        let [sender, receiver] = drifting(ppm, jitter);
        let found = both_sides(&sender, &receiver).expect("both have packets");
        // Delays are within 1 us of the shortest once in 1000: over half a minute that is 0.1 millionths.
        let told = found.receiver_fast_ppm.expect("a drift");
        assert!((told - ppm as f64).abs() < 0.2, "{ppm}: {told}");
        for (way, other) in [(&found.forward, &steady.forward), (&found.back, &steady.back)] {
            assert!((way.least_s - other.least_s).abs() < 2e-5, "{way:?} {other:?}");
            let differ = way.above_s.iter().zip(other.above_s).map(|(one, other)| (one - other).abs());
            // A histogram's steps are 1 %.
            assert!(differ.fold(0.0, f64::max) < 5e-5, "{way:?} {other:?}");
        }
        assert!((found.receiver_ahead_s - 7.0).abs() < 1e-3, "{found:?}");
    }
}

#[test]
fn a_queue_that_grows_one_way_is_no_drift() {
    let [sender, receiver] =
        drifting(0, |way, number| if way == 0 { number * 500 } else { jitter(1, number) });
    assert_eq!(both_sides(&sender, &receiver).expect("both have packets").receiver_fast_ppm, None);
}
