//! Options of an interface: its name, and what a tick of its timestamps is.

use super::{ByteOrder, CaptureError, PS_PER_S, Timestamp};

/// What a tick of an interface's timestamps is, and from when they count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockTick {
    /// `if_tsresol`: a negative power of 10, or with the highest bit of 2.
    resolution: u8,
    /// `if_tsoffset`: seconds to add.
    offset_s: i64,
}

impl ClockTick {
    /// A microsecond: what is meant where nothing is said.
    pub const MICROSECOND: Self = Self { resolution: 6, offset_s: 0 };
    /// A nanosecond.
    pub const NANOSECOND: Self = Self { resolution: 9, offset_s: 0 };
    /// A picosecond: simulated time as it is, for 213 days.
    pub const PICOSECOND: Self = Self { resolution: 12, offset_s: 0 };

    /// The tick that these options of an interface tell; `error` makes one for a place, counted back
    /// from the end of the options.
    pub(super) fn of(
        order: ByteOrder,
        options: &[u8],
        error: impl Fn(u64, &'static str, u64, &'static str) -> CaptureError,
    ) -> Result<Self, CaptureError> {
        let mut tick = Self::MICROSECOND;
        let mut rest = options;
        while let Some((&[a, b, c, d], behind)) = rest.split_first_chunk::<4>() {
            let (code, length) = (order.u16([a, b]), order.u16([c, d]));
            if code == END_OF_OPTIONS {
                break;
            }
            let Some(value) = behind.get(..usize::from(length)) else {
                let allowed = "0 to the end of the block";
                return Err(error(behind.len() as u64 + 2, "option length", length.into(), allowed));
            };
            match (code, value) {
                (IF_TSRESOL, &[resolution]) => {
                    let most = if resolution & BINARY == 0 { 19 } else { BINARY | 63 };
                    if resolution > most {
                        let allowed = "0 to 19 for powers of 10, 128 to 191 for powers of 2";
                        return Err(error(behind.len() as u64, "if_tsresol", resolution.into(), allowed));
                    }
                    tick.resolution = resolution;
                }
                (IF_TSOFFSET, &[a, b, c, d, e, f, g, h]) => {
                    let bits = match order {
                        ByteOrder::Little => u64::from_le_bytes([a, b, c, d, e, f, g, h]),
                        ByteOrder::Big => u64::from_be_bytes([a, b, c, d, e, f, g, h]),
                    };
                    tick.offset_s = bits as i64;
                }
                (IF_TSRESOL | IF_TSOFFSET, _) => {
                    let allowed = "1 for if_tsresol, 8 for if_tsoffset";
                    return Err(error(behind.len() as u64 + 2, "option length", length.into(), allowed));
                }
                _ => {}
            }
            rest = behind.get(value.len().next_multiple_of(4)..).unwrap_or(&[]);
        }
        Ok(tick)
    }

    const fn ticks_per_s(self) -> u128 {
        if self.resolution & BINARY == 0 {
            10_u128.pow(self.resolution as u32)
        } else {
            1 << (self.resolution & !BINARY)
        }
    }

    /// The time of so many ticks. What is finer than a picosecond is cut off; a time before 1970 is
    /// taken for its start.
    pub fn timestamp(self, ticks: u64) -> Timestamp {
        let (ticks, per_s) = (u128::from(ticks), self.ticks_per_s());
        let seconds = (ticks / per_s) as i128 + i128::from(self.offset_s);
        let Ok(seconds) = u64::try_from(seconds.max(0)) else {
            return Timestamp { seconds: u64::MAX, picoseconds: PS_PER_S - 1 };
        };
        // Below 2^64 times 10^12: no more than 104 bits.
        Timestamp { seconds, picoseconds: (ticks % per_s * u128::from(PS_PER_S) / per_s) as u64 }
    }

    /// The ticks of a time, rounded down; `None` where 64 bits do not hold them.
    pub fn ticks(self, time: Timestamp) -> Option<u64> {
        if time.picoseconds >= PS_PER_S {
            return None;
        }
        let seconds = i128::from(time.seconds) - i128::from(self.offset_s);
        let whole = u128::try_from(seconds).ok()?.checked_mul(self.ticks_per_s())?;
        let part = u128::from(time.picoseconds) * self.ticks_per_s() / u128::from(PS_PER_S);
        u64::try_from(whole.checked_add(part)?).ok()
    }
}

