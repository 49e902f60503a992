//! What comes, and the receives it goes to: matched, filled, completed.

use std::collections::VecDeque;

use wiretwin_msg::tagged::{Envelope, Matcher, Pattern};

/// What has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A send: its buffer is free again.
    Sent,
    /// A posted receive has completed.
    Received,
}

/// Why something ended otherwise than it should have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The message was longer than the buffer by this many bytes, which are lost.
    Truncated(u64),
    /// It was withdrawn.
    Cancelled,
    /// The peer's process is no more.
    PeerGone,
    /// A look for a message found none.
    NoMessage,
}

/// An operation that has ended.
#[derive(Clone, Copy, Debug)]
pub struct Completion {
    /// What ended.
    pub kind: Kind,
    /// What the operation was begun with.
    pub context: usize,
    /// Bytes of the message.
    pub length: u64,
    /// Where they are.
    pub buffer: *mut u8,
    /// The message's tag; `None` if it is of the kind without one.
    pub tag: Option<u64>,
    /// The message's remote data.
    pub data: Option<u64>,
    /// The number of the peer that a message came from.
    pub source: usize,
    /// What went wrong.
    pub trouble: Option<Trouble>,
}

/// A receive: where a message is to go.
#[derive(Clone, Copy, Debug)]
pub struct Receive {
    /// Where the message is written.
    pub buffer: *mut u8,
    /// Its length.
    pub length: u64,
    /// What [`Completion::context`] says; `None` for a receive that is not told of.
    pub context: Option<usize>,
}

/// A receive that nothing is written for and nobody told of.
pub(super) const NOWHERE: Receive = Receive { buffer: std::ptr::null_mut(), length: 0, context: None };

/// What is known of a message beside its bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    pub source: usize,
    pub tag: Option<u64>,
    pub data: Option<u64>,
    pub length: u64,
}

impl Head {
    const fn envelope(&self) -> Envelope {
        Envelope { source: self.source as u32, tag: self.tag }
    }
}

/// A message that came before its receive.
#[derive(Debug)]
struct Unexpected {
    head: Head,
    bytes: Vec<u8>,
    /// The peer's number for it, if it was offered.
    offer: Option<u32>,
    /// The receive that has taken it while its bytes still come.
    claimed: Option<Receive>,
}

/// Where the bytes of a message that is coming go.
#[derive(Clone, Copy, Debug)]
pub(super) enum Sink {
    Receive { receive: Receive, head: Head, done: u64 },
    Unexpected { place: usize },
}

/// An offered message that was asked for.
#[derive(Clone, Copy, Debug)]
struct Arriving {
    receive: Receive,
    head: Head,
    left: u64,
}

/// A [`Sink`] or the answer to an offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Clear {
    pub peer: usize,
    pub offer: u32,
    pub reference: u32,
    pub length: u64,
}

/// Everything that has come or is waited for.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    matcher: Matcher<Receive, usize>,
    unexpected: Slab<Unexpected>,
    arriving: Slab<Arriving>,
    pub completions: VecDeque<Completion>,
    /// Bytes in messages that came before their receives.
    pub held_bytes: u64,
}

impl Inbox {
    /// A send of this context has ended, if it has one.
    #[inline]
    pub fn sent(
        &mut self,
        context: Option<usize>,
        length: u64,
        tag: Option<u64>,
        peer: usize,
        trouble: Option<Trouble>,
    ) {
        let Some(context) = context else { return };
        self.completions.push_back(Completion {
            kind: Kind::Sent,
            context,
            length,
            buffer: std::ptr::null_mut(),
            tag,
            data: None,
            source: peer,
            trouble,
        });
    }

    fn complete(&mut self, receive: Receive, head: &Head) {
        let Some(context) = receive.context else { return };
        let over = head.length.saturating_sub(receive.length);
        self.completions.push_back(Completion {
            kind: Kind::Received,
            context,
            length: head.length,
            buffer: receive.buffer,
            tag: head.tag,
            data: head.data,
            source: head.source,
            trouble: (over > 0).then_some(Trouble::Truncated(over)),
        });
    }

