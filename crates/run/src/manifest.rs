//! `provenance.json`: what a results folder holds and where it comes from. It is written last.

use crate::{Engine, ExperimentSummary, Grade, Provenance, Run, RunKey};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::collections::BTreeMap;
use std::sync::Arc;

/// File name within the folder.
pub(crate) const FILE: &str = "provenance.json";
/// What `format` says.
pub(crate) const FORMAT: &str = "farpath-results";
/// The format version that is written, and the latest that is read.
pub(crate) const VERSION: u64 = 1;

/// The first words of the file: enough to know whether the rest can be read.
#[derive(Debug, Deserialize)]
pub(crate) struct Header {
    pub format: String,
    pub format_version: u64,
}

/// The whole file.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Manifest {
    pub format: String,
    pub format_version: u64,
    /// False where the experiment was interrupted: what is there is whole, but not all that was asked for.
    pub complete: bool,
    /// The experiment file as given.
    pub experiment: String,
    /// The same in words and numbers; results of early versions lack it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<ExperimentSummary>,
    /// Rows by table.
    pub tables: BTreeMap<String, u64>,
    pub runs: Vec<Group>,
    /// Of runs in real time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub grades: Vec<Graded>,
}

/// How well a run was done.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Graded {
    pub point: u64,
    #[serde(serialize_with = "engine_name", deserialize_with = "engine_from_name")]
    pub engine: Engine,
    pub seed: Option<u64>,
    pub grade: Grade,
}

/// Runs that differ in nothing but their seed.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Group {
    pub point: u64,
    #[serde(serialize_with = "engine_name", deserialize_with = "engine_from_name")]
    pub engine: Engine,
    /// `null` stands for a run without a seed.
    pub seeds: Vec<Option<u64>>,
    pub version: String,
    pub changes: Vec<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kernel: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<String>,
    pub caveats: Vec<String>,
}

fn engine_name<S: Serializer>(engine: &Engine, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(engine.name())
}

fn engine_from_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Engine, D::Error> {
    let name = String::deserialize(deserializer)?;
    Engine::from_name(&name).ok_or_else(|| de::Error::custom(format_args!("`{name}` is not an engine")))
}

impl Manifest {
    pub fn new() -> Manifest {
        Manifest {
            format: FORMAT.to_owned(),
            format_version: VERSION,
            complete: false,
            experiment: String::new(),
            asked: None,
            tables: BTreeMap::new(),
            runs: Vec::new(),
            grades: Vec::new(),
        }
    }

    /// Notes a run; false where it comes from another experiment than those before it.
    pub fn add(&mut self, run: &Run) -> bool {
        let Provenance { experiment, changes, version, kernel, settings, caveats } = &run.provenance;
        if self.runs.is_empty() {
            self.experiment = experiment.to_string();
        } else if *self.experiment != **experiment {
            return false;
        }
        let of_this = |group: &&mut Group| {
            (group.point, group.engine, &group.version, &group.changes)
                == (run.point, run.engine, version, changes)
                && (&group.kernel, &group.settings, &group.caveats) == (kernel, settings, caveats)
        };
        let RunKey { point, engine, seed } = run.key();
        self.grades.extend(run.grade.clone().map(|grade| Graded { point, engine, seed, grade }));
        // Runs come point by point: groups of other points need no look.
        match self.runs.iter_mut().rev().take_while(|group| group.point == run.point).find(of_this) {
            Some(group) => group.seeds.push(run.seed),
            None => self.runs.push(Group {
                point: run.point,
                engine: run.engine,
                seeds: vec![run.seed],
                version: version.clone(),
                changes: changes.clone(),
                kernel: kernel.clone(),
                settings: settings.clone(),
                caveats: caveats.clone(),
            }),
        }
        true
    }

    /// Every run with where it comes from, in the order of point, engine and seed.
    pub fn provenances(&self) -> BTreeMap<RunKey, Provenance> {
        let experiment: Arc<str> = self.experiment.as_str().into();
        let with_seeds = |group: &Group| {
            let provenance = Provenance {
                experiment: experiment.clone(),
                changes: group.changes.clone(),
                version: group.version.clone(),
                kernel: group.kernel.clone(),
                settings: group.settings.clone(),
                caveats: group.caveats.clone(),
            };
            let (point, engine) = (group.point, group.engine);
            let of_seed = move |&seed| (RunKey { point, engine, seed }, provenance.clone());
            group.seeds.iter().map(of_seed).collect::<Vec<_>>()
        };
        self.runs.iter().flat_map(with_seeds).collect()
    }

    /// How well each run in real time was done.
    pub fn grades(&self) -> BTreeMap<RunKey, Grade> {
        let entry = |Graded { point, engine, seed, grade }: &Graded| {
            (RunKey { point: *point, engine: *engine, seed: *seed }, grade.clone())
        };
        self.grades.iter().map(entry).collect()
    }
}
