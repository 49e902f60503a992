//! Names the library for the linker, and the version that its symbols have.

fn main() {
    println!("cargo::rerun-if-changed=vipl.map");
    let map = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("vipl.map");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libvipl.so.1");
    println!("cargo::rustc-cdylib-link-arg=-Wl,--version-script={}", map.display());
}
