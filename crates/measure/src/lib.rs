//! Measuring loops over `Comm`: echo, two writes, stream, parametrised round trip, and the time
//! inside a send or a receive.
//!
//! Written once, for any world. Rank 0 leads: it decides how often to repeat and tells rank 1
//! through the same `Comm`, as NetPIPE does. What any number of ranks do together is led likewise
//! ([`Group`]). Samples are raw: nothing is dropped, averaged or corrected here, except that the first
//! iteration is kept apart.

mod control;
mod loops;
mod paged;
mod pairs;
mod plan;
mod run;
mod together;

pub use loops::Kind;
pub use plan::{Step, choose_batch, next_chunk};
pub use run::{Follower, Leader, Samples, Settings};
pub use together::{Deed, Doing, Group, GroupSamples, Together};
