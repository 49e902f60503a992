//! The live worlds: TCP, Unix stream sockets and shared memory between threads of this process,
//! each rank with connections of its own, as separate processes have them.

mod mpi;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use wiretwin_host::{
    Meeting, MeetingError, Mesh, Mvich, MvichOptions, ShmStream, SocketOptions, SocketStream, Stream, Wait,
    drive,
};
use wiretwin_prog::{Comm, CommError, Incoming, Outgoing, Rank, Source, Tag, TagMatch};
use wiretwin_units::Bytes;

const LIMIT: Duration = Duration::from_secs(120);

type Met<S> = Result<Vec<Option<S>>, MeetingError>;

/// A directory of this run alone.
fn directory() -> PathBuf {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("wiretwin-live-{}-{number}", std::process::id()));
    std::fs::create_dir(&path).unwrap();
    path
}

/// Runs `body` on so many ranks over streams.
fn run<S: Stream>(
    ranks: u32,
    limit: Duration,
    meet: impl Fn(&Meeting<'_>) -> Met<S> + Sync,
    body: impl AsyncFn(&mut Mesh<S>) + Sync,
) {
    run_on(ranks, |meeting| Mesh::new(Rank(meeting.rank), meet(meeting).unwrap(), limit), body);
}

/// Runs `body` on so many ranks, each in a thread.
fn run_on<C: Comm>(ranks: u32, join: impl Fn(&Meeting<'_>) -> C + Sync, body: impl AsyncFn(&mut C) + Sync) {
    let path = directory();
    std::thread::scope(|scope| {
        for rank in 0..ranks {
            let (path, join, body) = (&path, &join, &body);
            scope.spawn(move || {
                let meeting = Meeting { directory: path, rank, size: ranks, limit: LIMIT };
                let mut comm = join(&meeting);
                drive(body(&mut comm));
            });
        }
    });
    std::fs::remove_dir_all(path).unwrap();
}

/// What only a live world can do: lose a peer, wait too long.
macro_rules! live_only {
    ($meet:expr) => {
        #[test]
        fn a_rank_that_leaves_is_lost_to_those_who_wait_for_it() {
            super::run(3, LIMIT, |meeting| ($meet)(meeting, LIMIT), super::bodies::one_leaves);
        }

        #[test]
        fn a_rank_that_leaves_is_no_loss_to_those_who_do_not() {
            super::run(3, LIMIT, |meeting| ($meet)(meeting, LIMIT), super::bodies::one_leaves_early);
        }

        #[test]
        fn a_message_that_never_comes_is_a_time_limit() {
            let limit = Duration::from_millis(50);
            super::run(2, limit, |meeting| ($meet)(meeting, limit), super::bodies::nothing_comes);
        }

        #[test]
        fn blocking_sends_head_on_do_not_deadlock() {
            super::run(2, LIMIT, |meeting| ($meet)(meeting, LIMIT), super::bodies::sends_head_on);
        }
    };
}
use live_only;

fn options(wait: Wait) -> SocketOptions {
    SocketOptions { wait, ..SocketOptions::default() }
}

mod bodies {
    use super::*;

    /// Rank 2 sends one message and leaves; the others take it and wait for more.
    pub async fn one_leaves<C: Comm>(comm: &mut C) {
        let mut buffer = [0; 4];
        match comm.rank().0 {
            2 => {
                for rank in [0, 1] {
                    comm.send(Rank(rank), Tag(1), b"last").await.unwrap();
                }
            }
            0 => {
                let last = comm.recv(Source::Any, TagMatch::Any, &mut buffer).await.unwrap();
                assert_eq!((last.source, &buffer), (Rank(2), b"last"), "what it sent before it left counts");
                let lost = comm.recv(Source::Rank(Rank(2)), TagMatch::Any, &mut buffer).await;
                assert_eq!(lost, Err(CommError::PeerLost { rank: Rank(2) }));
                // Rank 1 waits for everyone; when this rank leaves too, all are gone.
            }
            _ => {
                comm.recv(Source::Rank(Rank(2)), TagMatch::Any, &mut buffer).await.unwrap();
                let lost = comm.recv(Source::Any, TagMatch::Any, &mut buffer).await;
                assert_eq!(lost, Err(CommError::PeerLost { rank: Rank(0) }));
            }
        }
    }

    /// Rank 2 leaves at once; the others go on.
    pub async fn one_leaves_early<C: Comm>(comm: &mut C) {
        let rank = comm.rank().0;
        if rank == 2 {
            return;
        }
        let peer = Rank(1 - rank);
        let mut buffer = [0; 8];
        for round in 0..500_u64 {
            let from = if round % 2 == 0 { Source::Any } else { Source::Rank(peer) };
            if rank == 0 {
                comm.send(peer, Tag(1), &round.to_le_bytes()).await.unwrap();
                comm.recv(from, TagMatch::Any, &mut buffer).await.unwrap();
            } else {
                comm.recv(from, TagMatch::Any, &mut buffer).await.unwrap();
                comm.send(peer, Tag(1), &buffer).await.unwrap();
            }
            assert_eq!(u64::from_le_bytes(buffer), round);
        }
    }

    /// Rank 0 waits in vain; rank 1 stays until it has.
    pub async fn nothing_comes<C: Comm>(comm: &mut C) {
        if comm.rank() == Rank(0) {
            let late = comm.recv(Source::Rank(Rank(1)), TagMatch::Any, &mut []).await;
            assert!(matches!(late, Err(CommError::TimedOut { .. })), "{late:?}");
            comm.send(Rank(1), Tag(1), &[]).await.unwrap();
        } else {
            while comm.recv(Source::Rank(Rank(0)), TagMatch::Tag(Tag(1)), &mut []).await.is_err() {}
        }
    }

    /// Everyone sends to everyone at once, short and long, ten times.
    pub async fn all_to_all<C: Comm>(comm: &mut C) {
        let (rank, size) = (comm.rank(), comm.size());
        for round in 0..10 {
            let length = if round % 2 == 0 { 8 } else { 40_000 };
            let sent = vec![rank.0 as u8; length];
            let mut came = vec![vec![0; length]; size as usize];
            let others = (0..size).map(Rank).filter(|other| *other != rank);
            let sends: Vec<Outgoing<'_>> =
                others.map(|to| Outgoing { to, tag: Tag(round), message: &sent }).collect();
            let mut receives: Vec<Incoming<'_>> = (0..size)
                .map(Rank)
                .zip(&mut came)
                .filter(|(other, _)| *other != rank)
                .map(|(other, buffer)| Incoming {
                    from: Source::Rank(other),
                    tag: TagMatch::Tag(Tag(round)),
                    buffer,
                    status: None,
                })
                .collect();
            comm.exchange(&sends, &mut receives).await.unwrap();
            for (other, buffer) in came.iter().enumerate().filter(|(other, _)| *other != rank.0 as usize) {
                assert!(buffer.iter().all(|byte| usize::from(*byte) == other));
            }
        }
    }

    /// Both send 8 MiB before either receives.
    pub async fn sends_head_on<C: Comm>(comm: &mut C) {
        let peer = Rank(1 - comm.rank().0);
        let sent = vec![comm.rank().0 as u8; 8 << 20];
        let mut came = vec![9; 8 << 20];
        comm.send(peer, Tag(1), &sent).await.unwrap();
        comm.recv(Source::Rank(peer), TagMatch::Any, &mut came).await.unwrap();
        assert!(came.iter().all(|&byte| byte == peer.0 as u8));
    }
}

mod tcp {
    use super::*;

    fn run(ranks: u32, body: impl AsyncFn(&mut Mesh<SocketStream>) + Sync) {
        super::run(ranks, LIMIT, |meeting| wiretwin_host::tcp(meeting, &options(Wait::Block), LIMIT), body);
    }

    wiretwin_tests::conformance!(run);
    super::live_only!(|meeting, limit| wiretwin_host::tcp(meeting, &options(Wait::Block), limit));
}

mod unix_yielding {
    use super::*;

    fn run(ranks: u32, body: impl AsyncFn(&mut Mesh<SocketStream>) + Sync) {
        super::run(ranks, LIMIT, |meeting| wiretwin_host::unix(meeting, &options(Wait::Yield), LIMIT), body);
    }

    wiretwin_tests::conformance!(run);
    super::live_only!(|meeting, limit| wiretwin_host::unix(meeting, &options(Wait::Yield), limit));
}

mod shm {
    use super::*;

    fn run(ranks: u32, body: impl AsyncFn(&mut Mesh<ShmStream>) + Sync) {
        super::run(ranks, LIMIT, |meeting| wiretwin_host::shm(meeting, Wait::Yield, LIMIT), body);
    }

    wiretwin_tests::conformance!(run);
    super::live_only!(|meeting, limit| wiretwin_host::shm(meeting, Wait::Yield, limit));
}

/// Over VIs; a blocking send of a long message waits for its receive, so that two head on never end.
mod mvich {
    use wiretwin_msg::mpi::{Flow, Policy};

    use super::*;

    fn on(ranks: u32, policy: Policy, limit: Duration, body: impl AsyncFn(&mut Mvich) + Sync) {
        let options = MvichOptions { policy, wait: Wait::Yield, ..MvichOptions::default() };
        super::run_on(ranks, |meeting| Mvich::meet(meeting, &options, limit).unwrap(), body);
    }

    fn run(ranks: u32, body: impl AsyncFn(&mut Mvich) + Sync) {
        on(ranks, Policy::mvich(), LIMIT, body);
    }

    wiretwin_tests::conformance!(run);

    #[test]
    fn a_rank_that_leaves_is_lost_to_those_who_wait_for_it() {
        run(3, super::bodies::one_leaves);
    }

    #[test]
    fn a_rank_that_leaves_is_no_loss_to_those_who_do_not() {
        run(3, super::bodies::one_leaves_early);
    }

    #[test]
    fn a_message_that_never_comes_is_a_time_limit() {
        on(2, Policy::mvich(), Duration::from_millis(50), super::bodies::nothing_comes);
    }

    /// Between hosts: by datagrams, here of the loopback interface.
    mod datagrams {
        use std::net::Ipv4Addr;

        use wiretwin_host::vipl::Reach;

        use super::*;

        fn on(ranks: u32, limit: Duration, body: impl AsyncFn(&mut Mvich) + Sync) {
            let reach = Reach::Udp(Ipv4Addr::LOCALHOST);
            let options = MvichOptions { wait: Wait::Yield, reach, ..MvichOptions::default() };
            super::super::run_on(ranks, |meeting| Mvich::meet(meeting, &options, limit).unwrap(), body);
        }

        fn run(ranks: u32, body: impl AsyncFn(&mut Mvich) + Sync) {
            on(ranks, LIMIT, body);
        }

        wiretwin_tests::conformance!(run);

        #[test]
        fn a_rank_that_leaves_is_lost_to_those_who_wait_for_it() {
            run(3, super::super::bodies::one_leaves);
        }

        #[test]
        fn a_rank_that_leaves_is_no_loss_to_those_who_do_not() {
            run(3, super::super::bodies::one_leaves_early);
        }
    }

    /// As few buffers as there can be, small ones, and one registration.
    mod scarce {
        use super::*;

        fn run(ranks: u32, body: impl AsyncFn(&mut Mvich) + Sync) {
            let flow = Flow { buffers: 5, reserve: 1, return_after: 2, buffer: Bytes::new(64) };
            let (rendezvous_from, registrations) = (Some(Bytes::new(48)), Some(1));
            super::on(
                ranks,
                Policy { flow: Some(flow), rendezvous_from, registrations, ..Policy::mvich() },
                LIMIT,
                body,
            );
        }

        wiretwin_tests::conformance!(run);
    }

    #[test]
    fn sixteen_ranks_on_few_cores_do_not_stall() {
        run(16, super::bodies::all_to_all);
    }
}
