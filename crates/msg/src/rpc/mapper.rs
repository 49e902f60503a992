//! The port mapper (version 2) and `rpcbind` (versions 3 and 4): the table, and the questions to one.
//!
//! RFC 1833. The program itself is served like any other: [`Mapper::services`] are registered with a
//! [`Server`](super::server::Server), and [`Mapper::answer`] answers its requests. Left out: indirect calls
//! (CALLIT, BCAST, INDIRECT), address conversions, GETADDRLIST and GETSTAT. CALLIT and BCAST keep silent, as
//! they must when they fail (§3.2); the others are PROC_UNAVAIL.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::net::{Ipv4Addr, SocketAddrV4};

use wiretwin_wire::DecodeError;
use wiretwin_wire::rpc::portmap::{self, Entry, Mapping, Transport, UniversalAddress};
use wiretwin_wire::xdr::{Reader, padded};

use super::Refusal;
use super::server::Service;

mod question;

pub use question::{Question, Reading};

/// Where a program can be reached over one transport, and who says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registration {
    /// Program number.
    pub program: u32,
    /// Version.
    pub version: u32,
    /// Name of the transport, `tcp` or `udp`.
    pub netid: String,
    /// Universal address.
    pub address: String,
    /// Who registered it.
    pub owner: String,
}

impl Registration {
    fn of(entry: &Entry<'_>) -> Option<Self> {
        let text = |octets: &[u8]| core::str::from_utf8(octets).ok().map(String::from);
        Some(Self {
            program: entry.program,
            version: entry.version,
            netid: text(entry.netid)?,
            address: text(entry.address)?,
            owner: text(entry.owner)?,
        })
    }

    /// As an entry of versions 3 and 4.
    pub fn entry(&self) -> Entry<'_> {
        Entry {
            program: self.program,
            version: self.version,
            netid: self.netid.as_bytes(),
            address: self.address.as_bytes(),
            owner: self.owner.as_bytes(),
        }
    }

    /// As a mapping of version 2; `None` for a transport that it has no number for.
    pub fn mapping(&self) -> Option<Mapping> {
        let transport = transport_of(&self.netid)?;
        let UniversalAddress(address) = UniversalAddress::parse(self.address.as_bytes()).ok()?;
        Some(Mapping { program: self.program, version: self.version, transport, port: address.port().into() })
    }
}

/// Who asks, as the driver knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// Whether it is on this host: only such a one may set and unset (RFC 1833, security).
    pub local: bool,
    /// The name that it registers under. [`SUPERUSER`] may unset what others have set.
    pub owner: String,
    /// The address of ours that it used: it goes in the place of 0.0.0.0.
    pub reached: Ipv4Addr,
    /// Over what it asks: GETADDR is answered for this transport.
    pub transport: Transport,
    /// Seconds since 1970.
    pub seconds: u32,
}

/// What a question is answered with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// These results.
    Results(Arc<[u8]>),
    /// This rejection.
    Refused(Refusal),
    /// Nothing.
    Silence,
}

/// The table.
#[derive(Clone, Debug)]
pub struct Mapper {
    capacity: usize,
    table: Vec<Registration>,
}

impl Mapper {
    /// An empty table with room for so many registrations.
    pub const fn new(capacity: usize) -> Self {
        Self { capacity, table: Vec::new() }
    }

    /// What a server has to take in for it: versions 2, 3 and 4.
    pub fn services() -> [Service; 3] {
        let service = |version, last| Service {
            program: portmap::PROGRAM,
            version,
            procedures: (1..=last).collect(),
            wants_system: false,
        };
        [service(2, portmap::PROC_CALLIT), service(3, 8), service(4, 12)]
    }

    /// Answers a question.
    pub fn answer(&mut self, version: u32, procedure: u32, arguments: &[u8], caller: &Caller) -> Answer {
        let answer = match version {
            2 => self.answer_mapping(procedure, arguments, caller),
            3 | 4 => self.answer_entry(version, procedure, arguments, caller),
            _ => return Answer::Refused(Refusal::ProgramMismatch { low: 2, high: 4 }),
        };
        answer.unwrap_or(Answer::Refused(Refusal::GarbageArguments))
    }

