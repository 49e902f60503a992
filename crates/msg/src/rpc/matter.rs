//! Calls and replies on a stream of [`Content`]: octets where they are known, handles where not.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use wiretwin_proto::Payload;
use wiretwin_units::Bytes;
use wiretwin_wire::rpc::{MARK_OCTETS, RecordMark};

use super::record::Write;
use super::{Argument, Body, Call, Incoming, Message, Reply};
use crate::library::{Content, Front};

/// What follows the head of a message where some messages have octets and others a handle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Matter {
    /// Octets, in the form of XDR.
    Octets(Arc<[u8]>),
    /// A handle with its shape.
    Message(Argument),
}

impl Matter {
    /// Nothing.
    #[must_use]
    pub fn nothing() -> Self {
        Self::Octets(Arc::new([]))
    }

    /// The message that it carries, if it carries one.
    #[must_use]
    pub const fn payload(&self) -> Option<Payload> {
        match self {
            Self::Octets(_) => None,
            Self::Message(argument) => Some(argument.payload),
        }
    }

    fn put(&self, content: &mut Content) {
        match self {
            Self::Octets(octets) => content.push_octets(octets),
            Self::Message(argument) => argument.put(content),
        }
    }
}

impl Body for Matter {
    fn length(&self) -> Bytes {
        match self {
            Self::Octets(octets) => octets.length(),
            Self::Message(argument) => argument.length(),
        }
    }

    fn items(&self) -> u32 {
        match self {
            Self::Octets(octets) => octets.items(),
            Self::Message(argument) => argument.items(),
        }
    }

    fn item_octets(&self) -> Bytes {
        match self {
            Self::Octets(octets) => octets.item_octets(),
            Self::Message(argument) => argument.item_octets(),
        }
    }
}

/// A write of a record sender, as it goes to a socket.
pub(super) fn content_of<M: Message<Body = Matter>>(write: &Write<M>) -> Content {
    let mut content = Content::new();
    let mut dropped = Content::new();
    for piece in &write.pieces {
        content.push_octets(&piece.mark.octets());
        let mut whole = datagram_of(&piece.message);
        if piece.start > Bytes::new(0) {
            whole.move_to(piece.start, &mut dropped);
            dropped.clear();
        }
        whole.move_to(Bytes::new(piece.mark.length().into()), &mut content);
    }
    content
}

/// A message as a datagram.
pub(super) fn datagram_of(message: &impl Message<Body = Matter>) -> Content {
    let mut content = Content::new();
    content.push_octets(&message.head());
    if let Some(body) = message.body() {
        body.put(&mut content);
    }
    content
}

/// The receiver of records: content of a stream becomes messages.
#[derive(Debug, Default)]
pub(super) struct Records {
    inbox: Content,
    /// Octets of the fragment that are still to come.
    left: u64,
    last: bool,
    record: Content,
    whole: VecDeque<Incoming<Matter>>,
}

impl Records {
    /// Takes what was read.
    pub(super) fn take(&mut self, content: &mut Content) {
        content.move_to(Bytes::MAX, &mut self.inbox);
        loop {
            if self.left == 0 {
                let mut mark = [0; MARK_OCTETS];
                if !self.inbox.take_octets(&mut mark) {
                    return;
                }
                let Some(mark) = RecordMark::parse(&mark) else { return };
                (self.left, self.last) = (mark.length().into(), mark.is_last());
            }
            let moved = self.inbox.move_to(Bytes::new(self.left), &mut self.record).get();
            self.left -= moved;
            if self.left > 0 {
                return;
            }
            if core::mem::take(&mut self.last) {
                let message = read(&mut self.record);
                self.record.clear();
                self.whole.push_back(message);
            }
        }
    }

    /// The next message.
    pub(super) fn poll(&mut self) -> Option<Incoming<Matter>> {
        self.whole.pop_front()
    }
}

