//! Every refusal names the file, the key and what would have been right.

use farpath_experiment::{Experiment, MAX_ELEMENTS, MAX_SWEPT, MAX_VALUES, Override};

const FILE: &str = r#"
title = "T"
seeds = 2
[[path]]
element = "link"
rate = "10 Mbit/s"
[[path]]
element = "loss"
rate = "1 %"
[[path]]
element = "delay"
delay = "20 ms"
[sender]
stack = "riverbed-16"
[receiver]
stack = "riverbed-16"
[transfer]
size = "1 MB"
"#;

fn refusal(text: &str, overrides: &[&str]) -> String {
    let overrides: Vec<Override> = overrides.iter().map(|text| text.parse().expect("key=value")).collect();
    match Experiment::parse(text, "geo.toml", &overrides) {
        Ok(_) => panic!("accepted with {overrides:?}:\n{text}"),
        Err(error) => error.to_string(),
    }
}

/// Refused with `value` in place of what the file says.
fn set(key_value: &str) -> String {
    refusal(FILE, &[key_value])
}

/// Refused with `text` put in place of `old`.
fn with(old: &str, new: &str) -> String {
    assert!(FILE.contains(old), "{old}");
    refusal(&FILE.replacen(old, new, 1), &[])
}

/// Refused with `text` at the end.
fn and(text: &str) -> String {
    refusal(&format!("{FILE}\n{text}"), &[])
}

#[track_caller]
fn says(message: String, expected: &str) {
    assert_eq!(message, expected);
}

#[test]
fn a_unit_is_demanded_and_a_wrong_one_named() {
    says(
        with("10 Mbit/s", "8 MBps"),
        "geo.toml: path[0].rate: expected a rate such as `8 Mbit/s`, found `8 MBps`: it could be \
         `8 Mbit/s` or `8 MB/s`: write one of them",
    );
    says(
        with("\"20 ms\"", "20"),
        "geo.toml: path[2].delay: expected a duration such as `20 ms`, found `20`: it has no unit",
    );
    says(
        with("\"1 MB\"", "1e6"),
        "geo.toml: transfer.size: expected a size such as `64 kB`, found `1000000`: it has no unit",
    );
    says(
        with("\"1 %\"", "0.01"),
        "geo.toml: path[1].rate: expected a fraction or a percentage such as `1 %`, found `0.01`: a bare number \
         does not say which of the two it is",
    );
}

#[test]
fn unknown_keys_are_refused_with_the_nearest_known_one() {
    says(with("rate = \"10", "rat = \"10"), "geo.toml: path[0].rat: unknown key; did you mean `rate`?");
    says(with("seeds", "seads"), "geo.toml: seads: unknown key; did you mean `seeds`?");
    says(and("[outptu]\nseries = true"), "geo.toml: outptu: unknown key; did you mean `output`?");
    says(
        set("sender.rto.minimum=1 s"),
        "geo.toml: sender.rto.minimum (--set): unknown key; did you mean `min`?",
    );
    says(
        and("[colour]\n"),
        "geo.toml: colour: unknown key; known: title, seed, seeds, horizon, path, sender, receiver, host, program, \
         flow, transfer, output, emulate, budget",
    );
    says(
        set("path.loss.forward=1 %"),
        "geo.toml: path.loss.forward (--set): unknown key; known: element, name, rate, count",
    );
}

#[test]
fn unknown_names_are_refused_with_the_nearest_known_one() {
    says(
        with("riverbed-16", "riverbed-17"),
        "geo.toml: sender.stack: no stack is called `riverbed-17`; did you mean `riverbed-16`?",
    );
    says(
        with("riverbed-16", "solaris"),
        "geo.toml: sender.stack: no stack is called `solaris`; known: bsd-1996, freebsd, linux-2.6-reno, linux-6, linux-6.1, linux-6.12, linux-6.18, linux-testbed-2022, \
         ns-2.29, ns-2.30, ns-3.44, opnet-11.5, reno-1990, reno-sack, rfc-5681, riverbed-16, riverbed-16-attempts, windows-2003, windows-modern",
    );
    says(
        with("\"delay\"", "\"dealy\""),
        "geo.toml: path[2].element: no element is called `dealy`; did you mean `delay`?",
    );
    says(
        set("path=noisy-chanel"),
        "geo.toml: path (--set): no ready-made path is called `noisy-chanel`; did you mean `noisy-channel`?",
    );
    says(
        set("path.los=1 %"),
        "geo.toml: path.los (--set): no element of the path is called `los`; did you mean `loss`?",
    );
}

#[test]
fn what_has_to_be_there_is_named() {
    says(with("title = \"T\"", ""), "geo.toml: title: missing; expected text");
    says(
        with("size = \"1 MB\"", ""),
        "geo.toml: transfer.size: missing; expected a size such as `64 kB`, or a stream: `message`",
    );
    says(
        with("rate = \"1 %\"", ""),
        "geo.toml: path[1].rate: missing; expected a fraction or a percentage such as `1 %`",
    );
    says(
        with("\"20 ms\"", "{ forward = \"20 ms\" }"),
        "geo.toml: path[2].delay.reverse: missing; expected a duration such as `20 ms`",
    );
    says(
        refusal("title = \"T\"\n[transfer]\nsize = \"1 B\"", &[]),
        "geo.toml: path: missing; expected a list of elements, or the name of a ready-made path",
    );
}

