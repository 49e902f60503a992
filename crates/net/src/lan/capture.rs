//! What the adapter of one host sends and hands over, as octets with their time: a capture.
//!
//! Networks carry handles; here packets and PDUs are made of octets, with every checksum and check sequence,
//! as `tcpdump` on that host would see them: a packet that it sends when its driver has it, one that it
//! receives when its driver hands it to IP or to a stream. What programs send is not known here: their
//! octets are those of a pattern, each the low 8 bits of its place in the stream or message. Hosts have the
//! addresses 10.0.0.1 and on, and 08:00:20:00:00:01 and on.
//!
//! | network | a packet |
//! |---|---|
//! | ATM, IP | an SDU of AAL 5 with LLC and SNAP (SunATM) |
//! | ATM, Fore interface over AAL 5 | an SDU of AAL 5 (SunATM) |
//! | Ethernet | a frame with its check sequence |
//! | FDDI | a frame without one, as captures have it |
//!
//! AAL 3/4 is rejected: captures have no way to say that a PDU is of it.

use std::net::Ipv4Addr;

use wiretwin_proto::tcp::Segment;
use wiretwin_proto::{Payload, ip};
use wiretwin_record::capture::{LinkType, sunatm};
use wiretwin_units::{Bytes, SimTime};
use wiretwin_wire::ethernet::{self, EtherType, Kind};
use wiretwin_wire::ipv4::{self, Ends, FragmentOffset, Protocol};
use wiretwin_wire::mac::{self, MacAddress};
use wiretwin_wire::{Options, fddi, llc, udp};

use super::Lan;
use super::config::SocketConfig;
use super::rank_udp::Sent;
use super::stack::{Lower, Stack};

/// The most packets that are kept.
pub const MOST_PACKETS: usize = 1 << 20;

/// A capture.
#[derive(Clone, Debug)]
pub struct Capture {
    /// Whose adapter.
    pub host: u32,
    /// What each packet begins with.
    pub link: LinkType,
    /// Packets, with when they passed.
    pub packets: Vec<(SimTime, Vec<u8>)>,
    /// Packets beyond [`MOST_PACKETS`], which were not kept.
    pub missed: u64,
    /// What each host numbers its next packet, by host.
    identifications: Vec<u16>,
}

/// The type of link of a stack's captures.
///
/// # Errors
/// Why there are none.
pub(super) fn link_of(stack: Stack, socket: Option<&SocketConfig>) -> Result<LinkType, &'static str> {
    if stack.message.is_library() && stack.message.has_circuits() {
        return Err("nothing: what libraries send on circuits is not captured");
    }
    match stack.lower {
        Lower::Gige if stack.message.is_over_vis() => Err("nothing: packets of VIs are not captured"),
        Lower::Aal34 => Err("nothing: captures cannot say that a PDU is of AAL 3/4"),
        Lower::Aal5 if socket.is_some_and(|socket| socket.encapsulation.get() != SNAP_OCTETS) => {
            Err("nothing, unless encapsulation_bytes is 8: LLC and SNAP")
        }
        Lower::Aal5 => Ok(LinkType::SUNATM),
        Lower::Gige if socket.is_some_and(|socket| socket.mtu > 1500) => {
            Err("nothing: frames longer than 802.3 has are not captured")
        }
        Lower::Ethernet | Lower::Gige => Ok(LinkType::ETHERNET),
        Lower::Fddi => Ok(LinkType::FDDI),
    }
}

impl Capture {
    pub(super) fn new(host: u32, link: LinkType, hosts: usize) -> Self {
        Self { host, link, packets: Vec::new(), missed: 0, identifications: vec![1; hosts] }
    }

    fn keep(&mut self, now: SimTime, octets: Vec<u8>) {
        if self.packets.len() < MOST_PACKETS {
            self.packets.push((now, octets));
        } else {
            self.missed += 1;
        }
    }
}

const fn mac_of(host: u32) -> MacAddress {
    MacAddress([0x08, 0x00, 0x20, 0x00, 0x00, host as u8 + 1])
}

pub(super) const fn ip_of(host: u32) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, host as u8 + 1)
}

/// The octets of a payload.
fn pattern(payload: &Payload) -> impl Iterator<Item = u8> {
    let start = payload.start.get();
    (start..start + payload.length.get()).map(|place| place as u8)
}

/// A header of so many octets, which `emit` writes, before these.
fn behind(header: usize, mut octets: Vec<u8>, emit: impl FnOnce(&mut [u8])) -> Vec<u8> {
    octets.splice(0..0, std::iter::repeat_n(0, header));
    emit(&mut octets);
    octets
}

impl Lan {
    /// What was captured, where the configuration asks for it.
    #[must_use]
    pub const fn captured(&self) -> Option<&Capture> {
        self.capture.as_ref()
    }

    /// The port of an end's socket: its own, or what a pair of ranks without libraries would have.
    fn port_of(&self, end: u32) -> u16 {
        let end = &self.ends[end as usize];
        let peer = self.ends[end.other as usize].host;
        match end.at.port {
            0 if end.host > peer => SERVER_PORT,
            0 => CLIENT_PORT + peer as u16,
            port => port,
        }
    }

