//! Notices to a webhook.

use std::path::Path;
use std::process::Command;

use notices::{NoticesConfig, OutboxSender, SetupError, WebhookConfig};
use serde_json::{Value, json};

use crate::receiver::{Post, Receiver};
use crate::{Service, hasty, notice, until};

const SECRET: &str = left::canary::WEBHOOK;

fn config(folder: &Path, url: &str, allow_local: bool) -> NoticesConfig {
    let file = folder.join("secret");
    std::fs::write(&file, format!("{SECRET}\n")).unwrap();
    let webhook = json!({"url": url, "secret_file": file, "allow_local": allow_local});
    let webhook: WebhookConfig = serde_json::from_value(webhook).unwrap();
    NoticesConfig { webhook: Some(webhook), retry: hasty(), ..NoticesConfig::default() }
}

/// The HMAC of the text, computed by OpenSSL.
fn openssl(text: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("text");
    std::fs::write(&file, text).unwrap();
    let made = Command::new("openssl")
        .args(["dgst", "-sha256", "-hmac", SECRET])
        .arg(&file)
        .output()
        .unwrap();
    let said = String::from_utf8(made.stdout).unwrap();
    said.trim().rsplit(' ').next().unwrap().to_owned()
}

fn header(post: &Post, name: &str) -> String {
    post.headers.get(name).unwrap().to_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_notice_is_posted_once_and_signed() {
    let folder = tempfile::tempdir().unwrap();
    let (receiver, url) = Receiver::start().await;
    let service = Service::start(&config(folder.path(), &url, true)).await;
    let reported = notice("blue");
    service.tell(&reported, None).await;
    service.store.emptied().await;
    let posts = receiver.posts();
    assert_eq!(posts.len(), 1);
    let body: Value = serde_json::from_str(&posts[0].body).unwrap();
    assert_eq!(
        body,
        json!({
            "id": reported.id, "at": "1970-01-01T00:00:00Z", "event": "lease.ends", "subject": "cluster blue ends",
            "text": "The lease of blue ends tomorrow.", "project_id": "p",
            "about": {"type": "cluster", "id": "7", "name": "blue"},
        })
    );
    assert_eq!(header(&posts[0], "bedplate-notice"), reported.id.to_string());
    assert_eq!(header(&posts[0], "content-type"), "application/json");
    let signature = header(&posts[0], "bedplate-signature");
    let (time, mac) = signature.split_once(",v1=").unwrap();
    let seconds = time.strip_prefix("t=").unwrap();
    assert_eq!(mac, openssl(&format!("{seconds}.{}", posts[0].body)));
    assert_eq!(service.lost(), [""; 0]);
}

#[tokio::test]
async fn a_notice_that_fails_is_sent_again_with_its_id() {
    let folder = tempfile::tempdir().unwrap();
    let (receiver, url) = Receiver::start().await;
    // A redirect counts as a failure and is not followed.
    receiver.answers(&[503, 302]);
    let service = Service::start(&config(folder.path(), &url, true)).await;
    service.tell(&notice("blue"), None).await;
    service.store.emptied().await;
    let posts = receiver.posts();
    assert_eq!(posts.len(), 3);
    assert!(posts.iter().all(|post| post.body == posts[0].body));
    assert_eq!(service.lost(), [""; 0]);
}

#[tokio::test]
async fn a_refused_notice_is_given_up_and_blocks_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let (receiver, url) = Receiver::start().await;
    receiver.refuses("blue");
    let service = Service::start(&config(folder.path(), &url, true)).await;
    for name in ["blue", "green", "red"] {
        service.tell(&notice(name), None).await;
    }
    service.store.emptied().await;
    let got = |name: &str| receiver.posts().iter().filter(|post| post.body.contains(name)).count();
    assert_eq!((got("blue"), got("green"), got("red")), (3, 1, 1));
    assert_eq!(
        service.lost(),
        ["blue: the notice did not reach the webhook: the webhook answered 400 Bad Request"]
    );
}

#[tokio::test]
async fn an_unreachable_webhook_is_given_up() {
    let folder = tempfile::tempdir().unwrap();
    let (_, url) = Receiver::start().await;
    // The port was released, so nobody listens on it.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let port = url.rsplit(':').next().unwrap().split('/').next().unwrap();
    let url = url.replace(port, &free.to_string());
    let service = Service::start(&config(folder.path(), &url, true)).await;
    service.tell(&notice("blue"), None).await;
    until(async || !service.lost().is_empty()).await;
    assert!(service.lost()[0].contains("refused"), "{:?}", service.lost());
}

#[tokio::test]
async fn a_local_webhook_is_refused_unless_allowed() {
    let folder = tempfile::tempdir().unwrap();
    for url in ["https://127.0.0.1/hook", "https://[::1]/hook", "https://169.254.169.254/x"] {
        let refused =
            OutboxSender::new(&config(folder.path(), url, false), jiff::Timestamp::now).err();
        assert!(matches!(refused, Some(SetupError::Local { .. })), "{url}: {refused:?}");
    }
    // A host name is resolved, and therefore refused, only when a notice is posted.
    let service = Service::start(&config(folder.path(), "https://localhost/hook", false)).await;
    service.tell(&notice("blue"), None).await;
    until(async || !service.lost().is_empty()).await;
    assert!(service.lost()[0].contains("loopback or link-local addresses"), "{:?}", service.lost());
}

#[test]
fn a_webhook_without_tls_is_refused() {
    let read = |url: &str| {
        let webhook = json!({"url": url, "secret_file": "/s"});
        serde_json::from_value::<WebhookConfig>(webhook)
            .map(drop)
            .map_err(|error| error.to_string())
    };
    assert!(read("http://hooks.example.org/").unwrap_err().contains("https://"));
    assert!(read("https://u:p@hooks.example.org/").unwrap_err().contains("secret_file"));
    assert_eq!(read("https://hooks.example.org/"), Ok(()));
}
