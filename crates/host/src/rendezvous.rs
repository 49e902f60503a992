//! How the ranks of one run find each other: files in a directory that belongs to the run.
//!
//! A rank that listens publishes where, in a file that appears whole (written aside, then renamed).
//! A rank that connects waits for that file with a limit, connects, and says who it is; a stranger
//! on the port is turned away. Whoever has connected and says nothing delays nobody: the others are
//! heard meanwhile.

use std::fmt;
use std::fs;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, sockopt};

use crate::socket::SocketOptions;

/// Where and as whom a rank meets the others.
#[derive(Clone, Debug)]
pub struct Meeting<'a> {
    /// The directory of the run.
    pub directory: &'a Path,
    /// This rank.
    pub rank: u32,
    /// How many ranks meet.
    pub size: u32,
    /// The longest to wait for any of them.
    pub limit: Duration,
}

/// Why the ranks did not meet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeetingError {
    /// What was being done, with the file or address.
    pub place: String,
    /// Why it failed.
    pub reason: String,
}

impl fmt::Display for MeetingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.reason)
    }
}

impl std::error::Error for MeetingError {}

impl MeetingError {
    pub(crate) fn new(place: impl fmt::Display, reason: impl fmt::Display) -> Self {
        Self { place: place.to_string(), reason: reason.to_string() }
    }
}

/// The pause between two looks at a file that is not there yet.
const LOOK: Duration = Duration::from_millis(1);

