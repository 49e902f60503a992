//! The loop that gives each frame its time.
//!
//! A frame enters the model at the instant at which the loop found it, and leaves when the clock has
//! reached the instant that the model gives: never earlier, and late by what the host's scheduling
//! and the writing of other frames take. All times within the model are its own, so lateness does
//! not add up: a frame that left late delays no other.
//!
//! Until shortly before the next instant the loop sleeps, woken by frames that come; then it looks
//! at clock and devices by turns. A real-time thread that never sleeps is stopped by the kernel for
//! 50 ms of each second, all at once; so a loop told to rests a little of every millisecond in which
//! it has not slept by itself.

use std::fmt;
use std::io;
use std::os::fd::AsFd;
use std::rc::Rc;
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use rustix::fd::OwnedFd;
use wiretwin_host::{Caught, Clock, Signals};
use wiretwin_net::frame::{Counters, Frame, Output, PortId, QueueCounters, Totals, Wire};
use wiretwin_units::{SimTime, Span};

use crate::capture::{Capture, Direction};
use crate::device::Device;
use crate::lateness::Lateness;

/// Frames taken from a device before the others have their turn.
const BURST: usize = 64;
/// The longest frame that is read whole.
const LARGEST_FRAME: usize = 1 << 17;
/// The rhythm of rests.
const REST_PERIOD: Span = Span::from_ms(1);
/// What must have been slept of each period: more than the 5 % that the kernel keeps for others.
const REST: Span = Span::from_us(60);
/// What epoll calls the signals; ports have their numbers.
const SIGNALS: u64 = u64::MAX;

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
    wire: Wire<Rc<[u8]>>,
    devices: Vec<D>,
    counts: Vec<PortCounts>,
    clock: Clock,
    epoll: OwnedFd,
    events: Vec<epoll::Event>,
    spin: Span,
    lateness: Lateness,
    turns: Lateness,
    /// When the devices were last looked at.
    looked: SimTime,
    /// Since the beginning of the period: what has been slept. `None` if the loop does not rest.
    resting: Option<(SimTime, Span)>,
    rests: Rests,
    capture: Option<Capture>,
    buffer: Vec<u8>,
    damaged: Vec<u8>,
}

impl<D: Device> Pacer<D> {
    /// A wire between these devices, its ports in their order; time begins now. It stops sleeping
    /// `spin` before each instant.
    ///
    /// # Errors
    /// Those of `epoll_create1(2)` and `epoll_ctl(2)`.
    ///
    /// # Panics
    /// If the wire has another number of ports.
    pub fn new(wire: Wire<Rc<[u8]>>, devices: Vec<D>, spin: Span) -> io::Result<Self> {
        assert_eq!(wire.ports(), devices.len(), "a device for each port");
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        for (number, device) in devices.iter().enumerate() {
            let data = epoll::EventData::new_u64(number as u64);
            epoll::add(&epoll, device.as_fd(), data, epoll::EventFlags::IN)?;
        }
        Ok(Self {
            wire,
            counts: vec![PortCounts::default(); devices.len()],
            events: Vec::with_capacity(devices.len() + 1),
            devices,
            clock: Clock::start(),
            epoll,
            spin,
            lateness: Lateness::default(),
            turns: Lateness::default(),
            looked: SimTime::ZERO,
            resting: None,
            rests: Rests::default(),
            capture: None,
            buffer: vec![0; LARGEST_FRAME],
            damaged: Vec::new(),
        })
    }

    /// From now on, sleeps at least 60 us of each millisecond.
    pub fn rest_regularly(&mut self) {
        self.resting = Some((self.now(), Span::ZERO));
    }

    /// From now on, notes every frame that passes a port: one from a host when it is found, one for a
    /// host, as it is given to it, at the instant that the model gives.
    pub fn capture_to(&mut self, capture: Capture) {
        self.capture = Some(capture);
    }

    /// Notes no more; the capture that was under way.
    pub const fn stop_capture(&mut self) -> Option<Capture> {
        self.capture.take()
    }

    /// How often that was needed.
    pub const fn rests(&self) -> Rests {
        self.rests
    }

    /// The devices, in the order of their ports.
    pub fn devices(&self) -> &[D] {
        &self.devices
    }

    /// Time since the wire was made.
    pub fn elapsed(&self) -> Span {
        self.clock.now()
    }

    /// How late frames left: from the instant that the model gives to the beginning of the write.
    pub const fn lateness(&self) -> &Lateness {
        &self.lateness
    }

    /// How long the loop had been busy with other things each time it found frames: these entered the
    /// model so much late at most. Waking up, which may take longer, is not in it.
    pub const fn turns(&self) -> &Lateness {
        &self.turns
    }

    /// Counts of each port, the model's and the device's.
    pub fn counters(&self) -> impl Iterator<Item = (Counters, PortCounts)> {
        self.counts.iter().enumerate().map(|(number, counts)| {
            let port = PortId(number as u16);
            (*self.wire.counters(port).expect("a count for each port"), *counts)
        })
    }

    /// Counts of each queue of the output to each port, where outputs have queues by class or background load.
    pub fn queue_counters(&self) -> impl Iterator<Item = &[QueueCounters]> {
        (0..self.counts.len()).map(|number| self.wire.queue_counters(PortId(number as u16)))
    }

