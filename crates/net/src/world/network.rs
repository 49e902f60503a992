//! The network between the nodes of a world: messages as flows over lines that they share.
//!
//! A message enters the network when its sender has made its first packet, and leaves its first line no sooner
//! than the sender has made its last. Messages of one sender to one receiver follow each other, as on one
//! connection; those of different pairs share media max-min fairly ([`crate::flow`]). What it takes the last packet
//! besides the slowest line (other lines, switches) comes on top; it waits on each line for the packet before it.
//!
//! Where the network is followed packet by packet or cell by cell, connections carry messages in place of flows
//! (`carrier`).
//!
//! Ends and network work on a long message at the same time, packet by packet, so its time is that of the slowest
//! of them, and of a message of one packet their sum.

use std::sync::Arc;

use wiretwin_msg::table::Table;
use wiretwin_plan::{Forwarding, MediumId, NodeId, NodeKind, Packets, Router};
use wiretwin_units::{BitRate, Bytes, SimTime, Span};

use super::World;
use super::carrier::Carrier;
use super::state::{NONE, Pair};
use super::transfer::{Crossing, is_envelope_only};
use crate::flow::{FlowId, Flows};
use crate::model::{NetworkModel, Reach};
use crate::queue::Event;

/// The way from one rank to another, and who is on it.
#[derive(Clone, Debug)]
struct Route {
    /// The media on the way, each once: a range of [`Network::media`].
    first: u32,
    end: u32,
    /// The least rate among them.
    rate: BitRate,
    /// Of one bit, from end to end: lines and switches.
    delay: Span,
    /// The lines on which a packet is sent in whole, the first one and those behind a switch that stores it: a range
    /// of [`Network::sent_on`].
    first_line: u32,
    end_line: u32,
    /// The last packet that was asked for, its length and whether others are before it, and what it took besides the
    /// slowest line.
    known: Option<(Bytes, bool, Span)>,
    /// What a full packet takes to cross it alone.
    one_packet: Span,
    /// The message of these ranks that is on its way, and those that wait for it to have left.
    under_way: u32,
    next: u32,
    last: u32,
}

/// What the network knows of a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way {
    /// When it entered, in picoseconds.
    pub(super) entered: u64,
    route: u32,
    /// The message that enters by the same route after it.
    next: u32,
}

/// The network of a world.
#[derive(Clone)]
pub(super) struct Network {
    packets: Packets,
    router: Router,
    hosts: Vec<NodeId>,
    flows: Flows,
    /// By sending and receiving rank.
    pairs: Table<Pair, u32>,
    routes: Vec<Route>,
    /// By message.
    ways: Vec<Way>,
    media: Vec<u32>,
    sent_on: Vec<BitRate>,
    /// An [`Event::Share`] is to come at this instant.
    is_sharing: bool,
    /// Carries messages in place of flows.
    pub(super) carrier: Option<Box<Carrier>>,
}

impl Network {
    /// `pushed` is the longest message that a transport with offers sends without one.
    pub(super) fn new(model: &NetworkModel, pushed: Option<Bytes>, seed: u64) -> Self {
        let graph = &model.graph;
        let carrier = model.below.as_ref().map(|below| Box::new(Carrier::new(graph, below, pushed, seed)));
        Self {
            packets: model.packets,
            hosts: graph.hosts().to_vec(),
            flows: Flows::new(graph.media().iter().map(|medium| medium.rate)),
            carrier,
            router: Router::new(Arc::clone(graph)),
            pairs: Table::new(),
            routes: Vec::new(),
            ways: Vec::new(),
            media: Vec::new(),
            sent_on: Vec::new(),
            is_sharing: false,
        }
    }

    /// The route between two ranks on these nodes, found when it is first asked for.
    fn route(&mut self, ranks: Pair, nodes: Pair) -> u32 {
        if let Some(route) = self.pairs.get(&ranks) {
            return route;
        }
        let number = self.routes.len() as u32;
        self.pairs.entry(ranks, || number);
        let (from, to) = (self.hosts[nodes.source as usize], self.hosts[nodes.destination as usize]);
        let mut path = Vec::new();
        let is_reached = self.router.path(from, to, &mut path);
        assert!(is_reached, "a checked network joins all its hosts");
        let graph = self.router.graph();
        let (first, first_line) = (self.media.len() as u32, self.sent_on.len() as u32);
        let mut delay = Span::ZERO;
        let mut rate = BitRate::bit_s(u64::MAX);
        for (place, line) in path.iter().enumerate() {
            let line = graph.lines()[line.0 as usize];
            let MediumId(medium) = line.medium;
            if !self.media[first as usize..].contains(&medium) {
                self.media.push(medium);
            }
            delay = delay.saturating_add(line.delay);
            let of_line = graph.media()[medium as usize].rate;
            rate = rate.min(of_line);
            let is_switched = place > 0 && graph.nodes()[line.from.0 as usize].kind == NodeKind::Switch;
            if is_switched {
                delay = delay.saturating_add(self.packets.switch_delay);
            }
            if place == 0 || is_switched && self.packets.forwarding == Forwarding::StoreAndForward {
                self.sent_on.push(of_line);
            }
        }
        if self.carrier.is_none() {
            // A route has one message on its way at a time.
            self.flows.admit(&self.media[first as usize..]);
        }
        self.routes.push(Route {
            first,
            end: self.media.len() as u32,
            rate,
            delay,
            first_line,
            end_line: self.sent_on.len() as u32,
            known: None,
            one_packet: Span::ZERO,
            under_way: NONE,
            next: NONE,
            last: NONE,
        });
        let payload = self.packets.payload;
        let one_packet = self.on_slowest(number, payload).saturating_add(self.rest(number, payload));
        self.routes[number as usize].one_packet = one_packet;
        number
    }

