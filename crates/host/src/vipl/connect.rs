//! Connections: sockets without a name on a disk, over which two ends agree and one hands over memory.
//!
//! A server that waits, and the first of two peers that ask, listen at an abstract address made of the network's
//! name and the discriminators; the other end connects and says hello. Nobody listens longer than it waits, so that
//! an address where nobody waits is not found.

use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, epoll, poll};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, connect, listen, socket_with,
    sockopt,
};
use wiretwin_msg::via::{
    Address, Asked, ConnHandle, HostAddress, Reliability, RemoteAttributes, ViHandle, ViState, ViplError,
};
use wiretwin_units::Bytes;

use super::adapter::{Adapter, Shared, State};
use super::link::{Link, hear, say};
use super::remote::Cookie;
use super::vi::Vi;
use crate::rendezvous::timespec;

/// Requests that may wait at one address.
const BACKLOG: i32 = 128;
/// How long one that has connected may take to say hello.
const MANNERS: Duration = Duration::from_secs(1);
/// How often a wait looks whether its adapter is still open.
const SLICE: Duration = Duration::from_millis(100);
/// How long a peer waits before it looks again for one that does not ask yet.
const PAUSE: Duration = Duration::from_millis(2);
/// Octets of a hello before the discriminators, and the version of it all.
const HELLO: usize = 35;
const VERSION: u8 = 1;
const LONGEST: usize = 1 << 10;

/// A request for a connection that is under way.
#[derive(Debug)]
pub(super) struct Asking {
    /// Where this end listens, as the first of two peers.
    listener: Option<OwnedFd>,
    /// Where the other end is asked, or says hello.
    socket: Option<OwnedFd>,
    deadline: Option<Instant>,
    /// When the other of two peers is looked for again.
    again: Option<Instant>,
    /// Of a peer: its discriminator and the other's.
    peers: Option<(Vec<u8>, Vec<u8>)>,
}

/// A request that came and waits for its answer.
#[derive(Debug)]
pub(super) struct Request {
    socket: OwnedFd,
    hello: Hello,
}

#[derive(Debug)]
struct Hello {
    peer: bool,
    attributes: RemoteAttributes,
    cookie: Cookie,
    from: Vec<u8>,
    to: Vec<u8>,
}

impl Hello {
    fn emit(&self) -> Vec<u8> {
        let mut octets = vec![VERSION, u8::from(self.peer)];
        octets.extend(attributes_octets(&self.attributes));
        octets.extend(self.cookie.address.to_le_bytes());
        octets.extend(self.cookie.number.to_le_bytes());
        for name in [&self.from, &self.to] {
            octets.extend((name.len() as u16).to_le_bytes());
        }
        octets.extend(&self.from);
        octets.extend(&self.to);
        octets
    }

    fn parse(octets: &[u8]) -> Option<Self> {
        let (head, names) = octets.split_at_checked(HELLO)?;
        let [VERSION, peer] = *head.first_chunk()? else { return None };
        let attributes = parse_attributes(&head[2..15])?;
        let word = |at: usize| head[at..].first_chunk().map(|octets| u64::from_le_bytes(*octets));
        let cookie = Cookie { address: word(15)?, number: word(23)? };
        let half = |at: usize| usize::from(u16::from_le_bytes([head[at], head[at + 1]]));
        let (from, to) = names.split_at_checked(half(31))?;
        let to = to.get(..half(33))?;
        Some(Self { peer: peer != 0, attributes, cookie, from: from.into(), to: to.into() })
    }
}

fn attributes_octets(attributes: &RemoteAttributes) -> [u8; 13] {
    let mut octets = [attributes.reliability as u8; 13];
    octets[1..9].copy_from_slice(&attributes.max_transfer.get().to_le_bytes());
    octets[9..].copy_from_slice(&attributes.qos.to_le_bytes());
    octets
}

fn parse_attributes(octets: &[u8]) -> Option<RemoteAttributes> {
    let reliability = Reliability::from_code(*octets.first()?)?;
    let max_transfer = Bytes::new(u64::from_le_bytes(*octets.get(1..)?.first_chunk()?));
    let qos = u32::from_le_bytes(*octets.get(9..)?.first_chunk()?);
    Some(RemoteAttributes { reliability, max_transfer, qos })
}

