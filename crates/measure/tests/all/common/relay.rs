//! A far host that says something else than it should: a relay before a responder, which changes what that says.

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
            let (near, _) = listener.accept().expect("somebody comes");
            let far = TcpStream::connect(server).expect("it waits");
            thread::scope(|scope| {
                let ends = [near.try_clone().expect("a socket"), far.try_clone().expect("a socket")];
                scope.spawn(move || {
                    let [mut near, mut far] = ends;
                    // Whoever ends it, both are over.
                    let _ = io::copy(&mut near, &mut far);
                    let _ = (near.shutdown(Shutdown::Both), far.shutdown(Shutdown::Both));
                });
                let _ = say(&far, &near, change);
                let _ = (near.shutdown(Shutdown::Both), far.shutdown(Shutdown::Both));
            });
        });
        work(address)
    })
}

fn say(far: &TcpStream, mut near: &TcpStream, mut change: impl FnMut(Value) -> Says) -> io::Result<()> {
    for line in BufReader::new(far).lines() {
        match change(serde_json::from_str(&line?)?) {
            Says::Lines(lines) => {
                for line in lines {
                    near.write_all(format!("{line}\n").as_bytes())?;
                }
            }
            Says::Bytes(bytes) => near.write_all(&bytes)?,
            Says::Forever(line) => {
                let lines = format!("{line}\n");
                loop {
                    near.write_all(lines.as_bytes())?;
                }
            }
        }
    }
    Ok(())
}
