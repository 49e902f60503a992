//! Explicit rates of one output port: ERICA, and the queue control of ERICA+.
//!
//! ATM Forum 96-1172 (Jain, Kalyanaraman, Goyal, Fahmy, Viswanathan): the basic algorithm with the
//! max-min correction (`MaxAlloc`), at most one new rate per connection and interval, and as options the
//! averaging of load, the decaying count of active connections and rates measured by the switch.
//! Choice: a connection that was not seen in an interval decays, and one that was counts in full.

use alloc::vec::Vec;
use core::fmt;

use wiretwin_units::{Cells, SimTime, Span};
use wiretwin_wire::rm::{Rate, Repr};

use super::CellRate;

/// A connection of a port, numbered from 0 as they were added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct VcIndex(pub u32);

/// How long the switch measures before it computes anew: whichever comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// After so many cells of this class have come.
    pub cells: Option<Cells>,
    /// After this time.
    pub time: Option<Span>,
}

/// What the load is computed from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Load {
    /// The last interval.
    Last,
    /// Cells, capacity and time, each summed with this weight for what is new, above 0 and at most 1.
    Averaged(f64),
}

/// How connections are counted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ActiveCount {
    /// Those seen in the interval.
    Seen,
    /// One that was not seen counts so much less with each interval, above 0 and below 1.
    Decayed(f64),
}

/// ERICA+: the share of the capacity that is given away falls as the queue grows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QueueControl {
    /// The queueing delay that is aimed at.
    pub delay: Span,
    /// a: how steeply the share falls above it. More than 1; 1.15 is typical.
    pub above: f64,
    /// b: the share with an empty queue. More than 1; 1.05 is typical.
    pub empty: f64,
    /// QDLF: the least share, above 0 and at most 1; 0.5 is typical.
    pub least: f64,
}

/// The parameters of a port.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EricaConfig {
    /// What the line carries.
    pub line: CellRate,
    /// U: the share of the capacity that is given away; above 0 and at most 1. 0.9 to 0.95 is typical.
    pub utilization: f64,
    /// The interval of measurement.
    pub interval: Interval,
    /// delta: loads up to 1 + delta count as the aim reached; 0 or more. 0.1 is typical.
    pub equality: f64,
    /// The load.
    pub load: Load,
    /// The active connections.
    pub active: ActiveCount,
    /// The switch measures what each connection sends instead of believing its RM cells.
    pub measure_rates: bool,
    /// Takes the place of U where it is given.
    pub queue: Option<QueueControl>,
}

/// A parameter out of its range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EricaError {
    /// The parameter.
    pub name: &'static str,
    /// Its value.
    pub value: f64,
    /// What it may be.
    pub allowed: &'static str,
}

impl fmt::Display for EricaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is {}: allowed is {}", self.name, self.value, self.allowed)
    }
}

impl core::error::Error for EricaError {}

impl EricaConfig {
    /// The typical parameters for a line, computing anew after so many cells.
    #[must_use]
    pub const fn new(line: CellRate, cells: Cells) -> Self {
        Self {
            line,
            utilization: 0.9,
            interval: Interval { cells: Some(cells), time: None },
            equality: 0.1,
            load: Load::Last,
            active: ActiveCount::Seen,
            measure_rates: false,
            queue: None,
        }
    }

    /// Whether every parameter is in its range.
    ///
    /// # Errors
    /// [`EricaError`] for the first that is not.
    pub fn check(&self) -> Result<(), EricaError> {
        let need = |good: bool, name, value, allowed| {
            if good { Ok(()) } else { Err(EricaError { name, value, allowed }) }
        };
        let share = "above 0 and at most 1";
        let part = |value: f64| value > 0.0 && value <= 1.0;
        need(self.line > CellRate::ZERO, "line", self.line.cells_per_s(), "above 0 cells/s")?;
        need(part(self.utilization), "utilization", self.utilization, share)?;
        let delta = self.equality;
        need(delta >= 0.0 && delta.is_finite(), "equality", delta, "0 or more")?;
        let Interval { cells, time } = self.interval;
        need(cells.is_some() || time.is_some(), "interval", 0.0, "a count of cells, a time, or both")?;
        need(cells.is_none_or(|cells| !cells.is_zero()), "interval cells", 0.0, "1 or more")?;
        need(time.is_none_or(|time| !time.is_zero()), "interval time", 0.0, "above 0")?;
        if let Load::Averaged(weight) = self.load {
            need(part(weight), "load weight", weight, share)?;
        }
        if let ActiveCount::Decayed(decay) = self.active {
            need(decay > 0.0 && decay < 1.0, "decay", decay, "above 0 and below 1")?;
        }
        if let Some(QueueControl { delay, above, empty, least }) = self.queue {
            need(!delay.is_zero(), "queue delay", 0.0, "above 0")?;
            need(above > 1.0 && above.is_finite(), "queue above", above, "more than 1")?;
            need(empty > 1.0 && empty.is_finite(), "queue empty", empty, "more than 1")?;
            need(part(least), "queue least", least, share)?;
        }
        Ok(())
    }
}

