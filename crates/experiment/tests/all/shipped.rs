//! What is shipped is accepted, and says what it stands for.

use farpath_elements::ElementKind;
use farpath_experiment::{
    Experiment, PublishedValue, Stack, shipped_experiments, shipped_paths, shipped_stacks, to_toml,
};
use farpath_tcp::HEADERS;
use farpath_tcp::config::{Config, RecoveryAlgorithm, SsthreshFrom};
use farpath_units::{Bytes, Duration};
use std::fs;

fn config(name: &str) -> Config {
    Stack::load(name).unwrap_or_else(|error| panic!("{error}")).config
}

fn experiment(name: &str) -> Experiment {
    let file = shipped_experiments().into_iter().find(|file| file.name == name).expect("it is shipped");
    Experiment::parse(file.text, &format!("{name}.toml"), &[]).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn every_stack_loads() {
    let names: Vec<_> = shipped_stacks().iter().map(|file| file.name).collect();
    let expected = [
        "bsd-1996",
        "freebsd",
        "linux-2.6-reno",
        "linux-6",
        "linux-6.1",
        "linux-6.12",
        "linux-6.18",
        "linux-testbed-2022",
        "ns-2.29",
        "ns-2.30",
        "ns-3.44",
        "opnet-11.5",
        "reno-1990",
        "reno-sack",
        "rfc-5681",
        "riverbed-16",
        "riverbed-16-attempts",
        "windows-2003",
        "windows-modern",
    ];
    assert_eq!(names, expected);
    for file in shipped_stacks() {
        let stack = Stack::load(file.name).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((stack.name.as_str(), stack.title), (file.name, file.title));
    }
}

#[test]
fn every_value_of_a_stack_has_its_source_beside_it() {
    for file in shipped_stacks() {
        for line in file.text.lines().filter(|line| line.contains(" = ") && !line.starts_with('#')) {
            let key = line.split_whitespace().next().expect("a key");
            let sourced = line.contains('#') || ["title", "source", "base"].contains(&key);
            assert!(sourced, "{}: {line}", file.name);
        }
    }
}

#[test]
fn every_path_and_experiment_loads_without_a_warning() {
    for file in shipped_paths() {
        let text = format!("title = \"T\"\npath = \"{}\"\ntransfer.size = \"1 MB\"", file.name);
        let parsed =
            |text: &str| Experiment::parse(text, "t.toml", &[]).unwrap_or_else(|error| panic!("{error}"));
        // Segments that fit into a radio's frames, and short ones: a full one in fragments, or over 32 kbit/s, takes longer than a
        // small SYN lets expect.
        let mut experiment = parsed(&text);
        let mtu =
            |kind: &ElementKind| if let ElementKind::Radio(radio) = kind { Some(radio.mtu) } else { None };
        let point = experiment.point(0);
        let path = &point.scenario.path;
        if let Some(mtu) = path.iter().filter_map(|element| mtu(&element.kind)).min() {
            let mss = mtu.saturating_sub(HEADERS).min(Bytes(512));
            experiment = parsed(&format!("{text}\nsender.mss = \"{mss}\""));
        }
        assert_eq!(experiment.point(0).scenario.warnings, [""; 0], "{}", file.name);
        assert!(!file.title.is_empty());
    }
    // One goes to where its timers end the connection, one withholds ACKs for longer than the timer waits, one has a window of one small
    // segment: that is what they show.
    let warned = ["reach-under-loss", "ricochet-ablations", "truth-lost-acks"];
    for file in shipped_experiments().iter().filter(|file| !warned.contains(&file.name)) {
        for point in experiment(file.name).points() {
            assert_eq!(point.scenario.warnings, [""; 0], "{}", file.name);
        }
    }
}

#[test]
fn the_rfc_stack_is_the_default() {
    assert_eq!(config("rfc-5681"), Config::default());
}

#[test]
fn the_high_ber_papers_stack_has_its_table() {
    let config = config("riverbed-16");
    assert_eq!((config.mss, config.receive.buffer), (Bytes(1460), Bytes(8760)));
    assert_eq!((config.rto.initial, config.rto.min), (Duration::from_secs(3), Duration::from_secs(1)));
    assert_eq!((config.rto.max, config.rto.tick), (Duration::from_secs(64), Duration::from_millis(500)));
    assert_eq!(config.recovery.algorithm, RecoveryAlgorithm::Reno);
    assert_eq!(config.congestion.ssthresh_from, SsthreshFrom::WindowSegments);
    assert_eq!(config.handshake.data_retries, None);
}

#[test]
fn the_two_ns_differ_in_the_initial_rto_only() {
    let (older, mut newer) = (config("ns-2.29"), config("ns-2.30"));
    assert_eq!((older.rto.initial, newer.rto.initial), (Duration::from_secs(6), Duration::from_secs(3)));
    newer.rto.initial = older.rto.initial;
    assert_eq!(older, newer);
}

#[test]
fn the_flagship_is_what_the_paper_ran() {
    let experiment = experiment("noisy-channel");
    assert_eq!((experiment.seeds, experiment.points().len()), (20, 5));
    let published = experiment.published.as_ref().expect("it has a paper");
    let time = PublishedValue::Duration("1943.61 s".parse().expect("a time"));
    assert_eq!(published.value("transfer_time", 4), Some(time));
    assert_eq!(published.value("retransmissions", 4), Some(PublishedValue::Count(1092)));
    let point = experiment.point(4);
    let scenario = &point.scenario;
    assert_eq!(scenario.flows[0].size, Bytes(10_000_000));
    assert_eq!(
        (scenario.sender.name.as_str(), scenario.receiver.name.as_str()),
        ("riverbed-16", "riverbed-16")
    );
}

#[test]
fn stacks_and_paths_of_ones_own_are_found_beside_the_experiment() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("written");
    write("mine.toml", "title = \"M\"\nrto.min = \"300 ms\"");
    write("bad.toml", "title = \"M\"\nrto.min = \"300 m\"");
    write("hop.toml", "title = \"H\"\n[[path]]\nelement = \"delay\"\ndelay = \"1 s\"");
    write("bad-hop.toml", "title = \"H\"\n[[path]]\nelement = \"delay\"\ndelay = 1");
    let text = "title = \"T\"\npath = \"hop.toml\"\nsender.stack = \"./mine.toml\"\ntransfer.size = \"1 B\"";
    write("e.toml", text);
    let file = folder.path().join("e.toml");
    let experiment = Experiment::load(&file, &[]).unwrap_or_else(|error| panic!("{error}"));
    let point = experiment.point(0);
    let scenario = &point.scenario;
    assert_eq!(scenario.sender.config.rto.min, Duration::from_millis(300));
    assert_eq!((scenario.sender.title.as_str(), scenario.receiver.name.as_str()), ("M", "./mine.toml"));

    let refused = |change: &str| {
        let change = change.parse().expect("key=value");
        Experiment::load(&file, &[change])
            .unwrap_err()
            .to_string()
            .replace(&folder.path().display().to_string(), "F")
    };
    assert_eq!(
        refused("sender.stack=bad.toml"),
        "F/e.toml: sender.stack (--set): F/bad.toml: rto.min: expected a duration such as `20 ms`, found `300 m`: \
         `m` is not a unit of it (ns, us, µs, ms, s, min, h, d, light-seconds, light-second, light-minutes, \
         light-hours)"
    );
    assert_eq!(
        refused("path=bad-hop.toml"),
        "F/e.toml: path (--set): F/bad-hop.toml: path[0].delay: expected a duration such as `20 ms`, found `1`: \
         it has no unit"
    );
}

