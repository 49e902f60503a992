//! A node in its slots: what has come in, whose turn it is, what goes out.

use std::collections::VecDeque;

use wiretwin_engine::Stream;
use wiretwin_units::{SimTime, Span};

use super::cross::Matcher;
use super::lane::Lane;
use super::plan::{CircuitId, Discard};
use super::report::Delivery;
use super::state::{Branch, Cell, Direction, END, End, Flight, Hop, NONE, NoteFlight, Store};
use crate::cell_switch::crossbar::{Matching, Requests};

/// Branches that may send, in their turns.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ring {
    pub head: u32,
    pub tail: u32,
}

const EMPTY: Ring = Ring { head: NONE, tail: NONE };

#[derive(Clone, Debug)]
pub(super) enum Kind {
    /// A ring for each input and output.
    Crossbar { requests: Requests, matching: Matching, matcher: Matcher, iterations: u8, inside: u8 },
    /// A ring for each output, or the order in which cells came; outputs that have cells.
    Shared { in_order: Option<Vec<VecDeque<u32>>>, outputs: u64 },
    /// One ring.
    Station { slotted: Option<Box<Slotted>> },
}

/// A station that has a cell for one of its circuits, any, in each slot with some likelihood.
#[derive(Clone, Debug)]
pub(super) struct Slotted {
    pub stream: Stream,
    pub below: u64,
    pub branches: Vec<u32>,
}

#[derive(Clone, Debug)]
pub(super) struct Node {
    pub number: u32,
    pub domain: u32,
    /// Its number among those of its domain.
    pub local: u32,
    pub kind: Kind,
    pub rings: Vec<Ring>,
    /// By port, the direction that comes in and the one that goes out.
    pub inward: Vec<u32>,
    pub outward: Vec<u32>,
    /// By port, hops that owe credits; and the ports that have some.
    pub owing: Vec<Lane<u32>>,
    pub owing_ports: u64,
    /// By port, branches whose count is to be taken; and the ports that have some.
    pub markers: Vec<VecDeque<u32>>,
    pub marker_ports: u64,
    /// Ports whose lines are slower than the node, and from when on each is free.
    pub slow: u64,
    /// A slot, rounded up.
    pub slot: Span,
    pub free_from: Vec<SimTime>,
    /// Cells that wait here.
    pub held: u32,
    pub longest: u32,
    /// Cells that it has room for; [`NONE`] for any number. And what is rejected where a queue is full.
    pub buffer: u32,
    pub discard: Discard,
    /// From the queue to the line, or to host memory.
    pub latency: Span,
}

/// The places of the ones of a word, from the least.
#[inline]
pub(super) fn ones(mut word: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        (word != 0).then(|| {
            let place = word.trailing_zeros() as usize;
            word &= word - 1;
            place
        })
    })
}

impl Node {
    pub(super) fn new(number: u32, kind: Kind, ports: usize) -> Self {
        let rings = match &kind {
            Kind::Crossbar { .. } => ports * ports,
            Kind::Shared { .. } => ports,
            Kind::Station { .. } => 1,
        };
        Self {
            number,
            domain: 0,
            local: 0,
            kind,
            rings: vec![EMPTY; rings],
            inward: Vec::new(),
            outward: Vec::new(),
            owing: vec![Lane::new(); ports],
            owing_ports: 0,
            markers: vec![VecDeque::new(); ports],
            marker_ports: 0,
            slow: 0,
            slot: Span::ZERO,
            free_from: vec![SimTime::ZERO; ports],
            held: 0,
            longest: 0,
            buffer: NONE,
            discard: Discard::Tail,
            latency: Span::ZERO,
        }
    }

    /// The ring of branches from one port to another.
    pub(super) fn place(&self, input: u8, output: u8) -> u32 {
        match &self.kind {
            Kind::Crossbar { requests, .. } => u32::from(input) * requests.ports() as u32 + u32::from(output),
            Kind::Shared { .. } => output.into(),
            Kind::Station { .. } => 0,
        }
    }