/// What the switch knows of a connection.
#[derive(Clone, Copy, Debug, Default)]
struct Vc {
    ccr: f64,
    /// Cells in this interval.
    cells: u64,
    /// How far it counts as active.
    activity: f64,
    /// The rate that it was given in this interval.
    given: Option<f64>,
}

/// One output port.
#[derive(Clone, Debug)]
pub struct Erica {
    config: EricaConfig,
    vcs: Vec<Vc>,
    began: SimTime,
    /// In this interval: cells of this class, and of those that go before them.
    arrived: u64,
    guaranteed: u64,
    /// Weighted sums of cells, capacity over time, and time, where load is averaged.
    sums: Option<[f64; 3]>,
    target: f64,
    load: f64,
    fair_share: f64,
    most_before: f64,
    most_now: f64,
    intervals: u64,
}

impl Erica {
    /// A port without connections.
    ///
    /// # Errors
    /// [`EricaError`] if a parameter is out of its range.
    pub fn new(config: EricaConfig) -> Result<Self, EricaError> {
        config.check()?;
        let target = config.utilization * config.line.cells_per_s();
        Ok(Self {
            config,
            vcs: Vec::new(),
            began: SimTime::ZERO,
            arrived: 0,
            guaranteed: 0,
            sums: None,
            target,
            load: 1.0,
            fair_share: target,
            most_before: target,
            most_now: target,
            intervals: 0,
        })
    }

    /// Adds a connection.
    pub fn add(&mut self) -> VcIndex {
        self.vcs.push(Vc::default());
        VcIndex(self.vcs.len() as u32 - 1)
    }

    /// A cell of this class has come for the port, whether there is room for it or not; `queue` is how many
    /// of its class wait.
    ///
    /// # Panics
    /// If the connection was not added.
    pub fn handle_cell(&mut self, now: SimTime, vc: VcIndex, queue: Cells) {
        self.arrived += 1;
        let vc = &mut self.vcs[vc.0 as usize];
        vc.cells += 1;
        if self.config.interval.cells.is_some_and(|cells| self.arrived >= cells.get()) {
            self.end_interval(now, queue);
        }
    }

    /// Cells have come that go before this class.
    pub const fn handle_guaranteed(&mut self, cells: Cells) {
        self.guaranteed += cells.get();
    }

    /// A forward RM cell passes.
    ///
    /// # Panics
    /// If the connection was not added.
    pub fn handle_forward(&mut self, vc: VcIndex, cell: &Repr) {
        if !self.config.measure_rates {
            self.vcs[vc.0 as usize].ccr = cell.current_cell_rate.cells_per_s();
        }
    }

    /// A backward RM cell passes; its explicit rate is lowered to what this port gives the connection.
    ///
    /// # Panics
    /// If the connection was not added.
    pub fn handle_backward(&mut self, vc: VcIndex, cell: &mut Repr) {
        let Vc { ccr, given, .. } = self.vcs[vc.0 as usize];
        let rate = given.unwrap_or_else(|| self.rate_for(ccr));
        self.vcs[vc.0 as usize].given = Some(rate);
        let coded = Rate::floor(rate);
        if coded.cells_per_s() < cell.explicit_rate.cells_per_s() {
            cell.explicit_rate = coded;
        }
    }

    /// When [`Erica::handle_timeout`] is to be called.
    #[must_use]
    pub fn due(&self) -> Option<SimTime> {
        self.config.interval.time.and_then(|time| self.began.checked_add(time))
    }

    /// It may be that time.
    pub fn handle_timeout(&mut self, now: SimTime, queue: Cells) {
        if self.due().is_some_and(|due| due <= now) {
            self.end_interval(now, queue);
        }
    }

    /// z: what came, over what was aimed at, in the last interval.
    #[must_use]
    pub const fn load(&self) -> f64 {
        self.load
    }

    /// The rate that an equal split would give each.
    #[must_use]
    pub const fn fair_share(&self) -> CellRate {
        CellRate::raw(self.fair_share)
    }

