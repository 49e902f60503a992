//! The checks of the fuzz targets, over their corpora and over arbitrary octets.

#[path = "../../../fuzz/checks/aal5.rs"]
mod aal5;
#[path = "../../../fuzz/checks/cell.rs"]
mod cell;
#[path = "../../../fuzz/checks/ipv4.rs"]
mod ipv4;
#[path = "../../../fuzz/checks/mutated.rs"]
mod mutated;
#[path = "../../../fuzz/checks/tcp.rs"]
mod tcp;
#[path = "../../../fuzz/checks/udp.rs"]
mod udp;

#[test]
fn aal5_holds_for_any_input() {
    mutated::check_corpus("aal5", aal5::check);
}

#[test]
fn cell_holds_for_any_input() {
    mutated::check_corpus("cell", cell::check);
}

#[test]
fn ipv4_holds_for_any_input() {
    mutated::check_corpus("ipv4", ipv4::check);
}

#[test]
fn tcp_holds_for_any_input() {
    mutated::check_corpus("tcp", tcp::check);
}

#[test]
fn udp_holds_for_any_input() {
    mutated::check_corpus("udp", udp::check);
}
