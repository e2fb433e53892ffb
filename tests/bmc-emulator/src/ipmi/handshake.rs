//! Opening a session: Open Session and RAKP 1 to 4 (IPMI 2.0 §13.17 to §13.24, §13.31).

use crate::ipmi::cipher::{CipherSuite, SessionKeys};
use crate::ipmi::face::IpmiFace;
use crate::ipmi::session::{Active, Challenge, Privilege, Session};

/// RMCP+ and RAKP status codes, table 13-15.
mod status {
    pub(super) const OK: u8 = 0x00;
    pub(super) const NO_RESOURCES: u8 = 0x01;
    pub(super) const INVALID_SESSION: u8 = 0x02;
    pub(super) const NO_MATCHING_AUTHENTICATION: u8 = 0x06;
    pub(super) const INVALID_AUTHENTICATION: u8 = 0x04;
    pub(super) const INVALID_INTEGRITY: u8 = 0x05;
    pub(super) const INVALID_ROLE: u8 = 0x09;
    pub(super) const INVALID_NAME_LENGTH: u8 = 0x0C;
    pub(super) const UNAUTHORIZED_NAME: u8 = 0x0D;
    pub(super) const INVALID_CHECK_VALUE: u8 = 0x0F;
    pub(super) const INVALID_CONFIDENTIALITY: u8 = 0x10;
    pub(super) const NO_SUITE_MATCHES: u8 = 0x11;
    pub(super) const ILLEGAL_PARAMETER: u8 = 0x12;
}

/// The bit of the role byte that requests a lookup by name alone.
const NAME_ONLY: u8 = 0x10;

impl IpmiFace {
    /// Answers Open Session: table 13-9 in, table 13-10 out.
    pub(super) fn open_session(&mut self, request: &[u8]) -> Option<Vec<u8>> {
        let [tag, role, _, _, c0, c1, c2, c3, proposals @ ..] = request else { return None };
        let console_id = u32::from_le_bytes([*c0, *c1, *c2, *c3]);
        let refuse =
            |code| Some([&[*tag, code, 0, 0], console_id.to_le_bytes().as_slice()].concat());

        let role = role & 0x0F;
        if role > Privilege::Administrator as u8 {
            return refuse(status::INVALID_ROLE);
        }
        let suite = match self.choose_suite(proposals) {
            Ok(suite) => suite,
            Err(code) => return refuse(code),
        };
        let faults = self.machine.faults();
        let (full, era) = (faults.with(|faults| faults.sessions_full), faults.era());
        if self.sessions.open_count() >= self.sessions.slots() {
            self.machine.sessions().note_full();
        }
        let opened = (!full).then(|| self.sessions.open(console_id, suite, era)).flatten();
        let Some(id) = opened.map(|session| session.id) else {
            return refuse(status::NO_RESOURCES);
        };
        self.machine.sessions().note_open(self.sessions.open_count());

        // Role 0 requests the highest privilege.
        let granted = if role == 0 { Privilege::Administrator as u8 } else { role };
        let mut reply = vec![*tag, status::OK, granted, 0];
        reply.extend(console_id.to_le_bytes());
        reply.extend(id.to_le_bytes());
        for (kind, algorithm) in (0..).zip(suite.algorithms()) {
            reply.extend([kind, 0, 0, 8, algorithm, 0, 0, 0]);
        }
        Some(reply)
    }

    /// The suite of this BMC that matches the three proposals. A proposal of length 0 matches any algorithm.
    fn choose_suite(&self, proposals: &[u8]) -> Result<CipherSuite, u8> {
        let (proposals, _) = proposals.as_chunks::<8>();
        let [authentication, integrity, confidentiality, ..] = proposals else {
            return Err(status::ILLEGAL_PARAMETER);
        };
        let proposed = [authentication, integrity, confidentiality];
        if proposed.iter().zip(0..).any(|(proposal, kind): (_, u8)| proposal[0] != kind) {
            return Err(status::NO_MATCHING_AUTHENTICATION);
        }
        let ours: Vec<CipherSuite> = self.suites().collect();
        let fits = |suite: &CipherSuite, kind: usize| {
            proposed[kind][3] == 0 || proposed[kind][4] & 0x3F == suite.algorithms()[kind]
        };
        let wrong = [
            status::INVALID_AUTHENTICATION,
            status::INVALID_INTEGRITY,
            status::INVALID_CONFIDENTIALITY,
        ];
        for (kind, code) in wrong.into_iter().enumerate() {
            if !ours.iter().any(|suite| fits(suite, kind)) {
                return Err(code);
            }
        }
        let found = ours.into_iter().rev().find(|suite| (0..3).all(|kind| fits(suite, kind)));
        found.ok_or(status::NO_SUITE_MATCHES)
    }

    /// The suites of this BMC, weakest first.
    pub(super) fn suites(&self) -> impl Iterator<Item = CipherSuite> {
        let ids = &self.profile.ipmi.cipher_suites;
        CipherSuite::ALL.into_iter().filter(|suite| ids.contains(&suite.id()))
    }

