//! `clusterd.toml`. Unknown keys are refused; a loaded `Config` is a valid one.

mod backups;
mod kubernetes;
mod leases;
mod machines;
mod nodes;
mod quotas;

use std::io;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use daemon::{ConnectionLimits, DatabaseConfig, LogFormat, MetricsConfig, TlsFiles};
use jiff::SignedDuration;
use notices::{EventsConfig, NoticesConfig};
use openstack_api::{
    AuthConfig, AuthKind, HostName, KeystoneAccess, Limits, PlainHttp, TrustedProxies,
};
use otlp::TracesConfig;
use serde::Deserialize;

pub use backups::BackupsConfig;
pub use kubernetes::KubernetesConfig;
pub use leases::LeasesConfig;
pub use machines::VmsConfig;
pub use nodes::{CertificateFiles, MemberListenerConfig};
pub use quotas::QuotasConfig;

/// The configuration of clusterd, `clusterd.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The folder of the service's keys, and of its database unless `[database]` names another. The service creates the folder if it is
    /// missing.
    pub state_dir: PathBuf,
    /// The file of the keys that seal secrets in the database; `None` means `seal.keys` in the state folder. Services that share a database
    /// need the same keys.
    #[serde(default)]
    pub seal_keys: Option<PathBuf>,
    #[serde(default)]
    pub log: LogFormat,
    /// The listener for users, and the defaults of its callers.
    #[serde(default)]
    pub api: ApiConfig,
    /// Limits for projects and users without limits of their own.
    #[serde(default)]
    pub quotas: QuotasConfig,
    #[serde(default)]
    pub database: DatabaseConfig,
    /// The listener of metrics. Without this section, none are served.
    #[serde(default)]
    pub metrics: Option<MetricsConfig>,
    /// The collector of traces. Without this section, nothing is traced.
    #[serde(default)]
    pub traces: Option<TracesConfig>,
    /// The cloud in which clusters are created. Without this section no cluster is created, and the status of each cluster says so.
    #[serde(default)]
    pub cloud: Option<CloudAccess>,
    /// The listener at which members fetch their configs. Without this section, clusterd can only create clusters whose members have the
    /// whole config in their user data.
    #[serde(default)]
    pub nodes: Option<MemberListenerConfig>,
    /// The source of programs and images for each version.
    #[serde(default)]
    pub kubernetes: KubernetesConfig,
    #[serde(default)]
    pub conductor: ConductorConfig,
    /// When members are replaced.
    #[serde(default)]
    pub repair: RepairConfig,
    /// How long clusters are lent, and the stages at the end of a lease.
    #[serde(default)]
    pub leases: LeasesConfig,
    /// Notices that are sent outside of clusterd: webhook and mail.
    #[serde(default)]
    pub notices: NoticesConfig,
    /// The webhooks that get notifications about every change.
    #[serde(default)]
    pub events: EventsConfig,
    #[serde(default)]
    pub machines: VmsConfig,
    /// Backups of the etcd of every cluster. Without this section, none are made.
    #[serde(default)]
    pub backups: Option<BackupsConfig>,
}

/// The listener for users. 9511 is the default port of the Container Infra API.
pub type ApiListenerConfig = daemon::ApiListenerConfig<9511>;

/// The section `[api]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "ApiKeys")]
pub struct ApiConfig {
    pub listener: ApiListenerConfig,
    /// The project of all callers if Keystone is not used.
    pub project: String,
    /// The maximum number of event streams at once.
    pub event_streams: u32,
    /// The maximum number of event streams of one caller.
    pub event_streams_each: u32,
}

/// The keys of the listener are repeated here, because `serde(flatten)` would lose the line of a mistake.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ApiKeys {
    listen: SocketAddr,
    auth: AuthKind,
    htpasswd: Option<PathBuf>,
    keystone: Option<KeystoneAccess>,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
    plain_http: PlainHttp,
    hosts: Vec<HostName>,
    trusted_proxies: TrustedProxies,
    project: String,
    event_streams: u32,
    event_streams_each: u32,
    limits: Limits,
    connections: ConnectionLimits,
}

impl Default for ApiKeys {
    fn default() -> Self {
        let ApiConfig { listener, project, event_streams, event_streams_each } =
            ApiConfig::default();
        ApiKeys {
            listen: listener.listen,
            auth: AuthKind::None,
            htpasswd: None,
            keystone: None,
            certificate: None,
            key: None,
            plain_http: listener.plain_http,
            hosts: listener.hosts,
            trusted_proxies: listener.trusted_proxies,
            project,
            event_streams,
            event_streams_each,
            limits: listener.limits,
            connections: listener.connections,
        }
    }
}

impl Default for ApiConfig {
    fn default() -> Self {
        let (listener, project) = (ApiListenerConfig::default(), "default".to_owned());
        ApiConfig { listener, project, event_streams: 64, event_streams_each: 16 }
    }
}

impl TryFrom<ApiKeys> for ApiConfig {
    type Error = &'static str;

    fn try_from(keys: ApiKeys) -> Result<Self, Self::Error> {
        if keys.project.is_empty() {
            return Err("project: must not be empty");
        }
        let listener = ApiListenerConfig {
            listen: keys.listen,
            access: AuthConfig::new(keys.auth, keys.htpasswd, keys.keystone)?,
            tls: TlsFiles::new(keys.certificate, keys.key)?,
            plain_http: keys.plain_http,
            hosts: keys.hosts,
            trusted_proxies: keys.trusted_proxies,
            limits: keys.limits,
            connections: keys.connections,
        };
        Ok(ApiConfig {
            listener,
            project: keys.project,
            event_streams: keys.event_streams,
            event_streams_each: keys.event_streams_each,
        })
    }
}

