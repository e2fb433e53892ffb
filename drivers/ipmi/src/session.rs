//! An open session: seals outgoing packets and opens incoming ones (IPMI 2.0 §13.6).

use crate::window::Window;
use crate::wire::Malformed;
use crate::wire::crypto::{Keys, same_code};
use crate::wire::message::{Request, Response, SEQUENCE_MASK};
use crate::wire::packet::{self, Head, payload};

/// The ids, keys and counters of an open session.
pub(crate) struct Session {
    /// Our id of the session, carried by the BMC's packets.
    pub(crate) console: u32,
    /// The BMC's id of the session, carried by our packets.
    pub(crate) managed: u32,
    keys: Keys,
    sent: u32,
    received: Window,
    message: u8,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) completion: u8,
    pub(crate) data: Vec<u8>,
}

/// A packet from the BMC, verified and decrypted.
pub(crate) struct Opened {
    pub(crate) payload_type: u8,
    /// The packet's number among all packets of the BMC in the session.
    pub(crate) sequence: u32,
    pub(crate) payload: Vec<u8>,
}

impl Session {
    pub(crate) fn new(console: u32, managed: u32, keys: Keys) -> Self {
        Session { console, managed, keys, sent: 0, received: Window::default(), message: 0 }
    }

    /// Returns the message number for the next command.
    pub(crate) fn next_message(&mut self) -> u8 {
        self.message = (self.message + 1) & SEQUENCE_MASK;
        self.message
    }

    /// Builds a datagram with `request`. A repeated request is a new packet of the session.
    pub(crate) fn seal(&mut self, request: &Request<'_>, message: u8, vector: [u8; 16]) -> Vec<u8> {
        self.seal_payload(payload::IPMI, &request.encode(message), vector)
    }

    /// Builds a datagram with any payload.
    pub(crate) fn seal_payload(
        &mut self,
        payload_type: u8,
        payload: &[u8],
        vector: [u8; 16],
    ) -> Vec<u8> {
        // 0 is reserved for packets outside of a session.
        self.sent = self.sent.checked_add(1).unwrap_or(1);
        let head = Head { payload_type, session: self.managed, sequence: self.sent };
        let mut bytes = packet::protected(&head, &self.keys.encrypt(vector, payload));
        let code = self.keys.code(packet::covered(&bytes));
        bytes.extend_from_slice(&code);
        bytes
    }

    /// The number of packets that were sent.
    pub(crate) fn sent(&self) -> u32 {
        self.sent
    }

    /// Returns the answer to `request` in a datagram; `None` if the datagram answers another request.
    pub(crate) fn open(
        &mut self,
        datagram: &[u8],
        request: &Request<'_>,
        message: u8,
    ) -> Result<Option<Answer>, Malformed> {
        let opened = self.open_payload(datagram)?;
        if opened.payload_type != payload::IPMI {
            return Ok(None);
        }
        let response = Response::read(&opened.payload)?;
        Ok(request
            .is_answered_by(&response, message)
            .then(|| Answer { completion: response.completion, data: response.data.to_vec() }))
    }

    /// Verifies and decrypts a datagram.
    ///
    /// No field of the packet is used before its authentication code is verified.
    pub(crate) fn open_payload(&mut self, datagram: &[u8]) -> Result<Opened, Malformed> {
        let (before, code) = self.keys.split(datagram)?;
        let packet = packet::read_plus(before)?;
        if !packet.is_protected {
            return Err(Malformed("it is not protected"));
        }
        if packet.session != self.console {
            return Err(Malformed("it is of another session"));
        }
        if !same_code(&self.keys.code(packet::covered(before)), code) {
            return Err(Malformed("its authentication code is wrong"));
        }
        if !self.received.admit(packet.sequence) {
            return Err(Malformed("its sequence number is old or was seen before"));
        }

        let payload = self.keys.decrypt(packet.payload)?;
        Ok(Opened { payload_type: packet.payload_type, sequence: packet.sequence, payload })
    }
}

#[cfg(test)]
impl Session {
    /// Returns the message number in a packet of our own.
    pub(crate) fn message_number_of(&self, datagram: &[u8]) -> u8 {
        let packet = packet::read_plus(datagram).unwrap();
        self.keys.decrypt(packet.payload).unwrap()[4] >> 2
    }

    /// Builds a packet as the BMC would, with any plaintext and the right keys.
    pub(crate) fn forge(&self, plain: &[u8]) -> Vec<u8> {
        let head = Head { payload_type: payload::IPMI, session: self.console, sequence: 1 };
        let mut bytes = packet::protected(&head, &self.keys.encrypt([0; 16], plain));
        let code = self.keys.code(packet::covered(&bytes));
        bytes.extend_from_slice(&code);
        bytes
    }
}
