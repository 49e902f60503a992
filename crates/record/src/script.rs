//! What a rank does, operation by operation, as a recorded run or a schedule has it.

use std::path::Path;

use wiretwin_msg::protocol::Mode;

/// Takes what one rank does, in order.
///
/// Requests are numbered by the reader, from 1, each once.
pub trait Script {
    /// A computation of so many picoseconds.
    fn compute(&mut self, ps: u64);
    /// The beginning of a call.
    fn enter(&mut self, call: &str);
    /// The end of the call.
    fn exit(&mut self);
    /// A message to a rank, which `request` stands for.
    fn send(&mut self, message: Message, mode: Mode, request: u64);
    /// A receive, which `request` stands for.
    fn recv(&mut self, receive: Receive, request: u64);
    /// A wait for all of these.
    fn wait(&mut self, requests: &[u64]);
    /// The end of the program.
    fn finish(&mut self);
}

/// A message as its sender names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Of the communicator.
    pub context: u32,
    /// The receiver.
    pub to: u32,
    /// Its tag.
    pub tag: u32,
    /// Its length.
    pub bytes: u64,
}

/// What a receive accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receive {
    /// Of the communicator.
    pub context: u32,
    /// The sender, or any.
    pub source: Option<u32>,
    /// The tag, or any.
    pub tag: Option<u32>,
    /// The longest message that it takes.
    pub capacity: u64,
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
