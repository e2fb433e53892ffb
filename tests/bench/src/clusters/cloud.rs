//! The cloud that clusters are made in: an emulated one in a process of its own, and its log of calls.

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

/// The zone that clusters have their names in.
pub(crate) const ZONE: &str = "example.org";
/// As whom clusters are made.
pub(crate) const USER: &str = "alice";
/// Room for floating addresses and routers of thousands of clusters, where no other emulator looks for a place.
const OUTSIDE: &str = "127.16.0.0/16";

/// How quick the cloud is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CloudPace {
    /// As a small real one was seen to be.
    Realistic,
    /// As quick as this machine; only nodes, once they are there, ask no oftener than real ones.
    Quick,
}

/// What the process says first.
#[derive(Serialize, Deserialize)]
struct Hello {
    address: SocketAddr,
    clouds_yaml: String,
}

/// Emulates until the input ends.
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

/// A cloud without limits: 64 hosts, no quotas.
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

/// A call that the cloud was asked, by its own clock.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Logged {
    /// Milliseconds from the cloud's start to its arrival.
    pub(crate) at_millis: u64,
    /// Milliseconds until it was answered; `None` while it is under way.
    pub(crate) took_millis: Option<u64>,
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) status: Option<u16>,
}

impl Logged {
    /// When it was answered, by the cloud's clock.
    pub(crate) fn answered_millis(&self) -> Option<u64> {
        Some(self.at_millis + self.took_millis?)
    }
}

/// A cloud that answers until this is dropped.
pub(crate) struct EmulatedCloud {
    emulation: Emulation,
    address: SocketAddr,
    /// When the cloud's clock began.
    began: Instant,
}

impl EmulatedCloud {
    /// Starts one, and writes a clouds.yaml for it.
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

    /// Its process.
    pub(crate) fn pid(&self) -> u32 {
        self.emulation.pid
    }

    /// Finds out when the cloud's clock began, by a call of our own: its log says when that was answered.
    async fn read_clock(&mut self) -> anyhow::Result<()> {
        let mut client = Client::connect(self.address).await?;
        client.get("/identity/v3").await?;
        let now = Instant::now();
        let calls = self.calls().await?;
        let last = calls.iter().rev().find(|call| call.path == "/identity/v3");
        let answered = last.and_then(Logged::answered_millis).context("our call is not logged")?;
        self.began = now - Duration::from_millis(answered);
        self.forget_calls().await
    }

    /// Milliseconds of the cloud's clock at a moment of ours.
    pub(crate) fn millis(&self, at: Instant) -> u64 {
        at.duration_since(self.began).as_millis() as u64
    }

    /// Everything that was asked since calls were forgotten last.
    pub(crate) async fn calls(&self) -> anyhow::Result<Vec<Logged>> {
        let mut client = Client::connect(self.address).await?;
        Ok(serde_json::from_slice(&client.get("/_control/calls").await?)?)
    }

    /// Forgets the calls so far.
    pub(crate) async fn forget_calls(&self) -> anyhow::Result<()> {
        let mut client = Client::connect(self.address).await?;
        let (status, _) =
            client.ask(&Call::send(Method::DELETE, "/_control/calls", json!({}))).await?;
        anyhow::ensure!(status.is_success(), "the cloud does not forget its calls: {status}");
        Ok(())
    }

    /// How long objects take after the API has agreed to them.
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
