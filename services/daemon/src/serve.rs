//! Serving HTTP until the service is told to stop.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::tls::{Tls, TlsListener};

/// How long requests under way may take to end once the service is told to stop.
const GRACE: Duration = Duration::from_secs(5);

/// Serves `router` on `listener` until `stop` is cancelled.
///
/// # Errors
///
/// When the listener fails.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    stop: CancellationToken,
) -> io::Result<()> {
    let app = router.into_make_service_with_connect_info::<SocketAddr>();
    let serving = axum::serve(listener, app).with_graceful_shutdown(stop.clone().cancelled_owned());
    tokio::select! {
        served = serving => served,
        () = grace(&stop) => Ok(()),
    }
}

/// The same over TLS where there is a certificate. Handlers are not told the client's address.
///
/// # Errors
///
/// When the listener fails.
pub async fn serve_api(
    listener: TcpListener,
    tls: Option<Tls>,
    router: Router,
    stop: CancellationToken,
) -> io::Result<()> {
    let Some(tls) = tls else { return serve(listener, router, stop).await };
    let listener = TlsListener::new(listener, tls)?;
    let serving =
        axum::serve(listener, router).with_graceful_shutdown(stop.clone().cancelled_owned());
    tokio::select! {
        served = serving => served,
        () = grace(&stop) => Ok(()),
    }
}

async fn grace(stop: &CancellationToken) {
    stop.cancelled().await;
    tokio::time::sleep(GRACE).await;
}
