//! An output-queued switch slot by slot.
//!
//! Within a slot the inputs come first, in their order, then the outputs, in theirs: as on a bus that
//! scans its ports. The times of a slot's events differ accordingly, by half a slot over the ports.

use wiretwin_engine::{Stream, Trace, TraceEvent};
use wiretwin_plan::PlanError;
use wiretwin_units::SimTime;

use super::queues::Departure;
use super::{Config, OutputQueued, Source, Totals};

/// A cell left: `a` is output and input, `b` the slot in which it had come.
const LEFT: u32 = 0;

fn sources(config: &Config) -> Vec<Source> {
    let stream = |input| Stream::derive(config.seed, &format!("cell switch/input {input}"));
    (0..config.ports).map(|input| Source::new(config, stream(input))).collect()
}

/// When what happens at a place of the bus in a slot happens: inputs have the first places, outputs the
/// others.
fn instant(config: &Config, slot: u64, place: u8) -> SimTime {
    let step = config.slot.as_ps() / (2 * u64::from(config.ports));
    SimTime::from_ps(slot * config.slot.as_ps() + u64::from(place) * step)
}

fn record(trace: &mut impl Trace, time: SimTime, output: u8, departure: Departure) {
    let a = u64::from(output) << 8 | u64::from(departure.input);
    trace.record(TraceEvent { time, kind: LEFT, a, b: departure.arrived });
}

/// Walks all inputs and outputs once a slot.
pub fn run_by_slot(config: &Config, trace: &mut impl Trace) -> Result<Totals, PlanError> {
    config.check()?;
    let mut sources = sources(config);
    let mut switch = OutputQueued::new(config);
    for slot in 0..config.slots {
        for (input, source) in (0..).zip(&mut sources) {
            if let Some(output) = source.next_slot() {
                switch.arrive(slot, input, output);
            }
        }
        for output in 0..config.ports {
            if let Some(departure) = switch.depart(slot, output) {
                record(trace, instant(config, slot, config.ports + output), output, departure);
            }
        }
    }
    Ok(switch.totals())
}
