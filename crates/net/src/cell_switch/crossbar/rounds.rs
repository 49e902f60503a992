//! How much of a maximal matching is found round by round, apart from any queue.

use wiretwin_engine::{Probability, Stream};
use wiretwin_plan::PlanError;

use super::matcher::{Matching, Pim, Requests};
use crate::cell_switch::MOST_PORTS;

/// Pairs that parallel iterative matching has found after its first round, its second, …, summed over
/// trials; the last entry is the whole of a maximal matching.
///
/// In each trial every input asks for every output with the same probability, independently, as in table I
/// of Anderson and others (1993).
///
/// # Errors
/// [`PlanError`]: ports that no switch has, or no probability.
pub fn pairs_by_round(ports: u8, probability: f64, trials: u32, seed: u64) -> Result<Vec<u64>, PlanError> {
    if !(2..=MOST_PORTS).contains(&ports) {
        return Err(PlanError::new("ports", ports, format!("2 to {MOST_PORTS}")));
    }
    let wrong = |_| PlanError::new("probability", probability, "0 to 1");
    let (ports, probability) = (usize::from(ports), Probability::new(probability).map_err(wrong)?);
    let mut stream = Stream::derive(seed, "rounds/requests");
    let mut pim = Pim::new(ports, Stream::derive(seed, "rounds/choices"));
    let mut matching = Matching::new(ports);
    let mut after: Vec<u64> = Vec::new();
    let mut complete = 0;
    for _ in 0..trials {
        let mut requests = Requests::new(ports);
        for input in 0..ports as u32 {
            for output in 0..ports as u32 {
                requests.set(input, output, stream.happens(probability));
            }
        }
        matching.clear();
        let mut rounds = 0;
        while pim.round(&requests, &mut matching) {
            if after.len() == rounds {
                // Whatever was found so far had needed no such round.
                after.push(complete);
            }
            after[rounds] += u64::from(matching.len());
            rounds += 1;
        }
        for found in after.iter_mut().skip(rounds) {
            *found += u64::from(matching.len());
        }
        complete += u64::from(matching.len());
    }
    Ok(after)
}
