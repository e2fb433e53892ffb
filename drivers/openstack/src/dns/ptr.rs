//! PTR records: the names of floating IPs.

use serde::Deserialize;
use serde_json::{Value, json};

use super::{DnsStatus, SERVICE};
use crate::body::without_nulls;
use crate::error::{Result, if_found};
use crate::session::{Body, Session};

/// The PTR record of a floating IP.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Ptr {
    pub address: String,
    /// The name with a final dot; `None` if the floating IP has none.
    #[serde(default)]
    pub ptrdname: Option<String>,
    /// `None` if the floating IP has no name.
    #[serde(default)]
    pub status: Option<DnsStatus>,
}

/// Returns the PTR record of the floating IP with this id in this region.
pub async fn show(session: &Session, region: &str, id: &str) -> Result<Option<Ptr>> {
    let key = key(region, id);
    let call = session.get(SERVICE, &["reverse", "floatingips", &key]);
    if_found(async { call.send().await?.whole() }.await)
}

/// Sets the PTR record of one of our floating IPs; `name` has a final dot. `None` removes the record.
pub async fn set(
    session: &Session,
    region: &str,
    id: &str,
    name: Option<&str>,
    description: &str,
) -> Result<()> {
    let described = name.map(|_| description);
    let mut body = without_nulls(json!({"description": described}));
    // Null removes the record (DNS API v2, "Unset FloatingIP's PTR record").
    body["ptrdname"] = name.map_or(Value::Null, Value::from);
    let key = key(region, id);
    let path = ["reverse", "floatingips", key.as_str()];
    session.patch(SERVICE, &path, Value::Null).body(Body::Json(body)).repeatable().done().await
}

fn key(region: &str, id: &str) -> String {
    format!("{region}:{id}")
}
