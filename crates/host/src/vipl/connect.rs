//! Connections: sockets over which two ends agree. Within a host one hands over memory; between hosts each tells where
//! its endpoint is, and by which number it knows the connection.
//!
//! A server that waits, and the first of two peers that ask, listen at a place made of the network's name and the
//! discriminators ([`super::place`]); the other end connects and says hello. Nobody listens longer than it waits, so that
//! an address where nobody waits is not found.

use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, epoll, poll};
use rustix::net::sockopt;
use wiretwin_msg::via::{
    Address, Asked, ConnHandle, HostAddress, Reliability, RemoteAttributes, ViHandle, ViState, ViplError,
};
use wiretwin_units::Bytes;

use super::adapter::{Adapter, Shared, State};
use super::carrier::Carrier;
use super::link::{Link, hear, say};
use super::place::{Listener, Place, Ports, digest, hear_packet, host_of, ip_of, say_packet, stands};
use super::remote::Cookie;
use super::vi::{Common, Vi};
use super::wire::Wire;
use crate::direct;
use crate::rendezvous::timespec;

/// How long one that has connected may take to say hello.
const MANNERS: Duration = Duration::from_secs(1);
/// How often a wait looks whether its adapter is still open.
const SLICE: Duration = Duration::from_millis(100);
/// How long a peer waits before it looks again for one that does not ask yet.
const PAUSE: Duration = Duration::from_millis(2);
/// Octets of a hello before the discriminators, and the version of it all.
const HELLO: usize = 29;
const VERSION: u8 = 2;
const LONGEST: usize = 1 << 10;
/// How many may have connected to a peer without having said hello; the first goes for one more.
const MOST_GUESTS: usize = 64;
/// What an end says that was accepted between hosts, so that the other knows that it knows.
const CONFIRMED: [u8; 1] = [1];

/// A request for a connection that is under way.
#[derive(Debug, Default)]
pub(super) struct Asking {
    /// Where this end listens, as the first of two peers.
    listener: Option<Listener>,
    /// Those who have connected and have yet to say hello.
    guests: Vec<OwnedFd>,
    /// Where the other end is asked.
    socket: Option<OwnedFd>,
    /// Between hosts: what is said once the connection stands, whether it was, where else the other end may listen, and
    /// the number that this end gives to the connection.
    hello: Vec<u8>,
    said: bool,
    ports: Option<Ports>,
    number: u64,
    deadline: Option<Instant>,
    /// When the other of two peers is looked for again.
    again: Option<Instant>,
    /// Of a peer: its discriminator and the other's address.
    peers: Option<(Vec<u8>, Address)>,
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
    /// The digest of the network's name.
    network: u64,
    from: Vec<u8>,
    to: Vec<u8>,
    way: Way,
}

/// How an end is reached once both agree.
#[derive(Clone, Copy, Debug)]
enum Way {
    /// Whether its memory can be read is seen by this.
    Memory(Cookie),
    /// Its endpoint, and the number that it gives to the connection.
    Network(direct::Address, u64),
}

impl Way {
    fn octets(&self) -> Vec<u8> {
        match self {
            Self::Memory(cookie) => {
                [cookie.address, cookie.number].iter().flat_map(|word| word.to_le_bytes()).collect()
            }
            Self::Network(address, number) => [&address.to_bytes()[..], &number.to_le_bytes()].concat(),
        }
    }

    fn parse(octets: &[u8]) -> Option<Self> {
        let word = |at: usize| octets.get(at..)?.first_chunk().map(|octets| u64::from_le_bytes(*octets));
        match octets.len() {
            16 => Some(Self::Memory(Cookie { address: word(0)?, number: word(8)? })),
            48 => {
                let address = direct::Address::from_bytes(&octets[..direct::Address::BYTES]).ok()?;
                Some(Self::Network(address, word(direct::Address::BYTES)?))
            }
            _ => None,
        }
    }

    /// That of this end, and the number in it.
    fn ours(carrier: Option<&mut Carrier>) -> (Self, u64) {
        match carrier {
            None => (Self::Memory(Cookie::ours()), 0),
            Some(carrier) => {
                let number = carrier.number();
                (Self::Network(carrier.address(), number), number)
            }
        }
    }
}

