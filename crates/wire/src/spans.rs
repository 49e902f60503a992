//! Messages of SPANS, the signalling of Fore's local ATM networks, between a host and its switch.
//!
//! After `spans_xdr.x` of HARP (FreeBSD `sys/netatm/spans`), the protocol as XDR; there is no published
//! standard. They go on path 0, channel 15. Left out: groups, queries, and the messages between switches,
//! which are rejected.
//!
//! | Item | Octets |
//! |---|---|
//! | version 0x00000100, message type | 4, 4 |
//! | connection: destination, source, their SAPs | 8, 8, 4, 4 |
//! | resources: peak, mean, burst | 4, 4, 4 |
//! | path and channel: unused 4, VPI 12, VCI 16 bits | 4 |

use crate::cell::{VcId, Vci, Vpi};
use crate::octets::array_at;
use crate::xdr::{Reader, Writer};
use crate::{DecodeError, EmitError};

/// Where a host or a switch port is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address(pub [u8; 8]);

/// Which connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Connection {
    /// Where it goes.
    pub destination: Address,
    /// Where it comes from.
    pub source: Address,
    /// Service access point there.
    pub destination_sap: u32,
    /// Service access point here.
    pub source_sap: u32,
}

/// What a connection asks of the network, or is given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resources {
    /// Peak bandwidth, kbit/s.
    pub peak_kbit_s: u32,
    /// Mean bandwidth, kbit/s.
    pub mean_kbit_s: u32,
    /// Mean burst, kbit.
    pub burst_kbit: u32,
}

/// Which adaptation layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Aal {
    /// None: cells.
    Null,
    /// Type 1.
    Type1,
    /// Type 2.
    Type2,
    /// Type 3.
    Type3,
    /// Type 4.
    Type4,
    /// Type 5.
    Type5,
}

impl Aal {
    const ALL: [Self; 6] = [Self::Null, Self::Type1, Self::Type2, Self::Type3, Self::Type4, Self::Type5];
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// Done.
    Ok,
    /// Not done.
    Failed,
    /// No path or channel is free.
    NoVc,
    /// Not enough is left of the bandwidth.
    NoResources,
    /// There is no such destination.
    BadDestination,
}

impl Outcome {
    const ALL: [Self; 5] = [Self::Ok, Self::Failed, Self::NoVc, Self::NoResources, Self::BadDestination];
}

/// Which of the four steps of an exchange: asked by one side, told to the other, answered there, told
/// to the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// Request, from who begins to the network.
    Request,
    /// Indication, from the network to the other side.
    Indication,
    /// Response, from there to the network.
    Response,
    /// Confirmation, from the network to who began.
    Confirmation,
}

impl Step {
    const ALL: [Self; 4] = [Self::Request, Self::Indication, Self::Response, Self::Confirmation];

    /// Whether it asks; the others answer.
    pub const fn asks(self) -> bool {
        matches!(self, Self::Request | Self::Indication)
    }
}

