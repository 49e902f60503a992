//! The ATM cell: 5 octets of header, 48 of payload.
//!
//! I.361 (header at the UNI and at the NNI), I.432.1 (header error control). Left out: the generic
//! flow control protocol (its bits are carried), cell delineation and scrambling (they belong to the
//! transmission convergence sublayer, which is modelled as a rate).
//!
//! | Interface | Header, first bit first |
//! |---|---|
//! | UNI | GFC 4, VPI 8, VCI 16, PTI 3, CLP 1, HEC 8 |
//! | NNI | VPI 12, VCI 16, PTI 3, CLP 1, HEC 8 |

use core::fmt;

use wiretwin_units::Bytes;

use crate::{DecodeError, Fault};

mod hec;

pub use hec::{HecMode, HecReceiver, HecVerdict, header_error_control};

/// A virtual path identifier: 8 bits at the UNI, 12 at the NNI.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Vpi(u16);

impl Vpi {
    /// The path with this number, if it is in 0..=4095 (what an NNI can carry).
    pub const fn new(vpi: u16) -> Option<Self> {
        if vpi <= MAX_VPI_NNI { Some(Self(vpi)) } else { None }
    }

    /// The number.
    pub const fn get(self) -> u16 {
        self.0
    }
}

/// A virtual channel identifier, any 16 bits. On path 0, 0 to 31 are reserved (I.361 §2.2.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Vci(pub u16);

/// Generic flow control bits, 0..=15, at the UNI only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Gfc(u8);

impl Gfc {
    /// These bits, if they are in 0..=15.
    pub const fn new(gfc: u8) -> Option<Self> {
        if gfc <= 15 { Some(Self(gfc)) } else { None }
    }

    /// The bits.
    pub const fn get(self) -> u8 {
        self.0
    }
}

/// A virtual channel: path and channel together, printed `vpi/vci`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VcId {
    /// The path.
    pub vpi: Vpi,
    /// The channel in the path.
    pub vci: Vci,
}

impl fmt::Display for VcId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.vpi.0, self.vci.0)
    }
}

/// Which of the two header layouts a link uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Interface {
    /// User to network: four bits of generic flow control, eight of VPI.
    Uni,
    /// Network to network: twelve bits of VPI.
    Nni,
}

/// The payload type (I.361 §2.2.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PayloadType {
    /// User data.
    User {
        /// Congestion was met on the way (EFCI).
        congestion: bool,
        /// ATM user to user: AAL5 sets it on the last cell of a CPCS-PDU.
        auu: bool,
    },
    /// OAM F5, one segment.
    OamSegment,
    /// OAM F5, end to end.
    OamEndToEnd,
    /// Resource management.
    ResourceManagement,
    /// Kept for the future.
    Reserved,
}

impl PayloadType {
    /// The type with this code; only the low three bits count.
    pub const fn from_code(code: u8) -> Self {
        match code & 0b111 {
            0b100 => Self::OamSegment,
            0b101 => Self::OamEndToEnd,
            0b110 => Self::ResourceManagement,
            0b111 => Self::Reserved,
            user => Self::User { congestion: user & 0b010 != 0, auu: user & 0b001 != 0 },
        }
    }

    /// The three bits, 0..=7.
    pub const fn code(self) -> u8 {
        match self {
            Self::User { congestion, auu } => (congestion as u8) << 1 | auu as u8,
            Self::OamSegment => 0b100,
            Self::OamEndToEnd => 0b101,
            Self::ResourceManagement => 0b110,
            Self::Reserved => 0b111,
        }
    }
}

/// The octets of one cell, and where its fields are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell<T> {
    interface: Interface,
    octets: T,
}

impl<T: AsRef<[u8]>> Cell<T> {
    /// Sees `octets` as a cell on a link of this kind.
    ///
    /// The header error control is not looked at: that is the receiver's work ([`HecReceiver`]),
    /// which may correct the header before anyone reads it.
    ///
    /// # Errors
    /// [`Fault::Size`] unless there are exactly 53 octets.
    pub fn new_checked(interface: Interface, octets: T) -> Result<Self, DecodeError> {
        let found = octets.as_ref().len();
        if found != CELL_OCTETS {
            let fault = Fault::Size { found: Bytes::new(found as u64), allowed: "53" };
            return Err(DecodeError { format: FORMAT, field: "cell", offset: Bytes::new(0), fault });
        }
        Ok(Self { interface, octets })
    }

