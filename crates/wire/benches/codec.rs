//! Time to read and to write one cell, PDU, frame or packet, checksum and all.
//!
//! Nothing here allocates: the room is `no_std` and does not know `alloc`. The reference is a bare loop over
//! the octets that the check covers, measured in turns with each workload: a table of 256 entries for a CRC
//! or a HEC, a sum of words for the Internet checksum; what it lacks is everything else. One JSON line per
//! workload: `ns` and `reference_ns` are medians over the turns, `ratio` that of the turns' ratios.
//!
//! Arguments: words that the name of a workload must have; `--quick` for fewer turns.

#![allow(clippy::disallowed_types)] // a bench reads the clock; the crate beside it may not

use std::hint::black_box;
use std::net::Ipv4Addr;
use std::time::Instant;

use wiretwin_benches::{Arguments, Turns};
use wiretwin_units::Bytes;
use wiretwin_wire::aal34::sar;
use wiretwin_wire::cell::{self, Cell, Gfc, Interface, PayloadType, VcId, Vci, Vpi};
use wiretwin_wire::ethernet::{EtherType, Frame, Kind};
use wiretwin_wire::ipv4::{Ends, FragmentOffset, Packet, Protocol};
use wiretwin_wire::tcp::{Flags, Segment, SeqNumber};
use wiretwin_wire::{Options, aal5, checksum, ethernet, ipv4, mac, oam, rm, tcp, udp};

/// What a bare loop does over the octets that a check covers.
#[derive(Clone, Copy)]
enum Check {
    Crc,
    Sum,
}

impl Check {
    const fn name(self) -> &'static str {
        match self {
            Self::Crc => "bare loop with a table, over what the check covers",
            Self::Sum => "bare sum of words, over what the check covers",
        }
    }

    fn over(self, octets: &[u8], table: &[u32; 256]) -> u32 {
        match self {
            Self::Crc => octets
                .iter()
                .fold(u32::MAX, |crc, octet| (crc << 8) ^ table[((crc >> 24) as u8 ^ octet) as usize]),
            Self::Sum => {
                octets.chunks_exact(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum()
            }
        }
    }
}

struct Bench {
    arguments: Arguments,
    table: [u32; 256],
}

/// What a turn takes about.
const TURN_NS: f64 = 2e5;

impl Bench {
    fn new() -> Self {
        let table = std::array::from_fn(|octet| {
            (0..8).fold(
                (octet as u32) << 24,
                |crc, _| if crc >> 31 == 1 { crc << 1 ^ 0x04C1_1DB7 } else { crc << 1 },
            )
        });
        Self { arguments: Arguments::of_process(), table }
    }

    /// Times something whose check covers so many octets.
    fn time<T>(&self, name: &str, check: Check, octets: usize, mut work: impl FnMut() -> T) {
        if !self.arguments.wanted(name) {
            return;
        }
        let covered = vec![7_u8; octets];
        let mut bare = || check.over(black_box(&covered), black_box(&self.table));
        let (ours, theirs) = (repeats(&mut work), repeats(&mut bare));
        let mut measured = Turns::default();
        for _ in 0..self.arguments.turns(101, 21) {
            measured.push(turn(&mut work, ours), turn(&mut bare, theirs));
        }
        let (ns, bare, ratio) = measured.medians();
        println!(
            "{{\"bench\": \"wire/{name}\", \"unit\": \"ns\", \"ns\": {ns:.2}, \"reference\": \"{}\", \
             \"reference_ns\": {bare:.2}, \"ratio\": {ratio:.3}}}",
            check.name(),
        );
    }
}

/// How often something is done in a turn.
fn repeats<T>(work: &mut impl FnMut() -> T) -> u32 {
    let mut count = 16;
    loop {
        let taken = turn(work, count) * f64::from(count);
        if taken > TURN_NS / 8.0 || count > 1 << 26 {
            return (f64::from(count) * TURN_NS / taken.max(1.0)) as u32;
        }
        count *= 4;
    }
}

/// ns each.
fn turn<T>(work: &mut impl FnMut() -> T, count: u32) -> f64 {
    let start = Instant::now();
    for _ in 0..count {
        black_box(work());
    }
    start.elapsed().as_secs_f64() * 1e9 / f64::from(count)
}

fn main() {
    let bench = Bench::new();
    cells(&bench);
    packets(&bench);
    frames(&bench);
}

const ENDS: Ends = Ends { source: Ipv4Addr::new(10, 0, 0, 1), destination: Ipv4Addr::new(10, 0, 0, 2) };

fn header() -> cell::Repr {
    let vc = VcId { vpi: Vpi::new(1).expect("a path"), vci: Vci(100) };
    let payload_type = PayloadType::User { congestion: false, auu: true };
    cell::Repr { gfc: Gfc::default(), vc, payload_type, clp: false }
}

