//! What may happen next.

use super::Place;
use crate::future_events::Epoch;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// The bus of a station is free.
    Bus(u32),
    /// A station has sent its frame.
    Sent(u32),
    /// A frame may go on in the switch.
    Forward(Place),
    /// A way out of the switch has sent its frame.
    Forwarded(u32),
    /// A frame has come whole to a station.
    Came(Place),
    /// A station is to pause.
    Stop(u32),
    /// It need not any more.
    Go(u32),
    /// A pause may be over.
    Resume(u32),
    /// The first frame that a host was not told of has waited long enough, unless it has been told since.
    Tell(u32, Epoch),
}
