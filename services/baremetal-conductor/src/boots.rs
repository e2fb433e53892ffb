//! Boots of the ramdisk: the boot script for a machine, the token of its agent, and the agent's reports.
//!
//! A MAC or IP address is never an identity. A boot script is handed out only for the capability in the DHCP answer to that machine. Each
//! script carries a new token, and heartbeats and inventories are accepted only with that token. The exception are nodes with the boot
//! interface `fake`: somebody else boots their ramdisk, so a lookup by MAC addresses tells the token, once in each boot.

use std::net::IpAddr;

use agent_protocol::{AgentConfig, InspectionData, LookupAnswer, LookupNode, parameter};
use baremetal_core::{
    Boot, InspectionReport, Node, NodeIdent, NodeUuid, Page, Port, PortFilter, PortSort, Problem,
    Reason, State, Work, WorkUuid,
};
use baremetal_store::StoreError;
use hardware::MacAddress;
use pxe::ipxe;
use serde_json::{Map, Value};
use tracing::{info, warn};
use url::{Host, Url};

use crate::agents;
use crate::conductor::Conductor;
use crate::context::TurnContext;
use crate::observations::ObservedPart;
use crate::problem::ActionError;
use crate::secrets::{Purpose, nonce};

/// A report of an agent that it is running.
pub use agent_protocol::Heartbeat;

