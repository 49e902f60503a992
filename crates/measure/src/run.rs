//! The leader and the follower: from a step of a schedule to its samples.

use std::collections::{BTreeMap, BTreeSet};

use wiretwin_prog::{Comm, CommError, Rank, Source, Tag, TagMatch};
use wiretwin_units::Span;

use crate::control::{CONTROL_BYTES, Control, Order};
use crate::loops::{Buffers, DATA, Iteration, Kind, follow_batch, lead, lead_batch};
use crate::plan::{Step, choose_batch, next_chunk};

/// Untimed iterations at the start of each run of samples: the first ones still feel the control
/// messages before them.
const SETTLE: u32 = 2;
/// From so long an iteration on, what control messages leave behind them is lost in it, and a run of samples
/// begins without untimed iterations.
const LONG: Span = Span::from_ps(200_000_000);
/// After so many losses a step ends with what it has.
const MOST_LOSSES: u64 = 3;
/// Iterations of the echo that tells how long to pause before a timed receive.
const SOUNDINGS: u32 = 10;
/// The least pause before a timed receive, when the leader chooses it.
const LEAST_PAUSE: Span = Span::from_ps(20_000_000);

/// What the loops need to know of the layer under them.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// What reading [`Comm::now`] costs.
    pub clock_cost: Span,
    /// Whether messages may be lost: then a wait that reaches its limit is a loss to be counted,
    /// not the end.
    pub lossy: bool,
    /// How much of the processor this thread has had so far.
    pub worked: fn() -> Span,
}

/// What a step gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Samples {
    /// Iterations a sample.
    pub batch: u32,
    /// The pause before each receive of recv_busy and interrupt, zero for every other loop.
    pub pause: Span,
    /// Time of the very first iteration, not among the samples. `None` only if there are none, all
    /// attempts having been lost.
    pub first: Option<Span>,
    /// One entry a sample, each the time of `batch` iterations, in nanoseconds.
    pub values_ns: Vec<u64>,
    /// Messages that did not come within the limit on a layer that may lose them.
    pub lost: u64,
    /// Bytes of payload that rank 0 set out to send in the whole step, timed or not, without the control
    /// messages.
    pub payload_out: u64,
    /// Likewise to receive.
    pub payload_in: u64,
}

impl Samples {
    /// None yet, of iterations with this pause in them.
    pub(crate) const fn none(pause: Span) -> Self {
        Self { batch: 1, pause, first: None, values_ns: Vec::new(), lost: 0, payload_out: 0, payload_in: 0 }
    }

    /// The median time of an iteration, if there is a sample.
    pub(crate) fn median(&self) -> Option<Span> {
        let mut sorted = self.values_ns.clone();
        sorted.sort_unstable();
        let middle = *sorted.get(sorted.len() / 2)?;
        Some(Span::from_ps(middle.saturating_mul(1000) / u64::from(self.batch)))
    }

    /// Adds the payload of so many iterations.
    fn count(&mut self, iteration: Iteration, iterations: u64) {
        let (out, back) = iteration.payload();
        self.payload_out += out * iterations;
        self.payload_in += back * iterations;
    }
}

/// Rank 0 of a measurement.
#[derive(Debug)]
pub struct Leader {
    settings: Settings,
    buffers: Buffers,
    /// Lengths that have come back unchanged.
    verified: BTreeSet<usize>,
    /// The median round trip of each length whose echo was timed.
    round_trips: BTreeMap<usize, Span>,
}

/// Rank 1 of a measurement.
#[derive(Debug)]
pub struct Follower {
    settings: Settings,
    buffers: Buffers,
}

async fn tell<C: Comm>(comm: &mut C, control: Control) -> Result<(), CommError> {
    let peer = Rank(1 - comm.rank().0);
    comm.send(peer, Tag::CONTROL, &control.encode()).await
}

async fn hear<C: Comm>(comm: &mut C) -> Result<Control, CommError> {
    let peer = Rank(1 - comm.rank().0);
    let mut message = [0; CONTROL_BYTES];
    comm.recv(Source::Rank(peer), TagMatch::Tag(Tag::CONTROL), &mut message).await?;
    Control::decode(&message)
}

fn out_of_step(got: Control) -> CommError {
    CommError::Transport(format!("the ranks are out of step: {got:?} came"))
}

