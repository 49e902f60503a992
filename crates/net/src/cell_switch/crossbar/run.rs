//! A crossbar slot by slot.

use std::collections::VecDeque;

use wiretwin_engine::{Stream, Trace, TraceEvent};
use wiretwin_units::SimTime;

use super::bits::Choices;
use super::matcher::{Islip, Matching, Pim, Requests};
use super::maximum::maximum_matching;
use super::queues::InputQueues;
use super::{CrossbarConfig, CrossbarError, CrossbarTotals, Scheduler};
use crate::cell_switch::{Source, Totals};

/// Waits that are counted apart; longer ones together.
const WAITS: usize = 256;
/// A cell left: `a` is output and input, `b` the slot in which it had come.
const LEFT: u32 = 0;

enum Matcher {
    Pim(Pim, u8),
    Islip(Islip, u8),
    Maximum,
    Fifo(Choices),
}

/// Runs a crossbar.
///
/// A cell that comes in a slot may leave in it. Departures are traced at the end of their slot in the
/// order of the inputs.
///
/// # Errors
/// [`CrossbarError`].
pub fn run_crossbar(
    config: &CrossbarConfig,
    trace: &mut impl Trace,
) -> Result<CrossbarTotals, CrossbarError> {
    config.check()?;
    let mut run = Run::new(config);
    for slot in 0..config.switch.slots {
        run.arrivals(slot);
        for _ in 0..config.speed_up {
            run.matching(slot, trace);
        }
        if config.speed_up > 1 {
            run.departures(slot, trace);
        }
    }
    Ok(run.totals())
}

struct Run<'a> {
    config: &'a CrossbarConfig,
    sources: Vec<Source>,
    queues: InputQueues,
    matcher: Matcher,
    matching: Matching,
    /// Cells that have crossed faster than they may leave: slot of arrival and input, for each output.
    crossed: Vec<VecDeque<(u64, u32)>>,
    totals: CrossbarTotals,
}

impl<'a> Run<'a> {
    fn new(config: &'a CrossbarConfig) -> Self {
        let switch = &config.switch;
        let ports = usize::from(switch.ports);
        let stream = |name: &str| Stream::derive(switch.seed, &format!("cell switch/{name}"));
        let source = |input| Source::new(switch, stream(&format!("input {input}")));
        let matcher = match config.scheduler {
            Scheduler::Pim { iterations } => Matcher::Pim(Pim::new(ports, stream("matching")), iterations),
            Scheduler::Islip { iterations } => Matcher::Islip(Islip::new(ports), iterations),
            Scheduler::Maximum => Matcher::Maximum,
            Scheduler::Fifo => Matcher::Fifo(Choices::new(stream("matching"))),
        };
        let cells = Totals {
            arrived: 0,
            departed: 0,
            lost: 0,
            held: 0,
            waited: 0,
            waits: vec![0; WAITS],
            longest: 0,
        };
        Self {
            config,
            sources: (0..switch.ports).map(source).collect(),
            queues: InputQueues::new(ports, config.scheduler == Scheduler::Fifo),
            matcher,
            matching: Matching::new(ports),
            crossed: vec![VecDeque::new(); ports],
            totals: CrossbarTotals { cells, matched: 0, after: Vec::new(), rounds: Vec::new() },
        }
    }

    #[inline]
    fn arrivals(&mut self, slot: u64) {
        let buffer = self.config.switch.buffer.unwrap_or(u32::MAX);
        let cells = &mut self.totals.cells;
        for (input, source) in (0..).zip(&mut self.sources) {
            let Some(arrival) = source.next_slot() else { continue };
            cells.arrived += 1;
            let waiting = self.queues.waiting(input);
            if waiting >= buffer {
                cells.lost += 1;
                continue;
            }
            cells.longest = cells.longest.max(waiting + 1);
            self.queues.push(slot, input, arrival.output);
        }
    }

