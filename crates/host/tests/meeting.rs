//! Ranks meet, whoever else connects to the port of their meeting.

use std::fs;
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use wiretwin_host::{Meeting, SocketOptions, SocketStream, tcp};

const LIMIT: Duration = Duration::from_secs(30);
/// So many that half a second for each would be far beyond the limit, and more than are remembered at once.
const STRANGERS: usize = 200;

fn meet(directory: &Path, rank: u32) -> Vec<Option<SocketStream>> {
    let meeting = Meeting { directory, rank, size: 3, limit: LIMIT };
    tcp(&meeting, &SocketOptions::default(), LIMIT).expect("the ranks meet")
}

/// The address that rank 0 has published.
fn address(directory: &Path) -> SocketAddr {
    let begun = Instant::now();
    loop {
        if let Ok(text) = fs::read_to_string(directory.join("rank-0")) {
            return text.split_whitespace().next().expect("an address").parse().expect("an address");
        }
        assert!(begun.elapsed() < LIMIT, "rank 0 listens");
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn strangers_who_connect_and_are_silent_delay_nobody() {
    let directory = std::env::temp_dir().join(format!("wiretwin-meeting-{}", std::process::id()));
    fs::create_dir(&directory).unwrap();
    thread::scope(|scope| {
        let first = scope.spawn(|| meet(&directory, 0));
        let address = address(&directory);
        let mut strangers = Vec::new();
        for number in 0..STRANGERS {
            let mut stranger = TcpStream::connect(address).expect("a stranger connects");
            if number % 2 == 1 {
                // One that is turned away meanwhile cannot be told more.
                let _ = stranger.write_all(b"hel");
            }
            strangers.push(stranger);
        }
        let second = scope.spawn(|| meet(&directory, 1));
        let third = meet(&directory, 2);
        for (rank, met) in [first.join().unwrap(), second.join().unwrap(), third].iter().enumerate() {
            assert_eq!(
                met.iter().map(Option::is_some).collect::<Vec<_>>(),
                [0, 1, 2].map(|other| other != rank)
            );
        }
        drop(strangers);
    });
    fs::remove_dir_all(&directory).unwrap();
}
