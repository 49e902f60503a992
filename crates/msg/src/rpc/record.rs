//! Records on a byte stream: cut into fragments, and put together again.
//!
//! RFC 5531 §11. How records share a buffer is left open there; the sender does as the `xdrrec` streams
//! of Sun's libraries: the buffer goes to the stream when it is full, as a fragment that is not the last
//! of its record if the record goes on, and when a record is to be sent now. A record that is not, and
//! fits, waits in the buffer for the next: that is what makes batched calls cheap.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::fmt;

use wiretwin_units::Bytes;
use wiretwin_wire::rpc::{MARK_OCTETS, RecordMark};

use super::Message;

/// Part of a record with the mark of a fragment before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece<M> {
    /// The mark.
    pub mark: RecordMark,
    /// The message that the record is.
    pub message: M,
    /// Which octet of the message it begins with; the mark has its length.
    pub start: Bytes,
}

/// What goes to the stream at once: one write to a socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write<M> {
    /// What it is made of, in order; one piece for each fragment.
    pub pieces: Vec<Piece<M>>,
}

impl<M> Write<M> {
    /// How many octets it has, marks included.
    pub fn length(&self) -> Bytes {
        let piece = |piece: &Piece<M>| MARK_OCTETS as u64 + u64::from(piece.mark.length());
        Bytes::new(self.pieces.iter().map(piece).sum())
    }
}

impl<M: Message> Write<M>
where
    M::Body: AsRef<[u8]>,
{
    /// Its octets.
    pub fn octets(&self) -> Vec<u8> {
        let mut octets = Vec::with_capacity(self.length().get() as usize);
        for piece in &self.pieces {
            octets.extend(piece.mark.octets());
            let head = piece.message.head();
            let body = piece.message.body().map_or(&[][..], AsRef::as_ref);
            let start = piece.start.get() as usize;
            let end = start + piece.mark.length() as usize;
            octets.extend(&head[start.min(head.len())..end.min(head.len())]);
            octets.extend(&body[start.saturating_sub(head.len())..end.saturating_sub(head.len())]);
        }
        octets
    }
}

/// The sender: records become writes.
#[derive(Clone, Debug)]
pub struct RecordSender<M> {
    buffer: u64,
    filled: u64,
    pieces: Vec<Piece<M>>,
    writes: VecDeque<Write<M>>,
}

impl<M: Clone> RecordSender<M> {
    /// A sender with a buffer of so many octets, marks included.
    ///
    /// Rounded as Sun's libraries do: below 100 octets it is [`DEFAULT_BUFFER`], otherwise the next
    /// multiple of four; at most 2^31 - 4, so that a fragment's length fits its mark.
    pub fn new(buffer: Bytes) -> Self {
        let buffer = match buffer.get() {
            ..100 => DEFAULT_BUFFER.get(),
            asked => asked.min(MAX_BUFFER).next_multiple_of(4),
        };
        Self { buffer, filled: 0, pieces: Vec::new(), writes: VecDeque::new() }
    }

    /// Puts a record behind those that wait; with `now`, all of them go.
    pub fn put(&mut self, message: &M, length: Bytes, now: bool) {
        let (mut start, mut cut) = (0, false);
        loop {
            if self.buffer - self.filled <= MARK_OCTETS as u64 {
                self.flush();
            }
            let room = self.buffer - self.filled - MARK_OCTETS as u64;
            let (left, last) = (length.get() - start, length.get() - start <= room);
            let taken = left.min(room);
            let mark = RecordMark::new(last, taken as u32).expect("a buffer is below 2^31 octets");
            self.pieces.push(Piece { mark, message: message.clone(), start: Bytes::new(start) });
            self.filled += MARK_OCTETS as u64 + taken;
            if last {
                break;
            }
            start += taken;
            cut = true;
            self.flush();
        }
        // The end of a record whose beginning has gone does not wait.
        if now || cut {
            self.flush();
        }
    }

    /// Sends what waits.
    pub fn flush(&mut self) {
        if self.filled > 0 {
            self.filled = 0;
            self.writes.push_back(Write { pieces: core::mem::take(&mut self.pieces) });
        }
    }

    /// The next write.
    pub fn poll_write(&mut self) -> Option<Write<M>> {
        self.writes.pop_front()
    }

    /// Forgets what was not sent: the connection is gone.
    pub fn clear(&mut self) {
        self.filled = 0;
        self.pieces.clear();
        self.writes.clear();
    }

    /// How many octets wait.
    pub fn waiting(&self) -> Bytes {
        Bytes::new(self.filled)
    }
}

/// Why a stream cannot go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordError {
    /// A record is larger than the receiver takes.
    Oversized {
        /// What its marks have announced so far.
        announced: Bytes,
        /// The bound.
        allowed: Bytes,
    },
    /// Too many fragments of no octets, one after the other.
    Empty {
        /// The bound.
        allowed: u32,
    },
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Oversized { announced, allowed } => {
                write!(f, "a record of {} octets or more, allowed are {}", announced.get(), allowed.get())
            }
            Self::Empty { allowed } => {
                write!(f, "a record with more than {allowed} fragments of no octets, allowed are {allowed}")
            }
        }
    }
}

