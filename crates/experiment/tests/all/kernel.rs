//! What an experiment says of the running kernel: `[emulate]`, and `[linux]` of a stack.

use farpath_experiment::{
    Backend, EmulateOptions, EmulationClock, Experiment, IpVersion, Scenario, Stack, lateness_budget,
    shipped_stacks,
};
use farpath_units::{Bytes, Duration, Probability};

const FILE: &str = "title = \"T\"\npath = \"geo\"\ntransfer.size = \"1 MB\"\n";

fn parse(text: &str, overrides: &[&str]) -> Result<Scenario, String> {
    let overrides: Vec<_> = overrides.iter().map(|text| text.parse().expect("key=value")).collect();
    let experiment = Experiment::parse(&format!("{FILE}{text}"), "e.toml", &overrides);
    experiment.map(|experiment| experiment.point(0).scenario.clone()).map_err(|error| error.to_string())
}

fn set(overrides: &[&str]) -> Scenario {
    parse("", overrides).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn emulation_is_period_accurate_and_short_unless_told_otherwise() {
    let options = set(&[]).emulate;
    assert_eq!(options, EmulateOptions::default());
    assert_eq!((options.seeds, options.coalesce, options.repeats), (1, false, 2));
    assert_eq!((options.clock.clone(), options.memory), (EmulationClock::Real, Bytes(1_000_000_000)));
    let ms = Duration::from_millis;
    assert_eq!([1, 45_000].map(|rtt| options.sample_over(ms(rtt))), [10, 10].map(ms));
    let in_virtual_time = set(&["emulate.clock=virtual"]).emulate;
    assert_eq!([1, 45_000].map(|rtt| in_virtual_time.sample_over(ms(rtt))), [10, 11_250].map(ms));
}

#[test]
fn every_key_of_emulate_is_read() {
    let text = "[emulate]\nclock = \"virtual\"\nkernel = \"6.12-hz100\"\ngive_up_after = \"5 s\"\ncpu_cost = 1.5\nseeds = 5\n\
                coalesce = true\nip = 6\nbackend = \"packet\"\nsample = \"50 ms\"\nlateness = \"1 ms\"\n\
                processor_wait = \"30 %\"\nrepeats = 0\nmemory = \"2 GB\"\n";
    let expected = EmulateOptions {
        clock: EmulationClock::Virtual(Some("6.12-hz100".to_owned())),
        give_up_after: Duration::from_secs(5),
        cpu_cost: 1.5,
        seeds: 5,
        coalesce: true,
        ip: IpVersion::V6,
        backend: Backend::Packet,
        sample: Some(Duration::from_millis(50)),
        lateness: Some(Duration::from_millis(1)),
        processor_wait: Probability::new(0.3).expect("a share"),
        repeats: 0,
        memory: Bytes(2_000_000_000),
    };
    assert_eq!(parse(text, &["seeds=5"]).map(|scenario| scenario.emulate), Ok(expected));
    assert!(set(&["emulate.coalesce=true"]).emulate.coalesce);
}

#[test]
fn emulate_is_swept_like_any_other() {
    let text = format!("{FILE}[sweep]\n\"emulate.coalesce\" = [false, true]\n");
    let experiment = Experiment::parse(&text, "e.toml", &[]).unwrap_or_else(|error| panic!("{error}"));
    let coalesce: Vec<_> = experiment.points().map(|point| point.scenario.emulate.coalesce).collect();
    assert_eq!(coalesce, [false, true]);
}

#[test]
fn what_emulate_cannot_be_is_refused() {
    let refused = |given: &str| parse("", &[given]).expect_err("it is refused");
    assert_eq!(
        refused("emulate.coalese=true"),
        "e.toml: emulate.coalese (--set): unknown key; did you mean `coalesce`?"
    );
    assert_eq!(refused("emulate.ip=5"), "e.toml: emulate.ip (--set): expected 4 or 6, found `5`");
    assert_eq!(
        refused("emulate.backend=xdp"),
        "e.toml: emulate.backend (--set): expected one of `auto`, `tun`, `packet`, found `xdp`"
    );
    assert_eq!(
        refused("emulate.sample=10 us"),
        "e.toml: emulate.sample (--set): expected at least 1 ms, found 10 us"
    );
    assert_eq!(
        refused("emulate.cpu_cost=1"),
        "e.toml: emulate.cpu_cost (--set): in real time programs take the time that they take; expected \
         `emulate.clock = \"virtual\"` beside it"
    );
    for given in
        ["emulate.cpu_cost=-1", "emulate.cpu_cost=1e9", "emulate.cpu_cost=nan", "emulate.cpu_cost='1 s'"]
    {
        let expected = "e.toml: emulate.cpu_cost (--set): expected a factor from 0 to 1000, found ";
        assert!(refused(given).starts_with(expected), "{}", refused(given));
    }
    for given in ["emulate.seeds=0", "emulate.lateness=0 s", "emulate.memory=0 B", "emulate.repeats=-1"] {
        let (key, _) = given.split_once('=').expect("key=value");
        assert!(refused(given).starts_with(&format!("e.toml: {key} (--set): ")), "{given}");
    }
}

#[test]
fn lateness_is_a_hundredth_of_the_round_trip_and_never_below_the_machines_own() {
    let budget = |delay: &str| {
        let text = format!(
            "title = \"T\"\npath = [{{ element = \"delay\", delay = \"{delay}\" }}]\ntransfer.size = \"1 MB\"\n"
        );
        let experiment = Experiment::parse(&text, "e.toml", &[]).unwrap_or_else(|error| panic!("{error}"));
        lateness_budget(&experiment.point(0).scenario)
    };
    assert_eq!(budget("300 ms"), Duration::from_millis(6));
    assert_eq!(budget("1 ms"), Duration::from_micros(200));
    assert_eq!(lateness_budget(&set(&["emulate.lateness=3 ms"])), Duration::from_millis(3));
    assert_eq!(lateness_budget(&set(&["emulate.lateness=auto"])), lateness_budget(&set(&[])));
}

#[test]
fn a_stack_says_what_the_kernel_is_told() {
    let text = "title = \"T\"\n[linux]\ncongestion_control = \"bbr\"\nautotuning = true\n\
                sysctl = { \"net.ipv4.tcp_frto\" = 0, \"net.ipv4.tcp_rmem\" = \"4096 8192 8192\" }\n";
    let stack = Stack::parse(text, "s.toml").unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(stack.linux.congestion_control.as_deref(), Some("bbr"));
    assert!(stack.linux.autotuning);
    let sysctls: Vec<_> =
        stack.linux.sysctls.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(sysctls, [("net.ipv4.tcp_frto", "0"), ("net.ipv4.tcp_rmem", "4096 8192 8192")]);
}

#[test]
fn a_stack_names_a_bpf_object_beside_it_which_takes_the_place_of_another_controller() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path.display().to_string()
    };
    file("mine.bpf.o", b"object");
    let base = file("base.toml", b"title = \"T\"\n[linux]\ncongestion_control = \"bbr\"\n");
    let own = file("own.toml", b"title = \"T\"\nbase = \"base.toml\"\n[linux]\nbpf = \"mine.bpf.o\"\n");
    let back =
        file("back.toml", b"title = \"T\"\nbase = \"own.toml\"\n[linux]\ncongestion_control = \"bbr\"\n");
    let none = file("none.toml", b"title = \"T\"\nbase = \"own.toml\"\n[linux]\nbpf = \"none\"\n");
    let load = |file: &str| Stack::load(file).unwrap_or_else(|error| panic!("{error}")).linux;
    let (base, own, back, none) = (load(&base), load(&own), load(&back), load(&none));
    let object = own.bpf.clone().expect("it is named");
    assert_eq!((&*object.bytes, own.congestion_control), (&b"object"[..], None));
    assert_eq!(back, base);
    assert_eq!((none.bpf, none.congestion_control), (None, None));

    // What is in force is read back to the same, wherever it is read.
    let text = Stack::load(&folder.path().join("own.toml").display().to_string()).unwrap().to_toml();
    let again = Stack::parse(&format!("title = \"T\"\n{text}"), "t.toml")
        .unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(again.linux.bpf, Some(object));
}

