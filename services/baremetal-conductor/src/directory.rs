//! Answers the DHCP requests of machines.

use std::net::IpAddr;

use async_trait::async_trait;
use baremetal_core::{BootInterface, DiscoveryId, Node, NodeIdent, Port, Work};
use baremetal_store::StoreError;
use hardware::{CpuArchitecture, MacAddress};
use pxe::{
    Architecture, BootFile, Client, ClientKind, Decision, Directory, Lease, Loader, Observation,
};
use tracing::{debug, error, info, warn};
use url::Url;

use crate::conductor::Conductor;
use crate::observations::ObservedPart;
use crate::problem::chain;
use crate::settings::UnknownMachines;

/// Returns the decision about a client; a client that cannot be looked up gets no answer, and asks again.
pub(crate) fn or_ignore(decided: Result<Decision, StoreError>, client: &Client) -> Decision {
    decided.unwrap_or_else(|error| {
        error!(error = chain(&error), "cannot answer the DHCP client {}", client.mac);
        Decision::Ignore { reason: "the database does not answer".to_owned() }
    })
}

#[async_trait]
impl Directory for Conductor {
    async fn decide(&self, client: &Client) -> Decision {
        or_ignore(self.answer(client).await, client)
    }

    async fn declined(&self, client: MacAddress, address: IpAddr) {
        match self.context.skip_address(client, address).await {
            Ok(true) => {
                warn!(mac = %client, %address, "{address} is in use by another machine and will not be leased for a while")
            }
            Ok(false) => debug!(mac = %client, %address, "{address} is not leased to {client}"),
            Err(error) => error!(error = chain(&error), "cannot note that {address} is in use"),
        }
    }

    fn saw(&self, client: MacAddress, sighting: Observation) {
        let (side, what) = match sighting {
            Observation::DhcpDiscover => (ObservedPart::Dhcp, "sent a DHCP discover".to_owned()),
            Observation::DhcpOffered { address, boot_file } => {
                let address =
                    address.map_or("no address".to_owned(), |address| address.to_string());
                let boot_file = boot_file.unwrap_or_else(|| "nothing to boot".to_owned());
                (
                    ObservedPart::Dhcp,
                    format!("was offered {address} and {}", without_capability(&boot_file)),
                )
            }
            Observation::DhcpRefused { reason } => {
                (ObservedPart::Dhcp, format!("was refused: {reason}"))
            }
            Observation::DhcpAcked { address } => {
                (ObservedPart::Dhcp, format!("got the address {address}"))
            }
            Observation::DhcpDeclined { .. } => {
                (ObservedPart::Dhcp, "found its address in use by another machine".to_owned())
            }
            Observation::TftpRead { file } => (ObservedPart::Tftp, format!("began to load {file}")),
            Observation::TftpDone { file, bytes } => {
                (ObservedPart::Tftp, format!("loaded {file}, {bytes} bytes"))
            }
            Observation::TftpFailed { file, reason } => {
                (ObservedPart::Tftp, format!("did not get {file}: {reason}"))
            }
        };
        self.context.sightings.note_address(client, side, what);
    }
}

impl Conductor {
    async fn answer(&self, client: &Client) -> Result<Decision, StoreError> {
        let context = &self.context;
        let Some(port) = context.store.find_port_by_address(client.mac).await? else {
            return self.answer_stranger(client).await;
        };
        let Some(node) = context.store.find_node(&NodeIdent::Id(port.node)).await? else {
            return Ok(Decision::Ignore { reason: "the node was deleted".to_owned() });
        };
        context.sightings.note_address_owner(node.id, client.mac);
        let hostname = node.name.as_ref().map(ToString::to_string);
        let lease = self.lease(client.mac, hostname).await?;
        let boot = match work_to_boot(&node, &port) {
            Some(work) => self.boot_file(client, |firmware| {
                context.script_url(&node, work, client.mac, firmware)
            }),
            None if boots_by_network(&node, &port) && node.boots_own_image() => {
                self.boot_file(client, |_| context.own_image_url(&node, client.mac))
            }
            None => None,
        };
        Ok(Decision::Answer { lease, boot })
    }

    /// Answers a machine that nobody has enrolled. The machine is recorded and never installed.
    async fn answer_stranger(&self, client: &Client) -> Result<Decision, StoreError> {
        let context = &self.context;
        if client.kind == ClientKind::Other {
            return self.answer_ramdisk_of_stranger(client).await;
        }
        let id = DiscoveryId::Machine(client.mac);
        context.store.touch_discovery(id, context.now()).await?;
        match context.settings.unknown_machines {
            UnknownMachines::Refuse => {
                info!(mac = %client.mac, "an unknown machine with port {} requested a boot and is refused", client.mac);
                Ok(Decision::Ignore {
                    reason: "no port has this address, and unknown machines are refused".to_owned(),
                })
            }
            UnknownMachines::Discover => {
                let lease = self.lease(client.mac, None).await?;
                let script = |firmware| context.discovery_url(client.mac, firmware);
                let boot = self.boot_file(client, script);
                Ok(Decision::Answer { lease, boot })
            }
        }
    }

    /// Answers the ramdisk of an unknown machine, which sends a second DHCP request as an operating system. A machine without a lease has
    /// not booted from here and is not to be discovered.
    async fn answer_ramdisk_of_stranger(&self, client: &Client) -> Result<Decision, StoreError> {
        let context = &self.context;
        let discovers = context.settings.unknown_machines == UnknownMachines::Discover;
        if !discovers || !context.store.has_lease(client.mac).await? {
            return Ok(Decision::Ignore { reason: "no port has this address".to_owned() });
        }
        let lease = self.lease(client.mac, None).await?;
        Ok(Decision::Answer { lease, boot: None })
    }

    /// Returns the boot file for a client: the boot script once the client is iPXE, and iPXE before. A machine whose architecture has no
    /// files gets none.
    fn boot_file(
        &self,
        client: &Client,
        script: impl FnOnce(CpuArchitecture) -> Option<Url>,
    ) -> Option<BootFile> {
        let firmware = client.architecture.and_then(Architecture::cpu);
        let firmware = firmware.unwrap_or(CpuArchitecture::X86_64);
        if !self.context.settings.architectures.contains(&firmware) {
            warn!(mac = %client.mac, "no boot files for {firmware} are configured");
            return None;
        }
        if client.kind == ClientKind::Ipxe {
            return script(firmware).map(|url| BootFile::Http { url });
        }
        Loader::boot_file(client, &self.context.loaders_url()?)
    }

    async fn lease(
        &self,
        mac: MacAddress,
        hostname: Option<String>,
    ) -> Result<Option<Lease>, StoreError> {
        Ok(self.context.lease(mac).await?.map(|address| Lease { address, hostname }))
    }
}

/// Returns the work for which the node's machine has to boot the ramdisk from this port, if there is any.
fn work_to_boot<'a>(node: &'a Node, port: &Port) -> Option<&'a Work> {
    node.work.as_ref().filter(|work| boots_by_network(node, port) && work.awaits_boot())
}

/// Returns whether the node's machine boots from the network by this port.
fn boots_by_network(node: &Node, port: &Port) -> bool {
    match node.boot_interface() {
        BootInterface::Ipxe | BootInterface::HttpIpxe => port.pxe_enabled,
        BootInterface::VirtualMedia | BootInterface::IdracVirtualMedia | BootInterface::Fake => {
            false
        }
    }
}

/// Hides the URL of a boot script, because its capability must not appear in explanations.
fn without_capability(boot_file: &str) -> &str {
    if boot_file.ends_with(".ipxe") { "its boot script" } else { boot_file }
}
