//! One end of a pair of endpoints.

mod at_once;

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::fmt;

use wiretwin_units::{Bytes, SimTime};
use wiretwin_wire::direct::{Body, Extent, Head, List, NO_LANE, Number, Repr, STAT_ELEMENTS};

use super::DirectOutput;
use super::config::{Config, ConfigError};
use super::event::{Counters, Delivered, Event, Frame, Kept, Message, SendError};
use super::rtt::Rtt;
use super::service::{Chooser, Service};
use super::transfer::{Item, Outbox};
use super::window::Window;
use crate::sscop::{Missing, Receiver, Sd, Sender};
use crate::{MessageId, Output, Payload};

/// This end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Local {
    /// The random number that frames to this endpoint carry.
    pub key: u64,
    /// When this endpoint began: later than that of any former self, counted the shorter way round.
    pub epoch: u32,
    /// The number that frames from this peer are to carry, below [`NO_LANE`].
    pub lane: u16,
}

/// What an end knows of its peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Nothing has been sent.
    Idle,
    /// HELLO was sent, and not answered.
    Greeting,
    /// Messages pass.
    Open,
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Idle => "Idle",
            Self::Greeting => "Greeting",
            Self::Open => "Open",
        })
    }
}

/// The peer's end.
#[derive(Clone, Copy, Debug)]
struct Remote {
    key: u64,
    epoch: Option<u32>,
    lane: u16,
    /// It has little memory for messages that nobody has asked for.
    short: bool,
}

/// What came under a number and is not delivered yet.
#[derive(Clone, Copy, Debug)]
enum Taken {
    Message {
        head: Option<Head>,
        payload: Payload,
    },
    Clear {
        offer: u32,
        reference: u32,
        length: u64,
    },
    /// Delivered when it came.
    Bulk,
}

/// A frame without a number that is to be sent.
#[derive(Clone, Copy, Debug)]
enum Reply {
    /// By the ordinary service, as it measures that, or by the one chosen.
    Poll {
        measures: bool,
    },
    Stat {
        ps: Number,
        list: List,
        service: Service,
    },
    Ustat {
        first: Number,
        end: Number,
    },
}

/// One end of a pair of endpoints.
///
/// ```
/// use wiretwin_proto::direct::{Config, Local, Machine, Message, State};
/// use wiretwin_proto::{MessageId, Output};
/// use wiretwin_units::{Bytes, SimTime};
///
/// let local = Local { key: 7, epoch: 1, lane: 0 };
/// let mut end = Machine::new(Config::default(), local, Some(8))?;
/// let message = Message { id: MessageId(1), length: Bytes::new(8), tag: Some(5), data: None, pushed: false };
/// end.send(SimTime::ZERO, message)?;
/// assert!(matches!(end.poll_output(true), Output::Transmit(frame) if frame.repr.key == 8));
/// assert_eq!(end.state(), State::Greeting);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Machine {
    config: Config,
    local: Local,
    remote: Option<Remote>,
    state: State,
    now: SimTime,
    sender: Sender<32, Item>,
    receiver: Receiver<32, Taken>,
    outbox: Outbox,
    rtt: Rtt,
    window: Window,
    chooser: Chooser,
    /// What is to be handed up, and the messages that are done.
    ready: VecDeque<DirectOutput>,
    replies: VecDeque<Reply>,
    /// A HELLO to be sent, and the epoch that it answers.
    greeting: Option<Option<u32>>,
    hello_at: Option<SimTime>,
    rto_at: Option<SimTime>,
    ack_at: Option<SimTime>,
    /// Frames that came since N(R) was last said.
    unreported: u32,
    /// Time-outs in a row.
    in_vain: u32,
    /// The POLL whose answer is waited for, when it went and by which service.
    polled: Option<(Number, SimTime, Service)>,
    /// The window has stopped a frame since the last measurement.
    was_full: bool,
    short: bool,
    /// The driver sends the bytes of messages that were asked for.
    hands_over: bool,
    counters: Counters,
}

