//! A message layer as a library in a process: operations go in, system calls come out.
//!
//! A [`Library`] is a machine as those of `proto` are, one level up: a process calls it to send and to
//! receive, and it makes system calls, one after the other, as the library of that name would. Whoever
//! drives it (the local network of `net`) does each call, charges the process for it, and hands its
//! [`Outcome`] back. What a message layer says on the wire are real octets, its heads; what programs send
//! are handles ([`Payload`]). Both travel in [`Content`], so a message takes as many octets as its
//! framing makes it take, and one of no octets is carried by its head.
//!
//! The contract of a driver:
//!
//! 1. After each call of a method it drains [`Library::poll_output`] until that yields `Timeout`, and does
//!    what it got in that order: [`Work`](wiretwin_proto::Work) is paid for by the process before anything
//!    that follows.
//! 2. Each [`Call`] has exactly one [`Outcome`], in the order of the calls. A call that waits keeps the
//!    process until then.
//! 3. While the process waits for requests that are not done, and the library has asked for nothing,
//!    [`Library::progress`] is called. If it then asks for nothing, the process will wait for ever. A
//!    daemon waits all its life: the first call of `progress` is its `main`.
//! 4. The library is called by its process only: it has no time of its own, and wakes by
//!    [`Call::Select`] at the earliest.
//!
//! [`framed`](crate::framed) is the smallest example.

use alloc::string::String;
use core::fmt;

use wiretwin_proto::{MessageId, Output};
use wiretwin_units::{Bytes, SimTime, Span};

use crate::fore::{Answer, Ask, Sign};
use crate::matching::Pattern;
use crate::mpi::{Found, Misuse, Outgoing};

mod content;
mod control;

pub use content::{Content, Front};
pub use control::Control;

/// Names what a process has asked of its library. A message is named by the send that made it: its
/// [`MessageId`] has the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Request(pub u64);

impl Request {
    /// The message that this send made.
    #[must_use]
    pub const fn message(self) -> MessageId {
        MessageId(self.0)
    }
}

/// Names a connection within its process; given out by the driver, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub u32);

/// Names a socket that waits for connections within its process; given out by the driver, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ListenerId(pub u32);

/// Names a socket for datagrams within its process; given out by the driver, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SocketId(pub u32);

/// Names a descriptor of the Fore interface within its process: what it has is a pair of permanent circuits to and
/// from the same place, or what was asked for by [`Call::Fore`]. Given out by the driver, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CircuitId(pub u32);

/// A socket's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    /// The number of the host.
    pub host: u32,
    /// The port.
    pub port: u16,
}

