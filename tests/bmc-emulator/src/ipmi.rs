//! The IPMI side of a BMC (IPMI 2.0, chapters 13 and 22 to 35): takes one datagram and returns the replies.

mod cipher;
mod command;
mod face;
mod handshake;
mod message;
mod packet;
mod rmcp;
mod serial;
mod serial_session;
mod session;

use std::net::SocketAddr;

use tokio::net::UdpSocket;
use tokio::time::{Instant, sleep_until};
use tracing::debug;

use crate::machine::Machine;
use crate::profile::Profile;

use face::IpmiFace;
use message::LanMessage;
use packet::{Envelope, PayloadType};
use rmcp::RmcpMessage;

/// The largest datagram that is read. RMCP+ payloads are far smaller (§13.6).
const LARGEST_DATAGRAM: usize = 1024;

/// Answers RMCP datagrams on `socket` until dropped.
pub(crate) async fn run(socket: UdpSocket, machine: Machine, profile: &'static Profile) {
    let mut face = IpmiFace::new(machine, profile);
    face.port = socket.local_addr().map_or(face.port, |address| address.port());
    let mut said = face.machine.serial().end();
    let mut datagram = [0; LARGEST_DATAGRAM];
    let mut held = None;
    loop {
        let due = face.serial_due();
        tokio::select! {
            received = socket.recv_from(&mut datagram) => {
                // A receive error reports that an earlier client went away. The socket still works.
                let Ok((length, from)) = received else { continue };
                if face.machine.faults().drops() {
                    continue;
                }
                face.machine.faults().wait().await;
                face.from = Some(from);
                for reply in face.handle(&datagram[..length]) {
                    deliver(&socket, &face.machine, (reply, from), &mut held).await;
                }
            }
            Ok(()) = said.changed(), if face.link.is_some() => {}
            () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {}
        }
        for packet in [face.farewell.take(), face.next_serial_packet()].into_iter().flatten() {
            deliver(&socket, &face.machine, packet, &mut held).await;
        }
    }
}

/// Sends a reply, unless a fault loses, repeats or delays it.
async fn deliver(
    socket: &UdpSocket,
    machine: &Machine,
    reply: (Vec<u8>, SocketAddr),
    held: &mut Option<(Vec<u8>, SocketAddr)>,
) {
    let (twice, swap) =
        machine.faults().with(|faults| (faults.duplicate_replies, faults.reorder_replies));
    if swap && held.is_none() {
        *held = Some(reply);
        return;
    }
    let again = twice.then(|| reply.clone());
    for (bytes, to) in [Some(reply), again, held.take()].into_iter().flatten() {
        if machine.faults().drops() {
            continue;
        }
        if let Err(error) = socket.send_to(&bytes, to).await {
            debug!(%error, "cannot send a reply");
        }
    }
}

impl IpmiFace {
    /// The replies to one datagram. Malformed datagrams are dropped silently, as §13 demands.
    pub(crate) fn handle(&mut self, datagram: &[u8]) -> Vec<Vec<u8>> {
        self.sessions.forget_stale(self.machine.faults().era());
        match RmcpMessage::read(datagram) {
            Some(RmcpMessage::Ping(ping)) => ping.replies(),
            Some(RmcpMessage::Ipmi(session)) => self.ipmi(session).into_iter().collect(),
            None => Vec::new(),
        }
    }

    fn ipmi(&mut self, bytes: &[u8]) -> Option<Vec<u8>> {
        match Envelope::read(bytes)? {
            Envelope::V15 { payload } => {
                let reply = self.command_without_session(payload)?;
                Some(packet::v15(&reply))
            }
            Envelope::V20 {
                kind,
                session: 0,
                encrypted: false,
                authenticated: false,
                payload,
                ..
            } => {
                let (kind, reply) = match kind {
                    PayloadType::Ipmi => (kind, self.command_without_session(payload)?),
                    PayloadType::OpenSessionRequest => {
                        (PayloadType::OpenSessionResponse, self.open_session(payload)?)
                    }
                    PayloadType::Rakp1 => (PayloadType::Rakp2, self.rakp1(payload)?),
                    PayloadType::Rakp3 => (PayloadType::Rakp4, self.rakp3(payload)?),
                    PayloadType::Serial
                    | PayloadType::OpenSessionResponse
                    | PayloadType::Rakp2
                    | PayloadType::Rakp4 => return None,
                };
                Some(packet::v20_outside(kind, &reply))
            }
            // §13.6: a session with an integrity and a confidentiality algorithm uses both.
            Envelope::V20 {
                kind: kind @ (PayloadType::Ipmi | PayloadType::Serial),
                session,
                sequence,
                encrypted: true,
                authenticated: true,
                payload,
            } => {
                let payload = self.sessions.unseal(session, sequence, payload, bytes)?;
                if kind == PayloadType::Serial {
                    self.receive_serial(session, &payload)
                } else {
                    self.in_session(session, &payload)
                }
            }
            Envelope::V20 { .. } => None,
        }
    }

    fn in_session(&mut self, id: u32, message: &[u8]) -> Option<Vec<u8>> {
        let request = LanMessage::read(message)?;
        let reply = self.execute(&request, Some(id));
        let sealed = self.sessions.seal(id, PayloadType::Ipmi, &reply);
        self.sessions.drop_closed();
        sealed
    }

    fn command_without_session(&mut self, payload: &[u8]) -> Option<Vec<u8>> {
        let request = LanMessage::read(payload)?;
        Some(self.execute(&request, None))
    }
}

#[cfg(test)]
mod tests;
