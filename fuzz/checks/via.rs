//! Arbitrary octets as a packet, as a descriptor, and as calls of VIPL at two NICs between which packets
//! are lost, doubled and damaged.

use std::collections::VecDeque;

use wiretwin_msg::via::{
    Address, Body, Delivery, Descriptor, DoneError, HostAddress, MemoryAttributes, MemoryHandle, Nic,
    NicAttributes, Packet, Ptag, QueueKind, Reliability, ViAttributes, ViHandle, ViplError,
};
use wiretwin_proto::Output;
use wiretwin_units::{Bytes, SimTime, Span};

#[path = "input.rs"]
mod input;
use input::Input;

const HOSTS: [HostAddress; 2] = [HostAddress([1; 6]), HostAddress([2; 6])];
/// All memory of a process, in one region.
const MEMORY: std::ops::Range<u64> = 0x1000..0x9000;

struct End {
    nic: Nic,
    tag: Ptag,
    memory: MemoryHandle,
    connections: Vec<wiretwin_msg::via::WaitHandle>,
    posted: usize,
    taken: usize,
    notified: usize,
}

/// Panics if a packet or descriptor is not the same when it is written and read again, if a NIC writes
/// outside memory, or if descriptors are lost or doubled.
pub fn check(octets: &[u8]) {
    if let Ok((packet, data)) = Packet::parse(octets) {
        let again = packet.emit(|_, _, _| unreachable!("a packet that was read names no memory"));
        let length = octets.len() - data.len();
        // What is not looked at may differ: flags, and fields of other kinds.
        if let Ok((same, _)) = Packet::parse(&[&again[..], data].concat()) {
            assert_eq!(same, packet);
        } else {
            assert!(length < again.len(), "octets behind its end are no part of it");
        }
    }
    if let Ok(descriptor) = Descriptor::parse(octets, 20) {
        assert_eq!(Descriptor::parse(&descriptor.emit(), 20).as_ref(), Ok(&descriptor));
    }
    let mut input = Input(octets);
    let level = Reliability::ALL[usize::from(input.octet()) % 3];
    let kernel = input.octet() % 2 == 1 && level != Reliability::ReliableReception;
    let mut ends = HOSTS.map(|host| end(host, kernel));
    let mut flights: VecDeque<(usize, Packet)> = VecDeque::new();
    let mut now = SimTime::ZERO;
    for _ in 0..200 {
        if input.is_empty() {
            break;
        }
        let choice = input.octet();
        let (index, number) = (usize::from(choice >> 7), input.octet());
        let this = &mut ends[index];
        let vi = ViHandle(u32::from(number % 4) + 1);
        match choice & 15 {
            0 => ignore(this.nic.create_vi(ViAttributes {
                reliability: level,
                max_transfer: Bytes::new(1 << 14),
                qos: 0,
                ptag: this.tag,
                enable_rdma_write: number % 2 == 0,
                enable_rdma_read: number % 3 == 0 && !kernel && level.is_reliable(),
                send_cq: None,
                receive_cq: None,
            })),
            1 => ignore(this.nic.destroy_vi(vi)),
            2 => this.connections.extend(this.nic.connect_wait(now, &[number % 2], None)),
            3 => {
                let remote = Address { host: HOSTS[1 - index], discriminator: vec![number % 2] };
                let timeout = Some(Span::from_ms(number.into()));
                ignore(this.nic.connect_request(now, vi, &[], &remote, timeout));
            }
            4 => {
                let remote = Address { host: HOSTS[1 - index], discriminator: vec![7] };
                ignore(this.nic.connect_peer_request(now, vi, &[7], &remote, None));
            }
            5 => ignore(this.nic.disconnect(now, vi)),
            6..=9 => {
                let kind = if choice & 1 == 0 { QueueKind::Send } else { QueueKind::Receive };
                post(this, now, vi, kind, &mut input);
            }
            10 => match this.nic.done(vi, if number & 8 == 0 { QueueKind::Send } else { QueueKind::Receive })
            {
                Ok(_) | Err(DoneError::Failed(_)) => this.taken += 1,
                Err(_) => {}
            },
            11 => ignore(this.nic.notify(vi, QueueKind::Receive)),
            12 => {
                now = now.saturating_add(Span::from_ms(number.into()));
                this.nic.handle_timeout(now);
            }
            13 if number == 255 => this.nic.handle_failure(),
            13 => drop(flights.pop_front()),
            14 => {
                if let Some((to, packet)) = flights.front_mut() {
                    *packet = damaged(packet, number);
                    if number % 5 == 0 {
                        let twin = (*to, packet.clone());
                        flights.push_back(twin);
                    }
                }
            }
            _ => {
                if let Some((to, packet)) = flights.pop_front() {
                    if number % 8 == 7 {
                        ends[to].nic.handle_damaged(&packet);
                    } else {
                        ends[to].nic.handle_packet(now, &packet);
                    }
                    settle(&mut ends[to], Some(&packet), &mut flights);
                }
            }
        }
        let this = &mut ends[index];
        this.connections.retain(|wait| match this.nic.poll_wait(*wait) {
            Ok(asked) => {
                ignore(this.nic.connect_accept(now, asked.connection, vi));
                false
            }
            Err(_) => true,
        });
        settle(this, None, &mut flights);
    }
    for this in &mut ends {
        this.nic.close(now);
        settle(this, None, &mut VecDeque::new());
        for vi in 1..=u32::MAX {
            let mut any = false;
            for kind in [QueueKind::Send, QueueKind::Receive] {
                loop {
                    match this.nic.done(ViHandle(vi), kind) {
                        Ok(_) | Err(DoneError::Failed(_)) => this.taken += 1,
                        Err(DoneError::NotDone) => panic!("a descriptor is left though the NIC is closed"),
                        Err(DoneError::Empty) => break any = true,
                        Err(DoneError::NoSuchVi) => break,
                    }
                }
            }
            if !any && vi > 200 {
                break;
            }
        }
        assert_eq!(this.posted, this.taken + this.notified, "each descriptor completes once");
    }
}

