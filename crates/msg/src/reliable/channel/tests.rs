use alloc::vec::Vec;

use proptest::prelude::*;
use wiretwin_proto::{MessageId, Payload};

use super::super::pdu::{Head, Kind, Missing, PduError, take_list};
use super::*;

const NOW: SimTime = SimTime::ZERO;
const SMALL: Config = Config { pdu: Bytes::new(116), window: 4, limit: Span::from_s(100_000), ..defaults() };

const fn defaults() -> Config {
    Config {
        pdu: Bytes::new(4096),
        window: 32,
        timer: Span::from_ms(100),
        most: Span::from_s(1),
        limit: Span::from_s(10),
    }
}

fn body(message: u64, octets: u64) -> Content {
    let mut content = Content::new();
    content.push_body(Payload::whole(MessageId(message), Bytes::new(octets)));
    content
}

/// PDUs and events since the last call.
fn drain(one: &mut Channel) -> (Vec<Content>, Vec<Event>) {
    let (mut sent, mut events) = (Vec::new(), Vec::new());
    loop {
        match one.poll_output() {
            Output::Transmit(pdu) => sent.push(pdu),
            Output::Event(event) => events.push(event),
            Output::Timeout(_) => return (sent, events),
            Output::Work(_) | Output::Deliver(()) => {}
        }
    }
}

fn head(pdu: &Content) -> Head {
    Head::take(&mut pdu.clone()).expect("a PDU")
}

#[test]
fn a_message_is_cut_into_pdus_and_comes_whole() {
    let (mut one, mut other) = (Channel::new(SMALL), Channel::new(SMALL));
    let mut content = body(7, 250);
    one.write(NOW, &mut content);
    let (sent, _) = drain(&mut one);
    let lengths: Vec<u64> = sent.iter().map(|pdu| pdu.length().get()).collect();
    assert_eq!(lengths, [116, 116, 66]);
    assert!(content.is_empty() && one.is_waiting());
    for mut pdu in sent {
        other.handle_pdu(NOW, &mut pdu);
    }
    assert_eq!(other.inbox().take_body(Bytes::MAX), Some(Payload::whole(MessageId(7), Bytes::new(250))));
}

#[test]
fn a_message_of_no_octets_takes_a_pdu() {
    let (mut one, mut other) = (Channel::new(SMALL), Channel::new(SMALL));
    one.write(NOW, &mut body(7, 0));
    let (mut sent, _) = drain(&mut one);
    assert_eq!(sent.len(), 1);
    other.handle_pdu(NOW, &mut sent[0]);
    assert_eq!(other.inbox().take_body(Bytes::MAX), Some(Payload::whole(MessageId(7), Bytes::new(0))));
}

#[test]
fn a_full_window_takes_no_more_until_something_is_known_to_have_come() {
    let (mut one, mut other) = (Channel::new(SMALL), Channel::new(SMALL));
    let mut content = body(7, 1000);
    one.write(NOW, &mut content);
    let (sent, _) = drain(&mut one);
    assert_eq!((sent.len(), content.length(), one.has_room()), (4, Bytes::new(600), false));
    let asked: Vec<bool> = sent.iter().map(|pdu| head(pdu).asks).collect();
    assert_eq!(asked, [false, false, true, true], "once in half a window, and when it is full");
    for mut pdu in sent {
        other.handle_pdu(NOW, &mut pdu);
    }
    let (answers, _) = drain(&mut other);
    assert_eq!(answers.len(), 2);
    for mut pdu in answers {
        one.handle_pdu(NOW, &mut pdu);
    }
    assert!(one.has_room() && !one.is_waiting());
}

