//! `/nodes/{node}/console`: a node's console. A serial console: its output, live in browsers with scripts, and input.
//!
//! The console opens a WebSocket to baremetald as the user, and sends lines of text to the browser. A complete line is appended; the
//! unfinished line is replaced whenever it changes.

use std::convert::Infallible;
use std::time::Duration;

use api_client::baremetald::Node;
use axum::Router;
use axum::extract::{Path, State};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use futures::stream::unfold;
use futures::{SinkExt, StreamExt};
use http::{HeaderMap, Method};
use serde_json::json;
use tera::Context;
use tokio::time::{sleep, sleep_until, timeout};
use websocket::{Bytes, CloseCode, Message, Socket};

use crate::api::segment;
use crate::config::Access;
use crate::form::UserForm;
use crate::live_page_registry::{Place, REPLACED};
use crate::page_request::{AuthorizedUser, PageRequest};
use crate::problem::Problem;
use crate::screen::Screen;
use crate::serial_inputs::SerialInput;
use crate::state::Console;
use crate::view::escape;

/// Output that arrives within this time is sent together.
const GATHER: Duration = Duration::from_millis(100);
/// How often the session of the user is checked.
const CHECK_SESSION_EVERY: Duration = Duration::from_secs(1);
/// How long the response waits for the machine's echo, if no page follows the console.
const ECHO: Duration = Duration::from_secs(1);
/// The template of the whole output, which is sent once at the beginning of a stream.
const SCREEN: &str = "serial_screen.html";

pub(super) fn routes() -> Router<Console> {
    Router::new()
        .route("/nodes/{node}/console", get(show).post(switch))
        .route("/nodes/{node}/console/input", axum::routing::post(type_input))
        // Below `/live`, so that following a console does not keep the session alive.
        .route("/live/console/{node}", get(follow))
}

/// `GET /nodes/{node}/console`: shows the console.
async fn show(person: AuthorizedUser, Path(node): Path<String>) -> Result<Response, Problem> {
    let (api, name) = (person.baremetald()?, segment(&node)?);
    let shown: Node = api.get(&format!("/v1/nodes/{name}")).await?;
    let label = shown.name.as_deref().unwrap_or(&node);
    let is_enabled = shown.console_enabled;
    if shown.console_interface.as_deref() == Some("bmc-vnc") {
        let page = person.page("graphical.html", &format!("Console of {label}")).under("nodes");
        let page = page.put("label", label).put("address", &name).put("enabled", is_enabled);
        return person.show(page);
    }
    let page = person.page("serial.html", &format!("Console of {label}")).under("nodes");
    let page = page.put("label", label).put("address", &name).put("enabled", is_enabled);
    let page = page.put("interface", &shown.console_interface).put("driver", &shown.driver);
    if !is_enabled {
        return person.show(page.put("lines", "").put("line", ""));
    }
    let output = match api.text(&format!("/bedplate/v1/nodes/{name}/console/log")).await {
        Ok(output) => output,
        Err(why @ Problem::Refused { .. }) => {
            return person.show_again(page.put("lines", "").put("line", ""), &why);
        }
        Err(why) => return Err(why),
    };
    let mut screen = Screen::default();
    screen.feed(output.as_bytes());
    let (lines, line) = screen.take();
    let page = page.put("lines", lines).put("line", line);
    person.show(page.followed_at(format!("/live/console/{name}")))
}

/// `POST /nodes/{node}/console`: enables or disables the console.
async fn switch(
    Path(node): Path<String>,
    UserForm { person, fields }: UserForm,
) -> Result<Response, Problem> {
    let (api, name) = (person.baremetald()?, segment(&node)?);
    let is_on = fields.get("target")? == "on";
    let path = format!("/v1/nodes/{name}");
    let Node { console_interface, driver, .. } = api.get(&path).await?;
    let has_none = console_interface.as_deref() == Some("no-console");
    // Nodes have no console interface by default, as in Ironic. The button chooses the one with the serial port.
    let serial = match driver.as_deref() {
        Some("ipmi") => Some("ipmitool-socat"),
        Some("idrac" | "redfish") => Some("redfish-serial"),
        Some(_) | None => None,
    };
    if let Some(serial) = serial.filter(|_| is_on && has_none) {
        let patch = json!([{"op": "add", "path": "/console_interface", "value": serial}]);
        api.send(Method::PATCH, &path, Some(&patch)).await?;
    }
    let body = json!({"enabled": is_on});
    api.send(Method::PUT, &format!("{path}/states/console"), Some(&body)).await?;
    Ok(Redirect::to(&format!("/nodes/{name}/console")).into_response())
}