impl core::error::Error for RecordError {}

/// The receiver: octets of a stream become records.
///
/// It holds no more than the bound, however much a mark announces, and nothing of a record over it.
#[derive(Clone, Debug)]
pub struct RecordReceiver {
    largest: Bytes,
    mark: Vec<u8>,
    /// Octets of the fragment that are still to come.
    left: u64,
    last: bool,
    empty: u32,
    record: Vec<u8>,
    records: VecDeque<Vec<u8>>,
    failed: Option<RecordError>,
}

impl RecordReceiver {
    /// A receiver of records of at most so many octets, marks not counted.
    pub fn new(largest: Bytes) -> Self {
        Self {
            largest,
            mark: Vec::new(),
            left: 0,
            last: false,
            empty: 0,
            record: Vec::new(),
            records: VecDeque::new(),
            failed: None,
        }
    }

    /// Takes octets of the stream.
    ///
    /// # Errors
    /// [`RecordError`]: where the next record begins is not known any more, and the connection must end.
    /// The records before it can still be had. The error stays.
    pub fn handle_octets(&mut self, mut octets: &[u8]) -> Result<(), RecordError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        while !octets.is_empty() {
            if self.left == 0 {
                let (head, rest) = octets.split_at(octets.len().min(MARK_OCTETS - self.mark.len()));
                self.mark.extend(head);
                octets = rest;
                if let Some(mark) = RecordMark::parse(&self.mark) {
                    self.mark.clear();
                    self.handle_mark(mark).inspect_err(|&error| self.fail(error))?;
                }
            } else {
                let here = octets.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
                let (data, rest) = octets.split_at(here);
                self.record.extend(data);
                self.left -= data.len() as u64;
                octets = rest;
            }
            if self.left == 0 && self.last && self.mark.is_empty() {
                self.last = false;
                self.records.push_back(core::mem::take(&mut self.record));
            }
        }
        Ok(())
    }

    /// The next whole record.
    pub fn poll_record(&mut self) -> Option<Vec<u8>> {
        self.records.pop_front()
    }

    /// Whether the stream may end here: not within a record.
    pub fn at_boundary(&self) -> bool {
        self.left == 0 && self.mark.is_empty() && self.record.is_empty() && self.empty == 0
    }

    fn handle_mark(&mut self, mark: RecordMark) -> Result<(), RecordError> {
        let announced = Bytes::new(self.record.len() as u64 + u64::from(mark.length()));
        if announced > self.largest {
            return Err(RecordError::Oversized { announced, allowed: self.largest });
        }
        self.empty = if mark.length() == 0 && !mark.is_last() { self.empty + 1 } else { 0 };
        if self.empty > MAX_EMPTY {
            return Err(RecordError::Empty { allowed: MAX_EMPTY });
        }
        self.left = mark.length().into();
        self.last = mark.is_last();
        Ok(())
    }

    fn fail(&mut self, error: RecordError) {
        self.failed = Some(error);
        self.record = Vec::new();
    }
}

/// The buffer of a connection unless a program asks for another, octets.
pub const DEFAULT_BUFFER: Bytes = Bytes::new(4000);
const MAX_BUFFER: u64 = (1 << 31) - 4;
/// Choice: fragments of no octets are legal; so many in a row are a peer that keeps us busy.
const MAX_EMPTY: u32 = 64;

