//! MPI point to point: one machine, and the message layers of its time as policies.
//!
//! MPI-1.1 chapter 3. A message goes eagerly, with its envelope, or by rendezvous: the envelope first, the
//! data when a receive has matched. Which, when a send is done, who copies, and how many buffers a peer may
//! fill is a [`Policy`]; [`Policy::lam`], [`Policy::mpich`] and [`Policy::mvich`] are named ones, and every
//! threshold is a user's to set. [`Machine`] matches (with [`crate::matching`]), and says which [`Packet`]s
//! go to which rank; [`stream`] carries them over connections with the heads of each library, [`vias`] over
//! VIs.
//!
//! Left out: datatypes (a message is octets), communicators beyond their context number.

mod credit;
mod machine;
mod packet;
mod policy;
pub mod stream;
pub mod vias;

pub use credit::{Credits, Flow};
pub use machine::{
    Done, Event, Failure, Found, Incoming, Machine, MachineOutput, Misuse, Outgoing, Received, Transmit,
};
pub use packet::{Kind, Packet};
pub use policy::{Data, Mismatch, Policy, PolicyError, SynchronousSend, Terms};

use wiretwin_proto::{MessageId, Output};
use wiretwin_units::{Bytes, SimTime};

use crate::library;
use crate::matching::Pattern;

/// What a library that carries the packets tells its process of it.
fn told(done: Done) -> Option<library::Done> {
    Some(match done {
        Done::Sent(request) => library::Done::Sent(request),
        Done::Received(received) => {
            // Data come with every message, if only a range of none.
            let message = received.body.map_or(MessageId(0), |body| body.message);
            library::Done::Received { request: received.request, message }
        }
        Done::Failed { request, failure } => {
            let failure = match failure {
                Failure::PeerLost { rank } => library::Failure::PeerLost { rank },
                Failure::Mismatch { mismatch, .. } => library::Failure::Refused(mismatch.reason),
            };
            library::Done::Failed { request, failure }
        }
        Done::Cancelled { request, done: true } => library::Done::Cancelled(request),
        // It goes on, and ends as it would have.
        Done::Cancelled { done: false, .. } => return None,
    })
}

/// Posts a receive to the machine of a library that carries the packets; what it tells its process where that is
/// rejected.
fn post_receive(
    machine: &mut Machine,
    now: SimTime,
    request: library::Request,
    pattern: Pattern,
    capacity: Bytes,
) -> Option<library::LibraryOutput> {
    let posted = machine.receive(now, request, Incoming { pattern, capacity, buffer: 0 });
    let failure = library::Failure::Refused("a rank that is not there");
    posted.is_err().then_some(Output::Deliver(library::Done::Failed { request, failure }))
}
