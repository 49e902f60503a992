//! An output port: what waits for a line (queue, scheduler, discard), and the transmitter that sends it.
//!
//! One line takes units (packets, frames or cells) from one port. A port has no events of its own. Where units leave as
//! they come, it says at once when the last bit of a unit will have left, or that it has no room for the unit. Where
//! they leave in another order, whose turn it was is found out when it matters: at the next offer, and when a unit
//! arrives at the end of the line, before which no later one can. Nothing that is offered afterwards could have
//! changed it.
//!
//! A [`Backlog`] is what waits alone, for a line whose transmitter stands elsewhere. A port says which units are to be
//! marked (ECN); the marks themselves, those of cells (EFCI) and what stops a port (PAUSE) are their owners' business.

use std::collections::VecDeque;
use std::fmt;

use serde::Deserialize;
use wiretwin_plan::Queue;
use wiretwin_units::{BitRate, Bytes, SimTime, Span, TooLong, Transmitter};

/// One of several ports: its place in their list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortId(pub u16);

impl fmt::Display for PortId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "port {}", self.0)
    }
}

/// What a port is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortSpec {
    /// Bits of units and of what each is wrapped in, per second.
    pub rate: BitRate,
    /// What the line carries for each unit besides the unit.
    pub framing: Bytes,
    /// For how long the line is silent after each unit.
    pub gap: Bytes,
    /// In what order units leave, and how many may wait.
    pub discipline: Discipline,
    /// Units that leave as they come, and whose first bit does so later than this, are marked (ECN, RFC 3168);
    /// [`Span::MAX`] for never.
    pub marks_after: Span,
}

/// In what order units leave a port, and how many may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Discipline {
    /// As they come; a unit for which the queue has no room is lost. `None` for a queue that has always room.
    Fifo(Option<Queue>),
    /// First in, first out; at most this many bytes wait behind the unit being sent.
    FifoBehind(Bytes),
    /// As a scheduler says, behind the unit that is being sent.
    Scheduled(Scheduler, Room),
}

/// Which of the units that wait is sent next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduler {
    /// The one that came first.
    Fifo,
    /// One of the lowest level that has any, as they came; the level of a unit stands here by the unit's class.
    Priority(&'static [u8]),
    /// Flows that have units waiting send one each in turns; a flow's own leave as they come.
    RoundRobin,
    /// Classes that have units waiting send bytes in proportion to their weights, in turns: deficit round robin (Shreedhar
    /// and Varghese 1996). The weight of a class stands at its place; a weight of 0 ends the list.
    Weighted([u8; MOST_WEIGHTS]),
}

/// The most classes that have weights.
pub const MOST_WEIGHTS: usize = 8;
/// Choice: what a class may send in its turn, for each unit of its weight; a full frame of Ethernet.
const QUANTUM: u32 = 1518;

/// How many units may wait, the one being sent apart, and which is lost where there is no room for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// There always is.
    Any,
    /// So many units of each level or flow; who comes is lost (tail drop).
    Each(u32),
    /// So many bytes together; who comes is lost.
    Bytes(Bytes),
    /// So many bytes of each level or class; who comes is lost.
    EachBytes(Bytes),
    /// So many units together. Units of the last class may be lost for those of others.
    Shared(u32, PushOut),
}

/// Which unit of the last class leaves a queue for another that finds no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PushOut {
    /// The one that came last.
    Last,
    /// The one that came first.
    First,
    /// None: who comes is lost.
    None,
}

/// What becomes of a unit that is offered to a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken<U = u32> {
    /// Its last bit will have left at this time.
    Sent(SimTime),
    /// So it will, and the unit is to be marked if it can be.
    Marked(SimTime),
    /// Its turn is not known yet: [`Port::next`] tells of it.
    Waits,
    /// So it is, and this one is lost for it.
    Instead(U),
    /// There is no room for it.
    Lost,
}

