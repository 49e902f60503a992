//! The checks of the fuzz targets, over their corpora and over arbitrary bytes.

#[path = "../../../fuzz/checks/mutated.rs"]
mod mutated;
#[path = "../../../fuzz/checks/network.rs"]
mod network;

#[test]
fn a_network_holds_for_any_input() {
    mutated::check_corpus("network", network::check);
}
