//! Ranks that wait for what has not happened, in words.

use wiretwin_msg::matching::Pattern;
use wiretwin_units::SimTime;

use super::World;
use super::state::{NONE, Rank, Request, RequestState, State};

/// A rank that waits for something that has not happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocked {
    /// The rank.
    pub rank: u32,
    /// What it waits for, in words.
    pub operation: String,
    /// The call it is in; empty if none.
    pub name: String,
    /// The call's source line, -1 if none.
    pub site: i32,
    /// Since when.
    pub since: SimTime,
}

impl World {
    /// The ranks that are suspended, and for what.
    #[must_use]
    pub fn blocked(&self) -> Vec<Blocked> {
        let suspended = self.ranks.iter().enumerate().filter(|(_, state)| state.is_suspended());
        suspended
            .map(|(number, rank)| Blocked {
                rank: number as u32,
                operation: self.describe(rank),
                name: self.names[rank.name as usize].clone(),
                site: rank.site,
                since: SimTime::from_ps(rank.in_library_since),
            })
            .collect()
    }

    fn describe(&self, rank: &Rank) -> String {
        match rank.state {
            State::Wait(_) => {
                let mut parts = Vec::new();
                let mut at = rank.wait_head;
                while at != NONE {
                    let request = &self.requests[at as usize];
                    if request.state == RequestState::Active {
                        parts.push(describe_request(request));
                    }
                    at = request.next_wait;
                }
                let more = parts.len().saturating_sub(4);
                parts.truncate(4);
                let mut text = parts.join("; ");
                if more > 0 {
                    text.push_str(&format!("; and {more} more"));
                }
                text
            }
            State::Probe | State::ProbeNow => format!("probe for {}", describe_pattern(&rank.pattern)),
            State::Yield => "its own clock".into(),
            State::Running | State::Finished => String::new(),
        }
    }
}

fn describe_request(request: &Request) -> String {
    if request.is_send {
        format!(
            "send of {} bytes to rank {} with tag {} in context {}",
            request.bytes, request.peer, request.tag, request.pattern.context
        )
    } else {
        format!("receive of {}", describe_pattern(&request.pattern))
    }
}

fn describe_pattern(pattern: &Pattern) -> String {
    let source = pattern.source.map_or("any rank".to_string(), |source| format!("rank {source}"));
    let tag = pattern.tag.map_or("any tag".to_string(), |tag| format!("tag {tag}"));
    format!("a message from {source} with {tag} in context {}", pattern.context)
}
