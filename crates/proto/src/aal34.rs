//! AAL type 3/4: segmentation and reassembly, with the common part convergence sublayer.
//!
//! I.363.3 (1996), message mode, for one virtual channel on which messages interleave by their
//! multiplexing identification (MID): [`Segmenter`] is the sender, [`Reassembler`] the receiver. Left out:
//! streaming mode, corrupted-data delivery, the assured operations.
//!
//! Unlike AAL 5, each cell is checked by itself (CRC-10, sequence number) and the message only by its tags
//! and its length: sixteen cells lost in a row can go unnoticed where two messages happen to fit. A
//! message that was made of pieces that do not belong together is delivered, as it would be, and says so.

use core::fmt;

use wiretwin_units::{Bytes, Seq};
use wiretwin_wire::EmitError;
use wiretwin_wire::aal34::cpcs::{self, CpcsPdu, pdu_octets};
use wiretwin_wire::aal34::sar::{self, ABORT, Mid, SAR_PAYLOAD_OCTETS, SegmentType};

use crate::{Output, Payload};

mod reassembler;
mod segmenter;
#[cfg(test)]
mod testbed;

pub use reassembler::{Config, Discard, Discarded, Reassembler};
pub use segmenter::{Segmenter, SendError};

/// Which CPCS-PDU of a virtual channel. A sender counts from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CpcsId(pub u64);

/// The payload of one cell, as a handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SarPdu {
    /// The CPCS-PDU that the octets are part of. No receiver can see it on the wire; it is for those who
    /// want to know what was mixed up.
    pub cpcs: CpcsId,
    /// Which cell of the message, from 0.
    pub index: u32,
    /// Which part of a message this is.
    pub segment_type: SegmentType,
    /// Counts the cells of one MID.
    pub sequence: Seq<4>,
    /// Which of the messages that interleave.
    pub mid: Mid,
    /// Length Indication: octets of the CPCS-PDU in this cell, or [`ABORT`].
    pub length: u8,
    /// The header of the CPCS-PDU, in BOM and SSM.
    pub header: Option<Header>,
    /// Its trailer, in EOM and SSM.
    pub trailer: Option<Trailer>,
    /// Congestion was met on the way (EFCI).
    pub congestion: bool,
    /// Cell loss priority: set, the network drops this cell before others.
    pub loss_priority: bool,
    /// An octet is not as it was sent. The CRC-10 will find it.
    pub corrupted: bool,
}

/// The header of a CPCS-PDU, as a handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// BTag.
    pub tag: u8,
    /// BASize: octets of room that the receiver needs.
    pub ba_size: u16,
}

/// The trailer of a CPCS-PDU, as a handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trailer {
    /// ETag.
    pub tag: u8,
    /// The octets that Length counts.
    pub payload: Payload,
}

/// CPCS-UNITDATA: what is sent and, at the other end, delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unitdata {
    /// The payload, 1 to 65535 octets.
    pub payload: Payload,
    /// Which of the messages that interleave; 0 where none do.
    pub mid: Mid,
    /// Sending: the loss priority of all cells. Delivered: that of at least one was 1.
    pub loss_priority: bool,
    /// Sending: said to have met congestion already. Delivered: the last cell had met it.
    pub congestion: bool,
    /// Delivered: cells of other messages are among it, and no check has found that. A sender says
    /// false.
    pub mixed: bool,
}

/// Why a CPCS-PDU was not made of octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EmitPduError {
    /// The payload handed in is not as long as the handle says.
    PayloadLength {
        /// Octets handed in.
        found: Bytes,
        /// Octets of the handle.
        needed: Bytes,
    },
    /// The buffer is not the one size that the payload needs.
    PduLength {
        /// Octets of the buffer.
        found: Bytes,
        /// Octets of the PDU.
        needed: Bytes,
    },
}

impl fmt::Display for EmitPduError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PayloadLength { found, needed } => {
                write!(f, "{} octets given for a payload of {}", found.get(), needed.get())
            }
            Self::PduLength { found, needed } => {
                write!(f, "{} octets given for a CPCS-PDU of {}", found.get(), needed.get())
            }
        }
    }
}

impl core::error::Error for EmitPduError {}

impl Trailer {
    /// Makes the octets of the whole CPCS-PDU, from which each [`SarPdu`] takes its own.
    ///
    /// # Errors
    /// [`EmitPduError`] if `payload` or `pdu` has not the length that the handle asks for.
    pub fn emit(&self, payload: &[u8], pdu: &mut [u8]) -> Result<(), EmitPduError> {
        let (found, needed) = (Bytes::new(payload.len() as u64), self.payload.length);
        if found != needed {
            return Err(EmitPduError::PayloadLength { found, needed });
        }
        let length = u16::try_from(needed.get()).expect("the sender rejected payloads over 65535 octets");
        let (found, needed) = (Bytes::new(pdu.len() as u64), Bytes::new(pdu_octets(length) as u64));
        let wrong = EmitPduError::PduLength { found, needed };
        if found != needed {
            return Err(wrong);
        }
        let mut view = CpcsPdu::new_checked(pdu).map_err(|_| wrong)?;
        view.payload_mut()[..payload.len()].copy_from_slice(payload);
        cpcs::Repr::message(self.tag, length).emit(&mut view).map_err(|_| wrong)
    }
}

impl SarPdu {
    /// What the cell's payload says besides the octets of the CPCS-PDU.
    pub const fn repr(&self) -> sar::Repr {
        let Self { segment_type, sequence, mid, length, .. } = *self;
        sar::Repr { segment_type, sequence, mid, length }
    }

    /// Makes the 48 octets of this cell's payload out of those of the whole CPCS-PDU.
    ///
    /// # Errors
    /// [`EmitError`] for a length that the segment type does not have.
    ///
    /// # Panics
    /// If the PDU has no cell of this index.
    pub fn emit(&self, pdu: &[u8], cell: &mut [u8; 48]) -> Result<(), EmitError> {
        let start = self.index as usize * SAR_PAYLOAD_OCTETS;
        let taken = if self.length == ABORT { 0 } else { usize::from(self.length) };
        let mut view = sar::SarPdu::new_checked(&mut cell[..]).expect("48 octets");
        view.payload_mut()[..taken].copy_from_slice(&pdu[start..start + taken]);
        self.repr().emit(&mut view)
    }
}

/// Outputs of the sender. It never delivers and has nothing to tell.
pub type SegmenterOutput = Output<SarPdu, core::convert::Infallible, core::convert::Infallible>;
/// Outputs of the receiver. It never transmits.
pub type ReassemblerOutput = Output<core::convert::Infallible, Unitdata, Discarded>;
