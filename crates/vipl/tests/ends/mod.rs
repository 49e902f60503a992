//! Ends of connections as programs in C have them, with nothing between them and the calls.

#[path = "../shared/mod.rs"]
mod shared;

use std::ffi::{CString, c_void};
use std::ptr::null_mut;

use vipl::abi::{Handle, MemAttributes, ViAttributes};
use vipl::*;

pub use shared::Shared;

/// Octets of a descriptor.
const DESCRIPTOR: usize = 64;
/// Octets of a receive.
pub const RECEIVE: usize = 32;
/// The longest send, and what remote ends may write.
pub const LARGE: usize = 1 << 20;
/// How long a call waits, in milliseconds.
const PATIENCE: u64 = 20_000;

/// A call that takes the head off a queue if it is done.
type Look = unsafe extern "C" fn(Handle, *mut *mut c_void) -> i32;

fn ok(code: i32) {
    assert_eq!(code, 0, "a call of VIPL");
}

/// A NIC, and a protection tag. Handles are numbers, so that any thread may have them.
#[derive(Clone, Copy)]
pub struct Nic {
    handle: usize,
    tag: usize,
    host: [u8; 6],
}

impl Nic {
    pub fn open(network: &str) -> Self {
        let device = CString::new(format!("shm:{network}")).expect("no zero in it");
        let (mut nic, mut tag) = (null_mut(), null_mut());
        let mut known = std::mem::MaybeUninit::<vipl::abi::NicAttributes>::uninit();
        // SAFETY: a name and places; the address that the attributes point to has six octets.
        unsafe {
            ok(VipOpenNic(device.as_ptr(), &raw mut nic));
            ok(VipCreatePtag(nic, &raw mut tag));
            ok(VipQueryNic(nic, known.as_mut_ptr()));
            let host = *known.assume_init_ref().local_nic_address.cast();
            Self { handle: nic as usize, tag: tag as usize, host }
        }
    }

    pub fn handle(&self) -> Handle {
        self.handle as Handle
    }

    pub fn tag(&self) -> Handle {
        self.tag as Handle
    }

    pub fn close(&self) {
        ok(VipCloseNic(self.handle()));
    }

    fn address(&self, discriminator: u8) -> [u16; 6] {
        let mut octets = [6, 0, 1, 0, 0, 0, 0, 0, 0, 0, discriminator, 0];
        octets[4..10].copy_from_slice(&self.host);
        let (pairs, _) = octets.as_chunks::<2>();
        std::array::from_fn(|pair| u16::from_ne_bytes(pairs[pair]))
    }
}

/// A VI that is connected, with as many descriptors of each kind as asked for.
pub struct End {
    vi: usize,
    memory: u32,
    /// Descriptors of sends, of receives, what receives take, what is sent.
    pub base: *mut u8,
    _shared: Shared,
    slots: usize,
    remote: (u64, u32),
    posted: usize,
    sending: usize,
}

impl End {
    /// Connects to the end that names the same two discriminators the other way round; all receives are posted.
    pub fn connect(nic: &Nic, ours: u8, theirs: u8, slots: usize) -> Self {
        let bytes = slots * (2 * DESCRIPTOR + RECEIVE) + LARGE;
        let shared = Shared::new(bytes);
        // SAFETY: the calls are given what they need.
        unsafe {
            let base = shared.base();
            let (mut vi, mut memory) = (null_mut(), 0);
            let access = MemAttributes { ptag: nic.tag(), enable_rdma_write: 1, enable_rdma_read: 0 };
            ok(VipRegisterMem(nic.handle(), base.cast(), bytes as u64, &raw const access, &raw mut memory));
            let attributes = ViAttributes {
                reliability_level: 2,
                max_transfer_size: LARGE as u64,
                qos: null_mut(),
                ptag: nic.tag(),
                enable_rdma_write: 1,
                enable_rdma_read: 0,
            };
            ok(VipCreateVi(nic.handle(), &raw const attributes, null_mut(), null_mut(), &raw mut vi));
            let mut end = Self {
                vi: vi as usize,
                memory,
                base,
                _shared: shared,
                slots,
                remote: (0, 0),
                posted: 0,
                sending: 0,
            };
            for _ in 0..slots {
                end.post_receive();
            }
            let (ours, theirs) = (nic.address(ours), nic.address(theirs));
            ok(VipConnectPeerRequest(vi, ours.as_ptr().cast(), theirs.as_ptr().cast(), PATIENCE));
            ok(VipConnectPeerWait(vi, null_mut()));
            // Each tells the other where its data are.
            let data = end.data();
            data.cast::<u64>().write(data as u64);
            data.cast::<u64>().add(1).write(memory.into());
            end.send(0, 16);
            let told = end.wait();
            let word = |at: usize| u64::from_ne_bytes(*told[at..].first_chunk().expect("two words"));
            end.remote = (word(0), word(8) as u32);
            // The descriptor is the provider's until it is taken off its queue.
            end.look(VipSendDone);
            end.post_receive();
            end
        }
    }

