//! Between a segment as a handle and the header that stands on the wire.

use wiretwin_units::Bytes;
use wiretwin_wire::tcp as wire;
use wiretwin_wire::{DecodeError, EmitError};

use super::segment::{Ecn, Flags, Options, SackBlocks, Segment, SeqNumber, Timestamps};
use crate::{MessageId, Payload};

impl Segment {
    /// The header of this segment, to be emitted before its text.
    ///
    /// # Errors
    /// [`EmitError`] if the options do not fit 40 octets; that the text fits is seen as it is emitted.
    pub fn to_wire(&self, source_port: u16, destination_port: u16) -> Result<wire::Repr, EmitError> {
        let options = &self.options;
        let mut sack = wire::SackBlocks::NONE;
        for &(left, right) in options.sack.as_slice() {
            sack.push(wire::SackBlock { left, right });
        }
        let known = wire::Known {
            mss: options.mss,
            window_scale: options.window_scale,
            sack_permitted: options.sack_permitted,
            timestamps: options.timestamps.map(|Timestamps { value, echo }| wire::Timestamps {
                value: SeqNumber::wrapping(value),
                echo: SeqNumber::wrapping(echo),
            }),
            sack,
        };
        // What is too long for the field is too long to be emitted, too.
        let payload_length = u16::try_from(self.payload.length.get()).unwrap_or(u16::MAX);
        Ok(wire::Repr {
            source_port,
            destination_port,
            seq: self.seq,
            ack: self.flags.has(Flags::ACK).then_some(self.ack),
            flags: wire::Flags {
                cwr: self.flags.has(Flags::CWR),
                ece: self.flags.has(Flags::ECE),
                psh: self.flags.has(Flags::PSH),
                rst: self.flags.has(Flags::RST),
                syn: self.flags.has(Flags::SYN),
                fin: self.flags.has(Flags::FIN),
            },
            window: self.window,
            urgent: self.flags.has(Flags::URG).then_some(self.urgent),
            options: known.list()?,
            payload_length,
        })
    }

    /// The segment that a header describes. Which stream its text is of, the receiver knows.
    ///
    /// # Errors
    /// [`DecodeError`] where an option has a length that is not its own.
    pub fn from_wire(repr: &wire::Repr) -> Result<Self, DecodeError> {
        let known = wire::Known::of(&repr.options)?;
        let mut sack = SackBlocks::NONE;
        for block in known.sack.as_slice() {
            sack.push(block.left, block.right);
        }
        let mut flags = Flags::NONE;
        for (set, flag) in [
            (repr.flags.cwr, Flags::CWR),
            (repr.flags.ece, Flags::ECE),
            (repr.flags.psh, Flags::PSH),
            (repr.flags.rst, Flags::RST),
            (repr.flags.syn, Flags::SYN),
            (repr.flags.fin, Flags::FIN),
            (repr.ack.is_some(), Flags::ACK),
            (repr.urgent.is_some(), Flags::URG),
        ] {
            if set {
                flags |= flag;
            }
        }
        Ok(Self {
            seq: repr.seq,
            ack: repr.ack.unwrap_or(SeqNumber::ZERO),
            flags,
            window: repr.window,
            urgent: repr.urgent.unwrap_or(0),
            corrupted: false,
            // That is in the header of IP.
            ecn: Ecn::NotCapable,
            options: Options {
                mss: known.mss,
                window_scale: known.window_scale,
                sack_permitted: known.sack_permitted,
                timestamps: known.timestamps.map(|wire::Timestamps { value, echo }| Timestamps {
                    value: value.get(),
                    echo: echo.get(),
                }),
                sack,
            },
            payload: Payload::whole(MessageId(0), Bytes::new(u64::from(repr.payload_length))),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_options() -> impl Strategy<Value = Options> {
        (
            any::<Option<u16>>(),
            prop::option::of(0_u8..15),
            any::<bool>(),
            any::<Option<(u32, u32)>>(),
            prop::collection::vec(any::<(u32, u32)>(), 0..3),
        )
            .prop_map(|(mss, window_scale, sack_permitted, timestamps, blocks)| {
                let mut sack = SackBlocks::NONE;
                for (from, to) in blocks {
                    sack.push(SeqNumber::wrapping(from), SeqNumber::wrapping(to));
                }
                let timestamps = timestamps.map(|(value, echo)| Timestamps { value, echo });
                Options { mss, window_scale, sack_permitted, timestamps, sack }
            })
    }

    proptest! {
        #[test]
        fn a_segment_survives_its_header_and_takes_the_octets_it_says(
            (seq, ack, flags, window, urgent) in any::<(u32, u32, u8, u16, u16)>(),
            options in any_options(),
            length in 0_u64..65_000,
        ) {
            let flags = Flags::from_bits(flags);
            let segment = Segment {
                window,
                urgent: if flags.has(Flags::URG) { urgent } else { 0 },
                options,
                payload: Payload::whole(MessageId(0), Bytes::new(length)),
                ..Segment::control(
                    SeqNumber::wrapping(seq),
                    SeqNumber::wrapping(if flags.has(Flags::ACK) { ack } else { 0 }),
                    flags,
                )
            };
            let Ok(repr) = segment.to_wire(1, 2) else {
                prop_assert!(options.octets() > 40);
                return Ok(());
            };
            prop_assert_eq!(repr.header_octets(), usize::from(segment.header_octets()));
            prop_assert_eq!(Segment::from_wire(&repr), Ok(segment));
        }
    }
}
