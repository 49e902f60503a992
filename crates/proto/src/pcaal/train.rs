//! Data cells that follow each other, sent and taken together where nothing sets them apart.
//!
//! For drivers that handle octets and have no use for the work of single cells. What an [`Endpoint`] knows after
//! a train, and what it puts out, is what it would be after its cells one by one.

use wiretwin_units::{Bytes, SimTime};
use wiretwin_wire::pcaal::Train as Repr;
use wiretwin_wire::{DecodeError, EmitError};

use super::cell::Circuit;
use super::config::Watch;
use super::endpoint::Endpoint;
use super::queue::Waiting;
use crate::{MessageId, Payload};

/// Data cells of one message that follow each other by one circuit, each of them but the last full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Train {
    /// The circuit.
    pub circuit: Circuit,
    /// Their values.
    pub payload: Payload,
    /// Their fields.
    repr: Repr,
}

impl Train {
    /// How many cells there are.
    pub const fn cells(&self) -> usize {
        self.repr.cells(self.payload.length.get() as usize)
    }

    /// Writes the payloads of the cells, 48 octets each. `values` are the octets of the values.
    ///
    /// # Errors
    /// [`EmitError`] as [`Repr::emit`].
    pub fn emit(&self, values: &[u8], octets: &mut [u8]) -> Result<(), EmitError> {
        self.repr.emit(values, octets)
    }

    /// Reads the train at the beginning of the payloads of cells that came by a circuit, as long as its values fit in
    /// `values`, which they fill from its beginning; `None` where the first cell has none, or more than fit.
    ///
    /// # Errors
    /// [`DecodeError`] of the first cell, as [`Cell::parse`](super::Cell::parse).
    pub fn parse(circuit: Circuit, octets: &[u8], values: &mut [u8]) -> Result<Option<Self>, DecodeError> {
        let Some((repr, taken)) = Repr::parse(octets, values)? else { return Ok(None) };
        let payload = Payload::whole(MessageId(0), Bytes::new(taken as u64));
        Ok(Some(Self { circuit, payload, repr }))
    }
}

impl Endpoint {
    /// Takes data cells that may be sent now, at most so many and for the first time, unless something else is to be
    /// sent first: `None` then, and [`Endpoint::poll_output`] says what. Not for an end that puts out work.
    pub fn poll_train(&mut self, most: usize) -> Option<Train> {
        let circuit = self.circuit();
        if self.config.work || self.lost || self.busy[circuit as usize] {
            return None;
        }
        if !self.outputs.is_empty() || self.sender.has_wanted() {
            return None;
        }
        let to_poll = self.config.max_pd.saturating_sub(self.sender.vt_pd).max(1);
        let most = most.min(self.sender.room()).min(to_poll as usize);
        if most == 0 {
            return None;
        }
        let (waiting, cells) = self.queue.next_cells(most)?;
        let number = self.sender.send(waiting.cut(cells));
        let stamp = self.count_data(cells as u32);
        let Waiting { tag, kind, first, end, payload, .. } = waiting;
        let connection = self.config.connection;
        let repr = Repr { connection, number, tag, kind, first, end, stamp };
        self.sent_data(cells as u32);
        Some(Train { circuit, payload, repr })
    }

