//! `Comm`: what a rank of a parallel program may ask of its world.
//!
//! The subset of MPI-4.1 chapter 3 that the shipped programs and measuring loops need, as an async
//! trait used through static generics. In the live world every future is ready at its first poll.

use std::fmt;

use wiretwin_units::{Bytes, Span};

/// The number of a process in its communicator, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rank(pub u32);

/// The tag a sender gives a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(pub u32);

impl Tag {
    /// Messages about the run itself, such as how often to repeat. A layer that may lose messages
    /// carries these reliably.
    pub const CONTROL: Self = Self(u32::MAX);
}

/// Whose messages a receive takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Only this rank's.
    Rank(Rank),
    /// Anyone's (`MPI_ANY_SOURCE`).
    Any,
}

/// Which tags a receive takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TagMatch {
    /// Only this tag.
    Tag(Tag),
    /// Any tag (`MPI_ANY_TAG`).
    Any,
}

/// What was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// Who sent it.
    pub source: Rank,
    /// The tag it was sent with.
    pub tag: Tag,
    /// The length of the message, at most that of the buffer.
    pub bytes: Bytes,
}

/// One send of an [`Comm::exchange`].
#[derive(Clone, Copy, Debug)]
pub struct Outgoing<'a> {
    /// The receiver.
    pub to: Rank,
    /// The tag.
    pub tag: Tag,
    /// The payload.
    pub message: &'a [u8],
}

/// One receive of an [`Comm::exchange`].
#[derive(Debug)]
pub struct Incoming<'a> {
    /// Whose message.
    pub from: Source,
    /// Which tag.
    pub tag: TagMatch,
    /// Where the payload goes.
    pub buffer: &'a mut [u8],
    /// Filled in when the exchange ends.
    pub status: Option<Status>,
}

/// Computation between messages, named so that a host profile can price it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    /// The kind of operation, a key of the host profile, for example `stencil-point`.
    pub kind: &'static str,
    /// How many of them.
    pub count: u64,
}

/// Why a call on [`Comm`] failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommError {
    /// The rank is not in the communicator.
    NoSuchRank {
        /// The rank asked for.
        rank: Rank,
        /// How many ranks there are.
        size: u32,
    },
    /// The message is longer than the buffer (`MPI_ERR_TRUNCATE`).
    Truncated {
        /// Length of the message.
        message: Bytes,
        /// Length of the buffer.
        buffer: Bytes,
    },
    /// The peer has gone.
    PeerLost {
        /// The peer.
        rank: Rank,
    },
    /// The limit on a wait has passed.
    TimedOut {
        /// The limit.
        limit: Span,
    },
    /// The transport rejected, with its reason.
    Transport(String),
    /// This layer cannot do what was asked (a wildcard on an unframed pair, say).
    Unsupported(&'static str),
}

impl fmt::Display for CommError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchRank { rank, size } => {
                write!(f, "no rank {} here: ranks are 0 to {}", rank.0, size.saturating_sub(1))
            }
            Self::Truncated { message, buffer } => {
                write!(f, "a message of {} bytes met a buffer of {} bytes", message.get(), buffer.get())
            }
            Self::PeerLost { rank } => write!(f, "rank {} has gone", rank.0),
            Self::TimedOut { limit } => write!(f, "nothing came within {} ps", limit.as_ps()),
            Self::Transport(reason) => write!(f, "transport: {reason}"),
            Self::Unsupported(what) => write!(f, "this layer cannot do that: {what}"),
        }
    }
}

impl std::error::Error for CommError {}

/// Why an interface without groups takes none of their calls.
pub const NO_GROUPS: &str = "groups of ranks";

/// One message to each of these ranks.
#[must_use]
pub fn to_each<'a>(to: &[Rank], tag: Tag, message: &'a [u8]) -> Vec<Outgoing<'a>> {
    to.iter().map(|&to| Outgoing { to, tag, message }).collect()
}

/// One rank's view of its communicator.
#[allow(async_fn_in_trait)] // used through static generics only; no future crosses a thread
pub trait Comm {
    /// This process's number.
    fn rank(&self) -> Rank;

    /// How many ranks there are.
    fn size(&self) -> u32;

    /// Time since the program started, on this rank's clock (`MPI_Wtime`).
    fn now(&self) -> Span;

