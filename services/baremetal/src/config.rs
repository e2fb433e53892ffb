//! `baremetald.toml`. Unknown keys are refused; a loaded `Config` is a valid one.

use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

use baremetal_conductor::UnknownMachines;
use daemon::{Connections, LogFormat, TlsFiles};
use jiff::SignedDuration;
use lease::{Ladder, Terms};
use notices::NoticesConfig;
use openstack_api::{Access, AuthKind, KeystoneAccess, Limits, PlainHttp};
use serde::Deserialize;
use url::Url;

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
    /// How long nodes are lent, and what happens then.
    #[serde(default)]
    pub leases: LeasesConfig,
    /// Who is told outside of what happens.
    #[serde(default)]
    pub notices: NoticesConfig,
    /// Whole nodes that projects may have for a time.
    #[serde(default)]
    pub reservations: ReservationsConfig,
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
        let RawApi { listen, plain_http, limits, connections, .. } = raw;
        ApiConfig { listen, access, tls, plain_http, limits, connections }
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

/// How the conductor behaves.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ConductorConfig {
    /// The name it is listed under; the machine's host name unless told otherwise.
    pub hostname: Option<String>,
    /// How many nodes have a turn at once.
    pub workers: NonZeroUsize,
    /// How often the power states of machines at rest are refreshed.
    pub power_sync_every: SignedDuration,
    /// How many BMCs are asked at once for that.
    pub power_sync_at_once: NonZeroUsize,
}

impl Default for ConductorConfig {
    fn default() -> Self {
        ConductorConfig {
            hostname: None,
            workers: NonZeroUsize::MIN.saturating_add(255),
            power_sync_every: SignedDuration::from_secs(60),
            power_sync_at_once: NonZeroUsize::MIN.saturating_add(255),
        }
    }
}

/// How long things may take, as `10s`, `5m` or `1h 30m`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TimeoutsConfig {
    /// For a BMC to answer and to do as asked.
    pub bmc: SignedDuration,
    /// For a machine to switch on or off.
    pub power: SignedDuration,
    /// How long a BMC that accepted a change of power is given before it is asked again.
    pub ask_again: SignedDuration,
    /// From power-on to the agent's report.
    pub boot: SignedDuration,
    /// For one command of the agent, such as writing an image.
    pub command: SignedDuration,
    /// For an agent that does not answer.
    pub silence: SignedDuration,
    /// How often to look at what is awaited.
    pub poll_every: SignedDuration,
}

impl Default for TimeoutsConfig {
    fn default() -> Self {
        TimeoutsConfig {
            bmc: SignedDuration::from_secs(60),
            power: SignedDuration::from_secs(120),
            ask_again: SignedDuration::from_secs(20),
            boot: SignedDuration::from_mins(30),
            command: SignedDuration::from_hours(2),
            silence: SignedDuration::from_mins(5),
            poll_every: SignedDuration::from_secs(1),
        }
    }
}

/// How BMCs are treated.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BmcConfig {
    /// How long one request may take.
    pub request_timeout: SignedDuration,
    /// How many requests a BMC gets in a second, on average.
    pub requests_per_second: u32,
    /// How many it may get at once after a rest.
    pub burst: u32,
    /// Whether a node may say that its BMC's certificate is not to be verified.
    pub allow_unverified: bool,
    /// PEM file of further authorities that sign BMCs' certificates.
    pub authorities: Option<PathBuf>,
}

impl Default for BmcConfig {
    fn default() -> Self {
        BmcConfig {
            request_timeout: SignedDuration::from_secs(20),
            requests_per_second: 10,
            burst: 20,
            allow_unverified: false,
            authorities: None,
        }
    }
}

/// How long nodes are lent, and what happens then.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LeasesConfig {
    /// By default, at most, and at least: `{ default = "7d", longest = "30d", shortest = "1h" }`. Without a default whoever asks has to
    /// say; the shortest is an hour, unless told.
    pub nodes: Terms,
    /// Warnings, a time in which the end can be undone; then the machine is erased. No copy is kept of machines.
    pub ladder: Ladder,
}

/// Whole nodes that projects may have for a time.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ReservationsConfig {
    /// How many each project may have at once; none unless told otherwise.
    pub nodes_per_project: u32,
}

