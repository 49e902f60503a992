//! One call of a program, from its requests to their end: packets out of the machine and into it.

use wiretwin_msg::library::Request;
use wiretwin_msg::matching::Pattern;
use wiretwin_msg::mpi::stream::LONGEST;
use wiretwin_msg::mpi::vias::{HEAD_OCTETS, Head};
use wiretwin_msg::mpi::{self, Done, Event, Failure, Kind, Packet, Received, Transmit};
use wiretwin_msg::protocol::Mode;
use wiretwin_msg::via::{AddressSegment, DataSegment, DoneError, MemoryHandle, Place, QueueKind};
use wiretwin_prog::{CommError, Incoming, Outgoing, Rank, Source, Status, Tag, TagMatch};
use wiretwin_proto::{MessageId, Output, Payload};
use wiretwin_units::{Bytes, Span};

use super::short::Short;
use super::{Coming, Mvich, NOW};
use crate::stream::{self, Spinner, pause};

/// The communicator of programs, and that of [`Tag::CONTROL`], which no wildcard takes.
const CONTEXT: u32 = 0;
const CONTROL_CONTEXT: u32 = 1;
/// Turns of a wait between two looks at the clock.
pub(super) const PERIOD: u32 = 1 << 10;
/// Numbers of messages above this are those of the store; the data of the last one lie where they are wanted.
const STORED: u64 = 1 << 63;
const IN_PLACE: MessageId = MessageId(u64::MAX);

/// How far a request of the call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slot {
    Open,
    /// This rank was allowed to write its data into registered memory.
    Granted(u32, MemoryHandle),
    Done,
}

/// The message in the buffer at hand.
#[derive(Clone, Copy)]
struct Current<'a> {
    id: MessageId,
    bytes: &'a [u8],
}

struct Call<'a, 'b> {
    /// The number of the first receive; sends follow the receives.
    base: u64,
    sends: &'a [Outgoing<'a>],
    receives: &'a mut [Incoming<'b>],
    slots: Vec<Slot>,
    open: usize,
    /// The first thing that went wrong, and whether it ends the call.
    error: Option<CommError>,
    ends: bool,
}

impl<'a> Call<'a, '_> {
    fn index(&self, request: u64) -> Option<usize> {
        let index = usize::try_from(request.checked_sub(self.base)?).ok()?;
        (index < self.slots.len()).then_some(index)
    }

    fn send_of(&self, request: u64) -> Option<&'a Outgoing<'a>> {
        self.sends.get(self.index(request)?.checked_sub(self.receives.len())?)
    }

    fn close(&mut self, index: usize) -> Slot {
        let before = std::mem::replace(&mut self.slots[index], Slot::Done);
        self.open -= usize::from(before != Slot::Done);
        before
    }

    fn fail(&mut self, error: CommError) {
        self.error.get_or_insert(error);
        self.ends = true;
    }
}

/// What the machine is asked to receive.
#[inline]
pub(super) fn pattern_of(receive: &Incoming<'_>) -> Pattern {
    let (source, tag) = match (receive.from, receive.tag) {
        (Source::Rank(rank), TagMatch::Tag(tag)) => (Some(rank.0), Some(tag.0)),
        (Source::Rank(rank), TagMatch::Any) => (Some(rank.0), None),
        (Source::Any, TagMatch::Tag(tag)) => (None, Some(tag.0)),
        (Source::Any, TagMatch::Any) => (None, None),
    };
    Pattern { context: context_of(tag), source, tag }
}

/// What the machine is asked to send.
#[inline]
pub(super) fn outgoing_of(send: &Outgoing<'_>) -> mpi::Outgoing {
    mpi::Outgoing {
        to: send.to.0,
        context: context_of(Some(send.tag.0)),
        tag: send.tag.0,
        bytes: Bytes::new(send.message.len() as u64),
        mode: Mode::Standard,
        buffer: send.message.as_ptr() as u64,
    }
}

