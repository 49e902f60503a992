//! An endpoint: its peers, the devices that lead to them, and what is under way.

mod at_once;
mod frames;
mod gone;
mod run;
mod sleep;
mod streams;

use std::collections::{HashMap, VecDeque};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;

use wiretwin_msg::tagged::Pattern;
use wiretwin_proto::direct::{
    Config, Counters, Delivered, Event, Frame, Local, Machine, Message, SendError, Services,
};
use wiretwin_proto::{MessageId, Output, Payload};
use wiretwin_units::{Bytes, SimTime, Span};
use wiretwin_wire::direct::{NO_LANE, Number, STAT_ELEMENTS};

use super::address::Address;
use super::ends::Ends;
use super::error::EndpointError;
use super::ether::Mac;
use super::inbox::{Clear, Completion, Head, Inbox, Kind, NOWHERE, Receive, Sink, Slab, Trouble};
use super::network::{Carried, Network};
use super::shm::{self, In, Listener, Out};
use super::stream::{Coming, Job};
use crate::clock::Clock;
use run::Run;
use streams::LEAST_PUSHED;

/// Which ways to peers an endpoint may take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ways {
    /// Shared memory to peers of this host; to others datagrams, by a packet socket if that can be had.
    #[default]
    Any,
    /// Shared memory alone.
    SharedMemory,
    /// Datagrams alone, to peers of this host too; by a packet socket to those of the interface's network.
    Packet,
    /// Datagrams through the kernel alone, to peers of this host too.
    Datagrams,
}

/// How an endpoint is set up.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The address at which it takes datagrams.
    pub ip: Ipv4Addr,
    /// Which ways it may take.
    pub ways: Ways,
    /// Bytes of messages nobody has asked for, above which peers offer even short ones. 64 MiB.
    pub held_bytes: u64,
    /// For how long the kernel of another host may be silent before its peers are taken to be gone; none for ever, so that
    /// a process ends alone.
    pub silence: Option<Duration>,
    /// By which service frames go to peers that are reached by datagrams. The ordinary one.
    pub services: Services,
    /// The window to such peers stays as it is at first: for comparison. It does not.
    pub has_fixed_window: bool,
}

impl Ways {
    /// Whether peers of this host are reached through memory.
    const fn use_memory(self) -> bool {
        matches!(self, Self::Any | Self::SharedMemory)
    }

    /// Whether peers of other hosts are reached past the kernel, where that may be.
    const fn go_past(self) -> bool {
        matches!(self, Self::Any | Self::Packet)
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            ip: Ipv4Addr::LOCALHOST,
            ways: Ways::Any,
            held_bytes: 64 << 20,
            silence: None,
            services: Services::Ordinary,
            has_fixed_window: false,
        }
    }
}

/// As many messages wait for a peer as may: progress is to be made first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Busy;

/// A message to be sent.
#[derive(Clone, Copy, Debug)]
pub struct Outgoing {
    /// Its bytes.
    pub bytes: *const u8,
    /// How many.
    pub length: u64,
    /// What it is matched by, or nothing for the kind without a tag.
    pub tag: Option<u64>,
    /// Remote data.
    pub data: Option<u64>,
    /// What [`Completion::context`] says; `None` for a send that is not told of, whose bytes are free again
    /// at once.
    pub context: Option<usize>,
}

/// A message under way.
#[derive(Debug)]
struct Sending {
    bytes: *const u8,
    length: u64,
    /// A copy that `bytes` points to.
    copy: Vec<u8>,
    context: Option<usize>,
    tag: Option<u64>,
    peer: usize,
}

