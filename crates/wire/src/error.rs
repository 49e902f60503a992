//! What is wrong with octets that came from a peer, and where.

use core::fmt;

use wiretwin_units::Bytes;

/// Octets that are not the format they should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodeError {
    /// The format, for example `AAL5 CPCS-PDU`.
    pub format: &'static str,
    /// The field, in the specification's words.
    pub field: &'static str,
    /// Where the field begins, counted from the first octet of the format.
    pub offset: Bytes,
    /// What is wrong with it.
    pub fault: Fault,
}

/// What is wrong with a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The octets are too few, too many, or not a multiple of what they must be.
    Size {
        /// How many there are.
        found: Bytes,
        /// How many there may be.
        allowed: &'static str,
    },
    /// The field has a value that it must not have.
    Value {
        /// The value.
        found: u64,
        /// What it may be.
        allowed: &'static str,
    },
    /// The checksum is not that of the octets it covers.
    Checksum {
        /// The checksum in the field.
        found: u32,
        /// The checksum of the octets.
        computed: u32,
    },
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {} at octet {}: ", self.format, self.field, self.offset.get())?;
        match self.fault {
            Fault::Size { found, allowed } => write!(f, "{} octets, allowed are {allowed}", found.get()),
            Fault::Value { found, allowed } => write!(f, "{found}, allowed is {allowed}"),
            Fault::Checksum { found, computed } => {
                write!(f, "checksum {found:#x}, but the octets it covers give {computed:#x}")
            }
        }
    }
}

impl core::error::Error for DecodeError {}

impl DecodeError {
    /// So many octets, where other sizes are allowed.
    pub(crate) fn size(
        format: &'static str,
        field: &'static str,
        found: usize,
        allowed: &'static str,
    ) -> Self {
        let fault = Fault::Size { found: Bytes::new(found as u64), allowed };
        Self { format, field, offset: Bytes::new(0), fault }
    }

    /// A field that has a value it must not have.
    pub(crate) fn value(
        (format, field): (&'static str, &'static str),
        offset: usize,
        found: impl Into<u64>,
        allowed: &'static str,
    ) -> Self {
        let fault = Fault::Value { found: found.into(), allowed };
        Self { format, field, offset: Bytes::new(offset as u64), fault }
    }

    /// A checksum that is not that of what it covers.
    pub(crate) fn checksum(
        (format, field): (&'static str, &'static str),
        offset: usize,
        found: impl Into<u32>,
        computed: impl Into<u32>,
    ) -> Self {
        let fault = Fault::Checksum { found: found.into(), computed: computed.into() };
        Self { format, field, offset: Bytes::new(offset as u64), fault }
    }
}

/// What cannot be written: misuse by a caller. Nothing is written then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EmitError {
    /// The format, for example `IPv4 packet`.
    pub format: &'static str,
    /// The field, in the specification's words.
    pub field: &'static str,
    /// What is wrong with it.
    pub fault: Misfit,
}

/// Why a field cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misfit {
    /// There are not as many octets to write to as there is to be written.
    Size {
        /// How many there are.
        found: Bytes,
        /// How many it takes.
        needed: Bytes,
    },
    /// The format has no room for the value.
    Value {
        /// The value.
        found: u64,
        /// What it may be.
        allowed: &'static str,
    },
}

impl fmt::Display for EmitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { format, field, fault } = self;
        match fault {
            Misfit::Size { found, needed } => {
                write!(
                    f,
                    "{format}, {field}: {} octets to write to, but it takes {}",
                    found.get(),
                    needed.get()
                )
            }
            Misfit::Value { found, allowed } => write!(f, "{format}, {field}: {found}, allowed is {allowed}"),
        }
    }
}

impl core::error::Error for EmitError {}

impl EmitError {
    /// Passes if there are as many octets as are needed.
    pub(crate) fn unless_size(
        format: &'static str,
        field: &'static str,
        found: usize,
        needed: usize,
    ) -> Result<(), Self> {
        if found == needed {
            return Ok(());
        }
        let fault = Misfit::Size { found: Bytes::new(found as u64), needed: Bytes::new(needed as u64) };
        Err(Self { format, field, fault })
    }

    /// A value that the format has no room for.
    pub(crate) fn value(
        format: &'static str,
        field: &'static str,
        found: impl Into<u64>,
        allowed: &'static str,
    ) -> Self {
        Self { format, field, fault: Misfit::Value { found: found.into(), allowed } }
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn an_error_names_format_field_place_and_what_is_allowed() {
        let error = DecodeError {
            format: "AAL5 CPCS-PDU",
            field: "Length",
            offset: Bytes::new(44),
            fault: Fault::Value { found: 41, allowed: "0 to 40" },
        };
        assert_eq!(error.to_string(), "AAL5 CPCS-PDU, Length at octet 44: 41, allowed is 0 to 40");
    }
}
