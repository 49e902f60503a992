//! What lies where in a network that runs: cells, their queues, the lines they are on.

use std::collections::VecDeque;

use wiretwin_engine::{Probability, Stream};
use wiretwin_units::{BitRate, SimTime, Span, Transmitter};

use super::clock::Domain;
use super::lane::Lane;
use super::plan::Scheme;
use super::report::Delivery;

/// No number of anything.
pub(super) const NONE: u32 = u32::MAX;

/// Set in where a cell goes that goes to the end of its circuit: the other bits say to which of the ends.
pub(super) const END: u32 = 1 << 31;

/// A cell; its last field is the next of its queue, or of those that are free.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cell {
    /// When it left host memory.
    pub born: SimTime,
    /// Whose PDU it is a piece of.
    pub tag: u32,
    pub next: u32,
    /// Whether it is the last of its PDU.
    pub last: bool,
}

/// All cells under way; a number is given out again when its cell is gone.
#[derive(Clone, Debug)]
pub(super) struct Pool {
    cells: Vec<Cell>,
    free: u32,
    used: u32,
}

impl Pool {
    pub(super) const fn new() -> Self {
        Self { cells: Vec::new(), free: NONE, used: 0 }
    }

    #[inline]
    pub(super) fn add(&mut self, cell: Cell) -> u32 {
        self.used += 1;
        if self.free == NONE {
            self.cells.push(cell);
            return (self.cells.len() - 1) as u32;
        }
        let number = self.free;
        self.free = std::mem::replace(&mut self.cells[number as usize], cell).next;
        number
    }

    #[inline]
    pub(super) fn remove(&mut self, number: u32) -> Cell {
        let cell = &mut self.cells[number as usize];
        let removed = *cell;
        cell.next = self.free;
        self.free = number;
        self.used -= 1;
        removed
    }

    #[inline]
    pub(super) fn get(&self, number: u32) -> &Cell {
        &self.cells[number as usize]
    }

    #[inline]
    pub(super) fn get_mut(&mut self, number: u32) -> &mut Cell {
        &mut self.cells[number as usize]
    }

    pub(super) const fn used(&self) -> u32 {
        self.used
    }
}

/// A circuit at a node: its queue there. One line of a cache.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(super) struct Hop {
    pub node: u32,
    /// The port by which it comes; the direction of the line is the node's.
    pub port: u8,
    /// Its way on from here; [`NONE`] where it ends.
    pub branch: u32,
    pub head: u32,
    pub tail: u32,
    pub held: u32,
    /// Cells that may be held.
    pub limit: u32,
    /// The branch that feeds it, where credits go; [`NONE`] without.
    pub feeder: u32,
    /// Cells that have made room since the start, or since it was last counted.
    pub freed: u32,
    /// Cells that have made room and are not told of.
    pub owed: u32,
    pub owing: bool,
    /// What it says next is an answer to a marker.
    pub answers: bool,
    /// The next cell begins a PDU.
    pub at_start: bool,
    /// The rest of a PDU is rejected; whether its last cell is, too.
    pub refusing: bool,
    pub wholly: bool,
    /// The cell that finds no room is rejected and no other, whatever the rule of the node.
    pub plain: bool,
    /// Where it begins, or where it ends: which of those beginnings or ends.
    pub end: u32,
    pub longest: u32,
    /// Cells that have come; those of an end are counted there.
    pub arrived: u64,
}

/// A circuit's way on from a node. One line of a cache.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(super) struct Branch {
    pub hop: u32,
    /// The port by which cells come to its hop.
    pub input: u8,
    /// The port by which they leave, and the direction of the line behind it.
    pub port: u8,
    pub direction: u32,
    /// Its ring, of those of the node.
    pub place: u32,
    /// Whether it stands in its ring.
    pub queued: bool,
    /// Where it goes; and the same as cells on the line have it.
    pub next_hop: u32,
    pub to: u32,
    /// Where it begins at a station, which of [`Store::offered`] is its; whether that has some, and whether there is
    /// always another cell.
    pub beginning: u32,
    pub has_offered: bool,
    pub endless: bool,
    /// The tag of the last PDU that had none of its own.
    pub tag: u32,
    pub waiting: u32,
    /// Cells sent and not known to have made room, where there are credits.
    pub outstanding: u32,
    /// Cells of its own; [`NONE`] without credits.
    pub window: u32,
    /// Cells sent since the start.
    pub sent: u64,
    /// Turns it has had, for the fairest.
    pub turns: u64,
    /// It waits for a cell of those that its line's circuits share.
    pub blocked: bool,
}

/// What is on a line: a cell for a hop, or a marker.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flight {
    /// The slot of the receiver from which on it is there.
    pub slot: u64,
    /// The hop that it comes to, or [`END`] and which of the ends; of a marker always the hop.
    pub to: u32,
    /// [`NONE`] for a marker, whose count stands apart.
    pub cell: u32,
}

/// What a cell, or a cell without data, says of credits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Note {
    /// So many cells of this branch have made room.
    More(u32),
    /// So many in all.
    Total(u32),
    /// So many in all, in answer to a marker.
    Answer(u32),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct NoteFlight {
    pub slot: u64,
    pub branch: u32,
    pub note: Note,
}

/// What goes wrong on a line, and the random numbers for it.
#[derive(Clone, Debug)]
pub(super) struct Faulty {
    pub stream: Stream,
    pub cells: Probability,
    pub credits: Probability,
}

