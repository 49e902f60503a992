//! One output port: two priorities over one buffer, and a line.
//!
//! Vila-Sallent and Solé-Pareta (1998): cells of guaranteed service go before those of best effort (ABR and
//! UBR, in one queue); the buffer is shared by all; who comes when it is full is lost, but a cell that is not
//! UBR takes the place of a UBR cell in the queue. Choice: of the last one ([`PushOut::Last`]), as the paper
//! does not say which.

use serde::Deserialize;
use wiretwin_proto::abr::{Erica, EricaConfig};
use wiretwin_units::{BitRate, Cells, SimTime, Span, Transmitter};

use crate::port::{Backlog, PushOut, Room, Scheduler, Taken};

/// What explicit rates leave of the line for ABR.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reserve {
    /// What guaranteed traffic takes is not given away (as 96-1172 has it).
    Guaranteed,
    /// Nor what UBR takes.
    Everything,
}

/// A port.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PortPlan {
    /// Of its line, in cells of 424 bits.
    pub rate: BitRate,
    /// Cells that may wait, beside the one on the line; 1 or more.
    pub buffer: Cells,
    /// Whose place a cell may take.
    pub push_out: PushOut,
    /// A data cell that finds more than so many waiting bears the mark of congestion (EFCI).
    pub efci: Option<Cells>,
    /// A circuit of ABR whose cell finds more than so many waiting is told so by a backward cell (BECN), at most
    /// ten times a second.
    pub becn: Option<Cells>,
    /// Explicit rates for ABR.
    pub erica: Option<EricaConfig>,
    /// What they leave.
    pub reserve: Reserve,
    /// From the end of its transmission to the next place.
    pub delay: Span,
}

/// In which queue a cell waits, and whether another may take its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    Guaranteed,
    Abr,
    Ubr,
}

/// A cell in the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cell {
    pub circuit: u16,
    /// Which port of its path it is at.
    pub hop: u8,
    pub flags: u8,
    /// What is in it, by number; [`Cell::EMPTY`] for nothing of interest.
    pub content: u32,
}

impl Cell {
    pub(super) const EMPTY: u32 = u32::MAX;
    /// Met congestion.
    pub(super) const EFCI: u8 = 1;
    /// Resource management.
    pub(super) const RM: u8 = 2;
}

/// Guaranteed cells first; ABR and UBR in one queue, and UBR gives way.
const SCHEDULER: Scheduler = Scheduler::Priority(&[0, 1, 1]);

/// The port.
#[derive(Clone, Debug)]
pub(super) struct Port {
    pub plan: PortPlan,
    pub erica: Option<Erica>,
    line: Transmitter,
    sending: Option<Cell>,
    waiting: Backlog<Cell>,
    /// Cells that waited times the time they did, in ps.
    area: u128,
    changed: SimTime,
    pub sent: u64,
    /// Cells that bear the mark of congestion from here on.
    pub marked: u64,
}

impl Port {
    pub(super) fn new(plan: PortPlan, erica: Option<Erica>) -> Self {
        let buffer = u32::try_from(plan.buffer.get()).unwrap_or(u32::MAX);
        Self {
            plan,
            erica,
            line: Transmitter::new(plan.rate),
            sending: None,
            waiting: Backlog::new(SCHEDULER, Room::Shared(buffer, plan.push_out)),
            area: 0,
            changed: SimTime::ZERO,
            sent: 0,
            marked: 0,
        }
    }

    /// Cells that wait.
    #[inline]
    pub(super) const fn waiting(&self) -> u64 {
        self.waiting.len() as u64
    }

    /// The most that ever waited.
    pub(super) const fn longest(&self) -> u64 {
        self.waiting.longest() as u64
    }

    /// The mean number that waited up to now.
    pub(super) fn mean_waiting(&self, now: SimTime) -> f64 {
        (self.area + self.area_since(now)) as f64 / (now.as_ps() as f64).max(1.0)
    }

    fn area_since(&self, now: SimTime) -> u128 {
        u128::from(self.waiting()) * u128::from(now.saturating_since(self.changed).as_ps())
    }

    /// The number that waits is about to change.
    #[inline]
    fn change(&mut self, now: SimTime) {
        self.area += self.area_since(now);
        self.changed = now;
    }

    /// A cell comes: it is on the line at once, waits, or is lost, and so may another be for it.
    #[inline]
    pub(super) fn take(&mut self, now: SimTime, mut cell: Cell, class: Class) -> Taken<Cell> {
        if self.sending.is_none() {
            return Taken::Sent(self.send(now, cell));
        }
        let over = self.plan.efci.is_some_and(|limit| self.waiting() > limit.get());
        if cell.flags & Cell::RM == 0 && over {
            cell.flags |= Cell::EFCI;
            self.marked += 1;
        }
        self.change(now);
        self.waiting.offer(class as u32, 0, cell)
    }

    fn send(&mut self, now: SimTime, cell: Cell) -> SimTime {
        self.sending = Some(cell);
        self.sent += 1;
        let sent = self.line.send(now, Cells::new(1).bits());
        sent.expect("a run ends long before time does").end
    }

    /// The cell on the line has left; when the next one will have, if there is one.
    #[inline]
    pub(super) fn left(&mut self, now: SimTime) -> (Cell, Option<SimTime>) {
        let cell = self.sending.take().expect("a port is due only while it sends");
        self.change(now);
        let next = self.waiting.pop();
        (cell, next.map(|(next, _)| self.send(now, next)))
    }

