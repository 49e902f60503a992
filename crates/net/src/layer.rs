//! What a messaging layer costs its endpoints and how long its messages fly.
//!
//! A layer is described as `LogGP` describes one (Alexandrov et al. 1995), each quantity piecewise
//! linear in the message size, as fitted from measurements: `overhead_send` (o_s), `overhead_recv`
//! (o_r), `latency` (L), `gap` (g + G m). Everything the simulated world knows about the cost of a
//! message is decided in this file.
//!
//! Every MPI call charges `call` on entry, and the measured overheads contain it, so a send charges
//! o_s - call and a receive o_r - call. In an echo, the receiver has entered its call long before
//! the message comes, so that its `call` overlaps with the flight; the fitted latency is what the
//! one-way latency leaves after both whole overheads. The flight is therefore L + call, and an echo
//! takes exactly o_s + L + o_r each way, whether or not a part is smaller than `call`.
//!
//! Where the receiver takes large messages from the sender's memory by itself, `fetch` is all that the
//! data cost, and the receiver pays it; the envelope before and the word after are messages of no bytes.
//!
//! A latency may be negative: where both ends copy at the same time, the two overheads overlap.

use wiretwin_msg::protocol::Mode;
use wiretwin_units::{Bytes, Span};

/// One piece of a [`Curve`]: `base_ps + per_byte_fs * m / 1000` for messages of `m` bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The smallest message it holds for, bytes.
    pub from_bytes: u64,
    /// The value the line has at zero bytes, picoseconds.
    pub base_ps: i64,
    /// The slope, femtoseconds per byte.
    pub per_byte_fs: i64,
}

impl Segment {
    /// The value for a message of `bytes`, in picoseconds, rounded to the nearest.
    #[inline]
    #[must_use]
    pub fn at(&self, bytes: u64) -> i64 {
        let product = i64::try_from(bytes).ok().and_then(|bytes| self.per_byte_fs.checked_mul(bytes));
        match product.and_then(|product| product.checked_add(500)) {
            Some(rounded) => self.base_ps.saturating_add(rounded.div_euclid(1000)),
            None => self.at_length(bytes),
        }
    }

    /// The same where femtoseconds do not fit 64 bits.
    #[cold]
    fn at_length(&self, bytes: u64) -> i64 {
        let slope = (i128::from(self.per_byte_fs) * i128::from(bytes) + 500).div_euclid(1000);
        let value = i128::from(self.base_ps) + slope;
        i64::try_from(value).unwrap_or(if value < 0 { i64::MIN } else { i64::MAX })
    }
}

/// A quantity by message size: segments in ascending order, the first from 0 bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Curve {
    segments: Vec<Segment>,
}

impl Curve {
    /// The same value for every size.
    #[must_use]
    pub fn constant(value: Span) -> Self {
        let base_ps = i64::try_from(value.as_ps()).unwrap_or(i64::MAX);
        Self { segments: vec![Segment { from_bytes: 0, base_ps, per_byte_fs: 0 }] }
    }

    /// A curve of these segments, `None` unless there is a first from 0 bytes and they ascend.
    #[must_use]
    pub fn new(segments: Vec<Segment>) -> Option<Self> {
        let ascends = segments.windows(2).all(|pair| pair[0].from_bytes < pair[1].from_bytes);
        (segments.first()?.from_bytes == 0 && ascends).then_some(Self { segments })
    }

    /// The segments.
    #[must_use]
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// The value for a message of `bytes`, in picoseconds.
    #[inline]
    #[must_use]
    pub fn at(&self, bytes: u64) -> i64 {
        let mut segment = &self.segments[0];
        for next in &self.segments[1..] {
            if next.from_bytes > bytes {
                break;
            }
            segment = next;
        }
        segment.at(bytes)
    }
}

/// A messaging layer between two ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer {
    /// A call that moves nothing.
    pub call: Span,
    /// o_s: the time a send call keeps its core, `call` included.
    pub overhead_send: Curve,
    /// o_r: the time a receive call keeps its core when the message is there, `call` included.
    pub overhead_recv: Curve,
    /// L: the one-way latency (RTT/2) less both overheads; may be negative.
    pub latency: Curve,
    /// The least spacing of two messages' arrivals from one sender at one receiver.
    pub gap: Curve,
    /// The smallest message sent by rendezvous; `None` if the layer knows only eager.
    pub rendezvous_from: Option<Bytes>,
    /// The smallest eager message whose send is complete only when its receiver has it; `None` if all are
    /// complete when they have left.
    pub acknowledged_from: Option<Bytes>,
    /// The time a receive call keeps its core that takes a waiting rendezvous message out of its sender's
    /// memory, `call` included; `None` if senders push.
    pub fetch: Option<Curve>,
    /// The same for a message sent from memory that has not been written since the last one from it; `fetch`
    /// where there is none.
    pub fetch_unchanged: Option<Curve>,
    /// What a receive pays on top when its message came before it was posted.
    pub unexpected_copy: Option<Curve>,
    /// L once the last packet of a message of several has crossed a network, by the message's length, beside the
    /// overheads of a message of one packet; where `None`, that of such a message.
    pub last_packet: Option<Curve>,
    /// What a message that comes over a network takes of its receiver's core: interrupts and the kernel's work on it.
    pub interrupt: Option<Curve>,
    /// How much less a message takes that comes while the kernel is at work on another one.
    pub interrupt_saved: Span,
}

