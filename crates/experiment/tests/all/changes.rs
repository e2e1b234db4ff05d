//! A value from `--set` or a sweep is as good as one written into the file.

use farpath_elements::{
    Bernoulli, Delay, Duplicate, ElementKind, EvenlySpaced, GilbertElliott, Link, MarkThreshold, QueueLimit,
};
use farpath_experiment::{Experiment, Opener, Override, Scenario, Stack};
use farpath_path::{Direction, PerDirection};
use farpath_tcp::config::{CongestionControlKind, HyStart};
use farpath_units::{Bytes, Duration, Probability};

const FILE: &str = r#"
title = "T"
path = "noisy-channel"
[sender]
stack = "riverbed-16"
[transfer]
size = "1 MB"
"#;

fn read(text: &str, overrides: &[&str]) -> Experiment {
    let overrides: Vec<Override> = overrides.iter().map(|text| text.parse().expect("key=value")).collect();
    Experiment::parse(text, "t.toml", &overrides).unwrap_or_else(|error| panic!("{error}"))
}

fn scenario(text: &str, overrides: &[&str]) -> Scenario {
    read(text, overrides).point(0).scenario.clone()
}

fn loss(scenario: &Scenario) -> (f64, f64) {
    let element = scenario.path.iter().find(|element| element.name == "loss").expect("there is one");
    match &element.kind {
        ElementKind::Bernoulli(Bernoulli { loss_rate, .. }) => {
            (loss_rate.forward.fraction(), loss_rate.reverse.fraction())
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn set_and_sweep_and_file_agree() {
    let written = FILE.replace("[transfer]", "rto.min = \"2 s\"\n[transfer]\nopener = \"sender\"");
    let written = scenario(&format!("seeds = 7\n{written}"), &[]);
    let set = scenario(FILE, &["sender.rto.min=2 s", "seeds=7", "transfer.opener=sender"]);
    assert_eq!(set, written);
    let swept = format!(
        "{FILE}\n[sweep]\nseeds = [7]\nsender.rto.min = [\"2 s\"]\n\"transfer.opener\" = [\"sender\"]"
    );
    assert_eq!(scenario(&swept, &[]), written);
    assert_eq!(written.flows[0].opener, Opener::Sender);
}

#[test]
fn a_controller_that_only_a_kernel_has_is_told_its_key() {
    let change = ["sender.congestion.control=hybla".parse().expect("key=value")];
    let refused = Experiment::parse(FILE, "t.toml", &change).expect_err("nothing simulates it").to_string();
    for words in ["sender.congestion.control", "`bbr`", "linux.congestion_control", "found `hybla`"] {
        assert!(refused.contains(words), "{words}: {refused}");
    }
}

#[test]
fn the_congestion_controller_and_its_slow_start_can_be_set() {
    let keys = ["sender.congestion.control=cubic", "sender.congestion.hystart=true"];
    let congestion = scenario(FILE, &keys).sender.config.congestion;
    assert_eq!((congestion.control, congestion.hystart), (CongestionControlKind::Cubic, HyStart::Rfc9406));
    let congestion = scenario(FILE, &["sender.congestion.fast_convergence=false"]).sender.config.congestion;
    assert_eq!((congestion.control, congestion.fast_convergence), (CongestionControlKind::Reno, false));
}

#[test]
fn an_elements_name_alone_is_its_principal_parameter() {
    assert_eq!(loss(&scenario(FILE, &["path.loss=1%"])), (0.01, 0.01));
    assert_eq!(scenario(FILE, &["path.loss=1%"]), scenario(FILE, &["path.loss.rate=1 %"]));
    let fast = scenario(FILE, &["path.server-link=1 Gbit/s", "path.server-link.queue=100 packets"]);
    let ElementKind::Link(Link { rate, queue, .. }) = &fast.path[0].kind else { panic!("{:?}", fast.path) };
    assert_eq!((rate.forward.to_string().as_str(), queue.reverse), ("1 Gbit/s", QueueLimit::Packets(100)));
}

#[test]
fn one_direction_can_be_set_alone() {
    assert_eq!(loss(&scenario(FILE, &["path.loss.rate.forward=1%"])), (0.01, 0.0));
    assert_eq!(loss(&scenario(FILE, &["path.loss.rate.forward=1%", "path.loss=2%"])), (0.01, 0.02));
}

#[test]
fn of_two_values_for_one_parameter_the_later_one_counts() {
    assert_eq!(loss(&scenario(FILE, &["path.loss.rate=1%", "path.loss=2%"])), (0.02, 0.02));
    assert_eq!(loss(&scenario(FILE, &["path.loss=2%", "path.loss.rate=1%"])), (0.01, 0.01));
}

#[test]
fn a_whole_path_can_be_set_before_its_elements() {
    let other = scenario(FILE, &["path.delay=1 s", "path=ideal-link"]);
    assert_eq!(other.path.len(), 2);
    let ElementKind::Delay(Delay { delay }) = &other.path[1].kind else { panic!("{:?}", other.path) };
    assert_eq!(delay.reverse, Duration::from_secs(1));
}

#[test]
fn a_receiver_without_a_stack_has_the_senders() {
    let changed = scenario(FILE, &["sender.stack=bsd-1996", "sender.mss=1 kB"]);
    assert_eq!((changed.sender.name.as_str(), changed.receiver.name.as_str()), ("bsd-1996", "bsd-1996"));
    assert_eq!((changed.sender.config.mss, changed.receiver.config.mss), (Bytes(1000), Bytes(512)));
}

const SWEEP: &str = r#"
[sweep]
"path.loss" = ["0 %", "1 %", "10 %"]
"seed" = [1, 2]
[published]
source = "S"
retransmissions = [0, 1, 2, 3, 4, "-"]
"#;

fn labels(experiment: &Experiment) -> Vec<String> {
    let values =
        |swept: &[(String, String)]| swept.iter().map(|(_, value)| value.clone()).collect::<Vec<_>>();
    experiment.points().map(|point| values(&point.swept).join(", ")).collect()
}

fn published(experiment: &Experiment) -> Vec<Option<f64>> {
    let published = experiment.published.as_ref().expect("there is a section");
    let value = |index| published.value("retransmissions", index).map(|value| value.as_f64());
    (0..experiment.points().len()).map(value).collect()
}

#[test]
fn the_last_axis_moves_fastest() {
    let experiment = read(&format!("{FILE}{SWEEP}"), &[]);
    assert_eq!(labels(&experiment), ["0 %, 1", "0 %, 2", "1 %, 1", "1 %, 2", "10 %, 1", "10 %, 2"]);
    assert_eq!(experiment.axes[0].keys, ["path.loss"]);
    assert_eq!(experiment.axes[0].steps, 3);
    assert_eq!(published(&experiment), [Some(0.0), Some(1.0), Some(2.0), Some(3.0), Some(4.0), None]);
    assert_eq!(loss(&experiment.point(3).scenario), (0.01, 0.01));
    assert_eq!(experiment.point(3).scenario.seed, 2);
}

#[test]
fn the_points_of_a_large_sweep_are_those_that_it_would_have_alone() {
    let large =
        format!("{FILE}[sweep]\n'path.delay' = '1 ms to 2500 ms by 1 ms'\n'path.loss' = ['0 %', '1 %']");
    let experiment = read(&large, &[]);
    assert_eq!(experiment.points().len(), 5000);
    assert_eq!((experiment.axes[0].steps, experiment.axes[0].stride), (2500, 2));
    for index in [0, 1, 2468, 4999] {
        let swept = experiment.swept(index);
        let changes: Vec<String> = swept.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let alone = read(FILE, &changes.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(experiment.point(index).scenario, alone.point(0).scenario);
        assert_eq!((experiment.point(index).index, &experiment.point(index).swept), (index, &swept));
    }
    assert_eq!(experiment.swept(4999)[0].1, "2500 ms");
    let delays = experiment.map_points(|point| point.swept[0].1.clone());
    assert_eq!((delays.len(), delays[4997].as_str()), (5000, "2499 ms"), "in order");
}

#[test]
fn each_point_has_the_elements_that_its_values_make() {
    let delay = "{ element = 'delay', delay = '1 s' }";
    let paths = format!("[[{delay}], [{delay}, {{ element = 'loss', rate = '1 %' }}], [{delay}]]");
    let sweep = format!("[sweep]\npath = {paths}\n'path.delay' = ['1 s', '2 s', '3 s']");
    let experiment = read(&format!("{FILE}{sweep}"), &[]);
    for (index, point) in experiment.points().enumerate() {
        let path = &point.scenario.path;
        assert_eq!(path.len(), [1, 2, 1][index / 3]);
        let delay = PerDirection::both(Duration::from_secs(index as u64 % 3 + 1));
        assert_eq!(path[0].kind, ElementKind::Delay(Delay { delay }));
        assert!(path.iter().skip(1).all(|element| element.name == "loss"));
    }
}

#[test]
fn each_point_has_the_ends_that_its_values_make() {
    // More than are remembered; the receiver says nothing, and has the sender's stack.
    let sweep =
        "[sweep]\n'sender.rto.min' = '200 ms to 400 ms by 10 ms'\n'sender.stack' = ['linux-6', 'rfc-5681']";
    let experiment = read(&format!("{FILE}{sweep}"), &[]);
    for (index, point) in experiment.points().enumerate() {
        let (stack, min) = (["linux-6", "rfc-5681"][index % 2], 200 + 10 * (index as u64 / 2));
        let ends = [&point.scenario.sender, &point.scenario.receiver];
        assert_eq!(ends.map(|end| end.name.as_str()), [stack; 2]);
        assert_eq!(ends[0].config.rto.min, Duration::from_millis(min));
        let shipped = Stack::load(stack).unwrap();
        assert_eq!((&ends[1].config, &ends[1].linux), (&shipped.config, &shipped.linux));
    }
}

#[test]
fn zipped_keys_walk_together() {
    let zip = r#"
        [sweep]
        seed = [1, 2]
        [sweep.zip]
        "path.loss" = ["0 %", "1 %"]
        "path.delay" = ["1 s", "2 s"]
    "#;
    let experiment = read(&format!("{FILE}{zip}"), &[]);
    assert_eq!(labels(&experiment), ["1, 0 %, 1 s", "1, 1 %, 2 s", "2, 0 %, 1 s", "2, 1 %, 2 s"]);
    assert_eq!(experiment.axes[1].keys, ["path.loss", "path.delay"]);
}

#[test]
fn zipped_lists_are_changed_together() {
    let zip = format!("{FILE}[sweep.zip]\n'path.loss' = ['0 %', '1 %']\n'path.delay' = ['1 s', '2 s']");
    let (loss, delay) = ("sweep.path.loss=['0 %', '1 %', '2 %']", "sweep.zip.path.delay='1 s to 3 s by 1 s'");
    assert_eq!(labels(&read(&zip, &[loss, delay])), ["0 %, 1 s", "1 %, 2 s", "2 %, 3 s"]);
    let alone = Experiment::parse(&zip, "here", &[loss.parse().unwrap()]).unwrap_err().to_string();
    assert_eq!(
        alone,
        "here: sweep.path.loss (--set): the list has 3, that of `path.delay` 2; zipped lists are equally long: \
         repeat `--set` for `path.delay`"
    );
}

#[test]
fn no_more_seeds_are_emulated_than_there_are() {
    let emulated = |text: &str, changes: &[&str]| {
        let changes: Vec<_> = changes.iter().map(|change| change.parse().unwrap()).collect();
        let read = Experiment::parse(&format!("{text}{FILE}"), "here", &changes);
        read.map(|experiment| experiment.seeds).map_err(|error| error.to_string())
    };
    let more = "emulate.seeds = 3\n";
    let refused = emulated(more, &[]).unwrap_err();
    assert_eq!(refused, "here: emulate.seeds: 3 of the seeds are to be emulated, and `seeds` has 1");
    let refused = emulated("", &["seeds=2", "emulate.seeds=3"]).unwrap_err();
    assert_eq!(refused, "here: emulate.seeds (--set): 3 of the seeds are to be emulated, and `seeds` has 2");
    // Fewer seeds than the file has are fewer of both.
    assert_eq!(emulated(more, &["seeds=2"]), Ok(2));
    assert_eq!(emulated(more, &["seeds=3", "emulate.seeds=3"]), Ok(3));
}

#[test]
fn a_swept_key_that_is_set_is_not_swept() {
    let experiment = read(&format!("{FILE}{SWEEP}"), &["path.loss.rate=1%"]);
    assert_eq!(labels(&experiment), ["1", "2"]);
    assert_eq!(loss(&experiment.point(0).scenario), (0.01, 0.01));
    // 1 % was one of the file's points, so what was published for it stays.
    assert_eq!(published(&experiment), [Some(2.0), Some(3.0)]);
    let elsewhere = read(&format!("{FILE}{SWEEP}"), &["path.loss=2%"]);
    assert_eq!(published(&elsewhere), [None, None]);
}

#[test]
fn what_was_published_is_not_put_beside_another_experiment() {
    let load = |change: &str| {
        let text = include_str!("../../../../experiments/noisy-channel.toml");
        let experiment = Experiment::parse(text, "noisy-channel.toml", &[change.parse().unwrap()]).unwrap();
        published(&experiment)
    };
    assert_eq!(load("seeds=3")[1], Some(1.0));
    assert_eq!(load("output.series=true")[1], Some(1.0));
    assert_eq!(load("receiver.receive.buffer=64 kB"), [None; 5]);
}

#[test]
fn one_direction_that_is_set_stays_while_the_other_is_swept() {
    let experiment = read(&format!("{FILE}{SWEEP}"), &["path.loss.rate.forward=5%"]);
    assert_eq!(loss(&experiment.point(4).scenario), (0.05, 0.1));
}

#[test]
fn a_sweep_can_be_given_other_values() {
    let overrides = [r#"sweep.path.loss=["1 %", "3 %"]"#, "seed=2"];
    let experiment = read(&format!("{FILE}{SWEEP}"), &overrides);
    assert_eq!(labels(&experiment), ["1 %", "3 %"]);
    assert_eq!(published(&experiment), [Some(3.0), None]);
    let more = read(FILE, &["sweep.path.delay=[\"1 s\", \"2 s\"]"]);
    assert_eq!(labels(&more), ["1 s", "2 s"]);
}

#[test]
fn a_path_can_be_swept() {
    let sweep = "[sweep]\npath = [\"noisy-channel\", \"geo\"]\n";
    let experiment = read(&format!("{FILE}{sweep}"), &["path.delay=1 s"]);
    assert_eq!(labels(&experiment), ["noisy-channel", "geo"]);
    let rates = read(&FILE.replace("noisy-channel", "geo"), &["sweep.path.bit-errors=[0.0, 1e-9, 0.01]"]);
    assert_eq!(labels(&rates), ["0", "1e-9", "0.01"]);
    let delay = |index: usize| experiment.point(index).scenario.path[2].clone();
    assert_eq!(delay(0), delay(1));
}

#[test]
fn groups_of_flows_are_spelt_out() {
    let flows = r#"
        [[flow]]
        count = 3
        spacing = "2 s"
        [[flow]]
        start = "1 s"
        size = "2 MB"
        direction = "reverse"
    "#;
    let flows = scenario(&format!("{FILE}{flows}"), &["flow.0.start=10 s"]).flows;
    let starts: Vec<String> = flows.iter().map(|flow| flow.start.to_string()).collect();
    assert_eq!(starts, ["10 s", "12 s", "14 s", "1 s"]);
    assert_eq!((flows[0].size, flows[3].size), (Bytes(1_000_000), Bytes(2_000_000)));
    assert_eq!((flows[0].direction, flows[3].direction), (Direction::Forward, Direction::Reverse));
}

#[test]
fn a_group_can_have_ends_and_an_access_of_its_own() {
    let flows = r#"
        [[flow]]
        access = "5 ms"
        sender.congestion.control = "bbr"
        [[flow]]
        receiver.stack = "linux-6"
    "#;
    let scenario = scenario(&format!("{FILE}{flows}"), &["sender.mss=1000 B", "flow.0.access=7 ms"]);
    let [first, second] = &scenario.flows[..] else { panic!("two") };
    assert_eq!((first.access, second.access), (Duration::from_millis(7), Duration::ZERO));
    // Its own on top of what all have.
    let (sender, receiver) = scenario.ends(first);
    assert_eq!(sender.config.congestion.control, CongestionControlKind::Bbr);
    assert_eq!((sender.config.mss, receiver), (Bytes(1000), &scenario.receiver));
    let (sender, receiver) = scenario.ends(second);
    assert_eq!((sender, receiver.name.as_str()), (&scenario.sender, "linux-6"));
    assert_eq!(scenario.path_of(first).len(), scenario.path.len() + 1);
    assert_eq!(*scenario.path_of(second), scenario.path[..]);
    assert!(first.is_special() && second.is_special());
}

#[test]
fn values_are_toml_where_they_can_be_and_else_text() {
    let given: Override = " path.loss = 1% ".parse().expect("key=value");
    assert_eq!((given.key.as_str(), given.text()), ("path.loss", "path.loss = 1%"));
    let value = |text: &str| text.parse::<Override>().expect("key=value").value.to_string();
    assert_eq!(value("seeds=5"), "5");
    assert_eq!(value("output.series=true"), "true");
    assert_eq!(value("path.loss= 1% "), "\"1%\"");
    assert_eq!(value("title=1996-05-01"), "\"1996-05-01\"");
    assert_eq!(value("title=a=b"), "\"a=b\"");
    assert_eq!(value("path.x.packets=[1, 2]"), "[1, 2]");
}

#[test]
fn every_kind_of_element_is_read() {
    let text = r#"
title = "T"
[transfer]
size = "1 B"
[[path]]
element = "link"
rate = { forward = "2 Mbit/s", reverse = "1 Mbit/s" }
queue = { forward = "3 kB" }
mark = { forward = "2 kB" }
[[path]]
element = "delay"
delay = "1 light-second"
[[path]]
element = "loss"
rate = { reverse = "50 %" }
count = "data"
[[path]]
element = "evenly-spaced-loss"
every = 100
phase = 99
[[path]]
element = "listed-loss"
packets = [1, 5]
[[path]]
element = "gilbert-elliott"
good_to_bad = "1 %"
bad_to_good = "10 %"
loss_bad = "100 %"
active = { forward = true }
[[path]]
element = "bit-errors"
ber = 1e-7
[[path]]
element = "reorder"
share = "1 %"
extra_delay = "5 ms"
[[path]]
element = "duplicate"
share = { forward = "1 %" }
"#;
    let path = scenario(text, &["path.evenly-spaced-loss=none"]).path;
    let kinds: Vec<&ElementKind> = path.iter().map(|element| &element.kind).collect();
    let ElementKind::Link(Link { rate, queue, mark, .. }) = kinds[0] else { panic!("{:?}", kinds[0]) };
    assert_eq!((mark.forward, mark.reverse), (MarkThreshold::Bytes(Bytes(2000)), MarkThreshold::Never));
    assert_eq!((rate.forward.bit_per_s(), rate.reverse.bit_per_s()), (2_000_000, 1_000_000));
    assert_eq!((queue.forward, queue.reverse), (QueueLimit::Bytes(Bytes(3000)), QueueLimit::Unlimited));
    let ElementKind::EvenlySpaced(EvenlySpaced { every, phase, .. }) = kinds[3] else {
        panic!("{:?}", kinds[3])
    };
    assert_eq!((every.forward, *phase), (None, Some(99)));
    let ElementKind::GilbertElliott(GilbertElliott { active, loss_good, .. }) = kinds[5] else {
        panic!("{:?}", kinds[5])
    };
    assert_eq!((active.forward, active.reverse, *loss_good), (true, false, Probability::ZERO));
    let ElementKind::Duplicate(Duplicate { share }) = kinds[8] else { panic!("{:?}", kinds[8]) };
    assert_eq!(share.reverse, Probability::ZERO);
}

#[test]
fn a_mark_is_a_size_a_number_or_a_time() {
    for (written, expected) in [
        ("20 kB", MarkThreshold::Bytes(Bytes(20_000))),
        ("20 packets", MarkThreshold::Packets(20)),
        ("1 packet", MarkThreshold::Packets(1)),
        ("5 ms", MarkThreshold::Delay(Duration::from_millis(5))),
        ("never", MarkThreshold::Never),
    ] {
        let path = scenario(FILE, &[&format!("path.server-link.mark={written}")]).path;
        let ElementKind::Link(Link { mark, .. }) = &path[0].kind else { panic!("{path:?}") };
        assert_eq!((mark.forward, mark.reverse), (expected, expected), "{written}");
    }
}

#[test]
fn traps_are_warned_of() {
    let warnings = |overrides: &[&str]| scenario(FILE, overrides).warnings;
    assert_eq!(warnings(&[]), [""; 0]);
    let cases = [
        // Its ticks of half a second are as good as a floor.
        (
            "sender.rto={ min = \"200 ms\", tick = \"0 s\" }",
            "sender.rto.min: 200 ms lets a lone segment time out",
        ),
        ("receiver.receive.buffer=100 kB", "receiver.receive.buffer: without window scaling at both ends"),
        ("receiver.receive.buffer=1 kB", "receiver.receive.buffer: 1 kB is below one segment of 1.46 kB"),
        ("path.delay=33 s", "sender.rto.max: 64 s is below the round-trip time of 66.0"),
        (
            "path=[{ element = \"bit-errors\", ber = 1e-3, linear = true }]",
            "path.bit-errors: forward: the linear form gives",
        ),
        (
            "path=[{ element = \"radio\", rate = \"1 Mbit/s\", backoff = \"1 ms\", queue = \"9 kB\", mtu = \"576 B\", oversize = \"refuse\" }]",
            "path.radio.oversize: packets of 1.5 kB are over the MTU of 576 B: every full segment",
        ),
        (
            "path=[{ element = \"link\", rate = \"1 Mbit/s\", queue = \"9 kB\", mark = \"9 kB\" }]",
            "path.link: forward: a mark above 9 kB is never set in a queue of at most 9 kB",
        ),
        ("path.server-link.queue=100 B", "path.server-link: forward: a queue of 100 B"),
        (
            "path=[{ element = \"duplicate\", name = \"a\", share = \"100 %\" }, { element = \"duplicate\", name = \"b\", share = \"100 %\" }, { element = \"duplicate\", name = \"c\", share = \"100 %\" }, { element = \"duplicate\", name = \"d\", share = \"100 %\" }, { element = \"duplicate\", name = \"e\", share = \"10 %\" }]",
            "path: forward: a packet arrives 18 times in the mean",
        ),
    ];
    for (change, expected) in cases {
        let warnings = warnings(&[change]);
        assert!(warnings[0].starts_with(expected), "{change}: {warnings:?}");
    }
    let late = format!("{FILE}[[flow]]\ncount = 3\nspacing = \"1 h\"");
    assert_eq!(scenario(&late, &[]).warnings, ["horizon: 2 of 3 flows start only at 3600 s or later"]);
    let datagrams = [
        "transfer={ protocol = \"udp\", message = \"1 kB\", rate = \"1 Mbit/s\", count = 10 }",
        "sender.explicit_rate.wanted=1 Mbit/s",
    ];
    let expected = "explicit_rate.wanted: flow 0 asks for 1.000 Mbit/s, and its datagrams with their headers need 1.028: they wait";
    assert!(warnings(&datagrams)[0].starts_with(expected), "{:?}", warnings(&datagrams));
    let enough = [datagrams[0], "sender.explicit_rate.wanted=1.03 Mbit/s"];
    assert_eq!(warnings(&enough), [""; 0]);
    let scaled = [
        "receiver.receive.buffer=1 MB",
        "sender.send.window_scaling=true",
        "receiver.send.window_scaling=true",
    ];
    assert_eq!(warnings(&scaled), [""; 0]);
}

const CASES: &str = r#"
title = "cases"
[[path]]
element = "delay"
delay = "20 ms"
[transfer]
size = "1 MB"
[sweep]
case = ["as it was", "far", "far and small"]
[cases."as it was"]
[cases.far]
path.delay = "300 ms"
[cases."far and small"]
"path.delay" = "300 ms"
"transfer.size" = "1 kB"
"#;

#[test]
fn a_case_is_several_changes_by_one_name() {
    let experiment = Experiment::parse(CASES, "t.toml", &[]).unwrap_or_else(|error| panic!("{error}"));
    let points: Vec<(String, u64, u64)> = experiment
        .points()
        .map(|point| {
            let ElementKind::Delay(Delay { delay }) = &point.scenario.path[0].kind else {
                panic!("{point:?}")
            };
            (point.swept[0].1.clone(), delay.forward.as_nanos() / 1_000_000, point.scenario.flows[0].size.0)
        })
        .collect();
    let expected = [("as it was", 20, 1_000_000), ("far", 300, 1_000_000), ("far and small", 300, 1000)];
    assert_eq!(points, expected.map(|(name, ms, size)| (name.to_owned(), ms, size)));
    // One of them alone, with something else on top of it, which counts more.
    let changes = ["case=far and small", "path.delay=1 s"].map(|text| text.parse().expect("a change"));
    let one = Experiment::parse(CASES, "t.toml", &changes).expect("sound");
    let ElementKind::Delay(Delay { delay }) = &one.point(0).scenario.path[0].kind else { panic!("a delay") };
    assert_eq!((one.points().len(), delay.forward), (1, Duration::from_secs(1)));
    assert_eq!(one.point(0).scenario.flows[0].size, Bytes(1000));
    // And its place in the sweep makes it again.
    let again = experiment.only(2, &[]).expect("sound");
    assert_eq!(again.point(0).scenario, experiment.point(2).scenario);
}

#[test]
fn a_case_that_is_not_there_or_changes_what_is_not_there_is_refused() {
    let refused = |text: &str| Experiment::parse(text, "t.toml", &[]).expect_err("refused").to_string();
    let error = refused(&CASES.replace("\"far\",", "\"for\","));
    assert!(
        error.contains("sweep.\"case\"[1]") && error.contains("`for`") && error.contains("far"),
        "{error}"
    );
    let error = refused(&CASES.replace("path.delay = \"300 ms\"", "path.delai = \"300 ms\""));
    assert!(error.contains("cases.far.\"path.delai\""), "{error}");
}

/// Which of the four says what jitter an end has.
#[test]
fn jitter_is_of_the_end_else_of_both_else_of_the_stack_where_there_are_several_seeds() {
    let jitter = |overrides: &[&str]| {
        let scenario = scenario(&FILE.replace("riverbed-16", "linux-6"), overrides);
        [scenario.sender, scenario.receiver].map(|end| end.host.jitter.as_nanos() / 1000)
    };
    assert_eq!(jitter(&[]), [0, 0], "one seed");
    assert_eq!(jitter(&["seeds=2"]), [20, 20]);
    assert_eq!(jitter(&["seeds=2", "receiver.stack=ns-3.44"]), [20, 0]);
    assert_eq!(jitter(&["seeds=2", "host.jitter=0 us"]), [0, 0]);
    assert_eq!(jitter(&["host.jitter=5 us"]), [5, 5]);
    assert_eq!(jitter(&["host.jitter=5 us", "sender.host.jitter=7 us"]), [7, 5]);
    assert_eq!(jitter(&["seeds=2", "sender.host.jitter=0 us"]), [0, 20]);
}

#[test]
fn flows_with_ends_of_their_own_have_their_jitter() {
    let text =
        format!("seeds = 2\n{FILE}\n[[flow]]\nsender.stack = \"linux-6\"\nreceiver.host.jitter = \"3 us\"\n");
    let scenario = scenario(&text, &[]);
    let (sender, receiver) = scenario.ends(&scenario.flows[0]);
    assert_eq!([sender, receiver].map(|end| end.host.jitter), [20, 3].map(Duration::from_micros));
    assert_eq!(scenario.sender.host.jitter, Duration::ZERO, "riverbed-16");
}

/// A queue in bandwidth-delay products follows what is swept.
#[test]
fn queues_in_time_and_in_bandwidth_delay_products_are_bytes_at_each_point() {
    let queues = |queue: &str, sweep: &str, points: usize| -> Vec<(QueueLimit, QueueLimit)> {
        let text = format!(
            "title = \"t\"\n[[path]]\nelement = \"link\"\nrate = {{ forward = \"8 Mbit/s\", reverse = \"800 kbit/s\" }}\n\
             queue = {queue}\n[[path]]\nelement = \"delay\"\ndelay = \"100 ms\"\n[transfer]\nsize = \"1 MB\"\n{sweep}"
        );
        let experiment = Experiment::parse(&text, "t.toml", &[]).expect("sound");
        let queue = |point: usize| {
            let point = experiment.point(point);
            let ElementKind::Link(link) = &point.scenario.path[0].kind else { panic!("a link comes first") };
            (link.queue.forward, link.queue.reverse)
        };
        (0..points).map(queue).collect()
    };
    let bytes = |forward, reverse| (QueueLimit::Bytes(Bytes(forward)), QueueLimit::Bytes(Bytes(reverse)));
    assert_eq!(queues("\"50 ms\"", "", 1), [bytes(50_000, 5_000)]);
    let sweep = "[sweep]\n\"path.delay\" = [\"100 ms\", \"10 ms\"]\n";
    assert_eq!(queues("\"1 bdp\"", sweep, 2), [bytes(200_000, 20_000), bytes(20_000, 2_000)]);
    let one_way = queues("{ forward = \"0.5 bdp\", reverse = \"3 packets\" }", "", 1);
    assert_eq!(one_way, [(QueueLimit::Bytes(Bytes(100_000)), QueueLimit::Packets(3))]);
}
