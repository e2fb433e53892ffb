//! The sections of the conductor: parallelism, timeouts, and the treatment of agents, BMCs, images and consoles.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use baremetal_conductor::CrawlSettings;
use baremetal_core::{OciRegistry, parse_conductor_group};
use baremetal_store::SharedBmcs;
use hardware::{AllowedHost, Network};
use jiff::SignedDuration;
use serde::Deserialize;
use url::Url;

use super::{BmcCredentialsConfig, BmcDhcpConfig, CrawlConfig};

/// The section `[conductor]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ConductorConfig {
    /// The name under which the conductor is listed, different for each baremetald on one database; by default the host's name.
    pub hostname: Option<String>,
    /// The URL at which the other baremetald on the database reach the API of this one, for serial consoles.
    pub peer_url: Option<Url>,
    /// A PEM file with CAs for the certificates of the others, in addition to those of the system.
    pub peer_ca_file: Option<PathBuf>,
    /// The conductor groups whose nodes this conductor manages. New nodes are in the first; the empty name is the default group.
    pub groups: ConductorGroups,
    /// How many turns run in parallel.
    pub workers: NonZeroUsize,
    /// The interval for refreshing the power states of idle nodes.
    pub power_sync_every: SignedDuration,
    /// How many refreshes in a row of a node's power state may fail before the next failure puts the node into maintenance.
    pub power_sync_max_retries: u32,
    /// Whether a machine keeps its ramdisk when an inspection or a cleaning is over, so that a cleaning or a deployment after it boots nothing.
    /// The key `fast_track` of a node's `driver_info` overrides it.
    pub fast_track: bool,
    /// The pause between two looks for nodes that nobody has woken the conductor for, for example because an answer of the database was lost.
    pub look_every: SignedDuration,
    /// How many BMCs are asked in parallel for their power states.
    pub power_sync_at_once: NonZeroUsize,
}

impl Default for ConductorConfig {
    fn default() -> Self {
        ConductorConfig {
            hostname: None,
            peer_url: None,
            peer_ca_file: None,
            groups: ConductorGroups(vec![String::new()]),
            workers: NonZeroUsize::MIN.saturating_add(255),
            power_sync_every: SignedDuration::from_secs(60),
            power_sync_max_retries: 3,
            fast_track: false,
            look_every: SignedDuration::from_secs(10),
            power_sync_at_once: NonZeroUsize::MIN.saturating_add(255),
        }
    }
}

/// The names of conductor groups, at least one.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "Vec<String>")]
pub struct ConductorGroups(pub Vec<String>);

impl TryFrom<Vec<String>> for ConductorGroups {
    type Error = String;

    fn try_from(names: Vec<String>) -> Result<Self, String> {
        if names.is_empty() {
            return Err("groups: must name at least one conductor group".to_owned());
        }
        let parsed = names.iter().map(|name| parse_conductor_group(name));
        let parsed: Result<_, _> = parsed.collect();
        parsed.map(ConductorGroups).map_err(|why| format!("groups: {why}"))
    }
}

/// The section `[agents]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AgentsConfig {
    /// Whether the listener of the API also serves the requests of agents, for agents that know no other address. Anyone who reaches the
    /// listener can then ask which node has a MAC address, while the node waits for its agent, or its agent waits for
    /// other work (fast track).
    pub on_api_listener: bool,
    /// Whether ironic-python-agent may install the boot loader of a partition image: it runs `grub-install` of the image with its own
    /// rights, so that the image's author controls the machine while it is in the provisioning network. `ramdisk-agent` runs no
    /// program of an image.
    pub enable_bios_bootloader_install: bool,
}

/// The section `[timeouts]`, with values such as `10s`, `5m` or `1h 30m`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TimeoutsConfig {
    /// For the BMC to answer and to carry out a request.
    pub bmc: SignedDuration,
    /// For the machine to switch on or off.
    pub power: SignedDuration,
    /// How long the conductor waits after the BMC accepted a change of power, before it asks again.
    pub ask_again: SignedDuration,
    /// From power-on to the agent's first report.
    pub boot: SignedDuration,
    /// For one command of the agent, such as writing an image.
    pub command: SignedDuration,
    /// For one update of firmware or one change of a RAID volume, once the BMC has accepted it.
    pub firmware: SignedDuration,
    /// For an agent that does not answer.
    pub silence: SignedDuration,
    /// The interval of looking at a machine that the conductor waits for.
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
            firmware: SignedDuration::from_hours(2),
            silence: SignedDuration::from_mins(5),
            poll_every: SignedDuration::from_secs(1),
        }
    }
}

