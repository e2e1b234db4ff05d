//! The programs in the kernel.

use crate::abi::{self, Counter, Flow};
use crate::buffers::Limits;
use crate::sys::{self, Hook};
use crate::{CONTROL, Device, DriverError, Settings};
use farpath_tia1039::{RateUnit, Rounding};
use farpath_units::Rate;
use libbpf_rs::{Link, MapCore, MapFlags, MapHandle, Object, ObjectBuilder, OpenObject};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;
use std::sync::{Mutex, Once, PoisonError};

const CONTROL_OBJECT: &[u8] = include_bytes!("../bpf/cc.bpf.o");
const SIGNALLING_OBJECT: &[u8] = include_bytes!("../bpf/tc.bpf.o");

/// What the programs talk through.
#[derive(Debug)]
pub(crate) struct Maps {
    pub(crate) talks: MapHandle,
    pub(crate) flows: MapHandle,
    pub(crate) past: MapHandle,
    pub(crate) config: MapHandle,
    pub(crate) counters: MapHandle,
}

impl Maps {
    /// By the names that they have in the objects.
    pub(crate) fn each(&self) -> [(&'static str, &MapHandle); 5] {
        [
            ("talks", &self.talks),
            ("flows", &self.flows),
            ("past", &self.past),
            ("config", &self.config),
            ("counters", &self.counters),
        ]
    }

    fn from_object(object: &Object) -> Result<Maps, DriverError> {
        let handle = |name: &str, size: usize| {
            let map = object.maps().find(|map| map.name() == OsStr::new(name));
            let map = map.ok_or_else(|| DriverError::Object(format!("there is no map `{name}`")))?;
            if map.value_size() as usize != size {
                let found = map.value_size();
                return Err(DriverError::Object(format!("`{name}` holds {found} bytes, expected {size}")));
            }
            MapHandle::try_from(&map).map_err(DriverError::bpf("open a map"))
        };
        Ok(Maps {
            talks: handle("talks", abi::TALK_LEN)?,
            flows: handle("flows", abi::FLOW_LEN)?,
            past: handle("past", abi::FLOW_LEN)?,
            config: handle("config", abi::CONFIG_LEN)?,
            counters: handle("counters", 8)?,
        })
    }

    /// The sockets that have asked, in the order of their addresses.
    pub(crate) fn read_flows(&self) -> Result<Vec<Flow>, DriverError> {
        Maps::read(&self.flows)
    }

    fn read(map: &MapHandle) -> Result<Vec<Flow>, DriverError> {
        let mut flows = Vec::new();
        for key in map.keys() {
            // It may be gone by now.
            let value = map.lookup(&key, MapFlags::ANY).map_err(DriverError::bpf("read what was granted"))?;
            flows.extend(value.and_then(|value| Flow::read(&key, &value)));
        }
        flows.sort_by_key(|flow| (flow.local, flow.remote));
        Ok(flows)
    }

    /// Everything that was counted.
    pub(crate) fn read_counters(&self) -> Result<Vec<(Counter, u64)>, DriverError> {
        let read = |(number, counter): (u32, Counter)| {
            let cpus = self
                .counters
                .lookup_percpu(&number.to_ne_bytes(), MapFlags::ANY)
                .map_err(DriverError::bpf("read what was counted"))?
                .unwrap_or_default();
            let sum =
                cpus.iter().filter_map(|cpu| Some(u64::from_ne_bytes(cpu.get(..8)?.try_into().ok()?))).sum();
            Ok((counter, sum))
        };
        (0..).zip(Counter::all()).map(read).collect()
    }

    /// Whether the settings are in force; without, every socket goes back to plain TCP at its next ACK.
    pub(crate) fn set_enabled(&self, enabled: bool) -> Result<(), DriverError> {
        let first = 0_u32.to_ne_bytes();
        let read =
            self.config.lookup(&first, MapFlags::ANY).map_err(DriverError::bpf("read the settings"))?;
        let mut config = read.unwrap_or_else(|| vec![0; abi::CONFIG_LEN]);
        abi::set_enabled(&mut config, enabled);
        self.config.update(&first, &config, MapFlags::ANY).map_err(DriverError::bpf("write the settings"))
    }
}

/// The driver in the hands of this process: when it is dropped, sockets go on with plain TCP, and nothing is left.
#[derive(Debug)]
pub struct Driver {
    pub(crate) maps: Maps,
    /// The congestion control, registered; dropped before its programs.
    pub(crate) registered: Link,
    /// Holds the programs.
    object: Object,
    links: Vec<OwnedFd>,
    control: [u8; abi::NAME_LEN],
    /// It is pinned, and goes on without this process.
    pub(crate) kept: bool,
}

impl Drop for Driver {
    fn drop(&mut self) {
        // Sockets that still have the congestion control would go on at their last grant, and never hear of another.
        if !self.kept {
            let _ = self.maps.set_enabled(false);
        }
    }
}

impl Driver {
    /// Loads it: sockets can ask for the congestion control [`CONTROL`], and no packet is touched yet.
    ///
    /// # Errors
    /// What the machine or the user lacks, and what the kernel refuses.
    pub fn load(settings: &Settings) -> Result<Driver, DriverError> {
        Driver::load_as(CONTROL, settings)
    }

