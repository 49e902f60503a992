//! `libvipl.so`: VIPL 1.0 for C programs, over [`wiretwin_host::vipl`].
//!
//! `include/vipl.h` is the interface; each file here has the calls about one kind of object. A handle is two numbers,
//! its NIC's and its own, so that one that is none, or none any more, is rejected and never followed. Pointers that a
//! call must follow are rejected where they are null.

/// Gives calls of the module that it stands in their version in the library (`vipl.map` defines it).
macro_rules! versions {
    ($($call:ident)*) => {
        $(#[cfg(feature = "versions")]
        std::arch::global_asm!(concat!(
            ".symver ", stringify!($call), ", ", stringify!($call), "@@VIPL_1.0"
        ));)*
    };
}

pub mod abi;
mod connect;
mod device;
mod nic;
mod vi;
mod work;

pub use connect::*;
pub use nic::*;
pub use vi::*;
pub use work::*;
