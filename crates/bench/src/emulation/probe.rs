//! One-way delay of single datagrams: from the sender's clock to the receiving kernel's stamp, which are one clock.

use super::Unmeasured;
use farpath_emu::{HostSettings, Namespace, RealTime};
use farpath_units::Duration;
use nix::sys::socket::sockopt::ReceiveTimestampns;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrIn, recvmsg, setsockopt};
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime};
use std::io::{self, IoSliceMut};
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::thread;

const PROBES: usize = 500;
/// No multiple of a timer tick, of which kernels have 100 to 1000 a second.
const EVERY: std::time::Duration = std::time::Duration::from_micros(3_130);
const PORT: u16 = 5202;

/// By how much datagrams took longer than the path says, ns, in order.
pub struct Errors(Vec<f64>);

impl Errors {
    fn from_ns(mut errors_ns: Vec<f64>) -> Errors {
        errors_ns.sort_by(f64::total_cmp);
        Errors(errors_ns)
    }

    /// In microseconds, as all of these.
    pub fn mean(&self) -> f64 {
        self.0.iter().sum::<f64>() / self.0.len() as f64 / 1e3
    }

    /// n - 1.
    pub fn deviation(&self) -> f64 {
        let mean = self.mean();
        let squares: f64 = self.0.iter().map(|error| (error / 1e3 - mean).powi(2)).sum();
        (squares / (self.0.len() as f64 - 1.0)).sqrt()
    }

    /// What so many of a hundred do not exceed.
    pub fn percentile(&self, percent: usize) -> f64 {
        self.0[(self.0.len() * percent).div_ceil(100) - 1] / 1e3
    }
}

/// Sends probes over a path of this delay. They meet nobody: each by itself, none lost.
pub fn one_way(near: &Namespace, far: &Namespace, delay: Duration) -> Result<Errors, Unmeasured> {
    let to = (HostSettings::far().address.0, PORT);
    let receiver = far.run(|| UdpSocket::bind(to))??;
    setsockopt(&receiver, ReceiveTimestampns, &true).map_err(io::Error::from)?;
    receiver.set_read_timeout(Some(std::time::Duration::from_secs(2)))?;
    let sender = near.run(|| UdpSocket::bind((HostSettings::near().address.0, 0)))??;
    sender.connect(to)?;
    // The first resolves addresses, where there are any to resolve, and is none of them.
    sender.send(&[])?;
    took(&receiver)?;
    let errors = thread::scope(|scope| {
        let sending = scope.spawn(|| send(&sender));
        let received: io::Result<Vec<i64>> = (0..PROBES).map(|_| took(&receiver)).collect();
        sending.join().unwrap_or_else(|panicked| std::panic::resume_unwind(panicked))?;
        received
    })?;
    Ok(Errors::from_ns(errors.into_iter().map(|ns| ns as f64 - delay.as_nanos() as f64).collect()))
}

#[expect(clippy::disallowed_methods, reason = "probes of real time")]
fn send(socket: &UdpSocket) -> io::Result<()> {
    // Who is put aside between looking at the clock and sending measures other programs. Where it is refused, so be it.
    let _ahead = RealTime::of_program();
    for _ in 0..PROBES {
        thread::sleep(EVERY);
        socket.send(&now()?.to_be_bytes())?;
    }
    Ok(())
}

/// How long the next probe was on its way, ns.
fn took(socket: &UdpSocket) -> io::Result<i64> {
    let mut sent = [0; 8];
    let mut pieces = [IoSliceMut::new(&mut sent)];
    let mut room = nix::cmsg_space!(TimeSpec);
    let message = recvmsg::<SockaddrIn>(socket.as_raw_fd(), &mut pieces, Some(&mut room), MsgFlags::empty())?;
    let stamp = message.cmsgs()?.find_map(|control| match control {
        ControlMessageOwned::ScmTimestampns(at) => Some(ns(at)),
        _ => None,
    });
    let stamp = stamp.ok_or_else(|| io::Error::other("the kernel does not stamp datagrams"))?;
    Ok(stamp - i64::from_be_bytes(sent))
}

/// By the clock of the kernel's stamps.
fn now() -> io::Result<i64> {
    Ok(ns(clock_gettime(ClockId::CLOCK_REALTIME)?))
}

fn ns(at: TimeSpec) -> i64 {
    at.tv_sec() * 1_000_000_000 + at.tv_nsec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_of_a_hundred() {
        let errors = Errors::from_ns((1..=100).rev().map(|us| f64::from(us) * 1e3).collect());
        assert_eq!((errors.percentile(99), errors.percentile(100), errors.mean()), (99.0, 100.0, 50.5));
        // Of 1 to n: (n² + n) / 12.
        assert!((errors.deviation() - (10_100.0_f64 / 12.0).sqrt()).abs() < 1e-9);
    }
}
