//! The receivers of notices.

use database::outbox::Letter;
use lease::MailAddress;

use crate::Notice;

/// A receiver of notices. Each receiver gets its own letter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Receiver {
    /// The administrator's webhook.
    Webhook,
    /// The mail address of a contact.
    Mail(MailAddress),
}

impl Receiver {
    fn write(&self) -> String {
        match self {
            Receiver::Webhook => "webhook".to_owned(),
            Receiver::Mail(address) => format!("mail:{address}"),
        }
    }

    pub(crate) fn read(raw: &str) -> Option<Receiver> {
        match raw.split_once(':') {
            Some(("mail", address)) => address.parse().ok().map(Receiver::Mail),
            None if raw == "webhook" => Some(Receiver::Webhook),
            Some(_) | None => None,
        }
    }
}

/// The kinds of receivers that are configured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiverKinds {
    pub(crate) webhook: bool,
    pub(crate) mail: bool,
}

impl ReceiverKinds {
    /// Makes the letters that carry `notice`: one to the webhook, and one to `contact` if mail is configured. The caller stores the letters
    /// in the transaction of the event.
    pub fn letters(self, notice: &Notice, contact: Option<&MailAddress>) -> Vec<Letter> {
        let webhook = self.webhook.then_some(Receiver::Webhook);
        let mail = contact.filter(|_| self.mail).cloned().map(Receiver::Mail);
        let body = serde_json::json!(notice).to_string();
        let receivers = webhook.into_iter().chain(mail);
        let letter = |receiver: Receiver| Letter {
            notice: notice.id,
            receiver: receiver.write(),
            body: body.clone(),
            project: notice.project_id.clone(),
        };
        receivers.map(letter).collect()
    }
}
