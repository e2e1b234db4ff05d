//! Who made a device: written on it, for those who find it.

use std::fs;
use std::io;
use std::str::FromStr;

/// A process, told apart from a later one of the same number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) id: u32,
    /// Ticks since boot at which it began.
    began: u64,
    /// In which it has that number.
    namespace: String,
}

const MARK: &str = "farpath";

impl Process {
    /// This one.
    pub(crate) fn current() -> io::Result<Process> {
        let id = std::process::id();
        let began =
            began(id).ok_or_else(|| io::Error::other("/proc does not say when this process began"))?;
        Ok(Process { id, began, namespace: pid_namespace()? })
    }

    /// Whether it lives; `None` where it has its number from another namespace than we look from.
    pub(crate) fn lives(&self) -> Option<bool> {
        (pid_namespace().ok()? == self.namespace).then(|| began(self.id) == Some(self.began))
    }

    /// As it is written on a device.
    pub(crate) fn to_alias(&self) -> String {
        format!("{MARK} {} {} {}", self.id, self.began, self.namespace)
    }
}

impl FromStr for Process {
    type Err = ();

    fn from_str(alias: &str) -> Result<Process, ()> {
        let mut parts = alias.split(' ');
        let mut next = || parts.next().ok_or(());
        if next()? != MARK {
            return Err(());
        }
        let id = next()?.parse().map_err(drop)?;
        let began = next()?.parse().map_err(drop)?;
        Ok(Process { id, began, namespace: next()?.to_string() })
    }
}

fn pid_namespace() -> io::Result<String> {
    Ok(fs::read_link("/proc/self/ns/pid")?.display().to_string())
}

/// Field 22 of proc_pid_stat(5); `None` where there is no such process, or it is dead and only waited for.
fn began(id: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The second field is a name in parentheses, which may hold anything.
    let mut fields = stat.get(stat.rfind(')')? + 1..)?.split_whitespace();
    let state = fields.next()?;
    (!matches!(state, "Z" | "X")).then(|| fields.nth(18)?.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_known_by_what_is_written() {
        let this = Process::current().unwrap();
        assert_eq!(this.to_alias().parse(), Ok(this.clone()));
        assert_eq!(this.lives(), Some(true));
        // The same number, of a process that began at another time.
        assert_eq!(Process { began: this.began + 1, ..this.clone() }.lives(), Some(false));
        assert_eq!(Process { namespace: "pid:[1]".to_string(), ..this }.lives(), None);
        for other in ["", "eth0", "farpath", "farpath x 1 pid:[1]", "mine 1 1 pid:[1]"] {
            assert_eq!(other.parse::<Process>(), Err(()));
        }
    }
}
