//! The driver in the hands of the system: it outlives the command that attached it.

use crate::abi::{self, Counter, Flow};
use crate::driver::{Maps, link_to_group, signal};
use crate::{CONTROL, Device, Driver, DriverError, Settings, bpffs, sys};
use farpath_units::Rate;
use libbpf_rs::MapHandle;
use nix::mount::umount;
use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

/// Where BPF objects have names.
const BPFFS: &str = "/sys/fs/bpf";
/// The congestion control's registration.
const REGISTERED: &str = "control";
/// The program that opts control groups in.
const OPT_IN: &str = "opt-in";
/// There because the file system was mounted for this, by Farpath before it told that to the mount table.
const MOUNTED: &str = "mounted";
/// How the names of links begin.
const DEVICE: &str = "device-";
const GROUP: &str = "group-";

/// The driver as it is pinned in a BPF file system.
#[derive(Debug, Clone)]
pub struct Pinned {
    bpffs: PathBuf,
    folder: PathBuf,
}

impl Default for Pinned {
    fn default() -> Pinned {
        Pinned::under(Path::new(BPFFS))
    }
}

/// What [`Pinned::attach`] did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attached {
    /// Each device, and the most that is asked for on it.
    pub devices: Vec<(String, Rate)>,
    /// Control groups whose programs ask without knowing.
    pub groups: Vec<PathBuf>,
    /// Where a BPF file system had to be mounted.
    pub mounted: Option<PathBuf>,
}

/// What [`Pinned::detach`] did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Detached {
    /// Devices from which it was taken off.
    pub devices: usize,
    /// Sockets that had a grant, and go on with plain TCP.
    pub flows: usize,
    /// It was no whole driver, but what an `attach` that was killed had left.
    pub interrupted: bool,
}

/// How the driver is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// Devices of this namespace by name, those of others by number.
    pub devices: Vec<String>,
    /// How many control groups are opted in.
    pub groups: usize,
    /// The sockets that have asked, in the order of their addresses.
    pub flows: Vec<Flow>,
    /// Everything that was counted.
    pub counters: Vec<(Counter, u64)>,
}