    /// The longest message of one packet, bytes.
    pub(super) fn payload(&self) -> u64 {
        self.packets.payload.get()
    }

    /// What is known of a message that has entered, or is about to.
    pub(super) fn way(&mut self, message: u32) -> &mut Way {
        if self.ways.len() <= message as usize {
            self.ways.resize(message as usize + 1, Way { entered: 0, route: 0, next: NONE });
        }
        &mut self.ways[message as usize]
    }

    /// What the packets of a message take on the slowest line of a route.
    fn on_slowest(&self, route: u32, bytes: Bytes) -> Span {
        let load = self.packets.on_line(bytes).bits();
        self.routes[route as usize].rate.time_for(load).unwrap_or(Span::MAX)
    }

    /// What a message takes besides what all its packets do on the slowest line, where nothing else is on its way.
    ///
    /// A packet is sent on when it has come whole and the one before it has been sent. So the last one is there after the
    /// longest of the times that it takes if it follows right behind the others on one line, the slowest or a later
    /// one: until there full packets are sent on, from there on it alone.
    fn rest(&mut self, route: u32, bytes: Bytes) -> Span {
        let Route { first_line, end_line, rate, delay, known, .. } = self.routes[route as usize];
        let (last, follows) = (self.packets.last_on_line(bytes), bytes.get() > self.packets.payload.get());
        if let Some((_, _, rest)) = known.filter(|(length, among, _)| (*length, *among) == (last, follows)) {
            return rest;
        }
        let lines = &self.sent_on[first_line as usize..end_line as usize];
        let on = |line: &BitRate, packet: Bytes| line.time_for(packet.bits()).unwrap_or(Span::MAX);
        let sum = |lines: &[BitRate], packet: Bytes| {
            lines.iter().fold(Span::ZERO, |sum, line| sum.saturating_add(on(line, packet)))
        };
        // Of lines that do not store packets, a slower one may come later.
        let slowest = lines.iter().position(|line| *line == rate).unwrap_or(0);
        let alone = sum(&lines[slowest + 1..], last);
        let longest = if follows {
            let full = self.packets.full_on_line();
            let before = sum(&lines[..slowest], full);
            let met_on = |line: usize| {
                let until = sum(&lines[slowest + 1..=line], full).saturating_add(sum(&lines[line..], last));
                until.saturating_sub(on(&rate, last))
            };
            let behind = (slowest + 1..lines.len()).map(met_on).max().unwrap_or(Span::ZERO);
            before.saturating_add(alone.max(behind))
        } else {
            alone.saturating_add(sum(&lines[..slowest], last))
        };
        let rest = delay.saturating_add(longest);
        self.routes[route as usize].known = Some((last, follows, rest));
        rest
    }
}

impl World {
    /// When a message enters the network whose sender worked on it from `began` to `at`: as soon as its first
    /// packet is made.
    pub(super) fn network_entry(&self, index: u32, began: u64, at: u64) -> u64 {
        let Some(network) = &self.network else { return at };
        let message = &self.messages[index as usize];
        let payload = network.packets.payload.get();
        if message.bytes <= payload {
            return at;
        }
        at.min(began + self.layer(message.reach).send_cost_ps(payload))
    }

    /// A message is ready to enter the network: it does, or waits for those of its pair before it.
    pub(super) fn network_enter(&mut self, index: u32) {
        let Some(network) = &mut self.network else { return };
        let message = &self.messages[index as usize];
        let place = |rank: u32| self.model.placement[rank as usize];
        let ranks = Pair { source: message.source, destination: message.destination };
        let nodes = Pair { source: place(ranks.source), destination: place(ranks.destination) };
        let number = network.route(ranks, nodes);
        *network.way(index) = Way { entered: 0, route: number, next: NONE };
        if network.carrier.is_some() {
            return self.network_send(index, nodes);
        }
        let route = &mut network.routes[number as usize];
        if route.under_way == NONE {
            self.network_start(index);
            return;
        }
        let before = std::mem::replace(&mut route.last, index);
        if before == NONE {
            route.next = index;
        } else {
            network.way(before).next = index;
        }
    }

