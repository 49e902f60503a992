//! Operation and maintenance cells: alarms, continuity, loopback.
//!
//! I.610 (1999) §10, levels F4 (virtual path) and F5 (virtual channel). Octet numbers in errors count
//! from 0 at the first of the payload. Left out: performance management, activation and system
//! management, which are carried.
//!
//! | Field | Bits | Rule |
//! |---|---|---|
//! | OAM type, function type | 4, 4 | |
//! | Function-specific field | 360 | what a function does not use is 0x6A in each octet |
//! | reserved | 6 | 0 |
//! | CRC-10 | 10 | over all bits before it |

use crate::cell::{self, IDLE_OCTET, PAYLOAD_OCTETS, PayloadType, VcId, Vci, Vpi};
use crate::crc10;
use crate::octets::{array_at, put, u32_at};
use crate::{DecodeError, EmitError};

/// Whose cells these are, and how far they go (I.610 §7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Flow {
    /// F4: a virtual path, one segment of it.
    PathSegment,
    /// F4: a virtual path, end to end.
    PathEndToEnd,
    /// F5: a virtual channel, one segment of it.
    ChannelSegment,
    /// F5: a virtual channel, end to end.
    ChannelEndToEnd,
}

impl Flow {
    /// The flow that a cell with this header belongs to, if it is one of operation and maintenance.
    pub fn of(header: &cell::Repr) -> Option<Self> {
        match (header.vc.vci, header.payload_type) {
            (Self::PATH_SEGMENT_VCI, PayloadType::User { .. }) => Some(Self::PathSegment),
            (Self::PATH_END_TO_END_VCI, PayloadType::User { .. }) => Some(Self::PathEndToEnd),
            (_, PayloadType::OamSegment) => Some(Self::ChannelSegment),
            (_, PayloadType::OamEndToEnd) => Some(Self::ChannelEndToEnd),
            _ => None,
        }
    }

    /// Channel and payload type of the cells of this flow for the channel `vc`, or for its path.
    pub const fn header(self, vc: VcId) -> (VcId, PayloadType) {
        const fn on_path(vpi: Vpi, vci: Vci) -> (VcId, PayloadType) {
            (VcId { vpi, vci }, PayloadType::User { congestion: false, auu: false })
        }
        match self {
            Self::PathSegment => on_path(vc.vpi, Self::PATH_SEGMENT_VCI),
            Self::PathEndToEnd => on_path(vc.vpi, Self::PATH_END_TO_END_VCI),
            Self::ChannelSegment => (vc, PayloadType::OamSegment),
            Self::ChannelEndToEnd => (vc, PayloadType::OamEndToEnd),
        }
    }

    /// The channel of F4 cells of a segment.
    pub const PATH_SEGMENT_VCI: Vci = Vci(3);
    /// The channel of F4 cells end to end.
    pub const PATH_END_TO_END_VCI: Vci = Vci(4);
}

/// What is wrong, and where (I.610 §10.2.1). Both are optional.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Defect {
    /// Defect type; 0x6A is none told.
    pub kind: u8,
    /// Defect location; 0x6A in each octet is none told.
    pub location: [u8; ID_OCTETS],
}

impl Defect {
    /// Nothing told.
    pub const UNTOLD: Self = Self { kind: IDLE_OCTET, location: [IDLE_OCTET; ID_OCTETS] };
}

/// What an operation and maintenance cell says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repr {
    /// Alarm indication: what is upstream is broken.
    Ais(Defect),
    /// Remote defect indication: what comes to the other end is broken.
    Rdi(Defect),
    /// Continuity check: nothing to send, but still there.
    ContinuityCheck,
    /// Loopback.
    Loopback {
        /// On its way to where it is turned round; that end sends it back with this cleared.
        request: bool,
        /// Which request the answer belongs to.
        correlation: u32,
        /// Where it is to be turned round; all ones: at the end of the connection or segment.
        location: [u8; ID_OCTETS],
        /// Who began it; all ones: not told.
        source: [u8; ID_OCTETS],
    },
    /// Any other.
    Other {
        /// OAM type, 0..=15.
        oam_type: u8,
        /// Function type, 0..=15.
        function: u8,
        /// Function-specific field.
        specific: [u8; SPECIFIC_OCTETS],
    },
}

