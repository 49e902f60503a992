//! One end: its variables, what its user and its management ask for, and what comes out.

use alloc::collections::VecDeque;

use wiretwin_units::{Bytes, Seq, SimTime};

use super::config::{Config, ConfigError, Credit};
use super::event::{Counters, Delivered, Event, ManagementError, RequestError, Retrieval, Source};
use super::pdu::Pdu;
use super::receiver::Receiver;
use super::sender::Sender;
use super::state::State;
use super::timers::{Timer, Timers};
use super::{NUMBER_BITS, SscopOutput};
use crate::{Output, Payload, Work, WorkKind};

/// One end of a connection.
///
/// The numbers of the standard have 24 bits ([`Endpoint`](super::Endpoint)); others are for tests, which
/// wrap sooner.
#[derive(Clone, Debug)]
pub struct Machine<const BITS: u32 = NUMBER_BITS> {
    pub(super) config: Config,
    pub(super) state: State,
    pub(super) now: SimTime,
    pub(super) sender: Sender<BITS, Payload>,
    pub(super) receiver: Receiver<BITS, Payload>,
    pub(super) vt_cc: u32,
    pub(super) vt_sq: Seq<8>,
    pub(super) vr_sq: Seq<8>,
    /// Whether the peer lets something be sent, as far as management was told.
    pub(super) credit: bool,
    pub(super) timers: Timers,
    /// What the user said with the PDUs that may have to be sent again.
    pub(super) uu: UserToUser,
    /// S of the END that may have to be sent again.
    pub(super) ended_by_sscop: bool,
    /// The layer below takes nothing.
    busy: bool,
    unnumbered: VecDeque<Payload>,
    management: VecDeque<Payload>,
    pub(super) outputs: VecDeque<SscopOutput<BITS>>,
    pub(super) counters: Counters,
}

/// Data between users, by the PDU that carries them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct UserToUser {
    pub bgn: Option<Payload>,
    pub bgak: Option<Payload>,
    pub bgrej: Option<Payload>,
    pub end: Option<Payload>,
    pub rs: Option<Payload>,
}

