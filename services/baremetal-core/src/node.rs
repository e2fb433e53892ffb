//! The node's record: what operators say about one machine, and what the conductor knows about it.

use std::collections::BTreeSet;
use std::fmt;

use hardware::{BootMode, Firmware, Health, PowerState};
use jiff::Timestamp;
use lease::RequiredState;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use trace_context::TraceContext;
use uuid::Uuid;

use crate::secret::Masked;
use crate::{
    AllocationUuid, BiosInterface, BootInterface, BootSettingRequest, ConsoleInterface,
    DrainRequest, Driver, Failure, Fault, FirmwareComponent, FirmwareInterface, Hypervisor,
    InspectInterface, Interface, Interfaces, ManagementInterface, NetworkChanges, NetworkInterface,
    NodeLease, NodeName, NodeUuid, PasswordRotation, PowerRequest, RackLocation, RaidInterface,
    RescueInterface, State, VendorInterface, WantedSteps, Work,
};

/// The most ports, port groups, volume connectors and volume targets that a node has, each. Turns and requests read all of a node at once.
pub const MOST_PARTS: usize = 256;

/// The record of one enrolled machine.
///
/// The API writes the first half of the fields, the conductor the second half. Every write names the `version` that the writer has read.
#[derive(Clone, PartialEq)]
pub struct Node {
    /// The id, which never changes.
    pub id: NodeUuid,
    /// Counts the writes. A write that names an older version is refused.
    pub version: i64,
    /// When the node was enrolled.
    pub created_at: Timestamp,
    /// When the node was last written; `None` before the first change.
    pub updated_at: Option<Timestamp>,

    pub name: Option<NodeName>,
    pub description: Option<String>,
    pub driver: Driver,
    /// The BMC's address and credentials. Holds passwords, so views and logs must mask the secrets.
    pub driver_info: Map<String, Value>,
    /// Interfaces chosen by the operator. All other interfaces use the driver's default.
    pub interfaces: Interfaces,
    /// Facts about the machine: `cpus`, `memory_mb`, `local_gb`, `cpu_arch`, `capabilities`, `root_device`.
    pub properties: Map<String, Value>,
    /// Free-form notes of the operator, ignored by the service.
    pub extra: Map<String, Value>,
    /// The image to install: `image_source`, `image_os_hash_algo`, `image_os_hash_value`, …
    pub instance_info: Map<String, Value>,
    /// The id of the instance that uses the node.
    pub instance_uuid: Option<Uuid>,
    pub instance_name: Option<String>,
    /// The allocation that reserves the node. `instance_uuid` is the allocation's id as long as this is set.
    pub allocation: Option<AllocationUuid>,
    /// The class of hardware, by which allocations choose nodes.
    pub resource_class: Option<String>,
    /// The capabilities of the machine, by which allocations choose nodes.
    pub traits: BTreeSet<String>,
    /// The group of conductors that manage the node.
    pub conductor_group: String,
    /// The project that owns the node.
    pub owner: Option<String>,
    /// The project that uses the node.
    pub lessee: Option<String>,
    /// Until when `lessee` may use the node; `None` means until the owner takes the node back.
    pub lending: Option<NodeLease>,
    /// A label by which clients divide the nodes among themselves.
    pub shard: Option<String>,
    /// The node that this node is a part of, such as the chassis of a blade.
    pub parent_node: Option<NodeUuid>,
    pub chassis: Option<Uuid>,
    /// Whether the node is cleaned on its way to `available`; `None` means the service's default.
    pub automated_clean: Option<bool>,
    /// The reason why the node must not be taken out of use; `None` means that the node is not protected.
    pub protected: Option<String>,
    /// The reason why the node must not become available again; `None` means that the node is not retired.
    pub retired: Option<String>,
    pub disable_power_off: bool,
    /// Set while an operator works on the node, so that the conductor leaves the node alone.
    pub maintenance: Option<Maintenance>,
    /// Whether the machine's serial console may be opened.
    pub console_enabled: bool,
    /// The rack and position of the machine, if known.
    pub place: Option<RackLocation>,
    /// The host that the machine is, or becomes, in an OpenStack.
    pub hypervisor: Option<Hypervisor>,
    /// A request that waits in the record until the compute host is drained.
    pub leaving: Option<DrainRequest>,

