//! The rules of a TCP, each a named option with its source.
//!
//! Sources: 4.3-Tahoe, 4.3-Reno, Net/2 and 4.4-Lite are the Berkeley distributions of 1988, 1990,
//! 1991 and 1994 (`netinet/tcp_*.c`, `kern/uipc_socket*.c`).

use core::fmt;

use wiretwin_units::{Bytes, Span};

use super::timers::Phases;

/// How timers and round trips are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// In ticks of a grid that runs freely, whatever the connection does (BSD: 500 ms, and 200 ms
    /// for delayed acknowledgments): a timer of n ticks lasts between n - 1 and n periods.
    Ticks {
        /// The slow grid: retransmission, persistence, keep-alive, 2 MSL.
        slow: Span,
        /// The fast grid: delayed acknowledgments.
        fast: Span,
    },
    /// To the instant.
    Fine,
}

/// The retransmission time-out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rto {
    /// Before the first measurement, for the first transmission. BSD: 6 s (`TCPTV_SRTTDFLT` 3 s of
    /// variance); RFC 6298 (2.1): 1 s.
    pub initial: Span,
    /// The least. BSD: 1 s, two ticks (`TCPTV_MIN`); RFC 6298 (2.4): 1 s; Linux: 200 ms.
    pub min: Span,
    /// The most. BSD: 64 s (`TCPTV_REXMTMAX`); RFC 6298 (2.5): at least 60 s; Linux: 120 s.
    pub max: Span,
    /// How many smoothed deviations above the smoothed round trip. Jacobson 1988 and 4.3-Tahoe: 2;
    /// 4.3-Reno, RFC 6298 (2.3): 4.
    pub deviations: u8,
    /// Each expiry doubles the time-out up to so many times. BSD: 6 (`tcp_backoff`: 1 to 64).
    pub doublings: u8,
    /// So many retransmissions in a row that nobody answers, then the connection is given up.
    /// BSD: 12 (`TCP_MAXRXTSHIFT`); Linux: 15 (`tcp_retries2`).
    pub most: u8,
}

/// What the congestion window does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Congestion {
    /// Slow start, avoidance and fast retransmit, after which slow start begins again (Jacobson
    /// 1988; 4.3-Tahoe).
    Tahoe,
    /// Tahoe, and fast recovery (4.3-Reno; RFC 2581).
    Reno,
    /// Reno, and a recovery that ends when all is acknowledged that was sent before it (RFC 6582).
    NewReno,
    /// CUBIC above NewReno's or SACK's recovery (RFC 9438).
    Cubic,
}

/// What halving starts from on a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossBasis {
    /// The smaller of the two windows, in whole segments (BSD).
    Windows,
    /// The octets in flight (RFC 5681 equation 4).
    Flight,
}

/// Whose small segments wait for an acknowledgment (RFC 896; switched off by `TCP_NODELAY`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nagle {
    /// A small segment waits while anything is unacknowledged (BSD).
    AnyOutstanding,
    /// A small segment waits while another small one is unacknowledged (Minshall; Linux from 2.2).
    SmallOutstanding,
    /// None.
    Off,
}

/// When data that arrived in order are acknowledged, if no segment or update goes before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DelayedAck {
    /// At once.
    None,
    /// At the next tick of the fast grid (BSD: 0 to 200 ms later).
    Grid,
    /// With every second full segment, else after this time (RFC 1122 §4.2.3.2, RFC 5681 §4.2).
    EverySecond {
        /// How long one segment waits; at most 500 ms.
        after: Span,
    },
    /// With every second full segment, else after a time that follows the gaps between arrivals
    /// (Linux: `ato`).
    Adaptive {
        /// The least and the first time. Linux 2.2: 20 ms; today 40 ms.
        min: Span,
        /// The most. Linux: 200 ms.
        max: Span,
    },
}

/// When a reader that has made room tells the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowUpdate {
    /// The window grows by 2 segments and the buffer is empty, or by 35 % of the buffer (4.3-Tahoe,
    /// 4.3-Reno, Net/2).
    Share35OrEmpty,
    /// The window grows by 2 segments, or by half of the buffer (4.4-Lite).
    Half,
    /// The window grows by the smaller of 1 segment and half of the buffer (RFC 1122 §4.2.3.3).
    Segment,
    /// The window at least doubles, and grows by a segment (Linux).
    Doubled,
}

