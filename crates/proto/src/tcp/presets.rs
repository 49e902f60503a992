//! Sets of rules as they were shipped.

use wiretwin_units::Span;

use super::config::{
    Buffers, Clock, Config, Congestion, DelayedAck, InitialWindow, KeepAlive, LossBasis, LowWater, Nagle,
    Pieces, Rto, WindowUpdate,
};
use super::timers::Phases;

impl Config {
    /// 4.3BSD-Tahoe (1988): slow start but not towards neighbours nor after silence, fast retransmit, no fast
    /// recovery, clusters of 1024.
    pub const fn bsd43_tahoe() -> Self {
        Self {
            name: "bsd43_tahoe",
            clock: Clock::Ticks { slow: Span::from_ms(500), fast: Span::from_ms(200) },
            phases: Phases { slow: Span::ZERO, fast: Span::ZERO },
            rto: Rto {
                initial: Span::from_s(6),
                min: Span::from_s(1),
                max: Span::from_s(64),
                deviations: 2,
                doublings: 6,
                most: 12,
            },
            congestion: Congestion::Tahoe,
            initial_window: InitialWindow::SendBuffer,
            loss_basis: LossBasis::Windows,
            eighth: false,
            count_octets: false,
            grow_if_used: false,
            duplicate_acks: 3,
            deflate_from: 4,
            limited_transmit: false,
            idle_restart: false,
            nagle: Nagle::AnyOutstanding,
            inherit_nodelay: false,
            delayed_ack: DelayedAck::Grid,
            quick_acks: 0,
            window_update: WindowUpdate::Share35OrEmpty,
            pieces: Pieces::Mbufs { cluster: 1024, cluster_from: 512, small: 112 },
            buffers: Buffers {
                send: 4096,
                receive: 4096,
                limit: 52_428,
                send_low: LowWater::Cluster(1024),
                round_to_segments: false,
            },
            mss: None,
            default_mss: 512,
            mss_multiple: None,
            window_scaling: false,
            timestamps: None,
            sack: false,
            ecn: false,
            most_ranges: 256,
            challenge: false,
            invalid_interval: None,
            connect: Span::from_s(75),
            persist: (Span::from_s(5), Span::from_s(60)),
            persist_limit: Span::from_s(7_200),
            keep_alive: KeepAlive { idle: Span::from_s(7_200), interval: Span::from_s(75), probes: 8 },
            two_msl: Span::from_s(60),
            fin_wait_2: Span::from_s(675),
            work: true,
        }
    }

    /// 4.3BSD-Reno (1990): fast recovery, slow start towards all and after silence, the time-out at four
    /// deviations, clusters of 2048.
    pub const fn bsd43_reno() -> Self {
        let tahoe = Self::bsd43_tahoe();
        Self {
            name: "bsd43_reno",
            rto: Rto { deviations: 4, ..tahoe.rto },
            congestion: Congestion::Reno,
            initial_window: InitialWindow::Segments(1),
            eighth: true,
            idle_restart: true,
            pieces: Pieces::Mbufs { cluster: 2048, cluster_from: 208, small: 100 },
            buffers: Buffers {
                send: 8192,
                receive: 8192,
                limit: 246_723,
                send_low: LowWater::Octets(2048),
                ..tahoe.buffers
            },
            ..tahoe
        }
    }

    /// Net/2 (1991): Reno with segments rounded to clusters and buffers rounded to segments.
    pub const fn net2() -> Self {
        let reno = Self::bsd43_reno();
        Self {
            name: "net2",
            mss_multiple: Some(2048),
            buffers: Buffers { round_to_segments: true, ..reno.buffers },
            ..reno
        }
    }

    /// SunOS 4.1, a descendant of 4.3BSD whose source is not public: pieces of 4096 and the update
    /// rule are inferred from published measurements, the rest is 4.3-Tahoe's.
    pub const fn sunos41() -> Self {
        let tahoe = Self::bsd43_tahoe();
        Self {
            name: "sunos41",
            pieces: Pieces::Mbufs { cluster: 4096, cluster_from: 0, small: 0 },
            buffers: Buffers { send_low: LowWater::Cluster(4096), ..tahoe.buffers },
            ..tahoe
        }
    }

    /// Linux 2.2 (1999): NewReno with SACK, timestamps and window scaling, quick and adaptive
    /// delayed acknowledgments.
    pub const fn linux22() -> Self {
        Self {
            name: "linux22",
            rto: Rto { max: Span::from_s(120), ..Self::linux_modern().rto },
            congestion: Congestion::NewReno,
            initial_window: InitialWindow::Segments(2),
            count_octets: false,
            limited_transmit: false,
            delayed_ack: DelayedAck::Adaptive { min: Span::from_ms(20), max: Span::from_ms(200) },
            buffers: Buffers {
                send: 65_535,
                receive: 65_535,
                limit: 131_070,
                send_low: LowWater::Any,
                round_to_segments: false,
            },
            timestamps: Some(Span::from_ms(10)),
            pieces: Pieces::Segments,
            challenge: false,
            ..Self::linux_modern()
        }
    }

    /// Linux of today: CUBIC, SACK, ten segments to begin with, fine timers.
    pub const fn linux_modern() -> Self {
        Self {
            name: "linux_modern",
            clock: Clock::Fine,
            phases: Phases { slow: Span::ZERO, fast: Span::ZERO },
            rto: Rto {
                initial: Span::from_s(1),
                min: Span::from_ms(200),
                max: Span::from_s(120),
                deviations: 4,
                doublings: 15,
                most: 15,
            },
            congestion: Congestion::Cubic,
            initial_window: InitialWindow::Rfc6928,
            loss_basis: LossBasis::Flight,
            eighth: false,
            count_octets: true,
            grow_if_used: true,
            duplicate_acks: 3,
            deflate_from: 3,
            limited_transmit: true,
            idle_restart: true,
            nagle: Nagle::SmallOutstanding,
            inherit_nodelay: true,
            delayed_ack: DelayedAck::Adaptive { min: Span::from_ms(40), max: Span::from_ms(200) },
            quick_acks: 16,
            window_update: WindowUpdate::Doubled,
            pieces: Pieces::Whole,
            buffers: Buffers {
                send: 4 << 20,
                receive: 6 << 20,
                limit: 1 << 30,
                send_low: LowWater::Third,
                round_to_segments: false,
            },
            mss: None,
            default_mss: 536,
            mss_multiple: None,
            window_scaling: true,
            timestamps: Some(Span::from_ms(1)),
            sack: true,
            ecn: false,
            most_ranges: 256,
            challenge: true,
            invalid_interval: Some(Span::from_ms(500)),
            connect: Span::from_s(127),
            persist: (Span::from_ms(200), Span::from_s(120)),
            persist_limit: Span::from_s(900),
            keep_alive: KeepAlive { idle: Span::from_s(7_200), interval: Span::from_s(75), probes: 9 },
            two_msl: Span::from_s(60),
            fin_wait_2: Span::from_s(60),
            work: true,
        }
    }

    /// The presets, by [`Config::name`].
    pub fn presets() -> [Self; 6] {
        [
            Self::bsd43_tahoe(),
            Self::bsd43_reno(),
            Self::net2(),
            Self::sunos41(),
            Self::linux22(),
            Self::linux_modern(),
        ]
    }

    /// The preset of this name.
    pub fn preset(name: &str) -> Option<Self> {
        Self::presets().into_iter().find(|preset| preset.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_are_found_by_their_names() {
        for preset in Config::presets() {
            assert_eq!(Config::preset(preset.name), Some(preset));
        }
        assert_eq!(Config::preset("bsd44"), None);
    }
}
