//! Latencies by hand, for an emulation and for an adapter; what is lost and what is not; MPI on top.

use std::collections::BTreeMap;

use wiretwin_prog::Reference;
use wiretwin_prog::jacobi::{JacobiParams, jacobi};
use wiretwin_prog::ring::{RingParams, ring};
use wiretwin_prog::{Comm, CommError, Outcome as Ended, Rank, Source, Tag, TagMatch};

use super::super::config::Config;
use super::super::echo::{EchoError, round_trips};
use super::super::tests::{PLAIN, Want, json, lan};
use super::*;
use crate::SimComm;
use crate::local::run;
use crate::run::RunError;

const FRAMES: &str = r#"{"kind": "frames"}"#;
const M_VIA: &str = r#""cut_messages": true, "vi": {"device": "m-via", "reliability": "unreliable-delivery",
    "mtu_bytes": 1500, "max_transfer_bytes": 32768, "buffers": 32, "buffer_bytes": 2048}"#;
const RELIABLE: &str = r#""cut_messages": true, "vi": {"device": "m-via", "reliability": "reliable-delivery",
    "mtu_bytes": 1500, "max_transfer_bytes": 32768, "buffers": 32, "buffer_bytes": 2048}"#;
const ADAPTER: &str = r#""cut_messages": true, "vi": {"device": "adapter", "reliability": "unreliable-delivery",
    "mtu_bytes": 1500, "max_transfer_bytes": 32768, "buffers": 32, "buffer_bytes": 2048}"#;

const VIA: Want = Want { stack: "via/gige", adapter: FRAMES, more: M_VIA, ..PLAIN };
const MVICH: Want = Want { stack: "mpi-mvich/gige", ..VIA };

fn price(activity: Activity, bytes: u64) -> u64 {
    (activity as u64 + 1) * (1_000_000 + 1_000 * bytes)
}

/// From one adapter's ring into the other host's memory, through the switch: two buses, two lines.
fn wire(octets: u64) -> u64 {
    let bus = 300_000 + octets * 7_000 + 400_000;
    let line = octets * 8 * 1_000 + 100_000;
    2 * bus + 2 * line + 1_000_000
}

fn latency(want: &Want, bytes: u64) -> Vec<u64> {
    let times = round_trips(&mut lan(want, true), Bytes::new(bytes), 4).expect("an echo that ends");
    times.into_iter().map(|time| time.as_ps() / 2).collect()
}

#[test]
fn a_message_over_an_emulation_takes_what_the_sum_of_its_parts_says() {
    use Activity::*;
    // 14 of Ethernet, 38 of the packet's head, the data, 4 of check sequence.
    let octets = 56 + 100;
    let out = price(FastTrap, 0) + price(ViaPacketOut, 100);
    let back = price(Interrupt, 0) + price(ViaCopy, 100) + price(ViaPacketIn, 100) + price(ViaPoll, 0);
    // The receive descriptor is posted again before the answer.
    let expected = out + wire(octets) + back + price(FastTrap, 0);
    let found = latency(&VIA, 100);
    assert!(found.iter().all(|&time| time == expected), "{expected}: {found:?}");
}

#[test]
fn an_adapter_with_vis_takes_nothing_of_the_processor_but_doorbells() {
    use Activity::*;
    let want = Want { more: ADAPTER, ..VIA };
    let expected = 2 * price(Doorbell, 0) + wire(56 + 100) + price(ViaPoll, 0);
    let found = latency(&want, 100);
    assert!(found.iter().all(|&time| time == expected), "{expected}: {found:?}");
}

#[test]
fn the_parts_of_every_message_sum_to_its_latency() {
    for want in [VIA, MVICH, Want { more: ADAPTER, ..VIA }, Want { more: RELIABLE, ..MVICH }] {
        for bytes in [1, 1500, 32_768] {
            let mut lan = lan(&want, true);
            round_trips(&mut lan, Bytes::new(bytes), 3).expect("an echo that ends");
            assert_eq!(lan.anatomies().len(), 6);
            for anatomy in lan.anatomies() {
                let busy = |part: &super::super::trail::Part| part.segment.end - part.segment.start;
                let sum: Span = anatomy.parts.iter().map(|part| part.waited + busy(part)).sum();
                assert_eq!(sum, anatomy.ended - anatomy.begun, "{}, {bytes} bytes", want.stack);
            }
        }
    }
}

#[test]
fn a_message_is_as_long_as_a_descriptor_takes() {
    assert_eq!(latency(&VIA, 32_768).len(), 4);
    let refused = round_trips(&mut lan(&VIA, false), Bytes::new(32_769), 1);
    let error = refused.expect_err("M-VIA's descriptors are of 32 KiB");
    assert!(matches!(&error, EchoError::Refused(_)) && error.to_string().contains("32768"), "{error}");
    let more = M_VIA.replace("32768", "1048576");
    let json = json(&VIA).replace(M_VIA, &more);
    let config = Config::from_json(&json).expect("longer descriptors can be");
    let times = round_trips(&mut Lan::new(config, 7, false), Bytes::mib(1), 2);
    assert_eq!(times.map(|times| times.len()), Ok(2));
}

const DONE: Ended = Ended::new(Span::ZERO, 0, true);

