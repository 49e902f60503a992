//! Calls and replies as machines see them, and as octets.

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use wiretwin_units::Bytes;
use wiretwin_wire::rpc::{Accepted, Auth, Body as HeadBody, Denied, MAX_HEAD_OCTETS, Repr, System};
use wiretwin_wire::{DecodeError, EmitError, Fault};

use super::{Body, Target};

/// Who calls, as it goes on the wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credential {
    flavor: u32,
    body: Vec<u8>,
}

impl Credential {
    /// AUTH_NONE: nobody says who calls.
    pub const NONE: Self = Self { flavor: 0, body: Vec::new() };

    /// AUTH_SYS: a user of a host, as the caller says.
    ///
    /// # Errors
    /// [`EmitError`] for a host's name of more than 255 octets.
    pub fn system(who: &System<'_>) -> Result<Self, EmitError> {
        let mut body = vec![0; Auth::MAX_BODY_OCTETS];
        let end = who.emit(&mut body)?;
        body.truncate(end);
        Ok(Self { flavor: Auth::SYSTEM, body })
    }

    /// The flavor: 0 AUTH_NONE, 1 AUTH_SYS.
    pub const fn flavor(&self) -> u32 {
        self.flavor
    }

    /// Who calls; `None` unless the flavor is AUTH_SYS.
    ///
    /// # Errors
    /// [`DecodeError`] if the body is not of that flavor.
    pub fn who(&self) -> Option<Result<System<'_>, DecodeError>> {
        (self.flavor == Auth::SYSTEM).then(|| System::parse(&self.body))
    }

    fn auth(&self) -> Auth<'_> {
        Auth { flavor: self.flavor, body: &self.body }
    }
}

/// Why authentication failed (RFC 5531 §9, `auth_stat`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuthStatus(pub u32);

impl AuthStatus {
    /// AUTH_BADCRED: the credential is not of its form.
    pub const BAD_CREDENTIAL: Self = Self(1);
    /// AUTH_REJECTEDCRED: a flavor, or a session, that is not taken.
    pub const REJECTED_CREDENTIAL: Self = Self(2);
    /// AUTH_BADVERF: the verifier is not of its form.
    pub const BAD_VERIFIER: Self = Self(3);
    /// AUTH_REJECTEDVERF: the verifier has expired.
    pub const REJECTED_VERIFIER: Self = Self(4);
    /// AUTH_TOOWEAK: the program wants to know who calls.
    pub const TOO_WEAK: Self = Self(5);
    /// AUTH_INVALIDRESP: the verifier of the reply is not of its form.
    pub const INVALID_RESPONSE: Self = Self(6);
    /// AUTH_FAILED.
    pub const FAILED: Self = Self(7);

    /// The name that the specification gives it.
    pub const fn name(self) -> &'static str {
        match self.0 {
            0 => "AUTH_OK",
            1 => "AUTH_BADCRED",
            2 => "AUTH_REJECTEDCRED",
            3 => "AUTH_BADVERF",
            4 => "AUTH_REJECTEDVERF",
            5 => "AUTH_TOOWEAK",
            6 => "AUTH_INVALIDRESP",
            7 => "AUTH_FAILED",
            _ => "AUTH_STAT",
        }
    }
}

