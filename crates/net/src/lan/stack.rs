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

/// What the program calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// The interface of the ATM adapter's driver: PDUs on circuits, nothing repeated.
    Fore,
    /// The same below messages that are cut into PDUs and repeated where they are lost:
    /// [`wiretwin_msg::reliable`] under [`wiretwin_msg::framed`].
    ForeReliable,
    /// A stream socket, over TCP.
    Socket,
    /// Messages with a head, over stream sockets: [`wiretwin_msg::framed`].
    Framed,
    /// LAM, client to client: [`wiretwin_msg::mpi`].
    MpiLam,
    /// MPICH on p4: [`wiretwin_msg::mpi`].
    MpiMpich,
    /// MPI as nobody's library does it, with thresholds to set: [`wiretwin_msg::mpi`].
    Mpi,
    /// PVM, its messages over connections between tasks: [`wiretwin_msg::pvm`].
    PvmAdvise,
    /// The same, through a daemon on each host.
    PvmNormal,
    /// PVM over the interface of the ATM adapter's driver: [`wiretwin_msg::reliable`] under
    /// [`wiretwin_msg::pvm`].
    PvmFore,
    /// Remote procedure calls: [`wiretwin_msg::rpc::library`].
    Rpc,
    /// Messages straight over VIs: [`wiretwin_msg::via::messages`].
    Via,
    /// MVICH: [`wiretwin_msg::mpi::vias`].
    MpiMvich,
    /// PVM whose tasks write into memory of the adapter that is mapped into them, over switches that lose
    /// nothing.
    PvmMapped,
}

impl Message {
    const fn name(self) -> &'static str {
        match self {
            Self::Fore => "fore",
            Self::ForeReliable => "fore+reliable",
            Self::Socket => "socket",
            Self::Framed => "framed",
            Self::MpiLam => "mpi-lam",
            Self::MpiMpich => "mpi-mpich",
            Self::Mpi => "mpi",
            Self::PvmAdvise => "pvm-advise",
            Self::PvmNormal => "pvm-normal",
            Self::PvmFore => "pvm-fore",
            Self::Rpc => "rpc",
            Self::Via => "via",
            Self::MpiMvich => "mpi-mvich",
            Self::PvmMapped => "pvm-mapped",
        }
    }

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

/// What is between the message layer and the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// Nothing: PDUs of the adaptation layer.
    None,
    /// TCP.
    Tcp,
    /// UDP between hosts.
    Udp,
}

/// What is under the message layer and its transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lower {
    /// ATM with AAL type 5.
    Aal5,
    /// ATM with AAL type 3/4.
    Aal34,
    /// Ethernet.
    Ethernet,
    /// FDDI.
    Fddi,
    /// Gigabit Ethernet.
    Gige,
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

/// Why a text is no stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StackError {
    /// The text.
    pub stack: String,
    /// Why not.
    pub reason: String,
}

impl fmt::Display for StackError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "stack {:?}: {}; allowed: {}", self.stack, self.reason, Stack::names())
    }
}

impl std::error::Error for StackError {}

impl Stack {
    /// The names of the stacks that there are.
    #[must_use]
    pub fn names() -> String {
        Self::ALL.map(|stack| stack.to_string()).join(", ")
    }

    /// Whether the network is ATM.
    #[must_use]
    pub const fn is_atm(&self) -> bool {
        matches!(self.lower, Lower::Aal5 | Lower::Aal34)
    }

    /// Whether it can be that of very many hosts: a message layer over TCP and a switch of Ethernet.
    pub(super) const fn has_many_hosts(&self) -> bool {
        matches!((self.transport, self.lower), (Transport::Tcp, Lower::Gige)) && self.message.is_library()
    }

    const fn circuits(message: Message, lower: Lower) -> Self {
        Self { message, transport: Transport::None, lower }
    }

    const fn tcp(message: Message, lower: Lower) -> Self {
        Self { message, transport: Transport::Tcp, lower }
    }

