//! A window that grows with the connection, as Linux's does (`tcp_grow_window()`, `tcp_rcv_space_adjust()` in `tcp_input.c`).

use super::MAX_SHIFT;
use farpath_units::{Duration, Instant};

/// The middle of `tcp_rmem`: the first receive buffer, overhead included.
const FIRST_BUFFER: u64 = 131_072;
/// Before a segment has told it: `TCP_MSS_DEFAULT`, and half of the memory for data (`TCP_DEFAULT_SCALING_RATIO`).
const FIRST_MSS: u64 = 536;
const FIRST_RATIO: u64 = 128;
const WHOLE: u64 = 256;
/// `net.core.rmem_max`: the window can be scaled for as much at least.
const RMEM_MAX: u64 = 212_992;
/// Smaller segments make no window grow.
const LEAST_GROWTH: u64 = 128;

/// The state of a receiving socket that its window follows from, in bytes.
#[derive(Debug, Clone)]
pub struct Autotuning {
    /// `advmss`, and what options will take of it once the handshake is over.
    mss: u64,
    options: u64,
    /// `rcv_mss`: the longest segment that came.
    rcv_mss: u64,
    /// `scaling_ratio`: what of the memory is data, in 256ths.
    ratio: u64,
    /// `sk_rcvbuf`, and the largest of `tcp_rmem`.
    buffer: u64,
    most: u64,
    /// `window_clamp`.
    clamp: u64,
    /// `rcv_ssthresh`: the window as it is announced.
    window: u64,
    /// `rcvq_space`: what was read in a round trip, and since when the next one is counted.
    space: u64,
    counted_from: u64,
    counted_since: Instant,
    /// `rcv_rtt_est`: eight times the round trip in microseconds, zero before it is known; and the window whose coming is timed.
    rtt_us: u64,
    timed: Option<(u64, Instant)>,
    /// `rcv_rtt_last_tsecr`.
    last_echo: Option<u32>,
    now: Instant,
}

/// What a segment tells of round trips: the timestamp that it echoes, and how long ago that was sent.
#[derive(Debug, Clone, Copy)]
pub struct Echoed {
    /// TSecr.
    pub value: u32,
    /// In ticks of the timestamp clock, milliseconds.
    pub ago: Duration,
}

impl Autotuning {
    /// Of a buffer whose half is `buffer`, for segments of `mss` without options.
    pub fn new(buffer: u64, mss: u64) -> Autotuning {
        let most = buffer.saturating_mul(2).clamp(4096, i32::MAX as u64);
        let buffer = most.min(FIRST_BUFFER);
        let whole = data_in(buffer, FIRST_RATIO);
        Autotuning {
            mss,
            options: 0,
            rcv_mss: FIRST_MSS,
            ratio: FIRST_RATIO,
            buffer,
            most,
            clamp: whole,
            window: first_window(whole, mss),
            space: 1,
            counted_from: 1,
            counted_since: Instant::ZERO,
            rtt_us: 0,
            timed: None,
            last_echo: None,
            now: Instant::ZERO,
        }
    }

    /// Each segment will carry `options` bytes of options (`TCPOLEN_TSTAMP_ALIGNED`). Who is called knows it before a window is
    /// announced, and counts with `advmss` as it was until the handshake is over (`tcp_openreq_init_rwin()`,
    /// `tcp_rcv_state_process()`); who calls, the other way round (`tcp_rcv_synsent_state_process()`).
    pub fn agree(&mut self, options: u64, active: bool) {
        let data = self.mss.saturating_sub(options).max(1);
        if active {
            self.mss = data;
        } else {
            self.options = options;
            self.window = first_window(self.clamp, data);
        }
    }

    /// The handshake is over (`tcp_init_buffer_space()`): the room of a segment is kept.
    pub fn establish(&mut self, now: Instant) {
        if self.clamp > 2 * self.mss {
            self.clamp = (self.clamp - self.mss).max(2 * self.mss);
        }
        self.space = self.window.min(self.clamp).min(10 * self.mss).max(1);
        self.window = self.window.min(self.clamp);
        self.mss = self.mss.saturating_sub(std::mem::take(&mut self.options)).max(1);
        (self.now, self.counted_since) = (now, now);
    }

