//! One VI: what goes out and what comes in.
//!
//! A frame of the ring is a message, or part of one: what it is ([`kind`]), how many messages its sender has
//! accepted, what the kind needs, data. A message longer than [`BY_REFERENCE`] octets names where its data are, if
//! the receiver can read the memory of the sender; else it goes in as many frames as it takes.

use std::collections::VecDeque;

use wiretwin_msg::via::{
    Access, AddressSegment, AsynchronousError, CONTROL_SEGMENT, Completion, DataSegment, Delivery, ErrorCode,
    Memory, MemoryHandle, NicAttributes, Outcome, Place, QueueKind, Reliability, RemoteAttributes, Resource,
    ViAttributes, ViHandle, ViState, ViplError, check_segments, control, status,
};

use super::Event;
use super::carrier::{Carrier, Next};
use super::connect::Asking;
use super::link::{Closing, Link};
use super::queue::{Numbers, Plain, Posted, Queue};
use super::remote::{self, Range};
use super::table::Cqs;
use super::views::{Part, Views};
use super::wire::Wire;
use crate::ring::{INLINE, SHORT_FRAME, SHORT_HEAD, copy_short};

/// What a frame is: the lowest octet.
mod kind {
    /// A message for a receive descriptor.
    pub const SEND: u8 = 0;
    /// An RDMA write: address 8, handle 4.
    pub const WRITE: u8 = 1;
    /// A request for an RDMA read: address 8, handle 4, length 4, number of the descriptor 4.
    pub const READ: u8 = 2;
    /// The answer to one: number of the descriptor 4.
    pub const ANSWER: u8 = 3;
    /// More data of the message before.
    pub const MORE: u8 = 4;
    /// Between hosts: nothing but how many messages were accepted.
    pub const ACCEPT: u8 = 5;
    /// Between hosts: the last word of an end ([`super::super::carrier`]).
    pub const CLOSE: u8 = 6;
    pub const ANY: u8 = 7;
    /// Immediate data follow: 4.
    pub const IMMEDIATE: u8 = 0x10;
    /// Not all data are in this frame: the length of all follows, 4.
    pub const LONG: u8 = 0x20;
    /// Of such a message, where its data are: address 8, length 4 and handle 4 of each part. Between hosts they come
    /// beside it.
    pub const REFERENCE: u8 = 0x40;
}

/// Messages above this, in octets, name where their data are, and between hosts have them come beside.
const BY_REFERENCE: u32 = 8 << 10;
/// The longest head of a frame, the parts of a reference not counted.
const HEAD: usize = 32;
/// Parts of a reference, and the octets of one.
const PARTS: usize = 256;
const PART: usize = 16;
/// Frames taken in one turn.
const TURN: u32 = 64;
/// Messages after which the sender is told that they were accepted, though others come.
const ACCEPT_EVERY: u64 = 32;
/// For which no descriptor waits.
const NOBODY: u64 = u64::MAX;
/// The answer to an RDMA read.
const ANSWER: u64 = u64::MAX - 1;

/// The first octet of a frame that is the last word of an end.
pub(super) const CLOSE: u8 = kind::CLOSE;

/// Whether data of a frame between hosts come beside it.
pub(super) fn has_data(frame: &[u8]) -> bool {
    let kinds = [kind::SEND, kind::WRITE, kind::ANSWER];
    frame.first().is_some_and(|what| what & kind::REFERENCE != 0 && kinds.contains(&(what & kind::ANY)))
}

mod short;
mod transfer;

/// What all VIs of an adapter share.
#[derive(Debug)]
pub(super) struct Common {
    pub attributes: NicAttributes,
    pub memory: Memory,
    /// Whether what is registered stays the memory that it was then until it is given back.
    pub lasting: bool,
    pub cqs: Cqs,
    /// What carries connections to other hosts, of an adapter that has some.
    pub carrier: Option<Carrier>,
    /// What handlers are to be told.
    pub events: VecDeque<Event>,
}

impl Common {
    pub fn error(&mut self, resource: Resource, code: ErrorCode) {
        self.events.push_back(Event::Asynchronous(AsynchronousError { resource, code }));
    }
}

