//! The host's side of signalling: what messages bring about, and what is asked and answered.

use alloc::vec::Vec;

use wiretwin_units::SimTime;
use wiretwin_wire::cell::VcId;
use wiretwin_wire::spans::{Aal, Address, Connection, Outcome, Repr, Resources, Step};

use super::super::types::{CallId, Dataflow, Descriptor, Error, Qos, RequestId};
use super::{Done, Driver, Event, In, Out, Pending, Subject, Transaction, Waiting, check_aal};

impl Driver {
    // What messages bring about

    pub(super) fn status(&mut self, switch_epoch: u32, host: Address) {
        self.settle(Subject::Status, &Connection::default());
        let before = self.switch_epoch.replace(switch_epoch);
        let fresh = self.address.replace(host).is_none();
        self.signal(Repr::StatusResponse { host_epoch: self.epoch, host });
        if fresh {
            self.event(Event::Up);
        }
        if before.is_none_or(|before| before == switch_epoch) {
            return;
        }
        self.event(Event::Restarted);
        self.transactions.clear();
        for at in 0..self.sockets.len() {
            let Some(socket) = &mut self.sockets[at] else { continue };
            socket.pending.clear();
            socket.out.retain(|out| out.connection.is_none());
            socket.into.retain(|one| one.connection.is_none());
            if let Some(waiting) = socket.waiting.take() {
                self.done(Done::Failed { call: waiting.call, error: Error::Closed });
            }
            self.end_of_input(Descriptor(at as u32));
        }
    }

    /// A connection is offered to this host.
    pub(super) fn offered(
        &mut self,
        now: SimTime,
        connection: Connection,
        aal: Aal,
        qos: Resources,
        vc: VcId,
        multicast: bool,
    ) {
        let id = RequestId(self.requests);
        let one = Pending { id, connection, aal, qos, vc, multicast };
        // One that was answered is answered again; one that waits goes on waiting.
        if self.sockets.iter().flatten().any(|s| s.into.iter().any(|one| one.connection == Some(connection)))
        {
            return self.answer(&one, Outcome::Ok);
        }
        if self.sockets.iter().flatten().any(|s| s.pending.iter().any(|one| one.connection == connection)) {
            return;
        }
        // The circuit back of one that somebody here waits for.
        let back = self.sockets.iter_mut().flatten().find(|socket| {
            socket.waiting.is_some_and(|waiting| {
                let mine = waiting.connection;
                waiting.back
                    && (mine.destination, mine.destination_sap) == (connection.source, connection.source_sap)
                    && (mine.source, mine.source_sap) == (connection.destination, connection.destination_sap)
            })
        });
        if let Some(socket) = back {
            socket.into.push(In { vc, connection: Some(connection) });
            if let Some(waiting) = &mut socket.waiting {
                waiting.back = false;
            }
            self.answer(&one, Outcome::Ok);
            return self.perhaps_connected(now);
        }
        let wanted = Some(connection.destination_sap);
        let at = self.sockets.iter().position(|socket| {
            socket.as_ref().is_some_and(|one| one.asap == wanted && (one.pending.len() as u32) < one.queue)
        });
        let refused = check_aal(aal).is_err() || Some(connection.destination) != self.address;
        let Some((at, socket)) =
            at.filter(|_| !refused).and_then(|at| Some((at, self.sockets[at].as_mut()?)))
        else {
            return self.answer(&one, Outcome::Failed);
        };
        self.requests += 1;
        socket.pending.push_back(one);
        self.announce(Descriptor(at as u32));
    }

    pub(super) fn confirmed(
        &mut self,
        now: SimTime,
        subject: Subject,
        connection: Connection,
        outcome: Outcome,
        selected: Resources,
        vc: Option<VcId>,
    ) {
        if !self.settle(subject, &connection) {
            return self.event(Event::Garbage);
        }
        if outcome != Outcome::Ok {
            return self.not_connected(now, &connection, Error::Refused { outcome });
        }
        let socket = self
            .sockets
            .iter_mut()
            .flatten()
            .find(|socket| socket.waiting.is_some_and(|waiting| waiting.connection == connection));
        let Some(socket) = socket else {
            // Closed in the meantime.
            return self.ask_close(now, connection, false);
        };
        if let Some(waiting) = &mut socket.waiting {
            waiting.there = true;
        }
        if let Some(out) = socket.out.first_mut() {
            out.leaves.push(connection);
            if vc.is_some() {
                (out.vc, out.selected) = (vc, selected);
            }
        }
        self.perhaps_connected(now);
    }

    /// Tells those whose circuits are all there.
    pub(super) fn perhaps_connected(&mut self, _now: SimTime) {
        for at in 0..self.sockets.len() {
            let Some(socket) = &mut self.sockets[at] else { continue };
            let Some(waiting) = socket.waiting.filter(|one| one.there && !one.back) else { continue };
            socket.waiting = None;
            let selected = socket.out.first().map(|out| out.selected).unwrap_or_default();
            self.done(Done::Connected { call: waiting.call, selected });
        }
    }