#[derive(Debug)]
struct Peer {
    key: u64,
    machine: Machine,
    /// Where it was said to be; unknown of one that has only been heard of.
    address: Option<Address>,
    datagrams: SocketAddrV4,
    /// The Ethernet address that leads to it, past the kernel, and its machine's time-outs when that was learnt.
    mac: Option<Mac>,
    timeouts: u64,
    /// Messages whose bytes go by the stream, the number of the last frame that went so, what comes on its stream,
    /// whether something has come lately, and how many messages are to.
    jobs: VecDeque<Job>,
    last_pushed: Option<Number>,
    coming: Coming,
    is_lively: bool,
    expects: usize,
    uses_memory: bool,
    out: Option<Box<Out>>,
    into: Option<Box<In>>,
    sink: Option<Sink>,
    /// Frames that are delivered later, by their numbers.
    kept: HashMap<u64, Vec<u8>>,
    timeout: Option<SimTime>,
    /// Something waits for room.
    is_stuck: bool,
    /// The kernel has been asked to tell of its end.
    is_watched: bool,
    is_gone: bool,
}

/// An endpoint of the direct transport.
///
/// Everything is done within the calls; [`Endpoint::progress`] is called by whoever waits.
#[derive(Debug)]
pub struct Endpoint {
    clock: Clock,
    now: SimTime,
    local: Address,
    options: Options,
    peers: Vec<Peer>,
    by_key: HashMap<u64, usize>,
    listener: Option<Listener>,
    network: Option<Network>,
    carried: Carried,
    /// Messages whose bytes go by streams, or may come by them; and turns since one had something.
    streaming: usize,
    quiet: u32,
    ends: Option<Ends>,
    /// When peers' ends are looked for next.
    look_at: SimTime,
    inbox: Inbox,
    sends: Slab<Sending>,
    /// Copies' memory, to be used again.
    spare: Vec<Vec<u8>>,
    next_frame: u64,
    run: Run,
    /// Turns, and those without a frame since the last that had one.
    turn: u32,
    idle: u32,
    /// The caller has begun an operation since it was last told that there was nothing.
    has_begun: bool,
    is_short: bool,
    crowd: sleep::Crowd,
    /// Some peers are reached by datagrams.
    by_datagrams: bool,
}

/// Messages to other hosts up to this length are copied, and done with at once; while others wait for the same peer, and
/// memory for copies is to have a bound, up to the second.
const COPIED: u64 = LEAST_PUSHED - 1;
const ALWAYS_COPIED: u64 = 1024;
/// The number of all messages of which nothing is kept once they have gone: memory loses none, so none is asked for again.
const NOT_KEPT: MessageId = MessageId(u64::MAX);
/// Spare copies that are kept.
const SPARE: usize = 256;
/// Frames that are taken from a peer before another has its turn.
const TURN: usize = 16;
/// Turns between two looks at the clock.
const CLOCK_TURNS: u32 = 64;
/// Turns between two looks at the connections to other hosts, while nothing is known to come on one.
const ENDS_TURNS: u32 = 4 * CLOCK_TURNS;
/// Turns between two looks for new peers; and those without a frame after which there is one more.
const SEARCH_TURNS: u32 = 4096;
const PATIENCE: u32 = 512;
/// From one look at peers' ends to the next.
const LOOK: Span = Span::from_ms(100);

/// The machine's parameters over shared memory, which loses nothing: what limits is the ring.
fn memory_config() -> Config {
    Config {
        frame: Bytes::new(shm::FRAME as u64),
        eager: Bytes::new(32 << 10),
        receive_window: 1024,
        first_window: 1024,
        most_window: 1024,
        max_pd: 1 << 20,
        ack_every: 32,
        ack_delay: Span::from_ms(1),
        rto_least: Span::from_ms(100),
        rto_most: Span::from_s(1),
        ..Config::default()
    }
}

