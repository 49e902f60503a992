//! Circuits set up, used, refused and cleared by the calls of processes, with the time that takes.

use std::collections::BTreeMap;

use wiretwin_prog::cast::{CastParams, cast};
use wiretwin_prog::echo::{EchoParams, echo};
use wiretwin_prog::pde::{PdeParams, pde};
use wiretwin_prog::{Comm, CommError, Outcome, ProgramError, Rank, Source, Tag, TagMatch};

use super::super::tests::{PLAIN, SERIES_100, SERIES_200, Want, lan};
use super::super::{Config, Lan};
use super::*;
use crate::SimComm;
use crate::local::run;
use crate::run::RunError;

/// Of so many hosts, with what is said of circuits.
fn want(stack: &'static str, hosts: usize, more: &'static str) -> Want {
    Want { stack, hosts, switch: true, more, ..PLAIN }
}

const ON_DEMAND: &str =
    r#""cut_messages": false, "circuits": {"topology": "demand", "processing_ps": 2000000000}"#;
const MESH: &str = r#""cut_messages": false, "circuits": {"topology": "mesh", "processing_ps": 2000000000}"#;

fn ran<P>(want: &Want, program: P) -> (Lan, Vec<Outcome>)
where
    P: AsyncFn(&mut SimComm) -> Result<Outcome, ProgramError> + Clone + 'static,
{
    let (lan, outcomes) = run(lan(want, false), BTreeMap::new(), program).expect("a run that ends");
    assert!(outcomes.iter().all(|outcome| outcome.verified), "{want:?}");
    (lan, outcomes)
}

async fn done(comm: &SimComm) -> Result<Outcome, ProgramError> {
    Ok(Outcome::new(comm.now(), 0, true))
}

