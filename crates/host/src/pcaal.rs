//! The parallel-computing adaptation layer over UDP: a socket for each circuit, each with its DSCP.
//!
//! A byte stream for two ranks: what is sent arrives once and in order, whatever the network loses,
//! repeats or reorders. The machine is that of the simulated world. It runs inside the calls: a rank that
//! computes neither sends again nor answers, and what waits for it meanwhile looks late. A TCP connection
//! beside it carries control messages and tells at once when the peer dies.

mod circuit;
mod clocks;
mod faults;
mod fifo;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use circuit::{CircuitSocket, DATAGRAM, MOST_AT_ONCE, MOST_RECEIVED};
pub use faults::Faults;
use faults::Mischief;
use fifo::Fifo;
use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use rustix::io::Errno;
use wiretwin_proto::pcaal::{
    Cell, Circuit, Config, Counters, Endpoint, Event, Kind, LocalClock, Pdu, Run, Train, Values, Watch,
};
use wiretwin_proto::{MessageId, Output, Payload};
use wiretwin_units::{Bytes, SimTime, Span};

use crate::rendezvous::{Meeting, MeetingError, timespec};
use crate::socket::{SocketOptions, SocketStream, failure, tcp};
use crate::stream::{Failure, Spinner, Stream, Wait};

/// How a stream is set up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PcaalOptions {
    /// Waiting, addresses and buffers.
    pub socket: SocketOptions,
    /// What watches the ordinary circuit.
    pub watch: Watch,
    /// Time from one monitoring cell to the next, and from POLL to POLL. 20 ms.
    pub interval: Duration,
    /// `T_L`. 100 ms.
    pub loss: Duration,
    /// `T_M`. 20 ms: a process that waits for its turn is not congestion.
    pub high: Duration,
    /// `T_m`, below `T_M`. 10 ms.
    pub low: Duration,
    /// DSCP of the ordinary, the backup and the control circuit: 8, 34 and 46, each below 64.
    pub dscp: [u8; 3],
    /// Faults to make.
    pub faults: Faults,
}

impl Default for PcaalOptions {
    fn default() -> Self {
        Self {
            socket: SocketOptions::default(),
            watch: Watch::EachCell,
            interval: Duration::from_millis(20),
            loss: Duration::from_millis(100),
            high: Duration::from_millis(20),
            low: Duration::from_millis(10),
            dscp: [8, 34, 46],
            faults: Faults::default(),
        }
    }
}

/// Octets of a cell.
const CELL: usize = 48;
/// A POLL follows at the latest when so much of the window is under way: what is missing before it is told without one.
const POLLS_EACH_WINDOW: u32 = 4;
/// The most cells that may be under way, a power of 2; fewer where the receive buffer of either end is smaller.
const WINDOW: u32 = 4096;
/// Of each cell, what the kernel counts in a receive buffer besides its octets is at most as much again.
const COUNTED: usize = 2 * CELL;
/// The most octets that wait to be sent or acknowledged before a writer waits.
const MOST_WAITING: usize = 1 << 20;
/// How long an end that is closed sees to what is under way.
const LINGER: Duration = Duration::from_secs(2);
/// The longest without looking at the peer and the limit.
const SLICE: Duration = Duration::from_millis(10);
/// An end that has not looked for so long was elsewhere: more than a wait takes, less than `T_M` as it is by default.
const ABSENCE: Duration = Duration::from_millis(15);
const CIRCUITS: [Circuit; 3] = [Circuit::Ordinary, Circuit::Backup, Circuit::Control];

/// One end of a stream.
#[derive(Debug)]
pub struct PcaalStream {
    /// Readable when anything has come.
    any: OwnedFd,
    sockets: [CircuitSocket; 3],
    control: SocketStream,
    end: Endpoint,
    begun: Instant,
    wait: Wait,
    limit: Duration,
    timeout: Option<SimTime>,
    lost: bool,
    /// What was handed in and is not acknowledged: from this place of the stream on.
    outgoing: Fifo,
    outgoing_from: u64,
    /// Cells that are kept until they are next, each at its number modulo the window.
    kept: Vec<[u8; CELL]>,
    incoming: Fifo,
    /// Cells to be sent, by circuit.
    staged: [Vec<u8>; 3],
    /// Where those that come are put.
    received: Vec<u8>,
    mischief: Mischief,
    /// Messages that were handed in.
    handed: u64,
    /// When this end last looked at its sockets.
    looked: Instant,
    /// The two ends read clocks of their own.
    apart: bool,
}