#[test]
fn values_out_of_range_are_refused() {
    let cases = [
        ("seeds=0", "seeds (--set): at least one run is needed"),
        ("seeds=-1", "seeds (--set): expected a whole number from 0 to 18446744073709551615, found `-1`"),
        ("seed=9223372036854775807", "seeds: the last seed is out of range"),
        ("seeds=10000001", "seeds: 10000001 runs in all; the most is 10000000"),
        ("horizon=0 s", "horizon (--set): no time to run"),
        (
            "path.delay=150000 d",
            "path: a round trip and the horizon go beyond all time, which is 584 years here",
        ),
        ("transfer.size=0 B", "transfer.size (--set): there would be nothing to transfer"),
        ("path=[]", "path (--set): a path has at least one element"),
        (
            "path.loss=120 %",
            "path.loss (--set): expected a fraction or a percentage such as `1 %`, found `120 %`: it is above 100 %",
        ),
        ("sender.mss=0 B", "sender.mss (--set): expected a size from 1 B to 65.495 kB, found `0 B`"),
        ("sender.mss=65496 B", "sender.mss (--set): expected a size from 1 B to 65.495 kB, found `65496 B`"),
        (
            "receiver.receive.buffer=0 B",
            "receiver.receive.buffer (--set): expected a size above zero, found `0 B`",
        ),
        (
            "receiver.receive.ack_every=0",
            "receiver.receive.ack_every (--set): expected a whole number from 1 to 4294967295, found `0`",
        ),
        (
            "sender.congestion.initial_window=0",
            "sender.congestion.initial_window (--set): expected a whole number from 1 to 4294967295, found `0`",
        ),
        (
            "sender.congestion.cwnd_clamp=1 kB",
            "sender.congestion.cwnd_clamp (--set): 1 kB is below the segment's length of 1.46 kB: nothing could be \
             sent",
        ),
        ("sender.rto.min=2 min", "sender.rto.min (--set): 120 s is above `rto.max`, 64 s"),
        ("sender.rto.max=2 s", "sender.rto.initial: 3 s is above `rto.max`, 2 s"),
        (
            "sender.rto.srtt_divisor=0",
            "sender.rto.srtt_divisor (--set): expected a whole number from 1 to 4294967295, found `0`",
        ),
        (
            "sender.handshake.syn_attempts=0",
            "sender.handshake.syn_attempts (--set): expected a whole number from 1 to 4294967295, or `unlimited`, found `0`",
        ),
        (
            "sender.recovery.rack_blocks_first=true",
            "sender.recovery.rack_blocks_first (--set): is now called `recovery.rack_rules`",
        ),
        (
            "sender.recovery.rate_reduction_without_sack=true",
            "sender.recovery.rate_reduction_without_sack (--set): is now a word of `recovery.window_without_sack`: \
             `true` is `rate-reduction`",
        ),
        (
            "sender.recovery.deflate_below_ssthresh=false",
            "sender.recovery.deflate_below_ssthresh (--set): is now a word of `recovery.window_without_sack`: \
             `false` is `above-ssthresh`",
        ),
        (
            "sender.rto.timer_wheel=true",
            "sender.rto.timer_wheel (--set): is now a word of `rto.tick_expiry`: `true` is `timer-wheel`",
        ),
        (
            "sender.congestion.cubic_alpha_one_at_prior_cwnd=false",
            "sender.congestion.cubic_alpha_one_at_prior_cwnd (--set): is now a word of `congestion.cubic`: `false` is `rfc-8312`",
        ),
        (
            "sender.send.fill_super_packets=true",
            "sender.send.fill_super_packets (--set): is now a word of `send.super_packets`: `true` is `filled`",
        ),
        (
            "sender.congestion.cwnd_validation=true",
            "sender.congestion.cwnd_validation (--set): expected one of `off`, `avoidance`, `always`, `by-window`, found `true`",
        ),
        (
            "sender.congestion.validation_by_window=true",
            "sender.congestion.validation_by_window (--set): is now a word of `congestion.cwnd_validation`: `true` is `by-window`",
        ),
        (
            "sender.recovery.fast_retransmit_timer=false",
            "sender.recovery.fast_retransmit_timer (--set): is now a word of `recovery.repair_timer`: `false` is `none`",
        ),
        (
            "sender.recovery.recover_guard_blocks_new_data=true",
            "sender.recovery.recover_guard_blocks_new_data (--set): is now a word of `recovery.recover_guard`: `true` is `linux`",
        ),
        (
            "sender.congestion.ssthresh_on_repeated_timeout=true",
            "sender.congestion.ssthresh_on_repeated_timeout (--set): is now a word of `congestion.ssthresh_on_timeout`: \
             `true` is `every`",
        ),
        (
            "receiver.receive.read_rate=9 bit/s",
            "receiver.receive.read_rate (--set): 9 bit/s is not a whole number of bytes per second",
        ),
        (
            "transfer.request=1 B",
            "transfer.request (--set): only a receiver that opens sends a request; here the sender opens",
        ),
    ];
    for (key_value, expected) in cases {
        let opener = "transfer.opener=sender";
        says(refusal(FILE, &[opener, key_value]), &format!("geo.toml: {expected}"));
    }
}

