//! The settings of a cloud: hypervisors, quotas, durations.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The settings of a new cloud.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// The only region of the catalog.
    pub region: String,
    /// How long objects take to come up after the API has accepted them.
    pub times: Times,
    /// How long the API takes to answer. The first matching entry counts.
    pub latencies: Vec<Latency>,
    /// The hosts on which servers are placed.
    pub hypervisors: Vec<Hypervisor>,
    /// Whether a new compute service gets servers: Nova's option `enable_new_services`.
    pub enable_new_services: bool,
    /// Quotas of projects that have no quotas of their own, by the services' names. -1 means unlimited.
    pub quotas: BTreeMap<String, i64>,
    /// The lifetime of a token in seconds.
    pub token_seconds: u32,
    /// The lifetime of the certificates of Kubernetes nodes in seconds.
    pub certificate_seconds: u32,
    /// The most entries of a page.
    pub page_limit: usize,
    /// The range of the external network. By default a free part of 127.0.0.0/8, whose addresses work on this host.
    pub external_cidr: Option<String>,
    /// Shared networks, on which every project may put servers: name and CIDR.
    pub shared_networks: BTreeMap<String, String>,
    /// Further services in the catalog: type and URL, in which `%(project_id)s` is replaced.
    pub endpoints: BTreeMap<String, String>,
    /// Whether the addresses of load balancers and floating IPs are opened on this host.
    pub open_addresses: bool,
}

/// Declares each duration once: its name, the default, the value measured in a real cloud, and whether `Times::faster` divides it.
macro_rules! times {
    ($($(#[$doc:meta])* $name:ident: $usual:literal, $realistic:literal, $waits:literal;)*) => {
        /// Durations in milliseconds.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub struct Times {
            $($(#[$doc])* pub $name: u32,)*
        }

        impl Default for Times {
            /// Long enough that a fast client sees every intermediate status.
            fn default() -> Self {
                Times { $($name: $usual,)* }
            }
        }

        impl Times {
            /// Durations measured in a real OpenStack: a server 3 to 5 s, a load balancer 3 s and 1 s for each child, DNS names 1.3 s.
            /// Members poll as often as their own script does.
            pub fn realistic() -> Self {
                Times { $($name: $realistic,)* }
            }

            /// Divides all waiting times by `speed`. Intervals of reports and polls stay. Invalid speeds change nothing.
            pub fn faster(self, speed: f64) -> Self {
                if !speed.is_finite() || speed <= 0.0 {
                    return self;
                }
                // The cast saturates at the limits of u32.
                let of = |millis: u32, waits: bool| {
                    if waits { (f64::from(millis) / speed) as u32 } else { millis }
                };
                Times { $($name: of(self.$name, $waits),)* }
            }
        }
    };
}

times! {
    server_build: 30, 4000, true;
    server_action: 20, 2000, true;
    server_delete: 20, 2500, true;
    /// From ACTIVE until the guest reads its user data.
    guest_boot: 10, 8000, true;
    /// The pause between a member's polls for CA rotations. One fifteenth of it while a rotation is in progress.
    guest_asks: 300, 30_000, false;
    load_balancer: 30, 3000, true;
    /// The time for a change of a listener, pool, member or health monitor.
    load_balancer_child: 10, 1000, true;
    zone: 10, 1300, true;
    recordset: 10, 1300, true;
    volume: 10, 2000, true;
    snapshot: 10, 1500, true;
    image_import: 20, 3000, true;
    floating_ip: 0, 500, true;
    router: 0, 500, true;
    /// The interval of a compute service's reports.
    report_interval: 100, 10_000, false;
    /// A compute service without a report for this long counts as down.
    service_down: 1500, 60_000, false;
    /// From the first report of a compute service until its host is in the cell mapping.
    host_discovery: 50, 2000, true;
}

/// How long matching calls take until they are answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Latency {
    /// Match only this method. `None` matches all.
    pub method: Option<String>,
    /// The path: `*` is one segment or a part of it, `**` any number of segments.
    pub path: String,
    pub millis: u32,
}

/// A compute host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hypervisor {
    pub name: String,
    #[serde(default = "nova")]
    pub zone: String,
    /// The number of processors. The overcommit ratio is four.
    pub vcpus: i64,
    pub memory_mb: i64,
    pub disk_gb: i64,
    /// The number of graphics cards, as Placement's PGPU.
    #[serde(default)]
    pub gpus: i64,
}

fn nova() -> String {
    "nova".to_owned()
}

impl Default for Settings {
    /// A fast cloud of four hosts in two zones.
    fn default() -> Self {
        let host = |number: usize| Hypervisor {
            name: format!("compute-{number}"),
            zone: if number <= 2 { "nova" } else { "az2" }.to_owned(),
            vcpus: 64,
            memory_mb: 512 * 1024,
            disk_gb: 8000,
            gpus: if number == 1 { 4 } else { 0 },
        };
        Settings {
            region: "RegionOne".into(),
            times: Times::default(),
            latencies: Vec::new(),
            hypervisors: (1..=4).map(host).collect(),
            enable_new_services: true,
            quotas: BTreeMap::new(),
            token_seconds: 3600,
            // kubeadm's
            certificate_seconds: 365 * 24 * 3600,
            page_limit: 1000,
            external_cidr: None,
            shared_networks: BTreeMap::new(),
            endpoints: BTreeMap::new(),
            open_addresses: true,
        }
    }
}

impl Settings {
    /// A cloud with the durations measured in a real cloud on two cores.
    pub fn realistic() -> Self {
        Settings {
            times: Times::realistic(),
            latencies: Latency::realistic(),
            ..Settings::default()
        }
    }
}

impl Latency {
    /// The latencies measured in a small real cloud.
    pub fn realistic() -> Vec<Latency> {
        let table = [
            ("POST", "/identity/v3/auth/tokens", 250),
            ("POST", "/compute/**", 450),
            ("POST", "/network/**", 300),
            ("PUT", "/network/**", 250),
            ("DELETE", "/network/**", 250),
            ("POST", "/load-balancer/**", 350),
            ("DELETE", "/load-balancer/**", 200),
            ("POST", "/dns/**", 150),
            ("POST", "/volume/**", 200),
            ("GET", "/compute/**", 80),
            ("GET", "/network/**", 60),
        ];
        let row = |(method, path, millis): (&str, &str, u32)| Latency {
            method: Some(method.to_owned()),
            path: path.to_owned(),
            millis,
        };
        let rest = Latency { method: None, path: "/**".into(), millis: 50 };
        table.into_iter().map(row).chain([rest]).collect()
    }
}

/// Converts milliseconds to a duration.
pub(crate) fn millis(millis: u32) -> Duration {
    Duration::from_millis(millis.into())
}