/// Meets the other ranks: a stream to each over circuits of its own, by rank; `None` stands for this rank. `limit`
/// bounds every wait.
///
/// # Errors
/// [`MeetingError`]: of the TCP connections beside the circuits as for [`tcp`], of sockets, classes and
/// parameters.
pub fn pcaal(
    meeting: &Meeting<'_>,
    options: &PcaalOptions,
    limit: Duration,
) -> Result<Vec<Option<PcaalStream>>, MeetingError> {
    let SocketOptions { address, port, .. } = options.socket;
    let beside = SocketOptions { address, port, ..SocketOptions::default() };
    let streams = tcp(meeting, &beside, limit)?.into_iter().enumerate();
    let over = |(peer, control): (usize, Option<SocketStream>)| {
        let leads = (meeting.rank as usize) < peer;
        control.map(|control| PcaalStream::over(control, leads, options, limit)).transpose()
    };
    streams.map(over).collect()
}

/// What two ends tell each other before the first cell.
struct Met {
    sockets: [CircuitSocket; 3],
    /// Cells that may be under way.
    window: u32,
    /// Both read the same clock.
    one_clock: bool,
}

/// The sockets of three circuits, connected to those of the other end.
fn meet(control: &mut SocketStream, options: &SocketOptions, dscp: [u8; 3]) -> Result<Met, MeetingError> {
    let [one, two, three] = dscp.map(|dscp| CircuitSocket::open(options, dscp, WINDOW as usize * CELL));
    let sockets = [one?, two?, three?];
    let told = |failure: Failure| {
        MeetingError::new("telling of the sockets of circuits", format_args!("{failure:?}"))
    };
    let (_, buffer) = sockets[0].buffers().map_err(refuse)?;
    let window = (buffer / COUNTED).clamp(DATAGRAM / CELL, WINDOW as usize) as u32;
    // All at once, which is quick even where much is lost.
    let clock = clocks::identity();
    let mut words = [0; 74];
    words[6..10].copy_from_slice(&window.to_le_bytes());
    words[10..].copy_from_slice(&clock);
    for (place, socket) in words.chunks_exact_mut(2).zip(&sockets) {
        place.copy_from_slice(&socket.port().map_err(refuse)?.to_le_bytes());
    }
    control.send_all(&words).map_err(told)?;
    control.recv_exact(&mut words).map_err(told)?;
    let there = control.peer_ip().map_err(refuse)?;
    for (port, socket) in words.chunks_exact(2).zip(&sockets) {
        socket.connect(there, u16::from_le_bytes([port[0], port[1]])).map_err(refuse)?;
    }
    let theirs = u32::from_le_bytes([words[6], words[7], words[8], words[9]]);
    let one_clock = words[10..] == clock && clock != [0; 64];
    Ok(Met { sockets, window: window.min(theirs).max(1), one_clock })
}

fn refuse(error: io::Error) -> MeetingError {
    MeetingError::new("setting up a socket of a circuit", error)
}