#[test]
fn words_and_limits_say_what_they_can_be() {
    says(
        set("sender.recovery.algorithm=newreno"),
        "geo.toml: sender.recovery.algorithm (--set): expected one of `timeout-only`, `tahoe`, `reno`, `new-reno`, \
         found `newreno`",
    );
    says(
        set("sender.handshake.data_retries=many"),
        "geo.toml: sender.handshake.data_retries (--set): expected a whole number, or `unlimited`, found `many`",
    );
    says(
        set("sender.send.buffer=64"),
        "geo.toml: sender.send.buffer (--set): expected a size such as `64 kB`, or `unlimited`, found `64`: it has \
         no unit",
    );
    says(
        set("path.link.queue=ten packets"),
        "geo.toml: path.link.queue (--set): expected a size such as `64 kB`, a number such as `100 packets`, a time such \
         as `50 ms`, a bandwidth-delay product such as `1 bdp`, or `unlimited`, found `ten packets`",
    );
    says(
        set("path.link.queue=some bdp"),
        "geo.toml: path.link.queue (--set): expected a number of bandwidth-delay products above zero and up to 1000, such as \
         `1 bdp`, found `some bdp`",
    );
    says(
        set("path.link.mark=20"),
        "geo.toml: path.link.mark (--set): expected a size such as `64 kB`, a number such as `20 packets`, a time such \
         as `5 ms`, or `never`, found `20`",
    );
    says(
        set("sender.send.ecn=on"),
        "geo.toml: sender.send.ecn (--set): expected one of `off`, `accept`, `request`, found `on`",
    );
    says(set("output.series=yes"), "geo.toml: output.series (--set): expected true or false, found `yes`");
    says(set("seed.first=1"), "geo.toml: seed.first (--set): expected a whole number, found a table");
    says(set("seeds.first=1"), "geo.toml: seeds.first (--set): `seeds` is a value, and has no `first`");
}

#[test]
fn elements_check_their_own_parameters() {
    let element = |text: &str| with("element = \"loss\"\nrate = \"1 %\"", text);
    says(
        element("element = \"evenly-spaced-loss\"\nevery = 0"),
        "geo.toml: path[1].every: one loss in zero packets is none in any; for no loss say `none`",
    );
    says(
        element("element = \"listed-loss\"\npackets = [3, 3]"),
        "geo.toml: path[1].packets[1]: 3 comes after 3; packets are listed in rising order, each once",
    );
    says(
        element("element = \"listed-loss\"\npackets = { forward = [0] }"),
        "geo.toml: path[1].packets.forward[0]: packets are counted from 1",
    );
    says(
        element("element = \"listed-loss\"\ntimes = [\"2 s\", \"1 s\"]"),
        "geo.toml: path[1].times[1]: 1 s comes after 2 s; times are listed in rising order, each once",
    );
    says(
        element("element = \"listed-loss\"\ntimes = [\"2 s\"]\npackets = [1]"),
        "geo.toml: path[1].times: expected either `packets` or `times`, found both",
    );
    says(
        element("element = \"jitter\"\ndelays = []"),
        "geo.toml: path[1].delays: expected a delay, found none",
    );
    says(
        element("element = \"jitter\"\ndelays = [\"1 ms\"]\nmean = \"1 ms\""),
        "geo.toml: path[1].delays: expected either `delays` or `mean`, found both",
    );
    says(
        element("element = \"bit-errors\"\nber = 2"),
        "geo.toml: path[1].ber: expected a bit error rate such as `1e-7`, found `2`: it is above 1",
    );
    says(
        element("element = \"hops\"\nrouters = -1"),
        "geo.toml: path[1].routers: expected a whole number from 0 to 4294967295, found `-1`",
    );
    says(
        element("element = \"delay\"\ndelay = \"1 ms\""),
        "geo.toml: path[2].name: two elements are called `delay`",
    );
    says(
        element("element = \"loss\"\nname = \"a.b\"\nrate = \"0 %\""),
        "geo.toml: path[1].name: `a.b` cannot be part of a key: use letters, digits, `-` and `_`",
    );
}

