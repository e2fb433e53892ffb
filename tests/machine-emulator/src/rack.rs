//! A rack: machines that boot from the same network; they end when the value is dropped.

use std::collections::BTreeSet;
use std::io;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use bmc_emulator::{Identity, MachineSpec, Served};
use tokio::task::JoinSet;

use crate::console;
use crate::fetch;
use crate::life;
use crate::machine::{AgentKind, Machine};
use crate::pace::Speed;
use crate::rack_context::{Network, RackContext, Systems};
use crate::relay::Relay;
use crate::saved_state::StateFile;

/// Machines that run until this value is dropped.
pub struct Rack {
    world: Arc<RackContext>,
    machines: Vec<Machine>,
    served: Vec<Served>,
    tasks: JoinSet<()>,
    keeper: Option<Arc<StateFile>>,
}

impl Rack {
    /// Starts an empty rack on `network`.
    pub async fn start(network: Network, pace: Speed) -> io::Result<Rack> {
        Rack::start_with(network, pace, Systems::Inert).await
    }

    /// Starts an empty rack on `network`, with this software on machines that boot their disks.
    pub async fn start_with(network: Network, pace: Speed, systems: Systems) -> io::Result<Rack> {
        Rack::start_among(vec![network], pace, systems).await
    }

    /// Starts an empty rack on a network with several servers. Each gets the requests of all machines, and a machine takes the first answer.
    pub async fn start_among(
        networks: Vec<Network>,
        pace: Speed,
        systems: Systems,
    ) -> io::Result<Rack> {
        // Fails if the process has a provider already, which is fine.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let servers = networks.iter().map(|network| network.dhcp).collect();
        let relay = Relay::open(servers).await?;
        let http = fetch::client().map_err(io::Error::other)?;
        let mut tasks = JoinSet::new();
        tasks.spawn(relay.clone().run());
        let identity = OnceLock::new();
        let world = Arc::new(RackContext { relay, networks, http, pace, systems, identity });
        Ok(Rack { world, machines: Vec::new(), served: Vec::new(), tasks, keeper: None })
    }

    /// Spares the processors of a computer that emulates thousands of machines: one certificate serves all agents that start from now on, and
    /// the bytes of kernels and ramdisks are dropped before they reach this process.
    pub fn spare_processors(&self) -> io::Result<()> {
        let identity = Identity::for_addresses(&BTreeSet::from([Ipv4Addr::LOCALHOST.into()]))?;
        // Set already: the agents share that certificate.
        let _ = self.world.identity.set(identity);
        Ok(())
    }

    /// Stores the machines that are added from now on in the file `path`. A machine that the file already has continues, instead of being
    /// off.
    pub fn keep_in(&mut self, path: PathBuf) -> io::Result<()> {
        self.keeper = Some(Arc::new(StateFile::open(path)?));
        Ok(())
    }

    /// Adds machines, which are off, and starts their BMCs.
    pub async fn add(
        &mut self,
        machines: Vec<(MachineSpec, AgentKind)>,
    ) -> io::Result<Vec<Machine>> {
        let (specs, agents): (Vec<_>, Vec<_>) = machines.into_iter().unzip();
        let chassis = specs.into_iter().map(|spec| {
            let kept = self.keeper.as_ref().and_then(|keeper| keeper.find(&spec.name));
            let kept = kept.map(|kept| kept.chassis).unwrap_or_default();
            bmc_emulator::Machine::resumed(spec, kept)
        });
        let chassis: Vec<_> = chassis.collect();
        let served = bmc_emulator::serve(chassis.clone()).await?;
        let parts = chassis.into_iter().zip(&served.machines).zip(agents);
        let added: Vec<Machine> = parts
            .map(|((chassis, bmc), agent)| {
                Machine::new(chassis, bmc.clone(), agent, self.keeper.clone())
            })
            .collect();
        for machine in &added {
            self.tasks.spawn(life::run(machine.clone(), self.world.clone()));
            self.tasks.spawn(console::run(machine.clone()));
        }
        self.machines.extend(added.iter().cloned());
        self.served.push(served);
        Ok(added)
    }

    /// All machines, in the order in which they were added.
    pub fn machines(&self) -> &[Machine] {
        &self.machines
    }

    /// The machine of this name.
    pub fn machine(&self, name: &str) -> Option<&Machine> {
        self.machines.iter().find(|machine| machine.name() == name)
    }

    /// The certificates of all HTTPS BMCs, concatenated.
    pub fn certificates_pem(&self) -> String {
        self.served.iter().map(|served| served.certificate_pem.as_str()).collect()
    }
}
