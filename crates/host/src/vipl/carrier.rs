//! What carries the frames of connections between hosts: an endpoint of the direct transport.
//!
//! A frame is a message whose tag is the number that its receiver has given to the connection. The transport loses
//! nothing and keeps the order, at every level of reliability. Frames go into buffers that are posted beforehand. Long
//! data are a message of their own beside the frame that tells of them ([`has_data`]), out of the memory of the sender and
//! into that of the receiver; what comes behind them waits until they are there. Each end says its last with a frame
//! ([`CLOSE`]); what belongs to a connection goes when both have.

use std::collections::VecDeque;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use wiretwin_msg::tagged::Pattern;

use super::link::Closing;
use super::remote::Range;
use super::table::Table;
use super::vi::{CLOSE, has_data, octets};
use crate::direct::{Address, Completion, Endpoint, Kind, Options, Outgoing, Receive, Trouble, Ways};

/// The longest frame, in bytes.
pub(super) const FRAME: usize = 16 << 10;
/// Buffers of a connection that are posted.
const DEPTH: usize = 16;
/// Frames of a connection under way at once whose buffers the endpoint has.
const MOST_UNDER_WAY: usize = 32;
/// Frames up to this length are copied by the endpoint.
const COPIED: u64 = 1024;
/// Buffers that are kept to be used again.
const SPARE: usize = 64;
/// Of the tag of data that go beside frames; no connection has so high a number.
const DATA: u64 = 1 << 63;
/// For how long another host may be silent before its ends are lost.
pub(super) const SILENCE: Duration = Duration::from_secs(6);

/// Where a buffer of a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slot {
    /// Nobody has it.
    Idle,
    /// The endpoint.
    Posted,
    /// A frame of so many bytes is in it.
    Came(usize),
}

/// The data that come beside a frame.
#[derive(Debug, Default)]
enum Beside {
    /// None: the next is a frame.
    #[default]
    Nothing,
    /// The endpoint waits for so many bytes, which go to this place, or to memory that was made for them.
    Awaited(Range, Option<Box<[u8]>>),
    /// They are there.
    Came(Option<Box<[u8]>>),
    /// They will not come, nor anything behind them.
    Lost,
}

/// What is sent of a connection.
#[derive(Debug)]
enum Parcel {
    Frame(Vec<u8>),
    /// Data that go beside the frame before, in registered memory.
    Data(Range),
    /// A copy of such data.
    Copy(Vec<u8>),
    /// Nothing more: the endpoint has a copy.
    Kept,
}

impl Parcel {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Frame(bytes) | Self::Copy(bytes) => bytes,
            // SAFETY: registered memory; what has not gone of it is copied when it is given back.
            Self::Data(range) => unsafe { octets(*range) },
            Self::Kept => &[],
        }
    }

    /// Whether it is data in memory like that.
    fn is_data(&self, is: impl Fn(Range) -> bool) -> bool {
        matches!(*self, Self::Data(range) if is(range))
    }
}

/// One connection.
#[derive(Debug)]
struct Flow {
    peer: usize,
    /// Its number here, and at the other end.
    here: u64,
    there: u64,
    buffers: [Box<[u8]>; DEPTH],
    slots: [Slot; DEPTH],
    /// The buffer that the next frame comes into.
    first: usize,
    beside: Beside,
    /// The look in which it was asked last whether something has come.
    looked: u64,
    under_way: usize,
    /// What the endpoint had no room for.
    waiting: VecDeque<Parcel>,
    /// What the other end has said last, and how many messages it had accepted.
    closing: Option<Closing>,
    accepted: u64,
    /// The other process is gone.
    lost: bool,
    /// This end has said its last.
    closed: bool,
}

impl Flow {
    const fn has_come(&self) -> bool {
        match self.beside {
            Beside::Nothing => matches!(self.slots[self.first], Slot::Came(_)),
            Beside::Came(_) => true,
            Beside::Awaited(..) | Beside::Lost => false,
        }
    }

    /// Nothing of it is left, here or there.
    fn is_over(&self) -> bool {
        let done = self.lost || self.closing.is_some() && self.waiting.is_empty();
        let awaits = self.slots.contains(&Slot::Posted) || matches!(self.beside, Beside::Awaited(..));
        self.closed && done && !awaits
    }
}

