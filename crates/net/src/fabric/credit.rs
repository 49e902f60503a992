//! Credits at a node: what is owed, what is said, what is believed.

use wiretwin_units::{Cells, SimTime};

use super::node::{Kind, Node, ones};
use super::plan::Scheme;
use super::state::{Flight, NONE, Note, NoteFlight, Store};

impl Node {
    /// A hop has made room for a cell.
    #[inline]
    pub(super) fn owe(&mut self, number: u32, port: usize, store: &mut Store) {
        let hop = &mut store.hops[number as usize];
        hop.freed = hop.freed.wrapping_add(1);
        hop.owed += 1;
        if !hop.owing {
            hop.owing = true;
            self.owing[port].push_back(number);
            self.owing_ports |= 1 << port;
        }
    }

    /// Says what is owed, one circuit a port and slot, and sends markers where no cell goes.
    pub(super) fn control(&mut self, slot: u64, now: SimTime, store: &mut Store) {
        for port in ones(self.marker_ports & !self.busy(now)) {
            let direction = self.outward[port];
            let Some(number) = self.markers[port].pop_front() else { continue };
            if self.markers[port].is_empty() {
                self.marker_ports &= !(1 << port);
            }
            let branch = &store.branches[number as usize];
            let (sent, hop) = (branch.sent as u32, branch.next_hop);
            let line = &mut store.directions[direction as usize];
            line.more.marks.push_back(sent);
            line.counters.markers += 1;
            self.put(direction, port, Flight { slot: 0, hop, cell: NONE }, slot, now, store);
        }
        for port in ones(self.owing_ports) {
            let direction = self.outward[port];
            if self.slow >> port & 1 == 1 {
                let line = &mut store.directions[direction as usize];
                if line.more.note_free > now {
                    continue;
                }
                let cell = line.more.rate.time_for(Cells::new(1).bits());
                line.more.note_free = now + cell.expect("a cell takes less than 213 days");
            }
            let Some(number) = self.owing[port].pop_front() else { continue };
            if self.owing[port].is_empty() {
                self.owing_ports &= !(1 << port);
            }
            let hop = &mut store.hops[number as usize];
            hop.owing = false;
            let (owed, answers) = (std::mem::take(&mut hop.owed), std::mem::take(&mut hop.answers));
            let (branch, freed) = (hop.feeder, hop.freed);
            let line = &mut store.directions[direction as usize];
            line.counters.credits += 1;
            let note = match line.scheme {
                _ if answers => Note::Answer(freed),
                Scheme::Totals => Note::Total(freed),
                Scheme::Increments => Note::More(owed),
            };
            if let Some(faults) = &mut line.more.faults
                && faults.stream.happens(faults.credits)
            {
                line.counters.credits_lost += 1;
                continue;
            }
            let arrives = store.fly(direction, slot, now, false);
            let line = &mut store.directions[direction as usize];
            line.notes.push_back(NoteFlight { slot: arrives, branch, note });
            store.domains[line.to_domain as usize].wake(line.to_local, arrives);
        }
    }

    /// A marker has come: what the sender had sent, against what is held, is what has made room.
    pub(super) fn counted(&mut self, number: u32, sent: u32, store: &mut Store) {
        let hop = &mut store.hops[number as usize];
        hop.freed = sent.wrapping_sub(hop.held);
        (hop.owed, hop.answers) = (0, true);
        let port = usize::from(hop.port);
        if !hop.owing {
            hop.owing = true;
            self.owing[port].push_back(number);
            self.owing_ports |= 1 << port;
        }
    }

    /// Something was said of a branch's credits, by what came in at a port.
    #[inline]
    pub(super) fn credit(&mut self, port: usize, number: u32, note: Note, store: &mut Store) {
        let direction = self.outward[port] as usize;
        let ours = store.branches.get(number as usize).filter(|branch| {
            branch.window != NONE && usize::from(branch.port) == port && branch.node == self.number
        });
        let new = ours.and_then(|branch| match note {
            Note::More(cells) => branch.outstanding.checked_sub(cells),
            Note::Total(freed) | Note::Answer(freed) => {
                let under_way = (branch.sent as u32).wrapping_sub(freed);
                let most = branch.window + store.directions[direction].shared;
                (under_way <= most).then_some(under_way)
            }
        });
        let Some(new) = new else {
            store.directions[self.inward[port] as usize].counters.credits_refused += 1;
            return;
        };
        let branch = &mut store.branches[number as usize];
        let borrowed = branch.outstanding.saturating_sub(branch.window);
        let borrows = new.saturating_sub(branch.window);
        let repaired =
            if matches!(note, Note::Answer(_)) { branch.outstanding.saturating_sub(new) } else { 0 };
        branch.outstanding = new;
        let line = &mut store.directions[direction];
        line.counters.repaired += u64::from(repaired);
        line.pool = (line.pool + borrowed).saturating_sub(borrows);
        let free = line.pool > 0 && !line.more.blocked.is_empty();
        if branch.waiting > 0 && !branch.queued {
            if matches!(self.kind, Kind::Shared { in_order: Some(_), .. }) {
                return;
            }
            self.stand(number, store);
        }
        if free {
            self.unblock(direction, store);
        }
    }

    /// As many of those that wait for shared cells go on as there are.
    fn unblock(&mut self, direction: usize, store: &mut Store) {
        let mut free = store.directions[direction].pool;
        while free > 0 {
            let Some(number) = store.directions[direction].more.blocked.pop_front() else { return };
            let branch = &mut store.branches[number as usize];
            branch.blocked = false;
            // One that stands in its turn already, or has sent all it had, leaves the cell to others.
            if branch.waiting > 0 && !branch.queued {
                self.stand(number, store);
                free -= 1;
            }
        }
    }
}
