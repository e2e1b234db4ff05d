//! A constant-rate stream: the stamps of its messages, and what they say of it.

use crate::{MessageRow, StreamFigures};
use farpath_units::{Bytes, Duration, Instant, Late, Messages, Playout};

impl MessageRow {
    /// Rows of a flow's messages, for each that was `due`; the other stamps as far as there are any. Those whose numbers are
    /// `left_out`, rising, were never sent, and the stamps are of the others.
    pub fn of_flow(
        flow: u32,
        due: impl Iterator<Item = Instant>,
        left_out: &[u64],
        [written, sent, arrived, answered]: [&[Instant]; 4],
    ) -> Vec<MessageRow> {
        let mut left_out = left_out.iter().peekable();
        let mut places = 0..;
        let row = |(message, due): (u64, Instant)| {
            let place = if left_out.next_if_eq(&&message).is_some() { None } else { places.next() };
            let [written, sent, arrived, answered] =
                [written, sent, arrived, answered].map(|stamps: &[Instant]| stamps.get(place?).copied());
            MessageRow { flow, message, due, written, sent, arrived, answered }
        };
        (0..).zip(due).map(row).collect()
    }
}

impl StreamFigures {
    /// What these messages of one flow, in their order, say.
    pub fn from_rows(rows: &[MessageRow], messages: &Messages, playout: Playout) -> StreamFigures {
        let arrived = || rows.iter().filter_map(|row| Some((row, row.arrived?)));
        let lag = |row: &MessageRow| Some(row.written?.saturating_since(row.due));
        let mut responses: Vec<Duration> =
            rows.iter().filter_map(|row| Some(row.answered?.saturating_since(row.due))).collect();
        responses.sort_unstable();
        let mut figures = StreamFigures {
            messages: Some(arrived().count() as f64),
            max_write_lag: rows.iter().filter_map(lag).max(),
            peak_backlog: peak_backlog(rows, messages.size),
            median_response: responses.get(responses.len().saturating_sub(1) / 2).copied(),
            max_response: responses.last().copied(),
            ..StreamFigures::default()
        };
        let Some((first, at)) = arrived().next() else { return figures };
        let base = at.saturating_since(first.due);
        let in_time = base + playout.buffer;
        let mut lateness = arrived().map(|(row, at)| at.saturating_since(row.due));
        let max = lateness.clone().max().unwrap_or_default();
        figures.max_lateness = Some(max);
        figures.final_lateness = lateness.by_ref().last();
        figures.delayed = Some(behind(messages, max.saturating_sub(base)));
        let late = arrived().filter(|(row, at)| at.saturating_since(row.due) > in_time).count() as f64;
        figures.late_messages = Some(late);
        match playout.late {
            Late::Stall => figures.stall_time = Some(max.saturating_sub(in_time)),
            Late::Discard => figures.discarded_messages = Some(late),
        }
        figures.time_to_timely = longest_late_time(arrived(), in_time);
        figures
    }
}

/// Bytes of a stream in so much time.
fn behind(messages: &Messages, time: Duration) -> Bytes {
    let bits = messages.bit_per_s() * time.as_secs_f64();
    Bytes((bits / 8.0) as u64).min(messages.total())
}

/// `None` where the last message is late.
fn longest_late_time<'a>(
    arrived: impl Iterator<Item = (&'a MessageRow, Instant)>,
    in_time: Duration,
) -> Option<Duration> {
    let (mut since, mut longest) = (None, Duration::ZERO);
    for (row, at) in arrived {
        if at.saturating_since(row.due) > in_time {
            since.get_or_insert(row.due + in_time);
        } else if let Some(since) = since.take() {
            longest = longest.max(at.saturating_since(since));
        }
    }
    since.is_none().then_some(longest)
}

