//! Ranks: [`Op`]s in, [`Completion`]s out, whatever carries their messages.
//!
//! Clients [`Ranks::post`] operations of a rank until they post one that suspends it (`Wait`, `Probe`,
//! `ProbeNow`, `Pause`, `Yield`, `Finish`), then [`Ranks::step`] until the rank is among [`Ranks::resumed`].
//! Payloads stay with the client, keyed by message; the world moves lengths.

mod local;

use serde_json::Value;
use wiretwin_engine::Digest;
use wiretwin_msg::library::Failure;
use wiretwin_msg::matching::Pattern;
use wiretwin_plan::{PlanError, read};
use wiretwin_record::timeline::Timeline;
use wiretwin_units::{Bytes, SimTime, Span};

use crate::json::At;
use crate::lan::{Config, Lan};
use crate::model::Model;
pub use crate::op::{Blocked, Completion, Counts, Found, NameId, Op, OpError, Outcome, RequestId, WaitMode};
use crate::world::World;
pub use local::LocalRanks;

/// Ranks, and what carries their messages.
#[allow(clippy::large_enum_variant, reason = "there is one of them, and the large one is the fast one")]
pub enum Ranks {
    /// Endpoints known by their costs, and a network between them.
    Costs(World),
    /// A local network, its hosts in every detail.
    Local(Box<LocalRanks>),
}

/// Calls the same method of either.
macro_rules! of_either {
    ($ranks:expr, $one:ident => $call:expr) => {
        match $ranks {
            Ranks::Costs($one) => $call,
            Ranks::Local($one) => $call,
        }
    };
}

impl Ranks {
    /// Ranks as a model in JSON has them: that of [`Model`], or `{"local": CONFIG}` with a local network. With
    /// `timeline`, intervals are recorded.
    ///
    /// # Errors
    /// [`PlanError`] for the first key that is wrong, and for another number of hosts than there are ranks.
    pub fn from_json(text: &str, ranks: u32, seed: u64, timeline: bool) -> Result<Self, PlanError> {
        let under = |error: PlanError| error.under("model");
        let value: Value = read::from_json(text).map_err(under)?;
        let Some(local) = value.get("local") else {
            return Ok(Self::Costs(World::new(
                Model::from_json(text, ranks).map_err(under)?,
                seed,
                timeline,
            )));
        };
        At::top(&value).object("local").map_err(under)?;
        let config = Config::from_json(&local.to_string()).map_err(|error| under(error.under("local")))?;
        if config.hosts.len() != ranks as usize {
            let allowed = format!("one for each of {ranks} ranks");
            return Err(PlanError::new("model.local.hosts", config.hosts.len(), allowed));
        }
        let lan = Lan::new(config, seed, false);
        Ok(Self::Local(Box::new(LocalRanks::new(lan, timeline))))
    }

    /// How many ranks there are.
    #[must_use]
    pub fn size(&self) -> u32 {
        of_either!(self, one => one.size())
    }

    /// How many processes may post: the ranks, and those of other stacks beside them.
    #[must_use]
    pub fn processes(&self) -> u32 {
        match self {
            Self::Costs(world) => world.size(),
            Self::Local(local) => local.processes(),
        }
    }

    /// Whether operations of a rank may have to wait for a processor, so that its clock shows them only later:
    /// post a `Yield` and step before looking at it.
    ///
    /// # Panics
    /// Where there is no such rank.
    #[must_use]
    pub fn is_behind(&self, rank: u32) -> bool {
        match self {
            Self::Costs(world) => world.is_behind(rank),
            Self::Local(_) => true,
        }
    }

    /// A rank's own clock; see [`Ranks::is_behind`].
    ///
    /// # Errors
    /// [`OpError`] where there is no such rank.
    pub fn rank_now(&self, rank: u32) -> Result<SimTime, OpError> {
        of_either!(self, one => one.rank_now(rank))
    }

    /// When a rank first had a core: not at once where it shares cores, and another came before it.
    ///
    /// # Errors
    /// [`OpError`] where there is no such rank.
    pub fn rank_begun(&self, rank: u32) -> Result<SimTime, OpError> {
        match self {
            Self::Costs(world) => world.rank_begun(rank),
            Self::Local(local) => local.rank_now(rank).map(|_| SimTime::ZERO),
        }
    }

    /// A rank's time so far by kind, in the order of [`Kind::ALL`](wiretwin_record::timeline::Kind::ALL); the sum
    /// is its clock.
    ///
    /// # Errors
    /// [`OpError`] where there is no such rank.
    pub fn totals(&self, rank: u32) -> Result<[Span; 4], OpError> {
        of_either!(self, one => one.totals(rank))
    }

    /// The number of a call's name, for [`Op::Enter`].
    pub fn name_id(&mut self, name: &str) -> NameId {
        of_either!(self, one => one.name_id(name))
    }

    /// The names of calls by number; 0 is empty.
    #[must_use]
    pub fn names(&self) -> &[String] {
        of_either!(self, one => one.names())
    }

    /// The recorded intervals, if they were asked for.
    #[must_use]
    pub const fn timeline(&self) -> Option<&Timeline> {
        of_either!(self, one => one.timeline())
    }

    /// How many messages were sent, delivered, and are still held.
    #[must_use]
    pub const fn counts(&self) -> Counts {
        of_either!(self, one => one.counts())
    }

