//! Packet radio under the running kernel: datagrams, echoes, TCP, and packets over the MTU, each beside the simulation.
#![cfg(target_os = "linux")]

use farpath_emulate::{emulate, may_emulate};
use farpath_engine::{provenance, simulate};
use farpath_experiment::Experiment;
use farpath_run::{Metric, Outcome, Run};
use farpath_testing::{Need, skip};
use std::sync::atomic::AtomicBool;

/// A machine that is busy with other tests is late, and says so; what is late by tens of milliseconds is not what is looked at.
const PATIENT: &str = "emulate.lateness = \"1 s\"\nemulate.processor_wait = \"100 %\"\n";

const UDP: &str = r#"
title = "datagrams"
path = "ricochet-1996-local"
horizon = "1 min"
transfer.protocol = "udp"
output.series = true
"#;

const TCP: &str = r#"
title = "a small file"
horizon = "30 s"
sender.stack = "bsd-1996"
sender.mss = "1024 B"
receiver.stack = "bsd-1996"
receiver.mss = "1024 B"
receiver.receive.buffer = "4 KiB"
path = "ricochet-1996-local"
transfer.size = "10 KiB"
"#;

/// Emulated and simulated.
pub fn both(text: &str) -> Option<[Run; 2]> {
    if let Err(error) = may_emulate() {
        skip(Need::Root, format!("beside the running kernel: {error}"));
        return None;
    }
    let text = format!("{text}{PATIENT}");
    let experiment = Experiment::parse(&text, "case.toml", &[]).unwrap_or_else(|error| panic!("{error}"));
    let point = &experiment.point(0);
    let stop = AtomicBool::new(false);
    let emulated = emulate(point, 1, provenance(&experiment, point), &stop);
    let emulated = emulated.unwrap_or_else(|error| panic!("{error}")).expect("nobody stops it");
    let simulated = simulate(point, 1, provenance(&experiment, point)).expect("it can be simulated");
    Some([emulated, simulated])
}

/// Within a share of the second, or of each other where the second is small.
pub fn near(one: f64, other: f64, share: f64, least: f64) -> bool {
    (one - other).abs() <= (share * other.abs()).max(least)
}

#[test]
fn datagrams_of_programs_get_what_simulated_ones_get() {
    let stream = "transfer.message = \"1024 B\"\ntransfer.rate = \"100 kbit/s\"\ntransfer.count = 60\n";
    let Some([emulated, simulated]) = both(&format!("{UDP}{stream}")) else { return };
    let [one, other] = [&emulated.flows[0], &simulated.flows[0]];
    assert_eq!((one.outcome, one.data_segments), (Outcome::Completed, Some(60.0)), "{one:?}");
    let goodput = |run: &Run| run.flows[0].goodput_bit_per_s.expect("some arrived");
    // 55 kbit/s; a program that is late by a tenth of a second sends four datagrams more or less in 5 s.
    assert!(near(goodput(&emulated), goodput(&simulated), 0.1, 0.0), "{one:?} {other:?}");
    let dropped = |run: &Run| run.flows[0].drops_data_direction.expect("counted");
    assert!(dropped(&simulated) > 10.0 && near(dropped(&emulated), dropped(&simulated), 0.0, 4.0), "{one:?}");
    assert_eq!(one.bytes_read.0, 1024 * (60 - dropped(&emulated) as u64));
    // Emulated runs account for the air too.
    let data =
        |run: &Run| run.air.iter().find(|row| row.what == "data").expect("accounted").time.as_secs_f64();
    assert!(near(data(&emulated), data(&simulated), 0.1, 0.0), "{:?}", emulated.air);
}

#[test]
fn other_stations_are_on_the_air_in_real_time_too() {
    let stream = "transfer.message = \"512 B\"\ntransfer.rate = \"10 kbit/s\"\ntransfer.count = 10\n";
    let path = r#"
path = [{ element = "radio", rate = "68 kbit/s", turnaround = "13.25 ms", poll = "40 B", header = "16 B", link_ack = "16 B", burst = 3,
    gap = "5 ms", backoff = "20 ms", queue = "64 KiB", mtu = "1750 B", others = { stations = 2, rate = "4 kbit/s", packet = "512 B",
    arrivals = "periodic", to = "near" } }]
"#;
    let text = UDP.replace("path = \"ricochet-1996-local\"\n", path);
    let Some([emulated, simulated]) = both(&format!("{text}{stream}")) else { return };
    assert_eq!(emulated.flows[0].outcome, Outcome::Completed, "{:?}", emulated.flows);
    let offered = |run: &Run| run.stations[2..].iter().map(|other| other.offered).sum::<u64>();
    // A packet each in 1.02 s, from a moment on that the seed has drawn; runs of some 4 s end with their last datagram.
    assert!(
        offered(&simulated) >= 4 && offered(&emulated).abs_diff(offered(&simulated)) <= 4,
        "{emulated:?} {simulated:?}"
    );
    assert!(emulated.air.iter().any(|row| row.what == "others" && !row.time.is_zero()), "{:?}", emulated.air);
}

