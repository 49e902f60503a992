//! Groups of ranks, where an interface has them; elsewhere each call is refused by name.

use wiretwin_prog::{Comm, CommError, NO_GROUPS, Rank, Source, Tag, TagMatch};

use crate::message;

/// Tells a rank that something is so.
async fn tell<C: Comm>(comm: &mut C, to: u32) {
    comm.send(Rank(to), Tag(9), &[1]).await.unwrap();
}

/// Waits until a rank says that something is so.
async fn hear<C: Comm>(comm: &mut C, from: u32) {
    comm.recv(Source::Rank(Rank(from)), TagMatch::Tag(Tag(9)), &mut [0]).await.unwrap();
}

/// Who joins gets the lowest instance that is free; who leaves frees it; a group of nobody is none.
pub async fn members_of_a_group_are_numbered<C: Comm>(comm: &mut C) {
    let (rank, size) = (comm.rank().0, comm.size());
    let mine = comm.join_group("all").await.unwrap();
    comm.group_barrier("all", size).await.unwrap();
    assert_eq!(comm.group_size("all").await, Ok(size));
    if rank > 0 {
        comm.send(Rank(0), Tag(1), &mine.to_le_bytes()).await.unwrap();
    } else {
        let mut instances = vec![mine];
        for other in 1..size {
            let mut octets = [0; 4];
            comm.recv(Source::Rank(Rank(other)), TagMatch::Tag(Tag(1)), &mut octets).await.unwrap();
            instances.push(u32::from_le_bytes(octets));
        }
        instances.sort_unstable();
        assert!(instances.into_iter().eq(0..size), "each has one of its own");
    }
    // All have asked how many there are before one leaves.
    comm.group_barrier("all", size).await.unwrap();
    if rank == 1 {
        comm.leave_group("all").await.unwrap();
        for other in (0..size).filter(|&other| other != 1) {
            tell(comm, other).await;
        }
        for other in (0..size).filter(|&other| other != 1) {
            hear(comm, other).await;
        }
        assert_eq!(comm.join_group("all").await, Ok(mine), "its own is the lowest that is free");
    } else {
        hear(comm, 1).await;
        assert_eq!(comm.group_size("all").await, Ok(size - 1));
        tell(comm, 1).await;
    }
    comm.group_barrier("all", size).await.unwrap();
    // A group of another name is another group.
    comm.join_group("more").await.unwrap();
    comm.leave_group("all").await.unwrap();
    comm.group_barrier("more", size).await.unwrap();
    comm.group_size("all").await.unwrap_err();
}

/// Nobody goes on before the last of so many has come.
pub async fn a_barrier_waits_for_the_last<C: Comm>(comm: &mut C) {
    let (rank, size) = (comm.rank().0, comm.size());
    comm.join_group("g").await.unwrap();
    for round in 0..5 {
        let last = round % size;
        if rank == last {
            // What the others have sent before they came is here when this one has.
            for from in (0..size).filter(|&from| from != last) {
                hear(comm, from).await;
            }
            for to in (0..size).filter(|&to| to != last) {
                comm.send(Rank(to), Tag(round), &[round as u8]).await.unwrap();
            }
        } else {
            tell(comm, last).await;
        }
        comm.group_barrier("g", size).await.unwrap();
        if rank != last {
            let mut octet = [99];
            comm.recv(Source::Rank(Rank(last)), TagMatch::Tag(Tag(round)), &mut octet).await.unwrap();
            assert_eq!(octet, [round as u8]);
        }
    }
}

/// One message to a group goes to each of its members once and not to its sender, who may be outside.
pub async fn a_message_to_a_group_goes_to_its_members<C: Comm>(comm: &mut C) {
    let (rank, size) = (comm.rank().0, comm.size());
    let is_member = rank % 2 == 1;
    if is_member {
        comm.join_group("odd").await.unwrap();
        comm.group_barrier("odd", size / 2).await.unwrap();
        if rank == 1 {
            for other in (0..size).filter(|other| other % 2 == 0) {
                tell(comm, other).await;
            }
        }
    } else {
        hear(comm, 1).await;
    }
    for root in 0..size {
        for (tag, length) in [(1, 0), (2, 1), (3, 20_000), (4, 300_000)] {
            let sent = message(u64::from(root * 8 + tag), length);
            if rank == root {
                comm.group_cast("odd", Tag(root * 8 + tag), &sent).await.unwrap();
            } else if is_member {
                let mut buffer = vec![0; length];
                let (from, tag) = (Source::Any, TagMatch::Tag(Tag(root * 8 + tag)));
                let status = comm.recv(from, tag, &mut buffer).await.unwrap();
                assert_eq!((status.source, status.bytes.get()), (Rank(root), length as u64));
                assert!(buffer == sent);
            }
        }
    }
    // All have all; nothing else has come, or this would be taken for it.
    let (left, right) = (Rank((rank + size - 1) % size), Rank((rank + 1) % size));
    comm.send(right, Tag(99), &[7]).await.unwrap();
    let status = comm.recv(Source::Any, TagMatch::Any, &mut [0]).await.unwrap();
    assert_eq!((status.source, status.tag), (left, Tag(99)));
}

/// What cannot be is refused with the interface's own error, and what comes after it is served.
pub async fn groups_that_are_misused_say_so<C: Comm>(comm: &mut C) {
    let refused = |result: Result<u32, CommError>, why: &str| match result {
        Err(CommError::Transport(said)) if said.contains(why) => {}
        other => panic!("{other:?} where {why:?} was to be said"),
    };
    refused(comm.group_size("none").await, "no such group");
    refused(comm.leave_group("none").await.map(|()| 0), "no such group");
    refused(comm.group_barrier("none", 1).await.map(|()| 0), "no such group");
    refused(comm.group_cast("none", Tag(1), &[1]).await.map(|()| 0), "no such group");
    refused(comm.join_group("").await, "null group name");
    // A group of this rank's own, and one of rank 0's.
    let mine = format!("of {}", comm.rank().0);
    assert_eq!(comm.join_group(&mine).await, Ok(0));
    refused(comm.join_group(&mine).await, "already in group");
    refused(comm.group_cast(&mine, Tag(1), &[1]).await.map(|()| 0), "no such instance");
    refused(comm.group_barrier(&mine, 0).await.map(|()| 0), "parameter mismatch");
    comm.group_barrier(&mine, 1).await.unwrap();
    if comm.rank() == Rank(0) {
        tell(comm, 1).await;
        hear(comm, 1).await;
    } else {
        hear(comm, 0).await;
        refused(comm.leave_group("of 0").await.map(|()| 0), "not in group");
        refused(comm.group_barrier("of 0", 2).await.map(|()| 0), "not in group");
        tell(comm, 0).await;
    }
    comm.leave_group(&mine).await.unwrap();
    refused(comm.leave_group(&mine).await.map(|()| 0), "no such group");
}

/// An interface without groups has none of their calls, and goes on.
pub async fn groups_are_refused_by_name<C: Comm>(comm: &mut C) {
    let refused = CommError::Unsupported(NO_GROUPS);
    assert_eq!(comm.join_group("g").await, Err(refused.clone()));
    assert_eq!(comm.leave_group("g").await, Err(refused.clone()));
    assert_eq!(comm.group_size("g").await, Err(refused.clone()));
    assert_eq!(comm.group_barrier("g", 1).await, Err(refused.clone()));
    assert_eq!(comm.group_cast("g", Tag(1), &[1]).await, Err(refused));
    let other = 1 - comm.rank().0;
    if other == 1 {
        tell(comm, other).await;
    } else {
        hear(comm, other).await;
    }
}