    /// Does all that a slot brings; whether the next has something to do as well.
    #[inline]
    pub(super) fn run(&mut self, slot: u64, now: SimTime, store: &mut Store) -> bool {
        let ports = self.inward.len();
        // Where cells compete for one buffer the ports come first in turns.
        let first = if matches!(self.kind, Kind::Shared { .. }) { (slot % ports as u64) as usize } else { 0 };
        let mut port = first;
        for _ in 0..ports {
            self.arrivals(port, slot, now, store);
            port = if port + 1 == ports { 0 } else { port + 1 };
        }
        if let Kind::Station { slotted: Some(slotted) } = &mut self.kind {
            let number = slotted.stream.bits();
            if number >> 32 < slotted.below {
                let circuit = ((number & 0xFFFF_FFFF) * slotted.branches.len() as u64) >> 32;
                let branch = slotted.branches[circuit as usize];
                self.add(branch, 1, store);
            }
        }
        let busy = self.busy(now) | self.marker_ports;
        match &self.kind {
            Kind::Crossbar { .. } => self.cross(busy, slot, now, store),
            Kind::Shared { .. } => self.serve(busy, slot, now, store),
            Kind::Station { .. } => self.speak(busy, slot, now, store),
        }
        if self.owing_ports | self.marker_ports != 0 {
            self.control(slot, now, store);
        }
        self.goes_on()
    }

    fn goes_on(&self) -> bool {
        let asks = match &self.kind {
            Kind::Crossbar { requests, .. } => requests.any(),
            Kind::Shared { outputs, .. } => *outputs != 0,
            Kind::Station { slotted } => slotted.is_some() || self.rings[0].head != NONE,
        };
        asks || self.owing_ports | self.marker_ports != 0
    }

    /// Ports that go on sending beyond this slot what they have begun or been given. A slower line has room for
    /// a cell that follows the one it sends, so that it need not wait for a slot.
    #[inline]
    pub(super) fn busy(&self, now: SimTime) -> u64 {
        if self.slow == 0 {
            return 0;
        }
        let next = now + self.slot;
        ones(self.slow).filter(|&port| self.free_from[port] > next).fold(0, |busy, port| busy | 1 << port)
    }

    #[inline]
    fn arrivals(&mut self, port: usize, slot: u64, now: SimTime, store: &mut Store) {
        let inward = self.inward[port];
        let direction = inward as usize;
        while let Some(NoteFlight { branch, note, .. }) =
            store.directions[direction].notes.pop_front_if(|note| note.slot <= slot)
        {
            self.credit(inward ^ 1, branch, note, store);
        }
        while let Some(Flight { to, cell, .. }) =
            store.directions[direction].flying.pop_front_if(|flight| flight.slot <= slot)
        {
            if cell == NONE {
                let sent =
                    store.directions[direction].more.marks.pop_front().expect("a marker has its count");
                self.counted(to, sent, store);
                continue;
            }
            store.hops_made += 1;
            if to & END != 0 {
                self.take(to & !END, cell, now, store);
            } else {
                self.receive(to, cell, store);
            }
        }
    }

    /// A cell has come to the end of its circuit. Where there are no credits, nothing of its hop is looked at: that lies
    /// on another line of the cache.
    #[inline]
    fn take(&mut self, number: u32, cell: u32, now: SimTime, store: &mut Store) {
        let Store { hops, cells, ends, kept, delivered, .. } = store;
        let end = &mut ends[number as usize];
        if end.may_take() {
            end.take(cells.remove(cell), now + self.latency, delivered);
            if end.has_feeder {
                self.owe(end.hop, &mut hops[end.hop as usize]);
            }
            return;
        }
        kept[number as usize].push_back(cell);
        let hop = &mut hops[end.hop as usize];
        hop.held += 1;
        hop.longest = hop.longest.max(hop.held);
        self.held += 1;
    }

