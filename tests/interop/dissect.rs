//! What we write, as `tshark` reads it.

use std::net::Ipv4Addr;

use wiretwin_record::capture::{LinkType, erf, sunatm};
use wiretwin_wire::arp::{self, Hardware, Operation};
use wiretwin_wire::atmarp::{self, AtmAddress, Party};
use wiretwin_wire::cell::{PAYLOAD_OCTETS, PayloadType, VcId};
use wiretwin_wire::ethernet::{EtherType, Kind};
use wiretwin_wire::icmp::{Message, Unreachable};
use wiretwin_wire::ipv4::{self, Protocol};
use wiretwin_wire::llc::Control;
use wiretwin_wire::mac::MacAddress;
use wiretwin_wire::oam::{self, Defect, Flow};
use wiretwin_wire::rpc::{self, portmap};
use wiretwin_wire::tcp::{self, Flags};
use wiretwin_wire::{Options, fddi, llc, pause, rm, sscop};

use crate::build::{self, ENDS, HERE};
use crate::tshark::{self, Folder, Format, have};

/// A packet, and what must be read in it.
struct Case {
    octets: Vec<u8>,
    fields: Vec<(&'static str, &'static str)>,
}

fn case(octets: Vec<u8>, fields: &[(&'static str, &'static str)]) -> Case {
    Case { octets, fields: fields.to_vec() }
}

/// Above this (`PI_NOTE`) an expert item is a warning or an error.
const NOTE: u32 = 0x0040_0000;

/// Writes the cases in every format and compares what `tshark` reads; nothing may be malformed, nor
/// any check fail.
fn check(link: LinkType, cases: &[Case]) {
    if !have(&["tshark"]) {
        return;
    }
    let mut names = vec!["_ws.malformed", "_ws.expert.severity", "_ws.expert.message", "frame.time_epoch"];
    for (name, _) in cases.iter().flat_map(|case| &case.fields) {
        if !names.contains(name) {
            names.push(name);
        }
    }
    let packets: Vec<_> = cases.iter().map(|case| case.octets.clone()).collect();
    for format in Format::ALL {
        let folder = Folder::new();
        let path = folder.path("capture");
        tshark::write(&path, format, link, &packets);
        let read = tshark::fields(&path, &names);
        assert_eq!(read.len(), cases.len(), "{format:?}: a line for each packet");
        for (number, (case, values)) in cases.iter().zip(&read).enumerate() {
            let value = |name: &str| {
                values[names.iter().position(|other| *other == name).expect("asked for")].as_str()
            };
            let place = format!("{format:?}, packet {number}, {values:?}");
            assert_eq!(value("_ws.malformed"), "", "{place}");
            let severities = value("_ws.expert.severity").split(',').filter(|text| !text.is_empty());
            for severity in severities.map(|text| text.parse::<u32>().expect("a number")) {
                assert!(severity <= NOTE, "{place}");
            }
            let seconds = 800_000_000 + number;
            assert_eq!(value("frame.time_epoch"), format!("{seconds}.123456789"), "{place}");
            for (name, expected) in &case.fields {
                // A field that is shown more than once must say the same each time.
                let all_same = value(name).split(',').all(|shown| shown == *expected);
                assert!(
                    all_same || value(name) == *expected,
                    "{name} is {:?}, not {expected:?}: {place}",
                    value(name)
                );
            }
        }
    }
}

const FCS_GOOD: (&str, &str) = ("eth.fcs.status", "1");
const IP_GOOD: (&str, &str) = ("ip.checksum.status", "1");
const TCP_GOOD: (&str, &str) = ("tcp.checksum.status", "1");
const UDP_GOOD: (&str, &str) = ("udp.checksum.status", "1");

fn arp_request() -> Vec<u8> {
    let repr = arp::Repr {
        hardware: Hardware::Ethernet,
        operation: Operation::REQUEST,
        sender_hardware: HERE,
        sender_protocol: ENDS.source,
        target_hardware: MacAddress::default(),
        target_protocol: ENDS.destination,
    };
    let mut octets = vec![0; arp::PACKET_OCTETS];
    repr.emit(&mut octets).expect("28 octets");
    octets
}

