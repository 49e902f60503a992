//! The Fore interface of one host: the calls of its library, the driver, and the host's side of SPANS.
//!
//! After the manual pages of release 2.3 (`atm_open(3)` and those it names) and the messages of SPANS. Left out:
//! names (`atm_gethostbyname`), the null adaptation layer, batching of transmit interrupts.
//!
//! | descriptor | calls that it takes |
//! |---|---|
//! | unbound | bind, close |
//! | bound | listen and accept (where it has a queue), connect, and what attaches permanent circuits |
//! | connected | send, receive; connect again where it sends on a tree |
//!
//! Choices: a request is repeated after 3 s, five times; nothing is sent on a duplex connection before both
//! circuits are there; requests that nobody accepts are rejected by the switch, in its time, and a host waits for
//! that.

mod signal;

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use wiretwin_proto::{Output, Payload, Work, WorkKind};
use wiretwin_units::{Bytes, SimTime, Span};
use wiretwin_wire::cell::VcId;
use wiretwin_wire::spans::{Aal, Address, Connection, Outcome, Repr, Resources, Step};

use super::types::{CallId, Dataflow, Descriptor, Endpoint, Error, Info, Qos, RequestId};

/// How a host's driver works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// The longest PDU; 4096 bytes (Lin et al. 1995).
    pub mtu: Bytes,
    /// Access points up to here are the driver's; 1025 is that of IP (SPANS).
    pub reserved: u32,
    /// Descriptors that may be open. Choice: 64.
    pub descriptors: u32,
    /// Bytes that wait before a reader; more are lost, without a word. Choice: 2 MiB.
    pub queue: Bytes,
    /// After this a request is repeated. Choice: 3 s.
    pub retry: Span,
    /// So often. Choice: 5.
    pub tries: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            mtu: Bytes::new(4096),
            reserved: 1025,
            descriptors: 64,
            queue: Bytes::mib(2),
            retry: Span::from_s(3),
            tries: 5,
        }
    }
}

/// What goes to the adapter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transmit {
    /// On the signalling channel.
    Signal(Repr),
    /// On a circuit.
    Pdu {
        /// The circuit that the PDU is sent on.
        vc: VcId,
        /// The payload of the PDU.
        payload: Payload,
    },
}

/// What a call that waited came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done {
    /// A request has come.
    Listened {
        /// The call.
        call: CallId,
        /// Its name.
        request: RequestId,
        /// Who asks.
        calling: Endpoint,
        /// What it asks for, as the network has lowered it.
        qos: Resources,
        /// On which layer.
        aal: Aal,
        /// It is a place on a tree that is offered.
        multicast: bool,
    },
    /// A connection is there, by accept or connect.
    Connected {
        /// The call.
        call: CallId,
        /// What it was given, of the circuit that this side sends on, else of the other.
        selected: Resources,
    },
    /// So much of a PDU.
    Received {
        /// The call.
        call: CallId,
        /// What; the rest of the PDU, if any, comes with the next call.
        payload: Payload,
    },
    /// It came to nothing.
    Failed {
        /// The call.
        call: CallId,
        /// The error that it failed with.
        error: Error,
    },
}

/// What else happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The switch has told the host its address.
    Up,
    /// The switch has started anew: all switched circuits are gone.
    Restarted,
    /// A circuit was closed by the other side.
    Gone {
        /// Whose it was.
        descriptor: Descriptor,
    },
    /// A PDU was dropped for want of room before its reader, or came for nobody.
    Dropped,
    /// A message came that makes no sense here.
    Garbage,
}

/// Outputs of a driver.
pub type DriverOutput = Output<Transmit, Done, Event>;

#[derive(Clone, Debug)]
struct Pending {
    id: RequestId,
    connection: Connection,
    aal: Aal,
    qos: Resources,
    vc: VcId,
    multicast: bool,
}

/// A circuit on which a descriptor sends.
#[derive(Clone, Debug)]
struct Out {
    vc: Option<VcId>,
    /// None for a permanent one; of a tree, that of its first leaf.
    connection: Option<Connection>,
    leaves: Vec<Connection>,
    flow: Dataflow,
    selected: Resources,
}

