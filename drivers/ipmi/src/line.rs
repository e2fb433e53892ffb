//! The line to one BMC: at most one session, and one command at a time.

use std::time::Duration;

use bmc::BmcError;
use secrecy::ExposeSecret;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep};
use tracing::debug;

use crate::commands::CompletionCode;
use crate::exchange::{RetryLimits, ask, unreachable};
use crate::in_session::InSession;
use crate::opening;
use crate::port::Port;
use crate::session::{Answer, Session};
use crate::target::{CipherSuite, Target};
use crate::wire::message::Request;

/// How long to wait after a "busy" answer, doubled each time up to a second.
const BUSY_WAIT: Duration = Duration::from_millis(125);
const LONGEST_BUSY_WAIT: Duration = Duration::from_secs(1);

/// Application netfn and its commands for the session itself (IPMI 2.0 §22).
pub(crate) const APPLICATION: u8 = 0x06;
const GET_DEVICE_ID: u8 = 0x01;
pub(crate) const CLOSE_SESSION: u8 = 0x3c;

pub(crate) struct BmcLine {
    pub(crate) target: Target,
    /// Held while a session of the serial port is being closed.
    pub(crate) serial_ends: Mutex<()>,
    state: Mutex<State>,
}

/// The state of a line between commands.
struct State {
    session: Option<Session>,
    /// The cipher suite of the last session.
    suite: Option<CipherSuite>,
    /// When a caller last sent a command.
    used_at: Instant,
    /// When the BMC last answered.
    heard_at: Instant,
}

/// The maintenance that a line needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Maintenance {
    Nothing,
    KeepAlive,
    /// Close the idle session.
    Close,
    /// Drop the line: it has had no session for a long time.
    Forget,
}

impl BmcLine {
    pub(crate) fn new(target: Target) -> Self {
        let now = Instant::now();
        let state = State { session: None, suite: None, used_at: now, heard_at: now };
        BmcLine { target, serial_ends: Mutex::default(), state: Mutex::new(state) }
    }

    /// Sends `request` and returns the BMC's answer with any completion code except "busy".
    pub(crate) async fn ask(&self, port: &Port, request: &Request<'_>) -> Result<Answer, BmcError> {
        self.check_account()?;
        let mut state = self.state.lock().await;
        let deadline = Instant::now() + self.target.timeout;
        state.used_at = Instant::now();
        let mut wait = BUSY_WAIT;

        loop {
            let was_open = state.session.is_some();
            if !was_open {
                let session = opening::open(port, &self.target, &mut state.suite, deadline).await?;
                state.session = Some(session);
                state.heard_at = Instant::now();
            }
            // A restarted BMC has forgotten the session and drops its packets silently, so a command in an old session is given up early.
            let patience =
                if was_open { RetryLimits::short(deadline) } else { RetryLimits::until(deadline) };
            match self.converse(port, &mut state, request, patience).await? {
                Some(answer) if CompletionCode(answer.completion) == CompletionCode::BUSY => {
                    if Instant::now() + wait >= deadline {
                        let reason = "it says that its node is busy".to_owned();
                        return Err(BmcError::Busy { host: self.host(), reason });
                    }
                    sleep(wait).await;
                    wait = (wait * 2).min(LONGEST_BUSY_WAIT);
                }
                Some(answer) => return Ok(answer),
                None if was_open && Instant::now() < deadline => {
                    debug!(bmc = %self.target.address, "the BMC has forgotten our session");
                }
                None => return Err(unreachable(&self.target, "it did not answer a command")),
            }
        }
    }

    /// Returns the maintenance that the line needs now; `Nothing` while a command is in progress.
    pub(crate) fn upkeep(&self, keep_alive_every: Duration, close_after: Duration) -> Maintenance {
        let Ok(state) = self.state.try_lock() else { return Maintenance::Nothing };
        let idle = state.used_at.elapsed() >= close_after;
        match &state.session {
            None if idle => Maintenance::Forget,
            None => Maintenance::Nothing,
            Some(_) if idle => Maintenance::Close,
            Some(_) if state.heard_at.elapsed() >= keep_alive_every => Maintenance::KeepAlive,
            Some(_) => Maintenance::Nothing,
        }
    }

    /// Sends a command that keeps the session alive: a BMC forgets it after 60 s of silence (IPMI 2.0 §6.12.15).
    pub(crate) async fn keep_alive(&self, port: &Port) {
        let request = Request { netfn: APPLICATION, lun: 0, command: GET_DEVICE_ID, data: &[] };
        let mut state = self.state.lock().await;
        let patience = RetryLimits::short(Instant::now() + self.target.timeout);
        if let Ok(None) | Err(_) = self.converse(port, &mut state, &request, patience).await {
            debug!(bmc = %self.target.address, "the BMC does not answer a keep-alive");
        }
    }

    /// Closes the session, if there is one; the next command opens a new one.
    pub(crate) async fn close(&self, port: &Port) {
        let mut state = self.state.lock().await;
        let Some(managed) = state.session.as_ref().map(|session| session.managed) else { return };
        let data = managed.to_le_bytes();
        let request = Request { netfn: APPLICATION, lun: 0, command: CLOSE_SESSION, data: &data };
        let patience = RetryLimits::short(Instant::now() + self.target.timeout);
        if let Ok(None) | Err(_) = self.converse(port, &mut state, &request, patience).await {
            debug!(bmc = %self.target.address, "the BMC did not confirm the end of the session");
        }
        state.session = None;
    }

    /// Sends one command in the open session; drops the session if no answer comes.
    async fn converse(
        &self,
        port: &Port,
        state: &mut State,
        request: &Request<'_>,
        patience: RetryLimits,
    ) -> Result<Option<Answer>, BmcError> {
        let Some(session) = &mut state.session else { return Ok(None) };
        let mut route = port.route(self.target.address, session.console);
        let message = session.next_message();
        let mut question = InSession { session, request, message };
        let answer = ask(&mut route, &mut question, patience).await;

        match &answer {
            Ok(Some(_)) => state.heard_at = Instant::now(),
            Ok(None) | Err(_) => state.session = None,
        }
        answer.map_err(|source| BmcError::Unreachable { host: self.host(), source })
    }

    /// Returns the cipher suite of the last session.
    pub(crate) async fn known_suite(&self) -> Option<CipherSuite> {
        self.state.lock().await.suite
    }

    /// Refuses user names and passwords that are too long for IPMI.
    pub(crate) fn check_account(&self) -> Result<(), BmcError> {
        let long = |what: &str, limit: usize| {
            let what = format!("take a {what} of more than {limit} bytes, the limit of IPMI");
            Err(BmcError::Unsupported { what })
        };
        if self.target.username.len() > Target::LONGEST_USERNAME {
            return long("user name", Target::LONGEST_USERNAME);
        }
        if self.target.password.expose_secret().len() > Target::LONGEST_PASSWORD {
            return long("password", Target::LONGEST_PASSWORD);
        }
        Ok(())
    }

    fn host(&self) -> String {
        self.target.address.to_string()
    }
}
