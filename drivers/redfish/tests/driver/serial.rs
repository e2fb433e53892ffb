//! Tests of the serial console over a real WebSocket, which axum serves.

use std::sync::Arc;

use axum::Router;
use axum::extract::ws::{Message, WebSocketUpgrade};
use axum::extract::{OriginalUri, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use bmc::{BmcError, SerialSession};
use hardware::AllowedHosts;
use redfish::{Auth, Connector, Target, Trust};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::fixture::{PASSWORD, USER};

const SYSTEM: &str = "/redfish/v1/Systems/1";

/// A BMC whose `/console0` says `login: ` and echoes what is typed, until that is `bye`.
struct Bmc {
    tree: Value,
}

/// The documents of a BMC, with these properties of system and manager.
fn tree(system: &Value, manager: &Value) -> Value {
    let mut tree = json!({
        "/redfish/v1": {"Systems": {"@odata.id": "/redfish/v1/Systems"}},
        "/redfish/v1/Systems": {"Members": [{"@odata.id": SYSTEM}]},
        "/redfish/v1/Systems/1": {"Id": "1", "Links": {"ManagedBy": [{"@odata.id": "/redfish/v1/Managers/bmc"}]}},
        "/redfish/v1/Managers/bmc": {"Id": "bmc"},
    });
    for (path, more) in [(SYSTEM, system), ("/redfish/v1/Managers/bmc", manager)] {
        for (name, value) in more.as_object().unwrap() {
            tree[path][name] = value.clone();
        }
    }
    tree
}

/// Serves a BMC; returns its driver.
async fn serve(tree: Value) -> bmc::Bmc {
    let console = |headers: HeaderMap, upgrade: WebSocketUpgrade| async move {
        // `root:calvin's secret`, as RFC 7617 encodes it.
        if headers.get("authorization").is_none_or(|it| it != "Basic cm9vdDpjYWx2aW4ncyBzZWNyZXQ=")
        {
            return StatusCode::UNAUTHORIZED.into_response();
        }
        upgrade.on_upgrade(|mut socket| async move {
            let _ = socket.send(Message::Binary("login: ".into())).await;
            while let Some(Ok(message)) = socket.recv().await {
                match message {
                    Message::Binary(typed) if typed == "bye" => {
                        let _ = socket.send(Message::Close(None)).await;
                        return;
                    }
                    Message::Binary(typed) => {
                        let said = String::from_utf8(typed.to_vec()).unwrap();
                        let _ = socket.send(Message::Text(said.into())).await;
                    }
                    Message::Text(_) | Message::Ping(_) | Message::Pong(_) | Message::Close(_) => {}
                }
            }
        })
    };
    let document = |State(bmc): State<Arc<Bmc>>, OriginalUri(uri): OriginalUri| async move {
        let found: Option<Response> = bmc
            .tree
            .get(uri.path().trim_end_matches('/'))
            .map(|it| ([("content-type", "application/json")], it.to_string()).into_response());
        found.unwrap_or_else(|| StatusCode::NOT_FOUND.into_response())
    };
    let busy = || async { StatusCode::SERVICE_UNAVAILABLE };
    let router = Router::new()
        .route("/console0", get(console))
        .route("/busy", get(busy))
        .route("/none", get(|| async { "no WebSocket" }))
        .fallback(document)
        .with_state(Arc::new(Bmc { tree }));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    Connector::new(b"", AllowedHosts::anywhere()).unwrap().bmc(Target {
        address,
        system: None,
        username: USER.to_owned(),
        password: PASSWORD.into(),
        auth: Auth::Basic,
        trust: Trust::Unverified,
        timeout: std::time::Duration::from_secs(5),
    })
}

async fn open(tree: Value) -> Result<SerialSession, BmcError> {
    serve(tree).await.serial.unwrap().open().await
}

fn console(uri: &str) -> Value {
    json!({"SerialConsole": {"WebSocket": {"ServiceEnabled": true, "ConsoleURI": uri}}})
}

/// Reads output until it contains `words`.
async fn reads(session: &mut SerialSession, words: &str) {
    let mut read = String::new();
    while !read.contains(words) {
        let piece = session.output.recv().await.expect("the session goes on").unwrap();
        read += std::str::from_utf8(&piece).unwrap();
    }
}

#[tokio::test]
async fn a_console_is_found_in_the_document_of_the_system_and_on_openbmc() {
    let told = tree(&console("/console0"), &json!({}));
    let openbmc = tree(&json!({}), &json!({"Model": "OpenBmc"}));
    for tree in [told, openbmc] {
        let mut session = open(tree).await.unwrap();
        reads(&mut session, "login: ").await;
        session.input.send("root\r".into()).await.unwrap();
        reads(&mut session, "root\r").await;
        // The BMC ends the session.
        session.input.send("bye".into()).await.unwrap();
        assert!(session.output.recv().await.is_none());
        session.input.closed().await;
    }
}

#[tokio::test]
async fn a_console_that_is_not_there_is_refused() {
    let refused = async |system: Value, manager: Value| {
        open(tree(&system, &manager)).await.unwrap_err().to_string()
    };
    let none = refused(json!({}), json!({"Model": "iDRAC"})).await;
    assert_eq!(none, "this BMC cannot offer its serial console as a WebSocket");
    let off = json!({"SerialConsole": {"WebSocket": {"ServiceEnabled": false, "ConsoleURI": "/console0"}}});
    assert!(refused(off, json!({})).await.contains("ServiceEnabled of the WebSocket is false"));
    // A link to another host would get the password.
    let away = refused(console("wss://192.0.2.1/console0"), json!({})).await;
    assert!(away.contains("leads to another host"), "{away}");
    let busy = refused(console("/busy"), json!({})).await;
    assert!(busy.contains("is busy"), "{busy}");
    let plain = refused(console("/none"), json!({})).await;
    assert!(plain.contains("it opens no WebSocket"), "{plain}");
}

#[tokio::test]
async fn dropping_the_session_ends_it_and_a_slow_reader_loses_nothing() {
    let mut session = open(tree(&console("/console0"), &json!({}))).await.unwrap();
    // More messages than wait for a reader.
    let typing = async {
        for _ in 0..600 {
            session.input.send("x".into()).await.unwrap();
        }
    };
    typing.await;
    let mut read = 0;
    while read < "login: ".len() + 600 {
        read += session.output.recv().await.unwrap().unwrap().len();
    }
    let SerialSession { output, input } = session;
    drop(output);
    input.closed().await;
}
