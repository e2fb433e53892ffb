//! A viewer's connection to a console: who may open it, and when it ends.

use std::time::Duration;

use axum::extract::FromRequestParts;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use baremetal_conductor::{Conductor, ConsoleEnd, ConsoleError};
use baremetal_core::{Node, NodeUuid};
use futures::SinkExt;
use futures::stream::SplitSink;
use http::StatusCode;
use http::header::ORIGIN;
use http::request::Parts;
use openstack_api::{ApiError, ConnectionEndRecorder, OpenedByTicket, Origin, Place, SessionCheck};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::app::App;
use crate::error::Error;
use crate::microversion;
use crate::request::Request;

/// The largest message of a client; larger pastes take several messages.
const MAX_MESSAGE_BYTES: usize = 64 << 10;
/// The interval of pings, which keep proxies from closing an idle connection.
pub(super) const PING_EVERY: Duration = Duration::from_secs(30);
/// A viewer that sends nothing, not even a pong, for this long is disconnected.
pub(super) const VIEWER_TIMEOUT: Duration = Duration::from_secs(90);
/// How often the access of the viewer is checked again.
const CHECK_ACCESS_EVERY: Duration = Duration::from_secs(30);
/// How long the closing handshake may take.
pub(super) const LEAVE_TIMEOUT: Duration = Duration::from_secs(1);

/// A request that opens a console. Its origin is checked.
pub(super) struct Opening {
    standing: SessionCheck,
    aftermath: ConnectionEndRecorder,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
}

/// An open console.
pub(super) struct ConsoleSession {
    app: App,
    node: NodeUuid,
    standing: SessionCheck,
    ends_at: Option<Instant>,
    aftermath: ConnectionEndRecorder,
    _place: Option<Place>,
}

impl FromRequestParts<App> for Opening {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Error> {
        let origin = Origin::from_request_parts(parts, app).await?;
        let from = parts.headers.get(ORIGIN);
        let is_foreign = from.is_some_and(|from| from.as_bytes() != origin.as_str().as_bytes());
        // Browsers let pages of any site open a WebSocket, and may add a remembered password, so the origin is checked here.
        if is_foreign && parts.extensions.get::<OpenedByTicket>().is_none() {
            let why = "Origin: pages of other websites may not open consoles";
            return Err(ApiError::protocol(StatusCode::FORBIDDEN, why).into());
        }
        Ok(Opening {
            standing: SessionCheck::from_request_parts(parts, app).await?,
            aftermath: ConnectionEndRecorder::from_request_parts(parts, app).await?,
            upgrade: WebSocketUpgrade::from_request_parts(parts, app).await,
        })
    }
}

impl Opening {
    /// Opens the console with `watch`. `hint` tells clients that open no WebSocket what to do instead.
    pub(super) fn begin<V>(
        self,
        request: Request,
        node: &Node,
        hint: &str,
        watch: impl FnOnce(&Conductor, &Node) -> Result<V, ConsoleError>,
    ) -> Result<(WebSocketUpgrade, ConsoleSession, V), Error> {
        if self.upgrade.is_err() && node.console_enabled {
            let why = format!("this route is a WebSocket (RFC 6455): {hint}");
            return Err(ApiError::new(StatusCode::UPGRADE_REQUIRED, why).into());
        }
        let lasts = request.caller.remaining_validity((request.app.clock)());
        let ends_at = lasts.and_then(|left| Instant::now().checked_add(left));
        let place = count_console(&request)?;
        let viewer = watch(&request.app.conductor, node)?;
        let Ok(upgrade) = self.upgrade else {
            return Err(ApiError::broken("a console was opened without a WebSocket").into());
        };
        let session = ConsoleSession {
            app: request.app,
            node: node.id,
            standing: self.standing,
            ends_at,
            aftermath: self.aftermath,
            _place: place,
        };
        let upgrade = upgrade.max_message_size(MAX_MESSAGE_BYTES).max_frame_size(MAX_MESSAGE_BYTES);
        Ok((upgrade, session, viewer))
    }
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

impl ConsoleSession {
    /// Records the end of the console.
    pub(super) async fn ended(self, action: &str) {
        self.aftermath.ended(action).await;
    }

    /// Waits until the viewer loses access, and returns the reason.
    pub(super) async fn access_lost(&self) -> &'static str {
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

/// Closes the connection of a viewer.
pub(super) async fn close(sink: &mut SplitSink<WebSocket, Message>, code: u16, why: &'static str) {
    let close = Message::Close(Some(CloseFrame { code, reason: why.into() }));
    let _ = timeout(LEAVE_TIMEOUT, sink.send(close)).await;
}

/// The close code (RFC 6455 §7.4.1) and the reason that the viewer gets.
pub(super) fn close_reason(end: ConsoleEnd) -> (u16, &'static str) {
    let code = match end {
        ConsoleEnd::Disabled | ConsoleEnd::Deleted | ConsoleEnd::HandedOver => close_code::NORMAL,
        ConsoleEnd::TooSlow => close_code::POLICY,
        ConsoleEnd::Refused | ConsoleEnd::Over => close_code::ERROR,
        ConsoleEnd::Stopping => close_code::AWAY,
    };
    (code, end.as_str())
}
