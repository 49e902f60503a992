//! Ranks that look for messages by turns, on a core that they share.
//!
//! A rank that yields looks once, and hands the core to the next one (`sched_yield`). As long as all of a core's
//! ranks wait, they so go round and round, a turn each, always in the same order; one that has got its
//! message notices in its own turn. Nothing is simulated turn by turn: when a turn begins follows from when
//! the last rank that had something to do left the core.

/// The turns on one core.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turns {
    /// What a look takes, and handing the core on, in picoseconds.
    turn: u64,
    members: u32,
    /// Whose turn begins at `since`; the others follow.
    first: u32,
    since: u64,
    /// Who looks until `since`.
    looking: Option<u32>,
}

impl Turns {
    /// A core without ranks; a turn takes so long, in picoseconds.
    pub(super) const fn new(turn: u64) -> Self {
        Self { turn, members: 0, first: 0, since: 0, looking: None }
    }

    /// One more rank takes turns; returns its number.
    pub(super) fn join(&mut self) -> u32 {
        self.members += 1;
        self.members - 1
    }

    /// A rank that had something to do leaves the core; if it waits, it has looked first.
    pub(super) fn leave(&mut self, member: u32, now: u64, waits: bool) {
        self.first = (member + 1) % self.members;
        self.since = if waits { now + self.turn } else { now };
        self.looking = waits.then_some(member);
    }

    /// When the next turn of a rank begins, or `now` if that is under way.
    pub(super) fn begins(&self, member: u32, now: u64) -> u64 {
        let members = u64::from(self.members);
        if members == 1 || self.turn == 0 || (now < self.since && self.looking == Some(member)) {
            return now;
        }
        let after = |from: u64| (u64::from(member) + members - from) % members;
        let Some(elapsed) = now.checked_sub(self.since) else {
            return self.since + after(u64::from(self.first)) * self.turn;
        };
        let turns = elapsed / self.turn;
        let ahead = after((u64::from(self.first) + turns) % members);
        if ahead == 0 { now } else { self.since + (turns + ahead) * self.turn }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn three() -> Turns {
        let mut turns = Turns::new(10);
        assert_eq!([turns.join(), turns.join(), turns.join()], [0, 1, 2]);
        turns
    }

    #[test]
    fn ranks_that_wait_look_in_turn_after_the_one_that_left() {
        let mut turns = three();
        turns.leave(0, 100, true);
        // 0 looks from 100 to 110, 1 to 120, 2 to 130, and again.
        assert_eq!([0, 1, 2].map(|member| turns.begins(member, 105)), [105, 110, 120]);
        assert_eq!([0, 1, 2].map(|member| turns.begins(member, 110)), [130, 110, 120]);
        assert_eq!([0, 1, 2].map(|member| turns.begins(member, 115)), [130, 115, 120]);
        assert_eq!([0, 1, 2].map(|member| turns.begins(member, 139)), [139, 140, 150]);
    }

    #[test]
    fn a_rank_whose_slice_has_ended_does_not_look_first() {
        let mut turns = three();
        turns.leave(2, 100, false);
        assert_eq!([0, 1, 2].map(|member| turns.begins(member, 100)), [100, 110, 120]);
    }

    #[test]
    fn a_rank_alone_on_its_core_always_looks() {
        let mut turns = Turns::new(10);
        turns.join();
        turns.leave(0, 100, true);
        assert_eq!(turns.begins(0, 103), 103);
    }
}
