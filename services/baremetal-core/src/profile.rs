//! Hypervisor profiles: what makes a machine a compute host of a cloud, and how it is seen that it became one.

mod check;
mod drive;
mod files;
mod kernel;

use std::collections::BTreeMap;
use std::fmt;

use jiff::SignedDuration;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{NodeName, Place};

pub use check::{InvalidProfile, check_profile};
pub use drive::{Guest, config_drive};
pub use kernel::KernelArgument;

/// What machines become that are to be hypervisors of the cloud.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Its name, by which it is asked for.
    pub name: NodeName,
    /// Free text.
    #[serde(default)]
    pub description: Option<String>,
    /// What reads at the first boot what the machine is told.
    pub kind: ProfileKind,
    /// What is installed: the words of a node's `instance_info` that name an image.
    pub instance_info: Map<String, Value>,
    /// What the machine is told.
    pub settings: HypervisorSettings,
    /// How long each sign of its joining is waited for.
    #[serde(default)]
    pub joining: JoinLimits,
    /// Where in the cloud it is put.
    #[serde(default)]
    pub placement: Placement,
}

/// What reads at the first boot what a machine is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProfileKind {
    /// cloud-init, as Debian's images have it.
    CloudInit,
    /// Ignition, as Fedora CoreOS has it.
    Ignition,
}

/// What a hypervisor has to know of its cloud and of itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HypervisorSettings {
    /// Where and as whom its services get tokens.
    pub keystone: KeystoneSettings,
    /// Where they hear of each other.
    pub message_bus: MessageBus,
    /// How its Neutron agent connects servers.
    #[serde(default)]
    pub neutron: NeutronAgent,
    /// How servers run.
    #[serde(default)]
    pub compute: ComputeSettings,
    /// Where the disks of servers are.
    #[serde(default)]
    pub storage: Storage,
    /// Further arguments of its kernel.
    #[serde(default)]
    pub kernel_arguments: Vec<KernelArgument>,
    /// Pages that are set aside at boot.
    #[serde(default)]
    pub hugepages: Vec<Hugepages>,
    /// Whose IOMMU is switched on; needed for passthrough.
    #[serde(default)]
    pub iommu: Option<Iommu>,
    /// Devices, such as GPUs, that are given to servers as they are.
    #[serde(default)]
    pub passthrough: Vec<PciDevice>,
    /// Who may log in: public keys as in `authorized_keys`.
    #[serde(default)]
    pub ssh_keys: Vec<String>,
    /// For Ignition: a config with the units of the image's flavour, which the machine fetches and lays this one over.
    #[serde(default)]
    pub base_ignition: Option<BaseConfig>,
}

/// A config that a machine fetches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BaseConfig {
    /// Where.
    pub url: String,
    /// Its SHA-256, in hexadecimal.
    pub sha256: String,
}

/// Where and as whom the services of a hypervisor get tokens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeystoneSettings {
    /// Keystone's address: `https://cloud.example:5000/v3`.
    pub auth_url: String,
    /// The service user.
    pub username: String,
    /// Its password.
    pub password: Secret,
    /// The domain that the user is of.
    #[serde(default = "default_domain")]
    pub user_domain: String,
    /// The project that it works in.
    #[serde(default = "service_project")]
    pub project: String,
    /// The domain that the project is of.
    #[serde(default = "default_domain")]
    pub project_domain: String,
    /// The region of the catalogue, where there are several.
    #[serde(default)]
    pub region: Option<String>,
}

/// Where the services of a cloud hear of each other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MessageBus {
    /// As oslo.messaging has it, with user and password: `rabbit://nova:…@10.0.0.1:5672/`.
    pub transport_url: Secret,
}

/// How the Neutron agent connects servers: that of Open vSwitch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NeutronAgent {
    /// Which bridge leads to each physical network.
    #[serde(default)]
    pub bridge_mappings: BTreeMap<String, Bridge>,
    /// Whether networks of projects go through tunnels between hosts, as VXLAN.
    #[serde(default)]
    pub tunnels: bool,
}

/// A bridge of Open vSwitch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bridge {
    /// Its name.
    pub bridge: String,
    /// The interface that is put into it; none where the image has seen to that.
    #[serde(default)]
    pub interface: Option<String>,
}

/// How servers run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ComputeSettings {
    /// On what.
    #[serde(default)]
    pub virtualization: Virtualization,
    /// What servers see of the processor; as libvirt decides, where it is not said.
    #[serde(default)]
    pub cpu_mode: Option<CpuMode>,
}

/// What servers run on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Virtualization {
    /// The processor's own virtualization.
    #[default]
    Kvm,
    /// Emulation, where there is none.
    Qemu,
}

/// What servers see of the processor: Nova's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CpuMode {
    /// The model nearest to the host's.
    HostModel,
    /// The host's own.
    HostPassthrough,
    /// QEMU's default.
    None,
}

/// Where the disks of servers are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum Storage {
    /// Files on the host that grow as they are written.
    #[default]
    Qcow2,
    /// Files on the host of their whole size.
    Raw,
    /// Volumes of this LVM group on the host.
    Lvm(String),
}

/// Pages that are set aside at boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hugepages {
    /// How large each is.
    pub size: PageSize,
    /// How many.
    pub count: u32,
}

/// How large a huge page is on x86.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PageSize {
    /// 2 MiB.
    #[serde(rename = "2M")]
    TwoMebibytes,
    /// 1 GiB.
    #[serde(rename = "1G")]
    OneGibibyte,
}

/// Whose IOMMU a machine has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Iommu {
    /// VT-d.
    Intel,
    /// AMD-Vi.
    Amd,
}

/// A kind of device that is given to servers as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PciDevice {
    /// Who made it: four hexadecimal digits.
    pub vendor_id: String,
    /// What it is: four hexadecimal digits.
    pub product_id: String,
    /// The name by which flavors ask for it.
    pub alias: String,
}

/// How long each sign of a machine's joining is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct JoinLimits {
    /// From the boot of its disk until its compute service is up.
    pub compute_service: SignedDuration,
    /// From then until its hypervisor is listed.
    pub hypervisor: SignedDuration,
    /// From then until its resource provider is there, and has something to give.
    pub resource_provider: SignedDuration,
    /// For each of what is asked of the cloud then.
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

/// Where in the cloud hypervisors are put.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Placement {
    /// The availability zone; Nova's default one, where it is not said.
    pub availability_zone: Option<Named>,
    /// The host aggregate; none, where it is not said.
    pub aggregate: Option<Named>,
}

/// How something is named that hypervisors are put into.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Named {
    /// As their rack.
    Rack,
    /// As their group.
    Group,
    /// As both: `r1-gpu`.
    RackAndGroup,
    /// All the same.
    Fixed(String),
}

impl Named {
    /// The name for a machine that stands there; or what it lacks.
    pub fn of(&self, place: Option<&Place>) -> Result<String, &'static str> {
        let rack = || place.map(|place| place.rack.clone()).ok_or("the machine is in no rack");
        let group = || {
            let group = place.and_then(|place| place.group.clone());
            group.ok_or("the machine is in no group of its rack")
        };
        match self {
            Named::Rack => rack(),
            Named::Group => group(),
            Named::RackAndGroup => Ok(format!("{}-{}", rack()?, group()?)),
            Named::Fixed(name) => Ok(name.clone()),
        }
    }
}

/// A text that is not printed.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// The text.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Secret {
        Secret(text)
    }
}

impl fmt::Debug for Secret {
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