#[test]
fn values_that_change_over_time_say_what_is_wrong_with_them() {
    let delay = |text: &str| with("delay = \"20 ms\"", text);
    says(delay("delay = []"), "geo.toml: path[2].delay: expected a point, found none");
    says(
        delay("delay = [{ at = \"1 s\", delay = \"1 ms\" }]"),
        "geo.toml: path[2].delay[0].at: expected `0 s`, where it begins, found 1 s",
    );
    says(
        delay("delay = { points = [{ at = \"0 s\", delay = \"1 ms\" }], offset = \"random\" }"),
        "geo.toml: path[2].delay.offset: expected a `repeat` beside it: a random one is drawn from what repeats",
    );
    says(
        delay(
            "delay.forward = { points = [{ at = \"0 s\", delay = \"1 ms\" }], repeat = \"0 s\" }\ndelay.reverse = \"1 ms\"",
        ),
        "geo.toml: path[2].delay.forward.repeat: expected a time after 0 s, where the last point is, found 0 s",
    );
    says(
        delay("delay = \"1 ms\"\nreorder = true"),
        "geo.toml: path[2].reorder: expected it beside a `delay` that changes: one that stays keeps packets in order",
    );
    says(
        with("rate = \"10 Mbit/s\"", "rate = [{ at = \"0 s\", rate = \"1 Mbit/s\" }]\nmark = \"20 kB\""),
        "geo.toml: path[0].mark: expected it beside a `rate` that stays, found one that changes",
    );
}

#[test]
fn a_value_that_changes_comes_from_a_list_or_a_file() {
    use farpath_elements::{ElementKind, Setting};
    let folder = tempfile::tempdir().expect("a folder");
    let (delays, losses) = (folder.path().join("delay.csv"), folder.path().join("loss.csv"));
    std::fs::write(&delays, "time_s,delay\n# repeat 10\n0,0.02\n5,40 ms\n").expect("it is written");
    std::fs::write(&losses, "0,0\n5,10 %\n10,0.2\n").expect("it is written");
    let text = FILE
        .replacen("delay = \"20 ms\"", &format!("delay = {{ file = {delays:?} }}"), 1)
        .replacen(
            "rate = \"1 %\"",
            &format!("rate.forward = {{ file = {losses:?}, between = \"lines\" }}"),
            1,
        )
        .replacen(
            "rate = \"10 Mbit/s\"",
            "rate = [{ at = \"0 s\", rate = \"1 Mbit/s\" }, { at = \"1 s\", rate = \"3 Mbit/s\" }]",
            1,
        );
    let experiment = Experiment::parse(&text, "geo.toml", &[]).expect("it is sound");
    let path = experiment.point(0).scenario.path.clone();
    let ElementKind::VaryingDelay(delay) = &path[2].kind else { panic!("{:?}", path[2]) };
    // As long 20 ms as 40 ms.
    assert_eq!(delay.delay.reverse.mean().as_nanos(), 30_000_000);
    let ElementKind::VaryingLoss(loss) = &path[1].kind else { panic!("{:?}", path[1]) };
    assert!((loss.loss_rate.forward.mean().fraction() - 0.1).abs() < 1e-12);
    assert_eq!(loss.loss_rate.reverse, Setting::Still(farpath_units::Probability::ZERO));
    let ElementKind::TraceLink(link) = &path[0].kind else { panic!("{:?}", path[0]) };
    assert_eq!(link.trace.forward.greatest_rate().bit_per_s(), 3_000_000);
}

#[test]
fn orbits_are_refused_by_file_line_and_key() {
    const LINES: [&str; 2] = [
        "1 25544U 98067A   08264.51782528 -.00002182  00000-0 -11606-4 0  2927",
        "2 25544  51.6416 247.4627 0006703 130.5360 325.0288 15.72125391563537",
    ];
    const HERE: &str = "stations = [{ latitude = \"40 deg\", longitude = \"0 deg\" }]";
    const CIRCLE: &str = "altitude = \"550 km\", inclination = \"53 deg\"";
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str, text: String| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("it is written");
        format!("tle = {path:?}")
    };
    let tle = file("iss.tle", LINES.join("\n"));
    let broken = file("broken.tle", LINES.join("\n").replace("51.6416", "51.7416"));
    let read = |keys: &str| {
        let delay = format!("delay = {{ orbit = {{ {keys}, {HERE} }} }}");
        Experiment::parse(&FILE.replacen("delay = \"20 ms\"", &delay, 1), "geo.toml", &[])
    };
    assert!(read(CIRCLE).is_ok() && read(&tle).is_ok());
    for (keys, starts) in [
        ("at = \"1 s\"".to_owned(), "altitude: "),
        ("altitude = \"550 km\"".to_owned(), "inclination: "),
        (
            CIRCLE.replace("550 km", "-5 km"),
            "altitude: expected a length such as `550 km`, found `-5 km`: it is negative",
        ),
        (
            CIRCLE.replace("550 km", "0 km"),
            "altitude: expected 10 km to 2000000 km above the ground, found 0 m",
        ),
        (
            CIRCLE.replace("53 deg", "30 deg"),
            "over: expected a place that an orbit of inclination 30 deg passes over",
        ),
        (format!("{CIRCLE}, hops = 2"), "hop: "),
        (format!("{CIRCLE}, height = 2"), "height: unknown key"),
        (format!("{CIRCLE}, start = \"2026-11-27T12:00:00Z\""), "start: expected a `tle` beside it"),
        (format!("{CIRCLE}, {tle}"), "altitude: `tle` is there too"),
        (
            format!("{tle}, start = \"2026-11-27T12:00:00Z\""),
            "start: expected a time within 14 days of the elements' epoch, 2008-09-20T12:25:40Z",
        ),
        (format!("{tle}, start = \"today\""), "start: expected a time such as `2026-11-27T12:00:00Z`"),
        (broken, "tle: broken.tle: line 2: Bad line checksum"),
    ] {
        let error = read(&keys).expect_err("refused").to_string();
        let found = error.replace(&format!("{}/", folder.path().display()), "");
        assert!(found.starts_with(&format!("geo.toml: path[2].delay.orbit.{starts}")), "{found}");
    }
}

