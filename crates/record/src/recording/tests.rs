use std::io;
use std::path::Path;

use super::*;

/// What a script was told, in words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Told(Vec<String>);

impl Script for Told {
    fn compute(&mut self, ps: u64) {
        self.0.push(format!("compute {ps}"));
    }
    fn enter(&mut self, call: &str) {
        self.0.push(call.to_string());
    }
    fn exit(&mut self) {}
    fn send(&mut self, message: Message, mode: Mode, request: u64) {
        let Message { context, to, tag, bytes } = message;
        self.0.push(format!("{request}: {mode:?} {bytes} to {to} tag {tag} in {context}"));
    }
    fn recv(&mut self, receive: Receive, request: u64) {
        let Receive { context, source, tag, capacity } = receive;
        self.0.push(format!("{request}: {capacity} from {source:?} tag {tag:?} in {context}"));
    }
    fn wait(&mut self, requests: &[u64]) {
        self.0.push(format!("wait {requests:?}"));
    }
    fn begin(&mut self, rounds: &[Vec<Transfer>]) {
        for (nth, round) in rounds.iter().enumerate() {
            self.0.extend(round.iter().map(|transfer| match *transfer {
                Transfer::Send(Message { context, to, tag, bytes }) => {
                    format!("round {nth}: {bytes} to {to} tag {tag} in {context}")
                }
                Transfer::Recv(Receive { context, source, tag, capacity }) => {
                    format!("round {nth}: {capacity} from {source:?} tag {tag:?} in {context}")
                }
            }));
        }
    }
    fn wait_background(&mut self, number: u64) {
        self.0.push(format!("wait for background {number}"));
    }
    fn finish(&mut self) {}
}

type Raw = (u32, i32, i32, i32, u64, u64, u64);

/// The file of a rank of two.
fn file(rank: u32, records: &[Raw]) -> Vec<u8> {
    let mut raw = b"wttrace1".to_vec();
    raw.extend([rank, 2, 0, 0].iter().flat_map(|one| one.to_le_bytes()));
    for (kind, peer, tag, context, bytes, request, compute_ns) in records {
        raw.extend(kind.to_le_bytes());
        raw.extend([peer, tag, context].iter().flat_map(|one| one.to_le_bytes()));
        raw.extend([*bytes, *request, *compute_ns, 7].iter().flat_map(|one| one.to_le_bytes()));
    }
    raw
}

/// The two ranks of a communicator 3, which both used first.
const MEMBERS: [Raw; 2] = [(10, 0, 0, 3, 0, 0, 0), (10, 1, 1, 3, 0, 0, 0)];
const END: Raw = (12, 0, 0, 0, 0, 0, 0);

fn told(first: &[Raw], second: &[Raw]) -> Result<Vec<Told>, Rejected> {
    let files = [first, second].map(|own| [&MEMBERS[..], own, &[END]].concat());
    let load = |path: &Path| {
        let rank = path.file_name().and_then(|name| name.to_str()?.parse::<usize>().ok());
        rank.map(|rank| file(rank as u32, &files[rank])).ok_or_else(|| io::Error::other("no such file"))
    };
    let mut scripts = vec![Told::default(); 2];
    read_from(Path::new("run"), &load, &mut scripts, 2.0).map(|()| scripts)
}

#[test]
fn a_receive_takes_what_it_took_and_a_wait_what_it_had() {
    let sends = [(1, 1, 5, 3, 100, 1, 3)];
    // Any source and tag, and what it took.
    let receives = [(4, -1, -1, 3, 400, 9, 0), (5, 0, 5, 3, 100, 9, 0), (6, 0, 0, 0, 0, 0, 0)];
    let [first, second] = <[Told; 2]>::try_from(told(&sends, &receives).unwrap()).unwrap();
    assert_eq!(
        first.0,
        ["compute 6000", "MPI_Send", "1: Synchronous 100 to 1 tag 5 in 0", "wait [1]", "MPI_Finalize"]
    );
    assert_eq!(
        second.0,
        ["MPI_Irecv", "1: 400 from Some(0) tag Some(5) in 0", "MPI_Wait", "wait [1]", "MPI_Finalize"]
    );
}

