use super::*;
use farpath_run::RunKey;

fn key(point: u64, engine: Engine, seed: Option<u64>) -> RunKey {
    RunKey { point, engine, seed }
}

#[test]
fn the_first_seed_of_each_point_is_traced_and_of_many_points_some_from_end_to_end() {
    let runs = |points: u64| {
        let of = |point| {
            [
                key(point, Engine::Predict, None),
                key(point, Engine::Simulate, Some(8)),
                key(point, Engine::Simulate, Some(7)),
            ]
        };
        to_trace((0..points).flat_map(of))
    };
    assert_eq!(runs(2), BTreeSet::from([0, 1].map(|point| key(point, Engine::Simulate, Some(7)))));
    let many = runs(1000);
    assert_eq!(many.len(), RUNS);
    assert_eq!(many.first().map(|key| key.point), Some(0));
    assert_eq!(many.last().map(|key| key.point), Some(999));
    assert!(to_trace([key(0, Engine::Predict, None)]).is_empty());
}

#[test]
fn intervals_of_rates_are_round() {
    assert_eq!([0, 1, 3, 11, 49, 51, 100, 101].map(round_up), [1, 1, 5, 20, 50, 100, 100, 200]);
    assert!(round_up(u64::MAX) > u64::MAX / 2);
}
