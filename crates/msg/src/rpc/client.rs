//! The client: calls of one program at one server, over datagrams or a byte stream.
//!
//! RFC 5531 §4 (transports), §7.4.2 (batching), §8 (credentials), §9, §11. Several calls may be on their
//! way at once; each ends in its results or a named [`Failure`], and none goes on after its total time.
//! [`broadcast`](super::broadcast) is apart.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::fmt;

use wiretwin_proto::{Output, Work, WorkKind};
use wiretwin_units::{Bytes, SimTime, Span};

use super::record::{RecordSender, Write};
use super::work::of_message;
use super::{Body, Call, Credential, Message, Refusal, Reply, Target};

mod retry;
#[cfg(test)]
mod tests;

pub use retry::{Growth, Retry, TOTAL};

/// What a client is told when it is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Program number.
    pub program: u32,
    /// Version.
    pub version: u32,
    /// Who calls. [`Credential::NONE`] unless a program says so.
    pub credential: Credential,
    /// How long a call may take in all; [`TOTAL`].
    pub total: Span,
    /// Over what.
    pub transport: Transport,
}

/// What calls go over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// A message a datagram.
    Datagram {
        /// When a call is sent again; [`Retry::SUN_RPC`].
        retry: Retry,
        /// Octets of the longest message; [`DATAGRAM_OCTETS`].
        largest: Bytes,
    },
    /// A message a record.
    Stream {
        /// The buffer of the connection; [`DEFAULT_BUFFER`](super::record::DEFAULT_BUFFER).
        buffer: Bytes,
        /// How often one call is sent again over a new connection when the old one is lost.
        ///
        /// 0 is what Sun's libraries do: the call fails, and was carried out at most once. With more it
        /// may be carried out more than once.
        resends: u32,
    },
}

/// How a call is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// It ends with its reply.
    Blocking,
    /// Nobody waits, and the server is not to reply (§7.4.2). Over a stream it may wait in the buffer
    /// until that is full, [`Client::flush`] is called or a blocking call is made.
    Batched,
}

/// Which call: its xid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallId(pub u32);

/// Why a call was not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallError {
    /// The message does not fit a datagram.
    TooLong {
        /// Its octets, head included.
        found: Bytes,
        /// How many a datagram may have.
        allowed: Bytes,
    },
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong { found, allowed } => {
                write!(f, "a call of {} octets, a datagram has room for {}", found.get(), allowed.get())
            }
        }
    }
}

impl core::error::Error for CallError {}

/// Why a call has no results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The server says so.
    Refused(Refusal),
    /// No reply in the total time.
    TimedOut {
        /// That time.
        after: Span,
        /// How many times the call was sent.
        sent: u32,
    },
    /// The connection was rejected, or could not be made.
    NotConnected,
    /// The connection was lost before the reply came: the call was carried out once, or not.
    ConnectionLost,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refusal) => refusal.fmt(f),
            Self::TimedOut { after, sent } => {
                write!(f, "no reply within {} ms; the call was sent {sent} times", after.as_ns() / 1_000_000)
            }
            Self::NotConnected => f.write_str("the connection was not made"),
            Self::ConnectionLost => f.write_str("the connection was lost before the reply came"),
        }
    }
}

impl core::error::Error for Failure {}

/// What goes to the layer below.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transmit<B> {
    /// This, as one datagram.
    Datagram(Call<B>),
    /// Make the connection; then [`Client::handle_connected`] or [`Client::handle_closed`].
    Connect,
    /// This, to the connection.
    Write(Write<Call<B>>),
}

/// A call has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completed<B> {
    /// The call that has ended.
    pub call: CallId,
    /// Its results, or why there are none.
    pub result: Result<B, Failure>,
}

/// What is no call's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A call was sent again.
    SentAgain(CallId),
    /// A reply to no call that waits: a second one, one that is too late, or one to a batched call.
    Stray {
        /// That of the reply.
        xid: u32,
    },
    /// Batched calls were lost with the connection before they were handed to it.
    BatchLost {
        /// How many at least began in the buffer.
        calls: u32,
    },
}

/// Outputs of the client.
pub type ClientOutput<B> = Output<Transmit<B>, Completed<B>, Event>;

/// Whether there is a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// None is needed: datagrams.
    Connectionless,
    /// None: the next call makes it.
    Closed,
    /// It is being made.
    Connecting,
    /// There is one.
    Open,
}

#[derive(Clone, Debug)]
struct Pending<B> {
    call: Call<B>,
    deadline: SimTime,
    /// When it is sent again, and the wait before that.
    again: Option<(SimTime, Span)>,
    sent: u32,
}

