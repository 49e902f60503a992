//! A timeline as a Chrome trace: opens in `ui.perfetto.dev`, `chrome://tracing` and Speedscope.
//!
//! The JSON object form of the trace event format (Google, "Trace Event Format", 2016): one complete
//! event (`ph` X) per interval, one thread per rank. Times are microseconds with six decimals, so no
//! picosecond is lost. `otherData` carries this file's own format and version.

use std::fmt::Write as _;

use crate::timeline::Timeline;

/// The name of the format, in `otherData`.
pub const FORMAT: &str = "wiretwin-timeline";
/// Its version; a reader refuses a higher one.
pub const VERSION: u32 = 1;

/// The trace as JSON text. `names` are the calls by number, as in [`crate::timeline::Interval::name`];
/// an interval without a name gets that of its kind.
#[must_use]
pub fn to_json(timeline: &Timeline, names: &[String]) -> String {
    let mut text = format!(
        "{{\"otherData\":{{\"format\":\"{FORMAT}\",\"version\":\"{VERSION}\"}},\"displayTimeUnit\":\"ns\",\"traceEvents\":["
    );
    let quoted = names.iter().map(|name| quote(name)).collect::<Vec<_>>();
    let mut comma = "";
    for rank in 0..timeline.ranks() {
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "{comma}\n{{\"ph\":\"M\",\"pid\":0,\"tid\":{rank},\"name\":\"thread_name\",\"args\":{{\"name\":\"rank {rank}\"}}}}"
        );
        comma = ",";
    }
    for interval in timeline.intervals() {
        let kind = interval.kind.name();
        let name = match quoted.get(interval.name as usize) {
            Some(name) if interval.name > 0 => name.clone(),
            _ => format!("\"{kind}\""),
        };
        let (start, span) = (interval.start_ps, interval.end_ps - interval.start_ps);
        let _ = write!(
            text,
            "{comma}\n{{\"ph\":\"X\",\"pid\":0,\"tid\":{},\"name\":{name},\"cat\":\"{kind}\",\
             \"ts\":{}.{:06},\"dur\":{}.{:06},\"args\":{{\"kind\":\"{kind}\"",
            interval.rank,
            start / 1_000_000,
            start % 1_000_000,
            span / 1_000_000,
            span % 1_000_000,
        );
        if interval.peer >= 0 {
            let _ = write!(text, ",\"peer\":{},\"bytes\":{}", interval.peer, interval.bytes);
        }
        if interval.site >= 0 {
            let _ = write!(text, ",\"site\":{}", interval.site);
        }
        text.push_str("}}");
        comma = ",";
    }
    text.push_str("\n]}\n");
    text
}

/// A JSON string.
fn quote(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            control if control < ' ' => {
                let _ = write!(quoted, "\\u{:04x}", control as u32);
            }
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::{Interval, Kind};

    #[test]
    fn intervals_become_complete_events_with_exact_times() {
        let mut timeline = Timeline::new(1);
        let compute = Interval {
            rank: 0,
            start_ps: 0,
            end_ps: 1_234_567,
            kind: Kind::Compute,
            name: 0,
            site: -1,
            peer: -1,
            bytes: 0,
        };
        timeline.push(compute);
        timeline.push(Interval {
            start_ps: 1_234_567,
            end_ps: 1_234_568,
            kind: Kind::Wire,
            name: 1,
            site: 12,
            peer: 0,
            bytes: 8,
            ..compute
        });
        let names = [String::new(), "a \"call\"\n\\".to_string()];
        let expected = r#"{"otherData":{"format":"wiretwin-timeline","version":"1"},"displayTimeUnit":"ns","traceEvents":[
{"ph":"M","pid":0,"tid":0,"name":"thread_name","args":{"name":"rank 0"}},
{"ph":"X","pid":0,"tid":0,"name":"compute","cat":"compute","ts":0.000000,"dur":1.234567,"args":{"kind":"compute"}},
{"ph":"X","pid":0,"tid":0,"name":"a \"call\"\u000a\\","cat":"wire","ts":1.234567,"dur":0.000001,"args":{"kind":"wire","peer":0,"bytes":8,"site":12}}
]}
"#;
        assert_eq!(to_json(&timeline, &names), expected);
    }
}
