//! Opens a serial port: a new session, and Activate Payload in it (IPMI 2.0 §24.1).

use std::time::Duration;

use bmc::BmcError;
use tokio::time::Instant;

use crate::client;
use crate::commands::payload::ActivateSerial;
use crate::commands::{Command, CompletionCode};
use crate::exchange::{RetryLimits, unreachable};
use crate::line::BmcLine;
use crate::opening;
use crate::port::Port;

use super::commands::Commands;
use super::session::PortSession;

/// How often the opening is retried if it is unknown whether this session has the port.
const ATTEMPTS: usize = 3;

/// Opens the serial port of the machine behind `line`.
pub(crate) async fn open<'p>(
    port: &'p Port,
    line: &BmcLine,
    keep_alive_every: Duration,
) -> Result<PortSession<'p>, BmcError> {
    let target = &line.target;
    let deadline = Instant::now() + target.timeout;
    let mut suite = line.known_suite().await;
    for _ in 0..ATTEMPTS {
        let session = opening::open(port, target, &mut suite, deadline).await?;
        let mut commands = Commands::new(port, target, session);
        // An earlier session may be about to release the port.
        drop(line.serial_ends.lock().await);

        let asked = commands.sent();
        let answer = commands.ask(&ActivateSerial, RetryLimits::until(deadline)).await;
        let reported = answer.and_then(|answer| {
            let none =
                || unreachable(target, "it did not answer the request to open the serial port");
            client::read(&ActivateSerial, &answer.ok_or_else(none)?)
        });
        match reported {
            Ok(Ok(reported)) => {
                return Ok(PortSession::new(port, commands, &reported, keep_alive_every));
            }
            // This session may have the port already: the first answer may have been lost, and the repeated request is refused. Closing the
            // session frees the port, and the next attempt opens it.
            Ok(Err(ALREADY_ACTIVE)) if commands.sent() - asked > 1 => commands.close().await,
            Ok(Err(code)) => {
                commands.close().await;
                return Err(refusal(&target.address.to_string(), code));
            }
            Err(error) => {
                commands.close().await;
                return Err(error);
            }
        }
    }
    Err(in_use(&target.address.to_string()))
}

/// Completion codes of Activate Payload (IPMI 2.0 table 24-2).
const ALREADY_ACTIVE: CompletionCode = CompletionCode(0x80);
const DISABLED: CompletionCode = CompletionCode(0x81);
const LIMIT_REACHED: CompletionCode = CompletionCode(0x82);
const NOT_ENCRYPTED: CompletionCode = CompletionCode(0x83);

fn refusal(host: &str, code: CompletionCode) -> BmcError {
    let unsupported = |what: &str| BmcError::Unsupported { what: what.to_owned() };
    match code {
        ALREADY_ACTIVE | LIMIT_REACHED => in_use(host),
        DISABLED => unsupported("pass on the serial port: serial over LAN is disabled there"),
        NOT_ENCRYPTED => unsupported("pass on the serial port encrypted"),
        CompletionCode::INSUFFICIENT_PRIVILEGE => BmcError::Unauthorized { host: host.to_owned() },
        code if code.is_unknown_command() || code == CompletionCode::INVALID_FIELD => {
            unsupported("pass on the serial port over IPMI")
        }
        code => code.refusal(ActivateSerial::NAME),
    }
}

fn in_use(host: &str) -> BmcError {
    BmcError::InUse { host: host.to_owned(), what: "serial port" }
}
