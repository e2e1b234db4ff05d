//! A congestion control of the user's: any BPF object with a `tcp_congestion_ops`.

use crate::abi::NAME_LEN;
use crate::driver::{open, take_log};
use crate::{Missing, sys};
use libbpf_rs::btf::types::{MemberAttr, Struct};
use libbpf_rs::btf::{HasSize, TypeId};
use libbpf_rs::{ErrorKind, Link, MapCore, MapType, Object, OpenObject, libbpf_sys};
use std::ffi::{OsStr, OsString};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

/// Its type in the kernel.
const OPERATIONS: &str = "tcp_congestion_ops";

/// Names that are tried, each of which somebody else may have.
const ATTEMPTS: usize = 100;

/// What libbpf has to say is one log of the process.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Why a congestion control is not in the kernel.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// The machine or the user lacks something.
    #[error(
        "a BPF congestion control cannot be loaded here: {}",
        .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    )]
    Missing(Vec<Missing>),
    /// Something else.
    #[error(
        "expected a BPF object file as `clang -target bpf -g -c` makes it, found none: {source}{}",
        said(log)
    )]
    NoObject {
        /// What libbpf returns.
        source: libbpf_rs::Error,
        /// What it had to say.
        log: String,
    },
    /// Not one, or more.
    #[error(
        "expected one `struct tcp_congestion_ops` in a section `.struct_ops.link` or `.struct_ops`, found {}",
        if .0.is_empty() { "none".to_owned() } else { .0.join(", ") }
    )]
    NotOne(Vec<String>),
    /// The kernel takes no such name.
    #[error(
        "`.name` of its `tcp_congestion_ops`: expected 1 to 15 letters, digits, `_` and `.`, found `{0}`"
    )]
    Name(String),
    /// A map that would outlive the process.
    #[error(
        "its map `{0}` is pinned (`LIBBPF_PIN_BY_NAME`), and would stay on the machine after the run: expected maps without `pinning`"
    )]
    Pinned(String),
    /// So often that it can be no chance.
    #[error(
        "`{0}` is the name of a congestion control that is registered already, and so is what is made of it"
    )]
    NameTaken(String),
    /// The kernel refuses its programs.
    #[error("the kernel refuses it: {source}{}", said(log))]
    Refused {
        /// What it returns.
        source: libbpf_rs::Error,
        /// What the verifier and libbpf had to say.
        log: String,
    },
    /// The kernel refuses what its programs are to be.
    #[error(
        "the kernel does not register it: {source}; it expects `ssthresh`, `undo_cwnd`, and one of `cong_avoid` and `cong_control`{}",
        said(log)
    )]
    Unregistered {
        /// What it returns.
        source: libbpf_rs::Error,
        /// What libbpf had to say.
        log: String,
    },
}

/// Lines of a log that are shown.
const LINES: usize = 8;

/// The last lines of what the verifier says or, where it was not asked, of what libbpf does.
fn said(log: &str) -> String {
    let verifier = log.split("-- BEGIN PROG LOAD LOG --").nth(1);
    let verifier = verifier.and_then(|rest| rest.split("-- END PROG LOAD LOG --").next());
    // What stands before the end's marker is the name of the program.
    let verifier = verifier.map(|text| text.rsplit_once('\n').map_or(text, |(text, _)| text));
    let lines: Vec<&str> =
        verifier.unwrap_or(log).lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    let last = &lines[lines.len().saturating_sub(LINES)..];
    if last.is_empty() { String::new() } else { format!("\n{}", last.join("\n")) }
}

/// A congestion control of the user's that is registered, in the hands of this process: gone with it, however that ends.
/// Sockets that have it keep it.
#[derive(Debug)]
pub struct UserControl {
    name: String,
    /// Registered; dropped before its programs.
    _registered: Link,
    _object: Object,
}

/// The congestion control of an object.
struct Found {
    /// What the variable is called.
    map: OsString,
    /// By which it wants to be registered.
    name: String,
    /// Where that stands in the variable.
    at: usize,
}

