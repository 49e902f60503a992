//! The innermost loops: what each side does in one iteration.

use wiretwin_prog::{Comm, CommError, Rank, Source, Tag, TagMatch};
use wiretwin_units::Span;

use crate::paged::Paged;

/// The tag of measured messages.
pub(crate) const DATA: Tag = Tag(1);

/// A slice is looked for so long: one's own and the other's, with the usual tick of 4 ms, and half as much.
const SLICES: Span = Span::from_ps(12_000_000_000);
/// Who has not had the core for so long has lost it to another rank, and not to an interrupt.
const AWAY: Span = Span::from_ps(300_000_000);
/// Between two looks at the clock nothing else takes so long but what interrupts the rank.
const DETOUR: Span = Span::from_ps(1_000_000);
/// Messages that interrupt a rank are so far apart that none of them is taken together with the next, and the kernel is still at
/// work on the first when the second comes.
const APART: Span = Span::from_ps(10_000_000);

/// A measuring loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Ping-pong (Lin et al. 1995): a message there, the same length back.
    Echo,
    /// Request and response with the request in two writes: the first half (the larger one if they
    /// differ), the second half, then one reply of the whole length.
    TwoWrite,
    /// One way: `messages` messages, then an acknowledgement of one byte.
    Stream,
    /// Parametrised round trip (Hoefler, Lichei & Rehm 2007): `messages` messages with a spinning
    /// pause before each but the first, then one reply of the same length.
    Prtt,
    /// Time inside the send; an acknowledgement of one byte follows, untimed.
    SendBusy,
    /// Time inside the receive of a message that came during a pause before it.
    RecvBusy,
    /// What messages that come take of a rank that computes, which sees when it has not gone on.
    Interrupt,
    /// A call that moves nothing.
    Call,
    /// [`Kind::Echo`] of two ranks on one core.
    OneCore,
    /// Two ranks compute on one core, without a message: how long rank 0 keeps it before rank 1 has it.
    Slice,
    /// Rank 0 computes for `delay` of its own time, on one core with rank 1, which waits: how long that takes.
    Beside,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Echo,
        Self::TwoWrite,
        Self::Stream,
        Self::Prtt,
        Self::SendBusy,
        Self::RecvBusy,
        Self::Interrupt,
        Self::Call,
        Self::OneCore,
        Self::Slice,
        Self::Beside,
    ];

    /// The name used in schedules.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Echo => "echo",
            Self::TwoWrite => "two_write",
            Self::Stream => "stream",
            Self::Prtt => "prtt",
            Self::SendBusy => "send_busy",
            Self::RecvBusy => "recv_busy",
            Self::Interrupt => "interrupt",
            Self::Call => "call",
            Self::OneCore => "one_core",
            Self::Slice => "slice",
            Self::Beside => "beside",
        }
    }

    /// The loop of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    pub(crate) const fn code(self) -> u64 {
        self as u64
    }

    pub(crate) fn from_code(code: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.code() == code)
    }

    /// Whether only part of an iteration is timed, by two readings of the clock around it.
    pub const fn timed_inside(self) -> bool {
        matches!(self, Self::SendBusy | Self::Slice | Self::Beside) || self.receives_late()
    }

    /// Whether rank 0 is outside the library when the message comes that it has asked for.
    pub(crate) const fn receives_late(self) -> bool {
        matches!(self, Self::RecvBusy | Self::Interrupt)
    }

    /// Whether both ranks are on one core for it.
    pub const fn on_one_core(self) -> bool {
        matches!(self, Self::OneCore | Self::Slice | Self::Beside)
    }

    /// Whether messages of the step's length go both ways in it.
    pub(crate) const fn exchanges(self) -> bool {
        !matches!(self, Self::Call | Self::Slice | Self::Beside)
    }
}

/// One side's buffers, as long as the longest message so far, written to before use.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    pub out: Paged,
    pub back: Paged,
}

impl Buffers {
    pub fn fit(&mut self, bytes: usize) {
        let bytes = bytes.max(1);
        self.out.grow(bytes, 0x5a);
        self.back.grow(bytes, 0xa5);
    }
}

/// The parameters of an iteration.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Iteration {
    pub kind: Kind,
    pub bytes: usize,
    pub messages: u64,
    pub delay: Span,
    pub worked: fn() -> Span,
}

