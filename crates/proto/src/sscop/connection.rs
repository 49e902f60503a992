//! What each state does with each PDU, and with its timer: the pages of the SDL, but for data.

use wiretwin_units::Seq;

use super::endpoint::Machine;
use super::event::{Event, ManagementError, Source};
use super::pdu::Pdu;
use super::state::State;
use super::timers::Timer;
use crate::Payload;

impl<const BITS: u32> Machine<BITS> {
    pub(super) fn handle_in_state(&mut self, pdu: Pdu<BITS>) {
        match self.state {
            State::Idle => self.idle(pdu),
            State::OutgoingConnectionPending => self.outgoing_connection(pdu),
            State::IncomingConnectionPending => self.incoming_connection(pdu),
            State::OutgoingDisconnectionPending => self.outgoing_disconnection(pdu),
            State::OutgoingResynchronizationPending => self.outgoing_resynchronization(pdu),
            State::IncomingResynchronizationPending => self.incoming_resynchronization(pdu),
            State::OutgoingRecoveryPending => self.outgoing_recovery(pdu),
            State::RecoveryResponsePending => self.recovery_response(pdu),
            State::IncomingRecoveryPending => self.incoming_recovery(pdu),
            State::DataTransferReady => self.data_transfer(pdu),
        }
    }

    // 1 Idle

    fn idle(&mut self, pdu: Pdu<BITS>) {
        match pdu {
            Pdu::Bgn { sq, mr, uu } => {
                if self.is_repeated(sq) {
                    self.transmit(Pdu::Bgrej { uu: self.uu.bgrej });
                } else {
                    self.sender.vt_ms = mr;
                    self.tell(Event::EstablishIndication { uu });
                    self.state = State::IncomingConnectionPending;
                }
            }
            Pdu::End { .. } => self.transmit(Pdu::Endak),
            Pdu::Endak => {}
            Pdu::Bgrej { .. } => self.unexpected(&pdu),
            pdu => {
                self.unexpected(&pdu);
                self.send_end(true);
            }
        }
    }

    // 2 Outgoing Connection Pending

    fn outgoing_connection(&mut self, pdu: Pdu<BITS>) {
        match pdu {
            Pdu::Bgak { mr, uu } => {
                self.sender.vt_ms = mr;
                self.tell(Event::EstablishConfirm { uu });
                self.enter_data_transfer();
            }
            Pdu::Bgn { sq, mr, uu } if !self.is_repeated(sq) => {
                self.sender.vt_ms = mr;
                self.initialize_mr();
                self.send_bgak();
                self.tell(Event::EstablishConfirm { uu });
                self.enter_data_transfer();
            }
            Pdu::Bgrej { uu } => {
                self.timers.stop(Timer::Cc);
                self.release_indication(Source::User, uu);
                self.state = State::Idle;
            }
            _ => {}
        }
    }

    // 3 Incoming Connection Pending

    fn incoming_connection(&mut self, pdu: Pdu<BITS>) {
        match pdu {
            Pdu::Bgn { sq, mr, uu } => {
                if !self.is_repeated(sq) {
                    self.begun_anew(mr, uu);
                }
            }
            Pdu::End { by_sscop, uu } => self.ended(by_sscop, uu),
            Pdu::Endak | Pdu::Bgrej { .. } => self.gone(&pdu),
            Pdu::Sd { .. } | Pdu::Poll { .. } | Pdu::Stat { .. } | Pdu::Ustat { .. } => self.given_up(&pdu),
            pdu => self.unexpected(&pdu),
        }
    }

    // 4 Outgoing Disconnection Pending

    fn outgoing_disconnection(&mut self, pdu: Pdu<BITS>) {
        match pdu {
            Pdu::Endak => self.confirm_release(None),
            Pdu::Bgrej { uu } => self.confirm_release(uu),
            Pdu::End { uu, .. } => {
                self.transmit(Pdu::Endak);
                self.confirm_release(uu);
            }
            Pdu::Bgn { sq, mr, uu } => {
                if self.is_repeated(sq) {
                    self.uu.bgak = None;
                    self.send_bgak();
                    self.transmit(Pdu::End { by_sscop: self.ended_by_sscop, uu: self.uu.end });
                } else {
                    self.sender.vt_ms = mr;
                    self.confirm_release(None);
                    self.tell(Event::EstablishIndication { uu });
                    self.state = State::IncomingConnectionPending;
                }
            }
            _ => {}
        }
    }

    fn confirm_release(&mut self, uu: Option<Payload>) {
        self.timers.stop(Timer::Cc);
        self.tell(Event::ReleaseConfirm { uu });
        self.state = State::Idle;
    }

    // 5 Outgoing Resynchronization Pending

