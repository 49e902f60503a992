//! Packing: items into the fragments of a message.
//!
//! `pvm_initsend`, `pvm_mkbuf`, `pvm_pk*`. A buffer is a value here, so there is no table of buffers, no
//! active one, and no call that frees one. Left out: `pvm_packf`; the encoding of traces.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::cell::Cell;
use core::fmt;

use wiretwin_units::Bytes;

use super::item::{Item, Kind};
use super::{Body, PvmError};

/// How items are encoded (`PvmDataDefault`, `PvmDataRaw`, `PvmDataInPlace`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Encoding {
    /// XDR: any host can read it.
    Default,
    /// As in memory, copied into the buffer.
    Raw,
    /// As in memory, taken from there when the message is sent.
    InPlace,
}

/// What a host's numbers look like: the encoding word of a message that is not in XDR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signature(pub u32);

impl Signature {
    /// The encoding word of XDR.
    pub const XDR: Self = Self(wiretwin_wire::pvm::Message::XDR);
    /// A host of 64 bits, least significant octet first, with IEEE numbers: what this library writes.
    pub const LITTLE_64: Self = Self(0x0040_8c41);
}

/// What a message is sent with: its encoding word, and its fragments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packed<B> {
    /// The encoding word.
    pub encoding: Signature,
    /// The fragments, in order; none for a message that carries nothing.
    pub parts: Vec<B>,
}

impl<B: Body> Packed<B> {
    /// How long it is, headers apart.
    pub fn length(&self) -> Bytes {
        self.parts.iter().map(Body::length).sum()
    }

    /// A message that carries nothing.
    pub const fn empty() -> Self {
        Self { encoding: Signature::XDR, parts: Vec::new() }
    }

    /// A body as it is, cut as items of one kind are that are packed by one call.
    pub fn cut(encoding: Encoding, kind: Kind, body: &B) -> Self {
        let (mut parts, mut at) = (Vec::new(), Bytes::new(0));
        let most = match encoding {
            Encoding::InPlace => body.length(),
            Encoding::Raw => FRAGMENT_DATA,
            Encoding::Default => {
                let together = kind.together() as u64;
                Bytes::new(FRAGMENT_DATA.get() / together * together)
            }
        };
        while at < body.length() {
            let length = (body.length() - at).min(most);
            parts.push(body.part(at, length));
            at += length;
        }
        Self { encoding: word(encoding), parts }
    }
}

/// Octets that so many items of a kind take, packed by one call.
pub const fn packed_octets(encoding: Encoding, kind: Kind, count: u64) -> Bytes {
    Bytes::new(match encoding {
        Encoding::Default => (count * kind.in_xdr() as u64).next_multiple_of(4),
        Encoding::Raw | Encoding::InPlace => count * kind.in_memory() as u64,
    })
}

/// Memory that is read when the message is sent.
trait Memory {
    fn octets(&self) -> Vec<u8>;
}

impl<T: Item> Memory for [Cell<T>] {
    fn octets(&self) -> Vec<u8> {
        let mut octets = alloc::vec![0; self.len() * T::KIND.in_memory()];
        for (item, place) in self.iter().zip(octets.chunks_exact_mut(T::KIND.in_memory())) {
            item.get().to_memory(place);
        }
        octets
    }
}

enum Part<'a> {
    Copied(Vec<u8>),
    InPlace(Box<dyn Fn() -> Vec<u8> + 'a>),
}

/// A buffer that is packed (`pvm_initsend`).
pub struct SendBuffer<'a> {
    encoding: Encoding,
    parts: Vec<Part<'a>>,
}

impl fmt::Debug for SendBuffer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (encoding, parts) = (self.encoding, self.parts.len());
        f.debug_struct("SendBuffer").field("encoding", &encoding).field("parts", &parts).finish()
    }
}

impl<'a> SendBuffer<'a> {
    /// An empty buffer.
    pub const fn new(encoding: Encoding) -> Self {
        Self { encoding, parts: Vec::new() }
    }

    /// Packs `count` items, each `stride` items behind the one before (`pvm_pkbyte` and the others). A
    /// stride of 0 packs the first one again and again.
    ///
    /// # Errors
    /// [`PvmError::BadParam`] where there are not so many items; [`PvmError::NotImpl`] in place, where
    /// memory is to be lent by [`SendBuffer::pack_in_place`]; [`PvmError::Overflow`] for a long of more
    /// than 32 bits in XDR, what was before it being packed.
    pub fn pack<T: Item>(&mut self, items: &[T], count: usize, stride: usize) -> Result<(), PvmError> {
        let chosen = strided(items, count, stride)?;
        let (each, together) = match self.encoding {
            Encoding::Default => (T::KIND.in_xdr(), T::KIND.together()),
            Encoding::Raw => (T::KIND.in_memory(), 1),
            Encoding::InPlace => return Err(PvmError::NotImpl),
        };
        let mut octets = alloc::vec![0; count * each];
        let mut done = Ok(());
        let mut length = 0;
        for (&item, place) in chosen.zip(octets.chunks_exact_mut(each)) {
            match self.encoding {
                Encoding::Default => done = item.to_xdr(place),
                _ => item.to_memory(place),
            }
            if done.is_err() {
                break;
            }
            length += each;
        }
        self.put(&octets[..length], together);
        self.fill();
        done
    }

