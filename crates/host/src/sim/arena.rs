//! The simulator's side: turns given to ranks, and what they ask for.

use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::heap::Heap;
use super::shared::{Answer, Ask, Given, Head, MARK, Memory, ROOM, ring, sleep_on, wake};

/// How long the simulator sleeps before it looks whether the ranks live.
const LOOK: Duration = Duration::from_millis(50);
/// How long it sleeps before it first looks whether the rank that has the turn sleeps, too.
const FIRST_LOOK: Duration = Duration::from_millis(1);

/// How a turn has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// The rank has asked for something.
    Asked,
    /// It sleeps in the kernel, outside its library: in a pipe, for a lock, for a child. It keeps the turn, and
    /// [`Arena::await_rank`] waits for what it asks when it has gone on.
    Outside,
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

    /// Says which host a rank lives on, before it comes.
    pub fn place(&mut self, rank: u32, host: u32) {
        // SAFETY: no rank looks at it before it has come.
        unsafe { (*self.memory.slot(rank)).host = host };
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
        goes_on: impl FnMut() -> bool,
    ) -> Turn {
        let slot = self.memory.slot(rank);
        // SAFETY: the place of a rank, which is the simulator's until the turn is given and again after it has been
        // given back.
        unsafe {
            (&mut (*slot).answers)[..answers.len()].copy_from_slice(answers);
            (*slot).answered = answers.len() as u32;
            (*slot).clock_ps = clock_ps;
            (*slot).is_passed_over.store(0, Ordering::Release);
            if self.memory.top().given.own_cores == 0 {
                wake(&(*slot).turn, |turn| turn.store(1, Ordering::Release));
            } else {
                (*slot).turn.store(1, Ordering::Release);
            }
        }
        self.await_rank(rank, goes_on)
    }

    /// Waits until a rank that has the turn gives it back, or sleeps outside its library.
    pub fn await_rank(&mut self, rank: u32, mut goes_on: impl FnMut() -> bool) -> Turn {
        let slot = self.memory.slot(rank);
        let top = self.memory.top();
        self.asks.clear();
        // SAFETY: as above; what the rank has asked for is read after it has given the turn back.
        unsafe {
            let (mut look, mut slept) = (FIRST_LOOK, None);
            loop {
                let seen = top.bell.load(Ordering::Acquire);
                if (*slot).turn.load(Ordering::Acquire) == 0 {
                    break;
                }
                sleep_on(&top.bell, seen, look);
                if top.bell.load(Ordering::Acquire) != seen {
                    continue;
                }
                let process = (*slot).process.load(Ordering::Relaxed);
                if !(goes_on() && lives(process)) {
                    return Turn::Gone;
                }
                let sleeps = asleep(process);
                if sleeps.is_some() && sleeps == slept {
                    (*slot).is_passed_over.store(1, Ordering::Release);
                    return Turn::Outside;
                }
                slept = sleeps;
                look = if sleeps.is_some() { FIRST_LOOK } else { (2 * look).min(LOOK) };
            }
            let asked = (*slot).asked as usize;
            self.asks.extend_from_slice(&(&(*slot).asks)[..asked.min(ROOM)]);
        }
        Turn::Asked
    }

    /// Whether a rank that was outside has gone on, or is no more.
    #[must_use]
    pub fn is_back(&self, rank: u32) -> bool {
        let slot = self.memory.slot(rank);
        // SAFETY: atomics of a place inside the mapping.
        let (turn, process) =
            unsafe { ((*slot).turn.load(Ordering::Acquire), (*slot).process.load(Ordering::Relaxed)) };
        turn == 0 || asleep(process).is_none()
    }

    /// Sleeps for a moment, or until a rank rings; returns how long it was.
    pub fn rest(&mut self) -> Duration {
        let began = Instant::now();
        let bell = &self.memory.top().bell;
        sleep_on(bell, bell.load(Ordering::Acquire), FIRST_LOOK);
        began.elapsed()
    }

    /// In which function of the kernel a rank's process sleeps, where that is told.
    #[must_use]
    pub fn sleeps_in(&self, rank: u32) -> Option<String> {
        let text = std::fs::read_to_string(format!("/proc/{}/wchan", self.process(rank))).ok()?;
        (!matches!(text.as_str(), "" | "0")).then_some(text)
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

/// Whether all threads of a process, and of its children, sleep until something wakes them: then how often they have run
/// so far.
fn asleep(process: u32) -> Option<u64> {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).ok()?;
    let mut turns = 0;
    for task in tasks {
        let path = task.ok()?.path();
        let text = std::fs::read_to_string(path.join("stat")).ok()?;
        // proc(5): the state is the first field behind the name in parentheses. A zombie has ended.
        if !text.rsplit_once(") ")?.1.starts_with(['S', 'Z']) {
            return None;
        }
        // proc(5): the last field of three is how often it was given a processor.
        let text = std::fs::read_to_string(path.join("schedstat")).ok()?;
        turns += text.split_whitespace().next_back()?.parse::<u64>().ok()?;
        for child in std::fs::read_to_string(path.join("children")).unwrap_or_default().split_whitespace() {
            turns += asleep(child.parse().ok()?)?;
        }
    }
    Some(turns)
}

/// Whether a process is there and has not ended.
fn lives(process: u32) -> bool {
    let Ok(text) = std::fs::read_to_string(format!("/proc/{process}/stat")) else { return false };
    // proc(5): the state is the first field behind the name in parentheses.
    text.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}
