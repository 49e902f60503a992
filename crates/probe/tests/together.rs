//! Three ranks that do something together: what rank 0 makes of the times of all.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use wiretwin_host::{Meeting, Mesh, SocketOptions, SocketStream, drive, unix};
use wiretwin_measure::{Deed, Group, GroupSamples, Step, Together};
use wiretwin_prog::{Comm, CommError, Rank};
use wiretwin_units::{Bytes, Span};

const LIMIT: Duration = Duration::from_secs(60);
const RANKS: u32 = 3;
/// Iterations that were verified, in place of being timed.
static VERIFIED: AtomicU64 = AtomicU64::new(0);

/// Rank r takes 100 r + 1 ns, and as long more as it computes.
fn by_rank(comm: &mut Mesh<SocketStream>, deed: &Deed, times_ns: &mut [u64]) -> Result<(), CommError> {
    VERIFIED.fetch_add(u64::from(deed.verify), Ordering::Relaxed);
    times_ns.fill(100 * u64::from(comm.rank().0) + 1 + deed.busy.as_ps() / 1000);
    Ok(())
}

fn step(name: &str) -> Step<Together> {
    Step {
        kind: Together::from_name(name).unwrap(),
        bytes: Bytes::new(8),
        messages: 1,
        delay: Span::ZERO,
        warmup: 2,
        min_samples: 5,
        max_samples: 5,
        budget: Span::from_ps(1),
        batch: 1,
    }
}

#[test]
fn an_iteration_counts_with_its_slowest_rank_and_beside_it_with_the_mean() {
    let directory = std::env::temp_dir().join(format!("wiretwin-together-{}", std::process::id()));
    std::fs::create_dir(&directory).unwrap();
    let meet = |rank: u32| {
        let meeting = Meeting { directory: &directory, rank, size: RANKS, limit: LIMIT };
        Mesh::new(Rank(rank), unix(&meeting, &SocketOptions::default(), LIMIT).unwrap(), LIMIT)
    };
    let taken: Vec<GroupSamples> = std::thread::scope(|scope| {
        for rank in 1..RANKS {
            scope.spawn(move || drive(Group::new(by_rank).serve(&mut meet(rank))).unwrap());
        }
        let (mut mesh, mut group) = (meet(0), Group::new(by_rank));
        let names = ["iallreduce_busy", "iallreduce", "iallreduce_busy"];
        let taken = names.map(|name| drive(group.step(&mut mesh, &step(name))).unwrap());
        drive(group.quit(&mut mesh)).unwrap();
        taken.into()
    });
    std::fs::remove_dir_all(&directory).unwrap();
    assert_eq!(taken[1].slowest.values_ns, [201; 5]);
    assert_eq!(taken[1].mean.values_ns, [101; 5]);
    assert_eq!(taken[1].slowest.first, Some(Span::from_ps(201_000)));
    for busy in [&taken[0], &taken[2]] {
        // As long as the plain call takes its slowest rank, whether that was sounded or timed before.
        assert_eq!(busy.slowest.pause, Span::from_ps(201_000));
        assert_eq!(busy.slowest.values_ns, [402; 5]);
    }
    let two_lengths_once = 2 * u64::from(RANKS);
    assert_eq!(VERIFIED.load(Ordering::Relaxed), two_lengths_once);
}
