//! Cells that nobody contends with.
//!
//! A cell that an adapter's processor has done with crosses the bus, the line, the fabric and the second line; where
//! each of these is free when it comes, nothing on the way decides anything, and all its times are known at once. So it
//! is put before the receiving adapter with the time at which it will be there, and the cells of a PDU follow each
//! other like the waggons of a train. The processor takes them when it has done what it does. Where it has nothing else to
//! do, nobody hears of that before the last cell of a PDU is there: what it has done until then is made up for at once
//! when that comes, or anything else does.
//!
//! A cell goes so only where the outcome is the same as step by step:
//!
//! 1. The bus and the line are free: the cell reaches the switch as early as any cell that starts now can. Those that
//!    start later come later, from whichever host, for all have the same bus and the same line.
//! 2. No cell goes step by step before the switch or in it: those that do have been overtaken by none.
//! 3. The fabric and the line behind it are free when the cell is there, so no queue sees it.
//! 4. Call control says nothing before that, so it neither writes cells of its own nor changes circuits meanwhile.
//!
//! Else, where trains meet, cells go step by step, until the last of these has left the switch. They do so always where
//! there are more than two hosts: several that work in lockstep may send cells to one port in the same picosecond, and
//! among 64 such hosts trains changed one result, by less than a thousandth; that ties are why is likely and not shown.
//! So they do where there is load, cells are lost on lines or get wrong bits, adapters leave cells to their hosts, a
//! circuit has several branches, or the trail of each cell is kept. A message of signalling does too: its channel has no
//! way through the switch.
//!
//! *Choice*: two things that happen to one adapter in the same picosecond come in the order in which they were
//! scheduled, for a cell: when its last line began to send it. Where that is the same picosecond too, the cell comes
//! after.

use wiretwin_units::{SimTime, Span};

use super::Lan;
use super::adapter::CELL_BYTES;
use super::cell::Cell;
use super::config::{AdapterConfig, NetworkConfig};
use super::core::{LanEvent, LinkId, Port};

/// A cell that will come to an adapter.
#[derive(Clone, Copy, Debug)]
pub(super) struct Coming {
    /// When its last bit is there.
    at: SimTime,
    /// When the line that brings it began to send it.
    sent: SimTime,
    link: LinkId,
    cell: Cell,
}

/// A cell of an adapter's own that crosses the bus: what its line knows of it already.
#[derive(Clone, Copy, Debug)]
pub(super) struct Crossing {
    until: SimTime,
    /// When the line was free before.
    line_free: SimTime,
}

impl Crossing {
    /// What the line would say now: when it is free, and how many cells are about to come to it.
    pub(super) fn before(this: Option<Self>, now: SimTime, free: SimTime) -> (SimTime, usize) {
        match this {
            Some(crossing) if crossing.until > now => (crossing.line_free, 1),
            _ => (free, 0),
        }
    }
}

impl Lan {
    /// Lets every cell go step by step, each step an event of its own. What happens is the same, and when.
    pub fn cell_by_cell(&mut self) {
        self.core.trains = false;
    }

    /// Whether cells may go in trains at all.
    pub(super) fn may_have_trains(&self) -> bool {
        let hosts = &self.config.hosts;
        matches!(self.config.network, NetworkConfig::BackToBack(_) | NetworkConfig::Switch(..))
            && hosts.len() == 2
            && hosts.iter().all(|host| matches!(host.adapter, AdapterConfig::Series200 { .. }))
            && hosts.iter().all(|host| host.bus == hosts[0].bus)
            && self.config.loss.is_none()
            && self.config.bit_error.is_none()
            && self.loads.is_empty()
            && !self.core.trail.is_on()
    }

