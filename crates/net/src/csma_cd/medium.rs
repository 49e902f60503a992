//! The cable and the stations' access procedure.

use std::collections::VecDeque;

use wiretwin_engine::{EventQueue, Stream};
use wiretwin_plan::PlanError;
use wiretwin_units::{BitRate, Bytes, SimTime, Span};

use super::{Config, Counters, Failure, Frame, LONGEST, Output, StationId};

/// What a station is doing with its frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It has none.
    Idle,
    /// It has wanted to send since `want`, and will at `start` unless it hears a carrier before.
    Ready { want: SimTime, start: SimTime },
    /// Its signal is on the cable.
    Sending,
    /// It keeps the cable after a frame: what it is offered before its carrier ends follows in the burst.
    Filling,
    /// It waits its slots after a collision.
    Backoff,
}

#[derive(Debug)]
struct Station<P> {
    /// Propagation time from the end of the cable.
    place: Span,
    state: State,
    frame: Option<Frame<P>>,
    collisions: u32,
    /// Counts plans, so that an event of an old plan is known.
    plan: u32,
    backoff: Stream,
    /// A frame that is offered before then may follow in the burst (`BurstTimer`).
    burst_until: SimTime,
    counters: Counters,
}

/// What a signal is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A frame for which the station has listened.
    First,
    /// A frame that follows in a burst.
    Next,
    /// The carrier between frames of a burst (`InterFrameSignal`).
    Fill,
}

/// One signal on the cable.
#[derive(Debug)]
struct Signal<P> {
    station: u16,
    kind: Kind,
    start: SimTime,
    /// When the sender stops: planned at first, earlier or later after a collision.
    end: SimTime,
    /// When the sender notices that it is not alone.
    detects: Option<SimTime>,
    /// It has noticed, and jams.
    jammed: bool,
    late: bool,
    /// Its end has been dealt with.
    ended: bool,
    /// Kept for the receivers once it has gone out whole.
    sent: Option<Frame<P>>,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    /// A signal's sender notices another.
    Detect { signal: u32 },
    /// A signal ends at its sender.
    End { signal: u32 },
    /// A signal has passed a receiver.
    Arrive { signal: u32, station: u16 },
    /// A station has waited its slots.
    BackoffEnd { station: u16 },
    /// A station starts, if its plan has not changed.
    Start { station: u16, plan: u32 },
}

/// A cable with its stations.
pub struct CsmaCd<P> {
    config: Config,
    stations: Vec<Station<P>>,
    /// Stations in [`State::Ready`], in the order in which they became so.
    ready: Vec<u16>,
    signals: VecDeque<Signal<P>>,
    /// The number of the first of `signals`; the next of the last is 0.
    first_signal: u32,
    /// How many signals there must be before it is worth looking which may be forgotten.
    enough: usize,
    /// The longest way along the cable.
    longest: Span,
    events: EventQueue<Event>,
    outputs: VecDeque<Output<P>>,
    now: SimTime,
    /// Carriers at one place: on, off, its own. Kept for its allocation.
    heard: Vec<(SimTime, SimTime, bool)>,
    gap: Span,
    gap_first: Span,
    preamble: Span,
    jam: Span,
    slot: Span,
    burst: Span,
}

