//! The loop that gives each frame its time.
//!
//! A frame enters the model at the instant at which the loop found it, and leaves when the clock has
//! reached the instant that the model gives: never earlier, and late by what the host's scheduling
//! and the writing of other frames take. All times within the model are its own, so lateness does
//! not add up: a frame that left late delays no other.
//!
//! Until shortly before the next instant the loop sleeps, woken by frames that come; then it looks
//! at clock and devices by turns. How shortly is what it was woken late by of late: on a core that is
//! at work a few microseconds, on one that sleeps itself up to fifty, and what it looks at the clock
//! for it takes from the ranks of the hosts there. A real-time thread that never sleeps is stopped by the kernel for
//! 50 ms of each second, all at once; so a loop told to rests a little of every millisecond in which
//! it has not slept by itself.
//!
//! Ports may be taken care of from several cores, by a thread each. The thread that took a frame last
//! keeps the clock: it gives frames to the devices when they are due, and the others sleep.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, epoll, eventfd, poll};
use rustix::fd::OwnedFd;
use wiretwin_host::{Caught, Clock, Signals, pin};
use wiretwin_net::frame::{Counters, Frame, Output, PortId, QueueCounters, Totals, Wire};
use wiretwin_units::{SimTime, Span};

use crate::capture::{Capture, Direction};
use crate::device::Device;
use crate::lateness::Lateness;

/// Frames taken from a device before the others have their turn.
const BURST: usize = 64;
/// What is learnt from epoll at a time.
const EVENTS: usize = 64;
/// The longest frame that is read whole.
const LARGEST_FRAME: usize = 1 << 17;
/// The rhythm of rests.
const REST_PERIOD: Span = Span::from_ms(1);
/// What must have been slept of each period: more than the 5 % that the kernel keeps for others.
const REST: Span = Span::from_us(60);
/// As many waits say how late the next one may end.
const WAITS: usize = 64;
/// What is left of the time before an instant for the way from the sleep to the clock.
const AT_LEAST: Span = Span::from_us(2);
/// What epoll calls the signals, and the bell; ports have their numbers.
const SIGNALS: u64 = u64::MAX;
const BELL: u64 = u64::MAX - 1;

/// What a device did with frames, beside what the model counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortCounts {
    /// Delivered by the model, and not taken by the device: full or down.
    pub refused: u64,
    /// Read from the device and not taken by the model: too short or too long.
    pub malformed: u64,
}

/// What a resting loop has slept beyond what it would have anyway.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rests {
    /// How often.
    pub count: u64,
    /// How long in all.
    pub total: Span,
}

/// Why the loop ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// This signal came.
    Signal(Caught),
    /// Its time was over.
    Limit,
}

/// A device that failed, which ends the wire.
#[derive(Debug)]
pub struct PacerError {
    /// The port; `None` if it was not a device but the waiting itself.
    pub port: Option<PortId>,
    /// What was being done.
    pub step: &'static str,
    /// What the kernel said.
    pub error: io::Error,
}

impl fmt::Display for PacerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(port) = self.port {
            write!(f, "{port}: ")?;
        }
        let gone = self.error.raw_os_error() == Some(rustix::io::Errno::BADFD.raw_os_error());
        let what = if gone { " (the device has been deleted)" } else { "" };
        write!(f, "{}: {}{what}", self.step, self.error)
    }
}

impl std::error::Error for PacerError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

/// A wire whose ports are devices.
pub struct Pacer<D> {
    shared: Shared<D>,
    threads: Vec<Watch>,
}

/// What all threads of a wire use.
struct Shared<D> {
    devices: Vec<D>,
    clock: Clock,
    spin: Span,
    rests: bool,
    held: Mutex<Held>,
    /// Set, and the bell rung, when the first thread ends.
    ended: AtomicBool,
    bell: OwnedFd,
}