/// How a connection ends by what was found at this end.
#[derive(Clone, Copy, Debug)]
pub(super) struct End {
    tell: Closing,
    code: Option<ErrorCode>,
}

impl End {
    pub const DISCONNECT: Self = Self { tell: Closing::Disconnected, code: None };
}

/// Memory that the remote end reads.
#[derive(Clone, Copy, Debug)]
struct Answer {
    number: u32,
    source: AddressSegment,
    total: u32,
    offset: u32,
}

/// What is coming in.
#[derive(Clone, Copy, Debug, Default)]
enum Assembly {
    #[default]
    Nothing,
    /// A message, into the receive of this number.
    Receive { number: u64, got: u32, total: u32, immediate: Option<u32> },
    /// An RDMA write.
    Write { to: AddressSegment, got: u32, total: u32, immediate: Option<u32> },
    /// The answer to the RDMA read of this number.
    Read { number: u64, got: u32, total: u32 },
    /// The rest of a message that was rejected.
    Refused { got: u32, total: u32 },
}

/// The data of a message, or part of them.
enum Data<'a> {
    Here(&'a [u8]),
    /// In the memory of the other process: the parts as they stand in the frame.
    There(&'a mut Views, &'a [u8]),
    /// They have come beside the frame, to where they belong, unless they are these.
    Beside(Option<&'a [u8]>),
}

impl<'a> Data<'a> {
    /// Data that came some time after the frame.
    const fn is_late(&self) -> bool {
        matches!(self, Self::Beside(_))
    }
}

#[derive(Debug)]
pub(super) struct Vi {
    pub handle: ViHandle,
    attributes: ViAttributes,
    /// The longest message that may go at once, in octets; of a VI that is not reliable none may.
    longest_at_once: u32,
    pub state: ViState,
    pub send: Queue,
    pub receive: Queue,
    pub link: Option<Wire>,
    /// The descriptor being sent, how much of it has gone, and whether any of it has.
    next: u64,
    offset: u32,
    begun: bool,
    /// Messages that were not accepted yet: whose they are.
    unaccepted: Numbers,
    /// Messages that were; and that the remote end has said so of, which is never fewer.
    accepted: u64,
    heard: u64,
    /// RDMA reads without their data.
    reads: u32,
    answers: VecDeque<Answer>,
    /// Messages accepted here, and how many of them the remote end was told of.
    taken: u64,
    told: u64,
    /// The memory of one of these waits for the remote end to be told.
    is_awaited: bool,
    assembly: Assembly,
    pub asking: Option<Asking>,
    /// How the last request for a connection ended.
    pub answer: Option<Result<RemoteAttributes, ViplError>>,
}

fn part(segment: &DataSegment) -> Range {
    (segment.address, segment.length)
}

/// The parts of these segments that hold `length` octets from `offset` on.
fn parts(segments: &[DataSegment], offset: u32, length: u32) -> impl Iterator<Item = Range> {
    let (mut skip, mut left) = (offset, length);
    segments.iter().map(part).filter_map(move |(address, room)| {
        let skipped = skip.min(room);
        skip -= skipped;
        let length = left.min(room - skipped);
        left -= length;
        (length > 0).then_some((address + u64::from(skipped), length))
    })
}

/// Memory that was checked, as octets.
///
/// # Safety
/// It is memory of this process, which nobody writes while the octets are looked at.
pub(super) const unsafe fn octets<'a>((address, length): Range) -> &'a [u8] {
    if length == 0 {
        return &[];
    }
    // SAFETY: the caller's.
    unsafe { std::slice::from_raw_parts(address as *const u8, length as usize) }
}

impl Common {
    /// The error bits of a descriptor that cannot be sent.
    #[inline]
    fn check_send(&self, vi: &ViAttributes, posted: &Posted) -> Result<(), u32> {
        let view = posted.view().ok_or(status::FORMAT_ERROR)?;
        view.check_send(&self.attributes, vi, &self.memory)
    }

    /// The error bits of data segments that a VI may not use.
    #[inline]
    fn check(&self, vi: &ViAttributes, data: &[DataSegment]) -> Result<(), u32> {
        check_segments(data, vi.ptag, &self.memory)
    }
}

/// Puts data into memory that was checked; the octets that came.
#[inline]
fn put(data: Data<'_>, to: impl Iterator<Item = Range>) -> u32 {
    match data {
        Data::Here(octets) | Data::Beside(Some(octets)) => {
            let mut from = 0;
            for (address, length) in to {
                let length = (length as usize).min(octets.len() - from);
                let (source, target) = (octets[from..].as_ptr(), address as *mut u8);
                // SAFETY: registered memory of this process, which lives until it is given back, and that
                // waits for the lock; nothing else writes where data are being received.
                unsafe {
                    if length <= INLINE {
                        copy_short(source, target, length);
                    } else {
                        std::ptr::copy(source, target, length);
                    }
                }
                from += length;
            }
            from as u32
        }
        Data::There(views, reference) => fetch(views, reference, to),
        Data::Beside(None) => to.map(|(_, length)| length).sum(),
    }
}

/// Puts data into memory that was checked, out of the memory of another process; the octets that came.
///
/// Never part of its caller, which would have to make room on the stack for each short message too.
#[inline(never)]
fn fetch(views: &mut Views, reference: &[u8], to: impl Iterator<Item = Range>) -> u32 {
    let (mut local, mut remote) = ([(0, 0); PARTS], [Part::NONE; PARTS]);
    let (mut locals, mut remotes) = (0, 0);
    for (slot, range) in local.iter_mut().zip(to) {
        *slot = range;
        locals += 1;
    }
    for (slot, octets) in remote.iter_mut().zip(reference.chunks_exact(PART)) {
        *slot = Part::parse(octets);
        remotes += 1;
    }
    let (to, parts) = (&local[..locals], &remote[..remotes]);
    let mut from = [(0, 0); PARTS];
    // SAFETY: as where data come in frames; what is mapped here lives as long as the connection is served.
    unsafe {
        if views.find(parts, &mut from) {
            return copy(to, &from[..remotes]);
        }
        for (place, part) in from.iter_mut().zip(parts) {
            *place = (part.address, part.length);
        }
        views.process.map_or(0, |process| remote::read(process, to, &from[..remotes]) as u32)
    }
}

/// Copies from these parts of memory into those; the octets that were copied.
///
/// # Safety
/// The first may be written, and the others read.
unsafe fn copy(to: &[Range], from: &[Range]) -> u32 {
    let (mut copied, mut source, mut sources) = (0, (0, 0), from.iter());
    for &(address, length) in to {
        let mut skip = 0;
        while skip < length {
            if source.1 == 0 {
                let Some(next) = sources.next() else { return copied };
                source = *next;
            }
            let count = source.1.min(length - skip);
            // SAFETY: the caller's; both may lie in one file.
            unsafe {
                let target = (address + u64::from(skip)) as *mut u8;
                std::ptr::copy(source.0 as *const u8, target, count as usize);
            }
            source = (source.0 + u64::from(count), source.1 - count);
            (skip, copied) = (skip + count, copied + count);
        }
    }
    copied
}

/// Writes what became of a descriptor into it. The status comes last, for a program may look at it.
///
/// # Safety
/// It is a descriptor in memory that may be written.
#[inline]
unsafe fn write_outcome(place: Place, outcome: Outcome) {
    let at = (place.address + Delivery::COMPLETION_AT) as *mut u32;
    // SAFETY: the caller's.
    unsafe {
        at.write_volatile(outcome.immediate.to_le());
        at.add(1).write_volatile(outcome.length.to_le());
        std::sync::atomic::fence(std::sync::atomic::Ordering::Release);
        at.add(2).write_volatile(outcome.status.to_le());
    }
}

/// The head of a frame as it is written.
struct Head {
    octets: [u8; HEAD],
    length: usize,
}

impl Head {
    #[inline]
    fn new(kind: u8, taken: u64) -> Self {
        let mut octets = [0; HEAD];
        octets[0] = kind;
        octets[1..3].copy_from_slice(&(taken as u16).to_le_bytes());
        Self { octets, length: 3 }
    }

    fn push<const N: usize>(&mut self, octets: [u8; N]) {
        self.octets[self.length..self.length + N].copy_from_slice(&octets);
        self.length += N;
    }

    fn remote(&mut self, remote: AddressSegment) {
        self.push(remote.address.to_le_bytes());
        self.push(remote.handle.0.to_le_bytes());
    }
}

/// A frame as it is read.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    fn word(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn remote(&mut self) -> Option<AddressSegment> {
        let address = u64::from_le_bytes(self.take()?);
        Some(AddressSegment { address, handle: MemoryHandle(self.word()?) })
    }
}

