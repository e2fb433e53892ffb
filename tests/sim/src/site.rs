//! A site: several processes of both services on one database each, a rack, and a cloud.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use api_client::Service;
use baremetal::Listeners;
use database::shared::{Fate, set_way};
use lab::{Answer, Image, Images, Machine, RackedMachine, Settings, configuration};
use machine_emulator::{AgentKind, Network, Rack, Speed, Stage, Systems};
use openstack_emulator::kubernetes::Nodes;
use openstack_emulator::{Cloud, Emulator, Hypervisor, Kind, Times};
use reqwest::Method;
use serde_json::Value;
use simulated_kernel::Host;
use tempfile::TempDir;
use tokio::time::{sleep, timeout};
use url::Url;

use crate::chance::{between, happens, millis, one_of};
use crate::computer::Computer;
use crate::quorum::Watch;
use crate::replica::Replica;
use crate::trace::Trace;
use crate::weather::Weather;

/// How many processes and machines a site has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    pub(crate) baremetalds: usize,
    pub(crate) machines: usize,
    pub(crate) clusterds: usize,
    /// Whether the machines become hypervisors of the cloud.
    pub(crate) are_hypervisors: bool,
}

impl Size {
    pub(crate) fn choose() -> Size {
        let are_hypervisors = happens(40);
        Size {
            baremetalds: between(1, 3) as usize,
            machines: between(if are_hypervisors { 2 } else { 1 }, 3) as usize,
            clusterds: between(1, 2) as usize,
            are_hypervisors,
        }
    }
}

/// A running site.
pub(crate) struct Site {
    pub(crate) size: Size,
    pub(crate) baremetalds: Vec<Arc<Replica>>,
    pub(crate) clusterds: Vec<Arc<Replica>>,
    pub(crate) cloud: Cloud,
    /// The project in which clusterd makes clusters and VMs.
    pub(crate) project: String,
    /// The kind, name and id of each object of the project before anything was requested.
    pub(crate) before: Vec<(Kind, String, String)>,
    pub(crate) cloud_computer: Computer,
    /// Watches the servers of the cloud.
    pub(crate) watch: Watch,
    pub(crate) machines: Vec<RackedMachine>,
    pub(crate) image: Image,
    pub(crate) rack: Computer,
    pub(crate) weather: Arc<Weather>,
    pub(crate) trace: Trace,
    _emulator: Emulator,
    _racks: Vec<Rack>,
    _images: Images,
    _folder: TempDir,
}

/// The settings of a baremetald that asks this clusterd for drains, if its machines become hypervisors.
fn settings(database: &str, folder: &Path, clusterd: Option<usize>) -> Settings {
    let asked =
        clusterd.map(|number| format!("[clusters]\nurl = 'http://{}/'\n", clusters_at(number)));
    Settings {
        boot_timeout: "300s",
        bmc_timeout: "120s",
        power_timeout: "60s",
        silence_timeout: "120s",
        ask_again: "5s",
        poll_every: "1s",
        requests_per_second: 20,
        database: Some(database.to_owned()),
        cloud: clusterd.map(|_| folder.join("clouds.yaml")),
        more: asked.unwrap_or_default(),
        ..Settings::default()
    }
}

/// The addresses of a process.
fn listeners(number: usize) -> Listeners {
    let ip = Ipv4Addr::new(127, 10, 0, number as u8 + 1);
    let at = |port| Some(SocketAddr::from((ip, port)));
    Listeners {
        api: SocketAddr::from((ip, 6385)),
        provisioning: at(6080),
        https: None,
        dhcp: at(67),
        tftp: at(69),
        bmc_dhcp: None,
        metrics: None,
    }
}

/// How long a person waits for an answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// The address of the API of a clusterd.
fn clusters_at(number: usize) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::new(127, 20, 0, number as u8 + 1), 9511))
}

impl Site {
    /// The names of the machines that do not run the system on their disk.
    pub(crate) fn off(&self) -> BTreeSet<String> {
        let is_off = |it: &&RackedMachine| *it.stage().borrow() != Stage::Installed;
        self.machines.iter().filter(is_off).map(|it| it.name().to_owned()).collect()
    }

