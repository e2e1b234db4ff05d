use super::*;
use farpath_run::SummaryPoint;

/// A line through the origin that jumps by `factor` beyond `place`.
fn jumping(place: f64, factor: f64) -> Vec<(f64, f64)> {
    let x = |index: u32| f64::from(index) / 100.0;
    (1..=300).map(|index| (x(index), 44.0 * x(index) * if x(index) > place { factor } else { 1.0 })).collect()
}

#[test]
fn a_jump_is_a_step_and_a_slope_is_none() {
    assert_eq!(steps(&jumping(9.0, 2.0)), []);
    let falling: Vec<_> = jumping(9.0, 1.0).into_iter().map(|(x, y)| (x, 1.0 / y)).collect();
    assert_eq!(steps(&falling), [], "coarse as it is at first");
    assert_eq!(steps(&jumping(1.5, 1.001)), []);
    let found = steps(&jumping(1.5, 1.8));
    assert_eq!(found.len(), 1);
    assert!((found[0].at - 1.505).abs() < 1e-9, "{found:?}");
    assert_eq!(found[0].between, (149, 150));
}

#[test]
fn plateaus_have_a_step_between_them() {
    let curve: Vec<_> = (1..200)
        .map(|x| {
            (
                f64::from(x),
                if x < 50 {
                    1.0
                } else if x < 120 {
                    0.5
                } else {
                    0.33
                },
            )
        })
        .collect();
    let changes: Vec<_> = steps(&curve).iter().map(|step| (step.at, step.change)).collect();
    assert_eq!(changes, [(49.5, (1.0, 0.5)), (119.5, (0.5, 0.33))]);
}

#[test]
fn to_and_fro_is_one_step_or_none() {
    let mut curve = jumping(1.5, 1.8);
    for place in [155, 156] {
        curve[place].1 /= 1.8;
    }
    let found = steps(&curve);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].between, (149, 157));
    let mut spike = jumping(9.0, 1.0);
    spike[150].1 *= 3.0;
    assert_eq!(steps(&spike), []);
}

fn asked() -> ExperimentSummary {
    let point = |index: usize| {
        let delay = 0.1 * (index / 2 + 1) as f64;
        SummaryPoint {
            swept: vec![
                ("path.delay".to_owned(), format!("{delay:.1} s")),
                ("sender.stack".to_owned(), ["a", "b"][index % 2].to_owned()),
                ("receiver.stack".to_owned(), ["a", "b"][index % 2].to_owned()),
            ],
            rtt_s: Some(2.0 * delay),
            timers: Some(index % 2),
            ..SummaryPoint::default()
        }
    };
    let timer =
        |rtt_s: f64| SummaryTimer { name: format!("after {rtt_s} s"), rtt_s, ..SummaryTimer::default() };
    ExperimentSummary {
        axes: vec![
            vec!["path.delay".to_owned()],
            vec!["sender.stack".to_owned(), "receiver.stack".to_owned()],
        ],
        points: (0..60).map(point).collect(),
        timers: vec![vec![timer(3.0), timer(4.0)], vec![timer(6.0)]],
        ..ExperimentSummary::default()
    }
}

#[test]
fn a_sweep_over_many_numbers_is_a_grid_of_lines() {
    let grid = Grid::swept_in(&asked()).expect("30 delays");
    assert_eq!((grid.key.as_str(), grid.unit.as_str()), ("path.delay", "s"));
    let labels: Vec<_> = grid.lines.iter().map(|line| (line.label.as_str(), line.points.len())).collect();
    assert_eq!(labels, [("a", 30), ("b", 30)]);
    assert_eq!(grid.lines[1].points[2], (0.3, 5));
    let few = ExperimentSummary { points: asked().points[..40].to_vec(), ..asked() };
    assert_eq!(Grid::swept_in(&few), None);
}

#[test]
fn a_step_is_called_by_the_nearest_timer_of_its_sender() {
    let asked = asked();
    let grid = Grid::swept_in(&asked).expect("30 delays");
    let named = |line: usize, between| {
        let step = Step { at: 0.0, between, change: (1.0, 2.0) };
        grid.lines[line].timer(&asked, &step).map(|timer| timer.rtt_s)
    };
    // Round trips of 2.8 and 3.0 s; of 3.0 and 3.2, of which a timer rounded up to its clock is just before.
    assert_eq!(named(0, (13, 14)), Some(3.0));
    assert_eq!(named(0, (14, 15)), Some(3.0));
    assert_eq!(named(0, (19, 20)), Some(4.0));
    assert_eq!(named(0, (24, 25)), None, "5 s are near to neither");
    assert_eq!(named(1, (14, 15)), None, "the other sender's timer");
    assert_eq!(named(1, (29, 29)), Some(6.0));
}

#[test]
fn numbers_have_one_unit_or_are_brought_to_one() {
    assert_eq!(numbers(&["0.5 s", "2 s"]), Some((vec![0.5, 2.0], "s".to_owned())));
    assert_eq!(numbers(&["500 ms", "2 s"]), Some((vec![0.5, 2.0], "s".to_owned())));
    assert_eq!(numbers(&["1 kB", "1 MB"]), Some((vec![1e3, 1e6], "B".to_owned())));
    assert_eq!(numbers(&["1 %", "2 %"]), Some((vec![1.0, 2.0], "%".to_owned())));
    assert_eq!(numbers(&["3", "4"]), Some((vec![3.0, 4.0], String::new())));
    assert_eq!(numbers(&["linux-6", "reno"]), None);
}