    /// A cell has come to where its circuit goes on.
    #[inline]
    fn receive(&mut self, number: u32, cell: u32, store: &mut Store) {
        let Store { hops, cells, .. } = store;
        let hop = &mut hops[number as usize];
        debug_assert_eq!(hop.node, self.number, "a cell goes where its circuit does");
        hop.arrived += 1;
        let room = hop.held < hop.limit && self.held < self.buffer;
        let admitted =
            if hop.plain { room } else { admits(hop, room, self.held, self.discard, cells.get(cell).last) };
        if !admitted {
            store.refused[number as usize] += 1;
            cells.remove(cell);
            return;
        }
        self.enqueue(number, cell, store);
    }

    #[inline]
    fn enqueue(&mut self, number: u32, cell: u32, store: &mut Store) {
        let Store { hops, cells, branches, links, directions, .. } = store;
        let hop = &mut hops[number as usize];
        cells.get_mut(cell).next = NONE;
        if hop.held == 0 {
            hop.head = cell;
        } else {
            cells.get_mut(hop.tail).next = cell;
        }
        hop.tail = cell;
        hop.held += 1;
        hop.longest = hop.longest.max(hop.held);
        self.held += 1;
        self.longest = self.longest.max(self.held);
        let number = hop.branch;
        let branch = &mut branches[number as usize];
        branch.waiting += 1;
        if let Kind::Shared { in_order: Some(order), outputs } = &mut self.kind {
            order[usize::from(branch.port)].push_back(number);
            *outputs |= 1 << branch.port;
        } else if !branch.queued {
            self.stand(number, branch, links, directions);
        }
    }

    /// A branch that has cells and may send them takes its place in its ring.
    #[inline]
    pub(super) fn stand(
        &mut self,
        number: u32,
        branch: &mut Branch,
        links: &mut [u32],
        directions: &mut [Direction],
    ) {
        if !branch.may_send(directions) {
            let line = &mut directions[branch.direction as usize];
            if !branch.blocked && line.shared > 0 {
                branch.blocked = true;
                line.more.blocked.push_back(number);
            }
            return;
        }
        branch.queued = true;
        if let Kind::Crossbar { matcher: Matcher::ByCircuit(fair), .. } = &self.kind {
            branch.turns = branch.turns.max(fair.turns[usize::from(branch.port)]);
        }
        let ring = &mut self.rings[branch.place as usize];
        links[number as usize] = NONE;
        let before = std::mem::replace(&mut ring.tail, number);
        if ring.head != NONE {
            links[before as usize] = number;
            return;
        }
        ring.head = number;
        match &mut self.kind {
            Kind::Crossbar { requests, .. } => {
                requests.set(branch.input.into(), branch.port.into(), true);
            }
            Kind::Shared { outputs, .. } => *outputs |= 1 << branch.port,
            Kind::Station { .. } => {}
        }
    }

    /// Takes the first branch of a ring that may send; the others of the ring go on waiting.
    #[inline]
    pub(super) fn turn(&mut self, place: usize, store: &mut Store) -> Option<u32> {
        let Store { branches, links, directions, .. } = store;
        loop {
            let ring = &mut self.rings[place];
            let number = ring.head;
            if number == NONE {
                return None;
            }
            ring.head = links[number as usize];
            let branch = &mut branches[number as usize];
            branch.queued = false;
            if branch.waiting > 0 {
                if branch.may_send(directions) {
                    return Some(number);
                }
                // What it counted on was shared, and another has it by now.
                self.stand(number, branch, links, directions);
            }
        }
    }

