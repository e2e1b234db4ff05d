//! What either host hears, without the sockets that it comes from: for fuzzers, which give bytes and look for panics.

use crate::datagrams::{Burst, Echoes};
use crate::end::{EndFacts, Outcome};
use crate::estimate::{PathEstimate, Way};
use crate::peer::{Exchange, Offset, Offsets};
use crate::protocol::{FromClient, FromResponder, Lines, line};
use crate::said::Said;
use crate::serve::check;
use farpath_experiment::Experiment;
use farpath_path::PerDirection;
use farpath_traffic::Role;
use farpath_traffic::datagram::{Answered, Arrival, Echoed};
use farpath_units::{Bytes, Duration, Instant};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::LazyLock;

/// Reads messages from bytes that come in pieces of so many, and hands each over until one is not understood or `take` has had
/// enough. What is written of a message reads back to the same.
fn read<T: Serialize + DeserializeOwned>(bytes: &[u8], piece: usize, mut take: impl FnMut(T) -> bool) {
    let mut lines = Lines::default();
    for piece in bytes.chunks(piece) {
        lines.push(piece);
        loop {
            let message = match lines.next::<T>() {
                Ok(Some(message)) => message,
                Ok(None) => break,
                Err(_) => return,
            };
            let text = line(&message);
            let again: T = serde_json::from_slice(&text).expect("what we write, we read");
            assert_eq!(line(&again), text);
            if !take(message) {
                return;
            }
        }
    }
}

/// A client's side of a control connection, in pieces of so many bytes: each request is understood and held against what the
/// responder does, until one would end the session. Gives how many there were.
///
/// # Panics
/// Something is wrong.
pub fn local_host_reads(bytes: &[u8], piece: usize) -> usize {
    let mut requests = 0;
    read(bytes, piece, |message| {
        requests += 1;
        match message {
            FromClient::Transfer(asked) => {
                if let Ok(checked) = check::transfer(&asked) {
                    assert!(checked.bytes >= checked.size && checked.exchanges > 0, "{asked:?}: {checked:?}");
                    assert!(checked.exchanges == 1 || asked.size > 0 && asked.request > 0, "{asked:?}");
                }
            }
            FromClient::Echo(asked) => drop(check::datagrams(asked.flow, asked.count, asked.size)),
            FromClient::Burst(asked) => drop(check::datagrams(asked.flow, asked.count, asked.size)),
            FromClient::Greeting(_)
            | FromClient::Ping(_)
            | FromClient::Kernel(_)
            | FromClient::Done(_)
            | FromClient::Stop(_) => {}
        }
        true
    });
    requests
}

/// A file and a stream, of both of which the peer may tell.
static ASKED: LazyLock<Experiment> = LazyLock::new(|| {
    let text = "title = \"t\"\npath = [{ element = \"delay\", delay = \"1 ms\" }]\nsender.stack = \"linux-6\"\n\
                transfer = { message = \"1 kB\", interval = \"1 ms\", count = 20, opener = \"sender\" }\n\
                flow = [{}, { direction = \"reverse\" }]";
    Experiment::parse(text, "fuzz", &[]).expect("good")
});

/// A peer's side of it, likewise: what it says of flows and of the path is taken as a measurement does, and becomes rows and an
/// experiment. Gives how many messages there were.
///
/// # Panics
/// Something is wrong.
pub fn peer_reads(bytes: &[u8], piece: usize) -> usize {
    let mut messages = 0;
    let mut heard = crate::run::Heard::nothing_yet(&ASKED.point(0).scenario);
    let mut exchanges = Vec::new();
    let (mut kernel, mut bursts) = (Said::default(), Vec::new());
    read(bytes, piece, |message| {
        messages += 1;
        match message {
            FromResponder::Greeting(greeting) => kernel = greeting.kernel,
            FromResponder::Pong(pong) => exchanges.push(Exchange {
                asked: Instant::from_nanos(messages as u64),
                received_ns: pong.received_ns,
                sent_ns: pong.sent_ns,
                heard: Instant::from_nanos(2 * messages as u64),
            }),
            FromResponder::Datagrams(part) => {
                let time = Instant::from_nanos;
                let arrivals = part.arrivals.iter().map(|&(number, sent, arrived)| Arrival {
                    number,
                    sent_at: time(sent),
                    arrived_at: time(arrived),
                });
                let within = Duration::from_nanos(part.within_ns);
                let (sent, dropped_there) = (part.count, part.dropped_here);
                bursts.push(Burst {
                    sent,
                    within,
                    arrivals: arrivals.collect(),
                    packet: Bytes(1500),
                    dropped_there,
                });
            }
            FromResponder::Kernel(values) => heard.kernel(&values),
            other => return heard.hear(other).is_ok(),
        }
        true
    });
    let clocks =
        Offset::estimated(&exchanges).unwrap_or(Offset { at: Instant::ZERO, ns: 0, error: Duration::ZERO });
    let offsets = Offsets { before: clocks, after: clocks };
    for role in [Role::Sender, Role::Receiver] {
        heard.rows(role, &local(), &offsets);
    }
    experiment(kernel, &bursts);
    messages
}