/// A sender that never gives up would go on until the horizon.
#[test]
fn a_path_that_never_delivers_again_is_told_before_the_run() {
    let told = |delay: &str, more: &str| {
        let text = format!("{more}\n{}", FILE.replacen("delay = \"20 ms\"", delay, 1));
        let experiment = Experiment::parse(&text, "geo.toml", &[]).expect("it is sound");
        let found = farpath_experiment::warnings(&experiment.point(0).scenario);
        let found = found.into_iter().find(|warning| warning.id == "path-ends");
        found.map(|warning| warning.to_string())
    };
    let contacts =
        "delay = \"20 ms\"\n[[path]]\nelement = \"contacts\"\nplan = [{ from = \"0 s\", to = \"40 min\" }]";
    let said = told(contacts, "").expect("an hour is longer than the contact");
    assert!(said.starts_with("path.contacts: nothing passes after 2400 s: "), "{said}");
    assert_eq!(told(contacts, "horizon = \"40 min\""), None);
    let link = "delay = \"20 ms\"\n[[path]]\nelement = \"trace-link\"\ntrace = [{ at = \"0 s\", rate = \"1 Mbit/s\" }, { at = \"9 s\", rate = \"0 bit/s\" }]";
    assert!(
        told(link, "").is_some_and(|said| said.starts_with("path.trace-link: nothing passes after 9 s: "))
    );
    let loss = "delay = \"20 ms\"\n[[path]]\nelement = \"loss\"\nname = \"end\"\nrate = [{ at = \"0 s\", rate = \"0 %\" }, { at = \"5 s\", rate = \"100 %\" }]";
    assert!(told(loss, "").is_some_and(|said| said.starts_with("path.end: nothing passes after 5 s: ")));
    assert_eq!(told("delay = \"20 ms\"", ""), None);
}

#[test]
fn flows_are_checked() {
    says(and("[[flow]]\ncount = 0"), "geo.toml: flow[0].count: a group has at least one flow");
    says(
        and("[[flow]]\ncount = 9000\n[[flow]]\ncount = 1001"),
        "geo.toml: flow[1].count: more than 10000 flows in all",
    );
    says(and("[[flow]]\nsize = \"0 B\""), "geo.toml: flow[0].size: there would be nothing to transfer");
    says(
        and("[[flow]]\nsender.congestion.contrl = \"bbr\""),
        "geo.toml: flow[0].sender.congestion.contrl: unknown key; did you mean `control`?",
    );
    let alone = FILE.replace("size = \"1 MB\"", "") + "[[flow]]\nsize = \"1 B\"\n[[flow]]\n";
    says(
        refusal(&alone, &[]),
        "geo.toml: transfer.size: missing; expected a size such as `64 kB`, as `flow[1]` has none of its own",
    );
    says(
        set("flow.0.count=2"),
        "geo.toml: flow.0.count (--set): there is no `[[flow]]` number `0`; they count from 0, and there are 0",
    );
}

#[test]
fn sweeps_are_checked() {
    says(
        and("[sweep]\n\"path.loss\" = []"),
        "geo.toml: sweep.\"path.loss\": the list is empty: there would be nothing to run",
    );
    says(
        and("[sweep]\n\"path.loss\" = \"1 %\""),
        "geo.toml: sweep.\"path.loss\": expected a list, or a range such as `0.01 s to 30 s by 0.01 s` or `1 kB to 1000 kB times 10`, found `1 %`",
    );
    says(
        and("[sweep]\n\"path.loss\" = \"0 % to 1 by 0.1 %\""),
        "geo.toml: sweep.\"path.loss\": a range has one unit, found `%` and none",
    );
    says(
        and("[sweep]\n\"path.loss\" = \"99 % to 101 % by 1 %\""),
        "geo.toml: sweep.\"path.loss\"[2]: expected a fraction or a percentage such as `1 %`, found `101 %`: it is above 100 %",
    );
    says(
        and("[sweep.zip]\n\"path.loss\" = [\"0 %\", \"1 %\"]\n\"seed\" = [1]"),
        "geo.toml: sweep.zip.\"seed\": the list has 1, that of `path.loss` 2; zipped lists are equally long",
    );
    says(
        and("[sweep]\n\"path.los\" = [\"0 %\"]"),
        "geo.toml: sweep.\"path.los\"[0]: no element of the path is called `los`; did you mean `loss`?",
    );
    says(
        and("[sweep]\n\"sender.rto.maxx\" = [\"1 s\"]"),
        "geo.toml: sweep.\"sender.rto.maxx\"[0]: unknown key; did you mean `max`?",
    );
    says(
        and("[sweep]\n\"path.loss\" = [\"0 %\", \"10 %\", \"101 %\"]"),
        "geo.toml: sweep.\"path.loss\"[2]: expected a fraction or a percentage such as `1 %`, found `101 %`: it is \
         above 100 %",
    );
    says(
        and("[sweep]\n\"path.loss\" = [\"0 %\"]\n\"path.loss.rate\" = [\"0 %\"]"),
        "geo.toml: sweep.\"path.loss.rate\": `path.loss.rate` is swept twice",
    );
    let thousand = format!("{:?}", (0..1000).collect::<Vec<_>>());
    says(
        and(&format!("[sweep]\nseed = {thousand}\nseeds = {thousand}\ntitle = {thousand}")),
        "geo.toml: sweep: more than 10000000 points",
    );
    // Points of a large sweep are not kept, and checked all the same: the first that is refused is named.
    says(
        and("[sweep]\nhorizon = \"5000 s to -90 s by -1 s\""),
        "geo.toml: sweep.\"horizon\"[5000]: no time to run",
    );
}