    /// Which layout the header has.
    pub fn interface(&self) -> Interface {
        self.interface
    }

    /// Generic flow control; 0 at the NNI, which has none.
    pub fn gfc(&self) -> Gfc {
        match self.interface {
            Interface::Uni => Gfc((self.word() >> 28) as u8),
            Interface::Nni => Gfc(0),
        }
    }

    /// Path and channel.
    pub fn vc(&self) -> VcId {
        let vpi = match self.interface {
            Interface::Uni => self.word() >> 20 & 0xFF,
            Interface::Nni => self.word() >> 20,
        };
        VcId { vpi: Vpi(vpi as u16), vci: Vci((self.word() >> 4) as u16) }
    }

    /// What the payload is.
    pub fn payload_type(&self) -> PayloadType {
        PayloadType::from_code((self.word() >> 1) as u8)
    }

    /// Cell loss priority: set, the cell is dropped before others.
    pub fn clp(&self) -> bool {
        self.word() & 1 != 0
    }

    /// The header error control octet as it stands.
    pub fn hec(&self) -> u8 {
        self.octets.as_ref()[HEC_OFFSET]
    }

    /// The five octets of the header.
    pub fn header(&self) -> [u8; HEADER_OCTETS] {
        let mut header = [0; HEADER_OCTETS];
        header.copy_from_slice(&self.octets.as_ref()[..HEADER_OCTETS]);
        header
    }

    /// The 48 octets of the payload.
    pub fn payload(&self) -> &[u8] {
        &self.octets.as_ref()[HEADER_OCTETS..]
    }

    /// The first four octets, first bit highest.
    fn word(&self) -> u32 {
        let octets = self.octets.as_ref();
        u32::from_be_bytes([octets[0], octets[1], octets[2], octets[3]])
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> Cell<T> {
    /// Overwrites the header, header error control included.
    pub fn set_header(&mut self, header: [u8; HEADER_OCTETS]) {
        self.octets.as_mut()[..HEADER_OCTETS].copy_from_slice(&header);
    }

    /// The 48 octets of the payload, to be written.
    pub fn payload_mut(&mut self) -> &mut [u8] {
        &mut self.octets.as_mut()[HEADER_OCTETS..]
    }
}

/// What a cell header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// Generic flow control. Zero at the NNI.
    pub gfc: Gfc,
    /// Path and channel. The path is at most 255 at the UNI.
    pub vc: VcId,
    /// What the payload is.
    pub payload_type: PayloadType,
    /// Cell loss priority: set, the cell is dropped before others.
    pub clp: bool,
}

/// A header that its interface cannot carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EmitError {
    /// The UNI has eight bits for the path.
    VpiTooLarge {
        /// The path.
        vpi: Vpi,
    },
    /// The NNI has no generic flow control.
    GfcAtNni {
        /// The bits asked for.
        gfc: Gfc,
    },
}

impl fmt::Display for EmitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::VpiTooLarge { vpi } => {
                write!(f, "VPI {} does not fit a UNI header, which takes 0 to {MAX_VPI_UNI}", vpi.get())
            }
            Self::GfcAtNni { gfc } => write!(f, "GFC {} in an NNI header, which has none: give 0", gfc.get()),
        }
    }
}

impl core::error::Error for EmitError {}

impl Repr {
    /// Reads a header and checks its error control, without correcting it.
    ///
    /// # Errors
    /// [`Fault::Checksum`] if the header error control is not that of the four octets before it.
    pub fn parse<T: AsRef<[u8]>>(cell: &Cell<T>) -> Result<Self, DecodeError> {
        let computed = header_error_control(cell.word().to_be_bytes());
        if computed != cell.hec() {
            let fault = Fault::Checksum { found: cell.hec().into(), computed: computed.into() };
            let offset = Bytes::new(HEC_OFFSET as u64);
            return Err(DecodeError { format: FORMAT, field: "HEC", offset, fault });
        }
        Ok(Self { gfc: cell.gfc(), vc: cell.vc(), payload_type: cell.payload_type(), clp: cell.clp() })
    }

