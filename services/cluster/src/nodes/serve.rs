//! Serving HTTPS to machines, each connection for one request and not for long.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::serve::Listener;
use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt;
use tracing::debug;

/// So many connections at once.
const CONNECTIONS: usize = 512;
/// The most time for a request's headers.
const HEADERS: Duration = Duration::from_secs(10);
/// The most time for a connection, from its first byte to its last.
const WHOLE: Duration = Duration::from_secs(60);
/// How long connections may take to end once the service is told to stop.
const GRACE: Duration = Duration::from_secs(5);

/// Serves `router` with TLS until `stop` is cancelled.
///
/// # Errors
///
/// None as of now: a listener that fails is tried again.
pub async fn serve(
    mut listener: TcpListener,
    tls: TlsAcceptor,
    router: Router,
    stop: CancellationToken,
) -> io::Result<()> {
    let (places, connections) = (Arc::new(Semaphore::new(CONNECTIONS)), TaskTracker::new());
    loop {
        let accepted = async {
            let place = places.clone().acquire_owned().await;
            // axum's own accept, which outlives errors of single connections.
            (place, Listener::accept(&mut listener).await)
        };
        let (place, (stream, from)) = tokio::select! {
            accepted = accepted => accepted,
            () = stop.cancelled() => break,
        };
        let (tls, router) = (tls.clone(), router.clone());
        connections.spawn(async move {
            match tokio::time::timeout(WHOLE, connection(stream, from, tls, router)).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => debug!("the connection of {from} broke: {error}"),
                Err(_) => debug!("the connection of {from} took too long"),
            }
            drop(place);
        });
    }
    connections.close();
    let _ = tokio::time::timeout(GRACE, connections.wait()).await;
    Ok(())
}

async fn connection(
    stream: TcpStream,
    from: SocketAddr,
    tls: TlsAcceptor,
    router: Router,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let stream = tokio::time::timeout(HEADERS, tls.accept(stream)).await??;
    let service = service_fn(move |request: Request<Incoming>| {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(ConnectInfo(from));
        router.clone().oneshot(request)
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEADERS).keep_alive(false);
    Ok(http.serve_connection(TokioIo::new(stream), service).await?)
}
