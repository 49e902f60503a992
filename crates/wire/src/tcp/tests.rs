//! Segments as octets, and what they say.

use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;
use core::net::Ipv4Addr;

use proptest::prelude::*;

use super::*;

const ENDS: Ends = Ends { source: Ipv4Addr::new(10, 0, 0, 1), destination: Ipv4Addr::new(10, 0, 0, 2) };

fn repr() -> Repr {
    Repr {
        source_port: 1023,
        destination_port: 513,
        seq: Seq::wrapping(0x0102_0304),
        ack: Some(Seq::wrapping(0xFFFF_FFFE)),
        flags: Flags::PSH,
        window: 4096,
        urgent: None,
        options: Options::NONE,
        payload_length: 3,
    }
}

const KNOWN: [u8; 23] = [
    0x03, 0xFF, 0x02, 0x01, 0x01, 0x02, 0x03, 0x04, 0xFF, 0xFF, 0xFF, 0xFE, 0x50, 0x18, 0x10, 0x00, 0xBD,
    0x5F, 0x00, 0x00, b'a', b'b', b'c',
];

fn emitted(repr: Repr, payload: &[u8]) -> Vec<u8> {
    let mut octets = vec![0xEE; repr.header_octets()];
    octets.extend(payload);
    repr.emit(&ENDS, &mut octets).expect("the size fits");
    octets
}

fn parsed(octets: &[u8]) -> Result<Repr, DecodeError> {
    Repr::parse(&Segment::new_checked(octets)?, &ENDS)
}

/// Sets the checksum right.
fn close(octets: &mut [u8]) {
    put(octets, CHECKSUM_AT, [0, 0]);
    let sum = ENDS.pseudo_header(Protocol::TCP, octets.len() as u16).octets(octets);
    put(octets, CHECKSUM_AT, sum.checksum().to_be_bytes());
}

#[test]
fn a_segment_is_written_and_read() {
    assert_eq!(emitted(repr(), b"abc"), KNOWN);
    assert_eq!(parsed(&KNOWN), Ok(repr()));
    assert_eq!(Segment::new_checked(&KNOWN).expect("23 octets").payload(), b"abc");
    assert_eq!(repr().to_string(), "1023 > 513 [P.] seq 16909060 ack 4294967294 win 4096 length 3");
}

#[test]
fn each_flag_has_its_bit() {
    let flags = |set: fn(&mut Flags)| {
        let mut flags = Flags::NONE;
        set(&mut flags);
        flags
    };
    for (flags, bit) in [
        (flags(|flags| flags.cwr = true), CWR),
        (flags(|flags| flags.ece = true), ECE),
        (Flags::PSH, PSH),
        (Flags::RST, RST),
        (Flags::SYN, SYN),
        (Flags::FIN, FIN),
    ] {
        assert_eq!((flags.bits(), Flags::of(bit)), (bit, flags));
    }
    let urgent = Repr { urgent: Some(7), ack: None, ..repr() };
    let octets = emitted(urgent, b"abc");
    assert_eq!((octets[FLAGS_AT], &octets[18..20]), (URG | PSH, &[0, 7][..]));
    assert_eq!(octets[8..12], [0; 4]);
    assert_eq!(parsed(&octets), Ok(urgent));
}

#[test]
fn a_segment_takes_one_number_for_each_octet_and_one_for_syn_and_fin() {
    assert_eq!(repr().seq_length(), 3);
    assert_eq!(Repr { flags: Flags::SYN, payload_length: 0, ..repr() }.seq_length(), 1);
    assert_eq!(Repr { flags: Flags { syn: true, ..Flags::FIN }, ..repr() }.seq_length(), 5);
}

#[test]
fn a_syn_brings_its_options() {
    let known = Known { mss: Some(1460), window_scale: Some(0), ..Known::default() };
    let syn = Repr {
        flags: Flags::SYN,
        ack: None,
        options: known.list().expect("8 octets"),
        payload_length: 0,
        ..repr()
    };
    let octets = emitted(syn, b"");
    assert_eq!(octets[12..14], [0x70, 0x02]);
    assert_eq!(octets[20..], [2, 4, 0x05, 0xB4, 1, 3, 3, 0]);
    assert_eq!(parsed(&octets), Ok(syn));
    assert_eq!(Known::of(&syn.options), Ok(known));
}

#[test]
fn reserved_bits_and_fields_without_their_flag_are_ignored() {
    let plain = Repr { ack: None, ..repr() };
    let mut octets = emitted(plain, b"abc");
    octets[8..12].fill(0xAA);
    octets[18..20].fill(0xAA);
    octets[12] |= 0x0F;
    close(&mut octets);
    assert_eq!(parsed(&octets), Ok(plain));
}

