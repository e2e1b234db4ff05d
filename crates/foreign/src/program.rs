//! A host that is a program of somebody's: a child process, asked over its standard input and output.

use crate::protocol::{self, AnswerReader, MAX_LINE, ProtocolError};
use crate::{Answer, Host, HostError, HostSetup};
use farpath_units::{Bytes, Instant};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// How long a program may take to answer, in real time.
pub const SILENCE: Duration = Duration::from_secs(30);
/// Lines that are read ahead of who takes them.
const AHEAD: usize = 256;
/// What of its standard error is kept: the end.
const SAID: usize = 400;
/// How long its standard error is waited for once it has ended.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// A child process that is a host. It ends with this.
#[derive(Debug)]
pub struct Program {
    child: Child,
    /// What it is called in errors.
    file: String,
    name: String,
    /// Requests go through a thread: a program that reads nothing does not hold us.
    requests: SyncSender<String>,
    lines: Receiver<Line>,
    said: Arc<Mutex<Vec<u8>>>,
    has_said: Receiver<()>,
    mtu: u16,
    read: u64,
    size: Bytes,
    silence: Duration,
}

/// What comes of its standard output.
#[derive(Debug)]
enum Line {
    Whole(Vec<u8>),
    TooLong,
}

impl Program {
    /// Starts `file`, tells it `setup`, and waits for its name. It may take `silence` for each answer.
    ///
    /// # Errors
    /// It does not start, or does not answer as agreed.
    pub fn start(file: &Path, setup: &HostSetup, silence: Duration) -> Result<Program, HostError> {
        let mut command = Command::new(file);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Ctrl-C is for us: runs that have begun are finished.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child =
            command.spawn().map_err(|source| HostError::Start { program: file.to_owned(), source })?;
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (requests, to_write) = sync_channel(1);
        thread::spawn(move || write_all(stdin.expect("it is piped"), &to_write));
        let (to_take, lines) = sync_channel(AHEAD);
        thread::spawn(move || read_lines(stdout.expect("it is piped"), &to_take));
        let said = Arc::new(Mutex::new(Vec::new()));
        let keeps = Arc::clone(&said);
        let (until_the_end, has_said) = sync_channel(1);
        thread::spawn(move || {
            keep_end(stderr.expect("it is piped"), &keeps);
            drop(until_the_end);
        });
        let file = file.display().to_string();
        let mut program = Program {
            child,
            name: file.clone(),
            file,
            requests,
            lines,
            said,
            has_said,
            mtu: setup.mtu,
            read: 0,
            size: setup.size,
            silence,
        };
        let (_, name) = program.ask("farpath-host", protocol::hello(setup), Instant::ZERO, true)?;
        program.name = name.unwrap_or_default();
        Ok(program)
    }

    fn ask(
        &mut self,
        word: &'static str,
        request: String,
        now: Instant,
        is_first: bool,
    ) -> Result<(Answer, Option<String>), HostError> {
        // The thread is gone where the program is; then there is no answer either.
        let _ = self.requests.send(request);
        let mut reader = AnswerReader::new(now, self.mtu, (self.read, self.size.0), is_first);
        loop {
            let line = match self.lines.recv_timeout(self.silence) {
                Ok(Line::Whole(line)) => line,
                Ok(Line::TooLong) => return Err(self.protocol(ProtocolError::LongLine)),
                Err(RecvTimeoutError::Timeout) => {
                    let said = self.said();
                    return Err(HostError::Silent {
                        host: self.file.clone(),
                        request: word,
                        waited: self.silence,
                        said,
                    });
                }
                Err(RecvTimeoutError::Disconnected) => {
                    // Its last words may come a moment later. Nothing is ever sent there: it ends with its standard error.
                    let _ = self.has_said.recv_timeout(LAST_WORDS);
                    return Err(HostError::Ended { host: self.file.clone(), said: self.said() });
                }
            };
            if reader.line(&line).map_err(|error| self.protocol(error))? {
                let (answer, name) = reader.finish();
                self.read = answer.read.unwrap_or(self.read);
                return Ok((answer, name));
            }
        }
    }

    fn protocol(&self, source: ProtocolError) -> HostError {
        HostError::Protocol { host: self.file.clone(), source }
    }

    /// The last line that it wrote to its standard error.
    fn said(&self) -> String {
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&said);
        text.trim().lines().last().unwrap_or_default().escape_debug().to_string()
    }
}

impl Host for Program {
    fn name(&self) -> &str {
        &self.name
    }

    fn start(&mut self, now: Instant) -> Result<Answer, HostError> {
        Ok(self.ask("start", protocol::timed("start", now), now, false)?.0)
    }

    fn packet(&mut self, now: Instant, packet: &[u8]) -> Result<Answer, HostError> {
        Ok(self.ask("packet", protocol::packet(now, packet), now, false)?.0)
    }

    fn timer(&mut self, now: Instant) -> Result<Answer, HostError> {
        Ok(self.ask("timer", protocol::timed("timer", now), now, false)?.0)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn write_all(mut stdin: ChildStdin, requests: &Receiver<String>) {
    for request in requests {
        if stdin.write_all(request.as_bytes()).and_then(|()| stdin.flush()).is_err() {
            return;
        }
    }
}

/// Hands over line by line until the output ends, or a line has no end.
fn read_lines(stdout: impl Read, to: &SyncSender<Line>) {
    let mut stdout = BufReader::new(stdout);
    loop {
        let mut line = Vec::new();
        match stdout.by_ref().take(MAX_LINE as u64 + 1).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) if line.last() == Some(&b'\n') => {
                line.pop();
                if to.send(Line::Whole(line)).is_err() {
                    return;
                }
            }
            Ok(read) => {
                if read > MAX_LINE {
                    let _ = to.send(Line::TooLong);
                }
                // Else it ended within a line.
                return;
            }
        }
    }
}

/// Reads to the end, and keeps the end of it.
fn keep_end(mut stderr: impl Read, said: &Mutex<Vec<u8>>) {
    let mut buffer = [0; 1024];
    while let Ok(read @ 1..) = stderr.read(&mut buffer) {
        let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
        said.extend_from_slice(&buffer[..read]);
        let over = said.len().saturating_sub(SAID);
        said.drain(..over);
    }
}