impl Repr {
    /// Reads the payload of a cell. What is reserved or not used is not looked at.
    ///
    /// # Errors
    /// [`Fault::Size`](crate::Fault::Size) unless there are 48 octets;
    /// [`Fault::Checksum`](crate::Fault::Checksum) if the CRC-10 fails.
    pub fn parse(payload: &[u8]) -> Result<Self, DecodeError> {
        crc10::sized(FORMAT, payload)?;
        crc10::check(FORMAT, payload)?;
        let defect = || Defect { kind: payload[1], location: array_at(payload, 2) };
        Ok(match payload[0] {
            AIS => Self::Ais(defect()),
            RDI => Self::Rdi(defect()),
            CONTINUITY => Self::ContinuityCheck,
            LOOPBACK => Self::Loopback {
                request: payload[1] & 1 != 0,
                correlation: u32_at(payload, 2),
                location: array_at(payload, 6),
                source: array_at(payload, 22),
            },
            other => {
                Self::Other { oam_type: other >> 4, function: other & 0xF, specific: array_at(payload, 1) }
            }
        })
    }

    /// Writes the payload of a cell.
    ///
    /// # Errors
    /// [`EmitError`] unless there are 48 octets, for a type or function above 15, and for one of them
    /// that has a name of its own. Nothing is written then.
    pub fn emit(&self, payload: &mut [u8]) -> Result<(), EmitError> {
        EmitError::unless_size(FORMAT, "payload", payload.len(), PAYLOAD_OCTETS)?;
        if let Self::Other { oam_type, function, .. } = *self {
            for (field, found) in [("OAM type", oam_type), ("function type", function)] {
                if found > 15 {
                    return Err(EmitError::value(FORMAT, field, found, "0 to 15"));
                }
            }
            if matches!(oam_type << 4 | function, AIS | RDI | CONTINUITY | LOOPBACK) {
                let allowed = "another than AIS, RDI, continuity check and loopback";
                return Err(EmitError::value(FORMAT, "function type", function, allowed));
            }
        }
        payload[1..crc10::CRC_AT].fill(IDLE_OCTET);
        payload[crc10::CRC_AT] = 0;
        payload[0] = match self {
            Self::Ais(_) => AIS,
            Self::Rdi(_) => RDI,
            Self::ContinuityCheck => CONTINUITY,
            Self::Loopback { .. } => LOOPBACK,
            Self::Other { oam_type, function, .. } => oam_type << 4 | function,
        };
        match *self {
            Self::Ais(defect) | Self::Rdi(defect) => {
                payload[1] = defect.kind;
                put(payload, 2, defect.location);
            }
            Self::ContinuityCheck => {}
            Self::Loopback { request, correlation, location, source } => {
                payload[1] = request.into();
                put(payload, 2, correlation.to_be_bytes());
                put(payload, 6, location);
                put(payload, 22, source);
            }
            Self::Other { specific, .. } => put(payload, 1, specific),
        }
        crc10::close(payload);
        Ok(())
    }
}

/// Octets of a location or source identifier.
pub const ID_OCTETS: usize = 16;
/// Octets of the function-specific field.
pub const SPECIFIC_OCTETS: usize = 45;
/// The location of a loopback at the end of the connection or segment, and a source that is not told.
pub const END_POINT: [u8; ID_OCTETS] = [0xFF; ID_OCTETS];

const FORMAT: &str = "OAM cell";
/// OAM type 1, fault management, with its function type.
const AIS: u8 = 0x10;
const RDI: u8 = 0x11;
const CONTINUITY: u8 = 0x14;
const LOOPBACK: u8 = 0x18;

