//! Credits at a node: what is owed, what is said, what is believed.

use wiretwin_units::{Cells, SimTime};

use super::node::{Kind, Node, ones};
use super::plan::Scheme;
use super::state::{Flight, Hop, NONE, Note, NoteFlight, Store};

impl Node {
    /// A hop has made room for a cell, of which whoever feeds it by credits is to be told.
    #[inline]
    pub(super) fn owe(&mut self, number: u32, hop: &mut Hop) {
        if hop.feeder == NONE {
            return;
        }
        hop.freed = hop.freed.wrapping_add(1);
        hop.owed += 1;
        self.stand_owing(number, hop);
    }

    #[inline]
    fn stand_owing(&mut self, number: u32, hop: &mut Hop) {
        if !hop.owing {
            hop.owing = true;
            self.owing[usize::from(hop.port)].push_back(number);
            self.owing_ports |= 1 << hop.port;
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
            self.put(direction, port, Flight { slot: 0, to: hop, cell: NONE }, slot, now, store);
        }
        let Store { hops, directions, domains, .. } = store;
        for port in ones(self.owing_ports) {
            let line = &mut directions[self.outward[port] as usize];
            if self.slow >> port & 1 == 1 {
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
            let hop = &mut hops[number as usize];
            hop.owing = false;
            let (owed, answers) = (std::mem::take(&mut hop.owed), std::mem::take(&mut hop.answers));
            let (branch, freed) = (hop.feeder, hop.freed);
            line.counters.credits += 1;
            let note = match line.scheme {
                _ if answers => Note::Answer(freed),
                Scheme::Totals => Note::Total(freed),
                Scheme::Increments => Note::More(owed),
            };
            if line.faulty && line.loses_note() {
                continue;
            }
            let arrives = line.fly(slot, now, false, domains);
            line.notes.push_back(NoteFlight { slot: arrives, branch, note });
            domains[line.to_domain as usize].wake(line.to_local, arrives);
        }
    }

    /// A marker has come: what the sender had sent, against what is held, is what has made room.
    pub(super) fn counted(&mut self, number: u32, sent: u32, store: &mut Store) {
        let hop = &mut store.hops[number as usize];
        hop.freed = sent.wrapping_sub(hop.held);
        (hop.owed, hop.answers) = (0, true);
        self.stand_owing(number, hop);
    }

    /// Something was said of the credits of a branch that sends in this direction, if there is such a branch.
    #[inline]
    pub(super) fn credit(&mut self, direction: u32, number: u32, note: Note, store: &mut Store) {
        let Store { branches, links, directions, .. } = store;
        let line = &mut directions[direction as usize];
        let ours = branches
            .get_mut(number as usize)
            .filter(|branch| branch.window != NONE && branch.direction == direction);
        let known = ours.and_then(|branch| {
            let new = match note {
                Note::More(cells) => branch.outstanding.checked_sub(cells),
                Note::Total(freed) | Note::Answer(freed) => {
                    let under_way = (branch.sent as u32).wrapping_sub(freed);
                    (under_way <= branch.window + line.shared).then_some(under_way)
                }
            };
            Some((branch, new?))
        });
        let Some((branch, new)) = known else {
            directions[direction as usize ^ 1].counters.credits_refused += 1;
            return;
        };
        let before = std::mem::replace(&mut branch.outstanding, new);
        if matches!(note, Note::Answer(_)) {
            line.counters.repaired += u64::from(before.saturating_sub(new));
        }
        let mut free = false;
        if line.shared > 0 {
            let borrowed = before.saturating_sub(branch.window);
            line.pool = (line.pool + borrowed).saturating_sub(new.saturating_sub(branch.window));
            free = line.pool > 0 && !line.more.blocked.is_empty();
        }
        if branch.waiting > 0 && !branch.queued {
            if matches!(self.kind, Kind::Shared { in_order: Some(_), .. }) {
                return;
            }
            self.stand(number, branch, links, directions);
        }
        if free {
            self.unblock(direction as usize, store);
        }
    }

    /// As many of those that wait for shared cells go on as there are.
    fn unblock(&mut self, direction: usize, store: &mut Store) {
        let Store { branches, links, directions, .. } = store;
        let mut free = directions[direction].pool;
        while free > 0 {
            let Some(number) = directions[direction].more.blocked.pop_front() else { return };
            let branch = &mut branches[number as usize];
            branch.blocked = false;
            // One that stands in its turn already, or has sent all it had, leaves the cell to others.
            if branch.waiting > 0 && !branch.queued {
                self.stand(number, branch, links, directions);
                free -= 1;
            }
        }
    }
}
