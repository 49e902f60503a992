//! Ranks on a local network in every detail: where their time goes, call by call.
//!
//! The network knows processors, not calls. Of the time between two operations that suspend a rank, its own
//! work comes first; of the rest, as long as the processor of its host was busy counts as its endpoint, and the
//! remainder as waiting. What lies on the wire is in that: only an anatomy tells the two apart.

use wiretwin_engine::Digest;
use wiretwin_msg::library::Failure;
use wiretwin_record::timeline::{Interval, Kind, Timeline};
use wiretwin_units::{SimTime, Span};

use super::{Blocked, Counts, NameId, Op, OpError, Outcome, RequestId};
use crate::lan::Lan;
use crate::op::{Names, words};

/// What is known of a rank.
#[derive(Clone, Debug, Default)]
struct Rank {
    name: u32,
    site: i32,
    /// Its own work since it went on, and in which call what came after that was posted.
    worked: Span,
    /// When it went on, and how long its host's processor had been busy by then.
    went_on: SimTime,
    busy: Span,
    totals: [u64; 4],
    suspended: bool,
    /// It ends when its work is done.
    ending: bool,
    ended: Option<SimTime>,
}

/// See the module's description.
pub struct LocalRanks {
    lan: Lan,
    ranks: Vec<Rank>,
    names: Names,
    timeline: Option<Timeline>,
    /// Ranks that the last step has resumed.
    resumed: Vec<u32>,
    counts: Counts,
}

impl LocalRanks {
    /// Ranks, one a host, of this network. With `timeline`, intervals are recorded.
    #[must_use]
    pub fn new(lan: Lan, timeline: bool) -> Self {
        let size = lan.size();
        let processes = lan.process_sets().last().copied().unwrap_or(0) + size;
        Self {
            ranks: vec![Rank { site: -1, ..Rank::default() }; processes as usize],
            names: Names::new(),
            timeline: timeline.then(|| Timeline::new(size)),
            resumed: Vec::new(),
            counts: Counts::default(),
            lan,
        }
    }

    /// The network.
    #[must_use]
    pub const fn lan(&self) -> &Lan {
        &self.lan
    }

    /// How many ranks there are.
    #[must_use]
    pub fn size(&self) -> u32 {
        self.lan.size()
    }

    /// The network as it was left.
    #[must_use]
    pub fn into_lan(self) -> Lan {
        self.lan
    }

    /// How many processes there are that may post: the ranks, and those of other stacks beside them.
    #[must_use]
    pub fn processes(&self) -> u32 {
        self.ranks.len() as u32
    }

    /// A rank's clock: when the network last let it go on, or when it ended.
    ///
    /// # Errors
    /// [`OpError::NoSuchRank`].
    pub fn rank_now(&self, rank: u32) -> Result<SimTime, OpError> {
        let size = self.size();
        let state = self.ranks.get(rank as usize).ok_or(OpError::NoSuchRank { rank, size })?;
        Ok(state.ended.unwrap_or(state.went_on))
    }

    /// A rank's time so far by kind, in the order of [`Kind::ALL`]; the sum is its clock.
    ///
    /// # Errors
    /// [`OpError::NoSuchRank`].
    pub fn totals(&self, rank: u32) -> Result<[Span; 4], OpError> {
        self.rank_now(rank)?;
        Ok(self.ranks[rank as usize].totals.map(Span::from_ps))
    }

    /// The number of a call's name, for [`Op::Enter`].
    pub fn name_id(&mut self, name: &str) -> NameId {
        self.names.id(name)
    }

    /// The names of calls by number; 0 is empty.
    #[must_use]
    pub fn names(&self) -> &[String] {
        self.names.list()
    }

    /// The recorded intervals, if they were asked for.
    #[must_use]
    pub const fn timeline(&self) -> Option<&Timeline> {
        self.timeline.as_ref()
    }

    /// How many messages were sent, delivered, and are still held.
    #[must_use]
    pub const fn counts(&self) -> Counts {
        self.counts
    }