#[derive(Clone, Copy, Debug)]
struct In {
    vc: VcId,
    connection: Option<Connection>,
}

/// Who waits for a connection.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    call: CallId,
    /// The one that its own circuit has.
    connection: Connection,
    /// Confirmed.
    there: bool,
    /// The circuit back is still to come.
    back: bool,
    limit: SimTime,
}

#[derive(Debug, Default)]
struct Socket {
    asap: Option<u32>,
    queue: u32,
    pending: VecDeque<Pending>,
    /// Requests before this one were told.
    told: u32,
    listening: Option<CallId>,
    waiting: Option<Waiting>,
    out: Vec<Out>,
    into: Vec<In>,
    arrived: VecDeque<Payload>,
    arrived_bytes: Bytes,
    receiving: Option<(CallId, Bytes)>,
    aal: Option<Aal>,
}

/// What a request is repeated for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Subject {
    Status,
    Open,
    Multi,
    Add,
    Close,
    CloseByReceiver,
}

#[derive(Clone, Copy, Debug)]
struct Transaction {
    subject: Subject,
    connection: Connection,
    message: Repr,
    due: SimTime,
    tries: u32,
}

/// The driver of one host.
#[derive(Debug)]
pub struct Driver {
    config: Config,
    epoch: u32,
    address: Option<Address>,
    switch_epoch: Option<u32>,
    /// By number of the descriptor; none where it was closed.
    sockets: Vec<Option<Socket>>,
    transactions: Vec<Transaction>,
    requests: u32,
    ephemeral: u32,
    outputs: VecDeque<DriverOutput>,
}

/// The first access point that the driver chooses (SPANS).
const EPHEMERAL: u32 = 2048;
/// The device.
pub const DEVICE: &str = "/dev/fa0";

impl Driver {
    /// The driver of a host that has just started; `epoch` is another one each time.
    #[must_use]
    pub fn new(config: Config, epoch: u32) -> Self {
        Self {
            config,
            epoch,
            address: None,
            switch_epoch: None,
            sockets: Vec::new(),
            transactions: Vec::new(),
            requests: 0,
            ephemeral: EPHEMERAL,
            outputs: VecDeque::new(),
        }
    }

    // Getters

    /// The host's address, once the switch has told it.
    #[must_use]
    pub const fn address(&self) -> Option<Address> {
        self.address
    }

    /// The access point that a descriptor is bound to.
    #[must_use]
    pub fn access_point(&self, descriptor: Descriptor) -> Option<u32> {
        self.socket(descriptor).ok()?.asap
    }

    /// The channel that a descriptor sends on, the first where it has several.
    #[must_use]
    pub fn sends_on(&self, descriptor: Descriptor) -> Option<VcId> {
        self.socket(descriptor).ok()?.out.first()?.vc
    }

    /// The channels that come in to a descriptor.
    pub fn comes_in_on(&self, descriptor: Descriptor) -> impl Iterator<Item = VcId> {
        self.socket(descriptor).into_iter().flat_map(|socket| socket.into.iter().map(|one| one.vc))
    }

    /// Whether a request waits that who listens was not told of.
    #[must_use]
    pub fn is_asked(&self, descriptor: Descriptor) -> bool {
        let waits = |socket: &Socket| socket.pending.iter().any(|one| one.id.0 >= socket.told);
        self.socket(descriptor).is_ok_and(waits)
    }

    /// The descriptor that a channel comes in to.
    #[must_use]
    pub fn reader_of(&self, vc: VcId) -> Option<Descriptor> {
        let reads = |socket: &Option<Socket>| {
            socket.as_ref().is_some_and(|one| one.into.iter().any(|one| one.vc == vc))
        };
        self.sockets.iter().position(reads).map(|at| Descriptor(at as u32))
    }

    // Commands

