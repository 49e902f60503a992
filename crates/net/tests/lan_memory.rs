//! A local network holds as much memory after a thousand round trips as after ten.

use peak_alloc::PeakAlloc;
use wiretwin_net::lan::echo::round_trips;
use wiretwin_net::lan::{Config, Lan};
use wiretwin_units::Bytes;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

fn config(stack: &str, adapter: &str, lower: &str) -> String {
    let names = wiretwin_net::lan::config::priced().map(|activity| activity.name());
    let prices: Vec<String> =
        names.map(|name| format!("\"{name}\": {{\"call_ps\": 5000000, \"byte_ps\": 1000}}")).collect();
    let host = format!(
        r#"{{"name": "h", "cache_bytes": 0, "prices": {{{}}}, "bus": {{"setup_ps": 0, "byte_ps": 20000}},
        "adapter": {adapter}}}"#,
        prices.join(",")
    );
    format!(
        r#"{{"stack": "{stack}", "hosts": [{host}, {host}], "pdu_bytes": 4096, "cut_messages": true,
        "stream_bytes": 1000000, {lower}}}"#
    )
}

/// The most bytes held at any time of so many round trips, besides the list of their times.
fn peak(text: &str, rounds: u64) -> usize {
    let mut lan = Lan::new(Config::from_json(text).expect("a network"), 1, false);
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    let times = round_trips(&mut lan, Bytes::new(20_000), rounds).expect("an echo that ends");
    ALLOCATOR.peak_usage() - before - times.capacity() * size_of::<wiretwin_units::Span>()
}

#[test]
fn a_long_run_holds_no_more_than_a_short_one() {
    let firmware = r#"{"send_pdu_ps": 1, "send_cell_ps": 1, "receive_cell_ps": 1, "receive_pdu_ps": 1}"#;
    let atm = format!(
        r#"{{"kind": "series-200", "send_fifo_cells": 8, "receive_fifo_cells": 1000, "aal5": {firmware},
        "aal34": {firmware}, "pace_ps": 0}}"#
    );
    let link = r#""link": {"rate_bit_s": 100000000, "cell_bits": 432, "propagation_ps": 100000}"#;
    let socket = |lower: &str, mtu: u32| {
        format!(
            r#"{lower}, "socket": {{"tcp": "sunos41", "buffer_bytes": 32768, "nodelay": true,
            "mtu_bytes": {mtu}, "encapsulation_bytes": 8}}"#
        )
    };
    let cable = r#""cable": {"rate_bit_s": 10000000, "hop_ps": 100000}"#;
    for text in [
        config("fore/aal5", &atm, link),
        config("fore/aal34", &atm, link),
        config("socket/tcp/aal5", &atm, &socket(link, 9188)),
        config("framed/tcp/aal5", &atm, &socket(link, 9188)),
        config("socket/tcp/ethernet", r#"{"kind": "frames"}"#, &socket(cable, 1500)),
    ] {
        let (short, long) = (peak(&text, 1000), peak(&text, 2000));
        assert!(long <= short + short / 10 + 4096, "{short} bytes after 1000, {long} after 2000: {text}");
    }
}
