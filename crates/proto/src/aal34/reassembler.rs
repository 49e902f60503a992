//! The receiver: CPCS-PDUs out of cells, a message a MID, payloads out of CPCS-PDUs.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use wiretwin_units::{Bytes, Seq, SimTime, Span};
use wiretwin_wire::aal34::cpcs::{HEADER_OCTETS, TRAILER_OCTETS, pdu_octets};
use wiretwin_wire::aal34::sar::{ABORT, Mid, SAR_PAYLOAD_OCTETS, SegmentType};
use wiretwin_wire::cell::PAYLOAD_OCTETS;

use super::{CpcsId, Header, ReassemblerOutput, SarPdu, Trailer, Unitdata};
use crate::{Output, Work, WorkKind};

/// Parameters of a receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Longer payloads are not delivered. 1..=65535 octets; the default is 65535.
    pub max_sdu_deliver_length: u16,
    /// How long after its first cell a message may take. The default is none, as the specification leaves
    /// the timer to the user.
    pub reassembly_timer: Option<Span>,
    /// Messages that may be under way at a time, one a MID; what would begin one more is dropped. 1..=1024;
    /// the default is 1024, all that a MID can say.
    pub most_messages: u16,
}

impl Default for Config {
    fn default() -> Self {
        Self { max_sdu_deliver_length: u16::MAX, reassembly_timer: None, most_messages: 1_024 }
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

/// Why cells were dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Discard {
    /// The CRC-10 of the cell fails: nothing in it can be believed.
    Crc,
    /// The cell has a length that its segment type does not have.
    Shape,
    /// It continues or ends a message of which no beginning is held.
    NoBeginning,
    /// A message began before the last of its MID had ended.
    Unfinished,
    /// A sequence number is not the next.
    Sequence,
    /// The sender gave the message up.
    Abort,
    /// The tags at beginning and end differ.
    Tag,
    /// The octets held are more or fewer than Length asks for, or Length is 0 or above BASize.
    Length,
    /// The message is, or would become, longer than BASize or than may be delivered.
    TooLong,
    /// As many messages are under way as may be.
    TooMany,
    /// The end did not come in time.
    Timer,
}

/// A message under reassembly.
#[derive(Clone, Copy, Debug)]
struct Partial {
    mid: Mid,
    header: Header,
    /// The sequence number that comes next.
    next: Seq<4>,
    cells: u32,
    octets: u32,
    /// The cell that must come next if none was lost or mixed up.
    expected: Option<(CpcsId, u32)>,
    loss_priority: bool,
    deadline: Option<SimTime>,
}

/// The receiver of one virtual channel.
#[derive(Clone, Debug)]
pub struct Reassembler {
    config: Config,
    /// In the order in which they began, which is that of their deadlines.
    partial: Vec<Partial>,
    outputs: VecDeque<ReassemblerOutput>,
}

impl Reassembler {
    /// A receiver that has received nothing.
    pub const fn new(config: Config) -> Self {
        Self { config, partial: Vec::new(), outputs: VecDeque::new() }
    }

    /// Takes the payload of a cell.
    ///
    /// A timer that has run out by `now` and was not handled yet is handled first.
    pub fn handle_sar_pdu(&mut self, now: SimTime, sar: SarPdu) {
        self.handle_timeout(now);
        let bytes = Bytes::new(PAYLOAD_OCTETS as u64);
        self.outputs.push_back(Output::Work(Work { kind: WorkKind::Crc, bytes, count: 1 }));
        if sar.corrupted {
            return self.report(Discard::Crc, 1);
        }
        if !has_shape(&sar) {
            return self.report(Discard::Shape, 1);
        }
        self.outputs.push_back(Output::Work(Work { kind: WorkKind::ReassembleCell, bytes, count: 1 }));
        match sar.segment_type {
            SegmentType::Bom | SegmentType::Ssm => self.begin(now, sar),
            SegmentType::Com | SegmentType::Eom => self.go_on(sar),
        }
    }

