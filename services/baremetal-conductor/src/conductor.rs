//! The conductor's handle: the daemon makes the conductor here, and the API asks a few questions directly. For everything else the API
//! writes to the store and wakes the node.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use agent_protocol::Progress;
use baremetal_core::{
    Node, NodeUuid, PULL_SECRET, RequestRefused, StepPriorities, check_deploy,
    check_operators_secret, glance_image,
};
use baremetal_store::{Store, StoreError};
use bmc::{BmcError, IdentifyLight, LogEntry, Reading, VirtualDrive};
use bytes::Bytes;
use hardware::{BootDevice, BootOverride, Indicator, IndicatorState};
use lease::LeaseSchedule;
use reconcile::{Queue, Watch};
use replicas::Membership;
use serde_json::{Map, Value};
use tokio::sync::Notify;
use url::Url;

use crate::agents::Agents;
use crate::allowed;
use crate::bmcs::{Bmcs, InvalidDriverInfo};
use crate::consoles::{ConsoleEnd, ConsoleError, ConsoleViewer, Consoles, GraphicalViewer};
use crate::context::TurnContext;
use crate::image_folder::check_folder;
use crate::observations::{LastSeen, ObservationCache};
use crate::rack_changes::RackChanges;
use crate::secrets::ServiceKey;
use crate::settings::{BmcSettings, Settings};
use crate::turn_versions::TurnVersions;

