//! What all components share: clock and events, links, PDUs on their way, the trail, the digest.

use std::collections::VecDeque;

use wiretwin_engine::{Digest, Probability, Stream, Trace, TraceDigest, TraceEvent};
use wiretwin_units::{BitRate, Bits, SimTime, Span, Transmitter};

use super::activity::Activity;
use super::cell::{Cell, PduTable};
use super::fault::{LineEnd, LineErrors};
use super::trail::Trail;
use crate::future_events::FutureEvents;

/// Something that happens in a local network, and to which part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LanEvent {
    /// A host's processor has run a charge: the one of this number, if it was not interrupted.
    Cpu { host: u16, charge: u32 },
    /// A cell has come to the end of a link.
    Link(LinkId),
    /// A cell has crossed the fabric of a switch.
    Crossed { switch: u16 },
    /// The link of a switch's port is free, for which cells wait.
    PortFree { switch: u16, port: u16 },
    /// An adapter's firmware has done its job.
    Firmware(u32),
    /// A cell has crossed the bus from the host to an adapter.
    Outward(u32),
    /// A cell has crossed the bus from an adapter to the host.
    Inward(u32),
    /// The last of the crossings of a bus for which nobody waits has ended.
    Unheard,
    /// An adapter's transmit side may go on.
    Transmit(u32),
    /// An adapter's interrupt is due.
    Interrupt(u32),
    /// The clock of a host interrupts.
    Tick(u32),
    /// Other processes of a host wake.
    Wake(u32),
    /// A timer of a connection may be due.
    Timer(u32),
    /// The medium that hosts share has something.
    Medium,
    /// A generator of load sends.
    Load(u32),
    /// A process that waits for a time may go on.
    Alarm(u32),
    /// The reassembly timer of a circuit may have run out.
    Reassembly(u32),
    /// That of a host's IP may have.
    Fragments(u32),
    /// A timer of a host's VIs may be due.
    Vi(u32),
    /// A rank has slept.
    Pause(u32),
    /// A driver or call control may have something to do.
    Signalling(u32),
    /// A cell of a train comes to an adapter that has nothing to do.
    Coming(u32),
}

impl LanEvent {
    /// Whether it is the passing on of a cell or frame.
    const fn carries(self) -> bool {
        matches!(self, Self::Link(_) | Self::Crossed { .. } | Self::PortFree { .. } | Self::Medium)
    }
}

/// The number of a link: one direction of a fibre.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LinkId(pub(crate) u32);

/// Where a link ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Port {
    Adapter(u32),
    Element { element: u32, port: u32 },
}

/// What a link is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkConfig {
    /// The rate at which the bits of a cell follow each other.
    pub rate: BitRate,
    /// Bits that a cell takes on the line: 424, and what the line adds to each cell.
    pub cell_bits: Bits,
    /// How long a bit travels.
    pub propagation: Span,
}

/// Cells that passed a point, and those that did not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// Cells that came in; a copy made for a second branch counts as one.
    pub taken: u64,
    /// Cells that went on.
    pub given: u64,
    /// Cells that were lost there.
    pub lost: u64,
    /// Cells that are there now.
    pub held: u64,
}

/// What came to the end of a link, and when: a number that tells it from anything else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Came {
    cells: u64,
    mixed: u64,
}

impl Came {
    /// Another cell. Each step is one to one in what was before it.
    fn note(&mut self, time: SimTime, index: u32) {
        const ODD: [u64; 2] = [0x9e37_79b9_7f4a_7c15, 0xff51_afd7_ed55_8ccd];
        self.cells += 1;
        let mixed = (self.mixed ^ time.as_ps()).wrapping_mul(ODD[0]).rotate_left(29);
        self.mixed = (mixed ^ u64::from(index)).wrapping_mul(ODD[1]).rotate_left(31);
    }
}

/// One direction of a fibre.
pub(crate) struct Link {
    line: Transmitter,
    config: LinkConfig,
    /// Of one cell by itself.
    cell_time: Span,
    to: Port,
    in_flight: VecDeque<Cell>,
    /// Cells on it that their receiver has already: those of trains.
    ahead: u64,
    came: Came,
    loss: Option<(Probability, Stream)>,
    /// Where its bits may be wrong.
    end: Option<LineEnd>,
    passed: Passed,
}

impl Link {
    pub(crate) fn new(config: LinkConfig, to: Port, loss: Option<(Probability, Stream)>) -> Self {
        let line = Transmitter::new(config.rate);
        Self {
            line,
            config,
            cell_time: config.rate.time_for(config.cell_bits).unwrap_or(Span::MAX),
            to,
            in_flight: VecDeque::new(),
            ahead: 0,
            came: Came::default(),
            loss,
            end: None,
            passed: Passed::default(),
        }
    }

    /// The same, with wrong bits.
    pub(super) fn with_errors(self, end: Option<LineEnd>) -> Self {
        Self { end, ..self }
    }

    /// What became of cells with wrong bits.
    pub(super) fn errors(&self) -> LineErrors {
        self.end.as_ref().map_or_else(LineErrors::default, |end| end.found)
    }

    /// When it has sent all that it was given.
    pub(crate) const fn free_at(&self) -> SimTime {
        self.line.free_at()
    }

    /// How long one cell by itself takes on the line, rounded up.
    pub(crate) const fn cell_time(&self) -> Span {
        self.cell_time
    }

    pub(crate) fn passed(&self) -> Passed {
        Passed { held: self.in_flight.len() as u64 + self.ahead, ..self.passed }
    }

