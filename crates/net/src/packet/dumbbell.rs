//! The dumbbell: pairs of hosts on both sides of one line.

use core::fmt;
use std::sync::Arc;

use wiretwin_proto::tcp::Config;
use wiretwin_units::{BitRate, Bytes, SimTime, Span};

use super::costs::Costs;
use super::flow::{Application, FlowId};
use super::link::LinkSpec;
use super::network::{LinkId, Network, NodeId};

/// What a dumbbell is made of.
#[derive(Clone, Debug)]
pub struct Dumbbell {
    /// Pairs of hosts, each with one connection from left to right; 1 or more.
    pub pairs: u32,
    /// The line that all share.
    pub bottleneck: LinkSpec,
    /// From each host to its router and back; its queue is not bounded.
    pub access: LinkSpec,
    /// The largest IP packet.
    pub mtu: u16,
    /// The rules of the sending hosts.
    pub sender: Arc<Config>,
    /// The rules of the receiving hosts.
    pub receiver: Arc<Config>,
    /// What the senders do.
    pub application: Application,
    /// From the start of one flow to that of the next.
    pub stagger: Span,
    /// What hosts take, if anything.
    pub costs: Option<Costs>,
}

/// A dumbbell that cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DumbbellError {
    /// No pairs.
    NoPairs,
    /// The queue of the shared line holds nothing.
    NoQueue,
    /// The MTU leaves no room for text.
    Mtu {
        /// Octets given.
        found: u16,
        /// The least.
        least: u16,
    },
}

impl fmt::Display for DumbbellError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPairs => f.write_str("0 pairs of hosts: a dumbbell has at least 1"),
            Self::NoQueue => f.write_str("a queue of 0 packets: the shared line holds at least 1"),
            Self::Mtu { found, least } => write!(f, "an MTU of {found} octets: it must be at least {least}"),
        }
    }
}

impl std::error::Error for DumbbellError {}

/// A dumbbell that was built.
#[derive(Clone)]
pub struct Side {
    /// The network.
    pub network: Network,
    /// The shared line, from left to right.
    pub forward: LinkId,
    /// The shared line, from right to left.
    pub backward: LinkId,
    /// All links.
    pub links: Vec<LinkId>,
    /// The connections.
    pub flows: Vec<FlowId>,
}

impl Dumbbell {
    /// `pairs` connections over a line of 155 Mbit/s and 5 ms with a queue of 256 packets, each host at
    /// 1 Gbit/s, 10 us away.
    pub fn over_155_mbit_s(pairs: u32, mtu: u16, config: Config) -> Self {
        let config = Arc::new(config);
        let bottleneck = LinkSpec {
            rate: BitRate::mbit_s(155),
            delay: Span::from_ms(5),
            queue_packets: Some(256),
            overhead: Bytes::new(8),
        };
        Self {
            pairs,
            bottleneck,
            access: LinkSpec {
                rate: BitRate::gbit_s(1),
                delay: Span::from_us(10),
                queue_packets: None,
                ..bottleneck
            },
            mtu,
            sender: config.clone(),
            receiver: config,
            application: Application::Endless,
            stagger: Span::from_ms(7),
            costs: None,
        }
    }

    /// Builds it; flows begin at the start of the run.
    ///
    /// # Errors
    /// [`DumbbellError`] where it cannot be.
    pub fn build(&self) -> Result<Side, DumbbellError> {
        if self.pairs == 0 {
            return Err(DumbbellError::NoPairs);
        }
        if self.bottleneck.queue_packets == Some(0) {
            return Err(DumbbellError::NoQueue);
        }
        if self.mtu < LEAST_MTU {
            return Err(DumbbellError::Mtu { found: self.mtu, least: LEAST_MTU });
        }
        let mut network = Network::new();
        let (left, right) = (network.add_node(None), network.add_node(None));
        let forward = network.add_link(right, self.bottleneck);
        let backward = network.add_link(left, self.bottleneck);
        let mut links = vec![forward, backward];
        let mut flows = Vec::new();
        let mut start = SimTime::ZERO;
        for _ in 0..self.pairs {
            let (from, to) = (network.add_node(self.costs), network.add_node(self.costs));
            for (host, peer, router, beyond, across, back) in
                [(from, to, left, right, forward, backward), (to, from, right, left, backward, forward)]
            {
                let up = network.add_link(router, self.access);
                let down = network.add_link(host, self.access);
                links.extend([up, down]);
                network.add_route(host, peer, up);
                network.add_route(router, host, down);
                network.add_route(router, peer, across);
                network.add_route(beyond, host, back);
            }
            flows.push(self.flow(&mut network, [from, to], start));
            start += self.stagger;
        }
        Ok(Side { network, forward, backward, links, flows })
    }

    fn flow(&self, network: &mut Network, hosts: [NodeId; 2], start: SimTime) -> FlowId {
        network.add_flow(hosts, [&self.sender, &self.receiver], self.mtu, self.application, start)
    }
}

/// The least MTU of IPv4.
const LEAST_MTU: u16 = 68;