#[test]
fn published_values_belong_to_points() {
    let sweep = "[sweep]\n\"path.loss\" = [\"0 %\", \"1 %\"]\n[published]\nsource = \"S\"\n";
    says(
        and(&format!("{sweep}retransmissions = [1]")),
        "geo.toml: published.retransmissions: 1 value for 2 points of the sweep; for a point without one say `\"-\"`",
    );
    says(
        and(&format!("{sweep}transfer_time = [\"-\", 50.2]")),
        "geo.toml: published.transfer_time[1]: expected a duration such as `20 ms`, found `50.2`: it has no unit",
    );
    says(
        and(&format!("{sweep}transfer_tim = []")),
        "geo.toml: published.transfer_tim: unknown key; did you mean `transfer_time`?",
    );
    says(and("[published]"), "geo.toml: published.source: missing; expected text");
    says(
        set("published.source=S"),
        "geo.toml: published.source (--set): what was published is not a parameter",
    );
}

#[test]
fn text_that_is_not_toml_says_where() {
    let message = with("seeds = 2", "seeds = ");
    assert!(message.starts_with("geo.toml: line 3, column "), "{message}");
}

#[test]
fn files_that_cannot_be_read_are_named() {
    let message = Experiment::load("no/such.toml".as_ref(), &[]).unwrap_err().to_string();
    assert!(message.starts_with("no/such.toml: cannot read `no/such.toml`: "), "{message}");
    let message = with("riverbed-16", "mine.toml");
    assert!(message.starts_with("geo.toml: sender.stack: cannot read `mine.toml`: "), "{message}");
}

#[test]
fn the_source_of_an_error_is_kept() {
    let text = FILE.replace("20 ms", "20");
    let error = Experiment::parse(&text, "geo.toml", &[]).unwrap_err();
    let source = std::error::Error::source(&error).expect("what the unit's reader said");
    assert!(error.to_string().ends_with(&source.to_string()));
}

#[test]
fn an_override_is_a_key_and_a_value() {
    for text in ["", "seed", "=1", "seed=", "a..b=1", ".a=1"] {
        let error = text.parse::<Override>().unwrap_err().to_string();
        assert_eq!(error, format!("expected `key=value` such as `path.loss=1%`, found `{text}`"));
    }
}

#[test]
fn a_flow_router_says_what_it_cannot_do() {
    let router = |keys: &str| {
        with(
            "element = \"link\"\nrate = \"10 Mbit/s\"",
            &format!("element = \"flow-router\"\nrate = \"10 Mbit/s\"\n{keys}"),
        )
    };
    says(
        router("guaranteed = \"99 %\""),
        "geo.toml: path[0].guaranteed: 99 % of the line for guarantees is more than `utilization`, 98 %, allows for all grants",
    );
    says(
        router("guaranteed = { forward = \"50 %\", reverse = \"99 %\" }"),
        "geo.toml: path[0].guaranteed: 99 % of the line for guarantees is more than `utilization`, 98 %, allows for all grants",
    );
    says(
        router("preemption = 64"),
        "geo.toml: path[0].preemption: expected a priority from 0 to 63, found 64",
    );
    says(
        router("preemption = { forward = \"high\" }"),
        "geo.toml: path[0].preemption.forward: expected a priority from 0 to 63, found `high`",
    );
    says(
        router("classes = [{ from = 0, weight = 2 }, { from = 0, weight = 3 }]"),
        "geo.toml: path[0].classes[1].from: classes are listed in rising order of priority",
    );
    says(
        router("classes = [{ from = 64, weight = 2 }]"),
        "geo.toml: path[0].classes[0].from: expected a whole number from 0 to 63, found 64",
    );
    says(
        router("changes = [{ at = \"2 s\", rate = \"5 Mbit/s\" }, { at = \"1 s\", rate = \"5 Mbit/s\" }]"),
        "geo.toml: path[0].changes[1].at: changes are listed in rising order of time",
    );
    says(
        router("unit = \"Mbit/s\""),
        "geo.toml: path[0].unit: expected one of `kbit/s`, `bit/s`, `cells/s`, found `Mbit/s`",
    );
    says(
        router("blind = true\nchanges = [{ at = \"2 s\", rate = \"5 Mbit/s\" }]"),
        "geo.toml: path[0].blind: a blind router is a plain link, whose rate does not change",
    );
    says(
        router("utilisation = \"90 %\""),
        "geo.toml: path[0].utilisation: unknown key; did you mean `utilization`?",
    );
}

