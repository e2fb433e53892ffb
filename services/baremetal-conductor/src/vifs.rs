//! The VIFs of a node and their ports in Neutron.

use std::collections::BTreeSet;

use baremetal_core::{Node, Problem, Reason, vifs};
use openstack::network::{networks, ports};
use openstack::{CloudError, Session};
use tracing::info;

use crate::cloud::problem;
use crate::conductor::Conductor;
use crate::context::TurnContext;
use crate::problem::{ActionError, chain};

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
    /// Binds the ports of the node's VIFs in Neutron to the machine, as Ironic's network interface `flat` does.
    pub(crate) async fn bind_vifs(&self, node: &Node) -> Result<(), ActionError> {
        let Some(cloud) = &self.settings.cloud else { return Ok(()) };
        let bindings = self.bindings(node).await?;
        if bindings.is_empty() {
            let cause =
                "no VIF is attached to the node; attach one, or set network_interface to noop";
            let (reason, cause) = (Reason::BadRequest, cause.to_owned());
            return Err(Problem { reason, cause, transient: false }.into());
        }
        let host = node.id.to_string();
        for (vif, mac) in bindings {
            let binding = bind(cloud, &vif, &host, mac.as_deref());
            let bound = self.store.tripwire().around("cloud: bind port", binding).await;
            bound.map_err(|error| problem(&error))?;
            info!("bound port {vif} in Neutron to node {}", node.id);
        }
        Ok(())
    }

    /// Releases the ports of the node's VIFs in Neutron, and then forgets the VIFs. Returns the node with its new version.
    pub(crate) async fn detach_vifs(&self, node: &Node) -> Result<Node, ActionError> {
        let (mut ports, mut groups) =
            (self.store.ports_of(node.id).await?, self.store.port_groups_of(node.id).await?);
        if let Some(cloud) = &self.settings.cloud {
            let host = node.id.to_string();
            for vif in vifs(&ports, &groups) {
                let releasing = release(cloud, vif, &host);
                let released = self.store.tripwire().around("cloud: release port", releasing).await;
                released.map_err(|error| problem(&error))?;
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

    /// Returns the VIFs of the node, each with the MAC address of its place.
    async fn bindings(&self, node: &Node) -> Result<Vec<(String, Option<String>)>, ActionError> {
        let ports = self.store.ports_of(node.id).await?.into_iter();
        let groups = self.store.port_groups_of(node.id).await?.into_iter();
        let of_ports = ports.filter_map(|it| Some((it.vif?, Some(it.address.to_string()))));
        let of_groups = groups.filter_map(|it| {
            Some((it.content.vif?, it.content.address.map(|mac| mac.to_string())))
        });
        Ok(of_ports.chain(of_groups).collect())
    }
}

/// Binds a port. A port that is bound to another host is released first, because its MAC address could not change.
async fn bind(cloud: &Session, vif: &str, host: &str, mac: Option<&str>) -> Result<(), CloudError> {
    if let Some(port) = ports::show(cloud, vif).await?
        && !port.host.is_empty()
        && port.host != host
    {
        ports::release(cloud, vif).await?;
    }
    ports::bind(cloud, vif, host, mac).await.map(drop)
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