    /// What a message sends begins here.
    pub fn data(&self) -> *mut u8 {
        // SAFETY: within the memory.
        unsafe { self.base.add(self.slots * (2 * DESCRIPTOR + RECEIVE)) }
    }

    /// The slot behind this one. Not by a division, which a message would wait for.
    const fn after(&self, slot: usize) -> usize {
        if slot + 1 == self.slots { 0 } else { slot + 1 }
    }

    /// Fills in a descriptor: where, what for, where its data are, how many.
    #[inline]
    fn fill(&self, slot: usize, control: u16, data: *mut u8, length: u32) -> *mut c_void {
        // SAFETY: a descriptor within the memory, which the NIC has given back.
        unsafe {
            let words = self.base.add(slot * DESCRIPTOR).cast::<u32>();
            let rdma = control != 0;
            words.add(3).write(u32::from(control) << 16 | if rdma { 2 } else { 1 });
            words.add(6).write(length);
            words.add(7).write_volatile(0);
            let mut segment = words.add(8);
            if rdma {
                segment.cast::<u64>().write(self.remote.0);
                segment.add(2).write(self.remote.1);
                segment = segment.add(4);
            }
            segment.cast::<u64>().write(data as u64);
            segment.add(2).write(self.memory);
            segment.add(3).write(length);
            words.cast()
        }
    }

    #[inline]
    pub fn post_receive(&mut self) {
        self.posted = self.after(self.posted);
        // SAFETY: within the memory.
        let data = unsafe { self.base.add(self.slots * 2 * DESCRIPTOR + self.posted * RECEIVE) };
        let descriptor = self.fill(self.slots + self.posted, 0, data, RECEIVE as u32);
        ok(VipPostRecv(self.vi as Handle, descriptor, self.memory));
    }

    /// Sends so many octets as a message (0), or writes them (1).
    #[inline]
    pub fn send(&mut self, control: u16, length: u32) {
        self.sending = self.after(self.sending);
        self.send_from(self.sending, control, 0, length);
    }

    /// The same from this place, by the descriptor of this number.
    #[inline]
    pub fn send_from(&self, slot: usize, control: u16, at: usize, length: u32) {
        // SAFETY: within the memory.
        let descriptor = self.fill(slot, control, unsafe { self.data().add(at) }, length);
        ok(VipPostSend(self.vi as Handle, descriptor, self.memory));
    }

    /// Looks at the send queue (`VipSendDone`) or the receive queue (`VipRecvDone`) until its head is done.
    #[inline]
    pub fn look(&self, queue: Look) {
        let mut descriptor = null_mut();
        loop {
            // SAFETY: a place for it.
            match unsafe { queue(self.vi as Handle, &raw mut descriptor) } {
                0 => return,
                code => assert_eq!(code, 1, "a descriptor"),
            }
            std::hint::spin_loop();
        }
    }

    /// Waits for a message: what has come, and what lies behind it in its receive.
    pub fn wait(&mut self) -> [u8; RECEIVE] {
        let mut descriptor = null_mut();
        // SAFETY: a place for it; the data of a receive are where its segment says.
        unsafe {
            ok(VipRecvWait(self.vi as Handle, PATIENCE, &raw mut descriptor));
            **descriptor.cast::<u8>().add(32).cast::<*const [u8; RECEIVE]>()
        }
    }
}

// SAFETY: the memory is this end's alone, and the calls may be made from any thread.
unsafe impl Send for End {}

impl Drop for End {
    fn drop(&mut self) {
        VipDisconnect(self.vi as Handle);
    }
}
