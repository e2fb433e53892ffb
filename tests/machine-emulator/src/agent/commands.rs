//! The agent's API: `https` with a token, and the list of commands since the agent's start.

use std::sync::{Mutex, MutexGuard, PoisonError};

use bmc_emulator::web::json;
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tokio::sync::{Notify, mpsc, watch};

use super::outcome::{Done, Failure, Progress};
use crate::machine::Machine;

/// Fits a config drive of 64 MiB in base64, and the other parameters.
const LARGEST_BODY: usize = 96 << 20;

#[derive(Debug)]
pub(super) struct CommandRequest {
    pub(super) id: String,
    /// Name in the form `extension.command`.
    pub(super) name: String,
    pub(super) params: Map<String, Value>,
}

/// All commands that the agent has received.
pub(super) struct Commands {
    machine: Machine,
    token: String,
    jobs: mpsc::Sender<CommandRequest>,
    list: Mutex<Vec<Command>>,
    /// Counts the commands that have ended.
    ends: watch::Sender<usize>,
    ended: Notify,
}

/// A command in the form of the protocol.
#[derive(Clone, Debug, Serialize)]
struct Command {
    id: String,
    command_name: String,
    command_status: &'static str,
    command_error: Option<Failure>,
    command_result: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    command_progress: Option<Progress>,
}

#[derive(Deserialize)]
struct Body {
    name: String,
    #[serde(default)]
    params: Map<String, Value>,
}

const RUNNING: &str = "RUNNING";

impl Commands {
    pub(super) fn new(machine: Machine, token: String, jobs: mpsc::Sender<CommandRequest>) -> Self {
        Commands {
            machine,
            token,
            jobs,
            list: Mutex::default(),
            ends: watch::Sender::new(0),
            ended: Notify::new(),
        }
    }

    /// Waits until a command has ended since the last call.
    pub(super) async fn wait_for_an_end(&self) {
        self.ended.notified().await;
    }

    pub(super) fn progress(&self, id: &str, progress: Progress) {
        if let Some(command) = self.list().iter_mut().find(|command| command.id == id) {
            command.command_progress = Some(progress);
        }
    }

    pub(super) fn end(&self, id: &str, outcome: Result<Done, Failure>) {
        if let Some(command) = self.list().iter_mut().find(|command| command.id == id) {
            match outcome {
                Ok(done) => {
                    command.command_status = "SUCCEEDED";
                    command.command_result = Some(done.result);
                }
                Err(failure) => {
                    command.command_status = "FAILED";
                    command.command_error = Some(failure);
                }
            }
        }
        self.ends.send_modify(|count| *count += 1);
        self.ended.notify_one();
    }

    pub(super) async fn answer(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        if self.machine.faults().agent_is_silent {
            return std::future::pending().await;
        }
        let (parts, body) = request.into_parts();
        let path = parts.uri.path().trim_end_matches('/').to_owned();
        let query = parts.uri.query().unwrap_or_default().to_owned();
        let asked = |key: &str| {
            let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            pairs.filter(|(found, _)| *found == key).map(|(_, value)| value).next()
        };
        if matches!(&*path, "" | "/v1") {
            return json(StatusCode::OK, &json!({"name": "emulated agent", "versions": []}));
        }
        if path == "/v1/status" {
            return json(StatusCode::OK, &json!({"started_at": 0, "version": "11.0.0"}));
        }
        let Some(below) = path.strip_prefix("/v1/commands") else {
            return fault(StatusCode::NOT_FOUND, "there is nothing here");
        };
        let refusal = self.machine.faults().agent_refuses;
        if let Some(status) = refusal.and_then(|status| StatusCode::from_u16(status).ok()) {
            return fault(status, "the agent was told to refuse");
        }
        if asked("agent_token") != Some(&self.token) {
            return fault(StatusCode::UNAUTHORIZED, "Agent token is invalid");
        }
        let waits = asked("wait").is_some_and(|wait| wait.eq_ignore_ascii_case("true"));
        match (&parts.method, below.strip_prefix('/')) {
            (&Method::GET, None) => json(StatusCode::OK, &json!({"commands": *self.list()})),
            (&Method::GET, Some(id)) => self.show(id, waits).await,
            (&Method::POST, None) => {
                let Ok(body) = Limited::new(body, LARGEST_BODY).collect().await else {
                    return fault(StatusCode::PAYLOAD_TOO_LARGE, "the command is too large");
                };
                match serde_json::from_slice::<Body>(&body.to_bytes()) {
                    Ok(body) => self.accept(body, waits).await,
                    Err(error) => fault(StatusCode::BAD_REQUEST, &error.to_string()),
                }
            }
            _ => fault(StatusCode::METHOD_NOT_ALLOWED, "that cannot be done here"),
        }
    }

    /// Accepts a command, unless another one is running.
    async fn accept(&self, body: Body, waits: bool) -> Response<Full<Bytes>> {
        let id = uuid::Uuid::new_v4().to_string();
        {
            let mut list = self.list();
            if let Some(busy) = list.iter().find(|command| command.command_status == RUNNING) {
                let why = format!("Agent is busy with {}", busy.command_name);
                return fault(StatusCode::CONFLICT, &why);
            }
            let short = body.name.rsplit('.').next().unwrap_or_default().to_owned();
            list.push(Command {
                id: id.clone(),
                command_name: short,
                command_status: RUNNING,
                command_error: None,
                command_result: None,
                command_progress: None,
            });
        }
        // ironic-python-agent answers a `sync_command` at its end (`extensions/rescue.py`).
        let waits = waits || body.name == "rescue.finalize_rescue";
        let asked = CommandRequest { id: id.clone(), name: body.name, params: body.params };
        // The send fails only if the agent is gone, and its API ends with it.
        let _ = self.jobs.send(asked).await;
        self.show(&id, waits).await
    }

    async fn show(&self, id: &str, waits: bool) -> Response<Full<Bytes>> {
        let mut ends = self.ends.subscribe();
        loop {
            let found = self.list().iter().find(|command| command.id == id).cloned();
            let Some(command) = found else {
                return fault(StatusCode::NOT_FOUND, "there is no such command");
            };
            if !waits || command.command_status != RUNNING || ends.changed().await.is_err() {
                return json(StatusCode::OK, &command);
            }
        }
    }

    fn list(&self) -> MutexGuard<'_, Vec<Command>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes an error in the form that conductors read.
fn fault(status: StatusCode, why: &str) -> Response<Full<Bytes>> {
    let code = if status.is_server_error() { "Server" } else { "Client" };
    json(status, &json!({"faultcode": code, "faultstring": why}))
}
