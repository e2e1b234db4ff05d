//! A client of `farpath serve` that says what a test has it say, from any of this host's addresses.

use serde_json::{Value, json};
use socket2::{Domain, Socket, Type};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

pub struct Client {
    lines: BufReader<TcpStream>,
    address: SocketAddr,
    source: Ipv4Addr,
}

/// A connection from an address of 127.0.0.0/8.
pub fn connect(source: Ipv4Addr, address: SocketAddr) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.bind(&SocketAddr::from((source, 0)).into())?;
    socket.connect(&address.into())?;
    socket.set_read_timeout(Some(Duration::from_secs(30)))?;
    socket.set_write_timeout(Some(Duration::from_secs(30)))?;
    Ok(socket.into())
}

/// Ends a connection without a word.
pub fn reset(stream: TcpStream) {
    let _ = Socket::from(stream).set_linger(Some(Duration::ZERO));
}

impl Client {
    /// One that is let in.
    pub fn new(source: Ipv4Addr, address: SocketAddr) -> io::Result<Client> {
        let mut client = Client::greeted(source, address)?;
        client.say(&json!({ "greeting": {
            "farpath": farpath_measure::PROTOCOL, "version": "9.9", "kernel": "k", "challenge": "00".repeat(32),
        } }))?;
        let answer = client.heard()?;
        if answer["welcome"].is_object() { Ok(client) } else { Err(io::Error::other(answer.to_string())) }
    }

    /// One that the responder has greeted.
    pub fn greeted(source: Ipv4Addr, address: SocketAddr) -> io::Result<Client> {
        let lines = BufReader::new(connect(source, address)?);
        let mut client = Client { lines, address, source };
        let greeting = client.heard()?;
        if greeting["greeting"].is_object() {
            Ok(client)
        } else {
            Err(io::Error::other(greeting.to_string()))
        }
    }

    pub fn say(&mut self, message: &Value) -> io::Result<()> {
        self.lines.get_mut().write_all(format!("{message}\n").as_bytes())
    }

    pub fn heard(&mut self) -> io::Result<Value> {
        let mut line = String::new();
        match self.lines.read_line(&mut line)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => serde_json::from_str(&line).map_err(io::Error::other),
        }
    }

    pub fn ask(&mut self, message: &Value) -> io::Result<Value> {
        self.say(message)?;
        self.heard()
    }

    /// Asks for a transfer: `more` is added to a plain one of a byte to the client.
    pub fn transfer(&mut self, more: &Value) -> io::Result<Value> {
        let mut asked = json!({ "flow": 0, "sends": true, "size": 1, "within_ns": 3_600_000_000_000_u64 });
        asked.as_object_mut().expect("one").extend(more.as_object().expect("one").clone());
        self.ask(&json!({ "transfer": asked }))
    }

    pub fn place(&self, ready: &Value) -> io::Result<SocketAddr> {
        let port = ready["ready"]["port"].as_u64().and_then(|port| u16::try_from(port).ok());
        let port = port.ok_or_else(|| io::Error::other(ready.to_string()))?;
        Ok(SocketAddr::new(self.address.ip(), port))
    }

    /// The connection of a flow, with its token.
    pub fn data(&self, ready: &Value) -> io::Result<TcpStream> {
        let mut data = connect(self.source, self.place(ready)?)?;
        let token = ready["ready"]["token"].as_str().unwrap_or_default();
        let digits = |at: usize| u8::from_str_radix(&token[2 * at..2 * at + 2], 16).expect("digits");
        data.write_all(&(0..16).map(digits).collect::<Vec<u8>>())?;
        Ok(data)
    }

    /// Reads all of it; gives how many bytes there were.
    pub fn read_all(mut data: TcpStream) -> io::Result<usize> {
        let mut all = Vec::new();
        data.read_to_end(&mut all)
    }

    pub fn into_stream(self) -> TcpStream {
        self.lines.into_inner()
    }
}