impl Hello {
    fn emit(&self) -> Vec<u8> {
        let mut octets = vec![VERSION, u8::from(self.peer)];
        octets.extend(attributes_octets(&self.attributes));
        octets.extend(self.network.to_le_bytes());
        let way = self.way.octets();
        for part in [&self.from, &self.to, &way] {
            octets.extend((part.len() as u16).to_le_bytes());
        }
        octets.extend(&self.from);
        octets.extend(&self.to);
        octets.extend(way);
        octets
    }

    fn parse(octets: &[u8]) -> Option<Self> {
        let (head, names) = octets.split_at_checked(HELLO)?;
        let [VERSION, peer] = *head.first_chunk()? else { return None };
        let attributes = parse_attributes(&head[2..15])?;
        let network = u64::from_le_bytes(*head[15..].first_chunk()?);
        let half = |at: usize| usize::from(u16::from_le_bytes([head[at], head[at + 1]]));
        let (from, names) = names.split_at_checked(half(23))?;
        let (to, way) = names.split_at_checked(half(25))?;
        let way = Way::parse(way.get(..half(27))?)?;
        Some(Self { peer: peer != 0, attributes, network, from: from.into(), to: to.into(), way })
    }

    /// The host that it comes from, of an adapter at this address.
    const fn host(&self, local: HostAddress) -> HostAddress {
        match self.way {
            Way::Memory(_) => local,
            Way::Network(address, _) => host_of(*address.datagrams.ip()),
        }
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

/// The place of these discriminators at a host.
fn place(shared: &Shared, host: HostAddress, parts: &[&[u8]]) -> Result<Place, ViplError> {
    let at = if shared.reach.is_network() { Some(ip_of(host).ok_or(ViplError::NotReachable)?) } else { None };
    Place::new(&shared.network, at, parts)
}

/// Says a packet that hands over nothing.
fn tell(shared: &Shared, socket: &OwnedFd, packet: &[u8]) -> io::Result<()> {
    if shared.reach.is_network() { say_packet(socket, packet) } else { say(socket, packet, None) }
}

/// Takes a packet that has come, with the memory that came with it; the octets are none at the end.
fn heard(shared: &Shared, socket: &OwnedFd, packet: &mut [u8]) -> io::Result<(usize, Option<OwnedFd>)> {
    if shared.reach.is_network() { Ok((hear_packet(socket, packet)?, None)) } else { hear(socket, packet) }
}

/// The process at the other end, if its memory can be read.
fn readable(socket: &OwnedFd, cookie: Cookie) -> Option<libc::pid_t> {
    let process = sockopt::socket_peercred(socket).ok()?.pid.as_raw_nonzero().get();
    cookie.is_readable(process).then_some(process)
}

fn watch(shared: &Shared, socket: &OwnedFd, vi: ViHandle) -> Result<(), ViplError> {
    // At each change once: a child of this process may keep a socket open that is closed here.
    let flags = epoll::EventFlags::IN | epoll::EventFlags::RDHUP | epoll::EventFlags::ET;
    // Between hosts a connection takes its time.
    let flags = if shared.reach.is_network() { flags | epoll::EventFlags::OUT } else { flags };
    let data = epoll::EventData::new_u64(vi.0.into());
    epoll::add(&shared.epoll, socket, data, flags).map_err(|_| ViplError::ErrorResource)
}

/// Accepts a request: within a host makes the memory of the connection and hands it over.
fn hand_over(common: &mut Common, vi: &mut Vi, request: Request) -> Result<(), ViplError> {
    let Request { socket, hello } = request;
    let (ours, here) = Way::ours(common.carrier.as_mut());
    let mut reply = vec![0];
    reply.extend(attributes_octets(&vi.attributes().remote_view()));
    reply.extend(ours.octets());
    let wire = match (hello.way, &mut common.carrier) {
        (Way::Memory(cookie), None) => {
            let process = readable(&socket, cookie);
            let memory = Link::memory().map_err(|_| ViplError::ErrorResource)?;
            let link = Link::new(&memory, socket, true, process).map_err(|_| ViplError::ErrorResource)?;
            say(&link.socket, &reply, Some(&memory)).map_err(|_| ViplError::Timeout)?;
            Wire::Memory(Box::new(link))
        }
        (Way::Network(address, there), Some(carrier)) => {
            say_packet(&socket, &reply).map_err(|_| ViplError::Timeout)?;
            let flow = carrier.begin(here, address, there).ok_or(ViplError::ErrorResource)?;
            Wire::network(flow, Some(socket))
        }
        _ => return Err(ViplError::NotReachable),
    };
    vi.connected(wire, hello.attributes);
    Ok(())
}

/// The other end has accepted.
fn taken_over(
    common: &mut Common,
    vi: &mut Vi,
    (socket, here): (OwnedFd, u64),
    (reply, memory): (&[u8], Option<OwnedFd>),
) -> Option<()> {
    let attributes = parse_attributes(reply.get(1..14)?)?;
    let wire = match (Way::parse(reply.get(14..)?)?, &mut common.carrier) {
        (Way::Memory(cookie), None) => {
            let process = readable(&socket, cookie);
            Wire::Memory(Box::new(Link::new(&memory?, socket, false, process).ok()?))
        }
        (Way::Network(address, there), Some(carrier)) => {
            say_packet(&socket, &CONFIRMED).ok()?;
            Wire::network(carrier.begin(here, address, there)?, None)
        }
        _ => return None,
    };
    vi.connected(wire, attributes);
    Some(())
}

impl Asking {
    /// Asks for a connection to whoever listens at a place.
    fn at(
        shared: &Shared,
        common: &mut Common,
        vi: &Vi,
        place: &Place,
        (peer, from, to): (bool, &[u8], &[u8]),
    ) -> Result<Self, ViplError> {
        let (way, number) = Way::ours(common.carrier.as_mut());
        let (attributes, network) = (vi.attributes().remote_view(), digest(&[shared.network.as_bytes()]));
        let hello = Hello { peer, attributes, network, from: from.into(), to: to.into(), way }.emit();
        let mut ports = place.ports().cloned();
        let socket = match &mut ports {
            Some(ports) => ports.dial().ok_or(ViplError::NotReachable)?,
            None => {
                let socket = place.connected()?;
                say(&socket, &hello, None).map_err(|_| ViplError::NoMatch)?;
                socket
            }
        };
        watch(shared, &socket, vi.handle)?;
        let said = ports.is_none();
        Ok(Self { socket: Some(socket), hello, said, ports, number, ..Self::default() })
    }

    /// Asks as a peer.
    ///
    /// The end whose discriminator comes first, or whose host where they are the same, listens, and the other connects
    /// to it; where these are the same too, the first that asks listens. Where that cannot be yet, it is tried again.
    fn peer(
        shared: &Shared,
        common: &mut Common,
        vi: &Vi,
        deadline: Option<Instant>,
        (from, to): (Vec<u8>, Address),
    ) -> Result<Self, ViplError> {
        let local = common.attributes.local;
        let (ours, theirs) = ((&from[..], local.0), (&to.discriminator[..], to.host.0));
        let listens = ours <= theirs;
        let both = if listens { [ours, theirs] } else { [theirs, ours] };
        let place = if shared.reach.is_network() {
            let [(first, host), (second, other)] = both;
            place(shared, HostAddress(host), &[first, &host, second, &other])?
        } else {
            place(shared, local, &[both[0].0, both[1].0])?
        };
        let listener = if listens { place.listener()? } else { None };
        let mut asking = Self { listener, deadline, ..Self::default() };
        if let Some(listener) = &asking.listener {
            watch(shared, &listener.socket, vi.handle)?;
        } else if ours >= theirs {
            match Self::at(shared, common, vi, &place, (true, &from, &to.discriminator)) {
                Ok(asked) => asking = Self { deadline, ..asked },
                Err(ViplError::NoMatch | ViplError::NotReachable) => {}
                Err(error) => return Err(error),
            }
        }
        if asking.listener.is_none() && asking.socket.is_none() {
            asking.again = Some(Instant::now() + PAUSE);
        }
        asking.peers = Some((from, to));
        Ok(asking)
    }

    /// When something is to be done though nothing comes.
    pub fn due(&self) -> Option<Instant> {
        [self.deadline, self.again].into_iter().flatten().min()
    }

    /// Nobody who knows of it listens where it was asked; whether it may be elsewhere.
    fn goes_on(&mut self, shared: &Shared, vi: ViHandle) -> bool {
        let before = self.socket.take();
        let Some(next) = self.ports.as_mut().and_then(Ports::dial) else { return false };
        drop(before);
        let watched = watch(shared, &next, vi).is_ok();
        (self.socket, self.said) = (Some(next), false);
        watched
    }
}

/// A time has come for a VI that asks for a connection.
pub(super) fn expire(shared: &Shared, common: &mut Common, vi: &mut Vi, now: Instant) {
    let Some(asking) = &mut vi.asking else { return };
    if asking.deadline.is_some_and(|deadline| deadline <= now) {
        return vi.answered(ViplError::Timeout);
    }
    if asking.again.is_some_and(|again| again <= now)
        && let (Some(peers), deadline) = (asking.peers.take(), asking.deadline)
    {
        match Asking::peer(shared, common, vi, deadline, peers) {
            Ok(again) => vi.asking = Some(again),
            Err(error) => vi.answered(error),
        }
    }
}

/// Something has come for a VI that asks for a connection; its answer, if that is it.
pub(super) fn greet(shared: &Shared, common: &mut Common, vi: &mut Vi) {
    let Some(mut asking) = vi.asking.take() else { return };
    let answer = if asking.listener.is_some() {
        hear_peer(shared, common, vi, &mut asking)
    } else {
        hear_reply(shared, common, vi, &mut asking)
    };
    match answer {
        Some(Ok(())) => {}
        Some(Err(error)) => vi.answered(error),
        None => vi.asking = Some(asking),
    }
}

/// The first of two peers hears the other.
fn hear_peer(
    shared: &Shared,
    common: &mut Common,
    vi: &mut Vi,
    asking: &mut Asking,
) -> Option<Result<(), ViplError>> {
    let listener = asking.listener.as_ref()?;
    while let Ok(accepted) = listener.accepted() {
        let Some(socket) = accepted else { continue };
        if let Err(error) = watch(shared, &socket, vi.handle) {
            return Some(Err(error));
        }
        if asking.guests.len() == MOST_GUESTS {
            asking.guests.remove(0);
        }
        asking.guests.push(socket);
    }
    let (ours, theirs) = asking.peers.as_ref()?;
    for guest in std::mem::take(&mut asking.guests) {
        let mut packet = [0; LONGEST];
        let hello = match heard(shared, &guest, &mut packet) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                asking.guests.push(guest);
                continue;
            }
            heard => heard.ok().and_then(|(octets, _)| Hello::parse(&packet[..octets])),
        };
        let is_it = |hello: &Hello| {
            hello.peer
                && hello.network == digest(&[shared.network.as_bytes()])
                && hello.to == *ours
                && hello.from == theirs.discriminator
                && hello.host(common.attributes.local) == theirs.host
        };
        let Some(hello) = hello.filter(is_it) else { continue };
        if let Err(error) = vi.attributes().agrees(&hello.attributes) {
            let _ = tell(shared, &guest, &[error.code()]);
            return Some(Err(error));
        }
        return Some(hand_over(common, vi, Request { socket: guest, hello }));
    }
    None
}

