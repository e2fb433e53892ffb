//! Notifications to webhooks.

use std::path::Path;

use cloud_event::{EventLevel, Notification, SigningSecrets};
use database::scratch::Scratch;
use database::webhook_events::{EventOutbox, NotificationWriter, SCHEMA, Subscriptions};
use database::{Database, WriteKind};
use jiff::{SignedDuration, Timestamp};
use metrics::{Metrics, WebhookMetrics};
use notices::{EventPace, EventSender, EventsConfig, SetupError};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::receiver::{Post, Receiver};
use crate::until;

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// A service with webhooks, and a database of its own.
struct Site {
    outbox: EventOutbox,
    database: Database,
    subscriptions: Subscriptions,
    metrics: Metrics,
    /// The sender. It ends as if its process was killed.
    sender: JoinHandle<()>,
    _scratch: Scratch,
}

fn config(folder: &Path, hooks: &[(&str, &str, &[&str])], give_up_after: i64) -> EventsConfig {
    let file = folder.join("secret");
    std::fs::write(&file, format!("{SECRET}\n")).unwrap();
    let hooks = hooks.iter().map(|(name, url, types)| {
        json!({"name": name, "url": url, "types": types, "secret_file": file, "allow_local": true})
    });
    let section = json!({"webhooks": hooks.collect::<Vec<_>>()});
    let config: EventsConfig = serde_json::from_value(section).unwrap();
    let pace = EventPace {
        retry_first: SignedDuration::from_millis(20),
        give_up_after: SignedDuration::from_secs(give_up_after),
        look_every: SignedDuration::from_millis(10),
    };
    EventsConfig { pace, ..config }
}

impl Site {
    async fn start(config: &EventsConfig) -> Site {
        left::keep_logs();
        let scratch = Scratch::sqlite();
        let database = Database::open(&scratch.url, &[SCHEMA]).await.unwrap();
        let outbox = EventOutbox::new(database.clone());
        let mut metrics = Metrics::new("test", "0");
        let sender = EventSender::new(config, metrics.webhooks(), Timestamp::now).unwrap();
        let stop = CancellationToken::new();
        let sender = tokio::spawn(sender.run(outbox.clone(), || true, stop));
        let subscriptions = config.subscriptions("/test/r1".to_owned());
        Site { outbox, database, subscriptions, metrics, sender, _scratch: scratch }
    }

    /// Writes notifications about an object in one transaction.
    async fn tell(&self, object: &str, numbers: &[u32]) {
        let writer = NotificationWriter::of_task(&self.subscriptions, Timestamp::now());
        let notifications = numbers.iter().map(|number| Notification {
            kind: "baremetal.node.update.end".to_owned(),
            level: EventLevel::Info,
            object: object.to_owned(),
            data: json!({"number": number}),
        });
        let notifications: Vec<_> = notifications.collect();
        let write = self.database.write(WriteKind::AnyStatementCanFail, move |c| {
            Box::pin(async move { writer.write(c, &notifications).await })
        });
        write.await.unwrap();
    }

    /// Waits until no event waits.
    async fn emptied(&self) {
        until(async || {
            let backlogs = self.outbox.backlogs().await.unwrap();
            backlogs.iter().all(|backlog| backlog.waiting == 0)
        })
        .await;
    }

    /// Waits until the metrics have this line.
    async fn counted(&self, line: &str) {
        until(async || self.metrics.text().unwrap().lines().any(|it| it == line)).await;
    }

    /// Ends the sender as if its process was killed.
    async fn kill_sender(&mut self) {
        self.sender.abort();
        let _ = (&mut self.sender).await;
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.sender.abort();
    }
}

fn body(post: &Post) -> Value {
    serde_json::from_str(&post.body).unwrap()
}

/// The numbers of the events about an object, in the order in which they came.
fn numbers(receiver: &Receiver, object: &str) -> Vec<u64> {
    let bodies = receiver.posts().iter().map(body).collect::<Vec<_>>();
    let about = bodies.iter().filter(|body| body["subject"] == object);
    about.map(|body| body["data"]["number"].as_u64().unwrap()).collect()
}

