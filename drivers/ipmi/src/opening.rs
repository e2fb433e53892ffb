//! Opens a session over the network: presence, cipher suite, key exchange, privilege.

use bmc::BmcError;
use tokio::time::Instant;
use tracing::debug;

use crate::commands::CompletionCode;
use crate::establish::{Handshake, HandshakeError, Step, speaks_plus};
use crate::exchange::{Question, RetryLimits, ask, unreachable};
use crate::in_session::InSession;
use crate::port::{Port, Route};
use crate::session::Session;
use crate::target::{CipherSuite, Target};
use crate::wire::handshake::status;
use crate::wire::message::{Request, Response};
use crate::wire::packet;

const APPLICATION: u8 = 0x06;
const GET_CHANNEL_AUTHENTICATION_CAPABILITIES: u8 = 0x38;
const SET_SESSION_PRIVILEGE_LEVEL: u8 = 0x3b;
/// Refers to this channel, and requests the RMCP+ capabilities (IPMI 2.0 table 22-15).
const THIS_CHANNEL_PLUS: u8 = 0x8e;
/// How often a handshake is restarted after the BMC lost track of it.
const ATTEMPTS: usize = 3;

/// Opens a session. `known` is the cipher suite of the last session, and is set to that of the new one.
pub(crate) async fn open(
    port: &Port,
    target: &Target,
    known: &mut Option<CipherSuite>,
    deadline: Instant,
) -> Result<Session, BmcError> {
    // Asked before every handshake, as the specification requires (§13.14). The request costs a packet and has two benefits: it tells a
    // silent host from a BMC that stops answering later, and it makes virtualbmc, which identifies a session by our address and port alone,
    // forget the previous session.
    if !is_present(port, target, deadline).await? {
        return Err(BmcError::Unsupported { what: "speak IPMI 2.0 over the network".to_owned() });
    }

    let candidates = candidates(target.cipher_suite, *known);
    let (last, better) = candidates.split_last().unwrap_or((&CipherSuite::Seventeen, &[]));
    for suite in better {
        match attempt(port, target, *suite, deadline, SilenceMeaning::MeansNo).await? {
            Some(session) => {
                *known = Some(*suite);
                return Ok(session);
            }
            None => debug!(bmc = %target.address, ?suite, "the BMC does not take the cipher suite"),
        }
    }
    let session = attempt(port, target, *last, deadline, SilenceMeaning::MeansSilence).await?;
    *known = session.is_some().then_some(*last);
    let refused = || BmcError::Unsupported {
        what: match target.cipher_suite {
            Some(CipherSuite::Three) => "talk with cipher suite 3".to_owned(),
            Some(CipherSuite::Seventeen) => "talk with cipher suite 17".to_owned(),
            None => "talk with cipher suite 17 or 3".to_owned(),
        },
    };
    session.ok_or_else(refused)
}

/// Returns the suites to try, best first; the suite of the last session comes first.
fn candidates(wanted: Option<CipherSuite>, known: Option<CipherSuite>) -> Vec<CipherSuite> {
    match (wanted, known) {
        (Some(suite), _) => vec![suite],
        (None, Some(CipherSuite::Three)) => vec![CipherSuite::Three],
        (None, Some(CipherSuite::Seventeen) | None) => {
            vec![CipherSuite::Seventeen, CipherSuite::Three]
        }
    }
}

/// The meaning of a missing answer to a request to open a session.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SilenceMeaning {
    /// The BMC may not know the cipher suite.
    MeansNo,
    MeansSilence,
}

/// Opens a session with this suite; `None` if the BMC does not support it.
async fn attempt(
    port: &Port,
    target: &Target,
    suite: CipherSuite,
    deadline: Instant,
    silence: SilenceMeaning,
) -> Result<Option<Session>, BmcError> {
    for _ in 0..ATTEMPTS {
        match exchange_keys(port, target, suite, deadline, silence).await? {
            Outcome::Open(mut session) => {
                set_privilege(port, target, &mut session, deadline).await?;
                return Ok(Some(*session));
            }
            Outcome::SuiteRefused => return Ok(None),
            Outcome::LostTrack(reason) => {
                debug!(bmc = %target.address, "opening the session again: {reason}");
            }
        }
    }
    Err(unreachable(target, "it does not finish opening a session"))
}

