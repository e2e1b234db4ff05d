//! The `emulate` engine: TCP of the Linux kernel over a path, in real time or in virtual time.
//!
//! An [`EmulatedRun`] is one run of an experiment, wherever it is made: in this process by the kernel that runs, by a helper in a user
//! namespace of its own, or in a guest, whose clock jumps over waits. [`emulate`] asks the kernel that runs, and programs of the user are run
//! on a path by `shell` and `exec`.

mod error;
#[cfg_attr(not(target_os = "linux"), path = "helper/elsewhere.rs")]
mod helper;
mod load;
mod preflight;
mod progress;
#[cfg_attr(not(target_os = "linux"), path = "real_time/elsewhere.rs")]
mod real_time;
mod run;
#[cfg(target_os = "linux")]
mod scripts;
mod silence;
#[cfg(target_os = "linux")]
mod temporary;
#[cfg_attr(not(target_os = "linux"), path = "virtual_time/elsewhere.rs")]
mod virtual_time;
#[cfg(target_os = "linux")]
mod worker;

pub use error::EmulateError;
#[cfg(target_os = "linux")]
pub use helper::helper;
pub use helper::may_emulate_with_help;
pub use load::{MAX_LOAD, load};
pub use preflight::{can_all_be_emulated, can_be_emulated};
pub use progress::{Now, Progress};
#[cfg(target_os = "linux")]
pub use real_time::{CAPTURE_FILE, Connection, ExecEnd, ExecRun, MAX_CONNECTIONS, ProgramEnd, Side, exec};
#[cfg(target_os = "linux")]
pub use real_time::{Held, MAX_WATCHED, socket_look};
#[cfg(target_os = "linux")]
pub use real_time::{ShellEnd, ShellError, ShellRun, ShellSettings, may_uplink, shell};
#[cfg(target_os = "linux")]
pub use real_time::{can_run_programs, kernel_release};
pub use real_time::{emulate, may_emulate};
pub use run::{EmulatedRun, emulating_kernel};
#[cfg(target_os = "linux")]
pub use scripts::{Playing, play_behind_device, play_in_virtual_time, play_on_kernel};
pub use silence::Silence;
#[cfg(target_os = "linux")]
pub use silence::silence;
#[cfg(target_os = "linux")]
pub use virtual_time::{Stream, guest, kernel_runs};
#[cfg(target_os = "linux")]
pub use worker::{ElsewhereError, start_program_by};

/// What is said where the driver is left out.
pub const WITHOUT_DRIVER: &str = "this build has no driver, which is for Linux; it comes with the feature `driver`, where the headers of \
     libelf and zlib are: `apt-get install libelf-dev zlib1g-dev pkg-config` (Debian), then \
     `cargo install --path crates/cli --features driver`";

/// The most flows that one emulation has: each has two programs of its own.
pub const MAX_EMULATED_FLOWS: usize = 500;
