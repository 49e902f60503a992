//! One end of the direct transport in virtual time: the machine, its timers, and messages as their receiver has them.

use std::collections::BTreeMap;

use wiretwin_plan::PlanError;
use wiretwin_proto::direct::{
    Config, Counters, Delivered, DirectOutput, Event, Frame, Kept, Local, Machine, Message,
};
use wiretwin_proto::{MessageId, Output, Payload};
use wiretwin_units::{Bytes, SimTime};
use wiretwin_wire::direct::Repr;

/// What an end comes out with.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// A frame, which leaves now.
    Transmit(Frame),
    /// All of the message of this number is here; of one that was offered, what tells of it.
    Came(u64),
    /// The peer has asked for the message of this number.
    Cleared(u64),
    /// Nothing more until then, if a time is named that was not before.
    Timer(Option<SimTime>),
}

/// A message whose sender is still making it: all of its bytes are there after so long, evenly from the first on.
#[derive(Clone, Copy, Debug)]
struct Making {
    id: u64,
    from: SimTime,
    until: SimTime,
    bytes: u64,
}

impl Making {
    /// When its bytes up to this one are made.
    fn made(&self, byte: u64) -> SimTime {
        let takes = u128::from(self.until.as_ps() - self.from.as_ps());
        // No more than the whole, for a byte is one of the message's.
        SimTime::from_ps(self.from.as_ps() + (takes * u128::from(byte) / u128::from(self.bytes)) as u64)
    }
}

/// An end and its user, who numbers messages: a number is that of its message at both ends.
#[derive(Clone, Debug)]
pub(crate) struct DirectEnd {
    machine: Machine,
    /// Whose it is.
    pub process: u32,
    /// When something is to be done next, and the earliest time at which that is scheduled; [`SimTime::MAX`] for never.
    deadline: SimTime,
    scheduled: SimTime,
    /// Of the message that comes in order, its number and what is missing.
    coming: Option<(u64, u64)>,
    /// Of messages that were offered and not asked for, their offers.
    offers: BTreeMap<u64, u32>,
    /// Of those that were asked for, what is missing.
    bulk: BTreeMap<u32, u64>,
    making: Vec<Making>,
    /// Before, the process that sends is at work on the frame that left last.
    free_at: SimTime,
}

/// The key of the end of this number.
const fn key(end: u32) -> u64 {
    end as u64 + 1
}

impl DirectEnd {
    /// The end of this number, whose peer has the other one.
    ///
    /// # Errors
    /// [`PlanError`] for parameters with which no end can work.
    pub(crate) fn new(config: Config, number: u32, peer: u32) -> Result<Self, PlanError> {
        let local = Local { key: key(number), epoch: 1, lane: 0 };
        let machine = Machine::new(config, local, Some(key(peer)));
        Ok(Self {
            machine: machine.map_err(|error| PlanError::new("direct", error, "parameters that can be"))?,
            process: 0,
            deadline: SimTime::MAX,
            scheduled: SimTime::MAX,
            coming: None,
            offers: BTreeMap::new(),
            bulk: BTreeMap::new(),
            making: Vec::new(),
            free_at: SimTime::ZERO,
        })
    }

    /// When [`DirectEnd::handle_timeout`] is due; [`SimTime::MAX`] for never.
    pub(crate) const fn deadline(&self) -> SimTime {
        self.deadline
    }

    /// Whether its process has just made a frame: it is at work on this end.
    pub(crate) fn is_at_work(&self, now: SimTime) -> bool {
        self.free_at == now
    }

    pub(crate) const fn counters(&self) -> &Counters {
        self.machine.counters()
    }

    /// Both ends of a connection have met, as if that had been done long before.
    pub(crate) fn meet(ends: [&mut Self; 2], now: SimTime) {
        ends[0].machine.meet(now);
        let [mut turn, mut other] = ends;
        let mut quiet = 0;
        while quiet < 2 {
            quiet += 1;
            while let Output::Transmit(frame) = turn.next(now) {
                other.machine.handle_frame(now, &frame.repr, frame.payload);
                quiet = 0;
            }
            std::mem::swap(&mut turn, &mut other);
        }
    }

    /// What the machine has next, the events of its meeting left out.
    fn next(&mut self, now: SimTime) -> DirectOutput {
        loop {
            match self.machine.poll_output(self.free_at <= now) {
                Output::Event(Event::Met | Event::Returned | Event::Failed(_)) | Output::Work(_) => {}
                output => return output,
            }
        }
    }