/// What one thread uses at a time.
struct Held {
    wire: Wire<Arc<[u8]>>,
    /// How far the wire has been brought.
    reached: SimTime,
    /// The thread that keeps the clock.
    keeper: usize,
    counts: Vec<PortCounts>,
    lateness: Lateness,
    turns: Lateness,
    rests: Rests,
    capture: Option<Capture>,
    damaged: Vec<u8>,
}

/// One thread's: the ports whose frames it takes, and how it waits for them.
struct Watch {
    number: usize,
    cpu: Option<u32>,
    epoll: OwnedFd,
    /// What epoll has to tell: ports with frames, the signals, the bell.
    found: Vec<u64>,
    /// When the devices were last looked at.
    looked: SimTime,
    /// Since the beginning of the period: what has been slept.
    period: (SimTime, Span),
    /// What the last waits for an instant ended late by, and which of them is the oldest.
    late: [Span; WAITS],
    oldest: usize,
    buffer: Vec<u8>,
}

impl<D: Device + Send + Sync> Pacer<D> {
    /// A wire between these devices, its ports in their order; time begins now. It stops sleeping
    /// `spin` before each instant. `cpus` has the core from which each port's frames are taken, by a thread
    /// for each core; those of all that have none by one that stays on none.
    ///
    /// # Errors
    /// Those of `epoll_create1(2)`, `epoll_ctl(2)` and `eventfd(2)`.
    ///
    /// # Panics
    /// If the wire has another number of ports, or there is not a core, or none, for each.
    pub fn new(wire: Wire<Arc<[u8]>>, devices: Vec<D>, cpus: &[Option<u32>], spin: Span) -> io::Result<Self> {
        assert_eq!(wire.ports(), devices.len(), "a device for each port");
        assert_eq!(cpus.len(), devices.len(), "a core, or none, for each port");
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let mut by_cpu: BTreeMap<Option<u32>, Vec<usize>> = BTreeMap::new();
        for (port, &cpu) in cpus.iter().enumerate() {
            by_cpu.entry(cpu).or_default().push(port);
        }
        let mut threads = Vec::new();
        for (number, (cpu, ports)) in by_cpu.into_iter().enumerate() {
            let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
            epoll::add(&epoll, &bell, epoll::EventData::new_u64(BELL), epoll::EventFlags::IN)?;
            for &port in &ports {
                let data = epoll::EventData::new_u64(port as u64);
                epoll::add(&epoll, devices[port].as_fd(), data, epoll::EventFlags::IN)?;
            }
            threads.push(Watch {
                number,
                cpu,
                epoll,
                found: Vec::with_capacity(EVENTS),
                looked: SimTime::ZERO,
                period: (SimTime::ZERO, Span::ZERO),
                late: [spin; WAITS],
                oldest: 0,
                buffer: vec![0; LARGEST_FRAME],
            });
        }
        let held = Held {
            wire,
            reached: SimTime::ZERO,
            keeper: 0,
            counts: vec![PortCounts::default(); devices.len()],
            lateness: Lateness::default(),
            turns: Lateness::default(),
            rests: Rests::default(),
            capture: None,
            damaged: Vec::new(),
        };
        let shared = Shared {
            devices,
            clock: Clock::start(),
            spin,
            rests: false,
            held: Mutex::new(held),
            ended: AtomicBool::new(false),
            bell,
        };
        Ok(Self { shared, threads })
    }

    /// From now on, each thread sleeps at least 60 us of each millisecond.
    pub const fn rest_regularly(&mut self) {
        self.shared.rests = true;
    }

    /// From now on, notes every frame that passes a port: one from a host when it is found, one for a
    /// host, as it is given to it, at the instant that the model gives.
    pub fn capture_to(&mut self, capture: Capture) {
        self.shared.lock().capture = Some(capture);
    }

    /// Notes no more; the capture that was under way.
    pub fn stop_capture(&mut self) -> Option<Capture> {
        self.shared.lock().capture.take()
    }

    /// How often that was needed.
    pub fn rests(&self) -> Rests {
        self.shared.lock().rests
    }

