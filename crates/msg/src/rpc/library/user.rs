//! Who calls: credentials of AUTH_SYS (RFC 5531 §8.2, appendix A), sent and looked at.

use alloc::format;

use wiretwin_wire::rpc::System;

use super::RpcRank;
use crate::library::{Control, Done, Failure, Refusal, Request};
use crate::rpc::Credential;

impl RpcRank {
    pub(super) fn admits_control(control: &Control) -> Result<(), Refusal> {
        match control {
            Control::Identify { .. } | Control::Caller => Ok(()),
            _ => Err(Refusal::Unsupported(control.unsupported())),
        }
    }

    pub(super) fn controls(&mut self, request: Request, control: &Control) {
        let answered = match *control {
            Control::Identify { user } => self.identify(user).map(|()| 0),
            Control::Caller => self.user.ok_or("the last call did not say whose it is"),
            _ => Err(control.unsupported()),
        };
        self.done(match answered {
            Ok(number) => Done::Answered { request, number },
            Err(why) => Done::Failed { request, failure: Failure::Refused(why) },
        });
    }

    /// Calls say from now on that they are of this user.
    fn identify(&mut self, uid: u32) -> Result<(), &'static str> {
        let machine = format!("h{}", self.rank);
        let who = System::new(0, machine.as_bytes(), uid, uid, &[]);
        let credential =
            who.and_then(|who| Credential::system(&who).ok()).ok_or("a name of more than 255 octets")?;
        for peer in &mut self.peers {
            peer.client.set_credential(credential.clone());
        }
        Ok(())
    }
}
