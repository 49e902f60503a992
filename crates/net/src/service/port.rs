//! One output port: two priorities over one buffer, and a line.
//!
//! Vila-Sallent and Solé-Pareta (1998): cells of guaranteed service go before those of best effort (ABR and
//! UBR, in one queue); the buffer is shared by all; who comes when it is full is lost, but a cell that is not
//! UBR takes the place of a UBR cell in the queue. Choice: of the last one ([`PushOut::Last`]), as the paper
//! does not say which.

use std::collections::VecDeque;

use wiretwin_proto::abr::{Erica, EricaConfig};
use wiretwin_units::{BitRate, Cells, SimTime, Span, Transmitter};

/// Which UBR cell leaves the queue for another that finds no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PushOut {
    /// The one that came last.
    Last,
    /// The one that came first.
    First,
    /// None: who comes is lost.
    None,
}

/// What explicit rates leave of the line for ABR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// A cell that was tagged (CLP 1) is lost where it finds more than so many waiting.
    pub tagged: Option<Cells>,
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
    /// Lost first.
    pub(super) const CLP: u8 = 2;
    /// Resource management.
    pub(super) const RM: u8 = 4;
    /// Another took its place.
    const GONE: u8 = 128;
}

/// What became of a cell that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Came {
    /// It waits or is on the line.
    Taken,
    /// So does it, and this one is lost for it.
    Instead(Cell),
    /// It is lost.
    Lost,
}

/// The port.
#[derive(Clone, Debug)]
pub(super) struct Port {
    pub plan: PortPlan,
    pub erica: Option<Erica>,
    line: Transmitter,
    sending: Option<Cell>,
    guaranteed: VecDeque<Cell>,
    plain: VecDeque<Cell>,
    /// The number of the first of `plain`, counted from the beginning of time.
    head: u64,
    /// The numbers of those UBR cells of `plain` that are still there.
    ubr: VecDeque<u64>,
    waiting: u64,
    pub longest: u64,
    /// Cells that waited times the time they did, in ps.
    area: u128,
    changed: SimTime,
    pub sent: u64,
}

impl Port {
    pub(super) fn new(plan: PortPlan, erica: Option<Erica>) -> Self {
        Self {
            plan,
            erica,
            line: Transmitter::new(plan.rate),
            sending: None,
            guaranteed: VecDeque::new(),
            plain: VecDeque::new(),
            head: 0,
            ubr: VecDeque::new(),
            waiting: 0,
            longest: 0,
            area: 0,
            changed: SimTime::ZERO,
            sent: 0,
        }
    }

    /// Cells that wait.
    #[inline]
    pub(super) const fn waiting(&self) -> u64 {
        self.waiting
    }

    /// When the cell on the line has left, if there is one.
    #[inline]
    pub(super) fn due(&self) -> SimTime {
        if self.sending.is_some() { self.line.free_at() } else { SimTime::MAX }
    }

    /// The mean number that waited up to now.
    pub(super) fn mean_waiting(&self, now: SimTime) -> f64 {
        let held = u128::from(self.waiting) * u128::from(now.saturating_since(self.changed).as_ps());
        (self.area + held) as f64 / (now.as_ps() as f64).max(1.0)
    }

    #[inline]
    fn change(&mut self, now: SimTime, waiting: u64) {
        self.area += u128::from(self.waiting) * u128::from(now.saturating_since(self.changed).as_ps());
        (self.changed, self.waiting) = (now, waiting);
    }

    /// A cell comes.
    #[inline]
    pub(super) fn take(&mut self, now: SimTime, mut cell: Cell, class: Class) -> Came {
        if self.sending.is_none() {
            self.send(now, cell);
            return Came::Taken;
        }
        let over = |limit: Option<Cells>| limit.is_some_and(|limit| self.waiting > limit.get());
        if cell.flags & Cell::CLP != 0 && over(self.plan.tagged) {
            return Came::Lost;
        }
        if cell.flags & Cell::RM == 0 && over(self.plan.efci) {
            cell.flags |= Cell::EFCI;
        }
        let mut victim = None;
        if self.waiting >= self.plan.buffer.get() {
            let place = match self.plan.push_out {
                PushOut::Last if class != Class::Ubr => self.ubr.pop_back(),
                PushOut::First if class != Class::Ubr => self.ubr.pop_front(),
                _ => None,
            };
            let Some(place) = place else { return Came::Lost };
            let gone = &mut self.plain[(place - self.head) as usize];
            victim = Some(*gone);
            gone.flags |= Cell::GONE;
        } else {
            self.change(now, self.waiting + 1);
            self.longest = self.longest.max(self.waiting);
        }
        match class {
            Class::Guaranteed => self.guaranteed.push_back(cell),
            Class::Abr => self.plain.push_back(cell),
            Class::Ubr => {
                self.ubr.push_back(self.head + self.plain.len() as u64);
                self.plain.push_back(cell);
            }
        }
        victim.map_or(Came::Taken, Came::Instead)
    }