/// FNV-1a of these octets, each part with its length (Fowler, Noll, Vo).
pub(super) fn digest(parts: &[&[u8]]) -> u64 {
    let octets = parts
        .iter()
        .flat_map(|part| (part.len() as u32).to_le_bytes().into_iter().chain(part.iter().copied()));
    octets.fold(0xcbf2_9ce4_8422_2325, |hash, octet| (hash ^ u64::from(octet)).wrapping_mul(0x0100_0000_01b3))
}

/// The host part of the addresses of a network: one host, this one.
pub(super) fn network_address(network: &str) -> HostAddress {
    let [first, second, third, fourth, ..] = digest(&[network.as_bytes()]).to_le_bytes();
    // A locally administered address, as of an Ethernet.
    HostAddress([2, 0, first, second, third, fourth])
}

/// Where somebody listens: a server at its discriminator, peers at both.
fn place(network: &str, discriminators: &[&[u8]]) -> Result<SocketAddrUnix, ViplError> {
    let user = rustix::process::geteuid().as_raw();
    let name = format!("wiretwin-vipl/{user}/{network}/{:016x}", digest(discriminators));
    SocketAddrUnix::new_abstract_name(name.as_bytes()).map_err(|_| ViplError::InvalidParameter)
}

fn socket() -> Result<OwnedFd, ViplError> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).map_err(|_| ViplError::ErrorResource)
}

/// Listens there; `None` if somebody does already.
fn listener(place: &SocketAddrUnix) -> Result<Option<OwnedFd>, ViplError> {
    let socket = socket()?;
    match bind(&socket, place) {
        Err(Errno::ADDRINUSE) => return Ok(None),
        bound => bound.map_err(|_| ViplError::ErrorResource)?,
    }
    listen(&socket, BACKLOG).map_err(|_| ViplError::ErrorResource)?;
    Ok(Some(socket))
}

/// Connects to whoever listens there, if anybody does.
fn connected(place: &SocketAddrUnix) -> Result<OwnedFd, ViplError> {
    let socket = socket()?;
    connect(&socket, place).map_err(|_| ViplError::NoMatch)?;
    Ok(socket)
}

/// Takes one that has connected, a process of this user.
fn accepted(listener: &OwnedFd) -> io::Result<Option<OwnedFd>> {
    let socket = accept_with(listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK)?;
    let ours = sockopt::socket_peercred(&socket)?.uid == rustix::process::geteuid();
    Ok(ours.then_some(socket))
}

/// The process at the other end, if its memory can be read.
fn readable(socket: &OwnedFd, cookie: Cookie) -> Option<libc::pid_t> {
    let process = sockopt::socket_peercred(socket).ok()?.pid.as_raw_nonzero().get();
    cookie.is_readable(process).then_some(process)
}

fn watch(shared: &Shared, socket: &OwnedFd, vi: ViHandle) -> Result<(), ViplError> {
    // At each change once: a child of this process may keep a socket open that is closed here.
    let flags = epoll::EventFlags::IN | epoll::EventFlags::RDHUP | epoll::EventFlags::ET;
    let data = epoll::EventData::new_u64(vi.0.into());
    epoll::add(&shared.epoll, socket, data, flags).map_err(|_| ViplError::ErrorResource)
}

/// Accepts a request: makes the memory of the connection and hands it over.
fn hand_over(vi: &mut Vi, request: Request) -> Result<(), ViplError> {
    let Request { socket, hello } = request;
    let process = readable(&socket, hello.cookie);
    let memory = Link::memory().map_err(|_| ViplError::ErrorResource)?;
    let link = Link::new(&memory, socket, true, process).map_err(|_| ViplError::ErrorResource)?;
    let ours = Cookie::ours();
    let mut reply = vec![0];
    reply.extend(attributes_octets(&vi.attributes.remote_view()));
    reply.extend(ours.address.to_le_bytes());
    reply.extend(ours.number.to_le_bytes());
    say(&link.socket, &reply, Some(&memory)).map_err(|_| ViplError::Timeout)?;
    vi.connected(link, hello.attributes);
    Ok(())
}

/// The other end has accepted.
fn taken_over(vi: &mut Vi, socket: OwnedFd, reply: &[u8], memory: &OwnedFd) -> Option<()> {
    let attributes = parse_attributes(reply.get(1..14)?)?;
    let word = |at: usize| reply.get(at..)?.first_chunk().map(|octets| u64::from_le_bytes(*octets));
    let process = readable(&socket, Cookie { address: word(14)?, number: word(22)? });
    let link = Link::new(memory, socket, false, process).ok()?;
    vi.connected(link, attributes);
    Some(())
}