    /// A datagram or a fragment of one passes a driver.
    pub(super) fn capture_piece(&mut self, piece: &ip::Packet<Sent>) {
        let Some(mut capture) = self.capture.take() else { return };
        let Sent { from, to, datagram } = piece.content;
        let repr = udp::Repr {
            source_port: SERVER_PORT,
            destination_port: SERVER_PORT,
            payload_length: datagram.payload.length.get() as u16,
            checksum: datagram.checksum,
        };
        let whole = behind(udp::HEADER_OCTETS, pattern(&datagram.payload).collect(), |octets| {
            repr.emit(&piece.ends, octets).expect("room for the header was made");
        });
        let part = whole[usize::from(piece.offset)..][..usize::from(piece.length)].to_vec();
        let offset = FragmentOffset::new(Bytes::new(piece.offset.into()));
        let header = ipv4::Repr {
            type_of_service: 0,
            identification: piece.identification,
            dont_fragment: piece.dont_fragment,
            more_fragments: piece.more_fragments,
            fragment_offset: offset.expect("fragments begin at multiples of 8"),
            time_to_live: piece.time_to_live,
            protocol: piece.protocol,
            ends: piece.ends,
            options: Options::NONE,
            payload_length: part.len() as u16,
        };
        let octets = self.framed(&capture, from, to, header, part);
        capture.keep(self.core.now(), octets);
        self.capture = Some(capture);
    }

    /// A segment passes a driver, from this end.
    pub(super) fn capture_segment(&mut self, from: u32, segment: &Segment) {
        let Some(mut capture) = self.capture.take() else { return };
        let to = self.ends[from as usize].other;
        let (source, destination) = (self.ends[from as usize].host, self.ends[to as usize].host);
        if source != destination && (source == capture.host || destination == capture.host) {
            let ends = Ends { source: ip_of(source), destination: ip_of(destination) };
            let tcp = segment.to_wire(self.port_of(from), self.port_of(to));
            let tcp = tcp.expect("an end sends no more options than fit");
            let segment = behind(tcp.header_octets(), pattern(&segment.payload).collect(), |octets| {
                tcp.emit(&ends, octets).expect("room for the header was made");
            });
            let identification = &mut capture.identifications[source as usize];
            let ip = ipv4::Repr {
                type_of_service: 0,
                identification: *identification,
                dont_fragment: false,
                more_fragments: false,
                fragment_offset: FragmentOffset::ZERO,
                time_to_live: TIME_TO_LIVE,
                protocol: Protocol::TCP,
                ends,
                options: Options::NONE,
                payload_length: segment.len() as u16,
            };
            *identification = identification.wrapping_add(1);
            let octets = self.framed(&capture, source, destination, ip, segment);
            capture.keep(self.core.now(), octets);
        }
        self.capture = Some(capture);
    }

    /// An IP packet as it stands on the network.
    fn framed(&self, capture: &Capture, from: u32, to: u32, ip: ipv4::Repr, payload: Vec<u8>) -> Vec<u8> {
        let packet = behind(ip.header_octets(), payload, |octets| {
            ip.emit(octets).expect("no longer than the network carries");
        });
        let routed = |packet: Vec<u8>| {
            let llc = llc::Repr::routed(EtherType::IPV4);
            behind(llc.header_octets(), packet, |octets| llc.emit(octets).expect("room was made"))
        };
        match self.config.stack.lower {
            Lower::Ethernet | Lower::Gige => {
                let frame = ethernet::Repr {
                    destination: mac_of(to),
                    source: mac_of(from),
                    kind: Kind::Type(EtherType::IPV4),
                };
                let length = ethernet::frame_octets(packet.len());
                let mut octets = behind(ethernet::HEADER_OCTETS, packet, |_| ());
                octets.resize(length, 0);
                frame.emit(&mut octets).expect("no longer than a frame may be");
                octets.extend([0; mac::FCS_OCTETS]);
                mac::close(&mut octets).expect("room for the check sequence was made");
                octets
            }
            Lower::Fddi => {
                let control = fddi::FrameControl::LlcAsynchronous { priority: 0 };
                let frame = fddi::Repr::Frame { control, destination: mac_of(to), source: mac_of(from) };
                behind(fddi::HEADER_OCTETS, routed(packet), |octets| {
                    frame.emit(octets).expect("no longer than a frame may be");
                })
            }
            Lower::Aal5 | Lower::Aal34 => {
                let circuit = self.circuit_between(from, to);
                self.on_circuit(capture, circuit, sunatm::Traffic::Llc, routed(packet))
            }
        }
    }

    /// An SDU of AAL 5 under the name that its circuit has at the captured host.
    fn on_circuit(&self, capture: &Capture, circuit: u32, traffic: sunatm::Traffic, sdu: Vec<u8>) -> Vec<u8> {
        let circuit = &self.circuits[circuit as usize];
        let from_host = circuit.from == capture.host;
        let vc = if from_host { circuit.vc } else { circuit.into };
        let header = sunatm::Header { from_host, traffic, vpi: vc.id().vpi.get() as u8, vci: vc.vci() };
        let octets = header.octets();
        behind(octets.len(), sdu, |sdu| sdu[..octets.len()].copy_from_slice(&octets))
    }

    /// A PDU of the Fore interface passes a driver, at this host.
    pub(super) fn capture_pdu(&mut self, host: u32, circuit: u32, payload: &Payload) {
        let Some(mut capture) = self.capture.take() else { return };
        if host == capture.host {
            let sdu = pattern(payload).collect();
            let octets = self.on_circuit(&capture, circuit, sunatm::Traffic::Unknown, sdu);
            capture.keep(self.core.now(), octets);
        }
        self.capture = Some(capture);
    }
}

/// LLC and SNAP.
const SNAP_OCTETS: u64 = 8;
/// BSD's TCP.
const TIME_TO_LIVE: u8 = 60;
/// Where the one of two ranks listens to which the other connects.
const SERVER_PORT: u16 = 5001;
/// The first port that is given out.
const CLIENT_PORT: u16 = 1024;
