//! Messages of the system: their tags and contexts, and how their bodies are written and read.
//!
//! | Class | Between |
//! |---|---|
//! | `TM` | a task and its daemon: a request, and an answer with the same tag |
//! | `DM` | two daemons: a request, and an answer with a tag of its own |
//! | `TC` | two tasks |
//! | `GS` | a task and the group server, in a context of their own |

use alloc::string::String;
use alloc::vec::Vec;

use super::{Body, Encoding, Message, PvmError, ReceiveBuffer, SendBuffer, Tid};

/// Tags.
pub mod tag {
    macro_rules! tags {
        ($base:literal: $($(#[$doc:meta])* $name:ident = $offset:literal;)*) => {
            $($(#[$doc])* pub const $name: u32 = $base + $offset;)*
        };
    }

    tags! { 0x8001_0001:
        /// A task connects.
        TM_CONNECT = 0;
        /// It has proved who it is.
        TM_CONN2 = 1;
        /// It ends.
        TM_EXIT = 2;
        /// Hosts are to leave.
        TM_DELHOST = 4;
        /// Which hosts there are.
        TM_CONFIG = 5;
        /// Whether a host is there.
        TM_MSTAT = 6;
        /// All ends.
        TM_HALT = 7;
        /// Tasks are to be started.
        TM_SPAWN = 9;
        /// Whether a task is there.
        TM_PSTAT = 10;
        /// A signal for a task.
        TM_SENDSIG = 11;
        /// Which tasks there are.
        TM_TASK = 12;
        /// Whom the next message to many is for.
        TM_MCA = 13;
        /// Word of an end is wanted.
        TM_NOTIFY = 14;
        /// The mailbox.
        TM_DB = 15;
    }

    tags! { 0x8002_0001:
        /// Start tasks.
        DM_EXEC = 2;
        /// The tasks that were started.
        DM_EXECACK = 3;
        /// A signal for a task.
        DM_SENDSIG = 4;
        /// Which tasks are there.
        DM_TASK = 10;
        /// These.
        DM_TASKACK = 11;
        /// Hosts are to leave.
        DM_DELHOST = 12;
        /// What came of it.
        DM_DELHOSTACK = 13;
        /// Nothing: to see whether a host is there.
        DM_NULL = 14;
        /// Whether a task or this daemon is there.
        DM_PSTAT = 16;
        /// Whether.
        DM_PSTATACK = 17;
        /// All ends.
        DM_HALT = 18;
        /// Whom a message to many is for.
        DM_MCA = 19;
        /// Word of an end is wanted.
        DM_NOTIFY = 20;
        /// That end.
        DM_NOTIFYACK = 21;
        /// The mailbox.
        DM_DB = 22;
        /// What is in it.
        DM_DBACK = 23;
        /// Hosts have left.
        DM_HTDEL = 26;
    }

    tags! { 0x8003_0001:
        /// A connection is wanted.
        TC_CONREQ = 0;
        /// Where it may be made, or that it may not.
        TC_CONACK = 1;
        /// A task with which there is a connection has ended.
        TC_TASKEXIT = 2;
        /// Whom a task was started with.
        TC_SIBLINGS = 11;
    }

    /// Join a group.
    pub const GS_JOIN: u32 = 1;
    /// Leave it.
    pub const GS_LEAVE: u32 = 2;
    /// A barrier.
    pub const GS_BARRIER: u32 = 3;
    /// Whom a broadcast is for.
    pub const GS_BCAST: u32 = 4;
    /// A task's instance.
    pub const GS_GETINST: u32 = 5;
    /// An instance's task.
    pub const GS_GETTID: u32 = 6;
    /// How many there are.
    pub const GS_GSIZE: u32 = 7;
    /// A member has ended: told by the daemon.
    pub const GS_DEADTID: u32 = 11;
}

/// The context of messages between tasks and daemons.
pub const CONTEXT_TM: u32 = 0x7_FFFE;
/// The context of messages of the system between tasks.
pub const CONTEXT_TC: u32 = 0x7_FFFF;
/// The context of groups.
pub const CONTEXT_GROUPS: u32 = 0x7_FFFC;
/// The highest tag of a user.
pub const MOST_TAG: u32 = 0x7FFF_FFFF;
/// Number of the protocol between a task and its daemon.
pub const TASK_PROTOCOL: i32 = 1318;
/// Word of a task's end is wanted (`PvmTaskExit`).
pub const TASK_EXIT: i32 = 1;
/// Word of a host's end is wanted (`PvmHostDelete`).
pub const HOST_DELETE: i32 = 2;
/// Operations of the mailbox: put, delete, get.
pub const DB_PUT: i32 = 1;
/// See [`DB_PUT`].
pub const DB_DELETE: i32 = 2;
/// See [`DB_PUT`].
pub const DB_GET: i32 = 3;

/// A body that is written.
#[derive(Debug)]
pub struct Put(SendBuffer<'static>);

impl Default for Put {
    fn default() -> Self {
        Self::new()
    }
}

impl Put {
    /// Nothing so far.
    pub const fn new() -> Self {
        Self(SendBuffer::new(Encoding::Default))
    }

    /// An integer.
    pub fn int(self, value: i32) -> Self {
        self.ints(&[value])
    }

    /// Integers.
    pub fn ints(mut self, values: &[i32]) -> Self {
        self.0.pack(values, values.len(), 1).expect("all of them, and XDR has room for any");
        self
    }

    /// A word.
    pub fn word(self, value: u32) -> Self {
        self.int(value as i32)
    }

    /// A task, daemon or host.
    pub fn tid(self, tid: Tid) -> Self {
        self.word(tid.0)
    }

    /// A string, without what a string cannot have: a zero and all that follows it.
    pub fn text(mut self, text: &str) -> Self {
        let text = text.split('\0').next().unwrap_or_default();
        self.0.pack_string(text).expect("no zero in it");
        self
    }

    /// Octets.
    pub fn octets(mut self, octets: &[u8]) -> Self {
        self.0.pack(octets, octets.len(), 1).expect("all of them");
        self
    }

    /// What was written.
    pub fn parts<B: Body>(self) -> Vec<B> {
        self.0.packed().parts
    }
}

/// A body that is read.
#[derive(Debug)]
pub struct Get(ReceiveBuffer);

impl Get {
    /// The body of a message.
    ///
    /// # Errors
    /// [`PvmError::BadMsg`] where it is a handle.
    pub fn new<B: Body>(message: &Message<B>) -> Result<Self, PvmError> {
        ReceiveBuffer::new(&message.packed()).map(Self).ok_or(PvmError::BadMsg)
    }

    /// An integer.
    ///
    /// # Errors
    /// As [`ReceiveBuffer::unpack`]; so for all.
    pub fn int(&mut self) -> Result<i32, PvmError> {
        let mut value = [0];
        self.0.unpack(&mut value, 1, 1)?;
        Ok(value[0])
    }

    /// A word.
    ///
    /// # Errors
    /// As [`Get::int`].
    pub fn word(&mut self) -> Result<u32, PvmError> {
        self.int().map(|value| value as u32)
    }

    /// A task, daemon or host.
    ///
    /// # Errors
    /// As [`Get::int`].
    pub fn tid(&mut self) -> Result<Tid, PvmError> {
        self.word().map(Tid)
    }

    /// A string.
    ///
    /// # Errors
    /// As [`ReceiveBuffer::unpack_string`].
    pub fn text(&mut self) -> Result<String, PvmError> {
        self.0.unpack_string()
    }

    /// So many things, each read by `one`. A count that the rest has no room for is no data.
    ///
    /// # Errors
    /// As [`Get::int`].
    pub fn list<T>(&mut self, one: impl Fn(&mut Self) -> Result<T, PvmError>) -> Result<Vec<T>, PvmError> {
        let count = usize::try_from(self.int()?).map_err(|_| PvmError::BadMsg)?;
        let mut list = Vec::new();
        for _ in 0..count {
            list.push(one(self)?);
        }
        Ok(list)
    }

    /// Octets behind their count.
    ///
    /// # Errors
    /// As [`Get::int`].
    pub fn sized(&mut self) -> Result<Vec<u8>, PvmError> {
        let count = usize::try_from(self.int()?).map_err(|_| PvmError::BadMsg)?;
        if count as u64 > self.0.left().get() {
            return Err(PvmError::NoData);
        }
        let mut octets = alloc::vec![0; count];
        self.0.unpack(&mut octets, count, 1)?;
        Ok(octets)
    }

    /// What is left.
    pub fn rest(&mut self) -> Vec<u8> {
        let mut octets = alloc::vec![0; self.0.left().get() as usize];
        let count = octets.len();
        self.0.unpack(&mut octets, count, 1).expect("as many as there are");
        octets
    }
}
