use super::*;
use crate::html::summary_of_experiment;
use crate::tables::ComparisonTable;
use farpath_engine::{jobs, provenance, simulate};
use farpath_experiment::Experiment;
use farpath_run::Run;

/// The figures of a sweep over the loss of a channel, two seeds a point.
fn of_losses(losses: &str, horizon: &str) -> Vec<Figure> {
    let shipped = farpath_experiment::shipped_experiments();
    let file = shipped.iter().find(|file| file.name == "noisy-channel").expect("it ships");
    let changes = [
        "seeds=2",
        "transfer.size=200 kB",
        &format!("horizon={horizon}"),
        &format!("sweep.path.loss={losses}"),
    ];
    let text = file.text.split("[published]").next().expect("the part before it");
    let changes: Vec<_> = changes.iter().map(|text| text.parse().expect("a change")).collect();
    let experiment = Experiment::parse(text, file.name, &changes).expect("good");
    let run = |job: &farpath_engine::Job| -> Run {
        let point = &experiment.point(job.point);
        simulate(point, job.seed.expect("simulated"), provenance(&experiment, point)).expect("simulated")
    };
    let jobs = jobs(&experiment, &[Engine::Simulate]);
    let runs: Vec<Run> = jobs.iter().map(run).collect();
    let asked = summary_of_experiment(&experiment, runs.len() as u64);
    figures(&asked, &ComparisonTable::from_runs(&asked, &runs))
}

#[test]
fn the_axis_has_every_point_in_the_order_of_the_file_whatever_came_out() {
    // Nothing completes at the first point; the second has no interval, with an axis from the marks it would be last.
    let figures = of_losses(r#"["100 %", "20 %", "0 %", "1 %"]"#, "2 min");
    for figure in &figures {
        let domain = figure.set.iter().find(|(pointer, _)| *pointer == "/encoding/x/scale/domain");
        let points: Value = vec!["100 %", "20 %", "0 %", "1 %"].into();
        assert_eq!(domain.map(|(_, points)| points), Some(&points), "{}", figure.title);
    }
    assert!(!figures.is_empty());
}

#[test]
fn an_interval_that_reaches_zero_is_cut_where_it_is_drawn_but_said_in_full() {
    // At 10 % two seeds differ by more than their mean.
    let figure = &of_losses(r#"["0 %", "10 %"]"#, "2 min")[0];
    let json = figure.to_json();
    let column = |name: &str| -> Vec<f64> {
        let values = json["data"]["points"][name].as_array().expect("a column");
        values.iter().map(|value| value.as_f64().expect("two seeds have an interval")).collect()
    };
    let (mean, half, low, high) = (column("time_s"), column("interval_s"), column("low_s"), column("high_s"));
    assert_eq!(half[0], 0.0, "without loss all seeds are alike");
    assert!(half[1] > mean[1], "{half:?} {mean:?}");
    assert!((low[1] - mean[1] * 0.1).abs() < 1e-6, "{low:?}");
    assert!((high[1] - mean[1] - half[1]).abs() < 1e-6, "{high:?}");
    assert!(figure.caption.contains("cut off"), "{}", figure.caption);
}

#[test]
fn a_legend_has_one_order_whoever_has_the_first_mark() {
    let mark = |who| Mark { point: "0 %", who, value: 1.0, interval: None };
    let marks = [mark("simulated"), mark("predicted"), mark("simulated"), mark("published")];
    assert_eq!(who(&marks), Value::from(vec!["published", "predicted", "simulated"]));
}
