//! The receiver: CPCS-PDUs out of cells, payloads out of CPCS-PDUs.

use alloc::collections::VecDeque;
use core::fmt;

use wiretwin_units::{Bytes, SimTime, Span};
use wiretwin_wire::aal5::pdu_octets;
use wiretwin_wire::cell::PAYLOAD_OCTETS;

use super::{CpcsId, ReassemblerOutput, SarPdu, Trailer, Unitdata};
use crate::{Output, Work, WorkKind};

/// Parameters of a receiver (I.363.5 §10.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// `Max_SDU_Deliver_Length`: longer payloads are not delivered. 1..=65535 octets; the default
    /// is 65535, all that Length can say.
    pub max_sdu_deliver_length: u16,
    /// The reassembly timer: how long after its first cell a PDU may take. The default is none,
    /// as the specification leaves the timer to the user.
    pub reassembly_timer: Option<Span>,
}

impl Default for Config {
    fn default() -> Self {
        Self { max_sdu_deliver_length: u16::MAX, reassembly_timer: None }
    }
}

/// What the receiver is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// The next cell is the first of a PDU.
    #[default]
    Idle,
    /// Cells of a PDU are held.
    Reassembling,
    /// A PDU grew too long: its cells are dropped as they come, up to and with the last.
    Discarding,
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Idle => "Idle",
            Self::Reassembling => "Reassembling",
            Self::Discarding => "Discarding",
        })
    }
}

/// Cells that were dropped, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Discarded {
    /// The reason why it was discarded.
    pub why: Discard,
    /// How many cells.
    pub cells: u32,
}

/// Why a CPCS-PDU was not delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Discard {
    /// The CRC over the cells held is not that of the trailer.
    Crc,
    /// The cells held are more or fewer than Length asks for.
    Length,
    /// The common part indicator is not 0.
    Cpi,
    /// Length is 0: the sender gave the PDU up.
    Abort,
    /// The payload is, or would become, longer than may be delivered.
    TooLong,
    /// The last cell did not come in time.
    Timer,
}

/// The receiver of one virtual channel.
#[derive(Clone, Debug)]
pub struct Reassembler {
    config: Config,
    state: State,
    /// Cells of the PDU so far.
    held: u32,
    /// The cell that must come next if none is lost; `None` once the CRC is sure to fail.
    expected: Option<(CpcsId, u32)>,
    /// Some cell had loss priority 1 (`rcv_LP`).
    rcv_lp: bool,
    /// When the reassembly timer runs out, if it runs.
    timer: Option<SimTime>,
    outputs: VecDeque<ReassemblerOutput>,
}

impl Reassembler {
    /// A receiver that has received nothing.
    pub const fn new(config: Config) -> Self {
        Self {
            config,
            state: State::Idle,
            held: 0,
            expected: None,
            rcv_lp: false,
            timer: None,
            outputs: VecDeque::new(),
        }
    }

    /// Takes the payload of a cell (`SAR-UNITDATA signal`).
    ///
    /// A timer that has run out by `now` and was not handled yet is handled first.
    pub fn handle_sar_pdu(&mut self, now: SimTime, sar: SarPdu) {
        self.handle_timeout(now);
        match self.state {
            State::Idle => self.first_cell(now, sar),
            State::Reassembling => self.hold(sar),
            State::Discarding => self.drop_cell(sar),
        }
    }

    /// Lets time pass: drops the PDU under reassembly if its timer has run out by `now`.
    pub fn handle_timeout(&mut self, now: SimTime) {
        if self.timer.is_some_and(|expiry| expiry <= now) {
            self.end();
            let cells = core::mem::take(&mut self.held);
            if cells > 0 {
                self.report(Discard::Timer, cells);
            }
        }
    }

    /// The next thing to do.
    pub fn poll_output(&mut self) -> ReassemblerOutput {
        self.outputs.pop_front().unwrap_or(Output::Timeout(self.timer))
    }

    /// What the receiver is doing.
    pub const fn state(&self) -> State {
        self.state
    }

    /// Cells held of a PDU whose last has not come.
    pub const fn held(&self) -> u32 {
        self.held
    }

    // Idle

    fn first_cell(&mut self, now: SimTime, sar: SarPdu) {
        self.state = State::Reassembling;
        self.expected = Some((sar.cpcs, 0));
        self.rcv_lp = false;
        // Choice: the timer covers a whole PDU from its first cell and is not restarted by others,
        // so that a PDU that has lost its last cell cannot hold the buffer for ever.
        self.timer = self
            .config
            .reassembly_timer
            .map(|span| SimTime::from_ps(now.as_ps().saturating_add(span.as_ps())));
        self.hold(sar);
    }

    // Reassembling

