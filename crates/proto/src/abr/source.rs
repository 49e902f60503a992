//! The source, af-tm-0056 §5.10.4. Rule numbers are those of its list.

use core::convert::Infallible;

use wiretwin_units::{Cells, SimTime, Span};
use wiretwin_wire::rm::Repr;

use super::{CellRate, Config, ConfigError};
use crate::Output;

/// A cell that the source sends now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceCell {
    /// The next cell of what was offered, EFCI 0 and CLP 0.
    Data,
    /// A forward RM cell, CLP 0.
    Forward(Repr),
    /// A forward RM cell out of rate, CLP 1 (rule 11).
    TaggedForward(Repr),
    /// The other direction's RM cell on its way back, CLP 0.
    Backward(Repr),
}

/// Why the allowed rate changed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SourceEvent {
    /// The network said so (rules 8 and 9).
    Told(CellRate),
    /// It was not used for longer than ADTF (rule 5).
    Unused(CellRate),
    /// Nobody answers (rule 6).
    Unanswered(CellRate),
}

/// What a source puts out: cells, changes of rate, when to be called.
pub type SourceOutput = Output<SourceCell, Infallible, SourceEvent>;

/// The source of one connection.
#[derive(Clone, Debug)]
pub struct Source {
    config: Config,
    now: SimTime,
    acr: CellRate,
    /// Data cells that were offered and not sent.
    waiting: Cells,
    /// An RM cell of the other direction that waits to go back.
    turning: Option<Repr>,
    /// When the last cell within the rate was sent.
    last: Option<SimTime>,
    /// When the next may be; `None` is never, at this rate.
    next: Option<SimTime>,
    /// When the last forward RM cell was sent within the rate.
    last_forward: Option<SimTime>,
    /// Cells within the rate since it.
    since_forward: u64,
    /// One of them went backward.
    turned_since: bool,
    /// Forward RM cells since the last answer.
    unanswered: u64,
    last_tagged: Option<SimTime>,
    event: Option<SourceEvent>,
    /// RM cells thrown away: turned around too late, or not backward.
    overtaken: u64,
    strays: u64,
}

