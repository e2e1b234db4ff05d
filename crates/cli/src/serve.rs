//! `farpath serve`: the peer's end of `farpath measure`.

use crate::Ending;
use crate::args::ServeArgs;
use crate::error::CliError;
#[cfg(target_os = "linux")]
use std::{
    io::{self, Write},
    sync::mpsc::{Receiver, SyncSender, sync_channel},
    thread,
    time::Duration,
};

/// Serves until Ctrl-C or SIGTERM.
#[cfg(target_os = "linux")]
pub fn serve(args: &ServeArgs) -> Result<Ending, CliError> {
    use crate::{interrupt, output};
    use farpath_measure::limits::Needs;
    use farpath_measure::serve::{Limits, Serve, Server, loopback};
    use farpath_measure::{Key, is_local};
    use std::net::SocketAddr;

    let key = args.key.as_deref().map(Key::read).transpose()?;
    if let Some(warning) = args.key.as_deref().and_then(farpath_measure::key_is_open) {
        eprintln!("farpath: warning: {warning}");
    }
    let bind = match args.bind.as_slice() {
        [] => loopback(args.port),
        some => some.iter().map(|(ip, port)| SocketAddr::new(*ip, port.unwrap_or(args.port))).collect(),
    };
    let limits = Limits {
        clients: args.max_clients,
        rate: args.max_rate,
        bytes: args.max_bytes,
        time: args.max_time,
        data_ports: args.data_ports,
        ..Limits::default()
    };
    if let Some(warning) = Needs::under(&limits).allow_files() {
        eprintln!("farpath: warning: {warning}");
    }
    // A host without IPv6 has no ::1 to wait at; nobody has asked for it.
    let without_v6 = || Serve {
        bind: bind.iter().copied().filter(SocketAddr::is_ipv4).collect(),
        key: key.clone(),
        limits,
    };
    let server = match Server::bind(&Serve { bind: bind.clone(), key: key.clone(), limits }) {
        Err(_) if args.bind.is_empty() => Server::bind(&without_v6())?,
        server => server?,
    };
    let stop = interrupt::quiet_flag();
    let open = server.addresses().into_iter().find(|address| !is_local(address.ip()));
    if let (Some(address), None) = (open, &key) {
        eprintln!(
            "farpath: warning: whoever reaches {address} may measure with this host: --key FILE lets in those alone who \
             have the key"
        );
    }
    for address in server.addresses() {
        output::print(&format!("farpath: waits at {address}"))?;
    }
    let log = Log::start();
    let lines = &log.lines;
    server.run(stop, &|line| drop(lines.try_send(line.to_owned())))?;
    log.end();
    Ok(Ending::Done)
}

/// What is said of clients, written by a thread of its own: whoever reads it may be gone, or not read, which holds up nobody.
#[cfg(target_os = "linux")]
struct Log {
    lines: SyncSender<String>,
    written: Receiver<()>,
}

/// Lines that wait to be written; what comes then is left out.
#[cfg(target_os = "linux")]
const LINES_AHEAD: usize = 1000;

#[cfg(target_os = "linux")]
impl Log {
    fn start() -> Log {
        let (lines, told) = sync_channel::<String>(LINES_AHEAD);
        let (all, written) = sync_channel(0);
        // Without it nothing is said of clients, who are served all the same.
        let _ = thread::Builder::new().spawn(move || {
            for line in told {
                let _ = writeln!(io::stderr(), "farpath: {line}");
            }
            drop(all);
        });
        Log { lines, written }
    }

    /// Waits a moment for what is yet to be written.
    fn end(self) {
        drop(self.lines);
        let _ = self.written.recv_timeout(Duration::from_secs(1));
    }
}

/// What `farpath doctor` says of it: whether this host allows what its limits need.
#[cfg(target_os = "linux")]
pub fn finding() -> farpath_emu::doctor::Finding {
    use farpath_emu::doctor::{Finding, State};
    use farpath_measure::limits::Needs;
    use farpath_measure::serve::Limits;

    let limits = Limits::default();
    let needs = Needs::under(&limits);
    let lacks = needs.lacks();
    let (state, found, remedy) = if lacks.is_empty() {
        let Needs { tasks, files, .. } = needs;
        let found = format!(
            "{} clients need {tasks} threads, {files} open files and {} MiB: allowed",
            limits.clients,
            needs.mebibytes()
        );
        (State::Ok, found, None)
    } else {
        let found = format!("{} clients may have {}", limits.clients, lacks.join(" and "));
        let remedy = "raise the limit (`ulimit -Hn`, `ulimit -u`, or the unit in docs/measuring.md), or allow fewer by --max-clients";
        (State::Limited, found, Some(remedy.to_owned()))
    };
    let meaning = "emulation does not need it; `farpath serve` refuses clients when it runs out of them";
    Finding { name: "serve", state, found, meaning: meaning.to_owned(), remedy }
}

/// It cannot.
#[cfg(not(target_os = "linux"))]
pub fn serve(_: &ServeArgs) -> Result<Ending, CliError> {
    Err(CliError::NotLinux("serve"))
}
