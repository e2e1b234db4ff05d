//! The FTP download of the high-BER paper (Sarkar, Ammann, Zabir, Electronics 2022, 11, 2254).

use farpath_path::{ElementKind, ElementSpec, PacketCount, PerDirection, QueueLimit};
use farpath_sim::{FlowResult, FlowSetup, Opener, Setup, Silent, simulate};
use farpath_tcp::Config;
use farpath_tcp::config::*;
use farpath_units::{Bytes, Duration, Instant, Probability, Rate};

fn riverbed() -> Config {
    let mut c = Config::default();
    c.receive.buffer = Bytes(8760);
    c.congestion.initial_window = 2;
    c.congestion.initial_ssthresh = Some(Bytes(65_535));
    c.congestion.slow_start = SlowStartGrowth::PerAck;
    c.congestion.avoidance = AvoidanceGrowth::PerAck;
    c.congestion.restart_after_idle = false;
    c.congestion.ssthresh_from = SsthreshFrom::WindowSegments;
    c.congestion.ssthresh_on_repeated_timeout = true;
    c.recovery.algorithm = RecoveryAlgorithm::Reno;
    c.recovery.limited_transmit = false;
    c.recovery.recover_guard = false;
    c.rto.initial = Duration::from_secs(3);
    c.rto.max = Duration::from_secs(64);
    c.rto.tick = Duration::from_millis(500);
    c.rto.after_syn_timeout = None;
    c.handshake.syn_attempts = None;
    c.handshake.synack_attempts = None;
    c.handshake.data_retries = None;
    c.send.nagle = false;
    c
}

fn link(name: &str, rate: u64, overhead: u64, min_packet: u64) -> ElementSpec {
    let kind = ElementKind::Link {
        rate: PerDirection::both(Rate::from_bit_per_s(rate).unwrap()),
        queue: PerDirection::both(QueueLimit::Unlimited),
        overhead: Bytes(overhead),
        min_packet: Bytes(min_packet),
    };
    ElementSpec { name: name.to_owned(), kind }
}

fn delay(ms: u64) -> ElementSpec {
    let kind = ElementKind::Delay { delay: PerDirection::both(Duration::from_millis(ms)) };
    ElementSpec { name: "delay".to_owned(), kind }
}

fn loss(p: f64) -> ElementSpec {
    let loss_rate = PerDirection::both(Probability::new(p).unwrap());
    ElementSpec { name: "loss".to_owned(), kind: ElementKind::Bernoulli { loss_rate, count: PacketCount::All } }
}

fn download(path: Vec<ElementSpec>, stack: &Config, seed: u64) -> FlowResult {
    let flow = FlowSetup {
        start: Instant::ZERO,
        direction: farpath_path::Direction::Forward,
        opener: Opener::Sender,
        size: Bytes(10_000_000),
        request: Bytes(0),
        sender: stack.clone(),
        receiver: stack.clone(),
    };
    let setup = Setup { path, flows: vec![flow], seed, horizon: Duration::from_secs(100_000) };
    simulate(&setup, &mut Silent).unwrap().remove(0)
}

#[test]
fn probe() {
    let ideal = download(vec![link("l", 1_000_000_000, 2, 0), delay(20)], &riverbed(), 1);
    println!("{:?} {:?}", ideal.transfer_time(Instant::ZERO), ideal.sender.sender().stats());
    for p in [0.0, 1e-4, 1e-3, 1e-2, 1e-1] {
        let (mut t, mut r, mut to) = (0.0, 0, 0);
        for seed in 1..=20 {
            let path = vec![link("a", 10_000_000, 38, 46), delay(20), loss(p), link("b", 10_000_000, 38, 46)];
            let run = download(path, &riverbed(), seed);
            t += run.transfer_time(Instant::ZERO).unwrap().as_secs_f64();
            r += run.sender.sender().stats().retransmissions;
            to += run.sender.sender().stats().timeouts;
        }
        println!("{p} {} {} {}", t / 20.0, r as f64 / 20.0, to as f64 / 20.0);
    }
}
