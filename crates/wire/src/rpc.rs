//! ONC remote procedure calls, version 2: the head of a call and of a reply, and record marks.
//!
//! RFC 5531 §9 (messages), §8 (authentication), §11 (record marking). Arguments and results follow the
//! head and are the program's own; [`portmap`] has those of the one program that everyone needs. Left
//! out: flavors other than none and system, whose bodies are carried.

use crate::octets::u32_at;
use crate::xdr::{Reader, Writer};
use crate::{DecodeError, EmitError};

pub mod portmap;

/// A credential or a verifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Auth<'a> {
    /// What the body is: 0 nothing, 1 [`System`], 2 short, 3 DH, 6 RPCSEC_GSS.
    pub flavor: u32,
    /// At most 400 octets.
    pub body: &'a [u8],
}

impl Auth<'_> {
    /// AUTH_NONE.
    pub const NONE: Auth<'static> = Auth { flavor: 0, body: &[] };
    /// The flavor of [`System`].
    pub const SYSTEM: u32 = 1;
    /// Octets of the longest body.
    pub const MAX_BODY_OCTETS: usize = 400;
}

/// The body of AUTH_SYS (RFC 5531 appendix A), formerly AUTH_UNIX.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct System<'a> {
    /// Any number.
    pub stamp: u32,
    /// The caller's host, at most 255 octets.
    pub machine: &'a [u8],
    /// The caller's user.
    pub uid: u32,
    /// The caller's group.
    pub gid: u32,
    gids: [u32; MAX_GIDS],
    gid_count: u8,
}

impl<'a> System<'a> {
    /// Who calls; `None` with more than 16 groups.
    pub fn new(stamp: u32, machine: &'a [u8], uid: u32, gid: u32, more: &[u32]) -> Option<Self> {
        let mut gids = [0; MAX_GIDS];
        gids.get_mut(..more.len())?.copy_from_slice(more);
        Some(Self { stamp, machine, uid, gid, gids, gid_count: more.len() as u8 })
    }

    /// The caller's other groups.
    pub fn gids(&self) -> &[u32] {
        &self.gids[..usize::from(self.gid_count)]
    }

    /// Reads the body of an [`Auth`] of this flavor.
    ///
    /// # Errors
    /// [`DecodeError`] for a name or groups that are too many, or a body that does not end with them.
    pub fn parse(body: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new("RPC AUTH_SYS", body);
        let stamp = reader.u32("stamp")?;
        let machine = reader.counted("machinename", 255, "0 to 255")?;
        let (uid, gid, count) = (reader.u32("uid")?, reader.u32("gid")?, reader.u32("gids")?);
        if count as usize > MAX_GIDS {
            return Err(reader.value("gids", 4, count, "0 to 16"));
        }
        let mut gids = [0; MAX_GIDS];
        for place in &mut gids[..count as usize] {
            *place = reader.u32("gids")?;
        }
        reader.end()?;
        Ok(Self { stamp, machine, uid, gid, gids, gid_count: count as u8 })
    }

    /// Writes the body and returns its octets.
    ///
    /// # Errors
    /// [`EmitError`] for a longer name, or where there is no room.
    pub fn emit(&self, body: &mut [u8]) -> Result<usize, EmitError> {
        let mut writer = Writer::new("RPC AUTH_SYS", body);
        writer.u32("stamp", self.stamp)?;
        writer.counted("machinename", self.machine, 255, "0 to 255")?;
        writer.u32("uid", self.uid)?;
        writer.u32("gid", self.gid)?;
        writer.u32("gids", self.gid_count.into())?;
        self.gids().iter().try_for_each(|&gid| writer.u32("gids", gid))?;
        Ok(writer.position())
    }
}

/// What became of a call that was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accepted {
    /// SUCCESS: the results follow.
    Success,
    /// PROG_UNAVAIL: no such program here.
    ProgramUnavailable,
    /// PROG_MISMATCH: not in this version.
    ProgramMismatch {
        /// The lowest that there is.
        low: u32,
        /// The highest.
        high: u32,
    },
    /// PROC_UNAVAIL: no such procedure.
    ProcedureUnavailable,
    /// GARBAGE_ARGS: arguments that cannot be read.
    GarbageArguments,
    /// SYSTEM_ERR.
    SystemError,
}

