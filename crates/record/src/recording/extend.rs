//! A recorded run done by more ranks than were recorded, where what its ranks do follows from their places.
//!
//! Ranks lie on a line, or on a grid as balanced as `MPI_Dims_create` makes it (MPI 4.1, section 8.5.2), in order of
//! their numbers. Those that lie alike, at an edge or between edges in each direction, make one class: they make the
//! same calls, and the peer of each call is a neighbour, one rank by its number, or every other rank in turn. Of a
//! direction there are at least 4 ranks, so that two lie between the edges and tell a neighbour from a number. A rank
//! of the larger run does what those of its class did, and computes for as long as one of them. What is sent and
//! what is received is counted at the end; a run of which all this does not hold is rejected.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::collective;
use super::records::{self, File, Kind, Load, Record, TOGETHER};
use crate::script::{Rejected, Script};

/// The fewest ranks in a direction that grows.
const FEWEST: u32 = 4;
/// In how many directions ranks may lie.
const DIRECTIONS: usize = 3;
/// What all of this allows, in words.
const REGULAR: &str = "runs whose ranks speak to neighbours on a line or a grid, to one rank by its number, or to all \
     others in turn, and have at least 4 ranks in each direction";

/// A recorded run, and the grid of as many ranks as it is to have.
struct Extension {
    to: Grid,
    classes: BTreeMap<Vec<Lies>, Class>,
}

/// Where a rank lies in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Lies {
    First,
    Between,
    Last,
}

/// Ranks in rows, the last direction being the nearest.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Grid(Vec<u32>);

impl Grid {
    /// As balanced as can be, the longest direction first.
    fn balanced(ranks: u32, directions: usize) -> Self {
        fn split(ranks: u32, directions: usize, most: u32) -> Option<Vec<u32>> {
            if directions == 1 {
                return (ranks <= most).then(|| vec![ranks]);
            }
            (1..=ranks.min(most))
                .filter(|first| ranks.is_multiple_of(*first))
                .filter_map(|first| {
                    split(ranks / first, directions - 1, first).map(|rest| [vec![first], rest].concat())
                })
                .min_by_key(|found| (found[0] - found[found.len() - 1], found.clone()))
        }
        Self(split(ranks, directions, ranks).unwrap_or_else(|| vec![ranks]))
    }

    fn size(&self) -> u32 {
        self.0.iter().product()
    }

    fn place(&self, rank: u32) -> Vec<u32> {
        let mut left = rank;
        let mut place = vec![0; self.0.len()];
        for (at, length) in place.iter_mut().zip(&self.0).rev() {
            (*at, left) = (left % length, left / length);
        }
        place
    }

    fn lies(&self, rank: u32) -> Vec<Lies> {
        let lies = |(at, length): (u32, &u32)| match at {
            0 => Lies::First,
            _ if at + 1 == *length => Lies::Last,
            _ => Lies::Between,
        };
        self.place(rank).into_iter().zip(&self.0).map(lies).collect()
    }

    /// The rank that is `steps` away in each direction, counted across the edges only if `wraps`.
    fn shifted(&self, rank: u32, steps: &[i8], wraps: bool) -> Option<u32> {
        let mut number = 0;
        for ((at, length), step) in self.place(rank).into_iter().zip(&self.0).zip(steps) {
            let there = i64::from(at) + i64::from(*step);
            let inside = there.rem_euclid(i64::from(*length));
            if inside != there && !wraps {
                return None;
            }
            number = number * length + inside as u32;
        }
        Some(number)
    }
}

/// Whose message it is, as a rank's place tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Peer {
    /// Of a call that has none.
    None,
    /// A neighbour: the steps to it in each direction, and whether they go across the edges.
    Neighbour(Vec<i8>, bool),
    /// A rank by its number; the last one stays the last.
    Number(i32),
    /// Every other rank in the order of their numbers.
    EachOther,
    /// Every other rank in turn from the next one on, upward or downward.
    EachInTurn(bool),
}

impl Peer {
    /// What the peer of a call may be, the nearest first.
    fn candidates(first: &Item, ranks: u32, directions: usize) -> Vec<Self> {
        if matches!(first.shape.kind, Kind::Collective | Kind::Icollective) {
            return vec![Self::Number(first.peers[0])];
        }
        match first.peers.len() {
            0 => vec![Self::None],
            1 => {
                let mut steps = vec![vec![]];
                for _ in 0..directions {
                    let further = |one: &Vec<i8>| [-1, 0, 1].map(|step| [one.clone(), vec![step]].concat());
                    steps = steps.iter().flat_map(further).collect();
                }
                let near = |wraps| steps.iter().map(move |one| Self::Neighbour(one.clone(), wraps));
                let number = Self::Number(first.peers[0]);
                near(false).chain(near(true)).chain([number]).collect()
            }
            _ if ranks > 2 => vec![Self::EachOther, Self::EachInTurn(true), Self::EachInTurn(false)],
            _ => vec![Self::EachOther],
        }
    }

