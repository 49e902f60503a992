//! The options that TCP itself acts on.
//!
//! RFC 9293 §3.2 (maximum segment size), RFC 7323 §2.2 and §3.2 (window scale, timestamps), RFC 2018
//! §2 and §3 (selective acknowledgement). Others stay in the list.

use wiretwin_units::Seq;

use crate::octets::{put, u16_at, u32_at};
use crate::{DecodeError, EmitError, Options};

/// TSval and TSecr.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timestamps {
    /// TSval: the sender's clock, in ticks of its own.
    pub value: Seq<32>,
    /// TSecr: the clock of the other side, as last received.
    pub echo: Seq<32>,
}

/// A block of octets that arrived behind a gap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlock {
    /// Its first octet.
    pub left: Seq<32>,
    /// The octet behind its last.
    pub right: Seq<32>,
}

/// One to four blocks, or none.
#[derive(Clone, Copy, Default)]
pub struct SackBlocks {
    count: u8,
    blocks: [SackBlock; MAX_SACK_BLOCKS],
}

impl SackBlocks {
    /// No blocks: no such option.
    pub const NONE: Self =
        Self { count: 0, blocks: [SackBlock { left: Seq::ZERO, right: Seq::ZERO }; MAX_SACK_BLOCKS] };

    /// The blocks, in the order of the option: the one that arrived last comes first.
    pub fn as_slice(&self) -> &[SackBlock] {
        &self.blocks[..usize::from(self.count)]
    }

    /// With one block more, or as it was if there are four.
    pub fn push(&mut self, block: SackBlock) {
        if let Some(free) = self.blocks.get_mut(usize::from(self.count)) {
            *free = block;
            self.count += 1;
        }
    }
}

impl PartialEq for SackBlocks {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for SackBlocks {}

impl core::fmt::Debug for SackBlocks {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.as_slice().fmt(f)
    }
}

/// The options that TCP acts on, each at most once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// Maximum segment size, octets. With SYN only.
    pub mss: Option<u16>,
    /// Window scale: bits to shift by, as sent; more than 14 counts as 14 (RFC 7323 §2.3). With SYN only.
    pub window_scale: Option<u8>,
    /// Selective acknowledgements may be sent. With SYN only.
    pub sack_permitted: bool,
    /// Timestamps.
    pub timestamps: Option<Timestamps>,
    /// Selective acknowledgements.
    pub sack: SackBlocks,
}

impl Known {
    /// The options of `list` that are known here.
    ///
    /// # Errors
    /// [`Fault::Value`](crate::Fault::Value) where one of them has a length that is not its own, with
    /// the place counted from the segment's first octet.
    pub fn of(list: &Options) -> Result<Self, DecodeError> {
        let mut known = Self::default();
        for field in list.fields() {
            let data = field.data;
            let wrong = |name, allowed| {
                let at = super::HEADER_OCTETS + field.offset + 1;
                Err(DecodeError::value((super::FORMAT, name), at, data.len() as u64 + 2, allowed))
            };
            // Choice: where an option is repeated, the last one counts.
            match (field.kind, data.len()) {
                (MSS, 2) => known.mss = Some(u16_at(data, 0)),
                (MSS, _) => return wrong("Maximum Segment Size, length", "4"),
                (WINDOW_SCALE, 1) => known.window_scale = Some(data[0]),
                (WINDOW_SCALE, _) => return wrong("Window Scale, length", "3"),
                (SACK_PERMITTED, 0) => known.sack_permitted = true,
                (SACK_PERMITTED, _) => return wrong("SACK-Permitted, length", "2"),
                (SACK, 8 | 16 | 24 | 32) => {
                    known.sack = SackBlocks::NONE;
                    for block in data.as_chunks::<8>().0 {
                        let (left, right) = (u32_at(block, 0), u32_at(block, 4));
                        let (left, right) = (Seq::wrapping(left), Seq::wrapping(right));
                        known.sack.push(SackBlock { left, right });
                    }
                }
                (SACK, _) => return wrong("SACK, length", "10, 18, 26 or 34"),
                (TIMESTAMPS, 8) => {
                    let (value, echo) = (u32_at(data, 0), u32_at(data, 4));
                    let (value, echo) = (Seq::wrapping(value), Seq::wrapping(echo));
                    known.timestamps = Some(Timestamps { value, echo });
                }
                (TIMESTAMPS, _) => return wrong("Timestamps, length", "10"),
                _ => {}
            }
        }
        Ok(known)
    }

