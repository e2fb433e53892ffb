//! The serial port as a WebSocket (RFC 6455), at the URI that the document of the system names (DSP0268, `SerialConsole.WebSocket`).

use std::sync::Arc;

use bytes::Bytes;
use futures::{SinkExt, StreamExt};
use http::header::{SEC_WEBSOCKET_KEY, UPGRADE};
use http::{Request, StatusCode};
use hyper::body::Incoming;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::Role;
use tracing::debug;

use crate::redfish::answer::Answer;
use crate::redfish::face::RedfishFace;
use crate::redfish::problem::{Message as Refusal, Problem};
use crate::serial::SerialPort;

/// The most characters in one message.
const LONGEST: usize = 4096;

/// Answers a request for the console; `None` if the request is for something else.
pub(super) fn answer(face: &Arc<RedfishFace>, request: &mut Request<Incoming>) -> Option<Answer> {
    if face.console_uri()? != request.uri().path() {
        return None;
    }
    Some(open(face, request).unwrap_or_else(Answer::from))
}

fn open(face: &Arc<RedfishFace>, request: &mut Request<Incoming>) -> Result<Answer, Problem> {
    let headers = request.headers();
    face.authenticate(headers)?;
    let is_websocket = headers.get(UPGRADE).is_some_and(|it| it.as_bytes() == b"websocket");
    let key = headers.get(SEC_WEBSOCKET_KEY).filter(|_| is_websocket);
    let key = key.ok_or_else(|| Problem::of(Refusal::NOT_A_WEBSOCKET))?;
    let accept = derive_accept_key(key.as_bytes());
    if !face.take_console() {
        return Err(Problem::of(Refusal::CONSOLE_IN_USE));
    }
    let (face, upgrade) = (face.clone(), hyper::upgrade::on(request));
    tokio::spawn(async move {
        serve(face.machine.serial(), upgrade).await;
        face.give_console_back();
    });
    Ok(Answer::empty(StatusCode::SWITCHING_PROTOCOLS)
        .with("connection", "Upgrade".to_owned())
        .with("upgrade", "websocket".to_owned())
        .with("sec-websocket-accept", accept))
}

/// Sends what the machine says from now on, and types what the client sends, until the client leaves.
async fn serve(port: &SerialPort, upgrade: OnUpgrade) {
    let upgraded = match upgrade.await {
        Ok(upgraded) => TokioIo::new(upgraded),
        Err(error) => return debug!(%error, "a connection did not become a WebSocket"),
    };
    let socket = WebSocketStream::from_raw_socket(upgraded, Role::Server, None).await;
    let (mut sink, mut stream) = socket.split();
    let mut end = port.end();
    let mut at = *end.borrow();
    loop {
        tokio::select! {
            changed = end.changed() => {
                if changed.is_err() {
                    return;
                }
                while at < *end.borrow_and_update() {
                    let (from, said) = port.read(at, LONGEST);
                    at = from + said.len() as u64;
                    if sink.send(Message::Binary(Bytes::from(said))).await.is_err() {
                        return;
                    }
                }
            }
            message = stream.next() => match message {
                // Characters that do not fit into the buffer of the port are lost, as on a real one.
                Some(Ok(Message::Binary(keys))) => _ = port.type_in(&keys),
                Some(Ok(Message::Text(keys))) => _ = port.type_in(keys.as_bytes()),
                Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => {}
                Some(Ok(Message::Close(_)) | Err(_)) | None => return,
            },
        }
    }
}
