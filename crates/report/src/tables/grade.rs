//! How well runs in real time were done, in a sentence or two.

use super::comparison::{ENGINES, participle};
use crate::terminal::capitalised;
use farpath_run::{Grade, Lateness, Run};
use farpath_units::Duration;

/// A line for each engine that runs in real time; and one for each of its reasons to throw a run away.
pub(crate) fn grade_notes(runs: &[Run]) -> Vec<String> {
    let mut notes = Vec::new();
    for engine in ENGINES {
        let of_engine: Vec<&Run> = runs.iter().filter(|run| run.engine == engine).collect();
        let graded: Vec<&Grade> = of_engine.iter().filter_map(|run| run.grade.as_ref()).collect();
        let sound: Vec<&Grade> = graded.iter().copied().filter(|grade| grade.void.is_none()).collect();
        if let Some(all) = sound.iter().map(|&grade| grade.clone()).reduce(|a, b| a.and(&b)) {
            let kernel = of_engine[0].provenance.kernel.as_str();
            let who = capitalised(participle(engine));
            let mut note = format!("{who} on {kernel}: {}", lateness(&all.lateness, sound.len()));
            if !all.realtime {
                note += ", without real-time priority";
            }
            if let Some(wait) = all.processor_wait.filter(|wait| *wait >= 0.01) {
                note += &format!("; programs waited {:.0} % of their time for a processor", wait * 100.0);
            }
            note += &format!("; {} outside of the path", dropped(all.device_drops + all.refused));
            if let (1, Some([low, high])) = (sound.len(), all.loss_interval()) {
                let percent = |share: f64| format!("{:.3} %", share * 100.0);
                note += &format!(
                    "; lost on it {} of {} ({}; 95 %: {} to {})",
                    all.lost,
                    all.offered,
                    percent(all.loss_rate().unwrap_or_default()),
                    percent(low),
                    percent(high)
                );
            }
            if all.attempts > 1 {
                note += &format!("; up to {} attempts until a run was in time", all.attempts);
            }
            notes.push(note + ".");
        }
        let mut reasons: Vec<&str> = graded.iter().filter_map(|grade| grade.void.as_deref()).collect();
        reasons.dedup();
        notes.extend(reasons.into_iter().map(|reason| format!("Void, and in no number above: {reason}.")));
    }
    notes
}

fn lateness(lateness: &Lateness, runs: usize) -> String {
    let [p50, p99, max] = lateness.durations().map(rounded);
    let most = if runs > 1 { "in the worst run " } else { "" };
    format!("packets were late by {p50} (median), {p99} (99 %), {max} (worst) {most}").trim_end().to_owned()
}

/// To the microsecond: a clock does not tell more.
fn rounded(duration: Duration) -> Duration {
    Duration::from_micros((duration.as_nanos() + 500) / 1000)
}

fn dropped(packets: u64) -> String {
    match packets {
        0 => "none dropped".to_owned(),
        packets => format!("{packets} DROPPED"),
    }
}
