//! A recorded run: a folder with a file for each rank, and from it what the ranks do, collectives as messages.
//!
//! A receive takes the message that it took in the recorded run, and a wait is for the requests that it had
//! completed then. Probes are left out: what they found is received by the receive behind them.
//!
//! A collective that does not block sends and receives what its algorithm begins with when it is begun; it goes on whenever
//! the rank waits, for whatever that is, as in a library that makes progress within calls only.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use wiretwin_msg::protocol::Mode;
use wiretwin_msg::schedule::Collective;

use crate::script::{Message, Receive, Rejected, Script, Transfer};

mod collective;
mod extend;
mod records;
#[cfg(test)]
mod tests;

use collective::{Counts, Leg, Meeting, Rounds};
pub use extend::read_extended;
use records::{File, Kind, Record, TOGETHER};

/// What one rank did, in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Messages that it sent.
    pub sends: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Receives.
    pub receives: u64,
    /// Collectives.
    pub collectives: u64,
    /// Time outside MPI, ns.
    pub computed_ns: u64,
    /// Time inside MPI, ns.
    pub inside_ns: u64,
}

/// Says what each rank did, and which functions were called that are not recorded, each once, in order.
///
/// # Errors
/// The file of a rank is not there, is damaged, or was cut off at the limit of its length.
pub fn summary(folder: &Path, ranks: u32) -> Result<(Vec<Summary>, Vec<String>), Rejected> {
    let mut unknown = BTreeSet::new();
    let mut rows = Vec::new();
    for rank in 0..ranks {
        let file = File::read(folder, &|path| std::fs::read(path), rank, ranks)?;
        let mut row = Summary::default();
        for record in file.records() {
            let (_, record) = record?;
            match record.kind {
                Kind::Send | Kind::Isend => {
                    row.sends += 1;
                    row.sent_bytes = row.sent_bytes.saturating_add(record.bytes);
                }
                Kind::Recv | Kind::Irecv => row.receives += 1,
                Kind::Collective | Kind::Icollective => row.collectives += 1,
                Kind::Unknown => {
                    unknown.insert(record.name());
                }
                _ => {}
            }
            if !matches!(record.kind, Kind::Count | Kind::Member | Kind::Unknown) {
                row.computed_ns = row.computed_ns.saturating_add(record.compute_ns);
                row.inside_ns = row.inside_ns.saturating_add(record.inside_ns);
            }
        }
        rows.push(row);
    }
    Ok((rows, unknown.into_iter().collect()))
}

/// Reads what the ranks do into a script each, collectives by the algorithms of MPICH; computations take
/// `compute_scale` times as long as they did.
///
/// # Errors
/// A file is not there or damaged; the run used what is not recorded; ranks do not agree on a collective.
pub fn read<S: Script>(folder: &Path, scripts: &mut [S], compute_scale: f64) -> Result<(), Rejected> {
    read_from(folder, &|path| std::fs::read(path), scripts, compute_scale)
}

/// The same of files that `load` has.
///
/// # Errors
/// As for [`read`].
pub fn read_from<S: Script>(
    folder: &Path,
    load: &dyn Fn(&Path) -> std::io::Result<Vec<u8>>,
    scripts: &mut [S],
    compute_scale: f64,
) -> Result<(), Rejected> {
    let ranks = u32::try_from(scripts.len()).unwrap_or(u32::MAX);
    let mut run = Run::default();
    let mut known = Vec::new();
    for rank in 0..ranks {
        let file = File::read(folder, load, rank, ranks)?;
        known.push(Known::of(&file, ranks, &mut run)?);
    }
    if !run.unknown.is_empty() {
        let names = run.unknown.iter().take(5).map(String::as_str).collect::<Vec<_>>().join(", ");
        let used = Rejected::whole(folder, format!("uses {names}, whose messages are not recorded"));
        return Err(used.allowing("messages between two ranks, and collectives"));
    }
    for (rank, mine) in known.iter_mut().enumerate() {
        mine.meet(rank as u32, folder, &mut run)?;
    }
    for (rank, (mine, script)) in known.into_iter().zip(scripts).enumerate() {
        let file = File::read(folder, load, rank as u32, ranks)?;
        let requests = 0;
        Writer { rank: rank as u32, file: &file, mine, run: &run, script, compute_scale, requests }
            .write()?;
    }
    Ok(())
}