    /// The network's digest.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.lan.digest()
    }

    /// The ranks that are suspended, and for what.
    #[must_use]
    pub fn blocked(&self) -> Vec<Blocked> {
        let suspended = self.ranks.iter().enumerate().filter(|(_, rank)| rank.suspended);
        suspended
            .map(|(number, rank)| Blocked {
                rank: number as u32,
                operation: words::of_waits(self.lan.waits_of(number as u32)),
                name: self.names.list()[rank.name as usize].clone(),
                site: rank.site,
                since: rank.went_on + rank.worked,
            })
            .collect()
    }

    /// Why a request of a rank's last wait has failed.
    #[must_use]
    pub fn failure(&self, rank: u32, request: RequestId) -> Option<Failure> {
        self.lan.failure(rank, request)
    }

    /// Posts an operation of `rank`. A send or a receive returns its request, others `None`.
    ///
    /// # Errors
    /// [`OpError`] names what is wrong with the operation; nothing happens then.
    pub fn post(&mut self, rank: u32, op: Op<'_>) -> Result<Option<RequestId>, OpError> {
        let size = self.size();
        let Some(state) = self.ranks.get_mut(rank as usize) else {
            return Err(OpError::NoSuchRank { rank, size });
        };
        if state.suspended {
            return Err(OpError::RankSuspended { rank });
        }
        if state.ended.is_some() {
            return Err(OpError::RankFinished { rank });
        }
        match op {
            Op::Enter { name, site } => (state.name, state.site) = (name.0, site),
            Op::Exit => (state.name, state.site) = (0, -1),
            Op::Finish if state.worked > Span::ZERO => {
                self.lan.post(rank, Op::Yield)?;
                let state = &mut self.ranks[rank as usize];
                (state.ending, state.suspended) = (true, true);
                return Ok(None);
            }
            _ => {}
        }
        let posted = self.lan.post(rank, op)?;
        let state = &mut self.ranks[rank as usize];
        match op {
            Op::Compute(span) | Op::Sleep(span) => {
                let start = state.went_on + state.worked;
                state.worked += span;
                let (name, site) = (state.name, state.site);
                self.spend(rank, start, span, Kind::Compute, (name, site));
            }
            Op::Wait { .. } | Op::Probe(_) | Op::ProbeNow(_) | Op::Yield | Op::Pause(_) => {
                state.suspended = true;
            }
            Op::Send { bytes, .. } => {
                self.counts.sent += 1;
                self.counts.longest = self.counts.longest.max(bytes);
                self.counts.held += 1;
            }
            Op::Finish => state.ended = Some(state.went_on),
            _ => {}
        }
        Ok(posted)
    }

    /// Lets time pass until ranks can go on: `false` if none will, because all have ended or wait for what
    /// will not come.
    pub fn step(&mut self) -> bool {
        self.resumed.clear();
        while self.resumed.is_empty() {
            if !self.lan.step() {
                return false;
            }
            for at in 0..self.lan.resumed().len() {
                let rank = self.lan.resumed()[at];
                self.goes_on(rank);
                if core::mem::take(&mut self.ranks[rank as usize].ending) {
                    // It waited for its own work alone.
                    let ended = self.lan.post(rank, Op::Finish);
                    debug_assert!(ended.is_ok(), "it runs");
                    self.ranks[rank as usize].ended = Some(self.lan.now());
                } else {
                    self.resumed.push(rank);
                }
            }
        }
        true
    }

    /// The ranks that the last step resumed, with their outcomes.
    pub fn resumed(&self) -> impl Iterator<Item = (u32, Outcome<'_>)> {
        self.resumed.iter().map(|&rank| (rank, self.lan.outcome_of(rank)))
    }

    /// Books the time since a rank went on last, but for its own work, which is booked.
    fn goes_on(&mut self, rank: u32) {
        let now = self.lan.now();
        let busy = self.lan.busy_of(rank);
        let state = &mut self.ranks[rank as usize];
        let since = (state.went_on + state.worked).min(now);
        // Where others had the processor, its own work took longer than it is.
        let worked = state.worked;
        let rest = now.saturating_since(since);
        let endpoint = (busy - state.busy).saturating_sub(worked).min(rest);
        let call = (state.name, state.site);
        (state.went_on, state.busy, state.worked, state.suspended) = (now, busy, Span::ZERO, false);
        self.spend(rank, since, endpoint, Kind::Endpoint, call);
        self.spend(rank, since + endpoint, rest - endpoint, Kind::Waiting, call);
        if let Outcome::Completed(completions) = self.lan.outcome_of(rank) {
            let received = completions.iter().filter(|one| one.message != one.request && !one.failed);
            let received = received.filter(|one| !one.cancelled).count() as u64;
            self.counts.delivered += received;
            self.counts.held = self.counts.held.saturating_sub(received);
        }
    }

    fn spend(&mut self, rank: u32, start: SimTime, span: Span, kind: Kind, (name, site): (u32, i32)) {
        self.ranks[rank as usize].totals[kind as usize] += span.as_ps();
        if let Some(timeline) = &mut self.timeline
            && span > Span::ZERO
            && rank < self.lan.size()
        {
            let (start_ps, end_ps) = (start.as_ps(), (start + span).as_ps());
            timeline.push(Interval { rank, start_ps, end_ps, kind, name, site, peer: -1, bytes: 0 });
        }
    }
}
