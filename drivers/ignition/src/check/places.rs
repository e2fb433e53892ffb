//! A value within a config, together with its JSON path.

use serde_json::Value;

use super::mistake::Mistake;

/// The value of a field that is absent.
const NOTHING: &Value = &Value::Null;

/// A JSON value and its path from the root of the config.
#[derive(Clone, Debug)]
pub(crate) struct ConfigValue<'v> {
    pub(crate) path: String,
    pub(crate) value: &'v Value,
}

impl<'v> ConfigValue<'v> {
    pub(crate) fn root(value: &'v Value) -> Self {
        ConfigValue { path: String::new(), value }
    }

    /// Returns the field of this name; its value is null if the field is absent.
    pub(crate) fn field(&self, name: &str) -> ConfigValue<'v> {
        let path =
            if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) };
        ConfigValue { path, value: self.value.get(name).unwrap_or(NOTHING) }
    }

    /// Returns the entries of the list of this name; none if the list is absent.
    pub(crate) fn list(&self, name: &str) -> Vec<ConfigValue<'v>> {
        self.field(name).entries()
    }

    /// Returns all fields of an object, or all entries of a list.
    pub(crate) fn children(&self) -> Vec<ConfigValue<'v>> {
        match self.value {
            Value::Object(fields) => fields.keys().map(|name| self.field(name)).collect(),
            Value::Array(_) => self.entries(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
        }
    }

    pub(crate) fn text(&self) -> Option<&'v str> {
        self.value.as_str()
    }

    /// Returns the text unless it is empty: Ignition treats an empty text like an absent one.
    pub(crate) fn filled(&self) -> Option<&'v str> {
        self.text().filter(|text| !text.is_empty())
    }

    pub(crate) fn number(&self) -> Option<i64> {
        self.value.as_i64()
    }

    pub(crate) fn is_true(&self) -> bool {
        self.value.as_bool() == Some(true)
    }

    pub(crate) fn mistake(&self, what: impl Into<String>) -> Mistake {
        Mistake { path: self.path.clone(), what: what.into() }
    }

    fn entries(&self) -> Vec<ConfigValue<'v>> {
        let entries = self.value.as_array().map(Vec::as_slice).unwrap_or_default();
        let entries = entries.iter().enumerate();
        entries
            .map(|(index, value)| ConfigValue { path: format!("{}[{index}]", self.path), value })
            .collect()
    }
}