impl Endpoint {
    /// An endpoint that others can reach at [`Endpoint::address`].
    ///
    /// # Errors
    /// [`EndpointError`] if a socket or random numbers cannot be had.
    pub fn open(options: Options) -> Result<Self, EndpointError> {
        let failed = |doing| move |error| EndpointError { doing, error };
        let Options { services, has_fixed_window, .. } = options;
        let checked = Config { services, has_fixed_window, ..Config::datagrams() }.check();
        checked
            .map_err(|error| failed("checking its thresholds")(std::io::Error::other(error.to_string())))?;
        let mut network = match options.ways {
            Ways::SharedMemory => None,
            ways => Some(
                Network::open(options.ip, ways.go_past())
                    .map_err(failed("opening a socket for datagrams"))?,
            ),
        };
        if let Some(network) = network.as_mut().filter(|_| options.ways != Ways::Any) {
            network.go_past()?;
        }
        let nowhere = SocketAddrV4::new(options.ip, 0);
        let datagrams = network.as_ref().map_or(nowhere, Network::address);
        let ends = network.as_ref().map(|_| Ends::open(options.ip, options.silence)).transpose();
        let (ends, port) = ends.map_err(failed("opening a socket that tells of peers' ends"))?.unzip();
        let local = Address::here(datagrams, port.unwrap_or(0)).map_err(failed("describing this host"))?;
        let listener = options.ways.use_memory().then(|| Listener::open(local.name)).transpose();
        let listener = listener.map_err(failed("listening for peers of this host"))?;
        Ok(Self {
            clock: Clock::start(),
            now: SimTime::ZERO,
            local,
            options,
            peers: Vec::new(),
            by_key: HashMap::new(),
            listener,
            network,
            carried: Carried::default(),
            streaming: 0,
            quiet: u32::MAX,
            ends,
            look_at: SimTime::ZERO,
            inbox: Inbox::default(),
            sends: Slab::default(),
            spare: Vec::new(),
            next_frame: 0,
            run: Run::default(),
            turn: 0,
            idle: 0,
            has_begun: false,
            is_short: false,
            crowd: sleep::Crowd::default(),
            by_datagrams: false,
        })
    }

    /// What others need to reach this endpoint.
    #[must_use]
    pub const fn address(&self) -> Address {
        self.local
    }

    /// The number of the peer at an address, the same for the same endpoint.
    pub fn peer(&mut self, address: Address) -> usize {
        if let Some(&known) = self.by_key.get(&address.key) {
            let peer = &mut self.peers[known];
            peer.address.get_or_insert(address);
            return known;
        }
        let uses_memory = address.host == self.local.host && self.options.ways.use_memory();
        let number = self.add(address.key, uses_memory, address.datagrams);
        self.peers[number].address = Some(address);
        number
    }

    /// Where the peer of this number is, if that is known.
    #[must_use]
    pub fn address_of(&self, peer: usize) -> Option<Address> {
        self.peers.get(peer)?.address
    }

    fn add(&mut self, key: u64, uses_memory: bool, datagrams: SocketAddrV4) -> usize {
        let number = self.peers.len();
        let lane = u16::try_from(number).unwrap_or(NO_LANE);
        let local = Local { key: self.local.key, epoch: self.local.epoch, lane };
        let Options { services, has_fixed_window, .. } = self.options;
        let config = if uses_memory {
            memory_config()
        } else {
            Config { services, has_fixed_window, ..Config::datagrams() }
        };
        let machine = Machine::new(config, local, Some(key)).expect("parameters that were tested");
        self.peers.push(Peer {
            key,
            machine,
            address: None,
            datagrams,
            mac: None,
            timeouts: 0,
            jobs: VecDeque::new(),
            last_pushed: None,
            coming: Coming::default(),
            is_lively: false,
            expects: 0,
            uses_memory,
            out: None,
            into: None,
            sink: None,
            kept: HashMap::new(),
            timeout: None,
            is_stuck: false,
            is_watched: uses_memory,
            is_gone: false,
        });
        self.by_key.insert(key, number);
        self.by_datagrams |= !uses_memory;
        let is_elsewhere = !uses_memory && datagrams.ip() != self.local.datagrams.ip();
        if let Some(network) = self.network.as_mut().filter(|_| is_elsewhere) {
            // Without, frames go through the kernel.
            let _ = network.go_past();
        }
        number
    }

