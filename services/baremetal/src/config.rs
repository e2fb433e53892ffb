//! `baremetald.toml`. Unknown keys are refused, and a loaded `Config` is valid.

mod cloud;
mod clusters;
mod conductor;
mod dhcp;
mod discovery;
mod leases;
mod provisioning;
mod sensors;
mod steps;

use std::path::{Path, PathBuf};

use baremetal_conductor::SensorSettings;
use daemon::{DatabaseConfig, LogFormat, MetricsConfig};
use notices::{EventsConfig, NoticesConfig};
use otlp::TracesConfig;
use serde::Deserialize;

pub use cloud::{CloudConfig, DnsConfig, NetworksConfig};
pub use clusters::{ClusterdConfig, ClusterdIdentityConfig};
pub use conductor::{
    AgentsConfig, BmcConfig, ConductorConfig, ConsolesConfig, ImagesConfig, SharedBmcsConfig,
    TimeoutsConfig,
};
pub use dhcp::{BmcDhcpConfig, DhcpConfig, DhcpMode, DhcpV4Config, DhcpV6Config, InvalidDhcp};
pub use discovery::{AutoDiscoveryConfig, BmcCredentialsConfig, CrawlConfig, VerifyCa};
pub use leases::{AllocationsConfig, LeasesConfig, ReservationsConfig};
pub use provisioning::{Aarch64Config, HttpsConfig, ProvisioningConfig};
pub use sensors::SensorsConfig;
pub use steps::StepsConfig;

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
    #[serde(default)]
    pub api: ApiConfig,
    #[serde(default)]
    pub database: DatabaseConfig,
    /// The listener of metrics; absent if none are served.
    #[serde(default)]
    pub metrics: Option<MetricsConfig>,
    /// The collector of traces. Without this section, nothing is traced.
    #[serde(default)]
    pub traces: Option<TracesConfig>,
    /// How sensors of machines are read for the metrics; absent if they are not read.
    #[serde(default)]
    pub sensors: Option<SensorsConfig>,
    #[serde(default)]
    pub conductor: ConductorConfig,
    /// Where agents report, besides the provisioning listener.
    #[serde(default)]
    pub agents: AgentsConfig,
    #[serde(default)]
    pub timeouts: TimeoutsConfig,
    /// Priorities of the steps of cleaning and deployment.
    #[serde(default)]
    pub steps: StepsConfig,
    #[serde(default)]
    pub bmc: BmcConfig,
    /// How discovered machines become nodes.
    #[serde(default)]
    pub auto_discovery: AutoDiscoveryConfig,
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
    /// The webhooks that get notifications about every change.
    #[serde(default)]
    pub events: EventsConfig,
    /// How many allocations a project may have.
    #[serde(default)]
    pub allocations: AllocationsConfig,
    /// How many whole nodes a project may reserve.
    #[serde(default)]
    pub reservations: ReservationsConfig,
    /// The OpenStack that machines join as hypervisors and that has their VIFs and images, with an administrator's credentials; absent if
    /// there is none.
    #[serde(default)]
    pub cloud: Option<CloudConfig>,
    /// The clusterd that is asked before a compute host is taken out; absent if no clusterd is asked.
    #[serde(default)]
    pub clusters: Option<ClusterdConfig>,
    /// The listener on the provisioning network, and network boot; absent if no machine is booted.
    #[serde(default)]
    pub provisioning: Option<ProvisioningConfig>,
}

/// The listener of the API. 6385 is Ironic's port for the Bare Metal API.
pub type ApiConfig = daemon::ApiListenerConfig<6385>;

impl Config {
    /// Returns how sensors are read. The metrics are the only place where their readings are shown.
    pub fn sensor_settings(&self) -> anyhow::Result<Option<SensorSettings>> {
        let is_shown = self.sensors.is_none() || self.metrics.is_some();
        anyhow::ensure!(
            is_shown,
            "sensors: set metrics.listen, because the metrics show the readings, or remove the section"
        );
        self.sensors.as_ref().map(SensorsConfig::settings).transpose()
    }

    /// Returns the name of this process among several: the configured one, or else the name of the host.
    pub fn hostname(&self) -> String {
        let own_name = || rustix::system::uname().nodename().to_string_lossy().into_owned();
        self.conductor.hostname.clone().unwrap_or_else(own_name)
    }

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
                r#"unknown field `listen_on`, expected one of `listen`, `auth`, `htpasswd`, `keystone`, `certificate`, `key`, `plain_http`, `hosts`, `trusted_proxies`, `limits`, `connections`"#
            ]],
        );
    }
}
