//! Hypervisor profiles: the settings that make a machine a compute host of an OpenStack, and how its joining is checked.

mod drive;
mod files;
mod kernel;
mod kernel_argument;

use std::collections::BTreeMap;
use std::fmt;

use jiff::SignedDuration;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{NodeName, RackLocation};

pub use drive::{HypervisorMachine, config_drive};
pub use kernel_argument::KernelArgument;

/// A hypervisor profile: the image, settings and placement of machines that become compute hosts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// The name by which requests choose the profile.
    pub name: NodeName,
    #[serde(default)]
    pub description: Option<String>,
    /// The program that reads the settings at the machine's first boot.
    pub kind: ProfileKind,
    /// The image to install, in the keys of a node's `instance_info`.
    pub instance_info: Map<String, Value>,
    /// The settings that the config drive gives to the machine.
    pub settings: HypervisorSettings,
    /// How long the conductor waits for each sign of joining.
    #[serde(default)]
    pub joining: JoinLimits,
    /// The availability zone and aggregate of the host.
    #[serde(default)]
    pub placement: Placement,
}

/// The program that reads the config drive at the first boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProfileKind {
    /// cloud-init, as in Debian's images.
    CloudInit,
    /// Ignition, as in Fedora CoreOS.
    Ignition,
}

/// Everything that the services of a compute host have to know about their cloud and their machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HypervisorSettings {
    /// How the services get tokens.
    pub keystone: KeystoneSettings,
    /// How the services reach Nova and Neutron.
    pub message_bus: MessageBus,
    #[serde(default)]
    pub neutron: NeutronAgent,
    #[serde(default)]
    pub compute: ComputeSettings,
    #[serde(default)]
    pub storage: Storage,
    /// Additional kernel arguments.
    #[serde(default)]
    pub kernel_arguments: Vec<KernelArgument>,
    /// Huge pages that are reserved at boot.
    #[serde(default)]
    pub hugepages: Vec<Hugepages>,
    /// The vendor of the IOMMU to switch on; needed for passthrough. `None` leaves the IOMMU off.
    #[serde(default)]
    pub iommu: Option<Iommu>,
    /// Devices, such as GPUs, that servers get exclusively.
    #[serde(default)]
    pub passthrough: Vec<PciDevice>,
    /// Public keys that may log in, in the format of `authorized_keys`.
    #[serde(default)]
    pub ssh_keys: Vec<String>,
    /// For Ignition only: a config with the systemd units of the image, which the machine fetches and merges with the config from the
    /// profile.
    #[serde(default)]
    pub base_ignition: Option<BaseConfig>,
}

/// An Ignition config that the machine fetches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BaseConfig {
    pub url: String,
    /// The SHA-256 of the config, in hexadecimal.
    pub sha256: String,
}

/// How the services of a compute host get tokens from Keystone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeystoneSettings {
    /// Keystone's URL, such as `https://cloud.example:5000/v3`.
    pub auth_url: String,
    /// The service user's name.
    pub username: String,
    pub password: SecretText,
    #[serde(default = "default_domain")]
    pub user_domain: String,
    /// The project that tokens are scoped to.
    #[serde(default = "service_project")]
    pub project: String,
    #[serde(default = "default_domain")]
    pub project_domain: String,
    /// The region to choose in the service catalogue; `None` if the catalogue has only one.
    #[serde(default)]
    pub region: Option<String>,
}

/// How the services of a cloud reach each other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MessageBus {
    /// The transport URL of oslo.messaging, with user and password: `rabbit://nova:…@10.0.0.1:5672/`.
    pub transport_url: SecretText,
}

/// The settings of Neutron's Open vSwitch agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NeutronAgent {
    /// The bridge for each physical network.
    #[serde(default)]
    pub bridge_mappings: BTreeMap<String, Bridge>,
    /// Whether project networks use tunnels between hosts, such as VXLAN.
    #[serde(default)]
    pub tunnels: bool,
}

/// An Open vSwitch bridge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bridge {
    /// The name of the bridge.
    pub bridge: String,
    /// The interface to add to the bridge; `None` if the image has added one.
    #[serde(default)]
    pub interface: Option<String>,
}