const ARP: [(&str, &str); 6] = [
    ("arp.hw.type", "1"),
    ("arp.opcode", "1"),
    ("arp.src.hw_mac", "08:00:20:01:02:03"),
    ("arp.src.proto_ipv4", "10.1.2.3"),
    ("arp.dst.hw_mac", "00:00:00:00:00:00"),
    ("arp.dst.proto_ipv4", "10.1.2.4"),
];

/// A segment with a payload of odd length, and what is read of it.
fn data_segment() -> (Vec<u8>, Vec<(&'static str, &'static str)>) {
    let packet =
        build::ip(Protocol::TCP, &build::tcp(tcp::Repr { flags: Flags::PSH, ..build::tcp_repr() }, b"hello"));
    let fields = vec![
        IP_GOOD,
        TCP_GOOD,
        ("ip.src", "10.1.2.3"),
        ("ip.dst", "10.1.2.4"),
        ("ip.ttl", "60"),
        ("ip.dsfield", "0x10"),
        ("ip.id", "0x1234"),
        ("ip.flags.df", "1"),
        ("ip.len", "45"),
        ("tcp.srcport", "1023"),
        ("tcp.dstport", "40003"),
        ("tcp.seq_raw", "4294967280"),
        ("tcp.ack_raw", "77"),
        ("tcp.flags", "0x0018"),
        ("tcp.window_size_value", "4096"),
        ("tcp.payload", "68656c6c6f"),
    ];
    (packet, fields)
}

#[test]
fn ethernet_arp_and_mac_control_are_read_as_written() {
    let mut arp_fields = vec![
        FCS_GOOD,
        ("eth.dst", "08:00:2b:04:05:06"),
        ("eth.src", "08:00:20:01:02:03"),
        ("eth.type", "0x0806"),
        ("eth.padding", "000000000000000000000000000000000000"),
    ];
    arp_fields.extend(ARP);
    let (packet, fields) = data_segment();
    let mut snap_fields = vec![
        FCS_GOOD,
        ("eth.len", "53"),
        ("llc.dsap", "0xaa"),
        ("llc.ssap", "0xaa"),
        ("llc.oui", "0"),
        ("llc.type", "0x0800"),
    ];
    snap_fields.extend(fields);
    let snap = build::snap(EtherType::IPV4, &packet);
    let plain = build::llc(llc::Repr::Llc { dsap: 0x02, ssap: 0x02, control: Control::UI }, b"abc");
    let pause = build::closed(pause::Repr { quanta: 0x1234 }.frame(HERE).to_vec());
    check(
        LinkType::ETHERNET,
        &[
            case(build::frame(Kind::Type(EtherType::ARP), &arp_request()), &arp_fields),
            case(build::frame(Kind::Length(snap.len() as u16), &snap), &snap_fields),
            case(
                build::frame(Kind::Length(plain.len() as u16), &plain),
                &[FCS_GOOD, ("eth.len", "6"), ("llc.dsap", "0x02"), ("llc.control", "0x0003")],
            ),
            case(
                pause,
                &[
                    FCS_GOOD,
                    ("eth.dst", "01:80:c2:00:00:01"),
                    ("eth.type", "0x8808"),
                    ("macc.opcode", "0x0001"),
                    ("macc.pause_time", "4660"),
                ],
            ),
        ],
    );
}

