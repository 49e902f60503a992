//! What packing makes of items, and what unpacking makes of that.

use alloc::string::String;
use alloc::vec;

use proptest::prelude::*;

use super::super::{Octets, ReceiveBuffer};
use super::*;

const ALL: [Encoding; 2] = [Encoding::Default, Encoding::Raw];

fn parts(buffer: &SendBuffer<'_>) -> Vec<u64> {
    buffer.packed::<Octets>().parts.iter().map(|part| part.length().get()).collect()
}

fn sent(buffer: &SendBuffer<'_>) -> ReceiveBuffer {
    ReceiveBuffer::new(&buffer.packed::<Octets>()).expect("octets")
}

/// Octets that a call leaves, with each encoding.
fn lengths<T: Item>(items: &[T], count: usize, stride: usize) -> [u64; 2] {
    ALL.map(|encoding| {
        let mut buffer = SendBuffer::new(encoding);
        buffer.pack(items, count, stride).expect("they are there");
        buffer.length().get()
    })
}

#[test]
fn lengths_are_those_of_pvm() {
    // As `tests/golden/pvm/calls.txt` has them.
    assert_eq!(lengths(&[0_u8; 5], 5, 1), [8, 5]);
    assert_eq!(lengths(&[1_i16, -2, 3], 3, 1), [12, 6]);
    assert_eq!(lengths(&[1_i32, 2, 3], 3, 1), [12, 12]);
    assert_eq!(lengths(&[1_i32, 2, 3], 2, 2), [8, 8]);
    assert_eq!(lengths(&[1_i64, 2, 3], 3, 1), [12, 24]);
    assert_eq!(lengths(&[1_f32, 2.0, 3.0], 3, 1), [12, 12]);
    assert_eq!(lengths(&[[1_f32, 2.0]; 2], 2, 1), [16, 16]);
    assert_eq!(lengths(&[[1_f64, 2.0]; 2], 2, 1), [32, 32]);
    assert_eq!(lengths(&[0_u8], 1, 0), [4, 1]);
    assert_eq!(lengths(&[7_i32], 3, 0), [12, 12], "the same one again and again");
    for encoding in ALL {
        let mut buffer = SendBuffer::new(encoding);
        buffer.pack_string("hello").expect("a string");
        assert_eq!(buffer.length().get(), if encoding == Encoding::Default { 12 } else { 10 });
    }
}

#[test]
fn a_fragment_is_4032_octets_and_no_number_is_cut_in_xdr() {
    let doubles = vec![1.5_f64; 1200];
    for (encoding, expected) in ALL.into_iter().zip([vec![4028, 4032, 1544], vec![4032, 4032, 1540]]) {
        let mut buffer = SendBuffer::new(encoding);
        buffer.pack(&[7_i32], 1, 1).expect("one");
        buffer.pack(&doubles, 1200, 1).expect("all");
        assert_eq!(parts(&buffer), expected);
        let mut read = sent(&buffer);
        let (mut int, mut back) = ([0_i32], vec![0_f64; 1200]);
        read.unpack(&mut int, 1, 1).expect("one");
        read.unpack(&mut back, 1200, 1).expect("all");
        assert_eq!((int, back), ([7], doubles.clone()));
    }
    let mut buffer = SendBuffer::new(Encoding::Default);
    buffer.pack(&vec![7_u8; 4033], 4033, 1).expect("all");
    assert_eq!(parts(&buffer), [4032, 4]);
}

#[test]
fn what_is_lent_is_read_when_it_is_sent_and_is_a_fragment_of_its_own() {
    let mut memory = [1_i32, 2, 3];
    let cells = Cell::from_mut(&mut memory[..]).as_slice_of_cells();
    let mut buffer = SendBuffer::new(Encoding::InPlace);
    buffer.pack_in_place(cells, 3, 1).expect("three");
    buffer.pack_in_place(cells, 1, 1).expect("one");
    buffer.pack_in_place(cells, 0, 1).expect("none");
    cells[1].set(20);
    assert_eq!(parts(&buffer), [12, 4]);
    let packed = buffer.packed::<Octets>();
    assert_eq!(packed.encoding, Signature::LITTLE_64);
    let mut back = [0; 4];
    ReceiveBuffer::new(&packed).expect("octets").unpack(&mut back, 4, 1).expect("four");
    assert_eq!(back, [1, 20, 3, 1]);
    assert_eq!(buffer.pack_in_place(cells, 2, 2), Err(PvmError::NotImpl), "strides");
    assert_eq!(buffer.pack_in_place(cells, 4, 1), Err(PvmError::BadParam));
    assert_eq!(buffer.pack(&[1], 1, 1), Err(PvmError::NotImpl));
    assert_eq!(buffer.pack_string("no"), Err(PvmError::NotImpl));
    let mut copied = SendBuffer::new(Encoding::Raw);
    copied.pack_in_place(cells, 3, 1).expect("packed now");
    cells[0].set(10);
    sent(&copied).unpack(&mut back[..3], 3, 1).expect("three");
    assert_eq!(back[..3], [1, 20, 3]);
}

