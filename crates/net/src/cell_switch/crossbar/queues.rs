//! The queues at the inputs.

use std::collections::VecDeque;

use super::matcher::Requests;

/// Cells of an input by output, or all in one row; a cell is its slot of arrival.
#[derive(Clone, Debug)]
pub(super) struct InputQueues {
    ports: usize,
    /// One for each output, input after input.
    by_output: Vec<VecDeque<u64>>,
    /// One for each input, where cells keep their order: slot and output.
    in_order: Option<Vec<VecDeque<(u64, u8)>>>,
    requests: Requests,
}

impl InputQueues {
    pub(super) fn new(ports: usize, in_order: bool) -> Self {
        let by_output = if in_order { 0 } else { ports * ports };
        Self {
            ports,
            by_output: vec![VecDeque::with_capacity(16); by_output],
            in_order: in_order.then(|| vec![VecDeque::with_capacity(64); ports]),
            requests: Requests::new(ports),
        }
    }

    /// Who asks for what.
    pub(super) const fn requests(&self) -> &Requests {
        &self.requests
    }

    /// Cells that wait at all inputs.
    pub(super) fn held(&self) -> u64 {
        let in_order = self.in_order.iter().flatten().map(VecDeque::len);
        self.by_output.iter().map(VecDeque::len).chain(in_order).sum::<usize>() as u64
    }

    #[inline]
    pub(super) fn push(&mut self, slot: u64, input: u8, output: u8) {
        match &mut self.in_order {
            Some(rows) => {
                let row = &mut rows[usize::from(input)];
                if row.is_empty() {
                    self.requests.set(input.into(), output.into(), true);
                }
                row.push_back((slot, output));
            }
            None => {
                let queue = &mut self.by_output[usize::from(input) * self.ports + usize::from(output)];
                if queue.is_empty() {
                    self.requests.set(input.into(), output.into(), true);
                }
                queue.push_back(slot);
            }
        }
    }

    /// Takes the first cell of an input for an output it asks for; returns its slot of arrival.
    #[inline]
    pub(super) fn pop(&mut self, input: u32, output: u32) -> u64 {
        match &mut self.in_order {
            Some(rows) => {
                let row = &mut rows[input as usize];
                let (slot, first) = row.pop_front().expect("an input that asks has a cell");
                debug_assert_eq!(u32::from(first), output, "only the first cell asks");
                self.requests.set(input, output, false);
                if let Some(&(_, next)) = row.front() {
                    self.requests.set(input, next.into(), true);
                }
                slot
            }
            None => {
                let queue = &mut self.by_output[input as usize * self.ports + output as usize];
                let slot = queue.pop_front().expect("an input that asks has a cell");
                if queue.is_empty() {
                    self.requests.set(input, output, false);
                }
                slot
            }
        }
    }
}