    fn outgoing_resynchronization(&mut self, pdu: Pdu<BITS>) {
        match pdu {
            Pdu::Bgn { sq, mr, uu } => {
                if self.is_repeated(sq) {
                    self.send_bgak();
                    self.send_rs();
                } else {
                    self.begun_anew(mr, uu);
                }
            }
            Pdu::End { by_sscop, uu } => self.ended(by_sscop, uu),
            Pdu::Endak | Pdu::Bgrej { .. } => self.gone(&pdu),
            Pdu::Rs { sq, mr, .. } if !self.is_repeated(sq) => {
                self.sender.vt_ms = mr;
                self.initialize_mr();
                self.send_rsak();
                self.tell(Event::ResyncConfirm);
                self.enter_data_transfer();
            }
            Pdu::Rsak { mr } => {
                self.sender.vt_ms = mr;
                self.tell(Event::ResyncConfirm);
                self.enter_data_transfer();
            }
            _ => {}
        }
    }

    // 6 Incoming Resynchronization Pending

    fn incoming_resynchronization(&mut self, pdu: Pdu<BITS>) {
        match pdu {
            Pdu::Bgn { sq, mr, uu } => self.begun_or_unexpected(sq, mr, uu),
            Pdu::End { by_sscop, uu } => self.ended(by_sscop, uu),
            Pdu::Endak | Pdu::Bgrej { .. } => self.gone(&pdu),
            Pdu::Sd { .. } | Pdu::Poll { .. } | Pdu::Stat { .. } | Pdu::Ustat { .. } => self.given_up(&pdu),
            Pdu::Rs { sq, .. } if self.is_repeated(sq) => {}
            pdu => self.unexpected(&pdu),
        }
    }

    // 7 Outgoing Recovery Pending

    fn outgoing_recovery(&mut self, pdu: Pdu<BITS>) {
        match pdu {
            Pdu::Bgn { sq, mr, uu } => self.begun_or_unexpected(sq, mr, uu),
            Pdu::End { by_sscop, uu } => self.ended(by_sscop, uu),
            Pdu::Endak | Pdu::Bgrej { .. } => self.gone(&pdu),
            Pdu::Rs { sq, mr, uu } => self.resynchronized_or_unexpected(sq, mr, uu),
            Pdu::Er { sq, mr } if !self.is_repeated(sq) => {
                self.sender.vt_ms = mr;
                self.initialize_mr();
                self.send_erak();
                self.recovered();
            }
            Pdu::Erak { mr } => {
                self.sender.vt_ms = mr;
                self.recovered();
            }
            Pdu::Sd { .. } | Pdu::Poll { .. } | Pdu::Stat { .. } | Pdu::Ustat { .. } => {}
            pdu => self.unexpected(&pdu),
        }
    }

    fn recovered(&mut self) {
        self.timers.stop(Timer::Cc);
        self.deliver_kept();
        self.tell(Event::RecoverIndication);
        self.state = State::RecoveryResponsePending;
    }

    // 8 Recovery Response Pending

    fn recovery_response(&mut self, pdu: Pdu<BITS>) {
        match pdu {
            Pdu::Bgn { sq, mr, uu } => self.begun_or_unexpected(sq, mr, uu),
            Pdu::End { by_sscop, uu } => self.ended(by_sscop, uu),
            Pdu::Endak | Pdu::Bgrej { .. } => self.gone(&pdu),
            Pdu::Rs { sq, mr, uu } => self.resynchronized_or_unexpected(sq, mr, uu),
            Pdu::Er { sq, .. } if self.is_repeated(sq) => self.send_erak(),
            Pdu::Stat { .. } | Pdu::Ustat { .. } => self.given_up(&pdu),
            Pdu::Sd { .. } | Pdu::Poll { .. } | Pdu::Erak { .. } => {}
            pdu => self.unexpected(&pdu),
        }
    }

    // 9 Incoming Recovery Pending

    fn incoming_recovery(&mut self, pdu: Pdu<BITS>) {
        match pdu {
            Pdu::Bgn { sq, mr, uu } => self.begun_or_unexpected(sq, mr, uu),
            Pdu::End { by_sscop, uu } => self.ended(by_sscop, uu),
            Pdu::Endak | Pdu::Bgrej { .. } => self.gone(&pdu),
            Pdu::Rs { sq, mr, uu } => self.resynchronized_or_unexpected(sq, mr, uu),
            Pdu::Er { sq, .. } if self.is_repeated(sq) => {}
            Pdu::Sd { .. } | Pdu::Poll { .. } | Pdu::Stat { .. } | Pdu::Ustat { .. } => self.given_up(&pdu),
            pdu => self.unexpected(&pdu),
        }
    }

    // 10 Data Transfer Ready