impl Machine {
    /// An end that knows its peer's key, or waits for the peer to say it.
    ///
    /// # Errors
    /// [`ConfigError`] with the first parameter that is not allowed.
    pub fn new(config: Config, local: Local, peer: Option<u64>) -> Result<Self, ConfigError> {
        config.check()?;
        let mut machine = Self {
            config,
            local,
            remote: peer.map(|key| Remote { key, epoch: None, lane: NO_LANE, short: false }),
            state: State::Idle,
            now: SimTime::ZERO,
            sender: Sender::new(),
            receiver: Receiver::new(),
            outbox: Outbox::default(),
            rtt: Rtt::default(),
            window: if config.has_fixed_window {
                Window::fixed(config.first_window)
            } else {
                Window::new(config.first_window, config.most_window, config.delay_target)
            },
            chooser: Chooser::new(config.services),
            ready: VecDeque::new(),
            replies: VecDeque::new(),
            greeting: None,
            hello_at: None,
            rto_at: None,
            ack_at: None,
            unreported: 0,
            in_vain: 0,
            polled: None,
            was_full: false,
            short: false,
            hands_over: false,
            counters: Counters::default(),
        };
        machine.begin();
        Ok(machine)
    }

    /// Numbers from zero on, for a peer that is new.
    fn begin(&mut self) {
        self.sender.begin_at(Number::ZERO, Number::ZERO);
        self.sender.vt_ms = Number::ZERO;
        self.receiver.begin_at(Number::ZERO);
        self.receiver.vr_mr = self.receiver.vr_r + self.config.receive_window;
        self.replies.clear();
        (self.rto_at, self.ack_at, self.polled) = (None, None, None);
        (self.unreported, self.in_vain, self.was_full) = (0, 0, false);
    }

    /// What is known of the peer.
    #[must_use]
    pub const fn state(&self) -> State {
        self.state
    }

    /// What was counted.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The service that frames go by now.
    #[must_use]
    pub const fn service(&self) -> Service {
        self.chooser.chosen()
    }

    /// The most frames that may be under way now.
    #[must_use]
    pub const fn window(&self) -> u32 {
        self.window.frames()
    }

    /// Whether everything that was to be sent has come, and no acknowledgment is owed.
    #[must_use]
    pub fn is_at_rest(&self) -> bool {
        self.outbox.is_empty()
            && self.sender.unacknowledged() == 0
            && self.ack_at.is_none()
            && self.greeting.is_none()
            && self.replies.is_empty()
    }

    /// Takes a message: it is sent as soon as the peer and the network let it.
    ///
    /// # Errors
    /// [`SendError`] where as many messages wait as may.
    pub fn send(&mut self, now: SimTime, message: Message) -> Result<(), SendError> {
        self.now = now;
        let waiting = self.outbox.waiting() as u32;
        if waiting >= self.config.queue {
            return Err(SendError::Full { waiting });
        }
        self.outbox.push(message);
        self.greet();
        Ok(())
    }

    /// Asks for a message that was offered: its bytes come as [`Delivered::Bulk`] under `reference`.
    pub fn clear(&mut self, now: SimTime, offer: u32, reference: u32, length: Bytes) {
        self.now = now;
        self.outbox.clear(offer, reference, length.get());
    }

    /// Whether the peer has little memory for messages that nobody has asked for.
    #[must_use]
    pub fn is_peer_short(&self) -> bool {
        self.remote.is_some_and(|remote| remote.short)
    }

    /// Tells the peer whether memory for messages that nobody has asked for is short: it offers them then.
    pub fn set_short(&mut self, now: SimTime, short: bool) {
        self.now = now;
        if self.short != short {
            self.short = short;
            if self.state == State::Open {
                self.ack_at = Some(now);
            }
        }
    }

    /// Whether the bytes of messages that are asked for from now on go another way, on which nothing is lost: they
    /// are handed over as [`Event::Cleared`], and the machine knows no more of them.
    pub const fn hand_over(&mut self, hands_over: bool) {
        self.hands_over = hands_over;
    }

