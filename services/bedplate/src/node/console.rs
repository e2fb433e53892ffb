//! `bedplate node console`: a node's serial console in a terminal or a pipe.

mod escape;
mod terminal;

use std::io::{self, IsTerminal, Read, Write};

use anyhow::Context;
use api_client::baremetald::Node;
use clap::Args;
use futures::{SinkExt, StreamExt};
use serde::de::IgnoredAny;
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use websocket::{Bytes, CloseCode, CloseFrame, Message, Socket};

use self::escape::{Escape, Typed};
use self::terminal::Raw;
use crate::api::Api;
use crate::exit::{Exit, Failure};
use crate::output::plain;

/// The number of bytes of input that are read at once.
const PIECE: usize = 4096;
/// The number of inputs that may wait for the machine.
const PIECES: usize = 16;

/// The options of `bedplate node console`.
#[derive(Args)]
pub(crate) struct Options {
    /// Name or id of the node.
    node: String,
    /// Enable the console first, on the serial port if the node has no console yet. The console stays enabled.
    #[arg(long)]
    enable: bool,
    /// Print the recorded output of the console without opening a connection.
    #[arg(long)]
    log: bool,
}

pub(crate) async fn run(options: Options, api: &Api) -> anyhow::Result<()> {
    let node = &options.node;
    if options.enable {
        enable(api, node).await?;
    }
    if options.log {
        let said = api.get_text(&format!("/bedplate/v1/nodes/{node}/console/log")).await?;
        return show(said.as_bytes()).map_err(Into::into);
    }
    let socket = api.socket(&format!("/bedplate/v1/nodes/{node}/console")).await?;
    let is_terminal = io::stdin().is_terminal();
    if is_terminal {
        eprintln!(
            "Connected to the console of {node}. To close it, type ~. at the beginning of a line."
        );
    }
    let raw = is_terminal.then(Raw::begin).transpose().context("cannot set up the terminal")?;
    let ended = pass_on(socket, is_terminal).await;
    drop(raw);
    if is_terminal {
        eprintln!();
    }
    ended
}

/// Enables a node's console. Nodes have no console interface by default, as in Ironic, so the command sets the one with the serial port of
/// the machine.
async fn enable(api: &Api, node: &str) -> anyhow::Result<()> {
    let path = format!("/v1/nodes/{node}");
    let Node { console_interface, driver, .. } = api.get(&path).await?;
    let has_none = console_interface.as_deref() == Some("no-console");
    let serial = match driver.as_deref() {
        Some("ipmi") => Some("ipmitool-socat"),
        Some("idrac" | "redfish") => Some("redfish-serial"),
        Some(_) | None => None,
    };
    if let Some(serial) = serial.filter(|_| has_none) {
        let value = json!({"op": "add", "path": "/console_interface", "value": serial});
        api.patch::<IgnoredAny>(&path, &json!([value])).await?;
    }
    let path = format!("{path}/states/console");
    api.put::<IgnoredAny>(&path, &json!({"enabled": true})).await.map(drop)
}

/// Passes on input and output until one side ends the connection.
async fn pass_on(socket: Socket, is_terminal: bool) -> anyhow::Result<()> {
    let (mut sink, mut stream) = socket.split();
    let mut typed = Some(typing());
    let mut escape = is_terminal.then(Escape::default);
    let (mut ended, mut hung_up) =
        (signal(SignalKind::terminate())?, signal(SignalKind::hangup())?);
    loop {
        tokio::select! {
            said = stream.next() => match said {
                Some(Ok(Message::Binary(said))) => show(&said)?,
                Some(Ok(Message::Text(said))) => show(said.as_bytes())?,
                Some(Ok(Message::Close(why))) => return over(why),
                Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => {}
                Some(Err(_)) | None => return over(None),
            },
            read = next(&mut typed) => {
                let Some(read) = read else {
                    // All piped input is sent, and the machine's output to it is still to come.
                    typed = None;
                    continue;
                };
                let Typed { sent, leaves } = match &mut escape {
                    Some(escape) => escape.typed(&read),
                    None => Typed { sent: read, leaves: false },
                };
                if !sent.is_empty() && sink.send(Message::Binary(Bytes::from(sent))).await.is_err() {
                    return over(None);
                }
                if leaves {
                    break;
                }
            }
            _ = ended.recv() => break,
            _ = hung_up.recv() => break,
        }
    }
    // The user has left, so the command does not wait for the service to close.
    let _ = sink.send(Message::Close(None)).await;
    Ok(())
}

/// Waits for the next input. After the end of the input the call never returns.
async fn next(typed: &mut Option<mpsc::Receiver<Vec<u8>>>) -> Option<Vec<u8>> {
    match typed {
        Some(typed) => typed.recv().await,
        None => std::future::pending().await,
    }
}

/// Reads input in a thread of its own, because only the end of the process can interrupt a blocking read.
fn typing() -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel(PIECES);
    std::thread::spawn(move || {
        let mut piece = [0; PIECE];
        loop {
            let read = match io::stdin().lock().read(&mut piece) {
                Ok(0) => return,
                Ok(read) => read,
                Err(why) if why.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => return,
            };
            let read = piece.get(..read).unwrap_or_default().to_vec();
            if sender.blocking_send(read).is_err() {
                return;
            }
        }
    });
    receiver
}

fn show(said: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(said)?;
    out.flush()
}

/// The error after the service ended the connection, with its reason.
fn over(why: Option<CloseFrame>) -> anyhow::Result<()> {
    let comes_back = why.as_ref().is_none_or(|why| why.code == CloseCode::Away);
    let exit = if comes_back { Exit::Unreachable } else { Exit::Failed };
    let words = why.map(|why| plain(&why.reason)).filter(|words| !words.is_empty());
    let words =
        words.unwrap_or_else(|| "the connection was interrupted. Hint: try again".to_owned());
    Err(Failure::new(exit, words).into())
}
