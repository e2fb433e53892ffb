//! Resource providers: what has something to give.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{MICROVERSION, SERVICE};
use crate::error::CloudError;
use crate::session::Session;

#[derive(Deserialize)]
struct Inventory {
    #[serde(default)]
    total: u64,
}

/// How much a provider has in all, by class of resource; `None` where there is no such provider. A hypervisor's has its id.
pub async fn inventories(
    session: &Session,
    id: &str,
) -> Result<Option<BTreeMap<String, u64>>, CloudError> {
    let path = ["resource_providers", id, "inventories"];
    let call = session.get(SERVICE, &path).microversion(MICROVERSION);
    let found: Option<BTreeMap<String, Inventory>> = call.find_under("inventories").await?;
    Ok(found.map(|all| all.into_iter().map(|(class, one)| (class, one.total)).collect()))
}
