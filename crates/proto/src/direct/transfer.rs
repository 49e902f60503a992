//! What waits to be sent: messages, answers to offers, and the bytes that were asked for.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use wiretwin_units::Bytes;
use wiretwin_wire::direct::{BULK_OCTETS, Body, Extent, HEADER_OCTETS, Head, Number};

use super::event::Message;
use crate::{MessageId, Payload};

/// What a numbered frame says, its number apart.
#[derive(Clone, Copy, Debug)]
pub(super) enum Item {
    Message { head: Option<Head>, payload: Payload, ends: bool },
    Bulk { reference: u32, offset: u64, payload: Payload, ends: bool },
    Clear { offer: u32, reference: u32, length: u64 },
}

impl Item {
    /// The frame's body under a number, and its payload.
    pub(super) const fn body(&self, number: Number) -> (Body, Payload) {
        match *self {
            Self::Message { head, payload, .. } => (Body::Message { number, head }, payload),
            Self::Bulk { reference, offset, payload, .. } => {
                (Body::Bulk { number, reference, offset }, payload)
            }
            Self::Clear { offer, reference, length } => {
                let nothing = Payload::whole(MessageId(0), Bytes::new(0));
                (Body::Clear { number, offer, reference, length }, nothing)
            }
        }
    }

    /// The message that has been sent whole when this frame and all before it have come.
    pub(super) const fn ends(&self) -> Option<MessageId> {
        match *self {
            Self::Message { payload, ends: true, .. } | Self::Bulk { payload, ends: true, .. } => {
                Some(payload.message)
            }
            _ => None,
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Job {
    Message { message: Message, done: u64 },
    Clear { offer: u32, reference: u32, length: u64 },
}

/// An offered message that was asked for.
#[derive(Clone, Copy, Debug)]
struct Bulk {
    id: MessageId,
    reference: u32,
    length: u64,
    done: u64,
}

/// What waits.
#[derive(Clone, Debug, Default)]
pub(super) struct Outbox {
    jobs: VecDeque<Job>,
    bulk: VecDeque<Bulk>,
    /// Messages that were offered and not asked for yet, by the number of the offer.
    offers: Vec<Option<Message>>,
    free: Vec<u32>,
}

impl Outbox {
    /// How many messages wait, those that were offered included.
    pub(super) fn waiting(&self) -> usize {
        self.jobs.len() + self.bulk.len() + self.offers.len() - self.free.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting() == 0
    }

    /// Whether [`Outbox::next`] has something.
    pub(super) fn has_next(&self) -> bool {
        !(self.jobs.is_empty() && self.bulk.is_empty())
    }

    pub(super) fn push(&mut self, message: Message) {
        self.jobs.push_back(Job::Message { message, done: 0 });
    }

    pub(super) fn clear(&mut self, offer: u32, reference: u32, length: u64) {
        self.jobs.push_back(Job::Clear { offer, reference, length });
    }

    /// An offer was taken up: the message, and how many of its bytes are wanted.
    ///
    /// # Errors
    /// There is none of this number.
    pub(super) fn cleared(&mut self, offer: u32, length: u64) -> Result<(MessageId, u64), ()> {
        let message = self.offers.get_mut(offer as usize).and_then(Option::take).ok_or(())?;
        self.free.push(offer);
        Ok((message.id, length.min(message.length.get())))
    }

    /// Sends so many bytes of a message, which the peer knows by `reference`.
    pub(super) fn push_bulk(&mut self, id: MessageId, reference: u32, length: u64) {
        self.bulk.push_back(Bulk { id, reference, length, done: 0 });
    }

    /// The next frame's content: messages before what was asked for, so that no short message waits for a
    /// long one. A frame of a message that goes on is filled to `frame` bytes, so that all are of one length, as those
    /// have to be that a device sends together; a message longer than `eager` is offered.
    pub(super) fn next(&mut self, frame: u64, eager: u64) -> Option<Item> {
        let most = frame - HEADER_OCTETS as u64;
        let Some(job) = self.jobs.front_mut() else { return self.next_bulk(most - BULK_OCTETS as u64) };
        match job {
            Job::Clear { offer, reference, length } => {
                let item = Item::Clear { offer: *offer, reference: *reference, length: *length };
                self.jobs.pop_front();
                Some(item)
            }
            Job::Message { message, done } => {
                let (start, length) = (*done, message.length.get());
                let Message { id, tag, data, pushed, .. } = *message;
                if pushed {
                    self.jobs.pop_front();
                    let head = Some(Head { tag, data, extent: Extent::Pushed { length } });
                    return Some(Item::Message {
                        head,
                        payload: Payload::whole(id, Bytes::new(0)),
                        ends: false,
                    });
                }
                if start == 0 && length > eager {
                    let message = *message;
                    self.jobs.pop_front();
                    return Some(self.offer(message));
                }
                let head_of = |extent| (start == 0).then_some(Head { tag, data, extent });
                let room = |head: Option<Head>| most - head.map_or(0, |head| head.octets() as u64);
                let mut head = head_of(Extent::Whole);
                if length > room(head) {
                    head = head_of(Extent::Begun { length });
                }
                let count = (length - start).min(room(head));
                *done += count;
                let ends = start + count == length;
                if ends {
                    self.jobs.pop_front();
                }
                let payload = Payload { message: id, start: Bytes::new(start), length: Bytes::new(count) };
                Some(Item::Message { head, payload, ends })
            }
        }
    }

    fn offer(&mut self, message: Message) -> Item {
        let offer = self.free.pop().unwrap_or_else(|| {
            self.offers.push(None);
            (self.offers.len() - 1) as u32
        });
        self.offers[offer as usize] = Some(message);
        let extent = Extent::Offered { length: message.length.get(), offer };
        let head = Some(Head { tag: message.tag, data: message.data, extent });
        let payload = Payload::whole(message.id, Bytes::new(0));
        Item::Message { head, payload, ends: false }
    }

    fn next_bulk(&mut self, most: u64) -> Option<Item> {
        let bulk = self.bulk.front_mut()?;
        let Bulk { id, reference, length, done: offset } = *bulk;
        let count = (length - offset).min(most);
        bulk.done += count;
        let ends = offset + count == length;
        if ends {
            self.bulk.pop_front();
        }
        let payload = Payload { message: id, start: Bytes::new(offset), length: Bytes::new(count) };
        Some(Item::Bulk { reference, offset, payload, ends })
    }

    /// Forgets everything: the messages that will not be sent.
    pub(super) fn abandon(&mut self, mut failed: impl FnMut(MessageId)) {
        for job in self.jobs.drain(..) {
            if let Job::Message { message, .. } = job {
                failed(message.id);
            }
        }
        self.bulk.drain(..).for_each(|bulk| failed(bulk.id));
        self.offers.drain(..).flatten().for_each(|message| failed(message.id));
        self.free.clear();
    }
}