/// Reads arbitrary octets as a stream in steps, whole, and cut otherwise; the fuzz target is this function.
///
/// # Panics
/// If the records depend on how the stream was cut, or one is over the bound: a bug here.
#[doc(hidden)]
pub fn same_however_cut(octets: &[u8], step: usize) {
    let all = |step: usize| {
        let mut receiver = RecordReceiver::new(Bytes::new(1000));
        let failed = octets.chunks(step.max(1)).find_map(|chunk| receiver.handle_octets(chunk).err());
        let records: Vec<_> = core::iter::from_fn(|| receiver.poll_record()).collect();
        assert!(records.iter().all(|record| record.len() <= 1000), "within the bound");
        (records, failed, receiver.at_boundary())
    };
    assert_eq!(all(octets.len()), all(step));
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;
    use alloc::vec;

    use proptest::prelude::*;

    use super::*;

    /// Marks of the writes: last or not, and length.
    fn marks(sender: &mut RecordSender<char>) -> Vec<Vec<(char, bool, u32, u64)>> {
        core::iter::from_fn(|| sender.poll_write())
            .map(|write| {
                let of = |p: &Piece<char>| (p.message, p.mark.is_last(), p.mark.length(), p.start.get());
                write.pieces.iter().map(of).collect()
            })
            .collect()
    }

    #[test]
    fn a_call_larger_than_the_buffer_is_several_writes() {
        let mut sender = RecordSender::new(Bytes::new(0));
        sender.put(&'a', Bytes::new(10_000), true);
        let expected =
            [vec![('a', false, 3996, 0)], vec![('a', false, 3996, 3996)], vec![('a', true, 2008, 7992)]];
        assert_eq!(marks(&mut sender), expected);
    }

    #[test]
    fn records_that_need_not_go_now_share_a_write() {
        let mut sender = RecordSender::new(Bytes::new(101));
        sender.put(&'a', Bytes::new(40), false);
        sender.put(&'b', Bytes::new(40), false);
        assert_eq!(sender.poll_write(), None);
        assert_eq!(sender.waiting(), Bytes::new(88));
        sender.put(&'c', Bytes::new(40), true);
        let first = vec![('a', true, 40, 0), ('b', true, 40, 0), ('c', false, 12, 0)];
        assert_eq!(marks(&mut sender), [first, vec![('c', true, 28, 12)]]);
        assert_eq!(sender.waiting(), Bytes::new(0));
    }

    #[test]
    fn the_end_of_a_record_whose_beginning_has_gone_does_not_wait() {
        let mut sender = RecordSender::new(Bytes::new(100));
        sender.put(&'a', Bytes::new(120), false);
        assert_eq!(marks(&mut sender), [vec![('a', false, 96, 0)], vec![('a', true, 24, 96)]]);
        // A buffer with room for a mark and no more is full.
        sender.put(&'b', Bytes::new(92), false);
        sender.put(&'c', Bytes::new(8), false);
        assert_eq!(marks(&mut sender), [vec![('b', true, 92, 0)]]);
        sender.clear();
        sender.flush();
        assert_eq!(sender.poll_write(), None, "forgotten");
    }

    #[test]
    fn fragments_become_the_record_that_they_were() {
        let mut receiver = RecordReceiver::new(Bytes::new(8));
        receiver.handle_octets(b"\0\0\0\x03ab").expect("a fragment");
        assert!(!receiver.at_boundary());
        receiver.handle_octets(b"c\0\0\0\0\x80\0\0\x02de\x80").expect("its other fragments");
        assert_eq!(receiver.poll_record(), Some(b"abcde".to_vec()));
        assert_eq!(receiver.poll_record(), None);
        assert!(!receiver.at_boundary(), "an octet of a mark");
        receiver.handle_octets(b"\0\0\0").expect("a record of no octets");
        assert_eq!(receiver.poll_record(), Some(Vec::new()));
        assert!(receiver.at_boundary());
    }

    #[test]
    fn a_record_over_the_bound_is_refused_when_it_is_announced() {
        let mut receiver = RecordReceiver::new(Bytes::new(8));
        receiver.handle_octets(b"\x80\0\0\x01x\0\0\0\x05abcde").expect("five octets of eight");
        let error = receiver.handle_octets(b"\x80\0\0\x04").expect_err("nine octets");
        assert_eq!(error.to_string(), "a record of 9 octets or more, allowed are 8");
        assert_eq!(receiver.handle_octets(b"\x80\0\0\0"), Err(error), "for good");
        assert_eq!(receiver.poll_record(), Some(b"x".to_vec()), "what came before");
        let mut receiver = RecordReceiver::new(Bytes::new(8));
        let error = receiver.handle_octets(b"GET / HTTP/1.1").expect_err("no records at all");
        assert_eq!(error.to_string(), "a record of 1195725856 octets or more, allowed are 8");
    }

    #[test]
    fn fragments_of_nothing_do_not_go_on_for_ever() {
        let mut receiver = RecordReceiver::new(Bytes::new(8));
        receiver.handle_octets(&[0; 64 * 4]).expect("64 of them");
        let error = receiver.handle_octets(&[0; 4]).expect_err("the 65th");
        assert_eq!(error.to_string(), "a record with more than 64 fragments of no octets, allowed are 64");
    }

    proptest! {
        #[test]
        fn records_arrive_whole_and_in_order_however_the_stream_is_cut(
            records in prop::collection::vec((0u32..400, any::<bool>()), 1..12),
            buffer in 100u64..300,
            step in 1usize..50,
        ) {
            let mut sender = RecordSender::new(Bytes::new(buffer));
            let sent: Vec<Vec<u8>> = records.iter().enumerate()
                .map(|(at, &(length, _))| (0..length).map(|octet| (octet as usize + at) as u8).collect())
                .collect();
            for (at, &(length, now)) in records.iter().enumerate() {
                sender.put(&at, Bytes::new(length.into()), now);
            }
            sender.flush();
            let mut stream = Vec::new();
            while let Some(write) = sender.poll_write() {
                prop_assert!(write.length().get() <= buffer.next_multiple_of(4));
                for piece in write.pieces {
                    let start = piece.start.get() as usize;
                    stream.extend(piece.mark.octets());
                    stream.extend(&sent[piece.message][start..start + piece.mark.length() as usize]);
                }
            }
            let mut receiver = RecordReceiver::new(Bytes::new(400));
            for octets in stream.chunks(step) {
                receiver.handle_octets(octets).expect("within the bound");
            }
            prop_assert!(receiver.at_boundary());
            let received: Vec<_> = core::iter::from_fn(|| receiver.poll_record()).collect();
            prop_assert_eq!(received, sent);
            same_however_cut(&stream, step);
        }
    }
}