/// What the ranks know together.
#[derive(Debug, Default)]
struct Run {
    unknown: BTreeSet<String>,
    /// Of communicators: those of the same ranks are one on each, in the order of their first use.
    numbers: BTreeMap<(Vec<u32>, u32), u32>,
    /// By number of the communicator, its collectives.
    met: Vec<Vec<Meeting>>,
}

impl Run {
    fn number(&mut self, members: &[u32], nth: u32) -> u32 {
        let next = self.numbers.len() as u32;
        *self.numbers.entry((members.to_vec(), nth)).or_insert_with(|| {
            self.met.push(Vec::new());
            next
        })
    }
}

/// A communicator as one rank knows it.
#[derive(Debug, Default)]
struct Communicator {
    members: Vec<u32>,
    number: u32,
    /// Its collectives, with the counts that the rank gave itself.
    calls: Vec<(Meeting, Counts)>,
    /// How many of them the rank has come to.
    begun: usize,
}

/// What has to be known of a rank before its operations are read.
#[derive(Debug, Default)]
struct Known {
    communicators: BTreeMap<i32, Communicator>,
    /// By request, whose message a receive took, and with which tag.
    taken: BTreeMap<u64, (i32, i32)>,
}

impl Known {
    fn of(file: &File, ranks: u32, run: &mut Run) -> Result<Self, Rejected> {
        let mut known = Self::default();
        let mut received = BTreeSet::new();
        let mut counts = Counts::default();
        for record in file.records() {
            let (nth, record) = record?;
            match record.kind {
                Kind::Member => {
                    let members = &mut known.communicators.entry(record.context).or_default().members;
                    let world = u32::try_from(record.peer).ok().filter(|peer| *peer < ranks);
                    let at = usize::try_from(record.tag).ok().filter(|at| *at == members.len());
                    let (Some(world), Some(_)) = (world, at) else {
                        let value = format!("member {} is rank {}", record.tag, record.peer);
                        return Err(file.wrong(nth, value, format!("ranks below {ranks}, in order")));
                    };
                    members.push(world);
                }
                Kind::Count => counts.set(record.peer, record.bytes, record.request),
                Kind::Collective | Kind::Icollective => {
                    let own = std::mem::take(&mut counts);
                    let collective = collective::NAMED.get(usize::try_from(record.tag).unwrap_or(usize::MAX));
                    let Some(collective) = collective else {
                        let value = format!("collective {}", record.tag);
                        return Err(file.wrong(nth, value, format!("0 to {}", collective::NAMED.len() - 1)));
                    };
                    let call = Meeting {
                        collective: *collective,
                        root: record.peer,
                        bytes: record.bytes,
                        unit: record.request,
                        counts: own.clone(),
                    };
                    known.communicators.entry(record.context).or_default().calls.push((call, own));
                }
                Kind::Irecv => {
                    received.insert(record.request);
                }
                Kind::Done if received.contains(&record.request) => {
                    known.taken.insert(record.request, (record.peer, record.tag));
                }
                Kind::Unknown => {
                    run.unknown.insert(record.name());
                }
                _ => {}
            }
        }
        let mut seen = BTreeMap::<&[u32], u32>::new();
        for communicator in known.communicators.values_mut() {
            let nth = seen.entry(&communicator.members).or_default();
            communicator.number = run.number(&communicator.members, *nth);
            *nth += 1;
        }
        Ok(known)
    }

    /// Puts what the rank knows of its collectives to what others know.
    fn meet(&mut self, rank: u32, folder: &Path, run: &mut Run) -> Result<(), Rejected> {
        for communicator in self.communicators.values_mut() {
            let met = &mut run.met[communicator.number as usize];
            for (nth, (call, _)) in communicator.calls.iter_mut().enumerate() {
                match met.get_mut(nth) {
                    None => met.push(std::mem::take(call)),
                    Some(other) if (other.collective, other.root) == (call.collective, call.root) => {
                        other.bytes = other.bytes.max(call.bytes);
                        other.counts.extend(&call.counts);
                    }
                    Some(other) => {
                        let reason = format!(
                            "rank {rank} calls {} of root {} where another calls {} of root {}",
                            call.collective.name(),
                            call.root,
                            other.collective.name(),
                            other.root
                        );
                        return Err(Rejected::whole(folder, reason));
                    }
                }
            }
        }
        Ok(())
    }
}