/// What is under way, and its connection.
#[derive(Debug)]
struct Sending {
    flow: u32,
    parcel: Parcel,
}

/// A frame that has come.
#[derive(Debug)]
pub(super) struct Came {
    slot: usize,
    bytes: Box<[u8]>,
    length: usize,
}

impl Came {
    pub fn frame(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    /// Whether data come beside it, which are to be awaited or passed over.
    pub fn has_data(&self) -> bool {
        has_data(self.frame())
    }
}

/// What is next of a connection.
#[derive(Debug)]
pub(super) enum Next {
    Frame(Came),
    /// The data of the frame before: where they were to go, unless they are these.
    Data(Option<Box<[u8]>>),
}

/// The connections of an adapter to other hosts.
#[derive(Debug)]
pub(super) struct Carrier {
    // Before the buffers, which it reads and writes.
    endpoint: Endpoint,
    flows: Table<Flow>,
    sending: Vec<Option<Sending>>,
    free: Vec<usize>,
    spare: Vec<Vec<u8>>,
    next_number: u64,
    /// Looks for what has come.
    looks: u64,
    /// Something waits for room.
    stuck: bool,
}

impl Carrier {
    /// At this address of the host.
    ///
    /// # Errors
    /// What the kernel said, and of what.
    pub fn open(ip: Ipv4Addr, ways: Ways) -> io::Result<Self> {
        let endpoint = Endpoint::open(Options { ip, ways, silence: Some(SILENCE), ..Options::default() })
            .map_err(io::Error::other)?;
        Ok(Self {
            endpoint,
            flows: Table::new(),
            sending: Vec::new(),
            free: Vec::new(),
            spare: Vec::new(),
            next_number: 0,
            looks: 0,
            stuck: false,
        })
    }

    /// Where other ends reach it.
    pub const fn address(&self) -> Address {
        self.endpoint.address()
    }

    /// The files that can be read from when something has come.
    pub fn wakers(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.endpoint.wakers()
    }

    /// How long nothing is to be done though nothing comes; none for ever.
    pub fn due(&self) -> Option<Duration> {
        self.endpoint.due()
    }

    /// A number for a connection that is to be.
    pub const fn number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number
    }

    /// The connection of this number is there: to the endpoint at this address, where it has that number. None where
    /// there are too many.
    pub fn begin(&mut self, here: u64, to: Address, there: u64) -> Option<u32> {
        let peer = self.endpoint.peer(to);
        let handle = self.flows.insert(|_| Flow {
            peer,
            here,
            there,
            buffers: std::array::from_fn(|_| vec![0; FRAME].into()),
            slots: [Slot::Idle; DEPTH],
            first: 0,
            beside: Beside::Nothing,
            looked: 0,
            under_way: 0,
            waiting: VecDeque::new(),
            closing: None,
            accepted: 0,
            lost: false,
            closed: false,
        })?;
        (0..DEPTH).for_each(|slot| self.post(handle, slot));
        Some(handle)
    }

    /// Gives a buffer to the endpoint.
    fn post(&mut self, handle: u32, slot: usize) {
        let Some(flow) = self.flows.get_mut(handle).filter(|flow| !flow.lost && !flow.closed) else { return };
        flow.slots[slot] = Slot::Posted;
        let (source, tag) = (u32::try_from(flow.peer).ok(), Some(flow.here));
        let buffer = flow.buffers[slot].as_mut_ptr();
        let receive = Receive { buffer, length: FRAME as u64, context: Some(received(handle, slot)) };
        // SAFETY: the buffer is the connection's, which does not move and stays until the endpoint has given it back.
        unsafe { self.endpoint.receive(Pattern { source, tag, ignore: 0 }, receive) };
    }

    /// Takes what has come and sends what may be sent.
    fn progress(&mut self) {
        self.looks += 1;
        self.endpoint.progress();
        self.settle();
    }

    /// The same, and looks at everything.
    pub fn attend(&mut self) {
        self.looks += 1;
        self.endpoint.attend();
        self.settle();
    }

    /// Hears of what has ended.
    fn settle(&mut self) {
        while let Some(completion) = self.endpoint.completion() {
            match completion.kind {
                Kind::Sent => self.sent(completion.context >> 1),
                Kind::Received => self.came(&completion),
            }
        }
        if self.stuck {
            self.send_waiting();
        }
    }