#[test]
fn a_loss_is_seen_at_the_next_pdu_and_that_alone_is_sent_again() {
    let (mut one, mut other) = (Channel::new(defaults()), Channel::new(defaults()));
    for number in 0..5 {
        one.write(NOW, &mut body(number, 10));
    }
    let (sent, _) = drain(&mut one);
    for (number, mut pdu) in sent.into_iter().enumerate().filter(|(number, _)| ![1, 2].contains(number)) {
        other.handle_pdu(NOW, &mut pdu);
        if number == 3 {
            // It says so at once.
            assert_eq!(other.passed().statuses, 1);
        }
    }
    let (mut answers, _) = drain(&mut other);
    let said = head(&answers[0]);
    assert_eq!((said.kind, said.expected, said.number, said.stamp), (Kind::Status, 1, 4, 4));
    one.handle_pdu(NOW, &mut answers[0]);
    let (again, events) = drain(&mut one);
    let numbers: Vec<u32> = again.iter().map(|pdu| head(pdu).number).collect();
    assert_eq!((numbers, events.len()), ([1, 2].to_vec(), 2));
    for mut pdu in again {
        other.handle_pdu(NOW, &mut pdu);
    }
    let came: Vec<u64> =
        core::iter::from_fn(|| other.inbox().take_body(Bytes::MAX)).map(|body| body.message.0).collect();
    assert_eq!(came, [0, 1, 2, 3, 4]);
}

#[test]
fn what_is_under_way_again_is_not_sent_a_third_time_for_an_old_status() {
    let (mut one, mut other) = (Channel::new(defaults()), Channel::new(defaults()));
    for number in 0..4 {
        one.write(NOW, &mut body(number, 10));
    }
    let (sent, _) = drain(&mut one);
    for mut pdu in [sent[1].clone(), sent[3].clone()] {
        other.handle_pdu(NOW, &mut pdu);
    }
    let (answers, _) = drain(&mut other);
    assert_eq!(answers.len(), 2, "a gap before each");
    for mut pdu in answers {
        one.handle_pdu(NOW, &mut pdu);
    }
    assert_eq!(one.passed().again, 2, "0 once, though both say that it is missing; and 2");
}

#[test]
fn what_is_lost_last_is_found_by_a_poll() {
    let (mut one, mut other) = (Channel::new(defaults()), Channel::new(defaults()));
    one.write(NOW, &mut body(1, 10));
    drain(&mut one);
    let due = one.deadline().expect("it waits for the other");
    assert_eq!(due, NOW + Span::from_ms(100));
    one.handle_timeout(due);
    let (mut poll, _) = drain(&mut one);
    assert_eq!((head(&poll[0]).kind, one.deadline()), (Kind::Poll, Some(due + Span::from_ms(200))));
    other.handle_pdu(due, &mut poll[0]);
    let (mut answer, _) = drain(&mut other);
    one.handle_pdu(due, &mut answer[0]);
    let (mut again, _) = drain(&mut one);
    other.handle_pdu(due, &mut again[0]);
    assert_eq!(other.inbox().take_body(Bytes::MAX).map(|body| body.message), Some(MessageId(1)));
}

#[test]
fn who_says_nothing_for_too_long_is_taken_for_lost() {
    let mut one = Channel::new(defaults());
    one.write(NOW, &mut body(1, 10));
    let mut events = Vec::new();
    while let Some(due) = one.deadline() {
        assert!(due <= NOW + Span::from_s(12));
        one.handle_timeout(due);
        events.extend(drain(&mut one).1);
    }
    assert_eq!((events, one.is_lost(), one.is_waiting()), ([Event::Lost].to_vec(), true, false));
    let mut more = body(2, 10);
    one.write(NOW, &mut more);
    assert_eq!((more.length(), drain(&mut one).0.len()), (Bytes::new(10), 0));
}

