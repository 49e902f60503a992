//! The direct transport as a provider of libfabric: `libwiretwin-fi.so`, which MPI libraries load without
//! being rebuilt; or, where the environment names one, a simulator of messages and time in its place ([`below`]).
//!
//! It offers reliable datagram endpoints (`FI_EP_RDM`) with tagged and untagged messages, remote completion
//! data, receives from one peer and buffers that take several messages; counters exist and count nothing. The interface of libfabric is bound by
//! hand in [`abi`]; each other file has the functions of one kind of object. Objects are made by libfabric's
//! callers and freed by them, so they are raw pointers here; what may be done with them at once is what
//! `FI_THREAD_DOMAIN` allows, or anything, where a caller asks for `FI_THREAD_SAFE`.

mod abi;
mod below;
mod calls;
mod cq;
mod domain;
mod endpoint;
mod inert;
mod info;
mod settings;
mod transfer;

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

use abi::{FiProvider, fi_version};

/// The provider's own version, 1.0.
const VERSION: u32 = 1 << 16;

/// Where libfabric begins: called once when it has opened the library.
#[unsafe(no_mangle)]
pub extern "C" fn fi_prov_ini() -> *mut c_void {
    let provider = Box::new(FiProvider {
        version: VERSION,
        // SAFETY: a function of the library that is loading this one.
        fi_version: unsafe { fi_version() },
        context: [null_mut(); 4],
        name: info::PROVIDER.as_ptr(),
        getinfo: info::getinfo,
        fabric: domain::fabric,
        cleanup,
    });
    // One for the life of the process.
    Box::into_raw(provider).cast()
}

unsafe extern "C" fn cleanup() {}

/// An error as libfabric's functions return it.
const fn error(number: c_int) -> c_int {
    -number
}
