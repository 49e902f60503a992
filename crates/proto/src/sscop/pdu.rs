//! A PDU as a handle, and its octets.

use alloc::vec::Vec;
use core::fmt;

use wiretwin_units::{Bytes, Seq};
use wiretwin_wire::sscop::{Repr, elements, put_elements};
use wiretwin_wire::{DecodeError, EmitError};

use super::NUMBER_BITS;
use crate::Payload;

/// A PDU, with numbers of so many bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pdu<const BITS: u32 = NUMBER_BITS> {
    /// Begin.
    Bgn {
        /// N(SQ).
        sq: Seq<8>,
        /// N(MR).
        mr: Seq<BITS>,
        /// Data between users.
        uu: Option<Payload>,
    },
    /// Begin acknowledge.
    Bgak {
        /// N(MR).
        mr: Seq<BITS>,
        /// Data between users.
        uu: Option<Payload>,
    },
    /// Begin reject.
    Bgrej {
        /// Data between users.
        uu: Option<Payload>,
    },
    /// End.
    End {
        /// S: SSCOP ends the connection, not its user.
        by_sscop: bool,
        /// Data between users.
        uu: Option<Payload>,
    },
    /// End acknowledge.
    Endak,
    /// Resynchronization.
    Rs {
        /// N(SQ).
        sq: Seq<8>,
        /// N(MR).
        mr: Seq<BITS>,
        /// Data between users.
        uu: Option<Payload>,
    },
    /// Resynchronization acknowledge.
    Rsak {
        /// N(MR).
        mr: Seq<BITS>,
    },
    /// Error recovery.
    Er {
        /// N(SQ).
        sq: Seq<8>,
        /// N(MR).
        mr: Seq<BITS>,
    },
    /// Error recovery acknowledge.
    Erak {
        /// N(MR).
        mr: Seq<BITS>,
    },
    /// Sequenced data.
    Sd {
        /// N(S).
        s: Seq<BITS>,
        /// The information.
        payload: Payload,
    },
    /// Asks how things stand.
    Poll {
        /// N(PS).
        ps: Seq<BITS>,
        /// N(S).
        s: Seq<BITS>,
    },
    /// How things stand.
    Stat {
        /// N(PS).
        ps: Seq<BITS>,
        /// N(MR).
        mr: Seq<BITS>,
        /// N(R).
        r: Seq<BITS>,
        /// First missing, first received after it, first missing after that, and so on.
        list: Vec<Seq<BITS>>,
    },
    /// A gap was seen.
    Ustat {
        /// The first that is missing.
        first: Seq<BITS>,
        /// The one behind the last that is.
        end: Seq<BITS>,
        /// N(MR).
        mr: Seq<BITS>,
        /// N(R).
        r: Seq<BITS>,
    },
    /// Unnumbered data.
    Ud {
        /// The information.
        payload: Payload,
    },
    /// Management data.
    Md {
        /// The information.
        payload: Payload,
    },
}

impl<const BITS: u32> Pdu<BITS> {
    /// What it carries for a user or for management.
    pub const fn payload(&self) -> Option<Payload> {
        match *self {
            Self::Bgn { uu, .. } | Self::Bgak { uu, .. } | Self::Bgrej { uu } => uu,
            Self::End { uu, .. } | Self::Rs { uu, .. } => uu,
            Self::Sd { payload, .. } | Self::Ud { payload } | Self::Md { payload } => Some(payload),
            _ => None,
        }
    }

    /// The letter of the management error that it is where it does not belong; `None` for UD and MD,
    /// which belong everywhere.
    pub(super) const fn letter(&self) -> Option<char> {
        Some(match self {
            Self::Sd { .. } => 'A',
            Self::Bgn { .. } => 'B',
            Self::Bgak { .. } => 'C',
            Self::Bgrej { .. } => 'D',
            Self::End { .. } => 'E',
            Self::Endak => 'F',
            Self::Poll { .. } => 'G',
            Self::Stat { .. } => 'H',
            Self::Ustat { .. } => 'I',
            Self::Rs { .. } => 'J',
            Self::Rsak { .. } => 'K',
            Self::Er { .. } => 'L',
            Self::Erak { .. } => 'M',
            Self::Ud { .. } | Self::Md { .. } => return None,
        })
    }
}

