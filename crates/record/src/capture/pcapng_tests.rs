//! Blocks as octets, and what they say.

use proptest::prelude::*;

use super::*;

/// A section, an interface of Ethernet with nanoseconds, a packet, a simple packet, another block.
const FILE: &[u8] = b"\x0a\x0d\x0d\x0a\x00\x00\x00\x1c\x1a\x2b\x3c\x4d\x00\x01\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff\x00\x00\x00\x1c\
    \x00\x00\x00\x01\x00\x00\x00\x20\x00\x01\x00\x00\x00\x00\x00\x00\x00\x09\x00\x01\x09\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x20\
    \x00\x00\x00\x06\x00\x00\x00\x24\x00\x00\x00\x00\x00\x00\x00\x00\x3b\x9a\xca\x07\x00\x00\x00\x03\x00\x00\x00\x04abc\x00\x00\x00\x00\x24\
    \x00\x00\x00\x03\x00\x00\x00\x14\x00\x00\x00\x02xy\x00\x00\x00\x00\x00\x14\
    \x00\x00\x00\x05\x00\x00\x00\x10\x01\x02\x03\x04\x00\x00\x00\x10";

/// Where the blocks of it begin.
const PLACES: [usize; 5] = [0, 28, 60, 96, 116];

fn refused(octets: &[u8]) -> String {
    Reader::new(octets).blocks().expect_err("no capture").to_string()
}

fn changed(at: usize, octet: u8) -> String {
    let mut octets = FILE.to_vec();
    octets[at] = octet;
    refused(&octets)
}

#[test]
fn a_known_file_is_read_and_written() {
    let blocks = round_trip(FILE).expect("a whole file");
    let packet = Block::Packet {
        interface: 0,
        ticks: 1_000_000_007,
        original_length: 4,
        octets: b"abc".to_vec(),
        options: vec![],
    };
    assert_eq!(
        blocks[0],
        Block::Section { order: ByteOrder::Big, minor: 0, length: u64::MAX, options: vec![] }
    );
    assert_eq!(blocks[2], packet);
    assert_eq!(blocks[3], Block::SimplePacket { original_length: 2, octets: b"xy".to_vec() });
    assert_eq!(blocks[4], Block::Other { kind: 5, body: vec![1, 2, 3, 4] });
}

#[test]
fn packets_come_with_their_time_and_link() {
    let mut reader = Reader::new(FILE);
    let timestamp = Some(Timestamp { seconds: 1, picoseconds: 7_000 });
    let link = LinkType::ETHERNET;
    let first = Packet { timestamp, link, original_length: 4, octets: b"abc".to_vec() };
    assert_eq!(reader.next_packet().expect("a packet"), Some(first));
    let second = Packet { timestamp: None, link, original_length: 2, octets: b"xy".to_vec() };
    assert_eq!(reader.next_packet().expect("a packet"), Some(second));
    assert_eq!(reader.next_packet().expect("the end"), None);
}

#[test]
fn either_format_is_opened() {
    let mut capture = super::super::open(FILE).expect("a file");
    assert_eq!(capture.next_packet().expect("a packet").expect("there are two").octets, b"abc");
    let header = super::super::pcap::Header::new(LinkType::FDDI);
    let mut writer = super::super::pcap::Writer::new(Vec::new(), header).expect("a header");
    writer.packet(Timestamp::default(), b"xyz").expect("a packet");
    let file = writer.finish().expect("memory");
    let packet = super::super::open(&file[..]).expect("a file").next_packet().expect("a packet");
    assert_eq!(packet.expect("there is one").link, LinkType::FDDI);
    super::super::open(&b"abc"[..]).expect_err("three octets");
    super::super::open(&b"abcd"[..]).expect_err("another format");
}

#[test]
fn interfaces_and_packets_are_written_for_every_order() {
    for order in [ByteOrder::Little, ByteOrder::Big] {
        let mut writer = Writer::new(Vec::new(), order).expect("a section");
        let first = writer.interface("a", LinkType::ETHERNET, ClockTick::NANOSECOND).expect("an interface");
        let second = writer.interface("b", LinkType::SUNATM, ClockTick::PICOSECOND).expect("another");
        let time = wiretwin_units::SimTime::from_ps(5_000_000_000_003);
        writer.packet(second, time.into(), b"atm").expect("a packet");
        writer.packet(first, time.into(), b"ether").expect("a packet");
        let missing = writer.packet(2, time.into(), b"").expect_err("two interfaces");
        assert_eq!(missing.field, "interface");
        let late = Timestamp { seconds: u64::MAX, picoseconds: 0 };
        assert_eq!(writer.packet(0, late, b"").expect_err("too late").field, "timestamp");
        let file = writer.finish().expect("memory");
        round_trip(&file).expect("a whole file");
        let mut reader = Reader::new(&file[..]);
        let atm = reader.next_packet().expect("a packet").expect("there are two");
        assert_eq!((atm.timestamp, atm.link), (Some(time.into()), LinkType::SUNATM));
        let ethernet = reader.next_packet().expect("a packet").expect("there are two");
        assert_eq!(ethernet.timestamp, Some(Timestamp { seconds: 5, picoseconds: 0 }));
    }
}

#[test]
fn a_new_section_may_have_another_order_and_forgets_the_interfaces() {
    let mut writer = Writer::new(Vec::new(), ByteOrder::Big).expect("a section");
    writer.interface("", LinkType::ETHERNET, ClockTick::NANOSECOND).expect("an interface");
    let section = Block::Section { order: ByteOrder::Little, minor: 2, length: 0, options: vec![] };
    writer.block(&section).expect("a section");
    writer.packet(0, Timestamp::default(), b"").expect_err("no interface");
    let packet = Block::SimplePacket { original_length: 0, octets: vec![] };
    writer.block(&packet).expect("a packet, which a reader has no interface for");
    let file = writer.finish().expect("memory");
    let said = "pcapng, interface at octet 96: 0, allowed is one of those there are";
    assert_eq!(refused(&file), said);
}