/// A system call.
#[derive(Debug, PartialEq, Eq)]
pub enum Call {
    /// A socket that waits for connections (`socket`, `bind`, `listen`); port 0 leaves the choice to the
    /// system. [`Outcome::Listening`], or [`Outcome::Failed`] where the port is taken.
    Listen {
        /// The port.
        port: u16,
    },
    /// Takes the connection that has waited longest, or waits for one. [`Outcome::Accepted`].
    Accept {
        /// The listening socket.
        listener: ListenerId,
    },
    /// Makes a connection, and waits until it is there. [`Outcome::Connected`] or [`Outcome::Failed`].
    Connect {
        /// To whom.
        to: Address,
    },
    /// Switches `TCP_NODELAY` of a connection. [`Outcome::Changed`].
    Nodelay {
        /// The connection that this is about.
        connection: ConnectionId,
        /// On or off.
        on: bool,
    },
    /// Writes (`writev`). [`Outcome::Wrote`] with what was not taken, or [`Outcome::Ended`].
    Write {
        /// Where to.
        connection: ConnectionId,
        /// The data that are sent.
        content: Content,
        /// Until all is taken; else as much as there is room for.
        wait: bool,
    },
    /// Reads what is there. [`Outcome::Read`] or [`Outcome::Ended`].
    Read {
        /// Where from.
        connection: ConnectionId,
        /// At most so many octets.
        most: Bytes,
        /// Until something is there; else the outcome may be nothing.
        wait: bool,
    },
    /// Closes a connection. [`Outcome::Closed`].
    Close {
        /// The connection that this is about.
        connection: ConnectionId,
    },
    /// A socket for datagrams (`socket`, `bind`); port 0 leaves the choice to the system.
    /// [`Outcome::Bound`], or [`Outcome::Failed`].
    Bind {
        /// The port.
        port: u16,
    },
    /// Sends a datagram. [`Outcome::Sent`], or [`Outcome::Failed`] where it is too long.
    SendTo {
        /// From which socket.
        socket: SocketId,
        /// To whom.
        to: Address,
        /// The data that are sent.
        content: Content,
    },
    /// Takes a datagram. [`Outcome::Datagram`], or [`Outcome::Empty`].
    ReceiveFrom {
        /// Of which socket.
        socket: SocketId,
        /// Until one is there.
        wait: bool,
    },
    /// Posts a descriptor on the send queue of a connection of VIs, and waits where that is full: what waits
    /// there looks again and again. [`Outcome::Wrote`] when it is posted, or [`Outcome::Ended`].
    ///
    /// Such a connection keeps messages apart: a [`Call::Read`] gets one whole, and posts its descriptor again.
    Post {
        /// Where to.
        connection: ConnectionId,
        /// The data that are sent.
        content: Content,
        /// The way in which it is posted.
        way: Way,
    },
    /// Sends one PDU on a circuit (`atm_send`). [`Outcome::SentPdu`], or [`Outcome::Failed`] where it is too
    /// long. Whether it comes nobody says.
    SendPdu {
        /// On which.
        circuit: CircuitId,
        /// The data that are sent.
        content: Content,
    },
    /// Takes a PDU (`atm_recv`). [`Outcome::Pdu`], or [`Outcome::NoPdu`].
    ReceivePdu {
        /// From which.
        circuit: CircuitId,
        /// Until one is there.
        wait: bool,
    },
    /// Sets circuits up or clears them. [`Outcome::Fore`].
    Fore(Ask),
    /// Starts a process of a program on this host (`fork`, `exec`). [`Outcome::Started`], or [`Outcome::Failed`]
    /// where there is no such program.
    Start {
        /// Its name.
        program: String,
    },
    /// Waits until something can be read, taken or accepted, a connection has ended, or one has room
    /// (`select`). [`Outcome::Ready`], with nothing ready where the time came first.
    Select {
        /// Also until this connection takes octets.
        write: Option<ConnectionId>,
        /// Not beyond this instant.
        until: Option<SimTime>,
        /// Nothing hangs on that instant: a run is not kept alive by it.
        idle: bool,
    },
}

/// How what a descriptor names goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// As a message, which takes a receive descriptor.
    Send,
    /// The same; its first four octets go as immediate data, beside the buffer.
    Immediate,
    /// Into memory of the other end (RDMA write): nothing there tells of it.
    Write,
}

/// What is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ready {
    /// A connection has octets, or has ended.
    Readable(ConnectionId),
    /// A connection has room.
    Writable(ConnectionId),
    /// A connection waits to be accepted.
    Acceptable(ListenerId),
    /// A datagram is there.
    Datagram(SocketId),
    /// A PDU is there.
    Pdu(CircuitId),
    /// Something has become of a descriptor, told once.
    Circuit(CircuitId, Sign),
}

