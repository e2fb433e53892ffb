//! `clusterd.toml`. Unknown keys are refused; a loaded `Config` is a valid one.

mod kubernetes;
mod leases;
mod machines;
mod nodes;
mod quotas;

use std::io;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use daemon::{Connections, LogFormat, TlsFiles};
use jiff::SignedDuration;
use notices::NoticesConfig;
use openstack_api::{Access, AuthKind, HostName, KeystoneAccess, Limits, PlainHttp};
use serde::Deserialize;

pub use kubernetes::KubernetesConfig;
pub use leases::LeasesConfig;
pub use machines::MachinesConfig;
pub use nodes::{CertificateFiles, NodesConfig};
pub use quotas::QuotasConfig;

/// `clusterd.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Where the service keeps its keys, and its database unless told otherwise. Made when it is not there.
    pub state_dir: PathBuf,
    /// The keys that seal secrets in the database; `seal.keys` in the state folder unless told otherwise. Services that
    /// share a database share it.
    #[serde(default)]
    pub seal_keys: Option<PathBuf>,
    /// How logs look.
    #[serde(default)]
    pub log: LogFormat,
    /// The users' listener.
    #[serde(default)]
    pub api: ApiConfig,
    /// What projects and users may have for whom nobody said otherwise.
    #[serde(default)]
    pub quotas: QuotasConfig,
    /// Where everything is kept.
    #[serde(default)]
    pub database: DatabaseConfig,
    /// The cloud that clusters are made in; without it none is made, and each says so.
    #[serde(default)]
    pub cloud: Option<CloudAccess>,
    /// Where machines fetch their configs; without it, only clusters can be made whose machines have theirs in their user
    /// data.
    #[serde(default)]
    pub nodes: Option<NodesConfig>,
    /// Where the programs and images of each version come from.
    #[serde(default)]
    pub kubernetes: KubernetesConfig,
    /// How the conductor behaves.
    #[serde(default)]
    pub conductor: ConductorConfig,
    /// When machines are replaced.
    #[serde(default)]
    pub repair: RepairConfig,
    /// How long things are lent, and what happens at the end.
    #[serde(default)]
    pub leases: LeasesConfig,
    /// Who is told outside of what happens.
    #[serde(default)]
    pub notices: NoticesConfig,
    /// People's own machines.
    #[serde(default)]
    pub machines: MachinesConfig,
}

/// The users' listener.
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
    /// The project that all callers are of where there is no Keystone.
    pub project: String,
    /// How many may follow the events of clusters at once.
    pub event_streams: u32,
    /// How many streams of events one caller may have.
    pub event_streams_each: u32,
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
    project: String,
    event_streams: u32,
    event_streams_each: u32,
    limits: Limits,
    connections: Connections,
}

impl Default for RawApi {
    fn default() -> Self {
        // 9511 is the Container Infra API's customary port.
        RawApi {
            listen: SocketAddr::from(([127, 0, 0, 1], 9511)),
            auth: AuthKind::None,
            htpasswd: None,
            keystone: None,
            certificate: None,
            key: None,
            plain_http: PlainHttp::default(),
            hosts: Vec::new(),
            project: "default".to_owned(),
            event_streams: 64,
            event_streams_each: 16,
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
        ApiConfig {
            listen: raw.listen,
            access,
            tls,
            plain_http: raw.plain_http,
            hosts: raw.hosts,
            project: raw.project,
            event_streams: raw.event_streams,
            event_streams_each: raw.event_streams_each,
            limits: raw.limits,
            connections: raw.connections,
        }
    }
}

impl TryFrom<RawApi> for ApiConfig {
    type Error = &'static str;

    fn try_from(mut raw: RawApi) -> Result<Self, Self::Error> {
        let access = Access::new(raw.auth, raw.htpasswd.take(), raw.keystone.take())?;
        let tls = TlsFiles::new(raw.certificate.take(), raw.key.take())?;
        if raw.project.is_empty() {
            return Err("project: it must not be empty");
        }
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

/// The cloud that clusters are made in, and as whom.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CloudAccess {
    /// A clouds.yaml; what a secure.yaml beside it says goes before it.
    pub clouds_yaml: PathBuf,
    /// Which of its clouds; needed where there are several.
    #[serde(default)]
    pub name: Option<String>,
    /// How many calls of each of its services are under way at once at most, whichever project they are for.
    #[serde(default)]
    pub calls_at_once: Option<NonZeroUsize>,
    /// In which projects of the cloud clusters are made. Unless told otherwise in those that ask for them, where Keystone tells who asks
    /// and the cloud's user has a password; else in clusterd's own.
    #[serde(default)]
    pub tenancy: Option<Tenancy>,
}

/// In which projects of the cloud clusters are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tenancy {
    /// Each in the project that asked for it, where clusterd's user needs a role.
    Own,
    /// All in the one that clusterd's own account is of.
    Shared,
}

/// How the conductor behaves.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ConductorConfig {
    /// The name it is listed under; the machine's host name unless told otherwise.
    pub hostname: Option<String>,
    /// How many clusters have a turn at once.
    pub workers: NonZeroUsize,
    /// How often a cluster is looked at where nothing changes.
    pub look_every: SignedDuration,
}

