//! The agent's own API: `https` on port 9999, for the conductor only.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use agent_protocol::{CommandList, CommandRequest};
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Json, Response};
use axum::routing::get;
use axum::serve::Listener;
use serde::Deserialize;
use serde_json::json;
use subtle::ConstantTimeEq;
use tokio::io;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tracing::debug;

use crate::commands::Commands;
use crate::conductor::AGENT_VERSION;
use crate::error::chain;
use crate::machine::Machine;
use crate::task::Task;

/// Fits a config drive of 64 MiB that does not compress, in base64, and the other parameters.
const LARGEST_BODY: usize = 96 << 20;
const HANDSHAKE: Duration = Duration::from_secs(10);
const CONNECTIONS: usize = 32;

/// The state of the API's handlers.
pub struct Service {
    /// The secret that agent and conductor share.
    pub token: String,
    pub commands: Arc<Commands>,
    pub machine: Arc<Machine>,
    pub started: SystemTime,
}

#[derive(Deserialize)]
struct CommandQuery {
    #[serde(default)]
    agent_token: String,
    #[serde(default)]
    wait: String,
    record_version: Option<i64>,
}

impl CommandQuery {
    fn waits(&self) -> bool {
        self.wait.eq_ignore_ascii_case("true")
    }
}

/// The routes, each with and without a final slash, because clients use both.
pub fn routes(service: Arc<Service>) -> Router {
    let commands = get(list_commands).post(run_command);
    Router::new()
        .route("/", get(root))
        .route("/v1", get(root))
        .route("/v1/", get(root))
        .route("/v1/status", get(status))
        .route("/v1/commands", commands.clone())
        .route("/v1/commands/", commands)
        .route("/v1/commands/{id}", get(show_command))
        .fallback(|| async { ApiError::new(StatusCode::NOT_FOUND, "no such route") })
        .with_state(service)
}

async fn root() -> Response {
    let version = json!({"id": "v1", "links": []});
    let body = json!({
        "name": "ramdisk-agent", "description": "an agent that speaks ironic-python-agent's protocol",
        "versions": [version], "default_version": version, "id": "v1",
    });
    Json(body).into_response()
}

async fn status(State(service): State<Arc<Service>>) -> Response {
    let started = service.started.duration_since(UNIX_EPOCH).unwrap_or_default();
    Json(json!({"started_at": started.as_secs_f64(), "version": AGENT_VERSION})).into_response()
}

async fn list_commands(
    State(service): State<Arc<Service>>,
    Query(asked): Query<CommandQuery>,
) -> Result<Json<CommandList>, ApiError> {
    service.admit(&asked)?;
    Ok(Json(CommandList { commands: service.commands.all() }))
}

async fn show_command(
    State(service): State<Arc<Service>>,
    Path(id): Path<String>,
    Query(asked): Query<CommandQuery>,
) -> Result<Response, ApiError> {
    service.admit(&asked)?;
    let command = match asked.waits() {
        true => service.commands.ended(&id).await,
        false => service.commands.get(&id),
    };
    let command = command.ok_or(ApiError::new(StatusCode::NOT_FOUND, "no such command"))?;
    Ok(Json(command).into_response())
}

async fn run_command(
    State(service): State<Arc<Service>>,
    Query(asked): Query<CommandQuery>,
    body: Body,
) -> Result<Response, ApiError> {
    service.admit(&asked)?;
    let body = to_bytes(body, LARGEST_BODY)
        .await
        .map_err(|_| ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "the command is too large"))?;
    let request: CommandRequest = serde_json::from_slice(&body).map_err(|error| {
        ApiError::new(StatusCode::BAD_REQUEST, &format!("not a command: {error}"))
    })?;
    let task = Task::parse(request)
        .map_err(|error| ApiError::new(StatusCode::BAD_REQUEST, &chain(&error)))?;
    let wait = asked.waits() || !task.is_long();
    let id = service
        .commands
        .start(&service.machine, task, asked.record_version)
        .map_err(|why| ApiError::new(StatusCode::CONFLICT, &why.to_string()))?;
    let command = match wait {
        true => service.commands.ended(&id).await,
        false => service.commands.get(&id),
    };
    Ok(Json(command).into_response())
}

impl Service {
    fn admit(&self, asked: &CommandQuery) -> Result<(), ApiError> {
        match bool::from(asked.agent_token.as_bytes().ct_eq(self.token.as_bytes())) {
            true => Ok(()),
            false => Err(ApiError::new(StatusCode::UNAUTHORIZED, "the agent token is not right")),
        }
    }
}

/// An error in the form that conductors read.
#[derive(Debug)]
struct ApiError {
    status: StatusCode,
    text: String,
}

impl ApiError {
    fn new(status: StatusCode, text: &str) -> Self {
        ApiError { status, text: text.to_owned() }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let faultcode = if self.status.is_server_error() { "Server" } else { "Client" };
        let body = json!({
            "faultcode": faultcode, "faultstring": self.text,
            "code": self.status.as_u16(), "message": self.text,
        });
        (self.status, Json(body)).into_response()
    }
}

/// Accepts TLS connections. A slow handshake does not delay other clients.
pub struct TlsListener {
    address: SocketAddr,
    ready: mpsc::Receiver<(TlsStream<TcpStream>, SocketAddr)>,
}

impl TlsListener {
    /// Serves `tcp` with TLS.
    pub fn new(mut tcp: TcpListener, tls: TlsAcceptor) -> io::Result<Self> {
        let address = tcp.local_addr()?;
        let (send, ready) = mpsc::channel(CONNECTIONS);
        let places = Arc::new(Semaphore::new(CONNECTIONS));
        tokio::spawn(async move {
            while !send.is_closed() {
                let Ok(place) = places.clone().acquire_owned().await else { return };
                // axum's accept loop survives errors of single connections.
                let (stream, from) = Listener::accept(&mut tcp).await;
                let (tls, send) = (tls.clone(), send.clone());
                tokio::spawn(async move {
                    match tokio::time::timeout(HANDSHAKE, tls.accept(stream)).await {
                        Ok(Ok(stream)) => drop(send.send((stream, from)).await),
                        Ok(Err(error)) => debug!("no TLS with {from}: {error}"),
                        Err(_) => debug!("no TLS with {from} in time"),
                    }
                    drop(place);
                });
            }
        });
        Ok(TlsListener { address, ready })
    }
}

impl Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        match self.ready.recv().await {
            Some(accepted) => accepted,
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.address)
    }
}
