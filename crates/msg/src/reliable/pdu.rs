//! PDUs of the user-level layer: a head of 16 octets, then data, or what is missing.
//!
//! | octets | head, big endian |
//! |---|---|
//! | 0 | kind: 1 data, 2 poll, 3 status, 4 of a tree |
//! | 1 | 1 where a status is asked for, else 0 |
//! | 2 to 3 | octets that follow |
//! | 4 to 7 | data: its number; poll: the number of the next data; status: up to here the list says all |
//! | 8 to 11 | the number of the data that is expected next: all before has come |
//! | 12 to 15 | data and poll: the stamp; status: the last stamp that has come |
//!
//! What follows the head of a status is a list: first number and count, 4 octets each, of data that is missing. A
//! leaf of a tree answers its root on a circuit of its own: what follows that head, whose number is the root's access
//! point, is a PDU of the tree.

use alloc::vec::Vec;

use crate::library::{Content, Front};

/// Octets of a head.
pub const HEAD_OCTETS: usize = 16;
/// Ranges that a status may list.
pub const MOST_RANGES: usize = 32;

/// What a PDU is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It carries data.
    Data,
    /// It asks for a status.
    Poll,
    /// It says what has come.
    Status,
    /// A leaf says this to the root of a tree.
    OfTree,
}

/// The first octet of [`Kind::OfTree`].
pub const OF_TREE: u8 = 4;

/// The head of a PDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// What it is.
    pub kind: Kind,
    /// A status is asked for.
    pub asks: bool,
    /// Octets that follow.
    pub length: u16,
    /// See the table.
    pub number: u32,
    /// All data before this has come.
    pub expected: u32,
    /// See the table.
    pub stamp: u32,
}

/// Data that is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missing {
    /// The number of the first.
    pub first: u32,
    /// How many.
    pub count: u32,
}

/// Why octets are no PDU of this layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PduError {
    /// Fewer octets than a head has.
    Short {
        /// How many there are.
        octets: u64,
    },
    /// A kind that there is not.
    Kind {
        /// The octet.
        kind: u8,
    },
    /// Neither 0 nor 1.
    Asks {
        /// The octet.
        asks: u8,
    },
    /// More or fewer octets follow than the head says.
    Length {
        /// What it says.
        said: u16,
        /// What there is.
        found: u64,
    },
    /// The list of a status is not one: no pairs, too many, or not octets.
    List,
}

impl core::fmt::Display for PduError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match *self {
            Self::Short { octets } => write!(f, "{octets} octets, a head has {HEAD_OCTETS}"),
            Self::Kind { kind } => write!(f, "kind {kind}, allowed are 1 to 4"),
            Self::Asks { asks } => write!(f, "octet 1 is {asks}, allowed are 0 and 1"),
            Self::Length { said, found } => write!(f, "{found} octets follow the head, which says {said}"),
            Self::List => write!(f, "a status lists pairs of 8 octets, at most {MOST_RANGES}"),
        }
    }
}

impl core::error::Error for PduError {}

impl Head {
    /// Its octets.
    #[must_use]
    pub fn octets(&self) -> [u8; HEAD_OCTETS] {
        let mut octets = [0; HEAD_OCTETS];
        octets[0] = match self.kind {
            Kind::Data => 1,
            Kind::Poll => 2,
            Kind::Status => 3,
            Kind::OfTree => OF_TREE,
        };
        octets[1] = u8::from(self.asks);
        octets[2..4].copy_from_slice(&self.length.to_be_bytes());
        octets[4..8].copy_from_slice(&self.number.to_be_bytes());
        octets[8..12].copy_from_slice(&self.expected.to_be_bytes());
        octets[12..16].copy_from_slice(&self.stamp.to_be_bytes());
        octets
    }

    /// Takes the head off a PDU; what follows stays in it.
    ///
    /// # Errors
    /// [`PduError`], where these are not a PDU's octets.
    pub fn take(pdu: &mut Content) -> Result<Self, PduError> {
        let mut octets = [0; HEAD_OCTETS];
        if !pdu.take_octets(&mut octets) {
            return Err(PduError::Short { octets: pdu.octets_in_front() });
        }
        let kind = match octets[0] {
            1 => Kind::Data,
            2 => Kind::Poll,
            3 => Kind::Status,
            OF_TREE => Kind::OfTree,
            kind => return Err(PduError::Kind { kind }),
        };
        let asks = octets[1];
        if asks > 1 {
            return Err(PduError::Asks { asks });
        }
        let [_, _, l0, l1, n0, n1, n2, n3, e0, e1, e2, e3, s0, s1, s2, s3] = octets;
        let said = u16::from_be_bytes([l0, l1]);
        let found = pdu.length().get();
        if u64::from(said) != found {
            return Err(PduError::Length { said, found });
        }
        Ok(Self {
            kind,
            asks: asks == 1,
            length: said,
            number: u32::from_be_bytes([n0, n1, n2, n3]),
            expected: u32::from_be_bytes([e0, e1, e2, e3]),
            stamp: u32::from_be_bytes([s0, s1, s2, s3]),
        })
    }
}

/// Reads the list of a status.
///
/// # Errors
/// [`PduError::List`].
pub fn take_list(pdu: &mut Content) -> Result<Vec<Missing>, PduError> {
    let mut list = Vec::new();
    while !matches!(pdu.front(), Front::Nothing) {
        let mut octets = [0; 8];
        if list.len() == MOST_RANGES || !pdu.take_octets(&mut octets) {
            return Err(PduError::List);
        }
        let [f0, f1, f2, f3, c0, c1, c2, c3] = octets;
        let (first, count) = (u32::from_be_bytes([f0, f1, f2, f3]), u32::from_be_bytes([c0, c1, c2, c3]));
        list.push(Missing { first, count });
    }
    Ok(list)
}

/// Writes the list of a status behind its head.
pub fn put_list(list: &[Missing], pdu: &mut Content) {
    for Missing { first, count } in list {
        pdu.push_octets(&first.to_be_bytes());
        pdu.push_octets(&count.to_be_bytes());
    }
}
