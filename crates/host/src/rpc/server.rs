//! A server over real sockets: a port of UDP and the same one of TCP.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use wiretwin_msg::rpc::record::RecordReceiver;
use wiretwin_msg::rpc::server::{Config, ConnectionId, Request, Server, Service, Transmit};
use wiretwin_msg::rpc::{Incoming, Message, Refusal};
use wiretwin_proto::Output;
use wiretwin_units::Bytes;

use super::{LARGEST_DATAGRAM, LARGEST_RECORD, time};
use crate::Clock;

/// What a program makes of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reaction {
    /// These results, in the form of XDR.
    Results(Arc<[u8]>),
    /// No results.
    Refused(Refusal),
    /// No reply: the call was batched.
    Silence,
}

/// A server. It does one thing after the other.
#[derive(Debug)]
pub struct RpcServer {
    machine: Server<SocketAddr, Arc<[u8]>>,
    clock: Clock,
    datagrams: UdpSocket,
    listener: TcpListener,
    connections: BTreeMap<ConnectionId, Connection>,
    next: u64,
    room: Vec<u8>,
}

#[derive(Debug)]
struct Connection {
    stream: TcpStream,
    receiver: RecordReceiver,
}

impl RpcServer {
    /// A server at an address; port 0 for one that is free over both transports.
    ///
    /// # Errors
    /// That of the system, for a port that is taken.
    pub fn bind(config: Config, address: SocketAddr) -> io::Result<Self> {
        let mut last = None;
        // A free port of TCP may be taken over UDP.
        for _ in 0..if address.port() == 0 { 16 } else { 1 } {
            let listener = TcpListener::bind(address)?;
            match UdpSocket::bind(listener.local_addr()?) {
                Ok(datagrams) => {
                    listener.set_nonblocking(true)?;
                    datagrams.set_nonblocking(true)?;
                    return Ok(Self {
                        machine: Server::new(config, Arc::from([])),
                        clock: Clock::start(),
                        datagrams,
                        listener,
                        connections: BTreeMap::new(),
                        next: 0,
                        room: vec![0; LARGEST_DATAGRAM],
                    });
                }
                Err(error) => last = Some(error),
            }
        }
        Err(last.expect("it was tried"))
    }

    /// Where it is, over both transports.
    ///
    /// # Errors
    /// That of the system.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Takes a program in.
    pub fn register(&mut self, service: Service) {
        self.machine.register(service);
    }

    /// How many connections there are.
    pub fn connections(&self) -> usize {
        self.connections.len()
    }

    /// Serves what is there, after waiting for it no longer than `limit`.
    ///
    /// # Errors
    /// That of the system if it cannot wait; what goes wrong with one peer ends its connection only.
    pub fn step(
        &mut self,
        limit: Duration,
        mut program: impl FnMut(&Request<SocketAddr, Arc<[u8]>>) -> Reaction,
    ) -> io::Result<()> {
        let ids: Vec<_> = self.connections.keys().copied().collect();
        let mut polled =
            vec![PollFd::new(&self.datagrams, PollFlags::IN), PollFd::new(&self.listener, PollFlags::IN)];
        polled.extend(
            self.connections.values().map(|connection| PollFd::new(&connection.stream, PollFlags::IN)),
        );
        let limit = Timespec { tv_sec: limit.as_secs() as i64, tv_nsec: limit.subsec_nanos().into() };
        match poll(&mut polled, Some(&limit)) {
            Err(rustix::io::Errno::INTR) => return Ok(()),
            done => drop(done?),
        }
        let ready: Vec<bool> = polled.iter().map(|each| !each.revents().is_empty()).collect();
        if ready[0] {
            self.receive(&mut program);
        }
        if ready[1] {
            self.accept();
        }
        for (id, _) in ids.into_iter().zip(&ready[2..]).filter(|(_, ready)| **ready) {
            self.read(id, &mut program);
        }
        Ok(())
    }

    fn receive(&mut self, program: &mut impl FnMut(&Request<SocketAddr, Arc<[u8]>>) -> Reaction) {
        while let Ok((octets, peer)) = self.datagrams.recv_from(&mut self.room) {
            let incoming = Incoming::parse(&self.room[..octets]);
            self.machine.handle_datagram(time(&self.clock), peer, incoming);
            self.drain(program);
        }
    }

    fn accept(&mut self) {
        while let Ok((stream, _)) = self.listener.accept() {
            let prepared = stream.set_nodelay(true).and_then(|()| {
                stream.set_nonblocking(false)?;
                stream.set_write_timeout(Some(WRITE_LIMIT))
            });
            if prepared.is_err() || self.connections.len() >= MOST_CONNECTIONS {
                continue;
            }
            let id = ConnectionId(self.next);
            self.next += 1;
            let receiver = RecordReceiver::new(Bytes::new(LARGEST_RECORD));
            self.connections.insert(id, Connection { stream, receiver });
            self.machine.handle_connected(time(&self.clock), id);
        }
    }

    fn read(
        &mut self,
        id: ConnectionId,
        program: &mut impl FnMut(&Request<SocketAddr, Arc<[u8]>>) -> Reaction,
    ) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        // One reading: it was said to be ready, and does not wait.
        let alive = match connection.stream.read(&mut self.room) {
            Ok(0) => false,
            Ok(octets) => connection.receiver.handle_octets(&self.room[..octets]).is_ok(),
            Err(error) => error.kind() == io::ErrorKind::Interrupted,
        };
        while let Some(record) =
            self.connections.get_mut(&id).and_then(|connection| connection.receiver.poll_record())
        {
            self.machine.handle_record(time(&self.clock), id, Incoming::parse(&record));
            self.drain(program);
        }
        if !alive {
            self.close(id);
        }
    }

    fn close(&mut self, id: ConnectionId) {
        self.connections.remove(&id);
        self.machine.handle_closed(time(&self.clock), id);
    }

    fn drain(&mut self, program: &mut impl FnMut(&Request<SocketAddr, Arc<[u8]>>) -> Reaction) {
        loop {
            match self.machine.poll_output() {
                Output::Deliver(request) => {
                    let now = time(&self.clock);
                    match program(&request) {
                        Reaction::Results(results) => self.machine.reply(now, request.id, Ok(results)),
                        Reaction::Refused(refusal) => self.machine.reply(now, request.id, Err(refusal)),
                        Reaction::Silence => self.machine.no_reply(now, request.id),
                    };
                }
                Output::Transmit(Transmit::Datagram(peer, reply)) => {
                    // One that is lost here is like one that is lost on the way.
                    let _lost = self.datagrams.send_to(&reply.octets(), peer);
                }
                Output::Transmit(Transmit::Write(id, write)) => {
                    let Some(connection) = self.connections.get_mut(&id) else { continue };
                    if connection.stream.write_all(&write.octets()).is_err() {
                        self.close(id);
                    }
                }
                Output::Transmit(Transmit::Close(id)) => self.close(id),
                Output::Work(_) | Output::Event(_) => {}
                Output::Timeout(_) => return,
            }
        }
    }
}

/// How long one write may take: a peer that does not read holds everybody up no longer.
const WRITE_LIMIT: Duration = Duration::from_secs(2);
/// Connections at once; one more is closed.
const MOST_CONNECTIONS: usize = 256;
