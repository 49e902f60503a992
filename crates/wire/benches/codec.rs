//! Time to read and to write one cell, PDU, frame or packet, checksum and all.
//!
//! Nothing here allocates: the room is `no_std` and does not know `alloc`.

use std::net::Ipv4Addr;

use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use wiretwin_units::Bytes;
use wiretwin_wire::aal34::sar;
use wiretwin_wire::cell::{self, Cell, Gfc, Interface, PayloadType, VcId, Vci, Vpi};
use wiretwin_wire::ethernet::{EtherType, Frame, Kind};
use wiretwin_wire::ipv4::{Ends, FragmentOffset, Packet, Protocol};
use wiretwin_wire::tcp::{Flags, Segment, SeqNumber};
use wiretwin_wire::{Options, aal5, checksum, ethernet, ipv4, mac, oam, rm, tcp, udp};

fn main() {
    divan::main();
}

const ENDS: Ends = Ends { source: Ipv4Addr::new(10, 0, 0, 1), destination: Ipv4Addr::new(10, 0, 0, 2) };

fn header() -> cell::Repr {
    let vc = VcId { vpi: Vpi::new(1).expect("a path"), vci: Vci(100) };
    let payload_type = PayloadType::User { congestion: false, auu: true };
    cell::Repr { gfc: Gfc::default(), vc, payload_type, clp: false }
}

#[divan::bench]
fn cell_emit(bencher: Bencher) {
    let mut cell = Cell::new_checked(Interface::Uni, [0; cell::CELL_OCTETS]).expect("53 octets");
    bencher.bench_local(|| black_box(header()).emit(black_box(&mut cell)));
}

#[divan::bench]
fn cell_parse(bencher: Bencher) {
    let mut cell = Cell::new_checked(Interface::Uni, [0; cell::CELL_OCTETS]).expect("53 octets");
    header().emit(&mut cell).expect("a header");
    bencher.bench_local(|| cell::Repr::parse(black_box(&cell)).expect("a cell"));
}

fn segment() -> sar::Repr {
    let (segment_type, sequence) = (sar::SegmentType::Com, Default::default());
    sar::Repr { segment_type, sequence, mid: sar::Mid::default(), length: 44 }
}

#[divan::bench]
fn aal34_sar_emit(bencher: Bencher) {
    let mut pdu = sar::SarPdu::new_checked([7; 48]).expect("48 octets");
    bencher.bench_local(|| black_box(segment()).emit(black_box(&mut pdu)));
}

#[divan::bench]
fn aal34_sar_parse(bencher: Bencher) {
    let mut pdu = sar::SarPdu::new_checked([7; 48]).expect("48 octets");
    segment().emit(&mut pdu).expect("a PDU");
    bencher.bench_local(|| sar::Repr::parse(black_box(&pdu)).expect("a PDU"));
}

#[divan::bench]
fn oam_parse(bencher: Bencher) {
    let mut payload = [0; 48];
    oam::Repr::ContinuityCheck.emit(&mut payload).expect("48 octets");
    bencher.bench_local(|| oam::Repr::parse(black_box(&payload)).expect("a cell"));
}

#[divan::bench]
fn rm_emit(bencher: Bencher) {
    let mut payload = [0; 48];
    bencher.bench_local(|| black_box(rm::Repr::default()).emit(black_box(&mut payload)));
}

#[divan::bench]
fn rm_parse(bencher: Bencher) {
    let mut payload = [0; 48];
    rm::Repr::default().emit(&mut payload).expect("48 octets");
    bencher.bench_local(|| rm::Repr::parse(black_box(&payload)).expect("a cell"));
}

/// Lengths of one cell, of an Ethernet packet, of the largest IP packet on ATM.
const SDUS: [u16; 3] = [40, 1500, 9188];

#[divan::bench(args = SDUS)]
fn aal5_emit(bencher: Bencher, length: u16) {
    let mut pdu = aal5::CpcsPdu::new_checked(vec![7; aal5::pdu_octets(length)]).expect("whole cells");
    let repr = aal5::Repr { uu: 0, cpi: 0, length };
    bencher.counter(BytesCount::new(length)).bench_local(|| black_box(repr).emit(black_box(&mut pdu)));
}

#[divan::bench(args = SDUS)]
fn aal5_parse(bencher: Bencher, length: u16) {
    let mut pdu = aal5::CpcsPdu::new_checked(vec![7; aal5::pdu_octets(length)]).expect("whole cells");
    aal5::Repr { uu: 0, cpi: 0, length }.emit(&mut pdu).expect("the size fits");
    bencher
        .counter(BytesCount::new(length))
        .bench_local(|| aal5::Repr::parse(black_box(&pdu)).expect("a PDU"));
}