    fn fail(&mut self, receive: Receive, trouble: Trouble) {
        let Some(context) = receive.context else { return };
        self.completions.push_back(Completion {
            kind: Kind::Received,
            context,
            length: 0,
            buffer: receive.buffer,
            tag: None,
            data: None,
            source: usize::MAX,
            trouble: Some(trouble),
        });
    }

    /// Posts a receive; an offer that it takes is to be asked for.
    ///
    /// # Safety
    /// The buffer stays the caller's to write to, and nobody else's to use, until the completion.
    pub unsafe fn post(&mut self, pattern: Pattern, receive: Receive) -> Option<Clear> {
        let (_, place) = self.matcher.post(pattern, receive)?;
        self.take(place, receive)
    }

    /// Gives an unexpected message to a receive.
    fn take(&mut self, place: usize, receive: Receive) -> Option<Clear> {
        let message = self.unexpected.get_mut(place)?;
        if message.offer.is_none() && (message.bytes.len() as u64) < message.head.length {
            message.claimed = Some(receive);
            return None;
        }
        let message = self.unexpected.remove(place)?;
        self.held_bytes -= message.bytes.len() as u64;
        if let Some(offer) = message.offer {
            return Some(self.ask(offer, receive, message.head));
        }
        fill(&receive, 0, &message.bytes);
        self.complete(receive, &message.head);
        None
    }

    fn ask(&mut self, offer: u32, receive: Receive, head: Head) -> Clear {
        let length = head.length.min(receive.length);
        let reference = self.arriving.insert(Arriving { receive, head, left: length }) as u32;
        if length == 0 {
            self.arriving.remove(reference as usize);
            self.complete(receive, &head);
        }
        Clear { peer: head.source, offer, reference, length }
    }

    /// A message begins: where its further bytes go, if there are more.
    #[inline]
    pub fn begin(&mut self, head: Head, bytes: &[u8]) -> Option<Sink> {
        let mut sink = None;
        let unexpected = &mut self.unexpected;
        let taken = self.matcher.arrive(head.envelope(), || {
            let mut held = Vec::with_capacity(usize::try_from(head.length).unwrap_or(0).max(bytes.len()));
            held.extend_from_slice(bytes);
            let place = unexpected.insert(Unexpected { head, bytes: held, offer: None, claimed: None });
            sink = Some(Sink::Unexpected { place });
            place
        });
        let is_whole = bytes.len() as u64 >= head.length;
        match taken {
            None => self.held_bytes += bytes.len() as u64,
            Some(receive) => {
                fill(&receive, 0, bytes);
                if is_whole {
                    self.complete(receive, &head);
                } else {
                    sink = Some(Sink::Receive { receive, head, done: bytes.len() as u64 });
                }
            }
        }
        sink.filter(|_| !is_whole)
    }

    /// The next bytes of a message: where the rest goes, if there is more.
    pub fn go_on(&mut self, sink: Sink, more: &[u8]) -> Option<Sink> {
        match sink {
            Sink::Receive { receive, head, done } => {
                fill(&receive, done, more);
                let done = done + more.len() as u64;
                if done < head.length {
                    return Some(Sink::Receive { receive, head, done });
                }
                self.complete(receive, &head);
                None
            }
            Sink::Unexpected { place } => {
                let message = self.unexpected.get_mut(place)?;
                message.bytes.extend_from_slice(more);
                self.held_bytes += more.len() as u64;
                self.filled(place, sink)
            }
        }
    }

    /// A message is offered: asked for at once if a receive waits for it.
    pub fn offer(&mut self, head: Head, offer: u32) -> Option<Clear> {
        let unexpected = &mut self.unexpected;
        let receive = self.matcher.arrive(head.envelope(), || {
            unexpected.insert(Unexpected { head, bytes: Vec::new(), offer: Some(offer), claimed: None })
        })?;
        Some(self.ask(offer, receive, head))
    }

    /// Bytes of a message that was asked for: whether they were the last.
    pub fn bulk(&mut self, source: usize, reference: u32, offset: u64, bytes: &[u8]) -> bool {
        if let Some(arriving) = self.arriving.get(reference as usize)
            && arriving.head.source == source
        {
            fill(&arriving.receive, offset, bytes);
        }
        self.came(source, reference, bytes.len() as u64)
    }