    /// Every stack that there is.
    pub const ALL: [Self; 49] = [
        Self::circuits(Message::Fore, Lower::Aal5),
        Self::circuits(Message::Fore, Lower::Aal34),
        Self::circuits(Message::ForeReliable, Lower::Aal5),
        Self::circuits(Message::ForeReliable, Lower::Aal34),
        Self::circuits(Message::PvmFore, Lower::Aal5),
        Self::circuits(Message::PvmFore, Lower::Aal34),
        Self::tcp(Message::Socket, Lower::Aal5),
        Self::tcp(Message::Socket, Lower::Ethernet),
        Self::tcp(Message::Socket, Lower::Fddi),
        Self::tcp(Message::Framed, Lower::Aal5),
        Self::tcp(Message::Framed, Lower::Ethernet),
        Self::tcp(Message::Framed, Lower::Fddi),
        Self::tcp(Message::PvmAdvise, Lower::Aal5),
        Self::tcp(Message::PvmAdvise, Lower::Ethernet),
        Self::tcp(Message::PvmAdvise, Lower::Fddi),
        Self { message: Message::Socket, transport: Transport::Udp, lower: Lower::Aal5 },
        Self { message: Message::Socket, transport: Transport::Udp, lower: Lower::Ethernet },
        Self { message: Message::Socket, transport: Transport::Udp, lower: Lower::Fddi },
        Self { message: Message::Socket, transport: Transport::Udp, lower: Lower::Gige },
        Self { message: Message::PvmNormal, transport: Transport::Udp, lower: Lower::Aal5 },
        Self { message: Message::PvmNormal, transport: Transport::Udp, lower: Lower::Ethernet },
        Self { message: Message::PvmNormal, transport: Transport::Udp, lower: Lower::Fddi },
        Self::tcp(Message::Socket, Lower::Gige),
        Self::tcp(Message::Framed, Lower::Gige),
        Self::tcp(Message::PvmAdvise, Lower::Gige),
        Self::tcp(Message::MpiLam, Lower::Aal5),
        Self::tcp(Message::MpiLam, Lower::Ethernet),
        Self::tcp(Message::MpiLam, Lower::Fddi),
        Self::tcp(Message::MpiLam, Lower::Gige),
        Self::tcp(Message::MpiMpich, Lower::Aal5),
        Self::tcp(Message::MpiMpich, Lower::Ethernet),
        Self::tcp(Message::MpiMpich, Lower::Fddi),
        Self::tcp(Message::MpiMpich, Lower::Gige),
        Self { message: Message::PvmNormal, transport: Transport::Udp, lower: Lower::Gige },
        Self::tcp(Message::Rpc, Lower::Aal5),
        Self::tcp(Message::Rpc, Lower::Ethernet),
        Self::tcp(Message::Rpc, Lower::Fddi),
        Self::tcp(Message::Rpc, Lower::Gige),
        Self { message: Message::Via, transport: Transport::None, lower: Lower::Gige },
        Self { message: Message::MpiMvich, transport: Transport::None, lower: Lower::Gige },
        Self { message: Message::PvmMapped, transport: Transport::None, lower: Lower::Aal5 },
        Self { message: Message::Rpc, transport: Transport::Udp, lower: Lower::Aal5 },
        Self { message: Message::Rpc, transport: Transport::Udp, lower: Lower::Ethernet },
        Self { message: Message::Rpc, transport: Transport::Udp, lower: Lower::Fddi },
        Self { message: Message::Rpc, transport: Transport::Udp, lower: Lower::Gige },
        Self::tcp(Message::Mpi, Lower::Aal5),
        Self::tcp(Message::Mpi, Lower::Ethernet),
        Self::tcp(Message::Mpi, Lower::Fddi),
        Self::tcp(Message::Mpi, Lower::Gige),
    ];
}

impl fmt::Display for Stack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let transport = match self.transport {
            Transport::None => "",
            Transport::Tcp => "/tcp",
            Transport::Udp => "/udp",
        };
        let lower = match self.lower {
            Lower::Aal5 => "aal5",
            Lower::Aal34 => "aal34",
            Lower::Ethernet => "ethernet",
            Lower::Fddi => "fddi",
            Lower::Gige => "gige",
        };
        write!(f, "{}{transport}/{lower}", self.message.name())
    }
}

