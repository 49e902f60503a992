//! What pairs of ranks do at once, over any layer: streams one way and both ways, and messages under a load.
//!
//! Of n ranks the first half are paired with the second: rank r with rank r + n / 2. An odd rank out does
//! nothing. Every rank times its own part; an entry of 0 stands for a rank that times nothing.

use wiretwin_prog::{Comm, CommError, Incoming, Outgoing, Rank, Source, Tag, TagMatch};

use crate::paged::Paged;
use crate::together::Deed;

/// The tag of measured messages, and of those that tell what a clock says.
const DATA: Tag = Tag(2);
const CLOCK: Tag = Tag(3);
/// Round trips that tell how far the clocks of a pair are apart; the fastest decides.
const READINGS: usize = 32;

/// What pairs of ranks do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pattern {
    /// Several messages one way, all pairs at once, then a byte back.
    OneWay,
    /// Several messages both ways at once.
    BothWays,
    /// A message every so often, whether those before it have come or not; its latency counts from when it
    /// was due, so that one that has to wait for others is not taken for a fast one.
    Load,
}

impl Pattern {
    /// The pattern of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "pairs" => Some(Self::OneWay),
            "bidirectional" => Some(Self::BothWays),
            "load" => Some(Self::Load),
            _ => None,
        }
    }
}

/// Buffers of one rank, written to before they are used.
#[derive(Debug, Default)]
pub(crate) struct Windows {
    out: Paged,
    back: Paged,
}

impl Windows {
    fn fit(&mut self, bytes: usize, messages: usize) {
        self.out.grow(bytes.max(8), 0x5a);
        self.back.grow((bytes * messages).max(8), 0xa5);
    }
}

/// What a rank fills a message with that is to be looked at.
fn byte_of(rank: Rank, at: usize) -> u8 {
    (rank.0 as usize).wrapping_mul(131).wrapping_add(at.wrapping_mul(29)).wrapping_add(at >> 8) as u8
}

/// Does this rank's part.
pub(crate) async fn take_part<C: Comm>(
    comm: &mut C,
    pattern: Pattern,
    deed: &Deed,
    windows: &mut Windows,
    times_ns: &mut [u64],
) -> Result<(), CommError> {
    let half = comm.size() / 2;
    let rank = comm.rank().0;
    if rank >= 2 * half {
        return Ok(());
    }
    let (first, peer) = if rank < half { (true, Rank(rank + half)) } else { (false, Rank(rank - half)) };
    let too_long = |_| CommError::Transport(format!("{} bytes do not fit in memory", deed.bytes));
    let bytes = usize::try_from(deed.bytes).map_err(too_long)?;
    let messages = if pattern == Pattern::Load { 1 } else { deed.messages.max(1) as usize };
    windows.fit(bytes, messages);
    if deed.verify {
        return verify(comm, peer, bytes, windows).await;
    }
    match pattern {
        Pattern::OneWay => one_way(comm, (first, peer), (bytes, messages), windows, times_ns).await,
        Pattern::BothWays => both_ways(comm, peer, (bytes, messages), windows, times_ns).await,
        Pattern::Load => load(comm, (first, peer), deed, bytes, windows, times_ns).await,
    }
}

const fn incoming(peer: Rank, tag: Tag, buffer: &mut [u8]) -> Incoming<'_> {
    Incoming { from: Source::Rank(peer), tag: TagMatch::Tag(tag), buffer, status: None }
}

async fn verify<C: Comm>(
    comm: &mut C,
    peer: Rank,
    bytes: usize,
    windows: &mut Windows,
) -> Result<(), CommError> {
    let mine = comm.rank();
    for (at, byte) in windows.out[..bytes].iter_mut().enumerate() {
        *byte = byte_of(mine, at);
    }
    let back = &mut windows.back[..bytes];
    back.fill(0);
    let sends = [Outgoing { to: peer, tag: DATA, message: &windows.out[..bytes] }];
    comm.exchange(&sends, &mut [incoming(peer, DATA, back)]).await?;
    match windows.back[..bytes].iter().enumerate().position(|(at, byte)| *byte != byte_of(peer, at)) {
        None => Ok(()),
        Some(at) => Err(CommError::Transport(format!(
            "wrong data: byte {at} of {bytes} came changed from rank {} to rank {}",
            peer.0, mine.0
        ))),
    }
}