    /// Begins to send a message.
    ///
    /// # Safety
    /// The bytes stay as they are until the completion; those of a message without a context, or of at most
    /// 1024 bytes, until the call returns.
    ///
    /// # Errors
    /// [`Busy`]: nothing was done.
    ///
    /// # Panics
    /// If there is no peer of this number.
    pub unsafe fn send(&mut self, peer: usize, message: Outgoing) -> Result<(), Busy> {
        let Outgoing { bytes, length, tag, data, context } = message;
        self.has_begun = true;
        if self.peers[peer].is_gone {
            self.inbox.sent(context, length, tag, peer, Some(Trouble::PeerGone));
            return Ok(());
        }
        let of_caller = |at: *const u8, length: u64| {
            // SAFETY: the caller promised so many bytes; none may come without an address.
            if length == 0 { &[] } else { unsafe { std::slice::from_raw_parts(at, length as usize) } }
        };
        if self.peers[peer].key == self.local.key {
            let head = Head { source: peer, tag, data, length };
            let rest = self.inbox.begin(head, of_caller(bytes, length));
            debug_assert!(rest.is_none(), "a message to oneself comes whole");
            self.inbox.sent(context, length, tag, peer, None);
            return Ok(());
        }
        self.watch(peer);
        let Peer { machine, uses_memory, .. } = &self.peers[peer];
        let is_copied = context.is_none()
            || length <= ALWAYS_COPIED
            || length <= COPIED && !uses_memory && !machine.has_output();
        if *uses_memory {
            let message = Message { id: NOT_KEPT, length: Bytes::new(length), tag, data, pushed: false };
            if self.send_at_once(peer, message, of_caller(bytes, length)) {
                self.inbox.sent(context, length, tag, peer, None);
                return Ok(());
            }
        }
        let mut copy = Vec::new();
        if is_copied {
            copy = self.spare.pop().unwrap_or_default();
            copy.clear();
            copy.extend_from_slice(of_caller(bytes, length));
        }
        let bytes = if is_copied { copy.as_ptr() } else { bytes };
        let told = if is_copied { None } else { context };
        let id = self.sends.insert(Sending { bytes, length, copy, context: told, tag, peer });
        let pushed = self.pushes(peer, length);
        let message = Message { id: MessageId(id as u64), length: Bytes::new(length), tag, data, pushed };
        self.run_on(peer);
        let has_gone = self.send_at_once(peer, message, of_caller(bytes, length));
        if !has_gone && let Err(SendError::Full { .. }) = self.peers[peer].machine.send(self.now, message) {
            self.sends.remove(id);
            self.run.is_on = false;
            return Err(Busy);
        }
        if is_copied {
            self.inbox.sent(context, length, tag, peer, None);
        }
        if !has_gone {
            self.drain(peer, &[]);
        }
        self.run.is_on = false;
        Ok(())
    }

    /// Posts a receive.
    ///
    /// # Safety
    /// The buffer is left alone until the completion.
    pub unsafe fn receive(&mut self, pattern: Pattern, receive: Receive) {
        self.has_begun = true;
        // SAFETY: the caller's promise.
        let clear = unsafe { self.inbox.post(pattern, receive) };
        self.answer(clear);
        self.measure_held();
        if let Some(number) =
            pattern.source.map(|source| source as usize).filter(|&one| one < self.peers.len())
        {
            self.watch(number);
            if self.peers[number].is_gone {
                // It waits for what will not come, unless it has a message that came before.
                self.inbox.lose(number, None);
            }
        }
    }

    /// The source, tag, remote data and length of the earliest message that has come and that a pattern
    /// accepts.
    #[must_use]
    pub fn peek(&self, pattern: &Pattern) -> Option<Completion> {
        self.inbox.peek(pattern).map(seen)
    }

    /// The same, and takes it: only [`Endpoint::receive_claimed`] with the number that comes with it will
    /// have it.
    pub fn claim(&mut self, pattern: &Pattern) -> Option<(usize, Completion)> {
        self.inbox.claim(pattern).map(|(place, head)| (place, seen(head)))
    }

    /// Receives a message that was claimed.
    ///
    /// # Safety
    /// As for [`Endpoint::receive`].
    pub unsafe fn receive_claimed(&mut self, place: usize, receive: Receive) {
        // SAFETY: the caller's promise.
        let clear = unsafe { self.inbox.receive_claimed(place, receive) };
        self.answer(clear);
        self.measure_held();
    }

