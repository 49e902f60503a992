//! Remote procedure calls over real sockets: the machines of `wiretwin_msg::rpc`, driven.

mod broadcast;
mod client;
mod server;

pub use broadcast::{Heard, broadcast};
pub use client::{RpcClient, RpcClientError};
pub use server::{Reaction, RpcServer};

use wiretwin_units::SimTime;

use crate::Clock;

/// The machines' time: what has passed since a clock was made.
fn time(clock: &Clock) -> SimTime {
    SimTime::ZERO + clock.now()
}

/// Octets of the largest datagram over IPv4: 65535 - 20 - 8 (RFC 768, RFC 791).
const LARGEST_DATAGRAM: usize = 65_507;
/// Octets of the largest record that either end takes.
const LARGEST_RECORD: u64 = 64 << 20;
