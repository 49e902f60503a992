#![no_main]

#[path = "../checks/vipl.rs"]
mod check;
#[path = "../checks/input.rs"]
mod input;

libfuzzer_sys::fuzz_target!(|octets: &[u8]| check::check(octets));