    /// What is to be announced.
    pub fn window(&self) -> u64 {
        self.window
    }

    /// The round trip as a receiver sees it, once it does.
    pub fn rtt(&self) -> Option<Duration> {
        (self.rtt_us > 0).then(|| Duration::from_nanos(self.rtt_us * 1000 / 8))
    }

    /// The most that it can be for now.
    pub fn clamp(&self) -> u64 {
        self.clamp
    }

    /// A segment of `len` bytes has come; with it `held` wait to be read, and `next` is expected. Whether the window grew.
    pub fn on_segment(
        &mut self,
        now: Instant,
        len: u64,
        held: u64,
        next: u64,
        echoed: Option<Echoed>,
    ) -> bool {
        self.now = now;
        self.time_echo(len, echoed);
        self.time_window(next);
        len >= LEAST_GROWTH && self.grow(len, held)
    }

    /// `tcp_measure_rcv_mss()`.
    #[inline(always)]
    pub fn measure_segment(&mut self, len: u64) {
        if len > self.rcv_mss {
            self.measure_longer(len);
        }
    }

    fn measure_longer(&mut self, len: u64) {
        self.rcv_mss = len.min(self.mss);
        self.ratio = (len * WHOLE / memory_of(len)).clamp(1, WHOLE - 1);
        self.clamp = data_in(self.buffer, self.ratio);
        self.space = self.space.min(self.clamp).max(1);
    }

    /// How much more data there is memory for beside `held` bytes (`tcp_space()`).
    pub fn room(&self, held: u64) -> u64 {
        self.room_beside(held, self.rcv_mss)
    }

    /// The same where they came in segments of `len`.
    fn room_beside(&self, held: u64, len: u64) -> u64 {
        // As a rule, all has been read.
        let used = if held == 0 { 0 } else { held.saturating_mul(memory_of(len)) / len };
        data_in(self.buffer.saturating_sub(used), self.ratio)
    }

    /// `tcp_grow_window()`.
    fn grow(&mut self, len: u64, held: u64) -> bool {
        let room = self.clamp.min(self.room_beside(held, len)).saturating_sub(self.window);
        if room == 0 {
            return false;
        }
        let by =
            if data_in(memory_of(len), self.ratio) <= len { 2 * self.mss } else { self.slow_growth(len) };
        if by == 0 {
            return false;
        }
        self.window += room.min(by.max(2 * len));
        true
    }

    /// `__tcp_grow_window()`, where segments take more memory than they count for.
    fn slow_growth(&self, len: u64) -> u64 {
        let mut memory = data_in(memory_of(len), self.ratio) / 2;
        let mut window = data_in(self.most, self.ratio) / 2;
        while self.window <= window {
            if memory <= len {
                return 2 * self.rcv_mss;
            }
            (memory, window) = (memory / 2, window / 2);
        }
        0
    }

    /// `tcp_rcv_rtt_measure_ts()`.
    fn time_echo(&mut self, len: u64, echoed: Option<Echoed>) {
        let Some(Echoed { value, ago }) = echoed else { return };
        if self.last_echo.replace(value) != Some(value) && len >= self.rcv_mss && !ago.is_zero() {
            self.take_rtt(ago, true);
        }
    }

    /// `tcp_rcv_rtt_measure()`: how long a window takes to come.
    fn time_window(&mut self, next: u64) {
        match self.timed {
            Some((end, _)) if next < end => return,
            Some((_, since)) => self.take_rtt(self.now.saturating_since(since), false),
            None => {}
        }
        self.timed = Some((next + self.window, self.now));
    }

    /// `tcp_rcv_rtt_update()`.
    fn take_rtt(&mut self, rtt: Duration, smooths: bool) {
        let us = (rtt.as_nanos() / 1000).max(1);
        if self.rtt_us == 0 || 8 * us < self.rtt_us {
            self.rtt_us = 8 * us;
        } else if smooths {
            self.rtt_us += us - self.rtt_us / 8;
        }
    }

