//! Links the provider to `libfabric.so.1` without a libfabric to build against.
//!
//! The provider must name that library as needed, so that it finds `fi_version` in the one that loads it even
//! where an MPI was opened with its names hidden (`RTLD_LOCAL`). The library is not needed for more than its
//! name: a stand-in with this name and one function is made here with the compiler that links Rust programs.

use std::path::PathBuf;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it"));
    let source = out.join("fabric.c");
    std::fs::write(&source, "unsigned int fi_version(void) { return 0; }\n").expect("cargo's own folder");
    let made = out.join("libwiretwin_fabric_name.so");
    let status = Command::new("cc")
        .args(["-shared", "-fPIC", "-nostdlib", "-Wl,-soname,libfabric.so.1", "-o"])
        .arg(&made)
        .arg(&source)
        .status()
        .expect("the compiler `cc`, which links Rust programs");
    assert!(status.success(), "the compiler `cc` ended with {status}");
    println!("cargo::rustc-link-search=native={}", out.display());
    println!("cargo::rustc-link-lib=dylib=wiretwin_fabric_name");
}
