//! One end of a connection: its variables, its user's commands, its getters.

use alloc::sync::Arc;

use wiretwin_units::{Bytes, SimTime};

use super::config::{Config, DelayedAck, MOST_SCALE, Pieces};
use super::congestion::Window;
use super::event::{CommandError, Counters, Read, Reason};
use super::output::Stub;
use super::rtt::Rtt;
use super::segment::{Flags, Segment, SeqNumber, TIMESTAMPS_OCTETS};
use super::state::State;
use super::tally::Tally;
use super::timers::{Timer, Timers};
use crate::ranges::{Near, Place, Ranges};
use crate::{MessageId, WorkKind};

/// What one connection has that others of its host have not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setup {
    /// The initial send sequence number; from the host's clock or, in the simulated world, any.
    pub iss: SeqNumber,
    /// The stream that this end sends: segments carry ranges of it.
    pub stream: MessageId,
    /// The stream that it receives: what is delivered are ranges of it.
    pub peer_stream: MessageId,
    /// The largest IP packet of the interface, in octets.
    pub mtu: u16,
}

/// What is to be told, in the order in which it is told.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pending {
    /// Something of what follows may be there: it is looked for at every output.
    pub any: bool,
    pub established: bool,
    pub urgent: bool,
    pub end_of_stream: bool,
    pub writable: bool,
    pub closed: Option<Reason>,
    /// A reset that no connection stands behind.
    pub reset: Option<Reset>,
    /// The work for it was put out.
    pub reset_paid: bool,
}

/// The numbers of a reset: with an acknowledgment where the segment that it answers had none.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reset {
    pub seq: SeqNumber,
    pub ack: Option<SeqNumber>,
}

impl Reset {
    pub(super) fn segment(self) -> Segment {
        let flags = if self.ack.is_some() { Flags::RST | Flags::ACK } else { Flags::RST };
        Segment::control(self.seq, self.ack.unwrap_or(SeqNumber::ZERO), flags)
    }
}

/// How far one round of sending is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Pass {
    /// Nothing to look at.
    #[default]
    None,
    /// To be begun.
    Due,
    /// Begun; `idle` says whether all had been acknowledged then.
    Begun { idle: bool },
}

/// Switches of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Switches {
    pub nodelay: bool,
    pub keep_alive: bool,
    /// It was opened once; an end is one of one connection.
    pub begun: bool,
    /// It was opened passively: a reset takes it back to LISTEN.
    pub passive: bool,
    /// The user closed before the connection was open: a FIN follows when it is.
    pub close_wanted: bool,
    /// The user has left: nobody reads, and nobody will be told.
    pub detached: bool,
    /// An acknowledgment is to go at once (`TF_ACKNOW`).
    pub ack_now: bool,
    /// An acknowledgment may wait (`TF_DELACK`).
    pub ack_delayed: bool,
    /// The FIN was sent once (`TF_SENTFIN`).
    pub sent_fin: bool,
    /// A window probe is to go out (`t_force`).
    pub force: bool,
    /// The next write is urgent.
    pub next_is_urgent: bool,
    /// A keep-alive probe is to go out.
    pub keep_probe: bool,
    /// The segment at `snd_una` is to be sent again, and nothing before it.
    pub resend_first: bool,
    /// In a recovery that ends at `recover`.
    pub recovering: bool,
    /// The retransmission timer ran out and nothing was acknowledged since.
    pub timed_out: bool,
    /// The SYN was sent again.
    pub syn_again: bool,
    /// A writer found no room.
    pub writer_waits: bool,
    /// Timestamps are agreed on, or asked for.
    pub timestamps: bool,
    /// Selective acknowledgments are agreed on, or asked for.
    pub sack: bool,
    /// Explicit congestion notification is agreed on.
    pub ecn: bool,
    /// A mark has come and no CWR since: acknowledgments bear ECE.
    pub echo_mark: bool,
    /// The window was reduced for a mark: the next new segment bears CWR.
    pub tell_reduced: bool,
    /// Window scaling is asked for, or agreed on.
    pub scaling: bool,
    /// The network has said that there is no way to the peer (`t_softerror`).
    pub unreachable: bool,
    /// One segment is being timed (`t_rtt`).
    pub timing: bool,
}