/// What a port has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortCounters {
    /// Units that were offered.
    pub offered: u64,
    /// Of these, units that found no room or were lost for another.
    pub dropped: u64,
    /// Bytes of the units that were taken, without framing.
    pub bytes: Bytes,
    /// The longest time for which a unit that was taken waits until its first bit leaves.
    pub longest_wait: Span,
}

/// A unit that waits.
#[derive(Clone, Copy, Debug)]
struct Entry<U> {
    unit: U,
    /// Its length; [`GONE`] where another has its place.
    bytes: u32,
}

const GONE: u32 = u32::MAX;

/// Units that wait for a line, in order: queue, scheduler and discard of a port.
#[derive(Clone, Debug)]
pub struct Backlog<U> {
    scheduler: Scheduler,
    room: Room,
    /// By level or flow.
    lanes: Vec<VecDeque<Entry<U>>>,
    /// The flows that have some, the one whose turn is next in front.
    turns: VecDeque<u32>,
    /// What each class may still send in its turn, where classes have weights.
    credit: Vec<u32>,
    waiting: usize,
    bytes: Bytes,
    /// Of each level or class, where each has room of its own.
    lane_bytes: Vec<Bytes>,
    longest: usize,
    /// The number of the first unit of the last lane, counted from the beginning.
    head: u64,
    /// The numbers of the units of the last class that may be lost for others.
    yielding: VecDeque<u64>,
}

impl<U: Copy> Backlog<U> {
    /// Nothing waits.
    #[must_use]
    pub fn new(scheduler: Scheduler, room: Room) -> Self {
        let lanes = match scheduler {
            Scheduler::Fifo => 1,
            Scheduler::Priority(levels) => levels.iter().max().map_or(1, |level| usize::from(*level) + 1),
            Scheduler::RoundRobin => 0,
            Scheduler::Weighted(weights) => {
                weights.iter().position(|&weight| weight == 0).unwrap_or(MOST_WEIGHTS)
            }
        };
        Self {
            scheduler,
            room,
            lanes: (0..lanes).map(|_| VecDeque::new()).collect(),
            turns: VecDeque::new(),
            credit: vec![0; lanes],
            waiting: 0,
            bytes: Bytes::ZERO,
            lane_bytes: vec![Bytes::ZERO; lanes],
            longest: 0,
            head: 0,
            yielding: VecDeque::new(),
        }
    }

