//! The checks of the fuzz targets, over their corpora and over arbitrary octets.

#[path = "../../../fuzz/checks/aal34_cpcs.rs"]
mod aal34_cpcs;
#[path = "../../../fuzz/checks/aal34_sar.rs"]
mod aal34_sar;
#[path = "../../../fuzz/checks/aal5.rs"]
mod aal5;
#[path = "../../../fuzz/checks/arp.rs"]
mod arp;
#[path = "../../../fuzz/checks/atmarp.rs"]
mod atmarp;
#[path = "../../../fuzz/checks/cell.rs"]
mod cell;
#[path = "../../../fuzz/checks/direct.rs"]
mod direct;
#[path = "../../../fuzz/checks/ethernet.rs"]
mod ethernet;
#[path = "../../../fuzz/checks/fddi.rs"]
mod fddi;
#[path = "../../../fuzz/checks/icmp.rs"]
mod icmp;
#[path = "../../../fuzz/checks/ipv4.rs"]
mod ipv4;
#[path = "../../../fuzz/checks/llc.rs"]
mod llc;
#[path = "../../../fuzz/checks/mutated.rs"]
mod mutated;
#[path = "../../../fuzz/checks/oam.rs"]
mod oam;
#[path = "../../../fuzz/checks/pause.rs"]
mod pause;
#[path = "../../../fuzz/checks/pcaal.rs"]
mod pcaal;
#[path = "../../../fuzz/checks/pvm.rs"]
mod pvm;
#[path = "../../../fuzz/checks/rm.rs"]
mod rm;
#[path = "../../../fuzz/checks/rpc.rs"]
mod rpc;
#[path = "../../../fuzz/checks/spans.rs"]
mod spans;
#[path = "../../../fuzz/checks/sscop.rs"]
mod sscop;
#[path = "../../../fuzz/checks/tcp.rs"]
mod tcp;
#[path = "../../../fuzz/checks/udp.rs"]
mod udp;

#[test]
fn aal34_cpcs_holds_for_any_input() {
    mutated::check_corpus("aal34_cpcs", aal34_cpcs::check);
}

#[test]
fn aal34_sar_holds_for_any_input() {
    mutated::check_corpus("aal34_sar", aal34_sar::check);
}

#[test]
fn aal5_holds_for_any_input() {
    mutated::check_corpus("aal5", aal5::check);
}

#[test]
fn arp_holds_for_any_input() {
    mutated::check_corpus("arp", arp::check);
}

#[test]
fn atmarp_holds_for_any_input() {
    mutated::check_corpus("atmarp", atmarp::check);
}

#[test]
fn cell_holds_for_any_input() {
    mutated::check_corpus("cell", cell::check);
}

#[test]
fn direct_holds_for_any_input() {
    mutated::check_corpus("direct", direct::check);
}

#[test]
fn ethernet_holds_for_any_input() {
    mutated::check_corpus("ethernet", ethernet::check);
}

#[test]
fn fddi_holds_for_any_input() {
    mutated::check_corpus("fddi", fddi::check);
}

#[test]
fn icmp_holds_for_any_input() {
    mutated::check_corpus("icmp", icmp::check);
}

#[test]
fn ipv4_holds_for_any_input() {
    mutated::check_corpus("ipv4", ipv4::check);
}

#[test]
fn llc_holds_for_any_input() {
    mutated::check_corpus("llc", llc::check);
}

#[test]
fn oam_holds_for_any_input() {
    mutated::check_corpus("oam", oam::check);
}

#[test]
fn pause_holds_for_any_input() {
    mutated::check_corpus("pause", pause::check);
}

#[test]
fn pvm_holds_for_any_input() {
    mutated::check_corpus("pvm", pvm::check);
}

#[test]
fn rm_holds_for_any_input() {
    mutated::check_corpus("rm", rm::check);
}

#[test]
fn rpc_holds_for_any_input() {
    mutated::check_corpus("rpc", rpc::check);
}

#[test]
fn spans_holds_for_any_input() {
    mutated::check_corpus("spans", spans::check);
}

#[test]
fn sscop_holds_for_any_input() {
    mutated::check_corpus("sscop", sscop::check);
}

#[test]
fn tcp_holds_for_any_input() {
    mutated::check_corpus("tcp", tcp::check);
}

#[test]
fn udp_holds_for_any_input() {
    mutated::check_corpus("udp", udp::check);
}

#[test]
fn pcaal_holds_for_any_input() {
    mutated::check_corpus("pcaal", pcaal::check);
}
