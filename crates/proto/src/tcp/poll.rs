//! What comes out, in order: work, resets, what was delivered, events, segments, the next timeout.

use core::mem::take;

use wiretwin_units::Bytes;

use super::TcpOutput;
use super::config::Pieces;
use super::endpoint::{Endpoint, Pass};
use super::event::Event;
use crate::ranges::Near;
use crate::{Output, Payload, WorkKind};

impl Endpoint {
    /// The next thing to do. To be called after each call that takes the time, until it yields
    /// [`Output::Timeout`].
    pub fn poll_output(&mut self) -> TcpOutput {
        loop {
            if let Some(work) = self.tally.take() {
                return Output::Work(work);
            }
            if let Some(stub) = self.staged.take() {
                return Output::Transmit(self.build(stub));
            }
            if let Some(output) = self.tell() {
                return output;
            }
            if self.pass == Pass::None {
                if self.unsubmitted == 0 {
                    return Output::Timeout(self.timers.next());
                }
                self.submit_piece();
                continue;
            }
            let idle = self.begin_pass();
            let Some(stub) = self.next_segment(idle) else {
                self.pass = Pass::None;
                continue;
            };
            if stub.is_last() {
                self.pass = Pass::None;
                self.persist_if_held_back();
            }
            if !self.config.work {
                return Output::Transmit(self.build(stub));
            }
            self.tally_out(self.build(stub).octets());
            self.staged = Some(stub);
        }
    }

    /// Resets, deliveries and events.
    fn tell(&mut self) -> Option<TcpOutput> {
        if self.rcv_told.to(self.rcv_data_end()) < self.rcv_data_end() {
            return Some(self.tell_established().unwrap_or_else(|| self.deliver()));
        }
        if !self.pending.any {
            return None;
        }
        if let Some(output) = self.tell_established() {
            return Some(output);
        }
        if let Some(reset) = self.pending.reset {
            let segment = reset.segment();
            if self.config.work && !self.pending.reset_paid {
                self.pending.reset_paid = true;
                self.tally_out(segment.octets());
                return self.tally.take().map(Output::Work);
            }
            self.pending.reset = None;
            self.pending.reset_paid = false;
            self.counters.sent += 1;
            return Some(Output::Transmit(segment));
        }
        let event = if take(&mut self.pending.urgent) {
            Event::Urgent { end: Bytes::new((self.rcv_up.to(self.rcv_nxt) - 1).max(0) as u64) }
        } else if take(&mut self.pending.end_of_stream) {
            Event::EndOfStream
        } else if take(&mut self.pending.writable) {
            Event::Writable
        } else if let Some(reason) = self.pending.closed.take() {
            Event::Closed(reason)
        } else {
            self.pending.any = false;
            return None;
        };
        Some(Output::Event(event))
    }

    fn tell_established(&mut self) -> Option<TcpOutput> {
        take(&mut self.pending.established).then_some(Output::Event(Event::Established))
    }

    fn deliver(&mut self) -> TcpOutput {
        let end = self.rcv_data_end();
        let told = self.rcv_told.to(end);
        let payload = Payload {
            message: self.setup.peer_stream,
            start: Bytes::new((told - 1) as u64),
            length: Bytes::new((end - told) as u64),
        };
        self.rcv_told = Near::new(end);
        Output::Deliver(payload)
    }

    /// The work that a segment takes.
    fn tally_out(&mut self, octets: u32) {
        self.work(WorkKind::Checksum, octets, 1);
        self.work(WorkKind::SegmentOut, octets, 1);
    }

    /// Passes on the next piece of what was written, as `sosend` fills mbufs.
    fn submit_piece(&mut self) {
        let left = self.unsubmitted;
        let (octets, pieces) = match self.config.pieces {
            Pieces::Whole => (left, 1),
            Pieces::Segments => (left.min(self.segment_octets()), 1),
            Pieces::Mbufs { cluster, cluster_from, small } => {
                // A cluster needs room for a whole one, however little goes into it.
                let room = i64::from(self.snd_hiwat) - self.queued();
                let fits = left >= cluster_from && (room >= i64::from(cluster) || small == 0);
                (left.min(if fits { cluster } else { small }.max(1)), 1)
            }
        };
        self.work(WorkKind::CopyIn, octets, pieces);
        self.unsubmitted -= octets;
        self.snd_end += i64::from(octets);
        self.want_pass();
    }
}
