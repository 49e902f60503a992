//! Networks for the tests, from a few properties.

use wiretwin_net::lan::config::priced;
use wiretwin_net::lan::{Config, Lan};

/// What a test wants of its network.
#[derive(Clone, Debug)]
pub struct Want {
    pub stack: &'static str,
    pub adapter: &'static str,
    pub hosts: usize,
    pub switch: bool,
    /// Of the processor for each activity, ps a call.
    pub price: u64,
    pub loss: f64,
    pub buffer: u32,
    pub nodelay: bool,
}

pub const PLAIN: Want = Want {
    stack: "fore/aal5",
    adapter: "series-200",
    hosts: 2,
    switch: false,
    price: 1_000_000,
    loss: 0.0,
    buffer: 32_768,
    nodelay: true,
};

/// A link of 100 Mbit/s without a code between its cells.
pub const LINK: (u64, u64) = (100_000_000, 424);

pub fn json(want: &Want) -> String {
    let adapter = match want.adapter {
        "series-100" => {
            r#"{"kind": "series-100", "send_fifo_cells": 8, "receive_fifo_cells": 4096, "interrupt_delay_ps": 0}"#
        }
        "series-200" => {
            r#"{"kind": "series-200", "send_fifo_cells": 8, "receive_fifo_cells": 64,
            "aal5": {"send_pdu_ps": 1000, "send_cell_ps": 1000, "receive_cell_ps": 1000, "receive_pdu_ps": 1000},
            "aal34": {"send_pdu_ps": 1000, "send_cell_ps": 1000, "receive_cell_ps": 1000, "receive_pdu_ps": 1000},
            "pace_ps": 0}"#
        }
        other => &format!(r#"{{"kind": "{other}"}}"#),
    };
    let prices: Vec<String> = priced()
        .map(|activity| format!(r#""{activity}": {{"call_ps": {}, "byte_ps": 10}}"#, want.price))
        .collect();
    let host = format!(
        r#"{{"name": "h", "cache_bytes": 1000000, "prices": {{{}}},
        "bus": {{"setup_ps": 0, "byte_ps": 1000}}, "adapter": {adapter}}}"#,
        prices.join(",")
    );
    let (rate, cell_bits) = LINK;
    let (network, mtu, encapsulation) = match want.stack.rsplit('/').next() {
        Some("ethernet") => (r#""cable": {"rate_bit_s": 10000000, "hop_ps": 100000}"#.into(), 1_500, 18),
        Some("fddi") => (
            r#""ring": {"rate_bit_s": 100000000, "hop_ps": 100000, "latency_ps": 1000000, "target_ps": 8000000000}"#
                .to_string(),
            4_352,
            25,
        ),
        _ => {
            let switch = if want.switch {
                r#", "switch": {"fabric_bit_s": 2400000000, "delay_ps": 5000000, "queue_cells": 256,
                    "module_bit_s": 622080000, "modules": 4}"#
            } else {
                ""
            };
            let link = format!(
                r#""link": {{"rate_bit_s": {rate}, "cell_bits": {cell_bits}, "propagation_ps": 100000}}{switch}"#
            );
            (link, 9_188, 8)
        }
    };
    let socket = if !want.stack.starts_with("fore") {
        format!(
            r#", "socket": {{"tcp": "sunos41", "buffer_bytes": {}, "nodelay": {},
            "mtu_bytes": {mtu}, "encapsulation_bytes": {encapsulation}}}"#,
            want.buffer, want.nodelay
        )
    } else {
        String::new()
    };
    let loss = if want.loss > 0.0 { format!(r#", "cell_loss": {}"#, want.loss) } else { String::new() };
    format!(
        r#"{{"stack": "{}", "hosts": [{}], "pdu_bytes": 4096, "stream_bytes": 100000000,
        "cut_messages": true, {network}{socket}{loss}}}"#,
        want.stack,
        vec![host; want.hosts].join(",")
    )
}

pub fn lan(want: &Want, seed: u64, trail: bool) -> Lan {
    let config = Config::from_json(&json(want)).unwrap_or_else(|error| panic!("{want:?}: {error}"));
    Lan::new(config, seed, trail)
}
