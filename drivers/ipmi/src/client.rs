//! The client of one BMC: commands in, answers out.

use std::sync::Arc;

use bmc::{Bmc, BmcError};

use crate::commands::device::{DeviceId, GetDeviceId};
use crate::commands::{Command, CompletionCode};
use crate::connector::Shared;
use crate::line::Line;
use crate::session::Answer;
use crate::wire::Reader;
use crate::wire::message::Request;

/// A client of one BMC. Cheap to clone; clones share the session.
///
/// The session is opened by the first command and again whenever the BMC has lost it.
#[derive(Clone)]
pub struct Client {
    shared: Arc<Shared>,
    line: Arc<Line>,
}

impl Client {
    pub(crate) fn new(shared: Arc<Shared>, line: Arc<Line>) -> Self {
        Client { shared, line }
    }

    /// What the BMC can do, as the capabilities that all BMC drivers have.
    pub fn into_bmc(self) -> Bmc {
        let client = Arc::new(self);
        Bmc {
            power: client.clone(),
            boot: client.clone(),
            media: None,
            inspection: Some(client.clone()),
            sensors: Some(client.clone()),
            serial: Some(client),
        }
    }

    /// Sends any command and gives its answer without the completion code.
    pub async fn raw(&self, netfn: u8, command: u8, data: &[u8]) -> Result<Vec<u8>, BmcError> {
        let name = || format!("raw {netfn:#04x} {command:#04x}");
        // The lowest bit of a network function says "answer"; the length is one byte of the packet.
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

    /// Who the BMC is.
    pub async fn device_id(&self) -> Result<DeviceId, BmcError> {
        self.run(&GetDeviceId).await
    }

    /// Ends the session. The next command opens another.
    pub async fn close(&self) {
        self.line.close(self.shared.port()).await;
    }

    /// The answer to `command`, or the error its completion code is.
    pub(crate) async fn run<C: Command>(&self, command: &C) -> Result<C::Answer, BmcError> {
        self.call(command).await?.map_err(|code| self.refusal(code, C::NAME))
    }

    /// The answer to `command`, or its completion code, for those who know what to do about it.
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

    pub(crate) fn line(&self) -> &Arc<Line> {
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

/// What `command` reads in its answer, or the completion code.
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

/// An answer to `request` that does not read as it must.
pub(crate) fn malformed(request: &str, reason: &str) -> BmcError {
    BmcError::Malformed { request: request.to_owned(), reason: reason.to_owned() }
}
