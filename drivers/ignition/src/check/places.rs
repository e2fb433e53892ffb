//! A value within a config, and where it is.

use serde_json::Value;

use super::Mistake;

/// What stands for a field that is not there.
const NOTHING: &Value = &Value::Null;

/// A value and its JSON path.
#[derive(Clone, Debug)]
pub(crate) struct Place<'v> {
    pub(crate) path: String,
    pub(crate) value: &'v Value,
}

impl<'v> Place<'v> {
    pub(crate) fn root(value: &'v Value) -> Self {
        Place { path: String::new(), value }
    }

    /// The field of this name, which may be nothing.
    pub(crate) fn field(&self, name: &str) -> Place<'v> {
        let path =
            if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) };
        Place { path, value: self.value.get(name).unwrap_or(NOTHING) }
    }

    /// The entries of the list of this name, which may be none.
    pub(crate) fn list(&self, name: &str) -> Vec<Place<'v>> {
        self.field(name).entries()
    }

    /// Fields and entries.
    pub(crate) fn children(&self) -> Vec<Place<'v>> {
        match self.value {
            Value::Object(fields) => fields.keys().map(|name| self.field(name)).collect(),
            Value::Array(_) => self.entries(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
        }
    }

    pub(crate) fn text(&self) -> Option<&'v str> {
        self.value.as_str()
    }

    /// The text, if there is any in it: Ignition takes an empty text as none.
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

    fn entries(&self) -> Vec<Place<'v>> {
        let entries = self.value.as_array().map(Vec::as_slice).unwrap_or_default();
        let entries = entries.iter().enumerate();
        entries
            .map(|(index, value)| Place { path: format!("{}[{index}]", self.path), value })
            .collect()
    }
}
