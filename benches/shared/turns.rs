//! Two figures measured in turns, so that what the machine does meets both.

/// The middle one; the values are sorted then, the least first.
///
/// # Panics
/// Without values.
pub fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// What was measured: ours, the reference's, and one over the other, turn by turn.
#[derive(Clone, Debug, Default)]
pub struct Turns {
    ours: Vec<f64>,
    references: Vec<f64>,
    ratios: Vec<f64>,
}

impl Turns {
    /// Adds a turn.
    pub fn push(&mut self, ours: f64, reference: f64) {
        self.ours.push(ours);
        self.references.push(reference);
        self.ratios.push(ours / reference);
    }

    /// The medians of ours, of the reference, and of the turns' ratios.
    ///
    /// # Panics
    /// Before the first turn.
    pub fn medians(&mut self) -> (f64, f64, f64) {
        (median(&mut self.ours), median(&mut self.references), median(&mut self.ratios))
    }

    /// The least of ours and of the reference.
    #[must_use]
    pub fn least(&self) -> (f64, f64) {
        let least = |values: &[f64]| values.iter().copied().fold(f64::INFINITY, f64::min);
        (least(&self.ours), least(&self.references))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_those_of_turns() {
        let mut turns = Turns::default();
        for (ours, reference) in [(2.0, 1.0), (30.0, 10.0), (4.0, 1.0)] {
            turns.push(ours, reference);
        }
        assert_eq!(turns.medians(), (4.0, 1.0, 3.0));
        assert_eq!(turns.least(), (2.0, 1.0));
    }
}