/// What a message of one length costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Costs {
    /// Its length.
    pub bytes: u64,
    /// What a send charges after its call's entry, picoseconds.
    pub send_ps: u64,
    /// What a receive charges after its call's entry, its message being there, picoseconds.
    pub recv_ps: u64,
    /// From the end of the sender's work to the arrival, picoseconds; negative where the ends overlap.
    pub flight_ps: i64,
    /// The least spacing of arrivals, picoseconds.
    pub gap_ps: u64,
}

/// When and how data reach the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Arrival, in picoseconds after the start of the run.
    pub arrival_ps: u64,
    /// What taking the data in will cost the receiver, picoseconds.
    pub recv_cost_ps: u64,
}

impl Layer {
    /// What a send charges after its call's entry.
    #[inline]
    #[must_use]
    pub fn send_cost_ps(&self, bytes: u64) -> u64 {
        beyond_call(self.overhead_send.at(bytes), self.call)
    }

    /// What a receive charges after its call's entry, its message being there.
    #[inline]
    #[must_use]
    pub fn recv_cost_ps(&self, bytes: u64) -> u64 {
        beyond_call(self.overhead_recv.at(bytes), self.call)
    }

    /// What a receive charges after its call's entry that fetches a message from its sender's memory; `None` if
    /// senders push.
    #[inline]
    #[must_use]
    pub fn fetch_cost_ps(&self, bytes: u64, mode: Mode) -> Option<u64> {
        let unchanged = self.fetch_unchanged.as_ref().filter(|_| mode == Mode::Unchanged);
        unchanged.or(self.fetch.as_ref()).map(|fetch| beyond_call(fetch.at(bytes), self.call))
    }

    /// From the end of the sender's work to the arrival, picoseconds; negative where the ends overlap.
    #[inline]
    #[must_use]
    pub fn flight_ps(&self, bytes: u64) -> i64 {
        self.flight_and_recv(bytes).0
    }

    /// The flight, and what taking the message in costs.
    #[inline]
    fn flight_and_recv(&self, bytes: u64) -> (i64, u64) {
        let (send, recv) = (self.overhead_send.at(bytes), self.overhead_recv.at(bytes));
        let half_round_trip = send.saturating_add(self.latency.at(bytes)).saturating_add(recv);
        let recv_cost = beyond_call(recv, self.call);
        let inside_calls = signed(self.call.as_ps())
            .saturating_add(signed(beyond_call(send, self.call)))
            .saturating_add(signed(recv_cost));
        (half_round_trip.saturating_sub(inside_calls), recv_cost)
    }

    /// The flight that is left of a message of more than one packet, of `payload` bytes each, when its last one has
    /// crossed a network.
    #[must_use]
    pub fn last_packet_flight_ps(&self, bytes: u64, payload: u64) -> i64 {
        match &self.last_packet {
            Some(latency) => latency.at(bytes).saturating_add(signed(self.call.as_ps())),
            None => self.flight_ps(payload),
        }
    }

    /// The flight of an envelope without data (the request to send of a rendezvous).
    #[inline]
    #[must_use]
    pub fn control_flight_ps(&self) -> u64 {
        u64::try_from(self.flight_ps(0)).unwrap_or(0)
    }

    /// o_s + L + o_r: what an echo takes each way.
    #[inline]
    #[must_use]
    pub fn half_round_trip_ps(&self, bytes: u64) -> i64 {
        self.overhead_send
            .at(bytes)
            .saturating_add(self.latency.at(bytes))
            .saturating_add(self.overhead_recv.at(bytes))
    }

    /// The least spacing of arrivals, picoseconds.
    #[inline]
    #[must_use]
    pub fn gap_ps(&self, bytes: u64) -> u64 {
        u64::try_from(self.gap.at(bytes)).unwrap_or(0)
    }

    /// The extra cost of an unexpected message, picoseconds.
    #[inline]
    #[must_use]
    pub fn unexpected_copy_ps(&self, bytes: u64) -> u64 {
        self.unexpected_copy.as_ref().map_or(0, |curve| u64::try_from(curve.at(bytes)).unwrap_or(0))
    }

