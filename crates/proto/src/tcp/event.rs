//! What a connection tells, what it rejects, and what it counts.

use core::fmt;

use wiretwin_units::Bytes;

use super::state::State;
use super::timers::Timer;

/// Something that happened to a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// It is open.
    Established,
    /// A writer that found no room has some now.
    Writable,
    /// The peer has said that urgent data lie before this place of its stream.
    Urgent {
        /// Octets of the stream up to the end of the urgent data.
        end: Bytes,
    },
    /// The peer will send no more; what it has sent is delivered.
    EndOfStream,
    /// It is over. Nothing follows.
    Closed(Reason),
}

/// Why a connection is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Both ends closed, and all that either sent was acknowledged.
    Finished,
    /// The peer does not want it (`ECONNREFUSED`).
    Refused,
    /// The peer has no such connection any more (`ECONNRESET`).
    Reset,
    /// Nothing came for too long (`ETIMEDOUT`).
    TimedOut(Timer),
    /// The network said that there is no way there, and nothing came for too long
    /// (`EHOSTUNREACH`).
    Unreachable,
    /// The user gave it up.
    Aborted,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Finished => "both ends closed",
            Self::Refused => "connection refused by the peer",
            Self::Reset => "connection reset by the peer",
            Self::TimedOut(Timer::Keep) => {
                "connection timed out: not opened, or no answer to keep-alive probes"
            }
            Self::TimedOut(Timer::Retransmit) => "connection timed out: no acknowledgment",
            Self::TimedOut(Timer::Persist) => "connection timed out: no answer to window probes",
            Self::TimedOut(Timer::TwoMsl) => "connection timed out: the peer did not close",
            Self::TimedOut(Timer::DelayedAck) => "connection timed out",
            Self::Unreachable => "no route to the peer",
            Self::Aborted => "connection aborted by its user",
        })
    }
}

/// Why a command was rejected; nothing has changed then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandError {
    /// The connection is in a state that does not know the command.
    State {
        /// The state.
        state: State,
        /// What was asked for.
        command: &'static str,
    },
    /// This side has closed its direction.
    SendingClosed,
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::State { state, command } => write!(f, "cannot {command} in state {state}"),
            Self::SendingClosed => f.write_str("cannot send: this side has closed"),
        }
    }
}

impl core::error::Error for CommandError {}

/// What came of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Read {
    /// So many octets, 1 or more.
    Octets(Bytes),
    /// Nothing is there yet.
    Nothing,
    /// The peer has closed and all was read, or the connection is over.
    End,
}

/// What a connection has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Segments sent.
    pub sent: u32,
    /// Segments with text sent, first or again.
    pub sent_data: u32,
    /// Segments with text sent again.
    pub retransmitted: u32,
    /// Segments received.
    pub received: u32,
    /// Expiries of the retransmission timer.
    pub timeouts: u32,
    /// Losses that duplicate acknowledgments told of.
    pub fast_retransmits: u32,
    /// Marks of congestion that reduced the window.
    pub marks: u32,
    /// Segments received whose octets were not all as sent.
    pub corrupted: u32,
    /// Segments received that lay wholly outside the window.
    pub outside: u32,
}
