//! The requests of agents: look-ups, heartbeats and inventories.

use std::net::IpAddr;

use agent_protocol::{AgentConfig, InspectionData, LookupAnswer, LookupNode};
use baremetal_core::{
    Boot, Discovery, DiscoveryId, InspectionReport, Node, NodeIdent, NodeUuid, Page, PortFilter,
    PortSort, State, Work,
};
use baremetal_store::StoreError;
use hardware::MacAddress;
use serde_json::{Map, Value};
use tracing::{info, warn};
use url::{Host, Url};

use crate::agents;
use crate::boots::BootError;
use crate::conductor::Conductor;
use crate::context::TurnContext;
use crate::observations::ObservedPart;
use crate::secrets::Purpose;
use crate::settings::AcceptedBy;

/// A report of an agent that it is running.
pub use agent_protocol::Heartbeat;

impl TurnContext {
    /// Returns the token for an agent that looked up `node`: the first answer in each boot contains it if somebody else boots the ramdisk.
    /// Otherwise the boot script contained the token.
    async fn looked_up_token(&self, node: &Node) -> Result<Option<String>, StoreError> {
        if !node.is_booted_by_others() {
            return Ok(None);
        }
        let Some(boot) = self.boot_of_work(node).await? else { return Ok(None) };
        let is_first = self.store.claim_boot(&boot, self.now()).await?;
        Ok(is_first.then(|| self.agent_token(&boot)))
    }

    /// Returns whether the agent of this boot works on the node. The agent of finished work keeps reporting until its machine is off, and may
    /// be used by other work.
    fn awaits_reports(&self, node: &Node, boot: &Boot) -> bool {
        match &node.work {
            Some(work) => work.id == boot.work,
            None => node.may_run_idle_ramdisk(self.settings.fast_track),
        }
    }

    /// Returns whether the node has no work, and the ramdisk of earlier work has reported lately.
    async fn waits_with_ramdisk(&self, node: &Node) -> Result<bool, StoreError> {
        Ok(node.may_run_idle_ramdisk(self.settings.fast_track)
            && self.recent_boot(node).await?.is_some())
    }

    /// Returns the node of the ports with these addresses, or `None` if there are no such ports.
    async fn node_with(&self, addresses: &[MacAddress]) -> Result<Option<NodeUuid>, BootError> {
        if addresses.is_empty() {
            return Ok(None);
        }
        let filter = PortFilter { addresses: addresses.to_vec(), ..PortFilter::default() };
        let (sort, descending) = (PortSort::Id, false);
        let page = Page { limit: 100, marker: None, sort, descending };
        let ports = self.store.list_ports(&filter, &page).await?;
        let Some(first) = ports.first() else { return Ok(None) };
        if ports.iter().any(|port| port.node != first.node) {
            let problem = "belong to several nodes".to_owned();
            return Err(BootError::Invalid { field: "addresses", problem });
        }
        Ok(Some(first.node))
    }
}

impl Conductor {
    /// Tells an agent which node it runs on. The answer contains only what an agent needs, and the token only where
    /// [`Node::is_booted_by_others`] holds.
    pub async fn lookup(
        &self,
        addresses: &[MacAddress],
        node: Option<NodeUuid>,
    ) -> Result<LookupAnswer, BootError> {
        let context = &self.context;
        let none =
            BootError::NotFound { what: "a node with these addresses that waits for an agent" };
        let id = match node {
            Some(id) => id,
            None => match context.node_with(addresses).await? {
                Some(id) => id,
                None => return Err(none),
            },
        };
        let Some(node) = context.store.find_node(&NodeIdent::Id(id)).await? else {
            return Err(none);
        };
        // The agent looks its node up again after the inspection, and whenever it restarts. Once its part of the work is done, the machine is
        // about to be switched off, or waits for other work.
        let is_needed = node.work.as_ref().is_some_and(Work::needs_agent);
        if !is_needed && !context.waits_with_ramdisk(&node).await? {
            return Err(none);
        }
        let token = context.looked_up_token(&node).await?;
        let hints = node.properties.get("root_device").cloned();
        let properties = hints
            .map(|hints| Map::from_iter([("root_device".to_owned(), hints)]))
            .unwrap_or_default();
        Ok(LookupAnswer {
            node: LookupNode {
                uuid: id.to_string(),
                properties,
                instance_info: Map::new(),
                driver_internal_info: Map::new(),
                links: Vec::new(),
            },
            config: AgentConfig {
                heartbeat_timeout: context.settings.heartbeat_timeout.as_secs(),
                agent_token: Some(token.unwrap_or_else(|| "******".to_owned())),
                agent_token_required: true,
                enable_bios_bootloader_install: context.settings.bootloader_install,
            },
        })
    }

