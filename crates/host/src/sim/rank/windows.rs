//! Windows of a library in memory that the ranks of a host share, or reach without its owner's help.
//!
//! What one rank does there another sees when it next looks, and no message tells it to. So a call that orders what ranks do
//! to windows begins when the world has come to its time, and others that wait are told, when it ends or waits itself, to
//! look again. One that finds nothing changed and waits on tells those back, for it may have done for them what they ask of
//! it: a library's own words in shared memory are taken up within its calls.
//!
//! What such a call does is not in the costs of messages, and is charged as measured, but for looks before a wait.

use wiretwin_msg::tagged::Pattern;

use super::{Call, Rank};
use crate::sim::shared::{Ask, AskKind};

/// So often ranks that wait tell each other, with nothing else happening in between.
const TOLD: u64 = 16;
/// The same, where one has a message under way, which it more likely waits for.
const TOLD_UNDER_WAY: u64 = 2;

/// More questions than this are not asked in vain in one go: a tenth of a second of this machine.
const MOST_TO_ASK: u32 = 1 << 20;

/// What a call does to windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::sim) enum Access {
    /// Nothing.
    None,
    /// It makes one.
    Makes,
    /// It moves data, in an order that other calls make.
    Moves,
    /// It is ordered among those of other ranks, or orders what others do.
    Orders,
    /// It only sees what others have done before its time.
    Sees,
}

impl Access {
    /// What a function of MPI does.
    pub(super) fn of(function: &[u8]) -> Self {
        let name = function.strip_prefix(b"P").unwrap_or(function);
        let name = name.strip_prefix(b"MPI_").unwrap_or(name);
        let short = name.strip_suffix(b"_c").unwrap_or(name);
        let begins = |words: &[&[u8]]| words.iter().any(|word| name.starts_with(word));
        if begins(&[b"Win_create", b"Win_allocate"]) {
            Self::Makes
        } else if begins(&[b"Win_", b"Fetch_and_op", b"Compare_and_swap", b"Get_accumulate", b"Rget_acc"]) {
            Self::Orders
        } else if matches!(short, b"Put" | b"Get" | b"Accumulate" | b"Rput" | b"Rget" | b"Raccumulate") {
            Self::Moves
        } else {
            Self::None
        }
    }

    /// Whether what the library does in the call is charged, however short it is.
    pub(super) const fn is_charged(self) -> bool {
        matches!(self, Self::Moves | Self::Orders)
    }
}

/// Whether a function of MPI waits for what was done to a window.
pub(super) fn completes(function: &[u8]) -> bool {
    let name = function.strip_prefix(b"P").unwrap_or(function);
    let words: [&[u8]; 5] = [b"unlock", b"flush", b"fence", b"complete", b"free"];
    name.strip_prefix(b"MPI_Win_").is_some_and(|rest| words.iter().any(|word| rest.starts_with(word)))
}

impl Rank {
    /// Allows the library so many more polls without a result before it is taken to wait, until a call that completes
    /// what has been done to a window.
    pub fn will_ask(&mut self, questions: u32) {
        self.to_ask = self.to_ask.saturating_add(questions).min(MOST_TO_ASK);
    }

    /// What a call that begins does to windows which messages do not reach.
    pub(super) fn accesses(&self, name: &[u8], call: Call) -> Access {
        match (Access::of(name), call) {
            // What is reached without the library has no order that a library makes.
            (Access::Orders, Call::Reaches) if name.starts_with(b"MPI_Win_") => Access::Sees,
            (access, Call::Reaches) => access,
            (access, _) if self.given.windows_in_memory != 0 => access,
            _ => Access::None,
        }
    }

    /// A call has begun: one that is ordered among those of others waits until all have come to its time.
    pub(super) fn begin_access(&mut self, access: Access) {
        self.told = 0;
        if matches!(access, Access::Orders | Access::Sees) {
            self.ask(Ask::new(AskKind::Now));
            self.hand_over();
        }
    }

    /// A call ends: others may look what it has done.
    pub(super) fn end_access(&mut self, access: Access) {
        self.has_windows |= access == Access::Makes;
        if access == Access::Orders {
            self.ask(Ask { length: 0, ..Ask::new(AskKind::Tell) });
        }
    }

    /// Asks to wait for what can help the library on: what has been begun, a message, or what another rank does in memory.
    pub(super) fn ask_to_wait(&mut self, pattern: Option<&Pattern>) {
        if self.has_windows {
            if self.is_under_way() {
                self.told = self.told.max(TOLD - TOLD_UNDER_WAY);
            }
            if self.told < TOLD {
                self.ask(Ask { length: self.told, ..Ask::new(AskKind::Tell) });
            }
            self.callers.me().looked_ns = 0;
        }
        // A call that only looks goes on where nothing comes.
        let kind = if self.callers.me().call == Call::Looks { AskKind::Seek } else { AskKind::Watch };
        let ask = pattern.map_or(Ask::new(kind), |pattern| Self::pattern(kind, pattern));
        self.ask(Ask { length: u64::from(self.has_windows), ..ask });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_told_by_what_they_do_to_windows() {
        for (name, access) in [
            (&b"MPI_Win_create"[..], Access::Makes),
            (b"PMPI_Win_allocate_shared", Access::Makes),
            (b"MPI_Win_unlock_all", Access::Orders),
            (b"MPI_Rget_accumulate", Access::Orders),
            (b"MPI_Rget", Access::Moves),
            (b"MPI_Put", Access::Moves),
            (b"MPI_Get_c", Access::Moves),
            (b"MPI_Gather", Access::None),
        ] {
            assert_eq!(Access::of(name), access, "{}", String::from_utf8_lossy(name));
        }
    }
}