    /// What is given away in all.
    #[must_use]
    pub const fn target(&self) -> CellRate {
        CellRate::raw(self.target)
    }

    /// Intervals that have ended.
    #[must_use]
    pub const fn intervals(&self) -> u64 {
        self.intervals
    }

    fn rate_for(&mut self, ccr: f64) -> f64 {
        // Nothing came: there is no load to divide by, and the target is all that limits.
        let share = if self.load > 0.0 { ccr / self.load } else { self.target };
        let overloaded = self.load > 1.0 + self.config.equality;
        let mut rate = if overloaded { share.max(self.fair_share) } else { share.max(self.most_before) };
        self.most_now = self.most_now.max(rate);
        // What a cell says is rounded down: a source at its fair share is not below it.
        if rate > self.fair_share && ccr < Rate::floor(self.fair_share).cells_per_s() {
            rate = self.fair_share;
        }
        rate.min(self.target)
    }

    fn end_interval(&mut self, now: SimTime, queue: Cells) {
        let elapsed = now.saturating_since(self.began).as_s_f64();
        if elapsed <= 0.0 {
            return; // cells of one instant say nothing about a rate
        }
        let guaranteed = self.guaranteed as f64 / elapsed;
        let capacity = (self.config.line.cells_per_s() - guaranteed).max(0.0);
        let newest = [self.arrived as f64, capacity * elapsed, elapsed];
        let [cells, carried, time] = match (self.config.load, self.sums) {
            (Load::Averaged(weight), Some(old)) => {
                [0, 1, 2].map(|sum| weight * newest[sum] + (1.0 - weight) * old[sum])
            }
            _ => newest,
        };
        self.sums = Some([cells, carried, time]);
        let capacity = carried / time;
        self.target = self.share(queue, capacity) * capacity;
        let input = cells / time;
        self.load = if self.target > 0.0 {
            input / self.target
        } else if input > 0.0 {
            f64::INFINITY
        } else {
            0.0
        };
        let mut active = 0.0;
        for vc in &mut self.vcs {
            vc.activity = match self.config.active {
                _ if vc.cells > 0 => 1.0,
                ActiveCount::Seen => 0.0,
                ActiveCount::Decayed(decay) => vc.activity * decay,
            };
            active += vc.activity;
            if self.config.measure_rates {
                vc.ccr = vc.cells as f64 / elapsed;
            }
            vc.cells = 0;
            vc.given = None;
        }
        self.fair_share = self.target / active.max(1.0);
        self.most_before = self.most_now;
        self.most_now = self.fair_share;
        self.began = now;
        self.arrived = 0;
        self.guaranteed = 0;
        self.intervals += 1;
    }

    /// U, or f(q) of ERICA+.
    fn share(&self, queue: Cells, capacity: f64) -> f64 {
        let Some(QueueControl { delay, above, empty, least }) = self.config.queue else {
            return self.config.utilization;
        };
        let (queue, aim) = (queue.get() as f64, delay.as_s_f64() * capacity);
        if aim <= 0.0 {
            return least;
        }
        if queue <= aim {
            empty * aim / ((empty - 1.0) * queue + aim)
        } else {
            least.max(above * aim / ((above - 1.0) * queue + aim))
        }
    }
}

#[cfg(test)]
mod unit_tests {
    use alloc::string::ToString;

    use super::*;

    fn rate(cells_per_s: f64) -> CellRate {
        CellRate::new(cells_per_s).expect("a rate")
    }

    fn us(us: u64) -> SimTime {
        SimTime::ZERO.saturating_add(Span::from_us(us))
    }

    fn forward(ccr: f64) -> Repr {
        Repr { current_cell_rate: Rate::floor(ccr), ..Repr::default() }
    }

    /// The explicit rate that a connection gets.
    fn given(port: &mut Erica, vc: VcIndex) -> f64 {
        let mut cell = Repr { backward: true, explicit_rate: Rate::MAX, ..Repr::default() };
        port.handle_backward(vc, &mut cell);
        cell.explicit_rate.cells_per_s()
    }

    /// A port of 100 000 cells/s whose interval is 10 cells.
    fn config() -> EricaConfig {
        EricaConfig::new(rate(100_000.0), Cells::new(10))
    }

    /// An interval of 10 cells in so many microseconds, shared by connections.
    fn interval(port: &mut Erica, start: u64, us_long: u64, vcs: &[VcIndex]) {
        for cell in 0..10 {
            let vc = vcs[cell as usize % vcs.len()];
            let at = if cell == 9 { start + us_long } else { start + us_long * cell / 10 };
            port.handle_cell(us(at), vc, Cells::new(0));
        }
    }

