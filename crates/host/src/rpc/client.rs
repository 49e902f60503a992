//! A client over a real socket.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use wiretwin_msg::rpc::client::{
    CallError, CallId, Client, Completed, Config, Failure, Mode, Transmit, Transport,
};
use wiretwin_msg::rpc::record::RecordReceiver;
use wiretwin_msg::rpc::{Incoming, Message};
use wiretwin_proto::Output;
use wiretwin_units::{Bytes, SimTime};

use super::{LARGEST_DATAGRAM, LARGEST_RECORD, time};
use crate::Clock;

/// A client of one program at one server. Every call ends within its total time.
#[derive(Debug)]
pub struct RpcClient {
    machine: Client<Arc<[u8]>>,
    server: SocketAddr,
    clock: Clock,
    datagrams: Option<UdpSocket>,
    connection: Option<(TcpStream, RecordReceiver)>,
    /// What the buffer for arrivals is.
    room: Vec<u8>,
    completed: Vec<Completed<Arc<[u8]>>>,
}

/// Why a call has no results.
#[derive(Debug)]
pub enum RpcClientError {
    /// It was not made.
    Call(CallError),
    /// It was made.
    Failed(Failure),
    /// The socket says so.
    Socket(io::Error),
}

impl fmt::Display for RpcClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Call(error) => error.fmt(f),
            Self::Failed(failure) => failure.fmt(f),
            Self::Socket(error) => write!(f, "socket: {error}"),
        }
    }
}

impl std::error::Error for RpcClientError {}

impl From<io::Error> for RpcClientError {
    fn from(error: io::Error) -> Self {
        Self::Socket(error)
    }
}

impl RpcClient {
    /// A client of the program that `config` names, at `server`. Over a stream nothing is sent before the
    /// first call.
    ///
    /// # Errors
    /// That of the system if there is no socket to be had.
    pub fn new(config: Config, server: SocketAddr, first_xid: u32) -> io::Result<Self> {
        let datagrams = match config.transport {
            Transport::Stream { .. } => None,
            Transport::Datagram { .. } => {
                let unspecified: SocketAddr = match server {
                    SocketAddr::V4(_) => ([0, 0, 0, 0], 0).into(),
                    SocketAddr::V6(_) => ([0_u16; 8], 0).into(),
                };
                let socket = UdpSocket::bind(unspecified)?;
                // Only the server's datagrams come in.
                socket.connect(server)?;
                Some(socket)
            }
        };
        Ok(Self {
            machine: Client::new(config, first_xid),
            server,
            clock: Clock::start(),
            datagrams,
            connection: None,
            room: vec![0; LARGEST_DATAGRAM],
            completed: Vec::new(),
        })
    }

    /// Calls a procedure and waits for its results.
    ///
    /// # Errors
    /// [`RpcClientError`].
    pub fn call(&mut self, procedure: u32, arguments: &[u8]) -> Result<Arc<[u8]>, RpcClientError> {
        let now = time(&self.clock);
        let call = self
            .machine
            .call(now, procedure, arguments.into(), Mode::Blocking)
            .map_err(RpcClientError::Call)?;
        loop {
            let next = self.drain()?;
            if let Some(result) = self.take(call) {
                return result.map_err(RpcClientError::Failed);
            }
            let next = next.expect("a call that waits has a deadline");
            self.wait(next)?;
            if time(&self.clock) >= next {
                self.machine.handle_timeout(next);
            }
        }
    }

    /// Calls a procedure that does not reply, and does not wait. Over a stream it may go with a later
    /// call, or with [`RpcClient::flush`].
    ///
    /// # Errors
    /// [`RpcClientError`].
    pub fn batch(&mut self, procedure: u32, arguments: &[u8]) -> Result<(), RpcClientError> {
        let now = time(&self.clock);
        self.machine.call(now, procedure, arguments.into(), Mode::Batched).map_err(RpcClientError::Call)?;
        self.drain().map(drop)
    }

