//! `make bench`: how fast the simulator is here, beside ns-3 on the same machine in the same run. One line a figure.
//!
//! CPU time, not wall time, but for emulation: machines are shared. Of several repetitions the quickest counts, as what disturbs a
//! measurement only ever adds to it.

use farpath_bench::clock::{peak_memory, timed};
use farpath_bench::figure::{Figure, Target};
use farpath_bench::ns3::{BUILD, Ns3, Ns3Error};
use farpath_bench::scenarios::{Long, data_segments, noisy, noisy_arguments, today};
use farpath_experiment::Experiment;
use farpath_run::{Provenance, ResultsDir};
use farpath_sim::{Setup, Silent, simulate};
use serde_json::Value;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// 1 Gbit/s, 10 ms there and back.
const ONE: Long =
    Long { flows: 1, delay_ms: 5, window: 1_300_000, size: 2_000_000_000, queue: 0, stop_ms: 0 };
/// Slow start overshoots a queue of 1700 packets, 20 ms there and back.
const MANY: Long =
    Long { flows: 100, delay_ms: 10, window: 8_000_000, size: 4_000_000_000, queue: 1700, stop_ms: 10_000 };
const TWO: Long = Long { flows: 2, stop_ms: 1_000, ..MANY };

const WINDOWS: [(&str, u64); 3] = [("300 kB", 300_000), ("1.3 MB", 1_300_000), ("16 MB", 16_000_000)];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--memory-of", size] => memory_of(size),
        ["--memory-of-diagnosis", file] => farpath_bench::diagnose::memory_of(Path::new(file)),
        ["--row", name, times] => row(name, times),
        ["--gate", baseline] => return gate(Path::new(baseline), None),
        ["--gate", baseline, "--write", made_on] => return gate(Path::new(baseline), Some(made_on.to_owned())),
        ["--growth"] => {
            let mut bench = Bench::default();
            farpath_bench::gate::growth(|figure| bench.told(figure)).map_err(Into::into)
        }
        ["--links"] => {
            let mut bench = Bench::default();
            let [_, steady, _] = bench.one_flow();
            bench.over_trace(steady);
            Ok(())
        }
        ["--tracing"] => Bench::default().tracing(),
        ["--sweep"] => Bench::default().sweep(),
        ["--scripts"] => Bench::default().scripts(),
        ["--diagnose"] => Bench::default().diagnose(),
        #[cfg(target_os = "linux")]
        ["--programs"] => Bench::default().programs(),
        // Those of a guest are this program again.
        #[cfg(target_os = "linux")]
        ["--sink"] => farpath_bench::programs::sink().map_err(Into::into),
        #[cfg(target_os = "linux")]
        ["--source", megabytes] => megabytes
            .parse()
            .map_err(Into::into)
            .and_then(|megabytes| farpath_bench::programs::source(megabytes).map_err(Into::into)),
        // The first process of a kernel in virtual time is this program again.
        #[cfg(target_os = "linux")]
        ["guest"] => match farpath_emulate::guest() {
            Ok(never) => match never {},
            Err(error) => Err(error.into()),
        },
        ["--emulation"] => {
            Bench::default().emulation();
            Ok(())
        }
        ["--router"] => {
            Bench::default().router();
            Ok(())
        }
        ["--long"] => Bench::default().long(),
        #[cfg(target_os = "linux")]
        ["--measured"] => {
            let mut bench = Bench::default();
            farpath_bench::emulation::measured(|figure| bench.told(figure));
            Ok(())
        }
        [environment, output] => Bench::default().run(Path::new(environment), Path::new(output)),
        _ => {
            Err("usage: bench VIRTUAL-ENVIRONMENT OUTPUT.json | --links | --tracing | --sweep | --scripts | --diagnose | --programs | --router | --emulation | --long | --measured | --growth | --gate BASELINE.json [--write MADE-ON]"
                .into())
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::from(2)
        }
    }
}

/// What was measured so far. Each figure is printed when it is known.
#[derive(Default)]
struct Bench(Vec<Figure>);

impl Bench {
    fn add(&mut self, name: impl Into<String>, value: Option<f64>, unit: &'static str, target: Target) {
        self.told(Figure { name: name.into(), value, unit, target });
    }