/// The conductor of this process. All clones are the same conductor.
#[derive(Clone)]
pub struct Conductor {
    pub(crate) context: Arc<TurnContext>,
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
        let clock = settings.clock;
        let membership = match store.conductors().is_shared() {
            true => Membership::shared(&settings.hostname),
            false => Membership::alone(&settings.hostname),
        };
        let membership = membership.with_address(settings.peer_url.as_ref().map(Url::to_string));
        let context = TurnContext {
            bmcs: Bmcs::new(
                settings.bmc.clone(),
                redfish,
                ipmi,
                store.secrets(),
                store.tripwire().clone(),
                membership.fence().clone(),
                settings.metrics.bmc_calls.clone(),
            ),
            consoles: Consoles::new(settings.consoles),
            queue: Queue::measured(settings.metrics.turns.clone(), |_| "node"),
            settings,
            store,
            key,
            agents: Agents::default(),
            sightings: ObservationCache::new(clock),
            rack_changes: RackChanges::default(),
            rotated: Notify::new(),
            progress: Mutex::default(),
            turn_versions: TurnVersions::default(),
            membership,
            watch: Watch::begin(clock()),
        };
        Ok(Conductor { context: Arc::new(context) })
    }

    /// Returns the stages at the end of a node's lease.
    pub fn schedule(&self) -> &LeaseSchedule {
        &self.context.settings.lending.schedule
    }

    /// Returns the name under which this conductor is listed.
    pub fn hostname(&self) -> &str {
        &self.context.settings.hostname
    }

    /// Returns the conductor groups whose nodes this conductor manages, at least one. New nodes are in the first.
    pub fn groups(&self) -> &[String] {
        &self.context.settings.groups
    }

    /// Returns the conductor groups whose nodes this conductor or another living one manages.
    pub fn served_groups(&self) -> Vec<String> {
        let mut groups = self.groups().to_vec();
        let others = self.context.membership.groups().unwrap_or_default();
        groups.extend(others.into_iter().filter(|it| !self.groups().contains(it)));
        groups
    }

    /// Returns the name of the conductor that works on the node; `None` if no living conductor is in its conductor group.
    pub fn conductor_of(&self, node: &Node) -> Option<Cow<'_, str>> {
        self.context.membership.conductor_of(&node.id, &node.conductor_group)
    }

    /// Returns the URL of the API of another baremetald that works on the node, if it has told one.
    pub fn peer_of(&self, node: &Node) -> Option<Url> {
        let owner = self.conductor_of(node)?;
        self.context.membership.address_of(&owner)?.parse().ok()
    }

    /// Returns the names of the living conductors.
    pub fn hostnames(&self) -> Vec<String> {
        self.context.membership.hostnames()
    }

    /// Has all conductors look at each other now, because one was drained or undrained.
    pub fn wake_conductors(&self) {
        self.context.membership.tell_of_members();
    }

    /// Returns whether this conductor does a task that one of the living conductors does for all.
    pub fn has_task(&self, task: &str) -> bool {
        self.context.membership.has_task(task)
    }

    /// Wakes the conductor that works on `node` after a request was recorded.
    pub fn wake(&self, node: NodeUuid) {
        self.context.wake(node);
    }

    /// Returns whether an OpenStack is configured that machines can join.
    pub fn has_cloud(&self) -> bool {
        self.context.settings.cloud.is_some()
    }

    /// Wakes the conductor after the goal or the machines of a rack have changed.
    pub fn wake_rack(&self, name: &str) {
        self.context.wake_rack(name);
    }

    /// Returns the nodes of a rack, in the order of their positions.
    pub async fn nodes_of_rack(&self, name: &str) -> Result<Vec<Node>, StoreError> {
        self.context.nodes_of_rack(name).await
    }

    /// Drops everything that the conductor remembers about `node`, which was deleted.
    pub fn forget(&self, node: NodeUuid) {
        self.context.forget(node);
        // The turn of the conductor that works on the node finds no node, and forgets it too.
        self.context.membership.tell_of(node);
    }

    /// Returns the time limit for a change of power.
    pub fn power_timeout(&self) -> Duration {
        self.context.settings.timeouts.power
    }

    /// Returns the priorities that the administrator gives to steps.
    pub fn step_priorities(&self) -> &StepPriorities {
        &self.context.settings.step_priorities
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

    /// Checks `driver_info` for the console, without any connection. The error is the reason for the refusal.
    pub fn check_console(&self, node: &Node) -> Result<(), String> {
        self.context.bmcs.check_console(node).map_err(|invalid| invalid.to_string())
    }

    /// Checks that the node has everything that its installation needs. The config drive is unsealed for the check.
    pub fn check_deploy(&self, node: &Node) -> Result<(), RequestRefused> {
        let node = self.context.with_instance(node)?;
        check_deploy(&node)?;
        let is_in_glance = node.uses_agent() && glance_image(&node).is_some();
        if is_in_glance && !self.has_cloud() {
            let field = "instance_info.image_source".to_owned();
            let problem =
                "an image in Glance needs a cloud; set [cloud] in the configuration of the service";
            return Err(RequestRefused::Field { field, problem: problem.to_owned() });
        }
        self.check_image_host(&node.instance_info)
    }

    /// Refuses a node whose BMC or image address is not allowed. An address that did not change since `before` is accepted, because the
    /// list may have become shorter. A host name is accepted here; its addresses are checked when a connection is made.
    ///
    /// # Errors
    ///
    /// Returns the field and the reason.
    pub fn check_hosts(&self, before: Option<&Node>, node: &Node) -> Result<(), RequestRefused> {
        let settings = &self.context.settings;
        allowed::check_hosts(&settings.bmc.allowed, &settings.image_hosts, before, node)?;
        let image = |node: &Node| node.instance_info.get("image_source").cloned();
        if before.and_then(image) != image(node) {
            check_folder(settings.image_folder.as_deref(), &node.instance_info)?;
        }
        let secret = |node: &Node| node.driver_info.get(PULL_SECRET).cloned();
        match before.and_then(secret) == secret(node) {
            true => Ok(()),
            false => check_operators_secret(node, &settings.pull_secret_registries),
        }
    }

    /// Refuses an image at an address that is not allowed, and a file of this host that is not in the folder of images.
    ///
    /// # Errors
    ///
    /// Returns the field and the reason.
    pub fn check_image_host(
        &self,
        instance_info: &Map<String, Value>,
    ) -> Result<(), RequestRefused> {
        let settings = &self.context.settings;
        allowed::check_image(&settings.image_hosts, instance_info)?;
        check_folder(settings.image_folder.as_deref(), instance_info)
    }

    /// Returns the boot device override that is set in the BMC.
    pub async fn boot_device(&self, node: &Node) -> Result<Option<BootOverride>, BmcError> {
        Ok(self.bmc(node)?.boot.get().await?.filter(|_| node.sets_boot_device()))
    }

    /// Sets a boot device override in the BMC.
    pub async fn set_boot_device(&self, node: &Node, wanted: BootOverride) -> Result<(), BmcError> {
        if !node.sets_boot_device() {
            let what = "set a boot device with the management interface noop".to_owned();
            return Err(BmcError::Unsupported { what });
        }
        self.bmc(node)?.boot.set(wanted).await
    }

    /// Returns the boot devices that the BMC accepts as an override.
    pub async fn supported_boot_devices(&self, node: &Node) -> Result<Vec<BootDevice>, BmcError> {
        if !node.sets_boot_device() {
            return Ok(Vec::new());
        }
        self.bmc(node)?.boot.supported().await
    }

    /// Sends a non-maskable interrupt to the processors of the node's machine.
    pub async fn inject_nmi(&self, node: &Node) -> Result<(), BmcError> {
        let cannot = |why: &str| BmcError::Unsupported { what: format!("inject an NMI{why}") };
        if !node.sets_boot_device() {
            return Err(cannot(" with the management interface noop"));
        }
        self.bmc(node)?.interrupt.ok_or_else(|| cannot(""))?.inject_nmi().await
    }

    /// Refuses the image of a virtual CD at an address that is not allowed.
    ///
    /// # Errors
    ///
    /// Returns the field and the reason.
    pub fn check_medium_host(&self, url: &Url) -> Result<(), RequestRefused> {
        allowed::check_image_host(&self.context.settings.image_hosts, "image_url", url)
    }

    /// Inserts the image at `url` into the virtual CD drive of the node's machine.
    pub async fn insert_medium(&self, node: &Node, url: &Url) -> Result<(), BmcError> {
        self.media(node)?.insert(url).await
    }

    /// Empties the virtual CD drive of the node's machine.
    pub async fn eject_medium(&self, node: &Node) -> Result<(), BmcError> {
        self.media(node)?.eject().await
    }

    /// Returns the state of the virtual CD drive of the node's machine.
    pub async fn virtual_drive(&self, node: &Node) -> Result<VirtualDrive, BmcError> {
        let drive = self.media(node)?.content().await?;
        // The URL of the ramdisk contains a capability.
        let own = self.context.provisioning("media/");
        let is_own =
            |image: &String| own.as_ref().is_some_and(|own| image.starts_with(own.as_str()));
        let image =
            drive.image.map(|image| if is_own(&image) { "boot.iso".to_owned() } else { image });
        Ok(VirtualDrive { image, ..drive })
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

    /// Returns the indicators that the BMC reports.
    pub async fn indicators(&self, node: &Node) -> Result<Vec<Indicator>, BmcError> {
        self.indicating(node)?.indicators().await
    }

    /// Sets an indicator.
    pub async fn set_indicator(
        &self,
        node: &Node,
        indicator: &Indicator,
        state: IndicatorState,
    ) -> Result<(), BmcError> {
        let Indicator { component, id, .. } = indicator;
        self.indicating(node)?.set_indicator(*component, id, state).await
    }

    /// Opens the serial console of the node's machine for one viewer, who can read and type.
    pub fn watch_console(&self, node: &Node) -> Result<ConsoleViewer, ConsoleError> {
        self.context.watch_console(node)
    }

    /// Opens the graphical console of the node's machine for one viewer.
    pub fn watch_graphical_console(&self, node: &Node) -> Result<GraphicalViewer, ConsoleError> {
        self.context.watch_graphical_console(node)
    }

    /// Returns the latest output of the serial console, as far as anybody was viewing it; at most the size of the buffer.
    pub fn console_log(&self, node: &Node) -> Result<Bytes, ConsoleError> {
        self.context.console_log(node)
    }

    /// Ends the console of the node, because it was disabled.
    pub fn end_console(&self, node: NodeUuid) {
        self.context.consoles.end(node, ConsoleEnd::Disabled);
    }

    pub(crate) fn bmc(&self, node: &Node) -> Result<bmc::Bmc, BmcError> {
        if node.password_rotation.is_some() {
            let reason = "the password of its account is being changed".to_owned();
            return Err(BmcError::Busy { host: node.label(), reason });
        }
        let unusable = |invalid: InvalidDriverInfo| BmcError::Unsupported {
            what: format!("be reached: {invalid}"),
        };
        self.context.bmcs.of(node).map_err(unusable)
    }

    pub(crate) fn media(&self, node: &Node) -> Result<Arc<dyn bmc::VirtualMedia>, BmcError> {
        let none = || BmcError::Unsupported { what: "offer a virtual CD drive".to_owned() };
        self.bmc(node)?.media.ok_or_else(none)
    }

    fn indicating(&self, node: &Node) -> Result<Arc<dyn bmc::Indicators>, BmcError> {
        let none = || BmcError::Unsupported { what: "report its indicators".to_owned() };
        self.bmc(node)?.indicators.ok_or_else(none)
    }

    fn sensing(&self, node: &Node) -> Result<Arc<dyn bmc::Sensors>, BmcError> {
        let none = || BmcError::Unsupported { what: "report its sensors".to_owned() };
        self.bmc(node)?.sensors.ok_or_else(none)
    }
}
