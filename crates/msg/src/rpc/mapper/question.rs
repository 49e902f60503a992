//! Questions to a port mapper as arguments, and how their results are read.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use wiretwin_wire::rpc::portmap::{self, Entry, Mapping, Mappings};
use wiretwin_wire::xdr::{Reader, Writer};
use wiretwin_wire::{DecodeError, EmitError};

use super::Registration;

/// A question. Those of versions 3 and 4 have the same numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question<'a> {
    /// Version 2: says where a program is. [`Reading::flag`].
    Set(Mapping),
    /// Version 2: takes a program back, over all transports. [`Reading::flag`].
    Unset(Mapping),
    /// Version 2: asks for a program's port. [`Reading::word`], 0 if there is none.
    GetPort(Mapping),
    /// Version 2: asks for all. [`Reading::mappings`].
    Dump,
    /// Version 2: has a procedure called over there, of which only results come back. [`Reading::called`].
    CallIt {
        /// Program number.
        program: u32,
        /// Version.
        version: u32,
        /// Procedure.
        procedure: u32,
        /// Its arguments.
        arguments: &'a [u8],
    },
    /// Versions 3 and 4: says where a program is. [`Reading::flag`].
    SetEntry(Entry<'a>),
    /// Versions 3 and 4: takes a program back, over one transport or, without a name, all.
    /// [`Reading::flag`].
    UnsetEntry(Entry<'a>),
    /// Versions 3 and 4: asks for a program's address. [`Reading::string`], empty if there is none.
    GetAddress(Entry<'a>),
    /// Version 4: the same, in this version of the program only.
    GetVersionAddress(Entry<'a>),
    /// Versions 3 and 4: asks for all. [`Reading::registrations`].
    DumpEntries,
    /// Versions 3 and 4: asks for the time. [`Reading::word`], seconds since 1970.
    GetTime,
}

impl Question<'_> {
    /// The procedure.
    pub const fn procedure(&self) -> u32 {
        match self {
            Self::Set(_) => portmap::PROC_SET,
            Self::Unset(_) => portmap::PROC_UNSET,
            Self::GetPort(_) => portmap::PROC_GETPORT,
            Self::Dump => portmap::PROC_DUMP,
            Self::CallIt { .. } => portmap::PROC_CALLIT,
            Self::SetEntry(_) => SET,
            Self::UnsetEntry(_) => UNSET,
            Self::GetAddress(_) => GETADDR,
            Self::GetVersionAddress(_) => GETVERSADDR,
            Self::DumpEntries => DUMP,
            Self::GetTime => GETTIME,
        }
    }

    /// The lowest version of the program that has it.
    pub const fn version(&self) -> u32 {
        match self {
            Self::Set(_) | Self::Unset(_) | Self::GetPort(_) | Self::Dump | Self::CallIt { .. } => 2,
            Self::GetVersionAddress(_) => 4,
            _ => 3,
        }
    }

    /// Its arguments.
    ///
    /// # Errors
    /// [`EmitError`] for a string of more than 1024 octets.
    pub fn arguments(&self) -> Result<Arc<[u8]>, EmitError> {
        let most = if let Self::CallIt { arguments, .. } = self { arguments.len() } else { 0 };
        let mut octets = vec![0; 3200 + most];
        let end = match self {
            Self::Set(mapping) | Self::Unset(mapping) | Self::GetPort(mapping) => {
                mapping.emit(&mut octets)?
            }
            Self::SetEntry(entry)
            | Self::UnsetEntry(entry)
            | Self::GetAddress(entry)
            | Self::GetVersionAddress(entry) => entry.emit(&mut octets)?,
            Self::CallIt { program, version, procedure, arguments } => {
                let mut writer = Writer::new("indirect call", &mut octets);
                writer.u32("prog", *program)?;
                writer.u32("vers", *version)?;
                writer.u32("proc", *procedure)?;
                writer.counted("args", arguments, u32::MAX, "any number of octets")?;
                writer.position()
            }
            Self::Dump | Self::DumpEntries | Self::GetTime => 0,
        };
        Ok(octets[..end].into())
    }
}

/// Reads results.
#[derive(Clone, Copy, Debug)]
pub struct Reading;

impl Reading {
    /// A boolean.
    ///
    /// # Errors
    /// [`DecodeError`] unless the results are one; so for all.
    pub fn flag(results: &[u8]) -> Result<bool, DecodeError> {
        let mut reader = Reader::new(FORMAT, results);
        let flag = reader.bool("flag")?;
        reader.end().map(|()| flag)
    }

    /// A word.
    ///
    /// # Errors
    /// As [`Reading::flag`].
    pub fn word(results: &[u8]) -> Result<u32, DecodeError> {
        let mut reader = Reader::new(FORMAT, results);
        let word = reader.u32("word")?;
        reader.end().map(|()| word)
    }

    /// A string of at most 1024 octets; what is not UTF-8 is replaced.
    ///
    /// # Errors
    /// As [`Reading::flag`].
    pub fn string(results: &[u8]) -> Result<String, DecodeError> {
        let mut reader = Reader::new(FORMAT, results);
        let octets = reader.counted("address", 1024, "0 to 1024 octets")?;
        reader.end().map(|()| String::from_utf8_lossy(octets).into_owned())
    }

    /// The port of the program that was called, and its results.
    ///
    /// # Errors
    /// As [`Reading::flag`].
    pub fn called(results: &[u8]) -> Result<(u32, &[u8]), DecodeError> {
        let mut reader = Reader::new(FORMAT, results);
        let port = reader.u32("port")?;
        let found = reader.counted("res", u32::MAX, "any number of octets")?;
        reader.end().map(|()| (port, found))
    }

    /// The mappings of version 2.
    ///
    /// # Errors
    /// As [`Reading::flag`].
    pub fn mappings(results: &[u8]) -> Result<Vec<Mapping>, DecodeError> {
        Mappings::new(results).collect()
    }

    /// The entries of versions 3 and 4. What is not UTF-8 in one is replaced.
    ///
    /// # Errors
    /// As [`Reading::flag`].
    pub fn registrations(mut results: &[u8]) -> Result<Vec<Registration>, DecodeError> {
        let mut all = Vec::new();
        loop {
            let mut reader = Reader::new(FORMAT, results);
            if !reader.bool("more")? {
                return reader.end().map(|()| all);
            }
            let (entry, rest) = Entry::parse(reader.rest())?;
            let text = |octets| String::from_utf8_lossy(octets).into_owned();
            all.push(Registration {
                program: entry.program,
                version: entry.version,
                netid: text(entry.netid),
                address: text(entry.address),
                owner: text(entry.owner),
            });
            results = rest;
        }
    }
}

const FORMAT: &str = "port mapper results";

pub(super) const SET: u32 = 1;
pub(super) const UNSET: u32 = 2;
pub(super) const GETADDR: u32 = 3;
pub(super) const DUMP: u32 = 4;
pub(super) const BCAST: u32 = 5;
pub(super) const GETTIME: u32 = 6;
pub(super) const GETVERSADDR: u32 = 9;
