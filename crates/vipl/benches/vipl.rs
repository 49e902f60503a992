//! The calls of VIPL beside what they stand on: a message of 8 bytes beside the bare ring of shared memory, an RDMA
//! write of 1 MiB beside a copy between the same two mappings, which the thread of the receiver makes as it makes that
//! of the write; and a message of MVICH beside one of VIPL.
//!
//! Two threads of one process, each with a NIC, pinned to two cores where there are two; each turn goes by one way and
//! then by the other. JSON lines as those of the other benches: medians over the turns.
//!
//! Arguments: words that the name of a workload must have; `--quick` for fewer turns.

#[path = "../tests/ends/mod.rs"]
mod ends;

use std::path::Path;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ends::{End, LARGE, Nic};
use vipl::{VipRecvDone, VipSendDone};
use wiretwin_benches::{Arguments, Turns};
use wiretwin_host::{Meeting, Mvich, MvichOptions, ShmStream, Stream, Wait, drive, shm};
use wiretwin_prog::{Comm, Rank, Source, Tag, TagMatch};

const LIMIT: Duration = Duration::from_secs(60);
const SMALL: usize = 8;
/// Round trips, and writes, of one turn.
const ECHOES: usize = 200;
const WRITES: usize = 4;
/// Descriptors of each kind.
const SLOTS: usize = 4;

/// An end with a NIC of its own.
fn end(rank: u8) -> (Nic, End) {
    let nic = Nic::open(&format!("b{}", std::process::id()));
    let end = End::connect(&nic, rank, 1 - rank, SLOTS);
    (nic, end)
}

fn ring(directory: &Path, rank: u32) -> ShmStream {
    let meeting = Meeting { directory, rank, size: 2, limit: LIMIT };
    shm(&meeting, Wait::Spin, LIMIT).expect("a ring").into_iter().flatten().next().expect("one peer")
}

fn mvich(directory: &Path, rank: u32) -> Mvich {
    let directory = directory.join("mvich");
    let meeting = Meeting { directory: &directory, rank, size: 2, limit: LIMIT };
    Mvich::meet(&meeting, &MvichOptions::default(), LIMIT).expect("a peer")
}

fn give(mvich: &mut Mvich, message: &[u8]) {
    let to = Rank(1 - mvich.rank().0);
    drive(mvich.send(to, Tag(1), message)).expect("a message");
}

fn take(mvich: &mut Mvich, message: &mut [u8]) {
    let from = Source::Rank(Rank(1 - mvich.rank().0));
    drive(mvich.recv(from, TagMatch::Tag(Tag(1)), message)).expect("a message");
}

fn per(began: Instant, count: usize) -> f64 {
    began.elapsed().as_secs_f64() * 1e9 / count as f64
}

