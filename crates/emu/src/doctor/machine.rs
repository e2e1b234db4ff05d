//! What the machine is.

use super::{Finding, State};
use crate::host::{Host, HostSettings};
use crate::namespace::{Namespace, has_ipv6};
use crate::sys::sched::RealTime;
use nix::sys::prctl;
use nix::time::{ClockId, clock_getres};
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

/// Since which a TUN device keeps TCP's super-packets as we need them, and every setting we use is a namespace's own.
const OLDEST: (u32, u32) = (4, 19);

pub(super) fn kernel() -> Finding {
    let name = "kernel";
    let release = read("/proc/sys/kernel/osrelease");
    let mut numbers = release.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    let found = format!("Linux {release}");
    if version >= OLDEST {
        Finding::new(name, State::Ok, found, "its TCP is what is emulated with; a run names it")
    } else {
        Finding::new(name, State::Limited, found, "older than any that emulation was tried with")
            .remedy(format!("use {}.{} or later", OLDEST.0, OLDEST.1))
    }
}

/// Wakes up at set times, and looks at how late.
pub(super) fn timers() -> Finding {
    let name = "timers";
    let tick = clock_getres(ClockId::CLOCK_MONOTONIC_COARSE).map(Duration::from).unwrap_or_default();
    let fine = clock_getres(ClockId::CLOCK_MONOTONIC).map(Duration::from).unwrap_or_default();
    let mut late = thread::spawn(wake_ups).join().unwrap_or_default();
    late.sort_unstable();
    let at = |share: f64| late.get((late.len() as f64 * share) as usize).copied().unwrap_or_default();
    let hz = (1.0 / tick.as_secs_f64()).round();
    let found = format!(
        "wake-ups {} us late (median), {} us (99 %); HZ {hz}",
        at(0.5).as_micros(),
        at(0.99).as_micros(),
    );
    if fine > Duration::from_micros(1) {
        let meaning = format!("no high-resolution timers: packets leave on ticks of {} ms", tick.as_millis());
        return Finding::new(name, State::Limited, found, meaning).remedy("boot without highres=off");
    }
    let meaning = format!("the kernel's own timeouts are in ticks of {} ms", tick.as_millis());
    if at(0.5) < Duration::from_micros(500) {
        Finding::new(name, State::Ok, found, meaning)
    } else {
        Finding::new(name, State::Limited, found, format!("packets would be as late; {meaning}"))
            .remedy("stop what else runs; get real time")
    }
}

#[expect(clippy::disallowed_methods, reason = "how late real time is")]
fn wake_ups() -> Vec<Duration> {
    const NAP: Duration = Duration::from_micros(500);
    let _ = prctl::set_timerslack(1);
    let _realtime = RealTime::enter();
    let nap = |_| {
        let due = Instant::now() + NAP;
        thread::sleep(NAP);
        due.elapsed()
    };
    (0..200).map(nap).collect()
}

pub(super) fn congestion_controls() -> Finding {
    let name = "congestion controls";
    let everybodys = read("/proc/sys/net/ipv4/tcp_allowed_congestion_control");
    // As a namespace sees them, which is what a run has.
    let Some(available) =
        Namespace::new().ok().and_then(|it| it.sysctl("net.ipv4.tcp_available_congestion_control"))
    else {
        let meaning = "which of them a host could have is not known without a namespace";
        let found = format!("not tried; allowed to everybody: {everybodys}");
        return Finding::new(name, State::Missing, found, meaning).remedy("get network namespaces first");
    };
    // Only what is there: asking for another could make the kernel load it.
    let (mut work, mut refused) = (Vec::new(), Vec::new());
    for control in available.split_whitespace() {
        let settings = HostSettings { congestion_control: Some(control.to_string()), ..HostSettings::near() };
        if Host::new(&settings).is_ok() { work.push(control) } else { refused.push(control) }
    }
    let found = format!("a host had each of {}; allowed to everybody: {everybodys}", work.join(", "));
    let lacking: Vec<_> =
        ["reno", "cubic", "bbr"].into_iter().filter(|control| !work.contains(control)).collect();
    if lacking.is_empty() {
        return Finding::new(name, State::Ok, found, "stacks with these can be emulated");
    }
    let meaning = format!("stacks with {} cannot be emulated", lacking.join(" or "));
    let load: Vec<_> = lacking.iter().map(|control| format!("`modprobe tcp_{control}`")).collect();
    Finding::new(name, State::Limited, found, meaning).remedy(format!("as root, {}", load.join(" and ")))
}

