//! What a rank does, operation by operation, as a recorded run or a schedule has it.

use std::path::Path;

use wiretwin_msg::protocol::Mode;

/// Takes what one rank does, in order.
///
/// Requests are numbered by the reader, from 1, each once.
pub trait Script {
    /// Appends a computation that takes `ps` picoseconds.
    fn compute(&mut self, ps: u64);
    /// Appends the beginning of a call of MPI, by its name.
    fn enter(&mut self, call: &str);
    /// Appends the end of the call that began last.
    fn exit(&mut self);
    /// Appends a send, which makes the request numbered `request`.
    fn send(&mut self, message: Message, mode: Mode, request: u64);
    /// Appends a receive, which makes the request numbered `request`.
    fn recv(&mut self, receive: Receive, request: u64);
    /// Appends a wait for all of these requests.
    fn wait(&mut self, requests: &[u64]);
    /// Appends the beginning of messages that go on in the background, round by round, in this and in all later waits:
    /// a round begins when the one before is complete. Backgrounds are numbered from 0.
    fn begin(&mut self, rounds: &[Vec<Transfer>]);
    /// Appends a wait for all messages of a background.
    fn wait_background(&mut self, number: u64);
    /// Appends the end of the program.
    fn finish(&mut self);
}

/// A message as its sender names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// The context of its communicator.
    pub context: u32,
    /// The rank that receives it.
    pub to: u32,
    /// Its tag, which the receive has to name or leave open.
    pub tag: u32,
    /// Its length, in bytes.
    pub bytes: u64,
}

/// What a receive accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receive {
    /// The context of its communicator.
    pub context: u32,
    /// The rank that sends; any rank if absent.
    pub source: Option<u32>,
    /// The tag; any tag if absent.
    pub tag: Option<u32>,
    /// The longest message that it takes, in bytes.
    pub capacity: u64,
}

/// One message of a round, as one of its ends names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transfer {
    /// It is sent, in the standard mode.
    Send(Message),
    /// It is received.
    Recv(Receive),
}

/// Why a file cannot be read as what it should be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rejected {
    /// The file or folder.
    pub file: String,
    /// The place in it.
    pub key: Option<String>,
    /// What stands there.
    pub value: Option<String>,
    /// What is wrong, where that is not the value.
    pub reason: Option<String>,
    /// What would be right.
    pub allowed: Option<String>,
}

impl Rejected {
    /// A file that is wrong as a whole.
    #[must_use]
    pub fn whole(file: &Path, reason: impl Into<String>) -> Self {
        Self { file: file.display().to_string(), reason: Some(reason.into()), ..Self::default() }
    }

    /// A value at a place of a file.
    #[must_use]
    pub fn at(file: &Path, key: String, value: impl Into<String>, allowed: impl Into<String>) -> Self {
        Self {
            file: file.display().to_string(),
            key: Some(key),
            value: Some(value.into()),
            allowed: Some(allowed.into()),
            ..Self::default()
        }
    }

    /// The same, and what would be right.
    #[must_use]
    pub fn allowing(mut self, allowed: impl Into<String>) -> Self {
        self.allowed = Some(allowed.into());
        self
    }
}
