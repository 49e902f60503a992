//! Unpacking: items out of the fragments of a message.
//!
//! `pvm_upk*`. A message says in one word how it is encoded and does not say what was packed: taking out
//! another kind than was put in gives other values, until nothing is left and the call fails. Left out:
//! `pvm_unpackf`.

use alloc::string::String;
use alloc::vec::Vec;

use wiretwin_units::Bytes;

use super::body::gather;
use super::item::Item;
use super::pack::{Packed, Signature};
use super::{Body, PvmError};

/// A buffer that is unpacked. Fragments are a stream of octets here: no item knows of their borders.
#[derive(Clone, Debug)]
pub struct ReceiveBuffer {
    encoding: Signature,
    octets: Vec<u8>,
    at: usize,
}

impl ReceiveBuffer {
    /// The buffer of what a message carries; `None` where that is a handle.
    pub fn new<B: Body>(packed: &Packed<B>) -> Option<Self> {
        Some(Self { encoding: packed.encoding, octets: gather(&packed.parts)?, at: 0 })
    }

    /// Octets that it holds, taken out or not (`pvm_bufinfo`).
    pub const fn length(&self) -> Bytes {
        Bytes::new(self.octets.len() as u64)
    }

    /// Octets that were not taken out.
    pub const fn left(&self) -> Bytes {
        Bytes::new((self.octets.len() - self.at) as u64)
    }

    /// Takes items out to every `stride`-th place (`pvm_upkbyte` and the others).
    ///
    /// # Errors
    /// [`PvmError::BadMsg`] for an encoding of another kind of host; [`PvmError::NoData`] where the buffer
    /// ends before: the items before were taken out, and nothing is left; [`PvmError::BadParam`] where
    /// there are not so many places.
    pub fn unpack<T: Item>(&mut self, items: &mut [T], count: usize, stride: usize) -> Result<(), PvmError> {
        let last = count.checked_sub(1).map(|last| last.checked_mul(stride));
        match last {
            Some(Some(last)) if last >= items.len() => return Err(PvmError::BadParam),
            Some(None) => return Err(PvmError::BadParam),
            _ => {}
        }
        let xdr = self.is_xdr()?;
        for number in 0..count {
            items[number * stride] = if xdr {
                T::from_xdr(self.take(T::KIND.in_xdr())?)
            } else {
                T::from_memory(self.take(T::KIND.in_memory())?)
            };
        }
        if xdr {
            self.at = self.at.next_multiple_of(4).min(self.octets.len());
        }
        Ok(())
    }

    /// Takes a string out (`pvm_upkstr`).
    ///
    /// # Errors
    /// As [`ReceiveBuffer::unpack`]; [`PvmError::BadMsg`] where what is there cannot be a string.
    pub fn unpack_string(&mut self) -> Result<String, PvmError> {
        let mut length = [0_i32];
        self.unpack(&mut length, 1, 1)?;
        let length = usize::try_from(length[0]).map_err(|_| PvmError::BadMsg)?;
        if length > self.octets.len() - self.at {
            self.at = self.octets.len();
            return Err(PvmError::NoData);
        }
        let mut octets = alloc::vec![0_u8; length];
        self.unpack(&mut octets, length, 1)?;
        let end = octets.iter().position(|&octet| octet == 0).ok_or(PvmError::BadMsg)?;
        octets.truncate(end);
        String::from_utf8(octets).map_err(|_| PvmError::BadMsg)
    }

    fn is_xdr(&self) -> Result<bool, PvmError> {
        match self.encoding {
            Signature::XDR => Ok(true),
            Signature::LITTLE_64 => Ok(false),
            _ => Err(PvmError::BadMsg),
        }
    }

    fn take(&mut self, count: usize) -> Result<&[u8], PvmError> {
        let Some(octets) = self.octets.get(self.at..self.at + count) else {
            self.at = self.octets.len();
            return Err(PvmError::NoData);
        };
        self.at += count;
        Ok(octets)
    }
}

/// Takes items of all kinds out of arbitrary octets.
///
/// # Panics
/// If one is taken out of an empty buffer: a bug here.
#[doc(hidden)]
pub fn read_arbitrary(octets: &[u8]) {
    let Some((&how, rest)) = octets.split_first() else { return };
    let encoding = [Signature::XDR, Signature::LITTLE_64, Signature(7)][usize::from(how % 3)];
    let packed = Packed { encoding, parts: alloc::vec![super::Octets::from(rest.to_vec())] };
    let mut buffer = ReceiveBuffer::new(&packed).expect("octets");
    for kind in rest {
        let done = match kind % 6 {
            0 => buffer.unpack(&mut [0_u8; 3], 3, 1),
            1 => buffer.unpack(&mut [0_i16; 3], 2, 2),
            2 => buffer.unpack(&mut [0_i64], 1, 1),
            3 => buffer.unpack(&mut [0_f64], 1, 1),
            4 => buffer.unpack(&mut [[0_f32; 2]], 1, 1),
            _ => buffer.unpack_string().map(drop),
        };
        if done == Err(PvmError::NoData) {
            assert_eq!(buffer.unpack(&mut [0_i32], 1, 1), Err(PvmError::NoData), "nothing is left");
        }
    }
}
