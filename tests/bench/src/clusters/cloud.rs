//! The emulated cloud for clusters, in a process of its own, and its log of calls.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::ValueEnum;
use http::Method;
use openstack::{CloudConfig, Session, dns::zones};
use openstack_emulator::{Emulator, Hypervisor, Settings, Times, kubernetes};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::client::{Call, Client};
use crate::emulation::{Emulation, say};

/// The DNS zone for the names of clusters.
pub(crate) const ZONE: &str = "example.org";
/// The user who owns the clusters.
pub(crate) const USER: &str = "alice";
/// A range for the floating IPs and routers of thousands of clusters. No other emulator uses addresses of it.
const OUTSIDE: &str = "127.16.0.0/16";

/// How fast the cloud answers and builds objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CloudPace {
    /// As slow as a small real cloud was measured to be.
    Realistic,
    /// As fast as this host; only Kubernetes nodes poll at the rate of real ones.
    Quick,
}

/// The first line that the process prints.
#[derive(Serialize, Deserialize)]
struct Hello {
    address: SocketAddr,
    clouds_yaml: String,
}

/// Runs the emulator until the input ends.
pub(crate) fn emulate(pace: CloudPace) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let emulator = runtime.block_on(async {
        let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let guests = Arc::new(kubernetes::Nodes::default());
        let emulator = Emulator::start_with(settings(pace), listen, guests).await?;
        let config = CloudConfig::from_clouds_yaml(&emulator.cloud.clouds_yaml(), Some(USER))?;
        let session = Session::new(config)?;
        zones::create(&session, &format!("{ZONE}."), "hostmaster@example.org", "").await?;
        anyhow::Ok(emulator)
    })?;
    let (address, clouds_yaml) = (emulator.cloud.address(), emulator.cloud.clouds_yaml());
    say(&serde_json::to_string(&Hello { address, clouds_yaml })?)?;
    std::io::stdin().lines().for_each(drop);
    Ok(())
}

/// Settings of a cloud without limits: 64 hypervisors, no quotas.
fn settings(pace: CloudPace) -> Settings {
    let settings = match pace {
        CloudPace::Realistic => Settings::realistic(),
        CloudPace::Quick => Settings::default(),
    };
    let times = Times { guest_asks: Times::realistic().guest_asks, ..settings.times };
    let host = |number: usize| Hypervisor {
        name: format!("compute-{number}"),
        zone: "nova".to_owned(),
        vcpus: 128,
        memory_mb: 1 << 20,
        disk_gb: 100_000,
        gpus: 0,
    };
    let unlimited = [
        "instances",
        "cores",
        "ram",
        "server_groups",
        "server_group_members",
        "network",
        "subnet",
        "router",
        "port",
        "security_group",
        "security_group_rule",
        "floatingip",
        "zone_recordsets",
    ];
    Settings {
        hypervisors: (1..=64).map(host).collect(),
        quotas: unlimited.map(|name| (name.to_owned(), -1)).into(),
        external_cidr: Some(OUTSIDE.to_owned()),
        times,
        ..settings
    }
}

/// A call in the log of the cloud, timed by the cloud's clock.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct LoggedCall {
    /// Milliseconds from the start of the cloud to the arrival of the call.
    pub(crate) at_millis: u64,
    /// Milliseconds until the answer. `None` while the call is in progress.
    pub(crate) took_millis: Option<u64>,
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) status: Option<u16>,
}

impl LoggedCall {
    /// When the call was answered, by the cloud's clock.
    pub(crate) fn answered_millis(&self) -> Option<u64> {
        Some(self.at_millis + self.took_millis?)
    }
}

/// A running emulated cloud. Dropping the value stops it.
pub(crate) struct EmulatedCloud {
    emulation: Emulation,
    address: SocketAddr,
    /// The start of the cloud's clock, as an instant of this process.
    began: Instant,
}

impl EmulatedCloud {
    /// Starts a cloud and writes a clouds.yaml for it.
    pub(crate) async fn start(pace: CloudPace, clouds_yaml: &Path) -> anyhow::Result<Self> {
        let pace = pace.to_possible_value().context("a pace has a name")?;
        let arguments = ["cloud".to_owned(), pace.get_name().to_owned()];
        let (emulation, hello) = Emulation::start(&arguments).await?;
        let hello: Hello = serde_json::from_str(&hello)?;
        std::fs::write(clouds_yaml, &hello.clouds_yaml)?;
        let address = hello.address;
        let mut cloud = EmulatedCloud { emulation, address, began: Instant::now() };
        cloud.read_clock().await?;
        Ok(cloud)
    }

    /// The id of the cloud's process.
    pub(crate) fn pid(&self) -> u32 {
        self.emulation.pid
    }

    /// Sets `began`: makes one call and compares the current time with the time of the answer in the cloud's log.
    async fn read_clock(&mut self) -> anyhow::Result<()> {
        let mut client = Client::connect(self.address).await?;
        client.get("/identity/v3").await?;
        let now = Instant::now();
        let calls = self.calls().await?;
        let last = calls.iter().rev().find(|call| call.path == "/identity/v3");
        let answered =
            last.and_then(LoggedCall::answered_millis).context("our call is not logged")?;
        self.began = now - Duration::from_millis(answered);
        self.forget_calls().await
    }

    /// Converts an instant to milliseconds of the cloud's clock.
    pub(crate) fn millis(&self, at: Instant) -> u64 {
        at.duration_since(self.began).as_millis() as u64
    }

    /// The calls since the log was last cleared.
    pub(crate) async fn calls(&self) -> anyhow::Result<Vec<LoggedCall>> {
        let mut client = Client::connect(self.address).await?;
        Ok(serde_json::from_slice(&client.get("/_control/calls").await?)?)
    }

    /// Clears the log of calls.
    pub(crate) async fn forget_calls(&self) -> anyhow::Result<()> {
        let mut client = Client::connect(self.address).await?;
        let (status, _) =
            client.ask(&Call::send(Method::DELETE, "/_control/calls", json!({}))).await?;
        anyhow::ensure!(status.is_success(), "cannot clear the cloud's log of calls: {status}");
        Ok(())
    }

    /// How long objects take to come up after the API has accepted them.
    pub(crate) async fn times(&self) -> anyhow::Result<Times> {
        let mut client = Client::connect(self.address).await?;
        Ok(serde_json::from_slice(&client.get("/_control/times").await?)?)
    }

    /// How many guests have joined their clusters.
    pub(crate) async fn joined(&self) -> anyhow::Result<usize> {
        let mut client = Client::connect(self.address).await?;
        let guests: Value = serde_json::from_slice(&client.get("/_control/guests").await?)?;
        let all = guests.as_object().context("guests are no object")?;
        Ok(all.values().filter(|progress| **progress == json!("joined")).count())
    }
}
