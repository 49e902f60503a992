//! External data representation: numbers, opaque octets and strings in units of four octets.
//!
//! RFC 4506 (RFC 1014, RFC 1832). A [`Reader`] and a [`Writer`] go through a caller's octets; what a
//! structure is made of is said by who reads it, in order. Left out: quadruple-precision numbers.

use wiretwin_units::Bytes;

use crate::octets::array_at;
use crate::{DecodeError, EmitError, Fault, Misfit};

/// Octets that are read item by item.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    format: &'static str,
    octets: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    /// A reader of these octets; errors name `format`.
    pub const fn new(format: &'static str, octets: &'a [u8]) -> Self {
        Self { format, octets, at: 0 }
    }

    /// How many octets were read.
    pub const fn position(&self) -> usize {
        self.at
    }

    /// The octets that are left.
    pub fn rest(&self) -> &'a [u8] {
        &self.octets[self.at..]
    }

    /// An unsigned integer (§4.2).
    ///
    /// # Errors
    /// [`Fault::Size`](crate::Fault::Size) where the octets end before it does; so for all items.
    pub fn u32(&mut self, field: &'static str) -> Result<u32, DecodeError> {
        Ok(u32::from_be_bytes(self.array(field)?))
    }

    /// An integer (§4.1).
    ///
    /// # Errors
    /// As [`Reader::u32`].
    pub fn i32(&mut self, field: &'static str) -> Result<i32, DecodeError> {
        Ok(i32::from_be_bytes(self.array(field)?))
    }

    /// An unsigned hyper integer (§4.5).
    ///
    /// # Errors
    /// As [`Reader::u32`].
    pub fn u64(&mut self, field: &'static str) -> Result<u64, DecodeError> {
        Ok(u64::from_be_bytes(self.array(field)?))
    }

    /// A hyper integer (§4.5).
    ///
    /// # Errors
    /// As [`Reader::u32`].
    pub fn i64(&mut self, field: &'static str) -> Result<i64, DecodeError> {
        Ok(i64::from_be_bytes(self.array(field)?))
    }

    /// A floating-point number of single precision (§4.6).
    ///
    /// # Errors
    /// As [`Reader::u32`].
    pub fn f32(&mut self, field: &'static str) -> Result<f32, DecodeError> {
        Ok(f32::from_be_bytes(self.array(field)?))
    }

    /// A floating-point number of double precision (§4.7).
    ///
    /// # Errors
    /// As [`Reader::u32`].
    pub fn f64(&mut self, field: &'static str) -> Result<f64, DecodeError> {
        Ok(f64::from_be_bytes(self.array(field)?))
    }

    /// A boolean (§4.4); also whether an optional value follows (§4.19).
    ///
    /// # Errors
    /// [`Fault::Value`](crate::Fault::Value) for another number than 0 and 1.
    pub fn bool(&mut self, field: &'static str) -> Result<bool, DecodeError> {
        match self.u32(field)? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(self.value(field, 4, other, "0 or 1")),
        }
    }

    /// So many octets, without a length (§4.9).
    ///
    /// # Errors
    /// [`Fault::Value`](crate::Fault::Value) if what fills the last unit is not zeros.
    pub fn opaque(&mut self, field: &'static str, length: usize) -> Result<&'a [u8], DecodeError> {
        let padded = length.checked_next_multiple_of(UNIT).unwrap_or(usize::MAX);
        let octets = self.take(field, padded)?;
        let (opaque, fill) = octets.split_at(length);
        // §3: "the residual bytes" are zeros.
        match fill.iter().find(|&&octet| octet != 0) {
            Some(&octet) => {
                Err(self.value(field, fill.len(), octet, "0 in the octets that fill the last unit"))
            }
            None => Ok(opaque),
        }
    }

    /// Octets behind their length (§4.10), of which there may be `most`; `allowed` says it in words.
    /// Strings too (§4.11).
    ///
    /// # Errors
    /// [`Fault::Value`](crate::Fault::Value) for more.
    pub fn counted(
        &mut self,
        field: &'static str,
        most: u32,
        allowed: &'static str,
    ) -> Result<&'a [u8], DecodeError> {
        let length = self.u32(field)?;
        if length > most {
            return Err(self.value(field, 4, length, allowed));
        }
        self.opaque(field, length as usize)
    }

    /// Passes if nothing is left.
    ///
    /// # Errors
    /// [`Fault::Size`](crate::Fault::Size) otherwise.
    pub fn end(&self) -> Result<(), DecodeError> {
        match self.rest().len() {
            0 => Ok(()),
            more => Err(self.size("end", more, "0")),
        }
    }

    /// A value that was read and may not be; it began `back` octets before.
    pub(crate) fn value(
        &self,
        field: &'static str,
        back: usize,
        found: impl Into<u64>,
        allowed: &'static str,
    ) -> DecodeError {
        DecodeError::value((self.format, field), self.at - back, found, allowed)
    }

    fn size(&self, field: &'static str, found: usize, allowed: &'static str) -> DecodeError {
        let fault = Fault::Size { found: Bytes::new(found as u64), allowed };
        DecodeError { format: self.format, field, offset: Bytes::new(self.at as u64), fault }
    }

    fn take(&mut self, field: &'static str, count: usize) -> Result<&'a [u8], DecodeError> {
        let Some(octets) = self.rest().get(..count) else {
            return Err(self.size(field, self.rest().len(), "as many as the item has"));
        };
        self.at += count;
        Ok(octets)
    }

    fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], DecodeError> {
        self.take(field, N).map(|octets| array_at(octets, 0))
    }
}

