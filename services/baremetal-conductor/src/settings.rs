//! The conductor's settings, as far as an administrator decides them.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use baremetal_core::{
    BmcCredentials, CrawlRange, DnsZone, Driver, OciRegistry, ServiceNetwork, StepPriorities,
    Timeouts,
};
use baremetal_store::AddressPool;
use hardware::{AllowedHosts, CpuArchitecture};
use jiff::Timestamp;
use lease::LeaseSchedule;
use metrics::{BmcMetrics, SensorGauges, SweepMetrics, TurnMetrics};
use notices::ReceiverKinds;
use openstack::Session;
use pxe::Prober;
use spans::Tracer;
use url::Url;

use crate::clusterd::ClusterdClient;
use crate::consoles::ConsoleSettings;

/// All settings of the conductor.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The name under which the conductor is listed.
    pub hostname: String,
    /// The name of the state folder, which only one process uses at a time.
    pub instance: String,
    /// The URL at which other conductors reach the API of this process; `None` if they do not.
    pub peer_url: Option<Url>,
    /// The conductor groups whose nodes this conductor manages, at least one. New nodes are in the first.
    pub groups: Vec<String>,
    /// How many turns run in parallel.
    pub workers: usize,
    pub timeouts: Timeouts,
    /// The priorities that the administrator gives to steps of cleaning and deployment.
    pub step_priorities: StepPriorities,
    /// How often and how fast BMCs get requests.
    pub bmc: BmcSettings,
    /// The hosts from which images may be fetched.
    pub image_hosts: AllowedHosts,
    /// The folder from which the provisioning listener serves images; `None` if it serves none.
    pub image_folder: Option<PathBuf>,
    /// The OCI registries that may get `image_pull_secret` of `driver_info`.
    pub pull_secret_registries: Vec<OciRegistry>,
    /// How often power states are refreshed.
    pub sweep: SweepSettings,
    /// How sensors are read for the metrics; `None`: they are not read.
    pub sensors: Option<SensorSettings>,
    /// Whether ramdisks stay on for the next work, unless a node says otherwise.
    pub fast_track: bool,
    /// Whether ironic-python-agent may run programs of a partition image to install its boot loader.
    pub bootloader_install: bool,
    /// The pause between two looks for nodes whose record is newer than their last turn.
    pub look_every: Duration,
    /// The limits of consoles.
    pub consoles: ConsoleSettings,
    /// The stages at the end of a node's lease, and the receivers of notices.
    pub lending: LendingSettings,
    /// An administrator's session in the OpenStack that machines join as hypervisors and that has their VIFs and images; `None` if there is
    /// none.
    pub cloud: Option<Session>,
    /// The networks in that OpenStack to which the service connects machines while a ramdisk runs on them.
    pub networks: NetworkSettings,
    /// The names of machines in the DNS of that OpenStack; `None` if machines have none.
    pub names: Option<NameSettings>,
    /// The connection to clusterd, which is asked before a compute host is taken out; `None` if no clusterd is asked.
    pub clusters: Option<ClusterdClient>,
    /// The base URL of the listener on the provisioning network; `None` if no machine is booted.
    pub provisioning_url: Option<Url>,
    /// The base URL from which firmware with HTTP boot loads iPXE by HTTPS; `None` if it uses `provisioning_url`.
    pub https_url: Option<Url>,
    /// The architectures that have a kernel, a ramdisk and a build of iPXE. x86-64 always has them.
    pub architectures: Vec<CpuArchitecture>,
    /// The architectures that have a virtual CD.
    pub media: Vec<CpuArchitecture>,
    /// The addresses for machines; `None` if another DHCP server assigns addresses.
    pub leases: Option<Leases>,
    /// The addresses for BMCs; `None` if the service leases none.
    pub bmc_leases: Option<Leases>,
    /// The answer to machines that nobody has enrolled.
    pub unknown_machines: UnknownMachines,
    /// How discovered machines become nodes.
    pub discovery: DiscoverySettings,
    /// Where BMCs are looked for; `None` if they are not.
    pub crawl: Option<CrawlSettings>,
    /// Additional kernel parameters of the ramdisk, such as `console=ttyS0`.
    pub kernel_parameters: Vec<(String, Option<String>)>,
    /// The time without a heartbeat after which an agent counts as lost; agents learn this time from `lookup`.
    pub heartbeat_timeout: Duration,
    /// The counters of the conductor's work.
    pub metrics: ConductorMetrics,
    /// Begins the traces of turns that no request asked for.
    pub tracer: Tracer,
    /// Returns the current time.
    pub clock: fn() -> Timestamp,
}

