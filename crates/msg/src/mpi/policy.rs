//! What tells one message layer from another.

use core::fmt;

use wiretwin_units::Bytes;

use super::credit::Flow;
use super::packet::HEAD;

/// How a synchronous send learns that its receive has matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SynchronousSend {
    /// A short one goes eagerly, and the receiver acknowledges it.
    Acknowledged,
    /// It always goes by rendezvous.
    Rendezvous,
}

/// How the data of a rendezvous go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Data {
    /// The sender sends them when it may.
    Sent,
    /// The sender writes them into the memory of the receive, and says when it has.
    Put,
    /// The receiver fetches them from the memory of the send, and says when it has.
    Get,
}

/// A message layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Its name.
    pub name: &'static str,
    /// The first length that goes by rendezvous; `None` for all eager.
    pub rendezvous_from: Option<Bytes>,
    /// The first length whose data are written apart from the head; where heads and data are one
    /// write, none is.
    pub apart_from: Option<Bytes>,
    /// The head of the carrier below is a write of its own before each packet.
    pub head_apart: bool,
    /// How the data of a rendezvous go.
    pub data: Data,
    /// Synchronous sends.
    pub synchronous: SynchronousSend,
    /// A message that a receive waits for still goes through a buffer of the library.
    pub always_buffered: bool,
    /// Eager octets that a rank may have sent to another without their having been matched, each message counted
    /// with what it takes at least ([`Policy::held`]); more goes by rendezvous, so that what is kept for nobody is
    /// bounded. `None`: no bound.
    pub window: Option<Bytes>,
    /// Buffers that a rank may fill at another; `None` where the transport stops the sender.
    pub flow: Option<Flow>,
    /// Memory is registered before data are put or got; so many regions stay registered.
    pub registrations: Option<u32>,
    /// The size of both socket buffers that it asks for.
    pub socket_buffers: Option<Bytes>,
}

/// Why a policy cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicyError {
    /// An eager message may need more buffers than a sender ever has.
    BuffersTooFew {
        /// What the longest needs.
        needed: u32,
        /// What a sender may fill with messages.
        allowed: u32,
    },
    /// Without rendezvous there is no end to what flow control would have to hold.
    NoRendezvous {
        /// The field that needs it.
        field: &'static str,
    },
    /// No buffer may stay, or no octet fit.
    Nothing {
        /// The field.
        field: &'static str,
    },
    /// A packet that returns a buffer takes one: two ranks would return each other's for ever.
    ReturnsEachReturn,
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuffersTooFew { needed, allowed } => {
                write!(f, "an eager message needs {needed} buffers, at most {allowed} can be filled")
            }
            Self::NoRendezvous { field } => write!(f, "{field} needs a length from which rendezvous begins"),
            Self::Nothing { field } => write!(f, "{field} is 0, and must be at least 1"),
            Self::ReturnsEachReturn => f.write_str("flow.return_after is 1: each return would be returned"),
        }
    }
}

impl core::error::Error for PolicyError {}

/// What two peers must have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// See [`Policy::rendezvous_from`].
    pub rendezvous_from: Option<Bytes>,
    /// See [`Policy::apart_from`].
    pub apart_from: Option<Bytes>,
    /// See [`Policy::data`].
    pub data: Data,
    /// See [`Policy::synchronous`].
    pub synchronous: SynchronousSend,
    /// See [`Policy::window`].
    pub window: Option<Bytes>,
    /// See [`Policy::flow`].
    pub flow: Option<Flow>,
}

/// What two peers do not have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The first field that differs.
    pub field: &'static str,
    /// The same as a reason.
    pub reason: &'static str,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.reason)
    }
}

impl core::error::Error for Mismatch {}