#[test]
fn misuse_is_refused_with_its_name() {
    let mut buffer = SendBuffer::new(Encoding::Default);
    assert_eq!(buffer.pack(&[1_i32, 2], 2, 2), Err(PvmError::BadParam), "there are not so many");
    assert_eq!(buffer.pack(&[1_i32], 2, usize::MAX), Err(PvmError::BadParam));
    assert_eq!(buffer.pack(&[1_i32], 0, 5), Ok(()), "nothing is nothing");
    assert_eq!(buffer.pack(&[3_i64, 1 << 31, 4], 3, 1), Err(PvmError::Overflow));
    assert_eq!(buffer.length().get(), 4, "what was before it");
    assert_eq!(buffer.pack(&[1_u64 << 32], 1, 1), Err(PvmError::Overflow));
    assert_eq!(buffer.pack(&[3_000_000_000_u64], 1, 1), Ok(()), "32 bits without a sign");
    assert_eq!(buffer.pack_string("a\0b"), Err(PvmError::BadParam));
}

#[test]
fn another_kind_gives_other_values_and_then_no_data() {
    for encoding in ALL {
        let mut buffer = SendBuffer::new(encoding);
        buffer.pack(&[1_i32, 2, 3], 3, 1).expect("three");
        let mut read = sent(&buffer);
        let mut doubles = [0_f64; 2];
        assert_eq!(read.unpack(&mut doubles, 1, 1), Ok(()), "eight octets are eight octets");
        assert_eq!(read.unpack(&mut doubles[1..], 1, 1), Err(PvmError::NoData));
        assert_eq!(read.unpack(&mut [0_i32], 1, 1), Err(PvmError::NoData), "nothing is left");
        let mut read = sent(&buffer);
        assert_eq!(read.unpack(&mut [0_i32; 3], 3, 2), Err(PvmError::BadParam), "no place");
        let mut four = [0_i32; 4];
        assert_eq!(read.unpack(&mut four, 4, 1), Err(PvmError::NoData));
        assert_eq!(four, [1, 2, 3, 0], "those before were taken out");
    }
    let mut long = SendBuffer::new(Encoding::Default);
    long.pack(&[100_i32], 1, 1).expect("one");
    assert_eq!(sent(&long).unpack_string(), Err(PvmError::NoData));
    let mut negative = SendBuffer::new(Encoding::Default);
    negative.pack(&[-1_i32], 1, 1).expect("one");
    assert_eq!(sent(&negative).unpack_string(), Err(PvmError::BadMsg));
}

#[test]
fn a_message_of_another_kind_of_host_is_read_only_in_xdr() {
    let strange = Packed { encoding: Signature(0x7), parts: vec![Octets::from(vec![0; 8])] };
    let mut read = ReceiveBuffer::new(&strange).expect("octets");
    assert_eq!(read.unpack(&mut [0_i32], 1, 1), Err(PvmError::BadMsg));
    assert_eq!(read.unpack_string(), Err(PvmError::BadMsg));
    assert_eq!(read.length().get(), 8);
}

proptest! {
    #[test]
    fn handles_are_cut_as_octets_are(count in 0_usize..3000, kind in 0_u8..4) {
        let mut checks = Vec::new();
        for encoding in ALL {
            let mut buffer = SendBuffer::new(encoding);
            let (kind, packed) = match kind {
                0 => (Kind::Byte, buffer.pack(&vec![1_u8; count], count, 1)),
                1 => (Kind::Short, buffer.pack(&vec![1_i16; count], count, 1)),
                2 => (Kind::Double, buffer.pack(&vec![1_f64; count], count, 1)),
                _ => (Kind::Dcplx, buffer.pack(&vec![[1_f64; 2]; count], count, 1)),
            };
            prop_assert_eq!(packed, Ok(()));
            prop_assert_eq!(packed_octets(encoding, kind, count as u64), buffer.length());
            let whole = Octets::from(vec![0; buffer.length().get() as usize]);
            let cut = Packed::cut(encoding, kind, &whole);
            let lengths: Vec<_> = cut.parts.iter().map(|part| part.length().get()).collect();
            checks.push((lengths, parts(&buffer)));
        }
        for (handles, octets) in checks {
            prop_assert_eq!(handles, octets);
        }
    }

    #[test]
    fn what_is_packed_is_what_is_unpacked(
        words in prop::collection::vec(any::<(i16, i32, f64, String)>(), 0..40), stride in 1_usize..4
    ) {
        for encoding in ALL {
            let mut buffer = SendBuffer::new(encoding);
            for (short, int, double, text) in &words {
                let text = text.replace('\0', "");
                let mut spread = vec![0_i32; 2 * stride];
                (spread[0], spread[stride]) = (*int, !*int);
                buffer.pack(&[*short], 1, 1).expect("a short");
                buffer.pack(&spread, 2, stride).expect("two ints");
                buffer.pack_string(&text).expect("a string");
                buffer.pack(&[[*double, -*double]], 1, 1).expect("a complex");
            }
            let mut read = sent(&buffer);
            for (short, int, double, text) in &words {
                let (mut s, mut i, mut d) = ([0_i16], vec![0_i32; 2 * stride], [[0_f64; 2]]);
                read.unpack(&mut s, 1, 1).expect("a short");
                read.unpack(&mut i, 2, stride).expect("two ints");
                prop_assert_eq!((s[0], i[0], i[stride]), (*short, *int, !*int));
                prop_assert_eq!(read.unpack_string(), Ok(text.replace('\0', "")));
                read.unpack(&mut d, 1, 1).expect("a complex");
                prop_assert_eq!((d[0][0].to_bits(), d[0][1].to_bits()), (double.to_bits(), (-double).to_bits()));
            }
        }
    }
}