/// One end of a connection.
#[derive(Clone, Debug)]
pub struct Endpoint {
    pub(super) config: Arc<Config>,
    pub(super) setup: Setup,
    pub(super) state: State,
    pub(super) switches: Switches,
    pub(super) now: SimTime,

    // Sending. Places count from this end's SYN.
    pub(super) snd_una: Place,
    pub(super) snd_nxt: Place,
    pub(super) snd_max: Place,
    /// The place after the last octet that was written and passed on.
    pub(super) snd_end: Place,
    /// Octets that were written and not yet passed on.
    pub(super) unsubmitted: u32,
    pub(super) snd_wnd: u32,
    pub(super) max_sndwnd: u32,
    /// The numbers of the segment that told of the window last.
    pub(super) snd_wl1: SeqNumber,
    pub(super) snd_wl2: SeqNumber,
    /// The place after the urgent data.
    pub(super) snd_up: Near,
    /// The place after the last small segment.
    pub(super) snd_sml: Near,
    pub(super) mss: u16,
    pub(super) snd_scale: u8,

    // Receiving. Places count from the peer's SYN.
    pub(super) irs: SeqNumber,
    pub(super) rcv_nxt: Place,
    pub(super) rcv_adv: Place,
    /// The next octet that the user reads.
    pub(super) rcv_read: Place,
    /// The next octet that is to be delivered.
    pub(super) rcv_told: Near,
    /// Where the peer's FIN is; [`NO_PLACE`] while that is not known.
    pub(super) rcv_fin: Place,
    pub(super) rcv_up: Near,
    pub(super) last_ack_sent: Near,
    /// What came out of order.
    pub(super) held: Ranges,
    /// Where the range begins that grew last.
    pub(super) held_last: Near,
    pub(super) rcv_scale: u8,
    pub(super) quick_acks: u8,
    /// The largest segment that came.
    pub(super) rcv_mss: u16,
    /// The time that an acknowledgment waits, in us, on [`DelayedAck::Adaptive`].
    pub(super) ato_us: u32,
    pub(super) ts_recent: u32,
    /// When that came, in whole seconds.
    pub(super) ts_recent_at_s: u32,
    pub(super) last_received: SimTime,
    /// When a segment outside the window was answered last, in ms; [`u32::MAX`] for never.
    pub(super) last_challenge_ms: u32,

    // Buffers, as rounded.
    pub(super) snd_hiwat: u32,
    pub(super) rcv_hiwat: u32,

    // Loss, round trips and congestion.
    pub(super) timers: Timers,
    pub(super) rtt: Rtt,
    pub(super) rtt_seq: Near,
    pub(super) rtt_at: SimTime,
    pub(super) window: Window,
    pub(super) recover: Near,
    /// What had been sent when a mark last reduced the window: marks of acknowledgments up to there are of the same
    /// window.
    pub(super) marked: Near,
    pub(super) high_rxt: Near,
    pub(super) sacked: Ranges,
    pub(super) dupacks: u8,
    pub(super) probes: u8,

    // What is to be put out.
    pub(super) pass: Pass,
    pub(super) pending: Pending,
    pub(super) tally: Tally,
    pub(super) staged: Option<Stub>,
    pub(super) counters: Counters,
}

/// No place: after all others.
pub(super) const NO_PLACE: Place = Place::MAX;