fn packet(length: u16) -> ipv4::Repr {
    ipv4::Repr {
        type_of_service: 0,
        identification: 1,
        dont_fragment: true,
        more_fragments: false,
        fragment_offset: FragmentOffset::ZERO,
        time_to_live: 64,
        protocol: Protocol::TCP,
        ends: ENDS,
        options: Options::NONE,
        payload_length: length,
    }
}

#[divan::bench]
fn ipv4_emit(bencher: Bencher) {
    let mut octets = vec![0; 1500];
    bencher.bench_local(|| black_box(packet(1480)).emit(black_box(&mut octets)));
}

#[divan::bench]
fn ipv4_parse(bencher: Bencher) {
    let mut octets = vec![0; 1500];
    packet(1480).emit(&mut octets).expect("the size fits");
    bencher.bench_local(|| {
        let packet = Packet::new_checked(black_box(&octets[..])).expect("a packet");
        ipv4::Repr::parse(&packet).expect("a packet")
    });
}

fn data(timestamps: bool, payload_length: u16) -> tcp::Repr {
    let clocks = tcp::Timestamps { value: SeqNumber::wrapping(1), echo: SeqNumber::wrapping(2) };
    let known = tcp::Known { timestamps: timestamps.then_some(clocks), ..tcp::Known::default() };
    tcp::Repr {
        source_port: 1,
        destination_port: 2,
        seq: SeqNumber::wrapping(3),
        ack: Some(SeqNumber::wrapping(4)),
        flags: Flags::PSH,
        window: 5,
        urgent: None,
        options: known.list().expect("12 octets"),
        payload_length,
    }
}

/// An acknowledgement, a segment on Ethernet, one on ATM.
const PAYLOADS: [u16; 3] = [0, 1448, 8192];

#[divan::bench(args = PAYLOADS)]
fn tcp_emit(bencher: Bencher, length: u16) {
    let repr = data(true, length);
    let mut octets = vec![7; repr.total_octets()];
    bencher.bench_local(|| black_box(repr).emit(&ENDS, black_box(&mut octets)));
}

#[divan::bench(args = PAYLOADS)]
fn tcp_parse(bencher: Bencher, length: u16) {
    let repr = data(true, length);
    let mut octets = vec![7; repr.total_octets()];
    repr.emit(&ENDS, &mut octets).expect("the size fits");
    bencher.bench_local(|| {
        let segment = Segment::new_checked(black_box(&octets[..])).expect("a segment");
        tcp::Repr::parse(&segment, &ENDS).expect("a segment")
    });
}

#[divan::bench]
fn tcp_parse_without_options_or_payload(bencher: Bencher) {
    let repr = data(false, 0);
    let mut octets = vec![7; repr.total_octets()];
    repr.emit(&ENDS, &mut octets).expect("the size fits");
    bencher.bench_local(|| {
        let segment = Segment::new_checked(black_box(&octets[..])).expect("a segment");
        tcp::Repr::parse(&segment, &ENDS).expect("a segment")
    });
}

#[divan::bench]
fn udp_parse_1472(bencher: Bencher) {
    let repr = udp::Repr { source_port: 1, destination_port: 2, payload_length: 1472, checksum: true };
    let mut octets = vec![7; repr.total_octets()];
    repr.emit(&ENDS, &mut octets).expect("the size fits");
    bencher.bench_local(|| {
        let datagram = udp::Datagram::new_checked(black_box(&octets[..])).expect("a datagram");
        udp::Repr::parse(&datagram, &ENDS).expect("a datagram")
    });
}

#[divan::bench]
fn ethernet_received_1514(bencher: Bencher) {
    let address = mac::MacAddress([2, 0, 0, 0, 0, 1]);
    let kind = Kind::Type(EtherType::IPV4);
    let mut octets = vec![7; 1518];
    ethernet::Repr { destination: address, source: address, kind }
        .emit(&mut octets[..1514])
        .expect("a frame");
    mac::close(&mut octets).expect("room");
    bencher.counter(BytesCount::new(1514_u32)).bench_local(|| {
        let frame = Frame::received(black_box(&octets[..]), Bytes::new(1500)).expect("a frame");
        ethernet::Repr::parse(&frame)
    });
}

#[divan::bench(args = [20, 1460, 8192])]
fn internet_checksum(bencher: Bencher, length: usize) {
    let octets = vec![7; length];
    bencher.counter(BytesCount::new(length)).bench_local(|| checksum::checksum(black_box(&octets)));
}
