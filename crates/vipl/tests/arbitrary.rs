//! The check of the fuzz target, over its corpus and over arbitrary octets.

#[path = "../../../fuzz/checks/input.rs"]
mod input;
#[path = "../../../fuzz/checks/mutated.rs"]
mod mutated;
#[path = "../../../fuzz/checks/vipl.rs"]
mod vipl;

#[test]
fn vipl_holds_for_any_input() {
    mutated::check_corpus("vipl", vipl::check);
}
