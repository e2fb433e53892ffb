//! The conductor's handle: the daemon starts the conductor here, and the API asks a few questions directly. For everything else the API
//! writes to the store and wakes the node.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use agent_protocol::Progress;
use baremetal_core::{Node, NodeUuid, RequestRefused, check_deploy};
use baremetal_store::{Store, StoreError};
use bmc::{BmcError, IdentifyLight, LogEntry, Reading};
use bytes::Bytes;
use hardware::{BootDevice, BootOverride};
use jiff::Timestamp;
use lease::LeaseSchedule;
use reconcile::{Queue, Watch};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::agents::Agents;
use crate::bmcs::Bmcs;
use crate::catch_up::{self, TurnVersions};
use crate::consoles::{ConsoleEnd, ConsoleError, ConsoleViewer, Consoles};
use crate::observations::ObservationCache;
use crate::secrets::ServiceKey;
use crate::{BmcSettings, LastSeen, Settings, consoles, racks, seal_keys, sweep, turn};

/// The time limit for logging out of all BMCs when the process stops.
const LOG_OUT_TIMEOUT: Duration = Duration::from_secs(3);

/// The conductor of this process. All clones are the same conductor.
#[derive(Clone)]
pub struct Conductor {
    pub(crate) context: Arc<TurnContext>,
}

/// Everything that a turn uses.
pub(crate) struct TurnContext {
    pub(crate) settings: Settings,
    pub(crate) store: Store,
    pub(crate) key: ServiceKey,
    pub(crate) bmcs: Bmcs,
    pub(crate) agents: Agents,
    pub(crate) consoles: Consoles,
    pub(crate) queue: Queue<NodeUuid>,
    pub(crate) sightings: ObservationCache,
    /// Notified when a machine of a rack has made progress, or when a rack's goal has changed.
    pub(crate) rack_changed: Notify,
    /// Notified when a new key seals secrets.
    pub(crate) rotated: Notify,
    pub(crate) progress: Mutex<HashMap<NodeUuid, Progress>>,
    pub(crate) turn_versions: TurnVersions,
    /// Timeouts count from its beginning at the earliest, because earlier events may have been missed.
    pub(crate) watch: Watch,
}

