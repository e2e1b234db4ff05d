//! How likely connections open and transfers complete: closed form beside simulation, within the binomial interval.

use crate::common::runs;
use farpath_run::{Engine, FlowRow, PointSummary, Share, Statistic};
use farpath_units::Duration;

/// What the normal distribution has once in a hundred thousand: a test of some dozen comparisons shall not fail by chance,
/// though its seeds are fixed.
const Z: f64 = 4.42;

fn experiment(stack: &str, owd: &str, loss: &str, rest: &str) -> String {
    format!(
        "title = \"lossy\"\nseeds = 400\nhorizon = \"48 h\"\n[[path]]\nelement = \"delay\"\ndelay = \"{owd}\"\n[[path]]\n\
         element = \"loss\"\nrate = {loss}\n[sender]\nstack = \"{stack}\"\n[receiver]\nstack = \"{stack}\"\n{rest}"
    )
}

/// Predicted and simulated, by the two shares of a summary.
fn shares(text: &str, of: fn(&PointSummary) -> Option<Share>) -> (f64, Share) {
    let summaries = PointSummary::of_runs(&runs(text, &[Engine::Predict, Engine::Simulate]));
    let share = |engine| {
        let summary = summaries.iter().find(|summary| summary.engine == engine);
        of(summary.expect("it was asked")).expect("it is known")
    };
    (share(Engine::Predict).share, share(Engine::Simulate))
}

/// Where the closed form is no bound, it is within the interval; where it is one, not above it.
fn wrong(text: &str, what: &str, of: fn(&PointSummary) -> Option<Share>, bound: bool) -> Option<String> {
    let (predicted, simulated) = shares(text, of);
    let (low, high) = simulated.interval_of(Z).expect("runs");
    let fits = predicted <= high + 1e-9 && (bound || predicted >= low - 1e-9);
    (!fits).then(|| {
        format!("{what}: predicted {predicted:.4}, simulated {:.4} ({low:.4} to {high:.4})", simulated.share)
    })
}

const ONE: &str = "[transfer]\nsize = \"1 B\"\nopener = \"sender\"";

#[test]
fn connections_open_and_lone_segments_arrive_as_often_as_predicted() {
    let both = "\"30 %\"";
    let apart = "{ forward = \"40 %\", reverse = \"10 %\" }";
    let back = "{ forward = \"10 %\", reverse = \"40 %\" }";
    let cases = [
        ("linux-6", "100 ms", "\"60 %\""),
        ("linux-6", "14 s", both),
        ("linux-6", "30 s", apart),
        ("linux-6", "43 s", back),
        ("linux-6", "60 s", both),
        ("opnet-11.5", "2 s", apart),
        ("opnet-11.5", "12 s", back),
        ("opnet-11.5", "20 s", both),
        ("windows-2003", "1 s", both),
        ("windows-2003", "6 s", apart),
        ("windows-modern", "3 s", both),
        ("freebsd", "10 s", both),
        ("rfc-5681", "5 s", back),
    ];
    let mut all = Vec::new();
    for (stack, owd, loss) in cases {
        let text = experiment(stack, owd, loss, ONE);
        let what = format!("{stack} {owd} {loss}");
        all.extend(wrong(&text, &format!("{what}: opened"), |summary| summary.opened, false));
        all.extend(wrong(&text, &format!("{what}: completed"), |summary| summary.completed, false));
    }
    assert_eq!(all, [""; 0]);
}

#[test]
fn a_download_opens_from_the_other_end() {
    let apart = "{ forward = \"40 %\", reverse = \"20 %\" }";
    for request in ["0 B", "100 B"] {
        let rest = format!("[transfer]\nsize = \"1 B\"\nopener = \"receiver\"\nrequest = \"{request}\"");
        for owd in ["100 ms", "12 s"] {
            let text = experiment("linux-6", owd, apart, &rest);
            let what = format!("request {request}, {owd}");
            assert_eq!(wrong(&text, &format!("{what}: opened"), |summary| summary.opened, false), None);
            assert_eq!(wrong(&text, &format!("{what}: completed"), |summary| summary.completed, false), None);
        }
    }
}

#[test]
fn a_file_arrives_at_least_as_often_as_its_segments_would_alone() {
    for (stack, loss, retries) in
        [("rfc-5681", "\"30 %\"", 3), ("linux-6", "\"40 %\"", 4), ("reno-1990", "\"20 %\"", 2)]
    {
        let rest = "[transfer]\nsize = \"30 kB\"";
        let text = experiment(stack, "100 ms", loss, rest)
            .replace("[sender]", &format!("[sender]\nhandshake.data_retries = {retries}"));
        assert_eq!(wrong(&text, stack, |summary| summary.completed, true), None);
    }
}

#[test]
fn mean_times_are_the_simulations() {
    for opener in ["sender", "receiver"] {
        let text = experiment("linux-6", "2 s", "\"40 %\"", &ONE.replace("sender", opener));
        let runs = runs(&text, &[Engine::Predict, Engine::Simulate]);
        let agree = |what, of: fn(&FlowRow) -> Option<Duration>| {
            let times = |engine| {
                let of =
                    runs.iter().filter(move |run| run.engine == engine).filter_map(|run| of(&run.flows[0]));
                of.map(Duration::as_secs_f64)
            };
            let predicted = times(Engine::Predict).next().expect("it comes so far");
            let simulated = Statistic::from_values(times(Engine::Simulate)).expect("some do");
            let error = simulated.sd.expect("several") / (simulated.n as f64).sqrt();
            assert!(
                (predicted - simulated.mean).abs() < Z * error,
                "{opener}, {what}: {predicted} {simulated:?}"
            );
        };
        agree("open", |flow| flow.connect_time);
        if opener == "sender" {
            agree("arrived", |flow| flow.transfer_time);
        }
    }
}
