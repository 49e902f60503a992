//! Options in the header of an IPv4 packet or a TCP segment: up to 40 octets, kept as they stand.
//!
//! RFC 791 §3.1 and RFC 9293 §3.1 give them one form: an octet of 0 ends the list, an octet of 1 is
//! a no-operation, any other is followed by a length that counts both octets and the data.

use core::fmt;

use crate::{DecodeError, EmitError};

/// A list of options. Two lists are equal if they are with the zeros that fill their last 32 bits.
#[derive(Clone, Copy)]
pub struct Options {
    length: u8,
    /// Zeros behind `length`.
    octets: [u8; MAX_OPTION_OCTETS],
}

/// One option, not yet understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field<'a> {
    /// Its kind, 2 and up.
    pub kind: u8,
    /// The octets behind its length octet.
    pub data: &'a [u8],
    /// Where it begins in the list.
    pub offset: usize,
}

impl Options {
    /// No options.
    pub const NONE: Self = Self { length: 0, octets: [0; MAX_OPTION_OCTETS] };

    /// These octets, whose form is not looked at; `None` if there are more than 40.
    pub fn from_octets(octets: &[u8]) -> Option<Self> {
        let mut list = Self::NONE;
        list.octets.get_mut(..octets.len())?.copy_from_slice(octets);
        list.length = octets.len() as u8;
        Some(list)
    }

    /// The options and the zeros that fill their last 32 bits.
    pub fn octets(&self) -> &[u8] {
        &self.octets[..self.padded()]
    }

    /// Octets that the list takes in a header, a multiple of 4.
    pub const fn padded(&self) -> usize {
        (self.length as usize).next_multiple_of(4)
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Adds a no-operation.
    ///
    /// # Errors
    /// [`EmitError`] if the list has 40 octets.
    pub fn push_nop(&mut self) -> Result<(), EmitError> {
        self.append(&[NO_OPERATION])
    }

    /// Adds an option.
    ///
    /// # Errors
    /// [`EmitError`] if the list would have more than 40 octets, or if `kind` is 0 or 1, which have
    /// no data.
    pub fn push(&mut self, kind: u8, data: &[u8]) -> Result<(), EmitError> {
        if kind <= NO_OPERATION {
            return Err(EmitError::value(FORMAT, "kind", kind, "2 to 255 for an option with a length"));
        }
        let mut option = [0; MAX_OPTION_OCTETS];
        let length = data.len() + 2;
        let room = MAX_OPTION_OCTETS - usize::from(self.length);
        if length > room {
            return Err(EmitError::value(FORMAT, "length", length as u64, "40 octets in all"));
        }
        option[0] = kind;
        option[1] = length as u8;
        option[2..length].copy_from_slice(data);
        self.append(&option[..length])
    }

    /// The options up to the end of the list, no-operations left out.
    pub fn fields(&self) -> Fields<'_> {
        Fields { octets: self.octets(), at: 0 }
    }

    /// Checks the form of every option; `header` and `offset` say of what header, and where in it the
    /// list begins.
    pub(crate) fn check(&self, format: &'static str, offset: usize) -> Result<(), DecodeError> {
        let mut fields = self.fields();
        while let Some(field) = fields.next_checked() {
            if let Err((at, length)) = field {
                let allowed = "2 to the end of the header";
                return Err(DecodeError::value((format, "option length"), offset + at, length, allowed));
            }
        }
        Ok(())
    }

    fn append(&mut self, more: &[u8]) -> Result<(), EmitError> {
        let (start, end) = (usize::from(self.length), usize::from(self.length) + more.len());
        match self.octets.get_mut(start..end) {
            Some(room) => room.copy_from_slice(more),
            None => return Err(EmitError::value(FORMAT, "length", end as u64, "40 octets in all")),
        }
        self.length = end as u8;
        Ok(())
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::NONE
    }
}

impl PartialEq for Options {
    fn eq(&self, other: &Self) -> bool {
        self.octets() == other.octets()
    }
}

