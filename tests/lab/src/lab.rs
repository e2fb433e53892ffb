//! Starts a whole installation, and holds it while a test runs.

use std::fmt::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use api_client::Service;
use baremetal::Listeners;
use baremetal_store::Store;
use machine_emulator::{AgentKind, Network, Rack, Speed, Systems};
use tempfile::TempDir;
use tokio::sync::{Mutex, OnceCell};
use url::Url;

use crate::api::Api;
use crate::daemon::Daemon;
use crate::files;
use crate::haproxy::Haproxy;
use crate::images::{Image, Images};
use crate::machine::{AgentChoice, Machine, RackedMachine};
use crate::programs::Programs;

/// A whole installation on free ports, which stops on drop.
pub struct Lab {
    pub(crate) daemon: Mutex<Daemon>,
    pub(crate) api: Api,
    pub(crate) image: Image,
    images: Images,
    provisioning: Url,
    bmc_dhcp: Option<SocketAddr>,
    rack: Mutex<Rack>,
    pub(crate) settings: Settings,
    pub(crate) folder: TempDir,
    pub(crate) records: OnceCell<Store>,
    pub(crate) haproxy: Option<Haproxy>,
}

/// Where the machines and the clients of a lab reach the service.
pub(crate) struct Addresses {
    pub(crate) api: SocketAddr,
    pub(crate) provisioning: SocketAddr,
    pub(crate) bmc_dhcp: Option<SocketAddr>,
    pub(crate) networks: Vec<Network>,
    pub(crate) haproxy: Option<Haproxy>,
}

impl Addresses {
    /// The addresses of a service's own listeners.
    fn of(listeners: &Listeners) -> Addresses {
        Addresses {
            api: listeners.api,
            provisioning: listeners.provisioning.expect("a provisioning listener is configured"),
            bmc_dhcp: listeners.bmc_dhcp,
            networks: vec![network(listeners)],
            haproxy: None,
        }
    }
}

/// The servers from which machines boot by these listeners.
pub(crate) fn network(listeners: &Listeners) -> Network {
    Network { dhcp: listeners.dhcp.expect("DHCP is configured"), tftp: listeners.tftp }
}

/// The settings in which labs differ, with the names used in `baremetald.toml`.
#[derive(Clone, Debug)]
pub struct Settings {
    /// From power-on to the report of the agent.
    pub boot_timeout: &'static str,
    /// For a request to a BMC.
    pub bmc_timeout: &'static str,
    /// For a machine to switch on or off.
    pub power_timeout: &'static str,
    /// For an agent that does not answer.
    pub silence_timeout: &'static str,
    /// For an update of firmware, or a change of a RAID volume.
    pub firmware_timeout: &'static str,
    /// How long after an accepted power change the BMC is asked again.
    pub ask_again: &'static str,
    pub poll_every: &'static str,
    pub power_sync_every: &'static str,
    /// Whether ramdisks stay on for the next work.
    pub fast_track: bool,
    /// The most requests per second to one BMC.
    pub requests_per_second: u32,
    /// The treatment of machines that are not enrolled: `refuse` or `discover`.
    pub unknown_machines: &'static str,
    /// A clouds.yaml with the cloud `admin`. If set, machines with the image of a compute host join this cloud.
    pub cloud: Option<PathBuf>,
    /// The URL of a PostgreSQL database; `None` means a SQLite file.
    pub database: Option<String>,
    /// How long PostgreSQL may take for each answer.
    pub database_timeout: &'static str,
    /// The programs of replicas at their first start.
    pub programs: Programs,
    /// The URL of a load balancer with the PROXY protocol, by which machines reach the service; `None` means the service's own listener.
    pub provisioning_url: Option<Url>,
    /// How many times faster than real machines the emulated ones are. At 100 the self-test of the firmware takes 30 ms.
    pub speed: f64,
    /// Whether each replica has a clock of its own, which the test can set.
    pub clocks: ReplicaClocks,
    /// Further tables of the configuration file.
    pub more: String,
}

/// The clocks of replicas.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReplicaClocks {
    /// The clock of this computer.
    #[default]
    OfComputer,
    /// Debian's libfaketime has to be installed.
    Faked,
}

impl Default for Settings {
    /// Timeouts that no healthy machine exceeds on a busy computer, and short polling intervals.
    fn default() -> Self {
        Settings {
            boot_timeout: "100s",
            bmc_timeout: "60s",
            power_timeout: "60s",
            silence_timeout: "60s",
            firmware_timeout: "100s",
            ask_again: "1s",
            poll_every: "50ms",
            power_sync_every: "60s",
            fast_track: false,
            requests_per_second: 1000,
            unknown_machines: "refuse",
            cloud: None,
            database: None,
            database_timeout: "1s",
            programs: Programs::default(),
            provisioning_url: None,
            speed: 100.0,
            clocks: ReplicaClocks::default(),
            more: String::new(),
        }
    }
}

