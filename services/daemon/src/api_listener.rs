//! The listener of an API: the keys of the section `[api]` that both services have, and its start.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use axum::Router;
use metrics::RequestMetrics;
use openstack_api::{
    AccessError, AllowedHostNames, ApiSettings, Auth, AuthConfig, AuthKind, HostName,
    KeystoneAccess, Limits, ListenerRefused, PlainHttp, Scheme, TrustedProxies,
};
use serde::de::{Deserialize, Deserializer, Error};
use spans::Tracer;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::{ConnectionLimits, Tls, TlsError, TlsFiles, serve_api};

/// The configuration of an API's listener. Without the key `listen`, the listener is on loopback at this port.
#[derive(Clone, Debug)]
pub struct ApiListenerConfig<const DEFAULT_PORT: u16> {
    /// The IP address and port.
    pub listen: SocketAddr,
    /// How callers are authenticated.
    pub access: AuthConfig,
    /// The certificate and key; without them the listener speaks HTTP.
    pub tls: Option<TlsFiles>,
    /// Where the listener may be reached without TLS.
    pub plain_http: PlainHttp,
    /// The host names that requests may name, besides this host's own names and the address that it listens on.
    pub hosts: Vec<HostName>,
    /// The proxies whose headers `X-Forwarded-For`, `-Proto`, `-Host` and `-Prefix` are trusted.
    pub trusted_proxies: TrustedProxies,
    pub limits: Limits,
    /// The maximum number of connections, and the timeouts for slow clients.
    pub connections: ConnectionLimits,
}

/// The keys of the section `[api]`, before the rules across keys are checked.
#[derive(Default, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ApiListenerKeys {
    listen: Option<SocketAddr>,
    auth: AuthKind,
    htpasswd: Option<PathBuf>,
    keystone: Option<KeystoneAccess>,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
    plain_http: PlainHttp,
    hosts: Vec<HostName>,
    trusted_proxies: TrustedProxies,
    limits: Limits,
    connections: ConnectionLimits,
}

/// Why the listener of an API cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum ApiListenerError {
    #[error(transparent)]
    Access(#[from] AccessError),
    #[error("api.listen")]
    Refused(#[from] ListenerRefused),
    #[error("cannot use the certificate of the API's listener (api.certificate, api.key)")]
    Certificate(#[from] TlsError),
    #[error("cannot listen on {address} (api.listen)")]
    Bind { address: SocketAddr, source: io::Error },
}

impl<'de, const DEFAULT_PORT: u16> Deserialize<'de> for ApiListenerConfig<DEFAULT_PORT> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let keys = ApiListenerKeys::deserialize(from)?;
        let access = AuthConfig::new(keys.auth, keys.htpasswd, keys.keystone);
        let tls = TlsFiles::new(keys.certificate, keys.key);
        let default = ApiListenerConfig::<DEFAULT_PORT>::default();
        Ok(ApiListenerConfig {
            listen: keys.listen.unwrap_or(default.listen),
            access: access.map_err(D::Error::custom)?,
            tls: tls.map_err(D::Error::custom)?,
            plain_http: keys.plain_http,
            hosts: keys.hosts,
            trusted_proxies: keys.trusted_proxies,
            limits: keys.limits,
            connections: keys.connections,
        })
    }
}

impl<const DEFAULT_PORT: u16> Default for ApiListenerConfig<DEFAULT_PORT> {
    fn default() -> Self {
        ApiListenerConfig {
            listen: (Ipv4Addr::LOCALHOST, DEFAULT_PORT).into(),
            access: AuthConfig::None,
            tls: None,
            plain_http: PlainHttp::default(),
            hosts: Vec::new(),
            trusted_proxies: TrustedProxies::default(),
            limits: Limits::default(),
            connections: ConnectionLimits::default(),
        }
    }
}

impl<const DEFAULT_PORT: u16> ApiListenerConfig<DEFAULT_PORT> {
    /// Opens the authentication of callers, and checks that it is safe for the address of the listener.
    pub fn authentication(&self) -> Result<Auth, ApiListenerError> {
        let auth = self.access.open()?;
        auth.check_listener(self.listen, self.scheme(), self.plain_http)?;
        Ok(auth)
    }

    /// Opens the files that the section names. Listens to nothing.
    pub fn check(&self) -> Result<(), ApiListenerError> {
        self.authentication()?;
        self.certificate()?;
        Ok(())
    }

    /// Opens the listener. Answers nothing yet.
    pub async fn open(&self) -> Result<ApiListener, ApiListenerError> {
        let tls = self.certificate()?;
        let failed = |source| ApiListenerError::Bind { address: self.listen, source };
        let listener = TcpListener::bind(self.listen).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(ApiListener { address, listener, tls, connections: self.connections })
    }

    /// Returns the settings of the API that depend on its listener.
    pub fn settings(&self) -> ApiSettings {
        ApiSettings {
            scheme: self.scheme(),
            proxies: self.trusted_proxies,
            hosts: AllowedHostNames::new(self.listen.ip(), self.hosts.clone()),
            limits: self.limits,
            requests: RequestMetrics::default(),
            tracer: Tracer::default(),
        }
    }

    fn scheme(&self) -> Scheme {
        if self.tls.is_some() { Scheme::Https } else { Scheme::Http }
    }

    fn certificate(&self) -> Result<Option<Tls>, TlsError> {
        self.tls.clone().map(TlsFiles::open).transpose()
    }
}

/// The open listener of an API.
#[derive(Debug)]
pub struct ApiListener {
    pub address: SocketAddr,
    listener: TcpListener,
    tls: Option<Tls>,
    connections: ConnectionLimits,
}

impl ApiListener {
    /// Serves `router` until `stop` is cancelled, as [`serve_api`] does.
    pub async fn serve(self, router: Router, stop: CancellationToken) -> io::Result<()> {
        serve_api(self.listener, self.tls, router, self.connections, stop).await
    }
}