    /// Drops a message that was claimed.
    pub fn discard_claimed(&mut self, place: usize) {
        // SAFETY: a buffer of no bytes is never written to.
        unsafe { self.receive_claimed(place, NOWHERE) };
    }

    /// Withdraws the receives of a context: whether there was one that waits.
    pub fn cancel(&mut self, context: usize) -> bool {
        self.inbox.cancel(context)
    }

    /// The same, also of those that are being filled: their buffers are not written any more, and what still comes for
    /// them is dropped.
    pub fn withdraw(&mut self, context: usize) {
        if self.inbox.cancel(context) {
            return;
        }
        let peers = self.peers.iter_mut();
        let sinks = peers.flat_map(|peer| peer.sink.iter_mut().chain(&mut peer.coming.pushed));
        self.inbox.withdraw(context, sinks);
    }

    /// Copies what has not gone of the sends of a context: their bytes are free again.
    pub fn keep(&mut self, context: usize) {
        for id in self.sends.find(|sending| sending.context == Some(context) && sending.copy.is_empty()) {
            let Some(sending) = self.sends.get_mut(id) else { continue };
            // SAFETY: the caller of `send` promised so many bytes until the completion.
            let bytes = unsafe { std::slice::from_raw_parts(sending.bytes, sending.length as usize) };
            sending.copy = bytes.to_vec();
            sending.bytes = sending.copy.as_ptr();
            let (moved, jobs) = (sending.bytes, &mut self.peers[sending.peer].jobs);
            jobs.iter_mut().filter(|job| job.id().0 == id as u64).for_each(|job| job.move_to(moved));
        }
    }

    /// The next operation that has ended.
    #[inline]
    pub fn completion(&mut self) -> Option<Completion> {
        self.inbox.completions.pop_front()
    }

    /// Whether an operation has ended that [`Endpoint::completion`] has not told of.
    #[must_use]
    pub fn has_completions(&self) -> bool {
        !self.inbox.completions.is_empty()
    }

    /// Turns without anything to do, one after the other.
    #[must_use]
    pub const fn idle_turns(&self) -> u32 {
        self.idle
    }

    /// How many frames have come which way.
    #[must_use]
    pub const fn carried(&self) -> Carried {
        self.carried
    }

    /// What the end for a peer has counted.
    ///
    /// # Panics
    /// If there is no peer of this number.
    #[must_use]
    pub fn counters(&self, peer: usize) -> Counters {
        *self.peers[peer].machine.counters()
    }

    /// Whether everything that was sent has come, as far as its receivers live.
    #[must_use]
    pub fn is_at_rest(&self) -> bool {
        self.peers.iter().all(|peer| peer.is_gone || peer.machine.is_at_rest() && peer.jobs.is_empty())
    }

    /// Takes what has come and sends what may be sent.
    pub fn progress(&mut self) {
        let mut moved = false;
        self.end_run();
        for number in 0..self.peers.len() {
            moved |= self.take_memory(number);
        }
        self.turn = self.turn.wrapping_add(1);
        // What costs a system call is done now and then, and not in the first turns of a wait, in which the
        // answer to what was sent last comes.
        let is_due = self.turn.is_multiple_of(SEARCH_TURNS) || self.idle == PATIENCE;
        if self.by_datagrams || is_due {
            moved |= self.take_datagrams();
        }
        moved |= self.progress_streams();
        if is_due {
            self.accept();
        }
        for number in 0..self.peers.len() {
            if self.peers[number].is_stuck {
                self.drain(number, &[]);
            }
        }
        if self.turn.is_multiple_of(CLOCK_TURNS) {
            self.look_at_clock();
        }
        self.idle = if moved { 0 } else { self.idle.wrapping_add(1) };
    }

