//! As many pairs as there can be: the oracle of the matchers.

use super::bits::ones;
use super::matcher::{Matching, Requests};

/// A maximum matching (Hopcroft and Karp 1973, its simple ancestor: one augmenting path after another).
///
/// Deterministic: inputs are tried in their order, outputs in theirs.
pub fn maximum_matching(requests: &Requests) -> Matching {
    let ports = requests.ports();
    let mut input_of: Vec<Option<u32>> = vec![None; ports];
    for input in 0..ports as u32 {
        let mut seen = 0_u64;
        augment(requests, input, &mut seen, &mut input_of);
    }
    let mut matching = Matching::new(ports);
    for (output, input) in (0..).zip(input_of) {
        if let Some(input) = input {
            matching.pair(input, output);
        }
    }
    matching
}

/// Finds an output for an input, moving others to other outputs where that helps.
fn augment(requests: &Requests, input: u32, seen: &mut u64, input_of: &mut [Option<u32>]) -> bool {
    for output in ones(requests.of_input(input)) {
        if *seen >> output & 1 == 1 {
            continue;
        }
        *seen |= 1 << output;
        let holder = input_of[output as usize];
        if holder.is_none_or(|holder| augment(requests, holder, seen, input_of)) {
            input_of[output as usize] = Some(input);
            return true;
        }
    }
    false
}