    /// How many units wait.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.waiting
    }

    /// Whether none does.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    /// The most units that ever shared a room: those of one level or flow where each has its own.
    #[must_use]
    pub const fn longest(&self) -> usize {
        self.longest
    }

    /// The units that wait, by level or flow.
    pub fn iter(&self) -> impl Iterator<Item = U> + '_ {
        self.lanes.iter().flatten().filter(|entry| entry.bytes != GONE).map(|entry| entry.unit)
    }

    /// Adds a flow, where flows send in turns; how many there were.
    pub fn flow(&mut self) -> u32 {
        if self.scheduler != Scheduler::RoundRobin {
            return 0;
        }
        self.lanes.push(VecDeque::new());
        self.lane_bytes.push(Bytes::ZERO);
        self.lanes.len() as u32 - 1
    }

    /// Takes a unit of a class, or of a flow where those send in turns: it waits, or another or itself is lost.
    #[inline]
    pub fn offer(&mut self, class: u32, bytes: u32, unit: U) -> Taken<U> {
        let lane = match self.scheduler {
            Scheduler::Fifo => 0,
            Scheduler::Priority(levels) => usize::from(levels[class as usize]),
            Scheduler::RoundRobin | Scheduler::Weighted(_) => class as usize,
        };
        let mut yields = false;
        let mut lost = None;
        match self.room {
            Room::Any => {}
            Room::Each(most) if self.lanes[lane].len() < most as usize => {}
            Room::Bytes(most) if self.bytes + Bytes::new(bytes.into()) <= most => {}
            Room::EachBytes(most) if self.lane_bytes[lane] + Bytes::new(bytes.into()) <= most => {}
            Room::Each(_) | Room::Bytes(_) | Room::EachBytes(_) => return Taken::Lost,
            Room::Shared(most, push_out) => {
                let Scheduler::Priority(levels) = self.scheduler else {
                    unreachable!("only classes share a room")
                };
                yields = class as usize + 1 == levels.len();
                if self.waiting >= most as usize {
                    let place = match push_out {
                        PushOut::Last if !yields => self.yielding.pop_back(),
                        PushOut::First if !yields => self.yielding.pop_front(),
                        _ => None,
                    };
                    let Some(place) = place else { return Taken::Lost };
                    lost = Some(self.give_up(place));
                }
                yields &= push_out != PushOut::None;
            }
        }
        let queue = &mut self.lanes[lane];
        if yields {
            self.yielding.push_back(self.head + queue.len() as u64);
        }
        if queue.is_empty() && matches!(self.scheduler, Scheduler::RoundRobin | Scheduler::Weighted(_)) {
            self.turns.push_back(class);
        }
        queue.push_back(Entry { unit, bytes });
        self.waiting += 1;
        self.bytes += Bytes::new(bytes.into());
        self.lane_bytes[lane] += Bytes::new(bytes.into());
        let shared =
            if matches!(self.room, Room::Each(_) | Room::EachBytes(_)) { queue.len() } else { self.waiting };
        self.longest = self.longest.max(shared);
        lost.map_or(Taken::Waits, Taken::Instead)
    }

    /// Takes a unit of the last lane out of its place.
    fn give_up(&mut self, place: u64) -> U {
        let lane = self.lanes.last_mut().expect("a place is one of a lane");
        let entry = &mut lane[(place - self.head) as usize];
        self.waiting -= 1;
        self.bytes -= Bytes::new(entry.bytes.into());
        if let Some(bytes) = self.lane_bytes.last_mut() {
            *bytes -= Bytes::new(entry.bytes.into());
        }
        entry.bytes = GONE;
        entry.unit
    }

    /// The unit whose turn is next, and its length.
    #[inline]
    pub fn pop(&mut self) -> Option<(U, u32)> {
        if self.waiting == 0 {
            return None;
        }
        let lane = match self.scheduler {
            Scheduler::Fifo => 0,
            Scheduler::Priority(_) => self.lanes.iter().position(|lane| !lane.is_empty())?,
            Scheduler::RoundRobin => self.turns.pop_front()? as usize,
            Scheduler::Weighted(weights) => self.turn(&weights),
        };
        loop {
            let queue = &mut self.lanes[lane];
            let Entry { unit, bytes } = queue.pop_front()?;
            if matches!(self.room, Room::Shared(..)) && lane + 1 == self.lanes.len() {
                let number = self.head;
                self.head += 1;
                if bytes == GONE {
                    continue;
                }
                if self.yielding.front() == Some(&number) {
                    self.yielding.pop_front();
                }
            }
            if self.scheduler == Scheduler::RoundRobin && !self.lanes[lane].is_empty() {
                self.turns.push_back(lane as u32);
            }
            self.waiting -= 1;
            self.bytes -= Bytes::new(bytes.into());
            self.lane_bytes[lane] -= Bytes::new(bytes.into());
            return Some((unit, bytes));
        }
    }

    /// The class whose turn it is, of those that have units waiting; it has sent the first of them.
    fn turn(&mut self, weights: &[u8; MOST_WEIGHTS]) -> usize {
        loop {
            let lane = self.turns[0] as usize;
            let bytes = self.lanes[lane][0].bytes;
            let is_its = self.credit[lane] >= bytes;
            if is_its {
                self.credit[lane] -= bytes;
                if self.lanes[lane].len() > 1 {
                    return lane;
                }
                // What it has not used is not kept for later.
                self.credit[lane] = 0;
                self.turns.pop_front();
            } else {
                self.turns.rotate_left(1);
            }
            if let Some(&next) = self.turns.front() {
                self.credit[next as usize] += u32::from(weights[next as usize]) * QUANTUM;
            }
            if is_its {
                return lane;
            }
        }
    }
}