enum Outcome {
    Open(Box<Session>),
    SuiteRefused,
    /// A packet was lost or duplicated, and only a new handshake can repair that.
    LostTrack(&'static str),
}

async fn exchange_keys(
    port: &Port,
    target: &Target,
    suite: CipherSuite,
    deadline: Instant,
    silence: SilenceMeaning,
) -> Result<Outcome, BmcError> {
    let console = rand::random::<u32>().max(1);
    let mut route = port.route(target.address, console);
    let mut handshake = Handshake::new(target, suite, console, rand::random());

    loop {
        let is_doubtful = silence == SilenceMeaning::MeansNo && handshake.is_opening();
        let patience = RetryLimits::short(if is_doubtful { halfway(deadline) } else { deadline });
        match ask(&mut route, &mut handshake, patience).await {
            Ok(Some(Ok(Step::Established(session)))) => return Ok(Outcome::Open(session)),
            Ok(Some(Ok(Step::Next | Step::Ignored))) => {}
            Ok(Some(Err(error))) => {
                farewell(&route, &handshake).await;
                return failed(target, error);
            }
            Ok(None) if is_doubtful => return Ok(Outcome::SuiteRefused),
            Ok(None) if Instant::now() >= deadline => {
                return Err(unreachable(target, handshake.awaiting()));
            }
            Ok(None) => return Ok(Outcome::LostTrack(handshake.awaiting())),
            Err(source) => {
                return Err(BmcError::Unreachable { host: target.address.to_string(), source });
            }
        }
    }
}

/// Half of the remaining time, so that there is time to try another suite.
fn halfway(deadline: Instant) -> Instant {
    let now = Instant::now();
    now + deadline.saturating_duration_since(now) / 2
}

/// Frees the BMC's session slot now instead of at its timeout. The BMC sends no answer.
async fn farewell(route: &Route<'_>, handshake: &Handshake<'_>) {
    if let Some(datagram) = handshake.abort_message()
        && let Err(error) = route.send(&datagram).await
    {
        debug!("cannot tell the BMC that we give up: {error}");
    }
}

fn failed(target: &Target, error: HandshakeError) -> Result<Outcome, BmcError> {
    let host = target.address.to_string();
    match error {
        HandshakeError::SuiteRefused => Ok(Outcome::SuiteRefused),
        HandshakeError::WrongPassword => Err(BmcError::Unauthorized { host }),
        HandshakeError::OtherKey => Err(BmcError::Refused {
            request: "a session".to_owned(),
            answer: error.to_string(),
            transient: false,
        }),
        HandshakeError::Malformed { step, reason } => {
            Err(BmcError::Malformed { request: step.to_owned(), reason: reason.to_string() })
        }
        HandshakeError::Refused { step, status } => match status {
            status::NO_RESOURCES | status::NO_RESOURCES_AT_ROLE => {
                Err(BmcError::Busy { host, reason: error.to_string() })
            }
            status::INVALID_ROLE
            | status::UNAUTHORIZED_ROLE
            | status::UNAUTHORIZED_NAME
            | status::INVALID_NAME_LENGTH => Err(BmcError::Unauthorized { host }),
            // The BMC drew new random numbers after a duplicated RAKP message, or it dropped the session.
            status::INVALID_SESSION | status::INACTIVE_SESSION | status::INVALID_CHECK_VALUE => {
                Ok(Outcome::LostTrack(status::describe(status)))
            }
            _ => {
                let answer = format!("status {status:#04x}, {error}");
                Err(BmcError::Refused { request: step.to_owned(), answer, transient: false })
            }
        },
    }
}

impl Question for Handshake<'_> {
    type Answer = Result<Step, HandshakeError>;

    fn datagram(&mut self) -> Vec<u8> {
        Handshake::datagram(self)
    }

    fn accept(&mut self, datagram: &[u8]) -> Option<Self::Answer> {
        match self.receive(datagram) {
            Ok(Step::Ignored) => None,
            step => Some(step),
        }
    }
}

/// Whether the host supports IPMI 2.0.
async fn is_present(port: &Port, target: &Target, deadline: Instant) -> Result<bool, BmcError> {
    let mut route = port.route(target.address, 0);
    let mut question = Presence { level: target.privilege.level() };
    match ask(&mut route, &mut question, RetryLimits::until(deadline)).await {
        Ok(Some(speaks_plus)) => Ok(speaks_plus),
        Ok(None) => Err(unreachable(target, "no answer over IPMI")),
        Err(source) => Err(BmcError::Unreachable { host: target.address.to_string(), source }),
    }
}

/// Get Channel Authentication Capabilities, outside of any session.
struct Presence {
    level: u8,
}

impl Presence {
    fn with_request<T>(&self, then: impl FnOnce(&Request<'_>) -> T) -> T {
        let data = [THIS_CHANNEL_PLUS, self.level];
        let command = GET_CHANNEL_AUTHENTICATION_CAPABILITIES;
        then(&Request { netfn: APPLICATION, lun: 0, command, data: &data })
    }
}

impl Question for Presence {
    type Answer = bool;

    fn datagram(&mut self) -> Vec<u8> {
        self.with_request(|request| packet::sessionless(&request.encode(0)))
    }

    fn accept(&mut self, datagram: &[u8]) -> Option<bool> {
        let response = Response::read(packet::read_sessionless(datagram).ok()?).ok()?;
        if !self.with_request(|request| request.is_answered_by(&response, 0)) {
            return None;
        }
        // A BMC that refuses this command may still be able to open a session.
        Some(response.completion != 0 || speaks_plus(response.data).unwrap_or(true))
    }
}

/// Raises the privilege of the session from User, the initial level of every session (IPMI 2.0 §22.18).
async fn set_privilege(
    port: &Port,
    target: &Target,
    session: &mut Session,
    deadline: Instant,
) -> Result<(), BmcError> {
    let data = [target.privilege.level()];
    let command = SET_SESSION_PRIVILEGE_LEVEL;
    let request = Request { netfn: APPLICATION, lun: 0, command, data: &data };
    let mut route = port.route(target.address, session.console);
    let message = session.next_message();
    let mut question = InSession { session, request: &request, message };
    let answer = ask(&mut route, &mut question, RetryLimits::until(deadline)).await;
    let host = target.address.to_string();
    let answer = answer.map_err(|source| BmcError::Unreachable { host: host.clone(), source })?;
    let answer = answer.ok_or_else(|| unreachable(target, "it did not raise our privilege"))?;
    match CompletionCode(answer.completion) {
        CompletionCode::OK => Ok(()),
        // §22.18: 0x81 is above the account's or the channel's limit, 0x82 above the session's.
        CompletionCode(0x80..=0x82) => Err(BmcError::Unauthorized { host }),
        code => Err(code.refusal("Set Session Privilege Level")),
    }
}