    /// Where the next bytes of a message that has begun go, and for how many there is room: nothing for those beyond the
    /// end of their buffer.
    pub fn place_of(&mut self, sink: Sink) -> Option<(*mut u8, u64)> {
        let (base, at, room) = match sink {
            Sink::Receive { receive, done, .. } => {
                (receive.buffer, done, receive.length.saturating_sub(done))
            }
            Sink::Unexpected { place } => {
                let Unexpected { head, bytes, .. } = self.unexpected.get_mut(place)?;
                let left = head.length.saturating_sub(bytes.len() as u64);
                bytes.reserve(left as usize);
                (bytes.as_mut_ptr(), bytes.len() as u64, left)
            }
        };
        // SAFETY: inside the buffer that whoever posted the receive promised, or inside what was reserved.
        (room > 0).then(|| (unsafe { base.add(at as usize) }, room))
    }

    /// So many more bytes of such a message are where [`Inbox::place_of`] said: where the rest goes, if there is more.
    ///
    /// # Safety
    /// They have been written, or are beyond the end of the buffer.
    pub unsafe fn advance(&mut self, sink: Sink, count: u64) -> Option<Sink> {
        match sink {
            Sink::Receive { receive, head, done } if done + count < head.length => {
                return Some(Sink::Receive { receive, head, done: done + count });
            }
            Sink::Receive { receive, head, .. } => self.complete(receive, &head),
            Sink::Unexpected { place } => {
                let message = self.unexpected.get_mut(place)?;
                // SAFETY: the caller's promise.
                unsafe { message.bytes.set_len(message.bytes.len() + count as usize) };
                self.held_bytes += count;
                return self.filled(place, sink);
            }
        }
        None
    }

    /// An unexpected message has more bytes: where the rest goes, if there is more.
    fn filled(&mut self, place: usize, sink: Sink) -> Option<Sink> {
        let message = self.unexpected.get_mut(place)?;
        if (message.bytes.len() as u64) < message.head.length {
            return Some(sink);
        }
        if let Some(receive) = message.claimed.take() {
            self.take(place, receive);
        }
        None
    }

    /// Where the bytes of a message that was asked for go, from an offset on, and for how many there is room; nothing
    /// for a message that nobody waits for.
    pub fn place(&self, source: usize, reference: u32, offset: u64) -> Option<(*mut u8, u64)> {
        let arriving = self.arriving.get(reference as usize).filter(|one| one.head.source == source)?;
        let room = arriving.receive.length.checked_sub(offset).filter(|&room| room > 0)?;
        // SAFETY: inside the buffer that whoever posted the receive promised.
        Some((unsafe { arriving.receive.buffer.add(offset as usize) }, room))
    }

    /// So many more bytes of a message that was asked for are where they belong: whether they were the last.
    pub fn came(&mut self, source: usize, reference: u32, count: u64) -> bool {
        let Some(arriving) = self.arriving.get_mut(reference as usize) else { return false };
        if arriving.head.source != source {
            return false;
        }
        arriving.left = arriving.left.saturating_sub(count);
        if arriving.left > 0 {
            return false;
        }
        if let Some(Arriving { receive, head, .. }) = self.arriving.remove(reference as usize) {
            self.complete(receive, &head);
        }
        true
    }

    /// The earliest message that has come and that the pattern accepts.
    pub fn peek(&self, pattern: &Pattern) -> Option<Head> {
        let (_, place) = self.matcher.probe(pattern)?;
        self.unexpected.get(*place).map(|message| message.head)
    }

    /// Takes such a message out of the queue, to be received by its place.
    pub fn claim(&mut self, pattern: &Pattern) -> Option<(usize, Head)> {
        let (_, place) = self.matcher.take(pattern)?;
        self.unexpected.get(place).map(|message| (place, message.head))
    }

    /// Receives what [`Inbox::claim`] took out.
    ///
    /// # Safety
    /// As for [`Inbox::post`].
    pub unsafe fn receive_claimed(&mut self, place: usize, receive: Receive) -> Option<Clear> {
        self.take(place, receive)
    }

    /// Withdraws the receives of this context: whether there was one.
    pub fn cancel(&mut self, context: usize) -> bool {
        let mut withdrawn = Vec::new();
        self.matcher
            .withdraw(|_, receive| receive.context == Some(context), |receive| withdrawn.push(receive));
        let any = !withdrawn.is_empty();
        withdrawn.into_iter().for_each(|receive| self.fail(receive, Trouble::Cancelled));
        any
    }

