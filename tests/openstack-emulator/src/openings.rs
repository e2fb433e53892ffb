//! The addresses on this host behind which guests, load balancers and floating IPs answer.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, SocketAddr};

use tokio::task::AbortHandle;

/// The ports of servers on which guests listen.
pub(crate) type Offers = HashMap<(String, u16), SocketAddr>;

/// The addresses that are open on this host, and the tasks that serve them.
#[derive(Default)]
pub(crate) struct Openings {
    pub(crate) open: BTreeMap<(IpAddr, u16), (SocketAddr, Vec<AbortHandle>)>,
}

impl Openings {
    pub(crate) fn find(&self, address: IpAddr, port: u16) -> Option<SocketAddr> {
        self.open.get(&(address, port)).map(|(at, _)| *at)
    }

    pub(crate) fn all(&self) -> Vec<(SocketAddr, SocketAddr)> {
        self.open.iter().map(|((ip, port), (at, _))| (SocketAddr::new(*ip, *port), *at)).collect()
    }
}

impl Drop for Openings {
    fn drop(&mut self) {
        for handle in self.open.values().flat_map(|(_, handles)| handles) {
            handle.abort();
        }
    }
}
