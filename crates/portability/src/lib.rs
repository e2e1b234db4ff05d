//! Simulations by number and the digest of each, for tests: the same seed must give the same packets on every target.
//!
//! Built for wasm32 the crate is a module that exports [`count`] and [`digest`] (`crates/portability/src/digests.mjs` asks it);
//! built for the host it is a program that compares the module's digests with its own: `make core`.

use core::fmt::{self, Debug, Write};
use farpath_experiment::{Experiment, FlowSpec, Opener, Scenario, Stack, shipped_stacks};
use farpath_path::{Direction, Path, PathElement};
use farpath_sim::{FlowSetup, Observer, Packet, PacketEvent, Setup, simulate};
use farpath_units::Instant;
use std::sync::OnceLock;

/// Paths over which every shipped stack is simulated.
const PATHS: [(&str, &str); 3] = [
    (
        "loss, a queue that overflows",
        r#"[
            { element = "link", rate = "10 Mbit/s", queue = "20 kB" },
            { element = "delay", delay = "20 ms" },
            { element = "loss", rate = { forward = "1 %", reverse = "0.5 %" } },
        ]"#,
    ),
    (
        "bursts of loss, bit errors, reordering and copies over 250 ms",
        r#"[
            { element = "link", rate = "2 Mbit/s", queue = "100 kB" },
            { element = "gilbert-elliott", good_to_bad = "0.5 %", bad_to_good = "20 %", loss_bad = "50 %" },
            { element = "bit-errors", ber = 1e-7 },
            { element = "reorder", share = "1 %", extra_delay = "30 ms" },
            { element = "duplicate", share = "1 %" },
            { element = "delay", delay = "250 ms" },
        ]"#,
    ),
    ("Wi-Fi, where stations draw when they send", r#""wifi-dcf""#),
];

/// Congestion controls of Linux beside its default, over the first two paths.
const CONTROLS: [&str; 3] = ["reno", "bbr", "bbr3"];

/// What is simulated, one after the other.
#[derive(Debug)]
pub struct Case {
    /// For messages.
    pub name: String,
    scenario: Scenario,
}

impl Case {
    /// All of them.
    pub fn all() -> &'static [Case] {
        static ALL: OnceLock<Vec<Case>> = OnceLock::new();
        ALL.get_or_init(Case::list)
    }

    fn list() -> Vec<Case> {
        // A stack that is another's name, as linux-6 is, is simulated once.
        let mut known = Vec::new();
        let stacks = shipped_stacks().into_iter().filter_map(|stack| {
            let config = Stack::load(stack.name).expect("it ships").config;
            (!known.contains(&config)).then(|| {
                known.push(config);
                (stack.name.to_owned(), String::new())
            })
        });
        let controls = CONTROLS
            .iter()
            .map(|control| ("linux-6".to_owned(), format!("congestion.control = \"{control}\"")));
        let senders: Vec<_> = stacks.chain(controls).collect();
        let cases = senders.iter().flat_map(|sender| PATHS.iter().map(move |path| Case::new(sender, path)));
        cases.collect()
    }

    fn new((stack, changes): &(String, String), (said, path): &(&str, &str)) -> Case {
        let name = format!("{stack} {changes}, {said}");
        let text = format!(
            "title = \"portability\"\nseeds = 2\nhorizon = \"2000 s\"\npath = {}\n[sender]\nstack = \"{stack}\"\n{changes}\n\
             [receiver]\nstack = \"{stack}\"\n[transfer]\nsize = \"150 kB\"\n",
            path.replace('\n', " "),
        );
        let experiment =
            Experiment::parse(&text, &name, &[]).unwrap_or_else(|error| panic!("{name}: {error}"));
        Case { name, scenario: experiment.point(0).scenario.clone() }
    }

    /// Digest of every packet that was sent, received or dropped, and of what became of the flows, state of both ends included.
    pub fn digest(&self) -> u64 {
        let flows = self.scenario.flows.iter().map(|flow| flow_setup(&self.scenario, flow)).collect();
        let Scenario { path, seed, horizon, .. } = &self.scenario;
        let setup = Setup { path: path.clone(), flows, seed: *seed, horizon: *horizon };
        let mut digest = Digest::default();
        let results = simulate(&setup, &mut digest).unwrap_or_else(|error| panic!("{}: {error}", self.name));
        digest.add(&results);
        digest.0
    }
}

fn flow_setup(scenario: &Scenario, flow: &FlowSpec) -> FlowSetup {
    let (sender, receiver) = scenario.ends(flow);
    FlowSetup {
        start: Instant::ZERO + flow.start,
        direction: flow.direction,
        opener: match flow.opener {
            Opener::Sender => farpath_sim::Opener::Sender,
            Opener::Receiver => farpath_sim::Opener::Receiver,
        },
        size: flow.size,
        messages: flow.stream.map(|stream| stream.messages),
        reply: flow.reply(),
        lifetime: flow.lifetime(),
        writing: flow.writing,
        request: flow.request,
        sender: sender.config.clone(),
        receiver: receiver.config.clone(),
        access: flow.access,
        sender_jitter: sender.host.jitter,
        receiver_jitter: receiver.host.jitter,
    }
}

/// FNV-1a (Fowler, Noll, Vo) of what is written, 64 bits.
struct Digest(u64);

impl Default for Digest {
    fn default() -> Digest {
        Digest(0xcbf2_9ce4_8422_2325)
    }
}

impl Write for Digest {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 = text
            .bytes()
            .fold(self.0, |digest, byte| (digest ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
        Ok(())
    }
}

impl Digest {
    fn add(&mut self, what: &impl Debug) {
        write!(self, "{what:?}").expect("a digest takes everything");
    }
}

impl Observer for Digest {
    fn packet(&mut self, now: Instant, event: PacketEvent, direction: Direction, packet: &Packet) {
        self.add(&(now, event, direction, packet));
    }

    fn end(&mut self, now: Instant, path: &Path<Packet>, _events: u64) {
        self.add(&(now, path.counters()));
    }
}

/// How many cases there are.
#[allow(unsafe_code, reason = "the name that the module exports")]
#[unsafe(no_mangle)]
pub extern "C" fn count() -> u32 {
    u32::try_from(Case::all().len()).expect("a few dozen")
}

/// The digest of the case with this number, from 0.
#[allow(unsafe_code, reason = "the name that the module exports")]
#[unsafe(no_mangle)]
pub extern "C" fn digest(case: u32) -> u64 {
    Case::all()[case as usize].digest()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn digests_repeat_and_tell_cases_apart() {
        let digests = || Case::all().iter().map(Case::digest).collect::<Vec<_>>();
        let once = digests();
        assert_eq!(once, digests());
        assert_eq!(once.iter().collect::<BTreeSet<_>>().len(), once.len(), "two cases are one");
    }
}
