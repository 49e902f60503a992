//! Connections are made, rejected, lost.

use wiretwin_units::{Bytes, Span};

use super::super::vi::QueueKind;
use super::super::{Descriptor, ErrorCode, Reliability, ViAttributes, ViState, ViplError, status};
use super::rig::{PATIENCE, Rig, SERVICE, said};
use super::{Consumer, Side, Verdict, ensure};

pub(super) async fn attributes_must_agree<C: Consumer>(rig: &mut Rig<C>) -> Verdict {
    let ours = rig.attributes();
    let other = if rig.level == Reliability::UnreliableDelivery {
        Reliability::ReliableDelivery
    } else {
        Reliability::UnreliableDelivery
    };
    let server = ViAttributes { max_transfer: Bytes::new(1_000), ..ours };
    let cases = [
        (ViAttributes { reliability: other, ..ours }, ViplError::InvalidReliabilityLevel),
        (server, ViplError::InvalidMtu),
    ];
    let good = rig.vi()?;
    match rig.side {
        Side::Server => {
            rig.meet().await?;
            let asked = rig.vipl.connect_wait(SERVICE, PATIENCE).await.map_err(said)?;
            ensure!(asked.attributes.max_transfer, ours.max_transfer, "the remote size");
            for (attributes, code) in cases {
                let vi = rig.vi_of(attributes)?;
                ensure!(rig.vipl.connect_accept(&asked, vi), Err(code), "attributes that differ");
                ensure!(rig.state(vi)?, ViState::Idle, "the state of a VI that was not accepted");
            }
            // Nobody was told: it may be tried again.
            ensure!(rig.vipl.connect_accept(&asked, good), Ok(()), "those that agree");
            let again = rig.vipl.connect_accept(&asked, good);
            ensure!(again, Err(ViplError::InvalidParameter), "a request that was accepted");
        }
        Side::Client => {
            let asked = rig.vipl.connect_result(good);
            ensure!(asked, Err(ViplError::InvalidState), "nothing was asked");
            let refused = rig.meet_then_connect(good).await;
            ensure!(refused.map(|remote| remote.reliability), Ok(rig.level), "the remote level");
            let twice = rig.vipl.connect_request(good, SERVICE, PATIENCE).await;
            ensure!(twice, Err(ViplError::InvalidState), "a VI that is connected");
        }
    }
    ensure!(rig.state(good)?, ViState::Connected, "the state");
    Ok(())
}

impl<C: Consumer> Rig<C> {
    async fn meet_then_connect(
        &mut self,
        vi: super::super::ViHandle,
    ) -> Result<super::super::RemoteAttributes, ViplError> {
        self.vipl.meet().await?;
        loop {
            match self.vipl.connect_request(vi, SERVICE, PATIENCE).await {
                // The server does not wait yet.
                Err(ViplError::NoMatch) => {}
                done => return done,
            }
        }
    }
}

pub(super) async fn a_request_is_rejected_or_finds_nobody<C: Consumer>(rig: &mut Rig<C>) -> Verdict {
    let vi = rig.vi()?;
    match rig.side {
        Side::Server => {
            // While this one waits at one address, nobody is at the other.
            let asked = rig.vipl.connect_wait(b"this", PATIENCE).await.map_err(said)?;
            rig.vipl.connect_reject(&asked).map_err(said)?;
            let again = rig.vipl.connect_reject(&asked);
            ensure!(again, Err(ViplError::InvalidParameter), "a request that was rejected");
        }
        Side::Client => {
            let nobody = rig.vipl.connect_request(vi, b"that", PATIENCE).await;
            ensure!(nobody.map(|_| ()), Err(ViplError::NoMatch), "an address where nobody waits");
            let rejected = loop {
                match rig.vipl.connect_request(vi, b"this", PATIENCE).await {
                    Err(ViplError::NoMatch) => {}
                    done => break done,
                }
            };
            ensure!(rejected.map(|_| ()), Err(ViplError::Reject), "a request that is rejected");
            ensure!(rig.state(vi)?, ViState::Idle, "the state");
        }
    }
    Ok(())
}

pub(super) async fn waits_end_when_their_time_is_over<C: Consumer>(rig: &mut Rig<C>) -> Verdict {
    let short = Some(Span::from_ms(2));
    let vi = rig.vi()?;
    // Where both NICs are of one host, its addresses are both's.
    let nobody: &[u8] = if rig.side == Side::Server { b"nobody" } else { b"no one" };
    let waited = rig.vipl.connect_wait(nobody, short).await;
    ensure!(waited.map(|_| ()), Err(ViplError::Timeout), "a wait for a request");
    rig.vipl.connect_peer_request(vi, b"a", b"b", short).map_err(said)?;
    ensure!(rig.state(vi)?, ViState::ConnectPending, "the state while it asks");
    let peer = rig.vipl.connect_peer_wait(vi).await;
    ensure!(peer.map(|_| ()), Err(ViplError::Timeout), "a peer that does not come");
    ensure!(rig.state(vi)?, ViState::Idle, "the state after that");
    rig.post_recv(vi, 0, 10)?;
    let receive = rig.vipl.wait(vi, QueueKind::Receive, short).await;
    ensure!(receive, Err(ViplError::Timeout), "a receive");
    let send = rig.vipl.wait(vi, QueueKind::Send, short).await;
    ensure!(send, Err(ViplError::DescriptorError), "an empty queue is no wait");
    let cq = rig.vipl.create_cq(1).map_err(said)?;
    let completion = rig.vipl.cq_wait(cq, short).await;
    ensure!(completion, Err(ViplError::Timeout), "a completion queue");
    Ok(())
}

