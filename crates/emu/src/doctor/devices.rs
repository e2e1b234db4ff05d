//! Devices of ours that are there now, and whose they are.
//!
//! There should be none but those of runs that go on: a device goes with the last descriptor of its TUN file or packet
//! socket, and these are closed in every program that a process starts. What can keep one is a program that was handed
//! such a descriptor on purpose, and outlives who handed it.

use super::{Maker, Sighting, Sightings};
use crate::device::PREFIX;
use crate::host_error::HostError;
use crate::maker::Process;
use crate::netlink::Netlink;
use nix::sched::{CloneFlags, setns};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::thread;

/// A network namespace, a way into it, and who holds it.
type Held = BTreeMap<String, (PathBuf, Vec<(u32, String)>)>;

/// Looks into every network namespace that any process holds, but the one that we are in.
pub fn devices() -> Sightings {
    let mut seen = Sightings::default();
    for (namespace, (way, holders)) in namespaces() {
        match inside(&way, look) {
            Ok(devices) => seen.devices.extend(devices.into_iter().map(|(device, maker)| Sighting {
                device,
                namespace: namespace.clone(),
                maker,
                holders: holders.clone(),
            })),
            // It is gone since.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(_) => seen.closed += 1,
        }
    }
    seen
}

/// Removes the devices whose maker is dead, and gives them. Others are never touched.
pub fn clean() -> Result<Vec<Sighting>, HostError> {
    let held = namespaces();
    let mut removed = Vec::new();
    for device in devices().devices {
        let Maker::Dead(_) = device.maker else { continue };
        let Some((way, _)) = held.get(&device.namespace) else { continue };
        // Looked at once more, from inside: between a look and a deed a number can get another meaning.
        let remove =
            || match look()?.iter().any(|(name, maker)| *name == device.device && *maker == device.maker) {
                true => Netlink::open()?.remove(&device.device),
                false => Ok(()),
            };
        inside(way, remove).map_err(|error| {
            let what = format!("remove {} in {}", device.device, device.namespace);
            HostError::kernel(what, "run as root", error)
        })?;
        removed.push(device);
    }
    Ok(removed)
}

/// Devices of ours in the calling thread's namespace.
fn look() -> io::Result<Vec<(String, Maker)>> {
    let list = fs::read_to_string("/proc/thread-self/net/dev")?;
    let names = list.lines().filter_map(|line| line.split_once(':')).map(|(name, _)| name.trim());
    let mut netlink = Netlink::open()?;
    names
        .filter(|name| name.starts_with(PREFIX))
        .map(|name| {
            let maker = netlink.link(name)?.alias.and_then(|alias| alias.parse::<Process>().ok());
            let maker = match maker.as_ref().map(|process| (process.id, process.lives())) {
                Some((id, Some(true))) => Maker::Lives(id),
                Some((id, Some(false))) => Maker::Dead(id),
                Some((_, None)) | None => Maker::Unknown,
            };
            Ok((name.to_string(), maker))
        })
        .collect()
}

/// Runs `work` on a thread inside the namespace that a link of /proc leads to.
fn inside<T: Send>(way: &Path, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    let namespace = File::open(way)?;
    thread::scope(|scope| {
        let worker = scope.spawn(move || {
            setns(namespace, CloneFlags::CLONE_NEWNET)?;
            work()
        });
        worker.join().unwrap_or_else(|panicked| std::panic::resume_unwind(panicked))
    })
}

/// Every network namespace that a thread is in or a process has open, less our own.
fn namespaces() -> Held {
    let mut held = Held::new();
    for process in entries(Path::new("/proc")) {
        let Some(id) = process.file_name().and_then(|name| name.to_str()?.parse::<u32>().ok()) else {
            continue;
        };
        let tasks = entries(&process.join("task")).into_iter().map(|task| task.join("ns/net"));
        for way in tasks.chain(entries(&process.join("fd"))) {
            let Ok(target) = fs::read_link(&way) else { continue };
            let target = target.display().to_string();
            if !target.starts_with("net:[") {
                continue;
            }
            let (_, holders) = held.entry(target).or_insert_with(|| (way, Vec::new()));
            if holders.last().is_none_or(|(last, _)| *last != id) {
                let name = fs::read_to_string(process.join("comm")).unwrap_or_default();
                holders.push((id, name.trim().to_string()));
            }
        }
    }
    if let Ok(own) = fs::read_link("/proc/thread-self/ns/net") {
        held.remove(&own.display().to_string());
    }
    held
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}
