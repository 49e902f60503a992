//! Datagrams that do not arrive are counted, and cost neither a hang nor the samples around them.

use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::time::Duration;

use wiretwin_host::{
    Failure, LossLimit, Meeting, Pair, SocketOptions, Stream, UdpStream, Wait, drive, worked,
};
use wiretwin_measure::{Follower, Kind, Leader, Samples, Settings, Step};
use wiretwin_prog::Rank;
use wiretwin_units::{Bytes, Span};

/// A stream that swallows some of the messages it is given to send.
struct Dropping {
    stream: UdpStream,
    sent: usize,
    swallow: &'static [usize],
}

impl AsFd for Dropping {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

impl Stream for Dropping {
    fn send_all(&mut self, message: &[u8]) -> Result<(), Failure> {
        self.sent += 1;
        if self.swallow.contains(&self.sent) { Ok(()) } else { self.stream.send_all(message) }
    }
    fn recv_exact(&mut self, buffer: &mut [u8]) -> Result<(), Failure> {
        self.stream.recv_exact(buffer)
    }
    fn try_send(&mut self, bytes: &[u8]) -> Result<Option<usize>, Failure> {
        self.stream.try_send(bytes)
    }
    fn try_recv(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, Failure> {
        self.stream.try_recv(buffer)
    }
    fn wait(&self) -> Wait {
        self.stream.wait()
    }
    fn closed(&self) -> bool {
        self.stream.closed()
    }
    fn move_nothing(&mut self) -> Result<(), Failure> {
        self.stream.move_nothing()
    }
    fn limit(&self) -> Duration {
        self.stream.limit()
    }
    fn send_control(&mut self, message: &[u8]) -> Result<(), Failure> {
        self.stream.send_control(message)
    }
    fn recv_control(&mut self, buffer: &mut [u8]) -> Result<(), Failure> {
        self.stream.recv_control(buffer)
    }
}

fn meet(directory: &Path, rank: u32, swallow: &'static [usize]) -> Pair<Dropping> {
    let meeting = Meeting { directory, rank, size: 2, limit: Duration::from_secs(60) };
    let options = SocketOptions { wait: Wait::Block, ..SocketOptions::default() };
    // Long enough that a rank which merely waits for its turn on a busy host is not a loss.
    let loss_limit = LossLimit::exactly(Duration::from_secs(2));
    let stream = UdpStream::meet(&meeting, &options, Duration::from_secs(60), loss_limit).unwrap();
    Pair::new(Rank(rank), Dropping { stream, sent: 0, swallow })
}

/// Runs an echo of 40 samples while rank 0 and rank 1 swallow what they are told to.
fn run(name: &str, swallow: [&'static [usize]; 2]) -> Samples {
    let directory = std::env::temp_dir().join(format!("wiretwin-loss-{name}-{}", std::process::id()));
    std::fs::create_dir(&directory).unwrap();
    let settings = Settings { clock_cost: Span::from_ps(30_000), lossy: true, worked };
    let step = Step {
        kind: Kind::Echo,
        bytes: Bytes::new(100),
        messages: 1,
        delay: Span::ZERO,
        warmup: 5,
        min_samples: 40,
        max_samples: 40,
        budget: Span::from_ps(1),
        batch: 1,
    };
    let samples = std::thread::scope(|scope| {
        let follower = scope.spawn(|| {
            drive(Follower::new(settings).serve(&mut meet(&directory, 1, swallow[1]), |_| {})).unwrap();
        });
        let mut pair = meet(&directory, 0, swallow[0]);
        let mut leader = Leader::new(settings);
        let samples = drive(leader.step(&mut pair, &step, 1)).unwrap();
        drive(leader.quit(&mut pair)).unwrap();
        follower.join().unwrap();
        samples
    });
    std::fs::remove_dir_all(&directory).unwrap();
    samples
}

#[test]
fn without_loss_every_sample_is_there() {
    let samples = run("none", [&[], &[]]);
    assert_eq!((samples.values_ns.len(), samples.lost), (40, 0));
}

#[test]
fn a_lost_request_and_a_lost_reply_are_counted_and_the_samples_completed() {
    // Sends: 1 verifies, 2 is the first iteration, 3 to 7 warm up, 8 and 9 settle, then samples.
    let samples = run("two", [&[20], &[45]]);
    assert_eq!((samples.values_ns.len(), samples.lost), (40, 2));
    assert!(samples.first.is_some());
    // A sample is a round trip, never a wait for something that did not come.
    assert!(samples.values_ns.iter().all(|&ns| ns < 2_000_000_000));
}

#[test]
fn a_lost_first_iteration_is_taken_again() {
    let samples = run("first", [&[2], &[]]);
    assert_eq!((samples.values_ns.len(), samples.lost), (40, 1));
    assert!(samples.first.is_some_and(|first| first < Span::from_ps(2_000_000_000_000)));
}

#[test]
fn a_layer_that_loses_everything_ends_the_step_after_three() {
    let all: &'static [usize] = &[1, 2, 3, 4, 5, 6, 7, 8];
    let samples = run("all", [all, &[]]);
    assert_eq!((samples.values_ns.len(), samples.lost, samples.first), (0, 3, None));
}