/// What a message says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repr {
    /// A host asks for the switch's state.
    StatusRequest {
        /// Changes when the host starts anew.
        host_epoch: u32,
    },
    /// The switch tells its state.
    StatusIndication {
        /// Changes when the switch starts anew: all connections are gone.
        switch_epoch: u32,
        /// The host's address.
        host: Address,
        /// The switch's.
        switch: Address,
    },
    /// The host answers.
    StatusResponse {
        /// Changes when the host starts anew.
        host_epoch: u32,
        /// The host's address.
        host: Address,
    },
    /// A connection is to be opened: a request or an indication.
    Open {
        /// Indication, not request.
        indication: bool,
        /// The connection that this is about.
        connection: Connection,
        /// Its adaptation layer.
        aal: Aal,
        /// What it would like.
        desired: Resources,
        /// What it must have.
        minimum: Resources,
        /// Whether only this channel will do.
        must: bool,
        /// The channel.
        vc: VcId,
    },
    /// What became of it: a response or a confirmation.
    Opened {
        /// Confirmation, not response.
        confirmation: bool,
        /// The connection that this is about.
        connection: Connection,
        /// What became of it.
        outcome: Outcome,
        /// What it is given.
        resources: Resources,
        /// The channel.
        vc: VcId,
    },
    /// A tree is to be begun with its first leaf, or a leaf is asked to join: a request or an indication.
    Multi {
        /// Indication, not request.
        indication: bool,
        /// Which, to this leaf.
        connection: Connection,
        /// Its adaptation layer.
        aal: Aal,
        /// What it would like.
        desired: Resources,
        /// What it must have.
        minimum: Resources,
        /// The channel.
        vc: VcId,
    },
    /// What became of it: a response or a confirmation.
    MultiOpened {
        /// Confirmation, not response.
        confirmation: bool,
        /// Which, to this leaf.
        connection: Connection,
        /// What became of it.
        outcome: Outcome,
        /// What it is given.
        resources: Resources,
        /// The channel.
        vc: VcId,
    },
    /// A leaf is to be added to a tree: a request or an indication.
    Add {
        /// Indication, not request.
        indication: bool,
        /// To the new leaf.
        leaf: Connection,
        /// To the leaf that the tree was begun with.
        tree: Connection,
    },
    /// What became of it: a response or a confirmation.
    Added {
        /// Confirmation, not response.
        confirmation: bool,
        /// To the new leaf.
        connection: Connection,
        /// What became of it.
        outcome: Outcome,
        /// What it is given.
        resources: Resources,
    },
    /// A connection is to be closed, or is.
    Close {
        /// By the receiver, not by the sender.
        by_receiver: bool,
        /// Which step.
        step: Step,
        /// Which connection.
        connection: Connection,
        /// What became of it; only where the step answers.
        outcome: Option<Outcome>,
    },
    /// The channels that a host may use.
    VciRange {
        /// The lowest.
        lowest: u32,
        /// The highest.
        highest: u32,
    },
}

impl Repr {
    /// The message type.
    pub const fn code(&self) -> u32 {
        match self {
            Self::StatusRequest { .. } => 0,
            Self::StatusIndication { .. } => 1,
            Self::StatusResponse { .. } => 2,
            Self::Open { indication, .. } => 3 + *indication as u32,
            Self::Opened { confirmation, .. } => 5 + *confirmation as u32,
            Self::Close { by_receiver, step, .. } => 7 + 4 * *by_receiver as u32 + *step as u32,
            Self::Multi { indication, .. } => 15 + *indication as u32,
            Self::MultiOpened { confirmation, .. } => 17 + *confirmation as u32,
            Self::Add { indication, .. } => 19 + *indication as u32,
            Self::Added { confirmation, .. } => 21 + *confirmation as u32,
            Self::VciRange { .. } => 108,
        }
    }

    /// Reads a message.
    ///
    /// # Errors
    /// [`DecodeError`] for another version or a type that is not known here, for a number that a field
    /// does not have, and where the octets do not end with the message.
    pub fn parse(octets: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(FORMAT, octets);
        let version = reader.u32("version")?;
        if version != VERSION {
            return Err(reader.value("version", 4, version, "256, that is 1.0"));
        }
        let code = reader.u32("type")?;
        let repr = match code {
            0 => Self::StatusRequest { host_epoch: reader.u32("es_epoch")? },
            1 => Self::StatusIndication {
                switch_epoch: reader.u32("sw_epoch")?,
                host: address(&mut reader, "es_addr")?,
                switch: address(&mut reader, "sw_addr")?,
            },
            2 => Self::StatusResponse {
                host_epoch: reader.u32("es_epoch")?,
                host: address(&mut reader, "es_addr")?,
            },
            3 | 4 => Self::Open {
                indication: code == 4,
                connection: connection(&mut reader)?,
                aal: one_of(&mut reader, "aal", &Aal::ALL, "0 to 5")?,
                desired: resources(&mut reader)?,
                minimum: resources(&mut reader)?,
                must: reader.bool("must")?,
                vc: vc(&mut reader)?,
            },
            5 | 6 => Self::Opened {
                confirmation: code == 6,
                connection: connection(&mut reader)?,
                outcome: outcome(&mut reader)?,
                resources: resources(&mut reader)?,
                vc: vc(&mut reader)?,
            },
            7..=14 => {
                let step = Step::ALL[(code - 7) as usize % 4];
                let connection = connection(&mut reader)?;
                let outcome = if step.asks() { None } else { Some(outcome(&mut reader)?) };
                Self::Close { by_receiver: code >= 11, step, connection, outcome }
            }
            15 | 16 => Self::Multi {
                indication: code == 16,
                connection: connection(&mut reader)?,
                aal: one_of(&mut reader, "aal", &Aal::ALL, "0 to 5")?,
                desired: resources(&mut reader)?,
                minimum: resources(&mut reader)?,
                vc: vc(&mut reader)?,
            },
            17 | 18 => Self::MultiOpened {
                confirmation: code == 18,
                connection: connection(&mut reader)?,
                outcome: outcome(&mut reader)?,
                resources: resources(&mut reader)?,
                vc: vc(&mut reader)?,
            },
            19 | 20 => Self::Add {
                indication: code == 20,
                leaf: connection(&mut reader)?,
                tree: connection(&mut reader)?,
            },
            21 | 22 => Self::Added {
                confirmation: code == 22,
                connection: connection(&mut reader)?,
                outcome: outcome(&mut reader)?,
                resources: resources(&mut reader)?,
            },
            108 => Self::VciRange { lowest: reader.u32("lowest")?, highest: reader.u32("highest")? },
            other => return Err(reader.value("type", 4, other, "0 to 22 or 108")),
        };
        reader.end()?;
        Ok(repr)
    }

