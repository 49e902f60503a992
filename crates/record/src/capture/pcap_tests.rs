//! Files as octets, and what they say.

use proptest::prelude::*;

use super::*;

const LITTLE: [u8; 43] =
    *b"\x4d\x3c\xb2\xa1\x02\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x04\x00\x01\x00\x00\x00\
    \x05\x00\x00\x00\x07\x00\x00\x00\x03\x00\x00\x00\x04\x00\x00\x00abc";
const BIG: [u8; 43] =
    *b"\xa1\xb2\xc3\xd4\x00\x02\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00\x04\x00\x00\x24\x00\x00\x01\
    \x00\x00\x00\x05\x00\x00\x00\x07\x00\x00\x00\x03\x00\x00\x00\x04abc";

fn record() -> Record {
    Record { seconds: 5, ticks: 7, original_length: 4, octets: b"abc".to_vec() }
}

fn refused(octets: &[u8]) -> String {
    match Reader::new(octets) {
        Err(error) => error.to_string(),
        Ok(mut reader) => reader.records().expect_err("no capture").to_string(),
    }
}

#[test]
fn files_in_both_orders_are_read_and_written() {
    for (octets, header, picoseconds) in [
        (LITTLE, Header::new(LinkType::ETHERNET), 7_000),
        (
            BIG,
            Header {
                order: ByteOrder::Big,
                resolution: Resolution::Microsecond,
                fcs_octets: Some(4),
                ..Header::new(LinkType::ETHERNET)
            },
            7_000_000,
        ),
    ] {
        let mut reader = Reader::new(&octets[..]).expect("a header");
        assert_eq!(*reader.header(), header);
        assert_eq!(reader.records().expect("a record"), [record()]);
        assert_eq!(record().timestamp(header.resolution), Timestamp { seconds: 5, picoseconds });
        let mut writer = Writer::new(Vec::new(), header).expect("a header");
        writer.record(&record()).expect("a record");
        assert_eq!(writer.finish().expect("memory"), octets);
    }
}

#[test]
fn a_simulated_time_is_cut_to_the_files_resolution() {
    let mut writer = Writer::new(Vec::new(), Header::new(LinkType::SUNATM)).expect("a header");
    let time = wiretwin_units::SimTime::from_ps(3_000_000_002_999);
    writer.packet(time.into(), b"x").expect("a packet");
    let file = writer.finish().expect("memory");
    let expected = Record { seconds: 3, ticks: 2, original_length: 1, octets: b"x".to_vec() };
    assert_eq!(Reader::new(&file[..]).expect("a header").records().expect("a record"), [expected]);
}

#[test]
fn every_wrong_field_is_named_with_its_place() {
    let changed = |at: usize, octet: u8| {
        let mut octets = LITTLE;
        octets[at] = octet;
        refused(&octets)
    };
    for (at, octet, said) in [
        (
            0,
            0x4E,
            "pcap, magic number at octet 0: 2712812622, allowed is 0xa1b2c3d4 or 0xa1b23c4d in either order of octets",
        ),
        (6, 3, "pcap, version at octet 4: 131075, allowed is 131076, that is 2.4"),
        (22, 1, "pcap, link type at octet 20: 65537, allowed is 0 to 65535, and with them octets of FCS"),
        (
            23,
            0x20,
            "pcap, link type at octet 20: 536870913, allowed is 0 to 65535, and with them octets of FCS",
        ),
        (31, 0x3C, "pcap, timestamp at octet 28: 1006632967, allowed is less than a second"),
        (34, 5, "pcap, captured length at octet 32: 327683, allowed is 0 to 262144"),
        (36, 2, "pcap, original length at octet 36: 2, allowed is the captured length or more"),
    ] {
        assert_eq!(changed(at, octet), said);
    }
    for (end, said) in [
        (0, "pcap, magic number at octet 0: 0 octets of 4, then the file ends"),
        (3, "pcap, magic number at octet 0: 3 octets of 4, then the file ends"),
        (9, "pcap, header at octet 4: 5 octets of 20, then the file ends"),
        (30, "pcap, record at octet 24: 6 octets of 16, then the file ends"),
        (40, "pcap, packet at octet 40: 0 octets of 3, then the file ends"),
        (42, "pcap, packet at octet 40: 2 octets of 3, then the file ends"),
    ] {
        assert_eq!(refused(&LITTLE[..end]), said);
    }
}

#[test]
fn a_promise_of_octets_that_do_not_come_takes_no_room() {
    let mut octets = LITTLE;
    octets[32..36].copy_from_slice(&262_144_u32.to_le_bytes());
    octets[36..40].copy_from_slice(&262_144_u32.to_le_bytes());
    assert_eq!(refused(&octets), "pcap, packet at octet 40: 3 octets of 262144, then the file ends");
}

#[test]
fn what_no_reader_would_take_is_not_written() {
    let header = Header::new(LinkType::ETHERNET);
    let mut writer = Writer::new(Vec::new(), header).expect("a header");
    let late = Timestamp { seconds: 1 << 32, picoseconds: 0 };
    for (result, field) in [
        (writer.packet(late, b""), "timestamp"),
        (writer.packet(Timestamp { seconds: 0, picoseconds: PS_PER_S }, b""), "timestamp"),
        (writer.packet(Timestamp::default(), &vec![0; 262_145]), "captured length"),
        (writer.record(&Record { original_length: 2, ..record() }), "original length"),
    ] {
        let error = result.expect_err(field);
        assert_eq!((error.field, error.offset), (field, 24));
    }
    assert_eq!(writer.finish().expect("memory").len(), 24);
    for fcs in [3, 32] {
        Writer::new(Vec::new(), Header { fcs_octets: Some(fcs), ..header }).expect_err("no such FCS");
    }
    let error = Writer::new(&mut [0; 10][..], header).expect_err("ten octets for a header");
    assert!(matches!(error.fault, CaptureFault::Io(_)), "{error}");
}

proptest! {
    #[test]
    fn what_is_written_is_read(
        records in prop::collection::vec((any::<u32>(), 0u32..1_000_000, 0u32..9, prop::collection::vec(any::<u8>(), 0..40)), 0..6),
        big: bool,
        micro: bool,
        link: u16,
    ) {
        let records: Vec<_> = records.into_iter().map(|(seconds, ticks, more, octets)| {
            Record { seconds, ticks, original_length: octets.len() as u32 + more, octets }
        }).collect();
        let header = Header {
            order: if big { ByteOrder::Big } else { ByteOrder::Little },
            resolution: if micro { Resolution::Microsecond } else { Resolution::Nanosecond },
            ..Header::new(LinkType(link))
        };
        let mut writer = Writer::new(Vec::new(), header).expect("a header");
        records.iter().for_each(|record| writer.record(record).expect("a record"));
        let file = writer.finish().expect("memory");
        prop_assert_eq!(round_trip(&file), Some(records));
    }
}
