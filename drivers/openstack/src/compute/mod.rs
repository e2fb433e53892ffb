//! Nova: servers, and what they are made of and limited by.

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

/// What we ask for, and no more, for a microversion is the oldest cloud we run on. 2.67 came with Stein (2019):
/// - 2.47 and 2.61: a server names its flavor's size, a flavor its extra specs, without a call for each;
/// - 2.53: services and hypervisors are known by UUIDs, a hypervisor by that of its resource provider, and are found by name;
/// - 2.42: a disk has a tag, by which its server finds it;
/// - 2.45: a snapshot's id is in the answer's body;
/// - 2.6: consoles of every kind are asked for in one way;
/// - 2.25: a server is moved as it runs without saying where its disks are;
/// - 2.48: diagnostics look the same whatever the hypervisor;
/// - 2.52: tags are given as a server is made, so there is no moment in which it has none;
/// - 2.57: no quota of networks that Nova does not know;
/// - 2.64: a server group has one policy;
/// - 2.67: a boot volume's type is chosen as a server is made.
pub(crate) const MICROVERSION: &str = "2.67";
