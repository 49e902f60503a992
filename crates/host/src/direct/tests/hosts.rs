//! Endpoints of two hosts: network namespaces that a pair of interfaces joins.

use std::fs::File;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsRawFd;
use std::process::Command;

use wiretwin_wire::direct::{Body, Extent, Head, Number, Repr, seal};

use super::*;

pub(crate) const HERE: Ipv4Addr = Ipv4Addr::new(10, 77, 1, 1);
pub(crate) const THERE: Ipv4Addr = Ipv4Addr::new(10, 77, 1, 2);

pub(crate) fn ip(arguments: &str) {
    let output = Command::new("ip").args(arguments.split(' ')).output().expect("`ip` (Debian: iproute2)");
    assert!(output.status.success(), "ip {arguments}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A network namespace of its own for this thread, until the next.
fn namespace() -> File {
    // SAFETY: a system call without pointers, which concerns this thread alone.
    assert_eq!(unsafe { libc::unshare(libc::CLONE_NEWNET) }, 0, "a network namespace");
    File::open("/proc/thread-self/ns/net").expect("the namespace")
}

pub(crate) fn enter(namespace: &File) {
    // SAFETY: a system call without pointers, which concerns this thread alone.
    assert_eq!(unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) }, 0, "the namespace");
}

/// Calls `look` with two joined hosts, on a thread that has no other task; without privilege, not at all.
pub(crate) fn with_hosts(look: impl FnOnce([File; 2]) + Send + 'static) {
    // SAFETY: asks for a number.
    if unsafe { libc::geteuid() } != 0 {
        eprintln!("left out: network namespaces need root");
        return;
    }
    let work = || {
        let [first, second] = [(); 2].map(|()| namespace());
        enter(&first);
        let path = format!("/proc/{}/fd/{}", std::process::id(), second.as_raw_fd());
        ip(&format!("link add e0 type veth peer name e0 netns {path}"));
        for (namespace, address) in [(&second, THERE), (&first, HERE)] {
            enter(namespace);
            ip(&format!("addr add {address}/24 dev e0"));
            ip("link set lo up");
            ip("link set e0 up");
        }
        look([first, second]);
    };
    std::thread::spawn(work).join().expect("the test on its thread");
}

/// An endpoint on each host.
fn open(hosts: &[File; 2], ways: [Ways; 2]) -> [Endpoint; 2] {
    let mut at = 0;
    ways.map(|ways| {
        enter(&hosts[at]);
        let ip = [HERE, THERE][at];
        at += 1;
        Endpoint::open(Options { ip, ways, ..Options::default() }).expect("an endpoint")
    })
}

/// Sends messages to and fro, and says how they were carried.
fn exchange(hosts: &[File; 2], ends: &mut [Endpoint; 2], lengths: &[usize]) -> [Carried; 2] {
    let addresses = [ends[0].address(), ends[1].address()];
    let peers = [0, 1].map(|at| {
        // Devices are looked for when the first peer of another host is known.
        enter(&hosts[at]);
        ends[at].peer(addresses[1 - at])
    });
    for (number, &length) in lengths.iter().enumerate() {
        let message = bytes(length, number);
        for from in 0..2 {
            let mut buffer = vec![0; length];
            // SAFETY: both buffers outlive the completions, which are waited for.
            unsafe {
                ends[1 - from].receive(any(5), into(&mut buffer, 7));
                ends[from].send(peers[from], outgoing(&message, 5, Some(3))).expect("room");
            }
            let found = until(ends, [1, 1]);
            assert!(found.iter().flatten().all(|completion| completion.trouble.is_none()), "{found:?}");
            assert!(buffer == message, "{length} bytes from {from}");
        }
    }
    [ends[0].carried(), ends[1].carried()]
}

const LENGTHS: [usize; 8] = [0, 1, 8, 1400, 1500, 9000, 40_000, 1_000_000];