impl<P: Clone> CsmaCd<P> {
    /// A silent cable. `places` are the stations' distances from its end, as propagation times;
    /// `backoff` gives each station its stream.
    ///
    /// # Errors
    /// [`PlanError`]: fewer than 2 stations or more than 65 535, less than 1 Mbit/s, no attempt, a backoff of more than
    /// 2^31 slots.
    pub fn new(
        config: Config,
        places: &[Span],
        mut backoff: impl FnMut(StationId) -> Stream,
    ) -> Result<Self, PlanError> {
        if !(2..=usize::from(u16::MAX)).contains(&places.len()) {
            return Err(PlanError::new("stations", places.len(), "2 to 65535"));
        }
        if config.rate < BitRate::mbit_s(1) {
            return Err(PlanError::new("rate", config.rate, "1 Mbit/s or more"));
        }
        if config.attempt_limit == 0 {
            return Err(PlanError::new("attempt_limit", 0, "1 or more"));
        }
        if config.backoff_limit > 31 {
            return Err(PlanError::new("backoff_limit", config.backoff_limit, "0 to 31"));
        }
        let (nearest, farthest) = places
            .iter()
            .fold((Span::MAX, Span::ZERO), |(near, far), &place| (near.min(place), far.max(place)));
        let stations = (0..).zip(places).map(|(number, &place)| Station {
            place,
            state: State::Idle,
            frame: None,
            collisions: 0,
            plan: 0,
            backoff: backoff(StationId(number)),
            burst_until: SimTime::ZERO,
            counters: Counters::default(),
        });
        Ok(Self {
            stations: stations.collect(),
            ready: Vec::new(),
            signals: VecDeque::new(),
            first_signal: 0,
            enough: FEW,
            longest: farthest - nearest,
            events: EventQueue::new(),
            outputs: VecDeque::new(),
            now: SimTime::ZERO,
            heard: Vec::new(),
            gap: config.time(config.gap),
            gap_first: config.time(config.gap_first),
            preamble: config.time(config.preamble),
            jam: config.time(config.jam),
            slot: config.time(config.slot),
            burst: config.time(config.burst),
            config,
        })
    }

    /// Gives a station its next frame, which it sends as soon as it may.
    ///
    /// # Errors
    /// [`PlanError`]: no such station, a frame to its own sender or of more than 65 535 octets, a time that has passed,
    /// a station that has not done with the frame before. Nothing has changed then.
    pub fn offer(&mut self, now: SimTime, station: StationId, frame: Frame<P>) -> Result<(), PlanError> {
        frame.check(station, self.stations.len(), LONGEST, now, self.now)?;
        if !self.is_idle(station) {
            return Err(PlanError::new("station", station.0, "one that has done with its last frame"));
        }
        self.handle_timeout(now);
        let sender = &mut self.stations[usize::from(station.0)];
        sender.frame = Some(frame);
        sender.collisions = 0;
        sender.counters.offered += 1;
        if sender.state == State::Filling && now < sender.burst_until {
            // It waits for the end of the carrier, and for nothing else.
            return Ok(());
        }
        self.want(station.0);
        if let State::Ready { start, .. } = self.stations[usize::from(station.0)].state {
            self.stations[usize::from(station.0)].counters.deferred += u64::from(start > now);
        }
        Ok(())
    }

    /// Lets time pass: everything due by `now` happens.
    pub fn handle_timeout(&mut self, now: SimTime) {
        while let Some(event) = self.events.pop_through(now) {
            self.now = event.time;
            match event.what {
                Event::Start { station, plan } => self.start(station, plan),
                Event::Detect { signal } => self.detect(signal),
                Event::End { signal } => self.end(signal),
                Event::Arrive { signal, station } => self.arrive(signal, station),
                Event::BackoffEnd { station } => self.want(station),
            }
        }
        self.now = self.now.max(now);
        self.forget();
    }

    /// The next thing to do.
    pub fn poll_output(&mut self) -> Output<P> {
        self.outputs.pop_front().unwrap_or_else(|| {
            // A plan that was changed leaves its event behind: it wakes the driver for nothing.
            while let Some(Event::Start { station, plan }) = self.events.first().map(|event| event.what)
                && self.stations[usize::from(station)].plan != plan
            {
                self.events.pop();
            }
            Output::Timeout(self.events.next_time())
        })
    }

    /// What a station has counted; `None` if there is no such station.
    pub fn counters(&self, station: StationId) -> Option<Counters> {
        self.stations.get(usize::from(station.0)).map(|station| station.counters)
    }

    /// How many stations there are.
    pub fn stations(&self) -> usize {
        self.stations.len()
    }

