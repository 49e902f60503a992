//! A node in its slots: what has come in, whose turn it is, what goes out.

use std::collections::VecDeque;

use wiretwin_engine::Stream;
use wiretwin_units::{SimTime, Span};

use super::cross::Matcher;
use super::plan::{CircuitId, Discard};
use super::report::Delivery;
use super::state::{Cell, End, Flight, Hop, NONE, NoteFlight, Store};
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
    Shared { in_order: Option<Vec<VecDeque<u32>>>, outputs: u64, buffer: u32 },
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
    pub owing: Vec<VecDeque<u32>>,
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
    /// What is refused where a queue is full.
    pub discard: Discard,
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
            owing: vec![VecDeque::new(); ports],
            owing_ports: 0,
            markers: vec![VecDeque::new(); ports],
            marker_ports: 0,
            slow: 0,
            slot: Span::ZERO,
            free_from: vec![SimTime::ZERO; ports],
            held: 0,
            longest: 0,
            discard: Discard::Tail,
        }
    }

    /// Does all that a slot brings; whether the next has something to do as well.
    #[inline]
    pub(super) fn run(&mut self, slot: u64, now: SimTime, store: &mut Store) -> bool {
        let ports = self.inward.len();
        // Where cells compete for one buffer the ports come first in turns.
        let from = if matches!(self.kind, Kind::Shared { .. }) { (slot % ports as u64) as usize } else { 0 };
        for port in from..ports {
            self.arrivals(port, slot, now, store);
        }
        for port in 0..from {
            self.arrivals(port, slot, now, store);
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
        let direction = self.inward[port] as usize;
        while let Some(&NoteFlight { slot: at, branch, note }) = store.directions[direction].notes.front() {
            if at > slot {
                break;
            }
            store.directions[direction].notes.pop_front();
            self.credit(port, branch, note, store);
        }
        while let Some(&Flight { slot: at, hop, cell }) = store.directions[direction].flying.front() {
            if at > slot {
                break;
            }
            store.directions[direction].flying.pop_front();
            if cell == NONE {
                let sent =
                    store.directions[direction].more.marks.pop_front().expect("a marker has its count");
                self.counted(hop, sent, store);
                continue;
            }
            store.hops_made += 1;
            self.receive(hop, cell, now, store);
        }
    }

    /// A cell has come.
    #[inline]
    fn receive(&mut self, number: u32, cell: u32, now: SimTime, store: &mut Store) {
        let hop = &mut store.hops[number as usize];
        debug_assert_eq!(hop.node, self.number, "a cell goes where its circuit does");
        hop.arrived += 1;
        if hop.branches == 0 {
            let end = &mut store.ends[hop.end as usize];
            if end.may_take() {
                self.take(number, cell, now, store);
            } else {
                end.kept.push_back(cell);
                hop.held += 1;
                hop.longest = hop.longest.max(hop.held);
                self.held += 1;
            }
            return;
        }
        let last = store.cells.get(cell).last;
        if !admits(hop, self.held, &self.kind, self.discard, last) {
            store.refused[number as usize] += 1;
            store.cells.remove(cell);
            return;
        }
        self.enqueue(number, cell, store);
    }

    #[inline]
    fn enqueue(&mut self, number: u32, cell: u32, store: &mut Store) {
        let hop = &mut store.hops[number as usize];
        let kept = store.cells.get_mut(cell);
        (kept.next, kept.copies) = (NONE, hop.branches);
        if hop.held == 0 {
            hop.head = cell;
        } else {
            store.cells.get_mut(hop.tail).next = cell;
        }
        hop.tail = cell;
        hop.held += 1;
        hop.longest = hop.longest.max(hop.held);
        self.held += 1;
        self.longest = self.longest.max(self.held);
        let (first, branches) = (hop.first, u32::from(hop.branches));
        for number in first..first + branches {
            let branch = &mut store.branches[number as usize];
            branch.waiting += 1;
            if branch.cursor == NONE {
                branch.cursor = cell;
            }
            if let Kind::Shared { in_order: Some(order), outputs, .. } = &mut self.kind {
                order[usize::from(branch.port)].push_back(number);
                *outputs |= 1 << branch.port;
            } else if !branch.queued {
                self.stand(number, store);
            }
        }
    }

    /// A branch that has cells and may send them takes its place in its ring.
    #[inline]
    pub(super) fn stand(&mut self, number: u32, store: &mut Store) {
        let branch = &store.branches[number as usize];
        let (port, input) = (branch.port, branch.input);
        let direction = self.outward[usize::from(port)];
        if !store.may_send(branch, direction) {
            if !branch.blocked && store.directions[direction as usize].shared > 0 {
                store.branches[number as usize].blocked = true;
                store.directions[direction as usize].more.blocked.push_back(number);
            }
            return;
        }
        let place = match &mut self.kind {
            Kind::Crossbar { requests, matcher, .. } => {
                requests.set(u32::from(input), u32::from(port), true);
                if let Matcher::ByCircuit(fair) = matcher {
                    let branch = &mut store.branches[number as usize];
                    branch.turns = branch.turns.max(fair.turns[usize::from(port)]);
                }
                usize::from(input) * self.outward.len() + usize::from(port)
            }
            Kind::Shared { outputs, .. } => {
                *outputs |= 1 << port;
                usize::from(port)
            }
            Kind::Station { .. } => 0,
        };
        let ring = &mut self.rings[place];
        let branch = &mut store.branches[number as usize];
        (branch.queued, branch.next) = (true, NONE);
        if ring.head == NONE {
            ring.head = number;
        } else {
            store.branches[ring.tail as usize].next = number;
        }
        ring.tail = number;
    }

    /// Takes the first branch of a ring that may send; the others of the ring go on waiting.
    #[inline]
    pub(super) fn turn(&mut self, place: usize, direction: u32, store: &mut Store) -> Option<u32> {
        loop {
            let ring = &mut self.rings[place];
            let number = ring.head;
            if number == NONE {
                return None;
            }
            let branch = &mut store.branches[number as usize];
            ring.head = branch.next;
            branch.queued = false;
            let branch = &store.branches[number as usize];
            if branch.waiting > 0 && store.may_send(branch, direction) {
                return Some(number);
            }
            // What it counted on was shared, and another has it by now.
            if branch.waiting > 0 {
                self.stand(number, store);
            }
        }
    }

    /// An output-queued switch's slot.
    #[inline]
    fn serve(&mut self, busy: u64, slot: u64, now: SimTime, store: &mut Store) {
        let Kind::Shared { outputs, .. } = &self.kind else { return };
        for port in ones(outputs & !busy) {
            let Kind::Shared { in_order, .. } = &mut self.kind else { return };
            let direction = self.outward[port];
            let (found, left) = if let Some(order) = in_order {
                // Behind the first that may not send nobody does: that is what one queue is.
                let first = order[port].front().copied();
                let ready =
                    first.filter(|&number| store.may_send(&store.branches[number as usize], direction));
                if ready.is_some() {
                    order[port].pop_front();
                }
                (ready, Some(!order[port].is_empty()))
            } else {
                (self.turn(port, direction, store), None)
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
            && let Some(branch) = self.turn(0, self.outward[0], store)
        {
            self.send(branch, 0, slot, now, store);
        }
    }

    /// Sends the next cell of a branch.
    #[inline]
    pub(super) fn send(&mut self, number: u32, port: usize, slot: u64, now: SimTime, store: &mut Store) {
        let direction = self.outward[port];
        let branch = &mut store.branches[number as usize];
        let next_hop = branch.next_hop;
        branch.sent += 1;
        if branch.window != NONE {
            if branch.outstanding >= branch.window {
                store.directions[direction as usize].pool -= 1;
            }
            branch.outstanding += 1;
        }
        let hop = &mut store.hops[branch.hop as usize];
        let moved = if matches!(self.kind, Kind::Station { .. }) {
            let end = &mut store.ends[hop.end as usize];
            let (tag, last) = end.cut();
            if !end.endless {
                branch.waiting -= 1;
            }
            store.cells.add(Cell { born: now, tag, next: NONE, copies: 0, last })
        } else {
            let cell = branch.cursor;
            branch.cursor = store.cells.get(cell).next;
            branch.waiting -= 1;
            let kept = store.cells.get_mut(cell);
            kept.copies -= 1;
            if kept.copies > 0 {
                let copy = *kept;
                store.cells.add(copy)
            } else {
                // Branches take cells in one order: the last to take one takes the first of all.
                debug_assert_eq!(hop.head, cell, "the first cell is the first that all have sent");
                hop.head = kept.next;
                hop.held -= 1;
                self.held -= 1;
                let owes = hop.feeder != NONE;
                if owes {
                    let (input, hop) = (usize::from(hop.port), branch.hop);
                    self.owe(hop, input, store);
                }
                cell
            }
        };
        let branch = &store.branches[number as usize];
        if branch.waiting > 0 && !matches!(self.kind, Kind::Shared { in_order: Some(_), .. }) {
            self.stand(number, store);
        }
        self.put(direction, port, Flight { slot: 0, hop: next_hop, cell: moved }, slot, now, store);
    }

    /// Puts a cell or a marker on a line.
    #[inline]
    pub(super) fn put(
        &mut self,
        direction: u32,
        port: usize,
        flight: Flight,
        slot: u64,
        now: SimTime,
        store: &mut Store,
    ) {
        let arrives = store.fly(direction, slot, now, true);
        if self.slow >> port & 1 == 1 {
            self.free_from[port] = store.directions[direction as usize].more.transmitter.free_at();
        }
        let line = &mut store.directions[direction as usize];
        let is_cell = flight.cell != NONE;
        line.counters.cells += u64::from(is_cell);
        if line.faulty
            && let Some(faults) = &mut line.more.faults
        {
            let likelihood = if is_cell { faults.cells } else { faults.credits };
            if faults.stream.happens(likelihood) {
                if is_cell {
                    line.counters.lost += 1;
                    store.cells.remove(flight.cell);
                } else {
                    line.counters.credits_lost += 1;
                    line.more.marks.pop_back();
                }
                return;
            }
        }
        line.flying.push_back(Flight { slot: arrives, ..flight });
        store.domains[line.to_domain as usize].wake(line.to_local, arrives);
    }

    /// A cell has come to where its circuit ends.
    fn take(&mut self, number: u32, cell: u32, now: SimTime, store: &mut Store) {
        let Cell { born, tag, last, .. } = *store.cells.get(cell);
        store.cells.remove(cell);
        let hop = &store.hops[number as usize];
        let (circuit, end_number) = (hop.circuit, hop.end);
        let end = &mut store.ends[end_number as usize];
        let time = now + store.directions[self.outward[0] as usize].more.latency;
        let latency = (time - born).as_ps();
        end.received += 1;
        end.latency_ps = end.latency_ps.saturating_add(latency);
        end.longest_ps = end.longest_ps.max(latency);
        if end.cells == 0 {
            (end.tag, end.mixed) = (tag, false);
            if end.buffers != NONE {
                end.buffers -= 1;
            }
        }
        end.cells += 1;
        end.mixed |= tag != end.tag;
        if last {
            end.pdus_in += 1;
            if end.told {
                let (tag, cells, mixed, ordinal) = (end.tag, end.cells, end.mixed, end.ordinal);
                let circuit = CircuitId(circuit);
                store.delivered.push(Delivery { time, circuit, end: ordinal, tag, cells, mixed });
            }
            end.cells = 0;
        }
        if hop.feeder != NONE {
            self.owe(number, 0, store);
        }
    }

    /// The host has another buffer for what a circuit brings: cells that waited for it are taken.
    pub(super) fn give(&mut self, number: u32, now: SimTime, store: &mut Store) {
        let end = store.hops[number as usize].end as usize;
        store.ends[end].buffers += 1;
        while store.ends[end].may_take()
            && let Some(cell) = store.ends[end].kept.pop_front()
        {
            store.hops[number as usize].held -= 1;
            self.held -= 1;
            self.take(number, cell, now, store);
        }
    }

    /// A PDU of so many cells waits in host memory.
    pub(super) fn offer(&mut self, hop: u32, cells: u32, tag: Option<u32>, store: &mut Store) {
        let Hop { branches, first, end, .. } = store.hops[hop as usize];
        debug_assert_eq!(branches, 1, "a circuit leaves a station by its one line");
        let end = &mut store.ends[end as usize];
        let tag = tag.unwrap_or_else(|| {
            end.next_tag = end.next_tag.wrapping_add(1);
            end.next_tag
        });
        end.pdus.push_back((tag, cells));
        self.add(first, cells, store);
    }

    /// So many cells more wait in host memory, those beyond the PDUs that are known each a PDU of its own.
    #[inline]
    pub(super) fn add(&mut self, number: u32, cells: u32, store: &mut Store) {
        let branch = &mut store.branches[number as usize];
        branch.waiting = branch.waiting.saturating_add(cells);
        if !branch.queued {
            self.stand(number, store);
        }
    }
}

impl End {
    pub(super) fn new(ordinal: u32) -> Self {
        Self {
            pdus: VecDeque::new(),
            endless: false,
            ordinal,
            next_tag: 0,
            told: false,
            buffers: NONE,
            kept: VecDeque::new(),
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

    /// The next cell to send: its tag, and whether it is the last of its PDU.
    #[inline]
    fn cut(&mut self) -> (u32, bool) {
        let Some((tag, left)) = self.pdus.front_mut() else {
            self.next_tag = self.next_tag.wrapping_add(1);
            return (self.next_tag, true);
        };
        *left -= 1;
        let cut = (*tag, *left == 0);
        if cut.1 {
            self.pdus.pop_front();
        }
        cut
    }
}

/// Whether a cell finds room, by the rules of its queue.
#[inline]
fn admits(hop: &mut Hop, held: u32, kind: &Kind, discard: Discard, last: bool) -> bool {
    let buffer = match kind {
        Kind::Shared { buffer, .. } => *buffer,
        _ => u32::MAX,
    };
    let room = hop.held < hop.limit && held < buffer;
    if hop.plain {
        return room;
    }
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