/// How a write reaches the protocol (`sosend`, `tcp_sendmsg`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pieces {
    /// All that the buffer has room for at once.
    Whole,
    /// A segment after the other, each sent, where the window lets it go, before the next is copied
    /// (`tcp_do_sendmsg` of Linux 2.2, which fills a buffer of a segment's size and calls `tcp_send_skb`).
    Segments,
    /// One mbuf or cluster after the other, each offered to the protocol before the next is filled.
    Mbufs {
        /// Octets of a cluster (`MCLBYTES`): 1024 (4.3 on VAX), 2048 (Net/2), 4096 (SunOS 4.1,
        /// inferred).
        cluster: u32,
        /// Writes below so many octets go in small mbufs (`MINCLSIZE`); 0 for never.
        cluster_from: u32,
        /// Octets of a small mbuf.
        small: u32,
    },
}

/// The congestion window that a connection begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InitialWindow {
    /// So many segments (BSD from 4.3-Reno on: 1).
    Segments(u8),
    /// The send buffer, towards a peer on an attached network, as every peer here is: `tcp_newtcpcb` gives
    /// the window what room the buffer has, and `tcp_mss` takes it down to a segment only where the
    /// destination is not local (4.3-Tahoe).
    SendBuffer,
    /// min(4 MSS, max(2 MSS, 4380 octets)) (RFC 3390).
    Rfc3390,
    /// min(10 MSS, max(2 MSS, 14600 octets)) (RFC 6928).
    Rfc6928,
}

/// Probing a peer from which nothing comes (`SO_KEEPALIVE`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepAlive {
    /// Silence before the first probe. BSD and RFC 1122 §4.2.3.6: 7200 s.
    pub idle: Span,
    /// Between probes: 75 s.
    pub interval: Span,
    /// Probes without an answer before the connection is given up: 8 (BSD), 9 (Linux).
    pub probes: u8,
}

/// When a writer that asks for more than there is room for may go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LowWater {
    /// There is room for a cluster of so many octets, or less than one waits (4.3-Tahoe `sosend`).
    Cluster(u32),
    /// There is room for so many octets, and never more than the buffer (4.3-Reno `sb_lowat`: a
    /// cluster).
    Octets(u32),
    /// There is any room (`tcp_memory_free` of Linux 2.2, which `wait_for_tcp_memory` asks).
    Any,
    /// A third of the buffer is free (Linux `sk_stream_is_writeable`).
    Third,
}

impl LowWater {
    /// Whether a writer goes on with this much room in a buffer of this size.
    pub(super) fn lets_on(self, space: u32, buffer: u32) -> bool {
        match self {
            Self::Cluster(cluster) => space > 0 && (space >= cluster || buffer - space.min(buffer) < cluster),
            Self::Octets(octets) => space >= octets.min(buffer),
            Self::Any => space > 0,
            Self::Third => space >= (buffer / 3).max(1),
        }
    }
}

/// Socket buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffers {
    /// Octets for what is written and not acknowledged (`SO_SNDBUF`).
    pub send: u32,
    /// Octets for what has come and is not read (`SO_RCVBUF`).
    pub receive: u32,
    /// The most that either may be (`sbreserve`). 4.3: 52 428; 4.4: 246 723.
    pub limit: u32,
    /// A writer that found no room goes on when there is so much.
    pub send_low: LowWater,
    /// Whether both are rounded up to whole segments when the segment size is known (Net/2
    /// `tcp_mss`).
    pub round_to_segments: bool,
}

/// A buffer size that no socket may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferError {
    /// Octets asked for.
    pub asked: Bytes,
    /// The most there may be.
    pub limit: Bytes,
}

impl fmt::Display for BufferError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (asked, limit) = (self.asked.get(), self.limit.get());
        write!(f, "a socket buffer of {asked} octets: allowed are 1 to {limit}")
    }
}

impl core::error::Error for BufferError {}