    /// The cells that are here, on the line or waiting.
    pub(super) fn held(&self) -> impl Iterator<Item = Cell> + '_ {
        self.sending.iter().copied().chain(self.waiting.iter())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn plan() -> PortPlan {
        PortPlan {
            rate: BitRate::mbit_s(424),
            buffer: Cells::new(4),
            push_out: PushOut::Last,
            efci: None,
            becn: None,
            erica: None,
            reserve: Reserve::Guaranteed,
            delay: Span::ZERO,
        }
    }

    const fn cell(number: u16) -> Cell {
        Cell { circuit: number, hop: 0, flags: 0, content: Cell::EMPTY }
    }

    /// The cells that leave from now on, in order.
    fn drain(port: &mut Port) -> Vec<u16> {
        let mut left = Vec::new();
        while port.sending.is_some() {
            left.push(port.left(port.line.free_at()).0.circuit);
        }
        left
    }

    /// What became of a cell beside one that is on the line.
    fn take(port: &mut Port, number: u16, class: Class) -> Taken<Cell> {
        port.take(SimTime::ZERO, cell(number), class)
    }

    #[test]
    fn guaranteed_cells_go_first_and_the_others_in_order() {
        let mut port = Port::new(plan(), None);
        let classes = [Class::Ubr, Class::Ubr, Class::Abr, Class::Guaranteed, Class::Ubr];
        for (number, class) in (0..).zip(classes) {
            let waits = take(&mut port, number, class) == Taken::Waits;
            assert!(waits || number == 0);
        }
        assert_eq!(drain(&mut port), [0, 3, 1, 2, 4]);
        assert_eq!((port.longest(), port.waiting()), (4, 0));
    }

    #[test]
    fn who_comes_when_it_is_full_is_lost_but_ubr_gives_way() {
        for (push_out, lost, left) in [
            (PushOut::Last, Taken::Instead(cell(4)), vec![0, 1, 2, 3, 6]),
            (PushOut::First, Taken::Instead(cell(1)), vec![0, 2, 3, 4, 6]),
            (PushOut::None, Taken::Lost, vec![0, 1, 2, 3, 4]),
        ] {
            let mut port = Port::new(PortPlan { push_out, ..plan() }, None);
            for (number, class) in (0..).zip([Class::Ubr, Class::Ubr, Class::Abr, Class::Abr, Class::Ubr]) {
                take(&mut port, number, class);
            }
            assert_eq!(take(&mut port, 5, Class::Ubr), Taken::Lost, "UBR for nobody");
            assert_eq!(take(&mut port, 6, Class::Abr), lost);
            assert_eq!(drain(&mut port), left);
        }
    }

    #[test]
    fn marks_look_at_what_waits() {
        let mut port = Port::new(PortPlan { efci: Some(Cells::new(1)), ..plan() }, None);
        for number in 0..4 {
            take(&mut port, number, Class::Abr);
        }
        port.take(SimTime::ZERO, Cell { flags: Cell::RM, ..cell(4) }, Class::Abr);
        let flags: Vec<u8> = port.held().map(|cell| cell.flags).collect();
        assert_eq!(flags, [0, 0, 0, Cell::EFCI, Cell::RM]);
    }

    proptest! {
        /// Against one list of what waits, searched for each decision.
        #[test]
        fn cells_come_and_go_as_from_a_plain_list(
            buffer in 1_u64..6, push_out in 0_usize..3, steps in prop::collection::vec(0_u8..5, 1..200),
        ) {
            let push_out = [PushOut::Last, PushOut::First, PushOut::None][push_out];
            let mut port = Port::new(PortPlan { push_out, buffer: Cells::new(buffer), ..plan() }, None);
            let mut line: Option<u16> = None;
            let mut list: Vec<(Class, u16)> = Vec::new();
            let mut now = SimTime::ZERO;
            for (number, step) in (0..).zip(steps) {
                let class = match step {
                    0 => Class::Guaranteed,
                    1 => Class::Abr,
                    2 => Class::Ubr,
                    _ => {
                        if let Some(sent) = line {
                            now = port.line.free_at();
                            prop_assert_eq!(port.left(now).0.circuit, sent);
                            let first = list.iter().position(|(class, _)| *class == Class::Guaranteed);
                            let next = first.or((!list.is_empty()).then_some(0));
                            line = next.map(|place| list.remove(place).1);
                        }
                        continue;
                    }
                };
                let came = port.take(now, cell(number), class);
                if line.is_none() {
                    line = Some(number);
                    prop_assert_eq!(came, Taken::Sent(port.line.free_at()));
                    continue;
                }
                let ubr = |(class, _): &(Class, u16)| *class == Class::Ubr;
                let victim = match push_out {
                    _ if (list.len() as u64) < buffer || class == Class::Ubr => None,
                    PushOut::Last => list.iter().rposition(ubr),
                    PushOut::First => list.iter().position(ubr),
                    PushOut::None => None,
                };
                let expected = match victim {
                    Some(place) => Taken::Instead(cell(list.remove(place).1)),
                    None if list.len() as u64 >= buffer => Taken::Lost,
                    None => Taken::Waits,
                };
                prop_assert_eq!(came, expected);
                if expected != Taken::Lost {
                    list.push((class, number));
                }
                prop_assert_eq!(port.waiting(), list.len() as u64);
                prop_assert_eq!(port.held().count(), list.len() + 1);
            }
        }
    }
}
