//! Counts the connections of each client address.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};

/// The number of connections of each address. An address without connections has no entry. Clones share the counts.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClientCounts(Arc<Mutex<HashMap<IpAddr, usize>>>);

/// One counted connection of an address; the count goes down on drop.
#[derive(Debug)]
pub(crate) struct ClientConnection {
    address: IpAddr,
    all: ClientCounts,
}

impl ClientCounts {
    /// Counts one more connection from `from`; `None` if that address already has `at_most` connections.
    pub(crate) fn enter(&self, from: IpAddr, at_most: usize) -> Option<ClientConnection> {
        let address = client_network(from);
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(address).or_default();
        if *count >= at_most {
            return None;
        }
        *count += 1;
        drop(counts);
        Some(ClientConnection { address, all: self.clone() })
    }
}

impl Drop for ClientConnection {
    fn drop(&mut self) {
        let mut counts = self.all.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.address);
            }
        }
    }
}

/// The key that an address is counted under. All addresses of an IPv6 network of 64 bits count together, because one client usually owns
/// the whole network.
fn client_network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_limited_for_each_address_separately() {
        let all = ClientCounts::default();
        let enter = |from: &str| all.enter(from.parse().unwrap(), 2);
        let (first, _second) = (enter("10.0.0.1").unwrap(), enter("::ffff:10.0.0.1").unwrap());
        assert!(enter("10.0.0.1").is_none());
        assert!(enter("10.0.0.2").is_some());
        drop(first);
        assert!(enter("10.0.0.1").is_some());
        let _household = [enter("2001:db8::1").unwrap(), enter("2001:db8::2").unwrap()];
        assert!(enter("2001:db8::3").is_none());
        assert!(enter("2001:db8:0:1::3").is_some());
    }

    #[test]
    fn an_address_without_connections_is_forgotten() {
        let all = ClientCounts::default();
        for number in 0..10_000_u32 {
            drop(all.enter(IpAddr::from(number.to_be_bytes()), 1));
        }
        assert!(all.0.lock().unwrap().is_empty());
    }
}