impl Terms {
    /// Whether a peer's are the same.
    ///
    /// # Errors
    /// [`Mismatch`].
    pub fn agree(&self, theirs: &Self) -> Result<(), Mismatch> {
        macro_rules! field {
            ($name:literal, $differs:expr) => {
                ($differs, Mismatch { field: $name, reason: concat!("the peer has another ", $name) })
            };
        }
        let differs = [
            field!("rendezvous threshold", self.rendezvous_from != theirs.rendezvous_from),
            field!("length from which data are apart", self.apart_from != theirs.apart_from),
            field!("way of data", self.data != theirs.data),
            field!("way of synchronous sends", self.synchronous != theirs.synchronous),
            field!("eager window", self.window != theirs.window),
            field!("flow control", self.flow != theirs.flow),
        ];
        differs.into_iter().find(|(differs, _)| *differs).map_or(Ok(()), |(_, mismatch)| Err(mismatch))
    }
}

impl Policy {
    /// Octets that a message takes of the window: an envelope is kept of one without data too.
    pub fn held(&self, bytes: Bytes) -> Bytes {
        bytes.max(Bytes::new(HEAD))
    }

    /// Octets of LAM's envelope.
    pub const LAM_ENVELOPE: Bytes = Bytes::new(24);

    /// LAM 6.3, client to client (Ong & Farrell 2000; LAM 7 for what they do not say): a message goes with
    /// its envelope in one write, one of the threshold or longer when its receive has matched. The
    /// threshold is 64 KiB as shipped; both socket buffers have its size and that of an envelope.
    pub fn lam(threshold: Bytes) -> Self {
        Self {
            name: "mpi-lam",
            rendezvous_from: Some(threshold),
            apart_from: None,
            head_apart: false,
            data: Data::Sent,
            synchronous: SynchronousSend::Acknowledged,
            always_buffered: false,
            window: None,
            flow: None,
            registrations: None,
            socket_buffers: Some(threshold + Self::LAM_ENVELOPE),
        }
    }

    /// MPICH 1.1.2 on p4 (Ong & Farrell 2000; the sources of 1.2 for what they do not say): data of less
    /// than 1024 octets in the packet, of less than 128 000 in a second one behind it, by rendezvous from
    /// there; everything is read into a buffer first; socket buffers of 4096 octets. p4 writes its own head and
    /// what is behind it one after the other (*Choice*: 1.2 writes both at once unless it is told not to, and
    /// two writes are believed of what came before).
    pub fn mpich() -> Self {
        Self {
            name: "mpi-mpich",
            rendezvous_from: Some(Bytes::new(128_000)),
            apart_from: Some(Bytes::new(1024)),
            head_apart: true,
            data: Data::Sent,
            synchronous: SynchronousSend::Rendezvous,
            always_buffered: true,
            window: None,
            flow: None,
            registrations: None,
            socket_buffers: Some(Bytes::new(4096)),
        }
    }

    /// MVICH over VIA (the lineage of MVAPICH): eager through buffers posted beforehand, which are counted;
    /// from 16 KiB the data are written into the receive's memory, whose registration is kept.
    pub fn mvich() -> Self {
        Self {
            name: "mpi-mvich",
            rendezvous_from: Some(Bytes::kib(16)),
            apart_from: None,
            head_apart: false,
            data: Data::Put,
            synchronous: SynchronousSend::Rendezvous,
            always_buffered: true,
            window: None,
            flow: Some(Flow { buffers: 32, reserve: 10, return_after: 5, buffer: Bytes::kib(2) }),
            registrations: Some(64),
            socket_buffers: None,
        }
    }

    /// None of those: eager up to 64 KiB and 1 MiB unmatched, fetched by the receiver beyond.
    pub fn general() -> Self {
        Self {
            name: "mpi",
            rendezvous_from: Some(Bytes::kib(64)),
            apart_from: None,
            head_apart: false,
            data: Data::Get,
            synchronous: SynchronousSend::Acknowledged,
            always_buffered: false,
            window: Some(Bytes::mib(1)),
            flow: None,
            registrations: Some(64),
            socket_buffers: None,
        }
    }

