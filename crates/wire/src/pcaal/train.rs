//! Data cells that follow each other, written and read together.
//!
//! They are the cells that [`Repr`] writes and reads, octet for octet: what the cells of a train have in common is
//! made or looked at once.

use super::{Body, CELL_OCTETS, CRC_AT, Kind, Number, Repr, VALUES_AT, crc};
use crate::octets::{put, u32_at};
use crate::{DecodeError, EmitError};

/// The fields of data cells that follow each other in one message, each of them but the last full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Train {
    /// Connection Identifier.
    pub connection: u16,
    /// Sequence Number of the first cell; each further cell has the next.
    pub number: Number,
    /// Tag, of the message library.
    pub tag: u32,
    /// Octets of each value.
    pub kind: Kind,
    /// The place of the first value in its message, counted in values.
    pub first: u32,
    /// The last value is the last of its message.
    pub end: bool,
    /// When the cells were sent, if it is said: they bear one time.
    pub stamp: Option<u32>,
}

impl Train {
    /// Octets of values in a cell that is full.
    pub const fn octets_each(&self) -> usize {
        self.kind.most(self.stamp.is_some()) * self.kind.octets()
    }

    /// How many cells so many octets of values take.
    pub const fn cells(&self, octets: usize) -> usize {
        octets.div_ceil(self.octets_each())
    }

    const fn cell(&self, place: usize, octets: usize, end: bool) -> Repr {
        let before = (place * self.kind.most(self.stamp.is_some())) as u32;
        let body = Body::Data {
            number: Number::wrapping(self.number.get().wrapping_add(place as u32)),
            tag: self.tag,
            kind: self.kind,
            first: self.first.wrapping_add(before),
            count: (octets / self.kind.octets()) as u8,
            end,
            stamp: self.stamp,
        };
        Repr { connection: self.connection, body }
    }

    /// Writes the cells of a train that holds `values`.
    ///
    /// # Errors
    /// [`EmitError`] unless there are whole values, one or more, and 48 octets for each cell, and for places beyond
    /// 2^32; what was written before then does not count.
    pub fn emit(&self, values: &[u8], octets: &mut [u8]) -> Result<(), EmitError> {
        let each = self.octets_each();
        let cells = self.cells(values.len());
        EmitError::unless_size(super::FORMAT, "cells", octets.len(), cells * CELL_OCTETS)?;
        let further = (values.len() / self.kind.octets()).saturating_sub(1) as u32;
        if self.first.checked_add(further).is_none() {
            let allowed = "below 2^32 with the values";
            return Err(EmitError::value(super::FORMAT, "Offset First", self.first, allowed));
        }
        let full = (cells.max(1) - 1) * each;
        let (front, back) = octets.split_at_mut(full / each * CELL_OCTETS);
        // The last cell may be short.
        self.cell(full / each, values.len() - full, self.end).emit(&values[full..], back)?;
        let Some(first) = values.get(..each).filter(|_| full > 0) else { return Ok(()) };
        let mut model = [0; CELL_OCTETS];
        self.cell(0, each, false).emit(first, &mut model)?;
        model[CRC_AT..].fill(0);
        let text = CRC_AT - self.text_octets();
        let step = self.kind.most(self.stamp.is_some()) as u32;
        let (mut number, mut offset) = (self.number, self.first);
        let front = front.as_chunks_mut().0;
        for (cell, values) in front.iter_mut().zip(values.chunks_exact(each)) {
            *cell = model;
            put(cell, 3, number.get().to_be_bytes());
            put(cell, 11, offset.to_be_bytes());
            put(cell, 15, (offset + (step - 1)).to_be_bytes());
            cell[text..text + each].copy_from_slice(values);
            (number, offset) = (number.next(), offset.wrapping_add(step));
        }
        // Apart, as words that are read just after parts of them were written make the processor wait.
        for cell in front {
            let sum = crc(cell);
            put(cell, CRC_AT, sum.to_be_bytes());
        }
        Ok(())
    }

    /// Octets of a cell behind its fields and before its CRC.
    const fn text_octets(&self) -> usize {
        CRC_AT - VALUES_AT - if self.stamp.is_some() { 4 } else { 0 }
    }

