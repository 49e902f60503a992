//! A message there and back over the adaptation layer's cells, beside the same over plain UDP.
//!
//! Two threads of one process over loopback; each of a turn's messages goes by one layer and then by the other,
//! so that what the machine does meets both. Both wait asleep in the kernel, as by default. JSON lines as those of
//! the other benches: medians over the turns of half a round trip.
//!
//! Arguments: words that the name of a workload must have; `--quick` for fewer turns.
#![allow(clippy::disallowed_types)] // a bench reads the clock

use std::path::Path;
use std::time::{Duration, Instant};

use wiretwin_benches::{Arguments, Turns};
use wiretwin_host::{
    LARGEST_DATAGRAM, LossLimit, Meeting, PcaalOptions, SocketOptions, Stream, UdpStream, pcaal,
};

const LIMIT: Duration = Duration::from_secs(60);
const LOSS_LIMIT: LossLimit = LossLimit::exactly(Duration::from_secs(5));
const SIZES: [usize; 5] = [4, 1 << 10, 4 << 10, 16 << 10, LARGEST_DATAGRAM];
/// The most that half a round trip may take, in those of UDP.
const TARGET: f64 = 5.0;

/// The two streams of a rank, which meet in directories of their own.
fn streams(directory: &Path, rank: u32) -> [Box<dyn Stream>; 2] {
    let meeting = |name: &'static str| {
        let directory = directory.join(name);
        std::fs::create_dir_all(&directory).expect("a directory to meet in");
        directory
    };
    let (cells, datagrams) = (meeting("cells"), meeting("datagrams"));
    let at = |directory| Meeting { directory, rank, size: 2, limit: LIMIT };
    let cells = pcaal(&at(&cells), &PcaalOptions::default(), LIMIT).expect("a stream of cells");
    let cells = cells.into_iter().flatten().next().expect("one peer");
    let datagrams = UdpStream::meet(&at(&datagrams), &SocketOptions::default(), LIMIT, LOSS_LIMIT);
    [Box::new(cells), Box::new(datagrams.expect("a stream of datagrams"))]
}

/// Half a round trip, in ns.
fn ask(stream: &mut dyn Stream, message: &mut [u8]) -> f64 {
    let start = Instant::now();
    stream.send_all(message).expect("a message sent");
    stream.recv_exact(message).expect("a message received");
    let half = start.elapsed().as_secs_f64() * 1e9 / 2.0;
    stream.send_control(&[0]).expect("word that it has come");
    half
}

fn answer(stream: &mut dyn Stream, message: &mut [u8]) {
    stream.recv_exact(message).expect("a message received");
    stream.send_all(message).expect("a message sent");
    // An end sees to what is under way only while it is called.
    stream.recv_control(&mut [0]).expect("word that it has come");
}

fn main() {
    let arguments = Arguments::of_process();
    let name = |size: usize| format!("host/cells over UDP, {size} B there or back");
    let sizes: Vec<usize> = SIZES.into_iter().filter(|&size| arguments.wanted(&name(size))).collect();
    let turns = arguments.turns(1001, 101);
    let warm_up = turns / 10;
    let directory = std::env::temp_dir().join(format!("wiretwin-bench-pcaal-{}", std::process::id()));
    std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            let mut streams = streams(&directory, 1);
            let mut message = vec![0; LARGEST_DATAGRAM];
            for size in &sizes {
                for _ in 0..warm_up + turns {
                    streams.iter_mut().for_each(|stream| answer(&mut **stream, &mut message[..*size]));
                }
            }
        });
        let mut streams = streams(&directory, 0);
        let mut message = vec![7; LARGEST_DATAGRAM];
        for &size in &sizes {
            let mut measured = Turns::default();
            for turn in 0..warm_up + turns {
                let [cells, datagrams] =
                    streams.each_mut().map(|stream| ask(&mut **stream, &mut message[..size]));
                if turn >= warm_up {
                    measured.push(cells, datagrams);
                }
            }
            let (ns, bare, ratio) = measured.medians();
            println!(
                "{{\"bench\": \"{}\", \"unit\": \"ns\", \"ns\": {ns:.0}, \"reference\": \"UDP\", \
                 \"reference_ns\": {bare:.0}, \"ratio\": {ratio:.2}, \"target_ratio\": {TARGET}}}",
                name(size),
            );
        }
        // Its end of the streams goes when all that is under way has come.
        drop(streams);
        other.join().expect("the other rank ends");
    });
    std::fs::remove_dir_all(&directory).expect("the directories to meet in go");
}
