//! A broadcast over a real socket.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use wiretwin_msg::rpc::broadcast::{Answer, Broadcast, Config, Ended, Event};
use wiretwin_msg::rpc::{Call, Incoming, Message};
use wiretwin_proto::Output;

use super::{LARGEST_DATAGRAM, RpcClientError, time};
use crate::Clock;

/// What a peer has answered.
pub type Heard = Answer<SocketAddr, Arc<[u8]>>;

/// Sends a call to all that hear it at an address, and again as `config` says; the answers in the order in which
/// they came, one a peer, and how it ended. The call is one to port mappers as a rule: theirs is the port that is the
/// same everywhere ([`Question::CallIt`](wiretwin_msg::rpc::mapper::Question::CallIt)).
///
/// # Errors
/// [`RpcClientError`], where the call is longer than a datagram or the system rejects.
pub fn broadcast(
    config: Config,
    call: Call<Arc<[u8]>>,
    to: SocketAddr,
) -> Result<(Vec<Heard>, Ended), RpcClientError> {
    let any: SocketAddr = if to.is_ipv4() { ([0, 0, 0, 0], 0).into() } else { ([0_u16; 8], 0).into() };
    let socket = UdpSocket::bind(any)?;
    socket.set_broadcast(true)?;
    let clock = Clock::start();
    let mut machine = Broadcast::start(time(&clock), config, call).map_err(RpcClientError::Call)?;
    let (mut answers, mut room) = (Vec::new(), vec![0; LARGEST_DATAGRAM]);
    loop {
        let until = match machine.poll_output() {
            Output::Transmit(call) => {
                socket.send_to(&call.octets(), to)?;
                continue;
            }
            Output::Deliver(answer) => {
                answers.push(answer);
                continue;
            }
            Output::Event(Event::Ended(ended)) => return Ok((answers, ended)),
            Output::Event(_) | Output::Work(_) => continue,
            Output::Timeout(until) => until.expect("it has a wait until it has ended"),
        };
        let Some(left) = until.checked_since(time(&clock)).filter(|left| left.as_ns() > 0) else {
            machine.handle_timeout(until);
            continue;
        };
        // A time-out of zero would be none at all.
        socket.set_read_timeout(Some(Duration::from_nanos(left.as_ns()).max(Duration::from_micros(1))))?;
        match socket.recv_from(&mut room) {
            Ok((octets, peer)) => {
                if let Incoming::Reply(reply) = Incoming::parse(&room[..octets]) {
                    machine.handle_reply(time(&clock), peer, reply);
                }
            }
            Err(error) => match error.kind() {
                io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => {}
                // Nobody there, as far as one host says: others may be.
                io::ErrorKind::ConnectionRefused => {}
                _ => return Err(error.into()),
            },
        }
    }
}
