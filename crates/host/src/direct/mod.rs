//! The direct transport, live: endpoints that exchange tagged messages past the kernel's protocols.
//!
//! An [`Endpoint`] drives one [`wiretwin_proto::direct::Machine`] a peer over a device: shared memory to a
//! peer on the same host; UDP datagrams to any other, past the kernel's protocols by a packet socket.
//! Frames are the same on all of them, so that ends with different devices understand each other. Nothing runs in the
//! background, but what sends frames that were held for others to go with them: whoever waits calls
//! [`Endpoint::progress`].

mod address;
mod endpoint;
mod ends;
mod error;
mod ether;
mod exchange;
mod held;
mod inbox;
mod ingress;
mod network;
mod packet;
mod shm;
mod stream;
mod udp;

pub use address::{Address, AddressError, address_of_interface};
pub use endpoint::{Busy, Endpoint, Options, Outgoing, Ways};
pub use error::EndpointError;
pub use exchange::{Exchange, Exchanged, Task, exchange};
pub use inbox::{Completion, Kind, Receive, Trouble};
pub use network::{Carried, try_past};
pub use wiretwin_proto::direct::{Counters, Services, Thresholds};

use std::time::Duration;

use wiretwin_units::Span;

/// The times by which a service is chosen: `T_M`, `T_m`, from one measurement to the next, and `T_L`.
#[must_use]
pub fn thresholds(times: [Duration; 4]) -> Thresholds {
    let [high, low, interval, lost] = times
        .map(|time| u64::try_from(time.as_nanos()).ok().and_then(Span::checked_from_ns).unwrap_or(Span::MAX));
    Thresholds { high, low, interval, lost }
}

#[cfg(test)]
pub(crate) mod tests;
