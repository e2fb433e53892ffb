//! One object of a service, and its kind.

use serde_json::{Map, Value};
use tokio::time::Instant;

/// The kind of an object.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Domain,
    Project,
    User,
    Role,
    Trust,
    ApplicationCredential,
    Region,
    Service,
    Endpoint,
    Image,
    Flavor,
    Keypair,
    Server,
    ServerGroup,
    ComputeHost,
    Aggregate,
    Provider,
    Network,
    Subnet,
    Router,
    Port,
    SecurityGroup,
    SecurityGroupRule,
    FloatingIp,
    LoadBalancer,
    Listener,
    Pool,
    Member,
    HealthMonitor,
    LoadBalancerFlavor,
    LoadBalancerFlavorProfile,
    Zone,
    Recordset,
    VolumeType,
    Volume,
    Snapshot,
}

/// One object of a service.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct Object {
    /// The id of the object, usually a UUID.
    pub id: String,
    /// The id of the object's project. Empty if it belongs to none.
    pub project: String,
    /// The time of creation.
    #[serde(with = "age")]
    pub born: Instant,
    /// The fields that the API shows.
    pub body: Map<String, Value>,
    /// The fields that the API does not show.
    pub hidden: Map<String, Value>,
}

impl Object {
    /// The text of a public field. Empty if the field is missing.
    pub fn text(&self, field: &str) -> &str {
        self.body.get(field).and_then(Value::as_str).unwrap_or_default()
    }

    /// The text of a hidden field. Empty if the field is missing.
    pub fn note(&self, field: &str) -> &str {
        self.hidden.get(field).and_then(Value::as_str).unwrap_or_default()
    }

    /// The number in a public field. 0 if the field is missing.
    pub fn number(&self, field: &str) -> i64 {
        self.body.get(field).and_then(Value::as_i64).unwrap_or_default()
    }

    /// Whether a public field is true.
    pub fn is(&self, field: &str) -> bool {
        self.body.get(field).and_then(Value::as_bool).unwrap_or_default()
    }

    /// The list in a public field. Empty if the field is missing.
    pub fn list(&self, field: &str) -> &[Value] {
        self.body.get(field).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    /// Sets a public field.
    pub fn set(&mut self, field: &str, value: impl Into<Value>) {
        self.body.insert(field.to_owned(), value.into());
    }

    /// Sets a hidden field.
    pub fn keep(&mut self, field: &str, value: impl Into<Value>) {
        self.hidden.insert(field.to_owned(), value.into());
    }

    /// All public fields as JSON.
    pub fn shown(&self) -> Value {
        Value::Object(self.body.clone())
    }
}

/// Serializes an instant as the milliseconds since then.
mod age {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use tokio::time::Instant;

    pub(crate) fn serialize<S: Serializer>(born: &Instant, to: S) -> Result<S::Ok, S::Error> {
        u64::try_from(born.elapsed().as_millis()).unwrap_or(u64::MAX).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Instant, D::Error> {
        let age = Duration::from_millis(u64::deserialize(from)?);
        let now = Instant::now();
        // The host may have restarted since, so the instant may be before its start.
        Ok(now.checked_sub(age).unwrap_or(now))
    }
}
