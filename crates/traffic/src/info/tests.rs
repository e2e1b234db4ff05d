use super::*;
use proptest::prelude::*;

/// A struct of `len` bytes in which some fields are set.
fn raw(len: usize, fields: &[(usize, &[u8])]) -> Vec<u8> {
    let mut bytes = vec![0; len];
    for (at, value) in fields {
        bytes[*at..at + value.len()].copy_from_slice(value);
    }
    bytes
}

#[test]
fn fields_are_where_the_kernel_header_has_them() {
    let u32 = |value: u32| value.to_ne_bytes();
    let bytes = raw(
        248,
        &[
            (0, &[1, 3, 2]),
            (8, &u32(204_000)),
            (16, &u32(1448)),
            (24, &u32(10)),
            (28, &u32(3)),
            (32, &u32(2)),
            (36, &u32(1)),
            (68, &u32(40_123)),
            (72, &u32(555)),
            (76, &u32(7)),
            (80, &u32(12)),
            (104, &125_000u64.to_ne_bytes()),
            (120, &1_000_001u64.to_ne_bytes()),
            (156, &u32(99)),
            (228, &u32(65_535)),
            (240, &4u16.to_ne_bytes()),
            (242, &3u16.to_ne_bytes()),
            (244, &u32(1234)),
        ],
    );
    let info = TcpInfo::parse(&bytes).expect("long enough");
    assert_eq!((info.state, info.congestion), (State::Established, CongestionState::Recovery));
    assert_eq!(info.retransmits, 2);
    assert_eq!(info.rto, Duration::from_millis(204));
    assert_eq!(
        (info.snd_mss, info.unacked, info.sacked, info.lost, info.retrans),
        (Bytes(1448), 10, 3, 2, 1)
    );
    assert_eq!(info.srtt, Some(Duration::from_micros(40_123)));
    assert_eq!(info.rttvar, Some(Duration::from_micros(555)));
    assert_eq!((info.snd_ssthresh, info.snd_cwnd), (Some(7), 12));
    assert_eq!(info.pacing_rate, Rate::from_bit_per_s(1_000_000));
    assert_eq!(info.bytes_acked, Some(Bytes(1_000_001)));
    assert_eq!(info.data_segs_out, Some(99));
    assert_eq!(info.snd_wnd, Some(Bytes(65_535)));
    assert_eq!((info.total_rto, info.total_rto_recoveries), (Some(4), Some(3)));
    assert_eq!(info.total_rto_time, Some(Duration::from_millis(1234)));
}

#[test]
fn what_stands_for_nothing_is_none() {
    let mut bytes = raw(248, &[(72, &250_000u32.to_ne_bytes()), (76, &NO_SSTHRESH.to_ne_bytes())]);
    bytes[104..112].fill(0xff);
    bytes[148..152].fill(0xff);
    let info = TcpInfo::parse(&bytes).expect("long enough");
    // Before a sample the kernel's `mdev` is made from the initial RTO.
    assert_eq!((info.srtt, info.rttvar, info.min_rtt), (None, None, None));
    assert_eq!((info.snd_ssthresh, info.pacing_rate, info.delivery_rate), (None, None, None));
}

#[test]
fn an_older_kernel_gives_less() {
    assert_eq!(TcpInfo::parse(&[0; OLDEST - 1]), None);
    let info = TcpInfo::parse(&[0; OLDEST]).expect("as Linux 2.6 wrote it");
    assert_eq!((info.bytes_acked, info.delivered, info.total_rto), (None, None, None));
    // Linux 4.20 ends with `reord_seen`.
    let info = TcpInfo::parse(&[0; 224]).expect("longer");
    assert_eq!((info.reord_seen, info.rcv_ooopack, info.snd_wnd), (Some(0), None, None));
}

proptest! {
    #[test]
    fn anything_is_parsed_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        let info = TcpInfo::parse(&bytes);
        prop_assert_eq!(info.is_some(), bytes.len() >= OLDEST);
        if let Some(info) = info {
            prop_assert_eq!(info.total_rto_time.is_some(), bytes.len() >= 248);
            prop_assert_eq!(info.bytes_sent.is_some(), bytes.len() >= 208);
        }
    }
}
