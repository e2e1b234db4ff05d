//! Stacks that say their base and their differences only.

use farpath_experiment::{MAX_BASES, Stack};
use farpath_tcp::config::SuperPackets;
use farpath_units::{Bytes, Duration};
use std::fs;
use std::path::Path;

fn write(folder: &Path, name: &str, text: &str) -> String {
    let file = folder.join(name);
    fs::write(&file, text).expect("the folder is ours");
    file.display().to_string()
}

fn stack(base: &str) -> String {
    format!("title = \"T\"\nbase = \"{base}\"\n")
}

fn refusal(file: &str) -> String {
    Stack::load(file).expect_err("it is refused").to_string()
}

#[test]
fn a_stack_is_its_base_but_for_what_it_says() {
    let folder = tempfile::tempdir().expect("a folder");
    let first = stack("linux-6.12") + "[rto]\nmin = \"300 ms\"\n[linux.sysctl]\n\"net.ipv4.tcp_frto\" = 1\n";
    write(folder.path(), "first.toml", &first);
    let file =
        write(folder.path(), "second.toml", &(stack("./first.toml") + "[receive]\nbuffer = \"1 MiB\"\n"));
    let found = Stack::load(&file).unwrap_or_else(|error| panic!("{error}"));

    let mut expected = Stack::load("linux-6.12").expect("it ships");
    expected.config.rto.min = Duration::from_millis(300);
    expected.config.receive.buffer = Bytes(1 << 20);
    assert_eq!(found.config, expected.config);
    assert_eq!(found.linux.sysctls["net.ipv4.tcp_frto"], "1");
    assert_eq!(found.linux.sysctls["net.ipv4.tcp_autocorking"], "1", "the base's base says it");

    let explained = Stack::explain(&file).expect("it was just read");
    let from = |key: &str| {
        let line =
            explained.lines().find(|line| line.starts_with(&format!("{key} = "))).expect("it is there");
        line.split_once(" # ").expect("each line says it").1.to_owned()
    };
    assert_eq!(from("buffer"), file);
    assert_eq!(from("min"), "./first.toml");
    assert_eq!(from("ack_delay"), "linux-6.12");
    assert_eq!(from("srtt_divisor"), "default: RFC 6298 §2.3");
    assert_eq!(from("\"net.ipv4.tcp_frto\""), "./first.toml");
}

#[test]
fn a_base_that_cannot_be_read_is_named_with_its_file_and_key() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| write(folder.path(), name, text);
    let none = write("none.toml", &stack("linux-7"));
    assert!(refusal(&none).contains("none.toml: base: no stack is called `linux-7`"), "{}", refusal(&none));
    let gone = write("gone.toml", &stack("./nowhere.toml"));
    assert!(refusal(&gone).contains("gone.toml: base: cannot read"), "{}", refusal(&gone));
    write("wrong.toml", "title = \"T\"\nmss = 3\n");
    let wrong = write("over.toml", &stack("wrong.toml"));
    assert!(refusal(&wrong).contains("wrong.toml: mss: "), "{}", refusal(&wrong));
    // What a base says is checked together with what stands on it.
    let bounds = write("bounds.toml", &(stack("linux-6.12") + "rto.max = \"100 ms\"\n"));
    assert!(
        refusal(&bounds).contains("bounds.toml: rto.min: 200 ms is above `rto.max`"),
        "{}",
        refusal(&bounds)
    );
}

#[test]
fn stacks_that_are_based_on_each_other_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| write(folder.path(), name, text);
    let one = write("one.toml", &stack("two.toml"));
    write("two.toml", &stack("one.toml"));
    assert!(
        refusal(&one).contains("two.toml: base: ") && refusal(&one).contains("is its own base"),
        "{}",
        refusal(&one)
    );
    let depth = MAX_BASES + 2;
    for place in 0..depth {
        write(&format!("{place}.toml"), &stack(&format!("{}.toml", place + 1)));
    }
    write(&format!("{depth}.toml"), "title = \"T\"\n");
    let deep = folder.path().join("0.toml").display().to_string();
    assert!(refusal(&deep).contains("8 stacks are based on each other"), "{}", refusal(&deep));
    assert!(Stack::load(&folder.path().join("2.toml").display().to_string()).is_ok());
}

/// `linux-6` is another name, and ns 2.29 differs from 2.30 in one value.
#[test]
fn shipped_stacks_are_related_as_they_say() {
    let config = |name| Stack::load(name).unwrap_or_else(|error| panic!("{error}")).config;
    assert_eq!(config("linux-6"), config("linux-6.12"));
    let mut ns = config("ns-2.30");
    ns.rto.initial = Duration::from_secs(6);
    assert_eq!(ns, config("ns-2.29"));
    let mut linux = config("linux-6.12");
    (linux.handshake.syn_attempts, linux.handshake.syn_linear_timeouts) = (Some(7), 0);
    linux.send.super_packets = SuperPackets::Plain;
    assert_eq!(linux, config("linux-6.1"));
    let mut linux = config("linux-6.12");
    linux.receive.buffer = Bytes(16 << 20);
    assert_eq!(linux, config("linux-6.18"));
}
