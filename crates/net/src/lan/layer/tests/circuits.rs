//! Calls of the Fore interface as processes make them: flows both ways, and circuits that are cleared.

use wiretwin_msg::fore::{Ask, Dataflow, Qos, RequestId, Want as Wanted};
use wiretwin_prog::CommError;

use super::*;

const ON_DEMAND: &str =
    r#""cut_messages": false, "circuits": {"topology": "demand", "processing_ps": 2000000000}"#;
/// Of each circuit that is asked for, kbit/s: two of them do not fit on a line.
const MOST_OF_A_LINE: u32 = 60_000;
const POINT: u32 = 3000;

const fn qos(target: u32) -> Qos {
    let none = Wanted { target: 0, minimum: 0 };
    Qos { peak: Wanted { target, minimum: target }, mean: none, burst: none }
}

/// Three hosts whose processes set circuits up, with processes of their own besides.
fn scripted(more: &'static str, scripts: Vec<(u32, Script)>) -> Lan {
    let mut lan = lan(&Want { stack: "fore+reliable/aal5", hosts: 3, switch: true, more, ..PLAIN }, false);
    for (host, script) in scripts {
        let process = lan.add_runtime(host, Machine::Script(script));
        lan.give(process, Action::Progress { rank: process });
    }
    while lan.step() {}
    lan
}

/// What a script's calls came to, in order, without what a look that found nothing says.
fn said(lan: &Lan, script: u32) -> Vec<String> {
    let Machine::Script(script) = &lan.runtimes[3 + script as usize].machine else { panic!("a script") };
    script.log.iter().map(|(_, said)| said.clone()).filter(|said| said != "Ready([])").collect()
}

fn fore(ask: Ask) -> Call {
    Call::Fore(ask)
}

const fn circuit(number: u32) -> CircuitId {
    CircuitId(number)
}

fn open(asap: u32, queue: u32) -> Call {
    fore(Ask::Open { asap, queue })
}

fn connect(from: u32, host: u32, peak: u32, flow: Dataflow) -> Call {
    fore(Ask::Connect { circuit: circuit(from), host, asap: POINT, qos: qos(peak), flow })
}

fn accept(by: u32, request: u32, flow: Dataflow, back: u32) -> Call {
    let (circuit, by) = (circuit(0), circuit(by));
    fore(Ask::Accept { circuit, by, request: RequestId(request), flow, back: qos(back) })
}

/// Until something has become of a descriptor.
const fn look() -> Call {
    Call::Select { write: None, until: None, idle: false }
}

/// Until so many milliseconds after the start, if nothing comes before.
fn until(ms: u64) -> Call {
    Call::Select { write: None, until: Some(SimTime::ZERO + Span::from_ms(ms)), idle: false }
}

fn send(number: u32, text: &[u8]) -> Call {
    Call::SendPdu { circuit: circuit(number), content: words(text) }
}

const fn receive(number: u32) -> Call {
    Call::ReceivePdu { circuit: circuit(number), wait: true }
}

fn listen() -> Call {
    fore(Ask::Listen { circuit: circuit(0) })
}

fn close(number: u32) -> Call {
    fore(Ask::Close { circuit: circuit(number) })
}

/// Whether these have been said, in this order, whatever else was.
fn in_order(said: &[String], wanted: &[&str]) -> bool {
    let mut all = said.iter();
    wanted.iter().all(|wanted| all.any(|one| one.contains(wanted)))
}

#[test]
fn a_duplex_connection_carries_pdus_both_ways_and_ends_for_both() {
    let client =
        [open(0, 0), connect(0, 1, 0, Dataflow::Duplex), look(), send(0, b"there"), receive(0), close(0)];
    let server = [
        open(POINT, 1),
        look(),
        listen(),
        open(0, 0),
        accept(1, 0, Dataflow::Duplex, 0),
        // What the other sends is here before word of the circuit back.
        receive(1),
        look(),
        send(1, b"and back"),
        look(),
        close(1),
    ];
    let lan = scripted(ON_DEMAND, vec![(0, Script::new(client)), (1, Script::new(server))]);
    let (client, server) = (said(&lan, 0), said(&lan, 1));
    assert!(in_order(&client, &["Connected", "SentPdu", "Pdu {", "Closed"]), "{client:#?}");
    let order = ["Requested", "Accepted", "Pdu {", "Connected", "SentPdu", "Gone", "Closed"];
    assert!(in_order(&server, &order), "{server:#?}");
    let signalled = lan.signalled().expect("circuits are switched");
    assert_eq!((signalled.joined, signalled.parted, signalled.refused), (2, 2, 0));
    assert_eq!(lan.calls(), (0, 0), "no circuit is left, and no channel");
}