impl Lab {
    /// Starts a lab with baremetald inside the test process.
    pub async fn start() -> Lab {
        Lab::start_with(Settings::default()).await
    }

    /// Starts a lab with other settings.
    pub async fn start_with(settings: Settings) -> Lab {
        let (folder, config) = prepare(&settings);
        let (daemon, listeners) = Daemon::inside(&config).await;
        Lab::around(daemon, Addresses::of(&listeners), folder, settings).await
    }

    /// Starts a lab with baremetald as a child process, which can be killed.
    pub async fn with_child(settings: Settings) -> Lab {
        let (folder, config) = prepare(&settings);
        let (daemon, listeners) = Daemon::child(&config, &folder.path().join("state")).await;
        // After a restart the service must listen at the addresses that machines and agents know.
        std::fs::write(&config, configuration(&settings, folder.path(), FIRST, Some(&listeners)))
            .expect("the configuration can be written");
        Lab::around(daemon, Addresses::of(&listeners), folder, settings).await
    }

    /// Starts a lab with baremetald inside the test process, to be killed at its effects and writes.
    pub async fn with_mortal(settings: Settings) -> Lab {
        let (folder, config) = prepare(&settings);
        let (daemon, listeners) = Daemon::mortal(&config, &database(&settings, &folder)).await;
        // After a restart the service must listen at the addresses that machines and agents know.
        std::fs::write(&config, configuration(&settings, folder.path(), FIRST, Some(&listeners)))
            .expect("the configuration can be written");
        Lab::around(daemon, Addresses::of(&listeners), folder, settings).await
    }

    pub(crate) async fn around(
        daemon: Daemon,
        addresses: Addresses,
        folder: TempDir,
        settings: Settings,
    ) -> Lab {
        let Addresses { api, provisioning, bmc_dhcp, networks, haproxy } = addresses;
        let (speed, systems) = (Speed::times(settings.speed), systems(&settings));
        let rack = Rack::start_among(networks, speed, systems).await.expect("a rack starts");
        let images = Images::start().await.expect("an image server starts");
        let base = Url::parse(&format!("http://{api}/"));
        let provisioning = Url::parse(&format!("http://{provisioning}/"));
        Lab {
            daemon: Mutex::new(daemon),
            api: Api::new(Service::Baremetald, base.expect("an address makes a URL")),
            image: images.bootable("system.raw"),
            images,
            provisioning: provisioning.expect("an address makes a URL"),
            bmc_dhcp,
            rack: Mutex::new(rack),
            settings,
            folder,
            records: OnceCell::new(),
            haproxy,
        }
    }

    /// Puts a machine, switched off, into the rack.
    pub async fn rack(&self, machine: Machine) -> RackedMachine {
        let mut placed = self.rack_all(vec![machine]).await;
        placed.pop().expect("one went in")
    }

    /// Puts machines, switched off, into the rack.
    pub async fn rack_all(&self, machines: Vec<Machine>) -> Vec<RackedMachine> {
        let parts = machines.iter().map(|machine| (machine.spec.clone(), self.agent_of(machine)));
        let added = self.rack.lock().await.add(parts.collect()).await;
        let added = added.expect("BMCs find free ports");
        machines
            .iter()
            .zip(added)
            .map(|(wanted, added)| RackedMachine::new(wanted, added))
            .collect()
    }

    /// The image server, which the test can make misbehave.
    pub fn images(&self) -> &Images {
        &self.images
    }

    /// The default image of nodes.
    pub fn image(&self) -> &Image {
        &self.image
    }

    /// Writes an image into the folder from which the service serves images, and returns the image as a file of the host.
    pub fn image_in_folder(&self, name: &str, content: &[u8]) -> Image {
        let path = self.folder.path().join("images").join(name);
        std::fs::write(&path, content).expect("a file can be written");
        Image::of(format!("file://{}", path.display()), "raw", content)
    }

    /// The URL at which machines and their agents reach the service.
    pub fn provisioning(&self) -> &Url {
        &self.provisioning
    }

    /// Returns the address that the service leases to the BMC with this MAC address, if `[bmc.dhcp]` is configured and the server answers.
    pub async fn address_of_bmc(&self, mac: [u8; 6]) -> Option<Ipv4Addr> {
        let server = self.bmc_dhcp.expect("DHCP for BMCs is configured");
        machine_emulator::address_of_bmc(server, mac).await.expect("a socket can be opened")
    }

    /// A client of the API.
    pub fn api(&self) -> &Api {
        &self.api
    }

