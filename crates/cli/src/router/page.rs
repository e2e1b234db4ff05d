//! A page of text over HTTP, whatever path is asked for. Who asks, or only begins to, holds a bounded number of connections for a bounded time.

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

#[cfg(test)]
mod tests;

/// Connections to the statistics at one time.
pub const STATISTICS_CONNECTIONS: usize = 64;
/// How long a connection to the statistics may last.
pub const STATISTICS_TIME: Duration = Duration::from_secs(5);
/// Bytes of a request's head: the least that hyper takes.
pub const STATISTICS_REQUEST: usize = 8192;

/// What those who ask may take.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Connections at one time. With one more the oldest is closed: who asks in one go is answered, however many others have begun to.
    pub connections: usize,
    /// For which a connection may last, request and answer together.
    pub time: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { connections: STATISTICS_CONNECTIONS, time: STATISTICS_TIME }
    }
}

/// The page that is served.
pub struct Page {
    text: Arc<Mutex<Bytes>>,
    #[cfg(test)]
    address: SocketAddr,
}

impl Page {
    /// Serves it at this address, in a thread of its own.
    pub fn serve(address: SocketAddr, limits: Limits) -> io::Result<Page> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        #[cfg(test)]
        let address = listener.local_addr()?;
        let text = Arc::new(Mutex::new(Bytes::new()));
        let shown = Arc::clone(&text);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        thread::Builder::new().name("statistics".to_owned()).spawn(move || {
            runtime.block_on(accept(listener, limits, &shown));
        })?;
        Ok(Page {
            text,
            #[cfg(test)]
            address,
        })
    }

    /// Shows this from now on.
    pub fn show(&self, text: String) {
        *self.text.lock().unwrap_or_else(PoisonError::into_inner) = Bytes::from(text);
    }
}

/// Takes connections for ever.
async fn accept(listener: TcpListener, limits: Limits, text: &Arc<Mutex<Bytes>>) {
    let listener = match tokio::net::TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => return eprintln!("farpath: statistics are not served: {error}"),
    };
    let mut open: VecDeque<JoinHandle<()>> = VecDeque::with_capacity(limits.connections);
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Of a connection that is gone again, or a machine without descriptors: those that are open end by themselves.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        open.retain(|connection| !connection.is_finished());
        while open.len() >= limits.connections.max(1) {
            if let Some(oldest) = open.pop_front() {
                oldest.abort();
            }
        }
        open.push_back(tokio::spawn(answer(stream, limits, Arc::clone(text))));
    }
}

/// One request, and its answer.
async fn answer(stream: TcpStream, limits: Limits, text: Arc<Mutex<Bytes>>) {
    let page = service_fn(move |_: Request<_>| {
        let text = text.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut response = Response::new(Full::new(text));
        let kind = HeaderValue::from_static("text/plain; version=0.0.4");
        response.headers_mut().insert(CONTENT_TYPE, kind);
        async { Ok::<_, Infallible>(response) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.time)
        .max_buf_size(STATISTICS_REQUEST)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), page);
    // Who asked may be gone, or have asked for something that is not HTTP.
    let _ = tokio::time::timeout(limits.time, connection).await;
}
