//! What ranks ask of the simulated world, and what it answers: the same at every fidelity.

mod error;
pub(crate) mod words;

use std::collections::BTreeMap;

use wiretwin_msg::library::Control;
use wiretwin_msg::matching::Pattern;
use wiretwin_msg::protocol::Mode;
use wiretwin_units::{Bytes, Span};

pub(crate) use error::LARGEST_TAG;
pub use error::OpError;

/// Names a request of a world, and the message that a send made. Never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// Names a call, as the world has numbered it; 0 is no call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NameId(pub u32);

/// The names of calls, by number; 0 is no call.
#[derive(Clone, Debug)]
pub(crate) struct Names {
    list: Vec<String>,
    numbers: BTreeMap<String, u32>,
}

impl Names {
    /// The empty name alone.
    pub(crate) fn new() -> Self {
        Self { list: vec![String::new()], numbers: BTreeMap::from([(String::new(), 0)]) }
    }

    /// The number of a name, a new one where it has none.
    pub(crate) fn id(&mut self, name: &str) -> NameId {
        if let Some(number) = self.numbers.get(name) {
            return NameId(*number);
        }
        let number = self.list.len() as u32;
        self.list.push(name.to_string());
        self.numbers.insert(name.to_string(), number);
        NameId(number)
    }

    /// All of them, by number.
    pub(crate) fn list(&self) -> &[String] {
        &self.list
    }
}

/// When a wait ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WaitMode {
    /// When all requests are complete (`MPI_Waitall`).
    #[default]
    All,
    /// When one is; that one only is returned (`MPI_Waitany`).
    Any,
    /// When one is; all complete ones are returned (`MPI_Waitsome`).
    Some,
    /// Now; those complete are returned (`MPI_Testsome`).
    Test,
}

/// An operation of a rank.
#[derive(Clone, Copy, Debug)]
pub enum Op<'a> {
    /// Works on its own.
    Compute(Span),
    /// Sleeps for this long, as part of the program: it needs no core for that. Does not suspend.
    Sleep(Span),
    /// Begins an MPI call: charges the layer's call cost. `site` is a source line's number, or -1.
    Enter {
        /// Which call, by the number of its name.
        name: NameId,
        /// The source line that calls, by its number, or -1.
        site: i32,
    },
    /// Ends it.
    Exit,
    /// Starts a send; returns its request.
    Send {
        /// The communicator's context.
        context: u32,
        /// The rank that receives the message.
        to: u32,
        /// The tag that the message carries.
        tag: u32,
        /// The length of the message.
        bytes: Bytes,
        /// When the send is complete (`MPI_Send`, `MPI_Ssend`, `MPI_Rsend`, `MPI_Bsend`).
        mode: Mode,
    },
    /// Starts a send of one message to several ranks, in order and without the rank itself; returns its request.
    Multicast {
        /// The ranks that receive the message, in order.
        to: &'a [u32],
        /// The tag that the message carries.
        tag: u32,
        /// The length of the message.
        bytes: Bytes,
    },
    /// Asks for what is no message; returns its request, whose completion has the number that it came to.
    Control(&'a Control),
    /// Posts a receive; returns its request.
    Recv {
        /// What it accepts.
        pattern: Pattern,
        /// The length of the buffer.
        capacity: Bytes,
    },
    /// Withdraws a receive unless it has been matched by now; wait for it to know.
    Cancel(RequestId),
    /// Suspends until the mode says so, and everything posted before is done.
    Wait {
        /// Requests of this rank, each once.
        requests: &'a [RequestId],
        /// When it ends.
        mode: WaitMode,
    },
    /// Suspends until such a message has arrived.
    Probe(Pattern),
    /// Suspends until it is known whether such a message has arrived by now.
    ProbeNow(Pattern),
    /// Suspends until one of the requests is complete or such a message has arrived; all complete ones are
    /// returned, and none if a message ended it.
    Watch {
        /// Requests of this rank, each once.
        requests: &'a [RequestId],
        /// The message that ends it too.
        pattern: Pattern,
    },
    /// Sleeps for this long; suspends.
    Pause(Span),
    /// Suspends until the world has reached this rank's clock.
    Yield,
    /// The rank has ended; it stays only for messages of its own that are not done.
    Finish,
}

impl<'a> Op<'a> {
    /// A standard send, in the context that programs without communicators have.
    #[must_use]
    pub const fn send(to: u32, tag: u32, bytes: Bytes) -> Self {
        Self::Send { context: 0, to, tag, bytes, mode: Mode::Standard }
    }

    /// A receive in that context; `None` takes anyone's message, or any tag.
    #[must_use]
    pub const fn recv(source: Option<u32>, tag: Option<u32>, capacity: Bytes) -> Self {
        Self::Recv { pattern: Pattern { context: 0, source, tag }, capacity }
    }

    /// Waits for all of these.
    #[must_use]
    pub const fn wait(requests: &'a [RequestId]) -> Self {
        Self::Wait { requests, mode: WaitMode::All }
    }
}

/// A request that is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The request; it is no more.
    pub request: RequestId,
    /// The sender.
    pub source: u32,
    /// The tag.
    pub tag: u32,
    /// The length of the message, even if it is longer than the buffer.
    pub bytes: Bytes,
    /// The message: the send that made it.
    pub message: RequestId,
    /// Of a control call: what it came to.
    pub number: u32,
    /// The message was longer than the buffer (`MPI_ERR_TRUNCATE`).
    pub truncated: bool,
    /// The receive was cancelled; the other fields say nothing.
    pub cancelled: bool,
    /// It came to nothing, and the world says why; the other fields say nothing.
    pub failed: bool,
}

/// A message that a probe found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// The sender.
    pub source: u32,
    /// The tag.
    pub tag: u32,
    /// The length.
    pub bytes: Bytes,
    /// The message.
    pub message: RequestId,
}

/// What a suspended rank is resumed with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome<'a> {
    /// Of a wait: the requests it returns, in the order they were given.
    Completed(&'a [Completion]),
    /// Of a probe.
    Probed(Option<Found>),
    /// Of a yield or a pause.
    Reached,
}

/// A rank that waits for something that has not happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocked {
    /// The rank.
    pub rank: u32,
    /// What it waits for, in words.
    pub operation: String,
    /// The call it is in; empty if none.
    pub name: String,
    /// The call's source line, -1 if none.
    pub site: i32,
    /// Since when.
    pub since: wiretwin_units::SimTime,
}

/// How many messages are where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Sends posted.
    pub sent: u64,
    /// Messages taken in by their receivers.
    pub delivered: u64,
    /// Messages on their way, unexpected, or not yet taken in.
    pub held: u64,
    /// The longest sent.
    pub longest: Bytes,
}
