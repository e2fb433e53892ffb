//! Boots of the ramdisk: the boot script or the virtual CD for a machine, with the token of its agent.
//!
//! A MAC or IP address is never an identity. A boot script is handed out only for the capability in the DHCP answer to that machine. Each
//! script carries a new token, and heartbeats and inventories are accepted only with that token. Nodes with the boot interface
//! `fake` are the exception: somebody else boots their ramdisk, so a lookup by MAC addresses returns the token, once in each boot.

use agent_protocol::parameter;
use baremetal_core::{
    AgentKernel, Boot, KernelWord, Node, NodeIdent, NodeUuid, OwnImage, Problem, RamdiskNetwork,
    Reason, RequestRefused, StaticRoute, Work, WorkUuid, check_agent_ramdisk, own_image,
};
use baremetal_store::StoreError;
use hardware::{CpuArchitecture, MacAddress};
use pxe::ipxe;
use tracing::info;
use url::Url;

use crate::allowed::{check_agent_images, check_image};
use crate::conductor::Conductor;
use crate::context::TurnContext;
use crate::leases::KernelParameter;
use crate::observations::ObservedPart;
use crate::problem::ActionError;
use crate::secrets::{Purpose, nonce};
use crate::settings::Settings;

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
    #[error("{field}: {problem}")]
    Invalid { field: &'static str, problem: String },
    /// Glance does not send the image. The text is for the log.
    #[error("Glance does not send the image")]
    Glance(String),
    /// An OCI registry does not send the image. The text is for the log.
    #[error("the registry does not send the image")]
    Registry(String),
    /// A field of the node is wrong.
    #[error(transparent)]
    Node(#[from] RequestRefused),
    #[error("the database does not answer")]
    Store(#[from] StoreError),
}

/// The virtual CD for one boot of a machine.
#[derive(Clone, Debug)]
pub struct Medium {
    pub architecture: CpuArchitecture,
    /// The kernel parameters that are written into the CD.
    pub parameters: Vec<(String, Option<String>)>,
}

impl TurnContext {
    /// Returns the URL of the boot script for a machine that boots by iPXE.
    pub(crate) fn script_url(
        &self,
        node: &Node,
        work: &Work,
        mac: MacAddress,
        firmware: CpuArchitecture,
    ) -> Option<Url> {
        let (node, work, mac) = (node.id.to_string(), work.id.to_string(), mac.to_string());
        let capability = self.key.derive(Purpose::BootScript, &[&node, &work, &mac]);
        let script = script_name(firmware);
        self.provisioning(&format!("boot/{node}/{work}/{mac}/{capability}/{script}"))
    }

    /// Returns the URL of the boot script for a machine that boots the image of its user by iPXE.
    pub(crate) fn own_image_url(&self, node: &Node, mac: MacAddress) -> Option<Url> {
        let (node, mac) = (node.id.to_string(), mac.to_string());
        let capability = self.key.derive(Purpose::OwnImageScript, &[&node, &mac]);
        self.provisioning(&format!("own-image/{node}/{mac}/{capability}/boot.ipxe"))
    }

    /// Returns the URL of the boot script for an unknown machine that may be discovered.
    pub(crate) fn discovery_url(&self, mac: MacAddress, firmware: CpuArchitecture) -> Option<Url> {
        let mac = mac.to_string();
        let capability = self.key.derive(Purpose::Discovery, &[&mac]);
        let script = script_name(firmware);
        self.provisioning(&format!("discover/{mac}/{capability}/{script}"))
    }

    /// Returns a URL on the provisioning listener.
    pub(crate) fn provisioning(&self, path: &str) -> Option<Url> {
        self.settings.provisioning_url.as_ref().and_then(|base| base.join(path).ok())
    }

    /// Returns the URL of the folder from which firmware loads iPXE.
    pub(crate) fn loaders_url(&self) -> Option<Url> {
        let Settings { provisioning_url, https_url, .. } = &self.settings;
        https_url.as_ref().or(provisioning_url.as_ref())?.join("ipxe/").ok()
    }

    /// Returns the URL of the virtual CD for the current work. The first call creates the boot that the CD belongs to.
    pub(crate) async fn medium(&self, node: &Node) -> Result<Url, ActionError> {
        let architecture = medium_architecture(node);
        if !self.settings.media.contains(&architecture) {
            return Err(no_medium(architecture).into());
        }
        let boot = match self.boot_of_work(node).await? {
            Some(boot) => boot,
            None => {
                let Some(work) = &node.work else { return Err(no_address().into()) };
                let boot = new_boot(node.id, work.id);
                // Without a lease, this boot could replace the one that another conductor has made.
                self.membership.fence().permit(self.store.save_boot(&boot)).await??;
                boot
            }
        };
        let external = node.external_url();
        let (node, work) = (boot.node.to_string(), boot.work.to_string());
        let capability = self.key.derive(Purpose::BootMedium, &[&node, &work, &boot.nonce]);
        let path = format!("media/{node}/{work}/{capability}/boot.iso");
        let url = match external {
            Some(base) => Url::parse(&format!("{}/", base.trim_end_matches('/'))).ok(),
            None => self.settings.provisioning_url.clone(),
        };
        Ok(url.and_then(|base| base.join(&path).ok()).ok_or_else(no_address)?)
    }

    /// Records that somebody else boots the ramdisk for the current work. The agent gets its token when it looks up its node.
    pub(crate) async fn await_foreign_boot(&self, node: &Node) -> Result<(), ActionError> {
        let Some(work) = &node.work else { return Ok(()) };
        if self.boot_of_work(node).await?.is_none() {
            let boot = new_boot(node.id, work.id);
            self.membership.fence().permit(self.store.save_boot(&boot)).await??;
        }
        Ok(())
    }

    /// Returns the kernel parameters that a node or the configuration adds to every boot.
    fn added_parameters(&self, node: Option<&Node>) -> Vec<(String, Option<String>)> {
        let configured = &self.settings.kernel_parameters;
        let Some(words) = node.and_then(Node::kernel_words) else { return configured.clone() };
        let parameters = words.into_iter().flat_map(|word| match word {
            KernelWord::Configured => configured.clone(),
            KernelWord::Parameter { key, value } => vec![(key, value)],
        });
        parameters.collect()
    }

    /// Returns the kernel parameters that every boot of the ramdisk needs. An agent without the URL of a conductor ends immediately.
    fn common_parameters(&self, node: Option<&Node>) -> Vec<(String, Option<String>)> {
        let mut parameters = self.added_parameters(node);
        let base = self.settings.provisioning_url.as_ref();
        let base = base.map(|base| base.as_str().trim_end_matches('/').to_owned());
        parameters.extend(base.map(|base| set(parameter::API_URL, base)));
        parameters
    }

    /// Returns the node's own kernel and ramdisk with an agent, if the node has them.
    fn own_agent_kernel(&self, node: &Node) -> Result<Option<(Url, Url)>, BootError> {
        check_agent_ramdisk(node)?;
        let Some(AgentKernel { kernel, ramdisk }) = node.agent_kernel() else { return Ok(None) };
        check_agent_images(&self.settings.image_hosts, node)?;
        let url = |url: &str| Url::parse(url).map_err(|why| invalid("driver_info", &why));
        Ok(Some((url(&kernel)?, url(&ramdisk)?)))
    }

    /// Returns the kernel parameters of this boot.
    async fn parameters(
        &self,
        node: &Node,
        boot: &Boot,
        port: Option<(MacAddress, Vec<KernelParameter>)>,
    ) -> Vec<(String, Option<String>)> {
        let mut parameters = self.common_parameters(Some(node));
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
        if let Some(network) = node.ramdisk_network() {
            parameters.extend(network_parameters(&network));
        } else if let Some((mac, address)) = port {
            parameters.push(boot_interface(mac));
            parameters.extend(address);
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

    /// Returns the leased address as kernel parameters if the machine booted over IPv6: our ramdisk does not speak DHCPv6.
    async fn address_after_dhcp(&self, mac: MacAddress) -> Vec<KernelParameter> {
        match &self.settings.leases {
            Some(leases) if leases.is_v6() => self.static_address(mac).await,
            Some(_) | None => Vec::new(),
        }
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
        firmware: CpuArchitecture,
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
        let address = context.address_after_dhcp(mac).await;
        let parameters = context.parameters(&node, &boot, Some((mac, address))).await;
        // As in Ironic, `properties.cpu_arch` tells the architecture. A BMC may report a wrong one, so firmware for ARM counts more: it
        // starts no other kernel.
        let architecture = match firmware {
            CpuArchitecture::Aarch64 => firmware,
            CpuArchitecture::X86_64 => node.cpu_architecture().unwrap_or(firmware),
        };
        self.ramdisk_script(context.own_agent_kernel(&node)?, architecture, &parameters)
    }

    /// Returns the iPXE script of a machine that boots the image of its user.
    pub async fn own_image_script(
        &self,
        id: NodeUuid,
        mac: MacAddress,
        capability: &str,
    ) -> Result<String, BootError> {
        let context = &self.context;
        let parts = [&*id.to_string(), &*mac.to_string()];
        if !context.key.verify(Purpose::OwnImageScript, &parts, capability) {
            return Err(BootError::Forbidden);
        }
        let what = "a node that boots an image of its own";
        let node = context.store.find_node(&NodeIdent::Id(id)).await?;
        let node = node.filter(Node::boots_own_image).ok_or(BootError::NotFound { what })?;
        let node = context.with_instance(&node)?;
        check_image(&context.settings.image_hosts, &node.instance_info)?;
        let image = own_image(&node)?;
        context.sightings.note(id, ObservedPart::Http, "fetched the boot script of its own image");
        info!(node.id = %id, "node {id} boots its own image");
        let url = |field, url: &str| {
            Url::parse(url).map_err(|why| BootError::Invalid { field, problem: why.to_string() })
        };
        match image {
            OwnImage::Iso(iso) => {
                let script = ipxe::Script::iso(&url("boot_iso", &iso)?);
                Ok(script.map_err(|why| invalid("boot_iso", &why))?.to_string())
            }
            OwnImage::Kernel { kernel, ramdisk, arguments } => {
                let (kernel, initrd) = (url("kernel", &kernel)?, url("ramdisk", &ramdisk)?);
                let words =
                    arguments.split_ascii_whitespace().map(|word| match word.split_once('=') {
                        Some((key, value)) => set(key, value.to_owned()),
                        None => (word.to_owned(), None),
                    });
                let mut parameters = context.added_parameters(Some(&node));
                parameters.extend(words);
                kernel_script(kernel, initrd, &parameters)
            }
        }
    }

    /// Returns the iPXE script of a machine that nobody has enrolled. The booted agent only sends its inventory.
    pub async fn discovery_script(
        &self,
        mac: MacAddress,
        capability: &str,
        firmware: CpuArchitecture,
    ) -> Result<String, BootError> {
        let context = &self.context;
        self.check_discovery(mac, capability).await?;
        let mut parameters = context.common_parameters(None);
        let back = context.provisioning(&format!("discover/{mac}/{capability}/inventory"));
        parameters.extend(back.map(|url| set(parameter::INSPECTION_CALLBACK_URL, url.to_string())));
        parameters.push(boot_interface(mac));
        parameters.extend(context.address_after_dhcp(mac).await);
        // A person sees where the machine is by the switch that it is connected to.
        parameters.push(set(parameter::COLLECT_LLDP, "1".to_owned()));
        self.ramdisk_script(None, firmware, &parameters)
    }

    /// Checks that this machine may be discovered: discovery has to be enabled, and an enrolled machine is refused even if it has an older
    /// capability.
    pub(crate) async fn check_discovery(
        &self,
        mac: MacAddress,
        capability: &str,
    ) -> Result<(), BootError> {
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

    /// Returns the script that boots a ramdisk with an agent: the node's own, or the configured one of this architecture. As in Ironic, an
    /// architecture without files of its own has those of x86-64.
    fn ramdisk_script(
        &self,
        own: Option<(Url, Url)>,
        architecture: CpuArchitecture,
        parameters: &[(String, Option<String>)],
    ) -> Result<String, BootError> {
        let context = &self.context;
        let has_files = context.settings.architectures.contains(&architecture);
        let folder = match architecture {
            CpuArchitecture::Aarch64 if has_files => "ramdisk/aarch64",
            CpuArchitecture::Aarch64 | CpuArchitecture::X86_64 => "ramdisk",
        };
        let file = |name| context.provisioning(&format!("{folder}/{name}"));
        let configured = || file("kernel").zip(file("ramdisk"));
        let none = BootError::NotFound { what: "a provisioning address" };
        let (kernel, initrd) = own.or_else(configured).ok_or(none)?;
        kernel_script(kernel, initrd, parameters)
    }

    /// Returns the virtual CD that was requested with this capability.
    pub async fn medium(
        &self,
        id: NodeUuid,
        work: WorkUuid,
        capability: &str,
    ) -> Result<Medium, BootError> {
        let context = &self.context;
        let boot = context.store.find_boot(id).await?.filter(|boot| boot.work == work);
        let boot = boot.ok_or(BootError::NotFound { what: "a boot in progress" })?;
        let parts = [&*id.to_string(), &*work.to_string(), &*boot.nonce];
        if !context.key.verify(Purpose::BootMedium, &parts, capability) {
            return Err(BootError::Forbidden);
        }
        let node = context.node_awaiting_boot(id, work).await?;
        let ports = match node.ramdisk_network() {
            Some(_) => Vec::new(),
            None => context.store.ports_of(id).await?,
        };
        let port = match ports.into_iter().find(|port| port.pxe_enabled) {
            Some(port) => Some((port.address, context.static_address(port.address).await)),
            None => None,
        };
        context.sightings.note(id, ObservedPart::Http, "its BMC fetched the boot medium");
        let parameters = context.parameters(&node, &boot, port).await;
        Ok(Medium { architecture: medium_architecture(&node), parameters })
    }
}

/// Returns the architecture of the virtual CD for this node. A BMC does not tell which firmware the machine has, so a node without
/// `properties.cpu_arch` gets the CD of x86-64.
fn medium_architecture(node: &Node) -> CpuArchitecture {
    node.cpu_architecture().unwrap_or(CpuArchitecture::X86_64)
}

/// Returns the file name of the boot script for a machine with this firmware.
const fn script_name(firmware: CpuArchitecture) -> &'static str {
    match firmware {
        CpuArchitecture::X86_64 => "boot.ipxe",
        CpuArchitecture::Aarch64 => "aarch64.ipxe",
    }
}

/// Returns the firmware whose boot script has this file name.
pub fn firmware_of_script(name: &str) -> Option<CpuArchitecture> {
    let all = [CpuArchitecture::X86_64, CpuArchitecture::Aarch64];
    all.into_iter().find(|firmware| script_name(*firmware) == name)
}

/// Returns the script that boots a kernel with these parameters.
fn kernel_script(
    kernel: Url,
    initrd: Url,
    parameters: &[(String, Option<String>)],
) -> Result<String, BootError> {
    let arguments = parameters.iter().map(|(key, value)| match value {
        Some(value) => ipxe::Argument::new(key, value),
        None => ipxe::Argument::flag(key),
    });
    let arguments = arguments.collect::<Result<Vec<_>, _>>();
    let arguments = arguments.map_err(|error| invalid("kernel_parameters", &error))?;
    let script = ipxe::Script::boot(&ipxe::Kernel { kernel, initrd, arguments });
    Ok(script.map_err(|error| invalid("kernel_parameters", &error))?.to_string())
}

fn invalid(field: &'static str, problem: &dyn std::fmt::Display) -> BootError {
    BootError::Invalid { field, problem: problem.to_string() }
}

/// Returns a kernel parameter with a value.
fn set(key: &str, value: String) -> (String, Option<String>) {
    (key.to_owned(), Some(value))
}

/// Returns the booted interface in the format of pxelinux: the hardware type 01 before the address.
fn boot_interface(mac: MacAddress) -> (String, Option<String>) {
    set(parameter::BOOT_INTERFACE, format!("01-{}", mac.to_string().replace(':', "-")))
}

/// Returns the kernel parameters by which the ramdisk configures this network.
fn network_parameters(network: &RamdiskNetwork) -> Vec<(String, Option<String>)> {
    let mut parameters = vec![boot_interface(network.mac)];
    parameters.extend(network.mtu.map(|mtu| set(parameter::MTU, mtu.to_string())));
    if let Some(at) = &network.address {
        let gateway = at.gateway.map_or(String::new(), |gateway| format!(",{gateway}"));
        let address = format!("{}/{}{gateway}", at.address, at.prefix);
        parameters.push(set(parameter::STATIC_ADDRESS, address));
        let route =
            |route: &StaticRoute| format!("{}/{}-{}", route.network, route.prefix, route.gateway);
        let routes: Vec<String> = at.routes.iter().map(route).collect();
        if !routes.is_empty() {
            parameters.push(set(parameter::STATIC_ROUTES, routes.join(",")));
        }
    }
    let dns: Vec<String> = network.dns.iter().map(ToString::to_string).collect();
    if !dns.is_empty() {
        parameters.push(set(parameter::DNS, dns.join(",")));
    }
    parameters
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

fn no_medium(architecture: CpuArchitecture) -> Problem {
    let key = match architecture {
        CpuArchitecture::X86_64 => "iso of [provisioning]",
        CpuArchitecture::Aarch64 => "iso of [provisioning.aarch64]",
    };
    let cause = format!(
        "the service has no virtual CD for {architecture}; set {key} in its configuration, the boot interface of the node to ipxe or http-ipxe, or driver_info.deploy_iso"
    );
    Problem { reason: Reason::BadRequest, cause, transient: false }
}

#[cfg(test)]
mod tests;
