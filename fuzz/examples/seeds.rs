//! Writes those seeds anew that follow from what ships: `cargo run --example seeds`. Findings that were mended stay beside them.

use farpath_experiment::{shipped_experiments, shipped_stacks};
use farpath_fuzz::whole_files;
use farpath_tcp::wire::{self, IpFields};
use farpath_tcp::{Flags, Segment, Seq};
use farpath_tia1039::{RateWord, Rounding, Structure};
use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;

const ROUTER: &str = "inside = 'a'\noutside = 'b'\nrate = '8 Mbit/s'\nqueue = '50 packets'\nclasses = [{from = 0, weight = 1}]\n";

const GREETING: &str = r#"{"greeting":{"farpath":3,"version":"0.1.0","kernel":"6.18","challenge":"CH","key":false,"proof":null}}"#;

const NEAR: &str = r#"
{"ping":{"number":1}}
{"kernel":["net.ipv4.tcp_sack"]}
{"transfer":{"flow":1,"sends":true,"size":1000,"messages":{"size":10,"count":100,"pace":{"every-ns":1000000}},"request":10,"exchanges":1,"within_ns":1000000000,"sample_every_ns":1000000,"socket":{"receive_buffer":65536,"nodelay":true,"mss":1460}}}
{"echo":{"flow":2,"count":10,"size":100,"within_ns":1000000000}}
{"burst":{"flow":3,"count":10,"size":1472,"within_ns":1000000000,"sends":true,"quiet_ns":1000000}}
{"done":{"flow":2}}
{"stop":{"flow":1}}
"#;

const FAR: &str = r#"
{"welcome":{"proof":null,"seen_as":"192.0.2.1:1000","max_rate":1000000,"max_bytes":1000000000,"max_time_ns":60000000000}}
{"pong":{"number":1,"received_ns":5,"sent_ns":7}}
{"kernel":[["net.ipv4.tcp_sack","1"],["net.ipv4.none",null]]}
{"refused":{"why":"limit","message":"too much","flow":1}}
{"ready":{"flow":1,"port":40000,"token":"TO"}}
{"rows":{"flow":1,"rows":[[1000,"bytes_read",10]]}}
{"messages":{"flow":1,"at_ns":[1,2,3]}}
"#;

fn write(target: &str, name: &str, bytes: &[u8]) {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("seeds").join(target);
    fs::create_dir_all(&folder).expect("writable");
    fs::write(folder.join(name), bytes).expect("writable");
}

/// xorshift64*: the same numbers on every machine.
fn numbers(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        (state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 56) as u8
    };
    (0..length).map(|_| next()).collect()
}

fn main() {
    for (number, stack) in shipped_stacks().iter().enumerate() {
        let mut bytes = numbers(number as u64 + 1, 600);
        bytes[0] = number as u8;
        write("segments", stack.name, &bytes);
        write("texts", &format!("stack-{}", stack.name), &[&[1], stack.text.as_bytes()].concat());
    }
    for number in 0..12 {
        write(
            "experiments",
            &format!("drawn-{number}"),
            &numbers(1000 + number, 24 + 8 * (number as usize % 3)),
        );
    }
    for experiment in shipped_experiments() {
        let text = experiment.text.as_bytes();
        write("texts", &format!("experiment-{}", experiment.name), &[&[0], text].concat());
        let changed = [&[3], &b"path.loss=1 %\n"[..], text].concat();
        write("texts", &format!("changed-{}", experiment.name), &changed);
    }
    write("texts", "trace-rates", b"\x04# repeat 4\ntime_s,rate\n0,8 Mbit/s\n1,0\n2.5,4000000\n");
    write("texts", "trace-opportunities", b"\x041\n1\n2\n5\n");
    write("texts", "tc", b"\x06tc qdisc add dev eth0 root netem delay 100ms 10ms 25% loss 0.3% rate 10mbit limit 50; tc qdisc add dev eth1 root tbf rate 1mbit burst 10kb latency 50ms");
    write("texts", "mahimahi", b"\x06mm-delay 20 mm-loss uplink 0.01 mm-link up down --uplink-queue=droptail --uplink-queue-args=packets=100 -- x");
    let elements = "\x07ISS (ZARYA)\n\
        1 25544U 98067A   08264.51782528 -.00002182  00000-0 -11606-4 0  2927\n\
        2 25544  51.6416 247.4627 0006703 130.5360 325.0288 15.72125391563537\n";
    write("texts", "elements", elements.as_bytes());
    write("texts", "contact-plan", b"\x05a contact +0 +2400 1 2 125000\na contact +3600 +6000 2 1 125000\n");
    for number in 0..4 {
        // For each of those that take packets of a connection.
        write(
            "captures",
            &format!("drawn-{number}"),
            &[&[4 + number as u8], &numbers(4000 + number, 600)[..]].concat(),
        );
    }
    write("texts", "router", &[&[2], ROUTER.as_bytes()].concat());
    let rate = RateWord::from_units(800, Rounding::Down);
    let structure = Structure::request(rate).encode_v4();
    write("packets", "structure", &[&[0], &structure[..]].concat());
    let ends: [SocketAddr; 2] = [([10, 0, 0, 1], 1).into(), ([10, 0, 0, 2], 2).into()];
    let mut syn = Segment::new(Flags::SYN, Seq(1), Seq(0));
    (syn.mss, syn.window_scale, syn.sack_permitted) = (Some(1460), Some(7), true);
    let mut packet = Vec::new();
    wire::encode(ends[0], ends[1], &IpFields::default(), &syn, 0, &mut packet).expect("it fits");
    write("packets", "syn", &[&[1], &packet[..]].concat());
    write("packets", "frame", &[&[1 << 2 | 2], &packet[..]].concat());
    write("packets", "signalled", &[&[3], &structure[..], &packet[..]].concat());
    for number in 0..8 {
        let mut bytes = numbers(2000 + number, 1200);
        // A start packet at the front.
        bytes.splice(0..6, [0, 0, 0, 0, 0]);
        bytes.splice(5..21, [0, 255, 3, 1, 0x12, 2, 0, 0, 0, 1, 0, 0, 0, 1, 0, 100]);
        bytes.splice(21..21 + structure.len(), structure);
        write("signalling", &format!("routed-{number}"), &bytes);
    }
    let hex = |text: &str| text.replace("CH", &"5a".repeat(32)).replace("TO", &"5a".repeat(16));
    // `N` is of the near host, `O` of the far one, both in pieces of 39 B.
    write("messages", "near", hex(&format!("N{GREETING}{NEAR}")).as_bytes());
    write("messages", "far", hex(&format!("O{GREETING}{FAR}")).as_bytes());
    for (number, name, bytes) in whole_files() {
        write("results", name, &[&[number << 2], bytes].concat());
        write("results", &format!("patched-{name}"), &[vec![number << 2 | 3], numbers(3000, 24)].concat());
    }
}