impl Meeting<'_> {
    fn published(&self, rank: u32) -> PathBuf {
        self.directory.join(format!("rank-{rank}"))
    }

    /// Connections to every other rank over TCP, by rank; `None` for this rank.
    pub(crate) fn tcp(&self, options: &SocketOptions) -> Result<Vec<Option<OwnedFd>>, MeetingError> {
        let listener = if self.rank + 1 < self.size { Some(self.listen_tcp(options)?) } else { None };
        let connected = self.connect_below(|text, deadline| {
            let mut words = text.split_whitespace();
            let address: SocketAddr = words.next()?.parse().ok()?;
            let nonce: u64 = words.next()?.parse().ok()?;
            let socket = tcp_socket(address.ip(), options).ok()?;
            rustix::net::connect(&socket, &address).ok()?;
            self.introduce(TcpStream::from(socket), nonce, deadline)
        })?;
        self.accept_above(connected, listener, |listener| Ok(listener.accept()?.0))
    }

    /// Connections to every other rank over Unix stream sockets, by rank; `None` for this rank.
    pub(crate) fn unix(&self) -> Result<Vec<Option<OwnedFd>>, MeetingError> {
        let listener = if self.rank + 1 < self.size { Some(self.listen_unix()?) } else { None };
        let connected = self.connect_below(|text, deadline| {
            let nonce: u64 = text.trim().parse().ok()?;
            let directory = self.opened().ok()?;
            self.introduce(UnixStream::connect(through(&directory, nonce)).ok()?, nonce, deadline)
        })?;
        self.accept_above(connected, listener, |listener| Ok(listener.accept()?.0))
    }

    fn listen_tcp(&self, options: &SocketOptions) -> Result<(TcpListener, u64), MeetingError> {
        let address = SocketAddr::new(options.address, options.port);
        let refuse = |error: io::Error| MeetingError::new(format_args!("listening on {address}"), error);
        let socket = tcp_socket(options.address, options).map_err(refuse)?;
        sockopt::set_socket_reuseaddr(&socket, true).map_err(|error| refuse(error.into()))?;
        rustix::net::bind(&socket, &address).map_err(|error| refuse(error.into()))?;
        let backlog = i32::try_from(self.size).unwrap_or(i32::MAX).max(LEAST_BACKLOG);
        rustix::net::listen(&socket, backlog).map_err(|error| refuse(error.into()))?;
        let listener = TcpListener::from(socket);
        let bound = listener.local_addr().map_err(refuse)?;
        let nonce = nonce();
        self.publish(&format!("{bound} {nonce}\n"))?;
        Ok((listener, nonce))
    }

    fn listen_unix(&self) -> Result<(UnixListener, u64), MeetingError> {
        let nonce = nonce();
        let listener = self
            .opened()
            .and_then(|directory| UnixListener::bind(through(&directory, nonce)))
            .map_err(|error| {
                let path = self.directory.join(format!("u{nonce}"));
                MeetingError::new(format_args!("listening on {}", path.display()), error)
            })?;
        self.publish(&format!("{nonce}\n"))?;
        Ok((listener, nonce))
    }

    /// The directory by descriptor, as a socket's path holds 107 octets and a directory's may be longer.
    fn opened(&self) -> io::Result<OwnedFd> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(rustix::fs::open(self.directory, flags, Mode::empty())?)
    }

    fn publish(&self, text: &str) -> Result<(), MeetingError> {
        let path = self.published(self.rank);
        let aside = self.directory.join(format!("rank-{}.{}", self.rank, std::process::id()));
        fs::write(&aside, text)
            .and_then(|()| fs::rename(&aside, &path))
            .map_err(|error| MeetingError::new(format_args!("writing {}", path.display()), error))
    }

    /// Connects to each lower rank. `attempt` is given the text that rank published; `None` means
    /// that it was not (yet) the right one, so that a file left by an earlier run does no harm.
    fn connect_below(
        &self,
        mut attempt: impl FnMut(&str, Instant) -> Option<OwnedFd>,
    ) -> Result<Vec<Option<OwnedFd>>, MeetingError> {
        let mut connections: Vec<Option<OwnedFd>> = (0..self.size).map(|_| None).collect();
        for below in 0..self.rank.min(self.size) {
            let path = self.published(below);
            let deadline = Instant::now() + self.limit;
            connections[below as usize] = loop {
                let seen = match fs::read_to_string(&path) {
                    Ok(text) => {
                        if let Some(connection) = attempt(&text, deadline) {
                            break Some(connection);
                        }
                        "names a place where this run's peer does not answer"
                    }
                    Err(error) if error.kind() == io::ErrorKind::NotFound => "has not appeared",
                    Err(error) => {
                        return Err(MeetingError::new(format_args!("reading {}", path.display()), error));
                    }
                };
                if Instant::now() >= deadline {
                    return Err(MeetingError::new(
                        format_args!("waiting for rank {below}"),
                        format_args!("{} {seen} within {:?}", path.display(), self.limit),
                    ));
                }
                std::thread::sleep(LOOK);
            };
        }
        Ok(connections)
    }

    /// Lets every higher rank in. All who have connected are heard at once, so that one who is silent,
    /// a stranger on the port or a peer that is stopped, keeps nobody waiting.
    fn accept_above<L: AsFd, S: Write + Into<OwnedFd> + AsFd>(
        &self,
        mut connections: Vec<Option<OwnedFd>>,
        listener: Option<(L, u64)>,
        accept: impl Fn(&L) -> io::Result<S>,
    ) -> Result<Vec<Option<OwnedFd>>, MeetingError> {
        let Some((listener, nonce)) = listener else { return Ok(connections) };
        let deadline = Instant::now() + self.limit;
        let mut guests: Vec<Guest<S>> = Vec::new();
        while let Some(missing) =
            (self.rank + 1..self.size).find(|&rank| connections[rank as usize].is_none())
        {
            let left = deadline.saturating_duration_since(Instant::now());
            let waiting = || format!("waiting for rank {missing}");
            if left.is_zero() {
                return Err(MeetingError::new(
                    waiting(),
                    format_args!("it did not connect within {:?}", self.limit),
                ));
            }
            let mut fds = vec![PollFd::new(&listener, PollFlags::IN)];
            fds.extend(guests.iter().map(|guest| PollFd::new(&guest.stream, PollFlags::IN)));
            match poll(&mut fds, Some(&timespec(left))) {
                Ok(0) | Err(rustix::io::Errno::INTR) => continue,
                Ok(_) => {}
                Err(error) => return Err(MeetingError::new(waiting(), io::Error::from(error))),
            }
            let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
            for index in (0..guests.len()).rev().filter(|&index| ready[index + 1]) {
                let heard = guests[index].hear();
                if let Ok(false) = heard {
                    continue;
                }
                let guest = guests.remove(index);
                // A stranger, or a peer that died while introducing itself, is turned away.
                if heard.is_ok()
                    && let Ok((rank, connection)) = guest.admit(nonce, deadline)
                    && rank > self.rank
                    && rank < self.size
                    && connections[rank as usize].is_none()
                {
                    connections[rank as usize] = Some(connection);
                }
            }
            if ready[0]
                && let Ok(stream) = accept(&listener)
            {
                if guests.len() == MOST_GUESTS {
                    // A peer that is turned away by this tries again.
                    guests.remove(0);
                }
                guests.push(Guest { stream, hello: [0; HELLO], heard: 0 });
            }
        }
        Ok(connections)
    }

    /// Says who connects, and waits to be let in.
    fn introduce<S: Read + Write + Into<OwnedFd> + AsFd>(
        &self,
        mut stream: S,
        nonce: u64,
        deadline: Instant,
    ) -> Option<OwnedFd> {
        bound_waits(&stream, deadline).ok()?;
        let mut hello = [0; HELLO];
        hello[..8].copy_from_slice(&nonce.to_le_bytes());
        hello[8..].copy_from_slice(&self.rank.to_le_bytes());
        stream.write_all(&hello).ok()?;
        let mut welcome = [0; 8];
        stream.read_exact(&mut welcome).ok()?;
        (welcome == nonce.to_le_bytes()).then(|| stream.into())
    }
}

