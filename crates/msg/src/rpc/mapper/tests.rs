//! Questions and answers.

use alloc::string::ToString;

use super::*;

fn caller(local: bool, owner: &str) -> Caller {
    let transport = Transport::TCP;
    Caller {
        local,
        transport,
        owner: owner.into(),
        reached: Ipv4Addr::new(10, 0, 0, 1),
        seconds: 1_000_000_000,
    }
}

fn ask(mapper: &mut Mapper, question: Question<'_>, caller: &Caller) -> Arc<[u8]> {
    let arguments = question.arguments().expect("short strings");
    match mapper.answer(question.version(), question.procedure(), &arguments, caller) {
        Answer::Results(results) => results,
        other => panic!("{question:?}: {other:?}"),
    }
}

const MAPPING: Mapping = Mapping { program: 0x2000_0001, version: 1, transport: Transport::TCP, port: 2049 };

#[test]
fn a_program_that_is_set_is_found_until_it_is_unset() {
    let mut mapper = Mapper::new(8);
    let me = caller(true, "me");
    let flag = |octets: &[u8]| Reading::flag(octets).expect("a boolean");
    let port = |octets: &[u8]| Reading::word(octets).expect("a port");
    assert_eq!(port(&ask(&mut mapper, Question::GetPort(MAPPING), &me)), 0);
    assert!(flag(&ask(&mut mapper, Question::Set(MAPPING), &me)));
    assert!(!flag(&ask(&mut mapper, Question::Set(Mapping { port: 1, ..MAPPING }), &me)), "it is set");
    assert_eq!(port(&ask(&mut mapper, Question::GetPort(MAPPING), &me)), 2049);
    let udp = Mapping { transport: Transport::UDP, ..MAPPING };
    assert_eq!(port(&ask(&mut mapper, Question::GetPort(udp), &me)), 0);
    let newer = Mapping { version: 2, ..MAPPING };
    assert_eq!(port(&ask(&mut mapper, Question::GetPort(newer), &me)), 2049, "another version");
    assert_eq!(Reading::mappings(&ask(&mut mapper, Question::Dump, &me)), Ok([MAPPING].to_vec()));
    assert!(!flag(&ask(&mut mapper, Question::Unset(MAPPING), &caller(true, "you"))), "not yours");
    assert!(flag(&ask(&mut mapper, Question::Unset(MAPPING), &caller(true, SUPERUSER))));
    assert!(!flag(&ask(&mut mapper, Question::Unset(MAPPING), &me)), "it is gone");
    assert_eq!(*ask(&mut mapper, Question::Dump, &me), [0; 4]);
}

#[test]
fn entries_and_mappings_are_the_same_table() {
    let mut mapper = Mapper::new(8);
    let me = caller(true, "me");
    ask(&mut mapper, Question::Set(MAPPING), &me);
    let entry = Entry { program: 0x2000_0001, version: 1, netid: b"tcp", address: b"", owner: b"" };
    let address = |results: &[u8]| Reading::string(results).expect("a string");
    assert_eq!(address(&ask(&mut mapper, Question::GetAddress(entry), &me)), "10.0.0.1.8.1");
    let newer = Entry { version: 2, ..entry };
    assert_eq!(address(&ask(&mut mapper, Question::GetAddress(newer), &me)), "10.0.0.1.8.1");
    assert_eq!(address(&ask(&mut mapper, Question::GetVersionAddress(newer), &me)), "");
    assert_eq!(address(&ask(&mut mapper, Question::GetVersionAddress(entry), &me)), "10.0.0.1.8.1");
    let set = Entry { netid: b"udp", address: b"127.0.0.1.3.9", owner: b"root", ..entry };
    assert_eq!(Reading::flag(&ask(&mut mapper, Question::SetEntry(set), &me)), Ok(true));
    let listed = Reading::registrations(&ask(&mut mapper, Question::DumpEntries, &me)).expect("entries");
    assert_eq!(listed, mapper.all());
    let registered: Vec<_> = listed.iter().map(|each| (&*each.netid, &*each.address, &*each.owner)).collect();
    assert_eq!(registered, [("tcp", "0.0.0.0.8.1", "me"), ("udp", "127.0.0.1.3.9", "me")]);
    assert_eq!(Reading::word(&ask(&mut mapper, Question::GetTime, &me)), Ok(1_000_000_000));
    let other = Entry { netid: b"udp", ..entry };
    assert_eq!(Reading::flag(&ask(&mut mapper, Question::UnsetEntry(other), &me)), Ok(true));
    assert_eq!(mapper.all().len(), 1, "over this transport");
    let over_udp = Caller { transport: Transport::UDP, ..me };
    assert_eq!(address(&ask(&mut mapper, Question::GetAddress(entry), &over_udp)), "", "not over that one");
}

#[test]
fn only_callers_of_this_host_change_it_and_only_as_far_as_there_is_room() {
    let mut mapper = Mapper::new(1);
    let afar = caller(false, UNKNOWN);
    assert_eq!(Reading::flag(&ask(&mut mapper, Question::Set(MAPPING), &afar)), Ok(false));
    let me = caller(true, "me");
    assert_eq!(Reading::flag(&ask(&mut mapper, Question::Set(MAPPING), &me)), Ok(true));
    assert_eq!(Reading::flag(&ask(&mut mapper, Question::Unset(MAPPING), &afar)), Ok(false));
    let other = Mapping { program: 5, ..MAPPING };
    assert_eq!(Reading::flag(&ask(&mut mapper, Question::Set(other), &me)), Ok(false), "no room");
    for odd in [Mapping { transport: Transport(1), ..MAPPING }, Mapping { port: 65536, ..MAPPING }] {
        assert_eq!(Reading::flag(&ask(&mut Mapper::new(9), Question::Set(odd), &me)), Ok(false), "{odd:?}");
    }
}

#[test]
fn what_cannot_be_read_is_garbage_and_what_there_is_not_is_said() {
    let mut mapper = Mapper::new(8);
    let me = caller(true, "me");
    let refused = |refusal| Answer::Refused(refusal);
    for (version, procedure, arguments) in
        [(2, 1, &[0; 15][..]), (2, 3, &[0; 20]), (2, 4, &[0; 4]), (3, 1, &[0xFF; 20]), (4, 6, &[0; 4])]
    {
        let answer = mapper.answer(version, procedure, arguments, &me);
        assert_eq!(answer, refused(Refusal::GarbageArguments), "{version} {procedure}");
    }
    assert_eq!(mapper.answer(2, 5, &[], &me), Answer::Silence);
    assert_eq!(mapper.answer(4, 12, &[], &me), refused(Refusal::ProcedureUnavailable));
    assert_eq!(mapper.answer(3, 9, &[], &me), refused(Refusal::ProcedureUnavailable));
    assert_eq!(mapper.answer(5, 1, &[], &me), refused(Refusal::ProgramMismatch { low: 2, high: 4 }));
    let error = Reading::mappings(&[0, 0, 0, 1, 0]).expect_err("cut short").to_string();
    assert_eq!(error, "port mapping, prog at octet 0: 1 octets, allowed are as many as the item has");
    assert!(Reading::registrations(&[0, 0, 0, 2]).is_err());
}
