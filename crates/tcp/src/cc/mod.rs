//! Congestion control: controllers see events and hold bytes; they do not reach into the connection.

mod bbr;
mod bbr3;
mod cubic;
mod explicit_rate;
mod hystart;
mod linux_cubic;
mod linux_hystart;
mod rate;
mod reno;
mod slow_start;

pub use crate::scoreboard::{Excess, Measured};
pub use bbr::{Bbr, MIN_RTT_TIME};
pub use bbr3::Bbr3;
pub use cubic::Cubic;
pub use explicit_rate::ExplicitRate;
pub use linux_cubic::LinuxCubic;
pub(crate) use rate::LONGEST_BURST;
pub use rate::{Pace, RateSample, Repair};
pub use reno::Reno;

use crate::config::CongestionConfig;
use crate::config::schema::words;
use core::fmt;
use farpath_units::{Duration, Instant};

/// What a controller steers, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Congestion window.
    pub cwnd: u64,
    /// Slow start threshold.
    pub ssthresh: u64,
}

/// New data was acknowledged outside of fast recovery.
#[derive(Debug, Clone, Copy)]
pub struct AckEvent {
    /// When.
    pub now: Instant,
    /// Bytes that this ACK newly acknowledged.
    pub newly_acked: u64,
    /// One past the last position acknowledged (SND.UNA): rounds are counted by it.
    pub acked_to: u64,
    /// One past the last position sent (SND.NXT).
    pub sent_to: u64,
    /// Sent and not acknowledged, before this ACK.
    pub flight_size: u64,
    /// Whether `cwnd` was what kept the sender from sending more.
    pub cwnd_limited: bool,
    /// RTT of the first segment that this ACK covers, where it was sent only once or timestamps tell.
    pub rtt: Option<Duration>,
    /// The same of the last segment that it covers, of those that nothing had reported before.
    pub last_rtt: Option<Duration>,
    /// Smoothed RTT.
    pub srtt: Option<Duration>,
}

/// A loss was found, by duplicate ACKs or by the timer.
#[derive(Debug, Clone, Copy)]
pub struct LossEvent {
    /// When.
    pub now: Instant,
    /// Sent and not acknowledged, less what limited transmit added (RFC 5681 §3.2 step 2).
    pub flight_size: u64,
    /// What is taken to be in the network, what limited transmit added included: RFC 6675's `pipe`; without SACK,
    /// each duplicate ACK stands for a segment that has left it.
    pub pipe: u64,
    /// The peer's window.
    pub rwnd: u64,
    /// Whether the retransmission timer found it.
    pub timeout: bool,
}

/// A congestion controller.
pub trait CongestionControl {
    /// Grows `window` for an ACK of new data.
    fn on_ack(&mut self, window: &mut Window, ack: &AckEvent);
    /// The `ssthresh` that a loss leaves.
    fn ssthresh_after(&mut self, window: &Window, loss: &LossEvent) -> u64;

    /// Whether it is in slow start, or in what it has in its place.
    fn is_in_slow_start(&self, window: &Window) -> bool {
        window.cwnd < window.ssthresh
    }

    /// How many congestion windows a send buffer that grows has room for (Linux's `sndbuf_expand()`).
    fn send_buffer_windows(&self) -> u64 {
        2
    }

    // What follows is for controllers that steer by the rate of delivery; the others have none of it.

    /// Whether the controller sets `cwnd` by itself at every ACK, through losses and their repair: then nobody else does.
    fn owns_cwnd(&self) -> bool {
        false
    }
    /// What the controller draws by chance, it draws by this.
    fn draw_by(&mut self, _seed: u64) {}
    /// Whether it counts in segments, whatever their length.
    fn counts_segments(&self) -> bool {
        false
    }
    /// The handshake is over; it took `rtt`, where it could be measured. The host's clock has this tick.
    fn on_established(&mut self, _window: &Window, _now: Instant, _rtt: Option<Duration>, _tick: Duration) {}
    /// An ACK was taken, whatever it said. Whether the controller itself keeps the rate below the path's for now: what
    /// leaves is then marked as limited by the application.
    fn on_rate_sample(&mut self, _window: &mut Window, _sample: &RateSample) -> bool {
        false
    }
    /// Data is sent after silence, for which the application was the reason; `delivered` bytes have been so far.
    fn on_restart(&mut self, _window: &mut Window, _now: Instant, _delivered: u64) {}
    /// The retransmission timer has expired.
    fn on_timeout(&mut self) {}
    /// Whether the controller goes on with what it has become where a loss was found to be none; else it is what it was.
    fn keeps_state_on_undo(&self) -> bool {
        false
    }
    /// A loss was found to be none.
    fn on_undo(&mut self) {}
    /// The pace at which segments are to leave; `None` leaves that to the window.
    fn pace(&self) -> Option<Pace> {
        None
    }
}