#[test]
fn ip_and_what_it_carries_are_read_as_written() {
    let (packet, mut data_fields) = data_segment();
    data_fields.push(FCS_GOOD);
    let tcp =
        |repr, payload: &[u8]| build::ethernet_ip(&build::ip(Protocol::TCP, &build::tcp(repr, payload)));
    let syn = tcp::Repr { flags: Flags::SYN, ack: None, options: build::syn_options(), ..build::tcp_repr() };
    let sack = tcp::Repr { options: build::sack_options(), source_port: 1022, ..build::tcp_repr() };
    let ecn = Flags { ece: true, cwr: true, fin: true, ..Flags::NONE };
    let urgent = tcp::Repr { urgent: Some(2), flags: ecn, source_port: 1021, ..build::tcp_repr() };
    let router_alert = Options::from_octets(&[0x94, 0x04, 0x00, 0x00]).expect("four octets");
    let datagram = build::udp(b"datagram", true);
    let alert = ipv4::Repr { options: router_alert, ..build::ip_repr(Protocol::UDP, &datagram) };
    let long: Vec<u8> = (0..2000_u32).map(|at| (at * 7) as u8).collect();
    let whole = build::udp(&long, true);
    let icmp =
        |message, data: &[u8]| build::ethernet_ip(&build::ip(Protocol::ICMP, &build::icmp(message, data)));
    let reply = build::icmp(Message::EchoReply { identifier: 0x0102, sequence: 3 }, b"ping");
    let back = ipv4::Repr { ends: ENDS.reversed(), ..build::ip_repr(Protocol::ICMP, &reply) };
    let answer = build::ethernet_ip(&build::ip_with(back, &reply));
    let needed = Message::Unreachable(Unreachable::FragmentationNeeded { next_hop_mtu: 576 });
    let exceeded = Message::TimeExceeded { reassembly: true };
    check(
        LinkType::ETHERNET,
        &[
            case(build::ethernet_ip(&packet), &data_fields),
            case(
                tcp(syn, b""),
                &[
                    TCP_GOOD,
                    ("tcp.flags", "0x0002"),
                    ("tcp.hdr_len", "40"),
                    ("tcp.options.mss_val", "1460"),
                    ("tcp.options.wscale.shift", "3"),
                    ("tcp.options.timestamp.tsval", "123456"),
                    ("tcp.options.timestamp.tsecr", "0"),
                    ("tcp.options.sack_perm", "0402"),
                ],
            ),
            case(
                tcp(sack, b""),
                &[
                    TCP_GOOD,
                    ("tcp.hdr_len", "60"),
                    ("tcp.options.timestamp.tsval", "5"),
                    ("tcp.options.timestamp.tsecr", "4"),
                    ("tcp.options.sack.count", "3"),
                ],
            ),
            case(
                tcp(urgent, b"!!"),
                &[TCP_GOOD, ("tcp.flags", "0x00f1"), ("tcp.urgent_pointer", "2"), ("tcp.payload", "2121")],
            ),
            case(
                build::ethernet_ip(&build::ip_with(alert, &datagram)),
                &[
                    IP_GOOD,
                    UDP_GOOD,
                    ("ip.hdr_len", "24"),
                    ("ip.opt.type", "148"),
                    ("ip.opt.ra", "0"),
                    ("udp.srcport", "40001"),
                    ("udp.dstport", "40002"),
                    ("udp.length", "16"),
                    ("udp.payload", "646174616772616d"),
                ],
            ),
            // 3 is "not present".
            case(
                build::ethernet_ip(&build::ip(Protocol::UDP, &build::udp(b"bare", false))),
                &[("udp.checksum", "0x0000"), ("udp.checksum.status", "3"), ("udp.payload", "62617265")],
            ),
            case(
                build::ethernet_ip(&build::fragment(Protocol::UDP, &whole[..1480], 0, true)),
                &[IP_GOOD, ("ip.flags.mf", "1"), ("ip.frag_offset", "0")],
            ),
            case(
                build::ethernet_ip(&build::fragment(Protocol::UDP, &whole[1480..], 1480, false)),
                &[
                    IP_GOOD,
                    ("ip.flags.mf", "0"),
                    ("ip.frag_offset", "185"),
                    ("ip.reassembled.length", "2008"),
                    UDP_GOOD,
                    ("udp.length", "2008"),
                ],
            ),
            case(
                icmp(Message::EchoRequest { identifier: 0x0102, sequence: 3 }, b"ping"),
                &[
                    ("icmp.checksum.status", "1"),
                    ("icmp.type", "8"),
                    ("icmp.ident", "258"),
                    ("icmp.seq", "3"),
                    ("data.data", "70696e67"),
                ],
            ),
            case(answer, &[("icmp.checksum.status", "1"), ("icmp.type", "0"), ("icmp.resp_to", "9")]),
            case(
                icmp(needed, &packet[..28]),
                &[("icmp.checksum.status", "1"), ("icmp.type", "3"), ("icmp.code", "4"), ("icmp.mtu", "576")],
            ),
            case(
                icmp(exceeded, &packet[..28]),
                &[("icmp.checksum.status", "1"), ("icmp.type", "11"), ("icmp.code", "1")],
            ),
        ],
    );
    check(LinkType::RAW_IP, &[case(packet, &data_segment().1)]);
}

