//! Requests of ranks: their numbers, and the messages that sends made.

use super::{Kind, Lan, Message, Request, RequestId};

impl Lan {
    pub(super) fn open(&mut self, rank: u32, kind: Kind) -> RequestId {
        self.serial += 1;
        let slot = match self.free_requests.pop() {
            Some(slot) => slot,
            None => self.requests.len() as u32,
        };
        let id = RequestId(self.serial << 24 | u64::from(slot));
        let request = Request { id, rank, complete: false, failure: None, kind };
        match self.requests.get_mut(slot as usize) {
            Some(entry) => *entry = request,
            None => self.requests.push(request),
        }
        id
    }

    pub(super) fn find(&self, id: RequestId) -> Option<usize> {
        let slot = (id.0 & 0xff_ffff) as usize;
        self.requests.get(slot).filter(|request| request.id == id).map(|_| slot)
    }

    pub(super) fn close(&mut self, id: RequestId) {
        if let Some(slot) = self.find(id) {
            self.requests[slot].kind = Kind::Free;
            self.requests[slot].id = RequestId(u64::MAX);
            self.free_requests.push(slot as u32);
        }
    }

    /// The message that a send made, while it is known.
    pub(super) fn message(&mut self, id: RequestId) -> Option<&mut Message> {
        let slot = self.find(id)?;
        match &mut self.requests[slot].kind {
            Kind::Send(message) => Some(message),
            _ => None,
        }
    }
}
