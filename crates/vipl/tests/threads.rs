//! Calls from several threads at once: on one NIC, and on one VI.

mod ends;

use std::collections::BTreeMap;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering};

use ends::{End, LARGE, Nic, RECEIVE};
use vipl::abi::{MemAttributes, ViAttributes};
use vipl::*;

const THREADS: u8 = 4;
const EACH: u32 = 200;

/// Writes what a message sends.
fn put(end: &End, at: usize, octets: &[u8]) {
    assert!(at + octets.len() <= LARGE);
    // SAFETY: within the memory, of which this thread has the part.
    unsafe { end.data().add(at).copy_from_nonoverlapping(octets.as_ptr(), octets.len()) };
}

/// Makes objects of a NIC and gives them back, again and again.
fn make_and_give_back(nic: &Nic, over: &AtomicBool) {
    let mut memory = vec![0_u8; 1 << 14];
    while !over.load(Ordering::Relaxed) {
        let (mut tag, mut cq, mut vi, mut handle) = (null_mut(), null_mut(), null_mut(), 0);
        // SAFETY: attributes, places and memory are there.
        let codes = unsafe {
            let made = VipCreatePtag(nic.handle(), &raw mut tag);
            let access = MemAttributes { ptag: tag, enable_rdma_write: 0, enable_rdma_read: 0 };
            let at = memory.as_mut_ptr().cast();
            let registered = VipRegisterMem(nic.handle(), at, 1 << 14, &raw const access, &raw mut handle);
            let attributes = ViAttributes {
                reliability_level: 1,
                max_transfer_size: 1,
                qos: null_mut(),
                ptag: tag,
                enable_rdma_write: 0,
                enable_rdma_read: 0,
            };
            [
                made,
                registered,
                VipCreateCQ(nic.handle(), 4, &raw mut cq),
                VipCreateVi(nic.handle(), &raw const attributes, cq, null_mut(), &raw mut vi),
                VipDestroyVi(vi),
                VipDestroyCQ(cq),
                VipDeregisterMem(nic.handle(), at, handle),
                VipDestroyPtag(nic.handle(), tag),
            ]
        };
        assert_eq!(codes, [0; 8]);
    }
}

#[test]
fn each_thread_has_a_vi_of_one_nic() {
    let network = format!("t{}", std::process::id());
    let nics = [Nic::open(&network), Nic::open(&network)];
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let maker = scope.spawn(|| make_and_give_back(&nics[0], &over));
        let ends: Vec<_> = (0..THREADS)
            .flat_map(|thread| [(thread, 0), (thread, 1)])
            .map(|(thread, side)| {
                let nic = nics[usize::from(side)];
                scope.spawn(move || {
                    let mut end = End::connect(&nic, 2 * thread + side, 2 * thread + 1 - side, 4);
                    for round in 0..EACH {
                        let mut message = [thread; 5];
                        message[1..].copy_from_slice(&round.to_le_bytes());
                        if side == 0 {
                            put(&end, 0, &message);
                            end.send(0, 5);
                        }
                        let came = end.wait();
                        end.post_receive();
                        assert_eq!(came[..5], message, "thread {thread}");
                        if side == 1 {
                            put(&end, 0, &message);
                            end.send(0, 5);
                        }
                        end.look(VipSendDone);
                    }
                    // Whoever leaves first flushes nothing that the other still waits for.
                    end
                })
            })
            .collect();
        let ended: Vec<bool> = ends.into_iter().map(|end| end.join().is_ok()).collect();
        over.store(true, Ordering::Relaxed);
        assert!(ended.into_iter().all(|well| well) && maker.join().is_ok());
    });
    nics.iter().for_each(Nic::close);
}

#[test]
fn several_threads_send_on_one_vi() {
    let network = format!("o{}", std::process::id());
    let nics = [Nic::open(&network), Nic::open(&network)];
    // As many receives as messages: nobody counts them but the program.
    let slots = usize::from(THREADS) * EACH as usize + 1;
    std::thread::scope(|scope| {
        let receiver = scope.spawn(|| {
            let mut end = End::connect(&nics[1], 1, 0, slots);
            let mut last = BTreeMap::new();
            for _ in 0..usize::from(THREADS) * EACH as usize {
                let came: [u8; RECEIVE] = end.wait();
                let round = u32::from_le_bytes(*came[1..].first_chunk().expect("four octets"));
                let before = last.insert(came[0], round);
                assert_eq!(before.map_or(0, |before| before + 1), round, "thread {} in its order", came[0]);
            }
            assert_eq!(last.len(), usize::from(THREADS));
            end
        });
        let end = End::connect(&nics[0], 0, 1, slots);
        let vi = Sending(&end);
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let vi = &vi;
                scope.spawn(move || vi.all_of(thread));
            }
        });
        receiver.join().expect("all messages came");
    });
    nics.iter().for_each(Nic::close);
}

/// An end on which several threads send, each with descriptors and data of its own.
struct Sending<'a>(&'a End);

// SAFETY: each thread has a descriptor and a place of its own, and the calls may be made from any.
unsafe impl Sync for Sending<'_> {}

impl Sending<'_> {
    fn all_of(&self, thread: u8) {
        let slot = usize::from(thread);
        for round in 0..EACH {
            let mut message = [thread; 5];
            message[1..].copy_from_slice(&round.to_le_bytes());
            put(self.0, 64 * slot, &message);
            self.0.send_from(slot, 0, 64 * slot, 5);
            // What is taken off the queue may be another thread's.
            self.0.look(VipSendDone);
            // SAFETY: the status of a descriptor within the memory.
            while unsafe { self.0.base.add(64 * slot + 28).cast::<u32>().read_volatile() } == 0 {
                std::thread::yield_now();
            }
        }
    }
}
