//! The whole loop: sources, a line with a queue and ERICA, destinations, and the way back.

use alloc::collections::{BinaryHeap, VecDeque};
use alloc::vec::Vec;
use core::cmp::Reverse;

use wiretwin_units::{BitRate, Cells, SimTime, Span};
use wiretwin_wire::rm::Repr;

use super::{
    CellRate, Config, Destination, Erica, EricaConfig, Interval, QueueControl, Source, SourceCell, VcIndex,
};
use crate::Output;

const LEG: Span = Span::from_us(25);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Timer(usize),
    Limited(usize),
    AtPort(usize, usize),
    LineFree,
    AtDestination(usize, usize),
    BackAtPort(usize, usize),
    AtSource(usize, usize),
}

/// Greedy sources, or some that offer only so many cells a second, into one line.
struct Loop {
    now: SimTime,
    events: BinaryHeap<Reverse<(SimTime, u64, What)>>,
    count: u64,
    /// Cells by number.
    cells: Vec<SourceCell>,
    sources: Vec<Source>,
    limits: Vec<Option<Span>>,
    destinations: Vec<Destination>,
    port: Erica,
    line: Span,
    queue: VecDeque<(usize, usize)>,
    busy: bool,
    peak: usize,
    carried: Vec<u64>,
}

impl Loop {
    fn new(pcr: CellRate, limits: &[Option<f64>], port: EricaConfig) -> Self {
        let mut port = Erica::new(port).expect("typical parameters");
        let line = CellRate::of_line(BitRate::kbit_s(149_760));
        for vc in 0..limits.len() {
            assert_eq!(port.add(), VcIndex(vc as u32));
        }
        let gap = |limit: &Option<f64>| {
            limit.map(|share| {
                CellRate::new(line.cells_per_s() * share).expect("a rate").interval().expect("a rate")
            })
        };
        Self {
            now: SimTime::ZERO,
            events: BinaryHeap::new(),
            count: 0,
            cells: Vec::new(),
            sources: limits.iter().map(|_| Source::new(Config::new(pcr)).expect("defaults")).collect(),
            limits: limits.iter().map(gap).collect(),
            destinations: limits.iter().map(|_| Destination::new()).collect(),
            port,
            line: line.interval().expect("a rate"),
            queue: VecDeque::new(),
            busy: false,
            peak: 0,
            carried: alloc::vec![0; limits.len()],
        }
    }

    fn after(&mut self, span: Span, what: What) {
        self.count += 1;
        self.events.push(Reverse((self.now.saturating_add(span), self.count, what)));
    }

    fn drain(&mut self, vc: usize) {
        loop {
            match self.sources[vc].poll_output() {
                Output::Transmit(cell) => {
                    self.cells.push(cell);
                    self.after(LEG, What::AtPort(vc, self.cells.len() - 1));
                }
                Output::Timeout(due) => {
                    if let Some(due) = due {
                        self.after(due.saturating_since(self.now), What::Timer(vc));
                    }
                    break;
                }
                _ => {}
            }
        }
    }

    fn serve(&mut self) {
        self.busy = !self.queue.is_empty();
        if let Some((vc, cell)) = self.queue.pop_front() {
            self.carried[vc] += 1;
            self.after(self.line, What::LineFree);
            self.after(self.line + LEG, What::AtDestination(vc, cell));
        }
    }

    fn back(&mut self, vc: usize, cell: Repr, span: Span, what: fn(usize, usize) -> What) {
        self.cells.push(SourceCell::Backward(cell));
        self.after(span, what(vc, self.cells.len() - 1));
    }

    fn handle(&mut self, what: What) {
        let now = self.now;
        match what {
            What::Timer(vc) => {
                self.sources[vc].handle_timeout(now);
                self.drain(vc);
            }
            What::Limited(vc) => {
                self.sources[vc].offer(now, Cells::new(1));
                self.drain(vc);
                let gap = self.limits[vc].expect("a limited source");
                self.after(gap, What::Limited(vc));
            }
            What::AtPort(vc, cell) => {
                let index = VcIndex(vc as u32);
                if let SourceCell::Forward(forward) = &self.cells[cell] {
                    self.port.handle_forward(index, forward);
                }
                self.queue.push_back((vc, cell));
                self.peak = self.peak.max(self.queue.len());
                self.port.handle_cell(now, index, Cells::new(self.queue.len() as u64));
                if !self.busy {
                    self.serve();
                }
            }
            What::LineFree => self.serve(),
            What::AtDestination(vc, cell) => match self.cells[cell] {
                SourceCell::Data => self.destinations[vc].handle_data(false),
                SourceCell::Forward(forward) | SourceCell::TaggedForward(forward) => {
                    let turned = self.destinations[vc].handle_forward(&forward);
                    self.back(vc, turned, LEG, What::BackAtPort);
                }
                SourceCell::Backward(_) => unreachable!("these sources turn nothing around"),
            },
            What::BackAtPort(vc, cell) => {
                let SourceCell::Backward(mut cell) = self.cells[cell] else {
                    unreachable!("on its way back")
                };
                self.port.handle_backward(VcIndex(vc as u32), &mut cell);
                self.back(vc, cell, LEG, What::AtSource);
            }
            What::AtSource(vc, cell) => {
                let SourceCell::Backward(cell) = self.cells[cell] else { unreachable!("on its way back") };
                self.sources[vc].handle_backward(now, &cell);
                self.drain(vc);
            }
        }
    }

