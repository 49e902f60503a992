//! The checks of the fuzz targets, over their corpora and over arbitrary octets.

#[path = "../../../fuzz/checks/mutated.rs"]
mod mutated;
#[path = "../../../fuzz/checks/tcp_machine.rs"]
mod tcp_machine;

#[test]
fn tcp_machine_holds_for_any_input() {
    mutated::check_corpus("tcp_machine", tcp_machine::check);
}