/// Why a server did not carry out a call: what a reply says instead of results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// PROG_UNAVAIL.
    ProgramUnavailable,
    /// PROG_MISMATCH: the program is there in these versions.
    ProgramMismatch {
        /// The lowest.
        low: u32,
        /// The highest.
        high: u32,
    },
    /// PROC_UNAVAIL.
    ProcedureUnavailable,
    /// GARBAGE_ARGS: the server cannot read the arguments.
    GarbageArguments,
    /// SYSTEM_ERR.
    SystemError,
    /// RPC_MISMATCH: the protocol in these versions.
    RpcMismatch {
        /// The lowest.
        low: u32,
        /// The highest.
        high: u32,
    },
    /// AUTH_ERROR.
    Authentication(AuthStatus),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::ProgramUnavailable => f.write_str("PROG_UNAVAIL: the server has no such program"),
            Self::ProgramMismatch { low, high } => {
                write!(f, "PROG_MISMATCH: the server has versions {low} to {high}")
            }
            Self::ProcedureUnavailable => f.write_str("PROC_UNAVAIL: the program has no such procedure"),
            Self::GarbageArguments => f.write_str("GARBAGE_ARGS: the server cannot read the arguments"),
            Self::SystemError => f.write_str("SYSTEM_ERR: the server failed"),
            Self::RpcMismatch { low, high } => {
                write!(f, "RPC_MISMATCH: the server speaks versions {low} to {high} of the protocol")
            }
            Self::Authentication(status) => write!(f, "AUTH_ERROR {}: {}", status.0, status.name()),
        }
    }
}

impl core::error::Error for Refusal {}

/// A message: a head whose octets are known, and what follows it.
pub trait Message {
    /// What follows the head.
    type Body: Body;

    /// The octets of the head.
    fn head(&self) -> Vec<u8>;

    /// What follows it.
    fn body(&self) -> Option<&Self::Body>;

    /// Octets of all.
    fn length(&self) -> Bytes {
        let body = self.body().map_or(0, |body| body.length().get());
        Bytes::new(self.head().len() as u64 + body)
    }

    /// The octets of all.
    fn octets(&self) -> Vec<u8>
    where
        Self::Body: AsRef<[u8]>,
    {
        let mut octets = self.head();
        octets.extend_from_slice(self.body().map_or(&[], AsRef::as_ref));
        octets
    }
}

/// A call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call<B> {
    /// Chosen by the caller, repeated in the reply.
    pub xid: u32,
    /// What is called.
    pub target: Target,
    /// Who calls.
    pub credential: Credential,
    /// What it is called with.
    pub arguments: B,
}

impl<B: Body> Message for Call<B> {
    type Body = B;

    fn head(&self) -> Vec<u8> {
        let Target { program, version, procedure } = self.target;
        let (credential, verifier) = (self.credential.auth(), Auth::NONE);
        emitted(Repr {
            xid: self.xid,
            body: HeadBody::Call { program, version, procedure, credential, verifier },
        })
    }

    fn body(&self) -> Option<&B> {
        Some(&self.arguments)
    }
}

/// A reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply<B> {
    /// That of the call.
    pub xid: u32,
    /// The results, or why there are none.
    pub result: Result<B, Refusal>,
}

impl<B: Body> Message for Reply<B> {
    type Body = B;

    fn head(&self) -> Vec<u8> {
        let accepted = |status| HeadBody::Accepted { verifier: Auth::NONE, status };
        let body = match self.result {
            Ok(_) => accepted(Accepted::Success),
            Err(Refusal::ProgramUnavailable) => accepted(Accepted::ProgramUnavailable),
            Err(Refusal::ProgramMismatch { low, high }) => accepted(Accepted::ProgramMismatch { low, high }),
            Err(Refusal::ProcedureUnavailable) => accepted(Accepted::ProcedureUnavailable),
            Err(Refusal::GarbageArguments) => accepted(Accepted::GarbageArguments),
            Err(Refusal::SystemError) => accepted(Accepted::SystemError),
            Err(Refusal::RpcMismatch { low, high }) => HeadBody::Denied(Denied::RpcMismatch { low, high }),
            Err(Refusal::Authentication(status)) => HeadBody::Denied(Denied::AuthError(status.0)),
        };
        emitted(Repr { xid: self.xid, body })
    }

    fn body(&self) -> Option<&B> {
        self.result.as_ref().ok()
    }
}

fn emitted(repr: Repr<'_>) -> Vec<u8> {
    let mut octets = vec![0; MAX_HEAD_OCTETS];
    let end = repr.emit(&mut octets).expect("a credential was checked when it was made or read");
    octets.truncate(end);
    octets
}