    #[test]
    fn every_parameter_out_of_range_is_named() {
        let good = config();
        let queue = QueueControl { delay: Span::from_us(1500), above: 1.15, empty: 1.05, least: 0.5 };
        for (config, says) in [
            (EricaConfig { line: CellRate::ZERO, ..good }, "line is 0: allowed is above 0 cells/s"),
            (
                EricaConfig { utilization: 1.5, ..good },
                "utilization is 1.5: allowed is above 0 and at most 1",
            ),
            (EricaConfig { equality: -0.1, ..good }, "equality is -0.1: allowed is 0 or more"),
            (
                EricaConfig { interval: Interval { cells: None, time: None }, ..good },
                "interval is 0: allowed is a count of cells, a time, or both",
            ),
            (EricaConfig::new(good.line, Cells::new(0)), "interval cells is 0: allowed is 1 or more"),
            (
                EricaConfig { interval: Interval { cells: None, time: Some(Span::ZERO) }, ..good },
                "interval time is 0: allowed is above 0",
            ),
            (
                EricaConfig { load: Load::Averaged(0.0), ..good },
                "load weight is 0: allowed is above 0 and at most 1",
            ),
            (
                EricaConfig { active: ActiveCount::Decayed(1.0), ..good },
                "decay is 1: allowed is above 0 and below 1",
            ),
            (
                EricaConfig { queue: Some(QueueControl { above: 1.0, ..queue }), ..good },
                "queue above is 1: allowed is more than 1",
            ),
            (
                EricaConfig { queue: Some(QueueControl { delay: Span::ZERO, ..queue }), ..good },
                "queue delay is 0: allowed is above 0",
            ),
        ] {
            assert_eq!(Erica::new(config).expect_err("out of range").to_string(), says);
        }
    }

    #[test]
    fn the_fair_share_is_the_target_over_those_seen() {
        let mut port = Erica::new(config()).expect("a port");
        let [a, b, silent] = [0; 3].map(|_| port.add());
        assert_eq!(silent, VcIndex(2));
        interval(&mut port, 0, 100, &[a, b]);
        assert_eq!(port.target(), rate(90_000.0));
        assert_eq!(port.fair_share(), rate(45_000.0));
        assert!((port.load() - 100_000.0 / 90_000.0).abs() < 1e-9);
        assert_eq!(port.intervals(), 1);
    }

    #[test]
    fn guaranteed_cells_are_not_given_away() {
        let mut port = Erica::new(config()).expect("a port");
        let a = port.add();
        port.handle_guaranteed(Cells::new(5));
        interval(&mut port, 0, 100, &[a]);
        assert_eq!(port.target(), rate(45_000.0));
        port.handle_guaranteed(Cells::new(1000));
        interval(&mut port, 100, 100, &[a]);
        assert_eq!(port.target(), CellRate::ZERO);
        assert_eq!(port.load(), f64::INFINITY);
        assert_eq!(given(&mut port, a), 0.0, "nothing is left for it");
    }

    #[test]
    fn an_overloaded_port_scales_each_rate_down_but_not_below_the_fair_share() {
        let mut port = Erica::new(config()).expect("a port");
        let [a, b] = [0; 2].map(|_| port.add());
        port.handle_forward(a, &forward(160_000.0));
        port.handle_forward(b, &forward(20_000.0));
        interval(&mut port, 0, 55, &[a, b]);
        // 10 cells in 55 us are 2.0202 times 90 000 a second.
        let said = Rate::floor(160_000.0).cells_per_s();
        assert_eq!(given(&mut port, a), Rate::floor(said / port.load()).cells_per_s());
        assert_eq!(given(&mut port, b), Rate::floor(45_000.0).cells_per_s());
    }

    #[test]
    fn below_the_aim_each_may_have_as_much_as_the_most_that_was_given() {
        let mut port = Erica::new(config()).expect("a port");
        let [a, b] = [0; 2].map(|_| port.add());
        port.handle_forward(a, &forward(70_000.0));
        interval(&mut port, 0, 100, &[a, b]);
        let before = given(&mut port, a);
        assert!(before > 60_000.0, "{before}");
        interval(&mut port, 100, 200, &[a, b]);
        port.handle_forward(b, &forward(46_000.0));
        assert!(given(&mut port, b) >= before, "the most of the interval before");
    }

