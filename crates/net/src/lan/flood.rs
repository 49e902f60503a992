//! The measuring loop of a flood: what a host takes in of datagrams that come faster than it can.
//!
//! All ranks but the first send datagrams to it at an even pace, and it does nothing but receive them. A host
//! whose interrupts come before its processes spends more and more of itself on taking packets in that it then
//! drops for want of a reader: receive livelock (Mogul and Ramakrishnan 1997).

use wiretwin_units::{Bytes, SimTime, Span};

use super::{Lan, Op, OpError};

/// What came of a flood, in the second half of its time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flood {
    /// How long it was looked at.
    pub length: Span,
    /// Datagrams sent.
    pub sent: u64,
    /// Datagrams that the program of rank 0 got.
    pub got: u64,
    /// Datagrams that host 0 had taken in, and had no room for before their reader.
    pub unread: u64,
    /// Packets lost on the way: in queues, in switches, on adapters.
    pub lost: u64,
    /// How long the processor of host 0 was busy.
    pub busy: Span,
}

/// All ranks but the first send datagrams of `bytes` to it, each working for `gap` between two, for `length`.
///
/// # Errors
/// [`OpError`]: a datagram that the interface does not carry.
pub fn flood(lan: &mut Lan, bytes: Bytes, gap: Span, length: Span) -> Result<Flood, OpError> {
    let begin = lan.now();
    let (half, end) = (begin + length / 2, begin + length);
    let send = |lan: &mut Lan, rank: u32| -> Result<(), OpError> {
        lan.post(rank, Op::Compute(gap))?;
        let sent = lan.post(rank, Op::send(0, 0, bytes))?;
        lan.post(rank, Op::wait(sent.as_slice())).map(|_| ())
    };
    let receive = |lan: &mut Lan| -> Result<(), OpError> {
        let due = lan.post(0, Op::recv(None, None, bytes))?;
        lan.post(0, Op::wait(due.as_slice())).map(|_| ())
    };
    receive(lan)?;
    for rank in 1..lan.size() {
        send(lan, rank)?;
    }
    let mut found = Flood::default();
    let mut before = None;
    while lan.now() < end && lan.step() {
        let counts = lan.now() >= half;
        if counts && before.is_none() {
            before = Some(Before::of(lan));
        }
        for at in 0..lan.resumed().len() {
            let rank = lan.resumed()[at];
            if rank == 0 {
                found.got += u64::from(counts);
                receive(lan)?;
            } else {
                found.sent += u64::from(counts);
                send(lan, rank)?;
            }
        }
    }
    let (from, to) = (before.unwrap_or_default(), Before::of(lan));
    Ok(Flood {
        length: to.at - from.at,
        unread: to.unread - from.unread,
        lost: to.lost - from.lost,
        busy: to.busy - from.busy,
        ..found
    })
}

/// What has been counted by some time.
#[derive(Clone, Copy, Debug, Default)]
struct Before {
    at: SimTime,
    unread: u64,
    lost: u64,
    busy: Span,
}

impl Before {
    fn of(lan: &Lan) -> Self {
        let lost = lan.passed().iter().map(|(_, passed)| passed.lost).sum();
        Self { at: lan.now(), unread: lan.losses().unread, lost, busy: lan.busy()[0] }
    }
}

#[cfg(test)]
mod tests;
