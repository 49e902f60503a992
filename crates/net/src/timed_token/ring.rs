//! The ring and the stations' access procedure.

use std::collections::VecDeque;

use wiretwin_engine::{EventQueue, Slab};
use wiretwin_plan::PlanError;
use wiretwin_units::{BitRate, SimTime, Span};

use super::{Config, Counters, Frame, LONGEST, Output, StationConfig, StationId};

struct Station<P> {
    config: StationConfig,
    /// From the first station's output round to this one's input, less what lies behind this input.
    place: Span,
    queue: VecDeque<Frame<P>>,
    /// When the rotation timer (TRT) runs out the next time, were the token not to come before.
    expiry: SimTime,
    counters: Counters,
}

/// Where the token is.
#[derive(Clone, Copy, Debug)]
enum Token {
    /// It left this station then, and goes round until a station takes it.
    Round { from: u16, left: SimTime },
    /// A station holds it.
    Held(Hold),
}

/// A station that holds the token.
#[derive(Clone, Copy, Debug)]
struct Hold {
    station: u16,
    /// The holding timer (THT): asynchronous time left.
    asynchronous: Span,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    /// A frame has left the holder.
    Sent,
    /// A frame, by its number, has arrived whole.
    Arrive { station: u16, frame: u32 },
    /// The token comes to a station that waits for it, if no other took it before.
    Token { station: u16, plan: u32 },
}

/// A frame that is on its way.
struct Flight<P> {
    from: u16,
    frame: Frame<P>,
    /// Stations it has not reached yet.
    left: u16,
}

/// A ring with its stations.
pub struct TimedToken<P> {
    config: Config,
    stations: Vec<Station<P>>,
    /// Once round for the token, nobody taking it.
    rotation: Span,
    token: Token,
    /// Counts plans of where the token is taken next.
    plan: u32,
    /// Frames on their way by number: places are used again when a frame is everywhere.
    flights: Slab<Flight<P>>,
    events: EventQueue<Event>,
    outputs: VecDeque<Output<P>>,
    now: SimTime,
}

impl<P: Clone> TimedToken<P> {
    /// A ring at rest: the token has just left the first station, all timers are set.
    ///
    /// # Errors
    /// [`PlanError`]: fewer than 2 stations or more than 500, less than 1 Mbit/s, a target into which the token
    /// and the longest frame do not fit.
    pub fn new(config: Config, stations: &[StationConfig]) -> Result<Self, PlanError> {
        if !(2..=500).contains(&stations.len()) {
            return Err(PlanError::new("stations", stations.len(), "2 to 500"));
        }
        if config.rate < BitRate::mbit_s(1) {
            return Err(PlanError::new("rate", config.rate, "1 Mbit/s or more"));
        }
        let mut rotation = Span::ZERO;
        let mut places = Vec::with_capacity(stations.len());
        for station in stations {
            places.push(rotation + station.latency);
            rotation = rotation + station.latency + station.hop;
        }
        // X3.139, 8.4.2: so that a token is never late twice.
        let least = rotation + config.time(config.token) + config.time_of(LONGEST);
        if least > config.target {
            let allowed = format!("{least} or more: a rotation, a token and the longest frame");
            return Err(PlanError::new("target", config.target, allowed));
        }
        let stations = stations.iter().zip(places).map(|(&config_of, place)| Station {
            config: config_of,
            place,
            queue: VecDeque::new(),
            expiry: SimTime::ZERO + config.target,
            counters: Counters::default(),
        });
        Ok(Self {
            config,
            stations: stations.collect(),
            rotation,
            token: Token::Round { from: 0, left: SimTime::ZERO },
            plan: 0,
            flights: Slab::new(),
            events: EventQueue::new(),
            outputs: VecDeque::new(),
            now: SimTime::ZERO,
        })
    }

