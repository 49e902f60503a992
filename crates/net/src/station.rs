//! What stations of any shared medium have in common: their numbers, their frames, what they may be given.

use std::fmt;

use wiretwin_plan::PlanError;
use wiretwin_units::{Bytes, SimTime};

/// A station: its place in the list of stations of its medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StationId(pub u16);

impl fmt::Display for StationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "station {}", self.0)
    }
}

/// A frame on a medium: its length and who it is for; the rest is the caller's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame<P> {
    /// The receiver; `None` is every other station.
    pub to: Option<StationId>,
    /// All that its check sequence covers, that sequence included.
    pub octets: Bytes,
    /// What it carries. The medium never looks.
    pub payload: P,
}

impl<P> Frame<P> {
    /// Checks that a station may be given this frame, of `longest` at most, at a time `now` when the medium's clock
    /// is at `clock`; `stations` is how many there are.
    pub(crate) fn check(
        &self,
        station: StationId,
        stations: usize,
        longest: Bytes,
        now: SimTime,
        clock: SimTime,
    ) -> Result<(), PlanError> {
        for named in [Some(station), self.to].into_iter().flatten() {
            if usize::from(named.0) >= stations {
                return Err(PlanError::new("station", named.0, format!("0 to {}", stations - 1)));
            }
        }
        if self.to == Some(station) {
            return Err(PlanError::new("frame.to", station.0, "another station"));
        }
        if self.octets > longest {
            return Err(PlanError::new("frame.octets", self.octets, format!("at most {longest}")));
        }
        if now < clock {
            return Err(PlanError::new("now", now, format!("{clock} or later")));
        }
        Ok(())
    }
}