impl Source {
    /// A source that has sent nothing (rule 2).
    ///
    /// # Errors
    /// [`ConfigError`] if a parameter is out of its range.
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self {
            config,
            now: SimTime::ZERO,
            acr: config.initial(),
            waiting: Cells::new(0),
            turning: None,
            last: None,
            next: config.initial().interval().map(|_| SimTime::ZERO),
            last_forward: None,
            since_forward: 0,
            turned_since: false,
            unanswered: 0,
            last_tagged: None,
            event: None,
            overtaken: 0,
            strays: 0,
        })
    }

    /// A backward RM cell has come (rules 8 and 9). One that is not backward is counted and dropped.
    pub fn handle_backward(&mut self, now: SimTime, cell: &Repr) {
        self.now = now;
        if !cell.backward {
            self.strays += 1;
            return;
        }
        if !cell.becn {
            self.unanswered = 0;
        }
        let Config { pcr, mcr, rif_halvings, rdf_halvings, .. } = self.config;
        let acr = self.acr.cells_per_s();
        let changed = if cell.congestion {
            CellRate::raw(acr - halved(acr, rdf_halvings)).max(mcr)
        } else if cell.no_increase {
            self.acr
        } else {
            CellRate::raw(acr + halved(pcr.cells_per_s(), rif_halvings)).min(pcr)
        };
        let told = changed.min(cell.explicit_rate.into()).max(mcr);
        if told != self.acr {
            self.change(told, SourceEvent::Told(told));
        }
    }

    /// It is the time that was asked for.
    pub const fn handle_timeout(&mut self, now: SimTime) {
        self.now = now;
    }

    /// There are so many more data cells to send.
    pub fn offer(&mut self, now: SimTime, cells: Cells) {
        self.now = now;
        self.waiting += cells;
    }

    /// The destination beside this source turns an RM cell around: it leaves within this source's rate.
    ///
    /// Choice: an older one that has not left is thrown away (§5.10.5 rule 3 lets it be).
    pub fn turn(&mut self, now: SimTime, cell: Repr) {
        self.now = now;
        self.overtaken += u64::from(self.turning.replace(cell).is_some());
    }

    /// The next thing to do.
    ///
    /// Choice: a forward RM cell is sent only where a data or backward cell waits; after a pause it goes
    /// first, as rule 3a has it.
    pub fn poll_output(&mut self) -> SourceOutput {
        if let Some(event) = self.event.take() {
            return Output::Event(event);
        }
        if self.waiting.is_zero() && self.turning.is_none() {
            return Output::Timeout(None);
        }
        if self.next.is_some_and(|next| next <= self.now) {
            return self.send();
        }
        let tagged = self.tagged_at();
        if tagged.is_some_and(|at| at <= self.now) {
            self.last_tagged = Some(self.now);
            return Output::Transmit(SourceCell::TaggedForward(self.forward()));
        }
        Output::Timeout([self.next, tagged].into_iter().flatten().min())
    }

    /// ACR: the rate that is allowed now.
    #[must_use]
    pub const fn allowed(&self) -> CellRate {
        self.acr
    }

    /// Data cells that wait.
    #[must_use]
    pub const fn waiting(&self) -> Cells {
        self.waiting
    }

    /// RM cells that another one overtook before they were sent back.
    #[must_use]
    pub const fn overtaken(&self) -> u64 {
        self.overtaken
    }

    /// RM cells that came here and do not belong here.
    #[must_use]
    pub const fn strays(&self) -> u64 {
        self.strays
    }

    /// Sends a cell within the rate: which one, rule 3 says.
    fn send(&mut self) -> SourceOutput {
        let cell = if self.forward_is_due() {
            SourceCell::Forward(self.start_round())
        } else if let Some(turning) = self.turning.take_if(|_| !self.turned_since || self.waiting.is_zero()) {
            self.turned_since = true;
            self.since_forward += 1;
            SourceCell::Backward(turning)
        } else {
            self.waiting -= Cells::new(1);
            self.since_forward += 1;
            SourceCell::Data
        };
        self.last = Some(self.now);
        self.next = self.after(self.now);
        Output::Transmit(cell)
    }

    /// Rule 3a, and rule 2: the first cell is one.
    fn forward_is_due(&self) -> bool {
        let Some(last) = self.last_forward else { return true };
        let paused = self.since_forward >= MRM && self.now.saturating_since(last) >= self.config.trm;
        paused || self.since_forward >= self.config.nrm.get() - 1
    }

    /// Rules 5, 6 and 7.
    fn start_round(&mut self) -> Repr {
        let initial = self.config.initial();
        let paused = self.last_forward.is_some_and(|last| self.now.saturating_since(last) > self.config.adtf);
        if paused && self.acr > initial {
            self.acr = initial;
            self.event = Some(SourceEvent::Unused(initial));
        }
        if self.unanswered >= self.config.crm()
            && let Some(halvings) = self.config.cdf_halvings
        {
            let acr = self.acr.cells_per_s();
            let cut = CellRate::raw(acr - halved(acr, halvings)).max(self.config.mcr);
            if cut != self.acr {
                self.acr = cut;
                self.event = Some(SourceEvent::Unanswered(cut));
            }
        }
        self.last_forward = Some(self.now);
        self.since_forward = 0;
        self.turned_since = false;
        self.unanswered += 1;
        self.forward()
    }

    fn forward(&self) -> Repr {
        Repr {
            explicit_rate: self.config.pcr.coded(),
            current_cell_rate: self.acr.coded(),
            minimum_cell_rate: self.config.mcr.coded(),
            ..Repr::default()
        }
    }

    /// A rise lets the next cell go sooner; a fall binds the cells after it.
    fn change(&mut self, acr: CellRate, event: SourceEvent) {
        let rises = acr > self.acr;
        self.acr = acr;
        self.event = Some(event);
        if rises {
            let sooner = self.last.map_or(Some(self.now), |last| self.after(last));
            self.next = [self.next, sooner].into_iter().flatten().min();
        }
    }

    fn after(&self, time: SimTime) -> Option<SimTime> {
        self.acr.interval().and_then(|interval| time.checked_add(interval))
    }

    /// Rules 10 and 11: where the rate is below TCR, a cell out of rate asks for a better one.
    fn tagged_at(&self) -> Option<SimTime> {
        if self.waiting.is_zero() || self.acr.interval().is_some_and(|interval| interval <= TCR_INTERVAL) {
            return None;
        }
        let last = self.last.max(self.last_tagged);
        Some(last.map_or(self.now, |last| last.saturating_add(TCR_INTERVAL)))
    }
}

