//! The way of nearly every short message: what it needs is looked at once, and nothing is kept that is told at once.
//!
//! What is not as usual goes the long way ([`super::transfer`]), which finds it as it was.

use wiretwin_msg::via::DESCRIPTOR_ALIGNMENT;

use super::*;

impl Vi {
    /// Hears how many messages the remote end says that it has accepted, as the low half of a word says it. Whatever it
    /// says, none is taken to be accepted that was not sent.
    #[inline(always)]
    pub(super) const fn hear(&mut self, accepted: u16) {
        let news = accepted.wrapping_sub(self.heard as u16);
        if news as i16 > 0 {
            self.heard += news as u64;
        }
    }

    /// What is posted, if it is a descriptor of one line that says nothing but where its data are, the VI reaches it and
    /// them, and there is room for it on a queue that is so long.
    #[inline(always)]
    fn plain(&self, common: &Common, place: Place, queue: &Queue) -> Option<Plain> {
        let Place { address, handle } = place;
        let region = common.memory.region_of(handle, self.attributes.ptag)?;
        let has_place = queue.len() < common.attributes.max_descriptors.into() && queue.has_place();
        let is_line =
            address.is_multiple_of(DESCRIPTOR_ALIGNMENT) && region.holds(address, DESCRIPTOR_ALIGNMENT);
        if !has_place || !is_line {
            return None;
        }
        // SAFETY: registered memory, which waits for the lock until it is given back.
        let plain = unsafe { Plain::read(address) }?;
        let DataSegment { address, handle: of_data, length } = plain.data;
        let region = if of_data == handle {
            region
        } else {
            common.memory.region_of(of_data, self.attributes.ptag)?
        };
        region.holds(address, length.into()).then_some(plain)
    }

    /// Posts a receive, if it is a plain one; whether it was.
    #[inline(always)]
    pub fn post_short(&mut self, common: &Common, place: Place) -> bool {
        if self.state != ViState::Connected {
            return false;
        }
        let Some(plain) = self.plain(common, place, &self.receive) else { return false };
        self.receive.push_plain(place, plain, common.memory.version());
        true
    }

    /// Posts a send and sends it, if nothing is before it and it is a message of one segment that fits in a line, on a
    /// reliable connection; whether it has gone.
    #[inline(always)]
    pub fn send_short(&mut self, common: &Common, place: Place) -> bool {
        let Some(plain) = self.plain(common, place, &self.send) else { return false };
        let DataSegment { address, length, .. } = plain.data;
        let usual = length == plain.length && length.wrapping_sub(1) < self.longest_at_once;
        // One that was begun is on the queue still.
        let alone = self.next == self.send.next_number() && self.answers.is_empty();
        let Some(Wire::Memory(link)) = self.link.as_mut().filter(|_| usual && alone) else { return false };
        let head = u64::from(kind::SEND) | (self.taken & 0xffff) << 8;
        // SAFETY: registered memory, which waits for the lock until it is given back.
        if !link.producer.push_short(head, unsafe { octets((address, length)) }) {
            return false;
        }
        link.nudge();
        self.send.push_plain(place, plain, common.memory.version());
        self.told = self.taken;
        self.unaccepted.push(self.next);
        self.next += 1;
        true
    }

    /// Takes a send off its queue that a message has told to be accepted; none if it is not so, or anything about it
    /// is not as usual.
    #[inline(always)]
    pub fn sent_short(&mut self, common: &Common) -> Option<Completion> {
        let queue = &self.send;
        let told = self.heard > self.accepted && self.unaccepted.first() == Some(queue.first_number());
        let posted = queue.head().filter(|_| told && queue.is_asked())?;
        posted.plain(common.memory.version()).filter(|_| posted.outcome().is_none())?;
        let (place, length) = (posted.place(), posted.length);
        let outcome = Outcome { status: status::DONE, length, immediate: 0 };
        // SAFETY: registered memory of this process, which waits for the lock until it is given back.
        unsafe { write_outcome(place, outcome) };
        self.unaccepted.pop();
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
        let posted = queue.head()?;
        let DataSegment { address, length, .. } = posted.plain(common.memory.version())?;
        let place = posted.place();
        let usual = matches!(self.assembly, Assembly::Nothing) && queue.is_asked() && self.send.is_asked();
        if !usual {
            return None;
        }
        let (head, frame) = link.consumer.await_line(looks)?;
        let data = frame.get(SHORT_HEAD..)?;
        if head as u8 != kind::SEND || data.len() > length as usize {
            return None;
        }
        let status = status::DONE | status::OP_RECEIVE;
        let outcome = Outcome { status, length: data.len() as u32, immediate: 0 };
        // SAFETY: registered memory of this process, which waits for the lock until it is given back.
        unsafe {
            copy_short(data.as_ptr(), address as *mut u8, data.len());
            write_outcome(place, outcome);
        }
        link.consumer.pass_line();
        self.receive.pass();
        self.taken += 1;
        if self.taken - self.told >= ACCEPT_EVERY {
            self.told = self.taken;
            link.accept(self.taken);
        }
        self.hear((head >> 8) as u16);
        Some(Completion { place, outcome })
    }
}