    fn agent_of(&self, machine: &Machine) -> AgentKind {
        match machine.agent {
            AgentChoice::TheEmulator => AgentKind::Light,
            AgentChoice::TheProject => AgentKind::Program {
                path: compat::program("ramdisk-agent"),
                folder: self.folder.path().join("machines").join(&machine.spec.name),
            },
        }
    }
}

impl Drop for Lab {
    /// Keeps the state of the service for the search for leaked secrets.
    fn drop(&mut self) {
        left::keep(&self.folder.path().join("state"), "lab");
    }
}

/// The URL of the service's database.
fn database(settings: &Settings, folder: &TempDir) -> String {
    let file = || format!("sqlite://{}/state/baremetal.db", folder.path().display());
    settings.database.clone().unwrap_or_else(file)
}

fn systems(settings: &Settings) -> Systems {
    if settings.cloud.is_some() { Systems::ComputeHosts } else { Systems::Inert }
}

pub(crate) fn prepare(settings: &Settings) -> (TempDir, PathBuf) {
    // Fails if another test has installed the provider already, which is fine.
    let _ = rustls::crypto::ring::default_provider().install_default();
    left::keep_logs();
    let folder = tempfile::Builder::new().prefix("lab-").tempdir();
    let folder = folder.expect("a temporary folder can be made");
    files::write(folder.path()).expect("stand-ins can be written");
    let config = folder.path().join("baremetald.toml");
    std::fs::write(&config, configuration(settings, folder.path(), FIRST, None))
        .expect("the configuration can be written");
    (folder, config)
}

/// The host name and the state folder of the lab's first baremetald.
pub(crate) const FIRST: (&str, &str) = ("lab", "state");

/// The text of `baremetald.toml`: with free ports, or with the addresses `at` of an earlier start.
pub fn configuration(
    settings: &Settings,
    folder: &Path,
    (hostname, state): (&str, &str),
    at: Option<&Listeners>,
) -> String {
    let free = SocketAddr::from(([127, 0, 0, 1], 0));
    let api = at.map_or(free, |at| at.api);
    let provisioning = at.and_then(|at| at.provisioning).unwrap_or(free);
    let dhcp = at.and_then(|at| at.dhcp).unwrap_or(free);
    let server = dhcp.ip();
    let peer_url = at.map(|at| format!("peer_url = \"http://{}/\"", at.api)).unwrap_or_default();
    let tftp = at.and_then(|at| at.tftp).unwrap_or(free);
    let folder = folder.display();
    let Settings { boot_timeout, bmc_timeout, power_timeout, silence_timeout, .. } = settings;
    let Settings { ask_again, poll_every, power_sync_every, requests_per_second, more, .. } =
        settings;
    let Settings { unknown_machines, firmware_timeout, fast_track, .. } = settings;
    let url = settings.provisioning_url.as_ref();
    let behind =
        "connections = { proxy_protocol_from = [\"127.0.0.1\"], answer_timeout = \"15m\" }";
    let url = url.map(|url| format!("url = \"{url}\"\n{behind}")).unwrap_or_default();
    let mut text = String::new();
    let written = write!(
        text,
        r#"state_dir = "{folder}/{state}"
[api]
listen = "{api}"
[conductor]
hostname = "{hostname}"
{peer_url}
power_sync_every = "{power_sync_every}"
look_every = "1s"
fast_track = {fast_track}
[timeouts]
bmc = "{bmc_timeout}"
power = "{power_timeout}"
ask_again = "{ask_again}"
boot = "{boot_timeout}"
command = "100s"
firmware = "{firmware_timeout}"
silence = "{silence_timeout}"
poll_every = "{poll_every}"
[bmc]
request_timeout = "5s"
requests_per_second = {requests_per_second}
burst = {requests_per_second}
networks = ["127.0.0.0/8"]
[images]
hosts = ["127.0.0.0/8"]
[provisioning]
listen = "{provisioning}"
{url}
kernel = "{folder}/kernel"
ramdisk = "{folder}/ramdisk"
iso = "{folder}/boot.iso"
images = "{folder}/images"
loaders = "{folder}/loaders"
heartbeat_timeout = "10s"
tftp = "{tftp}"
unknown_machines = "{unknown_machines}"
[provisioning.dhcp]
listen = "{dhcp}"
server = "{server}"
prefix = 8
range = "127.1.0.1-127.1.255.254"
{more}"#
    );
    written.expect("text can be written to a text");
    if let Some(url) = &settings.database {
        let timeout = settings.database_timeout;
        text += &format!("[database]\nurl = \"{url}\"\ntimeout = \"{timeout}\"\n");
    }
    if let Some(clouds) = &settings.cloud {
        text += &format!("[cloud]\nclouds_yaml = \"{}\"\nname = \"admin\"\n", clouds.display());
    }
    text
}
