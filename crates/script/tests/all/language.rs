//! The language, and what is none of it.

use farpath_script::syntax::{Action, BodySpec, Expression, IcmpSpec, TcpOption, Time, TosSpec, Way};
use farpath_script::{Packet, Setting, bytes, parse, settings, wheel_lateness};
use farpath_units::Duration;
use proptest::prelude::*;
use std::net::IpAddr;

fn millis(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn only_event(text: &str) -> (Time, Action) {
    let script = parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    assert_eq!(script.events.len(), 1, "{text}");
    let event = script.events.into_iter().next().expect("one");
    (event.time, event.action)
}

#[test]
fn times_are_absolute_relative_ranges_or_any() {
    for (text, time) in [
        ("0 `true`", Time::Absolute(Duration::ZERO)),
        ("1.25 `true`", Time::Absolute(millis(1250))),
        ("+.1 `true`", Time::Relative(millis(100))),
        ("+0.000001 `true`", Time::Relative(Duration::from_micros(1))),
        ("+.1~+.2 `true`", Time::RelativeRange(millis(100), millis(200))),
        ("1~1.5 `true`", Time::AbsoluteRange(millis(1000), millis(1500))),
        ("* `true`", Time::Any),
    ] {
        // A command behind a time is an event.
        assert_eq!(only_event(text).0, time, "{text}");
    }
}

#[test]
fn a_segment_has_flags_numbers_and_options() {
    let text = "+0 > [ect0] 8080 > 53000 SWE. 0:0(0) ack 1 win 65535 <mss 1460,sackOK,TS val 100 ecr 0,nop,wscale 7>";
    let (_, Action::Packet(packet)) = only_event(text) else { panic!("no packet") };
    assert_eq!((packet.way, packet.ip.tos), (Way::Out, Some(TosSpec::Ecn(2))));
    let BodySpec::Tcp(tcp) = packet.body else { panic!("no segment") };
    assert_eq!((tcp.flags, tcp.ports), (0x0d2, Some((8080, 53000))));
    assert_eq!((tcp.seq, tcp.len, tcp.ack, tcp.window), (0, 0, Some(1), Some(65535)));
    let options = vec![
        TcpOption::Mss(1460),
        TcpOption::SackOk,
        TcpOption::Timestamps(100, 0),
        TcpOption::Nop,
        TcpOption::WindowScale(7),
    ];
    assert_eq!(tcp.options, Some(options));
}

#[test]
fn sack_blocks_and_open_options_are_read() {
    let (_, Action::Packet(packet)) =
        only_event("+.5 < . 1:1(0) ack 1 win 320 <sack 3001:4001 9001:10001,nop,nop>")
    else {
        panic!("no packet")
    };
    let BodySpec::Tcp(tcp) = packet.body else { panic!("no segment") };
    let options = tcp.options.expect("they are said");
    assert_eq!(options[0], TcpOption::Sack(vec![(3001, 4001), (9001, 10001)]));
    let (_, Action::Packet(packet)) = only_event("+0 > S. 0:0(0) ack 1 <...>") else { panic!("no packet") };
    assert!(matches!(packet.body, BodySpec::Tcp(tcp) if tcp.options.is_none()));
}

#[test]
fn calls_have_arguments_of_every_kind() {
    let text = "+.1...0.2 sendmsg(4, {msg_name(...)=..., msg_iov(2)=[{..., 10}, {..., 20}], msg_flags=0}, MSG_MORE|0x40) \
                = -1 EAGAIN (Resource temporarily unavailable)";
    let (time, Action::Call(call)) = only_event(text) else { panic!("no call") };
    assert_eq!((time, call.until), (Time::Relative(millis(100)), Some(millis(200))));
    assert_eq!((call.expected.number(), call.error.as_deref()), (Some(-1), Some("EAGAIN")));
    assert_eq!(call.arguments[2].number(), Some(0x8040));
    let Some(Expression::List(vector)) = call.arguments[1].part("msg_iov") else { panic!("no vector") };
    assert_eq!(vector.len(), 2);
}

#[test]
fn other_protocols_commands_and_code_are_read() {
    let text = "--tolerance_usecs=10000\n--define=\"A=B\"\n`true`\n0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3 // a comment\n\
                +0 < icmp unreachable frag_needed mtu 1200 [1:1001(1000)]\n+0 > udp (1000)\n/* two\nlines */\n\
                +0 > ipv4 192.0.2.1 > 192.0.2.2: gre: . 1:1(0) ack 1\n+0 %{ assert 1 }%\n`false`\n";
    let script = parse(text).expect("a script");
    assert_eq!((script.options.len(), script.events.len()), (2, 5));
    assert!(script.begin.is_some() && script.end.is_some());
    let Action::Packet(packet) = &script.events[1].action else { panic!("no packet") };
    assert!(
        matches!(&packet.body, BodySpec::Icmp(icmp) if icmp.mtu == Some(1200) && icmp.echoed == Some((1, 1000)))
    );
    let Action::Packet(packet) = &script.events[3].action else { panic!("no packet") };
    assert_eq!(packet.around.len(), 2);
}

#[test]
fn what_is_wrong_is_said_with_line_and_column() {
    for (text, place, expected) in [
        ("0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 > Q. 0:0(0)", "2:6", "flags out of"),
        ("+0 > . 1:1001(999) ack 1", "1:8", "a length that is the difference"),
        ("+0 < . 1:1(0) ack 1 win 70000", "1:25", "a window up to 65535"),
        ("+0 < S 0:0(0) win 1 <mss 1000,wscal 7>", "1:31", "a TCP option"),
        ("+0 < S 0:0(0) win 1 <...>", "1:26", "the options of a packet that comes in"),
        ("+x bind(3) = 0", "1:2", "a time"),
        ("+.2~+.1 > . 1:1(0) ack 1", "1:1", "a range whose end"),
        ("+.2...0.1 read(3, ..., 1) = 1", "1:1", "a call that ends after it begins"),
        ("0 bind(3, ..., ... = 0", "1:20", "`,` or `)`"),
        ("0 bind(3) = 0 /* open", "1:22", "`*/`"),
        ("0 `open", "1:8", "a backquote"),
        ("0 %{ assert 1", "1:14", "`}%`"),
        ("99999999999999999999 bind(3) = 0", "1:1", "a time of a year at most"),
        ("0 bind(3) = 0\n`a`\n`b`", "3:1", "the end of the script"),
        ("", "1:1", "an event at least"),
        ("// nothing yet\n", "2:1", "an event at least"),
        ("--ip_version=ipv4\n`a`\n`b`", "3:1", "an event at least"),
        ("0 f([[[[[[[[[[[[[[[[[[[[1]) = 0", "1:22", "16 levels of brackets"),
    ] {
        let error = parse(text).expect_err(text);
        assert_eq!(error.place.to_string(), place, "{text}: {error}");
        assert!(error.expected.contains(expected), "{text}: {error}");
    }
}

#[test]
fn commands_are_settings_and_nothing_else() {
    let text = "../common/defaults.sh\n../common/set_sysctls.py /proc/sys/net/ipv4/tcp_sack=0 \\\n  \
                /proc/sys/net/ipv4/tcp_rmem=\"4096 1 2\"; tc qdisc replace dev tun0 root pfifo limit 0 2>/dev/null\n\
                ip route change 192.0.2.1 via 192.168.0.2 dev tun0 advmss 600 mtu lock 640";
    let found = settings(text).expect("settings");
    assert_eq!(found[0], Setting::Defaults);
    assert_eq!(found[1], Setting::Sysctl("net.ipv4.tcp_sack".to_owned(), "0".to_owned()));
    assert_eq!(found[2], Setting::Sysctl("net.ipv4.tcp_rmem".to_owned(), "4096 1 2".to_owned()));
    assert!(matches!(&found[3], Setting::Qdisc(Some((kind, _))) if kind == "pfifo"));
    assert!(
        matches!(&found[4], Setting::Route(route) if route.contains(&("mtu".to_owned(), "640".to_owned())))
    );
    for bad in ["rm -rf /", "sysctl net.ipv4.tcp_sack", "echo 'open", "curl http://192.0.2.1"] {
        assert!(settings(bad).is_err(), "{bad}");
    }
}

proptest! {
    #[test]
    fn nothing_that_is_read_panics(text in "[-+0-9.~*<>SFRP\\[\\](){}=,|:`%\"a-z/ \n]{0,200}") {
        let _ = parse(&text);
        let _ = settings(&text);
        let _ = farpath_script::check_code(&text);
    }
}

#[test]
fn a_packet_survives_its_bytes() {
    let options = vec![
        TcpOption::Mss(1460),
        TcpOption::SackOk,
        TcpOption::Timestamps(7, 9),
        TcpOption::Nop,
        TcpOption::WindowScale(7),
        TcpOption::Nop,
        TcpOption::Nop,
        TcpOption::Sack(vec![(1, 5)]),
    ];
    let packet = Packet {
        local: 8080,
        remote: 40_000,
        tos: 2,
        ttl: 64,
        seq: 0xffff_fff0,
        ack: 17,
        flags: 0x158,
        window: 500,
        urgent: 3,
        options,
        len: 1001,
    };
    let ends: [(IpAddr, IpAddr); 2] = [
        ([192, 168, 0, 1].into(), [192, 0, 2, 1].into()),
        ([0xfd00, 0, 0, 0, 0, 0, 0, 1].into(), [0xfd00, 0, 0, 0, 0, 0, 0, 2].into()),
    ];
    for (local, remote) in ends {
        let raw = bytes::encode(&packet, local, remote);
        // What comes in is from the far end: its ports are the other way round.
        let read = bytes::decode(&raw).expect("a segment");
        assert_eq!(Packet { local: read.remote, remote: read.local, ..read }, packet);
        for cut in 0..raw.len() {
            assert!(bytes::decode(&raw[..cut]).is_none(), "{cut}");
        }
    }
}

#[test]
fn an_icmp_message_has_the_segment_that_it_is_about_and_a_checksum() {
    let message = |kind: &str, code: &str, mtu| IcmpSpec {
        kind: kind.to_owned(),
        code: Some(code.to_owned()).filter(|code| !code.is_empty()),
        mtu,
        id: None,
        echoed: Some((1, 1000)),
    };
    let (local, remote): (IpAddr, IpAddr) = ([192, 168, 0, 1].into(), [192, 0, 2, 1].into());
    let raw = bytes::encode_icmp(
        &message("unreachable", "frag_needed", Some(1300)),
        (8080, 40_000),
        77,
        local,
        remote,
    )
    .expect("a message");
    // Type, code, and the MTU of the next hop (RFC 1191 section 4); the ones' complement sum over all of it is zero.
    assert_eq!((raw[9], raw[20], raw[21], &raw[26..28]), (1, 3, 4, &1300_u16.to_be_bytes()[..]));
    let sum: u32 =
        raw[20..].chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0))).sum();
    assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff);
    let about = bytes::decode(&raw[28..]).expect("the segment");
    assert_eq!((about.local, about.remote, about.seq), (8080, 40_000, 77));
    let (local, remote): (IpAddr, IpAddr) =
        ([0xfd00, 0, 0, 0, 0, 0, 0, 1].into(), [0xfd00, 0, 0, 0, 0, 0, 0, 2].into());
    let raw =
        bytes::encode_icmp(&message("packet_too_big", "", Some(1300)), (8080, 40_000), 77, local, remote)
            .expect("a message");
    assert_eq!((raw[6], raw[40], &raw[44..48]), (58, 2, &1300_u32.to_be_bytes()[..]));
    for (kind, code) in [("unreachable", "far_away"), ("hello", "")] {
        let refused = bytes::encode_icmp(&message(kind, code, None), (8080, 40_000), 77, local, remote);
        let found = refused.expect_err("it is none").found;
        assert!(found.contains(if code.is_empty() { kind } else { code }), "{found}");
    }
}

#[test]
fn a_wheel_is_as_coarse_as_the_wait_is_long() {
    let tick = millis(4);
    let late = |wait| wheel_lateness(millis(wait), tick);
    assert_eq!([late(0), late(4), late(251)], [millis(0), tick, tick]);
    assert_eq!([late(252), late(2015), late(2016)], [millis(32), millis(32), millis(256)]);
    assert_eq!(late(200_000_000), Duration::from_nanos(4_000_000 << 21));
}