impl Eq for Options {}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Options(")?;
        self.octets().iter().try_for_each(|octet| write!(f, "{octet:02x}"))?;
        write!(f, ")")
    }
}

/// The options of a list, in order. Ends at the first that has no right form.
#[derive(Clone, Debug)]
pub struct Fields<'a> {
    octets: &'a [u8],
    at: usize,
}

impl<'a> Fields<'a> {
    /// The next option, or where its length stands and what it is if it cannot be.
    fn next_checked(&mut self) -> Option<Result<Field<'a>, (usize, u8)>> {
        loop {
            let offset = self.at;
            match *self.octets.get(offset)? {
                END_OF_LIST => return None,
                NO_OPERATION => self.at += 1,
                kind => {
                    let length = self.octets.get(offset + 1).copied().unwrap_or(0);
                    let end = offset + usize::from(length);
                    if length < 2 || end > self.octets.len() {
                        self.at = self.octets.len();
                        return Some(Err((offset + 1, length)));
                    }
                    self.at = end;
                    return Some(Ok(Field { kind, data: &self.octets[offset + 2..end], offset }));
                }
            }
        }
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Field<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_checked()?.ok()
    }
}

/// Octets of the longest list: a header of 15 times 32 bits less the 20 that are always there.
pub const MAX_OPTION_OCTETS: usize = 40;
/// The kind that ends a list.
pub const END_OF_LIST: u8 = 0;
/// The kind that stands between options.
pub const NO_OPERATION: u8 = 1;

const FORMAT: &str = "options";

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::ToString;
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn options_are_read_up_to_the_end_of_the_list() {
        let list = Options::from_octets(&[1, 7, 4, 0xAB, 0xCD, 1, 9, 2, 0, 7, 4, 1, 1]).expect("13 octets");
        let fields: Vec<_> = list.fields().collect();
        let first = Field { kind: 7, data: &[0xAB, 0xCD], offset: 1 };
        assert_eq!(fields, [first, Field { kind: 9, data: &[], offset: 6 }]);
        assert_eq!(list.padded(), 16);
        assert_eq!(format!("{list:?}"), "Options(010704abcd010902000704010100"[..].to_string() + "0000)");
    }

    #[test]
    fn lists_that_fill_a_header_alike_are_equal() {
        let short = Options::from_octets(&[1]).expect("one octet");
        let filled = Options::from_octets(&[1, 0, 0, 0]).expect("four octets");
        assert_eq!(short, filled);
        assert_ne!(short, Options::NONE);
        assert_eq!(Options::from_octets(&[0; 41]), None);
    }

    #[test]
    fn a_length_that_cannot_be_is_named_with_its_place() {
        for (octets, at, length) in [(&[1, 7, 0, 0][..], 22, 0), (&[7, 1], 21, 1), (&[1, 1, 7, 3], 23, 3)] {
            let error = Options::from_octets(octets).expect("few octets").check("test", 20);
            let allowed = "2 to the end of the header";
            let expected = DecodeError::value(("test", "option length"), at, length as u64, allowed);
            assert_eq!(error, Err(expected));
        }
        assert_eq!(Options::from_octets(&[7]).expect("one octet").fields().next(), None);
        let cut = Options::from_octets(&[1, 1, 1, 7]).expect("four octets").check("test", 20);
        assert_eq!(cut.expect_err("no length").offset.get(), 24);
    }

    #[test]
    fn a_list_holds_forty_octets_and_no_more() {
        let mut list = Options::NONE;
        for _ in 0..9 {
            list.push(8, &[1, 2]).expect("36 octets");
        }
        let error = list.push(8, &[1, 2, 3]).expect_err("41 octets");
        assert_eq!(error.to_string(), "options, length: 5, allowed is 40 octets in all");
        list.push(8, &[1, 2]).expect("40 octets");
        list.push_nop().expect_err("41 octets");
        assert_eq!(list.padded(), 40);
        list.push(1, &[]).expect_err("a no-operation has no length");
    }
}
