//! Call control: the switch's side of SPANS, on its one processor.
//!
//! Hosts ask for circuits and give them back; who is asked answers; in between, channels are given out on each
//! link and bandwidth is reserved. What the control processor does takes time, and it does one message after the
//! other. Left out: other switches, groups.
//!
//! Choices: a leaf of a tree is asked by an indication of a tree (the one of an added leaf names no channel); who
//! is asked and does not answer is asked again, and the call rejected in the end; the leaf that a tree was begun
//! with may leave before the others.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use wiretwin_proto::Output;
use wiretwin_units::{SimTime, Span};
use wiretwin_wire::cell::{VcId, Vci, Vpi};
use wiretwin_wire::spans::{Aal, Address, Connection, Outcome, Repr, Resources, Step};

use super::bandwidth::Bandwidth;

/// How call control works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// What the processor takes for one message. Choice: 2 ms.
    pub processing: Span,
    /// Messages that wait for it; more are lost. Choice: 64.
    pub backlog: u32,
    /// The channels that are given out on each link: SPANS has 32 to 1023.
    pub vcis: (u16, u16),
    /// After this who is asked is asked again. Choice: 3 s.
    pub retry: Span,
    /// So often, before a call is rejected. Choice: 5.
    pub tries: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self { processing: Span::from_ms(2), backlog: 64, vcis: (32, 1023), retry: Span::from_s(3), tries: 5 }
    }
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// A message, on the signalling channel of a port.
    Signal {
        /// The port.
        port: u32,
        /// The message that is sent.
        message: Repr,
    },
    /// Cells of a circuit go on here from now on.
    Join {
        /// Port and channel on which they come in.
        from: (u32, VcId),
        /// Port and channel on which they leave.
        to: (u32, VcId),
        /// The bandwidth that they have, kbit/s, and go before others by; 0 is none.
        peak_kbit_s: u32,
    },
    /// No more.
    Part {
        /// Port and channel on which they came in.
        from: (u32, VcId),
        /// Port and channel on which they left.
        to: (u32, VcId),
    },
}

/// What else happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A call was rejected.
    Refused {
        /// The outcome that was answered.
        outcome: Outcome,
    },
    /// A message was lost for want of room before the processor.
    Overrun,
    /// A message that makes no sense here.
    Garbage,
}

/// Outputs of call control.
pub type ControlOutput = Output<Act, (), Event>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Asked, and has not answered.
    Asked,
    There,
    /// Told that it is over, and has not answered.
    Leaving,
}

/// A place where a circuit ends.
#[derive(Clone, Debug)]
struct Leaf {
    port: u32,
    connection: Connection,
    vc: VcId,
    state: State,
    due: SimTime,
    tries: u32,
}

/// A circuit, or a tree.
#[derive(Clone, Debug)]
struct CallRecord {
    /// What it was asked for with, to its first leaf.
    connection: Connection,
    port: u32,
    vc: VcId,
    tree: bool,
    aal: Aal,
    granted: Resources,
    leaves: Vec<Leaf>,
}

/// The call control of one switch.
#[derive(Debug)]
pub struct CallControl {
    config: Config,
    epoch: u32,
    address: Address,
    /// By port.
    hosts: Vec<Address>,
    bandwidth: Bandwidth,
    /// Channels in use: the link, by its number, and the channel.
    channels: Vec<(u32, u16)>,
    /// From where, to where, with what bandwidth.
    permanent: Vec<(End, End, u32)>,
    calls: Vec<CallRecord>,
    backlog: VecDeque<(u32, Repr)>,
    /// When the message in front is done with.
    done_at: SimTime,
    outputs: VecDeque<ControlOutput>,
}

/// A port, and the channel on which cells pass it.
type End = (u32, VcId);

/// The link from the host of a port to the switch, by its number.
const fn up(port: u32) -> u32 {
    2 * port
}

/// The link to the host of a port.
const fn down(port: u32) -> u32 {
    2 * port + 1
}

impl CallControl {
    /// That of a switch with one host a port; links are those of `bandwidth`, to the switch and from it by
    /// turns.
    #[must_use]
    pub fn new(
        config: Config,
        epoch: u32,
        address: Address,
        hosts: Vec<Address>,
        bandwidth: Bandwidth,
    ) -> Self {
        Self {
            config,
            epoch,
            address,
            hosts,
            bandwidth,
            channels: Vec::new(),
            permanent: Vec::new(),
            calls: Vec::new(),
            backlog: VecDeque::new(),
            done_at: SimTime::MAX,
            outputs: VecDeque::new(),
        }
    }