    /// Sends the bytes of a message that [`Event::Cleared`] has told of, after all in frames of this machine.
    pub fn send_cleared(&mut self, now: SimTime, id: MessageId, reference: u32, length: Bytes) {
        self.now = now;
        self.outbox.push_bulk(id, reference, length.get());
    }

    /// Greets the peer, as the first message would.
    pub fn meet(&mut self, now: SimTime) {
        self.now = now;
        self.greet();
    }

    fn greet(&mut self) {
        if self.state == State::Idle && self.remote.is_some() {
            self.state = State::Greeting;
            self.greeting = Some(None);
        }
    }

    /// A frame came, sound and parsed; its payload's handle is what [`Delivered`] will name.
    pub fn handle_frame(&mut self, now: SimTime, repr: &Repr, payload: Payload) -> Kept {
        self.now = now;
        if repr.key != self.local.key {
            self.counters.stray += 1;
            return Kept::No;
        }
        if let Body::Hello { key, lane, answers } = repr.body {
            self.hello(repr, key, lane, answers);
            return Kept::No;
        }
        let Some(remote) = self.remote.as_mut().filter(|remote| remote.epoch == Some(repr.epoch)) else {
            self.counters.stale += 1;
            return Kept::No;
        };
        remote.short = repr.short;
        if !self.acknowledged(repr.received, repr.granted) {
            // Reordered, it says what is known already; what it brings may be new.
            if matches!(repr.body, Body::Stat { .. } | Body::Ustat { .. } | Body::Ack) {
                return Kept::No;
            }
        }
        match repr.body {
            Body::Message { number, head } => self.numbered(number, Taken::Message { head, payload }, None),
            Body::Bulk { number, reference, offset } => {
                let bulk = Delivered::Bulk { reference, offset: Bytes::new(offset), payload };
                self.numbered(number, Taken::Bulk, Some(bulk))
            }
            Body::Clear { number, offer, reference, length } => {
                self.numbered(number, Taken::Clear { offer, reference, length }, None)
            }
            Body::Poll { number, ps } => {
                let service = if repr.protected { Service::Protected } else { Service::Ordinary };
                self.poll(number, ps, service);
                Kept::No
            }
            Body::Stat { ps, list } => {
                self.stat(ps, repr, list.as_slice());
                Kept::No
            }
            Body::Ustat { first, end } => {
                if self.sender.accepts(None, repr.received, &[first, end]) {
                    let edge = self.sender.vt_ms;
                    let pair = (first, end);
                    if let Ok(count) = self.sender.ustat(pair, repr.received, edge, Missing::IsSkipped) {
                        self.window.missing(count);
                    }
                }
                Kept::No
            }
            Body::Ack | Body::Hello { .. } => Kept::No,
        }
    }

    fn hello(&mut self, repr: &Repr, key: u64, lane: u16, answers: Option<u32>) {
        let epoch = repr.epoch;
        if answers.is_some_and(|answered| answered != self.local.epoch) {
            self.counters.stale += 1;
            return;
        }
        let known = self.remote.and_then(|remote| remote.epoch);
        if known.is_some_and(|known| Number::wrapping(epoch).precedes(Number::wrapping(known))) {
            self.counters.stale += 1;
            return;
        }
        if known != Some(epoch) {
            self.remote = Some(Remote { key, epoch: Some(epoch), lane, short: false });
            if known.is_some() {
                self.abandon();
                self.ready.push_back(Output::Event(Event::Returned));
            } else {
                self.ready.push_back(Output::Event(Event::Met));
            }
            self.begin();
            self.sender.vt_ms = self.sender.vt_a + repr.granted.min(MOST_CREDIT);
            self.state = State::Open;
            self.hello_at = None;
            self.greeting = None;
        }
        if answers.is_none() {
            self.greeting = Some(Some(epoch));
        }
    }

    /// Forgets all that was on its way to a peer that is no more.
    fn abandon(&mut self) {
        let mut failed = Vec::new();
        self.sender.take_all(|item| failed.extend(item.ends()));
        self.outbox.abandon(|id| failed.push(id));
        self.ready.extend(failed.into_iter().map(|id| Output::Event(Event::Failed(id))));
    }