/// The client.
#[derive(Debug)]
pub struct Client<B> {
    config: Config,
    state: State,
    xid: u32,
    pending: BTreeMap<u32, Pending<B>>,
    /// Made before there was a connection, in order.
    queued: Vec<(Call<B>, Mode)>,
    sender: RecordSender<Call<B>>,
    /// Batched calls in the buffer.
    batched: u32,
    outputs: VecDeque<ClientOutput<B>>,
}

impl<B: Body> Client<B> {
    /// A client whose first call has this xid. Take it from a random stream: a server that remembers
    /// calls must not take those of one client for those of another before it at the same address.
    pub fn new(config: Config, first_xid: u32) -> Self {
        let (state, buffer) = match config.transport {
            Transport::Datagram { .. } => (State::Connectionless, Bytes::new(0)),
            Transport::Stream { buffer, .. } => (State::Closed, buffer),
        };
        Self {
            config,
            state,
            xid: first_xid,
            pending: BTreeMap::new(),
            queued: Vec::new(),
            sender: RecordSender::new(buffer),
            batched: 0,
            outputs: VecDeque::new(),
        }
    }

    /// The connection is there.
    pub fn handle_connected(&mut self, _now: SimTime) {
        if self.state != State::Connecting {
            return;
        }
        self.state = State::Open;
        for (call, mode) in core::mem::take(&mut self.queued) {
            if mode == Mode::Batched || self.pending.contains_key(&call.xid) {
                self.write(&call, mode);
            }
        }
    }

    /// The connection is gone, or was not made.
    pub fn handle_closed(&mut self, _now: SimTime) {
        let failure = match self.state {
            State::Connectionless | State::Closed => return,
            State::Connecting => Failure::NotConnected,
            State::Open => Failure::ConnectionLost,
        };
        self.state = State::Closed;
        let queued = core::mem::take(&mut self.queued);
        let lost = queued.iter().filter(|(_, mode)| *mode == Mode::Batched).count() as u32;
        if lost + self.batched > 0 {
            self.outputs.push_back(Output::Event(Event::BatchLost { calls: lost + self.batched }));
        }
        self.sender.clear();
        self.batched = 0;
        let resends = match self.config.transport {
            Transport::Stream { resends, .. } if failure == Failure::ConnectionLost => resends,
            _ => 0,
        };
        for (xid, pending) in core::mem::take(&mut self.pending) {
            // One that was sent over an earlier connection may have been carried out.
            let failure = if pending.sent > 0 { Failure::ConnectionLost } else { failure };
            if (1..=resends).contains(&pending.sent) {
                self.queued.push((pending.call.clone(), Mode::Blocking));
                self.outputs.push_back(Output::Event(Event::SentAgain(CallId(xid))));
                self.pending.insert(xid, pending);
            } else {
                self.complete(xid, Err(failure));
            }
        }
        if !self.queued.is_empty() {
            self.connect();
        }
    }

    /// A reply arrives: a datagram of the server, or a record of the connection.
    pub fn handle_reply(&mut self, _now: SimTime, reply: Reply<B>) {
        let head = Bytes::new(reply.head().len() as u64);
        if !matches!(self.state, State::Connectionless) {
            self.work(Work { kind: WorkKind::RecordIn, bytes: reply.length(), count: 1 });
        }
        let body = if self.pending.contains_key(&reply.xid) { reply.body() } else { None };
        of_message(false, head, body).for_each(|work| self.work(work));
        if self.pending.remove(&reply.xid).is_none() {
            return self.outputs.push_back(Output::Event(Event::Stray { xid: reply.xid }));
        }
        self.complete(reply.xid, reply.result.map_err(Failure::Refused));
    }

    /// The time that was asked for has come.
    pub fn handle_timeout(&mut self, now: SimTime) {
        let due: Vec<u32> =
            self.pending.iter().filter(|(_, call)| call.due() <= now).map(|(&xid, _)| xid).collect();
        for xid in due {
            self.work(Work { kind: WorkKind::TimerExpiry, bytes: Bytes::new(0), count: 1 });
            let pending = self.pending.get_mut(&xid).expect("it was found just now");
            if pending.deadline <= now {
                let sent = pending.sent;
                self.pending.remove(&xid);
                self.complete(xid, Err(Failure::TimedOut { after: self.config.total, sent }));
                continue;
            }
            let Transport::Datagram { retry, .. } = self.config.transport else { continue };
            let (_, wait) = pending.again.expect("due before its deadline");
            let wait = retry.next(wait);
            pending.again = Some((now.saturating_add(wait), wait));
            pending.sent += 1;
            // The same xid: that is how a server knows it (§9). It was encoded once, and is kept.
            let call = pending.call.clone();
            self.outputs.push_back(Output::Event(Event::SentAgain(CallId(xid))));
            self.outputs.push_back(Output::Transmit(Transmit::Datagram(call)));
        }
    }

