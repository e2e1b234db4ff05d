//! Turns what a simulation shows into rows.

use crate::row_budget::RowBudget;
use data_encoding::HEXLOWER;
use farpath_experiment::Output;
use farpath_path::{Direction, PathPacket};
use farpath_run::{Metric, SegmentEvent, SegmentRow, SeriesRow, Trace};
use farpath_sim::{End, FlowView, Observer, Packet, PacketEvent};
use farpath_tia1039::{STRUCTURE_LEN, Structures};
use farpath_units::{Bytes, Duration, Instant};
use std::collections::BTreeMap;

/// The metrics of a series, in the order in which they are looked at.
const METRICS: [Metric; 14] = [
    Metric::Cwnd,
    Metric::Ssthresh,
    Metric::FlightSize,
    Metric::Pipe,
    Metric::Srtt,
    Metric::Rttvar,
    Metric::Rto,
    Metric::Rwnd,
    Metric::Delivered,
    Metric::Acked,
    Metric::Queue,
    Metric::Retransmissions,
    Metric::Limit,
    Metric::QueueingDelay,
];

/// Records what the experiment asks for: a series' value when it changes, and every segment.
///
/// A value is looked at whenever one of the flow's ends has been told something and has sent what it could: what
/// comes and goes within such a moment (the first segments of a burst in `flight_size`) is not seen. `queue` is
/// [`FlowView::backlog`]: the longest queue in the flow's data direction just after the last packet, of any flow, was
/// offered to it. It rises in time, and is seen to fall when the next packet comes.
pub struct RowRecorder {
    output: Output,
    row_budget: RowBudget,
    /// Per flow: the values last written, in the order of [`METRICS`], and the number of RTT samples.
    last: Vec<([Option<u64>; METRICS.len()], u64)>,
    /// Per flow: how long the last packet waited that reached the data receiver.
    waits: Vec<Option<Duration>>,
    series: Trace<SeriesRow>,
    segments: Trace<SegmentRow>,
    /// Drops further down the path, which are told when the packet is sent: by time, and by how many were told before.
    drops: BTreeMap<(Instant, u64), SegmentRow>,
    drops_told: u64,
    /// The time of the last row, and whether one before it was of a later time: what happens in real time may be told
    /// late.
    latest: Instant,
    disorder: bool,
}

impl RowRecorder {
    /// For so many flows, with what the experiment asks to be kept.
    pub fn new(flows: usize, output: Output, row_budget: RowBudget) -> RowRecorder {
        let last = vec![([None; METRICS.len()], 0); flows];
        RowRecorder {
            output,
            row_budget,
            last,
            waits: vec![None; flows],
            series: Trace::default(),
            segments: Trace::default(),
            drops: BTreeMap::new(),
            drops_told: 0,
            latest: Instant::ZERO,
            disorder: false,
        }
    }

    /// The rows that it has.
    pub fn into_traces(mut self) -> (Trace<SeriesRow>, Trace<SegmentRow>) {
        self.segments.extend(self.drops.into_values());
        if self.disorder {
            let mut rows = self.segments.to_vec();
            rows.sort_by_key(|row| row.time);
            self.segments = rows.into();
        }
        (self.series, self.segments)
    }

    /// Puts the drops that have happened by `now` in their place in time.
    fn take_drops(&mut self, now: Instant) {
        while let Some(drop) = self.drops.first_entry().filter(|drop| drop.key().0 <= now) {
            self.segments.push(drop.remove());
        }
    }
}

impl RowRecorder {
    /// Notes what happened to a packet of `size` bytes.
    pub fn segment(
        &mut self,
        now: Instant,
        event: PacketEvent,
        direction: Direction,
        packet: &Packet,
        size: Bytes,
    ) {
        if !self.output.segments || !self.row_budget.take() {
            return;
        }
        let (event, cause) = match event {
            PacketEvent::Sent => (SegmentEvent::Sent, packet.resent_by.map(|cause| cause.name().into())),
            PacketEvent::Received => (SegmentEvent::Received, None),
            PacketEvent::Dropped(cause) => (SegmentEvent::Dropped, Some(cause.name().into())),
        };
        let row = SegmentRow { event, cause, ..row(now, direction, packet, size) };
        if event == SegmentEvent::Dropped {
            self.drops.insert((now, self.drops_told), row);
            self.drops_told += 1;
        } else {
            self.push(row);
        }
    }