    fn hold(&mut self, sar: SarPdu) {
        let bytes = Bytes::new(PAYLOAD_OCTETS as u64);
        self.work(WorkKind::ReassembleCell, bytes);
        self.held += 1;
        self.rcv_lp |= sar.loss_priority;
        self.expected = match self.expected {
            Some(place) if place == (sar.cpcs, sar.index) && !sar.corrupted => {
                Some((sar.cpcs, sar.index + 1))
            }
            _ => None,
        };
        match sar.last {
            Some(trailer) => self.last_cell(trailer, sar.congestion),
            None if self.held >= self.most_cells() => self.overflow(),
            None => {}
        }
    }

    /// I.363.5 §10.2.4: checks in the order CRC, abort, common part indicator, Length.
    fn last_cell(&mut self, trailer: Trailer, congestion: bool) {
        let cells = core::mem::take(&mut self.held);
        let intact = self.expected.is_some();
        self.end();
        let octets = cells as usize * PAYLOAD_OCTETS;
        self.work(WorkKind::Crc, Bytes::new(octets as u64));
        let length = trailer.payload.length.get();
        let why = if !intact {
            Some(Discard::Crc)
        } else if length == 0 {
            Some(Discard::Abort)
        } else if trailer.cpi != 0 {
            // Choice: other values are for further study; a PDU that has one is not delivered.
            Some(Discard::Cpi)
        } else if u16::try_from(length).ok().map(pdu_octets) != Some(octets) {
            Some(Discard::Length)
        } else if length > u64::from(self.config.max_sdu_deliver_length) {
            Some(Discard::TooLong)
        } else {
            None
        };
        match why {
            Some(why) => self.report(why, cells),
            None => {
                let Trailer { payload, uu, .. } = trailer;
                // I.363.5 §10.2.4: loss priority is that of any cell, congestion that of the last.
                let unitdata = Unitdata { payload, uu, loss_priority: self.rcv_lp, congestion };
                self.outputs.push_back(Output::Deliver(unitdata));
            }
        }
    }

    /// Choice: the rest of a PDU that has grown too long is dropped up to its last cell. Holding
    /// it afresh would only end in a failing CRC.
    fn overflow(&mut self) {
        self.state = State::Discarding;
        let cells = core::mem::take(&mut self.held);
        self.report(Discard::TooLong, cells);
    }

    // Discarding

    fn drop_cell(&mut self, sar: SarPdu) {
        self.report(Discard::TooLong, 1);
        if sar.last.is_some() {
            self.end();
        }
    }

    // All states

    fn end(&mut self) {
        self.state = State::Idle;
        self.expected = None;
        self.timer = None;
    }

    fn work(&mut self, kind: WorkKind, bytes: Bytes) {
        self.outputs.push_back(Output::Work(Work { kind, bytes, count: 1 }));
    }

    fn report(&mut self, why: Discard, cells: u32) {
        self.outputs.push_back(Output::Event(Discarded { why, cells }));
    }