    fn data_transfer(&mut self, pdu: Pdu<BITS>) {
        match pdu {
            Pdu::Sd { s, payload } => self.handle_sd(s, payload),
            Pdu::Poll { ps, s } => self.handle_poll(ps, s),
            Pdu::Stat { ps, mr, r, list } => self.handle_stat(ps, mr, r, &list),
            Pdu::Ustat { first, end, mr, r } => self.handle_ustat((first, end), mr, r),
            Pdu::Bgn { sq, mr, uu } => {
                if self.is_repeated(sq) {
                    self.start(Timer::NoResponse);
                    self.send_bgak();
                } else {
                    self.begun_anew(mr, uu);
                    self.prepare_retrieval();
                }
            }
            Pdu::End { by_sscop, uu } => {
                self.ended(by_sscop, uu);
                self.prepare_retrieval();
            }
            Pdu::Endak | Pdu::Bgrej { .. } => {
                self.gone(&pdu);
                self.prepare_retrieval();
            }
            Pdu::Rs { sq, mr, uu } => {
                if self.is_repeated(sq) {
                    self.start(Timer::NoResponse);
                    self.send_rsak();
                } else {
                    self.resynchronized(mr, uu);
                    self.prepare_retrieval();
                }
            }
            Pdu::Er { sq, mr } => {
                if self.is_repeated(sq) {
                    self.start(Timer::NoResponse);
                    self.send_erak();
                } else {
                    self.stop_data_timers();
                    self.sender.vt_ms = mr;
                    self.prepare_recovery();
                    self.deliver_kept();
                    self.tell(Event::RecoverIndication);
                    self.state = State::IncomingRecoveryPending;
                }
            }
            // Late answers, and UD and MD, which do not come here.
            _ => {}
        }
    }

    // What several states do.

    /// `Detect retransmission`: whether BGN, RS or ER is one that came before.
    fn is_repeated(&mut self, sq: Seq<8>) -> bool {
        let repeated = self.vr_sq == sq;
        self.vr_sq = sq;
        repeated
    }

    fn unexpected(&mut self, pdu: &Pdu<BITS>) {
        if let Some(letter) = pdu.letter() {
            self.error(ManagementError::Unexpected(letter));
        }
    }

    /// The peer begins a connection while there is one: the old one is over.
    fn begun_anew(&mut self, mr: Seq<BITS>, uu: Option<Payload>) {
        self.timers.stop(Timer::Cc);
        self.stop_data_timers();
        self.sender.vt_ms = mr;
        self.release_indication(Source::User, None);
        self.tell(Event::EstablishIndication { uu });
        self.receiver.clear();
        self.state = State::IncomingConnectionPending;
    }

    fn begun_or_unexpected(&mut self, sq: Seq<8>, mr: Seq<BITS>, uu: Option<Payload>) {
        if self.is_repeated(sq) {
            self.error(ManagementError::Unexpected('B'));
        } else {
            self.begun_anew(mr, uu);
        }
    }

    fn resynchronized(&mut self, mr: Seq<BITS>, uu: Option<Payload>) {
        self.timers.stop(Timer::Cc);
        self.stop_data_timers();
        self.sender.vt_ms = mr;
        self.tell(Event::ResyncIndication { uu });
        self.receiver.clear();
        self.state = State::IncomingResynchronizationPending;
    }

    fn resynchronized_or_unexpected(&mut self, sq: Seq<8>, mr: Seq<BITS>, uu: Option<Payload>) {
        if self.is_repeated(sq) {
            self.error(ManagementError::Unexpected('J'));
        } else {
            self.resynchronized(mr, uu);
        }
    }

    /// The peer ends the connection.
    fn ended(&mut self, by_sscop: bool, uu: Option<Payload>) {
        self.timers.stop(Timer::Cc);
        self.stop_data_timers();
        self.transmit(Pdu::Endak);
        self.release_indication(if by_sscop { Source::Sscop } else { Source::User }, uu);
        self.receiver.clear();
        self.state = State::Idle;
    }

    /// The peer answers as one that has no connection.
    fn gone(&mut self, pdu: &Pdu<BITS>) {
        self.timers.stop(Timer::Cc);
        self.stop_data_timers();
        self.unexpected(pdu);
        self.release_indication(Source::Sscop, None);
        self.receiver.clear();
        self.state = State::Idle;
    }

    /// A PDU that cannot come in this state: this end gives the connection up.
    fn given_up(&mut self, pdu: &Pdu<BITS>) {
        self.unexpected(pdu);
        self.send_end(true);
        self.release_indication(Source::Sscop, None);
        self.state = State::Idle;
    }

    // Timer_CC

    pub(super) fn expire_cc(&mut self) {
        if self.vt_cc >= self.config.max_cc {
            self.error(ManagementError::TooManyTries);
            if self.state == State::OutgoingDisconnectionPending {
                self.tell(Event::ReleaseConfirm { uu: None });
            } else {
                self.send_end(true);
                self.release_indication(Source::Sscop, None);
                self.receiver.clear();
            }
            self.state = State::Idle;
            return;
        }
        self.vt_cc += 1;
        match self.state {
            State::OutgoingConnectionPending => self.send_bgn(),
            State::OutgoingDisconnectionPending => {
                self.transmit(Pdu::End { by_sscop: self.ended_by_sscop, uu: self.uu.end });
            }
            State::OutgoingResynchronizationPending => self.send_rs(),
            // The timer runs in these four states alone.
            _ => self.send_er(),
        }
        self.start(Timer::Cc);
    }
}
