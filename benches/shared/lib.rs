//! What the benches in Rust share: arguments, medians over turns, bare references.

mod arguments;
mod cells;
mod events;
mod heap;
mod packets;
mod turns;

pub use arguments::Arguments;
pub use cells::{bare_cells, bare_switch};
pub use heap::PlainHeap;
pub use packets::{TREE_HOSTS, bare_dumbbell, bare_tree, partners};
pub use turns::{Turns, median};
