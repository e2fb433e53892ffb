//! One command in an open session.

use tracing::debug;

use crate::exchange::Question;
use crate::session::{Answer, Session};
use crate::wire::message::Request;

/// A command in a session.
pub(crate) struct InSession<'a> {
    pub(crate) session: &'a mut Session,
    pub(crate) request: &'a Request<'a>,
    pub(crate) message: u8,
}

impl Question for InSession<'_> {
    type Answer = Answer;

    fn datagram(&mut self) -> Vec<u8> {
        self.session.seal(self.request, self.message, rand::random())
    }

    fn accept(&mut self, datagram: &[u8]) -> Option<Answer> {
        match self.session.open(datagram, self.request, self.message) {
            Ok(answer) => answer,
            Err(reason) => {
                debug!("dropped a packet: {reason}");
                None
            }
        }
    }
}
