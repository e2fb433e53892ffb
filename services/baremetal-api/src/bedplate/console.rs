//! `/bedplate/v1/nodes/{node}/console`: the serial console of a machine as a WebSocket (RFC 6455).
//!
//! The first message contains the last output of the machine, later messages its further output; messages of the client are sent to the
//! machine as input. Access is checked again at intervals while the console is open. The audit trail records who opened the console and
//! when it was closed. Input is not stored anywhere.

use std::pin::pin;
use std::time::Duration;

use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::response::{IntoResponse, Response};
use baremetal_conductor::{ConsoleEnd, ConsoleViewer};
use baremetal_core::NodeUuid;
use futures::stream::{SplitSink, SplitStream};
use futures::{SinkExt, StreamExt};
use http::header::{CONTENT_TYPE, ORIGIN};
use http::{HeaderMap, StatusCode};
use openstack_api::{
    ApiError, ConnectionEndRecorder, Origin, PathParam, Place, RequiredAccess, Route, Routes,
    SessionCheck,
};
use tokio::time::{Instant, interval, sleep, sleep_until, timeout};

use crate::app::App;
use crate::error::{Error, Result};
use crate::request::Request;
use crate::{microversion, rule};

/// The largest message of a client; larger pastes take several messages.
const MAX_MESSAGE_BYTES: usize = 64 << 10;
/// The interval of pings, which keep proxies from closing an idle connection.
const PING_EVERY: Duration = Duration::from_secs(30);
/// A viewer that sends nothing, not even a pong, for this long is disconnected.
const VIEWER_TIMEOUT: Duration = Duration::from_secs(90);
/// How often the access of the viewer is checked again.
const CHECK_ACCESS_EVERY: Duration = Duration::from_secs(30);
/// How long the closing handshake may take.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(1);

/// The routes of serial consoles.
pub(crate) fn routes() -> Routes<App> {
    let open = Route::get("Open a node's serial console (WebSocket)", open)
        // Opening a console also allows input, so a reader may not open one.
        .needs(RequiredAccess::Change)
        .with_rule(rule::OPERATE)
        .answers(StatusCode::SWITCHING_PROTOCOLS)
        .tells_nothing()
        .refuses([StatusCode::CONFLICT, StatusCode::UPGRADE_REQUIRED]);
    let log = Route::get("Read the latest output of a node's serial console", log)
        // Consoles may show secrets, so this counts as more than reading.
        .needs(RequiredAccess::Change)
        .with_rule(rule::OPERATE)
        .tells_text("text/plain")
        .refuses([StatusCode::CONFLICT]);
    Routes::new("bedplate")
        .at("/bedplate/v1/nodes/{node}/console", [open])
        .at("/bedplate/v1/nodes/{node}/console/log", [log])
}

/// `GET /bedplate/v1/nodes/{node}/console/log`: returns the output that is kept in memory, without opening a session to the BMC.
async fn log(request: Request, PathParam(ident): PathParam<String>) -> Result<Response> {
    let node = request.node_at(microversion::MAXIMUM, &ident).await?;
    let said = request.app.conductor.console_log(&node)?;
    let text = String::from_utf8_lossy(&said).into_owned();
    Ok(([(CONTENT_TYPE, "text/plain; charset=utf-8")], text).into_response())
}

/// An open console and its viewer.
struct ConsoleSession {
    app: App,
    node: NodeUuid,
    standing: SessionCheck,
    ends_at: Option<Instant>,
    aftermath: ConnectionEndRecorder,
    _place: Option<Place>,
}

/// Counts one more console for the caller. Without authentication all viewers are the same caller, so no limit applies.
fn count_console(request: &Request) -> Result<Option<Place>, ApiError> {
    let at_most = request.app.settings.consoles_each.get();
    let Some(who) = request.caller.user() else { return Ok(None) };
    let why = || {
        let why = format!("you have {at_most} consoles open, which is the limit: close one");
        ApiError::new(StatusCode::SERVICE_UNAVAILABLE, why)
    };
    request.app.lookers.enter(who, at_most).map(Some).ok_or_else(why)
}