/// Sends or receives a window, then a byte the other way.
async fn one_way<C: Comm>(
    comm: &mut C,
    (first, peer): (bool, Rank),
    (bytes, messages): (usize, usize),
    windows: &mut Windows,
    times_ns: &mut [u64],
) -> Result<(), CommError> {
    let Windows { out, back } = windows;
    let sends = vec![Outgoing { to: peer, tag: DATA, message: &out[..bytes] }; messages];
    let mut receives: Vec<_> = (0..messages)
        .zip(back.chunks_mut(bytes.max(1)))
        .map(|(_, buffer)| incoming(peer, DATA, &mut buffer[..bytes]))
        .collect();
    let mut byte = [1];
    let mut last = comm.now().as_ps();
    for time in times_ns {
        if first {
            comm.exchange(&sends, &mut []).await?;
            comm.recv(Source::Rank(peer), TagMatch::Tag(DATA), &mut byte).await?;
        } else {
            comm.exchange(&[], &mut receives).await?;
            comm.send(peer, DATA, &byte).await?;
        }
        let now = comm.now().as_ps();
        *time = (now - last) / 1000;
        last = now;
    }
    Ok(())
}

async fn both_ways<C: Comm>(
    comm: &mut C,
    peer: Rank,
    (bytes, messages): (usize, usize),
    windows: &mut Windows,
    times_ns: &mut [u64],
) -> Result<(), CommError> {
    let Windows { out, back } = windows;
    let sends = vec![Outgoing { to: peer, tag: DATA, message: &out[..bytes] }; messages];
    let mut receives: Vec<_> = (0..messages)
        .zip(back.chunks_mut(bytes.max(1)))
        .map(|(_, buffer)| incoming(peer, DATA, &mut buffer[..bytes]))
        .collect();
    let mut last = comm.now().as_ps();
    for time in times_ns {
        comm.exchange(&sends, &mut receives).await?;
        let now = comm.now().as_ps();
        *time = (now - last) / 1000;
        last = now;
    }
    Ok(())
}

/// How much later the clock of the second rank of a pair is than that of the first, in picoseconds, as the
/// fastest of several round trips tells: wrong by at most half of it. Told to the second.
async fn clocks_apart<C: Comm>(comm: &mut C, first: bool, peer: Rank) -> Result<i128, CommError> {
    let (from, tag) = (Source::Rank(peer), TagMatch::Tag(CLOCK));
    let mut word = [0; 8];
    if !first {
        for _ in 0..READINGS {
            comm.recv(from, tag, &mut word).await?;
            let now = comm.now().as_ps();
            comm.send(peer, CLOCK, &now.to_le_bytes()).await?;
        }
        let mut apart = [0; 16];
        comm.recv(from, tag, &mut apart).await?;
        return Ok(i128::from_le_bytes(apart));
    }
    let mut best = (u64::MAX, 0);
    for _ in 0..READINGS {
        let before = comm.now().as_ps();
        comm.send(peer, CLOCK, &word).await?;
        comm.recv(from, tag, &mut word).await?;
        let after = comm.now().as_ps();
        let middle = (i128::from(before) + i128::from(after)) / 2;
        best = best.min((after - before, i128::from(u64::from_le_bytes(word)) - middle));
    }
    comm.send(peer, CLOCK, &best.1.to_le_bytes()).await?;
    Ok(best.1)
}

/// Sends when a message is due, or receives and tells how long after that it came.
async fn load<C: Comm>(
    comm: &mut C,
    (first, peer): (bool, Rank),
    deed: &Deed,
    bytes: usize,
    windows: &mut Windows,
    times_ns: &mut [u64],
) -> Result<(), CommError> {
    let apart = clocks_apart(comm, first, peer).await?;
    let (from, step) = (Source::Rank(peer), deed.busy.as_ps());
    let mut begins = [0; 8];
    if first {
        let begin = comm.now().as_ps() + step;
        comm.send(peer, CLOCK, &begin.to_le_bytes()).await?;
        for number in 0..times_ns.len() as u64 {
            let due = begin + number * step;
            while comm.now().as_ps() < due {
                std::hint::spin_loop();
            }
            comm.send(peer, DATA, &windows.out[..bytes]).await?;
        }
        return Ok(());
    }
    comm.recv(from, TagMatch::Tag(CLOCK), &mut begins).await?;
    let mut due = i128::from(u64::from_le_bytes(begins)) + apart;
    for time in times_ns {
        comm.recv(from, TagMatch::Tag(DATA), &mut windows.back[..bytes]).await?;
        // A message that comes at once may seem to come before it was due, by what the clocks are uncertain.
        let late = (i128::from(comm.now().as_ps()) - due).max(1000);
        *time = u64::try_from(late / 1000).unwrap_or(u64::MAX);
        due += i128::from(step);
    }
    Ok(())
}
