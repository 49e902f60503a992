//! How an endpoint learns that the process of a peer behind a network has ended: from the kernel, never from silence.
//!
//! Whoever has something to send to such a peer, or waits for something of it alone, holds a TCP connection to it,
//! over which it says who it is, and sends long messages' bytes (`stream`). The kernel ends it with either process, however that ends. A rank
//! that computes and answers nothing keeps its connections. There is one look at all of them, with one system call.
//!
//! Where the endpoint says for how long another host may be silent, the kernels ask each other once a second
//! (SO_KEEPALIVE, RFC 9293, §3.8.4; TCP_USER_TIMEOUT, RFC 5482), and a host that does not answer in that time is taken to
//! be gone with all its processes. It is the kernel that answers, whatever its processes do.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::sockopt::{
    set_socket_keepalive, set_tcp_congestion, set_tcp_keepidle, set_tcp_keepintvl, set_tcp_nodelay,
    set_tcp_user_timeout, socket_error, tcp_congestion,
};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, accept_with, bind, connect, getsockname,
    listen, recv, send, socket_with,
};

use super::address::Address;
use super::inbox::Slab;

/// The key of the endpoint that it is meant for, and that of the one which connects.
const GREETING: usize = 16;
/// The number of the socket at which connections are taken, among those of connections.
const LISTENER: u64 = u64::MAX;
/// Connections that have not said who they are, of which no more are held: the oldest goes for one more.
const MOST_UNKNOWN: usize = 256;
/// How often a host is asked whether it is there, where silence tells that it is not.
const ASKED_EVERY: Duration = Duration::from_secs(1);
/// Events that are taken with one call.
const MOST_EVENTS: usize = 64;

/// A congestion control that sends by a timer at the rate that it has measured, and what takes its place, the
/// first that may be had: with it 1 MiB takes two to four times as long between namespaces of one host.
const PACED: &str = "bbr";
const NOT_PACED: [&str; 2] = ["cubic", "reno"];
/// The least time-out of a connection (`linux/tcp.h`, Linux 6.15), 200 ms by default, in microseconds. The kernel
/// rejects less than two of its ticks, of which there are 1000, 300, 250 or 100 a second.
const TCP_RTO_MIN_US: i32 = 45;
const LEAST_TIMEOUTS_US: [i32; 4] = [2_000, 6_666, 8_000, 20_000];

#[derive(Debug)]
enum State {
    /// Being set up from here, to the endpoint of this key.
    Asked { peer: u64 },
    /// A connection was accepted; `came` bytes of its greeting have arrived.
    Unknown { came: usize, greeting: [u8; GREETING] },
    /// It stands, to the endpoint of this key; `brings` the bytes of messages, for it was made there.
    Stands { peer: u64, brings: bool },
}

#[derive(Debug)]
struct Connection {
    socket: OwnedFd,
    state: State,
}

/// The connections of an endpoint.
#[derive(Debug)]
pub(super) struct Ends {
    listener: OwnedFd,
    any: OwnedFd,
    connections: Slab<Connection>,
    /// Those that have not said who they are, the oldest first.
    unknown: VecDeque<usize>,
    /// Those made from here that stand, and those made by others, by the keys of the endpoints there.
    taking: HashMap<u64, usize>,
    bringing: HashMap<u64, usize>,
    /// A connection made from here stands, or one has ended, since that was asked last.
    changed: bool,
    /// For how long the other host may be silent.
    silence: Option<Duration>,
}

/// What the kernel has told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// The process of the endpoint of this key has ended.
    Lost { peer: u64 },
    /// Bytes of this endpoint have come: see [`Ends::way_from`].
    Bytes { from: u64 },
}

fn flags() -> SocketFlags {
    SocketFlags::CLOEXEC | SocketFlags::NONBLOCK
}

