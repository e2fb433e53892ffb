//! PTR records: the names of floating IPs.

use serde::Deserialize;
use serde_json::{Value, json};

use super::{DnsStatus, SERVICE};
use crate::body::without_nulls;
use crate::error::{CloudError, if_found};
use crate::session::{Body, Session};

/// The name of a floating IP.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Ptr {
    /// The address.
    pub address: String,
    /// Its name, with a dot at the end; `None` if it has none.
    #[serde(default)]
    pub ptrdname: Option<String>,
    /// How far it is; `None` if it has no name.
    #[serde(default)]
    pub status: Option<DnsStatus>,
}

/// The name of the floating IP with this id in this region.
pub async fn show(session: &Session, region: &str, id: &str) -> Result<Option<Ptr>, CloudError> {
    let key = key(region, id);
    let call = session.get(SERVICE, &["reverse", "floatingips", &key]);
    if_found(async { call.send().await?.whole() }.await)
}

/// Names a floating IP of ours; `name` ends with a dot. `None` takes its name away.
pub async fn set(
    session: &Session,
    region: &str,
    id: &str,
    name: Option<&str>,
    description: &str,
) -> Result<(), CloudError> {
    let described = name.map(|_| description);
    let mut body = without_nulls(json!({"description": described}));
    // Null is what takes it away (DNS API v2, "Unset FloatingIP's PTR record").
    body["ptrdname"] = name.map_or(Value::Null, Value::from);
    let key = key(region, id);
    let path = ["reverse", "floatingips", key.as_str()];
    session.patch(SERVICE, &path, Value::Null).body(Body::Json(body)).repeatable().done().await
}

fn key(region: &str, id: &str) -> String {
    format!("{region}:{id}")
}