    /// Accepts a heartbeat of an agent at the address `peer`.
    pub async fn heartbeat(
        &self,
        id: NodeUuid,
        beat: &Heartbeat,
        peer: IpAddr,
    ) -> Result<(), BootError> {
        let context = &self.context;
        let Some(boot) = context.store.find_boot(id).await? else {
            let node = context.store.find_node(&NodeIdent::Id(id)).await?;
            node.ok_or(BootError::NotFound { what: "the node" })?;
            let problem = "is not valid, because the node waits for no agent".to_owned();
            return Err(BootError::Invalid { field: "agent_token", problem });
        };
        let parts = [&*boot.node.to_string(), &*boot.work.to_string(), &*boot.nonce];
        let shown = beat.agent_token.as_deref().unwrap_or("");
        if !context.key.verify(Purpose::AgentToken, &parts, shown) {
            warn!(node.id = %id, "an agent at {peer} reported for node {id} with a wrong token");
            return Err(BootError::Forbidden);
        }
        let node = context.store.find_node(&NodeIdent::Id(id)).await?;
        if !node.is_some_and(|node| context.awaits_reports(&node, &boot)) {
            return Err(BootError::NotFound { what: "work of this boot" });
        }
        check_callback(&beat.callback_url, peer)?;
        let certificate = beat.agent_verify_ca.as_deref().unwrap_or("");
        if certificate.is_empty() || certificate.len() > 16 << 10 {
            let problem = "missing; send the agent's certificate as PEM".to_owned();
            return Err(BootError::Invalid { field: "agent_verify_ca", problem });
        }
        let is_known = boot.certificate.as_deref() == Some(certificate);
        if !is_known && !agents::is_certificate(certificate) {
            let problem = "is not a PEM certificate".to_owned();
            return Err(BootError::Invalid { field: "agent_verify_ca", problem });
        }
        let first = boot.callback_url.is_none();
        if !first && boot.callback_url.as_deref() != Some(&*beat.callback_url) {
            let problem = "must not change within a boot".to_owned();
            return Err(BootError::Invalid { field: "callback_url", problem });
        }
        context.sightings.note(id, ObservedPart::Agent, format!("heartbeat from {peer}"));
        let reported = Boot {
            callback_url: Some(beat.callback_url.clone()),
            certificate: Some(certificate.to_owned()),
            agent_version: beat.agent_version.clone(),
            seen_at: Some(context.now()),
            ..boot
        };
        // The machine may have fetched another script meanwhile. From then on only the new script's token counts.
        if !context.store.report_boot(&reported).await? {
            return Err(BootError::Forbidden);
        }
        if first {
            info!(node.id = %id, "the agent of node {id} reports from {peer}");
        }
        self.wake(id);
        Ok(())
    }

    /// Accepts the inventory of an agent.
    pub async fn inspected(
        &self,
        id: NodeUuid,
        capability: &str,
        body: Map<String, Value>,
    ) -> Result<(), BootError> {
        let context = &self.context;
        let none = || BootError::NotFound { what: "a node that waits for an inventory" };
        let boot = context.store.find_boot(id).await?.ok_or_else(none)?;
        let parts = [&*boot.node.to_string(), &*boot.work.to_string(), &*boot.nonce];
        if !context.key.verify(Purpose::Inventory, &parts, capability) {
            return Err(BootError::Forbidden);
        }
        self.accept_inventory(boot, body).await
    }

    /// Accepts the inventory of an agent that somebody else booted. The MAC addresses in the inventory name the node. Returns its id.
    pub async fn inspected_unsigned(
        &self,
        id: Option<NodeUuid>,
        body: Map<String, Value>,
    ) -> Result<NodeUuid, BootError> {
        let context = &self.context;
        let none = || BootError::NotFound { what: "a node that waits for an inventory" };
        let addresses = addresses_in(&body);
        if addresses.is_empty() {
            let problem = "has no interface with a MAC address".to_owned();
            return Err(BootError::Invalid { field: "inventory", problem });
        }
        let found = context.node_with(&addresses).await?.ok_or_else(none)?;
        if id.is_some_and(|id| id != found) {
            return Err(none());
        }
        let node = context.store.find_node(&NodeIdent::Id(found)).await?.ok_or_else(none)?;
        if !node.is_booted_by_others() {
            return Err(BootError::Forbidden);
        }
        let boot = context.boot_of_work(&node).await?.ok_or_else(none)?;
        self.accept_inventory(boot, body).await?;
        Ok(found)
    }