#[test]
fn a_first_message_waits_for_its_circuit_and_the_others_do_not() {
    let round = |rounds| {
        let params = EchoParams { bytes: 40, rounds };
        let program = async move |comm: &mut SimComm| echo(comm, &params).await;
        let (lan, outcomes) = ran(&want("fore+reliable/aal5", 2, ON_DEMAND), program);
        (lan, outcomes[0].elapsed)
    };
    let ((lan, one), (_, two), (_, three)) = (round(1), round(2), round(3));
    assert_eq!(two - one, three - two, "from the second on all are alike");
    let penalty = one - (two - one);
    // Two messages of each set-up are for the switch's processor, and there is one each way.
    let least = Span::from_ms(8);
    assert!(penalty > least && penalty < least + Span::from_ms(4), "{penalty:?}");
    let signalled = lan.signalled().expect("circuits are switched");
    // Request, indication, response, confirmation: twice.
    assert_eq!((signalled.messages, signalled.joined, signalled.refused), (8, 2, 0));
    assert_eq!(lan.calls(), (2, 4), "they stay");
    assert_eq!(lan.packets.len(), 0);
    // Over permanent circuits a round takes what it takes over these.
    let params = EchoParams { bytes: 40, rounds: 2 };
    let plain = want("fore+reliable/aal5", 2, r#""cut_messages": false"#);
    let program = async move |comm: &mut SimComm| echo(comm, &params).await;
    assert_eq!(ran(&plain, program).1[0].elapsed, (two - one) * 2);
}

#[test]
fn a_topology_is_there_from_the_start_and_programs_are_right_on_it() {
    let params = PdeParams { n: 12, accuracy: 3, down: 0, across: 0 };
    for stack in ["fore+reliable/aal5", "pvm-fore/aal34"] {
        for adapter in [SERIES_200, SERIES_100] {
            let program = async move |comm: &mut SimComm| pde(comm, &params).await;
            let (lan, _) = ran(&Want { adapter, ..want(stack, 6, MESH) }, program);
            let signalled = lan.signalled().expect("circuits are switched");
            // Two rows of three: seven edges, a circuit each way, and what the collection needs besides.
            assert!((14..=30).contains(&signalled.joined), "{stack}: {signalled:?}");
            assert_eq!((lan.calls().0 as u64, signalled.parted), (signalled.joined, 0));
        }
    }
}

#[test]
fn one_message_goes_to_all_on_a_tree() {
    let params = CastParams { bytes: 30_000, rounds: 3 };
    for stack in ["fore+reliable/aal5", "pvm-fore/aal5"] {
        let program = async move |comm: &mut SimComm| cast(comm, &params).await;
        let (tree, _) = ran(&want(stack, 5, ON_DEMAND), program);
        let (each, _) = ran(&want(stack, 5, r#""cut_messages": false"#), program);
        let signalled = tree.signalled().expect("circuits are switched");
        // The tree has four leaves, each leaf a circuit back to the root, and the root one to each, on which it
        // acknowledges their answers in the end.
        assert_eq!((signalled.joined, tree.calls().0), (12, 9), "{stack}");
        assert_eq!((tree.sent_to_several(), each.sent_to_several()), (3, 0), "{stack}");
        let sent = |lan: &Lan| {
            let adapter =
                |name: &str| lan.passed().iter().find(|one| one.0 == name).map_or(0, |one| one.1.taken);
            adapter("link 0")
        };
        assert!(3 * sent(&tree) < sent(&each), "{stack}: {} {}", sent(&tree), sent(&each));
        assert_eq!((tree.packets.len(), each.packets.len()), (0, 0), "{stack}");
    }
}

#[test]
fn what_is_lost_of_a_tree_is_repaired_for_whoever_lacks_it() {
    let params = CastParams { bytes: 50_000, rounds: 4 };
    let more = r#""cut_messages": false, "cell_loss": 0.001,
        "circuits": {"topology": "demand", "processing_ps": 2000000000}"#;
    for stack in ["fore+reliable/aal5", "pvm-fore/aal34"] {
        let program = async move |comm: &mut SimComm| cast(comm, &params).await;
        let (lan, _) = ran(&want(stack, 4, more), program);
        assert!(lan.losses().pdus > 3, "{stack}: {:?}", lan.losses());
        assert_eq!(lan.packets.len(), 0, "{stack}: what is lost is forgotten");
    }
}

#[test]
fn circuits_without_channel_or_bandwidth_are_refused_with_the_reason() {
    let to_all = async |comm: &mut SimComm| {
        let (mine, size) = (comm.rank(), comm.size());
        if mine == Rank(0) {
            for to in (1..size).map(Rank) {
                comm.send(to, Tag(1), b"one").await?;
            }
        } else {
            comm.recv(Source::Any, TagMatch::Any, &mut [0; 3]).await?;
        }
        done(comm).await
    };
    let attempt = |circuits: &str| -> Result<Lan, RunError> {
        let text = super::super::tests::json(&want("fore+reliable/aal5", 4, "\"cut_messages\": false"));
        let text = text.replace(
            "\"cut_messages\": false",
            &format!("\"cut_messages\": false, \"circuits\": {circuits}"),
        );
        let config = Config::from_json(&text).expect("a network that can be");
        run(Lan::new(config, 7, false), BTreeMap::new(), to_all).map(|one| one.0)
    };
    let more = |keys: &str| format!(r#"{{"topology": "demand", "processing_ps": 2000000000{keys}}}"#);
    // A line carries 98.1 Mbit/s: three of 40 do not fit, unless they take what is left.
    let lan =
        attempt(&more(r#", "peak_kbit_s": 40000, "minimum_kbit_s": 18000"#)).expect("what is left will do");
    let reserved = lan.signalling.as_ref().map(|one| one.control.bandwidth().reserved(0));
    assert_eq!(reserved, Some(98_148_000));
    for (keys, why) in [
        (r#", "peak_kbit_s": 40000"#, "too little bandwidth is left for a circuit"),
        (r#", "peak_kbit_s": 40000, "minimum_kbit_s": 19000"#, "too little bandwidth is left for a circuit"),
        // Four hosts have the channels from 32 on; two more are given out.
        (r#", "last_vci": 37"#, "no channel is free for a circuit"),
    ] {
        match attempt(&more(keys)) {
            Err(RunError::Program { error: ProgramError::Comm(CommError::Transport(said)), .. }) => {
                assert_eq!(said, why, "{keys}");
            }
            // Sends are done when they are written: the receiver waits for what will not come.
            Err(RunError::Deadlock { .. }) => {}
            other => panic!("{keys}: {:?}", other.map(|lan| lan.signalled())),
        }
    }
}

#[test]
fn circuits_that_cannot_be_are_refused_where_they_are_read() {
    for (stack, hosts, adapter, switch, circuits, said) in [
        ("fore+reliable/aal5", 6, SERIES_200, true, r#""hypercube""#, "a hypercube has a power of two"),
        ("fore+reliable/aal5", 4, SERIES_200, true, r#""star""#, "demand, all, mesh, hypercube, tree"),
        ("fore+reliable/aal5", 2, SERIES_200, false, r#""all""#, "call control is a switch's"),
        ("fore/aal5", 2, SERIES_200, true, r#""all""#, "only fore+reliable and pvm-fore"),
        ("pvm-fore/aal5", 2, SERIES_100, true, r#""all", "peak_kbit_s": 5"#, "cannot space cells"),
        ("pvm-fore/aal5", 2, SERIES_200, true, r#""all", "peak_kbit_s": 5, "minimum_kbit_s": 6"#, "0 to 5"),
    ] {
        let text = super::super::tests::json(&Want {
            adapter,
            switch,
            ..want(stack, hosts, "\"cut_messages\": true")
        });
        let circuits =
            format!(r#""cut_messages": true, "circuits": {{"topology": {circuits}, "processing_ps": 1}}"#);
        let error = Config::from_json(&text.replace("\"cut_messages\": true", &circuits)).expect_err(said);
        assert!(error.to_string().contains(said), "{error}");
    }
}

#[test]
fn messages_of_signalling_that_are_lost_are_repeated() {
    let params = EchoParams { bytes: 40, rounds: 2 };
    let more = r#""cut_messages": false, "cell_loss": 0.2,
        "circuits": {"topology": "demand", "processing_ps": 2000000000}"#;
    let program = async move |comm: &mut SimComm| echo(comm, &params).await;
    let (lan, outcomes) = ran(&want("fore+reliable/aal5", 2, more), program);
    let signalled = lan.signalled().expect("circuits are switched");
    assert!(signalled.messages > 8 && outcomes[0].elapsed > Span::from_s(3), "{signalled:?}");
    assert_eq!(lan.packets.len(), 0);
}

#[test]
fn permanent_circuits_draw_on_the_same_account() {
    let mut lan = lan(&want("fore+reliable/aal5", 3, ON_DEMAND), false);
    let demand = |kbit_s: u64| {
        let rate = BitRate::bit_s(kbit_s * 1000);
        super::super::admission::Demand::exactly(rate)
    };
    lan.reserve(0, 1, demand(60_000)).expect("all of it is free");
    let account = lan.signalling.as_ref().map(|one| one.control.bandwidth().clone()).expect("call control's");
    assert_eq!((account.reserved(0), account.reserved(3)), (60_000_000, 60_000_000));
    assert!(lan.reserve(0, 2, demand(60_000)).is_err());
    lan.release(0, 1);
    lan.reserve(0, 2, demand(60_000)).expect("given back");
}
