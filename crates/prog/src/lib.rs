//! The Comm interface and the message-passing programs written to it.
//!
//! A program takes `&mut impl Comm` and has no way to ask whether the world behind it is live or
//! simulated.

mod alone;
pub mod cast;
mod comm;
mod data;
pub mod echo;
mod grid;
mod halo;
pub mod jacobi;
pub mod md;
pub mod mm;
pub mod netpipe;
mod outcome;
pub mod pde;
pub mod pde1;
pub mod pde2;
mod program;
mod recorded;
mod reference;
pub mod ring;
pub mod stream;

pub use comm::{
    Comm, CommError, Incoming, NO_GROUPS, Outgoing, Rank, Source, Status, Tag, TagMatch, Work, to_each,
};
pub use data::digest_of;
pub use grid::Mesh;
pub use outcome::{Outcome, Point, ProgramError};
pub use program::{Parameter, Program};
pub use recorded::{Recorded, Sent};
pub use reference::Reference;