#[test]
fn an_end_adds_to_what_its_stack_says() {
    let scenario = set(&["sender.stack=linux-6", "sender.linux.sysctl.net.ipv4.tcp_max_reordering=1"]);
    let (sender, receiver) = (&scenario.sender.linux.sysctls, &scenario.receiver.linux.sysctls);
    assert_eq!(sender["net.ipv4.tcp_max_reordering"], "1");
    assert_eq!(receiver["net.ipv4.tcp_max_reordering"], "300");
    assert_eq!(sender["net.ipv4.tcp_autocorking"], receiver["net.ipv4.tcp_autocorking"]);
}

#[test]
fn a_resolved_stack_keeps_its_linux_table() {
    for file in shipped_stacks() {
        let stack = Stack::load(file.name).unwrap_or_else(|error| panic!("{error}"));
        let text = format!("title = \"T\"\n{}", stack.to_toml());
        let again = Stack::parse(&text, "t.toml").unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!((again.config, again.linux), (stack.config, stack.linux), "{}", file.name);
    }
}

#[test]
fn nothing_but_a_namespaces_own_is_ever_written() {
    let refused = |name: &str| {
        let text = format!("title = \"T\"\n[linux.sysctl]\n\"{name}\" = 1\n");
        Stack::parse(&text, "s.toml").expect_err("it is refused").to_string()
    };
    let expected = "expected a sysctl of a network namespace such as `net.ipv4.tcp_frto`, found";
    for name in
        ["kernel.panic", "net.core.rmem_max", "net.ipv4.../../kernel/panic", "net.ipv4.", "net.ipv4.a b"]
    {
        assert!(refused(name).contains(expected), "{name}: {}", refused(name));
    }
    let text = "title = \"T\"\n[linux]\nsysctl = { \"net.ipv4.tcp_frto\" = true }\n";
    assert_eq!(
        Stack::parse(text, "s.toml").expect_err("it is refused").to_string(),
        "s.toml: linux.sysctl.net.ipv4.tcp_frto: expected a whole number, or text in one line, found `true`"
    );
}
