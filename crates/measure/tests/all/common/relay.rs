//! A peer that says something else than it should: a relay before a responder, which changes what that says.

use serde_json::Value;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread;

/// What is said in place of a line.
pub enum Says {
    /// This.
    Lines(Vec<Value>),
    /// These bytes.
    Bytes(Vec<u8>),
    /// This, for as long as anybody listens.
    Forever(Value),
}

/// The line as it is.
pub fn unchanged(line: Value) -> Says {
    Says::Lines(vec![line])
}

/// Runs `work` with the address of a relay, which is good for one connection; `change` is given each line of the responder.
pub fn relayed<T>(
    server: SocketAddr,
    change: impl FnMut(Value) -> Says + Send,
    work: impl FnOnce(SocketAddr) -> T,
) -> T {
    let listener = TcpListener::bind((server.ip(), 0)).expect("an address");
    let address = listener.local_addr().expect("an address");
    thread::scope(|scope| {
        scope.spawn(move || {
            let (local, _) = listener.accept().expect("somebody comes");
            let peer = TcpStream::connect(server).expect("it waits");
            thread::scope(|scope| {
                let ends = [local.try_clone().expect("a socket"), peer.try_clone().expect("a socket")];
                scope.spawn(move || {
                    let [mut local, mut peer] = ends;
                    // Whoever ends it, both are over.
                    let _ = io::copy(&mut local, &mut peer);
                    let _ = (local.shutdown(Shutdown::Both), peer.shutdown(Shutdown::Both));
                });
                let _ = say(&peer, &local, change);
                let _ = (local.shutdown(Shutdown::Both), peer.shutdown(Shutdown::Both));
            });
        });
        work(address)
    })
}

fn say(peer: &TcpStream, mut local: &TcpStream, mut change: impl FnMut(Value) -> Says) -> io::Result<()> {
    for line in BufReader::new(peer).lines() {
        match change(serde_json::from_str(&line?)?) {
            Says::Lines(lines) => {
                for line in lines {
                    local.write_all(format!("{line}\n").as_bytes())?;
                }
            }
            Says::Bytes(bytes) => local.write_all(&bytes)?,
            Says::Forever(line) => {
                let lines = format!("{line}\n");
                loop {
                    local.write_all(lines.as_bytes())?;
                }
            }
        }
    }
    Ok(())
}
