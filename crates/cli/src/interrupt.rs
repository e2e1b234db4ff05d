//! Ctrl-C, or SIGTERM from a batch system: what has begun is finished, but for runs in real time, which may take hours;
//! nothing more is begun.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

static STOP: AtomicBool = AtomicBool::new(false);
static HANDLER: OnceLock<()> = OnceLock::new();

/// Set when the user has pressed Ctrl-C. The second one ends the program at once.
pub fn flag() -> &'static AtomicBool {
    HANDLER.get_or_init(|| {
        let installed = ctrlc::set_handler(|| {
            if STOP.swap(true, Ordering::Relaxed) {
                std::process::exit(130);
            }
            eprintln!("farpath: interrupted; finishing what has begun, but for runs in real time (Ctrl-C again to leave at once)");
        });
        // Without a handler Ctrl-C ends the program as it always does.
        if let Err(error) = installed {
            eprintln!("farpath: cannot catch Ctrl-C: {error}");
        }
    });
    &STOP
}

/// The same, where it ends what is read, and what was read is told.
pub fn flag_of_a_reader() -> &'static AtomicBool {
    HANDLER.get_or_init(|| {
        let installed = ctrlc::set_handler(|| {
            if STOP.swap(true, Ordering::Relaxed) {
                std::process::exit(130);
            }
        });
        if let Err(error) = installed {
            eprintln!("farpath: cannot catch Ctrl-C: {error}");
        }
    });
    &STOP
}

/// The same, where it is the usual way to end: nothing is said, and the first one is enough.
#[cfg(target_os = "linux")]
pub fn quiet_flag() -> &'static AtomicBool {
    HANDLER.get_or_init(|| {
        if let Err(error) = ctrlc::set_handler(|| STOP.store(true, Ordering::Relaxed)) {
            eprintln!("farpath: cannot catch Ctrl-C: {error}");
        }
    });
    &STOP
}

/// Set by SIGTERM and SIGHUP. Ctrl-C is for the programs in the foreground: what they make of it is their affair.
#[cfg(target_os = "linux")]
pub fn flag_of_programs() -> &'static AtomicBool {
    let flag = quiet_flag();
    farpath_emu::ignore_interrupts();
    flag
}

/// Whether Ctrl-C was pressed.
pub fn happened() -> bool {
    STOP.load(Ordering::Relaxed)
}