    /// `tcp_rcv_space_adjust()`: the program reads `taken` bytes from `from` on, of what has come up to `next`. It is asked with
    /// each segment that is copied, and answers the first: what a filled hole sets free at once makes no room.
    pub fn on_read(&mut self, from: u64, taken: u64, next: u64) {
        let read = from + taken.min(self.rcv_mss);
        let took = self.now.saturating_since(self.counted_since).as_nanos() / 1000;
        if self.rtt_us == 0 || took < self.rtt_us / 8 {
            return;
        }
        let copied = (read - self.counted_from).saturating_sub(next - read);
        if copied > self.space {
            let window = u128::from(2 * copied + 16 * self.mss);
            let faster = window * u128::from(copied - self.space) / u128::from(self.space);
            let memory = (window + 2 * faster) * u128::from(WHOLE) / u128::from(self.ratio);
            let buffer = u64::try_from(memory).unwrap_or(u64::MAX).min(self.most);
            if buffer > self.buffer {
                (self.buffer, self.clamp) = (buffer, data_in(buffer, self.ratio));
            }
            self.space = copied;
        }
        (self.counted_from, self.counted_since) = (read, self.now);
    }
}

/// The shift of the window field for a buffer whose half is `buffer` (`tcp_select_initial_window()`).
pub(super) fn scale_for(buffer: u64) -> u8 {
    let memory = buffer.saturating_mul(2).max(RMEM_MAX);
    (memory.ilog2() as u8 - 15).min(MAX_SHIFT)
}

/// `tcp_select_initial_window()`: of whole segments.
fn first_window(whole: u64, mss: u64) -> u64 {
    if whole > mss { whole / mss * mss } else { whole }
}

/// What of `memory` is data (`tcp_win_from_space()`).
fn data_in(memory: u64, ratio: u64) -> u64 {
    memory * ratio / WHOLE
}