/// The listener on the provisioning network, and network boot.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProvisioningConfig {
    /// Address and port of the listener: boot scripts, kernels, images, the agents' reports.
    pub listen: SocketAddr,
    /// How machines reach it, when that is not `http://LISTEN/`.
    #[serde(default)]
    pub url: Option<Url>,
    /// The ramdisk's kernel.
    pub kernel: PathBuf,
    /// The ramdisk.
    pub ramdisk: PathBuf,
    /// The ramdisk as a CD, for boots by virtual media.
    #[serde(default)]
    pub iso: Option<PathBuf>,
    /// The folder with iPXE's binaries.
    #[serde(default = "loaders")]
    pub loaders: PathBuf,
    /// A folder of images that machines may fetch as `/images/NAME`.
    #[serde(default)]
    pub images: Option<PathBuf>,
    /// Further kernel parameters of the ramdisk, such as `console=ttyS0`.
    #[serde(default)]
    pub kernel_parameters: Vec<String>,
    /// What to do with machines nobody enrolled.
    #[serde(default)]
    pub unknown_machines: UnknownMachines,
    /// How often agents have to report at least.
    #[serde(default = "heartbeat_timeout")]
    pub heartbeat_timeout: SignedDuration,
    /// The DHCP server; absent where machines boot by virtual media alone.
    #[serde(default)]
    pub dhcp: Option<DhcpConfig>,
    /// Where TFTP is served; absent where it is not.
    #[serde(default)]
    pub tftp: Option<SocketAddr>,
    /// The interface on which IPv6 router solicitations are answered: iPXE waits for that.
    #[serde(default)]
    pub router_advertisements: Option<String>,
    /// How many machines are connected, and how long the slow are waited for.
    #[serde(default = "of_machines")]
    pub connections: Connections,
}

fn loaders() -> PathBuf {
    PathBuf::from("/usr/lib/ipxe")
}

/// A BMC that shows an image as a CD reads it as the machine does, which may be busy with other things for minutes.
fn of_machines() -> Connections {
    Connections { answer_timeout: Duration::from_mins(15), ..Connections::default() }
}

fn heartbeat_timeout() -> SignedDuration {
    SignedDuration::from_secs(60)
}

/// The DHCP server.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, try_from = "RawDhcp")]
pub struct DhcpConfig {
    /// Where it listens.
    pub listen: DhcpListen,
    /// Our own address, as machines see it.
    pub server: Ipv4Addr,
    /// Whether it gives out addresses.
    pub mode: DhcpMode,
    /// Length of the network's prefix.
    pub prefix: u8,
    /// The way out.
    pub router: Option<Ipv4Addr>,
    /// Name servers.
    pub dns: Vec<Ipv4Addr>,
    /// For how long an address is given.
    pub lease_time: Duration,
}

/// Where DHCP is heard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DhcpListen {
    /// On a network interface, broadcasts included.
    Interface(String),
    /// On a socket, from relays.
    Socket(SocketAddr),
}

/// Whether the DHCP server gives out addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DhcpMode {
    /// It does, from these.
    Full {
        /// The first.
        first: Ipv4Addr,
        /// The last.
        last: Ipv4Addr,
    },
    /// Another server does; this one only tells what to boot.
    Proxy,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawDhcp {
    interface: Option<String>,
    listen: Option<SocketAddr>,
    server: Ipv4Addr,
    #[serde(default)]
    mode: RawMode,
    range: Option<String>,
    prefix: u8,
    router: Option<Ipv4Addr>,
    #[serde(default)]
    dns: Vec<Ipv4Addr>,
    lease_time: Option<SignedDuration>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum RawMode {
    #[default]
    Full,
    Proxy,
}

/// The DHCP section contradicts itself.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidDhcp {
    /// Neither or both were given.
    #[error("name either an interface or an address to listen on")]
    Listen,
    /// The range is needed in full mode.
    #[error("range = \"FIRST-LAST\" is needed unless mode = \"proxy\"")]
    NoRange,
    /// The range cannot be read, or is not within the server's network.
    #[error("range: {raw:?} is not FIRST-LAST of addresses in the server's own /{prefix} network")]
    Range {
        /// What was given.
        raw: String,
        /// The network's prefix length.
        prefix: u8,
    },
    /// The prefix is too long or too short.
    #[error("prefix: must be from 8 to 30")]
    Prefix,
}

