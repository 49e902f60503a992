//! What is refused, and that the world goes on afterwards.

use wiretwin_prog::{Comm, CommError, Incoming, Outgoing, Rank, Source, Tag, TagMatch};
use wiretwin_units::Bytes;

use crate::message;

/// A message longer than the buffer fills it, is an error with both lengths, and harms no other.
pub async fn a_message_too_long_is_truncated_and_the_next_is_whole<C: Comm>(comm: &mut C) {
    const LENGTHS: [usize; 5] = [1, 10, 57, 5000, 3 << 20];
    let peer = Rank(1 - comm.rank().0);
    // With `late` the messages are there before they are asked for.
    for late in [false, true] {
        if comm.rank() == Rank(0) {
            let long: Vec<Vec<u8>> = LENGTHS
                .into_iter()
                .enumerate()
                .map(|(number, length)| message(number as u64, length))
                .collect();
            let next = message(100, 33);
            let mut sends: Vec<Outgoing<'_>> = long
                .iter()
                .flat_map(|long| {
                    [
                        Outgoing { to: peer, tag: Tag(1), message: long },
                        Outgoing { to: peer, tag: Tag(2), message: &next },
                    ]
                })
                .collect();
            sends.push(Outgoing { to: peer, tag: Tag(3), message: &[] });
            if late {
                // All at once: a send that waited for its receive would wait for ever.
                comm.exchange(&sends, &mut []).await.unwrap();
            } else {
                for send in sends {
                    if send.tag == Tag(1) {
                        comm.recv(Source::Rank(peer), TagMatch::Tag(Tag(9)), &mut []).await.unwrap();
                    }
                    comm.send(send.to, send.tag, send.message).await.unwrap();
                }
            }
        } else {
            if late {
                comm.recv(Source::Rank(peer), TagMatch::Tag(Tag(3)), &mut []).await.unwrap();
            }
            for (number, length) in LENGTHS.into_iter().enumerate() {
                let room = length.div_ceil(2) - usize::from(length == 1);
                let mut buffer = vec![0; room];
                let mut receives = [Incoming {
                    from: Source::Any,
                    tag: TagMatch::Tag(Tag(1)),
                    buffer: &mut buffer,
                    status: None,
                }];
                let go = [Outgoing { to: peer, tag: Tag(9), message: &[] }];
                let sends: &[Outgoing<'_>] = if late { &[] } else { &go };
                assert_eq!(
                    comm.exchange(sends, &mut receives).await,
                    Err(CommError::Truncated {
                        message: Bytes::new(length as u64),
                        buffer: Bytes::new(room as u64)
                    })
                );
                assert!(buffer == message(number as u64, length)[..room], "the beginning of it is there");
                let mut next = [0; 33];
                comm.recv(Source::Rank(peer), TagMatch::Tag(Tag(2)), &mut next).await.unwrap();
                assert!(next[..] == message(100, 33));
            }
            if !late {
                comm.recv(Source::Rank(peer), TagMatch::Tag(Tag(3)), &mut []).await.unwrap();
            }
        }
    }
}

/// A rank outside the communicator is refused by name in every call, and nothing is sent or taken.
pub async fn a_rank_that_is_not_there_is_refused<C: Comm>(comm: &mut C) {
    let size = comm.size();
    for rank in [Rank(size), Rank(u32::MAX)] {
        let refusal = CommError::NoSuchRank { rank, size };
        assert_eq!(comm.send(rank, Tag(1), &[1]).await, Err(refusal.clone()));
        let mut buffer = [0];
        assert_eq!(comm.recv(Source::Rank(rank), TagMatch::Any, &mut buffer).await, Err(refusal.clone()));
        let next = Rank((comm.rank().0 + 1) % size);
        let sends = [
            Outgoing { to: next, tag: Tag(1), message: &[1] },
            Outgoing { to: rank, tag: Tag(1), message: &[1] },
        ];
        assert_eq!(comm.exchange(&sends, &mut []).await, Err(refusal));
    }
    // Had anything been sent above, this would take it.
    let next = Rank((comm.rank().0 + 1) % size);
    comm.send(next, Tag(1), &[2]).await.unwrap();
    let mut buffer = [0];
    comm.recv(Source::Any, TagMatch::Any, &mut buffer).await.unwrap();
    assert_eq!(buffer, [2]);
}
