//! A crossbar slot by slot.

use wiretwin_engine::{Stream, Trace, TraceEvent};
use wiretwin_plan::PlanError;
use wiretwin_units::SimTime;

use super::Scheduler;
use super::bits::Choices;
use super::matcher::{Islip, Matching, Pim, Requests};
use super::maximum::maximum_matching;
use super::queues::InputQueues;
use crate::cell_switch::{Config, Source, Totals};

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
pub fn run_crossbar(
    config: &Config,
    scheduler: Scheduler,
    trace: &mut impl Trace,
) -> Result<Totals, PlanError> {
    config.check()?;
    scheduler.check()?;
    let mut run = Run::new(config, scheduler);
    for slot in 0..config.slots {
        run.arrivals(slot);
        run.matching(slot, trace);
    }
    Ok(Totals { held: run.queues.held(), ..run.totals })
}

struct Run<'a> {
    config: &'a Config,
    sources: Vec<Source>,
    queues: InputQueues,
    matcher: Matcher,
    matching: Matching,
    totals: Totals,
}

impl<'a> Run<'a> {
    fn new(config: &'a Config, scheduler: Scheduler) -> Self {
        let ports = usize::from(config.ports);
        let stream = |name: &str| Stream::derive(config.seed, &format!("cell switch/{name}"));
        let source = |input| Source::new(config, stream(&format!("input {input}")));
        let matcher = match scheduler {
            Scheduler::Pim { iterations } => Matcher::Pim(Pim::new(ports, stream("matching")), iterations),
            Scheduler::Islip { iterations } => Matcher::Islip(Islip::new(ports), iterations),
            Scheduler::Maximum => Matcher::Maximum,
            Scheduler::Fifo => Matcher::Fifo(Choices::new(stream("matching"))),
        };
        Self {
            config,
            sources: (0..config.ports).map(source).collect(),
            queues: InputQueues::new(ports, scheduler == Scheduler::Fifo),
            matcher,
            matching: Matching::new(ports),
            totals: Totals::default(),
        }
    }

    #[inline]
    fn arrivals(&mut self, slot: u64) {
        for (input, source) in (0..).zip(&mut self.sources) {
            let Some(output) = source.next_slot() else { continue };
            self.totals.arrived += 1;
            self.queues.push(slot, input, output);
        }
    }

    #[inline]
    fn matching(&mut self, slot: u64, trace: &mut impl Trace) {
        let requests = self.queues.requests();
        self.matching.clear();
        let matching = &mut self.matching;
        match &mut self.matcher {
            Matcher::Pim(pim, iterations) => {
                for _ in 0..*iterations {
                    if !pim.round(requests, matching) {
                        break;
                    }
                }
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
        for (input, output) in self.matching.pairs() {
            let arrived = self.queues.pop(input, output);
            leave(self.config, &mut self.totals, slot, (input, output, arrived), trace);
        }
    }
}

#[inline]
fn leave(
    config: &Config,
    cells: &mut Totals,
    slot: u64,
    (input, output, arrived): (u32, u32, u64),
    trace: &mut impl Trace,
) {
    let wait = slot - arrived;
    cells.departed += 1;
    cells.waited += wait;
    let time = SimTime::from_ps((slot + 1) * config.slot.as_ps());
    trace.record(TraceEvent { time, kind: LEFT, a: u64::from(output) << 8 | u64::from(input), b: arrived });
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
