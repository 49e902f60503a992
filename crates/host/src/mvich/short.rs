//! The way of nearly every short message: a call with one send, or with one receive, whose message fits in a buffer.
//! The machine hears of it in one step.
//!
//! What is not as usual goes the long way ([`super::call`]), which finds it as it was. The receive of a message is
//! posted again when the next call is made, behind the answer that most programs send first; a spare one stands for it.

use wiretwin_msg::library::Request;
use wiretwin_msg::matching::Envelope;
use wiretwin_msg::mpi::vias::{HEAD_OCTETS, Head};
use wiretwin_msg::via::{Completion, DoneError, QueueKind};
use wiretwin_prog::{CommError, Incoming, Outgoing, Source, Status, Tag};
use wiretwin_units::Bytes;

use super::Mvich;
use super::call::{PERIOD, outgoing_of, pattern_of};
use crate::ring::copy_few;
use crate::stream::{Spinner, pause};

/// How far a call came by the short way.
pub(super) enum Short {
    Over(Result<(), CommError>),
    /// Nothing was done of it; a buffer of this rank was taken off its queue.
    Long(Option<(usize, Completion)>),
}

impl Mvich {
    /// Sends a message, if it fits in a buffer and nothing has to go before it; whether it has gone.
    #[inline]
    pub(super) fn send_short(&mut self, send: &Outgoing<'_>) -> bool {
        let (rank, message) = (send.to.0 as usize, send.message);
        if self.peers[rank].as_ref().is_some_and(|peer| peer.buffers.is_filling()) {
            self.reap(rank);
        }
        let room = self.room();
        let Some(peer) = &mut self.peers[rank] else { return false };
        if message.len() > room || !peer.buffers.has_send() {
            return false;
        }
        let request = Request(self.next_request);
        let Some(packet) = self.machine.send_at_once(request, &outgoing_of(send)) else { return false };
        self.next_request += 1;
        let head = Head { packet, start: 0, length: message.len() as u32 };
        let place = peer.buffers.send(&head.octets(), message);
        peer.posted += 1;
        // The VI is there, for it was made here; what becomes of the descriptor its queue tells.
        let _ = self.adapter.post(peer.vi, QueueKind::Send, place);
        self.refill(rank);
        true
    }

    /// Waits for what comes next, and takes it if it is for this receive.
    pub(super) fn receive_short(&mut self, receive: &mut Incoming<'_>) -> Short {
        let Source::Rank(from) = receive.from else { return Short::Long(None) };
        if from == self.rank || self.peers[from.0 as usize].is_none() || !self.machine.is_bare() {
            return Short::Long(None);
        }
        let mut spinner = Spinner::new(self.limit, PERIOD);
        loop {
            for rank in 0..self.peers.len() {
                let Some(peer) = &self.peers[rank] else { continue };
                if !peer.frees.is_empty() {
                    return Short::Long(None);
                }
                let vi = peer.vi;
                self.refill(rank);
                match self.adapter.done(vi, QueueKind::Receive) {
                    Ok(came) if rank == from.0 as usize && self.take_short(rank, &came, receive) => {
                        return Short::Over(Ok(()));
                    }
                    Ok(came) => return Short::Long(Some((rank, came))),
                    Err(DoneError::NotDone) => {}
                    // It is found again.
                    Err(_) => return Short::Long(None),
                }
            }
            if self.is_crowded {
                rustix::thread::sched_yield();
            }
            if let Err(failure) = pause(self.wait, &mut [], &mut spinner) {
                return Short::Over(Err(self.failed(failure)));
            }
        }
    }

    /// A buffer has come: takes it if it is a whole message for this receive, which has room for it.
    #[inline]
    fn take_short(&mut self, from: usize, came: &Completion, receive: &mut Incoming<'_>) -> bool {
        let Some(peer) = &mut self.peers[from] else { return false };
        let Some((slot, octets)) = peer.buffers.came(came.place, came.outcome.length) else { return false };
        let Some((head, body)) = octets.split_first_chunk::<HEAD_OCTETS>() else { return false };
        let Ok(Head { packet, start: 0, length }) = Head::read(head) else { return false };
        let envelope = Envelope { source: from as u32, ..packet.envelope };
        let whole = packet.bytes.get() == body.len() as u64 && length as usize == body.len();
        let fits = peer.coming.is_none() && body.len() <= receive.buffer.len();
        let taken = whole
            && fits
            && pattern_of(receive).accepts(&envelope)
            && self.machine.take_at_once(from as u32, &packet);
        if !taken {
            return false;
        }
        // SAFETY: the buffer of the receive has room, and is not the one that the message has come in.
        unsafe { copy_few(body.as_ptr(), receive.buffer.as_mut_ptr(), body.len()) };
        let (source, bytes) = (wiretwin_prog::Rank(from as u32), Bytes::new(body.len() as u64));
        receive.status = Some(Status { source, tag: Tag(envelope.tag), bytes });
        peer.emptied = Some(slot);
        if self.machine.has_outputs() {
            self.drain_alone();
        }
        true
    }

    /// Posts the receive again that was emptied last.
    #[inline]
    pub(super) fn refill(&mut self, rank: usize) {
        if let Some(peer) = &mut self.peers[rank]
            && let Some(slot) = peer.emptied.take()
        {
            let receive = peer.buffers.receive(slot);
            // The VI is there, for it was made here.
            let _ = self.adapter.post(peer.vi, QueueKind::Receive, receive);
        }
    }
}