    /// Sends a request to any process of a service. Returns `None` without an answer.
    pub(crate) async fn ask(
        &self,
        service: Service,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Option<Answer> {
        let replica = match service {
            Service::Baremetald => one_of(&self.baremetalds).clone(),
            Service::Clusterd => one_of(&self.clusterds).clone(),
        };
        let sent = replica.api.try_send(method, path, body);
        timeout(ANSWER_TIMEOUT, sent).await.ok()?.ok()
    }

    /// The objects of the project that came since the beginning.
    pub(crate) fn objects(&self) -> Vec<(Kind, String, String)> {
        let all = self.cloud.objects_of(&self.project);
        all.into_iter().filter(|it| !self.before.contains(it)).collect()
    }

    /// All processes, each with the hosts that it works on.
    pub(crate) fn processes(&self) -> Vec<(Arc<Replica>, Vec<Host>)> {
        let cloud = self.cloud_computer.host;
        let asked = self.clusterds.iter().map(|it| it.host).chain([cloud]);
        let asked = asked.filter(|_| self.size.are_hypervisors);
        let machines: Vec<Host> = asked.chain([self.rack.host]).collect();
        let machines = self.baremetalds.iter().map(|it| (it.clone(), machines.clone()));
        machines.chain(self.clusterds.iter().map(|it| (it.clone(), vec![cloud]))).collect()
    }

    pub(crate) async fn start(size: Size, trace: &Trace) -> Site {
        // Fails if there is a provider already, which is fine.
        let _ = rustls::crypto::ring::default_provider().install_default();
        // Two simulations with one seed choose the same name.
        let place = std::env::temp_dir().join(format!("sim-{}", std::process::id()));
        std::fs::create_dir_all(&place).expect("a folder can be made");
        let folder = tempfile::tempdir_in(&place).expect("a temporary folder can be made");
        lab::write_files(folder.path()).expect("files can be written");
        let url = format!("shared-sqlite://{}/baremetal.db", folder.path().display());
        let weather = Arc::new(Weather::default());
        way(&url, &weather);
        let cloud_computer = Computer::start();
        let nodes = Arc::new(Nodes::default());
        let emulator = start_cloud(size, folder.path(), &cloud_computer, nodes.clone()).await;
        let clusterds = clusters(size, folder.path(), &weather, trace).await;
        let baremetald = |number: usize| {
            let clusterd = size.are_hypervisors.then_some(number % size.clusterds);
            Arc::new(baremetald(
                folder.path(),
                number,
                &settings(&url, folder.path(), clusterd),
                trace,
            ))
        };
        let baremetalds: Vec<_> = (0..size.baremetalds).map(baremetald).collect();
        for (number, replica) in baremetalds.iter().enumerate() {
            replica.start();
            is_up(replica).await;
            if number == 0 {
                let others = (1..size.baremetalds).map(name_of);
                others.for_each(|other| {
                    copy_keys(folder.path(), (&name_of(0), &other), &["service.key", "seal.keys"])
                });
            }
        }
        let rack = Computer::start();
        let images = rack.run(Images::start()).await.expect("an image server starts");
        let image = images.bootable("system.raw");
        let (racks, machines) = fill_rack(size, &rack).await;
        let cloud = emulator.cloud.clone();
        let project = cloud.add_user("watcher", "watcher-secret", "service").project_id;
        let before = cloud.objects_of(&project);
        Site {
            size,
            watch: Watch::new(&cloud, nodes, trace),
            clusterds,
            cloud,
            project,
            before,
            cloud_computer,
            _emulator: emulator,
            baremetalds,
            machines,
            image,
            rack,
            weather,
            trace: trace.clone(),
            _racks: racks,
            _images: images,
            _folder: folder,
        }
    }
}

/// Enough for a few servers of a cluster.
const DISK_BYTES: u64 = 200 << 30;

/// Puts machines into racks. Each machine boots from one baremetald.
async fn fill_rack(size: Size, computer: &Computer) -> (Vec<Rack>, Vec<RackedMachine>) {
    let (mut racks, mut machines) = (Vec::new(), Vec::new());
    for number in 0..size.machines {
        let at = listeners(number % size.baremetalds);
        let network = Network { dhcp: at.dhcp.expect("an address"), tftp: at.tftp };
        let name = format!("m{number}");
        let mut wanted = match happens(30) {
            true => Machine::ipmi(&name),
            false => Machine::redfish(&name).without_tls(),
        };
        let systems = match size.are_hypervisors {
            true => Systems::ComputeHosts,
            false => Systems::Inert,
        };
        wanted.spec.disks.iter_mut().for_each(|disk| disk.size_bytes = DISK_BYTES);
        let spec = wanted.spec.clone();
        let (placed, added) = computer
            .run(async move {
                let started = Rack::start_with(network, Speed::times(1.0), systems).await;
                let mut rack = started.expect("a rack starts");
                let added = rack.add(vec![(spec, AgentKind::Light)]).await;
                (rack, added.expect("a BMC starts"))
            })
            .await;
        racks.push(placed);
        machines.extend(added.into_iter().map(|machine| RackedMachine::new(&wanted, machine)));
    }
    (racks, machines)
}

/// The way of all processes to a database.
fn way(url: &str, weather: &Arc<Weather>) {
    let weather = weather.clone();
    set_way(
        url,
        Box::new(move || {
            let weather = weather.clone();
            Box::pin(async move {
                sleep(millis(0, 3)).await;
                let (is_away, loses) = weather.database();
                if is_away {
                    sleep(Duration::from_secs(1)).await;
                    return Fate::NeverArrives;
                }
                if happens(loses) { Fate::AnswerIsLost } else { Fate::Done }
            })
        }),
    );
}

fn name_of(number: usize) -> String {
    format!("baremetald-{number}")
}

fn baremetald(folder: &Path, number: usize, settings: &Settings, trace: &Trace) -> Replica {
    let (name, at) = (name_of(number), listeners(number));
    let text = configuration(settings, folder, (&name, &name), Some(&at));
    let config = folder.join(format!("{name}.toml"));
    std::fs::write(&config, text).expect("a file can be written");
    let url = Url::parse(&format!("http://{}/", at.api)).expect("an address makes a URL");
    Replica::new(&name, Service::Baremetald, config, url, trace)
}

/// Gives a further process the keys of the first one.
fn copy_keys(folder: &Path, (first, other): (&str, &str), keys: &[&str]) {
    let state = folder.join(other);
    std::fs::create_dir(&state).expect("a folder can be made");
    for key in keys {
        std::fs::copy(folder.join(first).join(key), state.join(key)).expect("a key can be copied");
    }
}

/// The host that is no machine of the site. The machines that become hosts have more memory, so the scheduler prefers them.
fn other_host() -> Hypervisor {
    Hypervisor {
        name: "compute-1".to_owned(),
        zone: "nova".to_owned(),
        vcpus: 8,
        memory_mb: 16 * 1024,
        disk_gb: 200,
        gpus: 0,
    }
}

/// Starts a cloud, whose servers run the guest `nodes`.
async fn start_cloud(
    size: Size,
    folder: &Path,
    computer: &Computer,
    nodes: Arc<Nodes>,
) -> Emulator {
    let mut settings = openstack_emulator::Settings {
        times: Times::realistic(),
        shared_networks: BTreeMap::from([("lab".to_owned(), "10.7.0.0/24".to_owned())]),
        ..Default::default()
    };
    if size.are_hypervisors {
        settings.hypervisors = vec![other_host()];
        settings.enable_new_services = false;
        // A live migration takes longer than to switch a machine off.
        settings.times.server_action = 6000;
    }
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let started = computer.run(Emulator::start_with(settings, address, nodes)).await;
    let emulator = started.expect("a cloud starts");
    std::fs::write(folder.join("clouds.yaml"), emulator.cloud.clouds_yaml()).expect("a file");
    emulator
}

/// Starts each clusterd.
async fn clusters(
    size: Size,
    folder: &Path,
    weather: &Arc<Weather>,
    trace: &Trace,
) -> Vec<Arc<Replica>> {
    let url = format!("shared-sqlite://{}/cluster.db", folder.display());
    way(&url, weather);
    let all: Vec<_> =
        (0..size.clusterds).map(|number| Arc::new(clusterd(folder, number, &url, trace))).collect();
    for (number, replica) in all.iter().enumerate() {
        replica.start();
        is_up(replica).await;
        if number == 0 {
            for other in &all[1..] {
                copy_keys(folder, (&replica.name, &other.name), &["seal.keys", "nodes.authority"]);
            }
        }
    }
    all
}

/// Nothing downloads or runs these programs: emulated servers become a cluster without them.
const PROGRAM: &str = "{ url = 'https://mirror.example/program', sha256 = '0000000000000000000000000000000000000000000000000000000000000000' }";

fn programs(version: &str) -> String {
    let programs = ["kubeadm", "kubelet", "kubectl"].map(|name| format!("{name} = {PROGRAM}\n"));
    format!("[kubernetes.versions.'{version}']\n{}", programs.concat())
}

fn clusterd(folder: &Path, number: usize, database: &str, trace: &Trace) -> Replica {
    let name = format!("clusterd-{number}");
    let (at, place) = (clusters_at(number), folder.display());
    let ip = at.ip();
    let text = format!(
        "state_dir = '{place}/{name}'\n[api]\nlisten = '{at}'\n\
         [cloud]\nclouds_yaml = '{place}/clouds.yaml'\nname = 'clusterd'\n\
         [conductor]\nhostname = '{name}'\nlook_every = '5s'\n\
         [machines]\nnetwork = 'lab'\nimages = [{{ name = 'cirros' }}]\n\
         [backups]\ncontainer = 'etcd'\nevery = '0s'\n\
         [nodes]\nlisten = '{ip}:9512'\nurl = 'https://127.20.0.1:9512/'\nsource_address = 'any'\n\
         {}{}\
         [database]\nurl = '{database}'\ntimeout = '1s'\n",
        programs("v1.34.1"),
        programs("v1.34.2"),
    );
    let config = folder.join(format!("{name}.toml"));
    std::fs::write(&config, text).expect("a file can be written");
    let url = Url::parse(&format!("http://{at}/")).expect("an address makes a URL");
    Replica::new(&name, Service::Clusterd, config, url, trace)
}

/// Waits until a process answers.
pub(crate) async fn is_up(replica: &Replica) {
    while replica.api.try_send(Method::GET, "/", None).await.is_err() {
        sleep(Duration::from_millis(100)).await;
    }
}
