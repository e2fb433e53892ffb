//! Nova: servers, and the objects and quotas that they depend on.

pub mod actions;
pub mod aggregates;
pub mod availability_zones;
pub mod consoles;
pub mod diagnostics;
pub mod flavors;
pub mod hosts;
pub mod hypervisors;
pub mod keypairs;
pub mod limits;
pub mod server_groups;
pub mod servers;
pub mod services;

use crate::service::Service;

const SERVICE: Service = Service::Compute;

/// The microversion that we request. It decides how old a cloud may be, so it is the lowest that has all we need. 2.67 came with Stein
/// (2019):
/// - 2.47 and 2.61: a server has its flavor's size, a flavor its extra specs, without a call for each;
/// - 2.53: services and hypervisors have UUIDs, a hypervisor that of its resource provider, and are found by name;
/// - 2.42: a disk has a tag, by which its server finds it;
/// - 2.45: the id of a snapshot is in the answer's body;
/// - 2.6: consoles of every kind are requested in the same way;
/// - 2.25: live migration does not need to know where the server's disks are;
/// - 2.48: diagnostics have the same form for every hypervisor;
/// - 2.52: tags are set when a server is created, so there is no moment without them;
/// - 2.57: no network quotas, which Nova does not know;
/// - 2.64: a server group has one policy;
/// - 2.67: the type of a boot volume is chosen when a server is created.
pub(crate) const MICROVERSION: &str = "2.67";
