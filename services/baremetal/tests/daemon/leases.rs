//! The end of a node's lease, announced by a baremetald that is killed after each stage.
#![expect(clippy::unwrap_used, reason = "a failed setup fails the test")]

use std::sync::{Arc, Mutex};

use api_client::baremetald::NodeLease;
use api_client::{Client, Credentials, Service};
use axum::Router;
use axum::extract::State;
use axum::routing::post;
use contract::{DaemonProcess, Output, until};
use jiff::Timestamp;
use reqwest::StatusCode;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// The events of a lease's end, in their order.
const RUNGS: [&str; 4] = ["lease.ends", "lease.ended", "lease.deletion_near", "lease.deleted"];

/// The notices that a receiver got: the event's name, the notice's id and the time of arrival.
#[derive(Clone, Default)]
struct ReceivedNotices(Arc<Mutex<Vec<(String, String, Timestamp)>>>);

impl ReceivedNotices {
    fn note(&self, event: &str, id: &str) {
        self.0.lock().unwrap().push((event.to_owned(), id.to_owned(), Timestamp::now()));
    }

    /// Returns each notice once, with the time of its first arrival. A receiver recognizes a repeated notice by its id.
    fn first(&self) -> Vec<(String, String, Timestamp)> {
        let mut seen: Vec<(String, String, Timestamp)> = Vec::new();
        for reported in self.0.lock().unwrap().iter() {
            if seen.iter().all(|(_, id, _)| *id != reported.1) {
                seen.push(reported.clone());
            }
        }
        seen
    }

    fn ids(&self) -> Vec<String> {
        self.first().into_iter().map(|(_, id, _)| id).collect()
    }

    fn events(&self) -> Vec<String> {
        self.first().into_iter().map(|(event, ..)| event).collect()
    }
}

/// Starts a webhook that accepts everything; returns its URL.
async fn webhook(reported: ReceivedNotices) -> String {
    async fn take(State(reported): State<ReceivedNotices>, body: String) -> StatusCode {
        let notice: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(
            (&notice["about"]["type"], &notice["project_id"]),
            (&json!("node"), &json!("lab"))
        );
        reported.note(notice["event"].as_str().unwrap(), notice["id"].as_str().unwrap());
        StatusCode::NO_CONTENT
    }
    let router = Router::new().route("/hook", post(take)).with_state(reported);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://127.0.0.1:{}/hook", listener.local_addr().unwrap().port());
    tokio::spawn(async { axum::serve(listener, router).await });
    url
}

/// Starts a mail server (RFC 5321) that accepts everything; returns its port.
async fn mail_server(reported: ReceivedNotices) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((connection, _)) = listener.accept().await {
            tokio::spawn(take_mails(connection, reported.clone()));
        }
    });
    port
}

async fn take_mails(connection: TcpStream, reported: ReceivedNotices) -> std::io::Result<()> {
    let (from, mut to) = connection.into_split();
    let mut lines = BufReader::new(from).lines();
    let mut mail: Option<Vec<String>> = None;
    to.write_all(b"220 here\r\n").await?;
    while let Some(line) = lines.next_line().await? {
        let answer = match (&mut mail, line.as_str()) {
            (Some(text), ".") => {
                let is_anns = text.first().is_some_and(|to| to == "RCPT TO:<ann@example.org>");
                let id = text.iter().find_map(|line| line.strip_prefix("notice "));
                reported.note(if is_anns { "mail" } else { "a stranger's mail" }, id.unwrap());
                mail = None;
                "250 taken\r\n"
            }
            (Some(_), "DATA") => "354 go on\r\n",
            (Some(text), line) => {
                text.push(line.to_owned());
                continue;
            }
            (None, to) if to.starts_with("RCPT TO:") => {
                mail = Some(vec![to.to_owned()]);
                "250 fine\r\n"
            }
            (None, "QUIT") => "221 farewell\r\n",
            (None, _) => "250 fine\r\n",
        };
        to.write_all(answer.as_bytes()).await?;
    }
    Ok(())
}

fn client(daemon: &DaemonProcess) -> Client {
    let url = daemon.url.parse().unwrap();
    Client::new(contract::client(), Service::Baremetald, url, Credentials::Anonymous)
}

async fn lease(daemon: &DaemonProcess) -> NodeLease {
    client(daemon).get("/bedplate/v1/nodes/lent/lease").await.unwrap()
}

#[tokio::test]
async fn a_lessee_is_notified_of_each_stage_before_the_node_is_returned() {
    let folder = tempfile::tempdir().unwrap();
    let (reported, mailed) = (ReceivedNotices::default(), ReceivedNotices::default());
    let (hook, mail) = (webhook(reported.clone()).await, mail_server(mailed.clone()).await);
    let (secret, config) = (folder.path().join("secret"), folder.path().join("baremetald.toml"));
    let state = folder.path().join("state");
    std::fs::write(&secret, format!("{}\n", left::canary::WEBHOOK)).unwrap();
    let text = format!(
        "state_dir = {state:?}\n\
         [api]\nlisten = \"127.0.0.1:0\"\n\
         [leases.nodes]\nshortest = \"1s\"\n\
         [leases.schedule]\nwarn_before = [\"4s\"]\nnotice = \"2s\"\nundo_window = \"3s\"\n\
         [notices.webhook]\nurl = {hook:?}\nsecret_file = {secret:?}\nallow_local = true\n\
         [notices.mail]\nhost = \"127.0.0.1\"\nport = {mail}\nsecurity = \"none\"\nfrom = \"bedplate@example.org\"\n\
         [notices.retry]\nfirst = \"50ms\"\nlook_every = \"50ms\"\n"
    );
    std::fs::write(&config, text).unwrap();
    let program = env!("CARGO_BIN_EXE_baremetald");
    let mut daemon = DaemonProcess::start(program, config, &state, Output::Kept).await;
    let post = async |path: &str, body: Value| -> Value {
        client(&daemon).post(path, &body).await.unwrap()
    };
    post("/v1/nodes", json!({"driver": "fake-hardware", "name": "lent"})).await;
    let loan = json!({"lessee": "lab", "for": "6s", "notify": "ann@example.org"});
    post("/bedplate/v1/nodes/lent/lease", loan).await;
    let ends_at = lease(&daemon).await.lease.unwrap().until;

    for many in 1..=RUNGS.len() {
        until(async || (reported.ids().len() >= many && mailed.ids().len() >= many).then_some(()))
            .await;
        assert_eq!(reported.events(), RUNGS[..many]);
        if many == 1 {
            let came = [&reported, &mailed].map(|it| it.first()[0].2);
            assert!(came.iter().all(|at| *at < ends_at), "{came:?} {ends_at}");
            assert_eq!(lease(&daemon).await.lease.unwrap().ended_at, None);
        }
        daemon.kill_and_start().await;
    }
    until(async || lease(&daemon).await.lessee.is_none().then_some(())).await;
    assert_eq!(reported.events(), RUNGS);
    // The same notices were sent by mail, to the right address.
    assert_eq!(mailed.ids(), reported.ids());
    assert_eq!(mailed.events(), ["mail"; 4]);
    left::keep(&state, "leases");
}