    /// What is reserved.
    #[must_use]
    pub const fn bandwidth(&self) -> &Bandwidth {
        &self.bandwidth
    }

    /// The same, for circuits that come to be without a call.
    pub const fn bandwidth_mut(&mut self) -> &mut Bandwidth {
        &mut self.bandwidth
    }

    /// Switched circuits and trees that there are, or are coming to be.
    #[must_use]
    pub fn calls(&self) -> usize {
        self.calls.len()
    }

    /// Channels in use on all links.
    #[must_use]
    pub fn channels(&self) -> usize {
        self.channels.len()
    }

    // Commands

    /// Makes a permanent circuit, which no call takes away.
    ///
    /// # Errors
    /// [`Outcome::NoVc`] where one of the channels is in use or not given out, [`Outcome::BadDestination`]
    /// where there is no such port, [`Outcome::NoResources`].
    pub fn add_permanent(
        &mut self,
        from: (u32, VcId),
        to: (u32, VcId),
        peak_kbit_s: u32,
    ) -> Result<(), Outcome> {
        let ports = self.hosts.len() as u32;
        if from.0 >= ports || to.0 >= ports {
            return Err(Outcome::BadDestination);
        }
        let (first, last) = self.config.vcis;
        let ends = [(up(from.0), from.1), (down(to.0), to.1)];
        let usable = |link: u32, vc: VcId| {
            (first..=last).contains(&vc.vci.0)
                && vc.vpi.get() == 0
                && !self.channels.contains(&(link, vc.vci.0))
        };
        if !ends.into_iter().all(|(link, vc)| usable(link, vc)) {
            return Err(Outcome::NoVc);
        }
        let path = [up(from.0), down(to.0)];
        if self.grant(&path, peak_kbit_s, peak_kbit_s).is_none() {
            return Err(Outcome::NoResources);
        }
        self.channels.extend(ends.map(|(link, vc)| (link, vc.vci.0)));
        self.permanent.push((from, to, peak_kbit_s));
        self.act(Act::Join { from, to, peak_kbit_s });
        Ok(())
    }

    /// Takes a permanent circuit away.
    ///
    /// # Errors
    /// [`Outcome::Failed`] where there is none.
    pub fn remove_permanent(&mut self, from: (u32, VcId), to: (u32, VcId)) -> Result<(), Outcome> {
        let at = self.permanent.iter().position(|one| (one.0, one.1) == (from, to)).ok_or(Outcome::Failed)?;
        let (_, _, peak) = self.permanent.remove(at);
        self.release(&[up(from.0), down(to.0)], peak);
        self.free(up(from.0), from.1);
        self.free(down(to.0), to.1);
        self.act(Act::Part { from, to });
        Ok(())
    }

    // Handlers

    /// A message has come from the host of a port.
    pub fn handle_message(&mut self, now: SimTime, port: u32, message: Repr) {
        if port as usize >= self.hosts.len() {
            return self.event(Event::Garbage);
        }
        if self.backlog.len() >= self.config.backlog as usize {
            return self.event(Event::Overrun);
        }
        if self.backlog.is_empty() {
            self.done_at = now + self.config.processing;
        }
        self.backlog.push_back((port, message));
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: SimTime) {
        while self.done_at <= now {
            let at = self.done_at;
            let Some((port, message)) = self.backlog.pop_front() else { break };
            self.process(at, port, message);
            let more = !self.backlog.is_empty();
            self.done_at = if more { at + self.config.processing } else { SimTime::MAX };
        }
        for at in (0..self.calls.len()).rev() {
            self.ask_again(now, at);
        }
    }

    /// What is to be done next.
    pub fn poll_output(&mut self) -> ControlOutput {
        if let Some(output) = self.outputs.pop_front() {
            return output;
        }
        let asked = |leaf: &&Leaf| leaf.state != State::There;
        let due = self.calls.iter().flat_map(|call| &call.leaves).filter(asked).map(|leaf| leaf.due).min();
        let done = (self.done_at < SimTime::MAX).then_some(self.done_at);
        Output::Timeout(due.into_iter().chain(done).min())
    }

    // What messages bring about