    fn send(&mut self, now: SimTime, cell: Cell) {
        let sent = self.line.send(now, Cells::new(1).bits());
        debug_assert!(sent.is_ok(), "a run ends long before time does");
        self.sending = Some(cell);
        self.sent += 1;
    }

    /// The cell on the line has left; the next begins.
    #[inline]
    pub(super) fn left(&mut self, now: SimTime) -> Cell {
        let cell = self.sending.take().expect("a port is due only while it sends");
        if let Some(next) = self.next() {
            self.change(now, self.waiting - 1);
            self.send(now, next);
        }
        cell
    }

    #[inline]
    fn next(&mut self) -> Option<Cell> {
        if let Some(cell) = self.guaranteed.pop_front() {
            return Some(cell);
        }
        loop {
            let cell = self.plain.pop_front()?;
            let number = self.head;
            self.head += 1;
            if cell.flags & Cell::GONE == 0 {
                if self.ubr.front() == Some(&number) {
                    self.ubr.pop_front();
                }
                return Some(cell);
            }
        }
    }

    /// The cells that are here, on the line or waiting.
    pub(super) fn held(&self) -> impl Iterator<Item = Cell> + '_ {
        let there = |cell: &&Cell| cell.flags & Cell::GONE == 0;
        self.sending.iter().chain(&self.guaranteed).chain(self.plain.iter().filter(there)).copied()
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
            tagged: None,
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
        while port.due() != SimTime::MAX {
            left.push(port.left(port.due()).circuit);
        }
        left
    }

    #[test]
    fn guaranteed_cells_go_first_and_the_others_in_order() {
        let mut port = Port::new(plan(), None);
        let classes = [Class::Ubr, Class::Ubr, Class::Abr, Class::Guaranteed, Class::Ubr];
        for (number, class) in (0..).zip(classes) {
            assert_eq!(port.take(SimTime::ZERO, cell(number), class), Came::Taken);
        }
        assert_eq!(drain(&mut port), [0, 3, 1, 2, 4]);
        assert_eq!((port.longest, port.waiting()), (4, 0));
    }

    #[test]
    fn who_comes_when_it_is_full_is_lost_but_ubr_gives_way() {
        for (push_out, lost, left) in [
            (PushOut::Last, Came::Instead(cell(4)), vec![0, 1, 2, 3, 6]),
            (PushOut::First, Came::Instead(cell(1)), vec![0, 2, 3, 4, 6]),
            (PushOut::None, Came::Lost, vec![0, 1, 2, 3, 4]),
        ] {
            let mut port = Port::new(PortPlan { push_out, ..plan() }, None);
            for (number, class) in (0..).zip([Class::Ubr, Class::Ubr, Class::Abr, Class::Abr, Class::Ubr]) {
                port.take(SimTime::ZERO, cell(number), class);
            }
            assert_eq!(port.take(SimTime::ZERO, cell(5), Class::Ubr), Came::Lost, "UBR for nobody");
            assert_eq!(port.take(SimTime::ZERO, cell(6), Class::Abr), lost);
            assert_eq!(drain(&mut port), left);
        }
    }

    #[test]
    fn marks_and_tags_look_at_what_waits() {
        let limits = Some(Cells::new(1));
        let mut port = Port::new(PortPlan { efci: limits, tagged: limits, ..plan() }, None);
        let tagged = |number| Cell { flags: Cell::CLP, ..cell(number) };
        for number in 0..3 {
            assert_eq!(port.take(SimTime::ZERO, tagged(number), Class::Ubr), Came::Taken);
        }
        assert_eq!(port.take(SimTime::ZERO, tagged(3), Class::Ubr), Came::Lost);
        port.take(SimTime::ZERO, cell(4), Class::Abr);
        port.take(SimTime::ZERO, Cell { flags: Cell::RM, ..cell(5) }, Class::Abr);
        let flags: Vec<u8> = port.held().map(|cell| cell.flags).collect();
        assert_eq!(flags, [Cell::CLP, Cell::CLP, Cell::CLP, Cell::EFCI, Cell::RM]);
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
                            now = port.due();
                            prop_assert_eq!(port.left(now).circuit, sent);
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
                    prop_assert_eq!(came, Came::Taken);
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
                    Some(place) => Came::Instead(cell(list.remove(place).1)),
                    None if list.len() as u64 >= buffer => Came::Lost,
                    None => Came::Taken,
                };
                prop_assert_eq!(came, expected);
                if expected != Came::Lost {
                    list.push((class, number));
                }
                prop_assert_eq!(port.waiting(), list.len() as u64);
                prop_assert_eq!(port.held().count(), list.len() + 1);
            }
        }
    }
}