#[test]
fn fddi_frames_are_read_as_written() {
    let (packet, mut fields) = data_segment();
    fields.extend([
        ("fddi.fc", "0x54"),
        ("fddi.dst", "08:00:2b:04:05:06"),
        ("fddi.src", "08:00:20:01:02:03"),
        ("llc.type", "0x0800"),
    ]);
    let mut arp_fields = vec![("fddi.fc", "0x50"), ("llc.type", "0x0806")];
    arp_fields.extend(ARP);
    let llc = |priority| fddi::FrameControl::LlcAsynchronous { priority };
    check(
        LinkType::FDDI,
        &[
            case(build::fddi(llc(4), &build::snap(EtherType::IPV4, &packet)), &fields),
            case(build::fddi(llc(0), &build::snap(EtherType::ARP, &arp_request())), &arp_fields),
            case(
                build::fddi(fddi::FrameControl::Void, b""),
                &[("fddi.fc", "0x40"), ("fddi.src", "08:00:20:01:02:03")],
            ),
            case(build::fddi(fddi::FrameControl::Claim, b"\0\0\0\x08"), &[("fddi.fc", "0xc3")]),
        ],
    );
}

fn atmarp_request() -> Vec<u8> {
    let number = AtmAddress::nsap(std::array::from_fn(|at| 0x47 + at as u8));
    let source = Party { number, protocol: Some(ENDS.source), ..Party::default() };
    let target = Party { protocol: Some(Ipv4Addr::new(10, 1, 2, 4)), ..Party::default() };
    let repr = atmarp::Repr { operation: Operation::REQUEST, source, target };
    let mut octets = vec![0; repr.packet_octets()];
    repr.emit(&mut octets).expect("the size fits");
    octets
}

const ATMARP: [(&str, &str); 7] = [
    ("llc.type", "0x0806"),
    ("arp.hw.type", "19"),
    ("arp.opcode", "1"),
    ("arp.src.hlen", "20"),
    ("arp.src.atm_num_nsap", "4748494a4b4c4d4e4f505152535455565758595a"),
    ("arp.src.proto_ipv4", "10.1.2.3"),
    ("arp.dst.proto_ipv4", "10.1.2.4"),
];

/// An SDU as captures of link type 123 have it.
fn sunatm(traffic: sunatm::Traffic, vc: VcId, sdu: &[u8]) -> Vec<u8> {
    let (vpi, vci) = (vc.vpi.get() as u8, vc.vci.0);
    let mut octets = sunatm::Header { from_host: true, traffic, vpi, vci }.octets().to_vec();
    octets.extend(sdu);
    octets
}

#[test]
fn sdus_on_aal5_are_read_as_written() {
    let (packet, mut fields) = data_segment();
    fields.extend([("atm.vpi", "1"), ("atm.vci", "100"), ("llc.type", "0x0800")]);
    let mut arp_fields = vec![("atm.vpi", "0"), ("atm.vci", "32")];
    arp_fields.extend(ATMARP);
    let llc = sunatm::Traffic::Llc;
    let udp = build::ip(Protocol::UDP, &build::udp(b"datagram", true));
    check(
        LinkType::SUNATM,
        &[
            case(sunatm(llc, build::vc(1, 100), &build::snap(EtherType::IPV4, &packet)), &fields),
            case(sunatm(llc, build::vc(0, 32), &build::snap(EtherType::ARP, &atmarp_request())), &arp_fields),
            case(sunatm(llc, build::vc(0, 33), &build::snap(EtherType::IPV4, &udp)), &[IP_GOOD, UDP_GOOD]),
        ],
    );
    let (_, fields) = data_segment();
    check(LinkType::ATM_RFC1483, &[case(build::snap(EtherType::IPV4, &packet), &fields)]);
}

