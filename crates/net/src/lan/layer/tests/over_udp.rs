//! Remote procedure calls over UDP: what a datagram carries, what is lost, what comes twice.

use super::*;

fn over(lower: &'static str) -> Want {
    match lower {
        "aal5" => Want { stack: "rpc/udp/aal5", ..framed() },
        _ => Want { stack: "rpc/udp/ethernet", adapter: FRAMES, switch: false, more: SMALL, ..PLAIN },
    }
}

/// Calls of 8 octets that say which they are; the server answers with the same and 1000 octets, and counts.
async fn numbered(comm: &mut SimComm, calls: u64) -> Result<u64, wiretwin_prog::ProgramError> {
    let (mut seen, mut reply) = (0, [0; 1008]);
    for number in 0..calls {
        if comm.rank() == Rank(0) {
            comm.send(Rank(1), Tag(3), &number.to_le_bytes()).await?;
            comm.recv(Source::Rank(Rank(1)), TagMatch::Any, &mut reply).await?;
            assert_eq!(reply[..8], number.to_le_bytes());
        } else {
            let mut call = [0; 8];
            let status = comm.recv(Source::Any, TagMatch::Any, &mut call).await?;
            assert_eq!((status.source, status.tag), (Rank(0), Tag(3)));
            assert_eq!(u64::from_le_bytes(call), seen, "each is carried out once, in order");
            seen += 1;
            reply[..8].copy_from_slice(&call);
            comm.send(Rank(0), Tag(0), &reply).await?;
        }
    }
    Ok(seen)
}

fn ended() -> Ended {
    Ended::new(Span::ZERO, 0, true)
}

#[test]
fn a_message_is_a_datagram_there_and_one_back_on_every_network() {
    for lower in ["aal5", "ethernet"] {
        for bytes in [0, 1, 1000, 8756] {
            let mut lan = lan(&over(lower), true);
            let times = round_trips(&mut lan, Bytes::new(bytes), 6).expect("an echo that ends");
            assert!(times[0] > times[5], "the first asks the port mapper: {times:?}");
            assert_eq!(lan.anatomies().len(), 12);
            for anatomy in lan.anatomies() {
                let busy = |part: &super::super::super::trail::Part| part.segment.end - part.segment.start;
                let sum: Span = anatomy.parts.iter().map(|part| part.waited + busy(part)).sum();
                assert_eq!(sum, anatomy.ended - anatomy.begun, "{bytes} bytes");
            }
        }
    }
}

#[test]
fn a_call_takes_the_cells_of_its_datagram() {
    // 8 of LLC/SNAP, 28 of UDP and IP, a head of 40 or 24, a length of 4, 8 of AAL 5: 100 octets are 188 there and
    // 172 back.
    let count = |rounds| {
        let mut lan = lan(&over("aal5"), false);
        round_trips(&mut lan, Bytes::new(100), rounds).expect("an echo that ends");
        let passed = lan.passed();
        (passed[0].1.taken, passed[2].1.taken)
    };
    let ((there, back), (more_there, more_back)) = (count(5), count(6));
    assert_eq!((more_there - there, more_back - back), (4, 4));
}

#[test]
fn a_lost_call_or_reply_is_made_up_for_by_sending_the_call_again() {
    let lossy = Want { more: LOSSY, ..over("aal5") };
    let program = async |comm: &mut SimComm| {
        numbered(comm, 60).await?;
        Ok(ended())
    };
    let (lan, _) = run(lan(&lossy, false), BTreeMap::new(), program).expect("every call ends");
    assert!(lan.losses().on_links >= 3, "{:?}", lan.losses());
    // A call whose datagram or reply is lost takes 5 s more.
    assert!(lan.now().as_ps() > 3 * 5_000_000_000_000, "{}", lan.now().as_ps());
}

const LOSSY: &str = r#""cut_messages": true, "cell_loss": 0.003, "socket": {"tcp": "sunos41", "buffer_bytes": 32768, "nodelay": true, "mtu_bytes": 9188, "encapsulation_bytes": 8}"#;
const DEAF: &str = r#""cut_messages": true, "cell_loss": 1, "socket": {"tcp": "sunos41", "buffer_bytes": 32768, "nodelay": true, "mtu_bytes": 9188, "encapsulation_bytes": 8}"#;

#[test]
fn a_call_that_nothing_answers_ends_after_its_total_time() {
    let deaf = Want { more: DEAF, ..over("aal5") };
    let program = async |comm: &mut SimComm| {
        if comm.rank() == Rank(0) {
            numbered(comm, 1).await?;
        }
        Ok(ended())
    };
    let error = run(lan(&deaf, false), BTreeMap::new(), program).err().expect("nothing comes");
    assert!(error.to_string().contains("nothing came within 25000000000000 ps"), "{error}");
}

#[test]
fn a_message_longer_than_a_datagram_is_refused_and_one_that_nobody_waits_for_goes_once() {
    program(&over("aal5"), async |comm: &mut SimComm| {
        if comm.rank() == Rank(0) {
            let error = comm.send(Rank(1), Tag(0), &[0; 8757]).await.expect_err("no datagram");
            assert!(error.to_string().contains("8757") && error.to_string().contains("8756"), "{error}");
            comm.send(Rank(1), Tag(1), &[1; 4]).await?;
            comm.send(Rank(1), Tag(2), &[2; 8756]).await?;
        } else {
            let mut buffer = vec![0; 8756];
            for tag in [1, 2] {
                let status = comm.recv(Source::Any, TagMatch::Any, &mut buffer).await?;
                assert_eq!((status.tag, buffer[0]), (Tag(tag), tag as u8));
            }
        }
        Ok(())
    });
}
