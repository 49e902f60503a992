//! Nodes, links, flows, and the events that move packets between them.

use std::sync::Arc;

use wiretwin_engine::EventQueue;
use wiretwin_proto::tcp::{Config, Endpoint, Event as TcpEvent, Read, Segment, SeqNumber, Setup};
use wiretwin_proto::{MessageId, Output};
use wiretwin_units::{Bytes, SimTime};

use super::arena::{Arena, Packet};
use super::costs::{Costs, Processor};
use super::flow::{Application, End, Flow, FlowId, FlowReport, RECEIVER, SENDER};
use super::heads::Heads;
use super::link::{Link, LinkCounters, LinkSpec, Offer};

/// Which node of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeId(pub u32);

/// Which link of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LinkId(pub u32);

#[derive(Clone, Debug, Default)]
struct Node {
    processor: Processor,
    /// By the node that a packet is for, the link it leaves by.
    routes: Vec<u32>,
}

/// No link.
const NOWHERE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    /// A timer of an end may have run out.
    Timer { flow: u32, end: u8 },
    /// The processor of a host takes the next packet that waits.
    Take { node: u32 },
    /// A flow begins.
    Start { flow: u32 },
}

impl Event {
    const fn encode(self) -> u64 {
        let (kind, number, end) = match self {
            Self::Timer { flow, end } => (0, flow, end),
            Self::Take { node } => (1, node, 0),
            Self::Start { flow } => (2, flow, 0),
        };
        kind | (end as u64) << 2 | (number as u64) << 3
    }

    const fn decode(index: u64) -> Self {
        let number = (index >> 3) as u32;
        match index & 3 {
            0 => Self::Timer { flow: number, end: (index >> 2 & 1) as u8 },
            1 => Self::Take { node: number },
            _ => Self::Start { flow: number },
        }
    }
}

/// A network of packets.
#[derive(Clone)]
pub struct Network {
    now: SimTime,
    /// What happens beside arrivals.
    events: EventQueue,
    /// When the first of them is due; [`SimTime::MAX`] where there is none.
    next_event: SimTime,
    heads: Heads,
    nodes: Vec<Node>,
    links: Vec<Link>,
    /// By link, the node at its end.
    ends: Vec<u32>,
    flows: Vec<Flow>,
    arena: Arena,
    hops: u64,
    lost: u64,
}

impl Default for Network {
    fn default() -> Self {
        Self::new()
    }
}

impl Network {
    /// A network without nodes.
    pub fn new() -> Self {
        Self {
            now: SimTime::ZERO,
            events: EventQueue::new(),
            next_event: SimTime::MAX,
            heads: Heads::default(),
            nodes: Vec::new(),
            links: Vec::new(),
            ends: Vec::new(),
            flows: Vec::new(),
            arena: Arena::default(),
            hops: 0,
            lost: 0,
        }
    }

    /// Adds a node; what its processor takes matters where flows end.
    pub fn add_node(&mut self, costs: Option<Costs>) -> NodeId {
        self.nodes.push(Node { processor: Processor { costs, ..Processor::default() }, routes: Vec::new() });
        NodeId((self.nodes.len() - 1) as u32)
    }

    /// Adds a link, one way.
    ///
    /// # Panics
    /// Where `to` is no node of this network.
    pub fn add_link(&mut self, to: NodeId, spec: LinkSpec) -> LinkId {
        assert!((to.0 as usize) < self.nodes.len(), "a link leads to a node of its network");
        self.links.push(Link::new(spec));
        self.ends.push(to.0);
        LinkId((self.links.len() - 1) as u32)
    }

    /// Sends packets that are at `at` and for `destination` by a link.
    pub fn add_route(&mut self, at: NodeId, destination: NodeId, link: LinkId) {
        let routes = &mut self.nodes[at.0 as usize].routes;
        let place = destination.0 as usize;
        if routes.len() <= place {
            routes.resize(place + 1, NOWHERE);
        }
        routes[place] = link.0;
    }

