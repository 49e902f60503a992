//! What ranks ask for besides messages: processes, who calls, groups where daemons were asleep.

use wiretwin_prog::CommError;

use super::*;

const PVM: [&str; 2] = ["pvm-advise/tcp/aal5", "pvm-normal/udp/aal5"];

fn said<T>(result: Result<T, CommError>) -> String {
    match result {
        Ok(_) => "it could be".to_string(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_task_that_is_spawned_is_there_and_one_of_no_program_is_an_error() {
    for stack in PVM {
        program(&Want { stack, hosts: 3, ..framed() }, async |comm: &mut SimComm| {
            if comm.rank() == Rank(2) {
                assert_eq!(comm.spawn("pvmgs", 2).await, Ok(2));
                let lost = said(comm.spawn("none", 1).await);
                assert_eq!(lost, "transport: PvmNoFile (-7): no such file");
                let none = said(comm.spawn("pvmgs", 0).await);
                assert_eq!(none, "transport: PvmBadParam (-2): bad parameter");
                // One of the two is the server; the other has found the name taken.
                assert_eq!(comm.join_group("g").await, Ok(0));
            }
            Ok(())
        });
    }
}

#[test]
fn an_interface_that_starts_nothing_and_knows_no_users_says_so() {
    for stack in ["fore/aal5", "fore+reliable/aal5", "framed/tcp/aal5", "rpc/tcp/aal5"] {
        let want = if stack.contains("fore") { PLAIN } else { framed() };
        program(&Want { stack, ..want }, async |comm: &mut SimComm| {
            let none = said(comm.spawn("pvmgs", 1).await);
            assert_eq!(none, "this layer cannot do that: the start of other processes");
            Ok(())
        });
    }
    program(&framed(), async |comm: &mut SimComm| {
        let none = said(comm.identify(7).await);
        assert_eq!(none, "this layer cannot do that: messages that say whose they are");
        Ok(())
    });
}

#[test]
fn a_call_says_whose_it_is_when_it_is_told_to() {
    for stack in ["rpc/tcp/aal5", "rpc/udp/aal5"] {
        program(&Want { stack, ..framed() }, async |comm: &mut SimComm| {
            let mut buffer = [0; 4];
            for user in [None, Some(1234), Some(5)] {
                if comm.rank() == Rank(0) {
                    if let Some(user) = user {
                        comm.identify(user).await?;
                    }
                    comm.send(Rank(1), Tag(3), b"call").await?;
                    comm.recv(Source::Rank(Rank(1)), TagMatch::Any, &mut buffer).await?;
                } else {
                    comm.recv(Source::Any, TagMatch::Any, &mut buffer).await?;
                    let caller = comm.caller().await;
                    match user {
                        Some(user) => assert_eq!(caller, Ok(user)),
                        None => assert_eq!(said(caller), "transport: the last call did not say whose it is"),
                    }
                    comm.send(Rank(0), Tag(0), b"said").await?;
                }
            }
            Ok(())
        });
    }
}

#[test]
fn a_control_call_leaves_nothing_behind_and_takes_time_only_where_it_is_made() {
    for stack in PVM {
        let body = |asks: bool| {
            async move |comm: &mut SimComm| {
                if asks {
                    comm.join_group("g").await?;
                    comm.group_barrier("g", 2).await?;
                    if comm.rank() == Rank(0) {
                        comm.group_cast("g", Tag(1), b"all").await?;
                    } else {
                        comm.recv(Source::Any, TagMatch::Any, &mut [0; 3]).await?;
                    }
                }
                Ok(Ended::new(Span::ZERO, 0, true))
            }
        };
        let lan = || lan(&Want { stack, ..framed() }, false);
        let (asked, _) = run(lan(), BTreeMap::new(), body(true)).expect("a run that ends");
        assert!(asked.requests.iter().all(|request| matches!(request.kind, Kind::Free)), "{stack}");
        let (silent, _) = run(lan(), BTreeMap::new(), body(false)).expect("a run that ends");
        assert!(asked.processes.len() > silent.processes.len(), "a group has a server");
    }
}