    /// Asks the switch for the host's address.
    pub fn start(&mut self, now: SimTime) {
        let message = Repr::StatusRequest { host_epoch: self.epoch };
        self.ask(now, Subject::Status, Connection::default(), message);
    }

    /// `atm_open`.
    ///
    /// # Errors
    /// [`Error::NoDevice`], [`Error::NoBuffers`].
    pub fn open(&mut self, device: &str) -> Result<(Descriptor, Info), Error> {
        if device != DEVICE {
            return Err(Error::NoDevice);
        }
        let most = self.config.descriptors;
        if self.sockets.iter().flatten().count() >= most as usize {
            return Err(Error::NoBuffers { most });
        }
        self.sockets.push(Some(Socket::default()));
        Ok((Descriptor(self.sockets.len() as u32 - 1), Info { mtu: self.config.mtu }))
    }

    /// `atm_bind`: to an access point, or with 0 to one that the driver chooses, which is returned. A `queue` of
    /// 0 is a client's, else so many requests wait.
    ///
    /// # Errors
    /// [`Error::OutState`], [`Error::BadSap`], [`Error::Bound`].
    pub fn bind(&mut self, descriptor: Descriptor, asap: u32, queue: u32) -> Result<u32, Error> {
        let reserved = self.config.reserved;
        if self.socket(descriptor)?.asap.is_some() {
            return Err(Error::OutState { wants: "unbound" });
        }
        let bound =
            |sockets: &[Option<Socket>], asap| sockets.iter().flatten().any(|one| one.asap == Some(asap));
        let asap = match asap {
            0 => {
                while bound(&self.sockets, self.ephemeral) {
                    self.ephemeral = self.ephemeral.checked_add(1).unwrap_or(EPHEMERAL);
                }
                self.ephemeral
            }
            asap if asap <= reserved => return Err(Error::BadSap { asap, reserved }),
            asap if bound(&self.sockets, asap) => return Err(Error::Bound { asap }),
            asap => asap,
        };
        let socket = self.socket_mut(descriptor)?;
        (socket.asap, socket.queue) = (Some(asap), queue);
        Ok(asap)
    }

    /// `atm_listen`: the next request, when there is one. [`Done::Listened`].
    ///
    /// # Errors
    /// [`Error::OutState`] where it has no queue, or another call waits.
    pub fn listen(&mut self, descriptor: Descriptor, call: CallId) -> Result<(), Error> {
        let socket = self.socket_mut(descriptor)?;
        if socket.asap.is_none() || socket.queue == 0 || socket.listening.is_some() {
            return Err(Error::OutState { wants: "bound with a queue, and listens once" });
        }
        socket.listening = Some(call);
        self.announce(descriptor);
        Ok(())
    }

    /// `atm_accept`: answers a request, by this descriptor, which listens no more then, or by another one that
    /// is bound. [`Done::Connected`], for duplex when the circuit back is there.
    ///
    /// # Errors
    /// [`Error::NoRequest`], [`Error::OutState`], [`Error::BadFlow`], [`Error::BadQos`].
    #[expect(clippy::too_many_arguments, reason = "the call has them")]
    pub fn accept(
        &mut self,
        now: SimTime,
        descriptor: Descriptor,
        by: Descriptor,
        request: RequestId,
        qos: Qos,
        flow: Dataflow,
        call: CallId,
    ) -> Result<(), Error> {
        let listener = self.socket(descriptor)?;
        let Some(at) = listener.pending.iter().position(|one| one.id == request) else {
            return Err(Error::NoRequest { request: request.0 });
        };
        let taker = self.socket(by)?;
        if taker.asap.is_none() || taker.waiting.is_some() || !taker.out.is_empty() || !taker.into.is_empty()
        {
            return Err(Error::OutState { wants: "bound, and without a connection" });
        }
        if (flow == Dataflow::Multicast) != listener.pending[at].multicast {
            return Err(Error::BadFlow);
        }
        if !qos.is_sound() {
            return Err(Error::BadQos);
        }
        let listener = self.socket_mut(descriptor)?;
        let Some(one) = listener.pending.remove(at) else { return Ok(()) };
        if by == descriptor {
            listener.queue = 0;
            let others = core::mem::take(&mut listener.pending);
            others.iter().for_each(|other| self.answer(other, Outcome::Failed));
        }
        self.answer(&one, Outcome::Ok);
        let taker = self.socket_mut(by)?;
        taker.into.push(In { vc: one.vc, connection: Some(one.connection) });
        taker.aal = Some(one.aal);
        if flow == Dataflow::Duplex {
            let Connection { destination, source, destination_sap, source_sap } = one.connection;
            let back = Connection {
                destination: source,
                source: destination,
                destination_sap: source_sap,
                source_sap: destination_sap,
            };
            return self.ask_open(now, by, back, qos, one.aal, (Dataflow::Duplex, false), call);
        }
        self.done(Done::Connected { call, selected: one.qos });
        Ok(())
    }