/// The bytes in which one who connects says who it is: the run's number, and its rank.
const HELLO: usize = 12;
/// How many may wait to be heard at the least, so that strangers leave room for a peer: one that finds none
/// tries again only after a second.
const LEAST_BACKLOG: i32 = 1024;
/// How many may be connected at once without having said who they are; the oldest goes first.
const MOST_GUESTS: usize = 128;

/// One who has connected and has yet to say who it is.
struct Guest<S> {
    stream: S,
    hello: [u8; HELLO],
    heard: usize,
}

impl<S: Write + Into<OwnedFd> + AsFd> Guest<S> {
    /// Takes what it has said by now, without waiting; whether that is all.
    fn hear(&mut self) -> io::Result<bool> {
        let rest = &mut self.hello[self.heard..];
        match rustix::net::recv(&self.stream, rest, RecvFlags::DONTWAIT) {
            Ok((_, 0)) => return Err(io::Error::from(io::ErrorKind::UnexpectedEof)),
            Ok((_, count)) => self.heard += count,
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(self.heard == HELLO)
    }

    /// Welcomes it if it is of this run; its rank and the connection.
    fn admit(mut self, nonce: u64, deadline: Instant) -> io::Result<(u32, OwnedFd)> {
        let (run, rank) = self.hello.split_at(8);
        if run != nonce.to_le_bytes() {
            return Err(io::Error::from(io::ErrorKind::PermissionDenied));
        }
        bound_waits(&self.stream, deadline)?;
        let rank = u32::from_le_bytes([rank[0], rank[1], rank[2], rank[3]]);
        self.stream.write_all(&nonce.to_le_bytes())?;
        Ok((rank, self.stream.into()))
    }
}

/// The longest wait in mid-introduction; a peer that is not let in within it tries again.
const INTRODUCTION: Duration = Duration::from_millis(500);

fn bound_waits(stream: impl AsFd, deadline: Instant) -> io::Result<()> {
    let left = deadline.saturating_duration_since(Instant::now()).min(INTRODUCTION);
    set_waits(stream, left)
}

/// Bounds every blocking wait on a socket.
pub(crate) fn set_waits(stream: impl AsFd, limit: Duration) -> io::Result<()> {
    let limit = Some(limit.max(Duration::from_micros(1)));
    sockopt::set_socket_timeout(&stream, sockopt::Timeout::Recv, limit)?;
    sockopt::set_socket_timeout(&stream, sockopt::Timeout::Send, limit)?;
    Ok(())
}

pub(crate) fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(duration.subsec_nanos()),
    }
}

/// A socket with its buffer sizes set before it is bound or connected, as TCP's window scale asks.
fn tcp_socket(address: IpAddr, options: &SocketOptions) -> io::Result<OwnedFd> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = rustix::net::socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    options.set_buffers(&socket)?;
    Ok(socket)
}

/// The path of a Unix socket in a directory that is open, short wherever that is (`proc(5)`, `/proc/self/fd`).
fn through(directory: &OwnedFd, nonce: u64) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}/u{nonce}", directory.as_raw_fd()))
}

/// A number no other run has, to tell this run's peers from strangers.
fn nonce() -> u64 {
    RandomState::new().build_hasher().finish()
}