#[test]
fn signalling_pdus_are_read_as_written() {
    let n = sscop::Number::wrapping;
    let sq = sscop::ConnectionNumber::wrapping(7);
    let pdu = |repr: sscop::Repr, front: &[u8]| {
        let mut octets = vec![0; repr.pdu_octets(front.len())];
        octets[..front.len()].copy_from_slice(front);
        repr.emit(front.len(), &mut octets).expect("the size fits");
        sunatm(sunatm::Traffic::Signalling, build::vc(0, 5), &octets)
    };
    let mut list = [0; 8];
    sscop::put_elements(&[n(3), n(6)], &mut list).expect("eight octets");
    // A STATUS ENQUIRY of Q.2931 with nothing in it: 9 octets, so three fill the last word.
    let enquiry = [0x09, 0x03, 0x00, 0x00, 0x01, 0x75, 0x80, 0x00, 0x00];
    let channel = ("atm.vci", "5");
    check(
        LinkType::SUNATM,
        &[
            case(
                pdu(sscop::Repr::Bgn { sq, mr: n(128) }, b""),
                &[channel, ("sscop.type", "0x01"), ("sscop.sq", "7"), ("sscop.mr", "128")],
            ),
            case(
                pdu(sscop::Repr::Bgak { mr: n(0xFF_FFFF) }, b""),
                &[("sscop.type", "0x02"), ("sscop.mr", "16777215")],
            ),
            case(
                pdu(sscop::Repr::Sd { s: n(1) }, &enquiry),
                &[
                    ("sscop.type", "0x08"),
                    ("sscop.s", "1"),
                    ("sscop.pad_length", "3"),
                    ("q2931.message_type", "0x75"),
                ],
            ),
            case(
                pdu(sscop::Repr::Poll { ps: n(5), s: n(100) }, b""),
                &[("sscop.type", "0x0a"), ("sscop.ps", "5"), ("sscop.s", "100")],
            ),
            case(
                pdu(sscop::Repr::Stat { ps: n(5), mr: n(131), r: n(3) }, &list),
                &[
                    ("sscop.type", "0x0b"),
                    ("sscop.ps", "5"),
                    ("sscop.mr", "131"),
                    ("sscop.r", "3"),
                    ("sscop.stat.s", "3,6"),
                ],
            ),
            case(
                pdu(sscop::Repr::Ustat { first: n(3), end: n(6), mr: n(131), r: n(3) }, b""),
                &[("sscop.type", "0x0c"), ("sscop.mr", "131"), ("sscop.r", "3"), ("sscop.stat.s", "3,6")],
            ),
            case(
                pdu(sscop::Repr::End { by_sscop: true }, b""),
                &[("sscop.type", "0x03"), ("sscop.source", "SSCOP")],
            ),
            case(
                pdu(sscop::Repr::Er { sq, mr: n(9) }, b""),
                &[("sscop.type", "0x09"), ("sscop.sq", "7"), ("sscop.mr", "9")],
            ),
        ],
    );
}

/// A cell or a PDU as captures of link type 197 have it: behind four octets of a cell's header.
fn erf(number: usize, kind: erf::Kind, vc: VcId, payload_type: PayloadType, octets: &[u8]) -> Vec<u8> {
    let head = build::cell(vc, payload_type, &[0; PAYLOAD_OCTETS]);
    let header =
        erf::Header { time: tshark::time(number), kind, interface: 0, length: octets.len() as u16 + 4 };
    let mut record = header.octets().expect("a record").to_vec();
    record.extend(&head[..4]);
    record.extend(octets);
    record
}

fn oam(number: usize, repr: oam::Repr, flow: Flow) -> Vec<u8> {
    let mut payload = [0; PAYLOAD_OCTETS];
    repr.emit(&mut payload).expect("48 octets");
    let (vc, payload_type) = flow.header(build::vc(2, 300));
    erf(number, erf::Kind::Cell, vc, payload_type, &payload)
}

fn aal5(number: usize, sdu: &[u8]) -> Vec<u8> {
    let last = PayloadType::User { congestion: false, auu: true };
    erf(number, erf::Kind::Aal5, build::vc(2, 300), last, &build::cpcs(sdu))
}