    /// Whether a station may be offered a frame.
    pub fn is_idle(&self, station: StationId) -> bool {
        self.stations.get(usize::from(station.0)).is_some_and(|station| {
            station.state == State::Idle || (station.state == State::Filling && station.frame.is_none())
        })
    }

    /// The parameters.
    pub fn config(&self) -> &Config {
        &self.config
    }

    // Deference

    /// From now on the station wants to send.
    fn want(&mut self, number: u16) {
        let want = self.now;
        let start = self.start_at(number, want);
        self.ready.push(number);
        self.plan(number, want, start);
    }

    fn plan(&mut self, number: u16, want: SimTime, start: SimTime) {
        let station = &mut self.stations[usize::from(number)];
        station.plan = station.plan.wrapping_add(1);
        station.state = State::Ready { want, start };
        let plan = station.plan;
        self.events.push(start, Event::Start { station: number, plan });
    }

    /// The carriers have changed: those who are ready may have to wait longer, or less long.
    fn replan(&mut self) {
        for place in 0..self.ready.len() {
            let number = self.ready[place];
            let State::Ready { want, start } = self.stations[usize::from(number)].state else {
                unreachable!("only stations that are ready are on the list");
            };
            let again = self.start_at(number, want);
            if again != start {
                self.plan(number, want, again);
            }
        }
    }

    /// When a station that wants to send since `want` starts, as things are.
    ///
    /// The process `Deference` of 4.2.8: after a carrier a station waits for the gap. In its first part
    /// a new carrier starts it anew, unless the station itself was sending in the busy period before; in
    /// its second part none does. A frame that waits at the end of the gap goes out, whatever is on the
    /// cable then; one that comes later goes out at once if there is silence.
    fn start_at(&mut self, number: u16, want: SimTime) -> SimTime {
        let here = self.stations[usize::from(number)].place;
        let want = want.max(self.now);
        self.heard.clear();
        let mut of_burst = None;
        for signal in &self.signals {
            let way = distance(self.stations[usize::from(signal.station)].place, here);
            let (on, off) = (signal.start + way, signal.end + way);
            // What follows in a burst goes on with the same carrier.
            match self.heard.last_mut() {
                Some(last) if signal.kind != Kind::First && of_burst == Some((signal.station, on)) => {
                    last.1 = off
                }
                _ => self.heard.push((on, off, signal.station == number)),
            }
            of_burst = Some((signal.station, off));
        }
        self.heard.sort_unstable();
        let mut carriers = self.heard.iter();
        let Some(&(on, off, own)) = carriers.next() else { return want };
        if on >= want {
            return want;
        }
        let (mut silent, mut was_own) = (off, own);
        for &(on, off, own) in carriers {
            if on <= silent {
                (silent, was_own) = (silent.max(off), was_own || own);
            } else if !was_own && on < silent + self.gap_first {
                silent = off;
            } else if want > silent + self.gap && on < want {
                (silent, was_own) = (off, own);
            } else {
                break;
            }
        }
        want.max(silent + self.gap)
    }

    // Transmission

    fn start(&mut self, number: u16, plan: u32) {
        let sender = &mut self.stations[usize::from(number)];
        if sender.plan != plan || !matches!(sender.state, State::Ready { .. }) {
            return;
        }
        sender.burst_until = self.now + self.burst;
        self.ready.retain(|&other| other != number);
        self.send(number, Kind::First);
    }

