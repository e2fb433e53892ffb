//! `baremetald.toml`. Unknown keys are refused, and a loaded `Config` is valid.

mod cloud;
mod clusters;
mod conductor;
mod dhcp;
mod leases;
mod provisioning;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use daemon::{ConnectionLimits, DatabaseConfig, LogFormat, TlsFiles};
use notices::NoticesConfig;
use openstack_api::{AuthConfig, AuthKind, HostName, KeystoneAccess, Limits, PlainHttp};
use serde::Deserialize;

pub use cloud::CloudConfig;
pub use clusters::{ClusterdConfig, ClusterdIdentityConfig};
pub use conductor::{BmcConfig, ConductorConfig, ConsolesConfig, ImagesConfig, TimeoutsConfig};
pub use dhcp::{DhcpConfig, DhcpListen, DhcpMode, InvalidDhcp};
pub use leases::{AllocationsConfig, LeasesConfig, ReservationsConfig};
pub use provisioning::ProvisioningConfig;

/// The content of `baremetald.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The folder with the service's key and, by default, its database. Created if missing.
    pub state_dir: PathBuf,
    /// The file with the keys that seal secrets in the database; by default `seal.keys` in the state folder. Services that share a database
    /// share this file.
    #[serde(default)]
    pub seal_keys: Option<PathBuf>,
    /// The format of log lines.
    #[serde(default)]
    pub log: LogFormat,
    /// The listener of the API.
    #[serde(default)]
    pub api: ApiConfig,
    /// The database for all records.
    #[serde(default)]
    pub database: DatabaseConfig,
    #[serde(default)]
    pub conductor: ConductorConfig,
    #[serde(default)]
    pub timeouts: TimeoutsConfig,
    #[serde(default)]
    pub bmc: BmcConfig,
    #[serde(default)]
    pub images: ImagesConfig,
    #[serde(default)]
    pub consoles: ConsolesConfig,
    /// How long nodes are lent, and the stages at the end of a lease.
    #[serde(default)]
    pub leases: LeasesConfig,
    /// The webhook and the mail server for notices.
    #[serde(default)]
    pub notices: NoticesConfig,
    /// How many allocations a project may have.
    #[serde(default)]
    pub allocations: AllocationsConfig,
    /// How many whole nodes a project may reserve.
    #[serde(default)]
    pub reservations: ReservationsConfig,
    /// The OpenStack that machines join as hypervisors, with an administrator's credentials; absent if machines join none.
    #[serde(default)]
    pub cloud: Option<CloudConfig>,
    /// The clusterd that is asked before a compute host is taken out; absent if no clusterd is asked.
    #[serde(default)]
    pub clusters: Option<ClusterdConfig>,
    /// The listener on the provisioning network, and network boot; absent if no machine is booted.
    #[serde(default)]
    pub provisioning: Option<ProvisioningConfig>,
}

/// The listener of the API.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default, try_from = "RawApi")]
pub struct ApiConfig {
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
    /// The limits of each caller.
    pub limits: Limits,
    /// The maximum number of connections, and the timeouts for slow clients.
    pub connections: ConnectionLimits,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RawApi {
    listen: SocketAddr,
    auth: AuthKind,
    htpasswd: Option<PathBuf>,
    keystone: Option<KeystoneAccess>,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
    plain_http: PlainHttp,
    hosts: Vec<HostName>,
    limits: Limits,
    connections: ConnectionLimits,
}

impl Default for RawApi {
    fn default() -> Self {
        // 6385 is Ironic's port for the Bare Metal API.
        RawApi {
            listen: SocketAddr::from(([127, 0, 0, 1], 6385)),
            auth: AuthKind::None,
            htpasswd: None,
            keystone: None,
            certificate: None,
            key: None,
            plain_http: PlainHttp::default(),
            hosts: Vec::new(),
            limits: Limits::default(),
            connections: ConnectionLimits::default(),
        }
    }
}

impl Default for ApiConfig {
    fn default() -> Self {
        ApiConfig::new(RawApi::default(), AuthConfig::None, None)
    }
}

impl ApiConfig {
    fn new(raw: RawApi, access: AuthConfig, tls: Option<TlsFiles>) -> Self {
        let RawApi { listen, plain_http, hosts, limits, connections, .. } = raw;
        ApiConfig { listen, access, tls, plain_http, hosts, limits, connections }
    }
}

impl TryFrom<RawApi> for ApiConfig {
    type Error = &'static str;

    fn try_from(mut raw: RawApi) -> Result<Self, Self::Error> {
        let access = AuthConfig::new(raw.auth, raw.htpasswd.take(), raw.keystone.take())?;
        let tls = TlsFiles::new(raw.certificate.take(), raw.key.take())?;
        Ok(ApiConfig::new(raw, access, tls))
    }
}

impl Config {
    /// Returns the URL of the database.
    pub fn database_url(&self) -> std::io::Result<String> {
        self.database
            .url_or(|| format!("sqlite://{}", self.state_dir.join("baremetal.db").display()))
    }

    /// Returns the path of the service's key.
    pub fn key_file(&self) -> PathBuf {
        self.state_dir.join("service.key")
    }

    /// Returns the path of the keys that seal secrets.
    pub fn seal_keys_file(&self) -> PathBuf {
        self.seal_keys.clone().unwrap_or_else(|| self.state_dir.join("seal.keys"))
    }

    /// Returns the path of the file into which the service writes the addresses of its listeners.
    pub fn listeners_file(&self) -> PathBuf {
        self.state_dir.join("listeners.json")
    }
}

/// Loads a configuration file.
pub fn load(path: &Path) -> Result<Config, daemon::ConfigError> {
    daemon::load(path)
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    /// Asserts the error for a configuration file, or "ok".
    #[track_caller]
    pub(super) fn check(text: &str, want: Expect) {
        let answer = match toml::from_str::<Config>(text) {
            Ok(_) => "ok".to_owned(),
            Err(error) => error.message().to_owned(),
        };
        want.assert_eq(&answer);
    }

    #[test]
    fn a_state_folder_is_enough() {
        check("state_dir = '/tmp/s'", expect!["ok"]);
    }

    #[test]
    fn unknown_keys_are_refused_by_name() {
        check(
            "state_dir = '/tmp/s'\n[api]\nlisten_on = 'x'",
            expect![[
                r#"unknown field `listen_on`, expected one of `listen`, `auth`, `htpasswd`, `keystone`, `certificate`, `key`, `plain_http`, `hosts`, `limits`, `connections`"#
            ]],
        );
    }
}
