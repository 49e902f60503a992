//! Two endpoints in one process, over each device.

use std::time::{Duration, Instant};

use wiretwin_msg::tagged::Pattern;

use super::*;

mod cost;
pub(crate) mod hosts;
mod waiting;

const WAYS: [Ways; 2] = [Ways::SharedMemory, Ways::Datagrams];
const LIMIT: Duration = Duration::from_secs(20);

fn pair(ways: Ways) -> [Endpoint; 2] {
    [(); 2].map(|()| {
        Endpoint::open(Options { ways, held_bytes: 1 << 20, ..Options::default() }).expect("an endpoint")
    })
}

fn outgoing(bytes: &[u8], tag: u64, context: Option<usize>) -> Outgoing {
    let length = bytes.len() as u64;
    Outgoing { bytes: bytes.as_ptr(), length, tag: Some(tag), data: Some(tag + 1), context }
}

fn any(tag: u64) -> Pattern {
    Pattern { source: None, tag: Some(tag), ignore: 0 }
}

fn into(buffer: &mut [u8], context: usize) -> Receive {
    Receive { buffer: buffer.as_mut_ptr(), length: buffer.len() as u64, context: Some(context) }
}

/// Drives both endpoints until each has the wanted number of completions, and returns them.
fn until(ends: &mut [Endpoint; 2], wanted: [usize; 2]) -> [Vec<Completion>; 2] {
    let mut found = [Vec::new(), Vec::new()];
    let start = Instant::now();
    while found[0].len() < wanted[0] || found[1].len() < wanted[1] {
        assert!(start.elapsed() < LIMIT, "after {LIMIT:?}: {found:?}");
        for (end, found) in ends.iter_mut().zip(&mut found) {
            end.progress();
            found.extend(std::iter::from_fn(|| end.completion()));
        }
    }
    found
}

fn bytes(length: usize, seed: usize) -> Vec<u8> {
    (0..length).map(|at| (at * 31 + seed + (at >> 8)) as u8).collect()
}

const LENGTHS: [usize; 9] = [0, 1, 8, 1024, 1500, 9000, 40_000, 300_000, 3_000_000];

#[test]
fn messages_of_every_length_come_whole_whether_or_not_they_were_expected() {
    for ways in WAYS {
        let mut ends = pair(ways);
        let there = ends[1].address();
        let peer = ends[0].peer(there);
        for (number, &length) in LENGTHS.iter().enumerate() {
            for is_expected in [true, false] {
                let message = bytes(length, number);
                let mut buffer = vec![0; length];
                let receive = into(&mut buffer, 7);
                // SAFETY: both buffers outlive the completions, which are waited for.
                unsafe {
                    if is_expected {
                        ends[1].receive(any(5), receive);
                    }
                    ends[0].send(peer, outgoing(&message, 5, Some(3))).expect("room");
                    if !is_expected {
                        let start = Instant::now();
                        while ends[1].peek(&any(5)).is_none() {
                            assert!(start.elapsed() < LIMIT, "{length} bytes by {ways:?}");
                            ends.iter_mut().for_each(Endpoint::progress);
                        }
                        ends[1].receive(any(5), receive);
                    }
                }
                let [sent, came] = until(&mut ends, [1, 1]);
                assert_eq!((sent[0].kind, sent[0].context, sent[0].trouble), (Kind::Sent, 3, None));
                let came = came[0];
                assert_eq!((came.kind, came.context, came.trouble), (Kind::Received, 7, None));
                assert_eq!((came.length, came.tag, came.data), (length as u64, Some(5), Some(6)));
                assert!(buffer == message, "{length} bytes by {ways:?}");
                // The receiver has heard of the sender without being told its address.
                assert_eq!(came.source, 0);
            }
        }
        ends[0].finish(LIMIT);
        assert!(ends[0].is_at_rest());
    }
}

