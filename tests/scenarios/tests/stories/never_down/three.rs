//! Three baremetald, three clusterd and three consoled behind haproxy, an emulated cloud that clusterd and the hypervisors of baremetald
//! use, and a rack of emulated machines.

use std::net::SocketAddr;
use std::time::Duration;

use api_client::Service;
use api_client::shared::ConductorProgress;
use lab::{
    Api, Haproxy, Lab, Programs, Proxy, ProxyKind, Replica, ServerState, Settings, free_ports,
};
use openstack_emulator::Times;
use reqwest::Url;
use serde::Deserialize;
use tokio::time::Instant;

use super::program::Program;
use super::{HANDED_OVER, TAKEN_OVER};
use crate::hypervisors::add_nova;
use crate::services::{KEYS, configuration};
use crate::site::Site;

/// The host names of the conductors of both services, in the order of the replicas.
pub(super) const NAMES: [&str; 3] = ["lab", "two", "three"];

/// Three of each service.
pub(super) struct Three {
    pub(super) lab: Lab,
    pub(super) baremetalds: [Replica; 3],
    pub(super) clusterds: Vec<Program>,
    pub(super) consoleds: Vec<Program>,
    /// The client of clusterd behind haproxy.
    pub(super) clusters: Api,
    /// The console behind haproxy.
    pub(super) console: Url,
    pub(super) site: Site,
    /// Before clusterd, its listeners for members, and the console.
    haproxy: Haproxy,
    members: Vec<SocketAddr>,
}

/// One of the processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Process {
    Baremetald(usize),
    Clusterd(usize),
    Consoled(usize),
}

impl Process {
    /// All processes: one of each service, and then the next of each.
    pub(super) fn all() -> Vec<Process> {
        let each = |number| {
            [Process::Baremetald(number), Process::Clusterd(number), Process::Consoled(number)]
        };
        (0..NAMES.len()).flat_map(each).collect()
    }
}

#[derive(Debug, Deserialize)]
struct Conductors {
    conductors: Vec<ConductorProgress>,
}

impl Three {
    /// Starts everything on the PostgreSQL databases with these URLs, which a function tells by the name of the service. Returns `None` if
    /// haproxy is not installed.
    pub(super) async fn start(url: impl Fn(&str) -> String, settings: Settings) -> Option<Three> {
        let cloud = openstack_emulator::Settings {
            times: times(),
            enable_new_services: false,
            ..openstack_emulator::Settings::default()
        };
        let site = Site::start_with("clusterd", cloud).await;
        add_nova(&site.cloud);
        let [clusters, members, console, apis @ ..] = free_ports::<12>();
        let servers = |from: usize| apis[from..from + NAMES.len()].to_vec();
        let haproxy = Haproxy::start(&[
            Proxy { kind: ProxyKind::Clusters, at: clusters, servers: servers(0) },
            Proxy { kind: ProxyKind::Members, at: members, servers: servers(3) },
            Proxy { kind: ProxyKind::Console, at: console, servers: servers(6) },
        ])?;
        let settings = Settings {
            database: Some(url("baremetald")),
            cloud: Some(site.folder.path().join("clouds.yaml")),
            // A BMC keeps the session of a service that died for a minute, and has few of them.
            bmc_timeout: "90s",
            power_timeout: "90s",
            more: format!("[clusters]\nurl = 'http://{clusters}'\n"),
            ..settings
        };
        let (programs, timeout) = (settings.programs.clone(), settings.database_timeout);
        let (lab, baremetalds) = Lab::behind_haproxy(settings).await?;
        let folder = site.folder.path();
        let mut clusterds = Vec::new();
        for (number, name) in NAMES.into_iter().enumerate() {
            let state = folder.join(name);
            std::fs::create_dir(&state).expect("a folder");
            if number > 0 {
                let first = folder.join(NAMES[0]);
                for file in KEYS {
                    std::fs::copy(first.join(file), state.join(file)).expect("a copy");
                }
            }
            let (at, own) = (apis[number], apis[number + 3]);
            let config = configuration(&site.folder, name, at, (own, members));
            let config = config.replace("STATE", &state.display().to_string());
            let behind = "[nodes.connections]\nproxy_protocol_from = ['127.0.0.1']\n";
            let database =
                format!("[database]\nurl = '{}'\ntimeout = '{timeout}'\n", url("clusterd"));
            let config = config + behind + &database;
            let (program, folder) = (("clusterd", &programs), folder.to_owned());
            clusterds.push(Program::start(program, name, folder, at, &config).await);
        }
        let mut consoleds = Vec::new();
        for (number, name) in NAMES.into_iter().enumerate() {
            let at = apis[number + 6];
            let config = format!(
                "listen = '{at}'\nauth = 'none'\nbaremetal = '{}'\nclusters = 'http://{clusters}'\n[database]\nurl = '{}'\n\
                 [connections]\nproxy_protocol_from = ['127.0.0.1']\n",
                lab.api().url(),
                url("consoled")
            );
            let (program, folder) = (("consoled", &programs), folder.to_owned());
            consoleds.push(Program::start(program, name, folder, at, &config).await);
        }
        let url =
            |at: SocketAddr| Url::parse(&format!("http://{at}/")).expect("an address makes a URL");
        let three = Three {
            lab,
            baremetalds,
            clusterds,
            consoleds,
            clusters: Api::new(Service::Clusterd, url(clusters)),
            console: url(console),
            site,
            haproxy,
            members: servers(3),
        };
        three.all_work().await;
        for process in Process::all() {
            three.takes_requests(process).await;
        }
        Some(three)
    }

