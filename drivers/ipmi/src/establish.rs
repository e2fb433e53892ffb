//! The handshake that opens a session, as a state machine: Open Session, then RAKP 1 to 4 (IPMI 2.0 §13.15).

use secrecy::ExposeSecret;

use crate::session::Session;
use crate::target::{CipherSuite, Target};
use crate::wire::crypto::{Keys, same_code};
use crate::wire::handshake::{self, Answer, Rakp2, status};
use crate::wire::packet::{self, payload};
use crate::wire::{Malformed, Reader};

/// The BMC looks up the account by its name alone, not by name and role (IPMI 2.0 §13.20).
const BY_NAME_ONLY: u8 = 0x10;

/// A session that is being opened.
///
/// Send `datagram` as often as needed, and pass each answer to `receive`.
pub(crate) struct Handshake<'t> {
    target: &'t Target,
    suite: CipherSuite,
    /// Our id of the new session.
    console: u32,
    console_random: [u8; 16],
    stage: Stage,
}

/// The answer that is awaited.
enum Stage {
    Opening,
    Exchanging { managed: u32 },
    Activating { managed: u32, code: Vec<u8>, check_value: Vec<u8>, session_integrity_key: Vec<u8> },
}

/// The effect of a datagram on the handshake.
pub(crate) enum Step {
    /// The datagram is late, duplicated or for another session.
    Ignored,
    /// The next message has to be sent.
    Next,
    Established(Box<Session>),
}