    /// Where it ends.
    pub(crate) const fn to(&self) -> Port {
        self.to
    }

    /// When a cell that its line is given at `time` would have come.
    pub(crate) fn would_arrive(&self, time: SimTime) -> SimTime {
        let sent = self.line.would_send(time, self.config.cell_bits);
        sent.expect("a run ends before virtual time does").end + self.config.propagation
    }

    /// A cell of a train comes to its end at `time`.
    pub(crate) fn arrived_ahead(&mut self, time: SimTime, index: u32) {
        self.ahead -= 1;
        self.passed.given += 1;
        self.came.note(time, index);
    }
}

/// What all components share.
pub(crate) struct Core {
    pub(crate) future: FutureEvents<LanEvent>,
    pub(crate) links: Vec<Link>,
    pub(crate) pdus: PduTable,
    pub(crate) trail: Trail,
    pub(crate) digest: TraceDigest,
    /// Events that carry cells and frames, which may be load.
    carrying: usize,
    /// Cells may go in trains.
    pub(crate) trains: bool,
    /// Where they may: cells that go step by step, up to the end of the switch.
    pub(crate) stepwise: usize,
    /// When the last bus will have been crossed of those crossings that nobody waits for.
    pub(crate) quiet: SimTime,
}

impl Core {
    pub(crate) fn new(trail: bool) -> Self {
        Self {
            future: FutureEvents::new(),
            links: Vec::new(),
            pdus: PduTable::default(),
            trail: Trail::new(trail),
            digest: TraceDigest::new(),
            carrying: 0,
            trains: false,
            stepwise: 0,
            quiet: SimTime::ZERO,
        }
    }

    pub(crate) const fn now(&self) -> SimTime {
        self.future.now()
    }

    /// Schedules an event, which the models do for the present or the future only.
    pub(crate) fn at(&mut self, time: SimTime, event: LanEvent) {
        self.carrying += usize::from(event.carries());
        self.future.at(time, event);
    }

    /// The next event, with the time now its own.
    pub(crate) fn next(&mut self) -> Option<LanEvent> {
        let event = self.future.next()?;
        self.carrying -= usize::from(event.carries());
        Some(event)
    }

    /// Events that carry cells and frames.
    pub(crate) const fn carrying(&self) -> usize {
        self.carrying
    }

    /// An observable point, for the digest.
    pub(crate) fn observe(&mut self, kind: u32, a: u64, b: u64) {
        let time = self.now();
        self.digest.record(TraceEvent { time, kind, a, b });
    }

    /// The digest of all observable points; what came over each link is one, of this kind.
    pub(crate) fn digest_with_links(&self, kind: u32) -> Digest {
        let mut digest = self.digest.clone();
        for (number, link) in (0..).zip(&self.links) {
            let Came { cells, mixed } = link.came;
            digest.record(TraceEvent { time: SimTime::ZERO, kind, a: number << 40 | cells, b: mixed });
        }
        digest.value()
    }

    pub(crate) fn add_link(&mut self, link: Link) -> LinkId {
        self.links.push(link);
        LinkId(self.links.len() as u32 - 1)
    }

    pub(crate) fn link(&self, id: LinkId) -> &Link {
        &self.links[id.0 as usize]
    }

    /// Sends a cell behind those that the link was given before; returns when its last bit has left.
    pub(crate) fn send(&mut self, id: LinkId, mut cell: Cell) -> SimTime {
        let now = self.now();
        let link = &mut self.links[id.0 as usize];
        let sent = link.line.send(now, link.config.cell_bits).expect("a run ends before virtual time does");
        let arrival = sent.end + link.config.propagation;
        let place = id.0 as u16;
        let left = self.trail.push(cell.trail, Activity::Serialize, place, sent.start, sent.end);
        cell.trail = self.trail.push(left, Activity::Propagate, place, sent.end, arrival);
        link.in_flight.push_back(cell);
        link.passed.taken += 1;
        self.at(arrival, LanEvent::Link(id));
        sent.end
    }

    /// Sends a cell of a train at `time`; returns when it comes.
    pub(crate) fn send_ahead(&mut self, id: LinkId, time: SimTime) -> SimTime {
        let link = &mut self.links[id.0 as usize];
        let sent = link.line.send(time, link.config.cell_bits).expect("a run ends before virtual time does");
        link.passed.taken += 1;
        link.ahead += 1;
        sent.end + link.config.propagation
    }

    /// A cell of a train has come to the end of a link.
    pub(crate) fn arrive_ahead(&mut self, id: LinkId, time: SimTime, index: u32) {
        self.links[id.0 as usize].arrived_ahead(time, index);
    }

    /// Takes the cell that has come to the end of a link, unless it is lost there.
    pub(crate) fn arrive(&mut self, id: LinkId) -> Option<(Port, Cell)> {
        let now = self.now();
        let link = &mut self.links[id.0 as usize];
        let cell = link.in_flight.pop_front().expect("an arrival is scheduled for each cell sent");
        if let Some((probability, stream)) = &mut link.loss
            && stream.happens(*probability)
        {
            link.passed.lost += 1;
            self.pdus.gone(cell.pdu);
            return None;
        }
        let pdu = cell.pdu;
        let Some(cell) = link.end.as_mut().map_or(Some(cell), |end| end.take(cell)) else {
            link.passed.lost += 1;
            self.pdus.gone(pdu);
            return None;
        };
        link.passed.given += 1;
        link.came.note(now, cell.index);
        Some((link.to, cell))
    }
}
