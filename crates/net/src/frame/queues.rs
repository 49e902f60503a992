//! Queues by class at the outputs of a switch, and background load on a class.
//!
//! A class is what a frame's differentiated services codepoint (RFC 2474) says; what is no IP packet has none and
//! goes with the last queue. Background load has no frames that anybody could receive: it takes its place in a
//! queue and its time on the line, and is gone.

use wiretwin_engine::{Slab, Stream};
use wiretwin_plan::PlanError;
use wiretwin_units::{BitRate, Bytes, SimTime, Span};

use super::{CHECK, Frame, GAP, PREAMBLE, PortId, SHORTEST};
use crate::load::{Generator, Law};
use crate::port::{self, Discipline, MOST_WEIGHTS, PortSpec, Room, Scheduler, Taken};

/// The most queues of an output.
pub const MOST_QUEUES: usize = MOST_WEIGHTS;
/// Codepoints there are.
const CODEPOINTS: usize = 64;
const LEVELS: [u8; MOST_QUEUES] = [0, 1, 2, 3, 4, 5, 6, 7];

/// Which queue a frame waits in, and which is served next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queues {
    scheduler: Scheduler,
    of: [u8; CODEPOINTS],
    count: u8,
}

impl Queues {
    /// A queue for each of these codepoints, of which an earlier one is served first, and a last one for all others.
    ///
    /// # Errors
    /// [`PlanError`]: a codepoint twice or beyond 63, none or too many.
    pub fn strict_priority(codepoints: &[u8]) -> Result<Self, PlanError> {
        let of = assign(codepoints)?;
        let scheduler = Scheduler::Priority(&LEVELS[..=codepoints.len()]);
        Ok(Self { scheduler, of, count: codepoints.len() as u8 + 1 })
    }

    /// A queue for each of these codepoints with its weight, and one of weight `others` for all others: those that are
    /// not empty share the line in proportion to their weights.
    ///
    /// # Errors
    /// [`PlanError`]: a codepoint twice or beyond 63, none or too many, a weight of 0.
    pub fn weighted(codepoints: &[(u8, u8)], others: u8) -> Result<Self, PlanError> {
        let of = assign(&codepoints.iter().map(|&(codepoint, _)| codepoint).collect::<Vec<_>>())?;
        let mut weights = [0; MOST_QUEUES];
        let given = codepoints.iter().map(|&(_, weight)| weight).chain([others]);
        for (place, weight) in weights.iter_mut().zip(given) {
            if weight == 0 {
                return Err(PlanError::new("weights", weight, "1 to 255"));
            }
            *place = weight;
        }
        Ok(Self { scheduler: Scheduler::Weighted(weights), of, count: codepoints.len() as u8 + 1 })
    }

    /// The queue of a class.
    fn of(&self, dscp: Option<u8>) -> usize {
        let last = self.count - 1;
        usize::from(dscp.map_or(last, |dscp| self.of[usize::from(dscp) % CODEPOINTS]))
    }
}

fn assign(codepoints: &[u8]) -> Result<[u8; CODEPOINTS], PlanError> {
    if codepoints.is_empty() || codepoints.len() >= MOST_QUEUES {
        let allowed = format!("1 to {} codepoints", MOST_QUEUES - 1);
        return Err(PlanError::new("codepoints", codepoints.len(), allowed));
    }
    let last = codepoints.len() as u8;
    let mut of = [last; CODEPOINTS];
    for (queue, &codepoint) in (0..).zip(codepoints) {
        match of.get_mut(usize::from(codepoint)) {
            Some(place) if *place == last => *place = queue,
            _ => return Err(PlanError::new("codepoint", codepoint, "0 to 63, each once")),
        }
    }
    Ok(of)
}

/// Background load on a class, at each output or at one: sources that go on and off by themselves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Background {
    /// The class that the load belongs to, a DSCP from 0 to 63.
    pub dscp: u8,
    /// The port whose output has it; each has if absent.
    pub to: Option<PortId>,
    /// What the sources of an output offer on average, as a share of its line.
    pub load: f64,
    /// How many sources an output has.
    pub sources: u16,
    /// The rate of a source that is on, over its mean rate; 1 for one that always is.
    pub peak_over_mean: f64,
    /// For how long one is on, on average.
    pub on: Span,
    /// The length of a frame, header and data.
    pub frame: Bytes,
}

impl Background {
    /// Sources as in the simulated experiments of Vila-Sallent and Solé-Pareta (1998): ten, with a peak of twice their
    /// mean. Choice: on for 100 ms, in full frames.
    #[must_use]
    pub const fn of(dscp: u8, load: f64) -> Self {
        let (on, frame) = (Span::from_ms(100), Bytes::new(1514));
        Self { dscp, to: None, load, sources: 10, peak_over_mean: 2.0, on, frame }
    }