    /// The list that these options make.
    ///
    /// Choice: the order is open. MSS, window scale, SACK-permitted, timestamps, SACK, with
    /// no-operations so that each begins at 32 bits (RFC 7323 appendix A, as 4.4BSD sends);
    /// SACK-permitted takes the place of the two before timestamps.
    ///
    /// # Errors
    /// [`EmitError`] if they take more than 40 octets: four blocks beside timestamps do.
    pub fn list(&self) -> Result<Options, EmitError> {
        let mut list = Options::NONE;
        if let Some(mss) = self.mss {
            list.push(MSS, &mss.to_be_bytes())?;
        }
        if let Some(shift) = self.window_scale {
            list.push_nop()?;
            list.push(WINDOW_SCALE, &[shift])?;
        }
        if self.sack_permitted {
            if self.timestamps.is_none() {
                list.push_nop()?;
                list.push_nop()?;
            }
            list.push(SACK_PERMITTED, &[])?;
        }
        if let Some(Timestamps { value, echo }) = self.timestamps {
            if !self.sack_permitted {
                list.push_nop()?;
                list.push_nop()?;
            }
            let mut data = [0; 8];
            put(&mut data, 0, value.get().to_be_bytes());
            put(&mut data, 4, echo.get().to_be_bytes());
            list.push(TIMESTAMPS, &data)?;
        }
        let blocks = self.sack.as_slice();
        if !blocks.is_empty() {
            let mut data = [0; 8 * MAX_SACK_BLOCKS];
            for (place, block) in data.chunks_exact_mut(8).zip(blocks) {
                put(place, 0, block.left.get().to_be_bytes());
                put(place, 4, block.right.get().to_be_bytes());
            }
            list.push_nop()?;
            list.push_nop()?;
            list.push(SACK, &data[..8 * blocks.len()])?;
        }
        Ok(list)
    }
}

