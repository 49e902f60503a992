//! What a process asks of its interface besides messages: groups, other processes, and who somebody is.

use alloc::string::String;

use wiretwin_units::Bytes;

/// One thing that an interface may or may not have. Where it has, it answers with a number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Control {
    /// To be in a group, which comes to be with its first member. The number: this rank's instance in it.
    Join {
        /// Its name.
        group: String,
    },
    /// To be in it no longer. The number: 0.
    Leave {
        /// Its name.
        group: String,
    },
    /// How many are in it: the number.
    Size {
        /// Its name.
        group: String,
    },
    /// To go on when so many of its members have asked for this. The number: so many.
    Barrier {
        /// Its name.
        group: String,
        /// How many.
        members: u32,
    },
    /// One message for all of its members but this one. The number: how many they are.
    Cast {
        /// Its name.
        group: String,
        /// The tag.
        tag: u32,
        /// The length of the message.
        bytes: Bytes,
    },
    /// Processes of a program. The number: how many were started.
    Spawn {
        /// The program.
        program: String,
        /// How many, 1 or more.
        count: u32,
    },
    /// That the circuit to a rank is cleared, on which all has come that was sent; the next message asks for
    /// another. The number: how many were cleared.
    HangUp {
        /// The rank.
        rank: u32,
    },
    /// That messages say whose they are from now on. The number: 0.
    Identify {
        /// The number of the user.
        user: u32,
    },
    /// Whose the last message was that came: the number of its user.
    Caller,
}

/// Why an interface without groups takes none of their calls.
const NO_GROUPS: &str = "groups of ranks";
/// Why one that starts no processes takes no such call.
const NO_SPAWN: &str = "the start of other processes";
/// Why one whose circuits are there for good clears none.
const NO_CALLS: &str = "circuits that processes set up and clear";
/// Why one whose messages do not say whose they are cannot tell.
const NO_USERS: &str = "messages that say whose they are";

impl Control {
    /// What an interface says that has nothing of the kind.
    #[must_use]
    pub const fn unsupported(&self) -> &'static str {
        match self {
            Self::Spawn { .. } => NO_SPAWN,
            Self::HangUp { .. } => NO_CALLS,
            Self::Identify { .. } | Self::Caller => NO_USERS,
            _ => NO_GROUPS,
        }
    }
}