/// Records of cells, what is read in their fields, and in the words of the dissector.
fn cells() -> Vec<(Case, &'static [&'static str])> {
    let loopback = oam::Repr::Loopback {
        request: true,
        correlation: 0x0102_0304,
        location: oam::END_POINT,
        source: oam::END_POINT,
    };
    let fault = ("atm.aal_oamcell.type", "1");
    let (f5, f4) = (("atm.vci", "300"), [("atm.vci", "3"), ("atm.vci", "4")]);
    let function = |number| ("atm.aal_oamcell.type.fm", number);
    let mut payload = [0; PAYLOAD_OCTETS];
    let (explicit_rate, current_cell_rate) = (rm::Rate::floor(353_207.55), rm::Rate::floor(117_924.53));
    let resource = rm::Repr { explicit_rate, current_cell_rate, ..rm::Repr::default() };
    resource.emit(&mut payload).expect("48 octets");
    let resource = erf(6, erf::Kind::Cell, build::vc(2, 300), PayloadType::ResourceManagement, &payload);
    let (packet, mut fields) = data_segment();
    fields.extend([
        ("atm.vpi", "2"),
        f5,
        ("llc.type", "0x0800"),
        ("atm.aal5t_len", "53"),
        ("atm.cells", "2"),
    ]);
    let mut arp_fields = vec![("atm.aal5t_len", "48")];
    arp_fields.extend(ATMARP);
    let ais = oam(2, oam::Repr::Ais(Defect::UNTOLD), Flow::ChannelEndToEnd);
    let rdi = oam(3, oam::Repr::Rdi(Defect { kind: 0, location: [7; 16] }), Flow::PathEndToEnd);
    let continuity = oam(4, oam::Repr::ContinuityCheck, Flow::PathSegment);
    let good = &["(correct)"];
    vec![
        (case(aal5(0, &build::snap(EtherType::IPV4, &packet)), &fields), &["AAL5 UU: 0x17", "(correct)"]),
        (case(aal5(1, &build::snap(EtherType::ARP, &atmarp_request())), &arp_fields), good),
        (case(ais, &[fault, function("0"), f5, ("atm.payload_type", "5")]), good),
        (case(rdi, &[fault, function("1"), f4[1], ("atm.payload_type", "0")]), good),
        (case(continuity, &[fault, function("4"), f4[0]]), good),
        (
            case(oam(5, loopback, Flow::ChannelSegment), &[fault, function("8"), ("atm.payload_type", "4")]),
            good,
        ),
        // This dissector knows no RM cell: it shows the header, and the payload as it is.
        (
            case(
                resource,
                &[
                    ("atm.payload_type", "6"),
                    f5,
                    (
                        "data.data",
                        "010064b16199000000000000000000006a6a6a6a6a6a6a6a6a6a6a6a6a6a6a6a6a6a6a6a6a6a6a6a6a6a6a6a6a6a0200",
                    ),
                ],
            ),
            &[],
        ),
    ]
}

#[test]
fn cells_and_whole_pdus_are_read_as_written() {
    let cells = cells();
    let octets: Vec<_> = cells.iter().map(|(case, _)| case.octets.clone()).collect();
    let expected: Vec<_> = cells.iter().map(|(_, words)| *words).collect();
    let cases: Vec<_> = cells.into_iter().map(|(case, _)| case).collect();
    check(LinkType::ERF, &cases);
    if !have(&["tshark"]) {
        return;
    }
    let folder = Folder::new();
    let path = folder.path("cells.pcap");
    tshark::write(&path, Format::ALL[0], LinkType::ERF, &octets);
    let said = tshark::words(&path, "atm,oamaal");
    assert_eq!(said.len(), expected.len(), "{said:#?}");
    for (said, expected) in said.iter().zip(expected) {
        for word in expected {
            assert!(said.contains(word), "{word} in {said}");
        }
        assert!(!said.contains("incorrect"), "{said}");
    }
}

/// A head, then the rest.
fn rpc(head: rpc::Repr<'_>, rest: &[u8]) -> Vec<u8> {
    let mut octets = vec![0; rpc::MAX_HEAD_OCTETS];
    let end = head.emit(&mut octets).expect("room");
    octets.truncate(end);
    octets.extend(rest);
    octets
}