/// What is refused is refused: whether it was is not what this looks at.
fn ignore<T>(_refused: Result<T, ViplError>) {}

fn end(host: HostAddress, kernel: bool) -> End {
    let attributes = if kernel { NicAttributes::m_via(host) } else { NicAttributes::adapter(host) };
    let mut nic = Nic::new(NicAttributes { max_descriptors: 6, window: 3, native_mtu: 100, ..attributes });
    let tag = nic.create_ptag().expect("a tag");
    let attributes = MemoryAttributes { ptag: tag, enable_rdma_write: true, enable_rdma_read: !kernel };
    let memory = nic.register_mem(MEMORY.start, MEMORY.end - MEMORY.start, attributes).expect("memory");
    End { nic, tag, memory, connections: Vec::new(), posted: 0, taken: 0, notified: 0 }
}

fn post(this: &mut End, now: SimTime, vi: ViHandle, kind: QueueKind, input: &mut Input<'_>) {
    let shape = input.octet();
    let segments = usize::from(shape & 3);
    let mut octets = vec![0; 32 + 16 * segments];
    octets[12] = segments as u8;
    octets[14] = if shape & 0x80 == 0 { shape >> 2 & 15 } else { 0 };
    let mut length = 0;
    for segment in octets[32..].chunks_exact_mut(16) {
        // Mostly memory, sometimes not.
        let (at, size) = (input.word(), input.octet());
        segment[..8].copy_from_slice(&(MEMORY.start - 1 + u64::from(at) % 0x8100).to_le_bytes());
        segment[8..12].copy_from_slice(&(this.memory.0 + u32::from(size == 255)).to_le_bytes());
        segment[12..16].copy_from_slice(&u32::from(size).to_le_bytes());
        length += u32::from(size);
    }
    if matches!(octets[14] & 3, 1 | 2) && segments > 0 {
        length -= u32::from_le_bytes(octets[44..48].try_into().expect("four octets"));
    }
    octets[24..28].copy_from_slice(&length.to_le_bytes());
    let address = MEMORY.start + 64 * u64::from(shape % 3);
    let place = wiretwin_msg::via::Place { address, handle: this.memory };
    let room = this.nic.query_vi(vi).is_ok();
    let before = this.posted;
    let accepted = match kind {
        QueueKind::Send => this.nic.post_send(now, vi, place, &octets),
        QueueKind::Receive => this.nic.post_recv(now, vi, place, &octets),
    };
    assert_eq!(accepted.is_ok(), room);
    this.posted = before + usize::from(room);
}

fn damaged(packet: &Packet, number: u8) -> Packet {
    let mut packet = packet.clone();
    match &mut packet.body {
        Body::Fragment(fragment) => match number % 4 {
            0 => fragment.sequence ^= u32::from(number),
            1 => fragment.total = fragment.total.max(u32::from(number)),
            2 => fragment.immediate = Some(1),
            _ => packet.to_vi = ViHandle(u32::from(number % 4) + 1),
        },
        Body::ReadRequest { remote, .. } => remote.address ^= u64::from(number),
        Body::Ack { next } => *next ^= u32::from(number),
        _ => packet.from_vi = ViHandle(u32::from(number % 4) + 1),
    }
    packet
}

fn settle(this: &mut End, at_hand: Option<&Packet>, flights: &mut VecDeque<(usize, Packet)>) {
    use wiretwin_msg::via::{ErrorCode, Event};
    let data = match at_hand.map(|packet| &packet.body) {
        Some(Body::Fragment(fragment)) => fragment.data.length().get(),
        _ => 0,
    };
    let inside = |address: u64, length: u64| address >= MEMORY.start && address + length <= MEMORY.end;
    loop {
        match this.nic.poll_output() {
            Output::Transmit(packet) => {
                if let Body::Fragment(fragment) = &packet.body {
                    let ranges = fragment.data.ranges().collect::<Vec<_>>();
                    let sum: u64 = ranges.iter().map(|(_, length)| u64::from(*length)).sum();
                    assert_eq!(sum, fragment.data.length().get(), "all data lie somewhere");
                    assert!(ranges.iter().all(|(address, length)| inside(*address, (*length).into())));
                }
                flights.push_back((usize::from(packet.to == HOSTS[1]), packet));
            }
            Output::Deliver(Delivery::Deposit(deposit)) => {
                assert!(inside(deposit.address, deposit.length.into()), "nothing is written elsewhere");
                assert!(u64::from(deposit.from) + u64::from(deposit.length) <= data, "data that came");
            }
            Output::Deliver(Delivery::Complete(completion)) => assert!(inside(completion.place.address, 32)),
            Output::Event(Event::Asynchronous(error)) => {
                // What was not accepted completes never.
                if matches!(error.code, ErrorCode::PostDescriptor | ErrorCode::Overrun) {
                    this.posted -= 1;
                }
            }
            Output::Event(Event::Notified(..)) => this.notified += 1,
            Output::Timeout(_) => return,
            Output::Work(_) | Output::Event(_) => {}
        }
    }
}
