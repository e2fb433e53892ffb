//! The VIFs of a node and their ports in Neutron.

use std::collections::BTreeSet;

use baremetal_core::{Node, Problem, Reason, vifs};
use hardware::MacAddress;
use openstack::network::networks;
use openstack::network::ports::{self, MachineBinding, Port};
use openstack::{CloudError, Session};
use serde_json::{Map, Value};
use tracing::info;

use crate::cloud::problem;
use crate::conductor::Conductor;
use crate::context::TurnContext;
use crate::problem::{Result, chain};

/// The owner and the networks of a VIF, as Neutron shows them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VifSeen {
    /// The project that the VIF belongs to.
    pub project: Option<String>,
    /// The physical networks of its network; empty if they do not matter.
    pub physical_networks: BTreeSet<String>,
}

/// Why a VIF cannot be looked up.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VifLookupError {
    #[error("id: port {vif} was not found in Neutron")]
    Missing { vif: String },
    #[error("cannot look up port {vif} in Neutron: {cause}")]
    Unknown {
        vif: String,
        cause: String,
        /// Whether the same request may succeed later.
        transient: bool,
    },
}

impl Conductor {
    /// Looks up a VIF in the Neutron of the configured cloud, without changing anything; `None` if there is no cloud.
    ///
    /// # Errors
    ///
    /// Fails if the VIF does not exist, or if the cloud does not answer.
    pub async fn look_at_vif(&self, vif: &str) -> Result<Option<VifSeen>, VifLookupError> {
        let Some(cloud) = &self.context.settings.cloud else { return Ok(None) };
        let unknown = |error: CloudError| VifLookupError::Unknown {
            vif: vif.to_owned(),
            cause: chain(&error),
            transient: error.is_transient(),
        };
        let seen = look(cloud, vif).await.map_err(unknown)?;
        seen.map(Some).ok_or_else(|| VifLookupError::Missing { vif: vif.to_owned() })
    }
}

async fn look(cloud: &Session, vif: &str) -> Result<Option<VifSeen>, CloudError> {
    let Some(port) = ports::show(cloud, vif).await? else { return Ok(None) };
    let network = networks::show(cloud, &port.network_id).await?;
    let physical = network.iter().flat_map(|it| it.physical_networks().map(str::to_owned));
    Ok(Some(VifSeen { project: port.project_id, physical_networks: physical.collect() }))
}

impl TurnContext {
    /// Binds the ports of the node's VIFs in Neutron to the machine, as Ironic's network interfaces `flat` and `neutron` do.
    pub(crate) async fn bind_vifs(&self, node: &Node) -> Result<()> {
        if self.settings.cloud.is_some() && self.bind_attached_vifs(node).await? == 0 {
            let cause =
                "no VIF is attached to the node; attach one, or set network_interface to noop";
            let (reason, cause) = (Reason::BadRequest, cause.to_owned());
            return Err(Problem { reason, cause, transient: false }.into());
        }
        Ok(())
    }

    /// Binds the ports of the node's VIFs, if there is a cloud, and returns how many they are. The network interface `neutron` also tells
    /// Neutron the switch ports.
    pub(crate) async fn bind_attached_vifs(&self, node: &Node) -> Result<usize> {
        let Some(cloud) = &self.settings.cloud else { return Ok(0) };
        let bindings = self.bindings(node).await?;
        for (vif, binding) in &bindings {
            let binding = bind(cloud, vif, binding);
            let bound = self.effect("cloud: bind port", binding).await?;
            let bound = bound.map_err(|error| problem(&error))?;
            if node.switches_networks() {
                self.check_binding(node, &bound)?;
            }
            info!("bound port {vif} in Neutron to node {}", node.id);
        }
        Ok(bindings.len())
    }

    /// Releases the ports of the node's VIFs in Neutron. The VIFs stay attached.
    pub(crate) async fn release_vifs(&self, node: &Node) -> Result<()> {
        let Some(cloud) = &self.settings.cloud else { return Ok(()) };
        for (vif, _) in self.bindings(node).await? {
            self.release_vif(cloud, node, &vif).await?;
        }
        Ok(())
    }

    /// Releases a port in Neutron, if it is bound to the node.
    pub(crate) async fn release_vif(&self, cloud: &Session, node: &Node, vif: &str) -> Result<()> {
        let host = node.id.to_string();
        let releasing = release(cloud, vif, &host);
        let released = self.effect("cloud: release port", releasing).await?;
        Ok(released.map_err(|error| problem(&error))?)
    }

    /// Releases the ports of the node's VIFs in Neutron, and then forgets the VIFs. Returns the node with its new version.
    pub(crate) async fn detach_vifs(&self, node: &Node) -> Result<Node> {
        let (mut ports, mut groups) =
            (self.store.ports_of(node.id).await?, self.store.port_groups_of(node.id).await?);
        if let Some(cloud) = &self.settings.cloud {
            for vif in vifs(&ports, &groups) {
                self.release_vif(cloud, node, vif).await?;
            }
        }
        ports.retain(|port| port.vif.is_some());
        groups.retain(|group| group.content.vif.is_some());
        for port in &mut ports {
            (port.vif, port.updated_at) = (None, Some(self.now()));
        }
        for group in &mut groups {
            (group.content.vif, group.updated_at) = (None, Some(self.now()));
        }
        if ports.is_empty() && groups.is_empty() {
            return Ok(node.clone());
        }
        Ok(self.store.update_vifs(node, &ports, &groups).await?)
    }

    /// Returns the VIFs of the node, each with the binding to its place.
    async fn bindings(&self, node: &Node) -> Result<Vec<(String, MachineBinding)>> {
        let ports = self.store.ports_of(node.id).await?;
        let groups = self.store.port_groups_of(node.id).await?;
        let binding = |mac: Option<MacAddress>, profile: Map<String, Value>| MachineBinding {
            host: node.id.to_string(),
            mac: mac.map(|mac| mac.to_string()),
            profile: node.switches_networks().then_some(profile),
        };
        let of_ports = ports.iter().filter_map(|port| {
            Some((port.vif.clone()?, binding(Some(port.address), port.binding_profile())))
        });
        let of_groups = groups.iter().filter_map(|group| {
            let members = ports.iter().filter(|port| port.portgroup == Some(group.id));
            let profile = group.binding_profile(members);
            Some((group.content.vif.clone()?, binding(group.content.address, profile)))
        });
        Ok(of_ports.chain(of_groups).collect())
    }
}

/// Binds a port. A port that is bound to another host is released first, because its MAC address could not change.
async fn bind(cloud: &Session, vif: &str, binding: &MachineBinding) -> Result<Port, CloudError> {
    if let Some(port) = ports::show(cloud, vif).await?
        && !port.host.is_empty()
        && port.host != binding.host
    {
        ports::release(cloud, vif).await?;
    }
    ports::bind(cloud, vif, binding).await
}

/// Releases a port, if it is still bound to this host. A port that is gone is no error.
async fn release(cloud: &Session, vif: &str, host: &str) -> Result<(), CloudError> {
    match ports::show(cloud, vif).await? {
        Some(port) if port.host == host => ports::release(cloud, vif).await?,
        // Killed between the two calls, the first one has already succeeded.
        Some(port) if port.host.is_empty() => port,
        Some(_) | None => return Ok(()),
    };
    ports::renew_mac(cloud, vif).await.map(drop)
}

#[cfg(test)]
mod tests;