    fn process(&mut self, now: SimTime, port: u32, message: Repr) {
        match message {
            Repr::StatusRequest { .. } => {
                let host = self.hosts[port as usize];
                let (switch_epoch, switch) = (self.epoch, self.address);
                self.signal(port, Repr::StatusIndication { switch_epoch, host, switch });
            }
            Repr::StatusResponse { .. } => {}
            Repr::Open { indication: false, connection, aal, desired, minimum, .. } => {
                self.open(now, port, connection, aal, (desired, minimum), false);
            }
            Repr::Multi { indication: false, connection, aal, desired, minimum, .. } => {
                self.open(now, port, connection, aal, (desired, minimum), true);
            }
            Repr::Add { indication: false, leaf, tree } => self.add(now, port, leaf, tree),
            Repr::Opened { confirmation: false, connection, outcome, .. }
            | Repr::MultiOpened { confirmation: false, connection, outcome, .. } => {
                self.answered(now, port, connection, outcome);
            }
            Repr::Close { by_receiver: false, step: Step::Request, connection, .. } => {
                self.close(now, port, connection);
            }
            Repr::Close { by_receiver: true, step: Step::Request, connection, .. } => {
                self.leave(port, connection);
            }
            Repr::Close { by_receiver, step: Step::Response, connection, .. } => {
                if !by_receiver {
                    self.has_left(port, &connection);
                }
            }
            _ => self.event(Event::Garbage),
        }
    }

    fn open(
        &mut self,
        now: SimTime,
        port: u32,
        connection: Connection,
        aal: Aal,
        (desired, minimum): (Resources, Resources),
        tree: bool,
    ) {
        if let Some(at) = self.calls.iter().position(|one| one.port == port && one.connection == connection) {
            // A request that is repeated is answered again, once there is an answer.
            if self.calls[at].leaves.iter().any(|leaf| leaf.state == State::There) {
                self.confirm(at, connection, Outcome::Ok);
            }
            return;
        }
        let refused = |this: &mut Self, outcome| this.refuse(port, connection, outcome, tree);
        if connection.source != self.hosts[port as usize] {
            return refused(self, Outcome::Failed);
        }
        let Some(to) = self.port_of(connection.destination) else {
            return refused(self, Outcome::BadDestination);
        };
        let path = [up(port), down(to)];
        let Some(peak) = self.grant(&path, desired.peak_kbit_s, minimum.peak_kbit_s) else {
            return refused(self, Outcome::NoResources);
        };
        let Some(vc) = self.channel(up(port)) else {
            self.release(&path, peak);
            return refused(self, Outcome::NoVc);
        };
        let Some(into) = self.channel(down(to)) else {
            self.free(up(port), vc);
            self.release(&path, peak);
            return refused(self, Outcome::NoVc);
        };
        let granted = Resources { peak_kbit_s: peak, ..desired };
        let leaf = self.leaf(now, to, connection, into);
        self.calls.push(CallRecord { connection, port, vc, tree, aal, granted, leaves: alloc::vec![leaf] });
        self.indicate(self.calls.len() - 1, 0);
    }

    fn add(&mut self, now: SimTime, port: u32, leaf: Connection, tree: Connection) {
        let found = self.calls.iter().position(|one| one.port == port && one.connection == tree && one.tree);
        let refused = |this: &mut Self, outcome| {
            this.event(Event::Refused { outcome });
            let resources = Resources::default();
            this.signal(port, Repr::Added { confirmation: true, connection: leaf, outcome, resources });
        };
        let Some(at) = found else { return refused(self, Outcome::Failed) };
        if let Some(known) = self.calls[at].leaves.iter().find(|one| one.connection == leaf) {
            if known.state == State::There {
                self.confirm(at, leaf, Outcome::Ok);
            }
            return;
        }
        let Some(to) = self.port_of(leaf.destination) else { return refused(self, Outcome::BadDestination) };
        let peak = self.calls[at].granted.peak_kbit_s;
        if self.grant(&[down(to)], peak, peak).is_none() {
            return refused(self, Outcome::NoResources);
        }
        let Some(into) = self.channel(down(to)) else {
            self.release(&[down(to)], peak);
            return refused(self, Outcome::NoVc);
        };
        let leaf = self.leaf(now, to, leaf, into);
        self.calls[at].leaves.push(leaf);
        let last = self.calls[at].leaves.len() - 1;
        self.indicate(at, last);
    }