    /// Sends `message` and returns when its buffer may be used again (`MPI_Send`).
    ///
    /// # Errors
    /// [`CommError::NoSuchRank`], [`CommError::PeerLost`], [`CommError::TimedOut`].
    async fn send(&mut self, to: Rank, tag: Tag, message: &[u8]) -> Result<(), CommError>;

    /// Receives one message into `buffer` (`MPI_Recv`).
    ///
    /// # Errors
    /// Those of [`Comm::send`], and [`CommError::Truncated`].
    async fn recv(&mut self, from: Source, tag: TagMatch, buffer: &mut [u8]) -> Result<Status, CommError>;

    /// Sends one `message` to each of these ranks once, and not to this one (`pvm_mcast`), and returns when its
    /// buffer may be used again. Where an interface has nothing for it, a message goes to each.
    ///
    /// # Errors
    /// Those of [`Comm::send`]; where one of the ranks is not there, nothing was sent.
    async fn mcast(&mut self, to: &[Rank], tag: Tag, message: &[u8]) -> Result<(), CommError> {
        let to = self.others(to)?;
        self.exchange(&to_each(&to, tag, message), &mut []).await
    }

    /// These ranks in order, each once, without this one.
    ///
    /// # Errors
    /// [`CommError::NoSuchRank`].
    fn others(&self, to: &[Rank]) -> Result<Vec<Rank>, CommError> {
        let (mine, size) = (self.rank(), self.size());
        if let Some(&rank) = to.iter().find(|to| to.0 >= size) {
            return Err(CommError::NoSuchRank { rank, size });
        }
        let mut to: Vec<Rank> = to.iter().copied().filter(|&to| to != mine).collect();
        to.sort_unstable();
        to.dedup();
        Ok(to)
    }

    /// Posts all receives, starts all sends and returns when all are complete
    /// (`MPI_Irecv`, `MPI_Isend`, `MPI_Waitall`).
    ///
    /// # Errors
    /// Those of [`Comm::recv`].
    async fn exchange(
        &mut self,
        sends: &[Outgoing<'_>],
        receives: &mut [Incoming<'_>],
    ) -> Result<(), CommError>;

    /// Joins the group of this name, which comes to be with its first member (`pvm_joingroup`). Returns this
    /// rank's instance in it: the lowest that is free, from 0.
    ///
    /// # Errors
    /// [`CommError::Unsupported`] with [`NO_GROUPS`] where an interface has no groups, as for all calls of
    /// groups; [`CommError::Transport`] with the interface's own error where it rejects: a group without a name,
    /// one that the rank is in already.
    async fn join_group(&mut self, _group: &str) -> Result<u32, CommError> {
        Err(CommError::Unsupported(NO_GROUPS))
    }

    /// Leaves a group (`pvm_lvgroup`), which is no more without members.
    ///
    /// # Errors
    /// As [`Comm::join_group`]; where there is no such group, or this rank is not in it.
    async fn leave_group(&mut self, _group: &str) -> Result<(), CommError> {
        Err(CommError::Unsupported(NO_GROUPS))
    }

    /// How many are in a group (`pvm_gsize`).
    ///
    /// # Errors
    /// As [`Comm::join_group`]; where there is no such group.
    async fn group_size(&mut self, _group: &str) -> Result<u32, CommError> {
        Err(CommError::Unsupported(NO_GROUPS))
    }

    /// Returns when so many `members` of a group have called this (`pvm_barrier`).
    ///
    /// # Errors
    /// As [`Comm::leave_group`]; where another member waits for another number.
    async fn group_barrier(&mut self, _group: &str, _members: u32) -> Result<(), CommError> {
        Err(CommError::Unsupported(NO_GROUPS))
    }

    /// Sends one `message` to all of a group but this rank, which need not be in it (`pvm_bcast`).
    ///
    /// # Errors
    /// As [`Comm::send`] and [`Comm::group_size`]; where nobody else is in it.
    async fn group_cast(&mut self, _group: &str, _tag: Tag, _message: &[u8]) -> Result<(), CommError> {
        Err(CommError::Unsupported(NO_GROUPS))
    }

    /// Runs `body` for its result. A live world lets it take the time it takes; a simulated one
    /// charges what the host profile says `work` costs.
    async fn compute<T>(&mut self, work: Work, body: impl FnOnce() -> T) -> T;
}