    fn sent(&mut self, index: usize) {
        let Some(Sending { flow, parcel }) = self.sending.get_mut(index).and_then(Option::take) else {
            return;
        };
        self.free.push(index);
        if let Parcel::Frame(bytes) = parcel {
            self.keep(bytes);
        }
        if let Some(flow) = self.flows.get_mut(flow) {
            flow.under_way -= 1;
        }
    }

    fn keep(&mut self, bytes: Vec<u8>) {
        if self.spare.len() < SPARE {
            self.spare.push(bytes);
        }
    }

    fn came(&mut self, completion: &Completion) {
        let (handle, slot) = slot_of(completion.context);
        let Some(flow) = self.flows.get_mut(handle) else { return };
        let mut sound = matches!(completion.trouble, None | Some(Trouble::Cancelled));
        if slot < DEPTH {
            flow.slots[slot] = match completion.trouble {
                None => Slot::Came(completion.length as usize),
                Some(_) => Slot::Idle,
            };
        } else if let Beside::Awaited(range, aside) = std::mem::take(&mut flow.beside) {
            sound &= completion.trouble.is_some() || completion.length == range.1.into();
            flow.beside = match sound {
                true if flow.closed => Beside::Nothing,
                true => Beside::Came(aside),
                false => Beside::Lost,
            };
        }
        // What is longer than any frame, or than was told, comes from no end of a connection.
        flow.lost |= !sound;
        if flow.closed {
            self.drain(handle);
        }
    }

    /// Takes what comes after this end has said its last, until the other end has, or is no more.
    fn drain(&mut self, handle: u32) {
        while let Some(next) = self.pop(handle) {
            if let Next::Frame(came) = next {
                if came.has_data() {
                    self.pass_over(handle);
                }
                self.give_back(handle, came);
            }
        }
        let Some(flow) = self.flows.get(handle).filter(|flow| flow.lost || flow.closing.is_some()) else {
            return;
        };
        if flow.is_over() {
            self.flows.remove(handle);
            return;
        }
        let posted: Vec<usize> = (0..DEPTH).filter(|slot| flow.slots[*slot] == Slot::Posted).collect();
        for slot in posted {
            // It is told of as what comes is; one that is being filled is told of when it is full.
            self.endpoint.cancel(received(handle, slot));
        }
    }

    fn pop(&mut self, handle: u32) -> Option<Next> {
        let flow = self.flows.get_mut(handle).filter(|flow| flow.has_come())?;
        if let Beside::Came(aside) = std::mem::take(&mut flow.beside) {
            return Some(Next::Data(aside));
        }
        let slot = flow.first;
        let Slot::Came(length) = flow.slots[slot] else { return None };
        flow.first = (slot + 1) % DEPTH;
        flow.slots[slot] = Slot::Idle;
        if let [CLOSE, code, accepted @ ..] = &flow.buffers[slot][..length] {
            flow.closing = Some(Closing::of((*code).into()));
            flow.accepted = accepted.first_chunk().map_or(0, |octets| u64::from_le_bytes(*octets));
            return None;
        }
        Some(Next::Frame(Came { slot, bytes: std::mem::take(&mut flow.buffers[slot]), length }))
    }

    /// Whether something has come of a connection. One look serves all: there is another when a connection is asked for
    /// the second time since.
    #[inline]
    pub fn has_come(&mut self, handle: u32) -> bool {
        let Some(flow) = self.flows.get_mut(handle) else { return false };
        let seen = std::mem::replace(&mut flow.looked, self.looks);
        if flow.has_come() {
            return true;
        }
        if seen != self.looks {
            return false;
        }
        self.progress();
        self.flows.get(handle).is_some_and(Flow::has_come)
    }

    /// Has the data beside the frame at hand go to this place of registered memory; where they go to several, they are
    /// kept.
    pub fn await_data(&mut self, handle: u32, total: u32, place: Option<Range>) {
        let Some(flow) = self.flows.get_mut(handle) else { return };
        let mut aside = None;
        let range = place.unwrap_or_else(|| {
            let made = aside.insert(vec![0; total as usize].into_boxed_slice());
            (made.as_mut_ptr() as u64, total)
        });
        flow.beside = Beside::Awaited(range, aside);
        let pattern = data_of(flow);
        let (buffer, context) = (range.0 as *mut u8, Some(received(handle, DEPTH)));
        // SAFETY: memory that was made for them, or that waits for the lock until it is given back: then, and when the
        // connection ends, the receive is withdrawn.
        unsafe { self.endpoint.receive(pattern, Receive { buffer, length: total.into(), context }) };
    }

