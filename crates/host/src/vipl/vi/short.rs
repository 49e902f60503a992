//! The way of nearly every short message: what it needs is looked at once, and nothing is kept that is told at once.
//!
//! What is not as usual goes the long way ([`super::transfer`]), which finds it as it was.

use wiretwin_msg::via::DESCRIPTOR_ALIGNMENT;

use super::*;

impl Vi {
    /// Hears how many messages the remote end has accepted.
    #[inline]
    pub(super) fn hear(&mut self, octets: [u8; 2]) {
        let known = self.heard.max(self.accepted);
        let news = u16::from_le_bytes(octets).wrapping_sub(known as u16);
        if news as i16 > 0 {
            // Never more than were sent, whatever the other process may have written.
            self.heard = (known + u64::from(news)).min(self.accepted + self.unaccepted.len() as u64);
        }
    }

    /// What is posted, if it is a descriptor of one line that says nothing but where its data are, and there is room
    /// for it on a queue that is so long.
    #[inline(always)]
    fn plain(&self, common: &Common, place: Place, queue: &Queue) -> Option<Plain> {
        let Place { address, handle } = place;
        let line = address.is_multiple_of(DESCRIPTOR_ALIGNMENT)
            && common.memory.reaches(address, DESCRIPTOR_ALIGNMENT, handle, self.attributes.ptag);
        let has_place = queue.len() < common.attributes.max_descriptors.into() && queue.has_place();
        if !line || !has_place || self.state != ViState::Connected {
            return None;
        }
        // SAFETY: registered memory, which waits for the lock until it is given back.
        unsafe { Plain::read(address) }
    }

    /// Posts a receive, if it is a plain one; whether it was.
    #[inline(always)]
    pub fn post_short(&mut self, common: &Common, place: Place) -> bool {
        let Some(plain) = self.plain(common, place, &self.receive) else { return false };
        self.receive.push_plain(place, plain);
        true
    }

    /// Posts a send and sends it, if nothing is before it and it is a message of one segment that fits in a line, on a
    /// reliable connection; whether it has gone.
    #[inline(always)]
    pub fn send_short(&mut self, common: &Common, place: Place) -> bool {
        let Some(plain) = self.plain(common, place, &self.send) else { return false };
        let DataSegment { address, handle, length } = plain.data;
        let usual = length == plain.length && length > 0;
        let alone = !self.begun && self.answers.is_empty() && self.next == self.send.next_number();
        let ViAttributes { ptag, reliability, max_transfer, .. } = self.attributes;
        let allowed = reliability.is_reliable()
            && u64::from(length) <= max_transfer.get()
            && common.memory.reaches(address, length.into(), handle, ptag);
        if !usual || !alone || !allowed {
            return false;
        }
        let Some(Wire::Memory(link)) = &mut self.link else { return false };
        let head = u64::from(kind::SEND) | (self.taken & 0xffff) << 8;
        // SAFETY: registered memory, which waits for the lock until it is given back.
        if !link.producer.push_short(head, unsafe { octets((address, length)) }) {
            return false;
        }
        link.nudge();
        self.send.push_plain(place, plain);
        self.told = self.taken;
        self.unaccepted.push_back(self.next);
        self.next += 1;
        true
    }

    /// Takes a send off its queue that a message has told to be accepted; none if it is not so, or anything about it
    /// is not as usual.
    #[inline(always)]
    pub fn sent_short(&mut self, common: &Common) -> Option<Completion> {
        let (queue, tag) = (&self.send, self.attributes.ptag);
        let number = queue.first_number();
        let told = self.heard > self.accepted && self.unaccepted.front() == Some(&number);
        if !told || queue.published > 0 || !queue.is_asked() {
            return None;
        }
        let posted = queue.get(number)?;
        let (place, length) = (posted.place, posted.length);
        let reaches = common.memory.reaches(place.address, CONTROL_SEGMENT as u64, place.handle, tag);
        if posted.operation() != 0 || posted.outcome.is_some() || !reaches {
            return None;
        }
        let outcome = Outcome { status: status::DONE, length, immediate: 0 };
        // SAFETY: registered memory of this process, which waits for the lock until it is given back.
        unsafe { write_outcome(place, outcome) };
        self.unaccepted.pop_front();
        self.accepted += 1;
        self.send.pass();
        Some(Completion { place, outcome })
    }

    /// Takes a message of one line into the receive that waits for it, which has one segment that it fits into, and
    /// takes the receive off the queue. Returns nothing if one of these conditions does not hold, or if no message has
    /// come within `looks` polls.
    ///
    /// Every check that needs no message is made before one comes.
    #[inline(always)]
    pub fn receive_short(&mut self, common: &Common, looks: u32) -> Option<Completion> {
        let Some(Wire::Memory(link)) = &mut self.link else { return None };
        let queue = &self.receive;
        let number = queue.first_open().filter(|_| queue.published == 0)?;
        let posted = queue.get(number)?;
        let [DataSegment { address, handle, length }] = posted.data[..] else { return None };
        let (place, tag) = (posted.place, self.attributes.ptag);
        let reaches = |address, octets, handle| common.memory.reaches(address, octets, handle, tag);
        let usual = posted.is_sound
            && posted.operation() == 0
            && matches!(self.assembly, Assembly::Nothing)
            && queue.is_asked()
            && self.send.is_asked()
            && reaches(address, length.into(), handle)
            && reaches(place.address, CONTROL_SEGMENT as u64, place.handle);
        if !usual {
            return None;
        }
        let frame = link.consumer.await_line(looks)?;
        let ([kind::SEND, low, high], data) = frame.split_first_chunk()? else { return None };
        if data.len() > length as usize {
            return None;
        }
        let status = status::DONE | status::OP_RECEIVE;
        let outcome = Outcome { status, length: data.len() as u32, immediate: 0 };
        // SAFETY: registered memory of this process, which waits for the lock until it is given back.
        unsafe {
            copy_short(data.as_ptr(), address as *mut u8, data.len());
            write_outcome(place, outcome);
        }
        let accepted = [*low, *high];
        link.consumer.pass_line();
        self.receive.pass();
        self.taken += 1;
        if self.taken - self.told >= ACCEPT_EVERY {
            self.told = self.taken;
            link.accept(self.taken);
        }
        self.hear(accepted);
        Some(Completion { place, outcome })
    }
}