    /// What its network has lost and marked, by name; nothing where messages are flows.
    #[must_use]
    pub fn congestion(&self) -> Vec<(&'static str, u64)> {
        match self {
            Self::Costs(world) => world.congestion(),
            Self::Local(local) => vec![("lost_cells", local.lan().losses().in_switches)],
        }
    }

    /// Equal runs have equal digests.
    #[must_use]
    pub fn digest(&self) -> Digest {
        of_either!(self, one => one.digest())
    }

    /// The ranks that are suspended, and for what.
    #[must_use]
    pub fn blocked(&self) -> Vec<Blocked> {
        of_either!(self, one => one.blocked())
    }

    /// Why a request of a rank's last wait has failed, if it has.
    #[must_use]
    pub fn failure(&self, rank: u32, request: RequestId) -> Option<Failure> {
        match self {
            Self::Costs(_) => None,
            Self::Local(local) => local.failure(rank, request),
        }
    }

    /// Posts an operation of `rank`. A send or a receive returns its request, others `None`.
    ///
    /// # Errors
    /// [`OpError`] names what is wrong with the operation; nothing happens then.
    #[inline]
    pub fn post(&mut self, rank: u32, op: Op<'_>) -> Result<Option<RequestId>, OpError> {
        of_either!(self, one => one.post(rank, op))
    }

    /// Posts a call of a rank as a whole: its beginning, receives (what they accept, the buffer's length), standard
    /// sends (to whom, with which tag, how long) and the wait for all. Their requests are added to `requests`, the
    /// receives first.
    ///
    /// # Errors
    /// As [`Ranks::post`]; what was posted before the operation that is wrong stays.
    pub fn post_exchange(
        &mut self,
        rank: u32,
        name: NameId,
        receives: impl Iterator<Item = (Pattern, Bytes)>,
        sends: impl Iterator<Item = (u32, u32, Bytes)>,
        requests: &mut Vec<RequestId>,
    ) -> Result<(), OpError> {
        let local = match self {
            Self::Costs(world) => return world.post_exchange(rank, name, receives, sends, requests),
            Self::Local(local) => local,
        };
        local.post(rank, Op::Enter { name, site: -1 })?;
        for (pattern, capacity) in receives {
            requests.extend(local.post(rank, Op::Recv { pattern, capacity })?);
        }
        for (to, tag, bytes) in sends {
            requests.extend(local.post(rank, Op::send(to, tag, bytes))?);
        }
        local.post(rank, Op::wait(requests))?;
        Ok(())
    }

    /// The world of ranks that are known by their costs, for what is not done on a local network.
    fn costs(&mut self, what: &'static str) -> Result<&mut World, OpError> {
        match self {
            Self::Costs(world) => Ok(world),
            Self::Local(_) => Err(OpError::Unsupported(what)),
        }
    }

    /// Lets go of a request, which no wait will name: it is forgotten as soon as it is complete.
    ///
    /// # Errors
    /// [`OpError`] if there is no such request of this rank, or the ranks live on a local network.
    pub fn let_go(&mut self, rank: u32, request: RequestId) -> Result<(), OpError> {
        self.costs("letting go of a request")?.let_go(rank, request)
    }

    /// Lets time pass for a rank that its client has kept: it waited for something outside the world until then.
    /// Nothing where the rank's clock is beyond that, or the rank shares cores or is suspended.
    ///
    /// # Errors
    /// [`OpError`] where the ranks live on a local network.
    pub fn let_pass(&mut self, rank: u32, until: SimTime) -> Result<(), OpError> {
        self.costs("a wait outside the world")?.let_pass(rank, until);
        Ok(())
    }

    /// Lets a rank go on that waits, or watches, for what will not come: the next step resumes it, with nothing.
    /// Only for after a step that found that nothing will happen any more, and before the next.
    ///
    /// # Errors
    /// [`OpError`] where the ranks live on a local network.
    pub fn rouse(&mut self, rank: u32) -> Result<(), OpError> {
        self.costs("to rouse a rank")?.rouse(rank);
        Ok(())
    }

    /// The same at a time, while other things happen; nothing where the rank does not wait then.
    ///
    /// # Errors
    /// As for [`Ranks::rouse`].
    pub fn rouse_at(&mut self, rank: u32, at: SimTime) -> Result<(), OpError> {
        self.costs("to rouse a rank")?.rouse_at(rank, at);
        Ok(())
    }

    /// Goes to the next instant at which a rank can go on: `false` if there is none, because all have
    /// finished or none ever will.
    pub fn step(&mut self) -> bool {
        of_either!(self, one => one.step())
    }

    /// The ranks that the last step resumed, and where the completions of each begin among all of the step.
    pub fn each_resumed(&self, mut each: impl FnMut(u32, u32)) {
        match self {
            Self::Costs(world) => world.each_resumed(each),
            Self::Local(local) => local.resumed().for_each(|(rank, _)| each(rank, 0)),
        }
    }

    /// A completion that the last step resumed a rank with.
    pub(crate) fn completion(&self, rank: u32, place: usize) -> Completion {
        match self {
            Self::Costs(world) => world.completions()[place],
            Self::Local(local) => local.lan().completions(rank)[place],
        }
    }

    /// The ranks that the last step resumed, with their outcomes.
    pub fn resumed(&self) -> impl Iterator<Item = (u32, Outcome<'_>)> {
        let (costs, local) = match self {
            Self::Costs(world) => (Some(world.resumed()), None),
            Self::Local(local) => (None, Some(local.resumed())),
        };
        costs.into_iter().flatten().chain(local.into_iter().flatten())
    }
}
