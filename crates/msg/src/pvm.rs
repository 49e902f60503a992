//! PVM 3: the task library, the daemon and the group server.
//!
//! After PVM 3.4, whose own sources and manual pages are its specification, and captures of 3.4.6
//! (`tests/golden/pvm`). The headers are [`wiretwin_wire::pvm`].
//!
//! | module | idea |
//! |---|---|
//! | [`pack`], [`unpack`], [`item`] | buffers: what a task packs, and what another takes out |
//! | [`task`] | what a program calls |
//! | [`group`] | the group server, a task |
//! | [`daemon`] | one on each host, for all its tasks |
//! | [`system`] | what tasks, daemons and servers say to each other |
//! | [`library`] | task and daemon as processes that make system calls |
//! | [`body`], [`message`] | octets or handles; messages, fragments and packets made of them |

pub mod body;
pub mod daemon;
mod error;
pub mod group;
pub mod item;
pub mod library;
pub mod message;
pub mod pack;
pub mod system;
pub mod task;
pub mod unpack;

pub use body::{Body, Octets};
pub use error::PvmError;
pub use message::{Fragment, Head, Message, Packet};
pub use pack::{Encoding, SendBuffer, Signature};
pub use unpack::ReceiveBuffer;
pub use wiretwin_wire::pvm::Tid;

/// What fuzz targets call.
#[doc(hidden)]
pub mod fuzz {
    pub use super::message::same_however_cut;
    pub use super::unpack::read_arbitrary;
}
