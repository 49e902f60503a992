//! Arbitrary octets as heads of LAM, MPICH and MVICH, and as what comes over a connection to a library.

use wiretwin_msg::library::{Call, ConnectionId, Content, Library, Outcome, Ready, Request};
use wiretwin_msg::mpi::stream::{Heads, StreamMpi, fuzz};
use wiretwin_msg::mpi::vias;
use wiretwin_proto::{MessageId, Output, Payload};
use wiretwin_units::{Bytes, SimTime};

const NOW: SimTime = SimTime::ZERO;
const LINE: ConnectionId = ConnectionId(0);

/// Panics if a head is not the same when it is written and read again, or if a library does, or never
/// ends, whatever a peer says.
pub fn check(octets: &[u8]) {
    for heads in [Heads::Lam, Heads::P4] {
        fuzz::round_trip(heads, octets);
    }
    vias::fuzz::round_trip(octets);
    let step = usize::from(octets.first().copied().unwrap_or(0)) % 90 + 1;
    for mut one in [StreamMpi::lam(0, 2, Bytes::new(200)), StreamMpi::mpich(0, 2)] {
        one.handle(NOW, Outcome::Given { connection: LINE, rank: 1 });
        for (number, bytes) in [(1, 3), (2, 200), (3, 130_000)] {
            one.send(NOW, Request(number), 1, 0, Bytes::new(bytes));
            one.receive(NOW, Request(10 + number), (number == 1).then_some(1), None, Bytes::new(bytes));
        }
        let mut line = Content::new();
        for (index, piece) in octets.chunks(step).enumerate() {
            line.push_octets(piece);
            if index % 2 == 1 {
                // As data of a message would come.
                line.push_body(Payload::whole(MessageId(99), Bytes::new(piece[0].into())));
            }
        }
        let mut left = 4 * octets.len() + 200;
        while left > 0 {
            one.progress(NOW);
            let before = line.length();
            settle(&mut one, &mut line, &mut left);
            if line.length() == before {
                break;
            }
        }
        assert!(left > 0, "it asks for more than there is, for ever");
    }
}

fn settle(one: &mut StreamMpi, line: &mut Content, left: &mut usize) {
    while *left > 0 {
        match one.poll_output() {
            Output::Transmit(call) => {
                *left -= 1;
                match call {
                    Call::Write { connection, mut content, .. } => {
                        content.clear();
                        one.handle(NOW, Outcome::Wrote { connection, rest: content });
                    }
                    Call::Read { connection, most, .. } => {
                        let mut content = Content::new();
                        line.move_to(most, &mut content);
                        one.handle(NOW, Outcome::Read { connection, content: &mut content });
                    }
                    Call::Select { .. } => one.handle(NOW, Outcome::Ready(&[Ready::Readable(LINE)])),
                    other => panic!("not a call of this library: {other:?}"),
                }
            }
            Output::Timeout(_) => return,
            _ => {}
        }
    }
}