/// The settings of nova-compute.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ComputeSettings {
    #[serde(default)]
    pub virtualization: Virtualization,
    /// The CPU model that servers see; `None` leaves the choice to libvirt.
    #[serde(default)]
    pub cpu_mode: Option<CpuMode>,
}

/// The hypervisor type, `virt_type` in Nova.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Virtualization {
    /// The processor's virtualization.
    #[default]
    Kvm,
    /// Emulation, for processors without virtualization.
    Qemu,
}

/// The CPU model that servers see, `cpu_mode` in Nova.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CpuMode {
    /// The named model nearest to the host's processor.
    HostModel,
    /// The host's own processor model.
    HostPassthrough,
    /// QEMU's default model.
    None,
}

/// Where the disks of servers are stored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum Storage {
    /// Files on the host that grow as servers write.
    #[default]
    Qcow2,
    /// Files on the host, allocated with their full size.
    Raw,
    /// Volumes in the LVM volume group of this name.
    Lvm(String),
}

/// Huge pages that are reserved at boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hugepages {
    pub size: PageSize,
    pub count: u32,
}

/// The size of a huge page on x86.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PageSize {
    #[serde(rename = "2M")]
    TwoMebibytes,
    #[serde(rename = "1G")]
    OneGibibyte,
}

/// The vendor of an IOMMU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Iommu {
    /// VT-d.
    Intel,
    /// AMD-Vi.
    Amd,
}

/// A type of PCI device that servers get exclusively.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PciDevice {
    /// The PCI vendor id: four hexadecimal digits.
    pub vendor_id: String,
    /// The PCI device id: four hexadecimal digits.
    pub product_id: String,
    /// The alias by which flavors ask for the device.
    pub alias: String,
}

/// How long the conductor waits for each sign that a machine joins its cloud.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct JoinLimits {
    /// From the boot of the disk until the compute service is up.
    pub compute_service: SignedDuration,
    /// From then until the hypervisor is listed.
    pub hypervisor: SignedDuration,
    /// From then until the resource provider exists and has an inventory.
    pub resource_provider: SignedDuration,
    /// For each of the calls that then put the host into its zone and aggregate and enable it.
    pub placement: SignedDuration,
}

impl Default for JoinLimits {
    fn default() -> Self {
        JoinLimits {
            compute_service: SignedDuration::from_mins(20),
            hypervisor: SignedDuration::from_mins(10),
            resource_provider: SignedDuration::from_mins(5),
            placement: SignedDuration::from_mins(5),
        }
    }
}

/// The availability zone and the aggregate that the conductor puts a host into.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Placement {
    /// The availability zone; `None` leaves the host in Nova's default zone.
    pub availability_zone: Option<NameSource>,
    /// The host aggregate; `None` adds the host to none.
    pub aggregate: Option<NameSource>,
}

/// How the name of an availability zone or aggregate is formed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NameSource {
    /// The name of the machine's rack.
    Rack,
    /// The name of the machine's group.
    Group,
    /// The names of both, such as `r1-gpu`.
    RackAndGroup,
    /// This name for all machines.
    Fixed(String),
}

impl NameSource {
    /// Returns the name for a machine at `place`, or an error that says which part of the place is missing.
    pub fn of(&self, place: Option<&RackLocation>) -> Result<String, &'static str> {
        let rack = || place.map(|place| place.rack.clone()).ok_or("the machine is in no rack");
        let group = || {
            let group = place.and_then(|place| place.group.clone());
            group.ok_or("the machine is in no group of its rack")
        };
        match self {
            NameSource::Rack => rack(),
            NameSource::Group => group(),
            NameSource::RackAndGroup => Ok(format!("{}-{}", rack()?, group()?)),
            NameSource::Fixed(name) => Ok(name.clone()),
        }
    }
}

/// A secret text that `Debug` does not print.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SecretText(String);

impl SecretText {
    /// Returns the secret text, for use where the secret is needed.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl From<String> for SecretText {
    fn from(text: String) -> SecretText {
        SecretText(text)
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

fn default_domain() -> String {
    "Default".to_owned()
}

fn service_project() -> String {
    "service".to_owned()
}

#[cfg(test)]
mod tests;
