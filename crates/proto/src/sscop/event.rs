//! What one end tells its user and its management, what it rejects, and what it counts.

use core::fmt;

use wiretwin_units::{Bytes, Seq};

use super::state::State;
use crate::Payload;

/// Who ended a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A user.
    User,
    /// SSCOP, here or at the peer.
    Sscop,
}

/// A signal to the user, or an error to management.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// AA-ESTABLISH.indication: the peer asks for a connection. To be answered.
    EstablishIndication {
        /// Data of the peer's user.
        uu: Option<Payload>,
    },
    /// AA-ESTABLISH.confirm: the connection is there.
    EstablishConfirm {
        /// Data of the peer's user.
        uu: Option<Payload>,
    },
    /// AA-RELEASE.indication: the connection is over, or did not come about.
    ReleaseIndication {
        /// Who ended it.
        source: Source,
        /// Data of the peer's user.
        uu: Option<Payload>,
    },
    /// AA-RELEASE.confirm: the connection that the user ended is over.
    ReleaseConfirm {
        /// Data of the peer's user.
        uu: Option<Payload>,
    },
    /// AA-RESYNC.indication: the peer resynchronizes. To be answered.
    ResyncIndication {
        /// Data of the peer's user.
        uu: Option<Payload>,
    },
    /// AA-RESYNC.confirm: both ends are resynchronized.
    ResyncConfirm,
    /// AA-RECOVER.indication: an error was recovered from; data may be lost. To be answered.
    RecoverIndication,
    /// AA-RETRIEVE COMPLETE.indication: all that was asked for has been given back.
    RetrieveComplete,
    /// MAA-ERROR.indication.
    Error(ManagementError),
}

/// MAA-ERROR codes (Q.2110 table 5), each with its letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ManagementError {
    /// A PDU that does not belong in this state: A SD, B BGN, C BGAK, D BGREJ, E END, F ENDAK, G POLL,
    /// H STAT, I USTAT, J RS, K RSAK, L ER, M ERAK.
    Unexpected(char),
    /// O: the most tries without an answer.
    TooManyTries,
    /// P: `Timer_NO-RESPONSE` ran out.
    NoResponse,
    /// Q: N(S) of an SD or a POLL cannot be.
    SdOrPollNumber,
    /// R: N(PS) of a STAT cannot be.
    StatPollNumber,
    /// S: N(R) or the list of a STAT cannot be.
    StatList,
    /// T: N(R) or the list of a USTAT cannot be.
    UstatList,
    /// U: a PDU of a length or kind that there is not.
    Length,
    /// V: so many SDs are to be sent again.
    Retransmitted(u32),
    /// W: the peer lets no more be sent.
    NoCredit,
    /// X: it does again.
    Credit,
}

impl ManagementError {
    /// The letter.
    pub const fn letter(self) -> char {
        match self {
            Self::Unexpected(letter) => letter,
            Self::TooManyTries => 'O',
            Self::NoResponse => 'P',
            Self::SdOrPollNumber => 'Q',
            Self::StatPollNumber => 'R',
            Self::StatList => 'S',
            Self::UstatList => 'T',
            Self::Length => 'U',
            Self::Retransmitted(_) => 'V',
            Self::NoCredit => 'W',
            Self::Credit => 'X',
        }
    }
}

/// What is handed up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivered<const BITS: u32> {
    /// AA-DATA.indication: in order, once.
    Data {
        /// The information.
        payload: Payload,
        /// SN: its number.
        number: Seq<BITS>,
    },
    /// AA-UNITDATA.indication.
    Unitdata(Payload),
    /// MAA-UNITDATA.indication, for management.
    Management(Payload),
    /// AA-RETRIEVE.indication: what this end's user had sent.
    Retrieved(Payload),
}

/// What is to be given back (AA-RETRIEVE.request).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retrieval<const BITS: u32> {
    /// What was never sent.
    Unsent,
    /// All that was not acknowledged, sent or not.
    Unacknowledged,
    /// What was sent after this number, and what was never sent.
    After(Seq<BITS>),
}

/// Why a request was rejected; nothing has changed then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestError {
    /// The state does not know the request.
    State {
        /// What was asked for.
        request: &'static str,
        /// The state.
        state: State,
    },
    /// There are more octets than a PDU may carry.
    Length {
        /// Octets handed in.
        found: Bytes,
        /// The most there may be.
        most: Bytes,
    },
    /// The window would reach over half of the numbers.
    Window {
        /// How far it would.
        reach: u64,
        /// The most it may.
        most: u32,
    },
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::State { request, state } => write!(f, "{request} in state {state}"),
            Self::Length { found, most } => {
                write!(f, "{} octets for one PDU, which carries at most {}", found.get(), most.get())
            }
            Self::Window { reach, most } => write!(f, "a window of {reach} numbers, at most {most} can be"),
        }
    }
}

impl core::error::Error for RequestError {}

/// What one end has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// SDs sent, first and again.
    pub sd_sent: u64,
    /// SDs sent again.
    pub sd_retransmitted: u64,
    /// SDs received.
    pub sd_received: u64,
    /// SDs received that were there already, or beyond the window.
    pub sd_discarded: u64,
    /// POLLs sent.
    pub polls: u64,
    /// Recoveries begun here.
    pub recoveries: u64,
    /// PDUs ignored for their numbers ([`Faults::Ignored`](super::Faults::Ignored)).
    pub ignored: u64,
}