/// Octets that are written item by item.
#[derive(Debug)]
pub struct Writer<'a> {
    format: &'static str,
    octets: &'a mut [u8],
    at: usize,
}

impl<'a> Writer<'a> {
    /// A writer to these octets; errors name `format`.
    pub const fn new(format: &'static str, octets: &'a mut [u8]) -> Self {
        Self { format, octets, at: 0 }
    }

    /// How many octets were written.
    pub const fn position(&self) -> usize {
        self.at
    }

    /// An unsigned integer.
    ///
    /// # Errors
    /// [`EmitError`] where there is no room for it; so for all items. What was written before stays.
    pub fn u32(&mut self, field: &'static str, value: u32) -> Result<(), EmitError> {
        self.put(field, &value.to_be_bytes())
    }

    /// An integer.
    ///
    /// # Errors
    /// As [`Writer::u32`].
    pub fn i32(&mut self, field: &'static str, value: i32) -> Result<(), EmitError> {
        self.put(field, &value.to_be_bytes())
    }

    /// An unsigned hyper integer.
    ///
    /// # Errors
    /// As [`Writer::u32`].
    pub fn u64(&mut self, field: &'static str, value: u64) -> Result<(), EmitError> {
        self.put(field, &value.to_be_bytes())
    }

    /// A hyper integer.
    ///
    /// # Errors
    /// As [`Writer::u32`].
    pub fn i64(&mut self, field: &'static str, value: i64) -> Result<(), EmitError> {
        self.put(field, &value.to_be_bytes())
    }

    /// A floating-point number of single precision.
    ///
    /// # Errors
    /// As [`Writer::u32`].
    pub fn f32(&mut self, field: &'static str, value: f32) -> Result<(), EmitError> {
        self.put(field, &value.to_be_bytes())
    }

    /// A floating-point number of double precision.
    ///
    /// # Errors
    /// As [`Writer::u32`].
    pub fn f64(&mut self, field: &'static str, value: f64) -> Result<(), EmitError> {
        self.put(field, &value.to_be_bytes())
    }

    /// A boolean.
    ///
    /// # Errors
    /// As [`Writer::u32`].
    pub fn bool(&mut self, field: &'static str, value: bool) -> Result<(), EmitError> {
        self.u32(field, value.into())
    }

    /// Octets without a length, and zeros that fill the last unit.
    ///
    /// # Errors
    /// As [`Writer::u32`].
    pub fn opaque(&mut self, field: &'static str, octets: &[u8]) -> Result<(), EmitError> {
        let fill = padded(octets.len()) - octets.len();
        self.put(field, octets)?;
        self.put(field, &[0; UNIT][..fill])
    }

    /// Octets behind their length, of which there may be `most`; `allowed` says it in words.
    ///
    /// # Errors
    /// [`EmitError`] for more.
    pub fn counted(
        &mut self,
        field: &'static str,
        octets: &[u8],
        most: u32,
        allowed: &'static str,
    ) -> Result<(), EmitError> {
        let length = octets.len() as u64;
        if length > most.into() {
            return Err(EmitError::value(self.format, field, length, allowed));
        }
        self.u32(field, length as u32)?;
        self.opaque(field, octets)
    }

    fn put(&mut self, field: &'static str, octets: &[u8]) -> Result<(), EmitError> {
        let (found, needed) = (self.octets.len() - self.at, octets.len());
        let Some(room) = self.octets.get_mut(self.at..self.at + needed) else {
            let fault = Misfit::Size { found: Bytes::new(found as u64), needed: Bytes::new(needed as u64) };
            return Err(EmitError { format: self.format, field, fault });
        };
        room.copy_from_slice(octets);
        self.at += needed;
        Ok(())
    }
}

/// Octets that so many take with what fills their last unit.
pub const fn padded(octets: usize) -> usize {
    octets.next_multiple_of(UNIT)
}

