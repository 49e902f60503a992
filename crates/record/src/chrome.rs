//! A timeline as a Chrome trace: opens in `ui.perfetto.dev`, `chrome://tracing` and Speedscope.
//!
//! The JSON object form of the trace event format (Google, "Trace Event Format", 2016): one complete
//! event (`ph` X) per interval, one thread per rank. Times are microseconds with six decimals, so no
//! picosecond is lost. `otherData` carries this file's own format and version.

use std::fmt::Write as _;
use std::io::{self, Write};

use crate::timeline::Interval;

/// The name of the format, in `otherData`.
pub const FORMAT: &str = "wiretwin-timeline";
/// Its version; a reader rejects a higher one.
pub const VERSION: u32 = 1;

/// Writes the intervals of `ranks` ranks as a trace, one after the other, to `out`. `names` are the calls by
/// number, as in [`Interval::name`]; an interval without a name gets that of its kind.
///
/// # Errors
/// Those of `out`.
pub fn write(
    mut out: impl Write,
    ranks: u32,
    names: &[String],
    intervals: impl IntoIterator<Item = Interval>,
) -> io::Result<()> {
    write!(
        out,
        "{{\"otherData\":{{\"format\":\"{FORMAT}\",\"version\":\"{VERSION}\"}},\"displayTimeUnit\":\"ns\",\"traceEvents\":["
    )?;
    let quoted = names.iter().map(|name| quote(name)).collect::<Vec<_>>();
    let mut comma = "";
    for rank in 0..ranks {
        write!(
            out,
            "{comma}\n{{\"ph\":\"M\",\"pid\":0,\"tid\":{rank},\"name\":\"thread_name\",\"args\":{{\"name\":\"rank {rank}\"}}}}"
        )?;
        comma = ",";
    }
    for interval in intervals {
        let kind = interval.kind.name();
        write!(out, "{comma}\n{{\"ph\":\"X\",\"pid\":0,\"tid\":{},\"name\":", interval.rank)?;
        match quoted.get(interval.name as usize) {
            Some(name) if interval.name > 0 => out.write_all(name.as_bytes())?,
            _ => write!(out, "\"{kind}\"")?,
        }
        let (start, span) = (interval.start_ps, interval.end_ps - interval.start_ps);
        write!(
            out,
            ",\"cat\":\"{kind}\",\"ts\":{}.{:06},\"dur\":{}.{:06},\"args\":{{\"kind\":\"{kind}\"",
            start / 1_000_000,
            start % 1_000_000,
            span / 1_000_000,
            span % 1_000_000,
        )?;
        if interval.peer >= 0 {
            write!(out, ",\"peer\":{},\"bytes\":{}", interval.peer, interval.bytes)?;
        }
        if interval.site >= 0 {
            write!(out, ",\"site\":{}", interval.site)?;
        }
        out.write_all(b"}}")?;
        comma = ",";
    }
    out.write_all(b"\n]}\n")?;
    out.flush()
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
    use crate::timeline::Kind;

    #[test]
    fn intervals_become_complete_events_with_exact_times() {
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
        let call = Interval {
            start_ps: 1_234_567,
            end_ps: 1_234_568,
            kind: Kind::Wire,
            name: 1,
            site: 12,
            peer: 0,
            bytes: 8,
            ..compute
        };
        let names = [String::new(), "a \"call\"\n\\".to_string()];
        let expected = r#"{"otherData":{"format":"wiretwin-timeline","version":"1"},"displayTimeUnit":"ns","traceEvents":[
{"ph":"M","pid":0,"tid":0,"name":"thread_name","args":{"name":"rank 0"}},
{"ph":"X","pid":0,"tid":0,"name":"compute","cat":"compute","ts":0.000000,"dur":1.234567,"args":{"kind":"compute"}},
{"ph":"X","pid":0,"tid":0,"name":"a \"call\"\u000a\\","cat":"wire","ts":1.234567,"dur":0.000001,"args":{"kind":"wire","peer":0,"bytes":8,"site":12}}
]}
"#;
        let mut written = Vec::new();
        write(&mut written, 1, &names, [compute, call]).expect("memory takes it");
        assert_eq!(String::from_utf8(written).expect("text"), expected);
    }
}
