//! Serves HTTP until the service is told to stop.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, Request};
use axum::http::{Response, StatusCode};
use axum::serve::Listener;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::{JoinError, JoinSet};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tower::ServiceExt;
use tracing::{debug, error};

use crate::bodies::{RequestBody, ResponseBody};
use crate::client_counts::{ClientConnection, ClientCounts};
use crate::connections::{LONGEST_HEAD, MOST_HEADERS};
use crate::timeouts::{RequestState, TimeoutStream};
use crate::tls::Tls;
use crate::{ConnectionLimits, host, proxy_header};

/// How long requests in progress may take to finish once the service is told to stop.
const GRACE: Duration = Duration::from_secs(5);

/// Serves `router` on `listener` until `stop` is cancelled. Handlers can extract the address of the client as `ConnectInfo<SocketAddr>`.
///
/// # Errors
///
/// Never, at present: a failed accept is retried.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    limits: ConnectionLimits,
    stop: CancellationToken,
) -> io::Result<()> {
    accept(listener, None, router, limits, stop).await;
    Ok(())
}

/// Like [`serve`], over TLS.
///
/// # Errors
///
/// Never, at present.
pub async fn serve_tls(
    listener: TcpListener,
    tls: TlsAcceptor,
    router: Router,
    limits: ConnectionLimits,
    stop: CancellationToken,
) -> io::Result<()> {
    accept(listener, Some(tls), router, limits, stop).await;
    Ok(())
}

/// Like [`serve`], over TLS if `tls` is set. The certificate is reloaded when its files change.
///
/// # Errors
///
/// The signal handler for SIGHUP cannot be registered, or the certificate cannot be served.
pub async fn serve_api(
    listener: TcpListener,
    tls: Option<Tls>,
    router: Router,
    limits: ConnectionLimits,
    stop: CancellationToken,
) -> io::Result<()> {
    let Some(tls) = tls else { return serve(listener, router, limits, stop).await };
    let acceptor = tls.acceptor().map_err(io::Error::other)?;
    let _following = AbortOnDropHandle::new(tokio::spawn(tls.follow()?));
    serve_tls(listener, acceptor, router, limits, stop).await
}

async fn accept(
    mut listener: TcpListener,
    tls: Option<TlsAcceptor>,
    router: Router,
    limits: ConnectionLimits,
    stop: CancellationToken,
) {
    let room = Arc::new(Semaphore::new(limits.at_most.get()));
    let (neighbours, mut open) = (ClientCounts::default(), JoinSet::new());
    loop {
        let next = async {
            let place = room.clone().acquire_owned().await;
            // axum's accept continues after an error of a single connection.
            (place, Listener::accept(&mut listener).await)
        };
        let (place, (stream, from)) = tokio::select! {
            () = stop.cancelled() => break,
            Some(ended) = open.join_next() => {
                tell(ended);
                continue;
            }
            next = next => next,
        };
        // The clients of a load balancer are counted once they are known.
        let is_proxy = limits.proxy_protocol_from.contain(from.ip());
        let neighbour = if is_proxy { None } else { counted(&neighbours, from, limits) };
        if neighbour.is_none() && !is_proxy {
            continue;
        }
        let connection = Connection { from, router: router.clone(), limits, stop: stop.clone() };
        let (tls, neighbours) = (tls.clone(), neighbours.clone());
        open.spawn(async move {
            if is_proxy {
                connection.of_proxy(stream, tls, &neighbours).await;
            } else {
                connection.begin(stream, tls).await;
            }
            drop((place, neighbour));
        });
    }
    drop(listener);
    let ending = async {
        while let Some(ended) = open.join_next().await {
            tell(ended);
        }
    };
    // Connections that are still open after the grace period are dropped.
    let _ = tokio::time::timeout(GRACE, ending).await;
}

/// Counts a connection of this client; `None` if the client has too many.
fn counted(
    neighbours: &ClientCounts,
    from: SocketAddr,
    limits: ConnectionLimits,
) -> Option<ClientConnection> {
    let counted = neighbours.enter(from.ip(), limits.from_one_address.get());
    if counted.is_none() {
        debug!("closing a connection from {from}: the address has too many connections");
    }
    counted
}

fn tell(ended: Result<(), JoinError>) {
    if let Err(why) = ended {
        error!("a request handler failed: {why}");
    }
}

/// The connection of one client.
struct Connection {
    from: SocketAddr,
    router: Router,
    limits: ConnectionLimits,
    stop: CancellationToken,
}

impl Connection {
    /// Learns from a load balancer who the client is, then serves.
    async fn of_proxy(
        self,
        mut stream: TcpStream,
        tls: Option<TlsAcceptor>,
        neighbours: &ClientCounts,
    ) {
        let (proxy, limits) = (self.from, self.limits);
        let header = proxy_header::read(&mut stream);
        let from = match tokio::time::timeout(limits.header_timeout, header).await {
            Ok(Ok(client)) => client.unwrap_or(proxy),
            Ok(Err(why)) => return debug!("closing a connection from the proxy {proxy}: {why}"),
            Err(_) => return debug!("the PROXY header of {proxy} timed out"),
        };
        let Some(_neighbour) = counted(neighbours, from, limits) else { return };
        Connection { from, ..self }.begin(stream, tls).await;
    }

    async fn begin(self, stream: TcpStream, tls: Option<TlsAcceptor>) {
        match tls {
            Some(tls) => self.handshake(stream, tls).await,
            None => self.serve(stream).await,
        }
    }

    /// Completes the TLS handshake, then serves.
    async fn handshake(self, stream: TcpStream, tls: TlsAcceptor) {
        let from = self.from;
        match tokio::time::timeout(self.limits.handshake_timeout, tls.accept(stream)).await {
            Ok(Ok(stream)) => self.serve(stream).await,
            Ok(Err(why)) => debug!("TLS handshake with {from} failed: {why}"),
            Err(_) => debug!("TLS handshake with {from} timed out"),
        }
    }

    async fn serve(self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
        let Connection { from, router, limits, stop } = self;
        let turn = RequestState::default();
        let stream = TokioIo::new(TimeoutStream::new(stream, turn.clone(), limits));
        let service = service_fn(move |request: Request<Incoming>| {
            let (turn, answering) = (turn.clone(), turn.begin());
            let (mut head, body) = request.into_parts();
            head.extensions.insert(ConnectInfo(from));
            let refusal = host::refusal(&head);
            let request = Request::from_parts(head, RequestBody::body(body, limits));
            let router = router.clone();
            async move {
                let answer: Result<Response<Body>, Infallible> = match refusal {
                    Some(refusal) => Ok(refusal),
                    None => router.oneshot(request).await,
                };
                let switches = |it: &Response<Body>| it.status() == StatusCode::SWITCHING_PROTOCOLS;
                if answer.as_ref().is_ok_and(switches) {
                    turn.mark_upgraded();
                }
                answer.map(|answer| answer.map(|body| ResponseBody::new(body, answering)))
            }
        });
        let mut http = http1::Builder::new();
        http.max_buf_size(LONGEST_HEAD).max_headers(MOST_HEADERS);
        http.keep_alive(!limits.idle_timeout.is_zero());
        // `TimeoutStream` has the timeout for the head of a request.
        http.header_read_timeout(None);
        let mut serving = std::pin::pin!(http.serve_connection(stream, service).with_upgrades());
        let served = tokio::select! {
            served = serving.as_mut() => served,
            () = stop.cancelled() => {
                serving.as_mut().graceful_shutdown();
                serving.await
            }
        };
        if let Err(why) = served {
            debug!("connection from {from} failed: {why}");
        }
    }
}