/// `GET /bedplate/v1/nodes/{node}/console`: opens the console.
async fn open(
    request: Request,
    PathParam(ident): PathParam<String>,
    headers: HeaderMap,
    origin: Origin,
    standing: SessionCheck,
    aftermath: ConnectionEndRecorder,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response> {
    let node = request.node_at(microversion::MAXIMUM, &ident).await?;
    // Browsers let pages of any site open a WebSocket, and may add a remembered password, so the origin is checked here.
    if headers.get(ORIGIN).is_some_and(|from| from.as_bytes() != origin.as_str().as_bytes()) {
        let why = "Origin: pages of other websites may not open consoles";
        return Err(ApiError::protocol(StatusCode::FORBIDDEN, why).into());
    }
    let lasts = request.caller.remaining_validity((request.app.clock)());
    let ends_at = lasts.and_then(|left| Instant::now().checked_add(left));
    if upgrade.is_err() && node.console_enabled {
        let why = "this route is a WebSocket (RFC 6455): open it with bedplate node console";
        return Err(ApiError::new(StatusCode::UPGRADE_REQUIRED, why).into());
    }
    let place = count_console(&request)?;
    let viewing = request.app.conductor.watch_console(&node)?;
    let Ok(upgrade) = upgrade else {
        return Err(ApiError::broken("a console was opened without a WebSocket").into());
    };
    let visit = ConsoleSession {
        app: request.app,
        node: node.id,
        standing,
        ends_at,
        aftermath,
        _place: place,
    };
    let upgrade = upgrade.max_message_size(MAX_MESSAGE_BYTES).max_frame_size(MAX_MESSAGE_BYTES);
    Ok(upgrade.on_upgrade(|socket| visit.run(socket, viewing)))
}

impl ConsoleSession {
    /// Passes messages in both directions until one side closes the connection or the viewer loses access.
    async fn run(self, socket: WebSocket, mut viewing: ConsoleViewer) {
        let (sink, stream) = socket.split();
        let keyboard = viewing.keyboard();
        let over = viewing.over();
        {
            let shown = pin!(self.show(sink, &mut viewing));
            let typed = pin!(receive_input(stream, keyboard));
            let mut passing = pin!(async {
                tokio::select! { () = shown => {}, () = typed => {} }
            });
            tokio::select! {
                () = &mut passing => {}
                () = over.cancelled() => drop(timeout(LEAVE_TIMEOUT, passing).await),
            }
        }
        self.aftermath.ended("Close a node's serial console").await;
    }

    /// Sends the output of the machine to the viewer, and the reason when the connection ends.
    async fn show(&self, mut sink: SplitSink<WebSocket, Message>, viewing: &mut ConsoleViewer) {
        let mut lost = pin!(self.access_lost());
        let mut ping = interval(PING_EVERY);
        let (code, why) = loop {
            let message = tokio::select! {
                said = viewing.next() => match said {
                    Some(said) => Message::Binary(said),
                    None => break close_reason(viewing.end()),
                },
                why = &mut lost => break (close_code::POLICY, why),
                _ = ping.tick() => Message::Ping(Default::default()),
            };
            if sink.send(message).await.is_err() {
                return;
            }
        };
        let close = Message::Close(Some(CloseFrame { code, reason: why.into() }));
        let _ = timeout(LEAVE_TIMEOUT, sink.send(close)).await;
    }

    /// Waits until the viewer loses access, and returns the reason.
    async fn access_lost(&self) -> &'static str {
        let end = async {
            match self.ends_at {
                Some(end) => sleep_until(end).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = end => "your token has expired",
            why = self.refused() => why,
        }
    }

    /// Checks the access of the viewer again and again, until it is refused; returns the reason.
    async fn refused(&self) -> &'static str {
        loop {
            sleep(CHECK_ACCESS_EVERY).await;
            let caller = match self.standing.caller().await {
                Ok(caller) => caller,
                Err(why) if is_final(&why) => return "your token or password is no longer valid",
                Err(_) => continue,
            };
            let node = self.node.to_string();
            let request = Request { app: self.app.clone(), caller, asked: microversion::MAXIMUM };
            if let Err(Error::Api(why)) = request.node(&node).await
                && is_final(&why)
            {
                return "you no longer have access to this node";
            }
        }
    }
}

/// Whether the refusal is permanent, in contrast to a failure that may pass.
fn is_final(refusal: &ApiError) -> bool {
    [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN, StatusCode::NOT_FOUND]
        .contains(&refusal.status)
}

/// Passes the input of the viewer to the machine, until the viewer closes the connection.
async fn receive_input(
    mut stream: SplitStream<WebSocket>,
    keyboard: tokio::sync::mpsc::Sender<axum::body::Bytes>,
) {
    while let Ok(Some(Ok(message))) = timeout(VIEWER_TIMEOUT, stream.next()).await {
        let typed = match message {
            Message::Binary(typed) => typed,
            Message::Text(typed) => typed.into(),
            Message::Ping(_) | Message::Pong(_) => continue,
            Message::Close(_) => return,
        };
        if keyboard.send(typed).await.is_err() {
            // The console is closed. `show` sends the reason and ends the connection.
            std::future::pending::<()>().await;
        }
    }
}

/// The close code (RFC 6455 §7.4.1) and the reason that the viewer gets.
fn close_reason(end: ConsoleEnd) -> (u16, &'static str) {
    let code = match end {
        ConsoleEnd::Disabled | ConsoleEnd::Deleted | ConsoleEnd::HandedOver => close_code::NORMAL,
        ConsoleEnd::TooSlow => close_code::POLICY,
        ConsoleEnd::Stopping => close_code::AWAY,
    };
    (code, end.as_str())
}