    /// Puts a row behind those of its time.
    fn push(&mut self, row: SegmentRow) {
        self.take_drops(row.time);
        self.disorder |= row.time < self.latest;
        self.latest = row.time;
        self.segments.push(row);
    }
}

/// A packet as a row; what happened to it is to be said.
fn row(now: Instant, direction: Direction, packet: &Packet, size: Bytes) -> SegmentRow {
    let Packet { segment, qos, .. } = packet;
    SegmentRow {
        time: now,
        flow: packet.flow,
        event: SegmentEvent::Sent,
        cause: None,
        element: None,
        direction: direction.name(),
        seq: segment.seq.0,
        ack: segment.ack.0,
        len: segment.len.into(),
        window: segment.window,
        flags: segment.flags.0,
        size: size.0 as u32,
        ecn: Some(segment.ecn as u8),
        dscp: Some(qos.mark.dscp().unwrap_or(0)),
        qos: qos.structures.as_deref().map(hexadecimal),
        sack: segment.sack.as_slice().iter().map(|block| (block.start.0, block.end.0)).collect(),
        timestamps: segment.timestamps.map(|t| (t.value, t.echo)),
        retransmission: packet.retransmission,
    }
}

/// As the payload of an IPv4 packet.
fn hexadecimal(structures: &Structures) -> String {
    let mut bytes = [0; 2 * STRUCTURE_LEN];
    let len = structures.encode_v4(&mut bytes);
    HEXLOWER.encode(&bytes[..len])
}

impl Observer for RowRecorder {
    fn packet(&mut self, now: Instant, event: PacketEvent, direction: Direction, packet: &Packet) {
        if event == PacketEvent::Received && packet.from == End::Sender {
            self.waits[packet.flow as usize] = Some(packet.queueing);
        }
        self.segment(now, event, direction, packet, packet.wire_size());
    }

    fn wants_signals(&self) -> bool {
        self.output.segments
    }

    fn signal(&mut self, now: Instant, element: &str, direction: Direction, packet: &Packet) {
        if !self.row_budget.take() {
            return;
        }
        let event = SegmentEvent::Passed;
        let row = row(now, direction, packet, packet.wire_size());
        self.push(SegmentRow { event, element: Some(element.to_owned()), ..row });
    }

    fn state(&mut self, now: Instant, flow: FlowView<'_>) {
        if !self.output.series || flow.sender.established_at().is_none() {
            return;
        }
        let half = flow.sender.sender();
        let window = half.window();
        let ns = |duration: Duration| duration.as_nanos();
        let values = [
            Some(window.cwnd),
            // Before the first loss `ssthresh` is as high as it gets: no value to draw.
            Some(window.ssthresh).filter(|&ssthresh| ssthresh != u64::MAX),
            Some(half.flight_size()),
            Some(half.pipe()),
            half.rtt().srtt().map(ns),
            half.rtt().rttvar().map(ns),
            Some(ns(half.rtt().rto())),
            Some(half.rwnd()),
            Some(flow.bytes_read),
            Some(half.acked()),
            flow.backlog().map(|bytes| bytes.0),
            Some(half.stats().retransmissions).filter(|&again| again > 0),
            Some(half.limit(now) as u64),
            self.waits[flow.number as usize].filter(|_| flow.backlog().is_some()).map(ns),
        ];
        let (sample, samples) = half.rtt().last_sample();
        let (last, sampled) = core::mem::replace(&mut self.last[flow.number as usize], (values, samples));
        let mut push = |metric, value| {
            if self.row_budget.take() {
                self.series.push(SeriesRow { time: now, flow: flow.number, metric, value });
            }
        };
        for ((metric, value), last) in METRICS.into_iter().zip(values).zip(last) {
            if let Some(value) = value.filter(|_| value != last) {
                push(metric, value);
            }
        }
        if let Some(sample) = sample.filter(|_| samples != sampled) {
            push(Metric::RttSample, ns(sample));
        }
    }
}