    fn told(&mut self, figure: Figure) {
        println!("{}", figure.line());
        self.0.push(figure);
    }

    fn run(mut self, environment: &Path, output: &Path) -> Result<(), Box<dyn Error>> {
        println!("Farpath {}; CPU time, the quickest of several; M is a million", env!("CARGO_PKG_VERSION"));
        let one_flow = self.one_flow();
        self.over_trace(one_flow[1]);
        let many = rate(&MANY.setup(&today()), 3);
        self.add(
            "100 flows, 10 s, losses by overshoot",
            Some(many / 1e6),
            "M segments/s",
            Target::AtLeast(1.5),
        );
        let two = rate(&TWO.setup(&today()), 20);
        self.add("2 flows, 1 s, burst of losses by overshoot", Some(two / 1e6), "M segments/s", Target::None);
        let noisy = self.noisy();
        self.tracing()?;
        self.sweep()?;
        self.scripts()?;
        self.diagnose()?;
        #[cfg(target_os = "linux")]
        self.programs()?;
        self.memory()?;
        self.router();
        self.emulation();
        println!("\nThe same in {BUILD}, in segments per CPU second");
        let ns3 = Ns3::set_up(environment);
        if let Err(error) = &ns3 {
            eprintln!("bench: NS-3 IS NOT MEASURED: {error}");
        }
        self.against(&ns3, one_flow, many, two, noisy);
        let figures: Vec<Value> = self.0.iter().map(Figure::to_json).collect();
        std::fs::write(output, serde_json::to_string_pretty(&figures)? + "\n")?;
        let missed = self.0.iter().filter(|figure| figure.holds() == Some(false)).count();
        println!("\n{} figures, {missed} targets missed; written to {}", self.0.len(), output.display());
        Ok(())
    }

    fn one_flow(&mut self) -> [f64; 3] {
        let rates = WINDOWS.map(|(_, window)| rate(&Long { window, ..ONE }.setup(&today()), 3));
        for ((name, _), rate) in WINDOWS.into_iter().zip(rates) {
            let target = Target::AtLeast(2.5);
            self.add(format!("one flow, 2 GB, window {name}"), Some(rate / 1e6), "M segments/s", target);
        }
        let (least, most) =
            (rates.into_iter().fold(f64::MAX, f64::min), rates.into_iter().fold(0.0, f64::max));
        self.add("one flow, fastest window to slowest", Some(most / least), "times", Target::AtMost(1.3));
        rates
    }

    /// A link whose rate changes a hundred times a second, beside one of a steady rate and the same window. Where that does 4 million
    /// segments a second, three quarters of it are the 3 million that were asked for.
    fn over_trace(&mut self, steady: f64) {
        let traced = rate(&ONE.over_trace(&today()), 3);
        self.add("one flow, 2 GB, link with a trace", Some(traced / 1e6), "M segments/s", Target::None);
        let target = Target::AtLeast(0.75);
        self.add("link with a trace to one without", Some(traced / steady), "times", target);
    }

    fn noisy(&mut self) -> f64 {
        let setups: Vec<Setup> = (1..=20).map(noisy).collect();
        let (mut best, mut segments) = (f64::MAX, 0);
        for _ in 0..5 {
            let (sent, seconds) = timed(|| setups.iter().map(run).sum::<u64>());
            (best, segments) = (best.min(seconds), sent);
        }
        self.add("10 MB at 1 % loss, one run", Some(best / 20.0 * 1e3), "ms", Target::AtMost(3.0));
        segments as f64 / best
    }

