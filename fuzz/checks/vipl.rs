//! Arbitrary octets as calls of VIPL by a program that knows no better: handles that are none, memory that is not
//! registered, descriptors of any content.
//!
//! Every call answers with a code of the specification, what was made can be given back, and nothing is written
//! outside the memory that was registered.

use std::ffi::{CString, c_int, c_void};
use std::ptr::null_mut;
use std::sync::OnceLock;

use super::input::Input;
use ::vipl::abi::{ErrorDescriptor, Handle, MemAttributes, Return, ViAttributes};
use ::vipl::*;

/// Octets of the memory that may be registered, and of what lies before and behind it.
const ARENA: usize = 16 << 10;
const GUARD: usize = 4 << 10;
const UNTOUCHED: u8 = 0xa5;
/// Calls of one input.
const MOST_CALLS: usize = 64;
/// Connections of one input: each costs sockets and memory.
const MOST_CONNECTIONS: usize = 2;

unsafe extern "C" fn on_error(_: *mut c_void, _: *mut ErrorDescriptor) {}

unsafe extern "C" fn on_done(_: *mut c_void, _: Handle, _: Handle, _: *mut c_void) {}

unsafe extern "C" fn on_entry(_: *mut c_void, _: Handle, _: Handle, _: c_int) {}

/// The NIC of this process, its host's address, and the memory.
struct Place {
    nic: usize,
    host: [u8; 6],
    memory: usize,
}

fn place() -> &'static Place {
    static PLACE: OnceLock<Place> = OnceLock::new();
    PLACE.get_or_init(|| {
        let device = CString::new(format!("shm:f{}", std::process::id())).expect("no zero in it");
        let mut nic = null_mut();
        let mut known = std::mem::MaybeUninit::<::vipl::abi::NicAttributes>::uninit();
        let layout = std::alloc::Layout::from_size_align(ARENA + 2 * GUARD, 4096).expect("a layout");
        // SAFETY: a name and places, and memory of a size.
        unsafe {
            assert_eq!(VipOpenNic(device.as_ptr(), &raw mut nic), 0);
            assert_eq!(VipErrorCallback(nic, null_mut(), Some(on_error)), 0);
            assert_eq!(VipQueryNic(nic, known.as_mut_ptr()), 0);
            let address = known.assume_init_ref().local_nic_address;
            let memory = std::alloc::alloc(layout);
            memory.write_bytes(UNTOUCHED, ARENA + 2 * GUARD);
            Place { nic: nic as usize, host: *address.cast(), memory: memory as usize }
        }
    })
}

/// What was made and not given back.
struct Program<'a> {
    place: &'static Place,
    input: Input<'a>,
    tags: Vec<Handle>,
    cqs: Vec<Handle>,
    vis: Vec<Handle>,
    regions: Vec<(*mut c_void, u32)>,
    connections: usize,
}

/// Every code is one of the specification.
fn known(code: Return) -> bool {
    assert!((0..=15).contains(&code), "code {code}");
    code == 0
}

