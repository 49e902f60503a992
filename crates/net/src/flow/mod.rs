//! Messages as fluid: flows that share the media on their paths max-min fairly.
//!
//! No flow can get more without another that has no more getting less (Bertsekas and Gallager, "Data Networks",
//! 2nd edition 1992, 6.5.2); a flow may have a ceiling of its own, the rate at which its source makes it. Shares
//! change when a flow begins or ends, at once: queues, losses and the time that a transport takes to find its
//! share are left out.
//!
//! Sans-I/O: [`Flows::start`] and [`Flows::handle_timer`] change which flows there are, [`Flows::settle`] finds the
//! shares once all changes of an instant are in, and [`Flows::poll_timer`] gives the timers to be scheduled.
//! Rates are whole bits per second and times whole picoseconds: a share is rounded down, an end up.

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use wiretwin_units::{BitRate, Bits, SimTime};

/// The number of a flow; given out again when the flow has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FlowId(pub u32);

/// Something whose rate flows share.
#[derive(Clone, Debug)]
struct Medium {
    rate: u64,
    /// The flows that cross it, each with the place of this medium on its path.
    flows: Vec<(u32, u32)>,
    /// Of the rate, what is not given out yet, and how many flows have none yet: used while shares are found.
    left: u64,
    open: u32,
    seen: u32,
    /// Flows that [`Flows::admit`] has made room for.
    room: u32,
}

/// A medium on a flow's path, and the flow's place in its list.
#[derive(Clone, Copy, Debug)]
struct Hop {
    medium: u32,
    place: u32,
}

#[derive(Clone, Debug)]
struct Flow {
    path: Vec<Hop>,
    /// What has still to be sent, in bits times picoseconds a second.
    remaining: u128,
    /// Bits per second, since `since`.
    rate: u64,
    since: u64,
    /// Bits per second that it does not exceed.
    ceiling: u64,
    /// When it ends if its rate stays, and the earliest of its timers that are scheduled; picoseconds.
    due: u64,
    scheduled: u64,
    client: u32,
    /// It has its share in the round of [`Flows::settle`] that is under way.
    is_fixed: bool,
    seen: u32,
}

impl Flow {
    /// An unused slot for a flow, with room for a path over this many media.
    fn with_room(media: usize) -> Self {
        Self {
            path: Vec::with_capacity(media.max(LONGEST_USUAL)),
            remaining: 0,
            rate: 0,
            since: 0,
            ceiling: 0,
            due: NEVER,
            scheduled: NEVER,
            client: 0,
            is_fixed: false,
            seen: 0,
        }
    }
}

/// Media on the longest path of a fat tree: a slot of any of its flows serves any other.
const LONGEST_USUAL: usize = 6;

/// Flows over media. See the module's description.
#[derive(Clone, Debug, Default)]
pub struct Flows {
    media: Vec<Medium>,
    flows: Vec<Flow>,
    free: Vec<u32>,
    active: usize,
    /// Media at which a flow has begun or ended since shares were found.
    changed: Vec<u32>,
    timers: Vec<(SimTime, FlowId)>,
    round: u32,
    /// Reused by each round.
    affected: Vec<u32>,
    ceilings: Vec<(u64, u32)>,
    least: BinaryHeap<Reverse<(u64, u32)>>,
}

/// Picoseconds in a second.
const SECOND: u128 = 1_000_000_000_000;
const NEVER: u64 = u64::MAX;

impl Flows {
    /// Media of these rates, numbered from 0, and no flows.
    #[must_use]
    pub fn new(rates: impl IntoIterator<Item = BitRate>) -> Self {
        let media = rates
            .into_iter()
            .map(|rate| Medium { rate: rate.get(), flows: Vec::new(), left: 0, open: 0, seen: 0, room: 0 })
            .collect();
        Self { media, ..Self::default() }
    }

    /// How many flows have begun and not ended.
    #[must_use]
    pub const fn active(&self) -> usize {
        self.active
    }

