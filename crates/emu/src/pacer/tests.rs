//! The loop between pairs of sockets, which need no privileges. Time decides nothing here but that a
//! frame is never early, which holds on any host.

use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use wiretwin_host::pinned;
use wiretwin_net::frame::{Action, Filter, HEADER, Medium, Probability, Rule, When, WireConfig};
use wiretwin_units::{BitRate, Bytes};

use super::*;

/// One end of a pair of sockets that keep the boundaries of frames.
struct End(OwnedFd);

impl AsFd for End {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Device for End {
    fn try_read(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match rustix::io::read(&self.0, buffer) {
            // The other end has been closed.
            Ok(0) => Err(Errno::BADFD.into()),
            Ok(count) => Ok(Some(count)),
            Err(Errno::AGAIN) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn try_write(&self, frame: &[u8]) -> io::Result<bool> {
        match rustix::io::write(&self.0, frame) {
            Ok(_) => Ok(true),
            Err(Errno::AGAIN | Errno::NOBUFS) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

fn config(medium: Medium) -> WireConfig {
    WireConfig {
        medium,
        rate: BitRate::mbit_s(1000),
        delay: Span::from_us(20),
        queue_frames: 1000,
        longest: Bytes::new(1518),
        rules: Vec::new(),
        queues: None,
        background: Vec::new(),
        seed: 3,
    }
}

/// A wire, and the hosts at its ports.
fn world(config: WireConfig, ports: usize) -> (Pacer<End>, Vec<End>) {
    world_on(config, &vec![None; ports])
}

/// The same, with the core from which each port's frames are taken.
fn world_on(config: WireConfig, cpus: &[Option<u32>]) -> (Pacer<End>, Vec<End>) {
    let pair = || {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap()
    };
    let (devices, hosts) = cpus.iter().map(|_| pair()).map(|(a, b)| (End(a), End(b))).unzip();
    let wire = Wire::new(config, cpus.len()).unwrap();
    (Pacer::new(wire, devices, cpus, Span::from_us(50)).unwrap(), hosts)
}

/// A frame from station `from` that carries its number.
fn frame(from: u8, to: u8, number: u32, length: usize) -> Vec<u8> {
    let mut octets = vec![0; length];
    octets[..6].copy_from_slice(&[2, 0, 0, 0, 0, to]);
    octets[6..12].copy_from_slice(&[2, 0, 0, 0, 0, from]);
    octets[12..14].copy_from_slice(&[0x88, 0xB5]);
    octets[HEADER..HEADER + 4].copy_from_slice(&number.to_be_bytes());
    octets
}

fn number(octets: &[u8]) -> u32 {
    u32::from_be_bytes(octets[HEADER..HEADER + 4].try_into().unwrap())
}

/// Turns until `done`, at most half a minute.
fn turn_until(pacer: &mut Pacer<End>, mut done: impl FnMut(&Pacer<End>) -> bool) {
    let start = pacer.elapsed();
    while !done(pacer) {
        assert!(pacer.elapsed().saturating_sub(start) < Span::from_s(30), "not done in 30 s");
        let soon = pacer.shared.now().saturating_add(Span::from_ms(10));
        pacer.turn(soon).unwrap();
    }
}

fn receive(host: &End) -> Option<Vec<u8>> {
    let mut buffer = [0; 2048];
    host.try_read(&mut buffer).unwrap().map(|length| buffer[..length].to_vec())
}

#[test]
fn frames_cross_whole_in_order_counted_and_never_early() {
    for medium in
        [Medium::Cable, Medium::Shared, Medium::Switch { latency: Span::ZERO, queue: Bytes::mib(1) }]
    {
        let (mut pacer, hosts) = world(config(medium), 2);
        let lengths: Vec<usize> = (0..200).map(|number| 60 + number * 7).collect();
        let (mut sent_at, mut received, mut number_sent) = (Vec::new(), 0, 0);
        turn_until(&mut pacer, |pacer| {
            // A few at a time: the sockets hold only so many.
            while number_sent < lengths.len() && number_sent < received + 8 {
                sent_at.push(pacer.elapsed());
                let octets = frame(1, 2, number_sent as u32, lengths[number_sent]);
                assert!(hosts[0].try_write(&octets).unwrap());
                number_sent += 1;
            }
            while let Some(octets) = receive(&hosts[1]) {
                assert_eq!(octets, frame(1, 2, received as u32, lengths[received]));
                let took = pacer.elapsed() - sent_at[received];
                // Preamble, frame and check sequence at 8 ns an octet, and the propagation.
                let least = Span::from_ns(8 * (lengths[received] as u64 + 12)) + Span::from_us(20);
                assert!(took >= least, "{took} instead of {least} or more");
                received += 1;
            }
            received == lengths.len()
        });
        let totals = pacer.totals();
        assert_eq!((totals.entered, totals.delivered, totals.held), (200, 200, 0));
        let (model, device) = pacer.counters()[0];
        assert_eq!((model.received, device), (200, PortCounts::default()));
        assert_eq!(pacer.lateness().count(), 200);
        assert!(pacer.turns().count() > 0);
    }
}

/// The numbers that cross of `count` frames under a rule, while the other direction is busy or not.
fn survivors(rule: &Rule, count: u32, busy: bool) -> Vec<u32> {
    let (mut pacer, hosts) = world(WireConfig { rules: vec![rule.clone()], ..config(Medium::Cable) }, 2);
    let (mut next, mut seen) = (0, Vec::new());
    turn_until(&mut pacer, |pacer| {
        let crossed = pacer.totals();
        if next < count && crossed.held < 8 {
            assert!(hosts[0].try_write(&frame(1, 2, next, 60)).unwrap());
            if busy && next % 3 == 0 {
                assert!(hosts[1].try_write(&frame(2, 1, next, 60)).unwrap());
            }
            next += 1;
        }
        while receive(&hosts[0]).is_some() {}
        while let Some(octets) = receive(&hosts[1]) {
            seen.push(number(&octets));
        }
        let expected = u64::from(count) + if busy { u64::from(count.div_ceil(3)) } else { 0 };
        let received: u64 = pacer.counters().iter().map(|(model, _)| model.received).sum();
        received == expected && crossed.held == 0
    });
    while let Some(octets) = receive(&hosts[1]) {
        seen.push(number(&octets));
    }
    seen
}

#[test]
fn a_seed_drops_the_same_frames_whatever_else_crosses() {
    let chance = When::Chance(Probability::new(0.3).unwrap());
    let rule = Rule { action: Action::Drop, when: chance, filter: Filter::default() };
    let quiet = survivors(&rule, 100, false);
    assert!((40..95).contains(&quiet.len()), "{}", quiet.len());
    assert_eq!(survivors(&rule, 100, true), quiet);
    let third = Rule { when: When::Every(3), ..rule };
    let expected: Vec<u32> = (0..30).filter(|number| number % 3 != 2).collect();
    assert_eq!(survivors(&third, 30, false), expected);
}

#[test]
fn a_corrupted_frame_differs_in_one_bit() {
    let rule = Rule { action: Action::Corrupt, when: When::Nth(vec![2]), filter: Filter::default() };
    let (mut pacer, hosts) = world(WireConfig { rules: vec![rule], ..config(Medium::Cable) }, 2);
    let sent: Vec<Vec<u8>> = (0..3).map(|number| frame(1, 2, number, 200)).collect();
    sent.iter().for_each(|octets| assert!(hosts[0].try_write(octets).unwrap()));
    let mut received = Vec::new();
    turn_until(&mut pacer, |_| {
        received.extend(receive(&hosts[1]));
        received.len() == 3
    });
    let differing = |number: usize| -> u32 {
        sent[number].iter().zip(&received[number]).map(|(a, b)| (a ^ b).count_ones()).sum()
    };
    assert_eq!([differing(0), differing(1), differing(2)], [0, 1, 0]);
    assert!(received.iter().all(|octets| octets.len() == 200));
}

#[test]
fn what_the_model_or_the_device_does_not_take_is_counted() {
    let (mut pacer, hosts) = world(config(Medium::Cable), 2);
    assert!(hosts[0].try_write(&[1; 13]).unwrap());
    assert!(hosts[0].try_write(&frame(1, 2, 0, 1519)).unwrap());
    turn_until(&mut pacer, |pacer| pacer.counters()[0].1.malformed == 2);
    // Nobody reads: a pair of sockets holds some frames, then takes no more.
    let mut sent = 0;
    turn_until(&mut pacer, |pacer| {
        sent += u64::from(hosts[0].try_write(&frame(1, 2, 0, 1514)).unwrap());
        pacer.counters()[1].1.refused > 0
    });
    turn_until(&mut pacer, |pacer| pacer.totals().held == 0);
    let (model, device) = pacer.counters()[1];
    assert!(device.refused < model.delivered && model.delivered <= sent);
}

#[test]
fn a_device_that_vanishes_ends_the_wire_by_name() {
    let (mut pacer, mut hosts) = world(config(Medium::Cable), 2);
    hosts.pop();
    let error = (0..1000).find_map(|_| pacer.turn(SimTime::from_ps(1)).err()).expect("it is noticed");
    assert_eq!(error.port, Some(PortId(1)));
    let text = error.to_string();
    assert!(text.starts_with("port 1: reading a frame: ") && text.ends_with("(the device has been deleted)"));
}

#[test]
fn the_limit_ends_the_loop() {
    // In a thread of its own, for the mask of signals.
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (mut pacer, _hosts) = world(config(Medium::Cable), 2);
            let signals = Signals::catch().unwrap();
            let limit = Duration::from_millis(5);
            let end = pacer.run(&signals, limit, |_| panic!("nobody asks")).unwrap();
            assert_eq!(end, super::End::Limit);
            assert!(pacer.elapsed() >= Span::from_ms(5));
        });
    });
}

#[test]
fn a_thread_for_each_core_carries_both_ways_in_order_and_all_end_together() {
    let (mut pacer, mut hosts) = world_on(config(Medium::Cable), &[Some(pinned()[0]), None]);
    assert_eq!(pacer.threads.len(), 2);
    let half_a_minute = Duration::from_secs(30);
    let ended = std::thread::scope(|scope| {
        let running = scope.spawn(|| {
            let ended = pacer.run(&Signals::catch().unwrap(), half_a_minute, |_| panic!("nobody asks"));
            let received = pacer.counters().iter().map(|(model, _)| model.received).collect::<Vec<_>>();
            (ended, received, pacer.totals())
        });
        let clock = Clock::start();
        let (mut sent, mut received) = ([0; 2], [0; 2]);
        while received != [500; 2] {
            assert!(clock.now() < Span::from_s(30), "{received:?} of 500 each way");
            for from in 0..2 {
                let (to, own) = (1 - from, from as u8 + 1);
                // A few at a time: the sockets hold only so many.
                if sent[from] < 500 && sent[from] < received[to] + 8 {
                    assert!(hosts[from].try_write(&frame(own, 3 - own, sent[from], 100)).unwrap());
                    sent[from] += 1;
                }
                while let Some(octets) = receive(&hosts[from]) {
                    assert_eq!(number(&octets), received[from]);
                    received[from] += 1;
                }
            }
        }
        // The other thread's device: its end is the end of both.
        hosts.pop();
        running.join().unwrap()
    });
    let (ended, received, totals) = ended;
    assert_eq!(ended.unwrap_err().port, Some(PortId(1)));
    assert_eq!((received, totals.delivered, totals.held), (vec![500; 2], 1000, 0));
}
