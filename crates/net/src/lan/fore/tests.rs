//! Messages over circuits that lose PDUs, with the time they take.

use std::collections::BTreeMap;

use wiretwin_msg::library::{Call, CircuitId, Content};
use wiretwin_units::{Bytes, Span};

use super::super::activity::Activity;
use super::super::echo::round_trips;
use super::super::tests::{PLAIN, SERIES_100, Want, lan};
use super::*;
use crate::SimComm;
use crate::local::run;

fn reliable() -> Want {
    Want { stack: "fore+reliable/aal5", switch: true, ..PLAIN }
}

fn price(activity: Activity, bytes: u64) -> u64 {
    (activity as u64 + 1) * (1_000_000 + 1_000 * bytes)
}

#[test]
fn a_small_message_takes_what_the_sum_of_its_parts_says() {
    use Activity::*;
    // 4 octets behind a head of 16, behind one of 16: 36, a cell.
    let library = price(Library, 4) + price(UserCopy, 20) + price(RecordMark, 20);
    let send = price(Trap, 0) + price(ForeSend, 36) + price(CopyIn, 36) + 11_000 + 1_300_000;
    let dma = 100_000 + 48 * 25_000;
    let wire = 4_320_000 + 100_000;
    let receive = 1_700_000 + 19_000 + price(Interrupt, 0) + price(PduInterrupt, 0);
    // It slept in select, and then reads: a system call of its own.
    let read = price(ContextSwitch, 0) + price(Trap, 0) + price(ForeReceive, 0) + price(CopyOut, 36);
    let last = price(RecordMark, 20) + price(UserCopy, 20) + price(Library, 4);
    let latency = library + send + dma + wire + dma + receive + read + last;
    let want = Want { switch: false, ..reliable() };
    let mut lan = lan(&want, true);
    let times = round_trips(&mut lan, Bytes::new(4), 3).expect("an echo that ends");
    assert_eq!(times.iter().map(|time| time.as_ps()).collect::<Vec<_>>(), [2 * latency; 3]);
    for anatomy in lan.anatomies() {
        let sum: Span =
            anatomy.parts.iter().map(|part| part.waited + (part.segment.end - part.segment.start)).sum();
        assert_eq!(sum, anatomy.ended - anatomy.begun);
    }
}

#[test]
fn lost_cells_are_repaired_on_both_layers_and_adapters() {
    for (stack, adapter) in [
        ("fore+reliable/aal5", SERIES_100),
        ("fore+reliable/aal34", PLAIN.adapter),
        ("pvm-fore/aal5", PLAIN.adapter),
    ] {
        let more = "\"cut_messages\": false, \"cell_loss\": 0.0005";
        let mut lan = lan(&Want { stack, adapter, more, ..reliable() }, false);
        let times = round_trips(&mut lan, Bytes::new(60_000), 8).expect("nothing is lost for good");
        assert_eq!(times.len(), 8);
        let losses = lan.losses();
        assert!(losses.on_links > 3 && losses.pdus > 2, "{stack}: {losses:?}");
        assert_eq!(lan.packets.len(), 0, "{stack}: what is lost is forgotten");
    }
}

#[test]
fn a_pdu_that_is_too_long_is_refused_and_none_is_sent() {
    let mut lan = lan(&reliable(), false);
    let mut content = Content::new();
    content.push_zeros(4097);
    lan.runtimes[0].calls.push_back(Call::SendPdu { circuit: CircuitId(0), content });
    lan.give(0, Action::Call { process: 0 });
    assert!(!lan.step());
    assert_eq!((lan.passed()[0].1.taken, lan.packets.len()), (0, 0));
}

#[test]
fn a_reader_that_has_no_room_loses_and_the_layer_repairs_it() {
    // Room for two full PDUs before a reader that computes while they come.
    let text = super::super::tests::json(&reliable()).replace("10000000,", "8192,");
    let config = super::super::Config::from_json(&text).expect("a network that can be");
    let lan = Lan::new(config, 7, false);
    let program = async |comm: &mut SimComm| {
        use wiretwin_prog::{Comm, Outcome, Rank, Source, Tag, TagMatch, Work};
        let mut buffer = vec![0; 40_000];
        if comm.rank() == Rank(0) {
            buffer.fill(7);
            comm.send(Rank(1), Tag(1), &buffer).await?;
        } else {
            comm.compute(Work { kind: "points", count: 1 }, || ()).await;
            comm.recv(Source::Any, TagMatch::Any, &mut buffer).await?;
        }
        let verified = buffer.iter().all(|octet| *octet == 7);
        Ok(Outcome::new(comm.now(), 0, verified))
    };
    let costs = BTreeMap::from([("points".to_string(), 1_000_000_000_000)]);
    let (lan, outcomes) = run(lan, costs, program).expect("a run that ends");
    assert!(outcomes.iter().all(|outcome| outcome.verified));
    assert!(lan.losses().unread > 0, "{:?}", lan.losses());
}

#[test]
fn programs_compute_the_right_result_while_cells_are_lost() {
    use wiretwin_prog::jacobi::{JacobiParams, jacobi};
    let more = "\"cut_messages\": false, \"cell_loss\": 0.02";
    for stack in ["fore+reliable/aal5", "pvm-fore/aal34"] {
        let want = Want { stack, hosts: 4, more, ..reliable() };
        let params = JacobiParams { rows: 40, columns: 40, iterations: 5 };
        let program = async move |comm: &mut SimComm| jacobi(comm, &params).await;
        let (net, outcomes) = run(lan(&want, false), BTreeMap::new(), program).expect("a jacobi");
        assert!(outcomes.iter().all(|outcome| outcome.verified), "{stack}");
        assert!(net.losses().pdus > 0, "{stack}: {:?}", net.losses());
    }
}