pub(super) async fn peers_connect_when_both_ask<C: Consumer>(rig: &mut Rig<C>) -> Verdict {
    let vi = rig.vi()?;
    rig.post_recv(vi, 0, 10)?;
    let (ours, theirs): (&[u8], &[u8]) = if rig.side == Side::Server { (b"x", b"y") } else { (b"y", b"x") };
    rig.vipl.connect_peer_request(vi, ours, theirs, PATIENCE).map_err(said)?;
    let remote = rig.vipl.connect_peer_wait(vi).await.map_err(said)?;
    ensure!(remote.reliability, rig.level, "the remote level");
    rig.fill(100, 10, 3);
    rig.post_send(vi, 100, 10)?;
    ensure!(rig.wait(vi, QueueKind::Receive).await?.outcome.length, 10, "a message each way");
    ensure!(rig.holds(0, 10, 3), true, "its octets");
    Ok(())
}

pub(super) async fn peers_whose_attributes_differ_do_not<C: Consumer>(rig: &mut Rig<C>) -> Verdict {
    let server = rig.side == Side::Server;
    let size = Bytes::new(if server { 1_000 } else { 2_000 });
    let vi = rig.vi_of(ViAttributes { max_transfer: size, ..rig.attributes() })?;
    let (ours, theirs): (&[u8], &[u8]) = if server { (b"x", b"y") } else { (b"y", b"x") };
    rig.vipl.connect_peer_request(vi, ours, theirs, PATIENCE).map_err(said)?;
    let refused = rig.vipl.connect_peer_wait(vi).await;
    ensure!(refused.map(|_| ()), Err(ViplError::InvalidMtu), "sizes that differ");
    Ok(())
}

pub(super) async fn what_is_posted_without_a_connection_is_flushed<C: Consumer>(rig: &mut Rig<C>) -> Verdict {
    let vi = rig.vi()?;
    rig.post_send(vi, 0, 10)?;
    let flushed = status::DONE | status::FLUSHED_ERROR;
    ensure!(rig.wait(vi, QueueKind::Send).await?.outcome.status, flushed, "a send");
    rig.post_recv(vi, 0, 10)?;
    let waits = rig.vipl.done(vi, QueueKind::Receive);
    ensure!(waits, Err(super::super::DoneError::NotDone), "a receive waits for a connection");
    rig.vipl.disconnect(vi).map_err(said)?;
    let received = rig.wait(vi, QueueKind::Receive).await?;
    ensure!(received.outcome.status, flushed | status::OP_RECEIVE, "a receive, when that is given up");
    ensure!(rig.vipl.destroy_vi(vi), Ok(()), "an idle VI with nothing on its queues");
    Ok(())
}

pub(super) async fn the_remote_end_of_a_disconnection_is_in_error<C: Consumer>(rig: &mut Rig<C>) -> Verdict {
    let vi = rig.connected(3, 10).await?;
    if rig.side == Side::Client {
        rig.vipl.disconnect(vi).map_err(said)?;
        ensure!(rig.state(vi)?, ViState::Idle, "the state of who disconnects");
        return Ok(());
    }
    ensure!(rig.codes(vi, 1).await?, [ErrorCode::ConnectionLost], "the error");
    ensure!(rig.state(vi)?, ViState::Error, "the state");
    ensure!(rig.vipl.destroy_vi(vi), Err(ViplError::InvalidState), "a VI in error");
    for _ in 0..3 {
        let error = rig.wait(vi, QueueKind::Receive).await?.outcome.status & status::ERRORS;
        ensure!(error, status::FLUSHED_ERROR, "a receive that was posted");
    }
    rig.post_recv(vi, 0, 10)?;
    rig.post(vi, QueueKind::Send, &Descriptor::new(&[]))?;
    for kind in [QueueKind::Receive, QueueKind::Send] {
        let error = rig.wait(vi, kind).await?.outcome.status & status::ERRORS;
        ensure!(error, status::FLUSHED_ERROR, "posted in error, {kind:?}");
    }
    rig.vipl.disconnect(vi).map_err(said)?;
    ensure!(rig.vipl.destroy_vi(vi), Ok(()), "after it was disconnected here too");
    Ok(())
}

pub(super) async fn a_vi_is_connected_again_after_an_error<C: Consumer>(rig: &mut Rig<C>) -> Verdict {
    let vi = rig.connected(0, 0).await?;
    for round in 0..3_u8 {
        rig.vipl.disconnect(vi).map_err(said)?;
        rig.meet().await?;
        rig.vipl.disconnect(vi).map_err(said)?;
        if rig.side == Side::Server {
            rig.post_recv(vi, 0, 6_000)?;
        }
        rig.connect(vi).await?;
        match rig.side {
            Side::Client => {
                rig.fill(0, 6_000, round);
                rig.post_send(vi, 0, 6_000)?;
                ensure!(rig.wait(vi, QueueKind::Send).await?.is_success(), true, "round {round}");
            }
            Side::Server => {
                ensure!(rig.wait(vi, QueueKind::Receive).await?.is_success(), true, "round {round}");
                ensure!(rig.holds(0, 6_000, round), true, "the octets of round {round}");
            }
        }
        rig.meet().await?;
    }
    Ok(())
}