    /// Reads the train at the beginning of some cells, as long as it goes and its values fit in `values`, which
    /// they fill from its beginning: the train, and how many octets of values it has. It ends before a cell that is
    /// damaged.
    ///
    /// # Errors
    /// [`DecodeError`] as [`Repr::parse`] of the first cell; `None` where that has no values, or more than fit.
    pub fn parse(octets: &[u8], values: &mut [u8]) -> Result<Option<(Self, usize)>, DecodeError> {
        let (model, rest) = octets.split_at(octets.len().min(CELL_OCTETS));
        let (Repr { connection, body }, text) = Repr::parse(model)?;
        let Body::Data { number, tag, kind, first, count, end, stamp } = body else { return Ok(None) };
        let mut train = Self { connection, number, tag, kind, first, end, stamp };
        let Some(place) = values.get_mut(..text.len()) else { return Ok(None) };
        place.copy_from_slice(text);
        let mut taken = text.len();
        let step = kind.most(stamp.is_some()) as u32;
        if end || u32::from(count) != step {
            return Ok(Some((train, taken)));
        }
        let text_at = CRC_AT - train.text_octets();
        let each = train.octets_each();
        let (mut number, mut offset) = (number.next(), first.wrapping_add(step));
        for cell in rest.as_chunks().0 {
            let follows = u32_at(cell, 3) == number.get()
                && u32_at(cell, 11) == offset
                && offset > first
                && cell[1..3] == model[1..3]
                && cell[7..11] == model[7..11]
                && (stamp.is_none() || cell[VALUES_AT..VALUES_AT + 4] == model[VALUES_AT..VALUES_AT + 4]);
            if !follows || crc(cell) != 0 {
                break;
            }
            let full = cell[0] == model[0] && u32_at(cell, 15) == offset.wrapping_add(step - 1);
            if full && let Some(place) = values.get_mut(taken..taken + each) {
                place.copy_from_slice(&cell[text_at..text_at + each]);
                taken += each;
                (number, offset) = (number.next(), offset.wrapping_add(step));
                continue;
            }
            // The last, which is short or says that it is.
            if let Ok((Repr { body: Body::Data { kind, end, stamp, .. }, .. }, text)) = Repr::parse(cell)
                && (kind, stamp) == (train.kind, train.stamp)
                && let Some(place) = values.get_mut(taken..taken + text.len())
            {
                place.copy_from_slice(text);
                taken += text.len();
                train.end = end;
            }
            break;
        }
        Ok(Some((train, taken)))
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    fn train(kind: Kind, number: u32, first: u32, end: bool, stamp: Option<u32>) -> Train {
        Train { connection: 0x0102, number: Number::wrapping(number), tag: 77, kind, first, end, stamp }
    }

    /// Cell by cell, by the one who knows no trains.
    fn one_by_one(train: &Train, values: &[u8]) -> Vec<u8> {
        let mut all = Vec::new();
        let chunks: Vec<_> = values.chunks(train.octets_each()).collect();
        for (place, chunk) in chunks.iter().enumerate() {
            let mut cell = [0xEE; CELL_OCTETS];
            let end = train.end && place + 1 == chunks.len();
            train.cell(place, chunk.len(), end).emit(chunk, &mut cell).expect("a cell that can be");
            all.extend_from_slice(&cell);
        }
        all
    }

    proptest! {
        #[test]
        fn a_train_is_its_cells_written_one_by_one_and_read_together(
            kind in prop::sample::select(&Kind::ALL[..]),
            values in 1_usize..200,
            number in prop::sample::select(&[0, 7, u32::MAX - 3][..]),
            first in prop::sample::select(&[0, 9, u32::MAX - 199][..]),
            end: bool,
            stamp: Option<u32>,
            behind in 0_usize..3,
            spare in 0_usize..40,
        ) {
            let train = train(kind, number, first, end, stamp);
            let values: Vec<u8> = (0..values * kind.octets()).map(|octet| octet as u8).collect();
            let cells = train.cells(values.len());
            let mut octets = vec![0xEE; cells * CELL_OCTETS];
            train.emit(&values, &mut octets).expect("a train that can be");
            prop_assert_eq!(&octets, &one_by_one(&train, &values));
            // What stands behind it is no part of it.
            let poll = Repr { connection: 1, body: Body::Poll { ps: Number::ZERO, s: Number::ZERO } };
            let mut cell = [0; CELL_OCTETS];
            poll.emit(&[], &mut cell).expect("a POLL");
            (0..behind).for_each(|_| octets.extend_from_slice(&cell));
            let mut read = vec![0xAA; values.len() + spare];
            let parsed = Train::parse(&octets, &mut read).expect("cells");
            prop_assert_eq!(parsed, Some((train, values.len())));
            prop_assert_eq!(&read[..values.len()], &values[..]);
            // Where there is room for less, it is as many whole cells as fit.
            let room = values.len() - 1;
            let fit = room / train.octets_each() * train.octets_each();
            let parsed = Train::parse(&octets, &mut read[..room]).expect("cells");
            prop_assert_eq!(parsed, (fit > 0).then_some((Train { end: false, ..train }, fit)));
        }

        #[test]
        fn a_cell_with_another_bit_ends_a_train(cell in 0_usize..5, bit in 0_usize..384) {
            let train = train(Kind::One, 5, 0, true, Some(9));
            let values: Vec<u8> = (0..4 * 23 + 5).collect();
            let mut octets = vec![0; 5 * CELL_OCTETS];
            train.emit(&values, &mut octets).expect("five cells");
            octets[cell * CELL_OCTETS + bit / 8] ^= 1 << (bit % 8);
            let mut read = [0; 4 * 23 + 5];
            match Train::parse(&octets, &mut read) {
                Ok(parsed) => {
                    let before = Train { end: false, ..train };
                    prop_assert_eq!(parsed, Some((before, cell * 23)));
                    prop_assert_eq!(&read[..cell * 23], &values[..cell * 23]);
                }
                Err(error) => prop_assert_eq!((error.field, cell), ("CRC", 0)),
            }
        }
    }

    #[test]
    fn octets_that_are_no_train_are_refused() {
        let train = train(Kind::Eight, 1, 0, false, None);
        train.emit(&[], &mut []).expect_err("a train of nothing");
        train.emit(&[0; 12], &mut [0; 48]).expect_err("a value and a half");
        train.emit(&[0; 24], &mut [0; 96]).expect_err("two cells for one");
        let mut read = [0; 48];
        Train::parse(&[0; 47], &mut read).expect_err("47 octets");
        let poll = Repr { connection: 1, body: Body::Poll { ps: Number::ZERO, s: Number::ZERO } };
        let mut cell = [0; CELL_OCTETS];
        poll.emit(&[], &mut cell).expect("a POLL");
        assert_eq!(Train::parse(&cell, &mut read), Ok(None));
        let beyond = Train { first: u32::MAX - 3, ..train };
        for values in [48, 72, 240] {
            let octets = beyond.cells(values) * CELL_OCTETS;
            beyond.emit(&vec![0; values], &mut vec![0; octets]).expect_err("places beyond 2^32");
        }
    }
}
