//! The adaptation layer over real sockets: everything once and in order, and the other circuit when one
//! is congested.

use std::path::{Path, PathBuf};
use std::time::Duration;

use wiretwin_host::{Failure, Meeting, PcaalFaults, PcaalOptions, PcaalStream, Stream, pcaal};

const LIMIT: Duration = Duration::from_secs(60);

fn directory(name: &str) -> PathBuf {
    let directory = std::env::temp_dir().join(format!("wiretwin-pcaal-{name}-{}", std::process::id()));
    std::fs::create_dir(&directory).unwrap();
    directory
}

fn meet(directory: &Path, rank: u32, options: &PcaalOptions) -> PcaalStream {
    let meeting = Meeting { directory, rank, size: 2, limit: LIMIT };
    pcaal(&meeting, options, LIMIT).unwrap().into_iter().flatten().next().unwrap()
}

/// Runs a rank in a thread beside another.
fn pair<T: Send>(
    name: &str,
    options: &PcaalOptions,
    first: impl FnOnce(PcaalStream) -> T,
    second: impl FnOnce(PcaalStream) -> T + Send,
) -> [T; 2] {
    let directory = directory(name);
    let outcome = std::thread::scope(|scope| {
        let beside = scope.spawn(|| second(meet(&directory, 1, options)));
        let here = first(meet(&directory, 0, options));
        [here, beside.join().unwrap()]
    });
    std::fs::remove_dir_all(&directory).unwrap();
    outcome
}

fn octets(seed: usize, length: usize) -> Vec<u8> {
    (0..length).map(|place| (place * 31 + place / 251 + seed * 7) as u8).collect()
}

#[test]
fn messages_arrive_once_and_in_order_whatever_is_lost_repeated_or_reordered() {
    for (number, loss_percent) in [0, 5, 20].into_iter().enumerate() {
        let faults = PcaalFaults {
            loss_percent,
            repeat_percent: 10,
            jitter: Duration::from_micros(500),
            seed: number as u64,
            ..PcaalFaults::default()
        };
        let options = PcaalOptions { faults, interval: Duration::from_millis(5), ..PcaalOptions::default() };
        let lengths = [1, 40, 3_000, 20_000, 7];
        let echo = |mut stream: PcaalStream| {
            for length in lengths {
                let mut buffer = vec![0; length];
                stream.recv_exact(&mut buffer).unwrap();
                stream.send_all(&buffer).unwrap();
            }
            stream.counters()
        };
        let ask = |mut stream: PcaalStream| {
            for (seed, length) in lengths.into_iter().enumerate() {
                let sent = octets(seed, length);
                stream.send_all(&sent).unwrap();
                let mut buffer = vec![0; length];
                stream.recv_exact(&mut buffer).unwrap();
                assert!(buffer == sent, "message {seed} at {loss_percent} %");
            }
            stream.counters()
        };
        let counters = pair(&format!("loss-{loss_percent}"), &options, ask, echo);
        let again: u64 = counters.iter().map(|counters| counters.retransmitted).sum();
        assert!(loss_percent == 0 || again > 0, "{counters:?}");
    }
}

/// Not by the clock: each phase ends when the mode is what it must become, or with the limit.
#[test]
fn the_other_circuit_is_taken_while_one_is_congested() {
    // A process that waits for its turn on a busy machine is not congestion.
    let (high, low) = (Duration::from_millis(60), Duration::from_millis(50));
    let options = PcaalOptions { high, low, ..PcaalOptions::default() };
    let phases = [(Duration::ZERO, false), (2 * high, true), (Duration::ZERO, false)];
    let ask = |mut stream: PcaalStream| {
        let begun = std::time::Instant::now();
        let mut sent = 0_u64;
        for (congestion, becomes) in phases {
            stream.congest(congestion);
            let before = stream.counters();
            loop {
                let mut message = [1; 64];
                message[1..9].copy_from_slice(&sent.to_le_bytes());
                stream.send_all(&message).unwrap();
                let mut answer = [0; 64];
                stream.recv_exact(&mut answer).unwrap();
                assert!(answer == message, "message {sent}");
                sent += 1;
                let now = stream.counters();
                let by_backup = now.data_backup > before.data_backup;
                let by_ordinary = now.data_ordinary > before.data_ordinary;
                if stream.is_high() == becomes && if becomes { by_backup } else { by_ordinary } {
                    break;
                }
                assert!(begun.elapsed() < LIMIT, "not {becomes} after {sent} messages: {now:?}");
            }
        }
        stream.send_all(&[0; 64]).unwrap();
        stream.counters()
    };
    let echo = |mut stream: PcaalStream| {
        let mut message = [0; 64];
        loop {
            stream.recv_exact(&mut message).unwrap();
            if message[0] == 0 {
                return stream.counters();
            }
            stream.send_all(&message).unwrap();
        }
    };
    let [counters, _] = pair("congested", &options, ask, echo);
    assert!(counters.data_backup > 0 && counters.data_ordinary > 0 && counters.switches >= 2, "{counters:?}");
}

#[test]
fn a_peer_that_leaves_ends_the_wait() {
    let wait = |mut stream: PcaalStream| stream.recv_exact(&mut [0; 8]).err();
    let leave = |stream: PcaalStream| {
        drop(stream);
        None
    };
    let [outcome, _] = pair("gone", &PcaalOptions::default(), wait, leave);
    assert_eq!(outcome, Some(Failure::PeerGone));
}

#[test]
fn control_messages_take_the_reliable_way() {
    let faults = PcaalFaults { loss_percent: 100, ..PcaalFaults::default() };
    let options = PcaalOptions { faults, ..PcaalOptions::default() };
    let tell = |mut stream: PcaalStream| {
        stream.send_control(b"so").unwrap();
        Vec::new()
    };
    let hear = |mut stream: PcaalStream| {
        let mut buffer = vec![0; 2];
        stream.recv_control(&mut buffer).unwrap();
        buffer
    };
    assert_eq!(pair("control", &options, tell, hear)[1], b"so");
}
