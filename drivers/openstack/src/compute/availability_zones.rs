//! Availability zones, which group compute hosts.

use serde::Deserialize;

use super::{MICROVERSION, SERVICE};
use crate::error::Result;
use crate::session::Session;

#[derive(Deserialize)]
struct Zone {
    #[serde(rename = "zoneName")]
    name: String,
    #[serde(rename = "zoneState", default)]
    state: State,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct State {
    available: bool,
}

/// Lists the names of the zones that accept servers now.
pub async fn list(session: &Session) -> Result<Vec<String>> {
    let call = session.get(SERVICE, &["os-availability-zone"]).microversion(MICROVERSION);
    let zones: Vec<Zone> = call.under("availabilityZoneInfo").await?;
    let usable = zones.into_iter().filter(|zone| zone.state.available);
    Ok(usable.map(|zone| zone.name).collect())
}
