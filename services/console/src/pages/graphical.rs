//! The graphical console of a node: a page with the screen, and a WebSocket with the messages of RFB for the script of the page.
//!
//! The console opens a WebSocket to baremetald as the user, and passes on messages in both directions. It reads none of them.

use std::time::Duration;

use axum::Router;
use axum::extract::ws::{CloseFrame, Message as PageMessage, WebSocket, WebSocketUpgrade};
use axum::extract::{Path, State};
use axum::response::Response;
use axum::routing::get;
use futures::stream::{SplitSink, SplitStream};
use futures::{SinkExt, StreamExt};
use http::HeaderMap;
use tokio::time::{MissedTickBehavior, interval, timeout};
use websocket::{Message, Socket};

use crate::api::segment;
use crate::config::Access;
use crate::guard;
use crate::live_page_registry::{Place, REPLACED};
use crate::page_request::{AuthorizedUser, PageRequest};
use crate::problem::Problem;
use crate::state::Console;

/// How often the session of the user is checked.
const CHECK_SESSION_EVERY: Duration = Duration::from_secs(1);
/// A page that takes no message for this long is disconnected, and so is a service.
const SEND_TIMEOUT: Duration = Duration::from_secs(30);
/// How long the closing handshake may take.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
/// The largest message of a page; larger pastes take several messages.
const MAX_MESSAGE_BYTES: usize = 64 << 10;
/// The longest reason of a close frame (RFC 6455 §5.5).
const MAX_REASON_BYTES: usize = 123;
/// The code of a connection that ends because of an error, or because the user may not have it (RFC 6455 §7.4.1).
const ERROR: u16 = 1011;

pub(super) fn routes() -> Router<Console> {
    // Below `/live`, so that following a console does not keep the session alive.
    Router::new().route("/live/screen/{node}", get(follow))
}

/// `GET /live/screen/{node}`: opens the WebSocket of the page.
async fn follow(
    State(console): State<Console>,
    person: AuthorizedUser,
    Path(node): Path<String>,
    headers: HeaderMap,
    upgrade: WebSocketUpgrade,
) -> Result<Response, Problem> {
    // The browser adds the cookie to the WebSocket of any page.
    if !guard::is_own(&headers) {
        return Err(Problem::Forged);
    }
    let name = segment(&node)?;
    let place = console.live_pages().enter(person.page_request.live_page_owner(&console))?;
    let opened = person.baremetald()?.socket(&format!("/bedplate/v1/nodes/{name}/vnc")).await;
    let upgrade = upgrade.protocols(["binary"]).max_message_size(MAX_MESSAGE_BYTES);
    let page_request = person.page_request;
    Ok(upgrade.on_upgrade(|page| async move {
        let (mut sink, mut stream) = page.split();
        let end = match opened {
            Ok(service) => {
                let screen = Screen { console, page_request, place };
                screen.pass_on(&mut sink, &mut stream, service).await
            }
            // A browser does not show the error response of a WebSocket.
            Err(why) => Some(why.to_string()),
        };
        if let Some(why) = end {
            let reason = shortened(&why).into();
            let close = PageMessage::Close(Some(CloseFrame { code: ERROR, reason }));
            let _ = timeout(SEND_TIMEOUT, sink.send(close)).await;
            // Input that nobody reads would reset the connection, and the page would not get the reason.
            let _ = timeout(CLOSE_TIMEOUT, stream.for_each(async |_| {})).await;
        }
    }))
}

/// A page that shows a screen.
struct Screen {
    console: Console,
    page_request: PageRequest,
    place: Place,
}

impl Screen {
    /// Passes on messages in both directions until one side ends. Returns the reason for the page, if the page has not left.
    async fn pass_on(
        self,
        sink: &mut SplitSink<WebSocket, PageMessage>,
        page: &mut SplitStream<WebSocket>,
        service: Socket,
    ) -> Option<String> {
        let (mut to_service, mut from_service) = service.split();
        let typing = async {
            while let Some(Ok(message)) = page.next().await {
                let typed = match message {
                    PageMessage::Binary(typed) => typed,
                    PageMessage::Text(_) | PageMessage::Close(_) => return None,
                    PageMessage::Ping(_) | PageMessage::Pong(_) => continue,
                };
                let sent = timeout(SEND_TIMEOUT, to_service.send(Message::Binary(typed))).await;
                if !matches!(sent, Ok(Ok(()))) {
                    // `showing` tells the reason.
                    std::future::pending::<()>().await;
                }
            }
            None::<String>
        };
        let showing = async {
            loop {
                let message = match from_service.next().await {
                    Some(Ok(Message::Binary(shown))) => PageMessage::Binary(shown),
                    // The pong of the page shows that the page still follows.
                    Some(Ok(Message::Ping(_))) => PageMessage::Ping(Default::default()),
                    Some(Ok(Message::Close(why))) => return Some(reason(why)),
                    Some(Ok(Message::Text(_) | Message::Pong(_) | Message::Frame(_))) => continue,
                    Some(Err(_)) | None => return Some(reason(None)),
                };
                match timeout(SEND_TIMEOUT, sink.send(message)).await {
                    Ok(Ok(())) => {}
                    Ok(Err(_)) => return None,
                    Err(_) => return Some("the page did not read the screen in time".to_owned()),
                }
            }
        };
        tokio::select! {
            end = typing => end,
            end = showing => end,
            () = self.console.ending().cancelled() => Some("the web console is stopping".to_owned()),
            () = self.place.replaced() => Some(REPLACED.to_owned()),
            () = self.session_ends() => Some("your session has ended; log in again".to_owned()),
        }
    }

    /// Waits until the session of the user ends.
    async fn session_ends(&self) {
        let mut checks = interval(CHECK_SESSION_EVERY);
        checks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            checks.tick().await;
            let has_ended = self.console.sessions().has_ended(&self.page_request.cookie).await;
            if has_ended && *self.console.access() != Access::None {
                return;
            }
        }
    }
}

/// The reason with which the service ended the console.
fn reason(why: Option<websocket::CloseFrame>) -> String {
    match why {
        Some(why) if !why.reason.is_empty() => why.reason.to_string(),
        Some(_) | None => "the connection to the service was interrupted".to_owned(),
    }
}

/// Cuts a text to the length that a close frame can have.
fn shortened(text: &str) -> String {
    let mut end = text.len().min(MAX_REASON_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default().to_owned()
}
