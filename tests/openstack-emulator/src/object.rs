//! One object of a service, its kind, and its fields.

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
        self.body.text(field)
    }

    /// The text of a hidden field. Empty if the field is missing.
    pub fn note(&self, field: &str) -> &str {
        self.hidden.text(field)
    }

    /// The number in a public field. 0 if the field is missing.
    pub fn number(&self, field: &str) -> i64 {
        self.body.get(field).and_then(Value::as_i64).unwrap_or_default()
    }

    /// Whether a public field is true.
    pub fn is(&self, field: &str) -> bool {
        self.body.is(field)
    }

    /// The list in a public field. Empty if the field is missing.
    pub fn list(&self, field: &str) -> &[Value] {
        self.body.list(field)
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

/// The fields of a JSON object.
pub(crate) type Fields = Map<String, Value>;

static MISSING: Value = Value::Null;

/// Reads fields by name. A value that is not a JSON object has no fields.
pub(crate) trait ReadFields {
    /// The value of a field. Null if the field is missing.
    fn field(&self, name: &str) -> &Value;

    /// The text of a field. `None` if the field has no text.
    fn text_of(&self, name: &str) -> Option<&str> {
        self.field(name).as_str()
    }

    /// The text of a field. Empty if the field has no text.
    fn text(&self, name: &str) -> &str {
        self.text_of(name).unwrap_or_default()
    }

    /// The number in a field, which clients may also write as text.
    fn number_of(&self, name: &str) -> Option<i64> {
        let value = self.field(name);
        value.as_i64().or_else(|| value.as_str()?.parse().ok())
    }

    fn is(&self, name: &str) -> bool {
        *self.field(name) == Value::Bool(true)
    }

    /// The list in a field. Empty if the field has no list.
    fn list(&self, name: &str) -> &[Value] {
        self.field(name).as_array().map_or(&[], Vec::as_slice)
    }

    /// The texts of the list in a field.
    fn texts(&self, name: &str) -> impl Iterator<Item = &str> {
        self.list(name).iter().filter_map(Value::as_str)
    }

    /// Whether the list in a field contains this text.
    fn lists(&self, name: &str, text: &str) -> bool {
        self.texts(name).any(|one| one == text)
    }

    /// The fields of the object in a field.
    fn object(&self, name: &str) -> impl Iterator<Item = (&String, &Value)> {
        self.field(name).as_object().into_iter().flatten()
    }
}

impl ReadFields for Value {
    fn field(&self, name: &str) -> &Value {
        self.get(name).unwrap_or(&MISSING)
    }
}

impl ReadFields for Fields {
    fn field(&self, name: &str) -> &Value {
        self.get(name).unwrap_or(&MISSING)
    }
}

pub(crate) trait ChangeLists {
    /// Adds a value to the list in a field.
    fn push_to(&mut self, name: &str, value: impl Into<Value>);

    /// Removes the values that `gone` accepts from the list in a field.
    fn drop_from(&mut self, name: &str, gone: impl Fn(&Value) -> bool);
}

impl ChangeLists for Fields {
    fn push_to(&mut self, name: &str, value: impl Into<Value>) {
        let all = self.list(name).iter().cloned().chain([value.into()]).collect();
        self.insert(name.to_owned(), all);
    }

    fn drop_from(&mut self, name: &str, gone: impl Fn(&Value) -> bool) {
        let left = self.list(name).iter().filter(|one| !gone(one)).cloned().collect();
        self.insert(name.to_owned(), left);
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