    fn network_start(&mut self, index: u32) {
        let Some(network) = &mut self.network else { return };
        let message = &self.messages[index as usize];
        let bytes = if is_envelope_only(message) { 0 } else { message.bytes };
        let load = network.packets.on_line(Bytes::new(bytes)).bits();
        let way = network.way(index);
        way.entered = self.now;
        let number = way.route;
        let route = &mut network.routes[number as usize];
        route.under_way = index;
        // Its last bit does not leave before its sender has made it.
        let made_in = message.sent_at.saturating_sub(self.now);
        let ceiling = (made_in > 0)
            .then(|| u128::from(load.get()) * 1_000_000_000_000 / u128::from(made_in))
            .and_then(|rate| BitRate::new(u64::try_from(rate).unwrap_or(u64::MAX).max(1)).ok());
        let path = &network.media[route.first as usize..route.end as usize];
        network.flows.start(SimTime::from_ps(self.now), path, load, ceiling, index);
        self.network_changed();
        self.announce(index);
    }

    /// Flows have begun or ended: their shares are found when all changes of this instant are in.
    fn network_changed(&mut self) {
        let Some(network) = &mut self.network else { return };
        if network.flows.is_unsettled() && !std::mem::replace(&mut network.is_sharing, true) {
            self.queue.push(self.now, Event::Share);
        }
        while let Some((time, flow)) = network.flows.poll_timer() {
            self.queue.push(time.as_ps(), Event::Flow { flow: flow.0 });
        }
    }

    /// All changes of this instant are in.
    pub(super) fn network_share(&mut self) {
        if let Some(network) = &mut self.network {
            network.is_sharing = false;
            network.flows.settle(SimTime::from_ps(self.now));
        }
        self.network_changed();
    }

    /// A timer of a flow has run out: if its message has left its first line, it arrives after the rest of the way,
    /// and the next of its pair enters.
    pub(super) fn network_timer(&mut self, flow: u32) {
        let Some(network) = &mut self.network else { return };
        let Some(index) = network.flows.handle_timer(SimTime::from_ps(self.now), FlowId(flow)) else {
            self.network_changed();
            return;
        };
        let number = network.way(index).route;
        let route = &mut network.routes[number as usize];
        let next = std::mem::replace(&mut route.next, NONE);
        route.under_way = NONE;
        if next != NONE {
            let after = network.way(next).next;
            let route = &mut network.routes[number as usize];
            route.next = after;
            if route.next == NONE {
                route.last = NONE;
            }
            self.network_start(next);
        }
        self.network_changed();
        let (alone, rest) = self.network_alone(index);
        self.network_leave(index, self.now.saturating_add(rest), alone);
    }

    /// What a message takes to cross the network if it is alone, and how much of that besides the slowest line.
    pub(super) fn network_alone(&mut self, index: u32) -> (u64, u64) {
        let Some(network) = &mut self.network else { return (0, 0) };
        let message = &self.messages[index as usize];
        let bytes = Bytes::new(if is_envelope_only(message) { 0 } else { message.bytes });
        let route = network.way(index).route;
        let rest = network.rest(route, bytes);
        (network.on_slowest(route, bytes).saturating_add(rest).as_ps(), rest.as_ps())
    }

    /// What the FIN of a message takes to cross the network, if it is alone.
    pub(super) fn network_fin(&mut self, index: u32) -> u64 {
        let Some(network) = &mut self.network else { return 0 };
        if self.messages[index as usize].reach != Reach::Between {
            return 0;
        }
        let route = network.way(index).route;
        network.on_slowest(route, Bytes::ZERO).saturating_add(network.rest(route, Bytes::ZERO)).as_ps()
    }

    /// A message whose last bit is at its receiver at `end`, and would be there `alone` after it entered, were it
    /// alone: schedules its arrival.
    pub(super) fn network_leave(&mut self, index: u32, end: u64, alone: u64) {
        let Some(network) = &mut self.network else { return };
        let payload = network.packets.payload.get();
        let Way { entered, route, .. } = *network.way(index);
        let one_packet = network.routes[route as usize].one_packet.as_ps();
        let message = &self.messages[index as usize];
        let (bytes, at) = (message.bytes, message.sent_at);
        let contended = (end - entered).saturating_sub(alone.max(at.saturating_sub(entered)));
        let layer = self.layer(message.reach);
        if is_envelope_only(message) || bytes <= payload {
            self.messages[index as usize].earliest = end;
            let on_link = end.saturating_sub(contended).saturating_sub(at);
            self.fly(index, Crossing { at: end, on_link, ..Crossing::default() });
            return;
        }
        // Of the receiver's work all but that on the last packet is done while the rest is still under way.
        let last = signed(end)
            .saturating_add(layer.last_packet_flight_ps(bytes, payload))
            .saturating_add(signed(layer.recv_cost_ps(payload)))
            .saturating_sub(signed(layer.recv_cost_ps(bytes)));
        let first = signed(entered.saturating_add(one_packet)).saturating_add(layer.flight_ps(payload));
        let not_before = u64::try_from(last.max(first)).unwrap_or(0);
        self.fly(index, Crossing { at, on_link: 0, not_before, last_packet: end, contended });
    }
}

fn signed(ps: u64) -> i64 {
    i64::try_from(ps).unwrap_or(i64::MAX)
}
