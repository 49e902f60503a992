//! The simulated [`Comm`]: a rank's view of [`Ranks`], with real payloads.

mod control;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

use wiretwin_msg::library::{Control, Failure, NO_MULTICAST};
use wiretwin_msg::matching::Pattern;
use wiretwin_msg::protocol::Mode;
use wiretwin_msg::table::{Key, Table, mix};
use wiretwin_prog::{
    Comm, CommError, Incoming, Outgoing, Rank, Source, Status, Tag, TagMatch, Work, to_each,
};
use wiretwin_units::{Bytes, Span};

use crate::ranks::{Completion, NameId, Op, OpError, Ranks, RequestId};

/// A change to one byte of one message on its way, to show that receivers use what they are given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Which message: the how-manieth to be delivered to its receiver, from 0.
    pub delivery: u64,
    /// Which byte; nothing happens where the message is shorter.
    pub byte: u64,
    /// What it is changed with, bit by bit.
    pub flip: u8,
}

impl Key for RequestId {
    #[inline]
    fn hash(&self) -> u64 {
        mix(0, self.0)
    }
}

/// Where the bytes of a message are while it is on its way.
#[derive(Clone, Copy)]
enum Payload {
    /// A number of 8 bytes, the most frequent payload.
    Word([u8; 8]),
    /// The payload lies here; the number is its length in bytes.
    Short([u8; Payloads::SHORT], u8),
    /// In a buffer.
    Long(u32),
}

/// What messages on their way carry. A message without bytes is not here.
#[derive(Default)]
struct Payloads {
    of: Table<RequestId, Payload>,
    buffers: Vec<Vec<u8>>,
    /// Buffers that no message is in, to be filled again.
    spare: Vec<u32>,
}

impl Payloads {
    /// Payloads up to this length, in bytes, need no buffer.
    const SHORT: usize = 16;
    /// A buffer larger than this gives its memory back once its message has been delivered, bytes.
    const LARGEST_KEPT: usize = 4096;

    fn put(&mut self, message: RequestId, bytes: &[u8]) {
        if let Ok(word) = bytes.try_into() {
            self.of.entry(message, || Payload::Word(word));
            return;
        }
        let payload = if bytes.len() <= Self::SHORT {
            let mut short = [0; Self::SHORT];
            short[..bytes.len()].copy_from_slice(bytes);
            Payload::Short(short, bytes.len() as u8)
        } else {
            let number = self.spare.pop().unwrap_or_else(|| {
                self.buffers.push(Vec::new());
                (self.buffers.len() - 1) as u32
            });
            self.buffers[number as usize].extend_from_slice(bytes);
            Payload::Long(number)
        };
        self.of.entry(message, || payload);
    }

    /// Hands the bytes of a message to `read`, once.
    fn take(&mut self, message: RequestId, read: impl FnOnce(&mut [u8])) {
        match self.of.remove(&message) {
            None => read(&mut []),
            Some(Payload::Word(mut word)) => read(&mut word),
            Some(Payload::Short(mut bytes, length)) => read(&mut bytes[..usize::from(length)]),
            Some(Payload::Long(number)) => {
                let buffer = &mut self.buffers[number as usize];
                read(buffer);
                if buffer.capacity() > Self::LARGEST_KEPT {
                    *buffer = Vec::new();
                } else {
                    buffer.clear();
                }
                self.spare.push(number);
            }
        }
    }
}

/// The rank has not been resumed, or has looked.
const NOT_RESUMED: u32 = u32::MAX;

/// What a unit of a kind of work costs, as it was asked for last.
#[derive(Clone, Copy)]
struct Price {
    kind: &'static str,
    each: Option<u64>,
}

/// What all ranks of a simulated program share.
pub(crate) struct Shared {
    pub(crate) world: RefCell<Ranks>,
    payloads: RefCell<Payloads>,
    /// Messages to several ranks, and how many of those have not taken theirs.
    several: RefCell<BTreeMap<RequestId, (Vec<u8>, usize)>>,
    /// By rank, where the completions begin with which the latest step has resumed it.
    resumptions: RefCell<Vec<u32>>,
    /// The requests of a call while it posts them: no rank is stopped on its way there.
    requests: RefCell<Vec<RequestId>>,
    deliveries: Cell<u64>,
    fault: Option<Fault>,
    /// Of a program that is alone: its ranks are those of the world.
    alone: Rc<Place>,
    names: Names,
}