#[test]
fn a_collective_is_the_messages_of_its_algorithm() {
    let bcast = [(8, 1, 1, 3, 64, 8, 0)];
    let [first, second] = <[Told; 2]>::try_from(told(&bcast, &bcast).unwrap()).unwrap();
    assert_eq!(first.0[..3], ["MPI_Bcast", "1: 64 from Some(1) tag Some(0) in 1", "wait [1]"]);
    assert_eq!(second.0[..3], ["MPI_Bcast", "1: Standard 64 to 0 tag 0 in 1", "wait [1]"]);
}

#[test]
fn a_collective_that_does_not_block_is_waited_for_where_it_was_complete() {
    let began = 1 << 63;
    // A barrier and a broadcast, of which the second is completed before a blocking one. The first never is.
    let calls = [
        (13, 0, 0, 3, 0, 1, 0),
        (13, 1, 1, 3, 64, 1, 5),
        (5, 0, 0, 0, 0, began + 1, 0),
        (6, 0, 0, 0, 0, 0, 0),
        (8, 1, 1, 3, 32, 1, 0),
    ];
    let [first, _] = <[Told; 2]>::try_from(told(&calls, &calls).unwrap()).unwrap();
    assert_eq!(
        first.0,
        [
            "MPI_Ibarrier",
            "round 0: 0 from Some(1) tag Some(0) in 1",
            "round 0: 0 to 1 tag 0 in 1",
            "compute 10000",
            "MPI_Ibcast",
            "round 0: 64 from Some(1) tag Some(1) in 1",
            "MPI_Wait",
            "wait for background 1",
            "MPI_Bcast",
            "1: 32 from Some(1) tag Some(2) in 1",
            "wait [1]",
            "MPI_Finalize",
            "wait for background 0",
        ]
    );
    let found = told(&calls[1..], &calls[1..]).unwrap_err();
    assert_eq!(found.value.as_deref(), Some("collective 1 completed"));
}

#[test]
fn what_ranks_give_by_count_goes_to_the_root() {
    let counts = [(9, 0, 0, 3, 10, 0, 0), (9, 1, 0, 3, 20, 0, 0)];
    let gather = (8, 0, 4, 3, 0, 1, 0);
    let root = [&counts[..], &[gather]].concat();
    let [first, second] = <[Told; 2]>::try_from(told(&root, &[gather]).unwrap()).unwrap();
    assert_eq!(first.0[1], "1: 20 from Some(1) tag Some(0) in 1");
    assert_eq!(second.0[1], "1: Standard 20 to 0 tag 0 in 1");
}

#[test]
fn what_cannot_be_is_rejected_at_its_record() {
    let wrong: [(&[Raw], &str); 6] = [
        (&[(77, 0, 0, 3, 0, 0, 0)], "kind 77"),
        (&[(1, 2, 0, 3, 0, 0, 0)], "rank 2 of its communicator"),
        (&[(1, 1, 0, 4, 0, 0, 0)], "communicator 4 of a Send"),
        (&[(5, 1, 0, 3, 0, 8, 0)], "request 8 completed"),
        (&[(8, 0, 99, 3, 0, 0, 0)], "collective 99"),
        (&[(10, 9, 2, 3, 0, 0, 0)], "member 2 is rank 9"),
    ];
    for (records, value) in wrong {
        let found = told(records, &[]).unwrap_err();
        assert_eq!((found.value.as_deref(), found.key.as_deref()), (Some(value), Some("record 2")));
    }
    let found = told(&[(8, 0, 1, 3, 8, 1, 0)], &[(8, 1, 1, 3, 8, 1, 0)]).unwrap_err();
    assert_eq!(
        found.reason.as_deref(),
        Some("rank 1 calls bcast of root 1 where another calls bcast of root 0")
    );
    // "MPI_Put" in the place of the last numbers.
    let found = told(&[(11, 0, 0, 0, u64::from_le_bytes(*b"MPI_Put\0"), 0, 0)], &[]).unwrap_err();
    assert_eq!(found.reason.as_deref(), Some("uses MPI_Put, whose messages are not recorded"));
}
