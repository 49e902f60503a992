//! What follows the head of a message, and what making and reading it costs.

use alloc::sync::Arc;

use wiretwin_proto::{Payload, Work, WorkKind};
use wiretwin_units::Bytes;

use crate::library::Content;

/// What follows the head of a message, in the form of XDR. Cloning it must be cheap.
pub trait Body: Clone {
    /// How long it is, octets: a multiple of four.
    fn length(&self) -> Bytes;

    /// How many items of it are converted one by one: integers, and elements of arrays. The octets
    /// that they do not take are copied as they are.
    fn items(&self) -> u32 {
        0
    }

    /// How many octets these items take, at least four each.
    fn item_octets(&self) -> Bytes {
        Bytes::new(4 * u64::from(self.items()))
    }
}

/// Octets, already in the form of XDR.
impl Body for Arc<[u8]> {
    fn length(&self) -> Bytes {
        Bytes::new(self.len() as u64)
    }
}

/// A handle; all of it opaque.
impl Body for Payload {
    fn length(&self) -> Bytes {
        Bytes::new(self.length.get().next_multiple_of(4))
    }
}

/// Arguments or results of a simulated world: a handle, and the shape that it has in XDR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Argument {
    /// The message that it carries.
    pub payload: Payload,
    shape: Shape,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Nothing,
    Opaque,
    Array { element: u8 },
}

impl Argument {
    /// `void`.
    pub const fn void(payload: Payload) -> Self {
        Self { payload, shape: Shape::Nothing }
    }

    /// `opaque<>`: a length, the octets, zeros up to a multiple of four.
    pub const fn opaque(payload: Payload) -> Self {
        Self { payload, shape: Shape::Opaque }
    }

    /// An array of elements of so many octets each in memory: a count, then each on its own. An element
    /// of 1, 2 or 4 octets takes four in XDR, one of 8 takes eight (RFC 4506 §4.1, §4.5, §4.13).
    ///
    /// `None` for another size, or for a payload that is not whole elements.
    pub const fn array(payload: Payload, element: u8) -> Option<Self> {
        match element {
            1 | 2 | 4 | 8 if payload.length.get().is_multiple_of(element as u64) => {
                Some(Self { payload, shape: Shape::Array { element } })
            }
            _ => None,
        }
    }

    /// Puts its XDR behind: the octets that it adds, and the handle. An array is a handle as long as its
    /// elements are in XDR.
    pub(crate) fn put(&self, content: &mut Content) {
        let Payload { length, .. } = self.payload;
        match self.shape {
            Shape::Nothing => {}
            Shape::Opaque => {
                content.push_octets(&(length.get() as u32).to_be_bytes());
                content.push_body(self.payload);
                content.push_zeros(length.get().next_multiple_of(4) - length.get());
            }
            Shape::Array { element } => {
                content.push_octets(&(self.elements() as u32).to_be_bytes());
                let length = Bytes::new(self.elements() * u64::from(element.max(4)));
                content.push_body(Payload { length, ..self.payload });
            }
        }
    }

    fn elements(&self) -> u64 {
        match self.shape {
            Shape::Array { element } => self.payload.length.get() / u64::from(element),
            _ => 0,
        }
    }
}

impl Body for Argument {
    fn length(&self) -> Bytes {
        Bytes::new(match self.shape {
            Shape::Nothing => 0,
            Shape::Opaque => 4 + self.payload.length.get().next_multiple_of(4),
            Shape::Array { element } => 4 + self.elements() * u64::from(element.max(4)),
        })
    }

    fn items(&self) -> u32 {
        match self.shape {
            Shape::Nothing => 0,
            Shape::Opaque => 1,
            Shape::Array { .. } => u32::try_from(self.elements() + 1).unwrap_or(u32::MAX),
        }
    }

    fn item_octets(&self) -> Bytes {
        Bytes::new(match self.shape {
            Shape::Nothing => 0,
            Shape::Opaque => 4,
            Shape::Array { .. } => self.length().get(),
        })
    }
}

/// The work of encoding (`out`) or decoding a message: its head, the items, the opaque octets.
pub(crate) fn of_message<B: Body>(out: bool, head: Bytes, body: Option<&B>) -> impl Iterator<Item = Work> {
    let kinds = if out {
        [WorkKind::RpcHeadOut, WorkKind::XdrItemsOut, WorkKind::XdrOpaqueOut]
    } else {
        [WorkKind::RpcHeadIn, WorkKind::XdrItemsIn, WorkKind::XdrOpaqueIn]
    };
    let (length, items, item_octets) =
        body.map_or((0, 0, 0), |body| (body.length().get(), body.items(), body.item_octets().get()));
    let opaque = length.saturating_sub(item_octets);
    let amounts = [(head.get(), 1), (item_octets, items), (opaque, u32::from(opaque > 0))];
    kinds.into_iter().zip(amounts).filter(|&(_, (_, count))| count > 0).map(|(kind, (bytes, count))| Work {
        kind,
        bytes: Bytes::new(bytes),
        count,
    })
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use wiretwin_proto::MessageId;

    use super::*;

    fn payload(length: u64) -> Payload {
        Payload::whole(MessageId(1), Bytes::new(length))
    }

    #[test]
    fn an_octet_takes_one_octet_as_opaque_and_four_as_an_array() {
        let opaque = Argument::opaque(payload(1001));
        assert_eq!((opaque.length().get(), opaque.items(), opaque.item_octets().get()), (1008, 1, 4));
        let array = Argument::array(payload(1001), 1).expect("elements of one octet");
        assert_eq!((array.length().get(), array.items(), array.item_octets().get()), (4008, 1002, 4008));
        let doubles = Argument::array(payload(800), 8).expect("a hundred doubles");
        assert_eq!((doubles.length().get(), doubles.items()), (804, 101));
        assert_eq!(Argument::array(payload(10), 4), None, "two and a half");
        assert_eq!(Argument::array(payload(9), 3), None);
        let void = Argument::void(payload(0));
        assert_eq!((void.length().get(), void.items()), (0, 0));
    }

    #[test]
    fn work_is_the_head_the_items_and_the_opaque_octets() {
        let work = |kind, bytes, count| Work { kind, bytes: Bytes::new(bytes), count };
        let made: Vec<_> = of_message(true, Bytes::new(40), Some(&Argument::opaque(payload(1001)))).collect();
        let opaque = [
            work(WorkKind::RpcHeadOut, 40, 1),
            work(WorkKind::XdrItemsOut, 4, 1),
            work(WorkKind::XdrOpaqueOut, 1004, 1),
        ];
        assert_eq!(made, opaque);
        let array = Argument::array(payload(10), 1).expect("ten octets");
        let read: Vec<_> = of_message(false, Bytes::new(24), Some(&array)).collect();
        assert_eq!(read, [work(WorkKind::RpcHeadIn, 24, 1), work(WorkKind::XdrItemsIn, 44, 11)]);
        let refused: Vec<_> = of_message::<Argument>(false, Bytes::new(24), None).collect();
        assert_eq!(refused, [work(WorkKind::RpcHeadIn, 24, 1)]);
    }
}
