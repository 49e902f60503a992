//! What crossed the wire, as a pcapng file: an interface for each port.
//!
//! A thread of its own writes, so that no disk holds up a frame. Where it falls too far behind, frames
//! are left out of the file and counted.

use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

use wiretwin_host::since_1970;
use wiretwin_net::frame::PortId;
use wiretwin_record::capture::pcapng::{Block, ClockTick, Writer};
use wiretwin_record::capture::{ByteOrder, CaptureError, CaptureFault, LinkType};
use wiretwin_units::{SimTime, Span};

/// Frames that may wait for the writer.
const WAITING: usize = 1 << 14;

/// Which way a frame passed a port, as its host sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// To the host.
    Inbound,
    /// From the host.
    Outbound,
}

#[derive(Debug)]
struct Passing {
    port: PortId,
    direction: Direction,
    at: SimTime,
    octets: Vec<u8>,
}

/// A capture under way.
#[derive(Debug)]
pub struct Capture {
    path: PathBuf,
    sender: SyncSender<Passing>,
    writer: JoinHandle<Result<(), CaptureError>>,
    missed: u64,
}

/// A capture that could not be written, or not to its end.
#[derive(Debug)]
pub struct CaptureFailure {
    /// The file.
    pub path: PathBuf,
    /// The reason in words.
    pub reason: String,
}

impl fmt::Display for CaptureFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.reason)
    }
}

impl std::error::Error for CaptureFailure {}

impl Capture {
    /// Begins a file with an interface of each of these names. The time of the wire's clock is
    /// `elapsed` now.
    ///
    /// # Errors
    /// [`CaptureFailure`] where there can be no such file.
    pub fn begin(path: &Path, names: &[String], elapsed: Span) -> Result<Self, CaptureFailure> {
        let failure = |reason: String| CaptureFailure { path: path.to_owned(), reason };
        let start_ns = since_1970().as_ns().saturating_sub(elapsed.as_ns());
        let file = File::create(path).map_err(|error| failure(error.to_string()))?;
        let mut file = Writer::new(BufWriter::new(file), ByteOrder::Little)
            .map_err(|error| failure(error.to_string()))?;
        for name in names {
            file.interface(name, LinkType::ETHERNET, ClockTick::NANOSECOND)
                .map_err(|error| failure(error.to_string()))?;
        }
        let (sender, receiver) = sync_channel(WAITING);
        let writer = std::thread::Builder::new()
            .name("wiretwin-pcap".into())
            .spawn(move || write(file, &receiver, start_ns))
            .map_err(|error| failure(error.to_string()))?;
        Ok(Self { path: path.to_owned(), sender, writer, missed: 0 })
    }

    /// Notes a frame.
    pub fn add(&mut self, port: PortId, direction: Direction, at: SimTime, octets: &[u8]) {
        let passing = Passing { port, direction, at, octets: octets.to_vec() };
        if let Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) = self.sender.try_send(passing) {
            self.missed += 1;
        }
    }

    /// Ends the file; how many frames are not in it.
    ///
    /// # Errors
    /// [`CaptureFailure`] where it could not be written to its end.
    pub fn end(self) -> Result<u64, CaptureFailure> {
        drop(self.sender);
        let written = self.writer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        match written {
            Ok(()) => Ok(self.missed),
            Err(error) => {
                let reason = format!("{error}; {} frames are missing", self.missed);
                Err(CaptureFailure { path: self.path, reason })
            }
        }
    }
}

fn write(
    mut file: Writer<BufWriter<File>>,
    frames: &Receiver<Passing>,
    start_ns: u64,
) -> Result<(), CaptureError> {
    for passing in frames {
        let direction = match passing.direction {
            Direction::Inbound => 1,
            Direction::Outbound => 2,
        };
        // `epb_flags`: option 2 of 4 octets, of which the lowest two bits are the direction; then the
        // end of options.
        let options = vec![2, 0, 4, 0, direction, 0, 0, 0, 0, 0, 0, 0];
        file.block(&Block::Packet {
            interface: passing.port.0.into(),
            ticks: start_ns + passing.at.since_start().as_ns(),
            original_length: passing.octets.len() as u32,
            octets: passing.octets,
            options,
        })?;
    }
    let buffered = file.finish()?;
    let file = buffered.into_inner().map_err(|error| at_end(error.into_error()))?;
    file.sync_all().or_else(|error| match error.kind() {
        // A pipe or a device has nothing to sync.
        io::ErrorKind::InvalidInput => Ok(()),
        _ => Err(at_end(error)),
    })
}

fn at_end(error: io::Error) -> CaptureError {
    CaptureError { format: "pcapng", field: "end", offset: 0, fault: CaptureFault::Io(error) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wiretwin_record::capture::pcapng::Reader;

    #[test]
    fn each_frame_stands_in_the_file_with_its_port_time_and_direction() {
        let path = std::env::temp_dir().join(format!("wiretwin-capture-{}.pcapng", std::process::id()));
        let names = ["h1".to_owned(), "h2".to_owned()];
        let before = since_1970();
        let mut capture = Capture::begin(&path, &names, Span::ZERO).unwrap();
        capture.add(PortId(0), Direction::Outbound, SimTime::from_ps(5_000), &[1; 60]);
        capture.add(PortId(1), Direction::Inbound, SimTime::from_ps(70_000), &[2; 61]);
        assert_eq!(capture.end().unwrap(), 0);
        let blocks = Reader::new(File::open(&path).unwrap()).blocks().unwrap();
        std::fs::remove_file(&path).unwrap();
        let packets: Vec<_> = blocks
            .iter()
            .filter_map(|block| match block {
                Block::Packet { interface, ticks, octets, options, .. } => {
                    Some((*interface, *ticks, octets.len(), options[4]))
                }
                _ => None,
            })
            .collect();
        assert_eq!(packets.iter().map(|p| (p.0, p.2, p.3)).collect::<Vec<_>>(), [(0, 60, 2), (1, 61, 1)]);
        assert_eq!(packets[1].1 - packets[0].1, 65);
        assert!(packets[0].1 >= before.as_ns());
    }

    #[test]
    fn a_file_that_cannot_be_written_is_named() {
        let error = Capture::begin(Path::new("/no/such/folder/a.pcapng"), &[], Span::ZERO).unwrap_err();
        assert_eq!(error.to_string(), "/no/such/folder/a.pcapng: No such file or directory (os error 2)");
        // A device that is always full.
        let mut capture = Capture::begin(Path::new("/dev/full"), &["h1".to_owned()], Span::ZERO).unwrap();
        (0..100).for_each(|_| capture.add(PortId(0), Direction::Inbound, SimTime::ZERO, &[0; 1500]));
        let error = capture.end().unwrap_err().to_string();
        assert!(error.starts_with("/dev/full: ") && error.contains("No space left"), "{error}");
    }
}
