//! Which receive takes which message: MPI-4.1, section 3.5.

use wiretwin_prog::{Comm, Incoming, Rank, Source, Status, Tag, TagMatch};
use wiretwin_units::Bytes;

async fn send<C: Comm>(comm: &mut C, to: u32, tag: u32, byte: u8) {
    comm.send(Rank(to), Tag(tag), &[byte]).await.unwrap();
}

async fn recv<C: Comm>(comm: &mut C, from: Option<u32>, tag: Option<u32>) -> (u32, u32, u8) {
    let mut buffer = [0];
    let from = from.map_or(Source::Any, |rank| Source::Rank(Rank(rank)));
    let tag = tag.map_or(TagMatch::Any, |tag| TagMatch::Tag(Tag(tag)));
    let status = comm.recv(from, tag, &mut buffer).await.unwrap();
    assert_eq!(status.bytes, Bytes::new(1));
    (status.source.0, status.tag.0, buffer[0])
}

/// Messages that a receive cannot tell apart are taken in the order they were sent.
pub async fn messages_of_one_sender_keep_their_order<C: Comm>(comm: &mut C) {
    if comm.rank() == Rank(0) {
        for number in 0..200 {
            send(comm, 1, 5, number).await;
        }
    } else {
        for number in 0..200 {
            // A wildcard changes nothing about the order.
            let tag = (number % 3 == 0).then_some(5);
            let from = (number % 2 == 0).then_some(0);
            assert_eq!(recv(comm, from, tag).await, (0, 5, number));
        }
    }
}

/// A receive passes over messages that it does not ask for, whatever their order.
pub async fn source_and_tag_choose_among_what_has_come<C: Comm>(comm: &mut C) {
    match comm.rank().0 {
        0 => {
            // The last messages of both: when they are here, so are the others.
            assert_eq!(recv(comm, Some(1), Some(9)).await, (1, 9, 19));
            assert_eq!(recv(comm, Some(2), Some(9)).await, (2, 9, 29));
            assert_eq!(recv(comm, Some(2), Some(1)).await, (2, 1, 21));
            assert_eq!(recv(comm, None, Some(3)).await.1, 3);
            assert_eq!(recv(comm, Some(1), None).await, (1, 1, 11));
            assert_eq!(recv(comm, Some(1), Some(2)).await, (1, 2, 12));
            assert_eq!(recv(comm, Some(2), None).await, (2, 2, 22));
            assert_eq!(recv(comm, None, None).await.1, 3);
        }
        rank => {
            for tag in [1, 2, 3, 9] {
                send(comm, 0, tag, (10 * rank + tag) as u8).await;
            }
        }
    }
}

/// `MPI_ANY_SOURCE` and `MPI_ANY_TAG` take everything, each sender's messages in their order.
pub async fn a_wildcard_takes_from_everyone_in_order<C: Comm>(comm: &mut C) {
    const EACH: u8 = 50;
    let size = comm.size();
    if comm.rank() == Rank(0) {
        let mut next = vec![0; size as usize];
        for _ in 0..u32::from(EACH) * (size - 1) {
            let (source, tag, number) = recv(comm, None, None).await;
            assert_eq!(tag, 100 + source);
            assert_eq!(number, next[source as usize], "of rank {source}");
            next[source as usize] += 1;
        }
        assert!(next[1..].iter().all(|&count| count == EACH), "{next:?}");
    } else {
        let tag = 100 + comm.rank().0;
        for number in 0..EACH {
            send(comm, 0, tag, number).await;
        }
    }
}

/// Of several receives that would take a message the one posted first does.
pub async fn posted_receives_are_served_in_the_order_of_posting<C: Comm>(comm: &mut C) {
    if comm.rank() == Rank(0) {
        // Rank 1 sends when it has been told to, that is after the receives are posted.
        let mut buffers = [[0]; 4];
        let tags = [TagMatch::Any, TagMatch::Tag(Tag(7)), TagMatch::Any, TagMatch::Tag(Tag(7))];
        let mut receives: Vec<Incoming<'_>> = buffers
            .iter_mut()
            .zip(tags)
            .map(|(buffer, tag)| Incoming { from: Source::Rank(Rank(1)), tag, buffer, status: None })
            .collect();
        let go = [wiretwin_prog::Outgoing { to: Rank(1), tag: Tag(1), message: &[] }];
        comm.exchange(&go, &mut receives).await.unwrap();
        drop(receives);
        assert_eq!(buffers, [[1], [2], [3], [4]]);
    } else {
        comm.recv(Source::Rank(Rank(0)), TagMatch::Tag(Tag(1)), &mut []).await.unwrap();
        for (tag, byte) in [(7, 1), (7, 2), (8, 3), (7, 4)] {
            send(comm, 0, tag, byte).await;
        }
    }
}

/// The status tells source, tag and length, and bytes beyond the message stay as they were.
pub async fn a_receive_says_what_it_got<C: Comm>(comm: &mut C) {
    if comm.rank() == Rank(0) {
        comm.send(Rank(1), Tag(4), b"four").await.unwrap();
        comm.send(Rank(1), Tag(0), b"").await.unwrap();
    } else {
        let mut buffer = [b'.'; 10];
        let status = comm.recv(Source::Any, TagMatch::Any, &mut buffer).await.unwrap();
        assert_eq!(status, Status { source: Rank(0), tag: Tag(4), bytes: Bytes::new(4) });
        assert_eq!(&buffer, b"four......");
        let status = comm.recv(Source::Any, TagMatch::Any, &mut buffer).await.unwrap();
        assert_eq!(status, Status { source: Rank(0), tag: Tag(0), bytes: Bytes::new(0) });
        assert_eq!(&buffer, b"four......");
    }
}