/// The counters of the conductor's work.
#[derive(Clone, Debug, Default)]
pub struct ConductorMetrics {
    pub turns: TurnMetrics,
    pub bmc_calls: BmcMetrics,
    pub sweeps: SweepMetrics,
    pub sensors: SensorGauges,
}

#[cfg(any(test, feature = "samples"))]
impl Settings {
    /// Returns settings for tests: no cloud, no clusterd, no provisioning network, and every duration a minute.
    pub fn sample(clock: fn() -> Timestamp) -> Settings {
        let minute = Duration::from_secs(60);
        Settings {
            hostname: "host-1".to_owned(),
            instance: "instance-1".to_owned(),
            peer_url: None,
            groups: vec![String::new()],
            workers: 1,
            timeouts: Timeouts {
                bmc: minute,
                power: minute,
                boot: minute,
                command: minute,
                firmware: minute,
                silence: minute,
                ask_again: minute,
                poll_every: minute,
            },
            step_priorities: StepPriorities::default(),
            bmc: BmcSettings {
                request_timeout: minute,
                requests_per_second: 10,
                burst: 10,
                allow_unverified: true,
                authorities: Vec::new(),
                allowed: AllowedHosts::default(),
                event_hosts: AllowedHosts::default(),
            },
            image_hosts: AllowedHosts::default(),
            image_folder: None,
            pull_secret_registries: Vec::new(),
            sweep: SweepSettings { every: minute, at_once: 1, max_retries: 3 },
            sensors: None,
            fast_track: false,
            bootloader_install: false,
            look_every: minute,
            consoles: ConsoleSettings::default(),
            lending: LendingSettings::default(),
            cloud: None,
            networks: NetworkSettings::default(),
            names: None,
            clusters: None,
            provisioning_url: None,
            https_url: None,
            architectures: vec![CpuArchitecture::X86_64],
            media: vec![CpuArchitecture::X86_64],
            leases: None,
            bmc_leases: None,
            unknown_machines: UnknownMachines::Refuse,
            discovery: DiscoverySettings::default(),
            crawl: None,
            kernel_parameters: Vec::new(),
            heartbeat_timeout: minute,
            metrics: ConductorMetrics::default(),
            tracer: Tracer::default(),
            clock,
        }
    }
}

/// The networks in Neutron to which the service connects machines with the network interface `neutron`.
#[derive(Clone, Debug)]
pub struct NetworkSettings {
    /// The name or id of each network, for nodes that do not name their own.
    pub names: BTreeMap<ServiceNetwork, String>,
    /// The ids of the security groups of the ports in these networks; empty for the default group of the cloud's project.
    pub security_groups: Vec<String>,
    /// How work goes on at a port that Neutron cannot connect, for nodes that do not say so themselves.
    pub failed_binding: FailedBinding,
}

impl Default for NetworkSettings {
    fn default() -> Self {
        NetworkSettings {
            names: BTreeMap::new(),
            security_groups: Vec::new(),
            failed_binding: FailedBinding::Fails,
        }
    }
}

/// The names of machines in DNS.
#[derive(Clone, Debug)]
pub struct NameSettings {
    pub zone: DnsZone,
    /// The pause between two comparisons of the zone with the nodes.
    pub every: Duration,
}

/// How work goes on at a port that Neutron cannot connect, because no mechanism driver of Neutron configures the switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailedBinding {
    Fails,
    /// The work goes on, because the switch connects the machine anyway.
    IsIgnored,
}

