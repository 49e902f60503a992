//! Calls that set circuits up and clear them, as a [`Library`](crate::library::Library) makes them.
//!
//! Each [`Ask`] has one [`Answer`], at once: what takes time is told by [`Sign`]s to who looks (`select`). A host is
//! named by its number, as names are left out.
//!
//! Choice: connect does not wait. The manual's does; but its descriptors are streams, which can be told not to,
//! and two processes that connect to each other and wait would never accept.

use super::types::{Dataflow, Error, Qos, RequestId};
use crate::library::CircuitId;

/// A call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// `atm_open` and `atm_bind`. [`Answer::Opened`].
    Open {
        /// The access point; 0 leaves the choice to the driver.
        asap: u32,
        /// So many requests wait; 0 is a client's.
        queue: u32,
    },
    /// `atm_listen`, without waiting. [`Answer::Request`] or [`Answer::NoRequest`].
    Listen {
        /// Who listens.
        circuit: CircuitId,
    },
    /// `atm_accept`. [`Answer::Accepted`].
    Accept {
        /// Who listens.
        circuit: CircuitId,
        /// Whose the connection is to be.
        by: CircuitId,
        /// Which request.
        request: RequestId,
        /// As it was asked for.
        flow: Dataflow,
        /// What is asked of the network for the circuit back, where it is duplex; a sign tells when that is there.
        back: Qos,
    },
    /// `atm_connect`. [`Answer::Asked`], and a sign later.
    Connect {
        /// Whose the connection is to be; with [`Dataflow::Multicast`] a leaf is added to what it has.
        circuit: CircuitId,
        /// The host.
        host: u32,
        /// The access point there.
        asap: u32,
        /// What is asked of the network.
        qos: Qos,
        /// Simplex, duplex, or a place on a tree.
        flow: Dataflow,
    },
    /// `atm_close`. [`Answer::Closed`].
    Close {
        /// The circuit that is closed.
        circuit: CircuitId,
    },
}

/// What a call came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A descriptor is open and bound.
    Opened {
        /// Its name.
        circuit: CircuitId,
        /// Where it is bound.
        asap: u32,
    },
    /// Somebody asks for a connection.
    Request {
        /// Its name.
        request: RequestId,
        /// Which host asks.
        host: u32,
        /// From which access point there.
        asap: u32,
        /// It is a place on a tree that is offered.
        multicast: bool,
    },
    /// Nobody does.
    NoRequest,
    /// The connection is there.
    Accepted {
        /// Whose it is.
        by: CircuitId,
    },
    /// The network was asked.
    Asked {
        /// For whom.
        circuit: CircuitId,
    },
    /// It is closed.
    Closed,
    /// The call was rejected.
    Refused {
        /// The error that it was rejected with.
        error: Error,
    },
}

/// What has become of a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// A request waits.
    Requested,
    /// What was asked for is there.
    Connected,
    /// It will not be.
    Refused(Error),
    /// A circuit, or a leaf, is gone.
    Gone,
}