    /// The devices, in the order of their ports.
    pub fn devices(&self) -> &[D] {
        &self.shared.devices
    }

    /// Time since the wire was made.
    pub fn elapsed(&self) -> Span {
        self.shared.clock.now()
    }

    /// How late frames left: from the instant that the model gives to the beginning of the write.
    pub fn lateness(&self) -> Lateness {
        self.shared.lock().lateness.clone()
    }

    /// How long a thread had been busy with other things each time it found frames: these entered the
    /// model so much late at most. Waking up, which may take longer, is not in it.
    pub fn turns(&self) -> Lateness {
        self.shared.lock().turns.clone()
    }

    /// Counts of each port, the model's and the device's.
    pub fn counters(&self) -> Vec<(Counters, PortCounts)> {
        let held = self.shared.lock();
        let of = |port| *held.wire.counters(PortId(port as u16)).expect("a count for each port");
        held.counts.iter().enumerate().map(|(port, counts)| (of(port), *counts)).collect()
    }

    /// Counts of each queue of the output to each port, where outputs have queues by class or background load.
    pub fn queue_counters(&self) -> Vec<Vec<QueueCounters>> {
        let held = self.shared.lock();
        let ports = 0..self.shared.devices.len();
        ports.map(|port| held.wire.queue_counters(PortId(port as u16)).to_vec()).collect()
    }

    /// Sums over all ports, and what is under way.
    pub fn totals(&self) -> Totals {
        self.shared.lock().wire.totals()
    }

    /// Moves frames until a signal comes or `limit` has passed since the wire was made; `asked` is
    /// called at each `SIGUSR1`. The first thread is the one that calls.
    ///
    /// # Errors
    /// [`PacerError`] when a device fails, or a thread cannot stay on its core; what was under way is lost.
    ///
    /// # Panics
    /// If a thread of the wire has panicked.
    pub fn run(
        &mut self,
        signals: &Signals,
        limit: Duration,
        asked: impl FnMut(&Self),
    ) -> Result<End, PacerError> {
        let data = epoll::EventData::new_u64(SIGNALS);
        epoll::add(&self.threads[0].epoll, signals.as_fd(), data, epoll::EventFlags::IN)
            .map_err(|error| PacerError::waiting(error.into()))?;
        let limit_ns = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
        let limit = SimTime::ZERO.saturating_add(Span::checked_from_ns(limit_ns).unwrap_or(Span::MAX));
        let mut threads = std::mem::take(&mut self.threads);
        let (first, others) = threads.split_first_mut().expect("a thread");
        let this = &*self;
        let ended = thread::scope(|scope| {
            let others: Vec<_> = others
                .iter_mut()
                .map(|watch| scope.spawn(|| this.shared.until_ended(|| watch.stay(&this.shared, limit))))
                .collect();
            let first = this.shared.until_ended(|| this.serve(first, signals, limit, asked));
            let others = others.into_iter().map(|one| one.join().expect("a thread that does not panic"));
            others.fold(first, |first, other| other.and(first))
        });
        self.threads = threads;
        ended
    }

    /// The first thread's part of a run.
    fn serve(
        &self,
        watch: &mut Watch,
        signals: &Signals,
        limit: SimTime,
        mut asked: impl FnMut(&Self),
    ) -> Result<End, PacerError> {
        watch.pin()?;
        while !self.shared.ended.load(Ordering::Relaxed) {
            if watch.turn(&self.shared, limit)? {
                match signals.next().map_err(PacerError::waiting)? {
                    Some(Caught::User) => asked(self),
                    Some(caught) => return Ok(End::Signal(caught)),
                    None => {}
                }
            }
            if self.shared.now() >= limit {
                break;
            }
        }
        Ok(End::Limit)
    }

    #[cfg(test)]
    fn turn(&mut self, limit: SimTime) -> Result<bool, PacerError> {
        self.threads[0].turn(&self.shared, limit)
    }
}