/// How BMCs are treated. BMCs are slow computers that fail under load.
#[derive(Clone, Debug)]
pub struct BmcSettings {
    pub request_timeout: Duration,
    /// The average number of requests per second to one BMC.
    pub requests_per_second: u32,
    /// The number of requests that a BMC may get in one burst after a pause.
    pub burst: u32,
    /// Whether a node may disable the verification of its BMC's certificate.
    pub allow_unverified: bool,
    /// Additional CA certificates for BMCs, as PEM.
    pub authorities: Vec<u8>,
    /// The addresses that BMCs may have.
    pub allowed: AllowedHosts,
    /// The hosts to which BMCs may be told to send their events.
    pub event_hosts: AllowedHosts,
}

/// How the sensors of idle nodes are read.
#[derive(Clone, Copy, Debug)]
pub struct SensorSettings {
    /// The interval between the starts of two rounds.
    pub every: Duration,
    /// How many BMCs are asked in parallel.
    pub at_once: usize,
    /// Whether nodes without an instance are read too.
    pub undeployed_nodes: bool,
}

/// How power states of idle nodes are refreshed.
#[derive(Clone, Copy, Debug)]
pub struct SweepSettings {
    /// The interval between the starts of two sweeps.
    pub every: Duration,
    /// How many BMCs are asked in parallel.
    pub at_once: usize,
    /// How many sweeps in a row may fail to read a power state before the next failure puts the node into maintenance.
    pub max_retries: u32,
}

/// The stages at the end of a node's lease, and the receivers of notices about them.
#[derive(Clone, Debug)]
pub struct LendingSettings {
    pub schedule: LeaseSchedule,
    /// The receivers of notices outside of the API: a webhook and mail addresses.
    pub addressees: ReceiverKinds,
}

impl Default for LendingSettings {
    fn default() -> Self {
        let schedule = LeaseSchedule::default().without_snapshot();
        LendingSettings { schedule, addressees: ReceiverKinds::default() }
    }
}

/// The addresses that the conductor leases by DHCP, to machines or to BMCs.
#[derive(Clone, Debug)]
pub struct Leases {
    /// The range of addresses, and how long a machine that nobody has enrolled, or a BMC, keeps one.
    pub pool: AddressPool,
    /// Probes whether an address is in use.
    pub prober: Prober,
    /// The prefix length of the network.
    pub prefix: u8,
    /// The default gateway, if there is one.
    pub router: Option<IpAddr>,
    pub dns: Vec<IpAddr>,
}

impl Leases {
    /// Returns whether the provisioning network has IPv6. Its machines get their addresses by DHCPv6.
    pub(crate) fn is_v6(&self) -> bool {
        self.pool.first.is_ipv6()
    }
}

/// How discovered machines become nodes.
#[derive(Clone, Debug)]
pub struct DiscoverySettings {
    pub accepted_by: AcceptedBy,
    /// The driver of machines that do not tell which protocol their BMC speaks.
    pub driver: Driver,
    /// The credentials of BMCs by their networks, for nodes that are accepted without credentials. The first network that contains the BMC
    /// counts.
    pub credentials: Vec<BmcCredentials>,
}

impl Default for DiscoverySettings {
    fn default() -> Self {
        let accepted_by = AcceptedBy::Person;
        DiscoverySettings { accepted_by, driver: Driver::Redfish, credentials: Vec::new() }
    }
}

/// Where BMCs are looked for.
#[derive(Clone, Debug)]
pub struct CrawlSettings {
    pub ranges: Vec<CrawlRange>,
    /// The interval between the starts of two crawls.
    pub every: Duration,
    /// How many addresses are asked in a second.
    pub per_second: u32,
    /// The ports on which a Redfish service is looked for.
    pub redfish_ports: Vec<u16>,
    pub ipmi_port: u16,
}

/// How a discovered machine is accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AcceptedBy {
    Person,
    /// The machine becomes a node as soon as its inventory arrives, and the inspection rules run.
    InspectionRules,
}

/// The answer to machines that nobody has enrolled. They are never installed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UnknownMachines {
    /// Record the DHCP request, and do not answer.
    #[default]
    Refuse,
    /// Boot the ramdisk, take the machine's inventory and list the machine.
    Discover,
}