    /// What a message takes of its receiver's core, picoseconds.
    #[inline]
    #[must_use]
    pub fn interrupt_ps(&self, bytes: u64) -> u64 {
        self.interrupt.as_ref().map_or(0, |curve| u64::try_from(curve.at(bytes)).unwrap_or(0))
    }

    /// Likewise where the kernel is at work on another message, picoseconds.
    #[inline]
    #[must_use]
    pub fn next_interrupt_ps(&self, bytes: u64) -> u64 {
        self.interrupt_ps(bytes).saturating_sub(self.interrupt_saved.as_ps())
    }

    /// What a message of `bytes` costs.
    #[must_use]
    pub fn costs(&self, bytes: u64) -> Costs {
        let (flight_ps, recv_ps) = self.flight_and_recv(bytes);
        Costs { bytes, send_ps: self.send_cost_ps(bytes), recv_ps, flight_ps, gap_ps: self.gap_ps(bytes) }
    }
}

impl Costs {
    /// Delivery of data whose sender finishes its work at `sent_ps`. They cannot arrive before
    /// `earliest_ps` (the start of that work); what a negative flight would undercut, the receiver is
    /// spared, so that the sum stays.
    #[inline]
    #[must_use]
    pub fn deliver(&self, sent_ps: u64, earliest_ps: u64, credit_ps: u64) -> Delivery {
        let wanted = signed(sent_ps).saturating_add(self.flight_ps).saturating_sub(signed(credit_ps));
        let arrival = wanted.max(signed(earliest_ps));
        let spared = arrival.abs_diff(wanted);
        Delivery {
            arrival_ps: u64::try_from(arrival).unwrap_or(0),
            recv_cost_ps: self.recv_ps.saturating_sub(spared),
        }
    }
}

fn beyond_call(overhead_ps: i64, call: Span) -> u64 {
    u64::try_from(overhead_ps).unwrap_or(0).saturating_sub(call.as_ps())
}

fn signed(ps: u64) -> i64 {
    i64::try_from(ps).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ps(value: u64) -> Curve {
        Curve::constant(Span::from_ps(value))
    }

    fn layer(send: u64, recv: u64, latency: i64, call: u64) -> Layer {
        Layer {
            call: Span::from_ps(call),
            overhead_send: ps(send),
            overhead_recv: ps(recv),
            latency: Curve::new(vec![Segment { from_bytes: 0, base_ps: latency, per_byte_fs: 0 }]).unwrap(),
            gap: ps(0),
            rendezvous_from: None,
            acknowledged_from: None,
            fetch: None,
            fetch_unchanged: None,
            unexpected_copy: None,
            last_packet: None,
            interrupt: None,
            interrupt_saved: Span::ZERO,
        }
    }

    #[test]
    fn the_last_segment_that_begins_at_or_below_the_size_holds() {
        let curve = Curve::new(vec![
            Segment { from_bytes: 0, base_ps: 100, per_byte_fs: 1500 },
            Segment { from_bytes: 10, base_ps: -5, per_byte_fs: 10_000 },
        ])
        .unwrap();
        assert_eq!(curve.at(0), 100);
        assert_eq!(curve.at(3), 105, "4.5 ps round to 5");
        assert_eq!(curve.at(9), 114);
        assert_eq!(curve.at(10), 95);
        assert_eq!(curve.at(1_000_000), 9_999_995);
        assert_eq!(curve.at(u64::MAX), i64::MAX, "no overflow");
        assert_eq!(curve.at(1 << 50), (1 << 50) * 10 - 5, "beyond 64 bits of femtoseconds");
    }

    #[test]
    fn a_curve_begins_at_zero_bytes_and_ascends() {
        let at = |from_bytes| Segment { from_bytes, base_ps: 0, per_byte_fs: 0 };
        assert!(Curve::new(vec![]).is_none());
        assert!(Curve::new(vec![at(1)]).is_none());
        assert!(Curve::new(vec![at(0), at(5), at(5)]).is_none());
        assert!(Curve::new(vec![at(0), at(5), at(6)]).is_some());
    }

    #[test]
    fn the_parts_of_an_echo_add_up_to_the_half_round_trip() {
        // (o_s, o_r, L, call); the third has a call larger than either overhead, the last two overlap.
        for (send, recv, latency, call) in [
            (700, 500, 900, 100),
            (0, 0, 50, 0),
            (50, 60, 900, 100),
            (900, 800, -700, 100),
            (900, 800, -1200, 50),
        ] {
            let layer = layer(send, recv, latency, call);
            let entered = call;
            let sent = entered + layer.send_cost_ps(8);
            let delivery = layer.costs(8).deliver(sent, entered, 0);
            let done = i64::try_from(delivery.arrival_ps + delivery.recv_cost_ps).unwrap();
            assert_eq!(done, layer.half_round_trip_ps(8), "{send} {recv} {latency} {call}");
        }
    }
}