#[test]
fn every_wrong_field_is_named_with_its_place() {
    let [section, interface, packet, simple, other] = PLACES;
    let lengths = "a multiple of 4 from what the block must have to 16777216";
    let length =
        |at: usize, found: u32| format!("pcapng, block length at octet {at}: {found}, allowed is {lengths}");
    for (at, octet, said) in [
        (section, 0x0B, "pcapng, block type at octet 0: 185404682, allowed is 168627466, a section, at first".into()),
        (
            section + 8,
            0x1B,
            "pcapng, byte-order magic at octet 8: 1295788827, allowed is 0x1a2b3c4d in either order of octets".into(),
        ),
        (section + 7, 0x18, length(4, 0x18)),
        (section + 7, 0x1D, length(4, 0x1D)),
        (section + 13, 2, "pcapng, version at octet 12: 131072, allowed is 65536 or 65538, that is 1.0 or 1.2".into()),
        (section + 15, 1, "pcapng, version at octet 12: 65537, allowed is 65536 or 65538, that is 1.0 or 1.2".into()),
        (section + 27, 0x20, "pcapng, closing length at octet 24: 32, allowed is the length the block began with".into()),
        (interface + 7, 8, length(32, 8)),
        (interface + 4, 2, length(32, 0x0200_0020)),
        (interface + 11, 1, "pcapng, reserved at octet 38: 1, allowed is 0".into()),
        (
            interface + 20,
            99,
            "pcapng, if_tsresol at octet 48: 99, allowed is 0 to 19 for powers of 10, 128 to 191 for powers of 2".into(),
        ),
        (packet + 11, 1, "pcapng, interface at octet 68: 1, allowed is one of those there are".into()),
        (packet + 23, 5, "pcapng, captured length at octet 80: 5, allowed is 0 to 262144 and the octets of the block".into()),
        (packet + 27, 2, "pcapng, original length at octet 84: 2, allowed is the captured length or more".into()),
        (packet + 31, 1, "pcapng, padding at octet 91: 1, allowed is 0 in each octet".into()),
        (
            simple + 11,
            5,
            "pcapng, original length at octet 104: 5, allowed is the octets of the block, or more with a snap length".into(),
        ),
        (other + 15, 0x14, "pcapng, closing length at octet 128: 20, allowed is the length the block began with".into()),
    ] {
        let said: String = said;
        assert_eq!(changed(at, octet), said);
    }
    for end in 0..FILE.len() {
        let whole = PLACES.contains(&end);
        assert_eq!(Reader::new(&FILE[..end]).blocks().is_ok(), whole, "{end} octets");
    }
    assert_eq!(refused(&FILE[..61]), "pcapng, block at octet 60: 1 octets of 8, then the file ends");
}

#[test]
fn blocks_too_short_for_what_they_are_are_refused() {
    for (kind, said) in [
        (1, "pcapng, block length at octet 32: 12, allowed is 20 or more for an interface"),
        (6, "pcapng, block length at octet 32: 12, allowed is 32 or more for a packet"),
        (3, "pcapng, block length at octet 32: 12, allowed is 16 or more for a simple packet"),
    ] {
        let mut writer = Writer::new(Vec::new(), ByteOrder::Big).expect("a section");
        writer.block(&Block::Other { kind, body: vec![] }).expect("a block");
        assert_eq!(refused(&writer.finish().expect("memory")), said);
    }
}

#[test]
fn what_no_reader_would_take_is_not_written() {
    let mut writer = Writer::new(Vec::new(), ByteOrder::Big).expect("a section");
    writer.interface("", LinkType::ETHERNET, ClockTick::NANOSECOND).expect("an interface");
    let long = vec![0; 262_145];
    let short =
        Block::Packet { interface: 0, ticks: 0, original_length: 1, octets: vec![0; 2], options: vec![] };
    let odd = Block::Other { kind: 9, body: vec![0; 3] };
    for (result, field) in [
        (writer.packet(0, Timestamp::default(), &long), "captured length"),
        (
            writer.block(&Block::SimplePacket { original_length: 262_145, octets: long.clone() }),
            "captured length",
        ),
        (writer.block(&short), "original length"),
        (writer.block(&odd), "block length"),
    ] {
        assert_eq!(result.expect_err(field).field, field);
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read(
        packets in prop::collection::vec((0u32..2, any::<u64>(), 0u32..9, prop::collection::vec(any::<u8>(), 0..40), 0usize..3), 0..6),
        other in prop::option::of((7u32..99, 0usize..5)),
        big: bool,
    ) {
        let order = if big { ByteOrder::Big } else { ByteOrder::Little };
        let mut writer = Writer::new(Vec::new(), order).expect("a section");
        writer.interface("a", LinkType::ETHERNET, ClockTick::NANOSECOND).expect("an interface");
        writer.interface("b", LinkType::SUNATM, ClockTick::PICOSECOND).expect("an interface");
        let mut written = Vec::new();
        for (interface, ticks, more, octets, options) in packets {
            let original_length = octets.len() as u32 + more;
            written.push(Block::Packet { interface, ticks, original_length, octets, options: vec![7; 4 * options] });
        }
        written.extend(other.map(|(kind, words)| Block::Other { kind, body: vec![9; 4 * words] }));
        written.iter().for_each(|block| writer.block(block).expect("a block"));
        let file = writer.finish().expect("memory");
        let blocks = round_trip(&file);
        prop_assert_eq!(blocks.as_deref().map(|blocks| &blocks[3..]), Some(&written[..]));
    }
}
