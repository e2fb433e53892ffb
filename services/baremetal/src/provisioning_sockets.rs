//! The sockets of HTTP and HTTPS on the provisioning network.

use std::net::SocketAddr;

use anyhow::Context;
use axum::Router;
use daemon::{ConnectionLimits, Tls, TlsFiles};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use url::Url;

use crate::config::{HttpsConfig, ProvisioningConfig};

/// The open sockets, before they serve.
pub(crate) struct ProvisioningSockets {
    http: TcpListener,
    /// The URL by which machines reach the listener.
    pub(crate) url: Url,
    https: Option<HttpsSocket>,
    connections: ConnectionLimits,
}

struct HttpsSocket {
    listener: TcpListener,
    tls: Tls,
    url: Url,
}

impl ProvisioningSockets {
    /// Opens the sockets, and reads the certificate.
    pub(crate) async fn open(section: &ProvisioningConfig) -> anyhow::Result<Self> {
        let (http, bound) = bind(section.listen, "provisioning.listen").await?;
        let https = match &section.https {
            Some(section) => Some(open_https(section).await?),
            None => None,
        };
        let (url, connections) = (section.base_url(bound), section.connections);
        Ok(ProvisioningSockets { http, url, https, connections })
    }

    /// The URL by which firmware loads iPXE over HTTPS.
    pub(crate) fn https_url(&self) -> Option<Url> {
        self.https.as_ref().map(|https| https.url.clone())
    }

    pub(crate) fn address(&self) -> Option<SocketAddr> {
        self.http.local_addr().ok()
    }

    pub(crate) fn https_address(&self) -> Option<SocketAddr> {
        self.https.as_ref()?.listener.local_addr().ok()
    }

    /// Serves until `stop` is cancelled: all routes by HTTP, and the boot loaders by HTTPS too.
    pub(crate) fn serve(
        self,
        routes: Router,
        loaders: Router,
        tasks: &mut JoinSet<anyhow::Result<()>>,
        stop: &CancellationToken,
    ) {
        let ProvisioningSockets { http, https, connections, .. } = self;
        let serving = daemon::serve(http, routes, connections, stop.clone());
        tasks.spawn(async move { serving.await.context("a listener failed") });
        if let Some(HttpsSocket { listener, tls, .. }) = https {
            let serving =
                daemon::serve_api(listener, Some(tls), loaders, connections, stop.clone());
            tasks.spawn(async move { serving.await.context("a listener failed") });
        }
    }
}

async fn open_https(section: &HttpsConfig) -> anyhow::Result<HttpsSocket> {
    let tls = certificate(section)?;
    let (listener, bound) = bind(section.listen, "provisioning.https.listen").await?;
    Ok(HttpsSocket { listener, tls, url: section.base_url(bound) })
}

/// Reads the certificate and its key.
pub(crate) fn certificate(section: &HttpsConfig) -> anyhow::Result<Tls> {
    let HttpsConfig { certificate, key, .. } = section.clone();
    let files = TlsFiles { certificate, key };
    files.open().context("cannot serve HTTPS (provisioning.https)")
}

async fn bind(address: SocketAddr, key: &str) -> anyhow::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind(address)
        .await
        .with_context(|| format!("cannot listen on {address} ({key})"))?;
    let bound = listener.local_addr().context("a listener has no address")?;
    Ok((listener, bound))
}
