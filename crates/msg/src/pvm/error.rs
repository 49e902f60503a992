//! The errors of PVM, with its names and numbers.

use core::fmt;

macro_rules! errors {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $text:literal;)*) => {
        /// Why a call of the library fails: the codes of `pvm3.h`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum PvmError {
            $($(#[$doc])* $name = $code,)*
        }

        impl PvmError {
            /// All there are.
            pub const ALL: [Self; [$($code),*].len()] = [$(Self::$name),*];

            /// Its name in `pvm3.h`, its number, and what the manual says of it.
            pub const fn text(self) -> &'static str {
                match self {
                    $(Self::$name => concat!("Pvm", stringify!($name), " (", $code, "): ", $text),)*
                }
            }
        }
    };
}

errors! {
    /// A parameter that may not be.
    BadParam = -2, "bad parameter";
    /// A count that does not match.
    Mismatch = -3, "parameter mismatch";
    /// A value that the encoding has no room for.
    Overflow = -4, "value too large";
    /// The buffer ends before the item does.
    NoData = -5, "end of buffer";
    /// No such host.
    NoHost = -6, "no such host";
    /// No such program.
    NoFile = -7, "no such file";
    /// Not allowed.
    Denied = -8, "permission denied";
    /// No memory.
    NoMem = -10, "malloc failed";
    /// A message that cannot be decoded here.
    BadMsg = -12, "can't decode message";
    /// The daemon does not answer.
    SysErr = -14, "can't contact local daemon";
    /// No buffer is active.
    NoBuf = -15, "no current buffer";
    /// No such buffer.
    NoSuchBuf = -16, "no such buffer";
    /// A group without a name.
    NullGroup = -17, "null group name";
    /// The task is in the group already.
    DupGroup = -18, "already in group";
    /// No such group.
    NoGroup = -19, "no such group";
    /// The task is not in the group.
    NotInGroup = -20, "not in group";
    /// No such instance of the group.
    NoInst = -21, "no such instance";
    /// A host failed.
    HostFail = -22, "host failed";
    /// The task was not spawned.
    NoParent = -23, "no parent task";
    /// Not implemented.
    NotImpl = -24, "not implemented";
    /// An error of a daemon.
    DSysErr = -25, "pvmd system error";
    /// Two versions that do not go together.
    BadVersion = -26, "version mismatch";
    /// Out of resources.
    OutOfRes = -27, "out of resources";
    /// The host is there already.
    DupHost = -28, "duplicate host";
    /// The daemon cannot be started.
    CantStart = -29, "can't start pvmd";
    /// Under way already.
    Already = -30, "already in progress";
    /// No such task.
    NoTask = -31, "no such task";
    /// Nothing of that name.
    NotFound = -32, "not found";
    /// It exists already.
    Exists = -33, "already exists";
}

impl PvmError {
    /// Its number, negative.
    pub const fn code(self) -> i32 {
        self as i32
    }

    /// The error of a number; `None` where there is none.
    pub fn from_code(code: i32) -> Option<Self> {
        Self::ALL.into_iter().find(|error| error.code() == code)
    }

    /// The error that an answer of a daemon or server names; [`PvmError::DSysErr`] for a number that
    /// there is not.
    pub(crate) fn of_answer(code: i32) -> Self {
        Self::from_code(code).unwrap_or(Self::DSysErr)
    }
}

impl fmt::Display for PvmError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl core::error::Error for PvmError {}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn every_error_has_its_number_and_says_its_name() {
        for error in PvmError::ALL {
            assert_eq!(PvmError::from_code(error.code()), Some(error));
        }
        assert_eq!(PvmError::from_code(0), None);
        assert_eq!(PvmError::of_answer(-999), PvmError::DSysErr);
        assert_eq!(PvmError::NoData.to_string(), "PvmNoData (-5): end of buffer");
    }
}
