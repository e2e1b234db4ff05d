//! What the benchmark simulates, here and in ns-3.

use farpath_elements::{
    Bernoulli, Delay, ElementKind, ElementSpec, Link, MarkThreshold, PacketCount, QueueLimit, Trace,
    TraceLink,
};
use farpath_experiment::Stack;
use farpath_path::PerDirection;
use farpath_sim::{FlowResult, FlowSetup, Setup};
use farpath_tcp::Config;
use farpath_units::{Bytes, Duration, Probability, Rate};

/// Long flows over 1 Gbit/s.
#[derive(Debug, Clone, Copy)]
pub struct Long {
    /// How many that begin together.
    pub flows: u64,
    /// One way.
    pub delay_ms: u64,
    /// Receive buffer.
    pub window: u64,
    /// Bytes of each.
    pub size: u64,
    /// Packets that wait at most; 0 is without limit.
    pub queue: u64,
    /// When to stop; 0 is when all is done.
    pub stop_ms: u64,
}

impl Long {
    /// For our simulator, with `stack` at both ends.
    pub fn setup(&self, stack: &Config) -> Setup {
        let mut stack = stack.clone();
        stack.receive.buffer = Bytes(self.window);
        let queue = if self.queue > 0 { QueueLimit::Packets(self.queue) } else { QueueLimit::Unlimited };
        let horizon =
            if self.stop_ms > 0 { Duration::from_millis(self.stop_ms) } else { Duration::from_secs(86_400) };
        let flows = vec![FlowSetup::upload(&stack, Bytes(self.size)); self.flows as usize];
        Setup { path: vec![gigabit(queue), delay(self.delay_ms)], flows, seed: 1, horizon }
    }

    /// The same over a link whose rate follows a trace: another one each 10 ms, around that of the link.
    pub fn over_trace(&self, stack: &Config) -> Setup {
        let mut setup = self.setup(stack);
        let step =
            |number: u64| (Duration::from_millis(10 * number), 900_000_000 + number * 7919 % 200 * 1_000_000);
        let trace = Trace::of_rates((0..100).map(step).collect(), Some(Duration::from_secs(1)));
        let kind = ElementKind::TraceLink(TraceLink {
            trace: PerDirection::both(trace.expect("rates above zero")),
            queue: PerDirection::both(QueueLimit::Unlimited),
            aqm: PerDirection::default(),
            overhead: Bytes(2),
        });
        setup.path[0] = element("link", kind);
        setup
    }

    /// The element that delays, both ways.
    pub fn delay(&self) -> ElementSpec {
        delay(self.delay_ms)
    }

    /// For ns-3's program: the nearest it has to today's Linux.
    pub fn arguments(&self) -> Vec<String> {
        let mut arguments: Vec<String> = [
            "--control=ns3::TcpCubic",
            "--recovery=ns3::TcpPrrRecovery",
            "--sack=true",
            "--timestamps=true",
            "--window-scaling=true",
            "--initial-window=10",
            "--initial-rto=1000000000",
            "--min-rto=200000000",
            "--ack-delay=40000000",
            "--segment=1448",
            "--rate=1000000000",
        ]
        .map(str::to_owned)
        .into();
        arguments.extend([
            format!("--flows={}", self.flows),
            format!("--delay={}", self.delay_ms * 1_000_000),
            format!("--window={}", self.window),
            format!("--size={}", self.size),
            format!("--queue={}", self.queue),
            format!("--stop={}", self.stop_ms * 1_000_000),
        ]);
        arguments
    }
}

/// Today's Linux, `linux-6`, without its bound on what is written and not acknowledged: the receive window is what varies.
pub fn today() -> Config {
    let mut stack = Stack::load("linux-6").expect("it is shipped").config;
    stack.send.buffer = None;
    stack
}

/// The high-BER paper's download: 10 MB through a window of six segments, 20 ms each way, loss of 1 %.
pub fn noisy(seed: u64) -> Setup {
    lossy(seed, 0.01, 10_000_000)
}

/// The same with another loss rate and size.
pub fn lossy(seed: u64, rate: f64, size: u64) -> Setup {
    let loss_rate =
        PerDirection { forward: Probability::new(rate).expect("a probability"), reverse: Probability::ZERO };
    let loss = ElementKind::Bernoulli(Bernoulli { loss_rate, count: PacketCount::All });
    let path = vec![gigabit(QueueLimit::Unlimited), delay(20), element("loss", loss)];
    let mut stack = Config::default();
    stack.receive.buffer = Bytes(8760);
    Setup {
        path,
        flows: vec![FlowSetup::upload(&stack, Bytes(size))],
        seed,
        horizon: Duration::from_secs(86_400),
    }
}

/// The same for ns-3.
pub fn noisy_arguments() -> Vec<String> {
    ["--size=10000000", "--window=8760", "--loss=0.01", "--seeds=20"].map(str::to_owned).into()
}

/// Segments with payload that were sent.
pub fn data_segments(results: &[FlowResult]) -> u64 {
    results.iter().map(|flow| flow.sender.sender().stats().data_segments).sum()
}

fn element(name: &str, kind: ElementKind) -> ElementSpec {
    ElementSpec { name: name.to_owned(), kind }
}

fn gigabit(queue: QueueLimit) -> ElementSpec {
    let kind = ElementKind::Link(Link {
        rate: PerDirection::both(Rate::from_bit_per_s(1_000_000_000).expect("not zero")),
        queue: PerDirection { forward: queue, reverse: QueueLimit::Unlimited },
        overhead: Bytes(2),
        min_packet: Bytes::ZERO,
        mark: PerDirection::both(MarkThreshold::Never),
        aqm: PerDirection::default(),
    });
    element("link", kind)
}

fn delay(each_way_ms: u64) -> ElementSpec {
    element(
        "delay",
        ElementKind::Delay(Delay { delay: PerDirection::both(Duration::from_millis(each_way_ms)) }),
    )
}
