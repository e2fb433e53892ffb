//! The fields of nodes and ports that rules read and set. A rule sets no field that a request of an administrator cannot set.

use hardware::{BootMode, PowerState};
use serde::Serialize;
use serde_json::{Map, Value};

use super::problem::RuleProblem;
use super::{limits, path};
use crate::{Node, Port, RESERVED_NODE_NAMES, parse_conductor_group};

/// A field of a node or a port.
pub(super) struct Attribute<T: 'static> {
    name: &'static str,
    read: fn(&T) -> Value,
    /// Parses and sets the value; null selects the default. `None`: rules only read the field.
    write: Option<Write<T>>,
}

type Write<T> = fn(&mut T, Value) -> Result<(), RuleProblem>;

/// A record whose fields rules read and set.
pub(super) trait Attributes: Sized + 'static {
    const ALL: &'static [Attribute<Self>];

    /// Returns the value of the field of this name.
    fn read(&self, name: &str) -> Option<Value> {
        let found = Self::ALL.iter().find(|field| field.name == name);
        found.map(|field| (field.read)(self))
    }

    /// Changes the field that `path` names, in whole or in part.
    fn change(
        &mut self,
        path: &str,
        edit: impl FnOnce(&mut Map<String, Value>, &[&str]) -> Result<(), RuleProblem>,
    ) -> Result<(), RuleProblem> {
        let parts = path::attribute_path(path)?;
        let found = Self::ALL.iter().find(|field| parts.first() == Some(&field.name));
        let Some((field, write)) = found.and_then(|field| Some((field, field.write?))) else {
            let name: String = parts.first().unwrap_or(&"").chars().take(64).collect();
            return Err(RuleProblem::new(format!("{name}: a rule cannot set this field")));
        };
        let before = (field.read)(self);
        let mut document = Map::from_iter([(field.name.to_owned(), before)]);
        edit(&mut document, &parts)?;
        let after = document.remove(field.name).unwrap_or_default();
        check_size(field.name, &after, limits::FIELD)?;
        write(self, after).map_err(|why| RuleProblem::new(format!("{}: {why}", field.name)))
    }
}

/// Refuses a field that has become larger than `most` bytes.
pub(super) fn check_size(
    field: &str,
    value: &impl Serialize,
    most: usize,
) -> Result<(), RuleProblem> {
    match json_size(value) <= most {
        true => Ok(()),
        false => Err(RuleProblem::new(format!("{field}: is larger than {most} bytes"))),
    }
}

/// The size of a value as JSON.
pub(super) fn json_size(value: &impl Serialize) -> usize {
    serde_json::to_vec(value).map_or(usize::MAX, |text| text.len())
}

const fn read<T>(name: &'static str, read: fn(&T) -> Value) -> Attribute<T> {
    Attribute { name, read, write: None }
}

const fn field<T>(name: &'static str, read: fn(&T) -> Value, write: Write<T>) -> Attribute<T> {
    Attribute { name, read, write: Some(write) }
}

/// Stores a value that was parsed.
fn put<T>(place: &mut T, parsed: Result<T, RuleProblem>) -> Result<(), RuleProblem> {
    *place = parsed?;
    Ok(())
}

#[rustfmt::skip]
impl Attributes for Node {
    const ALL: &'static [Attribute<Node>] = &[
        read("uuid", |it| it.id.to_string().into()),
        field("name", |it| it.name.as_ref().map(|name| name.as_str()).into(), |it, new| put(&mut it.name, name(new))),
        read("driver", |it| it.driver.as_str().into()),
        field("driver_info", |it| it.driver_info.clone().into(), |it, new| put(&mut it.driver_info, object(new))),
        field("properties", |it| it.properties.clone().into(), |it, new| put(&mut it.properties, object(new))),
        field("extra", |it| it.extra.clone().into(), |it, new| put(&mut it.extra, object(new))),
        field("instance_info", |it| it.instance_info.clone().into(), |it, new| put(&mut it.instance_info, object(new))),
        field("resource_class", |it| it.resource_class.clone().into(), |it, new| put(&mut it.resource_class, text(new, 80))),
        field("description", |it| it.description.clone().into(), |it, new| put(&mut it.description, text(new, 4096))),
        field("owner", |it| it.owner.clone().into(), |it, new| put(&mut it.owner, text(new, 255))),
        field("lessee", |it| it.lessee.clone().into(), |it, new| put(&mut it.lessee, text(new, 255))),
        field("shard", |it| it.shard.clone().into(), |it, new| put(&mut it.shard, text(new, 255))),
        field("conductor_group", |it| it.conductor_group.clone().into(), |it, new| put(&mut it.conductor_group, group(new))),
        field("automated_clean", |it| it.automated_clean.into(), |it, new| put(&mut it.automated_clean, flag(new))),
        field("disable_power_off", |it| it.disable_power_off.into(), |it, new| put(&mut it.disable_power_off, set_flag(new, false))),
        field("retired", |it| it.retired.is_some().into(), |it, new| {
            it.retired = set_flag(new, false)?.then(|| it.retired.take().unwrap_or_default());
            Ok(())
        }),
        field("retired_reason", |it| it.retired.clone().into(), retired_reason),
        read("traits", |it| it.traits.iter().cloned().collect::<Vec<String>>().into()),
        read("provision_state", |it| it.provision_state.as_str().into()),
        read("power_state", |it| it.power_state.map(PowerState::as_str).into()),
        read("boot_mode", |it| it.boot_mode.map(BootMode::as_str).into()),
    ];
}

