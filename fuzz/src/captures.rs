//! Captures as others write them.

use farpath_diagnose::both::{Side, both_sides};
use farpath_diagnose::kernel::{
    Iperf3, KernelCounters, overrule, overrule_by_iperf3, parse_iperf3, parse_ndt, parse_ss,
};
use farpath_diagnose::sequence::SequenceGraph;
use farpath_diagnose::{Diagnosis, Link, OptionOrder, TcpPacket, parse, read};
use farpath_tia1039::{Message, QosMark, RateWord, Structure, Structures};
use std::net::SocketAddr;

/// By the first byte a capture; or what `ss` or `iperf3` may have printed or a speed test kept; or packets of one connection at times that are drawn, for one of those that take packets:
/// each alone, so that an input is done soon.
pub fn captures(data: &[u8]) {
    let Some((&kind, rest)) = data.split_first() else { return };
    match (kind, kind & 3) {
        (0, _) => {
            let mut diagnosis = Diagnosis::default();
            let _ = read(rest, |frame| diagnosis.frame(frame));
            connections(kind, diagnosis);
        }
        (1, _) => texts(&String::from_utf8_lossy(rest)),
        (_, 1) => {
            let mut graph = SequenceGraph::new(ends()[0]);
            packets(rest, |_, now, _, packet| graph.packet(now, packet));
        }
        (_, 3) => sides(rest),
        _ => {
            let mut diagnosis = Diagnosis::default();
            packets(rest, |number, now, _, packet| diagnosis.packet(number, 0, now, packet));
            connections(kind, diagnosis);
        }
    }
}

fn texts(text: &str) {
    let mut counted = parse_ss(text);
    counted.extend(parse_ndt(text).unwrap_or_default());
    let told = parse_iperf3(text).unwrap_or_default();
    assert!(told.iter().all(|told| told.cwnd.0 <= told.cwnd.1));
    assert!(counted.iter().all(|counted| counted.send_buffer_limited_s <= counted.busy_s));
}

/// What is said of each, and what it is where a kernel or `iperf3` told something by `kind`.
fn connections(kind: u8, diagnosis: Diagnosis) {
    for mut connection in diagnosis.finish().connections {
        let sum: f64 = connection.limits.iter().map(|limit| limit.time_s).sum();
        let whole = connection.duration_s;
        // Times of captures are up to 584 years.
        assert!((sum - whole).abs() <= 1e-6 * whole.max(1.0), "{sum} of {whole}: {connection:?}");
        assert!(!connection.summary.is_empty());
        let losses = &connection.losses;
        let in_order = losses.tail.max(losses.spurious) <= losses.by_timeout
            && losses.by_timeout <= losses.repairs
            && losses.longest_run <= losses.largest_repair
            && losses.repairs <= losses.runs
            && losses.runs + losses.lost_retransmissions <= 2 * connection.retransmissions;
        assert!(in_order, "{connection:?}");
        let counted = KernelCounters {
            local: connection.sender,
            peer: connection.receiver,
            busy_s: whole,
            receive_window_limited_s: whole * f64::from(kind & 15) / 15.0,
            send_buffer_limited_s: whole * f64::from(kind >> 4) / 15.0,
        };
        overrule(&mut connection, &counted);
        let told = Iperf3 {
            local: connection.sender,
            peer: connection.receiver,
            congestion_control: None,
            cwnd: (u64::from(kind) << 10, u64::from(kind) << 11),
            retransmits: 0,
            send_buffer: None,
        };
        overrule_by_iperf3(&mut connection, &told);
        let overruled: f64 = connection.limits.iter().map(|limit| limit.time_s).sum();
        assert!((overruled - sum).abs() <= 1e-6 * whole.max(1.0), "{overruled} of {sum}: {connection:?}");
    }
}

/// One connection that both sides see.
fn sides(data: &[u8]) {
    let mut sides = [Side::new(ends()[0]), Side::new(ends()[0])];
    packets(data, |_, now, bytes, packet| {
        // Which of the sides sees it, and how much later the other one.
        let later = u64::from(bytes[10]) * 1_000_000;
        for (side, bit) in sides.iter_mut().zip([4, 8]) {
            if bytes[2] & bit == 0 {
                side.packet(now + later * u64::from(bit == 8), packet);
            }
        }
    });
    if let Some(both) = both_sides(&sides[0], &sides[1]) {
        assert!(both.forward.lost <= both.forward.packets && both.back.lost <= both.back.packets, "{both:?}");
        assert!(both.needless <= both.sent_again, "{both:?}");
    }
}

fn ends() -> [SocketAddr; 2] {
    [([10, 0, 0, 1], 1).into(), ([10, 0, 0, 2], 2).into()]
}

/// Each packet has a template of its own, with fields that are drawn: near what a connection would have.
fn packets(data: &[u8], mut each: impl FnMut(u64, u64, &[u8], &TcpPacket)) {
    let ends = ends();
    let mut now = 1_000_000_000_u64;
    let mut frame = vec![0; 60];
    frame[..4].copy_from_slice(&[0x45, 0, 0, 60]);
    (frame[9], frame[32]) = (6, 0x50);
    let mut template = parse(Link::Raw, &frame, 60).expect("a packet");
    for (number, bytes) in (1..).zip(data.chunks_exact(12)) {
        now += u64::from(u16::from_le_bytes([bytes[0], bytes[1]])) * 10_000;
        let way = usize::from(bytes[2] & 1);
        (template.source, template.destination) = (ends[way], ends[1 - way]);
        template.seq = u32::from(u16::from_le_bytes([bytes[3], bytes[4]])) << (bytes[2] >> 5);
        template.ack = (bytes[2] & 2 == 0)
            .then(|| u32::from(u16::from_le_bytes([bytes[5], bytes[6]])) << (bytes[2] >> 5));
        (template.syn, template.fin, template.rst) =
            (bytes[7] & 15 == 1, bytes[7] & 15 == 2, bytes[7] & 15 == 3);
        template.window = u16::from_le_bytes([bytes[8], bytes[9]]);
        template.payload = if bytes[7] & 16 == 0 { 0 } else { u32::from(bytes[10]) * 40 };
        template.window_scale = (bytes[11] & 1 == 1).then_some((bytes[11] >> 1) & 14);
        template.mss = (bytes[11] & 64 != 0).then_some(1460);
        template.sacked_to = (bytes[11] & 128 != 0).then(|| template.seq.wrapping_add(3000));
        template.is_dsack = bytes[7] & 128 != 0;
        template.timestamps = (bytes[2] & 16 != 0).then(|| (u32::from(bytes[0]), u32::from(bytes[5])));
        template.options = if template.syn { OptionOrder::new(&bytes[3..]) } else { OptionOrder::default() };
        template.qos = QosMark::from_dscp(if bytes[7] & 32 != 0 { 7 } else { 0 });
        // A request, an answer to one, or what else is said, of a rate that the window says.
        template.structures = (bytes[7] & 64 != 0).then(|| {
            let message = Message::from_code(bytes[11] >> 3 & 7).expect("three bits");
            let rate = RateWord::from_bits(template.window);
            Structures::one(Structure { message, mark: bytes[11] & 1, ..Structure::request(rate) })
        });
        each(number, now, bytes, &template);
    }
}