/// Options that name an interface and tell its tick.
pub fn interface_options(order: ByteOrder, name: &str, tick: ClockTick) -> Vec<u8> {
    let mut options = Vec::new();
    let mut push = |code: u16, value: &[u8]| {
        order.put16(&mut options, code);
        order.put16(&mut options, value.len() as u16);
        options.extend(value);
        options.resize(options.len().next_multiple_of(4), 0);
    };
    if !name.is_empty() {
        // Cut where the length field ends; the format asks for UTF-8, so at a character.
        let end = (0..=name.len().min(usize::from(u16::MAX))).rev().find(|&end| name.is_char_boundary(end));
        push(IF_NAME, &name.as_bytes()[..end.unwrap_or(0)]);
    }
    push(IF_TSRESOL, &[tick.resolution]);
    if tick.offset_s != 0 {
        push(
            IF_TSOFFSET,
            &match order {
                ByteOrder::Little => tick.offset_s.to_le_bytes(),
                ByteOrder::Big => tick.offset_s.to_be_bytes(),
            },
        );
    }
    push(END_OF_OPTIONS, &[]);
    options
}

const END_OF_OPTIONS: u16 = 0;
const IF_NAME: u16 = 2;
const IF_TSRESOL: u16 = 9;
const IF_TSOFFSET: u16 = 14;
const BINARY: u8 = 0x80;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(order: ByteOrder, options: &[u8]) -> Result<ClockTick, String> {
        let error = |back, field, found, allowed| CaptureError {
            format: "test",
            field,
            offset: options.len() as u64 - back,
            fault: super::super::CaptureFault::Value { found, allowed },
        };
        ClockTick::of(order, options, error).map_err(|error| error.to_string())
    }

    #[test]
    fn a_tick_is_told_and_understood() {
        for order in [ByteOrder::Little, ByteOrder::Big] {
            for tick in [
                ClockTick::MICROSECOND,
                ClockTick::PICOSECOND,
                ClockTick { resolution: BINARY | 30, offset_s: -7 },
            ] {
                assert_eq!(of(order, &interface_options(order, "vci 32 \u{e9}", tick)), Ok(tick));
            }
        }
        assert_eq!(of(ByteOrder::Big, &[]), Ok(ClockTick::MICROSECOND));
    }

    #[test]
    fn times_are_what_the_ticks_say() {
        let at = |resolution, offset_s, ticks| ClockTick { resolution, offset_s }.timestamp(ticks);
        assert_eq!(at(6, 0, 1_500_000), Timestamp { seconds: 1, picoseconds: PS_PER_S / 2 });
        assert_eq!(at(BINARY | 1, 100, 3), Timestamp { seconds: 101, picoseconds: PS_PER_S / 2 });
        assert_eq!(at(12, -5, 3), Timestamp { seconds: 0, picoseconds: 3 });
        assert_eq!(at(19, 0, u64::MAX).seconds, 1);
        assert_eq!(at(0, i64::MAX, u64::MAX).seconds, u64::MAX);
        assert_eq!(ClockTick::PICOSECOND.ticks(Timestamp { seconds: 18_446_745, picoseconds: 0 }), None);
        assert_eq!(ClockTick::MICROSECOND.ticks(Timestamp { seconds: 0, picoseconds: PS_PER_S }), None);
    }

    #[test]
    fn every_wrong_option_is_named_with_its_place() {
        for (options, said) in [
            (
                &[0, 9, 0, 1, 20, 0, 0, 0][..],
                "test, if_tsresol at octet 4: 20, allowed is 0 to 19 for powers of 10, 128 to 191 for powers of 2",
            ),
            (
                &[0, 9, 0, 1, 192, 0, 0, 0],
                "test, if_tsresol at octet 4: 192, allowed is 0 to 19 for powers of 10, 128 to 191 for powers of 2",
            ),
            (
                &[0, 9, 0, 2, 1, 1, 0, 0],
                "test, option length at octet 2: 2, allowed is 1 for if_tsresol, 8 for if_tsoffset",
            ),
            (
                &[0, 2, 0, 5, 1, 1, 0, 0],
                "test, option length at octet 2: 5, allowed is 0 to the end of the block",
            ),
        ] {
            assert_eq!(of(ByteOrder::Big, options), Err(said.to_string()));
        }
    }

    proptest! {
        #[test]
        fn a_time_in_ticks_is_the_last_tick_before_it(seconds in 0u64..1 << 33, picoseconds in 0u64..PS_PER_S, digits in 0u8..10) {
            let tick = ClockTick { resolution: digits, offset_s: 0 };
            let time = Timestamp { seconds, picoseconds };
            let again = tick.timestamp(tick.ticks(time).expect("some 10^19 at most"));
            prop_assert!(again <= time);
            prop_assert!(again.seconds == seconds && picoseconds - again.picoseconds < 10_u64.pow(12 - u32::from(digits)));
        }
    }
}
