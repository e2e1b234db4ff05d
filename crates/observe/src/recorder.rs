//! What an emulation shows becomes what a simulation shows: counts, rows of segments, queues, and a capture.

use crate::capture::{Capture, CaptureError};
use crate::passive::{Counts, FlowPorts, PassiveAnalyzer, Seen};
use crate::record::RowRecorder;
use crate::row_budget::RowBudget;
use crate::series::Series;
use farpath_emu::{PacketEvent, Queues, Recorder, WirePacket};
use farpath_experiment::Output;
use farpath_path::Direction;
use farpath_run::{DelayFigures, Metric, SegmentRow, Trace};
use farpath_sim::{End, Qos};
use farpath_tcp::Flags;
use farpath_tia1039::{Carrier, QosPacket};
use farpath_units::{Bytes, DurationHistogram, Instant, Messages};
use std::io::Write;

/// Records the packets of an emulation.
///
/// What a device refuses is lost outside the path: it is none of a flow's drops, and the loop's own report counts it.
pub struct PacketRecorder<W> {
    analyzer: PassiveAnalyzer,
    /// When each flow's first SYN was sent.
    opened: Vec<Option<Instant>>,
    recorder: RowRecorder,
    /// Of each flow, where series are asked for: what waits in the queues its data goes through.
    queues: Vec<(Direction, Series)>,
    /// How long the packets of each flow that reached the data receiver had waited in queues; `None` on a path without a queue.
    waits: Vec<Option<DurationHistogram>>,
    /// Of each flow that is a stream, when the first byte of each message left its host.
    messages: Vec<Option<(Messages, Vec<Instant>)>>,
    capture: Option<Capture<W>>,
}

impl<W: Write> PacketRecorder<W> {
    /// Records these flows, as far as the experiment asks for it and there is room for rows.
    pub fn new(
        flows: &[FlowPorts],
        output: Output,
        row_budget: &RowBudget,
        capture: Option<Capture<W>>,
    ) -> PacketRecorder<W> {
        let queues = (0..)
            .zip(flows)
            .map(|(number, flow)| (flow.direction, Series::within(number, row_budget.clone())));
        PacketRecorder {
            analyzer: PassiveAnalyzer::new(flows.iter().copied()),
            opened: vec![None; flows.len()],
            recorder: RowRecorder::new(flows.len(), output, row_budget.clone()),
            queues: queues.take_while(|_| output.series).collect(),
            waits: vec![None; flows.len()],
            messages: vec![None; flows.len()],
            capture,
        }
    }

    /// Stamps the messages of a flow that is a stream.
    pub fn stamp(&mut self, flow: u32, messages: Messages) {
        self.messages[flow as usize] = Some((messages, Vec::new()));
    }

    /// When the first byte of each message of a stream left its host.
    pub fn sent(&self, flow: u32) -> &[Instant] {
        self.messages[flow as usize].as_ref().map_or(&[], |(_, sent)| sent)
    }

    /// What has been counted of a flow.
    pub fn counts(&self, flow: u32) -> &Counts {
        self.analyzer.flow(flow).counts()
    }

    /// The round trips of a flow's data sender, and how long its packets waited.
    pub fn delays(&self, flow: u32) -> DelayFigures {
        DelayFigures::from_histograms(self.analyzer.flow(flow).rtts(), self.waits[flow as usize].as_ref())
    }

    /// When the flow's first SYN was sent.
    pub fn opened(&self, flow: u32) -> Option<Instant> {
        self.opened[flow as usize]
    }

    /// The rows of segments and the series of queues.
    ///
    /// # Errors
    /// When the capture could not be written.
    pub fn finish(self) -> Result<(Trace<SegmentRow>, Vec<Series>), CaptureError> {
        if let Some(capture) = self.capture {
            capture.finish()?;
        }
        let (_, segments) = self.recorder.into_traces();
        Ok((segments, self.queues.into_iter().map(|(_, series)| series).collect()))
    }
}

/// What happened, as a simulation has it; `None` where it happened outside of the path.
pub fn on_path(event: PacketEvent) -> Option<farpath_sim::PacketEvent> {
    match event {
        PacketEvent::Sent => Some(farpath_sim::PacketEvent::Sent),
        PacketEvent::Received => Some(farpath_sim::PacketEvent::Received),
        PacketEvent::Dropped(cause) => Some(farpath_sim::PacketEvent::Dropped(cause)),
        PacketEvent::Refused => None,
    }
}

impl<W: Write> Recorder for PacketRecorder<W> {
    fn packet(
        &mut self,
        at: Instant,
        event: PacketEvent,
        direction: Direction,
        packet: &WirePacket,
        queues: Queues<'_>,
    ) {
        let Some(event) = on_path(event) else { return };
        if event == farpath_sim::PacketEvent::Sent {
            for (data, series) in &mut self.queues {
                let backlog: Option<Bytes> = queues.backlog(*data);
                series.note(at, Metric::Queue, backlog.map(|bytes| bytes.0));
            }
        }
        let said = QosPacket::decode(packet.bytes()).ok();
        let qos = said.as_ref().map_or(Qos::default(), |said| Qos {
            mark: said.mark,
            structures: said.structures.map(Box::new),
        });
        let known = packet.decode().ok().and_then(|mut decoded| {
            // Structures behind the header count in no sequence space.
            let behind = said.as_ref().filter(|said| said.carrier == Carrier::Payload);
            let behind = behind.map_or(0, |said| said.place.len());
            decoded.segment.len = decoded.segment.len.saturating_sub(u16::try_from(behind).unwrap_or(0));
            let ports = [decoded.source.port(), decoded.destination.port()];
            let (number, ttl) = (packet.number(), decoded.ip.ttl);
            let seen = Seen { at, event, direction, number, ports, ttl, segment: &decoded.segment };
            self.analyzer.packet(seen)
        });
        let known = known.map(|known| farpath_sim::Packet { qos, ..known });
        if let Some(segment) = &known {
            if segment.segment.flags.contains(Flags::SYN) {
                self.opened[segment.flow as usize].get_or_insert(at);
            }
            let number = segment.flow;
            if event == farpath_sim::PacketEvent::Received
                && segment.from == End::Sender
                && queues.backlog(direction).is_some()
            {
                let waited = packet.queueing();
                self.waits[number as usize].get_or_insert_default().record(waited);
                if let Some((_, series)) = self.queues.get_mut(number as usize) {
                    series.note(at, Metric::QueueingDelay, Some(waited.as_nanos()));
                }
            }
            if event == farpath_sim::PacketEvent::Sent
                && let Some((messages, sent)) = &mut self.messages[number as usize]
            {
                let begun = self.analyzer.flow(number).data().payload();
                let begun = begun.div_ceil(messages.size.0).min(messages.count);
                if sent.len() < begun as usize {
                    sent.resize(begun as usize, at);
                }
            }
            let size = Bytes(packet.bytes().len() as u64);
            self.recorder.segment(at, event, direction, segment, size);
        }
        if let Some(capture) = &mut self.capture {
            // What is no flow's is seen as if it went the way of the data, forward.
            let forward = if direction == Direction::Forward { End::Sender } else { End::Receiver };
            let from = known.map_or(forward, |segment| segment.from);
            capture.real(at, event, from, &packet.finished());
        }
    }
}

#[cfg(test)]
mod tests;
