//! More than one message at a time, among more than two ranks.

use wiretwin_prog::{Comm, CommError, Incoming, Outgoing, Rank, Source, Tag, TagMatch};

use crate::message;

/// A rank may send to itself, if it receives at the same time or the message waits for it.
pub async fn a_message_to_oneself_arrives<C: Comm>(comm: &mut C) {
    let oneself = comm.rank();
    for length in [0, 3, 1 << 20] {
        let sent = message(7, length);
        let mut buffer = vec![0; length];
        let mut receives =
            [Incoming { from: Source::Any, tag: TagMatch::Any, buffer: &mut buffer, status: None }];
        let sends = [Outgoing { to: oneself, tag: Tag(3), message: &sent }];
        comm.exchange(&sends, &mut receives).await.unwrap();
        let status = receives[0].status.expect("an exchange that is over fills in every status");
        assert_eq!((status.source, status.tag, status.bytes.get()), (oneself, Tag(3), length as u64));
        assert!(buffer == sent);
    }
}

/// One message goes to several, each once and not to its sender, whoever is named how often.
pub async fn one_message_goes_to_several<C: Comm>(comm: &mut C) {
    let (rank, size) = (comm.rank(), comm.size());
    let odd: Vec<Rank> = (0..size).filter(|rank| rank % 2 == 1).map(Rank).collect();
    let all: Vec<Rank> = (0..size).rev().chain(0..size).map(Rank).collect();
    for root in (0..size).map(Rank) {
        for (tag, to) in [(1, &all), (2, &odd), (3, &all), (4, &Vec::new())] {
            let sent = message(u64::from(tag), 20_000 * tag as usize);
            if rank == root {
                comm.mcast(to, Tag(tag), &sent).await.unwrap();
            } else if to.contains(&rank) {
                let mut buffer = vec![0; sent.len()];
                let (from, tag) = (Source::Rank(root), TagMatch::Tag(Tag(tag)));
                let status = comm.recv(from, tag, &mut buffer).await.unwrap();
                assert_eq!((status.source, status.bytes.get()), (root, sent.len() as u64));
                assert!(buffer == sent);
            }
        }
    }
    let error = comm.mcast(&[Rank(size)], Tag(1), &[1]).await.unwrap_err();
    assert_eq!(error, CommError::NoSuchRank { rank: Rank(size), size });
}

/// Everyone sends to the right and receives from the left, at once, as often as there are ranks.
pub async fn a_ring_shifts<C: Comm>(comm: &mut C) {
    let (rank, size) = (comm.rank().0, comm.size());
    let (left, right) = (Rank((rank + size - 1) % size), Rank((rank + 1) % size));
    for length in [8, 100_000] {
        let mut held = message(u64::from(rank), length);
        for step in 0..size {
            let mut came = vec![0; length];
            let mut receives = [Incoming {
                from: Source::Rank(left),
                tag: TagMatch::Tag(Tag(step)),
                buffer: &mut came,
                status: None,
            }];
            comm.exchange(&[Outgoing { to: right, tag: Tag(step), message: &held }], &mut receives)
                .await
                .unwrap();
            held = came;
        }
        assert!(held == message(u64::from(rank), length), "after a full turn everyone has its own again");
    }
}

/// A small generator, the same on every rank.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }
}

/// Several hundred messages between all pairs, of many lengths, received in another order than they
/// were sent, in batches.
pub async fn random_traffic_arrives_unchanged<C: Comm>(comm: &mut C) {
    let (rank, size) = (comm.rank(), comm.size());
    for seed in 1..=8 {
        let mut numbers = Numbers(seed);
        // Every rank knows the whole plan: from, to, tag, length.
        let plan: Vec<(Rank, Rank, Tag, usize)> = (0..120)
            .map(|_| {
                let (from, to) =
                    (Rank(numbers.next(size.into()) as u32), Rank(numbers.next(size.into()) as u32));
                let length = match numbers.next(10) {
                    0 => 0,
                    1..=5 => numbers.next(100) as usize,
                    6..=8 => numbers.next(10_000) as usize,
                    _ => numbers.next(300_000) as usize,
                };
                (from, to, Tag(numbers.next(3) as u32), length)
            })
            .collect();
        let messages: Vec<Vec<u8>> = plan
            .iter()
            .enumerate()
            .map(
                |(number, &(from, _, _, length))| {
                    if from == rank { message(number as u64, length) } else { Vec::new() }
                },
            )
            .collect();
        let sends: Vec<Outgoing<'_>> = plan
            .iter()
            .zip(&messages)
            .filter(|((from, ..), _)| *from == rank)
            .map(|(&(_, to, tag, _), message)| Outgoing { to, tag, message })
            .collect();
        // Receives in the order of a shuffle that keeps the order of what cannot be told apart.
        let mut mine: Vec<usize> = (0..plan.len()).filter(|&number| plan[number].1 == rank).collect();
        mine.sort_by_key(|&number| (plan[number].2, std::cmp::Reverse(plan[number].0), number));
        let mut buffers: Vec<Vec<u8>> = mine.iter().map(|&number| vec![0; plan[number].3]).collect();
        let mut receives: Vec<Incoming<'_>> = mine
            .iter()
            .zip(&mut buffers)
            .map(|(&number, buffer)| Incoming {
                from: Source::Rank(plan[number].0),
                tag: TagMatch::Tag(plan[number].2),
                buffer,
                status: None,
            })
            .collect();
        comm.exchange(&sends, &mut receives).await.unwrap();
        for (&number, buffer) in mine.iter().zip(&buffers) {
            assert!(*buffer == message(number as u64, plan[number].3), "message {number} of seed {seed}");
        }
    }
}
