//! `poll()`, `epoll_wait()` and `ioctl()` of scripts, made on a kernel.

use super::machine::{KernelMachine, failed};
use farpath_script::syntax::{Call, Expression};
use farpath_script::{Begun, Refusal, Returned};
use farpath_traffic::options;
use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use rustix::io::ioctl_fionread;
use socket2::Socket;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

/// Most events of one call.
const MAX_EVENTS: i64 = 1000;
const SIOCINQ: i64 = 0x541b;
const SIOCOUTQ: i64 = 0x5411;
const SIOCOUTQNSD: i64 = 0x894b;

/// A wait of so many milliseconds; none for one without an end.
fn wait_of(milliseconds: i64) -> Option<Timespec> {
    (milliseconds >= 0)
        .then(|| Timespec { tv_sec: milliseconds / 1000, tv_nsec: (milliseconds % 1000) * 1_000_000 })
}

/// What is asked of a socket, with the number that the script knows it by.
struct Asked {
    descriptor: i64,
    events: i64,
    socket: Option<Arc<Socket>>,
}

fn number(call: &Call, place: usize) -> i64 {
    call.arguments.get(place).and_then(Expression::number).unwrap_or(0)
}

fn field(name: &str, number: i64) -> (Option<String>, Expression) {
    (Some(name.to_owned()), Expression::Number(number))
}

fn poll_now(asked: &[Asked], wait: Option<Timespec>) -> Returned {
    let flags = |asked: &Asked| PollFlags::from_bits_retain(asked.events as u16);
    let mut fds: Vec<_> =
        asked.iter().filter_map(|asked| Some(PollFd::new(asked.socket.as_deref()?, flags(asked)))).collect();
    if let Err(error) = poll(&mut fds, wait.as_ref()) {
        return failed(&error.into());
    }
    let mut found = fds.iter().map(|fd| i64::from(fd.revents().bits()));
    let mut count = 0;
    let mut entries = Vec::new();
    for asked in asked {
        let ready = match asked.socket {
            Some(_) => found.next().unwrap_or(0),
            None => i64::from(PollFlags::NVAL.bits()),
        };
        count += i64::from(ready != 0);
        entries.push(Expression::Structure(vec![
            field("fd", asked.descriptor),
            field("events", asked.events),
            field("revents", ready),
        ]));
    }
    Returned::value(count).with(0, Expression::List(entries))
}

fn epoll_now(descriptor: &OwnedFd, most: usize, wait: Option<Timespec>) -> Returned {
    let mut events = Vec::with_capacity(most);
    if let Err(error) = epoll::wait(descriptor, spare_capacity(&mut events), wait.as_ref()) {
        return failed(&error.into());
    }
    match events.first() {
        None => Returned::value(0),
        // Fields of a packed structure: copied, not borrowed.
        Some(&epoll::Event { flags, data }) => {
            let parts = vec![field("events", flags.bits().into()), field("fd", data.u64() as i64)];
            Returned::value(events.len() as i64).with(1, Expression::Structure(parts))
        }
    }
}

impl KernelMachine<'_> {
    pub(super) fn poll(&mut self, call: &Call) -> Begun {
        let Some(Expression::List(entries)) = call.arguments.first() else {
            return Begun::Ended(Returned::error("EFAULT"));
        };
        let part = |entry: &Expression, name| entry.part(name).and_then(Expression::number);
        let asked: Vec<Asked> = entries
            .iter()
            .map(|entry| {
                let descriptor = part(entry, "fd").unwrap_or(-1);
                Asked {
                    descriptor,
                    events: part(entry, "events").unwrap_or(0),
                    socket: self.socket(descriptor).ok().map(|(socket, _)| Arc::clone(socket)),
                }
            })
            .collect();
        let wait = wait_of(number(call, 2));
        self.run(call, wait, move |wait| poll_now(&asked, wait))
    }

    pub(super) fn epoll_create(&mut self, call: &Call) -> Begun {
        let wanted = call.expected.number().unwrap_or(-1);
        Begun::Ended(match epoll::create(epoll::CreateFlags::CLOEXEC) {
            Ok(descriptor) => {
                self.epolls.insert(wanted, Arc::new(descriptor));
                Returned::value(wanted)
            }
            Err(error) => failed(&error.into()),
        })
    }

    pub(super) fn epoll_control(&mut self, call: &Call) -> Begun {
        let (Some(epoll), Ok((socket, _))) =
            (self.epolls.get(&number(call, 0)), self.socket(number(call, 2)))
        else {
            return Begun::Ended(Returned::error("EBADF"));
        };
        let events = call.arguments.get(3).and_then(|event| event.part("events")?.number()).unwrap_or(0);
        let flags = epoll::EventFlags::from_bits_retain(events as u32);
        let data = epoll::EventData::new_u64(number(call, 2) as u64);
        let changed = match number(call, 1) {
            1 => epoll::add(&**epoll, socket.as_fd(), data, flags),
            2 => epoll::delete(&**epoll, socket.as_fd()),
            _ => epoll::modify(&**epoll, socket.as_fd(), data, flags),
        };
        Begun::Ended(changed.map_or_else(|error| failed(&error.into()), |()| Returned::value(0)))
    }

    pub(super) fn epoll_wait(&mut self, call: &Call) -> Begun {
        let Some(epoll) = self.epolls.get(&number(call, 0)).map(Arc::clone) else {
            return Begun::Ended(Returned::error("EBADF"));
        };
        let most = number(call, 2).clamp(1, MAX_EVENTS) as usize;
        let wait = wait_of(number(call, 3));
        self.run(call, wait, move |wait| epoll_now(&epoll, most, wait))
    }

    pub(super) fn ioctl(&mut self, call: &Call) -> Result<Begun, Refusal> {
        let (socket, _) = match self.socket(number(call, 0)) {
            Ok(socket) => socket,
            Err(error) => return Ok(Begun::Ended(error)),
        };
        let told = match number(call, 1) {
            SIOCINQ => ioctl_fionread(socket).map(|bytes| bytes as i64).map_err(Into::into),
            SIOCOUTQ => options::queued(socket.as_fd(), false).map(i64::from),
            SIOCOUTQNSD => options::queued(socket.as_fd(), true).map(i64::from),
            other => {
                return Err(Refusal::new("SIOCINQ, SIOCOUTQ or SIOCOUTQNSD", format!("{other:#x}")));
            }
        };
        Ok(Begun::Ended(match told {
            Ok(bytes) => Returned::value(0).with(2, Expression::List(vec![Expression::Number(bytes)])),
            Err(error) => failed(&error),
        }))
    }
}