#[rustfmt::skip]
impl Attributes for Port {
    const ALL: &'static [Attribute<Port>] = &[
        read("uuid", |it| it.id.to_string().into()),
        read("node_uuid", |it| it.node.to_string().into()),
        read("address", |it| it.address.to_string().into()),
        field("extra", |it| it.extra.clone().into(), |it, new| put(&mut it.extra, object(new))),
        field("local_link_connection", |it| it.local_link_connection.clone().into(), |it, new| put(&mut it.local_link_connection, object(new))),
        field("pxe_enabled", |it| it.pxe_enabled.into(), |it, new| {
            check_alone(it)?;
            put(&mut it.pxe_enabled, set_flag(new, true))
        }),
        field("physical_network", |it| it.physical_network.clone().into(), |it, new| {
            check_alone(it)?;
            put(&mut it.physical_network, text(new, 64))
        }),
        field("is_smartnic", |it| it.is_smartnic.into(), |it, new| put(&mut it.is_smartnic, set_flag(new, false))),
        field("description", |it| it.description.clone().into(), |it, new| put(&mut it.description, text(new, 255))),
        field("vendor", |it| it.vendor.clone().into(), |it, new| put(&mut it.vendor, text(new, 32))),
        field("category", |it| it.category.clone().into(), |it, new| put(&mut it.category, text(new, 80))),
    ];
}

/// Refuses a change that the group of the port would have to follow.
fn check_alone(port: &Port) -> Result<(), RuleProblem> {
    match port.portgroup {
        None => Ok(()),
        Some(group) => Err(RuleProblem::new(format!("the port is in the port group {group}"))),
    }
}

fn retired_reason(node: &mut Node, new: Value) -> Result<(), RuleProblem> {
    let reason = text(new, 4096)?.unwrap_or_default();
    match &mut node.retired {
        Some(known) => *known = reason,
        None => return Err(RuleProblem::new("can only be set while retired is true")),
    }
    Ok(())
}

/// Text of at most `longest` bytes. Empty text counts as null.
fn text(value: Value, longest: usize) -> Result<Option<String>, RuleProblem> {
    match value {
        Value::Null => Ok(None),
        Value::String(text) if text.len() > longest => {
            Err(RuleProblem::new(format!("is longer than {longest} bytes")))
        }
        Value::String(text) if text.contains('\0') => {
            Err(RuleProblem::new("contains a NUL character"))
        }
        Value::String(text) => Ok(Some(text).filter(|text| !text.is_empty())),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            Err(RuleProblem::new("must be text"))
        }
    }
}

fn name(value: Value) -> Result<Option<crate::NodeName>, RuleProblem> {
    match text(value, 255)? {
        Some(name) if RESERVED_NODE_NAMES.contains(&name.as_str()) => {
            Err(RuleProblem::new(format!("{name:?} is reserved")))
        }
        Some(name) => name
            .parse()
            .map(Some)
            .map_err(|why: crate::InvalidName| RuleProblem::new(why.to_string())),
        None => Ok(None),
    }
}

fn group(value: Value) -> Result<String, RuleProblem> {
    let group = text(value, 255)?.unwrap_or_default();
    parse_conductor_group(&group).map_err(|why| RuleProblem::new(why.to_string()))
}

fn object(value: Value) -> Result<Map<String, Value>, RuleProblem> {
    match value {
        Value::Null => Ok(Map::new()),
        Value::Object(object) => Ok(object),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Err(RuleProblem::new("must be an object"))
        }
    }
}

/// A boolean, also as text; null is `None`.
fn flag(value: Value) -> Result<Option<bool>, RuleProblem> {
    match &value {
        Value::Null => Ok(None),
        Value::Bool(flag) => Ok(Some(*flag)),
        Value::String(text) => match &*text.to_lowercase() {
            "true" | "yes" | "on" | "1" => Ok(Some(true)),
            "false" | "no" | "off" | "0" => Ok(Some(false)),
            _ => Err(RuleProblem::new("must be true or false")),
        },
        Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            Err(RuleProblem::new("must be true or false"))
        }
    }
}

fn set_flag(value: Value, default: bool) -> Result<bool, RuleProblem> {
    Ok(flag(value)?.unwrap_or(default))
}