    /// Whether an output has any.
    fn is_at(&self, port: usize) -> bool {
        self.load > 0.0 && self.to.is_none_or(|to| usize::from(to.0) == port)
    }

    fn law(&self, rate: BitRate) -> Result<Law, PlanError> {
        let within = self.load <= 2.0 && self.sources > 0 && self.peak_over_mean >= 1.0;
        let place = Bytes::new(self.frame.get().max(SHORTEST) + PREAMBLE + CHECK + GAP);
        let alone = rate.time_for(place.bits());
        let Some(alone) = alone.filter(|_| within && self.on > Span::ZERO) else {
            let allowed = "a load of 0 to 2 by one source or more, whose peak is its mean or more";
            return Err(PlanError::new("background", self.load, allowed));
        };
        let peak = self.load / f64::from(self.sources) * self.peak_over_mean;
        let interval = Span::from_ps((alone.as_ps() as f64 / peak) as u64);
        let off = Span::from_ps((self.on.as_ps() as f64 * (self.peak_over_mean - 1.0)) as u64);
        Ok(if off == Span::ZERO {
            Law::Constant { interval }
        } else {
            Law::OnOff { interval, on: self.on, off }
        })
    }
}

/// What a queue of an output has counted, in frames where not said otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueCounters {
    /// Put on the line.
    pub sent: u64,
    /// The same in octets, check sequences apart.
    pub sent_bytes: u64,
    /// Lost because the queue was full.
    pub drops: u64,
    /// Of background load, put on the line.
    pub background: u64,
    /// Of background load, lost because the queue was full.
    pub background_drops: u64,
}

/// Background load has no frame.
const NOBODY: u32 = u32::MAX;

/// A frame that has a time at which its last bit leaves.
pub(super) struct Leaving<P> {
    pub from: PortId,
    pub frame: Frame<P>,
    pub at: SimTime,
}

struct Output<P> {
    port: port::Port<(u32, u8)>,
    waiting: Slab<(PortId, Frame<P>)>,
    sources: Vec<(Generator, u8, Bytes)>,
    /// Its turn is among the steps to come.
    has_turn: bool,
    counters: Vec<QueueCounters>,
}

/// The outputs of a switch with queues by class.
pub(super) struct Outputs<P> {
    queues: Option<Queues>,
    outputs: Vec<Output<P>>,
}

impl<P> Outputs<P> {
    pub(super) fn new(
        ports: usize,
        (rate, room, seed): (BitRate, Bytes, u64),
        queues: Option<Queues>,
        background: &[Background],
    ) -> Result<Self, PlanError> {
        let scheduler = queues.map_or(Scheduler::Fifo, |queues| queues.scheduler);
        let count = queues.map_or(1, |queues| usize::from(queues.count));
        let discipline = Discipline::Scheduled(scheduler, Room::EachBytes(room));
        let (framing, gap) = (Bytes::new(PREAMBLE + CHECK), Bytes::new(GAP));
        let spec = PortSpec { rate, framing, gap, discipline, marks_after: Span::MAX };
        let output = |port: usize| {
            let mut sources = Vec::new();
            for (number, load) in background.iter().enumerate().filter(|(_, load)| load.is_at(port)) {
                let (law, queue) = (load.law(rate)?, queues.map_or(0, |queues| queues.of(Some(load.dscp))));
                for source in 0..load.sources {
                    let path = format!("wire/background/{port}/{number}/{source}");
                    let generator = Generator::new(law, Stream::derive(seed, &path));
                    sources.push((generator, queue as u8, load.frame));
                }
            }
            let counters = vec![QueueCounters::default(); count];
            let (port, waiting) = (port::Port::new(spec), Slab::new());
            Ok(Output { port, waiting, sources, has_turn: false, counters })
        };
        Ok(Self { queues, outputs: (0..ports).map(output).collect::<Result<_, _>>()? })
    }

    pub(super) fn counters(&self, port: PortId) -> &[QueueCounters] {
        &self.outputs[usize::from(port.0)].counters
    }

    /// Frames that wait.
    pub(super) fn waiting(&self) -> usize {
        self.outputs.iter().map(|output| output.waiting.len()).sum()
    }