impl PcaalStream {
    /// One end beside a connection that stands; the lower rank leads.
    fn over(
        mut control: SocketStream,
        leads: bool,
        options: &PcaalOptions,
        limit: Duration,
    ) -> Result<Self, MeetingError> {
        let socket = &options.socket;
        let Met { sockets, window, one_clock } = meet(&mut control, socket, options.dscp)?;
        let learned = (!one_clock).then(|| clocks::learn(&mut control, leads)).transpose();
        let clock_sync =
            learned.map_err(|failure| MeetingError::new("comparing clocks", format_args!("{failure:?}")))?;
        let epoll = |error: Errno| MeetingError::new("waiting for three circuits", io::Error::from(error));
        let any = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(epoll)?;
        let all = sockets.iter().map(AsFd::as_fd).chain([control.as_fd()]);
        for (number, fd) in all.enumerate() {
            let data = epoll::EventData::new_u64(number as u64);
            epoll::add(&any, fd, data, epoll::EventFlags::IN).map_err(epoll)?;
        }
        let span = |duration: Duration| Span::from_ns(duration.as_nanos() as u64);
        let (ahead_ns, begun) = (clocks::monotonic_ns(), Instant::now());
        let config = Config {
            timer_poll: span(options.interval),
            timer_no_response: span(limit.min(Duration::from_secs(86_400))),
            max_pd: (window / POLLS_EACH_WINDOW).max(1),
            window,
            watch: Some(options.watch),
            monitor_interval: span(options.interval),
            loss_threshold: span(options.loss),
            high_threshold: span(options.high),
            low_threshold: span(options.low),
            clock: LocalClock { ahead_ns, gains_ns_each_s: 0 },
            clock_sync,
            work: false,
            ..Config::default()
        };
        let mut end = Endpoint::new(config)
            .map_err(|error| MeetingError::new("setting up the adaptation layer", error))?;
        end.start(SimTime::ZERO);
        Ok(Self {
            any,
            sockets,
            control,
            end,
            begun,
            wait: socket.wait,
            limit,
            timeout: None,
            lost: false,
            outgoing: Fifo::default(),
            outgoing_from: 0,
            kept: vec![[0; CELL]; WINDOW as usize],
            incoming: Fifo::default(),
            staged: [const { Vec::new() }; 3],
            received: vec![0; MOST_RECEIVED],
            mischief: Mischief::new(options.faults),
            handed: 0,
            looked: begun,
            apart: clock_sync.is_some(),
        })
    }

    /// What was counted.
    pub const fn counters(&self) -> Counters {
        self.end.counters()
    }

    /// Whether data go by the backup circuit.
    pub const fn is_high(&self) -> bool {
        self.end.is_high()
    }

    /// Whether each end has a clock of its own, and learns of the other's over the control circuit.
    pub const fn clocks_are_apart(&self) -> bool {
        self.apart
    }

    /// The DSCP of the ordinary, the backup and the control circuit as the kernel has them.
    ///
    /// # Errors
    /// Those of `getsockopt(2)`.
    pub fn classes(&self) -> io::Result<[u8; 3]> {
        let [one, two, three] = self.sockets.each_ref().map(CircuitSocket::class);
        Ok([one?, two?, three?])
    }

    /// `SO_SNDBUF` and `SO_RCVBUF` of a circuit, in bytes as the kernel reports them.
    ///
    /// # Errors
    /// Those of `getsockopt(2)`.
    pub fn buffers(&self) -> io::Result<(usize, usize)> {
        self.sockets[0].buffers()
    }

    /// From now on the ordinary circuit holds each datagram of this end for so long more.
    pub const fn congest(&mut self, by: Duration) {
        self.mischief.faults.congestion = by;
        self.mischief.faults.congested = Faults::ALWAYS;
    }

    fn now(&self) -> SimTime {
        SimTime::ZERO + Span::from_ns(self.begun.elapsed().as_nanos() as u64)
    }

    /// Takes what has come, lets time pass, sends what is to be sent. Octets of the stream go into `sink` from its
    /// beginning: how many.
    fn turn(&mut self, sink: &mut [u8]) -> Result<usize, Failure> {
        let was_elsewhere = self.looked.elapsed() > ABSENCE;
        if was_elsewhere {
            let now = self.now();
            self.end.set_watching(now, false);
        }
        let mut received = std::mem::take(&mut self.received);
        let taken = self.take_all(&mut received, sink);
        self.received = received;
        let got = taken?;
        let now = self.now();
        if was_elsewhere {
            self.end.set_watching(now, true);
        }
        self.end.handle_timeout(now);
        self.looked = Instant::now();
        self.drain()?;
        self.let_go()?;
        Ok(got)
    }