impl Iteration {
    /// Bytes of payload that the leader sends and receives.
    pub(crate) fn payload(&self) -> (u64, u64) {
        let bytes = self.bytes as u64;
        match self.kind {
            Kind::Echo | Kind::TwoWrite | Kind::OneCore => (bytes, bytes),
            Kind::Stream => (self.messages * bytes, 1),
            Kind::Prtt => (self.messages * bytes, bytes),
            Kind::SendBusy => (bytes, 1),
            Kind::RecvBusy => (1, bytes),
            Kind::Interrupt => (1, self.messages * bytes),
            Kind::Call | Kind::Slice => (0, 0),
            Kind::Beside => (1, 1),
        }
    }
}

/// Spins on the clock for `delay`.
#[inline]
pub(crate) fn pause(comm: &impl Comm, delay: Span) {
    if delay > Span::ZERO {
        let since = comm.now().as_ps();
        while comm.now().as_ps() - since < delay.as_ps() {
            std::hint::spin_loop();
        }
    }
}

/// How much of so long a time this rank has not had its core for: detours (Beckman et al. 2006).
fn lost(comm: &impl Comm, of: Span) -> Span {
    let begun = comm.now().as_ps();
    let (mut last, mut lost) = (begun, 0);
    while last - begun < of.as_ps() {
        let now = comm.now().as_ps();
        if now - last > DETOUR.as_ps() {
            lost += now - last;
        }
        last = now;
    }
    Span::from_ps(lost)
}

/// How long this rank keeps its core before another one that computes there has it.
fn kept(comm: &impl Comm) -> Span {
    let begun = comm.now().as_ps();
    let (mut since, mut last, mut is_whole) = (begun, begun, false);
    while last - begun < SLICES.as_ps() {
        let now = comm.now().as_ps();
        if now - last > AWAY.as_ps() {
            if is_whole {
                break;
            }
            // The first slice began before it was looked at.
            (since, is_whole) = (now, true);
        }
        last = now;
    }
    Span::from_ps(last - since)
}

/// The leader's side of one iteration; the time inside the call, for the loops that time it there.
#[inline]
pub(crate) async fn lead<C: Comm>(
    comm: &mut C,
    iteration: Iteration,
    buffers: &mut Buffers,
) -> Result<Span, CommError> {
    let Iteration { kind, bytes, messages, delay, worked } = iteration;
    let peer = Rank(1);
    let from = Source::Rank(peer);
    let tag = TagMatch::Tag(DATA);
    let out = &buffers.out[..bytes];
    match kind {
        Kind::Echo | Kind::OneCore => {
            comm.send(peer, DATA, out).await?;
            comm.recv(from, tag, &mut buffers.back[..bytes]).await?;
        }
        Kind::TwoWrite => {
            let (first, second) = out.split_at(bytes.div_ceil(2));
            comm.send(peer, DATA, first).await?;
            comm.send(peer, DATA, second).await?;
            comm.recv(from, tag, &mut buffers.back[..bytes]).await?;
        }
        Kind::Stream => {
            for _ in 0..messages {
                comm.send(peer, DATA, out).await?;
            }
            comm.recv(from, tag, &mut buffers.back[..1]).await?;
        }
        Kind::Prtt => {
            comm.send(peer, DATA, out).await?;
            for _ in 1..messages {
                pause(comm, delay);
                comm.send(peer, DATA, out).await?;
            }
            comm.recv(from, tag, &mut buffers.back[..bytes]).await?;
        }
        Kind::SendBusy => {
            let before = comm.now().as_ps();
            comm.send(peer, DATA, out).await?;
            let inside = comm.now().as_ps() - before;
            comm.recv(from, tag, &mut buffers.back[..1]).await?;
            return Ok(Span::from_ps(inside));
        }
        Kind::RecvBusy => {
            comm.send(peer, DATA, &buffers.out[..1]).await?;
            pause(comm, delay);
            let before = comm.now().as_ps();
            comm.recv(from, tag, &mut buffers.back[..bytes]).await?;
            return Ok(Span::from_ps(comm.now().as_ps() - before));
        }
        Kind::Interrupt => {
            comm.send(peer, DATA, &buffers.out[..1]).await?;
            let lost = lost(comm, delay);
            for _ in 0..messages {
                comm.recv(from, tag, &mut buffers.back[..bytes]).await?;
            }
            return Ok(lost);
        }
        Kind::Call => comm.exchange(&[], &mut []).await?,
        Kind::Slice => return Ok(kept(comm)),
        Kind::Beside => {
            // Who has said so waits from now on.
            comm.recv(from, tag, &mut buffers.back[..1]).await?;
            let (before, enough) = (comm.now().as_ps(), worked().as_ps() + delay.as_ps());
            while worked().as_ps() < enough {}
            let took = comm.now().as_ps() - before;
            comm.send(peer, DATA, &buffers.out[..1]).await?;
            return Ok(Span::from_ps(took));
        }
    }
    Ok(Span::ZERO)
}