impl PacerError {
    const fn waiting(error: io::Error) -> Self {
        Self { port: None, step: "waiting", error }
    }
}

impl<D: Device> Shared<D> {
    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> SimTime {
        SimTime::ZERO.saturating_add(self.clock.now())
    }

    /// Does a thread's part, and lets the others end with it, however it ends.
    fn until_ended<R>(&self, part: impl FnOnce() -> R) -> R {
        struct Ring<'a>(&'a AtomicBool, &'a OwnedFd);
        impl Drop for Ring<'_> {
            fn drop(&mut self) {
                self.0.store(true, Ordering::Relaxed);
                // A bell that has been rung already is enough.
                let _ = rustix::io::write(self.1, &1_u64.to_ne_bytes());
            }
        }
        let _ring = Ring(&self.ended, &self.bell);
        part()
    }
}

impl Held {
    /// Gives the devices what is due; when something will be next.
    fn deliver<D: Device>(&mut self, shared: &Shared<D>) -> Result<Option<SimTime>, PacerError> {
        self.reached = self.reached.max(shared.now());
        self.wire.handle_timeout(self.reached);
        loop {
            match self.wire.poll_output() {
                Output::Deliver { port, frame, due, .. } => {
                    self.lateness.add(shared.now().saturating_since(due).as_ns());
                    let octets = if frame.flipped.is_empty() {
                        &frame.payload[..]
                    } else {
                        damage(&mut self.damaged, &frame);
                        &self.damaged[..]
                    };
                    if let Some(capture) = &mut self.capture {
                        capture.add(port, Direction::Inbound, due, octets);
                    }
                    let number = usize::from(port.0);
                    let taken = shared.devices[number].try_write(octets).map_err(|error| PacerError {
                        port: Some(port),
                        step: "writing a frame",
                        error,
                    })?;
                    self.counts[number].refused += u64::from(!taken);
                }
                Output::Timeout(next) => return Ok(next),
            }
        }
    }

    /// Takes a frame that a port's host has sent, not before what has happened already.
    fn take(&mut self, found: SimTime, port: PortId, octets: &[u8]) {
        self.reached = self.reached.max(found);
        if let Some(capture) = &mut self.capture {
            capture.add(port, Direction::Outbound, self.reached, octets);
        }
        let taken = Frame::of(octets, Arc::from(octets))
            .map(|frame| self.wire.handle_frame(self.reached, port, frame).is_ok());
        self.counts[usize::from(port.0)].malformed += u64::from(taken != Some(true));
    }
}

impl Watch {
    fn pin(&self) -> Result<(), PacerError> {
        let step = "staying on a core";
        let failed = |error| PacerError { port: None, step, error: io::Error::other(error) };
        self.cpu.map_or(Ok(()), |cpu| pin(cpu).map_err(failed))
    }

    /// What every thread but the first does in a run.
    fn stay<D: Device>(&mut self, shared: &Shared<D>, limit: SimTime) -> Result<(), PacerError> {
        self.pin()?;
        while !shared.ended.load(Ordering::Relaxed) && shared.now() < limit {
            self.turn(shared, limit)?;
        }
        Ok(())
    }

    /// One turn: gives the devices what is due, waits for frames or, if this thread keeps the clock, the next
    /// instant but not beyond `limit`, takes the frames that have come. Whether there is a signal to read.
    fn turn<D: Device>(&mut self, shared: &Shared<D>, limit: SimTime) -> Result<bool, PacerError> {
        let (next, busy) = {
            let mut held = shared.lock();
            let next = held.deliver(shared)?;
            let busy = shared.now().saturating_since(self.looked);
            (next.filter(|_| held.keeper == self.number), busy)
        };
        self.rest(shared);
        self.wait(shared, next, limit).map_err(PacerError::waiting)?;
        // The kernel has had these frames since before now: an instant taken after reading them would
        // count the reading as waiting.
        self.looked = shared.now();
        let mut signalled = false;
        if self.found.iter().any(|&what| what < BELL) {
            shared.lock().turns.add(busy.as_ns());
        }
        for at in 0..self.found.len() {
            match self.found[at] {
                SIGNALS => signalled = true,
                BELL => {}
                number => self.take(shared, PortId(number as u16))?,
            }
        }
        Ok(signalled)
    }

