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
                write!(f, "checksum {found:#x}, but the octets before it give {computed:#x}")
            }
        }
    }
}

impl core::error::Error for DecodeError {}

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