/// The cloud in which clusters are created, and the credentials for the cloud.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CloudAccess {
    /// A clouds.yaml. Values in a secure.yaml beside the file take precedence.
    pub clouds_yaml: PathBuf,
    /// The name of the cloud in clouds.yaml; required if the file has several.
    #[serde(default)]
    pub name: Option<String>,
    /// The maximum number of concurrent calls to each service of the cloud, over all projects.
    #[serde(default)]
    pub calls_at_once: Option<NonZeroUsize>,
    /// The project of the cloud in which clusters are created. `None` means `own` if callers authenticate with Keystone and clusterd's user
    /// has a password, otherwise `shared`.
    #[serde(default)]
    pub tenancy: Option<Tenancy>,
}

/// The project of the cloud in which clusters are created.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tenancy {
    /// The project of the caller who created the cluster. clusterd's user needs a role in that project.
    Own,
    /// The project of clusterd's own account, for all clusters.
    Shared,
}

/// Settings of the conductor.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ConductorConfig {
    /// The name in the lists of services and of conductors, different for each clusterd on one database; `None` means the computer's host name.
    pub hostname: Option<String>,
    /// The maximum number of turns at once.
    pub workers: NonZeroUsize,
    /// The interval at which the conductor observes a cluster without changes.
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

/// When members are replaced.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RepairConfig {
    /// How long a Kubernetes node may be not ready before its member is replaced.
    pub not_ready_for: SignedDuration,
    /// The maximum number of workers of a cluster that are replaced at once.
    pub workers_at_once: NonZeroUsize,
    /// How long a new server may take to become a Kubernetes node.
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
    /// Returns the path of the file with the sealing keys.
    pub fn seal_keys_file(&self) -> PathBuf {
        self.seal_keys.clone().unwrap_or_else(|| self.state_dir.join("seal.keys"))
    }

    /// Returns the name of this process among several: the configured one, or else the name of the host.
    pub fn hostname(&self) -> String {
        let own_name = || rustix::system::uname().nodename().to_string_lossy().into_owned();
        self.conductor.hostname.clone().unwrap_or_else(own_name)
    }

    /// Returns the database's URL, from the configuration or from the file that the configuration names.
    pub fn database_url(&self) -> io::Result<String> {
        self.database.url_or(|| format!("sqlite://{}/clusterd.db", self.state_dir.display()))
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
    fn a_state_folder_is_enough_of_a_configuration() {
        let config: Config = toml::from_str("state_dir = '/tmp/x'").expect("it is valid");
        assert_eq!(config.api.listener.listen.port(), 9511);
        assert_eq!(config.database_url().ok().as_deref(), Some("sqlite:///tmp/x/clusterd.db"));
    }

    #[test]
    fn an_invalid_configuration_is_refused_by_key() {
        refuses("state_dir = '/tmp/x'\ncolour = 'red'", "unknown field `colour`");
        refuses("state_dir = '/tmp/x'\n[api]\nauth = 'http_basic'", "htpasswd: required");
        refuses("state_dir = '/tmp/x'\n[api]\nhtpasswd = '/x'", "htpasswd: only allowed");
        refuses("state_dir = '/tmp/x'\n[cloud]\nname = 'x'", "missing field `clouds_yaml`");
        refuses(
            "state_dir = '/tmp/x'\n[cloud]\nclouds_yaml = 'x'\ntenancy = 'none'",
            "unknown variant `none`, expected `own` or `shared`",
        );
        refuses("state_dir = '/tmp/x'\n[api]\nproject = ''", "project: must not be empty");
        refuses("state_dir = '/tmp/x'\n[backups]\nevery = '1h'", "set one of directory");
        let nodes =
            |more: &str| format!("state_dir = '/tmp/x'\n[nodes]\nlisten = '[::]:9512'\n{more}");
        refuses(&nodes("url = 'http://c:9512'"), "url: must be https://HOST:PORT/");
        refuses(
            &nodes("url = 'https://c:9512'\nkey = '/x'"),
            "set all of certificate, key and ca_file",
        );
        refuses(&nodes("url = 'https://c:9512'\nclaim_lasts = '5h'"), "claim_lasts: must be");
        refuses(&nodes("url = 'https://c:9512'\nsource_address = 'x'"), "unknown variant `x`");
        let version = |name: &str, sum: &str| {
            let program =
                |it: &str| format!("{it} = {{ url = 'https://m/{it}', sha256 = '{sum}' }}");
            let programs = ["kubeadm", "kubelet", "kubectl"].map(program).join("\n");
            format!("state_dir = '/tmp/x'\n[kubernetes.versions.'{name}']\n{programs}")
        };
        refuses(&version("1.34", &"0".repeat(64)), "is not a valid Kubernetes version");
        refuses(
            &version("v1.34.1", "00"),
            "versions.\"v1.34.1\".kubeadm.sha256: `00` is not a valid SHA-256",
        );
        let config: Config = toml::from_str(&version("v1.34.1", &"0".repeat(64))).expect("valid");
        assert_eq!(config.kubernetes.0.versions.len(), 1);
    }
}