    /// Whom it is on a grid.
    fn on(&self, grid: &Grid, recorded: u32, rank: u32) -> Option<Vec<i32>> {
        let ranks = grid.size();
        Some(match self {
            Self::None => vec![],
            Self::Neighbour(steps, wraps) => vec![grid.shifted(rank, steps, *wraps)? as i32],
            Self::Number(number) if *number > 0 && *number as u32 + 1 == recorded => vec![ranks as i32 - 1],
            Self::Number(number) => vec![*number],
            Self::EachOther => (0..ranks as i32).filter(|one| *one != rank as i32).collect(),
            Self::EachInTurn(upward) => (1..ranks)
                .map(|step| (if *upward { rank + step } else { rank + ranks - step }) % ranks)
                .map(|one| one as i32)
                .collect(),
        })
    }
}

/// What calls of a class have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Shape {
    kind: Kind,
    tag: i32,
    context: i32,
    bytes: u64,
    /// Of what was received: its length.
    got: u64,
    /// The mode of a send; of a collective, the bytes of an element.
    mode: u64,
    /// Of a wait: which calls it is the end of, by their numbers.
    ends: Vec<usize>,
    /// Of a collective: bytes there and back of each rank, where they are given by rank.
    counts: Option<(u64, u64)>,
    /// Of a communicator's first use: whether it is the rank's own alone.
    is_own: bool,
}

/// A call of a rank, or as many in turn as there are other ranks.
#[derive(Clone, Debug)]
struct Item {
    shape: Shape,
    peers: Vec<i32>,
    /// Time before each and in it, ns.
    times: Vec<(u64, u64)>,
}

/// Ranks that lie alike.
struct Class {
    peers: Vec<Peer>,
    /// Of each that was recorded, its calls.
    calls: Vec<Vec<Item>>,
}

/// The calls of one rank's file.
struct Reader<'a> {
    file: &'a File,
    rank: u32,
    ranks: u32,
    items: Vec<Item>,
    /// By request, the number of its call.
    requests: BTreeMap<u64, usize>,
    ends: Vec<usize>,
    /// How many collectives that do not block it has begun.
    begun: u64,
    counts: Vec<(u64, u64)>,
    members: Vec<i32>,
}

impl<'a> Reader<'a> {
    fn read(file: &'a File, rank: u32, ranks: u32) -> Result<Vec<Item>, Rejected> {
        let mut reader = Self {
            file,
            rank,
            ranks,
            items: Vec::new(),
            requests: BTreeMap::new(),
            ends: Vec::new(),
            begun: 0,
            counts: Vec::new(),
            members: Vec::new(),
        };
        let mut records = file.records().peekable();
        while let Some(record) = records.next() {
            let (nth, record) = record?;
            let is_last_member = record.kind == Kind::Member
                && !records.peek().is_some_and(|next| {
                    next.as_ref().is_ok_and(|(_, next)| {
                        next.kind == Kind::Member && next.context == record.context && next.tag != 0
                    })
                });
            reader.take(nth, &record, is_last_member)?;
        }
        Ok(reader.in_turn())
    }

