//! RMCP+ sessions: slots, sequence numbers, privileges, encryption and authentication (IPMI 2.0 §6.12 and §13.6).

use std::time::Duration;

use tokio::time::Instant;

use crate::ipmi::cipher::{CipherSuite, SessionKeys};
use crate::ipmi::packet::{self, PayloadType};
use crate::ipmi::rmcp::IPMI_HEADER;
use crate::profile::IpmiRules;

/// The next-header byte of an RMCP+ trailer.
const NEXT_HEADER: u8 = 0x07;
/// §6.12.13: how far a sequence number may be ahead of the highest number seen, or behind it.
const WINDOW: u32 = 16;

/// Session privilege levels (§6.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Privilege {
    Callback = 1,
    User = 2,
    Operator = 3,
    Administrator = 4,
}

/// The session slots of one BMC.
pub(crate) struct Sessions {
    slots: usize,
    timeout: Duration,
    open: Vec<Session>,
}

/// A session, open or in its handshake.
pub(crate) struct Session {
    /// The session id of the BMC.
    pub(crate) id: u32,
    /// The session id of the remote console.
    pub(crate) console_id: u32,
    pub(crate) suite: CipherSuite,
    /// RC: the random number of this BMC. A repeated RAKP 1 gets the same number.
    pub(crate) bmc_random: [u8; 16],
    /// The contents of RAKP 1. `None` before that message.
    pub(crate) challenge: Option<Challenge>,
    pub(crate) active: Option<Active>,
    closed: bool,
    used_at: Instant,
    era: u64,
}

/// The contents of RAKP 1 that the later messages need.
pub(crate) struct Challenge {
    /// RM, the random number of the console.
    pub(crate) console_random: [u8; 16],
    /// The role byte, including its lookup bit.
    pub(crate) role: u8,
    pub(crate) limit: Privilege,
    pub(crate) username: Vec<u8>,
}

/// The state of a session after a correct RAKP 3.
pub(crate) struct Active {
    keys: SessionKeys,
    /// The current privilege of the session.
    pub(crate) privilege: Privilege,
    /// The highest privilege that the session may request.
    pub(crate) limit: Privilege,
    highest: u32,
    /// A bit for each number up to `highest` that was seen. Bit 0 is `highest` itself.
    seen: u32,
    next_outbound: u32,
}

impl Privilege {
    pub(crate) fn read(level: u8) -> Option<Privilege> {
        use Privilege::{Administrator, Callback, Operator, User};
        [Callback, User, Operator, Administrator]
            .into_iter()
            .find(|privilege| *privilege as u8 == level)
    }
}

impl Sessions {
    pub(crate) fn new(rules: &IpmiRules) -> Sessions {
        let timeout = Duration::from_secs(rules.session_timeout_seconds);
        Sessions { slots: rules.session_slots, timeout, open: Vec::new() }
    }

    /// Opens a session in a free slot. If there is none, the oldest session without a finished handshake loses its slot.
    pub(crate) fn open(
        &mut self,
        console_id: u32,
        suite: CipherSuite,
        era: u64,
    ) -> Option<&Session> {
        if self.open.len() >= self.slots {
            let dallying = self.open.iter().position(|session| session.active.is_none())?;
            self.open.remove(dallying);
        }
        let id = rand::random::<u32>().max(1);
        self.open.retain(|session| session.id != id);
        self.open.push(Session {
            id,
            console_id,
            suite,
            bmc_random: rand::random(),
            challenge: None,
            active: None,
            closed: false,
            used_at: Instant::now(),
            era,
        });
        self.open.last()
    }

    pub(crate) fn find(&mut self, id: u32) -> Option<&mut Session> {
        self.open.iter_mut().find(|session| session.id == id)
    }

    pub(crate) fn is_active(&self, id: u32) -> bool {
        self.open.iter().any(|session| session.id == id && session.active.is_some())
    }

    pub(crate) fn remove(&mut self, id: u32) {
        self.open.retain(|session| session.id != id);
    }

    pub(crate) fn slots(&self) -> usize {
        self.slots
    }

    /// The number of sessions, open or in their handshake.
    pub(crate) fn open_count(&self) -> usize {
        self.open.len()
    }

    pub(crate) fn active_count(&self) -> usize {
        self.open.iter().filter(|session| session.active.is_some()).count()
    }