    /// Makes room for one more flow over these media at the same time, so that its beginning allocates nothing.
    ///
    /// # Panics
    /// Where a medium is not there.
    pub fn admit(&mut self, path: &[u32]) {
        for medium in path {
            let state = &mut self.media[*medium as usize];
            state.room += 1;
            state.flows.reserve((state.room as usize).saturating_sub(state.flows.len()));
        }
        self.free.push(self.flows.len() as u32);
        self.flows.push(Flow::with_room(path.len()));
        self.free.reserve(self.flows.len() - self.free.len());
    }

    /// Begins a flow of `load` over the media numbered in `path`, at most as fast as `ceiling`; `client` is given
    /// back when it ends. Shares are found anew by [`Flows::settle`], if that is called for.
    ///
    /// # Panics
    /// Where `path` is empty, or a medium is not there.
    pub fn start(
        &mut self,
        now: SimTime,
        path: &[u32],
        load: Bits,
        ceiling: Option<BitRate>,
        client: u32,
    ) -> FlowId {
        assert!(!path.is_empty(), "a flow crosses a medium at least");
        let id = self.free.pop().unwrap_or_else(|| {
            self.flows.push(Flow::with_room(path.len()));
            (self.flows.len() - 1) as u32
        });
        self.active += 1;
        let flow = &mut self.flows[id as usize];
        flow.remaining = u128::from(load.get().max(1)) * SECOND;
        (flow.rate, flow.since) = (0, now.as_ps());
        flow.ceiling = ceiling.map_or(u64::MAX, BitRate::get);
        (flow.due, flow.scheduled) = (NEVER, NEVER);
        flow.client = client;
        flow.path.clear();
        let mut alone = flow.ceiling;
        let mut is_alone = true;
        for (number, medium) in path.iter().enumerate() {
            let state = &mut self.media[*medium as usize];
            is_alone &= state.flows.is_empty();
            alone = alone.min(state.rate);
            flow.path.push(Hop { medium: *medium, place: state.flows.len() as u32 });
            state.flows.push((id, number as u32));
        }
        if is_alone {
            self.pace(id, alone, now.as_ps());
        } else {
            self.changed.extend_from_slice(path);
        }
        FlowId(id)
    }

    /// Whether flows have begun or ended so that shares have to be found anew before time goes on.
    #[must_use]
    pub fn is_unsettled(&self) -> bool {
        !self.changed.is_empty()
    }

    /// A timer to be scheduled; [`Flows::handle_timer`] is to be called then.
    pub fn poll_timer(&mut self) -> Option<(SimTime, FlowId)> {
        self.timers.pop()
    }

    /// A timer has run out: the client's number of the flow if that has ended.
    pub fn handle_timer(&mut self, now: SimTime, id: FlowId) -> Option<u32> {
        let flow = &mut self.flows[id.0 as usize];
        // Of another flow that had this number, or put off: the timer that counts is another one.
        if flow.scheduled != now.as_ps() {
            return None;
        }
        flow.scheduled = NEVER;
        if flow.due > now.as_ps() {
            if flow.due != NEVER {
                flow.scheduled = flow.due;
                self.timers.push((SimTime::from_ps(flow.due), id));
            }
            return None;
        }
        self.active -= 1;
        flow.due = NEVER;
        let client = flow.client;
        for number in 0..self.flows[id.0 as usize].path.len() {
            let Hop { medium, place } = self.flows[id.0 as usize].path[number];
            let state = &mut self.media[medium as usize];
            state.flows.swap_remove(place as usize);
            if let Some((moved, hop)) = state.flows.get(place as usize) {
                self.flows[*moved as usize].path[*hop as usize].place = place;
            }
            if !self.media[medium as usize].flows.is_empty() {
                self.changed.push(medium);
            }
        }
        self.free.push(id.0);
        Some(client)
    }

    /// The rate of a flow since the last change; for a flow that has not ended, and has one.
    #[must_use]
    pub fn rate(&self, id: FlowId) -> BitRate {
        BitRate::bit_s(self.flows[id.0 as usize].rate)
    }

