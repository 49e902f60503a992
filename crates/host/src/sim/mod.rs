//! Real processes whose messages and whose time are simulated: the memory in which they meet the simulator.
//!
//! A rank is a process of its own that calls into a [`Rank`]: what it asks for is written down until it has to
//! wait, and then the simulator, which owns an [`Arena`], has the turn. It reads what was asked, moves its world on
//! and gives the turn to the rank whose time comes next. So one process works at a time, and none needs a lock.
//! The bytes of messages are copied through the same memory.

mod arena;
mod callers;
mod heap;
mod rank;
mod shared;

pub use arena::{Arena, Turn};
pub use rank::{Call, Rank, RankError, with_rank};
pub use shared::{Answer, Ask, AskKind, Given, Head, TOLD};
