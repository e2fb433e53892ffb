//! The serial port of a machine by a WebSocket of its BMC (DSP0268 `ComputerSystem`, `SerialConsole.WebSocket`).
//!
//! Each message is a piece of output or of input, without a framing of its own.

use std::io;
use std::time::Duration;

use async_trait::async_trait;
use bmc::{BmcError, SerialConsole, SerialSession};
use bytes::Bytes;
use futures::{Sink, SinkExt, Stream, StreamExt};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::{interval, timeout};
use url::Url;
use websocket::{Error, Message, Socket};

use crate::document::Document;
use crate::quirks;
use crate::service::Service;

/// How many messages of output wait for the reader.
const OUTPUT: usize = 256;
/// How many pieces of typed input wait for the BMC.
const INPUT: usize = 16;
/// The interval of pings, which show whether the BMC is still there.
const PING_EVERY: Duration = Duration::from_secs(30);
/// A BMC that sends nothing, not even a pong, for this long has lost the session.
const SILENCE: Duration = Duration::from_secs(90);
/// How long the BMC may take nothing, and how long the closing may take.
const SEND_TIMEOUT: Duration = Duration::from_secs(30);
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

#[async_trait]
impl SerialConsole for Service {
    async fn open(&self) -> Result<SerialSession, BmcError> {
        let url = self.console_url().await?;
        let socket = self.open_socket(&url).await?;
        let (output, heard) = mpsc::channel(OUTPUT);
        let (input, typed) = mpsc::channel(INPUT);
        tokio::spawn(pass_on(socket, output, typed, self.origin.host()));
        Ok(SerialSession { output: heard, input })
    }
}

impl Service {
    /// Finds the URL of the console.
    async fn console_url(&self) -> Result<Url, BmcError> {
        let system = self.system().await?.body;
        let console = system.at("SerialConsole").at("WebSocket");
        let uri = console.word("ConsoleURI");
        if !uri.is_empty() {
            check_usable(console)?;
            return self.origin.follow(&as_http(uri));
        }
        for manager in self.managers(&system).await? {
            if let Some(manager) = self.find(&manager).await?
                && quirks::openbmc_tells_no_console(&manager.body)
            {
                return self.origin.follow(quirks::OPENBMC_CONSOLE);
            }
        }
        Err(BmcError::Unsupported { what: "offer its serial console as a WebSocket".to_owned() })
    }
}

/// Refuses a console that is switched off, or that takes no input.
fn check_usable(console: &Value) -> Result<(), BmcError> {
    let unsupported = |what: &str| Err(BmcError::Unsupported { what: what.to_owned() });
    if console.truth("ServiceEnabled") == Some(false) {
        return unsupported("offer its serial console: ServiceEnabled of the WebSocket is false");
    }
    if console.truth("Interactive") == Some(false) {
        return unsupported("take input on its serial console: Interactive is false");
    }
    Ok(())
}

/// Returns the URL of the opening handshake (RFC 6455 §3): `ws` begins as HTTP.
fn as_http(uri: &str) -> String {
    match uri.strip_prefix("ws") {
        Some(rest) if rest.starts_with("://") || rest.starts_with("s://") => format!("http{rest}"),
        Some(_) | None => uri.to_owned(),
    }
}

/// Passes on data in both directions until the caller drops the session or the BMC ends it.
async fn pass_on(
    socket: Socket,
    output: mpsc::Sender<Result<Bytes, BmcError>>,
    typed: mpsc::Receiver<Bytes>,
    host: String,
) {
    // A reserved place, so that even a slow reader receives the error that ended the session.
    let last_word = output.clone().try_reserve_owned();
    let (mut sink, stream) = socket.split();
    let end = tokio::select! {
        () = output.closed() => Ok(()),
        end = show(stream, &output) => end,
        end = type_in(typed, &mut sink) => end,
    };
    if let (Err(source), Ok(last_word)) = (end, last_word) {
        last_word.send(Err(BmcError::Unreachable { host, source }));
    }
    drop(output);
    let _ = timeout(CLOSE_TIMEOUT, sink.send(Message::Close(None))).await;
}

/// Passes on the output of the machine. Reads the next message only if there is space for it.
async fn show(
    mut stream: impl Stream<Item = Result<Message, Error>> + Unpin,
    output: &mpsc::Sender<Result<Bytes, BmcError>>,
) -> io::Result<()> {
    loop {
        let Ok(place) = output.reserve().await else { return Ok(()) };
        let message = timeout(SILENCE, stream.next()).await;
        match message.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))? {
            Some(Ok(Message::Binary(said))) => place.send(Ok(said)),
            Some(Ok(Message::Text(said))) => place.send(Ok(said.into())),
            Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => {}
            Some(Ok(Message::Close(_))) | None => return Ok(()),
            Some(Err(error)) => return Err(io::Error::other(error)),
        }
    }
}

/// Passes on typed input, and sends pings.
async fn type_in(
    mut typed: mpsc::Receiver<Bytes>,
    sink: &mut (impl Sink<Message, Error = Error> + Unpin),
) -> io::Result<()> {
    let mut ping = interval(PING_EVERY);
    let mut is_typing = true;
    loop {
        let message = tokio::select! {
            some = typed.recv(), if is_typing => match some {
                Some(keys) => Message::Binary(keys),
                None => {
                    is_typing = false;
                    continue;
                }
            },
            _ = ping.tick() => Message::Ping(Bytes::new()),
        };
        match timeout(SEND_TIMEOUT, sink.send(message)).await {
            Ok(sent) => sent.map_err(io::Error::other)?,
            Err(_) => return Err(io::ErrorKind::TimedOut.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_websocket_begins_as_http() {
        for (uri, want) in [
            ("/console0", "/console0"),
            ("ws://bmc/console0", "http://bmc/console0"),
            ("wss://bmc:8443/console0", "https://bmc:8443/console0"),
            ("https://bmc/console0", "https://bmc/console0"),
            ("wsx", "wsx"),
        ] {
            assert_eq!(as_http(uri), want);
        }
    }

    #[test]
    fn a_console_that_is_off_or_takes_no_input_is_not_used() {
        for usable in [json!({}), json!({"ServiceEnabled": true, "Interactive": true})] {
            assert!(check_usable(&usable).is_ok(), "{usable}");
        }
        for not in [json!({"ServiceEnabled": false}), json!({"Interactive": false})] {
            let refused = check_usable(&not).unwrap_err().to_string();
            assert!(refused.contains("is false"), "{refused}");
        }
    }
}