    /// Takes the cells of a train that came, if they are the next in order and nothing is kept or missing; their
    /// values are then to be handed up at once, behind all that was put out before. False if not, and nothing has
    /// changed: each cell is handed in by itself.
    pub fn handle_train(&mut self, now: SimTime, train: &Train) -> bool {
        let cells = train.cells() as u32;
        let next = train.repr.number == self.receiver.vr_r && cells <= self.receiver.room();
        if self.config.work || train.repr.connection != self.config.connection || !next {
            return false;
        }
        self.handle_timeout(now);
        if train.circuit == Circuit::Ordinary {
            // Cells of one time have one latency, and only an average counts it more than once.
            let averages = matches!(self.config.watch, Some(Watch::Average(_)));
            (0..if averages { cells } else { 1 }).for_each(|_| self.watch_data(train.repr.stamp, false));
        }
        self.counters.received += u64::from(cells);
        self.receiver.pass(cells);
        self.receiver.vr_mr = self.receiver.vr_r + self.config.window;
        true
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::vec;
    use alloc::vec::Vec;

    use proptest::prelude::*;
    use wiretwin_units::Span;
    use wiretwin_wire::pcaal::CELL_OCTETS;

    use super::super::{Cell, Config, Kind, Pdu, Run};
    use super::*;
    use crate::Output;

    fn written(cell: &Cell, text: &[u8]) -> [u8; CELL_OCTETS] {
        let mut octets = [0; CELL_OCTETS];
        let values = match &cell.pdu {
            Pdu::Data { values, .. } => {
                let start = values.payload.start.get() as usize;
                &text[start..start + values.payload.length.get() as usize]
            }
            _ => &[],
        };
        cell.emit(values, &mut octets).expect("a cell that can be");
        octets
    }

    /// All that an end puts out, as octets by circuit; data in trains of at most so many cells, or one by one.
    fn put_out(end: &mut Endpoint, text: &[u8], trains: Option<usize>) -> Vec<(Circuit, Vec<u8>)> {
        let mut all = Vec::new();
        loop {
            if let Some(train) = trains.and_then(|most| end.poll_train(most)) {
                let start = train.payload.start.get() as usize;
                let mut octets = vec![0; train.cells() * CELL_OCTETS];
                let values = &text[start..start + train.payload.length.get() as usize];
                train.emit(values, &mut octets).expect("a train that can be");
                all.extend(octets.chunks(CELL_OCTETS).map(|cell| (train.circuit, cell.to_vec())));
                continue;
            }
            match end.poll_output() {
                Output::Transmit(cell) => all.push((cell.circuit, written(&cell, text).to_vec())),
                Output::Timeout(_) => return all,
                _ => {}
            }
        }
    }

    proptest! {
        /// Two pairs of ends that do the same, one in trains.
        #[test]
        fn trains_are_their_cells(
            messages in prop::collection::vec((prop::sample::select(&Kind::ALL[..]), 1_u64..300), 1..6),
            max_pd in 1_u32..40,
            window in 1_u32..90,
            stamp_data: bool,
            average: bool,
            late_us in 0_u64..200,
            most in 1_usize..50,
            lost in prop::option::of(0_usize..60),
        ) {
            let watch = Some(if average { Watch::Average(4) } else { Watch::EachCell });
            let config = Config { max_pd, window, stamp_data, watch, work: false, ..Config::default() };
            let new = || Endpoint::new(config).expect("a good configuration");
            let (mut sender, mut sender_too, mut receiver, mut receiver_too) = (new(), new(), new(), new());
            let text: Vec<u8> = (0..300 * 16 * 6).map(|octet| (octet % 251) as u8).collect();
            let mut start = 0;
            for (tag, &(kind, values)) in messages.iter().enumerate() {
                let length = Bytes::new(values * kind.octets() as u64);
                let payload = Payload { message: MessageId(0), start: Bytes::new(start), length };
                start += length.get();
                for end in [&mut sender, &mut sender_too] {
                    end.send(SimTime::ZERO, tag as u32, &[Run { kind, payload }]).expect("a message");
                }
            }
            for round in 0..40 {
                let single = put_out(&mut sender, &text, None);
                let together = put_out(&mut sender_too, &text, Some(most));
                prop_assert_eq!(&single, &together);
                prop_assert_eq!(format!("{sender:?}"), format!("{sender_too:?}"));
                if single.is_empty() {
                    break;
                }
                let mut cells: Vec<u8> = single.into_iter().flat_map(|(_, cell)| cell).collect();
                if let (0, Some(lost)) = (round, lost.filter(|lost| lost * CELL_OCTETS < cells.len())) {
                    cells.drain(lost * CELL_OCTETS..(lost + 1) * CELL_OCTETS);
                }
                let now = SimTime::ZERO + Span::from_us(late_us + round);
                for cell in cells.chunks(CELL_OCTETS) {
                    let cell = Cell::parse(Circuit::Ordinary, cell, |_| MessageId(0)).expect("a cell");
                    receiver.handle_cell(now, cell);
                }
                let mut delivered = Vec::new();
                let replies = answers(&mut receiver, &mut delivered);
                let mut delivered_too = Vec::new();
                let mut replies_too = Vec::new();
                let mut left = &cells[..];
                while !left.is_empty() {
                    let mut values = vec![0; 40 * 27];
                    let train = Train::parse(Circuit::Ordinary, left, &mut values).expect("a cell");
                    replies_too.extend(answers(&mut receiver_too, &mut delivered_too));
                    if let Some(train) = train.filter(|train| receiver_too.handle_train(now, train)) {
                        delivered_too.push(train.payload.length.get());
                        left = &left[train.cells() * CELL_OCTETS..];
                        continue;
                    }
                    let cell = Cell::parse(Circuit::Ordinary, &left[..CELL_OCTETS], |_| MessageId(0));
                    receiver_too.handle_cell(now, cell.expect("a cell"));
                    left = &left[CELL_OCTETS..];
                }
                replies_too.extend(answers(&mut receiver_too, &mut delivered_too));
                prop_assert_eq!(&replies, &replies_too);
                prop_assert_eq!(delivered.iter().sum::<u64>(), delivered_too.iter().sum::<u64>());
                prop_assert_eq!(format!("{receiver:?}"), format!("{receiver_too:?}"));
                for end in [&mut sender, &mut sender_too] {
                    replies.iter().for_each(|cell| end.handle_cell(SimTime::ZERO, cell.clone()));
                }
            }
        }
    }

    /// What an end says, and the octets that it hands up.
    fn answers(end: &mut Endpoint, delivered: &mut Vec<u64>) -> Vec<Cell> {
        let mut cells = Vec::new();
        loop {
            match end.poll_output() {
                Output::Transmit(cell) => cells.push(cell),
                Output::Deliver(values) => delivered.push(values.payload.length.get()),
                Output::Timeout(_) => return cells,
                _ => {}
            }
        }
    }
}