/// Which ranks of the world those of a program are, and what its work costs.
pub(crate) struct Place {
    /// The process of rank 0 among those that speak to each other.
    pub(crate) first: u32,
    /// By rank of the program, its number among those; none where it is the same.
    pub(crate) ranks: Vec<u32>,
    /// By that number, the rank.
    numbers: BTreeMap<u32, u32>,
    /// What a unit of work costs, picoseconds, by kind.
    costs: BTreeMap<String, u64>,
    price: Cell<Price>,
}

impl Place {
    pub(crate) fn new(first: u32, ranks: Vec<u32>, costs: BTreeMap<String, u64>) -> Self {
        let numbers = ranks.iter().copied().zip(0..).collect();
        let price = Cell::new(Price { kind: "", each: costs.get("").copied() });
        Self { first, ranks, numbers, costs, price }
    }

    /// What a unit of work costs, picoseconds. A program asks for one kind again and again.
    fn price(&self, kind: &'static str) -> Option<u64> {
        let mut price = self.price.get();
        if !std::ptr::eq(price.kind, kind) {
            price = Price { kind, each: self.costs.get(kind).copied() };
            self.price.set(price);
        }
        price.each
    }

    /// The number of a rank among those that speak to each other.
    #[inline]
    fn number(&self, rank: u32) -> u32 {
        self.ranks.get(rank as usize).copied().unwrap_or(rank)
    }

    /// The rank that has a number.
    #[inline]
    fn rank(&self, number: u32) -> u32 {
        if self.ranks.is_empty() {
            return number;
        }
        self.numbers.get(&number).copied().unwrap_or(u32::MAX)
    }
}

#[derive(Clone, Copy)]
struct Names {
    send: NameId,
    recv: NameId,
    exchange: NameId,
}

impl Shared {
    pub(crate) fn new(mut world: Ranks, costs: BTreeMap<String, u64>, fault: Option<Fault>) -> Rc<Self> {
        let names = Names {
            send: world.name_id("send"),
            recv: world.name_id("recv"),
            exchange: world.name_id("exchange"),
        };
        let ranks = world.processes() as usize;
        Rc::new(Self {
            world: RefCell::new(world),
            payloads: RefCell::default(),
            several: RefCell::default(),
            resumptions: RefCell::new(vec![NOT_RESUMED; ranks]),
            requests: RefCell::default(),
            deliveries: Cell::new(0),
            fault,
            alone: Rc::new(Place::new(0, Vec::new(), costs)),
            names,
        })
    }

    /// A step has resumed a rank, whose completions begin there.
    pub(crate) fn resumed(&self, rank: u32, first: u32) {
        self.resumptions.borrow_mut()[rank as usize] = first;
    }

    /// Whether what a rank waited for has come to something: a request that has not fails what it was for.
    fn check(&self, rank: u32, number: usize) -> Result<Completion, CommError> {
        Self::check_in(&self.world.borrow(), rank, number)
    }

    /// The same of a world that has been taken.
    #[inline]
    fn check_in(world: &Ranks, rank: u32, number: usize) -> Result<Completion, CommError> {
        let completion = world.completion(rank, number);
        if completion.failed {
            return Err(failed(world.failure(rank, completion.request)));
        }
        Ok(completion)
    }

    /// Delivers the message of a completion of the latest step of a world.
    fn deliver(
        &self,
        world: &Ranks,
        rank: u32,
        number: usize,
        buffer: &mut [u8],
    ) -> Result<Status, CommError> {
        let completion = Self::check_in(world, rank, number)?;
        let delivery = self.deliveries.get();
        self.deliveries.set(delivery + 1);
        let fault = self.fault.filter(|fault| fault.delivery == delivery && !completion.truncated);
        let several = self.take_copy(completion.message);
        let mut read = |message: &mut [u8]| {
            if let Some(fault) = fault
                && let Some(byte) = message.get_mut(fault.byte as usize)
            {
                *byte ^= fault.flip;
            }
            if let (Ok(buffer), Ok(word)) =
                (<&mut [u8; 8]>::try_from(&mut *buffer), <[u8; 8]>::try_from(&*message))
            {
                *buffer = word;
                return;
            }
            let kept = buffer.len().min(message.len());
            buffer[..kept].copy_from_slice(&message[..kept]);
        };
        match several {
            Some(mut message) => read(&mut message),
            None if completion.bytes.get() == 0 => {}
            None => self.payloads.borrow_mut().take(completion.message, read),
        }
        if completion.truncated {
            let (message, buffer) = (completion.bytes, Bytes::new(buffer.len() as u64));
            return Err(CommError::Truncated { message, buffer });
        }
        Ok(Status { source: Rank(completion.source), tag: Tag(completion.tag), bytes: completion.bytes })
    }
}