impl Pinned {
    /// In this BPF file system; where there is none, it is mounted.
    pub fn under(bpffs: &Path) -> Pinned {
        Pinned { bpffs: bpffs.to_owned(), folder: bpffs.join("farpath") }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Attaches it to devices of this namespace, each with the most that is asked for on it, and to control groups. All of it or
    /// nothing. Where it is attached elsewhere already, the settings are those that it has, and `given` is an error.
    ///
    /// # Errors
    /// What the machine or the user lacks, a device that has it already, settings for a driver that has some, and what the
    /// kernel refuses.
    pub fn attach(
        &self,
        devices: &[(Device, Rate)],
        groups: &[PathBuf],
        settings: &Settings,
        given: bool,
    ) -> Result<Attached, DriverError> {
        let missing = crate::missing();
        if !missing.is_empty() {
            return Err(DriverError::Missing(missing));
        }
        let mounted = bpffs::ensure(&self.bpffs)?;
        let fresh = !self.file(REGISTERED).exists();
        if !fresh && given {
            return Err(DriverError::Settled);
        }
        if let Some((device, _)) =
            devices.iter().find(|(device, _)| self.file(&link_names(device)[0]).exists())
        {
            return Err(DriverError::Attached { device: device.name.clone() });
        }
        let done = (|| {
            if fresh {
                self.register(settings)?;
            }
            self.link(devices, groups)
        })();
        if let Err(error) = done {
            for (device, _) in devices {
                for name in link_names(device) {
                    let _ = fs::remove_file(self.file(&name));
                }
            }
            if fresh {
                let _ = self.detach();
            }
            if mounted {
                let _ = umount(&self.bpffs);
            }
            return Err(error);
        }
        Ok(Attached {
            devices: devices.iter().map(|(device, wanted)| (device.name.clone(), *wanted)).collect(),
            groups: groups.to_vec(),
            mounted: mounted.then(|| self.bpffs.clone()),
        })
    }

    fn register(&self, settings: &Settings) -> Result<(), DriverError> {
        let mut driver = Driver::load(settings)?;
        let pin = |fd, name: &str| {
            sys::pin(fd, &self.file(name))
                .map_err(DriverError::kernel(format!("pin {}", self.file(name).display())))
        };
        // Left over from a removal that was interrupted.
        let _ = fs::remove_dir_all(&self.folder);
        fs::create_dir_all(&self.folder)
            .map_err(DriverError::kernel(format!("make {}", self.folder.display())))?;
        for (name, map) in driver.maps.each() {
            pin(map.as_fd(), name)?;
        }
        pin(driver.opt_in_program()?.as_fd(), OPT_IN)?;
        driver
            .registered
            .pin(self.file(REGISTERED))
            .map_err(DriverError::bpf("pin the congestion control"))?;
        driver.kept = true;
        Ok(())
    }

    fn link(&self, devices: &[(Device, Rate)], groups: &[PathBuf]) -> Result<(), DriverError> {
        let maps = self.maps()?;
        let control = abi::name(CONTROL).expect("it is short");
        for (device, wanted) in devices {
            let links = signal(&maps, device, *wanted, control)?;
            for (name, link) in link_names(device).iter().zip(&links) {
                sys::pin(link.as_fd(), &self.file(name))
                    .map_err(DriverError::kernel(format!("pin {}", self.file(name).display())))?;
            }
        }
        for group in groups {
            let program = libbpf_rs::Program::fd_from_pinned_path(self.file(OPT_IN))
                .map_err(DriverError::bpf("find the program that opts in"))?;
            let link = link_to_group(program.as_fd(), group)?;
            let number = (0..).find(|number| !self.file(&format!("{GROUP}{number}")).exists()).unwrap_or(0);
            let name = self.file(&format!("{GROUP}{number}"));
            sys::pin(link.as_fd(), &name).map_err(DriverError::kernel(format!("pin {}", name.display())))?;
        }
        Ok(())
    }

    fn maps(&self) -> Result<Maps, DriverError> {
        let open = |name: &str| {
            let path = self.file(name);
            MapHandle::from_pinned_path(&path).map_err(DriverError::bpf(format!("open {}", path.display())))
        };
        Ok(Maps {
            talks: open("talks")?,
            flows: open("flows")?,
            past: open("past")?,
            config: open("config")?,
            counters: open("counters")?,
        })
    }

    /// The names under which things are pinned.
    fn names(&self) -> Result<Vec<String>, DriverError> {
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(match () {
                    () if bpffs::is_ours(&self.bpffs) => {
                        DriverError::Interrupted { left: self.bpffs.clone() }
                    }
                    () if bpffs::is_transient() => DriverError::Transient,
                    () => DriverError::NotAttached,
                });
            }
            Err(error) => {
                return Err(DriverError::kernel(format!("look into {}", self.folder.display()))(error));
            }
        };
        Ok(entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect())
    }

    /// How it is.
    ///
    /// # Errors
    /// Where it is not attached, or may not be looked at.
    pub fn status(&self) -> Result<Status, DriverError> {
        let names = self.names()?;
        if !names.iter().any(|name| name == REGISTERED) {
            return Err(DriverError::Interrupted { left: self.folder.clone() });
        }
        let maps = self.maps()?;
        let here = sys::netns_cookie().map_err(DriverError::kernel("ask which network namespace this is"))?;
        let mut devices = Vec::new();
        for name in names.iter().filter(|name| is_entry(name)) {
            let index =
                sys::linked_device(&self.file(name)).map_err(DriverError::kernel("look at a link"))?;
            // Zero where the device is gone.
            let Some(index) = index.filter(|&index| index != 0) else { continue };
            let known = name.starts_with(&format!("{DEVICE}{here}-"));
            let known = known.then(|| nix::net::if_::if_indextoname(index).ok()).flatten();
            let mut device = known.map_or_else(
                || format!("device {index} of another namespace"),
                |name| name.to_string_lossy().into_owned(),
            );
            if !names.contains(&exit_of(name)) {
                device += " (one way only: an `attach` was killed)";
            }
            devices.push(device);
        }
        devices.sort();
        Ok(Status {
            devices,
            groups: names.iter().filter(|name| name.starts_with(GROUP)).count(),
            flows: maps.read_flows()?,
            counters: maps.read_counters()?,
        })
    }

    /// Takes it off all devices and control groups. Sockets that have a grant go on with plain TCP at their next ACK.
    ///
    /// # Errors
    /// Where it is not attached, or may not be removed.
    pub fn detach(&self) -> Result<Detached, DriverError> {
        let names = match self.names() {
            Ok(names) => names,
            // Nothing was pinned yet.
            Err(DriverError::Interrupted { .. }) => {
                self.unmount(true)?;
                return Ok(Detached { devices: 0, flows: 0, interrupted: true });
            }
            Err(error) => return Err(error),
        };
        let mut flows = 0;
        if let Ok(maps) = self.maps() {
            flows = maps
                .read_flows()
                .map_or(0, |flows| flows.iter().filter(|flow| flow.rate().is_some()).count());
            maps.set_enabled(false)?;
        }
        // What leaves first: no new request, and answers to the old ones are still understood.
        let order = |name: &String| match name {
            name if name.starts_with(GROUP) => 0,
            name if name.starts_with(DEVICE) => {
                if is_entry(name) {
                    2
                } else {
                    1
                }
            }
            _ => 3,
        };
        let mut sorted = names;
        sorted.sort_by_key(order);
        for name in &sorted {
            let path = self.file(name);
            fs::remove_file(&path).map_err(DriverError::kernel(format!("remove {}", path.display())))?;
        }
        fs::remove_dir(&self.folder)
            .map_err(DriverError::kernel(format!("remove {}", self.folder.display())))?;
        self.unmount(sorted.iter().any(|name| name == MOUNTED) || bpffs::is_ours(&self.bpffs))?;
        let devices = sorted.iter().filter(|name| is_entry(name)).count();
        let whole = devices > 0 && sorted.iter().any(|name| name == REGISTERED);
        Ok(Detached { devices, flows, interrupted: !whole })
    }

    /// Unmounts the file system that is `ours`, where nobody else has put anything in.
    fn unmount(&self, ours: bool) -> Result<(), DriverError> {
        // Names with a dot are the kernel's own (maps.debug).
        let empty = fs::read_dir(&self.bpffs)
            .is_ok_and(|left| left.flatten().all(|entry| entry.file_name().to_string_lossy().contains('.')));
        if ours && empty {
            umount(&self.bpffs).map_err(DriverError::kernel(format!("unmount {}", self.bpffs.display())))?;
        }
        Ok(())
    }
}

/// The link of a device out of the host, by that into it.
fn exit_of(entry: &str) -> String {
    entry.strip_suffix("in").map(|name| format!("{name}out")).unwrap_or_default()
}

/// Whether it is the link of a device into the host: each device has one.
fn is_entry(name: &str) -> bool {
    name.starts_with(DEVICE) && name.ends_with("-in")
}

/// The links of a device: into the host, and out of it. A number alone is one of its namespace.
fn link_names(device: &Device) -> [String; 2] {
    ["in", "out"].map(|way| format!("{DEVICE}{}-{}-{way}", device.netns, device.index))
}
