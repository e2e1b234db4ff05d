//! Series of a real connection, from what its kernel said of it at intervals.
//!
//! Linux counts in segments of `snd_mss`; here they are bytes, as everywhere. Values between two samples are not seen:
//! a simulation, which writes every change, shows more of the same.

use crate::row_budget::RowBudget;
use farpath_run::{Metric, SeriesRow};
#[cfg(target_os = "linux")]
use farpath_traffic::Sample;
use farpath_units::Instant;
#[cfg(target_os = "linux")]
use farpath_units::{Bytes, Duration};
use std::collections::BTreeMap;

/// Rows of one flow, as one of those who look at it sees them: a value when it has changed.
#[derive(Debug)]
pub struct Series {
    flow: u32,
    last: BTreeMap<Metric, u64>,
    rows: Vec<SeriesRow>,
    /// Where others bound the rows: none.
    row_budget: Option<RowBudget>,
}

impl Series {
    /// Of nothing yet.
    pub fn new(flow: u32) -> Series {
        Series { flow, last: BTreeMap::new(), rows: Vec::new(), row_budget: None }
    }

    /// Of nothing yet, with the room of its run.
    pub fn within(flow: u32, row_budget: RowBudget) -> Series {
        Series { row_budget: Some(row_budget), ..Series::new(flow) }
    }

    /// Takes note of a value; of one that is not known, nothing.
    pub fn note(&mut self, time: Instant, metric: Metric, value: Option<u64>) {
        let Some(value) = value else { return };
        if self.last.insert(metric, value) != Some(value)
            && self.row_budget.as_ref().is_none_or(RowBudget::take)
        {
            self.rows.push(SeriesRow { time, flow: self.flow, metric, value });
        }
    }

    /// A sample of the data sender, which sends `size` bytes in all and has opened the connection or not.
    #[cfg(target_os = "linux")]
    pub fn sender(&mut self, sample: &Sample, size: Bytes, opened: bool) {
        let info = &sample.info;
        let bytes = |segments: u32| u64::from(segments) * info.snd_mss.0;
        let ns = |duration: Duration| duration.as_nanos();
        let known = |duration: Duration| (!duration.is_zero()).then(|| ns(duration));
        // RFC 6675's estimate as Linux keeps it. Without SACK its `sacked` are duplicate ACKs.
        let left = info.sacked.saturating_add(info.lost);
        let pipe = info.unacked.saturating_sub(left).saturating_add(info.retrans);
        // Of who opened, Linux counts the SYN; of all, the FIN.
        let acked = info.bytes_acked.map(|acked| acked.0.saturating_sub(u64::from(opened)).min(size.0));
        let values = [
            (Metric::Cwnd, Some(bytes(info.snd_cwnd))),
            (Metric::Ssthresh, info.snd_ssthresh.map(bytes)),
            (Metric::FlightSize, Some(bytes(info.unacked))),
            (Metric::Pipe, Some(bytes(pipe))),
            (Metric::Srtt, info.srtt.map(ns)),
            (Metric::Rttvar, info.rttvar.map(ns)),
            (Metric::Rto, Some(ns(info.rto))),
            (Metric::Rwnd, info.snd_wnd.map(|window| window.0)),
            (Metric::Acked, acked),
            (Metric::Retransmissions, Some(info.total_retrans.into()).filter(|&again| again > 0)),
            (Metric::BusyTime, info.busy_time.and_then(known)),
            (Metric::RwndLimited, info.rwnd_limited.and_then(known)),
            (Metric::SndbufLimited, info.sndbuf_limited.and_then(known)),
        ];
        for (metric, value) in values {
            self.note(sample.at, metric, value);
        }
    }

    /// A sample of the data receiver.
    #[cfg(target_os = "linux")]
    pub fn receiver(&mut self, sample: &Sample) {
        self.note(sample.at, Metric::Delivered, Some(sample.bytes.0));
    }

    /// What there is so far, in the order of time.
    pub fn rows(&self) -> &[SeriesRow] {
        &self.rows
    }

    /// The same, for good.
    pub fn into_rows(self) -> Vec<SeriesRow> {
        self.rows
    }