    pub provision_state: State,
    /// The state in which the current work ends.
    pub target_provision_state: Option<State>,
    pub provision_updated_at: Option<Timestamp>,
    /// Whether the machine is on; `None` until the BMC has told.
    pub power_state: Option<PowerState>,
    /// A requested change of power that has not happened yet.
    pub power_request: Option<PowerRequest>,
    /// A requested change of a boot setting that is not in force yet.
    pub boot_setting_request: Option<BootSettingRequest>,
    /// A requested change of the password of the BMC account that is not done yet, or whose outcome is unknown.
    pub password_rotation: Option<PasswordRotation>,
    /// The ports in Neutron that are still to be changed.
    pub network_changes: NetworkChanges,
    /// The work in progress: `Some` exactly while `provision_state.is_busy()`.
    pub work: Option<Work>,
    /// The trace of the request that asked for what is in progress, recorded with the intent: the turns after a restart continue the trace.
    pub trace: Option<TraceContext>,
    /// Why the last work failed. The next work clears this field.
    pub failure: Option<Failure>,
    /// The mode in which the firmware boots, if known.
    pub boot_mode: Option<BootMode>,
    /// Whether the firmware starts only signed programs, if known.
    pub secure_boot: Option<bool>,
    /// The health that the BMC reports, if it reports one.
    pub health: Option<Health>,
    /// The components with firmware of their own; empty until the BMC has told.
    pub firmware: Vec<FirmwareComponent>,
    /// The network that the ramdisk configures instead of the network of the node's first port; empty if none is wanted.
    pub network_data: Map<String, Value>,
    /// The RAID configuration that the next steps create; empty if none is wanted.
    pub target_raid_config: Map<String, Value>,
    /// The RAID configuration that the last step has created; empty before.
    pub raid_config: Map<String, Value>,
    pub inspection_started_at: Option<Timestamp>,
    /// When the last successful inspection ended.
    pub inspection_finished_at: Option<Timestamp>,
}

/// Marks a node that an operator works on, or has to look at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Maintenance {
    pub reason: Option<String>,
    /// The fault for which the conductor put the node into maintenance; `None` if a person asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<Fault>,
}

impl Maintenance {
    /// Returns the maintenance that a person asks for.
    pub const fn requested(reason: Option<String>) -> Self {
        Maintenance { reason, fault: None }
    }
}

impl fmt::Debug for Node {
    /// Prints all fields, with the values of secrets masked.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Node")
            .field("id", &self.id)
            .field("version", &self.version)
            .field("created_at", &self.created_at)
            .field("updated_at", &self.updated_at)
            .field("name", &self.name)
            .field("description", &self.description)
            .field("driver", &self.driver)
            .field("driver_info", &Masked(&self.driver_info))
            .field("interfaces", &self.interfaces)
            .field("properties", &self.properties)
            .field("extra", &self.extra)
            .field("instance_info", &Masked(&self.instance_info))
            .field("instance_uuid", &self.instance_uuid)
            .field("instance_name", &self.instance_name)
            .field("allocation", &self.allocation)
            .field("resource_class", &self.resource_class)
            .field("traits", &self.traits)
            .field("conductor_group", &self.conductor_group)
            .field("owner", &self.owner)
            .field("lessee", &self.lessee)
            .field("shard", &self.shard)
            .field("parent_node", &self.parent_node)
            .field("chassis", &self.chassis)
            .field("automated_clean", &self.automated_clean)
            .field("protected", &self.protected)
            .field("retired", &self.retired)
            .field("disable_power_off", &self.disable_power_off)
            .field("maintenance", &self.maintenance)
            .field("console_enabled", &self.console_enabled)
            .field("place", &self.place)
            .field("hypervisor", &self.hypervisor)
            .field("leaving", &self.leaving)
            .field("provision_state", &self.provision_state)
            .field("target_provision_state", &self.target_provision_state)
            .field("provision_updated_at", &self.provision_updated_at)
            .field("power_state", &self.power_state)
            .field("power_request", &self.power_request)
            .field("boot_setting_request", &self.boot_setting_request)
            .field("password_rotation", &self.password_rotation)
            .field("network_changes", &self.network_changes)
            .field("work", &self.work)
            .field("trace", &self.trace)
            .field("lending", &self.lending)
            .field("failure", &self.failure)
            .field("boot_mode", &self.boot_mode)
            .field("secure_boot", &self.secure_boot)
            .field("health", &self.health)
            .field("firmware", &self.firmware)
            .field("network_data", &self.network_data)
            .field("target_raid_config", &self.target_raid_config)
            .field("raid_config", &self.raid_config)
            .field("inspection_started_at", &self.inspection_started_at)
            .field("inspection_finished_at", &self.inspection_finished_at)
            .finish()
    }
}

