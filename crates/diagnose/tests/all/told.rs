//! What is told beside the limits: marks of congested routers, and what a capture without TCP holds.

use crate::common::{diagnosed, there_and_back};
use farpath_diagnose::{Diagnosis, Frame, TcpPacket};

#[test]
fn marks_of_congested_routers_and_their_echoes_are_counted() {
    let [there, back] = there_and_back();
    let data = TcpPacket { seq: 1, ack: Some(1), payload: 1000, ..there };
    let packets = [
        (0, TcpPacket { syn: true, ack: None, ..there }),
        (1, TcpPacket { syn: true, ack: Some(1), ..back }),
        (2, TcpPacket { seq: 1, ack: Some(1), ..there }),
        (3, TcpPacket { marked: true, ..data }),
        (4, TcpPacket { seq: 1001, ..data }),
        (5, TcpPacket { seq: 1, ack: Some(1001), echoes_marks: true, ..back }),
        (6, TcpPacket { seq: 1, ack: Some(2001), ..back }),
        // An acknowledgment of the other way is none of data.
        (7, TcpPacket { seq: 2001, ack: Some(1), marked: true, ..there }),
    ];
    let report = diagnosed(packets.iter().map(|(at, packet)| (*at, packet)));
    assert_eq!((report.marked, report.marks_echoed), (1, 1), "{report:?}");
}

#[test]
fn a_connection_of_one_moment_had_data_all_the_same() {
    let [there, _] = there_and_back();
    let said = |payload| diagnosed([(1, &TcpPacket { seq: 1, payload, ..there })]).summary;
    assert_eq!(said(1000), "all of it passed at one moment: there was nothing to wait for");
    assert_eq!(said(0), "no data was sent");
}

#[test]
fn a_capture_without_tcp_is_told_by_what_it_holds() {
    let ethernet = |ether_type: u16, payload: &[u8]| {
        [&[0; 12][..], &ether_type.to_be_bytes(), payload, &[0; 40]].concat()
    };
    let ipv4 = |protocol: u8| {
        let mut packet = [0; 60];
        packet[..4].copy_from_slice(&[0x45, 0, 0, 60]);
        packet[9] = protocol;
        packet
    };
    let arp = [0, 1, 8, 0, 6, 4, 0, 1];
    let frames = [
        (1, ethernet(0x0800, &ipv4(17))),
        (1, ethernet(0x0800, &ipv4(17))),
        (1, ethernet(0x0800, &ipv4(1))),
        (1, ethernet(0x0800, &ipv4(132))),
        (1, ethernet(0x0806, &arp)),
        (1, ethernet(0x88cc, &[])),
        (127, vec![0; 60]),
        (101, vec![0x45, 0]),
    ];
    let mut diagnosis = Diagnosis::default();
    for (number, (link_type, data)) in (1..).zip(&frames) {
        let length = data.len() as u32;
        diagnosis.frame(Frame { number, interface: 0, link_type: *link_type, time_ns: number, data, length });
    }
    let report = diagnosis.finish();
    assert_eq!((report.frames, report.tcp_packets), (8, 0));
    let told: Vec<_> = report.others.iter().map(|(other, frames)| format!("{frames} {other}")).collect();
    assert_eq!(told[0], "2 of UDP");
    for kind in [
        "1 of ICMP",
        "1 of IP protocol 132",
        "1 of ARP",
        "1 of EtherType 0x88cc",
        "1 of link type 127, which is not known",
        "1 that cannot be read",
    ] {
        assert!(told.iter().any(|told| told == kind), "{kind}: {told:?}");
    }
}
