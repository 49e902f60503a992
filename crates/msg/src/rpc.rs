//! ONC remote procedure calls, version 2: client, server, broadcast, record marking, port mapper.
//!
//! RFC 5531 (messages, record marking), RFC 1833 (port mapper and `rpcbind`); what they leave to an
//! implementation is as in Sun's libraries, and said where it is. The formats are
//! [`wiretwin_wire::rpc`]. Left out: RPCSEC_GSS and AUTH_DH (rejected by the server), AUTH_SHORT (a
//! verifier of a reply is not looked at).
//!
//! A machine sees the heads of messages; what follows them is a [`Body`]: octets where there are some,
//! a length in a simulated world.

pub mod broadcast;
pub mod cache;
pub mod client;
pub mod library;
pub mod mapper;
mod matter;
mod message;
pub mod record;
pub mod server;
mod work;

pub use matter::Matter;
pub use message::{AuthStatus, Call, Credential, Incoming, Message, Refusal, Reply};
pub use work::{Argument, Body};

/// A procedure of a program in a version: what a call names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Target {
    /// Program number.
    pub program: u32,
    /// Version.
    pub version: u32,
    /// Procedure; 0 does nothing.
    pub procedure: u32,
}

/// What fuzz targets call.
#[doc(hidden)]
pub mod fuzz {
    pub use super::message::round_trip;
    pub use super::record::same_however_cut;
}