impl Endpoint {
    /// An end that is closed.
    pub fn new(config: Arc<Config>, setup: Setup) -> Self {
        let ato = match config.delayed_ack {
            DelayedAck::Adaptive { min, .. } => (min.as_ns() / 1_000) as u32,
            _ => 0,
        };
        Self {
            rtt: Rtt::new(&config),
            mss: config.default_mss.min(config.offered_mss(setup.mtu)),
            quick_acks: config.quick_acks,
            snd_hiwat: config.buffers.send,
            rcv_hiwat: config.buffers.receive,
            state: State::Closed,
            switches: Switches {
                timestamps: config.timestamps.is_some(),
                sack: config.sack,
                scaling: config.window_scaling,
                ..Switches::default()
            },
            now: SimTime::ZERO,
            snd_una: 0,
            snd_nxt: 0,
            snd_max: 0,
            snd_end: 1,
            unsubmitted: 0,
            snd_wnd: 0,
            max_sndwnd: 0,
            snd_wl1: SeqNumber::ZERO,
            snd_wl2: SeqNumber::ZERO,
            snd_up: Near::new(0),
            snd_sml: Near::new(0),
            snd_scale: 0,
            irs: SeqNumber::ZERO,
            rcv_nxt: 0,
            rcv_adv: 0,
            rcv_read: 1,
            rcv_told: Near::new(1),
            rcv_fin: NO_PLACE,
            rcv_up: Near::new(1),
            last_ack_sent: Near::new(0),
            held: Ranges::new(),
            held_last: Near::new(0),
            rcv_scale: 0,
            rcv_mss: 0,
            ato_us: ato,
            ts_recent: 0,
            ts_recent_at_s: 0,
            last_received: SimTime::ZERO,
            last_challenge_ms: u32::MAX,
            timers: Timers::new(),
            rtt_seq: Near::new(0),
            rtt_at: SimTime::ZERO,
            window: Window::new(),
            recover: Near::new(-1),
            marked: Near::new(0),
            high_rxt: Near::new(0),
            sacked: Ranges::new(),
            dupacks: 0,
            probes: 0,
            pass: Pass::None,
            pending: Pending::default(),
            tally: Tally::NONE,
            staged: None,
            counters: Counters::default(),
            config,
            setup,
        }
    }

    // Commands

    /// Asks the peer for a connection (active open).
    ///
    /// # Errors
    /// [`CommandError::State`] unless the end is new.
    pub fn connect(&mut self, now: SimTime) -> Result<(), CommandError> {
        self.begin(now, "connect")?;
        self.state = State::SynSent;
        self.start_opening();
        self.pass = Pass::Due;
        Ok(())
    }

    /// Waits for a peer to ask for a connection (passive open). The end is then the connection's.
    ///
    /// # Errors
    /// [`CommandError::State`] unless the end is new.
    pub fn listen(&mut self, now: SimTime) -> Result<(), CommandError> {
        self.begin(now, "listen")?;
        self.state = State::Listen;
        self.switches.passive = true;
        Ok(())
    }

    /// Writes as many of `most` octets as the buffer takes (`sosend`), behind those written before:
    /// the driver keeps the octets of its stream until they are acknowledged.
    ///
    /// Where it is fewer than asked, [`Event::Writable`](super::Event::Writable) says when to go on.
    ///
    /// # Errors
    /// [`CommandError`] where there is no connection, or this side has closed it.
    pub fn send(&mut self, now: SimTime, most: Bytes) -> Result<Bytes, CommandError> {
        self.clock(now);
        match self.state {
            State::Closed | State::Listen => {
                return Err(CommandError::State { state: self.state, command: "send" });
            }
            state if !state.may_send() || self.switches.close_wanted => {
                return Err(CommandError::SendingClosed);
            }
            _ => {}
        }
        let space = u64::from(self.send_space());
        let most = most.get();
        if most == 0 {
            return Ok(Bytes::new(0));
        }
        if space < most {
            self.switches.writer_waits = true;
            if !self.config.buffers.send_low.lets_on(space as u32, self.snd_hiwat) {
                return Ok(Bytes::new(0));
            }
        }
        let taken = most.min(space);
        self.unsubmitted += taken as u32;
        if core::mem::take(&mut self.switches.next_is_urgent) {
            self.snd_up = Near::new(self.snd_end + i64::from(self.unsubmitted));
        }
        Ok(Bytes::new(taken))
    }

    /// Reads up to `most` octets of what was delivered, and lets the peer know of the room where that
    /// is worth a segment.
    pub fn receive(&mut self, now: SimTime, most: Bytes) -> Read {
        self.clock(now);
        let readable = u64::from(self.readable_octets());
        let taken = readable.min(most.get());
        if readable == 0 {
            let over = self.state == State::Closed || self.has_ended();
            return if over { Read::End } else { Read::Nothing };
        }
        if taken == 0 {
            return Read::Nothing;
        }
        self.rcv_read += taken as i64;
        self.work(WorkKind::CopyOut, taken as u32, self.pieces_of(taken as u32));
        if self.state != State::Closed {
            self.want_pass();
        }
        Read::Octets(Bytes::new(taken))
    }

