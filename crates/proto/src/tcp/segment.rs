//! A segment as a handle: the header's fields and a range of the stream.

use core::fmt;
use core::ops::{BitOr, BitOrAssign};

use wiretwin_units::{Bytes, Seq};

use crate::{MessageId, Payload};

/// A sequence number of TCP (RFC 9293 §3.4).
pub type SeqNumber = Seq<32>;

/// Control bits of a segment (RFC 9293 §3.1).
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Flags(u8);

impl Flags {
    /// None.
    pub const NONE: Self = Self(0);
    /// The sender has sent all it will send.
    pub const FIN: Self = Self(1);
    /// A connection is asked for, and numbered.
    pub const SYN: Self = Self(2);
    /// The connection is not, or no more.
    pub const RST: Self = Self(4);
    /// What the sender had to send ends here.
    pub const PSH: Self = Self(8);
    /// The acknowledgment number counts.
    pub const ACK: Self = Self(16);
    /// The urgent pointer counts.
    pub const URG: Self = Self(32);
    /// The receiver has seen marks of congestion (RFC 3168 §6.1).
    pub const ECE: Self = Self(64);
    /// The sender has reduced its congestion window (RFC 3168 §6.1).
    pub const CWR: Self = Self(128);

    /// The bits of the header's octet.
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// From the header's octet.
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits)
    }

    /// Whether all of `others` are set.
    pub const fn has(self, others: Self) -> bool {
        self.0 & others.0 == others.0
    }

    /// Whether any of `others` is set.
    pub const fn any(self, others: Self) -> bool {
        self.0 & others.0 != 0
    }

    /// These without `others`.
    #[must_use]
    pub const fn without(self, others: Self) -> Self {
        Self(self.0 & !others.0)
    }
}

impl BitOr for Flags {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for Flags {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

impl fmt::Debug for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMES: [(Flags, &str); 8] = [
            (Flags::SYN, "SYN"),
            (Flags::FIN, "FIN"),
            (Flags::RST, "RST"),
            (Flags::PSH, "PSH"),
            (Flags::ACK, "ACK"),
            (Flags::URG, "URG"),
            (Flags::ECE, "ECE"),
            (Flags::CWR, "CWR"),
        ];
        let mut between = "";
        for (flag, name) in NAMES {
            if self.has(flag) {
                write!(f, "{between}{name}")?;
                between = ",";
            }
        }
        if between.is_empty() { f.write_str("none") } else { Ok(()) }
    }
}

/// The timestamps option (RFC 7323 §3.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timestamps {
    /// `TSval`: the sender's clock.
    pub value: u32,
    /// `TSecr`: the receiver's clock, as it came.
    pub echo: u32,
}

/// Ranges that the receiver holds beyond the acknowledgment (RFC 2018 §3), the most recent first.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct SackBlocks {
    blocks: [(SeqNumber, SeqNumber); SackBlocks::MOST],
    count: u8,
}

impl SackBlocks {
    /// The most blocks that the option area has room for.
    pub const MOST: usize = 4;
    /// No blocks.
    pub const NONE: Self = Self { blocks: [(SeqNumber::ZERO, SeqNumber::ZERO); SackBlocks::MOST], count: 0 };

    /// Adds a block, from its first number to the one after its last; false where there is no room.
    pub fn push(&mut self, from: SeqNumber, to: SeqNumber) -> bool {
        let Some(block) = self.blocks.get_mut(usize::from(self.count)) else { return false };
        *block = (from, to);
        self.count += 1;
        true
    }

    /// The blocks.
    pub fn as_slice(&self) -> &[(SeqNumber, SeqNumber)] {
        &self.blocks[..usize::from(self.count)]
    }

    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }
}

impl fmt::Debug for SackBlocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.as_slice().iter().map(|(from, to)| (from.get(), to.get()))).finish()
    }
}

/// The options of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Maximum segment size (RFC 9293 §3.7.1), on SYN.
    pub mss: Option<u16>,
    /// Window scale (RFC 7323 §2.2), on SYN; 0 to 14, more is read as 14.
    pub window_scale: Option<u8>,
    /// SACK permitted (RFC 2018 §2), on SYN.
    pub sack_permitted: bool,
    /// Timestamps.
    pub timestamps: Option<Timestamps>,
    /// SACK.
    pub sack: SackBlocks,
}