    /// Writes the message and returns its octets.
    ///
    /// # Errors
    /// [`EmitError`] where there is no room, for an outcome in a step that asks, and for none in one
    /// that answers.
    pub fn emit(&self, octets: &mut [u8]) -> Result<usize, EmitError> {
        if let Self::Close { step, outcome, .. } = self
            && step.asks() == outcome.is_some()
        {
            let allowed = "one in a response or a confirmation, and there only";
            return Err(EmitError::value(FORMAT, "outcome", outcome.is_some(), allowed));
        }
        let mut writer = Writer::new(FORMAT, octets);
        let writer = &mut writer;
        writer.u32("version", VERSION)?;
        writer.u32("type", self.code())?;
        match self {
            Self::StatusRequest { host_epoch } => writer.u32("es_epoch", *host_epoch)?,
            Self::StatusIndication { switch_epoch, host, switch } => {
                writer.u32("sw_epoch", *switch_epoch)?;
                writer.opaque("es_addr", &host.0)?;
                writer.opaque("sw_addr", &switch.0)?;
            }
            Self::StatusResponse { host_epoch, host } => {
                writer.u32("es_epoch", *host_epoch)?;
                writer.opaque("es_addr", &host.0)?;
            }
            Self::Open { connection, aal, desired, minimum, must, vc, .. } => {
                put_connection(writer, connection)?;
                writer.u32("aal", *aal as u32)?;
                put_resources(writer, desired)?;
                put_resources(writer, minimum)?;
                writer.bool("must", *must)?;
                put_vc(writer, *vc)?;
            }
            Self::Opened { connection, outcome, resources, vc, .. } => {
                put_connection(writer, connection)?;
                writer.u32("result", *outcome as u32)?;
                put_resources(writer, resources)?;
                put_vc(writer, *vc)?;
            }
            Self::Close { connection, outcome, .. } => {
                put_connection(writer, connection)?;
                if let Some(outcome) = outcome {
                    writer.u32("result", *outcome as u32)?;
                }
            }
            Self::Multi { connection, aal, desired, minimum, vc, .. } => {
                put_connection(writer, connection)?;
                writer.u32("aal", *aal as u32)?;
                put_resources(writer, desired)?;
                put_resources(writer, minimum)?;
                put_vc(writer, *vc)?;
            }
            Self::MultiOpened { connection, outcome, resources, vc, .. } => {
                put_connection(writer, connection)?;
                writer.u32("result", *outcome as u32)?;
                put_resources(writer, resources)?;
                put_vc(writer, *vc)?;
            }
            Self::Add { leaf, tree, .. } => {
                put_connection(writer, leaf)?;
                put_connection(writer, tree)?;
            }
            Self::Added { connection, outcome, resources, .. } => {
                put_connection(writer, connection)?;
                writer.u32("result", *outcome as u32)?;
                put_resources(writer, resources)?;
            }
            Self::VciRange { lowest, highest } => {
                writer.u32("lowest", *lowest)?;
                writer.u32("highest", *highest)?;
            }
        }
        Ok(writer.position())
    }
}