    /// Sends what is left, until it has come or so much time has passed: before an endpoint is dropped.
    pub fn finish(&mut self, limit: Duration) {
        let end = std::time::Instant::now() + limit;
        while !self.is_at_rest() && std::time::Instant::now() < end {
            self.progress();
            if self.idle > PATIENCE {
                self.look_at_peers();
                std::thread::yield_now();
            }
        }
    }

    /// Does what a peer's machine asks for; `current` are the bytes of the frame that has just come.
    fn drain(&mut self, number: usize, current: &[u8]) {
        loop {
            let has_room = self.has_room(number);
            match self.peers[number].machine.poll_output(has_room) {
                Output::Transmit(frame) => self.transmit(number, &frame),
                Output::Deliver(delivered) => self.deliver(number, delivered, current),
                Output::Event(Event::Sent(id)) => self.done(id, None),
                Output::Event(Event::Cleared { id, reference, length }) => {
                    self.begin_stream(number, id, reference, length.get());
                }
                Output::Event(Event::Failed(id)) => self.done(id, Some(Trouble::PeerGone)),
                Output::Event(Event::Met) => {}
                Output::Event(Event::Returned) => {
                    self.end_streams(number);
                    let sink = self.peers[number].sink.take();
                    self.inbox.lose(number, sink);
                }
                Output::Work(_) => {}
                Output::Timeout(timeout) => {
                    let peer = &mut self.peers[number];
                    (peer.timeout, peer.is_stuck) = (timeout, !has_room);
                    if !peer.uses_memory {
                        self.flush();
                    }
                    return;
                }
            }
        }
    }

    #[inline]
    fn has_room(&mut self, number: usize) -> bool {
        let peer = &mut self.peers[number];
        if peer.is_gone || !peer.uses_memory {
            return !peer.is_gone;
        }
        if let Some(out) = &mut peer.out {
            return out.has_room();
        }
        self.reach(number)
    }

    /// Makes the way to a peer of this host, when there is something to send to it.
    #[cold]
    fn reach(&mut self, number: usize) -> bool {
        let peer = &mut self.peers[number];
        let Some(address) = peer.address else { return false };
        match Out::open(self.local, address) {
            Ok(out) => {
                peer.out = Some(Box::new(out));
                true
            }
            Err(_) => {
                self.lose(number);
                false
            }
        }
    }

    #[inline]
    fn transmit(&mut self, number: usize, frame: &Frame) {
        let mut head = [0; HEAD];
        let length = frame.repr.head_octets();
        let head = &mut head[..length];
        frame.repr.emit(head).expect("the size is that of the head");
        let Payload { message, start, length } = frame.payload;
        let payload: &[u8] = match self.sends.get(message.0 as usize) {
            Some(sending) if length.get() > 0 => {
                assert!(start.get() + length.get() <= sending.length, "a range of the message");
                // SAFETY: the bytes are the caller's, who left them alone until the completion, or a copy;
                // the range is inside the message.
                unsafe {
                    std::slice::from_raw_parts(sending.bytes.add(start.get() as usize), length.get() as usize)
                }
            }
            _ => {
                debug_assert_eq!(length.get(), 0, "a message of which nothing is kept goes once");
                &[]
            }
        };
        if let Some(ns) = self.first_pushed(number, &frame.repr.body) {
            return self.push_stream(number, message, head, ns);
        }
        let peer = &mut self.peers[number];
        if let Some(out) = &mut peer.out {
            out.transmit(head, payload);
        } else if let Some(network) = &mut self.network {
            network.transmit((peer.datagrams, peer.mac), (head, payload), frame.service());
        }
    }

