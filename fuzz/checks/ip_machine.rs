//! Arbitrary octets as datagrams, packets and times against the machines of IP and a socket of UDP.

use std::collections::VecDeque;
use std::net::Ipv4Addr;

use super::input::Input;
use wiretwin_proto::ip::{
    Config, Datagram, Dropped, Packet, Received, Receiver, Sender, SenderConfig, forward,
};
use wiretwin_proto::udp::{self, Socket};
use wiretwin_proto::{MessageId, Output, Payload};
use wiretwin_units::{Bytes, SimTime, Span};
use wiretwin_wire::ipv4::{Ends, Protocol};

/// What a packet carries: the whole of a UDP datagram.
type Content = udp::Datagram;

const ENDS: Ends = Ends { source: Ipv4Addr::new(10, 0, 0, 1), destination: Ipv4Addr::new(10, 0, 0, 2) };

struct Bench {
    receiver: Receiver<Content>,
    config: Config,
    socket: Socket,
    socket_room: u64,
    now: SimTime,
    packets_in: u64,
    /// Packets that were dropped, and one for each datagram that came.
    packets_out: u64,
    timeout: Option<SimTime>,
}

impl Bench {
    fn drain(&mut self) {
        for _ in 0..2_000 {
            match self.receiver.poll_output() {
                Output::Work(work) => assert!(work.count > 0, "work that was not done: {work:?}"),
                Output::Event(Dropped { packets, .. }) => self.packets_out += u64::from(packets),
                Output::Deliver(Received { datagram, corrupted }) => {
                    assert!(u32::from(datagram.length) <= 65_515);
                    self.packets_out += 1;
                    let corrupted = datagram.content.corrupted || corrupted;
                    self.socket.handle_datagram(udp::Datagram { corrupted, ..datagram.content });
                    self.drain_socket();
                }
                Output::Timeout(timeout) => {
                    assert!(timeout.is_none_or(|at| at > self.now), "a time that has passed");
                    let held = u64::from(self.receiver.held());
                    assert_eq!(timeout.is_some(), held > 0);
                    assert!(self.packets_in >= self.packets_out + held, "more came out than went in");
                    self.timeout = timeout;
                    return;
                }
            }
        }
        panic!("outputs without an end");
    }

    fn drain_socket(&mut self) {
        for _ in 0..100 {
            match self.socket.poll_output() {
                Output::Timeout(timeout) => {
                    assert_eq!(timeout, None, "a socket has no timer");
                    assert!(self.socket.waiting().get() <= self.socket_room, "more than there is room for");
                    return;
                }
                Output::Work(work) => assert!(work.count > 0),
                Output::Transmit(_) | Output::Deliver(_) | Output::Event(_) => {}
            }
        }
        panic!("outputs without an end");
    }

    fn take(&mut self, packet: Packet<Content>) {
        self.packets_in += 1;
        self.receiver.handle_packet(self.now, packet);
        self.drain();
    }
}

fn content(input: &mut Input) -> Content {
    let length = Bytes::new(u64::from(input.word()) % 3_000);
    let shape = input.octet();
    let payload = Payload::whole(MessageId(shape.into()), length);
    udp::Datagram { payload, checksum: shape & 1 != 0, corrupted: shape & 2 != 0 }
}

/// A packet that no sender need have sent.
fn any_packet(input: &mut Input) -> Packet<Content> {
    let shape = input.octet();
    Packet {
        ends: ENDS,
        protocol: if shape & 64 != 0 { Protocol::TCP } else { Protocol::UDP },
        identification: u16::from(shape >> 3 & 3),
        time_to_live: input.octet(),
        dont_fragment: shape & 1 != 0,
        more_fragments: shape & 2 != 0,
        offset: if shape & 4 != 0 { input.word() } else { input.word() / 512 * 8 },
        length: if shape & 32 != 0 { input.word() } else { u16::from(input.octet()) * 8 },
        header_corrupted: shape == 255,
        content_corrupted: shape & 128 != 0,
        content: content(input),
    }
}

