//! Whole experiments, drawn by what they mean: any path of shipped elements, any stacks with any parameters, some flows.

use farpath_strategies::{Scenario, check_conservation, flows, paths};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

/// After about so many events an experiment is ended.
const EVENTS: u64 = 100_000;

/// What `strategy` draws by the next eight bytes. A part of an experiment has eight of its own, so that a change of them leaves
/// the other parts as they were. (A generator that passes the bytes on draws for ever once they are used up.)
fn draw<S: Strategy>(bytes: &mut crate::Bytes<'_>, strategy: S) -> Option<S::Value> {
    let mut seed = [0; 32];
    seed.iter_mut().take(8).for_each(|byte| *byte = bytes.u8());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
    let mut runner = TestRunner::new_with_rng(Config { failure_persistence: None, ..Config::default() }, rng);
    strategy.new_tree(&mut runner).ok().map(|tree| tree.current())
}

/// The bytes say what is drawn: eight for the path, eight for the run, eight for each flow.
pub fn experiments(data: &[u8]) {
    let mut bytes = crate::Bytes(data);
    let (Some(path), Some(seed)) = (draw(&mut bytes, paths()), draw(&mut bytes, any::<u64>())) else {
        return;
    };
    let mut drawn = Vec::from_iter(draw(&mut bytes, flows()));
    while !bytes.is_empty() && drawn.len() < 3 {
        drawn.extend(draw(&mut bytes, flows()));
    }
    if !drawn.is_empty() {
        check_conservation(&Scenario { path, flows: drawn, seed }.setup(), EVENTS);
    }
}
