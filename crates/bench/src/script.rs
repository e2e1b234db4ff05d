//! Packet scripts a second: those of crates/script/tests/linux-6, read and played.

use crate::clock::timed;
use crate::figure::{Figure, Target};
use farpath_experiment::Stack;
use farpath_script::{Comparison, Outcome, Simulated, parse, play};
use std::error::Error;
use std::fs;
use std::path::Path;

/// How often each is played in a measurement.
const SIMULATED: usize = 100;
#[cfg(target_os = "linux")]
const IN_GUESTS: u32 = 40;
const REPETITIONS: u32 = 3;
const COMPARISON: Comparison = Comparison { tolerance: None };

/// Measures, and tells each figure when it is known.
///
/// # Errors
/// The scripts or their stack cannot be read, or one of them does not pass.
pub fn measure(mut told: impl FnMut(Figure)) -> Result<(), Box<dyn Error>> {
    let texts = texts()?;
    let stack = Stack::load("linux-6")?;
    let mut best = f64::MAX;
    for _ in 0..REPETITIONS {
        let (failed, seconds) = timed(|| {
            let all = std::iter::repeat_n(&texts, SIMULATED).flatten();
            let passes = |text: &&String| {
                parse(text).is_ok_and(|script| {
                    let verdict = play(&script, &mut Simulated::new(&stack.config), &COMPARISON);
                    verdict.outcome == Outcome::Passed
                })
            };
            all.filter(|text| !passes(text)).count()
        });
        if failed > 0 {
            return Err(format!("{failed} scripts of {} did not pass", texts.len() * SIMULATED).into());
        }
        best = best.min(seconds);
    }
    told(Figure {
        name: "packet scripts, simulated".to_owned(),
        value: Some((texts.len() * SIMULATED) as f64 / best),
        unit: "scripts/s",
        target: Target::AtLeast(1000.0),
    });
    told(Figure {
        name: "packet scripts in virtual time, a second of processor".to_owned(),
        value: in_virtual_time(&texts)?,
        unit: "scripts/s",
        target: Target::AtLeast(50.0),
    });
    Ok(())
}

fn texts() -> Result<Vec<String>, Box<dyn Error>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../script/tests/linux-6");
    let mut files: Vec<_> =
        fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<Result<_, std::io::Error>>()?;
    files.sort();
    Ok(files.into_iter().map(fs::read_to_string).collect::<Result<_, _>>()?)
}

/// On the first kernel for virtual time that is built here; `None` where there is none. Guests are processes of their own.
#[cfg(target_os = "linux")]
fn in_virtual_time(texts: &[String]) -> Result<Option<f64>, Box<dyn Error>> {
    use crate::clock::cpu_of_children;
    use farpath_emulate::{Playing, play_in_virtual_time};
    use std::sync::atomic::AtomicBool;
    use std::time::Duration;

    let Ok(kernel) = farpath_kernel::Catalog::of_user().find(None) else {
        eprintln!("bench: SCRIPTS IN VIRTUAL TIME ARE NOT MEASURED: `farpath kernel build` makes a kernel");
        return Ok(None);
    };
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let stop = AtomicBool::new(false);
    let playing = Playing { comparison: COMPARISON, repetitions: IN_GUESTS, stop: &stop };
    let mut best = f64::MAX;
    for _ in 0..REPETITIONS {
        let mut passed = 0;
        let before = cpu_of_children();
        play_in_virtual_time(&texts, playing, &kernel, Duration::from_secs(600), |_, verdict| {
            passed += u32::from(verdict.outcome == Outcome::Passed);
        })?;
        let Some(seconds) = cpu_of_children().zip(before).map(|(after, before)| after - before) else {
            return Ok(None);
        };
        let all = texts.len() as u32 * IN_GUESTS;
        if passed < all {
            return Err(format!("{passed} plays of {all} passed in virtual time").into());
        }
        best = best.min(seconds / f64::from(all));
    }
    Ok(Some(1.0 / best))
}

/// There are none.
#[cfg(not(target_os = "linux"))]
fn in_virtual_time(_: &[String]) -> Result<Option<f64>, Box<dyn Error>> {
    Ok(None)
}
