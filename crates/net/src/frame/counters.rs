//! What went in, what came out, and what became of the rest.

/// Counts of one port, in frames where not said otherwise.
///
/// Over all ports, at any moment:
/// `received + copied + duplicated = delivered + queue_drops + filtered + switch_drops + rule_drops
/// + collision_drops + damaged + held`,
/// where `held` is [`Wire::held`](super::Wire::held).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Taken from the port's host.
    pub received: u64,
    /// The same in octets, check sequences apart.
    pub received_bytes: u64,
    /// Lost because the host's transmit queue was full.
    pub queue_drops: u64,
    /// From this port, and kept by the switch because the destination is on this port.
    pub filtered: u64,
    /// Copies beyond the first of frames from this port that went to several.
    pub copied: u64,
    /// To this port, and lost because the switch's queue was full.
    pub switch_drops: u64,
    /// From this port, and given up after too many collisions or a late one.
    pub collision_drops: u64,
    /// Collisions that frames from this port met before they went out whole.
    pub collisions: u64,
    /// To this port, and damaged there by a collision that their sender did not notice.
    pub damaged: u64,
    /// To this port, and dropped by a rule.
    pub rule_drops: u64,
    /// To this port, with a bit flipped by a rule; counted once for each rule.
    pub corrupted: u64,
    /// Second copies to this port, made by a rule.
    pub duplicated: u64,
    /// To this port, and held back by a rule.
    pub reordered: u64,
    /// Given to the port's host.
    pub delivered: u64,
    /// The same in octets, check sequences apart.
    pub delivered_bytes: u64,
}

/// Sums over all ports, and what is still under way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Frames taken from hosts, copies and duplicates made on the way.
    pub entered: u64,
    /// Frames given to hosts.
    pub delivered: u64,
    /// Frames dropped or filtered.
    pub dropped: u64,
    /// Frames in queues, on lines and held back.
    pub held: u64,
}

impl Totals {
    /// Adds one port.
    pub(super) fn add(&mut self, port: &Counters) {
        self.entered += port.received + port.copied + port.duplicated;
        self.delivered += port.delivered;
        self.dropped += port.queue_drops + port.filtered + port.switch_drops + port.rule_drops;
        self.dropped += port.collision_drops + port.damaged;
    }
}