    /// Says where a program is; false if it is known already, or there is no room.
    pub fn set(&mut self, registration: Registration) -> bool {
        let known = self.table.iter().any(|each| {
            (each.program, each.version, &each.netid)
                == (registration.program, registration.version, &registration.netid)
        });
        if known || self.table.len() >= self.capacity {
            return false;
        }
        self.table.push(registration);
        true
    }

    /// Takes a program back, over one transport or, with an empty name, all; whether any was there that
    /// this owner may take back.
    pub fn unset(&mut self, program: u32, version: u32, netid: &str, owner: &str) -> bool {
        let before = self.table.len();
        self.table.retain(|each| {
            (each.program, each.version) != (program, version)
                || !(netid.is_empty() || each.netid == netid)
                || !(owner == SUPERUSER || each.owner == owner)
        });
        self.table.len() < before
    }

    /// Where a program is over a transport: in this version or, unless `exact`, in another, so that its
    /// server can say which there are.
    pub fn find(&self, program: u32, version: u32, netid: &str, exact: bool) -> Option<&Registration> {
        let mut found = self.table.iter().filter(|each| each.program == program && each.netid == netid);
        found.clone().find(|each| each.version == version).or_else(|| found.next().filter(|_| !exact))
    }

    /// All, in the order in which they were set.
    pub fn all(&self) -> &[Registration] {
        &self.table
    }

    fn answer_mapping(
        &mut self,
        procedure: u32,
        arguments: &[u8],
        caller: &Caller,
    ) -> Result<Answer, DecodeError> {
        let mapping = || whole(Mapping::parse(arguments)?);
        Ok(match procedure {
            portmap::PROC_SET => {
                let mapping = mapping()?;
                let registration = netid_of(mapping.transport).zip(u16::try_from(mapping.port).ok());
                flag(
                    caller.local
                        && registration.is_some_and(|(netid, port)| {
                            let any = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, port);
                            self.set(Registration {
                                program: mapping.program,
                                version: mapping.version,
                                netid: netid.into(),
                                address: format!("{}", UniversalAddress(any)),
                                owner: caller.owner.clone(),
                            })
                        }),
                )
            }
            portmap::PROC_UNSET => {
                let mapping = mapping()?;
                flag(caller.local && self.unset(mapping.program, mapping.version, "", &caller.owner))
            }
            portmap::PROC_GETPORT => {
                let mapping = mapping()?;
                // Choice: as `rpcbind` does, another version's port rather than none.
                let found = netid_of(mapping.transport)
                    .and_then(|netid| self.find(mapping.program, mapping.version, netid, false))
                    .and_then(Registration::mapping);
                word(found.map_or(0, |found| found.port))
            }
            portmap::PROC_DUMP => {
                nothing(arguments)?;
                list(self.table.iter().filter_map(Registration::mapping), 16, |each, room| {
                    each.emit(room).expect("16 octets");
                })
            }
            portmap::PROC_CALLIT => Answer::Silence,
            _ => Answer::Refused(Refusal::ProcedureUnavailable),
        })
    }

    fn answer_entry(
        &mut self,
        version: u32,
        procedure: u32,
        arguments: &[u8],
        caller: &Caller,
    ) -> Result<Answer, DecodeError> {
        let entry = || whole(Entry::parse(arguments)?);
        Ok(match (version, procedure) {
            (_, question::SET) => {
                let registration = Registration::of(&entry()?);
                let known = |each: &Registration| !each.netid.is_empty() && !each.address.is_empty();
                // §2.2.1: the owner that the caller gives is not believed.
                flag(
                    caller.local
                        && registration.filter(known).is_some_and(|each| {
                            self.set(Registration { owner: caller.owner.clone(), ..each })
                        }),
                )
            }
            (_, question::UNSET) => {
                let each = Registration::of(&entry()?);
                flag(
                    caller.local
                        && each.is_some_and(|each| {
                            self.unset(each.program, each.version, &each.netid, &caller.owner)
                        }),
                )
            }
            (_, question::GETADDR) | (4, question::GETVERSADDR) => {
                // §2.2.1: the transport is that of the question; r_netid is not looked at.
                let (each, netid) = (entry()?, netid_of(caller.transport));
                let exact = procedure == question::GETVERSADDR;
                let found = netid.and_then(|netid| self.find(each.program, each.version, netid, exact));
                string(&found.map_or(String::new(), |found| reached(&found.address, caller.reached)))
            }
            (_, question::DUMP) => {
                nothing(arguments)?;
                let longest = self.table.iter().map(entry_octets).max().unwrap_or(0);
                list(self.table.iter(), longest, |each, room| {
                    each.entry().emit(room).expect("it was read as one");
                })
            }
            (_, question::BCAST) => Answer::Silence,
            (_, question::GETTIME) => {
                nothing(arguments)?;
                word(caller.seconds)
            }
            _ => Answer::Refused(Refusal::ProcedureUnavailable),
        })
    }
}

