use super::*;

/// Zeroed, page-aligned memory for one ring.
struct Memory(NonNull<u8>);

impl Memory {
    const LAYOUT: std::alloc::Layout = match std::alloc::Layout::from_size_align(RING_BYTES, 4096) {
        Ok(layout) => layout,
        Err(_) => panic!("a valid layout"),
    };

    fn new() -> Self {
        // SAFETY: the layout has a size above zero.
        Self(NonNull::new(unsafe { std::alloc::alloc_zeroed(Self::LAYOUT) }).unwrap())
    }

    fn ends(&self) -> (Producer, Consumer) {
        // SAFETY: fresh zeroed memory of the right size, freed after the test's last use.
        unsafe { (Producer::new(self.0), Consumer::new(self.0)) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: allocated above with this layout.
        unsafe { std::alloc::dealloc(self.0.as_ptr(), Self::LAYOUT) };
    }
}

fn pull(consumer: &mut Consumer, buffer: &mut [u8]) -> Option<usize> {
    consumer.peek().map(|announced| consumer.take(announced, buffer))
}

#[test]
fn a_ring_is_full_after_its_lines_and_free_again_after_a_report() {
    let memory = Memory::new();
    let (mut producer, mut consumer) = memory.ends();
    let mut buffer = [0; INLINE];
    assert_eq!(pull(&mut consumer, &mut buffer), None);
    for lap in 0..5_u8 {
        for number in 0..LINES as u8 {
            assert_eq!(producer.push(&[lap, number]), Some(2));
        }
        assert_eq!(producer.push(&[9]), None, "every line is taken");
        for number in 0..LINES as u8 {
            assert_eq!(pull(&mut consumer, &mut buffer), Some(2));
            assert_eq!(buffer[..2], [lap, number]);
        }
        assert_eq!(pull(&mut consumer, &mut buffer), None);
    }
}

#[test]
fn a_consumer_reports_when_it_asks_for_the_next_line_and_not_before_it_can_answer() {
    let memory = Memory::new();
    let (mut producer, mut consumer) = memory.ends();
    let mut buffer = [0; 4];
    for number in 0..REPORT {
        assert!(producer.push_line(&(number as u32).to_le_bytes()));
        assert!(consumer.take_line(&mut buffer, 1));
        assert_eq!(u32::from_le_bytes(buffer), number as u32);
    }
    assert_eq!(consumer.area.lines_done().load(Ordering::Relaxed), 0);
    assert!(!consumer.take_line(&mut buffer, 1), "nothing has come");
    assert_eq!(consumer.area.lines_done().load(Ordering::Relaxed), REPORT);
}

#[test]
fn short_messages_that_are_taken_never_leave_the_short_way() {
    let memory = Memory::new();
    let (mut producer, mut consumer) = memory.ends();
    for number in 0..10 * LINES {
        let mut buffer = [0; 8];
        assert!(producer.push_line(&number.to_le_bytes()), "message {number}");
        assert!(consumer.take_line(&mut buffer, 1), "message {number}");
        assert_eq!(u64::from_le_bytes(buffer), number);
    }
}

#[test]
fn lines_that_nobody_takes_are_not_overwritten_by_short_messages() {
    let memory = Memory::new();
    let (mut producer, mut consumer) = memory.ends();
    let sent = (0..2 * LINES).take_while(|number| producer.push_line(&number.to_le_bytes())).count();
    assert_eq!(sent as u64, LINES);
    for number in 0..LINES {
        let mut buffer = [0; 8];
        assert!(consumer.take_line(&mut buffer, 1));
        assert_eq!(u64::from_le_bytes(buffer), number);
    }
}

#[test]
fn every_length_that_fits_in_a_line_comes_whole_by_either_way() {
    let memory = Memory::new();
    let (mut producer, mut consumer) = memory.ends();
    // Three laps and more, of payloads that set every bit of a mark.
    for number in 0..8 * (INLINE + 1) {
        let length = number % (INLINE + 1);
        let message: Vec<u8> = (0..length).map(|at| (0xff ^ at ^ number) as u8).collect();
        let mut buffer = vec![0x11; length];
        if (number / (INLINE + 1)).is_multiple_of(2) {
            assert!(producer.push_line(&message));
        } else {
            assert_eq!(producer.push(&message), Some(length));
        }
        if number / (INLINE + 1) % 4 < 2 {
            assert!(consumer.take_line(&mut buffer, 1));
        } else {
            assert_eq!(pull(&mut consumer, &mut buffer), Some(length));
        }
        assert_eq!(buffer, message, "message {number} of {length} bytes");
        assert_eq!(consumer.peek(), None);
    }
}

#[test]
fn a_message_of_another_length_is_not_taken_for_the_one_expected() {
    let memory = Memory::new();
    let (mut producer, mut consumer) = memory.ends();
    for length in 0..=INLINE {
        assert!(producer.push_line(&vec![0xff; length]));
        for other in (0..=INLINE).filter(|&other| other != length) {
            assert!(!consumer.take_line(&mut vec![0; other], 1), "{other} for {length}");
        }
        assert_eq!(pull(&mut consumer, &mut [0; INLINE]), Some(length));
    }
    assert_eq!(producer.push(&[7; INLINE + 1]), Some(INLINE + 1));
    for length in 0..=INLINE {
        assert!(!consumer.take_line(&mut vec![0; length], 1), "{length} for a chunk");
    }
    assert_eq!(pull(&mut consumer, &mut [0; LINE]), Some(LINE));
}

#[test]
fn an_empty_message_is_a_message() {
    let memory = Memory::new();
    let (mut producer, mut consumer) = memory.ends();
    assert_eq!(producer.push(&[]), Some(0));
    assert!(consumer.peek().unwrap().is_empty());
    assert_eq!(pull(&mut consumer, &mut []), Some(0));
    assert!(consumer.peek().is_none());
}

#[test]
fn a_short_buffer_takes_a_line_in_parts() {
    let memory = Memory::new();
    let (mut producer, mut consumer) = memory.ends();
    producer.push(&[1, 2, 3, 4, 5]).unwrap();
    let mut buffer = [0; 3];
    assert_eq!(pull(&mut consumer, &mut buffer), Some(3));
    assert_eq!(buffer, [1, 2, 3]);
    assert_eq!(pull(&mut consumer, &mut buffer), Some(2));
    assert_eq!(buffer[..2], [4, 5]);
    assert_eq!(pull(&mut consumer, &mut buffer), None);
}

#[test]
fn the_bulk_area_fills_and_wraps_without_losing_a_byte() {
    let memory = Memory::new();
    let (mut producer, mut consumer) = memory.ends();
    let sent: Vec<u8> = (0..3_000_017_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let mut came = vec![0; sent.len()];
    let (mut out, mut back, mut full) = (0, 0, 0);
    // Odd lengths, so that chunks meet the end of the area at every offset.
    let lengths = [57, 8191, 8192, 8193, 100_001, 56, 63, 1];
    let mut turn = 0;
    while back < sent.len() {
        let length = lengths[turn % lengths.len()].min(sent.len() - out);
        turn += 1;
        let mut pushed = 0;
        while pushed < length {
            match producer.push(&sent[out + pushed..out + length]) {
                Some(count) => pushed += count,
                None => {
                    full += 1;
                    while let Some(count) = pull(&mut consumer, &mut came[back..]) {
                        back += count;
                    }
                }
            }
        }
        out += length;
        if out == sent.len() {
            while let Some(count) = pull(&mut consumer, &mut came[back..]) {
                back += count;
            }
        }
    }
    assert!(full > 5, "the ring was full {full} times");
    assert!(sent == came);
}

#[test]
fn short_frames_come_whole_and_others_are_left() {
    let memory = Memory::new();
    let (mut producer, mut consumer) = memory.ends();
    for number in 0..4 * LINES as usize {
        let length = number % (INLINE - 2);
        let rest: Vec<u8> = (0..length).map(|at| (at ^ number) as u8).collect();
        assert!(consumer.await_line(1).is_none());
        assert!(producer.push_short(0xaa_bb_cc, &rest), "frame {number}");
        let (first, frame) = consumer.await_line(1).unwrap();
        assert_eq!(first & 0xff_ff_ff, 0xaa_bb_cc, "frame {number}");
        assert_eq!((&frame[..3], &frame[3..]), (&[0xcc, 0xbb, 0xaa][..], &rest[..]), "frame {number}");
        consumer.pass_line();
    }
    assert!(!producer.push_short(0, &[0; INLINE - 2]), "longer than a line");
    producer.push_frame(&[1; 3], &[0; INLINE]).unwrap();
    assert!(consumer.await_line(1).is_none() && consumer.has_frame());
    while producer.push_short(0, &[]) {}
    assert!(!producer.push_short(0, &[]), "no line is known to be free");
}

#[test]
fn frames_come_in_one_piece_in_order_and_only_where_there_is_room() {
    let memory = Memory::new();
    let (mut producer, mut consumer) = memory.ends();
    let lengths = [40, 56, 63, 64, 1000, 8252, FRAME, 9999];
    let (mut sent, mut came, mut full) = (0_usize, 0_usize, 0);
    while came < 4000 {
        let length = lengths[sent % lengths.len()];
        let bytes: Vec<u8> = (0..length).map(|at| (at * 3 + sent) as u8).collect();
        let has_room = producer.has_room();
        let head = 32.min(length);
        let is_written = has_room && length <= INLINE && (sent / lengths.len()).is_multiple_of(2);
        let has_gone = if is_written {
            producer.push_written(length, |line| line.copy_from_slice(&bytes))
        } else {
            producer.push_frame(&bytes[..head], &bytes[head..]).is_some()
        };
        assert_eq!(has_gone, has_room);
        assert!(!producer.push_written(INLINE + 1, |_| unreachable!("longer than a line")));
        if has_room {
            sent += 1;
            continue;
        }
        full += 1;
        while consumer.take_frame(|frame| {
            let length = lengths[came % lengths.len()];
            assert!(frame.iter().copied().eq((0..length).map(|at| (at * 3 + came) as u8)), "frame {came}");
        }) {
            came += 1;
        }
        assert_eq!(came, sent);
    }
    assert!(full > 50, "the ring was full {full} times");
}

#[test]
fn a_length_that_the_other_process_made_up_stays_inside_the_area() {
    let memory = Memory::new();
    let (_, mut consumer) = memory.ends();
    consumer.area.word(0).store((u64::MAX << 8 | lap(0) | LENGTH).to_le(), Ordering::Release);
    let mut buffer = [0; 4096];
    assert_eq!(pull(&mut consumer, &mut buffer), Some(INLINE));
    consumer.area.word(1).store((u64::MAX << 8 | lap(1) | IN_BULK | LENGTH).to_le(), Ordering::Release);
    let mut large = vec![0; 1 << 20];
    assert_eq!(pull(&mut consumer, &mut large), Some(CHUNK));
}

#[test]
fn two_threads_pass_every_length_in_order() {
    struct Shared(NonNull<u8>);
    // SAFETY: the ring is made to be used by one producer and one consumer at once.
    unsafe impl Send for Shared {}
    let memory = Memory::new();
    let shared = Shared(memory.0);
    // Half of them short.
    let lengths: Vec<usize> =
        (0..800).map(|at| if at % 4 < 2 { at % LINE } else { (at * at * 7) % 20_011 }).collect();
    let theirs = lengths.clone();
    let sender = std::thread::spawn(move || {
        let shared = shared;
        // SAFETY: the memory outlives the thread, which is joined below.
        let mut producer = unsafe { Producer::new(shared.0) };
        for (number, &length) in theirs.iter().enumerate() {
            let message = vec![number as u8; length];
            let mut sent = 0;
            loop {
                if let Some(count) = producer.push(&message[sent..]) {
                    sent += count;
                    if sent == length {
                        break;
                    }
                } else {
                    std::thread::yield_now();
                }
            }
        }
    });
    // SAFETY: as above.
    let mut consumer = unsafe { Consumer::new(memory.0) };
    for (number, &length) in lengths.iter().enumerate() {
        let mut message = vec![!(number as u8); length];
        let mut filled = 0;
        loop {
            if let Some(count) = pull(&mut consumer, &mut message[filled..]) {
                filled += count;
                if filled == length {
                    break;
                }
            } else {
                std::thread::yield_now();
            }
        }
        assert!(message.iter().all(|&byte| byte == number as u8), "message {number} of {length}");
    }
    sender.join().unwrap();
}