    /// A station's carrier goes on the cable.
    fn send(&mut self, number: u16, kind: Kind) {
        let sender = &mut self.stations[usize::from(number)];
        let here = sender.place;
        let octets = sender.frame.as_ref().map_or(Bytes::new(0), |frame| frame.octets);
        let (state, time) = match kind {
            Kind::First => (State::Sending, self.config.time_of(octets)),
            Kind::Next => (State::Sending, self.config.time_of_next(octets)),
            Kind::Fill => (State::Filling, self.gap),
        };
        sender.state = state;
        sender.counters.followed += u64::from(kind == Kind::Next);
        let (start, end) = (self.now, self.now + time);
        let id = self.first_signal.wrapping_add(self.signals.len() as u32);
        // Whoever is on the cable is heard here, and this is heard there, a propagation time later.
        let mut detects: Option<SimTime> = None;
        for place in 0..self.signals.len() {
            let other = &self.signals[place];
            let way = distance(self.stations[usize::from(other.station)].place, here);
            let (on, off) = (other.start + way, other.end + way);
            if off > start && on < end {
                let heard = on.max(start);
                detects = Some(detects.map_or(heard, |earlier| earlier.min(heard)));
            }
            let there = (start + way).max(other.start);
            if there < other.end && other.detects.is_none_or(|earlier| there < earlier) && !other.jammed {
                self.signals[place].detects = Some(there);
                let signal = self.first_signal.wrapping_add(place as u32);
                self.events.push(there, Event::Detect { signal });
            }
        }
        self.signals.push_back(Signal {
            station: number,
            kind,
            start,
            end,
            detects,
            jammed: false,
            late: false,
            ended: false,
            sent: None,
        });
        if let Some(time) = detects {
            self.events.push(time, Event::Detect { signal: id });
        }
        self.events.push(end, Event::End { signal: id });
        self.replan();
    }

    fn detect(&mut self, id: u32) {
        let Some(place) = self.place_of(id) else { return };
        let signal = &mut self.signals[place];
        if signal.jammed || signal.detects != Some(self.now) || signal.end <= self.now {
            return;
        }
        signal.jammed = true;
        // 4.2.3.2.4: the preamble is completed, then the jam.
        let preamble = if signal.kind == Kind::Fill { signal.start } else { signal.start + self.preamble };
        signal.end = self.now.max(preamble) + self.jam;
        // 4.2.8, `lateCollision`: any but at the first frame of a burst. Choice: the slot is counted from the
        // first bit of the preamble.
        signal.late = signal.kind != Kind::First || self.now > signal.start + self.slot;
        let end = signal.end;
        self.events.push(end, Event::End { signal: id });
        self.replan();
    }

    fn end(&mut self, id: u32) {
        // The end that was planned before a collision finds the signal ended, or gone.
        let Some(signal) = self.place_of(id).map(|place| &mut self.signals[place]) else { return };
        if signal.end != self.now || std::mem::replace(&mut signal.ended, true) {
            return;
        }
        let (number, jammed, late) = (signal.station, signal.jammed, signal.late);
        if signal.kind == Kind::Fill {
            return self.end_fill(number, jammed);
        }
        let began = signal.start;
        let station = StationId(number);
        let sender = &mut self.stations[usize::from(number)];
        if !jammed {
            let frame = sender.frame.take().expect("a station that sends has a frame");
            sender.state = State::Idle;
            sender.counters.sent += 1;
            sender.counters.sent_octets += frame.octets.get();
            let collisions = sender.collisions;
            let here = sender.place;
            let to = frame.to;
            signal.sent = Some(frame);
            let goes_on = self.now < sender.burst_until;
            self.outputs.push_back(Output::Sent { station, collisions, began, due: self.now });
            for receiver in 0..self.stations.len() as u16 {
                if receiver != number && to.is_none_or(|to| to.0 == receiver) {
                    let way = distance(self.stations[usize::from(receiver)].place, here);
                    self.events.push(self.now + way, Event::Arrive { signal: id, station: receiver });
                }
            }
            if goes_on {
                self.send(number, Kind::Fill);
            }
            return;
        }
        sender.collisions += 1;
        sender.counters.collisions += 1;
        let why = if late {
            sender.counters.late += 1;
            Some(Failure::Late)
        } else if sender.collisions >= self.config.attempt_limit {
            sender.counters.excessive += 1;
            Some(Failure::Excessive)
        } else {
            None
        };
        if let Some(why) = why {
            let frame = sender.frame.take().expect("a station that sends has a frame");
            sender.state = State::Idle;
            self.outputs.push_back(Output::Failed { station, frame, why, due: self.now });
        } else {
            // 4.2.3.2.5: r slots, 0 <= r < 2^min(n, backoffLimit).
            let range = 1_u64 << sender.collisions.min(self.config.backoff_limit);
            let slots = sender.backoff.below(range);
            sender.state = State::Backoff;
            let wait = Span::from_ps(self.slot.as_ps() * slots);
            self.events.push(self.now + wait, Event::BackoffEnd { station: number });
        }
    }

