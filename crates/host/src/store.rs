//! Messages that have come before anyone asked for them.

use wiretwin_prog::{Rank, Tag};

/// The messages, by number. A number is free again after [`Store::forget`].
#[derive(Debug, Default)]
pub(crate) struct Store {
    messages: Vec<Message>,
    free: Vec<usize>,
}

#[derive(Debug)]
struct Message {
    source: Rank,
    tag: Tag,
    bytes: Vec<u8>,
    complete: bool,
    /// Nobody will ask for it: forgotten as soon as it is complete.
    unwanted: bool,
}

impl Store {
    /// The number that [`Store::begin`] gives next.
    pub fn next_number(&self) -> usize {
        self.free.last().copied().unwrap_or(self.messages.len())
    }

    /// Room for a message that begins to arrive; its number.
    pub fn begin(&mut self, source: Rank, tag: Tag, length: usize) -> usize {
        let number = self.free.pop().unwrap_or_else(|| {
            self.messages.push(Message { source, tag, bytes: Vec::new(), complete: false, unwanted: false });
            self.messages.len() - 1
        });
        let message = &mut self.messages[number];
        (message.source, message.tag) = (source, tag);
        (message.complete, message.unwanted) = (false, false);
        message.bytes.clear();
        message.bytes.resize(length, 0);
        number
    }

    /// The message's bytes.
    pub fn bytes(&self, number: usize) -> &[u8] {
        &self.messages[number].bytes
    }

    /// The same, to be filled in.
    pub fn bytes_mut(&mut self, number: usize) -> &mut [u8] {
        &mut self.messages[number].bytes
    }

    /// All of it has come.
    pub fn complete(&mut self, number: usize) {
        self.messages[number].complete = true;
        if self.messages[number].unwanted {
            self.forget(number);
        }
    }

    pub fn is_complete(&self, number: usize) -> bool {
        self.messages[number].complete
    }

    pub fn source(&self, number: usize) -> Rank {
        self.messages[number].source
    }

    pub fn tag(&self, number: usize) -> Tag {
        self.messages[number].tag
    }

    /// Nobody asks for it any more.
    pub fn forget(&mut self, number: usize) {
        let message = &mut self.messages[number];
        if !message.complete {
            message.unwanted = true;
            return;
        }
        // A long message's memory is given back, a short one's is used again.
        message.bytes.clear();
        message.bytes.shrink_to(1 << 16);
        self.free.push(number);
    }
}
