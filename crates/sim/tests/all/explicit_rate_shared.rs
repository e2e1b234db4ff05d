//! Flows that share a flow router: who gets how much, and what waits (claims R001-43 and, at one distance, R001-48).

use crate::common::{delay, element, rate, setup, stacks, time, upload};
use farpath_elements::{ElementKind, ElementSpec, QueueLimit, RouterLines};
use farpath_path::{Direction, PerDirection};
use farpath_sim::{End, FlowSetup, FlowView, Observer, Packet, PacketEvent, simulate};
use farpath_sim::{Plain, RateOutcome};
use farpath_tcp::Config;
use farpath_tcp::config::RateKind;
use farpath_tia1039::router::RouterSettings;
use farpath_units::{Bytes, Instant, Rate};

const LINE: &str = "40 Mbit/s";
const FLOWS: u32 = 5;

fn router() -> ElementSpec {
    let lines = RouterLines {
        rate: PerDirection::both(rate(LINE)),
        changes: PerDirection::default(),
        queue: PerDirection::both(QueueLimit::Bytes(Bytes(250_000))),
        overhead: Bytes(0),
        min_packet: Bytes::ZERO,
        settings: PerDirection::both(RouterSettings::default()),
    };
    element("router", ElementKind::FlowRouter(Box::new(lines)))
}

/// What each flow has delivered between two times, and what waited whenever something happened then.
struct Shares {
    from: Instant,
    to: Instant,
    bytes: Vec<u64>,
    waiting: Vec<f64>,
}

impl Observer for Shares {
    fn packet(&mut self, now: Instant, event: PacketEvent, _direction: Direction, packet: &Packet) {
        if event == PacketEvent::Received && packet.from == End::Sender && (self.from..self.to).contains(&now)
        {
            self.bytes[packet.flow as usize] += packet.segment.ipv4_size().0;
        }
    }

    fn state(&mut self, now: Instant, flow: FlowView<'_>) {
        if (self.from..self.to).contains(&now) {
            self.waiting.extend(flow.backlog().map(|waiting| waiting.0 as f64));
        }
    }
}

impl Shares {
    /// Jain, Chiu, Hawe 1984: 1 where all have the same.
    fn fairness(&self) -> f64 {
        let (sum, squares) = self.bytes.iter().fold((0.0, 0.0), |(sum, squares), &bytes| {
            (sum + bytes as f64, squares + (bytes as f64).powi(2))
        });
        sum * sum / (squares * self.bytes.len() as f64)
    }

    /// Share of the line that was used.
    fn utilization(&self) -> f64 {
        let bits = self.bytes.iter().sum::<u64>() as f64 * 8.0;
        bits / (self.to - self.from).as_secs_f64() / rate(LINE).bit_per_s() as f64
    }

    fn deviation(&self) -> f64 {
        let mean = self.waiting.iter().sum::<f64>() / self.waiting.len() as f64;
        let squares: f64 = self.waiting.iter().map(|waiting| (waiting - mean).powi(2)).sum();
        (squares / self.waiting.len() as f64).sqrt()
    }
}

fn stack(wanted: Option<Rate>) -> Config {
    let mut stack = stacks::linux(64 << 20);
    stack.explicit_rate.wanted = wanted;
    stack.explicit_rate.early_window = true;
    stack
}

/// Flows of 60 MB, one more each second; what they had while all of them were there for some time.
fn shared(wanted: Option<Rate>) -> (Shares, u64) {
    let stack = stack(wanted);
    let start = |number: u32| Instant::ZERO + farpath_units::Duration::from_secs(u64::from(number));
    let flows = (0..FLOWS).map(|number| FlowSetup { start: start(number), ..upload(&stack, 60_000_000) });
    let mut seen =
        Shares { from: time("10 s"), to: time("20 s"), bytes: vec![0; FLOWS as usize], waiting: Vec::new() };
    let path = vec![router(), delay("20 ms")];
    let ended = simulate(&setup(path, flows.collect(), 1), &mut seen).expect("a sound path");
    (seen, ended.iter().map(|flow| flow.sender.sender().stats().retransmissions).sum())
}

#[test]
fn flows_that_come_one_after_the_other_share_equally_without_a_queue() {
    let (asking, lost) = shared(Some(rate(LINE)));
    assert!(asking.fairness() > 0.99, "{:?}", asking.bytes);
    // 0.98 of it is granted, 2 % of that kept for newcomers; rates are rounded down.
    let used = asking.utilization();
    assert!((0.92..0.98).contains(&used), "{used}");
    assert_eq!(lost, 0);
    let (cubic, _) = shared(None);
    let (smooth, rough) = (asking.deviation(), cubic.deviation());
    assert!(3.0 * smooth < rough, "the queue's standard deviation: {smooth} B beside CUBIC's {rough} B");
}

