//! Notices by mail.

use std::path::Path;

use jiff::{SignedDuration, Timestamp};
use notices::{MailConfig, NoticesConfig};
use serde_json::{Value, json};

use crate::mailbox::{Mailbox, PASSWORD};
use crate::receiver::Receiver;
use crate::{Service, hasty, notice, until};

/// Starts the mail server, or skips the test if aiosmtpd is not installed.
fn mailbox(test: &str, folder: &Path) -> Option<Mailbox> {
    if !peers::installed("aiosmtpd") {
        peers::skip(test, "aiosmtpd is not installed (Debian's package python3-aiosmtpd)");
        return None;
    }
    Some(Mailbox::start(folder, "nobody@example.org"))
}

fn config(folder: &Path, mailbox: &Mailbox, password: &str) -> NoticesConfig {
    let file = folder.join("password");
    std::fs::write(&file, format!("{password}\n")).unwrap();
    let mail = json!({
        "host": "localhost", "port": mailbox.port, "from": "bedplate@example.org", "username": "bedplate",
        "password_file": file, "ca_file": folder.join("certificate.pem"),
    });
    let mail: MailConfig = serde_json::from_value(mail).unwrap();
    NoticesConfig { mail: Some(mail), retry: hasty(), ..NoticesConfig::default() }
}

#[tokio::test]
async fn a_notice_is_mailed_by_starttls_with_a_password() {
    let folder = tempfile::tempdir().unwrap();
    let Some(mailbox) = mailbox("a_notice_is_mailed", folder.path()) else { return };
    let service = Service::start(&config(folder.path(), &mailbox, PASSWORD)).await;
    let reported = notice("blue\r\nBcc: eve@example.org");
    service.tell(&reported, Some("ann@example.org")).await;
    service.store.emptied().await;
    until(async || !mailbox.mails().is_empty()).await;
    let mail = mailbox.mails().remove(0);
    let header = |name: &str| mail[name].clone();
    assert_eq!(header("from"), "bedplate@example.org");
    assert_eq!(header("to"), json!(["ann@example.org"]));
    assert_eq!((header("tls"), header("user")), (Value::Bool(true), json!("bedplate")));
    let content = mail["content"].as_str().unwrap();
    let (headers, body) = content.split_once("\r\n\r\n").unwrap();
    assert!(!headers.lines().any(|line| line.starts_with("Bcc")), "{headers}");
    assert!(headers.contains(&format!("Message-ID: <{}@example.org>", reported.id)), "{headers}");
    assert!(headers.contains("Auto-Submitted: auto-generated"), "{headers}");
    assert!(body.contains(&format!("notice {}", reported.id)), "{body}");
    assert_eq!(service.lost(), [""; 0]);
}

#[tokio::test]
async fn mail_to_an_unknown_address_is_given_up_and_other_mail_is_sent() {
    let folder = tempfile::tempdir().unwrap();
    let Some(mailbox) = mailbox("who_does_not_exist", folder.path()) else { return };
    let service = Service::start(&config(folder.path(), &mailbox, PASSWORD)).await;
    service.tell(&notice("blue"), Some("nobody@example.org")).await;
    service.tell(&notice("green"), Some("ann@example.org")).await;
    service.store.emptied().await;
    until(async || mailbox.mails().len() == 1).await;
    // The reason contains neither the address nor the words of the mail server, because everybody with access to the cluster can read it.
    assert_eq!(service.lost(), ["blue: no mail was sent: the mail server refused it"]);
}

#[tokio::test]
async fn a_wrong_password_is_reported_without_the_password() {
    let folder = tempfile::tempdir().unwrap();
    let Some(mailbox) = mailbox("a_wrong_password", folder.path()) else { return };
    let wrong = format!("not {PASSWORD}");
    let service = Service::start(&config(folder.path(), &mailbox, &wrong)).await;
    service.tell(&notice("blue"), Some("ann@example.org")).await;
    until(async || !service.lost().is_empty()).await;
    assert!(!service.lost()[0].contains(PASSWORD), "{:?}", service.lost());
    assert!(mailbox.mails().is_empty());
}

#[tokio::test]
async fn a_slow_webhook_delays_no_mail() {
    let folder = tempfile::tempdir().unwrap();
    let Some(mailbox) = mailbox("a_webhook_that_is_slow", folder.path()) else { return };
    let (receiver, url) = Receiver::start().await;
    receiver.hold();
    let secret = folder.path().join("secret");
    std::fs::write(&secret, left::canary::WEBHOOK).unwrap();
    let webhook = json!({"url": url, "secret_file": secret, "allow_local": true});
    let config = NoticesConfig {
        webhook: Some(serde_json::from_value(webhook).unwrap()),
        ..config(folder.path(), &mailbox, PASSWORD)
    };
    let service = Service::start(&config).await;
    // More letters than the pump reads at a time.
    for _ in 0..100 {
        service.tell(&notice("blue"), None).await;
    }
    until(async || !receiver.posts().is_empty()).await;
    service.tell(&notice("green"), Some("ann@example.org")).await;
    until(async || mailbox.mails().len() == 1).await;
    // The first post is neither answered nor given up.
    assert_eq!(receiver.posts().len(), 1);
    let waiting =
        service.store.outbox().due(Timestamp::MAX, SignedDuration::ZERO, 200).await.unwrap();
    assert!(waiting.len() >= 101 && waiting.iter().all(|it| it.tries == 0), "{waiting:?}");
    receiver.go_on();
    service.store.emptied().await;
    assert_eq!((receiver.posts().len(), mailbox.mails().len()), (101, 1));
}

#[test]
fn a_password_is_not_sent_in_the_clear() {
    let mail = json!({
        "host": "h", "from": "b@example.org", "security": "none", "username": "b", "password_file": "/p",
    });
    let refused = serde_json::from_value::<MailConfig>(mail).unwrap_err().to_string();
    assert!(refused.contains("in the clear"), "{refused}");
}