#[test]
fn a_delay_by_distance_says_what_is_wrong_with_it() {
    let delay = |text: &str| with("delay = \"20 ms\"", text);
    says(
        delay("distance = \"-3 km\""),
        "geo.toml: path[2].distance: expected a body such as `moon` or a distance such as `384400 km`, \
         `1.5 light-seconds` or `0.5 AU`, zero or more, found `-3 km`",
    );
    says(
        delay("distance = \"moom\""),
        "geo.toml: path[2].distance: no body is called `moom`; did you mean `moon`?",
    );
    says(
        delay("distance = \"6000 km\"\nmedium = \"fiber\""),
        "geo.toml: path[2].medium: no medium is called `fiber`; did you mean `fibre`?",
    );
    says(
        delay("distance = \"moon\"\ndelay = \"1 s\""),
        "geo.toml: path[2].distance: `delay` is there too: a delay is given, or follows from a distance",
    );
    says(
        delay("delay = \"1 s\"\nmedium = \"fibre\""),
        "geo.toml: path[2].medium: a medium makes a delay of a `distance`, and there is none",
    );
    says(
        delay("distance = \"visible-universe\""),
        "geo.toml: path[2].distance: what light takes over the edge of the visible universe is beyond the 584 years that \
         simulated time has",
    );
    says(
        delay("distance = { forward = \"moon\" }"),
        "geo.toml: path[2].distance.reverse: missing; expected a distance such as `384400 km`, `1.5 light-seconds` or \
         `moon`",
    );
    says(
        delay(""),
        "geo.toml: path[2].delay: missing; expected a duration such as `20 ms`, or a `distance` such as `384400 km` or \
         `moon`",
    );
    says(
        set("sender.send.ttl=0"),
        "geo.toml: sender.send.ttl (--set): expected a whole number from 1 to 255, found `0`",
    );
    says(
        set("sender.send.ttl=256"),
        "geo.toml: sender.send.ttl (--set): expected a whole number from 1 to 255, found `256`",
    );
}

#[test]
fn a_delay_follows_from_distance_and_medium() {
    use farpath_elements::{Delay, ElementKind};
    use farpath_path::PerDirection;
    let delay = |text: &str| {
        let text = FILE.replacen("delay = \"20 ms\"", text, 1);
        let experiment = Experiment::parse(&text, "geo.toml", &[]).expect("it is sound");
        match experiment.point(0).scenario.path[2].kind {
            ElementKind::Delay(Delay { delay: PerDirection { forward, reverse } }) => {
                (forward.as_nanos(), reverse.as_nanos())
            }
            ref other => panic!("{other:?}"),
        }
    };
    // 384 400 km / 299 792.458 km/s.
    assert_eq!(delay("distance = \"moon\""), (1_282_220_382, 1_282_220_382));
    // Times 1.468.
    assert_eq!(delay("distance = \"6000 km\"\nmedium = \"fibre\""), (29_380_326, 29_380_326));
    assert_eq!(
        delay("distance = { forward = \"0 km\", reverse = \"1.5 light-seconds\" }"),
        (0, 1_500_000_000)
    );
}

#[test]
fn files_that_are_too_long_for_anybody_are_refused_before_they_take_time_or_memory() {
    let element = "{element = \"delay\", delay = \"1 us\", name = \"e\"},";
    let path =
        format!("title = \"T\"\npath = [{}]\n[transfer]\nsize = \"1 kB\"", element.repeat(MAX_ELEMENTS + 1));
    assert_eq!(refusal(&path, &[]), "geo.toml: path: expected 1000 elements at the most, found 1001");
    let keys: String = (0..=MAX_SWEPT).map(|key| format!("\"path.x{key}\" = [1]\n")).collect();
    let sweep = refusal(&format!("{FILE}[sweep.zip]\n{keys}"), &[]);
    assert!(sweep.ends_with(": expected 1000 keys in a sweep at the most, found 1001"), "{sweep}");
    let values = refusal(&format!("x = [{}]\n{FILE}", "1,".repeat(MAX_VALUES)), &[]);
    assert!(values.starts_with("geo.toml: expected 2000000 values at the most, found 20000"), "{values}");
    let points = with("[transfer]", "[sweep]\nseed = \"1 to 20000000 by 1\"\n[transfer]");
    assert_eq!(points, "geo.toml: sweep.\"seed\": more than 10000000 points");
}