    /// Passes over the data beside the frame at hand.
    pub fn pass_over(&mut self, handle: u32) {
        let Some(flow) = self.flows.get(handle) else { return };
        let nowhere = Receive { buffer: std::ptr::null_mut(), length: 0, context: None };
        // SAFETY: a buffer of no bytes is never written to.
        unsafe { self.endpoint.receive(data_of(flow), nowhere) };
    }

    /// Nothing of these bytes is read or written any more.
    pub fn release(&mut self, address: u64, length: u64) {
        let overlaps = |range: Range| range.0 < address + length && address < range.0 + u64::from(range.1);
        self.keep_data(|_, range| overlaps(range));
        let awaits = |flow: &Flow| matches!(flow.beside, Beside::Awaited(range, _) if overlaps(range));
        let awaiting: Vec<u32> =
            self.flows.handles().filter(|flow| self.flows.get(*flow).is_some_and(awaits)).collect();
        awaiting.into_iter().for_each(|flow| self.endpoint.withdraw(received(flow, DEPTH)));
        self.settle();
    }

    /// Copies data that have not gone, of these connections and places.
    fn keep_data(&mut self, is: impl Fn(u32, Range) -> bool) {
        for (index, sending) in self.sending.iter_mut().enumerate() {
            if let Some(Sending { flow, parcel }) = sending
                && parcel.is_data(|range| is(*flow, range))
            {
                self.endpoint.keep(index << 1 | 1);
                *parcel = Parcel::Kept;
            }
        }
        for flow in self.flows.handles().collect::<Vec<_>>() {
            let waiting = self.flows.get_mut(flow).into_iter().flat_map(|flow| &mut flow.waiting);
            for parcel in waiting {
                if parcel.is_data(|range| is(flow, range)) {
                    *parcel = Parcel::Copy(parcel.bytes().to_vec());
                }
            }
        }
    }

    /// What is next, if it has come: a frame is to be given back when it was looked at.
    #[inline]
    pub fn take(&mut self, handle: u32) -> Option<Next> {
        if self.has_come(handle) { self.pop(handle) } else { None }
    }

    /// The buffer of a frame that was looked at.
    pub fn give_back(&mut self, handle: u32, came: Came) {
        if let Some(flow) = self.flows.get_mut(handle) {
            flow.buffers[came.slot] = came.bytes;
            self.post(handle, came.slot);
        }
    }

    /// What the other end has said last, behind everything else; also where its process is no more.
    pub fn closing(&self, handle: u32) -> Option<Closing> {
        let Some(flow) = self.flows.get(handle) else { return Some(Closing::Disconnected) };
        flow.closing.or_else(|| (flow.lost && !flow.has_come()).then_some(Closing::Disconnected))
    }

    /// Messages of this end that the other had accepted when it said its last.
    pub fn accepted(&self, handle: u32) -> u64 {
        self.flows.get(handle).map_or(0, |flow| flow.accepted)
    }

    /// Whether a frame may be sent.
    pub fn has_room(&self, handle: u32) -> bool {
        let has_room = |flow: &Flow| flow.waiting.is_empty() && flow.under_way < MOST_UNDER_WAY;
        self.flows.get(handle).is_some_and(has_room)
    }