#[test]
fn frames_go_past_the_kernel_where_they_may_and_come_whole_whatever_the_other_end_has() {
    with_hosts(|hosts| {
        for ways in [
            [Ways::Any; 2],
            [Ways::Packet, Ways::Datagrams],
            [Ways::Datagrams, Ways::Packet],
            [Ways::Datagrams; 2],
        ] {
            let carried = exchange(&hosts, &mut open(&hosts, ways), &LENGTHS);
            for (carried, way) in carried.iter().zip(ways) {
                assert_eq!(carried.memory, 0, "{ways:?}");
                assert!(carried.stream > 0, "long messages: {ways:?}");
                assert_eq!(carried.past > 0, way != Ways::Datagrams, "{ways:?}: {carried:?}");
            }
        }
    });
}

/// Datagrams that this thread's host has dropped behind IP, at a UDP socket's filter among other places.
fn dropped_at_sockets() -> u64 {
    let all = std::fs::read_to_string("/proc/thread-self/net/snmp").expect("the host's counters");
    let [names, values] = [0, 1].map(|at| {
        let line = all.lines().filter(|line| line.starts_with("Udp:")).nth(at).expect("counters of UDP");
        line.split(' ').collect::<Vec<_>>()
    });
    let at = names.iter().position(|&name| name == "InErrors").expect("a counter of what is dropped");
    values[at].parse().expect("a number")
}

#[test]
fn datagrams_that_have_come_past_the_kernel_do_not_reach_its_protocols_and_others_do() {
    with_hosts(|hosts| {
        let mut ends = open(&hosts, [Ways::Packet; 2]);
        let carried = exchange(&hosts, &mut ends, &[8; 200]);
        assert!(carried[1].past > 100, "{carried:?}");
        enter(&hosts[1]);
        assert_eq!(dropped_at_sockets(), 0);
        // To another port of the same address.
        let there = UdpSocket::bind((THERE, 0)).expect("a socket");
        enter(&hosts[0]);
        let here = UdpSocket::bind((HERE, 0)).expect("a socket");
        here.send_to(b"other", there.local_addr().expect("its address")).expect("a datagram");
        let mut came = [0; 8];
        assert_eq!(there.recv(&mut came).expect("a datagram"), 5);
    });
}

#[test]
fn each_process_of_a_host_has_a_packet_socket() {
    with_hosts(|hosts| {
        let mut first = open(&hosts, [Ways::Any; 2]);
        exchange(&hosts, &mut first, &[8]);
        for ends in [&mut open(&hosts, [Ways::Any; 2]), &mut first] {
            let carried = exchange(&hosts, ends, &LENGTHS);
            assert!(carried.iter().all(|carried| carried.past > 0), "{carried:?}");
        }
    });
}

#[test]
fn a_host_without_an_ethernet_interface_goes_through_the_kernel() {
    let refused = Endpoint::open(Options { ways: Ways::Packet, ..Options::default() });
    let said = refused.map(drop).expect_err("the loopback interface").to_string();
    assert!(said.contains("looking for the Ethernet interface of the address"), "{said}");
}

#[test]
fn long_messages_follow_each_other_over_tcp() {
    with_hosts(|hosts| {
        for length in [20_000, 400_000] {
            let carried = exchange(&hosts, &mut open(&hosts, [Ways::Any; 2]), &[length; 200]);
            assert!(carried.iter().all(|carried| carried.stream > 100), "{length}: {carried:?}");
        }
    });
}