/// Blocks that 40 octets of options have room for.
pub const MAX_SACK_BLOCKS: usize = 4;
/// Window scales above this count as this (RFC 7323 §2.3).
pub const MAX_WINDOW_SCALE: u8 = 14;
/// Kind of the maximum segment size.
pub const MSS: u8 = 2;
/// Kind of the window scale.
pub const WINDOW_SCALE: u8 = 3;
/// Kind of SACK-permitted.
pub const SACK_PERMITTED: u8 = 4;
/// Kind of selective acknowledgements.
pub const SACK: u8 = 5;
/// Kind of timestamps.
pub const TIMESTAMPS: u8 = 8;

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use proptest::prelude::*;

    use super::*;

    fn list(octets: &[u8]) -> Options {
        Options::from_octets(octets).expect("at most 40 octets")
    }

    #[test]
    fn options_of_a_syn_are_read_in_any_order() {
        // As Linux sends them: MSS 1460, SACK-permitted, timestamps, no-operation, window scale 7.
        let linux = list(&[2, 4, 0x05, 0xB4, 4, 2, 8, 10, 0, 0, 0, 9, 0, 0, 0, 0, 1, 3, 3, 7]);
        let known = Known {
            mss: Some(1460),
            window_scale: Some(7),
            sack_permitted: true,
            timestamps: Some(Timestamps { value: Seq::wrapping(9), echo: Seq::ZERO }),
            sack: SackBlocks::NONE,
        };
        assert_eq!(Known::of(&linux), Ok(known));
        let ours = known.list().expect("20 octets");
        assert_eq!(ours.octets(), [2, 4, 0x05, 0xB4, 1, 3, 3, 7, 4, 2, 8, 10, 0, 0, 0, 9, 0, 0, 0, 0]);
        assert_eq!(Known::of(&ours), Ok(known));
    }

    #[test]
    fn each_option_alone_fills_whole_words() {
        let timestamps = Some(Timestamps { value: Seq::wrapping(1), echo: Seq::wrapping(2) });
        let alone = Known { timestamps, ..Known::default() }.list().expect("12 octets");
        assert_eq!(alone.octets(), [1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2]);
        let alone = Known { sack_permitted: true, ..Known::default() }.list().expect("4 octets");
        assert_eq!(alone.octets(), [1, 1, 4, 2]);
        let mut sack = SackBlocks::NONE;
        sack.push(SackBlock { left: Seq::wrapping(5), right: Seq::wrapping(6) });
        let alone = Known { sack, ..Known::default() }.list().expect("12 octets");
        assert_eq!(alone.octets(), [1, 1, 5, 10, 0, 0, 0, 5, 0, 0, 0, 6]);
        assert_eq!(Known::default().list(), Ok(Options::NONE));
    }

    #[test]
    fn unknown_options_are_passed_over_and_the_last_of_a_kind_counts() {
        let known = Known::of(&list(&[254, 4, 1, 2, 2, 4, 0, 1, 2, 4, 0, 2])).expect("whole options");
        assert_eq!(known, Known { mss: Some(2), ..Known::default() });
    }

    #[test]
    fn a_wrong_length_is_named_with_its_place() {
        for (octets, field, allowed) in [
            (&[1, 2, 3, 0][..], "Maximum Segment Size, length", "4"),
            (&[1, 3, 2, 0], "Window Scale, length", "3"),
            (&[1, 4, 3, 0], "SACK-Permitted, length", "2"),
            (&[1, 5, 2, 0], "SACK, length", "10, 18, 26 or 34"),
            (&[1, 5, 11, 0, 0, 0, 0, 0, 0, 0, 0, 0], "SACK, length", "10, 18, 26 or 34"),
            (&[1, 8, 9, 0, 0, 0, 0, 0, 0, 0], "Timestamps, length", "10"),
        ] {
            let error = Known::of(&list(octets)).expect_err(field);
            let expected = DecodeError::value(("TCP segment", field), 22, octets[2], allowed);
            assert_eq!(error, expected, "{error}");
        }
    }

    #[test]
    fn four_blocks_leave_no_room_for_timestamps() {
        let mut sack = SackBlocks::NONE;
        for block in 0..4 {
            sack.push(SackBlock { left: Seq::wrapping(block * 10), right: Seq::wrapping(block * 10 + 5) });
        }
        assert_eq!(Known { sack, ..Known::default() }.list().map(|list| list.padded()), Ok(36));
        let timestamps = Some(Timestamps { value: Seq::ZERO, echo: Seq::ZERO });
        let error = Known { sack, timestamps, ..Known::default() }.list().expect_err("48 octets");
        assert_eq!(error.to_string(), "options, length: 34, allowed is 40 octets in all");
        sack.push(SackBlock::default());
        assert_eq!(sack.as_slice().len(), 4);
    }

    proptest! {
        #[test]
        fn what_is_listed_is_read(
            mss: Option<u16>,
            window_scale: Option<u8>,
            sack_permitted: bool,
            clocks: Option<(u32, u32)>,
            edges in prop::collection::vec(any::<(u32, u32)>(), 0..3),
        ) {
            let timestamps = clocks.map(|(value, echo)| {
                Timestamps { value: Seq::wrapping(value), echo: Seq::wrapping(echo) }
            });
            let mut sack = SackBlocks::NONE;
            for (left, right) in edges {
                sack.push(SackBlock { left: Seq::wrapping(left), right: Seq::wrapping(right) });
            }
            let known = Known { mss, window_scale, sack_permitted, timestamps, sack };
            prop_assume!(known.list().is_ok());
            prop_assert_eq!(Known::of(&known.list().expect("it fits")), Ok(known));
        }
    }
}
