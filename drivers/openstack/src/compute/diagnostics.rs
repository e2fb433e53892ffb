//! What a hypervisor knows of a server's work.

use serde::Deserialize;

use super::{MICROVERSION, SERVICE};
use crate::error::CloudError;
use crate::lenient;
use crate::session::Session;

/// What a server has done since it was switched on. What a hypervisor does not know is missing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Diagnostics {
    /// For how many seconds it has been on.
    pub uptime: Option<u64>,
    /// Its processors.
    #[serde(deserialize_with = "lenient::or_default")]
    pub cpu_details: Vec<Processor>,
    /// Its network cards.
    #[serde(deserialize_with = "lenient::or_default")]
    pub nic_details: Vec<Card>,
}

/// A processor of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Processor {
    /// For how many nanoseconds it has worked.
    pub time: Option<u64>,
}

/// A network card of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Card {
    /// Bytes that it got.
    pub rx_octets: Option<u64>,
    /// Bytes that it sent.
    pub tx_octets: Option<u64>,
}

impl Diagnostics {
    /// For how many nanoseconds its processors have worked, all together.
    pub fn processor_time(&self) -> Option<u64> {
        self.cpu_details.iter().map(|one| one.time).sum()
    }
}

/// What a server has done since it was switched on. One that does not run is a conflict. Nova tells it administrators only, unless
/// its policy `os_compute_api:os-server-diagnostics` says otherwise.
pub async fn show(session: &Session, id: &str) -> Result<Option<Diagnostics>, CloudError> {
    let call = session.get(SERVICE, &["servers", id, "diagnostics"]).microversion(MICROVERSION);
    crate::error::if_found(async { call.send().await?.whole() }.await)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_hypervisor_does_not_know_is_missing() {
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
