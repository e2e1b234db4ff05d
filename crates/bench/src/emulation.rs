//! How fast and how exact the emulator is here, beside a plain veth pair on the same machine in the same run.
//!
//! Real time cannot be measured by CPU times: what is compared is measured minutes apart on a machine that does nothing
//! else, or is to be repeated. What is missing here (privileges, iperf3, a congestion control) is said and leaves its
//! figures without a value.

mod load;
mod measured;
mod probe;
mod rig;
mod user;

use crate::figure::{Figure, Target};
use farpath_emu::Backend;
use farpath_units::Duration;
use load::{Iperf3, Load, Moved, OwnTraffic};
use measured::{Measured, lateness, stream_lateness};
use probe::{Errors, one_way};
use rig::{Line, Rig, veth_baseline};

/// Why something was not measured.
#[derive(Debug, thiserror::Error)]
enum Unmeasured {
    #[error(transparent)]
    Host(#[from] farpath_emu::HostError),
    #[error(transparent)]
    Emulation(#[from] farpath_emu::EmuError),
    #[error(transparent)]
    Engine(#[from] farpath_emulate::EmulateError),
    #[error(transparent)]
    Experiment(#[from] farpath_experiment::ExperimentError),
    #[error(transparent)]
    Socket(#[from] farpath_traffic::PrepareError),
    #[error("{0}")]
    Io(#[from] std::io::Error),
    #[error("{0}")]
    Load(String),
}

/// Loss of the lines that have some, of the data direction's packets.
const LOSS: f64 = 1e-4;

/// Measures, and gives each figure as it is known.
pub fn measure(add: impl FnMut(Figure)) {
    // Without it nothing is measured, and each figure says why.
    if let Err(error) = farpath_emu::enter_user_namespace() {
        eprintln!("bench: {error}");
    }
    let mut bench = Bench { add, outside: 0 };
    bench.goodput();
    bench.equality();
    bench.delay();
    bench.as_a_user();
    bench.measured();
    let outside = Some(bench.outside as f64);
    bench.add("emulation: packets dropped outside the path", outside, "packets", Target::AtMost(0.0));
}

/// What `farpath measure` sends, alone.
pub fn measured(add: impl FnMut(Figure)) {
    if let Err(error) = farpath_emu::enter_user_namespace() {
        eprintln!("bench: {error}");
    }
    Bench { add, outside: 0 }.measured();
}

struct Bench<F> {
    add: F,
    /// Dropped by devices, in all of it: what the path does not know of.
    outside: u64,
}

impl<F: FnMut(Figure)> Bench<F> {
    fn add(&mut self, name: impl Into<String>, value: Option<f64>, unit: &'static str, target: Target) {
        (self.add)(Figure { name: name.into(), value, unit, target });
    }

    /// Goodput, its share of what a plain veth pair moves, and what the emulator costs.
    fn goodput(&mut self) {
        let iperf3 = |control| Iperf3 { control, seconds: 5 };
        let ceiling =
            said("plain veth", veth_baseline().and_then(|veth| iperf3("cubic").run(veth.near(), veth.far())));
        let ceiling = ceiling.map(|moved| moved.gbit_per_s());
        self.add("emulation: plain veth, the ceiling", ceiling, "Gbit/s", Target::None);

        let far = |line: Line| Line { delay: Duration::from_millis(7), ..line };
        let lossy = |line: Line| Line { loss: LOSS, ..far(line) };
        let single = |line: Line| Line { coalesce: false, ..line };
        let packet = |line: Line| Line { backend: Backend::Packet, ..line };
        let plain = Line::default();
        let reach = Target::AtLeast(3.0);
        for (name, line, control, target) in [
            ("0 ms", plain, "cubic", Target::None),
            ("0 ms, not coalesced", single(plain), "cubic", Target::None),
            ("0 ms, packet sockets", packet(plain), "cubic", Target::None),
            ("7 ms", far(plain), "cubic", Target::None),
            ("7 ms, loss 1e-4", lossy(plain), "bbr", reach),
            ("7 ms, loss 1e-4, not coalesced", single(lossy(plain)), "bbr", Target::None),
            ("7 ms, loss 1e-4, packet sockets", packet(lossy(plain)), "bbr", Target::None),
        ] {
            let name = format!("emulation: {name}, {control}");
            let done = said(
                &name,
                Rig::new(line).and_then(|rig| rig.run(|near, far| iperf3(control).run(near, far))),
            );
            self.outside += done.as_ref().map_or(0, |done| done.outside);
            let gbit_per_s = done.as_ref().map(|done| done.result.gbit_per_s());
            self.add(format!("{name}: goodput"), gbit_per_s, "Gbit/s", target);
            let share = gbit_per_s.zip(ceiling).map(|(ours, ceiling)| ours / ceiling * 100.0);
            self.add(format!("{name}: share of plain veth"), share, "%", Target::None);
            let cost =
                done.as_ref().map(|done| done.report.cpu_time.as_secs_f64() / done.result.gbit() * 1e3);
            self.add(format!("{name}: emulator's CPU time"), cost, "ms/Gbit", Target::None);
            let late = done.as_ref().map(|done| done.report.lateness.forward.percentile(99));
            self.add(format!("{name}: lateness p99"), late.map(us), "us", Target::None);
        }
    }

    /// Whether the kernel sends again what the path dropped, and nothing else.
    fn equality(&mut self) {
        let ms = Duration::from_millis;
        let plain = Line::default();
        for (name, line, control, size) in [
            ("7 ms, loss 1e-4", Line { delay: ms(7), loss: LOSS, ..plain }, "bbr", 2_000_000_000),
            ("1 ms, loss 1e-3", Line { delay: ms(1), loss: 1e-3, ..plain }, "reno", 200_000_000),
        ] {
            let name = format!("emulation: {name}, {control}, own traffic");
            let done = said(
                &name,
                Rig::new(line)
                    .and_then(|rig| rig.run(|near, far| OwnTraffic { control, size }.run(near, far))),
            );
            self.outside += done.as_ref().map_or(0, |done| done.outside);
            let goodput = done.as_ref().map(|done| done.result.gbit_per_s());
            self.add(format!("{name}: goodput"), goodput, "Gbit/s", Target::None);
            let dropped = done.as_ref().map(|done| done.report.packets.forward.dropped);
            self.add(format!("{name}: dropped"), dropped.map(|n| n as f64), "segments", Target::None);
            let more = done
                .as_ref()
                .zip(dropped)
                .map(|(done, dropped)| dropped.abs_diff(done.retransmissions) as f64);
            let name = format!("{name}: dropped, but for retransmitted");
            self.add(name, more, "segments", Target::AtMost(0.0));
        }
    }

    /// How much longer than the path says a datagram takes.
    fn delay(&mut self) {
        let nothing = said(
            "plain veth",
            veth_baseline().and_then(|veth| one_way(veth.near(), veth.far(), Duration::ZERO)),
        );
        self.errors("emulation: one-way delay of plain veth", nothing, Target::None);
        for realtime in [true, false] {
            for ms in [1, 10, 100] {
                let how = if realtime { "SCHED_FIFO" } else { "ordinary scheduling" };
                let name = format!("emulation: error of {ms} ms, {how}");
                let delay = Duration::from_millis(ms);
                let line = Line { delay, realtime, coalesce: false, ..Line::default() };
                let errors = said(
                    &name,
                    Rig::new(line).and_then(|rig| {
                        rig.run(|near, far| one_way(near, far, delay))?.scheduled_as(realtime)
                    }),
                );
                let target = if realtime { Target::AtMost(150.0) } else { Target::None };
                self.errors(&name, errors, target);
            }
        }
    }

    fn errors(&mut self, name: &str, errors: Option<Errors>, p99: Target) {
        for (what, of, target) in [
            ("mean", Errors::mean as fn(&Errors) -> f64, Target::None),
            ("sd", Errors::deviation, Target::None),
            ("p99", |errors| errors.percentile(99), p99),
            ("max", |errors| errors.percentile(100), Target::None),
        ] {
            self.add(format!("{name}: {what}"), errors.as_ref().map(of), "us", target);
        }
    }

    /// What `farpath emulate` gives, with all that it records.
    fn as_a_user(&mut self) {
        for (name, coalesce, loss, megabytes) in [
            ("7 ms, coalesced", true, 0.0, 500),
            ("7 ms", false, 0.0, 500),
            ("7 ms, loss 1e-4, coalesced", true, LOSS, 100),
        ] {
            let name = format!("farpath emulate: linux-6, 16 MB, {name}");
            let flow = said(&name, user::emulate(coalesce, loss, megabytes));
            let goodput = flow.as_ref().map(|flow| flow.gbit_per_s);
            self.add(format!("{name}: goodput"), goodput, "Gbit/s", Target::None);
            let late = flow.as_ref().map(|flow| flow.late_p99_us);
            self.add(format!("{name}: lateness p99"), late, "us", Target::None);
            self.outside += flow.map_or(0, |flow| flow.outside);
        }
    }
}

impl<F: FnMut(Figure)> Bench<F> {
    /// What `farpath measure` sends, as fast as it goes and on time.
    fn measured(&mut self) {
        for per_second in [1_000, 10_000] {
            let name = format!("farpath measure: {per_second} datagrams a second");
            self.late(&name, said(&name, lateness(per_second)));
            let name = format!("farpath measure: a stream of {per_second} messages a second");
            let stream = veth_baseline().and_then(|veth| stream_lateness(per_second, veth.far(), veth.far()));
            self.late(&name, said(&name, stream));
        }
        let iperf3 = Iperf3 { control: "cubic", seconds: 5 };
        let name = "farpath measure: loopback";
        // Both ends in one namespace: what goes to its own address goes over loopback.
        let theirs = said(name, veth_baseline().and_then(|veth| iperf3.run(veth.far(), veth.far())));
        let ours = theirs.and_then(|theirs| {
            let load = Measured { size: theirs.bytes() };
            said(name, veth_baseline().and_then(|veth| load.run(veth.far(), veth.far())))
        });
        self.beside_iperf3(name, theirs, ours);

        let name = "farpath measure: emulated, 7 ms";
        let line = Line { delay: Duration::from_millis(7), ..Line::default() };
        let theirs = said(name, Rig::new(line).and_then(|rig| rig.run(|near, far| iperf3.run(near, far))));
        let ours = theirs.as_ref().and_then(|theirs| {
            let load = Measured { size: theirs.result.bytes() };
            said(name, Rig::new(line).and_then(|rig| rig.run(|near, far| load.run(near, far))))
        });
        for done in [&theirs, &ours].into_iter().flatten() {
            self.outside += done.outside;
        }
        self.beside_iperf3(name, theirs.map(|done| done.result), ours.map(|done| done.result));
    }

    fn late(&mut self, name: &str, late: Option<Vec<Duration>>) {
        for (what, percent) in [("median", 50), ("p99", 99), ("most", 100)] {
            let value = late.as_ref().map(|late| us(late[(late.len() * percent).div_ceil(100) - 1]));
            self.add(format!("{name}: written after due, {what}"), value, "us", Target::None);
        }
    }

    /// The same bytes by both.
    fn beside_iperf3(&mut self, name: &str, theirs: Option<Moved>, ours: Option<Moved>) {
        let [theirs, ours] = [theirs, ours].map(|moved| moved.map(|moved| moved.gbit_per_s()));
        self.add(format!("{name}: iperf3"), theirs, "Gbit/s", Target::None);
        self.add(format!("{name}: goodput"), ours, "Gbit/s", Target::None);
        let share = ours.zip(theirs).map(|(ours, theirs)| ours / theirs);
        self.add(format!("{name}: goodput over iperf3's"), share, "times", Target::AtLeast(0.9));
    }
}

/// What there is, or on stderr why not.
fn said<T>(name: &str, measured: Result<T, Unmeasured>) -> Option<T> {
    measured.inspect_err(|error| eprintln!("bench: {name}: IS NOT MEASURED: {error}")).ok()
}

fn us(duration: Duration) -> f64 {
    duration.as_nanos() as f64 / 1e3
}

#[cfg(test)]
mod tests;