/// The section `[bmc]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BmcConfig {
    pub request_timeout: SignedDuration,
    /// The average number of requests per second to one BMC.
    pub requests_per_second: u32,
    /// The number of requests that a BMC may get in one burst after a pause.
    pub burst: u32,
    /// Whether a node may disable the verification of its BMC's certificate.
    pub allow_unverified: bool,
    /// A PEM file with additional CA certificates for BMCs.
    pub ca_file: Option<PathBuf>,
    /// The networks in which BMCs may be; by default all addresses except loopback, link-local and multicast ones.
    pub networks: Option<Vec<Network>>,
    /// The names, addresses and networks of the hosts to which BMCs may be told to send their events; by default all except loopback,
    /// link-local and multicast addresses.
    pub event_hosts: Option<Vec<AllowedHost>>,
    /// Whether several nodes may name one BMC. By default, a second record of a BMC is refused: an action on one node would change the machine
    /// of the other.
    pub shared: SharedBmcsConfig,
    /// The credentials of BMCs by network, for discoveries that are accepted without credentials. The first network that contains the BMC
    /// counts.
    pub credentials: Vec<BmcCredentialsConfig>,
    /// The DHCP server on the network of the BMCs; absent if the service gives them no addresses.
    pub dhcp: Option<BmcDhcpConfig>,
    /// The search for BMCs that belong to no node; absent if there is none.
    pub crawl: Option<CrawlConfig>,
}

impl BmcConfig {
    /// Returns the settings of the search for BMCs.
    ///
    /// # Errors
    ///
    /// Fails if the search would ask no address.
    pub fn crawl_settings(&self) -> anyhow::Result<Option<CrawlSettings>> {
        let Some(crawl) = &self.crawl else { return Ok(None) };
        let asks_any = !crawl.ranges.is_empty() || self.dhcp.is_some();
        anyhow::ensure!(
            asks_any,
            "bmc.crawl: set ranges, or have BMCs get addresses by [bmc.dhcp]"
        );
        Ok(Some(crawl.settings()))
    }
}

/// Whether several nodes may name one BMC.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SharedBmcsConfig {
    #[default]
    Refuse,
    /// As in Ironic, which compares no BMCs.
    Permit,
}

impl From<SharedBmcsConfig> for SharedBmcs {
    fn from(config: SharedBmcsConfig) -> SharedBmcs {
        match config {
            SharedBmcsConfig::Refuse => SharedBmcs::Refused,
            SharedBmcsConfig::Permit => SharedBmcs::Permitted,
        }
    }
}

/// The section `[images]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ImagesConfig {
    /// The names, addresses and networks of allowed image servers; by default all except loopback, link-local and multicast addresses.
    pub hosts: Option<Vec<AllowedHost>>,
    /// The OCI registries, as `HOST` or `HOST:PORT`, that get `image_pull_secret` of `driver_info` for nodes whose `instance_info` has none.
    /// A lessee who names an image in one of them reads it with this login. By default none.
    pub pull_secret_registries: Vec<OciRegistry>,
}

impl Default for BmcConfig {
    fn default() -> Self {
        BmcConfig {
            request_timeout: SignedDuration::from_secs(20),
            requests_per_second: 10,
            burst: 20,
            allow_unverified: false,
            ca_file: None,
            networks: None,
            event_hosts: None,
            shared: SharedBmcsConfig::Refuse,
            credentials: Vec::new(),
            dhcp: None,
            crawl: None,
        }
    }
}

/// The section `[consoles]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ConsolesConfig {
    /// How many viewers one node may have at the same time.
    pub viewers_per_node: NonZeroUsize,
    /// How many consoles one user may view at the same time, if users are authenticated.
    pub viewed_by_one: NonZeroUsize,
    /// How many ports and graphical consoles may be open at the same time.
    pub sessions: NonZeroUsize,
    /// How long a machine's port stays open after the last viewer has left.
    pub linger: SignedDuration,
    /// The page of noVNC (`vnc.html`) on a web server of the operator. The URL of a graphical console then opens this page.
    pub novnc_url: Option<Url>,
}

impl Default for ConsolesConfig {
    fn default() -> Self {
        ConsolesConfig {
            viewers_per_node: NonZeroUsize::MIN.saturating_add(7),
            viewed_by_one: NonZeroUsize::MIN.saturating_add(15),
            sessions: NonZeroUsize::MIN.saturating_add(63),
            linger: SignedDuration::from_secs(20),
            novnc_url: None,
        }
    }
}
