//! The answers that both services give.

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

/// The lease of a node, cluster or VM.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Lease {
    pub until: Timestamp,
    pub ended_at: Option<Timestamp>,
    pub deleted_at: Option<Timestamp>,
    pub next: Option<LeaseStage>,
}

/// The next stage of a lease.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct LeaseStage {
    pub step: String,
    pub at: Timestamp,
}

/// How far a conductor is with its drain.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ConductorProgress {
    pub hostname: String,
    /// `working`, `rebalancing`, `draining`, `drained` or `dead`.
    pub state: String,
    /// How many turns it still has for resources that belong to others by now.
    pub turns_of_others: u32,
}

/// A key with which a service seals secrets.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Key {
    pub id: String,
    pub seals: bool,
    pub in_file: bool,
    /// The number of records that are sealed with this key.
    pub records: u64,
    /// The number of machines that have a secret derived from this key.
    pub machines: u64,
}

/// A row of the access policy: the roles that a route requires.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct PolicyRow {
    pub method: String,
    pub path: String,
    pub public: bool,
    pub cloud: Option<String>,
    pub services: Option<bool>,
    pub owner: Option<String>,
    pub lessee: Option<String>,
}

/// A row of the audit trail, with the result of its request.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct AuditRow {
    pub number: i64,
    pub at: Timestamp,
    pub outcome: String,
    pub status: u16,
    pub times: u64,
    pub user_id: String,
    pub user_name: String,
    pub source: String,
    pub method: String,
    /// The path of the request, with its parameters in braces.
    pub route: String,
    pub target: String,
    pub action: String,
    pub result: Option<AuditResult>,
}

/// The result of a request.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct AuditResult {
    pub outcome: String,
    pub status: u16,
}

/// A service's own verification of its audit trail.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct AuditVerdict {
    /// The last row, as NUMBER:HASH.
    pub head: String,
    pub broken: Option<BrokenAudit>,
}

/// The first row of an audit trail that does not fit the rows before it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct BrokenAudit {
    pub why: String,
}

/// The root of a service's API.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ApiRoot {
    pub versions: Vec<Value>,
}

/// The health of a service.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Health {
    pub now: Timestamp,
    pub database: DatabaseHealth,
}

/// The database of a service.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct DatabaseHealth {
    pub kind: String,
    pub schema_found: i64,
    pub schema_known: i64,
}

/// A webhook that gets notifications.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Webhook {
    pub name: String,
    /// False for a webhook that only earlier configurations name.
    pub configured: bool,
    /// The number of events that wait.
    pub waiting: u64,
    /// When the oldest of them was written.
    pub waiting_since: Option<Timestamp>,
    /// The number of events that were given up and are kept.
    pub dead: u64,
    /// The events that were given up last, the newest first.
    pub last_dead: Vec<DeadEvent>,
}

/// An event that was given up.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct DeadEvent {
    pub event_type: String,
    /// The id of the object that the event is about.
    pub subject: String,
    /// Why the last attempt failed.
    pub problem: String,
}
