//! Messages packet by packet or cell by cell: a connection between every two ranks that talk. Over the ports of a network
//! of packets, and over cells that may be lost, it is one of TCP; over cells that are not, a circuit each way. Over packets
//! it may be one of the direct transport.
//!
//! A connection is open from the beginning, as after a library's start. A message is written to it as it is made; when
//! its last byte has been read at the other end, it has crossed the network. A message of no bytes takes one byte of TCP.
//!
//! The direct transport sends a message at once up to a length, and offers a longer one: its offer crosses as its
//! envelope, what asks for it crosses back, and then its bytes. A rank reads what has come for it when it is inside the
//! library; until then its peers hear nothing, and send no more than they were granted. Of those who have sent it many
//! messages that it has not read, the next sends are not complete before it reads.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use wiretwin_msg::protocol::{Protocol, TransferState};
use wiretwin_msg::table::Table;
use wiretwin_plan::{Below, ByPackets, Graph, Transport};
use wiretwin_proto::direct;
use wiretwin_proto::tcp::{Config, Rto};
use wiretwin_units::{Bytes, SimTime};

use super::World;
use super::state::{Pair, RequestState};
use super::transfer::is_envelope_only;
use crate::direct::live_config;
use crate::model::{Model, Reach};
use crate::packet::{self, ConnectionId};

/// A network of packets or cells and the connections over it.
#[derive(Clone)]
pub(super) struct Carrier {
    pub(super) network: packet::Network,
    /// By the lower and the higher rank.
    connections: Table<Pair, u32>,
    rules: Arc<Config>,
    /// The parameters of the direct transport, where that carries messages.
    pub(super) direct: Option<direct::Config>,
    /// Messages of the direct transport that were sent at once and have not been read, by sender and receiver.
    unread: BTreeMap<(u32, u32), Unread>,
}

/// Messages of a sender that a receiver has not read.
#[derive(Clone, Debug, Default)]
struct Unread {
    count: u32,
    /// Those of them that do not count as sent yet.
    held: VecDeque<u64>,
}

impl Carrier {
    /// `pushed` is the longest message that is sent without being asked for.
    pub(super) fn new(graph: &Arc<Graph>, below: &Below, pushed: Option<Bytes>, seed: u64) -> Self {
        let modern = Config::linux_modern();
        // What hosts take is in the costs of their layer; and a library waits for ever.
        let ecn = matches!(below, Below::Packets(ByPackets { ecn: Some(_), .. }));
        let rules = Config { work: false, rto: Rto { most: u8::MAX, ..modern.rto }, ecn, ..modern };
        Self {
            network: packet::Network::over(Arc::clone(graph), below, seed),
            connections: Table::new(),
            rules: Arc::new(rules),
            unread: BTreeMap::new(),
            direct: direct_of(below)
                .map(|usual| direct::Config { eager: pushed.unwrap_or(usual.eager), ..usual }),
        }
    }

    /// Whether a message of this length is offered first, so that its bytes follow when its receiver asks for them.
    pub(super) fn offers(&self, bytes: u64) -> bool {
        self.direct.is_some_and(|config| bytes > config.eager.get())
    }
}

/// The parameters of the direct transport where it carries what crosses a network: the live ones, but that messages
/// without number may wait.
pub(super) fn direct_of(below: &Below) -> Option<direct::Config> {
    let Below::Packets(ByPackets { transport: Transport::Direct, mtu, .. }) = below else { return None };
    let frame = Bytes::new(u64::from(*mtu)) - AROUND;
    Some(direct::Config { frame, queue: u32::MAX, ..live_config(direct::Services::Ordinary, false) })
}

/// Layer and transport have one limit from which messages wait to be asked for: the layer's, as it was measured, or else the
/// transport's. The longest message that does not wait, where the direct transport carries messages.
pub(super) fn agree_on_offers(model: &mut Model) -> Option<Bytes> {
    let usual = direct_of(model.network.as_ref()?.below.as_ref()?)?.eager;
    let layer = model.inter.as_mut()?;
    let from = *layer.rendezvous_from.get_or_insert(usual + Bytes::new(1));
    Some(from.saturating_sub(Bytes::new(1)))
}

/// How many messages to one peer may wait, as live.
const QUEUE: u32 = 4096;

/// IPv4 and UDP around a frame.
const AROUND: Bytes = Bytes::new(20 + 8);

impl World {
    /// What its network has lost and marked, by name; nothing where messages are flows.
    #[must_use]
    pub fn congestion(&self) -> Vec<(&'static str, u64)> {
        let carrier = self.network.as_ref().and_then(|network| network.carrier.as_ref());
        carrier.map_or_else(Vec::new, |carrier| carrier.network.congestion())
    }

    /// What all ends of the direct transport have counted together, where that carries messages.
    #[must_use]
    pub fn direct_totals(&self) -> Option<direct::Counters> {
        self.network.as_ref()?.carrier.as_ref()?.network.direct_totals()
    }