    /// N(R) and what is granted from it on: false where they are old, or cannot be.
    fn acknowledged(&mut self, received: Number, granted: u32) -> bool {
        if !self.sender.accepts(None, received, &[]) {
            if !received.precedes(self.sender.vt_a) {
                self.counters.impossible += 1;
            }
            return false;
        }
        let before = self.sender.vt_a;
        let ready = &mut self.ready;
        self.sender.acknowledge_with(received, |item| {
            ready.extend(item.ends().map(|id| Output::Event(Event::Sent(id))));
        });
        self.granted(before, received, granted);
        true
    }

    /// Takes what the peer grants: `granted` numbers from N(R) on, VT(A) having been `before` until N(R) was taken.
    #[inline]
    fn granted(&mut self, before: Number, received: Number, granted: u32) {
        let edge = received + granted.min(MOST_CREDIT);
        if !edge.precedes(self.sender.vt_ms) {
            self.sender.vt_ms = edge;
        }
        if before != self.sender.vt_a {
            self.in_vain = 0;
            self.rto_at = None;
        }
        self.arm();
    }

    /// Waits for an answer where something is under way.
    fn arm(&mut self) {
        if self.sender.unacknowledged() == 0 {
            self.rto_at = None;
        } else if self.rto_at.is_none() {
            let Config { rto_least, rto_most, .. } = self.config;
            self.rto_at = Some(self.now.saturating_add(self.rtt.timeout(rto_least, rto_most, self.in_vain)));
        }
    }

    fn numbered(&mut self, number: Number, taken: Taken, bulk: Option<Delivered>) -> Kept {
        let answer = self.receiver.sd(number, taken);
        let kept = match answer {
            Sd::Next => Kept::No,
            Sd::Kept | Sd::Gap(..) if bulk.is_some() => Kept::No,
            Sd::Kept | Sd::Gap(..) => Kept::Yes,
            Sd::Again => {
                self.counters.duplicates += 1;
                // The peer may not have been told.
                self.ack_at = Some(self.now);
                return Kept::No;
            }
            Sd::Beyond(_) => {
                self.counters.impossible += 1;
                return Kept::No;
            }
        };
        self.counters.received += 1;
        self.ready.extend(bulk.map(Output::Deliver));
        if let Sd::Gap(first, end) = answer {
            self.replies.push_back(Reply::Ustat { first, end });
        }
        while let Some((_, taken)) = self.receiver.next() {
            self.unreported += 1;
            self.deliver(taken);
        }
        self.report();
        kept
    }

    /// Grants as much as before, and says soon what has come.
    #[inline]
    fn report(&mut self) {
        self.receiver.vr_mr = self.receiver.vr_r + self.config.receive_window;
        if self.unreported >= self.config.ack_every {
            self.ack_at = Some(self.now);
        } else if self.ack_at.is_none() && self.unreported > 0 {
            self.ack_at = Some(self.now.saturating_add(self.config.ack_delay));
        }
    }

    fn deliver(&mut self, taken: Taken) {
        let delivered = match taken {
            Taken::Bulk => return,
            Taken::Message { head: None, payload } => Delivered::Continue { payload },
            Taken::Message { head: Some(Head { tag, data, extent }), payload } => match extent {
                Extent::Whole => Delivered::Begin { tag, data, length: payload.length, payload },
                Extent::Begun { length } => {
                    Delivered::Begin { tag, data, length: Bytes::new(length), payload }
                }
                Extent::Pushed { length } => Delivered::Pushed { tag, data, length: Bytes::new(length) },
                Extent::Offered { length, offer } => {
                    Delivered::Offer { tag, data, length: Bytes::new(length), offer }
                }
            },
            Taken::Clear { offer, reference, length } => {
                match self.outbox.cleared(offer, length) {
                    Ok((id, 0)) => self.ready.push_back(Output::Event(Event::Sent(id))),
                    Ok((id, length)) if self.hands_over => {
                        let length = Bytes::new(length);
                        self.ready.push_back(Output::Event(Event::Cleared { id, reference, length }));
                    }
                    Ok((id, length)) => self.outbox.push_bulk(id, reference, length),
                    Err(()) => self.counters.impossible += 1,
                }
                return;
            }
        };
        self.ready.push_back(Output::Deliver(delivered));
    }

