//! An HTTP/1.1 server, with or without TLS, for any request handler.

use std::convert::Infallible;
use std::io;
use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use serde::Serialize;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinError, JoinSet};
use tokio_rustls::TlsAcceptor;
use tracing::debug;

/// How long a client may take for its headers or its TLS handshake.
const PATIENCE: Duration = Duration::from_secs(30);

/// Answers requests on `listener` until dropped.
pub async fn run<H, F>(listener: TcpListener, tls: Option<TlsAcceptor>, handler: H)
where
    H: Fn(Request<Incoming>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<Full<Bytes>>> + Send + 'static,
{
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(connection(stream, tls.clone(), handler.clone()));
                }
                // The usual error is too many open files. A pause lets some close.
                Err(error) => {
                    debug!(%error, "cannot accept a connection");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            },
            Some(ended) = connections.join_next() => carry_panic(ended),
        }
    }
}

/// An answer with a JSON body.
pub fn json(status: StatusCode, body: &impl Serialize) -> Response<Full<Bytes>> {
    let body = serde_json::to_vec(body).unwrap_or_default();
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// Turns a panic of a task into a panic of the program.
pub(crate) fn carry_panic(ended: Result<(), JoinError>) {
    if let Err(error) = ended
        && error.is_panic()
    {
        std::panic::resume_unwind(error.into_panic());
    }
}

async fn connection<H, F>(stream: TcpStream, tls: Option<TlsAcceptor>, handler: H)
where
    H: Fn(Request<Incoming>) -> F,
    F: Future<Output = Response<Full<Bytes>>>,
{
    let served = match tls {
        None => speak(stream, handler).await,
        Some(tls) => match tokio::time::timeout(PATIENCE, tls.accept(stream)).await {
            Ok(Ok(stream)) => speak(stream, handler).await,
            Ok(Err(error)) => Err(error),
            Err(_) => Err(io::ErrorKind::TimedOut.into()),
        },
    };
    if let Err(error) = served {
        debug!(%error, "a connection ended badly");
    }
}

async fn speak<S, H, F>(stream: S, handler: H) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    H: Fn(Request<Incoming>) -> F,
    F: Future<Output = Response<Full<Bytes>>>,
{
    let service = service_fn(|request| {
        let answer = handler(request);
        async move { Ok::<_, Infallible>(answer.await) }
    });
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades()
        .await
        .map_err(io::Error::other)
}