    /// Lets time pass: drops messages whose timer has run out by `now`.
    pub fn handle_timeout(&mut self, now: SimTime) {
        while let Some(first) = self.partial.first()
            && first.deadline.is_some_and(|deadline| deadline <= now)
        {
            let cells = self.partial.remove(0).cells;
            self.report(Discard::Timer, cells);
        }
    }

    /// The next thing to do.
    pub fn poll_output(&mut self) -> ReassemblerOutput {
        let timeout = || self.partial.first().and_then(|first| first.deadline);
        match self.outputs.pop_front() {
            Some(output) => output,
            None => Output::Timeout(timeout()),
        }
    }

    /// Cells held of messages whose end has not come.
    pub fn held(&self) -> u32 {
        self.partial.iter().map(|partial| partial.cells).sum()
    }

    /// Messages whose end has not come.
    pub fn under_way(&self) -> usize {
        self.partial.len()
    }

    // BOM and SSM

    fn begin(&mut self, now: SimTime, sar: SarPdu) {
        if let Some(index) = self.index_of(sar.mid) {
            let cells = self.partial.remove(index).cells;
            self.report(Discard::Unfinished, cells);
        }
        let Some(header) = sar.header else { return self.report(Discard::Shape, 1) };
        let partial = Partial {
            mid: sar.mid,
            header,
            next: sar.sequence.next(),
            cells: 1,
            octets: u32::from(sar.length),
            expected: (sar.index == 0).then_some((sar.cpcs, 1)),
            loss_priority: sar.loss_priority,
            // Choice: the timer covers a whole message from its first cell and is not restarted.
            deadline: self.config.reassembly_timer.map(|span| now.saturating_add(span)),
        };
        if let Some(trailer) = sar.trailer {
            return self.finish(partial, trailer, sar.congestion);
        }
        if self.partial.len() >= usize::from(self.config.most_messages) {
            return self.report(Discard::TooMany, 1);
        }
        if partial.octets > self.most_octets(&partial) {
            return self.report(Discard::TooLong, 1);
        }
        self.partial.push(partial);
    }

    // COM and EOM

    fn go_on(&mut self, sar: SarPdu) {
        let Some(index) = self.index_of(sar.mid) else { return self.report(Discard::NoBeginning, 1) };
        let partial = &mut self.partial[index];
        partial.cells += 1;
        let why = if sar.sequence != partial.next {
            Some(Discard::Sequence)
        } else if sar.length == ABORT {
            Some(Discard::Abort)
        } else {
            None
        };
        if let Some(why) = why {
            let cells = self.partial.remove(index).cells;
            return self.report(why, cells);
        }
        partial.next = partial.next.next();
        partial.octets += u32::from(sar.length);
        partial.loss_priority |= sar.loss_priority;
        partial.expected = match partial.expected {
            Some(place) if place == (sar.cpcs, sar.index) => Some((sar.cpcs, sar.index + 1)),
            _ => None,
        };
        let partial = *partial;
        if let Some(trailer) = sar.trailer {
            self.partial.remove(index);
            self.finish(partial, trailer, sar.congestion);
        } else if partial.octets > self.most_octets(&partial) {
            self.partial.remove(index);
            self.report(Discard::TooLong, partial.cells);
        }
    }

    /// The end has come: tags, lengths.
    fn finish(&mut self, partial: Partial, trailer: Trailer, congestion: bool) {
        let Partial { mid, header, cells, octets, expected, loss_priority, .. } = partial;
        let length = trailer.payload.length.get();
        let fits = u16::try_from(length).is_ok_and(|length| {
            length > 0 && length <= header.ba_size && pdu_octets(length) as u32 == octets
        });
        if trailer.tag != header.tag {
            self.report(Discard::Tag, cells);
        } else if !fits {
            self.report(Discard::Length, cells);
        } else if length > u64::from(self.config.max_sdu_deliver_length) {
            self.report(Discard::TooLong, cells);
        } else {
            let payload = trailer.payload;
            let mixed = expected.is_none();
            let unitdata = Unitdata { payload, mid, loss_priority, congestion, mixed };
            self.outputs.push_back(Output::Deliver(unitdata));
        }
    }

