//! Consoles of servers.

use serde::Deserialize;
use serde_json::json;
use url::Url;

use super::{MICROVERSION, SERVICE};
use crate::error::Result;
use crate::session::Session;

/// The kind of a console.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConsoleKind {
    /// The screen, shown in a browser.
    NoVnc,
    /// The serial port, over a WebSocket.
    Serial,
}

/// Returns a URL that opens a server's console for some minutes. Everyone with the URL can use the console: treat it as a secret.
pub async fn url(session: &Session, id: &str, kind: ConsoleKind) -> Result<Url> {
    #[derive(Deserialize)]
    struct Console {
        url: Url,
    }
    let (protocol, kind) = match kind {
        ConsoleKind::NoVnc => ("vnc", "novnc"),
        ConsoleKind::Serial => ("serial", "serial"),
    };
    let body = json!({"remote_console": {"protocol": protocol, "type": kind}});
    let path = ["servers", id, "remote-consoles"];
    let call = session.post(SERVICE, &path, body).microversion(MICROVERSION);
    Ok(call.under::<Console>("remote_console").await?.url)
}

/// Returns the last `lines` of a server's console output. The server's software wrote the text: treat it as untrusted.
pub async fn output(session: &Session, id: &str, lines: u32) -> Result<String> {
    let body = json!({"os-getConsoleOutput": {"length": lines}});
    let call = session.post(SERVICE, &["servers", id, "action"], body);
    call.microversion(MICROVERSION).repeatable().under("output").await
}