impl Asking {
    /// Asks as a peer.
    ///
    /// The end whose discriminator comes first listens, and the other connects to it; where they are the same, the
    /// first that asks listens. Where that cannot be yet, it is tried again.
    fn peer(
        shared: &Shared,
        vi: &Vi,
        deadline: Option<Instant>,
        from: Vec<u8>,
        to: Vec<u8>,
    ) -> Result<Self, ViplError> {
        let both: [&[u8]; 2] = if from <= to { [&from, &to] } else { [&to, &from] };
        let place = place(&shared.network, &both)?;
        let listener = if from <= to { listener(&place)? } else { None };
        let mut socket = None;
        if let Some(listener) = &listener {
            watch(shared, listener, vi.handle)?;
        } else if from >= to
            && let Ok(other) = connected(&place)
        {
            let attributes = vi.attributes.remote_view();
            let (from, to) = (from.clone(), to.clone());
            let hello = Hello { peer: true, attributes, cookie: Cookie::ours(), from, to };
            if say(&other, &hello.emit(), None).is_ok() {
                watch(shared, &other, vi.handle)?;
                socket = Some(other);
            }
        }
        let again = (listener.is_none() && socket.is_none()).then(|| Instant::now() + PAUSE);
        Ok(Self { listener, socket, deadline, again, peers: Some((from, to)) })
    }

    /// When something is to be done though nothing comes.
    pub fn due(&self) -> Option<Instant> {
        [self.deadline, self.again].into_iter().flatten().min()
    }
}

/// A time has come for a VI that asks for a connection.
pub(super) fn expire(shared: &Shared, vi: &mut Vi, now: Instant) {
    let Some(asking) = &mut vi.asking else { return };
    if asking.deadline.is_some_and(|deadline| deadline <= now) {
        return vi.answered(ViplError::Timeout);
    }
    if asking.again.is_some_and(|again| again <= now)
        && let (Some((from, to)), deadline) = (asking.peers.take(), asking.deadline)
    {
        match Asking::peer(shared, vi, deadline, from, to) {
            Ok(again) => vi.asking = Some(again),
            Err(error) => vi.answered(error),
        }
    }
}

/// Something has come for a VI that asks for a connection; its answer, if that is it.
pub(super) fn greet(shared: &Shared, vi: &mut Vi) {
    let Some(mut asking) = vi.asking.take() else { return };
    let answer = if asking.listener.is_some() {
        hear_peer(shared, vi, &mut asking)
    } else {
        hear_reply(shared, vi, &mut asking)
    };
    match answer {
        Some(Ok(())) => {}
        Some(Err(error)) => vi.answered(error),
        None => vi.asking = Some(asking),
    }
}

/// The first of two peers hears the other.
fn hear_peer(shared: &Shared, vi: &mut Vi, asking: &mut Asking) -> Option<Result<(), ViplError>> {
    loop {
        if asking.socket.is_none() {
            match accepted(asking.listener.as_ref()?) {
                Ok(None) => continue,
                Ok(Some(socket)) => {
                    if let Err(error) = watch(shared, &socket, vi.handle) {
                        return Some(Err(error));
                    }
                    asking.socket = Some(socket);
                }
                Err(_) => return None,
            }
        }
        let mut packet = [0; LONGEST];
        let heard = match hear(asking.socket.as_ref()?, &mut packet) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return None,
            heard => heard.ok().and_then(|(octets, _)| Hello::parse(&packet[..octets])),
        };
        let socket = asking.socket.take()?;
        let (ours, theirs) = asking.peers.as_ref()?;
        let Some(hello) = heard.filter(|hello| hello.peer && hello.to == *ours && hello.from == *theirs)
        else {
            continue;
        };
        if let Err(error) = vi.attributes.agrees(&hello.attributes) {
            let _ = say(&socket, &[error.code()], None);
            return Some(Err(error));
        }
        return Some(hand_over(vi, Request { socket, hello }));
    }
}

fn hear_reply(shared: &Shared, vi: &mut Vi, asking: &mut Asking) -> Option<Result<(), ViplError>> {
    let mut packet = [0; LONGEST];
    match hear(asking.socket.as_ref()?, &mut packet) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => None,
        Ok((octets, Some(memory))) if octets > 0 && packet[0] == 0 => {
            let socket = asking.socket.take()?;
            let taken = taken_over(vi, socket, &packet[..octets], &memory);
            Some(taken.ok_or(ViplError::ErrorResource))
        }
        Ok((octets, None)) if octets > 0 => {
            let code = usize::from(packet[0]).checked_sub(1);
            let error = code.and_then(|code| ViplError::ALL.get(code)).copied();
            Some(Err(error.unwrap_or(ViplError::Reject)))
        }
        // It has stopped listening: a server waits no more; a peer may be waited for.
        _ => match asking.peers.take() {
            None => Some(Err(ViplError::NoMatch)),
            Some((from, to)) => match Asking::peer(shared, vi, asking.deadline, from, to) {
                Ok(again) => {
                    *asking = again;
                    None
                }
                Err(error) => Some(Err(error)),
            },
        },
    }
}