impl TryFrom<RawDhcp> for DhcpConfig {
    type Error = InvalidDhcp;

    fn try_from(raw: RawDhcp) -> Result<Self, InvalidDhcp> {
        let listen = match (raw.interface, raw.listen) {
            (Some(interface), None) => DhcpListen::Interface(interface),
            (None, Some(address)) => DhcpListen::Socket(address),
            (None, None) | (Some(_), Some(_)) => return Err(InvalidDhcp::Listen),
        };
        if !(8..=30).contains(&raw.prefix) {
            return Err(InvalidDhcp::Prefix);
        }
        let mode = match raw.mode {
            RawMode::Proxy => DhcpMode::Proxy,
            RawMode::Full => {
                let text = raw.range.ok_or(InvalidDhcp::NoRange)?;
                let (first, last) = range(&text, raw.server, raw.prefix)
                    .ok_or(InvalidDhcp::Range { raw: text, prefix: raw.prefix })?;
                DhcpMode::Full { first, last }
            }
        };
        let lease_time = raw.lease_time.unwrap_or(SignedDuration::from_hours(1)).unsigned_abs();
        Ok(DhcpConfig {
            listen,
            server: raw.server,
            mode,
            prefix: raw.prefix,
            router: raw.router,
            dns: raw.dns,
            lease_time,
        })
    }
}

fn range(text: &str, server: Ipv4Addr, prefix: u8) -> Option<(Ipv4Addr, Ipv4Addr)> {
    let (first, last) = text.split_once('-')?;
    let (first, last): (Ipv4Addr, Ipv4Addr) =
        (first.trim().parse().ok()?, last.trim().parse().ok()?);
    let network = |address: Ipv4Addr| u32::from(address) >> (32 - u32::from(prefix));
    let within = network(first) == network(server) && network(last) == network(server);
    (within && first <= last).then_some((first, last))
}

impl ProvisioningConfig {
    /// How machines reach the listener, given where it listens.
    pub fn base_url(&self, bound: SocketAddr) -> Url {
        let told = self.url.clone();
        told.unwrap_or_else(|| {
            Url::parse(&format!("http://{bound}/")).expect("an address makes a URL")
        })
    }

    /// The extra kernel parameters, split at their first `=`.
    pub fn kernel_parameters(&self) -> Vec<(String, Option<String>)> {
        let split = |word: &String| match word.split_once('=') {
            Some((key, value)) => (key.to_owned(), Some(value.to_owned())),
            None => (word.clone(), None),
        };
        self.kernel_parameters.iter().map(split).collect()
    }
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

    #[track_caller]
    fn check(text: &str, want: Expect) {
        let answer = match toml::from_str::<Config>(text) {
            Ok(_) => "ok".to_owned(),
            Err(error) => error.message().to_owned(),
        };
        want.assert_eq(&answer);
    }

    fn dhcp(section: &str) -> String {
        format!(
            "state_dir = '/tmp/s'\n[provisioning]\nlisten = '10.0.0.1:6386'\nkernel = 'k'\nramdisk = 'r'\n\
             [provisioning.dhcp]\n{section}"
        )
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
                r#"unknown field `listen_on`, expected one of `listen`, `auth`, `htpasswd`, `keystone`, `certificate`, `key`, `plain_http`, `limits`, `connections`"#
            ]],
        );
    }

    #[test]
    fn a_dhcp_section_must_make_sense() {
        check(
            &dhcp("interface='br0'\nserver='10.0.0.1'\nprefix=24\nrange='10.0.0.10-10.0.0.99'"),
            expect!["ok"],
        );
        check(
            &dhcp("interface='br0'\nserver='10.0.0.1'\nprefix=24\nrange='10.0.1.10-10.0.1.99'"),
            expect![[
                r#"range: "10.0.1.10-10.0.1.99" is not FIRST-LAST of addresses in the server's own /24 network"#
            ]],
        );
        check(
            &dhcp("interface='br0'\nserver='10.0.0.1'\nprefix=24"),
            expect![[r#"range = "FIRST-LAST" is needed unless mode = "proxy""#]],
        );
        check(
            &dhcp("server='10.0.0.1'\nprefix=24\nmode='proxy'"),
            expect!["name either an interface or an address to listen on"],
        );
    }
}