impl UserControl {
    /// Whether `object` is one with a congestion control, as far as can be seen without a kernel.
    ///
    /// # Errors
    /// It is no BPF object, or has not one congestion control.
    pub fn check(object: &[u8]) -> Result<(), ControlError> {
        let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        find(&mut opened(object)?).map(drop)
    }

    /// Loads and registers the congestion control of `object`. A name can be registered once only on a machine: the first letters of its own are
    /// kept, and the rest is of this process. What the machine or the user lacks for it, [`missing`](crate::missing()) says in words.
    ///
    /// # Errors
    /// As [`UserControl::check`], and what the kernel refuses.
    pub fn load(object: &[u8]) -> Result<UserControl, ControlError> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let mut wanted = String::new();
        for _ in 0..ATTEMPTS {
            let mut opened = opened(object)?;
            let found = find(&mut opened)?;
            let number = NEXT.fetch_add(1, Ordering::Relaxed) & 0xffff;
            let name = unique(&found.name, std::process::id(), number);
            match registered(opened, &found, name) {
                Err(ControlError::Unregistered { source, .. })
                    if source.kind() == ErrorKind::AlreadyExists =>
                {
                    wanted = found.name;
                }
                loaded => return loaded,
            }
        }
        Err(ControlError::NameTaken(wanted))
    }

    /// By which sockets ask for it: `TCP_CONGESTION`.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// The beginning of `own`, and what nobody else has.
fn unique(own: &str, process: u32, number: u32) -> String {
    let ending = format!("_{process:x}_{number:x}");
    let kept = (NAME_LEN - 1).saturating_sub(ending.len()).min(own.len());
    format!("{}{ending}", &own[..kept])
}

fn opened(object: &[u8]) -> Result<OpenObject, ControlError> {
    open(object).map_err(|source| ControlError::NoObject { source, log: take_log() })
}

fn find(object: &mut OpenObject) -> Result<Found, ControlError> {
    if let Some(map) = object.maps().find(sys::is_pinned_by_its_object) {
        return Err(ControlError::Pinned(map.name().to_string_lossy().into_owned()));
    }
    let of_variables = places(object)?;
    let (map, at) = match &of_variables[..] {
        [one] => one.clone(),
        several => {
            let names = several.iter().map(|(name, _)| format!("`{}`", name.to_string_lossy()));
            return Err(ControlError::NotOne(names.collect()));
        }
    };
    let mut variable = object.maps_mut().find(|one| one.name() == map).expect("it was there");
    let value = variable.initial_value_mut().and_then(|value| value.get(at..at + NAME_LEN));
    let value = value.unwrap_or_default();
    let name: Vec<u8> = value.iter().copied().take_while(|byte| *byte != 0).collect();
    let name = String::from_utf8_lossy(&name).into_owned();
    let sound = |byte: u8| byte.is_ascii_alphanumeric() || b"_.".contains(&byte);
    if !(1..NAME_LEN).contains(&name.len()) || !name.bytes().all(sound) {
        return Err(ControlError::Name(name));
    }
    Ok(Found { map, name, at })
}

/// The variables that are congestion controls, and where in each its name stands.
fn places(object: &OpenObject) -> Result<Vec<(OsString, usize)>, ControlError> {
    let failed = |source| ControlError::NoObject { source, log: take_log() };
    let Some(types) = sys::types_of(object).map_err(failed)? else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    for map in object.maps().filter(|map| map.map_type() == MapType::StructOps) {
        let Some(of) = types.type_by_id::<Struct<'_>>(TypeId::from(sys::value_type(&map))) else { continue };
        // `tcp_congestion_ops___mine` is one too: what follows is for who reads it.
        let is_one =
            of.name().is_some_and(|name| name.to_string_lossy().split("___").next() == Some(OPERATIONS));
        if !is_one {
            continue;
        }
        let name = of.iter().find(|member| member.name == Some(OsStr::new("name")));
        let at = name.and_then(|member| match member.attr {
            MemberAttr::Normal { offset } => Some(offset as usize / 8),
            MemberAttr::BitField { .. } => None,
        });
        match at.filter(|at| at + NAME_LEN <= of.size()) {
            Some(at) => found.push((map.name().to_owned(), at)),
            None => return Err(ControlError::Name(String::new())),
        }
    }
    Ok(found)
}

