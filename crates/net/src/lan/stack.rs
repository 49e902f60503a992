//! A stack: the path from the program to the network, written `socket/tcp/aal5`.
//!
//! | part | choices |
//! |---|---|
//! | message layer | `fore` (the adapter's own interface), `fore+reliable` (the same with segmentation and retransmission in the program), `socket`, `framed` (messages with a head over sockets), `mpi-lam`, `mpi-mpich` (MPI with the heads and thresholds of these libraries), `mpi` (MPI with thresholds of one's own), `pvm-advise` (PVM from task to task), `pvm-normal` (PVM through its daemons), `pvm-mapped` (PVM in memory of the adapter, over a network of switches), `via` (messages straight over VIs), `mpi-mvich` (MPI over VIs), `pvm-fore` (PVM over the adapter's interface), `rpc` (remote procedure calls) |
//! | transport | `tcp`, for all but `fore`, `fore+reliable`, `pvm-fore`, `via`, `mpi-mvich` and `pvm-normal`, which has `udp` between hosts; `udp`, for `socket` and `rpc` |
//! | adaptation or network | `aal5`, `aal34` (both ATM), `ethernet`, `fddi`, `gige` |
//!
//! What does not go together is rejected, with the reason.

use std::fmt;
use std::str::FromStr;

use wiretwin_plan::PlanError;

use crate::named::named;
use Lower::{Aal5, Aal34, Ethernet, Fddi, Gige};
use Message::{
    Fore, ForeReliable, Framed, Mpi, MpiLam, MpiMpich, MpiMvich, PvmAdvise, PvmFore, PvmMapped, PvmNormal,
    Rpc, Socket, Via,
};

named! {
    /// What the program calls.
    Message:
    /// The interface of the ATM adapter's driver: PDUs on circuits, nothing repeated.
    Fore = "fore",
    /// The same below messages that are cut into PDUs and repeated where they are lost:
    /// [`wiretwin_msg::reliable`] under [`wiretwin_msg::framed`].
    ForeReliable = "fore+reliable",
    /// A stream socket, over TCP.
    Socket = "socket",
    /// Messages with a head, over stream sockets: [`wiretwin_msg::framed`].
    Framed = "framed",
    /// LAM, client to client: [`wiretwin_msg::mpi`].
    MpiLam = "mpi-lam",
    /// MPICH on p4: [`wiretwin_msg::mpi`].
    MpiMpich = "mpi-mpich",
    /// MPI as nobody's library does it, with thresholds to set: [`wiretwin_msg::mpi`].
    Mpi = "mpi",
    /// PVM, its messages over connections between tasks: [`wiretwin_msg::pvm`].
    PvmAdvise = "pvm-advise",
    /// The same, through a daemon on each host.
    PvmNormal = "pvm-normal",
    /// PVM over the interface of the ATM adapter's driver: [`wiretwin_msg::reliable`] under
    /// [`wiretwin_msg::pvm`].
    PvmFore = "pvm-fore",
    /// Remote procedure calls: [`wiretwin_msg::rpc::library`].
    Rpc = "rpc",
    /// Messages straight over VIs: [`wiretwin_msg::via::messages`].
    Via = "via",
    /// MVICH: [`wiretwin_msg::mpi::vias`].
    MpiMvich = "mpi-mvich",
    /// PVM whose tasks write into memory of the adapter that is mapped into them, over switches that lose
    /// nothing.
    PvmMapped = "pvm-mapped",
}

impl Message {
    /// Whether it speaks to its peers by VIs, not by sockets.
    #[must_use]
    pub const fn is_over_vis(self) -> bool {
        matches!(self, Self::Via | Self::MpiMvich)
    }

    /// Whether it is a library in the process, over sockets, circuits or VIs.
    #[must_use]
    pub const fn is_library(self) -> bool {
        !matches!(self, Self::Fore | Self::Socket)
    }

    /// Whether programs on it set `TCP_NODELAY`: not those that stream.
    pub(super) const fn sets_nodelay(self) -> bool {
        !matches!(self, Self::Framed)
    }

    /// Whether it is one of MPI.
    #[must_use]
    pub const fn is_mpi(self) -> bool {
        matches!(self, Self::MpiLam | Self::MpiMpich | Self::Mpi | Self::MpiMvich)
    }

    /// Whether it has circuits, and no sockets.
    #[must_use]
    pub const fn has_circuits(self) -> bool {
        matches!(self, Self::Fore | Self::ForeReliable | Self::PvmFore)
    }
}

named! {
    /// What is between the message layer and the network.
    Transport:
    /// Nothing: PDUs of the adaptation layer.
    None = "",
    /// TCP.
    Tcp = "/tcp",
    /// UDP between hosts.
    Udp = "/udp",
}

named! {
    /// What is under the message layer and its transport.
    Lower:
    /// ATM with AAL type 5.
    Aal5 = "aal5",
    /// ATM with AAL type 3/4.
    Aal34 = "aal34",
    /// Ethernet.
    Ethernet = "ethernet",
    /// FDDI.
    Fddi = "fddi",
    /// Gigabit Ethernet.
    Gige = "gige",
}

