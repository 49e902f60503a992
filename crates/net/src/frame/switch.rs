//! Which ports a frame goes on to: the table of a bridge that learns.
//!
//! IEEE 802.1D: a station is where its last frame came from; frames for it go there alone, all
//! others to every port but their own. Left out: spanning tree, VLANs.

use std::collections::BTreeMap;

use wiretwin_units::{SimTime, Span};

use super::{Mac, PortId};

/// How long a station that is silent is remembered: the recommended default.
const AGEING: Span = Span::from_s(300);
/// Stations that are remembered; a further one is not, and frames for it go everywhere.
const STATIONS: usize = 8192;

/// Where each station was last heard.
#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    stations: BTreeMap<Mac, (PortId, SimTime)>,
}

/// Where a frame goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Forward {
    /// To this port.
    One(PortId),
    /// To all but where it came from.
    All,
    /// Nowhere: the station is on the port that the frame came from.
    Nowhere,
}

impl Table {
    /// Notes the sender of a frame and says where the frame goes.
    pub fn forward(&mut self, now: SimTime, from: PortId, source: Mac, destination: Mac) -> Forward {
        if !source.is_group() && (self.stations.len() < STATIONS || self.stations.contains_key(&source)) {
            self.stations.insert(source, (from, now));
        }
        if destination.is_group() {
            return Forward::All;
        }
        match self.stations.get(&destination) {
            Some(&(port, heard)) if now.saturating_since(heard) <= AGEING => {
                if port == from {
                    Forward::Nowhere
                } else {
                    Forward::One(port)
                }
            }
            _ => Forward::All,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Mac = Mac([2, 0, 0, 0, 0, 1]);
    const B: Mac = Mac([2, 0, 0, 0, 0, 2]);
    const START: SimTime = SimTime::ZERO;

    #[test]
    fn a_station_is_where_it_was_last_heard() {
        let mut table = Table::default();
        assert_eq!(table.forward(START, PortId(0), A, B), Forward::All, "B has not spoken");
        assert_eq!(table.forward(START, PortId(1), B, A), Forward::One(PortId(0)));
        assert_eq!(table.forward(START, PortId(0), A, B), Forward::One(PortId(1)));
        assert_eq!(table.forward(START, PortId(2), B, A), Forward::One(PortId(0)), "B has moved");
        assert_eq!(table.forward(START, PortId(0), A, B), Forward::One(PortId(2)));
        assert_eq!(table.forward(START, PortId(0), B, A), Forward::Nowhere, "both are behind one port");
        assert_eq!(table.forward(START, PortId(0), A, Mac::BROADCAST), Forward::All);
    }

    #[test]
    fn a_silent_station_is_forgotten_and_a_group_is_never_learnt() {
        let mut table = Table::default();
        table.forward(START, PortId(1), B, A);
        let later = START + AGEING;
        assert_eq!(table.forward(later, PortId(0), A, B), Forward::One(PortId(1)));
        assert_eq!(table.forward(later + Span::from_ps(1), PortId(0), A, B), Forward::All);
        let group = Mac([3, 0, 0, 0, 0, 1]);
        table.forward(START, PortId(1), group, A);
        assert_eq!(table.forward(START, PortId(0), A, group), Forward::All);
    }

    #[test]
    fn a_full_table_keeps_what_it_knows() {
        let mut table = Table::default();
        let station = |n: u32| {
            let [a, b, c, d] = n.to_be_bytes();
            Mac([2, 0, a, b, c, d])
        };
        for n in 0..STATIONS as u32 + 1 {
            table.forward(START, PortId(1), station(n), A);
        }
        assert_eq!(table.forward(START, PortId(0), A, station(0)), Forward::One(PortId(1)));
        assert_eq!(table.forward(START, PortId(0), A, station(STATIONS as u32)), Forward::All);
    }
}
