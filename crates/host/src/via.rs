//! A network of two VI NICs over shared memory: a live device for [`wiretwin_msg::via`].
//!
//! Each packet goes with its length before it; a length of all ones is the mark. What the ring has no
//! room for waits here, so that two processes that both send do not wait for each other.

use std::collections::VecDeque;

use wiretwin_msg::via::{Arrival, Device, HostAddress, Stuck};
use wiretwin_units::{SimTime, Span};

use crate::clock::Clock;
use crate::shm::ShmStream;
use crate::stream::{Spinner, Stream};

const MARK: u32 = u32::MAX;
const HEADER: usize = 4;
/// The longest packet taken, octets: far above what any NIC sends.
const LONGEST: u32 = 1 << 24;
/// What is read at once, octets.
const PIECE: usize = 1 << 16;
/// Looks for a packet between two looks at the clock and the peer.
const PERIOD: u32 = 1 << 10;

/// One end.
#[derive(Debug)]
pub struct ViaOverShm {
    stream: ShmStream,
    clock: Clock,
    hosts: [HostAddress; 2],
    end: usize,
    outgoing: VecDeque<u8>,
    incoming: Vec<u8>,
    piece: Box<[u8]>,
}

impl ViaOverShm {
    /// The end of rank 0 or 1.
    ///
    /// # Panics
    /// If the rank is neither.
    pub fn new(rank: u32, stream: ShmStream) -> Self {
        assert!(rank < 2, "there are two ends");
        Self {
            stream,
            clock: Clock::start(),
            hosts: [0, 1].map(|end| HostAddress([2, 0, 0, 0, 1, end])),
            end: rank as usize,
            outgoing: VecDeque::new(),
            incoming: Vec::new(),
            piece: vec![0; PIECE].into(),
        }
    }

    /// The address of the NIC at this end.
    pub const fn local(&self) -> HostAddress {
        self.hosts[self.end]
    }

    fn put(&mut self, length: u32, octets: &[u8]) -> Result<(), Stuck> {
        self.outgoing.extend(length.to_le_bytes());
        self.outgoing.extend(octets);
        self.push().map(|_| ())
    }

    /// Sends what goes; whether anything did.
    fn push(&mut self) -> Result<bool, Stuck> {
        let mut any = false;
        while !self.outgoing.is_empty() {
            let (front, _) = self.outgoing.as_slices();
            match self.stream.try_send(front) {
                Ok(Some(count)) => drop(self.outgoing.drain(..count)),
                Ok(None) => break,
                Err(_) => return Err(Stuck),
            }
            any = true;
        }
        Ok(any)
    }

    /// The next that has come whole.
    fn next(&mut self) -> Result<Option<Arrival>, Stuck> {
        let Some(header) = self.incoming.first_chunk::<HEADER>() else { return Ok(None) };
        let length = u32::from_le_bytes(*header);
        if length == MARK {
            // Whoever goes on from here may go for good.
            if self.outgoing.is_empty() {
                self.incoming.drain(..HEADER);
                return Ok(Some(Arrival::Mark));
            }
            return Ok(None);
        }
        if length > LONGEST {
            return Err(Stuck);
        }
        let end = HEADER + length as usize;
        if self.incoming.len() < end {
            return Ok(None);
        }
        let octets = self.incoming[HEADER..end].to_vec();
        self.incoming.drain(..end);
        Ok(Some(Arrival::Packet(octets)))
    }

    fn pull(&mut self) -> Result<bool, Stuck> {
        match self.stream.try_recv(&mut self.piece) {
            Ok(Some(count)) => {
                self.incoming.extend_from_slice(&self.piece[..count]);
                Ok(count > 0)
            }
            Ok(None) => Ok(false),
            Err(_) => Err(Stuck),
        }
    }
}

impl Device for ViaOverShm {
    fn now(&self) -> SimTime {
        SimTime::ZERO.saturating_add(Span::from_ps(self.clock.now().as_ps()))
    }

    fn transmit(&mut self, octets: Vec<u8>) -> Result<(), Stuck> {
        self.put(u32::try_from(octets.len()).ok().filter(|length| *length <= LONGEST).ok_or(Stuck)?, &octets)
    }

    fn mark(&mut self) -> Result<(), Stuck> {
        self.put(MARK, &[])
    }

    async fn arrival(&mut self, until: Option<SimTime>) -> Result<Arrival, Stuck> {
        let mut spinner = Spinner::new(self.stream.limit(), PERIOD);
        let mut gone = false;
        loop {
            let moved = self.push()? | self.pull()?;
            if let Some(arrival) = self.next()? {
                return Ok(arrival);
            }
            if until.is_some_and(|until| until <= self.now()) {
                return Ok(Arrival::Time);
            }
            if moved {
                spinner.reset();
                continue;
            }
            if gone {
                return Err(Stuck);
            }
            std::thread::yield_now();
            // What it sent before it went still counts: one look more.
            gone = spinner.turn().map_err(|_| Stuck)? && self.stream.closed();
        }
    }

    fn remote(&self) -> HostAddress {
        self.hosts[1 - self.end]
    }
}