/// Octets of a unit: everything begins at a multiple of it.
pub const UNIT: usize = 4;

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn known_items_are_written_and_read() {
        let mut octets = [0xEE; 72];
        let mut writer = Writer::new("test", &mut octets);
        writer.counted("string", b"abc", 9, "").expect("room");
        writer.counted("file", b"sillyprog", 9, "").expect("room");
        writer.f64("double", 1.0).expect("room");
        writer.f32("float", -2.5).expect("room");
        writer.i32("int", -2).expect("room");
        writer.counted("opaque", &[1], 1, "").expect("room");
        writer.bool("bool", true).expect("room");
        writer.i64("hyper", -1).expect("room");
        writer.u64("unsigned hyper", 1).expect("room");
        let end = writer.position();
        let expected =
            b"\x00\x00\x00\x03abc\x00\x00\x00\x00\x09sillyprog\x00\x00\x00\x3f\xf0\x00\x00\x00\x00\x00\x00\
            \xc0\x20\x00\x00\xff\xff\xff\xfe\x00\x00\x00\x01\x01\x00\x00\x00\x00\x00\x00\x01\
            \xff\xff\xff\xff\xff\xff\xff\xff\x00\x00\x00\x00\x00\x00\x00\x01";
        assert_eq!(octets[..end], expected[..]);
        let mut reader = Reader::new("test", &octets[..end]);
        assert_eq!(reader.counted("string", 3, ""), Ok(&b"abc"[..]));
        assert_eq!(reader.counted("file", 9, ""), Ok(&b"sillyprog"[..]));
        assert_eq!((reader.f64("double"), reader.f32("float")), (Ok(1.0), Ok(-2.5)));
        assert_eq!((reader.i32("int"), reader.counted("opaque", 1, "")), (Ok(-2), Ok(&[1][..])));
        assert_eq!((reader.bool("bool"), reader.i64("hyper")), (Ok(true), Ok(-1)));
        assert_eq!(
            reader.end().expect_err("eight octets are left").fault,
            Fault::Size { found: Bytes::new(8), allowed: "0" }
        );
        assert_eq!((reader.u64("unsigned hyper"), reader.end()), (Ok(1), Ok(())));
    }

    #[test]
    fn every_wrong_item_is_named_with_its_place() {
        let octets = [0, 0, 0, 5, b'a', b'b', b'c', b'd', b'e', 0, 1, 0];
        let read = |at: usize| {
            let mut reader = Reader::new("test", &octets);
            reader.opaque("skipped", at).expect("whole units");
            reader
        };
        let said = [
            read(0).bool("flag").map(|_| ()),
            read(0).counted("name", 4, "0 to 4").map(|_| ()),
            read(0).counted("name", 5, "0 to 5").map(|_| ()),
            read(4).counted("name", u32::MAX, "any").map(|_| ()),
            read(8).u64("count").map(|_| ()),
        ];
        let expected = [
            "test, flag at octet 0: 5, allowed is 0 or 1",
            "test, name at octet 0: 5, allowed is 0 to 4",
            "test, name at octet 9: 1, allowed is 0 in the octets that fill the last unit",
            "test, name at octet 8: 4 octets, allowed are as many as the item has",
            "test, count at octet 8: 4 octets, allowed are as many as the item has",
        ];
        for (said, expected) in said.into_iter().zip(expected) {
            assert_eq!(said.expect_err(expected).to_string(), expected);
        }
    }

    #[test]
    fn what_has_no_room_is_refused() {
        let mut octets = [0; 6];
        let mut writer = Writer::new("test", &mut octets);
        assert_eq!(
            writer.counted("name", b"ab", 1, "0 to 1").expect_err("two").to_string(),
            "test, name: 2, allowed is 0 to 1"
        );
        let error = writer.u64("count", 0).expect_err("six octets");
        assert_eq!(error.to_string(), "test, count: 6 octets to write to, but it takes 8");
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(count: u32, octets in prop::collection::vec(any::<u8>(), 0..40), wide: u64, flag: bool) {
            let mut room = [0xEE; 64];
            let mut writer = Writer::new("test", &mut room);
            writer.u32("count", count).expect("room");
            writer.counted("octets", &octets, 40, "0 to 40").expect("room");
            writer.u64("wide", wide).expect("room");
            writer.bool("flag", flag).expect("room");
            let end = writer.position();
            let mut reader = Reader::new("test", &room[..end]);
            prop_assert_eq!(reader.u32("count"), Ok(count));
            prop_assert_eq!(reader.counted("octets", 40, "0 to 40"), Ok(&octets[..]));
            prop_assert_eq!((reader.u64("wide"), reader.bool("flag")), (Ok(wide), Ok(flag)));
            prop_assert_eq!(reader.end(), Ok(()));
        }
    }
}