#[test]
fn short_messages_and_those_pushed_on_tcp_keep_their_order_expected_or_not() {
    const COUNT: usize = 200;
    with_hosts(|hosts| {
        let mut ends = open(&hosts, [Ways::Any; 2]);
        let stands = (0..1000).any(|_| exchange(&hosts, &mut ends, &[20_000])[1].stream > 0);
        assert!(stands, "a connection");
        let messages: Vec<_> = (0..COUNT).map(|at| bytes([8, 9000, 1000, 200_000][at % 4], at)).collect();
        for is_expected in [true, false] {
            let before = ends[1].carried().stream;
            let mut buffers = vec![vec![0; 200_000]; COUNT];
            // SAFETY: the buffers and the messages outlive the completions, which are waited for.
            unsafe {
                for (at, buffer) in buffers.iter_mut().enumerate().filter(|_| is_expected) {
                    ends[1].receive(any(5), into(buffer, at));
                }
                for (at, message) in messages.iter().enumerate() {
                    ends[0].send(0, outgoing(message, 5, Some(at))).expect("room");
                }
                let start = Instant::now();
                while !is_expected && ends[1].peek(&any(5)).is_none() {
                    assert!(start.elapsed() < LIMIT);
                    ends.iter_mut().for_each(Endpoint::progress);
                }
                for (at, buffer) in buffers.iter_mut().enumerate().filter(|_| !is_expected) {
                    ends[1].receive(any(5), into(buffer, at));
                }
            }
            until(&mut ends, [COUNT, COUNT]);
            for (at, (buffer, message)) in buffers.iter().zip(&messages).enumerate() {
                assert!(buffer[..message.len()] == message[..], "message {at}");
            }
            assert_eq!(ends[1].carried().stream - before, COUNT as u64 / 2);
        }
    });
}

#[test]
fn short_frames_that_go_together_through_the_kernel_are_taken_apart_past_the_other() {
    with_hosts(|hosts| {
        let mut ends = open(&hosts, [Ways::Datagrams, Ways::Packet]);
        exchange(&hosts, &mut ends, &[8]);
        let mut buffers = [[0; 8]; 100];
        for (at, buffer) in buffers.iter_mut().enumerate() {
            // SAFETY: the buffers outlive the completions, which are waited for; without a context, the bytes of a
            // message are needed during the call alone.
            unsafe {
                ends[1].receive(any(5), into(buffer, at));
                ends[0].send(0, outgoing(&at.to_le_bytes(), 5, None)).expect("room");
            }
        }
        until(&mut ends, [0, 100]);
        assert!(buffers.iter().enumerate().all(|(at, buffer)| at.to_le_bytes() == *buffer));
    });
}

/// Two ends that reach each other past the kernel, and the number that the first has for the second.
fn met(hosts: &[File; 2]) -> ([Endpoint; 2], usize) {
    let mut ends = open(hosts, [Ways::Packet; 2]);
    let carried = exchange(hosts, &mut ends, &[8; 3]);
    assert!(carried.iter().all(|carried| carried.past > 0), "{carried:?}");
    let address = ends[1].address();
    let there = ends[0].peer(address);
    (ends, there)
}

#[test]
fn short_messages_in_a_row_are_held_for_each_other_and_come_in_order_with_none_sent_again() {
    const COUNT: usize = 5000;
    with_hosts(|hosts| {
        let (mut ends, there) = met(&hosts);
        let mut buffers = [[0; 8]; COUNT];
        let mut sent = 0;
        for (at, buffer) in buffers.iter_mut().enumerate() {
            // SAFETY: the buffers outlive the completions, which are waited for; without a context, the bytes of a
            // message are needed during the call alone.
            unsafe {
                ends[1].receive(any(5), into(buffer, at));
                ends[0].send(there, outgoing(&at.to_le_bytes(), 5, None)).expect("room");
            }
            sent += 1;
            if sent == 64 {
                until(&mut ends, [0, 64]);
                sent = 0;
            }
        }
        until(&mut ends, [0, sent]);
        assert!(buffers.iter().enumerate().all(|(at, buffer)| at.to_le_bytes() == *buffer));
        let counters = ends[0].counters(there);
        assert_eq!((counters.resent, counters.timeouts), (0, 0), "{counters:?}");
    });
}

#[test]
fn held_messages_go_though_their_sender_makes_no_further_call() {
    with_hosts(|hosts| {
        let (mut ends, there) = met(&hosts);
        for _ in 0..3 {
            let mut buffers = [[0; 8]; 10];
            for (at, buffer) in buffers.iter_mut().enumerate() {
                // SAFETY: as above.
                unsafe {
                    ends[1].receive(any(5), into(buffer, at));
                    ends[0].send(there, outgoing(&at.to_le_bytes(), 5, None)).expect("room");
                }
            }
            let start = Instant::now();
            for at in 0..buffers.len() {
                while ends[1].completion().is_none() {
                    assert!(start.elapsed() < LIMIT, "message {at}");
                    ends[1].progress();
                }
            }
            assert!(buffers.iter().enumerate().all(|(at, buffer)| at.to_le_bytes() == *buffer));
            ends[0].progress();
        }
    });
}

