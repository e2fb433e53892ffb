//! Asks whether a Redfish service answers at an address, without any credentials.

use std::time::Duration;

use bmc::Result;
use serde_json::Value;
use url::Url;

use crate::connector::Connector;
use crate::origin::Origin;
use crate::unanswered::unreachable;

/// The longest service root that is read, in bytes.
const LONGEST: usize = 256 << 10;

/// The public part of a service root (DSP0266 §6.2: a service root needs no authentication).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceRoot {
    pub version: String,
    pub vendor: Option<String>,
    pub product: Option<String>,
    pub uuid: Option<String>,
}

impl Connector {
    /// Reads the service root at `address`, with any certificate, because nothing secret is sent. Returns `None` if something else than a
    /// Redfish service answers.
    ///
    /// # Errors
    ///
    /// Nothing answers, or the address is not allowed.
    pub async fn probe(&self, address: &Url, timeout: Duration) -> Result<Option<ServiceRoot>> {
        let origin = Origin::of(address);
        let failed = |source: reqwest::Error| unreachable(&origin, timeout, source);
        let client = self.unverified().map_err(failed)?;
        let request = client.get(origin.root()?).timeout(timeout);
        let mut answer = request.send().await.map_err(failed)?;
        if !answer.status().is_success() {
            return Ok(None);
        }
        let mut body = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(failed)? {
            if body.len() + chunk.len() > LONGEST {
                return Ok(None);
            }
            body.extend_from_slice(&chunk);
        }
        Ok(serde_json::from_slice(&body).ok().as_ref().and_then(service_root))
    }
}

/// Reads a service root; `None` if the document is another one.
fn service_root(body: &Value) -> Option<ServiceRoot> {
    let text = |name: &str| body.get(name)?.as_str().map(str::to_owned);
    let version = text("RedfishVersion")?;
    let (vendor, product, uuid) = (text("Vendor"), text("Product"), text("UUID"));
    Some(ServiceRoot { version, vendor, product, uuid })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_a_document_with_a_redfish_version_is_a_service_root() {
        let root = json!({"RedfishVersion": "1.6.0", "Vendor": "ACME", "UUID": null});
        let found = service_root(&root).unwrap();
        assert_eq!((&*found.version, found.vendor.as_deref()), ("1.6.0", Some("ACME")));
        assert_eq!((found.product, found.uuid), (None, None));
        for other in [json!({}), json!([]), json!({"RedfishVersion": 1})] {
            assert_eq!(service_root(&other), None);
        }
    }
}