/// What octets from a peer turn out to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Incoming<B> {
    /// A call.
    Call(Call<B>),
    /// A reply.
    Reply(Reply<B>),
    /// A call that can be answered, but not read: with this rejection.
    Unreadable {
        /// That of the call.
        xid: u32,
        /// The answer to it.
        refusal: Refusal,
    },
    /// Neither, and there is no one to tell.
    Garbage(DecodeError),
}

impl Incoming<Arc<[u8]>> {
    /// Reads a datagram or a record.
    pub fn parse(octets: &[u8]) -> Self {
        match Repr::parse(octets) {
            Ok((repr, rest)) => Self::of(&repr, rest),
            Err(error) => Self::unreadable(octets, error),
        }
    }

    fn of(repr: &Repr<'_>, rest: &[u8]) -> Self {
        let xid = repr.xid;
        let result = match repr.body {
            HeadBody::Call { program, version, procedure, credential, .. } => {
                let target = Target { program, version, procedure };
                let credential = Credential { flavor: credential.flavor, body: credential.body.to_vec() };
                return Self::Call(Call { xid, target, credential, arguments: rest.into() });
            }
            HeadBody::Accepted { status, .. } => match status {
                Accepted::Success => Ok(rest.into()),
                Accepted::ProgramUnavailable => Err(Refusal::ProgramUnavailable),
                Accepted::ProgramMismatch { low, high } => Err(Refusal::ProgramMismatch { low, high }),
                Accepted::ProcedureUnavailable => Err(Refusal::ProcedureUnavailable),
                Accepted::GarbageArguments => Err(Refusal::GarbageArguments),
                Accepted::SystemError => Err(Refusal::SystemError),
            },
            HeadBody::Denied(Denied::RpcMismatch { low, high }) => Err(Refusal::RpcMismatch { low, high }),
            HeadBody::Denied(Denied::AuthError(status)) => Err(Refusal::Authentication(AuthStatus(status))),
        };
        Self::Reply(Reply { xid, result })
    }

    fn unreadable(octets: &[u8], error: DecodeError) -> Self {
        let Some(xid) = octets.first_chunk().map(|xid| u32::from_be_bytes(*xid)) else {
            return Self::Garbage(error);
        };
        let call = octets.get(4..8) == Some(&[0; 4]);
        let refusal = match (error.field, error.fault) {
            // RFC 5531 §9: another version of the protocol is answered with those that there are.
            ("rpcvers", Fault::Value { .. }) => Refusal::RpcMismatch { low: 2, high: 2 },
            // Choice: more octets than the specification allows are a bad credential, or verifier.
            ("cred", Fault::Value { .. }) if call => Refusal::Authentication(AuthStatus::BAD_CREDENTIAL),
            ("verf", Fault::Value { .. }) if call => Refusal::Authentication(AuthStatus::BAD_VERIFIER),
            _ => return Self::Garbage(error),
        };
        Self::Unreadable { xid, refusal }
    }
}

