//! Time, bytes and rates as types: parsing, printing, exact serialization time.
//!
//! | type | counts | range |
//! |---|---|---|
//! | [`SimTime`] | picoseconds of virtual time since the run began | 213 days |
//! | [`HostTime`] | nanoseconds of one named clock of a host | 584 years |
//! | [`Span`] | picoseconds between two instants of one kind | 213 days |
//! | [`Bytes`], [`Bits`], [`Cells`] | amounts of data | 64 bits |
//! | [`BitRate`] | bits per second | 1 bit/s to 18.4 Ebit/s |
//! | [`Seq`] | a sequence number of so many bits | its modulus |
//!
//! Nothing here is a float: a rate divides a size exactly, and a [`Serializer`] carries what is left
//! of a picosecond to the next piece. Text is read and written as exact decimals:
//!
//! ```
//! use wiretwin_units::{BitRate, Bytes, Cells, Serializer, Span};
//!
//! let rate: BitRate = "155.52 Mbit/s".parse()?;
//! let window: Bytes = "51 KiB".parse()?;
//! let delay: Span = "2.8 us".parse()?;
//! assert_eq!((window.get(), delay.as_ps()), (52_224, 2_800_000));
//!
//! let mut line = Serializer::new(rate);
//! assert_eq!(line.push(Cells::new(1).bits())?.to_string(), "2.726337 us");
//! assert_eq!("51".parse::<Bytes>().unwrap_err().to_string(),
//!     "`51` has no unit: a size is a number with one of B, kB, KB, MB, GB, KiB, MiB, GiB");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Overflow
//! The operators (`+`, `-`, `*`) panic when the result leaves its range, in every build: two
//! instants subtracted the wrong way round are a bug of the caller. Where the operands come from
//! outside, use the `checked_` or `saturating_` form.
#![no_std]

extern crate alloc;

mod arithmetic;
mod decimal;
mod parse;
mod rate;
mod seq;
mod serialize;
mod size;
mod time;

pub use parse::ParseQuantityError;
pub use rate::{BitRate, ZeroRate};
pub use seq::{Seq, SeqOutOfRange};
pub use serialize::{Serializer, TooLong, Transmission, Transmitter};
pub use size::{Bits, Bytes, Cells};
pub use time::{HostTime, SimTime, Span};
