//! Starts the services and stops them again.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::addresses::Addresses;
use crate::dhcp_service::DhcpService;
use crate::dhcp_v6_service::DhcpV6Service;
use crate::router_advertisements::Advertiser;
use crate::socket::StartError;
use crate::tftp_service::TftpService;
use crate::{Config, Directory};

/// Services that run until this value is dropped or stopped.
#[derive(Debug)]
pub struct Running {
    /// Address of the DHCP socket.
    pub dhcp: Option<SocketAddr>,
    /// Address of the DHCPv6 socket.
    pub dhcp_v6: Option<SocketAddr>,
    /// Address of the second ProxyDHCP socket, for clients that have an address; usually port 4011.
    pub proxy_dhcp: Option<SocketAddr>,
    /// Address of the TFTP socket.
    pub tftp: Option<SocketAddr>,
    tasks: JoinSet<()>,
    cancel: CancellationToken,
}

/// Opens every socket that `config` asks for, then serves until the result is dropped.
///
/// If one socket cannot be opened, no service starts.
pub async fn start(config: Config, directory: Arc<dyn Directory>) -> Result<Running, StartError> {
    let addresses = Arc::new(Addresses::default());
    let dhcp = match config.dhcp {
        Some(config) => Some(DhcpService::open(config, directory.clone(), addresses.clone())?),
        None => None,
    };
    let dhcp_v6 = match config.dhcp_v6 {
        Some(config) => Some(DhcpV6Service::open(config, directory.clone(), addresses.clone())?),
        None => None,
    };
    let tftp = match config.tftp {
        Some(config) => Some(TftpService::open(config, directory, addresses)?),
        None => None,
    };
    let advertiser = match config.router_advertisements {
        Some(config) => Some(Advertiser::open(&config)?),
        None => None,
    };

    let local = |bound: io::Result<SocketAddr>| bound.ok();
    let mut running = Running {
        dhcp: dhcp.as_ref().and_then(|service| local(service.address())),
        dhcp_v6: dhcp_v6.as_ref().and_then(|service| local(service.address())),
        proxy_dhcp: dhcp.as_ref().and_then(|service| local(service.binding_address()?)),
        tftp: tftp.as_ref().and_then(|service| local(service.address())),
        tasks: JoinSet::new(),
        cancel: CancellationToken::new(),
    };
    if let Some(service) = dhcp {
        running.tasks.spawn(service.run(running.cancel.clone()));
    }
    if let Some(service) = dhcp_v6 {
        running.tasks.spawn(service.run(running.cancel.clone()));
    }
    if let Some(service) = tftp {
        running.tasks.spawn(service.run(running.cancel.clone()));
    }
    if let Some(advertiser) = advertiser {
        running.tasks.spawn(advertiser.run(running.cancel.clone()));
    }
    Ok(running)
}

impl Running {
    /// Closes every socket and returns once they are closed; transfers in progress are cut off.
    pub async fn stop(mut self) {
        self.cancel.cancel();
        while self.tasks.join_next().await.is_some() {}
    }
}