fn segment() -> sar::Repr {
    let (segment_type, sequence) = (sar::SegmentType::Com, Default::default());
    sar::Repr { segment_type, sequence, mid: sar::Mid::default(), length: 44 }
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

/// Lengths of one cell, of an Ethernet packet, of the largest IP packet on ATM.
const SDUS: [u16; 3] = [40, 1500, 9188];

fn cells(bench: &Bench) {
    let mut cell = Cell::new_checked(Interface::Uni, [0; cell::CELL_OCTETS]).expect("53 octets");
    bench.time("cell-header write", Check::Crc, 4, || black_box(header()).emit(black_box(&mut cell)));
    bench.time("cell-header read", Check::Crc, 4, || cell::Repr::parse(black_box(&cell)).expect("a cell"));
    let mut pdu = sar::SarPdu::new_checked([7; 48]).expect("48 octets");
    bench.time("aal34-sar write", Check::Crc, 46, || black_box(segment()).emit(black_box(&mut pdu)));
    bench.time("aal34-sar read", Check::Crc, 48, || sar::Repr::parse(black_box(&pdu)).expect("a PDU"));
    let mut payload = [0; 48];
    oam::Repr::ContinuityCheck.emit(&mut payload).expect("48 octets");
    bench.time("oam read", Check::Crc, 48, || oam::Repr::parse(black_box(&payload)).expect("a cell"));
    bench.time("rm write", Check::Crc, 46, || black_box(rm::Repr::default()).emit(black_box(&mut payload)));
    bench.time("rm read", Check::Crc, 48, || rm::Repr::parse(black_box(&payload)).expect("a cell"));
    for length in SDUS {
        let octets = aal5::pdu_octets(length);
        let mut pdu = aal5::CpcsPdu::new_checked(vec![7; octets]).expect("whole cells");
        let repr = aal5::Repr { uu: 0, cpi: 0, length };
        bench.time(&format!("aal5 write {length}"), Check::Crc, octets - 4, || {
            black_box(repr).emit(black_box(&mut pdu))
        });
        bench.time(&format!("aal5 read {length}"), Check::Crc, octets, || {
            aal5::Repr::parse(black_box(&pdu)).expect("a PDU")
        });
    }
}

/// An acknowledgement, a segment on Ethernet, one on ATM.
const PAYLOADS: [u16; 3] = [0, 1448, 8192];

fn packets(bench: &Bench) {
    let mut octets = vec![0; 1500];
    bench.time("ipv4 write", Check::Sum, 20, || black_box(packet(1480)).emit(black_box(&mut octets)));
    bench.time("ipv4 read", Check::Sum, 20, || {
        let packet = Packet::new_checked(black_box(&octets[..])).expect("a packet");
        ipv4::Repr::parse(&packet).expect("a packet")
    });
    for (timestamps, length) in PAYLOADS.map(|length| (true, length)).into_iter().chain([(false, 0)]) {
        let repr = data(timestamps, length);
        let mut octets = vec![7; repr.total_octets()];
        let name = if timestamps { "with-timestamps" } else { "plain" };
        let covered = octets.len() + 12;
        bench.time(&format!("tcp write {name} {length}"), Check::Sum, covered, || {
            black_box(repr).emit(&ENDS, black_box(&mut octets))
        });
        bench.time(&format!("tcp read {name} {length}"), Check::Sum, covered, || {
            let segment = Segment::new_checked(black_box(&octets[..])).expect("a segment");
            tcp::Repr::parse(&segment, &ENDS).expect("a segment")
        });
    }
    let repr = udp::Repr { source_port: 1, destination_port: 2, payload_length: 1472, checksum: true };
    let mut octets = vec![7; repr.total_octets()];
    repr.emit(&ENDS, &mut octets).expect("the size fits");
    bench.time("udp read 1472", Check::Sum, 1492, || {
        let datagram = udp::Datagram::new_checked(black_box(&octets[..])).expect("a datagram");
        udp::Repr::parse(&datagram, &ENDS).expect("a datagram")
    });
    for length in [20, 1460, 8192] {
        let octets = vec![7; length];
        bench.time(&format!("internet-checksum {length}"), Check::Sum, length, || {
            checksum::checksum(black_box(&octets))
        });
    }
}

fn frames(bench: &Bench) {
    let address = mac::MacAddress([2, 0, 0, 0, 0, 1]);
    let kind = Kind::Type(EtherType::IPV4);
    let mut octets = vec![7; 1518];
    let repr = ethernet::Repr { destination: address, source: address, kind };
    repr.emit(&mut octets[..1514]).expect("a frame");
    mac::close(&mut octets).expect("room");
    bench.time("ethernet read 1514", Check::Crc, 1518, || {
        let frame = Frame::received(black_box(&octets[..]), Bytes::new(1500)).expect("a frame");
        ethernet::Repr::parse(&frame)
    });
}
