//! The network, the software and the speed that all machines of a rack share.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use bmc_emulator::Identity;
use reqwest::Client;

use crate::event::Event;
use crate::machine::Machine;
use crate::pace::Speed;
use crate::relay::{Lease, Relay, Speaker};

/// The servers that machines boot from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// The DHCP server, which receives requests as from a relay.
    pub dhcp: SocketAddr,
    /// The TFTP server; `None` uses the server in the DHCP answer, on port 69.
    pub tftp: Option<SocketAddr>,
}

/// The software on machines that boot their disks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Systems {
    #[default]
    Inert,
    /// nova-compute, on machines whose config drive has settings for it.
    ComputeHosts,
}

/// The state that all machines of a rack share.
pub(crate) struct RackContext {
    pub(crate) relay: Arc<Relay>,
    pub(crate) networks: Vec<Network>,
    pub(crate) http: Client,
    pub(crate) pace: Speed,
    pub(crate) systems: Systems,
    /// The certificate of all agents of a rack that spares the processors. Otherwise each agent makes its own, as real agents do.
    pub(crate) identity: OnceLock<Identity>,
}

impl RackContext {
    /// Whether the rack does no work that nobody needs.
    pub(crate) fn spares_processors(&self) -> bool {
        self.identity.get().is_some()
    }

    /// Gets an address by DHCP, and reports the result.
    pub(crate) async fn lease(&self, machine: &Machine, speaker: Speaker) -> Result<Lease, String> {
        let lease = self.relay.lease(machine, speaker, self.pace.dhcp_timeout()).await;
        let lease = lease.ok_or("DHCP does not answer")?;
        let shown = lease.boot_file.as_deref().map(|file| {
            // The URL of a script holds a capability.
            if file.ends_with(".ipxe") { "a boot script".to_owned() } else { file.to_owned() }
        });
        machine.tell(Event::Leased(lease.address, shown));
        Ok(lease)
    }

    /// Returns the TFTP server that belongs to a lease.
    pub(crate) fn tftp(&self, lease: &Lease) -> SocketAddr {
        let of_server = self.networks.iter().find(|network| network.dhcp == lease.from);
        let tftp = of_server.and_then(|network| network.tftp);
        tftp.unwrap_or(SocketAddr::from((lease.next_server, 69)))
    }
}