    /// The same under another name, of at most 15 letters: a name can be registered once only on a machine.
    ///
    /// # Errors
    /// As [`Driver::load`].
    pub fn load_as(control: &str, settings: &Settings) -> Result<Driver, DriverError> {
        let missing = crate::missing();
        if !missing.is_empty() {
            return Err(DriverError::Missing(missing));
        }
        let (plain, fallback) = (known_control(&settings.plain)?, known_control(&settings.fallback)?);
        if available().split_whitespace().any(|one| one == control) {
            return Err(DriverError::NameTaken(control.to_owned()));
        }
        let control = abi::name(control)
            .ok_or_else(|| DriverError::Object(format!("`{control}` is no name of a congestion control")))?;
        let mut object = open_shipped(CONTROL_OBJECT)?;
        rename(&mut object, control)?;
        let mut object = object.load().map_err(DriverError::bpf("load the congestion control"))?;
        let maps = Maps::from_object(&object)?;
        let config = abi::config(settings, &Limits::now(), plain, fallback);
        let first = 0_u32.to_ne_bytes();
        maps.config.update(&first, &config, MapFlags::ANY).map_err(DriverError::bpf("write the settings"))?;
        let registered = object
            .maps_mut()
            .find(|map| map.name() == OsStr::new("erate"))
            .ok_or_else(|| DriverError::Object("there is no congestion control in it".to_owned()))?
            .attach_struct_ops()
            .map_err(DriverError::bpf("register the congestion control"))?;
        Ok(Driver { maps, registered, object, links: Vec::new(), control, kept: false })
    }

    /// Begins to signal on a device of the calling thread's namespace: sockets ask for `wanted` at most.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub fn attach(&mut self, device: &Device, wanted: Rate) -> Result<(), DriverError> {
        let links = signal(&self.maps, device, wanted, self.control)?;
        self.links.extend(links);
        Ok(())
    }

    /// Has the programs of a control group (version 2), and of those below it, ask without knowing: what connects from now on,
    /// and what listens from now on.
    ///
    /// # Errors
    /// Where it is none, or the kernel refuses.
    pub fn opt_in(&mut self, cgroup: &Path) -> Result<(), DriverError> {
        let link = self.link_to_group(cgroup)?;
        self.links.push(link);
        Ok(())
    }

    pub(crate) fn opt_in_program(&self) -> Result<libbpf_rs::ProgramMut<'_>, DriverError> {
        program(&self.object, "opt_in")
    }

    fn link_to_group(&self, cgroup: &Path) -> Result<OwnedFd, DriverError> {
        link_to_group(self.opt_in_program()?.as_fd(), cgroup)
    }

    /// Whether sockets may have grants. Without, those that have one go on with plain TCP at their next ACK, for good.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub fn set_enabled(&self, enabled: bool) -> Result<(), DriverError> {
        self.maps.set_enabled(enabled)
    }

    /// The sockets that have asked, in the order of their addresses.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub fn flows(&self) -> Result<Vec<Flow>, DriverError> {
        self.maps.read_flows()
    }

    /// Sockets that are gone or went on with plain TCP, as they were then, in the order of their addresses: of many the last
    /// 16384.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub fn past_flows(&self) -> Result<Vec<Flow>, DriverError> {
        Maps::read(&self.maps.past)
    }

    /// Everything that was counted.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub fn counters(&self) -> Result<Vec<(Counter, u64)>, DriverError> {
        self.maps.read_counters()
    }
}

pub(crate) fn link_to_group(
    program: std::os::fd::BorrowedFd<'_>,
    cgroup: &Path,
) -> Result<OwnedFd, DriverError> {
    let what = || format!("opt in the control group {}", cgroup.display());
    let group = File::open(cgroup).map_err(DriverError::kernel(what()))?;
    sys::link(program, group.as_raw_fd(), Hook::SocketOperations).map_err(DriverError::kernel(what()))
}

/// The two programs of the signalling, `erate_ingress` and `erate_egress`, as they are loaded for a device, with maps and a
/// congestion control of their own that nobody uses: to be run on packets that are made up.
///
/// # Errors
/// What the kernel refuses.
pub fn signalling(device: &Device, wanted: Rate) -> Result<(Object, Object), DriverError> {
    let control =
        open_shipped(CONTROL_OBJECT)?.load().map_err(DriverError::bpf("load the congestion control"))?;
    let maps = Maps::from_object(&control)?;
    let name = abi::name(CONTROL).expect("it is short");
    let reno = abi::name("reno").expect("it is short");
    let config = abi::config(&Settings::new("reno"), &Limits::default(), reno, reno);
    maps.config
        .update(&0_u32.to_ne_bytes(), &config, MapFlags::ANY)
        .map_err(DriverError::bpf("write the settings"))?;
    Ok((load_signalling(&maps, device, wanted, name)?, control))
}