    /// What somebody waits for will not be.
    pub(super) fn not_connected(&mut self, now: SimTime, connection: &Connection, error: Error) {
        let found = self.sockets.iter_mut().flatten().find_map(|socket| {
            let waiting = socket.waiting.filter(|waiting| waiting.connection == *connection)?;
            socket.waiting = None;
            Some((socket, waiting))
        });
        let Some((socket, waiting)) = found else { return };
        let mut gone = Vec::new();
        // A tree keeps its other leaves; all else is given back whole.
        if socket.out.first().is_none_or(|out| out.leaves.is_empty() || out.flow != Dataflow::Multicast) {
            let kept = |there: bool| there.then_some(*connection);
            gone.extend(socket.out.drain(..).filter_map(|_| kept(waiting.there)).map(|one| (one, false)));
            gone.extend(socket.into.drain(..).filter_map(|one| one.connection).map(|one| (one, true)));
        }
        self.transactions.retain(|one| one.connection != *connection);
        self.done(Done::Failed { call: waiting.call, error });
        for (connection, by_receiver) in gone {
            self.ask_close(now, connection, by_receiver);
        }
    }

    /// The other side, or the network, has closed a circuit.
    pub(super) fn closed(&mut self, by_receiver: bool, connection: Connection) {
        let mut whose = None;
        for (at, socket) in self.sockets.iter_mut().enumerate() {
            let Some(socket) = socket else { continue };
            let before = (socket.out.len(), socket.into.len(), socket.pending.len());
            let mut leaf = false;
            if by_receiver {
                for out in &mut socket.out {
                    let leaves = out.leaves.len();
                    out.leaves.retain(|leaf| *leaf != connection);
                    leaf |= out.leaves.len() < leaves;
                }
                socket
                    .out
                    .retain(|out| out.connection.is_none() || out.vc.is_none() || !out.leaves.is_empty());
            } else {
                socket.into.retain(|one| one.connection != Some(connection));
                socket.pending.retain(|one| one.connection != connection);
            }
            if leaf || before != (socket.out.len(), socket.into.len(), socket.pending.len()) {
                whose = Some(Descriptor(at as u32));
            }
        }
        let outcome = Some(if whose.is_some() { Outcome::Ok } else { Outcome::Failed });
        self.signal(Repr::Close { by_receiver, step: Step::Response, connection, outcome });
        if let Some(descriptor) = whose {
            self.event(Event::Gone { descriptor });
            self.end_of_input(descriptor);
        }
    }

    /// A reader for whom nothing can come any more.
    pub(super) fn end_of_input(&mut self, descriptor: Descriptor) {
        let Ok(socket) = self.socket_mut(descriptor) else { return };
        if socket.into.is_empty()
            && let Some((call, _)) = socket.receiving.take()
        {
            self.done(Done::Failed { call, error: Error::Closed });
        }
    }

    // What is asked and answered

    #[expect(clippy::too_many_arguments, reason = "they are those of the call")]
    pub(super) fn ask_open(
        &mut self,
        now: SimTime,
        descriptor: Descriptor,
        connection: Connection,
        qos: Qos,
        aal: Aal,
        (flow, back): (Dataflow, bool),
        call: CallId,
    ) -> Result<(), Error> {
        let limit = self.patience(now);
        let socket = self.socket_mut(descriptor)?;
        socket.waiting = Some(Waiting { call, connection, there: false, back, limit });
        socket.aal = Some(aal);
        let selected = Resources::default();
        socket.out.push(Out { vc: None, connection: Some(connection), leaves: Vec::new(), flow, selected });
        let (desired, minimum, vc) = (qos.targets(), qos.minima(), VcId::default());
        let indication = false;
        let (subject, message) = if flow == Dataflow::Multicast {
            (Subject::Multi, Repr::Multi { indication, connection, aal, desired, minimum, vc })
        } else {
            (Subject::Open, Repr::Open { indication, connection, aal, desired, minimum, must: false, vc })
        };
        self.ask(now, subject, connection, message);
        Ok(())
    }

    pub(super) fn ask_close(&mut self, now: SimTime, connection: Connection, by_receiver: bool) {
        self.transactions.retain(|one| one.connection != connection);
        let subject = if by_receiver { Subject::CloseByReceiver } else { Subject::Close };
        let message = Repr::Close { by_receiver, step: Step::Request, connection, outcome: None };
        self.ask(now, subject, connection, message);
    }

    pub(super) fn ask(&mut self, now: SimTime, subject: Subject, connection: Connection, message: Repr) {
        let due = now + self.config.retry;
        self.transactions.push(Transaction { subject, connection, message, due, tries: 1 });
        self.signal(message);
    }

    /// A request has got its answer; whether one waited for it.
    pub(super) fn settle(&mut self, subject: Subject, connection: &Connection) -> bool {
        let before = self.transactions.len();
        self.transactions.retain(|one| one.subject != subject || one.connection != *connection);
        self.transactions.len() < before
    }

    pub(super) fn answer(&mut self, one: &Pending, outcome: Outcome) {
        let (connection, resources, vc) = (one.connection, one.qos, one.vc);
        self.signal(if one.multicast {
            Repr::MultiOpened { confirmation: false, connection, outcome, resources, vc }
        } else {
            Repr::Opened { confirmation: false, connection, outcome, resources, vc }
        });
    }
}
