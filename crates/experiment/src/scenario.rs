//! One point of an experiment: a path, two stacks and the flows between them.

use crate::budget::{RunBudget, read_budget};
use crate::element::{path_list, read_path};
use crate::emulate::{EmulateOptions, read_emulate};
use crate::error::ExperimentError;
use crate::flows::{Ends, FlowSpec, Transport, read_flows};
use crate::host::read_jitter;
use crate::implementation;
use crate::library::Files;
use crate::linux::BpfObject;
use crate::programs::{ProgramSpec, read_programs};
use crate::reader::Reader;
use crate::stack::{Stack, read_end};
use crate::warnings::{self, Warning, base_rtt_of};
use farpath_elements::{Delay, ElementKind, ElementSpec};
use farpath_explicit_rate::window_for;
use farpath_path::{Direction, PerDirection};
use farpath_tcp::Config;
use farpath_units::{Duration, Rate};
use std::borrow::Cow;
use toml::Table;

/// Everything that an engine needs to run one point, except which of its seeds.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// What it is.
    pub title: String,
    /// Seed of the first run.
    pub seed: u64,
    /// Number of runs, with the seeds `seed`, `seed + 1` ...
    pub seeds: u64,
    /// A run that is not over by then ends.
    pub horizon: Duration,
    /// What it may use up.
    pub budget: RunBudget,
    /// From the data sender to the data receiver of a forward flow.
    pub path: Vec<ElementSpec>,
    /// The end that sends the data. Of a reverse flow it sits at the path's far end.
    pub sender: Stack,
    /// The other end.
    pub receiver: Stack,
    /// What the flows are carried by.
    pub transport: Transport,
    /// At least one.
    pub flows: Vec<FlowSpec>,
    /// What is recorded beside the flows.
    pub output: Output,
    /// How it is run on the running kernel.
    pub emulate: EmulateOptions,
    /// Programs of the user on the path, which `farpath exec` runs in place of the flows.
    pub programs: Vec<ProgramSpec>,
    /// The file has programs and no transfer: `flows` is a byte that stands in for one.
    pub only_programs: bool,
    /// What is allowed and probably not meant.
    pub warnings: Vec<String>,
}

impl Scenario {
    /// The stacks of a flow's sender and receiver.
    pub fn ends<'a>(&'a self, flow: &'a FlowSpec) -> (&'a Stack, &'a Stack) {
        (flow.sender.as_deref().unwrap_or(&self.sender), flow.receiver.as_deref().unwrap_or(&self.receiver))
    }

    /// The parameters of both ends of a flow. Where they ask for a rate, their buffers are what it needs over the path while losses
    /// up to the limit are repaired.
    pub fn sized_configs(&self, flow: &FlowSpec) -> (Config, Config) {
        let (sender, receiver) = self.ends(flow);
        let (mut sender, mut receiver) = (sender.config.clone(), receiver.config.clone());
        if let Some(wanted) = sender.explicit_rate.wanted.filter(|_| receiver.explicit_rate.wanted.is_some())
        {
            let rate = sender.explicit_rate.guaranteed.map_or(wanted, |guaranteed| {
                Rate::from_bit_per_s(wanted.bit_per_s() + guaranteed.bit_per_s()).unwrap_or(wanted)
            });
            let rtt = base_rtt_of(self, flow);
            let needs = |limit: u32| window_for(rate, rtt, limit);
            // As large from the beginning, and for the kernel too (KernelProfile::of_stack).
            if sender.explicit_rate.size_buffers {
                let needed = needs(sender.explicit_rate.loss_limit_per_mille);
                sender.send.buffer = sender.send.buffer.map(|buffer| buffer.max(needed));
                sender.send.autotuning = false;
            }
            if receiver.explicit_rate.size_buffers {
                let needed = needs(receiver.explicit_rate.loss_limit_per_mille);
                receiver.receive.buffer = receiver.receive.buffer.max(needed);
                receiver.receive.autotuning = false;
            }
        }
        (sender, receiver)
    }

    /// What ends have of BPF, with the key that says it: of both, and of flows that have ends of their own.
    pub fn bpf(&self) -> impl Iterator<Item = (String, &BpfObject)> {
        let both = [("sender", &self.sender), ("receiver", &self.receiver)];
        let both = both.into_iter().map(|(end, stack)| (format!("{end}.linux.bpf"), stack));
        let own = self.flows.iter().flat_map(|flow| {
            [("sender", flow.sender.as_deref()), ("receiver", flow.receiver.as_deref())]
                .into_iter()
                .filter_map(|(end, own)| Some((format!("flow.{end}.linux.bpf"), own?)))
        });
        both.chain(own).filter_map(|(key, stack)| Some((key, stack.linux.bpf.as_ref()?)))
    }

    /// Whether `engine`, which asks no kernel, has all that the ends are made of.
    ///
    /// # Errors
    /// One of them has a congestion controller that only a kernel runs.
    pub fn needs_no_kernel(&self, engine: &'static str) -> Result<(), KernelOnly> {
        match self.bpf().next() {
            Some((key, BpfObject { file, .. })) => Err(KernelOnly { key, file: file.clone(), engine }),
            None => Ok(()),
        }
    }

    /// The path as a flow sees it, its own access before what all share.
    pub fn path_of(&self, flow: &FlowSpec) -> Cow<'_, [ElementSpec]> {
        if flow.access.is_zero() {
            return Cow::Borrowed(&self.path);
        }
        let kind = ElementKind::Delay(Delay { delay: PerDirection::both(flow.access) });
        let access = ElementSpec { name: "access".to_owned(), kind };
        Cow::Owned(core::iter::once(access).chain(self.path.iter().cloned()).collect())
    }
}