impl FromStr for Stack {
    type Err = StackError;

    fn from_str(text: &str) -> Result<Self, StackError> {
        if let Some(stack) = Self::ALL.into_iter().find(|stack| stack.to_string() == text) {
            return Ok(stack);
        }
        let refuse = |reason: &str| Err(StackError { stack: text.into(), reason: reason.into() });
        let parts: Vec<&str> = text.split('/').collect();
        match parts[..] {
            ["fore" | "fore+reliable" | "pvm-fore", "aal0" | "aal1" | "aal2"] => {
                refuse("the adapter's driver rejects AAL types 0, 1 and 2")
            }
            ["fore" | "fore+reliable" | "pvm-fore", "aal3" | "aal4"] => {
                refuse("the adapter's driver treats types 3 and 4 as one: aal34")
            }
            [
                "socket" | "framed" | "rpc" | "pvm-advise" | "mpi-lam" | "mpi-mpich" | "mpi",
                "tcp",
                "aal34",
            ] => refuse("IP travels in AAL 5 here"),
            ["fore" | "fore+reliable" | "pvm-fore", "ethernet" | "fddi" | "gige"] => {
                refuse("the Fore interface is that of an ATM adapter: it needs an adaptation layer")
            }
            ["fore" | "fore+reliable" | "pvm-fore", "tcp" | "udp", ..] => refuse(
                "the Fore interface hands PDUs to the adaptation layer: there is no transport between them",
            ),
            [
                "socket" | "framed" | "rpc" | "pvm-advise" | "mpi-lam" | "mpi-mpich" | "mpi",
                "aal5" | "aal34" | "ethernet" | "fddi" | "gige",
            ] => refuse("a socket needs a transport, tcp or udp"),
            ["via" | "mpi-mvich", "tcp" | "udp", ..] => {
                refuse("a VI is a connection of its own: there is no transport between it and the adapter")
            }
            ["via" | "mpi-mvich", "aal5" | "aal34" | "ethernet" | "fddi"] => {
                refuse("no adapter of that network has VIs here")
            }
            ["pvm-mapped", ..] => refuse("mapped memory is that of an ATM adapter: pvm-mapped/aal5"),
            ["pvm-normal", "tcp", ..] => refuse("daemons speak UDP to each other: pvm-normal/udp"),
            ["pvm-advise", "udp", ..] => refuse("tasks speak TCP to each other: pvm-advise/tcp"),
            ["socket" | "rpc", "udp", "aal34"] => refuse("IP travels in AAL 5 here"),
            ["socket" | "rpc", "udp"] => refuse("UDP needs a network under it"),
            ["socket" | "framed" | "rpc" | "pvm-advise" | "mpi-lam" | "mpi-mpich" | "mpi", "tcp"] => {
                refuse("TCP needs a network under it")
            }
            _ => refuse("there is no such stack"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stack_reads_and_prints_as_its_name() {
        for stack in Stack::ALL {
            assert_eq!(stack.to_string().parse(), Ok(stack));
        }
        assert!(
            Stack::names().starts_with("fore/aal5, fore/aal34, fore+reliable/aal5, "),
            "{}",
            Stack::names()
        );
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
            ("socket/tcp", "needs a network"),
            ("socket/udp", "needs a network"),
            ("socket/udp/aal34", "AAL 5"),
            ("rpc/udp", "needs a network"),
            ("rpc/udp/aal34", "AAL 5"),
            ("pvm-normal/tcp/aal5", "UDP"),
            ("pvm-advise/udp/aal5", "TCP"),
            ("pvm-advise/aal5", "needs a transport"),
            ("via/tcp/gige", "a connection of its own"),
            ("mpi-mvich/fddi", "no adapter of that network"),
            ("pvm-mapped/tcp/aal5", "pvm-mapped/aal5"),
            ("carrier/pigeon", "no such stack"),
            ("", "no such stack"),
        ] {
            let error = text.parse::<Stack>().unwrap_err().to_string();
            assert!(error.contains(part) && error.contains("fore/aal5"), "{error}");
        }
    }
}