fn halved(rate: f64, times: u8) -> f64 {
    rate / f64::from(1u32 << times)
}

/// Mrm, fixed (§5.10.2.1).
const MRM: u64 = 2;
/// TCR, fixed: 10 cells/s.
const TCR_INTERVAL: Span = Span::from_ms(100);

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use proptest::prelude::*;
    use wiretwin_wire::rm::Rate;

    use super::*;

    fn rate(cells_per_s: f64) -> CellRate {
        CellRate::new(cells_per_s).expect("a rate")
    }

    fn ms(ms: u64) -> SimTime {
        SimTime::ZERO.saturating_add(Span::from_ms(ms))
    }

    /// 1000 cells/s at most and at first.
    fn config() -> Config {
        Config::new(rate(1000.0))
    }

    fn source(config: Config) -> Source {
        Source::new(config).expect("parameters in range")
    }

    fn backward() -> Repr {
        Repr { backward: true, explicit_rate: Rate::MAX, no_increase: true, ..Repr::default() }
    }

    /// What is sent until a time, with the times in microseconds.
    fn sent(source: &mut Source, until: SimTime) -> Vec<(u64, SourceCell)> {
        let mut cells = Vec::new();
        loop {
            match source.poll_output() {
                Output::Transmit(cell) => cells.push((source.now.as_ps() / 1_000_000, cell)),
                Output::Timeout(Some(time)) if time <= until => source.handle_timeout(time),
                Output::Timeout(_) => return cells,
                _ => {}
            }
        }
    }

    fn kinds(cells: &[(u64, SourceCell)]) -> Vec<char> {
        let kind = |cell: &SourceCell| match cell {
            SourceCell::Data => 'd',
            SourceCell::Forward(_) => 'F',
            SourceCell::TaggedForward(_) => 'T',
            SourceCell::Backward(_) => 'B',
        };
        cells.iter().map(|(_, cell)| kind(cell)).collect()
    }

    #[test]
    fn a_wrong_parameter_makes_no_source() {
        assert!(Source::new(Config { nrm: Cells::new(0), ..config() }).is_err());
    }

    #[test]
    fn the_first_cell_is_a_forward_one_and_one_in_nrm() {
        let mut source = source(Config { nrm: Cells::new(4), ..config() });
        source.offer(SimTime::ZERO, Cells::new(7));
        let cells = sent(&mut source, ms(1000));
        assert_eq!(kinds(&cells), ['F', 'd', 'd', 'd', 'F', 'd', 'd', 'd', 'F', 'd']);
        let times: Vec<u64> = cells.iter().map(|(time, _)| *time).collect();
        assert_eq!(times, (0..10).map(|cell| cell * 1000).collect::<Vec<_>>(), "1/ACR apart");
    }

    #[test]
    fn a_forward_cell_says_the_rates() {
        let mut source = source(Config { mcr: rate(10.0), icr: rate(500.0), ..config() });
        source.offer(SimTime::ZERO, Cells::new(1));
        let expected = Repr {
            explicit_rate: Rate::floor(1000.0),
            current_cell_rate: Rate::floor(500.0),
            minimum_cell_rate: Rate::floor(10.0),
            ..Repr::default()
        };
        assert_eq!(source.poll_output(), Output::Transmit(SourceCell::Forward(expected)));
    }

    #[test]
    fn an_idle_source_sends_nothing() {
        let mut source = source(config());
        assert_eq!(source.poll_output(), Output::Timeout(None));
        source.offer(SimTime::ZERO, Cells::new(1));
        sent(&mut source, ms(10));
        assert_eq!(source.poll_output(), Output::Timeout(None));
    }

    #[test]
    fn after_trm_two_cells_are_enough_for_a_forward_one() {
        let mut source = source(config());
        source.offer(ms(0), Cells::new(2));
        sent(&mut source, ms(10));
        source.offer(ms(99), Cells::new(1));
        assert_eq!(kinds(&sent(&mut source, ms(99))), ['d'], "not yet 100 ms");
        source.offer(ms(100), Cells::new(1));
        assert_eq!(kinds(&sent(&mut source, ms(102))), ['F', 'd']);
    }

    #[test]
    fn a_turned_cell_goes_before_data_once_a_round_and_always_where_no_data_waits() {
        let mut source = source(Config { nrm: Cells::new(8), ..config() });
        source.offer(ms(0), Cells::new(4));
        source.turn(ms(0), backward());
        assert_eq!(kinds(&sent(&mut source, ms(2))), ['F', 'B', 'd']);
        source.turn(ms(2), backward());
        assert_eq!(kinds(&sent(&mut source, ms(9))), ['d', 'd', 'd', 'B'], "data first, then it");
        source.turn(ms(9), backward());
        source.turn(ms(9), Repr { congestion: true, ..backward() });
        let cells = sent(&mut source, ms(20));
        assert_eq!(kinds(&cells), ['B'], "the newer one, and the older is gone");
        assert!(matches!(cells[0].1, SourceCell::Backward(cell) if cell.congestion));
        assert_eq!(source.overtaken(), 1);
    }

    #[test]
    fn feedback_changes_the_rate_as_the_rule_says() {
        let start = Config { icr: rate(160.0), mcr: rate(100.0), ..config() };
        let told = |cell: Repr| {
            let mut source = source(start);
            source.handle_backward(ms(1), &cell);
            source.allowed().cells_per_s()
        };
        let free = Repr { no_increase: false, ..backward() };
        assert_eq!(told(Repr { congestion: true, ..backward() }), 150.0, "less a sixteenth of itself");
        assert_eq!(told(backward()), 160.0, "no increase");
        assert_eq!(told(free), 222.5, "more by a sixteenth of the peak rate");
        assert_eq!(told(Repr { explicit_rate: Rate::floor(120.0), ..free }), 120.0);
        assert_eq!(told(Repr { explicit_rate: Rate::ZERO, ..free }), 100.0, "never below the minimum");
        assert_eq!(told(Repr { congestion: true, becn: true, ..backward() }), 150.0);
        assert_eq!(told(Repr { backward: false, ..free }), 160.0, "a cell that is not backward");
    }

    #[test]
    fn a_rate_never_passes_the_peak() {
        let mut source = source(Config { icr: rate(990.0), ..config() });
        source.handle_backward(ms(1), &Repr { no_increase: false, ..backward() });
        assert_eq!(source.allowed(), rate(1000.0));
        assert_eq!(source.poll_output(), Output::Event(SourceEvent::Told(rate(1000.0))));
        source.handle_backward(ms(1), &Repr { backward: false, ..backward() });
        assert_eq!(source.strays(), 1);
    }

    #[test]
    fn a_rise_lets_the_next_cell_go_sooner_and_a_fall_binds_those_after_it() {
        let mut source = source(Config { icr: rate(100.0), ..config() });
        source.offer(ms(0), Cells::new(9));
        assert_eq!(kinds(&sent(&mut source, ms(0))), ['F']);
        source.handle_backward(
            ms(1),
            &Repr { no_increase: false, explicit_rate: Rate::floor(125.0), ..backward() },
        );
        let cells = sent(&mut source, ms(9));
        assert_eq!(cells, [(8000, SourceCell::Data)], "an 125th of a second after the last");
        source.handle_backward(ms(9), &Repr { explicit_rate: Rate::floor(50.0), ..backward() });
        let times: Vec<u64> = sent(&mut source, ms(40)).iter().map(|(time, _)| *time).collect();
        assert_eq!(times, [16_000, 36_000]);
    }

    #[test]
    fn a_rate_that_was_not_used_is_given_up() {
        let start = Config { icr: rate(100.0), nrm: Cells::new(2), ..config() };
        for (pause, after) in [(500, 1000.0), (501, 100.0)] {
            let mut source = source(start);
            source.offer(ms(0), Cells::new(1));
            sent(&mut source, ms(20));
            for _ in 0..16 {
                source.handle_backward(ms(20), &Repr { no_increase: false, ..backward() });
            }
            assert_eq!(source.allowed(), rate(1000.0));
            source.offer(ms(pause), Cells::new(1));
            sent(&mut source, ms(pause));
            assert_eq!(source.allowed(), rate(after), "idle since 0 ms, at {pause} ms");
        }
    }

    #[test]
    fn a_source_that_nobody_answers_slows_down_by_a_sixteenth_each_time() {
        let config = Config { nrm: Cells::new(2), tbe: Cells::new(6), ..config() };
        let mut source = source(config);
        source.offer(ms(0), Cells::new(6));
        let cells = sent(&mut source, ms(100));
        let said: Vec<f64> = cells
            .iter()
            .filter_map(|(_, cell)| match cell {
                SourceCell::Forward(cell) => Some(cell.current_cell_rate.cells_per_s()),
                _ => None,
            })
            .collect();
        let coded = |rate| Rate::floor(rate).cells_per_s();
        let silent = |cuts: i32| coded(1000.0 * (15.0f64 / 16.0).powi(cuts));
        assert_eq!(said, [coded(1000.0), coded(1000.0), coded(1000.0), silent(1), silent(2), silent(3)]);
        source.handle_backward(ms(100), &Repr { becn: true, ..backward() });
        source.offer(ms(100), Cells::new(1));
        let before = source.allowed();
        sent(&mut source, ms(100));
        assert!(source.allowed() < before, "a switch's own cell is no answer");
        source.handle_backward(ms(101), &backward());
        source.offer(ms(101), Cells::new(2));
        let before = source.allowed();
        sent(&mut source, ms(110));
        assert_eq!(source.allowed(), before, "an answer ends it");
    }

    #[test]
    fn without_the_factor_silence_changes_nothing() {
        let config = Config { nrm: Cells::new(2), tbe: Cells::new(2), cdf_halvings: None, ..config() };
        let mut source = source(config);
        source.offer(ms(0), Cells::new(50));
        sent(&mut source, ms(200));
        assert_eq!(source.allowed(), rate(1000.0));
    }

    #[test]
    fn a_source_that_may_send_nothing_asks_ten_times_a_second_out_of_rate() {
        let mut source = source(Config { icr: CellRate::ZERO, ..config() });
        source.offer(ms(3), Cells::new(1));
        let cells = sent(&mut source, ms(250));
        assert_eq!(kinds(&cells), ['T', 'T', 'T']);
        assert_eq!(cells.iter().map(|(time, _)| *time).collect::<Vec<_>>(), [3000, 103_000, 203_000]);
        source.handle_backward(ms(250), &Repr { no_increase: false, ..backward() });
        let cells = sent(&mut source, ms(300));
        assert_eq!(kinds(&cells), ['F', 'd'], "the first cell within the rate is a forward one");
        assert_eq!(cells[0].0, 250_000);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn cells_keep_to_the_rate_and_the_rate_to_its_bounds(
            steps in prop::collection::vec((0u64..40_000, 0u8..4, 0u64..5, 0.0f64..2000.0, any::<[bool; 4]>()), 1..60),
        ) {
            let config = Config { mcr: rate(50.0), nrm: Cells::new(4), tbe: Cells::new(8), ..config() };
            let mut source = source(config);
            let (mut now, mut last, mut offered, mut data) = (SimTime::ZERO, None, 0, 0);
            for (pause, call, cells, explicit, [backward, becn, congestion, no_increase]) in steps {
                now = now.saturating_add(Span::from_us(pause));
                let explicit_rate = Rate::floor(explicit);
                let cell = Repr { backward, becn, congestion, no_increase, explicit_rate, ..Repr::default() };
                match call {
                    0 => {
                        source.offer(now, Cells::new(cells));
                        offered += cells;
                    }
                    1 => source.handle_backward(now, &cell),
                    2 => source.turn(now, cell),
                    _ => source.handle_timeout(now),
                }
                loop {
                    match source.poll_output() {
                        Output::Transmit(cell) => {
                            data += u64::from(cell == SourceCell::Data);
                            if !matches!(cell, SourceCell::TaggedForward(_)) {
                                let apart = last.map_or(Span::MAX, |last| now.saturating_since(last));
                                prop_assert!(apart >= Span::from_ms(1), "faster than the peak: {apart}");
                                last = Some(now);
                            }
                        }
                        Output::Timeout(due) => {
                            prop_assert!(due.is_none_or(|due| due > now));
                            break;
                        }
                        _ => {}
                    }
                    prop_assert!(source.allowed() >= rate(50.0) && source.allowed() <= rate(1000.0));
                }
            }
            prop_assert_eq!(data + source.waiting().get(), offered);
        }
    }
}