/// A stack that can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stack {
    /// The message layer.
    pub message: Message,
    /// The transport.
    pub transport: Transport,
    /// What is under it.
    pub lower: Lower,
}

/// Message layers, the transport that they have, what may be under it, and what else is to say of it.
type Path = (&'static [Message], Transport, &'static [Lower], &'static str);

/// The networks that carry IP.
const OF_IP: &[Lower] = &[Aal5, Ethernet, Fddi, Gige];

/// Every path that there is, the one that a layer has as a rule before another.
const PATHS: [Path; 6] = [
    (
        &[Fore, ForeReliable, PvmFore],
        Transport::None,
        &[Aal5, Aal34],
        "the Fore interface needs an adaptation layer of ATM, with no transport between them; its driver \
         rejects types 0, 1 and 2 and treats types 3 and 4 as one: aal34",
    ),
    (
        &[Socket, Framed, PvmAdvise, MpiLam, MpiMpich, Mpi, Rpc],
        Transport::Tcp,
        OF_IP,
        "a socket needs a transport, TCP (or UDP for socket and rpc), and a network under it; IP travels in \
         AAL 5",
    ),
    (&[PvmNormal], Transport::Udp, OF_IP, "daemons speak UDP to each other"),
    (&[Socket, Rpc], Transport::Udp, OF_IP, ""),
    (
        &[Via, MpiMvich],
        Transport::None,
        &[Gige],
        "a VI is a connection of its own between adapters of Gigabit Ethernet, with no transport",
    ),
    (&[PvmMapped], Transport::None, &[Aal5], "mapped memory is that of an ATM adapter: pvm-mapped/aal5"),
];

impl Stack {
    /// Every stack that there is.
    pub fn all() -> impl Iterator<Item = Self> {
        PATHS.into_iter().flat_map(|(messages, transport, lowers, _)| {
            let over = move |message| lowers.iter().map(move |&lower| Self { message, transport, lower });
            messages.iter().copied().flat_map(over)
        })
    }

    /// Whether the network is ATM.
    #[must_use]
    pub const fn is_atm(&self) -> bool {
        matches!(self.lower, Aal5 | Aal34)
    }

    /// Whether it can be that of very many hosts: a message layer over TCP and a switch of Ethernet.
    pub(super) const fn has_many_hosts(&self) -> bool {
        matches!((self.transport, self.lower), (Transport::Tcp, Gige)) && self.message.is_library()
    }
}

impl fmt::Display for Stack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}/{}", self.message.name(), self.transport.name(), self.lower.name())
    }
}

impl FromStr for Stack {
    type Err = PlanError;

    fn from_str(text: &str) -> Result<Self, PlanError> {
        Self::all().find(|stack| stack.to_string() == text).ok_or_else(|| {
            let message = text.split('/').next();
            let named = |layers: &[Message]| layers.iter().any(|layer| Some(layer.name()) == message);
            let path = PATHS.iter().find(|(layers, ..)| named(layers));
            let why = path.map_or("there is no such stack", |(.., why)| why);
            let names: Vec<_> = Self::all().map(|stack| stack.to_string()).collect();
            PlanError::new("stack", text, format!("{} ({why})", names.join(", ")))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stack_reads_and_prints_as_its_name() {
        for stack in Stack::all() {
            assert_eq!(stack.to_string().parse(), Ok(stack));
        }
        assert_eq!(Stack::all().count(), 49);
    }

    #[test]
    fn what_does_not_go_together_is_refused_with_the_reason() {
        for (text, part) in [
            ("fore/aal1", "types 0, 1 and 2"),
            ("fore/ethernet", "needs an adaptation layer"),
            ("fore/tcp/aal5", "no transport between them"),
            ("fore+reliable/ethernet", "needs an adaptation layer"),
            ("pvm-fore/tcp/aal5", "no transport between them"),
            ("pvm-fore/aal4", "as one: aal34"),
            ("socket/aal5", "needs a transport"),
            ("socket/tcp", "a network under it"),
            ("socket/udp", "a network under it"),
            ("socket/udp/aal34", "AAL 5"),
            ("rpc/udp", "a network under it"),
            ("rpc/udp/aal34", "AAL 5"),
            ("pvm-normal/tcp/aal5", "UDP"),
            ("pvm-advise/udp/aal5", "TCP"),
            ("pvm-advise/aal5", "needs a transport"),
            ("via/tcp/gige", "a connection of its own"),
            ("mpi-mvich/fddi", "adapters of Gigabit Ethernet"),
            ("pvm-mapped/tcp/aal5", "pvm-mapped/aal5"),
            ("carrier/pigeon", "no such stack"),
            ("", "no such stack"),
        ] {
            let error = text.parse::<Stack>().unwrap_err().to_string();
            assert!(error.contains(part) && error.contains("fore/aal5"), "{error}");
        }
    }
}
