//! Sends notices by mail.

use std::time::Duration;

use lease::MailAddress;
use lettre::message::header::{ContentType, HeaderName, HeaderValue};
use lettre::message::{Mailbox, Message};
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Certificate, CertificateStore, Tls, TlsParameters};
use lettre::{Address, AsyncSmtpTransport, AsyncTransport, Tokio1Executor};
use secrecy::ExposeSecret;

use crate::Notice;
use crate::config::{MailConfig, Security, SetupError, secret};
use crate::trust;
use crate::unsent::SendError;

/// How long sending one mail may take.
const TIMEOUT: Duration = Duration::from_secs(20);

/// A connection to the mail server, and the sender address.
pub(crate) struct Mailer {
    transport: AsyncSmtpTransport<Tokio1Executor>,
    from: MailAddress,
}

impl Mailer {
    pub(crate) fn new(config: &MailConfig) -> Result<Mailer, SetupError> {
        let tls = |wrap: fn(TlsParameters) -> Tls| -> Result<Tls, SetupError> {
            let authorities = trust::authorities(config.ca_file.as_deref())?;
            let mut parameters = TlsParameters::builder(config.host.clone())
                .certificate_store(CertificateStore::Default);
            for authority in authorities {
                let certificate = Certificate::from_der(authority.to_vec())?;
                parameters = parameters.add_root_certificate(certificate);
            }
            Ok(wrap(parameters.build_rustls()?))
        };
        let tls = match config.security {
            Security::StartTls => tls(Tls::Required)?,
            Security::Tls => tls(Tls::Wrapper)?,
            Security::None => Tls::None,
        };
        let mut transport = AsyncSmtpTransport::<Tokio1Executor>::builder_dangerous(&config.host)
            .port(config.port)
            .tls(tls)
            .timeout(Some(TIMEOUT));
        if let Some((username, file)) = &config.login {
            let password = secret(file)?.expose_secret().to_owned();
            transport = transport.credentials(Credentials::new(username.clone(), password));
        }
        Ok(Mailer { transport: transport.build(), from: config.from.clone() })
    }

    pub(crate) async fn send(&self, notice: &Notice, to: &MailAddress) -> Result<(), SendError> {
        let message =
            message(notice, &self.from, to).map_err(|why| SendError::Refused(why.to_string()))?;
        let sent = tokio::time::timeout(TIMEOUT, self.transport.send(message)).await;
        match sent {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) if error.is_permanent() || error.is_client() => {
                Err(SendError::Refused(why(&error)))
            }
            Ok(Err(error)) => Err(SendError::Unreachable(why(&error))),
            Err(_) => {
                Err(SendError::Unreachable(format!("not sent within {} s", TIMEOUT.as_secs())))
            }
        }
    }
}

/// The error with its causes. No cause contains a password.
fn why(error: &lettre::transport::smtp::Error) -> String {
    let mut words = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(source) = cause {
        if !words.contains(&source.to_string()) {
            words = format!("{words}: {source}");
        }
        cause = source.source();
    }
    words
}

/// Builds the mail. The Message-ID contains the id of the notice, so that a receiver can recognise duplicates. `Auto-Submitted` (RFC 3834)
/// keeps automatic replies away.
fn message(
    notice: &Notice,
    from: &MailAddress,
    to: &MailAddress,
) -> Result<Message, lettre::error::Error> {
    let address = |of: &MailAddress| {
        of.as_str().parse::<Address>().map_err(|_| lettre::error::Error::MissingTo)
    };
    let automatic = HeaderName::new_from_ascii_str("Auto-Submitted");
    let text = format!("{}\n\n-- \nnotice {}\n", notice.text, notice.id);
    Message::builder()
        .from(Mailbox::new(Some("Bedplate".to_owned()), address(from)?))
        .to(Mailbox::new(None, address(to)?))
        .subject(notice.subject_line())
        .message_id(Some(format!("<{}@{}>", notice.id, from.domain())))
        .raw_header(HeaderValue::new(automatic, "auto-generated".to_owned()))
        .header(ContentType::TEXT_PLAIN)
        .body(text)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::Map;
    use uuid::Uuid;

    use super::*;
    use crate::NoticeSubject;

    #[test]
    fn a_line_break_in_a_name_starts_no_header() {
        let name = "blue\r\nBcc: eve@example.org\r\n\r\nhello".to_owned();
        let notice = Notice {
            id: Uuid::nil(),
            at: Timestamp::UNIX_EPOCH,
            event: "lease.ends".to_owned(),
            subject: format!("cluster {name} ends"),
            text: "It ends.".to_owned(),
            project_id: None,
            about: NoticeSubject { kind: "cluster".to_owned(), id: "1".to_owned(), name },
            details: Map::new(),
        };
        let (from, to) =
            ("bedplate@example.org".parse().unwrap(), "ann@example.org".parse().unwrap());
        let written = message(&notice, &from, &to).unwrap().formatted();
        let written = String::from_utf8(written).unwrap();
        let (headers, body) = written.split_once("\r\n\r\n").unwrap();
        assert!(!headers.lines().any(|line| line.starts_with("Bcc")), "{headers}");
        assert!(headers.contains("Subject: cluster blue"), "{headers}");
        assert!(
            headers.contains("<00000000-0000-0000-0000-000000000000@example.org>"),
            "{headers}"
        );
        assert!(body.starts_with("It ends."), "{body}");
    }
}
