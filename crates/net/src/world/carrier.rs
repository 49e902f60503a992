//! Messages packet by packet or cell by cell: a connection between every two ranks that talk. Over the ports of a network
//! of packets, and over cells that may be lost, it is one of TCP; over cells that are not, a circuit each way.
//!
//! A connection is open from the beginning, as after a library's start. A message is written to it as it is made; when
//! its last byte has been read at the other end, it has crossed the network. A message of no bytes takes one.

use std::sync::Arc;

use wiretwin_msg::table::Table;
use wiretwin_plan::{Below, ByPackets, Graph};
use wiretwin_proto::tcp::{Config, Rto};
use wiretwin_units::{Bytes, SimTime};

use super::World;
use super::state::Pair;
use super::transfer::is_envelope_only;
use crate::packet::{self, ConnectionId};

/// A network of packets or cells and the connections over it.
#[derive(Clone)]
pub(super) struct Carrier {
    pub(super) network: packet::Network,
    /// By the lower and the higher rank.
    connections: Table<Pair, u32>,
    rules: Arc<Config>,
}

impl Carrier {
    pub(super) fn new(graph: &Arc<Graph>, below: &Below, seed: u64) -> Self {
        let modern = Config::linux_modern();
        // What hosts take is in the costs of their layer; and a library waits for ever.
        let ecn = matches!(below, Below::Packets(ByPackets { ecn: Some(_), .. }));
        let rules = Config { work: false, rto: Rto { most: u8::MAX, ..modern.rto }, ecn, ..modern };
        Self {
            network: packet::Network::over(Arc::clone(graph), below, seed),
            connections: Table::new(),
            rules: Arc::new(rules),
        }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.network.memory_bytes() + self.connections.memory_bytes()
    }
}

impl World {
    /// What its network has lost and marked, by name; nothing where messages are flows.
    #[must_use]
    pub fn congestion(&self) -> Vec<(&'static str, u64)> {
        let carrier = self.network.as_ref().and_then(|network| network.carrier.as_ref());
        carrier.map_or_else(Vec::new, |carrier| carrier.network.congestion())
    }

    /// A message between these nodes enters the network.
    pub(super) fn network_send(&mut self, index: u32, nodes: Pair) {
        let Some(network) = &mut self.network else { return };
        network.way(index).entered = self.now;
        let Some(carrier) = &mut network.carrier else { return };
        let now = SimTime::from_ps(self.now);
        let message = &self.messages[index as usize];
        let is_lower = message.source < message.destination;
        let (ranks, hosts) = if is_lower {
            (
                Pair { source: message.source, destination: message.destination },
                [nodes.source, nodes.destination],
            )
        } else {
            (
                Pair { source: message.destination, destination: message.source },
                [nodes.destination, nodes.source],
            )
        };
        let connection = match carrier.connections.get(&ranks) {
            Some(number) => ConnectionId(number),
            None => {
                let connection = carrier.network.connect(hosts, [&carrier.rules, &carrier.rules]);
                carrier.network.open_at_once(&mut self.queue, now, connection);
                carrier.connections.entry(ranks, || connection.0);
                connection
            }
        };
        let bytes = Bytes::new(if is_envelope_only(message) { 1 } else { message.bytes.max(1) });
        let made = SimTime::from_ps(message.sent_at);
        carrier.network.send(&mut self.queue, now, connection.end(is_lower), (bytes, made), index);
    }

    /// Something happens in the network of packets: messages may have crossed it.
    pub(super) fn network_packet(&mut self, event: packet::Event) {
        let Some(carrier) = self.network.as_mut().and_then(|network| network.carrier.as_mut()) else {
            return;
        };
        carrier.network.handle(&mut self.queue, SimTime::from_ps(self.now), event);
        while let Some(index) =
            self.network.as_mut().and_then(|network| network.carrier.as_mut()?.network.poll_complete())
        {
            let (alone, rest) = self.network_alone(index);
            // Its last packet does not leave before its sender has made it.
            let made = self.messages[index as usize].sent_at.saturating_add(rest);
            self.network_leave(index, self.now.max(made), alone.saturating_add(rest));
        }
    }
}
