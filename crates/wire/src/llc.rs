//! The header of logical link control, and the subnetwork access protocol behind it.
//!
//! IEEE 802.2 §3 (LLC PDU), IEEE 802-1990 §10.3 (SNAP), RFC 1042 (IP on IEEE 802), RFC 1483 and
//! RFC 2684 §5.2 (on AAL5). Left out: the procedures of LLC; control fields are carried.
//!
//! | Field | Octets | Rule |
//! |---|---|---|
//! | DSAP, SSAP | 1, 1 | |
//! | Control | 1 or 2 | 1 if its two low bits are set (unnumbered) |
//! | OUI, PID | 3, 2 | with SNAP only: AA AA 03 |

use crate::ethernet::EtherType;
use crate::octets::{array_at, put, u16_at};
use crate::{DecodeError, EmitError};

/// The control field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// Unnumbered, one octet; the two low bits are set.
    Unnumbered(u8),
    /// Information or supervisory, two octets; the two low bits of the first are not both set.
    Numbered([u8; 2]),
}

impl Control {
    /// Unnumbered information: a datagram.
    pub const UI: Self = Self::Unnumbered(0x03);
}

/// Who gives out the protocol identifiers of a SNAP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Oui(pub [u8; 3]);

impl Oui {
    /// The identifier is an Ethernet type.
    pub const ETHERTYPE: Self = Self([0, 0, 0]);
    /// IEEE 802.1: a bridged frame follows.
    pub const BRIDGED: Self = Self([0x00, 0x80, 0xC2]);
}

/// What the header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repr {
    /// LLC alone.
    Llc {
        /// Destination service access point.
        dsap: u8,
        /// Source service access point.
        ssap: u8,
        /// Control field.
        control: Control,
    },
    /// SNAP behind LLC.
    Snap {
        /// Who gave the identifier.
        oui: Oui,
        /// Protocol identifier.
        pid: u16,
    },
}

impl Repr {
    /// The header before data of this type, as in RFC 1042 and for routed packets in RFC 1483.
    pub const fn routed(kind: EtherType) -> Self {
        Self::Snap { oui: Oui::ETHERTYPE, pid: kind.get() }
    }

    /// The type of the data, if this is the header of [`Repr::routed`].
    pub const fn ethertype(&self) -> Option<EtherType> {
        match self {
            Self::Snap { oui: Oui([0, 0, 0]), pid } => EtherType::new(*pid),
            _ => None,
        }
    }

    /// Reads the header that `octets` begin with; the payload is behind [`Repr::header_octets`].
    ///
    /// # Errors
    /// [`Fault::Size`](crate::Fault::Size) if the octets end inside the header.
    pub fn parse(octets: &[u8]) -> Result<Self, DecodeError> {
        let (dsap, ssap, control) = match *octets {
            [dsap, ssap, one, ..] if one & 0b11 == 0b11 => (dsap, ssap, Control::Unnumbered(one)),
            [dsap, ssap, one, two, ..] => (dsap, ssap, Control::Numbered([one, two])),
            _ => {
                return Err(DecodeError::size(
                    FORMAT,
                    "LLC",
                    octets.len(),
                    "3, 4 with a numbered control field",
                ));
            }
        };
        if (dsap, ssap, control) != (SNAP_SAP, SNAP_SAP, Control::UI) {
            return Ok(Self::Llc { dsap, ssap, control });
        }
        if octets.len() < SNAP_OCTETS {
            return Err(DecodeError::size(FORMAT, "SNAP", octets.len(), "8 or more"));
        }
        Ok(Self::Snap { oui: Oui(array_at(octets, 3)), pid: u16_at(octets, 6) })
    }

    /// Writes the header in front of the payload.
    ///
    /// # Errors
    /// [`EmitError`] if there are fewer octets than [`Repr::header_octets`], if a control field has
    /// the low bits of the other kind, or for the LLC that only SNAP has. Nothing is written then.
    pub fn emit(&self, octets: &mut [u8]) -> Result<(), EmitError> {
        let needed = self.header_octets();
        if octets.len() < needed {
            return EmitError::unless_size(FORMAT, "header", octets.len(), needed);
        }
        match *self {
            Self::Llc { dsap: SNAP_SAP, ssap: SNAP_SAP, control: Control::UI } => {
                return Err(EmitError::value(FORMAT, "DSAP", SNAP_SAP, "another, without SNAP"));
            }
            Self::Llc { dsap, ssap, control: Control::Unnumbered(control) } => {
                if control & 0b11 != 0b11 {
                    let allowed = "one with both low bits set, for unnumbered";
                    return Err(EmitError::value(FORMAT, "Control", control, allowed));
                }
                put(octets, 0, [dsap, ssap, control]);
            }
            Self::Llc { dsap, ssap, control: Control::Numbered([one, two]) } => {
                if one & 0b11 == 0b11 {
                    let allowed = "one without both low bits set, for numbered";
                    return Err(EmitError::value(FORMAT, "Control", one, allowed));
                }
                put(octets, 0, [dsap, ssap, one, two]);
            }
            Self::Snap { oui, pid } => {
                put(octets, 0, [SNAP_SAP, SNAP_SAP, 0x03]);
                put(octets, 3, oui.0);
                put(octets, 6, pid.to_be_bytes());
            }
        }
        Ok(())
    }

