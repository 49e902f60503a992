//! The checks of the fuzz targets, over their corpora and over arbitrary octets.

#[path = "../../../fuzz/checks/goal.rs"]
mod goal;
#[path = "../../../fuzz/checks/mutated.rs"]
mod mutated;
#[path = "../../../fuzz/checks/pcap.rs"]
mod pcap;
#[path = "../../../fuzz/checks/pcapng.rs"]
mod pcapng;

#[test]
fn schedules_and_recordings_hold_for_any_input() {
    mutated::check_corpus("goal", goal::check);
}

#[test]
fn pcap_holds_for_any_input() {
    mutated::check_corpus("pcap", pcap::check);
}

#[test]
fn pcapng_holds_for_any_input() {
    mutated::check_corpus("pcapng", pcapng::check);
}