    /// Octets of a CPCS-PDU that is neither longer than it said nor than may be delivered.
    fn most_octets(&self, partial: &Partial) -> u32 {
        let most = partial.header.ba_size.min(self.config.max_sdu_deliver_length);
        pdu_octets(most) as u32
    }

    fn index_of(&self, mid: Mid) -> Option<usize> {
        self.partial.iter().position(|partial| partial.mid == mid)
    }

    fn report(&mut self, why: Discard, cells: u32) {
        self.outputs.push_back(Output::Event(Discarded { why, cells }));
    }
}

/// Whether a cell has a length that its segment type has, and the parts of a message that it must have.
fn has_shape(sar: &SarPdu) -> bool {
    let full = SAR_PAYLOAD_OCTETS as u8;
    let length = match sar.segment_type {
        SegmentType::Bom | SegmentType::Com => sar.length == full,
        SegmentType::Eom => {
            sar.length == ABORT || (sar.length.is_multiple_of(4) && (4..=full).contains(&sar.length))
        }
        SegmentType::Ssm => {
            let least = (HEADER_OCTETS + TRAILER_OCTETS) as u8;
            sar.length.is_multiple_of(4) && (least..=full).contains(&sar.length)
        }
    };
    let parts = match sar.segment_type {
        SegmentType::Bom => sar.header.is_some() && sar.trailer.is_none(),
        SegmentType::Com => sar.header.is_none() && sar.trailer.is_none(),
        SegmentType::Eom => sar.header.is_none() && sar.trailer.is_some() == (sar.length != ABORT),
        SegmentType::Ssm => sar.header.is_some() && sar.trailer.is_some(),
    };
    length && parts
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use crate::aal34::testbed::{at, cells, drain_reassembler, unitdata};

    fn feed(reassembler: &mut Reassembler, cells: &[SarPdu]) -> Vec<ReassemblerOutput> {
        for cell in cells {
            reassembler.handle_sar_pdu(at(0), *cell);
        }
        drain_reassembler(reassembler)
    }

    fn fresh(cells: &[SarPdu]) -> Vec<ReassemblerOutput> {
        feed(&mut Reassembler::new(Config::default()), cells)
    }

    fn discarded(why: Discard, cells: u32) -> ReassemblerOutput {
        Output::Event(Discarded { why, cells })
    }

    fn whole(message: u64, mid: u16, length: u64) -> ReassemblerOutput {
        Output::Deliver(unitdata(message, mid, length))
    }

    #[test]
    fn a_whole_message_is_delivered() {
        for length in [1, 36, 37, 80, 1_000, 65_535] {
            assert_eq!(fresh(&cells(0, 1, 3, length)), [whole(1, 3, length)], "{length}");
        }
    }

    #[test]
    fn messages_of_several_mids_interleave() {
        let (one, other) = (cells(0, 1, 3, 100), cells(1, 2, 4, 100));
        let turns: Vec<_> = one.iter().zip(&other).flat_map(|(a, b)| [*a, *b]).collect();
        assert_eq!(fresh(&turns), [whole(1, 3, 100), whole(2, 4, 100)]);
    }

    /// A message is idle or under way, whatever else is: two states, and all that may come in each.
    #[test]
    fn either_state_meets_every_cell_and_time() {
        type Event = (&'static str, Option<SarPdu>, Vec<ReassemblerOutput>, Vec<ReassemblerOutput>);
        // Of five cells two have come; of three, two as well.
        let (long, short) = (cells(0, 1, 0, 200), cells(0, 1, 0, 100));
        let (next, single) = (cells(1, 2, 0, 100), cells(1, 2, 0, 20));
        let abort = SarPdu { length: ABORT, trailer: None, ..short[2] };
        let stray = || vec![discarded(Discard::NoBeginning, 1)];
        let one = |why| vec![discarded(why, 1)];
        let gap = || vec![discarded(Discard::Sequence, 3)];
        let events: [Event; 10] = [
            ("BOM", Some(next[0]), vec![], vec![discarded(Discard::Unfinished, 2)]),
            ("COM in sequence", Some(long[2]), stray(), vec![]),
            ("COM behind a gap", Some(long[3]), stray(), gap()),
            ("EOM in sequence", Some(short[2]), stray(), vec![whole(1, 0, 100)]),
            ("EOM behind a gap", Some(long[4]), stray(), gap()),
            ("EOM that gives up", Some(abort), stray(), vec![discarded(Discard::Abort, 3)]),
            (
                "SSM",
                Some(single[0]),
                vec![whole(2, 0, 20)],
                vec![discarded(Discard::Unfinished, 2), whole(2, 0, 20)],
            ),
            ("damaged", Some(SarPdu { corrupted: true, ..long[2] }), one(Discard::Crc), one(Discard::Crc)),
            ("of no shape", Some(SarPdu { length: 3, ..long[2] }), one(Discard::Shape), one(Discard::Shape)),
            ("time", None, vec![], vec![discarded(Discard::Timer, 2)]),
        ];
        let timer = Some(Span::from_ps(50));
        for (name, event, idle, under_way) in events {
            for (begun, expected) in [(0, idle), (2, under_way)] {
                let config = Config { reassembly_timer: timer, ..Config::default() };
                let mut reassembler = Reassembler::new(config);
                let message =
                    if name == "EOM in sequence" || name == "EOM that gives up" { &short } else { &long };
                assert_eq!(feed(&mut reassembler, &message[..begun]), []);
                let met = match event {
                    Some(cell) => feed(&mut reassembler, &[cell]),
                    None => {
                        reassembler.handle_timeout(at(50));
                        drain_reassembler(&mut reassembler)
                    }
                };
                assert_eq!(met, expected, "{name} where {begun} cells have come");
            }
        }
    }

    #[test]
    fn a_cell_that_is_lost_is_missed_by_the_next() {
        let sent = cells(0, 1, 0, 200);
        let expected = [
            discarded(Discard::Sequence, 2),
            discarded(Discard::NoBeginning, 1),
            discarded(Discard::NoBeginning, 1),
        ];
        assert_eq!(fresh(&[sent[0], sent[2], sent[3], sent[4]]), expected);
        assert_eq!(fresh(&sent[1..3]), [discarded(Discard::NoBeginning, 1); 2]);
    }

    #[test]
    fn a_lost_end_is_seen_at_the_next_beginning() {
        let (lost, next) = (cells(0, 1, 0, 100), cells(1, 2, 0, 100));
        let joined = [&lost[..2], &next[..]].concat();
        assert_eq!(fresh(&joined), [discarded(Discard::Unfinished, 2), whole(2, 0, 100)]);
    }

    #[test]
    fn a_damaged_cell_is_dropped_by_itself_and_its_message_at_the_next() {
        let mut sent = cells(0, 1, 0, 100);
        sent[1].corrupted = true;
        let expected = [discarded(Discard::Crc, 1), discarded(Discard::Sequence, 2)];
        assert_eq!(fresh(&sent), expected);
    }

    #[test]
    fn sixteen_lost_cells_are_found_by_the_length() {
        let sent = cells(0, 1, 0, 2_000);
        let joined = [&sent[..5], &sent[21..]].concat();
        assert_eq!(fresh(&joined), [discarded(Discard::Length, sent.len() as u32 - 16)]);
    }

    #[test]
    fn an_end_of_another_message_is_found_by_its_tag_unless_that_is_the_same() {
        let (one, other) = (cells(0, 1, 0, 80), cells(1, 2, 0, 80));
        assert_eq!(fresh(&[one[0], other[1]]), [discarded(Discard::Tag, 2)]);
        // 256 messages later the tag is the same, and so is all else that is checked.
        let later = cells(256, 3, 0, 80);
        let mixed = Unitdata { mixed: true, ..unitdata(3, 0, 80) };
        assert_eq!(fresh(&[one[0], later[1]]), [Output::Deliver(mixed)]);
    }

    #[test]
    fn cells_of_impossible_shape_are_dropped() {
        let sent = cells(0, 1, 0, 100);
        for wrong in [
            SarPdu { length: 40, ..sent[0] },
            SarPdu { length: 43, ..sent[1] },
            SarPdu { length: 0, ..sent[2] },
            SarPdu { length: 48, ..sent[2] },
            SarPdu { header: None, ..sent[0] },
            SarPdu { trailer: None, ..sent[2] },
            SarPdu { trailer: sent[2].trailer, ..sent[1] },
            SarPdu { length: 4, ..cells(0, 1, 0, 4)[0] },
        ] {
            assert_eq!(fresh(&[wrong]), [discarded(Discard::Shape, 1)], "{wrong:?}");
        }
    }

    #[test]
    fn a_sender_may_give_up() {
        let sent = cells(0, 1, 0, 100);
        let abort = SarPdu { segment_type: SegmentType::Eom, length: ABORT, ..sent[1] };
        assert_eq!(fresh(&[sent[0], abort]), [discarded(Discard::Abort, 2)]);
    }

    #[test]
    fn a_message_longer_than_it_said_or_than_may_be_is_dropped() {
        let mut sent = cells(0, 1, 0, 200);
        sent[0].header = Some(Header { tag: 0, ba_size: 50 });
        let outputs = fresh(&sent[..3]);
        assert_eq!(outputs, [discarded(Discard::TooLong, 2), discarded(Discard::NoBeginning, 1)]);
        let config = Config { max_sdu_deliver_length: 79, ..Config::default() };
        let mut short = Reassembler::new(config);
        assert_eq!(feed(&mut short, &cells(0, 1, 0, 80)), [discarded(Discard::TooLong, 2)]);
        assert_eq!(feed(&mut short, &cells(0, 1, 0, 79)), [whole(1, 0, 79)]);
    }

    #[test]
    fn a_length_that_was_not_announced_is_dropped() {
        let mut sent = cells(0, 1, 0, 80);
        sent[0].header = Some(Header { tag: 0, ba_size: 79 });
        assert_eq!(fresh(&sent), [discarded(Discard::Length, 2)]);
    }

    #[test]
    fn the_timer_of_each_message_runs_from_its_first_cell() {
        let timer = Some(Span::from_ps(100));
        let mut reassembler = Reassembler::new(Config { reassembly_timer: timer, ..Config::default() });
        reassembler.handle_sar_pdu(at(0), cells(0, 1, 3, 100)[0]);
        reassembler.handle_sar_pdu(at(60), cells(1, 2, 4, 100)[0]);
        reassembler.handle_sar_pdu(at(80), cells(0, 1, 3, 100)[1]);
        assert_eq!(drain_reassembler(&mut reassembler), []);
        assert_eq!(reassembler.poll_output(), Output::Timeout(Some(at(100))));
        reassembler.handle_timeout(at(100));
        assert_eq!(drain_reassembler(&mut reassembler), [discarded(Discard::Timer, 2)]);
        assert_eq!(reassembler.poll_output(), Output::Timeout(Some(at(160))));
        assert_eq!((reassembler.held(), reassembler.under_way()), (1, 1));
    }

    #[test]
    fn no_more_messages_are_under_way_than_may_be() {
        let mut reassembler = Reassembler::new(Config { most_messages: 2, ..Config::default() });
        for mid in 0..3 {
            reassembler.handle_sar_pdu(at(0), cells(mid, mid, mid as u16, 100)[0]);
        }
        assert_eq!(drain_reassembler(&mut reassembler), [discarded(Discard::TooMany, 1)]);
        assert_eq!(feed(&mut reassembler, &cells(3, 3, 9, 4)), [whole(3, 9, 4)], "one cell takes no room");
    }
}