    /// Octets of the header: 3, 4 or 8.
    pub const fn header_octets(&self) -> usize {
        match self {
            Self::Llc { control: Control::Unnumbered(_), .. } => 3,
            Self::Llc { control: Control::Numbered(_), .. } => 4,
            Self::Snap { .. } => SNAP_OCTETS,
        }
    }
}

/// Octets of an LLC and SNAP header.
pub const SNAP_OCTETS: usize = 8;
/// The service access point of SNAP.
pub const SNAP_SAP: u8 = 0xAA;
/// Protocol identifier of a bridged Ethernet frame with its FCS, under [`Oui::BRIDGED`].
pub const PID_ETHERNET_FCS: u16 = 0x0001;
/// Protocol identifier of a bridged Ethernet frame without FCS, under [`Oui::BRIDGED`]. On AAL5 two
/// octets of zeros come between it and the frame.
pub const PID_ETHERNET: u16 = 0x0007;

const FORMAT: &str = "LLC header";

/// Reads arbitrary octets as a header and, if they are one, writes what was read and compares. The
/// fuzz target and the property test below are this function.
///
/// # Panics
/// If a header that was read is not written back octet for octet: a bug here.
#[doc(hidden)]
pub fn round_trip(octets: &[u8]) {
    let Ok(repr) = Repr::parse(octets) else { return };
    let mut written = [0xEE; SNAP_OCTETS];
    let end = repr.header_octets();
    repr.emit(&mut written[..end]).expect("what was read can be written");
    assert_eq!(Repr::parse(&written[..end]), Ok(repr), "what was written reads the same");
    assert_eq!(written[..end], octets[..end], "written back octet for octet");
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn known_headers_are_read_and_written() {
        let unnumbered = |control| Repr::Llc { dsap: 0x42, ssap: 0x42, control };
        let cases: [(&[u8], Repr); 5] = [
            (&[0xAA, 0xAA, 3, 0, 0, 0, 8, 0], Repr::routed(EtherType::IPV4)),
            (&[0xAA, 0xAA, 3, 0, 0, 0, 8, 6], Repr::routed(EtherType::ARP)),
            (&[0xAA, 0xAA, 3, 0, 0x80, 0xC2, 0, 7], Repr::Snap { oui: Oui::BRIDGED, pid: PID_ETHERNET }),
            (&[0x42, 0x42, 3], unnumbered(Control::UI)),
            (&[0x42, 0x42, 0x02, 0x05], unnumbered(Control::Numbered([2, 5]))),
        ];
        for (octets, repr) in cases {
            assert_eq!(Repr::parse(octets), Ok(repr));
            let mut written = [0xEE; 9];
            repr.emit(&mut written).expect("room enough");
            assert_eq!(&written[..octets.len()], octets);
            assert_eq!(written[octets.len()], 0xEE, "nothing behind the header is written");
            repr.emit(&mut written[..octets.len() - 1]).expect_err("no room");
        }
        assert_eq!(Repr::routed(EtherType::ARP).ethertype(), Some(EtherType::ARP));
        assert_eq!(Repr::Snap { oui: Oui::BRIDGED, pid: 0x0800 }.ethertype(), None);
    }

    #[test]
    fn a_header_cut_short_is_refused() {
        for octets in [&[][..], &[0xAA, 0xAA], &[0x42, 0x42, 2], &[0xAA, 0xAA, 3, 0, 0, 0, 8]] {
            let error = Repr::parse(octets).expect_err("cut short");
            assert_eq!(error.field, if octets.len() == 7 { "SNAP" } else { "LLC" });
        }
        let error = Repr::parse(&[1]).expect_err("one octet");
        let said = "LLC header, LLC at octet 0: 1 octets, allowed are 3, 4 with a numbered control field";
        assert_eq!(error.to_string(), said);
    }

    #[test]
    fn what_would_be_read_as_something_else_is_not_written() {
        let mut octets = [0xEE; 8];
        for (ssap, control) in
            [(1, Control::Unnumbered(0x02)), (1, Control::Numbered([0x03, 0])), (SNAP_SAP, Control::UI)]
        {
            Repr::Llc { dsap: SNAP_SAP, ssap, control }.emit(&mut octets).expect_err("another kind");
        }
        assert_eq!(octets, [0xEE; 8]);
    }

    proptest! {
        #[test]
        fn arbitrary_octets_round_trip(mut octets in prop::collection::vec(any::<u8>(), 0..12), snap: bool) {
            if let (true, [a, b, c, ..]) = (snap, &mut octets[..]) {
                (*a, *b, *c) = (SNAP_SAP, SNAP_SAP, 3);
            }
            round_trip(&octets);
        }
    }
}
