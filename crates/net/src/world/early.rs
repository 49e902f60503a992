//! Messages that come before anybody has asked for them, while their receiver is in the library.
//!
//! A library that waits reads whatever has come, and with one message those that came while the core was at work on it. It
//! keeps in memory of its own what no receive was posted for, and has to get that memory first: once in a process.

use super::World;
use super::state::Message;
use crate::model::{FirstCall, Reach};

/// Which of the first calls are of this name, as bits: of those that a call is, or of those that are early messages.
pub(super) fn bits(firsts: &[FirstCall], name: Option<&str>, early: bool) -> u64 {
    let of = firsts.iter().enumerate().filter(|(_, first)| {
        first.early_from.is_some() == early
            && name.is_none_or(|name| first.calls.iter().any(|call| call == name))
    });
    of.fold(0, |bits, (index, _)| bits | 1 << index)
}

impl World {
    /// Tells of a message whose receive was posted at `posted_at` whether the library had read it before.
    pub(super) fn note_early(&mut self, index: u32, posted_at: u64) {
        if self.early == 0 {
            return;
        }
        let message = &self.messages[index as usize];
        let Message { destination, arrival, cleared_at: before, early, .. } = *message;
        let entered = self.ranks[destination as usize].in_library_since;
        let behind = before > 0 && posted_at > before;
        let found = posted_at > arrival && entered > arrival && entered < posted_at;
        self.messages[index as usize].early = early || behind || found;
    }

    /// What it takes to keep a message that `rank` takes in now, if it is the first of such that the rank gets.
    pub(super) fn early_ps(&mut self, rank: u32, index: u32) -> u64 {
        let message = &self.messages[index as usize];
        let state = &mut self.ranks[rank as usize];
        let looks = self.looks_of[state.name as usize];
        let mut new = if message.early { self.early } else { looks } & !state.firsts_done;
        if new == 0 || message.reach != Reach::Between || !message.transfer.protocol().pushes_at_once() {
            return 0;
        }
        let mut takes = 0;
        while new != 0 {
            let number = new.trailing_zeros();
            let first = &self.model.first[number as usize];
            if first.early_from.is_some_and(|from| message.bytes >= from.get()) {
                state.firsts_done |= 1 << number;
                takes += first.takes.as_ps();
            }
            new &= new - 1;
        }
        takes
    }
}
