//! What messages that come over a network take of their receiver's core: its kernel's work on them.
//!
//! Where a layer has what that takes ([`crate::layer::Layer::interrupt`]), a rank that computes on that core goes on so
//! much later. A rank that has waited for the message loses nothing, for the work is part of the message's time as it
//! was measured; but the kernel works on messages one after the other, so of several that come to a core at once the
//! later ones are late. Where ranks share the core, the work on the others too is that much later.
//!
//! The kernel is done with a message when it would arrive if nothing else were on its way. It begins so long before, or
//! with the first packet of several. A message that comes while it is at work on another takes less of it. Of messages
//! that follow each other closely from one rank to another it takes no more than the time between them: one interrupt
//! serves several.
//!
//! Choices: what a rank itself does for messages is not made longer, for that was measured with the kernel at work, in
//! streams and exchanges; and what a rank begins while the kernel works is not late. Between hosts that share a core
//! another core of their machine has the work, as in a testbed, where the wire never takes a host's frames on that
//! host's core.

use wiretwin_msg::table::Table;

use super::World;
use super::state::Pair;
use super::transfer::is_envelope_only;
use crate::model::Model;
use crate::queue::Event;

/// What is known of the kernels' work.
#[derive(Clone, Debug)]
pub(super) struct Interrupts {
    /// By message.
    coming: Vec<Coming>,
    /// The last message of a sender to a receiver.
    last: Table<Pair, Last>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Coming {
    takes: u64,
    /// What it takes where the kernel is at work on another message.
    next: u64,
    /// When the kernel is done with it, from when it has begun.
    done: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Last {
    begins: u64,
    ends: u64,
}

impl Interrupts {
    /// None where messages over the network interrupt nobody.
    pub(super) fn new(model: &Model) -> Option<Box<Self>> {
        let interrupts = model.network.is_some() && model.inter.as_ref()?.interrupt.is_some();
        interrupts.then(|| Box::new(Self { coming: Vec::new(), last: Table::new() }))
    }
}

impl World {
    /// A message enters the network: its receiver's kernel will work on it.
    pub(super) fn announce(&mut self, index: u32) {
        if self.interrupts.is_none() {
            return;
        }
        let (alone, _) = self.network_alone(index);
        let (Some(all), Some(layer), Some(payload)) =
            (&mut self.interrupts, &self.model.inter, self.network.as_ref().map(|one| one.payload()))
        else {
            return;
        };
        let message = &self.messages[index as usize];
        let bytes = if is_envelope_only(message) { 0 } else { message.bytes };
        let after = |flight: i64| self.now.saturating_add(alone).saturating_add_signed(flight.max(0));
        let is_long = bytes > payload;
        let ends =
            after(if is_long { layer.last_packet_flight_ps(bytes, payload) } else { layer.flight_ps(bytes) });
        let pair = Pair { source: message.source, destination: message.destination };
        let last = all.last.entry(pair, Default::default);
        // No longer than the message itself, which takes what it was measured to take.
        let since = ends.saturating_sub(last.ends.max(self.now));
        let takes = layer.interrupt_ps(bytes).min(since);
        // The packets of a long message come one after the other.
        let span = if is_long { takes.max(alone) } else { takes };
        let begins = ends.saturating_sub(span).max(self.now).max(last.begins);
        *last = Last { begins, ends: ends.max(last.ends) };
        if all.coming.len() <= index as usize {
            all.coming.resize(index as usize + 1, Coming::default());
        }
        all.coming[index as usize] =
            Coming { takes, next: layer.next_interrupt_ps(bytes).min(takes), done: 0 };
        self.queue.push(begins, Event::Interrupt { message: index });
    }

    /// The kernel of a message's receiver begins to work on it, or will when it is done with others.
    pub(super) fn interrupt(&mut self, index: u32) {
        let Some(mut all) = self.interrupts.take() else { return };
        let message = &self.messages[index as usize];
        let [source, destination] =
            [message.source, message.destination].map(|rank| self.ranks[rank as usize].sharer);
        let coming = &mut all.coming[index as usize];
        coming.done = self.take_core(source, destination, coming.takes, coming.next);
        self.interrupts = Some(all);
    }

    /// Whether a message that has come is still the kernel's: then it comes when that is done with it.
    #[inline]
    pub(super) fn is_held(&mut self, index: u32, event: Event) -> bool {
        let Some(coming) = self.interrupts.as_ref().and_then(|all| all.coming.get(index as usize)) else {
            return false;
        };
        let done = coming.done;
        if done <= self.now {
            return false;
        }
        self.messages[index as usize].arrival = done;
        self.queue.push(done, event);
        true
    }
}