    /// Closes the direction towards the peer (`shutdown`): what was written still goes, then a FIN.
    ///
    /// # Errors
    /// [`CommandError`] where there is no connection, or this side has closed it before.
    pub fn shutdown(&mut self, now: SimTime) -> Result<(), CommandError> {
        self.clock(now);
        self.submit_all();
        match self.state {
            State::Closed => return Err(CommandError::State { state: self.state, command: "shut down" }),
            State::Listen | State::SynSent => {
                self.end(Reason::Finished);
                return Ok(());
            }
            // RFC 9293 §3.10.4: to be done when the connection is open.
            State::SynReceived if self.switches.close_wanted => return Err(CommandError::SendingClosed),
            State::SynReceived => {
                self.switches.close_wanted = true;
                return Ok(());
            }
            State::Established => self.state = State::FinWait1,
            State::CloseWait => self.state = State::LastAck,
            _ => return Err(CommandError::SendingClosed),
        }
        self.want_pass();
        Ok(())
    }

    /// Closes both directions (`close`): what was written still goes, then a FIN; what comes is read
    /// by nobody and answered with a reset.
    ///
    /// # Errors
    /// [`CommandError`] where there is no connection, or it was closed before.
    pub fn close(&mut self, now: SimTime) -> Result<(), CommandError> {
        self.clock(now);
        if self.switches.detached {
            return Err(CommandError::SendingClosed);
        }
        match self.shutdown(now) {
            Ok(()) | Err(CommandError::SendingClosed) => {}
            Err(error) => return Err(error),
        }
        self.switches.detached = true;
        if self.state == State::FinWait2 {
            self.start_two_msl(self.config.fin_wait_2);
        }
        Ok(())
    }

    /// Gives the connection up: a reset goes to the peer, what was written is dropped.
    ///
    /// # Errors
    /// [`CommandError::State`] where there is none.
    pub fn abort(&mut self, now: SimTime) -> Result<(), CommandError> {
        self.clock(now);
        if self.state == State::Closed {
            return Err(CommandError::State { state: self.state, command: "abort" });
        }
        self.drop_connection(Reason::Aborted);
        Ok(())
    }

    /// Says that the octets of the next write are urgent (`MSG_OOB`, without its octet of its own).
    ///
    /// # Errors
    /// [`CommandError`] as [`Endpoint::send`].
    pub fn mark_urgent(&mut self, now: SimTime) -> Result<(), CommandError> {
        self.clock(now);
        if !self.state.may_send() {
            return Err(CommandError::State { state: self.state, command: "mark as urgent" });
        }
        self.switches.next_is_urgent = true;
        Ok(())
    }

    /// Switches `TCP_NODELAY`.
    pub fn set_nodelay(&mut self, nodelay: bool) {
        self.switches.nodelay = nodelay;
    }

    /// Switches `SO_KEEPALIVE`; before the connection is opened.
    pub fn set_keep_alive(&mut self, keep_alive: bool) {
        self.switches.keep_alive = keep_alive;
    }

    // Getters

    /// The state.
    pub const fn state(&self) -> State {
        self.state
    }

    /// The rules.
    pub const fn config(&self) -> &Arc<Config> {
        &self.config
    }

    /// What it has counted.
    pub const fn counters(&self) -> Counters {
        self.counters
    }

    /// Octets of text in a full segment, options taken off.
    pub fn segment_octets(&self) -> u32 {
        let options = if self.switches.timestamps { TIMESTAMPS_OCTETS } else { 0 };
        u32::from(self.mss.saturating_sub(options).max(1))
    }

    /// How much of what is to be written is offered to the protocol at once: the most that [`Endpoint::send`] should be
    /// given before what it puts out is done.
    pub fn piece(&self, left: Bytes) -> Bytes {
        match self.config.pieces {
            Pieces::Whole => left,
            Pieces::Segments => left.min(Bytes::new(self.segment_octets().into())),
            Pieces::Mbufs { cluster, .. } => left.min(Bytes::new(cluster.into())),
        }
    }

    /// The congestion window, in octets.
    pub const fn cwnd(&self) -> u32 {
        self.window.cwnd
    }

