//! A peer by what comes, at stated times.

use alloc::collections::BTreeMap;
use alloc::vec;

use proptest::prelude::*;

use super::*;
use crate::pvm::Octets;

fn at(ms: u64) -> SimTime {
    SimTime::ZERO + Span::from_ms(ms)
}

fn ends() -> (Peer<Octets>, Peer<Octets>) {
    let tid = |host| Tid::daemon(host).expect("a host");
    (Peer::new(Timing::default(), tid(1), tid(2)), Peer::new(Timing::default(), tid(2), tid(1)))
}

fn data(number: u8) -> Packet<Octets> {
    let header = wire::Packet {
        destination: Tid(0x8_0001),
        source: Tid(0x4_0001),
        sequence: Seq::ZERO,
        acknowledged: Seq::ZERO,
        first: false,
        last: true,
        data: true,
        finish: false,
        acknowledges: false,
    };
    Packet { header, head: None, body: vec![number].into() }
}

fn numbered(number: u8, sequence: u32) -> Packet<Octets> {
    let mut packet = data(number);
    packet.header.sequence = Seq::wrapping(sequence);
    packet
}

#[derive(Default, Debug, PartialEq)]
struct Told {
    packets: Vec<Packet<Octets>>,
    came: Vec<u8>,
    events: Vec<Event>,
    next: Option<SimTime>,
}

fn drain(peer: &mut Peer<Octets>) -> Told {
    let mut told = Told::default();
    loop {
        match peer.poll_output() {
            Output::Transmit(packet) => told.packets.push(packet),
            Output::Deliver(packet) => told.came.push(packet.body.as_slice()[0]),
            Output::Event(event) => told.events.push(event),
            Output::Work(_) => {}
            Output::Timeout(next) => {
                told.next = next;
                return told;
            }
        }
    }
}

#[test]
fn the_next_packet_goes_when_the_one_before_is_acknowledged() {
    let (mut one, mut two) = ends();
    one.send(at(0), data(1));
    one.send(at(0), data(2));
    let told = drain(&mut one);
    assert_eq!((&told.packets[..], told.next), (&[numbered(1, 1)][..], Some(at(2000))));
    two.handle_packet(at(1), told.packets[0].clone());
    let answer = drain(&mut two);
    assert_eq!((&answer.came[..], answer.next, answer.packets.len()), (&[1][..], None, 1));
    let acknowledgement = answer.packets[0].header;
    assert!(acknowledgement.acknowledges && !acknowledgement.data && !acknowledgement.finish);
    assert_eq!((acknowledgement.acknowledged.get(), acknowledgement.sequence.get()), (1, 0));
    one.handle_packet(at(10), answer.packets[0].clone());
    assert_eq!(drain(&mut one).packets, [numbered(2, 2)]);
    assert_eq!(one.round_trip(), Span::from_us(752_500), "(3 s + 10 ms) / 4");
    one.handle_packet(at(11), answer.packets[0].clone());
    assert_eq!(drain(&mut one).packets, [], "acknowledged before");
}

#[test]
fn a_packet_is_sent_again_at_doubling_waits_until_the_host_has_failed() {
    let (mut one, _) = ends();
    one.send(at(0), data(1));
    let mut next = drain(&mut one).next;
    let mut times = Vec::new();
    loop {
        let time = next.expect("a time");
        one.handle_timeout(time);
        let told = drain(&mut one);
        if told.events == [Event::Failed] {
            assert_eq!((told.packets.len(), told.next), (0, None));
            times.push(time.as_ps() / 1_000_000_000_000);
            break;
        }
        assert_eq!(told.events, [Event::SentAgain(Seq::wrapping(1))]);
        assert_eq!(told.packets, [numbered(1, 1)]);
        times.push(time.as_ps() / 1_000_000_000_000);
        next = told.next;
    }
    // 2, 4, 8 and then 16 s each; ten sends are over after 126 s, and 180 s after fourteen.
    assert_eq!(times, [2, 6, 14, 30, 46, 62, 78, 94, 110, 126, 142, 158, 174, 190]);
    assert!(one.is_idle());
    one.send(at(200_000), data(2));
    one.handle_timeout(at(200_001));
    assert_eq!(drain(&mut one).events, [], "not yet due");
}