fn main() {
    let arguments = Arguments::of_process();
    let names = ["vipl/8 B there or back", "vipl/1 MiB RDMA write", "mvich/8 B there or back"];
    let [echoes, writes, mpi] = names.map(|name| arguments.wanted(name));
    let echoes = echoes || mpi;
    let turns = arguments.turns(401, 101);
    let warm_up = turns / 10;
    let directory = std::env::temp_dir().join(format!("wiretwin-bench-vipl-{}", std::process::id()));
    std::fs::create_dir_all(directory.join("mvich")).expect("a directory to meet in");
    // Where writes come from, and how long the copies of a turn took, in nanoseconds.
    let (source, copied) = (AtomicPtr::new(std::ptr::null_mut::<u8>()), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            let _ = wiretwin_host::pin(1);
            let (mut ring, (nic, mut end)) = (ring(&directory, 1), end(1));
            let mut mvich = mvich(&directory, 1);
            let (mut message, mut sent) = ([0; SMALL], 0);
            for _ in 0..if echoes { warm_up + turns } else { 0 } {
                for _ in 0..ECHOES {
                    end.look(VipRecvDone);
                    end.send(0, SMALL as u32);
                    // The client's next message says that this one has come.
                    end.post_receive();
                    sent += 1;
                    while sent > 1 {
                        end.look(VipSendDone);
                        sent -= 1;
                    }
                }
                for _ in 0..ECHOES {
                    ring.recv_exact(&mut message).expect("a message");
                    ring.send_all(&message).expect("a message");
                }
                for _ in 0..ECHOES {
                    take(&mut mvich, &mut message);
                    give(&mut mvich, &message);
                }
            }
            for _ in 0..if writes { warm_up + turns } else { 0 } {
                // Writes need nobody here; a message says that they are over, and where they came from.
                end.look(VipRecvDone);
                end.post_receive();
                let from = source.load(Ordering::Acquire);
                let began = Instant::now();
                for _ in 0..WRITES {
                    // SAFETY: two mappings of so many octets; the other end waits for a message.
                    unsafe { std::ptr::copy_nonoverlapping(from, std::hint::black_box(end.data()), LARGE) };
                }
                copied.store(began.elapsed().as_nanos() as u64, Ordering::Release);
                end.send(0, SMALL as u32);
                end.look(VipSendDone);
            }
            end.look(VipRecvDone);
            drop(end);
            nic.close();
        });
        let _ = wiretwin_host::pin(0);
        let (mut ring, (nic, mut end)) = (ring(&directory, 0), end(0));
        let mut mvich = mvich(&directory, 0);
        let mut message = [0; SMALL];
        if echoes {
            let (mut measured, mut above) = (Turns::default(), Turns::default());
            let mut sent = 0;
            for turn in 0..warm_up + turns {
                let began = Instant::now();
                for _ in 0..ECHOES {
                    end.send(0, SMALL as u32);
                    end.post_receive();
                    // As at the other end: the send before is asked for while this one is under way.
                    sent += 1;
                    while sent > 1 {
                        end.look(VipSendDone);
                        sent -= 1;
                    }
                    end.look(VipRecvDone);
                }
                let ours = per(began, 2 * ECHOES);
                let began = Instant::now();
                for _ in 0..ECHOES {
                    ring.send_all(&message).expect("a message");
                    ring.recv_exact(&mut message).expect("a message");
                }
                let bare = per(began, 2 * ECHOES);
                let began = Instant::now();
                for _ in 0..ECHOES {
                    give(&mut mvich, &message);
                    take(&mut mvich, &mut message);
                }
                if turn >= warm_up {
                    measured.push(ours, bare);
                    above.push(per(began, 2 * ECHOES), ours);
                }
            }
            end.look(VipSendDone);
            print(names[0], "the bare ring", &mut measured, 1.3);
            print(names[2], "the calls of VIPL", &mut above, 2.0);
        }
        if writes {
            source.store(end.data(), Ordering::Release);
            let mut measured = Turns::default();
            for turn in 0..warm_up + turns {
                let began = Instant::now();
                for _ in 0..WRITES {
                    end.send(1, LARGE as u32);
                    end.look(VipSendDone);
                }
                let ours = per(began, WRITES);
                end.send(0, SMALL as u32);
                end.look(VipRecvDone);
                end.post_receive();
                end.look(VipSendDone);
                if turn >= warm_up {
                    measured.push(ours, copied.load(Ordering::Acquire) as f64 / WRITES as f64);
                }
            }
            print(names[1], "memcpy", &mut measured, 1.15);
        }
        end.send(0, SMALL as u32);
        end.look(VipSendDone);
        other.join().expect("the other thread ends");
        drop(end);
        nic.close();
    });
    std::fs::remove_dir_all(&directory).expect("the directory to meet in goes");
}

fn print(name: &str, reference: &str, measured: &mut Turns, target: f64) {
    let (ns, bare, ratio) = measured.medians();
    println!(
        "{{\"bench\": \"{name}\", \"unit\": \"ns\", \"ns\": {ns:.0}, \"reference\": \"{reference}\", \
         \"reference_ns\": {bare:.0}, \"ratio\": {ratio:.2}, \"target_ratio\": {target}}}",
    );
}