/// The leader's side of a batch of iterations that are timed together.
///
/// The echo has a loop of its own, with nothing in it but the two calls: on the fastest layers what
/// is chosen anew in each iteration would be seen.
#[inline]
pub(crate) async fn lead_batch<C: Comm>(
    comm: &mut C,
    iteration: Iteration,
    buffers: &mut Buffers,
    batch: u32,
) -> Result<(), CommError> {
    if matches!(iteration.kind, Kind::Echo | Kind::OneCore) {
        let (peer, from, tag) = (Rank(1), Source::Rank(Rank(1)), TagMatch::Tag(DATA));
        let (out, back) = (&buffers.out[..iteration.bytes], &mut buffers.back[..iteration.bytes]);
        for _ in 0..batch {
            comm.send(peer, DATA, out).await?;
            comm.recv(from, tag, back).await?;
        }
    } else {
        for _ in 0..batch {
            lead(comm, iteration, buffers).await?;
        }
    }
    Ok(())
}

/// The follower's side of so many iterations.
#[inline]
pub(crate) async fn follow_batch<C: Comm>(
    comm: &mut C,
    iteration: Iteration,
    buffers: &mut Buffers,
    iterations: u64,
) -> Result<(), CommError> {
    if matches!(iteration.kind, Kind::Echo | Kind::OneCore) {
        let (peer, from, tag) = (Rank(0), Source::Rank(Rank(0)), TagMatch::Tag(DATA));
        let (out, back) = (&buffers.out[..iteration.bytes], &mut buffers.back[..iteration.bytes]);
        for _ in 0..iterations {
            comm.recv(from, tag, back).await?;
            comm.send(peer, DATA, out).await?;
        }
    } else {
        for _ in 0..iterations {
            follow(comm, iteration, buffers).await?;
        }
    }
    Ok(())
}

/// The follower's side of one iteration.
#[inline]
pub(crate) async fn follow<C: Comm>(
    comm: &mut C,
    iteration: Iteration,
    buffers: &mut Buffers,
) -> Result<(), CommError> {
    let Iteration { kind, bytes, messages, .. } = iteration;
    let peer = Rank(0);
    let from = Source::Rank(peer);
    let tag = TagMatch::Tag(DATA);
    match kind {
        Kind::Echo | Kind::OneCore => {
            comm.recv(from, tag, &mut buffers.back[..bytes]).await?;
            comm.send(peer, DATA, &buffers.out[..bytes]).await?;
        }
        Kind::TwoWrite => {
            let (first, second) = buffers.back[..bytes].split_at_mut(bytes.div_ceil(2));
            comm.recv(from, tag, first).await?;
            comm.recv(from, tag, second).await?;
            comm.send(peer, DATA, &buffers.out[..bytes]).await?;
        }
        Kind::Stream => {
            for _ in 0..messages {
                comm.recv(from, tag, &mut buffers.back[..bytes]).await?;
            }
            comm.send(peer, DATA, &buffers.out[..1]).await?;
        }
        Kind::Prtt => {
            for _ in 0..messages {
                comm.recv(from, tag, &mut buffers.back[..bytes]).await?;
            }
            comm.send(peer, DATA, &buffers.out[..bytes]).await?;
        }
        Kind::SendBusy => {
            comm.recv(from, tag, &mut buffers.back[..bytes]).await?;
            comm.send(peer, DATA, &buffers.out[..1]).await?;
        }
        Kind::RecvBusy => {
            comm.recv(from, tag, &mut buffers.back[..1]).await?;
            comm.send(peer, DATA, &buffers.out[..bytes]).await?;
        }
        Kind::Interrupt => {
            comm.recv(from, tag, &mut buffers.back[..1]).await?;
            comm.send(peer, DATA, &buffers.out[..bytes]).await?;
            for _ in 1..messages {
                pause(comm, APART);
                comm.send(peer, DATA, &buffers.out[..bytes]).await?;
            }
        }
        Kind::Call => {}
        Kind::Slice => pause(comm, SLICES),
        Kind::Beside => {
            comm.send(peer, DATA, &buffers.out[..1]).await?;
            comm.recv(from, tag, &mut buffers.back[..1]).await?;
        }
    }
    Ok(())
}
