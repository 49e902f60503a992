//! For drivers that sleep while nobody waits: what wakes them, and when they are to look again.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use wiretwin_units::SimTime;

use super::super::ends::Ends;
use super::super::network::Network;
use super::Endpoint;

/// How long a stream that is full may have room before it is seen: nothing comes when it has.
const ROOM: Duration = Duration::from_micros(200);

impl Endpoint {
    /// The files that can be read from when something has come, from peers that are reached by datagrams.
    pub fn wakers(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let network = self.network.iter().flat_map(Network::wakers);
        network.chain(self.ends.iter().map(Ends::waker))
    }

    /// How long nothing is to be done though nothing comes; none for ever.
    #[must_use]
    pub fn due(&self) -> Option<Duration> {
        if self.peers.iter().any(|peer| !peer.jobs.is_empty()) {
            return Some(ROOM);
        }
        let first = self.peers.iter().filter_map(|peer| peer.timeout).min()?;
        let left = first.saturating_since(SimTime::ZERO + self.clock.now());
        Some(Duration::from_nanos(left.as_ps().div_ceil(1000)))
    }

    /// Makes progress and looks at everything, whatever it takes: for whoever looks seldom.
    pub fn attend(&mut self) {
        if let Some(network) = &mut self.network {
            network.ask_kernel();
        }
        self.progress();
        self.look_at = SimTime::ZERO;
        self.look_at_clock();
    }
}
