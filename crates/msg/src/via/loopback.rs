//! The simulated device: two NICs on a cable of fixed delay that loses and damages the packets it is told to.
//!
//! One run is one thread: both processes are futures, and virtual time moves when neither can go on.

use alloc::collections::{BTreeSet, VecDeque};
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::RefCell;
use core::future::{Future, poll_fn};
use core::pin::pin;
use core::task::{Context, Poll, Waker};

use wiretwin_units::{SimTime, Span};

use super::HostAddress;
use super::vipl::{Arrival, Device, Stuck};

/// The addresses of the two NICs.
pub const HOSTS: [HostAddress; 2] = [HostAddress([2, 0, 0, 0, 0, 1]), HostAddress([2, 0, 0, 0, 0, 2])];

#[derive(Debug)]
struct Cable {
    now: SimTime,
    delay: Span,
    flights: [VecDeque<(SimTime, Arrival)>; 2],
    /// Packets sent by each end, and which of them are lost.
    sent: [u64; 2],
    lost: [BTreeSet<u64>; 2],
    damaged: [BTreeSet<u64>; 2],
    cut: bool,
    /// Until when each end has nothing to do.
    idle: [Option<SimTime>; 2],
    moves: u64,
    stuck: bool,
}

/// One end of the cable.
#[derive(Debug)]
pub struct Loopback {
    cable: Rc<RefCell<Cable>>,
    end: usize,
}

/// Two ends of a cable of this delay; packet `n` of end `e`, counted from 0, is lost if `lost[e]` has it.
pub fn pair(delay: Span, lost: [&[u64]; 2]) -> [Loopback; 2] {
    let cable = Rc::new(RefCell::new(Cable {
        now: SimTime::ZERO,
        delay,
        flights: [VecDeque::new(), VecDeque::new()],
        sent: [0; 2],
        lost: lost.map(|numbers| numbers.iter().copied().collect()),
        damaged: Default::default(),
        cut: false,
        idle: [None; 2],
        moves: 0,
        stuck: false,
    }));
    [0, 1].map(|end| Loopback { cable: Rc::clone(&cable), end })
}

impl Loopback {
    /// From now on no packet arrives, either way.
    pub fn cut(&mut self) {
        self.cable.borrow_mut().cut = true;
    }

    /// These packets of this end, counted from 0, come with data that are not what was sent.
    pub fn damage(&mut self, numbers: &[u64]) {
        self.cable.borrow_mut().damaged[self.end].extend(numbers);
    }

    /// How many packets this end has sent.
    pub fn sent(&self) -> u64 {
        self.cable.borrow().sent[self.end]
    }

    /// The cable.
    pub fn handle(&self) -> Handle {
        Handle(Rc::clone(&self.cable))
    }

    fn put(&mut self, mut arrival: Arrival) {
        let mut cable = self.cable.borrow_mut();
        cable.moves += 1;
        let at = cable.now.saturating_add(cable.delay);
        if let Arrival::Packet(octets) = &mut arrival {
            let number = cable.sent[self.end];
            cable.sent[self.end] += 1;
            if cable.cut || cable.lost[self.end].contains(&number) {
                return;
            }
            if cable.damaged[self.end].contains(&number) {
                arrival = Arrival::Damaged(core::mem::take(octets));
            }
        }
        cable.flights[1 - self.end].push_back((at, arrival));
    }
}

impl Device for Loopback {
    fn now(&self) -> SimTime {
        self.cable.borrow().now
    }

    fn transmit(&mut self, octets: Vec<u8>) -> Result<(), Stuck> {
        self.put(Arrival::Packet(octets));
        Ok(())
    }

    fn mark(&mut self) -> Result<(), Stuck> {
        self.put(Arrival::Mark);
        Ok(())
    }

    async fn arrival(&mut self, until: Option<SimTime>) -> Result<Arrival, Stuck> {
        poll_fn(|_| {
            let mut cable = self.cable.borrow_mut();
            let due = cable.flights[self.end].front().map(|(at, _)| *at);
            if due.is_some_and(|at| at <= cable.now) {
                cable.moves += 1;
                let (_, arrival) = cable.flights[self.end].pop_front().expect("it is due");
                return Poll::Ready(Ok(arrival));
            }
            if until.is_some_and(|until| until <= cable.now) {
                cable.moves += 1;
                return Poll::Ready(Ok(Arrival::Time));
            }
            if cable.stuck {
                return Poll::Ready(Err(Stuck));
            }
            cable.idle[self.end] = [until, due].into_iter().flatten().min();
            Poll::Pending
        })
        .await
    }

    fn remote(&self) -> HostAddress {
        HOSTS[1 - self.end]
    }
}

/// A cable, apart from its ends.
#[derive(Clone, Debug)]
pub struct Handle(Rc<RefCell<Cable>>);

/// Runs the processes at both ends of a cable to their ends.
///
/// # Panics
/// If a process goes on waiting though it was told that nothing will happen.
pub fn run<A: Future, B: Future>(cable: &Handle, first: A, second: B) -> (A::Output, B::Output) {
    let Handle(cable) = cable;
    let (mut first, mut second) = (pin!(first), pin!(second));
    let (mut one, mut other) = (None, None);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        let before = cable.borrow().moves;
        let mut ended = false;
        if one.is_none()
            && let Poll::Ready(output) = first.as_mut().poll(&mut context)
        {
            one = Some(output);
            cable.borrow_mut().idle[0] = None;
            ended = true;
        }
        if other.is_none()
            && let Poll::Ready(output) = second.as_mut().poll(&mut context)
        {
            other = Some(output);
            cable.borrow_mut().idle[1] = None;
            ended = true;
        }
        if one.is_some() && other.is_some() {
            break;
        }
        let mut cable = cable.borrow_mut();
        if ended || cable.moves != before {
            continue;
        }
        match cable.idle.into_iter().flatten().min() {
            Some(next) if next > cable.now => cable.now = next,
            _ => {
                assert!(!cable.stuck, "a process goes on though it was told that nothing will happen");
                cable.stuck = true;
            }
        }
    }
    // Both are there: the loop ends no other way.
    one.zip(other).expect("both have ended")
}

#[cfg(test)]
mod broken;
#[cfg(test)]
mod tests;