    #[test]
    fn a_connection_gets_one_new_rate_an_interval() {
        let mut port = Erica::new(config()).expect("a port");
        let [a, b] = [0; 2].map(|_| port.add());
        port.handle_forward(a, &forward(80_000.0));
        interval(&mut port, 0, 90, &[a, b]);
        let first = given(&mut port, a);
        port.handle_forward(a, &forward(10_000.0));
        assert_eq!(given(&mut port, a), first, "within the interval it stays");
        interval(&mut port, 90, 90, &[a, b]);
        assert_ne!(given(&mut port, a), first);
    }

    #[test]
    fn an_explicit_rate_is_only_lowered() {
        let mut port = Erica::new(config()).expect("a port");
        let a = port.add();
        let mut cell = Repr { explicit_rate: Rate::floor(10.0), ..Repr::default() };
        port.handle_backward(a, &mut cell);
        assert_eq!(cell.explicit_rate, Rate::floor(10.0));
    }

    #[test]
    fn cells_of_one_instant_end_no_interval() {
        let mut port = Erica::new(config()).expect("a port");
        let a = port.add();
        for _ in 0..25 {
            port.handle_cell(SimTime::ZERO, a, Cells::new(0));
        }
        assert_eq!(port.intervals(), 0);
        port.handle_cell(us(1), a, Cells::new(0));
        assert_eq!(port.intervals(), 1);
    }

    #[test]
    fn an_interval_ends_by_time_too() {
        let interval = Interval { cells: Some(Cells::new(10)), time: Some(Span::from_us(50)) };
        let mut port = Erica::new(EricaConfig { interval, ..config() }).expect("a port");
        let a = port.add();
        assert_eq!(port.due(), Some(us(50)));
        port.handle_timeout(us(49), Cells::new(0));
        assert_eq!(port.intervals(), 0);
        port.handle_timeout(us(50), Cells::new(0));
        assert_eq!((port.intervals(), port.load()), (1, 0.0));
        assert_eq!(
            given(&mut port, a),
            Rate::floor(90_000.0).cells_per_s(),
            "the target limits, nothing else"
        );
        assert_eq!(port.due(), Some(us(100)));
    }

    #[test]
    fn who_falls_silent_counts_less_and_less() {
        let active = ActiveCount::Decayed(0.5);
        let mut port = Erica::new(EricaConfig { active, ..config() }).expect("a port");
        let [a, b] = [0; 2].map(|_| port.add());
        interval(&mut port, 0, 100, &[a, b]);
        assert_eq!(port.fair_share(), rate(45_000.0));
        interval(&mut port, 100, 100, &[a]);
        assert_eq!(port.fair_share(), rate(60_000.0), "one and a half");
        interval(&mut port, 200, 100, &[a]);
        assert_eq!(port.fair_share(), rate(72_000.0), "one and a quarter");
    }

    #[test]
    fn averages_weigh_cells_and_time_apart() {
        let mut port = Erica::new(EricaConfig { load: Load::Averaged(0.5), ..config() }).expect("a port");
        let a = port.add();
        interval(&mut port, 0, 100, &[a]);
        interval(&mut port, 100, 300, &[a]);
        // 10 cells in 200 us, where the mean of the loads would be of 66 667 cells/s.
        assert!((port.load() - 50_000.0 / 90_000.0).abs() < 1e-9, "{}", port.load());
    }

    #[test]
    fn the_switch_may_measure_rates_itself() {
        let mut port = Erica::new(EricaConfig { measure_rates: true, ..config() }).expect("a port");
        let [a, b] = [0; 2].map(|_| port.add());
        port.handle_forward(a, &forward(1.0));
        interval(&mut port, 0, 50, &[a, a, a, a, b]);
        // It sent 8 of 10 cells in 50 us, 160 000 a second, and said 1.
        assert_eq!(given(&mut port, a), Rate::floor(160_000.0 / port.load()).cells_per_s());
    }

    #[test]
    fn a_queue_that_grows_takes_from_what_is_given_away() {
        let queue = QueueControl { delay: Span::from_us(1000), above: 1.15, empty: 1.05, least: 0.5 };
        let port = Erica::new(EricaConfig { queue: Some(queue), ..config() }).expect("a port");
        let share = |cells| port.share(Cells::new(cells), 100_000.0);
        assert!((share(0) - 1.05).abs() < 1e-12);
        assert!((share(100) - 1.0).abs() < 1e-12, "the aim is 100 cells");
        assert!((share(200) - 1.15 * 100.0 / 130.0).abs() < 1e-12);
        assert_eq!(share(100_000), 0.5);
        assert_eq!(port.share(Cells::new(5), 0.0), 0.5, "no capacity at all");
    }
}