    /// `atm_connect`. [`Done::Connected`] or [`Done::Failed`]. With [`Dataflow::Multicast`] a descriptor that has
    /// a tree adds a leaf to it.
    ///
    /// # Errors
    /// [`Error::OutState`], [`Error::BadAal`] for types 0, 1 and 2, [`Error::BadQos`], [`Error::BadFlow`],
    /// [`Error::NoNetwork`].
    #[expect(clippy::too_many_arguments, reason = "the call has them")]
    pub fn connect(
        &mut self,
        now: SimTime,
        descriptor: Descriptor,
        to: Endpoint,
        qos: Qos,
        aal: Aal,
        flow: Dataflow,
        call: CallId,
    ) -> Result<(), Error> {
        check_aal(aal)?;
        if !qos.is_sound() {
            return Err(Error::BadQos);
        }
        let socket = self.socket(descriptor)?;
        let Some(asap) = socket.asap.filter(|_| socket.waiting.is_none() && socket.queue == 0) else {
            return Err(Error::OutState { wants: "bound without a queue, and connects once" });
        };
        let source = self.address.ok_or(Error::NoNetwork)?;
        let connection =
            Connection { destination: to.nsap, source, destination_sap: to.asap, source_sap: asap };
        if let Some(tree) = socket.out.first() {
            // Only a tree takes another destination.
            if flow != Dataflow::Multicast || tree.flow != Dataflow::Multicast {
                return Err(Error::BadFlow);
            }
            let (Some(first), Some(_)) = (tree.connection, tree.vc) else {
                return Err(Error::OutState { wants: "connected" });
            };
            if tree.leaves.contains(&connection) {
                return Err(Error::OutState { wants: "without this leaf" });
            }
            let limit = self.patience(now);
            let waiting = Waiting { call, connection, there: false, back: false, limit };
            self.socket_mut(descriptor)?.waiting = Some(waiting);
            let message = Repr::Add { indication: false, leaf: connection, tree: first };
            self.ask(now, Subject::Add, connection, message);
            return Ok(());
        }
        if !socket.into.is_empty() {
            return Err(Error::OutState { wants: "without a connection" });
        }
        self.ask_open(now, descriptor, connection, qos, aal, (flow, flow == Dataflow::Duplex), call)
    }

    /// `atm_send`: one PDU, on the first circuit of the descriptor.
    ///
    /// # Errors
    /// [`Error::OutState`], [`Error::TooLong`].
    pub fn send(&mut self, descriptor: Descriptor, payload: Payload) -> Result<(), Error> {
        let vc = self.socket(descriptor)?.out.first().and_then(|out| out.vc);
        let vc = vc.filter(|_| self.socket(descriptor).is_ok_and(|one| one.waiting.is_none_or(|w| !w.back)));
        self.send_on(vc.ok_or(Error::OutState { wants: "connected to send" })?, payload)
    }

    /// `atm_sendto`: one PDU, on this circuit of the descriptor.
    ///
    /// # Errors
    /// [`Error::BadChannel`], [`Error::TooLong`].
    pub fn send_to(&mut self, descriptor: Descriptor, payload: Payload, vc: VcId) -> Result<(), Error> {
        if !self.socket(descriptor)?.out.iter().any(|out| out.vc == Some(vc)) {
            return Err(bad_channel(vc));
        }
        self.send_on(vc, payload)
    }