    pub(crate) fn forget_stale(&mut self, era: u64) {
        let timeout = self.timeout;
        self.open.retain(|session| session.era == era && session.used_at.elapsed() < timeout);
    }

    /// Marks a session to end after its last reply is sent. Returns whether the session existed.
    pub(crate) fn close(&mut self, id: u32) -> bool {
        match self.find(id).filter(|session| session.active.is_some()) {
            Some(session) => {
                session.closed = true;
                true
            }
            None => false,
        }
    }

    pub(crate) fn drop_closed(&mut self) {
        self.open.retain(|session| !session.closed);
    }

    /// Verifies and decrypts a packet of a session. `None` if anything is wrong with it. `whole` begins with the session header.
    pub(crate) fn unseal(
        &mut self,
        id: u32,
        sequence: u32,
        payload: &[u8],
        whole: &[u8],
    ) -> Option<Vec<u8>> {
        let session = self.find(id)?;
        let active = session.active.as_mut()?;
        let code_at = whole.len().checked_sub(active.keys.code_length())?;
        let (covered, code) = whole.split_at(code_at);
        let [before_trailer @ .., pad, NEXT_HEADER] = covered else { return None };
        let header_and_payload = before_trailer.len().checked_sub(usize::from(*pad))?;
        if header_and_payload != packet::HEADER + payload.len() || active.keys.code(covered) != code
        {
            return None;
        }
        if !active.accepts(sequence) {
            return None;
        }
        let message = active.keys.decrypt(payload)?;
        session.used_at = Instant::now();
        Some(message)
    }

    /// A datagram with an encrypted and authenticated payload for the console of a session.
    pub(crate) fn seal(&mut self, id: u32, kind: PayloadType, message: &[u8]) -> Option<Vec<u8>> {
        let session = self.find(id)?;
        let console_id = session.console_id;
        let active = session.active.as_mut()?;
        let sequence = active.next_outbound;
        // §6.12.8: 0 is for packets outside of a session.
        active.next_outbound = sequence.checked_add(1).unwrap_or(1);

        let payload = active.keys.encrypt(message);
        let mut covered = packet::v20_sealed_header(kind, console_id, sequence, payload.len());
        covered.extend(payload);
        // Table 13-8: the padding makes the bytes that the code covers a multiple of four.
        let pad = (4 - (covered.len() + 2) % 4) % 4;
        covered.extend(std::iter::repeat_n(0xFF, pad));
        covered.extend([pad as u8, NEXT_HEADER]);
        let code = active.keys.code(&covered);
        Some([IPMI_HEADER.as_slice(), &covered, &code].concat())
    }
}

impl Active {
    /// §13.32: a session begins at User, or below if its limit is lower.
    pub(crate) fn new(keys: SessionKeys, limit: Privilege) -> Active {
        let privilege = limit.min(Privilege::User);
        Active { keys, privilege, limit, highest: 0, seen: 1, next_outbound: 1 }
    }

    /// §6.12.13: accepts each number once, and only near the highest number so far.
    fn accepts(&mut self, sequence: u32) -> bool {
        let ahead = sequence.wrapping_sub(self.highest);
        let behind = self.highest.wrapping_sub(sequence);
        if sequence == 0 {
            return false;
        }
        if (1..=WINDOW).contains(&ahead) {
            self.highest = sequence;
            self.seen = self.seen << ahead | 1;
            return true;
        }
        let unseen = behind < WINDOW && self.seen & (1 << behind) == 0;
        if unseen {
            self.seen |= 1 << behind;
        }
        unseen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn active() -> Active {
        Active::new(SessionKeys::derive(CipherSuite::Suite3, &[1; 20]), Privilege::Administrator)
    }

    #[test]
    fn a_sequence_number_is_taken_once() {
        let mut active = active();
        let taken: Vec<bool> =
            [1, 2, 2, 5, 3, 3, 4, 0].map(|number| active.accepts(number)).to_vec();
        assert_eq!(taken, [true, true, false, true, true, false, true, false]);
    }

    #[test]
    fn a_sequence_number_far_from_the_last_is_not_taken() {
        let mut active = active();
        assert!(!active.accepts(17));
        assert!(active.accepts(16));
        assert!(active.accepts(1));
        assert!(active.accepts(32));
        assert!(!active.accepts(16));
        assert!(!active.accepts(15));
    }

    #[test]
    fn a_session_begins_as_user() {
        assert_eq!(active().privilege, Privilege::User);
    }
}