    /// Sends these parts as one frame of at most [`FRAME`] bytes.
    pub fn push<'a>(&mut self, handle: u32, head: &[u8], rest: impl Iterator<Item = &'a [u8]>) {
        let mut bytes = self.spare.pop().unwrap_or_else(|| Vec::with_capacity(FRAME));
        bytes.clear();
        bytes.extend_from_slice(head);
        rest.for_each(|part| bytes.extend_from_slice(part));
        debug_assert!(bytes.len() <= FRAME, "a frame of {} bytes", bytes.len());
        self.enqueue(handle, Parcel::Frame(bytes));
    }

    /// Sends data beside the frame before.
    ///
    /// # Safety
    /// Memory that can be read until it is released or the connection closed.
    pub unsafe fn push_data(&mut self, handle: u32, range: Range) {
        self.enqueue(handle, Parcel::Data(range));
    }

    fn enqueue(&mut self, handle: u32, parcel: Parcel) {
        let waits = self.flows.get(handle).is_some_and(|flow| !flow.waiting.is_empty());
        let left = if waits { Some(parcel) } else { self.send(handle, parcel) };
        if let (Some(parcel), Some(flow)) = (left, self.flows.get_mut(handle)) {
            flow.waiting.push_back(parcel);
            self.stuck = true;
        }
    }

    /// Hands a frame or data to the endpoint; what it has no room for comes back.
    fn send(&mut self, handle: u32, parcel: Parcel) -> Option<Parcel> {
        let flow = self.flows.get_mut(handle)?;
        let bytes = parcel.bytes();
        let (at, length) = (bytes.as_ptr(), bytes.len() as u64);
        let is_frame = matches!(parcel, Parcel::Frame(_));
        let tag = Some(if is_frame { flow.there } else { flow.there | DATA });
        let message = |context| Outgoing { bytes: at, length, tag, data: None, context };
        if length <= COPIED {
            // SAFETY: the bytes are there during the call, and are needed no longer.
            if unsafe { self.endpoint.send(flow.peer, message(None)) }.is_err() {
                return Some(parcel);
            }
            if let Parcel::Frame(bytes) = parcel {
                self.keep(bytes);
            }
            return None;
        }
        let index = self.free.pop().unwrap_or_else(|| {
            self.sending.push(None);
            self.sending.len() - 1
        });
        // SAFETY: the bytes stay where they are, in what is kept until the endpoint says that they are sent, or in
        // registered memory.
        if unsafe { self.endpoint.send(flow.peer, message(Some(index << 1 | 1))) }.is_err() {
            self.free.push(index);
            return Some(parcel);
        }
        flow.under_way += 1;
        self.sending[index] = Some(Sending { flow: handle, parcel });
        None
    }

    fn send_waiting(&mut self) {
        self.stuck = false;
        let handles: Vec<u32> = self.flows.handles().filter(|handle| !self.has_room(*handle)).collect();
        for handle in handles {
            while let Some(parcel) = self.flows.get_mut(handle).and_then(|flow| flow.waiting.pop_front()) {
                let Some(left) = self.send(handle, parcel) else { continue };
                if let Some(flow) = self.flows.get_mut(handle) {
                    flow.waiting.push_front(left);
                    self.stuck = true;
                }
                break;
            }
            if self.flows.get(handle).is_some_and(|flow| flow.closed) {
                self.drain(handle);
            }
        }
    }

    /// The last word of this end, which has accepted so many messages.
    pub fn close(&mut self, handle: u32, closing: Closing, accepted: u64) {
        let Some(flow) = self.flows.get_mut(handle) else { return };
        flow.closed = true;
        if matches!(flow.beside, Beside::Awaited(..)) {
            self.endpoint.withdraw(received(handle, DEPTH));
            self.settle();
        }
        self.keep_data(|flow, _| flow == handle);
        self.push(handle, &[CLOSE, closing.code() as u8], [&accepted.to_le_bytes()[..]].into_iter());
        self.drain(handle);
    }

    /// Sends what is left until it has come or so much time has passed.
    pub fn finish(&mut self, limit: Duration) {
        let end = Instant::now() + limit;
        while self.stuck && Instant::now() < end {
            self.attend();
        }
        self.endpoint.finish(end.saturating_duration_since(Instant::now()));
    }
}

/// What the data beside a connection's frames are matched by.
fn data_of(flow: &Flow) -> Pattern {
    Pattern { source: u32::try_from(flow.peer).ok(), tag: Some(flow.here | DATA), ignore: 0 }
}

/// What the endpoint calls a receive into a buffer of a connection, or, above these, of data beside a frame.
const fn received(handle: u32, slot: usize) -> usize {
    (handle as usize * (DEPTH + 1) + slot) << 1
}

const fn slot_of(context: usize) -> (u32, usize) {
    let context = context >> 1;
    ((context / (DEPTH + 1)) as u32, context % (DEPTH + 1))
}
