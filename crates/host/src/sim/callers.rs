//! The threads of a rank that call its library: what each is in the midst of, and whether one can go on without a
//! message.

use std::collections::BTreeMap;

use wiretwin_msg::tagged::Pattern;

use super::rank::{Access, Call};

/// What one thread is in the midst of.
#[derive(Debug)]
pub(super) struct Caller {
    pub call: Call,
    /// Whether it is in a call of the library.
    pub is_inside: bool,
    /// The processor time of the thread when its last call ended, nanoseconds.
    pub left_at_ns: u64,
    /// The time on the wall then, nanoseconds.
    pub left_wall_ns: u64,
    /// Whether the call is one that does more than to move messages.
    pub works: bool,
    /// Whether it is about a file.
    pub is_of_file: bool,
    /// Whether it completes what was done to a window.
    pub completes: bool,
    /// What the call does to windows in memory.
    pub access: Access,
    /// Whether the call has not come to its network.
    pub is_fresh: bool,
    /// What its library has done in looks there since it last waited, nanoseconds.
    pub looked_ns: u64,
    /// The processor time when its library went on within a call, if it has not come to its network since.
    pub library_since_ns: Option<u64>,
    /// The time on the wall then, in a call that is about a file, nanoseconds.
    pub library_wall_ns: Option<u64>,
    /// How long the message is that it had then, bytes; none where it had none.
    pub beside: Option<u64>,
    /// Questions in vain of this call.
    pub vain: u32,
    pub has_looked: bool,
    /// What this call has looked for in vain.
    pub sought: Option<Pattern>,
    /// Until when it sleeps, picoseconds.
    pub sleeps_until_ps: Option<u64>,
}

/// All threads that have called.
#[derive(Debug, Default)]
pub(super) struct Callers {
    /// Whether the program has begun threads.
    pub are_several: bool,
    by_thread: BTreeMap<u32, Caller>,
}

impl Callers {
    /// The thread that runs this.
    pub(super) fn me(&mut self) -> &mut Caller {
        self.by_thread.entry(thread()).or_insert(Caller {
            call: Call::Waits,
            is_inside: false,
            left_at_ns: 0,
            left_wall_ns: 0,
            works: false,
            is_of_file: false,
            completes: false,
            access: Access::None,
            is_fresh: true,
            looked_ns: 0,
            library_since_ns: None,
            library_wall_ns: None,
            beside: None,
            vain: 0,
            has_looked: false,
            sought: None,
            sleeps_until_ps: None,
        })
    }

    /// Whether no other thread has called or slept.
    pub(super) fn is_alone(&self) -> bool {
        self.by_thread.len() < 2
    }

    /// Whether any thread is in a call.
    pub(super) fn is_inside(&self) -> bool {
        self.by_thread.values().any(|caller| caller.is_inside)
    }

    /// Something has happened that may help each of them.
    pub(super) fn begin_anew(&mut self) {
        for caller in self.by_thread.values_mut() {
            caller.vain = 0;
        }
    }

    /// Whether a thread other than this can go on without a message: it runs, or is in a call and has not asked in
    /// vain for everything that could help it. One that sleeps does so when the rank's clock shows its time.
    pub(super) fn others_go_on(&self, patience: u32, clock_ps: u64) -> bool {
        if !self.are_several {
            return false;
        }
        let own = thread();
        let Ok(tasks) = std::fs::read_dir("/proc/self/task") else { return false };
        let numbers = tasks.filter_map(|task| task.ok()?.file_name().to_str()?.parse::<u32>().ok());
        numbers.filter(|&number| number != own).any(|number| match self.by_thread.get(&number) {
            Some(Caller { sleeps_until_ps: Some(until_ps), .. }) => *until_ps <= clock_ps,
            Some(caller) if caller.is_inside => caller.call != Call::Waits || caller.vain <= patience,
            _ => runs(number),
        })
    }

    /// When the first of the threads that sleep has slept.
    pub(super) fn first_sleeps_until_ps(&self) -> Option<u64> {
        self.by_thread.values().filter_map(|caller| caller.sleeps_until_ps).min()
    }
}

/// The kernel's number of this thread.
fn thread() -> u32 {
    thread_local! {
        // SAFETY: a system call that cannot fail.
        static NUMBER: u32 = unsafe { libc::gettid() } as u32;
    }
    NUMBER.with(|&number| number)
}

/// Whether a thread of this process does not sleep in the kernel.
fn runs(number: u32) -> bool {
    let Ok(text) = std::fs::read_to_string(format!("/proc/self/task/{number}/stat")) else { return false };
    // proc(5): the state is the first field behind the name in parentheses.
    text.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with(['R', 'D']))
}