    /// Where slow start ends, in octets.
    pub const fn ssthresh(&self) -> u32 {
        self.window.ssthresh
    }

    /// The smoothed round trip, if one was measured, in steps of the clock.
    pub fn round_trip(&self) -> Option<wiretwin_units::Span> {
        self.rtt.smoothed(&self.config)
    }

    /// Octets of this end's stream that the peer has acknowledged: the driver needs them no more.
    pub fn acknowledged(&self) -> Bytes {
        Bytes::new((self.snd_una.min(self.snd_end) - 1).max(0) as u64)
    }

    /// Octets of this end's stream that were written so far.
    pub fn written(&self) -> Bytes {
        Bytes::new((self.snd_end - 1) as u64 + u64::from(self.unsubmitted))
    }

    /// Octets that can be read.
    pub fn readable(&self) -> Bytes {
        Bytes::new(u64::from(self.readable_octets()))
    }

    /// Octets that can be written.
    pub fn writable(&self) -> Bytes {
        Bytes::new(u64::from(self.send_space()))
    }

    /// Where in the peer's stream the text of a segment lies, for a driver that holds octets: those
    /// before [`Endpoint::expected`] it has, those it may keep end at [`Endpoint::keeps_to`]. `None`
    /// for a segment without text, or one that lies before the stream.
    pub fn place_of(&self, segment: &Segment) -> Option<Bytes> {
        if segment.is_empty() || self.rcv_nxt == 0 {
            return None;
        }
        let place = self.place_of_peer(segment.seq) + i64::from(segment.flags.has(Flags::SYN));
        u64::try_from(place - 1).ok().map(Bytes::new)
    }

    /// Octets of the peer's stream that came without a gap.
    pub fn expected(&self) -> Bytes {
        Bytes::new((self.rcv_data_end() - 1).max(0) as u64)
    }

    /// Where the window ends in the peer's stream: what lies behind is dropped.
    pub fn keeps_to(&self) -> Bytes {
        Bytes::new((self.rcv_nxt + i64::from(self.rcv_wnd()) - 1).max(0) as u64)
    }

    /// Whether a segment that this end has no use for, in TIME-WAIT, opens a connection of its own
    /// (RFC 1122 §4.2.2.13): a driver then hands it to a listener, and drops this end.
    pub fn gives_way_to(&self, segment: &Segment) -> bool {
        self.state == State::TimeWait
            && segment.flags.has(Flags::SYN)
            && !segment.flags.any(Flags::ACK | Flags::RST)
            && self.place_of_peer(segment.seq) > self.rcv_nxt
    }

    /// Octets of heap that this end owns, the rules not counted, which it shares.
    pub fn heap_octets(&self) -> usize {
        self.held.heap_octets() + self.sacked.heap_octets()
    }

    // What the other files share

    fn begin(&mut self, now: SimTime, command: &'static str) -> Result<(), CommandError> {
        if self.state != State::Closed || core::mem::replace(&mut self.switches.begun, true) {
            return Err(CommandError::State { state: self.state, command });
        }
        self.clock(now);
        self.last_received = now;
        Ok(())
    }

    pub(super) fn clock(&mut self, now: SimTime) {
        self.now = self.now.max(now);
    }

    /// Starts what bounds the time to open.
    pub(super) fn start_opening(&mut self) {
        let mss = u32::from(self.mss);
        self.window.open(&self.config, mss);
        let deadline = self.config.deadline(self.now, self.config.connect);
        self.timers.set(Timer::Keep, deadline);
    }

    pub(super) fn want_pass(&mut self) {
        if self.pass == Pass::None {
            self.pass = Pass::Due;
        }
    }

    /// What is to be told, with more to come.
    pub(super) const fn pend(&mut self) -> &mut Pending {
        self.pending.any = true;
        &mut self.pending
    }

    pub(super) fn work(&mut self, kind: WorkKind, octets: u32, count: u32) {
        if self.config.work {
            self.tally.add(kind, octets, count);
        }
    }

    /// Octets that fit the send buffer.
    pub(super) fn send_space(&self) -> u32 {
        let queued = self.queued() + i64::from(self.unsubmitted);
        (i64::from(self.snd_hiwat) - queued).max(0) as u32
    }