/// See [`Vi::longest_at_once`].
fn longest_at_once(attributes: &ViAttributes) -> u32 {
    let longest = attributes.max_transfer.get().min(SHORT_FRAME as u64) as u32;
    if attributes.reliability.is_reliable() { longest } else { 0 }
}

impl Vi {
    pub fn new(handle: ViHandle, attributes: ViAttributes) -> Self {
        Self {
            handle,
            attributes,
            longest_at_once: longest_at_once(&attributes),
            state: ViState::Idle,
            send: Queue::new(attributes.send_cq),
            receive: Queue::new(attributes.receive_cq),
            link: None,
            next: 0,
            offset: 0,
            begun: false,
            unaccepted: Numbers::with_room(2 * TURN as usize),
            accepted: 0,
            heard: 0,
            reads: 0,
            answers: VecDeque::new(),
            taken: 0,
            told: 0,
            is_awaited: false,
            assembly: Assembly::Nothing,
            asking: None,
            answer: None,
        }
    }

    pub const fn attributes(&self) -> &ViAttributes {
        &self.attributes
    }

    pub fn set_attributes(&mut self, attributes: ViAttributes) {
        self.attributes = attributes;
        self.longest_at_once = longest_at_once(&attributes);
    }

    pub const fn queue(&mut self, kind: QueueKind) -> &mut Queue {
        match kind {
            QueueKind::Send => &mut self.send,
            QueueKind::Receive => &mut self.receive,
        }
    }

