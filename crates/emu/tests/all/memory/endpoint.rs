//! Our endpoint on a wire, against itself: packets, checksums and content, before any kernel has a say.

use crate::common::{V4, V6, run_until};
use farpath_elements::{Bernoulli, Delay, Duplicate, ElementKind, ElementSpec, Reorder};
use farpath_emu::{Application, Clock, CloseWhen, Emulator, EndpointPort, NoRecorder, Settings};
use farpath_path::PerDirection;
use farpath_tcp::config::RecoveryConfig;
use farpath_tcp::{CloseReason, Config, Seq, State};
use farpath_units::{Bytes, Duration, Instant, Probability, Rate};

fn config() -> Config {
    let mut config = Config::default();
    config.recovery = RecoveryConfig { sack: true, ..config.recovery };
    config.send.timestamps = true;
    config.send.window_scaling = true;
    config.receive.buffer = Bytes(1_000_000);
    config.rto.min = Duration::from_millis(20);
    config.rto.initial = Duration::from_millis(50);
    config
}

fn element(name: &str, kind: ElementKind) -> ElementSpec {
    ElementSpec { name: name.to_owned(), kind }
}

/// Two milliseconds each way, and a share of the packets lost, reordered and sent twice, both ways.
fn rough_path() -> [ElementSpec; 4] {
    let share = |percent: f64| PerDirection::both(Probability::new(percent / 100.0).expect("a share"));
    [
        element("delay", ElementKind::Delay(Delay { delay: PerDirection::both(Duration::from_millis(2)) })),
        element(
            "loss",
            ElementKind::Bernoulli(Bernoulli {
                loss_rate: share(1.0),
                count: farpath_elements::PacketCount::All,
            }),
        ),
        element(
            "reorder",
            ElementKind::Reorder(Reorder { share: share(2.0), extra_delay: Duration::from_millis(1) }),
        ),
        element("twice", ElementKind::Duplicate(Duplicate { share: share(2.0) })),
    ]
}

fn run(path: &[ElementSpec], ends: [&str; 2], near: Application, far: Application) -> [EndpointPort; 2] {
    let [local, remote] = ends.map(|end| end.parse().expect("an address and a port"));
    let isn = Seq(u32::MAX - 100_000);
    let near = EndpointPort::connect(&config(), isn, local, remote, near);
    let far = EndpointPort::listen(&config(), Seq(7), remote, far);
    let settings = Settings { coalesce: true, ..Settings::default() };
    let ports = [near.clone(), far.clone()].map(Box::new);
    let [near_port, far_port] = ports;
    let mut emulator =
        Emulator::new(path, 3, settings, near_port, far_port, Clock::start()).expect("a sound path");
    run_until(&mut emulator, &mut NoRecorder, || near.is_over() && far.is_over());
    [near, far]
}

fn writing(bytes: u64) -> Application {
    Application { write: Bytes(bytes), ..Application::default() }
}

#[test]
fn every_byte_arrives_as_it_was_written_over_a_rough_path() {
    for ends in [V4, V6] {
        // Both ways at once; the forward stream wraps round 2^32.
        let [near, far] = run(&rough_path(), ends, writing(2_000_000), writing(300_000));
        assert_eq!(far.seen().read, Bytes(2_000_000));
        assert_eq!(near.seen().read, Bytes(300_000));
        for end in [&near, &far] {
            assert_eq!((end.seen().mismatch, end.seen().malformed, end.seen().strays), (None, 0, 0));
            assert!(end.connection().sender().stats().retransmissions > 0, "the path is rough");
        }
    }
}

#[test]
fn a_half_closed_connection_still_carries_the_other_half() {
    let answers =
        Application { write: Bytes(50_000), close: CloseWhen::PeerClosed, ..Application::default() };
    let [near, far] = run(&[], V4, writing(10_000), answers);
    assert_eq!((far.seen().read, near.seen().read), (Bytes(10_000), Bytes(50_000)));
    assert_eq!(far.connection().closed().map(|closed| closed.0), Some(CloseReason::Finished));
    assert_eq!(near.state(), State::TimeWait);
}

#[test]
fn a_slow_reader_closes_the_window_and_gets_everything() {
    let slow = Application {
        read_from: Instant::from_nanos(200_000_000),
        read_rate: Rate::from_bit_per_s(80_000_000),
        ..Application::default()
    };
    let [_, far] = run(&[], V4, writing(3_000_000), slow);
    assert_eq!((far.seen().read, far.seen().mismatch), (Bytes(3_000_000), None));
    // 200 ms of waiting, then 10 MB/s; the last megabyte and the FIN behind it fit into the buffer.
    assert!(far.connection().closed().expect("both have closed").1 >= Instant::from_nanos(400_000_000));
}

#[test]
fn an_abort_resets_the_peer() {
    let aborts = Application { abort_after: Some(Bytes(20_000)), ..Application::default() };
    let [near, far] = run(&[], V4, writing(1_000_000), aborts);
    assert_eq!(far.connection().closed().map(|closed| closed.0), Some(CloseReason::Aborted));
    assert_eq!(near.connection().closed().map(|closed| closed.0), Some(CloseReason::Reset));
}
