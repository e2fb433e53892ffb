//! Serving HTTP until the service is told to stop.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::serve::{Listener, ListenerExt};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::tls::{Tls, TlsListener};

/// How long requests under way may take to end once the service is told to stop.
const GRACE: Duration = Duration::from_secs(5);

/// Serves `router` on `listener` until `stop` is cancelled. Handlers may ask for the client's address, as
/// `ConnectInfo<SocketAddr>`.
///
/// # Errors
///
/// When the listener fails.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    stop: CancellationToken,
) -> io::Result<()> {
    serve_on(listener, router, stop).await
}

/// The same over TLS where there is a certificate.
///
/// # Errors
///
/// When the listener fails, or signals cannot be listened for.
pub async fn serve_api(
    listener: TcpListener,
    tls: Option<Tls>,
    router: Router,
    stop: CancellationToken,
) -> io::Result<()> {
    match tls {
        Some(tls) => serve_on(TlsListener::new(listener, tls)?, router, stop).await,
        None => serve_on(listener, router, stop).await,
    }
}

async fn serve_on(
    listener: impl Listener<Addr = SocketAddr>,
    router: Router,
    stop: CancellationToken,
) -> io::Result<()> {
    // axum tells where clients are for its own listeners, and for any that is tapped.
    let listener = listener.tap_io(|_| {});
    let app = router.into_make_service_with_connect_info::<SocketAddr>();
    let serving = axum::serve(listener, app).with_graceful_shutdown(stop.clone().cancelled_owned());
    tokio::select! {
        served = serving => served,
        () = grace(&stop) => Ok(()),
    }
}

async fn grace(stop: &CancellationToken) {
    stop.cancelled().await;
    tokio::time::sleep(GRACE).await;
}
