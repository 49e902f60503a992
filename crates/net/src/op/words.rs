//! What ranks wait for, in words.

use wiretwin_msg::matching::Pattern;
use wiretwin_units::Bytes;

/// Several things that a rank waits for: the first four, and how many more.
pub(crate) fn of_waits(mut parts: Vec<String>) -> String {
    let more = parts.len().saturating_sub(4);
    parts.truncate(4);
    let mut text = parts.join("; ");
    if more > 0 {
        text.push_str(&format!("; and {more} more"));
    }
    text
}

/// A send.
pub(crate) fn of_send(bytes: Bytes, to: u32, tag: u32, context: u32) -> String {
    format!("send of {} bytes to rank {to} with tag {tag} in context {context}", bytes.get())
}

/// A receive.
pub(crate) fn of_receive(pattern: &Pattern) -> String {
    format!("receive of {}", of_message(pattern))
}

/// A probe.
pub(crate) fn of_probe(pattern: &Pattern) -> String {
    format!("probe for {}", of_message(pattern))
}

fn of_message(pattern: &Pattern) -> String {
    let source = pattern.source.map_or("any rank".to_string(), |source| format!("rank {source}"));
    let tag = pattern.tag.map_or("any tag".to_string(), |tag| format!("tag {tag}"));
    format!("a message from {source} with {tag} in context {}", pattern.context)
}