/// This host's own end, which has completed.
fn local() -> EndFacts {
    EndFacts {
        outcome: Outcome::Completed,
        detail: Said::default(),
        ended_at_ns: 30_000_000,
        connected_at_ns: Some(1_000_000),
        finished_at_ns: Some(30_000_000),
        bytes: 20_000,
        stream_began_ns: Some(1_000_000),
        processor_wait_permille: None,
        mean_cwnd: None,
        exchanges_ns: Vec::new(),
        kernel: None,
    }
}

/// What is found by such bursts, as a file; what a peer is called is no part of what that says.
fn experiment(kernel: Said, bursts: &[Burst]) {
    let answered = bursts.iter().flat_map(|burst| &burst.arrivals).zip(0..);
    let answered: Vec<Answered> = answered
        .map(|(one, number)| Answered {
            number,
            sent_at: one.sent_at,
            arrived_at: one.arrived_at,
            back_at: one.sent_at + Duration::from_millis(u64::from(number)),
        })
        .collect();
    let sent = answered.len() as u32;
    let echoed = Echoed { sent, answered, arrived: sent, ..Echoed::default() };
    let echoes = Echoes { echoed, arrived: sent, packet: Bytes(92) };
    let _ = (echoes.jitter_rfc3550(), echoes.reordered(), echoes.row(0));
    let way = Way::estimated(bursts, 0, sent);
    let found = PathEstimate {
        hosts: ["192.0.2.1".to_owned(), "192.0.2.2".to_owned()],
        kernels: ["Linux".into(), kernel],
        echoes,
        ways: PerDirection { forward: way.clone(), reverse: way },
    };
    let text = found.to_toml(Bytes(1_000_000));
    if let Ok(experiment) = Experiment::parse(&text, "found", &[]) {
        let scenario = &experiment.point(0).scenario;
        assert!(scenario.seeds == 1 && !scenario.output.segments, "{text}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::tests::{from_client, from_responder};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_a_client_asks_for_is_understood_and_held_against_the_limits(
            said in prop::collection::vec(from_client(), 1..10),
        ) {
            let bytes: Vec<u8> = said.iter().flat_map(line).collect();
            prop_assert_eq!(local_host_reads(&bytes, bytes.len()), said.len());
        }

        #[test]
        fn what_a_far_host_tells_becomes_rows_and_an_experiment(
            said in prop::collection::vec(from_responder(), 1..20),
        ) {
            let bytes: Vec<u8> = said.iter().flat_map(line).collect();
            prop_assert!(peer_reads(&bytes, bytes.len()) > 0);
        }

        #[test]
        fn bytes_of_either_are_understood_or_refused(
            peer in prop::collection::vec(from_responder(), 1..5),
            local in prop::collection::vec(from_client(), 1..5),
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        ) {
            let mut bytes: [Vec<u8>; 2] =
                [peer.iter().flat_map(line).collect(), local.iter().flat_map(line).collect()];
            for (at, byte) in changes {
                for bytes in &mut bytes {
                    let at = at.index(bytes.len());
                    bytes[at] = byte;
                }
            }
            peer_reads(&bytes[0], 7);
            local_host_reads(&bytes[1], 7);
        }
    }
}