    fn answered(&mut self, now: SimTime, port: u32, connection: Connection, outcome: Outcome) {
        let found = self.find(port, &connection);
        let Some((at, place)) =
            found.filter(|(at, place)| self.calls[*at].leaves[*place].state == State::Asked)
        else {
            // Nobody waits for it any more: who has answered is told so.
            if found.is_none() && outcome == Outcome::Ok {
                let (by_receiver, step) = (false, Step::Indication);
                self.signal(port, Repr::Close { by_receiver, step, connection, outcome: None });
            }
            return;
        };
        let _ = now;
        if outcome != Outcome::Ok {
            return self.drop_leaf(at, place, Some(outcome));
        }
        let call = &mut self.calls[at];
        call.leaves[place].state = State::There;
        let leaf = &call.leaves[place];
        let (from, to) = ((call.port, call.vc), (leaf.port, leaf.vc));
        let peak_kbit_s = call.granted.peak_kbit_s;
        self.act(Act::Join { from, to, peak_kbit_s });
        self.confirm(at, connection, Outcome::Ok);
    }

    /// The sender gives its circuit or tree back.
    fn close(&mut self, now: SimTime, port: u32, connection: Connection) {
        let answer = |outcome| {
            let (by_receiver, step) = (false, Step::Confirmation);
            Repr::Close { by_receiver, step, connection, outcome: Some(outcome) }
        };
        let mine = |call: &CallRecord| {
            let names = |leaf: &Leaf| leaf.connection == connection;
            call.port == port && (call.connection == connection || call.leaves.iter().any(names))
        };
        let Some(at) = self.calls.iter().position(mine) else {
            return self.signal(port, answer(Outcome::Failed));
        };
        let retry = self.config.retry;
        for place in 0..self.calls[at].leaves.len() {
            let leaf = &mut self.calls[at].leaves[place];
            (leaf.due, leaf.tries) = (now + retry, 1);
            let before = core::mem::replace(&mut leaf.state, State::Leaving);
            if before == State::There {
                self.part(at, place);
            }
            self.tell_over(at, place);
        }
        self.signal(port, answer(Outcome::Ok));
    }

    /// A receiver gives its circuit, or its place on a tree, back.
    fn leave(&mut self, port: u32, connection: Connection) {
        let by_receiver = true;
        let found = self.find(port, &connection);
        let outcome = Some(if found.is_some() { Outcome::Ok } else { Outcome::Failed });
        self.signal(port, Repr::Close { by_receiver, step: Step::Confirmation, connection, outcome });
        let Some((at, place)) = found else { return };
        let sender = self.calls[at].port;
        if self.calls[at].leaves[place].state == State::There {
            self.part(at, place);
            let step = Step::Indication;
            self.signal(sender, Repr::Close { by_receiver, step, connection, outcome: None });
        }
        self.drop_leaf(at, place, None);
    }

    /// Who was told that it is over knows it.
    fn has_left(&mut self, port: u32, connection: &Connection) {
        if let Some((at, place)) = self.find(port, connection)
            && self.calls[at].leaves[place].state == State::Leaving
        {
            self.drop_leaf(at, place, None);
        }
    }

    /// Asks those again who have not answered, and gives up in the end.
    fn ask_again(&mut self, now: SimTime, at: usize) {
        for place in (0..self.calls[at].leaves.len()).rev() {
            let leaf = &mut self.calls[at].leaves[place];
            if leaf.state == State::There || leaf.due > now {
                continue;
            }
            if leaf.tries < self.config.tries {
                leaf.tries += 1;
                leaf.due = now + self.config.retry;
                match leaf.state {
                    State::Asked => self.indicate(at, place),
                    _ => self.tell_over(at, place),
                }
                continue;
            }
            let asked = leaf.state == State::Asked;
            // Who was asked may still answer: it is told then.
            let alone = self.calls[at].leaves.len() == 1;
            self.drop_leaf(at, place, asked.then_some(Outcome::Failed));
            if alone {
                return;
            }
        }
    }

    // Parts

    fn port_of(&self, host: Address) -> Option<u32> {
        self.hosts.iter().position(|one| *one == host).map(|port| port as u32)
    }

    fn find(&self, port: u32, connection: &Connection) -> Option<(usize, usize)> {
        self.calls.iter().enumerate().find_map(|(at, call)| {
            let is_it = |leaf: &Leaf| leaf.port == port && leaf.connection == *connection;
            call.leaves.iter().position(is_it).map(|place| (at, place))
        })
    }

