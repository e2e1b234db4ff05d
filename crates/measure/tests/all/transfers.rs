//! Transfers between two ends of this machine, over the loopback device.

use crate::common;

use common::{NEVER, experiment, peer, run, served, v4, with};
use farpath_measure::serve::Limits;
use farpath_measure::{Exchanges, exchange};
use farpath_run::{Engine, Metric, Outcome, Provenance};
use farpath_units::{Bytes, Duration};
use std::net::{Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};

#[test]
fn both_ways_and_both_ip_versions_give_one_run_of_both_ends() {
    for bind in [v4(), SocketAddr::from((Ipv6Addr::LOCALHOST, 0))] {
        let server = served(bind, None, Limits::default());
        let ((), told) = with(&server, |address| {
            let mut peer = peer(address);
            for opener in ["sender", "receiver"] {
                let asked = experiment(&format!(
                    "output.series = true\ntransfer = {{ size = \"20 MB\", opener = \"{opener}\" }}"
                ));
                let run = run(&mut peer, &asked).expect("measured");
                assert_eq!(run.engine, Engine::Measure);
                let [flow] = run.flows.as_slice() else { panic!("one flow: {:?}", run.flows) };
                assert_eq!(flow.outcome, Outcome::Completed, "{opener}: {flow:?}");
                assert_eq!((flow.bytes, flow.bytes_read), (Bytes(20_000_000), Bytes(20_000_000)));
                let time = flow.transfer_time.expect("completed");
                assert!(Duration::ZERO < time && time < Duration::from_secs(60));
                // The sender's kernel, whichever host it is on.
                assert!(flow.min_rtt.is_some() && flow.final_cwnd.is_some(), "{flow:?}");
                assert!(flow.data_segments.is_some_and(|count| count >= 20e6 / 65_536.0));
                let efficiency = flow.efficiency.expect("bytes are counted");
                assert!((0.9..=1.0).contains(&efficiency), "{efficiency}");
                // And what both ends saw.
                let rows: Vec<_> = run.series.iter().collect();
                assert!(rows.is_sorted_by_key(|row| row.time));
                let last = |metric| rows.iter().rfind(|row| row.metric == metric).map(|row| row.value);
                assert!(last(Metric::Cwnd).is_some_and(|cwnd| cwnd > 0));
                assert!(last(Metric::Acked).is_some_and(|acked| acked <= 20_000_000));
                assert!(last(Metric::Delivered).is_some_and(|read| read <= 20_000_000));
                let settings = run.provenance.settings.join("\n");
                for said in ["local: 127", "peer: 127", "clocks: times of the peer"] {
                    let said = if bind.is_ipv6() { said.replace("127", "::1") } else { said.to_owned() };
                    assert!(settings.contains(&said), "{said}: {settings}");
                }
            }
        });
        assert!(told.iter().any(|line| line.contains("measures, with farpath")), "{told:?}");
    }
}

#[test]
fn each_message_of_a_stream_has_its_times_on_both_hosts() {
    for bind in [v4(), SocketAddr::from((Ipv6Addr::LOCALHOST, 0))] {
        let server = served(bind, None, Limits::default());
        with(&server, |address| {
            let mut peer = peer(address);
            for opener in ["sender", "receiver"] {
                let asked = experiment(&format!(
                    "output = {{ series = true, messages = true }}\n\
                     transfer = {{ message = \"1 kB\", interval = \"500 us\", count = 2100, opener = \"{opener}\" }}"
                ));
                let run = run(&mut peer, &asked).expect("measured");
                let [flow] = run.flows.as_slice() else { panic!("one flow: {:?}", run.flows) };
                assert_eq!(
                    (flow.outcome, flow.bytes_read),
                    (Outcome::Completed, Bytes(2_100_000)),
                    "{flow:?}"
                );
                let rows: Vec<_> = run.messages.iter().collect();
                assert_eq!(rows.len(), 2100);
                let caveat = run.provenance.caveats.iter().find(|caveat| caveat.starts_with("lateness"));
                assert!(
                    caveat.is_some_and(|caveat| caveat.contains("estimated to ")),
                    "{:?}",
                    run.provenance.caveats
                );
                for (number, row) in (0..).zip(&rows) {
                    assert_eq!((row.flow, row.message, row.sent), (0, number, None));
                    let after = row.due.saturating_since(rows[0].due);
                    // Two clocks that are one, by an estimate of how far they are apart at either end.
                    let interval = Duration::from_micros(500 * number);
                    assert!(after.max(interval) - after.min(interval) < Duration::from_millis(1), "{row:?}");
                    let (written, arrived) = (row.written.expect("sent"), row.arrived.expect("read"));
                    // A writer that is put aside stamps what has arrived long ago.
                    assert!(written >= row.due && arrived + Duration::from_millis(5) > row.due, "{row:?}");
                }
                assert!(rows.is_sorted_by_key(|row| (row.written, row.arrived)));
                let stream = &flow.stream;
                assert_eq!((stream.messages, stream.peak_backlog), (Some(2100.0), None));
                let late = stream.max_lateness.expect("all have arrived");
                assert!(late < Duration::from_secs(2), "{late}");
                assert!(stream.final_lateness.is_some() && stream.max_write_lag.is_some());
                assert!(stream.stall_time.is_some() && stream.delayed.is_some());
            }
        });
    }
}