/// Panics if a machine does, or makes more than it was given, cuts wrongly, names a time that has passed,
/// exceeds its bounds, or holds pieces for ever.
pub fn check(octets: &[u8]) {
    let mut input = Input(octets);
    let mtu = input.word() % 9_300;
    let config = Config {
        timer: Span::from_us(1 + u64::from(input.octet())),
        most_datagrams: 1 + u16::from(input.octet() % 4),
        most_pieces: 1 + u16::from(input.octet() % 8),
    };
    let sockets = udp::Config { receive_buffer: u32::from(input.word()), ..udp::Config::default() };
    let mut sender = Sender::new(SenderConfig { mtu, ..SenderConfig::default() });
    let mut line: VecDeque<Packet<Content>> = VecDeque::new();
    let mut bench = Bench {
        receiver: Receiver::new(config),
        config,
        socket: Socket::new(sockets),
        socket_room: sockets.receive_buffer.into(),
        now: SimTime::ZERO,
        packets_in: 0,
        packets_out: 0,
        timeout: None,
    };
    for _ in 0..400 {
        if input.is_empty() {
            break;
        }
        match input.octet() % 10 {
            0 => {
                let (length, shape) = (input.word(), input.octet());
                let datagram = Datagram {
                    ends: ENDS,
                    protocol: Protocol::UDP,
                    length: if shape & 1 != 0 { length } else { length % 4_096 },
                    dont_fragment: shape & 2 != 0,
                    content: content(&mut input),
                };
                let whole = u32::from(datagram.length) + 20 <= u32::from(mtu.max(68));
                let allowed = datagram.length <= 65_515 && (whole || !datagram.dont_fragment);
                assert_eq!(sender.send(datagram).is_ok(), allowed, "{} octets, MTU {mtu}", datagram.length);
                loop {
                    match sender.poll_output() {
                        Output::Transmit(packet) => {
                            assert!(
                                packet.octets() <= u32::from(mtu.max(68)),
                                "longer than the link carries"
                            );
                            line.push_back(packet);
                        }
                        Output::Work(_) => {}
                        Output::Timeout(_) => break,
                    }
                }
            }
            1 => {
                bench.now += Span::from_us(input.octet().into());
                bench.receiver.handle_timeout(bench.now);
                bench.drain();
            }
            // Lost, twice, damaged, out of order, cut again on the way.
            2 => drop(line.pop_front()),
            3 => {
                if let Some(&packet) = line.front() {
                    bench.take(packet);
                }
            }
            4 => {
                if let Some(packet) = line.pop_front() {
                    bench.take(Packet {
                        header_corrupted: input.octet() & 1 != 0,
                        content_corrupted: true,
                        ..packet
                    });
                }
            }
            5 => {
                if let Some(packet) = line.pop_back() {
                    bench.take(packet);
                }
            }
            6 => {
                if let Some(packet) = line.pop_front()
                    && let Ok(pieces) = forward(&packet, input.word() % 2_000)
                {
                    line.extend(pieces.take(64));
                }
            }
            7 => {
                let packet = any_packet(&mut input);
                bench.take(packet);
            }
            8 => {
                let before = bench.socket.waiting();
                let most = Bytes::new(input.word().into());
                if let Some(read) = bench.socket.receive(most) {
                    assert!(read.length <= most && bench.socket.waiting() < before);
                }
                bench.socket.handle_unreachable();
                bench.drain_socket();
            }
            _ => {
                for _ in 0..input.octet() {
                    let Some(packet) = line.pop_front() else { break };
                    bench.take(packet);
                }
            }
        }
    }
    // Nothing comes any more: what is in pieces is given up by its timer.
    for _ in 0..bench.config.most_datagrams {
        let Some(timeout) = bench.timeout else { break };
        bench.now = timeout;
        bench.receiver.handle_timeout(timeout);
        bench.drain();
    }
    assert_eq!((bench.receiver.held(), bench.timeout), (0, None));
}
