//! Connections whose ends are those of the direct transport: its frames as packets of UDP, and what they come out with.

use wiretwin_engine::EventSink;
use wiretwin_plan::PlanError;
use wiretwin_proto::direct::{Config, Counters};
use wiretwin_units::{Bytes, SimTime};

use super::connection::{ConnectionId, EndId};
use super::network::{Event, IP_BYTES, Kind, Network, UDP_BYTES};
use super::reader::Waiting;
use super::slab::Unit;
use crate::direct::{DirectEnd, Step};

impl Network {
    /// Gives a connection ends of the direct transport in place of those of TCP, each of a process that has to look at
    /// what comes for it ([`Network::reads`]). They have met long before. All connections of the network are such.
    ///
    /// # Errors
    /// [`PlanError`] for parameters with which no end can work.
    ///
    /// # Panics
    /// Where another connection is not such.
    pub fn make_direct(
        &mut self,
        sink: &mut impl EventSink<Event>,
        now: SimTime,
        connection: ConnectionId,
        processes: [u32; 2],
        config: Config,
    ) -> Result<(), PlanError> {
        let numbers = [true, false].map(|opens| connection.end(opens).0);
        assert_eq!(self.directs.len(), numbers[0] as usize, "all connections are of one transport");
        let end = |side: usize| {
            let end = DirectEnd::new(config, numbers[side], numbers[1 - side]);
            end.map(|end| end.of(processes[side]))
        };
        let (mut one, mut other) = (end(0)?, end(1)?);
        DirectEnd::meet([&mut one, &mut other], now);
        self.directs.extend([one, other]);
        numbers.into_iter().for_each(|number| self.drain_direct(sink, now, number, now));
        Ok(())
    }

    /// Sends a message of `bytes` from an end of the direct transport, its last byte being made at `made`. When it has
    /// come whole, or is offered at the other end where it is longer than what is sent at once, `client` is in
    /// [`Network::poll_complete`].
    ///
    /// # Panics
    /// Where the connection is another's.
    pub fn send_direct(
        &mut self,
        sink: &mut impl EventSink<Event>,
        now: SimTime,
        end: EndId,
        message: (Bytes, SimTime),
        client: u32,
    ) {
        // Libraries send who it is from as remote data.
        let taken = self.directs[end.index()].send(now, client.into(), Some(0), message);
        assert!(taken, "there is room for a message that is sent");
        self.drain_direct(sink, now, end.0, now);
    }

    /// The receiver of a message that was offered asks for it. When the sender has been told, `client` is in
    /// [`Network::poll_complete`].
    ///
    /// # Panics
    /// As [`Network::send_direct`], and where nothing was offered.
    pub fn clear_direct(
        &mut self,
        sink: &mut impl EventSink<Event>,
        now: SimTime,
        end: EndId,
        bytes: Bytes,
        client: u32,
    ) {
        self.directs[end.index()].clear(now, client.into(), bytes);
        self.drain_direct(sink, now, end.0, now);
    }

    /// Sends the bytes of a message that was asked for, the last of them being made at `made`. When all have come,
    /// `client` is in [`Network::poll_complete`].
    ///
    /// # Panics
    /// As [`Network::send_direct`].
    pub fn send_cleared_direct(
        &mut self,
        sink: &mut impl EventSink<Event>,
        now: SimTime,
        end: EndId,
        message: (Bytes, SimTime),
        client: u32,
    ) {
        self.directs[end.index()].send_cleared(now, client.into(), message);
        self.drain_direct(sink, now, end.0, now);
    }

    /// What all ends of the direct transport have counted together; `None` where there are none.
    #[must_use]
    pub fn direct_totals(&self) -> Option<Counters> {
        let mut totals = Counters::default();
        self.directs.iter().for_each(|end| totals.add(end.counters()));
        (!self.directs.is_empty()).then_some(totals)
    }

    /// A frame is at the host of its end.
    pub(super) fn has_come(&mut self, sink: &mut impl EventSink<Event>, now: SimTime, number: u32, end: u32) {
        let process = self.directs[end as usize].process;
        if self.is_read(sink, now, process, Waiting::Frame(number)) {
            self.frame(sink, now, number, now);
        }
    }

    /// A frame that came at this time is read by its end.
    pub(super) fn frame(
        &mut self,
        sink: &mut impl EventSink<Event>,
        now: SimTime,
        number: u32,
        came: SimTime,
    ) {
        let end = self.packets.load(number).end;
        let frame = self.packets.frame(number);
        self.packets.remove(number);
        self.directs[end as usize].handle_frame(now, &frame.repr, frame.payload);
        self.drain_direct(sink, now, end, came);
    }

    /// Something of an end may be due, if its process looks or is at work on it.
    pub(super) fn is_due(&mut self, sink: &mut impl EventSink<Event>, now: SimTime, end: u32) {
        let state = &self.directs[end as usize];
        let process = state.process;
        if state.is_at_work(now) || self.is_read(sink, now, process, Waiting::Due(end)) {
            self.due(sink, now, end);
        }
    }

    pub(super) fn due(&mut self, sink: &mut impl EventSink<Event>, now: SimTime, end: u32) {
        self.directs[end as usize].handle_timeout(now);
        self.drain_direct(sink, now, end, now);
    }

    /// Takes what an end comes out with; what led to it came at this time.
    fn drain_direct(&mut self, sink: &mut impl EventSink<Event>, now: SimTime, end: u32, came: SimTime) {
        loop {
            match self.directs[end as usize].step(now) {
                Step::Transmit(frame) => {
                    let octets = frame.repr.head_octets() as u32 + frame.payload.length.get() as u32;
                    let bytes = octets + UDP_BYTES + IP_BYTES;
                    let number = self.insert(end, bytes, Unit::Frame);
                    self.packets.keep_frame(number, frame);
                    self.leave(sink, now, end, number, bytes);
                }
                Step::Came(client) | Step::Cleared(client) => {
                    self.complete.push_back((client as u32, came));
                }
                Step::Timer(timer) => {
                    if let Some(timer) = timer {
                        sink.put(timer, Kind::Due.of(end));
                    }
                    return;
                }
            }
        }
    }
}