    /// Reserves; kbit/s.
    fn grant(&mut self, path: &[u32], target: u32, minimum: u32) -> Option<u32> {
        let granted = self.bandwidth.grant(path, u64::from(target) * 1000, u64::from(minimum) * 1000);
        granted.ok().map(|granted| (granted / 1000) as u32)
    }

    fn release(&mut self, path: &[u32], kbit_s: u32) {
        self.bandwidth.release(path, u64::from(kbit_s) * 1000);
    }

    /// The lowest channel that is free on a link.
    fn channel(&mut self, link: u32) -> Option<VcId> {
        let (first, last) = self.config.vcis;
        let vci = (first..=last).find(|&vci| !self.channels.contains(&(link, vci)))?;
        self.channels.push((link, vci));
        Some(VcId { vpi: Vpi::new(0)?, vci: Vci(vci) })
    }

    fn free(&mut self, link: u32, vc: VcId) {
        self.channels.retain(|one| *one != (link, vc.vci.0));
    }

    const fn leaf(&self, now: SimTime, port: u32, connection: Connection, vc: VcId) -> Leaf {
        let due = now.saturating_add(self.config.retry);
        Leaf { port, connection, vc, state: State::Asked, due, tries: 1 }
    }

    fn indicate(&mut self, at: usize, place: usize) {
        let call = &self.calls[at];
        let (port, connection, vc) =
            (call.leaves[place].port, call.leaves[place].connection, call.leaves[place].vc);
        let (aal, desired, minimum, indication) = (call.aal, call.granted, call.granted, true);
        let message = if call.tree {
            Repr::Multi { indication, connection, aal, desired, minimum, vc }
        } else {
            Repr::Open { indication, connection, aal, desired, minimum, must: true, vc }
        };
        self.signal(port, message);
    }

    fn tell_over(&mut self, at: usize, place: usize) {
        let Leaf { port, connection, .. } = self.calls[at].leaves[place];
        let (by_receiver, step) = (false, Step::Indication);
        self.signal(port, Repr::Close { by_receiver, step, connection, outcome: None });
    }

    /// Tells who asked what became of it.
    fn confirm(&mut self, at: usize, connection: Connection, outcome: Outcome) {
        let CallRecord { port, vc, tree, granted: resources, connection: first, .. } = self.calls[at];
        let confirmation = true;
        let message = if !tree {
            Repr::Opened { confirmation, connection, outcome, resources, vc }
        } else if connection == first {
            Repr::MultiOpened { confirmation, connection, outcome, resources, vc }
        } else {
            Repr::Added { confirmation, connection, outcome, resources }
        };
        self.signal(port, message);
    }

    fn refuse(&mut self, port: u32, connection: Connection, outcome: Outcome, tree: bool) {
        self.event(Event::Refused { outcome });
        let (confirmation, resources, vc) = (true, Resources::default(), VcId::default());
        self.signal(
            port,
            if tree {
                Repr::MultiOpened { confirmation, connection, outcome, resources, vc }
            } else {
                Repr::Opened { confirmation, connection, outcome, resources, vc }
            },
        );
    }

    fn part(&mut self, at: usize, place: usize) {
        let call = &self.calls[at];
        let (from, to) = ((call.port, call.vc), (call.leaves[place].port, call.leaves[place].vc));
        self.act(Act::Part { from, to });
    }

    /// A leaf is no more; with the last one goes the circuit. Where it was rejected, who asked is told why.
    fn drop_leaf(&mut self, at: usize, place: usize, refused: Option<Outcome>) {
        let leaf = self.calls[at].leaves[place].clone();
        let peak = self.calls[at].granted.peak_kbit_s;
        if let Some(outcome) = refused {
            self.event(Event::Refused { outcome });
            self.confirm(at, leaf.connection, outcome);
        }
        self.calls[at].leaves.remove(place);
        self.free(down(leaf.port), leaf.vc);
        self.release(&[down(leaf.port)], peak);
        if self.calls[at].leaves.is_empty() {
            let call = self.calls.remove(at);
            self.free(up(call.port), call.vc);
            self.release(&[up(call.port)], peak);
        }
    }

    fn signal(&mut self, port: u32, message: Repr) {
        self.act(Act::Signal { port, message });
    }

    fn act(&mut self, act: Act) {
        self.outputs.push_back(Output::Transmit(act));
    }

    fn event(&mut self, event: Event) {
        self.outputs.push_back(Output::Event(event));
    }
}