    fn send_on(&mut self, vc: VcId, payload: Payload) -> Result<(), Error> {
        let (bytes, most) = (payload.length, self.config.mtu);
        if bytes > most {
            return Err(Error::TooLong { bytes, most });
        }
        self.work(WorkKind::CopyIn, bytes);
        self.outputs.push_back(Output::Transmit(Transmit::Pdu { vc, payload }));
        Ok(())
    }

    /// `atm_recv`: up to `most` bytes of a PDU, when one is there. [`Done::Received`].
    ///
    /// # Errors
    /// [`Error::OutState`] where nothing comes in, or another call waits.
    pub fn receive(&mut self, descriptor: Descriptor, most: Bytes, call: CallId) -> Result<(), Error> {
        let socket = self.socket_mut(descriptor)?;
        let dry = socket.into.is_empty() && socket.arrived.is_empty();
        if dry || socket.receiving.is_some() {
            return Err(Error::OutState { wants: "connected to receive, and reads once" });
        }
        socket.receiving = Some((call, most));
        self.hand_over(descriptor);
        Ok(())
    }

    /// `atm_bind_pvc`: a permanent circuit comes in. May be called for several.
    ///
    /// # Errors
    /// [`Error::OutState`], [`Error::BadAal`], [`Error::BadChannel`] where it is another's.
    pub fn bind_pvc(&mut self, descriptor: Descriptor, vc: VcId, aal: Aal) -> Result<(), Error> {
        self.check_permanent(descriptor, aal)?;
        if self.sockets.iter().flatten().any(|socket| socket.into.iter().any(|one| one.vc == vc)) {
            return Err(bad_channel(vc));
        }
        self.socket_mut(descriptor)?.into.push(In { vc, connection: None });
        Ok(())
    }

    /// `atm_connect_pvc`: sends on a permanent circuit.
    ///
    /// # Errors
    /// As [`Driver::bind_pvc`].
    pub fn connect_pvc(
        &mut self,
        descriptor: Descriptor,
        vc: VcId,
        aal: Aal,
        selected: Resources,
    ) -> Result<(), Error> {
        self.check_permanent(descriptor, aal)?;
        if self.sockets.iter().flatten().any(|socket| socket.out.iter().any(|one| one.vc == Some(vc))) {
            return Err(bad_channel(vc));
        }
        let (leaves, flow) = (Vec::new(), Dataflow::Simplex);
        self.socket_mut(descriptor)?.out.push(Out { vc: Some(vc), connection: None, leaves, flow, selected });
        Ok(())
    }

    /// `atm_unbind_pvc`.
    ///
    /// # Errors
    /// [`Error::BadChannel`].
    pub fn unbind_pvc(&mut self, descriptor: Descriptor, vc: VcId) -> Result<(), Error> {
        let into = &mut self.socket_mut(descriptor)?.into;
        let at = into.iter().position(|one| one.vc == vc && one.connection.is_none());
        into.remove(at.ok_or(bad_channel(vc))?);
        Ok(())
    }

    /// `atm_disconnect_pvc`.
    ///
    /// # Errors
    /// [`Error::BadChannel`].
    pub fn disconnect_pvc(&mut self, descriptor: Descriptor, vc: VcId) -> Result<(), Error> {
        let out = &mut self.socket_mut(descriptor)?.out;
        let at = out.iter().position(|one| one.vc == Some(vc) && one.connection.is_none());
        out.remove(at.ok_or(bad_channel(vc))?);
        Ok(())
    }