    /// An output-queued switch's slot.
    #[inline]
    fn serve(&mut self, busy: u64, slot: u64, now: SimTime, store: &mut Store) {
        let Kind::Shared { outputs, .. } = &self.kind else { return };
        for port in ones(outputs & !busy) {
            let Kind::Shared { in_order, .. } = &mut self.kind else { return };
            let (found, left) = if let Some(order) = in_order {
                // Behind the first that may not send nobody does: that is what one queue is.
                let first = order[port].front().copied();
                let ready =
                    first.filter(|&number| store.branches[number as usize].may_send(&store.directions));
                if ready.is_some() {
                    order[port].pop_front();
                }
                (ready, Some(!order[port].is_empty()))
            } else {
                (self.turn(port, store), None)
            };
            if let Some(branch) = found {
                self.send(branch, port, slot, now, store);
            }
            let left = left.unwrap_or(self.rings[port].head != NONE);
            if !left && let Kind::Shared { outputs, .. } = &mut self.kind {
                *outputs &= !(1 << port);
            }
        }
    }

    /// A station's slot.
    #[inline]
    fn speak(&mut self, busy: u64, slot: u64, now: SimTime, store: &mut Store) {
        if busy & 1 == 0
            && let Some(branch) = self.turn(0, store)
        {
            self.send(branch, 0, slot, now, store);
        }
    }

    /// Sends the next cell of a branch.
    #[inline]
    pub(super) fn send(&mut self, number: u32, port: usize, slot: u64, now: SimTime, store: &mut Store) {
        let Store { hops, cells, branches, links, directions, offered, .. } = store;
        let branch = &mut branches[number as usize];
        let direction = branch.direction;
        branch.sent += 1;
        if branch.window != NONE {
            if branch.outstanding >= branch.window {
                directions[direction as usize].pool -= 1;
            }
            branch.outstanding += 1;
        }
        let moved = if matches!(self.kind, Kind::Station { .. }) {
            let (tag, last) = if branch.has_offered {
                branch.cut(&mut offered[branch.beginning as usize])
            } else {
                (branch.next_tag(), true)
            };
            branch.waiting -= u32::from(!branch.endless);
            cells.add(Cell { born: now, tag, next: NONE, last })
        } else {
            branch.waiting -= 1;
            let hop = &mut hops[branch.hop as usize];
            let cell = hop.head;
            hop.head = cells.get(cell).next;
            hop.held -= 1;
            self.held -= 1;
            self.owe(branch.hop, hop);
            cell
        };
        let flight = Flight { slot: 0, to: branch.to, cell: moved };
        if branch.waiting > 0 && !matches!(self.kind, Kind::Shared { in_order: Some(_), .. }) {
            self.stand(number, branch, links, directions);
        }
        self.put(direction, port, flight, slot, now, store);
    }

    /// Puts a cell or a marker on a line.
    #[inline(always)] // a sixth of what a cell costs is spent on calls otherwise
    pub(super) fn put(
        &mut self,
        direction: u32,
        port: usize,
        flight: Flight,
        slot: u64,
        now: SimTime,
        store: &mut Store,
    ) {
        let Store { cells, directions, domains, .. } = store;
        let line = &mut directions[direction as usize];
        let arrives = line.fly(slot, now, true, domains);
        if self.slow >> port & 1 == 1 {
            self.free_from[port] = line.more.transmitter.free_at();
        }
        line.counters.cells += u64::from(flight.cell != NONE);
        if line.faulty && line.loses(flight, cells) {
            return;
        }
        line.flying.push_back(Flight { slot: arrives, ..flight });
        domains[line.to_domain as usize].wake(line.to_local, arrives);
    }

    /// The host has another buffer for what a circuit brings: cells that waited for it are taken.
    pub(super) fn give(&mut self, number: u32, now: SimTime, store: &mut Store) {
        let end = store.hops[number as usize].end as usize;
        store.ends[end].buffers += 1;
        while store.ends[end].may_take()
            && let Some(cell) = store.kept[end].pop_front()
        {
            let Store { hops, cells, ends, delivered, .. } = &mut *store;
            let hop = &mut hops[number as usize];
            hop.held -= 1;
            self.held -= 1;
            ends[end].take(cells.remove(cell), now + self.latency, delivered);
            self.owe(number, hop);
        }
    }