    /// What `farpath simulate --out` costs with segments, and with series too, over the same without.
    fn tracing(&mut self) -> Result<(), Box<dyn Error>> {
        let text = "title = \"Traced\"\ntransfer = { size = \"200 MB\", opener = \"sender\" }\n\
            path = [{ element = \"link\", rate = \"1 Gbit/s\" }, { element = \"delay\", delay = \"5 ms\" }]\n";
        let stack = [
            "congestion.control=cubic",
            "recovery.sack=true",
            "send.window_scaling=true",
            "send.timestamps=true",
        ];
        let mut overrides = Vec::new();
        for end in ["sender", "receiver"] {
            overrides.push(format!("{end}.receive.buffer=1.3 MB"));
            overrides.extend(stack.map(|change| format!("{end}.{change}")));
        }
        let load = |more: &[&str]| -> Result<Experiment, Box<dyn Error>> {
            let all = overrides.iter().map(String::as_str).chain(more.iter().copied());
            Ok(Experiment::parse(text, "traced", &all.map(str::parse).collect::<Result<Vec<_>, _>>()?)?)
        };
        let segments = ["output.segments=true"];
        let everything = ["output.segments=true", "output.series=true"];
        let experiments = [load(&[])?, load(&segments)?, load(&everything)?];
        let folder = scratch_folder();
        let mut seconds = [f64::MAX; 3];
        for _ in 0..10 {
            for (best, experiment) in seconds.iter_mut().zip(&experiments) {
                *best = best.min(write_run(experiment, &folder)?);
            }
        }
        // The last run had both.
        let file = |name: &str| std::fs::metadata(folder.join(name)).map(|file| file.len() as f64 / 1e6);
        let sizes = [file("segments.parquet")?, file("series.parquet")?];
        std::fs::remove_dir_all(&folder)?;
        let [without, segments, everything] = seconds;
        let target = Target::AtMost(2.0);
        self.add("tracing every segment into files", Some(segments / without), "times", target);
        let both = Some(everything / without);
        self.add("tracing every segment and series into files", both, "times", Target::None);
        self.add("file of every segment, 200 MB", Some(sizes[0]), "MB", Target::None);
        self.add("file of every series, 200 MB", Some(sizes[1]), "MB", Target::None);
        Ok(())
    }

    /// `farpath sweep` over its runs alone.
    fn sweep(&mut self) -> Result<(), Box<dyn Error>> {
        let folder = scratch_folder();
        let measured = farpath_bench::sweep::measure(&folder, |figure| self.told(figure));
        std::fs::remove_dir_all(&folder)?;
        measured
    }

    /// Captures that are read.
    fn diagnose(&mut self) -> Result<(), Box<dyn Error>> {
        let folder = scratch_folder();
        let measured = farpath_bench::diagnose::measure(&folder, |figure| self.told(figure));
        std::fs::remove_dir_all(&folder)?;
        measured
    }

    /// Packet scripts, simulated and in virtual time.
    fn scripts(&mut self) -> Result<(), Box<dyn Error>> {
        farpath_bench::script::measure(|figure| self.told(figure))
    }

    /// Programs of the user, in virtual time.
    #[cfg(target_os = "linux")]
    fn programs(&mut self) -> Result<(), Box<dyn Error>> {
        farpath_bench::programs::measure(|figure| self.told(figure))
    }

    /// Explicit rate: one port of a flow router.
    fn router(&mut self) {
        farpath_bench::router::measure(|figure| self.told(figure));
    }

    /// The Linux kernel's TCP over the same path elements, in real time.
    fn emulation(&mut self) {
        println!("\nEmulation, in real time, beside plain veth");
        #[cfg(target_os = "linux")]
        farpath_bench::emulation::measure(|figure| self.told(figure));
        #[cfg(not(target_os = "linux"))]
        eprintln!("bench: EMULATION IS NOT MEASURED: it is of the Linux kernel's TCP");
    }

    /// Radii of the running kernel, which take minutes.
    fn long(mut self) -> Result<(), Box<dyn Error>> {
        #[cfg(target_os = "linux")]
        farpath_bench::radius::measure(|figure| self.told(figure))?;
        #[cfg(not(target_os = "linux"))]
        return Err("the radii are those of the Linux kernel's TCP".into());
        let missed = self.0.iter().filter(|figure| figure.holds() == Some(false)).count();
        println!("\n{} figures, {missed} targets missed", self.0.len());
        Ok(())
    }

    /// In processes of their own: what a peak is does not come down.
    fn memory(&mut self) -> Result<(), Box<dyn Error>> {
        let mut peaks = Vec::new();
        for (name, size) in [("2 GB", 2_000_000_000_u64), ("20 GB", 20_000_000_000)] {
            let this = std::env::current_exe()?;
            let output = Command::new(this).args(["--memory-of", &size.to_string()]).output()?;
            let peak = String::from_utf8_lossy(&output.stdout).trim().parse::<f64>().ok();
            self.add(format!("memory, {name}"), peak.map(|peak| peak / 1e6), "MB", Target::AtMost(64.0));
            peaks.extend(peak);
        }
        let growth = (peaks.len() == 2).then(|| peaks[1] / peaks[0]);
        self.add("memory, 20 GB to 2 GB", growth, "times", Target::AtMost(1.1));
        Ok(())
    }

