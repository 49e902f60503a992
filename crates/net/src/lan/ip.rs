//! IP of a host, for datagrams: cutting, and putting together with a timer.

use wiretwin_proto::ip::{self, Receiver, Sender, SenderConfig};
use wiretwin_units::SimTime;

use super::Lan;
use super::config::SocketConfig;
use super::core::LanEvent;

/// The two sides of IP of a host, for datagrams that carry a `D`.
pub(super) struct HostIp<D> {
    pub(super) sender: Sender<D>,
    pub(super) receiver: Receiver<D>,
    /// When the receiver's timer is looked at.
    scheduled: SimTime,
}

impl<D: Clone> HostIp<D> {
    pub(super) fn new(config: &SocketConfig) -> Self {
        let sender = SenderConfig { mtu: config.mtu, ..SenderConfig::default() };
        Self {
            sender: Sender::new(sender),
            receiver: Receiver::new(ip::Config::default()),
            scheduled: SimTime::MAX,
        }
    }

    /// The receiver's timer runs out then: when to look at it, where that is not known yet.
    pub(super) fn schedule(&mut self, due: Option<SimTime>) -> Option<SimTime> {
        let due = due.filter(|due| *due < self.scheduled)?;
        self.scheduled = due;
        Some(due)
    }

    /// The time that was asked for has come.
    pub(super) fn handle_timeout(&mut self, now: SimTime) {
        self.scheduled = SimTime::MAX;
        self.receiver.handle_timeout(now);
    }
}

impl Lan {
    /// The timer of a host's reassembly may have run out.
    pub(super) fn fragments_due(&mut self, host: u32) {
        if self.config.stack.message.is_library() {
            self.library_fragments_due(host);
        } else {
            self.rank_fragments_due(host);
        }
    }

    /// Has the timer of a host's reassembly looked at, then.
    pub(super) fn watch_fragments(&mut self, host: u32, due: Option<SimTime>) {
        if let Some(due) = due {
            self.core.at(due.max(self.core.now()), LanEvent::Fragments(host));
        }
    }
}