/// Just before a message leaves, all from it on that are due by then wait.
fn peak_backlog(rows: &[MessageRow], size: Bytes) -> Option<Bytes> {
    let mut due = 0;
    let waiting = (0..).zip(rows).filter_map(|(number, row)| {
        let sent = row.sent?;
        due += rows[due as usize..].iter().take_while(|row| row.due <= sent).count() as u64;
        Some(due.saturating_sub(number) * size.0)
    });
    waiting.max().map(Bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use farpath_units::Pace;

    const MESSAGES: Messages =
        Messages { size: Bytes(1000), pace: Pace::Every(Duration::from_millis(10)), count: 10 };

    fn ms(time: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(time)
    }

    /// Messages due every 10 ms from 100 ms on that leave at once and take so many milliseconds.
    fn taking(times: [u64; 10]) -> Vec<MessageRow> {
        let row = |(message, time): (u64, u64)| {
            let due = ms(100 + 10 * message);
            let at = due + Duration::from_millis(time);
            let (sent, arrived) = (Some(due), Some(at));
            MessageRow { flow: 0, message, due, written: sent, sent, arrived, answered: None }
        };
        (0..).zip(times).map(row).collect()
    }

    fn stalling(rows: &[MessageRow]) -> StreamFigures {
        let playout = Playout { buffer: Duration::from_millis(15), late: Late::Stall };
        StreamFigures::from_rows(rows, &MESSAGES, playout)
    }

    #[test]
    fn a_timely_stream_is_never_late() {
        let figures = stalling(&taking([5; 10]));
        assert_eq!((figures.messages, figures.late_messages), (Some(10.0), Some(0.0)));
        assert_eq!(figures.max_lateness, Some(Duration::from_millis(5)));
        assert_eq!((figures.delayed, figures.stall_time), (Some(Bytes::ZERO), Some(Duration::ZERO)));
        assert_eq!(
            (figures.time_to_timely, figures.max_write_lag),
            (Some(Duration::ZERO), Some(Duration::ZERO))
        );
        assert_eq!(figures.peak_backlog, Some(Bytes(1000)), "the message that leaves");
        assert_eq!(figures.discarded_messages, None, "this player waits");
    }

    #[test]
    fn lateness_is_held_against_the_first_message_and_the_buffer() {
        // In time up to 5 + 15 ms; the third message (due at 120 ms) to the fifth come after that.
        let rows = taking([5, 5, 45, 40, 30, 20, 10, 5, 5, 5]);
        let figures = stalling(&rows);
        assert_eq!(
            (figures.late_messages, figures.max_lateness),
            (Some(3.0), Some(Duration::from_millis(45)))
        );
        assert_eq!(figures.stall_time, Some(Duration::from_millis(25)));
        // It fell 40 ms behind, which are four messages.
        assert_eq!(figures.delayed, Some(Bytes(4000)));
        // To be played at 140 ms; the sixth, due at 150, came at 170 ms in time.
        assert_eq!(figures.time_to_timely, Some(Duration::from_millis(30)));
        let playout = Playout { buffer: Duration::from_millis(15), late: Late::Discard };
        let figures = StreamFigures::from_rows(&rows, &MESSAGES, playout);
        assert_eq!((figures.discarded_messages, figures.stall_time), (Some(3.0), None));
    }

    #[test]
    fn what_ends_late_has_no_time_to_be_timely_again() {
        let figures = stalling(&taking([5, 5, 45, 45, 45, 5, 5, 5, 30, 30]));
        assert_eq!(figures.time_to_timely, None);
        assert_eq!(figures.final_lateness, Some(Duration::from_millis(30)));
    }

    #[test]
    fn what_waits_in_the_send_buffer_and_before_it_is_backlog() {
        // The first four leave at 130 ms, when they are all due; of the next two the first is blocked.
        let mut rows = taking([50; 10]);
        rows[..4].iter_mut().for_each(|row| row.sent = Some(ms(130)));
        rows[4].written = Some(ms(147));
        (rows[4].sent, rows[5].sent) = (Some(ms(150)), Some(ms(150)));
        let figures = stalling(&rows);
        assert_eq!(figures.peak_backlog, Some(Bytes(4000)));
        assert_eq!(figures.max_write_lag, Some(Duration::from_millis(7)));
    }

    #[test]
    fn an_answer_is_measured_from_when_its_message_was_due() {
        let mut rows = taking([5; 10]);
        for (row, ms) in rows.iter_mut().zip([10, 80, 20, 30, 12]) {
            row.answered = Some(row.due + Duration::from_millis(ms));
        }
        let figures = stalling(&rows);
        let of = |time: Option<Duration>| time.map(|time| time.as_nanos() / 1_000_000);
        assert_eq!([of(figures.median_response), of(figures.max_response)], [Some(20), Some(80)]);
        assert_eq!(stalling(&taking([5; 10])).median_response, None);
    }

    #[test]
    fn of_what_never_arrived_only_the_sender_knows() {
        let mut rows = taking([5; 10]);
        rows.iter_mut().for_each(|row| row.arrived = None);
        let figures = stalling(&rows);
        assert_eq!((figures.messages, figures.max_lateness, figures.stall_time), (Some(0.0), None, None));
        assert_eq!(figures.peak_backlog, Some(Bytes(1000)));
        assert_eq!(stalling(&[]).messages, Some(0.0));
    }
}
