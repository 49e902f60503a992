//! The simulator's side: turns given to ranks, and what they ask for.

use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::heap::Heap;
use super::shared::{Answer, Ask, Given, Head, MARK, Memory, ROOM, ring, sleep_on, wake};

/// How long the simulator sleeps before it looks whether the ranks live.
const LOOK: Duration = Duration::from_millis(50);

/// How a turn has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// The rank has asked for something.
    Asked,
    /// Its process is no more, or whoever looks after the run has ended it.
    Gone,
}

/// The memory of a run, made and owned by its simulator.
#[derive(Debug)]
pub struct Arena {
    memory: Memory,
    asks: Vec<Ask>,
}

impl Arena {
    /// Makes the memory of a run as a file that did not exist; it may take `limit` bytes.
    ///
    /// # Errors
    /// Those of the file and its mapping.
    pub fn make(path: &Path, given: Given, limit: u64) -> io::Result<Self> {
        let mut memory = Memory::make(path)?;
        let top = memory.top_mut();
        top.given = given;
        top.limit = limit;
        top.heap = Heap::new(Memory::after(given.ranks));
        top.mark.store(MARK, Ordering::Release);
        Ok(Self { memory, asks: Vec::with_capacity(ROOM) })
    }

    /// Waits until these ranks have come: whether they have. `goes_on` is asked now and then.
    pub fn gather(&mut self, ranks: Range<u32>, mut goes_on: impl FnMut() -> bool) -> bool {
        loop {
            let seen = self.memory.top().bell.load(Ordering::Acquire);
            // SAFETY: atomics of places inside the mapping.
            let come = ranks
                .clone()
                .all(|rank| unsafe { (*self.memory.slot(rank)).phase.load(Ordering::Acquire) == 1 });
            if come {
                return true;
            }
            sleep_on(&self.memory.top().bell, seen, LOOK);
            if !goes_on() {
                return false;
            }
        }
    }

    /// How many ranks have come.
    #[must_use]
    pub fn come(&self) -> u32 {
        let ranks = self.memory.top().given.ranks;
        // SAFETY: atomics of places inside the mapping.
        let has = |rank: &u32| unsafe { (*self.memory.slot(*rank)).phase.load(Ordering::Acquire) != 0 };
        (0..ranks).filter(has).count() as u32
    }

    /// Says which ranks the processes are that are spawned next.
    pub fn spawn_from(&mut self, rank: u32) {
        self.memory.top().spawned_from.store(rank, Ordering::Release);
    }

    /// How many answers fit into one turn.
    pub const ANSWERS: usize = ROOM;

    /// Gives a rank the turn with these answers, at most [`Arena::ANSWERS`], and waits until it gives it back.
    /// What it asked for is in [`Arena::asked`]. `goes_on` is asked now and then while it works.
    pub fn turn(
        &mut self,
        rank: u32,
        clock_ps: u64,
        answers: &[Answer],
        mut goes_on: impl FnMut() -> bool,
    ) -> Turn {
        let slot = self.memory.slot(rank);
        let top = self.memory.top();
        self.asks.clear();
        // SAFETY: the place of a rank, which is the simulator's until the turn is given and again after it has been
        // given back.
        unsafe {
            (&mut (*slot).answers)[..answers.len()].copy_from_slice(answers);
            (*slot).answered = answers.len() as u32;
            (*slot).clock_ps = clock_ps;
            let mut seen = top.bell.load(Ordering::Acquire);
            wake(&(*slot).turn, |turn| turn.store(1, Ordering::Release));
            while (*slot).turn.load(Ordering::Acquire) != 0 {
                sleep_on(&top.bell, seen, LOOK);
                let rung = top.bell.load(Ordering::Acquire);
                if rung == seen && !(goes_on() && lives((*slot).process.load(Ordering::Relaxed))) {
                    return Turn::Gone;
                }
                seen = rung;
            }
            let asked = (*slot).asked as usize;
            self.asks.extend_from_slice(&(&(*slot).asks)[..asked.min(ROOM)]);
        }
        Turn::Asked
    }

    /// What the rank that had the last turn has asked for.
    #[must_use]
    pub fn asked(&self) -> &[Ask] {
        &self.asks
    }

    /// What stands before the message at a place that a rank has named.
    #[must_use]
    pub fn head(&self, place: u64) -> Head {
        self.memory.head(place)
    }

    /// The process of a rank; 0 if it has not come.
    #[must_use]
    pub fn process(&self, rank: u32) -> u32 {
        // SAFETY: an atomic of a place inside the mapping.
        unsafe { (*self.memory.slot(rank)).process.load(Ordering::Relaxed) }
    }
}

impl Drop for Arena {
    /// Ranks that still wait for a turn end themselves.
    fn drop(&mut self) {
        let top = self.memory.top();
        top.over.store(1, Ordering::Release);
        ring(top);
        for rank in 0..top.given.ranks {
            // SAFETY: an atomic of a place inside the mapping.
            wake(unsafe { &(*self.memory.slot(rank)).turn }, |_| {});
        }
    }
}

/// Whether a process is there and has not ended.
fn lives(process: u32) -> bool {
    let Ok(text) = std::fs::read_to_string(format!("/proc/{process}/stat")) else { return false };
    // proc(5): the state is the first field behind the name in parentheses.
    text.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}
