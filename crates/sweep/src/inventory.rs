//! Which runs are there.

use crate::chunk::Span;
use crate::key::PointKey;
use crate::seeds::Seeds;
use farpath_run::Engine;
use std::ops::Range;

/// Which runs are there.
#[derive(Debug, Default)]
pub struct Inventory {
    /// In their order, of one point and engine neither touching nor overlapping.
    seeds: Vec<(PointKey, Engine, Range<u64>)>,
    /// How many runs.
    pub runs: u64,
    /// How many files.
    pub files: u64,
    /// Their size in bytes.
    pub bytes: u64,
}

impl Inventory {
    /// Lists a file of so many bytes, in which these runs are.
    pub(crate) fn add_file(&mut self, bytes: u64, spans: &[Span]) {
        self.files += 1;
        self.bytes += bytes;
        for span in spans {
            self.runs += span.count;
            if let Some(engine) = Engine::from_name(&span.engine) {
                self.seeds.push((span.key, engine, span.seeds()));
            }
        }
    }

    /// Puts what was listed in order.
    pub(crate) fn sort(&mut self) {
        self.seeds.sort_unstable_by_key(|(key, engine, seeds)| (*key, *engine, seeds.start));
        self.seeds.dedup_by(|(key, engine, seeds), (before, by, known)| {
            let joins = (*key, *engine) == (*before, *by) && seeds.start <= known.end;
            if joins {
                known.end = known.end.max(seeds.end);
            }
            joins
        });
    }

    /// The runs: no seed of a point and engine is in two of them.
    pub(crate) fn spans(&self) -> impl Iterator<Item = (PointKey, Engine, &Range<u64>)> {
        self.seeds.iter().map(|(key, engine, seeds)| (*key, *engine, seeds))
    }

    /// The seeds for which there are runs.
    pub fn seeds(&self, key: PointKey, engine: Engine) -> Seeds {
        let start = self.seeds.partition_point(|&(other, by, _)| (other, by) < (key, engine));
        let of_key = self.seeds[start..].iter().take_while(|&&(other, by, _)| (other, by) == (key, engine));
        of_key.map(|(.., seeds)| seeds.clone()).collect()
    }
}