/// Why a call was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denied {
    /// RPC_MISMATCH: another version of the protocol.
    RpcMismatch {
        /// The lowest that there is.
        low: u32,
        /// The highest.
        high: u32,
    },
    /// AUTH_ERROR, with `auth_stat`.
    AuthError(u32),
}

/// What the head of a message says behind its xid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body<'a> {
    /// The arguments follow.
    Call {
        /// Program number.
        program: u32,
        /// Its version.
        version: u32,
        /// Procedure, 0 does nothing.
        procedure: u32,
        /// Who calls.
        credential: Auth<'a>,
        /// What proves it.
        verifier: Auth<'a>,
    },
    /// The call was taken.
    Accepted {
        /// What proves who answers.
        verifier: Auth<'a>,
        /// What became of it.
        status: Accepted,
    },
    /// The call was not taken.
    Denied(Denied),
}

/// The head of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr<'a> {
    /// Chosen by the caller, repeated in the reply.
    pub xid: u32,
    /// The rest.
    pub body: Body<'a>,
}

impl<'a> Repr<'a> {
    /// A call without credential or verifier.
    pub const fn call(xid: u32, program: u32, version: u32, procedure: u32) -> Self {
        let (credential, verifier) = (Auth::NONE, Auth::NONE);
        Self { xid, body: Body::Call { program, version, procedure, credential, verifier } }
    }

    /// The head of results, without verifier.
    pub const fn success(xid: u32) -> Self {
        Self { xid, body: Body::Accepted { verifier: Auth::NONE, status: Accepted::Success } }
    }

    /// Reads the head of a message, and returns it with what follows.
    ///
    /// # Errors
    /// [`DecodeError`] where the octets end, for a number that a field does not have, and for more
    /// than 400 octets of authentication.
    pub fn parse(octets: &'a [u8]) -> Result<(Self, &'a [u8]), DecodeError> {
        let mut reader = Reader::new(FORMAT, octets);
        let xid = reader.u32("xid")?;
        let body = match reader.u32("mtype")? {
            CALL => {
                let version = reader.u32("rpcvers")?;
                if version != RPC_VERSION {
                    return Err(reader.value("rpcvers", 4, version, "2"));
                }
                Body::Call {
                    program: reader.u32("prog")?,
                    version: reader.u32("vers")?,
                    procedure: reader.u32("proc")?,
                    credential: auth(&mut reader, "cred")?,
                    verifier: auth(&mut reader, "verf")?,
                }
            }
            REPLY => match reader.u32("reply_stat")? {
                0 => {
                    let verifier = auth(&mut reader, "verf")?;
                    let status = match reader.u32("accept_stat")? {
                        0 => Accepted::Success,
                        1 => Accepted::ProgramUnavailable,
                        2 => Accepted::ProgramMismatch { low: reader.u32("low")?, high: reader.u32("high")? },
                        3 => Accepted::ProcedureUnavailable,
                        4 => Accepted::GarbageArguments,
                        5 => Accepted::SystemError,
                        other => return Err(reader.value("accept_stat", 4, other, "0 to 5")),
                    };
                    Body::Accepted { verifier, status }
                }
                1 => Body::Denied(match reader.u32("reject_stat")? {
                    0 => Denied::RpcMismatch { low: reader.u32("low")?, high: reader.u32("high")? },
                    1 => Denied::AuthError(reader.u32("auth_stat")?),
                    other => return Err(reader.value("reject_stat", 4, other, "0 or 1")),
                }),
                other => return Err(reader.value("reply_stat", 4, other, "0 or 1")),
            },
            other => return Err(reader.value("mtype", 4, other, "0 or 1")),
        };
        Ok((Self { xid, body }, reader.rest()))
    }