/// Fills `buffer` with bytes that tell their place and their step.
fn fill(buffer: &mut [u8], seed: u64) {
    for (at, byte) in buffer.iter_mut().enumerate() {
        *byte = ((at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(seed) >> 29) as u8;
    }
}

fn size(bytes: u64) -> Result<usize, CommError> {
    usize::try_from(bytes).map_err(|_| CommError::Transport(format!("{bytes} bytes do not fit in memory")))
}

impl Leader {
    /// A leader with no buffers yet.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            buffers: Buffers::default(),
            verified: BTreeSet::new(),
            round_trips: BTreeMap::new(),
        }
    }

    /// Takes the samples of one step. `number` makes the verified payload differ between steps; a length is
    /// verified by the first step that has it.
    ///
    /// # Errors
    /// Those of the layer, and [`CommError::Transport`] if a payload came back changed. Samples
    /// taken before an error are lost with it.
    pub async fn step<C: Comm>(
        &mut self,
        comm: &mut C,
        step: &Step,
        number: u64,
    ) -> Result<Samples, CommError> {
        let bytes = size(step.bytes.get())?;
        self.buffers.fit(bytes);
        let mut samples = Samples::none(Span::ZERO);
        if step.kind.exchanges() && bytes > 0 && !self.verified.contains(&bytes) {
            self.verify(comm, bytes, number, &mut samples).await?;
            if samples.lost >= MOST_LOSSES {
                return Ok(samples);
            }
            self.verified.insert(bytes);
        }
        let mut iteration = Iteration {
            kind: step.kind,
            bytes,
            messages: u64::from(step.messages.max(1)),
            delay: step.delay,
            worked: self.settings.worked,
        };
        if step.kind.receives_late() {
            if step.delay == Span::ZERO {
                let round_trip = match self.round_trips.get(&bytes) {
                    Some(&known) => known,
                    None => {
                        let sounding = Iteration { kind: Kind::Echo, ..iteration };
                        self.warm(comm, sounding, SOUNDINGS, &mut samples).await?.1
                    }
                };
                iteration.delay = Span::from_ps(2 * round_trip.as_ps() + LEAST_PAUSE.as_ps());
            }
            samples.pause = iteration.delay;
        }
        let (first, fastest) = loop {
            let (first, fastest) = self.warm(comm, iteration, step.warmup, &mut samples).await?;
            if first.is_some() || samples.lost >= MOST_LOSSES {
                break (first, fastest);
            }
        };
        samples.first = first;
        samples.batch = choose_batch(step, fastest, self.settings.clock_cost);
        let mut estimate = Span::from_ps(fastest.as_ps().saturating_mul(u64::from(samples.batch)));
        let mut spent = 0;
        loop {
            let taken = u32::try_from(samples.values_ns.len()).unwrap_or(u32::MAX);
            let chunk = next_chunk(step, taken, Span::from_ps(spent), estimate);
            if chunk == 0 || samples.lost >= MOST_LOSSES {
                if step.kind == Kind::Echo
                    && let Some(round_trip) = samples.median()
                {
                    self.round_trips.insert(bytes, round_trip);
                }
                return Ok(samples);
            }
            let before = comm.now().as_ps();
            let settle = if estimate.as_ps() < LONG.as_ps() * u64::from(samples.batch) { SETTLE } else { 0 };
            self.chunk(comm, iteration, settle, chunk, &mut samples).await?;
            let took = comm.now().as_ps() - before;
            spent += took;
            estimate = Span::from_ps(took / u64::from(chunk));
        }
    }

    /// Tells the follower that both ranks are to move to one core, or away from it, which this rank does when it
    /// returns.
    ///
    /// # Errors
    /// Those of the layer.
    pub async fn order_move<C: Comm>(&mut self, comm: &mut C, together: bool) -> Result<(), CommError> {
        tell(comm, Control::Move { together }).await?;
        self.expect_ready(comm).await
    }

    /// Tells the follower that nothing more will come.
    ///
    /// # Errors
    /// Those of the layer.
    pub async fn quit<C: Comm>(&mut self, comm: &mut C) -> Result<(), CommError> {
        tell(comm, Control::Quit).await?;
        self.expect_ready(comm).await
    }

    async fn expect_ready<C: Comm>(&mut self, comm: &mut C) -> Result<(), CommError> {
        match hear(comm).await? {
            Control::Ready => Ok(()),
            other => Err(out_of_step(other)),
        }
    }

    /// Turns a loss into a count and brings both ranks to the same point again.
    async fn settle<C: Comm, T>(
        &mut self,
        comm: &mut C,
        outcome: Result<T, CommError>,
        samples: &mut Samples,
    ) -> Result<Option<T>, CommError> {
        if !self.settings.lossy {
            return outcome.map(Some);
        }
        let (value, lost) = match outcome {
            Ok(value) => (Some(value), 0),
            Err(CommError::TimedOut { .. }) => (None, 1),
            Err(error) => return Err(error),
        };
        tell(comm, Control::Over { lost }).await?;
        match hear(comm).await? {
            Control::Over { lost: theirs } => {
                samples.lost += lost.max(theirs);
                Ok(value)
            }
            other => Err(out_of_step(other)),
        }
    }

    async fn verify<C: Comm>(
        &mut self,
        comm: &mut C,
        bytes: usize,
        number: u64,
        samples: &mut Samples,
    ) -> Result<(), CommError> {
        fill(&mut self.buffers.out[..bytes], number);
        self.buffers.back[..bytes].fill(0);
        while samples.lost < MOST_LOSSES {
            tell(comm, Control::Verify { bytes: bytes as u64 }).await?;
            self.expect_ready(comm).await?;
            let (delay, worked) = (Span::ZERO, self.settings.worked);
            let echo = Iteration { kind: Kind::Echo, bytes, messages: 1, delay, worked };
            samples.count(echo, 1);
            let outcome = lead(comm, echo, &mut self.buffers).await;
            if self.settle(comm, outcome, samples).await?.is_some() {
                let (out, back) = (&self.buffers.out[..bytes], &self.buffers.back[..bytes]);
                return match out.iter().zip(back).position(|(sent, came)| sent != came) {
                    None => Ok(()),
                    Some(at) => Err(CommError::Transport(format!(
                        "the payload came back changed: byte {at} of {bytes} was {} and is {}",
                        out[at], back[at]
                    ))),
                };
            }
        }
        Ok(())
    }

    async fn order<C: Comm>(
        &mut self,
        comm: &mut C,
        iteration: Iteration,
        iterations: u64,
    ) -> Result<(), CommError> {
        if iteration.kind == Kind::Call {
            return Ok(()); // the follower has no part in it
        }
        tell(
            comm,
            Control::Run(Order {
                kind: iteration.kind,
                bytes: iteration.bytes as u64,
                messages: iteration.messages,
                iterations,
            }),
        )
        .await?;
        self.expect_ready(comm).await
    }

    /// The first iteration and the warm-up: the time of the first, and the time per
    /// iteration of the fastest of up to four groups.
    async fn warm<C: Comm>(
        &mut self,
        comm: &mut C,
        iteration: Iteration,
        warmup: u32,
        samples: &mut Samples,
    ) -> Result<(Option<Span>, Span), CommError> {
        let planned = 1 + u64::from(warmup);
        self.order(comm, iteration, planned).await?;
        samples.count(iteration, planned);
        let before = comm.now().as_ps();
        let outcome = lead(comm, iteration, &mut self.buffers).await;
        let first = Span::from_ps(comm.now().as_ps() - before);
        let first_inside = outcome.as_ref().map_or(Span::ZERO, |&inside| inside);
        let mut outcome = outcome.map(|_| ());
        let reported =
            outcome.is_ok().then_some(if iteration.kind.timed_inside() { first_inside } else { first });
        let mut fastest = first.as_ps();
        let mut left = warmup;
        while left > 0 && outcome.is_ok() {
            let group = warmup.div_ceil(4).min(left);
            let before = comm.now().as_ps();
            for _ in 0..group {
                outcome = lead(comm, iteration, &mut self.buffers).await.map(|_| ());
                if outcome.is_err() {
                    break;
                }
            }
            if outcome.is_ok() {
                let mean = (comm.now().as_ps() - before) / u64::from(group);
                fastest = fastest.min(mean);
            }
            left -= group;
        }
        if iteration.kind == Kind::Call {
            outcome?;
        } else {
            self.settle(comm, outcome, samples).await?;
        }
        Ok((reported, Span::from_ps(fastest)))
    }

    async fn chunk<C: Comm>(
        &mut self,
        comm: &mut C,
        iteration: Iteration,
        settle: u32,
        chunk: u32,
        samples: &mut Samples,
    ) -> Result<(), CommError> {
        samples.values_ns.reserve(chunk as usize);
        let batch = samples.batch;
        let planned = u64::from(settle) + u64::from(chunk) * u64::from(batch);
        self.order(comm, iteration, planned).await?;
        samples.count(iteration, planned);
        let outcome = match self.settled(comm, iteration, settle).await {
            Err(error) => Err(error),
            Ok(()) if iteration.kind.timed_inside() => {
                self.take_inside(comm, iteration, chunk, batch, &mut samples.values_ns).await
            }
            Ok(()) => self.take_whole(comm, iteration, chunk, batch, &mut samples.values_ns).await,
        };
        if iteration.kind == Kind::Call {
            return outcome;
        }
        self.settle(comm, outcome, samples).await.map(|_| ())
    }

    /// The untimed iterations before samples.
    async fn settled<C: Comm>(
        &mut self,
        comm: &mut C,
        iteration: Iteration,
        settle: u32,
    ) -> Result<(), CommError> {
        for _ in 0..settle {
            lead(comm, iteration, &mut self.buffers).await?;
        }
        Ok(())
    }

    async fn take_whole<C: Comm>(
        &mut self,
        comm: &mut C,
        iteration: Iteration,
        chunk: u32,
        batch: u32,
        values_ns: &mut Vec<u64>,
    ) -> Result<(), CommError> {
        let mut last = comm.now().as_ps();
        for _ in 0..chunk {
            lead_batch(comm, iteration, &mut self.buffers, batch).await?;
            let now = comm.now().as_ps();
            values_ns.push((now - last) / 1000);
            last = now;
        }
        Ok(())
    }

    async fn take_inside<C: Comm>(
        &mut self,
        comm: &mut C,
        iteration: Iteration,
        chunk: u32,
        batch: u32,
        values_ns: &mut Vec<u64>,
    ) -> Result<(), CommError> {
        for _ in 0..chunk {
            let mut inside = 0;
            for _ in 0..batch {
                inside += lead(comm, iteration, &mut self.buffers).await?.as_ps();
            }
            values_ns.push(inside / 1000);
        }
        Ok(())
    }
}

