//! What the benches in Rust share: arguments, medians over turns, bare references.

mod arguments;
mod cells;
mod heap;
mod turns;

pub use arguments::Arguments;
pub use cells::bare_cells;
pub use heap::PlainHeap;
pub use turns::{Turns, median};