    /// Takes what has come by all circuits: how many octets of the stream are in `sink`.
    fn take_all(&mut self, received: &mut [u8], sink: &mut [u8]) -> Result<usize, Failure> {
        let mut got = self.incoming.take(sink);
        for (place, circuit) in CIRCUITS.into_iter().enumerate() {
            while let Some(count) = self.sockets[place].recv(received)? {
                let now = self.now();
                let mut cells = &received[..count];
                while !cells.is_empty() {
                    let (used, octets) = self.take_train(now, circuit, cells, &mut sink[got..])?;
                    (cells, got) = (&cells[used..], got + octets);
                }
                self.drain()?;
                got += self.incoming.take(&mut sink[got..]);
            }
        }
        Ok(got)
    }

    /// Takes cells that belong together or the first by itself: how many octets of cells they are, and how many of the
    /// stream went into `sink`. Values that are next and come after none that wait go there straight.
    fn take_train(
        &mut self,
        now: SimTime,
        circuit: Circuit,
        cells: &[u8],
        sink: &mut [u8],
    ) -> Result<(usize, usize), Failure> {
        self.collect()?;
        if self.incoming.is_empty()
            && let Ok(Some(train)) = Train::parse(circuit, cells, sink)
        {
            let used = train.cells() * CELL;
            if self.end.handle_train(now, &train) {
                return Ok((used, train.payload.length.get() as usize));
            }
            cells[..used].chunks(CELL).for_each(|cell| self.take(now, circuit, cell));
            return Ok((used, 0));
        }
        let waiting = self.incoming.len();
        let parsed = Train::parse(circuit, cells, self.incoming.grow(cells.len()));
        let (mut used, mut octets) = (cells.len().min(CELL), 0);
        let mut whole = false;
        if let Ok(Some(train)) = parsed {
            used = train.cells() * CELL;
            whole = self.end.handle_train(now, &train);
            octets = if whole { train.payload.length.get() as usize } else { 0 };
        }
        self.incoming.truncate(waiting + octets);
        if !whole {
            cells[..used].chunks(CELL).for_each(|cell| self.take(now, circuit, cell));
        }
        Ok((used, 0))
    }

    fn take(&mut self, now: SimTime, circuit: Circuit, octets: &[u8]) {
        let mut text = [0; CELL];
        let cell = Cell::parse(circuit, octets, |values| {
            text[..values.len()].copy_from_slice(values);
            MessageId(0)
        });
        let Ok(mut cell) = cell else { return self.end.handle_bad_cell(now) };
        if let Pdu::Data { number, values, .. } = &mut cell.pdu {
            values.payload.message = MessageId(number.get().into());
            if self.end.is_awaited(*number) {
                self.kept[number.get() as usize % WINDOW as usize] = text;
            }
        }
        self.end.handle_cell(now, cell);
    }

    /// Sends what is to be sent, and forgets what is not needed any more.
    fn drain(&mut self) -> Result<(), Failure> {
        self.collect()?;
        let needed = self.end.oldest().map(|values| values.payload.start.get());
        let gone = needed.map_or(self.outgoing.len(), |start| (start - self.outgoing_from) as usize);
        self.outgoing.skip(gone);
        self.outgoing_from += gone as u64;
        (0..3).try_for_each(|circuit| self.hand_over(circuit))
    }

    /// Does what the machine asks for; what it sends is staged.
    fn collect(&mut self) -> Result<(), Failure> {
        loop {
            let circuit = usize::from(self.end.is_high());
            let room = (MOST_AT_ONCE - self.staged[circuit].len()) / CELL;
            if let Some(train) = self.end.poll_train(room) {
                self.stage_train(&train)?;
                continue;
            }
            match self.end.poll_output() {
                Output::Transmit(cell) => self.stage(&cell)?,
                Output::Deliver(values) => {
                    let kept = &self.kept[values.payload.message.0 as usize % WINDOW as usize];
                    self.incoming.push(&kept[..values.payload.length.get() as usize]);
                }
                Output::Event(Event::PeerLost) => self.lost = true,
                Output::Event(Event::Mode { .. }) | Output::Work(_) => {}
                Output::Timeout(timeout) => {
                    self.timeout = timeout;
                    return Ok(());
                }
            }
        }
    }