    /// `atm_close`: gives back all that the descriptor has. Calls that wait on it fail.
    ///
    /// # Errors
    /// [`Error::BadDescriptor`].
    pub fn close(&mut self, now: SimTime, descriptor: Descriptor) -> Result<(), Error> {
        self.socket(descriptor)?;
        let Some(socket) = self.sockets[descriptor.0 as usize].take() else { return Ok(()) };
        socket.pending.iter().for_each(|one| self.answer(one, Outcome::Failed));
        let waits = [socket.listening, socket.receiving.map(|one| one.0), socket.waiting.map(|one| one.call)];
        for call in waits.into_iter().flatten() {
            self.done(Done::Failed { call, error: Error::Closed });
        }
        for out in socket.out {
            if let Some(connection) = out.connection {
                self.ask_close(now, connection, false);
            }
        }
        for one in socket.into {
            if let Some(connection) = one.connection {
                self.ask_close(now, connection, true);
            }
        }
        Ok(())
    }

    // Handlers

    /// A message has come on the signalling channel.
    pub fn handle_signal(&mut self, now: SimTime, message: Repr) {
        match message {
            Repr::StatusIndication { switch_epoch, host, .. } => self.status(switch_epoch, host),
            Repr::Open { indication: true, connection, aal, desired, vc, .. } => {
                self.offered(now, connection, aal, desired, vc, false);
            }
            Repr::Multi { indication: true, connection, aal, desired, vc, .. } => {
                self.offered(now, connection, aal, desired, vc, true);
            }
            Repr::Opened { confirmation: true, connection, outcome, resources, vc } => {
                self.confirmed(now, Subject::Open, connection, outcome, resources, Some(vc));
            }
            Repr::MultiOpened { confirmation: true, connection, outcome, resources, vc } => {
                self.confirmed(now, Subject::Multi, connection, outcome, resources, Some(vc));
            }
            Repr::Added { confirmation: true, connection, outcome, resources } => {
                self.confirmed(now, Subject::Add, connection, outcome, resources, None);
            }
            Repr::Close { by_receiver, step: Step::Indication, connection, .. } => {
                self.closed(by_receiver, connection);
            }
            Repr::Close { by_receiver, step: Step::Confirmation, connection, .. } => {
                let subject = if by_receiver { Subject::CloseByReceiver } else { Subject::Close };
                self.settle(subject, &connection);
            }
            Repr::VciRange { .. } => {}
            _ => self.event(Event::Garbage),
        }
    }

    /// A PDU has come on a circuit.
    pub fn handle_pdu(&mut self, vc: VcId, payload: Payload) {
        let room = self.config.queue;
        let found = self.sockets.iter_mut().enumerate().find_map(|(at, socket)| {
            let socket = socket.as_mut().filter(|one| one.into.iter().any(|one| one.vc == vc))?;
            Some((Descriptor(at as u32), socket))
        });
        let Some((descriptor, socket)) = found else { return self.event(Event::Dropped) };
        if socket.arrived_bytes + payload.length > room {
            return self.event(Event::Dropped);
        }
        socket.arrived_bytes += payload.length;
        socket.arrived.push_back(payload);
        self.hand_over(descriptor);
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: SimTime) {
        for at in (0..self.transactions.len()).rev() {
            let one = &mut self.transactions[at];
            if one.due > now {
                continue;
            }
            // Who asks for its address asks for ever.
            if one.tries < self.config.tries || one.subject == Subject::Status {
                one.tries = one.tries.saturating_add(1);
                one.due = now + self.config.retry;
                let message = one.message;
                self.signal(message);
                continue;
            }
            // The switch answers in the end, once it has lost its own patience: until then this host waits.
            match one.subject {
                Subject::Close | Subject::CloseByReceiver => drop(self.transactions.remove(at)),
                _ => one.due = SimTime::MAX,
            }
        }
        let late = |socket: &Socket| socket.waiting.filter(|one| one.limit <= now).map(|one| one.connection);
        let late: Vec<Connection> = self.sockets.iter().flatten().filter_map(late).collect();
        for connection in late {
            self.not_connected(now, &connection, Error::TimedOut);
        }
    }

