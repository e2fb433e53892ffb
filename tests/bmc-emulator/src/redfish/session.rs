//! Sessions: a limited number of slots, each with a token that expires (DSP0266 §13.3.4).

use std::time::Duration;

use tokio::time::Instant;

use crate::profile::SessionRules;

pub(crate) struct Sessions {
    slots: usize,
    pub(crate) timeout: Duration,
    open: Vec<Session>,
    last_id: u32,
}

struct Session {
    id: u32,
    token: [u8; 16],
    used_at: Instant,
    era: u64,
}

/// A new session. The token is shown only once.
pub(crate) struct NewSession {
    pub(crate) id: u32,
    pub(crate) token: String,
}

/// Every slot is taken.
pub(crate) struct NoFreeSlot;

impl Sessions {
    pub(crate) fn new(rules: &SessionRules) -> Sessions {
        let timeout = Duration::from_secs(rules.timeout_seconds);
        Sessions { slots: rules.slots, timeout, open: Vec::new(), last_id: 0 }
    }

    pub(crate) fn open(&mut self, era: u64) -> Result<NewSession, NoFreeSlot> {
        self.forget_stale(era);
        if self.open.len() >= self.slots {
            return Err(NoFreeSlot);
        }
        self.last_id += 1;
        let session =
            Session { id: self.last_id, token: rand::random(), used_at: Instant::now(), era };
        let opened = NewSession { id: session.id, token: text(&session.token) };
        self.open.push(session);
        Ok(opened)
    }

    /// Whether `token` is valid. A valid token extends its session.
    pub(crate) fn use_token(&mut self, token: &str, era: u64) -> bool {
        self.forget_stale(era);
        let found = self.open.iter_mut().find(|session| text(&session.token) == token);
        if let Some(session) = found {
            session.used_at = Instant::now();
            return true;
        }
        false
    }

    pub(crate) fn close(&mut self, id: u32) -> bool {
        let before = self.open.len();
        self.open.retain(|session| session.id != id);
        self.open.len() < before
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = u32> {
        self.open.iter().map(|session| session.id)
    }

    fn forget_stale(&mut self, era: u64) {
        let timeout = self.timeout;
        self.open.retain(|session| session.era == era && session.used_at.elapsed() < timeout);
    }
}

fn text(token: &[u8; 16]) -> String {
    format!("{:032x}", u128::from_be_bytes(*token))
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: SessionRules = SessionRules { slots: 2, timeout_seconds: 60 };

    #[tokio::test(start_paused = true)]
    async fn a_session_nobody_uses_frees_its_slot() {
        let mut sessions = Sessions::new(&RULES);
        let first = sessions.open(0).ok().unwrap();
        let second = sessions.open(0).ok().unwrap();
        assert!(sessions.open(0).is_err());

        tokio::time::advance(Duration::from_secs(40)).await;
        assert!(sessions.use_token(&first.token, 0));
        tokio::time::advance(Duration::from_secs(40)).await;
        assert!(sessions.use_token(&first.token, 0));
        assert!(!sessions.use_token(&second.token, 0));
        assert!(sessions.open(0).is_ok());
    }

    #[tokio::test]
    async fn a_new_era_voids_every_session() {
        let mut sessions = Sessions::new(&RULES);
        let opened = sessions.open(0).ok().unwrap();
        assert!(!sessions.use_token(&opened.token, 1));
    }
}
