//! Packets over a three-level fat tree of 1024 hosts, all of which send: host time per packet-hop, and memory.
//!
//! 16 pods of 8 edge and 8 aggregation switches, 64 switches at the core, lines of 100 Gbit/s and 1 us. Each host sends
//! to one other, and is sent to by one, without end: the real TCP machine at both ends, packets of 4000 octets, a window
//! of 200 kB. A packet goes up as the receiver's number says; nothing is lost. A hop is a packet that reached the end of
//! a link. The reference is the bare loop of the same: windows of 50 packets and lines, no TCP. Left out of ours are
//! what hosts cost, payloads and checksums. Measured in turns; `ns` and `reference_ns` are medians over them.
//!
//! Arguments: words that the name of a workload must have; `--quick` for fewer turns.

#![allow(clippy::disallowed_types)] // a bench reads the clock; the crate beside it may not

use std::sync::Arc;
use std::time::Instant;

use peak_alloc::PeakAlloc;
use wiretwin_benches::{Arguments, TREE_HOSTS, Turns, bare_tree, partners};
use wiretwin_net::packet::{Application, LinkSpec, Network, NodeId};
use wiretwin_proto::tcp::Config;
use wiretwin_units::{BitRate, Bytes, SimTime, Span};

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

const LINE: LinkSpec = LinkSpec {
    rate: BitRate::gbit_s(100),
    delay: Span::from_us(1),
    queue_packets: None,
    overhead: Bytes::new(0),
};
const MTU: u16 = 4_000;
const WINDOW: Bytes = Bytes::new(200_000);

/// The tree, with a route from every node to every host, and a connection from each host to its partner.
fn tree() -> Network {
    let mut network = Network::new();
    let mut nodes = |count: u32| (0..count).map(|_| network.add_node(None)).collect::<Vec<NodeId>>();
    let (hosts, edges, aggregations, cores) = (nodes(TREE_HOSTS), nodes(128), nodes(128), nodes(64));
    for (number, host) in (0_u32..).zip(&hosts) {
        let edge = edges[number as usize / 8];
        let link = network.add_link(edge, LINE);
        for other in hosts.iter().filter(|other| *other != host) {
            network.add_route(*host, *other, link);
        }
        let link = network.add_link(*host, LINE);
        network.add_route(edge, *host, link);
    }
    for edge in 0..128_u32 {
        for up in 0..8 {
            let aggregation = aggregations[(edge / 8 * 8 + up) as usize];
            let link = network.add_link(aggregation, LINE);
            // What is for another rack goes up by its receiver's number.
            for to in (0..TREE_HOSTS).filter(|to| to / 8 != edge && to % 8 == up) {
                network.add_route(edges[edge as usize], hosts[to as usize], link);
            }
            let link = network.add_link(edges[edge as usize], LINE);
            for to in 8 * edge..8 * edge + 8 {
                network.add_route(aggregation, hosts[to as usize], link);
            }
        }
    }
    for aggregation in 0..128_u32 {
        for up in 0..8 {
            let core = cores[(aggregation % 8 * 8 + up) as usize];
            let pod = aggregation / 8;
            let link = network.add_link(core, LINE);
            for to in (0..TREE_HOSTS).filter(|to| to / 64 != pod && to / 8 % 8 == up) {
                network.add_route(aggregations[aggregation as usize], hosts[to as usize], link);
            }
            let link = network.add_link(aggregations[aggregation as usize], LINE);
            // A core switch hands down by the aggregation switch of the receiver's number.
            for to in 64 * pod..64 * pod + 64 {
                network.add_route(core, hosts[to as usize], link);
            }
        }
    }
    let config = Config { work: false, ..Config::linux_modern() };
    let config = Arc::new(config.with_buffers(WINDOW, WINDOW).expect("within the limit"));
    for (from, to) in (0_usize..).zip(partners()) {
        let ends = [hosts[from], hosts[to as usize]];
        network.add_flow(ends, [&config, &config], MTU, Application::Endless, SimTime::ZERO);
    }
    network
}

fn main() {
    let arguments = Arguments::of_process();
    let name = "net/fat-tree 1024 hosts, tcp";
    if !arguments.wanted(name) {
        return;
    }
    let turns = arguments.turns(9, 3);
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    let mut network = tree();
    // Past the slow start, and until what grows has its size.
    network.run_until(network.now() + Span::from_us(1_000));
    let mut measured = Turns::default();
    for _ in 0..turns {
        let (hops, until) = (network.hops(), network.now() + Span::from_us(TURN_US));
        let start = Instant::now();
        network.run_until(until);
        let ns = start.elapsed().as_secs_f64() * 1e9 / (network.hops() - hops) as f64;
        measured.push(ns, bare_tree(50, TURN_US));
    }
    let memory = (ALLOCATOR.peak_usage() - before) as f64 / 1e6;
    let (ns, bare, ratio) = measured.medians();
    println!(
        r#"{{"bench":"{name}","unit":"ns per packet-hop","ns":{ns:.1},"reference":"bare loop","reference_ns":{bare:.1},"ratio":{ratio:.2},"target_ratio":4.4,"turns":{turns}}}"#
    );
    println!(r#"{{"bench":"{name}, memory","unit":"MB","value":{memory:.0},"target_value":100}}"#);
}

/// Simulated time of a turn: some 700 000 hops.
const TURN_US: u64 = 100;
