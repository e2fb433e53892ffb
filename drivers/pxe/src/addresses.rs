//! The machine at each IP address, learned from DHCP: TFTP requests carry only the IP address.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

use hardware::MacAddress;

/// More machines than one server boots. When the table is full, an arbitrary entry is dropped.
const MOST: usize = 65_536;

/// The MAC address of the machine at each IP address.
#[derive(Debug, Default)]
pub(crate) struct Addresses(Mutex<HashMap<IpAddr, MacAddress>>);

impl Addresses {
    /// Records that `mac` has, or is about to have, `address`.
    pub(crate) fn note(&self, address: IpAddr, mac: MacAddress) {
        if address.is_unspecified() {
            return;
        }
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST
            && !known.contains_key(&address)
            && let Some(any) = known.keys().next().copied()
        {
            known.remove(&any);
        }
        known.insert(address, mac);
    }

    /// Returns the machine at `address`.
    pub(crate) fn find(&self, address: IpAddr) -> Option<MacAddress> {
        let address = address.to_canonical();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&address).copied()
    }
}