    /// Calls a procedure.
    ///
    /// # Errors
    /// [`CallError`] if it fits no datagram; nothing is sent then.
    pub fn call(
        &mut self,
        now: SimTime,
        procedure: u32,
        arguments: B,
        mode: Mode,
    ) -> Result<CallId, CallError> {
        let Config { program, version, ref credential, total, transport } = self.config;
        while self.pending.contains_key(&self.xid) {
            self.xid = self.xid.wrapping_add(1);
        }
        let target = Target { program, version, procedure };
        let call = Call { xid: self.xid, target, credential: credential.clone(), arguments };
        let id = CallId(call.xid);
        if let Transport::Datagram { largest: allowed, .. } = transport
            && call.length() > allowed
        {
            return Err(CallError::TooLong { found: call.length(), allowed });
        }
        self.xid = self.xid.wrapping_add(1);
        let head = Bytes::new(call.head().len() as u64);
        of_message(true, head, call.body()).for_each(|work| self.work(work));
        if mode == Mode::Blocking {
            let again = match transport {
                Transport::Datagram { retry, .. } => Some((now.saturating_add(retry.first), retry.first)),
                Transport::Stream { .. } => None,
            };
            let sent = u32::from(self.state == State::Connectionless);
            let deadline = now.saturating_add(total);
            self.pending.insert(call.xid, Pending { call: call.clone(), deadline, again, sent });
        }
        match self.state {
            State::Connectionless => self.outputs.push_back(Output::Transmit(Transmit::Datagram(call))),
            State::Open => self.write(&call, mode),
            State::Connecting => self.queued.push((call, mode)),
            State::Closed => {
                self.queued.push((call, mode));
                self.connect();
            }
        }
        Ok(id)
    }

    /// Sends the batched calls that wait in the buffer.
    pub fn flush(&mut self, _now: SimTime) {
        self.sender.flush();
        self.drain_sender();
    }

    /// What is to be done next; the time of the next [`Client::handle_timeout`] when that is all.
    pub fn poll_output(&mut self) -> ClientOutput<B> {
        self.outputs.pop_front().unwrap_or_else(|| Output::Timeout(self.due()))
    }

    /// When [`Client::handle_timeout`] is to be called next.
    pub fn due(&self) -> Option<SimTime> {
        self.pending.values().map(Pending::due).min()
    }

    /// Whether calls wait for a connection or in the buffer.
    pub fn has_unsent(&self) -> bool {
        !self.queued.is_empty() || self.batched > 0
    }

    /// Who calls from now on.
    pub fn set_credential(&mut self, credential: Credential) {
        self.config.credential = credential;
    }

    /// Whether batched calls wait in the buffer.
    pub const fn has_batched(&self) -> bool {
        self.batched > 0
    }

    /// Whether there is a connection.
    pub const fn state(&self) -> State {
        self.state
    }

    /// How many calls wait for their reply.
    pub fn waiting(&self) -> usize {
        self.pending.len()
    }

    fn connect(&mut self) {
        self.state = State::Connecting;
        self.outputs.push_back(Output::Transmit(Transmit::Connect));
    }

    fn write(&mut self, call: &Call<B>, mode: Mode) {
        if let Some(pending) = self.pending.get_mut(&call.xid) {
            pending.sent += 1;
        }
        self.batched += u32::from(mode == Mode::Batched);
        self.sender.put(call, call.length(), mode == Mode::Blocking);
        self.drain_sender();
    }

    fn drain_sender(&mut self) {
        while let Some(write) = self.sender.poll_write() {
            let count = write.pieces.len() as u32;
            self.work(Work { kind: WorkKind::RecordOut, bytes: write.length(), count });
            self.outputs.push_back(Output::Transmit(Transmit::Write(write)));
        }
        if self.sender.waiting() == Bytes::new(0) {
            self.batched = 0;
        }
    }

    fn complete(&mut self, xid: u32, result: Result<B, Failure>) {
        self.outputs.push_back(Output::Deliver(Completed { call: CallId(xid), result }));
    }

    fn work(&mut self, work: Work) {
        self.outputs.push_back(Output::Work(work));
    }
}

impl<B> Pending<B> {
    fn due(&self) -> SimTime {
        self.again.map_or(self.deadline, |(again, _)| again.min(self.deadline))
    }
}

/// Octets of the longest message over UDP unless a program asks for more (`UDPMSGSIZE`).
pub const DATAGRAM_OCTETS: Bytes = Bytes::new(8800);
