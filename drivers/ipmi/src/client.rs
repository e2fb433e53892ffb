//! The client of one BMC: sends commands and returns their answers.

use std::sync::Arc;

use bmc::{Bmc, BmcError};

use crate::commands::device::{DeviceId, GetDeviceId};
use crate::commands::{Command, CompletionCode};
use crate::line::BmcLine;
use crate::lines::Shared;
use crate::session::Answer;
use crate::wire::Reader;
use crate::wire::message::Request;

/// A client of one BMC. Cheap to clone; clones share the session.
///
/// The first command opens the session, and a later command opens it again if the BMC has lost it.
#[derive(Clone)]
pub struct Client {
    shared: Arc<Shared>,
    line: Arc<BmcLine>,
}

impl Client {
    pub(crate) fn new(shared: Arc<Shared>, line: Arc<BmcLine>) -> Self {
        Client { shared, line }
    }

    /// Returns the capabilities of the BMC, in the form that all BMC drivers share.
    pub fn into_bmc(self) -> Bmc {
        let client = Arc::new(self);
        Bmc {
            power: client.clone(),
            interrupt: Some(client.clone()),
            boot: client.clone(),
            boot_settings: None,
            clock: None,
            bios: None,
            firmware: None,
            raid: None,
            media: None,
            inspection: Some(client.clone()),
            sensors: Some(client.clone()),
            indicators: None,
            events: None,
            serial: Some(client.clone()),
            account: Some(client),
        }
    }

    /// Sends any command and returns its answer without the completion code.
    pub async fn raw(&self, netfn: u8, command: u8, data: &[u8]) -> Result<Vec<u8>, BmcError> {
        let name = || format!("raw {netfn:#04x} {command:#04x}");
        // The lowest bit of a network function marks an answer, and the length field of a packet has one byte.
        if netfn > 0x3e || netfn & 1 == 1 || data.len() > 200 {
            let what =
                format!("be sent {} with {} bytes: no such request exists", name(), data.len());
            return Err(BmcError::Unsupported { what });
        }
        let answer = self.ask(&Request { netfn, lun: 0, command, data }).await?;
        match CompletionCode(answer.completion) {
            CompletionCode::OK => Ok(answer.data),
            code => Err(self.refusal(code, &name())),
        }
    }

    /// Reads the BMC's identification.
    pub async fn device_id(&self) -> Result<DeviceId, BmcError> {
        self.run(&GetDeviceId).await
    }

    /// Ends the session. The next command opens a new one.
    pub async fn close(&self) {
        self.line.close(self.shared.port()).await;
    }

    /// Runs `command`; a completion code other than success is an error.
    pub(crate) async fn run<C: Command>(&self, command: &C) -> Result<C::Answer, BmcError> {
        self.call(command).await?.map_err(|code| self.refusal(code, C::NAME))
    }

    /// Runs `command`; returns a completion code other than success to callers that can handle it.
    pub(crate) async fn call<C: Command>(
        &self,
        command: &C,
    ) -> Result<Result<C::Answer, CompletionCode>, BmcError> {
        let ((netfn, code), data) = (C::CODE, command.data());
        let request = Request { netfn, lun: command.lun(), command: code, data: &data };
        read(command, &self.ask(&request).await?)
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    pub(crate) fn line(&self) -> &Arc<BmcLine> {
        &self.line
    }

    pub(crate) fn refusal(&self, code: CompletionCode, request: &str) -> BmcError {
        if code == CompletionCode::INSUFFICIENT_PRIVILEGE {
            return BmcError::Unauthorized { host: self.line.target.address.to_string() };
        }
        if code.is_unknown_command() {
            return BmcError::Unsupported { what: format!("do \"{request}\"") };
        }
        code.refusal(request)
    }

    async fn ask(&self, request: &Request<'_>) -> Result<Answer, BmcError> {
        self.line.ask(self.shared.port(), request).await
    }
}

/// Decodes the answer to `command`, or returns its completion code.
pub(crate) fn read<C: Command>(
    command: &C,
    answer: &Answer,
) -> Result<Result<C::Answer, CompletionCode>, BmcError> {
    match CompletionCode(answer.completion) {
        CompletionCode::OK => {
            let answer = command.read(&mut Reader::new(&answer.data));
            answer.map(Ok).map_err(|reason| malformed(C::NAME, reason.0))
        }
        code => Ok(Err(code)),
    }
}

/// Makes the error for an answer to `request` that breaks the protocol.
pub(crate) fn malformed(request: &str, reason: &str) -> BmcError {
    BmcError::Malformed { request: request.to_owned(), reason: reason.to_owned() }
}