    /// Q.2110 §7.2: a POLL is answered with all that is missing.
    fn poll(&mut self, number: Number, ps: Number, service: Service) {
        if !self.receiver.is_below_highest(number) {
            self.receiver.polled(number);
        }
        let mut first = None;
        self.receiver.lists(STAT_ELEMENTS, |list| {
            // The rest is told when the beginning has come.
            first.get_or_insert(list);
        });
        let list = first.as_deref().and_then(List::new).expect("a list of at most so many elements");
        // An answer to an earlier POLL that has not gone yet says nothing that this one does not.
        self.replies.retain(|reply| !matches!(reply, Reply::Stat { .. }));
        self.replies.push_back(Reply::Stat { ps, list, service });
    }

    fn stat(&mut self, ps: Number, repr: &Repr, list: &[Number]) {
        if !self.sender.accepts(Some(ps), repr.received, list) {
            return;
        }
        let edge = self.sender.vt_ms;
        if let Ok(Some(wanted)) = self.sender.stat(ps, repr.received, edge, list, Missing::IsSkipped, true) {
            self.window.missing(wanted);
        }
        // Heard: what is under way still is waited for anew.
        (self.in_vain, self.rto_at) = (0, None);
        self.arm();
        if let Some((awaited, at, service)) = self.polled
            && awaited == ps
        {
            self.polled = None;
            let round_trip = self.now.saturating_since(at);
            if service == self.chooser.chosen() {
                self.rtt.sample(round_trip);
                self.window.decide(self.rtt.excess(round_trip), core::mem::take(&mut self.was_full));
            }
            if service == Service::Ordinary {
                self.chooser.measured(round_trip);
            }
        }
    }

    /// The time is come that [`Output::Timeout`] named.
    pub fn handle_timeout(&mut self, now: SimTime) {
        self.now = now;
        let due = |at: Option<SimTime>| at.is_some_and(|at| at <= now);
        if due(self.hello_at) {
            self.hello_at = None;
            self.greeting = Some(None);
        }
        if due(self.rto_at) {
            self.counters.timeouts += 1;
            self.in_vain += 1;
            if self.in_vain > 1 {
                self.window.silence();
            }
            self.rto_at = None;
            self.arm();
            self.polled = None;
            self.ask(false);
        }
        let is_active = self.sender.unacknowledged() > 0;
        if self.chooser.measure(now, is_active) {
            self.measure();
        }
    }

    /// Sends a POLL by the ordinary service, unless one that went that way may still be answered.
    fn measure(&mut self) {
        let is_lost = match self.polled {
            Some((_, at, Service::Ordinary)) => self.chooser.waited(self.now.saturating_since(at)),
            _ => true,
        };
        if is_lost {
            self.polled = None;
            self.ask(true);
        }
    }

    /// Sends a POLL, unless one waits to be sent.
    fn ask(&mut self, measures: bool) {
        if !self.replies.iter().any(|reply| matches!(reply, Reply::Poll { .. })) {
            self.replies.push_back(Reply::Poll { measures });
        }
    }

    /// The next thing to be done. Where the device `has_room` for no frame, none is given; the driver asks
    /// again when it has.
    pub fn poll_output(&mut self, has_room: bool) -> DirectOutput {
        if let Some(output) = self.ready.pop_front() {
            return output;
        }
        if has_room && let Some(frame) = self.next_frame() {
            return Output::Transmit(frame);
        }
        Output::Timeout(self.due())
    }

