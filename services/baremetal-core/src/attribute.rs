//! The fields of nodes and ports that requests and inspection rules share. One row declares a field for both: its name, how its value is
//! read, and how a new value is checked and stored. The table of the API adds the microversion, the access rule and the filter.

use hardware::{BootMode, PowerState};
use serde_json::{Map, Value};

use crate::{Node, NodeName, Port, RESERVED_NODE_NAMES, parse_conductor_group};

/// Why a value cannot be stored in a field. The message does not name the field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidValue(String);

/// A field of a node or a port.
pub struct Attribute<T: 'static> {
    pub name: &'static str,
    pub value: AttributeValue<T>,
}

/// How the value of a field is read and stored. Null selects the default.
pub enum AttributeValue<T: 'static> {
    /// Text or null.
    Text(fn(&T) -> Option<&str>, Store<T>),
    Flag(fn(&T) -> bool, Store<T>),
    /// A boolean or null.
    MaybeFlag(fn(&T) -> Option<bool>, Store<T>),
    Object(fn(&T) -> &Map<String, Value>, fn(&mut T) -> &mut Map<String, Value>),
    /// Text or null that rules only read.
    Word(fn(&T) -> Option<&str>),
    /// A value that rules only read, and that answers show in another form.
    Computed(fn(&T) -> Value),
}

/// Checks a value and stores it.
pub type Store<T> = fn(&mut T, Value) -> Result<(), InvalidValue>;

/// A record with fields in a table.
pub trait Attributes: Sized + 'static {
    /// All fields that requests and inspection rules share.
    const ATTRIBUTES: &'static [Attribute<Self>];
}

/// Returns the field of this name, which the table must have.
pub const fn attribute<T: Attributes>(name: &str) -> &'static Attribute<T> {
    let mut at = 0;
    while !is_same(T::ATTRIBUTES[at].name.as_bytes(), name.as_bytes()) {
        at += 1;
    }
    &T::ATTRIBUTES[at]
}

const fn is_same(one: &[u8], other: &[u8]) -> bool {
    let mut at = 0;
    while at < one.len() && at < other.len() && one[at] == other[at] {
        at += 1;
    }
    at == one.len() && at == other.len()
}

impl<T> Attribute<T> {
    const fn new(name: &'static str, value: AttributeValue<T>) -> Self {
        Attribute { name, value }
    }

    /// Whether a value can be stored.
    pub fn is_settable(&self) -> bool {
        match self.value {
            AttributeValue::Text(..)
            | AttributeValue::Flag(..)
            | AttributeValue::MaybeFlag(..)
            | AttributeValue::Object(..) => true,
            AttributeValue::Word(_) | AttributeValue::Computed(_) => false,
        }
    }

    /// Returns the value of the field.
    pub fn read(&self, it: &T) -> Value {
        match self.value {
            AttributeValue::Text(read, _) | AttributeValue::Word(read) => read(it).into(),
            AttributeValue::Flag(read, _) => read(it).into(),
            AttributeValue::MaybeFlag(read, _) => read(it).into(),
            AttributeValue::Object(read, _) => read(it).clone().into(),
            AttributeValue::Computed(read) => read(it),
        }
    }

    /// Checks a value and stores it.
    ///
    /// # Errors
    ///
    /// The field cannot have the value, or cannot be set at all.
    pub fn store(&self, it: &mut T, new: Value) -> Result<(), InvalidValue> {
        match self.value {
            AttributeValue::Text(_, store)
            | AttributeValue::Flag(_, store)
            | AttributeValue::MaybeFlag(_, store) => store(it, new),
            AttributeValue::Object(_, place) => put(place(it), parse_object(new)),
            AttributeValue::Word(_) | AttributeValue::Computed(_) => {
                Err(InvalidValue::new("cannot be set"))
            }
        }
    }
}

use AttributeValue::{Computed, Flag, MaybeFlag, Object, Text, Word};

