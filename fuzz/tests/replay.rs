//! Every seed, and random inputs beside them, through every target.

use farpath_fuzz::TARGETS;
use std::fs;
use std::path::PathBuf;

fn seeds(target: &str) -> Vec<(String, Vec<u8>)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("seeds").join(target);
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut seeds: Vec<_> = entries
        .map(|entry| entry.expect("readable").path())
        .map(|path| (path.display().to_string(), fs::read(&path).expect("readable")))
        .collect();
    seeds.sort();
    seeds
}

/// xorshift64*: the same numbers on every machine.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, most: usize) -> usize {
        (self.next() % most as u64) as usize
    }
}

/// How many random inputs each target gets: `FUZZ_CASES` in the environment, or 300.
fn cases() -> usize {
    std::env::var("FUZZ_CASES").map_or(300, |text| text.parse().expect("FUZZ_CASES is a number"))
}

fn replay(name: &str) {
    let (_, target) = TARGETS.into_iter().find(|(known, _)| *known == name).expect("a target of ours");
    let seeds = seeds(name);
    assert!(!seeds.is_empty(), "{name} has seeds");
    for (_, seed) in &seeds {
        target(seed);
    }
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    for _ in 0..cases() {
        // A seed with some bytes changed, or nothing but chance.
        let mut input =
            if numbers.below(3) > 0 { seeds[numbers.below(seeds.len())].1.clone() } else { Vec::new() };
        if input.is_empty() {
            input.resize(1 + numbers.below(1024), 0);
            input.iter_mut().for_each(|byte| *byte = numbers.next() as u8);
        }
        for _ in 0..numbers.below(8) {
            let place = numbers.below(input.len());
            match numbers.below(4) {
                0 => input.insert(place, numbers.next() as u8),
                1 if input.len() > 1 => drop(input.remove(place)),
                _ => input[place] = numbers.next() as u8,
            }
        }
        target(&input);
    }
}

macro_rules! replays {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            replay(stringify!($name));
        })*

        #[test]
        fn every_target_is_replayed() {
            let known = [$(stringify!($name)),*];
            assert!(TARGETS.iter().all(|(name, _)| known.contains(name)));
            for name in known {
                let program = format!("{}/fuzz_targets/{name}.rs", env!("CARGO_MANIFEST_DIR"));
                assert!(fs::exists(&program).expect("readable"), "{program}");
            }
        }
    };
}

replays! { segments experiments texts signalling messages results captures scripts packets hosts }
