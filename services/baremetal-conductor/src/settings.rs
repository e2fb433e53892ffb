//! What an administrator decides.

use std::net::Ipv4Addr;
use std::time::Duration;

use baremetal_core::Timeouts;
use baremetal_store::Pool;
use hardware::AllowedHosts;
use lease::Ladder;
use notices::Addressees;
use openstack::Session;
use pxe::Prober;
use url::Url;

use crate::clusters::Clusters;
use crate::consoles::ConsoleSettings;

/// How the conductor behaves.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The name under which it is listed.
    pub hostname: String,
    /// How many nodes have a turn at once.
    pub workers: usize,
    /// How long things may take.
    pub timeouts: Timeouts,
    /// How BMCs are treated.
    pub bmc: BmcSettings,
    /// Where images may be.
    pub image_hosts: AllowedHosts,
    /// How power states are refreshed.
    pub sweep: SweepSettings,
    /// How much serial consoles may take.
    pub consoles: ConsoleSettings,
    /// What comes before the end of what nodes are lent for, and after it.
    pub lending: LendingSettings,
    /// The cloud that machines join as hypervisors, as an administrator of it; none where they join none.
    pub cloud: Option<Session>,
    /// clusterd, which is asked before a machine is taken out that carries others'; none where nobody is asked.
    pub clusters: Option<Clusters>,
    /// Base URL of the listener on the provisioning network; `None` where no machine is booted.
    pub provisioning_url: Option<Url>,
    /// Addresses for machines; `None` where another DHCP server gives them out.
    pub leases: Option<Leases>,
    /// What to do with machines nobody enrolled.
    pub unknown_machines: UnknownMachines,
    /// Further kernel parameters of the ramdisk, such as `console=ttyS0`.
    pub kernel_parameters: Vec<(String, Option<String>)>,
    /// Seconds without a heartbeat after which an agent is given up, as told to agents.
    pub heartbeat_timeout: Duration,
}

/// How BMCs are treated: they are slow little computers.
#[derive(Clone, Debug)]
pub struct BmcSettings {
    /// How long one request may take.
    pub request_timeout: Duration,
    /// How many requests a BMC gets in a second, on average.
    pub requests_per_second: u32,
    /// How many it may get at once after a rest.
    pub burst: u32,
    /// Whether a node may say that its BMC's certificate is not to be verified.
    pub allow_unverified: bool,
    /// PEM of further authorities that sign BMCs' certificates.
    pub authorities: Vec<u8>,
    /// Where BMCs may be.
    pub allowed: AllowedHosts,
}

/// How power states are refreshed.
#[derive(Clone, Copy, Debug)]
pub struct SweepSettings {
    /// From the beginning of one sweep to that of the next.
    pub every: Duration,
    /// How many BMCs are asked at once.
    pub at_once: usize,
}

/// What comes before the end of what nodes are lent for, and after it, and who is told of it outside.
#[derive(Clone, Debug)]
pub struct LendingSettings {
    /// What comes before the end, and after it.
    pub ladder: Ladder,
    /// Who can be told.
    pub addressees: Addressees,
}

impl Default for LendingSettings {
    fn default() -> Self {
        let ladder = Ladder::default().without_copy();
        LendingSettings { ladder, addressees: Addressees::default() }
    }
}

/// Addresses for machines.
#[derive(Clone, Debug)]
pub struct Leases {
    /// Which addresses, and how long a machine that nobody enrolled keeps one.
    pub pool: Pool,
    /// What tells whether an address is in use.
    pub prober: Prober,
    /// Length of the network's prefix.
    pub prefix: u8,
    /// The way out, if there is one.
    pub router: Option<Ipv4Addr>,
}

/// What to do with machines nobody enrolled. They are never installed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UnknownMachines {
    /// Note that they asked, and do not answer.
    #[default]
    Refuse,
    /// Boot them into the ramdisk, take their inventory and list it.
    Discover,
}