    #[inline]
    fn matching(&mut self, slot: u64, trace: &mut impl Trace) {
        let requests = self.queues.requests();
        self.matching.clear();
        let matching = &mut self.matching;
        match &mut self.matcher {
            Matcher::Pim(pim, iterations) if self.config.observe => {
                observe(&mut self.totals, matching, *iterations, |all, _| pim.round(requests, all));
            }
            Matcher::Pim(pim, iterations) => {
                for _ in 0..*iterations {
                    if !pim.round(requests, matching) {
                        break;
                    }
                }
            }
            Matcher::Islip(islip, iterations) if self.config.observe => {
                observe(&mut self.totals, matching, *iterations, |all, first| {
                    islip.round(requests, all, first)
                });
            }
            Matcher::Islip(islip, iterations) => {
                for round in 0..*iterations {
                    if !islip.round(requests, matching, round == 0) {
                        break;
                    }
                }
            }
            Matcher::Maximum => *matching = maximum_matching(requests),
            Matcher::Fifo(choices) => first_of_each(requests, choices, matching),
        }
        self.totals.matched += u64::from(self.matching.len());
        for (input, output) in self.matching.pairs() {
            let arrived = self.queues.pop(input, output);
            if self.config.speed_up > 1 {
                self.crossed[output as usize].push_back((arrived, input));
            } else {
                leave(self.config, &mut self.totals.cells, slot, input, output, arrived, trace);
            }
        }
    }

    fn departures(&mut self, slot: u64, trace: &mut impl Trace) {
        for (output, crossed) in (0..).zip(&mut self.crossed) {
            if let Some((arrived, input)) = crossed.pop_front() {
                leave(self.config, &mut self.totals.cells, slot, input, output, arrived, trace);
            }
        }
    }

    fn totals(mut self) -> CrossbarTotals {
        let crossed = self.crossed.iter().map(|cells| cells.len() as u64).sum::<u64>();
        self.totals.cells.held = self.queues.held() + crossed;
        self.totals
    }
}

#[inline]
fn leave(
    config: &CrossbarConfig,
    cells: &mut Totals,
    slot: u64,
    input: u32,
    output: u32,
    arrived: u64,
    trace: &mut impl Trace,
) {
    let wait = slot - arrived;
    cells.departed += 1;
    cells.waited += wait;
    cells.waits[(wait as usize).min(WAITS - 1)] += 1;
    let time = SimTime::from_ps((slot + 1) * config.switch.slot.as_ps());
    trace.record(TraceEvent { time, kind: LEFT, a: u64::from(output) << 8 | u64::from(input), b: arrived });
}

/// Goes on to the last round there is, counts pairs after each, and leaves those of the rounds in use.
fn observe(
    totals: &mut CrossbarTotals,
    matching: &mut Matching,
    used: u8,
    mut round: impl FnMut(&mut Matching, bool) -> bool,
) {
    let mut whole = matching.clone();
    let mut rounds = 0;
    while round(&mut whole, rounds == 0) {
        rounds += 1;
        if rounds == usize::from(used) {
            matching.clone_from(&whole);
        }
        // What earlier slots did not need a round for was complete by then.
        let complete = totals.after.last().copied().unwrap_or(0);
        if totals.after.len() < rounds {
            totals.after.push(complete);
        }
        totals.after[rounds - 1] += u64::from(whole.len());
    }
    if rounds < usize::from(used) {
        matching.clone_from(&whole);
    }
    for after in totals.after.iter_mut().skip(rounds) {
        *after += u64::from(whole.len());
    }
    if totals.rounds.len() <= rounds {
        totals.rounds.resize(rounds + 1, 0);
    }
    totals.rounds[rounds] += 1;
}

/// Every output takes one of the first cells that are for it.
fn first_of_each(requests: &Requests, choices: &mut Choices, matching: &mut Matching) {
    for output in 0..requests.ports() as u32 {
        let asking = requests.of_output(output);
        if asking != 0 {
            let input = choices.one_of(asking);
            matching.pair(input, output);
        }
    }
}
