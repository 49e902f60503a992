//! The destination, af-tm-0056 §5.10.5.

use wiretwin_units::{SimTime, Span};
use wiretwin_wire::rm::{Rate, Repr};

use super::CellRate;

/// What a destination does with an RM cell that has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TurnAround {
    /// It goes back within the rate of the other direction's source ([`Source::turn`](super::Source::turn)).
    #[default]
    InRate,
    /// It goes back at once, as a cell that the network may discard first (CLP 1).
    OutOfRate,
}

/// The destination of one connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct Destination {
    /// The EFCI bit of the last data cell (§5.10.5 rule 1).
    congestion: bool,
    /// The most that this end itself can take.
    most: Option<Rate>,
    /// Cells that it makes by itself.
    notifier: Notifier,
    /// RM cells turned around.
    turned: u64,
}

impl Destination {
    /// A destination that has seen nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self { congestion: false, most: None, notifier: Notifier::new(), turned: 0 }
    }

    /// A data cell has come (rule 1).
    pub const fn handle_data(&mut self, congestion: bool) {
        self.congestion = congestion;
    }

    /// A forward RM cell has come; what goes back (rule 2).
    pub fn handle_forward(&mut self, forward: &Repr) -> Repr {
        let marked = core::mem::take(&mut self.congestion);
        self.turned += 1;
        Repr {
            backward: true,
            becn: false,
            congestion: forward.congestion || marked,
            explicit_rate: self.most.map_or(forward.explicit_rate, |most| lower(forward.explicit_rate, most)),
            ..*forward
        }
    }

    /// This end can take no more than `rate`; `None` takes everything (rule 2b).
    pub fn limit(&mut self, rate: Option<CellRate>) {
        self.most = rate.map(CellRate::coded);
    }

    /// An RM cell that this end makes by itself because it is congested, unless it made one less than a
    /// tenth of a second ago (rule 5: at most ten a second).
    pub fn becn(&mut self, now: SimTime) -> Option<Repr> {
        let explicit_rate = self.most.unwrap_or(Rate::MAX);
        self.notifier.becn(now).map(|cell| Repr { explicit_rate, ..cell })
    }

    /// RM cells turned around so far.
    #[must_use]
    pub const fn turned(&self) -> u64 {
        self.turned
    }
}

/// Makes backward RM cells of its own for one connection: a destination, or a switch on the way (§5.10.6 rule 2).
#[derive(Clone, Copy, Debug, Default)]
pub struct Notifier {
    last: Option<SimTime>,
}

impl Notifier {
    /// One that has made none.
    #[must_use]
    pub const fn new() -> Self {
        Self { last: None }
    }

    /// A cell that says congestion (BN, CI), unless it made one less than a tenth of a second ago.
    pub fn becn(&mut self, now: SimTime) -> Option<Repr> {
        if self.last.is_some_and(|last| now.saturating_since(last) < BECN_INTERVAL) {
            return None;
        }
        self.last = Some(now);
        Some(Repr {
            backward: true,
            becn: true,
            congestion: true,
            explicit_rate: Rate::MAX,
            ..Repr::default()
        })
    }
}

fn lower(one: Rate, other: Rate) -> Rate {
    if other.cells_per_s() < one.cells_per_s() { other } else { one }
}

/// §5.10.5 rule 5: ten a second.
const BECN_INTERVAL: Span = Span::from_ms(100);

#[cfg(test)]
mod tests {
    use super::*;

    fn forward() -> Repr {
        Repr {
            explicit_rate: Rate::floor(100_000.0),
            current_cell_rate: Rate::floor(5000.0),
            minimum_cell_rate: Rate::floor(10.0),
            ..Repr::default()
        }
    }

    #[test]
    fn a_forward_cell_goes_back_as_it_came() {
        let turned = Destination::new().handle_forward(&forward());
        assert_eq!(turned, Repr { backward: true, ..forward() });
    }

    #[test]
    fn the_mark_of_the_last_data_cell_goes_back_once() {
        let mut destination = Destination::new();
        destination.handle_data(true);
        assert!(destination.handle_forward(&forward()).congestion);
        assert!(!destination.handle_forward(&forward()).congestion, "the mark is used up");
        destination.handle_data(true);
        destination.handle_data(false);
        assert!(!destination.handle_forward(&forward()).congestion, "the last cell counts");
        let marked = Repr { congestion: true, no_increase: true, ..forward() };
        let turned = destination.handle_forward(&marked);
        assert!(turned.congestion && turned.no_increase, "what switches said is kept");
        assert_eq!(destination.turned(), 4);
    }

    #[test]
    fn a_destination_only_lowers_the_explicit_rate() {
        let mut destination = Destination::new();
        for (limit, explicit_rate) in [(Some(2000.0), 2000.0), (Some(1e6), 99_968.0), (None, 99_968.0)] {
            destination.limit(limit.map(|limit| CellRate::new(limit).expect("a rate")));
            let turned = destination.handle_forward(&forward()).explicit_rate;
            assert_eq!(turned.cells_per_s(), explicit_rate);
        }
    }

    #[test]
    fn at_most_ten_cells_a_second_are_its_own() {
        let mut destination = Destination::new();
        let at = |ms| SimTime::ZERO.saturating_add(Span::from_ms(ms));
        let made = destination.becn(at(5)).expect("the first");
        assert!(made.backward && made.becn && made.congestion);
        assert_eq!(destination.becn(at(104)), None);
        assert!(destination.becn(at(105)).is_some());
    }
}