/// Reads a record or a datagram: a head, and either octets or the length of an opaque message and the
/// message.
pub(super) fn read(record: &mut Content) -> Incoming<Matter> {
    let mut octets: Vec<u8> = match record.front() {
        Front::Octets(count) => vec![0; count.get() as usize],
        Front::Body(_) | Front::Nothing => Vec::new(),
    };
    record.take_octets(&mut octets);
    let payload = record.take_body(Bytes::MAX);
    let matter = |rest: Arc<[u8]>| match payload {
        Some(payload) => Matter::Message(Argument::opaque(payload)),
        None => Matter::Octets(rest),
    };
    match Incoming::parse(&octets) {
        Incoming::Call(Call { xid, target, credential, arguments }) => {
            Incoming::Call(Call { xid, target, credential, arguments: matter(arguments) })
        }
        Incoming::Reply(Reply { xid, result }) => Incoming::Reply(Reply { xid, result: result.map(matter) }),
        Incoming::Unreadable { xid, refusal } => Incoming::Unreadable { xid, refusal },
        Incoming::Garbage(error) => Incoming::Garbage(error),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use wiretwin_proto::MessageId;

    use super::super::record::RecordSender;
    use super::super::{Credential, Target};
    use super::*;

    fn call(xid: u32, arguments: Matter) -> Call<Matter> {
        let target = Target { program: 0x2000_0001, version: 1, procedure: 3 };
        Call { xid, target, credential: Credential::NONE, arguments }
    }

    fn message(number: u64, length: u64) -> Matter {
        Matter::Message(Argument::opaque(Payload::whole(MessageId(number), Bytes::new(length))))
    }

    #[test]
    fn a_call_of_a_thousand_and_one_octets_is_a_mark_a_head_a_length_the_message_and_its_pad() {
        let mut sender = RecordSender::new(Bytes::new(4000));
        let call = call(1, message(7, 1001));
        sender.put(&call, call.length(), true);
        let mut content = content_of(&sender.poll_write().expect("one write"));
        assert_eq!(content.length(), Bytes::new(4 + 40 + 4 + 1004));
        let mut head = [0; 48];
        assert!(content.take_octets(&mut head));
        assert_eq!((&head[..4], &head[44..]), (&[0x80, 0, 0x04, 0x18][..], &[0, 0, 0x03, 0xe9][..]));
        assert_eq!(content.take_body(Bytes::MAX), Some(Payload::whole(MessageId(7), Bytes::new(1001))));
        let mut pad = [9; 3];
        assert!(content.take_octets(&mut pad) && pad == [0; 3] && content.is_empty());
    }

    proptest! {
        #[test]
        fn messages_come_out_of_a_stream_as_they_went_in(
            lengths in prop::collection::vec(0u64..9000, 1..6),
            buffer in 100u64..5000,
            step in 1u64..3000,
        ) {
            let mut sender = RecordSender::new(Bytes::new(buffer));
            let mut sent = Vec::new();
            for (number, length) in lengths.iter().enumerate() {
                let matter = if length % 7 == 3 {
                    Matter::Octets(Arc::from(vec![number as u8; *length as usize / 4 * 4]))
                } else {
                    message(number as u64, *length)
                };
                let call = call(number as u32, matter);
                sender.put(&call, call.length(), number % 2 == 0);
                sent.push(Incoming::Call(call));
            }
            sender.flush();
            let (mut stream, mut records) = (Content::new(), Records::default());
            while let Some(write) = sender.poll_write() {
                let mut content = content_of(&write);
                prop_assert_eq!(content.length(), write.length());
                content.move_to(Bytes::MAX, &mut stream);
            }
            let mut read = Content::new();
            while !stream.is_empty() {
                stream.move_to(Bytes::new(step), &mut read);
                records.take(&mut read);
            }
            let came: Vec<_> = core::iter::from_fn(|| records.poll()).collect();
            prop_assert_eq!(came, sent);
        }
    }
}