    /// Adds a connection from one host to another, each with the rules and the MTU of its own, that
    /// begins at `start`.
    ///
    /// # Panics
    /// Where there is no route from the one host towards the other.
    pub fn add_flow(
        &mut self,
        hosts: [NodeId; 2],
        configs: [&Arc<Config>; 2],
        mtu: u16,
        application: Application,
        start: SimTime,
    ) -> FlowId {
        let number = self.flows.len() as u32;
        let end = |side: usize| {
            let (host, peer) = (hosts[side], hosts[1 - side]);
            let id = |side: usize| MessageId(u64::from(number) * 2 + side as u64);
            let setup = Setup {
                iss: SeqNumber::wrapping(number.wrapping_mul(64_000) + side as u32 * 32_000),
                stream: id(side),
                peer_stream: id(1 - side),
                mtu,
            };
            let link = self.route(host, peer).expect("a flow goes where there is a route");
            let machine = Endpoint::new(configs[side].clone(), setup);
            End { machine, host, link, deadline: SimTime::MAX, scheduled: SimTime::MAX }
        };
        let (to_write, closes) = match application {
            Application::Endless => (u64::MAX, false),
            Application::Transfer(octets) => (octets.get(), true),
        };
        let ends = [end(0), end(1)];
        self.flows.push(Flow { ends, to_write, closes, read: 0, last_read: SimTime::ZERO, ended: None });
        self.push(start.max(self.now), Event::Start { flow: number });
        FlowId(number)
    }

    /// Runs until no event is due up to `until`, which the clock then shows.
    pub fn run_until(&mut self, until: SimTime) {
        loop {
            let arrival = self.heads.next_time().unwrap_or(SimTime::MAX);
            if arrival <= self.next_event {
                if arrival > until || arrival == SimTime::MAX {
                    break;
                }
                self.now = arrival;
                self.arrive();
            } else {
                let Some(event) = self.events.pop_through(until) else { break };
                self.next_event = self.events.next_time().unwrap_or(SimTime::MAX);
                self.now = event.time;
                match Event::decode(event.index) {
                    Event::Timer { flow, end } => self.timer(flow, end),
                    Event::Take { node } => self.take(node),
                    Event::Start { flow } => self.start(flow),
                }
            }
        }
        self.now = self.now.max(until);
    }

    /// The clock.
    pub const fn now(&self) -> SimTime {
        self.now
    }

    /// Packets that have reached the end of a link so far.
    pub const fn hops(&self) -> u64 {
        self.hops
    }

    /// Events that were scheduled so far.
    pub const fn events(&self) -> u64 {
        self.events.pushed() + self.heads.scheduled()
    }

    /// Packets that are under way or wait.
    pub fn under_way(&self) -> usize {
        self.arena.len()
    }

    /// What a link has counted.
    pub fn link(&self, link: LinkId) -> LinkCounters {
        self.links[link.0 as usize].counters
    }

    /// Packets that a link holds.
    pub fn held(&self, link: LinkId) -> u64 {
        self.links[link.0 as usize].held()
    }

    /// What has become of a flow so far.
    pub fn flow(&self, flow: FlowId) -> FlowReport {
        let flow = &self.flows[flow.0 as usize];
        FlowReport {
            read: Bytes::new(flow.read),
            last_read: flow.last_read,
            sender: flow.ends[0].machine.counters(),
            receiver: flow.ends[1].machine.counters(),
            ended: flow.ended,
        }
    }

    /// The sending end of a flow.
    pub fn sender(&self, flow: FlowId) -> &Endpoint {
        &self.flows[flow.0 as usize].ends[0].machine
    }

    fn route(&self, at: NodeId, destination: NodeId) -> Option<u32> {
        let link = *self.nodes[at.0 as usize].routes.get(destination.0 as usize)?;
        (link != NOWHERE).then_some(link)
    }

    fn start(&mut self, flow: u32) {
        let now = self.now;
        let ends = &mut self.flows[flow as usize].ends;
        ends[1].machine.listen(now).expect("an end begins closed");
        ends[0].machine.connect(now).expect("an end begins closed");
        self.drain(flow, SENDER);
    }

    fn push(&mut self, time: SimTime, event: Event) {
        self.events.push(time, event.encode());
        self.next_event = self.next_event.min(time);
    }

    /// The first packet of all arrives.
    fn arrive(&mut self) {
        let Some(link) = self.heads.next_link() else { return };
        let Some((number, next)) = self.links[link as usize].arrive() else { return };
        self.heads.advance(next);
        let node = self.ends[link as usize];
        let packet = self.arena.get(number);
        let octets = packet.octets;
        let host = self.flows[packet.flow as usize].ends[usize::from(packet.end)].host;
        let counters = &mut self.links[link as usize].counters;
        counters.delivered += 1;
        counters.delivered_octets += u64::from(octets);
        self.hops += 1;
        if host.0 != node {
            match self.route(NodeId(node), host) {
                Some(out) => self.offer(self.now, out, number, octets),
                None => {
                    self.lost += 1;
                    self.arena.remove(number);
                }
            }
            return;
        }
        let processor = &mut self.nodes[node as usize].processor;
        if processor.costs.is_some() && (processor.free_at > self.now || !processor.waiting.is_empty()) {
            let first = processor.waiting.is_empty();
            processor.waiting.push_back(number);
            if first {
                let free_at = processor.free_at;
                self.push(free_at, Event::Take { node });
            }
            return;
        }
        self.deliver(number);
    }

