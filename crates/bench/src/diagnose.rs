//! `farpath diagnose`: bytes of a capture a second, and what it holds of one.

use crate::clock::{peak_memory, timed};
use crate::figure::{Figure, Target};
use farpath_diagnose::{Diagnosis, Link, TcpPacket, parse, read};
use farpath_engine::simulate_captured;
use farpath_experiment::Experiment;
use farpath_run::Provenance;
use std::error::Error;
use std::fs::{self, File};
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::Path;
use std::process::Command;

const REPETITIONS: u32 = 7;
/// 1 Gbit/s, 20 ms there and back, as the sender's host sees it.
const PATH: &str = "title = \"Captured\"\nsender = { stack = \"linux-6\" }\nreceiver = { stack = \"linux-6\" }\n\
    path = [{ element = \"link\", rate = \"1 Gbit/s\", queue = \"1 bdp\" }, { element = \"delay\", delay = \"10 ms\" }]\n";
/// The headers, and the beginning of the data.
const HEADERS: u32 = 128;
/// What a card is given at once, at the most.
const SUPER_SEGMENT: usize = 65_000;
/// As long as a kernel fills one.
const TOGETHER_NS: u64 = 1_000_000;

/// `LINKTYPE_RAW`: a packet begins with its IP header.
const RAW: i32 = 101;

/// A frame of a capture: when, what is kept of it, and how long it was.
pub type CapturedPacket = (u64, Vec<u8>, u32);

/// Measures, and tells each figure when it is known. Captures are written into this folder, which is made.
///
/// # Errors
/// The capture cannot be made, or not be read.
pub fn measure(folder: &Path, mut told: impl FnMut(Figure)) -> Result<(), Box<dyn Error>> {
    fs::create_dir_all(folder)?;
    let whole = captured(200, usize::MAX)?;
    let cut = |keep: usize| -> Vec<CapturedPacket> {
        whole.iter().map(|(at, data, length)| (*at, data[..data.len().min(keep)].to_vec(), *length)).collect()
    };
    for (name, frames) in [
        ("segments of 1500 B", whole.clone()),
        ("super-segments", joined(&whole)),
        ("96 B of each segment", cut(96)),
    ] {
        let file = folder.join("capture.pcap");
        write_pcap(&file, RAW, &frames)?;
        let mut best = f64::MAX;
        for _ in 0..REPETITIONS {
            let (read, seconds) = timed(|| diagnosed(&file));
            if read? != frames.len() as u64 {
                return Err("not all frames were read".into());
            }
            best = best.min(seconds);
        }
        let bytes = fs::metadata(&file)?.len() as f64;
        let target = Target::AtLeast(1000.0);
        let name = format!("diagnose, {name}");
        told(Figure { name: name.clone(), value: Some(bytes / best / 1e6), unit: "MB/s", target });
        let each = best * 1e9 / frames.len() as f64;
        told(Figure {
            name: format!("{name}, a packet"),
            value: Some(each),
            unit: "ns",
            target: Target::None,
        });
    }
    let mut peaks = Vec::new();
    for megabytes in [100, 1000] {
        let file = folder.join("capture.pcap");
        let frames = captured(megabytes, 96)?;
        write_pcap(&file, RAW, &frames)?;
        // In a process of its own: what a peak is does not come down.
        let output =
            Command::new(std::env::current_exe()?).arg("--memory-of-diagnosis").arg(&file).output()?;
        let peak = String::from_utf8_lossy(&output.stdout).trim().parse::<f64>().ok();
        let name = format!("memory, diagnosis of {megabytes} MB");
        told(Figure { name, value: peak.map(|peak| peak / 1e6), unit: "MB", target: Target::AtMost(64.0) });
        peaks.extend(peak);
    }
    let growth = (peaks.len() == 2).then(|| peaks[1] / peaks[0]);
    told(Figure {
        name: "memory, diagnosis of 1000 MB to 100 MB".to_owned(),
        value: growth,
        unit: "times",
        target: Target::AtMost(1.1),
    });
    Ok(())
}

/// Prints the most memory that this process has held after it has read a capture.
///
/// # Errors
/// The capture cannot be read.
pub fn memory_of(file: &Path) -> Result<(), Box<dyn Error>> {
    diagnosed(file)?;
    println!("{}", peak_memory().ok_or("the kernel does not tell the peak of memory")?);
    Ok(())
}

/// Reads a capture as the command does; frames.
fn diagnosed(file: &Path) -> Result<u64, Box<dyn Error>> {
    let source: Box<dyn Read + Send> = Box::new(BufReader::with_capacity(1 << 16, File::open(file)?));
    let mut diagnosis = Diagnosis::default();
    let frames = read(source, |frame| diagnosis.frame(frame))?;
    match diagnosis.finish().connections.len() {
        1 => Ok(frames),
        others => Err(format!("{others} connections, where there was one").into()),
    }
}

/// What the sender's host sees of a transfer; so much of each packet at the most.
fn captured(megabytes: u32, keep: usize) -> Result<Vec<CapturedPacket>, Box<dyn Error>> {
    let text = format!("{PATH}transfer = {{ size = \"{megabytes} MB\" }}\n");
    let experiment = Experiment::parse(&text, "captured", &[])?;
    let mut capture = Vec::new();
    simulate_captured(&experiment.point(0), 1, Provenance::default(), HEADERS, &mut capture)?;
    let mut frames = Vec::new();
    read(&capture[..], |frame| {
        if frame.interface == 0 {
            let mut data = frame.data.to_vec();
            data.resize((frame.length as usize).min(keep), 0);
            frames.push((frame.time_ns, data, frame.length));
        }
    })?;
    Ok(frames)
}

/// The same, as its card is given it: what follows at once is one packet.
fn joined(frames: &[CapturedPacket]) -> Vec<CapturedPacket> {
    let mut all: Vec<CapturedPacket> = Vec::new();
    let mut last: Option<TcpPacket> = None;
    for (at, data, length) in frames {
        let packet = parse(Link::Raw, data, *length).expect("TCP");
        if let (Some(before), Some((began, joined, wire))) = (&mut last, all.last_mut())
            && before.payload > 0
            && packet.payload > 0
            && before.source == packet.source
            && before.seq.wrapping_add(before.payload) == packet.seq
            && joined.len() + (packet.payload as usize) < SUPER_SEGMENT
            && at - *began < TOGETHER_NS
        {
            before.payload += packet.payload;
            joined.extend_from_slice(&data[data.len() - packet.payload as usize..]);
            *wire = joined.len() as u32;
            joined[2..4].copy_from_slice(&(*wire as u16).to_be_bytes());
            continue;
        }
        last = Some(packet);
        all.push((*at, data.clone(), *length));
    }
    all
}

/// Writes pcap in nanoseconds, of this link type (`LINKTYPE_...`).
///
/// # Errors
/// The file cannot be written.
pub fn write_pcap(file: &Path, link_type: i32, frames: &[CapturedPacket]) -> std::io::Result<()> {
    let mut out = BufWriter::new(File::create(file)?);
    for word in [0xa1b2_3c4d_u32, 4 << 16 | 2, 0, 0, 1 << 18, link_type.cast_unsigned()] {
        out.write_all(&word.to_le_bytes())?;
    }
    for (at, data, length) in frames {
        for word in [(at / 1_000_000_000) as u32, (at % 1_000_000_000) as u32, data.len() as u32, *length] {
            out.write_all(&word.to_le_bytes())?;
        }
        out.write_all(data)?;
    }
    out.flush()
}