    /// Sums over all ports, and what is under way.
    pub fn totals(&self) -> Totals {
        self.wire.totals()
    }

    /// Moves frames until a signal comes or `limit` has passed since the wire was made; `asked` is
    /// called at each `SIGUSR1`.
    ///
    /// # Errors
    /// [`PacerError`] when a device fails; what was under way is lost.
    pub fn run(
        &mut self,
        signals: &Signals,
        limit: Duration,
        mut asked: impl FnMut(&Self),
    ) -> Result<End, PacerError> {
        let wait_failed = |error: io::Error| PacerError { port: None, step: "waiting", error };
        let data = epoll::EventData::new_u64(SIGNALS);
        epoll::add(&self.epoll, signals.as_fd(), data, epoll::EventFlags::IN)
            .map_err(|error| wait_failed(error.into()))?;
        let limit_ns = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
        let limit = SimTime::ZERO.saturating_add(Span::checked_from_ns(limit_ns).unwrap_or(Span::MAX));
        loop {
            let signalled = self.turn(limit)?;
            if signalled {
                match signals.next().map_err(wait_failed)? {
                    Some(Caught::User) => asked(self),
                    Some(caught) => return Ok(End::Signal(caught)),
                    None => {}
                }
            }
            if self.now() >= limit {
                return Ok(End::Limit);
            }
        }
    }

    /// One turn: gives the devices what is due, waits for frames or the next instant but not beyond
    /// `limit`, takes the frames that have come. Whether there is a signal to read.
    ///
    /// # Errors
    /// [`PacerError`] when a device fails.
    pub fn turn(&mut self, limit: SimTime) -> Result<bool, PacerError> {
        let next = self.deliver()?;
        let now = self.now();
        let busy = now.saturating_since(self.looked);
        self.rest(now);
        self.wait(now, next, limit).map_err(|error| PacerError { port: None, step: "waiting", error })?;
        // The kernel has had these frames since before now: an instant taken after reading them would
        // count the reading as waiting.
        self.looked = self.now();
        let mut signalled = false;
        if self.events.iter().any(|event| event.data.u64() != SIGNALS) {
            self.turns.add(busy.as_ns());
        }
        let events = std::mem::take(&mut self.events);
        for event in &events {
            match event.data.u64() {
                SIGNALS => signalled = true,
                number => self.take(self.looked, PortId(number as u16))?,
            }
        }
        self.events = events;
        Ok(signalled)
    }

    fn now(&self) -> SimTime {
        SimTime::ZERO.saturating_add(self.clock.now())
    }

    /// Gives the devices what is due; when something will be next.
    fn deliver(&mut self) -> Result<Option<SimTime>, PacerError> {
        self.wire.handle_timeout(self.now());
        loop {
            match self.wire.poll_output() {
                Output::Deliver { port, frame, due, .. } => {
                    self.lateness.add(self.now().saturating_since(due).as_ns());
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
                    let taken = self.devices[number].try_write(octets).map_err(|error| PacerError {
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

    /// Sleeps what is missing at the end of a period.
    fn rest(&mut self, now: SimTime) {
        let Some((start, slept)) = self.resting else { return };
        if now.saturating_since(start) < REST_PERIOD {
            return;
        }
        if slept < REST {
            let missing = REST - slept;
            // Whatever ends the sleep early, a signal, the next period makes up for it.
            let _ = rustix::thread::nanosleep(&timespec(missing));
            self.rests.count += 1;
            self.rests.total += self.now() - now;
        }
        self.resting = Some((self.now(), Span::ZERO));
    }

    /// Waits for frames, signals, or until it is time to watch the clock; fills `events`.
    fn wait(&mut self, now: SimTime, next: Option<SimTime>, limit: SimTime) -> io::Result<()> {
        let until = next.map_or(limit, |next| next.min(limit));
        let sleep = until.saturating_since(now);
        let sleep = Span::from_ps(sleep.as_ps().saturating_sub(self.spin.as_ps()));
        if sleep > Span::ZERO {
            // epoll's own waits end at whole milliseconds.
            match poll(&mut [PollFd::new(&self.epoll, PollFlags::IN)], Some(&timespec(sleep))) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            if let Some((start, slept)) = self.resting {
                self.resting = Some((start, slept + self.now().saturating_since(now)));
            }
        }
        self.events.clear();
        epoll::wait(&self.epoll, spare_capacity(&mut self.events), Some(&timespec(Span::ZERO)))?;
        Ok(())
    }

    /// Takes the frames that a port's host has sent.
    fn take(&mut self, now: SimTime, port: PortId) -> Result<(), PacerError> {
        let number = usize::from(port.0);
        for _ in 0..BURST {
            let length = self.devices[number].try_read(&mut self.buffer).map_err(|error| PacerError {
                port: Some(port),
                step: "reading a frame",
                error,
            })?;
            let Some(length) = length else { return Ok(()) };
            let octets = &self.buffer[..length];
            if let Some(capture) = &mut self.capture {
                capture.add(port, Direction::Outbound, now, octets);
            }
            let taken = Frame::of(octets, Rc::from(octets))
                .map(|frame| self.wire.handle_frame(now, port, frame).is_ok());
            self.counts[number].malformed += u64::from(taken != Some(true));
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
fn damage(damaged: &mut Vec<u8>, frame: &Frame<Rc<[u8]>>) {
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