#[test]
fn a_resolved_stack_reads_back() {
    for file in shipped_stacks() {
        let config = config(file.name);
        let text = format!("title = \"T\"\n{}", to_toml(&config));
        assert_eq!(Stack::parse(&text, "t.toml").unwrap_or_else(|error| panic!("{error}")).config, config);
    }
}

/// The blocks of `language` in a page of the user guide.
fn blocks(page: &str, language: &str) -> Vec<String> {
    let file = format!("{}/../../docs/{page}", env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{file}: {error}"));
    let fence = format!("```{language}\n");
    let parts = text.split(&fence).skip(1);
    let blocks: Vec<_> = parts.filter_map(|part| part.split("```").next()).map(str::to_owned).collect();
    assert!(!blocks.is_empty(), "{file}");
    blocks
}

#[test]
fn the_examples_of_the_guide_are_accepted() {
    let pages = blocks("experiment-files.md", "toml");
    let example = Experiment::parse(&pages[0], "web.toml", &[]).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(example.points().len(), 6);
    let starting =
        |start: &str| pages.iter().filter(move |block| block.starts_with(start)).collect::<Vec<_>>();
    for transfer in starting("transfer = ") {
        let text = format!("title = \"T\"\npath = \"geo\"\n{transfer}");
        Experiment::parse(&text, "transfer.toml", &[]).unwrap_or_else(|error| panic!("{error}"));
    }
    let sweep = starting("[sweep]")[0];
    let sweep = format!("title = \"T\"\npath = \"geo\"\ntransfer.size = \"1 MB\"\n{sweep}");
    let sweep = Experiment::parse(&sweep, "sweep.toml", &[]).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(sweep.points().len(), 2 * 3 * 2);
    for stack in blocks("stacks.md", "toml") {
        Stack::parse(&stack, "mine.toml").unwrap_or_else(|error| panic!("{error}"));
    }
}

#[test]
fn the_guide_names_every_parameter() {
    let file = format!("{}/../../docs/stacks.md", env!("CARGO_MANIFEST_DIR"));
    let guide = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{file}: {error}"));
    for line in to_toml(&Config::default()).lines() {
        let key = line.split(" = ").next().unwrap_or_default();
        assert!(key.is_empty() || guide.contains(&format!("`{key}`")), "{key}");
    }
}