    /// The carrier behind a frame of a burst ends: the next frame follows, or another carrier has met it.
    fn end_fill(&mut self, number: u16, jammed: bool) {
        let sender = &mut self.stations[usize::from(number)];
        // A frame that was offered too late to follow waits as any other.
        let waits = sender.state == State::Filling;
        if jammed {
            sender.counters.collisions += 1;
            sender.counters.late += 1;
        }
        if !waits {
            return;
        }
        if !jammed && sender.frame.is_some() {
            return self.send(number, Kind::Next);
        }
        sender.state = State::Idle;
        if let Some(frame) = sender.frame.take() {
            let (station, why, due) = (StationId(number), Failure::Late, self.now);
            self.outputs.push_back(Output::Failed { station, frame, why, due });
        }
    }

    // Reception

    fn arrive(&mut self, id: u32, number: u16) {
        let place = self.place_of(id).expect("a signal is kept until it has passed every station");
        let here = self.stations[usize::from(number)].place;
        let signal = &self.signals[place];
        let from = signal.station;
        let at = |signal: &Signal<P>| {
            let way = distance(self.stations[usize::from(signal.station)].place, here);
            (signal.start + way, signal.end + way)
        };
        let (on, off) = at(signal);
        let whole = (0..).zip(&self.signals).all(|(other, signal)| {
            let (other_on, other_off) = at(signal);
            other == place || other_off <= on || other_on >= off
        });
        let frame = signal.sent.clone().expect("only a signal that went out whole arrives");
        let counters = &mut self.stations[usize::from(number)].counters;
        if whole {
            counters.received += 1;
            let (station, from) = (StationId(number), StationId(from));
            self.outputs.push_back(Output::Deliver { station, from, frame, began: on, due: self.now });
        } else {
            counters.damaged += 1;
        }
    }

    // Signals and events

    fn place_of(&self, id: u32) -> Option<usize> {
        Some(id.wrapping_sub(self.first_signal) as usize).filter(|&place| place < self.signals.len())
    }

    /// Drops signals that no station hears, will receive, or counts its gap from any more.
    ///
    /// Those that go are followed by silence at every station: a busy period is kept whole, as it
    /// matters to a station whether it sent in it.
    fn forget(&mut self) {
        if self.signals.len() < self.enough {
            return;
        }
        let over = |signal: &Signal<P>| signal.end + self.longest + self.gap < self.now;
        let mut count = self.signals.iter().take_while(|signal| over(signal)).count();
        while count > 0 && !self.stations.iter().all(|station| self.is_silent_after(count, station.place)) {
            count -= 1;
        }
        self.signals.drain(..count);
        self.first_signal = self.first_signal.wrapping_add(count as u32);
        self.enough = self.signals.len() + FEW;
    }

    /// Whether there was silence at this place between the first `count` signals and the others.
    fn is_silent_after(&self, count: usize, here: Span) -> bool {
        let way = |signal: &Signal<P>| distance(self.stations[usize::from(signal.station)].place, here);
        let silent = self.signals.range(..count).map(|signal| signal.end + way(signal)).max();
        let next = self.signals.range(count..).map(|signal| signal.start + way(signal)).min();
        next.is_none_or(|next| silent < Some(next))
    }
}

/// Signals that are not worth forgetting.
const FEW: usize = 8;

/// The propagation time between two places on the cable.
fn distance(a: Span, b: Span) -> Span {
    if a > b { a - b } else { b - a }
}