/// Reads arbitrary octets as a message and writes it; the fuzz target is this function.
///
/// # Panics
/// If what was read, written and read again is not the same: a bug here.
#[doc(hidden)]
pub fn round_trip(octets: &[u8]) {
    let read = Incoming::parse(octets);
    let again = match &read {
        Incoming::Call(call) => call.octets(),
        Incoming::Reply(reply) => reply.octets(),
        Incoming::Unreadable { xid, refusal } => {
            Reply::<Arc<[u8]>> { xid: *xid, result: Err(*refusal) }.octets()
        }
        Incoming::Garbage(_) => return,
    };
    match (read, Incoming::parse(&again)) {
        (Incoming::Unreadable { xid, refusal }, Incoming::Reply(reply)) => {
            assert_eq!(reply, Reply { xid, result: Err(refusal) });
        }
        // A reply that refuses has nothing behind its head; what a peer put there is gone.
        (read, again) => assert_eq!(read, again),
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use proptest::prelude::*;

    use super::*;

    fn words(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_be_bytes()).collect()
    }

    #[test]
    fn a_call_and_its_replies_are_the_octets_of_the_specification() {
        let call = Call {
            xid: 1,
            target: Target { program: 100_000, version: 2, procedure: 0 },
            credential: Credential::NONE,
            arguments: Arc::from([]),
        };
        assert_eq!(call.octets(), words(&[1, 0, 2, 100_000, 2, 0, 0, 0, 0, 0]));
        assert_eq!(Incoming::parse(&call.octets()), Incoming::Call(call));
        for (refusal, rest, said) in [
            (Refusal::ProgramUnavailable, &[0, 0, 0, 1][..], "PROG_UNAVAIL: the server has no such program"),
            (
                Refusal::ProgramMismatch { low: 2, high: 4 },
                &[0, 0, 0, 2, 2, 4],
                "PROG_MISMATCH: the server has versions 2 to 4",
            ),
            (Refusal::ProcedureUnavailable, &[0, 0, 0, 3], "PROC_UNAVAIL: the program has no such procedure"),
            (Refusal::GarbageArguments, &[0, 0, 0, 4], "GARBAGE_ARGS: the server cannot read the arguments"),
            (Refusal::SystemError, &[0, 0, 0, 5], "SYSTEM_ERR: the server failed"),
            (
                Refusal::RpcMismatch { low: 2, high: 2 },
                &[1, 0, 2, 2],
                "RPC_MISMATCH: the server speaks versions 2 to 2 of the protocol",
            ),
            (Refusal::Authentication(AuthStatus::TOO_WEAK), &[1, 1, 5], "AUTH_ERROR 5: AUTH_TOOWEAK"),
        ] {
            let reply = Reply::<Arc<[u8]>> { xid: 9, result: Err(refusal) };
            assert_eq!(reply.octets(), words(&[&[9, 1], rest].concat()));
            assert_eq!(Incoming::parse(&reply.octets()), Incoming::Reply(reply));
            assert_eq!(refusal.to_string(), said);
        }
    }

    #[test]
    fn a_caller_of_auth_sys_says_who_it_is() {
        let who = System::new(7, b"spark", 100, 10, &[20]).expect("one more group");
        let credential = Credential::system(&who).expect("a short name");
        assert_eq!((credential.flavor(), credential.who()), (1, Some(Ok(who))));
        assert_eq!(Credential::NONE.who(), None);
        let long = System::new(7, &[b'x'; 256], 0, 0, &[]).expect("no more groups");
        assert_eq!(Credential::system(&long).expect_err("256 octets").field, "machinename");
    }

    #[test]
    fn what_cannot_be_read_is_answered_where_the_specification_has_an_answer() {
        let rpc = Refusal::RpcMismatch { low: 2, high: 2 };
        let credential = Refusal::Authentication(AuthStatus::BAD_CREDENTIAL);
        let verifier = Refusal::Authentication(AuthStatus::BAD_VERIFIER);
        for (octets, refusal) in [
            (words(&[5, 0, 3, 1, 1, 1]), rpc),
            (words(&[5, 0, 2, 1, 1, 1, 0, 401]), credential),
            (words(&[5, 0, 2, 1, 1, 1, 0, 0, 0, 401]), verifier),
        ] {
            assert_eq!(Incoming::parse(&octets), Incoming::Unreadable { xid: 5, refusal });
        }
        for octets in [words(&[5, 0, 2, 1]), words(&[5, 2]), words(&[5, 1, 0, 0, 401]), b"abc".to_vec()] {
            assert!(matches!(Incoming::parse(&octets), Incoming::Garbage(_)), "{octets:?}");
        }
    }

    proptest! {
        #[test]
        fn arbitrary_octets_round_trip(kind in 0u32..2, rest in prop::collection::vec(0u32..7, 0..14)) {
            round_trip(&words(&[&[3, kind], &rest[..]].concat()));
        }
    }
}
