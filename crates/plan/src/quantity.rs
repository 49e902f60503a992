//! Quantities of a plan: texts with a unit, never a bare number.

use std::fmt;

use serde::ser::Serializer;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use wiretwin_units::{BitRate, Bytes, Span};

macro_rules! quantity {
    ($(#[$doc:meta])* $name:ident, $inner:ty, $expecting:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
        #[serde(try_from = "Value")]
        pub struct $name(pub $inner);

        impl TryFrom<Value> for $name {
            type Error = &'static str;

            fn try_from(value: Value) -> Result<Self, Self::Error> {
                value.as_str().and_then(|text| text.parse().ok()).map($name).ok_or($expecting)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(&self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

quantity!(
    /// A rate above zero, such as `"100 Gbit/s"`.
    Rate,
    BitRate,
    "a rate above zero with a unit, such as \"100 Gbit/s\""
);

quantity!(
    /// A time, such as `"500 ns"`.
    Duration,
    Span,
    "a time with a unit, such as \"500 ns\""
);

quantity!(
    /// A length, such as `"1500 B"` or `"64 KiB"`.
    Size,
    Bytes,
    "a length with a unit, such as \"1500 B\" or \"64 KiB\""
);

/// The capacity of a queue, in bytes, packets or cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Value")]
pub enum Queue {
    /// Bytes as they are on the line, what is left of the packet being sent counted in.
    Bytes(Bytes),
    /// Packets, the one being sent counted in.
    Packets(u32),
    /// Cells.
    Cells(u32),
}

const QUEUE: &str =
    "a length with a unit, such as \"256 KiB\", or a number, such as \"64 packets\" or \"1000 cells\"";

impl TryFrom<Value> for Queue {
    type Error = &'static str;

    fn try_from(value: Value) -> Result<Self, Self::Error> {
        let text = value.as_str().ok_or(QUEUE)?;
        let counted = |unit| text.trim().strip_suffix(unit).map(|count| count.trim().parse().ok());
        let queue = match (counted("packets"), counted("cells")) {
            (Some(count), _) => count.map(Queue::Packets),
            (_, Some(count)) => count.map(Queue::Cells),
            (None, None) => text.parse().ok().map(Queue::Bytes),
        };
        queue.ok_or(QUEUE)
    }
}

impl Serialize for Queue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl fmt::Display for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => bytes.fmt(f),
            Self::Packets(count) => write!(f, "{count} packets"),
            Self::Cells(count) => write!(f, "{count} cells"),
        }
    }
}
