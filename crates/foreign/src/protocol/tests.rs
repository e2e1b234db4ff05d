use super::*;
use farpath_units::Bytes;
use proptest::prelude::*;

const NOW: Instant = Instant::from_nanos(1000);

fn answered(lines: &[&str]) -> Result<Answer, ProtocolError> {
    let mut reader = AnswerReader::new(NOW, 40, (10, 100), false);
    let mut over = false;
    for line in lines {
        assert!(!over, "`{line}` comes after the end");
        over = reader.line(line.as_bytes())?;
    }
    assert!(over, "the answer has an end");
    Ok(reader.finish().0)
}

fn refused(line: &str) -> String {
    answered(&[line, "next never"]).expect_err(line).to_string()
}

#[test]
fn an_answer_is_read_to_its_end() {
    let answer = answered(&["connected", "packet 4500ff", "packet 45", "read 60\r", "closed", "next 1001"]);
    let expected = Answer {
        packets: vec![vec![0x45, 0, 0xff], vec![0x45]],
        read: Some(60),
        connected: true,
        closed: true,
        failed: None,
        next_due: Some(Instant::from_nanos(1001)),
    };
    assert_eq!(answer, Ok(expected));
    let failed = answered(&["failed timed out", "next never"]).expect("sound");
    assert_eq!((failed.failed.as_deref(), failed.next_due), (Some("timed out"), None));
}

#[test]
fn what_is_wrong_is_named_with_what_was_expected_and_found() {
    for (line, words) in [
        ("hello", &["expected `packet`", "found `hello`"][..]),
        ("", &["found ``"]),
        ("connected now", &["found `connected now`"]),
        ("name me", &["found `name me`"]),
        ("packet 4", &["even number of hexadecimal digits", "found `4`"]),
        ("packet xy", &["found `xy`"]),
        ("packet", &["1 to 40 B", "found 0 B"]),
        ("read -1", &["a number of bytes", "found `-1`"]),
        ("read 99999999999999999999", &["a number of bytes"]),
        ("read 9", &["from 10 to 100", "found 9"]),
        ("read 101", &["from 10 to 100", "found 101"]),
        ("failed", &["text of 1 to 200 B"]),
        ("failed \u{1b}[2J", &["without control characters", "\\u{1b}"]),
        ("next", &["a time in ns, or `never`"]),
        ("next 1000", &["after 1000 ns", "found 1000"]),
        ("next 0", &["after 1000 ns", "found 0"]),
        ("\u{7}\u{7}", &["found `\\u{7}\\u{7}`"]),
    ] {
        let said = refused(line);
        for word in words {
            assert!(said.contains(word), "`{line}`: `{word}` is not in: {said}");
        }
    }
    let long = format!("packet {}", "45".repeat(41));
    assert!(refused(&long).contains("found 41 B"));
    let endless = "a".repeat(1000);
    assert!(refused(&endless).len() < 250, "of a long line the beginning is shown");
}

#[test]
fn an_answer_has_so_many_lines_and_bytes_and_no_more() {
    let mut reader = AnswerReader::new(NOW, 40, (0, 0), false);
    for _ in 0..MAX_LINES {
        assert_eq!(reader.line(b"connected"), Ok(false));
    }
    assert_eq!(reader.line(b"next never"), Err(ProtocolError::LongAnswer));

    let mut reader = AnswerReader::new(NOW, 65_535, (0, 0), false);
    let packet = format!("packet {}", "00".repeat(65_535));
    let fits = MAX_ANSWER / 65_535 + 1;
    for _ in 0..fits {
        assert_eq!(reader.line(packet.as_bytes()), Ok(false));
    }
    assert_eq!(reader.line(packet.as_bytes()), Err(ProtocolError::LongAnswer));

    let mut reader = AnswerReader::new(NOW, 65_535, (0, 0), false);
    assert_eq!(reader.line(&vec![b'0'; MAX_LINE + 1]), Err(ProtocolError::LongLine));
}

#[test]
fn the_first_answer_says_what_answers() {
    let mut reader = AnswerReader::new(Instant::ZERO, 1500, (0, 0), true);
    assert_eq!(reader.line(b"name lwIP 2.1.3"), Ok(false));
    assert_eq!(reader.line(b"next never"), Ok(true));
    assert_eq!(reader.finish().1.as_deref(), Some("lwIP 2.1.3"));
    let mut reader = AnswerReader::new(Instant::ZERO, 1500, (0, 0), true);
    assert_eq!(reader.line(b"next never"), Err(ProtocolError::Nameless));
}

#[test]
fn requests_are_single_lines_that_say_all() {
    let setup = HostSetup {
        opens: true,
        sends: false,
        size: Bytes(5),
        local: "10.0.0.2:50000".parse().expect("an address"),
        remote: "10.0.0.1:50000".parse().expect("an address"),
        mtu: 1500,
        send_buffer: Bytes(7),
        receive_buffer: Bytes(8),
        control: "cubic",
        seed: 9,
    };
    let expected = "farpath-host 1 role=opens task=receives bytes=5 local=10.0.0.2:50000 remote=10.0.0.1:50000 mtu=1500 send_buffer=7 \
                    receive_buffer=8 control=cubic seed=9\n";
    assert_eq!(hello(&setup), expected);
    assert_eq!(timed("timer", NOW), "timer 1000\n");
    assert_eq!(packet(NOW, &[0x45, 0xaf]), "packet 1000 45af\n");
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused_in_few_words(line in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut reader = AnswerReader::new(NOW, 1500, (0, 1000), true);
        if let Err(error) = reader.line(&line) {
            let said = error.to_string();
            prop_assert!(said.len() < 1000 && !said.chars().any(char::is_control));
        }
    }
}