#[test]
fn points_with_long_traces_are_not_all_kept() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: String| {
        let file = folder.path().join(name);
        std::fs::write(&file, text).expect("writable");
        file
    };
    let path = |elements: usize| -> String {
        let element =
            |n: usize| format!("{{ element = \"trace-link\", name = \"t{n}\", trace = \"long.up\" }},");
        (0..elements).map(element).collect()
    };
    let text = |path: String| format!("title = \"T\"\npath = [{path}]\n[transfer]\nsize = \"1 kB\"\n");
    write("long.up", "1\n".repeat(1_500_000));
    let sweep = "[sweep]\n\"transfer.size\" = [\"1 kB\", \"2 kB\", \"3 kB\"]\n";
    let file = write("sweep.toml", text(path(1)) + sweep);
    let experiment = Experiment::load(&file, &[]).expect("good");
    let point = experiment.point(2);
    assert!(matches!(point, std::borrow::Cow::Owned(_)), "it is made when it is asked for");
    assert_eq!(point.scenario.path[0].spec().entries(), 3_000_000, "both ways");
    // Long traces behind a short one count too.
    write("short.up", "1\n".to_owned());
    let swept = "[sweep]\n\"path.t0.trace\" = [\"short.up\", \"long.up\"]\n";
    let file = write("swept.toml", text(path(1)) + swept);
    let experiment = Experiment::load(&file, &[]).expect("good");
    assert!(matches!(experiment.point(0), std::borrow::Cow::Owned(_)));

    let varying = "{ element = \"delay\", delay = { file = \"delays.csv\" } }, { element = \"loss\", rate = { file = \"losses.csv\" } },";
    let rows = |value: &str| (0..3000).map(|second| format!("{second},{value}\n")).collect::<String>();
    write("delays.csv", rows("0.02"));
    write("losses.csv", rows("0.01"));
    let file = write("varying.toml", text(varying.to_owned()));
    let experiment = Experiment::load(&file, &[]).expect("good");
    let entries: Vec<usize> =
        experiment.point(0).scenario.path.iter().map(|element| element.spec().entries()).collect();
    assert_eq!(entries, [6000, 6000], "both ways");

    let file = write("many.toml", text(path(6)));
    let error = Experiment::load(&file, &[]).expect_err("18 000 000 entries").to_string();
    let expected = "path[5]: expected 16000000 entries in all traces, plans and lists of a path at the most, found 18000000";
    assert!(error.contains(expected), "{error}");
}

#[test]
fn points_with_long_paths_are_not_all_kept() {
    // 4096 points of 1000 elements each would take a gigabyte; made when they are asked for, they are the same.
    let elements: String = (0..MAX_ELEMENTS - 1)
        .map(|place| format!("{{element = \"delay\", delay = \"1 us\", name = \"e{place}\"}},"))
        .collect();
    let text = format!(
        "title = \"T\"\npath = [{elements}{{element = \"loss\", rate = \"1 %\"}}]\n[transfer]\nsize = \"1 kB\"\n[sweep]\nseed = \"1 to 100 by 1\""
    );
    let experiment = Experiment::parse(&text, "geo.toml", &[]).expect("good");
    let point = experiment.point(99);
    assert!(matches!(point, std::borrow::Cow::Owned(_)), "it is made when it is asked for");
    assert_eq!((point.scenario.seed, point.scenario.path.len()), (100, MAX_ELEMENTS));
}

#[test]
fn programs_that_never_write_are_refused() {
    let at = "geo.toml: transfer.";
    for (transfer, expected) in [
        ("window = \"0 B\"", "window: nothing could ever be written"),
        ("write_size = \"0 B\"", "write_size: nothing could ever be written"),
        ("window = 64", "window: expected a size such as `64 kB`, or `none`, found `64`: it has no unit"),
        ("update_every = \"1 kB\"", "update_every: it is of a `window`, and there is none"),
        (
            "window = \"64 kB\"\nupdate_every = \"65 kB\"",
            "update_every: 65 kB, and the window is 64 kB: so much would never be read",
        ),
        (
            "think_time = \"1 ms\"",
            "think_time: the file is written at once, and there is nothing to think about: give `write_size`",
        ),
    ] {
        says(with("size = \"1 MB\"", &format!("size = \"1 MB\"\n{transfer}")), &format!("{at}{expected}"));
    }
    let stream = "message = \"1 kB\"\ninterval = \"1 ms\"\ncount = 5\nwindow = \"64 kB\"";
    says(
        with("size = \"1 MB\"", stream),
        "geo.toml: transfer.window: it is of a file over TCP; messages are written when they are due",
    );
}

/// A group has what `transfer` has, but for what it says itself; `none` takes it away.
#[test]
fn a_group_writes_as_it_says() {
    let text =
        FILE.replace("size = \"1 MB\"", "size = \"1 MB\"\nwindow = \"64 kB\"\nupdate_every = \"9 kB\"");
    let text = format!(
        "{text}\n[[flow]]\n[[flow]]\nwindow = \"none\"\nwrite_size = \"5 kB\"\nthink_time = \"2 ms\"\n"
    );
    let experiment = Experiment::parse(&text, "geo.toml", &[]).expect("it is one");
    let written: Vec<String> =
        experiment.point(0).scenario.flows.iter().map(|flow| flow.writing.to_string()).collect();
    assert_eq!(written, ["within a window of 64 kB", "in pieces of 5 kB, 2 ms after each"]);
    let update_every: Vec<Option<u64>> = experiment
        .point(0)
        .scenario
        .flows
        .iter()
        .map(|flow| flow.writing.update_every.map(|bytes| bytes.0))
        .collect();
    assert_eq!(update_every, [Some(9000), None]);
}