/// `POST /nodes/{node}/console/input`: types a line or a key. A script gets the empty form as the response.
async fn type_input(
    State(console): State<Console>,
    Path(node): Path<String>,
    headers: HeaderMap,
    UserForm { person, fields }: UserForm,
) -> Result<Response, Problem> {
    let name = segment(&node)?;
    let typed = match fields.get("key")? {
        "enter" => format!("{}\r", fields.find("text").unwrap_or_default()),
        "interrupt" => "\u{3}".to_owned(),
        "escape" => "\u{1b}".to_owned(),
        _ => return Err(Problem::Unreadable("key: must be enter, interrupt or escape".to_owned())),
    };
    let typed = Bytes::from(typed);
    let owner = console.guard().token(&person.page_request.cookie);
    let is_sent = match console.serial_inputs().find(&owner, &name) {
        Some(input) => input.send(typed.clone()).await.is_ok(),
        None => false,
    };
    if !is_sent {
        type_once(open(&person, &name).await?, typed).await;
    }
    if headers.contains_key("hx-request") {
        return person.show(person.page("serial_typing.html", "").put("address", &name));
    }
    Ok(Redirect::to(&format!("/nodes/{name}/console")).into_response())
}

/// Opens the WebSocket of the node's console as the user.
async fn open(person: &AuthorizedUser, name: &str) -> Result<Socket, Problem> {
    person.baremetald()?.socket(&format!("/bedplate/v1/nodes/{name}/console")).await
}

/// Sends the input of a user whose page does not update itself, and waits a moment for the echo, so that the next page shows the echo.
async fn type_once(mut socket: Socket, typed: Bytes) {
    // The first message is the earlier output.
    let _ = timeout(ECHO, socket.next()).await;
    if socket.send(Message::Binary(typed)).await.is_ok() {
        let _ = timeout(ECHO, socket.next()).await;
    }
    let _ = socket.close(None).await;
}

/// A serial console that one user follows.
struct SerialStream {
    console: Console,
    page_request: PageRequest,
    socket: Socket,
    input: SerialInput,
    screen: Screen,
    /// The unfinished line as it was last sent.
    line: String,
    waiting: Vec<Event>,
    /// When the session is checked next.
    session_check_at: tokio::time::Instant,
    has_begun: bool,
    is_over: bool,
    place: Place,
}

/// `GET /live/console/{node}`: streams the serial console.
async fn follow(
    State(console): State<Console>,
    person: AuthorizedUser,
    Path(node): Path<String>,
) -> Result<Response, Problem> {
    let name = segment(&node)?;
    let place = console.live_pages().enter(person.page_request.live_page_owner(&console))?;
    let unbuffered = [("x-accel-buffering", "no")];
    let socket = match open(&person, &name).await {
        Ok(socket) => socket,
        Err(why @ (Problem::Refused { .. } | Problem::Unreachable { .. })) => {
            // A browser does not show the error response of a stream, so the reason is sent as output.
            let events =
                [lines_event(&format!("[{why}]\n")), last_event()].map(Ok::<_, Infallible>);
            return Ok((unbuffered, Sse::new(futures::stream::iter(events))).into_response());
        }
        Err(why) => return Err(why),
    };
    let owner = console.guard().token(&person.page_request.cookie);
    let stream = SerialStream {
        input: console.serial_inputs().register(&owner, &name),
        console,
        page_request: person.page_request,
        socket,
        screen: Screen::default(),
        line: String::new(),
        waiting: Vec::new(),
        session_check_at: tokio::time::Instant::now() + CHECK_SESSION_EVERY,
        has_begun: false,
        is_over: false,
        place,
    };
    let events = unfold(stream, |mut stream| async move {
        let event = stream.event().await?;
        Some((Ok::<_, Infallible>(event), stream))
    });
    Ok((unbuffered, Sse::new(events).keep_alive(KeepAlive::new())).into_response())
}