#[test]
fn what_a_flow_had_that_ends_is_the_others_at_once() {
    let stack = stack(Some(rate(LINE)));
    let flows = [5_000_000, 40_000_000].map(|size| upload(&stack, size));
    // The short one has half of the line, and is over in 2.1 s or a little more.
    let mut seen = Shares { from: time("3 s"), to: time("6 s"), bytes: vec![0; 2], waiting: Vec::new() };
    let path = vec![router(), delay("20 ms")];
    let ended = simulate(&setup(path, flows.to_vec(), 1), &mut seen).expect("a sound path");
    assert!(ended[0].ended_at < time("2.8 s"), "{}", ended[0].ended_at);
    assert_eq!(seen.bytes[0], 0);
    // 0.98 of the line, and 0.98 of that.
    assert!(seen.utilization() > 0.95, "{}", seen.utilization());
}

#[test]
fn who_is_far_gets_as_much_as_who_is_near() {
    let shares = |wanted: Option<Rate>| {
        let stack = stack(wanted);
        let flow = |access: &str| FlowSetup {
            access: farpath_units::Duration::from_millis(access.parse().expect("a number")),
            ..upload(&stack, 100_000_000)
        };
        let mut seen = Shares { from: time("5 s"), to: time("15 s"), bytes: vec![0; 3], waiting: Vec::new() };
        let setup = setup(vec![router()], ["5", "20", "80"].map(flow).to_vec(), 1);
        let flows = simulate(&setup, &mut seen).expect("a sound path");
        let rtts: Vec<_> = flows.iter().filter_map(|flow| flow.sender.sender().rtt().min_rtt()).collect();
        assert!(rtts.windows(2).all(|pair| pair[0] * 3 < pair[1]), "10, 40 and 160 ms: {rtts:?}");
        seen
    };
    let asking = shares(Some(rate(LINE)));
    assert!(asking.fairness() > 0.999, "{:?}", asking.bytes);
    assert!(asking.utilization() > 0.92, "{}", asking.utilization());
    let cubic = shares(None);
    assert!(cubic.fairness() < 0.97, "{:?}", cubic.bytes);
}

/// An end that asks for a guarantee.
fn guaranteed(wanted: &str, preemption: u8) -> Config {
    let mut stack = stack(Some(rate(wanted)));
    (stack.explicit_rate.kind, stack.explicit_rate.preemption) = (RateKind::Guaranteed, preemption);
    stack
}

#[test]
fn guarantees_are_admitted_while_they_fit_and_preempted_by_priority() {
    // 36 of the 40 Mbit/s can be guaranteed. The third one preempts the second: of lower priority, and of the two the newer.
    // The fourth has nobody below it, and the fifth shares what is left.
    let flow =
        |start: &str, size: u64, stack: &Config| FlowSetup { start: time(start), ..upload(stack, size) };
    let flows = vec![
        flow("0 s", 10_000_000, &guaranteed("15 Mbit/s", 32)),
        flow("0.5 s", 10_000_000, &guaranteed("15 Mbit/s", 32)),
        flow("1 s", 10_000_000, &guaranteed("15 Mbit/s", 40)),
        flow("1.5 s", 5_000_000, &guaranteed("15 Mbit/s", 20)),
        flow("2 s", 2_000_000, &stack(Some(rate(LINE)))),
    ];
    let setup = setup(vec![router(), delay("20 ms")], flows, 1);
    let flows = simulate(&setup, &mut farpath_sim::Silent).expect("a sound path");
    let outcomes: Vec<RateOutcome> =
        flows.iter().map(|flow| flow.driver.as_ref().expect("it asks").outcome()).collect();
    assert_eq!(
        outcomes,
        [
            RateOutcome::Granted,
            RateOutcome::Plain(Plain::Withdrawn),
            RateOutcome::Granted,
            RateOutcome::Plain(Plain::Refused),
            RateOutcome::Granted,
        ]
    );
    let seconds: Vec<f64> = setup
        .flows
        .iter()
        .zip(&flows)
        .map(|(setup, flow)| flow.transfer_time(setup.start).expect("it completes").as_secs_f64())
        .collect();
    // 10 MB at 15 Mbit/s of packets take 5.5 s, whoever else there is.
    assert!((5.4..5.8).contains(&seconds[0]) && (5.4..5.8).contains(&seconds[2]), "{seconds:?}");
    // What lost its guarantee, or never had one, goes on behind the others.
    assert!(seconds[1] > 6.0 && seconds[3] > 3.0, "{seconds:?}");
    assert_eq!(flows[0].sender.sender().stats().retransmissions, 0);
    assert_eq!(flows[2].sender.sender().stats().retransmissions, 0);
}

#[test]
fn a_composite_rate_keeps_its_guarantee_and_shares_the_rest() {
    let mut composite = stack(Some(rate(LINE)));
    (composite.explicit_rate.kind, composite.explicit_rate.guaranteed) =
        (RateKind::Composite, Some(rate("10 Mbit/s")));
    let flows = vec![upload(&composite, 60_000_000), upload(&stack(Some(rate(LINE))), 60_000_000)];
    let mut seen = Shares { from: time("3 s"), to: time("8 s"), bytes: vec![0; 2], waiting: Vec::new() };
    simulate(&setup(vec![router(), delay("20 ms")], flows, 1), &mut seen).expect("a sound path");
    // 10, and half of 29.2 less what is kept for newcomers: 24.3 and 14.3 Mbit/s.
    let ratio = seen.bytes[0] as f64 / seen.bytes[1] as f64;
    assert!((1.6..1.8).contains(&ratio), "{:?}", seen.bytes);
}
