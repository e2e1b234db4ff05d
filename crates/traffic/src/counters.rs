//! What the kernel counts for a whole namespace, and how much of the machine others took.

use farpath_units::Duration;
use std::collections::BTreeMap;
use std::{fs, io};

/// `/proc/net/snmp` and `/proc/net/netstat` of the calling thread's network namespace. Names are group and counter in
/// one, as `nstat` writes them: `TcpRetransSegs`, `TcpExtTCPTimeouts`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Counters {
    values: BTreeMap<String, i64>,
}

impl Counters {
    /// Reads them now.
    pub fn read() -> io::Result<Counters> {
        let mut counters = Counters::default();
        // `/proc/net` is of the process's first thread; this is the calling one's.
        for file in ["/proc/thread-self/net/snmp", "/proc/thread-self/net/netstat"] {
            counters.add(&fs::read_to_string(file)?);
        }
        Ok(counters)
    }

    /// From the text of such files: a line of names, then one of values, each after its group and a colon. What is not
    /// so is left out.
    pub fn parse(text: &str) -> Counters {
        let mut counters = Counters::default();
        counters.add(text);
        counters
    }

    fn add(&mut self, text: &str) {
        let mut lines = text.lines();
        while let (Some(names), Some(values)) = (lines.next(), lines.next()) {
            let (Some((group, names)), Some((same, values))) =
                (names.split_once(':'), values.split_once(':'))
            else {
                continue;
            };
            if group != same {
                continue;
            }
            for (name, value) in names.split_whitespace().zip(values.split_whitespace()) {
                if let Ok(value) = value.parse() {
                    self.values.insert(format!("{group}{name}"), value);
                }
            }
        }
    }

    /// One of them; `None` where this kernel does not count it.
    pub fn get(&self, name: &str) -> Option<i64> {
        self.values.get(name).copied()
    }

    /// All, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, i64)> {
        self.values.iter().map(|(name, value)| (name.as_str(), *value))
    }

    /// What has been counted since an `earlier` reading: what is in both, less what it was.
    pub fn since(&self, earlier: &Counters) -> Counters {
        let values = self.values.iter().filter_map(|(name, value)| {
            let before = earlier.values.get(name)?;
            Some((name.clone(), value.wrapping_sub(*before)))
        });
        Counters { values: values.collect() }
    }
}

/// Where the machine's processor time went since it started, all processors together (`/proc/stat`), in ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ProcessorTimes {
    /// All time, idle included.
    pub total: u64,
    /// Time with nothing to do.
    pub idle: u64,
    /// Time that a hypervisor gave to others while there was something to do here.
    pub steal: u64,
}

impl ProcessorTimes {
    /// Reads them now.
    pub fn read() -> io::Result<ProcessorTimes> {
        let text = fs::read_to_string("/proc/stat")?;
        ProcessorTimes::parse(&text).ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidData, "/proc/stat has no line of all processors")
        })
    }

    /// From the text of `/proc/stat`.
    pub fn parse(text: &str) -> Option<ProcessorTimes> {
        let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let ticks: Vec<u64> = line.split_whitespace().map_while(|ticks| ticks.parse().ok()).collect();
        // user nice system idle iowait irq softirq steal; guest time, after these, is in user and nice already.
        let counted = ticks.get(..8)?;
        let total = counted.iter().fold(0, |sum: u64, ticks| sum.saturating_add(*ticks));
        Some(ProcessorTimes { total, idle: counted[3].saturating_add(counted[4]), steal: counted[7] })
    }

    /// Share of the time since an `earlier` reading that was stolen; `None` where no tick has passed.
    pub fn steal_share_since(&self, earlier: &ProcessorTimes) -> Option<f64> {
        let passed = self.total.saturating_sub(earlier.total);
        let stolen = self.steal.saturating_sub(earlier.steal);
        (passed > 0).then(|| stolen as f64 / passed as f64)
    }
}

/// How long a thread has run, and how long it has waited to: it was ready, and other threads had the processors
/// (`/proc/thread-self/schedstat`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ThreadTimes {
    /// On a processor.
    pub ran: Duration,
    /// Ready, and on none.
    pub waited: Duration,
}

