//! `baremetald.toml`. Unknown keys are refused; a loaded `Config` is a valid one.

mod cloud;
mod clusters;
mod conductor;
mod dhcp;
mod leases;
mod provisioning;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use daemon::{Connections, LogFormat, TlsFiles};
use notices::NoticesConfig;
use openstack_api::{Access, AuthKind, HostName, KeystoneAccess, Limits, PlainHttp};
use serde::Deserialize;

pub use cloud::CloudConfig;
pub use clusters::{ClustersAs, ClustersConfig};
pub use conductor::{BmcConfig, ConductorConfig, ConsolesConfig, ImagesConfig, TimeoutsConfig};
pub use dhcp::{DhcpConfig, DhcpListen, DhcpMode, InvalidDhcp};
pub use leases::{AllocationsConfig, LeasesConfig, ReservationsConfig};
pub use provisioning::ProvisioningConfig;

/// `baremetald.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Where the service keeps its key, and its database unless told otherwise. Made when it is not there.
    pub state_dir: PathBuf,
    /// The keys that seal secrets in the database; `seal.keys` in the state folder unless told otherwise. Services that
    /// share a database share it.
    #[serde(default)]
    pub seal_keys: Option<PathBuf>,
    /// How logs look.
    #[serde(default)]
    pub log: LogFormat,
    /// The operators' listener.
    #[serde(default)]
    pub api: ApiConfig,
    /// Where everything is kept.
    #[serde(default)]
    pub database: DatabaseConfig,
    /// How the conductor behaves.
    #[serde(default)]
    pub conductor: ConductorConfig,
    /// How long things may take.
    #[serde(default)]
    pub timeouts: TimeoutsConfig,
    /// How BMCs are treated.
    #[serde(default)]
    pub bmc: BmcConfig,
    /// Where images come from.
    #[serde(default)]
    pub images: ImagesConfig,
    /// How much serial consoles may take.
    #[serde(default)]
    pub consoles: ConsolesConfig,
    /// How long nodes are lent, and what happens then.
    #[serde(default)]
    pub leases: LeasesConfig,
    /// Who is told outside of what happens.
    #[serde(default)]
    pub notices: NoticesConfig,
    /// How many nodes projects may ask for.
    #[serde(default)]
    pub allocations: AllocationsConfig,
    /// Whole nodes that projects may have for a time.
    #[serde(default)]
    pub reservations: ReservationsConfig,
    /// The cloud that machines join as hypervisors, as an administrator of it; absent where they join none.
    #[serde(default)]
    pub cloud: Option<CloudConfig>,
    /// clusterd, which is asked before a machine is taken out that carries others'; absent where nobody is asked.
    #[serde(default)]
    pub clusters: Option<ClustersConfig>,
    /// The listener on the provisioning network, and network boot; absent where no machine is booted.
    #[serde(default)]
    pub provisioning: Option<ProvisioningConfig>,
}

/// The operators' listener.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default, try_from = "RawApi")]
pub struct ApiConfig {
    /// Address and port.
    pub listen: SocketAddr,
    /// How callers prove who they are.
    pub access: Access,
    /// What it shows of itself over TLS; without it, HTTP is spoken.
    pub tls: Option<TlsFiles>,
    /// Where it may be reached without TLS.
    pub plain_http: PlainHttp,
    /// The hosts under which it is asked, besides this machine's own names and the address it listens at.
    pub hosts: Vec<HostName>,
    /// How much callers may have.
    pub limits: Limits,
    /// How many connections there are, and how long the slow are waited for.
    pub connections: Connections,
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
    connections: Connections,
}

impl Default for RawApi {
    fn default() -> Self {
        // 6385 is the Bare Metal API's customary port.
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
            connections: Connections::default(),
        }
    }
}

impl Default for ApiConfig {
    fn default() -> Self {
        ApiConfig::new(RawApi::default(), Access::None, None)
    }
}

impl ApiConfig {
    fn new(raw: RawApi, access: Access, tls: Option<TlsFiles>) -> Self {
        let RawApi { listen, plain_http, hosts, limits, connections, .. } = raw;
        ApiConfig { listen, access, tls, plain_http, hosts, limits, connections }
    }
}

impl TryFrom<RawApi> for ApiConfig {
    type Error = &'static str;

    fn try_from(mut raw: RawApi) -> Result<Self, Self::Error> {
        let access = Access::new(raw.auth, raw.htpasswd.take(), raw.keystone.take())?;
        let tls = TlsFiles::new(raw.certificate.take(), raw.key.take())?;
        Ok(ApiConfig::new(raw, access, tls))
    }
}

/// Where everything is kept.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DatabaseConfig {
    /// `sqlite:///PATH` or `postgres://…`; a SQLite file in the state folder unless told otherwise.
    pub url: Option<String>,
    /// A file that holds the URL, for one with a password in it.
    pub url_file: Option<PathBuf>,
}

impl Config {
    /// The URL of the database.
    pub fn database_url(&self) -> std::io::Result<String> {
        match (&self.database.url, &self.database.url_file) {
            (Some(url), _) => Ok(url.clone()),
            (None, Some(file)) => Ok(std::fs::read_to_string(file)?.trim().to_owned()),
            (None, None) => {
                Ok(format!("sqlite://{}", self.state_dir.join("baremetal.db").display()))
            }
        }
    }

    /// Where the service's key is.
    pub fn key_file(&self) -> PathBuf {
        self.state_dir.join("service.key")
    }

    /// Where the keys are that seal secrets.
    pub fn seal_keys_file(&self) -> PathBuf {
        self.seal_keys.clone().unwrap_or_else(|| self.state_dir.join("seal.keys"))
    }

    /// Where the addresses of its listeners are written once they listen.
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

    /// What is said of this file.
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