/// The reasons why a handshake failed.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(crate) enum HandshakeError {
    /// The BMC does not support the algorithms.
    #[error("the BMC does not take the cipher suite")]
    SuiteRefused,
    /// The BMC does not know our password: its authentication code differs from ours.
    #[error("the password is wrong")]
    WrongPassword,
    /// The BMC proved that it knows the password, but derived another session key.
    #[error("the BMC derived another session key: a BMC key (K_g) may be set, which must be empty")]
    OtherKey,
    /// The BMC refused a message.
    #[error("{}", status::describe(*.status))]
    Refused { step: &'static str, status: u8 },
    /// The answer breaks the protocol.
    #[error("{reason}")]
    Malformed { step: &'static str, reason: Malformed },
}

impl<'t> Handshake<'t> {
    /// Starts a handshake. `console` is our id of the session and must be unique in this process; `console_random` is our half of the keys.
    pub(crate) fn new(
        target: &'t Target,
        suite: CipherSuite,
        console: u32,
        console_random: [u8; 16],
    ) -> Self {
        Handshake { target, suite, console, console_random, stage: Stage::Opening }
    }

    /// Returns the message to send.
    pub(crate) fn datagram(&self) -> Vec<u8> {
        let tag = self.tag();
        match &self.stage {
            Stage::Opening => {
                let level = self.target.privilege.level();
                let proposed = self.suite.algorithms();
                let request = handshake::open_request(tag, level, self.console, proposed);
                packet::plain(payload::OPEN_REQUEST, &request)
            }
            Stage::Exchanging { managed } => {
                let message =
                    handshake::rakp_1(tag, *managed, &self.console_random, &self.identity());
                packet::plain(payload::RAKP_1, &message)
            }
            Stage::Activating { managed, code, .. } => {
                let message = handshake::rakp_3(tag, status::NO_ERRORS, *managed, code);
                packet::plain(payload::RAKP_3, &message)
            }
        }
    }

    /// Handles a datagram that was received for our session id.
    pub(crate) fn receive(&mut self, datagram: &[u8]) -> Result<Step, HandshakeError> {
        let (step, kind) = match self.stage {
            Stage::Opening => ("RMCP+ Open Session", payload::OPEN_RESPONSE),
            Stage::Exchanging { .. } => ("RAKP 1", payload::RAKP_2),
            Stage::Activating { .. } => ("RAKP 3", payload::RAKP_4),
        };
        let Ok(packet) = packet::read_plus(datagram) else { return Ok(Step::Ignored) };
        let Ok(answer) = Answer::read(packet.payload) else { return Ok(Step::Ignored) };
        if packet.payload_type != kind || answer.tag != self.tag() || answer.console != self.console
        {
            return Ok(Step::Ignored);
        }
        if answer.status != status::NO_ERRORS {
            return Err(refusal(step, answer.status));
        }
        self.advance(answer).map_err(|error| match error {
            StepError::Malformed(reason) => HandshakeError::Malformed { step, reason },
            StepError::Because(error) => error,
        })
    }

    /// Returns the message that makes the BMC drop the half-open session; `None` if the BMC has none.
    pub(crate) fn abort_message(&self) -> Option<Vec<u8>> {
        let managed = match self.stage {
            Stage::Opening => return None,
            Stage::Exchanging { managed } | Stage::Activating { managed, .. } => managed,
        };
        let message = handshake::rakp_3(self.tag(), status::INVALID_CHECK_VALUE, managed, &[]);
        Some(packet::plain(payload::RAKP_3, &message))
    }

    /// Whether the BMC has not accepted the cipher suite yet.
    pub(crate) fn is_opening(&self) -> bool {
        matches!(self.stage, Stage::Opening)
    }

    /// Explains what it means if the BMC stays silent in this stage.
    pub(crate) fn awaiting(&self) -> &'static str {
        match self.stage {
            Stage::Opening => {
                "it is there, but does not answer a request to open a session; it may not know the \
                 cipher suite"
            }
            Stage::Exchanging { .. } => {
                "it did not answer our key exchange; some do so when they do not know the user name"
            }
            Stage::Activating { .. } => "it did not activate the session",
        }
    }

    fn advance(&mut self, answer: Answer<'_>) -> Result<Step, StepError> {
        match &self.stage {
            Stage::Opening => {
                let opened = answer.open_response()?;
                if opened.chosen != self.suite.algorithms() {
                    return Err(HandshakeError::SuiteRefused.into());
                }
                self.stage = Stage::Exchanging { managed: opened.managed };
                Ok(Step::Next)
            }
            Stage::Exchanging { managed } => {
                self.stage = self.verify_exchange(*managed, &answer.rakp_2()?)?;
                Ok(Step::Next)
            }
            Stage::Activating { managed, check_value, session_integrity_key, .. } => {
                let theirs = answer.rakp_4();
                if theirs.len() != self.suite.packet_code_length() {
                    return Err(Malformed("its integrity check value has the wrong length").into());
                }
                if !same_code(check_value, theirs) {
                    return Err(HandshakeError::OtherKey.into());
                }
                let keys = Keys::derive(self.suite, session_integrity_key);
                Ok(Step::Established(Box::new(Session::new(self.console, *managed, keys))))
            }
        }
    }

    /// Checks that the BMC knows our password, and derives the keys (IPMI 2.0 §13.31).
    ///
    /// In the specification's terms, M is the remote console (this driver) and C is the managed system (the BMC).
    fn verify_exchange(&self, managed: u32, exchange: &Rakp2<'_>) -> Result<Stage, StepError> {
        let Rakp2 { random, guid, code } = exchange;
        if code.len() != self.suite.exchange_code_length() {
            return Err(Malformed("its key exchange code has the wrong length").into());
        }
        let password = self.target.password.expose_secret().as_bytes();
        let hash = |key: &[u8], parts: &[&[u8]]| self.suite.keyed_hash(key, parts);
        let (ours, theirs) = (self.console.to_le_bytes(), managed.to_le_bytes());
        let (our_random, identity) = (&self.console_random, self.identity());

        let proof = hash(password, &[&ours, &theirs, our_random, random, guid, &identity]);
        if !same_code(&proof, code) {
            return Err(HandshakeError::WrongPassword.into());
        }

        // Without a BMC key (K_g), the user's key takes its place.
        let session_integrity_key = hash(password, &[our_random, random, &identity]);
        let mut check_value = hash(&session_integrity_key, &[our_random, &theirs, guid]);
        check_value.truncate(self.suite.packet_code_length());
        let code = hash(password, &[random, &ours, &identity]);
        Ok(Stage::Activating { managed, code, check_value, session_integrity_key })
    }

    /// Returns role, length of the name and name, as they enter every hash.
    fn identity(&self) -> Vec<u8> {
        let name = self.target.username.as_bytes();
        let mut bytes = vec![self.target.privilege.level() | BY_NAME_ONLY, name.len() as u8];
        bytes.extend_from_slice(name);
        bytes
    }

    /// Returns the tag of the current message, by which its answer is recognized; copies of one message have the same tag.
    fn tag(&self) -> u8 {
        let first = self.console_random[0] & 0xfc;
        match self.stage {
            Stage::Opening => first,
            Stage::Exchanging { .. } => first | 1,
            Stage::Activating { .. } => first | 2,
        }
    }
}

fn refusal(step: &'static str, status: u8) -> HandshakeError {
    match status {
        status::INVALID_AUTHENTICATION
        | status::INVALID_INTEGRITY
        | status::INVALID_CONFIDENTIALITY
        | status::NO_SUITE_MATCH => HandshakeError::SuiteRefused,
        _ => HandshakeError::Refused { step, status },
    }
}

/// The reason why a step failed; `receive` adds the name of the step.
enum StepError {
    Malformed(Malformed),
    Because(HandshakeError),
}

impl From<Malformed> for StepError {
    fn from(reason: Malformed) -> Self {
        StepError::Malformed(reason)
    }
}

impl From<HandshakeError> for StepError {
    fn from(error: HandshakeError) -> Self {
        StepError::Because(error)
    }
}

/// Whether a BMC supports IPMI 2.0, from its answer to Get Channel Authentication Capabilities (IPMI 2.0 §22.13).
pub(crate) fn speaks_plus(data: &[u8]) -> Result<bool, Malformed> {
    let mut reader = Reader::new(data);
    let [_channel, kinds, _status, versions]: [u8; 4] = reader.array()?;
    Ok(kinds & 0x80 != 0 && versions & 0x02 != 0)
}

#[cfg(test)]
mod tests;
