use std::io;

use proptest::prelude::*;
use wiretwin_msg::protocol::Mode;

use super::*;
use crate::recording::read_from;
use crate::script::{Message, Receive, Transfer};

/// What a script was told, in words, without its computation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Told(Vec<String>);

impl Script for Told {
    fn compute(&mut self, _: u64) {}
    fn enter(&mut self, call: &str) {
        self.0.push(call.to_string());
    }
    fn exit(&mut self) {}
    fn send(&mut self, message: Message, mode: Mode, _: u64) {
        let Message { context, to, tag, bytes } = message;
        self.0.push(format!("{mode:?} {bytes} to {to} tag {tag} in {context}"));
    }
    fn recv(&mut self, receive: Receive, _: u64) {
        let Receive { context, source, tag, capacity } = receive;
        self.0.push(format!("{capacity} from {source:?} tag {tag:?} in {context}"));
    }
    fn wait(&mut self, requests: &[u64]) {
        self.0.push(format!("wait {}", requests.len()));
    }
    fn begin(&mut self, rounds: &[Vec<Transfer>]) {
        self.0.push(format!("{} rounds", rounds.len()));
    }
    fn wait_background(&mut self, number: u64) {
        self.0.push(format!("wait for background {number}"));
    }
    fn finish(&mut self) {}
}

/// A rank that writes down what it does.
struct Writes {
    rank: i32,
    ranks: i32,
    raw: Vec<u8>,
    number: u64,
    open: Vec<(u64, i32, i32, u64)>,
}

const NOBODY: i32 = -1;

impl Writes {
    fn new(rank: u32, ranks: u32) -> Self {
        let raw = records::header(rank, ranks);
        let mut own = Self { rank: rank as i32, ranks: ranks as i32, raw, number: 0, open: vec![] };
        for member in 0..own.ranks {
            own.write(Kind::Member, [member, member, 0], [0, 0]);
        }
        own
    }

    fn write(&mut self, kind: Kind, names: [i32; 3], amounts: [u64; 2]) {
        records::write(&mut self.raw, kind, names, amounts, (100, 7));
    }

    /// Begins a message, which is recorded unless it is for nobody.
    fn begin(&mut self, kind: Kind, peer: i32, tag: i32, bytes: u64) {
        if peer == NOBODY {
            return self.write(Kind::Wait, [0, 0, 0], [0, 0]);
        }
        self.number += 4;
        self.open.push((self.number, peer, tag, bytes));
        self.write(kind, [peer, tag, 0], [bytes, self.number]);
    }

    fn wait(&mut self) {
        for (request, peer, tag, bytes) in std::mem::take(&mut self.open) {
            self.write(Kind::Done, [peer, tag, 0], [bytes, request]);
        }
        self.write(Kind::Wait, [0, 0, 0], [0, 0]);
    }

    /// The rank `step` places along a row of `length`, in which this rank is at `at`; places are `by` ranks apart.
    fn near(&self, at: i32, length: i32, step: i32, by: i32) -> i32 {
        if (0..length).contains(&(at + step)) { self.rank + step * by } else { NOBODY }
    }
}

fn ring(own: &mut Writes) {
    let (right, left) = ((own.rank + 1) % own.ranks, (own.rank + own.ranks - 1) % own.ranks);
    for _ in 0..2 {
        own.begin(Kind::Irecv, left, 3, 800);
        own.begin(Kind::Isend, right, 3, 800);
        own.wait();
    }
    own.write(Kind::Collective, [0, 3, 0], [8, 8]);
}

fn chain(own: &mut Writes) {
    for step in [-1, 1] {
        let peer = own.near(own.rank, own.ranks, step, 1);
        own.begin(Kind::Irecv, peer, 1, 4000);
        own.begin(Kind::Isend, peer, 1, 4000);
    }
    own.wait();
    if own.rank > 0 {
        own.write(Kind::Send, [0, 9, 0], [16, 0]);
    } else {
        (1..own.ranks).for_each(|from| own.write(Kind::Recv, [from, 9, 0], [16, 0]));
    }
    own.write(Kind::Collective, [own.ranks - 1, 1, 0], [1000, 1]);
}

fn grid(own: &mut Writes) {
    let width = (1..).find(|side| side * side == own.ranks).unwrap_or(1);
    for _ in 0..3 {
        for step in [-1, 1] {
            for (at, by) in [(own.rank / width, width), (own.rank % width, 1)] {
                let peer = own.near(at, width, step, by);
                own.begin(Kind::Irecv, peer, 5, 512);
                own.begin(Kind::Isend, peer, 5, 512);
            }
        }
        own.wait();
    }
}

fn everyone(own: &mut Writes) {
    let (rank, ranks) = (own.rank, own.ranks);
    let up = |step| (rank + step) % ranks;
    (1..ranks).for_each(|step| own.begin(Kind::Irecv, up(ranks - step), 2, 64));
    (1..ranks).for_each(|step| own.begin(Kind::Isend, up(step), 2, 64));
    own.wait();
    (0..ranks).for_each(|one| own.write(Kind::Count, [one, 0, 0], [24, 24]));
    own.write(Kind::Collective, [0, 7, 0], [0, 1]);
}