/// Writes what one rank does.
struct Writer<'a, S> {
    rank: u32,
    file: &'a File,
    mine: Known,
    run: &'a Run,
    script: &'a mut S,
    compute_scale: f64,
    /// How many it has made.
    requests: u64,
}

impl<S: Script> Writer<'_, S> {
    fn write(mut self) -> Result<(), Rejected> {
        let file = self.file;
        let mut requests = BTreeMap::new();
        let mut probed = BTreeMap::new();
        let mut waited = Vec::new();
        let mut rounds = Rounds::default();
        let (mut begun, mut going, mut ended) = (0, BTreeSet::new(), Vec::new());
        for record in file.records() {
            let (nth, record) = record?;
            let ps = (record.compute_ns as f64 * 1000.0 * self.compute_scale).round_ties_even();
            if ps > 0.0 && !matches!(record.kind, Kind::Unknown) {
                self.script.compute(ps as u64);
            }
            match record.kind {
                Kind::Probe => {
                    probed.insert((record.peer, record.tag), record.context);
                }
                Kind::Send | Kind::Isend => {
                    let blocks = matches!(record.kind, Kind::Send);
                    self.script.enter(if blocks { "MPI_Send" } else { "MPI_Isend" });
                    let (context, to) = self.peer(nth, &record, record.context, record.peer)?;
                    let message = Message { context, to, tag: record.tag as u32, bytes: record.bytes };
                    let one = self.request();
                    self.script.send(message, Mode::BY_NAME[(record.request % 4) as usize].1, one);
                    if blocks {
                        self.script.wait(&[one]);
                    } else {
                        requests.insert(record.request, one);
                    }
                    self.script.exit();
                }
                Kind::Recv => {
                    // Of a matched receive, the communicator is that of its probe.
                    let matched = probed.get(&(record.peer, record.tag)).copied();
                    let number = if record.context < 0 { matched.unwrap_or(-1) } else { record.context };
                    let (context, source) = self.peer(nth, &record, number, record.peer)?;
                    let tag = Some(record.tag as u32);
                    self.script.enter("MPI_Recv");
                    let one = self.request();
                    self.script
                        .recv(Receive { context, source: Some(source), tag, capacity: record.bytes }, one);
                    self.script.wait(&[one]);
                    self.script.exit();
                }
                Kind::Irecv => {
                    let (from, tag) =
                        self.mine.taken.get(&record.request).copied().unwrap_or((record.peer, record.tag));
                    self.script.enter("MPI_Irecv");
                    let (context, source) = if from < 0 {
                        (2 * self.communicator(nth, &record, record.context)?.number, None)
                    } else {
                        let (context, source) = self.peer(nth, &record, record.context, from)?;
                        (context, Some(source))
                    };
                    let one = self.request();
                    let tag = u32::try_from(tag).ok();
                    self.script.recv(Receive { context, source, tag, capacity: record.bytes }, one);
                    requests.insert(record.request, one);
                    self.script.exit();
                }
                Kind::Done if record.request >= TOGETHER => {
                    let number = record.request - TOGETHER;
                    if !going.remove(&number) {
                        let value = format!("collective {number} completed");
                        return Err(file.wrong(nth, value, "collectives that were begun"));
                    }
                    ended.push(number);
                }
                Kind::Done => {
                    let one = requests.remove(&record.request).ok_or_else(|| {
                        let value = format!("request {} completed", record.request);
                        file.wrong(nth, value, "requests that were made and have not been completed")
                    })?;
                    waited.push(one);
                }
                Kind::Wait => {
                    self.script.enter("MPI_Wait");
                    ended.drain(..).for_each(|number| self.script.wait_background(number));
                    if !waited.is_empty() {
                        self.script.wait(&waited);
                        waited.clear();
                    }
                    self.script.exit();
                }
                Kind::Collective => {
                    let transfers = self.collective(nth, &record, &mut rounds, collective::mpi_name)?;
                    self.exchange(&transfers);
                    self.script.exit();
                }
                Kind::Icollective => {
                    let transfers = self.collective(nth, &record, &mut rounds, collective::mpi_name_begun)?;
                    self.script.begin(&transfers);
                    going.insert(begun);
                    begun += 1;
                    self.script.exit();
                }
                Kind::End => {
                    self.script.enter("MPI_Finalize");
                    going.iter().for_each(|number| self.script.wait_background(*number));
                }
                Kind::Count | Kind::Member | Kind::Unknown => {}
            }
        }
        self.script.finish();
        Ok(())
    }

    const fn request(&mut self) -> u64 {
        self.requests += 1;
        self.requests
    }

    fn communicator(&self, nth: usize, record: &Record<'_>, number: i32) -> Result<&Communicator, Rejected> {
        self.mine.communicators.get(&number).ok_or_else(|| {
            let value = format!("communicator {} of a {:?}", number, record.kind);
            self.file.wrong(nth, value, "communicators whose ranks were recorded")
        })
    }

    /// The context of messages of a communicator, and the rank of the world that is its `peer`.
    fn peer(&self, nth: usize, record: &Record<'_>, number: i32, peer: i32) -> Result<(u32, u32), Rejected> {
        let communicator = self.communicator(nth, record, number)?;
        let world = usize::try_from(peer).ok().and_then(|peer| communicator.members.get(peer));
        let world = world.copied().ok_or_else(|| {
            let allowed = format!("0 to {}", communicator.members.len() - 1);
            self.file.wrong(nth, format!("rank {peer} of its communicator"), allowed)
        })?;
        Ok((2 * communicator.number, world))
    }

    /// Enters a collective, `name` its function; what it sends and receives by round, in each the receives first.
    fn collective(
        &mut self,
        nth: usize,
        record: &Record<'_>,
        rounds: &mut Rounds,
        name: fn(Collective) -> &'static str,
    ) -> Result<Vec<Vec<Transfer>>, Rejected> {
        let (file, rank) = (self.file, self.rank);
        let communicator = self.mine.communicators.get_mut(&record.context);
        let Some(communicator) = communicator.filter(|one| one.members.contains(&rank)) else {
            let value = format!("communicator {} without its own rank", record.context);
            return Err(file.wrong(nth, value, "communicators whose ranks were recorded"));
        };
        let place = communicator.begun;
        communicator.begun += 1;
        let call = &self.run.met[communicator.number as usize][place];
        let (own, members) = (&communicator.calls[place].1, &communicator.members);
        let me = members.iter().position(|one| *one == rank).unwrap_or_default() as u32;
        let (context, tag) = (2 * communicator.number + 1, place as u32 & 0x7FFF_FFFF);
        self.script.enter(name(call.collective));
        let legs = rounds
            .of(call, own, me, members.len() as u32)
            .map_err(|reason| file.wrong(nth, call.collective.name().to_string(), reason))?;
        let transfer = |leg: &Leg| {
            let (other, bytes) = (members[leg.peer as usize], leg.bytes);
            if leg.receives {
                Transfer::Recv(Receive { context, source: Some(other), tag: Some(tag), capacity: bytes })
            } else {
                Transfer::Send(Message { context, to: other, tag, bytes })
            }
        };
        let round = |legs: &Vec<Leg>| {
            let (receives, sends) = legs.iter().partition::<Vec<_>, _>(|leg| leg.receives);
            receives.into_iter().chain(sends).map(transfer).collect()
        };
        Ok(legs.iter().filter(|legs| !legs.is_empty()).map(round).collect())
    }

    /// Sends and receives round by round.
    fn exchange(&mut self, rounds: &[Vec<Transfer>]) {
        for round in rounds {
            let first = self.requests + 1;
            for transfer in round {
                let one = self.request();
                match *transfer {
                    Transfer::Send(message) => self.script.send(message, Mode::Standard, one),
                    Transfer::Recv(receive) => self.script.recv(receive, one),
                }
            }
            self.script.wait(&(first..=self.requests).collect::<Vec<_>>());
        }
    }
}