    /// Queues a frame at a station, which sends it when the token lets it; `false` where the station's queue is full.
    ///
    /// # Errors
    /// [`PlanError`]: no such station, a frame to its own sender or of more than [`LONGEST`], a time that has passed.
    /// Nothing has changed then.
    pub fn offer(&mut self, now: SimTime, station: StationId, frame: Frame<P>) -> Result<bool, PlanError> {
        frame.check(station, self.stations.len(), LONGEST, now, self.now)?;
        let is_full = |sender: &Station<P>| sender.queue.len() >= sender.config.queue_frames as usize;
        // What has been sent by now makes room, so it is looked at after time has passed.
        if now == self.now && is_full(&self.stations[usize::from(station.0)]) {
            return Ok(false);
        }
        self.handle_timeout(now);
        let sender = &mut self.stations[usize::from(station.0)];
        if is_full(sender) {
            return Ok(false);
        }
        sender.queue.push_back(frame);
        sender.counters.offered += 1;
        self.plan_token();
        Ok(true)
    }

    /// Lets time pass: everything due by `now` happens.
    pub fn handle_timeout(&mut self, now: SimTime) {
        while let Some(event) = self.events.pop_through(now) {
            self.now = event.time;
            match event.what {
                Event::Sent => self.sent(),
                Event::Arrive { station, frame } => self.arrive(station, frame),
                Event::Token { station, plan } => {
                    if plan == self.plan {
                        self.take(station);
                    }
                }
            }
        }
        self.now = self.now.max(now);
    }