#[test]
fn many_messages_both_ways_come_in_order() {
    const COUNT: usize = 3000;
    for ways in WAYS {
        let mut ends = pair(ways);
        let addresses = [ends[0].address(), ends[1].address()];
        let peers = [ends[0].peer(addresses[1]), ends[1].peer(addresses[0])];
        let mut buffers = vec![[0; 8]; 2 * COUNT];
        for (at, buffer) in buffers.iter_mut().enumerate() {
            // SAFETY: the buffers outlive the completions, which are waited for.
            unsafe { ends[at % 2].receive(any(1), into(buffer, at)) };
        }
        for number in 0..COUNT as u64 {
            for end in 0..2 {
                // SAFETY: without a context, the bytes are needed during the call alone.
                while unsafe { ends[end].send(peers[end], outgoing(&number.to_le_bytes(), 1, None)) }.is_err()
                {
                    ends.iter_mut().for_each(Endpoint::progress);
                }
            }
        }
        let found = until(&mut ends, [COUNT, COUNT]);
        for (end, found) in found.iter().enumerate() {
            let order: Vec<_> = found.iter().map(|completion| completion.context).collect();
            assert_eq!(order, (0..COUNT).map(|at| 2 * at + end).collect::<Vec<_>>());
        }
        for (at, buffer) in buffers.iter().enumerate() {
            assert_eq!(u64::from_le_bytes(*buffer), at as u64 / 2);
        }
    }
}

#[test]
fn a_receiver_that_stops_reading_stops_its_sender_whose_memory_is_bounded_and_then_has_all() {
    for (ways, length) in WAYS.into_iter().flat_map(|ways| [(ways, 8), (ways, 5000)]) {
        let mut ends = pair(ways);
        let address = ends[1].address();
        let peer = ends[0].peer(address);
        let message = vec![7; length];
        let mut count = 0;
        // SAFETY: without a context, the bytes are needed during the call alone.
        while unsafe { ends[0].send(peer, outgoing(&message, count, None)) }.is_ok() {
            count += 1;
            assert!(count < 10_000, "{length} bytes by {ways:?}");
            ends[0].progress();
            if count < 100 {
                // The ends have not met yet.
                ends[1].progress();
            }
        }
        let mut buffer = vec![0; length];
        for tag in 0..count {
            // SAFETY: the buffer outlives the completion, which is waited for.
            unsafe { ends[1].receive(any(tag), into(&mut buffer, tag as usize)) };
            let [_, came] = until(&mut ends, [0, 1]);
            assert_eq!((came[0].context as u64, came[0].length, came[0].trouble), (tag, length as u64, None));
        }
    }
}

#[test]
fn a_message_too_long_for_its_buffer_is_cut_and_said_to_be() {
    for (ways, length) in WAYS.into_iter().flat_map(|ways| [(ways, 100), (ways, 100_000)]) {
        let mut ends = pair(ways);
        let there = ends[1].address();
        let peer = ends[0].peer(there);
        let message = bytes(length, 1);
        let mut buffer = vec![9; length];
        // SAFETY: both buffers outlive the completions.
        unsafe {
            ends[1].receive(any(5), into(&mut buffer[..60], 7));
            ends[0].send(peer, outgoing(&message, 5, Some(3))).expect("room");
        }
        let [_, came] = until(&mut ends, [1, 1]);
        assert_eq!(came[0].trouble, Some(Trouble::Truncated(length as u64 - 60)));
        assert_eq!(buffer[..60], message[..60]);
        assert!(buffer[60..].iter().all(|&byte| byte == 9));
    }
}

#[test]
fn a_send_of_a_few_frames_ends_before_its_receiver_has_done_anything() {
    for (ways, length) in [(Ways::SharedMemory, 3000), (Ways::Datagrams, 3000), (Ways::Datagrams, 7000)] {
        let mut ends = pair(ways);
        let there = ends[1].address();
        let peer = ends[0].peer(there);
        let (first, message) = (bytes(8, 1), bytes(length, 2));
        let mut buffer = vec![0; length];
        // SAFETY: all buffers outlive the completions, which are waited for.
        unsafe {
            ends[1].receive(any(1), into(&mut buffer, 7));
            ends[0].send(peer, outgoing(&first, 1, Some(3))).expect("room");
            until(&mut ends, [1, 1]);
            ends[1].receive(any(5), into(&mut buffer, 8));
            ends[0].send(peer, outgoing(&message, 5, Some(4))).expect("room");
        }
        let sent = ends[0].completion().map(|completion| (completion.context, completion.trouble));
        assert_eq!(sent, Some((4, None)), "{length} bytes by {ways:?}");
        until(&mut ends, [0, 1]);
        assert!(buffer == message);
    }
}

