//! Arbitrary text as each quantity that is read from text.

use std::fmt::{Debug, Display};
use std::str::FromStr;

use wiretwin_units::{BitRate, Bits, Bytes, Cells, SimTime, Span};

/// Panics if a quantity that can be read is not the same when it was printed and read again, or if a
/// text is refused without naming it.
pub fn check(octets: &[u8]) {
    let Ok(text) = str::from_utf8(octets) else { return };
    printed_and_read_again::<BitRate>(text);
    printed_and_read_again::<Bits>(text);
    printed_and_read_again::<Bytes>(text);
    printed_and_read_again::<Cells>(text);
    printed_and_read_again::<SimTime>(text);
    printed_and_read_again::<Span>(text);
}

fn printed_and_read_again<T>(text: &str)
where
    T: FromStr<Err: Display> + Display + Debug + PartialEq,
{
    match text.parse::<T>() {
        Ok(quantity) => {
            let printed = quantity.to_string();
            match printed.parse::<T>() {
                Ok(again) => assert_eq!(again, quantity, "{text:?} prints as {printed:?}"),
                Err(error) => panic!("{text:?} prints as {printed:?}, which is not read: {error}"),
            }
        }
        Err(error) => assert!(!error.to_string().is_empty(), "{text:?} is refused without a word"),
    }
}