/// Reads arbitrary octets as the payload of an OAM cell and, if they are, writes what was read and
/// compares. The fuzz target and the property test below are this function.
///
/// # Panics
/// If a payload that was read is not written back with the same fields: a bug here.
#[doc(hidden)]
pub fn round_trip(octets: &[u8]) {
    let Ok(repr) = Repr::parse(octets) else { return };
    let mut written = [0xEE; PAYLOAD_OCTETS];
    repr.emit(&mut written).expect("what was read can be written");
    assert_eq!(Repr::parse(&written), Ok(repr), "what was written reads the same");
    if matches!(repr, Repr::Other { .. }) && octets[crc10::CRC_AT] & 0xFC == 0 {
        assert_eq!(written, octets, "written back octet for octet");
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use proptest::prelude::*;

    use super::*;

    fn emitted(repr: Repr) -> [u8; 48] {
        let mut octets = [0xEE; 48];
        repr.emit(&mut octets).expect("48 octets");
        assert_eq!(Repr::parse(&octets), Ok(repr));
        octets
    }

    #[test]
    fn alarms_tell_type_and_place_of_a_defect() {
        let octets = emitted(Repr::Ais(Defect::UNTOLD));
        assert_eq!((octets[0], &octets[1..46]), (0x10, &[0x6A; 45][..]));
        let octets = emitted(Repr::Rdi(Defect { kind: 0, location: [7; 16] }));
        assert_eq!((&octets[..2], &octets[2..18], octets[18]), (&[0x11, 0][..], &[7; 16][..], 0x6A));
        assert_eq!(emitted(Repr::ContinuityCheck)[..46], [&[0x14][..], &[0x6A; 45]].concat());
    }

    #[test]
    fn a_loopback_comes_back_with_its_indication_cleared() {
        let loopback = |request| Repr::Loopback {
            request,
            correlation: 0x0102_0304,
            location: END_POINT,
            source: [9; 16],
        };
        let octets = emitted(loopback(true));
        assert_eq!(octets[..6], [0x18, 1, 1, 2, 3, 4]);
        assert_eq!(
            (&octets[6..22], &octets[22..38], &octets[38..46]),
            (&[0xFF; 16][..], &[9; 16][..], &[0x6A; 8][..])
        );
        assert_eq!(emitted(loopback(false))[1], 0);
    }

    #[test]
    fn each_flow_has_its_header() {
        let vc = VcId { vpi: Vpi::new(7).expect("a path"), vci: Vci(100) };
        for flow in [Flow::PathSegment, Flow::PathEndToEnd, Flow::ChannelSegment, Flow::ChannelEndToEnd] {
            let (vc, payload_type) = flow.header(vc);
            let header = cell::Repr { gfc: cell::Gfc::default(), vc, payload_type, clp: false };
            assert_eq!(Flow::of(&header), Some(flow));
            assert_eq!(vc.vpi.get(), 7);
        }
        let user = PayloadType::User { congestion: false, auu: true };
        let header = cell::Repr { gfc: cell::Gfc::default(), vc, payload_type: user, clp: false };
        assert_eq!(Flow::of(&header), None);
        assert_eq!(Flow::of(&cell::Repr { payload_type: PayloadType::ResourceManagement, ..header }), None);
    }

    #[test]
    fn other_functions_are_carried_under_their_numbers_only() {
        let other = |oam_type, function| Repr::Other { oam_type, function, specific: [0x55; 45] };
        assert_eq!(emitted(other(2, 0))[..2], [0x20, 0x55]);
        let mut octets = [0xEE; 48];
        for (repr, said) in [
            (other(16, 0), "OAM cell, OAM type: 16, allowed is 0 to 15"),
            (other(0, 16), "OAM cell, function type: 16, allowed is 0 to 15"),
            (
                other(1, 8),
                "OAM cell, function type: 8, allowed is another than AIS, RDI, continuity check and loopback",
            ),
        ] {
            assert_eq!(repr.emit(&mut octets).expect_err(said).to_string(), said);
        }
        assert_eq!(octets, [0xEE; 48]);
        Repr::ContinuityCheck.emit(&mut octets[1..]).expect_err("47 octets");
    }

    #[test]
    fn every_wrong_bit_is_found() {
        let octets = emitted(Repr::ContinuityCheck);
        for bit in 0..384 {
            let mut octets = octets;
            octets[bit / 8] ^= 0x80 >> (bit % 8);
            let error = Repr::parse(&octets).expect_err("a bit was turned");
            assert_eq!((error.field, error.offset.get()), ("CRC-10", 46));
        }
        assert_eq!(Repr::parse(&octets[1..]).expect_err("47 octets").field, "payload");
    }

    proptest! {
        #[test]
        fn arbitrary_octets_round_trip(
            mut octets in prop::collection::vec(any::<u8>(), 48),
            known in prop::option::of(prop::sample::select(&[AIS, RDI, CONTINUITY, LOOPBACK][..])),
            valid: bool,
        ) {
            octets[0] = known.unwrap_or(octets[0]);
            if valid {
                crc10::close(&mut octets);
            }
            round_trip(&octets);
        }
    }
}