impl Pdu {
    const fn repr(&self) -> Repr {
        match *self {
            Self::Bgn { sq, mr, .. } => Repr::Bgn { sq, mr },
            Self::Bgak { mr, .. } => Repr::Bgak { mr },
            Self::Bgrej { .. } => Repr::Bgrej,
            Self::End { by_sscop, .. } => Repr::End { by_sscop },
            Self::Endak => Repr::Endak,
            Self::Rs { sq, mr, .. } => Repr::Rs { sq, mr },
            Self::Rsak { mr } => Repr::Rsak { mr },
            Self::Er { sq, mr } => Repr::Er { sq, mr },
            Self::Erak { mr } => Repr::Erak { mr },
            Self::Sd { s, .. } => Repr::Sd { s },
            Self::Poll { ps, s } => Repr::Poll { ps, s },
            Self::Stat { ps, mr, r, .. } => Repr::Stat { ps, mr, r },
            Self::Ustat { first, end, mr, r } => Repr::Ustat { first, end, mr, r },
            Self::Ud { .. } => Repr::Ud,
            Self::Md { .. } => Repr::Md,
        }
    }

    /// Octets in front of the words of the type.
    fn front(&self) -> usize {
        match self {
            Self::Stat { list, .. } => list.len() * 4,
            _ => self.payload().map_or(0, |payload| payload.length.get() as usize),
        }
    }

    /// Octets of the PDU.
    pub fn octets(&self) -> Bytes {
        Bytes::new(self.repr().pdu_octets(self.front()) as u64)
    }

    /// Writes the PDU. `payload` is the octets of its [`Pdu::payload`], none where there is none.
    ///
    /// # Errors
    /// [`EmitError`] unless `octets` are as many as [`Pdu::octets`] and `payload` as long as the handle
    /// says. Nothing that counts is written then.
    pub fn emit(&self, payload: &[u8], octets: &mut [u8]) -> Result<(), EmitError> {
        let (repr, front) = (self.repr(), self.front());
        if let Self::Stat { list, .. } = self {
            if octets.len() == repr.pdu_octets(front) {
                put_elements(list, &mut octets[..front])?;
            }
        } else if let Some(place) = octets.get_mut(..front)
            && payload.len() == front
        {
            place.copy_from_slice(payload);
        } else {
            return repr.emit(payload.len(), &mut []);
        }
        repr.emit(front, octets)
    }

    /// Reads a PDU. `keep` takes what it carries for a user and gives the handle for it.
    ///
    /// # Errors
    /// [`DecodeError`] as [`Repr::parse`]. The machine is then told with
    /// [`Machine::handle_bad_pdu`](super::Machine::handle_bad_pdu).
    pub fn parse(octets: &[u8], keep: impl FnOnce(&[u8]) -> Payload) -> Result<Self, DecodeError> {
        let (repr, front) = Repr::parse(octets)?;
        let uu = |keep: &dyn Fn(&[u8]) -> Payload| (!front.is_empty()).then(|| keep(front));
        // One of the arms below calls it, once.
        let keep = core::cell::Cell::new(Some(keep));
        let keep = |octets: &[u8]| (keep.take().expect("a PDU carries one payload"))(octets);
        Ok(match repr {
            Repr::Bgn { sq, mr } => Self::Bgn { sq, mr, uu: uu(&keep) },
            Repr::Bgak { mr } => Self::Bgak { mr, uu: uu(&keep) },
            Repr::Bgrej => Self::Bgrej { uu: uu(&keep) },
            Repr::End { by_sscop } => Self::End { by_sscop, uu: uu(&keep) },
            Repr::Endak => Self::Endak,
            Repr::Rs { sq, mr } => Self::Rs { sq, mr, uu: uu(&keep) },
            Repr::Rsak { mr } => Self::Rsak { mr },
            Repr::Er { sq, mr } => Self::Er { sq, mr },
            Repr::Erak { mr } => Self::Erak { mr },
            Repr::Sd { s } => Self::Sd { s, payload: keep(front) },
            Repr::Poll { ps, s } => Self::Poll { ps, s },
            Repr::Stat { ps, mr, r } => Self::Stat { ps, mr, r, list: elements(front).collect() },
            Repr::Ustat { first, end, mr, r } => Self::Ustat { first, end, mr, r },
            Repr::Ud => Self::Ud { payload: keep(front) },
            Repr::Md => Self::Md { payload: keep(front) },
        })
    }
}

