//! Cells as handles, and their octets.

use alloc::vec::Vec;

use wiretwin_units::{Bytes, Seq};
use wiretwin_wire::pcaal::{Body, Kind, List, Repr};
use wiretwin_wire::{DecodeError, EmitError};

use crate::{MessageId, Payload};

/// A circuit of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Circuit {
    /// Cheap, maybe congested: UBR.
    Ordinary,
    /// Protected: ABR.
    Backup,
    /// Of a low guaranteed rate and, with clocks kept over it, a constant delay: VBR or CBR.
    Control,
}

/// Whole values of one message, as they stand in one cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Values {
    /// Tag, of the message library.
    pub tag: u32,
    /// Octets of each value.
    pub kind: Kind,
    /// The place of the first in its message, counted in values.
    pub first: u32,
    /// How many, 1 or more.
    pub count: u8,
    /// They are the last of their message.
    pub end: bool,
    /// Their octets.
    pub payload: Payload,
}

/// What a cell says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pdu {
    /// Values.
    Data {
        /// Sequence Number.
        number: Seq<32>,
        /// The values.
        values: Values,
        /// When it was sent, in ns of the sender's clock modulo 2^32, if that is said.
        stamp: Option<u32>,
    },
    /// POLL.
    Poll {
        /// N(PS).
        ps: Seq<32>,
        /// N(S).
        s: Seq<32>,
    },
    /// STAT.
    Stat {
        /// N(PS).
        ps: Seq<32>,
        /// N(MR).
        mr: Seq<32>,
        /// N(R).
        r: Seq<32>,
        /// What is missing.
        list: Vec<Seq<32>>,
    },
    /// USTAT.
    Ustat {
        /// The first that is missing.
        first: Seq<32>,
        /// The one behind the last that is.
        end: Seq<32>,
        /// N(MR).
        mr: Seq<32>,
        /// N(R).
        r: Seq<32>,
    },
    /// LSTAT: a STAT that nobody asked for, with the mode that is to be.
    ///
    /// Choice: the mode is said, not turned, so that a lost or repeated LSTAT does no harm.
    Lstat {
        /// N(PS) of the last POLL that came.
        ps: Seq<32>,
        /// N(MR).
        mr: Seq<32>,
        /// N(R).
        r: Seq<32>,
        /// What is missing.
        list: Vec<Seq<32>>,
        /// The stamp of the cell that was late, or should have come: ns.
        stamp: u64,
        /// High latency.
        high: bool,
    },
    /// Monitoring.
    Monitor {
        /// Which, from 0.
        number: u32,
        /// When it was sent: ns of the sender's clock.
        stamp: u64,
        /// The sender is in high-latency mode.
        high: bool,
    },
    /// The answer to a monitoring cell where round trips are watched.
    Echo {
        /// The number of the monitoring cell that is answered.
        number: u32,
        /// When that was sent.
        stamp: u64,
    },
    /// The sender's clock.
    Clock {
        /// What it read: ns.
        stamp: u64,
    },
}

/// A cell and the circuit that it goes by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    /// The circuit.
    pub circuit: Circuit,
    /// Connection Identifier.
    pub connection: u16,
    /// What it says.
    pub pdu: Pdu,
    /// Congestion was met on the way (EFCI).
    pub congestion: bool,
    /// An octet is not as it was sent. The CRC will find it.
    pub corrupted: bool,
}

impl Cell {
    /// Writes the payload of the cell: 48 octets. `values` are the octets of the values, if it has any.
    ///
    /// # Errors
    /// [`EmitError`] as [`Repr::emit`], and for more elements than the format has room for.
    pub fn emit(&self, values: &[u8], octets: &mut [u8]) -> Result<(), EmitError> {
        // A list of nothing where it is too long: the elements that are missing are asked for again.
        let list = |list: &[Seq<32>]| List::new(list).unwrap_or_default();
        let body = match &self.pdu {
            Pdu::Data { number, values, stamp } => Body::Data {
                number: *number,
                tag: values.tag,
                kind: values.kind,
                first: values.first,
                count: values.count,
                end: values.end,
                stamp: *stamp,
            },
            Pdu::Poll { ps, s } => Body::Poll { ps: *ps, s: *s },
            Pdu::Stat { ps, mr, r, list: l } => Body::Stat { ps: *ps, mr: *mr, r: *r, list: list(l) },
            Pdu::Ustat { first, end, mr, r } => Body::Ustat { first: *first, end: *end, mr: *mr, r: *r },
            Pdu::Lstat { ps, mr, r, list: l, stamp, high } => {
                Body::Lstat { ps: *ps, mr: *mr, r: *r, list: list(l), stamp: *stamp, high: *high }
            }
            Pdu::Monitor { number, stamp, high } => {
                Body::Monitor { number: *number, stamp: *stamp, high: *high }
            }
            Pdu::Echo { number, stamp } => Body::Echo { number: *number, stamp: *stamp },
            Pdu::Clock { stamp } => Body::Clock { stamp: *stamp },
        };
        Repr { connection: self.connection, body }.emit(values, octets)
    }

    /// Reads the payload of a cell that came by a circuit. `keep` takes the octets of its values, if it has
    /// any, and says which message they are.
    ///
    /// # Errors
    /// [`DecodeError`] as [`Repr::parse`]: the cell is dropped then.
    pub fn parse(
        circuit: Circuit,
        octets: &[u8],
        keep: impl FnOnce(&[u8]) -> MessageId,
    ) -> Result<Self, DecodeError> {
        let (repr, text) = Repr::parse(octets)?;
        let pdu = match repr.body {
            Body::Data { number, tag, kind, first, count, end, stamp } => {
                let payload = Payload::whole(keep(text), Bytes::new(text.len() as u64));
                Pdu::Data { number, values: Values { tag, kind, first, count, end, payload }, stamp }
            }
            Body::Poll { ps, s } => Pdu::Poll { ps, s },
            Body::Stat { ps, mr, r, list } => Pdu::Stat { ps, mr, r, list: list.as_slice().to_vec() },
            Body::Ustat { first, end, mr, r } => Pdu::Ustat { first, end, mr, r },
            Body::Lstat { ps, mr, r, list, stamp, high } => {
                Pdu::Lstat { ps, mr, r, list: list.as_slice().to_vec(), stamp, high }
            }
            Body::Monitor { number, stamp, high } => Pdu::Monitor { number, stamp, high },
            Body::Echo { number, stamp } => Pdu::Echo { number, stamp },
            Body::Clock { stamp } => Pdu::Clock { stamp },
        };
        Ok(Self { circuit, connection: repr.connection, pdu, congestion: false, corrupted: false })
    }
}