fn hear_reply(
    shared: &Shared,
    common: &mut Common,
    vi: &mut Vi,
    asking: &mut Asking,
) -> Option<Result<(), ViplError>> {
    let mut packet = [0; LONGEST];
    let mut answer = Err(io::ErrorKind::NotConnected.into());
    if let Some(socket) = &asking.socket {
        let said = match if asking.said { Ok(true) } else { stands(socket) } {
            Ok(false) => return None,
            Ok(true) if asking.said => Ok(()),
            Ok(true) => say_packet(socket, &asking.hello),
            Err(error) => Err(error),
        };
        asking.said |= said.is_ok();
        answer = said.and_then(|()| heard(shared, socket, &mut packet));
    }
    match answer {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => None,
        Ok((octets, memory)) if octets > 0 && packet[0] == 0 => {
            let socket = asking.socket.take()?;
            let taken = taken_over(common, vi, (socket, asking.number), (&packet[..octets], memory));
            Some(taken.ok_or(ViplError::ErrorResource))
        }
        Ok((octets, None)) if octets > 0 => {
            let code = usize::from(packet[0]).checked_sub(1);
            let error = code.and_then(|code| ViplError::ALL.get(code)).copied();
            Some(Err(error.unwrap_or(ViplError::Reject)))
        }
        // It has stopped listening, or never did: a server waits no more; a peer may be waited for.
        _ if asking.goes_on(shared, vi.handle) => None,
        _ if asking.peers.is_none() => Some(Err(ViplError::NoMatch)),
        _ => {
            (asking.socket, asking.again) = (None, Some(Instant::now() + PAUSE));
            None
        }
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
        let place = place(&self.shared, self.local(), &[local])?;
        let listener = place.listener()?.ok_or(ViplError::ErrorResource)?;
        let deadline = timeout.map(|timeout| Instant::now() + timeout);
        loop {
            let left = deadline.map_or(SLICE, |deadline| deadline.saturating_duration_since(Instant::now()));
            let came = readable_within(&listener.socket, left.min(SLICE));
            self.check(&[])?;
            if !came {
                if left.is_zero() {
                    return Err(ViplError::Timeout);
                }
                continue;
            }
            let Ok(Some(socket)) = listener.accepted() else { continue };
            let Some(hello) = greeting(&self.shared, &socket) else { continue };
            let network = digest(&[self.shared.network.as_bytes()]);
            if hello.peer || hello.to != local || hello.network != network {
                continue;
            }
            let remote = Address { host: hello.host(self.local()), discriminator: hello.from.clone() };
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
        let accepted = self.with(|State { common, vis, requests, .. }| {
            let request = requests.get(&connection.0).ok_or(ViplError::InvalidParameter)?;
            let vi = vis.get_mut(vi.0).ok_or(ViplError::InvalidParameter)?;
            if vi.state != ViState::Idle {
                return Err(ViplError::InvalidState);
            }
            vi.attributes().agrees(&request.hello.attributes)?;
            let request = requests.remove(&connection.0).ok_or(ViplError::InvalidParameter)?;
            watch(&self.shared, &request.socket, vi.handle)?;
            hand_over(common, vi, request)
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
        let _ = tell(&self.shared, &request.socket, &[ViplError::Reject.code()]);
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
        self.ask(vi, local, remote, |common, vi| {
            let place = place(&self.shared, remote.host, &[&remote.discriminator])?;
            let ends = (false, local, &remote.discriminator[..]);
            let deadline = timeout.map(|timeout| Instant::now() + timeout);
            Ok(Asking { deadline, ..Asking::at(&self.shared, common, vi, &place, ends)? })
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
        self.ask(vi, local, remote, |common, vi| {
            let deadline = timeout.map(|timeout| Instant::now() + timeout);
            Asking::peer(&self.shared, common, vi, deadline, (local.to_vec(), remote.clone()))
        })
    }

    fn ask(
        &self,
        vi: ViHandle,
        local: &[u8],
        remote: &Address,
        begin: impl FnOnce(&mut Common, &Vi) -> Result<Asking, ViplError>,
    ) -> Result<(), ViplError> {
        self.check(&[local, &remote.discriminator])?;
        self.with(|State { common, vis, .. }| {
            let vi = vis.get_mut(vi.0).ok_or(ViplError::InvalidParameter)?;
            if vi.state != ViState::Idle {
                return Err(ViplError::InvalidState);
            }
            if remote.host != common.attributes.local && !self.shared.reach.is_network() {
                return Err(ViplError::NotReachable);
            }
            vi.answer = None;
            vi.asking = Some(begin(common, vi)?);
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

/// The hello of one who has connected, if it comes in time.
fn greeting(shared: &Shared, socket: &OwnedFd) -> Option<Hello> {
    let until = Instant::now() + MANNERS;
    let mut packet = [0; LONGEST];
    while readable_within(socket, until.saturating_duration_since(Instant::now())) {
        match heard(shared, socket, &mut packet) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            heard => return heard.ok().and_then(|(octets, _)| Hello::parse(&packet[..octets])),
        }
    }
    None
}

fn readable_within(socket: &OwnedFd, time: Duration) -> bool {
    let mut sockets = [PollFd::new(socket, PollFlags::IN)];
    matches!(poll(&mut sockets, Some(&timespec(time))), Ok(count) if count > 0)
}
