#![no_main]

#[path = "../checks/direct_machine.rs"]
mod check;
#[path = "../checks/input.rs"]
mod input;

libfuzzer_sys::fuzz_target!(|octets: &[u8]| check::check(octets));