const fn context_of(tag: Option<u32>) -> u32 {
    match tag {
        Some(tag) if tag == Tag::CONTROL.0 => CONTROL_CONTEXT,
        _ => CONTEXT,
    }
}

impl Mvich {
    pub(super) fn run(
        &mut self,
        sends: &[Outgoing<'_>],
        receives: &mut [Incoming<'_>],
    ) -> Result<(), CommError> {
        let size = self.peers.len() as u32;
        let sources = receives.iter().filter_map(|receive| match receive.from {
            Source::Rank(rank) => Some(rank),
            Source::Any => None,
        });
        if let Some(rank) = sends.iter().map(|send| send.to).chain(sources).find(|rank| rank.0 >= size) {
            return Err(CommError::NoSuchRank { rank, size });
        }
        if let Some(send) = sends.iter().find(|send| send.message.len() as u64 > LONGEST.get()) {
            let most = LONGEST.get();
            let reason = format!("a message of {} bytes: at most {most} are carried", send.message.len());
            return Err(CommError::Transport(reason));
        }
        let mut came = None;
        match (sends, &mut *receives) {
            ([send], []) if self.send_short(send) => return Ok(()),
            ([], [receive]) => match self.receive_short(receive) {
                Short::Over(outcome) => return outcome,
                Short::Long(buffer) => came = buffer,
            },
            _ => {}
        }
        let count = sends.len() + receives.len();
        let mut slots = std::mem::take(&mut self.slots);
        slots.clear();
        slots.resize(count, Slot::Open);
        let base = self.next_request;
        self.next_request += count as u64;
        let mut call = Call { base, sends, receives, slots, open: count, error: None, ends: false };
        self.begin(&mut call);
        if let Some((rank, came)) = came {
            self.take_in(&mut call, rank, came.place, came.outcome.length);
        }
        let driven = self.drive(&mut call);
        let ends = call.ends || driven.is_err();
        let outcome = call.error.take().map_or(driven, Err);
        if ends {
            self.abandon(&mut call);
        }
        self.slots = call.slots;
        outcome
    }

    fn begin(&mut self, call: &mut Call<'_, '_>) {
        for index in 0..call.receives.len() {
            let Incoming { buffer, .. } = &call.receives[index];
            let pattern = pattern_of(&call.receives[index]);
            let capacity = Bytes::new(buffer.len() as u64);
            let incoming = mpi::Incoming { pattern, capacity, buffer: buffer.as_ptr() as u64 };
            let posted = self.machine.receive(NOW, Request(call.base + index as u64), incoming);
            posted.expect("ranks were looked at, and requests are used once");
            self.drain(call, None, None);
        }
        for (index, send) in call.sends.iter().enumerate() {
            let request = Request(call.base + (call.receives.len() + index) as u64);
            let posted = self.machine.send(NOW, request, outgoing_of(send));
            posted.expect("ranks were looked at, and requests are used once");
            self.drain(call, None, Some((request.0, send.message)));
        }
    }

    fn drive(&mut self, call: &mut Call<'_, '_>) -> Result<(), CommError> {
        if call.slots.is_empty() {
            self.progress(call);
            return Ok(());
        }
        let mut spinner = Spinner::new(self.limit, PERIOD);
        while call.open > 0 && !call.ends {
            if self.progress(call) {
                spinner.reset();
                continue;
            }
            if self.is_crowded {
                rustix::thread::sched_yield();
            }
            pause(self.wait, &mut [], &mut spinner).map_err(|failure| self.failed(failure))?;
        }
        Ok(())
    }

    #[cold]
    pub(super) fn failed(&self, failure: stream::Failure) -> CommError {
        match failure {
            stream::Failure::PeerGone => CommError::PeerLost { rank: self.rank },
            stream::Failure::Limit => {
                let ps = u64::try_from(self.limit.as_nanos()).unwrap_or(u64::MAX).saturating_mul(1000);
                CommError::TimedOut { limit: Span::from_ps(ps) }
            }
            stream::Failure::Refused(reason) => CommError::Transport(reason),
        }
    }

    /// Looks at each connection, and takes what has come; whether anything has.
    fn progress(&mut self, call: &mut Call<'_, '_>) -> bool {
        let mut moved = false;
        for rank in 0..self.peers.len() {
            let Some(peer) = &self.peers[rank] else { continue };
            let vi = peer.vi;
            let waits_for_data = !peer.frees.is_empty();
            self.refill(rank);
            if waits_for_data {
                self.reap(rank);
                moved |= self.drain(call, None, None);
            }
            loop {
                match self.adapter.done(vi, QueueKind::Receive) {
                    Ok(completion) => {
                        self.take_in(call, rank, completion.place, completion.outcome.length);
                        moved = true;
                    }
                    Err(DoneError::NotDone) => break,
                    Err(_) => {
                        // All that came before it was lost was taken above; what had gone has gone.
                        self.reap(rank);
                        self.lose(rank);
                        self.drain(call, None, None);
                        moved = true;
                        break;
                    }
                }
            }
        }
        moved
    }

    /// A buffer has come: it goes into the machine, and is posted again.
    fn take_in(&mut self, call: &mut Call<'_, '_>, from: usize, place: Place, length: u32) {
        let Some(peer) = &self.peers[from] else { return };
        let (vi, came) = (peer.vi, peer.buffers.came(place, length));
        let Some((slot, octets)) = came else { return self.lose(from) };
        // SAFETY: the memory stays while the peer does, and the buffer is this rank's until it is posted below; if
        // the peer is lost meanwhile, nobody looks at it any more.
        let octets = unsafe { std::slice::from_raw_parts(octets.as_ptr(), octets.len()) };
        let head = octets.split_first_chunk::<HEAD_OCTETS>();
        let Some((head, body)) = head.and_then(|(head, body)| Some((Head::read(head).ok()?, body))) else {
            // No rank says that: the connection is of no use.
            self.lose(from);
            self.drain(call, None, None);
            return;
        };
        let taken = self.take_packet(call, from, head, body);
        if !taken {
            self.lose(from);
            self.drain(call, None, None);
        } else if let Some(peer) = &self.peers[from] {
            let receive = peer.buffers.receive(slot);
            // The VI is there, for it was made here.
            let _ = self.adapter.post(vi, QueueKind::Receive, receive);
        }
    }

    /// What a buffer says; false if it makes no sense.
    fn take_packet(&mut self, call: &mut Call<'_, '_>, from: usize, head: Head, body: &[u8]) -> bool {
        let Head { mut packet, start, length } = head;
        let mut current = None;
        match packet.kind {
            Kind::Eager { .. } => {
                let Some(peer) = &mut self.peers[from] else { return false };
                let whole = packet.bytes.get();
                let (start, length) = (u64::from(start), u64::from(length));
                if length != body.len() as u64 {
                    return false;
                }
                let coming = match peer.coming.take() {
                    None if start == 0 && length == whole => {
                        let id = MessageId(STORED | self.store.next_number() as u64);
                        current = Some(Current { id, bytes: body });
                        packet.body = Some(Payload::whole(id, packet.bytes));
                        None
                    }
                    None if start == 0 && length > 0 && length < whole => {
                        let (source, tag) = (Rank(from as u32), Tag(packet.envelope.tag));
                        let number = self.store.begin(source, tag, whole as usize);
                        Some(Coming { packet, number, there: 0 })
                    }
                    Some(coming) if start == coming.there && length > 0 => Some(coming),
                    _ => return false,
                };
                if let Some(Coming { packet: first, number, there }) = coming {
                    let room = self.store.bytes_mut(number);
                    let (at, after) = (there as usize, (there + length) as usize);
                    if after > room.len() {
                        return false;
                    }
                    room[at..after].copy_from_slice(body);
                    if after < room.len() {
                        peer.coming = Some(Coming { packet: first, number, there: there + length });
                        return true;
                    }
                    self.store.complete(number);
                    let id = MessageId(STORED | number as u64);
                    packet = Packet { body: Some(Payload::whole(id, first.bytes)), ..first };
                }
            }
            Kind::Data => packet.body = Some(Payload::whole(IN_PLACE, packet.bytes)),
            Kind::Reply => {
                self.grants.insert(packet.send, head.granted());
                packet.envelope.context = CONTEXT;
            }
            _ => {}
        }
        self.machine.handle_packet(NOW, from as u32, packet);
        self.drain(call, current, None);
        true
    }

    /// Does what the machine asks for; whether it asked for anything.
    fn drain(
        &mut self,
        call: &mut Call<'_, '_>,
        current: Option<Current<'_>>,
        sending: Option<(u64, &[u8])>,
    ) -> bool {
        let mut any = false;
        loop {
            match self.machine.poll_output() {
                Output::Work(_) => continue,
                Output::Transmit(Transmit::Packet { to, packet }) => self.put(call, to, packet),
                Output::Transmit(Transmit::Fetch { .. }) => unreachable!("not a policy for VIs"),
                Output::Deliver(done) => self.told(call, done, current),
                Output::Event(Event::Unexpected { envelope, kept }) => {
                    if let Some(Current { bytes, .. }) = current {
                        let number = self.store.begin(Rank(envelope.source), Tag(envelope.tag), bytes.len());
                        self.store.bytes_mut(number).copy_from_slice(bytes);
                        self.store.complete(number);
                    } else if let Some((request, message)) = sending.filter(|_| !kept.is_zero()) {
                        self.own.insert(request, message.to_vec());
                    }
                }
                Output::Event(Event::Garbage { .. }) => {}
                Output::Timeout(_) => return any,
            }
            any = true;
        }
    }

    /// Does what the machine asks for between calls.
    #[cold]
    pub(super) fn drain_alone(&mut self) {
        let base = self.next_request;
        let (slots, open, error, ends) = (Vec::new(), 0, None, false);
        let mut call = Call { base, sends: &[], receives: &mut [], slots, open, error, ends };
        self.drain(&mut call, None, None);
    }

    /// A packet goes to a rank.
    fn put(&mut self, call: &mut Call<'_, '_>, to: u32, packet: Packet) {
        let (rank, send) = (to as usize, packet.send);
        match packet.kind {
            Kind::Eager { .. } => {
                // Its call is under way: a call that is given up ends the connections that its sends wait for.
                let message = call.send_of(send).map_or(&[][..], |send| send.message);
                let (room, mut part, mut start) = (self.room(), packet, 0);
                loop {
                    let body = &message[start..message.len().min(start + room)];
                    let head = Head { packet: part, start: start as u32, length: body.len() as u32 };
                    self.post(rank, |buffers| buffers.send(&head.octets(), body));
                    // What is returned is returned once.
                    part.credit = 0;
                    start += body.len();
                    if start == message.len() {
                        break;
                    }
                }
                self.machine.handle_sent(NOW, send);
            }
            Kind::Data => self.put_data(call, rank, packet),
            Kind::Reply => {
                let memory = self.grant(call, to, &packet);
                let head = Head::granting(packet, memory);
                self.post(rank, |buffers| buffers.send(&head.octets(), &[]));
            }
            _ => self.post(rank, |buffers| buffers.send(&Head::of(packet).octets(), &[])),
        }
    }

    /// The data of a rendezvous are written into the memory that the reply has named; a buffer says so.
    fn put_data(&mut self, call: &Call<'_, '_>, rank: usize, packet: Packet) {
        let granted = self.grants.remove(&packet.send);
        let length = packet.bytes.get() as usize;
        if let (Some(memory), Some(send), true) = (granted, call.send_of(packet.send), length > 0)
            && let Some(message) = send.message.get(..length)
        {
            let segment = self.registered(packet.send, message);
            let most = self.transfer;
            let mut at = 0;
            while let Some(segment) = segment
                && at < length
            {
                let piece = (length - at).min(most);
                let from =
                    DataSegment { address: segment.address + at as u64, length: piece as u32, ..segment };
                let into = AddressSegment { address: memory.address + at as u64, ..memory };
                self.post(rank, |buffers| buffers.write(from, into));
                at += piece;
            }
        }
        self.post(rank, |buffers| buffers.send(&Head::of(packet).octets(), &[]));
        if let Some(peer) = &mut self.peers[rank] {
            peer.frees.push_back((peer.posted, packet.send));
        }
    }

    /// Memory of a send, registered until it is done. What cannot be written is copied: an adapter registers memory
    /// for both.
    fn registered(&mut self, send: u64, message: &[u8]) -> Option<DataSegment> {
        let length = message.len() as u32;
        let registrations = &mut self.registrations;
        let segment = match registrations.acquire(&self.adapter, message.as_ptr() as u64, length) {
            Ok(segment) => segment,
            Err(_) => {
                let aside = self.aside.entry(send).or_insert_with(|| message.to_vec());
                registrations.acquire(&self.adapter, aside.as_ptr() as u64, length).ok()?
            }
        };
        self.used.insert(send, segment.handle);
        Some(segment)
    }

    /// The memory that a receive has for the data of a rendezvous.
    fn grant(&mut self, call: &mut Call<'_, '_>, to: u32, packet: &Packet) -> AddressSegment {
        let nothing = AddressSegment { address: 0, handle: MemoryHandle(0) };
        let Some(index) = call.index(packet.receive) else { return nothing };
        let length = packet.bytes.get() as usize;
        let Some(room) = call.receives.get_mut(index).and_then(|receive| receive.buffer.get_mut(..length))
        else {
            return nothing;
        };
        call.slots[index] = Slot::Granted(to, nothing.handle);
        if room.is_empty() {
            return nothing;
        }
        match self.registrations.acquire(&self.adapter, room.as_mut_ptr() as u64, length as u32) {
            Ok(segment) => {
                call.slots[index] = Slot::Granted(to, segment.handle);
                AddressSegment { address: segment.address, handle: segment.handle }
            }
            Err(error) => {
                call.fail(CommError::Transport(format!("registering {length} bytes: {error}")));
                nothing
            }
        }
    }

    /// Posts a send to a rank, once a buffer is free; where the rank is gone, nothing.
    fn post(&mut self, rank: usize, fill: impl FnOnce(&mut super::Buffers) -> Place) {
        if self.peers[rank].as_ref().is_some_and(|peer| peer.buffers.is_filling()) {
            self.reap(rank);
        }
        let Some(peer) = &mut self.peers[rank] else { return };
        // As many as are counted may be open and a few more: the adapter of the other end takes them.
        while !peer.buffers.has_send() {
            if self.adapter.wait(peer.vi, QueueKind::Send, Some(self.limit)).is_err() {
                return;
            }
            peer.buffers.done();
            peer.done += 1;
        }
        peer.posted += 1;
        let place = fill(&mut peer.buffers);
        // The VI is there, for it was made here; what becomes of the descriptor its queue tells.
        let _ = self.adapter.post(peer.vi, QueueKind::Send, place);
    }

    fn told(&mut self, call: &mut Call<'_, '_>, done: Done, current: Option<Current<'_>>) {
        match done {
            Done::Sent(Request(request)) => {
                self.sent(request);
                if let Some(index) = call.index(request) {
                    call.close(index);
                }
            }
            Done::Received(received) => self.received(call, &received, current),
            // Only an abandoned call takes requests back.
            Done::Cancelled { .. } => {}
            Done::Failed { request: Request(request), failure } => {
                self.sent(request);
                if let Some(index) = call.index(request) {
                    let waits = call.close(index) == Slot::Open;
                    let anyone = call.receives.get(index).is_some_and(|receive| receive.from == Source::Any);
                    call.fail(match failure {
                        // All have gone, in whichever order: the first of them is named.
                        Failure::PeerLost { .. } if waits && anyone => {
                            CommError::PeerLost { rank: Rank(u32::from(self.rank.0 == 0)) }
                        }
                        Failure::PeerLost { rank } => CommError::PeerLost { rank: Rank(rank) },
                        Failure::Mismatch { mismatch, .. } => CommError::Transport(mismatch.to_string()),
                    });
                }
            }
        }
    }

    /// The memory of a send is needed no more.
    fn sent(&mut self, request: u64) {
        if let Some(handle) = self.used.remove(&request) {
            self.registrations.release(handle);
            if self.aside.remove(&request).is_some() {
                self.registrations.revoke(&self.adapter, handle);
            }
        }
    }

    fn received(&mut self, call: &mut Call<'_, '_>, received: &Received, current: Option<Current<'_>>) {
        let Received { request, envelope, bytes, body, .. } = *received;
        let id = body.map_or(IN_PLACE, |body| body.message);
        let Some(index) = call.index(request.0).filter(|index| *index < call.receives.len()) else { return };
        if let Slot::Granted(_, handle) = call.close(index) {
            self.registrations.release(handle);
        }
        let own = call.send_of(id.0).map(|send| send.message);
        let receive = &mut call.receives[index];
        let mut copy = |message: &[u8]| {
            let count = message.len().min(receive.buffer.len());
            receive.buffer[..count].copy_from_slice(&message[..count]);
        };
        let stored = (id.0 & !STORED) as usize;
        match (current.filter(|current| current.id == id), own) {
            _ if id == IN_PLACE => {}
            (Some(current), _) => copy(current.bytes),
            (None, _) if id.0 & STORED != 0 => {
                copy(self.store.bytes(stored));
                self.store.forget(stored);
            }
            // A message of this rank to itself, of this call or of one before.
            (None, Some(message)) => copy(message),
            (None, None) => copy(&self.own.remove(&id.0).unwrap_or_default()),
        }
        let room = Bytes::new(receive.buffer.len() as u64);
        if bytes > room {
            call.error.get_or_insert(CommError::Truncated { message: bytes, buffer: room });
        }
        let (source, tag) = (Rank(envelope.source), Tag(envelope.tag));
        receive.status = Some(Status { source, tag, bytes: bytes.min(room) });
    }

    /// Takes back what a failed call has asked for. Its memory is the program's again: connections over which it
    /// could still be written, or that wait for its data, end.
    fn abandon(&mut self, call: &mut Call<'_, '_>) {
        for index in 0..call.slots.len() {
            let request = Request(call.base + index as u64);
            let peer = match (call.slots[index], index.checked_sub(call.receives.len())) {
                (Slot::Done, _) => continue,
                (Slot::Granted(rank, _), _) => Some(rank),
                (Slot::Open, Some(send)) => Some(call.sends[send].to.0),
                (Slot::Open, None) => None,
            };
            match peer.filter(|rank| *rank != self.rank.0) {
                Some(rank) => self.lose(rank as usize),
                None => self.machine.cancel(NOW, request),
            }
        }
        for slot in &call.slots {
            if let Slot::Granted(_, handle) = slot {
                self.registrations.revoke(&self.adapter, *handle);
            }
        }
        for (_, handle) in std::mem::take(&mut self.used) {
            self.registrations.revoke(&self.adapter, handle);
        }
        self.aside.clear();
        self.grants.clear();
        // Nothing of what the machine still says is the program's.
        call.slots.fill(Slot::Done);
        self.drain(call, None, None);
    }
}