impl Default for ConductorConfig {
    fn default() -> Self {
        ConductorConfig {
            hostname: None,
            workers: NonZeroUsize::MIN.saturating_add(127),
            look_every: SignedDuration::from_secs(60),
        }
    }
}

/// When machines are replaced.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RepairConfig {
    /// How long a node may be not ready.
    pub not_ready_for: SignedDuration,
    /// How many workers of a cluster may be away at once.
    pub workers_at_once: NonZeroUsize,
    /// How long a machine may take to become a node.
    pub become_node_within: SignedDuration,
}

impl Default for RepairConfig {
    fn default() -> Self {
        RepairConfig {
            not_ready_for: SignedDuration::from_mins(5),
            workers_at_once: NonZeroUsize::MIN,
            become_node_within: SignedDuration::from_mins(15),
        }
    }
}

impl Config {
    /// Where the keys are that seal secrets.
    pub fn seal_keys_file(&self) -> PathBuf {
        self.seal_keys.clone().unwrap_or_else(|| self.state_dir.join("seal.keys"))
    }

    /// The database's URL.
    pub fn database_url(&self) -> io::Result<String> {
        match (&self.database.url, &self.database.url_file) {
            (Some(url), _) => Ok(url.clone()),
            (None, Some(file)) => Ok(std::fs::read_to_string(file)?.trim().to_owned()),
            (None, None) => Ok(format!("sqlite://{}/clusterd.db", self.state_dir.display())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refuses(text: &str, words: &str) {
        let error = toml::from_str::<Config>(text).expect_err("it is no configuration").to_string();
        assert!(error.contains(words), "{error}");
    }

    #[test]
    fn little_has_to_be_said() {
        let config: Config = toml::from_str("state_dir = '/tmp/x'").expect("it is valid");
        assert_eq!(config.api.listen.port(), 9511);
        assert_eq!(config.database_url().ok().as_deref(), Some("sqlite:///tmp/x/clusterd.db"));
    }

    #[test]
    fn what_is_wrong_is_named() {
        refuses("state_dir = '/tmp/x'\ncolour = 'red'", "unknown field `colour`");
        refuses("state_dir = '/tmp/x'\n[api]\nauth = 'http_basic'", "htpasswd: is needed");
        refuses("state_dir = '/tmp/x'\n[api]\nhtpasswd = '/x'", "htpasswd: means nothing");
        refuses("state_dir = '/tmp/x'\n[cloud]\nname = 'x'", "missing field `clouds_yaml`");
        refuses(
            "state_dir = '/tmp/x'\n[cloud]\nclouds_yaml = 'x'\ntenancy = 'none'",
            "unknown variant `none`, expected `own` or `shared`",
        );
        refuses("state_dir = '/tmp/x'\n[api]\nproject = ''", "project: it must not be empty");
        let nodes =
            |more: &str| format!("state_dir = '/tmp/x'\n[nodes]\nlisten = '[::]:9512'\n{more}");
        refuses(&nodes("url = 'http://c:9512'"), "url: it must be https://HOST:PORT/");
        refuses(&nodes("url = 'https://c:9512'\nkey = '/x'"), "given together or not at all");
        refuses(&nodes("url = 'https://c:9512'\nclaim_lasts = '5h'"), "claim_lasts: it must be");
        refuses(&nodes("url = 'https://c:9512'\nsource_address = 'x'"), "unknown variant `x`");
        let version = |name: &str, sum: &str| {
            let program =
                |it: &str| format!("{it} = {{ url = 'https://m/{it}', sha256 = '{sum}' }}");
            let programs = ["kubeadm", "kubelet", "kubectl"].map(program).join("\n");
            format!("state_dir = '/tmp/x'\n[kubernetes.versions.'{name}']\n{programs}")
        };
        refuses(&version("1.34", &"0".repeat(64)), "is not a version of Kubernetes");
        refuses(
            &version("v1.34.1", "00"),
            "versions.\"v1.34.1\".kubeadm.sha256: `00` is no SHA-256",
        );
        let config: Config = toml::from_str(&version("v1.34.1", &"0".repeat(64))).expect("valid");
        assert_eq!(config.kubernetes.0.versions.len(), 1);
    }
}