    /// Finds the shares of all flows that the changes since the last call concern.
    pub fn settle(&mut self, now: SimTime) {
        self.find_concerned();
        let mut least = std::mem::take(&mut self.least);
        least.extend(self.affected.iter().map(|medium| {
            let state = &self.media[*medium as usize];
            Reverse((state.left / u64::from(state.open.max(1)), *medium))
        }));
        self.ceilings.sort_unstable();
        let ceilings = std::mem::take(&mut self.ceilings);
        let mut ceilings_left = ceilings.iter().peekable();
        while let Some(Reverse((share, medium))) = least.pop() {
            let state = &self.media[medium as usize];
            if state.open == 0 {
                continue;
            }
            // Shares only grow while flows with less are fixed.
            let now_is = state.left / u64::from(state.open);
            if now_is > share {
                least.push(Reverse((now_is, medium)));
                continue;
            }
            while ceilings_left.next_if(|(_, flow)| self.flows[*flow as usize].is_fixed).is_some() {}
            if let Some((ceiling, flow)) = ceilings_left.next_if(|(ceiling, _)| *ceiling <= share) {
                self.fix(*flow, *ceiling, now);
                least.push(Reverse((share, medium)));
                continue;
            }
            for number in 0..self.media[medium as usize].flows.len() {
                let (flow, _) = self.media[medium as usize].flows[number];
                if !self.flows[flow as usize].is_fixed {
                    // A medium of very many flows still lets each end.
                    self.fix(flow, share.max(1), now);
                }
            }
        }
        drop(ceilings_left);
        self.ceilings = ceilings;
        self.least = least;
    }

    /// Marks the media and flows that the changes concern: all that are joined to a changed medium by flows.
    fn find_concerned(&mut self) {
        self.round = self.round.wrapping_add(1);
        let round = self.round;
        self.affected.clear();
        self.ceilings.clear();
        for medium in self.changed.drain(..) {
            if std::mem::replace(&mut self.media[medium as usize].seen, round) != round {
                self.affected.push(medium);
            }
        }
        let mut next = 0;
        while let Some(medium) = self.affected.get(next) {
            next += 1;
            let state = &mut self.media[*medium as usize];
            state.left = state.rate;
            state.open = state.flows.len() as u32;
            for number in 0..state.open as usize {
                let (id, _) = self.media[self.affected[next - 1] as usize].flows[number];
                let flow = &mut self.flows[id as usize];
                if std::mem::replace(&mut flow.seen, round) == round {
                    continue;
                }
                flow.is_fixed = false;
                if flow.ceiling != u64::MAX {
                    self.ceilings.push((flow.ceiling, id));
                }
                for hop in &flow.path {
                    if std::mem::replace(&mut self.media[hop.medium as usize].seen, round) != round {
                        self.affected.push(hop.medium);
                    }
                }
            }
        }
    }

    fn fix(&mut self, id: u32, rate: u64, now: SimTime) {
        let flow = &mut self.flows[id as usize];
        flow.is_fixed = true;
        for hop in &flow.path {
            let state = &mut self.media[hop.medium as usize];
            state.left = state.left.saturating_sub(rate);
            state.open -= 1;
        }
        self.pace(id, rate, now.as_ps());
    }

    /// Lets a flow go on at `rate` from now.
    fn pace(&mut self, id: u32, rate: u64, now: u64) {
        let flow = &mut self.flows[id as usize];
        if flow.rate == rate {
            return;
        }
        let sent = u128::from(flow.rate) * u128::from(now - flow.since);
        flow.remaining = flow.remaining.saturating_sub(sent);
        (flow.rate, flow.since) = (rate, now);
        let lasts = match u64::try_from(flow.remaining) {
            Ok(remaining) => remaining.div_ceil(rate),
            Err(_) => u64::try_from(flow.remaining.div_ceil(u128::from(rate))).unwrap_or(NEVER),
        };
        flow.due = now.saturating_add(lasts).min(NEVER - 1);
        // A timer that comes too early finds that out by itself and is put off.
        if flow.due < flow.scheduled {
            flow.scheduled = flow.due;
            self.timers.push((SimTime::from_ps(flow.due), FlowId(id)));
        }
    }
}