#[test]
fn octets_that_are_no_pdu_are_refused_with_what_is_allowed() {
    let octets = Head { kind: Kind::Data, asks: true, length: 2, number: 1, expected: 2, stamp: 3 }.octets();
    for (at, octet, error) in [
        (0, 0, PduError::Kind { kind: 0 }),
        (0, 5, PduError::Kind { kind: 5 }),
        (1, 2, PduError::Asks { asks: 2 }),
        (3, 3, PduError::Length { said: 3, found: 2 }),
    ] {
        let mut octets = octets;
        octets[at] = octet;
        let mut pdu = Content::new();
        pdu.push_octets(&octets);
        pdu.push_octets(&[0; 2]);
        assert_eq!(Head::take(&mut pdu), Err(error));
    }
    let mut pdu = Content::new();
    pdu.push_octets(&octets[..15]);
    assert_eq!(Head::take(&mut pdu), Err(PduError::Short { octets: 15 }));
    let mut list = Content::new();
    list.push_octets(&[0; 12]);
    assert_eq!(take_list(&mut list), Err(PduError::List));
    let mut one = Channel::new(defaults());
    one.handle_pdu(NOW, &mut body(1, 20));
    assert_eq!(drain(&mut one).1, [Event::Garbage]);
}

#[test]
fn numbers_that_nobody_can_have_used_change_nothing() {
    let mut one = Channel::new(SMALL);
    one.write(NOW, &mut body(1, 10));
    drain(&mut one);
    for (kind, number, expected) in
        [(Kind::Data, 9, 0), (Kind::Data, 0, 2), (Kind::Poll, 100, 0), (Kind::Status, 1, 7)]
    {
        let head = Head { kind, asks: false, length: 0, number, expected, stamp: 1 };
        let mut pdu = Content::new();
        pdu.push_octets(&head.octets());
        one.handle_pdu(NOW, &mut pdu);
        assert_eq!((drain(&mut one).1, one.is_waiting()), ([Event::Garbage].to_vec(), true), "{head:?}");
    }
    let mut pdu = Content::new();
    pdu.push_octets(
        &Head { kind: Kind::Status, asks: false, length: 8, number: 1, expected: 0, stamp: 1 }.octets(),
    );
    put_list(&[Missing { first: 0, count: u32::MAX }], &mut pdu);
    one.handle_pdu(NOW, &mut pdu);
    assert_eq!(one.passed().again, 1);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn everything_comes_once_and_in_order_whatever_is_lost(
        messages in prop::collection::vec(0u64..900, 1..12),
        losses in prop::collection::vec(any::<bool>(), 1..200),
    ) {
        let mut both = [Channel::new(SMALL), Channel::new(SMALL)];
        let mut waiting = [Content::new(), Content::new()];
        let mut expected = [0, 0];
        for (number, bytes) in messages.iter().enumerate() {
            let side = number % 2;
            waiting[side].push_octets(&[number as u8]);
            waiting[side].push_body(Payload::whole(MessageId(number as u64), Bytes::new(*bytes)));
            expected[1 - side] += 1 + bytes;
        }
        let (mut now, mut at) = (NOW, 0);
        for _ in 0..4000 {
            let mut moved = false;
            for side in 0..2 {
                both[side].write(now, &mut waiting[side]);
                let (sent, events) = drain(&mut both[side]);
                prop_assert!(!events.contains(&Event::Garbage) && !events.contains(&Event::Lost));
                for mut pdu in sent {
                    moved = true;
                    at += 1;
                    // Each loss happens once, then all goes well.
                    if !losses.get(at).copied().unwrap_or(false) {
                        both[1 - side].handle_pdu(now, &mut pdu);
                    }
                }
            }
            if moved {
                continue;
            }
            let Some(due) = both.iter().filter_map(Channel::deadline).min() else { break };
            now = due;
            both.iter_mut().for_each(|one| one.handle_timeout(now));
        }
        for side in 0..2 {
            prop_assert!(waiting[side].is_empty() && !both[side].is_waiting());
            prop_assert_eq!(both[side].inbox().length().get(), expected[side]);
            // The messages of the other side, each once and whole.
            for (number, bytes) in messages.iter().enumerate().filter(|(number, _)| number % 2 != side) {
                let mut octet = [0];
                prop_assert!(both[side].inbox().take_octets(&mut octet) && octet == [number as u8]);
                let whole = Payload::whole(MessageId(number as u64), Bytes::new(*bytes));
                prop_assert_eq!(both[side].inbox().take_body(Bytes::MAX), Some(whole));
            }
        }
    }
}