    /// Writes the header, error control included; the payload stays as it is.
    ///
    /// # Errors
    /// [`EmitError`] if the interface has no room for a field. Nothing is written then.
    pub fn emit<T: AsRef<[u8]> + AsMut<[u8]>>(&self, cell: &mut Cell<T>) -> Result<(), EmitError> {
        let first = match cell.interface {
            Interface::Uni if self.vc.vpi.0 > MAX_VPI_UNI => {
                return Err(EmitError::VpiTooLarge { vpi: self.vc.vpi });
            }
            Interface::Nni if self.gfc.0 != 0 => return Err(EmitError::GfcAtNni { gfc: self.gfc }),
            Interface::Uni => u32::from(self.gfc.0) << 28 | u32::from(self.vc.vpi.0) << 20,
            Interface::Nni => u32::from(self.vc.vpi.0) << 20,
        };
        let rest = u32::from(self.vc.vci.0) << 4 | u32::from(self.payload_type.code()) << 1;
        let [a, b, c, d] = (first | rest | u32::from(self.clp)).to_be_bytes();
        cell.set_header([a, b, c, d, header_error_control([a, b, c, d])]);
        Ok(())
    }
}

/// Octets of a cell.
pub const CELL_OCTETS: usize = 53;
/// Octets of its header.
pub const HEADER_OCTETS: usize = 5;
/// Octets of its payload.
pub const PAYLOAD_OCTETS: usize = 48;
/// Each octet of an idle cell's payload (I.432.1).
pub const IDLE_OCTET: u8 = 0x6A;

const FORMAT: &str = "ATM cell";
const HEC_OFFSET: usize = 4;
const MAX_VPI_UNI: u16 = 0xFF;
const MAX_VPI_NNI: u16 = 0xFFF;

