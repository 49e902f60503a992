//! Messages of PVM between two simulated tasks: host time per message, with everything under it.
//!
//! Messages of 1 KiB by the advise route, one way, as fast as the receiver takes them: the library's calls, TCP, the
//! network frame by frame or cell by cell, and hosts that pay for what they do. The octets travel with them. The
//! reference is one push and one pop of a plain `BinaryHeap` with 1024 events pending, measured in turns with each
//! workload. One JSON line per workload: `ns` and `reference_ns` are medians over the turns, `ratio` that of the
//! turns' ratios. A million messages are to take 5 s.
//!
//! Arguments: words that the name of a workload must have; `--quick` for fewer turns.

#![allow(clippy::disallowed_types)] // a bench reads the clock; the crate beside it may not

use std::collections::BTreeMap;
use std::time::Instant;

use wiretwin_benches::{Arguments, PlainHeap, Turns};
use wiretwin_net::SimComm;
use wiretwin_net::lan::config::priced;
use wiretwin_net::lan::{Config, Lan};
use wiretwin_net::local::run;
use wiretwin_prog::{Comm, Outcome, ProgramError, Rank, Source, Tag, TagMatch};
use wiretwin_units::Span;

struct Workload {
    name: &'static str,
    stack: &'static str,
    adapter: &'static str,
    network: &'static str,
    mtu: u32,
}

const FRAMES: &str = r#"{"kind": "frames"}"#;
const SERIES_200: &str = r#"{"kind": "series-200", "send_fifo_cells": 292, "receive_fifo_cells": 292, "pace_ps": 9559300,
    "aal5": {"send_pdu_ps": 25000000, "send_cell_ps": 7023300, "receive_cell_ps": 7023300, "receive_pdu_ps": 25000000},
    "aal34": {"send_pdu_ps": 25000000, "send_cell_ps": 7023300, "receive_cell_ps": 7023300, "receive_pdu_ps": 25000000}}"#;

const WORKLOADS: [Workload; 3] = [
    Workload {
        name: "net/pvm-advise 1KiB ethernet",
        stack: "pvm-advise/tcp/ethernet",
        adapter: FRAMES,
        network: r#""cable": {"rate_bit_s": 10000000, "hop_ps": 100000}"#,
        mtu: 1_500,
    },
    Workload {
        name: "net/pvm-advise 1KiB fddi",
        stack: "pvm-advise/tcp/fddi",
        adapter: FRAMES,
        network: r#""ring": {"rate_bit_s": 100000000, "hop_ps": 100000, "latency_ps": 1000000, "target_ps": 8000000000}"#,
        mtu: 4_352,
    },
    Workload {
        name: "net/pvm-advise 1KiB atm",
        stack: "pvm-advise/tcp/aal5",
        adapter: SERIES_200,
        network: r#""link": {"rate_bit_s": 100000000, "cell_bits": 432, "propagation_ps": 100000},
            "switch": {"fabric_bit_s": 2400000000, "delay_ps": 3000000, "queue_cells": 256,
                       "module_bit_s": 622080000, "modules": 4}"#,
        mtu: 9_188,
    },
];

/// A million in 5 s.
const TARGET_NS: f64 = 5_000.0;
const BYTES: usize = 1_024;

impl Workload {
    fn build(&self) -> Lan {
        let prices = priced()
            .map(|activity| format!(r#""{activity}": {{"call_ps": 20000000, "byte_ps": 20000}}"#))
            .collect::<Vec<_>>()
            .join(",");
        let host = format!(
            r#"{{"name": "h", "cache_bytes": 1000000, "prices": {{{prices}}},
                "bus": {{"setup_ps": 100000, "byte_ps": 25000}}, "adapter": {}}}"#,
            self.adapter
        );
        let text = format!(
            r#"{{"stack": "{}", "hosts": [{host}, {host}], "pdu_bytes": 4096, "stream_bytes": 10000000,
                "cut_messages": true, {},
                "socket": {{"tcp": "sunos41", "buffer_bytes": 32768, "nodelay": true, "mtu_bytes": {},
                            "encapsulation_bytes": 8}}}}"#,
            self.stack, self.network, self.mtu
        );
        let config = Config::from_json(&text).expect("a network that can be");
        Lan::new(config, 1, false)
    }

    /// ns per message of a turn.
    fn turn(&self, messages: u64) -> f64 {
        let program = async move |comm: &mut SimComm| -> Result<Outcome, ProgramError> {
            let mut octets = vec![7; BYTES];
            for _ in 0..messages {
                if comm.rank() == Rank(0) {
                    comm.send(Rank(1), Tag(1), &octets).await?;
                } else {
                    comm.recv(Source::Rank(Rank(0)), TagMatch::Any, &mut octets).await?;
                }
            }
            Ok(Outcome::new(Span::ZERO, 0, true))
        };
        let lan = self.build();
        let start = Instant::now();
        run(lan, BTreeMap::new(), program).expect("nothing is lost");
        start.elapsed().as_secs_f64() * 1e9 / messages as f64
    }
}

fn main() {
    let arguments = Arguments::of_process();
    let (turns, messages) = (arguments.turns(11, 5), 20_000);
    let mut reference = PlainHeap::default();
    for workload in WORKLOADS {
        if !arguments.wanted(workload.name) {
            continue;
        }
        let mut measured = Turns::default();
        workload.turn(messages);
        reference.turn();
        for _ in 0..turns {
            measured.push(workload.turn(messages), reference.turn());
        }
        let (ns, heap, ratio) = measured.medians();
        println!(
            "{{\"bench\": \"{}\", \"unit\": \"ns per message\", \"ns\": {ns:.0}, \"reference\": \
             \"push and pop of a BinaryHeap of 1024\", \"reference_ns\": {heap:.1}, \"ratio\": {ratio:.1}, \
             \"target_ratio\": {:.0}, \"target_ns\": {TARGET_NS}}}",
            workload.name,
            TARGET_NS / 31.0,
        );
    }
}
