//! AAL type 5: segmentation and reassembly, with the common part convergence sublayer.
//!
//! I.363.5 (1996), message mode, for one virtual channel: [`Segmenter`] is the sender, §10.1.2 with
//! §10.2.2, [`Reassembler`] the receiver, §10.1.4 with §10.2.4. Left out: streaming mode (§10.3) and
//! corrupted-data delivery.

use core::fmt;

use wiretwin_units::Bytes;
use wiretwin_wire::aal5::{CpcsPdu, EmitError, Repr, pdu_octets};
use wiretwin_wire::cell::{PAYLOAD_OCTETS, PayloadType};

use crate::{Output, Payload};

mod reassembler;
mod segmenter;
#[cfg(test)]
mod testbed;

pub use reassembler::{Config, Discard, Discarded, Reassembler, State};
pub use segmenter::{Segmenter, SendError};

/// Which CPCS-PDU of a virtual channel. A sender counts from 0.
///
/// A driver that receives octets has no such number on the wire: it labels the cells itself, a new
/// number after each last cell, and says [`SarPdu::corrupted`] when the CRC fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CpcsId(pub u64);

/// The payload of one cell, as a handle: 48 octets of a CPCS-PDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SarPdu {
    /// The PDU that the octets are part of.
    pub cpcs: CpcsId,
    /// Which 48 octets of it, from 0.
    pub index: u32,
    /// The trailer, if these are the last: the cell's AUU bit is then 1.
    pub last: Option<Trailer>,
    /// Congestion was met on the way (EFCI; `SAR-CI`).
    pub congestion: bool,
    /// Cell loss priority (`SAR-LP`): set, the network drops this cell before others.
    pub loss_priority: bool,
    /// An octet is not as it was sent. A CRC will find it.
    pub corrupted: bool,
}

/// The trailer of a CPCS-PDU, as a handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trailer {
    /// The octets that Length counts and the CRC covers.
    pub payload: Payload,
    /// CPCS user-to-user indication.
    pub uu: u8,
    /// Common part indicator.
    pub cpi: u8,
}

impl SarPdu {
    /// The payload type of the cell that carries this.
    pub const fn payload_type(&self) -> PayloadType {
        PayloadType::User { congestion: self.congestion, auu: self.last.is_some() }
    }
}

/// CPCS-UNITDATA: what is sent and, at the other end, delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unitdata {
    /// The payload, 1 to 65535 octets.
    pub payload: Payload,
    /// CPCS user-to-user indication, carried as it is.
    pub uu: u8,
    /// Sending: the loss priority of all cells. Delivered: that of at least one was 1.
    pub loss_priority: bool,
    /// Sending: said to have met congestion already. Delivered: the last cell had met it.
    pub congestion: bool,
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
    /// The PDU has another size than the payload needs.
    Pdu(EmitError),
    /// There is no such size: not a multiple of 48, or none at all.
    NotCells {
        /// Octets of the buffer.
        found: Bytes,
    },
}

impl fmt::Display for EmitPduError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PayloadLength { found, needed } => {
                write!(f, "{} octets given for a payload of {}", found.get(), needed.get())
            }
            Self::Pdu(error) => error.fmt(f),
            Self::NotCells { found } => {
                write!(f, "a CPCS-PDU of {} octets: it must be a multiple of 48 up to 65568", found.get())
            }
        }
    }
}

impl core::error::Error for EmitPduError {}

impl Trailer {
    /// Octets of the CPCS-PDU that ends in this trailer.
    pub fn pdu_octets(&self) -> usize {
        pdu_octets(self.length())
    }

    /// Makes the octets of the whole CPCS-PDU, from which each [`SarPdu`] takes its 48.
    ///
    /// # Errors
    /// [`EmitPduError`] if `payload` or `pdu` has not the length that the handle asks for.
    pub fn emit(&self, payload: &[u8], pdu: &mut [u8]) -> Result<(), EmitPduError> {
        let (found, needed) = (Bytes::new(payload.len() as u64), self.payload.length);
        if found != needed {
            return Err(EmitPduError::PayloadLength { found, needed });
        }
        let size = Bytes::new(pdu.len() as u64);
        let mut view = CpcsPdu::new_checked(pdu).map_err(|_| EmitPduError::NotCells { found: size })?;
        if view.room() < payload.len() {
            let needed = Bytes::new(self.pdu_octets() as u64);
            return Err(EmitPduError::Pdu(EmitError { found: size, needed }));
        }
        view.payload_mut()[..payload.len()].copy_from_slice(payload);
        let repr = Repr { uu: self.uu, cpi: self.cpi, length: self.length() };
        repr.emit(&mut view).map_err(EmitPduError::Pdu)
    }

    /// The Length field. Handles longer than it can say are rejected by [`Segmenter::send`].
    fn length(&self) -> u16 {
        u16::try_from(self.payload.length.get()).expect("the sender rejected payloads over 65535 octets")
    }
}

impl SarPdu {
    /// The 48 octets of this cell's payload, out of those of the whole CPCS-PDU.
    ///
    /// # Panics
    /// If the PDU has no cell of this index.
    pub fn octets<'a>(&self, pdu: &'a [u8]) -> &'a [u8] {
        let start = self.index as usize * PAYLOAD_OCTETS;
        &pdu[start..start + PAYLOAD_OCTETS]
    }
}

/// Outputs of the sender. It never delivers and has nothing to tell.
pub type SegmenterOutput = Output<SarPdu, core::convert::Infallible, core::convert::Infallible>;
/// Outputs of the receiver. It never transmits.
pub type ReassemblerOutput = Output<core::convert::Infallible, Unitdata, Discarded>;
