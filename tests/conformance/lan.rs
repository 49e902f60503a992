//! The message layers of a local network: every library over sockets and UDP, its messages crossing a ring of FDDI
//! between hosts that pay for what they do, those over the Fore interface, through a switch of ATM, and those over VIs,
//! through one of gigabit Ethernet. To add a layer is to add its line to `layers!`.

use std::collections::BTreeMap;

use wiretwin_net::SimComm;
use wiretwin_net::lan::config::priced;
use wiretwin_net::lan::{Config, Lan};
use wiretwin_net::local::run;
use wiretwin_net::run::RunError;
use wiretwin_prog::{Comm, CommError, Outcome, ProgramError, Rank, Source, Tag, TagMatch};
use wiretwin_units::Span;

/// Behind which a stack's messages cross a switch; all others but those over VIs cross a ring.
const CELLS: [&str; 2] = ["aal5", "aal34"];

const RING: &str = r#""ring": {"rate_bit_s": 100000000, "hop_ps": 100000, "latency_ps": 1000000,
    "target_ps": 8000000000}, "socket": {"tcp": "sunos41", "buffer_bytes": 32768, "nodelay": true,
    "mtu_bytes": 4352, "encapsulation_bytes": 8}"#;
const SWITCH: &str = r#""link": {"rate_bit_s": 100000000, "cell_bits": 432, "propagation_ps": 100000},
    "switch": {"fabric_bit_s": 2400000000, "delay_ps": 5000000, "queue_cells": 256, "module_bit_s": 622080000,
    "modules": 4}"#;
const VIS: &str = r#""gige": {"rate_bit_s": 1000000000, "propagation_ps": 100000,
    "switch": {"forwarding": "stored", "latency_ps": 1000000, "port_bytes": 200000},
    "adapter": {"bus_setup_ps": 300000, "bus_byte_ps": 7000, "frame_ps": 400000, "send_frames": 16,
                "receive_bytes": 100000, "coalesce_frames": 1, "coalesce_ps": 0, "pause": true}},
    "vi": {"device": "m-via", "reliability": "reliable-delivery", "mtu_bytes": 1500, "max_transfer_bytes": 32768,
           "buffers": 256, "buffer_bytes": 2048}"#;
const FIRMWARE: &str = r#"{"send_pdu_ps": 11000, "send_cell_ps": 1300000, "receive_cell_ps": 1700000,
    "receive_pdu_ps": 19000}"#;

/// So many hosts; behind the stack, a topology of circuits that are set up by calls. What a host does takes a microsecond and a nanosecond a byte, whatever it is.
fn lan(stack: &str, hosts: u32) -> Lan {
    let (stack, topology) = stack.split_once(' ').unwrap_or((stack, ""));
    let circuits = match topology {
        "" => String::new(),
        topology => format!(r#", "circuits": {{"topology": "{topology}", "processing_ps": 2000000000}}"#),
    };
    let prices = priced()
        .map(|activity| format!(r#""{activity}": {{"call_ps": 1000000, "byte_ps": 1000}}"#))
        .collect::<Vec<_>>()
        .join(",");
    let cells = CELLS.iter().any(|lower| stack.ends_with(lower));
    let adapter = if cells {
        format!(
            r#"{{"kind": "series-200", "send_fifo_cells": 8, "receive_fifo_cells": 300, "aal5": {FIRMWARE},
                "aal34": {FIRMWARE}, "pace_ps": 0}}"#
        )
    } else {
        r#"{"kind": "frames"}"#.into()
    };
    let host = format!(
        r#"{{"name": "h", "cache_bytes": 1000000, "prices": {{{prices}}},
            "bus": {{"setup_ps": 100000, "byte_ps": 25000}}, "adapter": {adapter}}}"#
    );
    let hosts = vec![host; hosts as usize].join(",");
    let network = match stack {
        _ if cells => SWITCH,
        "via/gige" | "mpi-mvich/gige" => VIS,
        _ => RING,
    };
    let text = format!(
        r#"{{"stack": "{stack}", "hosts": [{hosts}], "pdu_bytes": 4096, "stream_bytes": 10000000,
            "cut_messages": true, {network}{circuits}}}"#
    );
    Lan::new(Config::from_json(&text).unwrap(), 1, false)
}

fn try_run(
    stack: &str,
    ranks: u32,
    body: impl AsyncFn(&mut SimComm) + Clone + 'static,
) -> Result<usize, RunError> {
    let program = async move |comm: &mut SimComm| -> Result<Outcome, ProgramError> {
        body(comm).await;
        Ok(Outcome::new(Span::ZERO, 0, true))
    };
    run(lan(stack, ranks), BTreeMap::new(), program).map(|(_, outcomes)| outcomes.len())
}