    fn deliver(&mut self, number: usize, delivered: Delivered, current: &[u8]) {
        let (id, current_id) = match delivered {
            Delivered::Begin { payload, .. }
            | Delivered::Continue { payload }
            | Delivered::Bulk { payload, .. } => (payload.message.0, self.next_frame),
            Delivered::Offer { .. } | Delivered::Pushed { .. } => (0, 0),
        };
        let kept = if id == current_id { None } else { self.peers[number].kept.remove(&id) };
        let bytes = kept.as_deref().unwrap_or(current);
        match delivered {
            Delivered::Begin { tag, data, length, .. } => {
                let head = Head { source: number, tag, data, length: length.get() };
                self.peers[number].sink = self.inbox.begin(head, bytes);
            }
            Delivered::Continue { .. } => {
                if let Some(sink) = self.peers[number].sink.take() {
                    self.peers[number].sink = self.inbox.go_on(sink, bytes);
                }
            }
            Delivered::Pushed { tag, data, length } => {
                let head = Head { source: number, tag, data, length: length.get() };
                if let Some(sink) = self.inbox.begin(head, &[]) {
                    self.peers[number].coming.pushed.push_back(sink);
                    self.expect(number);
                }
            }
            Delivered::Offer { tag, data, length, offer } => {
                let head = Head { source: number, tag, data, length: length.get() };
                if let Some(clear) = self.inbox.offer(head, offer) {
                    self.clear(clear);
                }
            }
            Delivered::Bulk { reference, offset, .. } => {
                if self.inbox.bulk(number, reference, offset.get(), bytes) && !self.peers[number].uses_memory
                {
                    self.less_expected(number, 1);
                }
            }
        }
    }

    fn answer(&mut self, clear: Option<Clear>) {
        if let Some(clear) = clear {
            self.clear(clear);
            self.drain(clear.peer, &[]);
        }
    }

    fn clear(&mut self, clear: Clear) {
        let Clear { peer, offer, reference, length } = clear;
        let Peer { machine, uses_memory, .. } = &mut self.peers[peer];
        machine.clear(self.now, offer, reference, Bytes::new(length));
        if length > 0 && !*uses_memory {
            self.expect(peer);
        }
    }

    /// A message has been sent, or will not be.
    fn done(&mut self, id: MessageId, trouble: Option<Trouble>) {
        at_once::done(&mut self.sends, &mut self.spare, &mut self.inbox, id, trouble);
    }

    /// Tells peers when memory for messages that nobody has asked for gets short, and when it is not any more.
    #[inline]
    fn measure_held(&mut self) {
        let limit = self.options.held_bytes;
        let is_short = self.inbox.held_bytes > if self.is_short { limit / 2 } else { limit };
        if is_short != self.is_short {
            self.is_short = is_short;
            for number in 0..self.peers.len() {
                self.peers[number].machine.set_short(self.now, is_short);
                self.drain(number, &[]);
            }
        }
    }

    fn look_at_clock(&mut self) {
        self.now = SimTime::ZERO + self.clock.now();
        if self.look_at <= self.now {
            self.look_at = self.now.saturating_add(LOOK);
            self.look_at_peers();
        } else if self.streaming > 0 || self.by_datagrams && self.turn.is_multiple_of(ENDS_TURNS) {
            self.look_at_ends();
        }
        for number in 0..self.peers.len() {
            if self.peers[number].timeout.is_some_and(|timeout| timeout <= self.now) {
                let peer = &mut self.peers[number];
                peer.machine.handle_timeout(self.now);
                let timeouts = peer.machine.counters().timeouts;
                if timeouts != peer.timeouts {
                    // Maybe the way is another by now: the kernel knows.
                    (peer.timeouts, peer.mac) = (timeouts, None);
                }
                self.drain(number, &[]);
            }
        }
    }

    fn accept(&mut self) {
        let Some(listener) = &mut self.listener else { return };
        let mut taken = Vec::new();
        listener.accept(self.local.key, |from, into| taken.push((from, into)));
        for (from, into) in taken {
            let number = self.peer(from);
            self.peers[number].into = Some(Box::new(into));
        }
    }
}

/// A message that was looked at, as a completion without an operation.
const fn seen(head: Head) -> Completion {
    Completion {
        kind: Kind::Received,
        context: 0,
        length: head.length,
        buffer: std::ptr::null_mut(),
        tag: head.tag,
        data: head.data,
        source: head.source,
        trouble: None,
    }
}

/// The longest head of a frame.
const HEAD: usize = 32 + 4 * STAT_ELEMENTS;
