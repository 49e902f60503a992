//! Virtual clock, event queue, random streams, probes, virtual-time executor.
//!
//! - [`Schedule`]: the virtual clock and the events to come, on an [`EventQueue`].
//! - [`Executor`]: rank programs as async tasks that are woken by number.
//! - [`Trace`]: digests and recordings by which two runs are compared.
//!
//! A run is one thread, and the same run every time: events are ordered by time and then by the order
//! in which they were scheduled, tasks by the order in which they were woken.
#![no_std]

extern crate alloc;

mod event;
mod executor;
mod queue;
mod schedule;
mod trace;

pub use event::Event;
pub use executor::{BoxedTask, Executor, Handle, Ran, TaskId};
pub use queue::EventQueue;
pub use schedule::{Schedule, ScheduleError};
pub use trace::{Difference, Digest, Trace, TraceDigest, TraceEvent, TraceRecorder, Untraced};