/// Why a machine's request is refused.
#[derive(Debug, thiserror::Error)]
pub enum BootError {
    /// The object does not exist, or its time has passed.
    #[error("{what} not found")]
    NotFound {
        /// The kind of object in the request.
        what: &'static str,
    },
    /// The capability or the token is wrong.
    #[error("the token is not valid for this boot")]
    Forbidden,
    /// A field of the request is wrong.
    #[error("{field}: {problem}")]
    Invalid { field: &'static str, problem: String },
    #[error("the database does not answer")]
    Store(#[from] StoreError),
}

impl TurnContext {
    /// Returns the URL of the boot script for a machine that boots by iPXE.
    pub(crate) fn script_url(&self, node: &Node, work: &Work, mac: MacAddress) -> Option<Url> {
        let (node, work, mac) = (node.id.to_string(), work.id.to_string(), mac.to_string());
        let capability = self.key.derive(Purpose::BootScript, &[&node, &work, &mac]);
        self.provisioning(&format!("boot/{node}/{work}/{mac}/{capability}/boot.ipxe"))
    }

    /// Returns the URL of the boot script for an unknown machine that may be discovered.
    pub(crate) fn discovery_url(&self, mac: MacAddress) -> Option<Url> {
        let mac = mac.to_string();
        let capability = self.key.derive(Purpose::Discovery, &[&mac]);
        self.provisioning(&format!("discover/{mac}/{capability}/boot.ipxe"))
    }

    /// Returns a URL on the provisioning listener.
    pub(crate) fn provisioning(&self, path: &str) -> Option<Url> {
        self.settings.provisioning_url.as_ref().and_then(|base| base.join(path).ok())
    }

    /// Returns the URL of the virtual CD for the current work. The first call creates the boot that the CD belongs to.
    pub(crate) async fn medium(&self, node: &Node) -> Result<Url, ActionError> {
        let boot = match self.boot_of_work(node).await? {
            Some(boot) => boot,
            None => {
                let Some(work) = &node.work else { return Err(no_address().into()) };
                let boot = new_boot(node.id, work.id);
                self.store.save_boot(&boot).await?;
                boot
            }
        };
        let (node, work) = (boot.node.to_string(), boot.work.to_string());
        let capability = self.key.derive(Purpose::BootMedium, &[&node, &work, &boot.nonce]);
        let url = self.provisioning(&format!("media/{node}/{work}/{capability}/boot.iso"));
        Ok(url.ok_or_else(no_address)?)
    }

    /// Records that somebody else boots the ramdisk for the current work. The agent gets its token when it looks up its node.
    pub(crate) async fn await_foreign_boot(&self, node: &Node) -> Result<(), ActionError> {
        let Some(work) = &node.work else { return Ok(()) };
        if self.boot_of_work(node).await?.is_none() {
            self.store.save_boot(&new_boot(node.id, work.id)).await?;
        }
        Ok(())
    }

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

    /// Returns the kernel parameters that every boot needs. An agent without the URL of a conductor ends immediately.
    fn common_parameters(&self) -> Vec<(String, Option<String>)> {
        let mut parameters = self.settings.kernel_parameters.clone();
        let base = self.settings.provisioning_url.as_ref();
        let base = base.map(|base| base.as_str().trim_end_matches('/').to_owned());
        parameters.extend(base.map(|base| set(parameter::API_URL, base)));
        parameters
    }

    /// Returns the kernel parameters of this boot.
    async fn parameters(
        &self,
        node: &Node,
        boot: &Boot,
        port: Option<(MacAddress, Option<String>)>,
    ) -> Vec<(String, Option<String>)> {
        let mut parameters = self.common_parameters();
        parameters.push(set(parameter::AGENT_TOKEN, self.agent_token(boot)));
        if node.work.as_ref().is_some_and(Work::inspects) {
            let (id, work) = (boot.node.to_string(), boot.work.to_string());
            let capability = self.key.derive(Purpose::Inventory, &[&id, &work, &boot.nonce]);
            let url = self.provisioning(&format!(
                "v1/continue_inspection?node_uuid={id}&capability={capability}"
            ));
            parameters
                .extend(url.map(|url| set(parameter::INSPECTION_CALLBACK_URL, url.to_string())));
        }
        if let Some((mac, address)) = port {
            parameters.push(boot_interface(mac));
            parameters.extend(address.map(|address| set(parameter::STATIC_ADDRESS, address)));
        }
        parameters
    }

    /// Returns the node if this is its current work and the work still waits for the machine to boot.
    async fn node_awaiting_boot(&self, id: NodeUuid, work: WorkUuid) -> Result<Node, BootError> {
        let what = "a boot in progress";
        let node =
            self.store.find_node(&NodeIdent::Id(id)).await?.ok_or(BootError::NotFound { what })?;
        let awaited =
            node.work.as_ref().is_some_and(|at_hand| at_hand.id == work && at_hand.awaits_boot());
        if awaited { Ok(node) } else { Err(BootError::NotFound { what }) }
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

    /// Returns the address that a machine booted without DHCP configures itself.
    async fn static_address(&self, port: &Port) -> Option<String> {
        let leases = self.settings.leases.as_ref()?;
        let address = self.lease(port.address).await.ok().flatten()?;
        let router = leases.router.map_or(String::new(), |router| format!(",{router}"));
        Some(format!("{address}/{}{router}", leases.prefix))
    }
}

impl Conductor {
    /// Returns the iPXE script for the machine that presents this capability. Every script carries a new token.
    pub async fn boot_script(
        &self,
        id: NodeUuid,
        work: WorkUuid,
        mac: MacAddress,
        capability: &str,
    ) -> Result<String, BootError> {
        let context = &self.context;
        let parts = [&*id.to_string(), &*work.to_string(), &*mac.to_string()];
        if !context.key.verify(Purpose::BootScript, &parts, capability) {
            return Err(BootError::Forbidden);
        }
        let node = context.node_awaiting_boot(id, work).await?;
        let boot = Boot { script_at: Some(context.now()), ..new_boot(id, work) };
        context.store.save_boot(&boot).await?;
        context.sightings.note(id, ObservedPart::Http, "fetched its boot script");
        info!(node.id = %id, "node {id} fetched its boot script");
        let parameters = context.parameters(&node, &boot, Some((mac, None))).await;
        self.ramdisk_script(&parameters)
    }

    /// Returns the iPXE script of a machine that nobody has enrolled. The booted agent only sends its inventory.
    pub async fn discovery_script(
        &self,
        mac: MacAddress,
        capability: &str,
    ) -> Result<String, BootError> {
        let context = &self.context;
        self.check_discovery(mac, capability).await?;
        let mut parameters = context.common_parameters();
        let back = context.provisioning(&format!("discover/{mac}/{capability}/inventory"));
        parameters.extend(back.map(|url| set(parameter::INSPECTION_CALLBACK_URL, url.to_string())));
        parameters.push(boot_interface(mac));
        self.ramdisk_script(&parameters)
    }

    /// Checks that this machine may be discovered: discovery has to be enabled, and an enrolled machine is refused even if it has an older
    /// capability.
    async fn check_discovery(&self, mac: MacAddress, capability: &str) -> Result<(), BootError> {
        let context = &self.context;
        let what = "a discovery";
        if context.settings.unknown_machines != crate::UnknownMachines::Discover {
            return Err(BootError::NotFound { what });
        }
        if !context.key.verify(Purpose::Discovery, &[&mac.to_string()], capability) {
            return Err(BootError::Forbidden);
        }
        match context.store.find_port_by_address(mac).await? {
            Some(_) => Err(BootError::NotFound { what }),
            None => Ok(()),
        }
    }

    fn ramdisk_script(&self, parameters: &[(String, Option<String>)]) -> Result<String, BootError> {
        let context = &self.context;
        let (Some(kernel), Some(ramdisk)) =
            (context.provisioning("ramdisk/kernel"), context.provisioning("ramdisk/ramdisk"))
        else {
            return Err(BootError::NotFound { what: "a provisioning address" });
        };
        let invalid = |problem: String| BootError::Invalid { field: "kernel_parameters", problem };
        let arguments = parameters.iter().map(|(key, value)| match value {
            Some(value) => ipxe::Argument::new(key, value),
            None => ipxe::Argument::flag(key),
        });
        let arguments =
            arguments.collect::<Result<Vec<_>, _>>().map_err(|error| invalid(error.to_string()))?;
        let script = ipxe::Script::boot(&ipxe::Kernel { kernel, initrd: ramdisk, arguments });
        Ok(script.map_err(|error| invalid(error.to_string()))?.to_string())
    }

    /// Returns the kernel parameters for the virtual CD that was requested with this capability.
    pub async fn medium_parameters(
        &self,
        id: NodeUuid,
        work: WorkUuid,
        capability: &str,
    ) -> Result<Vec<(String, Option<String>)>, BootError> {
        let context = &self.context;
        let boot = context.store.find_boot(id).await?.filter(|boot| boot.work == work);
        let boot = boot.ok_or(BootError::NotFound { what: "a boot in progress" })?;
        let parts = [&*id.to_string(), &*work.to_string(), &*boot.nonce];
        if !context.key.verify(Purpose::BootMedium, &parts, capability) {
            return Err(BootError::Forbidden);
        }
        let node = context.node_awaiting_boot(id, work).await?;
        let port = context.store.ports_of(id).await?.into_iter().find(|port| port.pxe_enabled);
        let port = match port {
            Some(port) => Some((port.address, context.static_address(&port).await)),
            None => None,
        };
        context.sightings.note(id, ObservedPart::Http, "its BMC fetched the boot medium");
        Ok(context.parameters(&node, &boot, port).await)
    }

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
        // about to be switched off.
        if !node.work.as_ref().is_some_and(Work::needs_agent) {
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
        let boot = context
            .store
            .find_boot(id)
            .await?
            .ok_or(BootError::NotFound { what: "a boot of this node" })?;
        let parts = [&*boot.node.to_string(), &*boot.work.to_string(), &*boot.nonce];
        let shown = beat.agent_token.as_deref().unwrap_or("");
        if !context.key.verify(Purpose::AgentToken, &parts, shown) {
            warn!(node.id = %id, "an agent at {peer} reported for node {id} with a wrong token");
            return Err(BootError::Forbidden);
        }
        // The agent of finished work keeps reporting until its machine is off.
        let node = context.store.find_node(&NodeIdent::Id(id)).await?;
        if node.and_then(|node| node.work).is_none_or(|work| work.id != boot.work) {
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
        let found = context.node_with(&addresses_in(&body)).await?.ok_or_else(none)?;
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
        let found = baremetal_core::Discovery { mac, first_seen_at: now, last_seen_at: now, data };
        context.store.save_discovery(&found).await?;
        info!(%mac, "an unknown machine with port {mac} sent its inventory");
        Ok(())
    }
}

/// Returns a kernel parameter with a value.
fn set(key: &str, value: String) -> (String, Option<String>) {
    (key.to_owned(), Some(value))
}

/// Returns the booted interface in the format of pxelinux: the hardware type 01 before the address.
fn boot_interface(mac: MacAddress) -> (String, Option<String>) {
    set(parameter::BOOT_INTERFACE, format!("01-{}", mac.to_string().replace(':', "-")))
}

fn new_boot(node: NodeUuid, work: WorkUuid) -> Boot {
    Boot {
        node,
        work,
        nonce: nonce(),
        script_at: None,
        inventory_at: None,
        callback_url: None,
        certificate: None,
        agent_version: None,
        seen_at: None,
    }
}

fn no_address() -> Problem {
    let cause =
        "no provisioning address is configured; set [provisioning] in the service's configuration"
            .to_owned();
    Problem { reason: Reason::BadRequest, cause, transient: false }
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
mod tests;
