//! Paths: the shipped ones, and chains of elements of every kind.

use crate::{between, microseconds};
use farpath_elements::{
    Backoff, Duplex, ElementKind, ElementSpec, MarkThreshold, Oversize, PacketCount, QueueLimit, RadioSpec,
    RateChange, RouterLines, Turnaround, WaitKind,
};
use farpath_experiment::{Experiment, shipped_paths};
use farpath_path::PerDirection;
use farpath_tia1039::Priority;
use farpath_tia1039::router::RouterSettings;
use farpath_units::{Ber, Bytes, Duration, Instant, Probability, Rate};
use proptest::collection::{btree_set, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use std::sync::LazyLock;

/// A shipped path one time in four, else up to six elements of any kind.
pub fn paths() -> impl Strategy<Value = Vec<ElementSpec>> {
    let drawn = vec(elements(), 0..=6).prop_map(|kinds| {
        let named = kinds.into_iter().enumerate();
        named.map(|(place, kind)| ElementSpec { name: format!("element-{place}"), kind }).collect()
    });
    prop_oneof![3 => drawn, 1 => select(&SHIPPED[..])]
}

static SHIPPED: LazyLock<Vec<Vec<ElementSpec>>> = LazyLock::new(|| {
    let read = |name| {
        let text = format!("title = \"\"\npath = \"{name}\"\ntransfer.size = \"1 B\"");
        let experiment = Experiment::parse(&text, name, &[]).unwrap_or_else(|error| panic!("{error}"));
        experiment.point(0).scenario.path.clone()
    };
    shipped_paths().iter().map(|file| read(file.name)).collect()
});

/// An element of any kind.
fn elements() -> impl Strategy<Value = ElementKind> {
    let delay = || each_way(delays());
    let waits = (select(&WaitKind::ALL[..]), each_way(microseconds(0..=500_000)));
    let periods = each_way(option::weighted(0.7, between(3..=1000)));
    let numbers = btree_set(1..60_u64, 0..8).prop_map(|set| set.into_iter().collect::<Vec<_>>());
    prop_oneof![
        2 => delay().prop_map(|delay| ElementKind::Delay { delay }),
        1 => waits.prop_map(|(what, delay)| ElementKind::Wait { what, delay }),
        1 => each_way(0..70_u32).prop_map(|routers| ElementKind::Hops { routers }),
        3 => links(),
        1 => flow_routers(),
        1 => radios(),
        2 => (each_way(shares()), counts())
            .prop_map(|(loss_rate, count)| ElementKind::Bernoulli { loss_rate, count }),
        1 => (periods, option::of(0..10_u64), counts())
            .prop_map(|(every, phase, count)| ElementKind::EvenlySpaced { every, phase, count }),
        1 => (each_way(numbers), counts()).prop_map(|(packets, count)| ElementKind::Listed { packets, count }),
        1 => bursts(),
        1 => (each_way(error_rates()), bytes(0..=40), any::<bool>())
            .prop_map(|(ber, overhead, linear)| ElementKind::BitErrors { ber, overhead, linear }),
        1 => (each_way(shares()), microseconds(1..=1_000_000))
            .prop_map(|(share, extra_delay)| ElementKind::Reorder { share, extra_delay }),
        1 => each_way(shares()).prop_map(|share| ElementKind::Duplicate { share }),
    ]
}

/// The same both ways, or another value for each.
fn each_way<T: Clone + core::fmt::Debug>(
    value: impl Strategy<Value = T> + Clone,
) -> impl Strategy<Value = PerDirection<T>> {
    (value.clone(), option::of(value)).prop_map(|(forward, other)| {
        let reverse = other.unwrap_or_else(|| forward.clone());
        PerDirection { forward, reverse }
    })
}

fn bytes(range: std::ops::RangeInclusive<u64>) -> BoxedStrategy<Bytes> {
    between(range).prop_map(Bytes).boxed()
}

/// Mostly on Earth, sometimes as far as 1000 light-seconds.
fn delays() -> BoxedStrategy<Duration> {
    prop_oneof![8 => microseconds(0..=500_000), 1 => microseconds(500_000..=1_000_000_000)].boxed()
}

fn rates() -> BoxedStrategy<Rate> {
    let rate = |bit_per_s| Rate::from_bit_per_s(bit_per_s).expect("not zero");
    between(20_000..=10_000_000_000).prop_map(rate).boxed()
}

fn probabilities(most: f64) -> BoxedStrategy<Probability> {
    (0.0..=most).prop_map(|fraction| Probability::new(fraction).expect("at most 1")).boxed()
}

/// Of packets that are lost, held back or doubled.
fn shares() -> BoxedStrategy<Probability> {
    prop_oneof![1 => Just(Probability::ZERO), 4 => probabilities(0.05), 1 => probabilities(0.4)].boxed()
}

/// From 1e-9 to 1e-5 errors per bit, or none.
fn error_rates() -> BoxedStrategy<Ber> {
    let some = between(1..=10_000).prop_map(|errors| errors as f64 * 1e-9);
    prop_oneof![1 => Just(0.0), 4 => some].prop_map(|ber| Ber::new(ber).expect("at most 1")).boxed()
}

fn counts() -> impl Strategy<Value = PacketCount> {
    select(&[PacketCount::All, PacketCount::Data][..])
}

fn queues() -> BoxedStrategy<QueueLimit> {
    prop_oneof![
        Just(QueueLimit::Unlimited),
        between(0..=10_000).prop_map(QueueLimit::Packets),
        bytes(0..=10_000_000).prop_map(QueueLimit::Bytes),
    ]
    .boxed()
}

fn links() -> impl Strategy<Value = ElementKind> {
    let marks = prop_oneof![
        Just(MarkThreshold::Never),
        between(0..=20).prop_map(MarkThreshold::Packets),
        bytes(0..=100_000).prop_map(MarkThreshold::Bytes),
        microseconds(1..=100_000).prop_map(MarkThreshold::Delay),
    ];
    (each_way(rates()), each_way(queues()), each_way(marks.boxed()), bytes(0..=40), bytes(0..=100)).prop_map(
        |(rate, queue, mark, overhead, min_packet)| ElementKind::Link {
            rate,
            queue,
            mark,
            overhead,
            min_packet,
        },
    )
}

fn bursts() -> impl Strategy<Value = ElementKind> {
    let bad_to_good = (0.05..=1.0).prop_map(|fraction| Probability::new(fraction).expect("at most 1"));
    let rates = (probabilities(0.1), bad_to_good, probabilities(0.01), probabilities(1.0));
    (rates, any::<(bool, bool)>()).prop_map(
        |((good_to_bad, bad_to_good, loss_good, loss_bad), (forward, reverse))| {
            let active = PerDirection { forward, reverse };
            ElementKind::GilbertElliott { good_to_bad, bad_to_good, loss_good, loss_bad, active }
        },
    )
}

fn flow_routers() -> impl Strategy<Value = ElementKind> {
    let changes = vec((microseconds(1..=5_000_000), rates()), 0..4).prop_map(|steps| {
        let mut at = Instant::ZERO;
        let later = steps.into_iter().map(|(after, rate)| {
            at += after;
            RateChange { at, rate }
        });
        later.collect::<Vec<_>>()
    });
    let times = (
        microseconds(1_000..=10_000_000),
        microseconds(1_000..=1_000_000),
        microseconds(10_000..=20_000_000),
    );
    let guarantees = (shares(), between(0..=63));
    let settings = (any::<bool>(), times, guarantees, between(1..=1000), between(1..=1000)).prop_map(
        |(police, (hold, push_interval, available_timeout), guarantees, flows, starts)| RouterSettings {
            guaranteed: guarantees.0,
            preemption: Priority::new(guarantees.1 as u8).expect("a level"),
            police,
            hold,
            push_interval,
            available_timeout,
            flows: flows as u32,
            starts: starts as u32,
            ..RouterSettings::default()
        },
    );
    let line = (each_way(rates()), each_way(changes.boxed()), each_way(queues()), bytes(0..=40));
    (line, bytes(0..=64), each_way(settings.boxed())).prop_map(
        |((rate, changes, queue, overhead), min_packet, settings)| {
            let lines = RouterLines { rate, changes, queue, overhead, min_packet, settings };
            ElementKind::FlowRouter(Box::new(lines))
        },
    )
}

fn radios() -> impl Strategy<Value = ElementKind> {
    let short = || microseconds(0..=20_000);
    let turnaround = (short(), short(), short()).prop_map(|(rx_to_tx, tx_to_rx, retune)| Turnaround {
        rx_to_tx,
        tx_to_rx,
        retune,
    });
    let backoff =
        (microseconds(1..=50_000), 0..8_u32).prop_map(|(base, max_exponent)| Backoff { base, max_exponent });
    let times = (turnaround, short(), backoff, short(), microseconds(100_000..=300_000_000));
    let sizes = (
        option::of(Just(Bytes(40))),
        bytes(0..=30),
        option::of(Just(Bytes(20))),
        bytes(10_000..=200_000),
        bytes(296..=9_000),
    );
    let counts = (1..4_u32, between(20_000..=10_000_000), 1..7_u32, option::of(1..7_u32));
    let rules = (
        select(&[Duplex::Half, Duplex::Full][..]),
        select(&[Oversize::Fragment, Oversize::Refuse, Oversize::Icmp][..]),
        any::<bool>(),
        error_rates(),
    );
    (times, sizes, counts, rules).prop_map(|(times, sizes, counts, rules)| {
        let (turnaround, gap, backoff, processing, patience) = times;
        let (poll, header, link_ack, queue, mtu) = sizes;
        let (hops, bit_per_s, burst, attempts) = counts;
        let (duplex, oversize, flow_control, ber) = rules;
        let rate = Rate::from_bit_per_s(bit_per_s).expect("not zero");
        ElementKind::Radio(Box::new(RadioSpec {
            hops,
            rate,
            duplex,
            turnaround,
            poll,
            header,
            link_ack,
            burst,
            gap,
            backoff,
            queue,
            flow_control,
            ber,
            attempts,
            processing,
            mtu,
            oversize,
            patience,
            power: None,
        }))
    })
}