    /// When each source has its first frame.
    pub(super) fn first(&self) -> impl Iterator<Item = (PortId, u16, SimTime)> + '_ {
        self.outputs.iter().enumerate().flat_map(|(port, output)| {
            let numbered = (0..).zip(&output.sources);
            numbered.map(move |(source, (generator, ..))| (PortId(port as u16), source, generator.next()))
        })
    }

    /// Takes a frame: whether there is room for it. [`Outputs::next`] has told of all that left before, and tells of it.
    pub(super) fn take(
        &mut self,
        now: SimTime,
        to: PortId,
        from: PortId,
        frame: Frame<P>,
    ) -> Option<Leaving<P>> {
        let queue = self.queues.map_or(0, |queues| queues.of(frame.dscp));
        let Output { port, waiting, counters, .. } = &mut self.outputs[usize::from(to.0)];
        let bytes = frame.length.get();
        let unit = waiting.insert((from, frame));
        match port.take(now, queue as u32, (unit, queue as u8), bytes.max(SHORTEST) as u32) {
            Taken::Waits => return None,
            Taken::Sent(at) | Taken::Marked(at) => {
                let (from, frame) = waiting.remove(unit);
                let counters = &mut counters[queue];
                (counters.sent, counters.sent_bytes) = (counters.sent + 1, counters.sent_bytes + bytes);
                return Some(Leaving { from, frame, at });
            }
            Taken::Lost | Taken::Instead(_) => {}
        }
        waiting.remove(unit);
        counters[queue].drops += 1;
        None
    }

    /// The frame of a source has come to be; when its next will.
    pub(super) fn load(&mut self, now: SimTime, to: PortId, source: u16) -> SimTime {
        let Output { port, sources, counters, .. } = &mut self.outputs[usize::from(to.0)];
        let (generator, queue, length) = &mut sources[usize::from(source)];
        generator.advance();
        let counters = &mut counters[usize::from(*queue)];
        match port.take(now, u32::from(*queue), (NOBODY, *queue), length.get().max(SHORTEST) as u32) {
            Taken::Sent(_) | Taken::Marked(_) => counters.background += 1,
            Taken::Waits => {}
            Taken::Lost | Taken::Instead(_) => counters.background_drops += 1,
        }
        generator.next()
    }

    /// A frame that waited and whose turn has come.
    pub(super) fn next(&mut self, now: SimTime, to: PortId) -> Option<Leaving<P>> {
        let Output { port, waiting, counters, .. } = &mut self.outputs[usize::from(to.0)];
        loop {
            let ((unit, queue), at) = port.next(now)?;
            let counters = &mut counters[usize::from(queue)];
            if unit == NOBODY {
                counters.background += 1;
                continue;
            }
            let (from, frame) = waiting.remove(unit);
            (counters.sent, counters.sent_bytes) =
                (counters.sent + 1, counters.sent_bytes + frame.length.get());
            return Some(Leaving { from, frame, at });
        }
    }

    /// When something that waits has its turn, if that is not among the steps to come.
    pub(super) fn turn(&mut self, to: PortId) -> Option<SimTime> {
        let output = &mut self.outputs[usize::from(to.0)];
        if output.has_turn || !output.port.has_waiting() {
            return None;
        }
        output.has_turn = true;
        Some(output.port.free_at())
    }

    /// That turn has come.
    pub(super) fn turned(&mut self, to: PortId) {
        self.outputs[usize::from(to.0)].has_turn = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_codepoint_has_its_queue_and_all_others_share_the_last() {
        let queues = Queues::strict_priority(&[46, 34]).unwrap();
        let of = [Some(46), Some(34), Some(0), Some(63), None].map(|dscp| queues.of(dscp));
        assert_eq!(of, [0, 1, 2, 2, 2]);
        assert_eq!(Queues::weighted(&[(46, 3)], 1).unwrap().of(Some(0)), 1);
    }

    #[test]
    fn codepoints_weights_and_loads_that_cannot_be_are_said_to_be_so() {
        let said = |found: Result<Queues, PlanError>| found.unwrap_err().to_string();
        assert!(said(Queues::strict_priority(&[])).contains("1 to 7 codepoints"));
        assert!(said(Queues::strict_priority(&[0, 1, 2, 3, 4, 5, 6, 7])).contains("1 to 7 codepoints"));
        assert!(said(Queues::strict_priority(&[46, 46])).contains("0 to 63, each once"));
        assert!(said(Queues::strict_priority(&[64])).contains("0 to 63, each once"));
        assert!(said(Queues::weighted(&[(46, 3)], 0)).contains("1 to 255"));
        let none = Background { sources: 0, ..Background::of(0, 0.5) };
        assert!(none.law(BitRate::mbit_s(10)).unwrap_err().to_string().contains("one source or more"));
    }
}
