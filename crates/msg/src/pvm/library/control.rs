//! What a rank asks of its virtual machine: groups and other tasks.

use wiretwin_proto::{Output, Payload, WorkKind};
use wiretwin_units::{Bytes, SimTime};

use super::{Ends, Rank};
use crate::library::{Control, Done, Failure, Refusal, Request};
use crate::pvm::body::Piece;
use crate::pvm::item::Kind;
use crate::pvm::pack::{Packed, packed_octets};
use crate::pvm::system::MOST_TAG;
use crate::pvm::task::{Answer, SpawnRequest, Value, Where};
use crate::pvm::{Encoding, PvmError};

impl Rank {
    pub(super) fn admits_control(control: &Control) -> Result<(), Refusal> {
        match control {
            Control::HangUp { .. } | Control::Identify { .. } | Control::Caller => {
                Err(Refusal::Unsupported(control.unsupported()))
            }
            Control::Cast { tag, .. } if *tag > MOST_TAG => Err(Refusal::Unsupported(super::LARGE_TAG)),
            _ => Ok(()),
        }
    }

    pub(super) fn controls(&mut self, now: SimTime, request: Request, control: Control) {
        let asked = match control {
            Control::Join { group } => self.task.joingroup(now, &group),
            Control::Leave { group } => self.task.lvgroup(now, &group),
            Control::Size { group } => self.task.gsize(now, &group),
            Control::Barrier { group, members } => self.task.barrier(now, &group, Some(members)),
            Control::Cast { group, tag, bytes } => {
                let packed = self.packed(request, bytes);
                self.task.bcast(now, &group, tag, packed)
            }
            Control::Spawn { program: file, count } => {
                let wanted =
                    SpawnRequest { file, arguments: alloc::vec::Vec::new(), place: Where::Anywhere, count };
                self.task.spawn(now, &wanted)
            }
            Control::HangUp { .. } | Control::Identify { .. } | Control::Caller => Err(PvmError::NotImpl),
        };
        match asked {
            Ok(call) => drop(self.controls.insert(call, request)),
            Err(error) => self.done(refused(request, error)),
        }
        self.drain(now);
    }

    /// A message of a program, packed.
    pub(super) fn packed(&mut self, request: Request, bytes: Bytes) -> Packed<Piece> {
        let length = packed_octets(self.usage.encoding, Kind::Byte, bytes.get());
        let range = Payload::whole(request.message(), bytes);
        let whole = Piece::Message { range, fill: (length - bytes).get() as u8 };
        if self.usage.encoding != Encoding::InPlace {
            self.work(WorkKind::XdrOpaqueOut, length);
        }
        let mut packed = Packed::cut(self.usage.encoding, Kind::Byte, &whole);
        if packed.parts.is_empty() {
            packed.parts.push(whole);
        }
        packed
    }

    /// What was asked for has come to something; what is to be written for it is written first.
    pub(super) fn fulfilled(&mut self, request: Request, answer: Answer<Piece>) {
        let number = match answer.result {
            Ok(Value::Number(number)) => number as u32,
            Ok(Value::Spawned(tids, errors)) => match errors.first() {
                Some(&error) if tids.is_empty() => return self.done(refused(request, error)),
                _ => tids.len() as u32,
            },
            Ok(_) => 0,
            Err(error) => return self.done(refused(request, error)),
        };
        match self.out.back_mut().filter(|out| out.ends.is_none()) {
            Some(last) => last.ends = Some(Ends::Control(request, number)),
            None => self.outputs.push_back(Output::Deliver(Done::Answered { request, number })),
        }
    }
}

const fn refused(request: Request, error: PvmError) -> Done {
    Done::Failed { request, failure: Failure::Refused(error.text()) }
}