/// Collectives that do not block and messages of a ring, completed together but for the first, which is so before.
fn begun(own: &mut Writes) {
    let (right, left) = ((own.rank + 1) % own.ranks, (own.rank + own.ranks - 1) % own.ranks);
    for round in 0..2 {
        own.write(Kind::Icollective, [0, 0, 0], [0, 1]);
        own.begin(Kind::Irecv, left, 3, 800);
        own.write(Kind::Icollective, [own.ranks - 1, 1, 0], [64, 1]);
        own.begin(Kind::Isend, right, 3, 800);
        own.write(Kind::Done, [0, 0, 0], [0, TOGETHER + 2 * round]);
        own.write(Kind::Wait, [0, 0, 0], [0, 0]);
        (0..own.ranks).for_each(|one| own.write(Kind::Count, [one, 0, 0], [24, 24]));
        own.write(Kind::Collective, [0, 7, 0], [0, 1]);
        own.write(Kind::Done, [0, 0, 0], [0, TOGETHER + 2 * round + 1]);
        own.wait();
    }
}

fn halves(own: &mut Writes) {
    let other = own.rank ^ 1;
    own.begin(Kind::Irecv, other, 1, 8);
    own.begin(Kind::Isend, other, 1, 8);
    own.wait();
}

fn uneven(own: &mut Writes) {
    let (right, left) = ((own.rank + 1) % own.ranks, (own.rank + own.ranks - 1) % own.ranks);
    own.begin(Kind::Irecv, left, 3, left as u64);
    own.begin(Kind::Isend, right, 3, own.rank as u64);
    own.wait();
}

fn one_way(own: &mut Writes) {
    if own.rank < own.ranks - 1 {
        own.write(Kind::Send, [own.rank + 1, 3, 0], [8, 0]);
    }
}

type Does = fn(&mut Writes);

fn files(does: Does, ranks: u32) -> impl Fn(&Path) -> io::Result<Vec<u8>> {
    move |path: &Path| {
        let rank = path.file_name().and_then(|name| name.to_str()?.parse::<u32>().ok());
        let rank = rank.filter(|rank| *rank < ranks).ok_or_else(|| io::Error::other("no such file"))?;
        let mut own = Writes::new(rank, ranks);
        does(&mut own);
        own.write(Kind::End, [0, 0, 0], [0, 0]);
        Ok(own.raw)
    }
}

fn extended(does: Does, ranks: u32, to: u32) -> Result<Vec<Told>, Rejected> {
    let mut scripts = vec![Told::default(); to as usize];
    read_extended_from(Path::new("run"), &files(does, ranks), ranks, &mut scripts, 1.0).map(|()| scripts)
}

#[test]
fn a_regular_run_is_that_of_more_ranks() {
    let known: [(Does, &[u32]); 5] = [
        (ring, &[4, 5, 16, 64]),
        (chain, &[4, 7, 16, 64]),
        (grid, &[16, 64]),
        (everyone, &[4, 9, 16]),
        (begun, &[4, 7, 16]),
    ];
    for (does, sizes) in known {
        for ranks in sizes {
            for to in sizes {
                let mut there = vec![Told::default(); *to as usize];
                read_from(Path::new("run"), &files(does, *to), &mut there, 1.0).unwrap();
                assert_eq!(extended(does, *ranks, *to).unwrap(), there, "{ranks} to {to}");
            }
        }
    }
}

#[test]
fn a_run_that_is_not_regular_is_rejected_with_the_place() {
    let cases: [(Does, u32, u32, &str); 5] = [
        (halves, 8, 16, "call 1 has no peer that the places of these ranks tell: rank 1 Irecv of 8 bytes"),
        (
            uneven,
            4,
            8,
            "call 1 of rank 1 is Irecv of 0 bytes and tag 3 with rank 0, that of rank 2 Irecv of 1",
        ),
        (one_way, 4, 8, "rank 0 would send 1 messages of tag 3, 8 bytes, to rank 1, which would receive 0"),
        (ring, 3, 6, "was recorded with 3 ranks in a direction"),
        (grid, 4, 16, "call 1 of rank 1 is Wait, that of rank 2 Irecv of 512 bytes and tag 5 with rank 0"),
    ];
    for (does, ranks, to, words) in cases {
        let said = extended(does, ranks, to).map(drop).unwrap_err();
        let reason = said.reason.unwrap();
        assert!(reason.contains(words), "{words}: {reason}");
        assert!(said.allowed.unwrap().contains("at least 4 ranks in each direction"));
    }
}

#[test]
fn a_communicator_of_some_is_rejected() {
    let half = |own: &mut Writes| {
        own.write(Kind::Member, [own.rank, 0, 1], [0, 0]);
        own.write(Kind::Member, [(own.rank + 2) % own.ranks, 1, 1], [0, 0]);
    };
    let said = extended(half, 4, 8).map(drop).unwrap_err();
    assert_eq!(said.value.as_deref(), Some("a communicator of 2 of 4 ranks"));
}

proptest! {
    #[test]
    fn damage_is_rejected_or_does_no_harm(
        does in prop::sample::select(vec![ring as Does, chain, everyone, begun]),
        damage in prop::collection::vec((0u32..4, 24usize..1500, any::<u8>()), 1..8),
    ) {
        let whole = files(does, 4);
        let damaged = |path: &Path| {
            let mut raw = whole(path)?;
            let rank = path.file_name().and_then(|name| name.to_str()?.parse::<u32>().ok());
            for (of, at, byte) in &damage {
                if rank == Some(*of) && let Some(place) = raw.get_mut(*at) {
                    *place = *byte;
                }
            }
            Ok(raw)
        };
        let mut scripts = vec![Told::default(); 8];
        drop(read_extended_from(Path::new("run"), &damaged, 4, &mut scripts, 1.0));
    }
}
