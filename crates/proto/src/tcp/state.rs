//! The states of a connection (RFC 9293 §3.3.2).

use core::fmt;

use super::segment::Flags;

/// A state, in the order in which BSD numbers them: what comes after [`State::Established`] has, or
/// will have, one direction closed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// No connection.
    #[default]
    Closed,
    /// Waits for a connection to be asked for.
    Listen,
    /// Has asked for a connection.
    SynSent,
    /// Has asked and been asked, and waits for the answer.
    SynReceived,
    /// Open both ways.
    Established,
    /// The peer has closed, the user has not.
    CloseWait,
    /// The user has closed; the peer has neither acknowledged nor closed.
    FinWait1,
    /// Both have closed; the peer has not acknowledged.
    Closing,
    /// The peer has closed, then the user; the peer has not acknowledged.
    LastAck,
    /// The user has closed and the peer acknowledged.
    FinWait2,
    /// Both have closed and acknowledged; old segments may still be on their way.
    TimeWait,
}

impl State {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Closed,
        Self::Listen,
        Self::SynSent,
        Self::SynReceived,
        Self::Established,
        Self::CloseWait,
        Self::FinWait1,
        Self::Closing,
        Self::LastAck,
        Self::FinWait2,
        Self::TimeWait,
    ];

    /// Whether sequence numbers are agreed on both ways (RFC 9293 §3.3.2).
    pub const fn is_synchronized(self) -> bool {
        !matches!(self, Self::Closed | Self::Listen | Self::SynSent | Self::SynReceived)
    }

    /// Whether the peer's FIN has come.
    pub const fn has_received_fin(self) -> bool {
        matches!(self, Self::CloseWait | Self::Closing | Self::LastAck | Self::TimeWait)
    }

    /// Whether the user may still write.
    pub const fn may_send(self) -> bool {
        matches!(self, Self::SynSent | Self::SynReceived | Self::Established | Self::CloseWait)
    }

    /// The control bits that a segment sent in this state bears (`tcp_outflags` of BSD).
    pub(super) const fn flags(self) -> Flags {
        match self {
            Self::Closed | Self::Listen => Flags::NONE,
            Self::SynSent => Flags::SYN,
            Self::SynReceived => Flags::from_bits(Flags::SYN.bits() | Flags::ACK.bits()),
            Self::Established | Self::CloseWait | Self::FinWait2 | Self::TimeWait => Flags::ACK,
            Self::FinWait1 | Self::Closing | Self::LastAck => {
                Flags::from_bits(Flags::FIN.bits() | Flags::ACK.bits())
            }
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Closed => "CLOSED",
            Self::Listen => "LISTEN",
            Self::SynSent => "SYN-SENT",
            Self::SynReceived => "SYN-RECEIVED",
            Self::Established => "ESTABLISHED",
            Self::CloseWait => "CLOSE-WAIT",
            Self::FinWait1 => "FIN-WAIT-1",
            Self::Closing => "CLOSING",
            Self::LastAck => "LAST-ACK",
            Self::FinWait2 => "FIN-WAIT-2",
            Self::TimeWait => "TIME-WAIT",
        })
    }
}
