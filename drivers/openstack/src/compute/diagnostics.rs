//! Usage counters of a server, from its hypervisor.

use serde::Deserialize;

use super::{MICROVERSION, SERVICE};
use crate::error::Result;
use crate::lenient;
use crate::session::Session;

/// The counters since the server was switched on. Values that a hypervisor does not know are missing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Diagnostics {
    /// Seconds since the server was switched on.
    pub uptime: Option<u64>,
    #[serde(deserialize_with = "lenient::or_default")]
    pub cpu_details: Vec<Processor>,
    #[serde(deserialize_with = "lenient::or_default")]
    pub nic_details: Vec<Card>,
}

/// A processor of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Processor {
    /// Nanoseconds of processor time that were used.
    pub time: Option<u64>,
}

/// A network card of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Card {
    /// Bytes that were received.
    pub rx_octets: Option<u64>,
    /// Bytes that were sent.
    pub tx_octets: Option<u64>,
}

impl Diagnostics {
    /// Returns the nanoseconds of processor time that all processors used.
    pub fn processor_time(&self) -> Option<u64> {
        self.cpu_details.iter().map(|one| one.time).sum()
    }
}

/// Returns a server's counters. A conflict means that the server does not run. By default only administrators may call this; Nova's policy
/// `os_compute_api:os-server-diagnostics` can change that.
pub async fn show(session: &Session, id: &str) -> Result<Option<Diagnostics>> {
    let call = session.get(SERVICE, &["servers", id, "diagnostics"]).microversion(MICROVERSION);
    crate::error::if_found(async { call.send().await?.whole() }.await)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_unknown_to_the_hypervisor_are_missing() {
        let seen: Diagnostics = serde_json::from_value(serde_json::json!({
            "state": "running", "uptime": null, "cpu_details": [{"id": 0, "time": 7, "utilisation": 15}, {"id": 1, "time": 3}],
            "nic_details": null,
        }))
        .unwrap();
        assert_eq!((seen.processor_time(), seen.uptime), (Some(10), None));
        let dark: Diagnostics =
            serde_json::from_value(serde_json::json!({"cpu_details": [{"time": null}]})).unwrap();
        assert_eq!(dark.processor_time(), None);
    }
}