/// The processes of two hosts want a circuit to the third each, of which there is room for one: what each was told,
/// and the network. The second asks before the first has closed its own, and after that.
fn one_after_the_other(more: &'static str, step: u64) -> (Vec<Vec<String>>, Lan) {
    let wanted = || connect(0, 2, MOST_OF_A_LINE, Dataflow::Simplex);
    let first = [open(0, 0), wanted(), look(), until(2 * step), close(0)];
    let second = [open(0, 0), until(step), wanted(), look(), until(3 * step), wanted(), look()];
    let taken = |by, number| accept(by, number, Dataflow::Simplex, 0);
    let both = [
        open(POINT, 2),
        look(),
        listen(),
        open(0, 0),
        taken(1, 0),
        look(),
        close(1),
        look(),
        listen(),
        open(0, 0),
        taken(2, 1),
    ];
    let scripts = vec![(0, Script::new(first)), (1, Script::new(second)), (2, Script::new(both))];
    let lan = scripted(more, scripts);
    ((0..3).map(|script| said(&lan, script)).collect(), lan)
}

const REFUSED: &str = "Refused(Refused { outcome: NoResources })";

#[test]
fn a_circuit_that_a_process_closes_is_another_ones() {
    let (said, lan) = one_after_the_other(ON_DEMAND, 100);
    assert!(in_order(&said[0], &["Connected", "Closed"]), "{:#?}", said[0]);
    assert!(in_order(&said[1], &[REFUSED, "Connected"]), "{:#?}", said[1]);
    assert!(in_order(&said[2], &["Accepted", "Gone", "Closed", "Requested", "Accepted"]), "{:#?}", said[2]);
    let signalled = lan.signalled().expect("circuits are switched");
    assert_eq!((signalled.joined, signalled.parted, signalled.refused), (2, 1, 1));
    assert_eq!(lan.calls().0, 1, "that of the second");
}

#[test]
fn what_is_lost_of_clearing_is_repeated() {
    let lossy = r#""cut_messages": false, "cell_loss": 0.05,
        "circuits": {"topology": "demand", "processing_ps": 2000000000}"#;
    // Each step has room for five repetitions after three seconds each, at every place.
    let (said, lan) = one_after_the_other(lossy, 60_000);
    assert!(in_order(&said[0], &["Connected", "Closed"]), "{:#?}", said[0]);
    assert!(in_order(&said[1], &[REFUSED, "Connected"]), "{:#?}", said[1]);
    assert!(in_order(&said[2], &["Accepted", "Gone", "Closed", "Accepted"]), "{:#?}", said[2]);
    let quiet = one_after_the_other(ON_DEMAND, 100).1;
    let messages = |lan: &Lan| lan.signalled().map_or(0, |one| one.messages);
    assert!(messages(&lan) > messages(&quiet), "some were sent again");
    assert_eq!((lan.calls(), lan.packets.len()), (quiet.calls(), 0));
}

#[test]
fn a_rank_hangs_up_when_all_has_come_and_its_next_message_asks_again() {
    for stack in ["fore+reliable/aal5", "pvm-fore/aal5"] {
        let want = Want { stack, hosts: 2, switch: true, more: ON_DEMAND, ..PLAIN };
        let body = async |comm: &mut SimComm| {
            let (mut buffer, other) = ([0; 5], Rank(1 - comm.rank().0));
            for _ in 0..3 {
                if comm.rank() == Rank(0) {
                    assert_eq!(comm.hang_up(other).await, Ok(false), "there is none");
                    comm.send(other, Tag(1), b"first").await?;
                    comm.recv(Source::Any, TagMatch::Any, &mut buffer).await?;
                    assert_eq!(comm.hang_up(other).await, Ok(true));
                    // Call control takes 2 ms for each message of it.
                    comm.pause(Span::from_ms(20)).await?;
                } else {
                    comm.recv(Source::Any, TagMatch::Any, &mut buffer).await?;
                    comm.send(other, Tag(1), b"there").await?;
                }
            }
            Ok(Ended::new(Span::ZERO, 0, true))
        };
        let (lan, _) = run(lan(&want, false), BTreeMap::new(), body).expect("a run that ends");
        let signalled = lan.signalled().expect("circuits are switched");
        assert!(signalled.parted >= 3 && signalled.joined > signalled.parted, "{stack}: {signalled:?}");
        assert_eq!(lan.calls().0 as u64, signalled.joined - signalled.parted, "{stack}");
    }
}

#[test]
fn circuits_that_are_there_for_good_are_not_hung_up() {
    for (stack, more) in [("fore+reliable/aal5", PLAIN.more), ("framed/tcp/aal5", SOCKET)] {
        program(&Want { stack, switch: true, more, ..PLAIN }, async |comm: &mut SimComm| {
            let none = CommError::Unsupported("circuits that processes set up and clear");
            assert_eq!(comm.hang_up(Rank(1)).await, Err(none));
            let nobody = comm.hang_up(Rank(2)).await;
            assert_eq!(nobody, Err(CommError::NoSuchRank { rank: Rank(2), size: 2 }));
            Ok(())
        });
    }
}