/// Why the conductor cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The Redfish client cannot be set up, most likely because a configured CA certificate is not usable.
    #[error("cannot set up the Redfish client")]
    Redfish(#[source] redfish::ConnectorError),
    #[error("cannot open a UDP socket for IPMI")]
    Socket(#[source] std::io::Error),
}

impl Conductor {
    /// Makes a conductor that does nothing until `run` is called.
    pub async fn new(
        settings: Settings,
        store: Store,
        key: ServiceKey,
    ) -> Result<Self, StartError> {
        let BmcSettings { authorities, allowed, .. } = &settings.bmc;
        let redfish =
            redfish::Connector::new(authorities, allowed.clone()).map_err(StartError::Redfish)?;
        let ipmi = ipmi::Connector::bind().await.map_err(StartError::Socket)?;
        let context = TurnContext {
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
            sightings: ObservationCache::default(),
            rack_changed: Notify::new(),
            rotated: Notify::new(),
            progress: Mutex::default(),
            turn_versions: TurnVersions::default(),
            watch: Watch::begin(Timestamp::now()),
        };
        Ok(Conductor { context: Arc::new(context) })
    }

    /// Resumes all work in progress, and works until `stop` is cancelled.
    ///
    /// # Errors
    ///
    /// Fails if a turn panicked.
    pub async fn run(self, stop: CancellationToken) -> Result<(), RunError> {
        let mut tasks = JoinSet::new();
        let context = self.context.clone();
        let turns = reconcile::run(
            context.queue.clone(),
            context.settings.workers,
            stop.clone(),
            move |id| turn::turn(id, context.clone()),
        );
        tasks.spawn(async move { turns.await.map_err(RunError::Turn) });
        tasks.spawn(catch_up::run(self.context.clone(), stop.clone()));
        tasks.spawn(sweep::run(self.context.clone(), stop.clone()));
        tasks.spawn(sweep::announce(self.context.clone(), stop.clone()));
        tasks.spawn(racks::run(self.context.clone(), stop.clone()));
        tasks.spawn(seal_keys::run(self.context.clone(), stop.clone()));
        tasks.spawn(consoles::run(self.context.clone(), stop.clone()));
        let mut outcome = Ok(());
        while let Some(ended) = tasks.join_next().await {
            let ended = ended.map_err(RunError::Turn).flatten();
            if ended.is_err() {
                stop.cancel();
            }
            outcome = outcome.and(ended);
        }
        // A BMC that does not answer must not delay the end of the process.
        let _ = timeout(LOG_OUT_TIMEOUT, self.context.bmcs.close()).await;
        outcome
    }

    /// Returns the stages at the end of a node's lease.
    pub fn ladder(&self) -> &LeaseSchedule {
        &self.context.settings.lending.ladder
    }

    /// Returns the name under which this conductor is listed.
    pub fn hostname(&self) -> &str {
        &self.context.settings.hostname
    }

    /// Wakes the conductor after a request to `node` was recorded.
    pub fn wake(&self, node: NodeUuid) {
        self.context.queue.wake(node);
    }

    /// Returns whether an OpenStack is configured that machines can join.
    pub fn has_cloud(&self) -> bool {
        self.context.settings.cloud.is_some()
    }

    /// Wakes the conductor after the goal or the machines of a rack have changed.
    pub fn wake_racks(&self) {
        self.context.rack_changed.notify_one();
    }

    /// Returns the nodes of a rack, in the order of their positions.
    pub async fn nodes_of_rack(&self, name: &str) -> Result<Vec<Node>, StoreError> {
        self.context.nodes_of_rack(name).await
    }

    /// Drops everything that the conductor remembers about `node`, which was deleted.
    pub fn forget(&self, node: NodeUuid) {
        self.context.forget(node);
    }

    /// Returns the time limit for a change of power.
    pub fn power_timeout(&self) -> Duration {
        self.context.settings.timeouts.power
    }

    /// Returns the progress of the command that the node's agent is executing.
    pub fn progress(&self, node: NodeUuid) -> Option<Progress> {
        self.context.progress.lock().unwrap_or_else(PoisonError::into_inner).get(&node).copied()
    }

    /// Returns the latest observations of the node's machine.
    pub fn last_seen(&self, node: NodeUuid) -> LastSeen {
        self.context.sightings.of(node)
    }

    /// Checks that `driver_info` suffices to reach the node's BMC. The error names the wrong key.
    pub fn check_driver_info(&self, node: &Node) -> Result<(), String> {
        self.context.bmcs.check(node).map_err(|invalid| invalid.to_string())
    }

    /// Checks that the node has everything that its installation needs. The config drive is unsealed for the check.
    pub fn check_deploy(&self, node: &Node) -> Result<(), RequestRefused> {
        let node = self.context.with_instance(node)?;
        check_deploy(&node)?;
        self.check_image_host(&node.instance_info)
    }

    /// Returns the boot device override that is set in the BMC.
    pub async fn boot_device(&self, node: &Node) -> Result<Option<BootOverride>, BmcError> {
        self.bmc(node)?.boot.get().await
    }

    /// Sets a boot device override in the BMC.
    pub async fn set_boot_device(&self, node: &Node, wanted: BootOverride) -> Result<(), BmcError> {
        self.bmc(node)?.boot.set(wanted).await
    }

    /// Returns the boot devices that the BMC accepts as an override.
    pub async fn supported_boot_devices(&self, node: &Node) -> Result<Vec<BootDevice>, BmcError> {
        self.bmc(node)?.boot.supported().await
    }

    /// Returns the readings of the machine's sensors.
    pub async fn sensors(&self, node: &Node) -> Result<Vec<Reading>, BmcError> {
        self.sensing(node)?.readings().await
    }

    /// Returns the newest entries of the BMC's event log.
    pub async fn event_log(&self, node: &Node, limit: usize) -> Result<Vec<LogEntry>, BmcError> {
        self.sensing(node)?.event_log(limit).await
    }

    /// Switches the identify light.
    pub async fn identify(&self, node: &Node, light: IdentifyLight) -> Result<(), BmcError> {
        self.sensing(node)?.identify(light).await
    }

    /// Opens the serial console of the node's machine for one viewer, who can read and type.
    pub fn watch_console(&self, node: &Node) -> Result<ConsoleViewer, ConsoleError> {
        self.context.watch_console(node)
    }

    /// Returns the latest output of the serial console, as far as anybody was viewing it; at most the size of the buffer.
    pub fn console_log(&self, node: &Node) -> Result<Bytes, ConsoleError> {
        self.context.console_log(node)
    }

    /// Ends the console of the node, because it was disabled.
    pub fn end_console(&self, node: NodeUuid) {
        self.context.consoles.end(node, ConsoleEnd::Disabled);
    }

    fn bmc(&self, node: &Node) -> Result<bmc::Bmc, BmcError> {
        let unusable = |invalid: crate::bmcs::InvalidDriverInfo| BmcError::Unsupported {
            what: format!("be reached: {invalid}"),
        };
        self.context.bmcs.of(node).map_err(unusable)
    }

    fn sensing(&self, node: &Node) -> Result<Arc<dyn bmc::Sensors>, BmcError> {
        let none = || BmcError::Unsupported { what: "report its sensors".to_owned() };
        self.bmc(node)?.sensors.ok_or_else(none)
    }
}

/// Why the conductor stopped working.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error("a turn panicked")]
    Turn(#[source] tokio::task::JoinError),
}

impl TurnContext {
    /// Returns the node with the secrets of its `instance_info` unsealed.
    pub(crate) fn with_instance(&self, node: &Node) -> Result<Node, RequestRefused> {
        self.store.secrets().with_instance(node).map_err(|why| RequestRefused::Field {
            field: "instance_info".to_owned(),
            problem: format!("cannot unseal its secrets: {why}"),
        })
    }

    /// Drops everything that is remembered about the node.
    pub(crate) fn forget(&self, node: NodeUuid) {
        self.turn_versions.forget(node);
        self.bmcs.forget(node);
        self.agents.forget(node);
        self.consoles.end(node, ConsoleEnd::Deleted);
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