fn address(reader: &mut Reader<'_>, field: &'static str) -> Result<Address, DecodeError> {
    reader.opaque(field, 8).map(|octets| Address(array_at(octets, 0)))
}

fn connection(reader: &mut Reader<'_>) -> Result<Connection, DecodeError> {
    Ok(Connection {
        destination: address(reader, "con_dst")?,
        source: address(reader, "con_src")?,
        destination_sap: reader.u32("con_dsap")?,
        source_sap: reader.u32("con_ssap")?,
    })
}

fn resources(reader: &mut Reader<'_>) -> Result<Resources, DecodeError> {
    Ok(Resources {
        peak_kbit_s: reader.u32("rsc_peak")?,
        mean_kbit_s: reader.u32("rsc_mean")?,
        burst_kbit: reader.u32("rsc_burst")?,
    })
}

fn vc(reader: &mut Reader<'_>) -> Result<VcId, DecodeError> {
    let word = reader.u32("vpvc")?;
    // Choice: the four bits in no use are sent as zeros and ignored.
    let vpi = Vpi::new((word >> 16 & 0xFFF) as u16).expect("twelve bits");
    Ok(VcId { vpi, vci: Vci(word as u16) })
}

fn outcome(reader: &mut Reader<'_>) -> Result<Outcome, DecodeError> {
    one_of(reader, "result", &Outcome::ALL, "0 to 4")
}

fn one_of<T: Copy>(
    reader: &mut Reader<'_>,
    field: &'static str,
    all: &[T],
    allowed: &'static str,
) -> Result<T, DecodeError> {
    let number = reader.u32(field)?;
    all.get(number as usize).copied().ok_or_else(|| reader.value(field, 4, number, allowed))
}

fn put_connection(writer: &mut Writer<'_>, connection: &Connection) -> Result<(), EmitError> {
    writer.opaque("con_dst", &connection.destination.0)?;
    writer.opaque("con_src", &connection.source.0)?;
    writer.u32("con_dsap", connection.destination_sap)?;
    writer.u32("con_ssap", connection.source_sap)
}

fn put_resources(writer: &mut Writer<'_>, resources: &Resources) -> Result<(), EmitError> {
    writer.u32("rsc_peak", resources.peak_kbit_s)?;
    writer.u32("rsc_mean", resources.mean_kbit_s)?;
    writer.u32("rsc_burst", resources.burst_kbit)
}

fn put_vc(writer: &mut Writer<'_>, vc: VcId) -> Result<(), EmitError> {
    writer.u32("vpvc", u32::from(vc.vpi.get()) << 16 | u32::from(vc.vci.0))
}

/// Octets of the longest message.
pub const MAX_MESSAGE_OCTETS: usize = 68;
/// The channel of signalling, on path 0.
pub const SIGNALLING_VCI: Vci = Vci(15);
/// The channel of connectionless messages, on path 0.
pub const CONNECTIONLESS_VCI: Vci = Vci(14);

const FORMAT: &str = "SPANS message";
const VERSION: u32 = 0x0000_0100;