    /// The connection is there: both directions begin anew.
    pub fn connected(&mut self, link: Wire, remote: RemoteAttributes) {
        self.state = ViState::Connected;
        self.link = Some(link);
        (self.next, self.offset, self.begun) = (self.send.next_number(), 0, false);
        (self.accepted, self.heard, self.reads, self.taken, self.told) = (0, 0, 0, 0, 0);
        self.unaccepted.clear();
        self.answers.clear();
        self.assembly = Assembly::Nothing;
        self.asking = None;
        self.answer = Some(Ok(remote));
    }

    /// The request for a connection is over without one.
    pub fn answered(&mut self, error: ViplError) {
        self.asking = None;
        self.state = ViState::Idle;
        self.answer = Some(Err(error));
    }

    /// Tells of everything that is done at the head of a queue.
    #[inline]
    pub fn publish(&mut self, common: &mut Common, kind: QueueKind) {
        let (handle, tag) = (self.handle, self.attributes.ptag);
        let queue = self.queue(kind);
        while let Some(completion) = queue.publish() {
            let Completion { place, outcome } = completion;
            let octets = CONTROL_SEGMENT as u64;
            if common.memory.check(place.address, octets, place.handle, tag, Access::Local).is_ok() {
                // SAFETY: a descriptor in registered memory; its place is a multiple of 64.
                unsafe { write_outcome(place, outcome) };
            } else {
                common.error(Resource::Descriptor(handle, place), ErrorCode::CompletionProtection);
            }
            if let Some(cq) = queue.cq
                && !common.cqs.publish(cq, handle, kind, &mut common.events)
            {
                common.error(Resource::Cq(cq), ErrorCode::Overrun);
            }
            if let Some(token) = queue.notify.pop_front() {
                queue.take();
                common.events.push_back(Event::Notified { vi: handle, kind, completion, token });
            }
        }
    }

