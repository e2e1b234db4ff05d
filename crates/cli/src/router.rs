//! `farpath explicit-rate router`: a flow router between two network interfaces.

use crate::Ending;
use crate::args::RouterArgs;
use crate::error::CliError;
use farpath_experiment::RouterConfig;

#[cfg(target_os = "linux")]
mod page;
#[cfg(target_os = "linux")]
mod statistics;

/// Routes until it is told to end.
pub fn router(args: &RouterArgs) -> Result<Ending, CliError> {
    let config = read(args)?;
    if args.check {
        crate::output::print(&format!("{}: can be read", args.config.display()))?;
        return Ok(Ending::Done);
    }
    run(args, config)
}

fn read(args: &RouterArgs) -> Result<RouterConfig, CliError> {
    let file = &args.config;
    let text =
        farpath_files::read_text(file).map_err(|source| CliError::Config { file: file.clone(), source })?;
    Ok(RouterConfig::parse(&text, &file.display().to_string())?)
}

/// It cannot.
#[cfg(not(target_os = "linux"))]
fn run(_: &RouterArgs, _: RouterConfig) -> Result<Ending, CliError> {
    Err(CliError::NotLinux("explicit-rate router"))
}

#[cfg(target_os = "linux")]
use here::run;

#[cfg(target_os = "linux")]
mod here {
    use super::page::{Limits, Page};
    use super::{CliError, Ending, RouterArgs, RouterConfig, read, statistics};
    use crate::output;
    use farpath_elements::FlowRouter;
    use farpath_emu::{Clock, Emulator, NoRecorder, Settings, WirePacket, join, set_flow_seed};
    use farpath_units::Bytes;
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    use signal_hook::iterator::Signals;
    use std::hash::{BuildHasher, RandomState};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc::{self, Receiver, Sender};
    use std::thread;
    use std::time::Duration;

    /// How old statistics are at the most.
    const FRESH: Duration = Duration::from_millis(500);

    /// Why the loop is interrupted.
    enum Event {
        /// The configuration is to be read again.
        Reload,
        /// It is over.
        End,
    }

    pub fn run(args: &RouterArgs, mut config: RouterConfig) -> Result<Ending, CliError> {
        // Who sends packets must not know which flows a hash takes for one.
        let seed = RandomState::new().hash_one(0);
        set_flow_seed(seed);
        let [inside, outside] = join(&config.inside, &config.outside)?;
        let page = config.statistics.map(|address| {
            let failed = |source| CliError::Statistics { address, source };
            Page::serve(address, Limits::default()).map_err(failed)
        });
        let page = page.transpose()?;
        // Queues are bounded by the configuration.
        let settings = Settings { memory: Bytes::MAX, ..Settings::default() };
        let element = FlowRouter::<WirePacket>::new("router".to_owned(), &config.lines, seed);
        let mut emulator = Emulator::over(element, settings, inside, outside, Clock::start());
        let (interrupt, events) = interrupts()?;
        let (inside, outside) = (&config.inside, &config.outside);
        output::print(&format!("farpath: routes between {inside} and {outside}"))?;
        loop {
            let report = emulator.run(&interrupt, &mut NoRecorder)?;
            interrupt.store(false, Ordering::Relaxed);
            if let Some(page) = &page {
                page.show(statistics::text(&report, emulator.element()));
            }
            match events.try_recv() {
                Ok(Event::End) => return Ok(Ending::Done),
                Ok(Event::Reload) => match reread(args, &config) {
                    Ok(new) => {
                        emulator.element().reconfigure(&new.lines);
                        config = new;
                        eprintln!("farpath: {} is in force", args.config.display());
                    }
                    // What was in force goes on.
                    Err(error) => eprintln!("farpath: {}; nothing is changed", error.describe()),
                },
                Err(_) => {}
            }
        }
    }

    /// The configuration anew. Interfaces and address stay.
    fn reread(args: &RouterArgs, now: &RouterConfig) -> Result<RouterConfig, CliError> {
        let new = read(args)?;
        let address =
            |config: &RouterConfig| config.statistics.map_or("none".to_owned(), |at| at.to_string());
        for (key, was, is) in [
            ("inside", now.inside.clone(), new.inside.clone()),
            ("outside", now.outside.clone(), new.outside.clone()),
            ("statistics", address(now), address(&new)),
        ] {
            if was != is {
                return Err(CliError::Restart { file: args.config.clone(), key, was });
            }
        }
        Ok(new)
    }

    /// Set when there is an event, or when statistics are to be renewed.
    fn interrupts() -> Result<(Arc<AtomicBool>, Receiver<Event>), CliError> {
        let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM]).map_err(CliError::Output)?;
        let interrupt = Arc::new(AtomicBool::new(false));
        let (sender, events): (Sender<Event>, _) = mpsc::channel();
        let by_signal = Arc::clone(&interrupt);
        thread::spawn(move || {
            for signal in signals.forever() {
                let event = if signal == SIGHUP { Event::Reload } else { Event::End };
                if sender.send(event).is_err() {
                    return;
                }
                by_signal.store(true, Ordering::Relaxed);
            }
        });
        let by_time = Arc::clone(&interrupt);
        thread::spawn(move || {
            loop {
                thread::park_timeout(FRESH);
                by_time.store(true, Ordering::Relaxed);
            }
        });
        Ok((interrupt, events))
    }
}