#[test]
fn remote_procedure_calls_are_read_as_written() {
    let mut body = [0; 64];
    let system = rpc::System::new(9, b"spark", 100, 10, &[20, 30]).expect("two more groups");
    let end = system.emit(&mut body).expect("room");
    let credential = rpc::Auth { flavor: rpc::Auth::SYSTEM, body: &body[..end] };
    let (program, version, procedure) = (portmap::PROGRAM, portmap::VERSION, portmap::PROC_GETPORT);
    let call = rpc::Body::Call { program, version, procedure, credential, verifier: rpc::Auth::NONE };
    let wanted =
        portmap::Mapping { program: 0x2000_0001, version: 1, transport: portmap::Transport::TCP, port: 0 };
    let mut question = [0; 16];
    wanted.emit(&mut question).expect("16 octets");
    let call = rpc(rpc::Repr { xid: 0x0102_0304, body: call }, &question);
    let reply = rpc(rpc::Repr::success(0x0102_0304), &2049_u32.to_be_bytes());
    let back = |payload: &[u8]| {
        build::ip_with(
            ipv4::Repr { ends: ENDS.reversed(), ..build::ip_repr(Protocol::UDP, payload) },
            payload,
        )
    };
    // Over TCP: a record of one fragment.
    let null = rpc(rpc::Repr::call(7, portmap::PROGRAM, portmap::VERSION, portmap::PROC_NULL), b"");
    let mark = |last, length| rpc::RecordMark::new(last, length).expect("a fragment").octets();
    let record = [&mark(true, 40)[..], &null].concat();
    let stream = tcp::Repr { flags: Flags::PSH, destination_port: portmap::PORT, ..build::tcp_repr() };
    check(
        LinkType::RAW_IP,
        &[
            case(
                build::ip(Protocol::UDP, &build::udp_between((1023, portmap::PORT), &call, true)),
                &[
                    UDP_GOOD,
                    ("rpc.xid", "0x01020304"),
                    ("rpc.msgtyp", "0"),
                    ("rpc.version", "2"),
                    ("rpc.program", "100000"),
                    ("rpc.programversion", "2"),
                    ("rpc.procedure", "3"),
                    ("rpc.auth.flavor", "1,0"),
                    ("rpc.auth.stamp", "0x00000009"),
                    ("rpc.auth.machinename", "spark"),
                    ("rpc.auth.uid", "100"),
                    ("portmap.prog", "536870913"),
                    ("portmap.proto", "6"),
                ],
            ),
            case(
                back(&build::udp_between((portmap::PORT, 1023), &reply, true)),
                &[
                    UDP_GOOD,
                    ("rpc.msgtyp", "1"),
                    ("rpc.replystat", "0"),
                    ("rpc.state_accept", "0"),
                    ("portmap.port", "2049"),
                ],
            ),
            case(
                build::ip(Protocol::TCP, &build::tcp(stream, &record)),
                &[
                    TCP_GOOD,
                    ("rpc.lastfrag", "1"),
                    ("rpc.fraglen", "40"),
                    ("rpc.xid", "0x00000007"),
                    ("rpc.procedure", "0"),
                ],
            ),
        ],
    );
}

/// The same checks can fail: each check that was found right above is found wrong here.
#[test]
fn a_turned_bit_is_found_by_the_other_side_too() {
    if !have(&["tshark"]) {
        return;
    }
    let turned = |mut octets: Vec<u8>, at: usize| {
        octets[at] ^= 0x40;
        octets
    };
    let inside = |octets: Vec<u8>, at| {
        let end = octets.len() - 4;
        build::closed(turned(octets, at)[..end].to_vec())
    };
    let (packet, _) = data_segment();
    let tcp = build::ethernet_ip(&packet);
    let udp = build::ethernet_ip(&build::ip(Protocol::UDP, &build::udp(b"datagram", true)));
    let echo = Message::EchoRequest { identifier: 1, sequence: 1 };
    let icmp = build::ethernet_ip(&build::ip(Protocol::ICMP, &build::icmp(echo, b"ping")));
    let cases = [
        (turned(tcp.clone(), 60), "eth.fcs.status"),
        (inside(tcp.clone(), 14 + 8), "ip.checksum.status"),
        (inside(tcp, 14 + 20 + 20), "tcp.checksum.status"),
        (inside(udp, 14 + 20 + 9), "udp.checksum.status"),
        (inside(icmp, 14 + 20 + 9), "icmp.checksum.status"),
    ];
    let folder = Folder::new();
    let path = folder.path("wrong.pcap");
    let packets: Vec<_> = cases.iter().map(|(octets, _)| octets.clone()).collect();
    tshark::write(&path, Format::ALL[0], LinkType::ETHERNET, &packets);
    let names: Vec<_> = cases.iter().map(|(_, name)| *name).collect();
    for (number, values) in tshark::fields(&path, &names).iter().enumerate() {
        assert_eq!(values[number], "0", "{} of packet {number} in {values:?}", names[number]);
    }

    let cells = [
        aal5(0, &build::snap(EtherType::IPV4, &packet)),
        oam(1, oam::Repr::ContinuityCheck, Flow::PathSegment),
    ];
    let wrong: Vec<_> = cells.into_iter().map(|octets| turned(octets, 30)).collect();
    tshark::write(&path, Format::ALL[0], LinkType::ERF, &wrong);
    for said in tshark::words(&path, "atm,oamaal") {
        assert!(said.contains("incorrect"), "{said}");
    }
}