    #[inline]
    fn finish(&mut self, common: &mut Common, kind: QueueKind, number: u64, outcome: Outcome) {
        self.queue(kind).finish(number, outcome);
        self.publish(common, kind);
    }

    /// A descriptor is done, in error.
    fn fail(&mut self, common: &mut Common, kind: QueueKind, number: u64, error: u32) {
        let operation = self.queue(kind).get(number).map_or(0, |posted| posted.operation_bits(kind));
        let status = status::DONE | error | operation;
        self.finish(common, kind, number, Outcome { status, length: 0, immediate: 0 });
    }

    /// A descriptor cannot be carried out as there is no connection.
    pub fn flushed(&mut self, common: &mut Common, kind: QueueKind, number: u64) {
        self.fail(common, kind, number, status::FLUSHED_ERROR);
    }

    /// Everything posted is flushed, and the state is this.
    pub fn end(&mut self, common: &mut Common, state: ViState) {
        self.state = state;
        self.link = None;
        self.asking = None;
        self.reads = 0;
        self.answers.clear();
        self.unaccepted.clear();
        self.assembly = Assembly::Nothing;
        for kind in [QueueKind::Send, QueueKind::Receive] {
            self.queue(kind).flush(kind);
            self.publish(common, kind);
        }
    }

    /// The connection ends by the consumer: the remote end is told.
    pub fn disconnect(&mut self, common: &mut Common) {
        if let Some(link) = self.link.take() {
            link.close(&mut common.carrier, Closing::Disconnected, self.taken);
        }
        self.end(common, ViState::Idle);
    }

    /// The connection is lost, by an error at this end or because the remote end has gone.
    pub fn lose(&mut self, common: &mut Common, end: End) {
        if let Some(link) = self.link.take() {
            link.close(&mut common.carrier, end.tell, self.taken);
        }
        let about = Resource::Vi(self.handle);
        if let Some(code) = end.code {
            common.error(about, code);
        }
        // An RDMA operation of the remote end that this breaks off, for which no descriptor here stands.
        let serves = matches!(self.assembly, Assembly::Write { .. })
            || !self.answers.is_empty()
            || self.unaccepted.iter().any(|number| number == ANSWER);
        if serves {
            common.error(about, ErrorCode::RdmaTransport);
        }
        self.end(common, ViState::Error);
        common.error(about, ErrorCode::ConnectionLost);
    }

    /// Whether a frame has come that was not looked at. Between hosts a look is a system call, and may have made room
    /// for what waits to be sent.
    #[inline]
    pub fn waits_for_frame(&self, common: &mut Common) -> bool {
        match &self.link {
            None => false,
            Some(Wire::Memory(link)) => link.consumer.has_frame(),
            Some(Wire::Network(line)) => {
                let sends = self.next < self.send.next_number();
                common.carrier.as_mut().is_some_and(|carrier| carrier.has_come(line.flow)) || sends
            }
        }
    }