/// The rules that a TCP follows, shared by all its connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The preset that these rules began as.
    pub name: &'static str,
    /// How time is counted.
    pub clock: Clock,
    /// Where the host's grids lie, on a clock of ticks.
    pub phases: Phases,
    /// The retransmission time-out.
    pub rto: Rto,
    /// What the congestion window does.
    pub congestion: Congestion,
    /// The congestion window to begin with.
    pub initial_window: InitialWindow,
    /// What halving starts from.
    pub loss_basis: LossBasis,
    /// Congestion avoidance adds an eighth of a segment to each step (4.3-Reno, Net/2 and the first
    /// 4.4; gone in 4.4-Lite).
    pub eighth: bool,
    /// Slow start counts octets rather than acknowledgments (RFC 5681 equation 2).
    pub count_octets: bool,
    /// The window grows only while it is what holds the sender back (RFC 7661 §4.3).
    pub grow_if_used: bool,
    /// So many duplicate acknowledgments retransmit (3).
    pub duplicate_acks: u8,
    /// After so many, the next acknowledgment takes the window back to the threshold. 4.3-Reno and
    /// Net/2: 4, so that exactly three leave it wide; RFC 2581: 3.
    pub deflate_from: u8,
    /// The first two duplicate acknowledgments each let out one new segment (RFC 3042).
    pub limited_transmit: bool,
    /// After a silence of a time-out, the window restarts from the initial one (BSD from 4.3-Reno on; RFC
    /// 5681 §4.1), or from one segment where that is the room in a buffer.
    pub idle_restart: bool,
    /// Whose small segments wait.
    pub nagle: Nagle,
    /// Accepted connections inherit `TCP_NODELAY` (BSD and SunOS: no; Linux: yes).
    pub inherit_nodelay: bool,
    /// When data in order are acknowledged.
    pub delayed_ack: DelayedAck,
    /// So many first segments are acknowledged at once (Linux: quick ACK).
    pub quick_acks: u8,
    /// When a reader that has made room tells the sender.
    pub window_update: WindowUpdate,
    /// How a write reaches the protocol.
    pub pieces: Pieces,
    /// Socket buffers.
    pub buffers: Buffers,
    /// The segment size offered, where it is not that of the interface (MTU - 40). BSD: 512 towards
    /// another network.
    pub mss: Option<u16>,
    /// The segment size towards a peer that offers none. RFC 1122 §4.2.2.6: 536; BSD: 512.
    pub default_mss: u16,
    /// A segment size above this is rounded down to a multiple of it (Net/2 `tcp_mss`: the cluster).
    pub mss_multiple: Option<u16>,
    /// Window scaling (RFC 7323 §2).
    pub window_scaling: bool,
    /// Timestamps, of a clock with this period (RFC 7323 §3), with protection against wrapped
    /// numbers (§5). 4.4-Lite: 500 ms; Linux: 10 ms, today 1 ms.
    pub timestamps: Option<Span>,
    /// Selective acknowledgments (RFC 2018, RFC 6675).
    pub sack: bool,
    /// Explicit congestion notification (RFC 3168): asked for by the end that connects, granted by the other.
    pub ecn: bool,
    /// The most ranges that a receiver keeps out of order, and a sender of what was acknowledged
    /// selectively. BSD: as many as the buffer holds; what is one too many is dropped.
    pub most_ranges: u16,
    /// Numbers that are off the mark bring a challenge rather than the end (RFC 5961).
    pub challenge: bool,
    /// At most one answer in this time to segments outside the window. Linux: 500 ms
    /// (`tcp_invalid_ratelimit`).
    pub invalid_interval: Option<Span>,
    /// A connection that is not open after this time is given up. BSD: 75 s (`TCPTV_KEEP_INIT`);
    /// Linux: 127 s (`tcp_syn_retries`).
    pub connect: Span,
    /// Bounds of the time between probes of a closed window. BSD: 5 s and 60 s.
    pub persist: (Span, Span),
    /// Probes of a closed window stop when nothing has come for so long, after a full back-off.
    /// 4.4-Lite: 7200 s or all of the back-off.
    pub persist_limit: Span,
    /// Keep-alive, for the connections that ask for it.
    pub keep_alive: KeepAlive,
    /// Twice the longest life of a segment: how long TIME-WAIT lasts. BSD: 60 s; RFC 9293: 240 s.
    pub two_msl: Span,
    /// How long a connection that its user has left waits for the peer to close. BSD: 675 s; Linux:
    /// 60 s.
    pub fin_wait_2: Span,
    /// Whether work is put out for a host to pay; a live driver would drop it.
    pub work: bool,
}