impl Shared {
    /// The octets of a message to several, which are kept while it is on its way to others.
    fn take_copy(&self, message: RequestId) -> Option<Vec<u8>> {
        let mut several = self.several.borrow_mut();
        if several.is_empty() {
            return None;
        }
        let (octets, takers) = several.get_mut(&message)?;
        if *takers > 1 {
            *takers -= 1;
            return Some(octets.clone());
        }
        several.remove(&message).map(|(octets, _)| octets)
    }
}

/// One rank of a simulated world.
pub struct SimComm {
    rank: u32,
    /// The number of its process.
    process: u32,
    size: u32,
    /// Whether operations may have to wait for a core, so that the clock shows them only later.
    is_behind: bool,
    /// Whether it is one of a local network, where a request may come to nothing.
    is_local: bool,
    place: Rc<Place>,
    shared: Rc<Shared>,
}

impl SimComm {
    /// A rank of a program that is alone.
    pub(crate) fn new(rank: u32, shared: Rc<Shared>) -> Self {
        let (size, place) = (shared.world.borrow().size(), Rc::clone(&shared.alone));
        Self::made(rank, size, place, shared)
    }

    /// A rank of a program that is one of several.
    pub(crate) fn placed(rank: u32, place: &Rc<Place>, shared: Rc<Shared>) -> Self {
        Self::made(rank, place.ranks.len() as u32, Rc::clone(place), shared)
    }

    fn made(rank: u32, size: u32, place: Rc<Place>, shared: Rc<Shared>) -> Self {
        let number = place.number(rank);
        let (is_behind, is_local) = {
            let world = shared.world.borrow();
            (world.is_behind(number), matches!(*world, Ranks::Local(_)))
        };
        Self { rank, process: place.first + number, size, is_behind, is_local, place, shared }
    }

    /// Ends the rank: whether that was allowed.
    pub(crate) fn finish(&self) -> bool {
        self.shared.world.borrow_mut().post(self.process, Op::Finish).is_ok()
    }

    /// Delivers the message of a completion of the latest step.
    fn deliver(&self, world: &Ranks, number: usize, buffer: &mut [u8]) -> Result<Status, CommError> {
        let status = self.shared.deliver(world, self.process, number, buffer)?;
        Ok(Status { source: Rank(self.place.rank(status.source.0)), ..status })
    }

    /// Rejects a rank that is not there, before anything of the call has happened.
    fn check(&self, rank: Rank) -> Result<(), CommError> {
        if rank.0 < self.size { Ok(()) } else { Err(CommError::NoSuchRank { rank, size: self.size }) }
    }

    fn check_source(&self, from: Source) -> Result<(), CommError> {
        match from {
            Source::Rank(rank) => self.check(rank),
            Source::Any => Ok(()),
        }
    }

    /// Posts an operation; the request is 0 where it makes none.
    #[inline]
    fn post(&self, op: Op<'_>) -> Result<RequestId, CommError> {
        self.post_to(&mut self.shared.world.borrow_mut(), op)
    }

    /// The same to the world that a call of several operations has taken. The result is taken apart here: as it
    /// comes, it is written in two halves, and a copy of both at once would wait for them.
    #[inline]
    fn post_to(&self, world: &mut Ranks, op: Op<'_>) -> Result<RequestId, CommError> {
        match world.post(self.process, op) {
            Ok(Some(request)) => Ok(request),
            Ok(None) => Ok(RequestId(0)),
            Err(error) => Err(refused(error)),
        }
    }

    fn start_send(
        &self,
        world: &mut Ranks,
        to: Rank,
        tag: Tag,
        message: &[u8],
        mode: Mode,
    ) -> Result<RequestId, CommError> {
        let (to, bytes) = (self.place.number(to.0), Bytes::new(message.len() as u64));
        let request = self.post_to(world, Op::Send { context: 0, to, tag: tag.0, bytes, mode })?;
        if !message.is_empty() {
            self.shared.payloads.borrow_mut().put(request, message);
        }
        Ok(request)
    }

    fn start_recv(
        &self,
        world: &mut Ranks,
        from: Source,
        tag: TagMatch,
        capacity: usize,
    ) -> Result<RequestId, CommError> {
        let (pattern, capacity) = (self.pattern(from, tag), Bytes::new(capacity as u64));
        self.post_to(world, Op::Recv { pattern, capacity })
    }

    /// Begins a call of this name, and to wait for all of `requests`, which it posts: [`SimComm::resumption`] ends it.
    fn begin_wait(
        &self,
        name: NameId,
        requests: impl FnOnce(&mut Ranks, &mut Vec<RequestId>) -> Result<(), CommError>,
    ) -> Result<(), CommError> {
        let world = &mut *self.shared.world.borrow_mut();
        let list = &mut *self.shared.requests.borrow_mut();
        list.clear();
        self.post_to(world, Op::Enter { name, site: -1 })?;
        requests(world, list)?;
        self.post_to(world, Op::wait(list)).map(drop)
    }