impl Node {
    /// Makes the record of a node that was just enrolled, with every optional field empty.
    pub fn new(id: NodeUuid, driver: Driver, now: Timestamp) -> Self {
        Node {
            id,
            version: 1,
            created_at: now,
            updated_at: None,
            name: None,
            description: None,
            driver,
            driver_info: Map::new(),
            interfaces: Interfaces::default(),
            properties: Map::new(),
            extra: Map::new(),
            instance_info: Map::new(),
            instance_uuid: None,
            instance_name: None,
            allocation: None,
            resource_class: None,
            traits: BTreeSet::new(),
            conductor_group: String::new(),
            owner: None,
            lessee: None,
            lending: None,
            shard: None,
            parent_node: None,
            chassis: None,
            automated_clean: None,
            protected: None,
            retired: None,
            disable_power_off: false,
            maintenance: None,
            console_enabled: false,
            place: None,
            hypervisor: None,
            leaving: None,
            provision_state: State::Enroll,
            target_provision_state: None,
            provision_updated_at: None,
            power_state: None,
            power_request: None,
            boot_setting_request: None,
            password_rotation: None,
            network_changes: NetworkChanges::default(),
            work: None,
            trace: None,
            failure: None,
            boot_mode: None,
            secure_boot: None,
            health: None,
            firmware: Vec::new(),
            network_data: Map::new(),
            target_raid_config: Map::new(),
            raid_config: Map::new(),
            inspection_started_at: None,
            inspection_finished_at: None,
        }
    }

