//! Properties of the units over arbitrary values, against arithmetic in 128 bits.

use std::cmp::Ordering;

use proptest::prelude::*;
use wiretwin_units::{
    BitRate, Bits, Bytes, Cells, HostTime, ParseQuantityError, Seq, Serializer, SimTime, Span, Transmitter,
};

const PS_PER_S: u128 = 1_000_000_000_000;

/// Values of every magnitude, not only near the middle of the range.
fn any_magnitude() -> impl Strategy<Value = u64> {
    (any::<u64>(), 0_u32..64).prop_map(|(bits, shift)| bits >> shift)
}

fn any_rate() -> impl Strategy<Value = BitRate> {
    any_magnitude().prop_map(|rate| BitRate::bit_s(rate.max(1)))
}

proptest! {
    #[test]
    fn what_is_printed_reads_back_as_the_same_value(value in any_magnitude()) {
        prop_assert_eq!(Span::from_ps(value).to_string().parse(), Ok(Span::from_ps(value)));
        prop_assert_eq!(SimTime::from_ps(value).to_string().parse(), Ok(SimTime::from_ps(value)));
        prop_assert_eq!(Bytes::new(value).to_string().parse(), Ok(Bytes::new(value)));
        prop_assert_eq!(Bits::new(value).to_string().parse(), Ok(Bits::new(value)));
        prop_assert_eq!(Cells::new(value).to_string().parse(), Ok(Cells::new(value)));
        let rate = BitRate::bit_s(value.max(1));
        prop_assert_eq!(rate.to_string().parse(), Ok(rate));
    }

    #[test]
    fn reading_agrees_with_arithmetic_in_128_bits(
        whole in 0_u64..100_000_000,
        fraction in "[0-9]{0,14}",
        unit in prop::sample::select(vec![("ps", 1_u128), ("ns", 1_000), ("us", 1_000_000), ("ms", 1_000_000_000), ("s", PS_PER_S)]),
    ) {
        let (name, scale) = unit;
        let text = if fraction.is_empty() { format!("{whole} {name}") } else { format!("{whole}.{fraction}{name}") };
        let power = 10_u128.pow(fraction.len() as u32);
        let scaled = (u128::from(whole) * power + fraction.parse::<u128>().unwrap_or(0)) * scale;
        match text.parse::<Span>() {
            Ok(span) => prop_assert_eq!(u128::from(span.as_ps()) * power, scaled),
            Err(ParseQuantityError::NotWhole { .. }) => prop_assert!(!scaled.is_multiple_of(power)),
            Err(ParseQuantityError::TooLarge { .. }) => prop_assert!(scaled / power > u128::from(u64::MAX)),
            Err(other) => prop_assert!(false, "{}", other),
        }
    }

    #[test]
    fn no_text_panics_the_reader(text in "\\PC{0,24}") {
        let _ = text.parse::<Span>();
        let _ = text.parse::<BitRate>();
        let _ = text.parse::<Bytes>();
        let _ = text.parse::<Bits>();
        let _ = text.parse::<Cells>();
    }

    #[test]
    fn a_bare_number_is_never_a_quantity(text in "[0-9]{1,20}(\\.[0-9]{1,20})?") {
        let refused = matches!(text.parse::<Bytes>(), Err(ParseQuantityError::NoUnit { .. }));
        prop_assert!(refused);
    }

    #[test]
    fn serialization_carries_the_remainder_exactly(
        rate in any_rate(),
        pieces in prop::collection::vec(prop_oneof![Just(424_u64), any_magnitude()], 1..50),
    ) {
        let mut line = Serializer::new(rate);
        let mut bits = 0_u128;
        let mut ps = 0_u128;
        for piece in pieces {
            // Wide sums: a run of long pieces may exceed what one span holds.
            let Ok(span) = line.push(Bits::new(piece)) else {
                prop_assert!((u128::from(piece) + 1) * PS_PER_S / u128::from(rate.get()) >= u128::from(u64::MAX));
                continue;
            };
            bits += u128::from(piece);
            ps += u128::from(span.as_ps());
            prop_assert_eq!(ps, bits * PS_PER_S / u128::from(rate.get()));
        }
    }

    #[test]
    fn a_transmitter_sends_in_order_without_overlap_and_never_early_by_a_picosecond(
        rate in (1_000_000_u64..1_000_000_000_000).prop_map(BitRate::bit_s),
        pieces in prop::collection::vec((0_u64..20_000_000, 0_u64..100_000), 1..60),
    ) {
        let mut port = Transmitter::new(rate);
        let mut now = 0_u64;
        // The exact instant at which the line is free, in parts of 1/rate ps.
        let r = u128::from(rate.get());
        let mut exact_free = 0_u128;
        for (gap, bits) in pieces {
            now += gap;
            let sent = port.send(SimTime::from_ps(now), Bits::new(bits)).unwrap();
            let idle = now > (exact_free / r) as u64;
            let exact_start = if idle { u128::from(now) * r } else { exact_free };
            exact_free = exact_start + u128::from(bits) * PS_PER_S;
            prop_assert_eq!(u128::from(sent.start.as_ps()), exact_start / r);
            prop_assert_eq!(u128::from(sent.end.as_ps()), exact_free / r);
        }
    }

    #[test]
    fn a_rate_and_its_time_undo_each_other(rate in any_rate(), bits in any_magnitude()) {
        if let Some(span) = rate.time_for(Bits::new(bits)) {
            prop_assert!(rate.bits_in(span) >= Bits::new(bits));
            if let Some(before) = span.checked_sub(Span::from_ps(1)) {
                prop_assert!(rate.bits_in(before) < Bits::new(bits));
            }
        }
    }

    #[test]
    fn instants_and_spans_agree_with_128_bits(a in any_magnitude(), b in any_magnitude()) {
        let (wide_a, wide_b) = (u128::from(a), u128::from(b));
        let later = SimTime::from_ps(a).checked_add(Span::from_ps(b));
        prop_assert_eq!(later.map(|t| u128::from(t.as_ps())), Some(wide_a + wide_b).filter(|&sum| sum <= u128::from(u64::MAX)));
        let since = SimTime::from_ps(a).checked_since(SimTime::from_ps(b));
        prop_assert_eq!(since.map(|s| u128::from(s.as_ps())), wide_a.checked_sub(wide_b));
        let host = HostTime::from_ns(a).checked_since(HostTime::from_ns(b));
        let expected = wide_a.checked_sub(wide_b).map(|ns| ns * 1_000).filter(|&ps| ps <= u128::from(u64::MAX));
        prop_assert_eq!(host.map(|s| u128::from(s.as_ps())), expected);
    }

    #[test]
    fn sequence_numbers_agree_with_counts_that_do_not_wrap(start in any::<u32>(), ahead in 0_u64..(1 << 24)) {
        let base = Seq::<24>::wrapping(start);
        let other = base + ahead as u32;
        prop_assert_eq!(u64::from(other.get()), (u64::from(start) + ahead) % Seq::<24>::MODULUS);
        prop_assert_eq!(u64::from(other.offset_from(base)), ahead);
        prop_assert_eq!(other.back(ahead as u32), base);
        let expected = match ahead {
            0 => Some(Ordering::Equal),
            1..0x80_0000 => Some(Ordering::Greater),
            0x80_0000 => None,
            _ => Some(Ordering::Less),
        };
        prop_assert_eq!(other.serial_cmp(base), expected);
        prop_assert_eq!(base.serial_cmp(other), expected.map(Ordering::reverse));
    }
}