/// Reads arbitrary octets as a message and, if they are one, writes what was read and compares. The
/// fuzz target is this function.
///
/// # Panics
/// If a message that was read is not written back with the same fields: a bug here.
#[doc(hidden)]
pub fn round_trip(octets: &[u8]) {
    let Ok(repr) = Repr::parse(octets) else { return };
    let mut written = [0xEE; MAX_MESSAGE_OCTETS];
    let end = repr.emit(&mut written).expect("what was read can be written");
    assert_eq!(end, octets.len(), "as many octets");
    assert_eq!(Repr::parse(&written[..end]), Ok(repr), "what was written reads the same");
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;
    use alloc::vec::Vec;

    use super::*;

    fn connection() -> Connection {
        let (destination, source) = (Address(*b"destinat"), Address(*b"source.."));
        Connection { destination, source, destination_sap: 1025, source_sap: 2048 }
    }

    fn channel() -> VcId {
        VcId { vpi: Vpi::new(0).expect("a path"), vci: Vci(32) }
    }

    fn open(indication: bool) -> Repr {
        let desired = Resources { peak_kbit_s: 3, mean_kbit_s: 2, burst_kbit: 1 };
        Repr::Open {
            indication,
            connection: connection(),
            aal: Aal::Type5,
            desired,
            minimum: Resources::default(),
            must: true,
            vc: channel(),
        }
    }

    fn emitted(repr: &Repr) -> Vec<u8> {
        let mut octets = [0xEE; MAX_MESSAGE_OCTETS];
        let end = repr.emit(&mut octets).expect("room");
        octets[..end].to_vec()
    }

    #[test]
    fn an_open_request_has_sixty_eight_octets() {
        let expected = b"\0\0\x01\0\0\0\0\x03destinatsource..\0\0\x04\x01\0\0\x08\0\0\0\0\x05\
            \0\0\0\x03\0\0\0\x02\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0\x20";
        assert_eq!((emitted(&open(false)), expected.len()), (expected.to_vec(), 68));
        assert_eq!(Repr::parse(expected), Ok(open(false)));
    }

    #[test]
    fn every_message_has_its_type_and_comes_back() {
        let resources = Resources::default();
        let (outcome, vc) = (Outcome::NoResources, channel());
        let opened =
            |confirmation| Repr::Opened { confirmation, connection: connection(), outcome, resources, vc };
        let address = Address([7; 8]);
        let mut messages = [
            (0, Repr::StatusRequest { host_epoch: 9 }),
            (1, Repr::StatusIndication { switch_epoch: 9, host: address, switch: Address([8; 8]) }),
            (2, Repr::StatusResponse { host_epoch: 9, host: address }),
            (3, open(false)),
            (4, open(true)),
            (5, opened(false)),
            (6, opened(true)),
            (108, Repr::VciRange { lowest: 32, highest: 1023 }),
            (19, Repr::Add { indication: false, leaf: connection(), tree: connection() }),
            (20, Repr::Add { indication: true, leaf: connection(), tree: connection() }),
        ]
        .to_vec();
        for second in [false, true] {
            let (connection, aal, minimum) = (connection(), Aal::Type4, resources);
            let desired = Resources { peak_kbit_s: 3, mean_kbit_s: 2, burst_kbit: 1 };
            let more = u8::from(second);
            messages.extend([
                (15 + more, Repr::Multi { indication: second, connection, aal, desired, minimum, vc }),
                (17 + more, Repr::MultiOpened { confirmation: second, connection, outcome, resources, vc }),
                (21 + more, Repr::Added { confirmation: second, connection, outcome, resources }),
            ]);
        }
        for (at, by_receiver) in [(7, false), (11, true)] {
            for (code, step) in (at..).zip(Step::ALL) {
                let outcome = (!step.asks()).then_some(Outcome::Ok);
                messages.push((code, Repr::Close { by_receiver, step, connection: connection(), outcome }));
            }
        }
        for (code, repr) in messages {
            let octets = emitted(&repr);
            assert_eq!((octets[7], Repr::parse(&octets)), (code, Ok(repr)));
            round_trip(&octets);
            for end in 0..octets.len() {
                Repr::parse(&octets[..end]).expect_err("cut short");
            }
        }
    }

    #[test]
    fn every_wrong_field_is_named_with_its_place() {
        let request = emitted(&open(false));
        for (at, octet, said) in [
            (2, 2, "SPANS message, version at octet 0: 512, allowed is 256, that is 1.0"),
            (7, 23, "SPANS message, type at octet 4: 23, allowed is 0 to 22 or 108"),
            (35, 6, "SPANS message, aal at octet 32: 6, allowed is 0 to 5"),
            (63, 2, "SPANS message, must at octet 60: 2, allowed is 0 or 1"),
            (7, 7, "SPANS message, end at octet 32: 36 octets, allowed are 0"),
            (7, 5, "SPANS message, result at octet 32: 5, allowed is 0 to 4"),
        ] {
            let mut octets = request.clone();
            octets[at] = octet;
            assert_eq!(Repr::parse(&octets).expect_err(said).to_string(), said);
        }
    }

    #[test]
    fn an_outcome_belongs_to_an_answer() {
        for (step, outcome) in [(Step::Request, Some(Outcome::Ok)), (Step::Confirmation, None)] {
            let close = Repr::Close { by_receiver: false, step, connection: connection(), outcome };
            assert_eq!(close.emit(&mut [0; 68]).expect_err("a wrong outcome").field, "outcome");
        }
        assert_eq!(open(false).emit(&mut [0; 67]).expect_err("67 octets").field, "vpvc");
    }
}