    fn begin_exchange(&self, sends: &[Outgoing<'_>], receives: &[Incoming<'_>]) -> Result<(), CommError> {
        sends.iter().try_for_each(|send| self.check(send.to))?;
        receives.iter().try_for_each(|receive| self.check_source(receive.from))?;
        let world = &mut *self.shared.world.borrow_mut();
        let requests = &mut *self.shared.requests.borrow_mut();
        requests.clear();
        let receiving = receives.iter().map(|receive| {
            (self.pattern(receive.from, receive.tag), Bytes::new(receive.buffer.len() as u64))
        });
        let sending = sends
            .iter()
            .map(|send| (self.place.number(send.to.0), send.tag.0, Bytes::new(send.message.len() as u64)));
        let name = self.shared.names.exchange;
        world.post_exchange(self.process, name, receiving, sending, requests).map_err(refused)?;
        for (send, request) in sends.iter().zip(requests.iter().skip(receives.len())) {
            if !send.message.is_empty() {
                self.shared.payloads.borrow_mut().put(*request, send.message);
            }
        }
        Ok(())
    }

    /// What a receive from there accepts.
    #[inline]
    fn pattern(&self, from: Source, tag: TagMatch) -> Pattern {
        let source = match from {
            Source::Rank(rank) => Some(self.place.number(rank.0)),
            Source::Any => None,
        };
        let tag = match tag {
            TagMatch::Tag(tag) => Some(tag.0),
            TagMatch::Any => None,
        };
        Pattern { context: 0, source, tag }
    }

    /// Ends an exchange of this many `sends` whose completions begin at `first`.
    fn end_exchange(
        &self,
        first: usize,
        sends: usize,
        receives: &mut [Incoming<'_>],
    ) -> Result<(), CommError> {
        let world = &mut *self.shared.world.borrow_mut();
        self.post_to(world, Op::Exit)?;
        // A wait for all returns its requests in their order, the receives first.
        let mut outcome = Ok(());
        for (number, receive) in receives.iter_mut().enumerate() {
            match self.deliver(world, first + number, receive.buffer) {
                Ok(status) => receive.status = Some(status),
                Err(error) => outcome = outcome.and(Err(error)),
            }
        }
        let sent = if self.is_local { sends } else { 0 };
        for number in receives.len()..receives.len() + sent {
            outcome = outcome.and(Shared::check_in(world, self.process, first + number).map(drop));
        }
        outcome
    }

    /// Posts what work costs: whether the rank must now wait for a processor. Prices are checked before a program
    /// starts; what has none is free, but a rank of a local network turns to what it has posted.
    fn charge(&self, work: Work) -> bool {
        if !self.is_local && work.count == 0 {
            return false;
        }
        let price = self.place.price(work.kind);
        if !self.is_local && price.is_none() {
            return false;
        }
        let cost = Span::from_ps(price.unwrap_or(0).saturating_mul(work.count));
        let posted = self.post(Op::Compute(cost));
        self.is_behind && posted.is_ok() && self.post(Op::Yield).is_ok()
    }

    /// Sends a message, and returns when the sender may go on in this mode.
    async fn send_in(&self, mode: Mode, to: Rank, tag: Tag, message: &[u8]) -> Result<(), CommError> {
        self.check(to)?;
        self.begin_wait(self.shared.names.send, |world, requests| {
            requests.push(self.start_send(world, to, tag, message, mode)?);
            Ok(())
        })?;
        let first = self.resumption().await;
        self.post(Op::Exit)?;
        self.shared.check(self.process, first).map(drop)
    }

    /// Sends a message of a stream without end. A rank of a twin's host that has a core of its own runs ahead of the
    /// world while nothing makes it wait: a message of a stream waits for its receiver there, as one does whose socket's
    /// buffer is full.
    pub(crate) async fn stream(&self, to: Rank, tag: Tag, message: &[u8]) -> Result<(), CommError> {
        let mode = if self.is_local { Mode::Standard } else { Mode::Synchronous };
        self.send_in(mode, to, tag, message).await
    }

    /// Until the world resumes this rank; where the first of its completions is, in the order of the requests, which are
    /// there until it waits again. No async function: each one around a wait has a state of its own, which lies on
    /// another line of the cache.
    fn resumption(&self) -> impl Future<Output = usize> {
        poll_fn(|_| {
            let resumption = &mut self.shared.resumptions.borrow_mut()[self.process as usize];
            match std::mem::replace(resumption, NOT_RESUMED) {
                NOT_RESUMED => Poll::Pending,
                first => Poll::Ready(first as usize),
            }
        })
    }
}

#[cold]
fn refused(error: OpError) -> CommError {
    match error {
        OpError::NoSuchPeer { peer: rank, size } | OpError::NoSuchRank { rank, size } => {
            CommError::NoSuchRank { rank: Rank(rank), size }
        }
        OpError::Empty => CommError::Unsupported("a message of 0 bytes"),
        OpError::ToItself { .. } => CommError::Unsupported("a message to the rank itself"),
        OpError::Unsupported(what) => CommError::Unsupported(what),
        other => CommError::Transport(other.to_string()),
    }
}

/// What the failure of a request is to a program.
fn failed(failure: Option<Failure>) -> CommError {
    match failure {
        Some(Failure::PeerLost { rank }) => CommError::PeerLost { rank: Rank(rank) },
        Some(Failure::TimedOut { limit }) => CommError::TimedOut { limit },
        Some(Failure::Refused(reason)) => CommError::Transport(reason.into()),
        None => CommError::Transport("a request that has come to nothing".into()),
    }
}

impl Comm for SimComm {
    fn rank(&self) -> Rank {
        Rank(self.rank)
    }