    /// Takes a message of this number, with remote data or without, whose last byte is made at `made`: whether there
    /// was room for it.
    pub(crate) fn send(
        &mut self,
        now: SimTime,
        id: u64,
        data: Option<u64>,
        (length, made): (Bytes, SimTime),
    ) -> bool {
        let message = Message { id: MessageId(id), length, tag: Some(id), data, pushed: false };
        let taken = self.machine.send(now, message).is_ok();
        if taken {
            self.make(now, id, (length, made));
        }
        taken
    }

    fn make(&mut self, now: SimTime, id: u64, (length, until): (Bytes, SimTime)) {
        self.making.retain(|one| one.until > now);
        if until > now {
            self.making.push(Making { id, from: now, until, bytes: length.get().max(1) });
        }
    }

    /// Asks for a message that was offered.
    pub(crate) fn clear(&mut self, now: SimTime, id: u64, length: Bytes) {
        let offer = self.offers.remove(&id).expect("who asks for a message was offered it");
        self.bulk.insert(id as u32, length.get());
        self.machine.clear(now, offer, id as u32, length);
    }

    /// Sends the bytes of a message that was asked for.
    pub(crate) fn send_cleared(&mut self, now: SimTime, id: u64, made: (Bytes, SimTime)) {
        self.machine.send_cleared(now, MessageId(id), id as u32, made.0);
        self.make(now, id, made);
    }

    /// The same of this process. The bytes of messages that are asked for wait for [`DirectEnd::send_cleared`].
    pub(crate) fn of(mut self, process: u32) -> Self {
        self.machine.hand_over(true);
        self.process = process;
        self
    }

    pub(crate) fn handle_frame(&mut self, now: SimTime, repr: &Repr, payload: Payload) {
        // What is kept needs no place: a payload is its own handle.
        let (Kept::Yes | Kept::No) = self.machine.handle_frame(now, repr, payload);
    }

    /// Something that was scheduled is due now.
    pub(crate) fn handle_timeout(&mut self, now: SimTime) {
        if self.scheduled <= now {
            self.scheduled = SimTime::MAX;
        }
        if self.machine.due().is_some_and(|due| due <= now) {
            self.machine.handle_timeout(now);
        }
    }

    /// What comes out next.
    pub(crate) fn step(&mut self, now: SimTime) -> Step {
        loop {
            match self.next(now) {
                Output::Transmit(frame) => {
                    self.work_on(&frame.payload);
                    return Step::Transmit(frame);
                }
                Output::Deliver(delivered) => {
                    if let Some(id) = self.deliver(delivered) {
                        return Step::Came(id);
                    }
                }
                Output::Event(Event::Cleared { id, .. }) => return Step::Cleared(id.0),
                Output::Timeout(due) => {
                    let is_held = self.free_at > now && self.machine.has_output();
                    let free_at = if is_held { self.free_at } else { SimTime::MAX };
                    self.deadline = due.unwrap_or(SimTime::MAX).min(free_at);
                    let is_earlier = self.deadline < self.scheduled;
                    return Step::Timer(is_earlier.then(|| {
                        self.scheduled = self.deadline;
                        self.deadline
                    }));
                }
                Output::Event(_) | Output::Work(_) => {}
            }
        }
    }

    /// The process that sends has made what goes in a frame, and makes what goes in the next.
    fn work_on(&mut self, payload: &Payload) {
        if let Some(one) = self.making.iter().find(|one| one.id == payload.message.0) {
            let end = payload.start.get() + payload.length.get();
            self.free_at = self.free_at.max(one.made(end.min(one.bytes)));
        }
    }

    /// Takes what is handed up: the number of a message that is whole, or was offered.
    fn deliver(&mut self, delivered: Delivered) -> Option<u64> {
        let (id, left, payload) = match delivered {
            Delivered::Begin { tag, length, payload, .. } => (tag?, length.get(), payload),
            Delivered::Continue { payload } => {
                let (id, left) = self.coming?;
                (id, left, payload)
            }
            Delivered::Offer { tag, offer, .. } => {
                self.offers.insert(tag?, offer);
                return tag;
            }
            Delivered::Bulk { reference, payload, .. } => {
                let left = self.bulk.get_mut(&reference)?;
                *left -= payload.length.get();
                return (*left == 0).then(|| {
                    self.bulk.remove(&reference);
                    u64::from(reference)
                });
            }
            Delivered::Pushed { .. } => return None,
        };
        let left = left - payload.length.get();
        self.coming = (left > 0).then_some((id, left));
        (left == 0).then_some(id)
    }
}