    /// What is to be done next.
    pub fn poll_output(&mut self) -> DriverOutput {
        if let Some(output) = self.outputs.pop_front() {
            return output;
        }
        let limits = self.sockets.iter().flatten().filter_map(|socket| socket.waiting).map(|one| one.limit);
        let dues = self.transactions.iter().map(|one| one.due).filter(|due| *due < SimTime::MAX);
        Output::Timeout(dues.chain(limits).min())
    }

    // Parts

    fn socket(&self, descriptor: Descriptor) -> Result<&Socket, Error> {
        let found = self.sockets.get(descriptor.0 as usize).and_then(Option::as_ref);
        found.ok_or(Error::BadDescriptor { descriptor: descriptor.0 })
    }

    fn socket_mut(&mut self, descriptor: Descriptor) -> Result<&mut Socket, Error> {
        let found = self.sockets.get_mut(descriptor.0 as usize).and_then(Option::as_mut);
        found.ok_or(Error::BadDescriptor { descriptor: descriptor.0 })
    }

    fn check_permanent(&self, descriptor: Descriptor, aal: Aal) -> Result<(), Error> {
        let socket = self.socket(descriptor)?;
        check_aal(aal)?;
        if socket.asap.is_none() || socket.waiting.is_some() || socket.queue > 0 {
            return Err(Error::OutState { wants: "bound without a queue" });
        }
        Ok(())
    }

    /// How long a connection may take to come to be, by all that this host knows.
    fn patience(&self, now: SimTime) -> SimTime {
        now.saturating_add(self.config.retry * (2 * u64::from(self.config.tries) + 2))
    }

    /// Tells who listens of the first request that it has not been told of: requests may be answered in any
    /// order, and each is told once.
    fn announce(&mut self, descriptor: Descriptor) {
        let told = self.requests_told(descriptor);
        let Ok(socket) = self.socket_mut(descriptor) else { return };
        let (Some(call), Some(one)) = (socket.listening, socket.pending.iter().find(|one| one.id.0 >= told))
        else {
            return;
        };
        let Connection { source, source_sap, .. } = one.connection;
        let calling = Endpoint { nsap: source, asap: source_sap };
        let (request, qos, aal, multicast) = (one.id, one.qos, one.aal, one.multicast);
        socket.listening = None;
        socket.told = request.0 + 1;
        self.done(Done::Listened { call, request, calling, qos, aal, multicast });
    }

    fn requests_told(&self, descriptor: Descriptor) -> u32 {
        self.socket(descriptor).map_or(0, |socket| socket.told)
    }

    /// Gives a reader what there is.
    fn hand_over(&mut self, descriptor: Descriptor) {
        let Ok(socket) = self.socket_mut(descriptor) else { return };
        let (Some((call, most)), Some(first)) = (socket.receiving, socket.arrived.front_mut()) else {
            return;
        };
        let length = most.min(first.length);
        let payload = Payload { length, ..*first };
        first.start += length;
        first.length -= length;
        if first.length == Bytes::new(0) {
            socket.arrived.pop_front();
        }
        socket.arrived_bytes -= length;
        socket.receiving = None;
        self.work(WorkKind::CopyOut, length);
        self.done(Done::Received { call, payload });
    }

    fn signal(&mut self, message: Repr) {
        self.outputs.push_back(Output::Transmit(Transmit::Signal(message)));
    }

    fn done(&mut self, done: Done) {
        self.outputs.push_back(Output::Deliver(done));
    }

    fn event(&mut self, event: Event) {
        self.outputs.push_back(Output::Event(event));
    }

    fn work(&mut self, kind: WorkKind, bytes: Bytes) {
        self.outputs.push_back(Output::Work(Work { kind, bytes, count: 1 }));
    }
}

/// The driver rejects types 0, 1 and 2.
const fn check_aal(aal: Aal) -> Result<(), Error> {
    match aal {
        Aal::Type3 | Aal::Type4 | Aal::Type5 => Ok(()),
        Aal::Null | Aal::Type1 | Aal::Type2 => Err(Error::BadAal { aal }),
    }
}

fn bad_channel(vc: VcId) -> Error {
    Error::BadChannel { vpi: vc.vpi.get(), vci: vc.vci.0 }
}