    /// Sends the batched calls that wait.
    ///
    /// # Errors
    /// [`RpcClientError`].
    pub fn flush(&mut self) -> Result<(), RpcClientError> {
        self.machine.flush(time(&self.clock));
        self.drain().map(drop)
    }

    fn take(&mut self, call: CallId) -> Option<Result<Arc<[u8]>, Failure>> {
        let at = self.completed.iter().position(|completed| completed.call == call)?;
        Some(self.completed.swap_remove(at).result)
    }

    /// Does what the machine asks; the time of its next timeout.
    fn drain(&mut self) -> Result<Option<SimTime>, RpcClientError> {
        loop {
            match self.machine.poll_output() {
                Output::Transmit(Transmit::Datagram(call)) => {
                    let socket = self.datagrams.as_ref().expect("it was made for datagrams");
                    match socket.send(&call.octets()) {
                        // Nobody there, as far as an earlier datagram was told: the time-out decides.
                        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
                        sent => drop(sent?),
                    }
                }
                Output::Transmit(Transmit::Connect) => self.connect(),
                Output::Transmit(Transmit::Write(write)) => {
                    let Some((stream, _)) = &mut self.connection else { continue };
                    if stream.write_all(&write.octets()).is_err() {
                        self.close();
                    }
                }
                Output::Deliver(completed) => self.completed.push(completed),
                Output::Work(_) | Output::Event(_) => {}
                Output::Timeout(next) => return Ok(next),
            }
        }
    }

    fn connect(&mut self) {
        let now = time(&self.clock);
        let made = TcpStream::connect_timeout(&self.server, CONNECT_LIMIT).and_then(|stream| {
            stream.set_nodelay(true)?;
            stream.set_write_timeout(Some(CONNECT_LIMIT))?;
            Ok(stream)
        });
        match made {
            Ok(stream) => {
                self.connection = Some((stream, RecordReceiver::new(Bytes::new(LARGEST_RECORD))));
                self.machine.handle_connected(now);
            }
            Err(_) => self.machine.handle_closed(now),
        }
    }

    fn close(&mut self) {
        self.connection = None;
        self.machine.handle_closed(time(&self.clock));
    }

    /// Waits for what arrives, no longer than until then.
    fn wait(&mut self, until: SimTime) -> Result<(), RpcClientError> {
        let Some(left) = until.checked_since(time(&self.clock)) else { return Ok(()) };
        // A time-out of zero would be none at all.
        let limit = Some(Duration::from_nanos(left.as_ns()).max(Duration::from_micros(1)));
        let arrived = match (&self.datagrams, &mut self.connection) {
            (Some(socket), _) => {
                socket.set_read_timeout(limit)?;
                socket.recv(&mut self.room)
            }
            (None, Some((stream, _))) => {
                stream.set_read_timeout(limit)?;
                stream.read(&mut self.room)
            }
            // The machine has been told, and has said what it makes of it.
            (None, None) => return Ok(()),
        };
        let octets = match arrived {
            Ok(octets) => octets,
            Err(error) => {
                use io::ErrorKind::{ConnectionRefused, Interrupted, TimedOut, WouldBlock};
                match error.kind() {
                    TimedOut | WouldBlock | Interrupted => {}
                    ConnectionRefused if self.datagrams.is_some() => {}
                    _ if self.connection.is_some() => self.close(),
                    _ => return Err(error.into()),
                }
                return Ok(());
            }
        };
        let octets = &self.room[..octets];
        let now = time(&self.clock);
        let Some((_, receiver)) = &mut self.connection else {
            if let Incoming::Reply(reply) = Incoming::parse(octets) {
                self.machine.handle_reply(now, reply);
            }
            return Ok(());
        };
        let mut alive = !octets.is_empty() && receiver.handle_octets(octets).is_ok();
        while let Some(record) = receiver.poll_record() {
            match Incoming::parse(&record) {
                Incoming::Reply(reply) => self.machine.handle_reply(now, reply),
                // Choice: what is no reply ends the connection, like a record over the bound.
                _ => alive = false,
            }
        }
        if !alive {
            self.close();
        }
        Ok(())
    }
}

/// How long making a connection, or one write, may take.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