#[test]
fn more_messages_than_receives_are_posted_are_lost_or_cost_the_connection() {
    let flood = async |comm: &mut SimComm| {
        if comm.rank() == Rank(0) {
            for _ in 0..100 {
                comm.send(Rank(1), Tag(1), b"one more").await?;
            }
            return Ok(DONE);
        }
        // Busy elsewhere, so that nothing is posted again.
        comm.compute(wiretwin_prog::Work { kind: "other", count: 1 }, || ()).await;
        for _ in 0..100 {
            comm.recv(Source::Rank(Rank(0)), TagMatch::Any, &mut [0; 8]).await?;
        }
        Ok(DONE)
    };
    let costs = || BTreeMap::from([("other".to_string(), 100_000_000_000)]);
    let error = run(lan(&VIA, false), costs(), flood).err().expect("messages are lost");
    let RunError::Deadlock { blocked, losses } = error else { panic!("{error}") };
    let (ranks, losses) =
        (blocked.iter().map(|one| one.rank).collect::<Vec<_>>(), losses.expect("a local network"));
    assert_eq!((ranks, losses.unread), (vec![1], 68), "32 receives were posted");
    let reliable = Want { more: RELIABLE, ..VIA };
    let error = run(lan(&reliable, false), costs(), flood).err().expect("the connection is over");
    assert!(error.to_string().contains("rank 1") || error.to_string().contains("rank 0"), "{error}");
    // MVICH counts buffers.
    run(lan(&MVICH, false), costs(), flood).expect("nothing is lost");
}

#[test]
fn programs_compute_the_right_result_over_mvich() {
    for want in [MVICH, Want { more: RELIABLE, ..MVICH }, Want { more: ADAPTER, ..MVICH }] {
        let want = Want { hosts: 4, ..want };
        let params = RingParams { elements: 9000, rounds: 2 };
        let program = async move |comm: &mut SimComm| ring(comm, &params, &Reference::default()).await;
        let (_, outcomes) = run(lan(&want, false), BTreeMap::new(), program).expect("a ring");
        assert!(outcomes.iter().all(|outcome| outcome.verified));
        let params = JacobiParams { rows: 40, columns: 40, iterations: 5 };
        let program = async move |comm: &mut SimComm| jacobi(comm, &params).await;
        let (one, outcomes) = run(lan(&want, false), BTreeMap::new(), program).expect("a jacobi");
        assert!(outcomes.iter().all(|outcome| outcome.verified));
        let (other, _) = run(lan(&want, false), BTreeMap::new(), program).expect("a jacobi");
        assert_eq!(one.digest(), other.digest());
    }
}

#[test]
fn messages_of_any_length_and_to_the_rank_itself_go_over_mvich() {
    let program = async |comm: &mut SimComm| {
        let mut buffer = vec![0; 300_000];
        for bytes in [0, 1, 2000, 2001, 16_383, 16_384, 300_000] {
            let message: Vec<u8> = (0..bytes).map(|place| (place % 251) as u8).collect();
            if comm.rank() == Rank(0) {
                comm.send(Rank(1), Tag(3), &message).await?;
            } else {
                let status = comm.recv(Source::Any, TagMatch::Any, &mut buffer).await?;
                assert_eq!((status.source, status.tag, status.bytes), (Rank(0), Tag(3), Bytes::new(bytes)));
                assert_eq!(buffer[..bytes as usize], message);
            }
        }
        let me = comm.rank();
        comm.exchange(
            &[wiretwin_prog::Outgoing { to: me, tag: Tag(9), message: b"self" }],
            &mut [wiretwin_prog::Incoming {
                from: Source::Rank(me),
                tag: TagMatch::Tag(Tag(9)),
                buffer: &mut buffer[..4],
                status: None,
            }],
        )
        .await?;
        assert_eq!(&buffer[..4], b"self");
        Ok(DONE)
    };
    run(lan(&MVICH, false), BTreeMap::new(), program).expect("a run that ends");
    let itself = async |comm: &mut SimComm| {
        let me = comm.rank();
        match comm.send(me, Tag(0), b"x").await {
            Err(CommError::Unsupported(_)) => Ok(DONE),
            other => panic!("{other:?}"),
        }
    };
    run(lan(&VIA, false), BTreeMap::new(), itself).expect("a VI leads to another host");
}

#[test]
fn what_is_wrong_is_named() {
    for (from, to, allowed) in [
        ("m-via", "pigeon", "m-via, adapter"),
        ("unreliable-delivery", "reliable-reception", "unreliable-delivery or reliable-delivery"),
        ("unreliable-delivery", "best", "reliable-reception"),
        ("\"buffers\": 32", "\"buffers\": 3", "16 to 1024"),
        ("32768", "1000", "32768 to"),
        ("\"mtu_bytes\": 1500", "\"mtu_bytes\": 99999", "100 to 9000"),
    ] {
        let json = json(&VIA).replace(M_VIA, &M_VIA.replace(from, to));
        let error = Config::from_json(&json).expect_err(to).to_string();
        assert!(error.contains("vi.") && error.contains(allowed), "{error}");
    }
    // An eager message must find its buffers.
    let json = json(&MVICH).replace("\"vi\"", "\"rendezvous_from_bytes\": 100000, \"vi\"");
    let error = Config::from_json(&json).expect_err("too few buffers").to_string();
    assert!(error.contains("rendezvous_from_bytes") && error.contains("36001"), "{error}");
}
