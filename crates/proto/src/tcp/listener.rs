//! A passive socket: makes an end for each peer that asks (`sonewconn`).

use alloc::sync::Arc;

use super::config::Config;
use super::endpoint::{Endpoint, Setup};
use super::segment::{Flags, Segment};
use wiretwin_units::SimTime;

/// A socket that listens.
#[derive(Clone, Debug)]
pub struct Listener {
    config: Arc<Config>,
    /// Connections asked for and not accepted by the user that there may be.
    backlog: u16,
    waiting: u16,
    nodelay: bool,
    keep_alive: bool,
}

/// Why a segment made no connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It asks for none: an end that is closed answers it.
    NoSyn,
    /// As many wait as may: the segment is dropped, and the peer asks again.
    Full {
        /// How many may wait.
        backlog: u16,
    },
}

impl Listener {
    /// A socket with these rules that lets so many connections wait; at least one.
    pub fn new(config: Arc<Config>, backlog: u16) -> Self {
        Self { config, backlog: backlog.max(1), waiting: 0, nodelay: false, keep_alive: false }
    }

    /// Switches `TCP_NODELAY`, which those that are accepted inherit where
    /// [`Config::inherit_nodelay`] says so.
    pub fn set_nodelay(&mut self, nodelay: bool) {
        self.nodelay = nodelay;
    }

    /// Switches `SO_KEEPALIVE`, which those that are accepted inherit.
    pub fn set_keep_alive(&mut self, keep_alive: bool) {
        self.keep_alive = keep_alive;
    }

    /// The end of a new connection, that has the segment taken in.
    ///
    /// # Errors
    /// [`Refusal`] where the segment asks for no connection, or too many wait.
    pub fn handle_segment(
        &mut self,
        now: SimTime,
        segment: &Segment,
        setup: Setup,
    ) -> Result<Endpoint, Refusal> {
        if !segment.flags.has(Flags::SYN) || segment.flags.any(Flags::ACK | Flags::RST) || segment.corrupted {
            return Err(Refusal::NoSyn);
        }
        if self.waiting >= self.backlog {
            return Err(Refusal::Full { backlog: self.backlog });
        }
        self.waiting += 1;
        let mut endpoint = Endpoint::new(self.config.clone(), setup);
        endpoint.set_nodelay(self.nodelay && self.config.inherit_nodelay);
        endpoint.set_keep_alive(self.keep_alive);
        endpoint.listen(now).expect("a new end is closed");
        endpoint.handle_segment(now, segment);
        Ok(endpoint)
    }

    /// A connection that waited was accepted, or is over: another may wait.
    pub fn release(&mut self) {
        self.waiting = self.waiting.saturating_sub(1);
    }
}