    /// ns-3 takes minutes for some of these: it is given less of the same, and segments per second are compared.
    fn against(&mut self, ns3: &Result<Ns3, Ns3Error>, one: [f64; 3], many: f64, two: f64, noisy: f64) {
        let long = |name: &str, ours: f64, shorter: Long| (name.to_owned(), ours, shorter.arguments());
        let mut races: Vec<(String, f64, Vec<String>)> = Vec::new();
        for ((name, window), ours) in WINDOWS.into_iter().zip(one) {
            let shorter = Long { window, size: 50_000_000, ..ONE };
            races.push(long(&format!("one flow, 50 MB, window {name}"), ours, shorter));
        }
        races.push(long("100 flows, 1 s", many, Long { stop_ms: 1_000, ..MANY }));
        races.push(long("2 flows, 0.5 s", two, Long { stop_ms: 500, ..TWO }));
        races.push(("10 MB at 1 % loss".to_owned(), noisy, noisy_arguments()));
        for (name, ours, arguments) in races {
            let theirs = ns3.as_ref().ok().and_then(|ns3| match ns3.run(&arguments) {
                Ok(runs) => {
                    let segments: u64 = runs.iter().map(|run| run.data_segments).sum();
                    Some(segments as f64 / runs.iter().map(|run| run.cpu_s).sum::<f64>())
                }
                Err(error) => {
                    eprintln!("bench: ns-3, {name}: {error}");
                    None
                }
            });
            self.add(format!("ns-3, {name}"), theirs.map(|rate| rate / 1e3), "k segments/s", Target::None);
            let times = theirs.map(|theirs| ours / theirs);
            self.add(format!("farpath to ns-3, {name}"), times, "times", Target::AtLeast(90.0));
        }
    }
}

/// Runs one row of the gate, for callgrind, and prints its segments.
fn row(name: &str, times: &str) -> Result<(), Box<dyn Error>> {
    println!("{}", farpath_bench::gate::run_row(name, times.parse()?)?);
    Ok(())
}

/// Exit code 1 where a row needs too many instructions, 2 where nothing could be measured.
fn gate(baseline: &Path, write: Option<String>) -> ExitCode {
    let mut bench = Bench::default();
    println!("Instructions a segment, by callgrind; the baseline is {}", baseline.display());
    match farpath_bench::gate::gate(baseline, write, |figure| bench.told(figure)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => {
            eprintln!("bench: a segment takes over 12 % more instructions than in the baseline");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(setup: &Setup) -> u64 {
    data_segments(&simulate(setup, &mut Silent).expect("the path is well formed"))
}

/// Segments per CPU second, of the quickest of `times` repetitions.
fn rate(setup: &Setup, times: u32) -> f64 {
    let rates = (0..times).map(|_| {
        let (segments, seconds) = timed(|| run(setup));
        segments as f64 / seconds
    });
    rates.fold(0.0, f64::max)
}

/// Simulates an experiment of one point and writes what it gives; CPU seconds. The folder is a new one: to remove what
/// another run has left is no part of it.
fn write_run(experiment: &Experiment, folder: &Path) -> Result<f64, Box<dyn Error>> {
    if folder.exists() {
        std::fs::remove_dir_all(folder)?;
    }
    let (written, seconds) = timed(|| -> Result<(), Box<dyn Error>> {
        let run = farpath_engine::simulate(&experiment.point(0), 1, Provenance::default())?;
        let mut results = ResultsDir::create(folder)?;
        results.append(&run)?;
        Ok(results.finish(true)?)
    });
    written.map(|()| seconds)
}

fn scratch_folder() -> PathBuf {
    std::env::temp_dir().join(format!("farpath-bench-{}", std::process::id()))
}

/// Prints the most memory that this process has held after a transfer of so many bytes.
fn memory_of(size: &str) -> Result<(), Box<dyn Error>> {
    run(&Long { size: size.parse()?, ..ONE }.setup(&today()));
    println!("{}", peak_memory().ok_or("the kernel does not tell the peak of memory")?);
    Ok(())
}
