//! What a server shows.

use serde::Deserialize;
use serde_json::json;
use url::Url;

use super::{MICROVERSION, SERVICE};
use crate::error::CloudError;
use crate::session::Session;

/// How a console is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConsoleKind {
    /// Its screen, in a browser.
    NoVnc,
    /// Its serial line, by a WebSocket.
    Serial,
}

/// An address that shows a server's console to whoever has it, for some minutes. Treat it as a secret.
pub async fn url(session: &Session, id: &str, kind: ConsoleKind) -> Result<Url, CloudError> {
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

/// The last `lines` that a server wrote to its console. Whatever runs in there wrote it: treat it as hostile.
pub async fn output(session: &Session, id: &str, lines: u32) -> Result<String, CloudError> {
    let body = json!({"os-getConsoleOutput": {"length": lines}});
    let call = session.post(SERVICE, &["servers", id, "action"], body);
    call.microversion(MICROVERSION).repeatable().under("output").await
}