#[test]
fn an_echo_between_programs_takes_both_ways() {
    let echo = "transfer.message = \"36 B\"\ntransfer.reply = \"36 B\"\ntransfer.interval = \"500 ms\"\ntransfer.count = 4\n";
    let Some([emulated, _]) = both(&format!("{UDP}{echo}")) else { return };
    let samples = emulated.series.iter().filter(|row| row.metric == Metric::RttSample);
    let samples: Vec<u64> = samples.map(|row| row.value).collect();
    assert_eq!(samples.len(), 4, "{:?}", emulated.flows);
    // 298.2 ms is what the path takes (`radio.rs`); a machine makes it later, never earlier.
    assert!(samples.iter().all(|&ns| (298_200_000..600_000_000).contains(&ns)), "{samples:?}");
}

#[test]
fn the_kernel_s_tcp_crosses_a_radio() {
    let Some([emulated, simulated]) = both(TCP) else { return };
    let time = |run: &Run| run.flows[0].transfer_time.expect("it completed").as_secs_f64();
    // One window grows otherwise (`farpath stacks bsd-1996 --linux`): ten segments are some seven round trips.
    assert!(near(time(&emulated), time(&simulated), 0.4, 0.0), "{emulated:?} {simulated:?}");
}

/// A run on this kernel, where that may be.
fn emulated(text: &str) -> Option<Run> {
    if let Err(error) = may_emulate() {
        skip(Need::Root, format!("what a path tells hosts: {error}"));
        return None;
    }
    let experiment = Experiment::parse(text, "case.toml", &[]).unwrap_or_else(|error| panic!("{error}"));
    let point = &experiment.point(0);
    emulate(point, 1, provenance(&experiment, point), &AtomicBool::new(false)).expect("it runs")
}

#[test]
fn who_is_told_of_the_mtu_gets_through_and_who_is_not_does_not() {
    let path = |oversize: &str| {
        format!(
            "[[path]]\nelement = \"radio\"\nrate = \"1 Mbit/s\"\nburst = 8\nbackoff = \"5 ms\"\nqueue = \"32 kB\"\nmtu = \"600 B\"\noversize = \"{oversize}\"\n[emulate]\nlateness = \"1 s\"\nprocessor_wait = \"100 %\"\n"
        )
    };
    let text = "title = \"long packets\"\nhorizon = \"6 s\"\nsender.stack = \"linux-6\"\nreceiver.stack = \"linux-6\"\ntransfer.size = \"20 kB\"\n";
    let run = |oversize: &str| emulated(&format!("{text}{}", path(oversize)));
    let (Some(told), Some(untold)) = (run("icmp"), run("refuse")) else { return };
    assert_eq!(told.flows[0].outcome, Outcome::Completed, "{:?}", told.flows);
    // 600 B hold 548 B beside timestamps: 37 segments, and the first long ones.
    assert!(told.flows[0].data_segments.is_some_and(|segments| segments >= 37.0), "{:?}", told.flows);
    assert_eq!(untold.flows[0].outcome, Outcome::Horizon, "a black hole: {:?}", untold.flows);
}

#[test]
fn who_is_told_that_there_is_no_way_goes_on_asking() {
    let text = |outside: &str| {
        format!(
            "title = \"a gap\"\nhorizon = \"60 s\"\nsender.stack = \"linux-6\"\nreceiver.stack = \"linux-6\"\ntransfer.size = \"100 kB\"\n\
             [[path]]\nelement = \"link\"\nrate = \"1 Mbit/s\"\n[[path]]\nelement = \"contacts\"\noutside = \"{outside}\"\n\
             plan = [{{ from = \"0 s\", to = \"500 ms\" }}, {{ from = \"6 s\", to = \"60 s\" }}]\n\
             [[path]]\nelement = \"delay\"\ndelay = \"20 ms\"\n[emulate]\nlateness = \"1 s\"\nprocessor_wait = \"100 %\"\n"
        )
    };
    let (Some(told), Some(untold)) = (emulated(&text("refuse")), emulated(&text("drop"))) else { return };
    for run in [&told, &untold] {
        assert_eq!(run.flows[0].outcome, Outcome::Completed, "{:?}", run.flows);
    }
    // RFC 6069: each message takes the doubling of the timer back.
    let timeouts = |run: &Run| run.flows[0].timeouts.expect("counted");
    assert!(timeouts(&told) > timeouts(&untold), "{:?} {:?}", told.flows, untold.flows);
}

#[test]
fn datagrams_without_room_for_their_number_are_refused() {
    let stream = "transfer.message = \"3 B\"\ntransfer.interval = \"1 s\"\ntransfer.count = 1\n";
    let experiment = Experiment::parse(&format!("{UDP}{stream}"), "case.toml", &[]).expect("it is simulated");
    let point = &experiment.point(0);
    let refused = farpath_emulate::can_be_emulated(point).expect_err("it has no room");
    assert!(refused.to_string().contains("4 B"), "{refused}");
}