    /// Returns the name of the implementation that the node uses for `interface`.
    pub fn interface(&self, interface: Interface) -> &'static str {
        self.interfaces.chosen(interface).unwrap_or(self.driver.default(interface))
    }

    /// Returns whether the node has `interface`. Implementations named `no-…` refuse every operation.
    pub fn has(&self, interface: Interface) -> bool {
        !self.interface(interface).starts_with("no-")
    }

    /// Returns whether a person asked for the node's maintenance.
    pub fn is_maintenance_requested(&self) -> bool {
        self.maintenance.as_ref().is_some_and(|maintenance| maintenance.fault.is_none())
    }

    /// Returns the fault for which the node is in maintenance.
    pub fn fault(&self) -> Option<Fault> {
        self.maintenance.as_ref().and_then(|maintenance| maintenance.fault)
    }

    /// Returns how the ramdisk gets onto the machine.
    pub fn boot_interface(&self) -> BootInterface {
        self.interfaces.boot.unwrap_or(BootInterface::default_of(self.driver))
    }

    /// Returns the node with these versions of its firmware, read at `now`.
    pub fn with_firmware(&self, read: &[Firmware], now: Timestamp) -> Node {
        let firmware = FirmwareComponent::read_again(&self.firmware, read, now);
        Node { firmware, ..self.clone() }
    }

    /// Returns how the hardware is inspected.
    pub fn inspect_interface(&self) -> InspectInterface {
        self.interfaces.inspect.unwrap_or(InspectInterface::default_of(self.driver))
    }

    /// Returns how the settings of the firmware are changed.
    pub fn bios_interface(&self) -> BiosInterface {
        self.interfaces.bios.unwrap_or(BiosInterface::default_of(self.driver))
    }

    /// Returns how firmware is updated.
    pub fn firmware_interface(&self) -> FirmwareInterface {
        self.interfaces.firmware.unwrap_or(FirmwareInterface::default_of(self.driver))
    }

    /// Returns how the machine is connected to networks.
    pub fn network_interface(&self) -> NetworkInterface {
        self.interfaces.network.unwrap_or(NetworkInterface::default_of(self.driver))
    }

    /// Returns whether VIFs are attached to the node's ports, instead of being forgotten.
    pub fn keeps_vifs(&self) -> bool {
        match self.network_interface() {
            NetworkInterface::Flat | NetworkInterface::Neutron => true,
            NetworkInterface::Noop => false,
        }
    }

    /// Returns how a broken installation is repaired.
    pub fn rescue_interface(&self) -> RescueInterface {
        self.interfaces.rescue.unwrap_or(RescueInterface::default_of(self.driver))
    }

    /// Returns how disks are combined.
    pub fn raid_interface(&self) -> RaidInterface {
        self.interfaces.raid.unwrap_or(RaidInterface::default_of(self.driver))
    }

    /// Returns how functions of one vendor are called.
    pub fn vendor_interface(&self) -> VendorInterface {
        self.interfaces.vendor.unwrap_or(VendorInterface::default_of(self.driver))
    }

    /// Returns the arguments of all steps, which may contain secrets: those of the work, and those of a request that waits for a drain.
    pub fn step_args(&self) -> impl Iterator<Item = &Map<String, Value>> {
        let waiting = self.leaving.iter().filter_map(|leaving| leaving.steps.as_ref());
        let waiting = waiting.flat_map(WantedSteps::args);
        self.work.iter().flat_map(Work::step_args).chain(waiting)
    }

    /// Like [`Node::step_args`], to seal and to open the secrets.
    pub fn step_args_mut(&mut self) -> impl Iterator<Item = &mut Map<String, Value>> {
        let waiting = self.leaving.iter_mut().filter_map(|leaving| leaving.steps.as_mut());
        let waiting = waiting.flat_map(WantedSteps::args_mut);
        self.work.iter_mut().flat_map(Work::step_args_mut).chain(waiting)
    }

    /// Returns how the serial console is reached.
    pub fn console_interface(&self) -> ConsoleInterface {
        self.interfaces.console.unwrap_or(ConsoleInterface::default_of(self.driver))
    }

    /// Returns how the machine is managed besides its power.
    pub fn management_interface(&self) -> ManagementInterface {
        self.interfaces.management.unwrap_or(ManagementInterface::default_of(self.driver))
    }

    /// Returns whether the service sets the boot device of the machine.
    pub fn sets_boot_device(&self) -> bool {
        self.management_interface() != ManagementInterface::Noop
    }

    /// Returns the state that the lease requires of the node.
    pub fn wanted_by_lease(&self) -> RequiredState {
        self.lending
            .as_ref()
            .map_or(RequiredState::AsRequested, |lending| lending.lease.required_state())
    }

    /// Returns the node's name, or its id if the node has no name, for messages to people.
    pub fn label(&self) -> String {
        self.name.as_ref().map_or_else(|| self.id.to_string(), NodeName::to_string)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::drain_request::tests::leaving;
    use crate::{AfterDrain, DrainStage, RequestedStep, StepName, WorkUuid};

    #[test]
    fn no_secret_is_printed() {
        let mut node = Node::new(NodeUuid::nil(), Driver::Redfish, Timestamp::UNIX_EPOCH);
        let info = json!({"redfish_password": "hunter2", "a": {"token": "hunter2"}, "b": [{"secret": "hunter2"}], "u": "ann"});
        node.driver_info = info.as_object().unwrap().clone();
        node.instance_info = json!({"configdrive": "hunter2"}).as_object().unwrap().clone();
        let printed = format!("{node:?} {node:#?}");
        assert!(!printed.contains("hunter2") && printed.contains("ann"), "{printed}");
    }

    #[test]
    fn an_interface_is_the_chosen_one_or_the_default_of_the_driver() {
        let mut node = Node::new(NodeUuid::nil(), Driver::Ipmi, Timestamp::UNIX_EPOCH);
        let console = Interface::Console;
        assert_eq!((node.interface(console), node.has(console)), ("no-console", false));
        assert!(node.interfaces.choose(console, "ipmitool-socat"));
        assert_eq!((node.interface(console), node.has(console)), ("ipmitool-socat", true));
        node.driver = Driver::Redfish;
        node.interfaces.reset(console);
        assert_eq!((node.interface(console), node.has(console)), ("no-console", false));
        assert_eq!((node.interface(Interface::Boot), node.has(Interface::Boot)), ("ipxe", true));
    }

    #[test]
    fn the_secrets_of_all_steps_are_found() {
        let steps = |secret: &str| {
            let name = StepName { interface: Interface::Deploy, step: "flash".to_owned() };
            let args = json!({ "token": secret }).as_object().unwrap().clone();
            WantedSteps::Service(vec![RequestedStep { name, args, children: None }])
        };
        let now = Timestamp::UNIX_EPOCH;
        let mut node = Node::new(NodeUuid::nil(), Driver::Redfish, now);
        node.work = Some(Work { steps: steps("a"), ..Work::new(WorkUuid::nil(), Vec::new(), now) });
        let waiting = leaving(AfterDrain::Service, DrainStage::Wanted);
        node.leaving = Some(DrainRequest { steps: Some(steps("b")), ..waiting });
        let secrets: Vec<&Value> = node.step_args().map(|args| &args["token"]).collect();
        assert_eq!(secrets, ["a", "b"]);
        for args in node.step_args_mut() {
            args.insert("token".to_owned(), "sealed".into());
        }
        assert!(node.step_args().all(|args| args["token"] == "sealed"));
    }

    #[test]
    fn versions_of_firmware_are_kept() {
        let (component, version) = ("bios".to_owned(), "U32".to_owned());
        let node = Node::new(NodeUuid::nil(), Driver::Redfish, Timestamp::UNIX_EPOCH);
        let read = node.with_firmware(&[Firmware { component, version }], Timestamp::UNIX_EPOCH);
        let versions: Vec<&str> = read.firmware.iter().map(|it| &*it.current_version).collect();
        assert_eq!(versions, ["U32"]);
    }

    #[test]
    fn a_machine_that_is_managed_by_hand_chooses_its_boot_device_itself() {
        let sets =
            |driver| Node::new(NodeUuid::nil(), driver, Timestamp::UNIX_EPOCH).sets_boot_device();
        assert!(sets(Driver::Redfish) && !sets(Driver::ManualManagement));
    }
}
