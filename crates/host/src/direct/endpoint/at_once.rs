//! Messages that go, or have come, in one frame with nothing before them: each in one step, without queues between.

use wiretwin_proto::MessageId;
use wiretwin_proto::direct::Message;
use wiretwin_wire::direct::Repr;

use super::super::inbox::{Head, Inbox, Slab, Trouble};
use super::{COPIED, Endpoint, HEAD, Peer, SPARE, Sending};

impl Endpoint {
    /// Sends a message that fits in a frame, if nothing has to go before it: whether it has gone.
    #[inline]
    pub(super) fn send_at_once(&mut self, number: usize, message: Message, bytes: &[u8]) -> bool {
        if !self.has_room(number) {
            return false;
        }
        let peer = &mut self.peers[number];
        let Some(frame) = peer.machine.send_at_once(self.now, message) else { return false };
        let length = frame.repr.head_octets();
        let emit = |to: &mut [u8]| frame.repr.emit(to).expect("the size is that of the head");
        if !peer.out.as_mut().is_some_and(|out| out.transmit_short(length, emit, bytes)) {
            let mut head = [0; HEAD];
            let head = &mut head[..length];
            emit(head);
            if let Some(out) = &mut peer.out {
                out.transmit(head, bytes);
            } else if let Some(network) = &mut self.network {
                network.transmit((peer.datagrams, peer.mac), (head, bytes), frame.service());
            }
        }
        self.settle(number);
        true
    }

    /// Takes a frame that brings a whole message for which nothing else has to be done: whether it was one.
    #[inline]
    pub(super) fn take_at_once(&mut self, number: usize, repr: &Repr, bytes: &[u8]) -> bool {
        let Self { peers, sends, spare, inbox, now, .. } = self;
        let Peer { machine, sink, .. } = &mut peers[number];
        let Some(head) = machine.take_at_once(*now, repr, |id| done(sends, spare, inbox, id, None)) else {
            return false;
        };
        let head = Head { source: number, tag: head.tag, data: head.data, length: bytes.len() as u64 };
        *sink = inbox.begin(head, bytes);
        self.settle(number);
        true
    }

    /// Does what a peer's machine asks for, if it asks for anything.
    #[inline]
    fn settle(&mut self, number: usize) {
        let peer = &mut self.peers[number];
        if peer.machine.has_output() {
            return self.drain(number, &[]);
        }
        peer.timeout = peer.machine.due();
        if !peer.uses_memory {
            self.flush();
        }
    }
}

/// A message has been sent, or will not be.
#[inline]
pub(super) fn done(
    sends: &mut Slab<Sending>,
    spare: &mut Vec<Vec<u8>>,
    inbox: &mut Inbox,
    id: MessageId,
    trouble: Option<Trouble>,
) {
    let Some(Sending { length, copy, context, tag, peer, .. }) = sends.remove(id.0 as usize) else { return };
    if (1..=2 * COPIED as usize).contains(&copy.capacity()) && spare.len() < SPARE {
        spare.push(copy);
    }
    inbox.sent(context, length, tag, peer, trouble);
}
