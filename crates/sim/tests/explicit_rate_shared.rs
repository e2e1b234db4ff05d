//! Flows that share a flow router: who gets how much, and what waits (claims R001-43 and, at one distance, R001-48).

mod common;

use common::{delay, element, rate, setup, stacks, time, upload};
use farpath_path::{Direction, ElementKind, ElementSpec, PerDirection, QueueLimit, RouterLines};
use farpath_sim::{End, FlowSetup, FlowView, Observer, Packet, PacketEvent, simulate};
use farpath_tcp::Config;
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
        settings: RouterSettings::default(),
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