    /// Sleeps what is missing at the end of a period.
    fn rest<D: Device>(&mut self, shared: &Shared<D>) {
        let (now, (start, slept)) = (shared.now(), self.period);
        if !shared.rests || now.saturating_since(start) < REST_PERIOD {
            return;
        }
        if slept < REST {
            let missing = REST - slept;
            // Whatever ends the sleep early, a signal, the next period makes up for it.
            let _ = rustix::thread::nanosleep(&timespec(missing));
            let mut held = shared.lock();
            held.rests.count += 1;
            held.rests.total += shared.now() - now;
        }
        self.period = (shared.now(), Span::ZERO);
    }

    /// Waits for frames, signals, or until it is time to watch the clock; fills `found`.
    fn wait<D: Device>(
        &mut self,
        shared: &Shared<D>,
        next: Option<SimTime>,
        limit: SimTime,
    ) -> io::Result<()> {
        let now = shared.now();
        let until = next.map_or(limit, |next| next.min(limit));
        let sleep = until.saturating_since(now);
        let early = if next.is_some() { self.early(shared.spin) } else { Span::ZERO };
        let sleep = Span::from_ps(sleep.as_ps().saturating_sub(early.as_ps()));
        if sleep > Span::ZERO {
            // epoll's own waits end at whole milliseconds.
            let ended = poll(&mut [PollFd::new(&self.epoll, PollFlags::IN)], Some(&timespec(sleep)));
            let slept = shared.now().saturating_since(now);
            match ended {
                Ok(0) => {
                    self.late[self.oldest] = slept.saturating_sub(sleep);
                    self.oldest = (self.oldest + 1) % WAITS;
                }
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            self.period.1 += slept;
        }
        let mut events = [const { MaybeUninit::uninit() }; EVENTS];
        let (events, _) = epoll::wait(&self.epoll, &mut events, Some(&timespec(Span::ZERO)))?;
        self.found.clear();
        self.found.extend(events.iter().map(|event| event.data.u64()));
        Ok(())
    }

    /// How long before an instant to be awake, at most `spin`: the longest of the last waits, and half of it more.
    fn early(&self, spin: Span) -> Span {
        let longest = self.late.iter().copied().max().unwrap_or(Span::ZERO);
        (longest + longest / 2 + AT_LEAST).min(spin)
    }

    /// Takes the frames that a port's host has sent.
    fn take<D: Device>(&mut self, shared: &Shared<D>, port: PortId) -> Result<(), PacerError> {
        let device = &shared.devices[usize::from(port.0)];
        for _ in 0..BURST {
            let length = device.try_read(&mut self.buffer).map_err(|error| PacerError {
                port: Some(port),
                step: "reading a frame",
                error,
            })?;
            let Some(length) = length else { return Ok(()) };
            let mut held = shared.lock();
            held.take(self.looked, port, &self.buffer[..length]);
            // Whoever kept the clock may not have seen this frame.
            held.keeper = self.number;
        }
        Ok(())
    }
}

fn timespec(span: Span) -> Timespec {
    Timespec {
        tv_sec: (span.as_ns() / 1_000_000_000).cast_signed(),
        tv_nsec: (span.as_ns() % 1_000_000_000).cast_signed(),
    }
}

/// The bytes of a frame with its flipped bits flipped.
fn damage(damaged: &mut Vec<u8>, frame: &Frame<Arc<[u8]>>) {
    damaged.clear();
    damaged.extend_from_slice(&frame.payload);
    for &bit in &frame.flipped {
        if let Some(octet) = damaged.get_mut(bit as usize / 8) {
            *octet ^= 1 << (bit % 8);
        }
    }
}

#[cfg(test)]
mod tests;
