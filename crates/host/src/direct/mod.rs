//! The direct transport, live: endpoints that exchange tagged messages past the kernel's protocols.
//!
//! An [`Endpoint`] drives one [`wiretwin_proto::direct::Machine`] a peer over a device: shared memory to a
//! peer on the same host; UDP datagrams to any other, past the kernel's protocols by a packet socket.
//! Frames are the same on all of them, so that ends with different devices understand each other. Nothing runs in the
//! background: whoever waits calls [`Endpoint::progress`].

mod address;
mod endpoint;
mod ends;
mod error;
mod ether;
mod inbox;
mod network;
mod packet;
mod shm;
mod stream;
mod udp;

pub use address::{Address, AddressError, address_of_interface};
pub use endpoint::{Busy, Endpoint, Options, Outgoing, Ways};
pub use error::EndpointError;
pub use inbox::{Completion, Kind, Receive, Trouble};
pub use network::{Carried, try_past};

#[cfg(test)]
pub(crate) mod tests;