    fn take(&mut self, nth: usize, record: &Record<'_>, is_last_member: bool) -> Result<(), Rejected> {
        let is_collective = matches!(record.kind, Kind::Collective | Kind::Icollective);
        let mut shape = Shape {
            kind: record.kind,
            tag: record.tag,
            context: record.context,
            bytes: record.bytes,
            got: 0,
            mode: if is_collective { record.request } else { record.request % 4 },
            ends: vec![],
            counts: None,
            is_own: false,
        };
        let mut peers = vec![record.peer];
        match record.kind {
            Kind::Unknown => {
                let reason = format!("uses {}, whose messages are not recorded", record.name());
                return Err(Rejected::whole(&self.file.path, reason));
            }
            Kind::Done => {
                let Some(call) = self.requests.remove(&record.request) else {
                    let value = format!("request {} completed", record.request);
                    return Err(self.file.wrong(nth, value, "requests that were made"));
                };
                let made = &mut self.items[call];
                if made.shape.kind == Kind::Irecv {
                    (made.peers[0], made.shape.tag, made.shape.got) = (record.peer, record.tag, record.bytes);
                }
                self.ends.push(call);
                return Ok(());
            }
            Kind::Count => {
                self.counts.push((record.bytes, record.request));
                return Ok(());
            }
            Kind::Member => {
                self.members.push(record.peer);
                if !is_last_member {
                    return Ok(());
                }
                let members = std::mem::take(&mut self.members);
                shape.is_own = members == [self.rank as i32];
                if !shape.is_own && !members.iter().copied().eq(0..self.ranks as i32) {
                    let value = format!("a communicator of {} of {} ranks", members.len(), self.ranks);
                    return Err(self.file.wrong(nth, value, "communicators of all ranks in order"));
                }
                (shape.tag, peers) = (0, vec![]);
            }
            Kind::Wait => (shape.ends, peers) = (std::mem::take(&mut self.ends), vec![]),
            Kind::Collective | Kind::Icollective => {
                let counts = std::mem::take(&mut self.counts);
                if counts.iter().any(|one| *one != counts[0]) {
                    let value = "different lengths by rank in a collective".to_string();
                    return Err(self.file.wrong(nth, value, "one length for all"));
                }
                shape.counts = counts.first().copied();
                if record.kind == Kind::Icollective {
                    self.requests.insert(TOGETHER + self.begun, self.items.len());
                    self.begun += 1;
                }
            }
            Kind::Isend | Kind::Irecv => {
                self.requests.insert(record.request, self.items.len());
            }
            Kind::Recv => shape.got = record.bytes,
            Kind::End => peers = vec![],
            Kind::Send | Kind::Probe => {}
        }
        self.items.push(Item { shape, peers, times: vec![(record.compute_ns, record.inside_ns)] });
        Ok(())
    }

    /// Makes one call of those that follow each other and go to, or come from, every other rank, where a single wait is
    /// for all of them.
    fn in_turn(self) -> Vec<Item> {
        let others = self.ranks as usize - 1;
        let mut waited = vec![None; self.items.len()];
        for (nth, item) in self.items.iter().enumerate() {
            for call in &item.shape.ends {
                waited[*call] = Some(nth);
            }
        }
        let mut made: Vec<Item> = Vec::new();
        let mut number = vec![0; self.items.len()];
        let mut at = 0;
        while at < self.items.len() {
            let first = &self.items[at];
            let run = self.items[at..].iter().zip(&waited[at..]).take(others);
            let alike = |(item, wait): &(&Item, &Option<usize>)| {
                item.shape == first.shape && **wait == waited[at] && item.peers.len() == 1
            };
            let peers: Vec<i32> = run.take_while(alike).map(|(item, _)| item.peers[0]).collect();
            let is_message = matches!(first.shape.kind, Kind::Send | Kind::Isend | Kind::Recv | Kind::Irecv);
            let different = peers.iter().collect::<BTreeSet<_>>();
            let is_all = others > 1 && different.len() == others && !different.contains(&(self.rank as i32));
            let (taken, peers) =
                if is_message && is_all { (others, peers) } else { (1, first.peers.clone()) };
            number[at..at + taken].fill(made.len());
            let times = self.items[at..at + taken].iter().map(|one| one.times[0]).collect();
            made.push(Item { shape: first.shape.clone(), peers, times });
            at += taken;
        }
        for one in &mut made {
            let mut seen = BTreeSet::new();
            let ends = one.shape.ends.iter().map(|call| number[*call]);
            one.shape.ends = ends.filter(|call| seen.insert(*call)).collect();
        }
        made
    }
}

