//! `/bedplate/v1/nodes/{node}/vnc`: the graphical console of a machine as a WebSocket with the messages of RFB (RFC 6143), as noVNC and
//! websockify expect it.
//!
//! The service logs in to the BMC, so the viewer needs no password of the BMC. A page in a browser opens the URL of
//! `/v1/nodes/{node}/states/console`, which has a ticket. Otherwise it is as a serial console: access is checked again at intervals, and the
//! audit trail records who opened the console and when it was closed.

use std::time::Duration;

use axum::body::Bytes;
use axum::extract::ws::{Message, WebSocket, close_code};
use axum::response::Response;
use baremetal_conductor::{Conductor, GraphicalViewer};
use futures::stream::{SplitSink, SplitStream};
use futures::{SinkExt, StreamExt};
use http::StatusCode;
use openstack_api::{PathParam, RequiredAccess, Route, Routes};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, split};
use tokio::time::{interval, timeout};

use super::console_session::{
    ConsoleSession, LEAVE_TIMEOUT, Opening, PING_EVERY, VIEWER_TIMEOUT, close, close_reason,
};
use crate::app::App;
use crate::error::Result;
use crate::request::Request;
use crate::{microversion, rule};

/// The most bytes of the screen in one message.
const PIECE: usize = 32 << 10;
/// A viewer that takes no message for this long is disconnected.
const READ_TIMEOUT: Duration = Duration::from_secs(30);
/// The subprotocol that websockify and earlier versions of noVNC ask for.
const SUBPROTOCOL: &str = "binary";

/// The routes of graphical consoles.
pub(crate) fn routes() -> Routes<App> {
    let open = Route::get("Open a node's graphical console (WebSocket)", open)
        .needs(RequiredAccess::Change)
        .with_rule(rule::OPERATE)
        .query_parameters(["ticket"])
        .answers(StatusCode::SWITCHING_PROTOCOLS)
        .tells_nothing()
        .refuses([StatusCode::CONFLICT, StatusCode::UPGRADE_REQUIRED]);
    Routes::new("bedplate").at("/bedplate/v1/nodes/{node}/vnc", [open])
}

/// `GET /bedplate/v1/nodes/{node}/vnc`: opens the console.
async fn open(
    request: Request,
    PathParam(ident): PathParam<String>,
    opening: Opening,
) -> Result<Response> {
    let node = request.node_at(microversion::MAXIMUM, &ident).await?;
    let hint = "open its URL with noVNC";
    let opened = opening.begin(request, &node, hint, Conductor::watch_graphical_console)?;
    let (upgrade, session, viewer) = opened;
    Ok(upgrade.protocols([SUBPROTOCOL]).on_upgrade(|socket| run(session, socket, viewer)))
}

/// Passes messages in both directions until one side closes the connection or the viewer loses access.
async fn run(session: ConsoleSession, socket: WebSocket, viewer: GraphicalViewer) {
    let (mut sink, mut stream) = socket.split();
    let GraphicalViewer { stream: screen, outcome } = viewer;
    let (from_screen, to_screen) = split(screen);
    let end = tokio::select! {
        why = session.access_lost() => Some((close_code::POLICY, why)),
        end = show(&mut sink, from_screen) => match end {
            ScreenEnd::Ended => Some(close_reason(outcome.end())),
            ScreenEnd::TooSlow => Some((close_code::POLICY, "you did not read the screen in time")),
            ScreenEnd::Left => None,
        },
        end = type_in(&mut stream, to_screen) => end,
    };
    if let Some((code, why)) = end {
        close(&mut sink, code, why).await;
        // Input that nobody reads would reset the connection, and the viewer would not get the reason.
        let _ = timeout(LEAVE_TIMEOUT, stream.for_each(async |_| {})).await;
    }
    session.ended("Close a node's graphical console").await;
}

/// Why no more of the screen is sent.
enum ScreenEnd {
    /// The console has ended.
    Ended,
    /// The viewer takes no messages.
    TooSlow,
    /// The viewer has left.
    Left,
}

/// Sends the screen to the viewer.
async fn show(
    sink: &mut SplitSink<WebSocket, Message>,
    mut screen: impl AsyncRead + Unpin,
) -> ScreenEnd {
    let mut ping = interval(PING_EVERY);
    let mut piece = vec![0; PIECE];
    loop {
        let message = tokio::select! {
            read = screen.read(&mut piece) => match read {
                Ok(0) | Err(_) => return ScreenEnd::Ended,
                Ok(length) => Message::Binary(Bytes::copy_from_slice(&piece[..length])),
            },
            _ = ping.tick() => Message::Ping(Default::default()),
        };
        match timeout(READ_TIMEOUT, sink.send(message)).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => return ScreenEnd::Left,
            Err(_) => return ScreenEnd::TooSlow,
        }
    }
}

/// Sends keys and movements of the viewer to the machine. Returns how to close the connection, if the viewer has not left.
async fn type_in(
    stream: &mut SplitStream<WebSocket>,
    mut screen: impl AsyncWrite + Unpin,
) -> Option<(u16, &'static str)> {
    while let Ok(Some(Ok(message))) = timeout(VIEWER_TIMEOUT, stream.next()).await {
        let typed = match message {
            Message::Binary(typed) => typed,
            Message::Text(_) => {
                return Some((close_code::UNSUPPORTED, "RFB is sent in binary messages"));
            }
            Message::Ping(_) | Message::Pong(_) => continue,
            Message::Close(_) => return None,
        };
        if screen.write_all(&typed).await.is_err() {
            // The console has ended. `show` tells the reason.
            std::future::pending::<()>().await;
        }
    }
    None
}
