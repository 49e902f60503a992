//! How ranks learn where the NICs of the others are.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr};

use wiretwin_msg::via::HostAddress;

use crate::rendezvous::{Meeting, MeetingError};
use crate::socket::SocketOptions;
use crate::vipl::{self, Reach, host_of};

/// What a rank tells of itself: its address, and a name for the network, of which rank 0's is taken.
const CARD: usize = 4 + NAME;
/// Letters of a network's name.
const NAME: usize = 16;

/// Meets the others: the network's name, and the ranks' hosts, unless all are on this one.
pub(super) fn hosts(
    meeting: &Meeting<'_>,
    reach: Reach,
) -> Result<(String, Option<Vec<HostAddress>>), MeetingError> {
    let name = vipl::network_of(meeting.directory);
    let ip = match reach {
        Reach::Memory => {
            drop(meeting.unix()?);
            return Ok((name, None));
        }
        Reach::Udp(ip) | Reach::Packet(ip) => ip,
    };
    let options = SocketOptions { address: IpAddr::V4(ip), ..SocketOptions::default() };
    let connections = meeting.tcp(&options)?;
    let card = [&ip.octets()[..], name.as_bytes()].concat();
    let mut cards = vec![[0; CARD]; connections.len()];
    cards[meeting.rank as usize].copy_from_slice(&card);
    let refuse = |rank: usize, error| MeetingError::new(format_args!("hearing where rank {rank} is"), error);
    let others = connections.into_iter().enumerate();
    let mut files: Vec<(usize, File)> =
        others.filter_map(|(rank, socket)| Some((rank, File::from(socket?)))).collect();
    for (rank, file) in &mut files {
        file.write_all(&card).map_err(|error| refuse(*rank, error))?;
    }
    for (rank, file) in &mut files {
        file.read_exact(&mut cards[*rank]).map_err(|error| refuse(*rank, error))?;
    }
    let host = |card: &[u8; CARD]| host_of(Ipv4Addr::new(card[0], card[1], card[2], card[3]));
    let name = String::from_utf8_lossy(&cards[0][4..]).into_owned();
    Ok((name, Some(cards.iter().map(host).collect())))
}
