//! There and back.

use wiretwin_prog::{Comm, Incoming, Outgoing, Rank, Source, Tag, TagMatch};

use crate::message;

/// Lengths around everything that a layer may treat apart, up to 16 MiB.
const LENGTHS: [usize; 20] = [
    0,
    1,
    7,
    8,
    39,
    40,
    41,
    56,
    57,
    4079,
    4080,
    4081,
    4096,
    8192,
    65_535,
    65_536,
    65_537,
    262_144,
    1 << 20,
    16 << 20,
];

/// A message of any length comes back as it went.
pub async fn every_size_comes_back_unchanged<C: Comm>(comm: &mut C) {
    come_back(comm, usize::MAX).await;
}

/// The same where a message is one datagram: up to 8 KiB.
pub async fn every_size_of_a_datagram_comes_back_unchanged<C: Comm>(comm: &mut C) {
    come_back(comm, 8192).await;
}

async fn come_back<C: Comm>(comm: &mut C, most: usize) {
    let peer = Rank(1 - comm.rank().0);
    for (number, length) in LENGTHS.into_iter().enumerate().filter(|&(_, length)| length <= most) {
        let (there, back) = (Tag(number as u32), Tag(20 + number as u32));
        let mut buffer = vec![0xee; length];
        if comm.rank() == Rank(0) {
            let sent = message(number as u64, length);
            comm.send(peer, there, &sent).await.unwrap();
            let status = comm.recv(Source::Rank(peer), TagMatch::Tag(back), &mut buffer).await.unwrap();
            assert_eq!((status.source, status.tag, status.bytes.get()), (peer, back, length as u64));
            assert!(buffer == sent, "{length} bytes came back changed");
        } else {
            comm.recv(Source::Rank(peer), TagMatch::Tag(there), &mut buffer).await.unwrap();
            comm.send(peer, back, &buffer).await.unwrap();
        }
    }
}

/// Two ranks send to each other at the same time, more than any buffer between them holds.
pub async fn exchange_meets_head_on<C: Comm>(comm: &mut C) {
    let (rank, peer) = (comm.rank(), Rank(1 - comm.rank().0));
    for length in [1, 5000, 8 << 20] {
        let (first, second) =
            (message(u64::from(rank.0), length), message(10 + u64::from(rank.0), length / 2));
        let sends = [
            Outgoing { to: peer, tag: Tag(1), message: &first },
            Outgoing { to: peer, tag: Tag(2), message: &second },
        ];
        let (mut whole, mut half) = (vec![0; length], vec![0; length / 2]);
        let mut receives = [
            Incoming {
                from: Source::Rank(peer),
                tag: TagMatch::Tag(Tag(1)),
                buffer: &mut whole,
                status: None,
            },
            Incoming {
                from: Source::Rank(peer),
                tag: TagMatch::Tag(Tag(2)),
                buffer: &mut half,
                status: None,
            },
        ];
        comm.exchange(&sends, &mut receives).await.unwrap();
        for (receive, tag, bytes) in [(&receives[0], 1, length), (&receives[1], 2, length / 2)] {
            let status = receive.status.expect("an exchange that is over fills in every status");
            assert_eq!((status.source, status.tag, status.bytes.get()), (peer, Tag(tag), bytes as u64));
        }
        assert!(whole == message(u64::from(peer.0), length));
        assert!(half == message(10 + u64::from(peer.0), length / 2));
    }
}
