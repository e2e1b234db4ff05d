//! `farpath import`: command lines of other emulators.

use crate::support::{Folder, flows, refused, run};

#[test]
fn a_path_of_tc_is_one_that_runs() {
    let folder = Folder::with(
        "title = \"t\"\npath = \"tc.toml\"\n[sender]\nstack = \"linux-6\"\n[transfer]\nsize = \"100 kB\"\n",
    );
    let tc = &folder.path("tc.toml");
    let command = "sudo tc qdisc add dev eth0 root netem delay 100ms 10ms rate 10mbit limit 50 loss 0.5%";
    let (out, err, code) = run(&["import", "tc", "--direction", "both", command, "--out", tc]);
    assert_eq!((code, out.as_str()), (0, ""), "{err}");
    let flows = flows(&["simulate", folder.file(), "--json"]);
    assert_eq!(flows[0]["outcomes"]["completed"], 1, "{flows:?}");
    // A handshake and three rounds of at least 90 ms each way.
    assert!(flows[0]["transfer_time_s"]["mean"].as_f64().expect("s") > 0.5, "{flows:?}");
    // It is there now.
    refused(&["import", "tc", command, "--out", tc], &["--out", "tc.toml"]);
}

#[test]
fn what_has_no_counterpart_is_refused() {
    refused(&["import", "tc", "tc qdisc add dev eth0 root sfq"], &["tc", "`sfq`", "netem"]);
    refused(&["import", "mahimahi", "mm-link up"], &["mahimahi", "`up`", "downlink"]);
    refused(&["import", "tc"], &["COMMAND"]);
    let two = "tc qdisc add dev eth0 root netem delay 20ms; tc qdisc add dev eth1 root netem delay 20ms";
    refused(&["import", "tc", two], &["tc", "dev eth0, dev eth1", "--direction eth0=forward,eth1=reverse"]);
    refused(&["import", "tc", "--direction", "eth0=up", two], &["--direction", "eth0=up", "`both`"]);
}
