#![doc = include_str!("../README.md")]

use reqwest::header::{CONNECTION, HeaderName, HeaderValue, UPGRADE};
use reqwest::{RequestBuilder, Response, StatusCode, Upgraded};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

pub use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
pub use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Message};
pub use tokio_tungstenite::tungstenite::{Bytes, Error};

/// The client's end of a WebSocket: a stream and a sink of messages.
pub type Socket = WebSocketStream<Upgraded>;

/// The largest message that is read, in bytes.
const LARGEST_MESSAGE: usize = 1 << 20;

const KEY: HeaderName = HeaderName::from_static("sec-websocket-key");
const ACCEPT: HeaderName = HeaderName::from_static("sec-websocket-accept");
const VERSION: HeaderName = HeaderName::from_static("sec-websocket-version");

/// The `Sec-WebSocket-Accept` value that the server's answer to a request must carry.
#[derive(Debug)]
pub struct ExpectedAccept {
    accept: String,
}

/// The reasons why an answer did not open a WebSocket.
#[derive(Debug, thiserror::Error)]
pub enum UpgradeError {
    /// The server answered with a status other than 101.
    #[error("cannot open a WebSocket: the server answered {0}")]
    Refused(StatusCode),
    #[error(
        "cannot open a WebSocket: the {ACCEPT} header of the answer does not match the request"
    )]
    WrongAccept,
    #[error("the connection ended during the upgrade to a WebSocket")]
    ConnectionLost(#[source] reqwest::Error),
}

/// Adds the headers of an opening handshake to a `GET` request (RFC 6455 §4.1).
pub fn upgrade_request(request: RequestBuilder) -> (RequestBuilder, ExpectedAccept) {
    let key = generate_key();
    let accept = derive_accept_key(key.as_bytes());
    let request = request
        .header(CONNECTION, HeaderValue::from_static("Upgrade"))
        .header(UPGRADE, HeaderValue::from_static("websocket"))
        .header(VERSION, HeaderValue::from_static("13"))
        .header(KEY, key);
    (request, ExpectedAccept { accept })
}

/// Whether an answer opens a WebSocket; any other answer is a refusal.
pub fn is_open(answer: &Response) -> bool {
    answer.status() == StatusCode::SWITCHING_PROTOCOLS
}

impl ExpectedAccept {
    /// Turns the answer to the request into a WebSocket.
    ///
    /// # Errors
    ///
    /// The answer has another status than 101, answers another request, or its connection ended.
    pub async fn open(self, answer: Response) -> Result<Socket, UpgradeError> {
        if !is_open(&answer) {
            return Err(UpgradeError::Refused(answer.status()));
        }
        if answer.headers().get(ACCEPT).is_none_or(|it| it.as_bytes() != self.accept.as_bytes()) {
            return Err(UpgradeError::WrongAccept);
        }
        let upgraded = answer.upgrade().await.map_err(UpgradeError::ConnectionLost)?;
        let config = WebSocketConfig::default()
            .max_message_size(Some(LARGEST_MESSAGE))
            .max_frame_size(Some(LARGEST_MESSAGE));
        Ok(WebSocketStream::from_raw_socket(upgraded, Role::Client, Some(config)).await)
    }
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::extract::WebSocketUpgrade;
    use axum::routing::get;
    use futures::{SinkExt, StreamExt};
    use reqwest::Client;
    use tokio::net::TcpListener;

    use super::*;

    /// Starts a server by axum: `/again` echoes each message, `/forged` answers 101 with a wrong `Sec-WebSocket-Accept`.
    async fn server() -> String {
        let again = |upgrade: WebSocketUpgrade| async {
            upgrade.on_upgrade(|mut socket| async move {
                while let Some(Ok(message)) = socket.recv().await {
                    let _ = socket.send(message).await;
                }
            })
        };
        let forged = || async {
            let headers = [
                ("connection", "upgrade"),
                ("upgrade", "websocket"),
                ("sec-websocket-accept", "x"),
            ];
            (axum::http::StatusCode::SWITCHING_PROTOCOLS, headers)
        };
        let router = Router::new().route("/again", get(again)).route("/forged", get(forged));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async { axum::serve(listener, router).await.unwrap() });
        format!("http://{address}")
    }

    async fn opened(url: String) -> Result<Socket, UpgradeError> {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder().no_proxy().build().unwrap();
        let (request, asked) = upgrade_request(client.get(url));
        asked.open(request.send().await.unwrap()).await
    }

    #[tokio::test]
    async fn an_opened_socket_carries_messages_both_ways() {
        let mut socket = opened(format!("{}/again", server().await)).await.unwrap();
        let message = Message::Binary(Bytes::from_static(b"\x00login: \xff"));
        socket.send(message.clone()).await.unwrap();
        assert_eq!(socket.next().await.unwrap().unwrap(), message);
    }

    #[tokio::test]
    async fn a_refusal_and_a_forged_answer_open_no_socket() {
        let server = server().await;
        let refused = opened(format!("{server}/nowhere")).await.unwrap_err();
        assert!(matches!(refused, UpgradeError::Refused(StatusCode::NOT_FOUND)), "{refused}");
        let refused = opened(format!("{server}/forged")).await.unwrap_err();
        assert!(matches!(refused, UpgradeError::WrongAccept), "{refused}");
    }
}