/// What a call came to.
#[derive(Debug)]
pub enum Outcome<'a> {
    /// A connection that was open from the start, to the process of another rank. Comes before anything
    /// else, without a call.
    Given {
        /// Its name.
        connection: ConnectionId,
        /// Whose process is at the other end.
        rank: u32,
    },
    /// It listens.
    Listening {
        /// Its name.
        listener: ListenerId,
        /// The address that it has.
        at: Address,
    },
    /// A connection was accepted.
    Accepted {
        /// The listening socket.
        listener: ListenerId,
        /// Its name.
        connection: ConnectionId,
        /// Who asked for it.
        from: Address,
    },
    /// A connection was made.
    Connected {
        /// Its name.
        connection: ConnectionId,
        /// To whom.
        to: Address,
    },
    /// An option was changed.
    Changed {
        /// The connection that this is about.
        connection: ConnectionId,
    },
    /// It was written.
    Wrote {
        /// Where to.
        connection: ConnectionId,
        /// What was not taken: nothing where the call waited. Its memory may be used again.
        rest: Content,
    },
    /// This was read: nothing where the call did not wait.
    Read {
        /// Where from.
        connection: ConnectionId,
        /// The data that came. What is left there is gone.
        content: &'a mut Content,
    },
    /// A connection has ended: the peer has closed it, or it is gone.
    Ended {
        /// The connection that this is about.
        connection: ConnectionId,
    },
    /// A connection was closed.
    Closed {
        /// The connection that this is about.
        connection: ConnectionId,
    },
    /// A socket for datagrams is there.
    Bound {
        /// Its name.
        socket: SocketId,
        /// The address that it has.
        at: Address,
    },
    /// A datagram was sent.
    Sent {
        /// From which socket.
        socket: SocketId,
        /// An empty one, whose memory may be used again.
        rest: Content,
    },
    /// A datagram came.
    Datagram {
        /// Of which socket.
        socket: SocketId,
        /// Who sent it.
        from: Address,
        /// The data that came. What is left there is gone.
        content: &'a mut Content,
    },
    /// No datagram is there.
    Empty {
        /// Of which socket.
        socket: SocketId,
    },
    /// A circuit to and from the process of another rank that was there from the start. Comes before
    /// anything else, without a call.
    GivenCircuit {
        /// Its name.
        circuit: CircuitId,
        /// Whose process is at the other end.
        rank: u32,
    },
    /// A PDU was sent.
    SentPdu {
        /// On which circuit.
        circuit: CircuitId,
    },
    /// A PDU came.
    Pdu {
        /// From which circuit.
        circuit: CircuitId,
        /// The data that came. What is left there is gone.
        content: &'a mut Content,
    },
    /// No PDU is there.
    NoPdu {
        /// From which circuit.
        circuit: CircuitId,
    },
    /// What a call for circuits came to.
    Fore(Answer),
    /// A process was started, and has made a connection to this one.
    Started {
        /// Its number.
        process: u32,
        /// The connection.
        connection: ConnectionId,
    },
    /// A connection to several ranks at once, on which can be written and nothing read. Comes before the first
    /// [`Library::multicast`] to them, without a call.
    Tree {
        /// Its name.
        connection: ConnectionId,
        /// Whose processes are at its other ends.
        to: &'a [u32],
    },
    /// The other end of one, on which can be read and nothing written. Comes without a call.
    Branch {
        /// Its name.
        connection: ConnectionId,
        /// Whose process writes.
        rank: u32,
    },
    /// What is ready; nothing where a time was waited for.
    Ready(&'a [Ready]),
    /// It could not be.
    Failed(CallError),
}

/// Why a call came to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallError {
    /// The port is another's.
    PortTaken {
        /// The port.
        port: u16,
    },
    /// Nobody listens there (`ECONNREFUSED`).
    Refused {
        /// The address that was asked for.
        to: Address,
    },
    /// Nobody answers (`ETIMEDOUT`).
    Unreachable {
        /// The address that was asked for.
        to: Address,
    },
    /// A datagram or a PDU is longer than the interface takes (`EMSGSIZE`).
    TooLong {
        /// Its octets.
        bytes: Bytes,
        /// How many there may be.
        most: Bytes,
    },
    /// There is no such call here: circuits and sockets are not of one process.
    NoSuchCall,
    /// There is no such program (`ENOENT`).
    NoSuchProgram,
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::PortTaken { port } => write!(f, "port {port} is another's"),
            Self::Refused { to } => write!(f, "nobody listens at host {} port {}", to.host, to.port),
            Self::Unreachable { to } => write!(f, "host {} port {} does not answer", to.host, to.port),
            Self::TooLong { bytes, most } => {
                write!(f, "{} octets, this takes {}", bytes.get(), most.get())
            }
            Self::NoSuchCall => f.write_str("sockets are called for where there are circuits alone"),
            Self::NoSuchProgram => f.write_str("there is no such program"),
        }
    }
}

impl core::error::Error for CallError {}

/// Why a library does not take an operation, before anything has happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// A rank sends to itself, which this interface cannot.
    ToItself,
    /// A message without octets, which this interface cannot carry.
    Empty,
    /// The message is longer than this interface carries.
    TooLong {
        /// The most.
        most: Bytes,
    },
    /// The interface has no such thing.
    Unsupported(&'static str),
}

/// Why a request that was taken has come to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The connection is gone.
    PeerLost {
        /// The rank that the connection led to.
        rank: u32,
    },
    /// Nothing came in time.
    TimedOut {
        /// The limit.
        limit: Span,
    },
    /// The peer has said no, or something that this interface does not understand.
    Refused(&'static str),
}

/// A request is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done {
    /// A send: its buffer may be used again.
    Sent(Request),
    /// A receive: this message is in its buffer, or as much of it as fits.
    Received {
        /// The receive.
        request: Request,
        /// The message.
        message: MessageId,
    },
    /// A control call: it has come to this number.
    Answered {
        /// The request that has ended.
        request: Request,
        /// The number; [`Control`] says of what.
        number: u32,
    },
    /// A receive: it was taken back.
    Cancelled(Request),
    /// Any of them: it has come to nothing.
    Failed {
        /// The request that has ended.
        request: Request,
        /// The reason of its failure.
        failure: Failure,
    },
}

