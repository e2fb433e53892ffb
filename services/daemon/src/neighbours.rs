//! How many connections each address has.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};

/// Who is connected: no more entries than there are connections. Clones are the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Neighbours(Arc<Mutex<HashMap<IpAddr, usize>>>);

/// One of an address's connections, as long as it is kept.
#[derive(Debug)]
pub(crate) struct Neighbour {
    address: IpAddr,
    all: Neighbours,
}

impl Neighbours {
    /// Lets one more in from there, unless that has `at_most` already.
    pub(crate) fn enter(&self, from: IpAddr, at_most: usize) -> Option<Neighbour> {
        let address = household(from);
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(address).or_default();
        if *count >= at_most {
            return None;
        }
        *count += 1;
        drop(counts);
        Some(Neighbour { address, all: self.clone() })
    }
}

impl Drop for Neighbour {
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

/// Of an IPv6 address the network of 64 bits, all of which one household has.
fn household(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_so_many_and_others_are_not_in_its_way() {
        let all = Neighbours::default();
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
    fn who_is_gone_is_forgotten() {
        let all = Neighbours::default();
        for number in 0..10_000_u32 {
            drop(all.enter(IpAddr::from(number.to_be_bytes()), 1));
        }
        assert!(all.0.lock().unwrap().is_empty());
    }
}