    /// The octets of what is under way.
    fn text(&self, payload: Payload) -> &[u8] {
        let start = (payload.start.get() - self.outgoing_from) as usize;
        &self.outgoing.as_slice()[start..start + payload.length.get() as usize]
    }

    fn stage(&mut self, cell: &Cell) -> Result<(), Failure> {
        let mut staged = std::mem::take(&mut self.staged[cell.circuit as usize]);
        let at = staged.len();
        staged.resize(at + CELL, 0);
        let values = match cell.pdu {
            Pdu::Data { values: Values { payload, .. }, .. } => self.text(payload),
            _ => &[],
        };
        let written = cell.emit(values, &mut staged[at..]);
        self.staged(cell.circuit, staged, written)
    }

    fn stage_train(&mut self, train: &Train) -> Result<(), Failure> {
        let mut staged = std::mem::take(&mut self.staged[train.circuit as usize]);
        let at = staged.len();
        staged.resize(at + train.cells() * CELL, 0);
        let written = train.emit(self.text(train.payload), &mut staged[at..]);
        self.staged(train.circuit, staged, written)
    }

    /// Takes back what is staged for a circuit, and hands it over when it is as much as goes at once.
    fn staged(
        &mut self,
        circuit: Circuit,
        staged: Vec<u8>,
        written: Result<(), impl std::fmt::Display>,
    ) -> Result<(), Failure> {
        let full = staged.len() >= MOST_AT_ONCE;
        self.staged[circuit as usize] = staged;
        written.map_err(|error| Failure::Refused(format!("writing a cell: {error}")))?;
        if full { self.hand_over(circuit as usize) } else { Ok(()) }
    }

    /// What is staged for a circuit, if anything is.
    fn hand_over(&mut self, circuit: usize) -> Result<(), Failure> {
        if self.staged[circuit].is_empty() {
            return Ok(());
        }
        if self.mischief.is_idle() {
            self.sockets[circuit].send(&self.staged[circuit])?;
        } else {
            for datagram in self.staged[circuit].chunks(DATAGRAM) {
                self.mischief.take(circuit, datagram, self.handed);
            }
        }
        self.staged[circuit].clear();
        self.let_go()
    }

    /// Sends what has been held back for long enough.
    fn let_go(&mut self) -> Result<(), Failure> {
        let due = self.mischief.due();
        due.iter().try_for_each(|held| self.sockets[held.circuit].send(&held.octets))
    }

    /// Waits a little for something to come or to be due.
    fn pause(&self, spinner: &mut Spinner) -> Result<bool, Failure> {
        match self.wait {
            Wait::Spin => std::hint::spin_loop(),
            Wait::Yield => rustix::thread::sched_yield(),
            Wait::Block => {
                let timer = self
                    .timeout
                    .map(|at| Duration::from_nanos(at.saturating_since(self.now()).as_ps() / 1_000));
                let sleep = self.mischief.wait().into_iter().chain(timer).fold(SLICE, Duration::min);
                let mut fds = [PollFd::new(&self.any, PollFlags::IN)];
                // Each time, as what comes may keep coming without being what is waited for, and a peer that
                // has gone makes this readable for ever.
                return match poll(&mut fds, Some(&timespec(sleep))) {
                    Ok(_) | Err(Errno::INTR) => spinner.check(),
                    Err(error) => Err(failure(error)),
                };
            }
        }
        spinner.turn()
    }

