//! The conductor of this process: what the daemon starts and what the API may ask directly. All else the API asks
//! by writing to the store and waking the node.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use agent_protocol::Progress;
use baremetal_core::{Node, NodeUuid, Refusal, check_deploy};
use baremetal_store::{Store, StoreError};
use bmc::{BmcError, IdentifyLight, LogEntry, Reading};
use bytes::Bytes;
use hardware::{BootDevice, BootOverride};
use jiff::Timestamp;
use lease::Ladder;
use reconcile::Queue;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::info;

use crate::agents::Agents;
use crate::bmcs::Bmcs;
use crate::consoles::{ConsoleError, Consoles, End, Viewing};
use crate::secrets::ServiceKey;
use crate::sightings::Sightings;
use crate::{BmcSettings, LastSeen, Settings, consoles, racks, seals, sweep, turn};

/// How long logging out of all BMCs may take.
const LOG_OUT_TIMEOUT: Duration = Duration::from_secs(3);

/// The conductor of this process. Clones are the same conductor.
#[derive(Clone)]
pub struct Conductor {
    pub(crate) world: Arc<World>,
}

/// All a turn may touch.
pub(crate) struct World {
    pub(crate) settings: Settings,
    pub(crate) store: Store,
    pub(crate) key: ServiceKey,
    pub(crate) bmcs: Bmcs,
    pub(crate) agents: Agents,
    pub(crate) consoles: Consoles,
    pub(crate) queue: Queue<NodeUuid>,
    pub(crate) sightings: Sightings,
    /// A machine of some rack went on, or a rack's goal changed.
    pub(crate) rack_changed: Notify,
    /// Another key seals from now on.
    pub(crate) rotated: Notify,
    pub(crate) progress: Mutex<HashMap<NodeUuid, Progress>>,
    /// Since when this process has been looking: nothing is late before it had a chance to be seen.
    pub(crate) watching_since: Timestamp,
}