    /// Writes the head and returns its octets; the rest follows them.
    ///
    /// # Errors
    /// [`EmitError`] for more than 400 octets of authentication, or where there is no room.
    pub fn emit(&self, octets: &mut [u8]) -> Result<usize, EmitError> {
        let mut writer = Writer::new(FORMAT, octets);
        let put = |writer: &mut Writer<'_>, field, auth: &Auth<'_>| {
            writer.u32(field, auth.flavor)?;
            writer.counted(field, auth.body, Auth::MAX_BODY_OCTETS as u32, "0 to 400 octets")
        };
        writer.u32("xid", self.xid)?;
        match &self.body {
            Body::Call { program, version, procedure, credential, verifier } => {
                writer.u32("mtype", CALL)?;
                writer.u32("rpcvers", RPC_VERSION)?;
                writer.u32("prog", *program)?;
                writer.u32("vers", *version)?;
                writer.u32("proc", *procedure)?;
                put(&mut writer, "cred", credential)?;
                put(&mut writer, "verf", verifier)?;
            }
            Body::Accepted { verifier, status } => {
                writer.u32("mtype", REPLY)?;
                writer.u32("reply_stat", 0)?;
                put(&mut writer, "verf", verifier)?;
                let number = match status {
                    Accepted::Success => 0,
                    Accepted::ProgramUnavailable => 1,
                    Accepted::ProgramMismatch { .. } => 2,
                    Accepted::ProcedureUnavailable => 3,
                    Accepted::GarbageArguments => 4,
                    Accepted::SystemError => 5,
                };
                writer.u32("accept_stat", number)?;
                if let Accepted::ProgramMismatch { low, high } = status {
                    writer.u32("low", *low)?;
                    writer.u32("high", *high)?;
                }
            }
            Body::Denied(denied) => {
                writer.u32("mtype", REPLY)?;
                writer.u32("reply_stat", 1)?;
                match denied {
                    Denied::RpcMismatch { low, high } => {
                        writer.u32("reject_stat", 0)?;
                        writer.u32("low", *low)?;
                        writer.u32("high", *high)?;
                    }
                    Denied::AuthError(status) => {
                        writer.u32("reject_stat", 1)?;
                        writer.u32("auth_stat", *status)?;
                    }
                }
            }
        }
        Ok(writer.position())
    }
}

fn auth<'a>(reader: &mut Reader<'a>, field: &'static str) -> Result<Auth<'a>, DecodeError> {
    let flavor = reader.u32(field)?;
    let body = reader.counted(field, Auth::MAX_BODY_OCTETS as u32, "0 to 400 octets")?;
    Ok(Auth { flavor, body })
}

/// What stands before each fragment of a record on a byte stream (RFC 5531 §11).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordMark {
    last: bool,
    length: u32,
}

impl RecordMark {
    /// The mark of a fragment; `None` for 2^31 octets or more.
    pub const fn new(last: bool, length: u32) -> Option<Self> {
        if length >> 31 == 0 { Some(Self { last, length }) } else { None }
    }

    /// Whether the record ends with this fragment.
    pub const fn is_last(self) -> bool {
        self.last
    }

    /// Octets of the fragment. 0 is allowed in any.
    pub const fn length(self) -> u32 {
        self.length
    }

    /// Reads the mark that octets begin with; `None` below four octets: wait for more.
    pub fn parse(octets: &[u8]) -> Option<Self> {
        let word = u32_at(octets.get(..MARK_OCTETS)?, 0);
        Some(Self { last: word >> 31 == 1, length: word & 0x7FFF_FFFF })
    }

    /// The four octets.
    pub const fn octets(self) -> [u8; MARK_OCTETS] {
        ((self.last as u32) << 31 | self.length).to_be_bytes()
    }
}

/// Octets of a record mark.
pub const MARK_OCTETS: usize = 4;
/// Groups that AUTH_SYS has room for besides the first.
pub const MAX_GIDS: usize = 16;
/// Octets of the longest head: a call with the longest credential and verifier.
pub const MAX_HEAD_OCTETS: usize = 40 + 2 * Auth::MAX_BODY_OCTETS;

const FORMAT: &str = "RPC message";
const RPC_VERSION: u32 = 2;
const CALL: u32 = 0;
const REPLY: u32 = 1;

/// Reads arbitrary octets as a message and, if they are one, writes its head and compares. The fuzz
/// target and the property test below are this function.
///
/// # Panics
/// If a head that was read is not written back octet for octet: a bug here.
#[doc(hidden)]
pub fn round_trip(octets: &[u8]) {
    let Ok((repr, rest)) = Repr::parse(octets) else { return };
    let mut written = [0xEE; MAX_HEAD_OCTETS];
    let end = repr.emit(&mut written).expect("what was read can be written");
    assert_eq!(written[..end], octets[..octets.len() - rest.len()], "written back octet for octet");
    if let Body::Call { credential: Auth { flavor: Auth::SYSTEM, body }, .. } = repr.body {
        let Ok(system) = System::parse(body) else { return };
        let end = system.emit(&mut written).expect("what was read can be written");
        assert_eq!(written[..end], *body, "written back octet for octet");
    }
    portmap::round_trip(rest);
}

#[cfg(test)]
mod tests;
