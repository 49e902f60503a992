//! Processes that carry their messages themselves: what comes waits in memory until they look.

use std::collections::VecDeque;

use wiretwin_engine::EventSink;
use wiretwin_units::SimTime;

use super::network::{Event, Kind, Network};

/// A process with ends of the direct transport.
#[derive(Clone, Debug)]
pub(super) struct Reader {
    /// Since when it looks; [`SimTime::MAX`] while it does not.
    since: SimTime,
    /// What waits for it, with when it came.
    waiting: VecDeque<(SimTime, Waiting)>,
    is_scheduled: bool,
}

/// What waits for a process.
#[derive(Clone, Copy, Debug)]
pub(super) enum Waiting {
    /// A frame: the number of its packet.
    Frame(u32),
    /// Something is due at an end.
    Due(u32),
}

impl Network {
    fn reader(&mut self, process: u32) -> &mut Reader {
        let place = process as usize;
        if self.readers.len() <= place {
            let idle = Reader { since: SimTime::MAX, waiting: VecDeque::new(), is_scheduled: false };
            self.readers.resize(place + 1, idle);
        }
        &mut self.readers[place]
    }

    /// A process looks at what comes for its ends of the direct transport from this time on.
    pub fn reads(&mut self, sink: &mut impl EventSink<Event>, now: SimTime, process: u32, since: SimTime) {
        let reader = self.reader(process);
        reader.since = since;
        if !reader.waiting.is_empty() && !std::mem::replace(&mut reader.is_scheduled, true) {
            sink.put(since.max(now), Kind::Read.of(process));
        }
    }

    /// A process looks no more.
    pub fn reads_no_more(&mut self, process: u32) {
        self.reader(process).since = SimTime::MAX;
    }

    /// A process looks once: it has what waits for it.
    pub fn look(&mut self, sink: &mut impl EventSink<Event>, now: SimTime, process: u32) {
        while let Some((came, what)) = self.reader(process).waiting.pop_front() {
            match what {
                Waiting::Frame(number) => self.frame(sink, now, number, came),
                Waiting::Due(end) => self.due(sink, now, end),
            }
        }
    }

    /// The time has come at which a process for which something waits begins to look.
    pub(super) fn read(&mut self, sink: &mut impl EventSink<Event>, now: SimTime, process: u32) {
        let reader = self.reader(process);
        reader.is_scheduled = false;
        let since = reader.since;
        if since <= now {
            self.look(sink, now, process);
        } else if since < SimTime::MAX {
            self.reads(sink, now, process, since);
        }
    }

    /// Whether a process looks now; otherwise this waits for it.
    pub(super) fn is_read(
        &mut self,
        sink: &mut impl EventSink<Event>,
        now: SimTime,
        process: u32,
        what: Waiting,
    ) -> bool {
        let reader = self.reader(process);
        if reader.since <= now && reader.waiting.is_empty() {
            return true;
        }
        reader.waiting.push_back((now, what));
        let since = reader.since;
        if since < SimTime::MAX && !std::mem::replace(&mut reader.is_scheduled, true) {
            sink.put(since.max(now), Kind::Read.of(process));
        }
        false
    }

    /// How many frames wait for a process.
    #[cfg(test)]
    pub(crate) fn waiting_frames(&self, process: u32) -> usize {
        let waiting = self.readers.get(process as usize).map(|reader| reader.waiting.iter());
        waiting.into_iter().flatten().filter(|(_, what)| matches!(what, Waiting::Frame(_))).count()
    }
}
