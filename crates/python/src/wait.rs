//! Work on a thread of its own, while this one looks for Ctrl-C.

use pyo3::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// How often signals are looked for.
const TICK: Duration = Duration::from_millis(50);

/// How far work is, and whether it is still wanted.
#[derive(Debug, Default, Clone)]
pub struct Going {
    pub stop: Arc<AtomicBool>,
    pub done: Arc<AtomicU64>,
    pub total: Arc<AtomicU64>,
}

/// Does it without the interpreter's lock. Ctrl-C is raised at once: what goes on then ends by itself and is dropped.
/// `progress` is called with how much is done, and of how much.
pub fn wait<T: Send + 'static>(
    py: Python<'_>,
    going: Going,
    progress: Option<Py<PyAny>>,
    work: impl FnOnce(&Going) -> T + Send + 'static,
) -> PyResult<T> {
    let (sender, mut receiver) = mpsc::channel();
    let its = going.clone();
    std::thread::spawn(move || {
        let done = catch_unwind(AssertUnwindSafe(|| work(&its)));
        // Nobody waits any more after Ctrl-C.
        let _ = sender.send(done);
    });
    loop {
        let result;
        (receiver, result) = py.detach(move || {
            let result = receiver.recv_timeout(TICK);
            (receiver, result)
        });
        let told = progress.as_ref().map_or(Ok(()), |progress| {
            let (done, total) = (going.done.load(Ordering::Relaxed), going.total.load(Ordering::Relaxed));
            progress.call1(py, (done, total)).map(drop)
        });
        if let Err(error) = py.check_signals().and(told) {
            going.stop.store(true, Ordering::Relaxed);
            return Err(error);
        }
        match result {
            Ok(Ok(value)) => return Ok(value),
            Ok(Err(panicked)) => resume_unwind(panicked),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => unreachable!("it sends whatever becomes of it"),
        }
    }
}