/// The name of a transport of version 2.
pub const fn netid_of(transport: Transport) -> Option<&'static str> {
    match transport {
        Transport::TCP => Some("tcp"),
        Transport::UDP => Some("udp"),
        _ => None,
    }
}

fn transport_of(netid: &str) -> Option<Transport> {
    [Transport::TCP, Transport::UDP].into_iter().find(|&each| netid_of(each) == Some(netid))
}

/// The address as a caller can use it: the unspecified one is that by which it reached us.
fn reached(address: &str, host: Ipv4Addr) -> String {
    match UniversalAddress::parse(address.as_bytes()) {
        Ok(UniversalAddress(any)) if any.ip().is_unspecified() => {
            format!("{}", UniversalAddress(SocketAddrV4::new(host, any.port())))
        }
        _ => address.into(),
    }
}

fn whole<T>((value, rest): (T, &[u8])) -> Result<T, DecodeError> {
    nothing(rest).map(|()| value)
}

fn nothing(octets: &[u8]) -> Result<(), DecodeError> {
    Reader::new("port mapper arguments", octets).end()
}

fn word(word: u32) -> Answer {
    Answer::Results(Arc::from(word.to_be_bytes()))
}

fn flag(flag: bool) -> Answer {
    word(flag.into())
}

fn string(text: &str) -> Answer {
    let mut octets = (text.len() as u32).to_be_bytes().to_vec();
    octets.extend(text.as_bytes());
    octets.resize(4 + padded(text.len()), 0);
    Answer::Results(octets.into())
}

fn entry_octets(each: &Registration) -> usize {
    let string = |text: &str| 4 + padded(text.len());
    8 + string(&each.netid) + string(&each.address) + string(&each.owner)
}

/// A list (RFC 4506 §4.19): each behind a 1, and a 0 behind the last.
fn list<T: Octets>(each: impl Iterator<Item = T>, longest: usize, emit: impl Fn(&T, &mut [u8])) -> Answer {
    let mut octets = Vec::new();
    let mut room = vec![0; longest];
    for item in each {
        let length = item.octets();
        octets.extend(1_u32.to_be_bytes());
        emit(&item, &mut room[..length]);
        octets.extend(&room[..length]);
    }
    octets.extend(0_u32.to_be_bytes());
    Answer::Results(octets.into())
}

trait Octets {
    fn octets(&self) -> usize;
}

impl Octets for Mapping {
    fn octets(&self) -> usize {
        16
    }
}

impl Octets for &Registration {
    fn octets(&self) -> usize {
        entry_octets(self)
    }
}

/// The owner that may unset what others have set, as `rpcbind` names it.
pub const SUPERUSER: &str = "superuser";
/// The owner of what came over a network transport, as `rpcbind` names it.
pub const UNKNOWN: &str = "unknown";

#[cfg(test)]
mod tests;