/// How the window of a controller moves in the long run, where one transfer alone fills a path: what models of it go by.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LongRun {
    /// By a segment per round trip, from this share of what it was before a loss.
    Linear {
        /// What a loss leaves.
        keeps: f64,
    },
    /// By CUBIC's function of the time since the last loss; as Reno does where that is faster (RFC 9438 §4.2, §4.3).
    Cubic,
    /// The controller sets it by a model of the path.
    ByModel {
        /// The largest share of segments whose loss does not bound it.
        tolerates: f64,
    },
    /// No model here describes it.
    Unknown,
}

/// What is to be known of a controller that configurations name. Each says it in its own file; [`CongestionControlKind`] asks.
trait Named: CongestionControl {
    /// Linux's name of it; `None` where no released Linux has it.
    const LINUX_NAME: Option<&'static str>;
    /// [`CongestionControl::owns_cwnd`], before there is a connection.
    const OWNS_CWND: bool = false;
    /// How its window moves in the long run.
    const LONG_RUN: LongRun = LongRun::Unknown;

    /// One for segments of `smss` bytes, on a host whose clock has this tick.
    fn controller(config: &CongestionConfig, smss: u64, tick: Duration) -> Controller;
}

/// Makes [`CongestionControlKind`], [`Controller`], and `each!`, which does the same with whichever controller it is.
///
/// `named` are those of configurations: the type, its word in TOML, and how it is held; the type implements [`Named`]. The rest
/// have no word.
macro_rules! controllers {
    (
        $dollar:tt
        named { $($(#[doc = $meaning:literal])* $Named:ident = $word:literal in $NamedHeld:ty,)+ }
        others { $($(#[doc = $doc:literal])* $Other:ident in $OtherHeld:ty,)+ }
    ) => {
        words! {
            /// Names of congestion controllers.
            CongestionControlKind {
                $($(#[doc = $meaning])* $Named = $word,)+
            }
        }

        impl CongestionControlKind {
            /// Linux's name of it; `None` where no released Linux has it.
            pub const fn linux_name(self) -> Option<&'static str> {
                match self {
                    $(CongestionControlKind::$Named => <$Named as Named>::LINUX_NAME,)+
                }
            }

            /// Whether it sets `cwnd` by a model of the path, through losses and their repair.
            pub const fn owns_cwnd(self) -> bool {
                match self {
                    $(CongestionControlKind::$Named => <$Named as Named>::OWNS_CWND,)+
                }
            }

            /// How its window moves in the long run.
            pub const fn long_run(self) -> LongRun {
                match self {
                    $(CongestionControlKind::$Named => <$Named as Named>::LONG_RUN,)+
                }
            }
        }

        /// The controller that a configuration names. An enum, not a trait object: it is asked at every ACK.
        #[derive(Debug, Clone)]
        pub enum Controller {
            $($(#[doc = $meaning])* $Named($NamedHeld),)+
            $($(#[doc = $doc])* $Other($OtherHeld),)+
        }

        impl Controller {
            /// For segments of `smss` bytes, on a host whose clock has this tick.
            pub fn new(config: &CongestionConfig, smss: u64, tick: Duration) -> Controller {
                match config.control {
                    $(CongestionControlKind::$Named => <$Named as Named>::controller(config, smss, tick),)+
                }
            }
        }

        macro_rules! each {
            ($dollar controller:expr, $dollar one:ident => $dollar what:expr) => {
                match $dollar controller {
                    $(Controller::$Named($dollar one) => $dollar what,)+
                    $(Controller::$Other($dollar one) => $dollar what,)+
                }
            };
        }
    };
}

controllers! { $
    named {
        /// RFC 5681: additive increase, halving on loss.
        Reno = "reno" in Reno,
        /// RFC 9438: a cubic function of the time since the last loss, 0.7 of the window after one.
        Cubic = "cubic" in Cubic,
        /// Version 1, as in Linux: a model of the bottleneck's rate and of the round trip without queue, and no loss.
        Bbr = "bbr" in Box<Bbr>,
        /// Version 3: the same, bounded by losses of more than 2 % (draft-ietf-ccwg-bbr).
        Bbr3 = "bbr3" in Box<Bbr3>,
    }
    others {
        /// CUBIC by `tcp_cubic.c`: a rule of the word `cubic`.
        LinuxCubic in LinuxCubic,
        /// A granted rate: nothing that a configuration names, a connection is told it.
        ExplicitRate in ExplicitRate,
        /// One from outside of this crate.
        Own in Box<dyn OwnController>,
    }
}

impl CongestionControlKind {
    /// The one that Linux calls so, if it is one of these.
    pub fn of_linux(name: &str) -> Option<CongestionControlKind> {
        CongestionControlKind::ALL.iter().copied().find(|kind| kind.linux_name() == Some(name))
    }
}

/// A controller of one's own, for [`Connection::control_by`](crate::Connection::control_by). Whatever can be cloned and implements
/// [`CongestionControl`] is one.
pub trait OwnController: CongestionControl + fmt::Debug + Send + Sync {
    /// The same again: the state before a loss is kept, in case that the loss was none.
    fn duplicate(&self) -> Box<dyn OwnController>;
}

impl<T: CongestionControl + fmt::Debug + Clone + Send + Sync + 'static> OwnController for T {
    fn duplicate(&self) -> Box<dyn OwnController> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn OwnController> {
    fn clone(&self) -> Box<dyn OwnController> {
        // Not the box's own: that would end here again.
        (**self).duplicate()
    }
}

impl CongestionControl for Controller {
    #[inline]
    fn on_ack(&mut self, window: &mut Window, ack: &AckEvent) {
        each!(self, one => one.on_ack(window, ack));
    }

    fn ssthresh_after(&mut self, window: &Window, loss: &LossEvent) -> u64 {
        each!(self, one => one.ssthresh_after(window, loss))
    }

    fn is_in_slow_start(&self, window: &Window) -> bool {
        each!(self, one => one.is_in_slow_start(window))
    }

    fn send_buffer_windows(&self) -> u64 {
        each!(self, one => one.send_buffer_windows())
    }

    #[inline]
    fn owns_cwnd(&self) -> bool {
        each!(self, one => one.owns_cwnd())
    }

    fn draw_by(&mut self, seed: u64) {
        each!(self, one => one.draw_by(seed));
    }

    fn counts_segments(&self) -> bool {
        each!(self, one => one.counts_segments())
    }

    fn on_established(&mut self, window: &Window, now: Instant, rtt: Option<Duration>, tick: Duration) {
        each!(self, one => one.on_established(window, now, rtt, tick));
    }

    fn on_rate_sample(&mut self, window: &mut Window, sample: &RateSample) -> bool {
        each!(self, one => one.on_rate_sample(window, sample))
    }

    fn on_restart(&mut self, window: &mut Window, now: Instant, delivered: u64) {
        each!(self, one => one.on_restart(window, now, delivered));
    }

    fn on_timeout(&mut self) {
        each!(self, one => one.on_timeout());
    }

    fn keeps_state_on_undo(&self) -> bool {
        each!(self, one => one.keeps_state_on_undo())
    }

    fn on_undo(&mut self) {
        each!(self, one => one.on_undo());
    }

    fn pace(&self) -> Option<Pace> {
        each!(self, one => one.pace())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

    #[test]
    fn of_the_controllers_version_1_of_bbr_counts_segments_and_both_own_cwnd() {
        use CongestionControlKind::{Bbr, Bbr3, Cubic, Reno};
        for (control, segments, steers) in
            [(Reno, false, false), (Cubic, false, false), (Bbr, true, true), (Bbr3, false, true)]
        {
            let config = CongestionConfig { control, ..Config::default().congestion };
            let controller = Controller::new(&config, 1000, Duration::ZERO);
            assert_eq!((controller.counts_segments(), controller.owns_cwnd()), (segments, steers));
        }
    }

    #[test]
    fn a_kind_says_of_cwnd_what_its_controller_says() {
        for &control in CongestionControlKind::ALL {
            let config = CongestionConfig { control, ..Config::default().congestion };
            let controller = Controller::new(&config, 1000, Duration::ZERO);
            assert_eq!(controller.owns_cwnd(), control.owns_cwnd(), "{control:?}");
        }
    }
}
