//! What a segment goes through, one thing at a time: `cargo bench -p farpath-bench`, and `-- NAME` for those whose names have it.
//!
//! Criterion says how each compares with its last run here, on this machine. What holds on any machine is `make bench-gate`, which
//! counts instructions, and the ratios of `make bench`.

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use farpath_bench::gate;
use farpath_diagnose::{Diagnosis, read};
use farpath_engine::simulate_captured;
use farpath_experiment::Experiment;
use farpath_predict::predict;
use farpath_run::Provenance;
use std::hint::black_box;

const FILE: &str = "title = 'hot'
[[path]]
element = 'link'
rate = '100 Mbit/s'
queue = '1 bdp'
[[path]]
element = 'loss'
rate = '0.1 %'
[[path]]
element = 'delay'
delay = '20 ms'
[sender]
stack = 'linux-6'
[receiver]
stack = 'linux-6'
[transfer]
size = '5 MB'
";

fn experiment() -> Experiment {
    Experiment::parse(FILE, "hot.toml", &[]).unwrap_or_else(|error| panic!("{error}"))
}

/// The rows of the gate, in segments.
fn simulator(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("simulate");
    group.sample_size(10);
    for name in gate::rows() {
        let run = || gate::run_row(name, 1).unwrap_or_else(|error| panic!("{error}"));
        group.throughput(Throughput::Elements(run()));
        group.bench_function(name, |bencher| bencher.iter(run));
    }
    group.finish();
}

fn prediction(criterion: &mut Criterion) {
    let experiment = experiment();
    let point = experiment.point(0);
    criterion.bench_function("predict one lossy file", |bencher| {
        bencher.iter(|| predict(black_box(&point), Provenance::default()));
    });
}

/// In packets, read and diagnosed.
fn diagnosis(criterion: &mut Criterion) {
    let mut capture = Vec::new();
    simulate_captured(&experiment().point(0), 1, Provenance::default(), 96, &mut capture)
        .unwrap_or_else(|error| panic!("{error}"));
    let diagnosed = |capture: &[u8]| {
        let mut diagnosis = Diagnosis::default();
        let frames = read(capture, |frame| diagnosis.frame(frame)).expect("it is a capture");
        (frames, diagnosis.finish())
    };
    let mut group = criterion.benchmark_group("diagnose");
    group.throughput(Throughput::Elements(diagnosed(&capture).0));
    group.bench_function("a capture of a lossy file", |bencher| {
        bencher.iter_batched(|| &capture[..], diagnosed, BatchSize::SmallInput);
    });
    group.finish();
}

criterion_group!(hot_paths, simulator, prediction, diagnosis);
criterion_main!(hot_paths);