/// The conductor cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The Redfish client cannot be set up: most likely the authorities' certificates cannot be used.
    #[error("cannot set up the Redfish client")]
    Redfish(#[source] redfish::ConnectorError),
    /// No UDP socket for IPMI.
    #[error("cannot open a UDP socket for IPMI")]
    Socket(#[source] std::io::Error),
}

impl Conductor {
    /// A conductor that does nothing yet.
    pub async fn new(
        settings: Settings,
        store: Store,
        key: ServiceKey,
    ) -> Result<Self, StartError> {
        let BmcSettings { authorities, allowed, .. } = &settings.bmc;
        let redfish =
            redfish::Connector::new(authorities, allowed.clone()).map_err(StartError::Redfish)?;
        let ipmi = ipmi::Connector::bind().await.map_err(StartError::Socket)?;
        let world = World {
            bmcs: Bmcs::new(
                settings.bmc.clone(),
                redfish,
                ipmi,
                store.secrets(),
                store.tripwire().clone(),
            ),
            consoles: Consoles::new(settings.consoles),
            settings,
            store,
            key,
            agents: Agents::default(),
            queue: Queue::default(),
            sightings: Sightings::default(),
            rack_changed: Notify::new(),
            rotated: Notify::new(),
            progress: Mutex::default(),
            watching_since: Timestamp::now(),
        };
        Ok(Conductor { world: Arc::new(world) })
    }

    /// Goes on with all that was under way, and works until `stop` is cancelled.
    ///
    /// # Errors
    ///
    /// When the store cannot tell what was under way, or a turn panicked.
    pub async fn run(self, stop: CancellationToken) -> Result<(), RunError> {
        let busy = self.world.store.busy_nodes().await?;
        info!(nodes = busy.len(), "going on with {} nodes that have work under way", busy.len());
        for node in busy
            .into_iter()
            .chain(self.world.store.lent_nodes().await?)
            .chain(self.world.store.joining_nodes().await?)
        {
            self.wake(node);
        }

        let mut tasks = JoinSet::new();
        let world = self.world.clone();
        let turns =
            reconcile::run(world.queue.clone(), world.settings.workers, stop.clone(), move |id| {
                turn::turn(id, world.clone())
            });
        tasks.spawn(async move { turns.await.map_err(RunError::Turn) });
        tasks.spawn(sweep::run(self.world.clone(), stop.clone()));
        tasks.spawn(sweep::announce(self.world.clone(), stop.clone()));
        tasks.spawn(racks::run(self.world.clone(), stop.clone()));
        tasks.spawn(seals::run(self.world.clone(), stop.clone()));
        tasks.spawn(consoles::run(self.world.clone(), stop.clone()));
        let mut outcome = Ok(());
        while let Some(ended) = tasks.join_next().await {
            let ended = ended.map_err(RunError::Turn).flatten();
            if ended.is_err() {
                stop.cancel();
            }
            outcome = outcome.and(ended);
        }
        // A BMC that does not answer must not keep us from ending.
        let _ = timeout(LOG_OUT_TIMEOUT, self.world.bmcs.close()).await;
        outcome
    }

    /// What comes before the end of what nodes are lent for, and after it.
    pub fn ladder(&self) -> &Ladder {
        &self.world.settings.lending.ladder
    }

    /// The name under which this conductor is listed.
    pub fn hostname(&self) -> &str {
        &self.world.settings.hostname
    }

    /// Tells the conductor that something was asked of `node`.
    pub fn wake(&self, node: NodeUuid) {
        self.world.queue.wake(node);
    }

    /// Whether there is a cloud that machines can join.
    pub fn has_cloud(&self) -> bool {
        self.world.settings.cloud.is_some()
    }

    /// Tells the conductor that a rack's goal or machines have changed.
    pub fn wake_racks(&self) {
        self.world.rack_changed.notify_one();
    }

    /// The machines of a rack, in the order of their positions.
    pub async fn nodes_of_rack(&self, name: &str) -> Result<Vec<Node>, StoreError> {
        self.world.nodes_of_rack(name).await
    }

    /// Tells the conductor that `node` was deleted.
    pub fn forget(&self, node: NodeUuid) {
        self.world.forget(node);
    }

    /// How long a change of power may take.
    pub fn power_timeout(&self) -> Duration {
        self.world.settings.timeouts.power
    }

    /// How far the command is that the node's agent carries out.
    pub fn progress(&self, node: NodeUuid) -> Option<Progress> {
        self.world.progress.lock().unwrap_or_else(PoisonError::into_inner).get(&node).copied()
    }

    /// What was last seen of the node's machine.
    pub fn last_seen(&self, node: NodeUuid) -> LastSeen {
        self.world.sightings.of(node)
    }

    /// What of `driver_info` keeps the node's BMC from being reached: a sentence that names the key.
    pub fn check_driver_info(&self, node: &Node) -> Result<(), String> {
        self.world.bmcs.check(node).map_err(|invalid| invalid.to_string())
    }

    /// Whether everything is there that installing the node needs, its config drive opened.
    pub fn check_deploy(&self, node: &Node) -> Result<(), Refusal> {
        let node = self.world.with_instance(node)?;
        check_deploy(&node)?;
        self.check_image_host(&node.instance_info)
    }

    /// The boot device that is imposed now.
    pub async fn boot_device(&self, node: &Node) -> Result<Option<BootOverride>, BmcError> {
        self.bmc(node)?.boot.get().await
    }

    /// Imposes a boot device.
    pub async fn set_boot_device(&self, node: &Node, wanted: BootOverride) -> Result<(), BmcError> {
        self.bmc(node)?.boot.set(wanted).await
    }

    /// The boot devices that can be imposed.
    pub async fn supported_boot_devices(&self, node: &Node) -> Result<Vec<BootDevice>, BmcError> {
        self.bmc(node)?.boot.supported().await
    }

    /// The readings of the machine's sensors.
    pub async fn sensors(&self, node: &Node) -> Result<Vec<Reading>, BmcError> {
        self.sensing(node)?.readings().await
    }

    /// The newest entries of the BMC's event log.
    pub async fn event_log(&self, node: &Node, limit: usize) -> Result<Vec<LogEntry>, BmcError> {
        self.sensing(node)?.event_log(limit).await
    }

    /// Switches the identify light.
    pub async fn identify(&self, node: &Node, light: IdentifyLight) -> Result<(), BmcError> {
        self.sensing(node)?.identify(light).await
    }

    /// Lets somebody look at the serial console of the node's machine, and type there.
    pub fn watch_console(&self, node: &Node) -> Result<Viewing, ConsoleError> {
        self.world.watch_console(node)
    }

    /// What the node's machine said last on its serial console, as far as anybody looked: so much, and no more.
    pub fn console_log(&self, node: &Node) -> Result<Bytes, ConsoleError> {
        self.world.console_log(node)
    }

    /// Tells the conductor that the node's console was disabled.
    pub fn end_console(&self, node: NodeUuid) {
        self.world.consoles.end(node, End::Disabled);
    }

    fn bmc(&self, node: &Node) -> Result<bmc::Bmc, BmcError> {
        let unusable = |invalid: crate::bmcs::InvalidDriverInfo| BmcError::Unsupported {
            what: format!("be reached: {invalid}"),
        };
        self.world.bmcs.of(node).map_err(unusable)
    }

    fn sensing(&self, node: &Node) -> Result<Arc<dyn bmc::Sensors>, BmcError> {
        let none = || BmcError::Unsupported { what: "tell its sensors".to_owned() };
        self.bmc(node)?.sensors.ok_or_else(none)
    }
}

/// The conductor stopped working.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The store does not answer.
    #[error("cannot read what was under way")]
    Store(#[from] StoreError),
    /// A turn panicked.
    #[error("a turn ended in a panic")]
    Turn(#[source] tokio::task::JoinError),
}

impl World {
    /// The node with its `instance_info` opened.
    pub(crate) fn with_instance(&self, node: &Node) -> Result<Node, Refusal> {
        self.store.secrets().with_instance(node).map_err(|why| Refusal::Field {
            field: "instance_info".to_owned(),
            problem: format!("its secrets cannot be opened: {why}"),
        })
    }

    /// Nothing is kept of the node.
    pub(crate) fn forget(&self, node: NodeUuid) {
        self.bmcs.forget(node);
        self.agents.forget(node);
        self.consoles.end(node, End::Deleted);
        self.sightings.forget(node);
        self.set_progress(node, None);
    }

    pub(crate) fn set_progress(&self, node: NodeUuid, progress: Option<Progress>) {
        let mut book = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        match progress {
            Some(progress) => book.insert(node, progress),
            None => book.remove(&node),
        };
    }
}