impl<const BITS: u32> fmt::Display for Pdu<BITS> {
    /// The type and its numbers.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bgn { sq, mr, .. } => write!(f, "BGN SQ={sq} MR={mr}"),
            Self::Bgak { mr, .. } => write!(f, "BGAK MR={mr}"),
            Self::Bgrej { .. } => f.write_str("BGREJ"),
            Self::End { by_sscop, .. } => write!(f, "END S={}", u8::from(*by_sscop)),
            Self::Endak => f.write_str("ENDAK"),
            Self::Rs { sq, mr, .. } => write!(f, "RS SQ={sq} MR={mr}"),
            Self::Rsak { mr } => write!(f, "RSAK MR={mr}"),
            Self::Er { sq, mr } => write!(f, "ER SQ={sq} MR={mr}"),
            Self::Erak { mr } => write!(f, "ERAK MR={mr}"),
            Self::Sd { s, .. } => write!(f, "SD S={s}"),
            Self::Poll { ps, s } => write!(f, "POLL PS={ps} S={s}"),
            Self::Stat { ps, mr, r, list } => {
                write!(f, "STAT PS={ps} MR={mr} R={r}")?;
                list.iter().try_for_each(|element| write!(f, " {element}"))
            }
            Self::Ustat { first, end, mr, r } => write!(f, "USTAT {first} {end} MR={mr} R={r}"),
            Self::Ud { .. } => f.write_str("UD"),
            Self::Md { .. } => f.write_str("MD"),
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use crate::MessageId;

    fn n(number: u32) -> Seq<24> {
        Seq::wrapping(number)
    }

    #[test]
    fn handles_become_octets_and_octets_handles() {
        let payload = Payload::whole(MessageId(7), Bytes::new(3));
        for (pdu, text, expected) in [
            (Pdu::Sd { s: n(1), payload }, &b"abc"[..], &b"abc\0\x48\0\0\x01"[..]),
            (Pdu::Poll { ps: n(5), s: n(100) }, b"", b"\0\0\0\x05\x0A\0\0\x64"),
            (
                Pdu::Stat { ps: n(5), mr: n(131), r: n(3), list: vec![n(3), n(6)] },
                b"",
                b"\0\0\0\x03\0\0\0\x06\0\0\0\x05\0\0\0\x83\x0B\0\0\x03",
            ),
            (Pdu::Bgn { sq: Seq::wrapping(1), mr: n(128), uu: None }, b"", b"\0\0\0\x01\x01\0\0\x80"),
        ] {
            let mut octets = vec![0xEE; pdu.octets().get() as usize];
            pdu.emit(text, &mut octets).expect("the sizes fit");
            assert_eq!(octets, expected, "{pdu}");
            let read = Pdu::parse(&octets, |octets| {
                assert_eq!(octets, text);
                payload
            });
            assert_eq!(read.as_ref(), Ok(&pdu));
        }
    }

    #[test]
    fn a_payload_of_another_length_than_its_handle_is_refused() {
        let payload = Payload::whole(MessageId(7), Bytes::new(3));
        let pdu: Pdu = Pdu::Sd { s: n(1), payload };
        pdu.emit(b"ab", &mut [0; 8]).expect_err("two octets for three");
        pdu.emit(b"abc", &mut [0; 7]).expect_err("seven octets for eight");
        pdu.emit(b"abc", &mut []).expect_err("none");
        let stat: Pdu = Pdu::Stat { ps: n(0), mr: n(0), r: n(0), list: vec![n(1), n(2)] };
        stat.emit(b"", &mut [0; 16]).expect_err("sixteen octets for twenty");
    }
}
