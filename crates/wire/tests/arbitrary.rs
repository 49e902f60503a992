//! The checks of the fuzz targets, over their corpora and over arbitrary octets.

#[path = "../../../fuzz/checks/aal5.rs"]
mod aal5;
#[path = "../../../fuzz/checks/cell.rs"]
mod cell;
#[path = "../../../fuzz/checks/mutated.rs"]
mod mutated;

#[test]
fn cell_holds_for_any_input() {
    mutated::check_corpus("cell", cell::check);
}

#[test]
fn aal5_holds_for_any_input() {
    mutated::check_corpus("aal5", aal5::check);
}
