//! The way of one connection: a ring in shared memory, or frames that an adapter's endpoint carries to another host.

use std::os::fd::OwnedFd;

use super::carrier::{self, Carrier};
use super::link::{Closing, Link};
use super::place::hear_packet;
use super::remote::Range;
use super::vi::octets;
use crate::ring;

/// A connection that the endpoint carries.
#[derive(Debug)]
pub(super) struct Line {
    /// Which of the carrier's it is.
    pub flow: u32,
    /// Of an end that has accepted, until the other has said that it knows.
    unconfirmed: Option<OwnedFd>,
}

/// The way of one connection.
#[derive(Debug)]
pub(super) enum Wire {
    Memory(Box<Link>),
    Network(Box<Line>),
}

impl Wire {
    pub fn network(flow: u32, unconfirmed: Option<OwnedFd>) -> Self {
        Self::Network(Box::new(Line { flow, unconfirmed }))
    }

    /// Whether a frame may be sent.
    #[inline]
    pub fn has_room(&mut self, carrier: Option<&Carrier>) -> bool {
        match self {
            Self::Memory(link) => link.producer.has_room(),
            Self::Network(line) => carrier.is_some_and(|carrier| carrier.has_room(line.flow)),
        }
    }

    /// The longest frame, in bytes.
    pub const fn longest(&self) -> usize {
        match self {
            Self::Memory(_) => ring::FRAME,
            Self::Network(_) => carrier::FRAME,
        }
    }

    /// Sends a frame of a head and of data in memory of this process.
    ///
    /// # Safety
    /// The ranges can be read.
    #[inline]
    pub unsafe fn push(
        &mut self,
        carrier: &mut Option<Carrier>,
        head: &[u8],
        mut ranges: impl Iterator<Item = Range>,
    ) {
        match self {
            Self::Memory(link) => {
                let (one, two) = (ranges.next(), ranges.next());
                match (one, two) {
                    // SAFETY: the caller's.
                    (Some(one), None) => link.producer.push_frame(head, unsafe { octets(one) }),
                    _ => {
                        let mut at = 0;
                        for range in one.into_iter().chain(two).chain(ranges) {
                            // SAFETY: the caller's.
                            let part = unsafe { octets(range) };
                            link.scratch[at..at + part.len()].copy_from_slice(part);
                            at += part.len();
                        }
                        link.producer.push_frame(head, &link.scratch[..at])
                    }
                };
            }
            Self::Network(line) => {
                if let Some(carrier) = carrier {
                    // SAFETY: the caller's.
                    carrier.push(line.flow, head, ranges.map(|range| unsafe { octets(range) }));
                }
            }
        }
    }

    /// Sends a frame that is a head alone, and data in memory of this process beside it, between hosts.
    ///
    /// # Safety
    /// The data can be read until they are released or the connection is closed.
    pub unsafe fn push_beside(&self, carrier: &mut Option<Carrier>, head: &[u8], data: Range) {
        if let (Self::Network(line), Some(carrier)) = (self, carrier) {
            carrier.push(line.flow, head, std::iter::empty());
            // SAFETY: the caller's.
            unsafe { carrier.push_data(line.flow, data) };
        }
    }

    /// Messages of this end that the other has said to have accepted, beside its frames.
    pub fn accepted(&self, carrier: Option<&Carrier>) -> u64 {
        match self {
            Self::Memory(link) => link.accepted(),
            Self::Network(line) => carrier.map_or(0, |carrier| carrier.accepted(line.flow)),
        }
    }

    /// What the other end said last, once it has.
    #[inline]
    pub fn closing(&self, carrier: Option<&Carrier>) -> Option<Closing> {
        match self {
            Self::Memory(link) => link.closing(),
            Self::Network(line) => {
                carrier.map_or(Some(Closing::Disconnected), |carrier| carrier.closing(line.flow))
            }
        }
    }

    /// The last word of this end, which has accepted so many messages.
    pub fn close(&self, carrier: &mut Option<Carrier>, closing: Closing, accepted: u64) {
        match self {
            Self::Memory(link) => {
                link.accept(accepted);
                link.close(closing);
            }
            Self::Network(line) => {
                if let Some(carrier) = carrier {
                    carrier.close(line.flow, closing, accepted);
                }
            }
        }
    }

    /// Wakes the other end if it sleeps: there is something for it.
    #[inline]
    pub fn nudge(&self) {
        if let Self::Memory(link) = self {
            link.nudge();
        }
    }

    /// Takes what has come on the socket; true if the other end is gone.
    pub fn is_gone(&mut self) -> bool {
        match self {
            Self::Memory(link) => link.is_gone(),
            Self::Network(line) => {
                let Some(socket) = &line.unconfirmed else { return false };
                match hear_packet(socket, &mut [0; 8]) {
                    Ok(octets) if octets > 0 => {
                        line.unconfirmed = None;
                        false
                    }
                    Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => false,
                    _ => true,
                }
            }
        }
    }
}