    /// Cells of the longest PDU that may be delivered.
    fn most_cells(&self) -> u32 {
        (pdu_octets(self.config.max_sdu_deliver_length) / PAYLOAD_OCTETS) as u32
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;
    use alloc::vec::Vec;

    use super::*;
    use crate::aal5::testbed::{at, cells, drain_reassembler, payload, unitdata};
    use crate::{MessageId, Payload};

    fn receiver(timer_ps: Option<u64>, most: u16) -> Reassembler {
        Reassembler::new(Config {
            max_sdu_deliver_length: most,
            reassembly_timer: timer_ps.map(Span::from_ps),
        })
    }

    fn default() -> Reassembler {
        Reassembler::new(Config::default())
    }

    /// Feeds cells at time 0 and returns everything but work.
    fn feed(reassembler: &mut Reassembler, cells: &[SarPdu]) -> Vec<ReassemblerOutput> {
        for &cell in cells {
            reassembler.handle_sar_pdu(at(0), cell);
        }
        drain_reassembler(reassembler)
    }

    fn discarded(why: Discard, cells: u32) -> ReassemblerOutput {
        Output::Event(Discarded { why, cells })
    }

    /// A receiver brought into each of its states by cells at time 0, with a timer of 100 ps.
    fn in_state(state: State) -> Reassembler {
        let mut reassembler = receiver(Some(100), 88);
        match state {
            State::Idle => {}
            State::Reassembling => drop(feed(&mut reassembler, &cells(0, 1, 80)[..1])),
            State::Discarding => drop(feed(&mut reassembler, &cells(0, 1, 1000)[..2])),
        }
        assert_eq!(reassembler.state(), state);
        reassembler
    }

    // Idle

    #[test]
    fn idle_meets_a_cell_that_is_not_the_last() {
        let mut reassembler = in_state(State::Idle);
        reassembler.handle_sar_pdu(at(7), cells(0, 1, 41)[0]);
        let work = Work { kind: WorkKind::ReassembleCell, bytes: Bytes::new(48), count: 1 };
        assert_eq!(reassembler.poll_output(), Output::Work(work));
        assert_eq!(reassembler.poll_output(), Output::Timeout(Some(at(107))));
        assert_eq!((reassembler.state(), reassembler.held()), (State::Reassembling, 1));
    }

    #[test]
    fn idle_meets_a_cell_that_is_first_and_last() {
        let mut reassembler = in_state(State::Idle);
        reassembler.handle_sar_pdu(at(7), cells(0, 1, 40)[0]);
        let outputs: Vec<_> = core::iter::from_fn(|| Some(reassembler.poll_output())).take(4).collect();
        let work = |kind| Output::Work(Work { kind, bytes: Bytes::new(48), count: 1 });
        let expected = [
            work(WorkKind::ReassembleCell),
            work(WorkKind::Crc),
            Output::Deliver(unitdata(1, 40)),
            Output::Timeout(None),
        ];
        assert_eq!(outputs, expected);
        assert_eq!(reassembler.state(), State::Idle);
    }

    #[test]
    fn idle_meets_time() {
        let mut reassembler = in_state(State::Idle);
        reassembler.handle_timeout(at(1000));
        assert_eq!(reassembler.poll_output(), Output::Timeout(None));
    }

    #[test]
    fn idle_meets_the_middle_of_a_pdu() {
        let mut reassembler = default();
        let outputs = feed(&mut reassembler, &cells(0, 1, 100)[1..]);
        assert_eq!(outputs, [discarded(Discard::Crc, 2)]);
    }

    // Reassembling

    #[test]
    fn reassembling_meets_the_last_cell() {
        let mut reassembler = in_state(State::Reassembling);
        let outputs = feed(&mut reassembler, &cells(0, 1, 80)[1..]);
        assert_eq!(outputs, [Output::Deliver(unitdata(1, 80))]);
        assert_eq!((reassembler.state(), reassembler.held()), (State::Idle, 0));
        assert_eq!(reassembler.poll_output(), Output::Timeout(None), "the timer is stopped");
    }

    #[test]
    fn reassembling_meets_another_cell_and_keeps_its_timer() {
        let mut reassembler = receiver(Some(100), 1000);
        let sent = cells(0, 1, 200);
        reassembler.handle_sar_pdu(at(0), sent[0]);
        reassembler.handle_sar_pdu(at(60), sent[1]);
        assert_eq!(drain_reassembler(&mut reassembler), []);
        assert_eq!(reassembler.poll_output(), Output::Timeout(Some(at(100))));
        assert_eq!(reassembler.held(), 2);
    }

    #[test]
    fn reassembling_meets_a_gap() {
        let sent = cells(0, 1, 200);
        let outputs = feed(&mut default(), &[sent[0], sent[2], sent[3], sent[4]]);
        assert_eq!(outputs, [discarded(Discard::Crc, 4)]);
    }

    #[test]
    fn reassembling_meets_the_next_pdu_after_a_lost_last_cell() {
        let (lost, next, after) = (cells(0, 1, 100), cells(1, 2, 100), cells(2, 3, 100));
        let joined = [&lost[..2], &next[..], &after[..]].concat();
        let outputs = feed(&mut default(), &joined);
        assert_eq!(outputs, [discarded(Discard::Crc, 5), Output::Deliver(unitdata(3, 100))]);
    }

    #[test]
    fn reassembling_meets_a_stranger_that_makes_up_the_count() {
        // The last cell of one PDU and the first of the next are lost together: count and Length
        // agree, only the CRC tells.
        let (one, other) = (cells(0, 1, 48), cells(1, 2, 48));
        let outputs = feed(&mut default(), &[one[0], other[1]]);
        assert_eq!(outputs, [discarded(Discard::Crc, 2)]);
    }

    #[test]
    fn reassembling_meets_a_corrupted_cell() {
        for wrong in 0..3 {
            let mut sent = cells(0, 1, 100);
            sent[wrong].corrupted = true;
            assert_eq!(feed(&mut default(), &sent), [discarded(Discard::Crc, 3)], "cell {wrong}");
        }
    }

    #[test]
    fn reassembling_meets_a_trailer_that_is_not_to_be_delivered() {
        let with = |change: fn(&mut Trailer)| {
            let mut sent = cells(0, 1, 80);
            change(sent[1].last.as_mut().expect("the second cell is the last"));
            feed(&mut default(), &sent)
        };
        assert_eq!(with(|trailer| trailer.cpi = 1), [discarded(Discard::Cpi, 2)]);
        assert_eq!(with(|trailer| trailer.payload = payload(1, 0)), [discarded(Discard::Abort, 2)]);
        assert_eq!(with(|trailer| trailer.payload = payload(1, 40)), [discarded(Discard::Length, 2)]);
        assert_eq!(with(|trailer| trailer.payload = payload(1, 89)), [discarded(Discard::Length, 2)]);
        assert_eq!(with(|trailer| trailer.payload = payload(1, 1 << 40)), [discarded(Discard::Length, 2)]);
        let part = Payload { message: MessageId(1), start: Bytes::new(7), length: Bytes::new(80) };
        let mut sent = cells(0, 1, 80);
        sent[1].last = Some(Trailer { payload: part, uu: 9, cpi: 0 });
        let delivered = Unitdata { payload: part, uu: 9, loss_priority: false, congestion: false };
        assert_eq!(feed(&mut default(), &sent), [Output::Deliver(delivered)]);
    }

    #[test]
    fn reassembling_meets_its_timer() {
        let mut reassembler = in_state(State::Reassembling);
        reassembler.handle_timeout(at(99));
        assert_eq!(reassembler.state(), State::Reassembling, "not yet");
        reassembler.handle_timeout(at(100));
        assert_eq!(drain_reassembler(&mut reassembler), [discarded(Discard::Timer, 1)]);
        assert_eq!(reassembler.state(), State::Idle);
        assert_eq!(reassembler.poll_output(), Output::Timeout(None));
    }

    #[test]
    fn reassembling_meets_a_cell_after_its_timer_ran_out_unhandled() {
        let mut reassembler = in_state(State::Reassembling);
        reassembler.handle_sar_pdu(at(150), cells(1, 2, 40)[0]);
        let outputs = drain_reassembler(&mut reassembler);
        assert_eq!(outputs, [discarded(Discard::Timer, 1), Output::Deliver(unitdata(2, 40))]);
    }

    #[test]
    fn reassembling_meets_more_cells_than_may_be_delivered() {
        let mut reassembler = receiver(None, 88);
        let outputs = feed(&mut reassembler, &cells(0, 1, 1000)[..2]);
        assert_eq!(outputs, [discarded(Discard::TooLong, 2)]);
        assert_eq!(reassembler.state(), State::Discarding);
    }

    #[test]
    fn a_payload_one_octet_too_long_in_as_many_cells_is_not_delivered() {
        let outputs = feed(&mut receiver(None, 80), &cells(0, 1, 81));
        assert_eq!(outputs, [discarded(Discard::TooLong, 2)]);
        assert_eq!(feed(&mut receiver(None, 80), &cells(0, 1, 80)), [Output::Deliver(unitdata(1, 80))]);
    }

    #[test]
    fn priority_is_that_of_any_cell_and_congestion_that_of_the_last() {
        let mut sent = cells(0, 1, 100);
        sent[0].loss_priority = true;
        sent[1].congestion = true;
        let outputs = feed(&mut default(), &sent);
        assert_eq!(outputs, [Output::Deliver(Unitdata { loss_priority: true, ..unitdata(1, 100) })]);
        let mut sent = cells(0, 1, 100);
        sent[2].congestion = true;
        let outputs = feed(&mut default(), &sent);
        assert_eq!(outputs, [Output::Deliver(Unitdata { congestion: true, ..unitdata(1, 100) })]);
    }

    // Discarding

    #[test]
    fn discarding_meets_a_cell_that_is_not_the_last() {
        let mut reassembler = in_state(State::Discarding);
        let outputs = feed(&mut reassembler, &cells(0, 1, 1000)[2..4]);
        assert_eq!(outputs, vec![discarded(Discard::TooLong, 1); 2]);
        assert_eq!(reassembler.state(), State::Discarding);
    }

    #[test]
    fn discarding_meets_the_last_cell() {
        let mut reassembler = in_state(State::Discarding);
        let outputs = feed(&mut reassembler, &cells(0, 1, 1000)[20..]);
        assert_eq!(outputs, [discarded(Discard::TooLong, 1)]);
        assert_eq!(reassembler.state(), State::Idle);
        assert_eq!(feed(&mut reassembler, &cells(1, 2, 80)), [Output::Deliver(unitdata(2, 80))]);
    }

    #[test]
    fn discarding_meets_its_timer() {
        let mut reassembler = in_state(State::Discarding);
        reassembler.handle_timeout(at(100));
        assert_eq!(drain_reassembler(&mut reassembler), [], "its cells were reported as they were dropped");
        assert_eq!(reassembler.state(), State::Idle);
    }
}