/// What a port keeps of the units that wait.
#[derive(Clone, Debug)]
enum Queued<U> {
    /// Nothing: they leave as they come, and there is always room.
    Never,
    /// By counting: fewer than `most` units are waiting or being sent. The times at which those leave are kept.
    Units { most: usize, leaving: VecDeque<SimTime> },
    /// By time: what waits and the unit itself take the line no longer than this.
    Bytes { most: Span },
    /// Of the units that wait behind the one that is being sent: when each will begin, and its bytes.
    Behind { most: Bytes, held: Bytes, waiting: VecDeque<(SimTime, u32)> },
    /// The units, and when each came.
    Backlog(Box<Backlog<(SimTime, U)>>),
}

/// An output port. See the module's description.
#[derive(Clone, Debug)]
pub struct Port<U = u32> {
    transmitter: Transmitter,
    framing: Bytes,
    gap: Bytes,
    marks_after: Span,
    queued: Queued<U>,
    counters: PortCounters,
}

impl<U: Copy> Port<U> {
    /// A port at which nothing waits.
    #[must_use]
    pub fn new(spec: PortSpec) -> Self {
        let queued = match spec.discipline {
            Discipline::Fifo(None) => Queued::Never,
            Discipline::Fifo(Some(Queue::Packets(most) | Queue::Cells(most))) => {
                Queued::Units { most: most as usize, leaving: VecDeque::new() }
            }
            Discipline::Fifo(Some(Queue::Bytes(most))) => {
                Queued::Bytes { most: spec.rate.time_for(most.bits()).unwrap_or(Span::MAX) }
            }
            Discipline::FifoBehind(most) => {
                Queued::Behind { most, held: Bytes::ZERO, waiting: VecDeque::new() }
            }
            Discipline::Scheduled(scheduler, room) => {
                Queued::Backlog(Box::new(Backlog::new(scheduler, room)))
            }
        };
        Self {
            transmitter: Transmitter::new(spec.rate),
            framing: spec.framing,
            gap: spec.gap,
            marks_after: spec.marks_after,
            queued,
            counters: PortCounters::default(),
        }
    }

    /// Adds a flow; all units are of one flow where flows do not send in turns.
    pub fn flow(&mut self) -> u32 {
        match &mut self.queued {
            Queued::Backlog(backlog) => backlog.flow(),
            _ => 0,
        }
    }

    /// Takes a unit of a class or flow at `now`; [`Port::next`] will tell of it if it waits. Units are offered in the
    /// order of time, each after [`Port::next`] has told of all that left before.
    ///
    /// A unit that would still be on the line at the end of time, 213 days after the start, finds no room.
    ///
    /// # Panics
    /// For a flow that has not been added.
    #[inline(always)] // for each unit on each line
    pub fn take(&mut self, now: SimTime, class: u32, unit: U, bytes: u32) -> Taken<U> {
        self.counters.offered += 1;
        match &mut self.queued {
            Queued::Never => {}
            Queued::Units { most, leaving } => {
                while leaving.front().is_some_and(|left| *left <= now) {
                    leaving.pop_front();
                }
                if leaving.len() >= *most {
                    self.counters.dropped += 1;
                    return Taken::Lost;
                }
            }
            Queued::Bytes { most } => {
                let bits = (Bytes::new(u64::from(bytes)) + self.framing).bits();
                if self.transmitter.would_send(now, bits).is_ok_and(|sent| sent.end - now > *most) {
                    self.counters.dropped += 1;
                    return Taken::Lost;
                }
            }
            Queued::Behind { most, held, waiting } => {
                while let Some(&(start, bytes)) = waiting.front()
                    && start <= now
                {
                    waiting.pop_front();
                    *held -= Bytes::new(bytes.into());
                }
                if self.transmitter.is_busy(now) {
                    let needed = *held + Bytes::new(bytes.into());
                    if needed > *most {
                        self.counters.dropped += 1;
                        return Taken::Lost;
                    }
                    *held = needed;
                    waiting.push_back((self.transmitter.free_at(), bytes));
                }
            }
            Queued::Backlog(backlog) => {
                if !backlog.is_empty() || self.transmitter.is_busy(now) {
                    return match backlog.offer(class, bytes, (now, unit)) {
                        Taken::Waits => Taken::Waits,
                        Taken::Instead((_, other)) => {
                            self.counters.dropped += 1;
                            Taken::Instead(other)
                        }
                        _ => {
                            self.counters.dropped += 1;
                            Taken::Lost
                        }
                    };
                }
            }
        }
        let Ok((wait, end)) = self.send(now, now, bytes) else {
            self.counters.dropped += 1;
            return Taken::Lost;
        };
        if let Queued::Units { leaving, .. } = &mut self.queued {
            leaving.push_back(end);
        }
        if wait > self.marks_after {
            return Taken::Marked(end);
        }
        Taken::Sent(end)
    }

