//! Security groups: the packets that ports may receive and send.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Kind, SERVICE};
use crate::error::Result;
use crate::lenient;
use crate::session::Session;

const KIND: Kind = Kind { path: "security-groups", one: "security_group", many: "security_groups" };

/// A security group.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct SecurityGroup {
    pub id: String,
    /// Names are not unique.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub name: String,
    #[serde(default, rename = "security_group_rules")]
    pub rules: Vec<Rule>,
    #[serde(default)]
    pub tags: Vec<String>,
}

/// A rule of a group.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Rule {
    pub id: String,
    #[serde(flatten)]
    pub what: RuleSpec,
}

/// The packets that a rule allows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleSpec {
    pub direction: Direction,
    /// `IPv4` or `IPv6`.
    pub ethertype: String,
    /// `tcp`, `udp`, `icmp` or a number; `None` is any.
    pub protocol: Option<String>,
    /// The first port number; `None` is any.
    pub port_range_min: Option<u16>,
    /// The last port number.
    pub port_range_max: Option<u16>,
    /// The remote addresses; any if neither this nor a group is set.
    pub remote_ip_prefix: Option<String>,
    /// The id of a group whose ports are the remote side.
    pub remote_group_id: Option<String>,
}

/// The direction of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// To the port.
    Ingress,
    /// From the port.
    Egress,
}

impl RuleSpec {
    /// Allows packets from `remote` to one TCP or UDP port.
    pub fn to_port(protocol: &str, port: u16, remote: Remote) -> RuleSpec {
        RuleSpec {
            protocol: Some(protocol.to_owned()),
            port_range_min: Some(port),
            port_range_max: Some(port),
            ..RuleSpec::everything(remote)
        }
    }

    /// Allows all packets from `remote`.
    pub fn everything(remote: Remote) -> RuleSpec {
        let (prefix, group) = match remote {
            Remote::Anyone => (None, None),
            Remote::Prefix(prefix) => (Some(prefix), None),
            Remote::Group(group) => (None, Some(group)),
        };
        let six = prefix.as_ref().is_some_and(|prefix| prefix.contains(':'));
        RuleSpec {
            direction: Direction::Ingress,
            ethertype: if six { "IPv6" } else { "IPv4" }.to_owned(),
            protocol: None,
            port_range_min: None,
            port_range_max: None,
            remote_ip_prefix: prefix,
            remote_group_id: group,
        }
    }
}

/// The remote side of incoming packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remote {
    Anyone,
    /// A network, for example `10.0.0.0/8`.
    Prefix(String),
    /// All ports of the group with this id.
    Group(String),
}

/// Creates a group, which at first allows all outgoing packets and no incoming ones. Derive the name from its purpose.
///
/// After an error with unknown outcome, look for the group with [`find`].
pub async fn create(session: &Session, name: &str, description: &str) -> Result<SecurityGroup> {
    KIND.create(session, json!({"name": name, "description": description})).await
}

/// Returns the group with this id and its rules.
pub async fn show(session: &Session, id: &str) -> Result<Option<SecurityGroup>> {
    KIND.show(session, id).await
}

/// Returns the visible groups with this name.
pub async fn find(session: &Session, name: &str) -> Result<Vec<SecurityGroup>> {
    KIND.list(session, &[("name", name.to_owned())]).await
}

/// Returns the visible groups with one of these names.
pub async fn named(session: &Session, names: &[String]) -> Result<Vec<SecurityGroup>> {
    KIND.any_of(session, "name", names).await
}

/// Adds a rule to a group. A rule that exists already is no error.
pub async fn allow(session: &Session, group_id: &str, what: &RuleSpec) -> Result<()> {
    let mut rule = json!(what);
    rule["security_group_id"] = Value::String(group_id.to_owned());
    let call =
        session.post(SERVICE, &["security-group-rules"], json!({"security_group_rule": rule}));
    // An equal rule is a conflict, so a repetition is harmless.
    match call.repeatable().done().await {
        Err(error) if error.is_conflict() => Ok(()),
        other => other,
    }
}

/// Deletes a rule.
pub async fn remove_rule(session: &Session, rule_id: &str) -> Result<()> {
    session.delete(SERVICE, &["security-group-rules", rule_id]).await
}

/// Deletes a group. A conflict means that ports use the group.
pub async fn delete(session: &Session, id: &str) -> Result<()> {
    KIND.delete(session, id).await
}