    /// The next thing to do.
    pub fn poll_output(&mut self) -> Output<P> {
        self.outputs.pop_front().unwrap_or_else(|| {
            while let Some(Event::Token { plan, .. }) = self.events.first().map(|event| event.what)
                && plan != self.plan
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

    /// Frames a station holds that have not left it; `None` if there is no such station.
    pub fn queued(&self, station: StationId) -> Option<usize> {
        self.stations.get(usize::from(station.0)).map(|station| station.queue.len())
    }

    /// The latest time it has been brought to.
    pub fn now(&self) -> SimTime {
        self.now
    }

    /// How many stations there are.
    pub fn stations(&self) -> usize {
        self.stations.len()
    }

    // The token on its way

    /// From one station's output to another's, through all between.
    fn way(&self, from: u16, to: u16) -> Span {
        let (from, to) = (&self.stations[usize::from(from)], &self.stations[usize::from(to)]);
        if to.place > from.place { to.place - from.place } else { self.rotation - (from.place - to.place) }
    }

    /// Finds who takes the token next, if it goes round and somebody waits for it.
    fn plan_token(&mut self) {
        let Token::Round { from, left } = self.token else { return };
        self.plan = self.plan.wrapping_add(1);
        let mut next: Option<(SimTime, u16)> = None;
        for (number, station) in (0..).zip(&self.stations) {
            if !station.queue.is_empty() {
                let at = self.passes(left + self.way(from, number));
                next = Some(next.map_or((at, number), |next| next.min((at, number))));
            }
        }
        if let Some((at, station)) = next {
            let plan = self.plan;
            self.events.push(at, Event::Token { station, plan });
        }
    }

    /// The first pass at or after now of a token that passes at `first` and once a rotation after it.
    fn passes(&self, first: SimTime) -> SimTime {
        let behind = self.now.saturating_since(first).as_ps();
        let rounds = behind.div_ceil(self.rotation.as_ps());
        first + Span::from_ps(rounds * self.rotation.as_ps())
    }

    /// The token has come to a station that has frames.
    fn take(&mut self, number: u16) {
        let Token::Round { from, left } = self.token else {
            unreachable!("a token is planned for only while it goes round");
        };
        for other in 0..self.stations.len() as u16 {
            let way = self.way(from, other);
            if other != number {
                self.pass(other, left + way);
            } else {
                // It has passed here too, if the frames came after it had gone by.
                let before = self.now - left - way;
                if before > Span::ZERO {
                    self.pass_until(other, left + way, self.now - self.rotation);
                }
            }
        }
        let target = self.config.target;
        let station = &mut self.stations[usize::from(number)];
        station.counters.held += 1;
        let asynchronous = if self.now < station.expiry {
            let early = station.expiry - self.now;
            station.expiry = self.now + target;
            early
        } else {
            late(station, self.now, target);
            Span::ZERO
        };
        self.token = Token::Held(Hold { station: number, asynchronous });
        self.send_or_release();
    }

    /// The token has passed a station, at `first` and once a rotation after it, up to now.
    fn pass(&mut self, number: u16, first: SimTime) {
        if first <= self.now {
            let rounds = (self.now - first).as_ps() / self.rotation.as_ps();
            self.pass_until(number, first, first + Span::from_ps(rounds * self.rotation.as_ps()));
        }
    }

    /// The token has passed a station at `first`, then once a rotation up to `last`.
    fn pass_until(&mut self, number: u16, first: SimTime, last: SimTime) {
        let target = self.config.target;
        let rotation = self.rotation;
        let station = &mut self.stations[usize::from(number)];
        // An idle rotation is shorter than the target: after a late token and one more all are early.
        let mut at = first;
        for _ in 0..3 {
            if at < station.expiry {
                station.expiry = at + target;
            } else {
                late(station, at, target);
            }
            if at == last {
                return;
            }
            at += rotation;
        }
        station.expiry = last + target;
    }

    // The token in hand

    /// The holder sends its next frame if it may, or lets the token go.
    fn send_or_release(&mut self) {
        let Token::Held(mut hold) = self.token else {
            unreachable!("only the holder sends");
        };
        let station = &self.stations[usize::from(hold.station)];
        if let Some(frame) = station.queue.front().filter(|_| hold.asynchronous > Span::ZERO) {
            let takes = self.config.time_of(frame.octets);
            // 8.4.3: a frame that was begun before the holding timer ran out is finished.
            let left = hold.asynchronous.as_ps().saturating_sub(takes.as_ps());
            hold.asynchronous = Span::from_ps(left);
            self.token = Token::Held(hold);
            return self.launch(hold.station, takes);
        }
        let left = self.now + self.config.time(self.config.token);
        self.token = Token::Round { from: hold.station, left };
        self.plan_token();
    }

    /// Puts the first frame of a queue on the ring.
    fn launch(&mut self, from: u16, takes: Span) {
        let station = &mut self.stations[usize::from(from)];
        let frame = station.queue.pop_front().expect("the frame was just seen");
        station.counters.sent += 1;
        station.counters.sent_octets += frame.octets.get();
        let end = self.now + takes;
        self.events.push(end, Event::Sent);
        let to = frame.to;
        let number = self.flights.insert(Flight { from, frame, left: 0 });
        for receiver in 0..self.stations.len() as u16 {
            if receiver != from && to.is_none_or(|to| to.0 == receiver) {
                let way = self.way(from, receiver);
                self.events.push(end + way, Event::Arrive { station: receiver, frame: number });
                self.flights[number].left += 1;
            }
        }
    }

    fn sent(&mut self) {
        let Token::Held(hold) = self.token else {
            unreachable!("only the holder sends");
        };
        self.outputs.push_back(Output::Sent { station: StationId(hold.station), due: self.now });
        self.send_or_release();
    }

    fn arrive(&mut self, station: u16, number: u32) {
        let flight = &mut self.flights[number];
        flight.left -= 1;
        let (from, frame) = (StationId(flight.from), flight.frame.clone());
        if flight.left == 0 {
            self.flights.remove(number);
        }
        self.stations[usize::from(station)].counters.received += 1;
        self.outputs.push_back(Output::Deliver { station: StationId(station), from, frame, due: self.now });
    }
}

/// A token that came after the rotation timer had run out: the timer goes on (8.4.2), once.
fn late<P>(station: &mut Station<P>, at: SimTime, target: Span) {
    station.counters.late += 1;
    station.expiry += target;
    if at >= station.expiry {
        station.counters.expired_twice += 1;
        station.expiry = at + target;
    }
}