    fn take(&mut self, node: u32) {
        let processor = &mut self.nodes[node as usize].processor;
        if processor.free_at > self.now {
            let free_at = processor.free_at;
            self.push(free_at, Event::Take { node });
            return;
        }
        let Some(number) = processor.waiting.pop_front() else { return };
        self.deliver(number);
        let processor = &self.nodes[node as usize].processor;
        if !processor.waiting.is_empty() {
            let done = processor.done(self.now);
            self.push(done, Event::Take { node });
        }
    }

    fn deliver(&mut self, number: u32) {
        let packet = self.arena.get(number);
        let (flow, end) = (packet.flow, packet.end);
        self.flows[flow as usize].ends[usize::from(end)].machine.handle_segment(self.now, &packet.segment);
        self.arena.remove(number);
        self.drain(flow, end);
    }

    fn timer(&mut self, flow: u32, end: u8) {
        let side = &mut self.flows[flow as usize].ends[usize::from(end)];
        if side.scheduled == self.now {
            side.scheduled = SimTime::MAX;
        }
        if side.deadline <= self.now {
            side.machine.handle_timeout(self.now);
            self.drain(flow, end);
        } else {
            self.schedule(flow, end);
        }
    }

    fn schedule(&mut self, flow: u32, end: u8) {
        let side = &mut self.flows[flow as usize].ends[usize::from(end)];
        // An event that comes too early finds that out by itself and looks again.
        if side.deadline < side.scheduled {
            side.scheduled = side.deadline;
            let deadline = side.deadline;
            self.push(deadline, Event::Timer { flow, end });
        }
    }

    /// Takes the outputs of an end and lets its user go on.
    fn drain(&mut self, flow: u32, end: u8) {
        let now = self.now;
        loop {
            let side = &mut self.flows[flow as usize].ends[usize::from(end)];
            match side.machine.poll_output() {
                Output::Work(work) => {
                    self.nodes[side.host.0 as usize].processor.pay(now, work);
                }
                Output::Transmit(segment) => {
                    let link = side.link;
                    let at = self.nodes[side.host.0 as usize].processor.done(now);
                    self.transmit(at, link, flow, end, segment);
                }
                Output::Deliver(_) => {
                    if let Read::Octets(octets) = side.machine.receive(now, Bytes::new(u64::MAX)) {
                        let flow = &mut self.flows[flow as usize];
                        flow.read += octets.get();
                        flow.last_read = now;
                    }
                }
                Output::Event(event) => self.told(flow, end, event),
                Output::Timeout(deadline) => {
                    side.deadline = deadline.unwrap_or(SimTime::MAX);
                    self.schedule(flow, end);
                    return;
                }
            }
        }
    }

    fn told(&mut self, flow: u32, end: u8, event: TcpEvent) {
        let now = self.now;
        let flow = &mut self.flows[flow as usize];
        let machine = &mut flow.ends[usize::from(end)].machine;
        match event {
            TcpEvent::Established | TcpEvent::Writable if end == SENDER => {
                if let Ok(taken) = machine.send(now, Bytes::new(flow.to_write)) {
                    flow.to_write -= taken.get();
                }
                if flow.to_write == 0 && flow.closes {
                    flow.closes = machine.close(now).is_err();
                }
            }
            TcpEvent::EndOfStream if end == RECEIVER => {
                // It has closed already where the connection is over.
                let _ = machine.close(now);
            }
            TcpEvent::Closed(reason) if end == SENDER => flow.ended = Some(reason),
            _ => {}
        }
    }

    fn transmit(&mut self, at: SimTime, link: u32, flow: u32, end: u8, segment: Segment) {
        let octets = segment.octets() + IP_OCTETS;
        let number = self.arena.insert(Packet { segment, flow, end: 1 - end, octets });
        self.offer(at, link, number, octets);
    }

    fn offer(&mut self, at: SimTime, link: u32, number: u32, octets: u32) {
        match self.links[link as usize].offer(at, number, octets) {
            Offer::Dropped => self.arena.remove(number),
            Offer::Queued => {}
            Offer::First(arrival) => {
                self.heads.push(arrival, link);
            }
        }
    }

    /// Packets that came where there was no route on.
    pub const fn lost_without_route(&self) -> u64 {
        self.lost
    }
}

/// An IP header without options.
const IP_OCTETS: u32 = 20;