    /// A unit that waited and whose turn has come at `now` or before, and when its last bit will have left.
    #[inline]
    pub fn next(&mut self, now: SimTime) -> Option<(U, SimTime)> {
        if self.transmitter.free_at() > now || !self.has_waiting() {
            return None;
        }
        self.send_waiting()
    }

    /// Sends the unit whose turn is next.
    fn send_waiting(&mut self) -> Option<(U, SimTime)> {
        let Queued::Backlog(backlog) = &mut self.queued else { return None };
        let ((came, unit), bytes) = backlog.pop()?;
        let (_, end) = self.send(came, self.transmitter.free_at(), bytes).expect(LASTS);
        Some((unit, end))
    }

    /// Sends a unit from `start` on, before which the line is busy or nothing waits: for how long it waits, and when its
    /// last bit will have left.
    #[inline(always)] // for each unit on each line
    fn send(&mut self, came: SimTime, start: SimTime, bytes: u32) -> Result<(Span, SimTime), TooLong> {
        let bytes = Bytes::new(u64::from(bytes));
        let sent = self.transmitter.send(start, (bytes + self.framing).bits())?;
        if self.gap > Bytes::ZERO {
            self.transmitter.send(sent.end, self.gap.bits())?;
        }
        self.counters.bytes += bytes;
        let wait = sent.start - came;
        if wait > self.counters.longest_wait {
            self.counters.longest_wait = wait;
        }
        Ok((wait, sent.end))
    }

    /// When the line is free for the next unit: a time that has passed where nothing is sent.
    #[must_use]
    pub const fn free_at(&self) -> SimTime {
        self.transmitter.free_at()
    }

    /// Whether units wait behind the one that is being sent, where they leave as a scheduler says.
    #[must_use]
    #[inline]
    pub fn has_waiting(&self) -> bool {
        matches!(&self.queued, Queued::Backlog(backlog) if !backlog.is_empty())
    }

    /// What the port has counted.
    #[must_use]
    pub const fn counters(&self) -> PortCounters {
        self.counters
    }
}

const LASTS: &str = "a run ends within 213 days";

#[cfg(test)]
mod tests {
    use super::*;

    /// A byte takes a picosecond, a unit of 10 bytes with its framing 12.
    fn port_spec(discipline: Discipline) -> PortSpec {
        let rate = BitRate::bit_s(8_000_000_000_000);
        PortSpec { rate, framing: Bytes::new(2), gap: Bytes::ZERO, discipline, marks_after: Span::MAX }
    }

    fn port(discipline: Discipline) -> Port {
        Port::new(port_spec(discipline))
    }

    fn at(ps: u64) -> SimTime {
        SimTime::from_ps(ps)
    }

    fn sent(ps: u64) -> Taken {
        Taken::Sent(at(ps))
    }

