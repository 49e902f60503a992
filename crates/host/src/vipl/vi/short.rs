//! The way of nearly every short message: what it needs is looked at once, and nothing is kept that is told at once.
//!
//! What is not as usual goes the long way ([`super::transfer`]), which finds it as it was.

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

    /// Sends the descriptor posted last, if nothing is before it and it is a message of one segment that fits in a
    /// line, on a reliable connection; whether it has gone.
    #[inline]
    pub(super) fn send_short(&mut self, common: &Common) -> bool {
        let Some(Wire::Memory(link)) = &mut self.link else { return false };
        let Some(posted) = self.send.get(self.next) else { return false };
        let [DataSegment { address, handle, length }] = posted.data[..] else { return false };
        let usual = posted.is_sound && posted.control == 0 && length == posted.length && length > 0;
        let alone = !self.begun && self.answers.is_empty() && self.next + 1 == self.send.next_number();
        let ViAttributes { ptag, reliability, max_transfer, .. } = self.attributes;
        let allowed = reliability.is_reliable()
            && u64::from(length) <= max_transfer.get()
            && common.memory.check(address, length.into(), handle, ptag, Access::Local).is_ok();
        if !usual || !alone || !allowed {
            return false;
        }
        let head = u64::from(kind::SEND) | (self.taken & 0xffff) << 8;
        // SAFETY: registered memory, which waits for the lock until it is given back.
        if !link.producer.push_short(head, unsafe { octets((address, length)) }) {
            return false;
        }
        link.nudge();
        self.told = self.taken;
        self.unaccepted.push_back(self.next);
        self.next += 1;
        true
    }

    /// Takes a message of one line into the receive that waits for it, which has one segment that it fits into, and
    /// takes that off the queue; none if one of these is not so.
    #[inline]
    pub fn receive_short(&mut self, common: &mut Common) -> Option<Completion> {
        let Some(Wire::Memory(link)) = &mut self.link else { return None };
        let frame = link.consumer.peek_line()?;
        let ([kind::SEND, low, high], data) = frame.split_first_chunk()? else { return None };
        let queue = &self.receive;
        let number = queue.first_open().filter(|_| queue.published == 0 && queue.cq.is_none())?;
        let posted = queue.get(number)?;
        let [DataSegment { address, handle, length }] = posted.data[..] else { return None };
        let (place, tag) = (posted.place, self.attributes.ptag);
        let reaches = |address, octets, handle| {
            common.memory.check(address, octets, handle, tag, Access::Local).is_ok()
        };
        let usual = posted.is_sound
            && posted.operation() == 0
            && data.len() <= length as usize
            && matches!(self.assembly, Assembly::Nothing)
            && queue.notify.is_empty()
            && self.send.cq.is_none()
            && self.send.notify.is_empty()
            && reaches(address, length.into(), handle)
            && reaches(place.address, CONTROL_SEGMENT as u64, place.handle);
        if !usual {
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
