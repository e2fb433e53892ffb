//! Security groups: which packets ports take and send.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Kind, SERVICE};
use crate::error::CloudError;
use crate::lenient;
use crate::session::Session;

const KIND: Kind = Kind { path: "security-groups", one: "security_group", many: "security_groups" };

/// A security group.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct SecurityGroup {
    /// Its id.
    pub id: String,
    /// Its name, which others may have as well.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub name: String,
    /// What it lets through.
    #[serde(default, rename = "security_group_rules")]
    pub rules: Vec<Rule>,
    /// Its tags.
    #[serde(default)]
    pub tags: Vec<String>,
}

/// A rule of a group.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Rule {
    /// Its id.
    pub id: String,
    /// What it lets through.
    #[serde(flatten)]
    pub what: Pass,
}

/// What a rule lets through.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pass {
    /// To the port or from it.
    pub direction: Direction,
    /// `IPv4` or `IPv6`.
    pub ethertype: String,
    /// `tcp`, `udp`, `icmp`, a number; any if `None`.
    pub protocol: Option<String>,
    /// The first of the port numbers; any if `None`.
    pub port_range_min: Option<u16>,
    /// The last of them.
    pub port_range_max: Option<u16>,
    /// From or to these addresses; any if neither this nor a group is given.
    pub remote_ip_prefix: Option<String>,
    /// From or to ports of this group.
    pub remote_group_id: Option<String>,
}

/// Which way packets go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// To the port.
    Ingress,
    /// From the port.
    Egress,
}

impl Pass {
    /// One TCP or UDP port, to whoever may come from `remote`.
    pub fn to_port(protocol: &str, port: u16, remote: Remote) -> Pass {
        Pass {
            protocol: Some(protocol.to_owned()),
            port_range_min: Some(port),
            port_range_max: Some(port),
            ..Pass::everything(remote)
        }
    }

    /// Everything that comes from `remote`.
    pub fn everything(remote: Remote) -> Pass {
        let (prefix, group) = match remote {
            Remote::Anyone => (None, None),
            Remote::Prefix(prefix) => (Some(prefix), None),
            Remote::Group(group) => (None, Some(group)),
        };
        let six = prefix.as_ref().is_some_and(|prefix| prefix.contains(':'));
        Pass {
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

/// Where packets come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remote {
    /// Anywhere.
    Anyone,
    /// These addresses.
    Prefix(String),
    /// Ports of the group with this id.
    Group(String),
}

/// Makes a group, which at first lets everything out and nothing in. Derive the name from what it is for.
///
/// After an error whose outcome is unknown look for it by [`find`].
pub async fn create(
    session: &Session,
    name: &str,
    description: &str,
) -> Result<SecurityGroup, CloudError> {
    KIND.create(session, json!({"name": name, "description": description})).await
}

/// The group with this id, its rules with it.
pub async fn show(session: &Session, id: &str) -> Result<Option<SecurityGroup>, CloudError> {
    KIND.show(session, id).await
}

/// Those of this name that we may see.
pub async fn find(session: &Session, name: &str) -> Result<Vec<SecurityGroup>, CloudError> {
    KIND.list(session, &[("name", name.to_owned())]).await
}

/// Those with one of these names that we may see.
pub async fn named(session: &Session, names: &[String]) -> Result<Vec<SecurityGroup>, CloudError> {
    KIND.any_of(session, "name", names).await
}

/// Lets something through. That it does already is what was wanted.
pub async fn allow(session: &Session, group_id: &str, what: &Pass) -> Result<(), CloudError> {
    let mut rule = json!(what);
    rule["security_group_id"] = Value::String(group_id.to_owned());
    let call =
        session.post(SERVICE, &["security-group-rules"], json!({"security_group_rule": rule}));
    // A second rule that says the same is a conflict: it is harmless to ask twice.
    match call.repeatable().done().await {
        Err(error) if error.is_conflict() => Ok(()),
        other => other,
    }
}

/// Takes a rule away.
pub async fn remove_rule(session: &Session, rule_id: &str) -> Result<(), CloudError> {
    session.delete(SERVICE, &["security-group-rules", rule_id]).await
}

/// Deletes a group. One that ports have is a conflict.
pub async fn delete(session: &Session, id: &str) -> Result<(), CloudError> {
    KIND.delete(session, id).await
}