    /// An adapter's processor has done with a cell to send: whether it goes all its way now.
    pub(super) fn send_ahead(&mut self, number: u32, cell: Cell) -> bool {
        if !self.core.trains || self.core.stepwise > 0 {
            return false;
        }
        let now = self.core.now();
        let adapter = &self.adapters[number as usize];
        let (host, out) = (adapter.host() as usize, adapter.out);
        let Some(crossed) = self.hosts[host].would_cross(now, CELL_BYTES) else { return false };
        let link = self.core.link(out);
        let line_free = link.free_at();
        if line_free > crossed {
            return false;
        }
        let coming = match link.to() {
            Port::Adapter(_) => {
                let at = self.core.send_ahead(out, crossed);
                Coming { at, sent: crossed, link: out, cell }
            }
            Port::Element { element, port } => {
                let first = link.would_arrive(crossed);
                let silent_until = self.control_speaks();
                let switch = &mut self.switches[element as usize];
                let passed = switch.pass(&self.core, port, cell.vc, first, silent_until);
                let Some((link, vc, sent)) = passed else { return false };
                self.core.send_ahead(out, crossed);
                self.core.arrive_ahead(out, first, cell.index);
                let at = self.core.send_ahead(link, sent);
                Coming { at, sent, link, cell: Cell { vc, ..cell } }
            }
        };
        self.hosts[host].take_bus(now, CELL_BYTES);
        self.adapters[number as usize].crossing = Some(Crossing { until: crossed, line_free });
        if let Port::Adapter(receiver) = self.core.link(coming.link).to() {
            self.adapters[receiver as usize].coming.push_back(coming);
            self.will_come(receiver, &coming);
        }
        true
    }

    /// Whether nobody hears of the end of a job that an adapter has begun: it takes in a cell that completes nothing,
    /// and there is nothing else to do. It is looked at again when the last cell of a PDU comes.
    pub(super) fn is_unhurried(&self, number: u32) -> bool {
        // A reassembly timer counts from the time at which a cell is taken.
        self.core.trains
            && self.config.reassembly_timer.is_none()
            && self.adapters[number as usize].only_takes_in()
    }

    /// Does what an adapter has done by now without events.
    pub(super) fn catch_up(&mut self, number: u32) {
        let now = self.core.now();
        loop {
            let adapter = &self.adapters[number as usize];
            match (adapter.unhurried(), adapter.is_working()) {
                (Some(end), _) if end < now => {
                    self.take_what_came(number, end);
                    self.take_in_unheard(number, end);
                }
                (None, false) => match adapter.coming.front() {
                    Some(&Coming { at, .. }) if at < now => {
                        self.take_in_first(number, at);
                    }
                    _ => return,
                },
                _ => return,
            }
        }
    }

    /// Gives the end of an adapter's job an event, if it has none.
    pub(super) fn hurry(&mut self, number: u32) {
        if let Some(end) = self.adapters[number as usize].hurry() {
            self.core.at(end, LanEvent::Firmware(number));
        }
    }

    /// A cell will come to an adapter behind those that will.
    fn will_come(&mut self, number: u32, coming: &Coming) {
        let adapter = &self.adapters[number as usize];
        if adapter.is_working() && adapter.unhurried().is_none() {
            return;
        }
        if !self.is_unhurried(number) {
            self.await_cell(number);
        } else if coming.cell.is_last() {
            self.look_for_cell(number, coming.at);
        }
    }

    /// Sees to it that an adapter looks when the next cell comes that matters to it: the last of a PDU where it does
    /// nothing but take cells in.
    pub(super) fn await_cell(&mut self, number: u32) {
        let adapter = &self.adapters[number as usize];
        if adapter.is_working() && adapter.unhurried().is_none() {
            return;
        }
        if adapter.coming.is_empty() {
            return;
        }
        let unheard = self.is_unhurried(number);
        let matters = adapter.coming.iter().find(|coming| coming.cell.is_last() || !unheard);
        if let Some(at) = matters.map(|coming| coming.at) {
            self.look_for_cell(number, at);
        }
    }

    fn look_for_cell(&mut self, number: u32, at: SimTime) {
        let at = at.max(self.core.now());
        let adapter = &mut self.adapters[number as usize];
        if adapter.looks_at.is_none_or(|other| other > at) {
            adapter.looks_at = Some(at);
            self.core.at(at, LanEvent::Coming(number));
        }
    }

    /// The same, for a cell that its last line has begun to send: step by step its event would be there already.
    pub(super) fn await_cell_sent(&mut self, number: u32) {
        let now = self.core.now();
        if self.adapters[number as usize].coming.front().is_some_and(|coming| coming.sent < now) {
            self.await_cell(number);
        }
    }