#[test]
fn a_message_to_oneself_is_one_like_others() {
    let mut ends = pair(Ways::Any);
    let own = ends[0].address();
    let peer = ends[0].peer(own);
    let mut buffer = [0; 3];
    // SAFETY: both buffers outlive the completions.
    unsafe {
        ends[0].send(peer, outgoing(&[1, 2, 3], 5, Some(3))).expect("room");
        ends[0].receive(any(5), into(&mut buffer, 7));
    }
    let [both, _] = until(&mut ends, [2, 0]);
    assert_eq!((both[0].kind, both[1].kind, buffer), (Kind::Sent, Kind::Received, [1, 2, 3]));
}

/// Drives one endpoint until `count` operations have completed.
fn told(end: &mut Endpoint, count: usize) -> Vec<Completion> {
    let (start, mut told) = (Instant::now(), Vec::new());
    while told.len() < count {
        assert!(start.elapsed() < LIMIT, "{told:?}");
        end.progress();
        told.extend(std::iter::from_fn(|| end.completion()));
    }
    told
}

#[test]
fn a_receive_from_a_process_that_ends_is_told_so_and_so_is_a_send_to_it() {
    for ways in WAYS {
        let [mut here, mut there] = pair(ways);
        let peer = here.peer(there.address());
        let message = bytes(1_000_000, 1);
        let mut buffer = [0; 8];
        let from_it = Pattern { source: Some(peer as u32), ..any(9) };
        // SAFETY: both buffers outlive the completions.
        unsafe {
            here.receive(from_it, into(&mut buffer, 7));
            here.send(peer, outgoing(&message, 5, Some(3))).expect("room");
        }
        (0..1000).for_each(|_| {
            here.progress();
            there.progress();
        });
        drop(there);
        let gone = told(&mut here, 2);
        assert!(gone.iter().all(|completion| completion.trouble == Some(Trouble::PeerGone)), "{gone:?}");
        // SAFETY: as above.
        unsafe {
            here.send(peer, outgoing(&message, 5, Some(4))).expect("an end at once");
            here.receive(from_it, into(&mut buffer, 8));
        }
        let gone = told(&mut here, 2);
        assert!(gone.iter().all(|completion| completion.trouble == Some(Trouble::PeerGone)), "{gone:?}");
    }
}

#[test]
fn a_message_that_came_before_its_sender_ended_is_received_and_the_next_receive_is_told() {
    for ways in WAYS {
        let [mut here, mut there] = pair(ways);
        let (from, to) = (here.peer(there.address()), there.peer(here.address()));
        let message = bytes(900, 1);
        // SAFETY: without a context, the bytes are needed during the call alone.
        unsafe { there.send(to, outgoing(&message, 5, None)).expect("room") };
        let start = Instant::now();
        while !there.is_at_rest() {
            assert!(start.elapsed() < LIMIT);
            there.progress();
            here.progress();
        }
        drop(there);
        let mut buffer = [0; 900];
        let pattern = Pattern { source: Some(from as u32), ..any(5) };
        // SAFETY: the buffer outlives the completions.
        unsafe {
            here.receive(pattern, into(&mut buffer, 7));
            assert_eq!(told(&mut here, 1)[0].trouble, None, "{ways:?}");
            assert!(buffer[..] == message[..]);
            here.receive(pattern, into(&mut buffer, 8));
            assert_eq!(told(&mut here, 1)[0].trouble, Some(Trouble::PeerGone), "{ways:?}");
        }
    }
}

#[test]
fn a_receive_that_is_cancelled_ends_and_takes_nothing() {
    let mut ends = pair(Ways::Any);
    let mut buffer = [0; 8];
    // SAFETY: the buffer outlives the completion.
    unsafe { ends[0].receive(any(1), into(&mut buffer, 7)) };
    assert!(ends[0].cancel(7));
    assert!(!ends[0].cancel(7));
    assert_eq!(ends[0].completion().map(|completion| completion.trouble), Some(Some(Trouble::Cancelled)));
}
