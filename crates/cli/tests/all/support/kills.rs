//! SIGKILL for any of a command's processes, at any moment.

use super::processes::{eventually, pause};
use std::collections::BTreeSet;
use std::fs;
use std::process::{Command, Stdio};

/// A command that is killed, and with which chances.
pub struct Kills<'a> {
    /// What it is told; it does not end by itself.
    pub arguments: &'a [&'a str],
    /// How often.
    pub moments: u32,
    /// The longest that it runs for, in ms: from before there is anything else to when all its programs run. It is drawn out where none of them
    /// does, and brought down again.
    pub longest_ms: u64,
    /// What ends by itself, and removes what a killed process has left in the temporary directory.
    pub next: &'a [&'a str],
}

/// A process, and its group.
type Process = (u32, u32);

/// Processes with this in their environment, or of these groups. A guest's programs have no environment of the host's.
fn of_command(mark: &str, groups: &BTreeSet<u32>) -> Vec<Process> {
    let processes = fs::read_dir("/proc").expect("/proc").flatten();
    let of = processes.filter_map(|process| {
        let id = process.file_name().to_str()?.parse().ok()?;
        let stat = fs::read_to_string(process.path().join("stat")).ok()?;
        // proc_pid_stat(5): the name in brackets, the state, the parent, the group.
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
        let is_gone = fields.next()? == "Z";
        let group = fields.nth(1)?.parse().ok()?;
        let environment = fs::read(process.path().join("environ")).unwrap_or_default();
        let is_marked = environment.windows(mark.len()).any(|part| part == mark.as_bytes());
        (!is_gone && (is_marked || groups.contains(&group))).then_some((id, group))
    });
    of.collect()
}

impl Kills<'_> {
    /// No process stays, and no file once the next command has run.
    pub fn leave_nothing(&self) {
        let folder = tempfile::tempdir().expect("a folder");
        let own = BTreeSet::from([nix::unistd::getpgrp().as_raw() as u32]);
        let mut chance = u64::from(std::process::id());
        let mut draw = |below: u64| {
            // Steele, Lea, Flood 2014.
            chance = chance.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (chance ^ (chance >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            (mixed >> 33) % below
        };
        let mut longest = self.longest_ms;
        let mut alone = 0;
        for moment in 0..self.moments {
            let mark = format!("FARPATH_TEST_MARK={}-{moment}.", std::process::id());
            let (name, value) = mark.split_once('=').expect("both");
            let mut command = Command::new(env!("CARGO_BIN_EXE_farpath"))
                .args(self.arguments)
                .env(name, value)
                .env("TMPDIR", folder.path())
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .expect("it starts");
            pause(draw(longest));
            let groups = of_command(&mark, &BTreeSet::new()).into_iter().map(|(_, group)| group).collect();
            let groups = &groups - &own;
            let processes = of_command(&mark, &groups);
            // Half of the moments come too early for more than one process on a slow machine, or too late on a fast one.
            if processes.len() <= 1 {
                alone += 1;
                longest += self.longest_ms / 10;
            } else {
                longest = (longest - self.longest_ms / 10).max(self.longest_ms / 2);
            }
            // Any of them; it may be gone by now.
            let chosen = processes.get(draw(processes.len().max(1) as u64) as usize);
            kill(chosen.map_or(command.id(), |(id, _)| *id));
            // A far program may end unnoticed: then the near one goes on, and is ended.
            kill(command.id());
            command.wait().expect("it ends");
            let what = format!("moment {moment}: nothing of {:?} is left", self.arguments);
            eventually(&what, || of_command(&mark, &groups).is_empty());
        }
        assert!(alone < self.moments, "no moment had programs");
        let next = Command::new(env!("CARGO_BIN_EXE_farpath"))
            .args(self.next)
            .env("TMPDIR", folder.path())
            .output()
            .expect("it starts");
        assert!(next.status.success(), "{}", String::from_utf8_lossy(&next.stderr));
        let held = |folder: &fs::DirEntry| -> Vec<String> {
            let files = fs::read_dir(folder.path()).into_iter().flatten().flatten();
            files.map(|file| file.file_name().to_string_lossy().into_owned()).collect()
        };
        let entries = fs::read_dir(folder.path()).expect("readable").flatten();
        let left: Vec<_> = entries.map(|entry| (entry.path(), held(&entry))).collect();
        assert!(left.is_empty(), "left behind: {left:?}");
    }
}

fn kill(process: u32) {
    let _ = Command::new("kill").args(["-s", "KILL", &process.to_string()]).stderr(Stdio::null()).status();
}