    /// A cell has come to an adapter that looks for it.
    pub(super) fn cell_due(&mut self, number: u32) {
        let now = self.core.now();
        if self.adapters[number as usize].looks_at != Some(now) {
            // It looked earlier.
            return;
        }
        self.adapters[number as usize].looks_at = None;
        self.catch_up(number);
        if !self.adapters[number as usize].is_working() {
            self.take_coming(number, now + Span::from_ps(1));
        }
        self.transmit(number);
        self.await_cell(number);
    }

    /// Cells that came while the processor was at a job that ends at `end` are in the FIFO.
    pub(super) fn take_what_came(&mut self, number: u32, end: SimTime) {
        let began = self.adapters[number as usize].job_began();
        self.take_coming(number, end);
        while let Some(coming) = self.adapters[number as usize].coming.front()
            && coming.at == end
            && coming.sent < began
        {
            self.take_first(number);
        }
    }

    /// The job after one that has ended, where the processor had none: those cells that came with its end.
    pub(super) fn take_what_comes_now(&mut self, number: u32) {
        let now = self.core.now();
        while !self.adapters[number as usize].is_working()
            && self.adapters[number as usize].coming.front().is_some_and(|coming| coming.at <= now)
        {
            self.take_first(number);
            self.transmit(number);
        }
        self.await_cell(number);
    }

    /// Those that came before an instant.
    fn take_coming(&mut self, number: u32, before: SimTime) {
        while self.adapters[number as usize].coming.front().is_some_and(|coming| coming.at < before) {
            self.take_first(number);
        }
    }

    /// The processor has nothing to do: the first cell that came goes past the FIFO where that holds none.
    fn take_in_first(&mut self, number: u32, at: SimTime) {
        if !self.adapters[number as usize].receive_fifo.is_empty() {
            self.take_first(number);
            return self.take_in_unheard(number, at);
        }
        let Some(Coming { link, cell, .. }) = self.adapters[number as usize].coming.pop_front() else {
            return;
        };
        self.core.arrive_ahead(link, at, cell.index);
        if self.is_taken(number, &cell) {
            self.begin_unheard(number, cell, at);
        }
    }

    fn take_first(&mut self, number: u32) {
        if let Some(Coming { at, link, cell, .. }) = self.adapters[number as usize].coming.pop_front() {
            self.core.arrive_ahead(link, at, cell.index);
            self.put_in_fifo(number, cell);
        }
    }

    /// Before a circuit that ends at an adapter comes or goes: cells that came before.
    pub(super) fn take_before_change(&mut self, number: u32) {
        self.catch_up(number);
        self.take_coming(number, self.core.now());
    }

    /// Where nothing else is left to happen: whether adapters are to take in what will never be whole, or a bus is to be
    /// crossed, before the run ends.
    pub(super) fn await_quiet(&mut self) -> bool {
        let mut is_left = false;
        for number in 0..if self.core.trains { self.adapters.len() as u32 } else { 0 } {
            self.catch_up(number);
            let adapter = &self.adapters[number as usize];
            let next = adapter.coming.front().map(|coming| coming.at);
            if adapter.unhurried().is_some() {
                self.hurry(number);
                is_left = true;
            } else if let Some(at) = next {
                self.look_for_cell(number, at);
                is_left = true;
            }
        }
        if is_left {
            return true;
        }
        let quiet = core::mem::replace(&mut self.core.quiet, SimTime::ZERO);
        let is_left = quiet > self.core.now();
        if is_left {
            self.core.at(quiet, LanEvent::Unheard);
        }
        is_left
    }

    /// A cell has come to an adapter step by step. Behind a switch that was no longer of any account.
    pub(super) fn came_step_by_step(&mut self) {
        if self.switches.is_empty() {
            self.core.stepwise = self.core.stepwise.saturating_sub(1);
        }
    }

    /// Before a cell that came step by step: those that came before it.
    pub(super) fn take_earlier(&mut self, number: u32) {
        if self.core.trains {
            self.catch_up(number);
            self.take_coming(number, self.core.now() + Span::from_ps(1));
        }
    }
}

#[cfg(test)]
mod tests;
