//! Packet scripts on a kernel: the running one's in real time, in a network namespace, or another's in virtual time.

mod device;
mod machine;
mod readiness;
mod wire;

pub use device::play_behind_device;

use crate::EmulateError;
use crate::virtual_time::{Console, Stream, start_guest};
use crate::worker::{Task, WorkerJob};
use farpath_kernel::{Halt, Kernel};
use farpath_script::syntax::Script;
use farpath_script::{Comparison, Outcome, Verdict, parse};
use farpath_units::Duration;
use machine::play_in_namespace;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// How often scripts are played by one guest at the most: its start is a hundredth of that.
const PLAYED_BY_A_GUEST: u64 = 500;

/// How scripts are played on a kernel.
#[derive(Debug, Clone, Copy)]
pub struct Playing<'a> {
    /// How closely what comes is compared.
    pub comparison: Comparison,
    /// How often each is played, until it does not pass.
    pub repetitions: u32,
    /// Set where nothing more is to be played.
    pub stop: &'a AtomicBool,
}

/// A script that is played by a guest.
#[derive(Debug, Serialize, Deserialize)]
struct Piece {
    /// Its place among all.
    number: usize,
    text: String,
    repetitions: u32,
}

/// What is played in a guest.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ScriptTask {
    pieces: Vec<Piece>,
    tolerance_ns: Option<u64>,
}

/// Plays scripts on the kernel that runs, one after the other, each time in a namespace of its own. `note` hears the number of the
/// script and what came of it, each time.
///
/// # Errors
/// This machine, or this user, makes no such namespace.
pub fn play_on_kernel(
    scripts: &[&Script],
    playing: Playing<'_>,
    mut note: impl FnMut(usize, Verdict),
) -> Result<(), EmulateError> {
    for (number, script) in scripts.iter().enumerate() {
        repeat(script, &playing, |verdict| {
            note(number, verdict);
            Ok(())
        })?;
    }
    Ok(())
}

/// Plays one until it does not pass, or often enough.
fn repeat(
    script: &Script,
    playing: &Playing<'_>,
    mut note: impl FnMut(Verdict) -> Result<(), EmulateError>,
) -> Result<(), EmulateError> {
    for _ in 0..playing.repetitions {
        if playing.stop.load(Ordering::Relaxed) {
            break;
        }
        let verdict = play_in_namespace(script, &playing.comparison)?;
        let passed = verdict.outcome == Outcome::Passed;
        note(verdict)?;
        if !passed {
            break;
        }
    }
    Ok(())
}

/// Plays scripts in guests on `kernel`, in virtual time, as many guests at once as there are cores. `note` hears as of [`play_on_kernel`].
/// `give_up_after` is real time, of each guest.
///
/// # Errors
/// The first one: a guest cannot be started, dies, or leaves no verdict.
pub fn play_in_virtual_time(
    texts: &[&str],
    playing: Playing<'_>,
    kernel: &Kernel,
    give_up_after: std::time::Duration,
    note: impl FnMut(usize, Verdict) + Send,
) -> Result<(), EmulateError> {
    let over: Vec<AtomicBool> = texts.iter().map(|_| AtomicBool::new(false)).collect();
    let broken = AtomicBool::new(false);
    let note = Mutex::new(note);
    let plays = texts.len() as u64 * u64::from(playing.repetitions);
    let share = plays.div_ceil(rayon::current_num_threads() as u64).clamp(1, PLAYED_BY_A_GUEST);
    let is_over = |number: usize| over[number].load(Ordering::Relaxed);
    let done = || broken.load(Ordering::Relaxed) || playing.stop.load(Ordering::Relaxed);
    batches(texts.len(), playing.repetitions, share, is_over)
        .zip(0..)
        .par_bridge()
        .map(|(batch, seed)| {
            if done() {
                return Ok(());
            }
            let played = in_guest(texts, &batch, &playing, kernel, give_up_after, seed, |number, verdict| {
                if verdict.outcome != Outcome::Passed {
                    over[number].store(true, Ordering::Relaxed);
                }
                note.lock().unwrap_or_else(PoisonError::into_inner)(number, verdict);
            });
            if played.is_err() {
                broken.store(true, Ordering::Relaxed);
            }
            played
        })
        .find_any(Result::is_err)
        .unwrap_or(Ok(()))
}