    /// Waits until the load balancer has found by its checks that a process listens.
    pub(super) async fn takes_requests(&self, process: Process) {
        let (haproxy, servers) = self.at_haproxy(process);
        for server in servers {
            haproxy.sees(server, ServerState::Up).await;
        }
    }

    /// Waits until all conductors of both services share the work.
    pub(super) async fn all_work(&self) {
        for api in [self.lab.api(), &self.clusters] {
            share_the_work(api, &NAMES).await;
        }
    }

    /// Kills a process (SIGKILL), and waits until its work goes on elsewhere. Returns the time until then; nobody takes over from a console.
    pub(super) async fn kill(&self, process: Process) -> Option<Duration> {
        let begun = Instant::now();
        let (api, number) = match process {
            Process::Baremetald(number) => {
                self.baremetalds[number].kill().await;
                (self.lab.api(), number)
            }
            Process::Clusterd(number) => {
                self.clusterds[number].kill().await;
                (&self.clusters, number)
            }
            Process::Consoled(number) => {
                self.consoleds[number].kill().await;
                return None;
            }
        };
        others_have_taken_over(api, NAMES[number]).await;
        let took = begun.elapsed();
        assert!(took < TAKEN_OVER, "{process:?} is taken over after {took:?}");
        Some(took)
    }

    /// Starts a process again, and waits until it takes part in the work.
    pub(super) async fn start_again(&self, process: Process) {
        self.launch(process).await;
        self.works(process).await;
    }

    /// Starts a process again.
    pub(super) async fn launch(&self, process: Process) {
        match process {
            Process::Baremetald(number) => self.baremetalds[number].start_again().await,
            Process::Clusterd(number) => self.clusterds[number].launch().await,
            Process::Consoled(number) => self.consoleds[number].launch().await,
        }
    }

    /// Waits until a process listens and takes part in the work.
    pub(super) async fn works(&self, process: Process) {
        match process {
            Process::Baremetald(_) => self.all_work().await,
            Process::Clusterd(number) => {
                self.clusterds[number].listens().await;
                self.all_work().await;
            }
            Process::Consoled(number) => self.consoleds[number].listens().await,
        }
    }