fn registered(mut object: OpenObject, found: &Found, name: String) -> Result<UserControl, ControlError> {
    let refused = |source| ControlError::Refused { source, log: take_log() };
    let mut variable = object.maps_mut().find(|map| map.name() == found.map).expect("it was there");
    let value = variable.initial_value_mut().expect("it has a name");
    let mut bytes = [0; NAME_LEN];
    bytes[..name.len()].copy_from_slice(name.as_bytes());
    value[found.at..found.at + NAME_LEN].copy_from_slice(&bytes);
    // Without a link the kernel would keep it when this process is gone.
    variable.set_map_flags(libbpf_sys::BPF_F_LINK).map_err(refused)?;
    let mut object = object.load().map_err(refused)?;
    let link = object
        .maps_mut()
        .find(|map| map.name() == found.map)
        .expect("it was there")
        .attach_struct_ops()
        .map_err(|source| ControlError::Unregistered { source, log: take_log() })?;
    Ok(UserControl { name, _registered: link, _object: object })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_keeps_its_beginning_and_fits() {
        assert_eq!(unique("aimd", 0x1234, 1), "aimd_1234_1");
        assert_eq!(unique("a_very_long_one", 4_194_304, 0xffff), "a_v_400000_ffff");
        assert_eq!(unique("ab", 1, 2), "ab_1_2");
    }

    #[test]
    fn a_map_that_would_stay_on_the_machine_is_refused() {
        let pinned = include_bytes!("../tests/objects/pinned.bpf.o");
        let error = UserControl::check(pinned).expect_err("it pins a map").to_string();
        let said = "its map `kept` is pinned (`LIBBPF_PIN_BY_NAME`), and would stay on the machine after the run: expected maps \
                    without `pinning`";
        assert_eq!(error, said);
    }

    /// What others write: whatever bytes of the example are others, or are not there, it is taken or refused.
    #[test]
    fn objects_with_other_bytes_are_taken_or_refused() {
        let example = include_bytes!("../../../examples/bpf/gentle.bpf.o");
        UserControl::check(example).expect("the example is one");
        let mut state = 1_u64;
        let mut draw = |below: usize| {
            // Knuth's MMIX, as chance to be had again.
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        let mut refused = 0;
        for _ in 0..2000 {
            let mut object = example.to_vec();
            for _ in 0..=draw(8) {
                object[draw(example.len())] = draw(256) as u8;
            }
            object.truncate(example.len() - if draw(4) == 0 { draw(example.len()) } else { 0 });
            refused += usize::from(UserControl::check(&object).is_err());
        }
        assert!(refused > 500, "{refused} refused, where a quarter has no end");
    }

    #[test]
    fn of_a_log_the_verifiers_last_lines_are_shown() {
        let log = "libbpf: prog 'x': BPF program load failed: -EACCES\nlibbpf: prog 'x': -- BEGIN PROG LOAD LOG --\n\
                   0: R1=ctx()\n1: (79) r0 = *(u64 *)(r1 +0)\nR0 invalid mem access\nprocessed 2 insns\n\
                   libbpf: prog 'x': -- END PROG LOAD LOG --\nlibbpf: failed to load object\n";
        assert_eq!(
            said(log),
            "\n0: R1=ctx()\n1: (79) r0 = *(u64 *)(r1 +0)\nR0 invalid mem access\nprocessed 2 insns"
        );
        assert_eq!(said("libbpf: elf: no magic\n"), "\nlibbpf: elf: no magic");
        assert_eq!(said(""), "");
    }
}
