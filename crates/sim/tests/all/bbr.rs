//! BBR and pacing on whole paths; the figures of a kernel beside it are in docs/validation.md.

use crate::common::{bottleneck, delay, loss, run, setup, stacks, upload};
use farpath_elements::QueueLimit;
use farpath_path::{Direction, DropCause};
use farpath_sim::{End, FlowResult, FlowView, Observer, Packet, PacketEvent, Silent, simulate};
use farpath_tcp::Config;
use farpath_tcp::config::CongestionControlKind;
use farpath_units::{Duration, Instant};

fn stack(control: CongestionControlKind) -> Config {
    let mut stack = stacks::linux(128 << 20);
    stack.congestion.control = control;
    stack
}

/// `size` bytes over 100 Mbit/s with a queue of 1000 packets, as the measurements with Linux's BBR were made.
fn transfer(stack: &Config, rtt_ms: u64, per: f64, size: u64, seed: u64) -> FlowResult {
    let path = vec![
        bottleneck("100 Mbit/s", 0, QueueLimit::Packets(1000)),
        loss(per, per),
        delay(&format!("{} us", rtt_ms * 500)),
    ];
    run(&setup(path, vec![upload(stack, size)], seed)).remove(0)
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

#[test]
fn eight_megabytes_take_as_long_as_on_linux() {
    // Seconds, each one transfer of Linux 6.18; where nothing is random it is within 2 %, else the median of nine seeds
    // is within a sixth: the kernel's figure is one draw.
    for (rtt_ms, per, kernel) in [
        (10, 0.0, 0.70),
        (40, 0.0, 0.91),
        (500, 0.0, 5.49),
        (1000, 0.0, 11.0),
        (10, 0.002, 0.72),
        (10, 0.01, 0.72),
        (10, 0.02, 0.75),
        (40, 0.002, 0.95),
        (40, 0.01, 0.97),
        (40, 0.02, 1.17),
        (500, 0.002, 6.44),
    ] {
        let seconds = |seed| {
            let flow = transfer(&stack(CongestionControlKind::Bbr), rtt_ms, per, 8_000_000, seed);
            flow.transfer_time(Instant::ZERO).expect("it completes").as_secs_f64()
        };
        let seeds = if per > 0.0 { 1..=9 } else { 1..=1 };
        let simulated = median(seeds.map(seconds).collect());
        let tolerance = if per > 0.0 { 1.0 / 6.0 } else { 0.02 };
        assert!(
            (simulated / kernel - 1.0).abs() < tolerance,
            "{rtt_ms} ms, {per}: {simulated} s, in the kernel {kernel} s"
        );
    }
}

#[test]
fn losses_do_not_slow_it_down() {
    let seconds = |control| {
        let flow = transfer(&stack(control), 40, 0.02, 20_000_000, 3);
        flow.transfer_time(Instant::ZERO).expect("it completes").as_secs_f64()
    };
    let (bbr, cubic) = (seconds(CongestionControlKind::Bbr), seconds(CongestionControlKind::Cubic));
    // 20 MB take 1.65 s at the least.
    assert!(bbr < 2.5 && cubic > 10.0 * bbr, "BBR {bbr} s, CUBIC {cubic} s");
}

#[test]
fn startup_overflows_a_queue_below_a_product_and_steady_state_does_not() {
    let flow = transfer(&stack(CongestionControlKind::Bbr), 500, 0.0, 200_000_000, 1);
    let drops = flow.drops.forward.count_of(DropCause::QueueOverflow);
    // Linux: 15 to 21 thousand of 138 thousand packets.
    assert!((12_000..24_000).contains(&drops), "{drops}");
    let time = flow.transfer_time(Instant::ZERO).expect("it completes").as_secs_f64();
    assert!((21.0..26.0).contains(&time), "{time} s; 22.7 s in the kernel");
}

/// When the sender's data left, and the queue as it was seen.
#[derive(Default)]
struct Departures {
    times: Vec<Instant>,
    backlog: Vec<u64>,
    least_window: u64,
}

impl Observer for Departures {
    fn packet(&mut self, now: Instant, event: PacketEvent, _direction: Direction, packet: &Packet) {
        if event == PacketEvent::Sent && packet.from == End::Sender && packet.segment.len > 0 {
            self.times.push(now);
        }
    }

    fn state(&mut self, now: Instant, flow: FlowView<'_>) {
        if now > Instant::ZERO + Duration::from_secs(2) {
            self.backlog.push(flow.backlog().map_or(0, |backlog| backlog.0));
            let cwnd = flow.sender.sender().window().cwnd;
            self.least_window = if self.least_window == 0 { cwnd } else { self.least_window.min(cwnd) };
        }
    }
}

impl Departures {
    fn of(stack: &Config, size: u64) -> Departures {
        let path = vec![bottleneck("20 Mbit/s", 0, QueueLimit::Packets(1000)), delay("20 ms")];
        let mut departures = Departures::default();
        let flow = simulate(&setup(path, vec![upload(stack, size)], 1), &mut departures);
        assert!(flow.expect("sound")[0].transfer_time(Instant::ZERO).is_some());
        departures
    }

    /// Most segments that left at one instant, after the initial window.
    fn longest_burst(&self) -> usize {
        self.times[10..].chunk_by(|a, b| a == b).map(<[Instant]>::len).max().unwrap_or(0)
    }
}

#[test]
fn the_queue_stays_short_and_the_round_trip_is_probed() {
    let bbr = Departures::of(&stack(CongestionControlKind::Bbr), 40_000_000);
    let mean = |d: &Departures| d.backlog.iter().sum::<u64>() / d.backlog.len() as u64;
    let cubic = Departures::of(&stack(CongestionControlKind::Cubic), 40_000_000);
    // The product of 20 Mbit/s and 40 ms is 100 kB.
    assert!(mean(&bbr) < 100_000 && mean(&cubic) > 3 * mean(&bbr), "{} {}", mean(&bbr), mean(&cubic));
    // 16 s: ten after the first RTT the window is four segments.
    assert_eq!(bbr.least_window, 4 * 1448);
}

#[test]
fn a_pace_spreads_what_a_window_would_send_at_once() {
    // In startup at 2.9 times 20 Mbit/s a millisecond is four segments.
    let bbr = Departures::of(&stack(CongestionControlKind::Bbr), 2_000_000);
    assert!(bbr.longest_burst() <= 5, "{}", bbr.longest_burst());
    let mut paced = stack(CongestionControlKind::Reno);
    paced.send.pacing = true;
    let mut unpaced = paced.clone();
    unpaced.send.pacing = false;
    // An ACK of two lets out four in slow start; at the pace of twice the window, two at a time.
    let (paced, unpaced) = (Departures::of(&paced, 2_000_000), Departures::of(&unpaced, 2_000_000));
    assert!(unpaced.longest_burst() >= 4, "{}", unpaced.longest_burst());
    assert!(paced.longest_burst() <= 6, "{}", paced.longest_burst());
    let gap = |d: &Departures| d.times[20..400].windows(2).filter(|pair| pair[0] == pair[1]).count();
    assert!(gap(&paced) < gap(&unpaced), "{} {}", gap(&paced), gap(&unpaced));
}

#[test]
fn one_seed_is_one_run() {
    let stack = stack(CongestionControlKind::Bbr);
    let end = |seed| transfer(&stack, 40, 0.05, 4_000_000, seed).ended_at;
    assert_eq!(end(7), end(7));
    assert_ne!(end(7), end(8));
    let setup = setup(vec![delay("1 ms")], vec![upload(&stack, 0)], 1);
    assert!(simulate(&setup, &mut Silent).is_ok(), "an empty file");
}