    /// From this time on a rank is inside the library.
    #[inline]
    pub(super) fn rank_reads(&mut self, rank: u32, since: u64) {
        let carrier = self.network.as_mut().and_then(|network| network.carrier.as_mut());
        if let Some(carrier) = carrier.filter(|carrier| carrier.direct.is_some()) {
            let now = SimTime::from_ps(self.now);
            carrier.network.reads(&mut self.queue, now, rank, SimTime::from_ps(since));
        }
    }

    /// A rank leaves the library.
    #[inline]
    pub(super) fn rank_reads_no_more(&mut self, rank: u32) {
        let carrier = self.network.as_mut().and_then(|network| network.carrier.as_mut());
        if let Some(carrier) = carrier.filter(|carrier| carrier.direct.is_some()) {
            carrier.network.reads_no_more(rank);
        }
    }

    /// Whether a message that its sender need not wait for leaves its request open, since too many are unread.
    pub(super) fn is_held_back(&mut self, index: u32) -> bool {
        let message = &self.messages[index as usize];
        let carrier = self.network.as_mut().and_then(|network| network.carrier.as_mut());
        let is_pushed = message.reach == Reach::Between && message.transfer.protocol() == Protocol::Eager;
        let Some(carrier) = carrier.filter(|carrier| carrier.direct.is_some() && is_pushed) else {
            return false;
        };
        let unread = carrier.unread.entry((message.source, message.destination)).or_default();
        unread.count += 1;
        let is_held = unread.count > QUEUE;
        if is_held {
            unread.held.push_back(message.id);
        }
        is_held
    }

    /// A message that was sent at once has been read.
    fn has_been_read(&mut self, index: u32) {
        let message = &self.messages[index as usize];
        let carrier = self.network.as_mut().and_then(|network| network.carrier.as_mut());
        let pair = (message.source, message.destination);
        let Some(unread) = carrier.and_then(|carrier| carrier.unread.get_mut(&pair)) else { return };
        unread.count -= 1;
        if let Some(request) = unread.held.pop_front().and_then(|id| self.live_request(id)) {
            self.settle(request, RequestState::Done);
        }
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
                match carrier.direct {
                    Some(config) => {
                        let processes = [ranks.source, ranks.destination];
                        let made =
                            carrier.network.make_direct(&mut self.queue, now, connection, processes, config);
                        made.expect("a checked network has parameters that can be");
                    }
                    None => carrier.network.open_at_once(&mut self.queue, now, connection),
                }
                carrier.connections.entry(ranks, || connection.0);
                connection
            }
        };
        if carrier.direct.is_some() {
            carrier.network.look(&mut self.queue, now, message.source);
        }
        let (end, made) = (connection.end(is_lower), SimTime::from_ps(message.sent_at));
        let (is_envelope, is_offered) = (is_envelope_only(message), carrier.offers(message.bytes));
        let (network, sink) = (&mut carrier.network, &mut self.queue);
        let bytes = Bytes::new(if is_envelope && !is_offered { 0 } else { message.bytes });
        match carrier.direct {
            None => network.send(sink, now, end, (bytes.max(Bytes::new(1)), made), index),
            Some(_) if is_offered && !is_envelope => {
                network.send_cleared_direct(sink, now, end, (bytes, made), index);
            }
            Some(_) => network.send_direct(sink, now, end, (bytes, made), index),
        }
        self.announce(index);
        // Before it sends, a rank reads.
        self.network_crossed();
    }

    /// The receiver of a message asks for its bytes: whether what it says crosses the network.
    pub(super) fn network_clear(&mut self, index: u32) -> bool {
        let message = &self.messages[index as usize];
        let Some(carrier) = self.network.as_mut().and_then(|network| network.carrier.as_mut()) else {
            return false;
        };
        if message.reach != Reach::Between || !carrier.offers(message.bytes) {
            return false;
        }
        let (source, destination) = (message.source, message.destination);
        let ranks = Pair { source: source.min(destination), destination: source.max(destination) };
        let number = carrier.connections.get(&ranks).expect("an offer has come by a connection");
        let end = ConnectionId(number).end(destination < source);
        let now = SimTime::from_ps(self.now);
        carrier.network.clear_direct(&mut self.queue, now, end, Bytes::new(message.bytes), index);
        true
    }

    /// Something happens in the network of packets: messages may have crossed it.
    pub(super) fn network_packet(&mut self, event: packet::Event) {
        let Some(carrier) = self.network.as_mut().and_then(|network| network.carrier.as_mut()) else {
            return;
        };
        carrier.network.handle(&mut self.queue, SimTime::from_ps(self.now), event);
        self.network_crossed();
    }

    /// Takes the messages that have crossed the network of packets.
    fn network_crossed(&mut self) {
        while let Some((index, came)) =
            self.network.as_mut().and_then(|network| network.carrier.as_mut()?.network.poll_complete())
        {
            let message = &self.messages[index as usize];
            if message.transfer.state() == TransferState::Cleared {
                let source = message.source;
                self.push_work(source, index, (self.now, 0));
                continue;
            }
            if message.transfer.protocol() == Protocol::Eager {
                self.has_been_read(index);
            }
            let (alone, rest) = self.network_alone(index);
            // Its last packet does not leave before its sender has made it.
            let made = self.messages[index as usize].sent_at.saturating_add(rest);
            self.network_leave(index, came.as_ps().max(made), alone);
        }
    }
}