    /// Answers RAKP 1: table 13-11 in, table 13-12 out.
    pub(super) fn rakp1(&mut self, request: &[u8]) -> Option<Vec<u8>> {
        let [tag, _, _, _, rest @ ..] = request else { return None };
        let (id, rest) = rest.split_first_chunk::<4>()?;
        let (console_random, rest) = rest.split_first_chunk::<16>()?;
        let [role, _, _, name_length, name @ ..] = rest else { return None };
        let guid = self.guid();
        let key = self.user_key();
        let known_name = self.machine.spec().bmc.username.clone().into_bytes();

        let Some(session) =
            self.sessions.find(u32::from_le_bytes(*id)).filter(|session| session.active.is_none())
        else {
            // The console's session id is unknown because the request does not contain it, so the answer has zeros.
            return Some([&[*tag, status::INVALID_SESSION, 0, 0], [0; 4].as_slice()].concat());
        };
        let console_id = session.console_id.to_le_bytes();
        let refuse = |code| Some([&[*tag, code, 0, 0], console_id.as_slice()].concat());

        let length = usize::from(*name_length);
        if length > 16 || name.len() < length {
            return refuse(status::INVALID_NAME_LENGTH);
        }
        let username = name[..length].to_vec();
        let Some(limit) = Privilege::read(role & !NAME_ONLY) else {
            return refuse(status::INVALID_ROLE);
        };
        if username != known_name {
            return refuse(status::UNAUTHORIZED_NAME);
        }
        let challenge = Challenge { console_random: *console_random, role: *role, limit, username };
        let code = session.exchange_code(&challenge, &key, &guid);
        session.challenge = Some(challenge);

        let mut reply = vec![*tag, status::OK, 0, 0];
        reply.extend(console_id);
        reply.extend(session.bmc_random);
        reply.extend(guid);
        reply.extend(code);
        Some(reply)
    }

    /// Answers RAKP 3: table 13-13 in, table 13-14 out.
    pub(super) fn rakp3(&mut self, request: &[u8]) -> Option<Vec<u8>> {
        let [tag, reported, _, _, rest @ ..] = request else { return None };
        let (id, code) = rest.split_first_chunk::<4>()?;
        let id = u32::from_le_bytes(*id);
        let (key, guid) = (self.user_key(), self.guid());

        let Some(session) = self.sessions.find(id).filter(|session| session.challenge.is_some())
        else {
            return Some([&[*tag, status::INVALID_SESSION, 0, 0], [0; 4].as_slice()].concat());
        };
        if *reported != status::OK {
            // The console rejected RAKP 2. It gets no answer, and the slot is freed.
            self.sessions.remove(id);
            return None;
        }
        let head =
            |code| [&[*tag, code, 0, 0], session.console_id.to_le_bytes().as_slice()].concat();
        let proof = session.prove(&key, &guid)?;
        if proof.expected != code {
            let refusal = head(status::INVALID_CHECK_VALUE);
            self.sessions.remove(id);
            return Some(refusal);
        }
        let reply = [head(status::OK), proof.check_value].concat();
        if session.active.is_none() {
            let keys = SessionKeys::derive(session.suite, &proof.sik);
            session.active = Some(Active::new(keys, proof.limit));
        }
        Some(reply)
    }

    /// K\[UID]: the password, padded with zeros to 20 bytes. An HMAC pads keys with zeros too, so the padding can be left out.
    fn user_key(&self) -> Vec<u8> {
        let mut key = self.machine.password().into_bytes();
        if self.machine.faults().with(|faults| faults.refuse_credentials) {
            key = rand::random::<[u8; 20]>().to_vec();
        }
        key
    }

    /// §20.8: the UUID of RFC 4122 with its bytes in reverse.
    pub(super) fn guid(&self) -> [u8; 16] {
        let mut guid = self.machine.spec().uuid.into_bytes();
        guid.reverse();
        guid
    }
}

/// The codes by which RAKP 3 and RAKP 4 prove knowledge of the password.
struct Proof {
    /// The code that RAKP 3 must carry.
    expected: Vec<u8>,
    /// The session integrity key (SIK).
    sik: Vec<u8>,
    /// The code that RAKP 4 carries.
    check_value: Vec<u8>,
    limit: Privilege,
}

impl Session {
    /// RAKP 2's code: `HMAC_K[UID](SIDM, SIDC, RM, RC, GUIDC, RoleM, ULengthM, UNameM)`, §13.31.
    fn exchange_code(&self, challenge: &Challenge, key: &[u8], guid: &[u8; 16]) -> Vec<u8> {
        let who = challenge.who();
        self.suite.hmac(
            key,
            &[
                &self.console_id.to_le_bytes(),
                &self.id.to_le_bytes(),
                &challenge.console_random,
                &self.bmc_random,
                guid,
                &who,
            ],
        )
    }

    /// §13.31: RAKP 3 is `HMAC_K[UID](RC, SIDM, RoleM, ULengthM, UNameM)`, the session integrity key is
    /// `HMAC_K[G](RM, RC, RoleM, ULengthM, UNameM)` with K\[UID] for a K\[G] that is not set, and RAKP 4 is
    /// `HMAC_SIK(RM, SIDC, GUIDC)`, shortened.
    fn prove(&self, key: &[u8], guid: &[u8; 16]) -> Option<Proof> {
        let challenge = self.challenge.as_ref()?;
        let who = challenge.who();
        let expected =
            self.suite.hmac(key, &[&self.bmc_random, &self.console_id.to_le_bytes(), &who]);
        let sik = self.suite.hmac(key, &[&challenge.console_random, &self.bmc_random, &who]);
        let check_value =
            self.suite.short_hmac(&sik, &[&challenge.console_random, &self.id.to_le_bytes(), guid]);
        Some(Proof { expected, sik, check_value, limit: challenge.limit })
    }
}

impl Challenge {
    /// RoleM, ULengthM, UNameM.
    fn who(&self) -> Vec<u8> {
        let mut who = vec![self.role, self.username.len() as u8];
        who.extend(&self.username);
        who
    }
}
