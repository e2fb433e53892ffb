//! An HTTP client of the API with one persistent connection.

use std::net::SocketAddr;

use anyhow::Context;
use bytes::Bytes;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

/// The requested microversion. Other implementations were measured with the same one.
const VERSION: &str = "1.81";

/// A connection to the API. Some servers close it after a number of requests; the next request makes a new one.
pub(crate) struct Client {
    address: SocketAddr,
    authorization: Option<&'static str>,
    sender: SendRequest<Full<Bytes>>,
}

impl Client {
    /// Connects without credentials.
    pub(crate) async fn connect(address: SocketAddr) -> std::io::Result<Client> {
        Client::by(address, None).await
    }

    /// Connects and sends this `Authorization` header with every request.
    pub(crate) async fn connect_as(
        address: SocketAddr,
        authorization: &'static str,
    ) -> std::io::Result<Client> {
        Client::by(address, Some(authorization)).await
    }

    async fn by(
        address: SocketAddr,
        authorization: Option<&'static str>,
    ) -> std::io::Result<Client> {
        let sender = connected(address).await?;
        Ok(Client { address, authorization, sender })
    }

    /// Sends one request and reads the whole answer.
    pub(crate) async fn ask(&mut self, call: &Call) -> anyhow::Result<(StatusCode, Bytes)> {
        let mut request = Request::builder()
            .method(&call.method)
            .uri(&call.path)
            .header("host", self.address.to_string())
            .header("accept", "application/json")
            .header("x-openstack-ironic-api-version", VERSION);
        if let Some(proof) = self.authorization {
            request = request.header("authorization", proof);
        }
        let body = match &call.body {
            Some(body) => {
                request = request.header("content-type", "application/json");
                Bytes::from(serde_json::to_vec(body)?)
            }
            None => Bytes::new(),
        };
        if self.sender.ready().await.is_err() {
            self.sender = connected(self.address).await.context("cannot connect again")?;
        }
        let answer = self.sender.send_request(request.body(Full::new(body))?).await?;
        let status = answer.status();
        Ok((status, answer.into_body().collect().await?.to_bytes()))
    }

    /// Sends a GET request. Fails unless the status is a success.
    pub(crate) async fn get(&mut self, path: &str) -> anyhow::Result<Bytes> {
        let (status, answer) = self.ask(&Call::get(path)).await?;
        let text = || String::from_utf8_lossy(&answer[..answer.len().min(300)]).into_owned();
        anyhow::ensure!(status.is_success(), "GET {path}: {status} {}", text());
        Ok(answer)
    }
}

async fn connected(address: SocketAddr) -> std::io::Result<SendRequest<Full<Bytes>>> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let (sender, connection) =
        handshake(TokioIo::new(stream)).await.map_err(std::io::Error::other)?;
    // The connection ends with its sender. The sender also gets its errors.
    tokio::spawn(connection);
    Ok(sender)
}

/// One request to the API.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) body: Option<Value>,
}

impl Call {
    pub(crate) fn get(path: impl Into<String>) -> Call {
        Call { method: Method::GET, path: path.into(), body: None }
    }

    pub(crate) fn send(method: Method, path: impl Into<String>, body: Value) -> Call {
        Call { method, path: path.into(), body: Some(body) }
    }
}