#[test]
fn a_stream_that_is_not_over_in_time_has_the_messages_that_were_due() {
    let server = served(v4(), None, Limits::default());
    with(&server, |address| {
        let text = "output.messages = true\n\
                    transfer = { message = \"1 kB\", interval = \"10 ms\", count = 6000, opener = \"OPENER\" }";
        for opener in ["sender", "receiver"] {
            let asked = experiment(&text.replace("OPENER", opener));
            let changes = ["horizon=500 ms".parse().expect("a change")];
            let asked = farpath_experiment::Experiment::parse(&asked.text, "t", &changes).expect("good");
            let run = run(&mut peer(address), &asked).expect("measured");
            assert_eq!(run.flows[0].outcome, Outcome::Horizon, "{:?}", run.flows[0]);
            let due = run.messages.iter().count();
            assert!((20..=55).contains(&due), "{opener}: {due}");
            assert!(run.messages.iter().take(5).all(|row| row.arrived.is_some()));
        }
    });
}

#[test]
fn flows_run_side_by_side_and_each_has_its_row() {
    let server = served(v4(), None, Limits::default());
    with(&server, |address| {
        let asked = experiment(
            "transfer = { size = \"2 MB\", opener = \"sender\" }\n\
             flow = [{ count = 3, spacing = \"30 ms\" }, { direction = \"reverse\", size = \"1 MB\" }]",
        );
        let run = run(&mut peer(address), &asked).expect("measured");
        let sizes: Vec<u64> = run.flows.iter().map(|flow| flow.bytes_read.0).collect();
        assert_eq!(sizes, [2_000_000, 2_000_000, 2_000_000, 1_000_000]);
        assert!(run.flows.iter().all(|flow| flow.outcome == Outcome::Completed));
        let starts: Vec<u64> = run.flows.iter().map(|flow| flow.start.as_nanos() / 1_000_000).collect();
        assert_eq!(starts, [0, 30, 60, 0]);
        // The reverse one's opener sits at the peer's end.
        let told = "this host opened every connection";
        assert!(run.provenance.caveats.iter().any(|caveat| caveat.starts_with(told)));
    });
}

#[test]
fn what_a_socket_can_be_told_is_set_on_both_hosts() {
    let server = served(v4(), None, Limits::default());
    with(&server, |address| {
        let text = "sender.stack = \"reno-1990\"\nsender.mss = \"536 B\"\nreceiver.mss = \"536 B\"\n\
                    transfer = { size = \"300 kB\", opener = \"receiver\" }";
        let asked = experiment(&text.replacen("sender.stack = \"reno-1990\"\n", "", 1));
        let run = run(&mut peer(address), &asked).expect("measured");
        let flow = &run.flows[0];
        assert_eq!(flow.outcome, Outcome::Completed, "{flow:?}");
        // Loopback's own segments would be of 64 kB.
        let segments = flow.data_segments.expect("counted");
        assert!(segments >= 300e3 / 536.0, "{segments}");
    });
}

#[test]
fn a_transfer_that_is_not_over_in_time_says_how_far_it_came() {
    let server = served(v4(), None, Limits::default());
    with(&server, |address| {
        let slow = "receiver.receive.read_rate = \"80 kbit/s\"\ntransfer = { size = \"20 MB\", opener = \"sender\" }";
        let asked = experiment(slow);
        let changed = farpath_experiment::Experiment::parse(
            &asked.text,
            "t",
            &["horizon=1 s".parse().expect("a change")],
        )
        .expect("good");
        let mut peer = peer(address);
        let run = run(&mut peer, &changed).expect("measured");
        assert_eq!(run.flows[0].outcome, Outcome::Horizon, "{:?}", run.flows[0]);
        // And the same connection is good for more.
        let asked = experiment("transfer = { size = \"1 MB\", opener = \"sender\" }");
        assert_eq!(self::run(&mut peer, &asked).expect("measured").flows[0].outcome, Outcome::Completed);
    });
}

#[test]
fn requests_and_answers_are_timed_one_by_one() {
    let server = served(v4(), None, Limits::default());
    with(&server, |address| {
        let asked = experiment("transfer = { size = \"1 MB\", opener = \"receiver\" }");
        let exchanges = Exchanges { count: 50, request: Bytes(200), answer: Bytes(5000) };
        let point = &asked.point(0);
        let done = exchange(&mut peer(address), point, exchanges, Provenance::default(), &NEVER, &mut |_| {});
        let (run, times) = done.expect("measured").expect("nobody stops it");
        assert_eq!(times.len(), 50);
        assert!(times.iter().all(|time| !time.is_zero()));
        assert_eq!(run.flows[0].bytes_read, Bytes(250_000));
        assert_eq!(run.flows[0].outcome, Outcome::Completed);
    });
}

#[test]
fn whoever_stops_it_gets_nothing_and_leaves_nothing_behind() {
    let server = served(v4(), None, Limits::default());
    with(&server, |address| {
        let asked = experiment(
            "receiver.receive.read_rate = \"80 kbit/s\"\ntransfer = { size = \"20 MB\", opener = \"sender\" }",
        );
        let stop = AtomicBool::new(false);
        let mut looks = 0;
        let run = farpath_measure::measure(
            &mut peer(address),
            &asked.point(0),
            1,
            Provenance::default(),
            &stop,
            &mut |seen| {
                looks += 1;
                assert_eq!(seen.of, Bytes(20_000_000));
                stop.store(looks > 3, Ordering::Relaxed);
            },
        );
        assert!(run.expect("no error").is_none());
    });
}
