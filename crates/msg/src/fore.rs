//! The Fore interface to an ATM adapter, and SPANS, the signalling of Fore's switches.
//!
//! Two machines: the driver of a host, which a process calls, and the call control of a switch. Between them go
//! the messages of [`wiretwin_wire::spans`] on a channel of their own; a driver's PDUs go to the adapter. The
//! interface hands over PDUs of at most 4 KB, in order, and says nothing of those that are lost.
//!
//! | file | idea |
//! |---|---|
//! | `types` | what calls take, and why they fail |
//! | `driver` | calls, descriptors, the host's side of signalling |
//! | `switch` | call control: channels, trees, its processor |
//! | `bandwidth` | what is reserved, and rejected |
//! | `ask` | the same calls as system calls of a library |

pub mod ask;
pub mod bandwidth;
pub mod driver;
pub mod switch;
pub mod types;

pub use ask::{Answer, Ask, Sign};
pub use bandwidth::Bandwidth;
pub use driver::Driver;
pub use switch::CallControl;
pub use types::{CallId, Dataflow, Descriptor, Endpoint, Error, Qos, RequestId, Want};

#[cfg(test)]
mod testbed;
#[cfg(test)]
mod tests;