    /// The same over connections, which carry nobody's memory and stop a sender by themselves: data are sent,
    /// and there is no window.
    #[must_use]
    pub fn over_streams() -> Self {
        Self { data: Data::Sent, window: None, registrations: None, ..Self::general() }
    }

    /// What a peer must have too.
    pub const fn terms(&self) -> Terms {
        Terms {
            rendezvous_from: self.rendezvous_from,
            apart_from: self.apart_from,
            data: self.data,
            synchronous: self.synchronous,
            window: self.window,
            flow: self.flow,
        }
    }

    /// Whether it can be.
    ///
    /// # Errors
    /// [`PolicyError`].
    pub fn check(&self) -> Result<(), PolicyError> {
        let Some(from) = self.rendezvous_from else {
            return match (self.window, self.flow) {
                (Some(_), _) => Err(PolicyError::NoRendezvous { field: "window" }),
                (_, Some(_)) => Err(PolicyError::NoRendezvous { field: "flow" }),
                _ => Ok(()),
            };
        };
        if self.registrations == Some(0) {
            return Err(PolicyError::Nothing { field: "registrations" });
        }
        let Some(flow) = self.flow else { return Ok(()) };
        if flow.return_after == 0 {
            return Err(PolicyError::Nothing { field: "flow.return_after" });
        }
        if flow.return_after == 1 {
            return Err(PolicyError::ReturnsEachReturn);
        }
        if flow.buffer <= Bytes::new(super::packet::HEAD) {
            return Err(PolicyError::Nothing { field: "octets of a message in a buffer" });
        }
        // Of those that were emptied, as many may be on nobody's way back as are too few to return.
        let held = flow.reserve + flow.return_after - 1;
        let needed = flow.needed(Bytes::new(from.get().saturating_sub(1)));
        let allowed = flow.buffers.saturating_sub(held);
        if needed > allowed {
            return Err(PolicyError::BuffersTooFew { needed, allowed });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_named_policies_can_be_and_differ() {
        let all = [Policy::lam(Bytes::kib(64)), Policy::mpich(), Policy::mvich(), Policy::general()];
        for (at, policy) in all.iter().enumerate() {
            assert_eq!(policy.check(), Ok(()), "{}", policy.name);
            for (other_at, other) in all.iter().enumerate() {
                assert_eq!(policy.terms().agree(&other.terms()).is_ok(), at == other_at);
            }
        }
        let lam = Policy::lam(Bytes::kib(128));
        assert_eq!(lam.socket_buffers, Some(Bytes::new(131_096)));
        let mismatch = lam.terms().agree(&all[0].terms()).unwrap_err();
        assert_eq!(mismatch.field, "rendezvous threshold");
        assert_eq!(alloc::format!("{mismatch}"), "the peer has another rendezvous threshold");
    }

    #[test]
    fn what_cannot_be_is_named() {
        let flow = Flow { buffers: 12, ..Policy::mvich().flow.expect("it counts buffers") };
        let few = Policy { flow: Some(flow), ..Policy::mvich() };
        assert_eq!(few.check(), Err(PolicyError::BuffersTooFew { needed: 9, allowed: 0 }));
        let each = Flow { return_after: 1, ..flow };
        let each = Policy { flow: Some(each), ..Policy::mvich() };
        assert_eq!(each.check(), Err(PolicyError::ReturnsEachReturn));
        let all_eager = Policy { rendezvous_from: None, ..Policy::general() };
        assert_eq!(all_eager.check(), Err(PolicyError::NoRendezvous { field: "window" }));
        assert_eq!(Policy { window: None, ..all_eager }.check(), Ok(()));
        let none = Policy { registrations: Some(0), ..Policy::general() };
        assert_eq!(none.check(), Err(PolicyError::Nothing { field: "registrations" }));
    }
}