impl Program<'_> {
    fn nic(&self) -> Handle {
        self.place.nic as Handle
    }

    /// One of these, or one that is none.
    fn pick(input: &mut Input<'_>, known: &[Handle]) -> Handle {
        match input.octet() {
            0xff => null_mut(),
            0xfe => (u64::from(input.word()) << 32 | u64::from(input.word())) as Handle,
            octet => known.get(usize::from(octet) % known.len().max(1)).copied().unwrap_or(null_mut()),
        }
    }

    fn tag(&mut self) -> Handle {
        Self::pick(&mut self.input, &self.tags)
    }

    fn vi(&mut self) -> Handle {
        Self::pick(&mut self.input, &self.vis)
    }

    fn cq(&mut self) -> Handle {
        Self::pick(&mut self.input, &self.cqs)
    }

    fn region(&mut self) -> u32 {
        match self.input.octet() {
            0xff => u32::from(self.input.word()),
            octet => {
                let at = usize::from(octet) % self.regions.len().max(1);
                self.regions.get(at).map_or(0, |region| region.1)
            }
        }
    }

    /// An address in the memory that may be registered, or, seldom, where there is none.
    fn address(&mut self) -> *mut c_void {
        let at = usize::from(self.input.word());
        if at == 0xffff { at as *mut c_void } else { (self.place.memory + GUARD + at % ARENA) as *mut c_void }
    }

    fn vi_attributes(&mut self) -> ViAttributes {
        let flags = self.input.octet();
        ViAttributes {
            reliability_level: u16::from(flags & 7),
            max_transfer_size: u64::from(self.input.word()),
            qos: if flags & 0x80 == 0 { null_mut() } else { self.nic() },
            ptag: self.tag(),
            enable_rdma_write: (flags & 8).into(),
            enable_rdma_read: (flags & 16).into(),
        }
    }

    fn memory_attributes(&mut self) -> MemAttributes {
        let flags = self.input.octet();
        let (enable_rdma_write, enable_rdma_read) = ((flags & 1).into(), (flags & 2).into());
        MemAttributes { ptag: self.tag(), enable_rdma_write, enable_rdma_read }
    }

    /// An address of the network with this discriminator, as eight-octet words.
    fn net_address(&self, discriminator: u8) -> [u64; 2] {
        let mut octets = [0; 16];
        octets[0] = 6;
        octets[2] = 1;
        octets[4..10].copy_from_slice(&self.place.host);
        octets[10] = discriminator;
        let (words, _) = octets.as_chunks::<8>();
        [u64::from_ne_bytes(words[0]), u64::from_ne_bytes(words[1])]
    }

    /// Two VIs ask for each other, and wait for what comes of it.
    fn connect(&mut self) {
        let (one, other) = (self.vi(), self.vi());
        if self.connections == MOST_CONNECTIONS {
            return;
        }
        self.connections += 1;
        let [here, there] = [1, 2].map(|discriminator| self.net_address(discriminator));
        // SAFETY: addresses; nobody wants to know the attributes.
        unsafe {
            let (here, there) = (here.as_ptr().cast(), there.as_ptr().cast());
            let asked = [
                known(VipConnectPeerRequest(one, here, there, 100)),
                known(VipConnectPeerRequest(other, there, here, 100)),
            ];
            let both = asked == [true; 2];
            for (vi, asked) in [one, other].into_iter().zip(asked) {
                match asked {
                    true if both => known(VipConnectPeerWait(vi, null_mut())),
                    // Nobody will ask for it.
                    true => known(VipDisconnect(vi)),
                    false => false,
                };
            }
        }
    }

    /// A descriptor of this content somewhere, posted.
    fn post(&mut self) {
        let (vi, at, region) = (self.vi(), self.address(), self.region());
        let (octet, control, segments) = (self.input.octet(), self.input.octet(), self.input.octet());
        let at = (at as usize & !usize::from(if octet & 1 == 0 { 63_u8 } else { 0 })) as *mut c_void;
        let inside =
            (self.place.memory + GUARD..self.place.memory + GUARD + ARENA - 128).contains(&(at as usize));
        if inside {
            let mut words = [0_u32; 24];
            words[3] = u32::from(control) << 16 | u32::from(segments % 5);
            words[5] = u32::from(self.input.octet());
            for segment in 0..usize::from(segments % 5).min(4) {
                let (address, length) = (self.address() as u64, u32::from(self.input.word()));
                let word = 8 + 4 * segment;
                (words[word], words[word + 1]) = (address as u32, (address >> 32) as u32);
                (words[word + 2], words[word + 3]) = (self.region(), length);
                words[6] = words[6].wrapping_add(length);
            }
            if octet & 2 != 0 {
                words[6] = u32::from(self.input.word());
            }
            // SAFETY: inside the memory, and nothing is transferred but by calls of this thread or into what they
            // have posted, which may be this memory: what a program writes there is its own affair.
            unsafe { at.cast::<[u32; 24]>().write_unaligned(words) };
        }
        known(if octet & 4 == 0 { VipPostSend(vi, at, region) } else { VipPostRecv(vi, at, region) });
    }

    /// Makes the call that the next octet names.
    fn call(&mut self) {
        let (mut made, mut descriptor, mut number) = (null_mut(), null_mut(), 0);
        // SAFETY: places for all that a call fills in, attributes where it reads some.
        unsafe {
            match self.input.octet() % 20 {
                0 => {
                    if known(VipCreatePtag(self.nic(), &raw mut made)) {
                        self.tags.push(made);
                    }
                }
                1 => {
                    let tag = self.tag();
                    if known(VipDestroyPtag(self.nic(), tag)) {
                        self.tags.retain(|one| *one != tag);
                    }
                }
                2 => {
                    let (address, attributes) = (self.address(), self.memory_attributes());
                    let room = (self.place.memory + GUARD + ARENA).saturating_sub(address as usize);
                    let length = usize::from(self.input.word()).min(room) as u64;
                    let (nic, mut memory) = (self.nic(), 0);
                    if known(VipRegisterMem(nic, address, length, &raw const attributes, &raw mut memory)) {
                        self.regions.push((address, memory));
                    }
                }
                3 => {
                    let region = self.region();
                    let address =
                        self.regions.iter().find(|one| one.1 == region).map_or(null_mut(), |one| one.0);
                    if known(VipDeregisterMem(self.nic(), address, region)) {
                        self.regions.retain(|one| one.1 != region);
                    }
                }
                4 | 5 => {
                    let attributes = self.vi_attributes();
                    let cqs =
                        if self.input.octet() & 1 == 0 { [null_mut(); 2] } else { [self.cq(), self.cq()] };
                    if known(VipCreateVi(self.nic(), &raw const attributes, cqs[0], cqs[1], &raw mut made)) {
                        self.vis.push(made);
                    }
                }
                6 => {
                    let vi = self.vi();
                    if known(VipDestroyVi(vi)) {
                        self.vis.retain(|one| *one != vi);
                    }
                }
                7 => {
                    if known(VipCreateCQ(self.nic(), self.input.word().into(), &raw mut made)) {
                        self.cqs.push(made);
                    }
                }
                8 => {
                    known(VipResizeCQ(self.cq(), self.input.word().into()));
                }
                9 => {
                    let cq = self.cq();
                    if known(VipDestroyCQ(cq)) {
                        self.cqs.retain(|one| *one != cq);
                    }
                }
                10 => self.connect(),
                11..=13 => self.post(),
                14 => {
                    known(VipSendDone(self.vi(), &raw mut descriptor));
                    known(VipRecvDone(self.vi(), &raw mut descriptor));
                }
                15 => {
                    known(VipCQDone(self.cq(), &raw mut made, &raw mut number));
                    known(VipRecvWait(self.vi(), 0, &raw mut descriptor));
                }
                16 => {
                    known(VipDisconnect(self.vi()));
                }
                17 => {
                    let attributes = self.vi_attributes();
                    known(VipSetViAttributes(self.vi(), &raw const attributes));
                    let (address, region) = (self.address(), self.region());
                    let mut attributes = self.memory_attributes();
                    known(VipSetMemAttributes(self.nic(), address, region, &raw const attributes));
                    known(VipQueryMem(self.nic(), address, region, &raw mut attributes));
                }
                18 => {
                    known(VipRecvNotify(self.vi(), null_mut(), Some(on_done)));
                    known(VipSendNotify(self.vi(), null_mut(), Some(on_done)));
                    known(VipCQNotify(self.cq(), null_mut(), Some(on_entry)));
                }
                _ => {
                    known(VipQueryVi(self.vi(), &raw mut number, null_mut(), null_mut(), null_mut()));
                    known(VipConnectPeerDone(self.vi(), null_mut()));
                    known(VipCreatePtag(self.vi(), null_mut()));
                }
            }
        }
    }

    /// Everything is given back.
    fn end(mut self) {
        let mut descriptor = null_mut();
        for vi in std::mem::take(&mut self.vis) {
            assert!(known(VipDisconnect(vi)));
            for done in [VipSendDone, VipRecvDone] {
                // SAFETY: a place for the descriptor.
                while unsafe { done(vi, &raw mut descriptor) } == 0 || !descriptor.is_null() {}
            }
            assert!(known(VipDestroyVi(vi)), "a VI that is idle and empty");
        }
        assert!(self.cqs.drain(..).all(|cq| known(VipDestroyCQ(cq))), "completion queues of nobody");
        let nic = self.nic();
        let mut regions = self.regions.drain(..);
        assert!(regions.all(|(at, memory)| known(VipDeregisterMem(nic, at, memory))), "registered memory");
        assert!(self.tags.drain(..).all(|tag| known(VipDestroyPtag(nic, tag))), "tags of nobody");
        for at in [0, GUARD + ARENA] {
            // SAFETY: memory that was never registered.
            let guard = unsafe { std::slice::from_raw_parts((self.place.memory + at) as *const u8, GUARD) };
            assert!(guard.iter().all(|octet| *octet == UNTOUCHED), "memory that was not registered");
        }
    }
}

/// The check.
///
/// # Panics
/// If something does not hold.
pub fn check(octets: &[u8]) {
    let (tags, cqs, vis, regions) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let input = Input(octets);
    let mut program = Program { place: place(), input, tags, cqs, vis, regions, connections: 0 };
    for _ in 0..MOST_CALLS {
        if program.input.is_empty() {
            break;
        }
        program.call();
    }
    program.end();
}