#[test]
fn every_wrong_field_is_named_with_its_place() {
    let size = Segment::new_checked(&KNOWN[..19]).expect_err("19 octets");
    assert_eq!(size.to_string(), "TCP segment, segment at octet 0: 19 octets, allowed are 20 to 65515");
    Segment::new_checked(vec![0x50; 65_516]).expect_err("more than a packet takes");
    let cases: [(&[(usize, u8)], &str); 4] = [
        (
            &[(12, 0x40)],
            "TCP segment, Data Offset at octet 12: 4, allowed is 5 to a quarter of the octets there are",
        ),
        (
            &[(12, 0x60)],
            "TCP segment, Data Offset at octet 12: 6, allowed is 5 to a quarter of the octets there are",
        ),
        (
            &[(12, 0x60), (20, 77), (21, 5)],
            "TCP segment, option length at octet 21: 5, allowed is 2 to the end of the header",
        ),
        (
            &[(12, 0x60), (20, 2), (21, 3)],
            "TCP segment, Maximum Segment Size, length at octet 21: 3, allowed is 4",
        ),
    ];
    for (at, (changes, said)) in cases.into_iter().enumerate() {
        let mut octets = KNOWN.to_vec();
        if at > 1 {
            octets.push(0);
        }
        changes.iter().for_each(|&(at, octet)| octets[at] = octet);
        close(&mut octets);
        assert_eq!(parsed(&octets).expect_err(said).to_string(), said);
    }
}

#[test]
fn every_wrong_bit_is_found() {
    for bit in 0..KNOWN.len() * 8 {
        let mut octets = KNOWN;
        octets[bit / 8] ^= 0x80 >> (bit % 8);
        let error = parsed(&octets).expect_err("a bit was turned");
        let field = if matches!(bit, 96..100) { "Data Offset" } else { "Checksum" };
        assert_eq!(error.field, field, "bit {bit}");
    }
    let mut octets = KNOWN;
    octets[22] ^= 1;
    let said = "TCP segment, Checksum at octet 16: checksum 0xbd5f, but the octets it covers give 0xbe5f";
    assert_eq!(parsed(&octets).expect_err("a wrong payload").to_string(), said);
    let astray = Ends { source: Ipv4Addr::new(10, 0, 0, 3), ..ENDS };
    let segment = Segment::new_checked(&KNOWN).expect("23 octets");
    assert_eq!(Repr::parse(&segment, &astray).expect_err("another host's").field, "Checksum");
    // The sum does not see source and destination change places.
    assert_eq!(Repr::parse(&segment, &ENDS.reversed()), Ok(repr()));
}

#[test]
fn a_segment_that_does_not_fit_is_not_written() {
    let mut octets = vec![0xEE; 24];
    let error = repr().emit(&ENDS, &mut octets).expect_err("one octet too many");
    assert_eq!(error.to_string(), "TCP segment, header and payload: 24 octets to write to, but it takes 23");
    let long = Repr { payload_length: 65_496, ..repr() };
    let error = long.emit(&ENDS, &mut octets).expect_err("65516 octets");
    assert_eq!(
        error.to_string(),
        "TCP segment, payload: 65496, allowed is 0 to 65515 octets less the header"
    );
    assert_eq!(octets, vec![0xEE; 24]);
    let longest = Repr { payload_length: 65_495, ..repr() };
    longest.emit(&ENDS, &mut vec![0; MAX_SEGMENT_OCTETS]).expect("65515 octets");
}

proptest! {
    #[test]
    fn what_is_written_is_read(
        ports: (u16, u16),
        seq: u32,
        ack: Option<u32>,
        bits: u8,
        window: u16,
        urgent: Option<u16>,
        known: bool,
        payload in prop::collection::vec(any::<u8>(), 0..100),
    ) {
        let mut options = Options::NONE;
        if known {
            options.push(MSS, &[1, 2]).expect("4 octets");
            options.push(253, &[3]).expect("7 octets");
        }
        let repr = Repr {
            source_port: ports.0,
            destination_port: ports.1,
            seq: Seq::wrapping(seq),
            ack: ack.map(Seq::wrapping),
            flags: Flags::of(bits),
            window,
            urgent,
            options,
            payload_length: payload.len() as u16,
        };
        let octets = emitted(repr, &payload);
        prop_assert_eq!(parsed(&octets), Ok(repr));
    }

    #[test]
    fn arbitrary_octets_round_trip(mut octets in prop::collection::vec(any::<u8>(), 20..120), valid: bool) {
        if valid {
            let words = (octets[12] >> 4).clamp(5, (octets.len() / 4) as u8);
            octets[12] = words << 4 | octets[12] & 0xF;
            close(&mut octets);
        }
        let mut scratch = vec![0; octets.len()];
        round_trip(&ENDS, &octets, &mut scratch);
    }
}
