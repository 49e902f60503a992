//! The direct transport, live: endpoints that exchange tagged messages past the kernel's protocols.
//!
//! An [`Endpoint`] drives one [`wiretwin_proto::direct::Machine`] a peer over a device: shared memory to a
//! peer on the same host, UDP datagrams to any other. Frames are the same on both. Nothing runs in the
//! background: whoever waits calls [`Endpoint::progress`].

mod address;
mod endpoint;
mod ends;
mod inbox;
mod shm;
mod udp;

pub use address::{Address, AddressError, address_of_interface};
pub use endpoint::{Busy, Endpoint, EndpointError, Options, Outgoing, Ways};
pub use inbox::{Completion, Kind, Receive, Trouble};

#[cfg(test)]
mod tests;