    /// All in one table, in the order of time.
    pub fn merged(series: impl IntoIterator<Item = Series>) -> Vec<SeriesRow> {
        let mut rows: Vec<SeriesRow> = series.into_iter().flat_map(|series| series.rows).collect();
        rows.sort_by_key(|row| row.time);
        rows
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use farpath_experiment::Experiment;
    use farpath_traffic::{BulkEnd, Opening, Prepared, Role, SocketOptions, TcpInfo};
    use std::net::Ipv4Addr;
    use std::sync::atomic::AtomicBool;
    use std::thread;

    /// What a kernel says of a connection with these counts of segments.
    fn info(cwnd: u32, unacked: u32, [sacked, lost, retrans]: [u32; 3]) -> TcpInfo {
        let zero = TcpInfo::parse(&[0; 280]).expect("long enough");
        TcpInfo {
            snd_mss: Bytes(1448),
            snd_cwnd: cwnd,
            snd_ssthresh: None,
            unacked,
            sacked,
            lost,
            retrans,
            ..zero
        }
    }

    fn sample(at_ms: u64, info: TcpInfo) -> Sample {
        Sample { at: Instant::ZERO + Duration::from_millis(at_ms), bytes: Bytes::ZERO, info }
    }

    fn of(rows: &[SeriesRow], metric: Metric) -> Vec<(u64, u64)> {
        let rows = rows.iter().filter(|row| row.metric == metric);
        rows.map(|row| (row.time.as_nanos() / 1_000_000, row.value)).collect()
    }

    #[test]
    fn segments_become_bytes_and_only_changes_are_rows() {
        let mut series = Series::new(3);
        series.sender(&sample(0, info(10, 10, [0, 0, 0])), Bytes(100_000), true);
        series.sender(&sample(10, info(10, 10, [4, 3, 2])), Bytes(100_000), true);
        series.sender(
            &sample(20, TcpInfo { snd_ssthresh: Some(7), ..info(7, 10, [4, 3, 2]) }),
            Bytes(100_000),
            true,
        );
        let rows = Series::merged([series]);
        assert!(rows.iter().all(|row| row.flow == 3));
        assert_eq!(of(&rows, Metric::Cwnd), [(0, 14_480), (20, 10_136)]);
        assert_eq!(of(&rows, Metric::FlightSize), [(0, 14_480)]);
        assert_eq!(of(&rows, Metric::Pipe), [(0, 14_480), (10, 5 * 1448)]);
        assert_eq!(of(&rows, Metric::Ssthresh), [(20, 10_136)]);
        // Before the first RTT sample there is none.
        assert_eq!(of(&rows, Metric::Srtt), []);
    }

    #[test]
    fn rows_of_an_emulation_share_the_room_of_their_run() {
        let text = "title = \"T\"\npath = \"geo\"\ntransfer.size = \"1 kB\"\nbudget.rows = 5\n";
        let experiment = Experiment::parse(text, "test.toml", &[]).expect("good");
        let row_budget = RowBudget::for_run(&experiment.point(0).scenario);
        let mut both = [0, 1].map(|flow| Series::within(flow, row_budget.clone()));
        for value in 0..4 {
            both.iter_mut()
                .for_each(|series| series.note(Instant::from_nanos(value), Metric::Queue, Some(value)));
        }
        assert_eq!(Series::merged(both).len(), 5);
        assert!(
            row_budget.caveat().is_some_and(|said| said.contains("5 rows") && said.contains("3 left out"))
        );
    }

    #[test]
    fn the_acknowledged_bytes_are_those_of_the_file_whoever_opened() {
        let acked = |bytes, opened| {
            let mut series = Series::new(0);
            let info = TcpInfo { bytes_acked: Some(Bytes(bytes)), ..info(10, 0, [0; 3]) };
            series.sender(&sample(0, info), Bytes(1000), opened);
            of(&series.rows, Metric::Acked)
        };
        assert_eq!(acked(1, true), [(0, 0)]);
        assert_eq!(acked(501, true), [(0, 500)]);
        assert_eq!(acked(500, false), [(0, 500)]);
        assert_eq!([acked(1002, true), acked(1001, false)], [[(0, 1000)], [(0, 1000)]]);
    }

    #[test]
    fn a_real_transfer_has_series_of_both_ends() {
        let size = Bytes(500_000);
        for sender_opens in [true, false] {
            let local = (Ipv4Addr::LOCALHOST, 0).into();
            let end = |role, opening, peer| BulkEnd {
                role,
                opening,
                local,
                peer,
                size,
                request: Bytes::ZERO,
                messages: None,
                reply: Bytes::ZERO,
                writing: Default::default(),
                exchanges: 1,
                token: None,
                start: Instant::ZERO,
                deadline: Instant::ZERO + Duration::from_secs(60),
                sample_every: Some(Duration::from_millis(1)),
                read_rate: Some(10_000_000),
                low_water: None,
                close_within: Duration::from_secs(5),
                socket: SocketOptions::default(),
            };
            let [opener, other] =
                if sender_opens { [Role::Sender, Role::Receiver] } else { [Role::Receiver, Role::Sender] };
            let listener = Prepared::new(end(other, Opening::Listen, local)).expect("it can listen");
            let connector = Prepared::new(end(opener, Opening::Connect, listener.local())).expect("ready");
            let (mut sender, mut receiver) = (Series::new(0), Series::new(0));
            let (sends, receives) = if sender_opens { (connector, listener) } else { (listener, connector) };
            #[expect(clippy::disallowed_methods, reason = "real sockets are in real time")]
            let epoch = std::time::Instant::now();
            let stop = AtomicBool::new(false);
            thread::scope(|scope| {
                scope.spawn(|| sends.run(epoch, &stop, &mut |it| sender.sender(it, size, sender_opens)));
                receives.run(epoch, &stop, &mut |it| receiver.receiver(it));
            });
            let rows = Series::merged([sender, receiver]);
            assert!(rows.is_sorted_by_key(|row| row.time));
            let values =
                |metric| rows.iter().filter(|row| row.metric == metric).map(|row| row.value).collect();
            let acked: Vec<u64> = values(Metric::Acked);
            assert_eq!(acked.first(), Some(&0), "nothing is acknowledged when the connection is there");
            assert!(acked.is_sorted() && acked.last() <= Some(&size.0), "{acked:?}");
            let delivered: Vec<u64> = values(Metric::Delivered);
            assert!(delivered.first() == Some(&0) && delivered.len() > 1, "{delivered:?}");
            let cwnd: Vec<u64> = values(Metric::Cwnd);
            assert!(cwnd.iter().all(|&cwnd| cwnd > 0) && !cwnd.is_empty());
        }
    }
}
