//! Clients that ask for anything, with numbers that nobody expects, and do anything with what they are given: whatever they
//! ask, the responder goes on, gives back what they had, and ends when it is told to.

use crate::common;

use common::raw::{self, Client};
use common::{experiment, peer, run, served, v4, with};
use farpath_measure::serve::Limits;
use farpath_run::Outcome;
use proptest::prelude::*;
use serde_json::{Value, json};
use socket2::Socket;
use std::io::{Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::time::Duration;

/// What is asked, and what is done then.
#[derive(Debug, Clone)]
struct Request {
    message: Value,
    /// Bytes that are written to a connection, or sent as datagrams behind the token.
    bytes: Vec<u8>,
    token: bool,
    reset: bool,
}

fn number(usual: u64) -> impl Strategy<Value = Value> {
    prop_oneof![
        8 => Just(Value::from(usual)),
        2 => prop::sample::select(vec![0, 1, 44, 1472, 65_536, 100_000, u64::from(u32::MAX), 1 << 53, u64::MAX])
            .prop_map(Value::from),
        1 => any::<u64>().prop_map(Value::from),
        1 => prop::sample::select(vec![json!(-1), json!(0.5), json!(null), json!("x"), json!([]), json!({})]),
    ]
}

fn message() -> impl Strategy<Value = Value> {
    let kind = prop::sample::select(vec![
        "transfer", "transfer", "transfer", "echo", "burst", "ping", "kernel", "done", "stop",
    ]);
    let usual = (number(0), number(1000), number(20), number(1), number(20_000_000), number(10));
    let more = (number(1_000_000), number(0), number(1_000), number(100_000), any::<[bool; 5]>());
    (kind, usual, more).prop_map(|(kind, usual, more)| {
        let (flow, size, request, exchanges, within, count) = usual;
        let (sample, quiet, rate, buffer, [sends, a, b, c, d]) = more;
        let mut asked = json!({ "flow": flow, "number": flow, "sends": sends, "size": size, "request": request,
                                "exchanges": exchanges, "within_ns": within, "count": count, "quiet_ns": quiet });
        if a {
            asked["sample_every_ns"] = sample;
        }
        if b {
            (asked["read_rate"], asked["low_water"]) = (rate.clone(), buffer.clone());
        }
        if c {
            asked["socket"] = json!({ "receive_buffer": buffer, "send_buffer": rate, "mss": rate, "rto_min_ns": buffer });
        }
        if d {
            asked["messages"] = json!({ "size": count, "count": 100, "pace": { "every-ns": quiet } });
        }
        json!({ kind: asked })
    })
}

fn requests() -> impl Strategy<Value = Vec<Request>> {
    let bytes = prop::collection::vec(any::<u8>(), 0..2000);
    let one = (message(), bytes, any::<bool>(), any::<bool>())
        .prop_map(|(message, bytes, token, reset)| Request { message, bytes, token, reset });
    prop::collection::vec(one, 1..12)
}

/// Does with the place of a flow what the request says.
fn uses(client: &Client, ready: &Value, request: &Request) -> Vec<TcpStream> {
    let place = client.place(ready);
    let shown = if request.token { raw::token(ready) } else { vec![7; 16] };
    if request.message["transfer"].is_object() {
        let Ok(mut data) = TcpStream::connect(place) else { return Vec::new() };
        let _ = data.set_read_timeout(Some(Duration::from_millis(5)));
        let _ = data.write_all(&[shown, request.bytes.clone()].concat());
        let _ = data.read(&mut [0; 1000]);
        if !request.reset {
            return vec![data];
        }
        let _ = Socket::from(data).set_linger(Some(Duration::ZERO));
        return Vec::new();
    }
    let socket = UdpSocket::bind(v4()).expect("a socket");
    for bytes in request.bytes.chunks(100) {
        let _ = socket.send_to(&[b"Fpu1", shown.as_slice(), bytes].concat(), place);
    }
    Vec::new()
}

proptest! {
    // Each case is a responder, and a measurement of it.
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases / 16, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_asked_others_are_served_and_there_is_an_end(requests in requests()) {
        let server = served(v4(), None, Limits::default());
        let ((), told) = with(&server, |address| {
            let (mut client, mut held) = (Client::new(address), Vec::new());
            for request in &requests {
                client.say(&request.message);
                if request.message.get("done").or(request.message.get("stop")).is_some() {
                    continue;
                }
                // The end of an earlier flow may come first.
                let answer = match client.heard() {
                    Ok(answer) => answer,
                    Err(_) => break,
                };
                if answer["ready"].is_object() {
                    held.extend(uses(&client, &answer, request));
                }
            }
            let asked = experiment("transfer = { size = \"10 kB\", opener = \"sender\" }");
            let run = run(&mut peer(address), &asked).expect("measured");
            assert_eq!(run.flows[0].outcome, Outcome::Completed, "{:?}", run.flows[0]);
            drop((client, held));
        });
        prop_assert!(told.iter().all(|line| !line.contains(char::is_control)), "{told:?}");
    }
}