    #[test]
    fn a_unit_leaves_after_those_before_it_and_an_idle_port_sends_at_once() {
        let mut port = port(Discipline::Fifo(None));
        assert_eq!(port.take(at(100), 0, 0, 10), sent(112));
        assert_eq!(port.take(at(105), 0, 1, 10), sent(124));
        assert_eq!(port.take(at(500), 0, 2, 10), sent(512));
        let counters = port.counters();
        assert_eq!((counters.offered, counters.dropped, counters.bytes), (3, 0, Bytes::new(30)));
        assert_eq!(counters.longest_wait, Span::from_ps(7));
    }

    #[test]
    fn a_queue_of_two_units_holds_the_one_being_sent_and_one_more() {
        let mut port = port(Discipline::Fifo(Some(Queue::Packets(2))));
        assert_eq!(port.take(at(0), 0, 0, 10), sent(12));
        assert_eq!(port.take(at(0), 0, 1, 10), sent(24));
        assert_eq!(port.take(at(11), 0, 2, 10), Taken::Lost);
        assert_eq!(port.take(at(12), 0, 3, 10), sent(36), "one has left");
        assert_eq!(port.counters().dropped, 1);
    }

    #[test]
    fn a_queue_of_bytes_counts_framing_and_what_is_left_of_the_unit_being_sent() {
        let mut port = port(Discipline::Fifo(Some(Queue::Bytes(Bytes::new(24)))));
        assert_eq!(port.take(at(0), 0, 0, 10), sent(12));
        assert_eq!(port.take(at(0), 0, 1, 10), sent(24));
        assert_eq!(port.take(at(0), 0, 2, 1), Taken::Lost);
        assert_eq!(port.take(at(3), 0, 3, 1), sent(27), "three bytes have left");
        assert_eq!(port.take(at(3), 0, 4, 1), Taken::Lost);
    }

    #[test]
    fn a_unit_that_waits_longer_than_the_threshold_is_marked_and_sent() {
        let spec = port_spec(Discipline::Fifo(Some(Queue::Packets(3))));
        let mut port = Port::new(PortSpec { marks_after: Span::from_ps(12), ..spec });
        assert_eq!([port.take(at(0), 0, 0, 10), port.take(at(0), 0, 1, 10)], [sent(12), sent(24)]);
        assert_eq!(port.take(at(0), 0, 2, 10), Taken::Marked(at(36)), "two units are before it");
        assert_eq!(port.take(at(0), 0, 3, 10), Taken::Lost);
        assert_eq!(port.take(at(24), 0, 4, 10), sent(48));
    }

    #[test]
    fn the_unit_that_is_sent_and_the_silence_after_it_take_no_room_behind_it() {
        let discipline = Discipline::FifoBehind(Bytes::new(24));
        let mut port = Port::new(PortSpec { gap: Bytes::new(3), ..port_spec(discipline) });
        assert_eq!(port.take(at(0), 0, 0, 30), sent(32), "longer than the room");
        assert_eq!(port.take(at(34), 0, 1, 14), sent(51), "behind the silence");
        assert_eq!(port.take(at(34), 0, 2, 11), Taken::Lost);
        assert_eq!(port.take(at(34), 0, 3, 10), sent(66));
        assert_eq!(port.take(at(35), 0, 4, 14), sent(85), "one has begun");
        assert_eq!(port.take(SimTime::MAX, 0, 5, 10), Taken::Lost, "it would never have left");
        assert_eq!(port.counters().dropped, 2);
    }

    #[test]
    fn levels_have_rooms_of_their_own_and_the_lowest_goes_first() {
        let mut backlog = Backlog::new(Scheduler::Priority(&[0, 1]), Room::Each(2));
        let mut offer = |class, unit| backlog.offer(class, 0, unit);
        assert_eq!([offer(1, 'a'), offer(1, 'b'), offer(1, 'c')], [Taken::Waits, Taken::Waits, Taken::Lost]);
        assert_eq!(offer(0, 'd'), Taken::Waits);
        assert_eq!((backlog.len(), backlog.longest()), (3, 2));
        assert_eq!(backlog.iter().collect::<String>(), "dab");
        let left: String = std::iter::from_fn(|| backlog.pop()).map(|(unit, _)| unit).collect();
        assert_eq!((left.as_str(), backlog.is_empty()), ("dab", true));
    }