#[test]
fn a_receiver_that_stops_reading_for_a_second_drops_no_frame_and_its_senders_queue_is_bounded() {
    with_hosts(|hosts| {
        for ways in [[Ways::Packet; 2], [Ways::Datagrams; 2]] {
            let mut ends = open(&hosts, ways);
            exchange(&hosts, &mut ends, &[8]);
            let addresses = [ends[0].address(), ends[1].address()];
            let [there, back] = [ends[0].peer(addresses[1]), ends[1].peer(addresses[0])];
            let before = [ends[0].counters(there), ends[1].counters(back)];
            let message = bytes(1400, 1);
            let (begun, mut count, mut refused) = (Instant::now(), 0, 0);
            while begun.elapsed() < Duration::from_secs(1) {
                // SAFETY: without a context, the bytes are needed during the call alone.
                match unsafe { ends[0].send(there, outgoing(&message, 5, None)) } {
                    Ok(()) => count += 1,
                    Err(Busy) => refused += 1,
                }
                ends[0].progress();
            }
            // As many as may wait, and those for which the receiver has buffers.
            assert!(refused > 0 && count <= 4096 + 64, "{count} messages are held by {ways:?}");
            let mut buffer = vec![0; message.len()];
            for _ in 0..count {
                // SAFETY: the buffer outlives the completion, which is waited for.
                unsafe { ends[1].receive(any(5), into(&mut buffer, 7)) };
                let [_, came] = until(&mut ends, [0, 1]);
                assert!(came[0].trouble.is_none() && buffer == message);
            }
            let after = [ends[0].counters(there), ends[1].counters(back)];
            assert_eq!(after[0].resent, before[0].resent, "nothing was lost: {:?}", after[0]);
            assert_eq!(after[1].received - before[1].received, count, "{:?}", after[1]);
        }
    });
}

/// A frame of a message for an endpoint, whole and sound, under a key that somebody has made up.
fn forged(number: u32, key: u64) -> Vec<u8> {
    let head = Head { tag: Some(5), data: None, extent: Extent::Whole };
    let (zero, number) = (Number::ZERO, Number::wrapping(number));
    let body = Body::Message { number, head: Some(head) };
    let repr =
        Repr { key, epoch: 0, lane: 0, protected: false, short: false, received: zero, granted: 64, body };
    let head = repr.head_octets();
    let mut frame = vec![0xff; head + 8];
    repr.emit(&mut frame[..head]).expect("the size is that of the head");
    seal(&mut frame);
    frame
}

#[test]
fn a_flood_of_forged_frames_that_fills_every_buffer_changes_no_message_and_ends_with_itself() {
    with_hosts(|hosts| {
        for ways in [[Ways::Packet; 2], [Ways::Datagrams; 2]] {
            let mut ends = open(&hosts, ways);
            exchange(&hosts, &mut ends, &[8]);
            enter(&hosts[0]);
            let forger = UdpSocket::bind((HERE, 0)).expect("a socket");
            let to = ends[1].address();
            for round in 0..20 {
                // More than the ring of frames and the socket's buffer hold.
                for number in 0..FLOOD {
                    let key = to.key ^ u64::from(number % 64 + 1);
                    forger.send_to(&forged(number % 8, key), to.datagrams).expect("a datagram");
                }
                exchange(&hosts, &mut ends, &[8, 5000, 40_000 + round]);
            }
            let before = Instant::now();
            exchange(&hosts, &mut ends, &[8; 200]);
            assert!(before.elapsed() < Duration::from_secs(1), "{ways:?}: {:?}", before.elapsed());
        }
    });
}

/// Frames of a flood.
const FLOOD: u32 = 5000;