/// One direction of a line. What is on it fills the first line of a cache, which is looked at in each slot.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(super) struct Direction {
    pub flying: Lane<Flight>,
    pub notes: Lane<NoteFlight>,
    pub from: u32,
    pub to_domain: u32,
    pub to_local: u32,
    /// Slots from the beginning of a cell to when it is there, where both ends have one clock and the
    /// line their rate; for what has crossed a switch, and for credits, which have not. 0 elsewhere.
    pub crossed: u32,
    pub straight: u32,
    /// Cells that all its circuits share, and those of them that are free.
    pub shared: u32,
    pub pool: u32,
    pub scheme: Scheme,
    /// Whether anything goes wrong.
    pub faulty: bool,
    pub counters: LineCounters,
    pub more: Box<More>,
}

const _: () = assert!(size_of::<Branch>() == 64 && size_of::<Hop>() == 64 && size_of::<End>() == 64);

/// What is seldom needed of a direction.
#[derive(Clone, Debug)]
pub(super) struct More {
    pub rate: BitRate,
    pub transmitter: Transmitter,
    pub latency: Span,
    pub delay: Span,
    /// What the markers on the line say.
    pub marks: VecDeque<u32>,
    /// When the next cell without data may go, where the line is slower than its node.
    pub note_free: SimTime,
    /// Circuits that wait for a shared cell.
    pub blocked: VecDeque<u32>,
    pub faults: Option<Faulty>,
}

/// What one direction of a line has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineCounters {
    /// Data cells sent.
    pub cells: u64,
    /// Data cells lost on the way.
    pub lost: u64,
    /// What was said of credits.
    pub credits: u64,
    /// Of it, what was lost on the way.
    pub credits_lost: u64,
    /// Of it, what cannot be and was ignored.
    pub credits_refused: u64,
    /// Markers sent to take the count.
    pub markers: u64,
    /// Credits that came back by taking it, those included that would have been told of anyway.
    pub repaired: u64,
}

/// Everything but the nodes.
#[derive(Clone, Debug)]
pub(super) struct Store {
    pub domains: Vec<Domain>,
    pub cells: Pool,
    pub hops: Vec<Hop>,
    /// By hop, the cells that were rejected.
    pub refused: Vec<u64>,
    pub branches: Vec<Branch>,
    /// By branch, the next of its ring.
    pub links: Vec<u32>,
    pub directions: Vec<Direction>,
    /// By circuit's beginning, PDUs that wait in host memory, each with the cells it has left.
    pub offered: Vec<VecDeque<(u32, u32)>>,
    pub ends: Vec<End>,
    /// By end, cells that wait in the adapter for a buffer.
    pub kept: Vec<VecDeque<u32>>,
    pub delivered: Vec<Delivery>,
    /// Cells that have reached the end of a line.
    pub hops_made: u64,
}

/// A circuit's end at a station: what has come. One line of a cache.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(super) struct End {
    pub hop: u32,
    pub circuit: u32,
    /// Whether whoever feeds it does so by credits.
    pub has_feeder: bool,
    /// Whether PDUs that come are told of one by one.
    pub told: bool,
    /// Buffers for PDUs that come; [`NONE`] for any number.
    pub buffers: u32,
    /// Of the PDU that comes in: its cells, their tag, and whether there was another.
    pub cells: u32,
    pub tag: u32,
    pub mixed: bool,
    pub received: u64,
    pub pdus_in: u64,
    /// From host memory to here, all cells together.
    pub latency_ps: u64,
    pub longest_ps: u64,
}

impl Store {
    /// Cells that have come to a hop.
    pub(super) fn arrived(&self, hop: u32) -> u64 {
        let hop = &self.hops[hop as usize];
        if hop.branch != NONE {
            return hop.arrived;
        }
        self.ends[hop.end as usize].received + self.kept[hop.end as usize].len() as u64
    }
}

impl Direction {
    /// When a cell that begins now arrives.
    #[inline]
    pub(super) fn fly(&mut self, slot: u64, now: SimTime, data: bool, domains: &[Domain]) -> u64 {
        if self.crossed > 0 {
            return slot + u64::from(if data { self.crossed } else { self.straight });
        }
        self.fly_between(now, data, domains)
    }

    /// The same where clocks or rates differ.
    fn fly_between(&mut self, now: SimTime, data: bool, domains: &[Domain]) -> u64 {
        let bits = wiretwin_units::Cells::new(1).bits();
        let more = &mut self.more;
        let sent = if data {
            more.transmitter.send(now, bits).expect("a cell takes less than 213 days").end + more.latency
        } else {
            now + more.rate.time_for(bits).expect("a cell takes less than 213 days")
        };
        domains[self.to_domain as usize].slot_from(sent + more.delay)
    }

    /// Whether what is put on a line with faults is lost, and counted as such.
    pub(super) fn loses(&mut self, flight: Flight, cells: &mut Pool) -> bool {
        let Some(faults) = &mut self.more.faults else { return false };
        let is_cell = flight.cell != NONE;
        let lost = faults.stream.happens(if is_cell { faults.cells } else { faults.credits });
        if lost && is_cell {
            self.counters.lost += 1;
            cells.remove(flight.cell);
        } else if lost {
            self.counters.credits_lost += 1;
            self.more.marks.pop_back();
        }
        lost
    }

    /// Whether what is said of credits on a line with faults is lost, and counted as such.
    pub(super) fn loses_note(&mut self) -> bool {
        let Some(faults) = &mut self.more.faults else { return false };
        let lost = faults.stream.happens(faults.credits);
        self.counters.credits_lost += u64::from(lost);
        lost
    }
}

impl Branch {
    /// Whether it may send; a window without credits is beyond what is ever under way.
    #[inline]
    pub(super) fn may_send(&self, directions: &[Direction]) -> bool {
        self.outstanding < self.window || directions[self.direction as usize].pool > 0
    }
}
