//! Octets in order, of which the first go as more come, in one piece.

/// Octets that wait.
#[derive(Debug, Default)]
pub(super) struct Fifo {
    octets: Vec<u8>,
    /// Where those begin that have not gone.
    head: usize,
}

impl Fifo {
    /// All that wait.
    pub(super) fn as_slice(&self) -> &[u8] {
        &self.octets[self.head..]
    }

    pub(super) const fn len(&self) -> usize {
        self.octets.len() - self.head
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Puts octets behind the others.
    pub(super) fn push(&mut self, octets: &[u8]) {
        self.octets.extend_from_slice(octets);
    }

    /// Room for so many octets behind the others, which has to be cut to what is used of it.
    pub(super) fn grow(&mut self, count: usize) -> &mut [u8] {
        let at = self.octets.len();
        self.octets.resize(at + count, 0);
        &mut self.octets[at..]
    }

    /// Only the first `count` of those that wait stay.
    pub(super) fn truncate(&mut self, count: usize) {
        self.octets.truncate(self.head + count);
    }

    /// The first `count` go, at most all. Those behind them are moved when what has gone is more than they are, so
    /// that each is moved once for each that goes.
    pub(super) fn skip(&mut self, count: usize) {
        self.head += count.min(self.len());
        if self.head > self.len() {
            self.octets.drain(..self.head);
            self.head = 0;
        }
    }

    /// Takes the first that wait, as many as there are and fit: how many.
    pub(super) fn take(&mut self, into: &mut [u8]) -> usize {
        let count = into.len().min(self.len());
        into[..count].copy_from_slice(&self.as_slice()[..count]);
        self.skip(count);
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn octets_go_in_the_order_in_which_they_came() {
        let mut fifo = Fifo::default();
        let (mut put, mut got) = (0_u8, 0_u8);
        for turn in 0..200 {
            let more: Vec<u8> = (0..turn % 13).map(|step| put.wrapping_add(step)).collect();
            put = put.wrapping_add(more.len() as u8);
            fifo.push(&more);
            fifo.grow(7).fill(0xEE);
            fifo.truncate(fifo.len() - 7);
            let mut into = [0; 5];
            let count = fifo.take(&mut into);
            for octet in &into[..count] {
                assert_eq!(*octet, got);
                got = got.wrapping_add(1);
            }
            assert!(fifo.octets.len() <= 2 * fifo.len() + 1, "what has gone is no more than what waits");
        }
        fifo.skip(usize::MAX);
        assert!(fifo.is_empty());
    }
}