    #[test]
    fn classes_send_bytes_by_their_weights_whatever_the_length_of_their_units() {
        let weights = [3, 1, 0, 0, 0, 0, 0, 0];
        let mut backlog = Backlog::new(Scheduler::Weighted(weights), Room::EachBytes(Bytes::new(1 << 20)));
        for _ in 0..600 {
            assert_eq!(backlog.offer(0, 500, 0), Taken::Waits);
        }
        for _ in 0..200 {
            assert_eq!(backlog.offer(1, 1500, 1), Taken::Waits);
        }
        let mut left = [0; 2];
        for _ in 0..300 {
            let (class, bytes) = backlog.pop().expect("more wait");
            left[class] += bytes;
        }
        let share = f64::from(left[0]) / f64::from(left[0] + left[1]);
        assert!((0.74..0.76).contains(&share), "{share}");
        // Alone, a class has the line, and begins anew when the other comes.
        while backlog.len() > 1 {
            backlog.pop();
        }
        assert_eq!(backlog.pop().map(|(_, bytes)| bytes).into_iter().count(), 1);
        assert_eq!(backlog.offer(1, 1500, 1), Taken::Waits);
        assert_eq!((backlog.pop(), backlog.pop()), (Some((1, 1500)), None));
    }

    #[test]
    fn a_class_that_has_filled_its_room_takes_none_of_another() {
        let room = Room::EachBytes(Bytes::new(10));
        let mut backlog = Backlog::new(Scheduler::Priority(&[0, 1]), room);
        assert_eq!([backlog.offer(1, 6, 'a'), backlog.offer(1, 5, 'b')], [Taken::Waits, Taken::Lost]);
        assert_eq!(backlog.offer(0, 10, 'c'), Taken::Waits);
        assert_eq!((backlog.pop(), backlog.offer(0, 10, 'd')), (Some(('c', 10)), Taken::Waits));
    }

    #[test]
    fn a_room_of_bytes_is_free_for_as_many_as_have_left() {
        let mut backlog = Backlog::new(Scheduler::Fifo, Room::Bytes(Bytes::new(10)));
        assert_eq!([backlog.offer(0, 6, 'a'), backlog.offer(0, 5, 'b')], [Taken::Waits, Taken::Lost]);
        assert_eq!([backlog.offer(0, 4, 'c'), backlog.offer(0, 1, 'd')], [Taken::Waits, Taken::Lost]);
        assert_eq!(backlog.pop(), Some(('a', 6)));
        assert_eq!(backlog.offer(0, 6, 'e'), Taken::Waits);
    }

    #[test]
    fn a_unit_of_another_flow_does_not_wait_for_a_burst() {
        let mut port = port(Discipline::Scheduled(Scheduler::RoundRobin, Room::Any));
        let (burst, other) = (port.flow(), port.flow());
        assert_eq!(port.take(at(0), burst, 0, 10), sent(12));
        for unit in 1..4 {
            assert_eq!(port.take(at(0), burst, unit, 10), Taken::Waits);
        }
        // Looked at late, the turns are those of the time at which the line was free.
        assert_eq!(port.next(at(13)), Some((1, at(24))));
        assert_eq!(port.next(at(13)), None);
        assert_eq!(port.take(at(13), other, 9, 0), Taken::Waits);
        let left: Vec<_> = std::iter::from_fn(|| port.next(at(1_000))).collect();
        assert_eq!(left, [(2, at(36)), (9, at(38)), (3, at(50))]);
        let counters = port.counters();
        assert_eq!((counters.offered, counters.bytes), (5, Bytes::new(40)));
        assert_eq!(counters.longest_wait, Span::from_ps(38));
        assert_eq!(port.take(at(60), other, 1, 10), sent(72), "an idle line takes what comes");
    }
}
