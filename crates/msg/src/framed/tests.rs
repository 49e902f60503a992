use alloc::vec::Vec;

use super::*;

const NOW: SimTime = SimTime::ZERO;

/// Two ranks with connection 0 between them.
fn pair() -> [Framed; 2] {
    let mut both = [Framed::new(0, 2), Framed::new(1, 2)];
    for (rank, one) in both.iter_mut().enumerate() {
        one.handle(NOW, Outcome::Given { connection: ConnectionId(0), rank: 1 - rank as u32 });
    }
    both
}

/// What was asked for, without work; writes take `room` octets and go to the other side.
fn drain(one: &mut Framed, room: u64, line: &mut Content) -> Vec<LibraryOutput> {
    let mut asked = Vec::new();
    loop {
        match one.poll_output() {
            Output::Timeout(_) => return asked,
            Output::Work(_) => {}
            Output::Transmit(Call::Write { connection, mut content, wait: false }) => {
                content.move_to(Bytes::new(room), line);
                one.handle(NOW, Outcome::Wrote { connection, rest: content });
            }
            other => asked.push(other),
        }
    }
}

fn read(one: &mut Framed, line: &mut Content) -> Vec<LibraryOutput> {
    one.handle(NOW, Outcome::Read { connection: ConnectionId(0), content: line });
    drain(one, u64::MAX, &mut Content::new())
}

#[test]
fn a_message_is_its_head_and_its_body() {
    let [mut one, _] = pair();
    let mut line = Content::new();
    one.send(NOW, Request(3), 1, 0x0102_0304, Bytes::new(5));
    assert_eq!(drain(&mut one, u64::MAX, &mut line), [Output::Deliver(Done::Sent(Request(3)))]);
    let mut head = [0; HEAD_OCTETS];
    assert!(line.take_octets(&mut head));
    assert_eq!(head, [0, 0, 0, 0, 0, 0, 0, 5, 1, 2, 3, 4, 0, 0, 0, 0]);
    assert_eq!(line.take_body(Bytes::new(9)), Some(Payload::whole(MessageId(3), Bytes::new(5))));
}

#[test]
fn a_message_of_no_octets_comes_with_its_head() {
    let [mut one, mut other] = pair();
    let mut line = Content::new();
    one.send(NOW, Request(1), 1, 9, Bytes::new(0));
    drain(&mut one, u64::MAX, &mut line);
    assert_eq!(line.length(), Bytes::new(16));
    other.receive(NOW, Request(2), None, None, Bytes::new(0));
    let got = read(&mut other, &mut line);
    assert_eq!(got, [Output::Deliver(Done::Received { request: Request(2), message: MessageId(1) })]);
}

#[test]
fn what_comes_octet_by_octet_is_the_same_message() {
    let [mut one, mut other] = pair();
    let mut line = Content::new();
    other.receive(NOW, Request(2), Some(0), Some(9), Bytes::new(40));
    one.send(NOW, Request(1), 1, 9, Bytes::new(40));
    drain(&mut one, u64::MAX, &mut line);
    let mut got = Vec::new();
    for _ in 0..56 {
        assert_eq!(got, []);
        let mut octet = Content::new();
        line.move_to(Bytes::new(1), &mut octet);
        got = read(&mut other, &mut octet);
    }
    assert_eq!(got, [Output::Deliver(Done::Received { request: Request(2), message: MessageId(1) })]);
}

#[test]
fn a_writer_that_finds_no_room_reads_meanwhile_and_goes_on() {
    let [mut one, _] = pair();
    let mut line = Content::new();
    one.send(NOW, Request(1), 1, 9, Bytes::new(100));
    assert_eq!(drain(&mut one, 50, &mut line), []);
    one.progress(NOW);
    let select = Call::Select { write: Some(ConnectionId(0)), until: None, idle: false };
    assert_eq!(drain(&mut one, 50, &mut line), [Output::Transmit(select)]);
    let readable = [Ready::Readable(ConnectionId(0)), Ready::Writable(ConnectionId(0))];
    one.handle(NOW, Outcome::Ready(&readable));
    let asked = drain(&mut one, 66, &mut line);
    assert!(
        matches!(
            asked[..],
            [Output::Transmit(Call::Read { wait: false, .. }), Output::Deliver(Done::Sent(Request(1)))]
        ),
        "{asked:?}"
    );
    assert_eq!(line.length(), Bytes::new(116));
}

#[test]
fn a_message_to_itself_is_copied_twice_if_nobody_waits() {
    let [mut one, _] = pair();
    one.send(NOW, Request(1), 0, 4, Bytes::new(100));
    one.receive(NOW, Request(2), Some(0), Some(4), Bytes::new(100));
    let mut copied = 0;
    let mut done = Vec::new();
    loop {
        match one.poll_output() {
            Output::Work(Work { kind: WorkKind::UserCopy, bytes, .. }) => copied += bytes.get(),
            Output::Deliver(one) => done.push(one),
            Output::Timeout(_) => break,
            _ => {}
        }
    }
    assert_eq!(copied, 200);
    let received = Done::Received { request: Request(2), message: MessageId(1) };
    assert_eq!(done, [Done::Sent(Request(1)), received]);
}

#[test]
fn what_hangs_on_a_lost_connection_fails_by_name() {
    let [mut one, _] = pair();
    one.receive(NOW, Request(1), Some(1), None, Bytes::new(4));
    one.receive(NOW, Request(2), None, None, Bytes::new(4));
    one.handle(NOW, Outcome::Ended { connection: ConnectionId(0) });
    one.send(NOW, Request(3), 1, 0, Bytes::new(4));
    let failure = Failure::PeerLost { rank: 1 };
    let asked = drain(&mut one, 0, &mut Content::new());
    let failed = |request| Output::Deliver(Done::Failed { request: Request(request), failure });
    assert_eq!(asked, [failed(1), failed(3)]);
    one.progress(NOW);
    assert_eq!(drain(&mut one, 0, &mut Content::new()), [], "nobody is left whom it could wait for");
}
