//! How often to repeat: decided by the leader from what it has seen so far.

use wiretwin_units::{Bytes, Span};

use crate::loops::Kind;

/// One step of a schedule: of two ranks, or with another kind of what all ranks do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step<K = Kind> {
    /// The loop.
    pub kind: K,
    /// Length of a message.
    pub bytes: Bytes,
    /// Messages an iteration, at least 1 (used by stream and prtt).
    pub messages: u32,
    /// The pause between the messages of prtt, and before the receive of recv_busy and interrupt, where zero
    /// lets the leader choose.
    pub delay: Span,
    /// Iterations before the first sample, after the first iteration of all.
    pub warmup: u32,
    /// Samples taken whatever the budget says, at least 1.
    pub min_samples: u32,
    /// Samples never exceeded.
    pub max_samples: u32,
    /// Time to spend on samples.
    pub budget: Span,
    /// Iterations a sample; 0 lets the leader choose.
    pub batch: u32,
}

/// The reading of the clock may be at most one part in this many of a sample.
const CLOCK_SHARE: u64 = 100;

/// How many iterations make a sample so that one reading of the clock costs at most 1 % of it.
///
/// A loop that is timed inside needs no batch: its readings cannot be shared among iterations.
pub fn choose_batch(step: &Step, iteration: Span, clock_cost: Span) -> u32 {
    if step.batch > 0 {
        return step.batch;
    }
    if step.kind.timed_inside() {
        return 1;
    }
    let needed = clock_cost.as_ps().saturating_mul(CLOCK_SHARE).div_ceil(iteration.as_ps().max(1));
    u32::try_from(needed.clamp(1, 1 << 20)).unwrap_or(1 << 20)
}

/// How many samples to take next, 0 when the step is done.
///
/// At most half of what the budget seems to allow, so that a wrong estimate is corrected before
/// much is spent.
pub fn next_chunk<K>(step: &Step<K>, taken: u32, spent: Span, sample: Span) -> u32 {
    let most = step.max_samples.max(step.min_samples);
    if taken >= most {
        return 0;
    }
    let missing = step.min_samples.saturating_sub(taken);
    let left = step.budget.as_ps().saturating_sub(spent.as_ps());
    let affordable = left / sample.as_ps().max(1);
    if affordable == 0 {
        return missing.min(most - taken);
    }
    let affordable = u32::try_from(affordable).unwrap_or(u32::MAX);
    let chunk = if affordable > 16 { affordable / 2 } else { affordable };
    chunk.max(missing).min(most - taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step() -> Step {
        Step {
            kind: Kind::Echo,
            bytes: Bytes::new(4),
            messages: 1,
            delay: Span::ZERO,
            warmup: 16,
            min_samples: 20,
            max_samples: 2000,
            budget: Span::from_ps(20_000_000_000),
            batch: 0,
        }
    }

    const fn ns(ns: u64) -> Span {
        Span::from_ps(ns * 1000)
    }

    #[test]
    fn clock_costs_at_most_one_percent_of_a_sample() {
        for (iteration, cost) in [(200, 30), (8000, 30), (3000, 30), (1, 30), (2999, 30)] {
            let batch = u64::from(choose_batch(&step(), ns(iteration), ns(cost)));
            assert!(batch * iteration >= 100 * cost, "{iteration} {cost} {batch}");
            assert!(batch == 1 || (batch - 1) * iteration < 100 * cost, "no more than needed");
        }
        assert_eq!(choose_batch(&Step { batch: 7, ..step() }, ns(1), ns(30)), 7);
        assert_eq!(choose_batch(&Step { kind: Kind::SendBusy, ..step() }, ns(1), ns(30)), 1);
    }

    #[test]
    fn repeats_end_at_the_budget_but_not_below_the_minimum_nor_above_the_maximum() {
        let mut taken = 0;
        let mut spent = 0;
        loop {
            let chunk = next_chunk(&step(), taken, ns(spent), ns(100_000));
            if chunk == 0 {
                break;
            }
            taken += chunk;
            spent += u64::from(chunk) * 100_000;
        }
        assert_eq!(taken, 200, "a budget of 20 ms pays for 200 samples of 100 us");
        assert_eq!(next_chunk(&step(), 0, ns(0), ns(1_000_000_000)), 20, "the minimum is taken regardless");
        assert_eq!(next_chunk(&step(), 20, ns(20_000_000), ns(1)), 0);
        assert_eq!(next_chunk(&step(), 1990, ns(0), ns(1)), 10);
        assert_eq!(next_chunk(&step(), 2000, ns(0), ns(1)), 0);
        let fixed = Step { min_samples: 50, max_samples: 10, ..step() };
        assert_eq!(next_chunk(&fixed, 0, ns(30_000_000), ns(1)), 50, "the minimum wins over the maximum");
    }
}