#[rustfmt::skip]
impl Attributes for Node {
    const ATTRIBUTES: &'static [Attribute<Node>] = &[
        Attribute::new("uuid", Computed(|it| it.id.to_string().into())),
        Attribute::new("name", Text(|it| it.name.as_ref().map(NodeName::as_str), |it, new| put(&mut it.name, name(new)))),
        Attribute::new("driver", Word(|it| Some(it.driver.as_str()))),
        Attribute::new("driver_info", Object(|it| &it.driver_info, |it| &mut it.driver_info)),
        Attribute::new("properties", Object(|it| &it.properties, |it| &mut it.properties)),
        Attribute::new("extra", Object(|it| &it.extra, |it| &mut it.extra)),
        Attribute::new("instance_info", Object(|it| &it.instance_info, |it| &mut it.instance_info)),
        Attribute::new("resource_class", Text(|it| it.resource_class.as_deref(), |it, new| put(&mut it.resource_class, parse_text(new, 80)))),
        Attribute::new("description", Text(|it| it.description.as_deref(), |it, new| put(&mut it.description, parse_text(new, 4096)))),
        Attribute::new("owner", Text(|it| it.owner.as_deref(), |it, new| put(&mut it.owner, parse_text(new, 255)))),
        Attribute::new("lessee", Text(|it| it.lessee.as_deref(), |it, new| put(&mut it.lessee, parse_text(new, 255)))),
        Attribute::new("shard", Text(|it| it.shard.as_deref(), |it, new| put(&mut it.shard, parse_text(new, 255)))),
        Attribute::new("conductor_group", Text(|it| Some(&it.conductor_group), |it, new| put(&mut it.conductor_group, group(new)))),
        Attribute::new("automated_clean", MaybeFlag(|it| it.automated_clean, |it, new| put(&mut it.automated_clean, parse_flag(new)))),
        Attribute::new("disable_power_off", Flag(|it| it.disable_power_off, |it, new| put(&mut it.disable_power_off, flag_or(new, false)))),
        Attribute::new("retired", Flag(|it| it.retired.is_some(), |it, new| store_mark(&mut it.retired, new))),
        Attribute::new("retired_reason", Text(|it| reason_of(&it.retired), |it, new| store_reason(&mut it.retired, "retired", new))),
        Attribute::new("traits", Computed(|it| it.traits.iter().cloned().collect::<Vec<String>>().into())),
        Attribute::new("provision_state", Computed(|it| it.provision_state.as_str().into())),
        Attribute::new("power_state", Word(|it| it.power_state.map(PowerState::as_str))),
        Attribute::new("boot_mode", Word(|it| it.boot_mode.map(BootMode::as_str))),
    ];
}

#[rustfmt::skip]
impl Attributes for Port {
    const ATTRIBUTES: &'static [Attribute<Port>] = &[
        Attribute::new("uuid", Computed(|it| it.id.to_string().into())),
        Attribute::new("node_uuid", Computed(|it| it.node.to_string().into())),
        Attribute::new("address", Computed(|it| it.address.to_string().into())),
        Attribute::new("extra", Object(|it| &it.extra, |it| &mut it.extra)),
        Attribute::new("local_link_connection", Object(|it| &it.local_link_connection, |it| &mut it.local_link_connection)),
        Attribute::new("pxe_enabled", Flag(|it| it.pxe_enabled, |it, new| put(&mut it.pxe_enabled, flag_or(new, true)))),
        Attribute::new("physical_network", Text(|it| it.physical_network.as_deref(), |it, new| put(&mut it.physical_network, filled(new, 64)))),
        Attribute::new("is_smartnic", Flag(|it| it.is_smartnic, |it, new| put(&mut it.is_smartnic, flag_or(new, false)))),
        Attribute::new("description", Text(|it| it.description.as_deref(), |it, new| put(&mut it.description, parse_text(new, 255)))),
        Attribute::new("vendor", Text(|it| it.vendor.as_deref(), |it, new| put(&mut it.vendor, parse_text(new, 32)))),
        Attribute::new("category", Text(|it| it.category.as_deref(), |it, new| put(&mut it.category, parse_text(new, 80)))),
    ];
}

/// Stores a value that was parsed.
fn put<T>(place: &mut T, parsed: Result<T, InvalidValue>) -> Result<(), InvalidValue> {
    *place = parsed?;
    Ok(())
}

impl InvalidValue {
    fn new(problem: impl Into<String>) -> Self {
        InvalidValue(problem.into())
    }

    /// A value of another JSON type than `wanted`.
    pub fn kind(wanted: &str, got: &Value) -> Self {
        let got = match got {
            Value::Null => "null",
            Value::Bool(_) => "a boolean",
            Value::Number(_) => "a number",
            Value::String(_) => "a string",
            Value::Array(_) => "an array",
            Value::Object(_) => "an object",
        };
        InvalidValue(format!("must be {wanted}, not {got}"))
    }
}

/// Text of at most `longest` bytes. Empty text counts as null.
///
/// # Errors
///
/// The value is longer, contains a NUL character, or is no text.
pub fn parse_text(value: Value, longest: usize) -> Result<Option<String>, InvalidValue> {
    match value {
        Value::Null => Ok(None),
        Value::String(text) if text.len() > longest => {
            Err(InvalidValue(format!("is longer than {longest} bytes")))
        }
        Value::String(text) if text.contains('\0') => {
            Err(InvalidValue::new("contains a NUL character"))
        }
        Value::String(text) => Ok(Some(text).filter(|text| !text.is_empty())),
        other @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
            Err(InvalidValue::kind("a string", &other))
        }
    }
}