impl Class {
    /// What these ranks have in common, or why that is not all.
    fn of(calls: &[Vec<Item>], grid: &Grid, members: &[u32]) -> Result<Self, String> {
        let first = members[0];
        let own = &calls[first as usize];
        for other in &members[1..] {
            let theirs = &calls[*other as usize];
            let differs = own.iter().zip(theirs).position(|(one, another)| one.shape != another.shape);
            if let Some(nth) = differs {
                let [one, another] = [&own[nth], &theirs[nth]].map(Item::words);
                return Err(format!("call {nth} of rank {first} is {one}, that of rank {other} {another}"));
            }
            if own.len() != theirs.len() {
                let (one, another) = (own.len(), theirs.len());
                return Err(format!("rank {first} makes {one} calls, rank {other} {another}"));
            }
        }
        let found = own.iter().enumerate().map(|(nth, item)| {
            let fits = |peer: &Peer| {
                members.iter().all(|member| {
                    let there = peer.on(grid, grid.size(), *member);
                    there.as_ref() == Some(&calls[*member as usize][nth].peers)
                })
            };
            Peer::candidates(item, grid.size(), grid.0.len()).into_iter().find(fits).ok_or_else(|| {
                let with = |member: &u32| format!("rank {member} {}", calls[*member as usize][nth].words());
                let said = members.iter().take(3).map(with).collect::<Vec<_>>().join(", ");
                format!("call {nth} has no peer that the places of these ranks tell: {said}")
            })
        });
        let peers = found.collect::<Result<_, String>>()?;
        Ok(Self { peers, calls: members.iter().map(|member| calls[*member as usize].clone()).collect() })
    }
}

impl Item {
    fn words(&self) -> String {
        let Shape { kind, bytes, tag, .. } = &self.shape;
        match (kind, self.peers.as_slice()) {
            (Kind::Collective | Kind::Icollective, [root]) => {
                let named =
                    if *kind == Kind::Collective { collective::mpi_name } else { collective::mpi_name_begun };
                let name = usize::try_from(*tag).ok().and_then(|tag| collective::NAMED.get(tag));
                let name = name.map_or("a collective", |name| named(*name));
                format!("{name} of {bytes} bytes with root {root}")
            }
            (_, [peer]) => format!("{kind:?} of {bytes} bytes and tag {tag} with rank {peer}"),
            (_, []) => format!("{kind:?}"),
            (_, all) => format!("{kind:?} of {bytes} bytes and tag {tag} with {} ranks", all.len()),
        }
    }
}

impl Extension {
    /// Finds what a recorded run of `ranks` ranks is by their places, to have `to` of them.
    fn of(folder: &Path, load: &Load<'_>, ranks: u32, to: u32) -> Result<Self, Rejected> {
        let mut calls = Vec::new();
        for rank in 0..ranks {
            let file = File::read(folder, load, rank, ranks)?;
            calls.push(Reader::read(&file, rank, ranks)?);
        }
        let mut reason = None;
        for directions in 1..=DIRECTIONS {
            let [from, to] = [ranks, to].map(|ranks| Grid::balanced(ranks, directions));
            if directions > 1 && from.0.contains(&1) {
                break;
            }
            match Self::on(&calls, &from, to) {
                Ok(found) => return Ok(found),
                Err(why) => reason = reason.or(Some(why)),
            }
        }
        Err(Rejected::whole(folder, reason.unwrap_or_default()).allowing(REGULAR))
    }

    /// Finds it on one grid, or says why it is not there.
    fn on(calls: &[Vec<Item>], from: &Grid, to: Grid) -> Result<Self, String> {
        let ranks = from.size();
        if let Some((few, _)) = from.0.iter().zip(&to.0).find(|(few, many)| few != many && **few < FEWEST) {
            return Err(format!(
                "was recorded with {few} ranks in a direction, too few to tell who is a neighbour"
            ));
        }
        let mut alike = BTreeMap::<_, Vec<u32>>::new();
        for rank in 0..ranks {
            alike.entry(from.lies(rank)).or_default().push(rank);
        }
        let mut classes = BTreeMap::new();
        for (lies, members) in alike {
            classes.insert(lies, Class::of(calls, from, &members)?);
        }
        let found = Self { to, classes };
        found.balances(ranks)?;
        Ok(found)
    }

    /// Sees that what each rank sends to another is what that one receives.
    fn balances(&self, recorded: u32) -> Result<(), String> {
        // By sender, receiver and tag: messages and bytes sent, and received.
        let mut sums = BTreeMap::<(u32, i32, i32), [u64; 4]>::new();
        for rank in 0..self.to.size() {
            for (item, peer) in self.does(rank) {
                let is_send = match item.shape.kind {
                    Kind::Send | Kind::Isend => true,
                    Kind::Recv | Kind::Irecv => false,
                    _ => continue,
                };
                let peers = peer.on(&self.to, recorded, rank).unwrap_or_default();
                for other in peers {
                    let key = if is_send {
                        (rank, other, item.shape.tag)
                    } else {
                        (other as u32, rank as i32, item.shape.tag)
                    };
                    let sum = sums.entry(key).or_default();
                    let at = if is_send { 0 } else { 2 };
                    sum[at] += 1;
                    sum[at + 1] += if is_send { item.shape.bytes } else { item.shape.got };
                }
            }
        }
        match sums.into_iter().find(|(_, sum)| sum[..2] != sum[2..]) {
            None => Ok(()),
            Some(((from, to, tag), [sent, sent_bytes, received, received_bytes])) => Err(format!(
                "of {} ranks, rank {from} would send {sent} messages of tag {tag}, {sent_bytes} bytes, to rank {to}, which \
                 would receive {received} of {received_bytes} bytes",
                self.to.size()
            )),
        }
    }