#[tokio::test]
async fn an_event_is_sent_once_signed_and_in_structured_mode() {
    let folder = tempfile::tempdir().unwrap();
    let (receiver, url) = Receiver::start().await;
    let site = Site::start(&config(folder.path(), &[("cmdb", &url, &[])], 60)).await;
    site.tell("n", &[1]).await;
    site.emptied().await;
    let [post]: [Post; 1] = receiver.posts().try_into().unwrap();
    let header = |name: &str| post.headers.get(name).unwrap().to_str().unwrap().to_owned();
    assert_eq!(header("content-type"), "application/cloudevents+json; charset=utf-8");
    let event = body(&post);
    assert_eq!((&event["specversion"], &event["source"]), (&json!("1.0"), &json!("/test/r1")));
    assert_eq!(event["id"], header("webhook-id"));
    assert_eq!(event["sequence"].as_str().unwrap().len(), 20);
    let at = Timestamp::from_second(header("webhook-timestamp").parse().unwrap()).unwrap();
    let secrets = SigningSecrets::parse(SECRET).unwrap();
    assert_eq!(header("webhook-signature"), secrets.sign(&header("webhook-id"), at, &post.body));
    site.counted(r#"bedplate_webhook_events_total{webhook="cmdb",outcome="delivered"} 1"#).await;
}

#[tokio::test]
async fn a_failed_event_is_sent_again_before_the_next_of_its_object() {
    let folder = tempfile::tempdir().unwrap();
    let (receiver, url) = Receiver::start().await;
    receiver.answers(&[500, 400, 302]);
    let site = Site::start(&config(folder.path(), &[("cmdb", &url, &[])], 60)).await;
    site.tell("n", &[1]).await;
    until(async || receiver.posts().len() >= 2).await;
    site.tell("n", &[2, 3]).await;
    site.emptied().await;
    assert_eq!(numbers(&receiver, "n"), [1, 1, 1, 1, 2, 3]);
    let ids: Vec<_> = receiver.posts()[..4].iter().map(|post| body(post)["id"].clone()).collect();
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
}

#[tokio::test]
async fn a_refused_event_delays_no_other_object_and_dies() {
    let folder = tempfile::tempdir().unwrap();
    let (receiver, url) = Receiver::start().await;
    receiver.refuses("\"bad\"");
    let site = Site::start(&config(folder.path(), &[("cmdb", &url, &[])], 1)).await;
    site.tell("bad", &[1]).await;
    site.tell("good", &[1, 2]).await;
    until(async || numbers(&receiver, "good").len() == 2).await;
    assert_eq!(site.outbox.backlogs().await.unwrap()[0].dead, 0, "the event is too young");
    site.emptied().await;
    assert_eq!(numbers(&receiver, "good"), [1, 2]);
    let dead = site.outbox.dead("cmdb", 9).await.unwrap();
    assert_eq!((dead.len(), dead[0].object.as_str()), (1, "bad"));
    assert_eq!(dead[0].problem, "the webhook answered 400 Bad Request");
    site.counted(r#"bedplate_webhook_events_total{webhook="cmdb",outcome="dead"} 1"#).await;
}

#[tokio::test]
async fn each_webhook_gets_its_types_and_delays_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let (receiver, url) = Receiver::start().await;
    let away = "http://127.0.0.1:1/hook";
    let hooks: [(&str, &str, &[&str]); 3] = [
        ("away", away, &[]),
        ("nodes", &url, &["baremetal.node.*"]),
        ("ports", &url, &["baremetal.port.*"]),
    ];
    let site = Site::start(&config(folder.path(), &hooks, 60)).await;
    site.tell("n", &[1, 2]).await;
    until(async || numbers(&receiver, "n").len() == 2).await;
    let backlogs = site.outbox.backlogs().await.unwrap();
    let names: Vec<&str> = backlogs.iter().map(|it| it.webhook.as_str()).collect();
    assert!(names.contains(&"away") && !names.contains(&"ports"), "{names:?}");
}

#[tokio::test]
async fn events_survive_a_sender_that_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let (receiver, url) = Receiver::start().await;
    receiver.hold();
    let config = config(folder.path(), &[("cmdb", &url, &[])], 60);
    let mut site = Site::start(&config).await;
    site.tell("n", &[1, 2]).await;
    until(async || receiver.posts().len() == 1).await;
    site.kill_sender().await;
    receiver.go_on();
    let (stop, metrics) = (CancellationToken::new(), WebhookMetrics::default());
    let sender = EventSender::new(&config, metrics, Timestamp::now).unwrap();
    tokio::spawn(sender.run(site.outbox.clone(), || true, stop.clone()));
    site.emptied().await;
    stop.cancel();
    assert_eq!(numbers(&receiver, "n"), [1, 1, 2], "the first one was not answered");
}

#[tokio::test]
async fn a_process_that_may_not_send_sends_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (receiver, url) = Receiver::start().await;
    let config = config(folder.path(), &[("cmdb", &url, &[])], 60);
    let mut site = Site::start(&config).await;
    site.kill_sender().await;
    let sender = EventSender::new(&config, WebhookMetrics::default(), Timestamp::now).unwrap();
    let asked = std::sync::Arc::new(std::sync::atomic::AtomicU32::new(0));
    let asking = asked.clone();
    let may_send = move || {
        asking.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        false
    };
    let stop = CancellationToken::new();
    tokio::spawn(sender.run(site.outbox.clone(), may_send, stop.clone()));
    until(async || asked.load(std::sync::atomic::Ordering::Relaxed) > 0).await;
    site.tell("n", &[1]).await;
    let before = asked.load(std::sync::atomic::Ordering::Relaxed);
    until(async || asked.load(std::sync::atomic::Ordering::Relaxed) > before + 3).await;
    stop.cancel();
    assert_eq!(receiver.posts().len(), 0);
}

#[tokio::test]
async fn a_secret_that_is_none_and_a_local_address_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let hooks = [("cmdb", "https://127.0.0.1/hook", &[][..])];
    let mut config = config(folder.path(), &hooks, 60);
    config.webhooks[0].target.allow_local = false;
    let made = |config: &EventsConfig| {
        EventSender::new(config, WebhookMetrics::default(), Timestamp::now).map(drop)
    };
    assert!(matches!(made(&config), Err(SetupError::Local { .. })));
    config.webhooks[0].target.allow_local = true;
    made(&config).unwrap();
    std::fs::write(folder.path().join("secret"), "password\n").unwrap();
    assert!(matches!(made(&config), Err(SetupError::Unusable { .. })));
}
