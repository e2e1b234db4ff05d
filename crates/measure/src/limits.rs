//! How much a client can have the responder do and keep; and what the responder needs of its host for all of that.
//!
//! What the command line sets is in [`Limits`]; these are fixed. The local host holds the peer to them, too.

use crate::protocol::LINE;
use crate::serve::Limits;
use farpath_traffic::MOST_SILENT;
use farpath_units::{Bytes, Duration};
use rustix::process::{Resource, Rlimit, geteuid, getrlimit, setrlimit};

/// Connections that have not said who they are, in all. Of more, the oldest of the network that has most of them is
/// closed.
pub const CALLERS: usize = 64;
/// Of these from one address; of IPv6, from one /64.
pub const CALLERS_FROM_ONE: usize = 8;
/// Of these from one /48 of IPv6.
pub const CALLERS_FROM_SITE: usize = 16;
/// Clients from one address (one /64): what more of them measured would be each other.
pub const CLIENTS_FROM_ONE: usize = 2;
/// Clients from one /48 of IPv6.
pub const CLIENTS_FROM_SITE: usize = 3;
/// How many times the bytes of a /64 its /48 has.
pub const BYTES_OF_SITE: u64 = 4;
/// Networks of which is remembered what they have had. Of more, the one that has had least is forgotten.
pub const ACCOUNTS: usize = 10_000;

/// Flows of one client at once.
pub const FLOWS: usize = 64;
/// Requests and answers of one transfer.
pub const EXCHANGES: u32 = 100_000;
/// Datagrams of one flow.
pub const DATAGRAMS: u32 = 100_000;
/// Datagrams of the flows of one client at once, of each of which is kept when it came.
pub const DATAGRAMS_OF_CLIENT: u64 = 400_000;
/// The same of all clients.
pub const DATAGRAMS_IN_ALL: u64 = 1_000_000;
/// Rows of one flow, which are kept until they have been told.
pub const ROWS: usize = 500_000;
/// Rows of the flows of one client.
pub const ROWS_OF_CLIENT: u64 = 1_000_000;
/// Rows of all clients.
pub const ROWS_IN_ALL: u64 = 2_000_000;
/// Messages of the streams of one client at once, each of which is stamped.
pub const MESSAGES_OF_CLIENT: u64 = 10_000_000;
/// The same of all clients.
pub const MESSAGES_IN_ALL: u64 = 20_000_000;

/// Lines that it tells of clients in a time; more are counted, and their number is told.
pub const LINES: u32 = 200;
/// In which.
pub const LINES_WITHIN: Duration = Duration::from_secs(10);

/// Rows of all flows of a run that the local host takes from the peer. What is more is left out.
pub const ROWS_FROM_FAR: usize = 5_000_000;

/// What a responder needs of its host when everything is as much as it may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Needs {
    /// Threads.
    pub tasks: u64,
    /// Open files, sockets among them.
    pub files: u64,
    /// Memory, without what the kernel has in the buffers of sockets.
    pub memory: Bytes,
}

/// Its first thread, the one that waits for signals, and some that nobody counts.
const TASKS: u64 = 8;
/// Standard input and output, places to wait at, and some that nobody counts.
const FILES: u64 = 32;
/// The program, and what its allocator keeps of what was given back.
const MEMORY: u64 = 128 << 20;
/// Stack of a thread, as far as it is used, and what the allocator has for it.
const OF_TASK: u64 = 192 << 10;
/// What a flow reads into.
const OF_FLOW: u64 = 256 << 10;
/// A row, in a list that may just be moving to one of twice its length.
const OF_ROW: u64 = 72;
/// A message's stamp.
const OF_MESSAGE: u64 = 8;
/// A datagram, in such a list and in what is told of it.
const OF_DATAGRAM: u64 = 96;
/// A line that is read, what it becomes, and what is answered.
const OF_LINES: u64 = 6 * LINE as u64;
const OF_ACCOUNT: u64 = 192;

impl Needs {
    /// Allows this program as many open files, as far as the host lets it; gives what is to be said where that is not far
    /// enough.
    pub fn allow_files(&self) -> Option<String> {
        let there = getrlimit(Resource::Nofile);
        let most = there.maximum.unwrap_or(u64::MAX);
        if there.current.is_some_and(|current| current < self.files.min(most)) {
            let current = Some(self.files.min(most));
            // Where it is refused, what was allowed before is.
            let _ = setrlimit(Resource::Nofile, Rlimit { current, maximum: there.maximum });
        }
        let allowed = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        (allowed < self.files).then(|| {
            format!(
                "this host allows {allowed} open files, and --max-clients needs {}: clients may be refused",
                self.files
            )
        })
    }

    /// What this host lets a program of this user have too little of, each in words. Empty where all is there.
    pub fn lacks(&self) -> Vec<String> {
        let most = |resource| getrlimit(resource).maximum.unwrap_or(u64::MAX);
        // Root may go beyond the number of processes of a user.
        let threads = if geteuid().is_root() { u64::MAX } else { most(Resource::Nproc) };
        [("open files", most(Resource::Nofile), self.files), ("threads", threads, self.tasks)]
            .into_iter()
            .filter(|(_, allowed, needed)| allowed < needed)
            .map(|(what, allowed, needed)| format!("{allowed} {what} of {needed}"))
            .collect()
    }

    /// The memory in MiB, as people are told: the next multiple of 64.
    pub fn mebibytes(&self) -> u64 {
        self.memory.0.div_ceil(1 << 20).next_multiple_of(64)
    }

    /// As systemd is told: what a unit has to allow.
    pub fn unit(&self) -> [String; 3] {
        [
            format!("MemoryMax={}M", self.mebibytes()),
            format!("TasksMax={}", self.tasks),
            format!("LimitNOFILE={}", self.files),
        ]
    }

    /// Of a responder with these limits.
    pub fn under(limits: &Limits) -> Needs {
        let clients = u64::from(limits.clients);
        // Those that have just been put out are not gone yet.
        let callers = 2 * CALLERS as u64;
        let flows = clients * FLOWS as u64;
        let tasks = TASKS + callers + clients + flows;
        // A flow has its listener, and connections that have yet to show a token.
        let files = FILES + callers + clients + flows * (1 + MOST_SILENT as u64);
        let memory = MEMORY
            + tasks * OF_TASK
            + flows * OF_FLOW
            + (callers + clients) * OF_LINES
            + ACCOUNTS as u64 * OF_ACCOUNT
            + ROWS_IN_ALL * OF_ROW
            + MESSAGES_IN_ALL * OF_MESSAGE
            + DATAGRAMS_IN_ALL * OF_DATAGRAM;
        Needs { tasks, files, memory: Bytes(memory) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_client_needs_its_flows_and_the_rest_is_everybody_s() {
        let needs = |clients| Needs::under(&Limits { clients, ..Limits::default() });
        let (four, five) = (needs(4), needs(5));
        assert_eq!(five.tasks - four.tasks, 1 + FLOWS as u64);
        assert_eq!(five.files - four.files, 1 + FLOWS as u64 * (1 + MOST_SILENT as u64));
        assert!(five.memory > four.memory && five.memory.0 - four.memory.0 < 32 << 20);
        assert_eq!(four.unit()[1], format!("TasksMax={}", four.tasks));
    }
}
