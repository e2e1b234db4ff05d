//! `farpath explicit-rate qos` from outside.

use assert_cmd::Command;
use serde_json::Value;

/// Output, messages and exit code.
fn decode(args: &[&str]) -> (String, String, i32) {
    let mut command = Command::cargo_bin("farpath").expect("built with this test");
    let output = command.args(["explicit-rate", "qos", "decode"]).args(args).output().expect("it runs");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    (text(output.stdout), text(output.stderr), output.status.code().expect("it exits"))
}

/// A field's line has this value and meaning.
fn assert_field(output: &str, name: &str, value: &str) {
    let line = output.lines().find(|line| line.split_whitespace().any(|word| word == name));
    assert!(line.is_some_and(|line| line.contains(value)), "{name}: {value}\n{output}");
}

#[test]
fn a_structure_is_named_field_by_field() {
    let (output, _, code) = decode(&["0a090001 5da9 0000 80 80 20 05 0011 a052"]);
    assert_eq!(code, 0);
    assert!(output.starts_with(
        "IPv4, one QoS Structure\nresponse: Available Rate 29.984 Mbit/s, marked by a router\n"
    ));
    assert_field(&output, "Address", "10.9.0.1");
    assert_field(&output, "AR", "29.984 Mbit/s");
    assert_field(&output, "CD", "response");
    assert_field(&output, "BT", "15.625 ms");
    assert_field(&output, "Port", "41042");
}

#[test]
fn a_whole_packet_shows_whose_structures_it_carries() {
    let packet = "450c005c000040004006267e0a0800020a080001 1b58e796fcdea3d726488807a012fe8846130000 \
                  020405b40402080a49d856bcf45623580103030a 0a080001610d0000808020050010e796 \
                  00000000610d00008080100500100000";
    let (output, _, code) = decode(&["--json", packet]);
    assert_eq!(code, 0);
    let json: Value = serde_json::from_str(&output).expect("JSON");
    assert_eq!(json["form"], "ip-packet");
    assert_eq!(json["packet"]["source"], "10.8.0.2:7000");
    assert_eq!(json["packet"]["mark"], "QoSSignal");
    assert_eq!(json["structures"][0]["message"], "response");
    assert_eq!(json["structures"][1]["available_bit_per_s"], 99_968_000);
    assert_eq!(json["fields"][0]["byte"], 60);
}

#[test]
fn an_ipv6_header_and_another_unit_are_understood() {
    let header = "06:03:20:0c:61:0d:00:00:80:80:20:05:00:10:00:00 01 00 20 0c 5aee 0000 0000 1005 0010 0000";
    let (output, _, code) = decode(&["--unit", "bit/s", header]);
    assert_eq!(code, 0);
    assert!(output.starts_with("IPv6 hop-by-hop header, two QoS Structures\n"), "{output}");
    assert_field(&output, "AR", "99.968 kbit/s");
    assert_field(&output, "PadN", "aligns");
}

#[test]
fn advice_is_not_shown_as_a_grant() {
    let (output, _, code) = decode(&["fe066f7d003c"]);
    assert_eq!(code, 0);
    assert!(
        output.contains("at most 100000000 bit/s (n = 60)") && output.contains("grants nothing"),
        "{output}"
    );
}

#[test]
fn what_is_no_structure_is_refused_with_a_reason() {
    for (hex, message) in [
        (
            "00000000 610d 0000 80 80 90 05 0010 0000",
            "no QoS Structure: CD (byte 10): 9 is not assigned; expected 0 to 7",
        ),
        ("00000000 610d 0000 80 80 10 05 0010 000", "HEX: expected two digits to a byte, found 31 digits"),
        ("00000000 61zd", "HEX: expected hexadecimal digits, found `z` at character 12"),
        ("0000", "found 2 bytes"),
        ("06 01 20 0b 610d 0000 8080 1005 0010 0000", "option length (byte 3): expected 12, found 11"),
        (
            "45000028000040004006000001010101020202020001000200000000000000005000000000000000",
            "without QoS Structures, DSCP 0",
        ),
    ] {
        let (output, error, code) = decode(&[hex]);
        assert_eq!((code, output.as_str()), (2, ""), "{hex}");
        assert!(error.starts_with("farpath: ") && error.contains(message), "{error}");
    }
}

#[test]
fn what_is_encoded_is_decoded_to_the_same() {
    let encode = |args: &[&str]| {
        let mut command = Command::cargo_bin("farpath").expect("built with this test");
        let output = command.args(["explicit-rate", "qos", "encode"]).args(args).output().expect("it runs");
        String::from_utf8(output.stdout).expect("hexadecimal").trim().to_owned()
    };
    // As captured from a kernel's SYN, and from its peer's ACK behind a router.
    assert_eq!(encode(&["--available", "100 Mbit/s"]), "00000000 610e 0000 80 80 10 05 0010 0000");
    let response =
        ["--message", "response", "--available", "30 Mbit/s", "--marked", "--source", "10.9.0.1:41042"];
    assert_eq!(encode(&response), "0a090001 5da9 0000 80 80 20 05 0011 a052");
    let guarantee = [
        "--type=composite",
        "--available=40 Mbit/s",
        "--guaranteed=5 Mbit/s",
        "--preemption=63",
        "--delay=1",
        "--burst=8",
        "--reverse-charging",
    ];
    for ipv6 in [&[][..], &["--ipv6"]] {
        let hex = encode(&[&guarantee[..], ipv6].concat());
        let (output, _, code) = decode(&["--json", &hex]);
        assert_eq!(code, 0, "{hex}");
        let json: Value = serde_json::from_str(&output).expect("JSON");
        let one = &json["structures"][0];
        assert_eq!((&one["message"], &one["rate_type"]), (&"request".into(), &"composite".into()));
        assert_eq!((&one["preemption_priority"], &one["delay_priority"]), (&63.into(), &1.into()));
        assert_eq!((&one["charging"], &one["burst_tolerance_ns"]), (&"reverse".into(), &1_953_125.into()));
        // Rounded up to a word of the rate code.
        assert_eq!(one["available_bit_per_s"], 40_000_000);
        assert_eq!(one["guaranteed_bit_per_s"], 5_000_000);
    }
}