/// Runs a body; a network has two hosts at least.
fn run_on(stack: &str, ranks: u32, body: impl AsyncFn(&mut SimComm) + Clone + 'static) {
    match try_run(stack, ranks.max(2), body) {
        Ok(outcomes) => assert_eq!(outcomes, ranks.max(2) as usize),
        Err(error) => panic!("{error}"),
    }
}

macro_rules! layers {
    ($($name:ident $stack:literal $($groups:ident)?,)*) => {
        $(mod $name {
            use super::SimComm;

            fn run(ranks: u32, body: impl AsyncFn(&mut SimComm) + Clone + 'static) {
                super::run_on($stack, ranks, body);
            }

            wiretwin_tests::conformance!(run $(, $groups)?);
        })*
    };
}

layers! {
    framed "framed/tcp/fddi",
    mpi_lam "mpi-lam/tcp/fddi",
    mpi_mpich "mpi-mpich/tcp/fddi",
    pvm_advise "pvm-advise/tcp/fddi" groups,
    pvm_normal "pvm-normal/udp/fddi" groups,
    fore_reliable "fore+reliable/aal5",
    fore_reliable_aal34 "fore+reliable/aal34",
    pvm_fore "pvm-fore/aal5",
    mpi_mvich "mpi-mvich/gige",
    fore_reliable_by_calls "fore+reliable/aal5 demand",
    pvm_fore_by_calls "pvm-fore/aal34 mesh",
}

/// What an interface of the time cannot: each refusal says what.
mod refused {
    use super::*;

    async fn send<C: Comm>(comm: &mut C, to: u32, tag: u32, length: usize) -> Option<CommError> {
        comm.send(Rank(to), Tag(tag), &vec![1; length]).await.err()
    }

    #[test]
    fn sockets_have_no_message_of_nothing_and_none_to_oneself() {
        run_on("socket/tcp/fddi", 2, async |comm: &mut SimComm| {
            let (mine, other) = (comm.rank().0, 1 - comm.rank().0);
            let said = |what| Some(CommError::Unsupported(what));
            assert_eq!(send(comm, other, 1, 0).await, said("a message of 0 bytes"));
            assert_eq!(send(comm, mine, 1, 4).await, said("a message to the rank itself"));
        });
    }

    #[test]
    fn the_fore_interface_has_no_message_of_nothing_none_to_oneself_and_a_rank_that_is_there() {
        for stack in ["fore/aal5", "fore/aal34"] {
            run_on(stack, 2, async |comm: &mut SimComm| {
                let (mine, other) = (comm.rank().0, 1 - comm.rank().0);
                let said = |what| Some(CommError::Unsupported(what));
                assert_eq!(send(comm, other, 1, 0).await, said("a message of 0 bytes"));
                assert_eq!(send(comm, mine, 1, 4).await, said("a message to the rank itself"));
            });
        }
    }

    #[test]
    fn a_datagram_and_a_descriptor_have_a_greatest_length() {
        for stack in ["socket/udp/fddi", "rpc/udp/fddi", "via/gige"] {
            run_on(stack, 2, async |comm: &mut SimComm| {
                let other = 1 - comm.rank().0;
                let Some(CommError::Transport(said)) = send(comm, other, 1, 70_000).await else {
                    panic!("70000 octets are too many");
                };
                assert!(said.contains("70000"), "{said}");
            });
        }
    }

    #[test]
    fn a_procedure_has_a_number_below_64_and_no_call_goes_to_oneself() {
        run_on("rpc/tcp/fddi", 2, async |comm: &mut SimComm| {
            let (mine, other) = (comm.rank().0, 1 - comm.rank().0);
            let said = "a tag over 63: a tag is a procedure, and there are 64";
            assert_eq!(send(comm, other, 64, 4).await, Some(CommError::Unsupported(said)));
            let itself = Some(CommError::Unsupported("a message to the rank itself"));
            assert_eq!(send(comm, mine, 1, 4).await, itself);
        });
    }

    #[test]
    fn pvm_has_no_tag_that_is_negative_as_an_int() {
        for stack in ["pvm-advise/tcp/fddi", "pvm-normal/udp/fddi"] {
            run_on(stack, 2, async |comm: &mut SimComm| {
                let other = 1 - comm.rank().0;
                let said = Some(CommError::Unsupported("a tag of 2147483648 and more"));
                assert_eq!(send(comm, other, 1 << 31, 4).await, said);
            });
        }
    }