/// Text of at most `longest` bytes that is not empty, or null.
fn filled(value: Value, longest: usize) -> Result<Option<String>, InvalidValue> {
    match value == "" {
        true => Err(InvalidValue::new("must not be empty")),
        false => parse_text(value, longest),
    }
}

/// An object; null is an empty object.
///
/// # Errors
///
/// The value is no object.
pub fn parse_object(value: Value) -> Result<Map<String, Value>, InvalidValue> {
    match value {
        Value::Null => Ok(Map::new()),
        Value::Object(object) => Ok(object),
        other @ (Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
            Err(InvalidValue::kind("an object", &other))
        }
    }
}

/// A boolean or null; also accepts booleans as text.
///
/// # Errors
///
/// The value is no boolean.
pub fn parse_flag(value: Value) -> Result<Option<bool>, InvalidValue> {
    match value {
        Value::Null => Ok(None),
        Value::Bool(value) => Ok(Some(value)),
        Value::String(text) => match &*text.to_ascii_lowercase() {
            "1" | "t" | "true" | "on" | "y" | "yes" => Ok(Some(true)),
            "0" | "f" | "false" | "off" | "n" | "no" => Ok(Some(false)),
            _ => Err(InvalidValue::new("must be true or false")),
        },
        other @ (Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
            Err(InvalidValue::kind("true or false", &other))
        }
    }
}

fn flag_or(value: Value, default: bool) -> Result<bool, InvalidValue> {
    Ok(parse_flag(value)?.unwrap_or(default))
}

fn name(value: Value) -> Result<Option<NodeName>, InvalidValue> {
    let Some(name) = filled(value, 255)? else { return Ok(None) };
    if RESERVED_NODE_NAMES.contains(&name.as_str()) {
        return Err(InvalidValue(format!("{name:?} is reserved")));
    }
    name.parse().map(Some).map_err(|why: crate::InvalidName| InvalidValue(why.to_string()))
}

fn group(value: Value) -> Result<String, InvalidValue> {
    let group = parse_text(value, 255)?.unwrap_or_default();
    parse_conductor_group(&group).map_err(|why| InvalidValue(why.to_string()))
}

/// Sets or clears a mark that is stored as an optional reason.
///
/// # Errors
///
/// The value is no boolean.
pub fn store_mark(reason: &mut Option<String>, wanted: Value) -> Result<(), InvalidValue> {
    match flag_or(wanted, false)? {
        true => {
            reason.get_or_insert_default();
        }
        false => *reason = None,
    }
    Ok(())
}

/// Sets the reason of the mark `mark`, which must be set.
///
/// # Errors
///
/// The mark is not set, or the value is no text.
pub fn store_reason(
    reason: &mut Option<String>,
    mark: &str,
    value: Value,
) -> Result<(), InvalidValue> {
    let wanted = parse_text(value, 4096)?.unwrap_or_default();
    match reason {
        Some(given) => *given = wanted,
        None if wanted.is_empty() => {}
        None => return Err(InvalidValue(format!("can only be set while {mark} is true"))),
    }
    Ok(())
}

/// The reason of a mark, unless the reason is empty.
pub fn reason_of(mark: &Option<String>) -> Option<&str> {
    mark.as_deref().filter(|reason| !reason.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn each_is_found<T: Attributes>() {
        for field in T::ATTRIBUTES {
            assert_eq!(attribute::<T>(field.name).name, field.name);
        }
    }

    #[test]
    fn each_field_is_found_by_its_whole_name() {
        each_is_found::<Node>();
        each_is_found::<Port>();
        assert!(!is_same(b"retired", b"retired_reason"));
        assert!(!is_same(b"retired_reason", b"retired"));
    }

    #[test]
    fn a_mark_that_is_not_set_has_no_reason() {
        let mut mark = None;
        assert_eq!(reason_of(&mark), None);
        store_reason(&mut mark, "retired", "".into()).unwrap();
        assert_eq!(mark, None);
        let refused = store_reason(&mut mark, "retired", "old".into()).unwrap_err();
        assert_eq!(refused.to_string(), "can only be set while retired is true");
        store_mark(&mut mark, true.into()).unwrap();
        assert_eq!((reason_of(&mark), mark.as_deref()), (None, Some("")));
        store_reason(&mut mark, "retired", "old".into()).unwrap();
        assert_eq!(reason_of(&mark), Some("old"));
    }
}