impl SerialStream {
    /// Waits for the next event; `None` after the last one.
    async fn event(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.waiting.pop() {
                return Some(event);
            }
            if self.is_over {
                return None;
            }
            self.gather().await;
        }
    }

    /// Waits for output, and a moment longer for output that follows. Passes input on meanwhile.
    async fn gather(&mut self) {
        let end = loop {
            tokio::select! {
                () = self.console.ending().cancelled() => break Some(StreamEnd::Gone),
                () = self.place.replaced() => break Some(StreamEnd::Over(REPLACED.to_owned())),
                () = sleep_until(self.session_check_at) => {
                    self.session_check_at += CHECK_SESSION_EVERY;
                    let has_ended = self.console.sessions().has_ended(&self.page_request.cookie).await;
                    if has_ended && *self.console.access() != Access::None {
                        break Some(StreamEnd::Over("your session has ended; log in again".to_owned()));
                    }
                }
                Some(typed) = self.input.next() => {
                    if self.socket.send(Message::Binary(typed)).await.is_err() {
                        break Some(StreamEnd::Gone);
                    }
                }
                message = self.socket.next() => match self.read(message) {
                    MessageResult::Nothing => {}
                    MessageResult::Output => break None,
                    MessageResult::End(end) => break Some(end),
                },
            }
        };
        let end = match end {
            Some(end) => Some(end),
            None => self.read_more().await,
        };
        self.show(end);
    }

    /// Reads the output that arrives within `GATHER`.
    async fn read_more(&mut self) -> Option<StreamEnd> {
        let mut more = std::pin::pin!(sleep(GATHER));
        loop {
            tokio::select! {
                () = &mut more => return None,
                message = self.socket.next() => {
                    if let MessageResult::End(end) = self.read(message) {
                        return Some(end);
                    }
                }
            }
        }
    }

    fn read(&mut self, message: Option<Result<Message, websocket::Error>>) -> MessageResult {
        match message {
            Some(Ok(Message::Binary(bytes))) => {
                self.screen.feed(&bytes);
                MessageResult::Output
            }
            Some(Ok(Message::Close(Some(why)))) if why.code != CloseCode::Away => {
                MessageResult::End(StreamEnd::Over(why.reason.to_string()))
            }
            Some(Ok(Message::Close(_)) | Err(_)) | None => MessageResult::End(StreamEnd::Gone),
            Some(Ok(
                Message::Text(_) | Message::Ping(_) | Message::Pong(_) | Message::Frame(_),
            )) => MessageResult::Nothing,
        }
    }

    /// Turns the new output into events, the last event first.
    fn show(&mut self, end: Option<StreamEnd>) {
        let (lines, line) = self.screen.take();
        let mut events = Vec::new();
        if !self.has_begun {
            self.has_begun = true;
            events.extend(self.whole(&lines, &line));
        } else {
            if !lines.is_empty() {
                events.push(lines_event(&lines));
            }
            if line != self.line {
                events.push(Event::default().event("line").data(escape(&line)));
            }
        }
        self.line = line;
        match end {
            None => {}
            Some(StreamEnd::Gone) => self.is_over = true,
            Some(StreamEnd::Over(why)) => {
                self.is_over = true;
                events.extend([lines_event(&format!("\n[{why}]\n")), last_event()]);
            }
        }
        events.reverse();
        self.waiting = events;
    }

    fn whole(&self, lines: &str, line: &str) -> Option<Event> {
        let mut context = Context::new();
        context.insert("lines", lines);
        context.insert("line", line);
        let screen = self.console.engine().render(SCREEN, &context);
        screen.ok().map(|screen| Event::default().event("whole").data(screen))
    }
}

/// The result of reading a message.
enum MessageResult {
    Nothing,
    Output,
    End(StreamEnd),
}

/// Why a stream ends.
enum StreamEnd {
    /// The connection broke; the browser reconnects.
    Gone,
    /// The service ended the console, with the reason; the browser must not reconnect.
    Over(String),
}

/// The event for complete lines.
fn lines_event(lines: &str) -> Event {
    Event::default().event("lines").data(escape(lines))
}

/// The last event: the browser does not reconnect after it.
fn last_event() -> Event {
    Event::default().event("over").data("over")
}
