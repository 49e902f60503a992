//! What the steps of a launch know of each other: lengths that were verified, and round trips.

use std::path::Path;
use std::time::Duration;

use wiretwin_host::{Meeting, Pair, SocketOptions, SocketStream, drive, unix, worked};
use wiretwin_measure::{Follower, Kind, Leader, Samples, Settings, Step};
use wiretwin_prog::Rank;
use wiretwin_units::{Bytes, Span};

const SETTINGS: Settings = Settings { clock_cost: Span::from_ps(30_000), lossy: false, worked };
const LIMIT: Duration = Duration::from_secs(60);
const SAMPLES: u32 = 5;

fn meet(directory: &Path, rank: u32) -> Pair<SocketStream> {
    let meeting = Meeting { directory, rank, size: 2, limit: LIMIT };
    let streams = unix(&meeting, &SocketOptions::default(), LIMIT).unwrap();
    Pair::new(Rank(rank), streams.into_iter().flatten().next().unwrap())
}

fn step(kind: Kind) -> Step {
    Step {
        kind,
        bytes: Bytes::new(100),
        messages: 1,
        delay: if kind == Kind::Beside { Span::from_ps(2_000_000_000) } else { Span::ZERO },
        warmup: 0,
        min_samples: SAMPLES,
        max_samples: SAMPLES,
        budget: Span::from_ps(1),
        batch: 1,
    }
}

#[test]
fn ranks_of_one_core_take_their_own_time_and_no_more_than_a_few_slices() {
    let taken = launch("one-core", &[Kind::OneCore, Kind::Slice, Kind::Beside]);
    assert_eq!(
        taken.iter().map(|samples| samples.values_ns.len()).collect::<Vec<_>>(),
        [SAMPLES as usize; 3]
    );
    // Nothing, where others have the core all the while.
    assert!(taken[1].values_ns.iter().all(|&kept_ns| kept_ns < 13_000_000), "{taken:?}");
    assert!(taken[2].values_ns.iter().all(|&took_ns| took_ns >= 2_000_000), "{taken:?}");
    assert_eq!((taken[1].payload_out, taken[2].payload_in), (0, u64::from(1 + SAMPLES)));
}

/// Takes one step after another in one launch.
fn launch(name: &str, kinds: &[Kind]) -> Vec<Samples> {
    let directory = std::env::temp_dir().join(format!("wiretwin-steps-{name}-{}", std::process::id()));
    std::fs::create_dir(&directory).unwrap();
    let taken = std::thread::scope(|scope| {
        scope.spawn(|| drive(Follower::new(SETTINGS).serve(&mut meet(&directory, 1), |_| {})).unwrap());
        let mut pair = meet(&directory, 0);
        let mut leader = Leader::new(SETTINGS);
        let mut one = |kind: &Kind| drive(leader.step(&mut pair, &step(*kind), 1)).unwrap();
        let taken = kinds.iter().map(&mut one).collect();
        drive(leader.quit(&mut pair)).unwrap();
        taken
    });
    std::fs::remove_dir_all(&directory).unwrap();
    taken
}

#[test]
fn a_length_is_verified_by_the_first_step_that_has_it() {
    let taken = launch("verified", &[Kind::SendBusy, Kind::SendBusy]);
    // The first iteration and the samples, and two before them unless an iteration is long.
    let iterations = [1 + SAMPLES, 3 + SAMPLES].map(u64::from);
    let [first, second] = [0, 1].map(|at| taken[at].payload_in);
    assert!(iterations.contains(&(first - 100)), "{first}: the verifying echo alone comes back whole");
    assert!(iterations.contains(&second), "{second}");
}

#[test]
fn a_timed_receive_pauses_by_the_echo_that_was_timed_before_it() {
    let taken = launch("pause", &[Kind::Echo, Kind::RecvBusy]);
    let mut sorted = taken[0].values_ns.clone();
    sorted.sort_unstable();
    assert_eq!(taken[1].pause, Span::from_ps(20_000_000 + 2 * 1000 * sorted[sorted.len() / 2]));
}