    /// Takes what has come and sends what may be sent; whether anything moved.
    ///
    /// `whole` is whether to look also at what changes seldom.
    #[inline]
    pub fn progress(&mut self, common: &mut Common, whole: bool) -> bool {
        let Some(mut link) = self.link.take() else { return false };
        let (mut moved, mut found) = (false, Ok(()));
        if self.heard > self.accepted {
            moved = self.accepted_up_to(common, self.heard);
        }
        for _ in 0..TURN {
            let come = match &mut link {
                Wire::Memory(link) => {
                    let Link { consumer, views, .. } = &mut **link;
                    consumer.take_frame(|frame| found = self.frame(common, Some(views), frame))
                }
                Wire::Network(line) => {
                    let next = common.carrier.as_mut().and_then(|carrier| carrier.take(line.flow));
                    let has_come = next.is_some();
                    if let Some(next) = next {
                        found = self.carried(common, line.flow, next);
                    }
                    has_come
                }
            };
            moved |= come;
            if !come || found.is_err() {
                break;
            }
            if self.taken - self.told >= ACCEPT_EVERY {
                self.tell(common, &link);
            }
            if !whole && self.receive.published > 0 {
                self.link = Some(link);
                return true;
            }
        }
        if moved {
            // Of a message in many frames none is accepted that tells the sender of room.
            link.nudge();
            if self.is_awaited && self.taken != self.told {
                self.tell(common, &link);
            }
        }
        if found.is_ok() && !moved {
            // A message that goes back soon tells it too, and between hosts a frame of its own costs a system call.
            if self.taken != self.told && (whole || matches!(link, Wire::Memory(_))) {
                self.tell(common, &link);
            }
            if whole && !self.unaccepted.is_empty() {
                moved |= self.accepted_up_to(common, link.accepted(common.carrier.as_ref()));
            }
            // What the remote end sent before it closed was taken above.
            if let Some(closing) = link.closing(common.carrier.as_ref()) {
                self.accepted_up_to(common, link.accepted(common.carrier.as_ref()));
                self.link = Some(link);
                self.closed(common, closing);
                return true;
            }
        }
        if found.is_ok() {
            found = self.transmit(common, &mut link).map(|sent| moved |= sent);
        }
        self.link = Some(link);
        if let Err(end) = found {
            self.lose(common, end);
        }
        moved
    }

    /// Sends what was posted just now, if there is room.
    pub fn send_posted(&mut self, common: &mut Common) {
        let Some(mut link) = self.link.take() else { return };
        let sent = self.transmit(common, &mut link);
        self.link = Some(link);
        if let Err(end) = sent {
            self.lose(common, end);
        }
    }

    fn tell(&mut self, common: &mut Common, link: &Wire) {
        (self.told, self.is_awaited) = (self.taken, false);
        match link {
            Wire::Memory(link) => link.accept(self.taken),
            Wire::Network(line) => {
                if let Some(carrier) = &mut common.carrier {
                    let head = Head::new(kind::ACCEPT, self.taken);
                    carrier.push(line.flow, &head.octets[..head.length], std::iter::empty());
                }
            }
        }
    }

    /// The other process is gone; what it sent before is taken.
    pub fn gone(&mut self, common: &mut Common) {
        while self.link.is_some() && self.progress(common, true) {}
        if self.link.is_some() {
            self.lose(common, End::DISCONNECT);
        }
    }

    /// The remote end has said its last.
    fn closed(&mut self, common: &mut Common, closing: Closing) {
        let refused = self.unaccepted.first().filter(|number| *number < ANSWER);
        if let Some(number) = refused
            && closing != Closing::Disconnected
        {
            let posted = self.send.get(number);
            let read = posted.is_some_and(|posted| posted.operation() == 2);
            let reception = self.attributes.reliability == Reliability::ReliableReception;
            let error = match closing {
                // An RDMA read is done when its octets are there, at any level.
                Closing::RdmaProtection if read || reception => status::RDMA_PROTECTION_ERROR,
                Closing::ReceiveQueueEmpty | Closing::Descriptor if reception => {
                    status::REMOTE_DESCRIPTOR_ERROR
                }
                // At reliable delivery nobody answers for what the remote end does with it.
                _ => status::TRANSPORT_ERROR,
            };
            self.fail(common, QueueKind::Send, number, error);
        }
        self.lose(common, End::DISCONNECT);
    }

    /// So many messages were accepted; whether that is news.
    #[inline]
    fn accepted_up_to(&mut self, common: &mut Common, messages: u64) -> bool {
        let news = messages.saturating_sub(self.accepted).min(self.unaccepted.len() as u64);
        for _ in 0..news {
            self.accepted += 1;
            let Some(number) = self.unaccepted.pop() else { break };
            if number >= ANSWER {
                continue;
            }
            let Some(posted) = self.send.get(number) else { continue };
            // An RDMA read is done when its data have come.
            if posted.operation() != 2 {
                let status = status::DONE | posted.operation_bits(QueueKind::Send);
                let outcome = Outcome { status, length: posted.length, immediate: 0 };
                self.finish(common, QueueKind::Send, number, outcome);
            }
        }
        self.heard = self.heard.max(self.accepted);
        news > 0
    }
}