impl Adapter {
    /// Whether a connection can be asked for or waited for at these discriminators.
    fn check(&self, discriminators: &[&[u8]]) -> Result<(), ViplError> {
        let state = self.shared.lock();
        let most = usize::from(state.common.attributes.max_discriminator);
        if discriminators.iter().any(|discriminator| discriminator.len() > most) {
            Err(ViplError::InvalidParameter)
        } else if state.failed || state.closed {
            Err(ViplError::NotReachable)
        } else {
            Ok(())
        }
    }

    /// `VipConnectWait`: somebody who asks for a connection at this discriminator; no timeout is for ever.
    ///
    /// # Errors
    /// [`ViplError::Timeout`]; [`ViplError::InvalidParameter`] for a discriminator that is too long;
    /// [`ViplError::ErrorResource`] while another call waits there; [`ViplError::NotReachable`] once the adapter is
    /// closed or has broken down.
    pub fn connect_wait(&self, local: &[u8], timeout: Option<Duration>) -> Result<Asked, ViplError> {
        self.check(&[local])?;
        let place = place(&self.shared.network, &[local])?;
        let listener = listener(&place)?.ok_or(ViplError::ErrorResource)?;
        let deadline = timeout.map(|timeout| Instant::now() + timeout);
        loop {
            let left = deadline.map_or(SLICE, |deadline| deadline.saturating_duration_since(Instant::now()));
            let came = readable_within(&listener, left.min(SLICE));
            self.check(&[])?;
            if !came {
                if left.is_zero() {
                    return Err(ViplError::Timeout);
                }
                continue;
            }
            let Ok(Some(socket)) = accepted(&listener) else { continue };
            let mut packet = [0; LONGEST];
            if !readable_within(&socket, MANNERS) {
                continue;
            }
            let heard = hear(&socket, &mut packet).ok();
            let hello = heard.and_then(|(octets, _)| Hello::parse(&packet[..octets]));
            let Some(hello) = hello.filter(|hello| !hello.peer && hello.to == local) else { continue };
            let remote = Address { host: self.local(), discriminator: hello.from.clone() };
            let attributes = hello.attributes;
            return Ok(self.with(|state| {
                state.next_request += 1;
                let connection = ConnHandle(state.next_request);
                state.requests.insert(connection.0, Request { socket, hello });
                Asked { connection, remote, attributes }
            }));
        }
    }

    /// `VipConnectAccept`. If it fails for the VI's sake, the remote end is not told: it may be tried again.
    ///
    /// # Errors
    /// [`ViplError::InvalidParameter`], [`ViplError::InvalidState`] unless the VI is idle, or the code of the
    /// attribute that is not that of the remote VI; [`ViplError::Timeout`] if the remote end waits no more.
    pub fn connect_accept(&self, connection: ConnHandle, vi: ViHandle) -> Result<(), ViplError> {
        let accepted = self.with(|State { vis, requests, .. }| {
            let request = requests.get(&connection.0).ok_or(ViplError::InvalidParameter)?;
            let vi = vis.get_mut(vi.0).ok_or(ViplError::InvalidParameter)?;
            if vi.state != ViState::Idle {
                return Err(ViplError::InvalidState);
            }
            vi.attributes.agrees(&request.hello.attributes)?;
            let request = requests.remove(&connection.0).ok_or(ViplError::InvalidParameter)?;
            watch(&self.shared, &request.socket, vi.handle)?;
            hand_over(vi, request)
        });
        self.shared.ring();
        accepted
    }

    /// `VipConnectReject`.
    ///
    /// # Errors
    /// [`ViplError::InvalidParameter`].
    pub fn connect_reject(&self, connection: ConnHandle) -> Result<(), ViplError> {
        let request = self.take_request(connection)?;
        // Who waits no more need not be told.
        let _ = say(&request.socket, &[ViplError::Reject.code()], None);
        Ok(())
    }

