//! Whether every cell and every credit is somewhere.

use super::network::Fabric;
use super::node::Kind;
use super::state::{END, NONE, Note};

impl Fabric {
    /// Holds the books of every element against each other.
    ///
    /// Of every circuit at every node: cells that came are rejected, gone on or held. Of every line: cells sent
    /// are lost, on their way or arrived. Of every circuit on a line with credits: cells that the sender counts
    /// as under way are on the line, held, or made room of which word is owed, on its way, or lost; never more
    /// are held than there is room for. Of the whole: as many cells as are held and on lines.
    ///
    /// # Errors
    /// Which books do not balance, and how.
    pub fn audit(&self) -> Result<(), String> {
        let store = &self.store;
        let mut flying = vec![0_u64; store.hops.len()];
        let mut on_lines = 0;
        for direction in &store.directions {
            for flight in direction.flying.iter().filter(|flight| flight.cell != NONE) {
                let hop = if flight.to & END != 0 {
                    store.ends[(flight.to & !END) as usize].hop
                } else {
                    flight.to
                };
                flying[hop as usize] += 1;
                on_lines += 1;
            }
        }
        let mut held = vec![0_u64; self.nodes.len()];
        for (number, hop) in store.hops.iter().enumerate() {
            held[hop.node as usize] += u64::from(hop.held);
            let station = matches!(self.nodes[hop.node as usize].kind, Kind::Station { .. });
            let Some(branch) = store.branches.get(hop.branch as usize) else { continue };
            let (sent, waiting) = (branch.sent, branch.waiting);
            if !station {
                if hop.held > hop.limit {
                    return Err(format!("hop {number}: {} cells held: room for {}", hop.held, hop.limit));
                }
                let gone = hop.arrived - store.refused[number] - u64::from(waiting);
                if gone != sent {
                    return Err(format!("hop {number}: {gone} cells gone, {sent} sent"));
                }
                if waiting != hop.held {
                    return Err(format!("hop {number}: {} held, {waiting} wait", hop.held));
                }
            }
            let line = &store.directions[branch.direction as usize];
            // Lost cells are counted by line: where others share it, they cannot be told apart.
            let reached = store.arrived(branch.next_hop) + flying[branch.next_hop as usize];
            if reached > sent || sent - reached > line.counters.lost {
                return Err(format!("hop {number}: {sent} sent, {reached} arrived or on the line"));
            }
        }
        for (node, &cells) in self.nodes.iter().zip(&held) {
            if u64::from(node.held) != cells {
                return Err(format!("node {}: {} held, its circuits {cells}", node.number, node.held));
            }
        }
        let all = held.iter().sum::<u64>() + on_lines;
        if u64::from(store.cells.used()) != all {
            return Err(format!("{} cells are there: {all} are somewhere", store.cells.used()));
        }
        self.audit_credits(&flying)
    }

    fn audit_credits(&self, flying: &[u64]) -> Result<(), String> {
        let store = &self.store;
        let mut told = vec![0_u64; store.branches.len()];
        let mut totals = vec![false; store.branches.len()];
        for note in store.directions.iter().flat_map(|direction| direction.notes.iter()) {
            match note.note {
                Note::More(cells) => told[note.branch as usize] += u64::from(cells),
                Note::Total(_) | Note::Answer(_) => totals[note.branch as usize] = true,
            }
        }
        let mut borrowed = vec![0_u64; store.directions.len()];
        for (number, branch) in store.branches.iter().enumerate().filter(|(_, branch)| branch.window != NONE)
        {
            let next = &store.hops[branch.next_hop as usize];
            let direction = branch.direction as usize;
            let line = &store.directions[direction];
            let back = &store.directions[direction ^ 1];
            borrowed[direction] += u64::from(branch.outstanding.saturating_sub(branch.window));
            let there = flying[branch.next_hop as usize] + u64::from(next.held);
            let known = there + u64::from(next.owed) + told[number];
            let outstanding = u64::from(branch.outstanding);
            if outstanding < there {
                return Err(format!("branch {number}: {outstanding} under way, {there} on the line or held"));
            }
            let clean = line.counters.lost + line.counters.credits_lost + back.counters.credits_lost == 0;
            let by_count = line.counters.markers == 0 && line.scheme == super::plan::Scheme::Increments;
            if clean && by_count && !totals[number] && outstanding != known {
                return Err(format!("branch {number}: {outstanding} under way, {known} accounted for"));
            }
        }
        for (number, (line, borrowed)) in store.directions.iter().zip(borrowed).enumerate() {
            if u64::from(line.pool) + borrowed != u64::from(line.shared) {
                let (pool, shared) = (line.pool, line.shared);
                return Err(format!(
                    "direction {number}: {pool} free and {borrowed} in use of {shared} shared"
                ));
            }
        }
        Ok(())
    }
}
