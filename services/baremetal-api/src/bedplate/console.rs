//! `/bedplate/v1/nodes/{node}/console`: the serial console of a machine as a WebSocket (RFC 6455).
//!
//! The first message contains the last output of the machine, later messages its further output; messages of the client are sent to the
//! machine as input. Access is checked again at intervals while the console is open. The audit trail records who opened the console and
//! when it was closed. Input is not stored anywhere.

use std::pin::pin;

use axum::extract::ws::{Message, WebSocket, close_code};
use axum::response::{IntoResponse, Response};
use baremetal_conductor::{Conductor, ConsoleViewer};
use futures::stream::{SplitSink, SplitStream};
use futures::{SinkExt, StreamExt};
use http::StatusCode;
use http::header::CONTENT_TYPE;
use openstack_api::{PathParam, RequiredAccess, Route, Routes};
use tokio::time::{interval, timeout};

use super::console_session::{
    ConsoleSession, LEAVE_TIMEOUT, Opening, PING_EVERY, VIEWER_TIMEOUT, close, close_reason,
};
use crate::app::App;
use crate::error::Result;
use crate::request::Request;
use crate::{microversion, rule};

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

/// `GET /bedplate/v1/nodes/{node}/console`: opens the console.
async fn open(
    request: Request,
    PathParam(ident): PathParam<String>,
    opening: Opening,
) -> Result<Response> {
    let node = request.node_at(microversion::MAXIMUM, &ident).await?;
    let hint = "open it with bedplate node console";
    let opened = opening.begin(request, &node, hint, Conductor::watch_console)?;
    let (upgrade, session, viewing) = opened;
    Ok(upgrade.on_upgrade(|socket| run(session, socket, viewing)))
}

/// Passes messages in both directions until one side closes the connection or the viewer loses access.
async fn run(session: ConsoleSession, socket: WebSocket, mut viewing: ConsoleViewer) {
    let (sink, stream) = socket.split();
    let keyboard = viewing.keyboard();
    let over = viewing.over();
    {
        let shown = pin!(show(&session, sink, &mut viewing));
        let typed = pin!(receive_input(stream, keyboard));
        let mut passing = pin!(async {
            tokio::select! { () = shown => {}, () = typed => {} }
        });
        tokio::select! {
            () = &mut passing => {}
            () = over.cancelled() => drop(timeout(LEAVE_TIMEOUT, passing).await),
        }
    }
    session.ended("Close a node's serial console").await;
}

/// Sends the output of the machine to the viewer, and the reason when the connection ends.
async fn show(
    session: &ConsoleSession,
    mut sink: SplitSink<WebSocket, Message>,
    viewing: &mut ConsoleViewer,
) {
    let mut lost = pin!(session.access_lost());
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
    close(&mut sink, code, why).await;
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
