//! `farpath doctor`: what this machine can do for emulation.

use crate::args::DoctorArgs;
use crate::error::CliError;
use crate::{Ending, output};
use farpath_emu::doctor::{self, Finding, Maker, Sighting, Sightings, State};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;

/// `farpath doctor`
pub fn doctor(args: &DoctorArgs) -> Result<Ending, CliError> {
    // First: it may enter a user namespace, in which a process without privileges sees more.
    let mut findings = doctor::probe();
    findings.push(crate::driver::finding());
    #[cfg(target_os = "linux")]
    findings.extend([crate::kernel::finding(), crate::serve::finding()]);
    let removed = if args.clean { Some(doctor::clean()?) } else { None };
    let seen = doctor::devices();
    let text = if args.json {
        json!({
            "emulates": doctor::emulates(&findings),
            "findings": findings.iter().map(finding_json).collect::<Vec<_>>(),
            "devices": seen.devices.iter().map(device_json).collect::<Vec<_>>(),
            "namespaces_not_looked_into": seen.closed,
            "removed": removed.map(|removed| removed.iter().map(device_json).collect::<Vec<_>>()),
        })
        .to_string()
    } else {
        text(&findings, &seen, removed.as_deref(), output::width().map_or(usize::MAX, usize::from))
    };
    output::print(&text)?;
    Ok(Ending::Done)
}

fn finding_json(finding: &Finding) -> Value {
    let Finding { name, state, found, meaning, remedy } = finding;
    json!({"name": name, "state": state.to_string(), "found": found, "meaning": meaning, "remedy": remedy})
}

fn device_json(device: &Sighting) -> Value {
    let (maker, process) = match device.maker {
        Maker::Lives(id) => ("lives", Some(id)),
        Maker::Dead(id) => ("dead", Some(id)),
        Maker::Unknown => ("unknown", None),
    };
    let holders: Vec<_> =
        device.holders.iter().map(|(id, name)| json!({"process": id, "name": name})).collect();
    json!({
        "device": device.device,
        "namespace": device.namespace,
        "maker": maker,
        "made_by": process,
        "holders": holders,
    })
}

fn text(findings: &[Finding], seen: &Sightings, removed: Option<&[Sighting]>, width: usize) -> String {
    let names = findings.iter().map(|finding| finding.name.len()).max().unwrap_or(0);
    // "limited" and "missing", and two columns between columns.
    let indent = names + 2 + 7 + 2;
    let mut text = String::new();
    for finding in findings {
        let head = format!("{:names$}  {:7}  ", finding.name, finding.state);
        // What is as it should be needs no words.
        let more = (finding.state != State::Ok).then(|| format!("It means: {}.", finding.meaning));
        let remedy = finding.remedy.as_ref().map(|remedy| format!("To get it: {remedy}."));
        let lines = [Some(finding.found.clone()), more, remedy].into_iter().flatten();
        let lines: Vec<_> = lines.flat_map(|line| wrap(&line, width.saturating_sub(indent))).collect();
        for (at, line) in lines.iter().enumerate() {
            let lead = if at == 0 { head.clone() } else { " ".repeat(indent) };
            let _ = writeln!(text, "{}", format!("{lead}{line}").trim_end());
        }
    }
    let verdict =
        match (doctor::emulates(findings), findings.iter().any(|finding| finding.state != State::Ok)) {
            (false, _) => "Emulation does not run here. Prediction and simulation do.",
            (true, true) => "Emulation runs here, with the limits above.",
            (true, false) => "Emulation runs here.",
        };
    let _ = write!(text, "\n{verdict}\n{}", devices_text(seen));
    for device in removed.unwrap_or_default() {
        let _ = writeln!(text, "Removed {} from {}.", device.device, device.namespace);
    }
    if removed.is_some_and(<[_]>::is_empty) {
        text += "Nothing was left to remove, as it should be: the kernel takes devices away with their process.\n";
    }
    text
}

/// Devices of ours: those of runs that go on by process, others a line each.
fn devices_text(seen: &Sightings) -> String {
    let mut text = String::new();
    if seen.devices.is_empty() {
        text += "No run has devices now, and none are left over.\n";
    }
    let mut running: BTreeMap<u32, usize> = BTreeMap::new();
    for Sighting { device, namespace, maker, holders } in &seen.devices {
        let whose = match maker {
            Maker::Lives(id) => {
                *running.entry(*id).or_default() += 1;
                continue;
            }
            Maker::Dead(id) => format!("left over from process {id}: `farpath doctor --clean` removes it"),
            Maker::Unknown => "of somebody in another container: left alone".to_owned(),
        };
        let holders: Vec<_> = holders.iter().map(|(id, name)| format!("{id} ({name})")).collect();
        let _ = writeln!(text, "{device} in {namespace}, {whose}; held by {}", holders.join(", "));
    }
    for (process, hosts) in running {
        let _ = writeln!(text, "Process {process} emulates now, and has {hosts} hosts.");
    }
    if seen.closed > 0 {
        let _ = writeln!(text, "Into {} network namespaces only root may look.", seen.closed);
    }
    text
}

/// Lines of at most `width` columns, broken at spaces; a longer word has a line of its own.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}