    /// Returns whether a process has logged a line with this text.
    pub(super) async fn says(&self, process: Process, text: &str) -> bool {
        match process {
            Process::Baremetald(number) => self.baremetalds[number].says(text).await,
            Process::Clusterd(number) => self.clusterds[number].says(text),
            Process::Consoled(number) => self.consoleds[number].says(text),
        }
    }

    /// Waits until a process has ended by itself.
    pub(super) async fn ended(&self, process: Process) {
        match process {
            Process::Baremetald(number) => self.baremetalds[number].ended().await,
            Process::Clusterd(number) => self.clusterds[number].ended().await,
            Process::Consoled(number) => self.consoleds[number].ended().await,
        }
    }

    /// Tells a process to stop (SIGTERM), and asserts that its work goes on elsewhere in time. Returns the time.
    pub(super) async fn stop(&self, process: Process) -> Duration {
        let took = self.hand_over(process).await;
        assert!(took < HANDED_OVER, "{process:?} is taken over after {took:?}");
        took
    }

    /// Tells a process to stop (SIGTERM), and waits until its work goes on elsewhere and it has ended. Returns the time until the work goes on.
    pub(super) async fn hand_over(&self, process: Process) -> Duration {
        let begun = Instant::now();
        match process {
            Process::Baremetald(number) => {
                self.baremetalds[number].signal("TERM").await;
                others_have_taken_over(self.lab.api(), NAMES[number]).await;
            }
            Process::Clusterd(number) => {
                self.clusterds[number].signal("TERM").await;
                others_have_taken_over(&self.clusters, NAMES[number]).await;
            }
            // Nobody takes over from a console.
            Process::Consoled(number) => self.consoleds[number].signal("TERM").await,
        }
        let took = begun.elapsed();
        self.ended(process).await;
        took
    }

    /// The load balancer of a process, and the addresses of the process there.
    pub(super) fn at_haproxy(&self, process: Process) -> (&Haproxy, Vec<SocketAddr>) {
        match process {
            Process::Baremetald(number) => {
                (self.lab.haproxy(), self.baremetalds[number].servers().to_vec())
            }
            Process::Clusterd(number) => {
                (&self.haproxy, vec![self.clusterds[number].at, self.members[number]])
            }
            Process::Consoled(number) => (&self.haproxy, vec![self.consoleds[number].at]),
        }
    }

    /// Chooses the programs of the next start of a process.
    pub(super) async fn replace(&self, process: Process, programs: &Programs) {
        match process {
            Process::Baremetald(number) => self.baremetalds[number].replace(programs).await,
            Process::Clusterd(number) => self.clusterds[number].replace(programs).await,
            Process::Consoled(number) => self.consoleds[number].replace(programs).await,
        }
    }
}

impl Drop for Three {
    fn drop(&mut self) {
        for name in NAMES {
            left::keep(&self.site.folder.path().join(name), &format!("replicas-{name}"));
        }
    }
}

/// A cluster takes several seconds, so that kills hit its creation. Compute hosts report often.
fn times() -> Times {
    let default = Times::default();
    let Times { report_interval, service_down, host_discovery, .. } = default;
    let slow = Times::realistic().faster(3.0);
    Times { report_interval, service_down, host_discovery, ..slow }
}

/// Waits until these conductors share the work, and no others.
pub(super) async fn share_the_work(api: &Api, hostnames: &[&str]) {
    let share = |it: &Conductors| {
        let works = |name: &&str| {
            it.conductors.iter().any(|one| one.hostname == **name && one.state == "working")
        };
        let living = it.conductors.iter().filter(|one| one.state != "dead").count();
        (hostnames.iter().all(works) && living == hostnames.len()).then_some(())
    };
    api.until("/bedplate/v1/conductors", "conductors that share the work", share).await;
}

/// Waits until a conductor counts as dead, and the others share its work.
pub(super) async fn others_have_taken_over(api: &Api, hostname: &str) {
    let others: Vec<&str> = NAMES.into_iter().filter(|name| *name != hostname).collect();
    share_the_work(api, &others).await;
}
