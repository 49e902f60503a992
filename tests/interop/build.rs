//! Whole packets, from the inside out.

use std::net::Ipv4Addr;

use wiretwin_units::Bytes;
use wiretwin_wire::cell::{self, Cell, Gfc, Interface, PayloadType, VcId, Vci, Vpi};
use wiretwin_wire::ethernet::{self, EtherType, Kind};
use wiretwin_wire::ipv4::{self, Ends, FragmentOffset, Protocol};
use wiretwin_wire::mac::{self, MacAddress};
use wiretwin_wire::tcp::{self, Flags, Known, SackBlock, SackBlocks, SeqNumber, Timestamps};
use wiretwin_wire::{Options, aal5, fddi, icmp, llc, udp};

pub const HERE: MacAddress = MacAddress([0x08, 0x00, 0x20, 0x01, 0x02, 0x03]);
pub const THERE: MacAddress = MacAddress([0x08, 0x00, 0x2B, 0x04, 0x05, 0x06]);
pub const ENDS: Ends = Ends { source: Ipv4Addr::new(10, 1, 2, 3), destination: Ipv4Addr::new(10, 1, 2, 4) };

/// `payload` behind a header of so many octets, which `emit` writes.
fn behind(header: usize, payload: &[u8], emit: impl FnOnce(&mut [u8])) -> Vec<u8> {
    let mut octets = vec![0; header];
    octets.extend(payload);
    emit(&mut octets);
    octets
}

/// An IPv4 packet as it is by default.
pub fn ip_repr(protocol: Protocol, payload: &[u8]) -> ipv4::Repr {
    ipv4::Repr {
        type_of_service: 0x10,
        identification: 0x1234,
        dont_fragment: true,
        more_fragments: false,
        fragment_offset: FragmentOffset::ZERO,
        time_to_live: 60,
        protocol,
        ends: ENDS,
        options: Options::NONE,
        payload_length: payload.len() as u16,
    }
}

pub fn ip_with(repr: ipv4::Repr, payload: &[u8]) -> Vec<u8> {
    behind(repr.header_octets(), payload, |octets| repr.emit(octets).expect("a packet"))
}

pub fn ip(protocol: Protocol, payload: &[u8]) -> Vec<u8> {
    ip_with(ip_repr(protocol, payload), payload)
}

/// A fragment of a datagram, `offset` octets into it.
pub fn fragment(protocol: Protocol, payload: &[u8], offset: u64, more_fragments: bool) -> Vec<u8> {
    let fragment_offset = FragmentOffset::new(Bytes::new(offset)).expect("a multiple of 8");
    let whole = ip_repr(protocol, payload);
    ip_with(ipv4::Repr { dont_fragment: false, more_fragments, fragment_offset, ..whole }, payload)
}

pub fn udp(payload: &[u8], checksum: bool) -> Vec<u8> {
    udp_between((40_001, 40_002), payload, checksum)
}

/// A datagram from one port to another. Which way it goes makes no difference to its checksum.
pub fn udp_between(ports: (u16, u16), payload: &[u8], checksum: bool) -> Vec<u8> {
    let payload_length = payload.len() as u16;
    let (source_port, destination_port) = ports;
    let repr = udp::Repr { source_port, destination_port, payload_length, checksum };
    behind(udp::HEADER_OCTETS, payload, |octets| repr.emit(&ENDS, octets).expect("a datagram"))
}

/// A segment as it is by default: nothing but an acknowledgement.
pub fn tcp_repr() -> tcp::Repr {
    tcp::Repr {
        source_port: 1023,
        destination_port: 40_003,
        seq: SeqNumber::wrapping(0xFFFF_FFF0),
        ack: Some(SeqNumber::wrapping(77)),
        flags: Flags::NONE,
        window: 4096,
        urgent: None,
        options: Options::NONE,
        payload_length: 0,
    }
}

pub fn tcp(repr: tcp::Repr, payload: &[u8]) -> Vec<u8> {
    let repr = tcp::Repr { payload_length: payload.len() as u16, ..repr };
    behind(repr.header_octets(), payload, |octets| repr.emit(&ENDS, octets).expect("a segment"))
}