/// Loads the signalling for a device and attaches it. The links hold it.
pub(crate) fn signal(
    maps: &Maps,
    device: &Device,
    wanted: Rate,
    control: [u8; abi::NAME_LEN],
) -> Result<[OwnedFd; 2], DriverError> {
    let object = load_signalling(maps, device, wanted, control)?;
    let index = i32::try_from(device.index).expect("the kernel counts devices in an int");
    let attach = |name, hook| {
        let what = format!("attach to the device {}", device.name);
        sys::link(program(&object, name)?.as_fd(), index, hook).map_err(DriverError::kernel(what))
    };
    // What arrives first: a request that leaves must find somebody who understands the answer.
    Ok([attach("erate_ingress", Hook::Ingress)?, attach("erate_egress", Hook::Egress)?])
}

fn load_signalling(
    maps: &Maps,
    device: &Device,
    wanted: Rate,
    control: [u8; abi::NAME_LEN],
) -> Result<Object, DriverError> {
    let wanted = RateUnit::default().encode(wanted.bit_per_s(), Rounding::Up);
    let mut object = open_shipped(SIGNALLING_OBJECT)?;
    for (name, shared) in maps.each() {
        let map = object.maps_mut().find(|map| map.name() == OsStr::new(name));
        let mut map = map.ok_or_else(|| DriverError::Object(format!("there is no map `{name}`")))?;
        map.reuse_fd(shared.as_fd()).map_err(DriverError::bpf("share a map"))?;
    }
    constants(&mut object, &abi::device(device.netns, device.header, wanted, control))?;
    object.load().map_err(DriverError::bpf(format!("load the signalling for {}", device.name)))
}

/// Fills in what does not change while a program is loaded.
fn constants(object: &mut OpenObject, bytes: &[u8]) -> Result<(), DriverError> {
    let mut map = object
        .maps_mut()
        .find(|map| map.name().to_string_lossy().ends_with(".rodata"))
        .ok_or_else(|| DriverError::Object("there are no constants in it".to_owned()))?;
    let size = map.value_size() as usize;
    if size != bytes.len() {
        return Err(DriverError::Object(format!("constants of {size} bytes, expected {}", bytes.len())));
    }
    map.set_initial_value(bytes).map_err(DriverError::bpf("fill in constants"))
}

/// Gives the congestion control its name, where the kernel and where programs of control groups read it.
fn rename(object: &mut OpenObject, control: [u8; abi::NAME_LEN]) -> Result<(), DriverError> {
    constants(object, &control)?;
    let shipped = abi::name(CONTROL).expect("it is short");
    let mut map = object
        .maps_mut()
        .find(|map| map.name() == OsStr::new("erate"))
        .ok_or_else(|| DriverError::Object("there is no congestion control in it".to_owned()))?;
    let value = map.initial_value_mut().unwrap_or(&mut []);
    let at = value
        .windows(abi::NAME_LEN)
        .position(|window| window == shipped)
        .ok_or_else(|| DriverError::Object("its congestion control has another name".to_owned()))?;
    value[at..at + abi::NAME_LEN].copy_from_slice(&control);
    Ok(())
}

fn program<'object>(
    object: &'object Object,
    name: &str,
) -> Result<libbpf_rs::ProgramMut<'object>, DriverError> {
    let found = object.progs_mut().find(|program| program.name() == OsStr::new(name));
    found.ok_or_else(|| DriverError::Object(format!("there is no program `{name}`")))
}

fn open_shipped(object: &[u8]) -> Result<OpenObject, DriverError> {
    open(object).map_err(DriverError::bpf("read a BPF object"))
}

/// Reads an object; what libbpf has to say of it is in the log.
pub(crate) fn open(object: &[u8]) -> libbpf_rs::Result<OpenObject> {
    static PRINT: Once = Once::new();
    PRINT.call_once(sys::take_warnings);
    take_log();
    ObjectBuilder::default().open_memory(object)
}

static LOG: Mutex<String> = Mutex::new(String::new());

/// Keeps what libbpf has to say.
pub(crate) fn note(text: &[u8]) {
    LOG.lock().unwrap_or_else(PoisonError::into_inner).push_str(&String::from_utf8_lossy(text));
}

/// What libbpf had to say since somebody last asked.
pub(crate) fn take_log() -> String {
    std::mem::take(&mut LOG.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Names of the congestion controls that there are.
fn available() -> String {
    fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default()
}

/// A congestion control that this kernel has.
fn known_control(name: &str) -> Result<[u8; abi::NAME_LEN], DriverError> {
    let available = available();
    let known = available.split_whitespace().any(|one| one == name) && !name.starts_with(CONTROL);
    known.then(|| abi::name(name)).flatten().ok_or_else(|| DriverError::NoControl {
        name: name.to_owned(),
        available: available.split_whitespace().collect::<Vec<_>>().join(", "),
    })
}