#[test]
fn no_round_trip_is_measured_of_what_was_sent_twice() {
    let (mut one, mut two) = ends();
    one.send(at(0), data(1));
    let sent = drain(&mut one).packets;
    one.handle_timeout(at(2000));
    two.handle_packet(at(2001), sent[0].clone());
    let answer = drain(&mut two).packets;
    one.handle_packet(at(2001), answer[0].clone());
    assert_eq!((one.round_trip(), one.is_idle()), (Span::from_s(1), true));
}

#[test]
fn a_repeated_packet_is_acknowledged_and_not_handed_on() {
    let (_, mut two) = ends();
    for _ in 0..2 {
        two.handle_packet(at(0), numbered(7, 1));
    }
    let told = drain(&mut two);
    assert_eq!((told.packets.len(), &told.came[..]), (2, &[7][..]));
    assert_eq!(told.events, [Event::Repeated(Seq::wrapping(1))]);
    for number in [3, 3, 2] {
        two.handle_packet(at(0), numbered(number as u8, number));
    }
    let told = drain(&mut two);
    assert_eq!((&told.came[..], told.packets.len()), (&[2, 3][..], 3), "in order");
}

#[test]
fn a_dismissed_peer_hears_twice_and_one_that_parts_once() {
    let (mut one, mut two) = ends();
    one.dismiss(at(0));
    let sent = drain(&mut one).packets;
    assert!(sent[0].header.finish && !sent[0].header.acknowledges);
    two.handle_packet(at(1), sent[0].clone());
    let answer = drain(&mut two);
    assert_eq!((answer.packets.len(), &answer.events[..]), (1, &[][..]), "not yet");
    one.handle_packet(at(2), answer.packets[0].clone());
    let told = drain(&mut one);
    assert_eq!((&told.events[..], told.next), (&[Event::Dismissed][..], None));
    two.handle_packet(at(3), told.packets[0].clone());
    assert_eq!(drain(&mut two), Told { events: vec![Event::Finished], ..Told::default() });
    two.part();
    let parted = drain(&mut two).packets;
    assert!(parted[0].header.finish && parted[0].header.acknowledges);
}

proptest! {
    #[test]
    fn all_comes_once_and_in_order_however_many_are_lost(
        count in 1_u8..30, lost in prop::collection::vec(any::<bool>(), 0..40), window in 1_u32..4
    ) {
        let tid = |host| Tid::daemon(host).expect("a host");
        let timing = Timing { window, ..Timing::default() };
        let mut ends = [Peer::<Octets>::new(timing, tid(1), tid(2)), Peer::new(timing, tid(2), tid(1))];
        for number in 0..count {
            ends[0].send(at(0), data(number));
        }
        let (mut now, mut came, mut lost) = (at(0), Vec::new(), lost.into_iter());
        let mut losses = BTreeMap::new();
        for _ in 0..10_000 {
            let mut moved = false;
            for side in 0..2 {
                let told = drain(&mut ends[side]);
                prop_assert!(!told.events.contains(&Event::Failed));
                came.extend(told.came);
                for packet in told.packets {
                    moved = true;
                    let header = packet.header;
                    let of = if header.acknowledges { header.acknowledged } else { header.sequence };
                    let before: &mut u32 = losses.entry(of.get()).or_default();
                    // Each loss of a packet or its acknowledgement is a send; after fourteen the host is given up.
                    if lost.next().unwrap_or(false) && *before < 10 {
                        *before += 1;
                    } else {
                        ends[1 - side].handle_packet(now, packet);
                    }
                }
            }
            if moved {
                continue;
            }
            let Some(next) = ends[0].due() else { break };
            now = next;
            ends[0].handle_timeout(now);
        }
        prop_assert_eq!(came, (0..count).collect::<Vec<_>>());
        prop_assert!(ends.iter().all(Peer::is_idle));
    }
}