pub(super) fn ipv6() -> Finding {
    if has_ipv6() {
        Finding::new("IPv6", State::Ok, "there", "hosts have an address of each version")
    } else {
        Finding::new("IPv6", State::Limited, "not there", "hosts have IPv4 only")
            .remedy("boot without ipv6.disable=1")
    }
}

pub(super) fn cores() -> Finding {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let found = format!("{cores} for this process");
    if cores > 1 {
        Finding::new("cores", State::Ok, found, "the path and the hosts' TCP do not wait for each other")
    } else {
        let meaning = "the path takes turns with both hosts' TCP: keep to some 100 Mbit/s";
        Finding::new("cores", State::Limited, found, meaning).remedy("give it two")
    }
}

/// Time that the host of a virtual machine did not give it.
pub(super) struct Steal {
    began: Option<(u64, u64)>,
}

impl Steal {
    pub(super) fn begin() -> Steal {
        Steal { began: ticks() }
    }

    pub(super) fn end(self) -> Finding {
        let name = "CPU steal";
        let (Some((stolen, all)), Some((stolen_before, all_before))) = (ticks(), self.began) else {
            return Finding::new(name, State::Limited, "/proc/stat does not say", "not known");
        };
        let percent = |stolen: u64, all: u64| 100.0 * stolen as f64 / all.max(1) as f64;
        let (now, since_boot) = (
            percent(stolen.saturating_sub(stolen_before), all.saturating_sub(all_before)),
            percent(stolen, all),
        );
        let found = format!("{now:.1} % now, {since_boot:.1} % since boot");
        if now <= 2.0 && since_boot <= 2.0 {
            Finding::new(name, State::Ok, found, "the machine has its cores to itself")
        } else {
            Finding::new(
                name,
                State::Limited,
                found,
                "another machine on the same hardware makes packets late; a run says how late",
            )
            .remedy("repeat runs, or use a machine of one's own")
        }
    }
}

/// Stolen, and all, in ticks since boot (proc_stat(5)): user nice system idle iowait irq softirq steal.
fn ticks() -> Option<(u64, u64)> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    let all: Vec<u64> =
        stat.lines().next()?.split_whitespace().skip(1).take(8).flat_map(str::parse).collect();
    Some((*all.get(7)?, all.iter().sum()))
}

pub(super) fn memory() -> Finding {
    let name = "memory";
    let info = read("/proc/meminfo");
    let line = info.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let Some(kib) = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()) else {
        return Finding::new(name, State::Limited, "/proc/meminfo does not say", "not known");
    };
    let found = format!("{:.1} GB available", kib as f64 * 1024.0 / 1e9);
    // What is under way lies in memory: 1 Gbit/s over 10 s is 1.25 GB, and what is kept around it.
    let meaning = "packets under way lie in it: rate times delay, and as much again";
    if kib >= 1 << 20 {
        Finding::new(name, State::Ok, found, meaning)
    } else {
        Finding::new(name, State::Limited, found, meaning).remedy("keep to lower rates or shorter delays")
    }
}

pub(super) fn socket_buffers() -> Finding {
    /// A window of 4 MB fills 50 Mbit/s over 640 ms.
    const ENOUGH: u64 = 4_000_000;
    let limit = |which: &str| read(&format!("/proc/sys/net/core/{which}_max")).parse::<u64>().unwrap_or(0);
    let (receive, send) = (limit("rmem"), limit("wmem"));
    let found = format!("net.core.rmem_max {receive}, net.core.wmem_max {send}");
    let finding = |state| {
        Finding::new(
            "socket buffers",
            state,
            found.clone(),
            "the most that a program's SO_RCVBUF and SO_SNDBUF get, and a packet socket without root; not a limit of TCP's own growth",
        )
    };
    if receive.min(send) >= ENOUGH {
        finding(State::Ok)
    } else {
        finding(State::Limited)
            .remedy("as root, `sysctl -w net.core.rmem_max=67108864 net.core.wmem_max=67108864`; farpath leaves it as it is")
    }
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default().trim().to_string()
}