/// `truesize` of a segment in a buffer of its own: of the next power of two for payload, headers, the room before them and
/// what the kernel keeps behind them; and the structure that describes it.
fn memory_of(len: u64) -> u64 {
    (len + 448).next_power_of_two() + 256
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEN: u64 = 1448;

    fn established(buffer: u64, mss: u64) -> Autotuning {
        let mut autotuning = Autotuning::new(buffer, mss);
        autotuning.establish(at(0));
        autotuning
    }

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    /// Segments that come and are read, `count` of them; how many made the window grow.
    fn feed(autotuning: &mut Autotuning, now: Instant, from: u64, count: u64, echo: u32) -> u64 {
        let mut grown = 0;
        for n in 1..=count {
            let next = from + n * LEN;
            autotuning.measure_segment(LEN);
            let echoed = Some(Echoed { value: echo, ago: Duration::from_millis(100) });
            grown += u64::from(autotuning.on_segment(now, LEN, LEN, next, echoed));
            autotuning.on_read(next - LEN, LEN, next);
        }
        grown
    }

    #[test]
    fn the_first_buffer_has_room_for_six_growths() {
        // Traced: 22 segments are acknowledged at once, 16 and these six (`immediate_acks`).
        let mut autotuning = established(3 << 20, 1460);
        assert_eq!(autotuning.window, 64_076);
        assert_eq!(feed(&mut autotuning, at(50), 1, 10, 1), 6);
        assert_eq!(autotuning.window, 80_480, "of 131072 B, 2304 in use, 160 of 256");
    }

    #[test]
    fn options_take_their_part_of_each_segment() {
        // Traced: 65160 B in the SYN/ACK of who is called, 64240 B in the SYN of who calls, with timestamps in both.
        let mut called = Autotuning::new(3 << 20, 1460);
        called.agree(12, false);
        assert_eq!((called.window(), called.mss), (65_160, 1460));
        called.establish(at(0));
        assert_eq!((called.window(), called.mss), (64_076, 1448));
        let mut calls = Autotuning::new(3 << 20, 1460);
        assert_eq!(calls.window(), 64_240);
        calls.agree(12, true);
        calls.establish(at(0));
        assert_eq!((calls.window(), calls.mss), (64_088, 1448));
    }

    #[test]
    fn the_window_field_is_scaled_for_the_memory() {
        // tcp_rmem's largest is 6 MiB, and 32 MiB since 6.16; net.core.rmem_max is 212 992 B.
        assert_eq!([3 << 20, 16 << 20, 1000, u64::MAX].map(scale_for), [7, 10, 2, 14]);
    }

    #[test]
    fn a_round_trip_in_which_more_was_read_makes_room() {
        let mut autotuning = established(3 << 20, 1460);
        feed(&mut autotuning, at(50), 1, 10, 1);
        // 14 480 B were no more than the 14 600 that are expected; twice as many are, and the buffer is four times them.
        feed(&mut autotuning, at(151), 1 + 10 * LEN, 20, 2);
        assert_eq!(autotuning.buffer, 131_072);
        let grown = feed(&mut autotuning, at(252), 1 + 30 * LEN, 40, 3);
        assert!(autotuning.buffer > 131_072);
        assert_eq!(grown, 39, "all but the one with which it was found");
    }

    #[test]
    fn a_buffer_that_is_full_does_not_grow() {
        let mut autotuning = established(3 << 20, 1460);
        feed(&mut autotuning, at(50), 1, 10, 1);
        assert!(!autotuning.on_segment(at(60), LEN, 100_000, 1 + 90 * LEN, None));
    }

    #[test]
    fn what_a_filled_hole_sets_free_makes_no_room() {
        // tcp_recvmsg_locked() asks after each segment that it copies; the first answer holds for all of the batch.
        let mut autotuning = established(3 << 20, 1460);
        autotuning.measure_segment(LEN);
        autotuning.take_rtt(Duration::from_millis(100), true);
        autotuning.now = at(200);
        autotuning.on_read(1, 60 * LEN, 1 + 60 * LEN);
        assert_eq!((autotuning.buffer, autotuning.counted_from), (131_072, 1 + LEN));
        // The rest counts with what the next round trip brings.
        autotuning.now = at(300);
        autotuning.on_read(1 + 60 * LEN, LEN, 1 + 61 * LEN);
        assert_eq!(autotuning.space, 60 * LEN);
    }

    #[test]
    fn room_is_what_is_left_of_the_memory() {
        // Traced: of 643 277 B, 60 segments of 2304 B leave 315 648 B of data, at 160 of 256.
        let mut autotuning = established(3 << 20, 1460);
        autotuning.measure_segment(LEN);
        autotuning.buffer = 643_277;
        assert_eq!(autotuning.room(0), 402_048);
        assert_eq!(autotuning.room(60 * LEN), 315_648);
        assert_eq!(autotuning.room(1_000_000), 0);
    }

    #[test]
    fn a_round_trip_is_smoothed_by_an_eighth_where_echoes_tell_it() {
        // tcp_rcv_rtt_update()
        let ms = Duration::from_millis;
        let mut autotuning = established(3 << 20, 1460);
        assert_eq!(autotuning.rtt(), None);
        autotuning.take_rtt(ms(100), true);
        assert_eq!(autotuning.rtt(), Some(ms(100)));
        autotuning.take_rtt(ms(180), true);
        assert_eq!(autotuning.rtt(), Some(ms(110)));
        // How long a window takes to come is no less than that, and never more.
        autotuning.take_rtt(ms(200), false);
        assert_eq!(autotuning.rtt(), Some(ms(110)));
        autotuning.take_rtt(ms(90), false);
        assert_eq!(autotuning.rtt(), Some(ms(90)));
        autotuning.take_rtt(ms(80), true);
        assert_eq!(autotuning.rtt(), Some(ms(80)), "a shorter one at once");
    }

    #[test]
    fn an_echo_tells_a_round_trip_once_and_by_a_full_segment() {
        // tcp_rcv_rtt_measure_ts()
        let ms = Duration::from_millis;
        let told = |echoes: &[(u64, u32, u64)]| {
            let mut autotuning = established(3 << 20, 1460);
            autotuning.measure_segment(1000);
            for &(len, value, ago) in echoes {
                autotuning.time_echo(len, Some(Echoed { value, ago: ms(ago) }));
            }
            autotuning.rtt()
        };
        assert_eq!(told(&[(1000, 7, 100)]), Some(ms(100)));
        assert_eq!(told(&[(1000, 7, 100), (1000, 7, 50)]), Some(ms(100)), "the same echo again");
        assert_eq!(told(&[(1000, 7, 100), (1000, 8, 50)]), Some(ms(50)));
        assert_eq!(told(&[(999, 7, 100)]), None, "less than a segment");
        assert_eq!(told(&[(1000, 7, 0)]), None, "within a tick");
    }

    #[test]
    fn without_echoes_the_coming_of_a_window_is_timed() {
        // tcp_rcv_rtt_measure()
        let mut autotuning = established(3 << 20, 1460);
        let whole = autotuning.window();
        let mut come = |ms, next| {
            autotuning.now = at(ms);
            autotuning.time_window(next);
            autotuning.rtt()
        };
        assert_eq!(come(10, 1), None);
        assert_eq!(come(50, whole), None, "a byte less than a window");
        assert_eq!(come(60, 1 + whole), Some(Duration::from_millis(50)));
        assert_eq!(come(70, whole), Some(Duration::from_millis(50)), "the next one is timed from there");
        assert_eq!(come(80, 1 + 2 * whole), Some(Duration::from_millis(20)));
    }

    #[test]
    fn small_segments_open_the_window_as_far_as_half_of_the_largest_buffer_has_their_memory() {
        // __tcp_grow_window(): 200 B take 1280 B of memory, 800 B at 160 in 256; halved twice, they are 200 B.
        let mut autotuning = established(3 << 20, 1460);
        autotuning.measure_segment(LEN);
        assert_eq!(autotuning.ratio, 160);
        assert_eq!(autotuning.slow_growth(200), 2 * LEN);
        // Half of 6 MiB is 1 966 080 B of data; halved once, for 400 B to become 200 B, 983 040 B.
        autotuning.window = 983_040;
        assert_eq!(autotuning.slow_growth(200), 2 * LEN);
        autotuning.window = 983_041;
        assert_eq!(autotuning.slow_growth(200), 0);
    }

    #[test]
    fn a_window_keeps_the_room_of_a_segment() {
        // tcp_init_buffer_space(): 65 536 B of data, less a segment, where that leaves two.
        let autotuning = established(3 << 20, 1460);
        assert_eq!((autotuning.clamp(), autotuning.space), (65_536 - 1460, 14_600));
        let small = established(4096, 1460);
        assert_eq!((small.clamp(), small.space), (2920, 2920));
        assert_eq!(established(4096, 2048).clamp(), 4096, "two segments and no more");
    }

    #[test]
    fn what_is_read_is_counted_by_round_trips() {
        // tcp_rcv_space_adjust()
        let mut autotuning = established(3 << 20, 1460);
        autotuning.take_rtt(Duration::from_millis(100), true);
        autotuning.now = at(99);
        autotuning.on_read(9_465, 536, 10_001);
        assert_eq!(autotuning.counted_from, 1);
        autotuning.now = at(100);
        autotuning.on_read(9_465, 536, 10_001);
        assert_eq!((autotuning.counted_from, autotuning.space), (10_001, 14_600), "less than was expected");
        // 14 601 B of the next round trip, and then what has come but waits to be read is taken off.
        autotuning.now = at(200);
        autotuning.on_read(24_066, 536, 24_602);
        assert_eq!(autotuning.space, 14_601);
        autotuning.now = at(300);
        autotuning.on_read(54_066, 536, 59_602);
        assert_eq!(autotuning.space, 25_000);
    }
}