    #[test]
    fn nothing_that_was_not_sent_is_waited_for_in_silence() {
        for stack in [
            "framed/tcp/fddi",
            "mpi-lam/tcp/fddi",
            "pvm-advise/tcp/fddi",
            "pvm-normal/udp/fddi",
            "rpc/tcp/fddi",
            "rpc/udp/fddi",
            "mpi-mvich/gige",
            "fore/aal5",
            "fore+reliable/aal5",
            "pvm-fore/aal5",
        ] {
            let ended = try_run(stack, 2, async |comm: &mut SimComm| {
                if comm.rank() == Rank(1) {
                    // Rank 0 has left: this fails, or is named as what will not come.
                    comm.recv(Source::Any, TagMatch::Any, &mut [0; 8]).await.unwrap_err();
                }
            });
            match ended {
                Ok(_) => {}
                Err(error) => {
                    assert!(error.to_string().contains("deadlock: rank"), "{stack}: {error}")
                }
            }
        }
    }
}

/// Remote procedure calls: what a client sends is a call, and the answer its reply.
mod rpc {
    use super::*;

    fn run(ranks: u32, body: impl AsyncFn(&mut SimComm) + Clone + 'static) {
        run_on("rpc/tcp/fddi", ranks, body);
    }

    wiretwin_tests::conformance!(run;
        2 every_size_comes_back_unchanged,
        2 messages_of_one_sender_keep_their_order,
        2 a_receive_says_what_it_got,
        2 a_message_too_long_is_truncated_and_the_next_is_whole,
        3 a_rank_that_is_not_there_is_refused,
        2 groups_are_refused_by_name,
    );
}

/// Stream sockets, on which a message is so many octets: none of nothing, none to oneself, which the other
/// bodies have.
mod socket {
    use super::*;

    fn run(ranks: u32, body: impl AsyncFn(&mut SimComm) + Clone + 'static) {
        run_on("socket/tcp/fddi", ranks, body);
    }

    wiretwin_tests::conformance!(run;
        2 messages_of_one_sender_keep_their_order,
        3 source_and_tag_choose_among_what_has_come,
        5 a_wildcard_takes_from_everyone_in_order,
        3 a_rank_that_is_not_there_is_refused,
        5 a_ring_shifts,
        2 groups_are_refused_by_name,
    );
}

/// The Fore interface itself, which loses nothing here: PDUs on circuits, none of nothing, none to oneself.
mod fore {
    use super::*;

    fn run(ranks: u32, body: impl AsyncFn(&mut SimComm) + Clone + 'static) {
        run_on("fore/aal5", ranks, body);
    }

    wiretwin_tests::conformance!(run;
        2 messages_of_one_sender_keep_their_order,
        3 source_and_tag_choose_among_what_has_come,
        5 a_wildcard_takes_from_everyone_in_order,
        3 a_rank_that_is_not_there_is_refused,
        5 a_ring_shifts,
        2 groups_are_refused_by_name,
    );
}

/// Remote procedure calls over UDP, which carries no more than a datagram.
mod rpc_udp {
    use super::*;

    fn run(ranks: u32, body: impl AsyncFn(&mut SimComm) + Clone + 'static) {
        run_on("rpc/udp/fddi", ranks, body);
    }

    wiretwin_tests::conformance!(run;
        2 every_size_of_a_datagram_comes_back_unchanged,
        2 messages_of_one_sender_keep_their_order,
        2 a_receive_says_what_it_got,
        3 a_rank_that_is_not_there_is_refused,
        2 groups_are_refused_by_name,
    );
}

/// Datagram sockets: a message is a datagram.
mod datagram {
    use super::*;

    fn run(ranks: u32, body: impl AsyncFn(&mut SimComm) + Clone + 'static) {
        run_on("socket/udp/fddi", ranks, body);
    }

    wiretwin_tests::conformance!(run;
        2 messages_of_one_sender_keep_their_order,
        3 source_and_tag_choose_among_what_has_come,
        5 a_wildcard_takes_from_everyone_in_order,
        3 a_rank_that_is_not_there_is_refused,
        2 groups_are_refused_by_name,
    );
}

/// Messages straight over VIs: a message is a descriptor, and none goes to oneself.
mod via {
    use super::*;

    fn run(ranks: u32, body: impl AsyncFn(&mut SimComm) + Clone + 'static) {
        run_on("via/gige", ranks, body);
    }

    wiretwin_tests::conformance!(run;
        2 every_size_of_a_datagram_comes_back_unchanged,
        2 messages_of_one_sender_keep_their_order,
        3 source_and_tag_choose_among_what_has_come,
        5 a_wildcard_takes_from_everyone_in_order,
        2 posted_receives_are_served_in_the_order_of_posting,
        2 a_receive_says_what_it_got,
        3 a_rank_that_is_not_there_is_refused,
        2 groups_are_refused_by_name,
    );
}