/// A congestion controller of an end that only a kernel runs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{key}: a BPF congestion control runs on a kernel only: expected `farpath emulate`, or `farpath exec` and `farpath shell` with \
     --like-stacks, found `{file}` under `{engine}`"
)]
pub struct KernelOnly {
    key: String,
    file: String,
    engine: &'static str,
}

impl Stack {
    /// Whether one that asks no kernel has all that this stack is made of; `engine` is what it is called.
    ///
    /// # Errors
    /// It has a congestion controller that only a kernel runs.
    pub fn needs_no_kernel(&self, engine: &'static str) -> Result<(), KernelOnly> {
        match &self.linux.bpf {
            Some(BpfObject { file, .. }) => {
                Err(KernelOnly { key: "linux.bpf".to_owned(), file: file.clone(), engine })
            }
            None => Ok(()),
        }
    }
}

/// What is recorded beside the flows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Output {
    /// cwnd, srtt ... over time.
    pub series: bool,
    /// Every segment at both ends, and every drop.
    pub segments: bool,
    /// Every message of a stream.
    pub messages: bool,
}

/// Reads a document without its sweep.
pub(crate) fn read_scenario(origin: &str, table: &Table, files: &Files) -> Result<Scenario, ExperimentError> {
    Reader::table(origin, "", table, |reader| {
        let title = reader.required("title")?;
        let seed: u64 = reader.or("seed", 1)?;
        let seeds: u64 = reader.or("seeds", 1)?;
        if seeds == 0 {
            return Err(reader.location_of("seeds").refuse("at least one run is needed"));
        }
        // Tables keep a seed as a signed number.
        if i64::try_from(u128::from(seed) + u128::from(seeds)).is_err() {
            return Err(reader.location_of("seeds").refuse("the last seed is out of range"));
        }
        let horizon = reader.or("horizon", Duration::from_secs(3600))?;
        if horizon.is_zero() {
            return Err(reader.location_of("horizon").refuse("no time to run"));
        }
        let at = reader.location_of("path");
        let elements = match reader.value("path") {
            Some(value) => path_list(value, &at, files)?,
            None => {
                return Err(reader.missing("path", "a list of elements, or the name of a ready-made path"));
            }
        };
        let path = read_path(&elements, &at, files)?;
        let mut end = |key, default: &str| {
            files.end(reader.value(key), default, || reader.section(key, |end| read_end(end, default, files)))
        };
        let mut sender = end("sender", DEFAULT_STACK)?;
        let mut receiver = end("receiver", &sender.name)?;
        let both_ends = reader.section("host", read_jitter)?;
        let mss = sender.config.mss.min(receiver.config.mss);
        let round = |direction| warnings::base_rtt_over(&path, mss, direction);
        if Direction::BOTH.into_iter().any(|direction| round(direction) + horizon == Duration::MAX) {
            return Err(at.refuse("a round trip and the horizon go beyond all time, which is 584 years here"));
        }
        let programs = read_programs(reader)?;
        let ends = Ends { sender: &sender, receiver: &receiver, files };
        let only_programs = !programs.is_empty() && !reader.says("transfer") && !reader.says("flow");
        let (transport, mut flows) = if only_programs {
            (Transport::Tcp, vec![FlowSpec::beside_programs()])
        } else {
            read_flows(reader, ends, round)?
        };
        let own_ends = flows.iter().flat_map(|flow| [&flow.sender, &flow.receiver]).flatten();
        let is_foreign = |end: &Stack| end.implementation.is_foreign();
        // A TCP of somebody else's handles packets as they come, and so does ours opposite it.
        let foreign = own_ends.map(Box::as_ref).chain([&sender, &receiver]).any(is_foreign);
        let own_ends = flows.iter_mut().flat_map(|flow| [&mut flow.sender, &mut flow.receiver]).flatten();
        for end in own_ends.map(Box::as_mut).chain([&mut sender, &mut receiver]) {
            end.host.settle(both_ends, seeds > 1 && !foreign);
        }
        let output = reader.section("output", |output| {
            Ok(Output {
                series: output.or("series", false)?,
                segments: output.or("segments", false)?,
                messages: output.or("messages", false)?,
            })
        })?;
        let emulate = reader.section("emulate", read_emulate)?;
        let budget = reader.section("budget", read_budget)?;
        let mut scenario = Scenario {
            title,
            seed,
            seeds,
            horizon,
            budget,
            path,
            sender,
            receiver,
            transport,
            flows,
            output,
            emulate,
            programs,
            only_programs,
            warnings: Vec::new(),
        };
        implementation::check(&scenario, reader)?;
        scenario.warnings = warnings::warnings(&scenario).iter().map(Warning::to_string).collect();
        Ok(scenario)
    })
}

/// The stack of a sender that names none.
const DEFAULT_STACK: &str = "rfc-5681";
