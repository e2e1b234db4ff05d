//! `farpath diagnose --pid` and `--dst`: connections of this machine, watched. Needs no privileges.

use crate::support::{lines, refused, run};
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Runs a command while a sender on loopback has more to send than its receiver, which does not read, takes.
#[expect(clippy::disallowed_methods, reason = "the kernel works in real time")]
fn beside_a_full_window(arguments: impl Fn(u16) -> Vec<String>) -> (String, String, i32) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
    let address = listener.local_addr().expect("an address");
    let mut sender = TcpStream::connect(address).expect("it listens");
    let (receiver, _) = listener.accept().expect("a client");
    sender.set_nonblocking(true).expect("a socket");
    let stop = AtomicBool::new(false);
    let arguments = arguments(address.port());
    thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                // It would block, but for the first megabytes.
                let _ = sender.write(&[0; 65536]);
                thread::sleep(std::time::Duration::from_millis(1));
            }
        });
        let done = run(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
        stop.store(true, Ordering::Relaxed);
        drop(receiver);
        done
    })
}

#[test]
fn a_receiver_that_does_not_read_is_named_by_process_and_by_peer() {
    let by_process = |_| ["diagnose", "--pid", &process::id().to_string()].map(str::to_owned).to_vec();
    let by_peer = |port| ["diagnose", "--dst", &format!("localhost:{port}")].map(str::to_owned).to_vec();
    let arguments: [&dyn Fn(u16) -> Vec<String>; 2] = [&by_process, &by_peer];
    for named in arguments {
        let more = ["--for", "1s", "--every", "300ms", "--json"].map(str::to_owned);
        let (out, err, code) = beside_a_full_window(|port| [named(port), more.to_vec()].concat());
        assert_eq!(code, 0, "{err}");
        let found = lines(&out);
        // The last object is of the whole; those before are of 300 ms each.
        let (whole, each) = found.split_last().expect("objects");
        assert!(
            each.iter().any(|line| line["limits_s"]["zero-window"].as_f64().unwrap_or(0.0) > 0.0),
            "{out}"
        );
        let held: f64 = whole["limits"]
            .as_array()
            .expect("a list")
            .iter()
            .filter(|limit| matches!(limit["limit"].as_str(), Some("zero-window" | "receive-window")))
            .map(|limit| limit["time_s"].as_f64().expect("s"))
            .sum();
        assert!(held > 0.5 * whole["duration_s"].as_f64().expect("s"), "{out}");
    }
}

#[test]
fn what_cannot_be_watched_is_said() {
    refused(&["diagnose", "--pid", "999999999"], &["process 999999999 cannot be watched: there is none"]);
    let words = ["--dst: expected HOST or HOST:PORT, found \"localhost:http\""];
    refused(&["diagnose", "--dst", "localhost:http"], &words);
    refused(&["diagnose"], &["--pid", "--dst"]);
    // Nobody has a connection to this address.
    refused(&["diagnose", "--dst", "192.0.2.7:9", "--for", "100 ms"], &["there was no such connection"]);
}