    /// Has nothing more written for the receive of this context, which is being filled by the rest of a message: of those
    /// that go to `sinks`, or elsewhere.
    pub fn withdraw<'a>(&mut self, context: usize, sinks: impl Iterator<Item = &'a mut Sink>) {
        let sinks = sinks.filter_map(|sink| match sink {
            Sink::Receive { receive, .. } => Some(receive),
            Sink::Unexpected { .. } => None,
        });
        let claimed = self.unexpected.values_mut().filter_map(|message| message.claimed.as_mut());
        let arriving = self.arriving.values_mut().map(|arriving| &mut arriving.receive);
        let mut all = sinks.chain(claimed).chain(arriving);
        let found = all.find(|receive| receive.context == Some(context));
        let withdrawn = found.map(|receive| std::mem::replace(receive, NOWHERE));
        drop(all);
        withdrawn.into_iter().for_each(|receive| self.fail(receive, Trouble::Cancelled));
    }

    /// A peer is no more: what was to come from it alone will not, and nothing of it that is not whole.
    pub fn lose(&mut self, source: usize, sink: Option<Sink>) {
        let mut lost = Vec::new();
        self.matcher
            .withdraw(|pattern, _| pattern.source == Some(source as u32), |receive| lost.push(receive));
        match sink {
            Some(Sink::Receive { receive, .. }) => lost.push(receive),
            Some(Sink::Unexpected { place }) => {
                lost.extend(self.unexpected.get_mut(place).and_then(|message| message.claimed.take()));
            }
            None => {}
        }
        let arriving: Vec<_> = self.arriving.find(|arriving| arriving.head.source == source);
        lost.extend(
            arriving.into_iter().filter_map(|place| self.arriving.remove(place)).map(|one| one.receive),
        );
        let partial = |message: &Unexpected| {
            message.head.source == source
                && (message.offer.is_some() || (message.bytes.len() as u64) < message.head.length)
        };
        let gone = self.unexpected.find(partial);
        self.matcher.keep(|_, place| !gone.contains(place));
        for place in gone {
            if let Some(message) = self.unexpected.remove(place) {
                self.held_bytes -= message.bytes.len() as u64;
            }
        }
        lost.into_iter().for_each(|receive| self.fail(receive, Trouble::PeerGone));
    }
}

/// Copies what fits of a message's bytes to their place in a buffer.
#[inline]
fn fill(receive: &Receive, offset: u64, bytes: &[u8]) {
    let room = receive.length.saturating_sub(offset);
    let count = room.min(bytes.len() as u64) as usize;
    if count > 0 {
        // SAFETY: whoever posted the receive promised its buffer of `length` bytes until its completion,
        // which is made after the last call of this; the bytes are within `length`, and no buffer of a
        // receive lies in a frame.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), receive.buffer.add(offset as usize), count);
        }
    }
}

/// Values by number, with the numbers of those that are gone given out again.
#[derive(Debug)]
pub(super) struct Slab<T> {
    values: Vec<Option<T>>,
    free: Vec<usize>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { values: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slab<T> {
    #[inline]
    pub fn insert(&mut self, value: T) -> usize {
        if let Some(place) = self.free.pop() {
            self.values[place] = Some(value);
            return place;
        }
        self.values.push(Some(value));
        self.values.len() - 1
    }

    #[inline]
    pub fn get(&self, place: usize) -> Option<&T> {
        self.values.get(place)?.as_ref()
    }

    #[inline]
    pub fn get_mut(&mut self, place: usize) -> Option<&mut T> {
        self.values.get_mut(place)?.as_mut()
    }

    #[inline]
    pub fn remove(&mut self, place: usize) -> Option<T> {
        let value = self.values.get_mut(place)?.take()?;
        self.free.push(place);
        Some(value)
    }

    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.values.iter_mut().flatten()
    }

    pub fn find(&self, is: impl Fn(&T) -> bool) -> Vec<usize> {
        let places = self.values.iter().enumerate();
        places.filter(|(_, value)| value.as_ref().is_some_and(&is)).map(|(place, _)| place).collect()
    }
}