    /// Runs for a while; the share of the line that each got in its second half.
    fn run(&mut self, span: Span) -> Vec<f64> {
        for vc in 0..self.sources.len() {
            match self.limits[vc] {
                Some(_) => self.after(Span::ZERO, What::Limited(vc)),
                None => {
                    self.sources[vc].offer(SimTime::ZERO, Cells::new(u64::MAX / 2));
                    self.drain(vc);
                }
            }
        }
        let (middle, end) = (SimTime::ZERO.saturating_add(span / 2), SimTime::ZERO.saturating_add(span));
        let mut halfway = None;
        while let Some(Reverse((time, _, what))) = self.events.pop()
            && time < end
        {
            if time >= middle && halfway.is_none() {
                halfway = Some(self.carried.clone());
            }
            self.now = time;
            self.handle(what);
        }
        let before = halfway.expect("half of the time");
        let slots = (span / 2).as_ps() as f64 / self.line.as_ps() as f64;
        self.carried.iter().zip(before).map(|(after, before)| (after - before) as f64 / slots).collect()
    }
}

fn line() -> CellRate {
    CellRate::of_line(BitRate::kbit_s(149_760))
}

fn port(cells: u64) -> EricaConfig {
    EricaConfig::new(line(), Cells::new(cells))
}

fn close(shares: &[f64], expected: f64) {
    assert!(
        shares.iter().all(|share| (share - expected).abs() < 0.005),
        "{shares:?}, expected {expected} each"
    );
}

const RUN: Span = Span::from_ms(60);

#[test]
fn a_source_alone_below_the_target_keeps_its_peak_rate() {
    let pcr = CellRate::of_line(BitRate::mbit_s(50));
    let mut one = Loop::new(pcr, &[None], port(30));
    close(&one.run(RUN), 50.0 / 149.76);
    assert_eq!(one.sources[0].allowed(), pcr.coded().into(), "as far as an RM cell can say it");
    assert!(one.peak <= 1, "a queue of {}", one.peak);
}

#[test]
fn greedy_sources_share_the_target_equally() {
    for (sources, share) in [(2, 0.45), (5, 0.18)] {
        for cells in [30, 100] {
            let mut run = Loop::new(line(), &alloc::vec![None; sources], port(cells));
            close(&run.run(RUN), share);
        }
    }
}

#[test]
fn sources_whose_peak_rates_fit_are_not_held_back() {
    let pcr = CellRate::of_line(BitRate::mbit_s(50));
    close(&Loop::new(pcr, &[None; 2], port(100)).run(RUN), 50.0 / 149.76);
    close(&Loop::new(pcr, &[None; 5], port(100)).run(RUN), 0.18);
}

#[test]
fn what_a_limited_source_leaves_goes_to_the_others() {
    for cells in [30, 100, 1000] {
        let shares = Loop::new(line(), &[Some(0.1), None], port(cells)).run(RUN);
        assert!((0.1..0.105).contains(&shares[0]), "{shares:?}: with its RM cells");
        // A load from 1 to 1 + delta counts as the aim reached, on either side of it.
        assert!((0.79..0.9).contains(&shares[1]), "{shares:?}");
    }
}

#[test]
fn an_interval_by_time_shares_as_one_by_cells() {
    let interval = Interval { cells: None, time: Some(Span::from_us(500)) };
    let mut run = Loop::new(line(), &[None; 3], EricaConfig { interval, ..port(1) });
    // The loop has no timer of its own for the port: each cell is a chance.
    let mut timed = Vec::new();
    for vc in 0..3 {
        run.sources[vc].offer(SimTime::ZERO, Cells::new(u64::MAX / 2));
        run.drain(vc);
    }
    while let Some(Reverse((time, _, what))) = run.events.pop()
        && time < SimTime::ZERO.saturating_add(RUN)
    {
        run.now = time;
        run.port.handle_timeout(time, Cells::new(run.queue.len() as u64));
        run.handle(what);
    }
    for source in &run.sources {
        timed.push(source.allowed().cells_per_s() / line().cells_per_s());
    }
    close(&timed, 0.3);
}

#[test]
fn queue_control_fills_the_line_and_keeps_a_queue_near_its_aim() {
    let queue = QueueControl { delay: Span::from_us(500), above: 1.15, empty: 1.05, least: 0.5 };
    let mut run = Loop::new(line(), &[None; 2], EricaConfig { queue: Some(queue), ..port(100) });
    let shares = run.run(Span::from_ms(100));
    let sum: f64 = shares.iter().sum();
    assert!(sum > 0.99, "{shares:?}");
    let held = run.queue.len() as f64 / (line().cells_per_s() * 500e-6);
    assert!((0.2..3.0).contains(&held), "{} cells wait", run.queue.len());
}

#[test]
fn the_same_run_gives_the_same_cells() {
    let once = || {
        let mut run = Loop::new(line(), &[None, Some(0.2), None], port(30));
        (run.run(Span::from_ms(5)), run.count, run.peak)
    };
    assert_eq!(once(), once());
}