/// Reads arbitrary octets as a cell and, if they are one, writes what was read and compares.
///
/// The fuzz target and the property test below are this function.
///
/// # Panics
/// If a cell that was read is not written back octet for octet: a bug here.
#[doc(hidden)]
pub fn round_trip(interface: Interface, octets: &[u8]) {
    let Ok(cell) = Cell::new_checked(interface, octets) else { return };
    let Ok(repr) = Repr::parse(&cell) else { return };
    let mut written = [0; CELL_OCTETS];
    let mut copy = Cell::new_checked(interface, &mut written).expect("53 octets are a cell");
    copy.payload_mut().copy_from_slice(cell.payload());
    repr.emit(&mut copy).expect("what was read fits the interface that it was read from");
    assert_eq!(Repr::parse(&copy), Ok(repr), "what was written reads the same");
    assert_eq!(written, octets, "a header that passes its check is written back octet for octet");
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;
    use alloc::vec;

    use proptest::prelude::*;

    use super::*;

    fn vc(vpi: u16, vci: u16) -> VcId {
        VcId { vpi: Vpi::new(vpi).expect("a path number below 4096"), vci: Vci(vci) }
    }

    fn user(auu: bool) -> PayloadType {
        PayloadType::User { congestion: false, auu }
    }

    fn emit(interface: Interface, repr: Repr) -> Result<[u8; HEADER_OCTETS], EmitError> {
        let mut cell = Cell::new_checked(interface, [0; CELL_OCTETS]).expect("53 octets");
        repr.emit(&mut cell)?;
        Ok(cell.header())
    }

    /// Header, then what it says at the UNI.
    const UNI_HEADERS: &[([u8; 5], u16, u16, u8, bool)] = &[
        ([0x00, 0x00, 0x00, 0x00, 0x55], 0, 0, 0, false),
        ([0x00, 0x00, 0x00, 0x01, 0x52], 0, 0, 0, true),
        ([0x00, 0x00, 0x00, 0x50, 0xE2], 0, 5, 0, false),
        ([0x00, 0x00, 0x01, 0x00, 0x40], 0, 16, 0, false),
        ([0x00, 0x00, 0x00, 0xF0, 0x8B], 0, 15, 0, false),
        ([0x00, 0x00, 0x02, 0x00, 0x7F], 0, 32, 0, false),
        ([0x00, 0x00, 0x02, 0x02, 0x71], 0, 32, 1, false),
        ([0x00, 0x00, 0x02, 0x0C, 0x5B], 0, 32, 6, false),
        ([0x00, 0x10, 0x06, 0x43, 0x47], 1, 100, 1, true),
    ];

    #[test]
    fn known_uni_headers_are_read_and_written() {
        for &(header, vpi, vci, code, clp) in UNI_HEADERS {
            let payload_type = PayloadType::from_code(code);
            let repr = Repr { gfc: Gfc(0), vc: vc(vpi, vci), payload_type, clp };
            let mut octets = [IDLE_OCTET; CELL_OCTETS];
            octets[..5].copy_from_slice(&header);
            let cell = Cell::new_checked(Interface::Uni, octets).expect("53 octets");
            assert_eq!(Repr::parse(&cell), Ok(repr), "{header:02x?}");
            assert_eq!(emit(Interface::Uni, repr), Ok(header), "{repr:?}");
        }
    }

    #[test]
    fn the_first_four_bits_are_flow_control_at_the_uni_and_path_at_the_nni() {
        let mut octets = [0; CELL_OCTETS];
        octets[..4].copy_from_slice(&[0xA1, 0x20, 0x06, 0x40]);
        octets[4] = header_error_control([0xA1, 0x20, 0x06, 0x40]);
        let uni = Repr::parse(&Cell::new_checked(Interface::Uni, octets).expect("53 octets"));
        let nni = Repr::parse(&Cell::new_checked(Interface::Nni, octets).expect("53 octets"));
        let payload_type = user(false);
        assert_eq!(uni, Ok(Repr { gfc: Gfc(0xA), vc: vc(0x12, 100), payload_type, clp: false }));
        assert_eq!(nni, Ok(Repr { gfc: Gfc(0), vc: vc(0xA12, 100), payload_type, clp: false }));
    }

    #[test]
    fn a_field_that_the_interface_has_no_room_for_is_refused() {
        let wide = Repr { gfc: Gfc(0), vc: vc(256, 32), payload_type: user(false), clp: false };
        let error = emit(Interface::Uni, wide).expect_err("nine bits of path at the UNI");
        assert_eq!(error, EmitError::VpiTooLarge { vpi: Vpi(256) });
        assert_eq!(error.to_string(), "VPI 256 does not fit a UNI header, which takes 0 to 255");
        let flow = Repr { gfc: Gfc(1), vc: vc(0, 32), payload_type: user(false), clp: false };
        let error = emit(Interface::Nni, flow).expect_err("flow control at the NNI");
        assert_eq!(error.to_string(), "GFC 1 in an NNI header, which has none: give 0");
        assert_eq!(Vpi::new(4096), None);
        assert_eq!(Gfc::new(16), None);
    }

    #[test]
    fn only_fifty_three_octets_are_a_cell() {
        for octets in [0, 52, 54] {
            let error = Cell::new_checked(Interface::Uni, vec![0; octets]).expect_err("not a cell");
            assert_eq!(error.fault, Fault::Size { found: Bytes::new(octets as u64), allowed: "53" });
        }
    }

    #[test]
    fn a_wrong_check_octet_is_named_with_its_place() {
        let cell = Cell::new_checked(Interface::Uni, [0; CELL_OCTETS]).expect("53 octets");
        let error = Repr::parse(&cell).expect_err("the coset makes an all-zero header wrong");
        let said = "ATM cell, HEC at octet 4: checksum 0x0, but the octets it covers give 0x55";
        assert_eq!(error.to_string(), said);
    }

    #[test]
    fn every_payload_type_has_its_code() {
        for code in 0..8 {
            assert_eq!(PayloadType::from_code(code).code(), code);
        }
        assert_eq!(PayloadType::from_code(0b011), PayloadType::User { congestion: true, auu: true });
        assert_eq!(vc(1, 100).to_string(), "1/100");
    }

    fn any_repr() -> impl Strategy<Value = Repr> {
        (0u8..16, 0u16..4096, any::<u16>(), 0u8..8, any::<bool>()).prop_map(|(gfc, vpi, vci, code, clp)| {
            Repr { gfc: Gfc(gfc), vc: vc(vpi, vci), payload_type: PayloadType::from_code(code), clp }
        })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(repr in any_repr(), nni in any::<bool>()) {
            let (interface, repr) = if nni {
                (Interface::Nni, Repr { gfc: Gfc(0), ..repr })
            } else {
                (Interface::Uni, Repr { vc: vc(repr.vc.vpi.0 & 0xFF, repr.vc.vci.0), ..repr })
            };
            let mut cell = Cell::new_checked(interface, [0; CELL_OCTETS]).expect("53 octets");
            repr.emit(&mut cell).expect("the interface has room");
            prop_assert_eq!(Repr::parse(&cell), Ok(repr));
        }

        #[test]
        fn arbitrary_octets_round_trip(
            mut octets in prop::collection::vec(any::<u8>(), 50..56),
            valid in any::<bool>(),
            nni in any::<bool>(),
        ) {
            if valid {
                octets[4] = header_error_control([octets[0], octets[1], octets[2], octets[3]]);
            }
            round_trip(if nni { Interface::Nni } else { Interface::Uni }, &octets);
        }
    }
}
