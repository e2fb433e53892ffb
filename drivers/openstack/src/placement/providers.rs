//! Resource providers and their inventories.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{MICROVERSION, SERVICE};
use crate::error::Result;
use crate::session::Session;

#[derive(Deserialize)]
struct Inventory {
    #[serde(default)]
    total: u64,
}

/// Returns a provider's total amount of each resource class; `None` if the provider does not exist. The provider of a hypervisor has the
/// hypervisor's id.
pub async fn inventories(session: &Session, id: &str) -> Result<Option<BTreeMap<String, u64>>> {
    let path = ["resource_providers", id, "inventories"];
    let call = session.get(SERVICE, &path).microversion(MICROVERSION);
    let found: Option<BTreeMap<String, Inventory>> = call.find_under("inventories").await?;
    Ok(found.map(|all| all.into_iter().map(|(class, one)| (class, one.total)).collect()))
}
