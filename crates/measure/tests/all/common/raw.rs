//! A client that is not ours: it says what a test has it say.

#![allow(dead_code)]

use serde_json::{Value, json};
use socket2::{Domain, Socket, Type};
use std::io::{self, BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

/// The version of the protocol that both hosts speak.
pub const OURS: u32 = farpath_measure::PROTOCOL;

/// Asks for a long transfer, and connects to its end at the peer.
pub fn transfer(client: &mut BufReader<TcpStream>, address: SocketAddr, sends: bool) -> TcpStream {
    let within = u64::MAX;
    say(
        client,
        &format!(
            "{{\"transfer\":{{\"flow\":0,\"sends\":{sends},\"size\":10000000000,\"within_ns\":{within},\
             \"sample_every_ns\":0}}}}\n"
        ),
    );
    let ready = said(client);
    assert!(ready.starts_with("{\"ready\""), "{ready}");
    let field = |name: &str| {
        let at = ready.find(name).expect("it is there") + name.len() + 2;
        ready[at..].trim_start_matches('"').split(['"', ',']).next().expect("a value").to_owned()
    };
    let port: u16 = field("port").parse().expect("a port");
    let token = field("token");
    let token: Vec<u8> =
        (0..16).map(|at| u8::from_str_radix(&token[2 * at..2 * at + 2], 16).expect("digits")).collect();
    let mut data = TcpStream::connect((address.ip(), port)).expect("it waits");
    data.write_all(&token).expect("sent");
    data
}

/// A connection without our client behind it, which has been greeted.
pub fn raw(address: SocketAddr) -> BufReader<TcpStream> {
    let stream = TcpStream::connect(address).expect("it waits");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a socket");
    let mut reader = BufReader::new(stream);
    let greeting = said(&mut reader);
    let ours = format!("{{\"greeting\":{{\"farpath\":{OURS},");
    assert!(greeting.starts_with(&ours), "{greeting}");
    reader
}

pub fn said(reader: &mut BufReader<TcpStream>) -> String {
    let mut line = String::new();
    reader.read_line(&mut line).expect("it speaks");
    line
}

pub fn say(reader: &mut BufReader<TcpStream>, text: &str) {
    // It may have had enough already.
    let _ = reader.get_mut().write_all(text.as_bytes());
}

pub fn greeting(version: u32) -> String {
    let challenge = "00".repeat(32);
    format!(
        "{{\"greeting\":{{\"farpath\":{version},\"version\":\"9.9\",\"kernel\":\"k\",\"challenge\":\"{challenge}\"}}}}\n"
    )
}

/// A client that has been let in, and says what a test has it say.
pub struct Client {
    lines: BufReader<TcpStream>,
    /// Of the responder.
    pub address: SocketAddr,
    source: Ipv4Addr,
}

/// A connection from one of this host's addresses.
pub fn from(source: Ipv4Addr, address: SocketAddr) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.bind(&SocketAddr::from((source, 0)).into())?;
    socket.connect(&address.into())?;
    socket.set_read_timeout(Some(Duration::from_secs(60)))?;
    Ok(socket.into())
}

impl Client {
    /// From 127.0.0.1.
    pub fn new(address: SocketAddr) -> Client {
        Client::from(Ipv4Addr::LOCALHOST, address).expect("it is let in")
    }

    /// From one of this host's addresses. Who is not let in is told why, or nothing.
    pub fn from(source: Ipv4Addr, address: SocketAddr) -> Result<Client, String> {
        let stream = from(source, address).map_err(|error| error.to_string())?;
        let mut client = Client { lines: BufReader::new(stream), address, source };
        client.heard().map_err(|error| error.to_string())?;
        say(&mut client.lines, &greeting(OURS));
        let answer = client.heard().map_err(|error| error.to_string())?;
        if answer["welcome"].is_object() { Ok(client) } else { Err(answer.to_string()) }
    }

    /// Says something.
    pub fn say(&mut self, message: &Value) {
        say(&mut self.lines, &format!("{message}\n"));
    }

    /// What the responder says next.
    pub fn heard(&mut self) -> io::Result<Value> {
        let mut line = String::new();
        match self.lines.read_line(&mut line)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => serde_json::from_str(&line).map_err(io::Error::other),
        }
    }

    /// What it answers.
    pub fn ask(&mut self, message: &Value) -> Value {
        self.say(message);
        self.heard().expect("it answers")
    }

    /// Asks for a transfer: `more` is added to a plain one of a byte to the client.
    pub fn transfer(&mut self, more: Value) -> Value {
        let mut asked = json!({ "flow": 0, "sends": true, "size": 1, "within_ns": 3_600_000_000_000_u64 });
        let (all, more) = (asked.as_object_mut().expect("one"), more);
        all.extend(more.as_object().expect("an object").clone());
        self.ask(&json!({ "transfer": asked }))
    }

    /// Where the peer's end of a flow waits.
    pub fn place(&self, ready: &Value) -> SocketAddr {
        let port = ready["ready"]["port"].as_u64().and_then(|port| u16::try_from(port).ok());
        SocketAddr::new(self.address.ip(), port.unwrap_or_else(|| panic!("{ready}")))
    }

    /// A connection to there, of which nothing is known.
    pub fn silent(&self, ready: &Value) -> TcpStream {
        from(self.source, self.place(ready)).expect("it waits")
    }

    /// A connection to there, with the token.
    pub fn data(&self, ready: &Value) -> TcpStream {
        let mut data = self.silent(ready);
        data.write_all(&token(ready)).expect("sent");
        data
    }

    /// The connection itself.
    pub fn stream(&self) -> &TcpStream {
        self.lines.get_ref()
    }
}

/// What is to be shown there.
pub fn token(ready: &Value) -> Vec<u8> {
    let token = ready["ready"]["token"].as_str().unwrap_or_else(|| panic!("{ready}"));
    (0..16).map(|at| u8::from_str_radix(&token[2 * at..2 * at + 2], 16).expect("digits")).collect()
}