impl Ends {
    /// Takes connections at an address: the connections, and the port.
    pub(super) fn open(ip: Ipv4Addr, silence: Option<Duration>) -> io::Result<(Self, u16)> {
        let listener = socket_with(AddressFamily::INET, SocketType::STREAM, flags(), None)?;
        bind(&listener, &SocketAddrV4::new(ip, 0))?;
        listen(&listener, 4096)?;
        let port = SocketAddrV4::try_from(getsockname(&listener)?)?.port();
        let any = epoll::create(CreateFlags::CLOEXEC)?;
        epoll::add(&any, &listener, EventData::new_u64(LISTENER), EventFlags::IN)?;
        let ends = Self {
            listener,
            any,
            connections: Slab::default(),
            unknown: VecDeque::new(),
            taking: HashMap::new(),
            bringing: HashMap::new(),
            changed: false,
            silence,
        };
        Ok((ends, port))
    }

    /// Begins to hold a connection to an endpoint. What cannot be begun tells nothing.
    pub(super) fn reach(&mut self, to: Address) -> io::Result<()> {
        let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags(), None)?;
        self.limit_silence(&socket)?;
        suit_messages(&socket);
        match connect(&socket, &SocketAddrV4::new(*to.datagrams.ip(), to.ends)) {
            // A refusal at once is told by the socket as a later one is.
            Ok(()) | Err(Errno::INPROGRESS | Errno::CONNREFUSED) => {}
            Err(error) => return Err(error.into()),
        }
        set_tcp_nodelay(&socket, true)?;
        self.hold(Connection { socket, state: State::Asked { peer: to.key } }, EventFlags::OUT)?;
        Ok(())
    }

    fn limit_silence(&self, socket: &OwnedFd) -> io::Result<()> {
        let Some(silence) = self.silence else { return Ok(()) };
        set_socket_keepalive(socket, true)?;
        set_tcp_keepidle(socket, ASKED_EVERY)?;
        set_tcp_keepintvl(socket, ASKED_EVERY)?;
        set_tcp_user_timeout(socket, silence.as_millis().try_into().unwrap_or(u32::MAX))?;
        Ok(())
    }

    fn hold(&mut self, connection: Connection, wanted: EventFlags) -> io::Result<usize> {
        let number = self.connections.insert(connection);
        if let Some(Connection { socket, .. }) = self.connections.get(number)
            && let Err(error) = epoll::add(&self.any, socket, EventData::new_u64(number as u64), wanted)
        {
            self.connections.remove(number);
            return Err(error.into());
        }
        Ok(number)
    }

    /// What can be read from when there is something to [`Ends::look`] at.
    pub(super) fn waker(&self) -> BorrowedFd<'_> {
        self.any.as_fd()
    }

    /// Whether there are other connections than when that was asked last.
    pub(super) const fn take_changed(&mut self) -> bool {
        std::mem::replace(&mut self.changed, false)
    }

    /// The connection on which bytes can be sent to the endpoint of this key.
    pub(super) fn way_to(&self, key: u64) -> Option<BorrowedFd<'_>> {
        Some(self.connections.get(*self.taking.get(&key)?)?.socket.as_fd())
    }

    /// The connection on which bytes of the endpoint of this key come.
    pub(super) fn way_from(&self, key: u64) -> Option<BorrowedFd<'_>> {
        Some(self.connections.get(*self.bringing.get(&key)?)?.socket.as_fd())
    }

    /// Takes what the kernel has to tell.
    pub(super) fn look(&mut self, own: u64, mut told: impl FnMut(Told)) {
        let mut room = [const { MaybeUninit::<epoll::Event>::uninit() }; MOST_EVENTS];
        let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
        let Ok((events, _)) = epoll::wait(&self.any, &mut room, Some(&now)) else { return };
        for &mut epoll::Event { data, .. } in events {
            match data.u64() {
                LISTENER => self.accept(),
                number => self.hear(number as usize, own, &mut told),
            }
        }
    }

    fn accept(&mut self) {
        while let Ok(socket) = accept_with(&self.listener, flags()) {
            // Without, silence is not noticed on this connection, but on the one made from here.
            let _ = self.limit_silence(&socket);
            let state = State::Unknown { came: 0, greeting: [0; GREETING] };
            let Ok(number) = self.hold(Connection { socket, state }, EventFlags::IN) else { return };
            self.unknown.push_back(number);
            if self.unknown.len() > MOST_UNKNOWN {
                self.unknown.pop_front().and_then(|oldest| self.connections.remove(oldest));
            }
        }
    }

    /// Something has come of a connection, or it has ended.
    fn hear(&mut self, number: usize, own: u64, told: &mut impl FnMut(Told)) {
        let Some(connection) = self.connections.get_mut(number) else { return };
        match connection.state {
            State::Asked { peer } => match socket_error(&connection.socket) {
                Ok(Ok(())) => {
                    let mut greeting = [0; GREETING];
                    greeting[..8].copy_from_slice(&peer.to_be_bytes());
                    greeting[8..].copy_from_slice(&own.to_be_bytes());
                    let to = EventData::new_u64(number as u64);
                    // So few bytes have room in a connection that is new.
                    let said = send(&connection.socket, &greeting, SendFlags::NOSIGNAL).is_ok()
                        && epoll::modify(&self.any, &connection.socket, to, EventFlags::IN).is_ok();
                    connection.state = State::Stands { peer, brings: false };
                    self.taking.insert(peer, number);
                    self.changed = true;
                    if !said {
                        self.end(number, Some(peer), told);
                    }
                }
                // Nobody is there, or no more.
                Ok(Err(Errno::CONNREFUSED | Errno::CONNRESET)) => self.end(number, Some(peer), told),
                // The network does not lead there: that says nothing of the process, unless silence does.
                _ => self.end(number, self.silence.map(|_| peer), told),
            },
            State::Unknown { came, ref mut greeting } => {
                let Some(count) = came_of(&connection.socket, &mut greeting[came..], RecvFlags::empty())
                else {
                    self.unknown.retain(|&one| one != number);
                    return self.end(number, None, told);
                };
                let (came, greeting) = (came + count, *greeting);
                if came < GREETING {
                    connection.state = State::Unknown { came, greeting };
                    return;
                }
                let half =
                    |at: usize| greeting[at..at + 8].iter().fold(0, |all, &byte| all << 8 | u64::from(byte));
                self.unknown.retain(|&one| one != number);
                if half(0) != own {
                    return self.end(number, None, told);
                }
                let peer = half(8);
                connection.state = State::Stands { peer, brings: true };
                self.bringing.insert(peer, number);
            }
            State::Stands { peer, brings } => {
                // What comes on a connection made here, besides its end, means nothing.
                let flags = if brings { RecvFlags::PEEK } else { RecvFlags::empty() };
                match came_of(&connection.socket, &mut [0; 64], flags) {
                    None => self.end(number, Some(peer), told),
                    Some(1..) if brings => told(Told::Bytes { from: peer }),
                    Some(_) => {}
                }
            }
        }
    }

    fn end(&mut self, number: usize, peer: Option<u64>, told: &mut impl FnMut(Told)) {
        self.connections.remove(number);
        self.changed = true;
        if let Some(peer) = peer {
            if self.bringing.get(&peer) == Some(&number) {
                self.bringing.remove(&peer);
            }
            if self.taking.get(&peer) == Some(&number) {
                self.taking.remove(&peer);
            }
            told(Told::Lost { peer });
        }
    }
}