impl<const BITS: u32> Machine<BITS> {
    /// An end without a connection.
    ///
    /// # Errors
    /// [`ConfigError`] for parameters that cannot be.
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        config.check(BITS)?;
        Ok(Self {
            config,
            state: State::Idle,
            now: SimTime::ZERO,
            sender: Sender::new(),
            receiver: Receiver::new(),
            vt_cc: 0,
            vt_sq: Seq::ZERO,
            vr_sq: Seq::ZERO,
            credit: true,
            timers: Timers::new(),
            uu: UserToUser::default(),
            ended_by_sscop: false,
            busy: false,
            unnumbered: VecDeque::new(),
            management: VecDeque::new(),
            outputs: VecDeque::new(),
            counters: Counters::default(),
        })
    }

    /// The state.
    pub const fn state(&self) -> State {
        self.state
    }

    /// What was counted.
    pub const fn counters(&self) -> Counters {
        self.counters
    }

    /// SDs that wait to be sent for the first time.
    pub fn waiting(&self) -> usize {
        self.sender.waiting()
    }

    /// SDs that were sent and are not acknowledged in order.
    pub fn unacknowledged(&self) -> usize {
        self.sender.unacknowledged()
    }

    /// SDs that came out of order and are kept.
    pub fn kept(&self) -> usize {
        self.receiver.kept()
    }

    // What the user asks for.

    /// AA-ESTABLISH.request.
    ///
    /// # Errors
    /// [`RequestError`] unless in state Idle or Outgoing Disconnection Pending, or for more than `j`
    /// octets.
    pub fn establish(&mut self, now: SimTime, uu: Option<Payload>) -> Result<(), RequestError> {
        use State::{Idle, OutgoingDisconnectionPending};
        self.begin(now, "AA-ESTABLISH.request", &[Idle, OutgoingDisconnectionPending], uu)?;
        self.uu.bgn = uu;
        self.clear_transmitter();
        self.vt_cc = 1;
        self.vt_sq = self.vt_sq.next();
        self.initialize_mr();
        self.send_bgn();
        self.start(Timer::Cc);
        self.state = State::OutgoingConnectionPending;
        Ok(())
    }

    /// AA-ESTABLISH.response.
    ///
    /// # Errors
    /// [`RequestError`] unless in state Incoming Connection Pending, or for more than `j` octets.
    pub fn respond_establish(&mut self, now: SimTime, uu: Option<Payload>) -> Result<(), RequestError> {
        self.begin(now, "AA-ESTABLISH.response", &[State::IncomingConnectionPending], uu)?;
        self.uu.bgak = uu;
        self.clear_transmitter();
        self.initialize_mr();
        self.send_bgak();
        self.enter_data_transfer();
        Ok(())
    }

    /// AA-RELEASE.request: ends the connection, or rejects the one the peer asks for.
    ///
    /// # Errors
    /// [`RequestError`] in state Idle or Outgoing Disconnection Pending, or for more than `j` octets.
    pub fn release(&mut self, now: SimTime, uu: Option<Payload>) -> Result<(), RequestError> {
        self.begin(now, "AA-RELEASE.request", &State::ALL, uu)?;
        match self.state {
            State::Idle | State::OutgoingDisconnectionPending => {
                let (request, state) = ("AA-RELEASE.request", self.state);
                return Err(RequestError::State { request, state });
            }
            State::IncomingConnectionPending => {
                self.uu.bgrej = uu;
                self.transmit(Pdu::Bgrej { uu });
                self.state = State::Idle;
                return Ok(());
            }
            State::DataTransferReady => {
                self.stop_data_timers();
                self.prepare_retrieval();
            }
            State::OutgoingRecoveryPending => self.receiver.clear(),
            _ => {}
        }
        self.uu.end = uu;
        self.vt_cc = 1;
        self.send_end(false);
        self.start(Timer::Cc);
        self.state = State::OutgoingDisconnectionPending;
        Ok(())
    }

    /// AA-DATA.request: sends this, in order and once.
    ///
    /// In state Outgoing Recovery Pending it waits for the connection to be back, or is dropped with all
    /// else that waits if buffers are cleared.
    ///
    /// # Errors
    /// [`RequestError`] in other states than these two, or for more than `k` octets.
    pub fn send(&mut self, now: SimTime, payload: Payload) -> Result<(), RequestError> {
        self.now = now;
        if self.state != State::DataTransferReady && self.state != State::OutgoingRecoveryPending {
            return Err(RequestError::State { request: "AA-DATA.request", state: self.state });
        }
        self.unless_longer(payload, self.config.k)?;
        if self.state == State::DataTransferReady || !self.config.clear_buffers {
            self.sender.push(payload);
        }
        Ok(())
    }

    /// AA-RESYNC.request: forgets what is under way both ways.
    ///
    /// # Errors
    /// [`RequestError`] unless data flow or a recovery is under way, or for more than `j` octets.
    pub fn resync(&mut self, now: SimTime, uu: Option<Payload>) -> Result<(), RequestError> {
        use State::{DataTransferReady, IncomingRecoveryPending, OutgoingRecoveryPending};
        let states = [
            OutgoingRecoveryPending,
            State::RecoveryResponsePending,
            IncomingRecoveryPending,
            DataTransferReady,
        ];
        self.begin(now, "AA-RESYNC.request", &states, uu)?;
        self.uu.rs = uu;
        self.stop_data_timers();
        self.vt_cc = 1;
        self.vt_sq = self.vt_sq.next();
        self.initialize_mr();
        self.send_rs();
        if self.state == DataTransferReady {
            self.release_buffers();
        } else {
            self.clear_transmitter();
            self.receiver.clear();
        }
        self.start(Timer::Cc);
        self.state = State::OutgoingResynchronizationPending;
        Ok(())
    }

    /// AA-RESYNC.response.
    ///
    /// # Errors
    /// [`RequestError`] unless in state Incoming Resynchronization Pending.
    pub fn respond_resync(&mut self, now: SimTime) -> Result<(), RequestError> {
        self.begin(now, "AA-RESYNC.response", &[State::IncomingResynchronizationPending], None)?;
        self.initialize_mr();
        self.send_rsak();
        self.clear_transmitter();
        self.enter_data_transfer();
        Ok(())
    }

    /// AA-RECOVER.response.
    ///
    /// # Errors
    /// [`RequestError`] unless in state Recovery Response Pending or Incoming Recovery Pending.
    pub fn respond_recover(&mut self, now: SimTime) -> Result<(), RequestError> {
        use State::{IncomingRecoveryPending, RecoveryResponsePending};
        self.begin(now, "AA-RECOVER.response", &[RecoveryResponsePending, IncomingRecoveryPending], None)?;
        if self.state == IncomingRecoveryPending {
            self.initialize_mr();
            self.send_erak();
        }
        self.enter_data_transfer();
        Ok(())
    }

    /// AA-UNITDATA.request: sends this, maybe, in any state.
    ///
    /// # Errors
    /// [`RequestError`] for more than `k` octets.
    pub fn send_unitdata(&mut self, now: SimTime, payload: Payload) -> Result<(), RequestError> {
        self.now = now;
        self.unless_longer(payload, self.config.k)?;
        self.unnumbered.push_back(payload);
        Ok(())
    }

    /// MAA-UNITDATA.request: the same for management.
    ///
    /// # Errors
    /// [`RequestError`] for more than `k` octets.
    pub fn send_management(&mut self, now: SimTime, payload: Payload) -> Result<(), RequestError> {
        self.now = now;
        self.unless_longer(payload, self.config.k)?;
        self.management.push_back(payload);
        Ok(())
    }

    /// AA-RETRIEVE.request: gives back what was not delivered for sure.
    ///
    /// # Errors
    /// [`RequestError`] in states Outgoing Connection Pending, Outgoing Resynchronization Pending,
    /// Outgoing Recovery Pending and Data Transfer Ready.
    pub fn retrieve(&mut self, now: SimTime, what: Retrieval<BITS>) -> Result<(), RequestError> {
        use State::{IncomingConnectionPending, OutgoingDisconnectionPending, RecoveryResponsePending};
        let states = [
            State::Idle,
            IncomingConnectionPending,
            OutgoingDisconnectionPending,
            State::IncomingResynchronizationPending,
            RecoveryResponsePending,
            State::IncomingRecoveryPending,
        ];
        self.begin(now, "AA-RETRIEVE.request", &states, None)?;
        let from = match what {
            Retrieval::Unsent => None,
            Retrieval::Unacknowledged => Some(self.sender.vt_a),
            Retrieval::After(number) => Some(number.next()),
        };
        let give = |payload| Output::Deliver(Delivered::Retrieved(payload));
        if let Some(from) = from {
            self.outputs.extend(self.sender.retrieve_sent(from).map(give));
        }
        self.outputs.extend(self.sender.retrieve_waiting().map(give));
        self.tell(Event::RetrieveComplete);
        Ok(())
    }

    /// Lets the peer send so many SDs more; for [`Credit::Granted`]. The peer learns of it with the next
    /// STAT or USTAT.
    ///
    /// # Errors
    /// [`RequestError::Window`] where that is more than half of the numbers.
    pub fn grant(&mut self, count: u32) -> Result<(), RequestError> {
        let most = (Seq::<BITS>::MODULUS / 2 - 1) as u32;
        let reach = u64::from(self.receiver.vr_mr.offset_from(self.receiver.vr_r)) + u64::from(count);
        if reach > most.into() {
            return Err(RequestError::Window { reach, most });
        }
        self.receiver.vr_mr += count;
        Ok(())
    }

    /// Whether the layer below takes anything: while it is busy, what a user sends waits, and only
    /// control PDUs come out.
    pub fn set_busy(&mut self, now: SimTime, busy: bool) {
        self.now = now;
        self.busy = busy;
    }

    // What happens.

    /// Takes a PDU.
    pub fn handle_pdu(&mut self, now: SimTime, pdu: Pdu<BITS>) {
        self.handle_timeout(now);
        if self.config.work {
            self.work(WorkKind::SscopIn, &pdu);
        }
        let most = match &pdu {
            Pdu::Sd { .. } | Pdu::Ud { .. } | Pdu::Md { .. } => self.config.k,
            _ => self.config.j,
        };
        let long = pdu.payload().is_some_and(|payload| payload.length > most)
            || matches!(&pdu, Pdu::Stat { list, .. } if list.len() > self.config.max_stat as usize);
        if long {
            return self.error(ManagementError::Length);
        }
        match pdu {
            Pdu::Ud { payload } => self.outputs.push_back(Output::Deliver(Delivered::Unitdata(payload))),
            Pdu::Md { payload } => self.outputs.push_back(Output::Deliver(Delivered::Management(payload))),
            Pdu::Sd { s, payload } if self.state == State::DataTransferReady => self.handle_sd(s, payload),
            pdu => self.handle_in_state(pdu),
        }
    }

    /// Takes octets that are no PDU: error U.
    pub fn handle_bad_pdu(&mut self, now: SimTime) {
        self.handle_timeout(now);
        self.error(ManagementError::Length);
    }

    /// Lets time pass.
    #[inline]
    pub fn handle_timeout(&mut self, now: SimTime) {
        self.now = now;
        while let Some(timer) = self.timers.take_expired(now) {
            self.expire(timer);
        }
    }

    /// The next thing to do. To be called after each call that takes the time, until it yields
    /// [`Output::Timeout`].
    pub fn poll_output(&mut self) -> SscopOutput<BITS> {
        loop {
            if let Some(output) = self.outputs.pop_front() {
                return output;
            }
            if self.busy || !self.send_something() {
                return Output::Timeout(self.timers.next());
            }
        }
    }

    fn send_something(&mut self) -> bool {
        if self.state == State::DataTransferReady && self.send_opportunity() {
            return true;
        }
        if let Some(payload) = self.unnumbered.pop_front() {
            self.transmit(Pdu::Ud { payload });
        } else if let Some(payload) = self.management.pop_front() {
            self.transmit(Pdu::Md { payload });
        } else {
            return false;
        }
        true
    }

    // Parts.

    fn begin(
        &mut self,
        now: SimTime,
        request: &'static str,
        states: &[State],
        uu: Option<Payload>,
    ) -> Result<(), RequestError> {
        if !states.contains(&self.state) {
            return Err(RequestError::State { request, state: self.state });
        }
        uu.map_or(Ok(()), |uu| self.unless_longer(uu, self.config.j))?;
        self.now = now;
        Ok(())
    }

    fn unless_longer(&self, payload: Payload, most: Bytes) -> Result<(), RequestError> {
        let found = payload.length;
        if found > most { Err(RequestError::Length { found, most }) } else { Ok(()) }
    }

    pub(super) fn start(&mut self, timer: Timer) {
        let span = match timer {
            Timer::Cc => self.config.timer_cc,
            Timer::NoResponse => self.config.timer_no_response,
            Timer::Poll => self.config.timer_poll,
            Timer::KeepAlive => self.config.timer_keep_alive,
            Timer::Idle => self.config.timer_idle,
        };
        // A deadline at the end of time would be that of a timer that does not run.
        let last = SimTime::from_ps(u64::MAX - 1);
        self.timers.set(timer, self.now.saturating_add(span).min(last));
    }

    pub(super) fn stop_data_timers(&mut self) {
        for timer in [Timer::KeepAlive, Timer::NoResponse, Timer::Idle, Timer::Poll] {
            self.timers.stop(timer);
        }
    }

    /// `Initialize state variables`, `Set data transfer timers`, state 10.
    pub(super) fn enter_data_transfer(&mut self) {
        self.sender.initialize();
        self.receiver.initialize();
        self.credit = true;
        self.timers.stop(Timer::Cc);
        self.start(Timer::Poll);
        self.start(Timer::NoResponse);
        self.state = State::DataTransferReady;
    }

    /// `Initialize VR(MR)`: VR(R) will be 0 when it counts.
    pub(super) fn initialize_mr(&mut self) {
        self.receiver.vr_mr = Seq::wrapping(self.config.window);
    }

    pub(super) fn move_window(&mut self) {
        if self.config.credit == Credit::Automatic {
            self.receiver.vr_mr = self.receiver.vr_r + self.config.window;
        }
    }

    /// `Clear transmitter`: what was kept for retrieval goes.
    pub(super) fn clear_transmitter(&mut self) {
        if !self.config.clear_buffers {
            self.sender.clear_queue();
            self.sender.clear_buffer();
        }
    }

    /// `Release buffers`.
    fn release_buffers(&mut self) {
        self.sender.clear_queue();
        self.sender.clear_buffer();
        self.receiver.clear();
    }

    /// `Prepare retrieval`.
    pub(super) fn prepare_retrieval(&mut self) {
        self.prepare_recovery();
        self.receiver.clear();
    }

    /// `Prepare recovery`.
    pub(super) fn prepare_recovery(&mut self) {
        if self.config.clear_buffers {
            self.sender.clear_queue();
            self.sender.clear_buffer();
        }
        self.sender.clear_wanted();
    }

    /// `Deliver data`: what is kept behind gaps goes up at a recovery.
    ///
    /// Choice: it is dropped with [`Config::clear_buffers`], as one implementation does; the user can
    /// tell gaps by SN otherwise.
    pub(super) fn deliver_kept(&mut self) {
        if self.config.clear_buffers {
            self.receiver.clear();
        } else {
            let give = |(number, payload)| Output::Deliver(Delivered::Data { payload, number });
            self.outputs.extend(self.receiver.take_kept().map(give));
        }
    }

    pub(super) fn release_indication(&mut self, source: Source, uu: Option<Payload>) {
        self.tell(Event::ReleaseIndication { source, uu });
    }

    pub(super) fn tell(&mut self, event: Event) {
        self.outputs.push_back(Output::Event(event));
    }

    pub(super) fn error(&mut self, error: ManagementError) {
        self.tell(Event::Error(error));
    }

    fn work(&mut self, kind: WorkKind, pdu: &Pdu<BITS>) {
        let words = match pdu {
            Pdu::Stat { list, .. } => 12 + 4 * list.len() as u64,
            Pdu::Sd { .. } | Pdu::Ud { .. } | Pdu::Md { .. } => 4,
            Pdu::Ustat { .. } => 16,
            _ => 8,
        };
        let front = pdu.payload().map_or(0, |payload| payload.length.get().next_multiple_of(4));
        self.outputs.push_back(Output::Work(Work { kind, bytes: Bytes::new(words + front), count: 1 }));
    }

    #[inline]
    pub(super) fn transmit(&mut self, pdu: Pdu<BITS>) {
        if self.config.work {
            self.work(WorkKind::SscopOut, &pdu);
        }
        self.outputs.push_back(Output::Transmit(pdu));
    }

    pub(super) fn send_bgn(&mut self) {
        self.transmit(Pdu::Bgn { sq: self.vt_sq, mr: self.receiver.vr_mr, uu: self.uu.bgn });
    }

    pub(super) fn send_bgak(&mut self) {
        self.transmit(Pdu::Bgak { mr: self.receiver.vr_mr, uu: self.uu.bgak });
    }

    pub(super) fn send_end(&mut self, by_sscop: bool) {
        self.ended_by_sscop = by_sscop;
        if by_sscop {
            self.uu.end = None;
        }
        self.transmit(Pdu::End { by_sscop, uu: self.uu.end });
    }

    pub(super) fn send_rs(&mut self) {
        self.transmit(Pdu::Rs { sq: self.vt_sq, mr: self.receiver.vr_mr, uu: self.uu.rs });
    }

    pub(super) fn send_rsak(&mut self) {
        self.transmit(Pdu::Rsak { mr: self.receiver.vr_mr });
    }

    pub(super) fn send_er(&mut self) {
        self.transmit(Pdu::Er { sq: self.vt_sq, mr: self.receiver.vr_mr });
    }

    pub(super) fn send_erak(&mut self) {
        self.transmit(Pdu::Erak { mr: self.receiver.vr_mr });
    }
}
