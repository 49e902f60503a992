//! Virtual clock, event queue, random streams, virtual-time executor.
//!
//! - [`Schedule`]: the virtual clock and the events to come, on an [`EventQueue`].
//! - [`Executor`]: rank programs as async tasks that are woken by number.
//! - [`Stream`]: random numbers by the name of who draws them.
//! - [`Slab`]: things by number, whose places are used again.
//! - [`Trace`]: digests and recordings by which two runs are compared.
//!
//! A run is one thread, and the same run every time: events are ordered by time and then by the order
//! in which they were scheduled, tasks by the order in which they were woken.
#![no_std]

extern crate alloc;

mod event;
mod executor;
mod queue;
mod random;
mod schedule;
mod slab;
mod trace;

pub use event::{Event, EventSink};
pub use executor::{BoxedTask, Executor, Handle, Ran, TaskId};
pub use queue::EventQueue;
pub use random::{DEFAULT_SEED, NotAProbability, Probability, Stream};
pub use schedule::{Schedule, ScheduleError};
pub use slab::Slab;
pub use trace::{Difference, Digest, Trace, TraceDigest, TraceEvent, TraceRecorder, Untraced};