/// What a library has to tell that is nobody's request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A message has come that no receive has been posted for.
    Unexpected {
        /// The message that has come.
        message: MessageId,
    },
    /// Octets came that are none of this message layer's.
    Garbage {
        /// What they were taken for.
        what: &'static str,
    },
    /// Something was sent again.
    SentAgain,
}

/// Outputs of a library.
pub type LibraryOutput = Output<Call, Done, Event>;

/// What a library of MPI takes that other message layers have no word for (MPI-4.1, chapter 3).
///
/// Who drives it drains [`Library::poll_output`] after each call, as after those of [`Library`].
pub trait MpiCalls {
    /// The process sends in a context and a mode. A buffered message always finds room: who keeps the books of
    /// what is attached rejects it before.
    ///
    /// # Errors
    /// [`Misuse`]; nothing has begun then.
    fn send_in_mode(&mut self, now: SimTime, request: Request, outgoing: Outgoing) -> Result<(), Misuse>;

    /// The process posts a receive in a context.
    fn receive_in_context(&mut self, now: SimTime, request: Request, pattern: Pattern, capacity: Bytes);

    /// The message that such a receive would take, of those that have come (`MPI_Iprobe`).
    fn probe(&self, pattern: &Pattern) -> Option<Found>;

    /// Takes back a receive that no message has matched (`MPI_Cancel`): [`Done::Cancelled`], or it goes on.
    fn cancel(&mut self, now: SimTime, request: Request);
}

/// Why a daemon sends nothing for itself.
const NO_RANK: &str = "a message of a daemon";

/// Why a message layer without trees takes no message to several.
pub const NO_MULTICAST: &str = "one message to several ranks";

/// The library of a message layer in one process.
///
/// A daemon, which no rank lives in, sends and receives nothing of its own: what a library does not say of
/// messages is that it takes none.
pub trait Library {
    /// Whether a send would be taken.
    ///
    /// # Errors
    /// [`Refusal`], where it would not.
    fn admit(&self, _to: u32, _tag: u32, _bytes: Bytes) -> Result<(), Refusal> {
        Err(Refusal::Unsupported(NO_RANK))
    }

    /// The process sends; [`Library::admit`] has said that it may.
    fn send(&mut self, _now: SimTime, request: Request, _to: u32, _tag: u32, _bytes: Bytes) {
        debug_assert!(false, "request {request:?} was not admitted");
    }

    /// Whether one send to several ranks would be taken: each of them once, and not the process itself.
    ///
    /// # Errors
    /// [`Refusal`]; where the interface has no such thing, the process sends to each.
    fn admit_multicast(&self, _to: &[u32], _tag: u32, _bytes: Bytes) -> Result<(), Refusal> {
        Err(Refusal::Unsupported(NO_MULTICAST))
    }

    /// The process sends to several; [`Library::admit_multicast`] has said that it may.
    fn multicast(&mut self, _now: SimTime, request: Request, _to: &[u32], _tag: u32, _bytes: Bytes) {
        debug_assert!(false, "request {request:?} was not admitted");
    }

    /// The process posts a receive; `None` takes anyone's, or any tag.
    fn receive(
        &mut self,
        _now: SimTime,
        request: Request,
        _from: Option<u32>,
        _tag: Option<u32>,
        _capacity: Bytes,
    ) {
        debug_assert!(false, "request {request:?} is of no rank");
    }

    /// Whether the interface has what is asked for.
    ///
    /// # Errors
    /// [`Refusal`], where it has not.
    fn admit_control(&self, control: &Control) -> Result<(), Refusal> {
        Err(Refusal::Unsupported(control.unsupported()))
    }

    /// The process asks for this; [`Library::admit_control`] has said that it may.
    fn control(&mut self, _now: SimTime, request: Request, __control: Control) {
        debug_assert!(false, "request {request:?} was not admitted");
    }

    /// What it has beside this where it is a library of MPI: contexts, modes, probes.
    fn mpi(&mut self) -> Option<&mut dyn MpiCalls> {
        None
    }

    /// The process ends: what it has kept back goes now, or never.
    fn leave(&mut self, _now: SimTime) {}

    /// Whether the process stays, once it has said that it ends, for something to be brought to its end; it
    /// waits in the library then.
    fn is_busy(&self) -> bool {
        false
    }

    /// The process waits in the library.
    fn progress(&mut self, now: SimTime);

    /// A call has come to something.
    fn handle(&mut self, now: SimTime, outcome: Outcome<'_>);

    /// What is to be done next; `Timeout` when that is all.
    fn poll_output(&mut self) -> LibraryOutput;
}