impl Config {
    /// These rules with other socket buffers.
    ///
    /// # Errors
    /// [`BufferError`] where one is empty or larger than the limit: `setsockopt` fails.
    pub fn with_buffers(mut self, send: Bytes, receive: Bytes) -> Result<Self, BufferError> {
        let limit = self.buffers.limit;
        let checked = |asked: Bytes| match u32::try_from(asked.get()) {
            Ok(octets) if octets > 0 && octets <= limit => Ok(octets),
            _ => Err(BufferError { asked, limit: Bytes::new(u64::from(limit)) }),
        };
        self.buffers.send = checked(send)?;
        self.buffers.receive = checked(receive)?;
        Ok(self)
    }

    /// The segment size that an interface of this MTU offers.
    pub fn offered_mss(&self, mtu: u16) -> u16 {
        let mss = self.mss.unwrap_or(mtu.saturating_sub(IP_AND_TCP_OCTETS)).max(LEAST_MSS);
        match self.mss_multiple {
            Some(multiple) if mss > multiple => mss / multiple * multiple,
            _ => mss,
        }
    }

    /// The window scale that is asked for: the least that lets all of the buffer be offered (RFC
    /// 7323 §2.3).
    pub fn offered_scale(&self) -> u8 {
        (0..MOST_SCALE)
            .find(|&scale| self.buffers.receive <= u32::from(u16::MAX) << scale)
            .unwrap_or(MOST_SCALE)
    }
}

/// Octets of an IP and a TCP header without options.
pub const IP_AND_TCP_OCTETS: u16 = 40;
/// Offers below this are not believed (`tcp_mss` of Net/2).
pub const LEAST_MSS: u16 = 32;
/// The largest window scale (RFC 7323 §2.3).
pub const MOST_SCALE: u8 = 14;

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn buffers_beyond_the_limit_are_refused_with_the_bound() {
        let config = Config::sunos41();
        let error = config.clone().with_buffers(Bytes::new(52_429), Bytes::new(1)).unwrap_err();
        assert_eq!(error.to_string(), "a socket buffer of 52429 octets: allowed are 1 to 52428");
        assert!(config.clone().with_buffers(Bytes::new(0), Bytes::new(1)).is_err());
        let small = config.with_buffers(Bytes::new(100), Bytes::new(52_428)).unwrap();
        assert_eq!(small.name, "sunos41");
    }

    #[test]
    fn writers_go_on_as_their_age_had_it() {
        let goes_on = |rule: LowWater, buffer: u32| (0..=buffer).find(|&space| rule.lets_on(space, buffer));
        assert_eq!(goes_on(LowWater::Octets(2_048), 8_192), Some(2_048));
        assert_eq!(goes_on(LowWater::Octets(2_048), 100), Some(100), "never above the buffer");
        assert_eq!(goes_on(LowWater::Third, 90_000), Some(30_000));
        assert_eq!(goes_on(LowWater::Cluster(1_024), 8_192), Some(1_024));
        // A buffer of one cluster: any room, for then less than a cluster waits.
        assert_eq!(goes_on(LowWater::Cluster(4_096), 4_096), Some(1));
        assert_eq!(goes_on(LowWater::Cluster(4_096), 5_000), Some(905));
    }

    #[test]
    fn segment_sizes_follow_the_interface_and_the_clusters() {
        let plain = Config::bsd43_reno();
        assert_eq!([1500, 4352, 9180, 9188].map(|mtu| plain.offered_mss(mtu)), [1460, 4312, 9140, 9148]);
        let rounded = Config::net2();
        assert_eq!([1500, 4352, 9188].map(|mtu| rounded.offered_mss(mtu)), [1460, 4096, 8192]);
        assert_eq!(Config { mss: Some(512), ..plain }.offered_mss(1500), 512);
    }

    #[test]
    fn the_scale_lets_the_whole_buffer_be_offered() {
        let scale_of = |octets| {
            let mut config = Config::linux_modern();
            config.buffers.receive = octets;
            config.offered_scale()
        };
        assert_eq!([1, 65_535, 65_536, 131_070, 131_071].map(scale_of), [0, 0, 1, 1, 2]);
        assert_eq!(scale_of(u32::MAX), 14);
    }
}
