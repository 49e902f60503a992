//! An output-queued switch by event, as a switch in a network is: nothing that can be seen differs from the run by slot.

use wiretwin_engine::{Schedule, Stream, Trace, TraceEvent};
use wiretwin_plan::PlanError;
use wiretwin_units::{SimTime, Span};

use super::cell_switch::{Config, OutputQueued, Source, Totals};

/// A cell left: `a` is output and input, `b` the slot in which it had come.
const LEFT: u32 = 0;

/// Takes an event for every cell that comes and every cell that leaves.
///
/// # Errors
/// [`PlanError`].
pub fn run_by_event(config: &Config, trace: &mut impl Trace) -> Result<Totals, PlanError> {
    config.check()?;
    let mut run = ByEvent::new(config);
    while run.next(trace) {}
    Ok(run.switch.totals())
}

/// A run by event, between two events.
struct ByEvent<'a> {
    config: &'a Config,
    schedule: Schedule,
    switch: OutputQueued,
    sources: Vec<Source>,
    /// The slot of the next cell of each input, and its output.
    next: Vec<Option<(u64, u8)>>,
    /// The slot of each output's next departure.
    leaves: Vec<Option<u64>>,
    /// The time between places of the bus.
    step: Span,
}

impl<'a> ByEvent<'a> {
    fn new(config: &'a Config) -> Self {
        let ports = usize::from(config.ports);
        let stream = |input| Stream::derive(config.seed, &format!("cell switch/input {input}"));
        let mut run = Self {
            config,
            schedule: Schedule::new(),
            switch: OutputQueued::new(config),
            sources: (0..config.ports).map(|input| Source::new(config, stream(input))).collect(),
            next: vec![None; ports],
            leaves: vec![None; ports],
            step: Span::from_ps(config.slot.as_ps() / (2 * u64::from(config.ports))),
        };
        for input in 0..config.ports {
            run.expect_arrival(input, 0);
        }
        run
    }

    fn at(&mut self, slot: u64, place: u8) {
        let ps = slot * self.config.slot.as_ps() + u64::from(place) * self.step.as_ps();
        let scheduled = self.schedule.at(SimTime::from_ps(ps), u64::from(place));
        debug_assert!(scheduled.is_ok(), "slots only go up, and places within a slot");
    }

    fn expect_arrival(&mut self, input: u8, from: u64) {
        let next = next_arrival(&mut self.sources[usize::from(input)], from, self.config.slots);
        self.next[usize::from(input)] = next;
        if let Some((slot, _)) = next {
            self.at(slot, input);
        }
    }

    /// Takes the next event; whether there was one.
    #[inline]
    fn next(&mut self, trace: &mut impl Trace) -> bool {
        let Some(event) = self.schedule.next() else { return false };
        let place = event.what as u8;
        if let Some(output) = place.checked_sub(self.config.ports) {
            let slot = self.leaves[usize::from(output)].expect("a departure is scheduled with its slot");
            let departure = self.switch.depart(slot, output).expect("a departure is scheduled for a cell");
            let a = u64::from(output) << 8 | u64::from(departure.input);
            trace.record(TraceEvent { time: event.time, kind: LEFT, a, b: departure.arrived });
            self.leaves[usize::from(output)] = None;
            if self.switch.is_waiting(output) && slot + 1 < self.config.slots {
                self.leaves[usize::from(output)] = Some(slot + 1);
                self.at(slot + 1, place);
            }
        } else {
            let (slot, output) =
                self.next[usize::from(place)].expect("an arrival is scheduled with its cell");
            self.switch.arrive(slot, place, output);
            let leaves = &mut self.leaves[usize::from(output)];
            if leaves.is_none() {
                *leaves = Some(slot);
                self.at(slot, self.config.ports + output);
            }
            self.expect_arrival(place, slot + 1);
        }
        true
    }
}

/// The first cell from slot `from` on and before `end`: its slot and its output.
fn next_arrival(source: &mut Source, from: u64, end: u64) -> Option<(u64, u8)> {
    (from..end).find_map(|slot| source.next_slot().map(|output| (slot, output)))
}