    /// The calls of a rank, those of one of its class, and whose messages they are.
    fn does(&self, rank: u32) -> impl Iterator<Item = (&Item, &Peer)> {
        // A direction that does not grow is as long as it was, and one that grows had ranks of every kind.
        let class = &self.classes[&self.to.lies(rank)];
        class.calls[rank as usize % class.calls.len()].iter().zip(&class.peers)
    }

    /// The file that a rank of the larger run would have written.
    fn file(&self, rank: u32, recorded: u32) -> Vec<u8> {
        let ranks = self.to.size();
        let mut raw = records::header(rank, ranks);
        let (mut number, mut begun) = (0, 0);
        // By call, the numbers of its requests and their peers.
        let mut requests = Vec::<Vec<(u64, i32)>>::new();
        let mut done = Vec::new();
        for (item, peer) in self.does(rank) {
            let Shape { kind, tag, context, bytes, mode, .. } = item.shape;
            let mut write = |kind, peer, tag, bytes, request, times| {
                records::write(&mut raw, kind, [peer, tag, context], [bytes, request], times);
            };
            let mut made = Vec::new();
            match kind {
                Kind::Member if item.shape.is_own => write(kind, rank as i32, 0, 0, 0, (0, 0)),
                Kind::Member => (0..ranks as i32).for_each(|one| write(kind, one, one, 0, 0, (0, 0))),
                Kind::Wait => {
                    for call in &item.shape.ends {
                        let Some((tag, bytes)) = done.get(*call).copied() else { continue };
                        for (request, peer) in &requests[*call] {
                            write(Kind::Done, *peer, tag, bytes, *request, (0, 0));
                        }
                    }
                    write(kind, 0, 0, 0, 0, item.times[0]);
                }
                Kind::End => write(kind, 0, 0, 0, 0, item.times[0]),
                _ => {
                    if let Some((there, back)) = item.shape.counts {
                        (0..ranks as i32).for_each(|one| write(Kind::Count, one, 0, there, back, (0, 0)));
                    }
                    let peers = peer.on(&self.to, recorded, rank).unwrap_or_default();
                    for (other, times) in peers.into_iter().zip(item.times.iter().cycle()) {
                        let mut request = mode;
                        if matches!(kind, Kind::Isend | Kind::Irecv) {
                            number += 1;
                            request += 4 * number;
                            made.push((request, other));
                        } else if kind == Kind::Icollective {
                            made.push((TOGETHER + begun, other));
                            begun += 1;
                        }
                        write(kind, other, tag, bytes, request, *times);
                    }
                }
            }
            done.push((tag, if kind == Kind::Irecv { item.shape.got } else { bytes }));
            requests.push(made);
        }
        raw
    }
}

/// Reads a recorded run of `ranks` ranks into more scripts than these, as [`super::read`] reads one into as many.
///
/// # Errors
/// As for [`super::read`]; what the ranks do does not follow from their places: says where.
pub fn read_extended<S: Script>(
    folder: &Path,
    ranks: u32,
    scripts: &mut [S],
    compute_scale: f64,
) -> Result<(), Rejected> {
    read_extended_from(folder, &|path| std::fs::read(path), ranks, scripts, compute_scale)
}

/// The same of files that `load` has.
///
/// # Errors
/// As for [`read_extended`].
pub(super) fn read_extended_from<S: Script>(
    folder: &Path,
    load: &Load<'_>,
    ranks: u32,
    scripts: &mut [S],
    compute_scale: f64,
) -> Result<(), Rejected> {
    let to = u32::try_from(scripts.len()).unwrap_or(u32::MAX);
    let extension = Extension::of(folder, load, ranks, to)?;
    let extended = |path: &Path| {
        let rank = path.file_name().and_then(|name| name.to_str()?.parse().ok());
        Ok(extension.file(rank.unwrap_or_default(), ranks))
    };
    super::read_from(folder, &extended, scripts, compute_scale)
}

#[cfg(test)]
mod tests;