    /// Octets of the send buffer (`so_snd.sb_cc`): passed on and not acknowledged.
    pub(super) fn queued(&self) -> i64 {
        (self.snd_end - self.snd_una.max(1)).max(0)
    }

    pub(super) fn readable_octets(&self) -> u32 {
        (self.rcv_data_end() - self.rcv_read).max(0) as u32
    }

    /// The place after the last octet that came without a gap.
    pub(super) fn rcv_data_end(&self) -> Place {
        self.rcv_nxt.min(self.rcv_fin)
    }

    pub(super) fn has_ended(&self) -> bool {
        self.rcv_nxt > self.rcv_fin
    }

    /// Room in the receive buffer.
    pub(super) fn receive_space(&self) -> u32 {
        self.rcv_hiwat.saturating_sub(self.readable_octets())
    }

    /// The receive window: the room, and never less than was offered.
    pub(super) fn rcv_wnd(&self) -> u32 {
        let offered = (self.rcv_adv - self.rcv_nxt).max(0) as u32;
        self.receive_space().max(offered)
    }

    /// The largest window that the field can say.
    pub(super) fn most_window(&self, scale: u8) -> u32 {
        u32::from(u16::MAX) << scale.min(MOST_SCALE)
    }

    pub(super) fn seq_of(&self, place: Place) -> SeqNumber {
        self.setup.iss + place as u32
    }

    pub(super) fn peer_seq_of(&self, place: Place) -> SeqNumber {
        self.irs + place as u32
    }

    /// The place of the peer's number, the nearest to what is expected.
    pub(super) fn place_of_peer(&self, seq: SeqNumber) -> Place {
        nearest(self.rcv_nxt, self.peer_seq_of(self.rcv_nxt), seq)
    }

    /// The place of an acknowledgment, the nearest to the first that is missing.
    pub(super) fn place_of_ack(&self, ack: SeqNumber) -> Place {
        nearest(self.snd_una, self.seq_of(self.snd_una), ack)
    }

    /// Passes on all that was written, as one piece.
    pub(super) fn submit_all(&mut self) {
        let octets = core::mem::take(&mut self.unsubmitted);
        if octets > 0 {
            self.work(WorkKind::CopyIn, octets, self.pieces_of(octets));
            self.snd_end += i64::from(octets);
            self.want_pass();
        }
    }

    /// How many mbufs so many octets take.
    pub(super) fn pieces_of(&self, octets: u32) -> u32 {
        match self.config.pieces {
            Pieces::Whole => 1,
            Pieces::Segments => octets.div_ceil(self.segment_octets()),
            Pieces::Mbufs { cluster, cluster_from, small } => {
                let size = if octets < cluster_from { small } else { cluster };
                octets.div_ceil(size.max(1))
            }
        }
    }

    pub(super) fn start_two_msl(&mut self, span: wiretwin_units::Span) {
        let deadline = self.config.deadline(self.now, span);
        self.timers.set(Timer::TwoMsl, deadline);
    }

    /// Ends the connection without a word to the peer.
    pub(super) fn end(&mut self, reason: Reason) {
        self.state = State::Closed;
        self.timers.stop_all();
        self.pass = Pass::None;
        self.unsubmitted = 0;
        self.switches.ack_now = false;
        self.switches.resend_first = false;
        self.held.clear();
        self.held.relax();
        self.sacked.clear();
        self.sacked.relax();
        self.pend().closed = Some(reason);
    }

    /// Ends the connection, with a reset to a peer that knows of it (`tcp_drop`).
    pub(super) fn drop_connection(&mut self, reason: Reason) {
        let knows = self.state.is_synchronized() || self.state == State::SynReceived;
        if knows && self.state != State::TimeWait {
            let (seq, ack) = (self.seq_of(self.snd_nxt), self.peer_seq_of(self.rcv_nxt));
            self.pend().reset = Some(Reset { seq, ack: Some(ack) });
        }
        self.end(reason);
    }
}

/// The place of `seq` that is nearest to `base`, whose number is `base_seq`.
fn nearest(base: Place, base_seq: SeqNumber, seq: SeqNumber) -> Place {
    base + i64::from(seq.offset_from(base_seq) as i32)
}
