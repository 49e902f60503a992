//! The states of one end (Q.2110 §7.4).

use core::fmt;

/// A state, numbered as the standard does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// No connection.
    #[default]
    Idle = 1,
    /// The user asked for a connection; the peer has not answered.
    OutgoingConnectionPending = 2,
    /// The peer asked for a connection; the user has not answered.
    IncomingConnectionPending = 3,
    /// The user ended the connection; the peer has not answered.
    OutgoingDisconnectionPending = 4,
    /// The user asked to resynchronize; the peer has not answered.
    OutgoingResynchronizationPending = 5,
    /// The peer asked to resynchronize; the user has not answered.
    IncomingResynchronizationPending = 6,
    /// An error was found and the peer told; it has not answered.
    OutgoingRecoveryPending = 7,
    /// Both ends know of a recovery that this one began, or both; the user has not answered.
    RecoveryResponsePending = 8,
    /// The peer found an error; the user has not answered.
    IncomingRecoveryPending = 9,
    /// Data flow.
    DataTransferReady = 10,
}

impl State {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Idle,
        Self::OutgoingConnectionPending,
        Self::IncomingConnectionPending,
        Self::OutgoingDisconnectionPending,
        Self::OutgoingResynchronizationPending,
        Self::IncomingResynchronizationPending,
        Self::OutgoingRecoveryPending,
        Self::RecoveryResponsePending,
        Self::IncomingRecoveryPending,
        Self::DataTransferReady,
    ];
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Idle => "Idle",
            Self::OutgoingConnectionPending => "Outgoing Connection Pending",
            Self::IncomingConnectionPending => "Incoming Connection Pending",
            Self::OutgoingDisconnectionPending => "Outgoing Disconnection Pending",
            Self::OutgoingResynchronizationPending => "Outgoing Resynchronization Pending",
            Self::IncomingResynchronizationPending => "Incoming Resynchronization Pending",
            Self::OutgoingRecoveryPending => "Outgoing Recovery Pending",
            Self::RecoveryResponsePending => "Recovery Response Pending",
            Self::IncomingRecoveryPending => "Incoming Recovery Pending",
            Self::DataTransferReady => "Data Transfer Ready",
        })
    }
}