    /// Lends items, next to each other, that are read when the message is sent. In the other encodings
    /// they are packed now.
    ///
    /// # Errors
    /// [`PvmError::NotImpl`] for another stride than 1, in place; else as [`SendBuffer::pack`].
    pub fn pack_in_place<T: Item>(
        &mut self,
        items: &'a [Cell<T>],
        count: usize,
        stride: usize,
    ) -> Result<(), PvmError> {
        if self.encoding != Encoding::InPlace {
            let now: Vec<T> = items.iter().map(Cell::get).collect();
            return self.pack(&now, count, stride);
        }
        if stride != 1 {
            return Err(PvmError::NotImpl);
        }
        let items = items.get(..count).ok_or(PvmError::BadParam)?;
        if count > 0 {
            self.parts.push(Part::InPlace(Box::new(move || items.octets())));
        }
        Ok(())
    }

    /// Packs a string (`pvm_pkstr`): its length with the zero behind it, and the octets.
    ///
    /// # Errors
    /// [`PvmError::NotImpl`] in place; [`PvmError::BadParam`] for one that has a zero in it, or more than
    /// 2^31 - 2 octets.
    pub fn pack_string(&mut self, text: &str) -> Result<(), PvmError> {
        if self.encoding == Encoding::InPlace {
            return Err(PvmError::NotImpl);
        }
        let length = i32::try_from(text.len() + 1).map_err(|_| PvmError::BadParam)?;
        if text.bytes().any(|octet| octet == 0) {
            return Err(PvmError::BadParam);
        }
        self.pack(&[length], 1, 1)?;
        let mut octets = text.as_bytes().to_vec();
        octets.push(0);
        self.pack(&octets, octets.len(), 1)
    }

    /// Octets that were packed (`pvm_bufinfo`).
    pub fn length(&self) -> Bytes {
        let length = |part: &Part<'_>| match part {
            Part::Copied(octets) => octets.len(),
            Part::InPlace(read) => read().len(),
        };
        Bytes::new(self.parts.iter().map(length).sum::<usize>() as u64)
    }

    /// What is sent; memory that was lent is read now. The buffer may be sent again.
    pub fn packed<B: Body>(&self) -> Packed<B> {
        let body = |part: &Part<'_>| match part {
            Part::Copied(octets) => B::from_octets(octets.clone()),
            Part::InPlace(read) => B::from_octets(read()),
        };
        Packed { encoding: word(self.encoding), parts: self.parts.iter().map(body).collect() }
    }

    /// Puts octets behind those that there are, units of `together` never in two fragments.
    fn put(&mut self, mut octets: &[u8], together: usize) {
        let most = FRAGMENT_DATA.get() as usize;
        while !octets.is_empty() {
            let room = match self.parts.last() {
                Some(Part::Copied(last)) => (most - last.len()) / together * together,
                _ => 0,
            };
            if room == 0 {
                self.parts.push(Part::Copied(Vec::new()));
                continue;
            }
            let (now, later) = octets.split_at(octets.len().min(room));
            if let Some(Part::Copied(last)) = self.parts.last_mut() {
                last.extend_from_slice(now);
            }
            octets = later;
        }
    }

    /// Fills the last unit of XDR. A fragment's room is a multiple of four, so it is there.
    fn fill(&mut self) {
        if self.encoding == Encoding::Default
            && let Some(Part::Copied(last)) = self.parts.last_mut()
        {
            last.resize(last.len().next_multiple_of(4), 0);
        }
    }
}

/// Items, each `stride` behind the one before.
fn strided<T>(items: &[T], count: usize, stride: usize) -> Result<impl Iterator<Item = &T>, PvmError> {
    let end = count.checked_sub(1).map(|last| last.checked_mul(stride).and_then(|last| last.checked_add(1)));
    match end {
        Some(Some(end)) if end > items.len() => return Err(PvmError::BadParam),
        Some(None) => return Err(PvmError::BadParam),
        _ => {}
    }
    Ok((0..count).map(move |number| &items[number * stride]))
}

const fn word(encoding: Encoding) -> Signature {
    match encoding {
        Encoding::Default => Signature::XDR,
        Encoding::Raw | Encoding::InPlace => Signature::LITTLE_64,
    }
}

/// Data in a fragment: what a datagram of 4080 octets has room for behind two headers.
pub const FRAGMENT_DATA: Bytes = Bytes::new(4032);

#[cfg(test)]
mod tests;