    fn next_frame(&mut self) -> Option<Frame> {
        if let Some(answers) = self.greeting.take() {
            return self.next_hello(answers);
        }
        if self.state != State::Open {
            return None;
        }
        if let Some(reply) = self.replies.pop_front() {
            return Some(self.next_reply(reply));
        }
        if let Some((number, item)) = self.sender.next_wanted() {
            self.counters.resent += 1;
            if !self.sender.has_wanted() {
                // What is lost again is not noticed otherwise before the time-out.
                self.ask(false);
            }
            return Some(self.transmit(number, &item));
        }
        if self.outbox.has_next() && self.sender.is_open() {
            if self.sender.unacknowledged() < self.window.frames() as usize {
                return self.next_new();
            }
            self.was_full = true;
        }
        if self.ack_at.is_some_and(|at| at <= self.now) {
            return Some(self.frame(Body::Ack, nothing(), self.chooser.chosen()));
        }
        None
    }

    fn next_hello(&mut self, answers: Option<u32>) -> Option<Frame> {
        let remote = self.remote?;
        if answers.is_none() {
            let Config { rto_least, rto_most, .. } = self.config;
            let timeout = self.rtt.timeout(rto_least, rto_most, self.in_vain);
            self.in_vain += 1;
            self.hello_at = Some(self.now.saturating_add(timeout));
        }
        let Local { key, lane, .. } = self.local;
        let mut frame = self.frame(Body::Hello { key, lane, answers }, nothing(), Service::Ordinary);
        frame.repr.lane = if answers.is_some() { remote.lane } else { NO_LANE };
        Some(frame)
    }

    fn next_reply(&mut self, reply: Reply) -> Frame {
        match reply {
            Reply::Poll { measures } => {
                let service = if measures { Service::Ordinary } else { self.chooser.chosen() };
                let ps = self.sender.next_poll();
                let is_old = |at: SimTime| self.now.saturating_since(at) > self.config.rto_least;
                if self.polled.is_none_or(|(_, at, _)| is_old(at)) {
                    self.polled = Some((ps, self.now, service));
                }
                self.frame(Body::Poll { number: self.sender.vt_s, ps }, nothing(), service)
            }
            Reply::Stat { ps, list, service } => self.frame(Body::Stat { ps, list }, nothing(), service),
            Reply::Ustat { first, end } => {
                self.frame(Body::Ustat { first, end }, nothing(), self.chooser.chosen())
            }
        }
    }

    fn next_new(&mut self) -> Option<Frame> {
        let eager = if self.is_peer_short() { 0 } else { self.config.eager.get() };
        let item = self.outbox.next(self.config.frame.get(), eager)?;
        Some(self.send_new(item))
    }

    /// A frame of this, under the next number.
    fn send_new(&mut self, item: Item) -> Frame {
        let number = self.sender.send_one(item);
        self.counters.sent += 1;
        self.window.sent();
        if self.chooser.sending(self.now) {
            self.measure();
        }
        self.sender.vt_pd += 1;
        if self.sender.vt_pd >= self.config.max_pd {
            self.sender.vt_pd = 0;
            self.ask(false);
        }
        self.transmit(number, &item)
    }

    fn transmit(&mut self, number: Number, item: &Item) -> Frame {
        let service = self.chooser.chosen();
        self.counters.protected += u64::from(service == Service::Protected);
        self.arm();
        let (body, payload) = item.body(number);
        self.counters.bytes[usize::from(service == Service::Protected)] += payload.length.get();
        self.frame(body, payload, service)
    }

    /// A frame, which says N(R) and what is granted whatever else it says.
    fn frame(&mut self, body: Body, payload: Payload, service: Service) -> Frame {
        (self.unreported, self.ack_at) = (0, None);
        let remote = self.remote.expect("frames are made for a peer whose key is known");
        let repr = Repr {
            key: remote.key,
            epoch: self.local.epoch,
            lane: remote.lane,
            protected: service == Service::Protected,
            short: self.short,
            received: self.receiver.vr_r,
            granted: self.config.receive_window,
            body,
        };
        Frame { repr, payload }
    }
}

const fn nothing() -> Payload {
    Payload::whole(MessageId(0), Bytes::new(0))
}

/// The most that is taken from a peer: far below half of the numbers there are.
const MOST_CREDIT: u32 = 1 << 15;