    /// Turns until `done` says so, the peer is gone or the limit has passed. Octets of the stream go
    /// into `sink` from its beginning, and `done` is told how many have.
    fn until(
        &mut self,
        limit: Duration,
        sink: &mut [u8],
        mut done: impl FnMut(&mut Self, usize) -> Result<bool, Failure>,
    ) -> Result<(), Failure> {
        let mut spinner = Spinner::new(limit, 1024);
        let (mut gone, mut got) = (false, 0);
        loop {
            got += self.turn(&mut sink[got..])?;
            if done(self, got)? {
                return Ok(());
            }
            if self.lost || gone {
                return Err(Failure::PeerGone);
            }
            if self.pause(&mut spinner)? {
                // Once more: what it sent before it went still counts.
                gone = self.closed();
            }
        }
    }

    fn accept(&mut self, octets: &[u8]) -> Result<(), Failure> {
        let start = self.outgoing_from + self.outgoing.len() as u64;
        self.outgoing.push(octets);
        let length = Bytes::new(octets.len() as u64);
        let payload = Payload { message: MessageId(0), start: Bytes::new(start), length };
        let now = self.now();
        let sent = self.end.send(now, 0, &[Run { kind: Kind::One, payload }]);
        sent.map_err(|_| Failure::PeerGone)?;
        self.drain()?;
        self.handed += 1;
        Ok(())
    }
}

impl AsFd for PcaalStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.any.as_fd()
    }
}

impl Stream for PcaalStream {
    fn send_all(&mut self, message: &[u8]) -> Result<(), Failure> {
        let mut left = message;
        while !left.is_empty() {
            match self.try_send(left)? {
                Some(count) => left = &left[count..],
                None => {
                    let limit = self.limit;
                    self.until(limit, &mut [], |stream, _| Ok(stream.outgoing.len() < MOST_WAITING))?;
                }
            }
        }
        Ok(())
    }

    fn recv_exact(&mut self, buffer: &mut [u8]) -> Result<(), Failure> {
        let (limit, wanted) = (self.limit, buffer.len());
        self.until(limit, buffer, |_, got| Ok(got == wanted))
    }

    fn try_send(&mut self, bytes: &[u8]) -> Result<Option<usize>, Failure> {
        if bytes.is_empty() {
            return Ok(Some(0));
        }
        self.turn(&mut [])?;
        if self.lost {
            return Err(Failure::PeerGone);
        }
        let room = MOST_WAITING.saturating_sub(self.outgoing.len());
        if room == 0 {
            return Ok(None);
        }
        let count = bytes.len().min(room);
        self.accept(&bytes[..count]).map(|()| Some(count))
    }

    fn try_recv(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, Failure> {
        let mut got = self.turn(buffer)?;
        if buffer.is_empty() {
            return Ok(Some(0));
        }
        // A peer that has gone makes this readable for ever, so that who waits for it never looks.
        if got == 0 && (self.lost || self.closed()) {
            // Once more: what it sent before it went still counts.
            got = self.turn(buffer)?;
            if got == 0 {
                return Err(Failure::PeerGone);
            }
        }
        Ok((got > 0).then_some(got))
    }

    fn wait(&self) -> Wait {
        self.wait
    }

    fn closed(&self) -> bool {
        let mut fds = [PollFd::new(&self.control, PollFlags::RDHUP)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        matches!(poll(&mut fds, Some(&now)), Ok(count) if count > 0)
    }

    fn move_nothing(&mut self) -> Result<(), Failure> {
        self.turn(&mut []).map(|_| ())
    }

    fn limit(&self) -> Duration {
        self.limit
    }

    fn send_control(&mut self, message: &[u8]) -> Result<(), Failure> {
        self.control.send_all(message)
    }

    fn recv_control(&mut self, buffer: &mut [u8]) -> Result<(), Failure> {
        let (limit, mut got) = (self.limit, 0);
        self.until(limit, &mut [], |stream, _| {
            if got < buffer.len()
                && let Some(count) = stream.control.try_recv(&mut buffer[got..])?
            {
                got += count;
            }
            Ok(got == buffer.len())
        })
    }
}

impl Drop for PcaalStream {
    /// Sees to what is under way, for as long as the peer is there and it takes no longer than a little.
    fn drop(&mut self) {
        let _ = self
            .until(LINGER, &mut [], |stream, _| Ok(stream.outgoing.is_empty() && stream.mischief.is_empty()));
    }
}