impl ThreadTimes {
    /// Of the calling thread, since it began.
    pub fn read() -> io::Result<ThreadTimes> {
        let text = fs::read_to_string("/proc/thread-self/schedstat")?;
        ThreadTimes::parse(&text).ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidData, "/proc/thread-self/schedstat has no times")
        })
    }

    /// From the text of that file.
    pub fn parse(text: &str) -> Option<ThreadTimes> {
        let mut ns = text.split_whitespace().map(|ns| ns.parse().ok().map(Duration::from_nanos));
        Some(ThreadTimes { ran: ns.next()??, waited: ns.next()?? })
    }

    /// What has passed since an `earlier` reading.
    pub fn since(&self, earlier: &ThreadTimes) -> ThreadTimes {
        ThreadTimes {
            ran: self.ran.saturating_sub(earlier.ran),
            waited: self.waited.saturating_sub(earlier.waited),
        }
    }

    /// The share of the time that has `elapsed` since an earlier reading in which the calling thread waited; `None` where the
    /// kernel does not say.
    pub fn waited_share(earlier: Option<&ThreadTimes>, elapsed: Duration) -> Option<f64> {
        let waited = ThreadTimes::read().ok()?.since(earlier?).waited;
        (!elapsed.is_zero()).then(|| (waited.as_secs_f64() / elapsed.as_secs_f64()).min(1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BEFORE: &str = "Tcp: RtoAlgorithm MaxConn RetransSegs\nTcp: 1 -1 10\n\
                          TcpExt: TCPTimeouts TCPFastRetrans\nTcpExt: 3 4\n";
    const AFTER: &str = "Tcp: RtoAlgorithm MaxConn RetransSegs\nTcp: 1 -1 15\n\
                         TcpExt: TCPTimeouts TCPFastRetrans\nTcpExt: 3 6\n";

    #[test]
    fn counters_are_named_as_nstat_names_them_and_subtracted() {
        let (before, after) = (Counters::parse(BEFORE), Counters::parse(AFTER));
        assert_eq!(before.get("TcpMaxConn"), Some(-1));
        let counted = after.since(&before);
        assert_eq!(counted.get("TcpRetransSegs"), Some(5));
        assert_eq!(counted.get("TcpExtTCPTimeouts"), Some(0));
        assert_eq!(counted.get("TcpExtTCPFastRetrans"), Some(2));
        assert_eq!(counted.get("TcpExtTCPNever"), None);
        assert_eq!(counted.iter().count(), 5);
    }

    #[test]
    fn this_kernel_counts_what_a_transfer_is_judged_by() {
        let counters = Counters::read().expect("/proc is there");
        for name in [
            "TcpRetransSegs",
            "TcpExtTCPTimeouts",
            "TcpExtTCPFastRetrans",
            "TcpExtTCPSackRecovery",
            "TcpExtTCPRenoRecovery",
            "TcpExtTCPLossProbes",
            "TcpExtTCPSpuriousRTOs",
            "TcpExtTCPDSACKRecv",
        ] {
            assert!(counters.get(name).is_some(), "{name}");
        }
    }

    #[test]
    fn stolen_time_is_a_share_of_all() {
        let earlier = ProcessorTimes::parse("cpu  10 0 10 70 0 0 0 10 0 0\ncpu0 1 2 3\n").expect("whole");
        assert_eq!(earlier, ProcessorTimes { total: 100, idle: 70, steal: 10 });
        let later = ProcessorTimes::parse("cpu  20 0 20 130 0 0 0 30 0 0\n").expect("whole");
        assert_eq!(later.steal_share_since(&earlier), Some(0.2));
        assert_eq!(later.steal_share_since(&later), None);
        assert_eq!(ProcessorTimes::parse("cpu  20 0 20\n"), None);
        ProcessorTimes::read().expect("this machine's");
    }

    #[test]
    fn a_thread_s_times_are_its_own() {
        let earlier = ThreadTimes::parse("1000 20 3\n").expect("whole");
        assert_eq!(
            earlier,
            ThreadTimes { ran: Duration::from_nanos(1000), waited: Duration::from_nanos(20) }
        );
        let later = ThreadTimes::parse("1500 25 4\n").expect("whole");
        let passed = later.since(&earlier);
        assert_eq!((passed.ran.as_nanos(), passed.waited.as_nanos()), (500, 5));
        assert_eq!(ThreadTimes::parse("1000\n"), None);
        // What a thread that has just begun has run is accounted for when it gives way.
        std::thread::yield_now();
        match ThreadTimes::read() {
            Ok(times) => assert!(!times.ran.is_zero()),
            Err(error) => {
                let why = format!("this kernel does not say how long threads wait: {error}");
                farpath_testing::skip(farpath_testing::Need::Kernel, why);
            }
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "(?s).{0,200}", lines in "(Tcp:( [a-z0-9-]{0,20}){0,4}\n){0,6}") {
            let counters = Counters::parse(&(text.clone() + &lines));
            let none = counters.since(&counters);
            prop_assert!(none.iter().all(|(_, value)| value == 0));
            ProcessorTimes::parse(&text);
            ThreadTimes::parse(&text);
        }
    }
}