impl Options {
    /// No options.
    pub const NONE: Self = Self {
        mss: None,
        window_scale: None,
        sack_permitted: false,
        timestamps: None,
        sack: SackBlocks::NONE,
    };

    /// Octets of the option area, each option padded in front to whole words as BSD and RFC 7323
    /// appendix A lay them out.
    pub const fn octets(&self) -> u16 {
        let mut octets = 0;
        if self.mss.is_some() {
            octets += 4;
        }
        if self.window_scale.is_some() {
            octets += 4;
        }
        if self.timestamps.is_some() {
            octets += TIMESTAMPS_OCTETS;
        } else if self.sack_permitted {
            octets += 4;
        }
        // With timestamps the two octets of SACK permitted take the place of their padding.
        if !self.sack.is_empty() {
            octets += 4 + 8 * self.sack.count as u16;
        }
        octets
    }
}

/// Explicit congestion notification, as the IP header around a segment says it (RFC 3168 §5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ecn {
    /// Congestion drops it (not-ECT).
    #[default]
    NotCapable,
    /// Congestion marks it (ECT).
    Capable,
    /// It was marked (CE).
    Congestion,
}

/// A segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The number of its first octet, or of its SYN.
    pub seq: SeqNumber,
    /// The number that the sender expects next; counts where [`Flags::ACK`] is set.
    pub ack: SeqNumber,
    /// Control bits.
    pub flags: Flags,
    /// The window field: octets, to be scaled except on SYN.
    pub window: u16,
    /// The urgent pointer; counts where [`Flags::URG`] is set.
    pub urgent: u16,
    /// An octet is not as it was sent. A checksum will find it.
    pub corrupted: bool,
    /// What the IP header says of congestion.
    pub ecn: Ecn,
    /// Options.
    pub options: Options,
    /// The text: a range of the sender's stream. A receiver looks at its length alone, and takes the
    /// place from the sequence number.
    pub payload: Payload,
}

impl Segment {
    /// A segment with nothing but numbers and control bits.
    pub const fn control(seq: SeqNumber, ack: SeqNumber, flags: Flags) -> Self {
        Self {
            seq,
            ack,
            flags,
            window: 0,
            urgent: 0,
            corrupted: false,
            ecn: Ecn::NotCapable,
            options: Options::NONE,
            payload: Payload::whole(MessageId(0), Bytes::new(0)),
        }
    }

    /// Octets of text.
    pub const fn len(&self) -> u32 {
        self.payload.length.get() as u32
    }

    /// Whether it has no text.
    pub const fn is_empty(&self) -> bool {
        self.payload.length.get() == 0
    }

    /// Octets of header and options.
    pub const fn header_octets(&self) -> u16 {
        HEADER_OCTETS + self.options.octets()
    }

    /// Octets in all, without those of IP.
    pub const fn octets(&self) -> u32 {
        self.header_octets() as u32 + self.len()
    }
}

/// Octets of a header without options.
pub const HEADER_OCTETS: u16 = 20;
/// Octets of the timestamps option with its padding (RFC 7323 appendix A).
pub(super) const TIMESTAMPS_OCTETS: u16 = 12;

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;

    #[test]
    fn options_take_the_octets_that_bsd_and_linux_lay_out() {
        let syn = Options { mss: Some(1460), ..Options::NONE };
        assert_eq!(syn.octets(), 4);
        let scaled = Options { window_scale: Some(7), ..syn };
        assert_eq!(scaled.octets(), 8);
        assert_eq!(Options { sack_permitted: true, ..syn }.octets(), 8);
        let modern = Options { timestamps: Some(Timestamps::default()), sack_permitted: true, ..scaled };
        assert_eq!(modern.octets(), 20);
        let mut sack = SackBlocks::NONE;
        for number in 0..4 {
            assert!(sack.push(SeqNumber::wrapping(number), SeqNumber::wrapping(number + 1)));
        }
        assert!(!sack.push(SeqNumber::ZERO, SeqNumber::ZERO));
        assert_eq!(Options { sack, ..Options::NONE }.octets(), 36);
    }

    #[test]
    fn control_bits_print_by_name() {
        assert_eq!(format!("{:?}", Flags::ACK | Flags::SYN), "SYN,ACK");
        assert_eq!(format!("{:?}", Flags::NONE), "none");
        assert_eq!(Flags::from_bits(0xc2), Flags::SYN | Flags::ECE | Flags::CWR);
    }
}
