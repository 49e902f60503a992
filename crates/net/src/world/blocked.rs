//! Ranks that wait for what has not happened, in words.

use wiretwin_units::{Bytes, SimTime};

use super::state::{Asked, NONE, Rank, Request, RequestState, State};
use super::{Blocked, World};
use crate::op::words;

impl World {
    /// The ranks that are suspended, and for what.
    #[must_use]
    pub fn blocked(&self) -> Vec<Blocked> {
        let suspended = self.ranks.iter().enumerate().filter(|(_, state)| state.is_suspended());
        suspended
            .map(|(number, rank)| Blocked {
                rank: number as u32,
                operation: self.describe(rank),
                name: self.names.list()[rank.name as usize].clone(),
                site: rank.site,
                since: SimTime::from_ps(rank.in_library_since),
            })
            .collect()
    }

    fn describe(&self, rank: &Rank) -> String {
        match rank.state {
            State::Wait(_) | State::Watch => {
                let mut parts = Vec::new();
                let mut at = rank.wait_head;
                while at != NONE {
                    let request = &self.requests[at as usize];
                    if request.state == RequestState::Active {
                        parts.push(describe_request(request));
                    }
                    at = request.next_wait;
                }
                if rank.state == State::Watch {
                    parts.insert(0, words::of_probe(&rank.sought.pattern()));
                }
                words::of_waits(parts)
            }
            State::Probe | State::ProbeNow => words::of_probe(&rank.sought.pattern()),
            State::Yield => "its own clock".into(),
            State::Running | State::Finished => String::new(),
        }
    }
}

fn describe_request(request: &Request) -> String {
    if request.is_send {
        let Asked { context, peer, tag } = request.asked;
        words::of_send(Bytes::new(request.bytes), peer, tag, context)
    } else {
        words::of_receive(&request.asked.pattern())
    }
}
