//! What is advised: typed in by an operator, it has to be what the tables say, and worth it.

use crate::common;

use common::{FEW, ONE, PLAIN, SCALED, explained, overrides, plain};
use farpath_experiment::Experiment;
use farpath_explain::{BoundId, Effort, Explanation, Place, Verdict};

fn quick_path(delay: &str, rate: &str, loss: &str, size: &str, stack: &str) -> Experiment {
    let text = format!(
        "title = \"T\"\nsender.stack = \"{stack}\"\nreceiver.stack = \"{stack}\"\ntransfer.size = \"{size}\"\nhorizon = \"30 d\"\n\
         [[path]]\nelement = \"link\"\nrate = \"{rate}\"\nqueue = \"1 bdp\"\n[[path]]\nelement = \"loss\"\nrate = \"{loss}\"\n\
         [[path]]\nelement = \"delay\"\ndelay = \"{delay}\"\n"
    );
    Experiment::parse(&text, "quick_path.toml", &[]).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn speed(explanation: &Explanation, id: &str) -> f64 {
    let remedy = explanation.remedy(id).unwrap_or_else(|| panic!("{id}: {:?}", explanation.remedy_names()));
    remedy.simulated_speed_up.expect("both complete")
}

/// A greedy choice leaves BBR in 64 kB: what helps is BBR, SACK and a window together.
#[test]
fn the_best_set_is_searched_for() {
    let experiment = quick_path("37.5 ms", "100 Mbit/s", "0.1 %", "10 MB", "windows-2003");
    let explanation = explained(&experiment, FEW);
    let all = explanation.all.as_ref().expect("a set is better than each of its parts");
    for part in ["bbr", "receive-window"] {
        assert!(all.title.contains(part), "{}", all.title);
    }
    let best = explanation.remedies.iter().filter(|remedy| remedy.id != "explicit-rate");
    let best = best.filter_map(|remedy| remedy.simulated_speed_up).fold(0.0, f64::max);
    assert!(speed(&explanation, "all") > 1.05 * best, "{} {best}", speed(&explanation, "all"));
    let advised = explanation.advised().expect("something is worth it");
    assert!(advised.place.is_of_hosts() && advised.is_worth_it, "{advised:?}");
    assert!(!advised.commands.is_empty());
}

/// A file of a few segments never meets what a controller does differently: it is not offered one.
#[test]
fn a_small_file_is_offered_no_controller() {
    let explanation = explained(&quick_path("500 ms", "5 kbit/s", "1 %", "4 kB", "linux-6"), FEW);
    for id in ["bbr", "cubic", "hystart"] {
        assert!(explanation.remedy(id).is_none(), "{id}");
    }
}

/// Where a pitfall's usual way out makes it slower, neither table advises it.
#[test]
fn a_way_out_that_hurts_is_withdrawn() {
    for experiment in [
        plain(&["path.loss=2 %", "transfer.size=300 kB"]),
        plain(&[
            "path.link.rate={ forward = \"10 Mbit/s\", reverse = \"20 kbit/s\" }",
            "transfer.size=300 kB",
        ]),
        quick_path("500 ms", "5 kbit/s", "1 %", "4 kB", "linux-6"),
    ] {
        let explanation = explained(&experiment, FEW);
        for trap in explanation.traps.iter().filter(|trap| !trap.set.is_empty()) {
            let same = explanation.remedies.iter().find(|remedy| remedy.set == trap.set);
            assert!(same.is_none_or(|remedy| remedy.verdict != Verdict::Hurts), "{trap:?}");
        }
    }
}

/// A short file on a fast path is bound by its first window: a larger one is a remedy, with its risk, and the smallest of
/// those that are nearly the best.
#[test]
fn a_larger_initial_window_is_offered_with_its_risk() {
    let experiment = quick_path("50 ms", "100 Mbit/s", "0 %", "300 kB", "linux-6");
    let explanation = explained(&experiment, ONE);
    let windows: Vec<_> =
        explanation.remedies.iter().filter(|remedy| remedy.id.starts_with("initial-window-")).collect();
    let [window] = windows.as_slice() else { panic!("one of them: {:?}", explanation.remedy_names()) };
    assert_eq!((window.verdict, window.place), (Verdict::Helps, Place::Sender));
    let risk = window.risk.as_ref().expect("a burst has one");
    assert!(risk.contains("at once") && risk.contains("Before a queue of a quarter"), "{risk}");
    // What it would gain is told before it is advised: an eighth of the time is not worth a burst.
    let long = explained(&quick_path("50 ms", "100 Mbit/s", "0 %", "60 MB", "linux-6"), ONE);
    assert!(long.advice.as_ref().is_none_or(|id| !id.starts_with("initial-window")), "{:?}", long.advice);
}

/// A stack that doubles doubles: 3 segments reach 160 in six rounds, whatever the receiver withholds.
#[test]
fn rounds_of_slow_start_are_those_that_were_seen() {
    let experiment = plain(
        &[&SCALED[..], &["receiver.receive.buffer=4 MB", "sender.congestion.slow_start=all-acked"]].concat(),
    );
    let explanation = explained(&experiment, ONE);
    let bound = explanation.bounds.iter().find(|bound| bound.id == BoundId::SlowStart).expect("it is there");
    let rounds =
        bound.numbers.iter().find(|number| number.name.contains("recorded")).expect("recorded").value;
    assert!((5.0..=8.0).contains(&rounds), "{rounds}");
    assert!(bound.why.contains("recorded"), "{}", bound.why);
}

/// A queue of many bandwidth-delay products costs the transfer nothing and everybody else their delay.
#[test]
fn delay_under_the_transfer_is_a_result() {
    let changes =
        ["path.link.queue=2 MB", "path.delay=20 ms", "receiver.receive.buffer=4 MB", "transfer.size=20 MB"];
    let explanation = explained(&plain(&[&SCALED[..], &changes].concat()), ONE);
    let rtt = explanation.observed.rtt_s.expect("it is measured");
    assert!(rtt.p50 <= rtt.p95 && rtt.p95 <= rtt.p99, "{rtt:?}");
    assert!(rtt.p95 > 10.0 * 0.04, "a full queue of 2 MB at 10 Mbit/s is 1.6 s: {rtt:?}");
    let short = explanation.remedy("short-queue").expect("a shorter queue is offered");
    assert!(short.less_delay.expect("it is shorter") > 0.5, "{short:?}");
    assert_eq!(short.place, Place::Path);
    assert!(explanation.remedy("ecn").is_some_and(|ecn| ecn.less_delay.is_some()));
}

/// A download beside an upload: each is a group, and what slows the download is lifted for the download alone.
#[test]
fn unlike_flows_are_never_averaged() {
    let flows = format!(
        "{}\n[[flow]]\nsize = \"1 MB\"\n[[flow]]\nsize = \"4 MB\"\ndirection = \"reverse\"\n",
        PLAIN.replace("size = \"10 MB\"", "opener = \"receiver\"")
    );
    let experiment = Experiment::parse(
        &flows,
        "flows.toml",
        &overrides(&["path.link.rate={ forward = \"10 Mbit/s\", reverse = \"1 Mbit/s\" }"]),
    )
    .expect("it is one");
    let explanation = explained(&experiment, ONE);
    let [download, upload] = explanation.groups.as_slice() else { panic!("{:?}", explanation.groups) };
    assert_eq!((download.size, upload.size), (1_000_000, 4_000_000));
    assert_eq!(download.observed, explanation.observed);
    let time = |group: &farpath_explain::Group| group.observed.transfer_time_s.expect("it completes").mean;
    assert!(time(upload) > 2.0 * time(download), "{} {}", time(upload), time(download));
    // 4 MB over 1 Mbit/s are 32 s at the least.
    assert!(time(upload) > 32.0);
    assert_eq!(explanation.size, 1_000_000);

    let other = explained(&experiment, Effort { group: Some(1), ..ONE });
    assert_eq!((other.size, other.groups[0].number, other.groups[1].number), (4_000_000, 1, 0));
    let link = other.bounds.iter().find(|bound| bound.id == BoundId::Link).expect("it has one");
    assert!(link.lost_share.expect("it completes") > 0.5, "the upload's link is the slow one: {link:?}");
}

/// The time of all of a file is told, also where a part of it is simulated.
#[test]
fn a_part_is_carried_on_to_the_whole() {
    let sack = ["sender.recovery.sack=true", "receiver.recovery.sack=true"];
    let wide = [&SCALED[..], &sack, &["receiver.receive.buffer=4 MB", "transfer.size=60 MB"]].concat();
    let whole = explained(&plain(&wide), Effort { segments: 400_000_000, ..ONE });
    let part = explained(&plain(&wide), Effort { segments: 1_000_000, ..ONE });
    assert!(part.simulated_size.is_some() && whole.simulated_size.is_none());
    let exact = whole.observed.transfer_time_s.expect("it completes").mean;
    let carried = part.whole_time_s.expect("it is carried on");
    // Slow start and the one overflow are in the part; the rest is the link's rate.
    assert!((carried / exact - 1.0).abs() < 0.1, "{carried} {exact}");
}

#[test]
fn the_answer_says_which_input_it_depends_on() {
    let explanation = explained(&quick_path("50 ms", "20 Mbit/s", "1 %", "3 MB", "reno-sack"), FEW);
    let inputs: Vec<&str> = explanation.sensitivity.iter().map(|input| input.input).collect();
    assert_eq!(inputs.len(), 4, "{inputs:?}");
    assert!(
        ["loss", "delay"].contains(&inputs[0]),
        "Mathis: MSS / (RTT sqrt p), whatever the link: {inputs:?}"
    );
    let spans: Vec<f64> = explanation.sensitivity.iter().filter_map(|input| input.span).collect();
    assert!(spans.is_sorted_by(|a, b| a >= b) && spans.iter().all(|span| *span >= 1.0), "{spans:?}");
}

/// Loss halves the window of one connection of several.
#[test]
fn several_connections_are_a_remedy_with_their_unfairness() {
    let explanation = explained(&quick_path("100 ms", "50 Mbit/s", "0.5 %", "5 MB", "reno-sack"), FEW);
    let several = explanation.remedies.iter().find(|remedy| remedy.id.starts_with("connections-"));
    let several = several.unwrap_or_else(|| panic!("{:?}", explanation.remedy_names()));
    assert_eq!(several.verdict, Verdict::Helps);
    assert!(several.simulated_speed_up.expect("both complete") > 1.5, "{several:?}");
    assert!(several.risk.as_ref().is_some_and(|risk| risk.contains("shares")), "{several:?}");
    for id in ["keep-open", "split-proxy", "fec"] {
        assert!(explanation.priced.iter().any(|remedy| remedy.id == id) || id == "keep-open", "{id}");
    }
}
