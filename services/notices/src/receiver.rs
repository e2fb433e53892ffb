//! Who is told.

use database::outbox::Letter;
use lease::MailAddress;

use crate::Notice;

/// Who is told: each gets a letter of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Receiver {
    /// The administrator's webhook.
    Webhook,
    /// Somebody who gave an address.
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

/// Which ways of telling there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Addressees {
    /// There is a webhook.
    pub(crate) webhook: bool,
    /// Mail can be sent.
    pub(crate) mail: bool,
}

impl Addressees {
    /// The letters that tell `notice` to the webhook, and to `contact` where mail can be sent. To be written with what they tell of.
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
