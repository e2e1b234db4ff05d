//! Real sockets at a page.

use super::{Limits, Page};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// No answer of a machine takes as long.
const GIVE_UP_AFTER: Duration = Duration::from_secs(60);
const HALF: &[u8] = b"GET / HTTP/1.1\r\nX: ";

fn page(limits: Limits) -> Page {
    let page = Page::serve(SocketAddr::from(([127, 0, 0, 1], 0)), limits).expect("a port is free");
    page.show("farpath_router_flows 7\n".to_owned());
    page
}

fn connect(page: &Page) -> TcpStream {
    let stream = TcpStream::connect(page.address).expect("it listens");
    stream.set_read_timeout(Some(GIVE_UP_AFTER)).expect("set");
    stream
}

/// What it answers.
fn ask(page: &Page, request: &[u8]) -> String {
    let mut stream = connect(page);
    stream.write_all(request).expect("it takes a request");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers, and closes");
    answer
}

fn assert_answers(page: &Page) {
    for request in ["GET /metrics HTTP/1.0\r\n\r\n", "GET / HTTP/1.1\r\nHost: x\r\n\r\n"] {
        let answer = ask(page, request.as_bytes());
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{answer}"));
        assert!(head.contains(" 200 OK"), "{head}");
        assert!(head.to_lowercase().contains("content-type: text/plain; version=0.0.4"), "{head}");
        assert_eq!(body, "farpath_router_flows 7\n");
    }
}

/// Whether the other end has closed it, or does within that time.
fn is_closed(stream: &mut TcpStream, within: Duration) -> bool {
    stream.set_read_timeout(Some(within)).expect("set");
    match stream.read(&mut [0; 512]) {
        Ok(0) => true,
        // hyper says 408 to who was too slow, and closes.
        Ok(_) => true,
        Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
    }
}

#[test]
fn six_hundred_half_open_requests_keep_nobody_from_the_page() {
    let page = page(Limits { time: GIVE_UP_AFTER, ..Limits::default() });
    assert_answers(&page);
    let mut half: Vec<TcpStream> = (0..600)
        .map(|_| {
            let mut stream = connect(&page);
            // It may have been closed for a later one already.
            let _ = stream.write_all(HALF);
            stream
        })
        .collect();
    assert_answers(&page);
    // No more than 64 are left, and those go on.
    let limit = Limits::default().connections;
    let closed = 600 - limit;
    assert!(half[..closed].iter_mut().all(|stream| is_closed(stream, GIVE_UP_AFTER)));
    assert!(!is_closed(half.last_mut().expect("there are 600"), Duration::from_millis(1)));
    half.clear();
    assert_answers(&page);
}

#[test]
fn who_says_nothing_or_too_slowly_is_let_go() {
    let page = page(Limits { time: Duration::from_millis(200), ..Limits::default() });
    for begun in [&b""[..], HALF, b"\r\n"] {
        let mut stream = connect(&page);
        stream.write_all(begun).expect("it is taken");
        assert!(is_closed(&mut stream, GIVE_UP_AFTER), "{begun:?}");
    }
    // Who never reads does not hold one either: another is served.
    let mut deaf = connect(&page);
    deaf.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").expect("it is taken");
    assert_answers(&page);
}

#[test]
fn what_is_no_request_or_too_long_is_refused() {
    let page = page(Limits::default());
    for request in [b"\x16\x03\x01\x02\x00\x01".to_vec(), [b"GET /".as_slice(), &[b'a'; 100_000]].concat()] {
        let mut stream = connect(&page);
        let _ = stream.write_all(&request);
        let mut answer = Vec::new();
        // A reset, where not all of it was read.
        let _ = stream.read_to_end(&mut answer);
        assert!(!String::from_utf8_lossy(&answer).contains("farpath_router"), "{answer:?}");
    }
    assert_answers(&page);
}

#[test]
fn an_address_that_is_taken_is_an_error() {
    let first = page(Limits::default());
    let error = Page::serve(first.address, Limits::default()).err().expect("it is taken");
    assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse);
}
