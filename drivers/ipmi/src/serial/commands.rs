//! Commands in a session that also carries the serial port.

use std::io;

use bmc::BmcError;
use tokio::time::Instant;
use tracing::debug;

use crate::commands::Command;
use crate::exchange::{RetryLimits, ask};
use crate::in_session::InSession;
use crate::line::{APPLICATION, CLOSE_SESSION};
use crate::port::{Port, Route};
use crate::session::{Answer, Session};
use crate::target::Target;
use crate::wire::message::Request;

/// The session of a serial port, with its route, for sending commands.
pub(crate) struct Commands<'p> {
    pub(super) target: Target,
    pub(super) session: Session,
    pub(super) route: Route<'p>,
}

impl<'p> Commands<'p> {
    pub(crate) fn new(port: &'p Port, target: &Target, session: Session) -> Self {
        let route = port.route(target.address, session.console);
        Commands { target: target.clone(), session, route }
    }

    /// The number of packets that were sent in the session.
    pub(crate) fn sent(&self) -> u32 {
        self.session.sent()
    }

    /// Sends `command` and returns its answer; `None` if no answer came in time.
    pub(crate) async fn ask<C: Command>(
        &mut self,
        command: &C,
        patience: RetryLimits,
    ) -> Result<Option<Answer>, BmcError> {
        let ((netfn, code), data) = (C::CODE, command.data());
        let request = Request { netfn, lun: command.lun(), command: code, data: &data };
        self.converse(&request, patience).await.map_err(|source| self.unreachable(source))
    }

    pub(crate) async fn close(&mut self) {
        let data = self.session.managed.to_le_bytes();
        let request = Request { netfn: APPLICATION, lun: 0, command: CLOSE_SESSION, data: &data };
        let patience = RetryLimits::short(Instant::now() + self.target.timeout);
        if let Ok(None) | Err(_) = self.converse(&request, patience).await {
            debug!(bmc = %self.target.address, "the BMC did not confirm the end of the session");
        }
    }

    async fn converse(
        &mut self,
        request: &Request<'_>,
        patience: RetryLimits,
    ) -> io::Result<Option<Answer>> {
        let message = self.session.next_message();
        let mut question = InSession { session: &mut self.session, request, message };
        ask(&mut self.route, &mut question, patience).await
    }

    pub(super) fn unreachable(&self, source: io::Error) -> BmcError {
        BmcError::Unreachable { host: self.target.address.to_string(), source }
    }
}
