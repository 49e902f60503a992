//! Where the time goes: every picosecond of a rank's clock to one kind.

use wiretwin_record::timeline::{Interval, Kind};

use super::{Effect, World};

impl World {
    /// Moves a rank's clock on by `span` of this kind, for an effect that may have a peer.
    #[inline]
    pub(super) fn advance(&mut self, rank: u32, span: u64, kind: Kind, effect: &Effect) {
        if span == 0 {
            return;
        }
        let (peer, bytes) = match *effect {
            Effect::Send { message } => {
                let message = &self.messages[message as usize];
                (message.destination as i32, message.bytes)
            }
            _ => (-1, 0),
        };
        self.spend(rank, span, kind, peer, bytes);
    }

    /// Moves a rank's clock on by `span` of this kind.
    #[inline]
    pub(super) fn spend(&mut self, rank: u32, span: u64, kind: Kind, peer: i32, bytes: u64) {
        if span == 0 {
            return;
        }
        let state = &mut self.ranks[rank as usize];
        let start_ps = state.clock;
        state.clock += span;
        state.totals[kind as usize] += span;
        if let Some(timeline) = &mut self.timeline {
            timeline.push(Interval {
                rank,
                start_ps,
                end_ps: state.clock,
                kind,
                name: state.name,
                site: state.site,
                peer,
                bytes,
            });
        }
    }

    /// Moves a waiting rank's clock on to `until`: what lies between `wire_from` and `wire_to` was
    /// spent while the message it waited for was on the wire, the rest waiting.
    #[inline]
    pub(super) fn wait_until(
        &mut self,
        rank: u32,
        until: u64,
        wire_from: u64,
        wire_to: u64,
        peer: i32,
        bytes: u64,
    ) {
        let clock = self.ranks[rank as usize].clock;
        if clock >= until {
            return;
        }
        let wire_from = wire_from.clamp(clock, until);
        let wire_to = wire_to.clamp(wire_from, until);
        self.spend(rank, wire_from - clock, Kind::Waiting, peer, bytes);
        self.spend(rank, wire_to - wire_from, Kind::Wire, peer, bytes);
        self.spend(rank, until - wire_to, Kind::Waiting, peer, bytes);
    }
}