    /// A PDU of so many cells waits in host memory.
    pub(super) fn offer(&mut self, hop: u32, cells: u32, tag: Option<u32>, store: &mut Store) {
        let Hop { branch, end, .. } = store.hops[hop as usize];
        let number = branch;
        let branch = &mut store.branches[number as usize];
        let tag = tag.unwrap_or_else(|| branch.next_tag());
        branch.has_offered = true;
        store.offered[end as usize].push_back((tag, cells));
        self.add(number, cells, store);
    }

    /// So many cells more wait in host memory, those beyond the PDUs that are known each a PDU of its own.
    #[inline]
    pub(super) fn add(&mut self, number: u32, cells: u32, store: &mut Store) {
        let Store { branches, links, directions, .. } = store;
        let branch = &mut branches[number as usize];
        branch.waiting = branch.waiting.saturating_add(cells);
        if !branch.queued {
            self.stand(number, branch, links, directions);
        }
    }
}

impl End {
    pub(super) const fn new(hop: u32, circuit: u32) -> Self {
        Self {
            hop,
            circuit,
            has_feeder: false,
            told: false,
            buffers: NONE,
            cells: 0,
            tag: 0,
            mixed: false,
            received: 0,
            pdus_in: 0,
            latency_ps: 0,
            longest_ps: 0,
        }
    }

    /// Whether the next cell that comes has a buffer: that of its PDU, or a free one.
    #[inline]
    const fn may_take(&self) -> bool {
        self.cells > 0 || self.buffers > 0
    }

    /// A cell has come to where its circuit ends, and is in host memory at this time.
    #[inline]
    fn take(&mut self, cell: Cell, time: SimTime, delivered: &mut Vec<Delivery>) {
        let Cell { born, tag, last, .. } = cell;
        let latency = (time - born).as_ps();
        self.received += 1;
        self.latency_ps = self.latency_ps.saturating_add(latency);
        self.longest_ps = self.longest_ps.max(latency);
        if self.cells == 0 {
            (self.tag, self.mixed) = (tag, false);
            if self.buffers != NONE {
                self.buffers -= 1;
            }
        }
        self.cells += 1;
        self.mixed |= tag != self.tag;
        if last {
            self.pdus_in += 1;
            if self.told {
                let Self { tag, cells, mixed, .. } = *self;
                let circuit = CircuitId(self.circuit);
                delivered.push(Delivery { time, circuit, tag, cells, mixed });
            }
            self.cells = 0;
        }
    }
}

impl Branch {
    /// The tag of the next PDU that has none of its own.
    #[inline]
    const fn next_tag(&mut self) -> u32 {
        self.tag = self.tag.wrapping_add(1);
        self.tag
    }

    /// The next cell to send of those that were offered: its tag, and whether it is the last of its PDU.
    #[inline]
    fn cut(&mut self, offered: &mut VecDeque<(u32, u32)>) -> (u32, bool) {
        let Some((tag, left)) = offered.front_mut() else { return (self.next_tag(), true) };
        *left -= 1;
        let cut = (*tag, *left == 0);
        if cut.1 {
            offered.pop_front();
            self.has_offered = !offered.is_empty();
        }
        cut
    }
}

/// Whether a cell is let in, by the rules of its queue, given whether there is room for it.
fn admits(hop: &mut Hop, room: bool, held: u32, discard: Discard, last: bool) -> bool {
    let first = std::mem::replace(&mut hop.at_start, last);
    match discard {
        Discard::Early { threshold } if first && u64::from(held) > threshold.get() => {
            (hop.refusing, hop.wholly) = (!last, true);
            return false;
        }
        Discard::Early { .. } | Discard::Partial | Discard::Tail => {}
    }
    if hop.refusing && last {
        hop.refusing = false;
        return room && !hop.wholly;
    }
    if hop.refusing {
        return false;
    }
    if !room {
        (hop.refusing, hop.wholly) = (!last, false);
    }
    room
}