    fn size(&self) -> u32 {
        self.size
    }

    fn now(&self) -> Span {
        // A rank of this world: it has a clock.
        let now = self.shared.world.borrow().rank_now(self.process).map_or(0, |now| now.as_ps());
        Span::from_ps(now)
    }

    async fn send(&mut self, to: Rank, tag: Tag, message: &[u8]) -> Result<(), CommError> {
        self.send_in(Mode::Standard, to, tag, message).await
    }

    async fn mcast(&mut self, to: &[Rank], tag: Tag, message: &[u8]) -> Result<(), CommError> {
        let to = self.others(to)?;
        if to.is_empty() {
            return Ok(());
        }
        let ranks: Vec<u32> = to.iter().map(|to| self.place.number(to.0)).collect();
        let bytes = Bytes::new(message.len() as u64);
        let request = match self.post(Op::Multicast { to: &ranks, tag: tag.0, bytes }) {
            Ok(request) => request,
            Err(CommError::Unsupported(NO_MULTICAST)) => {
                return self.exchange(&to_each(&to, tag, message), &mut []).await;
            }
            Err(error) => return Err(error),
        };
        self.shared.several.borrow_mut().insert(request, (message.to_vec(), ranks.len()));
        self.answer(request).await.map(drop)
    }

    async fn recv(&mut self, from: Source, tag: TagMatch, buffer: &mut [u8]) -> Result<Status, CommError> {
        self.check_source(from)?;
        let capacity = buffer.len();
        self.begin_wait(self.shared.names.recv, |world, requests| {
            requests.push(self.start_recv(world, from, tag, capacity)?);
            Ok(())
        })?;
        let first = self.resumption().await;
        self.post(Op::Exit)?;
        self.deliver(&self.shared.world.borrow(), first, buffer)
    }

    // The body is an async block of its own, as that of `compute` is: an async function would keep its arguments twice.
    fn exchange(
        &mut self,
        sends: &[Outgoing<'_>],
        receives: &mut [Incoming<'_>],
    ) -> impl Future<Output = Result<(), CommError>> {
        let begun = self.begin_exchange(sends, receives);
        let sends = sends.len();
        async move {
            begun?;
            let first = self.resumption().await;
            self.end_exchange(first, sends, receives)
        }
    }

    async fn join_group(&mut self, group: &str) -> Result<u32, CommError> {
        self.control(&Control::Join { group: group.into() }).await
    }

    async fn leave_group(&mut self, group: &str) -> Result<(), CommError> {
        self.control(&Control::Leave { group: group.into() }).await.map(drop)
    }

    async fn group_size(&mut self, group: &str) -> Result<u32, CommError> {
        self.control(&Control::Size { group: group.into() }).await
    }

    async fn group_barrier(&mut self, group: &str, members: u32) -> Result<(), CommError> {
        self.control(&Control::Barrier { group: group.into(), members }).await.map(drop)
    }

    async fn group_cast(&mut self, group: &str, tag: Tag, message: &[u8]) -> Result<(), CommError> {
        self.cast(group, tag, message).await
    }

    fn compute<T>(&mut self, work: Work, body: impl FnOnce() -> T) -> impl Future<Output = T> {
        let yields = self.charge(work);
        async move {
            if yields {
                self.resumption().await;
            }
            body()
        }
    }
}