/// Suits a connection to messages between hosts that are near each other, as far as the kernel allows it.
fn suit_messages(socket: &OwnedFd) {
    if tcp_congestion(socket).is_ok_and(|name| name.starts_with(PACED)) {
        let _ = NOT_PACED.iter().any(|name| set_tcp_congestion(socket, name).is_ok());
    }
    let _ = LEAST_TIMEOUTS_US.iter().any(|&us| set_least_timeout(socket, us).is_ok());
}

fn set_least_timeout(socket: &OwnedFd, us: i32) -> io::Result<()> {
    let (fd, length) = (socket.as_raw_fd(), size_of_val(&us) as libc::socklen_t);
    // SAFETY: the option's value is an int, which lives until the call is over.
    let outcome =
        unsafe { libc::setsockopt(fd, libc::IPPROTO_TCP, TCP_RTO_MIN_US, (&raw const us).cast(), length) };
    if outcome == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// How many bytes have come, none if nothing has; nothing at the end of the connection.
fn came_of(socket: &OwnedFd, into: &mut [u8], flags: RecvFlags) -> Option<usize> {
    match recv(socket, into, RecvFlags::DONTWAIT | flags) {
        Ok((0, _)) => None,
        Ok((count, _)) => Some(count),
        Err(Errno::AGAIN | Errno::INTR) => Some(0),
        Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::TcpStream;
    use std::time::Instant;

    use super::*;

    fn open() -> (Ends, Address) {
        let (ends, port) = Ends::open(Ipv4Addr::LOCALHOST, None).expect("a socket");
        let address = Address::here(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 1), port).expect("random numbers");
        (ends, address)
    }

    /// Looks until something is lost, or the other condition holds.
    fn look(ends: &mut Ends, own: Address, mut until: impl FnMut(&Ends, &[Told]) -> bool) -> Vec<Told> {
        let (start, mut lost) = (Instant::now(), Vec::new());
        while !until(ends, &lost) {
            assert!(start.elapsed() < Duration::from_secs(20), "{ends:?} {lost:?}");
            ends.look(own.key, |told| lost.push(told));
        }
        lost
    }

    #[test]
    fn a_connection_for_messages_is_not_paced_and_its_least_timeout_is_short() {
        let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags(), None).expect("a socket");
        if set_tcp_congestion(&socket, PACED).is_err() {
            eprintln!("left out in part: the kernel has no {PACED}, or this user may not choose it");
        }
        suit_messages(&socket);
        let name = tcp_congestion(&socket).expect("it has a name");
        assert!(!name.starts_with(PACED), "{name}");
        let (mut us, mut length) = (0_i32, size_of::<i32>() as libc::socklen_t);
        // SAFETY: the option's value is an int, which lives until the call is over, with its length.
        let known = unsafe {
            let (us, length) = ((&raw mut us).cast(), &raw mut length);
            libc::getsockopt(socket.as_raw_fd(), libc::IPPROTO_TCP, TCP_RTO_MIN_US, us, length) == 0
        };
        if known {
            assert!((1..=20_000).contains(&us), "{us} us");
        } else {
            eprintln!("left out in part: the kernel's least time-out is fixed");
        }
    }

    fn stand(ends: &Ends) -> usize {
        let stands = |connection: &Connection| matches!(connection.state, State::Stands { .. });
        ends.connections.find(stands).len()
    }

    #[test]
    fn both_learn_of_the_others_end_and_neither_of_silence() {
        for gone in 0..2 {
            let ((mut here, own), (mut there, other)) = (open(), open());
            here.reach(other).expect("a connection");
            look(&mut here, own, |here, _| stand(here) == 1);
            look(&mut there, other, |there, _| stand(there) == 1);
            (0..100).for_each(|_| here.look(own.key, |told| panic!("{told:?}")));
            let (mut left, own, other) = if gone == 0 {
                drop(here);
                (there, other, own)
            } else {
                drop(there);
                (here, own, other)
            };
            assert_eq!(look(&mut left, own, |_, told| !told.is_empty()), [Told::Lost { peer: other.key }]);
        }
    }

    #[test]
    fn one_that_has_ended_before_it_was_reached_is_lost() {
        let ((mut here, own), (there, other)) = (open(), open());
        drop(there);
        here.reach(other).expect("a refusal that is told");
        assert_eq!(look(&mut here, own, |_, told| !told.is_empty()), [Told::Lost { peer: other.key }]);
    }

    #[test]
    fn strangers_are_turned_away_and_however_silent_keep_nobody_out() {
        let (mut here, own) = open();
        let at = SocketAddrV4::new(Ipv4Addr::LOCALHOST, own.ends);
        let mut wrong = TcpStream::connect(at).expect("a connection");
        wrong.write_all(&[7; GREETING]).expect("a greeting of somebody else");
        look(&mut here, own, |here, _| here.unknown.len() == 1);
        look(&mut here, own, |here, _| here.unknown.is_empty());
        let silent: Vec<_> =
            (0..MOST_UNKNOWN + 8).map(|_| TcpStream::connect(at).expect("a connection")).collect();
        look(&mut here, own, |here, _| here.unknown.len() == MOST_UNKNOWN);
        let (mut there, other) = open();
        there.reach(own).expect("a connection");
        look(&mut there, other, |there, _| stand(there) == 1);
        look(&mut here, own, |here, _| stand(here) == 1);
        drop(silent);
        look(&mut here, own, |here, _| here.unknown.is_empty());
    }
}