/// The options of a SYN of the time.
pub fn syn_options() -> Options {
    let timestamps = Some(Timestamps { value: SeqNumber::wrapping(123_456), echo: SeqNumber::ZERO });
    let known = Known {
        mss: Some(1460),
        window_scale: Some(3),
        sack_permitted: true,
        timestamps,
        sack: SackBlocks::NONE,
    };
    known.list().expect("20 octets")
}

/// Timestamps and three blocks: 40 octets.
pub fn sack_options() -> Options {
    let timestamps = Some(Timestamps { value: SeqNumber::wrapping(5), echo: SeqNumber::wrapping(4) });
    let mut sack = SackBlocks::NONE;
    for start in [3000, 2000, 1000] {
        let (left, right) = (SeqNumber::wrapping(start), SeqNumber::wrapping(start + 500));
        sack.push(SackBlock { left, right });
    }
    Known { timestamps, sack, ..Known::default() }.list().expect("40 octets")
}

pub fn icmp(message: icmp::Message, data: &[u8]) -> Vec<u8> {
    let repr = icmp::Repr { message, data_length: data.len() as u16 };
    behind(icmp::HEADER_OCTETS, data, |octets| repr.emit(octets).expect("a message"))
}

/// A frame with its FCS, padded.
pub fn frame(kind: Kind, data: &[u8]) -> Vec<u8> {
    let repr = ethernet::Repr { destination: THERE, source: HERE, kind };
    let mut octets = vec![0; ethernet::frame_octets(data.len())];
    octets[ethernet::HEADER_OCTETS..][..data.len()].copy_from_slice(data);
    repr.emit(&mut octets).expect("a frame");
    closed(octets)
}

/// With the FCS.
pub fn closed(mut octets: Vec<u8>) -> Vec<u8> {
    octets.extend([0; mac::FCS_OCTETS]);
    mac::close(&mut octets).expect("room for the FCS");
    octets
}

pub fn ethernet_ip(packet: &[u8]) -> Vec<u8> {
    frame(Kind::Type(EtherType::IPV4), packet)
}

/// Data behind an LLC header.
pub fn llc(repr: llc::Repr, data: &[u8]) -> Vec<u8> {
    behind(repr.header_octets(), data, |octets| repr.emit(octets).expect("a header"))
}

pub fn snap(kind: EtherType, data: &[u8]) -> Vec<u8> {
    llc(llc::Repr::routed(kind), data)
}

/// A frame without FCS, as captures have it.
pub fn fddi(control: fddi::FrameControl, info: &[u8]) -> Vec<u8> {
    let repr = fddi::Repr::Frame { control, destination: THERE, source: HERE };
    behind(fddi::HEADER_OCTETS, info, |octets| repr.emit(octets).expect("a frame"))
}

pub fn vc(vpi: u16, vci: u16) -> VcId {
    VcId { vpi: Vpi::new(vpi).expect("a path"), vci: Vci(vci) }
}

/// The CPCS-PDU that carries these octets.
pub fn cpcs(payload: &[u8]) -> Vec<u8> {
    let repr = aal5::Repr { uu: 0x17, cpi: 0, length: payload.len() as u16 };
    let mut octets = vec![0; aal5::pdu_octets(repr.length)];
    let mut pdu = aal5::CpcsPdu::new_checked(&mut octets[..]).expect("whole cells");
    pdu.payload_mut()[..payload.len()].copy_from_slice(payload);
    repr.emit(&mut pdu).expect("the size fits");
    octets
}

/// A cell with this payload.
pub fn cell(vc: VcId, payload_type: PayloadType, payload: &[u8]) -> Vec<u8> {
    let mut octets = vec![0; cell::CELL_OCTETS];
    let mut view = Cell::new_checked(Interface::Uni, &mut octets[..]).expect("53 octets");
    view.payload_mut().copy_from_slice(payload);
    let repr = cell::Repr { gfc: Gfc::default(), vc, payload_type, clp: false };
    repr.emit(&mut view).expect("a header of the UNI");
    octets
}