    /// Stores the inventory that the machine of this boot has sent, if its node waits for one.
    async fn accept_inventory(
        &self,
        boot: Boot,
        body: Map<String, Value>,
    ) -> Result<(), BootError> {
        let context = &self.context;
        let none = || BootError::NotFound { what: "a node that waits for an inventory" };
        let id = boot.node;
        let node = context.store.find_node(&NodeIdent::Id(id)).await?.ok_or_else(none)?;
        if node.provision_state != State::InspectWait
            || node.work.as_ref().is_none_or(|work| work.id != boot.work)
        {
            return Err(none());
        }
        let (inventory, plugin_data) = split(body)?;
        let now = context.now();
        let found = InspectionReport { node: id, at: now, inventory, plugin_data };
        let reported = Boot { inventory_at: Some(now), seen_at: Some(now), ..boot };
        if !context.store.report_inventory(&reported, &found).await? {
            return Err(BootError::Forbidden);
        }
        context.sightings.note(id, ObservedPart::Agent, "sent its inventory");
        self.wake(id);
        Ok(())
    }

    /// Accepts the inventory of a machine that nobody has enrolled.
    pub async fn discovered(
        &self,
        mac: MacAddress,
        capability: &str,
        body: Map<String, Value>,
    ) -> Result<(), BootError> {
        let context = &self.context;
        self.check_discovery(mac, capability).await?;
        let (inventory, plugin_data) = split(body)?;
        let now = context.now();
        let data = Some(serde_json::json!({"inventory": inventory, "plugin_data": plugin_data}));
        let id = DiscoveryId::Machine(mac);
        let found = Discovery { id, first_seen_at: now, last_seen_at: now, data, node: None };
        context.store.save_discovery(&found).await?;
        info!(%mac, "an unknown machine with port {mac} sent its inventory");
        match context.settings.discovery.accepted_by {
            AcceptedBy::Person => Ok(()),
            AcceptedBy::InspectionRules => Ok(self.accept_by_rules(&found).await?),
        }
    }
}

/// Checks the callback URL: an agent listens where it reports from. Any other address would make the conductor call strangers.
fn check_callback(raw: &str, peer: IpAddr) -> Result<(), BootError> {
    let invalid =
        |problem: &str| BootError::Invalid { field: "callback_url", problem: problem.to_owned() };
    let url = Url::parse(raw).map_err(|_| invalid("is not a URL"))?;
    if url.scheme() != "https" {
        return Err(invalid("must be https"));
    }
    let host = match url.host() {
        Some(Host::Ipv4(address)) => IpAddr::from(address),
        Some(Host::Ipv6(address)) => IpAddr::from(address),
        Some(Host::Domain(_)) | None => return Err(invalid("must name an address")),
    };
    if host.to_canonical() != peer.to_canonical() {
        return Err(invalid("must be the address that the agent reports from"));
    }
    Ok(())
}

/// Returns the MAC addresses of the interfaces in an inventory, up to 128.
fn addresses_in(body: &Map<String, Value>) -> Vec<MacAddress> {
    let interfaces = body.get("inventory").and_then(|inventory| inventory.get("interfaces"));
    let interfaces = interfaces.and_then(Value::as_array).into_iter().flatten();
    let addresses = interfaces.filter_map(|interface| interface.get("mac_address")?.as_str());
    addresses.filter_map(|address| address.parse().ok()).take(128).collect()
}

/// Checks that the body is an inventory, and splits it into the two parts that are stored.
fn split(mut body: Map<String, Value>) -> Result<(Value, Value), BootError> {
    let inventory = body.get("inventory").cloned().unwrap_or(Value::Null);
    let whole = Value::Object(body.clone());
    serde_json::from_value::<InspectionData>(whole)
        .map_err(|error| BootError::Invalid { field: "inventory", problem: error.to_string() })?;
    body.remove("inventory");
    Ok((inventory, Value::Object(body)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(callback: &str, want: bool) {
        assert_eq!(check_callback(callback, [10, 0, 0, 7].into()).is_ok(), want, "{callback}");
    }

    #[test]
    fn an_agent_is_called_back_only_at_its_own_address() {
        check("https://10.0.0.7:9999", true);
        check("https://10.0.0.8:9999", false);
        check("http://10.0.0.7:9999", false);
        check("https://metadata.internal:9999", false);
        check("https://[::ffff:10.0.0.7]:9999", true);
        check("file:///etc/passwd", false);
    }
}