impl Follower {
    /// A follower with no buffers yet.
    pub fn new(settings: Settings) -> Self {
        Self { settings, buffers: Buffers::default() }
    }

    /// Does what the leader says until it says that nothing more will come; `moves` to one core, or away from it.
    ///
    /// # Errors
    /// Those of the layer.
    pub async fn serve<C: Comm>(
        &mut self,
        comm: &mut C,
        mut moves: impl FnMut(bool),
    ) -> Result<(), CommError> {
        loop {
            match hear(comm).await? {
                Control::Move { together } => {
                    tell(comm, Control::Ready).await?;
                    moves(together);
                }
                Control::Quit => return tell(comm, Control::Ready).await,
                Control::Verify { bytes } => {
                    let bytes = size(bytes)?;
                    self.buffers.fit(bytes);
                    tell(comm, Control::Ready).await?;
                    let outcome = self.reflect(comm, bytes).await;
                    self.settle(comm, outcome).await?;
                }
                Control::Run(order) => {
                    let iteration = Iteration {
                        kind: order.kind,
                        bytes: size(order.bytes)?,
                        messages: order.messages,
                        delay: Span::ZERO,
                        worked: self.settings.worked,
                    };
                    self.buffers.fit(iteration.bytes);
                    tell(comm, Control::Ready).await?;
                    let outcome = self.run(comm, iteration, order.iterations).await;
                    self.settle(comm, outcome).await?;
                }
                other => return Err(out_of_step(other)),
            }
        }
    }

    async fn run<C: Comm>(
        &mut self,
        comm: &mut C,
        iteration: Iteration,
        iterations: u64,
    ) -> Result<(), CommError> {
        follow_batch(comm, iteration, &mut self.buffers, iterations).await
    }

    async fn reflect<C: Comm>(&mut self, comm: &mut C, bytes: usize) -> Result<(), CommError> {
        let from = Source::Rank(Rank(0));
        comm.recv(from, TagMatch::Tag(DATA), &mut self.buffers.back[..bytes]).await?;
        comm.send(Rank(0), DATA, &self.buffers.back[..bytes]).await
    }

    async fn settle<C: Comm>(
        &mut self,
        comm: &mut C,
        outcome: Result<(), CommError>,
    ) -> Result<(), CommError> {
        if !self.settings.lossy {
            return outcome;
        }
        let lost = match outcome {
            Ok(()) => 0,
            Err(CommError::TimedOut { .. }) => 1,
            Err(error) => return Err(error),
        };
        match hear(comm).await? {
            Control::Over { .. } => tell(comm, Control::Over { lost }).await,
            other => Err(out_of_step(other)),
        }
    }
}