    /// `VipConnectRequest` to whoever waits there: the attributes of the remote VI. No timeout is for ever.
    ///
    /// # Errors
    /// [`ViplError::InvalidParameter`], [`ViplError::InvalidState`] unless the VI is idle;
    /// [`ViplError::NotReachable`] for another network's address, or once the adapter has broken down; and as for
    /// [`Adapter::connect_result`].
    pub fn connect_request(
        &self,
        vi: ViHandle,
        local: &[u8],
        remote: &Address,
        timeout: Option<Duration>,
    ) -> Result<RemoteAttributes, ViplError> {
        let place = place(&self.shared.network, &[&remote.discriminator])?;
        self.ask(vi, local, remote, |vi| {
            let socket = connected(&place)?;
            let attributes = vi.attributes.remote_view();
            let (from, to) = (local.to_vec(), remote.discriminator.clone());
            let hello = Hello { peer: false, attributes, cookie: Cookie::ours(), from, to };
            say(&socket, &hello.emit(), None).map_err(|_| ViplError::NoMatch)?;
            watch(&self.shared, &socket, vi.handle)?;
            let deadline = timeout.map(|timeout| Instant::now() + timeout);
            Ok(Asking { listener: None, socket: Some(socket), deadline, again: None, peers: None })
        })?;
        self.connect_peer_wait(vi)
    }

    /// `VipConnectPeerRequest`: both ends call it, each with the other's address.
    ///
    /// # Errors
    /// As for [`Adapter::connect_request`], but for what the answer tells.
    pub fn connect_peer_request(
        &self,
        vi: ViHandle,
        local: &[u8],
        remote: &Address,
        timeout: Option<Duration>,
    ) -> Result<(), ViplError> {
        self.ask(vi, local, remote, |vi| {
            let deadline = timeout.map(|timeout| Instant::now() + timeout);
            Asking::peer(&self.shared, vi, deadline, local.to_vec(), remote.discriminator.clone())
        })
    }

    fn ask(
        &self,
        vi: ViHandle,
        local: &[u8],
        remote: &Address,
        begin: impl FnOnce(&Vi) -> Result<Asking, ViplError>,
    ) -> Result<(), ViplError> {
        self.check(&[local, &remote.discriminator])?;
        self.with(|state| {
            let vi = state.vis.get_mut(vi.0).ok_or(ViplError::InvalidParameter)?;
            if vi.state != ViState::Idle {
                return Err(ViplError::InvalidState);
            }
            if remote.host != state.common.attributes.local {
                return Err(ViplError::NotReachable);
            }
            vi.answer = None;
            vi.asking = Some(begin(vi)?);
            vi.state = ViState::ConnectPending;
            Ok(())
        })?;
        // The thread of the adapter minds the deadline.
        self.shared.ring();
        Ok(())
    }

    /// `VipConnectPeerDone`, and how `VipConnectRequest` ended: the attributes of the remote VI.
    ///
    /// # Errors
    /// [`ViplError::NotDone`] while there is no answer; [`ViplError::Timeout`], [`ViplError::Reject`],
    /// [`ViplError::NoMatch`], or the code of the attribute that is not that of the remote VI;
    /// [`ViplError::InvalidParameter`], [`ViplError::InvalidState`] if nothing was asked.
    pub fn connect_result(&self, vi: ViHandle) -> Result<RemoteAttributes, ViplError> {
        self.with(|state| result(state, vi))
    }

    /// `VipConnectPeerWait`.
    ///
    /// # Errors
    /// As for [`Adapter::connect_result`].
    pub fn connect_peer_wait(&self, vi: ViHandle) -> Result<RemoteAttributes, ViplError> {
        let answered = self.wait_for_answer(|state| match result(state, vi) {
            Err(ViplError::NotDone) => None,
            answer => Some(answer),
        });
        answered.unwrap_or(Err(ViplError::Timeout))
    }
}

fn result(state: &State, vi: ViHandle) -> Result<RemoteAttributes, ViplError> {
    let vi = state.vis.get(vi.0).ok_or(ViplError::InvalidParameter)?;
    match vi.answer {
        Some(answer) => answer,
        None if vi.asking.is_some() => Err(ViplError::NotDone),
        None => Err(ViplError::InvalidState),
    }
}

fn readable_within(socket: &OwnedFd, time: Duration) -> bool {
    let mut sockets = [PollFd::new(socket, PollFlags::IN)];
    matches!(poll(&mut sockets, Some(&timespec(time))), Ok(count) if count > 0)
}
