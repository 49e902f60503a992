//! Messages as octets, and what they say.

use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;

use proptest::prelude::*;

use super::*;

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

fn emitted(repr: &Repr<'_>) -> Vec<u8> {
    let mut octets = vec![0xEE; MAX_HEAD_OCTETS];
    let end = repr.emit(&mut octets).expect("room");
    octets.truncate(end);
    octets
}

#[test]
fn a_known_null_call_and_its_reply_are_written_and_read() {
    let call = Repr::call(1, portmap::PROGRAM, portmap::VERSION, portmap::PROC_NULL);
    let octets = words(&[1, 0, 2, 0x186A0, 2, 0, 0, 0, 0, 0]);
    assert_eq!(emitted(&call), octets);
    assert_eq!(Repr::parse(&octets), Ok((call, &[][..])));
    assert_eq!(RecordMark::new(true, 40).expect("40 octets").octets(), [0x80, 0, 0, 0x28]);
    let octets = words(&[1, 1, 0, 0, 0, 0]);
    assert_eq!(emitted(&Repr::success(1)), octets);
    assert_eq!(Repr::parse(&octets), Ok((Repr::success(1), &[][..])));
    assert_eq!(RecordMark::new(true, 24).expect("24 octets").octets(), [0x80, 0, 0, 0x18]);
}

#[test]
fn every_kind_of_reply_has_its_words() {
    let verifier = Auth { flavor: 2, body: b"abc" };
    let accepted = |status| Body::Accepted { verifier, status };
    for (body, expected) in [
        (accepted(Accepted::Success), &[0, 2, 3, 0x6162_6300, 0][..]),
        (accepted(Accepted::ProgramUnavailable), &[0, 2, 3, 0x6162_6300, 1]),
        (accepted(Accepted::ProgramMismatch { low: 1, high: 3 }), &[0, 2, 3, 0x6162_6300, 2, 1, 3]),
        (accepted(Accepted::ProcedureUnavailable), &[0, 2, 3, 0x6162_6300, 3]),
        (accepted(Accepted::GarbageArguments), &[0, 2, 3, 0x6162_6300, 4]),
        (accepted(Accepted::SystemError), &[0, 2, 3, 0x6162_6300, 5]),
        (Body::Denied(Denied::RpcMismatch { low: 2, high: 2 }), &[1, 0, 2, 2]),
        (Body::Denied(Denied::AuthError(5)), &[1, 1, 5]),
    ] {
        let mut octets = words(&[[7, 1].as_slice(), expected].concat());
        let repr = Repr { xid: 7, body };
        assert_eq!(emitted(&repr), octets, "{body:?}");
        octets.extend(b"rest");
        assert_eq!(Repr::parse(&octets), Ok((repr, &b"rest"[..])));
    }
}

#[test]
fn who_calls_is_said_in_the_credential() {
    let system = System::new(9, b"spark", 100, 10, &[20, 30]).expect("two more groups");
    let mut body = [0xEE; 64];
    let end = system.emit(&mut body).expect("room");
    assert_eq!(body[..end], [words(&[9, 5]), b"spark\0\0\0".to_vec(), words(&[100, 10, 2, 20, 30])].concat());
    assert_eq!(System::parse(&body[..end]), Ok(system));
    assert_eq!(system.gids(), [20, 30]);
    assert_eq!(System::new(9, b"", 0, 0, &[0; 17]), None);
    assert_eq!(System::parse(&body[..end + 1]).expect_err("one octet more").field, "end");
    let long = System::new(9, &[b'x'; 256], 0, 0, &[]).expect("no more groups");
    assert_eq!(long.emit(&mut [0; 400]).expect_err("a long name").field, "machinename");
    let many = words(&[9, 0, 0, 0, 17]);
    let said = "RPC AUTH_SYS, gids at octet 16: 17, allowed is 0 to 16";
    assert_eq!(System::parse(&many).expect_err("17 groups").to_string(), said);
    let named = words(&[9, 256]);
    let said = "RPC AUTH_SYS, machinename at octet 4: 256, allowed is 0 to 255";
    assert_eq!(System::parse(&named).expect_err("a long name").to_string(), said);
}

#[test]
fn every_wrong_field_is_named_with_its_place() {
    for (octets, said) in [
        (&[1, 2][..], "RPC message, mtype at octet 4: 2, allowed is 0 or 1"),
        (&[1, 0, 3], "RPC message, rpcvers at octet 8: 3, allowed is 2"),
        (&[1, 0, 2, 1, 1, 1, 0, 401], "RPC message, cred at octet 28: 401, allowed is 0 to 400 octets"),
        (&[1, 0, 2, 1, 1, 1, 0, 0, 0, 401], "RPC message, verf at octet 36: 401, allowed is 0 to 400 octets"),
        (&[1, 1, 2], "RPC message, reply_stat at octet 8: 2, allowed is 0 or 1"),
        (&[1, 1, 0, 0, 0, 6], "RPC message, accept_stat at octet 20: 6, allowed is 0 to 5"),
        (&[1, 1, 1, 2], "RPC message, reject_stat at octet 12: 2, allowed is 0 or 1"),
    ] {
        assert_eq!(Repr::parse(&words(octets)).expect_err(said).to_string(), said);
    }
    let call = emitted(&Repr::call(1, 2, 3, 4));
    for end in 0..call.len() {
        let error = Repr::parse(&call[..end]).expect_err("cut short");
        assert_eq!(error.offset.get() as usize, end / 4 * 4);
    }
}

#[test]
fn a_head_that_does_not_fit_is_refused() {
    let mut octets = [0; 39];
    let error = Repr::call(1, 2, 3, 4).emit(&mut octets).expect_err("39 octets");
    assert_eq!(error.to_string(), "RPC message, verf: 3 octets to write to, but it takes 4");
    let verifier = Auth { flavor: 6, body: &[0; 401] };
    let long = Repr { xid: 1, body: Body::Accepted { verifier, status: Accepted::Success } };
    assert_eq!(long.emit(&mut [0; 900]).expect_err("401 octets").field, "verf");
}

#[test]
fn a_mark_says_whether_its_fragment_is_the_last() {
    assert_eq!(RecordMark::parse(&[0x80, 0, 0]), None);
    let mark = RecordMark::parse(&[0, 0, 0x0F, 0x9C, 1]).expect("four octets");
    assert_eq!((mark.is_last(), mark.length(), mark.octets()), (false, 3996, [0, 0, 0x0F, 0x9C]));
    assert_eq!(RecordMark::new(false, 1 << 31), None);
    assert_eq!(RecordMark::parse(&[0xFF; 4]).map(RecordMark::octets), Some([0xFF; 4]));
}

proptest! {
    #[test]
    fn arbitrary_octets_round_trip(
        xid: u32,
        kind in 0u32..2,
        second in 0u32..3,
        rest in prop::collection::vec(0u32..7, 0..14),
    ) {
        let octets = words(&[&[xid, kind, second], &rest[..]].concat());
        round_trip(&octets);
    }
}