/// What guests play, one after the other: numbers of scripts and how often, `share` times in all at the most. Nothing more is played of a
/// script that `is_over`.
fn batches(
    scripts: usize,
    repetitions: u32,
    share: u64,
    is_over: impl Fn(usize) -> bool,
) -> impl Iterator<Item = Vec<(usize, u32)>> {
    let (mut script, mut begun) = (0, 0);
    std::iter::from_fn(move || {
        let mut batch = Vec::new();
        let mut room = share;
        while room > 0 && script < scripts {
            let left = if is_over(script) { 0 } else { repetitions - begun };
            // It is no more than what is left, which is a `u32`.
            let taken = u64::from(left).min(room) as u32;
            if taken > 0 {
                batch.push((script, taken));
                room -= u64::from(taken);
            }
            begun += taken;
            if taken == left {
                (script, begun) = (script + 1, 0);
            }
        }
        (!batch.is_empty()).then_some(batch)
    })
}

/// Plays a batch in a guest. A seed of its own makes a repetition another one than that of the guest before.
fn in_guest(
    texts: &[&str],
    batch: &[(usize, u32)],
    playing: &Playing<'_>,
    kernel: &Kernel,
    give_up_after: std::time::Duration,
    seed: u64,
    mut note: impl FnMut(usize, Verdict),
) -> Result<(), EmulateError> {
    let piece =
        |&(number, repetitions): &(usize, u32)| Piece { number, text: texts[number].to_owned(), repetitions };
    let tolerance_ns = playing.comparison.tolerance.map(Duration::as_nanos);
    let task = Task::Scripts(ScriptTask { pieces: batch.iter().map(piece).collect(), tolerance_ns });
    let mut missing: u64 = batch.iter().map(|&(_, repetitions)| u64::from(repetitions)).sum();
    let mut line = Vec::new();
    let output = |_: Stream, bytes: &[u8]| {
        for &byte in bytes {
            if byte != b'\n' {
                line.push(byte);
                continue;
            }
            if let Ok(Told { number, verdict, left }) = serde_json::from_slice(&line) {
                missing = missing.saturating_sub(1 + u64::from(left));
                note(number, verdict);
            }
            line.clear();
        }
    };
    let job = WorkerJob::alone(task);
    let (_, ended) = start_guest(&job, give_up_after, seed, kernel, playing.stop, output)?;
    match ended.halt {
        Halt::Stopped => Ok(()),
        Halt::Off if missing == 0 => Ok(()),
        _ => {
            let why = ended.why().unwrap_or_else(|| "the guest did not tell all verdicts".to_owned());
            Err(EmulateError::WorkerFiles(io::Error::other(why)))
        }
    }
}

/// What a guest tells of a script that it has played.
#[derive(Serialize, Deserialize)]
struct Told {
    number: usize,
    verdict: Verdict,
    /// Repetitions that are left out, as it did not pass.
    left: u32,
}

/// In a guest: plays them, and tells on the console what came of each as soon as it did.
pub(crate) fn carry_out_scripts(task: &ScriptTask) -> Result<(), EmulateError> {
    let console = Console::open().map_err(EmulateError::WorkerFiles)?;
    let comparison = Comparison { tolerance: task.tolerance_ns.map(Duration::from_nanos) };
    for &Piece { number, ref text, repetitions } in &task.pieces {
        let script = parse(text).expect("it was read before");
        let playing = Playing { comparison, repetitions, stop: &AtomicBool::new(false) };
        let mut to_play = repetitions;
        repeat(&script, &playing, |verdict| {
            to_play -= 1;
            let left = if verdict.outcome == Outcome::Passed { 0 } else { to_play };
            let mut line = serde_json::to_vec(&Told { number, verdict, left }).expect("plain data");
            line.push(b'\n');
            console.print_all(Stream::Output, &line[..]).map_err(EmulateError::WorkerFiles)
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guests_share_repetitions_and_none_is_played_twice() {
        let all = |scripts, repetitions, share| -> Vec<Vec<(usize, u32)>> {
            batches(scripts, repetitions, share, |_| false).collect()
        };
        assert_eq!(all(3, 1, 2), [vec![(0, 1), (1, 1)], vec![(2, 1)]]);
        assert_eq!(all(2, 5, 4), [vec![(0, 4)], vec![(0, 1), (1, 3)], vec![(1, 2)]]);
        assert_eq!(all(1, 1, 500), [vec![(0, 1)]]);
        assert_eq!(all(0, 7, 500), [[]; 0]);
    }

    #[test]
    fn nothing_more_is_played_of_a_script_that_is_over() {
        let over = [AtomicBool::new(false), AtomicBool::new(false)];
        let mut batches = batches(2, 5, 3, |number| over[number].load(Ordering::Relaxed));
        assert_eq!(batches.next(), Some(vec![(0, 3)]));
        over[0].store(true, Ordering::Relaxed);
        assert_eq!(batches.next(), Some(vec![(1, 3)]));
        assert_eq!(batches.next(), Some(vec![(1, 2)]));
        assert_eq!(batches.next(), None);
    }
}
